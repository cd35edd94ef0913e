#include "schema/options_private.h"

#include <stddef.h>
#include <stdio.h>

#include "schema/decoder.h"

/* ---- words ---- */

static const char *const engine_names[] = {"deduplicate", "partial-update", "aggregation",
                                           "first-row"};
static const char *const producer_names[] = {"none", "input", "full-compaction", "lookup"};
static const char *const lookup_compact_names[] = {"radical", "gentle"};

const char *tn_merge_engine_name(enum tn_merge_engine engine)
{
    return engine_names[engine];
}

static tn_rc read_word(struct tn_option_reader *r, const struct tn_option_rule *option,
                       const char *value, const char *const *words, uint32_t count, uint32_t *found)
{
    for (uint32_t i = 0; i < count; i++) {
        if (tn_option_is(value, words[i])) {
            *found = i;
            return TN_OK;
        }
    }
    return tn_err_set(r->err, TN_INVALID, 0, "option '%s': '%.60s' is none of %s", option->name,
                      value, option->type);
}

tn_rc tn_option_read_engine(struct tn_option_reader *r, const struct tn_option_rule *option,
                            const char *value)
{
    uint32_t found = 0;
    tn_rc rc = read_word(r, option, value, engine_names, TN_ENTRIES(engine_names), &found);
    r->options->merge_engine = (enum tn_merge_engine)found;
    return rc;
}

tn_rc tn_option_read_producer(struct tn_option_reader *r, const struct tn_option_rule *option,
                              const char *value)
{
    uint32_t found = 0;
    tn_rc rc = read_word(r, option, value, producer_names, TN_ENTRIES(producer_names), &found);
    r->options->changelog_producer = (enum tn_changelog_producer)found;
    return rc;
}

tn_rc tn_option_read_lookup_compact(struct tn_option_reader *r, const struct tn_option_rule *option,
                                    const char *value)
{
    uint32_t found = 0;
    tn_rc rc =
        read_word(r, option, value, lookup_compact_names, TN_ENTRIES(lookup_compact_names), &found);
    r->options->lookup_gentle = found == 1;
    return rc;
}

/* What it says depends on other options: see tn_option_finish_merge. */
tn_rc tn_option_read_later(struct tn_option_reader *r, const struct tn_option_rule *option,
                           const char *value)
{
    (void)r;
    (void)option;
    (void)value;
    return TN_OK;
}

/* ---- functions ---- */

#define KIND(kind) (1U << TN_TYPE_##kind)
#define INTEGERS   (KIND(TINYINT) | KIND(SMALLINT) | KIND(INT) | KIND(BIGINT))
#define NUMBERS    (INTEGERS | KIND(FLOAT) | KIND(DOUBLE) | KIND(DECIMAL))
#define ALL_KINDS  ((1U << TN_TYPE_ARRAY) - 1)

static const struct {
    const char *name;
    uint32_t kinds; /* of columns that it can be for */
    const char *types;
    bool no_retract; /* a -U or -D of the column can't be merged */
} functions[TN_AGGREGATE_COUNT] = {
    [TN_AGGREGATE_NONE] = {"", 0, "", false},
    [TN_AGGREGATE_KEY] = {"", 0, "", false},
    [TN_AGGREGATE_SUM] = {"sum", NUMBERS, "numbers", false},
    [TN_AGGREGATE_PRODUCT] = {"product", NUMBERS, "numbers", false},
    [TN_AGGREGATE_MAX] = {"max", ALL_KINDS & ~KIND(BOOLEAN), "columns that have an order", true},
    [TN_AGGREGATE_MIN] = {"min", ALL_KINDS & ~KIND(BOOLEAN), "columns that have an order", true},
    [TN_AGGREGATE_LAST_VALUE] = {"last_value", ALL_KINDS, "", false},
    [TN_AGGREGATE_LAST_NON_NULL_VALUE] = {"last_non_null_value", ALL_KINDS, "", false},
    [TN_AGGREGATE_FIRST_VALUE] = {"first_value", ALL_KINDS, "", true},
    [TN_AGGREGATE_FIRST_NON_NULL_VALUE] = {"first_non_null_value", ALL_KINDS, "", true},
    [TN_AGGREGATE_LISTAGG] = {"listagg", KIND(VARCHAR), "STRING and VARCHAR", true},
    [TN_AGGREGATE_BOOL_AND] = {"bool_and", KIND(BOOLEAN), "BOOLEAN", true},
    [TN_AGGREGATE_BOOL_OR] = {"bool_or", KIND(BOOLEAN), "BOOLEAN", true},
    [TN_AGGREGATE_RBM32] = {"rbm32", KIND(VARBINARY), "VARBINARY", true},
};

