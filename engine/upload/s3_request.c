#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "base/hash.h"
#include "upload/s3_private.h"
#include "upload/sigv4.h"

#define TIME_MAX_MS \
    INT64_C(253402300799000) /* the end of year 9999: a date has four digits for it */

enum {
    PATH_SIZE = 4096, /* a key's bytes, each as %XX, and a bucket's */
    QUERY_SIZE = 12 * 1024,
    AUTHORIZATION_SIZE = 1024,
    NUMBER_SIZE = 24,
    RANGE_SIZE = 64,
};

/* What a request is made of, zero-terminated, in scratch. */
struct parts {
    const char *path;
    const char *query;
    char payload[TN_SIGV4_HASH_SIZE];
    char date[TN_SIGV4_DATE_SIZE];
    char range[RANGE_SIZE];
    struct tn_http_header headers[TN_SIGV4_HEADERS_MAX + 2];
    uint32_t header_count;
};

static const char *const methods[] = {
    [TN_S3_GET] = "GET",
    [TN_S3_HEAD] = "HEAD",
    [TN_S3_PUT] = "PUT",
    [TN_S3_DELETE] = "DELETE",
    [TN_S3_LIST] = "GET",
    [TN_S3_CREATE_UPLOAD] = "POST",
    [TN_S3_UPLOAD_PART] = "PUT",
    [TN_S3_COMPLETE_UPLOAD] = "POST",
    [TN_S3_ABORT_UPLOAD] = "DELETE",
    [TN_S3_LIST_PARTS] = "GET",
    [TN_S3_LIST_UPLOADS] = "GET",
};

/* The key is no part of the path, then. */
static bool is_of_bucket(enum tn_s3_verb verb)
{
    return verb == TN_S3_LIST || verb == TN_S3_LIST_UPLOADS;
}

static bool has_body(enum tn_s3_verb verb)
{
    return verb == TN_S3_PUT || verb == TN_S3_UPLOAD_PART || verb == TN_S3_COMPLETE_UPLOAD ||
           verb == TN_S3_CREATE_UPLOAD;
}

static bool of_upload(enum tn_s3_verb verb)
{
    return verb == TN_S3_UPLOAD_PART || verb == TN_S3_COMPLETE_UPLOAD ||
           verb == TN_S3_ABORT_UPLOAD || verb == TN_S3_LIST_PARTS;
}

static const char *what_is_wrong(const struct tn_s3_exchange *exchange)
{
    const struct tn_s3_request *request = exchange->request;
    size_t key_size = strlen(request->key);
    bool list = is_of_bucket(request->verb);
    if (key_size > TN_S3_KEY_MAX || (key_size == 0 && !list)) {
        return "a key has 1 to 1024 bytes";
    }
    if (of_upload(request->verb) != (request->upload_id && *request->upload_id)) {
        return "the upload's id is missing, or too many";
    }
    if (request->verb == TN_S3_UPLOAD_PART &&
        (request->part < 1 || request->part > TN_S3_PARTS_MAX)) {
        return "parts are numbered 1 to 10000";
    }
    if (request->range_size > 0 && request->range_first > UINT64_MAX - request->range_size) {
        return "its range has no end";
    }
    if (request->body_size > 0 && !has_body(request->verb)) {
        return "it has no body";
    }
    if (request->body_size > 0 && !request->body_sha256 && !exchange->store->tls) {
        return "without TLS the body must be signed: its SHA-256 is missing";
    }
    return NULL;
}

/* ---- path and query ---- */

static const char *end_text(struct tn_buf *buf, size_t from)
{
    tn_buf_byte(buf, 0);
    return (const char *)buf->data + from;
}

static tn_rc take_buf(struct tn_arena *scratch, size_t size, struct tn_buf *buf, struct tn_err *err)
{
    void *memory = NULL;
    tn_rc rc = tn_arena_need(scratch, size, "a request", &memory, err);
    if (rc == TN_OK) {
        tn_buf_init(buf, memory, size);
    }
    return rc;
}

static void write_path(const struct tn_s3_exchange *exchange, struct tn_buf *buf)
{
    const struct tn_s3_store *store = exchange->store;
    tn_buf_byte(buf, '/');
    if (store->path_style) {
        tn_sigv4_encode(buf, tn_bytes_of(store->bucket), false);
    }
    if (!is_of_bucket(exchange->request->verb)) {
        tn_buf_text(buf, store->path_style ? "/" : "");
        tn_sigv4_encode(buf, tn_bytes_of(exchange->request->key), true);
    }
}

