/* ask: a question to the daemon of a warehouse, for verbs: HTTP on the socket beside its data,
 * blocking, and over after a while whatever happens.
 */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"
#include "base/err.h"
#include "format/json.h"

#define TN_ASK_SOCKET "/.tarn/daemon.sock"

enum {
    TN_ASK_PATH_SIZE = 108, /* sun_path of a sockaddr_un, with its zero */
    TN_ASK_TIMEOUT_MS = 5000,
};

/* The socket of a warehouse's daemon. INVALID: the path is longer than that of a socket may be. */
TN_MUST_USE tn_rc tn_ask_path(const char *warehouse, char path[TN_ASK_PATH_SIZE],
                              struct tn_err *err);

/* The process that listens there, without a question to it; 0: none. */
long tn_ask_process(const char *warehouse);

/* Appends the page to `body`. ABSENT: nobody listens there. IO: who does gave no answer in time, or
 * another one than 200 or 503. AGAIN: `body` is too small. */
TN_MUST_USE tn_rc tn_ask(const char *warehouse, const char *page, struct tn_buf *body,
                         struct tn_err *err);

/* A question whose answer is a JSON object of at most TN_ASK_OBJECT_SIZE bytes. */
enum { TN_ASK_OBJECT_SIZE = 4096 };
struct tn_ask_spec {
    const char *warehouse;
    const char *method; /* GET, or POST */
    const char *page;
    struct tn_bytes sent;               /* the body of a POST, or empty */
    const struct tn_json_field *fields; /* of the answer */
    uint32_t field_count;
};

/* Reads the answer into `record`, which holds zeros before. The page and the texts lie in `arena`,
 * after a failure, too. Errors are those of tn_ask and of tn_json_read. */
TN_MUST_USE tn_rc tn_ask_object(const struct tn_ask_spec *spec, struct tn_arena *arena,
                                void *record, struct tn_err *err);

/* Where it takes rows by HTTP, "127.0.0.1:7080"; false: nowhere, or it doesn't say. */
enum { TN_ASK_ADDRESS_SIZE = 128 };
bool tn_ask_address(const char *warehouse, char address[TN_ASK_ADDRESS_SIZE]);
