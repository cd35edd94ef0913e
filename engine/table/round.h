/* round: what will become one commit: files that were flushed, what compactions took away and gave,
 * and positions.
 *
 * A table has one open round and at most one that is closing. A round's memory is an arena, and
 * runs of the pool's pages behind it when many buckets have files: those go back when it is done.
 */
#pragma once

#include "base/pool.h"
#include "commit/commit.h"
#include "levels/levels.h"

struct tn_round_entry {
    struct tn_entry entry;
    struct tn_level_file *file; /* one reference, until the round is done; NULL: of a changelog */
    bool gone;                  /* an intermediate compaction output that was compacted again */
    struct tn_round_entry *next;
};

struct tn_round_removal {
    struct tn_commit_removal removal;
    int64_t size; /* of the file, in bytes */
    int64_t row_count;
    struct tn_round_removal *next;
};

struct tn_round_position {
    const char *source; /* "tarn.position.<source>" */
    char *text;         /* POSITION_SIZE bytes */
    struct tn_round_position *next;
};

struct tn_round_garbage { /* a path that no snapshot will name: removed with the commit */
    const char *path;
    struct tn_round_garbage *next;
};

struct tn_round_bucket {
    uint64_t name; /* tn_bucket_name */
    struct tn_round_bucket *next;
};

enum tn_round_state { TN_ROUND_OPEN, TN_ROUND_DRAINING, TN_ROUND_COMMITTING, TN_ROUND_DONE };

enum { TN_ROUND_RUNS_MAX = 16, TN_ROUND_RUN_SIZE = 64 * 1024 };

struct tn_round {
    int64_t number;
    enum tn_round_state state;
    struct tn_arena base;  /* what it has at least */
    struct tn_arena arena; /* at hand: base, or a run */
    struct tn_pool *pool;
    void *runs[TN_ROUND_RUNS_MAX];
    uint32_t run_count;
    uint32_t runs_begun;
    uint32_t run_pages;   /* taken from the pool */
    uint64_t entry_bytes; /* of all entries: what the next ones will need */
    uint32_t entry_count;
    struct tn_round_entry *added; /* newest first */
    struct tn_round_entry *compacted;
    struct tn_round_removal *removed;
    struct tn_round_entry *changelog;         /* of what was added */
    struct tn_round_entry *compact_changelog; /* of what compactions found */
    struct tn_round_position *positions;      /* the one that was noted last is the last */
    struct tn_round_garbage *garbage;
    struct tn_round_bucket *resolved; /* buckets in which rows were resolved, some twice */
    uint64_t letters;                 /* that were put and are not published */
    bool unknown;         /* a commit of it failed at a point where it may have been published */
    bool positions_moved; /* since the round before */
    uint32_t added_count;
    uint32_t compacted_count; /* less those that are gone */
    uint32_t removed_count;
    uint32_t changelog_count;
    uint32_t compact_changelog_count;
    uint64_t row_count; /* of the input, up to the cut */
};

void tn_round_init(struct tn_round *round, void *memory, size_t size, struct tn_pool *pool);
void tn_round_open(struct tn_round *round, int64_t number);
void tn_round_done(struct tn_round *round); /* gives its runs back */

size_t tn_round_free(const struct tn_round *round); /* bytes */
/* What so many more files will take, by those that are there. */
size_t tn_round_need(const struct tn_round *round, uint32_t file_count);
/* Makes room for so many more files; false: it may not grow, or the pool has nothing now. */
bool tn_round_reserve(struct tn_round *round, uint32_t file_count);
/* By a run of pages; false likewise. */
bool tn_round_grow(struct tn_round *round);
bool tn_round_may_grow(const struct tn_round *round);

/* `meta` is copied. AGAIN: the round's memory is full, and it should be cut. */
TN_MUST_USE tn_rc tn_round_add(struct tn_round *round, struct tn_bytes partition, int32_t bucket,
                               int32_t total_buckets, const struct tn_file_meta *meta,
                               struct tn_level_file *file, bool compacted, struct tn_err *err);

/* A changelog's file, of the APPEND part or (`compacted`) of the COMPACT part. */
TN_MUST_USE tn_rc tn_round_tell(struct tn_round *round, struct tn_bytes partition, int32_t bucket,
                                int32_t total_buckets, const struct tn_file_meta *meta,
                                bool compacted, struct tn_err *err);

/* The file leaves the table in this round. With `upgrade_level` >= 0 it comes back under that
 * level. */
TN_MUST_USE tn_rc tn_round_remove(struct tn_round *round, struct tn_bytes partition, int32_t bucket,
                                  const struct tn_level_file *file, int32_t upgrade_level,
                                  struct tn_err *err);

/* Takes back everything that compactions gave, took and told: their sources are live again, their
 * files become garbage. */
TN_MUST_USE tn_rc tn_round_drop_compactions(struct tn_round *round, struct tn_heap *heap,
                                            tn_rc (*dir_of)(void *user,
                                                            const struct tn_entry *entry,
                                                            const char **dir, struct tn_err *err),
                                            void *user, struct tn_err *err);

/* An output of this round's own compactions that no snapshot will name: true when it was one. */
bool tn_round_forget(struct tn_round *round, const struct tn_level_file *file);

/* A file that this round moved up is taken by a later compaction of the same round: with `level` >=
 * 0 it moves on to that level, with -1 it is gone. False when this round did not move it. */
bool tn_round_upgrade_again(struct tn_round *round, const struct tn_level_file *file,
                            int32_t level);

TN_MUST_USE tn_rc tn_round_discard(struct tn_round *round, const char *dir, const char *name,
                                   struct tn_err *err);

/* Rows of the bucket were resolved beside what it held. */
TN_MUST_USE tn_rc tn_round_resolved(struct tn_round *round, uint64_t bucket, struct tn_err *err);

/* Notes a source's position; the newest counts. */
TN_MUST_USE tn_rc tn_round_position(struct tn_round *round, const char *source, const char *text,
                                    struct tn_err *err);

/* Room that must be left for the next flush or compaction result. */
static inline bool tn_round_nearly_full(const struct tn_round *round)
{
    return tn_round_free(round) < round->base.size / 4;
}

/* Whether a commit would say anything. */
static inline bool tn_round_empty(const struct tn_round *round)
{
    return round->added_count == 0 && round->changelog_count == 0 && round->removed_count == 0 &&
           round->compacted_count == 0;
}
