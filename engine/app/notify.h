/* notify: tells who started the process how it is, by datagrams to $NOTIFY_SOCKET, as systemd's
 * Type=notify wants it (sd_notify(3)). Without the variable nothing is told.
 *
 *     READY=1 -> WATCHDOG=1, each half of $WATCHDOG_USEC -> STOPPING=1
 *        ^                                              '-> RELOADING=1
 *        '--------------- another start, watched ----------------'
 *
 * A datagram that can't be sent is dropped: nobody waits for who started us.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

struct tn_notify {
    int fd; /* -1: nobody listens */
    struct sockaddr_un to;
    uint32_t to_size;
    int64_t every_ms; /* of the watchdog; 0: there is none */
    int64_t due_ms;
    bool watched; /* from READY on, also over a reload */
};

void tn_notify_open(struct tn_notify *notify);
void tn_notify_ready(struct tn_notify *notify, const char *status, int64_t now_ms);
/* To be called each turn while all is well. `*wait_ms` is lowered to when it wants the next one. */
void tn_notify_turn(struct tn_notify *notify, int64_t now_ms, uint32_t *wait_ms);
void tn_notify_stopping(struct tn_notify *notify);
/* It goes on as another start in this process, which says READY=1. */
void tn_notify_reloading(struct tn_notify *notify, int64_t now_us);
void tn_notify_close(struct tn_notify *notify);
