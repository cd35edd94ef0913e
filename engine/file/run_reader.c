#include "file/run_reader.h"

static void close_file(struct tn_run_reader *run)
{
    if (run->open) {
        tn_iter_close(&run->data.iter);
        run->open = false;
    }
    tn_arena_reset(&run->worker.arena, 0);
}

static tn_rc open_file(struct tn_run_reader *run, struct tn_err *err)
{
    const struct tn_run_file *file = &run->files[run->at];
    tn_rc rc = tn_data_reader_open(&run->data, file->path, file->size, file->level, file->schema,
                                   run->read, &run->worker, err);
    run->open = rc == TN_OK;
    run->data.keep_bad = run->keep_bad;
    return tn_err_named(err, rc);
}

static tn_rc run_next(struct tn_iter *iter, struct tn_kv *kv, struct tn_err *err)
{
    struct tn_run_reader *run = (struct tn_run_reader *)(void *)iter;
    while (run->at < run->file_count) {
        if (!run->open) {
            tn_rc rc = open_file(run, err);
            if (rc != TN_OK) {
                return rc;
            }
        }
        struct tn_run_position here = {run->at, tn_data_reader_tell(&run->data)};
        tn_rc rc = tn_iter_next(&run->data.iter, kv, err);
        if (rc != TN_ABSENT) {
            run->last = here;
            return rc;
        }
        close_file(run);
        run->at++;
    }
    return TN_ABSENT;
}

static void run_close(struct tn_iter *iter)
{
    close_file((struct tn_run_reader *)(void *)iter);
}

static const char *run_where(const struct tn_iter *iter)
{
    const struct tn_run_reader *run = (const struct tn_run_reader *)(const void *)iter;
    return run->at < run->file_count ? run->files[run->at].path : NULL;
}

static const struct tn_iter_vtable run_vtable = {run_next, NULL, run_close, run_where};

void tn_run_reader_init(struct tn_run_reader *run, const struct tn_run_file *files,
                        uint32_t file_count, const struct tn_read_spec *read,
                        const struct tn_worker *worker, struct tn_arena arena)
{
    *run = (struct tn_run_reader){.iter = {&run_vtable},
                                  .worker = *worker,
                                  .read = read,
                                  .files = files,
                                  .file_count = file_count};
    run->worker.arena = arena;
}

tn_rc tn_run_reader_resume(struct tn_run_reader *run, struct tn_run_position position,
                           struct tn_err *err)
{
    close_file(run);
    run->at = position.file;
    if (run->at >= run->file_count) {
        return TN_OK;
    }
    tn_rc rc = open_file(run, err);
    return rc == TN_OK ? tn_data_reader_resume(&run->data, position.data, err) : rc;
}
