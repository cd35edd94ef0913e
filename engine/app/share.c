#include "app/share.h"

#include "base/check.h"
#include "script/vm.h"

enum {
    KIB = 1024,
    PAGE_KIB = 4,
    LUA_KIB_MIN = 128,
    LUA_KIB_MAX = 640, /* as on the boards */
    LUA_SHARE = 5,     /* a state's part of the rows */
    LUA_SHARE_MAX = 4,
    ARENA_KIB = 288, /* of a table: as that of letters, measured with it */
    ROWS_KIB = 256,  /* at the least: 64 pages, the smallest */
    SCRIPTED_ROWS_KIB = LUA_SHARE_MAX * TN_VM_SIZE_MIN / KIB,
    SMALL_ARENA_KIB = 52,
    SMALL_ROWS_KIB = 24, /* two memtables of the smallest */
    BENCHES = 4,
    BENCH_KIB = 144,
    ARENA_ROWS = 16,      /* one row is this part of the arena at most */
    LEFT_KIB = 32,        /* of the part "table", for the process */
    LEFT_WORK_KIB = 5632, /* of the part "long": more than all of it where it is measured */
};

enum place { IN_TABLE, IN_WORK, PLACES, IN_FRONT = PLACES };

/* What a table's share is like; SMALL: of a plain one where those are. */
enum kind { ANY, SCRIPTED, SMALL, KINDS };

/* In KiB. */
struct split {
    uint32_t arena[KINDS];
    uint32_t rows[KINDS];
    uint32_t left[PLACES]; /* for arenas, of the parts "table" and "long" */
    uint32_t benches;
    bool small;
};

void tn_share_lend(struct tn_table_share *share)
{
    const struct tn_arena *worker = &share->env.workers[TN_LANE_LONG]->arena;
    if (!share->lasts) {
        tn_arena_init(&share->lasting, worker->base + worker->used, worker->size - worker->used);
    }
    share->env.lasting = &share->lasting;
}

void tn_share_keep(struct tn_table_share *share)
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

/* Where the next arena goes: of the part "long" only small ones, lest work lack it for few. */
static enum place take_place(struct split *split, enum kind kind)
{
    for (int place = IN_TABLE; place <= (kind == SMALL ? IN_WORK : IN_TABLE); place++) {
        if (split->left[place] >= split->arena[kind]) {
            split->left[place] -= split->arena[kind];
            return (enum place)place;
        }
    }
    return IN_FRONT;
}

/* Small arenas are placed before others. */
static size_t needs(const struct tn_share_sizes *sizes, struct split split)
{
    size_t kib = split.benches;
    uint32_t small = split.small ? sizes->plain : 0;
    for (uint32_t i = 0; i < sizes->count; i++) {
        enum kind kind = i < small ? SMALL : i < small + sizes->scripted ? SCRIPTED : ANY;
        bool in_front = take_place(&split, kind) == IN_FRONT;
        kib += split.rows[kind] + (in_front ? split.arena[kind] : 0);
    }
    return kib;
}

/* Shares that any table does with, where there is memory for them. */
static size_t choose(const struct tn_share_sizes *sizes, struct split *split)
{
    size_t table = sizes->table / KIB;
    size_t work = sizes->work / KIB;
    *split = (struct split){.arena = {[SMALL] = SMALL_ARENA_KIB},
                            .rows = {ROWS_KIB, SCRIPTED_ROWS_KIB, SMALL_ROWS_KIB},
                            .left = {(uint32_t)(table > LEFT_KIB ? table - LEFT_KIB : 0),
                                     (uint32_t)(work > LEFT_WORK_KIB ? work - LEFT_WORK_KIB : 0)}};
    uint32_t even = sizes->count > 0 ? pages(split->left[IN_TABLE] / sizes->count) : 0;
    split->arena[ANY] = even > ARENA_KIB ? even : ARENA_KIB;
    split->arena[SCRIPTED] = split->arena[ANY];
    size_t kib = needs(sizes, *split);
    if (kib > sizes->memtable / KIB && sizes->plain > 0) {
        split->small = true;
        split->benches = BENCHES * BENCH_KIB;
        kib = needs(sizes, *split);
    }
    return kib;
}

/* As spread gives them more. */
uint64_t tn_share_needed(const struct tn_share_sizes *sizes, uint64_t rows)
{
    struct split split;
    uint64_t kib = choose(sizes, &split);
    uint64_t count = sizes->count;
    uint64_t large = count - (split.small ? sizes->plain : 0);
    uint64_t more = rows / KIB > ROWS_KIB ? rows / KIB - ROWS_KIB : 0;
    kib += large > 0 ? 2 * more * large * count / (large + count) : 0;
    return kib * KIB;
}

/* What is left is for rows: the half of all, the half of those that are not small. */
static void spread(struct split *split, uint32_t small, uint32_t count, size_t left)
{
    TN_CHECK(count > 0);
    uint32_t large = count - small;
    size_t half = large > 0 ? left / 2 : 0;
    uint32_t each = pages((left - half) / count);
    uint32_t more = large > 0 ? pages(half / large) : 0;
    split->rows[ANY] += each + more;
    split->rows[SCRIPTED] += each + more;
    split->rows[SMALL] += each;
}

static tn_rc split(const struct tn_env *env, const struct tn_table_share *shares, uint32_t count,
                   struct split *split, struct tn_err *err)
{
    struct tn_share_sizes sizes = {.table = tn_arena_free(env->arena),
                                   .memtable = env->memtable_size,
                                   .work = env->workers[TN_LANE_LONG]->arena.size,
                                   .count = count};
    for (uint32_t i = 0; i < count; i++) {
        sizes.plain += shares[i].plain;
        sizes.scripted += shares[i].scripted;
    }
    size_t needed = choose(&sizes, split);
    size_t there = env->memtable_size / KIB;
    if (there < needed) {
        return tn_err_set(err, TN_INVALID, 0,
                          "%u tables need %zu KiB of the part 'memtable', which has %zu for them; "
                          "give it more memory",
                          count, needed, there);
    }
    spread(split, split->small ? sizes.plain : 0, count, there - needed);
    return TN_OK;
}

