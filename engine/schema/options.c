#include "schema/options_private.h"

#include <inttypes.h>
#include <stddef.h>

#include "schema/decoder.h"

static bool matters(const struct tn_option_reader *r, const struct tn_option_rule *option)
{
    if (option->when == TN_OPTION_KEYED_READING && r->schema->primary_keys.count == 0) {
        return false;
    }
    return option->read != NULL && (r->use != TN_OPTIONS_READ || option->when != TN_OPTION_WRITING);
}

static tn_rc read_list(struct tn_option_reader *r)
{
    tn_rc rc = TN_OK;
    for (size_t i = 0; i < tn_option_rule_count && rc == TN_OK; i++) {
        const char *value = tn_option_value(r->schema, tn_option_rules[i].name);
        bool needed = matters(r, &tn_option_rules[i]);
        value = value && needed ? value : tn_option_rules[i].fallback;
        /* What a reader needs not has its default all the same, and that is never refused. */
        if (value && tn_option_rules[i].read &&
            (needed || tn_option_rules[i].read != tn_option_refuse) &&
            (needed || tn_option_rules[i].read != tn_option_read_format)) {
            rc = tn_option_rules[i].read(r, &tn_option_rules[i], value);
        }
    }
    return rc;
}

/* ---- options of columns: fields.COLUMN.WORD ---- */

static const char fields_prefix[] = "fields.";

/* The column and the word of `fields.a.b.stats-mode`: a column's name may hold points. */
bool tn_option_split(const char *key, struct tn_bytes *column, const char **word)
{
    const char *start = key + sizeof(fields_prefix) - 1;
    const char *point = strrchr(key, '.');
    if (strncmp(key, fields_prefix, sizeof(fields_prefix) - 1) != 0 || point < start) {
        return false;
    }
    *column = (struct tn_bytes){(const unsigned char *)start, (size_t)(point - start)};
    *word = point + 1;
    return true;
}

static tn_rc read_field_option(struct tn_option_reader *r, const struct tn_option *option)
{
    struct tn_bytes column = {0};
    const char *word = NULL;
    if (!tn_option_split(option->key, &column, &word)) {
        return TN_OK;
    }
    if (strcmp(word, "default-value") == 0) {
        return tn_option_unsupported(
            r, option->key, option->value,
            "was a default in old versions; give the field a defaultValue");
    }
    int32_t field = tn_schema_find(r->schema, column);
    if (field >= 0 && strcmp(word, "stats-mode") == 0) {
        return tn_option_read_field_stats(r, (uint32_t)field, option);
    }
    bool stray = field < 0 && r->use == TN_OPTIONS_CREATE && strcmp(word, "sequence-group") != 0 &&
                 !tn_option_listed(option->key);
    return stray ? tn_option_invalid(r, option->key, option->value,
                                     "is for a column that isn't there")
                 : TN_OK;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with)
{
    size_t size = strlen(text);
    size_t tail = strlen(with);
    return size >= tail && strcmp(text + size - tail, with) == 0;
}

/* Options of tarn's own that this build does not know. A reader needs none of them: what they
 * decide is in the rows. */
static tn_rc read_own_option(const struct tn_option_reader *r, const struct tn_option *option)
{
    if (!begins(option->key, "tarn.") || r->use == TN_OPTIONS_READ ||
        tn_option_listed(option->key)) {
        return TN_OK;
    }
    return tn_option_unsupported(r, option->key, option->value,
                                 "asks for what this build doesn't know");
}

/* Options whose names hold a word of the user's. */
static tn_rc read_open_options(struct tn_option_reader *r)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; i < r->schema->option_count && rc == TN_OK; i++) {
        const struct tn_option *option = &r->schema->options[i];
        bool index = (begins(option->key, "file-index.") && ends(option->key, ".columns")) ||
                     (begins(option->key, "pk-") && ends(option->key, ".index.columns"));
        rc = index ? tn_option_unsupported(r, option->key, option->value,
                                           "asks for an index: not supported "
                                           "by this build")
                   : read_field_option(r, option);
        rc = rc == TN_OK ? read_own_option(r, option) : rc;
    }
    return rc;
}

/* ---- what holds between options ---- */

static tn_rc check_bucket_key(const struct tn_option_reader *r)
{
    const struct tn_schema *schema = r->schema;
    const char *text = tn_option_value(schema, "bucket-key");
    struct tn_columns key = r->options->bucket_key;
    for (uint32_t i = 0; i < key.count; i++) {
        if (schema->primary_keys.count > 0 &&
            !tn_columns_have(schema->primary_keys, key.index[i])) {
            return tn_option_invalid(r, "bucket-key", text, "is not part of the primary key");
        }
        if (tn_columns_have(schema->partition_keys, key.index[i])) {
            return tn_option_invalid(r, "bucket-key", text, "names a partition key");
        }
    }
    return TN_OK;
}

