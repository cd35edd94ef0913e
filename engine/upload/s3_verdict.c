#include <inttypes.h>
#include <stdio.h>

#include "upload/s3_private.h"

/* ---- what the store says ---- */

struct meaning {
    const char *code;
    enum tn_s3_verdict verdict;
    const char *words; /* NULL: the store's own */
};

/* Codes that change what is to be done, or that a person should not have to look up; all others go
 * by their status. Those without a remark are of S3's list of error responses. */
static const struct meaning meanings[] = {
    {"NoSuchKey", TN_S3_ABSENT, "there is no such object"},
    {"NoSuchUpload", TN_S3_ABSENT, "the upload by parts is gone"},
    {"NoSuchBucket", TN_S3_PERSON, "there is no such bucket"},
    {"PreconditionFailed", TN_S3_CONFLICT, "another writer was first"},
    {"ConditionalRequestConflict", TN_S3_LATER, "another request for this name is under way"},
    {"OperationAborted", TN_S3_LATER, "another request for this name is under way"},
    {"SlowDown", TN_S3_LATER, "the store asks for fewer requests"},
    {"SlowDownRead", TN_S3_LATER, "the store asks for fewer requests"},  /* MinIO */
    {"SlowDownWrite", TN_S3_LATER, "the store asks for fewer requests"}, /* MinIO */
    {"ServiceUnavailable", TN_S3_LATER, "the store is busy"},
    {"Busy", TN_S3_LATER, "the store is busy"},
    {"ServerBusy", TN_S3_LATER, "the store is busy"}, /* Azure, OSS */
    {"TooManyRequests", TN_S3_LATER, "the store asks for fewer requests"},
    {"RequestLimitExceeded", TN_S3_LATER, "the store asks for fewer requests"},
    {"Throttling", TN_S3_LATER, "the store asks for fewer requests"},
    {"ThrottlingException", TN_S3_LATER, "the store asks for fewer requests"},
    {"RequestTimeout", TN_S3_LATER, "the body came too slowly"},
    {"IncompleteBody", TN_S3_LATER, "the body did not arrive whole"},
    {"BadDigest", TN_S3_LATER, "the body was damaged on its way"},
    {"XAmzContentSHA256Mismatch", TN_S3_LATER, "the body was damaged on its way"},
    {"AccessDenied", TN_S3_PERSON, "permission denied"},
    {"AllAccessDisabled", TN_S3_PERSON, "access to this bucket is disabled"},
    {"AccountProblem", TN_S3_PERSON, "the account has a problem"},
    {"InvalidAccessKeyId", TN_S3_PERSON, "the access key is unknown"},
    {"XAdminUserNotFound", TN_S3_PERSON, "the access key is unknown"}, /* versitygw */
    {"SignatureDoesNotMatch", TN_S3_PERSON, "the secret key is wrong"},
    {"ExpiredToken", TN_S3_PERSON, "the session token has expired"},
    {"ExpiredTokenException", TN_S3_PERSON, "the session token has expired"},
    {"InvalidToken", TN_S3_PERSON, "the session token is not valid"},
    {"TokenRefreshRequired", TN_S3_PERSON, "the session token has expired"},
    {"QuotaExceeded", TN_S3_PERSON, "the store's quota is full"},           /* several */
    {"XMinioAdminBucketQuotaExceeded", TN_S3_PERSON, "the bucket is full"}, /* MinIO */
    {"XMinioStorageFull", TN_S3_PERSON, "the store is full"},               /* MinIO */
    {"InsufficientStorage", TN_S3_PERSON, "the store is full"},
    {"InvalidPart", TN_S3_WRONG, "a part of the upload is not what was sent"},
    {"InvalidPartOrder", TN_S3_WRONG, "the parts are in the wrong order"},
    {"EntityTooSmall", TN_S3_WRONG, "a part that isn't the last is below 5 MiB"},
    {"EntityTooLarge", TN_S3_WRONG, "the object is too large for the store"},
    {"InvalidRange", TN_S3_WRONG, "the object is shorter than what was asked for"},
    {"NotImplemented", TN_S3_WRONG, "the store can't do this"},
    {"MethodNotAllowed", TN_S3_WRONG, "the store can't do this"},
    {"MalformedTrailer", TN_S3_WRONG, "the store wants another kind of body"}, /* Backblaze */
};

/* By status, when there is no code, or one that isn't known. An error of the server's may come
 * after it did what was asked; only where that harms is it UNKNOWN. */
