#include "base/budget.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include <board.h> /* build/BOARD/gen: made from boards/BOARD/board.lua */

#include "base/check.h"
#include "base/poison.h"

enum { KIB = 1024, PAGE_KIB = 4 };

/* 1 TiB, or 1 GiB where addresses have 32 bits: no sum or product below overflows. */
#define MEMORY_KIB_MAX (UINT64_C(1) << (sizeof(size_t) > 4 ? 30 : 20))

static const struct tn_part_spec board_parts[] = {
#define X(part_name, part_kind, part_kib, part_kib_min, part_of) \
    {.name = (part_name),                                        \
     .kind = (part_kind),                                        \
     .kib = (part_kib),                                          \
     .kib_min = (part_kib_min),                                  \
     .of = (part_of)},
    TN_BOARD_PARTS(X)
#undef X
};

_Static_assert(sizeof board_parts <= TN_PARTS_MAX * sizeof board_parts[0],
               "the budget holds all parts of the board");

const struct tn_board tn_board = {
    .name = TN_BOARD_NAME,
    .other_kib = TN_BOARD_OTHER_KIB,
    .unit_kib = TN_BOARD_UNIT_KIB,
    .part_count = sizeof board_parts / sizeof board_parts[0],
    .parts = board_parts,
};

static uint64_t sum_of_mins(const struct tn_board *board)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < board->part_count; i++) {
        sum += board->parts[i].of ? 0 : board->parts[i].kib_min;
    }
    return sum;
}

static uint64_t sum_of_parts(const struct tn_board *board)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < board->part_count; i++) {
        sum += board->parts[i].of ? 0 : board->parts[i].kib;
    }
    return sum;
}

static uint64_t share_of(uint64_t kib, uint64_t available, uint64_t whole)
{
    TN_CHECK(whole > 0);
    return kib * available / whole / PAGE_KIB * PAGE_KIB;
}

static uint32_t find_spec(const struct tn_board *board, const char *name)
{
    uint32_t i = 0;
    while (i < board->part_count && strcmp(board->parts[i].name, name) != 0) {
        i++;
    }
    TN_CHECK(i < board->part_count);
    return i;
}

/* A part of another one is as much of it as on the board, at any size. */
static void share_parents(const struct tn_board *board, uint64_t kib[TN_PARTS_MAX])
{
    for (uint32_t i = 0; i < board->part_count; i++) {
        const struct tn_part_spec *spec = &board->parts[i];
        if (spec->of) {
            uint32_t parent = find_spec(board, spec->of);
            TN_CHECK(!board->parts[parent].of);
            kib[i] = share_of(spec->kib, kib[parent], board->parts[parent].kib);
            kib[i] = kib[i] < spec->kib_min ? spec->kib_min : kib[i];
        }
    }
}

/* Parts that would fall below their minimum get it, and the others share what is left; which may
 * push another one below, so again, at most once a part. */
static void share_out(const struct tn_board *board, uint64_t available, uint64_t kib[TN_PARTS_MAX])
{
    bool at_min[TN_PARTS_MAX] = {false};
    uint64_t whole = sum_of_parts(board);
    bool again = true;
    while (again) {
        again = false;
        for (uint32_t i = 0; i < board->part_count && !again; i++) {
            const struct tn_part_spec *spec = &board->parts[i];
            if (!spec->of && !at_min[i] && share_of(spec->kib, available, whole) < spec->kib_min) {
                at_min[i] = true;
                available -= spec->kib_min;
                whole -= spec->kib;
                again = true;
            }
        }
    }
    for (uint32_t i = 0; i < board->part_count; i++) {
        const struct tn_part_spec *spec = &board->parts[i];
        kib[i] = at_min[i] ? spec->kib_min : share_of(spec->kib, available, whole);
    }
    share_parents(board, kib);
}

