#include "base/check.h"
#include "ingest/mqtt_source_private.h"

enum {
    ANSWER_MS = 20000,
    WAIT_MS_MIN = 500,
    WAIT_MS_MAX = 60000,
    OUT_SIZE_MIN = 1024, /* some hundred acknowledgements in one write */
    TIMER_MS_MAX = 3600000,
};

/* ---- the spec ---- */

static uint32_t or_else(uint32_t value, uint32_t otherwise)
{
    return value > 0 ? value : otherwise;
}

static struct tn_mqtt_spec complete(const struct tn_mqtt_source_spec *spec)
{
    struct tn_mqtt_spec mqtt = spec->mqtt;
    struct tn_clock *clock = spec->net->clock;
    mqtt.known_max = or_else(mqtt.known_max, TN_MQTT_SOURCE_KNOWN_MAX);
    mqtt.answer_ms_max = or_else(mqtt.answer_ms_max, ANSWER_MS);
    mqtt.wait_ms_min = or_else(mqtt.wait_ms_min, WAIT_MS_MIN);
    mqtt.wait_ms_max = or_else(mqtt.wait_ms_max, WAIT_MS_MAX);
    if (mqtt.input_size == 0) {
        mqtt.input_size = spec->hub->size_max + TN_MQTT_SOURCE_HEAD_SIZE;
    }
    mqtt.leave = NULL;
    mqtt.leave_count = 0;
    mqtt.seed = mqtt.seed ? mqtt.seed : clock->vtable->random(clock);
    return mqtt;
}

static size_t out_size(const struct tn_mqtt_spec *mqtt)
{
    size_t size = tn_mqtt_session_output_size(mqtt);
    return size > OUT_SIZE_MIN ? size : OUT_SIZE_MIN;
}

size_t tn_mqtt_source_memory(const struct tn_mqtt_source_spec *spec)
{
    size_t pieces = 4;
    struct tn_mqtt_spec mqtt = complete(spec);
    return sizeof(struct tn_mqtt_source) + mqtt.input_size + out_size(&mqtt) + TN_MEMO_SIZE_MAX +
           pieces * _Alignof(max_align_t) + tn_mqtt_session_memory(&mqtt) + tn_mqtt_leave_memory();
}

void tn_mqtt_source_sender(const struct tn_mqtt_source_spec *spec, const char *kind,
                           char sender[TN_MQTT_SENDER_MAX])
{
    const struct tn_bytes id = spec->mqtt.client_id;
    struct tn_buf buf;
    tn_buf_init(&buf, sender, TN_SENDER_SIZE_MAX);
    tn_buf_format(&buf, "%s:", kind);
    tn_buf_append(&buf, id.data, id.size);
    tn_buf_format(&buf, "@%s:%u", spec->broker.host, spec->broker.port);
    sender[buf.overflow ? 0 : buf.size] = 0; /* too long: open refuses it */
}

int64_t tn_mqtt_source_now(const struct tn_mqtt_source *s)
{
    struct tn_clock *clock = s->spec.net->clock;
    return tn_clock_monotonic_ms(clock);
}

void tn_mqtt_source_failed(struct tn_mqtt_source *s, struct tn_err *err, bool lasting)
{
    (void)tn_err_in(err, "%s", s->spec.name);
    s->status.err = *err;
    s->status.failures++;
    tn_log_err(s->spec.log, lasting ? TN_LOG_ERROR : TN_LOG_WARN, "mqtt", err);
}

/* ---- the stream ---- */

static void run(struct tn_mqtt_source *s);

static void start_timer(struct tn_mqtt_source *s, int64_t due_ms)
{
    int64_t now = tn_mqtt_source_now(s);
    int64_t left = due_ms > now ? due_ms - now : 1;
    left = left < TIMER_MS_MAX ? left : TIMER_MS_MAX;
    s->timer_ms = now + left;
    tn_net_after(s->spec.net, (uint32_t)left, &s->timer);
}

static void back_to_wait(struct tn_mqtt_source *s)
{
    s->stream = NULL;
    s->step = TN_MQTT_STEP_WAIT;
    tn_mqtt_session_lost(&s->session, tn_mqtt_source_now(s));
    run(s);
}

static void on_closed(struct tn_request *request)
{
    struct tn_mqtt_source *s = request->user;
    TN_CHECK(!tn_request_under_way(&s->reading));
    TN_CHECK(!tn_request_under_way(&s->writing));
    back_to_wait(s);
}

