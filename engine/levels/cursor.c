#include "levels/cursor.h"

#include "base/check.h"

enum {
    RUN_ARENA_MIN = 96 * 1024,    /* two blocks of 32 KB and a row: less is not worth a try */
    RUN_ARENA_USUAL = 160 * 1024, /* a block of 64 KB, packed and not, and a row */
    ROW_SHARE = 10, /* a folded row is at most a tenth of what is free, and four times that are
                       taken: what is written is read again */
};

void tn_files_sort(const struct tn_key_types *keys, struct tn_level_file **files, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) { /* few files, and mostly in order */
        struct tn_level_file *moving = files[i];
        uint32_t at = i;
        for (; at > 0; at--) {
            int c = tn_key_compare(keys, moving->min_key, files[at - 1]->min_key);
            if (c == 0) {
                c = tn_key_compare(keys, moving->max_key, files[at - 1]->max_key);
            }
            if (c >= 0) {
                break;
            }
            files[at] = files[at - 1];
        }
        files[at] = moving;
    }
}

uint32_t tn_files_section(const struct tn_key_types *keys, struct tn_level_file *const *files,
                          uint32_t count, uint32_t first)
{
    struct tn_bytes end = files[first]->max_key;
    uint32_t at = first + 1;
    for (; at < count && tn_key_compare(keys, files[at]->min_key, end) <= 0; at++) {
        if (tn_key_compare(keys, files[at]->max_key, end) > 0) {
            end = files[at]->max_key;
        }
    }
    return at - first;
}

uint32_t tn_files_runs(const struct tn_key_types *keys, struct tn_level_file *const *files,
                       uint32_t count, uint32_t *run_of)
{
    struct tn_bytes ends[TN_CURSOR_RUNS_MAX];
    uint32_t runs = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t best = 0;
        for (uint32_t r = 1; r < runs; r++) {
            best = tn_key_compare(keys, ends[r], ends[best]) < 0 ? r : best;
        }
        if (runs == 0 || tn_key_compare(keys, files[i]->min_key, ends[best]) <= 0) {
            if (runs == TN_CURSOR_RUNS_MAX) {
                return TN_CURSOR_RUNS_MAX + 1;
            }
            best = runs++;
        }
        ends[best] = files[i]->max_key;
        if (run_of) {
            run_of[i] = best;
        }
    }
    return runs;
}

/* The files of one run, with their paths. */
static tn_rc list_files(struct tn_cursor *c, struct tn_level_file *const *all, uint32_t all_count,
                        const uint32_t *run_of, uint32_t run, struct tn_run_file **files,
                        uint32_t *count, struct tn_err *err)
{
    struct tn_arena *arena = &c->worker->arena;
    uint32_t own = 0;
    for (uint32_t i = 0; i < all_count; i++) {
        own += run_of[i] == run;
    }
    void *memory;
    tn_rc rc = tn_arena_need(arena, own * sizeof **files, "a run's files", &memory, err);
    *files = memory;
    *count = 0;
    for (uint32_t i = 0; rc == TN_OK && i < all_count; i++) {
        if (run_of[i] != run) {
            continue;
        }
        const char *dir = all[i]->dir ? all[i]->dir : c->spec.dir;
        const char *path = tn_arena_format(arena, "%s%s", dir, all[i]->name);
        const struct tn_schema *schema = tn_schemas_find(c->spec.schemas, all[i]->schema_id);
        TN_CHECK(schema);
        if (!path) {
            return tn_err_set(err, TN_AGAIN, 0, "no memory for a run's file names");
        }
        (*files)[(*count)++] =
            (struct tn_run_file){path, all[i]->size, all[i]->row_count, all[i]->level, schema};
    }
    return rc;
}

static tn_rc make_runs(struct tn_cursor *c, struct tn_level_file *const *files, uint32_t count,
                       struct tn_err *err)
{
    struct tn_arena *arena = &c->worker->arena;
    void *memory;
    tn_rc rc = tn_arena_need(arena, count * sizeof(uint32_t), "a merge's files", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    uint32_t *run_of = memory;
    /* Without keys nothing is merged: one run, the files as they come. */
    c->run_count = c->spec.keys->count == 0 ? 1 : tn_files_runs(c->spec.keys, files, count, run_of);
    if (c->run_count > TN_CURSOR_RUNS_MAX) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "%s: more than %d runs overlap", c->spec.dir,
                          TN_CURSOR_RUNS_MAX);
    }
    rc = tn_arena_need(arena, c->run_count * sizeof *c->runs, "a merge's runs", &memory, err);
    c->runs = memory;
    for (uint32_t i = 0; rc == TN_OK && i < c->run_count; i++) {
        struct tn_run_file *own;
        uint32_t own_count;
        rc = list_files(c, files, count, run_of, i, &own, &own_count, err);
        if (rc == TN_OK) {
            tn_run_reader_init(&c->runs[i], own, own_count, c->spec.read, c->worker,
                               (struct tn_arena){0});
            c->runs[i].keep_bad = c->spec.keys->count > 0; /* the fold looks at what comes out */
        }
    }
    return rc;
}

