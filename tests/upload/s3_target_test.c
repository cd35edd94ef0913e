/* A target on a simulated network, whose far end is a store in memory: connections are cut at any
 * byte, lost and refused; the store answers with errors before and after it did what was asked,
 * slowly, twice, never, or resets a connection whose request it has taken. All by a seed.
 *
 * Whatever happens: no name ever shows other bytes than it did first, but hints and the owner; when
 * `settle` says OK all is there, byte by byte; and what `publish` and `swap` say is so. */
#include "upload/s3_target.h"

#include <stdalign.h>

#include "contract.h"
#include "far_store.h"
#include "given.h"
#include "sim/disk.h"

enum {
    MEMORY = 1024 * 1024,
    XML_HEAP = 128 * 1024,
    BLOCK = 512,
    FILES_MAX = 10,
    FILE_MAX = 3500,
    PART = 900,
    PATIENCE_MS = 60 * 1000,
    TURNS_MAX = 2000000,
    DISK = 4 * 1024 * 1024,
};
#define DAY_MS (INT64_C(24) * 60 * 60 * 1000)

struct world {
    struct sim_clock clock;
    struct sim_net net;
    struct tn_net *here;
    struct tn_net_vtable turning;
    struct tn_pool pools[2];
    struct far_store store;
    uint64_t turns;
    uint64_t random;
    struct sim_disk source;
    struct sim_disk memos;
    struct tn_arena arena;
    struct tn_arena results;
    struct tn_target *target;
    struct tn_err err;
};

static alignas(16) unsigned char pool_memory[2][16 * (BLOCK + 8)];
static alignas(16) unsigned char memory[MEMORY];
static alignas(16) unsigned char result_memory[64 * 1024];
static struct world w;

/* ---- the store ---- */

static uint32_t denied; /* in all worlds */

static bool may_change(const char *key)
{
    return strstr(key, "LATEST") || strstr(key, "owner");
}

/* A name shows the bytes that it has shown first. */
static void check_first(struct model *m, struct model_object *object)
{
    (void)m;
    CHECK(object->first == model_hash(&object->bytes) || may_change(object->key));
}

/* ---- the world ---- */

static atomic_bool *stop_then; /* or NULL */
static int64_t stop_at_ms;

/* The target turns its own door; everybody else's go on with it. */
static int turn_world(struct tn_net *net, uint32_t wait_ms)
{
    (void)net;
    if (stop_then && w.clock.passed_ns / 1000000 >= stop_at_ms) {
        atomic_store(stop_then, true);
    }
    CHECK(w.turns++ < TURNS_MAX);
    return sim_net_wait(&w.net, wait_ms);
}

static void open_target(uint32_t patience_ms, uint32_t rate)
{
    static const struct tn_s3_options options = {.endpoint = "http://store"};
    const struct tn_s3_target_spec spec = {.net = w.here,
                                           .clock = &w.clock.clock,
                                           .arena = &w.arena,
                                           .where = "s3://bucket/lake",
                                           .options = &options,
                                           .patience_ms = patience_ms,
                                           .rate = rate,
                                           .part_size = PART,
                                           .credentials_io = &w.memos.io,
                                           .credentials_path = "credentials",
                                           .uploads_io = &w.memos.io,
                                           .uploads_path = "uploads"};
    tn_arena_init(&w.arena, memory, sizeof memory);
    tn_rc rc = tn_s3_target_open(&spec, &w.target, &w.err);
    CHECK_OK(rc, w.err);
}

static void write_credentials_with(const char *id, const char *more)
{
    char text[256];
    struct tn_err err;
    w.memos.now_ms += 5000;
    (void)snprintf(text, sizeof text,
                   "[default]\naws_access_key_id = %s\naws_secret_access_key = secret\n%s", id,
                   more);
    (void)w.memos.io.vtable->unlink(&w.memos.io, "credentials", &err);
    tn_rc rc = tn_io_write_new(&w.memos.io, "credentials", tn_bytes_of(text), &err);
    CHECK_OK(rc, err);
}

static void write_credentials(const char *id)
{
    write_credentials_with(id, "");
}

static void open_world(uint64_t seed)
{
    memset(&w, 0, sizeof w);
    check_seed = seed;
    w.random = seed * 77 + 1;
    w.store.model.bucket = "bucket";
    w.store.model.random = seed;
    w.store.model.page = 3;
    w.store.model.denied = denied;
    w.store.model.changed = check_first;
    w.store.random = seed * 131 + 1;
    sim_clock_init(&w.clock, seed);
    sim_net_init(&w.net, &w.clock, seed);
    for (int i = 0; i < 2; i++) {
        tn_pool_init(&w.pools[i], pool_memory[i], sizeof pool_memory[i], BLOCK);
    }
    w.here = sim_net_host(&w.net, "device", &w.pools[0]);
    w.store.net = sim_net_host(&w.net, "store", &w.pools[1]);
    w.turning = *w.here->vtable;
    w.turning.turn = turn_world;
    w.here->vtable = &w.turning;
    sim_disk_init(&w.source, DISK);
    sim_disk_init(&w.memos, DISK);
    tn_arena_init(&w.results, result_memory, sizeof result_memory);
    far_listen(&w.store);
    write_credentials("first");
    open_target(PATIENCE_MS, 0);
}

static void check_memory(void)
{
    CHECK(w.arena.used == w.arena.peak && w.arena.used <= MEMORY);
    CHECK(w.arena.used >= tn_s3_target_size(0) - 4096); /* it says what it needs */
}

static void close_target(void)
{
    check_memory();
    tn_s3_target_close(w.target);
}

static void close_world(void)
{
    close_target();
    sim_net_deinit(&w.net);
    sim_disk_deinit(&w.source);
    sim_disk_deinit(&w.memos);
    check_seed = 0;
}

/* ---- files ---- */

struct file {
    char path[64];
    size_t size;
    unsigned char bytes[FILE_MAX];
};

static struct file files[FILES_MAX];
static uint32_t file_count;

static void make_file(size_t size)
{
    struct file *file = &files[file_count];
    (void)snprintf(file->path, sizeof file->path, "db.db/t/p=%%2F %" PRIu32 "/data-%" PRIu32 ".orc",
                   file_count % 2, file_count);
    file->size = size;
    file_count++;
    for (size_t i = 0; i < size; i++) {
        file->bytes[i] = (unsigned char)random_next(&w.random);
    }
    char folder[64];
    (void)snprintf(folder, sizeof folder, "%s", file->path);
    *strrchr(folder, '/') = 0;
    tn_rc rc = w.source.io.vtable->make_dir(&w.source.io, folder, &w.err);
    CHECK_OK(rc, w.err);
    rc = tn_io_write_new(&w.source.io, file->path, (struct tn_bytes){file->bytes, size}, &w.err);
    CHECK_OK(rc, w.err);
}

static const struct model_object *object_at(const char *path)
{
    char key[128];
    (void)snprintf(key, sizeof key, "lake/%.100s", path);
    return model_find(&w.store.model, key);
}

static bool is_there(const char *path, struct tn_bytes bytes)
{
    const struct model_object *object = object_at(path);
    return object &&
           tn_bytes_equal(bytes, (struct tn_bytes){object->bytes.data, object->bytes.size});
}

static tn_rc send_file(const struct file *file)
{
    return w.target->vtable->send(w.target, &w.source.io, file->path, file->size, &w.err);
}

static tn_rc send_all(void)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < file_count; i++) {
        rc = send_file(&files[i]);
    }
    return rc == TN_OK ? w.target->vtable->settle(w.target, &w.err) : rc;
}

static void check_all_there(void)
{
    for (uint32_t i = 0; i < file_count; i++) {
        CHECK(is_there(files[i].path, (struct tn_bytes){files[i].bytes, files[i].size}));
    }
}

static tn_rc publish(const char *path, const char *text)
{
    return w.target->vtable->publish(w.target, path, tn_bytes_of(text), &w.err);
}

static int uploads_there(void)
{
    int count = 0;
    for (int i = 0; i < MODEL_UPLOADS; i++) {
        count += w.store.model.uploads[i].id != 0;
    }
    return count;
}

static size_t memo_size(void)
{
    uint64_t size = 0;
    struct tn_err err;
    tn_rc rc = w.memos.io.vtable->stat(&w.memos.io, "uploads", &size, &err);
    CHECK(rc == TN_OK || rc == TN_ABSENT);
    return (size_t)size;
}

