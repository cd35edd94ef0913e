#include "merge/merge.h"

#include <stdalign.h>
#include <stddef.h>

#include "base/check.h"

int tn_kv_compare_sequence_fields(const struct tn_order *order, struct tn_row a, struct tn_row b)
{
    for (uint32_t i = 0; i < order->sequence_fields.count; i++) {
        uint32_t column = order->sequence_fields.index[i];
        bool a_null = tn_row_null(a, column);
        bool b_null = tn_row_null(b, column);
        if (a_null || b_null) {
            if (a_null != b_null) {
                return a_null ? -1 : 1;
            }
            continue;
        }
        int c = tn_row_compare(order->layout, (struct tn_columns){&column, 1}, a, b);
        if (c != 0) {
            return order->sequence_descending ? -c : c;
        }
    }
    return 0;
}

bool tn_kv_newer(const struct tn_order *order, const struct tn_kv *a, const struct tn_kv *b)
{
    if (order->sequence_fields.count > 0) {
        int c = tn_kv_compare_sequence_fields(order, a->row, b->row);
        if (c != 0) {
            return c > 0;
        }
    }
    if (a->sequence != b->sequence) {
        return a->sequence > b->sequence;
    }
    bool a_retracts = tn_row_kind_retracts(a->kind);
    if (a_retracts != tn_row_kind_retracts(b->kind)) {
        return !a_retracts;
    }
    return a->level < b->level;
}

static int compare_keys(const struct tn_merge *merge, uint32_t a, uint32_t b)
{
    return tn_kv_compare(merge->order, &merge->sources[a].kv, &merge->sources[b].kv);
}

static int compare_heads(const struct tn_merge *merge, uint32_t a, uint32_t b)
{
    int c = compare_keys(merge, a, b);
    if (c != 0 || merge->mode == TN_MERGE_GROUPS) {
        return c;
    }
    return tn_kv_newer(merge->order, &merge->sources[b].kv, &merge->sources[a].kv) ? -1 : 1;
}

static void sift_down(struct tn_merge *merge, uint32_t at)
{
    uint32_t *heap = merge->heap;
    uint32_t moving = heap[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= merge->heap_count) {
            break;
        }
        if (child + 1 < merge->heap_count &&
            compare_heads(merge, heap[child + 1], heap[child]) < 0) {
            child++;
        }
        if (compare_heads(merge, heap[child], moving) >= 0) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

static tn_rc advance(struct tn_merge *merge, uint32_t source, bool *ended, struct tn_err *err)
{
    struct tn_kv *head = &merge->sources[source].kv;
    uint64_t prefix_before = head->prefix;
    tn_rc rc = tn_iter_next(merge->sources[source].iter, head, err);
    *ended = rc == TN_ABSENT;
    if (rc == TN_OK && head->prefix < prefix_before) {
        const char *where = tn_iter_where(merge->sources[source].iter);
        return tn_err_set(err, TN_CORRUPT, 0, "%s: keys are not in order",
                          where ? where : "a source of a merge");
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* The place of an ended source is taken by the heap's last. */
static inline tn_rc advance_at(struct tn_merge *merge, uint32_t at, struct tn_err *err)
{
    bool ended;
    tn_rc rc = advance(merge, merge->heap[at], &ended, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (ended) {
        merge->heap_count--;
        merge->heap[at] = merge->heap[merge->heap_count];
    }
    if (at < merge->heap_count) {
        sift_down(merge, at);
    }
    return TN_OK;
}

/* Moves the group's sources on, from the last place in the heap to the first, so that below each
 * one the heap is whole; an ended source's place is taken by the heap's last, which is either
 * outside the group or moved on already. */
static tn_rc advance_group(struct tn_merge *merge, struct tn_err *err)
{
    for (uint32_t i = merge->group_count; i > 0; i--) {
        tn_rc rc = advance_at(merge, merge->places[i - 1], err);
        if (rc != TN_OK) {
            return rc;
        }
    }
    return TN_OK;
}

/* Members are found breadth first from the top: a child of a member that equals it is one, too. */
static void find_group(struct tn_merge *merge)
{
    merge->places[0] = 0;
    merge->group_count = 1;
    for (uint32_t i = 0; i < merge->group_count; i++) {
        uint32_t at = merge->places[i];
        merge->group[i] = &merge->sources[merge->heap[at]].kv;
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < merge->heap_count;
             child++) {
            if (compare_keys(merge, merge->heap[child], merge->heap[0]) == 0) {
                merge->places[merge->group_count++] = child;
            }
        }
    }
}

size_t tn_merge_size(uint32_t count)
{
    size_t source = sizeof(struct tn_merge_source) + sizeof(void *) + 2 * sizeof(uint32_t);
    return ((size_t)count + 1) * source + 2 * alignof(max_align_t);
}

static tn_rc take_memory(struct tn_merge *merge, uint32_t count, struct tn_arena *arena,
                         struct tn_err *err)
{
    size_t n = count + 1; /* an empty merge is one, too */
    void *memory;
    tn_rc rc = tn_arena_need(arena, n * sizeof *merge->sources, "merge sources", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    merge->sources = memory;
    rc = tn_arena_need(arena, n * (2 * sizeof(uint32_t) + sizeof(void *)), "merge heap", &memory,
                       err);
    if (rc != TN_OK) {
        return rc;
    }
    merge->group = memory;
    merge->heap = (uint32_t *)(void *)(merge->group + n);
    merge->places = merge->heap + n;
    return TN_OK;
}

tn_rc tn_merge_init(struct tn_merge *merge, const struct tn_order *order, enum tn_merge_mode mode,
                    struct tn_iter *const *iters, uint32_t count, struct tn_arena *arena,
                    struct tn_err *err)
{
    *merge = (struct tn_merge){.order = order, .mode = mode};
    tn_rc rc = take_memory(merge, count, arena, err);
    for (uint32_t i = 0; rc == TN_OK && i < count; i++) {
        merge->sources[i].iter = iters[i];
        bool ended;
        rc = advance(merge, i, &ended, err);
        if (rc == TN_OK && !ended) {
            merge->heap[merge->heap_count++] = i;
        }
    }
    for (uint32_t i = merge->heap_count / 2; i > 0; i--) {
        sift_down(merge, i - 1);
    }
    return rc;
}

tn_rc tn_merge_settle(struct tn_merge *merge, struct tn_err *err)
{
    tn_rc rc = advance_group(merge, err);
    merge->group_count = 0;
    return rc;
}

tn_rc tn_merge_next(struct tn_merge *merge, const struct tn_kv *const **group, uint32_t *count,
                    struct tn_err *err)
{
    tn_rc rc = tn_merge_settle(merge, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (merge->heap_count == 0) {
        return TN_ABSENT;
    }
    find_group(merge);
    *group = merge->group;
    *count = merge->group_count;
    return TN_OK;
}

tn_rc tn_merge_step(struct tn_merge *merge, struct tn_err *err)
{
    TN_CHECK(merge->mode == TN_MERGE_VERSIONS && merge->heap_count > 0);
    return advance_at(merge, 0, err);
}

int32_t tn_merge_level(struct tn_merge *merge)
{
    int32_t level = INT32_MAX;
    find_group(merge);
    for (uint32_t i = 0; i < merge->group_count; i++) {
        int32_t own = merge->group[i]->level;
        level = own > 0 && own < level ? own : level;
    }
    merge->group_count = 0; /* nothing is to be moved on */
    return level;
}
