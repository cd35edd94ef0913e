#include <stdio.h>

#include "base/check.h"
#include "base/hash.h"
#include "ingest/socket_source_private.h"

enum {
    SECURE_MS = 10000,
    GREET_MS = 10000, /* where there has to be a greeting */
    LAST_MS = 10000,  /* for who sends no more to read its answers */
    BYE_MS = 1000,
};

static void close_link(struct tn_socket_link *link)
{
    link->state = TN_SOCKET_CLOSE;
    tn_stream_close(link->stream, &link->closing);
}

/* ---- answers ---- */

static bool speaks(const struct tn_socket_link *link)
{
    return link->state == TN_SOCKET_OPEN || link->state == TN_SOCKET_LAST ||
           link->state == TN_SOCKET_BYE;
}

static void put_received(struct tn_socket_link *link, struct tn_buf *out)
{
    bool greeting = link->greeted && !link->answered && link->state != TN_SOCKET_BYE;
    if (greeting && link->sender[0]) {
        tn_buf_format(out, "{\"sender\":\"%s\",", link->sender + link->prefix_size);
    } else if (greeting || link->durable > link->told) {
        tn_buf_text(out, "{");
    } else {
        return;
    }
    tn_buf_format(out, "\"received\":%llu}\n", (unsigned long long)link->durable);
    link->answered = link->answered || greeting;
    link->told = link->durable;
}

static void put_error(struct tn_socket_link *link, struct tn_buf *out)
{
    if (link->state == TN_SOCKET_BYE && !link->said) {
        tn_buf_format(out, "{\"error\":\"%s\"}\n", link->why);
        link->said = true;
    }
}

static void write_more(struct tn_socket_link *link)
{
    struct tn_buf out;
    if (link->mute || link->finished || !speaks(link) || tn_request_under_way(&link->writing)) {
        return;
    }
    tn_buf_init(&out, link->out, sizeof link->out);
    put_received(link, &out);
    put_error(link, &out);
    TN_CHECK(!out.overflow);
    if (out.size > 0) {
        tn_stream_write(link->stream, tn_buf_bytes(&out), &link->writing);
    } else if (link->state == TN_SOCKET_BYE) {
        link->finished = true;
        tn_stream_finish(link->stream, &link->writing);
    }
}

/* As a text of JSON. */
static void set_why(struct tn_socket_link *link, const char *why)
{
    (void)snprintf(link->why, sizeof link->why, "%s", why);
    for (char *c = link->why; *c; c++) {
        if (*c == '"') {
            *c = '\'';
        } else if (*c < ' ' || *c > '~' || *c == '\\') {
            *c = '?';
        }
    }
}

static void begin_bye(struct tn_socket_link *link)
{
    link->state = TN_SOCKET_BYE;
    link->until_ms = tn_socket_now(link->source) + BYE_MS;
    tn_socket_wake_at(link->source, link->until_ms);
    write_more(link);
}

void tn_socket_link_bye(struct tn_socket_link *link, const char *why)
{
    set_why(link, why);
    begin_bye(link);
}

static void turn_away(struct tn_socket_link *link, const char *why)
{
    struct tn_socket_source *s = link->source;
    tn_socket_log_some(s, ++s->status.turned_away, "turned_away", link, why);
    tn_socket_link_bye(link, why);
}

/* ---- the greeting ---- */

static struct tn_socket_link *find_older(const struct tn_socket_link *link)
{
    struct tn_socket_source *s = link->source;
    for (uint32_t i = 0; i < s->link_count; i++) {
        struct tn_socket_link *other = &s->links[i];
        bool lives = other->state == TN_SOCKET_KNOWN || other->state == TN_SOCKET_OPEN ||
                     other->state == TN_SOCKET_LAST;
        if (other != link && lives && strcmp(other->sender, link->sender) == 0) {
            return other;
        }
    }
    return NULL;
}

static void name_sender(struct tn_socket_link *link, struct tn_bytes name)
{
    struct tn_buf sender;
    tn_buf_init(&sender, link->sender, TN_SENDER_SIZE_MAX);
    tn_buf_format(&sender, "socket:%s:", link->source->spec.table);
    link->prefix_size = sender.size;
    tn_buf_append(&sender, name.data, name.size);
    TN_CHECK(!sender.overflow);
    link->sender[sender.size] = 0;
}

/* Where the line behind the greeting is not the next one. */
static void begin_at(struct tn_socket_link *link, uint64_t first)
{
    if (first > 0 && first - 1 > link->count) {
        link->count = first - 1;
    } else if (first > 0) {
        link->skip = link->count - (first - 1);
    }
    link->last = link->since;
    link->durable = link->count;
    link->told = link->count;
}

/* Somebody has a name. Lines of the older connection that the hub has are known by their memo;
 * those that it hasn't will come again. */
