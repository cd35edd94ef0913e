#include "file/meta.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/check.h"

/* Both texts stand in every file that Paimon 1.3.1 writes: one line, no blanks. */
const char tn_manifest_list_avro_schema[] =
    "{\"type\":\"record\",\"name\":\"record\",\"namespace\":"
    "\"org.apache.paimon.avro.generated\",\"fields\":["
    "{\"name\":\"_VERSION\",\"type\":\"int\"},"
    "{\"name\":\"_FILE_NAME\",\"type\":\"string\"},"
    "{\"name\":\"_FILE_SIZE\",\"type\":\"long\"},"
    "{\"name\":\"_NUM_ADDED_FILES\",\"type\":\"long\"},"
    "{\"name\":\"_NUM_DELETED_FILES\",\"type\":\"long\"},"
    "{\"name\":\"_PARTITION_STATS\",\"type\":{\"type\":\"record\",\"name\":"
    "\"record__PARTITION_STATS\",\"fields\":["
    "{\"name\":\"_MIN_VALUES\",\"type\":\"bytes\"},"
    "{\"name\":\"_MAX_VALUES\",\"type\":\"bytes\"},"
    "{\"name\":\"_NULL_COUNTS\",\"type\":[\"null\",{\"type\":\"array\",\"items\":"
    "[\"null\",\"long\"]}],\"default\":null}]}},"
    "{\"name\":\"_SCHEMA_ID\",\"type\":\"long\"},"
    "{\"name\":\"_MIN_BUCKET\",\"type\":[\"null\",\"int\"],\"default\":null},"
    "{\"name\":\"_MAX_BUCKET\",\"type\":[\"null\",\"int\"],\"default\":null},"
    "{\"name\":\"_MIN_LEVEL\",\"type\":[\"null\",\"int\"],\"default\":null},"
    "{\"name\":\"_MAX_LEVEL\",\"type\":[\"null\",\"int\"],\"default\":null}]}";

const char tn_entry_avro_schema[] =
    "{\"type\":\"record\",\"name\":\"record\",\"namespace\":"
    "\"org.apache.paimon.avro.generated\",\"fields\":["
    "{\"name\":\"_VERSION\",\"type\":\"int\"},"
    "{\"name\":\"_KIND\",\"type\":\"int\"},"
    "{\"name\":\"_PARTITION\",\"type\":\"bytes\"},"
    "{\"name\":\"_BUCKET\",\"type\":\"int\"},"
    "{\"name\":\"_TOTAL_BUCKETS\",\"type\":\"int\"},"
    "{\"name\":\"_FILE\",\"type\":{\"type\":\"record\",\"name\":\"record__FILE\","
    "\"fields\":["
    "{\"name\":\"_FILE_NAME\",\"type\":\"string\"},"
    "{\"name\":\"_FILE_SIZE\",\"type\":\"long\"},"
    "{\"name\":\"_ROW_COUNT\",\"type\":\"long\"},"
    "{\"name\":\"_MIN_KEY\",\"type\":\"bytes\"},"
    "{\"name\":\"_MAX_KEY\",\"type\":\"bytes\"},"
    "{\"name\":\"_KEY_STATS\",\"type\":{\"type\":\"record\",\"name\":"
    "\"record__FILE__KEY_STATS\",\"fields\":[{\"name\":\"_MIN_VALUES\",\"type\":"
    "\"bytes\"},{\"name\":\"_MAX_VALUES\",\"type\":\"bytes\"},{\"name\":"
    "\"_NULL_COUNTS\",\"type\":[\"null\",{\"type\":\"array\",\"items\":[\"null\","
    "\"long\"]}],\"default\":null}]}},"
    "{\"name\":\"_VALUE_STATS\",\"type\":{\"type\":\"record\",\"name\":"
    "\"record__FILE__VALUE_STATS\",\"fields\":[{\"name\":\"_MIN_VALUES\",\"type\":"
    "\"bytes\"},{\"name\":\"_MAX_VALUES\",\"type\":\"bytes\"},{\"name\":"
    "\"_NULL_COUNTS\",\"type\":[\"null\",{\"type\":\"array\",\"items\":[\"null\","
    "\"long\"]}],\"default\":null}]}},"
    "{\"name\":\"_MIN_SEQUENCE_NUMBER\",\"type\":\"long\"},"
    "{\"name\":\"_MAX_SEQUENCE_NUMBER\",\"type\":\"long\"},"
    "{\"name\":\"_SCHEMA_ID\",\"type\":\"long\"},"
    "{\"name\":\"_LEVEL\",\"type\":\"int\"},"
    "{\"name\":\"_EXTRA_FILES\",\"type\":{\"type\":\"array\",\"items\":\"string\"}},"
    "{\"name\":\"_CREATION_TIME\",\"type\":[\"null\",{\"type\":\"long\","
    "\"logicalType\":\"timestamp-millis\"}],\"default\":null},"
    "{\"name\":\"_DELETE_ROW_COUNT\",\"type\":[\"null\",\"long\"],\"default\":null},"
    "{\"name\":\"_EMBEDDED_FILE_INDEX\",\"type\":[\"null\",\"bytes\"],\"default\":"
    "null},"
    "{\"name\":\"_FILE_SOURCE\",\"type\":[\"null\",\"int\"],\"default\":null},"
    "{\"name\":\"_VALUE_STATS_COLS\",\"type\":[\"null\",{\"type\":\"array\","
    "\"items\":\"string\"}],\"default\":null},"
    "{\"name\":\"_EXTERNAL_PATH\",\"type\":[\"null\",\"string\"],\"default\":null},"
    "{\"name\":\"_FIRST_ROW_ID\",\"type\":[\"null\",\"long\"],\"default\":null},"
    "{\"name\":\"_WRITE_COLS\",\"type\":[\"null\",{\"type\":\"array\",\"items\":"
    "\"string\"}],\"default\":null}]}}]}";

