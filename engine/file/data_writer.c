#include "file/data_writer.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "format/avro.h"

/* zlib: 268 KB for a window of 2^15 and memory level 8, and its bookkeeping. */
enum { DEFLATE_STATE_SIZE = 288 * 1024 };

enum {
    HEAD_ROOM = 20, /* of a block: two varints of at most ten bytes */
    SYNC_SIZE = 16,
    SCHEMA_TEXT_FIXED = 256, /* the record around the fields, and the two system fields */
    SCHEMA_TEXT_FIELD = 160, /* the longest field less its name; counted */
    HEADER_FIXED = 128,      /* container header less the schema text */
};

/* ---- the file's schema ---- */

static bool name_legal(const char *name)
{
    for (const char *c = name; *c; c++) {
        bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_';
        bool digit = *c >= '0' && *c <= '9';
        if (!letter && !(digit && c > name)) {
            return false;
        }
    }
    return name[0] != '\0';
}

/* The names of the two kinds of timestamps are swapped against Avro's own meaning; Paimon writes
 * them so. */
static const char *timestamp_type(const struct tn_type *type)
{
    bool millis = type->precision <= 3;
    if (type->kind == TN_TYPE_TIMESTAMP) {
        return millis ? "{\"type\":\"long\",\"logicalType\":\"timestamp-millis\"}"
                      : "{\"type\":\"long\",\"logicalType\":\"timestamp-micros\"}";
    }
    return millis ? "{\"type\":\"long\",\"logicalType\":\"local-timestamp-millis\"}"
                  : "{\"type\":\"long\",\"logicalType\":\"local-timestamp-micros\"}";
}

/* NULL for types that avro files hold in no form that is written. Source: format spec, 9.2. */
static const char *plain_type(const struct tn_type *type)
{
    switch (type->kind) {
    case TN_TYPE_BOOLEAN:
        return "\"boolean\"";
    case TN_TYPE_TINYINT:
    case TN_TYPE_SMALLINT:
    case TN_TYPE_INT:
        return "\"int\"";
    case TN_TYPE_BIGINT:
        return "\"long\"";
    case TN_TYPE_FLOAT:
        return "\"float\"";
    case TN_TYPE_DOUBLE:
        return "\"double\"";
    case TN_TYPE_CHAR:
    case TN_TYPE_VARCHAR:
        return "\"string\"";
    case TN_TYPE_BINARY:
    case TN_TYPE_VARBINARY:
        return "\"bytes\"";
    case TN_TYPE_DATE:
        return "{\"type\":\"int\",\"logicalType\":\"date\"}";
    case TN_TYPE_TIME:
        return type->precision <= 3 ? "{\"type\":\"int\",\"logicalType\":\"time-millis\"}" : NULL;
    case TN_TYPE_TIMESTAMP:
    case TN_TYPE_TIMESTAMP_LTZ:
        return type->precision <= 6 ? timestamp_type(type) : NULL;
    case TN_TYPE_DECIMAL: /* with its parameters: append_type */
    case TN_TYPE_ARRAY:
    case TN_TYPE_MAP:
    case TN_TYPE_MULTISET:
    case TN_TYPE_ROW:
    case TN_TYPE_VARIANT:
    case TN_TYPE_BLOB:
    case TN_TYPE_KIND_COUNT:
        break;
    }
    return NULL;
}

static void append_type(struct tn_buf *buf, const struct tn_type *type)
{
    if (type->kind == TN_TYPE_DECIMAL) {
        tn_buf_format(buf,
                      "{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":%d,"
                      "\"scale\":%d}",
                      type->precision, type->scale);
    } else {
        tn_buf_text(buf, plain_type(type));
    }
}

static void append_field(struct tn_buf *buf, const char *prefix, const char *name,
                         const struct tn_type *type, bool nullable)
{
    tn_buf_format(buf, "{\"name\":\"%s%s\",\"type\":%s", prefix, name,
                  nullable ? "[\"null\"," : "");
    append_type(buf, type);
    tn_buf_text(buf, nullable ? "],\"default\":null}" : "}");
}

