/* The options of a lake in an object store, and what tells one such lake from another. */
#include "app/lake_store.h"

#include "check.h"

static bool is_taken(const char *text)
{
    struct tn_lake_options options = {0};
    struct tn_err err = {0};
    tn_rc rc = tn_lake_option(&options, text, &err);
    CHECK(rc == TN_OK || (rc == TN_INVALID && strstr(err.text, "--option")));
    return rc == TN_OK;
}

/* Paimon's names, in each of the ways that Paimon writes them, and ours. */
static void options_are_known_by_name(void)
{
    static const char *const known[] = {
        "s3.endpoint=http://localhost:1",
        "s3.access-key=a",
        "s3.access.key=a",
        "s3a.secret-key=b",
        "fs.s3a.session.token=c",
        "s3.region=x",
        "s3.ca-file=/x",
        "s3.profile=p",
        "s3.path.style.access=true",
        "s3.ca-file=",
        "s3.region=a=b",
        "s3.credentials-file=f",
    };
    static const char *const unknown[] = {
        "",
        "=",
        "s3.endpoint",
        "endpoint=http://x",
        "s3.endpiont=x",
        "bucket=1",
        "s3.=x",
        "s3.a-name-that-is-longer-than-any-name-that-there-ever-was-or-will-be=x",
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        CHECK(is_taken(known[i]));
    }
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        CHECK(!is_taken(unknown[i]));
    }
}

/* What an option says the environment doesn't change; an empty variable says nothing. */
static void options_go_before_the_environment(void)
{
    struct tn_lake_options options = {0};
    struct tn_err err = {0};
    CHECK(setenv("SSL_CERT_FILE", "/environment", 1) == 0 && setenv("AWS_PROFILE", "", 1) == 0 &&
          unsetenv("AWS_CA_BUNDLE") == 0 && setenv("AWS_REGION", "there", 1) == 0);
    tn_lake_options_environment(&options);
    CHECK(strcmp(options.ca_file, "/environment") == 0 && !options.profile);
    CHECK(strcmp(options.s3.region, "there") == 0);
    options = (struct tn_lake_options){0};
    CHECK(tn_lake_option(&options, "s3.ca-file=/option", &err) == TN_OK);
    CHECK(tn_lake_option(&options, "s3.region=here", &err) == TN_OK);
    tn_lake_options_environment(&options);
    CHECK(strcmp(options.ca_file, "/option") == 0 && strcmp(options.s3.region, "here") == 0);
}

static uint64_t hash_of(const char *where, const char *endpoint)
{
    struct tn_lake_options options = {.s3.endpoint = endpoint};
    struct tn_err err = {0};
    uint64_t hash = 0;
    CHECK(tn_lake_store_hash(where, &options, &hash, &err) == TN_OK);
    return hash;
}

/* A consumer has its name by it: one place, one name, whatever way it is written. */
static void a_place_has_one_name(void)
{
    uint64_t hash = hash_of("s3://bucket/a/b", "https://store:9000");
    CHECK(hash == hash_of("s3://bucket/a/b/", "https://store:9000/"));
    CHECK(hash == hash_of("s3a://bucket/a/b", "store:9000"));
    CHECK(hash != hash_of("s3://bucket/a", "store:9000"));
    CHECK(hash != hash_of("s3://bucket2/a/b", "store:9000"));
    CHECK(hash != hash_of("s3://bucket/a/b", "store:9001"));
    CHECK(hash != hash_of("s3://bucket/a/b", NULL));
}

static void other_places_are_refused(void)
{
    static const char *const places[] = {"gs://bucket/x", "hdfs://a/b", "s3://", "://", "s3:///x"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct tn_lake_options options = {0};
        struct tn_err err = {0};
        uint64_t hash;
        CHECK(tn_lake_is_store(places[i]));
        CHECK(tn_lake_store_hash(places[i], &options, &hash, &err) == TN_INVALID);
        CHECK(strstr(err.text, places[i]));
    }
    CHECK(!tn_lake_is_store("/mnt/lake") && !tn_lake_is_store("lake"));
}

static const struct test tests[] = {
    TEST(options_are_known_by_name),
    TEST(options_go_before_the_environment),
    TEST(a_place_has_one_name),
    TEST(other_places_are_refused),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
