#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "upload/s3_target_private.h"

enum {
    CONNECT_MS = 15 * 1000,
    SECURE_MS = 30 * 1000,
    IDLE_MS = 15 * 1000, /* a store closes sooner or later; some after twenty seconds */
    LEARNED_MAX = 2,     /* the clock and the region */
    GARBLED_MAX = 3,     /* answers that nobody understands, before it is no store */
    MS_PER_S = 1000,
};
#define NS_PER_MS INT64_C(1000000)

/* ---- connections ---- */

static bool is_quiet(const struct tn_s3_link *link)
{
    return !tn_request_under_way(&link->opening) && !tn_request_under_way(&link->reading) &&
           !tn_request_under_way(&link->writing) && !tn_request_under_way(&link->timer);
}

static void close_to(struct tn_s3_link *link, enum tn_s3_link_state next)
{
    tn_request_cancel(&link->opening);
    tn_request_cancel(&link->timer);
    if (link->stream) {
        tn_stream_close(link->stream, NULL);
        link->stream = NULL;
    }
    link->state = TN_S3_LINK_CLOSE;
    link->next = next;
}

static void pause(struct tn_s3_link *link)
{
    if (link->pause_ms > 0) {
        tn_net_after(link->target->net, link->pause_ms, &link->timer);
    }
    link->state = TN_S3_LINK_PAUSE;
}

static void leave_to(struct tn_s3_link *link, enum tn_s3_link_state next)
{
    if (next == TN_S3_LINK_PAUSE) {
        pause(link);
    } else {
        link->state = next;
    }
}

/* A stream that came although nobody wanted it any more goes, too. */
static void step_close(struct tn_s3_link *link)
{
    if (!is_quiet(link)) {
        return;
    }
    if (link->open_due && link->opening.rc == TN_OK && link->opening.stream) {
        tn_stream_close(link->opening.stream, NULL);
    }
    link->open_due = false;
    link->read_due = false;
    link->write_due = false;
    leave_to(link, link->next);
}

static uint32_t patience_of(const struct tn_s3_link *link, uint32_t usual_ms)
{
    return link->target->answer_ms > 0 ? link->target->answer_ms : usual_ms;
}

static void connect_stream(struct tn_s3_link *link)
{
    const struct tn_s3_store *store = &link->target->store;
    const struct tn_endpoint to = {store->host, store->port};
    link->opening.timeout_ms = patience_of(link, CONNECT_MS);
    link->open_due = true;
    link->moves = link->target->moves;
    link->state = TN_S3_LINK_CONNECT;
    tn_net_connect(link->target->net, &to, &link->opening);
}

/* ---- the end of a job ---- */

static enum tn_s3_trouble trouble_of(const struct tn_s3_link *link)
{
    static const struct {
        const char *code;
        enum tn_s3_trouble trouble;
    } troubles[] = {
        {"InvalidAccessKeyId", TN_S3_TROUBLE_CREDENTIALS},
        {"XAdminUserNotFound", TN_S3_TROUBLE_CREDENTIALS},
        {"SignatureDoesNotMatch", TN_S3_TROUBLE_CREDENTIALS},
        {"ExpiredToken", TN_S3_TROUBLE_CREDENTIALS},
        {"ExpiredTokenException", TN_S3_TROUBLE_CREDENTIALS},
        {"InvalidToken", TN_S3_TROUBLE_CREDENTIALS},
        {"TokenRefreshRequired", TN_S3_TROUBLE_CREDENTIALS},
        {"RequestTimeTooSkewed", TN_S3_TROUBLE_CLOCK},
        {"QuotaExceeded", TN_S3_TROUBLE_QUOTA},
        {"XMinioAdminBucketQuotaExceeded", TN_S3_TROUBLE_QUOTA},
        {"XMinioStorageFull", TN_S3_TROUBLE_QUOTA},
        {"InsufficientStorage", TN_S3_TROUBLE_QUOTA},
    };
    const struct tn_s3_answer *answer = &link->exchange.answer;
    if (link->verdict == TN_S3_OPEN || answer->status == 0) {
        return TN_S3_TROUBLE_NETWORK;
    }
    for (size_t i = 0; i < sizeof troubles / sizeof troubles[0]; i++) {
        if (strcmp(answer->code, troubles[i].code) == 0) {
            return troubles[i].trouble;
        }
    }
    return answer->status == 401 || answer->status == 403 ? TN_S3_TROUBLE_PERMISSION
           : answer->status == 507                        ? TN_S3_TROUBLE_QUOTA
                                                          : TN_S3_TROUBLE_STORE;
}

