/* What a bucket's levels will be once the result that waits for a cut has joined a round. The same
 * rows in fewer runs: a flush that looks them up need not wait for the cut, which may wait for it.
 */
#include "table/state.h"

struct swap {
    struct tn_level_file **removed;
    struct tn_level_file **added;
    uint32_t removed_count;
    uint32_t added_count;
};

static tn_rc swap_sources(struct tn_table *t, struct swap *swap, struct tn_err *err)
{
    const struct tn_compaction *c = &t->slice.compaction;
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < c->file_count; i++) {
        bool stays = c->upgraded[i] && c->files[i]->level == c->spec.output_level;
        if (!stays) {
            swap->removed[swap->removed_count++] = c->files[i];
        }
        if (!stays && c->upgraded[i]) {
            rc = tn_level_file_move(t->env->levels, c->files[i], c->spec.output_level,
                                    &swap->added[swap->added_count], err);
            swap->added_count += rc == TN_OK;
        }
    }
    return rc;
}

static tn_rc swap_outputs(struct tn_table *t, struct swap *swap, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (const struct tn_compact_output *o = t->slice.compaction.rows.first; rc == TN_OK && o;
         o = o->next) {
        rc = tn_level_file_make(t->env->levels, &o->meta, o->meta.level,
                                &swap->added[swap->added_count], err);
        swap->added_count += rc == TN_OK;
    }
    return rc;
}

static tn_rc edit(struct tn_table *t, struct tn_levels **levels, struct tn_err *err)
{
    const struct tn_compaction *c = &t->slice.compaction;
    struct tn_arena *scratch = t->env->arena;
    size_t mark = tn_arena_mark(scratch);
    size_t count = 2 * (size_t)c->file_count + c->rows.count;
    void *memory;
    tn_rc rc = tn_arena_need(scratch, (count + 1) * sizeof(struct tn_level_file *),
                             "the files of a result", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct swap swap = {.removed = memory,
                        .added = (struct tn_level_file **)memory + c->file_count};
    rc = swap_sources(t, &swap, err);
    if (rc == TN_OK) {
        rc = swap_outputs(t, &swap, err);
    }
    if (rc == TN_OK) {
        rc = tn_levels_edit(t->env->levels, t->slice.bucket->levels, swap.removed,
                            swap.removed_count, swap.added, swap.added_count, &t->key_types, levels,
                            err);
    }
    for (uint32_t i = 0; i < swap.added_count; i++) {
        tn_level_file_drop(t->env->levels, swap.added[i]);
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

struct tn_levels *tn_work_ahead(struct tn_table *table, const struct tn_bucket *bucket)
{
    struct tn_levels *levels = NULL;
    struct tn_err ignored;
    if (table->result_waits && table->slice.bucket == bucket &&
        edit(table, &levels, &ignored) == TN_OK) {
        return levels;
    }
    if (bucket->levels) {
        bucket->levels->refs++;
    }
    return bucket->levels;
}
