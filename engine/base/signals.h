/* signals: whose they are. One to the process goes to any of its threads that doesn't hold it; here
 * only the first thread takes them, and holds those that have to wait. A new thread holds what its
 * maker holds: so whoever makes one, or lets a library make some, does it between these two.
 */
#pragma once

#include <signal.h>

/* Holds all but those that a fault of the thread itself raises. `before` is what was held. */
void tn_signals_hold(sigset_t *before);
void tn_signals_restore(const sigset_t *before);
