/* share: a table that the lake has once and many gateways write, each its own partitions or buckets
 * of it. `.tarn/<db>.<table>.shared` beside the table says that it is one, and where:
 *
 *     {"version": 1, "where": "s3://bucket/prefix", "commit": "direct", "gateway": "<uuid>",
 *      "sinceMs": ...}
 *
 * and `.tarn/<db>.<table>.sent` how far it was sent. Local snapshots travel in order, several of
 * them in one commit, and a commit is a step that must happen once:
 *
 *     done, safe                    snapshots up to `done` are in the lake's table
 *       | sending = last of the next  its files go
 *       | files are there, whole
 *     trying = last of the next     written before the first attempt: from here on nobody knows
 *       | committed
 *     done = trying, trying = 0
 *       | seen in the lake's history
 *     safe = done                   the table here may let go of them
 *
 * The lake is a consumer of the table, TN_SHARE_CONSUMER, which stands behind `safe`.
 */
#pragma once

#include "base/arena.h"
#include "io/clock.h"
#include "io/io.h"

#define TN_SHARE_CONSUMER "tarn-lake-shared"

enum tn_share_way {
    TN_SHARE_DIRECT, /* gateways commit, one after the other */
    TN_SHARE_GATHER, /* gateways hand in, and somebody commits for all */
};

struct tn_share {
    const char *where; /* in an arena */
    enum tn_share_way way;
    char gateway[TN_UUID_SIZE];
    int64_t since_ms;
};

/* ABSENT: the table isn't shared; CORRUPT: nothing of use is there. */
TN_MUST_USE tn_rc tn_share_read(struct tn_io *io, const char *table, struct tn_arena *arena,
                                struct tn_share *share, struct tn_err *err);
/* Durable when it returns. */
TN_MUST_USE tn_rc tn_share_write(struct tn_io *io, const char *table, const struct tn_share *share,
                                 struct tn_arena *scratch, struct tn_err *err);

const char *tn_share_way_name(enum tn_share_way way);
bool tn_share_way_parse(const char *text, enum tn_share_way *way);
/* Two texts for one place: a final '/' is none. */
bool tn_share_same_place(const char *a, const char *b);

/* Why nothing could be sent, beside what the lake says. */
enum tn_share_why {
    TN_SHARE_WHY_OTHER,
    TN_SHARE_PAUSED,   /* all are asked to wait */
    TN_SHARE_SCHEMA,   /* both sides' schemas differ */
    TN_SHARE_UNMERGED, /* the lake's table has too many manifests */
    TN_SHARE_RACED,    /* others were faster, each time */
    TN_SHARE_REPLACED, /* somebody writes over what was committed, again and again */
};

enum { TN_SENT_PLACE_SIZE = 48 };

struct tn_sent {
    int64_t done;     /* local snapshots up to it are in the lake; 0: none */
    int64_t safe;     /* up to it they are known to stay there; <= done */
    int64_t sending;  /* of those behind `done` up to it files may be there; 0: none */
    int64_t trying;   /* those behind `done` up to it may be; 0: no attempt is under way */
    int64_t base;     /* newest snapshot of the lake when the attempt began, or the last one did */
    int64_t lake_id;  /* snapshot of the lake that has `done`; 0: not known */
    int64_t since_ms; /* when the first file of what is tried, or of the last commit, went */
    int64_t schema;   /* schemas up to it are the lake's; -1: none was compared */
    int64_t asked;    /* when the lake was asked for a newer one, ms; 0: never */
    int64_t probed;   /* the store keeps its promises: when that was asked, ms; 0: never */
    char probed_at[TN_SENT_PLACE_SIZE]; /* which store that was; "": not known */
    char manifest[TN_UUID_SIZE];        /* in the names of what was committed last; "": not known */
};

/* ABSENT: there is none; CORRUPT: nothing of use is there. Neither may be taken for "nothing was
 * sent". */
TN_MUST_USE tn_rc tn_sent_read(struct tn_io *io, const char *table, struct tn_arena *scratch,
                               struct tn_sent *sent, struct tn_err *err);
/* Durable when it returns. */
TN_MUST_USE tn_rc tn_sent_write(struct tn_io *io, const char *table, const struct tn_sent *sent,
                                struct tn_arena *scratch, struct tn_err *err);
