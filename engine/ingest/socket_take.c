#include "base/check.h"
#include "ingest/decode_private.h"
#include "ingest/socket_source_private.h"

enum { RETRY_MS = 5000, MEMO_VERSION = 1, MEMO_SIZE = 9 };

/* Lines to be offered as one message, or to be passed by. */
struct batch {
    size_t size; /* bytes of input that are done with then */
    size_t use;  /* bytes of these that are offered */
    uint64_t lines;
    uint64_t cut_size; /* of the line of which only the beginning is there; 0: lines are whole */
};

/* ---- what is durable ---- */

/* When there is no room for one more span, the newest gets longer: what it holds is told a little
 * later. */
static void add_span(struct tn_socket_link *link)
{
    uint32_t at = link->span_first + link->span_count;
    if (link->span_count == TN_SOCKET_SPANS_MAX) {
        at--;
    } else {
        link->span_count++;
    }
    link->spans[at % TN_SOCKET_SPANS_MAX] = (struct tn_socket_span){link->count, link->last};
}

void tn_socket_settle(struct tn_socket_link *link)
{
    uint64_t durable = link->source->spec.hub->durable;
    while (link->span_count > 0 && link->spans[link->span_first].place <= durable) {
        link->durable = link->spans[link->span_first].count;
        link->span_first = (link->span_first + 1) % TN_SOCKET_SPANS_MAX;
        link->span_count--;
    }
}

/* ---- the memo: a version, and the count ---- */

tn_rc tn_socket_remember(struct tn_socket_link *link, struct tn_err *err)
{
    struct tn_bytes memo = {0};
    link->since = 0;
    link->count = 0;
    tn_rc rc =
        tn_hub_sender(link->source->spec.hub, tn_bytes_of(link->sender), &memo, &link->since);
    if (rc == TN_ABSENT) {
        return TN_OK;
    }
    if (rc) {
        return tn_err_set(err, rc, 0, "memo of %s: %s", link->sender, tn_rc_text(rc));
    }
    if (memo.size != MEMO_SIZE || memo.data[0] != MEMO_VERSION) {
        return tn_err_set(err, TN_CORRUPT, 0, "memo of %s: it's no socket's", link->sender);
    }
    link->count = tn_load_u64(memo.data + 1);
    return TN_OK;
}

/* Another source of the same table may have let a newer connection in. A memo that the hub has
 * forgotten, since it was long unheard of, comes with the next message. */
static bool is_ours(const struct tn_socket_link *link)
{
    struct tn_bytes memo = {0};
    uint64_t place = 0;
    tn_rc rc = tn_hub_sender(link->source->spec.hub, tn_bytes_of(link->sender), &memo, &place);
    return rc != TN_OK || place == link->last;
}

/* ---- lines ---- */

static struct tn_bytes rest_of(const struct tn_socket_link *link)
{
    return (struct tn_bytes){link->input + link->first, link->end - link->first};
}

/* The line protocol has texts that may hold line ends; here a line ends all the same. One that
 * leaves a text open must not take the next line into it. */
static bool leaves_text_open(const struct tn_socket_link *link, const unsigned char *line,
                             size_t size)
{
    struct tn_record_place place = {0};
    return link->source->spec.input == TN_INPUT_LINE &&
           tn_line_record_end(line, line + size, &place) != line + size;
}

/* As many whole lines as a message may have; those that there was no room for, and no others behind
 * them. false: there is none, or the first is too long. */
static bool find_lines(const struct tn_socket_link *link, struct batch *batch)
{
    const struct tn_socket_source *s = link->source;
    struct tn_bytes rest = rest_of(link);
    size_t size_max = rest.size < s->spec.hub->size_max ? rest.size : s->spec.hub->size_max;
    size_max = link->offered > 0 && link->offered < size_max ? link->offered : size_max;
    uint64_t lines_max = link->skip > 0 ? link->skip : UINT64_MAX;
    *batch = (struct batch){0};
    bool open = false;
    while (batch->size < size_max && batch->lines < lines_max && !open) {
        const unsigned char *line = rest.data + batch->size;
        size_t from = batch->size > 0 ? 0 : link->seen - link->first;
        const unsigned char *newline = memchr(line + from, '\n', size_max - batch->size - from);
        size_t size = newline ? (size_t)(newline - line) + 1 : 0;
        if (size == 0 || size > s->line_size_max) {
            break;
        }
        open = leaves_text_open(link, line, size);
        batch->size += size;
        batch->lines++;
    }
    batch->use = batch->size;
    return batch->lines > 0;
}

static size_t beginning_size(const struct tn_socket_source *s)
{
    return s->line_size_max < s->input_size / 2 ? s->line_size_max : s->input_size / 2;
}

/* The first line is too long, or it isn't there yet. What is kept of it doesn't depend on how its
 * bytes came. */