/* ---- tests ---- */

/* An error that passes names what it is about, and where. */
static void check_error(tn_rc rc)
{
    if (rc != TN_IO || rc != w.err.code) {
        FAIL("%d: %s", (int)rc, w.err.text);
    }
    CHECK(strstr(w.err.text, "s3://bucket/lake/"));
    CHECK(tn_s3_target_trouble(w.target) != TN_S3_TROUBLE_NONE);
}

static void calm(void)
{
    w.store.mood_percent = 0;
    w.net.fault_percent = 0;
}

/* Another world for each try, and a calm one in the end. */
static void draw_faults(int tries)
{
    CHECK(tries < 20);
    w.store.mood_percent = random_below(&w.random, 4) == 0 ? 0 : random_below(&w.random, 70);
    w.net.fault_percent = random_below(&w.random, 3) == 0 ? 0 : random_below(&w.random, 80);
    w.net.fault_at_max = 1 + random_below(&w.random, 9000);
    w.net.fragment_max =
        random_below(&w.random, 3) == 0 ? 1 + random_below(&w.random, 50) : SIM_WINDOW;
    if (tries > 15) {
        calm();
    }
}

/* So many worlds as there is time for. */
static void each_world(void (*run)(uint64_t seed), uint32_t part)
{
    double until = given_until(4, part);
    uint64_t seed = given_number("SEED", 1) * 1000;
    do {
        run(++seed);
    } while (seconds_now() < until);
}

/* Sends, publishes and swaps in a world with faults, again after each error, until it is calm. */
static void sync_in_a_world(uint64_t seed)
{
    open_world(seed);
    file_count = 0;
    uint32_t count = 1 + random_below(&w.random, FILES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        make_file(random_below(&w.random, 5) == 0 ? 0 : random_below(&w.random, FILE_MAX));
    }
    tn_rc rc = TN_IO;
    for (int tries = 0; rc != TN_OK; tries++) {
        draw_faults(tries);
        rc = send_all();
        if (rc == TN_OK) {
            check_all_there();
            rc = publish("db.db/t/snapshot/snapshot-1", "the first");
            CHECK(rc != TN_OK || is_there("db.db/t/snapshot/snapshot-1", tn_bytes_of("the first")));
        }
        if (rc == TN_OK) {
            rc = w.target->vtable->replace(w.target, "db.db/t/snapshot/LATEST", tn_bytes_of("1"),
                                           &w.err);
        }
        if (rc != TN_OK) {
            check_error(rc);
            w.target->vtable->drop(w.target);
        }
        if (rc != TN_OK && random_below(&w.random, 3) == 0) {
            close_target();
            open_target(PATIENCE_MS, 0);
        }
    }
    check_all_there();
    CHECK(is_there("db.db/t/snapshot/LATEST", tn_bytes_of("1")));
    close_world();
}

static void all_that_settled_is_there_in_every_world(void)
{
    each_world(sync_in_a_world, 2);
}

/* Another writer takes the name at some time, or not. */
static void publish_in_a_world(uint64_t seed)
{
    static const char path[] = "db.db/t/snapshot/snapshot-7";
    open_world(seed);
    bool rival = random_below(&w.random, 3) == 0;
    if (rival) {
        far_put(&w.store, "lake/db.db/t/snapshot/snapshot-7", "theirs");
    }
    tn_rc rc = TN_IO;
    for (int tries = 0; rc != TN_OK && rc != TN_CONFLICT; tries++) {
        draw_faults(tries);
        rc = publish(path, "ours");
        if (rc != TN_OK && rc != TN_CONFLICT) {
            check_error(rc);
        }
        CHECK(is_there(path, tn_bytes_of("theirs")) == rival);
    }
    CHECK(rival ? rc == TN_CONFLICT : rc == TN_OK && is_there(path, tn_bytes_of("ours")));
    close_world();
}

static void what_is_published_is_there_and_stays_in_every_world(void)
{
    each_world(publish_in_a_world, 4);
}

static tn_rc swap(const char *path, const char *was, const char *text)
{
    return w.target->vtable->swap(w.target, path,
                                  was ? tn_bytes_of(was) : (struct tn_bytes){NULL, 0},
                                  tn_bytes_of(text), &w.err);
}

/* Counts up, again after each error; a number is never skipped, nor taken back. */
static void swap_in_a_world(uint64_t seed)
{
    static const char path[] = ".tarn/db.db.t/owner";
    static const char *const texts[] = {NULL, "generation 1", "generation 2", "3", "generation 4"};
    open_world(seed);
    for (size_t i = 1; i < COUNT(texts); i++) {
        tn_rc rc = TN_IO;
        for (int tries = 0; rc != TN_OK; tries++) {
            draw_faults(tries);
            rc = swap(path, texts[i - 1], texts[i]);
            CHECK(rc != TN_CONFLICT);
            CHECK(rc == TN_OK || !object_at(path) || is_there(path, tn_bytes_of(texts[i])) ||
                  (i > 1 && is_there(path, tn_bytes_of(texts[i - 1]))));
        }
        CHECK(is_there(path, tn_bytes_of(texts[i])));
    }
    calm();
    tn_rc rc = TN_IO;
    for (int tries = 0; rc == TN_IO && tries < 2; tries++) { /* a connection may hang still */
        rc = swap(path, "generation 2", "5");
    }
    CHECK(rc == TN_CONFLICT);
    rc = TN_IO;
    for (int tries = 0; rc == TN_IO && tries < 2; tries++) {
        rc = swap(path, NULL, "5");
    }
    CHECK(rc == TN_CONFLICT);
    CHECK(is_there(path, tn_bytes_of("generation 4")));
    close_world();
}

static void owner_counts_up_in_every_world(void)
{
    each_world(swap_in_a_world, 4);
}

/* A file comes in pieces, as far as each try gets. What has come is never asked for again. */
static void fetch_in_a_world(uint64_t seed)
{
    static unsigned char bytes[FILE_MAX];
    open_world(seed);
    struct model_object *object = model_make(&w.store.model, "lake/db.db/t/data-1");
    uint64_t have = 0;
    int file = -1;
    object->bytes.size = random_below(&w.random, 6) == 0 ? 0 : random_below(&w.random, FILE_MAX);
    for (size_t i = 0; i < object->bytes.size; i++) {
        object->bytes.data[i] = (unsigned char)random_next(&w.random);
    }
    tn_rc rc = w.source.io.vtable->create(&w.source.io, "fetched", &file, &w.err);
    CHECK_OK(rc, w.err);
    rc = TN_IO;
    for (int tries = 0; rc != TN_OK; tries++) {
        uint64_t got = 0;
        draw_faults(tries);
        rc = w.target->vtable->fetch(w.target, "db.db/t/data-1", have, &w.source.io, file, &got,
                                     &w.err);
        have += got;
        if (rc != TN_OK) {
            check_error(rc);
        }
        if (rc != TN_OK && random_below(&w.random, 3) == 0) {
            close_target();
            open_target(PATIENCE_MS, 0);
        }
    }
    size_t got = 0;
    uint64_t size = 0;
    w.source.io.vtable->close(&w.source.io, file);
    rc = w.source.io.vtable->open(&w.source.io, "fetched", &file, &size, &w.err);
    CHECK_OK(rc, w.err);
    CHECK(size == object->bytes.size && have == size);
    rc = w.source.io.vtable->read(&w.source.io, file, 0, bytes, sizeof bytes, &got, &w.err);
    CHECK_OK(rc, w.err);
    CHECK(got == size && memcmp(bytes, object->bytes.data, got) == 0);
    w.source.io.vtable->close(&w.source.io, file);
    close_world();
}

static void what_is_fetched_is_whole_in_every_world(void)
{
    each_world(fetch_in_a_world, 4);
}

