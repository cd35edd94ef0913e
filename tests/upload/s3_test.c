/* Requests to an object store and what their answers mean: against a model of a store, with
 * answers in any pieces and failures at any place, and for every kind of refusal. */
#include "upload/s3.h"

#include "given.h"
#include "upload/s3_model.h"

enum { ROUNDS = 4000, WIRE_SIZE = 128 * 1024, HEAP_SIZE = 64 * 1024, NOW_BASE = 1369353600 };

static const int64_t now_ms = NOW_BASE * INT64_C(1000);

static struct tn_heap heap;
static struct tn_arena scratch;
static struct tn_http http;
static struct tn_s3_store store;
static struct tn_s3_exchange exchange;
static struct tn_err err;
static struct model model;
static unsigned char wire[WIRE_SIZE];
static struct model_bytes got; /* the object that a GET gave */

static void init_store(void)
{
    static const struct tn_s3_options options = {.endpoint = "http://127.0.0.1:9000",
                                                 .access_key = "ak",
                                                 .secret_key = "sk",
                                                 .session_token = "token/+="};
    tn_rc rc = tn_s3_store_init(&store, &options, "bucket", &err);
    CHECK_OK(rc, err);
}

static void init(void)
{
    static unsigned char heap_memory[HEAP_SIZE];
    static unsigned char scratch_memory[TN_S3_SCRATCH_SIZE];
    static unsigned char head_memory[TN_HTTP_HEAD_SIZE];
    if (!heap.base) {
        tn_heap_init(&heap, heap_memory, sizeof heap_memory, false);
        tn_arena_init(&scratch, scratch_memory, sizeof scratch_memory);
        tn_xml_use_heap(&heap);
    }
    tn_http_init(&http, head_memory, sizeof head_memory);
    init_store();
    memset(&model, 0, sizeof model);
    model.bucket = "bucket";
    model.page = 1000;
}

/* ---- one exchange ---- */

static struct tn_bytes start(const struct tn_s3_request *request, int64_t at_ms)
{
    static unsigned char memory[TN_S3_HEAD_SIZE];
    struct tn_buf head;
    tn_buf_init(&head, memory, sizeof memory);
    if (!tn_http_reusable(&http)) {
        tn_http_init(&http, http.head.data, http.head.capacity);
    }
    tn_rc rc = tn_s3_start(&exchange, &store, request, &http, at_ms, &scratch, &head, &err);
    CHECK_OK(rc, err);
    CHECK(scratch.used == 0);
    got.size = 0;
    return tn_buf_bytes(&head);
}

static tn_rc read_piece(const unsigned char *data, size_t size)
{
    unsigned char *copy = malloc(size > 0 ? size : 1);
    memcpy(copy, data, size);
    struct tn_bytes input = {copy, size};
    tn_rc rc = TN_OK;
    while (rc == TN_OK && input.size > 0 && !exchange.done) {
        struct tn_bytes body;
        rc = tn_s3_read(&exchange, &input, &body, &err);
        if (rc == TN_OK && body.size > 0) {
            CHECK(got.size + body.size <= sizeof got.data);
            memcpy(got.data + got.size, body.data, body.size);
            got.size += body.size;
        }
    }
    free(copy);
    return rc;
}

/* Reads `size` bytes of an answer in random pieces; then the connection is closed, if the answer is
 * not whole. */
static bool whole; /* the answer isn't cut: its end is seen without a close, unless it is one */

static tn_rc read_answer(struct tn_bytes answer, uint64_t *random)
{
    tn_rc rc = TN_OK;
    uint32_t piece_max = 1 + random_below(random, random_below(random, 2) ? 5 : 3000);
    for (size_t at = 0; at < answer.size && rc == TN_OK && !exchange.done;) {
        size_t size = 1 + random_below(random, piece_max);
        size = size < answer.size - at ? size : answer.size - at;
        rc = read_piece(answer.data + at, size);
        at += size;
    }
    if (rc == TN_OK && !exchange.done) {
        CHECK(!whole || model.closes);
        rc = tn_s3_closed(&exchange, &err);
    }
    if (rc == TN_OK) {
        rc = tn_s3_finish(&exchange, &err);
    }
    CHECK(heap.used == 0); /* the parser was given back */
    CHECK(exchange.answer.verdict != TN_S3_OPEN);
    CHECK((rc == TN_OK) == (exchange.answer.verdict == TN_S3_DONE));
    return rc;
}

/* With the model, and no failure but the model's. */
static tn_rc ask(const struct tn_s3_request *request, struct tn_bytes body)
{
    struct tn_buf out;
    tn_buf_init(&out, wire, sizeof wire);
    struct tn_bytes head = start(request, now_ms);
    tn_http_sent(&http, body.size);
    model_serve(&model, head, body, &out);
    whole = true;
    tn_rc rc = read_answer(tn_buf_bytes(&out), &model.random);
    whole = false;
    return rc;
}

static struct tn_s3_request with_body(struct tn_s3_request request, struct tn_bytes body)
{
    static unsigned char digest[32];
    tn_hash_sha256(body, digest);
    request.body_size = body.size;
    request.body_sha256 = digest;
    return request;
}

static tn_rc put(const char *key, struct tn_bytes body, bool if_absent)
{
    struct tn_s3_request request = {.verb = TN_S3_PUT, .key = key, .if_absent = if_absent};
    request = with_body(request, body);
    return ask(&request, body);
}

/* ---- with the model ---- */

static const char *const keys[] = {
    "a",
    "a/b",
    "a/b/c",
    "a/c d+e&f=g?h#i",
    "a/s=a%2Fb%3Dc d",
    "z/\xc3\xa4\xf0\x9f\x98\x80",
    "q/\"<&>'",
    "snapshot/snapshot-7",
    "a b",
    "~/(x)!*",
};