static tn_rc finish_buckets(struct tn_option_reader *r)
{
    struct tn_options *o = r->options;
    if (o->bucket < 0) {
        return o->bucket_key.count == 0
                   ? TN_OK
                   : tn_option_invalid(r, "bucket-key", tn_option_value(r->schema, "bucket-key"),
                                       "needs a number of buckets: give 'bucket'");
    }
    if (o->bucket_key.count == 0 && r->schema->primary_keys.count == 0) {
        if (r->use == TN_OPTIONS_READ) {
            o->bucket = -1; /* old tables, by the whole row: tells a reader nothing */
            return TN_OK;
        }
        return tn_err_set(r->err, TN_INVALID, 0,
                          "option 'bucket-key' is missing: buckets of a table without a primary "
                          "key need it");
    }
    tn_rc rc = check_bucket_key(r);
    if (rc == TN_OK && o->bucket_key.count == 0) {
        o->bucket_key = r->schema->trimmed_keys;
    }
    return rc;
}

static tn_rc finish_function(const struct tn_option_reader *r)
{
    struct tn_columns key = r->options->bucket_key;
    if (r->options->bucket_function != TN_BUCKET_MOD || r->options->bucket < 0) {
        return TN_OK;
    }
    enum tn_type_kind kind = r->schema->fields[key.index[0]].type.kind;
    if (key.count != 1 || (kind != TN_TYPE_INT && kind != TN_TYPE_BIGINT)) {
        return tn_option_invalid(r, "bucket-function.type", "mod",
                                 "needs a bucket key of one INT or BIGINT");
    }
    return TN_OK;
}

static tn_rc finish_rowkind(const struct tn_option_reader *r)
{
    int32_t field = r->options->rowkind_field;
    if (field >= 0 && !tn_type_textual(r->schema->fields[field].type.kind)) {
        return tn_option_invalid(r, "rowkind.field", r->schema->fields[field].name, "is no STRING");
    }
    return TN_OK;
}

/* What a script's finished rows can't be written under, so that every reader elsewhere is right
 * about them: it takes the newest row of a key by arrival, and of all levels. */
static tn_rc finish_script(const struct tn_option_reader *r)
{
    const struct tn_options *o = r->options;
    const struct tn_schema *schema = r->schema;
    const struct {
        bool fails;
        const char *name;
        const char *why;
    } rules[] = {
        {schema->primary_keys.count == 0, "tarn.script",
         "needs a primary key: it says what is true of a key"},
        {o->merge_engine != TN_MERGE_DEDUPLICATE, "merge-engine",
         "does not go with 'tarn.script', which merges rows before they are written: readers are "
         "to deduplicate"},
        {o->changelog_producer == TN_CHANGELOG_LOOKUP ||
             o->changelog_producer == TN_CHANGELOG_FULL_COMPACTION,
         "changelog-producer",
         "does not go with 'tarn.script': with 'input' what the script changes is announced, and "
         "another producer would announce it again"},
        {o->sequence_fields.count > 0, "sequence.field",
         "does not go with 'tarn.script': the last finished row counts; the script is told what "
         "came late by 'tarn.sequence.field'"},
        {o->ignore_delete, "ignore-delete",
         "does not go with 'tarn.script': readers would keep what it deletes"},
        {o->local_merge_size > 0, "local-merge-buffer-size",
         "does not go with 'tarn.script', which is asked for each row"},
        {o->force_lookup, "force-lookup",
         "does not go with 'tarn.script': readers would not see rows before they are compacted"},
    };
    if (!o->script) {
        return o->script_sequence_field < 0
                   ? TN_OK
                   : tn_option_invalid(r, "tarn.sequence.field",
                                       tn_option_value(schema, "tarn.sequence.field"),
                                       "is for a table with 'tarn.script'");
    }
    for (size_t i = 0; i < TN_ENTRIES(rules); i++) {
        if (rules[i].fails) {
            return tn_option_invalid(r, rules[i].name, tn_option_value(schema, rules[i].name),
                                     rules[i].why);
        }
    }
    return TN_OK;
}

static tn_rc finish_snapshots(const struct tn_option_reader *r)
{
    if (r->options->snapshot_retained_min > r->options->snapshot_retained_max) {
        return tn_err_set(r->err, TN_INVALID, 0,
                          "option 'snapshot.num-retained.min': %" PRId32
                          " is more than snapshot.num-retained.max, %" PRId32,
                          r->options->snapshot_retained_min, r->options->snapshot_retained_max);
    }
    if (r->options->lake_retained_max > 0 &&
        r->options->lake_retained_min > r->options->lake_retained_max) {
        return tn_err_set(r->err, TN_INVALID, 0,
                          "option 'lake.snapshot.num-retained.min': %" PRId32
                          " is more than lake.snapshot.num-retained.max, %" PRId32,
                          r->options->lake_retained_min, r->options->lake_retained_max);
    }
    struct tn_retention kept = tn_options_changelog_retention(r->options);
    return kept.count_min <= kept.count_max
               ? TN_OK
               : tn_err_set(r->err, TN_INVALID, 0,
                            "option 'changelog.num-retained.min': %" PRId32
                            " is more than changelog.num-retained.max, %" PRId32
                            " (each by default as of snapshots)",
                            kept.count_min, kept.count_max);
}

