/* state: the inside of a table, shared by state.c (how it is made), buckets.c (which are open),
 * table.c (rows, rounds), work.c (what to do next) and work_*.c (the tasks).
 *
 * All of it belongs to the loop. A task gets what it needs in its own struct when it is started;
 * while it runs the loop leaves alone what the task was given: a flushing bucket's oldest frozen
 * memtable, the compaction, a committing round.
 */
#pragma once

#include "commit/expire.h"
#include "table/bucket.h"
#include "table/census.h"
#include "table/changes.h"
#include "table/parking.h"
#include "table/rivals.h"
#include "table/setback.h"
#include "table/table.h"
#include "write/route.h"

enum {
    TN_TABLE_BUCKETS_MAX = 128,
    TN_TABLE_FEW = 8,           /* buckets: rows of more of them wait for each other */
    TN_TABLE_FROZEN_MAX = 96,   /* memtables, active ones included */
    TN_TABLE_FROZEN_SMALL = 12, /* of a small table */
    TN_LOAD_MAX = 64,           /* buckets whose files are read in one pass */
    TN_LOAD_SLOTS = 4,          /* of its hash table, for a bucket */
    TN_TABLE_ROUTE_SIZE = 4096, /* bytes of a partition or bucket key */
};

struct tn_load { /* of one bucket */
    struct tn_bucket *bucket;
    struct tn_level_file *files;
    uint32_t file_count;
};

struct tn_load_task {
    struct tn_task task; /* first */
    struct tn_table *table;
    struct tn_load *loads;
    struct tn_bytes *partitions;
    uint8_t *slots; /* of a hash table by partition: number + 1 */
    uint32_t slot_count;
    uint32_t count;
    int64_t trail_id; /* of the snapshot whose trail is wanted; 0: of none */
    struct tn_trail trail;
    bool under_way;
};

struct tn_flush_task {
    struct tn_task task; /* first */
    struct tn_table *table;
    struct tn_bucket *bucket;
    struct tn_flush_spec spec;
    struct tn_flush_before before; /* with a resolver */
    struct tn_levels *held;        /* the version that it looks up, then */
    bool ahead;                    /* one with a result that waits for a cut */
    struct tn_key_state state;     /* of it */
    struct tn_resolve_counts counts;
    struct tn_flush_file *files; /* in the worker's arena, above mark */
    size_t mark;
    bool under_way;
};

struct tn_slice_task {
    struct tn_task task; /* first */
    struct tn_table *table;
    struct tn_bucket *bucket;
    struct tn_compaction compaction;
    struct tn_arena arena;  /* the compaction's */
    struct tn_levels *held; /* the version that it was picked from */
    bool whole;             /* of all that the bucket had */
    bool active;            /* a compaction is there */
    bool under_way;         /* a slice of it runs */
    int64_t ns;             /* that slices took */
};

struct tn_gather_task {
    struct tn_task task; /* first */
    struct tn_table *table;
    void *window; /* of the census; NULL: nothing is ever gathered */
    size_t window_size;
    struct tn_census census;
    const struct tn_census_bucket *found[TN_LOAD_MAX];
    uint32_t count;
    uint32_t at;       /* those before it are open */
    uint32_t opened;   /* buckets, since it began */
    int32_t level_end; /* what lies in the levels before it is wanted */
    int64_t round;     /* that was open when it began */
    bool listed;       /* there are no more */
    bool again;        /* compactions that should have told came to nothing, or wait for a cut */
    bool active;
    bool under_way; /* the task runs */
};

