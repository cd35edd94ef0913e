/* pipe: a file descriptor that may block, read by a thread of its own, for a loop that must not:
 * standard input, whatever that is.
 *
 *     thread: read behind what is left --full, or the end--> loop: take, use, give -->
 *
 * There is one buffer, which belongs to the thread or to the loop in turn. Who takes nothing slows
 * the other end down.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "base/bytes.h"
#include "base/err.h"

enum tn_pipe_turn { TN_PIPE_READS, TN_PIPE_FULL, TN_PIPE_END };

struct tn_pipe_spec {
    int fd;
    unsigned char *buffer;
    size_t size;
    void (*notify)(void *user); /* called on the thread when it is the loop's turn */
    void *user;
};

struct tn_pipe {
    struct tn_pipe_spec spec;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t given;
    int stop[2]; /* a byte, or the end, in it ends the thread */
    enum tn_pipe_turn turn;
    size_t filled;
    int os; /* why it ended early; 0: it didn't */
    bool closing;
    bool open;
};

TN_MUST_USE tn_rc tn_pipe_open(struct tn_pipe *pipe, const struct tn_pipe_spec *spec,
                               struct tn_err *err);
void tn_pipe_close(struct tn_pipe *pipe); /* also one of {0} */

/* FULL, and END with what came last: `*bytes` is the loop's until `give`. READS: nothing is there.
 */
enum tn_pipe_turn tn_pipe_take(struct tn_pipe *pipe, struct tn_bytes *bytes);
/* The first `used` bytes are done with; the rest comes again, with more. Not after END. */
void tn_pipe_give(struct tn_pipe *pipe, size_t used);
/* The same of all but the first `kept`, which come again. */
void tn_pipe_drop(struct tn_pipe *pipe, size_t kept);