static void end_file(struct tn_s3_link *link)
{
    struct tn_s3_target *target = link->target;
    link->job.from->vtable->close(link->job.from, link->job.file);
    if (link->rc != TN_OK && target->failed == TN_OK) {
        target->failed = link->rc;
        target->failure = link->err;
        target->failure_trouble = link->trouble;
    }
}

static void end_part(struct tn_s3_link *link)
{
    struct tn_s3_upload *upload = &link->target->upload;
    if (link->rc == TN_OK) {
        memcpy(upload->etags[link->job.request.part - 1], link->exchange.answer.etag,
               TN_S3_ETAG_SIZE);
    } else if (upload->rc == TN_OK) {
        upload->rc = link->rc;
        upload->err = link->err;
        upload->trouble = link->trouble;
    }
}

/* What the caller of a target can't do anything with is IO; the texts tell more. */
static tn_rc told(tn_rc rc)
{
    return rc == TN_AGAIN ? TN_IO : rc;
}

static enum tn_s3_link_state end(struct tn_s3_link *link, tn_rc rc, enum tn_s3_trouble trouble)
{
    link->rc = told(rc);
    link->err.code = link->rc;
    link->trouble = trouble;
    link->ended = true;
    if (link->job.kind == TN_S3_JOB_FILE) {
        end_file(link);
    } else if (link->job.kind == TN_S3_JOB_PART) {
        end_part(link);
    }
    return TN_S3_LINK_FREE;
}

/* ---- what comes after a try ---- */

static uint64_t random_of(const struct tn_s3_link *link)
{
    return link->target->clock->vtable->random(link->target->clock);
}

/* Sending isn't waiting, however slow the link is. */
static void note_sent(struct tn_s3_link *link)
{
    struct tn_s3_target *target = link->target;
    if (target->progress_ns > link->since_ns) {
        link->since_ns = target->progress_ns;
        link->sent_ns = 0;
    }
    int64_t from_ns = link->try_ns > link->since_ns ? link->try_ns : link->since_ns;
    link->sent_ns += link->wrote_ns > from_ns ? link->wrote_ns - from_ns : 0;
    link->wrote_ns = 0;
}

static void say_how_long(struct tn_s3_link *link, enum tn_s3_trouble trouble, int64_t ms)
{
    (void)tn_err_in(&link->err, "%s %s for %" PRId64 " s", link->target->store.authority,
                    trouble == TN_S3_TROUBLE_NETWORK ? "has not answered" : "has put us off",
                    ms / MS_PER_S);
}

/* A pause, or the end of patience: also when the store says that it will come to that. */
static enum tn_s3_link_state later(struct tn_s3_link *link, uint32_t retry_after_ms)
{
    struct tn_s3_target *target = link->target;
    note_sent(link);
    int64_t waited = (tn_s3_now_ns(target) - link->since_ns - link->sent_ns) / NS_PER_MS;
    bool too_late = retry_after_ms > target->patience_ms;
    if (waited >= target->patience_ms || too_late) {
        enum tn_s3_trouble trouble = trouble_of(link);
        say_how_long(link, trouble, too_late ? retry_after_ms : waited);
        return end(link, TN_IO, trouble);
    }
    link->tries++;
    link->pause_ms = tn_s3_pause_ms(link->tries, retry_after_ms, random_of(link));
    return TN_S3_LINK_PAUSE;
}

/* At the name of a file there is one of this size. */
static enum tn_s3_link_state looked(struct tn_s3_link *link)
{
    uint64_t size = link->exchange.answer.size;
    if (size == link->job.request.body_size) {
        return end(link, TN_OK, TN_S3_TROUBLE_NONE);
    }
    tn_rc rc =
        tn_err_set(&link->err, TN_CONFLICT, 0,
                   "put s3://%s/%.120s: there is one of %" PRIu64 " bytes, ours has %" PRIu64,
                   link->target->store.bucket, link->key, size, link->job.request.body_size);
    return end(link, rc, TN_S3_TROUBLE_STORE);
}

