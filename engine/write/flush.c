#include "write/flush.h"

#include "file/names.h"

/* Files of one kind, one after the other. */
struct output {
    struct tn_change_sink sink; /* first */
    struct flush *flush;
    bool changelog;
    struct tn_options options; /* the table's; of a changelog with its codec */
    struct tn_worker writing;  /* with the writer's part of the arena */
    struct tn_arena state;
    struct tn_data_writer writer;
    bool open;
    struct tn_flush_file *first;
    struct tn_flush_file **end;
};

struct flush {
    const struct tn_flush_spec *spec;
    struct tn_worker *worker;
    uint32_t row_size_max;
    struct tn_arena resolving;
    struct output changes;
    struct output rows;
};

static tn_rc name_file(struct output *o, const char **name, struct tn_err *err)
{
    const struct tn_flush_spec *spec = o->flush->spec;
    struct tn_arena *arena = &o->flush->worker->arena;
    uint32_t number = (*spec->counter)++;
    return o->changelog
               ? tn_name_changelog_file(arena, spec->options, spec->uuid, number, name, err)
               : tn_name_data_file(arena, spec->options, spec->uuid, number, name, err);
}

static tn_rc open_file(struct output *o, struct tn_err *err)
{
    const struct tn_flush_spec *spec = o->flush->spec;
    const char *name;
    tn_rc rc = name_file(o, &name, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_data_writer_spec writer = {.schema = spec->schema,
                                         .options = &o->options,
                                         .layout = spec->order->layout,
                                         .keys = spec->order->keys,
                                         .dir = spec->dir,
                                         .name = name,
                                         .level = 0,
                                         .source = 0,
                                         .repeated = o->changelog,
                                         .block_size = spec->block_size};
    tn_arena_reset(&o->state, 0);
    tn_arena_reset(&o->writing.arena, 0);
    rc = tn_data_writer_begin(&o->writer, &writer, &o->writing, o->flush->row_size_max, &o->state,
                              err);
    o->open = rc == TN_OK;
    return rc;
}

static tn_rc close_file(struct output *o, struct tn_err *err)
{
    struct tn_arena *arena = &o->flush->worker->arena;
    struct tn_flush_file *file = tn_arena_take(arena, sizeof *file);
    if (!file) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for another file of a flush");
    }
    file->changelog = o->changelog;
    tn_rc rc = tn_data_writer_finish(&o->writer, arena, &file->meta, err);
    if (rc == TN_OK) {
        o->open = false;
        *o->end = file;
        o->end = &file->next;
    }
    return rc;
}

static tn_rc write_row(struct output *o, const struct tn_kv *kv, struct tn_err *err)
{
    tn_rc rc = o->open ? TN_OK : open_file(o, err);
    if (rc == TN_OK) {
        rc = tn_data_writer_add(&o->writer, kv, err);
    }
    if (rc == TN_OK && tn_data_writer_full(&o->writer)) {
        rc = close_file(o, err);
    }
    return rc;
}

static tn_rc end_rows(struct output *o, struct tn_err *err)
{
    return o->open ? close_file(o, err) : TN_OK;
}

static tn_rc write_rows(struct output *o, struct tn_iter *rows, struct tn_err *err)
{
    for (;;) {
        struct tn_kv kv;
        tn_rc rc = tn_iter_next(rows, &kv, err);
        if (rc == TN_ABSENT) {
            return end_rows(o, err);
        }
        if (rc == TN_OK) {
            rc = write_row(o, &kv, err);
        }
        if (rc != TN_OK) {
            return rc;
        }
    }
}

static tn_rc write_changelog(struct flush *f, struct tn_err *err)
{
    struct tn_memtable_iter rows;
    tn_memtable_iter_init(&rows, f->spec->memtable);
    return write_rows(&f->changes, &rows.iter, err);
}

