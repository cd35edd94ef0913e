/* follow: what the changelog of a table must say, from snapshot to snapshot.
 *
 *     lookup, full-compaction, first-row
 *         the rows that a follower starts with at one snapshot, and the next one's changelog, make
 *         the rows that a follower starts with at the next: so whoever starts at any snapshot has
 *         the table's rows at the end, and no change is told twice, or never. Each -U and -D shows
 *         the row that was there, behind each -U is its +U.
 *     input
 *         the rows that were put between two positions, each once, as they were put; where they are
 *         merged before, one row a key.
 *
 * All checks give NULL, or what is wrong. Every file that a changelog names is read.
 */
#pragma once

#include <stdlib.h>

#include "base/hash.h"
#include "changelog/tail.h"
#include "table/scenario.h"

#define BED_PROBLEM(...) \
    ((void)snprintf(bed_problem, sizeof bed_problem, __VA_ARGS__), (const char *)bed_problem)

static char bed_problem[600];

/* A row as it was read. */
struct bed_seen {
    bool present;
    bool sequence_null;
    bool value_null;
    int32_t partition;
    int32_t sequence;
    uint32_t size;
    uint64_t hash; /* of the text */
};

struct bed_view {
    struct bed_seen rows[BED_SLOTS];
};

struct bed_follower {
    const struct bed_scenario *scenario;
    struct tn_scan_spec scan; /* less the snapshot */
    struct tn_worker *worker;
    struct tn_arena *own;
    void *window;
    size_t window_size;
    uint32_t key_count;
    bool known;       /* `was` is what a follower has after the snapshot before */
    bool updating;    /* the last row was a -U */
    uint32_t updated; /* its slot */
    uint64_t told;    /* rows */
    struct bed_view was;
    struct bed_view is;
    bool matched[BED_ROWS_MAX]; /* producer input: rows that were told */
};

static __attribute__((unused, noinline)) void bed_view_clear(const struct bed_follower *f,
                                                             struct bed_view *view)
{
    memset(view->rows, 0, f->key_count * sizeof view->rows[0]);
    memset(view->rows + BED_ROWS_MAX, 0, f->key_count * sizeof view->rows[0]);
}

static __attribute__((unused, noinline)) bool bed_seen_equal(const struct bed_seen *a,
                                                             const struct bed_seen *b)
{
    return a->present == b->present &&
           (!a->present || (a->partition == b->partition && a->sequence_null == b->sequence_null &&
                            a->sequence == b->sequence && a->value_null == b->value_null &&
                            a->size == b->size && a->hash == b->hash));
}

static __attribute__((unused, noinline)) struct bed_seen bed_seen_of_row(const struct bed_row *row)
{
    char text[BED_VALUE_MAX];
    struct bed_seen seen = {.present = true,
                            .partition = row->partition,
                            .sequence_null = row->sequence_null,
                            .sequence = row->sequence_null ? 0 : row->sequence,
                            .value_null = row->value_null};
    if (!row->value_null) {
        struct tn_bytes bytes = bed_text(row->value, text);
        seen.size = (uint32_t)bytes.size;
        seen.hash = tn_hash_64(bytes, 0);
    }
    return seen;
}

static __attribute__((unused, noinline)) const char *bed_see(const struct bed_follower *f,
                                                             const struct tn_row_layout *layout,
                                                             struct tn_row row, uint32_t *slot,
                                                             struct bed_seen *seen)
{
    struct tn_value values[4];
    for (uint32_t i = 0; i < 4; i++) {
        tn_row_get(layout, row, i, &values[i]);
    }
    int64_t key = values[1].as.i64;
    if (key < 0 || key >= f->key_count) {
        return BED_PROBLEM("a row of key %" PRId64, key);
    }
    *slot = bed_slot(f->scenario, key, (int32_t)values[0].as.i64);
    *seen = (struct bed_seen){.present = true,
                              .partition = (int32_t)values[0].as.i64,
                              .sequence_null = values[2].null,
                              .value_null = values[3].null};
    seen->sequence = values[2].null ? 0 : (int32_t)values[2].as.i64;
    if (!values[3].null) {
        seen->size = (uint32_t)values[3].as.bytes.size;
        seen->hash = tn_hash_64(values[3].as.bytes, 0);
    }
    return NULL;
}

/* ---- what a follower starts with ---- */