static tn_rc check_field(const struct tn_field *field, struct tn_err *err)
{
    if (!name_legal(field->name)) {
        return tn_err_set(err, TN_UNSUPPORTED, 0,
                          "column '%s': avro's names have letters, digits and '_' only",
                          field->name);
    }
    if (field->type.kind != TN_TYPE_DECIMAL && !plain_type(&field->type)) {
        char text[TN_TYPE_TEXT_SIZE];
        return tn_err_set(err, TN_UNSUPPORTED, 0, "column '%s': avro files hold no %s", field->name,
                          tn_type_format(&field->type, text));
    }
    return TN_OK;
}

static size_t schema_text_max(const struct tn_schema *schema)
{
    size_t size = SCHEMA_TEXT_FIXED;
    for (uint32_t i = 0; i < schema->field_count; i++) {
        size += 2 * (SCHEMA_TEXT_FIELD + strlen(schema->fields[i].name));
    }
    return size;
}

static void append_schema(const struct tn_schema *schema, const struct tn_options *options,
                          struct tn_buf *buf)
{
    tn_buf_text(buf, "{\"type\":\"record\",\"name\":\"record\",\"namespace\":"
                     "\"org.apache.paimon.avro.generated\",\"fields\":[");
    struct tn_columns keys = schema->trimmed_keys;
    for (uint32_t i = 0; i < keys.count && !options->thin_mode; i++) {
        const struct tn_field *field = &schema->fields[keys.index[i]];
        append_field(buf, "_KEY_", field->name, &field->type, false);
        tn_buf_byte(buf, ',');
    }
    if (keys.count > 0) {
        tn_buf_text(buf, "{\"name\":\"_SEQUENCE_NUMBER\",\"type\":\"long\"},"
                         "{\"name\":\"_VALUE_KIND\",\"type\":\"int\"},");
    }
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const struct tn_field *field = &schema->fields[i];
        append_field(buf, "", field->name, &field->type, field->type.nullable);
        tn_buf_text(buf, i + 1 < schema->field_count ? "," : "]}");
    }
}

/* ---- the plan: how a packed row becomes an avro record ---- */

enum encode_kind {
    ENCODE_BOOLEAN,
    ENCODE_I8,
    ENCODE_I16,
    ENCODE_I32,
    ENCODE_I64,
    ENCODE_F32,
    ENCODE_F64,
    ENCODE_DECIMAL64,
    ENCODE_DECIMAL128,
    ENCODE_MICROS,
    ENCODE_BYTES,
};

/* By slot: what to do, and the most bytes that takes with the branch number (of byte columns:
 * without the bytes). */
static const struct {
    uint8_t kind;
    uint8_t size_max;
} encodings[] = {
    [TN_SLOT_I8] = {ENCODE_I8, 1 + 2},
    [TN_SLOT_I16] = {ENCODE_I16, 1 + 3},
    [TN_SLOT_I32] = {ENCODE_I32, 1 + 5},
    [TN_SLOT_I64] = {ENCODE_I64, 1 + 10},
    [TN_SLOT_F32] = {ENCODE_F32, 1 + 4},
    [TN_SLOT_F64] = {ENCODE_F64, 1 + 8},
    [TN_SLOT_DECIMAL64] = {ENCODE_DECIMAL64, 1 + 9},
    [TN_SLOT_DECIMAL128] = {ENCODE_DECIMAL128, 1 + 17},
    [TN_SLOT_TIME96] = {ENCODE_MICROS, 1 + 10},
    [TN_SLOT_BYTES] = {ENCODE_BYTES, 1 + 5},
};

struct encode_op {
    uint8_t kind; /* enum encode_kind */
    bool nullable;
    uint32_t column;
    uint32_t offset;
    uint32_t start_offset;
};

struct tn_encode_plan {
    struct encode_op *ops; /* of the `_KEY_` fields, then of the columns */
    uint32_t key_count;
    uint32_t count;
    uint32_t fixed_size;     /* of the layout */
    unsigned char *required; /* like the null bits of a row: 1 where NULL may not stand */
};

