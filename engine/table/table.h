/* table: one table that is written: rows in, commits out.
 *
 *     open -> { put*, position -> cut -> turn* }* -> finish -> close
 *
 * put, position and cut only touch memory; everything else happens in `turn`, which starts what can
 * be started and completes what has finished: loads, flushes, slices of a compaction, commits. With
 * an inline executor a turn does one such piece of work; with threads it may return at once, or
 * wait. AGAIN from put or cut means: turn, and try again.
 *
 * A compaction that fails is no error of a turn, unless the disk does: see tn_table_behind. Only
 * where a bucket has more runs than the stop trigger allows, put says so instead of waiting for
 * ever; what was put before is committed all the same.
 *
 * With a resolver (merge/resolve.h) rows are resolved by the flush that writes them, beside what
 * their keys were before: a bucket's flushes come one after the other. Rows that can't be resolved
 * go to the letters, which turn has published before it commits the round that they came in. When
 * another writer changed rows of a bucket in which rows were resolved and are not committed, what
 * they were resolved beside is no more: turn says CONFLICT, the table ends, and rows after the last
 * committed position must come again. Another's compaction changes no rows and does no harm.
 *
 * An error that turn returns leaves rows and round as they were; the same work is tried again by
 * the next turn (a full disk may have room by then). But IO from a commit ends the table: what a
 * failed barrier covered may never reach the disk, though a later barrier says OK. Every turn then
 * fails, and says why again, until the table is closed and opened again; rows come again from the
 * last position.
 */
#pragma once

#include "merge/resolve.h"
#include "table/env.h"
#include "table/recover.h"
#include "table/round.h"

struct tn_table; /* state.h */

/* What became of the changes of the rows that a round added. */
enum tn_told { TN_TOLD_NOTHING, TN_TOLD_LATER, TN_TOLD_NOW };

struct tn_committed {
    int64_t append_id;       /* 0: none */
    int64_t compact_id;      /* 0: none */
    int64_t latest_id;       /* also when this round made none: 0 for a table without snapshots */
    uint64_t row_count;      /* of the input, since open, that are durable now */
    uint32_t expired;        /* snapshots */
    int64_t earliest_id;     /* of the snapshots that are left; 0: nobody looked */
    enum tn_told told;       /* NOTHING also where there is no changelog */
    const char *not_expired; /* why no snapshot could expire, until this call ends; else NULL */
};

/* A bucket's compaction failed, for memory, damage, or something that this build can't do. Rows go
 * on without it, and it is tried again, round by round more seldom. */
struct tn_compaction_failed {
    const char *dir; /* of the bucket; until this call ends, as the text */
    tn_rc rc;
    const char *text; /* names the bucket */
};

struct tn_property {
    const char *name;
    const char *value;
};

struct tn_table_spec {
    const char *name; /* "db.t"; lives as long as the table */
    const char *who;  /* what the lock says; NULL: no lock (a test of two committers, or the caller
                         has it) */
    const char *user; /* commit user; NULL: "tarn-<writer>" */
    int64_t identifier; /* of the one commit, with `user`; -1: the round's number */
    bool compact;       /* false: rows only, as with write-only */
    bool small;         /* of few buckets: takes less memory */
    bool full;          /* compactions take everything to the highest level */
    bool dedicated;     /* the one that compacts and expires a write-only table for its writers */
    int64_t dedicated_round; /* of it, from 1, by which full-compaction.delta-commits counts; 0: the
                                rounds of all writers do */
    /* Who resolves rows: for tables with 'tarn.script' and no others. NULL: such a table takes no
     * rows, but all else can be done. It is asked on the worker that flushes. */
    struct tn_resolver *resolver;
    struct tn_letter_sink *letters; /* with `resolver`; NULL: a row that can't be resolved is an
                                       error of its flush */
    /* Called by turn while no flush runs, before a round in which letters were put is committed.
     * AGAIN: not yet, the next turn asks again, and no flush begins meanwhile. May be NULL. */
    tn_rc (*publish_letters)(void *user_data, struct tn_err *err);
    const struct tn_property *properties; /* of each snapshot, beside the table's own */
    uint32_t property_count;
    void (*committed)(void *user_data, const struct tn_committed *committed); /* may be NULL */
    /* Once a bucket and kind of reason. May be NULL. */
    void (*compaction_failed)(void *user_data, const struct tn_compaction_failed *failed);
    bool (*stopped)(void *user_data); /* tn_table_finish is to end, with CANCELED; may be NULL */
    void *user_data;
};

/* What a sweep wants of a bucket. */
enum tn_sweep {
    TN_SWEEP_NOTHING,
    TN_SWEEP_DUE,  /* what is due is compacted */
    TN_SWEEP_FULL, /* all that is there now goes into the highest level */
};

