/* The target on a real object store, versitygw, over the system's network: files of all sizes, over
 * HTTP and TLS, and races for a name.
 *
 * VERSITYGW names the program (`make versitygw` installs it, `make peers` runs this); without it
 * nothing is tested here. */
#include "upload/s3_target.h"

#include <pthread.h>
#include <stdalign.h>

#include "contract.h"
#include "gateway.h"
#include "given.h"
#include "io/net_uv.h"
#include "io/tls_memory.h"
#include "random.h"
#include "sim/certificate.h"

enum {
    MEMORY = 1024 * 1024,
    XML_HEAP = 128 * 1024,
    UV_HEAP = 32 * 1024,
    TLS_HEAP = 1024 * 1024,
    BLOCK = 4096,
    STREAMS = 16,
    WRITERS = 4,
    RACES = 12,
    MB = 1024 * 1024,
};

static struct gateway plain;
static struct gateway secure;
static struct certificate here; /* the authority that has signed for `secure` */
static struct tn_tls_config *trust;
static char source_root[TEMP_SIZE];
static struct tn_io_posix source;
static uint64_t seed;

/* ---- a target ---- */

struct bed {
    struct tn_net *net;
    struct tn_arena door;
    struct tn_arena arena;
    struct tn_arena results;
    struct tn_pool buffers;
    struct tn_target *target;
    struct tn_err err;
    alignas(16) unsigned char door_memory[64 * 1024];
    alignas(16) unsigned char buffer_memory[4 * (BLOCK + 64)];
    alignas(16) unsigned char memory[MEMORY];
    alignas(16) unsigned char result_memory[64 * 1024];
};

static struct tn_heap uv_heap;

/* `spec`: what is special. */
static struct bed *open_special(const struct gateway *gateway, struct tn_s3_target_spec spec,
                                const char *secret)
{
    struct bed *bed = calloc(1, sizeof *bed);
    const struct tn_s3_options options = {
        .endpoint = gateway->endpoint, .access_key = GATEWAY_ACCESS_KEY, .secret_key = secret};
    tn_arena_init(&bed->door, bed->door_memory, sizeof bed->door_memory);
    tn_arena_init(&bed->arena, bed->memory, sizeof bed->memory);
    tn_arena_init(&bed->results, bed->result_memory, sizeof bed->result_memory);
    tn_pool_init(&bed->buffers, bed->buffer_memory, sizeof bed->buffer_memory, BLOCK);
    const struct tn_net_spec net = {.heap = &uv_heap,
                                    .arena = &bed->door,
                                    .buffers = &bed->buffers,
                                    .clock = &tn_clock_system,
                                    .streams_max = STREAMS};
    tn_rc rc = tn_net_uv_open(&net, &bed->net, &bed->err);
    CHECK_OK(rc, bed->err);
    spec.net = bed->net;
    spec.clock = spec.clock ? spec.clock : &tn_clock_system;
    spec.arena = &bed->arena;
    spec.where = "s3://bucket/lake/of tests";
    spec.options = &options;
    spec.patience_ms = 5000;
    rc = tn_s3_target_open(&spec, &bed->target, &bed->err);
    CHECK_OK(rc, bed->err);
    CHECK(bed->arena.used == bed->arena.peak && bed->arena.used <= MEMORY);
    return bed;
}

static struct bed *open_bed(const struct gateway *gateway, const char *uploads)
{
    const struct tn_s3_target_spec spec = {
        .tls = trust, .uploads_io = uploads ? &source.io : NULL, .uploads_path = uploads};
    return open_special(gateway, spec, GATEWAY_SECRET_KEY);
}

static void close_bed(struct bed *bed)
{
    size_t used = bed->arena.used;
    CHECK(bed->arena.peak == used);
    tn_s3_target_close(bed->target);
    tn_net_close(bed->net);
    free(bed);
}

/* ---- files ---- */

