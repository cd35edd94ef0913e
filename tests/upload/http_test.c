/* What a client writes and reads of HTTP/1.1: any answer in any pieces is the same answer, and what
 * a server may not say is refused. */
#include "upload/http.h"

#include "check.h"
#include "given.h"
#include "random.h"

enum { ROUNDS = 3000, WIRE_MAX = 64 * 1024, BODY_MAX = 8 * 1024 };

/* An answer, as the wire has it and as it is to be read. */
struct answer {
    unsigned char wire[WIRE_MAX];
    struct tn_buf out;
    int status;
    unsigned char body[BODY_MAX];
    size_t body_size;
    bool until_close;
    bool keep_alive;
    char etag[32];
};

struct got {
    int status;
    unsigned char body[BODY_MAX + 64];
    size_t body_size;
    int heads;
    bool ended;
};

static unsigned char head_memory[TN_HTTP_HEAD_SIZE];

static void open_request(struct tn_http *http, const char *method)
{
    static unsigned char memory[512];
    struct tn_buf out;
    struct tn_err err;
    const struct tn_http_header headers[] = {{"host", "h"}};
    const struct tn_http_request request = {
        .method = method, .path = "/", .query = "", .headers = headers, .header_count = 1};
    tn_buf_init(&out, memory, sizeof memory);
    tn_rc rc = tn_http_request(http, &request, &out, &err);
    CHECK_OK(rc, err);
}

/* Reads one piece, from memory of exactly its size. */
static tn_rc feed(struct tn_http *http, const unsigned char *data, size_t size, struct got *got,
                  struct tn_err *err)
{
    unsigned char *copy = malloc(size > 0 ? size : 1);
    memcpy(copy, data, size);
    struct tn_bytes input = {copy, size};
    enum tn_http_event event = TN_HTTP_HEAD;
    tn_rc rc = TN_OK;
    while (rc == TN_OK && event != TN_HTTP_MORE && !got->ended) {
        struct tn_bytes body;
        rc = tn_http_read(http, &input, &event, &body, err);
        if (rc != TN_OK) {
            break;
        }
        got->heads += event == TN_HTTP_HEAD;
        got->status = event == TN_HTTP_HEAD ? http->status : got->status;
        got->ended = event == TN_HTTP_END;
        CHECK(event == TN_HTTP_BODY || body.size == 0);
        CHECK(got->body_size + body.size <= sizeof got->body);
        if (body.size > 0) {
            memcpy(got->body + got->body_size, body.data, body.size);
            got->body_size += body.size;
        }
    }
    if (got->ended && input.size > 0) { /* what is behind the end is not taken */
        got->heads += 100;
    }
    free(copy);
    return rc;
}

static void forget(struct got *got)
{
    memset(got, 0, sizeof *got);
}

static void add_chunks(struct answer *answer, uint64_t *random)
{
    for (size_t at = 0; at < answer->body_size;) {
        size_t size = 1 + random_below(random, 700);
        size = size < answer->body_size - at ? size : answer->body_size - at;
        tn_buf_format(&answer->out, random_below(random, 2) ? "%zx" : "00%zX", size);
        tn_buf_text(&answer->out, random_below(random, 4) ? "" : ";note=\"a b\"");
        tn_buf_text(&answer->out, "\r\n");
        tn_buf_append(&answer->out, answer->body + at, size);
        tn_buf_text(&answer->out, "\r\n");
        at += size;
    }
    tn_buf_text(&answer->out, random_below(random, 2) ? "0\r\n" : "000;x\r\n");
    tn_buf_text(&answer->out, random_below(random, 2) ? "x-trailer: t\r\nb:\r\n\r\n" : "\r\n");
}

static void add_fields(struct answer *answer, uint64_t *random)
{
    for (uint32_t i = random_below(random, 6); i > 0; i--) {
        tn_buf_format(&answer->out, "x-%u:%s%u\r\n", i, random_below(random, 2) ? " \t" : "", i);
    }
    tn_buf_format(&answer->out, "%s:  \"%s\" \r\n", random_below(random, 2) ? "ETag" : "etag",
                  answer->etag);
}