static struct tn_bytes some_bytes(uint64_t *random)
{
    static unsigned char data[600];
    size_t size = random_below(random, 4) ? random_below(random, sizeof data) : 0;
    for (size_t i = 0; i < size; i++) {
        data[i] = (unsigned char)random_next(random);
    }
    return (struct tn_bytes){data, size};
}

static bool model_holds(const char *key, struct tn_bytes bytes)
{
    struct model_object *object = model_find(&model, key);
    return object &&
           tn_bytes_equal((struct tn_bytes){object->bytes.data, object->bytes.size}, bytes);
}

static void check_get(const char *key, uint64_t *random)
{
    struct tn_s3_request request = {.verb = TN_S3_GET, .key = key};
    struct model_object *object = model_find(&model, key);
    uint64_t size = object ? object->bytes.size : 0;
    bool part = size > 1 && random_below(random, 2);
    if (part) {
        request.range_first = random_below(random, (uint32_t)size);
        request.range_size = 1 + random_below(random, 700);
    }
    tn_rc rc = ask(&request, (struct tn_bytes){NULL, 0});
    CHECK(rc == (object ? TN_OK : TN_ABSENT));
    if (object) {
        uint64_t rest = size - request.range_first;
        uint64_t expected = part && request.range_size < rest ? request.range_size : rest;
        CHECK(got.size == expected && exchange.answer.size == expected);
        CHECK(memcmp(got.data, object->bytes.data + request.range_first, got.size) == 0);
    }
    request = (struct tn_s3_request){.verb = TN_S3_HEAD, .key = key};
    rc = ask(&request, (struct tn_bytes){NULL, 0});
    CHECK(rc == (object ? TN_OK : TN_ABSENT) && exchange.answer.size == size);
    CHECK(!object || exchange.answer.modified_ms == 1709251199000);
}

struct listed {
    char names[MODEL_OBJECTS][256];
    uint32_t count;
    uint32_t folders;
};

static tn_rc add_listed(void *user, const struct tn_s3_entry *entry, struct tn_err *each_err)
{
    struct listed *listed = user;
    (void)each_err;
    CHECK(listed->count < MODEL_OBJECTS && entry->name && entry->part == 0);
    (void)snprintf(listed->names[listed->count++], 256, "%s", entry->name);
    listed->folders += entry->folder;
    if (!entry->folder) {
        struct model_object *object = model_find(&model, entry->name);
        char etag[40];
        CHECK(object && object->bytes.size == entry->size);
        model_etag(&object->bytes, etag);
        CHECK(strcmp(etag, entry->etag) == 0 && entry->modified_ms == 1709251199000);
    } else {
        CHECK(entry->size == 0 && entry->etag[0] == 0 && entry->modified_ms == 0);
    }
    return TN_OK;
}

/* Every page; each name that the model has below a prefix comes once, in order. */
static void check_list(const char *prefix, const char *delimiter, uint64_t *random)
{
    static struct listed listed;
    static char token[TN_S3_TOKEN_SIZE];
    struct tn_s3_request request = {.verb = TN_S3_LIST,
                                    .key = prefix,
                                    .delimiter = delimiter,
                                    .each = add_listed,
                                    .user = &listed};
    uint32_t expected = 0;
    memset(&listed, 0, sizeof listed);
    model.page = 1 + random_below(random, 4);
    do {
        tn_rc rc = ask(&request, (struct tn_bytes){NULL, 0});
        CHECK_OK(rc, err);
        memcpy(token, exchange.answer.token, sizeof token);
        request.token = token;
    } while (exchange.answer.more);
    model.page = 1000;
    for (uint32_t i = 1; i < listed.count; i++) {
        CHECK(strcmp(listed.names[i - 1], listed.names[i]) < 0);
    }
    for (size_t i = 0; i < COUNT(keys); i++) {
        bool below = strncmp(keys[i], prefix, strlen(prefix)) == 0;
        bool deep = delimiter && below && strchr(keys[i] + strlen(prefix), '/');
        expected += model_find(&model, keys[i]) && below && !deep;
    }
    CHECK(listed.count - listed.folders == expected);
}

static void store_does_what_the_model_does(void)
{
    uint64_t random = given_number("SEED", 1);
    init();
    for (int round = 0; round < ROUNDS; round++) {
        const char *key = keys[random_below(&random, COUNT(keys))];
        bool there = model_find(&model, key) != NULL;
        model.random = random_next(&random);
        switch (random_below(&random, 6)) {
        case 0:
        case 1: {
            struct tn_bytes bytes = some_bytes(&random);
            bool if_absent = random_below(&random, 2);
            tn_rc rc = put(key, bytes, if_absent);
            CHECK(rc == (there && if_absent ? TN_CONFLICT : TN_OK));
            CHECK((rc == TN_OK) <= model_holds(key, bytes));
            break;
        }
        case 2: {
            struct tn_s3_request request = {.verb = TN_S3_DELETE, .key = key};
            tn_rc rc = ask(&request, (struct tn_bytes){NULL, 0});
            CHECK_OK(rc, err);
            CHECK(!model_find(&model, key));
            break;
        }
        case 3:
            check_list(random_below(&random, 2) ? "a/" : "", random_below(&random, 2) ? "/" : NULL,
                       &random);
            break;
        default:
            check_get(key, &random);
        }
    }
}

/* A condition on what is there: the right etag replaces, another does not. */
static void object_is_replaced_only_where_its_etag_is_the_one_that_was_read(void)
{
    init();
    struct tn_bytes one = tn_bytes_of("one");
    struct tn_bytes two = tn_bytes_of("two");
    CHECK(put("k", one, false) == TN_OK);
    char etag[TN_S3_ETAG_SIZE];
    memcpy(etag, exchange.answer.etag, sizeof etag);
    struct tn_s3_request request = {.verb = TN_S3_PUT, .key = "k", .if_match = etag};
    request = with_body(request, two);
    CHECK(ask(&request, two) == TN_OK && model_holds("k", two));
    request = with_body(request, one);
    CHECK(ask(&request, one) == TN_CONFLICT && model_holds("k", two));
}