static enum tn_s3_link_state learned(struct tn_s3_link *link)
{
    struct tn_s3_target *target = link->target;
    target->moves += link->exchange.answer.region[0] != 0;
    if (link->learned++ < LEARNED_MAX) {
        return TN_S3_LINK_HASH;
    }
    return end(link, TN_IO, TN_S3_TROUBLE_CLOCK);
}

/* What was looked at isn't there: the file goes again. */
static enum tn_s3_link_state missed(struct tn_s3_link *link)
{
    if (link->looks) {
        link->looks = link->asks = false;
        link->err = link->cause;
        return later(link, 0);
    }
    return end(link, TN_ABSENT, TN_S3_TROUBLE_NONE);
}

/* HEAD was refused, and GET wasn't: no policy of S3 does that. */
static enum tn_s3_link_state head_refused(struct tn_s3_link *link)
{
    tn_rc rc = tn_err_set(&link->err, TN_IO, 0, "look at s3://%s/%.120s: permission denied (403)",
                          link->target->store.bucket, link->key);
    return end(link, rc, TN_S3_TROUBLE_PERMISSION);
}

/* Nobody says whether it is there. That it was there, by the answer to our PUT, makes it an
 * error; else it is as good as absent. The trouble stays, for who
 * finds nothing and wants to say why. */
static enum tn_s3_link_state hidden(struct tn_s3_link *link)
{
    if (link->looks && link->sure) {
        return end(link, TN_IO, TN_S3_TROUBLE_PERMISSION);
    }
    link->err.os = EACCES;
    return link->looks ? missed(link) : end(link, TN_ABSENT, TN_S3_TROUBLE_PERMISSION);
}

static enum tn_s3_link_state refuse(struct tn_s3_link *link)
{
    if (link->request.verb == TN_S3_HEAD && link->exchange.answer.status == 403) {
        link->asks = true;
        return TN_S3_LINK_HASH;
    }
    if (link->request.verb == TN_S3_GET && tn_s3_link_is_denied(link)) {
        return hidden(link);
    }
    if (tn_s3_link_is_denied(link)) {
        link->err.os = EACCES;
    }
    return end(link, link->rc, trouble_of(link));
}

static enum tn_s3_link_state decide(struct tn_s3_link *link, bool stale)
{
    bool file = link->job.kind == TN_S3_JOB_FILE;
    if (link->asks && (link->verdict == TN_S3_DONE || link->exchange.answer.status == 416)) {
        return head_refused(link);
    }
    switch (link->verdict) {
    case TN_S3_DONE:
        return link->looks ? looked(link) : end(link, TN_OK, TN_S3_TROUBLE_NONE);
    case TN_S3_ABSENT:
        return missed(link);
    case TN_S3_CONFLICT:
    case TN_S3_UNKNOWN:
        link->looks = file;
        link->sure = link->verdict == TN_S3_CONFLICT;
        link->cause = link->err;
        return file ? TN_S3_LINK_HASH : end(link, link->rc, trouble_of(link));
    case TN_S3_LATER:
        if (stale && !link->resent) {
            link->resent = true;
            return TN_S3_LINK_HASH;
        }
        return later(link, link->exchange.answer.retry_after_ms);
    case TN_S3_AGAIN:
        return learned(link);
    case TN_S3_WRONG:
        if (link->rc == TN_CORRUPT && link->tries < GARBLED_MAX) {
            return later(link, 0);
        }
        break;
    case TN_S3_PERSON:
        return refuse(link);
    case TN_S3_OPEN:
        break;
    }
    return end(link, link->rc == TN_CORRUPT ? TN_IO : link->rc, trouble_of(link));
}

/* A store that refuses a body may not have read it, and resets the connection then. */
static bool is_kept(const struct tn_s3_link *link)
{
    return tn_http_reusable(&link->http) && !link->write_due && !link->write_failed &&
           link->out.size == 0 && !link->excess &&
           !(link->exchange.answer.status / 100 == 4 && link->request.body_size > 0);
}

