#include "schema/options_private.h"

#include <inttypes.h>

#include "schema/decoder.h"

/* ---- errors ---- */

tn_rc tn_option_invalid(const struct tn_option_reader *r, const char *name, const char *value,
                        const char *why)
{
    return tn_err_set(r->err, TN_INVALID, 0, "option '%s': '%.60s' %s", name, value, why);
}

tn_rc tn_option_unsupported(const struct tn_option_reader *r, const char *name, const char *value,
                            const char *why)
{
    return tn_err_set(r->err, TN_UNSUPPORTED, 0, "option '%s': '%.60s' %s", name, value, why);
}

/* ---- readers of values ---- */

static void *member(const struct tn_option_reader *r, const struct tn_option_rule *option)
{
    return (unsigned char *)r->options + option->offset;
}

tn_rc tn_option_read_switch(struct tn_option_reader *r, const struct tn_option_rule *option,
                            const char *value)
{
    if (!tn_option_one_of(value, "true|false")) {
        return tn_option_invalid(r, option->name, value, "is neither true nor false");
    }
    *(bool *)member(r, option) = tn_option_is(value, "true");
    return TN_OK;
}

tn_rc tn_option_read_integer(struct tn_option_reader *r, const struct tn_option_rule *option,
                             const char *value)
{
    int64_t number = 0;
    if (!tn_option_integer(value, &number) || number < option->low || number > option->high) {
        return tn_err_set(r->err, TN_INVALID, 0,
                          "option '%s': '%.60s' is not an integer of %" PRId64 "..%" PRId64,
                          option->name, value, option->low, option->high);
    }
    *(int32_t *)member(r, option) = (int32_t)number;
    return TN_OK;
}

tn_rc tn_option_read_size(struct tn_option_reader *r, const struct tn_option_rule *option,
                          const char *value)
{
    int64_t bytes = 0;
    if (!tn_parse_size(tn_bytes_of(value), &bytes)) {
        return tn_option_invalid(r, option->name, value,
                                 "is no size like '128 mb', '64kb' or '1 g'");
    }
    if (bytes < option->low || bytes > option->high) {
        return tn_err_set(r->err, TN_INVALID, 0,
                          "option '%s': '%.60s' is not in %" PRId64 "..%" PRId64 " bytes",
                          option->name, value, option->low, option->high);
    }
    *(int64_t *)member(r, option) = bytes;
    return TN_OK;
}

tn_rc tn_option_read_duration(struct tn_option_reader *r, const struct tn_option_rule *option,
                              const char *value)
{
    int64_t ms = 0;
    if (!tn_parse_duration(tn_bytes_of(value), &ms)) {
        return tn_option_invalid(r, option->name, value,
                                 "is no duration like '10 min', '1h' or '7 d'");
    }
    *(int64_t *)member(r, option) = ms;
    return TN_OK;
}

/* Becomes part of file and folder names. */
tn_rc tn_option_read_name(struct tn_option_reader *r, const struct tn_option_rule *option,
                          const char *value)
{
    size_t size = strlen(value);
    if (size == 0 || size > 100 || strchr(value, '/') || strcmp(value, ".") == 0 ||
        strcmp(value, "..") == 0) {
        return tn_option_invalid(r, option->name, value,
                                 "can't be in a file's name: 1 to 100 bytes, no '/'");
    }
    *(const char **)member(r, option) = value;
    return TN_OK;
}

/* A path, as the user names it. */
tn_rc tn_option_read_script(struct tn_option_reader *r, const struct tn_option_rule *option,
                            const char *value)
{
    if (value[0] == 0) {
        return tn_option_invalid(r, option->name, value, "names no file");
    }
    *(const char **)member(r, option) = value;
    return TN_OK;
}

static bool inside_the_table(const char *path)
{
    for (const char *part = path;;) {
        size_t size = strcspn(part, "/");
        if (size == 0 || (size == 1 && part[0] == '.') ||
            (size == 2 && part[0] == '.' && part[1] == '.')) {
            return false;
        }
        if (part[size] == 0 || part[size + 1] == 0) {
            return true;
        }
        part += size + 1;
    }
}

tn_rc tn_option_read_directory(struct tn_option_reader *r, const struct tn_option_rule *option,
                               const char *value)
{
    size_t size = strlen(value);
    if (size > 200 || !inside_the_table(value)) {
        return tn_option_invalid(r, option->name, value, "is no folder of the table, like 'data'");
    }
    const char *end = value[size - 1] == '/' ? "" : "/";
    const char *path = tn_arena_format(r->arena, "%s%s", value, end);
    if (path == NULL) {
        return tn_err_set(r->err, TN_AGAIN, 0, "options: no room for %zu bytes", size);
    }
    *(const char **)member(r, option) = path;
    return TN_OK;
}

