/* fsck_private: what the parts of fsck share. One run is one struct tn_fsck.
 *
 *     fsck.c           the order of things; schemas, tags, branches, consumers
 *     fsck_report.c    findings
 *     fsck_missing.c   findings that expiry may explain
 *     fsck_table.c     hash tables that grow
 *     fsck_snapshot.c  one snapshot: lists and counts
 *     fsck_manifest.c  lists and manifests, and what is live
 *     fsck_runs.c      levels without overlap; one number of buckets a partition
 *     fsck_plan.c      how the files of one schema are read
 *     fsck_bounds.c    claims of statistics
 *     fsck_file.c      one data file
 *     fsck_orphans.c   files that nothing reaches
 *     fsck_merge.c     the rows of each snapshot, merged
 *
 * Two kinds of failure never mix: damage is reported and answered with OK; what must end the run
 * (the device, our own memory, the caller) is returned, and `stopped` is set by whoever knew, so
 * that the layers between can't take it for damage.
 */
#pragma once

#include "base/hash.h"
#include "commit/live.h"
#include "commit/snapshot.h"
#include "file/data_plan.h"
#include "schema/options.h"
#include "table/fsck.h"

/* ---- tables ---- */

/* Slots begin with their key, a hash whose two lowest bits are the user's mark. Nothing is ever
 * removed. A slot's address holds until the next add. */
struct tn_fsck_table {
    struct tn_heap *heap;
    const char *what; /* for the error when there is no room */
    unsigned char *slots;
    size_t slot_size;
    size_t slot_count; /* a power of two, or 0 */
    size_t count;
};

void tn_fsck_table_init(struct tn_fsck_table *table, struct tn_heap *heap, size_t slot_size,
                        const char *what);
void tn_fsck_table_clear(struct tn_fsck_table *table); /* gives its memory back */
void *tn_fsck_table_find(const struct tn_fsck_table *table, struct tn_hash_128 key); /* or NULL */
/* The slot, zeroed but for its key when it is new. AGAIN says what is needed. */
TN_MUST_USE tn_rc tn_fsck_table_add(struct tn_fsck_table *table, struct tn_hash_128 key,
                                    void **slot, bool *is_new, struct tn_err *err);
/* The slot behind `slot` (NULL: the first), or NULL. */
void *tn_fsck_table_next(const struct tn_fsck_table *table, const void *slot);

enum { TN_FSCK_MARKS = 3 };
enum tn_fsck_mark {
    TN_FSCK_NONE,
    TN_FSCK_LIVE,
    TN_FSCK_DEAD, /* deleted in a base list before any manifest added it */
};
static inline enum tn_fsck_mark tn_fsck_marked(const struct tn_hash_128 *slot)
{
    return (enum tn_fsck_mark)(slot->low & TN_FSCK_MARKS);
}
static inline void tn_fsck_set_mark(struct tn_hash_128 *slot, enum tn_fsck_mark mark)
{
    slot->low = (slot->low & ~(uint64_t)TN_FSCK_MARKS) | mark;
}

/* ---- statistics ---- */

/* What a file or manifest claims of one column, and what was seen. It needs no minimum of its own:
 * a bound is right when no value passes it and one value meets it. */
struct tn_fsck_claim {
    struct tn_type type;
    const char *kind; /* "statistics", "key statistics" */
    const char *name;
    uint32_t column; /* of the layout */
    bool nested;     /* only its statistics' absence can be checked */
    bool exact;      /* bounds may not be missing */
    struct tn_value low;
    struct tn_value high;
    int64_t null_count; /* claimed; -1: nothing */
    int64_t nulls;      /* seen */
    int64_t values;     /* seen, with NaN */
    bool nan;
    bool low_met;
    bool high_met;
    char low_passed[48]; /* the first value that passes the bound; "" */
    char high_passed[48];
};

/* ---- one schema ---- */

struct tn_fsck_plan {
    bool tried;
    bool good;
    int64_t id;
    struct tn_schema schema;
    struct tn_options options;
    struct tn_schema wide; /* and its `_KEY_` columns */
    struct tn_row_layout layout;
    int32_t *column_of; /* per field of `wide` */
    struct tn_read_spec read;
    struct tn_columns keys;   /* in the layout, like all that follow */
    struct tn_columns copies; /* `_KEY_` of each key */
    struct tn_columns partition;
    struct tn_columns bucket_key;
    struct tn_columns not_null;
    struct tn_type *key_types;
    struct tn_type *partition_types;
};

/* ---- the run ---- */

struct tn_fsck_live {
    bool known; /* what follows is the whole truth */
    uint64_t count;
    uint64_t rows;
    struct tn_hash_128 sum; /* of identities: two sets with one sum are the same */
};

struct tn_fsck {
    const struct tn_fsck_spec *spec;
    struct tn_fsck_result *result;
    struct tn_worker *worker;
    struct tn_io *io;
    const char *root;
    const char *home; /* where schema/, snapshot/ and tag/ are: root, or a branch's folder */
    bool stopped;
    bool readable;           /* `home` has a schema to check by */
    struct tn_err unchecked; /* the first */

