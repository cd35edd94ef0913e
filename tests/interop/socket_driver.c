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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "ingest/socket_source.h"
#include "io/net_uv.h"

enum {
    ROWS_MAX = 1 << 23,
    SENDERS_MAX = 64,
    ARENA_SIZE = 1 << 24,
    HEAP_SIZE = 1 << 16,
    BUFFER_SIZE = 1024,
    LOG_SIZE = 4096,
    MEMO_MAX = 64,
    WAIT_MS = 20,
};

struct sender {
    char name[TN_SENDER_SIZE_MAX + 1];
    unsigned char memo[MEMO_MAX];
    size_t memo_size;
    uint64_t place;
};

static struct {
    struct tn_hub hub; /* first */
    char rows[ROWS_MAX];
    size_t rows_size;
    uint64_t place;
    struct sender senders[SENDERS_MAX];
    uint32_t sender_count;
    const char *path;
} state;

static struct tn_socket_source_spec spec;
static uint32_t commit_ms = 10;
static volatile sig_atomic_t stopping;
static struct tn_err err;

static void on_signal(int number)
{
    (void)number;
    stopping = 1;
}

/* ---- the file: "place N", "sender NAME PLACE MEMO" a line, an empty one, and the rows ---- */

static void save(void)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s.new", state.path);
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL);
    (void)fprintf(file, "place %llu\n", (unsigned long long)state.place);
    for (uint32_t i = 0; i < state.sender_count; i++) {
        const struct sender *sender = &state.senders[i];
        (void)fprintf(file, "sender %s %llu ", sender->name, (unsigned long long)sender->place);
        for (size_t k = 0; k < sender->memo_size; k++) {
            (void)fprintf(file, "%02x", sender->memo[k]);
        }
        (void)fputc('\n', file);
    }
    (void)fputc('\n', file);
    CHECK(fwrite(state.rows, 1, state.rows_size, file) == state.rows_size);
    CHECK(fclose(file) == 0 && rename(path, state.path) == 0);
}

static void load_sender(char *line)
{
    struct sender *sender = &state.senders[state.sender_count++];
    char *place = strchr(line, ' ');
    char *memo = place ? strchr(place + 1, ' ') : NULL;
    CHECK(memo && state.sender_count <= SENDERS_MAX);
    (void)snprintf(sender->name, sizeof sender->name, "%.*s", (int)(place - line), line);
    sender->place = strtoull(place, NULL, 10);
    for (memo++; *memo && *memo != '\n'; memo += 2) {
        char digits[3] = {memo[0], memo[1], 0};
        sender->memo[sender->memo_size++] = (unsigned char)strtoul(digits, NULL, 16);
    }
}

static void load(void)
{
    static char line[2 * MEMO_MAX + TN_SENDER_SIZE_MAX + 64];
    FILE *file = fopen(state.path, "rb");
    if (!file) {
        return;
    }
    while (fgets(line, sizeof line, file) && line[0] != '\n') {
        if (strncmp(line, "sender ", 7) == 0) {
            load_sender(line + 7);
        } else {
            state.place = strtoull(line + 6, NULL, 10);
        }
    }
    state.rows_size = fread(state.rows, 1, sizeof state.rows, file);
    state.hub.durable = state.place;
    (void)fclose(file);
}

/* ---- the hub ---- */

static struct sender *find_sender(struct tn_bytes name)
{
    for (uint32_t i = 0; i < state.sender_count; i++) {
        if (tn_bytes_equal(name, tn_bytes_of(state.senders[i].name))) {
            return &state.senders[i];
        }
    }
    return NULL;
}

static void keep_memo(const struct tn_message *message)
{
    struct sender *sender = find_sender(message->sender);
    if (!sender) {
        CHECK(state.sender_count < SENDERS_MAX);
        sender = &state.senders[state.sender_count++];
        (void)snprintf(sender->name, sizeof sender->name, "%.*s", (int)message->sender.size,
                       (const char *)message->sender.data);
    }
    CHECK(message->memo.size <= MEMO_MAX);
    memcpy(sender->memo, message->memo.data, message->memo.size);
    sender->memo_size = message->memo.size;
    sender->place = state.place;
}

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
    state.rows_size += rows.size;
    message->place = ++state.place;
    if (message->sender.size > 0) {
        keep_memo(message);
    }
    return TN_OK;
}