static tn_rc add_part(void *user, const struct tn_s3_entry *entry, struct tn_err *each_err)
{
    uint32_t *numbers = user;
    (void)each_err;
    CHECK(!entry->name && entry->etag[0] == '"' && entry->size > 0);
    *numbers = *numbers * 10 + entry->part;
    return TN_OK;
}

static void upload_by_parts_is_resumed_and_becomes_one_object(void)
{
    static char etags[MODEL_PARTS][TN_S3_ETAG_SIZE];
    struct tn_bytes bytes[] = {tn_bytes_of("first part"), tn_bytes_of("second & part")};
    char id[TN_S3_UPLOAD_SIZE];
    init();
    struct tn_s3_request request = {.verb = TN_S3_CREATE_UPLOAD, .key = "a/big"};
    CHECK(ask(&request, (struct tn_bytes){NULL, 0}) == TN_OK);
    memcpy(id, exchange.answer.upload_id, sizeof id);
    CHECK(strcmp(id, "id/1+=") == 0);
    for (uint32_t part = 1; part <= 2; part++) {
        request = (struct tn_s3_request){
            .verb = TN_S3_UPLOAD_PART, .key = "a/big", .upload_id = id, .part = part};
        request = with_body(request, bytes[part - 1]);
        CHECK(ask(&request, bytes[part - 1]) == TN_OK);
        memcpy(etags[part - 1], exchange.answer.etag, TN_S3_ETAG_SIZE);
    }
    uint32_t numbers = 0;
    model.page = 1;
    request = (struct tn_s3_request){.verb = TN_S3_LIST_PARTS,
                                     .key = "a/big",
                                     .upload_id = id,
                                     .each = add_part,
                                     .user = &numbers};
    do {
        CHECK(ask(&request, (struct tn_bytes){NULL, 0}) == TN_OK);
        request.part = exchange.answer.part;
    } while (exchange.answer.more);
    CHECK(numbers == 12);
    unsigned char memory[512];
    struct tn_buf text;
    const struct tn_s3_part parts[] = {{1, etags[0]}, {2, etags[1]}};
    tn_buf_init(&text, memory, sizeof memory);
    tn_s3_parts(&text, parts, 2);
    request = (struct tn_s3_request){
        .verb = TN_S3_COMPLETE_UPLOAD, .key = "a/big", .upload_id = id, .if_absent = true};
    request = with_body(request, tn_buf_bytes(&text));
    CHECK(ask(&request, tn_buf_bytes(&text)) == TN_OK && exchange.answer.etag[0] == '"');
    CHECK(model_holds("a/big", tn_bytes_of("first partsecond & part")));
    /* The same once more: nobody knows whether it was we who completed it. */
    CHECK(ask(&request, tn_buf_bytes(&text)) == TN_IO);
    CHECK(exchange.answer.verdict == TN_S3_UNKNOWN);
    request.verb = TN_S3_ABORT_UPLOAD;
    request.body_size = 0;
    CHECK(ask(&request, (struct tn_bytes){NULL, 0}) == TN_OK);
}

/* A conditional put that is cut at any byte of its answer, or of its body, or that fails with or
 * without having been done: LATER and CONFLICT are only said when it was not done. */
static void verdict_never_calls_undone_what_was_done(void)
{
    uint64_t random = given_number("SEED", 1) + 7;
    uint32_t verdicts[TN_S3_WRONG + 1] = {0};
    init();
    for (int round = 0; round < ROUNDS; round++) {
        struct tn_bytes bytes = tn_bytes_of("snapshot");
        struct tn_s3_request request = {.verb = TN_S3_PUT, .key = "snapshot-1", .if_absent = true};
        bool taken = random_below(&random, 4) == 0;
        size_t sent = random_below(&random, 4) ? bytes.size : random_below(&random, 8);
        struct tn_buf out;
        init();
        model.random = random_next(&random);
        model.fail_before = random_below(&random, 6) == 0 ? 503 : 0;
        model.fail_after = random_below(&random, 6) == 0 ? 500 : 0;
        if (taken) {
            model_make(&model, "snapshot-1")->bytes.size = 0;
        }
        request = with_body(request, bytes);
        struct tn_bytes head = start(&request, now_ms);
        tn_http_sent(&http, sent);
        tn_buf_init(&out, wire, sizeof wire);
        if (sent == bytes.size) { /* else the store drops it */
            model_serve(&model, head, bytes, &out);
        }
        bool done = !taken && model_holds("snapshot-1", bytes);
        if (random_below(&random, 2)) {
            out.size = random_below(&random, (uint32_t)out.size + 1);
        }
        (void)read_answer(tn_buf_bytes(&out), &random);
        enum tn_s3_verdict verdict = exchange.answer.verdict;
        verdicts[verdict]++;
        CHECK(verdict != TN_S3_DONE || done);
        CHECK(sent == bytes.size || verdict == TN_S3_LATER); /* a part of a body does nothing */
        CHECK((verdict != TN_S3_LATER && verdict != TN_S3_CONFLICT) || !done);
        CHECK(verdict == TN_S3_DONE || verdict == TN_S3_LATER || verdict == TN_S3_CONFLICT ||
              verdict == TN_S3_UNKNOWN);
    }
    CHECK(verdicts[TN_S3_DONE] && verdicts[TN_S3_LATER] && verdicts[TN_S3_CONFLICT] &&
          verdicts[TN_S3_UNKNOWN]);
}

