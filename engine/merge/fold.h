/* fold: the versions of one key become one row: how a merge ends in rows.
 *
 *     versions of a key -> which of them count -> reducer (or the newest) -> row, and its change
 *
 * TN_FOLD_PLAIN      All versions. Reading, flushing, plain compaction.
 * TN_FOLD_LOOKUP     Tables whose compaction looks up: all versions of level 0, and of those below
 *                    only the one of the smallest level, into which deeper ones were folded before.
 *                    In a compaction that takes level 0 in, `state` is asked where no version of a
 *                    level above 0 is among them; what it finds goes to its place in the sequence.
 *                    Keys with a version of level 0 are told to `change`.
 * TN_FOLD_FIRST_ROW  Such a compaction of engine first-row: a key that has no version of a level
 *                    above 0, but is in `state`, is left out. A key that is new is told, with its
 *                    row's own kind.
 * TN_FOLD_FULL       Compaction into the last level under producer full-compaction: "was" is the
 *                    version of the last level. Retracts are left out.
 * TN_FOLD_NONE       No fold: every version as it is, a key's oldest first. For whoever keeps them.
 *
 * A key with a single version is passed through untouched, whatever the engine (Paimon's reducer
 * bypass), but for TN_FOLD_FIRST_ROW and a TN_FOLD_LOOKUP that has a state or tells changes.
 *
 * A fold is a cursor; with `drop_deletes` rows whose result is a retract are left out: reading, and
 * compaction into the last level. Between two rows it holds no version, so a merge can rest there
 * (but with TN_FOLD_NONE).
 * Source: Paimon, ReducerMergeFunctionWrapper, LookupMergeFunction,
 * LookupChangelogMergeFunctionWrapper, FirstRowMergeFunctionWrapper,
 * FullChangelogMergeFunctionWrapper.
 */
#pragma once

#include "merge/change.h"
#include "merge/reduce.h"
#include "merge/state.h"

/* What becomes of a version. */
enum tn_fold_deed {
    TN_FOLD_PASSED, /* the only one of its key: it went through untouched */
    TN_FOLD_FED,    /* to the reducer */
    TN_FOLD_DEEPER, /* TN_FOLD_LOOKUP: it was folded into another before, and doesn't count */
    TN_FOLD_FAILED, /* the reducer can't take it; `err` says why */
};

/* Is told of each version, in the order of the merge: who wants to know how a row came about. A
 * fold that is watched takes version by version, and so needs an engine. */
struct tn_fold_watch {
    tn_rc (*seen)(struct tn_fold_watch *watch, const struct tn_kv *kv, enum tn_fold_deed deed,
                  const struct tn_reducer *reducer, struct tn_err *err);
};

enum tn_fold_mode { TN_FOLD_PLAIN, TN_FOLD_LOOKUP, TN_FOLD_FIRST_ROW, TN_FOLD_FULL, TN_FOLD_NONE };

struct tn_fold_spec {
    const struct tn_engine *engine; /* NULL: deduplicate, of sources that hold a key once */
    enum tn_fold_mode mode;
    bool repeated;      /* a source may hold a key more than once */
    bool ignore_delete; /* deduplicate: retracts among several versions are passed over */
    bool drop_deletes;
    int32_t level_max;              /* TN_FOLD_FULL */
    struct tn_state *state;         /* below a compaction's output, or NULL */
    const struct tn_change *change; /* or NULL */
    struct tn_fold_watch *watch;    /* or NULL */
    uint32_t row_size_max;          /* of versions and results */
};

/* How versions of one key were taken so far. */
struct tn_fold_key {
    int32_t level; /* the only one above 0 that counts: TN_FOLD_LOOKUP */
    bool level0;   /* a version of it took part */
    bool level_up; /* a version of a level above it took part */
    bool was;      /* fold->was is there */
    struct tn_kv state;
    bool state_waits; /* to be fed: nothing newer was there yet */
};

struct tn_fold {
    struct tn_iter iter; /* first */
    struct tn_merge *merge;
    struct tn_fold_spec spec;
    struct tn_reducer *reducer; /* or NULL: the newest of a group */
    unsigned char *first_row;
    unsigned char *was_row;
    struct tn_kv first; /* the key's oldest version, in first_row */
    struct tn_kv was;   /* in was_row, or the state */
    struct tn_fold_key key;
    bool given; /* TN_FOLD_NONE: the merge's head is what was yielded last */
};

/* How a reader of such a table folds. */
static inline enum tn_fold_mode tn_fold_reading(const struct tn_options *options)
{
    bool lookup = options->merge_engine != TN_MERGE_FIRST_ROW && tn_options_need_lookup(options);
    return lookup ? TN_FOLD_LOOKUP : TN_FOLD_PLAIN;
}

/* How the merge below such a fold must give the versions. */
enum tn_merge_mode tn_fold_merges(const struct tn_fold_spec *spec);

/* Bytes of arena that a fold takes: none for groups. */
size_t tn_fold_size(const struct tn_fold_spec *spec);

TN_MUST_USE tn_rc tn_fold_init(struct tn_fold *fold, struct tn_merge *merge,
                               const struct tn_fold_spec *spec, struct tn_arena *arena,
                               struct tn_err *err);
