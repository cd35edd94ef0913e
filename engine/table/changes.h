/* changes: how the compactions of a table fold, what they look up, and what they tell.
 *
 *     producer input             flushes write what came, or with a resolver what changed;
 *                                compactions say nothing
 *     producer lookup            a compaction that takes level 0 in looks up what keys were below
 *     engine first-row           likewise, whatever the producer
 *     producer full-compaction   compactions into the last level say what changed since the one
 *                                before; every N-th round makes one of every bucket it wrote to
 *
 * Made once a table; indexes and reducer come from tn_env_lasting. The state before is opened for
 * one slice at a time, on the worker that runs slices. Source: Paimon, CoreOptions.needLookup,
 * GlobalFullCompactionSinkWrite.
 */
#pragma once

#include "levels/compact.h"
#include "read/state.h"

struct tn_table;

struct tn_changes {
    struct tn_table *table;
    enum tn_fold_mode fold; /* of compactions; FULL: only of those into the last level */
    bool told;              /* compactions write changelogs */
    struct tn_change change;
    struct tn_compact_before before;
    struct tn_key_state state;       /* of the slice under way */
    struct tn_block_indexes indexes; /* kept from slice to slice */
    struct tn_reducer *reducer;      /* of memtables that merge rows as they come, or NULL */
    size_t mark;                     /* of tn_env_lasting, before indexes and reducer */
    bool indexed; /* for compactions that look keys up, and for flushes that resolve rows */
    bool asks;    /* compactions look keys up */
    uint64_t keys_asked;
    uint64_t rows_read;  /* to answer */
    int32_t full_every;  /* rounds from one full compaction to the next; 0: none is due ever */
    int64_t again_round; /* is due, too: one before it was, and not all was told; 0: none */
    int64_t full_round;  /* that is closing with a full compaction; 0: none */
};

enum { TN_STATE_RUN_SIZE = 1024 * 1024 }; /* more is of no use to a run of 64 KB blocks */

/* The blocks of files, for whoever looks keys up on the worker that runs slices; or NULL. */
struct tn_block_indexes *tn_changes_indexes(struct tn_changes *changes);

TN_MUST_USE tn_rc tn_changes_init(struct tn_changes *changes, struct tn_table *table,
                                  const int32_t *column_of, struct tn_arena *arena,
                                  struct tn_err *err);
void tn_changes_close(struct tn_changes *changes);

/* What concerns changes in the spec of a compaction; its other members are set. */
void tn_changes_spec(struct tn_changes *changes, struct tn_compact_spec *spec);

/* A round is to end with full compactions. */
bool tn_changes_due(const struct tn_changes *changes, int64_t round);

/* This round is due, whatever its number. */
void tn_changes_again(struct tn_changes *changes, int64_t round);

/* A round is being cut: notes whether it is to end with full compactions. */
void tn_changes_cut(struct tn_changes *changes, int64_t round);