static void make_answer(struct answer *answer, uint64_t *random)
{
    static const int statuses[] = {200, 206, 404, 503};
    bool old = random_below(random, 8) == 0;
    uint32_t framing = random_below(random, old ? 2 : 3);
    tn_buf_init(&answer->out, answer->wire, sizeof answer->wire);
    answer->status = statuses[random_below(random, COUNT(statuses))];
    answer->body_size = random_below(random, 3) ? random_below(random, BODY_MAX) : 0;
    answer->until_close = framing == 1;
    answer->keep_alive = !old && framing != 1;
    (void)snprintf(answer->etag, sizeof answer->etag, "e%u", random_below(random, 1000));
    for (size_t i = 0; i < answer->body_size; i++) {
        answer->body[i] = (unsigned char)random_next(random);
    }
    for (uint32_t i = old ? 0 : random_below(random, 3); i > 0; i--) {
        tn_buf_text(&answer->out, "HTTP/1.1 100 Continue\r\nx: y\r\n\r\n");
    }
    tn_buf_format(&answer->out, "HTTP/1.%d %d%s\r\n", old ? 0 : 1, answer->status,
                  random_below(random, 2) ? " Fine words" : "");
    add_fields(answer, random);
    if (framing == 0) {
        tn_buf_format(&answer->out, "Content-Length: %zu\r\n\r\n", answer->body_size);
        tn_buf_append(&answer->out, answer->body, answer->body_size);
    } else if (framing == 1) {
        tn_buf_text(&answer->out, "\r\n");
        tn_buf_append(&answer->out, answer->body, answer->body_size);
    } else {
        tn_buf_text(&answer->out, "Transfer-Encoding: Chunked\r\n\r\n");
        add_chunks(answer, random);
    }
    CHECK(!answer->out.overflow);
}

static void check_answer(struct tn_http *http, const struct answer *answer, const struct got *got)
{
    struct tn_bytes etag;
    char text[40];
    CHECK(got->heads == 1 && got->status == answer->status);
    CHECK(got->body_size == answer->body_size);
    CHECK(memcmp(got->body, answer->body, got->body_size) == 0);
    CHECK(got->ended == !answer->until_close);
    (void)snprintf(text, sizeof text, "\"%s\"", answer->etag);
    CHECK(tn_http_header(http, "ETAG", &etag) && tn_bytes_equal(etag, tn_bytes_of(text)));
    CHECK(!tn_http_header(http, "x-", &etag));
    CHECK(tn_http_reusable(http) == answer->keep_alive);
}

/* Answers of every framing one after the other, cut anywhere, over one connection while it lasts.
 */
static void answers_in_any_pieces_are_the_same(void)
{
    uint64_t random = given_number("SEED", 1);
    struct tn_http http;
    tn_http_init(&http, head_memory, sizeof head_memory);
    for (int round = 0; round < ROUNDS; round++) {
        static struct answer answer;
        static struct got got;
        struct tn_err err;
        forget(&got);
        make_answer(&answer, &random);
        if (!tn_http_reusable(&http)) {
            tn_http_init(&http, head_memory, sizeof head_memory);
        }
        open_request(&http, "GET");
        uint32_t piece_max = 1 + random_below(&random, random_below(&random, 2) ? 4 : 9000);
        for (size_t at = 0; at < answer.out.size;) {
            size_t size = 1 + random_below(&random, piece_max);
            size = size < answer.out.size - at ? size : answer.out.size - at;
            CHECK(!got.ended);
            tn_rc rc = feed(&http, answer.wire + at, size, &got, &err);
            CHECK_OK(rc, err);
            at += size;
        }
        if (answer.until_close) {
            tn_rc rc = tn_http_closed(&http, &err);
            CHECK_OK(rc, err);
        }
        check_answer(&http, &answer, &got);
    }
}

/* Closed after each byte of an answer: it is whole only where it says so. */
static void answer_that_is_cut_is_an_error(void)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"
                               "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    for (size_t size = 0; size < sizeof text; size++) {
        struct tn_http http;
        struct tn_err err;
        static struct got got;
        forget(&got);
        tn_http_init(&http, head_memory, sizeof head_memory);
        open_request(&http, "GET");
        tn_rc rc = feed(&http, (const unsigned char *)text, size, &got, &err);
        CHECK_OK(rc, err);
        rc = tn_http_closed(&http, &err);
        CHECK(rc == (size == sizeof text - 1 ? TN_OK : TN_IO));
        CHECK(!tn_http_reusable(&http));
        if (size + 1 == sizeof text) {
            return;
        }
    }
}

#define OK_HEAD "HTTP/1.1 200 OK\r\n"