static void close_stream(struct tn_mqtt_source *s)
{
    s->step = TN_MQTT_STEP_CLOSE;
    tn_stream_close(s->stream, &s->closing);
}

static void on_read(struct tn_request *request)
{
    struct tn_mqtt_source *s = request->user;
    if (s->step != TN_MQTT_STEP_OPEN) {
        return;
    }
    struct tn_err err = request->err;
    if (request->rc == TN_OK && request->moved == 0) {
        (void)tn_err_set(&err, TN_IO, 0, "the broker closed the connection");
    }
    if (request->rc || request->moved == 0) {
        tn_mqtt_source_failed(s, &err, false);
        close_stream(s);
        return;
    }
    s->input_end += request->moved;
    run(s);
}

static void on_written(struct tn_request *request)
{
    struct tn_mqtt_source *s = request->user;
    if (s->step != TN_MQTT_STEP_OPEN) {
        return;
    }
    if (request->rc) {
        tn_mqtt_source_failed(s, &request->err, false);
        close_stream(s);
        return;
    }
    run(s);
}

static void stream_is_open(struct tn_mqtt_source *s)
{
    s->step = TN_MQTT_STEP_OPEN;
    s->input_first = 0;
    s->input_end = 0;
    tn_mqtt_session_opened(&s->session, tn_mqtt_source_now(s));
    run(s);
}

/* A certificate that isn't trusted is somebody's mistake, and won't pass by itself. */
static void on_opened(struct tn_request *request)
{
    struct tn_mqtt_source *s = request->user;
    if (request->rc) {
        if (request->rc != TN_CANCELED) {
            tn_mqtt_source_failed(s, &request->err, request->rc == TN_INVALID);
        }
        back_to_wait(s);
        return;
    }
    s->stream = request->stream;
    if (s->session.state == TN_MQTT_CLOSING) { /* `stop` came first */
        close_stream(s);
    } else if (s->spec.tls && s->step == TN_MQTT_STEP_CONNECT) {
        s->step = TN_MQTT_STEP_SECURE;
        tn_tls_open(s->spec.tls, s->spec.exec, s->stream, s->spec.broker.host, &s->opening);
    } else {
        stream_is_open(s);
    }
}

static void connect_stream(struct tn_mqtt_source *s)
{
    s->step = TN_MQTT_STEP_CONNECT;
    tn_net_connect(s->spec.net, &s->spec.broker, &s->opening);
}

/* ---- a turn ---- */

static void read_more(struct tn_mqtt_source *s)
{
    if (tn_request_under_way(&s->reading)) {
        return; /* it puts its bytes where they were when it began */
    }
    if (s->input_first > 0) {
        memmove(s->input, s->input + s->input_first, s->input_end - s->input_first);
        s->input_end -= s->input_first;
        s->input_first = 0;
    }
    if (s->input_end < s->spec.mqtt.input_size) {
        tn_stream_read(s->stream, s->input + s->input_end, s->spec.mqtt.input_size - s->input_end,
                       &s->reading);
    }
}

/* An id that was given up on the way out is no longer what the memo says. */
static void write_more(struct tn_mqtt_source *s)
{
    if (tn_request_under_way(&s->writing)) {
        return;
    }
    uint64_t place = s->session.place;
    s->out.size = 0;
    (void)tn_mqtt_session_output(&s->session, tn_mqtt_source_now(s), &s->out);
    TN_CHECK(!s->out.overflow);
    s->memo_due = s->memo_due || s->session.place > place;
    if (s->out.size > 0) {
        tn_stream_write(s->stream, tn_buf_bytes(&s->out), &s->writing);
    }
}

/* What was known before is durable, and what is asked for is known. Later it never waits. */
static bool may_connect(const struct tn_mqtt_source *s)
{
    bool first = s->session.connections == 0;
    return s->spec.hub->durable >= s->since && !(first && s->filters_due);
}

static void tick(struct tn_mqtt_source *s)
{
    struct tn_err err;
    bool open = false;
    if (!may_connect(s)) {
        return;
    }
    tn_rc rc = tn_mqtt_session_tick(&s->session, tn_mqtt_source_now(s), &open, &err);
    if (rc) {
        tn_mqtt_source_failed(s, &err, false);
    }
    if (open) {
        connect_stream(s);
    }
}