static bool find_long_line(struct tn_socket_link *link, struct batch *batch)
{
    const struct tn_socket_source *s = link->source;
    struct tn_bytes rest = rest_of(link);
    size_t keep = beginning_size(s);
    size_t from = link->long_size > 0 ? keep : link->seen - link->first;
    const unsigned char *newline = memchr(rest.data + from, '\n', rest.size - from);
    size_t size = newline ? (size_t)(newline - rest.data) + 1 : rest.size;
    if (!newline) {
        link->seen = link->end;
    }
    if (link->long_size == 0 && size < s->line_size_max + (newline != NULL)) {
        return false;
    }
    uint64_t before = link->long_size > 0 ? link->long_size - keep : 0;
    if (newline) {
        *batch = (struct batch){size, keep, 1, before + size};
        return true;
    }
    link->long_size = before + size;
    link->end = link->first + keep;
    link->seen = link->end;
    return false;
}

/* ---- into the hub ---- */

static void block(struct tn_socket_link *link, tn_rc rc, struct tn_err *err)
{
    struct tn_socket_source *s = link->source;
    bool known = rc == TN_AGAIN || s->status.err.code == err->code;
    s->no_room = rc == TN_AGAIN;
    s->no_entry = rc != TN_AGAIN;
    s->retry_ms = tn_socket_now(s) + RETRY_MS;
    s->status.waits++;
    tn_socket_wake_at(s, s->retry_ms);
    if (!known) {
        (void)tn_err_in(err, "%s", s->spec.name);
        tn_log_err(s->spec.log, TN_LOG_WARN, "socket", err);
        s->status.err = *err;
    }
}

static void done_with(struct tn_socket_link *link, const struct batch *batch)
{
    link->first += batch->size;
    link->seen = link->first;
    link->long_size = 0;
    link->offered = 0;
}

static void taken(struct tn_socket_link *link, const struct tn_message *message, uint64_t lines)
{
    struct tn_socket_source_status *status = &link->source->status;
    link->last = message->place;
    link->count += lines;
    add_span(link);
    status->rows += message->rows;
    status->dead += message->dead;
    status->err.code = TN_OK;
    status->err.text[0] = 0;
}

static struct tn_message message_of(const struct tn_socket_link *link, const struct batch *batch,
                                    unsigned char memo[MEMO_SIZE])
{
    const struct tn_socket_source_spec *spec = &link->source->spec;
    struct tn_clock *clock = spec->net->clock;
    struct tn_message message = {.table = spec->table,
                                 .input = spec->input,
                                 .bytes = {link->input + link->first, batch->use},
                                 .cut_size = batch->cut_size,
                                 .source = spec->name,
                                 .received_ms = clock->vtable->now_ms(clock)};
    memo[0] = MEMO_VERSION;
    tn_store_u64(memo + 1, link->count + batch->lines);
    if (link->sender[0]) {
        message.sender = tn_bytes_of(link->sender);
        message.memo = (struct tn_bytes){memo, MEMO_SIZE};
    }
    return message;
}

/* What is refused for good has been received: a sender would repeat it for ever. That it was has
 * to be known after a restart as well. */
static tn_rc pass_by(struct tn_socket_link *link, struct tn_message *message,
                     const struct batch *batch, struct tn_err *err)
{
    struct tn_socket_source *s = link->source;
    const struct tn_err why = *err;
    message->table = NULL;
    message->bytes = (struct tn_bytes){0};
    message->cut_size = 0;
    message->place = link->last;
    tn_rc rc = link->sender[0] ? tn_hub_offer(s->spec.hub, message, err) : TN_OK;
    if (rc == TN_OK) {
        tn_socket_log_some(s, s->status.refused + 1, "refused", link, why.text);
        s->status.refused += batch->lines;
        message->rows = 0;
        message->dead = 0;
    }
    return rc;
}

/* Whether the batch is done with. */
static bool offer(struct tn_socket_link *link, const struct batch *batch)
{
    struct tn_socket_source *s = link->source;
    struct tn_err err;
    unsigned char memo[MEMO_SIZE];
    struct tn_message message = message_of(link, batch, memo);
    tn_rc rc = tn_hub_offer(s->spec.hub, &message, &err);
    if (rc == TN_INVALID) {
        rc = pass_by(link, &message, batch, &err);
    } else if (rc == TN_OK) {
        s->status.lines += batch->lines;
        s->status.too_long += batch->cut_size > 0;
    }
    if (rc) {
        link->offered = rc == TN_AGAIN && batch->cut_size == 0 ? batch->size : 0;
        block(link, rc, &err);
        return false;
    }
    taken(link, &message, batch->lines);
    return true;
}

static bool use(struct tn_socket_link *link, const struct batch *batch)
{
    struct tn_socket_source *s = link->source;
    if (link->skip > 0) {
        link->skip -= batch->lines;
        s->status.repeated += batch->lines;
        return true;
    }
    if (tn_socket_is_blocked(s)) {
        return false;
    }
    if (link->sender[0] && !is_ours(link)) {
        s->status.replaced++;
        tn_socket_link_bye(link, "another connection is this sender now");
        return false;
    }
    return offer(link, batch);
}

void tn_socket_take(struct tn_socket_link *link)
{
    struct batch batch;
    for (;;) {
        bool found = link->long_size == 0 && find_lines(link, &batch);
        if (!found && !find_long_line(link, &batch)) {
            return;
        }
        if (!use(link, &batch)) {
            return;
        }
        done_with(link, &batch);
    }
}
