/* socket_source: lines of one input form for one table, from whoever connects to a TCP or Unix
 * socket.
 *
 *     client  tarn {"sender":"gw-7"}                     (may be left out)
 *     server                              {"sender":"gw-7","received":4100}
 *     client  {"dev":"a","temp":21.5}                    line 4101 of gw-7
 *     client  {"dev":"b","temp":19.0}                    line 4102
 *     server                              {"received":4102}
 *
 * **Received** counts lines that are durable, and is never said sooner. A line ends in \n; blank
 * ones count as well. A line that can't become a row is a dead letter, and has been received. One
 * that is too long is a letter with its beginning and its size. What has no line end isn't a line.
 * One answer tells of all that became durable since the last; none is kept for who doesn't read.
 *
 * **A sender** who gives a name goes on with line received + 1 whenever it comes back: its rows are
 * in the table exactly once. The count lies in the hub's memo "socket:TABLE:NAME", with the rows.
 * The newest connection of a name is the sender; the older one is closed. "first":N in the greeting
 * says that the line behind it is number N: those that were received are passed by, so a file can
 * be sent again as a whole, without waiting for an answer; and where the server knows less than the
 * sender was told, it takes the sender's word. Without a name "received" counts from the
 * connection's begin, and what is sent again is there again.
 *
 * **A token**, where there is one, has to be in the greeting. Where others than this machine can
 * connect there has to be one.
 *
 * **Errors** are a line {"error":"..."}, and the end of the connection.
 *
 *     accept -> [SECURE] -> GREET -> [KNOWN] -> OPEN -- its end --> LAST --> CLOSE -> FREE
 *                  |          |         |         |                             ^
 *                  '- failed  '---------'---------'-- error, replaced --> BYE --'
 *
 * KNOWN waits until what the hub has of the sender is durable, LAST until all that was taken is,
 * and some seconds for a client to read that; BYE reads on for a moment, so that no reset overtakes
 * the error. On disk, after a cut in any state: messages whole or not at all, each with its
 * sender's count.
 *
 * **Bounds.** All memory is taken at open. When the hub has no room nothing is read. One connection
 * more than `connections` is let in: it stays when it is a sender whose older connection then ends.
 * Who is gone without a word keeps its place until it comes back, is idle too long, or the system
 * notices.
 *
 * Nothing here waits. The loop's thread only. What the spec points to must stay as long as the hub,
 * which has no way to be left.
 */
#pragma once

#include "base/exec.h"
#include "base/log.h"
#include "ingest/hub.h"
#include "io/tls.h"

enum { TN_SOCKET_LINE_MIN = 64, TN_SOCKET_INPUT_MIN = 4096 };

struct tn_socket_source_spec {
    const char *name;    /* "socket.plant": for letters, logs, `map` */
    const char *table;   /* "db.t" */
    enum tn_input input; /* not csv, whose header would have to come with each message */
    struct tn_net *net;
    struct tn_hub *hub;
    struct tn_log *log;
    struct tn_endpoint at;
    struct tn_tls_config *tls; /* a server's; NULL: the streams as they are */
    struct tn_exec *exec;      /* for handshakes; NULL: they run on the loop */
    const char *token;         /* NULL: none, which only loopback and Unix sockets may do without */
    uint32_t connections;      /* at once, 1 or more; the door needs one stream more */
    uint32_t line_size_max;    /* bytes with the line end; 0: the hub's size_max */
    uint32_t idle_ms;          /* until a connection that sends nothing is closed; 0: never */
};

struct tn_socket_source_status {
    uint32_t open;        /* connections */
    bool blocked;         /* the hub has no room, or the table takes nothing */
    uint64_t connections; /* that came */
    uint64_t turned_away; /* no token, no greeting, one too many */
    uint64_t replaced;    /* by a newer one of the same sender */
    uint64_t lines;       /* taken by the hub */
    uint64_t rows;        /* of these */
    uint64_t dead;        /* letters of these */
    uint64_t too_long;    /* lines */
    uint64_t repeated;    /* lines that were received before, and passed by */
    uint64_t refused;     /* lines of messages that the hub refuses for good */
    uint64_t unfinished;  /* connections that ended in the middle of a line */
    uint64_t waits;       /* times that there was no room */
    struct tn_err err;    /* why the table takes nothing; code OK: it does */
};

struct tn_socket_source;

/* Bytes of arena that open takes. */
size_t tn_socket_source_memory(const struct tn_socket_source_spec *spec);

/* Listens at the address and to the hub. The spec is copied, but not what it points to. INVALID:
 * what is wrong with it; EXISTS: somebody else listens there; AGAIN: the arena is full, or the
 * door. */
TN_MUST_USE tn_rc tn_socket_source_open(struct tn_socket_source **source,
                                        const struct tn_socket_source_spec *spec,
                                        struct tn_arena *arena, struct tn_err *err);

uint16_t tn_socket_source_port(const struct tn_socket_source *source);

/* Nothing is taken any more; what is durable is acknowledged, and who is connected hears that it
 * ends. It takes some turns of the loop, a second at most, until it's stopped: then nothing of it
 * is under way. */
void tn_socket_source_stop(struct tn_socket_source *source);
bool tn_socket_source_stopped(const struct tn_socket_source *source);

void tn_socket_source_status(const struct tn_socket_source *source,
                             struct tn_socket_source_status *status);
