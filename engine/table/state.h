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
#include "table/changes.h"
#include "table/setback.h"
#include "table/table.h"
#include "write/route.h"

enum {
    TN_TABLE_BUCKETS_MAX = 128,
    TN_TABLE_SLOTS = 2 * TN_TABLE_BUCKETS_MAX, /* of the hash table that finds them */
    TN_TABLE_FROZEN_MAX = 96,                  /* memtables, active ones included */
    TN_TABLE_ROUTE_SIZE = 4096,                /* bytes of a partition or bucket key */
};

struct tn_load_task {
    struct tn_task task; /* first */
    struct tn_table *table;
    struct tn_bucket *bucket;
    struct tn_level_file *files;
    bool under_way;
};

struct tn_flush_task {
    struct tn_task task; /* first */
    struct tn_table *table;
    struct tn_bucket *bucket;
    struct tn_flush_spec spec;
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
    bool active;            /* a compaction is there */
    bool under_way;         /* a slice of it runs */
};

struct tn_commit_task {
    struct tn_task task; /* first */
    struct tn_table *table;
    struct tn_round *round;
    struct tn_commit_result result;
    struct tn_expire_result expired;
    struct tn_err not_expired; /* no text: it went well */
    bool skipped;              /* nothing to commit */
    bool consumer_drafted;
    bool repeated; /* user and identifier were there: nothing was committed */
    bool under_way;
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
    struct tn_options options;
    struct tn_row_layout layout;
    struct tn_order order;
    const struct tn_engine *engine; /* NULL: no keys */
    enum tn_memtable_keeps keeps;
    uint32_t row_size_max; /* bytes of a packed row */
    struct tn_changes changes;
    struct tn_read_spec read;
    struct tn_key_types key_types;
    struct tn_route_spec route;
    struct tn_buf route_scratch;
    bool keyed;

    struct tn_pool pages;
    struct tn_pool frozen_slots;
    struct tn_bucket *buckets; /* TN_TABLE_BUCKETS_MAX */
    struct tn_bucket **slots;
    struct tn_bucket *last_bucket;

    struct tn_round rounds[2];
    struct tn_round *open;
    struct tn_round *closing; /* or NULL */
    int64_t last_seen;        /* newest snapshot that our levels rest on */

    struct tn_load_task load;
    struct tn_flush_task flush;
    struct tn_slice_task slice;
    struct tn_commit_task commit;
    uint32_t flushes_since_slice;
    bool pages_short;
    bool reload;       /* levels are stale: another writer was there */
    bool result_waits; /* a compaction's result has no room in its round: cut it */
    bool named_done;   /* the commit that --user and --commit-id name was made */
    bool broken;       /* a round is only half of what it should be: nothing more is committed */
    uint32_t sources_gone; /* compactions in a row that lost a source */
    struct tn_setbacks setbacks;
    bool compact_due;  /* something changed since the last pick found nothing */
    uint64_t cut_rows; /* row_count of the last cut */

    tn_rc rc; /* of the first task that failed since the last turn */
    struct tn_err err;
    struct tn_table_counts counts;
};

static inline bool tn_table_may_compact(const struct tn_table *t)
{
    return t->spec.compact && (!t->options.write_only || t->spec.dedicated);
}

/* ---- state.c ---- */

/* All that a table is made of, from its arena; the lock is taken when the spec has a name for it.
 */
TN_MUST_USE tn_rc tn_table_make_state(struct tn_table *table, struct tn_err *err);

/* ---- buckets.c ---- */

/* Opens the bucket when it is not open. AGAIN: none is free, or no memory. */
TN_MUST_USE tn_rc tn_buckets_find(struct tn_table *table, struct tn_bytes partition, int32_t number,
                                  struct tn_bucket **bucket, struct tn_err *err);
/* Its rows are gone already. */
void tn_buckets_close(struct tn_table *table, struct tn_bucket *bucket);
void tn_buckets_release(struct tn_table *table); /* closes those that are idle */
/* The rows of its active memtable belong to the open round and wait for a flush. */
void tn_buckets_freeze(struct tn_table *table, struct tn_bucket *bucket);
bool tn_buckets_wait(const struct tn_table *table); /* some rows wait for a flush */

/* ---- work.c: starts what can be started ---- */

void tn_work_start(struct tn_table *table);
/* The folder of an entry's file, in the table's arena; `user` is the table. */
TN_MUST_USE tn_rc tn_work_dir(void *user, const struct tn_entry *entry, const char **dir,
                              struct tn_err *err);

/* More runs than num-sorted-run.stop-trigger. */
bool tn_work_at_stop(const struct tn_table *table, const struct tn_bucket *bucket);
/* The same, and no compaction makes it better. */
bool tn_work_stuck(const struct tn_table *table, const struct tn_bucket *bucket);

/* ---- work_*.c: each starts one task, whose completion changes the table ---- */

void tn_work_load(struct tn_table *table, struct tn_bucket *bucket);
void tn_work_flush(struct tn_table *table, struct tn_bucket *bucket);
void tn_work_commit(struct tn_table *table);

/* Picks what `bucket` should merge next and plans it; false when there is nothing to do. */
bool tn_work_pick(struct tn_table *table, struct tn_bucket *bucket);
void tn_work_slice(struct tn_table *table);
/* A finished compaction's result joins a round; false when that round has no room now. */
bool tn_work_apply(struct tn_table *table);
void tn_work_abort_compaction(struct tn_table *table);
/* The closing round ends with a compaction of everything in this bucket, which is still to come. */
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
