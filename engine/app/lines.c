#include "app/lines.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "base/wait.h"

/* The header as it is kept, and before each message. */
enum { HEADERS = 2 * TN_LINES_HEADER_MAX, RETRY_MS = 1000 };

size_t tn_lines_memory(const struct tn_hub *hub)
{
    return HEADERS + hub->size_max - TN_LINES_HEADER_MAX;
}

tn_rc tn_lines_open(struct tn_lines *lines, const struct tn_lines_spec *spec, struct tn_err *err)
{
    unsigned char *memory = spec->memory;
    *lines = (struct tn_lines){.spec = *spec, .header = memory, .most = spec->hub->size_max};
    struct tn_pipe_spec pipe = {.fd = spec->fd,
                                .buffer = memory + HEADERS,
                                .size = spec->hub->size_max - TN_LINES_HEADER_MAX,
                                .notify = spec->notify,
                                .user = spec->user};
    return tn_pipe_open(&lines->pipe, &pipe, err);
}

void tn_lines_close(struct tn_lines *lines)
{
    tn_pipe_close(&lines->pipe);
}

static int64_t now_ms(const struct tn_lines *l)
{
    return tn_clock_monotonic_ms(l->spec.clock);
}

/* What is offered as one message. */
struct piece {
    struct tn_bytes bytes;
    size_t size;       /* of the pipe's, that are done with then */
    bool several;      /* records */
    uint64_t cut_size; /* of the record of which these bytes are the beginning; 0: all are whole */
    bool given_up;     /* it may go on */
};

/* Whole records, or at the end all, and beyond `most` only one; those that there was no room for,
 * and no others behind them. Empty: there is none. */
static struct piece whole_records(const struct tn_lines *l, struct tn_bytes bytes, bool end)
{
    uint32_t count = 0;
    size_t most = l->offered > 0 ? l->offered : l->most;
    struct piece piece = {.bytes = {bytes.data, 0}};
    while (piece.size < bytes.size) {
        struct tn_record_place place = {0};
        struct tn_bytes rest = {bytes.data + piece.size, bytes.size - piece.size};
        const unsigned char *next = tn_record_end(l->spec.input, rest, &place);
        size_t size = next ? (size_t)(next - bytes.data) : end ? bytes.size : 0;
        if (size == 0 || (count > 0 && size > most)) {
            break;
        }
        piece.size = size;
        count++;
    }
    piece.bytes.size = piece.size;
    piece.several = count > 1;
    return piece;
}

/* csv: each message begins with the line that names the columns, which lies before it. */
static struct tn_bytes with_header(const struct tn_lines *l, struct tn_bytes bytes)
{
    if (l->header_size == 0) {
        return bytes;
    }
    unsigned char *at = l->header + HEADERS + l->at - l->header_size;
    memcpy(at, l->header, l->header_size);
    return (struct tn_bytes){at, bytes.size + l->header_size};
}

static void say(struct tn_lines *l, tn_rc rc, const char *text)
{
    if (l->said != rc) {
        tn_log_event(l->spec.log, TN_LOG_WARN, "source", "source=%s table=%s rc=%d text=\"%s\"",
                     l->spec.name, l->spec.table, (int)rc, text);
    }
    l->said = rc;
}

static void passed(struct tn_lines *l, const struct piece *piece, size_t left)
{
    l->at += piece->size - left;
    l->offered = 0;
    l->long_size = 0;
}

static void say_long(const struct tn_lines *l, const struct piece *piece)
{
    tn_log_event(l->spec.log, TN_LOG_WARN, "source",
                 "source=%s text=\"%s of %" PRIu64 " bytes %s\"", l->spec.name,
                 piece->given_up ? "a text" : "a record", piece->cut_size,
                 piece->given_up ? "has no end: the next line is a record again"
                                 : "is longer than a message may be");
}

static void taken(struct tn_lines *l, const struct piece *piece, const struct tn_message *message)
{
    if (piece->cut_size > 0) {
        say_long(l, piece);
    }
    l->rows += message->rows;
    l->dead += message->dead;
    l->said = TN_OK;
    l->most = l->most < l->spec.hub->size_max / 2 ? 2 * l->most : l->spec.hub->size_max;
    passed(l, piece, message->left);
}

/* What was taken is passed. False: it is to be tried again, later. */
static bool offer(struct tn_lines *l, const struct piece *piece)
{
    struct tn_err err = {0};
    struct tn_bytes bytes = piece->cut_size > 0 ? piece->bytes : with_header(l, piece->bytes);
    struct tn_message message = {.table = l->spec.table,
                                 .input = l->spec.input,
                                 .bytes = bytes,
                                 .cut_size = piece->cut_size,
                                 .source = l->spec.name,
                                 .split = piece->several,
                                 .received_ms = l->spec.clock->vtable->now_ms(l->spec.clock)};
    tn_rc rc = tn_hub_offer(l->spec.hub, &message, &err);
    if (rc == TN_OK) {
        taken(l, piece, &message);
        return true;
    }
    if (rc == TN_INVALID && piece->several) { /* its rows are too many for a message */
        l->offered = 0;
        l->most = piece->size / 2;
        return true;
    }
    if (rc == TN_AGAIN) {
        l->offered = piece->size;
        l->blocked = true;
        return false;
    }
    say(l, rc, err.text);
    if (rc == TN_INVALID || rc == TN_ABSENT) { /* for good */
        l->dead++;
        passed(l, piece, 0);
        return true;
    }
    l->blocked = true;
    l->retry_ms = now_ms(l) + RETRY_MS;
    return false;
}

