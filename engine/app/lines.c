#include "app/lines.h"

#include <inttypes.h>
#include <string.h>

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
    return l->spec.clock->vtable->monotonic_ns(l->spec.clock) / 1000000;
}

/* How much of it may be offered: whole lines, or at the end all, and beyond `most` only one. 0: not
 * a line. */
static size_t whole_lines(struct tn_bytes bytes, bool end, size_t most)
{
    const unsigned char *newline = NULL;
    if (bytes.size > most) {
        newline = memrchr(bytes.data, '\n', most);
        newline = newline ? newline : memchr(bytes.data + most, '\n', bytes.size - most);
    } else if (bytes.size > 0 && !end) {
        newline = memrchr(bytes.data, '\n', bytes.size);
    }
    if (newline) {
        return (size_t)(newline - bytes.data) + 1;
    }
    return end ? bytes.size : 0;
}

static bool has_several(struct tn_bytes bytes)
{
    return bytes.size > 1 && memchr(bytes.data, '\n', bytes.size - 1) != NULL;
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

/* What was taken is passed. False: it is to be tried again, later. */
static bool offer(struct tn_lines *l, struct tn_bytes bytes)
{
    struct tn_err err = {0};
    struct tn_message message = {.table = l->spec.table,
                                 .input = l->spec.input,
                                 .bytes = with_header(l, bytes),
                                 .source = l->spec.name,
                                 .split = has_several(bytes),
                                 .received_ms = l->spec.clock->vtable->now_ms(l->spec.clock)};
    tn_rc rc = tn_hub_offer(l->spec.hub, &message, &err);
    if (rc == TN_OK) {
        l->rows += message.rows;
        l->dead += message.dead;
        l->said = TN_OK;
        l->at += bytes.size;
        return true;
    }
    l->blocked = true;
    if (rc == TN_AGAIN) {
        return false;
    }
    if (rc == TN_INVALID && has_several(bytes)) { /* its rows are too many for a message */
        l->most = bytes.size / 2;
        l->blocked = false;
        return true;
    }
    say(l, rc, err.text);
    if (rc == TN_INVALID || rc == TN_ABSENT) { /* for good */
        l->dead++;
        l->blocked = false;
        l->at += bytes.size;
        return true;
    }
    l->retry_ms = now_ms(l) + RETRY_MS;
    return false;
}

static void skip_line(struct tn_lines *l, struct tn_bytes bytes, bool end)
{
    const unsigned char *newline = memchr(bytes.data, '\n', bytes.size);
    size_t size = newline ? (size_t)(newline - bytes.data) + 1 : bytes.size;
    l->at += size;
    l->skipped += size;
    if (newline || end) {
        tn_log_event(l->spec.log, TN_LOG_WARN, "source",
                     "source=%s text=\"a line that is longer than a message may be: %" PRIu64
                     " bytes of it are lost\"",
                     l->spec.name, l->skipped);
        l->skipping = false;
        l->skipped = 0;
    }
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

/* The beginning of a line that is too long, which other inputs might take for a whole one. */
static bool offer_beginning(struct tn_lines *l, struct tn_bytes bytes)
{
    bool json = l->spec.input != TN_INPUT_CSV && l->spec.input != TN_INPUT_LINE;
    if (json && !offer(l, bytes)) {
        return false;
    }
    l->skipping = true;
    return true;
}

/* False: there is nothing to do, or no room, now. */
static bool step(struct tn_lines *l, struct tn_bytes all, bool end)
{
    struct tn_bytes rest = {all.data + l->at, all.size - l->at};
    if (rest.size == 0) {
        return false;
    }
    if (l->skipping) {
        skip_line(l, rest, end);
        return true;
    }
    if (l->spec.input == TN_INPUT_CSV && l->header_size == 0) {
        return keep_header(l, rest, end);
    }
    size_t size = whole_lines(rest, end, l->most);
    if (size == 0) {
        return rest.size == l->pipe.spec.size && offer_beginning(l, rest);
    }
    rest.size = size;
    return offer(l, rest);
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
        *wait_ms = left < *wait_ms ? (uint32_t)left : *wait_ms;
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
        tn_pipe_give(&l->pipe, l->at);
        l->at = 0;
    }
}
