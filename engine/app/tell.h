/* tell: who is to know is told what came to lakes, for lakes that have a `notify`.
 *
 *     a lake has snapshots up to `have`, `told` is behind
 *          -> a script's `uploaded`, or none: a line of JSON -> teller (teller.h)
 *          -> taken: told = have, in a file (told.h)
 *          '- failed: again after a pause that grows, with what is so then
 *
 * There is no queue: what is kept is up to where it was told of each table. So nothing is ever left
 * out, whoever can't be reached for however long, and when they can they hear of all of it in one
 * message (`first` to `snapshot`). Each snapshot is told of once at least, a table's in their
 * order; after a cut it may be once more. What was there before the configuration had a `notify`
 * isn't told of. A lake has one place, and one message at a time is under way there; another lake's
 * doesn't wait for it, and no upload does.
 *
 * A script that fails is asked again after a minute, for the same snapshots. What the other side
 * refuses for good is counted and passed over. The loop's thread only.
 */
#pragma once

#include "app/lakes.h"
#include "app/teller.h"
#include "app/told.h"
#include "script/uploaded.h"

enum { TN_TELL_NAME_SIZE = 96 };

struct tn_tell_mark {
    const struct tn_lakes_mirror *mirror;
    int64_t told;
    int64_t opened_id; /* what the lake was believed to have at open; */
    bool known;        /* and it was written down that it has */
    int64_t calm_ms;   /* its script failed: not before */
};

struct tn_tell_place {
    struct tn_lakes_lake *lake;
    struct tn_tell_mark *marks; /* a table each */
    uint32_t mark_count;
    uint32_t next;            /* whose turn is next */
    struct tn_tell_mark *now; /* what is told; NULL: nothing is */
    int64_t now_id;
    struct tn_teller teller;
    struct tn_tls_config *tls; /* or NULL */
    char client_id[TN_TELL_NAME_SIZE];
    char topic[TN_TELL_NAME_SIZE];
    unsigned char room[TN_UPLOADED_ROOM];
    bool dirty;     /* the file is behind */
    bool failed;    /* since the last hurry */
    uint32_t tries; /* that failed in a row */
    int64_t retry_ms;
    int64_t said_ms;

    /* Since the start. */
    uint64_t messages; /* that were taken */
    uint64_t failures; /* tries that failed */
    uint64_t refused;  /* messages, for good */
    uint64_t script_failures;
    tn_rc trouble; /* of the last try, or of the script */
    struct tn_err trouble_text;
};

struct tn_tell_spec {
    const struct tn_config *config;
    struct tn_lakes *lakes; /* open until this is closed */
    struct tn_env *env;
    struct tn_net *net;
    struct tn_exec *exec; /* for handshakes */
    struct tn_log *log;
    struct tn_arena *arena;
    const char *identity; /* of this box */
};

struct tn_tell;
struct tn_tell_saving {
    struct tn_task task; /* first */
    struct tn_tell *tell;
    struct tn_tell_place *place; /* NULL: nothing is under way */
    struct tn_told_entry *entries;
};

struct tn_tell {
    struct tn_tell_spec spec;
    struct tn_ops ops;
    struct tn_tell_place *places;
    uint32_t place_count;
    struct tn_tell_saving saving;
    bool stopping;
};

/* Bytes of arena that open takes; streams at once, and whether any of them speaks TLS, with what
 * that needs of its part beside. */
size_t tn_tell_memory(const struct tn_config *config);
uint32_t tn_tell_streams(const struct tn_config *config);
size_t tn_tell_tls(const struct tn_config *config);

/* Blocking I/O. Without a `notify` it does nothing, and so do the others. */
TN_MUST_USE tn_rc tn_tell_open(struct tn_tell *tell, const struct tn_tell_spec *spec,
                               struct tn_err *err);
/* After the lakes' turn. `*wait_ms` is lowered to when it wants the next one. */
void tn_tell_turn(struct tn_tell *tell, uint32_t *wait_ms);

/* All is told now, and counts as failed if that does not work. */
void tn_tell_hurry(struct tn_tell *tell);
bool tn_tell_settled(const struct tn_tell *tell);

/* Tables with something that was not told of yet. */
uint32_t tn_tell_behind(const struct tn_tell_place *place);

/* What is under way ends soon; turns go on until it is stopped. */
void tn_tell_stop(struct tn_tell *tell);
bool tn_tell_stopped(const struct tn_tell *tell);
/* No task is under way any more. */
void tn_tell_close(struct tn_tell *tell);
