#include "ingest/http_reader.h"

#include "base/check.h"

static tn_rc refuse(struct tn_http_reader *reader, int status, struct tn_err *err, const char *what)
{
    reader->status = status;
    reader->state = TN_HTTP_READER_OVER;
    reader->keep_alive = false;
    return tn_err_set(err, TN_INVALID, 0, "request: %s", what);
}

/* ---- the first line ---- */

static bool is_digit(unsigned char byte)
{
    return byte >= '0' && byte <= '9';
}

static struct tn_bytes take_word(struct tn_bytes *line)
{
    struct tn_bytes word = {line->data, 0};
    while (word.size < line->size && line->data[word.size] != ' ') {
        word.size++;
    }
    size_t size = word.size < line->size ? word.size + 1 : word.size;
    line->data += size;
    line->size -= size;
    return word;
}

static bool begins(struct tn_bytes text, const char *with)
{
    size_t size = strlen(with);
    return text.size >= size && tn_http_same((struct tn_bytes){text.data, size}, with);
}

/* "http://host/path", as a proxy is asked, means the path, too (RFC 9112, 3.2.2). */
static struct tn_bytes without_host(struct tn_bytes target)
{
    size_t at = begins(target, "http://") ? 7 : begins(target, "https://") ? 8 : 0;
    while (at > 0 && at < target.size && target.data[at] != '/') {
        at++;
    }
    return (struct tn_bytes){target.data + at, target.size - at};
}

static bool read_target(struct tn_http_reader *reader, struct tn_bytes target)
{
    if (!tn_http_all(target, tn_http_is_visible)) {
        return false;
    }
    target = without_host(target);
    if (target.size == 0 || target.data[0] != '/') {
        return false;
    }
    const unsigned char *mark = memchr(target.data, '?', target.size);
    reader->path =
        (struct tn_bytes){target.data, mark ? (size_t)(mark - target.data) : target.size};
    size_t skip = reader->path.size + (mark != NULL);
    reader->query = (struct tn_bytes){target.data + skip, target.size - skip};
    return true;
}

static tn_rc read_version(struct tn_http_reader *reader, struct tn_bytes version,
                          struct tn_err *err)
{
    bool is_version = version.size == 8 && memcmp(version.data, "HTTP/", 5) == 0 &&
                      is_digit(version.data[5]) && version.data[6] == '.' &&
                      is_digit(version.data[7]);
    if (!is_version) {
        return refuse(reader, 400, err, "its first line isn't \"METHOD /path HTTP/1.1\"");
    }
    if (version.data[5] != '1') {
        return refuse(reader, 505, err, "HTTP/1.1 is spoken here");
    }
    reader->old = version.data[7] == '0';
    reader->keep_alive = !reader->old;
    return TN_OK;
}

static tn_rc read_first_line(struct tn_http_reader *reader, struct tn_bytes line,
                             struct tn_err *err)
{
    reader->method = take_word(&line);
    struct tn_bytes target = take_word(&line);
    if (reader->method.size == 0 || !tn_http_all(reader->method, tn_http_is_token) ||
        !read_target(reader, target)) {
        return refuse(reader, 400, err, "its first line isn't \"METHOD /path HTTP/1.1\"");
    }
    return read_version(reader, line, err);
}

/* ---- fields ---- */

bool tn_http_reader_field(const struct tn_http_reader *reader, const char *name,
                          struct tn_bytes *value)
{
    struct tn_bytes second;
    *value = (struct tn_bytes){NULL, 0};
    (void)tn_http_field(reader->fields, name, 0, value);
    return !tn_http_field(reader->fields, name, 1, &second);
}

static tn_rc read_fields(struct tn_http_reader *reader, struct tn_err *err)
{
    struct tn_bytes host;
    int count = tn_http_field_count(reader->fields);
    if (count < 0) {
        return refuse(reader, 400, err, "a line of its head isn't \"Name: value\"");
    }
    if (count > TN_HTTP_FIELDS_MAX) {
        return refuse(reader, 431, err, "its head has too many fields");
    }
    if (!tn_http_reader_field(reader, "host", &host) || (!host.data && !reader->old)) {
        return refuse(reader, 400, err, "it must name one Host");
    }
    return TN_OK;
}

static void read_connection(struct tn_http_reader *reader)
{
    struct tn_bytes value;
    bool close = false;
    for (uint32_t i = 0; tn_http_field(reader->fields, "connection", i, &value); i++) {
        close |= tn_http_names(value, "close");
        reader->keep_alive |= tn_http_names(value, "keep-alive");
    }
    reader->keep_alive &= !close;
}

static tn_rc read_length(struct tn_http_reader *reader, struct tn_err *err)
{
    struct tn_bytes value;
    if (!tn_http_reader_field(reader, "content-length", &value)) {
        return refuse(reader, 400, err, "it has two lengths");
    }
    reader->has_length = value.data != NULL;
    reader->length = 0;
    if (reader->has_length && !tn_http_number(value, &reader->length)) {
        return refuse(reader, 400, err, "its Content-Length is no number");
    }
    return TN_OK;
}

static tn_rc read_coding(struct tn_http_reader *reader, struct tn_err *err)
{
    struct tn_bytes value;
    bool once = tn_http_reader_field(reader, "transfer-encoding", &value);
    tn_http_frame_length(&reader->frame, reader->length);
    if (value.data) {
        if (reader->has_length) {
            return refuse(reader, 400, err, "it has a length beside a Transfer-Encoding");
        }
        if (reader->old) {
            return refuse(reader, 400, err, "it has a Transfer-Encoding in HTTP/1.0");
        }
        if (!once || !tn_http_same(value, "chunked")) {
            return refuse(reader, 501, err, "its Transfer-Encoding isn't just chunked");
        }
        tn_http_frame_chunks(&reader->frame);
    }
    reader->has_body = reader->frame.state != TN_HTTP_FRAME_END;
    return TN_OK;
}