/* Avro bytes of the longest row: all columns twice, as keys and as values. */
static size_t encoded_max(const struct tn_row_layout *layout, uint32_t row_size_max)
{
    size_t size = 10 + 1; /* sequence number and kind */
    for (uint32_t i = 0; i < layout->column_count; i++) {
        size += 2 * (size_t)encodings[layout->columns[i].slot].size_max;
    }
    return size + 2 * (size_t)row_size_max;
}

static void plan_op(struct tn_encode_plan *plan, const struct tn_row_layout *layout,
                    uint32_t column, bool nullable)
{
    const struct tn_column *c = &layout->columns[column];
    bool boolean = c->type.kind == TN_TYPE_BOOLEAN;
    plan->ops[plan->count++] = (struct encode_op){
        .kind = boolean ? ENCODE_BOOLEAN : encodings[c->slot].kind,
        .nullable = nullable,
        .column = column,
        .offset = c->offset,
        .start_offset = c->start_offset,
    };
    if (!nullable) {
        unsigned char *bits = &plan->required[column / 8];
        *bits = (unsigned char)(*bits | 1U << (column % 8));
    }
}

static tn_rc plan_make(struct tn_data_writer *writer, struct tn_arena *state, struct tn_err *err)
{
    const struct tn_row_layout *layout = writer->spec.layout;
    struct tn_columns keys = writer->spec.keys;
    struct tn_encode_plan *plan = tn_arena_take(state, sizeof *plan);
    size_t count = keys.count + (size_t)layout->column_count;
    struct encode_op *ops = tn_arena_take(state, count * sizeof *ops);
    unsigned char *required = tn_arena_take(state, layout->column_count / 8 + 1);
    if (!plan || !ops || !required) {
        return tn_err_set(err, TN_AGAIN, 0, "encode plan: the arena is full");
    }
    *plan =
        (struct tn_encode_plan){.ops = ops, .fixed_size = layout->fixed_size, .required = required};
    for (uint32_t i = 0; i < keys.count && !writer->spec.options->thin_mode; i++) {
        plan_op(plan, layout, keys.index[i], false);
    }
    plan->key_count = plan->count;
    for (uint32_t i = 0; i < layout->column_count; i++) {
        plan_op(plan, layout, i, layout->columns[i].type.nullable);
    }
    writer->plan = plan;
    return TN_OK;
}

/* Big-endian, as few bytes as hold the sign. */
static inline unsigned char *put_decimal64(unsigned char *at, uint64_t value)
{
    uint64_t magnitude = value ^ (0 - (value >> 63));
    unsigned bits = magnitude == 0 ? 0 : 64 - (unsigned)__builtin_clzll(magnitude);
    unsigned size = bits / 8 + 1;
    *at++ = (unsigned char)(2 * size);
    for (unsigned i = size; i > 0; i--) {
        *at++ = (unsigned char)(value >> (8 * (i - 1)));
    }
    return at;
}

static unsigned char *put_decimal128(unsigned char *at, const unsigned char *slot)
{
    struct tn_i128 value = {tn_load_u64(slot), (int64_t)tn_load_u64(slot + 8)};
    uint32_t size = tn_i128_to_be(value, at + 1);
    *at = (unsigned char)(2 * size);
    return at + 1 + size;
}

static inline unsigned char *put_bytes(unsigned char *at, const struct encode_op *op,
                                       const unsigned char *row, uint32_t fixed_size)
{
    uint32_t start = op->start_offset ? tn_load_u32(row + op->start_offset) : fixed_size;
    uint32_t size = tn_load_u32(row + op->offset) - start;
    at = tn_avro_put_long(at, size);
    memcpy(at, row + start, size);
    return at + size;
}

/* False when the milliseconds have no microseconds of 64 bits. */
static inline bool micros_fit(int64_t millis)
{
    return millis <= INT64_MAX / 1000 - 1 && millis >= INT64_MIN / 1000 + 1;
}

