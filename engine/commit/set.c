#include "commit/set.h"

#include <stdint.h>

#include "base/check.h"

/* 0 when it can't be had. */
static size_t slots_for(uint64_t count_max)
{
    if (count_max > SIZE_MAX / sizeof(struct tn_hash_128) / 8) {
        return 0;
    }
    size_t slots = 2;
    while (slots < count_max * 2) {
        slots *= 2;
    }
    return slots;
}

size_t tn_set_size(uint64_t count_max)
{
    size_t slots = slots_for(count_max);
    return slots > 0 ? slots * sizeof(struct tn_hash_128) : SIZE_MAX;
}

tn_rc tn_set_init(struct tn_set *set, uint64_t count_max, struct tn_arena *arena,
                  struct tn_err *err)
{
    void *slots;
    size_t size = tn_set_size(count_max);
    tn_rc rc = tn_arena_need(arena, size, "the set of files", &slots, err);
    if (rc == TN_OK) {
        size_t slot_count = size / sizeof(struct tn_hash_128);
        *set =
            (struct tn_set){.slots = slots, .slot_count = slot_count, .count_max = slot_count / 2};
    }
    return rc;
}

void tn_set_clear(struct tn_set *set)
{
    memset(set->slots, 0, set->slot_count * sizeof *set->slots);
    set->count = 0;
}

/* The hash without its mark; never that of a free slot. */
static struct tn_hash_128 plain(struct tn_hash_128 hash)
{
    hash.low &= ~(uint64_t)1;
    if (hash.high == 0 && hash.low == 0) {
        hash.high = 1;
    }
    return hash;
}

/* The slot that holds the hash, or the free one where it would go. */
static struct tn_hash_128 *find(const struct tn_set *set, struct tn_hash_128 hash)
{
    TN_CHECK(set->slot_count > 0);
    size_t at = (size_t)hash.high & (set->slot_count - 1);
    for (;;) {
        struct tn_hash_128 *slot = &set->slots[at];
        bool is_free = slot->high == 0 && slot->low == 0;
        if (is_free || (slot->high == hash.high && (slot->low & ~(uint64_t)1) == hash.low)) {
            return slot;
        }
        at = (at + 1) & (set->slot_count - 1);
    }
}

static struct tn_hash_128 *find_used(const struct tn_set *set, struct tn_hash_128 hash)
{
    if (set->count == 0) {
        return NULL;
    }
    struct tn_hash_128 *slot = find(set, plain(hash));
    return slot->high != 0 || slot->low != 0 ? slot : NULL;
}

bool tn_set_add(struct tn_set *set, struct tn_hash_128 hash)
{
    if (find_used(set, hash)) {
        return true;
    }
    if (set->count == set->count_max) {
        return false;
    }
    *find(set, plain(hash)) = plain(hash);
    set->count++;
    return true;
}

bool tn_set_has(const struct tn_set *set, struct tn_hash_128 hash)
{
    return find_used(set, hash) != NULL;
}

bool tn_set_mark(struct tn_set *set, struct tn_hash_128 hash, bool mark)
{
    struct tn_hash_128 *slot = find_used(set, hash);
    if (slot) {
        slot->low = (slot->low & ~(uint64_t)1) | (mark ? 1 : 0);
    }
    return slot != NULL;
}

bool tn_set_marked(const struct tn_set *set, struct tn_hash_128 hash)
{
    const struct tn_hash_128 *slot = find_used(set, hash);
    return slot && (slot->low & 1) != 0;
}
