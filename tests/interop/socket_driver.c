/* A socket source on the system's sockets, as small as can be: a file in the place of the hub.
 * socket_test.py talks to it with Python's sockets, and kills it.
 *
 *     usage: socket_driver OPTION=VALUE...
 *         state=FILE      memos of senders, and rows, in one file that is replaced
 *         commit=N        durable every N ms
 *         connections=N line=BYTES token=TEXT port=N unix=PATH
 *
 * It says "port N" once it listens. A line is a row, as it stands; of one that is too long the row
 * is "cut:SIZE". It stops in order on SIGTERM, and says so. */
#include "driver_hub.h"
#include "ingest/socket_source.h"

enum { ARENA_SIZE = 1 << 24, LOG_SIZE = 4096, SIZE_MAX_OFFERED = 65536, WAIT_MS = 20 };

static struct tn_socket_source_spec spec = {.name = "socket",
                                            .table = "db.t",
                                            .hub = &state.hub,
                                            .at = {"127.0.0.1", 0},
                                            .connections = 16};

static tn_rc d_offer(struct tn_hub *hub, struct tn_message *message, struct tn_err *why)
{
    struct tn_buf rows;
    (void)hub;
    tn_buf_init(&rows, state.rows + state.rows_size, sizeof state.rows - state.rows_size);
    if (message->cut_size > 0) {
        tn_buf_format(&rows, "cut:%llu\n", (unsigned long long)message->cut_size);
    } else {
        tn_buf_append(&rows, message->bytes.data, message->bytes.size);
    }
    if (rows.overflow) {
        return tn_err_set(why, TN_AGAIN, 0, "no room");
    }
    take_rows(message, rows.size);
    return TN_OK;
}

static void set_unix(const char *value)
{
    static char path[TN_HOST_SIZE];
    (void)snprintf(path, sizeof path, "unix:%s", value);
    spec.at.host = path;
}

static const struct option options[] = {
    {"state", OPTION_TEXT, &state.path, NULL},
    {"commit", OPTION_U32, &state.commit_ms, NULL},
    {"connections", OPTION_U32, &spec.connections, NULL},
    {"line", OPTION_U32, &spec.line_size_max, NULL},
    {"token", OPTION_TEXT, &spec.token, NULL},
    {"port", OPTION_U16, &spec.at.port, NULL},
    {"unix", OPTION_CALL, NULL, set_unix},
};

int main(int argc, char **argv)
{
    static alignas(16) unsigned char memory[ARENA_SIZE];
    static unsigned char log_memory[LOG_SIZE];
    static const struct tn_hub_vtable vtable = {.offer = d_offer, .sender = hub_sender};
    static struct tn_log log;
    struct tn_arena arena;
    struct tn_err err;
    struct tn_socket_source *source = NULL;
    read_options(argc, argv, options, COUNT(options));
    spec.net = open_net(spec.connections + 1);
    open_hub(&vtable, SIZE_MAX_OFFERED, spec.net);
    tn_log_init(&log, log_memory, sizeof log_memory, NULL, NULL);
    spec.log = &log;
    tn_arena_init(&arena, memory, sizeof memory);
    CHECK_OK(tn_socket_source_open(&source, &spec, &arena, &err), err);
    say("port %u", tn_socket_source_port(source));
    while (!stopping) {
        (void)tn_net_turn(spec.net, WAIT_MS);
    }
    tn_socket_source_stop(source);
    while (!hub_rests() || !tn_socket_source_stopped(source)) {
        (void)tn_net_turn(spec.net, WAIT_MS);
    }
    close_net(spec.net, NULL);
    say("stopped");
    return 0;
}
