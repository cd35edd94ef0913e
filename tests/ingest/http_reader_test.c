/* What is read of requests, and what of them is refused and how: tables of texts, each cut at every
 * byte. tests/fuzz/http_reader_fuzz.c does the same with any bytes. */
#include "ingest/http_reader.h"

#include "check.h"

enum { TEXT_MAX = 32 * 1024 };

static unsigned char head_memory[TN_HTTP_READER_HEAD_SIZE];
static struct tn_http_reader reader;
static char told[TEXT_MAX];
static struct tn_buf events;

static void say(const char *before, struct tn_bytes text)
{
    tn_buf_text(&events, before);
    tn_buf_append(&events, text.data, text.size);
}

static void tell(enum tn_http_reader_event event, struct tn_bytes body)
{
    if (event == TN_HTTP_READER_HEAD) {
        say("", reader.method);
        say(" ", reader.path);
        say(" ", reader.query);
        tn_buf_text(&events, reader.keep_alive ? " stay" : " go");
        tn_buf_text(&events, reader.expects ? " expects[" : " [");
    } else if (event == TN_HTTP_READER_BODY) {
        say("", body);
    } else if (event == TN_HTTP_READER_END) {
        tn_buf_text(&events, "]\n");
    }
}

/* False when it's refused. */
static bool feed(struct tn_bytes input)
{
    enum tn_http_reader_event event = TN_HTTP_READER_HEAD;
    while (event != TN_HTTP_READER_MORE) {
        struct tn_bytes body;
        struct tn_err err;
        tn_rc rc = tn_http_reader_next(&reader, &input, &event, &body, &err);
        if (rc != TN_OK) {
            CHECK(rc == TN_INVALID);
            tn_buf_format(&events, "%d", reader.status);
            return false;
        }
        tell(event, body);
    }
    CHECK(input.size == 0);
    return true;
}

/* What is told of a text that comes in two pieces. */
static const char *read_cut(struct tn_bytes text, size_t cut)
{
    tn_buf_init(&events, told, sizeof told - 1);
    tn_http_reader_init(&reader, head_memory, sizeof head_memory);
    if (feed((struct tn_bytes){text.data, cut})) {
        (void)feed((struct tn_bytes){text.data + cut, text.size - cut});
    }
    CHECK(!events.overflow);
    told[events.size] = 0;
    return told;
}

static void expect_told(const char *text, const char *wanted)
{
    struct tn_bytes bytes = tn_bytes_of(text);
    for (size_t cut = 0; cut <= bytes.size; cut++) {
        const char *got = read_cut(bytes, cut);
        if (strcmp(got, wanted) != 0) {
            FAIL("cut at %zu: '%s', not '%s', of\n%s", cut, got, wanted, text);
        }
    }
}

#define HOST "Host: a\r\n"

static void requests_are_read_however_they_are_cut(void)
{
    static const struct {
        const char *text;
        const char *told;
    } cases[] = {
        {"GET /health HTTP/1.1\r\n" HOST "\r\n", "GET /health  stay []\n"},
        {"GET /a?b=c?d HTTP/1.1\r\nhOST:\t a \r\nConnection: x, CLOSE\r\n\r\n",
         "GET /a b=c?d go []\n"},
        {"\r\nGET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n\r\n", "GET /  go []\n"},
        {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\nGET /b HTTP/1.0\r\n\r\n",
         "GET /  stay []\nGET /b  go []\n"},
        {"GET http://a:80/b?c HTTP/1.1\r\n" HOST "\r\n", "GET /b c stay []\n"},
        {"POST /a HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n1\r\n\r\nGET /b HTTP/1.9\r\n" HOST
         "\r\n",
         "POST /a  stay [1\r\n\r\n]\nGET /b  stay []\n"},
        {"POST /a HTTP/1.1\r\n" HOST "Content-Length: 0\r\nExpect: 100-continue\r\n\r\n",
         "POST /a  stay []\n"},
        {"POST /a HTTP/1.1\r\n" HOST "Content-Length: 1\r\nExpect: 100-Continue\r\n\r\nx",
         "POST /a  stay expects[x]\n"},
        {"POST /a HTTP/1.1\r\n" HOST
         "Transfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n00a ;n=\"v\"\r\n"
         "0123456789\r\n0\r\nX: y\r\n\r\nPUT /b HTTP/1.1\r\n" HOST "\r\n",
         "POST /a  stay [abc0123456789]\nPUT /b  stay []\n"},
        {"POST /a HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n12", "POST /a  stay [12"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        expect_told(cases[i].text, cases[i].told);
    }
}

static void what_can_be_read_in_two_ways_is_refused(void)
{
    static const struct {
        const char *text;
        const char *told;
    } cases[] = {
        {"GET / HTTP/1.1\nHost: a\n\n", "400"},
        {"GET / HTTP/1.1\r\nHost: a\n\r\n", "400"},
        {"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", "400"},
        {"GET / HTTP/1.1\r\n" HOST "X: b\r\n c\r\n\r\n", "400"},
        {"GET / HTTP/1.1\r\n" HOST "X : b\r\n\r\n", "400"},
        {"GET / HTTP/1.1\r\n" HOST ": b\r\n\r\n", "400"},
        {"GET / HTTP/1.1\r\n" HOST "nothing\r\n\r\n", "400"},
        {"GET / HTTP/1.1\r\n" HOST "X: \x01\r\n\r\n", "400"},
        {"\x16\x03\x01\x02", "400"},
        {"GET / HTTP/1.1\r\n\r\n", "400"},
        {"GET / HTTP/1.1\r\n" HOST HOST "\r\n", "400"},
        {"GET /\r\n\r\n", "400"},
        {"GET  / HTTP/1.1\r\n" HOST "\r\n", "400"},
        {"GET / HTTP/1.1 \r\n" HOST "\r\n", "400"},
        {"GET /\xc3\xa4 HTTP/1.1\r\n" HOST "\r\n", "400"},
        {"GET a HTTP/1.1\r\n" HOST "\r\n", "400"},
        {"G(T / HTTP/1.1\r\n" HOST "\r\n", "400"},
        {"OPTIONS * HTTP/1.1\r\n" HOST "\r\n", "400"},
        {"\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n", "400"},
        {"GET / HTTP/2.0\r\n" HOST "\r\n", "505"},
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", "400"},
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1, 1\r\n\r\n", "400"},
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: +1\r\n\r\n", "400"},
        {"POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n", "400"},
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: 9223372036854775808\r\n\r\n", "400"},
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
         "400"},
        {"POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", "400"},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", "501"},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n", "501"},
        {"POST / HTTP/1.1\r\n" HOST
         "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
         "501"},
        {"POST / HTTP/1.1\r\n" HOST "Expect: a miracle\r\n\r\n", "417"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        expect_told(cases[i].text, cases[i].told);
    }
}