static void make_file(const char *path, size_t size)
{
    struct tn_err err;
    unsigned char *bytes = malloc(size + 8);
    uint64_t random = seed + size;
    for (size_t i = 0; i < size; i += 8) {
        tn_store_u64(bytes + i, random_next(&random));
    }
    tn_rc rc = source.io.vtable->make_dir(&source.io, "t/bucket-0/", &err);
    CHECK_OK(rc, err);
    (void)source.io.vtable->unlink(&source.io, path, &err);
    rc = tn_io_write_new(&source.io, path, (struct tn_bytes){bytes, size}, &err);
    CHECK_OK(rc, err);
    free(bytes);
}

/* What the store has is what was sent: it keeps its objects as files. */
static void check_same(const struct gateway *gateway, const char *path)
{
    char text[3 * TEMP_SIZE];
    (void)snprintf(text, sizeof text, "cmp -s '%s/%s' '%s/bucket/lake/of tests/%s'", source_root,
                   path, gateway->root, path);
    CHECK(system(text) == 0);
}

static void send_file(struct bed *bed, const char *path, size_t size)
{
    tn_rc rc = bed->target->vtable->send(bed->target, &source.io, path, size, &bed->err);
    CHECK_OK(rc, bed->err);
}

static void settle(struct bed *bed)
{
    tn_rc rc = bed->target->vtable->settle(bed->target, &bed->err);
    CHECK_OK(rc, bed->err);
}

static tn_rc publish(struct bed *bed, const char *path, const char *text)
{
    return bed->target->vtable->publish(bed->target, path, tn_bytes_of(text), &bed->err);
}

static void check_content(struct bed *bed, const char *path, const char *text)
{
    struct tn_bytes bytes;
    tn_rc rc = bed->target->vtable->read(bed->target, path, 1000, &bed->results, &bytes, &bed->err);
    CHECK_OK(rc, bed->err);
    CHECK(tn_bytes_equal(bytes, tn_bytes_of(text)) && bytes.data[bytes.size] == 0);
}

/* ---- tests ---- */

static void send_many(const struct gateway *gateway)
{
    static const size_t sizes[] = {0, 1, 1000, 65535, 65536, 65537, 3 * MB + 5, 200000, 12, 70000};
    struct bed *bed = open_bed(gateway, NULL);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "t/bucket-0/data %zu.orc", i);
        make_file(path, sizes[i]);
        send_file(bed, path, sizes[i]);
    }
    settle(bed);
    CHECK(bed->target->counts.requests[TN_TARGET_PUT] == COUNT(sizes));
    CHECK(bed->target->counts.requests[TN_TARGET_HEAD] == 0);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        char path[64];
        uint64_t size = 7;
        (void)snprintf(path, sizeof path, "t/bucket-0/data %zu.orc", i);
        check_same(gateway, path);
        tn_rc rc = bed->target->vtable->stat(bed->target, path, &size, &bed->err);
        CHECK_OK(rc, bed->err);
        CHECK(size == sizes[i]);
        send_file(bed, path, sizes[i]); /* it is there */
    }
    settle(bed);
    CHECK(bed->net->counts.connects <= 2 * COUNT(sizes) + 4);
    close_bed(bed);
}

static void files_of_all_sizes_arrive(void)
{
    send_many(&plain);
}

static void files_of_all_sizes_arrive_by_tls(void)
{
    send_many(&secure);
}

static void it_keeps_the_contract_of_targets(void)
{
    static struct contract contract;
    struct bed *bed = open_bed(&plain, NULL);
    contract = (struct contract){.target = bed->target, .from = &source.io};
    contract_files(&contract);
    contract_small_files(&contract);
    contract_fetch(&contract);
    contract_remove(&contract);
    contract_stop(&contract);
    close_bed(bed);
}

static void wrong_secret_is_told_as_such(void)
{
    const struct tn_s3_target_spec spec = {.tls = trust};
    struct bed *bed = open_special(&plain, spec, "another secret");
    CHECK(publish(bed, "t/s-2", "x") == TN_IO);
    CHECK(tn_s3_target_trouble(bed->target) == TN_S3_TROUBLE_CREDENTIALS);
    CHECK(strstr(bed->err.text, "the secret key is wrong"));
    close_bed(bed);
}

