#include "app/notify.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/wait.h"

enum { US_PER_MS = 1000, SHARE = 2 /* of the watchdog's patience */ };

static void tell(const struct tn_notify *n, const char *text)
{
    if (n->fd >= 0) {
        (void)sendto(n->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL,
                     (const struct sockaddr *)&n->to, (socklen_t)n->to_size);
    }
}

/* "/path", or "@name" for one without a file. */
static bool parse_socket(struct tn_notify *n, const char *text)
{
    size_t size = text ? strlen(text) : 0;
    if (size < 2 || size >= sizeof n->to.sun_path || (text[0] != '/' && text[0] != '@')) {
        return false;
    }
    n->to.sun_family = AF_UNIX;
    memcpy(n->to.sun_path, text, size + 1);
    n->to_size = (uint32_t)(offsetof(struct sockaddr_un, sun_path) + size + (text[0] == '/'));
    if (text[0] == '@') {
        n->to.sun_path[0] = 0;
    }
    return true;
}

/* The watchdog of another process, which has the same environment, is none of ours. */
static int64_t watchdog_ms(void)
{
    const char *us = getenv("WATCHDOG_USEC");
    const char *pid = getenv("WATCHDOG_PID");
    if (!us || (pid && strtol(pid, NULL, 10) != (long)getpid())) {
        return 0;
    }
    int64_t ms = strtoll(us, NULL, 10) / US_PER_MS / SHARE;
    return ms > 0 ? ms : 0;
}

void tn_notify_open(struct tn_notify *notify)
{
    *notify = (struct tn_notify){.fd = -1};
    if (parse_socket(notify, getenv("NOTIFY_SOCKET"))) {
        notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        notify->every_ms = watchdog_ms();
    }
}

void tn_notify_ready(struct tn_notify *notify, const char *status, int64_t now_ms)
{
    char text[256];
    (void)snprintf(text, sizeof text, "READY=1\nSTATUS=%s\n", status);
    tell(notify, text);
    notify->watched = true;
    notify->due_ms = now_ms;
}

void tn_notify_turn(struct tn_notify *notify, int64_t now_ms, uint32_t *wait_ms)
{
    struct tn_notify *n = notify;
    if (n->fd < 0 || n->every_ms == 0 || !n->watched) {
        return;
    }
    if (now_ms >= n->due_ms) {
        tell(n, "WATCHDOG=1\n");
        n->due_ms = now_ms + n->every_ms;
    }
    tn_wait_lower(wait_ms, n->due_ms - now_ms);
}

void tn_notify_stopping(struct tn_notify *notify)
{
    tell(notify, "STOPPING=1\n");
}

void tn_notify_reloading(struct tn_notify *notify, int64_t now_us)
{
    char text[96];
    (void)snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%" PRId64 "\n", now_us);
    tell(notify, text);
}

void tn_notify_close(struct tn_notify *notify)
{
    if (notify->fd >= 0) {
        (void)close(notify->fd);
    }
    notify->fd = -1;
}