static inline unsigned char *put_micros(unsigned char *at, const unsigned char *slot)
{
    int64_t millis = (int64_t)tn_load_u64(slot);
    uint32_t nanos = tn_load_u32(slot + 8);
    return micros_fit(millis) ? tn_avro_put_long(at, millis * 1000 + nanos / 1000) : NULL;
}

/* Writes the values of some ops; NULL when a timestamp can't be written. */
static unsigned char *encode(const struct tn_encode_plan *plan, uint32_t from, uint32_t to,
                             const unsigned char *row, unsigned char *at)
{
    for (uint32_t i = from; i < to && at; i++) {
        const struct encode_op *op = &plan->ops[i];
        const unsigned char *slot = row + op->offset;
        if (op->nullable) {
            bool null = (row[op->column / 8] >> (op->column % 8)) & 1;
            *at++ = null ? 0 : 2;
            if (null) {
                continue;
            }
        }
        switch ((enum encode_kind)op->kind) {
        case ENCODE_BOOLEAN:
            *at++ = slot[0];
            break;
        case ENCODE_I8:
            at = tn_avro_put_long(at, (int8_t)slot[0]);
            break;
        case ENCODE_I16:
            at = tn_avro_put_long(at, (int16_t)tn_load_u16(slot));
            break;
        case ENCODE_I32:
            at = tn_avro_put_long(at, (int32_t)tn_load_u32(slot));
            break;
        case ENCODE_I64:
            at = tn_avro_put_long(at, (int64_t)tn_load_u64(slot));
            break;
        case ENCODE_F32:
            memcpy(at, slot, 4);
            at += 4;
            break;
        case ENCODE_F64:
            memcpy(at, slot, 8);
            at += 8;
            break;
        case ENCODE_DECIMAL64:
            at = put_decimal64(at, tn_load_u64(slot));
            break;
        case ENCODE_DECIMAL128:
            at = put_decimal128(at, slot);
            break;
        case ENCODE_MICROS:
            at = put_micros(at, slot);
            break;
        case ENCODE_BYTES:
            at = put_bytes(at, op, row, plan->fixed_size);
            break;
        }
    }
    return at;
}

/* ---- rows ---- */

static bool has_required(const struct tn_data_writer *writer, const unsigned char *row)
{
    uint32_t size = (writer->spec.layout->column_count + 7) / 8;
    unsigned bad = 0;
    for (uint32_t i = 0; i < size; i++) {
        bad |= row[i] & writer->plan->required[i];
    }
    return bad == 0;
}

/* The column because of which a row can't be written. */
static tn_rc refuse_row(const struct tn_data_writer *writer, struct tn_row row, struct tn_err *err)
{
    const struct tn_row_layout *layout = writer->spec.layout;
    for (uint32_t i = 0; i < layout->column_count; i++) {
        const struct tn_column *c = &layout->columns[i];
        bool null = tn_row_null(row, i);
        if (null && (writer->plan->required[i / 8] >> (i % 8)) & 1) {
            return tn_err_set(err, TN_INVALID, 0, "column '%s' is NOT NULL, and a row has none",
                              c->name);
        }
        if (!null && c->slot == TN_SLOT_TIME96 &&
            !micros_fit((int64_t)tn_load_u64(row.data + c->offset))) {
            return tn_err_set(err, TN_INVALID, 0,
                              "column '%s': a timestamp is out of the range of microseconds",
                              c->name);
        }
    }
    return tn_err_set(err, TN_INVALID, 0, "a row can't be written");
}

/* Readers merge files by key order: a row out of order would hide others for good. */
static void check_order(const struct tn_data_writer *writer, const struct tn_kv *kv)
{
    if (writer->spec.keys.count == 0 || writer->row_count == 0) {
        return;
    }
    TN_CHECK(kv->prefix >= writer->last_prefix);
    if (kv->prefix == writer->last_prefix) {
        struct tn_row last = {writer->last_row, writer->last_row_size};
        TN_CHECK(tn_row_compare(writer->spec.layout, writer->spec.keys, last, kv->row) < 0);
    }
}

