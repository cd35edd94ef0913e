/* Sends the files of a folder to a bucket, as a sync does, and prints what that took, as JSON.
 *
 * usage: upload ENDPOINT CA FOLDER COUNT SIZE PREFIX RATE     (CA: a file, or "-"; RATE: bytes a
 * second, 0: none)
 *
 * The files are data-0 ... data-<COUNT-1>, of SIZE bytes each; the keys come from the environment
 * (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY). Called by upload.py. */
#include <inttypes.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "io/net_uv.h"
#include "io/tls_memory.h"
#include "upload/s3_target.h"

enum {
    MEMORY = 1024 * 1024, /* of the upload: the issue's */
    LINKS = 4,
    BLOCK = 4096,
    STREAMS = 2 * LINKS,
    CA_MAX = 1024 * 1024,
};

static alignas(16) unsigned char upload_memory[MEMORY];
static alignas(16) unsigned char door_memory[64 * 1024];
static alignas(16) unsigned char buffer_memory[4 * (BLOCK + 64)];
static alignas(16) unsigned char xml_memory[128 * 1024];
static alignas(16) unsigned char uv_memory[32 * 1024];
static alignas(16) unsigned char tls_memory[1024 * 1024];
static alignas(16) unsigned char ca_memory[CA_MAX];

static _Noreturn void fail(const struct tn_err *err)
{
    (void)fprintf(stderr, "upload: %s\n", err->text);
    exit(1);
}

static double seconds_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct tn_net *open_net(struct tn_heap *uv, struct tn_arena *door, struct tn_pool *buffers)
{
    struct tn_net *net = NULL;
    struct tn_err err;
    tn_arena_init(door, door_memory, sizeof door_memory);
    tn_pool_init(buffers, buffer_memory, sizeof buffer_memory, BLOCK);
    tn_heap_init(uv, uv_memory, sizeof uv_memory, true);
    const struct tn_net_spec spec = {.heap = uv,
                                     .arena = door,
                                     .buffers = buffers,
                                     .clock = &tn_clock_system,
                                     .streams_max = STREAMS};
    if (tn_net_uv_open(&spec, &net, &err) != TN_OK) {
        fail(&err);
    }
    return net;
}

static struct tn_tls_config *read_authority(const char *path)
{
    struct tn_tls_config *config = NULL;
    struct tn_err err;
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(ca_memory, 1, CA_MAX - 1, file) : 0; /* and a zero byte behind it */
    const struct tn_tls_spec spec = {.clock = &tn_clock_system, .ca = {ca_memory, size}};
    if (tn_tls_config_make(&spec, &config, &err) != TN_OK) {
        fail(&err);
    }
    (void)fclose(file);
    return config;
}

static void send_all(struct tn_target *target, struct tn_io *from, long count, uint64_t size)
{
    struct tn_err err;
    tn_rc rc = TN_OK;
    for (long i = 0; rc == TN_OK && i < count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "data-%ld", i);
        rc = target->vtable->send(target, from, name, size, &err);
    }
    if (rc == TN_OK) {
        rc = target->vtable->settle(target, &err);
    }
    if (rc != TN_OK) {
        fail(&err);
    }
}

/* At its peak; rusage would tell that of who started us. */
static long process_kb(void)
{
    long kb = -1;
    char line[128];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status) && sscanf(line, "VmHWM: %ld kB", &kb) != 1) {
    }
    (void)fclose(status);
    return kb;
}

static void report(const struct tn_target *target, double seconds, const struct tn_arena *arena)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    (void)printf(
        "{\"seconds\": %.6f, \"bytes\": %" PRIu64 ", \"puts\": %" PRIu64
        ", \"upload_memory\": %zu, \"process_kb\": %ld, \"user\": %.3f, \"system\": %.3f}\n",
        seconds, target->counts.bytes_sent, target->counts.requests[TN_TARGET_PUT], arena->peak,
        process_kb(), (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6,
        (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6);
}

int main(int argc, char **argv)
{
    static struct tn_heap uv;
    static struct tn_heap xml;
    static struct tn_heap tls;
    static struct tn_arena door;
    static struct tn_arena arena;
    static struct tn_pool buffers;
    struct tn_io_posix folder;
    struct tn_target *target = NULL;
    struct tn_err err;
    if (argc != 8) {
        (void)fprintf(stderr, "usage: upload ENDPOINT CA FOLDER COUNT SIZE PREFIX RATE\n");
        return 2;
    }
    tn_heap_init(&xml, xml_memory, sizeof xml_memory, true);
    tn_heap_init(&tls, tls_memory, sizeof tls_memory, true);
    tn_xml_use_heap(&xml);
    tn_tls_boot(&tls);
    tn_arena_init(&arena, upload_memory, sizeof upload_memory);
    if (tn_io_posix_open(&folder, argv[3], &err) != TN_OK) {
        fail(&err);
    }
    const struct tn_s3_options options = {.endpoint = argv[1],
                                          .access_key = getenv("AWS_ACCESS_KEY_ID"),
                                          .secret_key = getenv("AWS_SECRET_ACCESS_KEY")};
    const struct tn_s3_target_spec spec = {
        .net = open_net(&uv, &door, &buffers),
        .clock = &tn_clock_system,
        .arena = &arena,
        .where = argv[6],
        .options = &options,
        .tls = argv[2][0] == '-' ? NULL : read_authority(argv[2]),
        .links = LINKS,
        .rate = (uint32_t)strtoul(argv[7], NULL, 10),
    };
    if (tn_s3_target_open(&spec, &target, &err) != TN_OK) {
        fail(&err);
    }
    double began = seconds_now();
    send_all(target, &folder.io, strtol(argv[4], NULL, 10), strtoull(argv[5], NULL, 10));
    report(target, seconds_now() - began, &arena);
    tn_s3_target_close(target);
    tn_net_close(spec.net);
    return 0;
}
