#include "write/flush.h"

#include "file/names.h"

struct flush {
    const struct tn_flush_spec *spec;
    struct tn_worker *worker;
    struct tn_worker writing; /* with the writer's part of the arena */
    struct tn_arena state;
    struct tn_options changelog_options; /* the table's, with the changelog's codec */
    bool changelog;                      /* what is written now */
    uint32_t row_size_max;
    struct tn_data_writer writer;
    bool open;
    struct tn_flush_file *first;
    struct tn_flush_file **end;
};

static tn_rc name_file(struct flush *f, const char **name, struct tn_err *err)
{
    const struct tn_flush_spec *spec = f->spec;
    uint32_t number = (*spec->counter)++;
    return f->changelog
               ? tn_name_changelog_file(&f->worker->arena, spec->options, spec->uuid, number, name,
                                        err)
               : tn_name_data_file(&f->worker->arena, spec->options, spec->uuid, number, name, err);
}

static tn_rc open_file(struct flush *f, struct tn_err *err)
{
    const struct tn_flush_spec *spec = f->spec;
    const char *name;
    tn_rc rc = name_file(f, &name, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_data_writer_spec writer = {.schema = spec->schema,
                                         .options =
                                             f->changelog ? &f->changelog_options : spec->options,
                                         .layout = spec->order->layout,
                                         .keys = spec->order->keys,
                                         .dir = spec->dir,
                                         .name = name,
                                         .level = 0,
                                         .source = 0,
                                         .repeated = f->changelog,
                                         .block_size = spec->block_size};
    tn_arena_reset(&f->state, 0);
    tn_arena_reset(&f->writing.arena, 0);
    rc = tn_data_writer_begin(&f->writer, &writer, &f->writing, f->row_size_max, &f->state, err);
    f->open = rc == TN_OK;
    return rc;
}

static tn_rc close_file(struct flush *f, struct tn_err *err)
{
    struct tn_flush_file *file = tn_arena_take(&f->worker->arena, sizeof *file);
    if (!file) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for another file of a flush");
    }
    file->changelog = f->changelog;
    tn_rc rc = tn_data_writer_finish(&f->writer, &f->worker->arena, &file->meta, err);
    if (rc == TN_OK) {
        f->open = false;
        *f->end = file;
        f->end = &file->next;
    }
    return rc;
}

static tn_rc write_rows(struct flush *f, struct tn_iter *rows, struct tn_err *err)
{
    for (;;) {
        struct tn_kv kv;
        tn_rc rc = tn_iter_next(rows, &kv, err);
        if (rc == TN_ABSENT) {
            return f->open ? close_file(f, err) : TN_OK;
        }
        if (rc == TN_OK && !f->open) {
            rc = open_file(f, err);
        }
        if (rc == TN_OK) {
            rc = tn_data_writer_add(&f->writer, &kv, err);
        }
        if (rc == TN_OK && tn_data_writer_full(&f->writer)) {
            rc = close_file(f, err);
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
    f->changelog = true;
    tn_rc rc = write_rows(f, &rows.iter, err);
    f->changelog = rc != TN_OK;
    return rc;
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
    return rc == TN_OK ? write_rows(f, &fold.iter, err) : rc;
}

/* Without keys there is nothing to fold, whatever is kept. */
static tn_rc write_data(struct flush *f, struct tn_err *err)
{
    if (f->spec->memtable->keeps == TN_MEMTABLE_ALL && f->spec->order->keys.count > 0) {
        return write_folded(f, err);
    }
    struct tn_memtable_iter rows;
    tn_memtable_iter_init(&rows, f->spec->memtable);
    return write_rows(f, &rows.iter, err);
}

static void remove_files(struct flush *f)
{
    if (f->open) {
        tn_data_writer_abort(&f->writer);
    }
    for (struct tn_flush_file *file = f->first; file; file = file->next) {
        tn_arena_reset(&f->state, 0); /* the writer's no more, and holds a path */
        const char *path = tn_arena_format(&f->state, "%s%s", f->spec->dir, file->meta.file_name);
        struct tn_err ignored = {0};
        if (path) {
            (void)f->worker->io->vtable->unlink(f->worker->io, path, &ignored);
        }
    }
}

/* Changelog and rows are written one after the other, in one memory; their codecs may differ. */
static tn_rc give_memory(struct flush *f, struct tn_err *err)
{
    const struct tn_flush_spec *spec = f->spec;
    const struct tn_options *options[] = {spec->options, &f->changelog_options};
    size_t size = 0;
    size_t state = 0;
    for (size_t i = 0; i < (spec->changelog ? 2 : 1); i++) {
        const struct tn_row_layout *layout = spec->order->layout;
        size_t buffers = tn_data_writer_size(layout, options[i], spec->block_size, f->row_size_max);
        size_t own = tn_data_writer_state_size(layout, options[i], f->row_size_max);
        size = buffers > size ? buffers : size;
        state = own > state ? own : state;
    }
    size = (size + 15) & ~(size_t)15;
    void *memory;
    tn_rc rc = tn_arena_need(&f->worker->arena, size + state, "a flush", &memory, err);
    if (rc == TN_OK) {
        tn_arena_init(&f->writing.arena, memory, size);
        tn_arena_init(&f->state, (unsigned char *)memory + size, state);
    }
    return rc;
}

tn_rc tn_flush(const struct tn_flush_spec *spec, struct tn_worker *worker,
               struct tn_flush_file **files, struct tn_err *err)
{
    struct flush f = {.spec = spec, .worker = worker, .writing = *worker};
    f.end = &f.first;
    f.changelog_options = *spec->options;
    f.changelog_options.codec = spec->options->changelog_codec;
    tn_memtable_sort(spec->memtable);
    uint32_t row_size_max = spec->memtable->row_size_max;
    if (spec->memtable->keeps == TN_MEMTABLE_ALL && spec->row_size_max > row_size_max) {
        row_size_max = spec->row_size_max;
    }
    f.row_size_max = row_size_max;
    tn_rc rc = give_memory(&f, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = spec->changelog ? write_changelog(&f, err) : TN_OK;
    if (rc == TN_OK) {
        rc = write_data(&f, err);
    }
    if (rc != TN_OK) {
        remove_files(&f);
        return tn_err_in(err, "flush %s", spec->dir);
    }
    *files = f.first;
    return TN_OK;
}
