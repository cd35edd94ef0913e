/* inspect: what a table consists of, as rows of named cells: Paimon's system tables.
 *
 *     snapshots  schemas  options  manifests  files  partitions  buckets  tags  branches  consumers
 *
 * and `schema`, the columns of the newest schema. Names of columns are Paimon's ($files and so on).
 * Each view streams: it holds one snapshot, one manifest's block or one window at a time. Source:
 * Paimon, SystemTableLoader.
 */
#pragma once

#include "commit/snapshot.h"
#include "file/schemas.h"
#include "file/worker.h"
#include "schema/options.h"

struct tn_inspect {
    const char *root;
    const struct tn_snapshot *snapshot; /* NULL: the table has none */
    const struct tn_schema *schema;     /* the newest */
    const struct tn_options *options;
    struct tn_schemas *schemas; /* filled as files name versions */
    struct tn_worker *worker;
    struct tn_arena *arena; /* for a line's text, 64 KB, and for schemas */
    void *window;           /* for what must be sorted or summed up */
    size_t window_size;
};

struct tn_view_cell {
    struct tn_bytes text; /* lives until the row was given */
    bool plain;           /* a number, or JSON: no quotes around it */
    bool null;
};

struct tn_view; /* inspect.c */

/* NULL when there is no such view; its names are then in tn_view_names. */
const struct tn_view *tn_view_find(const char *name);
extern const char *const tn_view_names[];
extern const uint32_t tn_view_count;

/* The columns, `*count` of them. */
const char *const *tn_view_columns(const struct tn_view *view, uint32_t *count);

/* `cells`: one a column. An error of `each` ends it. */
typedef tn_rc tn_view_fn(void *user, const struct tn_view_cell *cells, struct tn_err *err);
TN_MUST_USE tn_rc tn_view_each(const struct tn_view *view, const struct tn_inspect *inspect,
                               tn_view_fn *each, void *user, struct tn_err *err);

/* Appends "{1, a}": a BinaryRow (with arity) of these types as text, between two `brackets`. False,
 * and nothing is appended, where it can't be read. */
bool tn_view_binary_text(struct tn_bytes binary, const struct tn_type *types, uint32_t count,
                         const char *brackets, struct tn_arena *scratch, struct tn_buf *buf);