/* Paimon's, of all versions. */
static const char not_computed[] = "collect|merge_map|merge_map_with_keytime|nested_update|"
                                   "nested_partial_update|rbm64|theta_sketch|hll_sketch|"
                                   "primary-key";

const char *tn_aggregate_name(enum tn_aggregate aggregate)
{
    return functions[aggregate].name;
}

bool tn_aggregate_knows_no_retract(enum tn_aggregate aggregate)
{
    return functions[aggregate].no_retract;
}

/* Paimon finds functions by their exact names. */
static enum tn_aggregate find_function(const char *name)
{
    for (int i = TN_AGGREGATE_SUM; i < TN_AGGREGATE_COUNT; i++) {
        if (strcmp(functions[i].name, name) == 0) {
            return (enum tn_aggregate)i;
        }
    }
    bool alias = strcmp(name, "first_not_null_value") == 0;
    return alias ? TN_AGGREGATE_FIRST_NON_NULL_VALUE : TN_AGGREGATE_NONE;
}

static tn_rc unknown_function(struct tn_option_reader *r, const char *option, const char *name)
{
    const char *names[TN_AGGREGATE_COUNT];
    for (int i = 0; i < TN_AGGREGATE_COUNT; i++) {
        names[i] = functions[i].name;
    }
    if (tn_option_one_of(name, not_computed)) {
        return tn_option_unsupported(r, option, name, "is not computed by this build");
    }
    const char *meant = tn_nearest_name(tn_bytes_of(name), names, TN_AGGREGATE_COUNT);
    return tn_err_set(r->err, TN_INVALID, 0, "option '%s': '%.60s' is no function%s%s%s", option,
                      name, meant && *meant ? "; did you mean '" : "", meant && *meant ? meant : "",
                      meant && *meant ? "'?" : "");
}

/* `column` is what the option's function is for. */
static tn_rc check_function(struct tn_option_reader *r, const char *option, const char *name,
                            const struct tn_field *column, enum tn_aggregate *function)
{
    *function = find_function(name);
    if (*function == TN_AGGREGATE_NONE) {
        return unknown_function(r, option, name);
    }
    if (!(functions[*function].kinds >> column->type.kind & 1)) {
        return tn_err_set(
            r->err, TN_INVALID, 0, "option '%s': '%s' is for %s, and column '%s' is %s", option,
            name, functions[*function].types, column->name, tn_type_name(column->type.kind));
    }
    return TN_OK;
}

/* ---- options of a column ---- */

enum { FIELD_OPTION_SIZE = 400 }; /* longer names are cut, and found by no option */

static const char *field_option(const struct tn_schema *schema, uint32_t field, const char *word,
                                char name[FIELD_OPTION_SIZE])
{
    (void)snprintf(name, FIELD_OPTION_SIZE, "fields.%s.%s", schema->fields[field].name, word);
    return tn_schema_option(schema, name);
}

static tn_rc field_switch(struct tn_option_reader *r, uint32_t field, const char *word, bool *on)
{
    char name[FIELD_OPTION_SIZE];
    const char *value = field_option(r->schema, field, word, name);
    if (value && !tn_option_one_of(value, "true|false")) {
        return tn_option_invalid(r, name, value, "is neither true nor false");
    }
    *on = value && tn_option_is(value, "true");
    return TN_OK;
}

static bool own_function(const struct tn_schema *schema, uint32_t field)
{
    char name[FIELD_OPTION_SIZE];
    return field_option(schema, field, "aggregate-function", name) != NULL;
}

