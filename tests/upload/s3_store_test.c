/* From options and "s3://bucket/prefix" to the host that is asked. */
#include "upload/s3_store.h"

#include "check.h"

static struct tn_s3_store store;
static struct tn_err err;

static const char *no_environment(void *user, const char *name)
{
    (void)user;
    (void)name;
    return NULL;
}

/* Pairs of name and value, ended by NULL. */
static const char *environment_of(void *user, const char *name)
{
    for (const char **pair = user; *pair; pair += 2) {
        if (strcmp(pair[0], name) == 0) {
            return pair[1];
        }
    }
    return NULL;
}

static void endpoint_and_bucket_become_a_host(void)
{
    static const struct {
        const char *endpoint;
        const char *region;
        const char *path_style;
        const char *bucket;
        const char *host; /* NULL: refused */
        const char *authority;
        int port;
        bool tls;
        bool in_path;
        const char *its_region;
    } cases[] = {
        {NULL, NULL, NULL, "b", "b.s3.us-east-1.amazonaws.com", "b.s3.us-east-1.amazonaws.com", 443,
         true, false, "us-east-1"},
        {NULL, "eu-west-1", NULL, "b", "b.s3.eu-west-1.amazonaws.com",
         "b.s3.eu-west-1.amazonaws.com", 443, true, false, "eu-west-1"},
        {NULL, "cn-north-1", NULL, "b", "b.s3.cn-north-1.amazonaws.com.cn",
         "b.s3.cn-north-1.amazonaws.com.cn", 443, true, false, "cn-north-1"},
        {NULL, NULL, NULL, "b.c", "s3.us-east-1.amazonaws.com", "s3.us-east-1.amazonaws.com", 443,
         true, true, "us-east-1"},
        {NULL, NULL, "TRUE", "b", "s3.us-east-1.amazonaws.com", "s3.us-east-1.amazonaws.com", 443,
         true, true, "us-east-1"},
        {"s3.amazonaws.com", "eu-west-1", NULL, "b", "b.s3.eu-west-1.amazonaws.com",
         "b.s3.eu-west-1.amazonaws.com", 443, true, false, "eu-west-1"},
        {"https://s3.eu-west-1.amazonaws.com/", NULL, NULL, "b", "b.s3.eu-west-1.amazonaws.com",
         "b.s3.eu-west-1.amazonaws.com", 443, true, false, "eu-west-1"},
        {"http://127.0.0.1:9000", NULL, "false", "b", "127.0.0.1", "127.0.0.1:9000", 9000, false,
         true, "us-east-1"},
        {"http://localhost:9000/", NULL, NULL, "b", "localhost", "localhost:9000", 9000, false,
         true, "us-east-1"},
        {"[::1]:9000", NULL, NULL, "b", "::1", "[::1]:9000", 9000, true, true, "us-east-1"},
        {"http://[fe80::1]", NULL, NULL, "b", "fe80::1", "[fe80::1]", 80, false, true, "us-east-1"},
        {"https://store.example:443", "garage", NULL, "b", "b.store.example", "b.store.example",
         443, true, false, "garage"},
        {"store.example", NULL, "true", "b", "store.example", "store.example", 443, true, true,
         "us-east-1"},
        {"http://store.example:8080", NULL, NULL, "b.c", "b.c.store.example",
         "b.c.store.example:8080", 8080, false, false, "us-east-1"},
        {"https://store.example", NULL, NULL, "Big_Bucket", "store.example", "store.example", 443,
         true, true, "us-east-1"},
        {"ftp://store.example", NULL, NULL, "b", NULL, NULL, 0, false, false, NULL},
        {"https://store.example/path", NULL, NULL, "b", NULL, NULL, 0, false, false, NULL},
        {"https://user@store.example", NULL, NULL, "b", NULL, NULL, 0, false, false, NULL},
        {"https://", NULL, NULL, "b", NULL, NULL, 0, false, false, NULL},
        {"store.example:0", NULL, NULL, "b", NULL, NULL, 0, false, false, NULL},
        {"store.example:65536", NULL, NULL, "b", NULL, NULL, 0, false, false, NULL},
        {"store.example:", NULL, NULL, "b", NULL, NULL, 0, false, false, NULL},
        {"[::1", NULL, NULL, "b", NULL, NULL, 0, false, false, NULL},
        {"[::1]x", NULL, NULL, "b", NULL, NULL, 0, false, false, NULL},
        {"a b", NULL, NULL, "b", NULL, NULL, 0, false, false, NULL},
        {NULL, "eu west", NULL, "b", NULL, NULL, 0, false, false, NULL},
        {NULL, NULL, "yes", "b", NULL, NULL, 0, false, false, NULL},
        {NULL, NULL, NULL, "a/b", NULL, NULL, 0, false, false, NULL},
        {NULL, NULL, NULL, "", NULL, NULL, 0, false, false, NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct tn_s3_options options = {.endpoint = cases[i].endpoint,
                                              .access_key = "a",
                                              .secret_key = "s",
                                              .region = cases[i].region,
                                              .path_style = cases[i].path_style};
        tn_rc rc = tn_s3_store_init(&store, &options, cases[i].bucket, &err);
        CHECK(rc == (cases[i].host ? TN_OK : TN_INVALID));
        if (cases[i].host) {
            CHECK(strcmp(store.host, cases[i].host) == 0);
            CHECK(strcmp(store.authority, cases[i].authority) == 0);
            CHECK(store.port == cases[i].port && store.tls == cases[i].tls);
            CHECK(store.path_style == cases[i].in_path);
            CHECK(strcmp(store.region, cases[i].its_region) == 0);
        }
    }
}

static void options_have_the_names_of_paimon(void)
{
    static const struct {
        const char *name;
        size_t offset; /* of the member; SIZE_MAX: not ours */
    } cases[] = {
        {"s3.endpoint", offsetof(struct tn_s3_options, endpoint)},
        {"s3.access-key", offsetof(struct tn_s3_options, access_key)},
        {"s3a.access.key", offsetof(struct tn_s3_options, access_key)},
        {"fs.s3a.secret.key", offsetof(struct tn_s3_options, secret_key)},
        {"fs.s3.accessKeyId", offsetof(struct tn_s3_options, access_key)},
        {"fs.s3.accessKeySecret", offsetof(struct tn_s3_options, secret_key)},
        {"fs.s3.securityToken", offsetof(struct tn_s3_options, session_token)},
        {"s3.session-token", offsetof(struct tn_s3_options, session_token)},
        {"fs.s3a.session.token", offsetof(struct tn_s3_options, session_token)},
        {"s3.path.style.access", offsetof(struct tn_s3_options, path_style)},
        {"s3.path-style-access", offsetof(struct tn_s3_options, path_style)},
        {"fs.s3.region", offsetof(struct tn_s3_options, region)},
        {"s3.endpoint.region", offsetof(struct tn_s3_options, region)},
        {"s3.connection.ssl.enabled", offsetof(struct tn_s3_options, tls)},
        {"s3.unknown", SIZE_MAX},
        {"s3.endpoints", SIZE_MAX},
        {"endpoint", SIZE_MAX},
        {"fs.s3", SIZE_MAX},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_s3_options options = {0};
        bool ours = tn_s3_option(&options, cases[i].name, "value");
        CHECK(ours == (cases[i].offset != SIZE_MAX));
        const char **members = (const char **)(void *)&options;
        for (size_t j = 0; j < sizeof options / sizeof members[0]; j++) {
            bool is_it = j * sizeof members[0] == cases[i].offset;
            CHECK(is_it ? strcmp(members[j], "value") == 0 : !members[j]);
        }
    }
}

/* A session token of the environment beside an access key of the options would be refused by the
 * store with words that nobody understands. */
static void credentials_come_all_from_one_place(void)
{
    const char *environment[] = {"AWS_ACCESS_KEY_ID",
                                 "ea",
                                 "AWS_SECRET_ACCESS_KEY",
                                 "es",
                                 "AWS_SESSION_TOKEN",
                                 "et",
                                 "AWS_DEFAULT_REGION",
                                 "er",
                                 "AWS_ENDPOINT_URL",
                                 "ee",
                                 "AWS_REGION",
                                 "",
                                 NULL};
    struct tn_s3_options options = {0};
    tn_s3_options_environment(&options, environment_of, environment);
    CHECK(strcmp(options.access_key, "ea") == 0 && strcmp(options.secret_key, "es") == 0);
    CHECK(strcmp(options.session_token, "et") == 0 && strcmp(options.region, "er") == 0);
    CHECK(strcmp(options.endpoint, "ee") == 0);
    options = (struct tn_s3_options){.access_key = "oa", .endpoint = "oe"};
    tn_s3_options_environment(&options, environment_of, environment);
    CHECK(!options.secret_key && !options.session_token && strcmp(options.endpoint, "oe") == 0);
    tn_rc rc = tn_s3_store_init(&store, &options, "b", &err);
    CHECK(rc == TN_INVALID && strstr(err.text, "no secret key"));
    options = (struct tn_s3_options){0};
    tn_s3_options_environment(&options, no_environment, NULL);
    rc = tn_s3_store_init(&store, &options, "b", &err);
    CHECK(rc == TN_INVALID && strstr(err.text, "AWS_ACCESS_KEY_ID"));
}

static void keys_of_a_profile_are_read_from_the_file(void)
{
    static const char text[] = "# of ours\n[other]\naws_access_key_id=oa\n"
                               "aws_secret_access_key = os\n\n[ default ]\r\n"
                               "  aws_access_key_id =  a=b  \r\n; aws_session_token = no\r\n"
                               "region = eu-west-1\r\nAWS_SECRET_ACCESS_KEY=s\r\n[half]\n"
                               "aws_access_key_id=h\n[token]\naws_access_key_id=ta\n"
                               "aws_secret_access_key=ts\naws_session_token=tt";
    static const struct {
        const char *profile;
        const char *keys[3];
        tn_rc rc;
    } cases[] = {
        {"default", {"a=b", "s", NULL}, TN_OK},  {"other", {"oa", "os", NULL}, TN_OK},
        {"token", {"ta", "ts", "tt"}, TN_OK},    {"half", {NULL, NULL, NULL}, TN_ABSENT},
        {"none", {NULL, NULL, NULL}, TN_ABSENT},
    };
    static unsigned char memory[512];
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_arena arena;
        struct tn_s3_options options = {0};
        tn_arena_init(&arena, memory, sizeof memory);
        tn_rc rc = tn_s3_options_file(&options, tn_bytes_of(text), cases[i].profile, &arena, &err);
        const char *keys[] = {options.access_key, options.secret_key, options.session_token};
        CHECK(rc == cases[i].rc);
        for (size_t j = 0; j < COUNT(keys); j++) {
            const char *expected = cases[i].keys[j];
            CHECK(expected ? keys[j] && strcmp(keys[j], expected) == 0 : !keys[j]);
        }
        options = (struct tn_s3_options){.session_token = "t"};
        rc = tn_s3_options_file(&options, tn_bytes_of(text), cases[i].profile, &arena, &err);
        CHECK(rc == TN_OK && !options.access_key);
    }
    struct tn_arena arena;
    struct tn_s3_options options = {0};
    tn_arena_init(&arena, memory, 16);
    tn_rc rc = tn_s3_options_file(&options, tn_bytes_of(text), "token", &arena, &err);
    CHECK(rc == TN_AGAIN && !options.access_key);
}

