#include "base/check.h"
#include "ingest/socket_source_private.h"

enum { ACCEPT_PAUSE_MS = 1000, TIMER_MS_MAX = 3600000 };

int64_t tn_socket_now(const struct tn_socket_source *s)
{
    struct tn_clock *clock = s->spec.net->clock;
    return tn_clock_monotonic_ms(clock);
}

void tn_socket_log_some(struct tn_socket_source *s, uint64_t count, const char *what,
                        const struct tn_socket_link *link, const char *text)
{
    const char *name = link->sender[0] ? link->sender + link->prefix_size : "";
    if ((count & (count - 1)) == 0) {
        tn_log_event(s->spec.log, TN_LOG_WARN, "socket",
                     "source=%s %s=%llu peer=%s sender=\"%s\" text=\"%s\"", s->spec.name, what,
                     (unsigned long long)count, link->stream ? link->stream->peer : "?", name,
                     text);
    }
}

/* ---- time ---- */

static void start_timer(struct tn_socket_source *s)
{
    int64_t now = tn_socket_now(s);
    int64_t left = s->due_ms > now ? s->due_ms - now : 1;
    left = left < TIMER_MS_MAX ? left : TIMER_MS_MAX;
    s->timer_ms = now + left;
    tn_net_after(s->spec.net, (uint32_t)left, &s->timer);
}

/* A timer that ends too soon does no harm; one that would end too late is made anew. */
void tn_socket_wake_at(struct tn_socket_source *s, int64_t due_ms)
{
    if (due_ms >= s->due_ms) {
        return;
    }
    s->due_ms = due_ms;
    if (!tn_request_under_way(&s->timer)) {
        start_timer(s);
    } else if (due_ms < s->timer_ms) {
        tn_request_cancel(&s->timer);
    }
}

/* ---- who comes ---- */

static uint32_t count_links(const struct tn_socket_source *s, enum tn_socket_state below)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->link_count; i++) {
        count += s->links[i].state != TN_SOCKET_FREE && s->links[i].state < below;
    }
    return count;
}

static uint32_t count_open(const struct tn_socket_source *s)
{
    return count_links(s, TN_SOCKET_CLOSE + 1);
}

static struct tn_socket_link *find_free(struct tn_socket_source *s)
{
    for (uint32_t i = 0; i < s->link_count; i++) {
        if (s->links[i].state == TN_SOCKET_FREE) {
            return &s->links[i];
        }
    }
    return NULL;
}

static void accept_more(struct tn_socket_source *s)
{
    if (!s->listener || tn_request_under_way(&s->accepting) || !find_free(s)) {
        return;
    }
    if (tn_socket_now(s) < s->accept_ms) {
        tn_socket_wake_at(s, s->accept_ms);
        return;
    }
    tn_net_accept(s->listener, &s->accepting);
}

static void on_accept(struct tn_request *request)
{
    struct tn_socket_source *s = request->user;
    if (request->rc == TN_OK && s->listener) {
        struct tn_socket_link *link = find_free(s);
        TN_CHECK(link); /* or nobody would have been accepted */
        s->status.connections++;
        bool spare = count_links(s, TN_SOCKET_BYE) >= s->spec.connections;
        tn_socket_link_open(link, request->stream, spare);
    } else if (request->rc == TN_OK) {
        tn_stream_close(request->stream, NULL);
    } else {
        s->accept_ms = tn_socket_now(s) + ACCEPT_PAUSE_MS;
    }
    accept_more(s);
}

/* ---- turns ---- */

static bool is_over(const struct tn_socket_source *s)
{
    return !s->listener && count_open(s) == 0;
}

void tn_socket_link_is_free(struct tn_socket_source *s)
{
    if (is_over(s)) {
        tn_request_cancel(&s->timer);
    }
    accept_more(s);
}

/* Each time another one is the first to find room. */
static void run_all(struct tn_socket_source *s)
{
    if (is_over(s)) {
        return;
    }
    if (tn_socket_is_blocked(s) && tn_socket_now(s) >= s->retry_ms) {
        s->no_room = false;
        s->no_entry = false;
    } else if (tn_socket_is_blocked(s)) {
        tn_socket_wake_at(s, s->retry_ms);
    }
    s->turn = (s->turn + 1) % s->link_count;
    for (uint32_t i = 0; i < s->link_count; i++) {
        tn_socket_link_run(&s->links[(s->turn + i) % s->link_count]);
    }
    accept_more(s);
}

static void on_timer(struct tn_request *request)
{
    struct tn_socket_source *s = request->user;
    if (is_over(s)) {
        return;
    }
    if (tn_socket_now(s) < s->due_ms) {
        start_timer(s);
        return;
    }
    s->due_ms = INT64_MAX;
    run_all(s);
}

static struct tn_socket_source *listening(struct tn_hub_listener *ears)
{
    return (struct tn_socket_source *)(void *)((char *)ears -
                                               offsetof(struct tn_socket_source, ears));
}

static void on_room(struct tn_hub_listener *ears)
{
    struct tn_socket_source *s = listening(ears);
    s->no_room = false;
    run_all(s);
}

static void on_durable(struct tn_hub_listener *ears, uint64_t place)
{
    (void)place;
    run_all(listening(ears));
}

/* ---- the spec ---- */

static size_t line_size_max(const struct tn_socket_source_spec *spec)
{
    return spec->line_size_max > 0 ? spec->line_size_max : spec->hub->size_max;
}

