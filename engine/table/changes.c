#include "table/changes.h"

#include "table/state.h"

enum {
    INDEX_SHARE = 16, /* of the worker's memory: 340 KB on the host board, 8,000 blocks */
    STATE_PARTS = 8,  /* of what a slice has left: see state_parts */
    MERGE_RUNS = 2,   /* the least that a merge is for */
    MERGE_RUN_SIZE = 136 * 1024, /* of one: a block of 64 KB, packed and not, and a file's name */
};

/* ---- the state before ---- */

/* The files of the levels below the output. */
static uint32_t deeper_files(const struct tn_levels *levels, int32_t level)
{
    uint32_t first = 0;
    while (first < levels->count && levels->files[first]->level <= level) {
        first++;
    }
    return first;
}

/* Where memory was short before, and the merge takes fewer runs, the state's share grows: its runs
 * may be what had no room for long rows, or for the heads of files of many columns. */
static size_t state_parts(const struct tn_table *t)
{
    static const unsigned char parts[] = {2, 3, 4, 4, 5};
    uint32_t halved = t->slice.bucket->halved;
    return parts[halved < sizeof parts ? halved : sizeof parts - 1];
}

/* Of what the slice has left: its share, less where the merge would have too little to begin. */
static size_t state_size(const struct tn_table *t, const struct tn_arena *arena)
{
    const struct tn_compact_spec *compact = &t->slice.compaction.spec;
    struct tn_fold_spec fold = {.engine = compact->engine,
                                .mode = compact->fold,
                                .change = compact->change,
                                .row_size_max = compact->row_size_max};
    size_t left = tn_arena_free(arena);
    size_t merge = tn_fold_size(&fold) + MERGE_RUNS * MERGE_RUN_SIZE;
    size_t most = left > merge ? left - merge : 0;
    size_t share = left / STATE_PARTS * state_parts(t);
    return share < most ? share : most;
}

static tn_rc open_before(void *user, struct tn_worker *worker, struct tn_state **state,
                         struct tn_err *err)
{
    struct tn_changes *c = user;
    struct tn_table *t = c->table;
    const struct tn_levels *levels = t->slice.held;
    const struct tn_compact_spec *compact = &t->slice.compaction.spec;
    uint32_t first = deeper_files(levels, compact->output_level);
    struct tn_key_state_spec spec = {.order = &t->order,
                                     .read = &t->read,
                                     .schemas = &t->schemas,
                                     .keys = compact->keys,
                                     .dir = compact->dir,
                                     .indexes = &c->indexes};
    size_t size = state_size(t, &worker->arena);
    size_t most = (levels->count - first) * (size_t)TN_STATE_RUN_SIZE;
    tn_rc rc = tn_key_state_open(&c->state, &spec, levels->files + first, levels->count - first,
                                 size < most ? size : most, worker, err);
    *state = rc == TN_OK ? &c->state.state : NULL;
    return rc;
}

static void close_before(void *user)
{
    struct tn_changes *c = user;
    tn_key_state_close(&c->state);
    c->keys_asked += c->state.asked;
    c->rows_read += c->state.rows_read;
}

/* ---- made once ---- */

/* All columns but those that row-deduplicate ignores. */
static tn_rc compared_columns(struct tn_changes *c, const int32_t *column_of,
                              struct tn_arena *arena, struct tn_err *err)
{
    const struct tn_table *t = c->table;
    struct tn_columns ignored = t->options.changelog_ignored;
    void *memory;
    tn_rc rc = tn_arena_need(arena, (t->layout.column_count + 1) * sizeof(uint32_t), "columns",
                             &memory, err);
    uint32_t *index = memory;
    uint32_t count = 0;
    for (uint32_t column = 0; rc == TN_OK && column < t->layout.column_count; column++) {
        bool counts = true;
        for (uint32_t i = 0; i < ignored.count; i++) {
            counts = counts && column_of[ignored.index[i]] != (int32_t)column;
        }
        if (counts) {
            index[count++] = column;
        }
    }
    c->change.compared = (struct tn_columns){index, count};
    return rc;
}