static tn_rc encode_row(struct tn_data_writer *writer, const struct tn_kv *kv, struct tn_err *err)
{
    const struct tn_encode_plan *plan = writer->plan;
    const unsigned char *row = kv->row.data;
    if (!has_required(writer, row)) {
        return refuse_row(writer, kv->row, err);
    }
    unsigned char *at = writer->block.data + writer->block.size;
    at = encode(plan, 0, plan->key_count, row, at);
    if (at && writer->spec.keys.count > 0) {
        at = tn_avro_put_long(at, kv->sequence);
        *at++ = (unsigned char)(2 * (unsigned)kv->kind);
    }
    if (at) {
        at = encode(plan, plan->key_count, plan->count, row, at);
    }
    if (!at) {
        return refuse_row(writer, kv->row, err);
    }
    writer->block.size = (size_t)(at - writer->block.data);
    TN_CHECK(writer->block.size <= writer->block.capacity);
    return TN_OK;
}

static void count_row(struct tn_data_writer *writer, const struct tn_kv *kv)
{
    if (writer->row_count == 0) {
        writer->min_sequence = writer->max_sequence = kv->sequence;
        tn_row_to_binary(writer->spec.layout, writer->spec.keys, kv->row, true, &writer->min_key);
        TN_CHECK(!writer->min_key.overflow);
    }
    if (kv->sequence < writer->min_sequence) {
        writer->min_sequence = kv->sequence;
    }
    if (kv->sequence > writer->max_sequence) {
        writer->max_sequence = kv->sequence;
    }
    writer->row_count++;
    writer->block_row_count++;
    writer->delete_row_count += tn_row_kind_retracts(kv->kind);
    memcpy(writer->last_row, kv->row.data, kv->row.size);
    writer->last_row_size = kv->row.size;
    writer->last_prefix = kv->prefix;
    tn_stats_add(&writer->stats, kv->row);
}

/* ---- blocks ---- */

static tn_rc append(struct tn_data_writer *writer, struct tn_bytes bytes, struct tn_err *err)
{
    tn_rc rc = writer->io->vtable->append(writer->io, writer->file, bytes, err);
    if (rc == TN_OK) {
        writer->file_size += (int64_t)bytes.size;
    }
    return rc;
}

/* The block is compressed behind room for its head, so that head, block and sync go out in one
 * piece. */
static tn_rc end_block(struct tn_data_writer *writer, struct tn_err *err)
{
    if (writer->block_row_count == 0) {
        return TN_OK;
    }
    struct tn_buf *packed = &writer->packed;
    packed->size = HEAD_ROOM;
    tn_rc rc = tn_codec_compress(&writer->worker->codec, writer->spec.options->codec,
                                 tn_buf_bytes(&writer->block), &writer->worker->arena, packed, err);
    if (rc) {
        return tn_err_in(err, "%s", writer->path);
    }
    unsigned char head[HEAD_ROOM];
    unsigned char *end = tn_avro_put_long(head, writer->block_row_count);
    end = tn_avro_put_long(end, (int64_t)(packed->size - HEAD_ROOM));
    size_t head_size = (size_t)(end - head);
    memcpy(packed->data + HEAD_ROOM - head_size, head, head_size);
    tn_buf_append(packed, writer->sync, SYNC_SIZE);
    TN_CHECK(!packed->overflow);
    struct tn_bytes bytes = {packed->data + HEAD_ROOM - head_size,
                             packed->size - HEAD_ROOM + head_size};
    rc = append(writer, bytes, err);
    writer->block.size = 0;
    writer->block_row_count = 0;
    return rc;
}

/* ---- memory ---- */

static size_t rounded(size_t size)
{
    size_t align = _Alignof(max_align_t);
    return (size + align - 1) & ~(align - 1);
}

static size_t packed_max(size_t raw_size)
{
    size_t size = raw_size;
    static const enum tn_codec_id written[] = {TN_CODEC_ID_DEFLATE, TN_CODEC_ID_ZSTANDARD};
    for (size_t i = 0; i < sizeof written / sizeof written[0]; i++) {
        size_t bound = tn_codec_bound(written[i], raw_size);
        size = bound > size ? bound : size;
    }
    return HEAD_ROOM + size + SYNC_SIZE;
}

