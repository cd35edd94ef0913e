/* The server of HTTP on the system's sockets, as small as can be: a file in the place of the hub.
 * http_test.py asks it with clients that others wrote, and kills it.
 *
 *     usage: http_driver OPTION=VALUE...
 *         state=FILE      rows, and memos of senders, in one file that is replaced
 *         commit=N        durable every N ms
 *         connections=N body=BYTES timeout=MS token=TEXT port=N
 *         certificate=PEM key=PEM     files: it speaks TLS
 *
 * It says "port N" once it listens. A line of a body is a row, as it stands; one that holds "bad"
 * is refused. Tables are "db.t" and no other. It stops in order on SIGTERM, and says so. */
#include "driver_hub.h"
#include "ingest/http_server.h"

enum { ARENA_SIZE = 1 << 24, WAIT_MS = 20 };

static struct tn_ops ops;
static struct tn_http_server_spec spec = {.ops = &ops,
                                          .hub = &state.hub,
                                          .at = {"127.0.0.1", 0},
                                          .source = "http",
                                          .connections = 16,
                                          .body_size_max = 65536,
                                          .timeout_ms = 2000,
                                          .idle_ms = 5000,
                                          .answer_ms_max = 5000};
static struct tn_tls_spec tls = {.clock = &tn_clock_system, .server = true};

static tn_rc d_offer(struct tn_hub *hub, struct tn_message *message, struct tn_err *why)
{
    (void)hub;
    const unsigned char *bad = memmem(message->bytes.data, message->bytes.size, "bad", 3);
    if (strcmp(message->table, "db.t") != 0) {
        return tn_err_set(why, TN_ABSENT, 0, "there is no table '%s'", message->table);
    }
    for (const unsigned char *at = message->bytes.data;
         bad && at < message->bytes.data + message->bytes.size; at++) {
        message->line += (at < bad && *at == '\n') || at == bad;
    }
    if (bad) {
        return tn_err_set(why, TN_INVALID, 0, "line %d: bad", (int)message->line);
    }
    if (message->bytes.size > sizeof state.rows - state.rows_size) {
        return tn_err_set(why, TN_AGAIN, 0, "no room");
    }
    if (message->bytes.size > 0) {
        memcpy(state.rows + state.rows_size, message->bytes.data, message->bytes.size);
    }
    for (size_t i = 0; i < message->bytes.size; i++) {
        message->rows += message->bytes.data[i] == '\n';
    }
    take_rows(message, message->bytes.size);
    return TN_OK;
}

static int fill(void *user, struct tn_buf *out)
{
    (void)user;
    tn_buf_format(out, "place %llu\n", (unsigned long long)state.place);
    return 200;
}

static void set_timeout(const char *value)
{
    spec.timeout_ms = (uint32_t)strtoul(value, NULL, 10);
    spec.idle_ms = spec.timeout_ms;
}

static const struct option options[] = {
    {"state", OPTION_TEXT, &state.path, NULL},
    {"commit", OPTION_U32, &state.commit_ms, NULL},
    {"connections", OPTION_U32, &spec.connections, NULL},
    {"body", OPTION_SIZE, &spec.body_size_max, NULL},
    {"timeout", OPTION_CALL, NULL, set_timeout},
    {"token", OPTION_TEXT, &spec.token, NULL},
    {"certificate", OPTION_FILE, &tls.certificate, NULL},
    {"key", OPTION_FILE, &tls.key, NULL},
    {"port", OPTION_U16, &spec.at.port, NULL},
};

static void turn(void)
{
    (void)tn_net_turn(spec.net, ops.first ? 0 : WAIT_MS);
    (void)tn_ops_run(&ops, 16);
}

int main(int argc, char **argv)
{
    static alignas(16) unsigned char memory[ARENA_SIZE];
    static const struct tn_hub_vtable vtable = {.offer = d_offer, .sender = hub_sender};
    static const struct tn_http_page pages[] = {
        {.path = "/health", .type = "text/plain", .open = true, .fill = fill}};
    struct tn_arena arena;
    struct tn_err err;
    struct tn_http_server *server = NULL;
    read_options(argc, argv, options, COUNT(options));
    spec.pages = pages;
    spec.page_count = COUNT(pages);
    spec.net = open_net(spec.connections + TN_HTTP_SPARE_CONNECTIONS);
    open_hub(&vtable, spec.body_size_max, spec.net);
    if (tls.certificate.size > 0) {
        boot_tls();
        CHECK_OK(tn_tls_config_make(&tls, &spec.tls, &err), err);
    }
    tn_arena_init(&arena, memory, sizeof memory);
    CHECK_OK(tn_http_server_open(&server, &spec, &arena, &err), err);
    say("port %u", tn_http_server_port(server));
    while (!stopping) {
        turn();
    }
    tn_http_server_stop(server);
    while (!hub_rests() || !tn_http_server_stopped(server)) {
        turn();
    }
    close_net(spec.net, NULL);
    say("stopped");
    return 0;
}
