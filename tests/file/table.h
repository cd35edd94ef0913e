/* table: schemas and rows drawn from a seed, for the tests that write and read data files. */
#pragma once

#include "file/data_reader.h"
#include "file/data_writer.h"
#include "file/setup.h"
#include "random.h"

enum {
    TABLE_COLUMNS_MAX = 24,
    TABLE_ROWS_MAX = 4000,
    TABLE_ROW_SIZE_MAX = 4096,
};

struct table {
    struct tn_field fields[TABLE_COLUMNS_MAX];
    const char *names[TABLE_COLUMNS_MAX];
    struct tn_type types[TABLE_COLUMNS_MAX];
    int32_t ids[TABLE_COLUMNS_MAX];
    uint32_t keys[4];
    enum tn_stats_mode modes[TABLE_COLUMNS_MAX];
    uint32_t lengths[TABLE_COLUMNS_MAX];
    struct tn_schema schema;
    struct tn_options options;
    struct tn_row_layout layout;
    struct tn_read_spec read;
    struct tn_kv *rows;
    uint32_t row_count;
};

static const char *const table_types[] = {
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL(9, 2)",
    "DECIMAL(18)",
    "DECIMAL(19, 4)",
    "DECIMAL(38)",
    "CHAR(8)",
    "VARCHAR(20)",
    "STRING",
    "BINARY(4)",
    "BYTES",
    "DATE",
    "TIME(3)",
    "TIMESTAMP(0)",
    "TIMESTAMP(3)",
    "TIMESTAMP(6)",
    "TIMESTAMP_LTZ(3)",
    "TIMESTAMP_LTZ(4)",
};

static inline void table_type(struct setup *s, const char *text, struct tn_type *type)
{
    tn_rc rc = tn_type_parse(tn_bytes_of(text), type, &s->err);
    CHECK_OK(rc, s->err);
}

/* Fields, key count and key columns are set: the rest follows. */
static inline void table_finish(struct setup *s, struct table *t, uint32_t count, uint32_t keys)
{
    for (uint32_t i = 0; i < count; i++) {
        t->types[i] = t->fields[i].type;
        t->names[i] = t->fields[i].name;
        t->ids[i] = t->fields[i].id;
    }
    t->schema = (struct tn_schema){.version = 3,
                                   .id = 4,
                                   .fields = t->fields,
                                   .field_count = count,
                                   .primary_keys = {t->keys, keys},
                                   .trimmed_keys = {t->keys, keys}};
    t->options.stats_modes = t->modes;
    t->options.stats_lengths = t->lengths;
    tn_rc rc = tn_row_layout_init(&t->layout, t->names, t->types, count, &s->arena, &s->err);
    CHECK_OK(rc, s->err);
    t->read = (struct tn_read_spec){&t->layout, t->ids, {t->keys, keys}};
}

static inline void table_random(struct setup *s, struct table *t, uint64_t *seed)
{
    *t = (struct table){0};
    uint32_t count = 1 + random_below(seed, TABLE_COLUMNS_MAX - 1);
    uint32_t keys = random_below(seed, 3);
    keys = keys < count ? keys : count;
    for (uint32_t i = 0; i < count; i++) {
        const char *text = table_types[random_below(seed, COUNT(table_types))];
        struct tn_field *field = &t->fields[i];
        table_type(s, text, &field->type);
        field->type.nullable = random_below(seed, 3) > 0;
        field->id = (int32_t)(10 + 3 * i);
        field->name = tn_arena_format(&s->arena, "c%u", i);
        t->modes[i] = (enum tn_stats_mode)random_below(seed, 4);
        t->lengths[i] = 1 + random_below(seed, 20);
    }
    for (uint32_t i = 0; i < keys; i++) { /* different columns, in any order */
        t->keys[i] = (random_below(seed, count) / keys * keys + i) % count;
        for (uint32_t k = 0; k < i; k++) {
            if (t->keys[k] == t->keys[i]) {
                t->keys[i] = (t->keys[i] + 1) % count;
                k = UINT32_MAX; /* from the start */
            }
        }
        t->fields[t->keys[i]].type.nullable = false;
    }
    static const enum tn_codec_id codecs[] = {TN_CODEC_ID_NULL, TN_CODEC_ID_DEFLATE,
                                              TN_CODEC_ID_ZSTANDARD, TN_CODEC_ID_ZSTANDARD};
    t->options.codec = codecs[random_below(seed, COUNT(codecs))];
    t->options.thin_mode = random_below(seed, 2) == 1;
    t->options.stats_dense = random_below(seed, 2) == 1;
    table_finish(s, t, count, keys);
}