/* A device whose clock stands in 1970 signs by the store's after one refusal. */
static int64_t at_1970(struct tn_clock *clock)
{
    (void)clock;
    return 1000;
}

static void wrong_clock_is_corrected_by_the_store(void)
{
    struct tn_clock_vtable wrong = *tn_clock_system.vtable;
    struct tn_clock clock = {&wrong};
    wrong.now_ms = at_1970;
    const struct tn_s3_target_spec spec = {.tls = trust, .clock = &clock};
    struct bed *bed = open_special(&plain, spec, GATEWAY_SECRET_KEY);
    make_file("t/bucket-0/timeless", 70000);
    send_file(bed, "t/bucket-0/timeless", 70000);
    settle(bed);
    check_same(&plain, "t/bucket-0/timeless");
    CHECK(bed->target->counts.requests[TN_TARGET_PUT] == 2);
    CHECK(tn_s3_target_clock_offset_ms(bed->target) > INT64_C(50) * 365 * 24 * 3600 * 1000);
    close_bed(bed);
}

/* Somebody else's authority: nothing is sent, and nothing is tried again. */
static void certificate_that_is_not_trusted_is_told_as_such(void)
{
    static struct certificate authority;
    struct tn_tls_config *other = NULL;
    struct tn_err err;
    certificate_make(&authority, &(struct certificate_spec){.name = "CN=there", .authority = true},
                     3);
    const struct tn_tls_spec tls = {.clock = &tn_clock_system, .ca = certificate_pem(&authority)};
    tn_rc rc = tn_tls_config_make(&tls, &other, &err);
    CHECK_OK(rc, err);
    const struct tn_s3_target_spec spec = {.tls = other};
    struct bed *bed = open_special(&secure, spec, GATEWAY_SECRET_KEY);
    CHECK(publish(bed, "t/s-2", "x") == TN_IO);
    CHECK(tn_s3_target_trouble(bed->target) == TN_S3_TROUBLE_CERTIFICATE);
    CHECK(bed->net->counts.connects == 1);
    close_bed(bed);
    tn_tls_config_free(other);
}

/* Mbed-TLS/mbedtls#7161: a device without a clock of its own boots in 1970, and was told of a bad
 * certificate. Said at once, and of what kind it is; with the right time it goes on. */
static void clock_that_is_before_the_certificate_is_told_as_such(void)
{
    struct tn_clock_vtable wrong = *tn_clock_system.vtable;
    struct tn_clock clock = {&wrong};
    struct tn_tls_config *early = NULL;
    struct tn_err err;
    wrong.now_ms = at_1970;
    const struct tn_tls_spec tls = {.clock = &clock, .ca = certificate_pem(&here)};
    tn_rc rc = tn_tls_config_make(&tls, &early, &err);
    CHECK_OK(rc, err);
    const struct tn_s3_target_spec spec = {.tls = early};
    struct bed *bed = open_special(&secure, spec, GATEWAY_SECRET_KEY);
    CHECK(publish(bed, "t/s-1970", "x") == TN_IO);
    CHECK(strstr(bed->err.text, "here it is 1970-01-01: is the clock wrong?"));
    CHECK(tn_s3_target_trouble(bed->target) == TN_S3_TROUBLE_CLOCK);
    CHECK(bed->net->counts.connects == 1);
    wrong.now_ms = tn_clock_system.vtable->now_ms;
    CHECK(publish(bed, "t/s-1970", "x") == TN_OK);
    CHECK(tn_s3_target_trouble(bed->target) == TN_S3_TROUBLE_NONE);
    close_bed(bed);
    tn_tls_config_free(early);
}

struct listed {
    char text[512];
    int count;
};

static tn_rc add_name(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct listed *listed = user;
    (void)err;
    size_t size = strlen(listed->text);
    (void)snprintf(listed->text + size, sizeof listed->text - size, "%s%s ", name,
                   is_dir ? "/" : "");
    listed->count++;
    return TN_OK;
}