static size_t binary_key_max(const struct tn_row_layout *layout, size_t row_size)
{
    size_t count = layout->column_count;
    return 4 + (count + 71) / 64 * 8 + count * (8 + 16 + 8) + row_size;
}

static tn_rc take_buffers(struct tn_data_writer *writer, struct tn_worker *worker,
                          struct tn_err *err)
{
    size_t raw = tn_data_writer_block_max(writer->spec.layout, writer->spec.block_size,
                                          writer->row_size_max);
    size_t packed = packed_max(raw);
    void *memory = NULL;
    tn_rc rc =
        tn_arena_need(&worker->arena, rounded(raw) + packed, "a writer's blocks", &memory, err);
    if (rc) {
        return rc;
    }
    tn_buf_init(&writer->block, memory, raw);
    tn_buf_init(&writer->packed, (unsigned char *)memory + rounded(raw), packed);
    writer->worker = worker;
    return TN_OK;
}

static tn_rc take_state(struct tn_data_writer *writer, struct tn_arena *state, struct tn_err *err)
{
    const struct tn_data_writer_spec *spec = &writer->spec;
    size_t key_size = binary_key_max(spec->layout, writer->row_size_max);
    writer->path = tn_arena_format(state, "%s%s", spec->dir, spec->name);
    unsigned char *key = tn_arena_take_raw(state, key_size);
    writer->last_row = tn_arena_take_raw(state, writer->row_size_max);
    if (!writer->path || !key || !writer->last_row) {
        return tn_err_set(err, TN_AGAIN, 0, "a writer's state: the arena is full");
    }
    tn_buf_init(&writer->min_key, key, key_size);
    tn_rc rc = tn_stats_init(&writer->stats, spec->layout, spec->options, state, err);
    return rc ? rc : plan_make(writer, state, err);
}

/* ---- the file ---- */

static tn_rc create(struct tn_data_writer *writer, struct tn_err *err)
{
    struct tn_io *io = writer->io;
    tn_rc rc = io->vtable->create(io, writer->path, &writer->file, err);
    if (rc != TN_ABSENT) {
        return rc;
    }
    rc = io->vtable->make_dir(io, writer->spec.dir, err);
    return rc ? rc : io->vtable->create(io, writer->path, &writer->file, err);
}

/* The head of the file, made in the worker's arena, which is left as it was. */
static tn_rc make_head(struct tn_data_writer *writer, struct tn_worker *worker, struct tn_buf *head,
                       struct tn_err *err)
{
    struct tn_bytes text;
    tn_rc rc =
        tn_data_avro_schema(writer->spec.schema, writer->spec.options, &worker->arena, &text, err);
    if (rc) {
        return rc;
    }
    void *memory = NULL;
    rc = tn_arena_need(&worker->arena, text.size + HEADER_FIXED, "a file's head", &memory, err);
    if (rc) {
        return rc;
    }
    tn_buf_init(head, memory, text.size + HEADER_FIXED);
    tn_store_u64(writer->sync, worker->clock->vtable->random(worker->clock));
    tn_store_u64(writer->sync + 8, worker->clock->vtable->random(worker->clock));
    tn_avro_header_encode(text, writer->spec.options->codec, writer->sync, head);
    TN_CHECK(!head->overflow);
    return TN_OK;
}

static tn_rc write_head(struct tn_data_writer *writer, struct tn_worker *worker, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&worker->arena);
    struct tn_buf head;
    tn_rc rc = make_head(writer, worker, &head, err);
    if (rc == TN_OK) {
        rc = create(writer, err);
    }
    if (rc == TN_OK) {
        rc = append(writer, tn_buf_bytes(&head), err);
        if (rc) {
            tn_data_writer_abort(writer);
        }
    }
    tn_arena_reset(&worker->arena, mark);
    return rc;
}

