#include "io/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/exec.h"

enum { IDLE, WAITING, READY };
enum { NS_PER_MS = 1000000, REST_WAIT_MS = 20 };

static int64_t now_ns(struct tn_net *net)
{
    return net->clock->vtable->monotonic_ns(net->clock);
}

void tn_net_init(struct tn_net *net, const struct tn_net_vtable *vtable, struct tn_clock *clock,
                 struct tn_pool *buffers)
{
    *net = (struct tn_net){.vtable = vtable, .clock = clock, .buffers = buffers};
}

/* ---- deadlines: a list in their order ---- */

/* From the end: most time-outs of a process are alike, so that a new one is nearly always the last.
 * A door has some hundred requests at most. */
static void link_deadline(struct tn_net *net, struct tn_request *request)
{
    struct tn_request *before = net->latest;
    while (before && before->deadline_ns > request->deadline_ns) {
        before = before->previous;
    }
    struct tn_request *behind = before ? before->next : net->soonest;
    request->previous = before;
    request->next = behind;
    if (before) {
        before->next = request;
    } else {
        net->soonest = request;
    }
    if (behind) {
        behind->previous = request;
    } else {
        net->latest = request;
    }
}

static void unlink_deadline(struct tn_net *net, struct tn_request *request)
{
    if (request->previous) {
        request->previous->next = request->next;
    } else {
        net->soonest = request->next;
    }
    if (request->next) {
        request->next->previous = request->previous;
    } else {
        net->latest = request->previous;
    }
}

/* ---- a request's life ---- */

void tn_request_begin(struct tn_request *request, struct tn_net *net, void *owner,
                      tn_request_fn *stop, const char *what, tn_rc late)
{
    TN_CHECK(request->state == IDLE);
    TN_CHECK(request->op || request->done);
    request->state = WAITING;
    request->net = net;
    request->owner = owner;
    request->stop = stop;
    request->what = what;
    request->late = late;
    request->rc = TN_OK;
    request->moved = 0;
    request->deadline_ns = 0;
    net->under_way++;
    if (request->timeout_ms > 0) {
        request->deadline_ns = now_ns(net) + (int64_t)request->timeout_ms * NS_PER_MS;
        link_deadline(net, request);
    }
}

void tn_request_end(struct tn_request *request, tn_rc rc)
{
    struct tn_net *net = request->net;
    TN_CHECK(request->state == WAITING);
    if (request->deadline_ns > 0) {
        unlink_deadline(net, request);
    }
    request->state = READY;
    request->rc = rc;
    request->next = NULL;
    if (net->ready_last) {
        net->ready_last->next = request;
    } else {
        net->ready_first = request;
    }
    net->ready_last = request;
}

void tn_request_fail(struct tn_request *request, const struct tn_err *err)
{
    request->err = *err;
    tn_request_end(request, err->code);
}

static void nothing_to_stop(struct tn_request *request)
{
    (void)request;
}

void tn_request_refuse(struct tn_request *request, struct tn_net *net, const struct tn_err *err)
{
    tn_request_begin(request, net, NULL, nothing_to_stop, "", TN_IO);
    tn_request_fail(request, err);
}

static const char *peer_of(const struct tn_request *request)
{
    return request->stream ? request->stream->peer : "";
}

/* Its text is made first: `stop` may free the stream that it names. */
static void end_early(struct tn_request *request, tn_rc rc)
{
    if (rc == TN_CANCELED) {
        (void)tn_err_set(&request->err, rc, ECANCELED, "%s %s: cancelled", request->what,
                         peer_of(request));
    } else if (rc != TN_OK) {
        (void)tn_err_set(&request->err, rc, ETIMEDOUT, "%s %s: nothing within %u ms", request->what,
                         peer_of(request), request->timeout_ms);
    }
    request->stop(request);
    tn_request_end(request, rc);
}

void tn_request_cancel(struct tn_request *request)
{
    if (request->state == WAITING) {
        end_early(request, TN_CANCELED);
    }
}

bool tn_request_under_way(const struct tn_request *request)
{
    return request->state != IDLE;
}

void tn_net_after(struct tn_net *net, uint32_t ms, struct tn_request *request)
{
    request->stream = NULL;
    request->timeout_ms = ms > 0 ? ms : 1;
    tn_request_begin(request, net, NULL, nothing_to_stop, "timer", TN_OK);
}

/* ---- buffers ---- */

void tn_net_give(struct tn_net *net, void *buffer)
{
    tn_pool_give(net->buffers, buffer);
}

void *tn_net_take(struct tn_net *net, struct tn_hungry *hungry)
{
    void *buffer = tn_pool_take(net->buffers);
    if (buffer || hungry->waits) {
        return buffer;
    }
    hungry->waits = true;
    hungry->next = NULL;
    if (net->hungry_last) {
        net->hungry_last->next = hungry;
    } else {
        net->hungry_first = hungry;
    }
    net->hungry_last = hungry;
    return NULL;
}

void tn_net_forget(struct tn_net *net, struct tn_hungry *hungry)
{
    if (!hungry->waits) {
        return;
    }
    struct tn_hungry *before = NULL;
    for (struct tn_hungry *at = net->hungry_first; at != hungry; at = at->next) {
        TN_CHECK(at);
        before = at;
    }
    if (before) {
        before->next = hungry->next;
    } else {
        net->hungry_first = hungry->next;
    }
    if (net->hungry_last == hungry) {
        net->hungry_last = before;
    }
    hungry->waits = false;
}