struct query {
    struct tn_sigv4_pair pairs[TN_SIGV4_QUERY_MAX];
    uint32_t count;
};

static void add_pair(struct query *query, const char *name, const char *value)
{
    if (value) {
        TN_CHECK(query->count < TN_SIGV4_QUERY_MAX);
        query->pairs[query->count++] = (struct tn_sigv4_pair){name, value};
    }
}

static const char *number_text(char text[NUMBER_SIZE], uint32_t number)
{
    (void)snprintf(text, NUMBER_SIZE, "%" PRIu32, number);
    return number > 0 ? text : NULL;
}

static void write_query(const struct tn_s3_request *request, struct tn_buf *buf)
{
    struct query query = {.count = 0};
    char part[NUMBER_SIZE];
    char count[NUMBER_SIZE];
    const char *part_text = number_text(part, request->part);
    const char *count_text = number_text(count, request->count_max);
    switch (request->verb) {
    case TN_S3_LIST:
        add_pair(&query, "list-type", "2");
        add_pair(&query, "prefix", request->key);
        add_pair(&query, "delimiter", request->delimiter);
        add_pair(&query, "continuation-token", request->token);
        add_pair(&query, "start-after", request->token ? NULL : request->after);
        add_pair(&query, "max-keys", count_text);
        break;
    case TN_S3_CREATE_UPLOAD:
        add_pair(&query, "uploads", "");
        break;
    case TN_S3_LIST_UPLOADS:
        add_pair(&query, "uploads", "");
        add_pair(&query, "prefix", request->key);
        break;
    case TN_S3_UPLOAD_PART:
        add_pair(&query, "partNumber", part_text);
        add_pair(&query, "uploadId", request->upload_id);
        break;
    case TN_S3_LIST_PARTS:
        add_pair(&query, "uploadId", request->upload_id);
        add_pair(&query, "part-number-marker", part_text);
        add_pair(&query, "max-parts", count_text);
        break;
    case TN_S3_COMPLETE_UPLOAD:
    case TN_S3_ABORT_UPLOAD:
        add_pair(&query, "uploadId", request->upload_id);
        break;
    case TN_S3_GET:
    case TN_S3_HEAD:
    case TN_S3_PUT:
    case TN_S3_DELETE:
        break;
    }
    tn_sigv4_query(buf, query.pairs, query.count);
}

/* ---- headers ---- */

static void add_header(struct parts *parts, const char *name, const char *value)
{
    if (value) {
        TN_CHECK(parts->header_count < sizeof parts->headers / sizeof parts->headers[0]);
        parts->headers[parts->header_count++] = (struct tn_http_header){name, value};
    }
}

static void write_payload(const struct tn_s3_request *request, bool tls,
                          char payload[TN_SIGV4_HASH_SIZE])
{
    unsigned char digest[TN_SHA256_SIZE];
    if (request->body_size > 0 && !request->body_sha256 && tls) {
        (void)snprintf(payload, TN_SIGV4_HASH_SIZE, "%s", TN_SIGV4_UNSIGNED);
        return;
    }
    if (request->body_size == 0) {
        tn_hash_sha256((struct tn_bytes){NULL, 0}, digest);
    }
    tn_sigv4_hex(request->body_size == 0 ? digest : request->body_sha256, payload);
}

static const char *range_text(const struct tn_s3_request *request, char text[RANGE_SIZE])
{
    if (request->verb != TN_S3_GET || request->range_size == 0) {
        return NULL;
    }
    (void)snprintf(text, RANGE_SIZE, "bytes=%" PRIu64 "-%" PRIu64, request->range_first,
                   request->range_first + request->range_size - 1);
    return text;
}

static void sign(const struct tn_s3_exchange *exchange, struct parts *parts, struct tn_buf *buf)
{
    const struct tn_s3_store *store = exchange->store;
    const struct tn_sigv4_spec spec = {
        .access_key = store->access_key,
        .secret_key = store->secret_key,
        .region = store->region,
        .service = "s3",
        .method = methods[exchange->request->verb],
        .path = parts->path,
        .query = parts->query,
        .headers = parts->headers,
        .header_count = parts->header_count,
        .payload = parts->payload,
        .date = parts->date,
    };
    tn_sigv4_sign(&spec, buf);
    const char *value = end_text(buf, 0);
    if (!buf->overflow) {
        add_header(parts, "authorization", value);
        add_header(parts, "user-agent", "tarn");
    }
}