static bool aggregates(const struct tn_option_reader *r)
{
    return r->options->merge_engine == TN_MERGE_AGGREGATION ||
           r->options->merge_engine == TN_MERGE_PARTIAL_UPDATE;
}

/* ---- sequence groups: fields.ORDERING,... .sequence-group = PROTECTED,... ---- */

static bool is_group(const char *key, struct tn_bytes *ordering)
{
    const char *word = NULL;
    return tn_option_split(key, ordering, &word) && strcmp(word, "sequence-group") == 0;
}

/* Takes the next name of a list with commas. */
static bool next_name(struct tn_bytes *list, struct tn_bytes *name)
{
    if (list->data == NULL) {
        return false;
    }
    const unsigned char *comma = list->size ? memchr(list->data, ',', list->size) : NULL;
    size_t size = comma ? (size_t)(comma - list->data) : list->size;
    *name = (struct tn_bytes){list->data, size};
    *list =
        comma ? (struct tn_bytes){comma + 1, list->size - size - 1} : (struct tn_bytes){NULL, 0};
    return true;
}

/* A column that a group may name. Newer Paimon refuses columns of the primary key: a group that is
 * passed over would leave a row without its key. */
static tn_rc group_column(struct tn_option_reader *r, const struct tn_option *option,
                          struct tn_bytes name, uint32_t *field)
{
    int32_t found = tn_schema_find(r->schema, name);
    if (found < 0) {
        return tn_err_set(r->err, TN_INVALID, 0, "option '%.100s': no column '%.*s'", option->key,
                          name.size > 60 ? 60 : (int)name.size, (const char *)name.data);
    }
    if (r->use != TN_OPTIONS_READ && tn_columns_have(r->schema->primary_keys, (uint32_t)found)) {
        return tn_err_set(r->err, TN_INVALID, 0,
                          "option '%.100s': column '%s' is of the primary key", option->key,
                          r->schema->fields[found].name);
    }
    *field = (uint32_t)found;
    return TN_OK;
}

static tn_rc join_group(struct tn_option_reader *r, const struct tn_option *option, uint32_t field,
                        bool orders)
{
    struct tn_merge_field *f = &r->options->merge_fields[field];
    int32_t group = (int32_t)r->options->sequence_group_count;
    if (f->group == group && f->orders != orders) {
        return TN_OK; /* protects its own ordering column: that is an ordering column */
    }
    if (f->group >= 0) {
        return tn_err_set(r->err, TN_INVALID, 0,
                          "option '%.100s': column '%s' is named twice, or in another group",
                          option->key, r->schema->fields[field].name);
    }
    if (orders && own_function(r->schema, field)) {
        return tn_err_set(r->err, TN_INVALID, 0,
                          "option '%.100s': column '%s' orders, and has a function of its own",
                          option->key, r->schema->fields[field].name);
    }
    f->group = group;
    f->orders = orders;
    return TN_OK;
}

static tn_rc read_group_order(struct tn_option_reader *r, const struct tn_option *option,
                              struct tn_bytes list)
{
    struct tn_sequence_group *group =
        &r->options->sequence_groups[r->options->sequence_group_count];
    void *index = NULL;
    size_t count = 1;
    for (size_t i = 0; i < list.size; i++) {
        count += list.data[i] == ',';
    }
    tn_rc rc =
        tn_arena_need(r->arena, count * sizeof(uint32_t), "a sequence group", &index, r->err);
    uint32_t *order = index;
    struct tn_bytes name;
    while (rc == TN_OK && next_name(&list, &name)) {
        rc = group_column(r, option, name, &order[group->order.count]);
        rc = rc != TN_OK ? rc : join_group(r, option, order[group->order.count], true);
        group->order.count++;
    }
    group->order.index = order;
    return rc;
}

