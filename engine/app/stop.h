/* stop: SIGINT and SIGTERM, for verbs that go on until one comes and end where that loses nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* From here on they end nothing by themselves. */
void tn_stop_hold(void);
void tn_stop_let(void); /* and from here on they do again */

/* Whether one came, ever since (process-wide); waits for it that long (0: not at all). */
bool tn_stop_came(int64_t wait_ms);