/* What may be made again is LATER, wherever it is cut. */
static void cut_request_that_does_no_harm_twice_is_made_again(void)
{
    static const enum tn_s3_verb verbs[] = {TN_S3_GET, TN_S3_HEAD, TN_S3_PUT, TN_S3_DELETE,
                                            TN_S3_LIST};
    uint64_t random = given_number("SEED", 1) + 11;
    for (size_t i = 0; i < COUNT(verbs); i++) {
        for (int round = 0; round < 60; round++) {
            struct tn_s3_request request = {.verb = verbs[i], .key = "a"};
            struct tn_buf out;
            init();
            model.random = random_next(&random);
            model.lasts = true;
            model_make(&model, "a")->bytes.size = 20;
            struct tn_bytes head = start(&request, now_ms);
            tn_buf_init(&out, wire, sizeof wire);
            model_serve(&model, head, (struct tn_bytes){NULL, 0}, &out);
            out.size = random_below(&random, (uint32_t)(out.size < 60 ? out.size : 60));
            CHECK(read_answer(tn_buf_bytes(&out), &random) == TN_IO);
            CHECK(exchange.answer.verdict == TN_S3_LATER);
        }
    }
}

/* ---- what answers mean ---- */

struct told {
    enum tn_s3_verb verb;
    bool once;
    int status;
    const char *headers;
    const char *body;
    enum tn_s3_verdict verdict;
    const char *words;
};

#define CODE(code)   "<Error><Code>" code "</Code><Message>its words</Message></Error>"
#define ETAG         "etag: \"e\"\r\n"
#define RANGE_1      "content-range: bytes 1-4/9\r\n"
#define LENGTH_4     "content-length: 4\r\n"
#define LENGTH_5     "content-length: 5\r\n"
#define DATE_NOW     "date: Fri, 24 May 2013 00:10:00 GMT\r\n"
#define DATE_EARLIER "date: Thu, 23 May 2013 23:00:00 GMT\r\n"
#define DATE_LATER   "date: Fri, 24 May 2013 01:00:00 GMT\r\n"

