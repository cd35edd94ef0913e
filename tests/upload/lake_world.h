/* lake_world: a table that the engine writes, compacts and expires, and its lake in an object store
 * behind a network. All of it is simulated, and a seed decides it.
 *
 * What runs on the device is a process: some calls, until the world ends it before one of them.
 * Then it is gone as a killed one is, in the middle of whatever it did (it never comes back from
 * the call): its memory, its connections and its locks; and when the power went, what the disk may
 * lose, too. The next process starts on what is left.
 *
 *     writer ---- disk ---- sync ---- network ---- far_store <---- lake_reader
 *        ^-------------- in any turn of it
 */
#pragma once

#include <setjmp.h>
#include <stdalign.h>

/* Files of a table with some hundred rows, and their metadata. */
#define MODEL_OBJECTS 800
#define MODEL_UPLOADS 24
#define MODEL_PARTS   32
#define MODEL_BODY    (20 * 1024)

#include "commit/publish.h"
#include "far_store.h"
#include "lake_reader.h"
#include "upload/delta.h"
#include "upload/s3_target.h"
#include "upload/xml.h"

enum {
    LAKE_TARGET = 1024 * 1024,
    LAKE_XML = 128 * 1024,
    LAKE_JSON = 4 * 1024 * 1024,
    LAKE_BLOCK = 512,
    LAKE_BLOCKS = 16,
    LAKE_TURNS_MAX = 4000000,
    LAKE_LINES = 120,
    LAKE_TAGS = 3,
};

enum lake_engine { LAKE_WRITER, LAKE_SYNC, LAKE_READER, LAKE_ENGINES };

enum lake_end { LAKE_LIVES, LAKE_KILLED, LAKE_NO_POWER };

/* What a store was asked, since a process began. */
struct lake_asked {
    uint64_t requests;
    uint64_t lists;
    uint64_t bytes;      /* of files and parts */
    uint64_t known;      /* of them, of what was there when the process began */
    uint64_t twice;      /* of them, of what was there when it came */
    uint64_t deletes;    /* of objects, but for tags and what is nobody's */
    uint64_t tags;       /* that were asked for, or removed */
    uint64_t new_bytes;  /* of files that weren't there */
    uint64_t part_bytes; /* of parts of uploads under way that were there when it began */
};

struct lake_world {
    struct sim_clock clock;
    struct sim_net net;
    struct tn_net *here;
    struct tn_net_vtable turning;
    struct tn_pool pools[2];
    struct far_store store;
    struct sim_disk disk; /* of the source */
    struct bed_scenario scenario;
    struct bed_writer writer;
    uint32_t cut;     /* of the scenario: the next to be written */
    uint32_t schemas; /* versions */
    uint64_t random;

    struct tn_target *target;
    /* What a sync gets instead of the target, for a test that wants to see it go wrong; or NULL. */
    struct tn_target *(*instead)(struct tn_target *target);
    struct tn_arena arena;
    bool consumer;
    uint32_t part_size;
    struct tn_delta_result result;
    tn_rc rc; /* of the last sync */
    struct tn_err err;

    /* the process that runs */
    jmp_buf end;
    enum lake_end ending;
    uint64_t calls_left;            /* before it ends */
    uint32_t beside;                /* steps that a writer may do while it syncs */
    uint64_t turns;                 /* of the network */
    bool old[MODEL_OBJECTS];        /* were there when it began */
    int old_uploads[MODEL_UPLOADS]; /* their ids */
    bool old_parts[MODEL_UPLOADS][MODEL_PARTS];
    struct lake_asked asked;
    uint64_t forbade;            /* by the store, when it began */
    uint64_t accepted;           /* connections, likewise: what comes by them is a dead one's */
    char lines[LAKE_LINES][160]; /* what happened last, for who reads of a failure */
    uint64_t line_count;

    struct lake_reader reader;
    uint64_t kills;
    uint64_t power_cuts;
    uint64_t syncs;
    uint64_t in_parts;   /* files that went so */
    uint64_t part_bytes; /* of them, what an earlier process had sent */
};

static struct lake_world lake;
static struct bed_engine lake_engines[LAKE_ENGINES];