/* The link breaks after `cut` bytes. Returns what became of it. */
static tn_rc fetch_changing(uint32_t cut)
{
    static unsigned char bytes[FILE_MAX];
    int file = -1;
    uint64_t got = 0;
    size_t size = 0;
    open_world(cut);
    struct model_object *object = model_make(&w.store.model, "lake/LATEST-changes");
    object->bytes.size = FILE_MAX;
    memset(object->bytes.data, 'a', FILE_MAX);
    tn_rc rc = w.source.io.vtable->create(&w.source.io, "fetched", &file, &w.err);
    CHECK_OK(rc, w.err);
    sim_net_fault(&w.net, w.net.links_asked + 1, SIM_LINK_CUT, cut);
    w.store.changing = "lake/LATEST-changes";
    tn_rc fetched =
        w.target->vtable->fetch(w.target, "LATEST-changes", 0, &w.source.io, file, &got, &w.err);
    CHECK(fetched == TN_OK || strstr(w.err.text, "it has changed meanwhile"));
    w.source.io.vtable->close(&w.source.io, file);
    rc = w.source.io.vtable->open(&w.source.io, "fetched", &file, &got, &w.err);
    CHECK_OK(rc, w.err);
    rc = w.source.io.vtable->read(&w.source.io, file, 0, bytes, sizeof bytes, &size, &w.err);
    CHECK_OK(rc, w.err);
    CHECK(fetched == TN_OK ? size == FILE_MAX : size < FILE_MAX);
    for (size_t i = 1; i < size; i++) {
        CHECK(bytes[i] == bytes[0]);
    }
    w.source.io.vtable->close(&w.source.io, file);
    close_world();
    return fetched;
}

/* What came of the first bytes is of no use with the last ones of another. */
static void file_that_changes_while_it_is_fetched_is_an_error(void)
{
    uint32_t seen = 0;
    for (uint32_t cut = 500; cut < 5000; cut += 100) {
        tn_rc rc = fetch_changing(cut);
        CHECK(rc == TN_OK || rc == TN_IO);
        seen += rc == TN_IO;
    }
    CHECK(seen > 5);
}

/* It has the bytes that are known when they are asked for, and no more when ours come. */
static void swap_loses_to_who_was_faster(void)
{
    open_world(1);
    CHECK(swap("owner", NULL, "1") == TN_OK);
    w.store.rival = "lake/owner";
    CHECK(swap("owner", "1", "2") == TN_CONFLICT);
    CHECK(is_there("owner", tn_bytes_of("theirs")));
    close_world();
}

/* ---- who may not do everything ---- */

/* A mirror that is made and kept needs no more rights than these, whatever fails on the way. */
static void who_may_put_and_get_needs_no_more(void)
{
    denied = MODEL_PUT_AND_GET;
    each_world(sync_in_a_world, 4);
    each_world(publish_in_a_world, 8);
    each_world(swap_in_a_world, 8);
    denied = 0;
}

/* A name that isn't there is as good as absent to who may not list; the trouble tells why. */
static void hidden_name_is_absent(void)
{
    uint64_t size = 0;
    struct tn_bytes bytes;
    denied = MODEL_PUT_AND_GET;
    open_world(1);
    CHECK(w.target->vtable->stat(w.target, "x", &size, &w.err) == TN_ABSENT);
    CHECK(tn_s3_target_trouble(w.target) == TN_S3_TROUBLE_PERMISSION);
    CHECK(strstr(w.err.text, "permission denied (403 AccessDenied"));
    CHECK(tn_target_is_hidden(w.err.code, &w.err));
    CHECK(w.target->vtable->read(w.target, "x", 10, &w.results, &bytes, &w.err) == TN_ABSENT);
    uint64_t heads = w.target->counts.requests[TN_TARGET_HEAD];
    CHECK(w.target->vtable->read(w.target, "x", 10, &w.results, &bytes, &w.err) == TN_ABSENT);
    CHECK(w.target->counts.requests[TN_TARGET_HEAD] == heads); /* it is known to hide */
    CHECK(publish("x", "text") == TN_OK && is_there("x", tn_bytes_of("text")));
    CHECK(tn_s3_target_trouble(w.target) == TN_S3_TROUBLE_NONE);
    CHECK(w.target->vtable->stat(w.target, "x", &size, &w.err) == TN_OK && size == 4);
    CHECK(w.target->vtable->read(w.target, "x", 10, &w.results, &bytes, &w.err) == TN_OK);
    CHECK(w.store.model.lists == 0);
    CHECK(w.target->vtable->list(w.target, "l/", NULL, NULL, &w.err) == TN_IO);
    CHECK(strstr(w.err.text, "list s3://bucket/lake/l/: permission denied"));
    close_world();
    denied = 0;
}

/* Who puts on the condition that a name isn't there is told after one request. */
static void hidden_name_costs_one_request_where_that_will_do(void)
{
    struct tn_bytes bytes;
    denied = MODEL_PUT_AND_GET;
    open_world(1);
    w.target->hidden_will_do = true;
    CHECK(w.target->vtable->read(w.target, "x", 10, &w.results, &bytes, &w.err) == TN_ABSENT);
    uint64_t served = w.store.served; /* the clock is learned */
    CHECK(w.target->vtable->read(w.target, "x", 10, &w.results, &bytes, &w.err) == TN_ABSENT);
    CHECK(tn_target_is_hidden(w.err.code, &w.err) && w.store.served == served + 1);
    w.target->hidden_will_do = false;
    CHECK(w.target->vtable->read(w.target, "x", 10, &w.results, &bytes, &w.err) == TN_ABSENT);
    CHECK(tn_target_is_hidden(w.err.code, &w.err) && w.store.served > served + 2);
    close_world();
    denied = 0;
}

static tn_rc read_forbidden(const char *path)
{
    struct tn_bytes bytes;
    w.store.only = FORBIDS;
    w.store.moods_left = 1;
    return w.target->vtable->read(w.target, path, 10, &w.results, &bytes, &w.err);
}

/* In a store that tells what it lacks a 403 is no answer, whether the name is there or not. */
static void forbidden_for_a_moment_is_no_lack(void)
{
    struct tn_bytes bytes;
    open_world(1);
    CHECK(publish("x", "text") == TN_OK);
    CHECK(read_forbidden("x") == TN_OK); /* the clock is learned, and it goes again */
    for (int i = 0; i < 2; i++) {
        CHECK(read_forbidden(i == 0 ? "x" : "y") == TN_IO && w.err.code == TN_IO);
        CHECK(strstr(w.err.text, "permission denied (403 AccessDenied"));
        CHECK(tn_s3_target_trouble(w.target) == TN_S3_TROUBLE_PERMISSION);
    }
    CHECK(w.target->vtable->read(w.target, "x", 10, &w.results, &bytes, &w.err) == TN_OK);
    CHECK(w.target->vtable->read(w.target, "y", 10, &w.results, &bytes, &w.err) == TN_ABSENT);
    CHECK(!tn_target_is_hidden(TN_ABSENT, &w.err));
    close_world();
}

/* Rights may change while a daemon goes on. */
static void whether_a_store_hides_is_learned_anew(void)
{
    uint64_t size;
    open_world(1);
    CHECK(publish("x", "text") == TN_OK);
    for (int i = 0; i < 4; i++) {
        w.store.model.denied = i % 2 == 0 ? MODEL_NO_LIST : 0;
        CHECK(w.target->vtable->stat(w.target, "y", &size, &w.err) == TN_ABSENT);
        CHECK(tn_target_is_hidden(TN_ABSENT, &w.err) == (i % 2 == 0));
        CHECK(i % 2 == 0 || read_forbidden("x") == TN_IO);
    }
    w.store.model.denied = 0;
    close_world();
}

static void make_two_files(void)
{
    file_count = 0;
    make_file(100);
    make_file(2500); /* in parts */
}

static void check_denied(tn_rc rc, const char *what)
{
    check_error(rc);
    CHECK(strstr(w.err.text, what) && strstr(w.err.text, "permission denied (403"));
    CHECK(tn_s3_target_trouble(w.target) == TN_S3_TROUBLE_PERMISSION);
    w.target->vtable->drop(w.target);
}

static void who_may_not_put_is_told_so(void)
{
    denied = MODEL_PUT_AND_GET | MODEL_NO_PUT;
    open_world(1);
    make_two_files();
    check_denied(publish("s", "x"), "put s3://bucket/lake/s");
    CHECK(send_file(&files[0]) == TN_OK);
    check_denied(w.target->vtable->settle(w.target, &w.err), "put s3://bucket/lake/db.db/t/p=");
    check_denied(send_file(&files[1]), "begin upload of s3://bucket/lake/db.db/t/p=");
    CHECK(memo_size() == 0);
    denied = 0;
    close_world();
}