static const char *const refused[] = {
    "SSH-2.0-OpenSSH\r\n",
    "\x15\x03\x01",
    "HTTP/2 200\r\n\r\n",
    "HTTP/1.2 200 OK\r\n\r\n",
    "HTTP/1.1  200 OK\r\n\r\n",
    "HTTP/1.1 20 OK\r\n\r\n",
    "HTTP/1.1 099 OK\r\n\r\n",
    "HTTP/1.1 2000 OK\r\n\r\n",
    "HTTP/1.1 200 OK\n\n",
    "HTTP/1.1 200 O\rK\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\n\r\n",
    "\r\nHTTP/1.1 200 OK\r\n\r\n",
    OK_HEAD "a : b\r\n\r\n",
    OK_HEAD " folded\r\n\r\n",
    OK_HEAD "a: b\r\n c\r\n\r\n",
    OK_HEAD "nothing\r\n\r\n",
    OK_HEAD ": b\r\n\r\n",
    OK_HEAD "a: \x01\r\n\r\n",
    OK_HEAD "content-length: -1\r\n\r\n",
    OK_HEAD "content-length: +1\r\n\r\n",
    OK_HEAD "content-length: 1, 1\r\n\r\n",
    OK_HEAD "content-length:\r\n\r\n",
    OK_HEAD "content-length: 0x10\r\n\r\n",
    OK_HEAD "content-length: 9223372036854775808\r\n\r\n",
    OK_HEAD "content-length: 99999999999999999999999\r\n\r\n",
    OK_HEAD "content-length: 1\r\ncontent-length: 2\r\n\r\n",
    OK_HEAD "content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
    OK_HEAD "transfer-encoding: gzip, chunked\r\n\r\n",
    OK_HEAD "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n",
    "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
    OK_HEAD "transfer-encoding: chunked\r\n\r\n\r\n",
    OK_HEAD "transfer-encoding: chunked\r\n\r\n-1\r\n",
    OK_HEAD "transfer-encoding: chunked\r\n\r\n1\na",
    OK_HEAD "transfer-encoding: chunked\r\n\r\n1\r\nab",
    OK_HEAD "transfer-encoding: chunked\r\n\r\n1\r\na\n0\r\n\r\n",
    OK_HEAD "transfer-encoding: chunked\r\n\r\n8000000000000000\r\n",
    OK_HEAD "transfer-encoding: chunked\r\n\r\n10000000000000000\r\n",
    OK_HEAD "transfer-encoding: chunked\r\n\r\n0\r\na\n\r\n",
    OK_HEAD "content-length: 0\r\n\r\nX",
};

static tn_rc read_text(const char *text, size_t size, struct tn_err *err)
{
    struct tn_http http;
    static struct got got;
    forget(&got);
    tn_http_init(&http, head_memory, sizeof head_memory);
    open_request(&http, "GET");
    tn_rc rc = feed(&http, (const unsigned char *)text, size, &got, err);
    if (rc == TN_OK && got.heads >= 100) { /* bytes behind the end, given to an idle connection */
        static struct got more;
        forget(&more);
        rc = feed(&http, (const unsigned char *)"X", 1, &more, err);
    }
    if (rc != TN_OK) {
        struct tn_bytes input = {(const unsigned char *)"x", 1};
        struct tn_bytes body;
        enum tn_http_event event;
        struct tn_err again;
        CHECK(!tn_http_reusable(&http));
        CHECK(tn_http_read(&http, &input, &event, &body, &again) == TN_CORRUPT);
    }
    return rc;
}

static void what_a_server_may_not_say_is_refused(void)
{
    for (size_t i = 0; i < COUNT(refused); i++) {
        struct tn_err err;
        tn_rc rc = read_text(refused[i], strlen(refused[i]), &err);
        if (rc != TN_CORRUPT) {
            (void)fprintf(stderr, "case %zu\n", i);
        }
        CHECK(rc == TN_CORRUPT);
    }
    struct tn_err err;
    static const char zero[] = OK_HEAD "a: b\0c\r\n\r\n";
    CHECK(read_text(zero, sizeof zero - 1, &err) == TN_CORRUPT);
}

static tn_rc read_long(const char *start, const char *unit, uint32_t count)
{
    static char text[WIRE_MAX];
    struct tn_buf buf;
    struct tn_err err;
    tn_buf_init(&buf, text, sizeof text);
    tn_buf_text(&buf, start);
    for (uint32_t i = 0; i < count; i++) {
        tn_buf_text(&buf, unit);
    }
    CHECK(!buf.overflow);
    return read_text(text, buf.size, &err);
}