static __attribute__((unused, noinline, format(printf, 1, 2))) void lake_note(const char *format,
                                                                              ...)
{
    char *line = lake.lines[lake.line_count++ % LAKE_LINES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof lake.lines[0], format, args);
    va_end(args);
}

static inline void lake_print_lines(void)
{
    uint64_t first = lake.line_count > LAKE_LINES ? lake.line_count - LAKE_LINES : 0;
    for (uint64_t i = first; i < lake.line_count; i++) {
        (void)fprintf(stderr, "%s\n", lake.lines[i % LAKE_LINES]);
    }
}

/* ---- the end of a process ---- */

/* Before each call of the device that somebody could see. */
static __attribute__((unused, noinline)) void lake_call(void)
{
    if (lake.ending != LAKE_LIVES && lake.calls_left-- == 0) {
        longjmp(lake.end, 1);
    }
}

static inline void lake_before_disk(void *user, struct sim_disk *disk)
{
    (void)user;
    (void)disk;
    lake_call();
}

/* What a killed process had of them is gone, too. */
static __attribute__((unused, noinline)) void lake_libraries(void)
{
    enum { JSON, AVRO, XML, HEAPS };
    static const size_t sizes[HEAPS] = {LAKE_JSON, LAKE_JSON, LAKE_XML};
    static alignas(max_align_t) unsigned char memory[HEAPS][LAKE_JSON];
    static struct tn_heap heaps[HEAPS];
    static bool made;
    for (int i = 0; i < HEAPS; i++) {
        if (made) {
            tn_heap_deinit(&heaps[i]);
        }
        tn_heap_init(&heaps[i], memory[i], sizes[i], true);
    }
    made = true;
    tn_json_use_heap(&heaps[JSON]);
    tn_avro_use_heap(&heaps[AVRO]);
    tn_xml_use_heap(&heaps[XML]);
}

static __attribute__((unused, noinline)) void lake_bury(void)
{
    bool power = lake.ending == LAKE_NO_POWER;
    lake_note("-- %s", power ? "the power goes" : "killed");
    lake.kills += !power;
    lake.power_cuts += power;
    lake.ending = LAKE_LIVES;
    sim_net_kill(&lake.net, lake.here, power);
    lake.here->vtable = &lake.turning;
    if (power) {
        for (int i = 0; i < FAR_CONNECTIONS; i++) {
            far_close(&lake.store.ends[i]); /* a store doesn't wait for ever */
        }
        sim_disk_reboot(&lake.disk, random_below(&lake.random, 4) == 0
                                        ? random_below(&lake.random, 2)
                                        : random_next(&lake.random));
    } else {
        sim_disk_kill(&lake.disk);
    }
    sim_disk_watch(&lake.disk, lake_before_disk, NULL);
    lake_libraries();
    while (lake.cut > 0 && lake.scenario.cuts[lake.cut - 1] > lake.writer.told.rows) {
        lake.cut--;
    }
}

static inline void lake_note_old(void)
{
    memset(lake.old, 0, sizeof lake.old);
    for (int i = 0; i < lake.store.model.slots; i++) {
        lake.old[i] = lake.store.model.objects[i].key[0] != 0;
    }
    for (int i = 0; i < MODEL_UPLOADS; i++) {
        const struct model_upload *upload = &lake.store.model.uploads[i];
        lake.old_uploads[i] = upload->id;
        memcpy(lake.old_parts[i], upload->have, sizeof upload->have);
    }
    lake.asked = (struct lake_asked){0};
    lake.forbade = lake.store.forbade;
    lake.accepted = lake.store.accepted;
    lake_note("-- a process begins");
}

/* Runs a process that ends so, before call number `calls` (from 0), if it isn't through by then.
 * True: it came to its own end. */
static __attribute__((unused, noinline)) bool lake_run(void (*process)(void), enum lake_end ending,
                                                       uint64_t calls)
{
    lake.ending = ending;
    lake.calls_left = calls;
    lake_note_old();
    if (setjmp(lake.end) != 0) {
        lake_bury();
        return false;
    }
    process();
    lake.ending = LAKE_LIVES;
    return true;
}

