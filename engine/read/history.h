/* history: the life of one key in a snapshot: each of its versions, in the order in which a reader
 * merges them, what each of them did to the row, and the row that a reader sees.
 *
 *     find -> versions of the key -> the reader's own merge and fold, watched -> step after step
 *
 * Nothing is merged here: the row is the fold's, and a step is what the fold's reducer holds after
 * a version, compared with what it held before.
 */
#pragma once

#include "read/find.h"

enum tn_history_deed {
    TN_HISTORY_ALONE,     /* the only version there is: a reader gets it untouched */
    TN_HISTORY_BEGINS,    /* the first that counts */
    TN_HISTORY_COUNTS,    /* `changed` says what it changed */
    TN_HISTORY_PASSED,    /* it changed nothing: a late row of first-row, an ignored retract */
    TN_HISTORY_DEEPER,    /* tables that look up: it is part of one on a smaller level */
    TN_HISTORY_UNSEEN,    /* first-row: on level 0, which readers pass over */
    TN_HISTORY_FAILS,     /* it can't be merged: `why` */
    TN_HISTORY_UNREACHED, /* behind one that failed */
};

/* By what a version comes behind the one before it. */
enum tn_history_order {
    TN_HISTORY_FIRST,
    TN_HISTORY_SEQUENCE_FIELDS,
    TN_HISTORY_SEQUENCE_NUMBER,
    TN_HISTORY_ADD, /* an add comes behind a retract of its number */
    TN_HISTORY_LEVEL,
};

struct tn_history_step {
    uint32_t number;        /* from 1 on */
    const char *file;       /* below the table's folder */
    const struct tn_kv *kv; /* the version, as it was written */
    const char *bad;        /* why it can't be read; then some values are NULL in its row */
    enum tn_history_deed deed;
    enum tn_history_order order;
    const bool *changed;     /* COUNTS: per column of the layout */
    struct tn_row row;       /* BEGINS, COUNTS: what has been made so far */
    enum tn_row_kind kind;   /* of it */
    enum tn_row_kind before; /* COUNTS: that it was of */
    const char *why;         /* FAILS */
};

struct tn_history {
    struct tn_projection projection;
    uint32_t version_count;
    uint32_t file_count; /* that were opened */
    enum tn_merge_engine engine;
    bool there;      /* something is left of the versions: `kv`, which may be a retract */
    struct tn_kv kv; /* its row is in the window */
};

struct tn_history_spec {
    const struct tn_scan_spec *scan; /* its predicate and keep_deletes don't count */
    const struct tn_value *key;      /* as tn_find_init has it */
    /* Called for each version; what the step points to lives until it returns. */
    tn_rc (*step)(void *user, const struct tn_history *history, const struct tn_history_step *step,
                  struct tn_err *err);
    void *user;
};

/* `arena` holds the projection, `window` the versions and the row. ABSENT: the key has no version.
 * An error of the merge comes behind all steps. */
TN_MUST_USE tn_rc tn_history(const struct tn_history_spec *spec, void *window, size_t window_size,
                             struct tn_arena *arena, struct tn_worker *worker,
                             struct tn_history *history, struct tn_err *err);