static inline struct tn_bytes table_text(struct setup *s, uint64_t *seed, uint32_t length_max)
{
    static const char *const letters[] = {"a",
                                          "b",
                                          "z",
                                          "\x7f",
                                          "\xc3\xa9",
                                          "\xe4\xb8\xad",
                                          "\xed\x9f\xbf",
                                          "\xf0\x9f\x98\x80",
                                          "\xf4\x8f\xbf\xbf"};
    uint32_t length = random_below(seed, length_max + 1);
    unsigned char *data = tn_arena_take(&s->arena, 4 * length + 1);
    size_t size = 0;
    uint32_t kinds = 1 + random_below(seed, COUNT(letters)); /* few kinds: common beginnings */
    for (uint32_t i = 0; i < length; i++) {
        const char *letter = letters[random_below(seed, kinds)];
        memcpy(data + size, letter, strlen(letter));
        size += strlen(letter);
    }
    return (struct tn_bytes){data, size};
}

static inline int64_t table_integer(uint64_t *seed, int64_t min, int64_t max)
{
    switch (random_below(seed, 8)) {
    case 0:
        return min;
    case 1:
        return max;
    case 2:
        return 0;
    default:
        break;
    }
    uint64_t range = (uint64_t)max - (uint64_t)min;
    uint64_t drawn = random_next(seed) >> random_below(seed, 64);
    int64_t value = (int64_t)(range == UINT64_MAX ? drawn : drawn % (range + 1));
    return (int64_t)((uint64_t)min + (uint64_t)value);
}

static inline struct tn_i128 table_decimal(uint64_t *seed, uint32_t precision)
{
    struct tn_i128 value = {0, 0};
    bool negative = random_below(seed, 2) == 1;
    for (uint32_t i = random_below(seed, precision + 1); i > 0; i--) {
        CHECK(tn_i128_push_digit(&value, random_below(seed, 10), negative));
    }
    return value;
}

static inline double table_float(uint64_t *seed, bool narrow)
{
    static const double special[] = {0.0, -0.0, 1.5, -1e30, 1e-30};
    uint32_t draw = random_below(seed, 8);
    double value =
        draw < COUNT(special) ? special[draw] : (double)(int32_t)random_next(seed) / 1000;
    if (random_below(seed, 200) == 0) {
        value = __builtin_nan("");
    }
    return narrow ? (double)(float)value : value;
}

static inline void table_value(struct setup *s, const struct tn_type *type, uint64_t *seed,
                               struct tn_value *value)
{
    enum { DAY_MS = 86400000 };
    *value = (struct tn_value){.null = type->nullable && random_below(seed, 4) == 0};
    if (value->null) {
        return;
    }
    switch (type->kind) {
    case TN_TYPE_BOOLEAN:
        value->as.i64 = (int64_t)random_below(seed, 2);
        break;
    case TN_TYPE_TINYINT:
        value->as.i64 = table_integer(seed, INT8_MIN, INT8_MAX);
        break;
    case TN_TYPE_SMALLINT:
        value->as.i64 = table_integer(seed, INT16_MIN, INT16_MAX);
        break;
    case TN_TYPE_INT:
    case TN_TYPE_DATE:
        value->as.i64 = table_integer(seed, INT32_MIN, INT32_MAX);
        break;
    case TN_TYPE_BIGINT:
        value->as.i64 = table_integer(seed, INT64_MIN, INT64_MAX);
        break;
    case TN_TYPE_TIME:
        value->as.i64 = table_integer(seed, 0, DAY_MS - 1);
        break;
    case TN_TYPE_FLOAT:
    case TN_TYPE_DOUBLE:
        value->as.f64 = table_float(seed, type->kind == TN_TYPE_FLOAT);
        break;
    case TN_TYPE_DECIMAL:
        value->as.i128 = table_decimal(seed, type->precision);
        break;
    case TN_TYPE_TIMESTAMP:
    case TN_TYPE_TIMESTAMP_LTZ:
        value->as.i64 = table_integer(seed, -62135596800000, 253402300799999);
        value->nanos = type->precision > 3 ? random_below(seed, 1000) * 1000 : 0;
        break;
    case TN_TYPE_CHAR:
    case TN_TYPE_VARCHAR:
    case TN_TYPE_BINARY:
    case TN_TYPE_VARBINARY:
        value->as.bytes = table_text(s, seed, type->length < 40 ? (uint32_t)type->length : 40);
        break;
    case TN_TYPE_ARRAY:
    case TN_TYPE_MAP:
    case TN_TYPE_MULTISET:
    case TN_TYPE_ROW:
    case TN_TYPE_VARIANT:
    case TN_TYPE_BLOB:
    case TN_TYPE_KIND_COUNT:
        CHECK(false);
    }
}

