/* The options of a lake in an object store, and what tells one such lake from another. */
#include "app/lake_store.h"

#include <unistd.h>

#include "app/lake.h"
#include "check.h"
#include "io/tls_memory.h"
#include "sim/certificate.h"
#include "temp.h"

enum { TLS_SIZE = 512 * 1024 };

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

static void name_of(const char *where, char name[TN_LAKE_NAME_SIZE])
{
    struct tn_err err = {0};
    CHECK_OK(tn_lake_name(where, NULL, name, &err), err);
}

/* Of a folder that isn't there it is the name that it will have. */
static void a_folder_has_one_name(void)
{
    static const char *const ways[] = {"/a/b", "//a/./b/", "/link/b"};
    char root[TEMP_SIZE];
    char path[2 * TEMP_SIZE];
    char target[2 * TEMP_SIZE];
    char before[TN_LAKE_NAME_SIZE];
    char name[TN_LAKE_NAME_SIZE];
    temp_make(root);
    (void)snprintf(path, sizeof path, "%s/a//b", root);
    name_of(path, before);
    for (int made = 0; made < 2; made++) {
        (void)snprintf(target, sizeof target, "%s/a", root);
        (void)snprintf(path, sizeof path, "%s/link", root);
        CHECK(made == 1 || (mkdir(target, 0700) == 0 && symlink("a", path) == 0));
        for (size_t i = 0; i < COUNT(ways); i++) {
            (void)snprintf(path, sizeof path, "%s%s", root, ways[i]);
            if (made == 1 || i != 1) { /* "." in what isn't there is a name as any */
                name_of(path, name);
                CHECK(strcmp(name, before) == 0);
            }
        }
        (void)snprintf(path, sizeof path, "%s/a/b", root);
        CHECK(made == 1 || mkdir(path, 0700) == 0);
        (void)snprintf(path, sizeof path, "%s/a/c", root);
        name_of(path, name);
        CHECK(strcmp(name, before) != 0);
    }
    char first[TN_LAKE_NAME_SIZE];
    name_of("/", first);
    name_of("//", name);
    CHECK(strcmp(name, first) == 0);
    name_of("no-such-folder-here", name);
    CHECK(strcmp(name, first) != 0);
    temp_remove(root);
}

static void write_ca(const char *path, uint64_t seed)
{
    static struct certificate made;
    certificate_make(&made, &(struct certificate_spec){.name = "CN=x", .authority = true}, seed);
    struct tn_bytes pem = certificate_pem(&made);
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(pem.data, 1, pem.size, file) == pem.size);
    (void)fprintf(file, "%.*s", (int)seed, "\n\n\n\n\n\n\n\n"); /* of another size */
    CHECK(fclose(file) == 0);
}

/* A file that is another one or has changed is read; else who was trusted is, as it was. */
static void who_is_trusted_is_read_once(void)
{
    static unsigned char memory[TLS_SIZE];
    static unsigned char arena_memory[TLS_SIZE];
    static struct tn_heap heap;
    struct tn_arena arena;
    struct tn_lake_doors doors = {.net = NULL};
    struct tn_err err = {0};
    char root[TEMP_SIZE];
    static char paths[2][2 * TEMP_SIZE];
    tn_heap_init(&heap, memory, sizeof memory, true);
    tn_tls_boot(&heap);
    tn_arena_init(&arena, arena_memory, sizeof arena_memory);
    temp_make(root);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(paths[i], sizeof paths[i], "%s/ca%d", root, i);
        write_ca(paths[i], 1);
    }
    struct tn_lake_options options = {.ca_file = paths[0], .s3.endpoint = "https://x"};
    struct tn_lake_options plain = {.s3.endpoint = "http://127.0.0.1"};
    CHECK_OK(tn_lake_trust(&doors, &options, &arena, &err), err);
    const struct tn_lake_trusted was = doors.trusted;
    struct tn_tls_config *tls = doors.tls;
    size_t peak = heap.peak;
    for (int i = 0; i < 3; i++) {
        CHECK_OK(tn_lake_trust(&doors, &plain, &arena, &err), err);
        CHECK(!doors.tls);
        CHECK_OK(tn_lake_trust(&doors, &options, &arena, &err), err);
        CHECK(tls && doors.tls == tls && heap.peak == peak);
    }
    write_ca(paths[0], 2);
    CHECK_OK(tn_lake_trust(&doors, &options, &arena, &err), err);
    CHECK(doors.trusted.size == was.size + 1 && doors.tls == doors.trusted.tls);
    options.ca_file = paths[1];
    CHECK_OK(tn_lake_trust(&doors, &options, &arena, &err), err);
    CHECK(doors.trusted.path_hash != was.path_hash && doors.tls == doors.trusted.tls);
    options.ca_file = "/no/such/file";
    CHECK(tn_lake_trust(&doors, &options, &arena, &err) == TN_INVALID && !doors.tls);
    tn_lake_distrust(&doors);
    CHECK(heap.used == 0 && tn_arena_mark(&arena) == 0);
    temp_remove(root);
}

static const struct test tests[] = {
    TEST(options_are_known_by_name), TEST(options_go_before_the_environment),
    TEST(a_place_has_one_name),      TEST(other_places_are_refused),
    TEST(a_folder_has_one_name),     TEST(who_is_trusted_is_read_once),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