static void folder_is_listed(void)
{
    struct listed listed = {.count = 0};
    struct bed *bed = open_bed(&plain, NULL);
    tn_rc rc = bed->target->vtable->list(bed->target, "l/", add_name, &listed, &bed->err);
    CHECK(rc == TN_ABSENT && listed.count == 0);
    CHECK(publish(bed, "l/a", "1") == TN_OK && publish(bed, "l/f/x", "1") == TN_OK);
    CHECK(publish(bed, "l/f/y", "1") == TN_OK && publish(bed, "l/b b", "1") == TN_OK);
    rc = bed->target->vtable->list(bed->target, "l/", add_name, &listed, &bed->err);
    CHECK_OK(rc, bed->err);
    CHECK(strcmp(listed.text, "a b b f/ ") == 0);
    close_bed(bed);
}

/* ---- parts ---- */

static void send_large(const struct gateway *gateway)
{
    static const size_t sizes[] = {16 * MB + 1, 24 * MB};
    struct bed *bed = open_bed(gateway, "uploads");
    for (size_t i = 0; i < COUNT(sizes); i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "t/bucket-0/large-%zu", i);
        make_file(path, sizes[i]);
        send_file(bed, path, sizes[i]);
    }
    settle(bed);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "t/bucket-0/large-%zu", i);
        check_same(gateway, path);
        send_file(bed, path, sizes[i]);
    }
    settle(bed);
    /* Each: three parts, their beginning and their end. */
    CHECK(bed->target->counts.requests[TN_TARGET_PUT] == COUNT(sizes) * 5);
    CHECK(bed->target->counts.requests[TN_TARGET_LIST] == 0);
    close_bed(bed);
}

static void large_files_arrive_in_parts(void)
{
    send_large(&plain);
}

static void large_files_arrive_in_parts_by_tls(void)
{
    send_large(&secure);
}

/* The store's own memory of uploads that are under way. */
static int uploads_under_way(const struct gateway *gateway)
{
    char text[2 * TEMP_SIZE];
    int count = -1;
    (void)snprintf(text, sizeof text, "find '%s/bucket/.sgwtmp/multipart' -mindepth 2 | wc -l",
                   gateway->root);
    FILE *pipe = popen(text, "r");
    CHECK(pipe && fscanf(pipe, "%d", &count) == 1 && pclose(pipe) == 0);
    return count;
}

/* What happens when so many PUTs were asked for: the caller stops, or the store is killed and comes
 * again. */
struct stopper {
    struct bed *bed;
    struct gateway *killed; /* or NULL */
    atomic_bool stop;
    uint64_t puts;
};

static int (*turn_of_net)(struct tn_net *net, uint32_t wait_ms);
static struct stopper stopper;

static int turn_and_stop(struct tn_net *net, uint32_t wait_ms)
{
    bool now = stopper.bed->target->counts.requests[TN_TARGET_PUT] >= stopper.puts;
    if (now && !stopper.killed) {
        atomic_store(&stopper.stop, true);
    } else if (now) {
        stopper.puts = UINT64_MAX;
        gateway_kill(stopper.killed);
        gateway_up(stopper.killed);
    }
    return turn_of_net(net, wait_ms);
}

static void watch(struct bed *bed, struct tn_net_vtable *watched, struct gateway *killed,
                  uint64_t puts)
{
    stopper.bed = bed;
    stopper.killed = killed;
    stopper.puts = puts;
    atomic_store(&stopper.stop, false);
    *watched = *bed->net->vtable;
    turn_of_net = watched->turn;
    watched->turn = turn_and_stop;
    bed->net->vtable = watched;
    bed->target->stop = &stopper.stop;
}

/* Sends a large file and stops in the middle of it. */
static void send_and_stop(const char *path, const char *uploads, uint64_t puts)
{
    struct tn_net_vtable watched;
    struct bed *bed = open_bed(&plain, uploads);
    watch(bed, &watched, NULL, puts);
    tn_rc rc = bed->target->vtable->send(bed->target, &source.io, path, 60 * MB, &bed->err);
    CHECK(rc == TN_CANCELED);
    bed->target->vtable->drop(bed->target);
    close_bed(bed);
}