/* What is there stays, and who may not look at it can't say that it's his. */
static void what_may_not_be_read_is_never_replaced(void)
{
    denied = MODEL_PUT_AND_GET | MODEL_NO_GET;
    open_world(1);
    make_two_files();
    far_put(&w.store, "lake/s", "theirs");
    for (uint32_t i = 0; i < file_count; i++) {
        char key[128];
        (void)snprintf(key, sizeof key, "lake/%.63s", files[i].path);
        far_put(&w.store, key, "theirs");
    }
    check_denied(publish("s", "x"), "get s3://bucket/lake/s");
    CHECK(send_file(&files[0]) == TN_OK);
    check_denied(w.target->vtable->settle(w.target, &w.err), "get s3://bucket/lake/db.db/t/p=");
    check_denied(send_file(&files[1]), "get s3://bucket/lake/db.db/t/p=");
    CHECK(is_there("s", tn_bytes_of("theirs")));
    CHECK(is_there(files[0].path, tn_bytes_of("theirs")));
    CHECK(is_there(files[1].path, tn_bytes_of("theirs")));
    denied = 0;
    close_world();
}

/* The answer to HEAD has no words. */
static void refusal_of_a_look_is_told_in_words(void)
{
    static const struct {
        const char *code;
        const char *words;
        enum tn_s3_trouble trouble;
    } cases[] = {
        {"ExpiredToken", "the session token has expired", TN_S3_TROUBLE_CREDENTIALS},
        {"InvalidAccessKeyId", "the access key is unknown", TN_S3_TROUBLE_CREDENTIALS},
        {"SignatureDoesNotMatch", "the secret key is wrong", TN_S3_TROUBLE_CREDENTIALS},
        {"AllAccessDisabled", "access to this bucket is disabled", TN_S3_TROUBLE_PERMISSION},
        {"RequestTimeTooSkewed", "403 RequestTimeTooSkewed", TN_S3_TROUBLE_CLOCK},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t size = 0;
        open_world(i);
        w.store.model.refusal = cases[i].code;
        CHECK(w.target->vtable->stat(w.target, "x", &size, &w.err) == TN_IO);
        CHECK(strstr(w.err.text, cases[i].words));
        CHECK(tn_s3_target_trouble(w.target) == cases[i].trouble);
        close_world();
    }
}

/* ---- lists ---- */

static char listed[8][32];
static uint32_t listed_count;

static tn_rc add_name(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    (void)user;
    (void)err;
    CHECK(listed_count < COUNT(listed));
    (void)snprintf(listed[listed_count++], sizeof listed[0], "%s%s", name, is_dir ? "/" : "");
    return TN_OK;
}

static uint32_t times_listed(const char *name)
{
    uint32_t times = 0;
    for (uint32_t i = 0; i < listed_count; i++) {
        times += strcmp(listed[i], name) == 0;
    }
    return times;
}

/* Files below a folder, and a store that tells of them in pages, sorted or not. */
static void open_world_of(uint64_t seed, const char *folder, const char *const *names, size_t count)
{
    open_world(seed);
    for (size_t i = 0; i < count; i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "%s%s", folder, names[i]);
        CHECK(publish(path, "1") == TN_OK);
    }
    w.store.model.unsorted = random_below(&w.random, 2) == 0;
    w.store.model.page = 1 + random_below(&w.random, 8);
}

/* Pages break off in the middle and come again, and are sorted or not: each name comes once. */
static void list_in_a_world(uint64_t seed)
{
    static const char *const names[] = {"a", "b", "c", "d", "e/x", "f", "g/y"};
    tn_rc rc = TN_IO;
    open_world_of(seed, "l/", names, COUNT(names));
    for (int tries = 0; rc != TN_OK; tries++) {
        draw_faults(tries);
        listed_count = 0;
        rc = w.target->vtable->list(w.target, "l/", add_name, NULL, &w.err);
    }
    CHECK(listed_count == COUNT(names));
    for (size_t i = 0; i < COUNT(names); i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(names[i], "xy"), names[i]);
        CHECK(times_listed(name) == 1);
    }
    close_world();
}

static void list_loses_no_row_in_any_world(void)
{
    each_world(list_in_a_world, 8);
}

/* Files below folders: those behind a name are told, once, in whatever pages. */
static void walk_in_a_world(uint64_t seed)
{
    static const char *const names[] = {"a-b/1", "a/1", "a/10", "a/9", "b/2", "c"};
    open_world_of(seed, "w/", names, COUNT(names));
    size_t first = random_below(&w.random, COUNT(names));
    struct tn_io_walk walk = {
        .path = "w/", .after = first > 0 ? names[first - 1] : NULL, .each = add_name};
    tn_rc rc = TN_IO;
    for (int tries = 0; rc != TN_OK; tries++) {
        draw_faults(tries);
        listed_count = 0;
        rc = w.target->vtable->walk(w.target, &walk, &w.err);
    }
    for (size_t i = 0; i < COUNT(names); i++) {
        uint32_t times = times_listed(names[i]);
        CHECK(times == 1 || (i < first && times == 0));
    }
    CHECK(listed_count == COUNT(names) - first || w.store.model.unsorted);
    close_world();
}

static void walk_loses_no_file_in_any_world(void)
{
    each_world(walk_in_a_world, 16);
}

static bool *enough_then;

static tn_rc add_name_and_end(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    *enough_then = true;
    return add_name(user, name, is_dir, err);
}

static void walk_ends_when_it_is_enough(void)
{
    open_world(given_number("SEED", 1));
    for (int i = 0; i < 7; i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "w/a/%d", i);
        CHECK(publish(path, "1") == TN_OK);
    }
    struct tn_io_walk walk = {.path = "w/", .each = add_name_and_end};
    enough_then = &walk.enough;
    listed_count = 0;
    int lists = w.store.model.lists;
    tn_rc rc = w.target->vtable->walk(w.target, &walk, &w.err);
    CHECK_OK(rc, w.err);
    CHECK(listed_count == 3 && w.store.model.lists == lists + 1);
    walk = (struct tn_io_walk){.path = "x/", .each = add_name};
    CHECK(w.target->vtable->walk(w.target, &walk, &w.err) == TN_ABSENT);
    close_world();
}

/* ---- many at once ---- */

static int64_t now_ms(void)
{
    return w.clock.passed_ns / 1000000;
}

enum { ASKED = 20, ASKED_ROOM = 32 };

static struct asked {
    alignas(16) char room[ASKED_ROOM];
    char path[16];
    char text[48];
} asked[ASKED];
static struct tn_io_ask asks[ASKED];

/* Each third isn't there; some are larger than their room. */
static void make_asked(void)
{
    for (int i = 0; i < ASKED; i++) {
        struct asked *a = &asked[i];
        int size = random_below(&w.random, 3) == 0 ? ASKED_ROOM + (int)random_below(&w.random, 9)
                                                   : (int)random_below(&w.random, ASKED_ROOM);
        (void)snprintf(a->path, sizeof a->path, "m/%d", i);
        memset(a->text, 'a' + i, sizeof a->text);
        a->text[size] = 0;
        CHECK(i % 3 == 0 || publish(a->path, a->text) == TN_OK);
    }
}

static void set_asks(enum tn_io_ask_verb verb)
{
    for (int i = 0; i < ASKED; i++) {
        memset(asked[i].room, 1, sizeof asked[i].room);
        asks[i] = (struct tn_io_ask){.verb = verb,
                                     .path = asked[i].path,
                                     .room = asked[i].room,
                                     .room_size = sizeof asked[i].room};
    }
}

static void ask_until_it_answers(enum tn_io_ask_verb verb)
{
    tn_rc rc = TN_IO;
    for (int tries = 0; rc != TN_OK; tries++) {
        draw_faults(tries);
        set_asks(verb);
        rc = w.target->vtable->ask(w.target, asks, ASKED, &w.err);
        if (rc != TN_OK) {
            check_error(rc);
        }
    }
}

static void ask_in_a_world(uint64_t seed)
{
    open_world(seed);
    make_asked();
    ask_until_it_answers(TN_IO_ASK_STAT);
    for (int i = 0; i < ASKED; i++) {
        CHECK(asks[i].rc == (i % 3 == 0 ? TN_ABSENT : TN_OK));
        CHECK(i % 3 == 0 || asks[i].size == strlen(asked[i].text));
    }
    ask_until_it_answers(TN_IO_ASK_READ);
    for (int i = 0; i < ASKED; i++) {
        bool fits = strlen(asked[i].text) < ASKED_ROOM;
        CHECK(asks[i].rc == (i % 3 == 0 ? TN_ABSENT : fits ? TN_OK : TN_INVALID));
        CHECK(asks[i].rc != TN_OK ||
              (asks[i].size == strlen(asked[i].text) && strcmp(asked[i].room, asked[i].text) == 0));
    }
    ask_until_it_answers(TN_IO_ASK_UNLINK);
    for (int i = 0; i < ASKED; i++) {
        CHECK(asks[i].rc == TN_OK && !object_at(asked[i].path));
    }
    close_world();
}

