#include "file/names.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
    DAY_MS = 86400000,
    NAME_VALUE_MAX = 96, /* the longest text of a value that is no string; DECIMAL(38) has 41 */
    POSTPONE_BUCKET = -2,
};

static tn_rc arena_full(struct tn_err *err, const char *what)
{
    return tn_err_set(err, TN_AGAIN, 0, "%s: the arena is full", what);
}

/* ---- texts of partition values ---- */

struct date_time {
    int64_t year;
    int month;
    int day;
    int second_of_day;
    int nanos;
};

/* Days since 1970 in the proleptic calendar, by eras of 400 years that begin on 1 March. */
static void civil_of_days(int64_t days, struct date_time *out)
{
    int64_t shifted = days + 719468;
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int day_of_era = (int)(shifted - era * 146097);
    int year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int month = (5 * day_of_year + 2) / 153;
    out->day = day_of_year - (153 * month + 2) / 5 + 1;
    out->month = month < 10 ? month + 3 : month - 9;
    out->year = year_of_era + era * 400 + (out->month <= 2);
}

static struct date_time date_time_of(const struct tn_value *value)
{
    struct date_time out = {0};
    int64_t ms = value->as.i64;
    int64_t day = ms / DAY_MS - (ms % DAY_MS < 0);
    int ms_of_day = (int)(ms - day * DAY_MS);
    civil_of_days(day, &out);
    out.second_of_day = ms_of_day / 1000;
    out.nanos = ms_of_day % 1000 * 1000000 + (int)value->nanos;
    return out;
}

/* Java's LocalDate: four digits, a sign in front of years that need more. */
static void format_date(struct tn_buf *buf, const struct date_time *t)
{
    int64_t year = t->year < 0 ? -t->year : t->year;
    const char *sign = t->year < 0 ? "-" : t->year > 9999 ? "+" : "";
    tn_buf_format(buf, "%s%04" PRId64 "-%02d-%02d", sign, year, t->month, t->day);
}

/* The new names' dates, as Paimon's DateTimeUtils makes them: four digits whatever the year, so
 * 10000 is "0000" and -1 is "000/". Folders are found by these names, and that is all they are for.
 */
static void format_date_new(struct tn_buf *buf, const struct date_time *t)
{
    for (int64_t unit = 1000; unit > 0; unit /= 10) {
        tn_buf_byte(buf, (unsigned char)('0' + t->year / unit % 10));
    }
    tn_buf_format(buf, "-%02d-%02d", t->month, t->day);
}

static void format_fraction(struct tn_buf *buf, int nanos, int digits)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%09d", nanos);
    if (digits > 0) {
        tn_buf_byte(buf, '.');
        tn_buf_append(buf, text, (size_t)digits);
    }
}

/* Java's LocalDateTime.toString: seconds only when something follows the minute, 0, 3, 6 or 9
 * digits. */
static void format_timestamp_legacy(struct tn_buf *buf, const struct tn_value *value)
{
    struct date_time t = date_time_of(value);
    format_date(buf, &t);
    tn_buf_format(buf, "T%02d:%02d", t.second_of_day / 3600, t.second_of_day / 60 % 60);
    if (t.second_of_day % 60 || t.nanos) {
        int digits = t.nanos == 0 ? 0 : t.nanos % 1000000 == 0 ? 3 : t.nanos % 1000 == 0 ? 6 : 9;
        tn_buf_format(buf, ":%02d", t.second_of_day % 60);
        format_fraction(buf, t.nanos, digits);
    }
}

static void format_clock(struct tn_buf *buf, int second_of_day)
{
    tn_buf_format(buf, "%02d:%02d:%02d", second_of_day / 3600, second_of_day / 60 % 60,
                  second_of_day % 60);
}

/* Digits end where only zeros would follow, but for the first: "00:00:00.0". Source: Paimon,
 * DateTimeUtils.formatTimestampMillis. */
static void format_time(struct tn_buf *buf, const struct tn_type *type, int ms_of_day)
{
    format_clock(buf, ms_of_day / 1000);
    int ms = ms_of_day % 1000;
    int digits = ms % 10 ? 3 : ms % 100 ? 2 : 1;
    int precision = type->precision < 3 ? type->precision : 3;
    format_fraction(buf, ms * 1000000, digits < precision ? digits : precision);
}