/* Small files and one in parts; all is there once, and nobody is told. */
static void store_that_is_killed_is_waited_for(void)
{
    static const size_t sizes[] = {300000, 5, 900000, 30 * MB, 400000, 2 * MB};
    for (uint64_t puts = 1; puts < 11; puts += 2) {
        struct tn_net_vtable watched;
        struct bed *bed = open_bed(&plain, NULL);
        watch(bed, &watched, &plain, puts);
        for (size_t i = 0; i < COUNT(sizes); i++) {
            char path[64];
            (void)snprintf(path, sizeof path, "t/bucket-0/killed-%u-%zu", (unsigned)puts, i);
            make_file(path, sizes[i]);
            send_file(bed, path, sizes[i]);
        }
        settle(bed);
        CHECK(stopper.puts == UINT64_MAX);
        for (size_t i = 0; i < COUNT(sizes); i++) {
            char path[64];
            (void)snprintf(path, sizeof path, "t/bucket-0/killed-%u-%zu", (unsigned)puts, i);
            check_same(&plain, path);
        }
        close_bed(bed);
    }
}

static void upload_goes_on_after_a_restart(void)
{
    make_file("t/bucket-0/resumed", 60 * MB);
    send_and_stop("t/bucket-0/resumed", "uploads", 7);
    CHECK(uploads_under_way(&plain) > 0);
    struct bed *bed = open_bed(&plain, "uploads");
    send_file(bed, "t/bucket-0/resumed", 60 * MB);
    settle(bed);
    check_same(&plain, "t/bucket-0/resumed");
    CHECK(bed->target->counts.requests[TN_TARGET_LIST] == 1);
    CHECK(bed->target->counts.requests[TN_TARGET_PUT] < 8 + 1); /* parts, and their end */
    CHECK(uploads_under_way(&plain) == 0);
    close_bed(bed);
}

/* A store may be about to write a part when it is told to give the upload up: versitygw leaves
 * something behind then. It doesn't happen each time. */
static void upload_that_nobody_remembers_is_given_up(void)
{
    int before = 0;
    int after = 1;
    for (int i = 0; i < 6 && after > before; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "t/bucket-0/given-up-%d", i);
        before = uploads_under_way(&plain);
        make_file(path, 60 * MB);
        send_and_stop(path, NULL, 7);
        after = uploads_under_way(&plain);
    }
    CHECK(after == before);
}

/* ---- races ---- */

struct racer {
    pthread_t thread;
    pthread_barrier_t *gate;
    struct bed *bed;
    char body[32];
    tn_rc rc[RACES];
};

static void *race(void *user)
{
    struct racer *racer = user;
    for (int i = 0; i < RACES; i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "race/snapshot-%d", i);
        (void)pthread_barrier_wait(racer->gate);
        racer->rc[i] = publish(racer->bed, path, racer->body);
    }
    return NULL;
}

static void check_race(struct racer racers[WRITERS], int i)
{
    char path[32];
    int winner = -1;
    for (int j = 0; j < WRITERS; j++) {
        CHECK(racers[j].rc[i] == TN_OK || racers[j].rc[i] == TN_CONFLICT);
        CHECK(racers[j].rc[i] != TN_OK || winner < 0);
        winner = racers[j].rc[i] == TN_OK ? j : winner;
    }
    CHECK(winner >= 0);
    (void)snprintf(path, sizeof path, "race/snapshot-%d", i);
    check_content(racers[0].bed, path, racers[winner].body);
}

