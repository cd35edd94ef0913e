/* Any bytes as an answer, to a request that the first one chooses: refused, or read; and cut in any
 * pieces (the second byte) they are the same answer. */
#include "upload/http.h"

#include "base/hash.h"
#include "check.h"
#include "fuzz/fuzz.h"

struct seen {
    tn_rc rc;
    int status;
    uint32_t heads;
    uint32_t ends;
    size_t left; /* input that was not taken */
    bool reusable;
    struct tn_sha256 body;
    uint64_t body_size;
};

static unsigned char head_memory[512]; /* small, so that its end is met */

static void open_request(struct tn_http *http, bool head)
{
    static unsigned char memory[64];
    struct tn_buf out;
    struct tn_err err;
    const struct tn_http_request request = {
        .method = head ? "HEAD" : "GET", .path = "/", .query = ""};
    tn_http_init(http, head_memory, sizeof head_memory);
    tn_buf_init(&out, memory, sizeof memory);
    tn_rc rc = tn_http_request(http, &request, &out, &err);
    CHECK(rc == TN_OK);
}

static void read_some(struct tn_http *http, struct tn_bytes *input, struct seen *seen)
{
    enum tn_http_event event = TN_HTTP_HEAD;
    while (seen->rc == TN_OK && event != TN_HTTP_MORE && seen->ends == 0) {
        struct tn_err err;
        struct tn_bytes body;
        seen->rc = tn_http_read(http, input, &event, &body, &err);
        if (seen->rc != TN_OK) {
            CHECK(seen->rc == TN_CORRUPT);
            return;
        }
        seen->heads += event == TN_HTTP_HEAD;
        seen->ends += event == TN_HTTP_END;
        seen->status = event == TN_HTTP_HEAD ? http->status : seen->status;
        tn_sha256_add(&seen->body, body);
        seen->body_size += body.size;
        CHECK(event == TN_HTTP_MORE || seen->heads == 1);
        CHECK(event != TN_HTTP_MORE || input->size == 0);
    }
}

static void read_in(struct tn_bytes all, bool head, size_t piece, struct seen *seen)
{
    struct tn_http http;
    struct tn_bytes value;
    memset(seen, 0, sizeof *seen);
    tn_sha256_init(&seen->body);
    open_request(&http, head);
    size_t at = 0;
    while (at < all.size && seen->rc == TN_OK && seen->ends == 0) {
        size_t size = piece < all.size - at ? piece : all.size - at;
        struct tn_bytes input = {all.data + at, size};
        read_some(&http, &input, seen);
        at += size - input.size;
    }
    seen->left = all.size - at;
    seen->reusable = tn_http_reusable(&http);
    CHECK(seen->rc == TN_OK || !seen->reusable);
    if (seen->heads > 0 && tn_http_header(&http, "content-length", &value)) {
        CHECK(value.data >= head_memory && value.size <= sizeof head_memory);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct seen whole;
    static struct seen pieces;
    unsigned char digests[2][TN_SHA256_SIZE];
    if (size < 2) {
        return 0;
    }
    struct tn_bytes all = {data + 2, size - 2};
    read_in(all, data[0] & 1, size, &whole);
    read_in(all, data[0] & 1, 1 + data[1] % 64, &pieces);
    tn_sha256_finish(&whole.body, digests[0]);
    tn_sha256_finish(&pieces.body, digests[1]);
    CHECK(whole.rc == pieces.rc && whole.heads == pieces.heads && whole.ends == pieces.ends);
    CHECK(whole.status == pieces.status && whole.left == pieces.left);
    CHECK(whole.body_size == pieces.body_size);
    CHECK(whole.reusable == pieces.reusable || whole.left > 0);
    CHECK(memcmp(digests[0], digests[1], TN_SHA256_SIZE) == 0);
    return 0;
}
