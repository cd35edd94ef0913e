#include "ingest/journal.h"

#include <inttypes.h>

#include "base/check.h"
#include "ingest/journal_private.h"

enum { NS_PER_MS = 1000 * 1000 };

static int64_t now_ns(const struct tn_journal *journal)
{
    return journal->spec.clock->vtable->monotonic_ns(journal->spec.clock);
}

static void close_file(struct tn_io *io, int *file)
{
    if (*file >= 0) {
        io->vtable->close(io, *file);
        *file = -1;
    }
}

void tn_journal_close(struct tn_journal *journal)
{
    TN_CHECK(journal->state == TN_JOURNAL_IDLE);
    close_file(journal->spec.io, &journal->out.file);
    close_file(journal->spec.io, &journal->lock);
}

const char *tn_journal_identity(const struct tn_journal *journal)
{
    return journal->identity;
}

uint64_t tn_journal_first(const struct tn_journal *journal)
{
    return journal->first;
}

uint64_t tn_journal_next(const struct tn_journal *journal)
{
    return journal->next;
}

uint64_t tn_journal_durable(const struct tn_journal *journal)
{
    return journal->durable;
}

uint64_t tn_journal_size(const struct tn_journal *journal)
{
    return journal->size;
}

/* ---- append ---- */

void tn_journal_freeze(struct tn_journal *journal)
{
    const struct tn_journal_block *block = &journal->blocks[journal->filling];
    TN_CHECK(!journal->frozen);
    TN_CHECK(block->count > 0);
    tn_journal_prepare_head(journal, block->first, 1);
    journal->frozen = true;
    journal->filling = 1 - journal->filling;
    TN_CHECK(journal->blocks[journal->filling].count == 0);
}

/* What a block may come to on disk: not compressed, and at the front of a new file. */
static uint64_t cost_of(const struct tn_journal *journal, uint64_t size)
{
    return TN_JOURNAL_HEAD_SIZE + journal->senders.size + TN_JOURNAL_BLOCK_HEAD_SIZE + size;
}

static bool has_room(const struct tn_journal *journal, uint64_t size, uint64_t memos)
{
    uint64_t filled = journal->blocks[journal->filling].size;
    uint64_t used = journal->size + cost_of(journal, filled + size) + memos;
    used += journal->frozen ? cost_of(journal, journal->blocks[1 - journal->filling].size) : 0;
    return used <= journal->spec.size_max;
}

bool tn_journal_full(const struct tn_journal *journal)
{
    bool waits = journal->frozen || journal->blocks[journal->filling].count > 0;
    return journal->refused_size > 0 && !waits &&
           !has_room(journal, journal->refused_size, journal->refused_memos);
}

/* Bytes that the entry's memos may add to the head of a file. */
static tn_rc check_parts(const struct tn_journal *journal, const struct tn_journal_part *parts,
                         uint32_t count, uint64_t *memos, struct tn_err *err)
{
    *memos = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct tn_bytes memo = parts[i].data;
        if (parts[i].kind == TN_JOURNAL_ROWS) {
            continue;
        }
        if (parts[i].kind == TN_JOURNAL_MORE) {
            memo.size = tn_journal_senders_grown(&journal->senders, parts[i].name, memo);
        }
        if (!tn_journal_senders_fits(&journal->senders, parts[i].name, memo)) {
            return tn_err_set(err, TN_INVALID, 0,
                              "a memo of %zu bytes: those of all senders have %u bytes", memo.size,
                              journal->spec.memo_bytes);
        }
        *memos += TN_JOURNAL_MEMO_HEAD_SIZE + parts[i].name.size + parts[i].data.size;
    }
    return TN_OK;
}

static tn_rc make_room(struct tn_journal *journal, uint64_t size, uint64_t memos,
                       struct tn_err *err)
{
    if (!has_room(journal, size, memos)) {
        journal->refused_size = size;
        journal->refused_memos = memos;
        return tn_err_set(err, TN_AGAIN, 0, "the journal has %" PRIu64 " bytes of %" PRIu64,
                          journal->size, journal->spec.size_max);
    }
    if (size > journal->spec.block_size - journal->blocks[journal->filling].size) {
        if (journal->frozen) {
            return tn_err_set(err, TN_AGAIN, 0, "the journal is being synced");
        }
        tn_journal_freeze(journal);
        tn_journal_start_write(journal);
    }
    return TN_OK;
}

