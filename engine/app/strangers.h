/* strangers: tables that the journal has rows of, and nobody keeps: the configuration names them no
 * more. What was acknowledged is not forgotten without a word of somebody's, so each such row must
 * be in a snapshot of its table. */
#pragma once

#include "base/hash.h"
#include "table/env.h"

enum { TN_STRANGERS_MAX = 8 };

struct tn_stranger {
    struct tn_hash_128 name;
    uint64_t place; /* what is before it is committed */
};

/* Zeroes: none is known. */
struct tn_strangers {
    struct tn_stranger list[TN_STRANGERS_MAX];
    uint32_t count;
    uint64_t known; /* rows before this place were looked at */
};

/* Rows of table `name` at `place` of the journal of this identity. INVALID: they are not committed;
 * FULL: there is no memory to look. After any error they are not seen. Blocking I/O, once for most.
 */
TN_MUST_USE tn_rc tn_strangers_see(struct tn_strangers *strangers, struct tn_env *env,
                                   const char *identity, struct tn_bytes name, uint64_t place,
                                   struct tn_err *err);