/* KiB for the block, when the whole process may have `memory_size` bytes. */
static tn_rc block_kib(const struct tn_board *board, uint64_t memory_size, uint64_t *kib,
                       struct tn_err *err)
{
    uint64_t needed = sum_of_mins(board) + board->other_kib;
    uint64_t memory = memory_size / KIB;
    if (memory_size == 0) {
        memory = sum_of_parts(board) + board->other_kib;
    }
    if (memory < needed) {
        return tn_err_set(err, TN_INVALID, 0,
                          "board %s needs at least %" PRIu64 " KiB of memory, not %" PRIu64,
                          board->name, needed, memory);
    }
    if (memory > MEMORY_KIB_MAX) {
        return tn_err_set(err, TN_INVALID, 0, "%" PRIu64 " KiB of memory, at most %" PRIu64, memory,
                          MEMORY_KIB_MAX);
    }
    *kib = memory - board->other_kib;
    return TN_OK;
}

/* Touched, too: a page that the system only promised could be missing when it's needed. */
static tn_rc map_block(struct tn_budget *budget, size_t size, struct tn_err *err)
{
    void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) {
        return tn_err_set(err, TN_IO, errno, "map %zu bytes: %s", size, strerror(errno));
    }
    memset(block, 0, size);
    *budget = (struct tn_budget){.block = block, .mapped = true, .size = size};
    return TN_OK;
}

/* Sizes of all parts; returns their sum. */
static uint64_t plan_parts(const struct tn_board *board, uint64_t available,
                           uint64_t kib[TN_PARTS_MAX])
{
    TN_CHECK(board->part_count <= TN_PARTS_MAX);
    share_out(board, available, kib);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < board->part_count; i++) {
        sum += board->parts[i].of ? 0 : kib[i];
    }
    TN_CHECK(sum <= available);
    return sum;
}

static void carve(struct tn_budget *budget, const struct tn_board *board,
                  const uint64_t kib[TN_PARTS_MAX])
{
    size_t at = 0;
    for (uint32_t i = 0; i < board->part_count; i++) {
        bool own = !board->parts[i].of;
        budget->parts[i] =
            (struct tn_part){.spec = &board->parts[i],
                             .base = own && budget->block ? budget->block + at : NULL,
                             .size = (size_t)kib[i] * KIB};
        at += own ? budget->parts[i].size : 0;
    }
    budget->part_count = board->part_count;
}

tn_rc tn_budget_open(struct tn_budget *budget, const struct tn_board *board, uint64_t memory_size,
                     struct tn_err *err)
{
    uint64_t available = 0;
    uint64_t kib[TN_PARTS_MAX] = {0};
    tn_rc rc = block_kib(board, memory_size, &available, err);
    if (rc == TN_OK) {
        rc = map_block(budget, (size_t)plan_parts(board, available, kib) * KIB, err);
    }
    if (rc == TN_OK) {
        carve(budget, board, kib);
    }
    return rc;
}

tn_rc tn_budget_plan(struct tn_budget *budget, const struct tn_board *board, uint64_t memory_size,
                     struct tn_err *err)
{
    uint64_t available = 0;
    uint64_t kib[TN_PARTS_MAX] = {0};
    tn_rc rc = block_kib(board, memory_size, &available, err);
    if (rc == TN_OK) {
        *budget = (struct tn_budget){.size = (size_t)plan_parts(board, available, kib) * KIB};
        carve(budget, board, kib);
    }
    return rc;
}

tn_rc tn_budget_open_on(struct tn_budget *budget, const struct tn_board *board, void *block,
                        size_t size, struct tn_err *err)
{
    uint64_t available = 0;
    uint64_t kib[TN_PARTS_MAX] = {0};
    tn_rc rc = block_kib(board, (uint64_t)size + (uint64_t)board->other_kib * KIB, &available, err);
    if (rc == TN_OK) {
        (void)plan_parts(board, available, kib);
        *budget = (struct tn_budget){.block = block, .size = size};
        carve(budget, board, kib);
    }
    return rc;
}

void tn_budget_close(struct tn_budget *budget)
{
    tn_unpoison(budget->block, budget->size);
    int rc = budget->mapped ? munmap(budget->block, budget->size) : 0;
    TN_CHECK(rc == 0);
    *budget = (struct tn_budget){0};
}

