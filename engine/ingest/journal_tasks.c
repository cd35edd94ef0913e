#include <lz4.h>

#include "base/check.h"
#include "base/hash.h"
#include "ingest/journal_private.h"

#define RETRY_NS ((int64_t)1000 * 1000 * 1000) /* a full disk isn't asked more often */

static struct tn_journal *journal_of(struct tn_task *task)
{
    return (struct tn_journal *)(void *)((char *)task - offsetof(struct tn_journal, task));
}

/* ---- a new file ---- */

void tn_journal_prepare_head(struct tn_journal *journal, uint64_t first, uint32_t block_count)
{
    struct tn_journal_output *out = &journal->out;
    struct tn_bytes memos = {journal->senders.data, journal->senders.size};
    struct tn_journal_head head = {
        .first = first,
        .after = journal->chain,
        .block_size = (uint32_t)out->packed_max,
        .block_count = block_count,
        .memos_size = (uint32_t)memos.size,
        .memos_crc = tn_hash_crc32(memos),
    };
    memcpy(head.identity, journal->identity, sizeof head.identity);
    tn_journal_head_encode(&head, out->head);
    if (memos.size > 0) {
        memcpy(out->head + TN_JOURNAL_HEAD_SIZE, memos.data, memos.size);
    }
    out->head_size = TN_JOURNAL_HEAD_SIZE + memos.size;
    out->after = journal->chain;
}

/* What a process before left is in the way. */
static tn_rc create_new(struct tn_journal_output *out, struct tn_err *err)
{
    struct tn_io *io = out->io;
    tn_rc rc = io->vtable->unlink(io, TN_JOURNAL_NEW, err);
    if (rc && rc != TN_ABSENT) {
        return rc;
    }
    return io->vtable->create(io, TN_JOURNAL_NEW, &out->file, err);
}

static tn_rc fill_new(struct tn_journal_output *out, struct tn_bytes block, struct tn_err *err)
{
    static const char *const paths[] = {TN_JOURNAL_NEW};
    struct tn_io *io = out->io;
    struct tn_bytes head = {out->head, out->head_size};
    tn_rc rc = io->vtable->append(io, out->file, head, err);
    if (rc == TN_OK && block.size > 0) {
        rc = io->vtable->append(io, out->file, block, err);
    }
    return rc ? rc : io->vtable->sync(io, paths, 1, err);
}

static void close_output(struct tn_journal_output *out)
{
    if (out->file >= 0) {
        out->io->vtable->close(out->io, out->file);
        out->file = -1;
    }
}

static tn_rc sync_names(struct tn_journal_output *out, struct tn_err *err)
{
    static const char *const paths[] = {TN_JOURNAL_FOLDER};
    tn_rc rc = out->io->vtable->sync(out->io, paths, 1, err);
    out->names_unsure = rc != TN_OK;
    return rc;
}

static void name_changed(struct tn_journal *journal, uint64_t first, uint64_t size)
{
    struct tn_journal_output *out = &journal->out;
    bool replaced = out->first == first;
    journal->outcome.removed += replaced ? out->file_size : 0;
    journal->outcome.written += size;
    journal->outcome.begun = !replaced;
    out->first = first;
    out->file_size = size;
    out->names_unsure = true;
}

/* Its name comes last. One that an attempt before gave has nothing that is not here, too. */
tn_rc tn_journal_begin_file(struct tn_journal *journal, uint64_t first, struct tn_bytes block,
                            struct tn_err *err)
{
    struct tn_journal_output *out = &journal->out;
    struct tn_io *io = out->io;
    char path[TN_JOURNAL_PATH_SIZE];
    tn_journal_path(path, first);
    close_output(out);
    tn_rc rc = create_new(out, err);
    if (rc) {
        return rc;
    }
    rc = fill_new(out, block, err);
    if (rc == TN_OK) {
        rc = io->vtable->replace(io, TN_JOURNAL_NEW, path, err);
    }
    if (rc) {
        struct tn_err second;
        close_output(out);
        (void)io->vtable->unlink(io, TN_JOURNAL_NEW, &second);
        return rc;
    }
    name_changed(journal, first, out->head_size + block.size);
    rc = sync_names(out, err);
    if (rc) {
        close_output(out);
    }
    return rc;
}