static void places_are_read(void)
{
    static const struct {
        const char *text;
        const char *bucket; /* NULL: refused */
        const char *prefix;
    } cases[] = {
        {"s3://b", "b", ""},
        {"s3://b/", "b", ""},
        {"s3a://b.c/lake/", "b.c", "lake"},
        {"s3n://b//a/b c//", "b", "a/b c"},
        {"s3://", NULL, NULL},
        {"s3:///a", NULL, NULL},
        {"s3://b@c/a", NULL, NULL},
        {"oss://b/a", NULL, NULL},
        {"/b/a", NULL, NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_s3_place place;
        tn_rc rc = tn_s3_place_parse(&place, cases[i].text, &err);
        CHECK(rc == (cases[i].bucket ? TN_OK : TN_INVALID));
        if (cases[i].bucket) {
            CHECK(strcmp(place.bucket, cases[i].bucket) == 0);
            CHECK(place.prefix_size == strlen(cases[i].prefix));
            CHECK(memcmp(place.prefix, cases[i].prefix, place.prefix_size) == 0);
        }
    }
}

/* An answer can change the region, and with it a host of AWS; no answer can name a host. */
static void store_moves_to_a_region_and_nowhere_else(void)
{
    struct tn_s3_options options = {.access_key = "a", .secret_key = "s"};
    tn_rc rc = tn_s3_store_init(&store, &options, "b", &err);
    CHECK_OK(rc, err);
    CHECK(!tn_s3_store_move(&store, "us-east-1") && !tn_s3_store_move(&store, ""));
    CHECK(!tn_s3_store_move(&store, "evil.example/") && !tn_s3_store_move(&store, "evil.example"));
    CHECK(strcmp(store.host, "b.s3.us-east-1.amazonaws.com") == 0);
    CHECK(tn_s3_store_move(&store, "eu-west-1"));
    CHECK(strcmp(store.authority, "b.s3.eu-west-1.amazonaws.com") == 0);
    options.endpoint = "http://store.example";
    rc = tn_s3_store_init(&store, &options, "b", &err);
    CHECK_OK(rc, err);
    CHECK(tn_s3_store_move(&store, "eu-west-1") && strcmp(store.region, "eu-west-1") == 0);
    CHECK(strcmp(store.host, "b.store.example") == 0);
}

static const struct test tests[] = {
    TEST(endpoint_and_bucket_become_a_host),
    TEST(options_have_the_names_of_paimon),
    TEST(credentials_come_all_from_one_place),
    TEST(keys_of_a_profile_are_read_from_the_file),
    TEST(places_are_read),
    TEST(store_moves_to_a_region_and_nowhere_else),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
