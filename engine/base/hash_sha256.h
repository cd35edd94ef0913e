/* hash_sha256: SHA-256's blocks, in plain C and by the processor's own instructions. Everybody else
 * calls hash.h; a test compares the two.
 */
#pragma once

#include "base/hash.h"

extern const uint32_t tn_sha256_constants[64];

/* Adds `count` blocks of TN_SHA256_BLOCK bytes to a state. */
void tn_sha256_blocks_plain(uint32_t state[8], const unsigned char *data, size_t count);

/* Whether this processor has instructions for it (x86's SHA extensions, ARMv8's on 64 bits). */
bool tn_sha256_is_native(void);
/* The same; only where it is native. */
void tn_sha256_blocks_native(uint32_t state[8], const unsigned char *data, size_t count);
