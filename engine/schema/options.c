#include "schema/options.h"

#include <inttypes.h>
#include <stddef.h>

#include "schema/decoder.h"

struct reader {
    const struct tn_schema *schema;
    enum tn_options_use use;
    struct tn_arena *arena;
    struct tn_options *options;
    struct tn_err *err;
};

enum when {
    WRITING,       /* a reader needs it not */
    READING,       /* and writing */
    KEYED_READING, /* the same, and tables without a primary key take no notice */
};

/* `read` NULL: harmless. Otherwise it is called with the table's value, or with the default. */
struct option {
    const char *name; /* `lookup.*`: all that begin so */
    const char *type;
    const char *fallback;
    enum when when;
    tn_rc (*read)(struct reader *r, const struct option *option, const char *value);
    uint32_t offset; /* of the member of tn_options */
    int64_t low;     /* of numbers, sizes in bytes */
    int64_t high;
    const char *fine; /* refused options: the values that are not, "none|" with the empty one */
    const char *help;
};

/* ---- texts ---- */

static unsigned char lower(unsigned char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c + 32) : c;
}

/* Paimon compares words of options in any case. */
static bool same_word(struct tn_bytes a, const char *b)
{
    for (size_t i = 0; i < a.size; i++) {
        if (b[i] == 0 || lower(a.data[i]) != lower((unsigned char)b[i])) {
            return false;
        }
    }
    return b[a.size] == 0;
}

static bool is(const char *value, const char *word)
{
    return same_word(tn_bytes_of(value), word);
}

/* True when `value` is one of the words between bars. */
static bool one_of(const char *value, const char *words)
{
    for (const char *start = words; start;) {
        size_t size = strcspn(start, "|");
        char word[64] = {0};
        memcpy(word, start, size < sizeof(word) ? size : sizeof(word) - 1);
        if (is(value, word)) {
            return true;
        }
        start = start[size] ? start + size + 1 : NULL;
    }
    return false;
}

static struct tn_bytes trim(struct tn_bytes text)
{
    while (text.size > 0 && text.data[0] <= ' ') {
        text.data++;
        text.size--;
    }
    while (text.size > 0 && text.data[text.size - 1] <= ' ') {
        text.size--;
    }
    return text;
}

/* Takes the digits in front of `text`; false when there are none or too many. */
static bool take_digits(struct tn_bytes *text, int64_t *value)
{
    size_t count = 0;
    int64_t number = 0;
    for (; count < text->size && text->data[count] >= '0' && text->data[count] <= '9'; count++) {
        int64_t digit = text->data[count] - '0';
        if (number > (INT64_MAX - digit) / 10) {
            return false;
        }
        number = number * 10 + digit;
    }
    text->data += count;
    text->size -= count;
    *value = number;
    return count > 0;
}

struct unit {
    const char *name;
    int64_t scale; /* > 0: times; < 0: divided by */
};

/* Source: Paimon, MemorySize.MemoryUnit. */
static const struct unit size_units[] = {
    {"", 1},
    {"b", 1},
    {"bytes", 1},
    {"k", 1024},
    {"kb", 1024},
    {"kibibytes", 1024},
    {"m", 1024 * 1024},
    {"mb", 1024 * 1024},
    {"mebibytes", 1024 * 1024},
    {"g", 1024 * 1024 * 1024},
    {"gb", 1024 * 1024 * 1024},
    {"gibibytes", 1024 * 1024 * 1024},
    {"t", INT64_C(1) << 40},
    {"tb", INT64_C(1) << 40},
    {"tebibytes", INT64_C(1) << 40},
};

/* Source: Paimon, TimeUtils.TimeUnit. */
static const struct unit duration_units[] = {
    {"", 1},
    {"d", 86400000},
    {"day", 86400000},
    {"days", 86400000},
    {"h", 3600000},
    {"hour", 3600000},
    {"hours", 3600000},
    {"m", 60000},
    {"min", 60000},
    {"minute", 60000},
    {"minutes", 60000},
    {"s", 1000},
    {"sec", 1000},
    {"secs", 1000},
    {"second", 1000},
    {"seconds", 1000},
    {"ms", 1},
    {"milli", 1},
    {"millis", 1},
    {"millisecond", 1},
    {"milliseconds", 1},
    {"\xc2\xb5s", -1000},
    {"micro", -1000},
    {"micros", -1000},
    {"microsecond", -1000},
    {"microseconds", -1000},
    {"ns", -1000000},
    {"nano", -1000000},
    {"nanos", -1000000},
    {"nanosecond", -1000000},
    {"nanoseconds", -1000000},
};

#define ENTRIES(array) (sizeof(array) / sizeof((array)[0]))

static bool scale_number(int64_t number, int64_t scale, int64_t *value)
{
    if (scale < 0) {
        *value = number / -scale;
        return true;
    }
    if (scale == 0 || number > INT64_MAX / scale) {
        return false;
    }
    *value = number * scale;
    return true;
}

static bool parse_scaled(struct tn_bytes text, const struct unit *units, size_t count,
                         int64_t *value)
{
    int64_t number = 0;
    struct tn_bytes rest = trim(text);
    if (!take_digits(&rest, &number)) {
        return false;
    }
    rest = trim(rest);
    for (size_t i = 0; i < count; i++) {
        if (same_word(rest, units[i].name)) {
            return scale_number(number, units[i].scale, value);
        }
    }
    return false;
}

bool tn_parse_size(struct tn_bytes text, int64_t *bytes)
{
    return parse_scaled(text, size_units, ENTRIES(size_units), bytes);
}

bool tn_parse_duration(struct tn_bytes text, int64_t *ms)
{
    return parse_scaled(text, duration_units, ENTRIES(duration_units), ms);
}

static bool parse_integer(const char *value, int64_t *number)
{
    struct tn_bytes rest = tn_bytes_of(value);
    bool negative = value[0] == '-';
    rest.data += negative;
    rest.size -= negative;
    if (!take_digits(&rest, number) || rest.size > 0) {
        return false;
    }
    *number = negative ? -*number : *number;
    return true;
}