static const struct {
    int status;
    struct meaning meaning;
} statuses[] = {
    {400, {NULL, TN_S3_WRONG, NULL}},
    {401, {NULL, TN_S3_PERSON, "permission denied"}},
    {403, {NULL, TN_S3_PERSON, "permission denied"}},
    {404, {NULL, TN_S3_ABSENT, "there is no such object"}},
    {405, {NULL, TN_S3_WRONG, "the store can't do this"}},
    {408, {NULL, TN_S3_LATER, "the request came too slowly"}},
    {409, {NULL, TN_S3_LATER, "another request for this name is under way"}},
    {412, {NULL, TN_S3_CONFLICT, "another writer was first"}},
    {416, {NULL, TN_S3_WRONG, "the object is shorter than what was asked for"}},
    {429, {NULL, TN_S3_LATER, "the store asks for fewer requests"}},
    {500, {NULL, TN_S3_UNKNOWN, "the store failed"}},
    {501, {NULL, TN_S3_WRONG, "the store can't do this"}},
    {502, {NULL, TN_S3_UNKNOWN, "what stands before the store failed"}},
    {503, {NULL, TN_S3_UNKNOWN, "the store is not available"}},
    {504, {NULL, TN_S3_UNKNOWN, "what stands before the store got no answer from it"}},
    {507, {NULL, TN_S3_PERSON, "the store is full"}},
};

static struct meaning by_code(const char *code)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        if (strcmp(code, meanings[i].code) == 0) {
            return meanings[i];
        }
    }
    return (struct meaning){NULL, TN_S3_OPEN, NULL};
}

static struct meaning by_status(int status)
{
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        if (statuses[i].status == status) {
            return statuses[i].meaning;
        }
    }
    enum tn_s3_verdict verdict = status >= 500 ? TN_S3_UNKNOWN : TN_S3_WRONG;
    return (struct meaning){NULL, verdict, NULL};
}

/* ---- what that means for a request ---- */

/* A page of somebody who stands in between says nothing about the store's names. */
static bool is_of_store(const struct tn_s3_exchange *exchange)
{
    return exchange->request->verb == TN_S3_HEAD || exchange->answer.code[0] != 0;
}

static struct meaning mean_error(const struct tn_s3_exchange *exchange)
{
    const struct tn_s3_answer *answer = &exchange->answer;
    enum tn_s3_verb verb = exchange->request->verb;
    struct meaning meaning = by_code(answer->code);
    if (meaning.verdict == TN_S3_OPEN) {
        /* Completed: the error came after the head of a success. */
        meaning = by_status(exchange->failed && answer->status / 100 == 2 ? 500 : answer->status);
    }
    if (meaning.verdict == TN_S3_ABSENT) {
        if (!is_of_store(exchange)) {
            return (struct meaning){NULL, TN_S3_PERSON, "that isn't an object store's answer"};
        }
        if (verb == TN_S3_COMPLETE_UPLOAD) {
            return (struct meaning){NULL, TN_S3_UNKNOWN, "the upload is completed, or gone"};
        }
        if (verb == TN_S3_DELETE || verb == TN_S3_ABORT_UPLOAD) {
            return (struct meaning){NULL, TN_S3_DONE, NULL};
        }
    }
    if (meaning.verdict == TN_S3_UNKNOWN && !tn_s3_is_once(exchange->request)) {
        meaning.verdict = TN_S3_LATER;
    }
    return meaning;
}

static struct meaning odd(const struct tn_s3_exchange *exchange, const char *words)
{
    return (struct meaning){NULL, tn_s3_is_once(exchange->request) ? TN_S3_UNKNOWN : TN_S3_WRONG,
                            words};
}

/* Whether the next page is another than this: a caller asks until there is none. */
static bool goes_on(const struct tn_s3_exchange *exchange)
{
    const struct tn_s3_answer *answer = &exchange->answer;
    const struct tn_s3_request *request = exchange->request;
    if (request->verb == TN_S3_LIST_PARTS) {
        return answer->part > request->part;
    }
    return answer->token[0] && !(request->token && strcmp(request->token, answer->token) == 0);
}

/* A success is believed when it looks like a store's: a portal that asks for a login says 200, too.
 */
static struct meaning mean_success(const struct tn_s3_exchange *exchange)
{
    const struct tn_s3_answer *answer = &exchange->answer;
    const struct tn_s3_request *request = exchange->request;
    enum tn_s3_verb verb = request->verb;
    if (tn_s3_answers_xml(verb)) {
        if (!exchange->root || (verb == TN_S3_CREATE_UPLOAD && answer->upload_id[0] == 0)) {
            return odd(exchange, "that isn't an object store's answer");
        }
        if (answer->more && !goes_on(exchange)) {
            return odd(exchange, "it has another page, but does not say where");
        }
        return (struct meaning){NULL, TN_S3_DONE, NULL};
    }
    if (verb != TN_S3_DELETE && verb != TN_S3_ABORT_UPLOAD && answer->etag[0] == 0) {
        return odd(exchange, "that isn't an object store's answer: it has no ETag");
    }
    if (verb == TN_S3_HEAD && !exchange->http->has_length) {
        return odd(exchange, "it does not tell the object's size");
    }
    if (verb == TN_S3_GET && !tn_s3_is_asked(exchange)) {
        return odd(exchange, "the store gives other bytes of the object than were asked for");
    }
    return (struct meaning){NULL, TN_S3_DONE, NULL};
}

/* ---- what is learned ---- */

static bool is_skewed(const struct tn_s3_exchange *exchange)
{
    const struct tn_s3_answer *answer = &exchange->answer;
    int64_t ours = exchange->now_ms + exchange->store->clock_offset_ms;
    int64_t skew = answer->server_ms - ours;
    return answer->server_ms > 0 && (skew > TN_S3_SKEW_MAX_MS || skew < -TN_S3_SKEW_MAX_MS);
}