static void every_part_of_an_answer_has_a_limit(void)
{
    const char *chunks = OK_HEAD "transfer-encoding: chunked\r\n\r\n";
    CHECK(read_long(OK_HEAD "a: ", "b", TN_HTTP_HEAD_SIZE - 21) == TN_OK);
    CHECK(read_long(OK_HEAD "a: ", "b", TN_HTTP_HEAD_SIZE) == TN_CORRUPT);
    CHECK(read_long("", "HTTP/1.1 102 Processing\r\n\r\n", TN_HTTP_INTERIM_MAX) == TN_OK);
    CHECK(read_long("", "HTTP/1.1 102 Processing\r\n\r\n", TN_HTTP_INTERIM_MAX + 1) == TN_CORRUPT);
    CHECK(read_long(OK_HEAD, "a: b\r\n", TN_HTTP_FIELDS_MAX) == TN_OK);
    char text[1024];
    (void)snprintf(text, sizeof text, "%s%s", chunks, "1;");
    CHECK(read_long(text, "n", TN_HTTP_CHUNK_LINE_MAX - 2) == TN_OK);
    CHECK(read_long(text, "n", TN_HTTP_CHUNK_LINE_MAX) == TN_CORRUPT);
    CHECK(read_long(chunks, "0", TN_HTTP_CHUNK_LINE_MAX + 1) == TN_CORRUPT);
    (void)snprintf(text, sizeof text, "%s%s", chunks, "0\r\n");
    CHECK(read_long(text, "a: b\r\n", TN_HTTP_TRAILER_MAX / 6) == TN_OK);
    CHECK(read_long(text, "a: b\r\n", TN_HTTP_TRAILER_MAX / 6 + 1) == TN_CORRUPT);
}

/* Bytes behind an answer are not the next one's. */
static void connection_with_bytes_behind_an_answer_is_not_used_again(void)
{
    static const char text[] = OK_HEAD "content-length: 1\r\n\r\nab";
    for (size_t size = sizeof text - 2; size < sizeof text; size++) {
        struct tn_http http;
        struct tn_err err;
        static struct got got;
        forget(&got);
        tn_http_init(&http, head_memory, sizeof head_memory);
        open_request(&http, "GET");
        tn_rc rc = feed(&http, (const unsigned char *)text, size, &got, &err);
        CHECK_OK(rc, err);
        CHECK(got.ended && got.body_size == 1);
        CHECK(tn_http_reusable(&http) == (size == sizeof text - 2));
    }
}

static void fields_beyond_the_limit_are_refused(void)
{
    static char text[WIRE_MAX];
    for (uint32_t count = TN_HTTP_FIELDS_MAX; count <= TN_HTTP_FIELDS_MAX + 1; count++) {
        struct tn_buf buf;
        struct tn_err err;
        tn_buf_init(&buf, text, sizeof text);
        tn_buf_text(&buf, OK_HEAD);
        for (uint32_t i = 0; i < count; i++) {
            tn_buf_text(&buf, "a: b\r\n");
        }
        tn_buf_text(&buf, "\r\n");
        tn_rc rc = read_text(text, buf.size, &err);
        CHECK(rc == (count > TN_HTTP_FIELDS_MAX ? TN_CORRUPT : TN_OK));
    }
}