/* By the store's clock, as far as it was learned; clocks may say anything, theirs and ours. */
static int64_t signing_ms(const struct tn_s3_exchange *exchange)
{
    int64_t time_ms = exchange->now_ms + exchange->store->clock_offset_ms;
    time_ms = time_ms < TIME_MAX_MS ? time_ms : TIME_MAX_MS;
    return time_ms > 0 ? time_ms : 0;
}

static void write_headers(const struct tn_s3_exchange *exchange, struct parts *parts)
{
    const struct tn_s3_store *store = exchange->store;
    const struct tn_s3_request *request = exchange->request;
    write_payload(request, store->tls, parts->payload);
    tn_sigv4_date(signing_ms(exchange), parts->date);
    add_header(parts, "host", store->authority);
    add_header(parts, "x-amz-content-sha256", parts->payload);
    add_header(parts, "x-amz-date", parts->date);
    add_header(parts, "x-amz-security-token", store->session_token);
    add_header(parts, "range", range_text(request, parts->range));
    add_header(parts, "if-none-match", request->if_absent ? "*" : NULL);
    add_header(parts, "if-match", request->if_match);
}

static tn_rc write_in(const struct tn_s3_exchange *exchange, struct tn_arena *scratch,
                      struct parts *parts, struct tn_buf *head, struct tn_err *err)
{
    struct tn_buf path;
    struct tn_buf query;
    struct tn_buf authorization;
    tn_rc rc = take_buf(scratch, PATH_SIZE, &path, err);
    if (rc == TN_OK) {
        rc = take_buf(scratch, QUERY_SIZE, &query, err);
    }
    if (rc == TN_OK) {
        rc = take_buf(scratch, AUTHORIZATION_SIZE, &authorization, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    write_path(exchange, &path);
    write_query(exchange->request, &query);
    parts->path = end_text(&path, 0);
    parts->query = end_text(&query, 0);
    if (path.overflow || query.overflow) {
        return tn_err_set(err, TN_INVALID, 0, "the request's names are too long");
    }
    write_headers(exchange, parts);
    sign(exchange, parts, &authorization);
    if (authorization.overflow) {
        return tn_err_set(err, TN_INVALID, 0, "the access key is too long");
    }
    const struct tn_http_request request = {
        .method = methods[exchange->request->verb],
        .path = parts->path,
        .query = parts->query,
        .headers = parts->headers,
        .header_count = parts->header_count,
        .has_body = has_body(exchange->request->verb),
        .body_size = exchange->request->body_size,
    };
    return tn_http_request(exchange->http, &request, head, err);
}

tn_rc tn_s3_write(const struct tn_s3_exchange *exchange, struct tn_arena *scratch,
                  struct tn_buf *head, struct tn_err *err)
{
    struct parts parts = {.header_count = 0};
    const char *wrong = what_is_wrong(exchange);
    if (wrong) {
        return tn_err_set(err, TN_INVALID, 0, "%s", wrong);
    }
    size_t mark = tn_arena_mark(scratch);
    tn_rc rc = write_in(exchange, scratch, &parts, head, err);
    tn_arena_reset(scratch, mark);
    return rc;
}

/* ---- the parts of an upload ---- */

static void quote(struct tn_buf *out, const char *text)
{
    for (; *text; text++) {
        const char one[2] = {*text, 0};
        tn_buf_text(out, *text == '"'   ? "&quot;"
                         : *text == '&' ? "&amp;"
                         : *text == '<' ? "&lt;"
                         : *text == '>' ? "&gt;"
                                        : one);
    }
}

void tn_s3_parts(struct tn_buf *out, const struct tn_s3_part *parts, uint32_t count)
{
    tn_buf_text(out, "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    for (uint32_t i = 0; i < count; i++) {
        tn_buf_format(out, "<Part><PartNumber>%" PRIu32 "</PartNumber><ETag>", parts[i].number);
        quote(out, parts[i].etag);
        tn_buf_text(out, "</ETag></Part>");
    }
    tn_buf_text(out, "</CompleteMultipartUpload>");
}