/* Stores say it by several codes; what they share is a 403 and a clock that differs. */
static bool learn_clock(struct tn_s3_exchange *exchange)
{
    if (exchange->answer.status != 403 || !is_skewed(exchange)) {
        return false;
    }
    exchange->store->clock_offset_ms = exchange->answer.server_ms - exchange->now_ms;
    return true;
}

static bool learn_region(struct tn_s3_exchange *exchange)
{
    const struct tn_s3_answer *answer = &exchange->answer;
    return (answer->status / 100 == 3 || answer->status == 400 || answer->status == 403) &&
           answer->region[0] && tn_s3_store_move(exchange->store, answer->region);
}

/* ---- words ---- */

static tn_rc rc_of(enum tn_s3_verdict verdict)
{
    switch (verdict) {
    case TN_S3_ABSENT:
        return TN_ABSENT;
    case TN_S3_CONFLICT:
        return TN_CONFLICT;
    case TN_S3_LATER:
    case TN_S3_AGAIN:
        return TN_AGAIN;
    case TN_S3_WRONG:
        return TN_UNSUPPORTED;
    case TN_S3_OPEN:
    case TN_S3_DONE:
    case TN_S3_UNKNOWN:
    case TN_S3_PERSON:
        break;
    }
    return TN_IO;
}

const char *tn_s3_verb_text(enum tn_s3_verb verb)
{
    static const char *const texts[] = {
        [TN_S3_GET] = "get",
        [TN_S3_HEAD] = "look at",
        [TN_S3_PUT] = "put",
        [TN_S3_DELETE] = "delete",
        [TN_S3_LIST] = "list",
        [TN_S3_CREATE_UPLOAD] = "begin upload of",
        [TN_S3_UPLOAD_PART] = "upload part of",
        [TN_S3_COMPLETE_UPLOAD] = "complete upload of",
        [TN_S3_ABORT_UPLOAD] = "give up upload of",
        [TN_S3_LIST_PARTS] = "list parts of",
        [TN_S3_LIST_UPLOADS] = "list uploads of",
    };
    return texts[verb];
}

/* "put s3://b/k: permission denied (403 AccessDenied: the store's words)" */
static tn_rc say(const struct tn_s3_exchange *exchange, const struct meaning *meaning,
                 struct tn_err *err)
{
    const struct tn_s3_answer *answer = &exchange->answer;
    const char *words = meaning->words ? meaning->words : "the store refuses";
    tn_rc rc = tn_err_set(err, rc_of(meaning->verdict), 0, "%s (%d%s%s%s%s)", words, answer->status,
                          answer->code[0] ? " " : "", answer->code, answer->message[0] ? ": " : "",
                          answer->message);
    (void)tn_err_in(err, "%s s3://%s/%.120s", tn_s3_verb_text(exchange->request->verb),
                    exchange->store->bucket, exchange->request->key);
    return rc;
}

static void say_skew(const struct tn_s3_exchange *exchange, char *words, size_t size)
{
    int64_t skew = exchange->store->clock_offset_ms / 1000;
    (void)snprintf(words, size, "the clock here is %" PRId64 " s %s the store's",
                   skew < 0 ? -skew : skew, skew < 0 ? "ahead of" : "behind");
}

tn_rc tn_s3_judge(struct tn_s3_exchange *exchange, struct tn_err *err)
{
    struct tn_s3_answer *answer = &exchange->answer;
    char words[TN_S3_MESSAGE_SIZE];
    bool good = answer->status / 100 == 2 && !exchange->failed;
    struct meaning meaning = good ? mean_success(exchange) : mean_error(exchange);
    if (!good && learn_clock(exchange)) {
        say_skew(exchange, words, sizeof words);
        meaning = (struct meaning){NULL, TN_S3_AGAIN, words};
    } else if (!good && learn_region(exchange)) {
        (void)snprintf(words, sizeof words, "the bucket is in region %s", answer->region);
        meaning = (struct meaning){NULL, TN_S3_AGAIN, words};
    } else if (answer->status / 100 == 3) {
        meaning.verdict = TN_S3_PERSON;
        meaning.words = "the bucket is elsewhere: s3.endpoint or s3.region is wrong";
    }
    answer->verdict = meaning.verdict;
    return meaning.verdict == TN_S3_DONE ? TN_OK : say(exchange, &meaning, err);
}

/* A body that did not leave us whole can't have been taken for whole. */
void tn_s3_judge_lost(struct tn_s3_exchange *exchange, struct tn_err *err)
{
    bool sent = exchange->http->send_left == 0;
    bool once = tn_s3_is_once(exchange->request) && sent;
    exchange->answer.verdict = once                      ? TN_S3_UNKNOWN
                               : err->code == TN_CORRUPT ? TN_S3_WRONG
                                                         : TN_S3_LATER;
    (void)tn_err_in(err, "%s s3://%s/%.120s", tn_s3_verb_text(exchange->request->verb),
                    exchange->store->bucket, exchange->request->key);
}
