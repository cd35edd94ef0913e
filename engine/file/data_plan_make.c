#include <string.h>

#include "file/data_plan_private.h"
#include "file/data_schema.h"

static const char *const avro_names[] = {
    [TN_AVRO_NULL] = "null",     [TN_AVRO_BOOLEAN] = "boolean", [TN_AVRO_INT] = "int",
    [TN_AVRO_LONG] = "long",     [TN_AVRO_FLOAT] = "float",     [TN_AVRO_DOUBLE] = "double",
    [TN_AVRO_BYTES] = "bytes",   [TN_AVRO_STRING] = "string",   [TN_AVRO_FIXED] = "fixed",
    [TN_AVRO_ENUM] = "enum",     [TN_AVRO_ARRAY] = "array",     [TN_AVRO_MAP] = "map",
    [TN_AVRO_RECORD] = "record", [TN_AVRO_UNION] = "union",
};

static enum tn_decode_kind timestamp_kind(const struct tn_avro_type *file,
                                          const struct tn_column *to)
{
    if (file->kind != TN_AVRO_LONG) {
        return DECODE_NONE;
    }
    bool micros = file->logical == TN_AVRO_LOGICAL_MICROS ||
                  (file->logical == TN_AVRO_LOGICAL_NONE && to->type.precision > 3);
    if (to->slot == TN_SLOT_TIME96) {
        return micros ? DECODE_MICROS_TO_96 : DECODE_MILLIS_TO_96;
    }
    return micros ? DECODE_MICROS_TO_64 : DECODE_I64;
}

static enum tn_decode_kind integer_kind(const struct tn_avro_type *file, const struct tn_column *to)
{
    if (file->kind != TN_AVRO_INT && file->kind != TN_AVRO_LONG) {
        return DECODE_NONE;
    }
    switch (to->width) {
    case 1:
        return DECODE_I8;
    case 2:
        return DECODE_I16;
    case 4:
        return DECODE_I32;
    default:
        return DECODE_I64;
    }
}

/* DECODE_NONE when the file's type can't be the column's. */
static enum tn_decode_kind value_kind(const struct tn_avro_type *file, const struct tn_column *to)
{
    bool bytes = file->kind == TN_AVRO_BYTES || file->kind == TN_AVRO_STRING;
    switch (to->type.kind) {
    case TN_TYPE_BOOLEAN:
        return file->kind == TN_AVRO_BOOLEAN ? DECODE_BOOLEAN : DECODE_NONE;
    case TN_TYPE_TINYINT:
    case TN_TYPE_SMALLINT:
    case TN_TYPE_INT:
    case TN_TYPE_BIGINT:
    case TN_TYPE_DATE:
    case TN_TYPE_TIME:
        return integer_kind(file, to);
    case TN_TYPE_FLOAT:
        return file->kind == TN_AVRO_FLOAT ? DECODE_F32 : DECODE_NONE;
    case TN_TYPE_DOUBLE:
        return file->kind == TN_AVRO_DOUBLE ? DECODE_F64 : DECODE_NONE;
    case TN_TYPE_DECIMAL:
        if (file->kind != TN_AVRO_BYTES) {
            return DECODE_NONE;
        }
        return to->slot == TN_SLOT_DECIMAL64 ? DECODE_DECIMAL64 : DECODE_DECIMAL128;
    case TN_TYPE_CHAR:
    case TN_TYPE_VARCHAR:
    case TN_TYPE_BINARY:
    case TN_TYPE_VARBINARY:
        return bytes ? DECODE_BYTES : DECODE_NONE;
    case TN_TYPE_TIMESTAMP:
    case TN_TYPE_TIMESTAMP_LTZ:
        return timestamp_kind(file, to);
    case TN_TYPE_ARRAY:
    case TN_TYPE_MAP:
    case TN_TYPE_MULTISET:
    case TN_TYPE_ROW:
    case TN_TYPE_VARIANT:
    case TN_TYPE_BLOB:
    case TN_TYPE_KIND_COUNT:
        break;
    }
    return DECODE_NONE;
}

