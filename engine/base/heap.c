#include "base/heap.h"

#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "base/poison.h"

enum { ALIGN = 16, TAKEN = 1 };

/* In front of each piece. `size` counts the tag and is a multiple of ALIGN, so its low bit is free
 * to say whether the piece is taken. */
struct tn_heap_tag {
    _Alignas(ALIGN) size_t size;
    size_t size_before; /* of the piece in front of this one, without its bit; 0 for the first */
};
_Static_assert(sizeof(struct tn_heap_tag) == ALIGN, "a piece's payload is aligned");

/* In the payload of a free piece. */
struct links {
    struct tn_heap_tag *next;
    struct tn_heap_tag *previous;
};
_Static_assert(sizeof(struct links) <= ALIGN, "the smallest piece has room for the links");

/* Free pieces below PIECE_SIZE_LARGE have a list for each size, larger ones share the first list.
 * Small ones are cut out of large ones last: else a hole that a large block left would soon be full
 * of small ones, and no large one fits again. */
enum { PIECE_SIZE_MIN = 2 * ALIGN, PIECE_SIZE_LARGE = TN_HEAP_LISTS * ALIGN, LARGE = 0 };
_Static_assert(TN_HEAP_LISTS <= 64, "a bit a list");

static size_t size_of(const struct tn_heap_tag *tag)
{
    return tag->size & ~(size_t)TAKEN;
}

static bool is_taken(const struct tn_heap_tag *tag)
{
    return (tag->size & TAKEN) != 0;
}

static struct tn_heap_tag *tag_at(void *at)
{
    return at;
}

static struct tn_heap_tag *behind(struct tn_heap_tag *tag)
{
    return tag_at((unsigned char *)tag + size_of(tag));
}

static struct tn_heap_tag *before(struct tn_heap_tag *tag)
{
    return tag_at((unsigned char *)tag - tag->size_before);
}

static struct links *links_of(struct tn_heap_tag *tag)
{
    return (struct links *)(void *)(tag + 1);
}

static void set_size(struct tn_heap_tag *tag, size_t size, size_t taken)
{
    tag->size = size | taken;
    behind(tag)->size_before = size;
}

static uint32_t list_of(size_t size)
{
    return size < PIECE_SIZE_LARGE ? (uint32_t)(size / ALIGN) : LARGE;
}

static void link_free(struct tn_heap *heap, struct tn_heap_tag *tag)
{
    uint32_t list = list_of(size_of(tag));
    struct tn_heap_tag *first = heap->free[list];
    *links_of(tag) = (struct links){.next = first};
    if (first) {
        links_of(first)->previous = tag;
    }
    heap->free[list] = tag;
    heap->lists |= UINT64_C(1) << list;
}

static void unlink_free(struct tn_heap *heap, struct tn_heap_tag *tag)
{
    struct links links = *links_of(tag);
    uint32_t list = list_of(size_of(tag));
    if (links.previous) {
        links_of(links.previous)->next = links.next;
    } else {
        heap->free[list] = links.next;
        heap->lists &= links.next ? UINT64_MAX : ~(UINT64_C(1) << list);
    }
    if (links.next) {
        links_of(links.next)->previous = links.previous;
    }
}

/* Makes [tag, tag + size) one free piece, joined with its free neighbours. Its first `dirty` bytes
 * are somebody's old ones; the others are poisoned already, as those of a free piece are. */
static void free_piece(struct tn_heap *heap, struct tn_heap_tag *tag, size_t size, size_t dirty)
{
    tn_unpoison(tag, PIECE_SIZE_MIN); /* tag and links */
    if (dirty > PIECE_SIZE_MIN) {
        tn_poison((unsigned char *)tag + PIECE_SIZE_MIN, dirty - PIECE_SIZE_MIN);
    }
    set_size(tag, size, 0);
    struct tn_heap_tag *next = behind(tag);
    if (!is_taken(next)) {
        unlink_free(heap, next);
        size += size_of(next);
        tn_poison(next, PIECE_SIZE_MIN);
    }
    if (tag->size_before > 0 && !is_taken(before(tag))) {
        struct tn_heap_tag *joined = tag;
        tag = before(tag);
        unlink_free(heap, tag);
        size += size_of(tag);
        tn_poison(joined, PIECE_SIZE_MIN);
    }
    set_size(tag, size, 0);
    link_free(heap, tag);
}

