/* Any bytes as the body of an object store's answer, to the request and with the status that the
 * first two choose: there is a verdict, nothing is left in the heap, and cut in pieces (the third
 * byte) they mean the same. */
#include "upload/s3.h"

#include "base/hash.h"
#include "check.h"
#include "fuzz/fuzz.h"

enum { HEAP_SIZE = 128 * 1024 };

struct seen {
    tn_rc rc;
    enum tn_s3_verdict verdict;
    struct tn_s3_answer answer;
    uint64_t rows;
    struct tn_sha256 sha;
    unsigned char digest[TN_SHA256_SIZE];
};

static struct tn_heap heap;
static struct tn_arena scratch;
static struct tn_s3_store store;
static struct tn_http http;
static struct tn_s3_exchange exchange;

static void set_up(void)
{
    static unsigned char heap_memory[HEAP_SIZE];
    static unsigned char scratch_memory[TN_S3_SCRATCH_SIZE];
    static unsigned char head_memory[TN_HTTP_HEAD_SIZE];
    static const struct tn_s3_options options = {
        .endpoint = "http://127.0.0.1", .access_key = "a", .secret_key = "s"};
    struct tn_err err;
    if (!heap.base) {
        tn_heap_init(&heap, heap_memory, sizeof heap_memory, false);
        tn_arena_init(&scratch, scratch_memory, sizeof scratch_memory);
        tn_xml_use_heap(&heap);
    }
    tn_rc rc = tn_s3_store_init(&store, &options, "b", &err);
    CHECK_OK(rc, err);
    tn_http_init(&http, head_memory, sizeof head_memory);
}

static tn_rc add_row(void *user, const struct tn_s3_entry *entry, struct tn_err *err)
{
    struct seen *seen = user;
    (void)err;
    seen->rows++;
    CHECK(entry->name ? *entry->name && strlen(entry->name) <= TN_S3_KEY_MAX : entry->part > 0);
    tn_sha256_add(&seen->sha, tn_bytes_of(entry->name ? entry->name : "part"));
    tn_sha256_add(&seen->sha, tn_bytes_of(entry->etag));
    tn_sha256_add(&seen->sha, tn_bytes_of(entry->upload_id));
    tn_sha256_add(&seen->sha, (struct tn_bytes){(const unsigned char *)&entry->size, 8});
    return TN_OK;
}

static void start(enum tn_s3_verb verb, struct seen *seen, struct tn_s3_request *request)
{
    static unsigned char memory[TN_S3_HEAD_SIZE];
    struct tn_buf head;
    struct tn_err err;
    bool upload = verb == TN_S3_UPLOAD_PART || verb == TN_S3_COMPLETE_UPLOAD ||
                  verb == TN_S3_ABORT_UPLOAD || verb == TN_S3_LIST_PARTS;
    *request = (struct tn_s3_request){.verb = verb,
                                      .key = "k",
                                      .part = 1,
                                      .upload_id = upload ? "u" : NULL,
                                      .each = add_row,
                                      .user = seen};
    tn_buf_init(&head, memory, sizeof memory);
    tn_rc rc = tn_s3_start(&exchange, &store, request, &http, 0, &scratch, &head, &err);
    CHECK_OK(rc, err);
}

static tn_rc read_all(struct tn_bytes bytes, size_t piece, struct seen *seen, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (size_t at = 0; at < bytes.size && rc == TN_OK && !exchange.done;) {
        size_t size = piece < bytes.size - at ? piece : bytes.size - at;
        struct tn_bytes input = {bytes.data + at, size};
        while (input.size > 0 && rc == TN_OK && !exchange.done) {
            struct tn_bytes body;
            rc = tn_s3_read(&exchange, &input, &body, err);
            if (rc == TN_OK) {
                tn_sha256_add(&seen->sha, body);
            }
        }
        at += size;
    }
    return rc;
}

static void answer(enum tn_s3_verb verb, int status, struct tn_bytes body, size_t piece,
                   struct seen *seen)
{
    struct tn_s3_request request;
    struct tn_err err;
    char head[160];
    set_up();
    memset(seen, 0, sizeof *seen);
    tn_sha256_init(&seen->sha);
    start(verb, seen, &request);
    int size = snprintf(head, sizeof head,
                        "HTTP/1.1 %d X\r\netag: e\r\nconnection: close\r\n"
                        "date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n",
                        status);
    seen->rc = read_all((struct tn_bytes){(unsigned char *)head, (size_t)size}, 1000, seen, &err);
    if (seen->rc == TN_OK) {
        seen->rc = read_all(body, piece, seen, &err);
    }
    if (seen->rc == TN_OK && !exchange.done) {
        seen->rc = tn_s3_closed(&exchange, &err);
    }
    if (seen->rc == TN_OK) {
        seen->rc = tn_s3_finish(&exchange, &err);
    }
    seen->verdict = exchange.answer.verdict;
    seen->answer = exchange.answer;
    tn_sha256_finish(&seen->sha, seen->digest);
    CHECK(heap.used == 0);
    CHECK(seen->verdict != TN_S3_OPEN && (seen->rc == TN_OK) == (seen->verdict == TN_S3_DONE));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int statuses[] = {200, 206, 400, 403, 404, 412, 503, 301};
    static struct seen whole;
    static struct seen pieces;
    if (size < 3) {
        return 0;
    }
    enum tn_s3_verb verb = (enum tn_s3_verb)(data[0] % (TN_S3_LIST_UPLOADS + 1));
    int status = statuses[data[1] % COUNT(statuses)];
    struct tn_bytes body = {data + 3, size - 3};
    answer(verb, status, body, size, &whole);
    answer(verb, status, body, 1 + data[2] % 100, &pieces);
    CHECK(whole.rc == pieces.rc && whole.verdict == pieces.verdict);
    if (whole.rc == TN_OK) { /* else it may have seen more or less of it */
        CHECK(whole.rows == pieces.rows);
        CHECK(memcmp(whole.digest, pieces.digest, TN_SHA256_SIZE) == 0);
        CHECK(strcmp(whole.answer.token, pieces.answer.token) == 0);
        CHECK(strcmp(whole.answer.upload_id, pieces.answer.upload_id) == 0);
    }
    return 0;
}