static void enter(struct tn_socket_link *link, const struct tn_socket_greeting *greeting)
{
    struct tn_socket_source *s = link->source;
    struct tn_err err;
    name_sender(link, greeting->sender);
    struct tn_socket_link *older = find_older(link);
    if (link->spare && !older) {
        turn_away(link, "there are too many connections");
        return;
    }
    link->spare = false;
    if (older) {
        s->status.replaced++;
        tn_socket_link_bye(older, "a newer connection is this sender now");
    }
    if (tn_socket_remember(link, &err)) {
        turn_away(link, err.text);
        return;
    }
    begin_at(link, greeting->first);
    link->state = TN_SOCKET_KNOWN;
}

/* Tokens and names are checked in this order, so that nobody learns of names without the token. */
static void read_greeting(struct tn_socket_link *link, struct tn_bytes line)
{
    struct tn_socket_source *s = link->source;
    struct tn_socket_greeting greeting;
    struct tn_err err;
    if (tn_socket_greeting_read(&s->greeter, line, &greeting, &err)) {
        turn_away(link, err.text);
    } else if (s->spec.token && !tn_hash_is_secret(greeting.token, tn_bytes_of(s->spec.token))) {
        turn_away(link, "the greeting doesn't have the token");
    } else if (greeting.sender.size > 0) {
        link->greeted = true;
        enter(link, &greeting);
    } else if (link->spare) {
        turn_away(link, "there are too many connections");
    } else {
        link->greeted = true;
        link->state = TN_SOCKET_OPEN;
    }
}

static void greet(struct tn_socket_link *link)
{
    struct tn_bytes rest = {link->input + link->first, link->end - link->first};
    if (!tn_socket_may_greet(rest)) {
        if (link->source->spec.token || link->spare) {
            turn_away(link, link->spare ? "there are too many connections"
                                        : "the first line must be: tarn {\"token\":\"...\"}");
        } else {
            link->state = TN_SOCKET_OPEN;
        }
        return;
    }
    const unsigned char *newline = rest.size > 0 ? memchr(rest.data, '\n', rest.size) : NULL;
    size_t size = newline ? (size_t)(newline - rest.data) : rest.size;
    if (size > TN_SOCKET_GREETING_MAX) {
        turn_away(link, "the greeting is too long");
    } else if (newline) {
        link->first += size + 1;
        link->seen = link->first;
        size -= size > 0 && newline[-1] == '\r';
        read_greeting(link, (struct tn_bytes){rest.data, size});
    }
}

/* ---- the stream ---- */

static void go_on(struct tn_socket_link *link)
{
    tn_socket_link_run(link);
}

static void became_free(struct tn_socket_link *link)
{
    link->state = TN_SOCKET_FREE;
    link->stream = NULL;
    tn_socket_link_is_free(link->source);
}

static void on_closed(struct tn_request *request)
{
    struct tn_socket_link *link = request->user;
    TN_CHECK(!tn_request_under_way(&link->reading));
    TN_CHECK(!tn_request_under_way(&link->writing));
    became_free(link);
}

/* Nothing is owed, and nothing is on its way. */
static bool is_idle(const struct tn_socket_link *link)
{
    return link->state == TN_SOCKET_GREET ||
           (link->state == TN_SOCKET_OPEN && link->span_count == 0 &&
            !tn_socket_is_blocked(link->source));
}

/* Lines that have arrived are taken, whatever became of the connection behind them: who never reads
 * answers resets it just by closing. */
static void has_ended(struct tn_socket_link *link, bool cut)
{
    link->eof = true;
    link->mute = link->mute || cut;
    if (link->state == TN_SOCKET_GREET) {
        close_link(link);
    } else if (link->state == TN_SOCKET_OPEN) {
        link->state = TN_SOCKET_LAST;
        link->until_ms = INT64_MAX;
    }
}

static void on_read(struct tn_request *request)
{
    struct tn_socket_link *link = request->user;
    if (link->state == TN_SOCKET_CLOSE) {
        return;
    }
    if (request->rc == TN_AGAIN) {
        if (is_idle(link)) {
            tn_socket_link_bye(link, "nothing came for too long");
        }
    } else if (request->rc || request->moved == 0) {
        has_ended(link, request->rc != TN_OK);
    } else {
        link->end += request->moved;
    }
    go_on(link);
}

static void on_written(struct tn_request *request)
{
    struct tn_socket_link *link = request->user;
    if (link->state != TN_SOCKET_CLOSE) {
        link->mute = link->mute || request->rc != TN_OK;
        go_on(link);
    }
}

static void read_more(struct tn_socket_link *link)
{
    const struct tn_socket_source *s = link->source;
    bool opens = link->state == TN_SOCKET_OPEN && !tn_socket_is_blocked(s);
    bool wanted = opens || link->state == TN_SOCKET_GREET || link->state == TN_SOCKET_BYE;
    if (!wanted || link->eof || tn_request_under_way(&link->reading)) {
        return; /* one that is under way puts its bytes where they were when it began */
    }
    if (link->state == TN_SOCKET_BYE) {
        link->end = link->first;
    }
    if (link->first > 0) {
        memmove(link->input, link->input + link->first, link->end - link->first);
        link->end -= link->first;
        link->seen -= link->first;
        link->first = 0;
    }
    TN_CHECK(link->end < s->input_size);
    tn_stream_read(link->stream, link->input + link->end, s->input_size - link->end,
                   &link->reading);
}

