#include "base/signals.h"

#include <pthread.h>

#include "base/check.h"

void tn_signals_hold(sigset_t *before)
{
    static const int faults[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
    sigset_t all;
    (void)sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        (void)sigdelset(&all, faults[i]);
    }
    int os = pthread_sigmask(SIG_SETMASK, &all, before);
    TN_CHECK(os == 0);
}

void tn_signals_restore(const sigset_t *before)
{
    int os = pthread_sigmask(SIG_SETMASK, before, NULL);
    TN_CHECK(os == 0);
}
