#include "upload/http_private.h"

enum { STATUS_LINE_MIN = 12, START_SIZE = 7 /* "HTTP/1." */ };

static struct tn_bytes fields_of(const struct tn_http *http)
{
    struct tn_bytes rest = tn_buf_bytes(&http->head);
    (void)tn_http_line(&rest);
    return rest;
}

static bool find_field(const struct tn_http *http, const char *name, uint32_t nth,
                       struct tn_bytes *value)
{
    return tn_http_field(fields_of(http), name, nth, value);
}

bool tn_http_header(const struct tn_http *http, const char *name, struct tn_bytes *value)
{
    return find_field(http, name, 0, value);
}

/* "HTTP/1.1 200 OK"; the words at the end may be missing. */
static bool read_status(struct tn_http *http, struct tn_bytes line)
{
    uint64_t status = 0;
    if (line.size < STATUS_LINE_MIN || memcmp(line.data, "HTTP/1.", 7) != 0 ||
        (line.data[7] != '0' && line.data[7] != '1') || line.data[8] != ' ' ||
        !tn_http_number((struct tn_bytes){line.data + 9, 3}, &status) || status < 100 ||
        (line.size > STATUS_LINE_MIN && line.data[STATUS_LINE_MIN] != ' ') ||
        !tn_http_all(line, tn_http_is_value)) {
        return false;
    }
    http->status = (int)status;
    http->keep_alive = line.data[7] == '1';
    return true;
}

static bool fields_are_whole(const struct tn_http *http)
{
    int count = tn_http_field_count(fields_of(http));
    return count >= 0 && count <= TN_HTTP_FIELDS_MAX;
}

static void read_connection(struct tn_http *http)
{
    struct tn_bytes value;
    for (uint32_t i = 0; find_field(http, "connection", i, &value); i++) {
        if (tn_http_names(value, "close")) {
            http->keep_alive = false;
            return;
        }
        http->keep_alive |= tn_http_names(value, "keep-alive");
    }
}

/* Two that agree are one. */
static const char *read_length(struct tn_http *http)
{
    struct tn_bytes value;
    for (uint32_t i = 0; find_field(http, "content-length", i, &value); i++) {
        uint64_t length = 0;
        if (!tn_http_number(value, &length)) {
            return "content-length is no number";
        }
        if (i > 0 && length != http->length) {
            return "two lengths";
        }
        http->length = length;
        http->has_length = true;
    }
    return NULL;
}

static const char *read_coding(struct tn_http *http, bool *chunked)
{
    struct tn_bytes value;
    *chunked = find_field(http, "transfer-encoding", 0, &value);
    if (!*chunked) {
        return NULL;
    }
    if (http->has_length) {
        return "a length beside a transfer-encoding";
    }
    if (!tn_http_same(value, "chunked") || find_field(http, "transfer-encoding", 1, &value)) {
        return "its transfer-encoding is not just chunked";
    }
    return http->head.data[7] == '1' ? NULL : "chunks in HTTP/1.0";
}

static bool has_no_body(const struct tn_http *http)
{
    return http->headless || http->status == 204 || http->status == 304;
}

static void choose_body(struct tn_http *http, bool chunked)
{
    tn_http_frame_length(&http->frame, http->length);
    if (has_no_body(http) || (http->has_length && http->length == 0)) {
        http->state = TN_HTTP_AT_END;
    } else if (chunked) {
        tn_http_frame_chunks(&http->frame);
        http->state = TN_HTTP_IN_BODY;
    } else if (http->has_length) {
        http->state = TN_HTTP_IN_BODY;
    } else {
        http->keep_alive = false;
        http->state = TN_HTTP_IN_BODY_CLOSE;
    }
}

static tn_rc read_final(struct tn_http *http, enum tn_http_event *event, struct tn_err *err)
{
    bool chunked = false;
    read_connection(http);
    const char *wrong = read_length(http);
    if (!wrong) {
        wrong = read_coding(http, &chunked);
    }
    if (wrong) {
        return tn_http_broken(http, err, wrong);
    }
    choose_body(http, chunked);
    *event = TN_HTTP_HEAD;
    return TN_OK;
}

static tn_rc read_head(struct tn_http *http, enum tn_http_event *event, struct tn_err *err)
{
    struct tn_bytes rest = tn_buf_bytes(&http->head);
    if (!read_status(http, tn_http_line(&rest))) {
        return tn_http_broken(http, err, "its first line isn't HTTP/1.1's");
    }
    if (!fields_are_whole(http)) {
        return tn_http_broken(http, err, "its headers aren't written as HTTP wants them");
    }
    if (http->status >= 200) {
        return read_final(http, event, err);
    }
    if (http->status == 101 || ++http->interim > TN_HTTP_INTERIM_MAX) {
        return tn_http_broken(http, err,
                              http->status == 101 ? "another protocol" : "it is all interim");
    }
    http->head.size = 0;
    return TN_OK;
}

/* Said at once: who speaks another protocol may wait for more before it closes. */
static bool fits_start(const struct tn_buf *head, unsigned char byte)
{
    static const char start[] = "HTTP/1.";
    return head->size >= sizeof start - 1 || byte == (unsigned char)start[head->size];
}

/* Bytes of the start one by one, each checked; then the rest. */
static enum tn_http_taken take_bytes(struct tn_http *http, struct tn_bytes *input)
{
    while (input->size > 0 && http->head.size < START_SIZE) {
        struct tn_bytes byte = {input->data, 1};
        if (!fits_start(&http->head, input->data[0]) ||
            tn_http_head_take(&http->head, &byte) != TN_HTTP_TAKEN_PART) {
            return TN_HTTP_TAKEN_WRONG;
        }
        input->data++;
        input->size--;
    }
    return tn_http_head_take(&http->head, input);
}

tn_rc tn_http_take_head(struct tn_http *http, struct tn_bytes *input, enum tn_http_event *event,
                        struct tn_err *err)
{
    switch (take_bytes(http, input)) {
    case TN_HTTP_TAKEN_PART:
        return TN_OK;
    case TN_HTTP_TAKEN_WHOLE:
        return read_head(http, event, err);
    case TN_HTTP_TAKEN_FULL:
        return tn_http_broken(http, err, "its headers are too long");
    case TN_HTTP_TAKEN_WRONG:
        break;
    }
    return tn_http_broken(http, err,
                          http->head.size < START_SIZE ? "it isn't HTTP/1.1"
                                                       : "a line that doesn't end in CR LF");
}