/* ---- the store's accounts ---- */

static inline bool lake_is_file(const char *key)
{
    return !strstr(key, "/snapshot/") && !strstr(key, "/schema/") && !strstr(key, "/.tarn/") &&
           !strstr(key, "/tag/");
}

static inline bool lake_is_old_part(const struct model_upload *upload, int part)
{
    ptrdiff_t at = upload - lake.store.model.uploads;
    return upload->id && lake.old_uploads[at] == upload->id && lake.old_parts[at][part];
}

/* Of this upload, or of one that was forgotten. */
static inline bool lake_has_old_part(const struct model *m, const char *key, int part)
{
    bool found = false;
    for (int i = 0; i < MODEL_UPLOADS && !found; i++) {
        found = strcmp(m->uploads[i].key, key) == 0 && lake_is_old_part(&m->uploads[i], part);
    }
    return found;
}

static inline void lake_asked_part(struct model *m, const char *key, size_t size)
{
    static char number[MODEL_TEXT];
    CHECK(model_query(m, "partNumber", number));
    int part = atoi(number) - 1;
    struct model_upload *upload = model_upload(m, key);
    m->xml.size = 0; /* it may have said that there is none */
    CHECK(part >= 0 && part < MODEL_PARTS);
    lake.asked.bytes += size;
    lake.asked.known += lake_has_old_part(m, key, part) ? size : 0;
    lake.asked.twice += upload && upload->have[part] ? size : 0;
}

static __attribute__((unused, noinline)) void lake_on_asked(struct model *m)
{
    static char value[MODEL_TEXT];
    const char *key = m->path + 1 + strlen(m->bucket);
    bool put = strcmp(m->method, "PUT") == 0;
    bool of_upload = model_query(m, "uploadId", value);
    lake_note("%s %s %s %zu", m->method, key, m->query, m->body.size);
    if (lake.store.asking <= lake.accepted) {
        return;
    }
    lake.asked.requests++;
    if (*key == 0) { /* the other question is for uploads */
        lake.asked.lists += model_query(m, "list-type", value);
        return;
    }
    key++;
    lake.asked.tags += strstr(key, "/tag/") != NULL;
    if (strcmp(m->method, "DELETE") == 0 && !of_upload) {
        struct model_object *object = model_find(m, key);
        lake.asked.deletes += !strstr(key, "/tag/") && !strstr(key, "/.tarn-removes");
        lake.old[object ? object - m->objects : 0] &= object == NULL; /* another one comes there */
    }
    if (put && of_upload) {
        lake_asked_part(m, key, m->body.size);
    } else if (put && lake_is_file(key)) {
        const struct model_object *object = model_find(m, key);
        lake.asked.bytes += m->body.size;
        lake.asked.known += object && lake.old[object - m->objects] ? m->body.size : 0;
        lake.asked.twice += object ? m->body.size : 0;
    }
}

/* Where a lack is no other answer, a snapshot behind a gap may be one. */
static __attribute__((unused, noinline)) void lake_on_failed(struct model *m)
{
    struct lake_reader *r = &lake.reader;
    char path[64];
    (void)snprintf(path, sizeof path, "/bucket/lake/" BED_ROOT "/snapshot/snapshot-%" PRId64,
                   r->gap);
    lake_note("%s %s: %d", m->method, m->path, m->fail_before);
    if (m->denied && m->fail_before == 403 && r->gap > 0 && strcmp(m->path, path) == 0) {
        r->late = r->gap;
    }
}

static __attribute__((unused, noinline)) void lake_on_changed(struct model *m,
                                                              struct model_object *object)
{
    static char value[MODEL_TEXT];
    if (lake_is_file(object->key)) {
        lake.asked.new_bytes += object->bytes.size;
    }
    if (model_query(m, "uploadId", value)) {
        const struct model_upload *upload = model_upload(m, object->key);
        uint64_t known = 0;
        CHECK(upload != NULL);
        for (int i = 0; i < MODEL_PARTS; i++) {
            known += lake_is_old_part(upload, i) ? upload->parts[i].size : 0;
        }
        lake.asked.part_bytes += known;
        lake.part_bytes += known;
        lake.in_parts++;
    }
    lake.reader.dead = lake.store.asking <= lake.accepted;
    lake_reader_changed(m, object);
}