static struct tn_decode_op skip_op(const struct tn_avro_type *type)
{
    struct tn_decode_op op = {.kind = SKIP_OTHER, .branch = NO_BRANCH, .type = type};
    switch (type->kind) {
    case TN_AVRO_INT:
    case TN_AVRO_LONG:
    case TN_AVRO_ENUM:
        op.kind = SKIP_NUMBER;
        break;
    case TN_AVRO_BYTES:
    case TN_AVRO_STRING:
        op.kind = SKIP_BYTES;
        break;
    case TN_AVRO_BOOLEAN:
        op.kind = SKIP_FIXED;
        op.offset = 1;
        break;
    case TN_AVRO_FLOAT:
        op.kind = SKIP_FIXED;
        op.offset = 4;
        break;
    case TN_AVRO_DOUBLE:
        op.kind = SKIP_FIXED;
        op.offset = 8;
        break;
    case TN_AVRO_FIXED:
        op.kind = SKIP_FIXED;
        op.offset = type->fixed_size;
        break;
    case TN_AVRO_NULL:
    case TN_AVRO_ARRAY:
    case TN_AVRO_MAP:
    case TN_AVRO_RECORD:
    case TN_AVRO_UNION: /* reads the branch itself */
        return op;
    }
    op.branch = !type->nullable ? NO_BRANCH : type->null_last ? NULL_LAST : NULL_FIRST;
    return op;
}

struct maker {
    const struct tn_schema *schema;
    const struct tn_read_spec *read;
    struct tn_data_plan *plan;
    const struct tn_avro_type *record;
    struct tn_arena *arena;
    struct tn_err *err;
};