static const struct told told[] = {
    {TN_S3_PUT, true, 200, ETAG, "", TN_S3_DONE, NULL},
    {TN_S3_PUT, true, 412, "", CODE("PreconditionFailed"), TN_S3_CONFLICT, "another writer"},
    {TN_S3_PUT, true, 412, "", "", TN_S3_CONFLICT, "another writer"},
    {TN_S3_PUT, true, 409, "", CODE("ConditionalRequestConflict"), TN_S3_LATER, "under way"},
    {TN_S3_PUT, true, 503, "retry-after: 20\r\n", CODE("SlowDown"), TN_S3_LATER, "fewer requests"},
    {TN_S3_PUT, true, 503, "", "<html>", TN_S3_UNKNOWN, "not available"},
    {TN_S3_PUT, false, 503, "", "<html>", TN_S3_LATER, "not available"},
    {TN_S3_PUT, true, 500, "", CODE("InternalError"), TN_S3_UNKNOWN, "store failed"},
    {TN_S3_PUT, false, 500, "", CODE("InternalError"), TN_S3_LATER, "store failed"},
    {TN_S3_PUT, true, 502, "", "Bad Gateway", TN_S3_UNKNOWN, "before the store"},
    {TN_S3_PUT, true, 599, "", "", TN_S3_UNKNOWN, ""},
    {TN_S3_PUT, true, 403, "", CODE("AccessDenied"), TN_S3_PERSON, "permission denied"},
    {TN_S3_PUT, true, 403, "", "", TN_S3_PERSON, "permission denied"},
    {TN_S3_PUT, true, 403, DATE_NOW, CODE("SignatureDoesNotMatch"), TN_S3_PERSON, "secret key"},
    {TN_S3_PUT, true, 403, "", CODE("InvalidAccessKeyId"), TN_S3_PERSON, "access key is unknown"},
    {TN_S3_PUT, true, 404, "", CODE("XAdminUserNotFound"), TN_S3_PERSON, "access key is unknown"},
    {TN_S3_PUT, true, 400, "", CODE("ExpiredToken"), TN_S3_PERSON, "token has expired"},
    {TN_S3_PUT, true, 404, "", CODE("NoSuchBucket"), TN_S3_PERSON, "no such bucket"},
    {TN_S3_PUT, true, 507, "", CODE("XMinioStorageFull"), TN_S3_PERSON, "full"},
    {TN_S3_PUT, true, 403, DATE_LATER, CODE("RequestTimeTooSkewed"), TN_S3_AGAIN, "3600 s behind"},
    {TN_S3_PUT, true, 403, DATE_EARLIER, CODE("RequestTimeTooSkewed"), TN_S3_AGAIN, "s ahead of"},
    {TN_S3_HEAD, false, 403, DATE_LATER, "", TN_S3_AGAIN, "3600 s behind"},
    {TN_S3_PUT, true, 403, DATE_LATER, CODE("AccessDenied"), TN_S3_AGAIN, "3600 s behind"},
    {TN_S3_PUT, true, 400, "", CODE("RequestTimeout"), TN_S3_LATER, "too slowly"},
    {TN_S3_PUT, true, 400, "", CODE("BadDigest"), TN_S3_LATER, "damaged"},
    {TN_S3_PUT, true, 501, "", CODE("NotImplemented"), TN_S3_WRONG, "can't do this"},
    {TN_S3_PUT, true, 400, "", CODE("Strange"), TN_S3_WRONG, "400 Strange: its words"},
    {TN_S3_PUT, true, 200, "", "<html>Log in</html>", TN_S3_UNKNOWN, "no ETag"},
    {TN_S3_PUT, false, 200, "", "<html>Log in</html>", TN_S3_WRONG, "no ETag"},
    {TN_S3_GET, false, 404, "", CODE("NoSuchKey"), TN_S3_ABSENT, "no such object"},
    {TN_S3_GET, false, 404, "", "<html>not found</html>", TN_S3_PERSON, "isn't an object store's"},
    {TN_S3_GET, false, 404, "", "", TN_S3_PERSON, "isn't an object store's"},
    {TN_S3_HEAD, false, 404, "", "", TN_S3_ABSENT, "no such object"},
    {TN_S3_HEAD, false, 200, ETAG, "", TN_S3_DONE, NULL},
    {TN_S3_GET, false, 416, "", CODE("InvalidRange"), TN_S3_WRONG, "shorter"},
    {TN_S3_DELETE, false, 404, "", CODE("NoSuchKey"), TN_S3_DONE, NULL},
    {TN_S3_DELETE, false, 404, "", CODE("NoSuchBucket"), TN_S3_PERSON, "no such bucket"},
    {TN_S3_DELETE, false, 204, "", "", TN_S3_DONE, NULL},
    {TN_S3_LIST, false, 502, "", "Bad Gateway", TN_S3_LATER, "before the store"},
    {TN_S3_LIST, false, 200, "", "", TN_S3_WRONG, "XML"},
    {TN_S3_LIST, false, 200, "", "<html>Log in</html>", TN_S3_WRONG, "isn't an object store's"},
    {TN_S3_LIST, false, 200, "", "<html>Log in", TN_S3_WRONG, "XML"},
    {TN_S3_LIST, false, 200, "", "<ListBucketResult/>", TN_S3_DONE, NULL},
    {TN_S3_LIST, false, 200, "",
     "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>", TN_S3_WRONG,
     "another page"},
    {TN_S3_LIST, false, 200, "",
     "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t"
     "</NextContinuationToken></ListBucketResult>",
     TN_S3_WRONG, "another page"},
    {TN_S3_LIST, false, 200, "",
     "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>u"
     "</NextContinuationToken></ListBucketResult>",
     TN_S3_DONE, NULL},
    {TN_S3_LIST_PARTS, false, 200, "",
     "<ListPartsResult><IsTruncated>true</IsTruncated><NextPartNumberMarker>1"
     "</NextPartNumberMarker></ListPartsResult>",
     TN_S3_WRONG, "another page"},
    {TN_S3_LIST, false, 301, "x-amz-bucket-region: eu-west-1\r\n", CODE("PermanentRedirect"),
     TN_S3_AGAIN, "region eu-west-1"},
    {TN_S3_LIST, false, 400, "",
     "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region></Error>",
     TN_S3_AGAIN, "region eu-west-1"},
    {TN_S3_HEAD, false, 400, "x-amz-bucket-region: eu-west-1\r\n", "", TN_S3_AGAIN, "eu-west-1"},
    {TN_S3_HEAD, false, 400, "x-amz-bucket-region: us-east-1\r\n", "", TN_S3_WRONG, ""},
    {TN_S3_LIST, false, 301, "location: http://evil/\r\n", "", TN_S3_PERSON, "elsewhere"},
    {TN_S3_LIST, false, 307, "x-amz-bucket-region: a.evil/b\r\n", "", TN_S3_PERSON, "elsewhere"},
    {TN_S3_CREATE_UPLOAD, false, 200, "", "<InitiateMultipartUploadResult/>", TN_S3_WRONG,
     "store's"},
    {TN_S3_UPLOAD_PART, false, 404, "", CODE("NoSuchUpload"), TN_S3_ABSENT, "gone"},
    {TN_S3_ABORT_UPLOAD, false, 404, "", CODE("NoSuchUpload"), TN_S3_DONE, NULL},
    {TN_S3_COMPLETE_UPLOAD, true, 200, "", CODE("InternalError"), TN_S3_UNKNOWN, "failed"},
    {TN_S3_COMPLETE_UPLOAD, true, 200, "", CODE("SlowDown"), TN_S3_LATER, "fewer"},
    {TN_S3_COMPLETE_UPLOAD, true, 200, "", CODE("PreconditionFailed"), TN_S3_CONFLICT, "another"},
    {TN_S3_COMPLETE_UPLOAD, true, 200, "", "  ", TN_S3_UNKNOWN, "XML"},
    {TN_S3_COMPLETE_UPLOAD, true, 200, "", "<CompleteMultipartUploadResult>", TN_S3_UNKNOWN, "XML"},
    {TN_S3_COMPLETE_UPLOAD, true, 200, "", "<CompleteMultipartUploadResult/>", TN_S3_DONE, NULL},
    {TN_S3_COMPLETE_UPLOAD, true, 404, "", CODE("NoSuchUpload"), TN_S3_UNKNOWN,
     "completed, or gone"},
    {TN_S3_COMPLETE_UPLOAD, true, 400, "", CODE("EntityTooSmall"), TN_S3_WRONG, "5 MiB"},
};

static struct tn_s3_request request_of(const struct told *case_)
{
    bool upload = case_->verb == TN_S3_UPLOAD_PART || case_->verb == TN_S3_COMPLETE_UPLOAD ||
                  case_->verb == TN_S3_ABORT_UPLOAD || case_->verb == TN_S3_LIST_PARTS;
    return (struct tn_s3_request){.verb = case_->verb,
                                  .key = "k",
                                  .part = 1,
                                  .token = "t",
                                  .upload_id = upload ? "id" : NULL,
                                  .if_absent = case_->once};
}

static void answer_with(const struct told *case_, struct tn_buf *out)
{
    tn_buf_init(out, wire, sizeof wire);
    tn_buf_format(out, "HTTP/1.1 %d X\r\n%scontent-length: %zu\r\n\r\n", case_->status,
                  case_->headers, strlen(case_->body));
    tn_buf_text(out, case_->body);
}