/* ---- errors ---- */

static tn_rc invalid(const struct reader *r, const char *name, const char *value, const char *why)
{
    return tn_err_set(r->err, TN_INVALID, 0, "option '%s': '%.60s' %s", name, value, why);
}

static tn_rc unsupported(const struct reader *r, const char *name, const char *value,
                         const char *why)
{
    return tn_err_set(r->err, TN_UNSUPPORTED, 0, "option '%s': '%.60s' %s", name, value, why);
}

/* ---- readers of values ---- */

static void *member(const struct reader *r, const struct option *option)
{
    return (unsigned char *)r->options + option->offset;
}

static tn_rc read_switch(struct reader *r, const struct option *option, const char *value)
{
    if (!one_of(value, "true|false")) {
        return invalid(r, option->name, value, "is neither true nor false");
    }
    *(bool *)member(r, option) = is(value, "true");
    return TN_OK;
}

static tn_rc read_integer(struct reader *r, const struct option *option, const char *value)
{
    int64_t number = 0;
    if (!parse_integer(value, &number) || number < option->low || number > option->high) {
        return tn_err_set(r->err, TN_INVALID, 0,
                          "option '%s': '%.60s' is not an integer of %" PRId64 "..%" PRId64,
                          option->name, value, option->low, option->high);
    }
    *(int32_t *)member(r, option) = (int32_t)number;
    return TN_OK;
}

static tn_rc read_size(struct reader *r, const struct option *option, const char *value)
{
    int64_t bytes = 0;
    if (!tn_parse_size(tn_bytes_of(value), &bytes)) {
        return invalid(r, option->name, value, "is no size like '128 mb', '64kb' or '1 g'");
    }
    if (bytes < option->low || bytes > option->high) {
        return tn_err_set(r->err, TN_INVALID, 0,
                          "option '%s': '%.60s' is not in %" PRId64 "..%" PRId64 " bytes",
                          option->name, value, option->low, option->high);
    }
    *(int64_t *)member(r, option) = bytes;
    return TN_OK;
}

static tn_rc read_duration(struct reader *r, const struct option *option, const char *value)
{
    int64_t ms = 0;
    if (!tn_parse_duration(tn_bytes_of(value), &ms)) {
        return invalid(r, option->name, value, "is no duration like '10 min', '1h' or '7 d'");
    }
    *(int64_t *)member(r, option) = ms;
    return TN_OK;
}

/* Becomes part of file and folder names. */
static tn_rc read_name(struct reader *r, const struct option *option, const char *value)
{
    size_t size = strlen(value);
    if (size == 0 || size > 100 || strchr(value, '/') || strcmp(value, ".") == 0 ||
        strcmp(value, "..") == 0) {
        return invalid(r, option->name, value, "can't be in a file's name: 1 to 100 bytes, no '/'");
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

static tn_rc read_directory(struct reader *r, const struct option *option, const char *value)
{
    size_t size = strlen(value);
    if (size > 200 || !inside_the_table(value)) {
        return invalid(r, option->name, value, "is no folder of the table, like 'data'");
    }
    const char *end = value[size - 1] == '/' ? "" : "/";
    const char *path = tn_arena_format(r->arena, "%s%s", value, end);
    if (path == NULL) {
        return tn_err_set(r->err, TN_AGAIN, 0, "options: no room for %zu bytes", size);
    }
    *(const char **)member(r, option) = path;
    return TN_OK;
}

static tn_rc find_column(struct reader *r, const struct option *option, struct tn_bytes name,
                         uint32_t *field)
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

static tn_rc read_column(struct reader *r, const struct option *option, const char *value)
{
    uint32_t field = 0;
    tn_rc rc = find_column(r, option, tn_bytes_of(value), &field);
    if (rc == TN_OK) {
        *(int32_t *)member(r, option) = (int32_t)field;
    }
    return rc;
}

/* Commas, and no blanks around them: Java takes a blank for a part of the name. */
static tn_rc read_columns(struct reader *r, const struct option *option, const char *value)
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
            return invalid(r, option->name, value, "names a column twice");
        }
        columns.count++;
        start += size + (start[size] == ',');
    }
    if (rc == TN_OK) {
        *(struct tn_columns *)member(r, option) = columns;
    }
    return rc;
}

static tn_rc read_order(struct reader *r, const struct option *option, const char *value)
{
    if (!one_of(value, "ascending|descending")) {
        return invalid(r, option->name, value, "is neither ascending nor descending");
    }
    r->options->sequence_descending = is(value, "descending");
    return TN_OK;
}

static tn_rc read_function(struct reader *r, const struct option *option, const char *value)
{
    if (!one_of(value, "default|mod")) {
        return unsupported(r, option->name, value, "is unknown to this build; default and mod are");
    }
    r->options->bucket_function = is(value, "mod") ? TN_BUCKET_MOD : TN_BUCKET_HASH;
    return TN_OK;
}

/* Source: Paimon, AvroFileFormat.createCodecFactory. `none` is our own word for `null`. */
static tn_rc read_codec(struct reader *r, const struct option *option, const char *value)
{
    static const struct {
        const char *name;
        enum tn_codec_id id;
    } codecs[] = {{"zstd", TN_CODEC_ID_ZSTANDARD},
                  {"zstandard", TN_CODEC_ID_ZSTANDARD},
                  {"null", TN_CODEC_ID_NULL},
                  {"none", TN_CODEC_ID_NULL},
                  {"deflate", TN_CODEC_ID_DEFLATE}};
    for (size_t i = 0; i < ENTRIES(codecs); i++) {
        if (is(value, codecs[i].name)) {
            *(enum tn_codec_id *)member(r, option) = codecs[i].id;
            return TN_OK;
        }
    }
    return unsupported(r, option->name, value,
                       "is not written by this build; zstd, deflate and null are");
}

