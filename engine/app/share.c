#include "app/share.h"

enum {
    KIB = 1024,
    PAGE_KIB = 4,
    ARENA_KIB = 288, /* of a table: as that of letters, measured with it */
    ROWS_KIB = 256,  /* at the least: 64 pages, the smallest */
    LUA_KIB_MIN = 128,
    LUA_KIB_MAX = 640, /* as on the boards */
    LUA_SHARE = 5,     /* a state's part of the rows */
    LUA_SHARE_MAX = 4,
    ARENA_ROWS = 16, /* one row is this part of the arena at most */
    LEFT_KIB = 32,   /* of the part "table", for the process */
};

struct split {
    uint32_t arena_kib; /* of each */
    uint32_t rows_kib;
    uint32_t beside; /* so many have their arena in the part "table" */
};

void tn_share_lend(struct tn_share *share)
{
    const struct tn_arena *worker = &share->env.workers[TN_LANE_LONG]->arena;
    if (!share->lasts) {
        tn_arena_init(&share->lasting, worker->base + worker->used, worker->size - worker->used);
    }
    share->env.lasting = &share->lasting;
}

void tn_share_keep(struct tn_share *share)
{
    struct tn_arena *worker = &share->env.workers[TN_LANE_LONG]->arena;
    if (!share->lasts) {
        share->lasting.size = share->lasting.used;
        worker->used += share->lasting.size;
        worker->peak = worker->used > worker->peak ? worker->used : worker->peak;
    }
    share->lasts = true;
}

static uint32_t pages(size_t kib)
{
    return (uint32_t)(kib / PAGE_KIB * PAGE_KIB);
}

/* Where each has its arena, and how large it is. */
static struct split place_arenas(size_t table_size, uint32_t count)
{
    size_t table = table_size / KIB;
    table = table > LEFT_KIB ? table - LEFT_KIB : 0;
    struct split split = {.arena_kib = pages(table / count), .beside = count};
    if (split.arena_kib < ARENA_KIB) {
        split.arena_kib = ARENA_KIB;
        split.beside = (uint32_t)(table / ARENA_KIB);
    }
    return split;
}

size_t tn_share_needed(size_t table_size, uint32_t count)
{
    struct split split = place_arenas(table_size, count > 0 ? count : 1);
    return ((size_t)(count - split.beside) * ARENA_KIB + (size_t)count * ROWS_KIB) * KIB;
}

static tn_rc split(const struct tn_env *env, uint32_t count, struct split *split,
                   struct tn_err *err)
{
    size_t table = tn_arena_free(env->arena);
    size_t needed = tn_share_needed(table, count);
    if (env->memtable_size < needed) {
        return tn_err_set(err, TN_INVALID, 0,
                          "%u tables need %zu KiB of the part 'memtable', which has %zu for them; "
                          "give it more memory",
                          count, needed / KIB, env->memtable_size / KIB);
    }
    *split = place_arenas(table, count);
    size_t front = (size_t)(count - split->beside) * ARENA_KIB;
    split->rows_kib = pages((env->memtable_size / KIB - front) / count);
    return TN_OK;
}

static void name_parts(struct tn_share *share, const struct split *split)
{
    uint32_t most = pages(split->rows_kib / LUA_SHARE_MAX); /* of a small share both leave a half */
    uint32_t lua = pages(split->rows_kib / LUA_SHARE);
    lua = lua < LUA_KIB_MIN ? LUA_KIB_MIN : lua < LUA_KIB_MAX ? lua : LUA_KIB_MAX;
    lua = lua < most ? lua : most;
    const struct tn_part_spec parts[TN_SHARE_PARTS] = {
        {"table", TN_PART_ARENA, split->arena_kib, split->arena_kib, NULL},
        {"memtable", TN_PART_POOL, split->rows_kib, split->rows_kib, NULL},
        {"lua_map", TN_PART_HEAP, lua, lua, "memtable"},
        {"lua_merge", TN_PART_HEAP, lua, lua, "memtable"},
    };
    for (int i = 0; i < TN_SHARE_PARTS; i++) {
        share->parts[i] = parts[i];
    }
}

void tn_share_cap(struct tn_share *share)
{
    uint32_t most = (uint32_t)(share->arena.size / ARENA_ROWS);
    share->env.row_size_max = most < share->env.row_size_max ? most : share->env.row_size_max;
}

/* The arena's part is made on memory of its own when it lies elsewhere. */
static tn_rc open_share(struct tn_share *share, struct tn_env *env, uint32_t count,
                        unsigned char **rows, void *arena, const struct split *split,
                        struct tn_err *err)
{
    size_t arena_size = (size_t)split->arena_kib * KIB;
    size_t rows_size = (size_t)split->rows_kib * KIB;
    uint32_t first = arena ? 1 : 0;
    name_parts(share, split);
    share->board = (struct tn_board){
        .name = "share", .part_count = TN_SHARE_PARTS - first, .parts = share->parts + first};
    size_t size = rows_size + (arena ? 0 : arena_size);
    tn_rc rc = tn_budget_open_on(&share->budget, &share->board, *rows, size, err);
    if (rc != TN_OK) {
        return rc;
    }
    *rows += size;
    if (arena) {
        tn_arena_init(&share->arena, arena, arena_size);
    } else {
        tn_budget_arena(&share->budget, "table", &share->arena);
    }
    share->lasts = false;
    share->env = *env;
    share->env.sharers = count;
    share->env.arena = &share->arena;
    tn_env_measure(&share->env, &share->budget);
    tn_share_cap(share);
    return TN_OK;
}

tn_rc tn_share_out(struct tn_env *env, struct tn_share *shares, uint32_t count, struct tn_err *err)
{
    struct split parts = {0};
    tn_rc rc = split(env, count, &parts, err);
    unsigned char *rows = env->memtable;
    for (uint32_t i = 0; rc == TN_OK && i < count; i++) {
        void *arena = NULL;
        if (i < parts.beside) {
            rc = tn_arena_need(env->arena, (size_t)parts.arena_kib * KIB, "a table", &arena, err);
        }
        if (rc == TN_OK) {
            rc = open_share(&shares[i], env, count, &rows, arena, &parts, err);
        }
    }
    return rc;
}