/* ---- write ---- */

static struct tn_bytes pack(struct tn_journal *journal)
{
    struct tn_journal_output *out = &journal->out;
    const struct tn_journal_block *block = tn_journal_frozen(journal);
    unsigned char *to = out->packed + TN_JOURNAL_BLOCK_HEAD_SIZE;
    int size = 0;
    if (block->size > 1) { /* to less than it is, or not at all */
        size = LZ4_compress_fast_extState(out->lz4, (const char *)block->data, (char *)to,
                                          (int)block->size, (int)block->size - 1, 1);
    }
    if (size <= 0) {
        memcpy(to, block->data, block->size);
        size = (int)block->size;
    }
    struct tn_journal_block_head head = {
        .after = out->after,
        .first = block->first,
        .count = block->count,
        .raw_size = block->size,
        .stored_size = (uint32_t)size,
        .crc = tn_hash_crc32((struct tn_bytes){to, (size_t)size}),
    };
    tn_journal_block_head_encode(&head, journal->identity, out->packed);
    return (struct tn_bytes){out->packed, TN_JOURNAL_BLOCK_HEAD_SIZE + (size_t)size};
}

/* Nothing comes behind what may be half a block: the file ends here. */
static tn_rc append_block(struct tn_journal *journal, struct tn_bytes block, struct tn_err *err)
{
    struct tn_journal_output *out = &journal->out;
    struct tn_io *io = out->io;
    char path[TN_JOURNAL_PATH_SIZE];
    const char *paths[] = {path};
    tn_journal_path(path, out->first);
    tn_rc rc = io->vtable->append(io, out->file, block, err);
    if (rc == TN_OK) {
        rc = io->vtable->sync(io, paths, 1, err);
    }
    uint64_t size = out->file_size + block.size;
    if (rc) {
        struct tn_err second;
        close_output(out);
        if (io->vtable->stat(io, path, &size, &second) != TN_OK) {
            size = out->file_size;
        }
    }
    journal->outcome.written += size - out->file_size;
    out->file_size = size;
    return rc;
}

tn_rc tn_journal_write(struct tn_journal *journal, struct tn_err *err)
{
    struct tn_journal_output *out = &journal->out;
    struct tn_bytes block = pack(journal);
    journal->outcome = (struct tn_journal_outcome){0};
    if (out->file < 0 || out->file_size >= journal->spec.file_size) {
        return tn_journal_begin_file(journal, tn_journal_frozen(journal)->first, block, err);
    }
    return append_block(journal, block, err);
}

static void frozen_is_durable(struct tn_journal *journal)
{
    struct tn_journal_block *block = tn_journal_frozen(journal);
    const struct tn_journal_block *filling = &journal->blocks[journal->filling];
    journal->chain = block->first + block->count;
    journal->readable = journal->chain;
    journal->durable = filling->count > 0 ? filling->first : journal->next;
    journal->frozen = false;
    *block = (struct tn_journal_block){.data = block->data};
}

/* What only a person, or another process, can mend ends the journal. */
static void write_failed(struct tn_journal *journal, tn_rc rc, const struct tn_err *err)
{
    journal->failed = rc == TN_FULL ? TN_FULL : TN_IO;
    journal->err = *err;
    journal->err.code = journal->failed;
    journal->retry_ns = journal->spec.clock->vtable->monotonic_ns(journal->spec.clock) + RETRY_NS;
}

void tn_journal_written(struct tn_journal *journal, tn_rc rc, const struct tn_err *err)
{
    const struct tn_journal_outcome *outcome = &journal->outcome;
    journal->size += outcome->written;
    journal->size -= outcome->removed;
    if (outcome->begun && journal->trim_at == UINT64_MAX) {
        journal->trim_at = journal->out.after;
    }
    if (rc) {
        write_failed(journal, rc, err);
    } else {
        journal->failed = TN_OK;
        frozen_is_durable(journal);
    }
}

static tn_rc execute_write(struct tn_task *task, void *context, struct tn_err *err)
{
    (void)context;
    return tn_journal_write(journal_of(task), err);
}

