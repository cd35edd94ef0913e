/* feed: text records into a table, committed when it is time.
 *
 *     bytes -> decoder -> record -> [map] -> rows -> put (turn while there is no room) -> cut
 *
 * Where the source stands is committed with its rows: before each cut the feed has its owner note
 * the place. `write` and `demo` are its users.
 */
#pragma once

#include "app/mapper.h"
#include "ingest/decode.h"
#include "io/clock.h"
#include "table/letters.h"
#include "table/table.h"

/* A place in a source: where its next record begins. */
struct tn_feed_place {
    uint64_t offset; /* bytes */
    uint64_t line;   /* lines before it */
    uint32_t part;   /* rows of it that are in already: a cut came between them */
};

struct tn_feed_spec {
    struct tn_table *table;
    struct tn_clock *clock;
    uint64_t every_rows;      /* a cut each so many records; 0: not by records */
    int64_t every_ms;         /* a cut as often; 0: not by time */
    struct tn_mapper *mapper; /* NULL: rows go in as they are decoded */
    bool single;              /* all of it is to be one commit: no cut makes room */
    /* Rows of all records before `place` are in, and will be committed next. */
    tn_rc (*note)(void *user, struct tn_feed_place place, struct tn_err *err);
    /* A record was taken, with all its rows; NULL: nobody asks. */
    tn_rc (*taken)(void *user, struct tn_err *err);
    struct tn_letters *letters; /* published before each cut; NULL: there are none */
    /* A record can't become rows, or not all of them: who wants to be told instead of the letters.
     */
    void (*bury)(void *user, const struct tn_decoded *decoded, const char *reason);
    void *user;
};

struct tn_feed {
    struct tn_feed_spec spec;
    struct tn_decoder *decoder; /* the owner's: one a source */
    uint16_t source;            /* its number among the letters' sources, likewise */
    uint32_t first_part;        /* of a record's rows, as letters count them, likewise */
    struct tn_feed_place next;  /* the owner sets it with a new source */
    struct tn_feed_place at;    /* of the record at hand */
    uint64_t rows;              /* records so far, of all sources: what `committed` counts */
    uint64_t rows_cut;          /* of them at the last cut */
    uint64_t cuts;
    uint64_t dead;
    int64_t last_cut_ms;
    uint32_t since_clock; /* records since the clock was read */
};

void tn_feed_init(struct tn_feed *feed, const struct tn_feed_spec *spec);

/* Takes whole records from the front of `*input`, until AGAIN: what is left needs more bytes. With
 * `last` no more will come, so then AGAIN means that all was taken. */
TN_MUST_USE tn_rc tn_feed_eat(struct tn_feed *feed, struct tn_bytes *input, bool last,
                              struct tn_err *err);

/* For a source that has nothing to read now: cuts when it is time to, or gives work under way a
 * turn. `*wait_ms` says how long the source may be waited for, 0 when it should only be asked. */
TN_MUST_USE tn_rc tn_feed_rest(struct tn_feed *feed, int *wait_ms, struct tn_err *err);

/* Has the place noted; for the end of a source. */
TN_MUST_USE tn_rc tn_feed_note(struct tn_feed *feed, struct tn_err *err);