/* The caller of CREATE puts avro where nothing stands. */
static tn_rc read_format(struct reader *r, const struct option *option, const char *value)
{
    bool given = tn_schema_option(r->schema, option->name) != NULL;
    if (is(value, "avro") || (!given && r->use == TN_OPTIONS_CREATE)) {
        return TN_OK;
    }
    return unsupported(r, option->name, value,
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
    for (size_t i = 0; i < ENTRIES(modes); i++) {
        if (is(value, modes[i])) {
            *stats = (struct stats){ids[i], 0};
            return true;
        }
    }
    size_t head = strlen("truncate(");
    struct tn_bytes rest = tn_bytes_of(value);
    int64_t length = 0;
    if (rest.size <= head || !same_word((struct tn_bytes){rest.data, head}, "truncate(")) {
        return false;
    }
    rest = (struct tn_bytes){rest.data + head, rest.size - head};
    if (!take_digits(&rest, &length) || !same_word(rest, ")") || length < 1 || length > INT32_MAX) {
        return false;
    }
    *stats = (struct stats){TN_STATS_TRUNCATE, (uint32_t)length};
    return true;
}

static tn_rc bad_stats(const struct reader *r, const char *name, const char *value)
{
    return invalid(r, name, value, "is none of none, counts, truncate(n), full");
}

static tn_rc take_stats(struct reader *r)
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

static tn_rc read_stats(struct reader *r, const struct option *option, const char *value)
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

/* Comes behind metadata.stats-mode in the list. -1: all columns. */
static tn_rc read_stats_columns(struct reader *r, const struct option *option, const char *value)
{
    int64_t count = 0;
    if (!parse_integer(value, &count) || count < -1) {
        return invalid(r, option->name, value, "is not an integer from -1");
    }
    for (int64_t i = count; count >= 0 && i < r->schema->field_count; i++) {
        r->options->stats_modes[i] = TN_STATS_NONE;
        r->options->stats_lengths[i] = 0;
    }
    return TN_OK;
}

/* ---- buckets, refusals ---- */

static tn_rc read_bucket(struct reader *r, const struct option *option, const char *value)
{
    int64_t count = 0;
    bool keyed = r->schema->primary_keys.count > 0;
    if (!parse_integer(value, &count) || count < -2 || count == 0 || count > INT32_MAX) {
        return invalid(r, option->name, value, "is neither a number of buckets nor -1");
    }
    if (keyed && count == -1) {
        return unsupported(r, option->name, value,
                           "means buckets that grow with the rows: not supported by this build for "
                           "tables with a primary key; give a number");
    }
    if (count == -2) {
        return unsupported(r, option->name, value,
                           "postpones buckets: not supported by this build");
    }
    r->options->bucket = (int32_t)count;
    return TN_OK;
}

static tn_rc refuse(struct reader *r, const struct option *option, const char *value)
{
    if (option->fine && one_of(value, option->fine)) {
        return TN_OK;
    }
    return unsupported(r, option->name, value, "is not supported by this build");
}

/* ---- the list ---- */

#define AT(name) (uint32_t) offsetof(struct tn_options, name)
#define SWITCH(name, at, fallback, help)                                          \
    {                                                                             \
        name, "boolean", fallback, WRITING, read_switch, AT(at), 0, 0, NULL, help \
    }
#define INTEGER(name, at, fallback, low, high, help)                                    \
    {                                                                                   \
        name, "integer", fallback, WRITING, read_integer, AT(at), low, high, NULL, help \
    }
#define SIZE(name, at, fallback, low, help)                                            \
    {                                                                                  \
        name, "size", fallback, WRITING, read_size, AT(at), low, INT64_MAX, NULL, help \
    }
#define DURATION(name, at, fallback, help)                                                   \
    {                                                                                        \
        name, "duration", fallback, WRITING, read_duration, AT(at), 0, INT64_MAX, NULL, help \
    }
#define SPECIAL(name, type, fallback, when, read, at, help)        \
    {                                                              \
        name, type, fallback, when, read, AT(at), 0, 0, NULL, help \
    }
#define REFUSED(name, type, fallback, when, fine, help)         \
    {                                                           \
        name, type, fallback, when, refuse, 0, 0, 0, fine, help \
    }
#define HARMLESS(name, type, fallback, help)                     \
    {                                                            \
        name, type, fallback, WRITING, NULL, 0, 0, 0, NULL, help \
    }

/* Defaults are Paimon's 1.3.1. Source: Paimon, CoreOptions; format spec, 14. */
static const struct option list[] = {
    /* obeyed */
    SPECIAL("bucket", "integer", "-1", READING, read_bucket, bucket,
            "number of buckets; -1: none (tables without a primary key)"),
    SPECIAL("bucket-key", "columns", NULL, READING, read_columns, bucket_key,
            "columns that choose the bucket; default: the primary key less the partition keys"),
    SPECIAL("bucket-function.type", "default|mod", "default", READING, read_function,
            bucket_function, "mod: the value of one INT or BIGINT column chooses"),
    SPECIAL("sequence.field", "columns", NULL, READING, read_columns, sequence_fields,
            "of two rows of one key the one with the larger value counts, not the later one"),
    SPECIAL("sequence.field.sort-order", "ascending|descending", "ascending", READING, read_order,
            sequence_descending, "descending: the one with the smaller value counts"),
    SPECIAL("ignore-delete", "boolean", "false", READING, read_switch, ignore_delete,
            "deletes and rows before an update are dropped"),
    SWITCH("ignore-update-before", ignore_update_before, "false",
           "rows before an update (-U) are dropped"),
    SPECIAL("rowkind.field", "column", NULL, WRITING, read_column, rowkind_field,
            "column that holds +I, -U, +U or -D"),
    SWITCH("write-only", write_only, "false", "never compact, never expire: another job does"),
    SWITCH("data-file.thin-mode", thin_mode, "false", "keys are not stored twice"),
    SPECIAL("data-file.prefix", "text", "data-", WRITING, read_name, data_file_prefix,
            "how names of data files begin"),
    SPECIAL("data-file.path-directory", "folder", NULL, READING, read_directory, path_directory,
            "folder in the table's that holds partitions and buckets"),
    SPECIAL("partition.default-name", "text", "__DEFAULT_PARTITION__", READING, read_name,
            partition_default_name, "folder of NULL and blank partition values"),
    SPECIAL("partition.legacy-name", "boolean", "true", READING, read_switch, partition_legacy_name,
            "true: a DATE's folder is its number of days"),
    SWITCH("file.suffix.include.compression", suffix_compression, "false",
           "names of data files say their compression"),
    SPECIAL("file.format", "text", "parquet", WRITING, read_format, codec,
            "avro is what this build writes, and what create puts here"),
    SPECIAL("file.compression", "zstd|deflate|null", "zstd", WRITING, read_codec, codec,
            "of data files"),
    INTEGER("file.compression.zstd-level", zstd_level, "1", 1, 22, "1 is fast, 22 is small"),
    SPECIAL("manifest.compression", "zstd|deflate|null", "zstd", WRITING, read_codec,
            manifest_codec, "of manifests and their lists"),
    SIZE("target-file-size", target_file_size, NULL, 1,
         "a data file that has it is closed; default 128 mb, without a primary key 256 mb"),
    SIZE("write-buffer-size", write_buffer_size, "256 mb", 1,
         "a hint only: the memory of the board decides"),
    SPECIAL("metadata.stats-mode", "none|counts|truncate(n)|full", "truncate(16)", WRITING,
            read_stats, stats_modes,
            "what manifests tell of each column; also fields.COLUMN.stats-mode"),
    SPECIAL("metadata.stats-keep-first-n-columns", "integer", "-1", WRITING, read_stats_columns,
            stats_modes, "columns behind the first n have no statistics; -1: all have"),
    SWITCH("metadata.stats-dense-store", stats_dense, "true",
           "columns without statistics take no place"),
    SIZE("manifest.target-file-size", manifest_target_size, "8 mb", 1, "size of merged manifests"),
    INTEGER("manifest.merge-min-count", manifest_merge_min, "30", 1, INT32_MAX,
            "so many small manifests are merged"),
    SIZE("manifest.full-compaction-threshold-size", manifest_full_threshold, "16 mb", 0,
         "changed manifests of that size are merged with all others"),
    INTEGER("num-sorted-run.compaction-trigger", compaction_trigger, "5", 1, INT32_MAX - 3,
            "so many sorted runs in a bucket start a compaction"),
    INTEGER("num-sorted-run.stop-trigger", stop_trigger, NULL, 1, INT32_MAX,
            "so many sorted runs make writing wait; default: the compaction trigger + 3"),
    INTEGER("num-levels", num_levels, NULL, 2, INT32_MAX,
            "levels of a bucket; default: the compaction trigger + 1"),
    INTEGER("compaction.max-size-amplification-percent", max_size_amplification, "200", 0,
            INT32_MAX, "newer runs of that part of the oldest one's size: all are compacted"),
    INTEGER("compaction.size-ratio", size_ratio, "1", 0, INT32_MAX,
            "percent that a run may be larger than those before it, to be taken along"),
    DURATION("compaction.optimization-interval", optimization_interval_ms, NULL,
             "all of a bucket is compacted that often"),
    SIZE("compaction.total-size-threshold", total_size_threshold, NULL, 0,
         "a bucket that is smaller is always compacted as a whole"),
    SIZE("compaction.incremental-size-threshold", incremental_size_threshold, NULL, 0,
         "newer runs of that size: all are compacted"),
    INTEGER("compaction.min.file-num", min_file_num, "5", 1, INT32_MAX,
            "tables without a primary key: so many small files are compacted"),
    SWITCH("commit.force-compact", force_compact, "false", "a commit waits for its compaction"),
    SWITCH("compaction.force-up-level-0", force_up_level0, "false",
           "every compaction takes all of level 0"),
    SWITCH("compaction.force-rewrite-all-files", force_rewrite, "false",
           "a full compaction rewrites what is in place, too"),
    INTEGER("snapshot.num-retained.min", snapshot_retained_min, "10", 1, INT32_MAX,
            "snapshots that are kept however old"),
    INTEGER("snapshot.num-retained.max", snapshot_retained_max, "2147483647", 1, INT32_MAX,
            "snapshots that are kept however young"),
    DURATION("snapshot.time-retained", snapshot_time_retained_ms, "1 h", "age that is kept"),
    INTEGER("snapshot.expire.limit", snapshot_expire_limit, "50", 1, INT32_MAX,
            "snapshots that expire at a time"),
    SWITCH("snapshot.clean-empty-directories", clean_empty_directories, "false",
           "folders that expiry empties are removed"),
    INTEGER("commit.max-retries", commit_max_retries, "10", 0, INT32_MAX,
            "how often a commit that lost against another one tries again"),

    /* refused, unless at a value that changes nothing */
    REFUSED("merge-engine", "text", "deduplicate", KEYED_READING, "deduplicate",
            "how rows of one key become one"),
    REFUSED("deletion-vectors.enabled", "boolean", "false", READING, "false",
            "rows are deleted by position"),
    REFUSED("data-evolution.enabled", "boolean", "false", READING, "false",
            "files hold some of the columns"),
    REFUSED("type", "text", "table", READING, "table", "kind of the table"),
    REFUSED("branch", "text", "main", READING, "main", "branch that is meant"),
    REFUSED("scan.fallback-branch", "text", NULL, READING, NULL,
            "branch that has the partitions this one lacks"),
    REFUSED("changelog-producer", "text", "none", WRITING, "none",
            "who writes changelog files, and when"),
    REFUSED("row-tracking.enabled", "boolean", "false", WRITING, "false", "rows have ids"),
    REFUSED("file.format.per.level", "map", NULL, WRITING, "", "a file format for each level"),
    REFUSED("data-file.external-paths", "text", NULL, WRITING, "", "data files outside the table"),
    REFUSED("data-file.external-paths.strategy", "text", "none", WRITING, "none",
            "data files outside the table"),
    REFUSED("manifest.format", "text", "avro", WRITING, "avro", "file format of manifests"),
    REFUSED("record-level.expire-time", "duration", NULL, WRITING, NULL, "rows expire"),
    REFUSED("partition.expiration-time", "duration", NULL, WRITING, NULL, "partitions expire"),
    REFUSED("tag.automatic-creation", "text", "none", WRITING, "none", "commits make tags"),
    REFUSED("commit.callbacks", "text", NULL, WRITING, "", "Java classes that commits call"),
    REFUSED("metadata.iceberg.storage", "text", "disabled", WRITING, "disabled",
            "commits write Iceberg's metadata as well"),
    REFUSED("clustering.incremental", "boolean", "false", WRITING, "false",
            "compaction sorts by columns"),
    REFUSED("sequence.snapshot-ordering", "boolean", "false", READING, "false",
            "commits set sequence numbers"),
    REFUSED("write.sequence-number-init-mode", "text", "scan", WRITING, "scan",
            "where sequence numbers go on from"),
    REFUSED("pk-clustering-override", "boolean", "false", READING, "false",
            "files are not sorted by key"),
    REFUSED("primary-key.nullable", "boolean", "false", WRITING, "false", "keys may be NULL"),
    REFUSED("blob-field", "columns", NULL, WRITING, "", "columns in files of their own"),
    REFUSED("vector-field", "columns", NULL, WRITING, "", "columns in files of their own"),
    REFUSED("chain-table.enabled", "boolean", "false", READING, "false",
            "branches make up one table"),
    REFUSED("variant.shreddingSchema", "text", NULL, WRITING, "", "VARIANT in columns"),
    REFUSED("manifest-sort.enabled", "boolean", "false", WRITING, "false",
            "manifests are sorted by partition"),

    /* harmless: engines, catalogs, streams, and what goes with an option that is refused */
    HARMLESS("aggregation.remove-record-on-delete", "boolean", "false", "merge engine aggregation"),
    HARMLESS("alter-column-null-to-not-null.disabled", "boolean", "true", "altering in engines"),
    HARMLESS("async-file-write", "boolean", "true", "writing in Java"),
    HARMLESS("auto-create", "boolean", "false", "engines"),
    HARMLESS("avro.*", "text", NULL, "avro files that Java writes"),
    HARMLESS("batch-scan-mode", "text", "none", "internal to engines"),
    HARMLESS("bucket-append-ordered", "boolean", "true", "order of rows in engines"),
    HARMLESS("cache-page-size", "size", "64 kb", "memory of Java"),
    HARMLESS("changelog-file.*", "text", NULL, "changelog files"),
    HARMLESS("changelog-producer.*", "text", NULL, "changelog files"),
    HARMLESS("changelog.num-retained.max", "integer", NULL,
             "changelogs that outlive snapshots: refused above snapshot.num-retained.max"),
    HARMLESS("changelog.num-retained.min", "integer", NULL,
             "changelogs that outlive snapshots: refused above snapshot.num-retained.min"),
    HARMLESS("changelog.time-retained", "duration", NULL,
             "changelogs that outlive snapshots: refused above snapshot.time-retained"),
    HARMLESS("clustering.*", "text", NULL, "sort compaction"),
    HARMLESS("commit.callback.*", "text", NULL, "commit.callbacks"),
    HARMLESS("commit.force-create-snapshot", "boolean", "false", "empty commits of engines"),
    HARMLESS("commit.max-retry-wait", "duration", "10 s", "waits between retries in Java"),
    HARMLESS("commit.min-retry-wait", "duration", "10 ms", "waits between retries in Java"),
    HARMLESS("commit.strict-mode.last-safe-snapshot", "integer", NULL, "commits of engines"),
    HARMLESS("commit.timeout", "duration", NULL, "retries in Java"),
    HARMLESS("commit.user-prefix", "text", NULL, "names of Java's writers"),
    HARMLESS("compaction.delete-ratio-threshold", "number", "0.2", "deletion vectors"),
    HARMLESS("compaction.max.file-num", "integer", NULL, "older Paimon's append tables"),
    HARMLESS("compaction.offpeak-ratio", "integer", "0", "compaction by the hour in Java"),
    HARMLESS("compaction.offpeak.end.hour", "integer", "-1", "compaction by the hour in Java"),
    HARMLESS("compaction.offpeak.start.hour", "integer", "-1", "compaction by the hour in Java"),
    HARMLESS("consumer-id", "text", NULL, "streaming reads"),
    HARMLESS("consumer.*", "text", NULL, "streaming reads"),
    HARMLESS("continuous.discovery-interval", "duration", "10 s", "streaming reads"),
    HARMLESS("cross-partition-upsert.*", "text", NULL, "dynamic buckets"),
    HARMLESS("data-file.external-paths.specific-fs", "text", NULL, "data-file.external-paths"),
    HARMLESS("delete-file.thread-num", "integer", NULL, "threads of Java"),
    HARMLESS("delete.force-produce-changelog", "boolean", "false", "DELETE of engines"),
    HARMLESS("deletion-vector.index-file.target-size", "size", "2 mb", "deletion vectors"),
    HARMLESS("deletion-vectors.bitmap64", "boolean", "false", "deletion vectors"),
    HARMLESS("disable-explicit-type-casting", "boolean", "false", "altering in engines"),
    HARMLESS("dynamic-bucket.*", "text", NULL, "dynamic buckets"),
    HARMLESS("dynamic-partition-overwrite", "boolean", "true", "INSERT OVERWRITE of engines"),
    HARMLESS("end-input.check-partition-expire", "boolean", "false", "partition.expiration-time"),
    HARMLESS("fields.default-aggregate-function", "text", NULL, "merge engine aggregation"),
    HARMLESS("file-index.in-manifest-threshold", "size", "500 bytes", "file indexes"),
    HARMLESS("file-index.read.enabled", "boolean", "true", "file indexes"),
    HARMLESS("file-operation.thread-num", "integer", NULL, "threads of Java"),
    HARMLESS("file-reader-async-threshold", "size", "10 mb", "reading in Java"),
    HARMLESS("file.block-size", "size", NULL, "parquet and ORC"),
    HARMLESS("file.compression.per.level", "map", NULL, "a compression for each level in Java"),
    HARMLESS("force-lookup", "boolean", "false", "compaction in Java"),
    HARMLESS("full-compaction.delta-commits", "integer", NULL, "compaction in engines"),
    HARMLESS("incremental-*", "text", NULL, "incremental reads of engines"),
    HARMLESS("index-file-in-data-file-dir", "boolean", "false", "index files"),
    HARMLESS("local-merge-buffer-size", "size", NULL, "writing in Flink"),
    HARMLESS("local-sort.max-num-file-handles", "integer", "128", "sorting in Java"),
    HARMLESS("log.*", "text", NULL, "log systems"),
    HARMLESS("lookup*", "text", NULL, "lookups in Java"),
    HARMLESS("manifest.delete-file-drop-stats", "boolean", "false", "manifests that Java writes"),
    HARMLESS("materialized-table.*", "text", NULL, "materialized tables of Flink"),
    HARMLESS("metadata.iceberg.*", "text", NULL, "metadata.iceberg.storage"),
    HARMLESS("metadata.stats-mode.per.level", "map", NULL, "statistics for each level in Java"),
    HARMLESS("metastore.*", "text", NULL, "catalogs"),
    HARMLESS("orc.*", "text", NULL, "ORC files"),
    HARMLESS("owner", "text", NULL, "catalogs"),
    HARMLESS("page-size", "size", "64 kb", "memory of Java"),
    HARMLESS("parquet.*", "text", NULL, "parquet files"),
    HARMLESS("partial-update.*", "text", NULL, "merge engine partial-update"),
    HARMLESS("partition", "columns", NULL, "create takes the partition keys from it"),
    HARMLESS("partition.end-input-to-done", "boolean", "false", "marking of partitions"),
    HARMLESS("partition.expiration-batch-size", "integer", NULL, "partition.expiration-time"),
    HARMLESS("partition.expiration-check-interval", "duration", "1 h", "partition.expiration-time"),
    HARMLESS("partition.expiration-max-num", "integer", "100", "partition.expiration-time"),
    HARMLESS("partition.expiration-strategy", "text", "values-time", "partition.expiration-time"),
    HARMLESS("partition.idle-time-to-report-statistic", "duration", "0 s", "catalogs"),
    HARMLESS("partition.mark-done-action*", "text", NULL, "marking of partitions"),
    HARMLESS("partition.sink-strategy", "text", "NONE", "writing in engines"),
    HARMLESS("partition.timestamp-formatter", "text", NULL, "partition.expiration-time"),
    HARMLESS("partition.timestamp-pattern", "text", NULL, "partition.expiration-time"),
    HARMLESS("path", "text", NULL, "catalogs"),
    HARMLESS("postpone.*", "text", NULL, "postponed buckets"),
    HARMLESS("primary-key", "columns", NULL, "create takes the primary key from it"),
    HARMLESS("query-auth.enabled", "boolean", "false", "catalogs"),
    HARMLESS("read.batch-size", "integer", "1024", "reading in Java"),
    HARMLESS("record-level.time-field", "column", NULL, "record-level.expire-time"),
    HARMLESS("scan.*", "text", NULL, "where reads of engines start"),
    HARMLESS("sink.*", "text", NULL, "writing in engines"),
    HARMLESS("snapshot.expire.execution-mode", "text", "sync", "expiry in Java"),
    HARMLESS("snapshot.ignore-empty-commit", "boolean", NULL, "empty commits of engines"),
    HARMLESS("snapshot.watermark-idle-timeout", "duration", NULL, "watermarks of Flink"),
    HARMLESS("sort-compaction.*", "text", NULL, "sort compaction"),
    HARMLESS("sort-engine", "text", "loser-tree", "merging in Java"),
    HARMLESS("sort-spill-buffer-size", "size", "64 mb", "sorting in Java"),
    HARMLESS("sort-spill-threshold", "integer", NULL, "sorting in Java"),
    HARMLESS("source.*", "text", NULL, "splits of engines"),
    HARMLESS("spill-compression*", "text", NULL, "spilling in Java"),
    HARMLESS("stream-scan-mode", "text", "none", "internal to engines"),
    HARMLESS("streaming*", "text", NULL, "streaming reads"),
    HARMLESS("tag.*", "text", NULL, "automatic tags"),
    HARMLESS("upsert-key", "columns", NULL, "streams of tables without a primary key"),
    HARMLESS("write-buffer-for-append", "boolean", "false", "memory of Java"),
    HARMLESS("write-buffer-spill.max-disk-size", "size", NULL, "spilling in Java"),
    HARMLESS("write-buffer-spillable", "boolean", "true", "spilling in Java"),
    HARMLESS("write-max-writers-to-spill", "integer", "10", "spilling in Java"),
    HARMLESS("write.batch-memory", "size", "128 mb", "writing in Java"),
    HARMLESS("write.batch-size", "integer", "1024", "writing in Java"),
    HARMLESS("zorder.var-length-contribution", "integer", "8", "sort compaction"),
};

enum { LIST_SIZE = sizeof(list) / sizeof(list[0]) };

/* Names of before; the name of now counts first. Source: Paimon, CoreOptions, fallback keys. */
static const char *const old_names[][2] = {
    {"write.compaction-skip", "write-only"},
    {"first-row.ignore-delete", "ignore-delete"},
    {"deduplicate.ignore-delete", "ignore-delete"},
    {"partial-update.ignore-delete", "ignore-delete"},
    {"snapshot.expire.clean-empty-directories", "snapshot.clean-empty-directories"},
};

static const char *value_of(const struct tn_schema *schema, const char *name)
{
    const char *value = tn_schema_option(schema, name);
    for (size_t i = 0; i < ENTRIES(old_names) && value == NULL; i++) {
        if (strcmp(old_names[i][1], name) == 0) {
            value = tn_schema_option(schema, old_names[i][0]);
        }
    }
    return value;
}

static bool matters(const struct reader *r, const struct option *option)
{
    if (option->when == KEYED_READING && r->schema->primary_keys.count == 0) {
        return false;
    }
    return option->read != NULL && (r->use != TN_OPTIONS_READ || option->when != WRITING);
}

static tn_rc read_list(struct reader *r)
{
    tn_rc rc = TN_OK;
    for (size_t i = 0; i < LIST_SIZE && rc == TN_OK; i++) {
        const char *value = value_of(r->schema, list[i].name);
        bool needed = matters(r, &list[i]);
        value = value && needed ? value : list[i].fallback;
        /* What a reader needs not has its default all the same, and that is never refused. */
        if (value && list[i].read && (needed || list[i].read != refuse) &&
            (needed || list[i].read != read_format)) {
            rc = list[i].read(r, &list[i], value);
        }
    }
    return rc;
}

/* ---- options of columns: fields.COLUMN.WORD ---- */

static const char fields_prefix[] = "fields.";

/* The column and the word of `fields.a.b.stats-mode`: a column's name may hold points. */
static bool split_field_option(const char *key, struct tn_bytes *column, const char **word)
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

/* Words of merge engines that are refused as a whole. */
static const char engine_words[] = "aggregate-function|ignore-retract|nested-key|count-limit|"
                                   "distinct|list-agg-delimiter|sequence-group";

static tn_rc read_field_option(struct reader *r, const struct tn_option *option)
{
    struct tn_bytes column = {0};
    const char *word = NULL;
    struct stats stats;
    if (!split_field_option(option->key, &column, &word)) {
        return TN_OK;
    }
    if (strcmp(word, "default-value") == 0) {
        return unsupported(r, option->key, option->value,
                           "was a default in old versions; give the field a defaultValue");
    }
    if (strcmp(word, "stats-mode") != 0) {
        return TN_OK;
    }
    int32_t field = tn_schema_find(r->schema, column);
    if (field < 0) {
        return r->use == TN_OPTIONS_CREATE
                   ? invalid(r, option->key, option->value, "is for a column that isn't there")
                   : TN_OK;
    }
    if (!parse_stats(option->value, &stats)) {
        return bad_stats(r, option->key, option->value);
    }
    r->options->stats_modes[field] = stats.mode;
    r->options->stats_lengths[field] = stats.length;
    return TN_OK;
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

/* Options whose names hold a word of the user's. */
static tn_rc read_open_options(struct reader *r)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; i < r->schema->option_count && rc == TN_OK; i++) {
        const struct tn_option *option = &r->schema->options[i];
        bool index = (begins(option->key, "file-index.") && ends(option->key, ".columns")) ||
                     (begins(option->key, "pk-") && ends(option->key, ".index.columns"));
        rc = index ? unsupported(r, option->key, option->value,
                                 "asks for an index: not supported "
                                 "by this build")
                   : read_field_option(r, option);
    }
    return rc;
}

