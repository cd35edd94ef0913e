/* A subscriber on the system's sockets: the source, with a file in the place of the journal and its
 * tables. mqtt_test.py runs it against a broker, and kills it.
 *
 *     usage: mqtt_driver OPTION...
 *         port=N client=ID filter=F[:QOS]... [version=3|5|any] [user=U password=P]
 *         ca=FILE, pinned=FILE, certificate=FILE, key=FILE    any of them: TLS
 *         state=FILE     rows and memos, in one file that is replaced
 *         commit=N       a commit every N ms, and a pause of as long before it is durable
 *         take=N         N messages a second at most
 *         input=BYTES    what it can hold of a packet
 *         stop=N         ends in order when N rows are durable
 *
 * A row is a line: the payload, the topic, its table; the payload of one that is too long is
 * "cut:SIZE". It prints the log, "ready" and "lost", and
 * with each commit how many rows it has: "kept N". */
#include "driver.h"
#include "ingest/mqtt_source.h"

enum {
    FILTERS_MAX = 8,
    STATE_MAX = 1 << 22,
    ARENA_SIZE = 1 << 18,
    LOG_SIZE = 1 << 14,
    TURN_MS = 2,
    PARTS_MAX = 16,
    MEMOS = 2,
};

static struct {
    uint16_t port;
    const char *state_path;
    uint32_t commit_ms;
    uint32_t take_rate;
    uint32_t stop_at;
    size_t size_max;
    struct tn_mqtt_wish filters[FILTERS_MAX];
    struct tn_mqtt_route routes[FILTERS_MAX];
    struct tn_mqtt_spec spec;
    struct tn_tls_spec tls;
} given = {.commit_ms = 10, .take_rate = 1000000, .size_max = 8192};

/* Rows and memos up to a place. */
struct cut {
    size_t size;
    uint64_t place;
    uint64_t count;
    char memos[MEMOS][TN_MEMO_SIZE_MAX + 1]; /* of the ids, of the filters */
};

static struct tn_err err;
static struct tn_hub hub;
static char rows[STATE_MAX];
static struct cut now;
static struct cut next; /* while `committing` */
static uint64_t durable_count;
static bool committing;
static bool full;
static int64_t commit_at;
static int64_t began;

static int64_t now_ms(void)
{
    return tn_clock_system.vtable->monotonic_ns(&tn_clock_system) / 1000000;
}

static void print_line(void *user, enum tn_log_level level, const char *line, size_t size)
{
    (void)user;
    (void)level;
    (void)fwrite(line, 1, size, stdout);
    (void)fflush(stdout);
}

/* ---- the hub: "place\nmemo\nmemo\n", then rows; replaced by rename ---- */

static char *end_of_line(char *line)
{
    char *end = strchr(line, '\n');
    CHECK(end != NULL);
    *end = 0;
    return end + 1;
}

static void swap(char *text, char from, char to)
{
    for (char *at = strchr(text, from); at; at = strchr(at, from)) {
        *at = to;
    }
}

static void load(void)
{
    static char text[STATE_MAX];
    FILE *file = fopen(given.state_path, "rb");
    if (!file) {
        return;
    }
    size_t size = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    char *from = end_of_line(text);
    now.place = strtoull(text, NULL, 10);
    for (int i = 0; i < MEMOS; i++) {
        char *memo = from;
        from = end_of_line(memo);
        (void)snprintf(now.memos[i], sizeof now.memos[i], "%s", memo);
        swap(now.memos[i], '\t', '\n');
    }
    now.size = size - (size_t)(from - text);
    memcpy(rows, from, now.size);
    for (size_t i = 0; i < now.size; i++) {
        now.count += rows[i] == '\n';
    }
    durable_count = now.count;
    hub.durable = now.place;
}

static void end_commit(void)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s.new", given.state_path);
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL);
    swap(next.memos[1], '\n', '\t');
    (void)fprintf(file, "%llu\n%s\n%s\n", (unsigned long long)next.place, next.memos[0],
                  next.memos[1]);
    CHECK(fwrite(rows, 1, next.size, file) == next.size);
    CHECK(fclose(file) == 0 && rename(path, given.state_path) == 0);
    committing = false;
    durable_count = next.count;
    tn_hub_say_durable(&hub, next.place);
    say("kept %llu", (unsigned long long)next.count);
}