static void every_refusal_has_its_verdict_and_words(void)
{
    uint64_t random = given_number("SEED", 1);
    for (size_t i = 0; i < COUNT(told); i++) {
        struct tn_s3_request request = request_of(&told[i]);
        struct tn_buf out;
        init();
        (void)start(&request, now_ms);
        answer_with(&told[i], &out);
        tn_rc rc = read_answer(tn_buf_bytes(&out), &random);
        bool good =
            exchange.answer.verdict == told[i].verdict &&
            (rc == TN_OK || (strstr(err.text, told[i].words) && strstr(err.text, "bucket")));
        if (!good) {
            (void)fprintf(stderr, "case %zu: verdict %d, %s\n", i, exchange.answer.verdict,
                          rc ? err.text : "ok");
        }
        CHECK(good);
    }
}

static void clock_and_region_are_learned_for_the_next_request(void)
{
    static const struct told skewed = {
        TN_S3_PUT, false, 403, DATE_LATER, CODE("RequestTimeTooSkewed"), TN_S3_AGAIN, ""};
    static const struct told moved = {
        TN_S3_PUT, false, 301, "x-amz-bucket-region: eu-west-1\r\n", "", TN_S3_AGAIN, ""};
    uint64_t random = 1;
    struct tn_s3_request request = request_of(&skewed);
    struct tn_buf out;
    init();
    (void)start(&request, now_ms);
    answer_with(&skewed, &out);
    CHECK(read_answer(tn_buf_bytes(&out), &random) == TN_AGAIN);
    CHECK(store.clock_offset_ms == 3600000);
    struct tn_bytes head = start(&request, now_ms + 1000);
    CHECK(memmem(head.data, head.size, "x-amz-date: 20130524T010001Z", 28));
    answer_with(&skewed, &out); /* the same again is no clock: its own is the one that was signed */
    CHECK(read_answer(tn_buf_bytes(&out), &random) == TN_IO);
    CHECK(exchange.answer.verdict == TN_S3_PERSON && store.clock_offset_ms == 3600000);
    (void)start(&request, now_ms + 3600000); /* somebody has set ours */
    answer_with(&skewed, &out);
    CHECK(read_answer(tn_buf_bytes(&out), &random) == TN_AGAIN && store.clock_offset_ms == 0);
    (void)start(&request, now_ms);
    answer_with(&moved, &out);
    CHECK(read_answer(tn_buf_bytes(&out), &random) == TN_AGAIN);
    head = start(&request, now_ms);
    CHECK(memmem(head.data, head.size, "/eu-west-1/s3/", 14));
    answer_with(&moved, &out); /* there we are already */
    CHECK(read_answer(tn_buf_bytes(&out), &random) == TN_IO);
    CHECK(strcmp(store.host, "127.0.0.1") == 0);
}

/* A store may say that it is the last second of the last year: the next is no reason to die. */
static void clock_may_say_anything(void)
{
    static const struct told last = {TN_S3_PUT,
                                     false,
                                     403,
                                     "date: Fri, 31 Dec 9999 23:59:59 GMT\r\n",
                                     CODE("RequestTimeTooSkewed"),
                                     TN_S3_AGAIN,
                                     ""};
    uint64_t random = 1;
    struct tn_s3_request request = request_of(&last);
    struct tn_buf out;
    init();
    (void)start(&request, now_ms);
    answer_with(&last, &out);
    CHECK(read_answer(tn_buf_bytes(&out), &random) == TN_AGAIN);
    struct tn_bytes head = start(&request, now_ms + 5000);
    CHECK(memmem(head.data, head.size, "x-amz-date: 99991231T235959Z", 28));
    tn_s3_lost(&exchange, &err);
    store.clock_offset_ms = -now_ms;
    head = start(&request, now_ms - 5000);
    CHECK(memmem(head.data, head.size, "x-amz-date: 19700101T000000Z", 28));
    tn_s3_lost(&exchange, &err);
}

static void retry_after_is_read_in_both_forms(void)
{
    static const struct {
        const char *headers;
        uint32_t wait_ms;
    } cases[] = {
        {"retry-after: 20\r\n", 20000},
        {DATE_NOW "retry-after: Fri, 24 May 2013 00:11:00 GMT\r\n", 60000},
        {DATE_NOW "retry-after: Fri, 24 May 2013 00:09:00 GMT\r\n", 0},
        {"retry-after: Fri, 24 May 2013 00:11:00 GMT\r\n", 0},
        {"retry-after: 99999999999999\r\n", 3600000},
        {"retry-after: -1\r\n", 0},
        {"", 0},
    };
    uint64_t random = 1;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct told slow = {TN_S3_PUT,        false,       503, cases[i].headers,
                                  CODE("SlowDown"), TN_S3_LATER, ""};
        struct tn_s3_request request = request_of(&slow);
        struct tn_buf out;
        init();
        (void)start(&request, now_ms);
        answer_with(&slow, &out);
        CHECK(read_answer(tn_buf_bytes(&out), &random) == TN_AGAIN);
        CHECK(exchange.answer.retry_after_ms == cases[i].wait_ms);
    }
}

static void pauses_double_up_to_a_minute_and_obey_the_store(void)
{
    uint64_t random = given_number("SEED", 1);
    for (uint32_t attempt = 0; attempt < 40; attempt++) {
        uint32_t full = attempt < 2 ? 500 : attempt < 8 ? 500U << (attempt - 1) : 60000;
        full = full < 60000 ? full : 60000;
        for (int i = 0; i < 50; i++) {
            uint32_t pause = tn_s3_pause_ms(attempt, 0, random_next(&random));
            CHECK(pause >= full / 2 && pause <= full);
        }
        CHECK(tn_s3_pause_ms(attempt, 70000, random_next(&random)) == 70000);
    }
}

/* ---- XML that wants to do harm ---- */

static tn_rc list_of(const char *text, size_t size, uint64_t *random)
{
    struct tn_s3_request request = {.verb = TN_S3_LIST, .key = ""};
    struct tn_buf out;
    init();
    (void)start(&request, now_ms);
    tn_buf_init(&out, wire, sizeof wire);
    tn_buf_format(&out, "HTTP/1.1 200 OK\r\ncontent-length: %zu\r\n\r\n", size);
    tn_buf_append(&out, text, size);
    CHECK(!out.overflow);
    return read_answer(tn_buf_bytes(&out), random);
}