static tn_rc read_group(struct tn_option_reader *r, const struct tn_option *option,
                        struct tn_bytes ordering)
{
    struct tn_bytes list = tn_bytes_of(option->value);
    struct tn_bytes name;
    tn_rc rc = read_group_order(r, option, ordering);
    while (rc == TN_OK && next_name(&list, &name)) {
        uint32_t field = 0;
        rc = group_column(r, option, name, &field);
        rc = rc != TN_OK ? rc : join_group(r, option, field, false);
    }
    r->options->sequence_group_count++;
    return rc;
}

static tn_rc take_fields(struct tn_option_reader *r)
{
    void *fields = NULL;
    void *groups = NULL;
    uint32_t group_count = 0;
    struct tn_bytes ordering;
    for (uint32_t i = 0; i < r->schema->option_count; i++) {
        group_count += is_group(r->schema->options[i].key, &ordering);
    }
    tn_rc rc = tn_arena_need(r->arena, (r->schema->field_count + 1) * sizeof(struct tn_merge_field),
                             "options of columns", &fields, r->err);
    rc = rc != TN_OK ? rc
                     : tn_arena_need(r->arena, (group_count + 1) * sizeof(struct tn_sequence_group),
                                     "sequence groups", &groups, r->err);
    r->options->merge_fields = fields;
    r->options->sequence_groups = groups;
    for (uint32_t i = 0; i < r->schema->field_count && rc == TN_OK; i++) {
        r->options->merge_fields[i] = (struct tn_merge_field){.group = -1};
    }
    return rc;
}

static tn_rc read_groups(struct tn_option_reader *r)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; i < r->schema->option_count && rc == TN_OK; i++) {
        struct tn_bytes ordering;
        if (is_group(r->schema->options[i].key, &ordering)) {
            rc = read_group(r, &r->schema->options[i], ordering);
        }
    }
    return rc;
}

/* ---- partial-update ---- */

static const char removing_groups[] = "partial-update.remove-record-on-sequence-group";

static tn_rc read_removing_groups(struct tn_option_reader *r)
{
    const char *value = tn_option_value(r->schema, removing_groups);
    struct tn_bytes list = value ? tn_bytes_of(value) : (struct tn_bytes){NULL, 0};
    struct tn_bytes name;
    while (next_name(&list, &name)) {
        int32_t field = tn_schema_find(r->schema, name);
        if (field < 0 || !r->options->merge_fields[field].orders) {
            return tn_option_invalid(r, removing_groups, value,
                                     "names a column that orders no sequence group");
        }
        r->options->sequence_groups[r->options->merge_fields[field].group].removes = true;
    }
    return TN_OK;
}

/* Source: Paimon, PartialUpdateMergeFunction.Factory. */
static tn_rc check_partial_update(struct tn_option_reader *r)
{
    const struct tn_options *o = r->options;
    const char *removing = tn_option_value(r->schema, removing_groups);
    const char *on_delete = "partial-update.remove-record-on-delete";
    if (o->merge_engine != TN_MERGE_PARTIAL_UPDATE) {
        return TN_OK;
    }
    if (o->partial_update_removes && o->ignore_delete) {
        return tn_option_invalid(r, on_delete, "true", "contradicts 'ignore-delete'");
    }
    if (removing && o->ignore_delete) {
        return tn_option_invalid(r, removing_groups, removing, "contradicts 'ignore-delete'");
    }
    if (o->partial_update_removes && o->sequence_group_count > 0) {
        return tn_option_invalid(r, on_delete, "true", "does not go with sequence groups");
    }
    return read_removing_groups(r);
}

/* ---- functions of columns ---- */

/* What a column has where no option names a function. */
static enum tn_aggregate plain_function(const struct tn_option_reader *r, uint32_t field)
{
    bool aggregation = r->options->merge_engine == TN_MERGE_AGGREGATION;
    if (aggregation && tn_columns_have(r->options->sequence_fields, field)) {
        return TN_AGGREGATE_LAST_VALUE;
    }
    if (tn_columns_have(r->schema->primary_keys, field)) {
        return TN_AGGREGATE_KEY;
    }
    return aggregation ? TN_AGGREGATE_LAST_NON_NULL_VALUE : TN_AGGREGATE_NONE;
}