/* ---- one array a record, walked by the writer, the plan, the reader and the copy ---- */

enum member_kind {
    MEMBER_VERSION, /* a constant, no member */
    MEMBER_I32,     /* int32_t or an enum */
    MEMBER_I64,
    MEMBER_COUNT,   /* int64_t, never negative */
    MEMBER_NAME,    /* const char *, a bare file name */
    MEMBER_BYTES,   /* struct tn_bytes */
    MEMBER_STATS,   /* struct tn_stats */
    MEMBER_FILES,   /* struct tn_texts, not nullable, bare file names */
    MEMBER_FILE,    /* struct tn_file_meta, last of its record */
    MEMBER_OPT_I64, /* struct tn_json_i64; from here on ["null", T] */
    MEMBER_OPT_I32, /* struct tn_json_i64 of an avro int */
    MEMBER_OPT_BYTES,
    MEMBER_OPT_TEXT,
    MEMBER_OPT_TEXTS,
};

struct member {
    const char *name;
    enum member_kind kind;
    uint32_t offset;
};

#define MEMBER(record, name, kind, member)                   \
    {                                                        \
        name, MEMBER_##kind, offsetof(struct record, member) \
    }

enum {
    META_VERSION = 2 /* of entries and lists; Paimon: ManifestEntrySerializer.getVersion */
};

static const struct member list_members[] = {
    {"_VERSION", MEMBER_VERSION, 0},
    MEMBER(tn_manifest_meta, "_FILE_NAME", NAME, file_name),
    MEMBER(tn_manifest_meta, "_FILE_SIZE", COUNT, file_size),
    MEMBER(tn_manifest_meta, "_NUM_ADDED_FILES", COUNT, added_count),
    MEMBER(tn_manifest_meta, "_NUM_DELETED_FILES", COUNT, deleted_count),
    MEMBER(tn_manifest_meta, "_PARTITION_STATS", STATS, partition_stats),
    MEMBER(tn_manifest_meta, "_SCHEMA_ID", COUNT, schema_id),
    MEMBER(tn_manifest_meta, "_MIN_BUCKET", OPT_I32, min_bucket),
    MEMBER(tn_manifest_meta, "_MAX_BUCKET", OPT_I32, max_bucket),
    MEMBER(tn_manifest_meta, "_MIN_LEVEL", OPT_I32, min_level),
    MEMBER(tn_manifest_meta, "_MAX_LEVEL", OPT_I32, max_level),
};

static const struct member entry_members[] = {
    {"_VERSION", MEMBER_VERSION, 0},
    MEMBER(tn_entry, "_KIND", I32, kind),
    MEMBER(tn_entry, "_PARTITION", BYTES, partition),
    MEMBER(tn_entry, "_BUCKET", I32, bucket),
    MEMBER(tn_entry, "_TOTAL_BUCKETS", I32, total_buckets),
    MEMBER(tn_entry, "_FILE", FILE, file),
};