static void hostile_xml_is_refused(void)
{
    static const char *const texts[] = {
        "<!DOCTYPE a [<!ENTITY x \"xxxx\"><!ENTITY y \"&x;&x;&x;\">]><ListBucketResult>&y;"
        "</ListBucketResult>",
        "<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><ListBucketResult/>",
        "<ListBucketResult>&undefined;</ListBucketResult>",
        "<ListBucketResult></ListBucketResult><more/>",
        "<ListBucketResult><Contents><Size>1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key></Key></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>k</Key><Size>-1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>k</Key><Size>99999999999999999999</Size></Contents>"
        "</ListBucketResult>",
        "<ListBucketResult><IsTruncated>perhaps</IsTruncated></ListBucketResult>",
        "<ListBucketResult>\x01</ListBucketResult>",
        "<ListBucketResult>\xff\xfe</ListBucketResult>",
        "\xef\xbb\xbf",
    };
    static char text[64 * 1024];
    uint64_t random = given_number("SEED", 1);
    for (size_t i = 0; i < COUNT(texts); i++) {
        tn_rc rc = list_of(texts[i], strlen(texts[i]), &random);
        CHECK(rc != TN_OK && exchange.answer.verdict == TN_S3_WRONG);
    }
    size_t size = 0;
    for (int i = 0; i < 10000; i++) { /* deep */
        memcpy(text + size, "<a>", 3);
        size += 3;
    }
    CHECK(list_of(text, size, &random) != TN_OK && strstr(err.text, "deep"));
    memset(text, 'x', sizeof text); /* a long text, and a token that never ends */
    memcpy(text, "<ListBucketResult><Contents><Key>", 33);
    CHECK(list_of(text, sizeof text, &random) != TN_OK && strstr(err.text, "too long"));
    memcpy(text, "<ListBucketResult><ListBucketResul", 33);
    tn_rc rc = list_of(text, sizeof text, &random);
    CHECK(rc != TN_OK && (exchange.answer.verdict == TN_S3_WRONG || strstr(err.text, "heap")));
}

static tn_rc refuse_row(void *user, const struct tn_s3_entry *entry, struct tn_err *each_err)
{
    (void)user;
    (void)entry;
    return tn_err_set(each_err, TN_AGAIN, 0, "no room for a row");
}

static void row_that_the_caller_refuses_ends_the_exchange(void)
{
    struct tn_s3_request request = {.verb = TN_S3_LIST, .key = "", .each = refuse_row};
    init();
    CHECK(put("k", tn_bytes_of("v"), false) == TN_OK);
    CHECK(ask(&request, (struct tn_bytes){NULL, 0}) == TN_AGAIN);
    CHECK(strstr(err.text, "list s3://bucket/") && strstr(err.text, "no room for a row"));
    CHECK(exchange.answer.verdict == TN_S3_LATER);
}

/* A range may not give more than was asked for, nor other bytes; and where an object ends is told.
 */
static void bytes_that_were_not_asked_for_are_not_given(void)
{
    static const struct {
        const char *text;
        uint64_t range_size; /* from the second byte on */
        enum tn_s3_verdict verdict;
        size_t given;
    } cases[] = {
        {"206 X\r\n" ETAG RANGE_1 LENGTH_4 "\r\nabcd", 4, TN_S3_DONE, 4},
        {"206 X\r\n" ETAG RANGE_1 LENGTH_5 "\r\nabcde", 4, TN_S3_WRONG, 4},
        {"206 X\r\n" ETAG "content-range: bytes 0-3/9\r\n" LENGTH_4 "\r\nabcd", 4, TN_S3_WRONG, 0},
        {"206 X\r\n" ETAG "content-range: bytes -3/9\r\n" LENGTH_4 "\r\nabcd", 4, TN_S3_WRONG, 0},
        {"206 X\r\n" ETAG "content-range: 1-4\r\n" LENGTH_4 "\r\nabcd", 4, TN_S3_WRONG, 0},
        {"206 X\r\n" ETAG LENGTH_4 "\r\nabcd", 4, TN_S3_WRONG, 0},
        {"206 X\r\n" RANGE_1 LENGTH_4 "\r\nabcd", 4, TN_S3_WRONG, 0},
        {"200 X\r\n" ETAG LENGTH_5 "\r\nabcde", 4, TN_S3_WRONG, 0},
        {"200 X\r\n" ETAG LENGTH_5 "\r\nabcde", 0, TN_S3_DONE, 5},
        {"206 X\r\n" ETAG RANGE_1 LENGTH_4 "\r\nabcd", 0, TN_S3_WRONG, 0},
        {"200 X\r\n" ETAG "\r\nabcde", 0, TN_S3_WRONG, 0}, /* cut, or whole? */
    };
    uint64_t random = given_number("SEED", 1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_s3_request request = {.verb = TN_S3_GET,
                                        .key = "k",
                                        .range_first = cases[i].range_size > 0,
                                        .range_size = cases[i].range_size};
        struct tn_buf out;
        init();
        (void)start(&request, now_ms);
        tn_buf_init(&out, wire, sizeof wire);
        tn_buf_format(&out, "HTTP/1.1 %s", cases[i].text);
        tn_rc rc = read_answer(tn_buf_bytes(&out), &random);
        CHECK(exchange.answer.verdict == cases[i].verdict && got.size <= cases[i].given);
        CHECK(rc != TN_OK || got.size == cases[i].given);
    }
}

