#include "table/env.h"

#include "commit/manifest.h"
#include "format/avro.h"
#include "format/json.h"

enum {
    ROW_SHARE = 8, /* what one row may take of the parts "memtable" and "long" */
    MERGE_ROWS =
        6, /* the least that a merge holds: of two runs and the output a row, raw and packed */
    MERGE_FIXED = 256 * 1024, /* plans, keys, a codec that is not zstd: a guess */
};

/* The largest row that can be buffered, written, and merged with others. */
static void init_rows(struct tn_env *env)
{
    const struct tn_arena *merge = &env->workers[TN_LANE_LONG]->arena;
    if (env->worker_room == 0) { /* later a task may be under way, or a table keep some of it */
        env->worker_room = tn_arena_free(merge);
    }
    size_t left = env->worker_room;
    env->merge_size = left > MERGE_FIXED ? left - MERGE_FIXED : 0;
    size_t shares[] = {env->memtable_size / ROW_SHARE, merge->size / ROW_SHARE,
                       env->merge_size / MERGE_ROWS};
    size_t size = UINT32_MAX / 4;
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        size = shares[i] < size ? shares[i] : size;
    }
    env->row_size_max = (uint32_t)size;
}

static tn_rc init_workers(const struct tn_env_spec *spec, struct tn_env *env, struct tn_err *err)
{
    static const char *const PARTS[TN_LANE_COUNT] = {"short", "long"};
    void *contexts[TN_LANE_COUNT];
    for (int lane = 0; lane < TN_LANE_COUNT; lane++) {
        struct tn_worker *worker = &spec->workers[lane];
        *worker = (struct tn_worker){.io = spec->io, .clock = spec->clock};
        tn_budget_arena(spec->budget, PARTS[lane], &worker->arena);
        tn_rc rc = tn_codec_init(&worker->codec, 1, TN_BLOCK_SIZE, &worker->arena, err);
        if (rc == TN_OK) {
            rc = tn_plan_cache_make(&worker->arena, &worker->plans, err);
        }
        if (rc != TN_OK) {
            return rc;
        }
        contexts[lane] = worker;
        env->workers[lane] = worker;
    }
    tn_exec_inline_open(spec->exec, contexts);
    return TN_OK;
}

static void init_heaps(const struct tn_env_spec *spec)
{
    tn_budget_heap(spec->budget, "json", spec->json, true);
    tn_budget_heap(spec->budget, "avro", spec->avro, true);
    tn_budget_heap(spec->budget, "levels", spec->levels, true);
    tn_json_use_heap(spec->json);
    tn_avro_use_heap(spec->avro);
}

void tn_env_measure(struct tn_env *env, struct tn_budget *budget)
{
    const struct tn_part *memtable = tn_budget_part(budget, "memtable");
    env->memtable = memtable->base;
    env->memtable_size = memtable->size;
    init_rows(env);
}

tn_rc tn_env_open(struct tn_env *env, const struct tn_env_spec *spec, struct tn_err *err)
{
    init_heaps(spec);
    tn_budget_arena(spec->budget, "table", spec->table);
    *env = (struct tn_env){.io = spec->io,
                           .clock = spec->clock,
                           .exec = &spec->exec->exec,
                           .levels = spec->levels,
                           .arena = spec->table,
                           .unit_size_max = (int64_t)tn_board.unit_kib * 1024,
                           .block_size = TN_BLOCK_SIZE};
    tn_rc rc = init_workers(spec, env, err);
    if (rc == TN_OK) {
        tn_env_measure(env, spec->budget);
    }
    return rc;
}