static tn_rc read_expectation(struct tn_http_reader *reader, struct tn_err *err)
{
    struct tn_bytes value;
    bool once = tn_http_reader_field(reader, "expect", &value);
    if (!once || (value.data && !tn_http_same(value, "100-continue"))) {
        return refuse(reader, 417, err, "it expects something else than 100-continue");
    }
    reader->expects = value.data && !reader->old && reader->has_body;
    return TN_OK;
}

static tn_rc read_head(struct tn_http_reader *reader, struct tn_err *err)
{
    struct tn_bytes rest = tn_buf_bytes(&reader->head);
    struct tn_bytes line = tn_http_line(&rest);
    reader->fields = rest;
    tn_rc rc = read_first_line(reader, line, err);
    if (rc == TN_OK) {
        rc = read_fields(reader, err);
    }
    if (rc == TN_OK) {
        read_connection(reader);
        rc = read_length(reader, err);
    }
    if (rc == TN_OK) {
        rc = read_coding(reader, err);
    }
    return rc == TN_OK ? read_expectation(reader, err) : rc;
}

/* ---- bytes ---- */

static bool is_empty_line(const struct tn_buf *head)
{
    return head->size == 2 && memcmp(head->data, "\r\n", 2) == 0;
}

/* The head comes byte by byte until the first that isn't of an empty line. */
static enum tn_http_taken take_head(struct tn_http_reader *reader, struct tn_bytes *input)
{
    while (reader->head.size < 2 && input->size > 0) {
        struct tn_bytes byte = {input->data, 1};
        enum tn_http_taken taken = tn_http_head_take(&reader->head, &byte);
        if (taken != TN_HTTP_TAKEN_PART) {
            return taken;
        }
        input->data++;
        input->size--;
        if (is_empty_line(&reader->head)) {
            if (reader->blank) {
                return TN_HTTP_TAKEN_WRONG;
            }
            reader->blank = true;
            reader->head.size = 0;
        }
    }
    return reader->head.size < 2 ? TN_HTTP_TAKEN_PART : tn_http_head_take(&reader->head, input);
}

static tn_rc step_head(struct tn_http_reader *reader, struct tn_bytes *input,
                       enum tn_http_reader_event *event, struct tn_err *err)
{
    reader->began = true;
    switch (take_head(reader, input)) {
    case TN_HTTP_TAKEN_PART:
        return TN_OK;
    case TN_HTTP_TAKEN_WRONG:
        return refuse(reader, 400, err, "its head isn't lines of text that end in CR LF");
    case TN_HTTP_TAKEN_FULL:
        return memchr(reader->head.data, '\n', reader->head.size)
                   ? refuse(reader, 431, err, "its head is too long")
                   : refuse(reader, 414, err, "its first line is too long");
    case TN_HTTP_TAKEN_WHOLE:
        break;
    }
    tn_rc rc = read_head(reader, err);
    if (rc == TN_OK) {
        reader->state = TN_HTTP_READER_IN_BODY;
        *event = TN_HTTP_READER_HEAD;
    }
    return rc;
}

static tn_rc step_body(struct tn_http_reader *reader, struct tn_bytes *input,
                       enum tn_http_reader_event *event, struct tn_bytes *body, struct tn_err *err)
{
    if (reader->frame.state == TN_HTTP_FRAME_END) {
        reader->state = reader->keep_alive ? TN_HTTP_READER_AT_END : TN_HTTP_READER_OVER;
        *event = TN_HTTP_READER_END;
        return TN_OK;
    }
    const char *wrong = tn_http_frame_take(&reader->frame, input, body);
    if (wrong) {
        return refuse(reader, 400, err, wrong);
    }
    *event = body->size > 0 ? TN_HTTP_READER_BODY : TN_HTTP_READER_MORE;
    return TN_OK;
}

/* ---- public ---- */

void tn_http_reader_init(struct tn_http_reader *reader, void *memory, size_t size)
{
    *reader = (struct tn_http_reader){.state = TN_HTTP_READER_IN_HEAD};
    tn_buf_init(&reader->head, memory, size);
}

static bool needs_input(const struct tn_http_reader *reader)
{
    return reader->state != TN_HTTP_READER_IN_BODY || reader->frame.state != TN_HTTP_FRAME_END;
}

tn_rc tn_http_reader_next(struct tn_http_reader *reader, struct tn_bytes *input,
                          enum tn_http_reader_event *event, struct tn_bytes *body,
                          struct tn_err *err)
{
    *event = TN_HTTP_READER_MORE;
    *body = (struct tn_bytes){NULL, 0};
    if (reader->state == TN_HTTP_READER_AT_END) {
        tn_http_reader_init(reader, reader->head.data, reader->head.capacity);
    }
    while (*event == TN_HTTP_READER_MORE && (input->size > 0 || !needs_input(reader))) {
        tn_rc rc = TN_OK;
        if (reader->state == TN_HTTP_READER_OVER) {
            input->size = 0;
        } else if (reader->state == TN_HTTP_READER_IN_BODY) {
            rc = step_body(reader, input, event, body, err);
        } else {
            rc = step_head(reader, input, event, err);
        }
        if (rc != TN_OK) {
            return rc;
        }
    }
    return TN_OK;
}