static void format_timestamp(struct tn_buf *buf, const struct tn_type *type,
                             const struct tn_value *value)
{
    struct date_time t = date_time_of(value);
    format_date_new(buf, &t);
    tn_buf_byte(buf, ' ');
    format_clock(buf, t.second_of_day);
    format_fraction(buf, t.nanos, type->precision);
}

static tn_rc refuse_type(const char *column, const struct tn_type *type, struct tn_err *err)
{
    char text[TN_TYPE_TEXT_SIZE];
    return tn_err_set(err, TN_UNSUPPORTED, 0, "column '%s': %s names no folder that can be known",
                      column, tn_type_format(type, text));
}

/* A value that is not NULL and no text, as Paimon writes it into a folder's name. */
static tn_rc format_value(const char *column, const struct tn_type *type,
                          const struct tn_value *value, bool legacy, struct tn_buf *buf,
                          struct tn_err *err)
{
    switch (type->kind) {
    case TN_TYPE_FLOAT:
        tn_float_format_java(buf, (float)value->as.f64);
        return TN_OK;
    case TN_TYPE_DOUBLE:
        tn_double_format_java(buf, value->as.f64);
        return TN_OK;
    case TN_TYPE_BOOLEAN:
        tn_buf_text(buf, value->as.i64 ? "true" : "false");
        return TN_OK;
    case TN_TYPE_TINYINT:
    case TN_TYPE_SMALLINT:
    case TN_TYPE_INT:
    case TN_TYPE_BIGINT:
        tn_buf_format(buf, "%" PRId64, value->as.i64);
        return TN_OK;
    case TN_TYPE_DECIMAL:
        tn_value_format_text(type, value, buf);
        return TN_OK;
    case TN_TYPE_DATE:
        if (legacy) {
            tn_buf_format(buf, "%" PRId64, value->as.i64);
        } else {
            struct date_time t = {0};
            civil_of_days(value->as.i64, &t);
            format_date_new(buf, &t);
        }
        return TN_OK;
    case TN_TYPE_TIME:
        if (legacy) {
            tn_buf_format(buf, "%" PRId64, value->as.i64);
        } else {
            format_time(buf, type, (int)value->as.i64);
        }
        return TN_OK;
    case TN_TYPE_TIMESTAMP_LTZ: /* the new name depends on the writer's own time zone */
    case TN_TYPE_TIMESTAMP:
        if (legacy) {
            format_timestamp_legacy(buf, value);
            return TN_OK;
        }
        if (type->kind == TN_TYPE_TIMESTAMP) {
            format_timestamp(buf, type, value);
            return TN_OK;
        }
        return refuse_type(column, type, err);
    case TN_TYPE_CHAR:
    case TN_TYPE_VARCHAR:
        tn_buf_append(buf, value->as.bytes.data, value->as.bytes.size);
        return TN_OK;
    case TN_TYPE_BINARY: /* Java writes the address of an object */
    case TN_TYPE_VARBINARY:
    case TN_TYPE_ARRAY:
    case TN_TYPE_MAP:
    case TN_TYPE_MULTISET:
    case TN_TYPE_ROW:
    case TN_TYPE_VARIANT:
    case TN_TYPE_BLOB:
    case TN_TYPE_KIND_COUNT:
        break;
    }
    return refuse_type(column, type, err);
}

/* Java's Character.isWhitespace beyond ASCII, in UTF-8: U+1680, U+2000..200A but 2007, U+2028,
 * U+2029, U+205F, U+3000. Returns the size of one such character at `at`, 0 for any other. */
static size_t blank_size(const unsigned char *at, size_t size)
{
    if (size >= 1 && ((at[0] >= 0x09 && at[0] <= 0x0d) || (at[0] >= 0x1c && at[0] <= 0x20))) {
        return 1;
    }
    if (size < 3) {
        return 0;
    }
    unsigned code = (unsigned)at[0] << 16 | (unsigned)at[1] << 8 | at[2];
    bool wide = code == 0xe19a80 || (code >= 0xe28080 && code <= 0xe2808a && code != 0xe28087) ||
                code == 0xe280a8 || code == 0xe280a9 || code == 0xe2819f || code == 0xe38080;
    return wide ? 3 : 0;
}