static __attribute__((unused, noinline)) const char *
bed_view_read(struct bed_follower *f, const struct tn_snapshot *snapshot, struct bed_view *view)
{
    static struct tn_scan scan;
    struct tn_err err;
    struct tn_kv kv;
    struct tn_plan_filter filter = {tn_tail_in_state, f->scan.options, true};
    struct tn_scan_spec spec = f->scan;
    size_t mark = tn_arena_mark(&f->worker->arena);
    const char *problem = NULL;
    spec.snapshot = snapshot;
    spec.filter = &filter;
    bed_view_clear(f, view);
    tn_rc rc = tn_scan_open(&scan, &spec, f->window, f->window_size, f->own, f->worker, &err);
    bool open = rc == TN_OK;
    while (rc == TN_OK && !problem && (rc = tn_scan_next(&scan, &kv, &err)) == TN_OK) {
        uint32_t slot;
        struct bed_seen seen;
        problem = bed_see(f, &scan.projection.layout, kv.row, &slot, &seen);
        if (!problem) {
            view->rows[slot] = seen;
        }
    }
    if (open) {
        tn_scan_close(&scan);
    }
    tn_arena_reset(&f->worker->arena, mark);
    return problem || rc == TN_ABSENT ? problem : BED_PROBLEM("state: %s", err.text);
}

static __attribute__((unused, noinline)) const char *bed_view_differs(const struct bed_follower *f,
                                                                      const struct bed_view *a,
                                                                      const struct bed_view *b,
                                                                      const char *what)
{
    for (uint32_t slot = 0; slot < BED_SLOTS; slot++) {
        if (slot % BED_ROWS_MAX < f->key_count && !bed_seen_equal(&a->rows[slot], &b->rows[slot])) {
            return BED_PROBLEM("%s: key %u of partition %u %s", what, slot % BED_ROWS_MAX,
                               slot / BED_ROWS_MAX,
                               !a->rows[slot].present   ? "is there"
                               : !b->rows[slot].present ? "is not there"
                                                        : "is another row");
        }
    }
    return NULL;
}

/* ---- changes that were looked up ---- */

static __attribute__((unused, noinline)) const char *bed_tell_change(struct bed_follower *f,
                                                                     enum tn_row_kind kind,
                                                                     uint32_t slot,
                                                                     const struct bed_seen *seen)
{
    struct bed_seen *row = &f->was.rows[slot];
    const char *text = tn_row_kind_text(kind);
    uint32_t key = slot % BED_ROWS_MAX;
    if (f->updating != (kind == TN_ROW_UPDATE_AFTER) || (f->updating && slot != f->updated)) {
        return BED_PROBLEM("changelog: %s of key %u, and its other half is not there", text, key);
    }
    if (f->scenario->engine == TN_MERGE_FIRST_ROW && kind != TN_ROW_INSERT) {
        return BED_PROBLEM("changelog: %s of key %u of first-row", text, key);
    }
    bool retracts = tn_row_kind_retracts(kind);
    if (retracts && !bed_seen_equal(row, seen)) {
        return BED_PROBLEM("changelog: %s of key %u shows what was not there", text, key);
    }
    if (kind == TN_ROW_INSERT && row->present) {
        return BED_PROBLEM("changelog: %s of key %u, which was there", text, key);
    }
    if (f->updating && f->scenario->deduplicates && bed_seen_equal(row, seen)) {
        return BED_PROBLEM("changelog: %s of key %u changes nothing", text, key);
    }
    f->updating = kind == TN_ROW_UPDATE_BEFORE;
    f->updated = slot;
    if (!f->updating) {
        *row = *seen;
        row->present = !retracts;
    }
    return NULL;
}

/* ---- rows as they came ---- */

/* Of rows that are merged the last of each key is looked for, and what they make. */
static __attribute__((unused, noinline)) const char *
bed_tell_input(struct bed_follower *f, enum tn_row_kind kind, uint32_t slot,
               const struct bed_seen *seen, uint32_t from, uint32_t to)
{
    const struct bed_scenario *s = f->scenario;
    struct bed_row merged = {0};
    bool present = false;
    uint32_t found = to;
    for (uint32_t i = from; i < to && (s->local_merge || found == to); i++) {
        const struct bed_row *row = &s->rows[i];
        if (bed_slot(s, row->key, row->partition) != slot || f->matched[i]) {
            continue;
        }
        if (s->local_merge) {
            bed_merge(s, &merged, &present, row);
            found = i;
            f->matched[i] = true;
            continue;
        }
        struct bed_seen want = bed_seen_of_row(row);
        if (row->deletes == tn_row_kind_retracts(kind) && bed_seen_equal(&want, seen)) {
            found = i;
            f->matched[i] = true;
        }
    }
    struct bed_seen want = bed_seen_of_row(&merged);
    bool same = found < to;
    if (same && s->local_merge) {
        same = present != tn_row_kind_retracts(kind) && (!present || bed_seen_equal(&want, seen));
    }
    return same ? NULL
                : BED_PROBLEM("changelog: %s of key %u, which nobody put then, or only once",
                              tn_row_kind_text(kind), slot % BED_ROWS_MAX);
}

