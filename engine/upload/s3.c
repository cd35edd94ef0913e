#include "base/check.h"
#include "upload/s3_private.h"

enum { PAUSE_FIRST_MS = 500, PAUSE_MAX_MS = 60 * 1000, DOUBLINGS_MAX = 7 };

tn_rc tn_s3_start(struct tn_s3_exchange *exchange, struct tn_s3_store *store,
                  const struct tn_s3_request *request, struct tn_http *http, int64_t now_ms,
                  struct tn_arena *scratch, struct tn_buf *head, struct tn_err *err)
{
    memset(exchange, 0, sizeof *exchange); /* too large for a literal on the stack */
    exchange->store = store;
    exchange->request = request;
    exchange->http = http;
    exchange->now_ms = now_ms;
    exchange->entry.etag = exchange->entry_etag;
    exchange->entry.upload_id = exchange->entry_upload;
    tn_xml_init(&exchange->xml, tn_s3_take_element, exchange);
    tn_rc rc = tn_s3_write(exchange, scratch, head, err);
    if (rc != TN_OK) {
        (void)tn_err_in(err, "%s s3://%s/%.120s", tn_s3_verb_text(request->verb), store->bucket,
                        request->key);
    }
    return rc;
}

void tn_s3_lost(struct tn_s3_exchange *exchange, struct tn_err *err)
{
    if (exchange->answer.verdict == TN_S3_OPEN) {
        tn_xml_deinit(&exchange->xml);
        tn_s3_judge_lost(exchange, err);
    }
}

/* At GET: more bytes than were asked for would go past the caller's buffer. */
static tn_rc count_object(struct tn_s3_exchange *exchange, size_t size, struct tn_err *err)
{
    uint64_t range = exchange->request->range_size;
    exchange->answer.size += size;
    if (range > 0 && exchange->answer.status == 206 && exchange->answer.size > range) {
        return tn_err_set(err, TN_CORRUPT, 0, "answer: more bytes than were asked for");
    }
    return TN_OK;
}

/* An object of an answer that `finish` will not believe is not given out. */
static bool is_given(const struct tn_s3_exchange *exchange)
{
    return exchange->answer.etag[0] && tn_s3_is_asked(exchange);
}

/* Bytes that end where the connection does may be all of an object, or not. */
static tn_rc check_end(const struct tn_s3_exchange *exchange, struct tn_err *err)
{
    if (tn_s3_is_object(exchange) && exchange->http->state == TN_HTTP_IN_BODY_CLOSE) {
        return tn_err_set(err, TN_CORRUPT, 0, "answer: it does not tell where the object ends");
    }
    return TN_OK;
}

/* XML that isn't, or rows that the caller refused, where they are the answer: it has failed. */
static tn_rc check_xml(struct tn_s3_exchange *exchange, struct tn_err *err)
{
    if (exchange->xml_rc == TN_OK || exchange->answer.status / 100 != 2 ||
        !tn_s3_answers_xml(exchange->request->verb)) {
        return TN_OK;
    }
    *err = exchange->xml_err;
    return exchange->xml_rc;
}

static tn_rc take_event(struct tn_s3_exchange *exchange, enum tn_http_event event,
                        struct tn_bytes piece, struct tn_bytes *body, struct tn_err *err)
{
    bool object = tn_s3_is_object(exchange);
    switch (event) {
    case TN_HTTP_HEAD:
        tn_s3_take_headers(exchange);
        return check_end(exchange, err);
    case TN_HTTP_BODY:
        if (!object) {
            tn_s3_take_xml(exchange, piece);
            return check_xml(exchange, err);
        }
        if (is_given(exchange)) {
            *body = piece;
        }
        return count_object(exchange, piece.size, err);
    case TN_HTTP_END:
        if (!object) {
            tn_s3_end_xml(exchange);
        }
        exchange->done = true;
        return check_xml(exchange, err);
    case TN_HTTP_MORE:
        break;
    }
    return TN_OK;
}

tn_rc tn_s3_read(struct tn_s3_exchange *exchange, struct tn_bytes *input, struct tn_bytes *body,
                 struct tn_err *err)
{
    enum tn_http_event event = TN_HTTP_HEAD;
    tn_rc rc = TN_OK;
    *body = (struct tn_bytes){NULL, 0};
    TN_CHECK(exchange->answer.verdict == TN_S3_OPEN && !exchange->done);
    while (rc == TN_OK && event != TN_HTTP_MORE && !exchange->done) {
        struct tn_bytes piece;
        /* The end comes with the last piece: nobody reads on when no input is left. */
        if (body->size > 0 && exchange->http->state != TN_HTTP_AT_END) {
            break;
        }
        rc = tn_http_read(exchange->http, input, &event, &piece, err);
        if (rc == TN_OK) {
            rc = take_event(exchange, event, piece, body, err);
        }
    }
    if (rc != TN_OK) {
        tn_s3_lost(exchange, err);
    }
    return rc;
}

tn_rc tn_s3_closed(struct tn_s3_exchange *exchange, struct tn_err *err)
{
    struct tn_bytes none;
    TN_CHECK(exchange->answer.verdict == TN_S3_OPEN && !exchange->done);
    tn_rc rc = tn_http_closed(exchange->http, err);
    if (rc == TN_OK) {
        rc = take_event(exchange, TN_HTTP_END, (struct tn_bytes){NULL, 0}, &none, err);
    }
    if (rc != TN_OK) {
        tn_s3_lost(exchange, err);
    }
    return rc;
}

tn_rc tn_s3_finish(struct tn_s3_exchange *exchange, struct tn_err *err)
{
    TN_CHECK(exchange->done && exchange->answer.verdict == TN_S3_OPEN);
    tn_xml_deinit(&exchange->xml);
    return tn_s3_judge(exchange, err);
}

uint32_t tn_s3_pause_ms(uint32_t attempt, uint32_t retry_after_ms, uint64_t random)
{
    uint32_t doublings = attempt > 1 ? attempt - 1 : 0;
    uint32_t pause = PAUSE_FIRST_MS << (doublings < DOUBLINGS_MAX ? doublings : DOUBLINGS_MAX);
    pause = pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS;
    pause -= (uint32_t)(random % (pause / 2 + 1));
    return pause > retry_after_ms ? pause : retry_after_ms;
}