/* What happened since open, for reports and tests. */
struct tn_table_counts {
    uint64_t rows;          /* admitted */
    uint64_t rows_filtered; /* ignore-delete, ignore-update-before */
    uint64_t flushes;
    uint64_t flushed_bytes;
    uint64_t compactions;
    uint64_t compactions_begun;
    int64_t compaction_ns;       /* that workers spent on them */
    uint64_t compacted_bytes;    /* written */
    uint64_t compactions_failed; /* tries that ended with less than a compaction */
    uint64_t slices;
    uint64_t keys_looked_up;   /* what a compaction asked of deeper levels */
    uint64_t lookup_rows_read; /* rows whose keys were looked at for it */
    uint64_t rows_resolved;    /* that a resolver was asked for */
    uint64_t letters;          /* of them, rows that it could not resolve */
    uint64_t stalls;           /* flushes that had to wait at the stop trigger */
    uint64_t commits;
    int64_t commit_ns; /* that they took, with what expires behind them */
    uint64_t reloads;  /* levels that were read again: results that were not committed are lost */
};

/* What waits for compaction in the buckets that are open, and the memory of rows: for reports. */
struct tn_backlog {
    uint32_t buckets;      /* open ones */
    uint32_t runs_max;     /* of a bucket; 0: a table without keys has none */
    uint32_t files_max;    /* likewise */
    uint32_t level0_max;   /* files in level 0 of a bucket */
    uint32_t level0_files; /* of all of them */
    uint64_t level0_bytes; /* likewise */
    uint32_t runs_over;    /* that are more than the compaction trigger, of all buckets */
    uint64_t size_max;     /* bytes of a bucket's files */
    uint64_t size_sum;
    uint64_t input_max; /* bytes that a bucket's last compaction took, */
    uint64_t input_sum;
    uint64_t output_max; /* and gave */
    uint64_t output_sum;
    uint32_t compacted; /* buckets that had one */
    uint32_t queued;    /* compactions begun, and buckets with more runs than the trigger */
    uint32_t stop;      /* runs at which flushes wait; 0: they never do */
    uint32_t stopped;   /* buckets with more than that */
    size_t pages_size;  /* bytes */
    size_t pages_used;
    size_t pages_peak;
};

/* What the last commit was, as Paimon's CommitStats counts it: a file that only moves up counts as
 * deleted and added. */
struct tn_commit_figures {
    int64_t ns;
    uint32_t attempts;
    uint32_t snapshots; /* 1 or 2 */
    uint32_t files_added;
    uint32_t files_deleted;
    uint32_t files_appended;  /* of those added: not by a compaction */
    uint32_t files_compacted; /* that compactions added or deleted */
    uint32_t changelogs_appended;
    uint32_t changelogs_compacted;
    int64_t rows_appended; /* in them, likewise */
    int64_t rows_compacted;
    int64_t changelog_rows_appended;
    int64_t changelog_rows_compacted;
    int64_t input_bytes;  /* of what compactions deleted, */
    int64_t output_bytes; /* and added */
};

/* Memory comes from env->arena until close, which gives it back. ABSENT: no such table; EXISTS:
 * somebody else holds it (the text says who); UNSUPPORTED: an option that a writer must obey. */
TN_MUST_USE tn_rc tn_table_open(struct tn_env *env, const struct tn_table_spec *spec,
                                struct tn_table **table, struct tn_err *err);
void tn_table_close(
    struct tn_table *table); /* what was not committed is dropped, its files removed */

const struct tn_schema *tn_table_schema(const struct tn_table *table);
/* An older version of it, as it was when the table was opened; NULL: there is none of this id. */
const struct tn_schema *tn_table_schema_of(const struct tn_table *table, int64_t id);
const struct tn_options *tn_table_options(const struct tn_table *table);
const struct tn_row_layout *tn_table_layout(const struct tn_table *table);
const struct tn_recovered *tn_table_recovered(const struct tn_table *table);
const char *tn_table_root(const struct tn_table *table);
const struct tn_table_counts *tn_table_counts(const struct tn_table *table);
const struct tn_commit_figures *
tn_table_last_commit(const struct tn_table *table); /* 0: none yet */

/* The position of a source in the newest snapshot of ours, or NULL. */
const char *tn_table_position_of(const struct tn_table *table, const char *source);

/* Adds one row (of tn_table_layout), which is copied. AGAIN: no room now. INVALID: this row can't
 * be taken (its kind, its size); the text says why. FULL, or CORRUPT for damaged files: its bucket
 * is at the stop trigger, and no compaction makes room. */
TN_MUST_USE tn_rc tn_table_put(struct tn_table *table, struct tn_row row, enum tn_row_kind kind,
                               struct tn_err *err);

