/* setup: what the tests of this room share: memory, a worker on a disk in memory, golden files. */
#pragma once

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "file/worker.h"
#include "format/avro.h"
#include "format/json.h"
#include "sim/clock.h"
#include "sim/disk.h"

enum {
    SETUP_HEAP_SIZE = 256 << 10,
    SETUP_ARENA_SIZE = 24 << 20,
    SETUP_BLOCK_MAX = 1 << 20,
    SETUP_FILE_MAX = 4 << 20,
};

struct setup {
    struct tn_heap json_heap;
    struct tn_heap avro_heap;
    struct tn_arena arena; /* of the test */
    struct tn_worker worker;
    struct sim_disk disk;
    struct sim_clock clock;
    struct tn_err err;
    void *memory[4];
};

static inline void setup_begin(struct setup *s)
{
    static const size_t sizes[4] = {SETUP_HEAP_SIZE, SETUP_HEAP_SIZE, SETUP_ARENA_SIZE,
                                    SETUP_ARENA_SIZE};
    *s = (struct setup){0};
    for (int i = 0; i < 4; i++) {
        s->memory[i] = malloc(sizes[i]);
        CHECK(s->memory[i]);
    }
    tn_json_use_heap(&s->json_heap);
    tn_avro_use_heap(&s->avro_heap);
    tn_heap_init(&s->json_heap, s->memory[0], sizes[0], true);
    tn_heap_init(&s->avro_heap, s->memory[1], sizes[1], true);
    tn_arena_init(&s->arena, s->memory[2], sizes[2]);
    tn_arena_init(&s->worker.arena, s->memory[3], sizes[3]);
    tn_rc rc = tn_codec_init(&s->worker.codec, 1, SETUP_BLOCK_MAX, &s->worker.arena, &s->err);
    CHECK_OK(rc, s->err);
    sim_disk_init(&s->disk, 64U << 20);
    sim_clock_init(&s->clock, 1);
    s->worker.io = &s->disk.io;
    s->worker.clock = &s->clock.clock;
}

static inline void setup_end(struct setup *s)
{
    sim_disk_deinit(&s->disk);
    tn_heap_deinit(&s->json_heap);
    tn_heap_deinit(&s->avro_heap);
    for (int i = 0; i < 4; i++) {
        free(s->memory[i]);
    }
}

/* A whole file of the repository, with a zero byte behind it, in the test's arena. */
static inline struct tn_bytes setup_golden(struct setup *s, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        (void)fprintf(stderr, "%s: missing; tests run in the repository's folder\n", path);
        abort();
    }
    static unsigned char content[SETUP_FILE_MAX];
    size_t size = fread(content, 1, sizeof content - 1, file);
    (void)fclose(file);
    content[size] = 0;
    bool ok = false;
    struct tn_bytes copy = tn_arena_copy(&s->arena, (struct tn_bytes){content, size + 1}, &ok);
    CHECK(ok);
    copy.size = size;
    return copy;
}