static bool all_blank(struct tn_bytes text)
{
    size_t at = 0;
    size_t step = 1;
    while (at < text.size && step > 0) {
        step = blank_size(text.data + at, text.size - at);
        at += step;
    }
    return at == text.size && step > 0;
}

/* Source: Paimon, PartitionPathUtils.CHAR_TO_ESCAPE. */
static bool escaped(unsigned char c)
{
    return c < 0x20 || c == 0x7f || strchr("\"#%'*/:=?\\{}[]^", c) != NULL;
}

static void append_escaped(struct tn_buf *buf, struct tn_bytes text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (escaped(text.data[i])) {
            tn_buf_format(buf, "%%%02X", text.data[i]);
        } else {
            tn_buf_byte(buf, text.data[i]);
        }
    }
}

/* "key=value/" for one column. `value_text` is scratch. */
static tn_rc append_part(const struct tn_field *field, const struct tn_options *options,
                         const struct tn_value *value, struct tn_buf *value_text,
                         struct tn_buf *name, struct tn_err *err)
{
    value_text->size = 0;
    if (!value->null) {
        tn_rc rc = format_value(field->name, &field->type, value, options->partition_legacy_name,
                                value_text, err);
        if (rc) {
            return rc;
        }
    }
    struct tn_bytes text = tn_buf_bytes(value_text);
    if (text.size > 0 && memchr(text.data, 0, text.size)) {
        return tn_err_set(err, TN_INVALID, 0,
                          "column '%s': a partition value with a zero byte names no folder",
                          field->name);
    }
    if (all_blank(text)) {
        text = tn_bytes_of(options->partition_default_name);
    }
    size_t start = name->size;
    append_escaped(name, tn_bytes_of(field->name));
    tn_buf_byte(name, '=');
    append_escaped(name, text);
    if (name->size - start > NAME_MAX) {
        return tn_err_set(err, TN_INVALID, 0,
                          "column '%s': a folder named after the partition value has %zu bytes, at "
                          "most %d go",
                          field->name, name->size - start, NAME_MAX);
    }
    tn_buf_byte(name, '/');
    return TN_OK;
}

struct partition_scratch {
    struct tn_type *types;
    struct tn_value *values;
    struct tn_buf text;
};

static size_t partition_name_max(const struct tn_schema *schema, const struct tn_options *options,
                                 size_t partition_size)
{
    size_t size = 1 + 3 * partition_size;
    for (uint32_t i = 0; i < schema->partition_keys.count; i++) {
        const struct tn_field *field = &schema->fields[schema->partition_keys.index[i]];
        size += 3 * (strlen(field->name) + strlen(options->partition_default_name)) +
                3 * (size_t)NAME_VALUE_MAX;
    }
    return size;
}

static tn_rc take_scratch(struct tn_arena *arena, uint32_t count, size_t text_size,
                          struct partition_scratch *scratch, struct tn_err *err)
{
    scratch->types = tn_arena_take(arena, count * sizeof(struct tn_type));
    scratch->values = tn_arena_take(arena, count * sizeof(struct tn_value));
    void *text = tn_arena_take_raw(arena, text_size);
    if (!scratch->types || !scratch->values || !text) {
        return arena_full(err, "partition name");
    }
    tn_buf_init(&scratch->text, text, text_size);
    return TN_OK;
}

static tn_rc append_partition(const struct tn_schema *schema, const struct tn_options *options,
                              struct tn_bytes partition, struct partition_scratch *scratch,
                              struct tn_buf *name, struct tn_err *err)
{
    const struct tn_columns keys = schema->partition_keys;
    for (uint32_t i = 0; i < keys.count; i++) {
        scratch->types[i] = schema->fields[keys.index[i]].type;
    }
    tn_rc rc = tn_binary_to_values(partition, scratch->types, keys.count, scratch->values, err);
    for (uint32_t i = 0; i < keys.count && rc == TN_OK; i++) {
        rc = append_part(&schema->fields[keys.index[i]], options, &scratch->values[i],
                         &scratch->text, name, err);
    }
    tn_buf_byte(name, 0);
    return rc;
}