struct tn_commit_task {
    struct tn_task task; /* first */
    struct tn_table *table;
    struct tn_round *round;
    struct tn_commit_result result;
    struct tn_expire_result expired;
    struct tn_err not_expired; /* no text: it went well */
    struct tn_rivals rivals;
    bool skipped;          /* nothing to commit */
    bool untold;           /* not all is in the round that it should have told */
    bool too_much;         /* its compactions did not fit the memory of a commit */
    bool named;            /* it is the one that --user and --commit-id name */
    int64_t consumer_next; /* what its draft says; 0: there is none */
    bool repeated;         /* user and identifier were there: nothing was committed */
    int64_t ns;            /* that it took */
    bool expires;          /* old snapshots, behind it */
    bool under_way;
};

/* What it has room for: a small table of few buckets needs little. */
struct tn_table_places {
    uint32_t buckets; /* that are open at once */
    uint32_t slots;   /* of the hash table that finds them */
    uint32_t parked;  /* of that for rows that wait */
    uint32_t loads;   /* buckets whose files are read in one pass */
    uint32_t rivals;
    uint32_t route_size; /* bytes */
};

struct tn_table {
    struct tn_env *env;
    struct tn_table_spec spec;
    size_t arena_mark; /* of env->arena, for close */
    int lock;          /* or -1 */
    const char *root;
    char user[64];
    struct tn_recovered recovered;

    struct tn_schemas schemas;
    const struct tn_schema *schema;
    const char *schema_path; /* "db.db/t/schema/schema-0" */
    struct tn_options options;
    struct tn_row_layout layout;
    struct tn_order order;
    struct tn_order buffer_order;   /* the same, among rows that were not flushed yet */
    const struct tn_engine *engine; /* NULL: no keys */
    enum tn_memtable_keeps keeps;
    uint32_t row_size_max; /* bytes of a packed row */
    struct tn_changes changes;
    struct tn_read_spec read;
    struct tn_key_types key_types;
    struct tn_route_spec route;
    struct tn_buf route_scratch;
    unsigned char *row_scratch; /* with a resolver: a row and its origin */
    bool keyed;
    bool float_keys; /* some column of order.keys is a FLOAT or DOUBLE */

    struct tn_pool pages;
    struct tn_pool frozen_slots;
    struct tn_table_places places;
    struct tn_bucket *buckets;
    struct tn_bucket **slots;
    struct tn_bucket *last_bucket;
    uint64_t uses;         /* of buckets, counted */
    uint32_t open_count;   /* buckets that are not free */
    uint32_t active_count; /* of them, with an active memtable */

    struct tn_parking parking;
    bool draining;      /* rows that wait go to their buckets; no row is taken meanwhile */
    bool drain_flushes; /* each bucket is flushed when it has its rows */

    struct tn_round rounds[2];
    struct tn_round *open;
    struct tn_round *closing; /* or NULL */
    uint32_t files_max;       /* of a round: what a commit's memory is enough for */
    uint32_t removals_max;    /* likewise: files that compactions take; fewer when that was short */
    int64_t last_seen;        /* newest snapshot that our levels rest on */
    struct tn_trail trail;    /* of that one, or not known; with a resolver */

    struct tn_load_task load;
    struct tn_flush_task flush;
    struct tn_slice_task slice;
    struct tn_gather_task gather;
    struct tn_commit_task commit;
    uint32_t flushes_since_slice;
    bool pages_short;
    uint32_t load_max;  /* buckets the next load takes: less when memory was short */
    bool reload;        /* levels are stale: another writer was there */
    bool round_full;    /* the open round's list has no room for more buckets: cut it */
    bool closed_untold; /* a bucket left, and the open round did not tell all of it */
    bool result_waits;  /* a compaction's result has no room in its round: cut it */
    bool named_done;    /* the commit that --user and --commit-id name was made */
    bool broken;        /* a round is only half of what it should be: nothing more is committed */
    tn_rc broken_rc;    /* and why */
    struct tn_err broken_err;
    bool voided;           /* that is since another writer changed rows */
    uint32_t sources_gone; /* compactions in a row that lost a source */
    uint32_t state_gone;   /* flushes in a row that lost a file of the state before */
    struct tn_setbacks setbacks;
    bool spared;       /* compactions that are due wait for the wear budget */
    bool held;         /* others are too large now, and the table has hours for them */
    bool compact_due;  /* something changed since the last pick found nothing */
    bool sweeps;       /* between the first tn_table_sweep and its end */
    uint64_t cut_rows; /* row_count of the last cut */