/* Method, answer, and whether its head is its end. */
static void some_answers_have_no_body_whatever_their_length_says(void)
{
    static const struct {
        const char *method;
        const char *text;
        bool ended;
        bool reusable;
    } cases[] = {
        {"HEAD", OK_HEAD "content-length: 77\r\n\r\n", true, true},
        {"HEAD", OK_HEAD "transfer-encoding: chunked\r\n\r\n", true, true},
        {"HEAD", OK_HEAD "\r\n", true, true},
        {"DELETE", "HTTP/1.1 204 No Content\r\n\r\n", true, true},
        {"GET", "HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n", true, true},
        {"PUT", OK_HEAD "content-length: 0\r\nConnection: x, Close\r\n\r\n", true, false},
        {"PUT", "HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", true, false},
        {"PUT", "HTTP/1.0 200 OK\r\ncontent-length: 0\r\nconnection: keep-alive\r\n\r\n", true,
         true},
        {"GET", OK_HEAD "content-length: 77\r\n\r\n", false, false},
        {"GET", OK_HEAD "content-length: 0\r\ncontent-length: 0\r\n\r\n", true, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_http http;
        static struct got got;
        struct tn_err err;
        forget(&got);
        tn_http_init(&http, head_memory, sizeof head_memory);
        open_request(&http, cases[i].method);
        tn_rc rc =
            feed(&http, (const unsigned char *)cases[i].text, strlen(cases[i].text), &got, &err);
        CHECK_OK(rc, err);
        CHECK(got.heads == 1 && got.ended == cases[i].ended);
        CHECK(tn_http_reusable(&http) == cases[i].reusable);
        CHECK(http.length == 77 || i == 4 || http.length == 0);
    }
}

static void request_is_written_and_its_body_counted(void)
{
    static unsigned char memory[512];
    struct tn_http http;
    struct tn_buf out;
    struct tn_err err;
    static struct got got;
    const struct tn_http_header headers[] = {{"host", "h:1"}, {"x-empty", ""}};
    struct tn_http_request request = {.method = "PUT",
                                      .path = "/b/a%20b",
                                      .query = "x=1",
                                      .headers = headers,
                                      .header_count = 2,
                                      .has_body = true,
                                      .body_size = 10};
    const char *expected =
        "PUT /b/a%20b?x=1 HTTP/1.1\r\nhost: h:1\r\nx-empty: \r\ncontent-length: 10\r\n\r\n";
    forget(&got);
    tn_http_init(&http, head_memory, sizeof head_memory);
    tn_buf_init(&out, memory, sizeof memory);
    tn_rc rc = tn_http_request(&http, &request, &out, &err);
    CHECK_OK(rc, err);
    CHECK(tn_bytes_equal(tn_buf_bytes(&out), tn_bytes_of(expected)));
    CHECK(!tn_http_reusable(&http));
    tn_http_sent(&http, 7);
    /* The answer comes before the body is out: it is read, and the connection is done for. */
    const char *early = "HTTP/1.1 412 No\r\ncontent-length: 0\r\n\r\n";
    rc = feed(&http, (const unsigned char *)early, strlen(early), &got, &err);
    CHECK_OK(rc, err);
    CHECK(got.ended && got.status == 412 && !tn_http_reusable(&http));
    tn_http_sent(&http, 3);
    CHECK(tn_http_reusable(&http));
    tn_buf_init(&out, memory, 40);
    rc = tn_http_request(&http, &request, &out, &err);
    CHECK(rc == TN_AGAIN && tn_http_reusable(&http));
}

static void request_that_would_break_its_head_is_refused(void)
{
    static const struct tn_http_header bad[] = {
        {"a", "b\r\nevil: 1"}, {"a b", "c"}, {"", "c"}, {"a:", "c"}, {"a", "\x7f"},
    };
    static const char *const paths[] = {"", "/a b", "/a\r\n", "/\xc3\xa9"};
    static unsigned char memory[512];
    struct tn_http http;
    struct tn_buf out;
    struct tn_err err;
    tn_http_init(&http, head_memory, sizeof head_memory);
    tn_buf_init(&out, memory, sizeof memory);
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct tn_http_request request = {
            .method = "GET", .path = "/", .query = "", .headers = &bad[i], .header_count = 1};
        tn_rc rc = tn_http_request(&http, &request, &out, &err);
        CHECK(rc == TN_INVALID && out.size == 0 && !strstr(err.text, "evil"));
    }
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct tn_http_request request = {.method = "GET", .path = paths[i], .query = ""};
        CHECK(tn_http_request(&http, &request, &out, &err) == TN_INVALID);
        request.path = "/";
        request.query = i == 0 ? "a b" : paths[i];
        CHECK(tn_http_request(&http, &request, &out, &err) == TN_INVALID);
    }
    CHECK(tn_http_reusable(&http) && out.size == 0);
}

static void dates_are_read(void)
{
    static const struct {
        const char *text;
        int64_t time_ms;
    } cases[] = {
        {"Fri, 24 May 2013 00:00:00 GMT", 1369353600000},
        {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
        {"Thu, 29 Feb 2024 23:59:60 GMT", 1709251200000},
        {"Thu, 29 Feb 2023 23:59:59 GMT", -1},
        {"Fri, 24 Mai 2013 00:00:00 GMT", -1},
        {"Fri, 24 May 2013 24:00:00 GMT", -1},
        {"Fri, 24 May 2013 00:00:00 CET", -1},
        {"Fri, 24 May 1969 00:00:00 GMT", -1},
        {"Friday, 24-May-13 00:00:00 GMT", -1},
        {"", -1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t time_ms = -1;
        bool good = tn_http_date(tn_bytes_of(cases[i].text), &time_ms);
        CHECK(good == (cases[i].time_ms >= 0) && time_ms == cases[i].time_ms);
    }
}

static const struct test tests[] = {
    TEST(answers_in_any_pieces_are_the_same),
    TEST(answer_that_is_cut_is_an_error),
    TEST(what_a_server_may_not_say_is_refused),
    TEST(every_part_of_an_answer_has_a_limit),
    TEST(connection_with_bytes_behind_an_answer_is_not_used_again),
    TEST(fields_beyond_the_limit_are_refused),
    TEST(some_answers_have_no_body_whatever_their_length_says),
    TEST(request_is_written_and_its_body_counted),
    TEST(request_that_would_break_its_head_is_refused),
    TEST(dates_are_read),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