/* ---- names of tables and files ---- */

static bool name_part_legal(const char *part, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)part[i];
        if (c < 0x20 || c == '/' || c == '\\' || c == '$') {
            return false;
        }
        if (c == '.' && (i + 1 == size || part[i + 1] == '.')) {
            return false;
        }
    }
    return size > 0;
}

/* What Java appends for `file.suffix.include.compression`. Source: Paimon, HadoopCompressionType.
 */
static const char *compression_suffix(enum tn_codec_id codec)
{
    switch (codec) {
    case TN_CODEC_ID_NULL:
        break;
    case TN_CODEC_ID_DEFLATE:
        return ".deflate";
    case TN_CODEC_ID_SNAPPY:
        return ".snappy";
    case TN_CODEC_ID_ZSTANDARD:
        return ".zst";
    case TN_CODEC_ID_BZIP2:
        return ".bz2";
    }
    return "";
}

/* The part before the dot at `end`, as a view on `name`. */
static struct tn_bytes extension_before(const char *name, size_t end)
{
    size_t start = end;
    while (start > 0 && name[start - 1] != '.') {
        start--;
    }
    if (start == 0) {
        return (struct tn_bytes){(const unsigned char *)name, 0};
    }
    return (struct tn_bytes){(const unsigned char *)name + start, end - start};
}

static bool compression_extension(struct tn_bytes extension)
{
    static const char *const names[] = {"zst", "gz", "bz2", "deflate", "snappy", "lz4"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (tn_bytes_equal(extension, tn_bytes_of(names[i]))) {
            return true;
        }
    }
    return false;
}

/* ---- public ---- */

tn_rc tn_name_table_root(struct tn_arena *arena, const char *table, const char **root,
                         struct tn_err *err)
{
    const char *dot = strchr(table, '.');
    if (!dot) {
        return tn_err_set(err, TN_INVALID, 0, "table '%s': a table is named DATABASE.TABLE", table);
    }
    size_t database_size = (size_t)(dot - table);
    if (!name_part_legal(table, database_size) || !name_part_legal(dot + 1, strlen(dot + 1))) {
        return tn_err_set(err, TN_INVALID, 0,
                          "table '%s': neither part may be empty, end with '.' or hold '/', '\\', "
                          "'$', '..' or control characters",
                          table);
    }
    const char *made = tn_arena_format(arena, "%.*s.db/%s", (int)database_size, table, dot + 1);
    if (!made) {
        return arena_full(err, "table root");
    }
    *root = made;
    return TN_OK;
}

const char *tn_name_in(struct tn_arena *arena, const char *root, const char *dir, const char *name)
{
    return tn_arena_format(arena, "%s/%s%s", root, dir, name);
}

const char *tn_name_numbered(struct tn_arena *arena, const char *root, const char *dir,
                             const char *prefix, int64_t number)
{
    return tn_arena_format(arena, "%s/%s%s%" PRId64, root, dir, prefix, number);
}

tn_rc tn_name_partition(struct tn_arena *arena, const struct tn_schema *schema,
                        const struct tn_options *options, struct tn_bytes partition,
                        const char **name, struct tn_err *err)
{
    if (schema->partition_keys.count == 0) {
        *name = "";
        return TN_OK;
    }
    size_t size = partition_name_max(schema, options, partition.size);
    size_t mark = tn_arena_mark(arena);
    struct partition_scratch scratch;
    struct tn_buf out;
    void *made = NULL;
    tn_rc rc = tn_arena_need(arena, size, "partition name", &made, err);
    if (rc) {
        return rc;
    }
    tn_buf_init(&out, made, size);
    size_t made_mark = tn_arena_mark(arena) - size;
    rc = take_scratch(arena, schema->partition_keys.count, partition.size + NAME_VALUE_MAX,
                      &scratch, err);
    if (rc == TN_OK) {
        rc = append_partition(schema, options, partition, &scratch, &out, err);
    }
    if (rc == TN_OK && (out.overflow || scratch.text.overflow)) {
        rc = arena_full(err, "partition name");
    }
    if (rc) {
        tn_arena_reset(arena, mark);
        return rc == TN_AGAIN ? rc : tn_err_in(err, "partition");
    }
    tn_arena_reset(arena, made_mark + out.size);
    *name = made;
    return TN_OK;
}

