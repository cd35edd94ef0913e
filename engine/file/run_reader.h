/* run_reader: the files of one sorted run, one after the other, as one cursor.
 *
 * One file is open at a time. The reader has an arena of its own, carved from the worker's, so that
 * several runs can be read side by side and each can drop one file's buffers for the next's. `last`
 * names the row that `next` gave last, so that a merge that holds this row as an unread head can go
 * on from there in a later slice. A file that is missing is CORRUPT: it is no end of the rows.
 */
#pragma once

#include "file/data_reader.h"

struct tn_run_file {
    const char *path;
    int64_t size;
    int64_t row_count;
    int32_t level;
    const struct tn_schema *schema; /* the file was written with */
};

struct tn_run_position {
    uint32_t file;
    struct tn_data_position data;
};

struct tn_run_reader {
    struct tn_iter iter;     /* first */
    struct tn_worker worker; /* the worker's, with this run's arena */
    const struct tn_read_spec *read;
    const struct tn_run_file *files;
    uint32_t file_count;
    struct tn_run_position last; /* of the row that next gave */
    uint32_t at;                 /* file that is open, or would be next */
    bool open;
    bool keep_bad; /* as in tn_data_reader: set after init, by whoever folds */
    struct tn_data_reader data;
};

/* `arena` serves this run alone until close. Nothing is opened before the first next. */
void tn_run_reader_init(struct tn_run_reader *run, const struct tn_run_file *files,
                        uint32_t file_count, const struct tn_read_spec *read,
                        const struct tn_worker *worker, struct tn_arena arena);

/* Goes on with the row at `position`, which is read again. */
TN_MUST_USE tn_rc tn_run_reader_resume(struct tn_run_reader *run, struct tn_run_position position,
                                       struct tn_err *err);
