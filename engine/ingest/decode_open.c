/* What a decoder is made of, and the memory that it takes. */
#include "base/check.h"
#include "ingest/decode_private.h"
#include "schema/default.h"

enum {
    SCRATCH_MAX = 192 * 1024,  /* texts of a record of 128 KiB, and a copy of it */
    COLUMN_SIZE = 320,         /* of a decoder: counted, and some more */
    DECODER_FIXED = 32 * 1024, /* and default values: a guess */
};

/* First, since a default may be longer than its text. */
static tn_rc read_defaults(struct tn_decoder *decoder, struct tn_arena *arena, struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(arena, decoder->column_count * sizeof decoder->defaults[0],
                             "a decoder", &memory, err);
    decoder->defaults = memory;
    for (uint32_t i = 0; rc == TN_OK && i < decoder->column_count; i++) {
        rc = tn_default_read(&decoder->spec.schema->fields[i], arena, &decoder->defaults[i], err);
    }
    return rc;
}

/* Two rows' own parts with all their defaults, and the bytes of one record, for a text stands in
 * one of the two rows only, or of the largest row. */
static tn_rc row_data_size(struct tn_decoder *decoder, struct tn_err *err)
{
    uint64_t size = decoder->spec.layout->fixed_size;
    for (uint32_t i = 0; i < decoder->column_count; i++) {
        const struct tn_value *value = &decoder->defaults[i];
        bool bytes = decoder->spec.layout->columns[i].slot == TN_SLOT_BYTES && !value->null;
        size += bytes ? value->as.bytes.size : 0;
    }
    uint64_t one = size;
    uint32_t texts = decoder->spec.record_size_max;
    if (decoder->spec.row_size_max > 0 && decoder->spec.row_size_max < texts) {
        texts = decoder->spec.row_size_max;
    }
    size = size * TN_DECODE_ROWS + texts;
    if (size > UINT32_MAX / 2) {
        return tn_err_set(err, TN_INVALID, 0, "records of %u bytes are too long",
                          decoder->spec.record_size_max);
    }
    decoder->row_data_size = (uint32_t)size;
    decoder->row_size_max =
        decoder->spec.row_size_max > 0 ? decoder->spec.row_size_max : (uint32_t)(one + texts);
    if (decoder->row_size_max > decoder->row_data_size) {
        decoder->row_size_max = decoder->row_data_size;
    }
    return TN_OK;
}

static uint32_t table_size(uint32_t count)
{
    uint32_t size = 4;
    while (size < 2 * count) {
        size *= 2;
    }
    return size;
}

/* What texts that don't stand in a record as they are take. Longer ones are rewritten in their
 * rows, but a source that is not padded has records that must be copied. */
static size_t scratch_size(uint32_t record_size_max, bool padded)
{
    size_t texts = record_size_max + (size_t)record_size_max / 2;
    if (texts > SCRATCH_MAX) {
        texts = padded ? SCRATCH_MAX : record_size_max + (size_t)SCRATCH_MAX / 3;
    }
    return texts + (size_t)2 * TN_SCAN_PAD;
}

uint32_t tn_decode_record_max(const struct tn_row_layout *layout, uint32_t row_size_max,
                              bool padded, size_t size)
{
    size_t fixed =
        DECODER_FIXED + layout->column_count * (size_t)COLUMN_SIZE + 2 * (size_t)layout->fixed_size;
    uint32_t low = 0;
    uint32_t high = size > fixed && size - fixed < UINT32_MAX / 4 ? (uint32_t)(size - fixed) : 1;
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        size_t row = middle < row_size_max ? middle : row_size_max;
        if ((padded ? middle : 0) + row + scratch_size(middle, padded) <= size - fixed) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static tn_rc take_memory(struct tn_decoder *decoder, struct tn_arena *arena, struct tn_err *err)
{
    uint32_t count = decoder->column_count;
    size_t seen_size = (count + 63) / 64 * sizeof(uint64_t);
    size_t texts = scratch_size(decoder->spec.record_size_max, decoder->spec.padded);
    decoder->table_mask = table_size(count) - 1;
    void *scratch = NULL;
    const struct {
        void *at;
        size_t size;
    } parts[] = {
        {&decoder->columns, count * sizeof decoder->columns[0]},
        {&decoder->keys, ((size_t)count + 1) * sizeof decoder->keys[0]},
        {&decoder->names, count * sizeof decoder->names[0]},
        {&decoder->table, ((size_t)decoder->table_mask + 1) * sizeof decoder->table[0]},
        {&decoder->rows[0].values, count * sizeof(struct tn_value)},
        {&decoder->rows[1].values, count * sizeof(struct tn_value)},
        {&decoder->rows[0].seen, seen_size},
        {&decoder->rows[1].seen, seen_size},
        {&decoder->row_data, decoder->row_data_size},
        {&scratch, texts},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        void *memory;
        tn_rc rc = tn_arena_need(arena, parts[i].size, "a decoder", &memory, err);
        if (rc) {
            return rc;
        }
        memcpy(parts[i].at, &memory, sizeof memory);
    }
    tn_buf_init(&decoder->scratch, scratch, texts);
    return TN_OK;
}

static void init_columns(struct tn_decoder *decoder)
{
    const struct tn_schema *schema = decoder->spec.schema;
    for (uint32_t i = 0; i < decoder->column_count; i++) {
        const struct tn_field *field = &schema->fields[i];
        tn_decode_column_init(decoder, i, tn_decode_meaning_of(decoder, i));
        decoder->columns[i].required = !field->type.nullable;
        tn_decode_key_init(&decoder->keys[i], field->name);
        decoder->keys[i].next = (i + 1) % decoder->column_count;
        decoder->names[i] = field->name;
        tn_decode_name_add(decoder, i);
    }
    for (uint32_t i = 0; i < schema->primary_keys.count; i++) {
        decoder->columns[schema->primary_keys.index[i]].required = true;
    }
}

tn_rc tn_decoder_open(struct tn_decoder **decoder, const struct tn_decode_spec *spec,
                      struct tn_arena *arena, struct tn_err *err)
{
    TN_CHECK(spec->layout->column_count == spec->schema->field_count);
    TN_CHECK(spec->schema->field_count > 0 && spec->schema->field_count <= TN_SCHEMA_FIELDS_MAX);
    void *memory;
    tn_rc rc = tn_arena_need(arena, sizeof **decoder, "a decoder", &memory, err);
    if (rc) {
        return rc;
    }
    struct tn_decoder *d = memory;
    *d = (struct tn_decoder){.spec = *spec, .column_count = spec->schema->field_count, .line = 1};
    rc = read_defaults(d, arena, err);
    if (!rc) {
        rc = row_data_size(d, err);
    }
    if (!rc) {
        rc = take_memory(d, arena, err);
    }
    if (!rc && spec->input == TN_INPUT_CSV) {
        d->csv_count_max = d->column_count + TN_CSV_DROPPED_MAX;
        rc = tn_arena_need(arena, d->csv_count_max * sizeof d->csv_columns[0], "a csv header",
                           &memory, err);
        d->csv_columns = memory;
    }
    if (rc) {
        return rc;
    }
    init_columns(d);
    tn_decode_parts_init(d);
    rc = spec->input == TN_INPUT_LINE ? tn_line_open(d, err) : TN_OK;
    if (rc == TN_OK) {
        *decoder = d;
    }
    return rc;
}
