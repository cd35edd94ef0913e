#include "ingest/parcel.h"

enum {
    VERSION = 1,
    HEAD_SIZE = 11, /* version, schema, input, size of the source */
    SOURCE_MAX = 255,
    REASON_MAX = UINT16_MAX,
};
_Static_assert(TN_PARCEL_ITEM_SIZE == 16, "kind, row kind, reason size, record, part, data size");

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

void tn_parcel_add(struct tn_buf *parcel, const struct tn_parcel_item *item)
{
    unsigned char at[TN_PARCEL_ITEM_SIZE];
    size_t reason = item->reason.size < REASON_MAX ? item->reason.size : REASON_MAX;
    at[0] = (unsigned char)item->kind;
    at[1] = (unsigned char)item->row_kind;
    tn_store_u16(at + 2, (uint16_t)reason);
    tn_store_u32(at + 4, item->record);
    tn_store_u32(at + 8, item->part);
    tn_store_u32(at + 12, (uint32_t)item->data.size);
    tn_buf_append(parcel, at, sizeof at);
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
    if (rest.size < HEAD_SIZE || rest.data[0] != VERSION || rest.data[9] > TN_INPUT_LINE ||
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

tn_rc tn_parcel_next(struct tn_bytes *parcel, struct tn_parcel_item *item, struct tn_err *err)
{
    struct tn_bytes rest = *parcel;
    if (rest.size == 0) {
        return TN_ABSENT;
    }
    if (rest.size < TN_PARCEL_ITEM_SIZE) {
        return tn_err_set(err, TN_CORRUPT, 0, "a parcel of rows is cut");
    }
    struct tn_bytes at = take(&rest, TN_PARCEL_ITEM_SIZE);
    size_t reason = tn_load_u16(at.data + 2);
    size_t size = tn_load_u32(at.data + 12);
    if (at.data[0] > TN_PARCEL_HEADER || at.data[1] > TN_ROW_DELETE || reason > rest.size ||
        size > rest.size - reason) {
        return tn_err_set(err, TN_CORRUPT, 0, "a parcel of rows is damaged");
    }
    *item = (struct tn_parcel_item){.kind = (enum tn_parcel_kind)at.data[0],
                                    .row_kind = (enum tn_row_kind)at.data[1],
                                    .record = tn_load_u32(at.data + 4),
                                    .part = tn_load_u32(at.data + 8),
                                    .reason = take(&rest, reason)};
    item->data = take(&rest, size);
    *parcel = rest;
    return TN_OK;
}