/* ---- the source ---- */

static inline void lake_start_writer(void)
{
    struct bed_engine *engine = &lake_engines[LAKE_WRITER];
    bed_engine_begin(engine, &lake.disk.io, &lake.clock.clock, 0);
    tn_exec_inline_open(&engine->exec, engine->contexts);
    engine->env.exec = &engine->exec.exec;
    lake.writer.engine = engine;
    lake.writer.random = random_next(&lake.random);
}

static inline bool lake_is_written(void)
{
    return lake.cut == lake.scenario.cut_count;
}

static inline void lake_write_rows(void)
{
    uint32_t cuts = 1 + random_below(&lake.random, 3);
    cuts = cuts < lake.scenario.cut_count - lake.cut ? cuts : lake.scenario.cut_count - lake.cut;
    tn_rc rc = bed_write_to(&lake.writer, lake.scenario.cuts[lake.cut + cuts - 1]);
    CHECK_OK(rc, lake.writer.err);
    lake.cut += cuts;
}

static inline void lake_compact(bool all)
{
    if (lake.scenario.keyed && lake.writer.told.rows > 0) {
        tn_rc rc = bed_compact(&lake.writer, all ? BED_COMPACTS_ALL : BED_COMPACTS);
        CHECK_OK(rc, lake.writer.err);
    }
}

/* As who alters a table leaves it: a schema that no snapshot names yet. */
static __attribute__((unused, noinline)) void lake_alter(void)
{
    struct bed_engine *engine = &lake_engines[LAKE_WRITER];
    static struct bed_reader reader;
    struct tn_buf text;
    struct tn_err err;
    char path[64];
    char comment[32];
    CHECK(bed_read_open(engine, &reader) == NULL);
    struct tn_schema next = *reader.schema;
    next.id++;
    (void)snprintf(comment, sizeof comment, "version %d", (int)next.id);
    (void)snprintf(path, sizeof path, BED_ROOT "/schema/schema-%d", (int)next.id);
    next.comment = comment;
    tn_buf_init(&text, tn_arena_take(&engine->own, 8192), 8192);
    tn_schema_encode(&next, &text);
    CHECK(text.data != NULL && !text.overflow);
    struct tn_publish_spec spec = {.bytes = tn_buf_bytes(&text),
                                   .draft = BED_ROOT "/schema/.draft",
                                   .final = path,
                                   .dir = BED_ROOT "/schema/"};
    (void)lake.disk.io.vtable->unlink(&lake.disk.io, spec.draft, &err);
    tn_rc rc = tn_publish(&lake.disk.io, &spec, &err);
    CHECK_OK(rc, err);
    lake.schemas++;
}

static const char *const lake_tags[LAKE_TAGS] = {"a", "b c", "release"};

static __attribute__((unused, noinline)) void lake_remove_tag(const char *name)
{
    static struct bed_reader reader;
    struct bed_engine *engine = &lake_engines[LAKE_WRITER];
    struct tn_expire_result result;
    struct tn_err err;
    CHECK(bed_read_open(engine, &reader) == NULL);
    struct tn_expire_spec spec = {
        .root = BED_ROOT, .schema = reader.schema, .options = &reader.options};
    tn_rc rc = tn_tag_remove(&spec, name, &engine->workers[TN_LANE_LONG], &result, &err);
    CHECK_OK(rc, err);
}

/* One is made, where there is none, or removed, or becomes another one. */
static __attribute__((unused, noinline)) void lake_tag(void)
{
    struct bed_engine *engine = &lake_engines[LAKE_WRITER];
    struct tn_err err;
    int64_t id;
    struct tn_tag_spec spec = {.root = BED_ROOT,
                               .name = lake_tags[random_below(&lake.random, LAKE_TAGS)]};
    tn_rc rc = tn_tag_make(&spec, &engine->workers[TN_LANE_LONG], &id, &err);
    if (rc == TN_EXISTS) {
        lake_remove_tag(spec.name);
        rc = random_below(&lake.random, 2) == 0
                 ? TN_OK
                 : tn_tag_make(&spec, &engine->workers[TN_LANE_LONG], &id, &err);
    }
    CHECK(rc == TN_OK || rc == TN_INVALID); /* there is no snapshot */
}