static tn_rc find_column(struct tn_option_reader *r, const struct tn_option_rule *option,
                         struct tn_bytes name, uint32_t *field)
{
    int32_t found = tn_schema_find(r->schema, name);
    int shown = name.size > 60 ? 60 : (int)name.size;
    if (found < 0) {
        return tn_err_set(r->err, TN_INVALID, 0, "option '%s': no column '%.*s'", option->name,
                          shown, (const char *)name.data);
    }
    if (tn_type_nested(r->schema->fields[found].type.kind)) {
        return tn_err_set(r->err, TN_INVALID, 0, "option '%s': column '%.*s' is of type %s",
                          option->name, shown, (const char *)name.data,
                          tn_type_name(r->schema->fields[found].type.kind));
    }
    *field = (uint32_t)found;
    return TN_OK;
}

tn_rc tn_option_read_column(struct tn_option_reader *r, const struct tn_option_rule *option,
                            const char *value)
{
    uint32_t field = 0;
    tn_rc rc = find_column(r, option, tn_bytes_of(value), &field);
    if (rc == TN_OK) {
        *(int32_t *)member(r, option) = (int32_t)field;
    }
    return rc;
}

/* Commas, and no blanks around them: Java takes a blank for a part of the name. */
tn_rc tn_option_read_columns(struct tn_option_reader *r, const struct tn_option_rule *option,
                             const char *value)
{
    void *block = NULL;
    size_t count = 1;
    for (const char *c = value; *c; c++) {
        count += *c == ',';
    }
    tn_rc rc = tn_arena_need(r->arena, count * sizeof(uint32_t), option->name, &block, r->err);
    struct tn_columns columns = {block, 0};
    const char *start = value;
    while (rc == TN_OK && columns.count < count) {
        uint32_t *index = block;
        size_t size = strcspn(start, ",");
        struct tn_bytes name = {(const unsigned char *)start, size};
        rc = find_column(r, option, name, &index[columns.count]);
        if (rc == TN_OK && tn_columns_have(columns, index[columns.count])) {
            return tn_option_invalid(r, option->name, value, "names a column twice");
        }
        columns.count++;
        start += size + (start[size] == ',');
    }
    if (rc == TN_OK) {
        *(struct tn_columns *)member(r, option) = columns;
    }
    return rc;
}

tn_rc tn_option_read_order(struct tn_option_reader *r, const struct tn_option_rule *option,
                           const char *value)
{
    if (!tn_option_one_of(value, "ascending|descending")) {
        return tn_option_invalid(r, option->name, value, "is neither ascending nor descending");
    }
    r->options->sequence_descending = tn_option_is(value, "descending");
    return TN_OK;
}

tn_rc tn_option_read_function(struct tn_option_reader *r, const struct tn_option_rule *option,
                              const char *value)
{
    if (!tn_option_one_of(value, "default|mod")) {
        return tn_option_unsupported(r, option->name, value,
                                     "is unknown to this build; default and mod are");
    }
    r->options->bucket_function = tn_option_is(value, "mod") ? TN_BUCKET_MOD : TN_BUCKET_HASH;
    return TN_OK;
}

/* Source: Paimon, AvroFileFormat.createCodecFactory. `none` is our own word for `null`. */
tn_rc tn_option_read_codec(struct tn_option_reader *r, const struct tn_option_rule *option,
                           const char *value)
{
    static const struct {
        const char *name;
        enum tn_codec_id id;
    } codecs[] = {{"zstd", TN_CODEC_ID_ZSTANDARD},
                  {"zstandard", TN_CODEC_ID_ZSTANDARD},
                  {"null", TN_CODEC_ID_NULL},
                  {"none", TN_CODEC_ID_NULL},
                  {"deflate", TN_CODEC_ID_DEFLATE}};
    for (size_t i = 0; i < TN_ENTRIES(codecs); i++) {
        if (tn_option_is(value, codecs[i].name)) {
            *(enum tn_codec_id *)member(r, option) = codecs[i].id;
            return TN_OK;
        }
    }
    return tn_option_unsupported(r, option->name, value,
                                 "is not written by this build; zstd, deflate and null are");
}

/* The caller of CREATE puts avro where nothing stands. */
tn_rc tn_option_read_format(struct tn_option_reader *r, const struct tn_option_rule *option,
                            const char *value)
{
    bool given = tn_schema_option(r->schema, option->name) != NULL;
    if (tn_option_is(value, "avro") || (!given && r->use == TN_OPTIONS_CREATE)) {
        return TN_OK;
    }
    return tn_option_unsupported(r, option->name, value,
                                 given ? "is not written by this build; avro is"
                                       : "(the default) is not written by this build; avro is");
}

/* ---- statistics ---- */