    tn_rc rc; /* of the first task that failed since the last turn */
    struct tn_err err;
    struct tn_table_counts counts;
    struct tn_commit_figures last_commit;
};

/* Every bucket with rows in memory will have a file in a round, and one that tells its changes. */
static inline uint32_t tn_table_pending(const struct tn_table *t)
{
    uint32_t buckets = t->frozen_slots.used + t->parking.bucket_count;
    return t->options.changelog_producer == TN_CHANGELOG_NONE ? buckets : 2 * buckets;
}

static inline bool tn_table_may_compact(const struct tn_table *t)
{
    return t->spec.compact && (!t->options.write_only || t->spec.dedicated || t->sweeps);
}

/* ---- state.c ---- */

/* All that a table is made of, from its arena; the lock is taken when the spec has a name for it.
 */
TN_MUST_USE tn_rc tn_table_make_state(struct tn_table *table, struct tn_err *err);

/* ---- buckets.c ---- */

/* Opens the bucket when it is not open. AGAIN: none is free, or no memory. */
TN_MUST_USE tn_rc tn_buckets_find(struct tn_table *table, struct tn_bytes partition, int32_t number,
                                  struct tn_bucket **bucket, struct tn_err *err);
/* NULL: it is not open. */
struct tn_bucket *tn_buckets_open(const struct tn_table *table, struct tn_bytes partition,
                                  int32_t number);
/* Of those that have an active memtable, the one whose last row is the oldest, or NULL. */
struct tn_bucket *tn_buckets_oldest_active(struct tn_table *table);
/* Its rows are gone already. */
void tn_buckets_close(struct tn_table *table, struct tn_bucket *bucket);
void tn_buckets_release(struct tn_table *table);   /* closes those that are idle */
bool tn_buckets_close_one(struct tn_table *table); /* the one longest idle; false: none is */
/* Closes one when the heap of the levels is nearly full. */
void tn_buckets_spare_heap(struct tn_table *table);
/* The rows of its active memtable belong to the open round and wait for a flush. */
void tn_buckets_freeze(struct tn_table *table, struct tn_bucket *bucket);
bool tn_buckets_wait(const struct tn_table *table); /* some rows wait for a flush */

/* ---- work.c: starts what can be started ---- */

void tn_work_start(struct tn_table *table);

/* ABSENT: somebody removed the table under us. Folders of it must not be made anew then: what is
 * committed into them nobody could read. On the worker, before what makes folders. */
TN_MUST_USE tn_rc tn_work_check_there(const struct tn_table *table, struct tn_err *err);
/* The closing round has letters that are to be published, and nothing is in the way. */
bool tn_work_letters_due(const struct tn_table *table);
/* More runs than num-sorted-run.stop-trigger. */
bool tn_work_at_stop(const struct tn_table *table, const struct tn_bucket *bucket);
/* The same, and no compaction makes it better. */
bool tn_work_stuck(const struct tn_table *table, const struct tn_bucket *bucket);
/* The bucket is to be compacted before the commit of its rows, and can be: it stays open. */
bool tn_work_owes(const struct tn_table *table, const struct tn_bucket *bucket);
/* The folder of an entry's file, in the table's arena; `user` is the table. */
TN_MUST_USE tn_rc tn_work_dir(void *user, const struct tn_entry *entry, const char **dir,
                              struct tn_err *err);

/* ---- work_drain.c ---- */