/* False: there is more to come of it, or it is none. */
static bool keep_header(struct tn_lines *l, struct tn_bytes bytes, bool last)
{
    const unsigned char *newline = memchr(bytes.data, '\n', bytes.size);
    size_t size = newline ? (size_t)(newline - bytes.data) + 1 : bytes.size;
    if (size > TN_LINES_HEADER_MAX) {
        say(l, TN_INVALID, "the line that names the columns is too long: nothing is read");
        l->ended = true;
        return false;
    }
    if (newline || last) {
        memcpy(l->header, bytes.data, size);
        l->header_size = size;
        l->at += size;
    }
    return newline || last;
}

/* ---- records that are too long ---- */

static size_t beginning_size(const struct tn_lines *l)
{
    return l->pipe.spec.size / 2;
}

/* What of such a record came behind its beginning, which lies before it. */
static bool go_on(struct tn_lines *l, struct tn_bytes all, bool end)
{
    size_t kept = beginning_size(l);
    struct tn_record_place place = l->place;
    struct tn_bytes more = {all.data + kept, all.size - kept};
    uint64_t most = (uint64_t)TN_RECORD_MESSAGES_MAX * l->pipe.spec.size;
    uint64_t left = l->long_size < most ? most - l->long_size : 0;
    bool given_up;
    const unsigned char *next = tn_record_end_within(l->spec.input, more, left, &place, &given_up);
    if (!next && !end) {
        l->long_size += more.size;
        l->place = place;
        return false;
    }
    size_t size = next ? (size_t)(next - more.data) : more.size;
    struct piece piece = {.bytes = {all.data, kept},
                          .size = kept + size,
                          .cut_size = l->long_size + size,
                          .given_up = given_up};
    return offer(l, &piece);
}

/* The pipe is full, and no record ends in it. One whose lines were taken for records would bring
 * what it quotes as rows: it is passed over to its end, with what its texts hold. */
static bool begin_long(struct tn_lines *l, struct tn_bytes all)
{
    l->place = (struct tn_record_place){0};
    l->long_size = all.size;
    bool ended = tn_record_end(l->spec.input, all, &l->place) != NULL;
    TN_CHECK(!ended);
    if (l->place.text) {
        tn_log_event(l->spec.log, TN_LOG_WARN, "source",
                     "source=%s text=\"a text goes on for more than %zu bytes: nothing is taken "
                     "before its end\"",
                     l->spec.name, all.size);
    }
    return false;
}

/* ---- turns ---- */

/* False: there is nothing to do, or no room, now. */
static bool step(struct tn_lines *l, struct tn_bytes all, bool end)
{
    struct tn_bytes rest = {all.data + l->at, all.size - l->at};
    if (l->long_size > 0) {
        return go_on(l, all, end);
    }
    if (rest.size == 0) {
        return false;
    }
    if (l->spec.input == TN_INPUT_CSV && l->header_size == 0) {
        return keep_header(l, rest, end);
    }
    struct piece piece = whole_records(l, rest, end);
    if (piece.size > 0) {
        return offer(l, &piece);
    }
    return rest.size == l->pipe.spec.size && begin_long(l, rest);
}

/* The thread goes on behind what is left. */
static void give_back(struct tn_lines *l)
{
    if (l->long_size > 0) {
        tn_pipe_drop(&l->pipe, beginning_size(l));
    } else {
        tn_pipe_give(&l->pipe, l->at);
    }
    l->at = 0;
}

void tn_lines_turn(struct tn_lines *lines, uint32_t *wait_ms)
{
    struct tn_lines *l = lines;
    struct tn_bytes all;
    if (l->ended) {
        return;
    }
    int64_t left = l->retry_ms - now_ms(l);
    if (left > 0) {
        tn_wait_lower(wait_ms, left);
        return;
    }
    enum tn_pipe_turn turn = tn_pipe_take(&l->pipe, &all);
    if (turn == TN_PIPE_READS) {
        return;
    }
    l->blocked = false;
    while (step(l, all, turn == TN_PIPE_END)) {
    }
    l->ended = l->ended || (turn == TN_PIPE_END && l->at == all.size);
    if (turn == TN_PIPE_FULL && !l->ended && (l->at > 0 || !l->blocked)) {
        give_back(l);
    }
}
