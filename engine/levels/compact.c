#include "levels/compact.h"

#include <stdalign.h>

#include "base/check.h"
#include "file/names.h"

enum { SMALL_PERCENT = 70 }; /* Paimon: compaction.small-file-ratio 0.7 */

struct tn_compact_step {
    uint32_t first; /* file */
    uint32_t count;
    uint32_t run_count;
    bool rewrite; /* else its one file is moved up as it is */
    bool tells;   /* and is read for its changes */
};

/* ---- plan ---- */

static bool looks_up(const struct tn_compaction *c)
{
    return c->spec.fold == TN_FOLD_LOOKUP || c->spec.fold == TN_FOLD_FIRST_ROW;
}

/* Whether these files bring changes: by lookup where rows leave level 0. */
static bool brings_changes(const struct tn_compaction *c, uint32_t first, uint32_t count)
{
    if (!looks_up(c)) {
        return c->spec.fold == TN_FOLD_FULL;
    }
    bool level0 = false;
    for (uint32_t i = first; i < first + count; i++) {
        level0 = level0 || c->files[i]->level == 0;
    }
    return level0 && c->spec.output_level > 0;
}

/* A version below the output may count in a row that is moved up, unless the newest one always
 * wins. */
static bool deeper_counts(const struct tn_compaction *c)
{
    bool newest_wins =
        tn_engine_keeps_newest(c->spec.engine) && c->spec.order->sequence_fields.count == 0;
    return looks_up(c) && !c->spec.to_last_level && !newest_wins;
}

static void plan_upgrade(struct tn_compaction *c, uint32_t file)
{
    const struct tn_level_file *f = c->files[file];
    bool changes = f->level != c->spec.output_level && brings_changes(c, file, 1);
    bool rewrite = c->spec.options->force_rewrite || (changes && deeper_counts(c)) ||
                   (f->delete_row_count != 0 && c->spec.to_last_level);
    c->steps[c->step_count++] =
        (struct tn_compact_step){.first = file,
                                 .count = 1,
                                 .run_count = 1,
                                 .rewrite = rewrite,
                                 .tells = changes && (c->spec.change || rewrite)};
}

/* Sections gathered so far become one rewrite, or an upgrade when they are a single file. */
static void plan_rewrite(struct tn_compaction *c, uint32_t first, uint32_t count)
{
    if (count == 1) {
        plan_upgrade(c, first);
    } else if (count > 1) {
        c->steps[c->step_count++] = (struct tn_compact_step){
            .first = first,
            .count = count,
            .run_count = tn_files_runs(c->spec.keys, c->files + first, count, NULL),
            .rewrite = true,
            .tells = brings_changes(c, first, count)};
    }
}