static void complete_write(struct tn_task *task, tn_rc rc)
{
    struct tn_journal *journal = journal_of(task);
    journal->state = TN_JOURNAL_IDLE;
    tn_journal_written(journal, rc, &task->err);
    tn_journal_start_trim(journal);
}

void tn_journal_start_write(struct tn_journal *journal)
{
    if (journal->state != TN_JOURNAL_IDLE || !journal->frozen || journal->failed == TN_IO) {
        return;
    }
    journal->state = TN_JOURNAL_WRITE;
    journal->task = (struct tn_task){
        .execute = execute_write, .complete = complete_write, .lane = TN_LANE_SYNC};
    tn_exec_submit(journal->spec.exec, &journal->task);
}

/* ---- trim ---- */

static tn_rc remove_file(struct tn_journal *journal, uint64_t first, struct tn_err *err)
{
    struct tn_journal_output *out = &journal->out;
    struct tn_io *io = out->io;
    char path[TN_JOURNAL_PATH_SIZE];
    uint64_t size = 0;
    tn_journal_path(path, first);
    tn_rc rc = io->vtable->stat(io, path, &size, err);
    if (rc == TN_OK) {
        rc = io->vtable->unlink(io, path, err);
    }
    if (rc) {
        return rc;
    }
    journal->outcome.removed += size;
    out->names_unsure = true;
    return TN_OK;
}

/* A file goes once the one behind it is there for sure, and the one before it is gone for sure: of
 * two names that are removed under one barrier a cut might keep the older one, and leave a hole. */
static tn_rc trim_one(struct tn_journal *journal, bool *done, struct tn_err *err)
{
    struct tn_journal_outcome *outcome = &journal->outcome;
    struct tn_io *io = journal->out.io;
    struct tn_journal_head head;
    uint64_t first;
    uint64_t second;
    tn_rc rc = tn_journal_find(io, 0, &first, err);
    if (rc == TN_OK) {
        rc = tn_journal_find(io, first + 1, &second, err);
    }
    if (rc) {
        *done = true;
        outcome->trim_at = UINT64_MAX;
        return rc == TN_ABSENT ? TN_OK : rc;
    }
    rc = tn_journal_head_read(io, second, &head, NULL, err);
    if (rc == TN_OK && journal->out.names_unsure) {
        rc = sync_names(&journal->out, err);
    }
    if (rc) {
        return rc;
    }
    outcome->trim_at = head.after;
    *done = head.after > outcome->trim_to;
    if (*done) {
        return TN_OK;
    }
    rc = remove_file(journal, first, err);
    if (rc == TN_OK) {
        outcome->first = head.after;
    }
    return rc;
}

static tn_rc execute_trim(struct tn_task *task, void *context, struct tn_err *err)
{
    struct tn_journal *journal = journal_of(task);
    bool done = false;
    tn_rc rc = TN_OK;
    (void)context;
    while (rc == TN_OK && !done) {
        rc = trim_one(journal, &done, err);
    }
    return rc;
}

/* Room on disk may be what a write waits for. */
static void complete_trim(struct tn_task *task, tn_rc rc)
{
    struct tn_journal *journal = journal_of(task);
    journal->state = TN_JOURNAL_IDLE;
    journal->first = journal->outcome.first;
    journal->trim_at = journal->outcome.trim_at;
    journal->size -= journal->outcome.removed;
    journal->trim_failed = rc != TN_OK;
    journal->retry_ns = INT64_MIN;
    if (journal->failed == TN_OK) {
        tn_journal_start_write(journal);
    }
    tn_journal_start_trim(journal);
}

void tn_journal_start_trim(struct tn_journal *journal)
{
    if (journal->state != TN_JOURNAL_IDLE || journal->trim_failed ||
        journal->trim_to < journal->trim_at) {
        return;
    }
    journal->state = TN_JOURNAL_TRIM;
    journal->outcome = (struct tn_journal_outcome){
        .first = journal->first, .trim_at = journal->trim_at, .trim_to = journal->trim_to};
    journal->task =
        (struct tn_task){.execute = execute_trim, .complete = complete_trim, .lane = TN_LANE_SYNC};
    tn_exec_submit(journal->spec.exec, &journal->task);
}
