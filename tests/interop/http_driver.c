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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "ingest/http_server.h"
#include "io/net_uv.h"
#include "io/tls_memory.h"

enum {
    ROWS_MAX = 1 << 23,
    SENDERS_MAX = 64,
    ARENA_SIZE = 1 << 24,
    HEAP_SIZE = 1 << 16,
    BUFFER_SIZE = 1024,
    TLS_SIZE = 24 * TN_TLS_STREAM_SIZE,
    PEM_MAX = 1 << 14,
    WAIT_MS = 20,
};

struct sender {
    char name[TN_SENDER_SIZE_MAX + 1];
    unsigned char memo[TN_MEMO_SIZE_MAX];
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
    static char line[2 * TN_MEMO_SIZE_MAX + TN_SENDER_SIZE_MAX + 64];
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
    memcpy(sender->memo, message->memo.data, message->memo.size);
    sender->memo_size = message->memo.size;
    sender->place = state.place;
}

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
    state.rows_size += message->bytes.size;
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

static int fill(void *user, struct tn_buf *out)
{
    (void)user;
    tn_buf_format(out, "place %llu\n", (unsigned long long)state.place);
    return 200;
}

static struct tn_http_server_spec spec;
static uint32_t commit_ms = 10;
static struct tn_tls_spec tls = {.clock = &tn_clock_system, .server = true};

/* With a zero behind it, as TLS wants it. */
static struct tn_bytes read_pem(const char *path)
{
    static char texts[2][PEM_MAX];
    static int count;
    CHECK(count < 2);
    char *text = texts[count++];
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    size_t size = fread(text, 1, PEM_MAX - 1, file);
    (void)fclose(file);
    return (struct tn_bytes){(unsigned char *)text, size};
}

static void set_option(const char *name, const char *value)
{
    unsigned long number = strtoul(value, NULL, 10);
    if (strcmp(name, "state") == 0) {
        state.path = value;
    } else if (strcmp(name, "commit") == 0) {
        commit_ms = (uint32_t)number;
    } else if (strcmp(name, "connections") == 0) {
        spec.connections = (uint32_t)number;
    } else if (strcmp(name, "body") == 0) {
        spec.body_size_max = number;
    } else if (strcmp(name, "timeout") == 0) {
        spec.timeout_ms = (uint32_t)number;
        spec.idle_ms = spec.timeout_ms;
    } else if (strcmp(name, "token") == 0) {
        spec.token = value;
    } else if (strcmp(name, "certificate") == 0) {
        tls.certificate = read_pem(value);
    } else if (strcmp(name, "key") == 0) {
        tls.key = read_pem(value);
    } else if (strcmp(name, "port") == 0) {
        spec.at.port = (uint16_t)number;
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
                                   .streams_max = spec.connections + TN_HTTP_SPARE_CONNECTIONS};
    tn_rc rc = tn_net_uv_open(&net_spec, &net, &err);
    CHECK_OK(rc, err);
    return net;
}

static void open_tls(void)
{
    static _Alignas(16) unsigned char memory[TLS_SIZE];
    static struct tn_heap heap;
    tn_heap_init(&heap, memory, sizeof memory, true);
    tn_tls_boot(&heap);
    tn_rc rc = tn_tls_config_make(&tls, &spec.tls, &err);
    CHECK_OK(rc, err);
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

static void run(struct tn_http_server *server)
{
    struct tn_request tick = {.done = on_tick};
    tn_net_after(spec.net, commit_ms, &tick);
    while (!stopping) {
        (void)tn_net_turn(spec.net, spec.ops->first ? 0 : WAIT_MS);
        (void)tn_ops_run(spec.ops, 16);
    }
    tn_http_server_stop(server);
    while (!tn_http_server_stopped(server) || tn_request_under_way(&tick)) {
        (void)tn_net_turn(spec.net, spec.ops->first ? 0 : WAIT_MS);
        (void)tn_ops_run(spec.ops, 16);
        if (!tn_request_under_way(&tick) && state.hub.durable < state.place) {
            tn_net_after(spec.net, commit_ms, &tick);
        }
    }
    tn_net_close(spec.net);
}

int main(int argc, char **argv)
{
    static _Alignas(16) unsigned char memory[ARENA_SIZE];
    static const struct tn_hub_vtable vtable = {d_offer, d_sender};
    static const struct tn_http_page pages[] = {
        {.path = "/health", .type = "text/plain", .open = true, .fill = fill}};
    static struct tn_ops ops;
    struct tn_arena arena;
    struct tn_http_server *server = NULL;
    spec = (struct tn_http_server_spec){.ops = &ops,
                                        .hub = &state.hub,
                                        .at = {"127.0.0.1", 0},
                                        .source = "http",
                                        .pages = pages,
                                        .page_count = 1,
                                        .connections = 16,
                                        .body_size_max = 65536,
                                        .timeout_ms = 2000,
                                        .idle_ms = 5000,
                                        .answer_ms_max = 5000};
    for (int i = 1; i < argc; i++) {
        char *equal = strchr(argv[i], '=');
        CHECK(equal != NULL);
        *equal = 0;
        set_option(argv[i], equal + 1);
    }
    state.hub = (struct tn_hub){.vtable = &vtable, .size_max = spec.body_size_max};
    CHECK(state.path);
    load();
    (void)signal(SIGTERM, on_signal);
    (void)signal(SIGPIPE, SIG_IGN);
    tn_arena_init(&arena, memory, sizeof memory);
    spec.net = open_net(&arena);
    if (tls.certificate.size > 0) {
        open_tls();
    }
    tn_rc rc = tn_http_server_open(&server, &spec, &arena, &err);
    CHECK_OK(rc, err);
    (void)printf("port %u\n", tn_http_server_port(server));
    (void)fflush(stdout);
    run(server);
    (void)printf("stopped\n");
    return 0;
}
