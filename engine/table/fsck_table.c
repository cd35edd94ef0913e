#include "base/check.h"
#include "table/fsck_private.h"

enum { SLOTS_FIRST = 64 };

static const struct tn_hash_128 *key_at(const struct tn_fsck_table *table, size_t index)
{
    return (const struct tn_hash_128 *)(const void *)(table->slots + index * table->slot_size);
}

/* The hash without its mark; never that of a free slot. */
static struct tn_hash_128 plain(struct tn_hash_128 key)
{
    key.low &= ~(uint64_t)TN_FSCK_MARKS;
    key.high = key.high == 0 && key.low == 0 ? 1 : key.high;
    return key;
}

static bool is_free(const struct tn_hash_128 *key)
{
    return key->high == 0 && (key->low & ~(uint64_t)TN_FSCK_MARKS) == 0;
}

/* Where the key is, or the free slot where it would go. */
static size_t place(const struct tn_fsck_table *table, struct tn_hash_128 key)
{
    size_t at = (size_t)key.high & (table->slot_count - 1);
    for (;;) {
        const struct tn_hash_128 *slot = key_at(table, at);
        bool same = slot->high == key.high && (slot->low & ~(uint64_t)TN_FSCK_MARKS) == key.low;
        if (same || is_free(slot)) {
            return at;
        }
        at = (at + 1) & (table->slot_count - 1);
    }
}

void tn_fsck_table_init(struct tn_fsck_table *table, struct tn_heap *heap, size_t slot_size,
                        const char *what)
{
    TN_CHECK(slot_size >= sizeof(struct tn_hash_128) && slot_size % 8 == 0);
    *table = (struct tn_fsck_table){.heap = heap, .what = what, .slot_size = slot_size};
}

void tn_fsck_table_clear(struct tn_fsck_table *table)
{
    tn_heap_give(table->heap, table->slots);
    table->slots = NULL;
    table->slot_count = 0;
    table->count = 0;
}

void *tn_fsck_table_find(const struct tn_fsck_table *table, struct tn_hash_128 key)
{
    if (table->count == 0) {
        return NULL;
    }
    size_t at = place(table, plain(key));
    return is_free(key_at(table, at)) ? NULL : table->slots + at * table->slot_size;
}

/* Twice as many slots; what is there moves. */
static tn_rc grow(struct tn_fsck_table *table, struct tn_err *err)
{
    struct tn_fsck_table larger = *table;
    larger.slot_count = table->slot_count ? table->slot_count * 2 : SLOTS_FIRST;
    size_t size = larger.slot_count * table->slot_size;
    larger.slots =
        size / table->slot_size == larger.slot_count ? tn_heap_take(table->heap, size) : NULL;
    if (!larger.slots) {
        return tn_err_set(err, TN_AGAIN, 0,
                          "fsck: %s: %zu of them are known, one more needs %zu KiB in one piece, "
                          "%zu of %zu KiB are free",
                          table->what, table->count, size / 1024,
                          (table->heap->size - table->heap->used) / 1024, table->heap->size / 1024);
    }
    memset(larger.slots, 0, size);
    for (size_t i = 0; i < table->slot_count; i++) {
        const struct tn_hash_128 *key = key_at(table, i);
        if (!is_free(key)) {
            memcpy(larger.slots + place(&larger, plain(*key)) * table->slot_size, key,
                   table->slot_size);
        }
    }
    tn_heap_give(table->heap, table->slots);
    *table = larger;
    return TN_OK;
}

tn_rc tn_fsck_table_add(struct tn_fsck_table *table, struct tn_hash_128 key, void **slot,
                        bool *is_new, struct tn_err *err)
{
    key = plain(key);
    void *found = tn_fsck_table_find(table, key);
    *is_new = !found;
    if (!found) {
        tn_rc rc = (table->count + 1) * 4 > table->slot_count * 3 ? grow(table, err) : TN_OK;
        if (rc != TN_OK) {
            return rc;
        }
        TN_CHECK(table->slots != NULL);
        found = table->slots + place(table, key) * table->slot_size;
        memcpy(found, &key, sizeof key);
        table->count++;
    }
    *slot = found;
    return TN_OK;
}

void *tn_fsck_table_next(const struct tn_fsck_table *table, const void *slot)
{
    size_t at = 0;
    if (slot) {
        at = (size_t)((const unsigned char *)slot - table->slots) / table->slot_size + 1;
    }
    while (at < table->slot_count && is_free(key_at(table, at))) {
        at++;
    }
    return at < table->slot_count ? table->slots + at * table->slot_size : NULL;
}