static void what_is_asked_at_once_is_answered_each_in_every_world(void)
{
    each_world(ask_in_a_world, 16);
}

static int64_t ms_of_asks(uint32_t at_once)
{
    int64_t begin_ms = now_ms();
    for (uint32_t at = 0; at < ASKED; at += at_once) {
        tn_rc rc = w.target->vtable->ask(w.target, asks + at, at_once, &w.err);
        CHECK_OK(rc, w.err);
    }
    return now_ms() - begin_ms;
}

/* As many are under way as there are connections: four. Some answers are slow, and are waited for.
 */
static void many_take_less_time_than_one_by_one(void)
{
    open_world(given_number("SEED", 1));
    w.store.model.lasts = true;
    make_asked();
    set_asks(TN_IO_ASK_STAT);
    int64_t all_ms = ms_of_asks(ASKED);
    all_ms = ms_of_asks(ASKED);
    int64_t each_ms = ms_of_asks(1);
    if (2 * each_ms < 3 * all_ms) {
        FAIL("%d ms at once, %d ms one by one", (int)all_ms, (int)each_ms);
    }
    close_world();
}

/* ---- what it says ---- */

static void it_keeps_the_contract_of_targets(void)
{
    static struct contract contract;
    open_world(given_number("SEED", 1));
    contract = (struct contract){.target = w.target, .from = &w.source.io};
    contract_files(&contract);
    contract_small_files(&contract);
    contract_fetch(&contract);
    contract_remove(&contract);
    contract_stop(&contract);
    close_world();
}

static void set_mood(enum mood mood, int status)
{
    w.store.mood_percent = mood == FINE ? 0 : 100;
    w.store.only = mood;
    w.store.status = status;
}

static void store_that_does_not_answer_is_waited_for_as_long_as_was_asked(void)
{
    open_world(1);
    tn_net_close_listener(w.store.listener);
    int64_t began_ms = now_ms();
    CHECK(publish("s", "x") == TN_IO);
    CHECK(strstr(w.err.text, "store has not answered for "));
    CHECK(tn_s3_target_trouble(w.target) == TN_S3_TROUBLE_NETWORK);
    CHECK(now_ms() - began_ms >= PATIENCE_MS && now_ms() - began_ms < 3 * PATIENCE_MS);
    far_listen(&w.store);
    CHECK(publish("s", "x") == TN_OK);
    CHECK(tn_s3_target_trouble(w.target) == TN_S3_TROUBLE_NONE);
    close_world();
}

static void refusal_for_a_person_is_told_at_once(void)
{
    open_world(1);
    set_mood(FAILS_BEFORE, 403);
    int64_t began_ms = now_ms();
    CHECK(publish("s", "x") == TN_IO);
    CHECK(strstr(w.err.text, "permission denied"));
    CHECK(tn_s3_target_trouble(w.target) == TN_S3_TROUBLE_PERMISSION);
    CHECK(now_ms() - began_ms < 2000 && w.store.served <= 3); /* the clock may be why: once again */
    set_mood(FAILS_BEFORE, 507);
    CHECK(publish("s", "x") == TN_IO);
    CHECK(tn_s3_target_trouble(w.target) == TN_S3_TROUBLE_QUOTA);
    set_mood(FINE, 0);
    CHECK(publish("s", "x") == TN_OK);
    close_world();
}

/* A body takes longer than there is patience, and is lost at its end: that is no reason to give up
 * at once. */
static void sending_slowly_is_not_waiting(void)
{
    open_world(1);
    file_count = 0;
    make_file(1700);
    close_target();
    open_target(3000, 100);
    set_mood(RESETS_BEFORE, 0);
    w.store.moods_left = 2;
    CHECK(send_all() == TN_OK);
    check_all_there();
    CHECK(w.target->counts.requests[TN_TARGET_PUT] == 2);
    set_mood(RESETS_BEFORE, 0); /* but not for ever */
    int64_t began_ms = now_ms();
    CHECK(publish("s", "text") == TN_IO);
    CHECK(now_ms() - began_ms < 60000);
    close_world();
}

/* Who pauses commits rests on it that a name isn't asked for any more after a while, whatever the
 * store does, and whatever each try is told. */
static void name_is_not_asked_for_after_the_patience(void)
{
    static const struct {
        enum mood mood;
        int status;
    } moods[] = {{FAILS_BEFORE, 500}, {FAILS_BEFORE, 503}, {RESETS_BEFORE, 0}, {NEVER, 0}};
    for (size_t i = 0; i < COUNT(moods); i++) {
        open_world(i + 1);
        w.store.only_puts = true;
        set_mood(moods[i].mood, moods[i].status);
        int64_t began_ms = now_ms();
        tn_rc rc = publish("s", "x");
        CHECK(rc == TN_IO && tn_s3_target_trouble(w.target) != TN_S3_TROUBLE_NONE);
        CHECK(now_ms() - began_ms < PATIENCE_MS + 1000);
        uint64_t served = w.store.served;
        set_mood(FINE, 0);
        (void)tn_net_turn(w.here, 1000);
        CHECK(w.store.served == served);
        close_world();
    }
}

/* Half a second and up, doubled each time: a store that is busy isn't asked again and again. */
static void pauses_grow(void)
{
    open_world(1);
    set_mood(FAILS_BEFORE, 503);
    CHECK(publish("s", "x") == TN_IO);
    CHECK(w.store.served >= 5 && w.store.served <= 11);
    CHECK(strstr(w.err.text, "has put us off for "));
    CHECK(tn_s3_target_trouble(w.target) == TN_S3_TROUBLE_STORE);
    close_world();
}

/* Nobody knows what comes of a PUT, and each look says that nothing has. */
static void store_that_only_fails_is_given_up(void)
{
    open_world(1);
    file_count = 0;
    make_file(100);
    make_file(3000);
    set_mood(FAILS_BEFORE, 500);
    w.store.only_puts = true;
    int64_t began_ms = now_ms();
    CHECK(send_file(&files[0]) == TN_OK);
    CHECK(w.target->vtable->settle(w.target, &w.err) == TN_IO);
    CHECK(strstr(w.err.text, "has put us off for ") && strstr(w.err.text, "the store failed (500"));
    CHECK(tn_s3_target_trouble(w.target) == TN_S3_TROUBLE_STORE);
    w.target->vtable->drop(w.target);
    CHECK(send_file(&files[1]) == TN_IO);
    w.target->vtable->drop(w.target);
    CHECK(publish("s", "x") == TN_IO);
    CHECK(now_ms() - began_ms < 10 * PATIENCE_MS);
    close_world();
}

/* What the store asks for is a pause of its own, or too long to wait for. */
static void store_is_asked_again_when_it_says_so(void)
{
    uint64_t size = 0;
    open_world(1);
    w.store.retry_after = 20;
    int64_t began_ms = now_ms();
    CHECK(w.target->vtable->stat(w.target, "x", &size, &w.err) == TN_ABSENT);
    CHECK(now_ms() - began_ms >= 20000 && now_ms() - began_ms < 22000);
    w.store.retry_after = 600;
    CHECK(w.target->vtable->stat(w.target, "x", &size, &w.err) == TN_IO);
    CHECK(strstr(w.err.text, "store has put us off for 600 s"));
    CHECK(now_ms() - began_ms < 30000);
    close_world();
}

static void files_that_the_source_lacks_are_told(void)
{
    open_world(1);
    file_count = 0;
    make_file(100);
    CHECK(w.target->vtable->send(w.target, &w.source.io, "db.db/none", 5, &w.err) == TN_ABSENT);
    files[0].size = 99;
    CHECK(send_file(&files[0]) == TN_CORRUPT);
    w.target->vtable->drop(w.target);
    w.target->vtable->drop(w.target);
    files[0].size = 100;
    CHECK(send_all() == TN_OK);
    check_all_there();
    close_world();
}

/* One that is there with another size is nobody's to overwrite; the error comes with `settle` and
 * stays until `drop`. */