void tn_work_begin_drain(struct tn_table *table);
void tn_work_drain(struct tn_table *table);
/* Buckets are flushed, so that they can be closed. */
void tn_work_make_places(struct tn_table *table);
/* A row into its bucket, which is READY. AGAIN: memory is short. (table.c) */
TN_MUST_USE tn_rc tn_work_put(struct tn_table *table, struct tn_bucket *bucket, struct tn_row row,
                              enum tn_row_kind kind, struct tn_err *err);

/* ---- work_gather.c ---- */

/* Buckets with files in levels before `level_end` are opened, and compacted. */
void tn_work_begin_gather(struct tn_table *table, int32_t level_end);
void tn_work_gather(struct tn_table *table);
/* Whether the open round's cut waits until buckets are gathered; begins to when it should. */
bool tn_work_gathers(struct tn_table *table);
/* Round `number`, committed now, did not tell all that it should have: the open one will. */
void tn_work_gather_again(struct tn_table *table, int64_t number);
/* A cut couldn't wait for it: what is still to be gathered goes into the round that is open now. */
void tn_work_gather_on(struct tn_table *table);

/* ---- work_*.c: each starts one task, whose completion changes the table ---- */

void tn_work_load(struct tn_table *table); /* all buckets that wait, up to a limit */
void tn_work_flush(struct tn_table *table, struct tn_bucket *bucket);
void tn_work_commit(struct tn_table *table);
/* Of a round that no snapshot will name: the files of a list, what compactions left behind. */
void tn_work_remove_entries(const struct tn_table *table, const struct tn_round_entry *list,
                            struct tn_arena *scratch);
void tn_work_remove_garbage(const struct tn_table *table, const struct tn_round *round);

/* Picks what `bucket` should merge next and plans it; false when there is nothing to do. */
bool tn_work_pick(struct tn_table *table, struct tn_bucket *bucket);
/* For want of memory the bucket's next compaction takes fewer runs; false: it takes two already. */
bool tn_work_take_fewer(struct tn_bucket *bucket);
void tn_work_slice(struct tn_table *table);
/* What a flush looks up, with a reference of its own; NULL: nothing. A result that waits for a cut
 * counts as if it had joined its round. */
struct tn_levels *tn_work_ahead(struct tn_table *table, const struct tn_bucket *bucket);
/* A finished compaction's result joins a round; false when that round has no room now. */
bool tn_work_apply(struct tn_table *table);
void tn_work_abort_compaction(struct tn_table *table);
/* A disk that fails or is full is for the caller to see to; of all else only this bucket suffers.
 */
void tn_work_compaction_failed(struct tn_table *table, struct tn_bucket *bucket, tn_rc rc,
                               const struct tn_err *err);
/* The closing round ends with a compaction of everything in this bucket, which is still to come; or
 * the open one will, and the bucket is to make room for others. */
bool tn_work_full_is_due(const struct tn_table *table, const struct tn_bucket *bucket);

/* A new levels version of the bucket. */
TN_MUST_USE tn_rc tn_work_edit_levels(struct tn_table *table, struct tn_bucket *bucket,
                                      struct tn_level_file *const *removed, uint32_t removed_count,
                                      struct tn_level_file *const *added, uint32_t added_count,
                                      struct tn_err *err);
/* A file that was written for the bucket joins the round and the levels. */
TN_MUST_USE tn_rc tn_work_add_file(struct tn_table *table, struct tn_round *round,
                                   struct tn_bucket *bucket, const struct tn_file_meta *meta,
                                   bool compacted, struct tn_err *err);

static inline void tn_table_fail(struct tn_table *table, tn_rc rc, const struct tn_err *err)
{
    if (table->rc == TN_OK) {
        table->rc = rc;
        table->err = *err;
    }
}

/* Ends the table: each call from now on says this. */
static inline void tn_table_break(struct tn_table *table, tn_rc rc, const struct tn_err *err)
{
    if (!table->broken) {
        table->broken = true;
        table->broken_rc = rc;
        table->broken_err = *err;
    }
    tn_table_fail(table, rc, err);
}