/* True where options can't give a column a function. */
static bool function_is_fixed(const struct tn_option_reader *r, uint32_t field)
{
    bool sequence = r->options->merge_engine == TN_MERGE_AGGREGATION
                        ? tn_columns_have(r->options->sequence_fields, field)
                        : r->options->merge_fields[field].orders;
    return sequence || tn_columns_have(r->schema->primary_keys, field);
}

static tn_rc read_function(struct tn_option_reader *r, uint32_t field)
{
    struct tn_merge_field *f = &r->options->merge_fields[field];
    const struct tn_field *column = &r->schema->fields[field];
    char name[FIELD_OPTION_SIZE];
    const char *value = field_option(r->schema, field, "aggregate-function", name);
    f->aggregate = plain_function(r, field);
    if (value == NULL) {
        (void)snprintf(name, sizeof(name), "fields.default-aggregate-function");
        value = tn_schema_option(r->schema, name);
    }
    /* Nested columns are left out by whoever reads. */
    bool unread = r->use == TN_OPTIONS_READ && tn_type_nested(column->type.kind);
    if (value == NULL || unread || function_is_fixed(r, field)) {
        return TN_OK;
    }
    tn_rc rc = check_function(r, name, value, column, &f->aggregate);
    if (rc == TN_OK && r->options->merge_engine == TN_MERGE_PARTIAL_UPDATE && f->group < 0 &&
        f->aggregate != TN_AGGREGATE_LAST_NON_NULL_VALUE) {
        return tn_err_set(r->err, TN_INVALID, 0,
                          "option '%s': '%s' needs a sequence group that protects column '%s'",
                          name, value, column->name);
    }
    return rc;
}

static tn_rc read_merge_field(struct tn_option_reader *r, uint32_t field)
{
    struct tn_merge_field *f = &r->options->merge_fields[field];
    char name[FIELD_OPTION_SIZE];
    const char *delimiter = field_option(r->schema, field, "list-agg-delimiter", name);
    f->delimiter = delimiter ? delimiter : ",";
    if (r->options->merge_engine != TN_MERGE_PARTIAL_UPDATE) {
        f->group = -1; /* its options were checked, and say nothing here */
        f->orders = false;
    }
    tn_rc rc = read_function(r, field);
    rc = rc != TN_OK ? rc : field_switch(r, field, "ignore-retract", &f->ignore_retract);
    if (rc == TN_OK && f->ignore_retract && r->options->aggregation_removes) {
        return tn_err_set(r->err, TN_INVALID, 0,
                          "option 'fields.%s.ignore-retract': 'true' contradicts "
                          "'aggregation.remove-record-on-delete'",
                          r->schema->fields[field].name);
    }
    return rc;
}

static tn_rc read_merge_fields(struct tn_option_reader *r)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; i < r->schema->field_count && rc == TN_OK; i++) {
        rc = read_merge_field(r, i);
    }
    return rc;
}

/* ---- what goes together ---- */

static bool crosses_partitions(const struct tn_schema *schema)
{
    for (uint32_t i = 0; i < schema->partition_keys.count; i++) {
        if (!tn_columns_have(schema->primary_keys, schema->partition_keys.index[i])) {
            return schema->primary_keys.count > 0;
        }
    }
    return false;
}

/* Source: Paimon, SchemaValidation.validateSequenceField. */
static tn_rc check_sequence(struct tn_option_reader *r)
{
    const char *value = tn_option_value(r->schema, "sequence.field");
    struct tn_columns fields = r->options->sequence_fields;
    for (uint32_t i = 0; i < fields.count; i++) {
        if (own_function(r->schema, fields.index[i])) {
            return tn_option_invalid(r, "sequence.field", value, "has a function of its own");
        }
    }
    if (fields.count > 0 && r->options->merge_engine == TN_MERGE_FIRST_ROW) {
        return tn_option_invalid(r, "sequence.field", value, "does not go with first-row");
    }
    if (fields.count > 0 && r->use == TN_OPTIONS_CREATE && crosses_partitions(r->schema)) {
        return tn_option_invalid(r, "sequence.field", value,
                                 "needs a primary key that has all partition keys");
    }
    return TN_OK;
}