/* The same, with where the row came from, for a letter to say. */
TN_MUST_USE tn_rc tn_table_put_from(struct tn_table *table, struct tn_row row,
                                    enum tn_row_kind kind, const struct tn_origin *origin,
                                    struct tn_err *err);

/* Whether such a row can be put at all, whatever room there is: OK, or what put would say of it for
 * good, INVALID or UNSUPPORTED. */
TN_MUST_USE tn_rc tn_table_admits(const struct tn_table *table, struct tn_row row,
                                  enum tn_row_kind kind, struct tn_err *err);

/* All rows of the source before `text` are in. INVALID: source or text is no UTF-8. */
TN_MUST_USE tn_rc tn_table_position(struct tn_table *table, const char *source, const char *text,
                                    struct tn_err *err);

/* Closes the open round: rows put so far become one commit, said to be the input's first
 * `row_count`. AGAIN while another round is closing. A round in which nothing happened makes no
 * snapshot. */
TN_MUST_USE tn_rc tn_table_cut(struct tn_table *table, uint64_t row_count, struct tn_err *err);

/* True when the open round's list of files is nearly full: it should be cut now. */
bool tn_table_wants_cut(const struct tn_table *table);

/* See above. With `wait` at least one piece of work is completed, if any is under way. */
TN_MUST_USE tn_rc tn_table_turn(struct tn_table *table, bool wait, struct tn_err *err);

/* Nothing is under way, due, or waiting to be flushed or committed; uncut rows don't count. */
bool tn_table_idle(const struct tn_table *table);

/* Cuts, and turns until everything is durable and no compaction is due that can be done, results
 * committed. */
TN_MUST_USE tn_rc tn_table_finish(struct tn_table *table, uint64_t row_count, struct tn_err *err);

/* For a writer, before its first row: tells what one that was killed left untold, and commits it. A
 * process that ends between a commit and its compaction leaves rows of which no changelog tells,
 * and that first-row doesn't show; be it this program, or Paimon. No row need come to their buckets
 * again. With full-compaction.delta-commits above 1 changes wait for the round that is due: then
 * this only finishes one that was. The commit is of tarn's own user, never of spec->user. Source:
 * Paimon, LookupSinkWrite, which compacts the buckets that its state names. */
TN_MUST_USE tn_rc tn_table_tell(struct tn_table *table, struct tn_err *err);

/* How many buckets are behind: their last compaction failed. The code is OK for none, CORRUPT when
 * files of one are damaged, else UNSUPPORTED. */
tn_rc tn_table_behind(const struct tn_table *table, uint32_t *count);

/* Compactions that are due wait for the wear budget of its env. */
bool tn_table_spared(const struct tn_table *table);

/* A compaction that was due took more than one may, and waits for the off-peak hours; then it is
 * looked at again, since smaller ones may have made it needless. */
bool tn_table_held(const struct tn_table *table);

/* Costs a walk over the files of open buckets. */
void tn_table_backlog(const struct tn_table *table, struct tn_backlog *backlog);

/* The rules for tn_pick that options say, where they are compacted, at this hour. */
struct tn_pick_rules tn_table_pick_rules(const struct tn_options *options,
                                         const struct tn_env *env);

/* Closes the buckets in which nothing is uncommitted or under way: their files' memory is free. */
void tn_table_release(struct tn_table *table);

/* Opens a bucket without a row, so that it is compacted when it should be; turns read its files,
 * those of many in one pass. AGAIN: none is free. */
TN_MUST_USE tn_rc tn_table_touch(struct tn_table *table, struct tn_bytes partition, int32_t bucket,
                                 struct tn_err *err);

/* ---- a sweep: buckets are compacted because somebody asks, beside the rows that come ----
 *
 * As touch, and the bucket is compacted as `sweep` says. It stays open until that is done, or can't
 * be: see tn_table_behind. Results join the rounds as those of any compaction. From the first call
 * to the end of the sweep a write-only table is compacted and expires snapshots as others do.
 * AGAIN: none is free, which turns mend. UNSUPPORTED: what its compactions would look up is not
 * open. */
TN_MUST_USE tn_rc tn_table_sweep(struct tn_table *table, struct tn_bytes partition, int32_t bucket,
                                 enum tn_sweep sweep, struct tn_err *err);
/* Buckets that owe the sweep something. */
uint32_t tn_table_sweeping(const struct tn_table *table);
/* What they owe is forgotten. */
void tn_table_sweep_end(struct tn_table *table);

/* The open round, or one that is closing, has files or results that no snapshot names yet. */
bool tn_table_uncommitted(const struct tn_table *table);
/* Another writer was there: when nothing works on them levels are read again, and a compaction's
 * result that no snapshot names is dropped. */
bool tn_table_stale(const struct tn_table *table);
