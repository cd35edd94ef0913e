/* evolve: a row of an older version of a table's schema as a row of its newest.
 *
 * For rows that were taken before a schema changed and are put behind it. A column is who has its
 * id, whatever it is called by now; of a type that changed, the value is cast (cast.h). A column
 * that came since has its default, or NULL; one that went is left out.
 *
 * What the newer type has no room for is refused where a cast would cut it, wrap it, or make it
 * NULL or the nearest there is: nobody asked for that. Digits behind the point or the second that
 * the newer type does not have, and what a FLOAT rounds, are what the change asked for.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "schema/schema.h"

struct tn_evolve_column; /* evolve.c */

struct tn_evolve {
    const struct tn_row_layout *from; /* of all columns of the older one; NULL: nobody knows them */
    const struct tn_row_layout *to;
    struct tn_evolve_column *columns; /* of `to` */
    struct tn_value *values;          /* likewise */
};

/* `to` is the layout of all columns of `newer`, which has no nested ones. All of it lives in the
 * arena, and as long as the schemas. AGAIN: the arena is full. Others: no row of that schema can be
 * one of this. */
TN_MUST_USE tn_rc tn_evolve_open(struct tn_evolve *evolve, const struct tn_schema *older,
                                 const struct tn_schema *newer, const struct tn_row_layout *to,
                                 struct tn_arena *arena, struct tn_err *err);

/* The row that comes of `row`, of at most `size_max` bytes, in the arena. INVALID: it is none of
 * the newer schema; the text names the column. AGAIN: the arena is full. */
TN_MUST_USE tn_rc tn_evolve_row(const struct tn_evolve *evolve, struct tn_row row,
                                uint32_t size_max, struct tn_arena *arena, struct tn_row *evolved,
                                struct tn_err *err);
