/* ask: a question to the daemon of a warehouse, for verbs: HTTP on the socket beside its data,
 * blocking, and over after a while whatever happens.
 */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"
#include "base/err.h"

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
/* `method`: GET, or POST, with `sent` as its body or empty. */
TN_MUST_USE tn_rc tn_ask_with(const char *method, const char *warehouse, const char *page,
                              struct tn_bytes sent, struct tn_buf *body, struct tn_err *err);
TN_MUST_USE tn_rc tn_ask_by(const char *method, const char *warehouse, const char *page,
                            struct tn_buf *body, struct tn_err *err);
TN_MUST_USE tn_rc tn_ask(const char *warehouse, const char *page, struct tn_buf *body,
                         struct tn_err *err);

/* Where it takes rows by HTTP, "127.0.0.1:7080"; false: nowhere, or it doesn't say. */
enum { TN_ASK_ADDRESS_SIZE = 128 };
bool tn_ask_address(const char *warehouse, char address[TN_ASK_ADDRESS_SIZE]);
