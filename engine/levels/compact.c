#include "levels/compact.h"

#include <stdalign.h>

#include "base/check.h"
#include "file/names.h"

enum { SMALL_PERCENT = 70 }; /* Paimon: compaction.small-file-ratio 0.7 */

struct tn_compact_step {
    uint32_t first; /* file */
    uint32_t count;
    uint32_t run_count;
    bool upgrade;
};

/* ---- plan ---- */

static void plan_upgrade(struct tn_compaction *c, uint32_t file)
{
    const struct tn_level_file *f = c->files[file];
    bool rewrite = f->delete_row_count != 0 && c->spec.to_last_level;
    c->steps[c->step_count++] =
        (struct tn_compact_step){file, 1, 1, !rewrite && !c->spec.options->force_rewrite};
}

/* Sections gathered so far become one rewrite, or an upgrade when they are a single file. */
static void plan_rewrite(struct tn_compaction *c, uint32_t first, uint32_t count)
{
    if (count == 1) {
        plan_upgrade(c, first);
    } else if (count > 1) {
        c->steps[c->step_count++] = (struct tn_compact_step){
            first, count, tn_files_runs(c->spec.keys, c->files + first, count, NULL), false};
    }
}

/* Append tables: files are put behind each other, in the order of their rows' numbers. */
static void plan_append(struct tn_compaction *c)
{
    c->next_sequence = c->files[0]->min_sequence;
    c->steps[c->step_count++] = (struct tn_compact_step){0, c->file_count, 1, false};
}

static void plan(struct tn_compaction *c)
{
    int64_t small = c->spec.options->target_file_size / 100 * SMALL_PERCENT;
    uint32_t gathered = 0; /* files before `at` that wait for a rewrite */
    uint32_t at = 0;
    while (at < c->file_count) {
        uint32_t count = tn_files_section(c->spec.keys, c->files, c->file_count, at);
        if (count == 1 && c->files[at]->size >= small) {
            plan_rewrite(c, at - gathered, gathered);
            gathered = 0;
            plan_upgrade(c, at);
        } else {
            gathered += count;
        }
        at += count;
    }
    plan_rewrite(c, at - gathered, gathered);
}

