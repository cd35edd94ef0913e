/* control: the daemon's own socket, beside its data, for who asks on this machine: the pages, and
 * rows, as by HTTP elsewhere.
 *
 * It listens from before the sources are opened until they are stopped and all is committed, so
 * that one can see what the start and the end wait for. Its file is the owner's alone.
 */
#pragma once

#include "app/ask.h"
#include "base/op.h"
#include "ingest/http_server.h"

struct tn_control_spec {
    const char *warehouse;
    struct tn_net *net;
    struct tn_hub *hub;
    struct tn_arena *arena;
    const struct tn_http_page *pages;
    uint32_t page_count;
};

struct tn_control {
    struct tn_ops ops;
    struct tn_http_server *server; /* or NULL */
    char host[sizeof "unix:" + TN_ASK_PATH_SIZE];
};

enum {
    TN_CONTROL_STREAMS = 4, /* at once */
    TN_CONTROL_BODY_SIZE = 16 * 1024,
};

/* Bytes of arena that open takes. */
size_t tn_control_memory(void);

TN_MUST_USE tn_rc tn_control_open(struct tn_control *control, const struct tn_control_spec *spec,
                                  struct tn_err *err);
void tn_control_turn(struct tn_control *control);
void tn_control_stop(struct tn_control *control);
bool tn_control_stopped(const struct tn_control *control); /* also one of {0} */