static void commit_in_time(void)
{
    if (now_ms() < commit_at) {
        return;
    }
    if (committing) {
        end_commit();
    } else if (now.place > hub.durable) {
        next = now;
        committing = true;
    }
    commit_at = now_ms() + given.commit_ms;
}

static bool has_room(void)
{
    return (int64_t)now.count * 1000 < (now_ms() - began + 1000) * given.take_rate;
}

static void add_row(const struct tn_message *message)
{
    struct tn_bytes parts[PARTS_MAX];
    struct tn_buf row;
    tn_buf_init(&row, rows + now.size, sizeof rows - now.size);
    if (message->cut_size > 0) {
        tn_buf_format(&row, "cut:%llu", (unsigned long long)message->cut_size);
    } else {
        tn_buf_append(&row, message->bytes.data, message->bytes.size);
    }
    uint32_t count = tn_mqtt_topic_parts(message->topic, parts, PARTS_MAX);
    tn_buf_text(&row, " ");
    for (uint32_t i = 0; i < count && i < PARTS_MAX; i++) {
        tn_buf_text(&row, i > 0 ? "|" : "");
        tn_buf_append(&row, parts[i].data, parts[i].size);
    }
    tn_buf_format(&row, " %s\n", message->table);
    CHECK(!row.overflow);
    now.size += row.size;
    now.count++;
}

static char *memo_of(struct tn_bytes sender)
{
    const char filters[] = "mqtt-filters:";
    return now.memos[sender.size > sizeof filters &&
                     memcmp(sender.data, filters, sizeof filters - 1) == 0];
}

static tn_rc f_offer(struct tn_hub *self, struct tn_message *message, struct tn_err *why)
{
    CHECK(self == &hub && message->bytes.size <= hub.size_max);
    if (!has_room()) {
        full = true;
        return tn_err_set(why, TN_AGAIN, 0, "so many a second");
    }
    if (message->table) {
        add_row(message);
    }
    if (message->sender.size > 0) {
        (void)snprintf(memo_of(message->sender), sizeof now.memos[0], "%.*s",
                       (int)message->memo.size, (const char *)message->memo.data);
    }
    message->place = ++now.place;
    return TN_OK;
}

static tn_rc f_sender(struct tn_hub *self, struct tn_bytes name, struct tn_bytes *memo,
                      uint64_t *place)
{
    CHECK(self == &hub && name.size > 0);
    if (now.place == 0) {
        return TN_ABSENT;
    }
    *memo = tn_bytes_of(memo_of(name));
    *place = now.place;
    return TN_OK;
}

static void say_room(void)
{
    if (full && has_room()) {
        full = false;
        tn_hub_say_room(&hub);
    }
}

/* ---- the doors ---- */

static struct tn_tls_config *open_tls(void)
{
    struct tn_tls_config *config = NULL;
    if (!given.tls.ca.data && !given.tls.pinned.data) {
        return NULL;
    }
    boot_tls();
    given.tls.clock = &tn_clock_system;
    CHECK_OK(tn_tls_config_make(&given.tls, &config, &err), err);
    return config;
}

static struct tn_exec *open_exec(void)
{
    static alignas(max_align_t) unsigned char memory[TN_EXEC_THREADS_SIZE];
    static void *const contexts[TN_LANE_COUNT] = {NULL};
    struct tn_exec *exec = NULL;
    CHECK_OK(tn_exec_threads_open(memory, contexts, &exec, &err), err);
    return exec;
}

static struct tn_mqtt_source *open_source(struct tn_net *net, struct tn_exec *exec)
{
    static alignas(16) unsigned char memory[ARENA_SIZE];
    static unsigned char log_memory[LOG_SIZE];
    static struct tn_log log;
    struct tn_arena arena;
    struct tn_mqtt_source *source = NULL;
    tn_log_init(&log, log_memory, sizeof log_memory, print_line, NULL);
    struct tn_mqtt_source_spec spec = {.name = "mqtt",
                                       .net = net,
                                       .hub = &hub,
                                       .log = &log,
                                       .broker = {"localhost", given.port},
                                       .tls = open_tls(),
                                       .exec = exec,
                                       .mqtt = given.spec,
                                       .routes = given.routes};
    tn_arena_init(&arena, memory, sizeof memory);
    CHECK(tn_mqtt_source_memory(&spec) <= sizeof memory);
    CHECK_OK(tn_mqtt_source_open(&source, &spec, &arena, &err), err);
    return source;
}