static __attribute__((unused, noinline)) const char *bed_input_told(const struct bed_follower *f,
                                                                    uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        if (!f->matched[i]) {
            return BED_PROBLEM("changelog: row %u is not told", i);
        }
    }
    return NULL;
}

/* ---- a snapshot ---- */

/* Rows `from` to `to` came with it. Where it isn't known what was before, files are only read. */
static __attribute__((unused, noinline)) const char *
bed_read_changes(struct bed_follower *f, int64_t id, bool known, uint32_t from, uint32_t to)
{
    static struct tn_tail tail;
    struct tn_err err;
    struct tn_kv kv;
    struct tn_tail_spec spec = {.scan = &f->scan, .source = TN_TAIL_CHANGELOG};
    const char *problem = NULL;
    bool input = f->scenario->producer == TN_CHANGELOG_INPUT;
    tn_rc rc = tn_tail_open(&tail, &spec, f->own, f->worker, &err);
    if (rc == TN_OK) {
        rc = tn_tail_begin(&tail, id, &err);
    }
    f->updating = false;
    while (rc == TN_OK && !problem && (rc = tn_tail_next(&tail, &kv, &err)) == TN_OK) {
        uint32_t slot;
        struct bed_seen seen;
        problem = bed_see(f, &tail.projection.layout, kv.row, &slot, &seen);
        if (!problem && known) {
            problem = input ? bed_tell_input(f, kv.kind, slot, &seen, from, to)
                            : bed_tell_change(f, kv.kind, slot, &seen);
        }
        f->told++;
    }
    tn_tail_end(&tail);
    if (!problem && rc != TN_ABSENT) {
        return BED_PROBLEM("changelog: %s", err.text);
    }
    return problem || !f->updating
               ? problem
               : BED_PROBLEM("changelog: ends with a -U of key %u", f->updated % BED_ROWS_MAX);
}

/* At a table's first snapshot, or the first that is left. */
static __attribute__((unused, noinline)) void bed_follow_begin(struct bed_follower *f,
                                                               const struct bed_scenario *s)
{
    f->scenario = s;
    f->known = false;
    f->told = 0;
    f->key_count = 1;
    for (uint32_t i = 0; i < s->row_count; i++) {
        uint32_t key = (uint32_t)s->rows[i].key;
        f->key_count = key >= f->key_count ? key + 1 : f->key_count;
    }
    memset(f->matched, 0, sizeof f->matched);
}

/* The next snapshot; `from` and `to` are the positions before it and of it. */
static __attribute__((unused, noinline)) const char *
bed_follow(struct bed_follower *f, const struct tn_snapshot *snapshot, uint32_t from, uint32_t to)
{
    bool input = f->scenario->producer == TN_CHANGELOG_INPUT;
    bool known = f->known || snapshot->id == 1;
    if (snapshot->id == 1) {
        bed_view_clear(f, &f->was);
    }
    const char *problem = bed_read_changes(f, snapshot->id, known, from, to);
    if (!problem && known && input) {
        problem = bed_input_told(f, from, to);
    }
    if (!problem && !input) {
        problem = bed_view_read(f, snapshot, &f->is);
    }
    if (!problem && known && !input) {
        problem = bed_view_differs(f, &f->was, &f->is, "followed from the snapshot before");
    }
    if (!known && !input) {
        f->was = f->is;
    }
    f->known = true;
    return problem;
}

/* All that was put has been told: what was followed is what the model says. */
static __attribute__((unused, noinline)) const char *bed_follow_end(struct bed_follower *f,
                                                                    uint32_t position)
{
    static struct bed_state state;
    bed_fold(f->scenario, position, &state);
    bed_view_clear(f, &f->is);
    for (uint32_t slot = 0; slot < BED_SLOTS; slot++) {
        if (state.present[slot]) {
            f->is.rows[slot] = bed_seen_of_row(&state.rows[slot]);
        }
    }
    return bed_view_differs(f, &f->was, &f->is, "followed to the end");
}
