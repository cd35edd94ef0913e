/* A subscriber over a plain socket, as small as can be: what the session wants of a loop, and a
 * file in the place of a table. mqtt_test.py runs it against a broker, and kills it.
 *
 *     usage: mqtt_driver HOST-PORT-OPTIONS...
 *         port=N client=ID filter=F[:QOS]... [leave=F]... [version=3|5|any] [user=U password=P]
 *         state=FILE     rows and what must be known after a restart, in one file that is replaced
 *         commit=N       a commit every N ms, and a pause of as long before it is durable
 *         take=N         N messages a second at most
 *         input=BYTES    what it can hold of a packet
 *         stop=N         ends in order when N rows are durable
 *
 * A row is a line: the payload (its size, when it's cut), the topic, QoS, "retain". */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "ingest/mqtt_session.h"

enum {
    FILTERS_MAX = 8,
    STATE_MAX = 1 << 22,
    OUT_SIZE = 4096,
    INPUT_MAX = 1 << 16,
    ARENA_SIZE = 1 << 18,
    PARTS_MAX = 16,
};

static struct {
    int port;
    const char *state_path;
    int64_t commit_ms;
    int64_t take_rate;
    uint64_t stop_at;
    struct tn_mqtt_wish filters[FILTERS_MAX];
    struct tn_bytes leave[FILTERS_MAX];
    struct tn_mqtt_spec spec;
} options = {.commit_ms = 10, .take_rate = 1000000};

static struct tn_mqtt_session session;
static struct tn_err err;
static int stream = -1;
static bool connecting;
static unsigned char input[INPUT_MAX];
static size_t input_size;
static unsigned char out_memory[OUT_SIZE];
static struct tn_buf out;
static char rows[STATE_MAX];
static size_t rows_size;
static uint64_t row_count;
static uint64_t durable_count;
static size_t cut_size; /* of a commit: rows up to here */
static uint64_t cut_place;
static uint64_t cut_count;
static char cut_saved[16 * 1024];
static bool committing;
static int64_t commit_at;
static int64_t began;

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void say(const char *what)
{
    (void)printf("%s\n", what);
    (void)fflush(stdout);
}

/* ---- state: "saved\n", then rows; replaced by rename ---- */

static void load(void)
{
    FILE *file = fopen(options.state_path, "rb");
    if (!file) {
        return;
    }
    rows_size = fread(rows, 1, sizeof rows, file);
    (void)fclose(file);
    char *end = memchr(rows, '\n', rows_size);
    CHECK(end != NULL);
    struct tn_bytes saved = {(unsigned char *)rows, (size_t)(end - rows)};
    tn_rc rc = tn_mqtt_session_restore(&session, saved, &err);
    CHECK_OK(rc, err);
    rows_size -= saved.size + 1;
    memmove(rows, end + 1, rows_size);
    for (size_t i = 0; i < rows_size; i++) {
        row_count += rows[i] == '\n';
    }
    durable_count = row_count;
}

static void begin_commit(void)
{
    struct tn_buf saved;
    tn_buf_init(&saved, cut_saved, sizeof cut_saved - 1);
    cut_place = tn_mqtt_session_save(&session, &saved);
    CHECK(!saved.overflow);
    cut_saved[saved.size] = 0;
    cut_size = rows_size;
    cut_count = row_count;
    committing = true;
}

static void end_commit(void)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s.new", options.state_path);
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL);
    (void)fprintf(file, "%s\n", cut_saved);
    CHECK(fwrite(rows, 1, cut_size, file) == cut_size);
    CHECK(fclose(file) == 0 && rename(path, options.state_path) == 0);
    committing = false;
    durable_count = cut_count;
    tn_mqtt_session_durable(&session, cut_place);
}

static void commit_in_time(void)
{
    if (now_ms() < commit_at) {
        return;
    }
    if (committing) {
        end_commit();
    } else if (session.place > session.durable) {
        begin_commit();
    }
    commit_at = now_ms() + options.commit_ms;
}

/* ---- events ---- */

static bool may_take(void)
{
    return (int64_t)row_count * 1000 < (now_ms() - began + 1000) * options.take_rate;
}

