#include "base/check.h"
#include "ingest/journal_private.h"

struct reading {
    struct tn_journal_walk walk;
    uint64_t from;
    uint64_t end; /* of what the file is good for */
    tn_journal_each *each;
    void *user;
};

/* The newest file that may have `from`, and where the one behind it takes over. */
static tn_rc find_file(const struct tn_journal *journal, uint64_t from, uint64_t *first,
                       uint64_t *end, struct tn_err *err)
{
    struct tn_io *io = journal->spec.io;
    struct tn_journal_head head;
    uint64_t next;
    tn_rc rc = tn_journal_find(io, *first, first, err);
    if (rc) {
        return tn_err_named(err, rc);
    }
    for (;;) {
        rc = tn_journal_find(io, *first + 1, &next, err);
        if (rc == TN_ABSENT) {
            *end = journal->readable;
            return TN_OK;
        }
        if (rc == TN_OK) {
            rc = tn_journal_head_read(io, next, &head, NULL, err);
        }
        if (rc) {
            return rc;
        }
        if (head.after > from) {
            *end = head.after;
            return TN_OK;
        }
        *first = next;
    }
}

static tn_rc give_block(struct reading *reading, uint64_t *next, struct tn_err *err)
{
    struct tn_journal_walk *walk = &reading->walk;
    struct tn_journal_part parts[TN_JOURNAL_PARTS_MAX];
    struct tn_bytes rest = walk->raw;
    uint64_t place = walk->block.first;
    uint32_t count;
    for (; rest.size > 0; place++) {
        if (!tn_journal_entry_next(&rest, parts, &count) || place == walk->chain) {
            return tn_journal_walk_damage(walk, "the block before this is none of entries", err);
        }
        if (place < reading->from) {
            continue;
        }
        tn_rc rc = reading->each(reading->user, place, parts, count, err);
        if (rc) {
            *next = place;
            return rc;
        }
    }
    if (place != walk->chain) {
        return tn_journal_walk_damage(walk, "the block before this has too few entries", err);
    }
    return TN_OK;
}

static tn_rc give_file(struct reading *reading, uint64_t *next, struct tn_err *err)
{
    struct tn_journal_walk *walk = &reading->walk;
    tn_rc rc = TN_OK;
    while (rc == TN_OK && walk->chain < reading->end) {
        rc = tn_journal_walk_next(walk, reading->from, err);
        if (rc == TN_ABSENT) {
            rc = tn_journal_walk_damage(walk, "a block is damaged", err);
        }
        if (rc == TN_OK && walk->raw.size > 0) {
            rc = give_block(reading, next, err);
        }
    }
    if (rc == TN_OK && walk->chain > reading->end) {
        rc = tn_journal_walk_damage(walk, "a block reaches into the next file", err);
    }
    return rc;
}

static tn_rc read_file(const struct tn_journal *journal, struct reading *reading, uint64_t first,
                       uint64_t *next, struct tn_arena *arena, struct tn_err *err)
{
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = tn_journal_walk_open(&reading->walk, journal->spec.io, first, arena, err);
    if (rc == TN_OK) {
        rc = give_file(reading, next, err);
        tn_journal_walk_close(&reading->walk);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

tn_rc tn_journal_read(struct tn_journal *journal, uint64_t from, uint64_t *next,
                      tn_journal_each *each, void *user, struct tn_arena *arena, struct tn_err *err)
{
    struct reading reading = {.from = from, .each = each, .user = user};
    uint64_t first = 0;
    TN_CHECK(journal->state == TN_JOURNAL_IDLE);
    if (from < journal->first) {
        return tn_err_set(err, TN_ABSENT, 0, "the journal begins behind");
    }
    uint64_t at = from;
    *next = from;
    while (at < journal->readable) {
        tn_rc rc = find_file(journal, at, &first, &reading.end, err);
        if (rc == TN_OK) {
            rc = read_file(journal, &reading, first, next, arena, err);
        }
        if (rc) {
            return rc;
        }
        *next = at = reading.end;
    }
    return TN_OK;
}