static void file_of_another_size_is_a_conflict(void)
{
    open_world(1);
    file_count = 0;
    make_file(100);
    make_file(2500);
    for (uint32_t i = 0; i < file_count; i++) {
        char key[128];
        (void)snprintf(key, sizeof key, "lake/%.63s", files[i].path);
        model_make(&w.store.model, key)->bytes.size = 50 + i;
    }
    CHECK(send_file(&files[0]) == TN_OK);
    CHECK(w.target->vtable->settle(w.target, &w.err) == TN_CONFLICT);
    CHECK(strstr(w.err.text, files[0].path) && strstr(w.err.text, "50 bytes, ours has 100"));
    CHECK(w.target->vtable->settle(w.target, &w.err) == TN_CONFLICT);
    CHECK(publish("s", "x") == TN_CONFLICT);
    w.target->vtable->drop(w.target);
    CHECK(send_file(&files[1]) == TN_CONFLICT);
    CHECK(strstr(w.err.text, "51 bytes, ours has 2500"));
    w.target->vtable->drop(w.target);
    CHECK(w.target->vtable->settle(w.target, &w.err) == TN_OK);
    close_world();
}

/* A PUT for a file that a store answers as if the name had to be there. */
static void answer_of_no_such_key_is_no_lack_of_the_source(void)
{
    open_world(1);
    file_count = 0;
    make_file(100);
    set_mood(FAILS_BEFORE, 404);
    w.store.only_puts = true;
    CHECK(send_file(&files[0]) == TN_OK);
    CHECK(w.target->vtable->settle(w.target, &w.err) == TN_IO);
    CHECK(send_file(&files[0]) == TN_IO && w.err.code == TN_IO);
    CHECK(publish("s", "x") == TN_IO && w.err.code == TN_IO);
    close_world();
}

static void only_few_verbs_are_used(void)
{
    uint64_t size = 0;
    struct tn_bytes bytes;
    open_world(1);
    file_count = 0;
    for (int i = 0; i < 4; i++) {
        make_file(500);
    }
    CHECK(send_all() == TN_OK && publish("s", "x") == TN_OK);
    CHECK(w.target->vtable->stat(w.target, "s", &size, &w.err) == TN_OK && size == 1);
    CHECK(w.target->vtable->read(w.target, "s", 10, &w.results, &bytes, &w.err) == TN_OK);
    CHECK(w.target->vtable->read(w.target, "none", 10, &w.results, &bytes, &w.err) == TN_ABSENT);
    CHECK(w.target->vtable->stat(w.target, "none", &size, &w.err) == TN_ABSENT);
    const struct tn_target_counts *counts = &w.target->counts;
    CHECK(counts->requests[TN_TARGET_PUT] == 5 && counts->requests[TN_TARGET_HEAD] == 2);
    CHECK(counts->requests[TN_TARGET_GET] == 2 && counts->requests[TN_TARGET_LIST] == 0);
    CHECK(counts->requests[TN_TARGET_DELETE] == 0);
    CHECK(counts->bytes_sent == 4 * 500 + 1 && counts->bytes_received == 1);
    CHECK(w.store.served == 9);
    close_world();
}

static void stop_ends_a_call_soon(void)
{
    atomic_bool stop = true;
    open_world(1);
    file_count = 0;
    make_file(1000);
    w.target->stop = &stop;
    set_mood(NEVER, 0);
    int64_t began_ms = now_ms();
    CHECK(publish("s", "x") == TN_CANCELED);
    (void)send_file(&files[0]);
    CHECK(w.target->vtable->settle(w.target, &w.err) == TN_CANCELED);
    w.target->vtable->drop(w.target);
    CHECK(now_ms() - began_ms < 3000);
    stop = false;
    set_mood(FINE, 0);
    CHECK(send_all() == TN_OK);
    check_all_there();
    close_world();
}

/* A file that is half written, or gone, changes nothing. */
static void credentials_are_read_again_when_their_file_has_changed(void)
{
    open_world(1);
    CHECK(publish("a", "x") == TN_OK && strstr(w.store.model.headers, "Credential=first/"));
    write_credentials("other");
    CHECK(publish("b", "x") == TN_OK && strstr(w.store.model.headers, "Credential=other/"));
    write_credentials("");
    CHECK(publish("c", "x") == TN_OK && strstr(w.store.model.headers, "Credential=other/"));
    CHECK(w.memos.io.vtable->unlink(&w.memos.io, "credentials", &w.err) == TN_OK);
    CHECK(publish("d", "x") == TN_OK && strstr(w.store.model.headers, "Credential=other/"));
    write_credentials("third");
    CHECK(publish("e", "x") == TN_OK && strstr(w.store.model.headers, "Credential=third/"));
    close_world();
}

/* Who writes no token means none, at any time. */
static void empty_token_is_none(void)
{
    open_world(1);
    write_credentials_with("a", "aws_session_token = tick\n");
    CHECK(publish("a", "x") == TN_OK &&
          strstr(w.store.model.headers, "x-amz-security-token: tick\r"));
    write_credentials_with("b", "aws_session_token =\n");
    CHECK(publish("b", "x") == TN_OK && !strstr(w.store.model.headers, "x-amz-security-token"));
    close_world();
}

/* Once, and then all requests are signed for it, over connections that are new. */
static void bucket_of_another_region_is_found(void)
{
    uint64_t size = 0;
    open_world(1);
    CHECK(w.target->vtable->stat(w.target, "x", &size, &w.err) == TN_ABSENT);
    uint64_t links = w.net.links_asked;
    w.store.region = "eu-south-9";
    CHECK(w.target->vtable->stat(w.target, "x", &size, &w.err) == TN_ABSENT);
    CHECK(w.target->vtable->stat(w.target, "x", &size, &w.err) == TN_ABSENT);
    CHECK(w.target->counts.requests[TN_TARGET_HEAD] == 4 && w.net.links_asked == links + 1);
    close_world();
}

/* ---- uploads by parts that are remembered ---- */

static void write_memo(const char *text)
{
    struct tn_err err;
    (void)w.memos.io.vtable->unlink(&w.memos.io, "uploads", &err);
    tn_rc rc = tn_io_write_new(&w.memos.io, "uploads", tn_bytes_of(text), &err);
    CHECK_OK(rc, err);
}

/* An upload that the store knows, of a file of three parts. */
static int begin_upload(const char *path)
{
    struct model_upload *upload = &w.store.model.uploads[++w.store.model.ids % MODEL_UPLOADS];
    upload->id = w.store.model.ids;
    (void)snprintf(upload->key, sizeof upload->key, "lake/%.100s", path);
    return upload->id;
}

/* Two parts of it are there, one of them with another size: that one is sent again. */
static void upload_that_is_remembered_goes_on(void)
{
    char text[256];
    open_world(1);
    file_count = 0;
    make_file(2500);
    int id = begin_upload(files[0].path);
    struct model_upload *upload = &w.store.model.uploads[id % MODEL_UPLOADS];
    memcpy(upload->parts[0].data, files[0].bytes, PART);
    upload->parts[0].size = PART;
    upload->parts[1].size = PART - 1;
    upload->have[0] = upload->have[1] = true;
    (void)snprintf(text, sizeof text, "lake/%s\tid/%d+=\t2500\t%d\t%" PRId64 "\n", files[0].path,
                   id, PART, w.clock.wall_ms);
    write_memo(text);
    CHECK(send_all() == TN_OK);
    check_all_there();
    CHECK(w.target->counts.bytes_sent < 2500);
    CHECK(uploads_there() == 0 && memo_size() == 0);
    close_world();
}

/* Not this file any more; of a file that is there by now; gone; and not for a week. */
static void uploads_of_no_use_are_given_up(void)
{
    char text[512];
    open_world(1);
    file_count = 0;
    make_file(2500);
    make_file(2600);
    int other = begin_upload(files[0].path);
    int old = begin_upload("db.db/t/old");
    int64_t now = w.clock.wall_ms;
    (void)snprintf(text, sizeof text,
                   "lake/%s\tid/%d+=\t2501\t%d\t%" PRId64 "\n"
                   "lake/%s\tid/99+=\t2600\t%d\t%" PRId64 "\n"
                   "lake/db.db/t/old\tid/%d+=\t5000\t900\t%" PRId64 "\n",
                   files[0].path, other, PART, now, files[1].path, PART, now, old,
                   now - INT64_C(8) * 24 * 60 * 60 * 1000);
    write_memo(text);
    CHECK(send_all() == TN_OK);
    check_all_there();
    CHECK(uploads_there() == 0 && memo_size() == 0);
    close_world();
}