/* From the block's copy: a memo may be what tn_journal_memo gave. */
static void keep_memos(struct tn_journal *journal, struct tn_bytes entry, uint64_t place)
{
    struct tn_journal_part parts[TN_JOURNAL_PARTS_MAX];
    uint32_t count;
    bool whole = tn_journal_entry_next(&entry, parts, &count);
    TN_CHECK(whole && entry.size == 0);
    for (uint32_t i = 0; i < count; i++) {
        tn_journal_senders_take(&journal->senders, &parts[i], place);
    }
}

static uint64_t put(struct tn_journal *journal, const struct tn_journal_part *parts, uint32_t count,
                    uint32_t size, bool with_memos)
{
    struct tn_journal_block *block = &journal->blocks[journal->filling];
    uint64_t place = journal->next++;
    unsigned char *to = block->data + block->size;
    if (block->count == 0) {
        block->first = place;
        block->since_ns = now_ns(journal);
    }
    tn_journal_entry_encode(parts, count, to);
    block->size += size;
    block->count++;
    if (with_memos) {
        keep_memos(journal, (struct tn_bytes){to, size}, place);
    }
    return place;
}

tn_rc tn_journal_append(struct tn_journal *journal, const struct tn_journal_part *parts,
                        uint32_t count, uint64_t *place, struct tn_err *err)
{
    uint64_t memos;
    TN_CHECK(count > 0 && count <= TN_JOURNAL_PARTS_MAX);
    if (journal->failed == TN_IO) {
        *err = journal->err;
        return TN_IO;
    }
    uint64_t size = tn_journal_entry_size(parts, count);
    if (size > journal->spec.block_size) {
        return tn_err_set(err, TN_INVALID, 0, "more than a block of the journal: %u bytes",
                          journal->spec.block_size);
    }
    tn_rc rc = check_parts(journal, parts, count, &memos, err);
    if (rc == TN_OK) {
        rc = make_room(journal, size, memos, err);
    }
    if (rc) {
        return rc;
    }
    journal->refused_size = 0;
    *place = put(journal, parts, count, (uint32_t)size, memos > 0);
    return TN_OK;
}

/* ---- turn ---- */

static int64_t due_ns(const struct tn_journal *journal, bool now)
{
    const struct tn_journal_block *filling = &journal->blocks[journal->filling];
    if (journal->state != TN_JOURNAL_IDLE || journal->failed == TN_IO) {
        return INT64_MAX;
    }
    if (journal->frozen) { /* its write failed */
        return now ? INT64_MIN : journal->retry_ns;
    }
    if (filling->count == 0) {
        return INT64_MAX;
    }
    bool at_once = now || filling->size >= journal->spec.sync_bytes;
    return at_once ? INT64_MIN : filling->since_ns + (int64_t)journal->spec.sync_ms * NS_PER_MS;
}

static uint32_t wait_of(int64_t due, int64_t at)
{
    int64_t ms = due == INT64_MAX ? UINT32_MAX : (due - at + NS_PER_MS - 1) / NS_PER_MS;
    return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

tn_rc tn_journal_turn(struct tn_journal *journal, bool now, uint32_t *wait_ms, struct tn_err *err)
{
    int64_t due = due_ns(journal, now);
    int64_t at = due == INT64_MAX ? 0 : now_ns(journal);
    *wait_ms = UINT32_MAX;
    if (due > at) {
        *wait_ms = wait_of(due, at);
    } else {
        if (!journal->frozen) {
            tn_journal_freeze(journal);
        }
        tn_journal_start_write(journal);
    }
    if (journal->failed) {
        *err = journal->err;
    }
    return journal->failed;
}

/* ---- memos, trim ---- */

tn_rc tn_journal_memo(const struct tn_journal *journal, struct tn_bytes sender,
                      struct tn_bytes *memo, uint64_t *place)
{
    return tn_journal_senders_find(&journal->senders, sender, memo, place) ? TN_OK : TN_ABSENT;
}

void tn_journal_trim(struct tn_journal *journal, uint64_t place)
{
    place = place < journal->next ? place : journal->next;
    journal->trim_to = place > journal->trim_to ? place : journal->trim_to;
    journal->trim_failed = false;
    tn_journal_start_trim(journal);
}
