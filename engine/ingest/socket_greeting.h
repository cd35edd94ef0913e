/* socket_greeting: the line with which a client of a socket says who it is.
 *
 *     tarn {"sender":"gw-7","first":1235,"token":"..."}
 *
 * All members may be missing. The word in front keeps it apart from rows of any form: a table may
 * well have a column `sender`.
 */
#pragma once

#include "base/arena.h"
#include "ingest/decode.h"

enum {
    TN_SOCKET_NAME_MAX = 128, /* bytes of a sender's name */
    TN_SOCKET_GREETING_MAX = 1024,
    TN_SOCKET_GREETING_MEMORY = 12 * 1024, /* of the arena; a test counts it */
};

struct tn_socket_greeting {
    struct tn_bytes sender; /* visible ASCII but quotes and backslashes; empty: nobody */
    struct tn_bytes token;
    uint64_t first; /* 0: not said */
};

struct tn_socket_greeter {
    struct tn_schema schema;
    struct tn_row_layout layout;
    struct tn_decoder *decoder;
};

TN_MUST_USE tn_rc tn_socket_greeter_init(struct tn_socket_greeter *greeter, struct tn_arena *arena,
                                         struct tn_err *err);

/* Whether a line that begins with these bytes can be a greeting. */
bool tn_socket_may_greet(struct tn_bytes begin);

/* `line` is one, without its line end. The views are valid until the next call. INVALID says what
 * is wrong. */
TN_MUST_USE tn_rc tn_socket_greeting_read(struct tn_socket_greeter *greeter, struct tn_bytes line,
                                          struct tn_socket_greeting *greeting, struct tn_err *err);