static void stream_is_open(struct tn_socket_link *link)
{
    bool must_greet = link->source->spec.token || link->spare;
    link->state = TN_SOCKET_GREET;
    link->until_ms = must_greet ? tn_socket_now(link->source) + GREET_MS : INT64_MAX;
    go_on(link);
}

static void on_secure(struct tn_request *request)
{
    struct tn_socket_link *link = request->user;
    struct tn_socket_source *s = link->source;
    if (request->rc == TN_OK) {
        link->stream = request->stream;
        if (s->listener) {
            stream_is_open(link);
        } else {
            close_link(link);
        }
        return;
    }
    link->stream = NULL; /* it was closed */
    if (request->rc != TN_CANCELED) {
        tn_socket_log_some(s, ++s->status.turned_away, "turned_away", link, request->err.text);
    }
    became_free(link);
}

/* ---- a turn ---- */

/* All was taken, and told to whoever listens. */
static bool is_done(const struct tn_socket_link *link)
{
    bool told = link->span_count == 0 && link->told == link->durable &&
                (link->answered || !link->greeted) && !tn_request_under_way(&link->writing);
    return !tn_socket_is_blocked(link->source) && (link->mute || told);
}

/* All is durable, and what tells so isn't read. */
static bool is_late(struct tn_socket_link *link)
{
    struct tn_socket_source *s = link->source;
    if (link->span_count > 0 || tn_socket_is_blocked(s)) {
        link->until_ms = INT64_MAX;
        return false;
    }
    if (link->until_ms == INT64_MAX) {
        link->until_ms = tn_socket_now(s) + LAST_MS;
    }
    tn_socket_wake_at(s, link->until_ms);
    return tn_socket_now(s) >= link->until_ms;
}

static void end_in_order(struct tn_socket_link *link)
{
    link->source->status.unfinished += link->end > link->first;
    link->said = true; /* there is no error */
    begin_bye(link);
}

static void keep_time(struct tn_socket_link *link)
{
    struct tn_socket_source *s = link->source;
    bool timed = link->state == TN_SOCKET_GREET || link->state == TN_SOCKET_BYE;
    if (!timed || link->until_ms == INT64_MAX) {
        return;
    }
    if (tn_socket_now(s) < link->until_ms) {
        tn_socket_wake_at(s, link->until_ms);
    } else if (link->state == TN_SOCKET_BYE) {
        close_link(link);
    } else {
        turn_away(link, "no greeting came");
    }
}

static bool has_said_bye(const struct tn_socket_link *link)
{
    return link->state == TN_SOCKET_BYE && !tn_request_under_way(&link->writing) &&
           (link->mute || (link->eof && link->finished));
}

static void use_input(struct tn_socket_link *link)
{
    if (link->state == TN_SOCKET_GREET) {
        greet(link);
    }
    if (link->state == TN_SOCKET_KNOWN && link->source->spec.hub->durable >= link->since) {
        link->state = TN_SOCKET_OPEN;
    }
    if (link->state == TN_SOCKET_OPEN || link->state == TN_SOCKET_LAST) {
        tn_socket_take(link);
        tn_socket_settle(link);
    }
}

void tn_socket_link_run(struct tn_socket_link *link)
{
    if (link->state < TN_SOCKET_GREET || link->state == TN_SOCKET_CLOSE) {
        return;
    }
    tn_socket_settle(link);
    use_input(link);
    write_more(link);
    if (link->state == TN_SOCKET_LAST && (is_done(link) || is_late(link))) {
        end_in_order(link);
    }
    keep_time(link);
    if (has_said_bye(link)) {
        close_link(link);
    }
    read_more(link);
}

void tn_socket_link_stop(struct tn_socket_link *link)
{
    if (link->state == TN_SOCKET_SECURE) {
        tn_request_cancel(&link->opening);
    } else if (link->state >= TN_SOCKET_GREET && link->state < TN_SOCKET_BYE) {
        tn_socket_settle(link);
        tn_socket_link_bye(link, "the server stops");
        go_on(link);
    }
}

/* ---- begin ---- */

void tn_socket_link_init(struct tn_socket_link *link, struct tn_socket_source *source,
                         unsigned char *input)
{
    link->source = source;
    link->input = input;
    link->state = TN_SOCKET_FREE;
}

void tn_socket_link_open(struct tn_socket_link *link, struct tn_stream *stream, bool spare)
{
    struct tn_socket_source *s = link->source;
    unsigned char *input = link->input;
    *link = (struct tn_socket_link){.source = s, .input = input, .stream = stream, .spare = spare};
    link->opening = (struct tn_request){.done = on_secure, .user = link, .timeout_ms = SECURE_MS};
    link->reading =
        (struct tn_request){.done = on_read, .user = link, .timeout_ms = s->spec.idle_ms};
    link->writing = (struct tn_request){.done = on_written, .user = link};
    link->closing = (struct tn_request){.done = on_closed, .user = link};
    if (s->spec.tls) {
        link->state = TN_SOCKET_SECURE;
        tn_tls_open(s->spec.tls, s->spec.exec, stream, NULL, &link->opening);
    } else {
        stream_is_open(link);
    }
}