struct stats {
    enum tn_stats_mode mode;
    uint32_t length;
};

/* none, counts, full, truncate(16). */
static bool parse_stats(const char *value, struct stats *stats)
{
    static const char *const modes[] = {"none", "counts", "full"};
    static const enum tn_stats_mode ids[] = {TN_STATS_NONE, TN_STATS_COUNTS, TN_STATS_FULL};
    for (size_t i = 0; i < TN_ENTRIES(modes); i++) {
        if (tn_option_is(value, modes[i])) {
            *stats = (struct stats){ids[i], 0};
            return true;
        }
    }
    size_t head = strlen("truncate(");
    struct tn_bytes rest = tn_bytes_of(value);
    int64_t length = 0;
    if (rest.size <= head ||
        !tn_option_same_word((struct tn_bytes){rest.data, head}, "truncate(")) {
        return false;
    }
    rest = (struct tn_bytes){rest.data + head, rest.size - head};
    if (!tn_option_digits(&rest, &length) || !tn_option_same_word(rest, ")") || length < 1 ||
        length > INT32_MAX) {
        return false;
    }
    *stats = (struct stats){TN_STATS_TRUNCATE, (uint32_t)length};
    return true;
}

static tn_rc bad_stats(const struct tn_option_reader *r, const char *name, const char *value)
{
    return tn_option_invalid(r, name, value, "is none of none, counts, truncate(n), full");
}

static tn_rc take_stats(struct tn_option_reader *r)
{
    void *modes = NULL;
    void *lengths = NULL;
    uint32_t n = r->schema->field_count;
    tn_rc rc =
        tn_arena_need(r->arena, n * sizeof(enum tn_stats_mode) + 1, "options", &modes, r->err);
    rc = rc != TN_OK
             ? rc
             : tn_arena_need(r->arena, n * sizeof(uint32_t) + 1, "options", &lengths, r->err);
    r->options->stats_modes = modes;
    r->options->stats_lengths = lengths;
    return rc;
}

tn_rc tn_option_read_stats(struct tn_option_reader *r, const struct tn_option_rule *option,
                           const char *value)
{
    struct stats stats = {TN_STATS_NONE, 0};
    tn_rc rc = take_stats(r);
    if (rc == TN_OK && !parse_stats(value, &stats)) {
        return bad_stats(r, option->name, value);
    }
    for (uint32_t i = 0; i < r->schema->field_count && rc == TN_OK; i++) {
        r->options->stats_modes[i] = stats.mode;
        r->options->stats_lengths[i] = stats.length;
    }
    return rc;
}

tn_rc tn_option_read_field_stats(struct tn_option_reader *r, uint32_t field,
                                 const struct tn_option *option)
{
    struct stats stats;
    if (!parse_stats(option->value, &stats)) {
        return bad_stats(r, option->key, option->value);
    }
    r->options->stats_modes[field] = stats.mode;
    r->options->stats_lengths[field] = stats.length;
    return TN_OK;
}

/* Comes behind metadata.stats-mode in the list. -1: all columns. */
tn_rc tn_option_read_stats_columns(struct tn_option_reader *r, const struct tn_option_rule *option,
                                   const char *value)
{
    int64_t count = 0;
    if (!tn_option_integer(value, &count) || count < -1) {
        return tn_option_invalid(r, option->name, value, "is not an integer from -1");
    }
    for (int64_t i = count; count >= 0 && i < r->schema->field_count; i++) {
        r->options->stats_modes[i] = TN_STATS_NONE;
        r->options->stats_lengths[i] = 0;
    }
    return TN_OK;
}

/* ---- buckets, refusals ---- */

tn_rc tn_option_read_bucket(struct tn_option_reader *r, const struct tn_option_rule *option,
                            const char *value)
{
    int64_t count = 0;
    bool keyed = r->schema->primary_keys.count > 0;
    if (!tn_option_integer(value, &count) || count < -2 || count == 0 || count > INT32_MAX) {
        return tn_option_invalid(r, option->name, value, "is neither a number of buckets nor -1");
    }
    if (keyed && count == -1) {
        return tn_option_unsupported(
            r, option->name, value,
            "means buckets that grow with the rows: not supported by this build for "
            "tables with a primary key; give a number");
    }
    if (count == -2) {
        return tn_option_unsupported(r, option->name, value,
                                     "postpones buckets: not supported by this build");
    }
    r->options->bucket = (int32_t)count;
    return TN_OK;
}

tn_rc tn_option_refuse(struct tn_option_reader *r, const struct tn_option_rule *option,
                       const char *value)
{
    if (option->fine && tn_option_one_of(value, option->fine)) {
        return TN_OK;
    }
    return tn_option_unsupported(r, option->name, value, "is not supported by this build");
}