/* A week counts from when somebody last went on with it. */
static void upload_that_goes_on_slowly_is_not_given_up(void)
{
    char text[256];
    open_world(1);
    file_count = 0;
    make_file(2500);
    int id = begin_upload(files[0].path);
    struct model_upload *upload = &w.store.model.uploads[id % MODEL_UPLOADS];
    memcpy(upload->parts[0].data, files[0].bytes, PART);
    upload->parts[0].size = PART;
    upload->have[0] = true;
    (void)snprintf(text, sizeof text, "lake/%s\tid/%d+=\t2500\t%d\t%" PRId64 "\n", files[0].path,
                   id, PART, w.clock.wall_ms - 6 * DAY_MS);
    write_memo(text);
    w.store.parts_fail = true; /* its completion */
    CHECK(send_file(&files[0]) == TN_IO && uploads_there() == 1);
    w.target->vtable->drop(w.target);
    close_target();
    open_target(PATIENCE_MS, 0);
    w.clock.wall_ms += 6 * DAY_MS; /* a week and more since its beginning */
    CHECK(w.target->vtable->settle(w.target, &w.err) == TN_OK);
    CHECK(uploads_there() == 1 && memo_size() > 0);
    w.clock.wall_ms += 2 * DAY_MS;
    CHECK(w.target->vtable->settle(w.target, &w.err) == TN_OK);
    CHECK(uploads_there() == 0 && memo_size() == 0);
    close_world();
}

/* The answer to its creation is lost, and comes with the second try: one is left over. */
static void upload_whose_creation_was_not_heard_is_given_up(void)
{
    for (uint32_t rights = 0; rights < 2; rights++) {
        denied = rights == 1 ? MODEL_PUT_AND_GET : 0;
        open_world(1);
        file_count = 0;
        make_file(2500);
        w.store.creations_lost = 2;
        CHECK(send_all() == TN_OK);
        check_all_there();
        CHECK(w.store.model.lists > 0 && memo_size() == 0);
        CHECK(uploads_there() == (rights == 1 ? 2 : 0)); /* the bucket's rules take them */
        close_world();
    }
    denied = 0;
}

/* ... or we are killed before it comes. */
static void upload_whose_creation_was_not_heard_is_found_after_a_restart(void)
{
    open_world(1);
    file_count = 0;
    make_file(2500);
    w.store.creations_lost = 1000;
    CHECK(send_file(&files[0]) == TN_IO);
    CHECK(uploads_there() > 0 && memo_size() > 0);
    w.target->vtable->drop(w.target);
    close_target();
    open_target(PATIENCE_MS, 0);
    w.store.creations_lost = 0;
    w.store.model.lists = 0;
    CHECK(send_all() == TN_OK);
    check_all_there();
    CHECK(w.store.model.lists > 0 && uploads_there() == 0 && memo_size() == 0);
    close_world();
}

/* Nobody asks for uploads where all is well. */
static void parts_cost_no_list(void)
{
    open_world(1);
    make_two_files();
    CHECK(send_all() == TN_OK);
    CHECK(w.store.model.lists == 0 && w.target->counts.requests[TN_TARGET_LIST] == 0);
    close_world();
}

/* Who may not ask which parts are there sends them all again. */
static void upload_of_who_may_not_list_parts_begins_again(void)
{
    open_world(1);
    file_count = 0;
    make_file(2500);
    w.store.parts_fail = true;
    CHECK(send_file(&files[0]) == TN_IO);
    w.target->vtable->drop(w.target);
    w.store.parts_fail = false;
    w.store.model.denied = MODEL_PUT_AND_GET;
    uint64_t sent = w.target->counts.bytes_sent;
    CHECK(send_all() == TN_OK);
    check_all_there();
    CHECK(w.target->counts.bytes_sent - sent > 2500 && memo_size() == 0);
    close_world();
}

/* Nobody says what came of a completion: it goes again. */
static void who_may_not_list_parts_completes_again(void)
{
    denied = MODEL_PUT_AND_GET;
    open_world(1);
    file_count = 0;
    make_file(2500);
    w.store.completions_fail = 2;
    CHECK(send_all() == TN_OK);
    check_all_there();
    CHECK(uploads_there() == 0 && memo_size() == 0);
    denied = 0;
    close_world();
}

/* Whose parts can't be asked for is not gone: it stays remembered, and goes on later. */
static void upload_whose_parts_cannot_be_asked_for_stays(void)
{
    open_world(1);
    file_count = 0;
    make_file(2500);
    w.store.parts_fail = true;
    w.store.parts_status = 401;
    CHECK(send_file(&files[0]) == TN_IO);
    CHECK(strstr(w.err.text, "permission denied"));
    CHECK(uploads_there() == 1 && memo_size() > 0);
    w.target->vtable->drop(w.target);
    w.store.parts_fail = false;
    uint64_t sent = w.target->counts.bytes_sent;
    CHECK(send_all() == TN_OK);
    check_all_there();
    CHECK(w.target->counts.bytes_sent - sent < 1000); /* of its completion */
    CHECK(uploads_there() == 0 && memo_size() == 0);
    close_world();
}

static void upload_that_is_never_completed_is_an_error_of_the_store(void)
{
    open_world(1);
    file_count = 0;
    make_file(2500);
    w.store.parts_fail = true;
    CHECK(send_file(&files[0]) == TN_IO && w.err.code == TN_IO);
    CHECK(strstr(w.err.text, "its parts don't become a file"));
    CHECK(tn_s3_target_trouble(w.target) == TN_S3_TROUBLE_STORE);
    CHECK(uploads_there() == 1 && memo_size() > 0);
    close_world();
}

/* A store that has died in the middle of an upload that isn't remembered, and a caller who stops.
 */
static void who_stops_does_not_wait_for_a_dead_store(void)
{
    static atomic_bool stop;
    open_world(1);
    file_count = 0;
    make_file(2500);
    w.memos.capacity = 0; /* nothing can be kept */
    CHECK(w.target->vtable->stat(w.target, "x", &(uint64_t){0}, &w.err) == TN_ABSENT);
    set_mood(NEVER, 0);
    w.store.only_puts = true; /* it was created by a POST */
    atomic_store(&stop, false);
    w.target->stop = &stop;
    stop_at_ms = now_ms() + 5000;
    stop_then = &stop;
    CHECK(send_file(&files[0]) == TN_CANCELED);
    CHECK(uploads_there() == 1);
    for (uint64_t i = 1; i < 5; i++) {
        sim_net_fault(&w.net, w.net.links_asked + i, SIM_LINK_LOST, 0);
    }
    w.store.only_puts = false;
    int64_t began_ms = now_ms();
    w.target->vtable->drop(w.target);
    CHECK(now_ms() - began_ms < 8000);
    stop_then = NULL;
    close_world();
}

static void memo_that_nobody_can_read_is_forgotten(void)
{
    static const char *const texts[] = {"",
                                        "\n\n",
                                        "a",
                                        "a\tb\tc\td\te",
                                        "\t\t\t\t",
                                        "a\tb\t1\t2\t3\t4",
                                        "a\tb\t1\t2\t99999999999999999999\n"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        open_world(i + 1);
        write_memo(texts[i]);
        file_count = 0;
        make_file(2500);
        CHECK(send_all() == TN_OK);
        check_all_there();
        close_world();
    }
}

/* ---- what users of others have reported ---- */

static int64_t busy_ms[8]; /* when a key was asked for, while it was put off */
static int busy_count;
static int (*turn_before)(struct tn_net *net, uint32_t wait_ms);

static int turn_and_note(struct tn_net *net, uint32_t wait_ms)
{
    int left = w.store.busy_left;
    int done = turn_before(net, wait_ms);
    for (; left > w.store.busy_left; left--) {
        busy_ms[busy_count++] = now_ms();
    }
    return done;
}

/* fluent/fluent-bit#9214: retries without a pause. The first six PUTs of one object are put off:
 * half a second to sixteen, less up to half, lie between them; all others go on meanwhile, and
 * nothing is given up. */
