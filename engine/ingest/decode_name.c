/* The columns' names, as they stand in records. */
#include <string.h>

#include "base/hash.h"
#include "ingest/decode_private.h"

/* A name that JSON has to escape never stands in a record as it is: it gets a head that no mask
 * lets through. */
void tn_decode_key_init(struct tn_decode_key *key, const char *name)
{
    key->name = name;
    key->size = (uint32_t)strlen(name);
    unsigned char head[8] = {0};
    unsigned char mask[8] = {0};
    bool plain = true;
    for (uint32_t i = 0; i < key->size; i++) {
        unsigned char c = (unsigned char)name[i];
        plain = plain && c >= 0x20 && c != '"' && c != '\\';
    }
    for (uint32_t i = 0; plain && i < 8 && i <= key->size; i++) {
        head[i] = i < key->size ? (unsigned char)name[i] : '"';
        mask[i] = 0xFF;
    }
    key->mask = tn_load_u64(mask);
    key->head = plain ? tn_load_u64(head) : 1;
}

void tn_decode_name_add(struct tn_decoder *decoder, uint32_t column)
{
    const struct tn_decode_key *key = &decoder->keys[column];
    struct tn_bytes name = {(const unsigned char *)key->name, key->size};
    uint32_t at = (uint32_t)tn_hash_64(name, 0) & decoder->table_mask;
    while (decoder->table[at]) {
        at = (at + 1) & decoder->table_mask;
    }
    decoder->table[at] = (uint16_t)(column + 1);
}

int32_t tn_decode_find(const struct tn_decoder *decoder, struct tn_bytes name)
{
    uint32_t at = (uint32_t)tn_hash_64(name, 0) & decoder->table_mask;
    while (decoder->table[at]) {
        int32_t column = decoder->table[at] - 1;
        const struct tn_decode_key *key = &decoder->keys[column];
        if (key->size == name.size && memcmp(key->name, name.data, name.size) == 0) {
            return column;
        }
        at = (at + 1) & decoder->table_mask;
    }
    return -1;
}

const unsigned char *tn_decode_fail_unknown(struct tn_decoder *d, const unsigned char *at,
                                            struct tn_bytes name)
{
    const char *near = tn_nearest_name(name, d->names, d->column_count);
    return tn_decode_fail(d, at, "field '%.*s' is no column%s%s%s",
                          (int)(name.size < 60 ? name.size : 60), (const char *)name.data,
                          near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}