struct tn_part *tn_budget_part(struct tn_budget *budget, const char *name)
{
    for (uint32_t i = 0; i < budget->part_count; i++) {
        if (strcmp(budget->parts[i].spec->name, name) == 0) {
            return &budget->parts[i];
        }
    }
    return NULL;
}

static bool part_unused(const struct tn_part *part)
{
    return !part->pool && !part->arena && !part->heap;
}

/* The part and the one that it lies in. */
static struct tn_part *nested_part(struct tn_budget *budget, const char *name,
                                   struct tn_part **parent)
{
    struct tn_part *part = tn_budget_part(budget, name);
    TN_CHECK(part != NULL && part->spec->of != NULL);
    *parent = tn_budget_part(budget, part->spec->of);
    TN_CHECK(*parent != NULL && part_unused(*parent));
    return part;
}

struct tn_part *tn_budget_carve(struct tn_budget *budget, const char *name)
{
    struct tn_part *parent;
    struct tn_part *part = nested_part(budget, name, &parent);
    TN_CHECK(part->base == NULL && part->size < parent->size);
    parent->size -= part->size;
    part->base = parent->base + parent->size;
    return part;
}

void tn_budget_grow(struct tn_budget *budget, const char *name, size_t size)
{
    struct tn_part *part = tn_budget_part(budget, name);
    size_t whole = (size + PAGE_KIB * KIB - 1) / (PAGE_KIB * KIB) * (PAGE_KIB * KIB);
    TN_CHECK(part != NULL && part->spec->of != NULL && part->base == NULL);
    part->size = part->size < whole ? whole : part->size;
}

void tn_budget_join(struct tn_budget *budget, const char *name)
{
    struct tn_part *parent;
    struct tn_part *part = nested_part(budget, name, &parent);
    TN_CHECK(part->base == parent->base + parent->size);
    tn_unpoison(part->base, part->size);
    parent->size += part->size;
    part->base = NULL;
    part->pool = NULL;
    part->arena = NULL;
    part->heap = NULL;
}

static struct tn_part *unused_part(struct tn_budget *budget, const char *name,
                                   enum tn_part_kind kind)
{
    struct tn_part *part = tn_budget_part(budget, name);
    TN_CHECK(part != NULL && part->base != NULL);
    TN_CHECK(part->spec->kind == kind);
    TN_CHECK(part_unused(part));
    return part;
}

void tn_budget_pool(struct tn_budget *budget, const char *name, struct tn_pool *pool,
                    uint32_t block_size)
{
    struct tn_part *part = unused_part(budget, name, TN_PART_POOL);
    tn_pool_init(pool, part->base, part->size, block_size);
    part->pool = pool;
}

void tn_budget_arena(struct tn_budget *budget, const char *name, struct tn_arena *arena)
{
    struct tn_part *part = unused_part(budget, name, TN_PART_ARENA);
    tn_arena_init(arena, part->base, part->size);
    part->arena = arena;
}

void tn_budget_heap(struct tn_budget *budget, const char *name, struct tn_heap *heap, bool lock)
{
    struct tn_part *part = unused_part(budget, name, TN_PART_HEAP);
    tn_heap_init(heap, part->base, part->size, lock);
    part->heap = heap;
}

/* A worker may be counting right now; a figure for people needs no lock. */
__attribute__((no_sanitize_thread)) void tn_part_usage(const struct tn_part *part, size_t *used,
                                                       size_t *peak)
{
    *used = 0;
    *peak = 0;
    if (part->pool) {
        *used = (size_t)part->pool->used * part->pool->block_size;
        *peak = (size_t)part->pool->peak * part->pool->block_size;
    } else if (part->arena) {
        *used = part->arena->used;
        *peak = part->arena->peak;
    } else if (part->heap) {
        *used = part->heap->used;
        *peak = part->heap->peak;
    }
}

const char *tn_part_kind_text(enum tn_part_kind kind)
{
    static const char *const texts[] = {"pool", "arena", "heap"};
    return texts[kind];
}