/* Defaults that other options give. Source: Paimon, CoreOptions. */
static void fill_defaults(struct tn_option_reader *r)
{
    struct tn_options *o = r->options;
    bool keyed = r->schema->primary_keys.count > 0;
    if (o->target_file_size == 0) {
        o->target_file_size = keyed ? INT64_C(128) << 20 : INT64_C(256) << 20;
    }
    if (o->stop_trigger == 0) {
        o->stop_trigger = o->compaction_trigger + 3;
    }
    if (o->stop_trigger < o->compaction_trigger) {
        o->stop_trigger = o->compaction_trigger;
    }
    if (o->num_levels == 0) {
        o->num_levels = o->compaction_trigger + 1;
    }
    if (o->lookup_interval_max == 0) {
        o->lookup_interval_max =
            o->compaction_trigger > INT32_MAX / 2 ? INT32_MAX : 2 * o->compaction_trigger;
    }
    if (o->lookup_interval_max < o->compaction_trigger) {
        o->lookup_interval_max = o->compaction_trigger;
    }
}

tn_rc tn_options_read(const struct tn_schema *schema, enum tn_options_use use,
                      struct tn_arena *arena, struct tn_options *options, struct tn_err *err)
{
    struct tn_options read = {.rowkind_field = -1,
                              .script_sequence_field = -1,
                              .path_directory = "",
                              .optimization_interval_ms = -1,
                              .changelog_time_retained_ms = -1,
                              .lake_time_retained_ms = -1,
                              .total_size_threshold = -1,
                              .incremental_size_threshold = -1};
    struct tn_option_reader r = {schema, use, arena, &read, err};
    bool writes = use != TN_OPTIONS_READ;
    tn_rc rc = read_list(&r);
    rc = rc != TN_OK || !writes ? rc : read_open_options(&r);
    rc = rc != TN_OK ? rc : finish_buckets(&r);
    rc = rc != TN_OK ? rc : finish_function(&r);
    rc = rc != TN_OK || !writes ? rc : finish_rowkind(&r);
    rc = rc != TN_OK || !writes ? rc : finish_snapshots(&r);
    rc = rc != TN_OK || !writes ? rc : finish_script(&r);
    rc = rc != TN_OK ? rc : tn_option_finish_merge(&r);
    if (rc == TN_OK) {
        fill_defaults(&r);
        *options = read;
    }
    return rc;
}

/* By what file/names asks of the options. */
static bool says_where(const struct tn_option_rule *rule)
{
    switch (rule->offset) {
    case offsetof(struct tn_options, path_directory):
    case offsetof(struct tn_options, partition_default_name):
    case offsetof(struct tn_options, partition_legacy_name):
    case offsetof(struct tn_options, index_in_data_folder):
        return rule->read != NULL;
    default:
        return false;
    }
}

typedef bool of_use_fn(const struct tn_option_rule *rule);

static tn_rc read_some(const struct tn_schema *schema, of_use_fn *of_use, struct tn_arena *arena,
                       struct tn_options *options, struct tn_err *err)
{
    struct tn_options read = {
        .path_directory = "", .changelog_time_retained_ms = -1, .lake_time_retained_ms = -1};
    struct tn_option_reader r = {schema, TN_OPTIONS_READ, arena, &read, err};
    tn_rc rc = TN_OK;
    for (size_t i = 0; i < tn_option_rule_count && rc == TN_OK; i++) {
        const struct tn_option_rule *rule = &tn_option_rules[i];
        const char *value = tn_option_value(schema, rule->name);
        value = value ? value : rule->fallback;
        rc = value && of_use(rule) ? rule->read(&r, rule, value) : TN_OK;
    }
    if (rc == TN_OK) {
        *options = read;
    }
    return rc;
}

tn_rc tn_options_read_places(const struct tn_schema *schema, struct tn_arena *arena,
                             struct tn_options *options, struct tn_err *err)
{
    return read_some(schema, says_where, arena, options, err);
}

/* By what commit/expire asks of the options. */
static bool says_how_long(const struct tn_option_rule *rule)
{
    switch (rule->offset) {
    case offsetof(struct tn_options, snapshot_retained_min):
    case offsetof(struct tn_options, snapshot_retained_max):
    case offsetof(struct tn_options, snapshot_time_retained_ms):
    case offsetof(struct tn_options, snapshot_expire_limit):
    case offsetof(struct tn_options, changelog_retained_min):
    case offsetof(struct tn_options, changelog_retained_max):
    case offsetof(struct tn_options, changelog_time_retained_ms):
    case offsetof(struct tn_options, changelog_producer):
    case offsetof(struct tn_options, lake_retained_min):
    case offsetof(struct tn_options, lake_retained_max):
    case offsetof(struct tn_options, lake_time_retained_ms):
        return rule->read != NULL;
    default:
        return says_where(rule);
    }
}

tn_rc tn_options_read_retention(const struct tn_schema *schema, struct tn_arena *arena,
                                struct tn_options *options, struct tn_err *err)
{
    return read_some(schema, says_how_long, arena, options, err);
}
