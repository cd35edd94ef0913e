/* older: rows that the journal has of a table, as the table takes them by now.
 *
 * While rows wait in the journal somebody may change the table's schema, or put another table in
 * its place. A row of an older schema becomes one of the newest (schema/evolve.h); one that can't
 * is a dead letter, as JSON with the columns that it had, and so is what is no row at all. So each
 * of them is in the table or has a letter, and none holds up those behind it.
 */
#pragma once

#include "ingest/parcel.h"
#include "schema/evolve.h"
#include "table/table.h"

struct tn_older {
    const struct tn_table *table;
    const struct tn_row_layout *layout; /* of the rows; NULL: it isn't known */
    struct tn_evolve evolve;
    bool evolves; /* else the schema is the newest, or none can be taken: `why` */
    uint32_t size_max;
    struct tn_arena *arena;
    size_t mark; /* what an item takes lies behind it */
    struct tn_err why;
};

/* For the items of a parcel with rows of this schema. `size_max` is of a row; the arena is used
 * until it is given back by who lent it. */
void tn_older_open(struct tn_older *older, const struct tn_table *table, int64_t schema,
                   uint32_t size_max, struct tn_arena *arena);

/* OK: the table may be given the item, whose data may have become another row, which lives until
 * the next call. INVALID: it is a letter; its data is the row's text then, as a letter of input
 * TN_LETTER_ROW has it, or the bytes where nobody knows what they mean. */
TN_MUST_USE tn_rc tn_older_item(struct tn_older *older, struct tn_parcel_item *item,
                                struct tn_err *err);

/* {"kind":"+I","row":{...}}: a row as a letter of input TN_LETTER_ROW has it. */
void tn_older_text(const struct tn_row_layout *layout, const struct tn_parcel_item *item,
                   struct tn_buf *text);
