/* reduce: the versions of one key, fed one by one, become one: Paimon's merge functions.
 *
 *     begin -> add (oldest version first) ... -> end
 *
 * Versions are fed in the order of tn_kv_newer, oldest first. `deduplicate` and `first-row` keep
 * one of them; `partial-update` and `aggregation` make a new row, column by column. A reducer
 * copies what it needs, so a version need not outlive the call. What it gives lives until the next
 * begin. Which keys go through a reducer at all (a key with a single version mostly does not) is
 * the fold's business (merge/fold.h).
 *
 * Memory: values of all columns and two buffers of `row_size_max` bytes: the row's texts are in one
 * of them, what a version changes is put together in the other. No allocation after init. Source:
 * Paimon, DeduplicateMergeFunction, PartialUpdateMergeFunction, AggregateMergeFunction,
 * FirstRowMergeFunction, and the FieldAggregators.
 */
#pragma once

#include "merge/merge.h"
#include "schema/options.h"

struct tn_engine; /* a table's merge engine, compiled for one layout; constant, shared by threads */
struct tn_reducer;

/* `fields_of[column]` is the field, of the schema whose options these are, that each column of
 * order->layout shows. Everything else was checked when the options were read. AGAIN when the arena
 * is full. */
TN_MUST_USE tn_rc tn_engine_make(const struct tn_options *options, const struct tn_order *order,
                                 const uint32_t *fields_of, struct tn_arena *arena,
                                 const struct tn_engine **engine, struct tn_err *err);

/* True where nothing but the newest version counts: no reducer is needed. */
bool tn_engine_keeps_newest(const struct tn_engine *engine);

/* INVALID, with the reason, for a kind of row that no merge of this engine ever takes. Paimon takes
 * such a row, and from then on each flush, read or compaction in which it meets another one of its
 * key fails: whoever takes rows in asks first. */
TN_MUST_USE tn_rc tn_engine_check_kind(const struct tn_engine *engine, enum tn_row_kind kind,
                                       struct tn_err *err);

/* Bytes of arena that a reducer takes. */
size_t tn_reducer_size(const struct tn_engine *engine, uint32_t row_size_max);
TN_MUST_USE tn_rc tn_reducer_make(const struct tn_engine *engine, uint32_t row_size_max,
                                  struct tn_arena *arena, struct tn_reducer **reducer,
                                  struct tn_err *err);

void tn_reducer_begin(struct tn_reducer *reducer);

/* INVALID, with the column and why, when a version can't be merged: a retract that a function does
 * not know, a NULL for a NOT NULL column, a merged row of more than row_size_max bytes. */
TN_MUST_USE tn_rc tn_reducer_add(struct tn_reducer *reducer, const struct tn_kv *kv,
                                 struct tn_err *err);

/* What the row is so far, between two versions: one value for each column of the layout, which
 * lives until the next call, its kind, and the newest version that counted, without its row. False
 * while none did. Nothing is checked: see tn_reducer_end. */
bool tn_reducer_look(const struct tn_reducer *reducer, struct tn_value *values,
                     enum tn_row_kind *kind, struct tn_kv *newest);

/* The merged row, its kind, and the sequence number of the newest version that counted; prefix of
 * the key. ABSENT: nothing remains (all versions were passed over). */
TN_MUST_USE tn_rc tn_reducer_end(struct tn_reducer *reducer, struct tn_kv *kv, struct tn_err *err);