    struct tn_schema newest;
    struct tn_options options;
    struct tn_type *key_types; /* of trimmed keys */
    struct tn_type *partition_types;
    bool keyed;
    bool unaware;       /* an append table without buckets */
    bool by_row;        /* an old append table whose buckets nothing tells */
    size_t schema_mark; /* of spec->arena: where the newest schema begins */
    size_t plan_mark;   /* and where it ends */
    struct tn_fsck_plan plan;

    struct tn_fsck_table seen;      /* identities, files that were read, paths, findings */
    struct tn_fsck_table manifests; /* fsck_manifest.c */
    struct tn_fsck_table chains;    /* fsck_runs.c */
    struct tn_fsck_table partitions;
    bool mixed; /* some partition has had two numbers of buckets */
    struct tn_fsck_live live;
    uint32_t list_number;
    int64_t latest; /* 0: no snapshot */

    const char *subject;          /* whose files are looked at; NULL: nobody's */
    int64_t changelog_first;      /* of long-lived ones; 0: not known */
    int64_t subject_id;           /* of a snapshot; 0: a tag or changelog */
    bool forgives;                /* what is missing now was noticed before */
    bool left_out;                /* the subject went meanwhile: what it misses is no finding */
    uint32_t missed;              /* files so far, held back, told or forgiven */
    struct tn_fsck_missing *held; /* findings that are told at the end, newest first */
    uint32_t held_count;

    char text[1024];
    char clean[1024];
};

/* ---- findings ---- */

TN_MUST_USE tn_rc tn_fsck_problem(struct tn_fsck *f, struct tn_err *err, const char *file,
                                  const char *format, ...) __attribute__((format(printf, 4, 5)));
TN_MUST_USE tn_rc tn_fsck_note(struct tn_fsck *f, struct tn_err *err, const char *file,
                               const char *format, ...) __attribute__((format(printf, 4, 5)));
/* What `rc` and `err` say of a file: damage is reported, what can't be checked is counted, both are
 * OK; what must end the run is returned. `what`, if not NULL, stands before the text. */
TN_MUST_USE tn_rc tn_fsck_damage(struct tn_fsck *f, const char *file, const char *what, tn_rc rc,
                                 struct tn_err *err);
/* Gives the finding that is in f->text, once. */
TN_MUST_USE tn_rc tn_fsck_told(struct tn_fsck *f, struct tn_err *err, const char *file);

/* ---- beside a writer that expires ----
 *
 * A missing file counts if its snapshot, tag or changelog (the subject) still is there when that is
 * looked at again: at once, and for what was there at once in the end. A subject that went is left
 * out, and the next one is checked from scratch. */

