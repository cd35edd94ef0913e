#include "app/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    CONNECTIONS = TN_CONTROL_STREAMS - TN_HTTP_SPARE_CONNECTIONS,
    TIMEOUT_MS = 2000, /* nobody here is far away */
    IDLE_MS = 5000,
    STEPS_MAX = 64, /* in a turn */
};

static const struct tn_http_server_spec base = {.source = "socket",
                                                .connections = CONNECTIONS,
                                                .body_size_max = TN_CONTROL_BODY_SIZE,
                                                .timeout_ms = TIMEOUT_MS,
                                                .idle_ms = IDLE_MS};

size_t tn_control_memory(void)
{
    return tn_http_server_memory(&base);
}

tn_rc tn_control_open(struct tn_control *control, const struct tn_control_spec *spec,
                      struct tn_err *err)
{
    struct tn_control *c = control;
    char path[TN_ASK_PATH_SIZE];
    struct tn_http_server_spec server = base;
    tn_rc rc = tn_ask_path(spec->warehouse, path, err);
    *c = (struct tn_control){.server = NULL};
    if (rc != TN_OK) {
        return rc;
    }
    (void)snprintf(c->host, sizeof c->host, "unix:%s", path);
    server.net = spec->net;
    server.ops = &c->ops;
    server.hub = spec->hub;
    server.at = (struct tn_endpoint){.host = c->host};
    server.pages = spec->pages;
    server.page_count = spec->page_count;
    rc = tn_http_server_open(&c->server, &server, spec->arena, err);
    if (rc == TN_OK && chmod(path, S_IRUSR | S_IWUSR) != 0) {
        int os = errno;
        return tn_err_set(err, TN_IO, os, "chmod %s: %s", path, strerror(os));
    }
    return rc;
}

void tn_control_turn(struct tn_control *control)
{
    (void)tn_ops_run(&control->ops, STEPS_MAX);
}

void tn_control_stop(struct tn_control *control)
{
    if (control->server) {
        tn_http_server_stop(control->server);
    }
}

bool tn_control_stopped(const struct tn_control *control)
{
    return !control->server || tn_http_server_stopped(control->server);
}