static tn_rc write_folded(struct flush *f, struct tn_err *err)
{
    struct tn_memtable_iter rows;
    tn_memtable_iter_init(&rows, f->spec->memtable);
    struct tn_iter *source = &rows.iter;
    struct tn_fold_spec spec = {.engine = f->spec->engine,
                                .repeated = true,
                                .ignore_delete = f->spec->options->ignore_delete,
                                .row_size_max = f->row_size_max};
    struct tn_merge merge;
    struct tn_fold fold;
    tn_rc rc = tn_merge_init(&merge, f->spec->order, tn_fold_merges(&spec), &source, 1,
                             &f->worker->arena, err);
    if (rc == TN_OK) {
        rc = tn_fold_init(&fold, &merge, &spec, &f->worker->arena, err);
    }
    return rc == TN_OK ? write_rows(&f->rows, &fold.iter, err) : rc;
}

/* Without keys there is nothing to fold, whatever is kept. */
static tn_rc write_data(struct flush *f, struct tn_err *err)
{
    if (f->spec->memtable->keeps == TN_MEMTABLE_ALL && f->spec->order->keys.count > 0) {
        return write_folded(f, err);
    }
    struct tn_memtable_iter rows;
    tn_memtable_iter_init(&rows, f->spec->memtable);
    return write_rows(&f->rows, &rows.iter, err);
}

/* ---- with a resolver ---- */

static tn_rc put_row(struct tn_change_sink *sink, const struct tn_kv *kv, struct tn_err *err)
{
    return write_row((struct output *)(void *)sink, kv, err);
}

static tn_rc resolve_before(struct flush *f, struct tn_state *before,
                            struct tn_resolve_counts *counts, struct tn_err *err)
{
    const struct tn_flush_spec *spec = f->spec;
    struct tn_resolve_spec resolve = {.order = spec->order,
                                      .memtable = spec->memtable,
                                      .resolver = spec->resolver,
                                      .letters = spec->letters,
                                      .before = before,
                                      .rows = &f->rows.sink,
                                      .changes = spec->changelog ? &f->changes.sink : NULL,
                                      .sequence_shift = spec->sequence_shift,
                                      .row_size_max = f->row_size_max};
    tn_rc rc = tn_resolve(&resolve, &f->resolving, counts, err);
    if (rc == TN_OK) {
        rc = end_rows(&f->changes, err);
    }
    return rc == TN_OK ? end_rows(&f->rows, err) : rc;
}

static tn_rc resolve_rows(struct flush *f, struct tn_resolve_counts *counts, struct tn_err *err)
{
    const struct tn_flush_spec *spec = f->spec;
    const struct tn_flush_before *before = spec->before;
    struct tn_state *state;
    uint64_t keys = tn_memtable_keys(spec->memtable);
    tn_rc rc = before->open(before->user, f->worker, keys, &state, err);
    if (rc == TN_OK) {
        rc = resolve_before(f, state, counts, err);
        before->close(before->user);
    }
    return rc;
}

/* Letters of a flush that fails are forgotten: the same rows come again. */
static tn_rc write_resolved(struct flush *f, struct tn_err *err)
{
    struct tn_letter_sink *letters = f->spec->letters;
    struct tn_resolve_counts counts = {0};
    struct tn_err ignored = {0};
    tn_rc rc = letters ? letters->begin(letters, err) : TN_OK;
    if (rc != TN_OK) {
        return rc;
    }
    rc = resolve_rows(f, &counts, err);
    if (letters) {
        tn_rc ended = letters->end(letters, rc == TN_OK, rc == TN_OK ? err : &ignored);
        rc = rc == TN_OK ? ended : rc;
    }
    if (rc == TN_OK) {
        *f->spec->counts = counts;
    }
    return rc;
}

/* ---- begin and end ---- */

static void abort_output(struct output *o)
{
    if (o->open) {
        tn_data_writer_abort(&o->writer);
    }
}