tn_rc tn_name_bucket(struct tn_arena *arena, const char *root, const struct tn_schema *schema,
                     const struct tn_options *options, struct tn_bytes partition, int32_t bucket,
                     const char **name, struct tn_err *err)
{
    if (bucket < 0 && bucket != POSTPONE_BUCKET) {
        return tn_err_set(err, TN_CORRUPT, 0, "bucket %" PRId32 " is none", bucket);
    }
    const char *folder = NULL;
    tn_rc rc = tn_name_partition(arena, schema, options, partition, &folder, err);
    if (rc) {
        return rc;
    }
    char number[16];
    (void)snprintf(number, sizeof number, "%" PRId32, bucket);
    const char *made = tn_arena_format(arena, "%s/%s%sbucket-%s/", root, options->path_directory,
                                       folder, bucket == POSTPONE_BUCKET ? "postpone" : number);
    if (!made) {
        return arena_full(err, "bucket folder");
    }
    *name = made;
    return TN_OK;
}

tn_rc tn_name_index(struct tn_arena *arena, const char *root, const struct tn_schema *schema,
                    const struct tn_options *options, struct tn_bytes partition, int32_t bucket,
                    const char **name, struct tn_err *err)
{
    if (options->index_in_data_folder) {
        return tn_name_bucket(arena, root, schema, options, partition, bucket, name, err);
    }
    const char *made = tn_name_in(arena, root, TN_DIR_INDEX, "");
    if (!made) {
        return arena_full(err, "index folder");
    }
    *name = made;
    return TN_OK;
}

static tn_rc name_file(struct tn_arena *arena, const char *prefix, const char *uuid,
                       uint32_t counter, const char *suffix, const char **name, struct tn_err *err)
{
    const char *made =
        tn_arena_format(arena, "%s%s-%" PRIu32 "%s.avro", prefix, uuid, counter, suffix);
    if (!made) {
        return arena_full(err, "file name");
    }
    *name = made;
    return TN_OK;
}

tn_rc tn_name_data_file(struct tn_arena *arena, const struct tn_options *options, const char *uuid,
                        uint32_t counter, const char **name, struct tn_err *err)
{
    const char *suffix = options->suffix_compression ? compression_suffix(options->codec) : "";
    return name_file(arena, options->data_file_prefix, uuid, counter, suffix, name, err);
}

tn_rc tn_name_changelog_file(struct tn_arena *arena, const struct tn_options *options,
                             const char *uuid, uint32_t counter, const char **name,
                             struct tn_err *err)
{
    const char *suffix =
        options->suffix_compression ? compression_suffix(options->changelog_codec) : "";
    return name_file(arena, options->changelog_file_prefix, uuid, counter, suffix, name, err);
}

tn_rc tn_name_check_format(const char *name, struct tn_err *err)
{
    size_t size = strlen(name);
    struct tn_bytes extension = extension_before(name, size);
    if (compression_extension(extension)) {
        extension = extension_before(name, size - extension.size - 1);
    }
    if (extension.size == 0) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "%s: a data file without a format in its name",
                          name);
    }
    if (tn_bytes_equal(extension, tn_bytes_of("avro"))) {
        return TN_OK;
    }
    return tn_err_set(err, TN_UNSUPPORTED, 0, "%.*s files can't be read yet: %s",
                      (int)extension.size, (const char *)extension.data, name);
}

bool tn_name_begins(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

int64_t tn_name_number(const char *name, const char *prefix)
{
    if (!tn_name_begins(name, prefix)) {
        return -1;
    }
    const char *digits = name + strlen(prefix);
    int64_t number = 0;
    for (const char *c = digits; *c; c++) {
        int digit = *c - '0';
        if (digit < 0 || digit > 9 || number > (INT64_MAX - digit) / 10) {
            return -1;
        }
        number = number * 10 + digit;
    }
    bool canonical = digits[0] != '\0' && (digits[0] != '0' || digits[1] == '\0');
    return canonical ? number : -1;
}
