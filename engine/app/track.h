/* track: the way of a followed file into its table, past the journal.
 *
 *     offer --> parcel ------ put, as there is room ------> keeper
 *                 behind        at: all before it is put      | cut: the place is in the snapshot
 *                                                             '-> committed
 *
 * A file can be read again, so nothing of it is kept here that is not committed: the table's
 * position says where. A parcel is what one message became; it waits for room as long as it takes,
 * for `map` is asked once while the table is open, and goes only with the table, when it is closed.
 *
 * Where the table's `map` has stores, what it kept must be as it was at the place. So such a file's
 * records go through the journal, as those of senders do: its place is a memo beside them, and the
 * table's position follows, for when the journal is gone.
 *
 * A cut may come in the middle of a record. Its place then names that record, and how many of its
 * items are in; when it comes again these are passed over.
 */
#pragma once

#include "ingest/hub.h"
#include "ingest/parcel.h"
#include "table/letters.h"
#include "table/table.h"

struct tn_keeper;

struct tn_track {
    const char *source; /* the name that a place is kept under; it is the sender's */
    struct tn_keeper *keeper;
    struct tn_track *next;          /* of the same keeper */
    struct tn_file_place behind;    /* what is offered next begins here, mostly */
    struct tn_file_place at;        /* all before it is put */
    struct tn_file_place cut;       /* what the last cut named */
    struct tn_file_place committed; /* by a snapshot, or by who started it */
    struct tn_letter_source letters;
    bool fresh;    /* nobody knows it yet */
    bool hurries;  /* what comes of the parcel is committed at once */
    bool owed;     /* an offer was AGAIN */
    bool rewound;  /* at its begin: it went on from before */
    uint64_t kept; /* the journal's place of what was kept last; 0: nothing was */

    unsigned char *parcel;     /* room for the longest */
    size_t size;               /* of what is there; 0: nothing */
    size_t rest;               /* where its next item begins */
    struct tn_file_place from; /* of the message, behind its header */
    size_t header_size;
    uint64_t header_lines;
    size_t begin; /* in the message, of the record at hand, and the lines before it */
    uint64_t lines;
    uint32_t done; /* items of that record that were taken before */
};

/* Its table was opened, with this place, or none. */
void tn_track_begin(struct tn_track *track, const struct tn_file_place *place);

/* The message has become the parcel. */
void tn_track_take(struct tn_track *track, const struct tn_message *message, size_t size);
/* Nothing came of what is before the message's place behind. */
void tn_track_pass(struct tn_track *track, const struct tn_message *message);

/* All before the message's place behind is in the journal, or comes to nothing: its entry is at
 * `place`. */
void tn_track_keep(struct tn_track *track, const struct tn_message *message, uint64_t place);
/* The table has all of the journal before `place`. */
void tn_track_reach(struct tn_track *track, uint64_t place);

/* Puts what is left of the parcel, `*items` at most. AGAIN: there is no room, or they were all.
 * Others: the table takes nothing, see tn_keeper_fail. */
TN_MUST_USE tn_rc tn_track_put(struct tn_track *track, int64_t now_ms, uint32_t *items,
                               struct tn_err *err);

/* Where the table is goes into the open round. */
TN_MUST_USE tn_rc tn_track_note(const struct tn_track *track, struct tn_table *table,
                                struct tn_err *err);

/* Number of what is at a place, over all files: for letters. */
static inline int64_t tn_track_number(const struct tn_file_place *place)
{
    return (int64_t)tn_file_place_bytes(place);
}