/* Source: Paimon, SchemaValidation.validateTableSchema, validateBucket; and, for what it lets lose
 * rows, KeyValueFileStoreWrite.createRewriter. */
static tn_rc check_changelog(struct tn_option_reader *r)
{
    const char *name = "changelog-producer";
    const char *value = tn_option_value(r->schema, name);
    const char *overwrite = tn_option_value(r->schema, "streaming-read-overwrite");
    const char *delta = tn_option_value(r->schema, "full-compaction.delta-commits");
    enum tn_changelog_producer producer = r->options->changelog_producer;
    bool keyed = r->schema->primary_keys.count > 0;
    bool derived = producer >= TN_CHANGELOG_FULL_COMPACTION;
    bool first = r->options->merge_engine == TN_MERGE_FIRST_ROW;
    if (!keyed && value && !tn_option_is(value, "none")) {
        return tn_option_invalid(r, name, value, "needs a primary key");
    }
    if (first && producer != TN_CHANGELOG_NONE && producer != TN_CHANGELOG_LOOKUP) {
        return tn_option_invalid(r, name, value, "does not go with first-row; none and lookup do");
    }
    if (r->options->force_lookup && producer == TN_CHANGELOG_FULL_COMPACTION &&
        (r->options->merge_engine != TN_MERGE_DEDUPLICATE ||
         r->options->sequence_fields.count > 0)) {
        return tn_option_invalid(r, "force-lookup", "true",
                                 "does not go with 'changelog-producer' = 'full-compaction': "
                                 "compactions look nothing up then, and readers pass over what "
                                 "lies in deeper levels, in Paimon too");
    }
    if (overwrite && tn_option_is(overwrite, "true") && derived) {
        return tn_option_invalid(r, name, value, "contradicts 'streaming-read-overwrite'");
    }
    if (delta && !keyed && r->options->bucket < 0) {
        return tn_option_invalid(r, "full-compaction.delta-commits", delta, "needs buckets");
    }
    return TN_OK;
}

/* Source: Paimon, KeyValueFileWriterFactory: they stand in for those of data files. */
static tn_rc read_changelog_files(struct tn_option_reader *r)
{
    static const struct tn_option_rule codec = {.name = "changelog-file.compression",
                                                .offset =
                                                    offsetof(struct tn_options, changelog_codec)};
    const char *format = tn_option_value(r->schema, "changelog-file.format");
    const char *compression = tn_option_value(r->schema, codec.name);
    r->options->changelog_codec = r->options->codec;
    if (r->options->changelog_producer == TN_CHANGELOG_NONE || r->use == TN_OPTIONS_READ) {
        return TN_OK;
    }
    if (format && !tn_option_is(format, "avro")) {
        return tn_option_unsupported(r, "changelog-file.format", format,
                                     "is not written by this build; avro is");
    }
    return compression ? tn_option_read_codec(r, &codec, compression) : TN_OK;
}

tn_rc tn_option_finish_merge(struct tn_option_reader *r)
{
    bool writes = r->use != TN_OPTIONS_READ;
    bool merges = r->schema->primary_keys.count > 0 && aggregates(r);
    bool groups =
        r->use == TN_OPTIONS_CREATE || r->options->merge_engine == TN_MERGE_PARTIAL_UPDATE;
    tn_rc rc = !writes ? TN_OK : check_sequence(r);
    rc = rc != TN_OK || !writes ? rc : check_changelog(r);
    rc = rc != TN_OK ? rc : read_changelog_files(r);
    rc = rc != TN_OK ? rc : take_fields(r);
    rc = rc != TN_OK || !groups ? rc : read_groups(r);
    rc = rc != TN_OK ? rc : check_partial_update(r);
    rc = rc != TN_OK || !merges ? rc : read_merge_fields(r);
    if (!merges) {
        r->options->merge_fields = NULL;
    }
    if (r->options->merge_engine != TN_MERGE_PARTIAL_UPDATE) {
        r->options->sequence_group_count = 0;
    }
    return rc;
}