/* Marks the first `size` bytes of a piece taken that is on no list and has `whole` bytes, the first
 * `dirty` of which are not poisoned. */
static void take_piece(struct tn_heap *heap, struct tn_heap_tag *tag, size_t whole, size_t size,
                       size_t dirty)
{
    if (whole - size < PIECE_SIZE_MIN) {
        size = whole;
    }
    tn_unpoison(tag, size < whole ? size + PIECE_SIZE_MIN : size);
    set_size(tag, size, TAKEN);
    if (size < whole) {
        free_piece(heap, behind(tag), whole - size, dirty > size ? dirty - size : 0);
    }
    heap->used += size;
    if (heap->used > heap->peak) {
        heap->peak = heap->used;
    }
}

static void become_empty(struct tn_heap *heap)
{
    size_t skip = (ALIGN - (uintptr_t)heap->base % ALIGN) % ALIGN;
    TN_CHECK(heap->size >= skip + PIECE_SIZE_MIN + sizeof(struct tn_heap_tag));
    size_t size = (heap->size - skip) & ~(size_t)(ALIGN - 1);
    tn_unpoison(heap->base, heap->size);
    heap->used = 0;
    memset(heap->free, 0, sizeof heap->free);
    heap->lists = 0;
    struct tn_heap_tag *first = tag_at(heap->base + skip);
    first->size_before = 0;
    size -= sizeof *first; /* the tag of the end: taken, so that nothing joins with it */
    tag_at((unsigned char *)first + size)->size = sizeof *first | TAKEN;
    free_piece(heap, first, size, size);
}