static tn_rc d_sender(struct tn_hub *hub, struct tn_bytes name, struct tn_bytes *memo,
                      uint64_t *place)
{
    (void)hub;
    const struct sender *sender = find_sender(name);
    if (!sender) {
        return TN_ABSENT;
    }
    *memo = (struct tn_bytes){sender->memo, sender->memo_size};
    *place = sender->place;
    return TN_OK;
}

/* ---- the program ---- */

static void set_option(const char *name, const char *value)
{
    unsigned long number = strtoul(value, NULL, 10);
    if (strcmp(name, "state") == 0) {
        state.path = value;
    } else if (strcmp(name, "commit") == 0) {
        commit_ms = (uint32_t)number;
    } else if (strcmp(name, "connections") == 0) {
        spec.connections = (uint32_t)number;
    } else if (strcmp(name, "line") == 0) {
        spec.line_size_max = (uint32_t)number;
    } else if (strcmp(name, "token") == 0) {
        spec.token = value;
    } else if (strcmp(name, "port") == 0) {
        spec.at.port = (uint16_t)number;
    } else if (strcmp(name, "unix") == 0) {
        static char path[TN_HOST_SIZE];
        (void)snprintf(path, sizeof path, "unix:%s", value);
        spec.at.host = path;
    } else {
        (void)fprintf(stderr, "option '%s' is unknown\n", name);
        exit(2);
    }
}

static struct tn_net *open_net(struct tn_arena *arena)
{
    static _Alignas(16) unsigned char heap_memory[HEAP_SIZE];
    static _Alignas(16) unsigned char pool_memory[2 * (BUFFER_SIZE + 16)];
    static struct tn_heap heap;
    static struct tn_pool pool;
    struct tn_net *net = NULL;
    tn_heap_init(&heap, heap_memory, sizeof heap_memory, true);
    tn_pool_init(&pool, pool_memory, sizeof pool_memory, BUFFER_SIZE);
    struct tn_net_spec net_spec = {.heap = &heap,
                                   .arena = arena,
                                   .buffers = &pool,
                                   .clock = &tn_clock_system,
                                   .streams_max = spec.connections + 1};
    tn_rc rc = tn_net_uv_open(&net_spec, &net, &err);
    CHECK_OK(rc, err);
    return net;
}

static void on_tick(struct tn_request *request)
{
    if (state.hub.durable < state.place) {
        save();
        tn_hub_say_durable(&state.hub, state.place);
    }
    if (!stopping) {
        tn_net_after(spec.net, commit_ms, request);
    }
}

static void run(struct tn_socket_source *source)
{
    struct tn_request tick = {.done = on_tick};
    tn_net_after(spec.net, commit_ms, &tick);
    while (!stopping) {
        (void)tn_net_turn(spec.net, WAIT_MS);
    }
    tn_socket_source_stop(source);
    while (!tn_socket_source_stopped(source) || tn_request_under_way(&tick)) {
        (void)tn_net_turn(spec.net, WAIT_MS);
    }
    tn_net_close(spec.net);
}

int main(int argc, char **argv)
{
    static _Alignas(16) unsigned char memory[ARENA_SIZE];
    static unsigned char log_memory[LOG_SIZE];
    static const struct tn_hub_vtable vtable = {d_offer, d_sender};
    static struct tn_log log;
    struct tn_arena arena;
    struct tn_socket_source *source = NULL;
    spec = (struct tn_socket_source_spec){.name = "socket",
                                          .table = "db.t",
                                          .hub = &state.hub,
                                          .log = &log,
                                          .at = {"127.0.0.1", 0},
                                          .connections = 16};
    for (int i = 1; i < argc; i++) {
        char *equal = strchr(argv[i], '=');
        CHECK(equal != NULL);
        *equal = 0;
        set_option(argv[i], equal + 1);
    }
    state.hub = (struct tn_hub){.vtable = &vtable, .size_max = 65536};
    CHECK(state.path);
    load();
    (void)signal(SIGTERM, on_signal);
    (void)signal(SIGPIPE, SIG_IGN);
    tn_log_init(&log, log_memory, sizeof log_memory, NULL, NULL);
    tn_arena_init(&arena, memory, sizeof memory);
    spec.net = open_net(&arena);
    tn_rc rc = tn_socket_source_open(&source, &spec, &arena, &err);
    CHECK_OK(rc, err);
    (void)printf("port %u\n", tn_socket_source_port(source));
    (void)fflush(stdout);
    run(source);
    (void)printf("stopped\n");
    return 0;
}
