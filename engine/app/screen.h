/* screen: a terminal that is drawn again and again, and given back as it was.
 *
 * While it is open keys come at once and aren't shown, ^C is a key like others, and SIGINT and
 * SIGTERM wait (stop.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

/* INVALID: standard input or output is no terminal. One at a time, process-wide. */
TN_MUST_USE tn_rc tn_screen_open(struct tn_err *err);
void tn_screen_close(void);

/* Lines of text, as many and as long as there is room for. False: it takes no more. */
bool tn_screen_draw(struct tn_bytes text);

/* Waits for a key or a signal that ends it: q, ^C, the input's end. */
bool tn_screen_ends(int64_t wait_ms);