static struct table *table_sorted; /* for qsort */

static inline int table_compare(const void *a, const void *b)
{
    const struct tn_kv *left = a;
    const struct tn_kv *right = b;
    return tn_row_compare(&table_sorted->layout, table_sorted->read.keys, left->row, right->row);
}

/* Sorted, each key once; rows of append tables as they come. */
static inline void table_rows(struct setup *s, struct table *t, uint32_t count, uint64_t *seed)
{
    struct tn_value values[TABLE_COLUMNS_MAX];
    struct tn_columns keys = t->read.keys;
    t->rows = tn_arena_take(&s->arena, count * sizeof(struct tn_kv) + 1);
    CHECK(t->rows);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t c = 0; c < t->layout.column_count; c++) {
            table_value(s, &t->types[c], seed, &values[c]);
        }
        uint32_t size = tn_row_packed_size(&t->layout, values);
        unsigned char *data = tn_arena_take(&s->arena, size);
        CHECK(data && size <= TABLE_ROW_SIZE_MAX);
        CHECK(tn_row_pack(&t->layout, values, data) == size);
        t->rows[i] = (struct tn_kv){
            .row = {data, size},
            .sequence = keys.count ? table_integer(seed, 0, INT64_MAX) : (int64_t)i,
            .kind = keys.count ? (enum tn_row_kind)random_below(seed, 4) : TN_ROW_INSERT,
        };
        t->rows[i].prefix = keys.count ? tn_row_prefix(&t->layout, keys, t->rows[i].row) : 0;
    }
    t->row_count = count;
    if (keys.count == 0) {
        return;
    }
    table_sorted = t;
    qsort(t->rows, count, sizeof(struct tn_kv), table_compare);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (kept == 0 || table_compare(&t->rows[kept - 1], &t->rows[i]) != 0) {
            t->rows[kept++] = t->rows[i];
        }
    }
    t->row_count = kept;
}

static inline void table_spec(const struct table *t, uint32_t block_size,
                              struct tn_data_writer_spec *spec)
{
    *spec = (struct tn_data_writer_spec){.schema = &t->schema,
                                         .options = &t->options,
                                         .layout = &t->layout,
                                         .keys = t->read.keys,
                                         .dir = "db.db/t/bucket-0/",
                                         .name = "data-0.avro",
                                         .level = 2,
                                         .source = 1,
                                         .block_size = block_size};
}

/* Writes all rows, with a rest after every `rest_every` of them (0: none). */
static inline tn_rc table_write(struct setup *s, const struct table *t, uint32_t block_size,
                                uint32_t rest_every, struct tn_file_meta *meta)
{
    static struct tn_data_writer writer;
    struct tn_data_writer_spec spec;
    table_spec(t, block_size, &spec);
    size_t mark = tn_arena_mark(&s->worker.arena);
    size_t state_mark = tn_arena_mark(&s->arena);
    tn_rc rc =
        tn_data_writer_begin(&writer, &spec, &s->worker, TABLE_ROW_SIZE_MAX, &s->arena, &s->err);
    if (rc) {
        return rc;
    }
    CHECK(tn_arena_mark(&s->arena) - state_mark <=
          tn_data_writer_state_size(&t->layout, &t->options, TABLE_ROW_SIZE_MAX));
    CHECK(tn_arena_mark(&s->worker.arena) - mark <=
          tn_data_writer_size(&t->layout, &t->options, block_size, TABLE_ROW_SIZE_MAX));
    for (uint32_t i = 0; i < t->row_count && rc == TN_OK; i++) {
        rc = tn_data_writer_add(&writer, &t->rows[i], &s->err);
        if (rc == TN_OK && rest_every > 0 && i % rest_every == rest_every - 1) {
            rc = tn_data_writer_rest(&writer, &s->err);
            tn_arena_reset(&s->worker.arena, mark);
            if (rc == TN_OK) {
                rc = tn_data_writer_wake(&writer, &s->worker, &s->err);
            }
        }
    }
    if (rc == TN_OK) {
        rc = tn_data_writer_finish(&writer, &s->arena, meta, &s->err);
    }
    if (rc) {
        tn_data_writer_abort(&writer);
    }
    tn_arena_reset(&s->worker.arena, mark);
    return rc;
}

static const char table_path[] = "db.db/t/bucket-0/data-0.avro";
