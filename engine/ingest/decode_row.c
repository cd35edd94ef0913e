/* Values become packed rows: what is missing, what has no room. */
#include <inttypes.h>

#include "base/check.h"
#include "ingest/decode_private.h"

void tn_decode_row_begin(struct tn_decoder *decoder, struct tn_decode_row *row)
{
    memset(row->seen, 0, (decoder->column_count + 63) / 64 * sizeof row->seen[0]);
    row->seen_count = 0;
    row->any_null = false;
}

static uint32_t pack(struct tn_decoder *decoder, const struct tn_decode_row *row,
                     unsigned char *data)
{
    const struct tn_row_layout *layout = decoder->spec.layout;
    uint32_t size = tn_row_pack(layout, row->values, data);
    for (uint32_t i = 0; i < decoder->late_count; i++) {
        for (uint32_t c = 0; c < decoder->column_count; c++) {
            const struct tn_value *value = &row->values[c];
            bool bytes = layout->columns[c].slot == TN_SLOT_BYTES && !value->null;
            if (bytes && value->as.bytes.data == decoder->late[i].raw.data) {
                struct tn_bytes place = tn_row_bytes(layout, (struct tn_row){data, size}, c);
                tn_decode_late_write(decoder, &decoder->late[i], data + (place.data - data));
            }
        }
    }
    return size;
}

static void fill_unseen(struct tn_decoder *decoder, struct tn_decode_row *row)
{
    for (uint32_t i = 0; i < decoder->column_count; i++) {
        if (!(row->seen[i / 64] >> (i % 64) & 1)) {
            row->values[i] = (struct tn_value){.null = true};
        }
    }
}

/* Paimon checks NOT NULL before it fills in defaults, so a default rescues no NULL there. */
static bool settle_nulls(struct tn_decoder *decoder, struct tn_decode_row *row)
{
    if (row->seen_count < decoder->column_count) {
        fill_unseen(decoder, row);
    }
    for (uint32_t i = 0; i < decoder->column_count; i++) {
        if (!row->values[i].null) {
            continue;
        }
        if (decoder->columns[i].required) {
            (void)tn_decode_fail(decoder, NULL, "column '%.60s' is NOT NULL, and has no value",
                                 decoder->names[i]);
            return false;
        }
        row->values[i] = decoder->defaults[i];
    }
    return true;
}

bool tn_decode_row_settle(struct tn_decoder *decoder, struct tn_decode_row *row)
{
    bool whole = !row->any_null && row->seen_count == decoder->column_count;
    return whole || settle_nulls(decoder, row);
}

bool tn_decode_row_finish(struct tn_decoder *decoder, struct tn_decode_row *row,
                          enum tn_row_kind kind)
{
    if (!tn_decode_row_settle(decoder, row)) {
        return false;
    }
    struct tn_decoded *decoded = decoder->decoded;
    uint32_t room = decoder->row_data_size - decoder->row_data_used;
    uint32_t size = tn_row_packed_size(decoder->spec.layout, row->values);
    if (size > decoder->row_size_max) {
        (void)tn_decode_fail(decoder, NULL,
                             "a row of %" PRIu32 " bytes, at most %" PRIu32 " fit the memory", size,
                             decoder->row_size_max);
        return false;
    }
    bool keep = decoder->kept_count == decoded->count && decoder->kept_count < TN_DECODE_KEPT_MAX;
    if (keep && size <= room) {
        unsigned char *data = decoder->row_data + decoder->row_data_used;
        (void)pack(decoder, row, data);
        decoder->row_data_used += size;
        decoder->kept[decoder->kept_count++] = (struct tn_row){data, size};
    }
    decoder->finished[decoded->count % TN_DECODE_ROWS] = row;
    decoded->kind_of_two[decoded->count % TN_DECODE_ROWS] = kind;
    decoded->count++;
    return true;
}

struct tn_row tn_decoder_row(struct tn_decoder *decoder, struct tn_decoded *decoded, uint32_t i)
{
    TN_CHECK(i < decoded->count);
    if (i < decoder->kept_count) {
        return decoder->kept[i];
    }
    decoder->kept_count = 0; /* this row takes their memory */
    decoder->decoded = decoded;
    const struct tn_decode_row *row =
        decoder->batch.data ? tn_decode_batch_row(decoder, i) : decoder->finished[i];
    return (struct tn_row){decoder->row_data, pack(decoder, row, decoder->row_data)};
}

unsigned char *tn_decoder_room(struct tn_decoder *decoder, uint32_t *size)
{
    *size = decoder->row_size_max;
    return decoder->row_data;
}