static void of_many_who_publish_one_name_exactly_one_wins(void)
{
    static struct racer racers[WRITERS];
    pthread_barrier_t gate;
    CHECK(pthread_barrier_init(&gate, NULL, WRITERS) == 0);
    for (int j = 0; j < WRITERS; j++) {
        racers[j].gate = &gate;
        racers[j].bed = open_bed(&plain, NULL);
        (void)snprintf(racers[j].body, sizeof racers[j].body, "writer %d", j);
        CHECK(pthread_create(&racers[j].thread, NULL, race, &racers[j]) == 0);
    }
    for (int j = 0; j < WRITERS; j++) {
        CHECK(pthread_join(racers[j].thread, NULL) == 0);
    }
    for (int i = 0; i < RACES; i++) {
        check_race(racers, i);
    }
    for (int j = 0; j < WRITERS; j++) {
        close_bed(racers[j].bed);
    }
    (void)pthread_barrier_destroy(&gate);
}

static const struct test tests[] = {
    TEST(files_of_all_sizes_arrive),
    TEST(files_of_all_sizes_arrive_by_tls),
    TEST(it_keeps_the_contract_of_targets),
    TEST(wrong_secret_is_told_as_such),
    TEST(wrong_clock_is_corrected_by_the_store),
    TEST(certificate_that_is_not_trusted_is_told_as_such),
    TEST(clock_that_is_before_the_certificate_is_told_as_such),
    TEST(folder_is_listed),
    TEST(large_files_arrive_in_parts),
    TEST(large_files_arrive_in_parts_by_tls),
    TEST(upload_goes_on_after_a_restart),
    TEST(upload_that_nobody_remembers_is_given_up),
    TEST(store_that_is_killed_is_waited_for),
    TEST(of_many_who_publish_one_name_exactly_one_wins),
};

static void write_text(const char *name, struct tn_bytes text, char path[2 * TEMP_SIZE])
{
    (void)snprintf(path, 2 * TEMP_SIZE, "%s/%s", source_root, name);
    FILE *file = fopen(path, "w");
    CHECK(file && fwrite(text.data, 1, text.size, file) == text.size && fclose(file) == 0);
}

static void start_secure(const char *program)
{
    static struct certificate server;
    static const unsigned char loopback[4] = {127, 0, 0, 1};
    static char paths[2][2 * TEMP_SIZE];
    struct tn_err err;
    certificate_make(&here, &(struct certificate_spec){.name = "CN=here", .authority = true}, 1);
    certificate_make(
        &server, &(struct certificate_spec){.name = "CN=store", .ip = loopback, .issuer = &here},
        2);
    write_text("server.pem", certificate_pem(&server), paths[0]);
    write_text("server.key", certificate_key(&server), paths[1]);
    gateway_start(&secure, program, paths[0], paths[1]);
    const struct tn_tls_spec spec = {.clock = &tn_clock_system, .ca = certificate_pem(&here)};
    tn_rc rc = tn_tls_config_make(&spec, &trust, &err);
    CHECK_OK(rc, err);
}

static void stop(void)
{
    gateway_stop(&plain);
    gateway_stop(&secure);
    temp_remove(source_root);
}

int main(int argc, char **argv)
{
    static alignas(16) unsigned char xml_memory[XML_HEAP];
    static alignas(16) unsigned char uv_memory[UV_HEAP];
    static alignas(16) unsigned char tls_memory[TLS_HEAP];
    static struct tn_heap xml;
    static struct tn_heap tls;
    struct tn_err err;
    const char *program = getenv("VERSITYGW");
    if (!program || !*program) {
        (void)printf("VERSITYGW names no server\n0 passed, 0 failed\n");
        return 0;
    }
    seed = given_number("SEED", 1);
    tn_heap_init(&xml, xml_memory, sizeof xml_memory, true);
    tn_heap_init(&uv_heap, uv_memory, sizeof uv_memory, true);
    tn_heap_init(&tls, tls_memory, sizeof tls_memory, true);
    tn_xml_use_heap(&xml);
    tn_tls_boot(&tls);
    temp_make(source_root);
    tn_rc rc = tn_io_posix_open(&source, source_root, &err);
    CHECK_OK(rc, err);
    gateway_start(&plain, program, NULL, NULL);
    start_secure(program);
    (void)atexit(stop);
    return run_tests(argc, argv, tests, COUNT(tests));
}