/* Gives each run an equal part of what is left of the arena, less what the merge itself takes. */
static tn_rc share_arena(struct tn_cursor *c, struct tn_err *err)
{
    struct tn_arena *arena = &c->worker->arena;
    size_t merge_size = tn_merge_size(c->run_count) + tn_fold_size(&c->spec.fold) + 1024;
    size_t left = tn_arena_free(arena);
    size_t part = left > merge_size ? ((left - merge_size) / c->run_count) & ~(size_t)63 : 0;
    if (part < RUN_ARENA_MIN) {
        return tn_err_set(err, TN_AGAIN, 0, "a merge of %u runs needs %zu KB, %zu KB are free",
                          c->run_count, c->run_count * (size_t)RUN_ARENA_MIN / 1024, left / 1024);
    }
    for (uint32_t i = 0; i < c->run_count; i++) {
        void *memory = tn_arena_take_raw(arena, part - 64);
        TN_CHECK(memory);
        tn_arena_init(&c->runs[i].worker.arena, memory, part - 64);
    }
    return TN_OK;
}

static tn_rc start_merge(struct tn_cursor *c, const struct tn_run_position *positions,
                         struct tn_err *err)
{
    struct tn_iter *iters[TN_CURSOR_RUNS_MAX];
    tn_rc rc = share_arena(c, err);
    for (uint32_t i = 0; rc == TN_OK && i < c->run_count; i++) {
        iters[i] = &c->runs[i].iter;
        if (positions) {
            rc = tn_run_reader_resume(&c->runs[i], positions[i], err);
        }
    }
    if (rc == TN_OK) {
        rc = tn_merge_init(&c->merge, c->spec.order, tn_fold_merges(&c->spec.fold), iters,
                           c->run_count, &c->worker->arena, err);
    }
    if (rc == TN_OK) {
        rc = tn_fold_init(&c->fold, &c->merge, &c->spec.fold, &c->worker->arena, err);
    }
    return rc;
}

static uint32_t row_size_max(const struct tn_fold_spec *fold, size_t size)
{
    return fold->row_size_max > 0 ? fold->row_size_max : (uint32_t)(size / ROW_SHARE);
}

uint32_t tn_cursor_fits(const struct tn_cursor_spec *spec, uint32_t file_count, size_t size)
{
    enum { FILE_SIZE = 256, RUN_SIZE = 2048, REST = 4096 }; /* names and readers, a bit more */
    struct tn_fold_spec fold = spec->fold;
    fold.row_size_max = row_size_max(&fold, size);
    size_t taken = tn_fold_size(&fold) + (size_t)file_count * FILE_SIZE + REST;
    size_t runs = size > taken ? (size - taken) / (RUN_ARENA_USUAL + RUN_SIZE) : 0;
    return runs < TN_CURSOR_RUNS_MAX ? (uint32_t)runs : TN_CURSOR_RUNS_MAX;
}

tn_rc tn_cursor_open(struct tn_cursor *cursor, const struct tn_cursor_spec *spec,
                     struct tn_level_file *const *files, uint32_t count,
                     const struct tn_run_position *positions, struct tn_worker *worker,
                     struct tn_err *err)
{
    TN_CHECK(count > 0);
    *cursor =
        (struct tn_cursor){.spec = *spec, .worker = worker, .mark = tn_arena_mark(&worker->arena)};
    size_t free_size = tn_arena_free(&worker->arena);
    cursor->spec.fold.row_size_max = row_size_max(&spec->fold, free_size);
    tn_rc rc = make_runs(cursor, files, count, err);
    if (rc == TN_OK) {
        rc = start_merge(cursor, positions, err);
        if (rc != TN_OK) {
            tn_cursor_close(cursor);
        }
    } else {
        tn_arena_reset(&worker->arena, cursor->mark);
    }
    return rc;
}

tn_rc tn_cursor_rest(struct tn_cursor *cursor, struct tn_run_position *positions,
                     struct tn_err *err)
{
    tn_rc rc = tn_merge_settle(&cursor->merge, err);
    for (uint32_t i = 0; i < cursor->run_count; i++) {
        const struct tn_run_reader *run = &cursor->runs[i];
        struct tn_run_position end = {.file = run->file_count};
        positions[i] = run->at == run->file_count ? end : run->last;
    }
    return rc;
}

void tn_cursor_close(struct tn_cursor *cursor)
{
    for (uint32_t i = 0; i < cursor->run_count; i++) {
        tn_iter_close(&cursor->runs[i].iter);
    }
    tn_arena_reset(&cursor->worker->arena, cursor->mark);
}