/* Of a question nothing is sent but its head: what it takes is the way there and back. */
static void note_answer(struct tn_s3_link *link)
{
    struct tn_target_counts *counts = &link->target->target.counts;
    int64_t ms = (tn_s3_now_ns(link->target) - link->try_ns) / NS_PER_MS + 1;
    bool asks = link->request.verb == TN_S3_HEAD || link->request.verb == TN_S3_GET;
    if (asks && link->exchange.answer.status > 0 &&
        (counts->answer_ms == 0 || ms < counts->answer_ms)) {
        counts->answer_ms = (uint32_t)(ms < UINT32_MAX ? ms : UINT32_MAX);
    }
}

/* That a file still isn't there is none: or putting and looking would go on for ever. */
static bool is_progress(const struct tn_s3_link *link)
{
    return link->verdict == TN_S3_DONE || (link->verdict == TN_S3_ABSENT && !link->looks);
}

static void conclude(struct tn_s3_link *link, bool lost)
{
    bool stale = lost && !link->heard && link->idle_ns != 0;
    bool kept = !lost && is_kept(link);
    note_sent(link);
    link->verdict = link->exchange.answer.verdict;
    link->idle_ns = tn_s3_now_ns(link->target);
    if (is_progress(link)) {
        link->target->progress_ns = link->idle_ns;
    }
    note_answer(link);
    enum tn_s3_link_state next = decide(link, stale);
    if (kept) {
        leave_to(link, next);
    } else {
        close_to(link, next);
    }
}

static void fail_try(struct tn_s3_link *link, tn_rc rc)
{
    close_to(link, end(link, rc, TN_S3_TROUBLE_NONE));
}

static void step_talk(struct tn_s3_link *link, enum tn_s3_wire wire)
{
    switch (wire) {
    case TN_S3_WIRE_OPEN:
        return;
    case TN_S3_WIRE_DONE:
        conclude(link, false);
        return;
    case TN_S3_WIRE_LOST:
        conclude(link, true);
        return;
    case TN_S3_WIRE_FATAL:
        fail_try(link, link->rc);
        return;
    }
}

/* ---- a try ---- */

static void talk(struct tn_s3_link *link)
{
    link->state = TN_S3_LINK_TALK;
    step_talk(link, tn_s3_wire_begin(link));
}

/* No connection came about. A certificate doesn't get better by waiting. */
static void refused(struct tn_s3_link *link)
{
    enum tn_s3_link_state next;
    link->err = link->opening.err;
    (void)tn_err_in(&link->err, "%s s3://%s/%.120s", tn_s3_verb_text(link->job.request.verb),
                    link->target->store.bucket, link->key);
    link->verdict = TN_S3_OPEN;
    if (link->opening.rc == TN_INVALID) {
        bool clock = strstr(link->err.text, "clock") != NULL;
        next = end(link, TN_IO, clock ? TN_S3_TROUBLE_CLOCK : TN_S3_TROUBLE_CERTIFICATE);
    } else {
        next = later(link, 0);
    }
    close_to(link, next);
}

static void step_open(struct tn_s3_link *link)
{
    struct tn_s3_target *target = link->target;
    if (tn_request_under_way(&link->opening)) {
        return;
    }
    link->open_due = false;
    if (link->opening.rc != TN_OK) {
        refused(link);
        return;
    }
    if (target->store.tls && link->state == TN_S3_LINK_CONNECT) {
        link->state = TN_S3_LINK_SECURE;
        link->open_due = true;
        link->opening.timeout_ms = patience_of(link, SECURE_MS);
        tn_tls_open(target->tls, NULL, link->opening.stream, target->store.host, &link->opening);
        return;
    }
    link->stream = link->opening.stream;
    link->idle_ns = 0;
    link->answer_id[0] = 0;
    tn_http_init(&link->http, link->head, TN_HTTP_HEAD_SIZE);
    talk(link);
}

static void take_connection(struct tn_s3_link *link)
{
    int64_t idle_ns = tn_s3_now_ns(link->target) - link->idle_ns;
    if (!link->stream) {
        connect_stream(link);
    } else if (link->moves != link->target->moves || idle_ns > IDLE_MS * NS_PER_MS) {
        close_to(link, TN_S3_LINK_HASH);
    } else {
        talk(link);
    }
}

