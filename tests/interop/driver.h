/* driver: what the programs share that tests of this folder run in tarn's place: their options, the
 * system's sockets, and what they say. */
#pragma once

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exec.h"
#include "base/heap.h"
#include "base/pool.h"
#include "check.h"
#include "io/net_uv.h"
#include "io/tls.h"
#include "io/tls_memory.h"

enum {
    DRIVER_HEAP_SIZE = 1 << 20,
    DRIVER_ARENA_SIZE = 1 << 22,
    DRIVER_BUFFER_SIZE = 4096,
    DRIVER_PEM_MAX = 1 << 16,
    DRIVER_REST_MS = 30000
};

static __attribute__((format(printf, 1, 2))) void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    (void)putchar('\n');
    (void)fflush(stdout);
}

/* ---- options ---- */

enum option_kind {
    OPTION_TEXT,
    OPTION_BYTES,
    OPTION_FILE,
    OPTION_U16,
    OPTION_U32,
    OPTION_SIZE,
    OPTION_CALL
};

/* NAME=VALUE, and where the value goes. */
struct option {
    const char *name;
    enum option_kind kind;
    void *to;
    void (*call)(const char *value);
};

/* With a zero behind it, as TLS wants it. */
static struct tn_bytes read_pem(const char *path)
{
    static char texts[4][DRIVER_PEM_MAX];
    static int count;
    CHECK(count < 4);
    char *text = texts[count++];
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    size_t size = fread(text, 1, DRIVER_PEM_MAX - 1, file);
    (void)fclose(file);
    return (struct tn_bytes){(unsigned char *)text, size};
}

static void set_option(const struct option *option, const char *value)
{
    unsigned long number = strtoul(value, NULL, 10);
    switch (option->kind) {
    case OPTION_TEXT:
        *(const char **)option->to = value;
        break;
    case OPTION_BYTES:
        *(struct tn_bytes *)option->to = tn_bytes_of(value);
        break;
    case OPTION_FILE:
        *(struct tn_bytes *)option->to = read_pem(value);
        break;
    case OPTION_U16:
        *(uint16_t *)option->to = (uint16_t)number;
        break;
    case OPTION_U32:
        *(uint32_t *)option->to = (uint32_t)number;
        break;
    case OPTION_SIZE:
        *(size_t *)option->to = number;
        break;
    case OPTION_CALL:
        option->call(value);
        break;
    }
}

static void read_options(int argc, char **argv, const struct option *options, size_t count)
{
    for (int i = 1; i < argc; i++) {
        char *equal = strchr(argv[i], '=');
        CHECK(equal != NULL);
        *equal = 0;
        size_t at = 0;
        while (at < count && strcmp(options[at].name, argv[i]) != 0) {
            at++;
        }
        if (at == count) {
            FAIL("option '%s' is unknown", argv[i]);
        }
        set_option(&options[at], equal + 1);
    }
}

/* ---- the system's sockets ---- */

static struct tn_net *open_net(uint32_t streams)
{
    static alignas(16) unsigned char heap_memory[DRIVER_HEAP_SIZE];
    static alignas(16) unsigned char pool_memory[8 * DRIVER_BUFFER_SIZE];
    static alignas(16) unsigned char memory[DRIVER_ARENA_SIZE];
    static struct tn_heap heap;
    static struct tn_pool pool;
    static struct tn_arena arena;
    struct tn_net *net = NULL;
    struct tn_err err;
    tn_heap_init(&heap, heap_memory, sizeof heap_memory, true);
    tn_pool_init(&pool, pool_memory, sizeof pool_memory, DRIVER_BUFFER_SIZE);
    tn_arena_init(&arena, memory, sizeof memory);
    struct tn_net_spec spec = {.heap = &heap,
                               .arena = &arena,
                               .buffers = &pool,
                               .clock = &tn_clock_system,
                               .streams_max = streams};
    CHECK_OK(tn_net_uv_open(&spec, &net, &err), err);
    return net;
}

static void close_net(struct tn_net *net, struct tn_exec *exec)
{
    CHECK(tn_net_rest(net, exec, DRIVER_REST_MS));
    tn_net_close(net);
}

/* For TLS, before its first configuration. */
static __attribute__((unused)) void boot_tls(void)
{
    static alignas(16) unsigned char memory[24 * TN_TLS_STREAM_SIZE];
    static struct tn_heap heap;
    tn_heap_init(&heap, memory, sizeof memory, true);
    tn_tls_boot(&heap);
}