static void remove_output(struct output *o)
{
    struct flush *f = o->flush;
    for (struct tn_flush_file *file = o->first; file; file = file->next) {
        tn_arena_reset(&o->state, 0); /* no writer's any more, and holds a path */
        const char *path = tn_arena_format(&o->state, "%s%s", f->spec->dir, file->meta.file_name);
        struct tn_err ignored = {0};
        if (path) {
            (void)f->worker->io->vtable->unlink(f->worker->io, path, &ignored);
        }
    }
}

static size_t rounded(size_t size)
{
    return (size + 15) & ~(size_t)15;
}

static size_t output_size(const struct output *o)
{
    const struct tn_flush_spec *spec = o->flush->spec;
    return rounded(tn_data_writer_size(spec->order->layout, &o->options, spec->block_size,
                                       o->flush->row_size_max));
}

static size_t output_state_size(const struct output *o)
{
    return rounded(tn_data_writer_state_size(o->flush->spec->order->layout, &o->options,
                                             o->flush->row_size_max));
}

static void give_output(struct output *o, unsigned char *memory, size_t size, size_t state_size)
{
    tn_arena_init(&o->writing.arena, memory, size);
    tn_arena_init(&o->state, memory + size, state_size);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Without a resolver changelog and rows are written one after the other, in one memory. */
static tn_rc give_memory(struct flush *f, struct tn_err *err)
{
    const struct tn_flush_spec *spec = f->spec;
    bool both = spec->changelog && spec->resolver;
    size_t size = output_size(&f->rows);
    size_t state = output_state_size(&f->rows);
    if (spec->changelog) { /* its codec may be another */
        size = larger(size, output_size(&f->changes));
        state = larger(state, output_state_size(&f->changes));
    }
    size_t resolving = spec->resolver ? rounded(tn_resolve_size(f->row_size_max)) : 0;
    void *memory;
    tn_rc rc = tn_arena_need(&f->worker->arena, (both ? 2 : 1) * (size + state) + resolving,
                             "a flush", &memory, err);
    if (rc == TN_OK) {
        unsigned char *at = memory;
        give_output(&f->rows, at, size, state);
        at += both ? size + state : 0;
        give_output(&f->changes, at, size, state);
        tn_arena_init(&f->resolving, at + size + state, resolving);
    }
    return rc;
}

static void begin_output(struct output *o, struct flush *f, bool changelog)
{
    o->sink.put = put_row;
    o->flush = f;
    o->changelog = changelog;
    o->options = *f->spec->options;
    o->options.codec = changelog ? o->options.changelog_codec : o->options.codec;
    o->writing = *f->worker;
    o->end = &o->first;
}

static void begin_flush(struct flush *f)
{
    const struct tn_flush_spec *spec = f->spec;
    begin_output(&f->rows, f, false);
    begin_output(&f->changes, f, true);
    f->row_size_max = spec->memtable->row_size_max;
    if (spec->memtable->keeps == TN_MEMTABLE_ALL && spec->row_size_max > f->row_size_max) {
        f->row_size_max = spec->row_size_max;
    }
}

static tn_rc write_files(struct flush *f, struct tn_err *err)
{
    if (f->spec->resolver) {
        return write_resolved(f, err);
    }
    tn_rc rc = f->spec->changelog ? write_changelog(f, err) : TN_OK;
    return rc == TN_OK ? write_data(f, err) : rc;
}

tn_rc tn_flush(const struct tn_flush_spec *spec, struct tn_worker *worker,
               struct tn_flush_file **files, struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(&worker->arena, sizeof(struct flush), "a flush", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct flush *f = memory;
    f->spec = spec;
    f->worker = worker;
    begin_flush(f);
    tn_memtable_sort(spec->memtable);
    rc = give_memory(f, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = write_files(f, err);
    if (rc != TN_OK) {
        abort_output(&f->changes);
        abort_output(&f->rows);
        remove_output(&f->changes);
        remove_output(&f->rows);
        return rc == TN_CANCELED ? rc : tn_err_in(err, "flush %s", spec->dir);
    }
    *f->changes.end = f->rows.first;
    *files = f->changes.first;
    return TN_OK;
}