static void add_row(const struct tn_mqtt_message *message)
{
    struct tn_bytes parts[PARTS_MAX];
    struct tn_buf row;
    tn_buf_init(&row, rows + rows_size, sizeof rows - rows_size);
    if (message->cut) {
        tn_buf_format(&row, "cut:%zu", message->size);
    } else {
        tn_buf_append(&row, message->payload.data, message->payload.size);
    }
    uint32_t count = tn_mqtt_topic_parts(message->topic, parts, PARTS_MAX);
    tn_buf_text(&row, " ");
    for (uint32_t i = 0; i < count && i < PARTS_MAX; i++) {
        tn_buf_text(&row, i > 0 ? "|" : "");
        tn_buf_append(&row, parts[i].data, parts[i].size);
    }
    tn_buf_format(&row, " %u%s\n", message->qos, message->retain ? " retain" : "");
    CHECK(!row.overflow);
    rows_size += row.size;
    row_count++;
}

static void tell(const struct tn_mqtt_event *event)
{
    char text[128];
    if (event->kind == TN_MQTT_CONNECTED) {
        (void)snprintf(text, sizeof text, "connected version=%d resumed=%d stranger=%d",
                       (int)session.version, event->resumed, event->stranger);
        say(text);
    } else if (event->kind == TN_MQTT_SUBSCRIBED || event->kind == TN_MQTT_LEFT) {
        (void)snprintf(text, sizeof text, "%s %u: %u",
                       event->kind == TN_MQTT_LEFT ? "left" : "subscribed", event->filter,
                       event->reason);
        say(text);
    }
}

static void read_events(void)
{
    for (;;) {
        struct tn_mqtt_event event;
        tn_rc rc = tn_mqtt_session_next(&session, (struct tn_bytes){input, input_size}, now_ms(),
                                        &event, &err);
        if (rc == TN_INVALID || rc == TN_IO) {
            say(err.text);
        }
        if (rc || (event.kind == TN_MQTT_MESSAGE && !may_take())) {
            return;
        }
        if (event.kind == TN_MQTT_MESSAGE) {
            add_row(&event.message);
            (void)tn_mqtt_session_admit(&session, &event);
        }
        tell(&event);
        memmove(input, input + event.eaten, input_size - event.eaten);
        input_size -= event.eaten;
    }
}

/* ---- the stream ---- */

static void close_stream(void)
{
    if (stream >= 0) {
        (void)close(stream);
    }
    stream = -1;
    connecting = false;
    input_size = 0;
    out.size = 0;
    if (session.state != TN_MQTT_WAIT && session.state != TN_MQTT_STOPPED) {
        tn_mqtt_session_lost(&session, now_ms());
        say("lost");
    }
}

static void open_stream(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)options.port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    stream = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK(stream >= 0);
    if (connect(stream, (struct sockaddr *)&address, sizeof address) == 0) {
        tn_mqtt_session_opened(&session, now_ms());
    } else if (errno == EINPROGRESS) {
        connecting = true;
    } else {
        close_stream();
    }
}

static void finish_connecting(void)
{
    int failed = 0;
    socklen_t size = sizeof failed;
    (void)getsockopt(stream, SOL_SOCKET, SO_ERROR, &failed, &size);
    connecting = false;
    if (failed) {
        close_stream();
    } else {
        tn_mqtt_session_opened(&session, now_ms());
    }
}

static void send_some(void)
{
    (void)tn_mqtt_session_output(&session, now_ms(), &out);
    CHECK(!out.overflow);
    ssize_t sent = out.size > 0 ? send(stream, out.data, out.size, MSG_NOSIGNAL) : 0;
    if (sent < 0 && errno != EAGAIN) {
        close_stream();
    } else if (sent > 0) {
        out.size -= (size_t)sent;
        memmove(out.data, out.data + sent, out.size);
    }
    if (session.state == TN_MQTT_CLOSING && out.size == 0) {
        close_stream();
    }
}

static void receive_some(void)
{
    size_t room = options.spec.input_size - input_size;
    ssize_t got = room > 0 ? recv(stream, input + input_size, room, 0) : -1;
    if (got == 0 || (got < 0 && room > 0 && errno != EAGAIN)) {
        close_stream();
    } else if (got > 0) {
        input_size += (size_t)got;
    }
}