static void object_that_is_put_off_is_asked_for_after_growing_pauses(void)
{
    enum { PUT_OFF = 6 };
    for (uint64_t seed = 1; seed < 20; seed++) {
        open_world(seed);
        file_count = 0;
        for (int i = 0; i < 6; i++) {
            make_file(500);
        }
        busy_count = 0;
        w.store.busy_key = "data-0.orc";
        w.store.busy_left = PUT_OFF;
        turn_before = w.turning.turn;
        w.turning.turn = turn_and_note;
        CHECK(send_file(&files[0]) == TN_OK);
        int64_t others_ms = now_ms();
        for (uint32_t i = 1; i < file_count; i++) {
            CHECK(send_file(&files[i]) == TN_OK);
        }
        CHECK(now_ms() - others_ms < 5000 && w.store.busy_left > 0);
        CHECK(w.target->vtable->settle(w.target, &w.err) == TN_OK);
        check_all_there();
        CHECK(busy_count == PUT_OFF && w.store.busy_left == 0);
        for (int i = 1; i < PUT_OFF; i++) {
            int64_t pause_ms = busy_ms[i] - busy_ms[i - 1];
            CHECK(pause_ms >= (250 << (i - 1)) && pause_ms <= (500 << (i - 1)) + 500);
        }
        close_world();
    }
}

static void refuse_the_first(struct model *m)
{
    m->refusal = strstr(m->headers, "Credential=first/") ? "ExpiredToken" : NULL;
}

/* vectordotdev/vector#13455, fluent/fluent-bit-docs#965: a refusal was final, and new credentials
 * needed a restart. For five minutes each try ends with the reason, then their file is replaced. */
static void expired_credentials_go_on_when_their_file_is_replaced(void)
{
    open_world(1);
    make_two_files();
    w.store.model.refusal = "ExpiredToken";
    for (int i = 0; i < 10; i++) {
        sim_clock_advance_ms(&w.clock, 30 * 1000);
        CHECK(send_file(&files[0]) == TN_OK);
        CHECK(w.target->vtable->settle(w.target, &w.err) == TN_IO);
        CHECK(strstr(w.err.text, "the session token has expired"));
        CHECK(tn_s3_target_trouble(w.target) == TN_S3_TROUBLE_CREDENTIALS);
        w.target->vtable->drop(w.target);
    }
    w.store.model.refusal = NULL;
    w.store.model.asked = refuse_the_first;
    write_credentials("second");
    CHECK(send_all() == TN_OK);
    check_all_there();
    close_world();
}

static int64_t signed_ms[16];
static int signed_count;

/* "x-amz-date: 20240101T000102Z", of one day. */
static void note_date(struct model *m)
{
    static char text[MODEL_TEXT];
    unsigned hours;
    unsigned minutes;
    unsigned seconds;
    CHECK(model_header(m, "x-amz-date", text) && signed_count < 16);
    CHECK(sscanf(text, "20240101T%2u%2u%2uZ", &hours, &minutes, &seconds) == 3);
    signed_ms[signed_count++] = (int64_t)((hours * 60 + minutes) * 60 + seconds) * 1000;
}

/* aws/aws-sdk-js#399: what was signed long before it was sent was refused. At 20 bytes a second a
 * file of 1,000 waits for long: each is signed when it begins. */
static void what_goes_slowly_is_signed_when_it_begins(void)
{
    enum { RATE = 20, SIZE = 1000 };
    open_world(1);
    file_count = 0;
    for (uint32_t i = 0; i < FILES_MAX; i++) {
        make_file(SIZE);
    }
    close_target();
    open_target(PATIENCE_MS, RATE);
    signed_count = 0;
    w.store.model.asked = note_date;
    int64_t began_ms = w.clock.wall_ms;
    tn_rc rc = send_all();
    CHECK_OK(rc, w.err);
    CHECK(signed_count == FILES_MAX);
    int64_t took_ms = w.clock.wall_ms - began_ms;
    CHECK(took_ms > FILES_MAX * SIZE / RATE * 1000);
    CHECK(signed_ms[FILES_MAX - 1] - signed_ms[0] > took_ms / 2); /* four at once */
    close_world();
}

/* ---- pace ---- */

/* Sends all files at this rate; returns bytes a second, with what is around them. */
static double measure(uint32_t rate)
{
    memset(w.store.model.objects, 0, sizeof w.store.model.objects);
    close_target();
    open_target(PATIENCE_MS, rate);
    uint64_t written = w.here->counts.bytes_written;
    int64_t began_ms = now_ms();
    CHECK(send_all() == TN_OK);
    check_all_there();
    int64_t took_ms = now_ms() - began_ms;
    CHECK(took_ms > 10000);
    return (double)(w.here->counts.bytes_written - written) * 1000 / (double)took_ms;
}

static void rate_holds_within_a_twentieth(void)
{
    static const uint32_t rates[] = {3500, 1000, 250};
    open_world(given_number("SEED", 1));
    file_count = 0;
    for (uint32_t i = 0; i < FILES_MAX; i++) {
        make_file(FILE_MAX);
    }
    for (size_t i = 0; i < COUNT(rates); i++) {
        double rate = measure(rates[i]);
        CHECK(rate > 0.95 * rates[i] && rate < 1.05 * rates[i]);
    }
    close_world();
}

static const struct test tests[] = {
    TEST(all_that_settled_is_there_in_every_world),
    TEST(what_is_published_is_there_and_stays_in_every_world),
    TEST(owner_counts_up_in_every_world),
    TEST(swap_loses_to_who_was_faster),
    TEST(what_is_fetched_is_whole_in_every_world),
    TEST(file_that_changes_while_it_is_fetched_is_an_error),
    TEST(who_may_put_and_get_needs_no_more),
    TEST(hidden_name_is_absent),
    TEST(hidden_name_costs_one_request_where_that_will_do),
    TEST(forbidden_for_a_moment_is_no_lack),
    TEST(whether_a_store_hides_is_learned_anew),
    TEST(who_may_not_put_is_told_so),
    TEST(what_may_not_be_read_is_never_replaced),
    TEST(refusal_of_a_look_is_told_in_words),
    TEST(list_loses_no_row_in_any_world),
    TEST(walk_loses_no_file_in_any_world),
    TEST(walk_ends_when_it_is_enough),
    TEST(what_is_asked_at_once_is_answered_each_in_every_world),
    TEST(many_take_less_time_than_one_by_one),
    TEST(it_keeps_the_contract_of_targets),
    TEST(store_that_does_not_answer_is_waited_for_as_long_as_was_asked),
    TEST(refusal_for_a_person_is_told_at_once),
    TEST(sending_slowly_is_not_waiting),
    TEST(name_is_not_asked_for_after_the_patience),
    TEST(pauses_grow),
    TEST(store_that_only_fails_is_given_up),
    TEST(store_is_asked_again_when_it_says_so),
    TEST(files_that_the_source_lacks_are_told),
    TEST(file_of_another_size_is_a_conflict),
    TEST(answer_of_no_such_key_is_no_lack_of_the_source),
    TEST(only_few_verbs_are_used),
    TEST(stop_ends_a_call_soon),
    TEST(credentials_are_read_again_when_their_file_has_changed),
    TEST(empty_token_is_none),
    TEST(bucket_of_another_region_is_found),
    TEST(upload_that_is_remembered_goes_on),
    TEST(uploads_of_no_use_are_given_up),
    TEST(upload_that_goes_on_slowly_is_not_given_up),
    TEST(upload_whose_creation_was_not_heard_is_given_up),
    TEST(upload_whose_creation_was_not_heard_is_found_after_a_restart),
    TEST(parts_cost_no_list),
    TEST(upload_of_who_may_not_list_parts_begins_again),
    TEST(who_may_not_list_parts_completes_again),
    TEST(upload_whose_parts_cannot_be_asked_for_stays),
    TEST(upload_that_is_never_completed_is_an_error_of_the_store),
    TEST(who_stops_does_not_wait_for_a_dead_store),
    TEST(memo_that_nobody_can_read_is_forgotten),
    TEST(object_that_is_put_off_is_asked_for_after_growing_pauses),
    TEST(expired_credentials_go_on_when_their_file_is_replaced),
    TEST(what_goes_slowly_is_signed_when_it_begins),
    TEST(rate_holds_within_a_twentieth),
};

int main(int argc, char **argv)
{
    static alignas(16) unsigned char xml_memory[XML_HEAP];
    static struct tn_heap xml;
    tn_heap_init(&xml, xml_memory, sizeof xml_memory, true);
    tn_xml_use_heap(&xml);
    return run_tests(argc, argv, tests, COUNT(tests));
}
