/* parcel: what a message became, as the journal, or a file's track, keeps it for its table.
 *
 *     head: version, schema, input, source | item | item | ...
 *
 * An item is a row of the table's layout, or a record that can't become rows, with why; both say
 * which record of the message they are of. So what comes of a message is decided once: replay
 * decodes nothing, and asks no script. An item takes some 5 bytes beside what it holds.
 */
#pragma once

#include "ingest/decode.h"
#include "schema/row.h"

struct tn_parcel_head {
    int64_t schema; /* the table's, of which the rows are */
    enum tn_input input;
    struct tn_bytes source; /* "mqtt.plant"; up to 255 bytes of it are kept */
};

enum tn_parcel_kind {
    TN_PARCEL_ROW,
    TN_PARCEL_LETTER,
    TN_PARCEL_HEADER, /* csv: the line that names the columns, for letters behind it */
    TN_PARCEL_PLACE,  /* of a file: where the record of the items behind it begins: no data */
};

struct tn_parcel_item {
    enum tn_parcel_kind kind;
    enum tn_row_kind row_kind;
    uint32_t record; /* of the message, from 0; of a place: bytes from the place before to it */
    uint32_t part;   /* rows that were made of the record before; likewise: lines */
    struct tn_bytes data; /* the row, the record or the header */
    struct tn_bytes reason;
};

void tn_parcel_begin(struct tn_buf *parcel, const struct tn_parcel_head *head);
void tn_parcel_add(struct tn_buf *parcel, const struct tn_parcel_item *item);

/* Both point into the parcel. CORRUPT: it is none. */
TN_MUST_USE tn_rc tn_parcel_open(struct tn_bytes *parcel, struct tn_parcel_head *head,
                                 struct tn_err *err);
/* Takes the next item off. ABSENT: there is none. */
TN_MUST_USE tn_rc tn_parcel_next(struct tn_bytes *parcel, struct tn_parcel_item *item,
                                 struct tn_err *err);
