/* http_memo: what is known of a sender of HTTP, so that what it repeats is taken once. It goes with
 * the rows through the hub (hub.h) and comes back after a restart.
 *
 *     X-Sequence       a number that grows with each request of an X-Sender, whatever table it is
 *                      for; one at or below the newest is a repetition. A sender puts the next
 *                      number only behind the last one: after its answer, or on the same connection
 *     Idempotency-Key  any text. The newest TN_HTTP_KEYS_MAX keys of an X-Sender are known, and
 *                      those of all who name none are one sender's
 *
 * Who says neither is nobody, and may not have a name.
 *
 *     memo: version | sequence, 8 bytes | key, 8 bytes * n, the newest first
 *
 * A key is the begin of its SHA-256: nobody can make two that are taken for one.
 */
#pragma once

#include "base/bytes.h"
#include "base/err.h"

enum {
    TN_HTTP_KEYS_MAX = 128, /* the memo is written with each request: a kilobyte */
    TN_HTTP_MEMO_SIZE = 1 + 8 + 8 * TN_HTTP_KEYS_MAX,
    TN_HTTP_SENDER_MAX = 200, /* bytes of an X-Sender, which is visible ASCII */
    TN_HTTP_KEY_MAX = 256,    /* bytes of an Idempotency-Key */
};

/* How a request can be known again: by one of them, or not at all. */
struct tn_http_mark {
    uint64_t sequence; /* 0: none */
    struct tn_bytes key;
};

/* *repeated: what is marked so was taken; else `next` is the memo that goes with it. `known` may be
 * empty: nothing is known. CORRUPT: it's no memo. */
TN_MUST_USE tn_rc tn_http_memo_meet(struct tn_bytes known, const struct tn_http_mark *mark,
                                    bool *repeated, struct tn_buf *next, struct tn_err *err);
