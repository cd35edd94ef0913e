#include <inttypes.h>

#include "base/check.h"
#include "format/json.h"
#include "ingest/http_private.h"
#include "schema/value.h"

_Static_assert(TN_HTTP_BODY_MIN >= TN_HTTP_ANSWER_HEAD_SIZE + 6 * TN_ERR_TEXT_SIZE + 128,
               "an error's text fits, with each byte escaped");

static const struct {
    int status;
    const char *text;
} reasons[] = {
    {200, "OK"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {505, "HTTP Version Not Supported"},
};

static const char *reason_of(int status)
{
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (reasons[i].status == status) {
            return reasons[i].text;
        }
    }
    return "";
}

/* What the answer says stands behind the place of its head, which is written when all is known. */
static struct tn_buf *begin(struct tn_http_connection *c)
{
    c->body.size = TN_HTTP_ANSWER_HEAD_SIZE;
    c->body.overflow = false;
    return &c->body;
}

static void put_fields(const struct tn_http_connection *c, int status, struct tn_buf *head)
{
    if (status == 401) {
        tn_buf_text(head, "WWW-Authenticate: Bearer\r\n");
    } else if (status == 405) {
        tn_buf_format(head, "Allow: %s\r\n", c->asked.allow);
    } else if (status == 503) {
        tn_buf_format(head, "Retry-After: %d\r\n", TN_HTTP_RETRY_S);
    }
    tn_buf_text(head, c->last ? "Connection: close\r\n\r\n" : "Connection: keep-alive\r\n\r\n");
}

static void count(struct tn_http_counts *counts, int status)
{
    counts->refused += status >= 400 && status < 500;
    counts->later += status >= 500;
}

static void finish(struct tn_http_connection *c, int status, const char *type)
{
    unsigned char memory[TN_HTTP_ANSWER_HEAD_SIZE];
    struct tn_buf head;
    size_t size = c->body.size - TN_HTTP_ANSWER_HEAD_SIZE;
    tn_buf_init(&head, memory, sizeof memory);
    tn_buf_format(&head, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n", status,
                  reason_of(status), type, size);
    put_fields(c, status, &head);
    TN_CHECK(!head.overflow && !c->body.overflow);
    unsigned char *from = c->body.data + TN_HTTP_ANSWER_HEAD_SIZE - head.size;
    memcpy(from, memory, head.size);
    bool bodiless = tn_bytes_equal(c->reader.method, tn_bytes_of("HEAD"));
    c->answer = (struct tn_bytes){from, head.size + (bodiless ? 0 : size)};
    count(&c->server->counts, status);
}

void tn_http_answer_rows(struct tn_http_connection *c)
{
    struct tn_buf *out = begin(c);
    if (c->repeated) {
        tn_buf_format(out, "{\"repeated\":true,\"place\":%" PRIu64 "}\n", c->place);
    } else {
        tn_buf_format(out, "{\"rows\":%" PRIu32 ",\"place\":%" PRIu64 "}\n", c->rows, c->place);
    }
    finish(c, 200, "application/json");
}

/* Texts of errors are cut anywhere, and may quote what came. */
static void make_utf8(char *text)
{
    size_t size = strlen(text);
    size_t at = 0;
    while (at < size) {
        at += tn_utf8_span((struct tn_bytes){(unsigned char *)text + at, size - at});
        if (at < size) {
            text[at] = '?';
        }
    }
}

void tn_http_answer_error(struct tn_http_connection *c, int status, uint64_t line, const char *text)
{
    char clean[TN_ERR_TEXT_SIZE];
    struct tn_buf *out = begin(c);
    size_t size = strlen(text) < sizeof clean ? strlen(text) : sizeof clean - 1;
    memcpy(clean, text, size);
    clean[size] = 0;
    make_utf8(clean);
    tn_buf_text(out, "{\"error\":");
    tn_json_quote(out, clean);
    if (line > 0) {
        tn_buf_format(out, ",\"line\":%" PRIu64, line);
    }
    tn_buf_text(out, "}\n");
    finish(c, status, "application/json");
}

/* ---- a page in parts ---- */