static int64_t due_of(const struct tn_mqtt_source *s)
{
    bool ticks = s->step == TN_MQTT_STEP_OPEN || s->step == TN_MQTT_STEP_WAIT;
    int64_t due = ticks && may_connect(s) ? tn_mqtt_session_due(&s->session) : INT64_MAX;
    return s->block != TN_MQTT_FREE && s->retry_ms < due ? s->retry_ms : due;
}

/* A timer that ends too soon does no harm; one that would end too late is made anew. */
static void set_timer(struct tn_mqtt_source *s)
{
    int64_t due = due_of(s);
    if (due < s->timer_ms) {
        tn_request_cancel(&s->timer);
    }
    if (due != INT64_MAX && !tn_request_under_way(&s->timer)) {
        start_timer(s, due);
    }
}

/* Everything that can be done now. One that is stopped says nothing any more: there may be another
 * source for the same sender. */
static void run(struct tn_mqtt_source *s)
{
    if (s->session.state == TN_MQTT_STOPPED) {
        tn_request_cancel(&s->timer);
        return;
    }
    if (s->block != TN_MQTT_FREE && tn_mqtt_source_now(s) >= s->retry_ms) {
        s->block = TN_MQTT_FREE;
    }
    tn_mqtt_source_settle(s);
    tn_mqtt_leave_keep(s);
    if (s->step == TN_MQTT_STEP_OPEN) {
        tn_mqtt_source_take(s);
        tn_mqtt_source_settle(s);
    }
    if (s->step == TN_MQTT_STEP_OPEN || s->step == TN_MQTT_STEP_WAIT) {
        tick(s);
    }
    if (s->step == TN_MQTT_STEP_OPEN) {
        write_more(s);
        read_more(s);
    }
    tn_mqtt_source_keep_memo(s);
    if (s->step == TN_MQTT_STEP_OPEN && s->session.state == TN_MQTT_CLOSING &&
        !tn_request_under_way(&s->writing)) {
        close_stream(s);
    }
    set_timer(s);
}

static void on_timer(struct tn_request *request)
{
    run(request->user);
}

/* ---- the hub ---- */

static struct tn_mqtt_source *listening(struct tn_hub_listener *listener)
{
    return (struct tn_mqtt_source *)(void *)((char *)listener -
                                             offsetof(struct tn_mqtt_source, listener));
}

static void on_room(struct tn_hub_listener *listener)
{
    struct tn_mqtt_source *s = listening(listener);
    s->block = s->block == TN_MQTT_NO_ROOM ? TN_MQTT_FREE : s->block;
    run(s);
}

static void on_durable(struct tn_hub_listener *listener, uint64_t place)
{
    (void)place;
    run(listening(listener));
}

/* ---- begin and end ---- */

static tn_rc check_filters(const struct tn_mqtt_spec *mqtt, struct tn_err *err)
{
    for (uint32_t i = 0; i < mqtt->filter_count; i++) {
        struct tn_bytes b = mqtt->filters[i].filter;
        if (b.size > 0 && memchr(b.data, '\n', b.size)) {
            return tn_err_set(err, TN_INVALID, 0, "filter %u has a line end", i);
        }
        for (uint32_t j = 0; j < i; j++) {
            struct tn_bytes a = mqtt->filters[j].filter;
            if (tn_mqtt_filters_overlap(a, b)) {
                return tn_err_set(err, TN_INVALID, 0,
                                  "filters '%.*s' and '%.*s' overlap: a broker sends messages of "
                                  "both once or twice, as it likes; give one a source of its own, "
                                  "with another client id",
                                  (int)a.size, (const char *)a.data, (int)b.size,
                                  (const char *)b.data);
            }
        }
    }
    return TN_OK;
}

static tn_rc check_spec(const struct tn_mqtt_source_spec *spec, const struct tn_mqtt_spec *mqtt,
                        struct tn_err *err)
{
    if (mqtt->known_max > TN_MQTT_SOURCE_KNOWN_MAX) {
        return tn_err_set(err, TN_INVALID, 0, "known_max %u: at most %d ids fit a memo",
                          mqtt->known_max, TN_MQTT_SOURCE_KNOWN_MAX);
    }
    size_t size = strlen("mqtt-filters:@:65535") + mqtt->client_id.size + strlen(spec->broker.host);
    if (size > TN_SENDER_SIZE_MAX) {
        return tn_err_set(err, TN_INVALID, 0,
                          "client id and host are too long together: %d bytes are the most",
                          TN_SENDER_SIZE_MAX);
    }
    return check_filters(mqtt, err);
}