static const struct member file_members[] = {
    MEMBER(tn_file_meta, "_FILE_NAME", NAME, file_name),
    MEMBER(tn_file_meta, "_FILE_SIZE", COUNT, file_size),
    MEMBER(tn_file_meta, "_ROW_COUNT", COUNT, row_count),
    MEMBER(tn_file_meta, "_MIN_KEY", BYTES, min_key),
    MEMBER(tn_file_meta, "_MAX_KEY", BYTES, max_key),
    MEMBER(tn_file_meta, "_KEY_STATS", STATS, key_stats),
    MEMBER(tn_file_meta, "_VALUE_STATS", STATS, value_stats),
    MEMBER(tn_file_meta, "_MIN_SEQUENCE_NUMBER", I64, min_sequence),
    MEMBER(tn_file_meta, "_MAX_SEQUENCE_NUMBER", I64, max_sequence),
    MEMBER(tn_file_meta, "_SCHEMA_ID", COUNT, schema_id),
    MEMBER(tn_file_meta, "_LEVEL", I32, level),
    MEMBER(tn_file_meta, "_EXTRA_FILES", FILES, extra_files),
    MEMBER(tn_file_meta, "_CREATION_TIME", OPT_I64, creation_time_ms),
    MEMBER(tn_file_meta, "_DELETE_ROW_COUNT", OPT_I64, delete_row_count),
    MEMBER(tn_file_meta, "_EMBEDDED_FILE_INDEX", OPT_BYTES, embedded_index),
    MEMBER(tn_file_meta, "_FILE_SOURCE", OPT_I32, file_source),
    MEMBER(tn_file_meta, "_VALUE_STATS_COLS", OPT_TEXTS, value_stats_cols),
    MEMBER(tn_file_meta, "_EXTERNAL_PATH", OPT_TEXT, external_path),
    MEMBER(tn_file_meta, "_FIRST_ROW_ID", OPT_I64, first_row_id),
    MEMBER(tn_file_meta, "_WRITE_COLS", OPT_TEXTS, write_cols),
};

/* The enum is stored through an int32_t. */
_Static_assert(sizeof(enum tn_entry_kind) == sizeof(int32_t), "an entry's kind has 4 bytes");

struct members {
    const struct member *items;
    uint32_t count;
};

#define MEMBERS(array) ((struct members){array, sizeof(array) / sizeof((array)[0])})

static const char *const stats_names[] = {"_MIN_VALUES", "_MAX_VALUES", "_NULL_COUNTS"};

/* ---- writing ---- */

static void encode_texts(const struct tn_texts *texts, struct tn_buf *buf)
{
    if (texts->count > 0) {
        tn_avro_write_long(buf, texts->count);
        for (uint32_t i = 0; i < texts->count; i++) {
            tn_avro_write_bytes(buf, tn_bytes_of(texts->items[i]));
        }
    }
    tn_buf_byte(buf, 0);
}

/* The null counts are never a null union: Java 1.3.1 fails on it. An empty array says the same. */
static void encode_stats(const struct tn_stats *stats, struct tn_buf *buf)
{
    tn_avro_write_bytes(buf, stats->min);
    tn_avro_write_bytes(buf, stats->max);
    tn_avro_write_long(buf, 1);
    if (stats->null_count_count > 0) {
        tn_avro_write_long(buf, stats->null_count_count);
        for (uint32_t i = 0; i < stats->null_count_count; i++) {
            bool known = stats->null_counts[i] >= 0;
            tn_avro_write_long(buf, known ? 1 : 0);
            if (known) {
                tn_avro_write_long(buf, stats->null_counts[i]);
            }
        }
    }
    tn_buf_byte(buf, 0);
}

static bool member_present(const struct member *m, const void *at)
{
    switch (m->kind) {
    case MEMBER_OPT_I64:
    case MEMBER_OPT_I32:
        return ((const struct tn_json_i64 *)at)->present;
    case MEMBER_OPT_BYTES:
        return ((const struct tn_bytes *)at)->data != NULL;
    case MEMBER_OPT_TEXT:
        return *(const char *const *)at != NULL;
    case MEMBER_OPT_TEXTS:
        return ((const struct tn_texts *)at)->present;
    case MEMBER_VERSION:
    case MEMBER_I32:
    case MEMBER_I64:
    case MEMBER_COUNT:
    case MEMBER_NAME:
    case MEMBER_BYTES:
    case MEMBER_STATS:
    case MEMBER_FILES:
    case MEMBER_FILE:
        break;
    }
    return true;
}

static void encode_value(const struct member *m, const void *at, struct tn_buf *buf)
{
    switch (m->kind) {
    case MEMBER_VERSION:
        tn_avro_write_long(buf, META_VERSION);
        break;
    case MEMBER_I32:
        tn_avro_write_long(buf, *(const int32_t *)at);
        break;
    case MEMBER_I64:
    case MEMBER_COUNT:
        tn_avro_write_long(buf, *(const int64_t *)at);
        break;
    case MEMBER_OPT_I64:
    case MEMBER_OPT_I32:
        tn_avro_write_long(buf, ((const struct tn_json_i64 *)at)->value);
        break;
    case MEMBER_NAME:
    case MEMBER_OPT_TEXT:
        tn_avro_write_bytes(buf, tn_bytes_of(*(const char *const *)at));
        break;
    case MEMBER_BYTES:
    case MEMBER_OPT_BYTES:
        tn_avro_write_bytes(buf, *(const struct tn_bytes *)at);
        break;
    case MEMBER_STATS:
        encode_stats(at, buf);
        break;
    case MEMBER_FILES:
    case MEMBER_OPT_TEXTS:
        encode_texts(at, buf);
        break;
    case MEMBER_FILE: /* tn_entry_encode goes on with the file's own members */
        break;
    }
}