static size_t input_size(const struct tn_socket_source_spec *spec)
{
    size_t size = line_size_max(spec);
    return size > TN_SOCKET_INPUT_MIN ? size : TN_SOCKET_INPUT_MIN;
}

size_t tn_socket_source_memory(const struct tn_socket_source_spec *spec)
{
    size_t pieces = 3;
    size_t links = (size_t)spec->connections + 1;
    return sizeof(struct tn_socket_source) + TN_SOCKET_GREETING_MEMORY +
           links * (sizeof(struct tn_socket_link) + input_size(spec)) +
           pieces * _Alignof(max_align_t);
}

static bool is_local(const char *host)
{
    return strcmp(host, "127.0.0.1") == 0 || strcmp(host, "::1") == 0 ||
           strcmp(host, "localhost") == 0 || strncmp(host, "unix:", 5) == 0;
}

static tn_rc check_spec(const struct tn_socket_source_spec *spec, struct tn_err *err)
{
    size_t line = line_size_max(spec);
    size_t sender = strlen("socket::") + strlen(spec->table) + TN_SOCKET_NAME_MAX;
    if (spec->input == TN_INPUT_CSV) {
        return tn_err_set(err, TN_INVALID, 0,
                          "csv has a header, which lines of a socket don't; take another form");
    }
    if (!spec->token && !is_local(spec->at.host)) {
        return tn_err_set(err, TN_INVALID, 0,
                          "socket at %s: others can reach it, so it needs a token", spec->at.host);
    }
    if (line < TN_SOCKET_LINE_MIN || line > spec->hub->size_max) {
        return tn_err_set(err, TN_INVALID, 0, "lines of %zu bytes: %d to %zu are possible", line,
                          TN_SOCKET_LINE_MIN, spec->hub->size_max);
    }
    if (sender > TN_SENDER_SIZE_MAX) {
        return tn_err_set(err, TN_INVALID, 0, "the name of table %s is too long", spec->table);
    }
    if (spec->connections == 0) {
        return tn_err_set(err, TN_INVALID, 0, "no connections: 1 is the least");
    }
    return TN_OK;
}

/* ---- begin and end ---- */

static void set_up(struct tn_socket_source *s, const struct tn_socket_source_spec *spec,
                   struct tn_socket_link *links, unsigned char *input)
{
    s->spec = *spec;
    s->links = links;
    s->link_count = spec->connections + 1;
    s->line_size_max = line_size_max(spec);
    s->input_size = input_size(spec);
    s->due_ms = INT64_MAX;
    s->accept_ms = INT64_MIN;
    s->accepting = (struct tn_request){.done = on_accept, .user = s};
    s->timer = (struct tn_request){.done = on_timer, .user = s};
    s->ears = (struct tn_hub_listener){.room = on_room, .durable = on_durable};
    for (uint32_t i = 0; i < s->link_count; i++) {
        tn_socket_link_init(&links[i], s, input + i * s->input_size);
    }
}

static tn_rc make(struct tn_socket_source **source, const struct tn_socket_source_spec *spec,
                  struct tn_arena *arena, struct tn_err *err)
{
    void *parts[3] = {NULL};
    const size_t links = (size_t)spec->connections + 1;
    const size_t sizes[3] = {sizeof **source, links * sizeof(struct tn_socket_link),
                             links * input_size(spec)};
    tn_rc rc = check_spec(spec, err);
    for (size_t i = 0; rc == TN_OK && i < 3; i++) {
        rc = tn_arena_need(arena, sizes[i], "a socket source", &parts[i], err);
    }
    if (rc) {
        return rc;
    }
    *source = parts[0];
    set_up(*source, spec, parts[1], parts[2]);
    rc = tn_socket_greeter_init(&(*source)->greeter, arena, err);
    return rc ? rc
              : tn_net_listen(spec->net, &spec->at, (*source)->link_count, &(*source)->listener,
                              err);
}

tn_rc tn_socket_source_open(struct tn_socket_source **source,
                            const struct tn_socket_source_spec *spec, struct tn_arena *arena,
                            struct tn_err *err)
{
    struct tn_socket_source *s = NULL;
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = make(&s, spec, arena, err);
    if (rc) {
        tn_arena_reset(arena, mark);
        return tn_err_in(err, "%s", spec->name);
    }
    s->port = s->listener->port;
    tn_hub_listen(spec->hub, &s->ears);
    *source = s;
    accept_more(s);
    return TN_OK;
}

uint16_t tn_socket_source_port(const struct tn_socket_source *s)
{
    return s->port;
}

void tn_socket_source_stop(struct tn_socket_source *s)
{
    if (!s->listener) {
        return;
    }
    tn_net_close_listener(s->listener);
    s->listener = NULL;
    for (uint32_t i = 0; i < s->link_count; i++) {
        tn_socket_link_stop(&s->links[i]);
    }
    tn_socket_link_is_free(s);
}

bool tn_socket_source_stopped(const struct tn_socket_source *s)
{
    return is_over(s) && !tn_request_under_way(&s->timer) && !tn_request_under_way(&s->accepting);
}

void tn_socket_source_status(const struct tn_socket_source *s,
                             struct tn_socket_source_status *status)
{
    *status = s->status;
    status->open = count_open(s);
    status->blocked = tn_socket_is_blocked(s);
}