/* ---- options ---- */

static void add_filter(const char *text)
{
    static const char *const tables[FILTERS_MAX] = {"d.t0", "d.t1", "d.t2", "d.t3",
                                                    "d.t4", "d.t5", "d.t6", "d.t7"};
    const char *colon = strrchr(text, ':');
    uint32_t i = given.spec.filter_count++;
    CHECK(i < FILTERS_MAX);
    given.filters[i] = (struct tn_mqtt_wish){
        .filter = {(const unsigned char *)text, colon ? (size_t)(colon - text) : strlen(text)},
        .qos = (unsigned char)(colon ? colon[1] - '0' : 2)};
    given.routes[i] = (struct tn_mqtt_route){.table = tables[i]};
}

static void set_version(const char *value)
{
    given.spec.version = *value == '3' ? TN_MQTT_V3 : *value == '5' ? TN_MQTT_V5 : TN_MQTT_ANY;
}

static const struct option options[] = {
    {"port", OPTION_U16, &given.port, NULL},
    {"client", OPTION_BYTES, &given.spec.client_id, NULL},
    {"user", OPTION_BYTES, &given.spec.user, NULL},
    {"password", OPTION_BYTES, &given.spec.password, NULL},
    {"ca", OPTION_FILE, &given.tls.ca, NULL},
    {"pinned", OPTION_FILE, &given.tls.pinned, NULL},
    {"certificate", OPTION_FILE, &given.tls.certificate, NULL},
    {"key", OPTION_FILE, &given.tls.key, NULL},
    {"filter", OPTION_CALL, NULL, add_filter},
    {"version", OPTION_CALL, NULL, set_version},
    {"state", OPTION_TEXT, &given.state_path, NULL},
    {"commit", OPTION_U32, &given.commit_ms, NULL},
    {"take", OPTION_U32, &given.take_rate, NULL},
    {"input", OPTION_SIZE, &given.spec.input_size, NULL},
    {"keepalive", OPTION_U16, &given.spec.keep_alive_s, NULL},
    {"stop", OPTION_U32, &given.stop_at, NULL},
};

static void take_options(int argc, char **argv)
{
    given.spec = (struct tn_mqtt_spec){.client_id = tn_bytes_of("tarn"),
                                       .filters = given.filters,
                                       .session_expiry_s = UINT32_MAX,
                                       .keep_alive_s = 30,
                                       .in_flight = 100,
                                       .known_max = 200,
                                       .answer_ms_max = 5000,
                                       .wait_ms_min = 20,
                                       .wait_ms_max = 500};
    read_options(argc, argv, options, COUNT(options));
}

/* ---- the loop ---- */

static void say_state(enum tn_mqtt_state state, bool *ready)
{
    if (*ready != (state == TN_MQTT_READY)) {
        *ready = !*ready;
        say("%s", *ready ? "ready" : "lost");
    }
}

/* All that the broker sent was taken, kept, and answered. */
static bool is_over(const struct tn_mqtt_source_status *status)
{
    return given.stop_at > 0 && durable_count >= given.stop_at && now.place == hub.durable &&
           status->in_flight == 0 && status->state == TN_MQTT_READY;
}

int main(int argc, char **argv)
{
    take_options(argc, argv);
    hub.vtable = &(const struct tn_hub_vtable){.offer = f_offer, .sender = f_sender};
    hub.size_max = given.size_max;
    load();
    began = now_ms();
    struct tn_net *net = open_net(4);
    struct tn_exec *exec = open_exec();
    struct tn_mqtt_source *source = open_source(net, exec);
    bool ready = false;
    while (!tn_mqtt_source_stopped(source)) {
        struct tn_mqtt_source_status status;
        (void)tn_net_turn(net, TURN_MS);
        (void)tn_exec_turn(exec, false);
        commit_in_time();
        say_room();
        tn_mqtt_source_status(source, &status);
        say_state(status.state, &ready);
        if (is_over(&status)) {
            tn_mqtt_source_stop(source);
        }
    }
    close_net(net, exec);
    exec->vtable->close(exec);
    say("stopped");
    return 0;
}
