#include "file/data_key.h"

#include <string.h>

uint32_t tn_data_key_size(const struct tn_row_layout *layout, struct tn_columns keys,
                          struct tn_row row)
{
    size_t size = 0;
    for (uint32_t i = 0; i < keys.count; i++) {
        if (layout->columns[keys.index[i]].slot == TN_SLOT_BYTES) {
            size += tn_row_bytes(layout, row, keys.index[i]).size;
        }
    }
    return (uint32_t)size;
}

uint32_t tn_data_key_copy(const struct tn_row_layout *layout, struct tn_columns keys,
                          struct tn_row row, unsigned char *out)
{
    uint32_t size = layout->fixed_size;
    memcpy(out, row.data, size);
    for (uint32_t i = 0; i < layout->column_count; i++) {
        if (layout->columns[i].slot != TN_SLOT_BYTES) {
            continue;
        }
        struct tn_bytes bytes = tn_row_bytes(layout, row, i);
        if (tn_columns_have(keys, i)) {
            memcpy(out + size, bytes.data, bytes.size);
            size += (uint32_t)bytes.size;
        }
        tn_store_u32(out + layout->columns[i].offset, size);
    }
    return size;
}
