/* lines: standard input as a source of the hub: whole records, as many as a message may have.
 *
 *     pipe's buffer   | csv header | records, offered | one that goes on |
 *                     | its beginning | what came of a record that is too long, dropped |
 *
 * It can't be read again, and nobody waits for an answer: what the hub took is as good as it gets,
 * and while it has no room nothing is read. A record is a line, but texts of csv and of the line
 * protocol may hold line ends. One that is too long is a letter with its beginning and its size,
 * and ends where it ends, or, as a quote may be one too many, after a bounded number of bytes.
 */
#pragma once

#include "app/pipe.h"
#include "base/log.h"
#include "ingest/hub.h"
#include "io/clock.h"

enum { TN_LINES_HEADER_MAX = 4096 }; /* of csv: a longer one is refused */

struct tn_lines_spec {
    const char *name; /* "stdin" */
    const char *table;
    enum tn_input input;
    struct tn_hub *hub;
    struct tn_log *log;
    struct tn_clock *clock;
    void *memory; /* tn_lines_memory bytes */
    int fd;
    void (*notify)(void *user);
    void *user;
};

struct tn_lines {
    struct tn_lines_spec spec;
    struct tn_pipe pipe;
    unsigned char *header; /* its room lies before the pipe's buffer */
    size_t header_size;
    size_t at;          /* bytes of the pipe's that the hub has */
    size_t most;        /* bytes of a message: fewer where rows take more than their text */
    size_t offered;     /* of one that there was no room for: it comes again as it was; 0: none */
    uint64_t long_size; /* bytes so far of a record that is too long; 0: there is none */
    struct tn_record_place place; /* where in it they end */
    bool blocked;                 /* the hub has no room */
    bool ended;
    int64_t retry_ms; /* the table takes nothing now */
    tn_rc said;
    uint64_t rows;
    uint64_t dead;
};

size_t tn_lines_memory(const struct tn_hub *hub);
TN_MUST_USE tn_rc tn_lines_open(struct tn_lines *lines, const struct tn_lines_spec *spec,
                                struct tn_err *err);
/* Offers what there is. `*wait_ms` is lowered to when it wants the next turn. */
void tn_lines_turn(struct tn_lines *lines, uint32_t *wait_ms);
void tn_lines_close(struct tn_lines *lines);