static tn_rc max_key(const struct tn_data_writer *writer, struct tn_arena *arena,
                     struct tn_bytes *key, struct tn_err *err)
{
    size_t size = binary_key_max(writer->spec.layout, writer->last_row_size);
    void *memory = NULL;
    tn_rc rc = tn_arena_need(arena, size, "a file's last key", &memory, err);
    if (rc) {
        return rc;
    }
    struct tn_buf buf;
    tn_buf_init(&buf, memory, size);
    struct tn_row last = {writer->last_row, writer->last_row_size};
    tn_row_to_binary(writer->spec.layout, writer->spec.keys, last, true, &buf);
    TN_CHECK(!buf.overflow);
    *key = tn_buf_bytes(&buf);
    return TN_OK;
}

static tn_rc describe(const struct tn_data_writer *writer, struct tn_arena *arena,
                      struct tn_file_meta *meta, struct tn_err *err)
{
    struct tn_clock *clock = writer->worker->clock;
    bool copied = false;
    struct tn_file_meta out = {
        .file_name = tn_arena_text(arena, tn_bytes_of(writer->spec.name)),
        .file_size = writer->file_size,
        .row_count = writer->row_count,
        .min_key = tn_arena_copy(arena, tn_buf_bytes(&writer->min_key), &copied),
        .min_sequence = writer->min_sequence,
        .max_sequence = writer->max_sequence,
        .schema_id = writer->spec.schema->id,
        .level = writer->spec.level,
        .extra_files = {.present = true},
        .creation_time_ms = {clock->vtable->local_ms(clock), true},
        .delete_row_count = {writer->delete_row_count, true},
        .file_source = {writer->spec.source, true},
    };
    if (!out.file_name || !copied) {
        return tn_err_set(err, TN_AGAIN, 0, "%s: no room to describe it", writer->path);
    }
    tn_rc rc = max_key(writer, arena, &out.max_key, err);
    if (rc == TN_OK) {
        rc = tn_stats_finish(&writer->stats, writer->spec.options, writer->spec.keys, arena,
                             &out.value_stats, &out.value_stats_cols, &out.key_stats, err);
    }
    if (rc == TN_OK) {
        *meta = out;
    }
    return rc;
}

static void close_file(struct tn_data_writer *writer)
{
    if (writer->file >= 0) {
        writer->io->vtable->close(writer->io, writer->file);
        writer->file = -1;
    }
}

/* ---- public ---- */

tn_rc tn_data_avro_schema(const struct tn_schema *schema, const struct tn_options *options,
                          struct tn_arena *arena, struct tn_bytes *text, struct tn_err *err)
{
    for (uint32_t i = 0; i < schema->field_count; i++) {
        tn_rc rc = check_field(&schema->fields[i], err);
        if (rc) {
            return rc;
        }
    }
    size_t size = schema_text_max(schema);
    void *memory = NULL;
    tn_rc rc = tn_arena_need(arena, size, "an avro schema", &memory, err);
    if (rc) {
        return rc;
    }
    struct tn_buf buf;
    tn_buf_init(&buf, memory, size);
    append_schema(schema, options, &buf);
    TN_CHECK(!buf.overflow);
    *text = tn_buf_bytes(&buf);
    return TN_OK;
}

size_t tn_data_writer_block_max(const struct tn_row_layout *layout, uint32_t block_size,
                                uint32_t row_size_max)
{
    return block_size + encoded_max(layout, row_size_max);
}

size_t tn_data_writer_size(const struct tn_row_layout *layout, const struct tn_options *options,
                           uint32_t block_size, uint32_t row_size_max)
{
    size_t raw = tn_data_writer_block_max(layout, block_size, row_size_max);
    size_t buffers = rounded(raw) + rounded(packed_max(raw));
    size_t head = SCHEMA_TEXT_FIXED + HEADER_FIXED + 2 * _Alignof(max_align_t);
    for (uint32_t i = 0; i < layout->column_count; i++) {
        head += 4 * (SCHEMA_TEXT_FIELD + strlen(layout->columns[i].name));
    }
    size_t codec = options->codec == TN_CODEC_ID_DEFLATE ? DEFLATE_STATE_SIZE : 0;
    return (buffers > head ? buffers : head) + codec + _Alignof(max_align_t);
}