static const struct tn_field *field_of_id(const struct tn_schema *schema, int32_t id)
{
    for (uint32_t i = 0; i < schema->field_count; i++) {
        if (schema->fields[i].id == id) {
            return &schema->fields[i];
        }
    }
    return NULL;
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

static void lacks(struct maker *m, uint32_t column)
{
    unsigned char *bits = &m->plan->blank[column / 8];
    *bits = (unsigned char)(*bits | 1U << (column % 8));
}

static tn_rc no_cast(struct maker *m, const struct tn_type *from, const struct tn_column *to)
{
    char texts[2][TN_TYPE_TEXT_SIZE];
    struct tn_type from_type = *from;
    struct tn_type to_type = to->type;
    from_type.nullable = to_type.nullable = true; /* the text of NOT NULL is not what matters */
    return tn_err_set(m->err, TN_UNSUPPORTED, 0,
                      "column '%s': there is no cast from %s, which it was in older files, to %s",
                      to->name, tn_type_format(&from_type, texts[0]),
                      tn_type_format(&to_type, texts[1]));
}

static tn_rc wrong_type(struct maker *m, const struct tn_field *from,
                        const struct tn_avro_type *file)
{
    return tn_err_set(m->err, TN_CORRUPT, 0, "column '%s' is %s in the file, and avro's %s",
                      from->name, tn_type_name(from->type.kind), avro_names[file->kind]);
}

/* Takes a cast of the plan; the op's place in the row becomes the cast's. */
static tn_rc place_cast(struct maker *m, const struct tn_field *from, const struct tn_column *to,
                        uint32_t view, struct tn_decode_op *op)
{
    struct tn_cast_op *cast = &m->plan->casts[m->plan->cast_count];
    if (!tn_cast_find(&from->type, &to->type, &cast->cast)) {
        return no_cast(m, &from->type, to);
    }
    tn_rc rc = tn_row_layout_init(&cast->from, &from->name, &from->type, 1, m->arena, m->err);
    if (rc) {
        return rc;
    }
    void *row = NULL;
    rc = tn_arena_need(m->arena, cast->from.fixed_size, "a file's plan", &row, m->err);
    if (rc) {
        return rc;
    }
    cast->row = row;
    cast->source = (struct tn_decode_op){
        .kind = (uint8_t)value_kind(op->type, &cast->from.columns[0]),
        .branch = NO_BRANCH, /* it stood before the cast's own op */
        .precision = from->type.precision,
        .offset = cast->from.columns[0].offset,
    };
    if (cast->source.kind == DECODE_NONE) {
        return wrong_type(m, from, op->type);
    }
    if (cast->source.kind == DECODE_BYTES) {
        cast->source.offset = m->plan->view_count;
    }
    cast->to = to;
    cast->null_bit = op->null_bit;
    cast->null_byte = op->null_byte;
    cast->view = view;
    op->kind = DECODE_CAST;
    op->offset = m->plan->cast_count++;
    return TN_OK;
}

/* The column in the type it has always had. */
static tn_rc place_plain(struct maker *m, const struct tn_field *from, const struct tn_column *to,
                         uint32_t view, struct tn_decode_op *op)
{
    enum tn_decode_kind kind = value_kind(op->type, to);
    if (kind == DECODE_NONE) {
        return wrong_type(m, from, op->type);
    }
    op->kind = (uint8_t)kind;
    op->precision = to->type.precision;
    op->offset = kind == DECODE_BYTES ? view : to->offset;
    return TN_OK;
}

/* `view` is the column's number among the byte columns. */
static tn_rc place_column(struct maker *m, uint32_t column, uint32_t view)
{
    const struct tn_column *to = &m->read->layout->columns[column];
    const struct tn_field *from = field_of_id(m->schema, m->read->field_ids[column]);
    int32_t at = from ? find_name(m->record, from->name) : -1;
    if (at < 0) {
        lacks(m, column);
        return TN_OK;
    }
    struct tn_decode_op *op = &m->plan->ops[at];
    if (op->null_bit != 0) {
        return tn_err_set(m->err, TN_CORRUPT, 0, "column '%s' is wanted twice", from->name);
    }
    const struct tn_avro_type *file = &m->record->children[at];
    *op = (struct tn_decode_op){
        .branch = !file->nullable   ? NO_BRANCH
                  : file->null_last ? NULL_LAST
                                    : NULL_FIRST,
        .null_bit = (uint8_t)(1U << (column % 8)),
        .null_byte = column / 8,
        .key = tn_columns_have(m->read->keys, column),
        .type = file,
    };
    if (op->key && m->plan->key_end <= (uint32_t)at) {
        m->plan->key_end = (uint32_t)at + 1;
    }
    return tn_cast_needed(&from->type, &to->type) ? place_cast(m, from, to, view, op)
                                                  : place_plain(m, from, to, view, op);
}

static tn_rc place_columns(struct maker *m)
{
    const struct tn_row_layout *layout = m->read->layout;
    uint32_t view = 0;
    for (uint32_t i = 0; i < layout->column_count; i++) {
        tn_rc rc = place_column(m, i, view);
        if (rc) {
            return rc;
        }
        if (layout->columns[i].slot == TN_SLOT_BYTES) {
            m->plan->view_offsets[view++] = layout->columns[i].offset;
        }
    }
    for (uint32_t i = 0; i < m->read->keys.count; i++) {
        uint32_t column = m->read->keys.index[i];
        if (m->plan->blank[column / 8] >> (column % 8) & 1) {
            return tn_err_set(m->err, TN_CORRUPT, 0, "key column '%s' is not in the file",
                              layout->columns[column].name);
        }
    }
    return TN_OK;
}

/* Keyed files have both; the appended columns of row tracking are not looked at. */
static tn_rc place_system(struct maker *m)
{
    int32_t sequence = find_name(m->record, "_SEQUENCE_NUMBER");
    int32_t kind = find_name(m->record, "_VALUE_KIND");
    bool keyed = sequence >= 0 && kind >= 0;
    if (!keyed && m->read->keys.count > 0) {
        return tn_err_set(m->err, TN_CORRUPT, 0, "no _SEQUENCE_NUMBER and _VALUE_KIND in the file");
    }
    m->plan->keyed = keyed && m->read->keys.count > 0;
    if (!m->plan->keyed) {
        return TN_OK;
    }
    const struct tn_avro_type *types = m->record->children;
    bool plain = !types[sequence].nullable && !types[kind].nullable;
    if (!plain || types[sequence].kind != TN_AVRO_LONG || types[kind].kind != TN_AVRO_INT) {
        return tn_err_set(m->err, TN_CORRUPT, 0,
                          "_SEQUENCE_NUMBER and _VALUE_KIND are not long and int");
    }
    m->plan->ops[sequence].kind = DECODE_SEQUENCE;
    m->plan->ops[kind].kind = DECODE_KIND;
    return TN_OK;
}

static bool is_cast(const struct maker *m, uint32_t column)
{
    const struct tn_field *from = field_of_id(m->schema, m->read->field_ids[column]);
    return from && tn_cast_needed(&from->type, &m->read->layout->columns[column].type);
}

static bool is_padded(const struct tn_type *type)
{
    return type->kind == TN_TYPE_CHAR || type->kind == TN_TYPE_BINARY;
}

/* Room for the casts, and for what they pad where they do. */
static bool take_casts(struct maker *m)
{
    const struct tn_row_layout *layout = m->read->layout;
    struct tn_data_plan *plan = m->plan;
    uint32_t casts = 0;
    bool padded = false;
    for (uint32_t i = 0; i < layout->column_count; i++) {
        casts += is_cast(m, i);
        padded = padded || (is_cast(m, i) && is_padded(&layout->columns[i].type));
    }
    plan->casts = tn_arena_take(m->arena, casts * sizeof(struct tn_cast_op) + 1);
    plan->pads =
        padded ? tn_arena_take(m->arena, plan->view_count * sizeof(struct tn_data_pad)) : NULL;
    if (!plan->casts || (padded && !plan->pads)) {
        return false;
    }
    for (uint32_t i = 0, view = 0; padded && i < layout->column_count; i++) {
        if (layout->columns[i].slot == TN_SLOT_BYTES) {
            bool blank = layout->columns[i].type.kind == TN_TYPE_CHAR;
            plan->pads[view++] = (struct tn_data_pad){0, blank ? ' ' : 0};
        }
    }
    return true;
}

static tn_rc take_plan(struct maker *m)
{
    const struct tn_row_layout *layout = m->read->layout;
    uint32_t views = 0;
    for (uint32_t i = 0; i < layout->column_count; i++) {
        views += layout->columns[i].slot == TN_SLOT_BYTES;
    }
    struct tn_data_plan *plan = m->plan;
    *plan = (struct tn_data_plan){
        .ops = tn_arena_take(m->arena, m->record->child_count * sizeof(struct tn_decode_op) + 1),
        .op_count = m->record->child_count,
        .blank = tn_arena_take(m->arena, layout->fixed_size + 1),
        .fixed_size = layout->fixed_size,
        .views = tn_arena_take(m->arena, (views + 1) * sizeof(struct tn_bytes)),
        .view_offsets = tn_arena_take(m->arena, views * sizeof(uint32_t) + 1),
        .view_count = views,
    };
    if (!plan->ops || !plan->blank || !plan->views || !plan->view_offsets || !take_casts(m)) {
        return tn_err_set(m->err, TN_AGAIN, 0, "a file's plan: the arena is full");
    }
    for (uint32_t i = 0; i < views; i++) {
        plan->views[i] = (struct tn_bytes){tn_data_nothing, 0};
    }
    for (uint32_t i = 0; i < plan->op_count; i++) {
        plan->ops[i] = skip_op(&m->record->children[i]);
    }
    return TN_OK;
}

/* ---- what is known when all is placed ---- */

/* What stands in the file for a value of this kind: bytes, or enum tn_pass. */
static const int8_t passes[] = {
    [DECODE_BOOLEAN] = 1,
    [DECODE_I8] = PASS_NUMBER,
    [DECODE_I16] = PASS_NUMBER,
    [DECODE_I32] = PASS_NUMBER,
    [DECODE_I64] = PASS_NUMBER,
    [DECODE_F32] = 4,
    [DECODE_F64] = 8,
    [DECODE_DECIMAL64] = PASS_BYTES,
    [DECODE_DECIMAL128] = PASS_BYTES,
    [DECODE_MILLIS_TO_96] = PASS_NUMBER,
    [DECODE_MICROS_TO_64] = PASS_NUMBER,
    [DECODE_MICROS_TO_96] = PASS_NUMBER,
    [DECODE_BYTES] = PASS_BYTES,
    [DECODE_SEQUENCE] = PASS_NUMBER,
    [DECODE_KIND] = PASS_NUMBER,
    [SKIP_NUMBER] = PASS_NUMBER,
    [SKIP_BYTES] = PASS_BYTES,
    [SKIP_FIXED] = PASS_FIXED,
    [SKIP_OTHER] = PASS_OTHER,
    [DECODE_NONE] = 0,
};

static void place_passes(struct tn_data_plan *plan)
{
    for (uint32_t i = 0; i < plan->op_count; i++) {
        struct tn_decode_op *op = &plan->ops[i];
        bool cast = op->kind == DECODE_CAST;
        op->passed = passes[cast ? plan->casts[op->offset].source.kind : op->kind];
    }
}

static bool comparable(const struct tn_decode_op *op)
{
    bool plain = op->kind == DECODE_BYTES || op->kind == DECODE_I8 || op->kind == DECODE_I16 ||
                 op->kind == DECODE_I32 || op->kind == DECODE_I64;
    return plain && op->branch == NO_BRANCH;
}

/* The keys' columns come in the file as they are compared, in values that can be. */
static bool key_lies(const struct maker *m)
{
    uint32_t key = 0;
    for (uint32_t i = 0; i < m->plan->key_end; i++) {
        const struct tn_decode_op *op = &m->plan->ops[i];
        if (!op->key) {
            continue;
        }
        uint32_t column = m->read->keys.index[key++];
        bool next = op->null_byte == column / 8 && op->null_bit == 1U << (column % 8);
        if (!next || !comparable(op)) {
            return false;
        }
    }
    return key == m->read->keys.count;
}

tn_rc tn_data_plan_make(struct tn_bytes avro_schema, const struct tn_schema *schema,
                        const struct tn_read_spec *read, struct tn_arena *arena,
                        struct tn_data_plan *plan, struct tn_err *err)
{
    struct tn_avro_type *record = tn_arena_take(arena, sizeof *record);
    if (!record) {
        return tn_err_set(err, TN_AGAIN, 0, "a file's plan: the arena is full");
    }
    tn_rc rc = tn_data_avro_known(avro_schema, schema, arena, record, err);
    if (rc == TN_ABSENT) {
        rc = tn_avro_schema_parse(avro_schema, arena, record, err);
    }
    if (rc) {
        return rc;
    }
    if (record->kind != TN_AVRO_RECORD || record->nullable || record->child_count == 0) {
        return tn_err_set(err, TN_CORRUPT, 0, "the avro schema is no record with fields");
    }
    struct maker m = {schema, read, plan, record, arena, err};
    rc = take_plan(&m);
    if (rc == TN_OK) {
        rc = place_columns(&m);
    }
    if (rc == TN_OK) {
        rc = place_system(&m);
    }
    if (rc == TN_OK) {
        place_passes(plan);
        plan->key_lies = key_lies(&m);
    }
    return rc;
}
