/* copy: a file or standard input into a feed, from where it stopped to its end.
 *
 * A file's place is committed with its rows, so the same copy goes on where it was after a power
 * cut, and does nothing when all was committed already. A pipe has no place to go on at.
 */
#pragma once

#include "app/boot.h"
#include "app/feed.h"
#include "io/source.h"

struct tn_copy_spec {
    struct tn_app *app;
    const char *table_name;
    struct tn_decode_spec decode; /* record_size_max is the copy's */
    const char *from;         /* --from: the byte to begin at, whatever was committed; or NULL */
    bool placed;              /* places are looked up and noted */
    struct tn_mapper *mapper; /* the feed's, which is told where records come from; or NULL */
    /* What a pipe is called among the sources of letters, for it has no identity of its own. */
    const char *run;
};

struct tn_copy {
    struct tn_copy_spec spec;
    struct tn_source source; /* name stays after its end, for messages */
    char key[160];           /* the source's, among the table's positions */
    unsigned char *buffer;   /* in the input's arena */
    size_t buffer_size;      /* the padding behind it not counted */
    struct tn_bytes rest;    /* of the buffer, what is not eaten yet */
    bool at_end;
};

/* Takes what the input's arena has left but for a decoder: how long a record may be follows from
 * that. AGAIN: it is too little. */
TN_MUST_USE tn_rc tn_copy_init(struct tn_copy *copy, const struct tn_copy_spec *spec,
                               struct tn_err *err);

/* All of `path` ("-": standard input) goes through the feed; the last rows wait for a cut. */
TN_MUST_USE tn_rc tn_copy_source(struct tn_copy *copy, struct tn_feed *feed, const char *path,
                                 struct tn_err *err);

/* The feed's `note`, for the source at hand. */
TN_MUST_USE tn_rc tn_copy_note(struct tn_copy *copy, struct tn_table *table,
                               struct tn_feed_place place, struct tn_err *err);