static void turn(void)
{
    bool open = false;
    tn_rc rc = tn_mqtt_session_tick(&session, now_ms(), &open, &err);
    if (rc) {
        say(err.text);
    }
    if (open) {
        open_stream();
    }
    struct pollfd wait = {.fd = stream,
                          .events = (short)((connecting || out.size > 0 ? POLLOUT : 0) | POLLIN)};
    (void)poll(&wait, stream >= 0, 2);
    if (connecting && (wait.revents & (POLLOUT | POLLERR | POLLHUP)) != 0) {
        finish_connecting();
    }
    if (stream < 0 || connecting) {
        return;
    }
    receive_some();
    if (stream >= 0) {
        read_events();
        send_some();
    }
}

/* ---- options ---- */

static void add_filter(const char *text)
{
    const char *colon = strrchr(text, ':');
    CHECK(options.spec.filter_count < FILTERS_MAX);
    options.filters[options.spec.filter_count++] = (struct tn_mqtt_wish){
        .filter = {(const unsigned char *)text, colon ? (size_t)(colon - text) : strlen(text)},
        .qos = (unsigned char)(colon ? colon[1] - '0' : 2)};
}

static void set_option(const char *name, const char *value)
{
    struct tn_mqtt_spec *spec = &options.spec;
    long number = strtol(value, NULL, 10);
    if (strcmp(name, "port") == 0) {
        options.port = (int)number;
    } else if (strcmp(name, "client") == 0) {
        spec->client_id = tn_bytes_of(value);
    } else if (strcmp(name, "filter") == 0) {
        add_filter(value);
    } else if (strcmp(name, "leave") == 0) {
        options.leave[spec->leave_count++] = tn_bytes_of(value);
    } else if (strcmp(name, "version") == 0) {
        spec->version = number == 3 ? TN_MQTT_V3 : number == 5 ? TN_MQTT_V5 : TN_MQTT_ANY;
    } else if (strcmp(name, "user") == 0) {
        spec->user = tn_bytes_of(value);
    } else if (strcmp(name, "password") == 0) {
        spec->password = tn_bytes_of(value);
    } else if (strcmp(name, "state") == 0) {
        options.state_path = value;
    } else if (strcmp(name, "commit") == 0) {
        options.commit_ms = number;
    } else if (strcmp(name, "take") == 0) {
        options.take_rate = number;
    } else if (strcmp(name, "input") == 0) {
        spec->input_size = (size_t)number;
    } else if (strcmp(name, "keepalive") == 0) {
        spec->keep_alive_s = (uint16_t)number;
    } else if (strcmp(name, "stop") == 0) {
        options.stop_at = (uint64_t)number;
    } else {
        (void)fprintf(stderr, "option '%s' is unknown\n", name);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    static _Alignas(16) unsigned char memory[ARENA_SIZE];
    struct tn_arena arena;
    options.spec = (struct tn_mqtt_spec){.client_id = tn_bytes_of("tarn"),
                                         .filters = options.filters,
                                         .leave = options.leave,
                                         .session_expiry_s = UINT32_MAX,
                                         .keep_alive_s = 30,
                                         .in_flight = 100,
                                         .known_max = 200,
                                         .answer_ms_max = 5000,
                                         .wait_ms_min = 20,
                                         .wait_ms_max = 500,
                                         .input_size = 8192,
                                         .seed = (uint64_t)getpid()};
    for (int i = 1; i < argc; i++) {
        char *equal = strchr(argv[i], '=');
        CHECK(equal != NULL);
        *equal = 0;
        set_option(argv[i], equal + 1);
    }
    tn_arena_init(&arena, memory, sizeof memory);
    tn_buf_init(&out, out_memory, sizeof out_memory);
    tn_rc rc = tn_mqtt_session_init(&session, &options.spec, &arena, &err);
    CHECK_OK(rc, err);
    load();
    began = now_ms();
    while (session.state != TN_MQTT_STOPPED) {
        turn();
        commit_in_time();
        bool idle = session.place == session.durable && session.known_count == 0;
        if (options.stop_at > 0 && durable_count >= options.stop_at && idle &&
            session.state == TN_MQTT_READY) {
            tn_mqtt_session_stop(&session);
        }
    }
    say("stopped");
    return 0;
}
