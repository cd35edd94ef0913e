/* schemas: the schema versions of one table, read once each and kept.
 *
 * Filled on the loop (or by the one task that plans); tasks only look up what was loaded for them.
 * Everything lives in the arena it was opened with. The newest is what writers use and readers read
 * in; files are decoded by the version they name.
 */
#pragma once

#include "base/arena.h"
#include "io/io.h"
#include "schema/schema.h"

enum { TN_SCHEMAS_MAX = 256 };

struct tn_schemas {
    struct tn_io *io;
    const char *root; /* "db.db/t" */
    struct tn_arena *arena;
    struct tn_schema *items[TN_SCHEMAS_MAX];
    uint32_t count;
};

void tn_schemas_init(struct tn_schemas *schemas, struct tn_io *io, const char *root,
                     struct tn_arena *arena);

/* Reads schema-<id> unless it is there. ABSENT when the table has none; CORRUPT when the file says
 * that it is another. */
TN_MUST_USE tn_rc tn_schemas_load(struct tn_schemas *schemas, int64_t id,
                                  const struct tn_schema **schema, struct tn_err *err);

/* The newest: the largest number in schema/. ABSENT: no such table. */
TN_MUST_USE tn_rc tn_schemas_newest(struct tn_schemas *schemas, const struct tn_schema **schema,
                                    struct tn_err *err);

/* What was loaded before, or NULL. */
const struct tn_schema *tn_schemas_find(const struct tn_schemas *schemas, int64_t id);