/* One that is fed may find no bytes and take nothing, so the count is the bound, not the pool. */
void tn_net_feed(struct tn_net *net)
{
    struct tn_hungry *last = net->hungry_last;
    struct tn_hungry *fed = NULL;
    while (net->hungry_first && fed != last && tn_pool_free(net->buffers) > 0) {
        fed = net->hungry_first;
        tn_net_forget(net, fed);
        fed->feed(fed);
    }
}

/* ---- turns ---- */

void tn_net_expire(struct tn_net *net)
{
    if (!net->soonest) {
        return;
    }
    int64_t now = now_ns(net);
    while (net->soonest && net->soonest->deadline_ns <= now) {
        net->counts.timeouts += net->soonest->late != TN_OK;
        end_early(net->soonest, net->soonest->late);
    }
}

uint32_t tn_net_patience(struct tn_net *net, uint32_t wait_ms)
{
    if (net->ready_first) {
        return 0;
    }
    if (!net->soonest) {
        return wait_ms;
    }
    int64_t left_ns = net->soonest->deadline_ns - now_ns(net);
    if (left_ns <= 0) {
        return 0;
    }
    int64_t left_ms = (left_ns + NS_PER_MS - 1) / NS_PER_MS;
    return left_ms < (int64_t)wait_ms ? (uint32_t)left_ms : wait_ms;
}

static void tell(struct tn_request *request)
{
    struct tn_op *op = request->op;
    if (!op) {
        request->done(request);
        return;
    }
    if (op->rc == TN_OK && request->rc != TN_OK) {
        op->err = request->err;
    }
    tn_op_wake(op, request->rc);
}

int tn_net_deliver(struct tn_net *net)
{
    struct tn_request *request = net->ready_first;
    net->ready_first = NULL; /* what ends from now on is for the next turn */
    net->ready_last = NULL;
    int count = 0;
    while (request) {
        struct tn_request *next = request->next;
        request->state = IDLE;
        net->under_way--;
        tell(request);
        request = next;
        count++;
    }
    return count;
}

bool tn_net_rest(struct tn_net *net, struct tn_exec *exec, uint32_t ms)
{
    int64_t end_ns = now_ns(net) + (int64_t)ms * NS_PER_MS;
    while (net->streams > 0 || net->under_way > 0) {
        if (now_ns(net) >= end_ns) {
            return false;
        }
        if (exec) {
            (void)tn_exec_turn(exec, false); /* doesn't wake the net */
        }
        (void)tn_net_turn(net, REST_WAIT_MS);
    }
    return true;
}

void tn_net_close(struct tn_net *net)
{
    TN_CHECK(net->under_way == 0);
    TN_CHECK(net->streams == 0);
    net->vtable->close(net);
}

/* ---- endpoints ---- */

static bool parse_port(const char *text, uint16_t *port)
{
    uint32_t value = 0;
    size_t digits = 0;
    for (; text[digits] >= '0' && text[digits] <= '9' && digits < 5; digits++) {
        value = value * 10 + (uint32_t)(text[digits] - '0');
    }
    *port = (uint16_t)value;
    return digits > 0 && text[digits] == 0 && value <= UINT16_MAX;
}

/* What is behind the host, which has no brackets any more; or NULL. */
static const char *take_host(const char *text, char host[TN_HOST_SIZE])
{
    struct in6_addr v6;
    bool bracket = text[0] == '[';
    size_t size = strcspn(text + bracket, bracket ? "]" : ":");
    if (size == 0 || size >= TN_HOST_SIZE || (bracket && text[1 + size] != ']')) {
        return NULL;
    }
    memcpy(host, text + bracket, size);
    host[size] = 0;
    return !bracket || inet_pton(AF_INET6, host, &v6) == 1 ? text + size + 2 * bracket : NULL;
}

static bool take_path(const char *text, char host[TN_HOST_SIZE])
{
    size_t size = strlen(text);
    bool fits = size > strlen("unix:") && size < TN_HOST_SIZE;
    if (fits) {
        memcpy(host, text, size + 1);
    }
    return fits;
}

tn_rc tn_endpoint_parse(const char *text, char host[TN_HOST_SIZE], struct tn_endpoint *endpoint,
                        struct tn_err *err)
{
    uint16_t port = 0;
    bool local = strncmp(text, "unix:", 5) == 0;
    const char *rest = local ? NULL : take_host(text, host);
    if (local ? !take_path(text, host) : !rest || rest[0] != ':' || !parse_port(rest + 1, &port)) {
        return tn_err_set(err, TN_INVALID, 0,
                          "address '%s': expected host:port, [address]:port or unix:path", text);
    }
    *endpoint = (struct tn_endpoint){.host = host, .port = port};
    return TN_OK;
}

tn_rc tn_endpoint_parse_or(const char *text, uint16_t port, char host[TN_HOST_SIZE],
                           struct tn_endpoint *endpoint, struct tn_err *err)
{
    const char *rest = take_host(text, host);
    bool told = rest && rest[0] == ':';
    if (!rest || (told ? !parse_port(rest + 1, &port) || port == 0 : rest[0] != 0)) {
        return tn_err_set(err, TN_INVALID, 0,
                          "address '%s': expected a host, or host:port with a port from 1 to 65535",
                          text);
    }
    *endpoint = (struct tn_endpoint){.host = host, .port = port};
    return TN_OK;
}