/* Append tables: files are put behind each other, in the order of their rows' numbers. */
static void plan_append(struct tn_compaction *c)
{
    c->next_sequence = c->files[0]->min_sequence;
    c->steps[c->step_count++] =
        (struct tn_compact_step){.count = c->file_count, .run_count = 1, .rewrite = true};
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

static void init_streams(struct tn_compaction *c)
{
    c->changes_options = *c->spec.options;
    c->changes_options.codec = c->spec.options->changelog_codec;
    c->rows = (struct tn_compact_stream){.options = c->spec.options};
    c->rows.end = &c->rows.first;
    c->changes = (struct tn_compact_stream){.options = &c->changes_options, .changelog = true};
    c->changes.end = &c->changes.first;
}

static tn_rc give_state(struct tn_compaction *c, struct tn_compact_stream *stream,
                        struct tn_err *err)
{
    size_t size =
        tn_data_writer_state_size(c->spec.order->layout, stream->options, c->spec.row_size_max);
    void *memory;
    tn_rc rc = tn_arena_need(c->arena, size, "a compaction's output", &memory, err);
    if (rc == TN_OK) {
        tn_arena_init(&stream->state, memory, size);
    }
    return rc;
}

tn_rc tn_compaction_begin(struct tn_compaction *compaction, const struct tn_compact_spec *spec,
                          struct tn_level_file *const *files, uint32_t file_count,
                          struct tn_arena *arena, struct tn_err *err)
{
    *compaction = (struct tn_compaction){.spec = *spec, .arena = arena, .file_count = file_count};
    init_streams(compaction);
    size_t size = file_count * (sizeof *compaction->files + sizeof *compaction->steps +
                                sizeof *compaction->upgraded) +
                  TN_CURSOR_RUNS_MAX * sizeof *compaction->positions + 4 * alignof(max_align_t);
    size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    void *memory;
    tn_rc rc = tn_arena_need(arena, size, "a compaction's plan", &memory, err);
    if (rc == TN_OK) {
        rc = give_state(compaction, &compaction->rows, err);
    }
    if (rc == TN_OK && spec->change) {
        rc = give_state(compaction, &compaction->changes, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
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
    struct tn_change_sink sink; /* first: where changes go */
    struct tn_compaction *c;
    struct tn_worker *worker;         /* the lane's, with its arena */
    struct tn_worker writing;         /* the rows' writer's part of it */
    struct tn_worker writing_changes; /* the changelog's */
    struct tn_change change;
    struct tn_key_types keys; /* with scratch of this worker's own */
    struct tn_cursor cursor;
    uint64_t bytes_left;
};

/* ---- streams ---- */

static struct tn_worker *worker_of(struct slice *s, const struct tn_compact_stream *stream)
{
    return stream->changelog ? &s->writing_changes : &s->writing;
}

static tn_rc name_file(struct tn_compaction *c, const struct tn_compact_stream *stream,
                       const char **name, struct tn_err *err)
{
    uint32_t number = (*c->spec.counter)++;
    return stream->changelog
               ? tn_name_changelog_file(c->arena, stream->options, c->spec.uuid, number, name, err)
               : tn_name_data_file(c->arena, stream->options, c->spec.uuid, number, name, err);
}

static tn_rc open_stream(struct slice *s, struct tn_compact_stream *stream, struct tn_err *err)
{
    struct tn_compaction *c = s->c;
    struct tn_worker *worker = worker_of(s, stream);
    tn_arena_reset(&worker->arena, 0);
    if (stream->writing) {
        return tn_data_writer_wake(&stream->writer, worker, err);
    }
    const char *name;
    tn_rc rc = name_file(c, stream, &name, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_data_writer_spec spec = {.schema = c->spec.schema,
                                       .options = stream->options,
                                       .layout = c->spec.order->layout,
                                       .keys = c->spec.order->keys,
                                       .dir = c->spec.dir,
                                       .name = name,
                                       .level = c->spec.output_level,
                                       .source = 1,
                                       .repeated = stream->changelog,
                                       .block_size = c->spec.block_size};
    tn_arena_reset(&stream->state, 0);
    rc = tn_data_writer_begin(&stream->writer, &spec, worker, c->spec.row_size_max, &stream->state,
                              err);
    stream->writing = rc == TN_OK;
    return rc;
}

static tn_rc close_stream(struct tn_compaction *c, struct tn_compact_stream *stream,
                          struct tn_err *err)
{
    if (!stream->writing) {
        return TN_OK;
    }
    struct tn_compact_output *output = tn_arena_take(c->arena, sizeof *output);
    if (!output) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for another output of a compaction");
    }
    tn_rc rc = tn_data_writer_finish(&stream->writer, c->arena, &output->meta, err);
    if (rc == TN_OK) {
        stream->writing = false;
        *stream->end = output;
        stream->end = &output->next;
        stream->count++;
    }
    return rc;
}

static tn_rc put_into(struct slice *s, struct tn_compact_stream *stream, const struct tn_kv *kv,
                      struct tn_err *err)
{
    tn_rc rc = stream->writing ? TN_OK : open_stream(s, stream, err);
    if (rc == TN_OK) {
        rc = tn_data_writer_add(&stream->writer, kv, err);
    }
    if (rc == TN_OK && tn_data_writer_full(&stream->writer)) {
        rc = close_stream(s->c, stream, err);
    }
    return rc;
}

static tn_rc rest_stream(struct tn_compact_stream *stream, struct tn_err *err)
{
    return stream->writing ? tn_data_writer_rest(&stream->writer, err) : TN_OK;
}

static tn_rc wake_stream(struct slice *s, struct tn_compact_stream *stream, struct tn_err *err)
{
    return stream->writing ? open_stream(s, stream, err) : TN_OK;
}

static tn_rc put_change(struct tn_change_sink *sink, const struct tn_kv *kv, struct tn_err *err)
{
    struct slice *s = (struct slice *)(void *)sink;
    return put_into(s, &s->c->changes, kv, err);
}

/* ---- steps ---- */

static tn_rc write_row(struct slice *s, struct tn_kv *kv, struct tn_err *err)
{
    struct tn_compaction *c = s->c;
    if (c->spec.keys->count == 0) {
        kv->sequence = c->next_sequence++;
    }
    return put_into(s, &c->rows, kv, err);
}

static tn_rc end_step(struct slice *s, struct tn_err *err)
{
    tn_rc rc = close_stream(s->c, &s->c->rows, err);
    return rc == TN_OK ? close_stream(s->c, &s->c->changes, err) : rc;
}

static tn_rc rest_step(struct slice *s, struct tn_err *err)
{
    struct tn_compaction *c = s->c;
    tn_rc rc = tn_cursor_rest(&s->cursor, c->positions, err);
    if (rc == TN_OK) {
        rc = rest_stream(&c->rows, err);
    }
    return rc == TN_OK ? rest_stream(&c->changes, err) : rc;
}

static tn_rc merge_rows(struct slice *s, const struct tn_compact_step *step, bool *done,
                        struct tn_err *err)
{
    struct tn_compaction *c = s->c;
    for (;;) {
        struct tn_kv kv;
        tn_rc rc = tn_iter_next(&s->cursor.fold.iter, &kv, err);
        if (rc == TN_ABSENT) {
            *done = true;
            return end_step(s, err);
        }
        if (rc == TN_OK && step->rewrite &&
            !(c->spec.drop_deletes && tn_row_kind_retracts(kv.kind))) {
            rc = write_row(s, &kv, err);
        }
        if (rc != TN_OK) {
            return rc;
        }
        c->bytes_read += kv.row.size;
        if (kv.row.size >= s->bytes_left) {
            *done = false;
            return rest_step(s, err);
        }
        s->bytes_left -= kv.row.size;
    }
}

/* How this step folds: changes are told, and deeper levels asked, only where rows bring them. */
static struct tn_fold_spec fold_of(const struct slice *s, const struct tn_compact_step *step,
                                   struct tn_state *state)
{
    const struct tn_compact_spec *spec = &s->c->spec;
    bool plain = spec->fold == TN_FOLD_FULL && !step->tells;
    return (struct tn_fold_spec){.engine = spec->engine,
                                 .mode = plain ? TN_FOLD_PLAIN : spec->fold,
                                 .ignore_delete = spec->options->ignore_delete,
                                 .level_max = spec->output_level,
                                 .state = state,
                                 .change = step->tells && spec->change ? &s->change : NULL,
                                 .row_size_max = spec->row_size_max};
}

static tn_rc read_step(struct slice *s, const struct tn_compact_step *step, struct tn_state *state,
                       bool *done, struct tn_err *err)
{
    struct tn_compaction *c = s->c;
    struct tn_cursor_spec spec = {.order = c->spec.order,
                                  .read = c->spec.read,
                                  .schemas = c->spec.schemas,
                                  .keys = &s->keys,
                                  .dir = c->spec.dir,
                                  .fold = fold_of(s, step, state)};
    tn_rc rc = tn_cursor_open(&s->cursor, &spec, c->files + step->first, step->count,
                              c->step_started ? c->positions : NULL, s->worker, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = wake_stream(s, &c->rows, err);
    if (rc == TN_OK) {
        rc = wake_stream(s, &c->changes, err);
    }
    if (rc == TN_OK) {
        rc = merge_rows(s, step, done, err);
    }
    tn_cursor_close(&s->cursor);
    c->step_started = true;
    return rc;
}

static tn_rc work_step(struct slice *s, const struct tn_compact_step *step, bool *done,
                       struct tn_err *err)
{
    const struct tn_compact_before *before = s->c->spec.before;
    struct tn_arena *arena = &s->worker->arena;
    size_t mark = tn_arena_mark(arena);
    struct tn_state *state = NULL;
    bool asks = before && looks_up(s->c) && step->tells;
    tn_rc rc = asks ? before->open(before->user, s->worker, &state, err) : TN_OK;
    if (rc == TN_OK) {
        rc = read_step(s, step, state, done, err);
        if (asks) {
            before->close(before->user);
        }
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc run_step(struct slice *s, struct tn_err *err)
{
    struct tn_compaction *c = s->c;
    const struct tn_compact_step *step = &c->steps[c->step_at];
    bool done = true;
    tn_rc rc = step->rewrite || step->tells ? work_step(s, step, &done, err) : TN_OK;
    if (rc == TN_OK && done) {
        if (!step->rewrite) {
            c->upgraded[step->first] = true;
            c->upgraded_count++;
        }
        c->step_at++;
        c->step_started = false;
        c->finished = c->step_at == c->step_count;
    }
    return rc;
}

/* A writer's buffers, which stay for the slice. */
static tn_rc give_buffers(struct slice *s, const struct tn_compact_stream *stream,
                          struct tn_err *err)
{
    const struct tn_compact_spec *spec = &s->c->spec;
    size_t size = tn_data_writer_size(spec->order->layout, stream->options, spec->block_size,
                                      spec->row_size_max);
    void *memory;
    tn_rc rc = tn_arena_need(&s->worker->arena, size, "a compaction's output", &memory, err);
    if (rc == TN_OK) {
        struct tn_worker *worker = worker_of(s, stream);
        *worker = *s->worker;
        tn_arena_init(&worker->arena, memory, size);
    }
    return rc;
}

/* The writers' buffers come first in the arena; the rest is for the runs. */
static tn_rc init_slice(struct slice *s, struct tn_err *err)
{
    const struct tn_compact_spec *spec = &s->c->spec;
    tn_rc rc = give_buffers(s, &s->c->rows, err);
    if (rc == TN_OK && spec->change) {
        s->change = *spec->change;
        s->change.sink = &s->sink;
        rc = give_buffers(s, &s->c->changes, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    void *memory;
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
    struct slice s = {
        .sink = {put_change}, .c = compaction, .worker = worker, .bytes_left = bytes_max};
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

static void drop_stream(struct tn_compaction *c, struct tn_compact_stream *stream, struct tn_io *io)
{
    if (stream->writing) {
        tn_data_writer_abort(&stream->writer);
        stream->writing = false;
    }
    struct tn_arena *scratch = &stream->state; /* holds a path, and is free now */
    for (struct tn_compact_output *output = stream->first; output; output = output->next) {
        tn_arena_reset(scratch, 0);
        const char *path = tn_arena_format(scratch, "%s%s", c->spec.dir, output->meta.file_name);
        struct tn_err ignored = {0};
        if (path) {
            (void)io->vtable->unlink(io, path, &ignored); /* else a file that nobody names */
        }
    }
}

void tn_compaction_abort(struct tn_compaction *compaction, struct tn_io *io)
{
    drop_stream(compaction, &compaction->rows, io);
    drop_stream(compaction, &compaction->changes, io);
}