static void name_parts(struct tn_table_share *share, uint32_t arena, uint32_t rows)
{
    uint32_t most = pages(rows / LUA_SHARE_MAX); /* of a small share both leave a half */
    uint32_t lua = pages(rows / LUA_SHARE);
    lua = lua < LUA_KIB_MIN ? LUA_KIB_MIN : lua < LUA_KIB_MAX ? lua : LUA_KIB_MAX;
    lua = lua < most ? lua : most;
    const struct tn_part_spec parts[TN_SHARE_PARTS] = {
        {"table", TN_PART_ARENA, arena, arena, NULL},
        {"memtable", TN_PART_POOL, rows, rows, NULL},
        {"lua_map", TN_PART_HEAP, lua, lua, "memtable"},
        {"lua_merge", TN_PART_HEAP, lua, lua, "memtable"},
    };
    for (int i = 0; i < TN_SHARE_PARTS; i++) {
        share->parts[i] = parts[i];
    }
}

void tn_share_cap(struct tn_table_share *share)
{
    uint32_t most = (uint32_t)(share->arena.size / ARENA_ROWS);
    share->env.row_size_max = most < share->env.row_size_max ? most : share->env.row_size_max;
}

/* Memory that is being handed out. */
struct supply {
    struct tn_env *env;
    uint32_t count; /* shares */
    struct split split;
    unsigned char *rows;        /* where the next ones begin */
    struct tn_benches *benches; /* or NULL */
};

/* With an arena that lies elsewhere already, or in front of its rows. */
static tn_rc open_share(struct tn_table_share *share, struct supply *supply, enum kind kind,
                        struct tn_err *err)
{
    bool elsewhere = share->arena.size > 0;
    size_t arena = elsewhere ? 0 : supply->split.arena[kind];
    uint32_t first = elsewhere ? 1 : 0;
    name_parts(share, supply->split.arena[kind], supply->split.rows[kind]);
    share->board = (struct tn_board){
        .name = "share", .part_count = TN_SHARE_PARTS - first, .parts = share->parts + first};
    size_t size = (supply->split.rows[kind] + arena) * KIB;
    tn_rc rc = tn_budget_open_on(&share->budget, &share->board, supply->rows, size, err);
    if (rc != TN_OK) {
        return rc;
    }
    supply->rows += size;
    if (!elsewhere) {
        tn_budget_arena(&share->budget, "table", &share->arena);
    }
    share->lasts = false;
    share->env = *supply->env;
    share->env.sharers = supply->count;
    share->env.arena = &share->arena;
    share->env.benches = kind == SMALL ? supply->benches : NULL;
    tn_env_measure(&share->env, &share->budget);
    tn_share_cap(share);
    return TN_OK;
}

static tn_rc open_benches(struct supply *supply, struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(supply->env->arena, sizeof *supply->benches, "benches", &memory, err);
    if (rc == TN_OK) {
        supply->benches = memory;
        tn_benches_init(supply->benches, supply->rows, (size_t)BENCH_KIB * KIB, BENCHES);
        supply->rows += (size_t)BENCHES * BENCH_KIB * KIB;
    }
    return rc;
}

static enum kind kind_of(const struct supply *supply, const struct tn_table_share *share)
{
    return share->plain && supply->split.small ? SMALL : share->scripted ? SCRIPTED : ANY;
}

/* Size 0: it lies in front of the rows. */
static tn_rc place_arena(struct supply *supply, struct tn_table_share *share, struct tn_err *err)
{
    enum kind kind = kind_of(supply, share);
    size_t size = (size_t)supply->split.arena[kind] * KIB;
    struct tn_arena *parts[PLACES] = {supply->env->arena,
                                      &supply->env->workers[TN_LANE_LONG]->arena};
    enum place place = take_place(&supply->split, kind);
    void *memory = NULL;
    share->arena = (struct tn_arena){0};
    if (place == IN_FRONT) {
        return TN_OK;
    }
    tn_rc rc = tn_arena_need(parts[place], size, "a table", &memory, err);
    if (rc == TN_OK) {
        tn_arena_init(&share->arena, memory, size);
        supply->env->worker_room -= place == IN_WORK ? size : 0;
    }
    return rc;
}

static tn_rc place_arenas(struct supply *supply, struct tn_table_share *shares, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (int kind = SMALL; kind >= ANY; kind--) {
        for (uint32_t i = 0; rc == TN_OK && i < supply->count; i++) {
            if ((int)kind_of(supply, &shares[i]) == kind) {
                rc = place_arena(supply, &shares[i], err);
            }
        }
    }
    return rc;
}

tn_rc tn_share_out(struct tn_env *env, struct tn_table_share *shares, uint32_t count,
                   struct tn_err *err)
{
    struct supply supply = {.env = env, .count = count, .rows = env->memtable};
    tn_rc rc = split(env, shares, count, &supply.split, err);
    if (rc == TN_OK && supply.split.small) {
        rc = open_benches(&supply, err);
    }
    if (rc == TN_OK) {
        rc = place_arenas(&supply, shares, err);
    }
    for (uint32_t i = 0; rc == TN_OK && i < count; i++) {
        rc = open_share(&shares[i], &supply, kind_of(&supply, &shares[i]), err);
    }
    return rc;
}
