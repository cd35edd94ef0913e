#include "base/check.h"
#include "ingest/http_private.h"

enum { PAUSE_MS = 200, ALIGN = 16, BODY_MAX = 1 << 30 };

/* ---- what the hub says ---- */

static struct tn_http_server *server_of(struct tn_hub_listener *ears)
{
    return (struct tn_http_server *)(void *)((unsigned char *)ears -
                                             offsetof(struct tn_http_server, ears));
}

/* Ends the timers of those who wait for it; each looks for itself in its step. */
static void on_room(struct tn_hub_listener *ears)
{
    struct tn_http_server *server = server_of(ears);
    for (uint32_t i = 0; i < server->slot_count; i++) {
        struct tn_http_connection *c = &server->slots[i];
        if (c->open && c->await == TN_HTTP_AWAIT_ROOM) {
            tn_request_cancel(&c->request);
        }
    }
}

static void on_durable(struct tn_hub_listener *ears, uint64_t place)
{
    struct tn_http_server *server = server_of(ears);
    for (uint32_t i = 0; i < server->slot_count; i++) {
        struct tn_http_connection *c = &server->slots[i];
        if (c->open && c->await == TN_HTTP_AWAIT_DURABLE && c->place <= place) {
            tn_request_cancel(&c->request);
        }
    }
}

/* ---- those who come ---- */

static struct tn_http_connection *find_slot(struct tn_http_server *server)
{
    for (uint32_t i = 0; i < server->slot_count; i++) {
        if (!server->slots[i].open) {
            return &server->slots[i];
        }
    }
    return NULL;
}

static void let_in(struct tn_http_server *server, struct tn_stream *stream)
{
    struct tn_http_connection *c = server->stopping ? NULL : find_slot(server);
    if (!c) {
        tn_stream_close(stream, NULL);
        return;
    }
    server->counts.connections++;
    server->counts.connections_over += c->spare;
    tn_http_connection_open(c, stream);
}

static void wait_for_next(struct tn_http_server *server, bool pause)
{
    server->request = (struct tn_request){.op = &server->accept};
    server->pausing = pause;
    tn_op_expect(&server->accept, 1);
    if (pause) {
        tn_net_after(server->spec.net, PAUSE_MS, &server->request);
    } else {
        tn_net_accept(server->listener, &server->request);
    }
}

static void step_accept(struct tn_op *op)
{
    struct tn_http_server *server =
        (struct tn_http_server *)(void *)((unsigned char *)op -
                                          offsetof(struct tn_http_server, accept));
    bool came = !server->pausing && server->request.stream && op->rc == TN_OK;
    if (came) {
        let_in(server, server->request.stream);
    }
    if (server->stopping) {
        tn_net_close_listener(server->listener);
        tn_op_finish(op, TN_OK);
        return;
    }
    wait_for_next(server, !came && !server->pausing && op->rc != TN_OK);
}

static void on_accept_done(struct tn_op *op, tn_rc rc)
{
    (void)op;
    (void)rc;
}

/* ---- memory ---- */

static size_t body_size_of(const struct tn_http_server_spec *spec, bool spare)
{
    return spare ? (size_t)TN_HTTP_BODY_MIN : spec->body_size_max;
}

static size_t buffers_size(const struct tn_http_server_spec *spec, bool spare)
{
    return (spare ? 0 : (size_t)TN_HTTP_READER_HEAD_SIZE) + TN_HTTP_INPUT_SIZE +
           body_size_of(spec, spare) + 3 * (size_t)ALIGN;
}

size_t tn_http_server_memory(const struct tn_http_server_spec *spec)
{
    size_t slots = (size_t)spec->connections + TN_HTTP_SPARE_CONNECTIONS;
    return sizeof(struct tn_http_server) + slots * sizeof(struct tn_http_connection) +
           2 * (size_t)ALIGN + spec->connections * buffers_size(spec, false) +
           TN_HTTP_SPARE_CONNECTIONS * buffers_size(spec, true);
}