static void chunks_that_are_none_are_refused(void)
{
    static const char *const bodies[] = {
        "x\r\n",       "\r\n",          "5\n",        "-1\r\n",
        "0x5\r\n",     "5 5\r\n",       "2\r\nabc",   "2\r\nab\nX",
        "0\r\nX: y\n", "0\r\n\x01\r\n", "1;\x02\r\n", "fffffffffffffffff\r\n",
    };
    for (size_t i = 0; i < COUNT(bodies); i++) {
        char text[256];
        (void)snprintf(text, sizeof text,
                       "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n%s",
                       bodies[i]);
        const char *got = read_cut(tn_bytes_of(text), strlen(text));
        CHECK(strcmp(got + strlen(got) - 3, "400") == 0);
        CHECK(strchr(got, ']') == NULL);
        char copy[256];
        (void)snprintf(copy, sizeof copy, "%s", got);
        expect_told(text, copy);
    }
}

static void heads_have_limits(void)
{
    static char text[TEXT_MAX];
    static char line[TN_HTTP_READER_HEAD_SIZE + 64];
    memset(line, 'a', sizeof line);
    line[sizeof line - 1] = 0;
    (void)snprintf(text, sizeof text, "GET /%s HTTP/1.1\r\n\r\n", line);
    CHECK(strcmp(read_cut(tn_bytes_of(text), 9000 / 2), "414") == 0);
    (void)snprintf(text, sizeof text, "GET / HTTP/1.1\r\n" HOST "X: %s\r\n\r\n", line);
    CHECK(strcmp(read_cut(tn_bytes_of(text), 100), "431") == 0);
    for (size_t count = TN_HTTP_FIELDS_MAX - 1; count <= TN_HTTP_FIELDS_MAX; count++) {
        struct tn_buf buf;
        tn_buf_init(&buf, text, sizeof text - 1);
        tn_buf_text(&buf, "GET / HTTP/1.1\r\n" HOST);
        for (size_t i = 0; i < count; i++) {
            tn_buf_text(&buf, "X: y\r\n");
        }
        tn_buf_text(&buf, "\r\n");
        const char *got = read_cut(tn_buf_bytes(&buf), 50);
        CHECK(strcmp(got, count < TN_HTTP_FIELDS_MAX ? "GET /  stay []\n" : "431") == 0);
    }
}

/* Lines that the reader drops may not be without an end. */
static void trailers_and_notes_have_limits(void)
{
    static char text[TEXT_MAX];
    static char filler[TN_HTTP_TRAILER_MAX + 8];
    memset(filler, 'a', sizeof filler);
    filler[sizeof filler - 1] = 0;
    for (size_t i = 0; i < 2; i++) {
        struct tn_buf buf;
        tn_buf_init(&buf, text, sizeof text - 1);
        tn_buf_text(&buf, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
        tn_buf_text(&buf, i == 0 ? "0\r\n" : "1;");
        tn_buf_text(&buf, filler);
        CHECK(strcmp(read_cut(tn_buf_bytes(&buf), 60), "POST /  stay [400") == 0);
    }
}

/* Each line counts with its end. */
static void many_lines_of_a_trailer_are_as_long_as_one(void)
{
    static char text[TEXT_MAX];
    struct tn_buf buf;
    tn_buf_init(&buf, text, sizeof text - 1);
    tn_buf_text(&buf, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n");
    for (int i = 0; i <= TN_HTTP_TRAILER_MAX / 6; i++) {
        tn_buf_text(&buf, "a: b\r\n");
    }
    CHECK(strcmp(read_cut(tn_buf_bytes(&buf), 60), "POST /  stay [400") == 0);
}

static const struct test tests[] = {
    TEST(requests_are_read_however_they_are_cut), TEST(what_can_be_read_in_two_ways_is_refused),
    TEST(chunks_that_are_none_are_refused),       TEST(heads_have_limits),
    TEST(trailers_and_notes_have_limits),         TEST(many_lines_of_a_trailer_are_as_long_as_one),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