_Static_assert(TN_HTTP_BODY_MIN >= TN_HTTP_ANSWER_HEAD_SIZE + TN_HTTP_CHUNK_HEAD_SIZE +
                                       TN_HTTP_PART_MAX + TN_HTTP_CHUNK_TAIL_SIZE,
               "each part fits");

/* As many parts as fit, behind what was reserved in front of them. */
static void pack_parts(struct tn_http_connection *c, struct tn_buf *text)
{
    const struct tn_http_page *page = c->asked.page;
    bool fits = true;
    while (c->parted && fits) {
        size_t before = text->size;
        c->parted = page->part(page->user, c->part, text);
        fits = !text->overflow;
        if (!fits) {
            text->size = before;
            text->overflow = false;
            c->parted = true;
        }
        c->part += fits;
    }
}

/* A chunk around the text, with the last one behind it where it is the end. To HTTP/1.0 it goes as
 * it is, and the connection's end is its end. */
static struct tn_bytes frame_chunk(const struct tn_http_connection *c, struct tn_buf *text)
{
    unsigned char memory[TN_HTTP_CHUNK_HEAD_SIZE + 1];
    struct tn_buf head;
    if (c->reader.old) {
        return tn_buf_bytes(text);
    }
    size_t size = text->size;
    text->capacity += TN_HTTP_CHUNK_TAIL_SIZE;
    tn_buf_init(&head, memory, sizeof memory);
    if (size > 0) {
        tn_buf_format(&head, "%zx\r\n", size);
        tn_buf_text(text, "\r\n");
    }
    tn_buf_text(text, c->parted ? "" : "0\r\n\r\n");
    TN_CHECK(!text->overflow && head.size <= TN_HTTP_CHUNK_HEAD_SIZE);
    unsigned char *from = text->data - head.size;
    memcpy(from, memory, head.size);
    return (struct tn_bytes){from, head.size + text->size};
}

bool tn_http_answer_part(struct tn_http_connection *c)
{
    struct tn_buf text;
    size_t before = TN_HTTP_ANSWER_HEAD_SIZE + TN_HTTP_CHUNK_HEAD_SIZE;
    tn_buf_init(&text, c->body.data + before, c->body.capacity - before - TN_HTTP_CHUNK_TAIL_SIZE);
    pack_parts(c, &text);
    if (text.size == 0 && c->parted) {
        return false; /* one is too long */
    }
    c->answer = frame_chunk(c, &text);
    return true;
}

static void begin_parts(struct tn_http_connection *c)
{
    unsigned char memory[TN_HTTP_ANSWER_HEAD_SIZE];
    struct tn_buf head;
    bool bodiless = tn_bytes_equal(c->reader.method, tn_bytes_of("HEAD"));
    c->last |= c->reader.old;
    c->part = 0;
    c->parted = true;
    if (!tn_http_answer_part(c)) {
        c->parted = false;
        tn_http_answer_error(c, 500, 0, "the page can't be made");
        return;
    }
    tn_buf_init(&head, memory, sizeof memory);
    tn_buf_format(&head, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\n%s", c->asked.page->type,
                  c->reader.old ? "" : "Transfer-Encoding: chunked\r\n");
    put_fields(c, 200, &head);
    TN_CHECK(!head.overflow);
    unsigned char *from = c->body.data + (c->answer.data - c->body.data) - head.size;
    memcpy(from, memory, head.size);
    c->parted = c->parted && !bodiless;
    c->answer = (struct tn_bytes){from, head.size + (bodiless ? 0 : c->answer.size)};
}

void tn_http_answer_page(struct tn_http_connection *c)
{
    const struct tn_http_page *page = c->asked.page;
    if (page->part) {
        begin_parts(c);
        return;
    }
    struct tn_bytes body = tn_buf_bytes(&c->body);
    struct tn_buf *out = begin(c);
    struct tn_buf text;
    tn_buf_init(&text, out->data + out->size, out->capacity - out->size);
    int status = page->ask ? page->ask(page->user, c->reader.query, body, &text)
                           : page->fill(page->user, &text);
    out->size += text.size;
    if (text.overflow) {
        tn_http_answer_error(c, 500, 0, "the page is longer than an answer can be");
        return;
    }
    finish(c, status, page->type);
}
