#include <inttypes.h>

#include "base/check.h"
#include "upload/http_private.h"

/* ---- requests ---- */

static bool is_word(const char *text, bool (*is)(unsigned char))
{
    return *text && tn_http_all(tn_bytes_of(text), is);
}

void tn_http_init(struct tn_http *http, void *memory, size_t size)
{
    *http = (struct tn_http){.keep_alive = true};
    tn_buf_init(&http->head, memory, size);
}

bool tn_http_reusable(const struct tn_http *http)
{
    return http->keep_alive && http->send_left == 0 &&
           (http->state == TN_HTTP_IDLE || http->state == TN_HTTP_AT_END);
}

/* Values are not told: they may be secret. */
static tn_rc check_request(const struct tn_http_request *request, struct tn_err *err)
{
    if (!is_word(request->method, tn_http_is_token) ||
        !is_word(request->path, tn_http_is_visible) ||
        !tn_http_all(tn_bytes_of(request->query), tn_http_is_visible)) {
        return tn_err_set(err, TN_INVALID, 0,
                          "request: method, path and query aren't written as HTTP wants them");
    }
    for (uint32_t i = 0; i < request->header_count; i++) {
        const struct tn_http_header *header = &request->headers[i];
        if (!is_word(header->name, tn_http_is_token) ||
            !tn_http_all(tn_bytes_of(header->value), tn_http_is_value)) {
            return tn_err_set(err, TN_INVALID, 0,
                              "request: header %s has a byte that can't be sent",
                              is_word(header->name, tn_http_is_token) ? header->name : "name");
        }
    }
    return TN_OK;
}

tn_rc tn_http_request(struct tn_http *http, const struct tn_http_request *request,
                      struct tn_buf *out, struct tn_err *err)
{
    TN_CHECK(tn_http_reusable(http));
    tn_rc rc = check_request(request, err);
    if (rc != TN_OK) {
        return rc;
    }
    const char *const line[] = {request->method, " ",
                                request->path,   *request->query ? "?" : "",
                                request->query,  " HTTP/1.1\r\n"};
    for (size_t i = 0; i < sizeof line / sizeof line[0]; i++) {
        tn_buf_text(out, line[i]);
    }
    for (uint32_t i = 0; i < request->header_count; i++) {
        tn_buf_text(out, request->headers[i].name);
        tn_buf_text(out, ": ");
        tn_buf_text(out, request->headers[i].value);
        tn_buf_text(out, "\r\n");
    }
    if (request->has_body) {
        tn_buf_format(out, "content-length: %" PRIu64 "\r\n", request->body_size);
    }
    tn_buf_text(out, "\r\n");
    if (out->overflow) {
        return tn_err_set(err, TN_AGAIN, 0, "request: its head has no room in %zu bytes",
                          out->capacity);
    }
    struct tn_buf head = http->head;
    tn_http_init(http, head.data, head.capacity);
    http->state = TN_HTTP_IN_HEAD;
    http->headless = strcmp(request->method, "HEAD") == 0;
    http->send_left = request->has_body ? request->body_size : 0;
    return TN_OK;
}

void tn_http_sent(struct tn_http *http, uint64_t size)
{
    TN_CHECK(size <= http->send_left);
    http->send_left -= size;
}

/* ---- an answer's body ---- */

tn_rc tn_http_broken(struct tn_http *http, struct tn_err *err, const char *what)
{
    http->state = TN_HTTP_BROKEN;
    http->keep_alive = false;
    return tn_err_set(err, TN_CORRUPT, 0, "answer: %s", what);
}

/* As long as the connection lasts. */
static void take_all(struct tn_bytes *input, struct tn_bytes *body)
{
    *body = *input;
    input->data += input->size;
    input->size = 0;
}

static tn_rc take_body(struct tn_http *http, struct tn_bytes *input, struct tn_bytes *body,
                       struct tn_err *err)
{
    const char *wrong = tn_http_frame_take(&http->frame, input, body);
    if (wrong) {
        return tn_http_broken(http, err, wrong);
    }
    if (http->frame.state == TN_HTTP_FRAME_END) {
        http->state = TN_HTTP_AT_END;
    }
    return TN_OK;
}

static tn_rc take_some(struct tn_http *http, struct tn_bytes *input, enum tn_http_event *event,
                       struct tn_bytes *body, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    switch (http->state) {
    case TN_HTTP_IN_HEAD:
        return tn_http_take_head(http, input, event, err);
    case TN_HTTP_IN_BODY:
        rc = take_body(http, input, body, err);
        break;
    case TN_HTTP_IN_BODY_CLOSE:
        take_all(input, body);
        break;
    case TN_HTTP_IDLE:
    case TN_HTTP_AT_END:
    case TN_HTTP_BROKEN:
        return tn_http_broken(http, err, "bytes that nobody asked for");
    }
    *event = body->size > 0 ? TN_HTTP_BODY : TN_HTTP_MORE;
    return rc;
}

tn_rc tn_http_read(struct tn_http *http, struct tn_bytes *input, enum tn_http_event *event,
                   struct tn_bytes *body, struct tn_err *err)
{
    *event = TN_HTTP_MORE;
    *body = (struct tn_bytes){NULL, 0};
    while (*event == TN_HTTP_MORE) {
        if (http->state == TN_HTTP_AT_END) {
            *event = TN_HTTP_END;
            http->state = TN_HTTP_IDLE;
            http->keep_alive &= input->size == 0; /* what comes behind belongs to nothing */
            break;
        }
        if (input->size == 0) {
            break;
        }
        tn_rc rc = take_some(http, input, event, body, err);
        if (rc != TN_OK) {
            return rc;
        }
    }
    return TN_OK;
}

tn_rc tn_http_closed(struct tn_http *http, struct tn_err *err)
{
    enum tn_http_state state = http->state;
    http->keep_alive = false;
    http->state = TN_HTTP_BROKEN;
    if (state == TN_HTTP_IN_BODY_CLOSE || state == TN_HTTP_IDLE || state == TN_HTTP_AT_END) {
        return TN_OK;
    }
    return tn_err_set(err, TN_IO, 0, "the other side closed the connection %s",
                      state == TN_HTTP_IN_HEAD && http->head.size == 0
                          ? "without an answer"
                          : "in the middle of its answer");
}