/* A process, or what another one does beside it. */
static __attribute__((unused, noinline)) void lake_write(void)
{
    lake_start_writer();
    uint32_t what = random_below(&lake.random, 10);
    if (what == 0) {
        lake_alter();
    } else if (what < 3) {
        lake_tag();
    } else if (what < 5) {
        lake_compact(random_below(&lake.random, 2) == 0);
    } else if (!lake_is_written()) {
        lake_write_rows();
    }
}

static __attribute__((unused, noinline)) void lake_write_all(void)
{
    while (!lake_is_written()) {
        lake_start_writer();
        lake_write_rows();
    }
    lake_start_writer();
    lake_compact(true);
}

/* ---- a sync ---- */

static inline void lake_open_target(void)
{
    static alignas(max_align_t) unsigned char memory[LAKE_TARGET];
    static const struct tn_s3_options options = {
        .endpoint = "http://store", .access_key = "a", .secret_key = "b"};
    const struct tn_s3_target_spec spec = {.net = lake.here,
                                           .clock = &lake.clock.clock,
                                           .arena = &lake.arena,
                                           .where = "s3://bucket/lake",
                                           .options = &options,
                                           .part_size = lake.part_size,
                                           .uploads_io = &lake.disk.io,
                                           .uploads_path = ".tarn/db.t.lake.parts"};
    tn_arena_init(&lake.arena, memory, sizeof memory);
    tn_rc rc = tn_s3_target_open(&spec, &lake.target, &lake.err);
    CHECK_OK(rc, lake.err);
}

/* A process: like a verb, or like a daemon for a while. */
static __attribute__((unused, noinline)) void lake_sync(void)
{
    struct bed_engine *engine = &lake_engines[LAKE_SYNC];
    bed_engine_begin(engine, &lake.disk.io, &lake.clock.clock, 0);
    lake_open_target();
    struct tn_delta_spec spec = {.root = BED_ROOT,
                                 .target = lake.instead ? lake.instead(lake.target) : lake.target,
                                 .consumer = lake.consumer ? "tarn-lake-test" : NULL,
                                 .lake = "tarn-lake-test"};
    uint32_t times = 1 + random_below(&lake.random, 3);
    for (uint32_t i = 0; i < times; i++) {
        lake.rc = tn_delta_sync(&spec, &engine->workers[TN_LANE_LONG], &lake.result, &lake.err);
        lake.syncs++;
        lake_note("-- sync: %s", lake.rc == TN_OK ? "ok" : lake.err.text);
    }
    tn_s3_target_close(lake.target);
}

/* The target turns its own door; everybody else's go on with it. */
static inline int lake_turn(struct tn_net *net, uint32_t wait_ms)
{
    (void)net;
    CHECK(lake.turns++ < LAKE_TURNS_MAX);
    lake_call();
    if (lake.beside > 0 && random_below(&lake.random, 60) == 0) {
        lake.beside--;
        lake_write();
    }
    return sim_net_wait(&lake.net, wait_ms);
}

/* ---- the world ---- */

static inline void lake_open_net(uint64_t seed)
{
    static alignas(max_align_t) unsigned char memory[2][LAKE_BLOCKS * (LAKE_BLOCK + 8)];
    sim_clock_init(&lake.clock, seed);
    sim_net_init(&lake.net, &lake.clock, seed);
    for (int i = 0; i < 2; i++) {
        tn_pool_init(&lake.pools[i], memory[i], sizeof memory[i], LAKE_BLOCK);
    }
    lake.here = sim_net_host(&lake.net, "device", &lake.pools[0]);
    lake.turning = *lake.here->vtable;
    lake.turning.turn = lake_turn;
    lake.here->vtable = &lake.turning;
    lake.store.net = sim_net_host(&lake.net, "store", &lake.pools[1]);
    far_listen(&lake.store);
}