static tn_rc take_buffers(struct tn_mqtt_source *s, struct tn_arena *arena, struct tn_err *err)
{
    const struct tn_mqtt_spec *mqtt = &s->spec.mqtt;
    const size_t sizes[] = {mqtt->input_size, out_size(mqtt), TN_MEMO_SIZE_MAX};
    void *parts[] = {NULL, NULL, NULL};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        tn_rc rc = tn_arena_need(arena, sizes[i], "MQTT source", &parts[i], err);
        if (rc) {
            return rc;
        }
    }
    s->input = parts[0];
    tn_buf_init(&s->out, parts[1], sizes[1]);
    s->memo = parts[2];
    return TN_OK;
}

static tn_rc make(struct tn_mqtt_source **source, const struct tn_mqtt_source_spec *spec,
                  struct tn_arena *arena, struct tn_err *err)
{
    void *memory = NULL;
    struct tn_mqtt_spec mqtt = complete(spec);
    tn_rc rc = check_spec(spec, &mqtt, err);
    rc = rc ? rc : tn_arena_need(arena, sizeof **source, "MQTT source", &memory, err);
    if (rc) {
        return rc;
    }
    struct tn_mqtt_source *s = memory;
    s->spec = *spec;
    s->spec.mqtt = mqtt;
    *source = s;
    rc = tn_mqtt_leave_find(s, arena, err);
    rc = rc ? rc : take_buffers(s, arena, err);
    return rc ? rc : tn_mqtt_session_init(&s->session, &s->spec.mqtt, arena, err);
}

static tn_rc remember(struct tn_mqtt_source *s, struct tn_err *err)
{
    struct tn_bytes memo = {0};
    uint64_t place = 0;
    tn_mqtt_source_sender(&s->spec, "mqtt", s->sender);
    tn_rc rc = tn_hub_sender(s->spec.hub, tn_bytes_of(s->sender), &memo, &place);
    if (rc == TN_ABSENT) {
        return TN_OK;
    }
    if (rc) {
        return tn_err_set(err, rc, 0, "memo of %s: %s", s->sender, tn_rc_text(rc));
    }
    s->memo_kept = true;
    s->since = place > s->since ? place : s->since;
    s->last = s->since;
    rc = tn_mqtt_session_restore(&s->session, memo, err);
    return rc ? tn_err_in(err, "memo of %s", s->sender) : TN_OK;
}

static void set_up_requests(struct tn_mqtt_source *s)
{
    uint32_t answer_ms = s->spec.mqtt.answer_ms_max;
    s->opening = (struct tn_request){.done = on_opened, .user = s, .timeout_ms = answer_ms};
    s->reading = (struct tn_request){.done = on_read, .user = s};
    s->writing = (struct tn_request){.done = on_written, .user = s, .timeout_ms = answer_ms};
    s->closing = (struct tn_request){.done = on_closed, .user = s};
    s->timer = (struct tn_request){.done = on_timer, .user = s};
}

tn_rc tn_mqtt_source_open(struct tn_mqtt_source **source, const struct tn_mqtt_source_spec *spec,
                          struct tn_arena *arena, struct tn_err *err)
{
    struct tn_mqtt_source *s = NULL;
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = make(&s, spec, arena, err);
    if (rc == TN_OK) {
        rc = remember(s, err);
    }
    if (rc) {
        tn_arena_reset(arena, mark);
        return tn_err_in(err, "%s", spec->name);
    }
    set_up_requests(s);
    s->listener = (struct tn_hub_listener){.room = on_room, .durable = on_durable};
    tn_hub_listen(spec->hub, &s->listener);
    *source = s;
    run(s);
    return TN_OK;
}

void tn_mqtt_source_stop(struct tn_mqtt_source *s)
{
    if (s->session.stopping) {
        return;
    }
    tn_mqtt_session_stop(&s->session);
    if (tn_request_under_way(&s->opening)) {
        tn_request_cancel(&s->opening);
    }
    run(s);
}

bool tn_mqtt_source_stopped(const struct tn_mqtt_source *s)
{
    return s->session.state == TN_MQTT_STOPPED && s->step == TN_MQTT_STEP_WAIT &&
           !tn_request_under_way(&s->timer);
}

void tn_mqtt_source_status(const struct tn_mqtt_source *s, struct tn_mqtt_source_status *status)
{
    *status = s->status;
    status->state = s->session.state;
    status->blocked = s->block != TN_MQTT_FREE;
    status->in_flight = s->session.known_count;
    status->overruns = s->session.overruns;
}
