/* file_source: a file as a source of the hub, over rotations: each line once.
 *
 *     look (a task, file_look.h) --batch--> offer --OK--> look again
 *          ^            |                    | AGAIN: until there is room
 *          +-- pause ---+ the end, for now   | refused: less at once
 *          ^
 *          +-- rewound: the hub says where
 *
 * Its sender is "file:<name>", and with each batch go the places before and behind it. Rows and
 * place are durable together, in a commit of the table, so that a new start goes on right behind
 * what the table has; and so does this one, when the table was closed before it had committed. A
 * record that can't become a row is a letter and holds up nothing.
 *
 * While nothing is appended it looks again after a pause that grows to a second.
 */
#pragma once

#include "base/exec.h"
#include "base/log.h"
#include "ingest/file_look.h"
#include "ingest/hub.h"
#include "io/clock.h"

struct tn_file_source_spec {
    const char *name; /* of the source: unique, and the same with every start */
    const char *table;
    enum tn_input input;
    const char *path;
    struct tn_hub *hub;
    struct tn_exec *exec;
    struct tn_clock *clock;
    struct tn_log *log;
    void *memory;               /* tn_file_source_memory bytes */
    bool once;                  /* the end is the end, also of a last line without line end */
    void (*notify)(void *user); /* wants a turn soon; on the loop */
    void *user;
};

struct tn_file_source {
    struct tn_task task; /* first */
    struct tn_file_source_spec spec;
    struct tn_hub_listener listener;
    struct tn_file_look look;
    char sender[TN_SENDER_SIZE_MAX];
    bool under_way; /* the task */
    bool looked;    /* and what it gave was not seen yet */
    bool offers;    /* a batch, which the hub hasn't yet */
    bool blocked;   /* it has no room */
    bool rewinds;   /* once no task is under way */
    bool stopping;
    bool ended;
    struct tn_file_place taken; /* by the hub: all before it */
    int64_t wake_ms;            /* not before */
    int64_t pause_ms;
    bool idle;             /* nothing was there at the last look */
    tn_rc said;            /* OK: nothing is wrong; ABSENT: it waits for the file */
    struct tn_err trouble; /* that was said */
    uint64_t batches;
    uint64_t rows;
    uint64_t dead;
};

size_t tn_file_source_memory(const struct tn_hub *hub);
/* Asks the hub for the place. Reads nothing yet. */
TN_MUST_USE tn_rc tn_file_source_open(struct tn_file_source *source,
                                      const struct tn_file_source_spec *spec, struct tn_err *err);
/* Takes it further. `*wait_ms` is lowered to when it wants the next turn. */
void tn_file_source_turn(struct tn_file_source *source, uint32_t *wait_ms);
/* Offers nothing any more. The struct has to stay until its task is completed. */
void tn_file_source_stop(struct tn_file_source *source);