/* All but what is large: that stays as it was, behind a size of 0. */
static inline void lake_empty_store(struct far_store *s)
{
    struct model *m = &s->model;
    for (int i = 0; i < m->slots; i++) {
        m->objects[i].key[0] = 0;
    }
    for (int i = 0; i < MODEL_UPLOADS; i++) {
        m->uploads[i].id = 0;
    }
    memset(&m->ids, 0, offsetof(struct model, method) - offsetof(struct model, ids));
    for (int i = 0; i < FAR_CONNECTIONS; i++) {
        memset(&s->ends[i], 0, offsetof(struct far_end, in_memory));
    }
    memset(&s->random, 0, sizeof *s - offsetof(struct far_store, random));
}

static inline void lake_open_store(uint64_t seed)
{
    struct model *m = &lake.store.model;
    lake_empty_store(&lake.store);
    m->bucket = "bucket";
    m->random = seed;
    m->page = 40;
    m->asked = lake_on_asked;
    m->failed = lake_on_failed;
    m->changed = lake_on_changed;
    m->user = &lake.reader;
    lake.store.random = seed * 131 + 1;
}

/* A table without a row, and an empty store; nothing fails yet. */
static __attribute__((unused, noinline)) void lake_open(uint64_t seed, uint32_t rounds)
{
    bed_scenario_init_merging(&lake.scenario, seed, rounds);
    if (seed % 8 != 0) { /* nothing here depends on it, and it takes a fifth of the time */
        bed_scenario_option(&lake.scenario,
                            ",\"file.compression\":\"null\",\"manifest.compression\":\"null\"");
    }
    lake.random = seed * 77 + 1;
    lake.writer = (struct bed_writer){.scenario = &lake.scenario, .who = "a test"};
    lake.scenario.lives = BED_LIVES_ON;
    lake.cut = 0;
    lake.schemas = 1;
    lake.beside = 0;
    lake.turns = 0;
    lake.ending = LAKE_LIVES;
    lake.instead = NULL;
    lake.line_count = 0;
    lake_libraries();
    lake_open_store(seed);
    lake_open_net(seed);
    lake.consumer = random_below(&lake.random, 4) != 0;
    /* PUT and GET are all the rights that a mirror needs, but for its tags. */
    lake.store.model.denied =
        random_below(&lake.random, 4) == 0 ? MODEL_NO_LIST | MODEL_NO_DELETE : 0;
    lake.part_size = MODEL_BODY / MODEL_PARTS + random_below(&lake.random, 2000);
    sim_disk_init(&lake.disk, BED_DISK_SIZE);
    bed_create(&lake_engines[LAKE_WRITER], &lake.disk.io, &lake.scenario);
    sim_disk_reboot(&lake.disk, SIM_SEED_ALL);
    lake.disk.model = seed % 3 == 0 ? SIM_ORDERED : SIM_STRICT;
    sim_disk_watch(&lake.disk, lake_before_disk, NULL);
    lake_reader_begin(&lake.reader, &lake_engines[LAKE_READER], &lake.store.model, &lake.disk.io,
                      &lake.scenario);
    lake.reader.gaps = !lake.consumer;
    lake.kills = lake.power_cuts = lake.syncs = lake.in_parts = lake.part_bytes = 0;
}

static __attribute__((unused, noinline)) void lake_close(void)
{
    lake_reader_end(&lake.reader);
    sim_net_deinit(&lake.net);
    sim_disk_deinit(&lake.disk);
    check_seed = 0;
}

/* What dead processes have sent has come by the end of this. */
static __attribute__((unused, noinline)) void lake_calm(void)
{
    enum { CALM_MS = 40000 };
    int64_t until_ns = lake.clock.passed_ns + CALM_MS * INT64_C(1000000);
    while (lake.clock.passed_ns < until_ns) {
        CHECK(lake.turns++ < LAKE_TURNS_MAX);
        (void)sim_net_wait(&lake.net, CALM_MS);
    }
    lake.store.mood_percent = 0;
    lake.net.fault_percent = 0;
    lake.net.fragment_max = SIM_WINDOW;
}
