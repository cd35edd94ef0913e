#include "app/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/signals.h"

/* False: it is to end. */
static bool wait_for_bytes(const struct tn_pipe *p)
{
    struct pollfd fds[] = {{.fd = p->spec.fd, .events = POLLIN},
                           {.fd = p->stop[0], .events = POLLIN}};
    int rc;
    do {
        rc = poll(fds, 2, -1);
    } while (rc < 0 && errno == EINTR);
    return fds[1].revents == 0;
}

/* Its bytes are the loop's from here on, until it gives the buffer back. False: it is to end. */
static bool hand_over(struct tn_pipe *p, ssize_t got)
{
    (void)pthread_mutex_lock(&p->lock);
    p->os = got < 0 ? errno : 0;
    p->filled += got > 0 ? (size_t)got : 0;
    p->turn = got > 0 ? TN_PIPE_FULL : TN_PIPE_END;
    (void)pthread_mutex_unlock(&p->lock);
    p->spec.notify(p->spec.user);
    (void)pthread_mutex_lock(&p->lock);
    while (p->turn != TN_PIPE_READS && !p->closing) {
        (void)pthread_cond_wait(&p->given, &p->lock);
    }
    bool more = !p->closing;
    (void)pthread_mutex_unlock(&p->lock);
    return more;
}

static void *work(void *argument)
{
    struct tn_pipe *p = argument;
    bool more = true;
    while (more && wait_for_bytes(p)) {
        ssize_t got;
        do {
            got = read(p->spec.fd, p->spec.buffer + p->filled, p->spec.size - p->filled);
        } while (got < 0 && errno == EINTR);
        more = hand_over(p, got);
    }
    return NULL;
}

tn_rc tn_pipe_open(struct tn_pipe *p, const struct tn_pipe_spec *spec, struct tn_err *err)
{
    *p = (struct tn_pipe){.spec = *spec};
    if (pipe2(p->stop, O_CLOEXEC) != 0) {
        int os = errno;
        return tn_err_set(err, TN_IO, os, "a pipe: %s", strerror(os));
    }
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->given, NULL);
    sigset_t before;
    tn_signals_hold(&before);
    int os = pthread_create(&p->thread, NULL, work, p);
    tn_signals_restore(&before);
    if (os != 0) {
        (void)close(p->stop[0]);
        (void)close(p->stop[1]);
        return tn_err_set(err, TN_IO, os, "start a thread: %s", strerror(os));
    }
    p->open = true;
    return TN_OK;
}

void tn_pipe_close(struct tn_pipe *p)
{
    if (!p->open) {
        return;
    }
    (void)pthread_mutex_lock(&p->lock);
    p->closing = true;
    (void)pthread_cond_signal(&p->given);
    (void)pthread_mutex_unlock(&p->lock);
    (void)close(p->stop[1]);
    (void)pthread_join(p->thread, NULL);
    (void)close(p->stop[0]);
    (void)pthread_cond_destroy(&p->given);
    (void)pthread_mutex_destroy(&p->lock);
    p->open = false;
}

enum tn_pipe_turn tn_pipe_take(struct tn_pipe *p, struct tn_bytes *bytes)
{
    (void)pthread_mutex_lock(&p->lock);
    enum tn_pipe_turn turn = p->turn;
    (void)pthread_mutex_unlock(&p->lock);
    if (turn != TN_PIPE_READS) {
        *bytes = (struct tn_bytes){p->spec.buffer, p->filled};
    }
    return turn;
}

static void give_back(struct tn_pipe *p, size_t filled)
{
    TN_CHECK(filled < p->spec.size);
    (void)pthread_mutex_lock(&p->lock);
    p->filled = filled;
    p->turn = TN_PIPE_READS;
    (void)pthread_cond_signal(&p->given);
    (void)pthread_mutex_unlock(&p->lock);
}

void tn_pipe_give(struct tn_pipe *p, size_t used)
{
    TN_CHECK(used <= p->filled);
    memmove(p->spec.buffer, p->spec.buffer + used, p->filled - used);
    give_back(p, p->filled - used);
}

void tn_pipe_drop(struct tn_pipe *p, size_t kept)
{
    TN_CHECK(kept <= p->filled);
    give_back(p, kept);
}