size_t tn_data_writer_state_size(const struct tn_row_layout *layout,
                                 const struct tn_options *options, uint32_t row_size_max)
{
    size_t count = layout->column_count;
    return tn_stats_size(layout, options) + rounded(sizeof(struct tn_encode_plan)) +
           rounded(2 * count * sizeof(struct encode_op)) + rounded(count / 8 + 1) +
           rounded(binary_key_max(layout, row_size_max)) + rounded(row_size_max) +
           TN_DATA_PATH_MAX + 2 * _Alignof(max_align_t);
}

tn_rc tn_data_writer_begin(struct tn_data_writer *writer, const struct tn_data_writer_spec *spec,
                           struct tn_worker *worker, uint32_t row_size_max, struct tn_arena *state,
                           struct tn_err *err)
{
    *writer = (struct tn_data_writer){
        .spec = *spec, .io = worker->io, .file = -1, .row_size_max = row_size_max};
    if (strlen(spec->dir) + strlen(spec->name) >= TN_DATA_PATH_MAX) {
        return tn_err_set(err, TN_INVALID, 0, "%s%s: a path of more than %d bytes", spec->dir,
                          spec->name, TN_DATA_PATH_MAX);
    }
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc = take_state(writer, state, err);
    if (rc == TN_OK) {
        rc = write_head(writer, worker, err);
    }
    if (rc) {
        return rc;
    }
    rc = take_buffers(writer, worker, err);
    if (rc) {
        tn_data_writer_abort(writer);
        tn_arena_reset(&worker->arena, mark);
    }
    return rc;
}

tn_rc tn_data_writer_add(struct tn_data_writer *writer, const struct tn_kv *kv, struct tn_err *err)
{
    TN_CHECK(writer->worker != NULL);
    if (kv->row.size > writer->row_size_max) {
        return tn_err_set(err, TN_INVALID, 0, "a row of %" PRIu32 " bytes, at most %" PRIu32,
                          kv->row.size, writer->row_size_max);
    }
    check_order(writer, kv);
    tn_rc rc = encode_row(writer, kv, err);
    if (rc) {
        return rc;
    }
    count_row(writer, kv);
    return writer->block.size >= writer->spec.block_size ? end_block(writer, err) : TN_OK;
}

tn_rc tn_data_writer_rest(struct tn_data_writer *writer, struct tn_err *err)
{
    TN_CHECK(writer->worker != NULL);
    tn_rc rc = end_block(writer, err);
    close_file(writer);
    writer->worker = NULL;
    return rc;
}

tn_rc tn_data_writer_wake(struct tn_data_writer *writer, struct tn_worker *worker,
                          struct tn_err *err)
{
    TN_CHECK(writer->worker == NULL);
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc = take_buffers(writer, worker, err);
    if (rc) {
        return rc;
    }
    rc = writer->io->vtable->reopen(writer->io, writer->path, (uint64_t)writer->file_size,
                                    &writer->file, err);
    if (rc) {
        writer->file = -1;
        writer->worker = NULL;
        tn_arena_reset(&worker->arena, mark);
    }
    return rc;
}

tn_rc tn_data_writer_finish(struct tn_data_writer *writer, struct tn_arena *arena,
                            struct tn_file_meta *meta, struct tn_err *err)
{
    TN_CHECK(writer->worker != NULL);
    TN_CHECK(writer->row_count > 0);
    tn_rc rc = end_block(writer, err);
    if (rc == TN_OK) {
        rc = describe(writer, arena, meta, err);
    }
    if (rc == TN_OK) {
        close_file(writer);
        writer->worker = NULL;
    }
    return rc;
}

/* The file may be gone already, and nobody refers to it: nothing to report. */
void tn_data_writer_abort(struct tn_data_writer *writer)
{
    struct tn_err ignored;
    close_file(writer);
    if (writer->path) {
        (void)writer->io->vtable->unlink(writer->io, writer->path, &ignored);
    }
    writer->worker = NULL;
}