tn_rc tn_compaction_begin(struct tn_compaction *compaction, const struct tn_compact_spec *spec,
                          struct tn_level_file *const *files, uint32_t file_count,
                          struct tn_arena *arena, struct tn_err *err)
{
    *compaction = (struct tn_compaction){.spec = *spec, .arena = arena, .file_count = file_count};
    compaction->outputs_end = &compaction->outputs;
    size_t size = file_count * (sizeof *compaction->files + sizeof *compaction->steps +
                                sizeof *compaction->upgraded) +
                  TN_CURSOR_RUNS_MAX * sizeof *compaction->positions + 4 * alignof(max_align_t);
    size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    size_t state =
        tn_data_writer_state_size(spec->order->layout, spec->options, spec->row_size_max);
    void *memory;
    tn_rc rc = tn_arena_need(arena, size + state, "a compaction's plan", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_arena_init(&compaction->writer_state, (unsigned char *)memory + size, state);
    compaction->positions = memory;
    compaction->files =
        (struct tn_level_file **)(void *)(compaction->positions + TN_CURSOR_RUNS_MAX);
    compaction->steps = (struct tn_compact_step *)(void *)(compaction->files + file_count);
    compaction->upgraded = (bool *)(compaction->steps + file_count);
    memcpy(compaction->files, files, file_count * sizeof(struct tn_level_file *));
    if (spec->keys->count == 0) {
        plan_append(compaction);
    } else {
        tn_files_sort(spec->keys, compaction->files, file_count);
        plan(compaction);
    }
    for (uint32_t i = 0; i < compaction->step_count; i++) {
        if (compaction->steps[i].run_count > TN_CURSOR_RUNS_MAX) {
            return tn_err_set(err, TN_UNSUPPORTED, 0, "%s: more than %d runs overlap", spec->dir,
                              TN_CURSOR_RUNS_MAX);
        }
    }
    compaction->finished = compaction->step_count == 0;
    return TN_OK;
}

/* ---- a slice ---- */

struct slice {
    struct tn_compaction *c;
    struct tn_worker *worker; /* the lane's, with its arena */
    struct tn_worker writing; /* the writer's part of it */
    struct tn_key_types keys; /* with scratch of this worker's own */
    struct tn_cursor cursor;
    uint64_t bytes_left;
};

static tn_rc open_output(struct slice *s, struct tn_err *err)
{
    struct tn_compaction *c = s->c;
    tn_arena_reset(&s->writing.arena, 0);
    if (c->writing) {
        return tn_data_writer_wake(&c->writer, &s->writing, err);
    }
    const char *name;
    tn_rc rc = tn_name_data_file(c->arena, c->spec.options, c->spec.uuid, (*c->spec.counter)++,
                                 &name, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_data_writer_spec spec = {.schema = c->spec.schema,
                                       .options = c->spec.options,
                                       .layout = c->spec.order->layout,
                                       .keys = c->spec.order->keys,
                                       .dir = c->spec.dir,
                                       .name = name,
                                       .level = c->spec.output_level,
                                       .source = 1,
                                       .block_size = c->spec.block_size};
    tn_arena_reset(&c->writer_state, 0);
    rc = tn_data_writer_begin(&c->writer, &spec, &s->writing, c->spec.row_size_max,
                              &c->writer_state, err);
    c->writing = rc == TN_OK;
    return rc;
}

static tn_rc close_output(struct slice *s, struct tn_err *err)
{
    struct tn_compaction *c = s->c;
    struct tn_compact_output *output = tn_arena_take(c->arena, sizeof *output);
    if (!output) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for another output of a compaction");
    }
    tn_rc rc = tn_data_writer_finish(&c->writer, c->arena, &output->meta, err);
    if (rc == TN_OK) {
        c->writing = false;
        *c->outputs_end = output;
        c->outputs_end = &output->next;
        c->output_count++;
    }
    return rc;
}

static tn_rc write_row(struct slice *s, struct tn_kv *kv, struct tn_err *err)
{
    struct tn_compaction *c = s->c;
    if (c->spec.keys->count == 0) {
        kv->sequence = c->next_sequence++;
    }
    if (!c->writing) {
        tn_rc rc = open_output(s, err);
        if (rc != TN_OK) {
            return rc;
        }
    }
    tn_rc rc = tn_data_writer_add(&c->writer, kv, err);
    if (rc == TN_OK && tn_data_writer_written(&c->writer) >= c->spec.options->target_file_size) {
        rc = close_output(s, err);
    }
    return rc;
}

static tn_rc merge_rows(struct slice *s, bool *done, struct tn_err *err)
{
    struct tn_compaction *c = s->c;
    for (;;) {
        struct tn_kv kv;
        tn_rc rc = tn_iter_next(&s->cursor.fold.iter, &kv, err);
        if (rc == TN_ABSENT) {
            *done = true;
            return c->writing ? close_output(s, err) : TN_OK;
        }
        if (rc == TN_OK && !(c->spec.drop_deletes && tn_row_kind_retracts(kv.kind))) {
            rc = write_row(s, &kv, err);
        }
        if (rc != TN_OK) {
            return rc;
        }
        c->bytes_read += kv.row.size;
        if (kv.row.size >= s->bytes_left) {
            *done = false;
            rc = tn_cursor_rest(&s->cursor, c->positions, err);
            return rc == TN_OK && c->writing ? tn_data_writer_rest(&c->writer, err) : rc;
        }
        s->bytes_left -= kv.row.size;
    }
}

static tn_rc rewrite_step(struct slice *s, const struct tn_compact_step *step, bool *done,
                          struct tn_err *err)
{
    struct tn_compaction *c = s->c;
    struct tn_cursor_spec spec = {.order = c->spec.order,
                                  .read = c->spec.read,
                                  .schemas = c->spec.schemas,
                                  .keys = &s->keys,
                                  .dir = c->spec.dir,
                                  .fold = {.engine = c->spec.engine,
                                           .mode = c->spec.fold,
                                           .ignore_delete = c->spec.options->ignore_delete,
                                           .row_size_max = c->spec.row_size_max}};
    tn_rc rc = tn_cursor_open(&s->cursor, &spec, c->files + step->first, step->count,
                              c->step_started ? c->positions : NULL, s->worker, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (c->writing) {
        rc = open_output(s, err);
    }
    if (rc == TN_OK) {
        rc = merge_rows(s, done, err);
    }
    tn_cursor_close(&s->cursor);
    c->step_started = true;
    return rc;
}

static tn_rc run_step(struct slice *s, struct tn_err *err)
{
    struct tn_compaction *c = s->c;
    const struct tn_compact_step *step = &c->steps[c->step_at];
    bool done = true;
    tn_rc rc = TN_OK;
    if (step->upgrade) {
        c->upgraded[step->first] = true;
        c->upgraded_count++;
    } else {
        rc = rewrite_step(s, step, &done, err);
    }
    if (rc == TN_OK && done) {
        c->step_at++;
        c->step_started = false;
        c->finished = c->step_at == c->step_count;
    }
    return rc;
}

/* The writer's buffers come first in the arena and stay; the rest is for the runs. */
static tn_rc init_slice(struct slice *s, struct tn_err *err)
{
    const struct tn_compact_spec *spec = &s->c->spec;
    size_t size = tn_data_writer_size(spec->order->layout, spec->options, spec->block_size,
                                      spec->row_size_max);
    void *memory;
    tn_rc rc = tn_arena_need(&s->worker->arena, size, "a compaction's output", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    s->writing = *s->worker;
    tn_arena_init(&s->writing.arena, memory, size);
    s->keys = *spec->keys;
    rc = tn_arena_need(&s->worker->arena, 2 * s->keys.count * sizeof *s->keys.a, "keys", &memory,
                       err);
    s->keys.a = memory;
    s->keys.b = s->keys.a + s->keys.count;
    return rc;
}

tn_rc tn_compaction_slice(struct tn_compaction *compaction, struct tn_worker *worker,
                          uint64_t bytes_max, struct tn_err *err)
{
    TN_CHECK(!compaction->finished);
    size_t mark = tn_arena_mark(&worker->arena);
    struct slice s = {.c = compaction, .worker = worker, .bytes_left = bytes_max};
    uint64_t began_at = compaction->bytes_read;
    tn_rc rc = init_slice(&s, err);
    while (rc == TN_OK && !compaction->finished) { /* at least one row, or one step */
        rc = run_step(&s, err);
        if (compaction->bytes_read - began_at >= bytes_max) {
            break;
        }
    }
    tn_arena_reset(&worker->arena, mark);
    return rc == TN_OK ? rc : tn_err_in(err, "compact %s", compaction->spec.dir);
}

void tn_compaction_abort(struct tn_compaction *compaction, struct tn_io *io)
{
    if (compaction->writing) {
        tn_data_writer_abort(&compaction->writer);
        compaction->writing = false;
    }
    struct tn_arena *scratch = &compaction->writer_state; /* holds a path, and is free now */
    for (struct tn_compact_output *output = compaction->outputs; output; output = output->next) {
        tn_arena_reset(scratch, 0);
        const char *path =
            tn_arena_format(scratch, "%s%s", compaction->spec.dir, output->meta.file_name);
        struct tn_err ignored = {0};
        if (path) {
            (void)io->vtable->unlink(io, path, &ignored); /* else a file that nobody names */
        }
    }
}