static tn_rc take_reducer(struct tn_changes *c, struct tn_err *err)
{
    struct tn_table *t = c->table;
    return tn_reducer_make(t->engine, t->row_size_max, tn_env_lasting(t->env), &c->reducer, err);
}

static tn_rc take_index(struct tn_changes *c, struct tn_err *err)
{
    const struct tn_env *env = c->table->env;
    size_t size = env->workers[TN_LANE_LONG]->arena.size / INDEX_SHARE;
    size = env->sharers > 0 ? size / env->sharers : size;
    void *memory;
    tn_rc rc = tn_arena_need(tn_env_lasting(env), size, "an index of blocks", &memory, err);
    if (rc == TN_OK) {
        tn_block_indexes_init(&c->indexes, memory, size);
        c->indexed = true;
    }
    return rc;
}

tn_rc tn_changes_init(struct tn_changes *changes, struct tn_table *table, const int32_t *column_of,
                      struct tn_arena *arena, struct tn_err *err)
{
    const struct tn_options *o = &table->options;
    bool full = o->changelog_producer == TN_CHANGELOG_FULL_COMPACTION;
    bool lookup = tn_options_need_lookup(o);
    *changes =
        (struct tn_changes){.table = table, .mark = tn_arena_mark(tn_env_lasting(table->env))};
    if (table->keeps == TN_MEMTABLE_FOLDED) {
        tn_rc folds = take_reducer(changes, err);
        if (folds != TN_OK) {
            return folds;
        }
    }
    if (o->full_compaction_delta > 0 || full) {
        changes->full_every = o->full_compaction_delta > 0 ? o->full_compaction_delta : 1;
    }
    if (table->spec.resolver) {
        return take_index(changes, err);
    }
    if (!lookup && !full) {
        return TN_OK;
    }
    changes->fold = full                                    ? TN_FOLD_FULL
                    : o->merge_engine == TN_MERGE_FIRST_ROW ? TN_FOLD_FIRST_ROW
                                                            : TN_FOLD_LOOKUP;
    changes->told = full || o->changelog_producer == TN_CHANGELOG_LOOKUP;
    changes->change.layout = &table->layout;
    changes->change.deduplicate = o->changelog_deduplicate;
    changes->before = (struct tn_compact_before){open_before, close_before, changes};
    tn_rc rc = compared_columns(changes, column_of, arena, err);
    changes->asks = lookup && tn_table_may_compact(table);
    return rc == TN_OK && changes->asks ? take_index(changes, err) : rc;
}

struct tn_block_indexes *tn_changes_indexes(struct tn_changes *changes)
{
    return changes->indexed ? &changes->indexes : NULL;
}

void tn_changes_close(struct tn_changes *changes)
{
    if (changes->table) {
        tn_arena_reset(tn_env_lasting(changes->table->env), changes->mark);
    }
}

void tn_changes_spec(struct tn_changes *changes, struct tn_compact_spec *spec)
{
    bool full = changes->fold == TN_FOLD_FULL;
    bool plain = full && !spec->to_last_level;
    spec->fold = plain ? TN_FOLD_PLAIN : changes->fold;
    spec->change = changes->told && !plain ? &changes->change : NULL;
    spec->before = changes->asks ? &changes->before : NULL;
}

/* ---- rounds ---- */

bool tn_changes_due(const struct tn_changes *changes, int64_t round)
{
    int64_t of_job = changes->table->spec.dedicated_round;
    return changes->full_every > 0 && tn_table_may_compact(changes->table) &&
           (round == changes->again_round ||
            (of_job > 0 ? of_job : round) % changes->full_every == 0);
}

void tn_changes_again(struct tn_changes *changes, int64_t round)
{
    changes->again_round = round;
}

void tn_changes_cut(struct tn_changes *changes, int64_t round)
{
    changes->full_round = tn_changes_due(changes, round) ? round : 0;
}