/* `path` lives until the next call; `id` is 0 for what is no snapshot. */
void tn_fsck_subject(struct tn_fsck *f, const char *path, int64_t id);
/* Some file is missing: held back, told, or forgiven as `f->left_out` says then. */
TN_MUST_USE tn_rc tn_fsck_missing(struct tn_fsck *f, struct tn_err *err, const char *file,
                                  const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Counts and notes that the subject is left out. */
TN_MUST_USE tn_rc tn_fsck_note_left_out(struct tn_fsck *f, struct tn_err *err);
/* Whether a snapshot is gone, or on its way. */
TN_MUST_USE tn_rc tn_fsck_expired(struct tn_fsck *f, int64_t id, bool *gone, struct tn_err *err);
/* Whether the subject of anything that is held has gone: then the check begins anew. */
TN_MUST_USE tn_rc tn_fsck_any_left(struct tn_fsck *f, bool *any, struct tn_err *err);
/* Tells what is held and still counts. */
TN_MUST_USE tn_rc tn_fsck_tell_held(struct tn_fsck *f, struct tn_err *err);
void tn_fsck_drop_held(struct tn_fsck *f);

/* Says that the run ends here; returns `rc`. */
tn_rc tn_fsck_stop(struct tn_fsck *f, tn_rc rc);
tn_rc tn_fsck_no_path(struct tn_fsck *f, struct tn_err *err);

/* Hashes of different kinds of things in one table. */
enum tn_fsck_thing { TN_FSCK_IDENTITY, TN_FSCK_READ, TN_FSCK_PATH, TN_FSCK_FINDING, TN_FSCK_LISTS };
TN_MUST_USE tn_rc tn_fsck_see(struct tn_fsck *f, enum tn_fsck_thing thing, struct tn_hash_128 hash,
                              struct tn_hash_128 **slot, bool *is_new, struct tn_err *err);
struct tn_hash_128 *tn_fsck_seen(const struct tn_fsck *f, enum tn_fsck_thing thing,
                                 struct tn_hash_128 hash);
/* A path that something names: no orphan. */
TN_MUST_USE tn_rc tn_fsck_reach(struct tn_fsck *f, const char *path, struct tn_err *err);
TN_MUST_USE tn_rc tn_fsck_reach_in(struct tn_fsck *f, const char *root, const char *dir,
                                   const char *name, struct tn_err *err);

/* ---- statistics ---- */

void tn_fsck_claim_add(struct tn_fsck_claim *claim, const struct tn_value *value);
TN_MUST_USE tn_rc tn_fsck_claim_check(struct tn_fsck *f, const struct tn_fsck_claim *claim,
                                      const char *file, struct tn_err *err);
/* Fills low, high and null_count of `count` claims whose other members are set. False, with the
 * reason in `err`, when the statistics are no rows of these columns. `values` takes 2 × count. */
bool tn_fsck_claims_load(struct tn_fsck_claim *claims, uint32_t count, const struct tn_stats *stats,
                         struct tn_type *types, struct tn_value *values, struct tn_err *err);

/* ---- parts ---- */

TN_MUST_USE tn_rc tn_fsck_newest(struct tn_fsck *f, struct tn_err *err);
/* Makes f->plan that of a schema; f->plan.good says whether it is one. Reported once. */
TN_MUST_USE tn_rc tn_fsck_plan(struct tn_fsck *f, int64_t schema_id, struct tn_err *err);

TN_MUST_USE tn_rc tn_fsck_file(struct tn_fsck *f, const struct tn_entry *entry, bool changelog,
                               const char *manifest, struct tn_err *err);
/* The path of an entry's file, in the worker's arena. */
TN_MUST_USE tn_rc tn_fsck_file_path(struct tn_fsck *f, const struct tn_entry *entry,
                                    const char **dir, const char **path, struct tn_err *err);
TN_MUST_USE tn_rc tn_fsck_reach_entry(struct tn_fsck *f, const struct tn_entry *entry,
                                      const char *dir, const char *path, struct tn_err *err);

TN_MUST_USE tn_rc tn_fsck_runs_add(struct tn_fsck *f, const struct tn_entry *entry,
                                   struct tn_hash_128 identity, struct tn_err *err);
void tn_fsck_runs_remove(struct tn_fsck *f, const struct tn_entry *entry,
                         struct tn_hash_128 identity);
void tn_fsck_runs_init(struct tn_fsck *f);
void tn_fsck_runs_clear(struct tn_fsck *f);
TN_MUST_USE tn_rc tn_fsck_runs_check(struct tn_fsck *f, const char *file, struct tn_err *err);

/* An index manifest and the files it names; each manifest is read once. */
TN_MUST_USE tn_rc tn_fsck_index(struct tn_fsck *f, const char *index_manifest, struct tn_err *err);

enum {
    TN_FSCK_APPLY = 1,     /* entries change what is live */
    TN_FSCK_STRICT = 2,    /* ... and a DELETE needs its ADD before it */
    TN_FSCK_FILES = 4,     /* files that are live are read */
    TN_FSCK_CHANGELOG = 8, /* all files are read */
    TN_FSCK_REACH = 16,    /* names are noted, damage isn't */
    TN_FSCK_DIFFER = 32,   /* looks for an entry that disagrees with what is live */
    TN_FSCK_EVERY = 64,    /* manifests that are known already are read again */
    TN_FSCK_AGAIN = 128,   /* files were looked at before: what is missing was noticed then */
};

struct tn_fsck_tally; /* fsck_manifest.c */

/* One list, and what its manifests add up to. */
struct tn_fsck_walk {
    struct tn_fsck *f;
    unsigned actions;
    const char *list; /* its path */
    uint32_t number;
    bool broken;
    uint64_t count; /* ADD less DELETE; all modulo 2^64 */
    uint64_t rows;
    struct tn_hash_128 sum;
    uint64_t dead; /* DELETE entries that still wait for their ADD */
    char odd[160]; /* a file's name, for what DIFFER and APPLY found; "" */
    struct tn_fsck_tally *tally;
    const char *manifest; /* path of the one at hand */
};

TN_MUST_USE tn_rc tn_fsck_walk(struct tn_fsck_walk *walk, const char *list,
                               struct tn_json_i64 list_size, struct tn_err *err);
void tn_fsck_manifests_init(struct tn_fsck *f);
/* Nothing is live any more. */
void tn_fsck_forget(struct tn_fsck *f);

/* All snapshots of `home`, then its tags. */
TN_MUST_USE tn_rc tn_fsck_snapshots(struct tn_fsck *f, struct tn_err *err);
TN_MUST_USE tn_rc tn_fsck_tags(struct tn_fsck *f, struct tn_err *err);
TN_MUST_USE tn_rc tn_fsck_changelogs(struct tn_fsck *f, struct tn_err *err);
TN_MUST_USE tn_rc tn_fsck_orphans(struct tn_fsck *f, struct tn_err *err);
/* Reads every snapshot and tag as readers do. What is known of files has been given back. */
TN_MUST_USE tn_rc tn_fsck_merged(struct tn_fsck *f, struct tn_err *err);

/* Calls `each` for a folder's names; a folder that is absent has none. */
TN_MUST_USE tn_rc tn_fsck_list(struct tn_fsck *f, const char *root, const char *dir,
                               tn_io_name_fn *each, void *user, struct tn_err *err);
/* The smallest number above `after` behind `prefix` in a folder of `home`; -1: there is none. */
TN_MUST_USE tn_rc tn_fsck_next_number(struct tn_fsck *f, const char *dir, const char *prefix,
                                      int64_t after, int64_t *number, struct tn_err *err);
