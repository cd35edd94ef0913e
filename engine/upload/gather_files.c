/* Whether the files of entries are there: asked for many at once. */
#include "upload/gather_private.h"

#include <inttypes.h>

#include "file/names.h"
#include "io/many.h"

enum { FILES_MAX = 32 /* paths in memory */ };

struct files {
    struct tn_gather_run *run;
    uint32_t count;
    struct tn_io_ask asks[FILES_MAX];
    struct tn_gather_entry *entries[FILES_MAX];
    const struct tn_entry *files[FILES_MAX];
    size_t mark; /* before their paths */
};

static void judge(const struct files *f, uint32_t i)
{
    const struct tn_io_ask *ask = &f->asks[i];
    int64_t size = f->files[i]->file.file_size;
    struct tn_err err;
    if (ask->rc == TN_ABSENT) {
        (void)tn_err_set(&err, TN_INVALID, 0, "%s is not there", ask->path);
    } else if (ask->size != (uint64_t)size) {
        (void)tn_err_set(&err, TN_INVALID, 0, "%s has %" PRIu64 " bytes, not %" PRId64, ask->path,
                         ask->size, size);
    } else {
        return;
    }
    if (f->entries[i]->verdict == TN_GATHER_NEW) {
        tn_gather_refuse(f->run, f->entries[i], &err);
    }
}

static tn_rc ask_all(struct files *f, struct tn_err *err)
{
    struct tn_worker *worker = f->run->gather->spec.worker;
    tn_rc rc = tn_io_ask_all(worker->io, f->asks, f->count, err);
    for (uint32_t i = 0; rc == TN_OK && i < f->count; i++) {
        judge(f, i);
    }
    f->count = 0;
    tn_arena_reset(&worker->arena, f->mark);
    return rc;
}

static tn_rc add(struct files *f, struct tn_gather_entry *entry, const struct tn_entry *file,
                 struct tn_err *err)
{
    const struct tn_committable_table *table = &f->run->gather->spec.table;
    struct tn_arena *scratch = &f->run->gather->spec.worker->arena;
    const char *dir;
    tn_rc rc = tn_name_bucket(scratch, table->root, table->schema, table->options, file->partition,
                              file->bucket, &dir, err);
    const char *path =
        rc == TN_OK ? tn_arena_format(scratch, "%s%s", dir, file->file.file_name) : NULL;
    if (rc == TN_OK && !path) {
        rc = tn_err_set(err, TN_AGAIN, 0, "no memory for a path");
    }
    if (rc != TN_OK) {
        return rc;
    }
    f->asks[f->count] = (struct tn_io_ask){.verb = TN_IO_ASK_STAT, .path = path};
    f->entries[f->count] = entry;
    f->files[f->count++] = file;
    return f->count == FILES_MAX ? ask_all(f, err) : TN_OK;
}

static tn_rc add_all(struct files *f, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < f->run->count; i++) {
        struct tn_gather_entry *entry = &f->run->entries[i];
        const struct tn_committable *c = &entry->committable;
        for (uint32_t k = 0; rc == TN_OK && entry->verdict == TN_GATHER_NEW &&
                             k < c->added_count + c->changelog_count;
             k++) {
            rc = add(f, entry, &c->added[k], err); /* all files are one array */
        }
    }
    return rc == TN_OK && f->count > 0 ? ask_all(f, err) : rc;
}

tn_rc tn_gather_look_at_files(struct tn_gather_run *run, struct tn_err *err)
{
    struct tn_arena *scratch = &run->gather->spec.worker->arena;
    size_t mark = tn_arena_mark(scratch);
    struct files *files = tn_arena_take(scratch, sizeof *files);
    tn_rc rc = files ? TN_OK : tn_err_set(err, TN_AGAIN, 0, "no memory to look at files");
    if (rc == TN_OK) {
        files->run = run;
        files->mark = tn_arena_mark(scratch);
        rc = add_all(files, err);
    }
    tn_arena_reset(scratch, mark);
    return rc;
}