static void encode_members(struct members members, const void *record, struct tn_buf *buf)
{
    for (uint32_t i = 0; i < members.count; i++) {
        const struct member *m = &members.items[i];
        const void *at = (const unsigned char *)record + m->offset;
        bool present = member_present(m, at);
        if (m->kind >= MEMBER_OPT_I64) {
            tn_avro_write_long(buf, present ? 1 : 0);
        }
        if (present) {
            encode_value(m, at, buf);
        }
    }
}

/* ---- the plan ---- */

static bool array_of(const struct tn_avro_type *type, enum tn_avro_kind item)
{
    return type->kind == TN_AVRO_ARRAY && type->children[0].kind == item;
}

static bool integer(const struct tn_avro_type *type)
{
    return type->kind == TN_AVRO_INT || type->kind == TN_AVRO_LONG;
}

static bool byte_like(const struct tn_avro_type *type)
{
    return type->kind == TN_AVRO_BYTES || type->kind == TN_AVRO_STRING;
}

static int32_t find_name(const struct tn_avro_type *record, const char *name)
{
    for (uint32_t i = 0; i < record->child_count; i++) {
        if (strcmp(record->names[i], name) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

static bool stats_fit(const struct tn_avro_type *type)
{
    if (type->kind != TN_AVRO_RECORD) {
        return false;
    }
    int32_t min = find_name(type, stats_names[0]);
    int32_t max = find_name(type, stats_names[1]);
    int32_t counts = find_name(type, stats_names[2]);
    return min >= 0 && max >= 0 && counts >= 0 && type->children[min].kind == TN_AVRO_BYTES &&
           type->children[max].kind == TN_AVRO_BYTES &&
           (array_of(&type->children[counts], TN_AVRO_LONG) ||
            array_of(&type->children[counts], TN_AVRO_INT));
}

static bool member_fits(const struct member *m, const struct tn_avro_type *type)
{
    switch (m->kind) {
    case MEMBER_VERSION:
    case MEMBER_I32:
    case MEMBER_I64:
    case MEMBER_COUNT:
    case MEMBER_OPT_I64:
    case MEMBER_OPT_I32:
        return integer(type);
    case MEMBER_NAME:
    case MEMBER_BYTES:
    case MEMBER_OPT_BYTES:
    case MEMBER_OPT_TEXT:
        return byte_like(type);
    case MEMBER_FILES:
    case MEMBER_OPT_TEXTS:
        return array_of(type, TN_AVRO_STRING) && !type->children[0].nullable;
    case MEMBER_STATS:
        return stats_fit(type);
    case MEMBER_FILE:
        return type->kind == TN_AVRO_RECORD && !type->nullable;
    }
    return false;
}

/* Which member each field of a file's record is, -1 for those to skip. Nullable members may lack.
 */
static tn_rc map_members(const struct tn_avro_type *record, struct members members,
                         struct tn_arena *arena, int32_t **map, struct tn_err *err)
{
    void *made = NULL;
    tn_rc rc = tn_arena_need(arena, record->child_count * sizeof(int32_t) + 1, "manifest plan",
                             &made, err);
    if (rc) {
        return rc;
    }
    int32_t *out = made;
    for (uint32_t i = 0; i < record->child_count; i++) {
        out[i] = -1;
    }
    for (uint32_t m = 0; m < members.count; m++) {
        const struct member *member = &members.items[m];
        int32_t at = find_name(record, member->name);
        if (at < 0 && member->kind < MEMBER_OPT_I64) {
            return tn_err_set(err, TN_CORRUPT, 0, "field %s is missing", member->name);
        }
        if (at >= 0 && !member_fits(member, &record->children[at])) {
            return tn_err_set(err, TN_CORRUPT, 0, "field %s has an unexpected type", member->name);
        }
        if (at >= 0) {
            out[at] = (int32_t)m;
        }
    }
    *map = out;
    return TN_OK;
}

static tn_rc plan_record(struct tn_bytes schema, struct members members, struct tn_arena *arena,
                         struct tn_meta_plan *plan, struct tn_err *err)
{
    *plan = (struct tn_meta_plan){.top = NULL};
    tn_rc rc = tn_avro_schema_parse(schema, arena, &plan->type, err);
    if (rc) {
        return rc;
    }
    if (plan->type.kind != TN_AVRO_RECORD || plan->type.nullable) {
        return tn_err_set(err, TN_CORRUPT, 0, "the schema is no record");
    }
    return map_members(&plan->type, members, arena, &plan->top, err);
}

/* ---- reading ---- */

struct decoder {
    struct tn_avro_cursor *cursor;
    struct tn_arena *arena;
    struct tn_err *err;
    const char *name; /* of the field at hand */
};

static tn_rc fail(struct decoder *d, const char *what)
{
    return tn_err_set(d->err, TN_CORRUPT, 0, "field %s: %s", d->name, what);
}

static tn_rc ends_early(struct decoder *d)
{
    return fail(d, "ends too early or is no legal value");
}

/* Never a NULL pointer, since that stands for an absent value. */
static tn_rc keep_bytes(struct decoder *d, struct tn_bytes from, struct tn_bytes *to)
{
    unsigned char *copy = tn_arena_take_raw(d->arena, from.size + 1);
    if (!copy) {
        return tn_err_set(d->err, TN_AGAIN, 0, "field %s needs %zu bytes, %zu are free", d->name,
                          from.size + 1, tn_arena_free(d->arena));
    }
    memcpy(copy, from.data, from.size);
    copy[from.size] = 0;
    *to = (struct tn_bytes){copy, from.size};
    return TN_OK;
}

static tn_rc decode_bytes(struct decoder *d, struct tn_bytes *to)
{
    struct tn_bytes view = tn_avro_bytes(d->cursor);
    return d->cursor->failed ? ends_early(d) : keep_bytes(d, view, to);
}

static tn_rc decode_text(struct decoder *d, const char **text)
{
    struct tn_bytes view = tn_avro_bytes(d->cursor);
    if (d->cursor->failed) {
        return ends_early(d);
    }
    if (view.size > 0 && memchr(view.data, 0, view.size)) {
        return fail(d, "a text holds a zero byte");
    }
    struct tn_bytes kept;
    tn_rc rc = keep_bytes(d, view, &kept);
    if (rc == TN_OK) {
        *text = (const char *)kept.data;
    }
    return rc;
}

/* Names become parts of paths: what could leave the folder is refused where it comes in. */
static tn_rc check_name(struct decoder *d, const char *name)
{
    if (name[0] == '\0' || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        return fail(d, "is no bare file name");
    }
    return TN_OK;
}

static tn_rc decode_name(struct decoder *d, const char **name)
{
    const char *text = NULL;
    tn_rc rc = decode_text(d, &text);
    if (rc == TN_OK) {
        rc = check_name(d, text);
    }
    if (rc == TN_OK) {
        *name = text;
    }
    return rc;
}

/* The head of the next piece of an array: its items, 0 at the end. Each item has a byte or more. */
static int64_t array_next(struct tn_avro_cursor *c)
{
    int64_t count = tn_avro_long(c);
    if (count < 0) {
        count = count == INT64_MIN ? INT64_MAX : -count;
        (void)tn_avro_long(c); /* size in bytes, for those who skip */
    }
    if (count > c->end - c->at) {
        c->failed = true;
    }
    return c->failed ? 0 : count;
}

/* Counts an array's items without moving the cursor. False when the array is broken. */
static bool array_count(struct tn_avro_cursor cursor, const struct tn_avro_type *item,
                        uint32_t *count_out)
{
    uint32_t total = 0;
    for (int64_t count = array_next(&cursor); count > 0; count = array_next(&cursor)) {
        for (int64_t i = 0; i < count && !cursor.failed; i++) {
            tn_avro_skip(&cursor, item);
        }
        total += (uint32_t)count;
    }
    *count_out = total;
    return !cursor.failed;
}

static tn_rc decode_texts(struct decoder *d, const struct tn_avro_type *type, bool names,
                          struct tn_texts *texts)
{
    uint32_t count = 0;
    if (!array_count(*d->cursor, &type->children[0], &count)) {
        return ends_early(d);
    }
    void *made = NULL;
    tn_rc rc = tn_arena_need(d->arena, count * sizeof(char *) + 1, d->name, &made, d->err);
    if (rc) {
        return rc;
    }
    const char **items = made;
    uint32_t used = 0;
    for (int64_t piece = array_next(d->cursor); piece > 0; piece = array_next(d->cursor)) {
        for (; piece > 0 && used < count; piece--) {
            rc = names ? decode_name(d, &items[used]) : decode_text(d, &items[used]);
            if (rc) {
                return rc;
            }
            used++;
        }
    }
    *texts = (struct tn_texts){items, used, true};
    return d->cursor->failed ? ends_early(d) : TN_OK;
}

static tn_rc decode_counts(struct decoder *d, const struct tn_avro_type *type,
                           struct tn_stats *stats)
{
    if (!tn_avro_present(d->cursor, type)) {
        return d->cursor->failed ? ends_early(d) : TN_OK;
    }
    const struct tn_avro_type *item = &type->children[0];
    uint32_t count = 0;
    if (!array_count(*d->cursor, item, &count)) {
        return ends_early(d);
    }
    void *made = NULL;
    tn_rc rc = tn_arena_need(d->arena, count * sizeof(int64_t) + 1, d->name, &made, d->err);
    if (rc) {
        return rc;
    }
    int64_t *counts = made;
    uint32_t used = 0;
    for (int64_t piece = array_next(d->cursor); piece > 0; piece = array_next(d->cursor)) {
        for (; piece > 0 && used < count; piece--) {
            bool known = tn_avro_present(d->cursor, item);
            int64_t value = known ? tn_avro_long(d->cursor) : -1;
            counts[used++] = value < 0 ? -1 : value;
        }
    }
    stats->null_counts = counts;
    stats->null_count_count = used;
    return d->cursor->failed ? ends_early(d) : TN_OK;
}

static tn_rc decode_stats(struct decoder *d, const struct tn_avro_type *type,
                          struct tn_stats *stats)
{
    for (uint32_t i = 0; i < type->child_count; i++) {
        const struct tn_avro_type *child = &type->children[i];
        tn_rc rc = TN_OK;
        if (strcmp(type->names[i], stats_names[2]) == 0) {
            rc = decode_counts(d, child, stats);
        } else if (strcmp(type->names[i], stats_names[0]) == 0) {
            rc = tn_avro_present(d->cursor, child) ? decode_bytes(d, &stats->min) : ends_early(d);
        } else if (strcmp(type->names[i], stats_names[1]) == 0) {
            rc = tn_avro_present(d->cursor, child) ? decode_bytes(d, &stats->max) : ends_early(d);
        } else {
            tn_avro_skip(d->cursor, child);
        }
        if (rc) {
            return rc;
        }
    }
    return d->cursor->failed ? ends_early(d) : TN_OK;
}

static tn_rc decode_number(struct decoder *d, const struct member *m, void *at)
{
    int64_t value = tn_avro_long(d->cursor);
    if (d->cursor->failed) {
        return ends_early(d);
    }
    bool narrow = m->kind == MEMBER_I32 || m->kind == MEMBER_OPT_I32;
    if ((narrow && (value < INT32_MIN || value > INT32_MAX)) ||
        (m->kind == MEMBER_COUNT && value < 0)) {
        return tn_err_set(d->err, TN_CORRUPT, 0, "field %s: %" PRId64 " is out of range", d->name,
                          value);
    }
    if (m->kind == MEMBER_VERSION) {
        return value == META_VERSION
                   ? TN_OK
                   : tn_err_set(d->err, TN_UNSUPPORTED, 0, "metadata version %" PRId64, value);
    }
    if (m->kind == MEMBER_I32) {
        *(int32_t *)at = (int32_t)value;
    } else if (m->kind == MEMBER_OPT_I64 || m->kind == MEMBER_OPT_I32) {
        *(struct tn_json_i64 *)at = (struct tn_json_i64){value, true};
    } else {
        *(int64_t *)at = value;
    }
    return TN_OK;
}

static tn_rc decode_member(struct decoder *d, const struct tn_avro_type *type,
                           const struct member *m, void *at)
{
    d->name = m->name;
    if (!tn_avro_present(d->cursor, type)) {
        bool legal = m->kind >= MEMBER_OPT_I64 && !d->cursor->failed;
        return legal ? TN_OK : fail(d, "is null");
    }
    switch (m->kind) {
    case MEMBER_VERSION:
    case MEMBER_I32:
    case MEMBER_I64:
    case MEMBER_COUNT:
    case MEMBER_OPT_I64:
    case MEMBER_OPT_I32:
        return decode_number(d, m, at);
    case MEMBER_NAME:
        return decode_name(d, at);
    case MEMBER_OPT_TEXT:
        return decode_text(d, at);
    case MEMBER_BYTES:
    case MEMBER_OPT_BYTES:
        return decode_bytes(d, at);
    case MEMBER_STATS:
        return decode_stats(d, type, at);
    case MEMBER_FILES:
    case MEMBER_OPT_TEXTS:
        return decode_texts(d, type, m->kind == MEMBER_FILES, at);
    case MEMBER_FILE:
        break;
    }
    return TN_OK;
}

/* Fields from `from` up to the next one that is a `_FILE`, or to the end; returns where it stopped
 * in *stop. */
static tn_rc decode_fields(struct decoder *d, const struct tn_avro_type *record, const int32_t *map,
                           struct members members, void *out, uint32_t from, uint32_t *stop)
{
    uint32_t i = from;
    for (; i < record->child_count; i++) {
        if (map[i] < 0) {
            tn_avro_skip(d->cursor, &record->children[i]);
            continue;
        }
        const struct member *m = &members.items[map[i]];
        if (m->kind == MEMBER_FILE) {
            break;
        }
        tn_rc rc = decode_member(d, &record->children[i], m, (unsigned char *)out + m->offset);
        if (rc) {
            return rc;
        }
    }
    *stop = i;
    d->name = record->child_count > 0 ? record->names[record->child_count - 1] : "";
    return d->cursor->failed ? ends_early(d) : TN_OK;
}

static tn_rc check_entry(struct decoder *d, const struct tn_entry *entry)
{
    if (entry->kind != TN_ENTRY_ADD && entry->kind != TN_ENTRY_DELETE) {
        d->name = "_KIND";
        return fail(d, "is neither 0 (ADD) nor 1 (DELETE)");
    }
    if (entry->file.level < 0) {
        d->name = "_LEVEL";
        return fail(d, "is negative");
    }
    return TN_OK;
}

/* ---- copies and identity ---- */

static tn_rc copy_texts(struct decoder *d, struct tn_texts *texts)
{
    void *made = NULL;
    tn_rc rc = tn_arena_need(d->arena, texts->count * sizeof(char *) + 1, d->name, &made, d->err);
    const char **items = made;
    for (uint32_t i = 0; i < texts->count && rc == TN_OK; i++) {
        struct tn_bytes kept = {NULL, 0};
        rc = keep_bytes(d, tn_bytes_of(texts->items[i]), &kept);
        items[i] = (const char *)kept.data;
    }
    texts->items = items;
    return rc;
}

static tn_rc copy_stats(struct decoder *d, struct tn_stats *stats)
{
    size_t size = stats->null_count_count * sizeof(int64_t);
    struct tn_bytes counts = {(const unsigned char *)stats->null_counts, size};
    void *made = NULL;
    tn_rc rc = tn_arena_need(d->arena, size + 1, d->name, &made, d->err);
    if (rc == TN_OK) {
        if (size > 0) {
            memcpy(made, counts.data, size);
        }
        stats->null_counts = made;
        rc = keep_bytes(d, stats->min, &stats->min);
    }
    return rc == TN_OK ? keep_bytes(d, stats->max, &stats->max) : rc;
}

/* `at` holds a shallow copy; what it points to is made its own. */
static tn_rc copy_member(struct decoder *d, const struct member *m, void *at)
{
    struct tn_bytes kept = {NULL, 0};
    tn_rc rc = TN_OK;
    switch (m->kind) {
    case MEMBER_NAME:
    case MEMBER_OPT_TEXT:
        rc = keep_bytes(d, tn_bytes_of(*(const char **)at), &kept);
        *(const char **)at = (const char *)kept.data;
        return rc;
    case MEMBER_BYTES:
    case MEMBER_OPT_BYTES:
        return keep_bytes(d, *(struct tn_bytes *)at, at);
    case MEMBER_STATS:
        return copy_stats(d, at);
    case MEMBER_FILES:
    case MEMBER_OPT_TEXTS:
        return copy_texts(d, at);
    case MEMBER_VERSION:
    case MEMBER_I32:
    case MEMBER_I64:
    case MEMBER_COUNT:
    case MEMBER_OPT_I64:
    case MEMBER_OPT_I32:
    case MEMBER_FILE:
        break;
    }
    return TN_OK;
}

/* Two hashes over parts, each seeded with what came before, so no memory is needed. The size of a
 * part goes first: neighbours can't run into each other, and no hash is taken of nothing. */
struct identity {
    uint64_t high;
    uint64_t low;
};

static void identity_hash(struct identity *id, struct tn_bytes part)
{
    id->high = tn_hash_64(part, id->high);
    id->low = tn_hash_64(part, id->low);
}

static void identity_number(struct identity *id, int64_t number)
{
    unsigned char bytes[8];
    tn_store_u64(bytes, (uint64_t)number);
    identity_hash(id, (struct tn_bytes){bytes, sizeof bytes});
}

static void identity_add(struct identity *id, struct tn_bytes part)
{
    identity_number(id, (int64_t)part.size);
    if (part.size > 0) {
        identity_hash(id, part);
    }
}

/* ---- public ---- */

void tn_entry_encode(const struct tn_entry *entry, struct tn_buf *buf)
{
    encode_members(MEMBERS(entry_members), entry, buf);
    encode_members(MEMBERS(file_members), &entry->file, buf);
}

void tn_manifest_meta_encode(const struct tn_manifest_meta *meta, struct tn_buf *buf)
{
    encode_members(MEMBERS(list_members), meta, buf);
}

tn_rc tn_entry_plan(struct tn_bytes schema, struct tn_arena *arena, struct tn_meta_plan *plan,
                    struct tn_err *err)
{
    tn_rc rc = plan_record(schema, MEMBERS(entry_members), arena, plan, err);
    if (rc) {
        return rc;
    }
    int32_t file = find_name(&plan->type, "_FILE");
    TN_CHECK(file >= 0);
    rc = map_members(&plan->type.children[file], MEMBERS(file_members), arena, &plan->file, err);
    return rc ? tn_err_in(err, "_FILE") : TN_OK;
}

tn_rc tn_manifest_list_plan(struct tn_bytes schema, struct tn_arena *arena,
                            struct tn_meta_plan *plan, struct tn_err *err)
{
    return plan_record(schema, MEMBERS(list_members), arena, plan, err);
}

tn_rc tn_entry_decode(const struct tn_meta_plan *plan, struct tn_avro_cursor *cursor,
                      struct tn_arena *arena, struct tn_entry *entry, struct tn_err *err)
{
    struct decoder d = {cursor, arena, err, ""};
    struct tn_entry out;
    memset(&out, 0, sizeof out);
    const struct tn_avro_type *top = &plan->type;
    uint32_t at = 0;
    uint32_t end = 0;
    tn_rc rc = decode_fields(&d, top, plan->top, MEMBERS(entry_members), &out, 0, &at);
    if (rc == TN_OK) { /* the plan saw to it that there is one _FILE */
        rc = decode_fields(&d, &top->children[at], plan->file, MEMBERS(file_members), &out.file, 0,
                           &end);
    }
    if (rc == TN_OK) {
        rc = decode_fields(&d, top, plan->top, MEMBERS(entry_members), &out, at + 1, &end);
    }
    if (rc == TN_OK) {
        rc = check_entry(&d, &out);
    }
    if (rc == TN_OK) {
        *entry = out;
    }
    return rc;
}

tn_rc tn_manifest_meta_decode(const struct tn_meta_plan *plan, struct tn_avro_cursor *cursor,
                              struct tn_arena *arena, struct tn_manifest_meta *meta,
                              struct tn_err *err)
{
    struct decoder d = {cursor, arena, err, ""};
    struct tn_manifest_meta out;
    memset(&out, 0, sizeof out);
    uint32_t end = 0;
    tn_rc rc = decode_fields(&d, &plan->type, plan->top, MEMBERS(list_members), &out, 0, &end);
    if (rc == TN_OK) {
        *meta = out;
    }
    return rc;
}

struct tn_hash_128 tn_entry_identity(const struct tn_entry *entry, struct tn_arena *scratch)
{
    (void)scratch; /* hashed part by part, so that a full arena is no case */
    const struct tn_file_meta *file = &entry->file;
    struct identity id = {0x9e3779b97f4a7c15u, 0xc2b2ae3d27d4eb4fu};
    identity_add(&id, entry->partition);
    identity_number(&id, entry->bucket);
    identity_number(&id, file->level);
    identity_add(&id, tn_bytes_of(file->file_name));
    identity_number(&id, file->extra_files.count);
    for (uint32_t i = 0; i < file->extra_files.count; i++) {
        identity_add(&id, tn_bytes_of(file->extra_files.items[i]));
    }
    identity_number(&id, file->embedded_index.data != NULL);
    identity_add(&id, file->embedded_index);
    identity_number(&id, file->external_path != NULL);
    identity_add(&id, tn_bytes_of(file->external_path ? file->external_path : ""));
    return (struct tn_hash_128){id.high, id.low};
}

tn_rc tn_file_meta_copy(const struct tn_file_meta *from, struct tn_arena *arena,
                        struct tn_file_meta *to, struct tn_err *err)
{
    struct decoder d = {NULL, arena, err, ""};
    struct tn_file_meta out = *from;
    for (size_t i = 0; i < sizeof file_members / sizeof file_members[0]; i++) {
        const struct member *m = &file_members[i];
        void *at = (unsigned char *)&out + m->offset;
        d.name = m->name;
        tn_rc rc = member_present(m, at) ? copy_member(&d, m, at) : TN_OK;
        if (rc) {
            return rc;
        }
    }
    *to = out;
    return TN_OK;
}