static tn_rc make_slot(struct tn_http_server *server, uint32_t i, struct tn_arena *arena,
                       struct tn_err *err)
{
    const struct tn_http_server_spec *spec = &server->spec;
    struct tn_http_connection *c = &server->slots[i];
    c->server = server;
    c->spare = i >= spec->connections;
    size_t body_size = body_size_of(spec, c->spare);
    void *head = c->spare ? NULL : tn_arena_take_raw(arena, TN_HTTP_READER_HEAD_SIZE);
    void *body = tn_arena_take_raw(arena, body_size);
    c->input = tn_arena_take_raw(arena, TN_HTTP_INPUT_SIZE);
    if ((!head && !c->spare) || !body || !c->input) {
        return tn_err_set(err, TN_AGAIN, 0, "HTTP needs %zu bytes for its connections",
                          tn_http_server_memory(spec));
    }
    tn_buf_init(&c->reader.head, head, c->spare ? 0 : TN_HTTP_READER_HEAD_SIZE);
    tn_buf_init(&c->body, body, body_size);
    return TN_OK;
}

static tn_rc make_slots(struct tn_http_server *server, struct tn_arena *arena, struct tn_err *err)
{
    void *slots = NULL;
    server->slot_count = server->spec.connections + TN_HTTP_SPARE_CONNECTIONS;
    tn_rc rc = tn_arena_need(arena, server->slot_count * sizeof(struct tn_http_connection),
                             "HTTP's connections", &slots, err);
    server->slots = slots;
    for (uint32_t i = 0; i < server->slot_count && rc == TN_OK; i++) {
        rc = make_slot(server, i, arena, err);
    }
    return rc;
}

/* ---- public ---- */

static bool is_local(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 ||
           strcmp(host, "localhost") == 0 || strncmp(host, "unix:", 5) == 0;
}

static tn_rc check_spec(const struct tn_http_server_spec *spec, struct tn_err *err)
{
    if (!spec->token && !is_local(spec->at.host)) {
        return tn_err_set(err, TN_INVALID, 0,
                          "HTTP at %s: others can reach it, so it needs a token", spec->at.host);
    }
    if (spec->connections == 0 || spec->body_size_max < TN_HTTP_BODY_MIN ||
        spec->body_size_max > BODY_MAX) {
        return tn_err_set(err, TN_INVALID, 0,
                          "HTTP needs a connection, and bodies of %d to %d bytes", TN_HTTP_BODY_MIN,
                          BODY_MAX);
    }
    return TN_OK;
}

static void set_spec(struct tn_http_server *server, const struct tn_http_server_spec *spec)
{
    struct tn_http_server_spec *own = &server->spec;
    *own = *spec;
    own->source = spec->source ? spec->source : "http";
    own->timeout_ms = spec->timeout_ms ? spec->timeout_ms : 10000;
    own->idle_ms = spec->idle_ms ? spec->idle_ms : 60000;
    own->answer_ms_max = spec->answer_ms_max ? spec->answer_ms_max : 10000;
}

tn_rc tn_http_server_open(struct tn_http_server **out, const struct tn_http_server_spec *spec,
                          struct tn_arena *arena, struct tn_err *err)
{
    void *memory = NULL;
    tn_rc rc = check_spec(spec, err);
    if (rc == TN_OK) {
        rc = tn_arena_need(arena, sizeof(struct tn_http_server), "HTTP", &memory, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_http_server *server = memory;
    set_spec(server, spec);
    rc = make_slots(server, arena, err);
    if (rc == TN_OK) {
        rc = tn_net_listen(spec->net, &spec->at, server->slot_count, &server->listener, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    server->ears = (struct tn_hub_listener){.room = on_room, .durable = on_durable};
    tn_hub_listen(spec->hub, &server->ears);
    tn_op_start(&server->accept, spec->ops, step_accept, on_accept_done);
    *out = server;
    return TN_OK;
}

uint16_t tn_http_server_port(const struct tn_http_server *server)
{
    return server->listener->port;
}

uint32_t tn_http_server_open_count(const struct tn_http_server *server)
{
    return server->open_count;
}

const struct tn_http_counts *tn_http_server_counts(const struct tn_http_server *server)
{
    return &server->counts;
}

void tn_http_server_stop(struct tn_http_server *server)
{
    if (server->stopping) {
        return;
    }
    server->stopping = true;
    tn_request_cancel(&server->request);
    for (uint32_t i = 0; i < server->slot_count; i++) {
        struct tn_http_connection *c = &server->slots[i];
        bool reads = c->await == TN_HTTP_AWAIT_BYTES || c->await == TN_HTTP_AWAIT_TLS;
        if (c->open && reads) {
            tn_request_cancel(&c->request);
        }
    }
}

bool tn_http_server_stopped(const struct tn_http_server *server)
{
    return server->accept.finished && server->open_count == 0;
}