static bool needs_hash(const struct tn_s3_link *link)
{
    return !link->hashed && !link->looks && !link->target->store.tls &&
           link->job.request.body_size > 0;
}

/* True: another piece at once. */
static bool step_hash(struct tn_s3_link *link)
{
    enum tn_s3_wire wire = needs_hash(link) ? tn_s3_wire_hash(link) : TN_S3_WIRE_DONE;
    if (wire == TN_S3_WIRE_OPEN) {
        return true;
    }
    if (wire == TN_S3_WIRE_FATAL) {
        link->state = end(link, link->rc, TN_S3_TROUBLE_NONE);
        return false;
    }
    tn_s3_credentials_refresh(link->target);
    take_connection(link);
    return false;
}

bool tn_s3_link_step(struct tn_s3_link *link)
{
    switch (link->state) {
    case TN_S3_LINK_FREE:
        return false;
    case TN_S3_LINK_PAUSE:
        if (!tn_request_under_way(&link->timer)) {
            link->at = 0;
            link->state = TN_S3_LINK_HASH;
        }
        break;
    case TN_S3_LINK_HASH:
        return step_hash(link);
    case TN_S3_LINK_CONNECT:
    case TN_S3_LINK_SECURE:
        step_open(link);
        break;
    case TN_S3_LINK_TALK:
        step_talk(link, tn_s3_wire_step(link));
        break;
    case TN_S3_LINK_CLOSE:
        step_close(link);
        break;
    }
    return link->state == TN_S3_LINK_HASH;
}

/* ---- jobs ---- */

void tn_s3_link_start(struct tn_s3_link *link, const struct tn_s3_job *job, const char *key)
{
    TN_CHECK(link->state == TN_S3_LINK_FREE);
    link->job = *job;
    (void)snprintf(link->key, sizeof link->key, "%s", key);
    link->ended = false;
    link->rc = TN_OK;
    link->verdict = TN_S3_OPEN;
    link->err = (struct tn_err){0};
    link->tries = 0;
    link->pause_ms = job->pause_ms;
    link->since_ns = tn_s3_now_ns(link->target);
    link->sent_ns = 0;
    link->wrote_ns = 0;
    link->looks = false;
    link->sure = false;
    link->asks = false;
    link->resent = false;
    link->learned = 0;
    link->hashed = false;
    link->at = 0;
    link->appended = 0;
    link->etag[0] = 0;
    link->mark = job->arena ? tn_arena_mark(job->arena) : 0;
    link->told = false;
    if (job->each) {
        tn_set_clear(&link->target->rows);
    }
    pause(link);
    link->target->busy = true;
}

void tn_s3_link_cancel(struct tn_s3_link *link)
{
    struct tn_err ignored = {.code = TN_CANCELED};
    if (link->state == TN_S3_LINK_TALK) {
        tn_s3_lost(&link->exchange, &ignored);
    }
    if (!link->ended) {
        (void)tn_err_set(&link->err, TN_CANCELED, 0, "%s: stopped on request", link->key);
        (void)end(link, TN_CANCELED, TN_S3_TROUBLE_NONE);
    }
    close_to(link, TN_S3_LINK_FREE);
}

void tn_s3_link_give_up(struct tn_s3_link *link)
{
    int64_t ms = (tn_s3_now_ns(link->target) - link->since_ns) / NS_PER_MS;
    bool failed = link->tries > 0;
    enum tn_s3_trouble trouble = failed ? trouble_of(link) : TN_S3_TROUBLE_NETWORK;
    struct tn_err cause = link->err;
    tn_s3_link_cancel(link);
    link->err = cause;
    if (!failed) {
        (void)tn_err_set(&link->err, TN_IO, 0, "%s s3://%s/%.120s: no answer",
                         tn_s3_verb_text(link->job.request.verb), link->target->store.bucket,
                         link->key);
    }
    say_how_long(link, trouble, ms);
    link->err.code = link->rc = TN_IO;
    link->trouble = trouble;
    link->verdict = TN_S3_LATER;
}