/* The bytes of a piece with room for `size`, or 0 when that is absurd. */
static size_t piece_size(const struct tn_heap *heap, size_t size)
{
    if (size > heap->size) {
        return 0;
    }
    size_t whole = (size + sizeof(struct tn_heap_tag) + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    return whole < PIECE_SIZE_MIN ? PIECE_SIZE_MIN : whole;
}

/* The smallest piece that will do; of large ones all may be looked at. */
static struct tn_heap_tag *find(const struct tn_heap *heap, size_t need)
{
    uint64_t fitting = need < PIECE_SIZE_LARGE ? heap->lists >> list_of(need) : 0;
    if (fitting) {
        return heap->free[list_of(need) + (uint32_t)__builtin_ctzll(fitting)];
    }
    struct tn_heap_tag *best = NULL;
    for (struct tn_heap_tag *tag = heap->free[LARGE]; tag; tag = links_of(tag)->next) {
        size_t size = size_of(tag);
        if (size == need) {
            return tag;
        }
        best = size > need && (!best || size < size_of(best)) ? tag : best;
    }
    return best;
}

static void *take(struct tn_heap *heap, size_t size)
{
    size_t need = piece_size(heap, size);
    struct tn_heap_tag *tag = need > 0 ? find(heap, need) : NULL;
    if (!tag) {
        heap->failed++;
        return NULL;
    }
    unlink_free(heap, tag);
    take_piece(heap, tag, size_of(tag), need, PIECE_SIZE_MIN);
    return tag + 1;
}

static struct tn_heap_tag *taken_tag(const struct tn_heap *heap, void *block)
{
    uintptr_t at = (uintptr_t)block;
    TN_CHECK(at % ALIGN == 0);
    TN_CHECK(at >= (uintptr_t)heap->base + sizeof(struct tn_heap_tag));
    TN_CHECK(at < (uintptr_t)heap->base + heap->size);
    struct tn_heap_tag *tag = tag_at((unsigned char *)block - sizeof(struct tn_heap_tag));
    TN_CHECK(is_taken(tag)); /* else it was given twice */
    TN_CHECK(behind(tag)->size_before == size_of(tag));
    return tag;
}

static void give(struct tn_heap *heap, void *block)
{
    struct tn_heap_tag *tag = taken_tag(heap, block);
    heap->used -= size_of(tag);
    free_piece(heap, tag, size_of(tag), size_of(tag));
}

/* Shrinks, or grows into the free piece behind; false when that isn't enough. */
static bool resize_in_place(struct tn_heap *heap, struct tn_heap_tag *tag, size_t need)
{
    size_t whole = size_of(tag);
    struct tn_heap_tag *next = behind(tag);
    bool joins = !is_taken(next);
    if (whole + (joins ? size_of(next) : 0) < need) {
        return false;
    }
    heap->used -= whole;
    size_t dirty = whole;
    if (joins) {
        unlink_free(heap, next);
        whole += size_of(next);
        dirty += PIECE_SIZE_MIN;
    }
    take_piece(heap, tag, whole, need, dirty);
    return true;
}

static void *resize(struct tn_heap *heap, void *block, size_t size)
{
    struct tn_heap_tag *tag = taken_tag(heap, block);
    size_t need = piece_size(heap, size);
    if (need > 0 && resize_in_place(heap, tag, need)) {
        return block;
    }
    void *moved = take(heap, size);
    if (!moved) {
        return NULL;
    }
    memcpy(moved, block, size_of(tag) - sizeof *tag); /* grows: the old payload is the smaller */
    give(heap, block);
    return moved;
}

static void enter(struct tn_heap *heap)
{
    if (heap->lock) {
        TN_CHECK(pthread_mutex_lock(&heap->mutex) == 0);
    }
}

static void leave(struct tn_heap *heap)
{
    if (heap->lock) {
        TN_CHECK(pthread_mutex_unlock(&heap->mutex) == 0);
    }
}

void tn_heap_init(struct tn_heap *heap, void *base, size_t size, bool lock)
{
    *heap = (struct tn_heap){.base = base, .size = size, .lock = lock};
    if (lock) {
        TN_CHECK(pthread_mutex_init(&heap->mutex, NULL) == 0);
    }
    become_empty(heap);
}

void tn_heap_deinit(struct tn_heap *heap)
{
    if (heap->lock) {
        TN_CHECK(pthread_mutex_destroy(&heap->mutex) == 0);
    }
    tn_unpoison(heap->base, heap->size);
    *heap = (struct tn_heap){0};
}

void *tn_heap_take(struct tn_heap *heap, size_t size)
{
    enter(heap);
    void *block = take(heap, size);
    leave(heap);
    return block;
}

void *tn_heap_resize(struct tn_heap *heap, void *block, size_t size)
{
    if (!block) {
        return tn_heap_take(heap, size);
    }
    if (size == 0) {
        tn_heap_give(heap, block);
        return NULL;
    }
    enter(heap);
    void *moved = resize(heap, block, size);
    leave(heap);
    return moved;
}

void tn_heap_give(struct tn_heap *heap, void *block)
{
    if (block) {
        enter(heap);
        give(heap, block);
        leave(heap);
    }
}

size_t tn_heap_used(struct tn_heap *heap)
{
    enter(heap);
    size_t used = heap->used;
    leave(heap);
    return used;
}

void tn_heap_drop(struct tn_heap *heap)
{
    enter(heap);
    become_empty(heap);
    leave(heap);
}

void tn_heap_check(struct tn_heap *heap)
{
    enter(heap);
    size_t skip = (ALIGN - (uintptr_t)heap->base % ALIGN) % ALIGN;
    unsigned char *end = heap->base + skip + ((heap->size - skip) & ~(size_t)(ALIGN - 1)) - ALIGN;
    size_t used = 0;
    size_t free_count = 0;
    size_t size_before = 0;
    bool free_before = false;
    struct tn_heap_tag *tag = tag_at(heap->base + skip);
    while ((unsigned char *)tag < end) {
        TN_CHECK(tag->size_before == size_before);
        TN_CHECK(size_of(tag) >= PIECE_SIZE_MIN);
        TN_CHECK(size_of(tag) <= (size_t)(end - (unsigned char *)tag));
        TN_CHECK(is_taken(tag) || !free_before);
        free_before = !is_taken(tag);
        free_count += free_before;
        used += free_before ? 0 : size_of(tag);
        size_before = size_of(tag);
        tag = behind(tag);
    }
    TN_CHECK((unsigned char *)tag == end);
    TN_CHECK(used == heap->used);
    for (uint32_t list = 0; list < TN_HEAP_LISTS; list++) {
        TN_CHECK((heap->free[list] != NULL) == (heap->lists >> list & 1));
        for (tag = heap->free[list]; tag && free_count > 0; tag = links_of(tag)->next) {
            TN_CHECK(!is_taken(tag) && list_of(size_of(tag)) == list);
            free_count--;
        }
        TN_CHECK(!tag);
    }
    TN_CHECK(free_count == 0);
    leave(heap);
}