/* ---- what holds between options ---- */

static tn_rc check_bucket_key(const struct reader *r)
{
    const struct tn_schema *schema = r->schema;
    const char *text = value_of(schema, "bucket-key");
    struct tn_columns key = r->options->bucket_key;
    for (uint32_t i = 0; i < key.count; i++) {
        if (schema->primary_keys.count > 0 &&
            !tn_columns_have(schema->primary_keys, key.index[i])) {
            return invalid(r, "bucket-key", text, "is not part of the primary key");
        }
        if (tn_columns_have(schema->partition_keys, key.index[i])) {
            return invalid(r, "bucket-key", text, "names a partition key");
        }
    }
    return TN_OK;
}

static tn_rc finish_buckets(struct reader *r)
{
    struct tn_options *o = r->options;
    if (o->bucket < 0) {
        return o->bucket_key.count == 0
                   ? TN_OK
                   : invalid(r, "bucket-key", value_of(r->schema, "bucket-key"),
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

static tn_rc finish_function(const struct reader *r)
{
    struct tn_columns key = r->options->bucket_key;
    if (r->options->bucket_function != TN_BUCKET_MOD || r->options->bucket < 0) {
        return TN_OK;
    }
    enum tn_type_kind kind = r->schema->fields[key.index[0]].type.kind;
    if (key.count != 1 || (kind != TN_TYPE_INT && kind != TN_TYPE_BIGINT)) {
        return invalid(r, "bucket-function.type", "mod", "needs a bucket key of one INT or BIGINT");
    }
    return TN_OK;
}

static tn_rc finish_rowkind(const struct reader *r)
{
    int32_t field = r->options->rowkind_field;
    if (field >= 0 && !tn_type_textual(r->schema->fields[field].type.kind)) {
        return invalid(r, "rowkind.field", r->schema->fields[field].name, "is no STRING");
    }
    return TN_OK;
}

/* Changelogs that outlive snapshots are files of their own. Source: Paimon,
 * CoreOptions.changelogLifecycleDecoupled. */
static tn_rc check_changelogs(const struct reader *r)
{
    const struct tn_options *o = r->options;
    static const char *const names[] = {"changelog.num-retained.min", "changelog.num-retained.max",
                                        "changelog.time-retained"};
    const int64_t limits[] = {o->snapshot_retained_min, o->snapshot_retained_max,
                              o->snapshot_time_retained_ms};
    for (size_t i = 0; i < ENTRIES(names); i++) {
        const char *value = value_of(r->schema, names[i]);
        int64_t number = 0;
        bool good = value == NULL || (i == 2 ? tn_parse_duration(tn_bytes_of(value), &number)
                                             : parse_integer(value, &number));
        if (!good) {
            return invalid(r, names[i], value, "is no number");
        }
        if (value && number > limits[i]) {
            return unsupported(
                r, names[i], value,
                "keeps changelogs longer than snapshots: not supported by this build");
        }
    }
    return TN_OK;
}

static tn_rc finish_snapshots(const struct reader *r)
{
    if (r->options->snapshot_retained_min > r->options->snapshot_retained_max) {
        return tn_err_set(r->err, TN_INVALID, 0,
                          "option 'snapshot.num-retained.min': %" PRId32
                          " is more than snapshot.num-retained.max, %" PRId32,
                          r->options->snapshot_retained_min, r->options->snapshot_retained_max);
    }
    return check_changelogs(r);
}

/* Defaults that other options give. Source: Paimon, CoreOptions. */
static void fill_defaults(struct reader *r)
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
}

tn_rc tn_options_read(const struct tn_schema *schema, enum tn_options_use use,
                      struct tn_arena *arena, struct tn_options *options, struct tn_err *err)
{
    struct tn_options read = {.rowkind_field = -1,
                              .path_directory = "",
                              .optimization_interval_ms = -1,
                              .total_size_threshold = -1,
                              .incremental_size_threshold = -1};
    struct reader r = {schema, use, arena, &read, err};
    bool writes = use != TN_OPTIONS_READ;
    tn_rc rc = read_list(&r);
    rc = rc != TN_OK || !writes ? rc : read_open_options(&r);
    rc = rc != TN_OK ? rc : finish_buckets(&r);
    rc = rc != TN_OK ? rc : finish_function(&r);
    rc = rc != TN_OK || !writes ? rc : finish_rowkind(&r);
    rc = rc != TN_OK || !writes ? rc : finish_snapshots(&r);
    if (rc == TN_OK) {
        fill_defaults(&r);
        *options = read;
    }
    return rc;
}

/* ---- hazards ---- */

/* `name` of the list, which may end in a star. */
static bool covers(const char *name, const char *key)
{
    size_t size = strlen(name);
    return name[size - 1] == '*' ? strncmp(key, name, size - 1) == 0 : strcmp(key, name) == 0;
}

static bool known(const char *key)
{
    struct tn_bytes column = {0};
    const char *word = NULL;
    for (size_t i = 0; i < LIST_SIZE; i++) {
        if (covers(list[i].name, key)) {
            return true;
        }
    }
    for (size_t i = 0; i < ENTRIES(old_names); i++) {
        if (strcmp(old_names[i][0], key) == 0) {
            return true;
        }
    }
    if (split_field_option(key, &column, &word)) {
        return strcmp(word, "stats-mode") == 0 || one_of(word, engine_words);
    }
    return false;
}

static void unknown_options(const struct tn_schema *schema, struct tn_buf *lines)
{
    const char *names[LIST_SIZE];
    for (size_t i = 0; i < LIST_SIZE; i++) {
        names[i] = list[i].name;
    }
    for (uint32_t i = 0; i < schema->option_count; i++) {
        const char *key = schema->options[i].key;
        if (known(key)) {
            continue;
        }
        const char *meant = tn_nearest_name(tn_bytes_of(key), names, LIST_SIZE);
        tn_buf_format(lines, "option '%s' is unknown and has no effect", key);
        if (meant) {
            tn_buf_format(lines, "; did you mean '%s'?", meant);
        }
        tn_buf_byte(lines, '\n');
    }
}

/* Source: behaviour spec, 8.1: one row of a key in each partition. */
static void key_without_partition(const struct tn_schema *schema, struct tn_buf *lines)
{
    for (uint32_t i = 0; i < schema->partition_keys.count; i++) {
        uint32_t field = schema->partition_keys.index[i];
        if (schema->primary_keys.count > 0 && !tn_columns_have(schema->primary_keys, field)) {
            tn_buf_format(
                lines,
                "the primary key lacks the partition key '%s': the same key lives once in "
                "every partition\n",
                schema->fields[field].name);
        }
    }
}

static void day_numbers(const struct tn_schema *schema, struct tn_buf *lines)
{
    for (uint32_t i = 0; i < schema->partition_keys.count; i++) {
        const struct tn_field *field = &schema->fields[schema->partition_keys.index[i]];
        if (field->type.kind == TN_TYPE_DATE) {
            tn_buf_format(lines,
                          "folders of the partition key '%s' are day numbers, like %s=20000; "
                          "'partition.legacy-name' = 'false' makes them dates\n",
                          field->name, field->name);
        }
    }
}

/* What the options alone tell. Source: behaviour spec, 14. */
static void option_hazards(const struct tn_schema *schema, const struct tn_options *options,
                           struct tn_buf *lines)
{
    bool keyed = schema->primary_keys.count > 0;
    bool sequence = keyed && options->sequence_fields.count > 0;
    const struct {
        bool here;
        const char *line;
    } hazards[] = {
        {options->write_only, "'write-only': nothing is compacted and no snapshot expires here; "
                              "another job must do both"},
        {sequence && options->sequence_descending, "'sequence.field.sort-order' = 'descending': "
                                                   "Paimon before 2.0 takes no notice of it among "
                                                   "the rows of one flush"},
        {sequence && !options->ignore_delete,
         "'sequence.field': a delete whose sequence is NULL or older has no effect, and after a "
         "compaction an older row that comes late brings a deleted key back"},
        {keyed && !options->ignore_update_before && options->rowkind_field >= 0,
         "'rowkind.field': a -U without its +U deletes the row; 'ignore-update-before' prevents "
         "it"},
        {options->total_size_threshold >= 0, "'compaction.total-size-threshold': every commit "
                                             "compacts all of a bucket that is smaller"},
        {options->optimization_interval_ms >= 0, "'compaction.optimization-interval': a writer "
                                                 "that starts compacts all of each bucket that "
                                                 "it writes"},
    };
    for (size_t i = 0; i < ENTRIES(hazards); i++) {
        if (hazards[i].here) {
            tn_buf_text(lines, hazards[i].line);
            tn_buf_byte(lines, '\n');
        }
    }
}

void tn_options_hazards(const struct tn_schema *schema, const struct tn_options *options,
                        struct tn_buf *lines)
{
    option_hazards(schema, options, lines);
    key_without_partition(schema, lines);
    if (options->partition_legacy_name) {
        day_numbers(schema, lines);
    }
    unknown_options(schema, lines);
}

/* ---- help ---- */

static const char *duty_of(const struct option *option)
{
    return option->read == NULL ? "harmless" : option->read == refuse ? "refused" : "obeyed";
}

void tn_options_help(struct tn_buf *lines)
{
    for (size_t i = 0; i < LIST_SIZE; i++) {
        const struct option *o = &list[i];
        tn_buf_format(lines, "%s\t%s\t%s\t%s\t%s\n", o->name, o->type,
                      o->fallback ? o->fallback : "", duty_of(o), o->help);
    }
}
