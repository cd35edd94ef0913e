/* Signatures that AWS published: four examples of S3's documentation, and the cases of the "aws4"
 * test suite that hold for a path that is encoded once. */
#include "upload/sigv4.h"

#include "check.h"
#include "given.h"
#include "random.h"

enum { OUT_SIZE = 2048 };

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define S3_HOST                                  \
    {                                            \
        "host", "examplebucket.s3.amazonaws.com" \
    }
#define S3_DATE                          \
    {                                    \
        "x-amz-date", "20130524T000000Z" \
    }
#define SUITE                            \
    {"Host", "example.amazonaws.com"},   \
    {                                    \
        "X-Amz-Date", "20150830T123600Z" \
    }
#define SUITE_TOKEN                                                                              \
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfp" \
    "SPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQ" \
    "DYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+s" \
    "cqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="

struct vector {
    const char *method;
    const char *path; /* not encoded */
    struct tn_sigv4_pair query[3];
    struct tn_http_header headers[8];
    const char *payload;
    const char *signed_headers;
    const char *signature;
};

static const struct vector s3_vectors[] = {
    {"GET",
     "/test.txt",
     {{0}},
     {S3_HOST, {"range", "bytes=0-9"}, {"x-amz-content-sha256", EMPTY}, S3_DATE},
     EMPTY,
     "host;range;x-amz-content-sha256;x-amz-date",
     "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
    {"PUT",
     "/test$file.text",
     {{0}},
     {S3_DATE,
      {"x-amz-storage-class", "REDUCED_REDUNDANCY"},
      {"x-amz-content-sha256", "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"},
      {"date", "Fri, 24 May 2013 00:00:00 GMT"},
      S3_HOST},
     "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
     "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
     "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
    {"GET",
     "/",
     {{"lifecycle", ""}},
     {S3_HOST, {"x-amz-content-sha256", EMPTY}, S3_DATE},
     EMPTY,
     "host;x-amz-content-sha256;x-amz-date",
     "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
    {"GET",
     "/",
     {{"prefix", "J"}, {"max-keys", "2"}},
     {S3_HOST, {"x-amz-content-sha256", EMPTY}, S3_DATE},
     EMPTY,
     "host;x-amz-content-sha256;x-amz-date",
     "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
};

static const struct vector suite_vectors[] = {
    {"GET",
     "/",
     {{0}},
     {SUITE},
     EMPTY,
     "host;x-amz-date",
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"POST",
     "/",
     {{0}},
     {SUITE},
     EMPTY,
     "host;x-amz-date",
     "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
    {"GET",
     "/",
     {{"Param2", "value2"}, {"Param1", "value1"}},
     {SUITE},
     EMPTY,
     "host;x-amz-date",
     "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
    {"GET",
     "/",
     {{"Param1", "value2"}, {"Param1", "Value1"}},
     {SUITE},
     EMPTY,
     "host;x-amz-date",
     "eedbc4e291e521cf13422ffca22be7d2eb8146eecf653089df300a15b2382bd1"},
    {"GET",
     "/",
     {{"\xe1\x88\xb4", "bar"}},
     {SUITE},
     EMPTY,
     "host;x-amz-date",
     "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
    {"GET",
     "/\xe1\x88\xb4",
     {{0}},
     {SUITE},
     EMPTY,
     "host;x-amz-date",
     "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
    {"GET",
     "/",
     {{0}},
     {SUITE, {"My-Header1", " value1"}, {"My-Header2", " \"a   b   c\""}},
     EMPTY,
     "host;my-header1;my-header2;x-amz-date",
     "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
    {"POST",
     "/",
     {{0}},
     {SUITE, {"X-Amz-Security-Token", SUITE_TOKEN}},
     EMPTY,
     "host;x-amz-date;x-amz-security-token",
     "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"},
};

static void make_spec(const struct vector *vector, struct tn_sigv4_spec *spec, struct tn_buf *text)
{
    uint32_t pairs = 0;
    spec->method = vector->method;
    spec->headers = vector->headers;
    spec->payload = vector->payload;
    spec->header_count = 0;
    for (;
         spec->header_count < COUNT(vector->headers) && vector->headers[spec->header_count].name;) {
        spec->header_count++;
    }
    for (; pairs < COUNT(vector->query) && vector->query[pairs].name; pairs++) {
    }
    tn_sigv4_encode(text, tn_bytes_of(vector->path), true);
    tn_buf_byte(text, 0);
    spec->path = (const char *)text->data;
    size_t from = text->size;
    tn_sigv4_query(text, vector->query, pairs);
    tn_buf_byte(text, 0);
    spec->query = (const char *)text->data + from;
    CHECK(!text->overflow);
}

static void check_vector(const struct vector *vector, struct tn_sigv4_spec *spec)
{
    static unsigned char text_memory[OUT_SIZE];
    static unsigned char out_memory[OUT_SIZE];
    static char expected[OUT_SIZE];
    struct tn_buf text;
    struct tn_buf out;
    tn_buf_init(&text, text_memory, sizeof text_memory);
    tn_buf_init(&out, out_memory, sizeof out_memory);
    make_spec(vector, spec, &text);
    tn_sigv4_sign(spec, &out);
    tn_buf_byte(&out, 0);
    CHECK(!out.overflow);
    (void)snprintf(expected, sizeof expected,
                   "AWS4-HMAC-SHA256 Credential=%s/%.8s/us-east-1/%s/aws4_request, "
                   "SignedHeaders=%s, Signature=%s",
                   spec->access_key, spec->date, spec->service, vector->signed_headers,
                   vector->signature);
    if (strcmp((char *)out_memory, expected) != 0) {
        (void)fprintf(stderr, "%s\n%s\n", (char *)out_memory, expected);
    }
    CHECK(strcmp((char *)out_memory, expected) == 0);
}

static void signatures_are_those_that_aws_published(void)
{
    struct tn_sigv4_spec s3 = {.access_key = "AKIAIOSFODNN7EXAMPLE",
                               .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                               .region = "us-east-1",
                               .service = "s3",
                               .date = "20130524T000000Z"};
    struct tn_sigv4_spec suite = {.access_key = "AKIDEXAMPLE",
                                  .secret_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                                  .region = "us-east-1",
                                  .service = "service",
                                  .date = "20150830T123600Z"};
    for (size_t i = 0; i < COUNT(s3_vectors); i++) {
        check_vector(&s3_vectors[i], &s3);
    }
    for (size_t i = 0; i < COUNT(suite_vectors); i++) {
        check_vector(&suite_vectors[i], &suite);
    }
}

static bool encodes(const char *text, bool slash, const char *expected)
{
    unsigned char memory[256];
    struct tn_buf out;
    tn_buf_init(&out, memory, sizeof memory);
    tn_sigv4_encode(&out, tn_bytes_of(text), slash);
    return tn_bytes_equal(tn_buf_bytes(&out), tn_bytes_of(expected));
}

static void texts_are_encoded_as_s3_wants_them(void)
{
    CHECK(encodes("azAZ09-._~", false, "azAZ09-._~"));
    CHECK(encodes("a/b", true, "a/b"));
    CHECK(encodes("a/b", false, "a%2Fb"));
    CHECK(encodes(" +*'()!@=&?#", true, "%20%2B%2A%27%28%29%21%40%3D%26%3F%23"));
    CHECK(encodes("\xc3\xbc\x01\xff", true, "%C3%BC%01%FF"));
    /* Paimon escapes a partition's value; its percent sign is one of the key's bytes. */
    CHECK(encodes("s=a%2Fb%3Dc d", true, "s%3Da%252Fb%253Dc%20d"));
}

/* The order of pairs is that of their encoded texts: asked of pairs that differ in a byte. */
static void queries_are_in_the_order_that_is_signed(void)
{
    uint64_t random = given_number("SEED", 1);
    for (int round = 0; round < 5000; round++) {
        char names[3][3] = {{0}};
        unsigned char memory[256];
        struct tn_sigv4_pair pairs[3];
        struct tn_buf out;
        for (int i = 0; i < 3; i++) {
            names[i][0] = (char)(1 + random_below(&random, 255));
            names[i][1] = (char)random_below(&random, 256);
            pairs[i] = (struct tn_sigv4_pair){names[i], "v"};
        }
        tn_buf_init(&out, memory, sizeof memory);
        tn_sigv4_query(&out, pairs, 3);
        tn_buf_byte(&out, 0);
        CHECK(!out.overflow);
        char *text = (char *)memory;
        char *parts[3];
        for (int i = 0; i < 3; i++) {
            parts[i] = strsep(&text, "&");
            *strchr(parts[i], '=') = 0; /* the value is not a part of the name's order */
            CHECK(i == 0 || strcmp(parts[i - 1], parts[i]) <= 0);
        }
        CHECK(!text);
    }
}

static void dates_are_written_for_any_time(void)
{
    static const struct {
        int64_t time_ms;
        const char *text;
    } cases[] = {
        {0, "19700101T000000Z"},
        {1369353600999, "20130524T000000Z"},
        {-1, "19691231T235959Z"},
        {1709251199000, "20240229T235959Z"},
        {253402300799000, "99991231T235959Z"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char date[TN_SIGV4_DATE_SIZE];
        tn_sigv4_date(cases[i].time_ms, date);
        CHECK(strcmp(date, cases[i].text) == 0);
    }
}

static const struct test tests[] = {
    TEST(signatures_are_those_that_aws_published),
    TEST(texts_are_encoded_as_s3_wants_them),
    TEST(queries_are_in_the_order_that_is_signed),
    TEST(dates_are_written_for_any_time),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