static void request_that_cannot_be_made_is_refused_before_it_is_sent(void)
{
    static char long_key[TN_S3_KEY_MAX + 2];
    memset(long_key, 'k', TN_S3_KEY_MAX + 1);
    static const struct tn_s3_request requests[] = {
        {.verb = TN_S3_GET, .key = ""},
        {.verb = TN_S3_GET, .key = long_key},
        {.verb = TN_S3_UPLOAD_PART, .key = "k", .part = 1},
        {.verb = TN_S3_UPLOAD_PART, .key = "k", .upload_id = "u"},
        {.verb = TN_S3_UPLOAD_PART, .key = "k", .upload_id = "u", .part = 10001},
        {.verb = TN_S3_GET, .key = "k", .upload_id = "u"},
        {.verb = TN_S3_GET, .key = "k", .body_size = 1},
        {.verb = TN_S3_PUT, .key = "k", .body_size = 1}, /* not signed, and no TLS */
        {.verb = TN_S3_PUT, .key = "k", .if_match = "a\r\nb: c"},
        {.verb = TN_S3_GET, .key = "k", .range_first = UINT64_MAX, .range_size = 2},
    };
    for (size_t i = 0; i < COUNT(requests); i++) {
        static unsigned char memory[4096];
        struct tn_buf head;
        init();
        tn_buf_init(&head, memory, sizeof memory);
        tn_rc rc =
            tn_s3_start(&exchange, &store, &requests[i], &http, now_ms, &scratch, &head, &err);
        CHECK(rc == TN_INVALID && strstr(err.text, "s3://bucket/") && scratch.used == 0);
        CHECK(tn_http_reusable(&http));
    }
    long_key[TN_S3_KEY_MAX] = 0;
    struct tn_s3_request longest = {.verb = TN_S3_GET, .key = long_key};
    memset(long_key, ' ', TN_S3_KEY_MAX);
    (void)start(&longest, now_ms);
    tn_s3_lost(&exchange, &err);
}

/* benbjohnson/litestream#918: stores refused what a newer client added of its own accord. Paimon's
 * own escape leaves a percent sign in a key: on the wire it is encoded once more, and only once. A
 * body has a length and a hash of its own, and no store has to know of anything newer. */
static void key_is_encoded_once_and_a_body_is_plain(void)
{
    static const struct {
        const char *endpoint;
        const char *start;
    } styles[] = {
        {"http://127.0.0.1:9000", "PUT /bucket/t/s%3Da%252Fb%253Dc%20d HTTP/1.1\r\n"
                                  "host: 127.0.0.1:9000\r\n"},
        {"http://store.example", "PUT /t/s%3Da%252Fb%253Dc%20d HTTP/1.1\r\n"
                                 "host: bucket.store.example\r\n"},
    };
    static const char *const never[] = {"transfer-encoding", "content-encoding", "expect",
                                        "x-amz-trailer",     "x-amz-checksum",   "x-amz-sdk"};
    struct tn_bytes body = tn_bytes_of("abc");
    for (size_t i = 0; i < COUNT(styles); i++) {
        const struct tn_s3_options options = {
            .endpoint = styles[i].endpoint, .access_key = "ak", .secret_key = "sk"};
        struct tn_s3_request request = {.verb = TN_S3_PUT, .key = "t/s=a%2Fb%3Dc d"};
        init();
        tn_rc rc = tn_s3_store_init(&store, &options, "bucket", &err);
        CHECK_OK(rc, err);
        request = with_body(request, body);
        struct tn_bytes head = start(&request, now_ms);
        size_t size = strlen(styles[i].start);
        CHECK(head.size > size && memcmp(head.data, styles[i].start, size) == 0);
        CHECK(memmem(head.data, head.size, "\r\ncontent-length: 3\r\n", 21));
        CHECK(memmem(head.data, head.size,
                     "\r\nx-amz-content-sha256: "
                     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\r\n",
                     90));
        for (size_t j = 0; j < COUNT(never); j++) {
            CHECK(!memmem(head.data, head.size, never[j], strlen(never[j])));
        }
        tn_s3_lost(&exchange, &err);
    }
}

/* Over TLS a body needs no hash; where it has one, or none, the signature says so. */
static void body_is_unsigned_only_over_tls(void)
{
    static const struct tn_s3_options options = {
        .endpoint = "https://store.example", .access_key = "ak", .secret_key = "sk"};
    struct tn_s3_request request = {.verb = TN_S3_PUT, .key = "k", .body_size = 3};
    init();
    tn_rc rc = tn_s3_store_init(&store, &options, "bucket", &err);
    CHECK_OK(rc, err);
    struct tn_bytes head = start(&request, now_ms);
    CHECK(memmem(head.data, head.size, "x-amz-content-sha256: UNSIGNED-PAYLOAD\r\n", 40));
    CHECK(memmem(head.data, head.size, "PUT /k HTTP/1.1\r\nhost: bucket.store.example\r\n", 45));
    tn_s3_lost(&exchange, &err);
}

static const struct test tests[] = {
    TEST(store_does_what_the_model_does),
    TEST(object_is_replaced_only_where_its_etag_is_the_one_that_was_read),
    TEST(upload_by_parts_is_resumed_and_becomes_one_object),
    TEST(verdict_never_calls_undone_what_was_done),
    TEST(cut_request_that_does_no_harm_twice_is_made_again),
    TEST(every_refusal_has_its_verdict_and_words),
    TEST(clock_and_region_are_learned_for_the_next_request),
    TEST(clock_may_say_anything),
    TEST(retry_after_is_read_in_both_forms),
    TEST(pauses_double_up_to_a_minute_and_obey_the_store),
    TEST(hostile_xml_is_refused),
    TEST(row_that_the_caller_refuses_ends_the_exchange),
    TEST(bytes_that_were_not_asked_for_are_not_given),
    TEST(request_that_cannot_be_made_is_refused_before_it_is_sent),
    TEST(key_is_encoded_once_and_a_body_is_plain),
    TEST(body_is_unsigned_only_over_tls),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
