#include "app/stop.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

static bool came;

static void fill(sigset_t *set)
{
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGINT);
    (void)sigaddset(set, SIGTERM);
}

void tn_stop_hold(void)
{
    sigset_t set;
    fill(&set);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
}

void tn_stop_let(void)
{
    sigset_t set;
    fill(&set);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

bool tn_stop_came(int64_t wait_ms)
{
    sigset_t set;
    struct timespec wait = {(time_t)(wait_ms / 1000), (long)(wait_ms % 1000) * 1000000};
    fill(&set);
    came = came || sigtimedwait(&set, NULL, &wait) > 0;
    return came;
}
