#include "ingest/parcel.h"

enum {
    VERSION = 1,
    HEAD_SIZE = 11, /* version, schema, input, size of the source */
    SOURCE_MAX = 255,
    REASON_MAX = 4096,
    KIND_BITS = 2, /* of an item's first byte; behind it the row's kind */
    KIND_MASK = (1 << KIND_BITS) - 1,
    NUMBER_BITS = 7, /* of a number's byte: the eighth says that there are more */
    NUMBER_BYTES = 5,
};

void tn_parcel_begin(struct tn_buf *parcel, const struct tn_parcel_head *head)
{
    unsigned char at[HEAD_SIZE];
    size_t size = head->source.size < SOURCE_MAX ? head->source.size : SOURCE_MAX;
    at[0] = VERSION;
    tn_store_u64(at + 1, (uint64_t)head->schema);
    at[9] = (unsigned char)head->input;
    at[10] = (unsigned char)size;
    tn_buf_append(parcel, at, sizeof at);
    tn_buf_append(parcel, head->source.data, size);
}

static void put_number(struct tn_buf *parcel, uint32_t number)
{
    for (; number >> NUMBER_BITS; number >>= NUMBER_BITS) {
        tn_buf_byte(parcel, (unsigned char)(number | 1 << NUMBER_BITS));
    }
    tn_buf_byte(parcel, (unsigned char)number);
}

void tn_parcel_add(struct tn_buf *parcel, const struct tn_parcel_item *item)
{
    size_t reason = item->reason.size < REASON_MAX ? item->reason.size : REASON_MAX;
    tn_buf_byte(parcel, (unsigned char)(item->kind | item->row_kind << KIND_BITS));
    put_number(parcel, item->record);
    put_number(parcel, item->part);
    if (item->kind == TN_PARCEL_PLACE) {
        return;
    }
    put_number(parcel, (uint32_t)reason);
    put_number(parcel, (uint32_t)item->data.size);
    tn_buf_append(parcel, item->reason.data, reason);
    tn_buf_append(parcel, item->data.data, item->data.size);
}

static struct tn_bytes take(struct tn_bytes *from, size_t size)
{
    struct tn_bytes taken = {from->data, size};
    from->data += size;
    from->size -= size;
    return taken;
}

tn_rc tn_parcel_open(struct tn_bytes *parcel, struct tn_parcel_head *head, struct tn_err *err)
{
    struct tn_bytes rest = *parcel;
    if (rest.size < HEAD_SIZE || rest.data[0] != VERSION || rest.data[9] >= TN_INPUT_COUNT ||
        rest.data[10] > rest.size - HEAD_SIZE) {
        return tn_err_set(err, TN_CORRUPT, 0, "no parcel of rows that this program knows");
    }
    struct tn_bytes at = take(&rest, HEAD_SIZE);
    *head = (struct tn_parcel_head){.schema = (int64_t)tn_load_u64(at.data + 1),
                                    .input = (enum tn_input)at.data[9],
                                    .source = take(&rest, at.data[10])};
    *parcel = rest;
    return TN_OK;
}

static bool take_number(struct tn_bytes *from, uint32_t *number)
{
    uint64_t value = 0;
    for (int i = 0; i < NUMBER_BYTES && from->size > 0; i++) {
        unsigned char byte = take(from, 1).data[0];
        value |= (uint64_t)(byte & ((1 << NUMBER_BITS) - 1)) << (i * NUMBER_BITS);
        if (byte >> NUMBER_BITS == 0) {
            *number = (uint32_t)value;
            return value <= UINT32_MAX;
        }
    }
    return false;
}

tn_rc tn_parcel_next(struct tn_bytes *parcel, struct tn_parcel_item *item, struct tn_err *err)
{
    struct tn_bytes rest = *parcel;
    uint32_t reason = 0;
    uint32_t size = 0;
    if (rest.size == 0) {
        return TN_ABSENT;
    }
    unsigned char kinds = take(&rest, 1).data[0];
    *item = (struct tn_parcel_item){.kind = (enum tn_parcel_kind)(kinds & KIND_MASK),
                                    .row_kind = (enum tn_row_kind)(kinds >> KIND_BITS)};
    bool whole = item->kind <= TN_PARCEL_PLACE && kinds >> KIND_BITS <= TN_ROW_DELETE &&
                 take_number(&rest, &item->record) && take_number(&rest, &item->part) &&
                 (item->kind == TN_PARCEL_PLACE ||
                  (take_number(&rest, &reason) && take_number(&rest, &size)));
    if (!whole || reason > rest.size || size > rest.size - reason) {
        return tn_err_set(err, TN_CORRUPT, 0, "a parcel of rows is damaged");
    }
    item->reason = take(&rest, reason);
    item->data = take(&rest, size);
    *parcel = rest;
    return TN_OK;
}
