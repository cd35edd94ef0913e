/* Random calls of io.h on a lake, in a folder and in a store that fails, and the same on a plain
 * disk: what is read, found and listed is the same. A second machine at the same lake sees what was
 * synced, and nothing else; who starts again has lost what wasn't. */
#include "upload/lake_io.h"

#include <stdalign.h>

#include "commit/publish.h"
#include "far_store.h"
#include "given.h"
#include "sim/disk.h"
#include "upload/directory.h"
#include "upload/s3_target.h"
#include "upload/xml.h"

enum {
    TARGET = 1024 * 1024,
    XML_HEAP = 128 * 1024,
    BLOCK = 512,
    DISK = 4 * 1024 * 1024,
    FILES = 12,      /* that a lake keeps in its scratch folder */
    KNOWN_MAX = 20,  /* files of the test at once */
    WAITING_MAX = 6, /* of them, not synced */
    FILE_MAX = 3000,
    STEPS = 250,
    TURNS_MAX = 4000000,
    TRIES_MAX = 40,
};

struct known {
    char path[80];
    bool synced;
};

/* One machine. */
struct machine {
    struct sim_disk scratch;
    struct tn_directory directory;
    struct tn_target *target;
    struct tn_lake_io lake;
    void *memory;
};

struct world {
    bool store; /* or a folder */
    uint64_t random;
    uint64_t seed;
    struct sim_clock clock;
    struct sim_net net;
    struct tn_net *doors[2];
    struct tn_net_vtable turning[2];
    struct tn_pool pools[3];
    struct far_store far;
    uint64_t turns;
    struct sim_disk folder;
    struct sim_disk plain;
    struct machine machines[2];
    struct known known[KNOWN_MAX];
    uint32_t known_count;
    uint32_t names;
    int64_t snapshot; /* the newest */
    uint64_t faults;
    struct tn_err err;
};

static alignas(16) unsigned char pool_memory[3][16 * (BLOCK + 8)];
static struct world w;

/* ---- the world ---- */

static int turn_world(struct tn_net *net, uint32_t wait_ms)
{
    (void)net;
    CHECK(w.turns++ < TURNS_MAX);
    return sim_net_wait(&w.net, wait_ms);
}

static void open_net(void)
{
    static const char *const names[] = {"first", "second"};
    sim_net_init(&w.net, &w.clock, w.seed);
    for (int i = 0; i < 3; i++) {
        tn_pool_init(&w.pools[i], pool_memory[i], sizeof pool_memory[i], BLOCK);
    }
    for (int i = 0; i < 2; i++) {
        w.doors[i] = sim_net_host(&w.net, names[i], &w.pools[i]);
        w.turning[i] = *w.doors[i]->vtable;
        w.turning[i].turn = turn_world;
        w.doors[i]->vtable = &w.turning[i];
    }
    w.far.net = sim_net_host(&w.net, "store", &w.pools[2]);
    w.far.random = w.seed * 131 + 1;
    w.far.model.bucket = "bucket";
    w.far.model.random = w.seed;
    w.far.model.page = 3;
    far_listen(&w.far);
}

static void open_target(struct machine *m, struct tn_arena *arena)
{
    static const struct tn_s3_options options = {
        .endpoint = "http://store", .access_key = "key", .secret_key = "secret"};
    const struct tn_s3_target_spec spec = {.net = w.doors[m - w.machines],
                                           .clock = &w.clock.clock,
                                           .arena = arena,
                                           .where = "s3://bucket/lake",
                                           .options = &options};
    tn_rc rc = w.store ? tn_s3_target_open(&spec, &m->target, &w.err)
                       : tn_directory_init(&m->directory, &w.folder.io, "lake", arena, &w.err);
    CHECK_OK(rc, w.err);
    m->target = w.store ? m->target : &m->directory.target;
}

static void start(struct machine *m)
{
    struct tn_arena arena;
    size_t size = tn_lake_io_size(FILES) + TARGET;
    m->memory = malloc(size);
    tn_arena_init(&arena, m->memory, size);
    open_target(m, &arena);
    const struct tn_lake_io_spec spec = {.target = m->target,
                                         .scratch = &m->scratch.io,
                                         .arena = &arena,
                                         .cache_size = random_below(&w.random, 3) * FILE_MAX,
                                         .files = FILES};
    tn_rc rc = tn_lake_io_open(&m->lake, &spec, &w.err);
    CHECK_OK(rc, w.err);
}

static void stop(struct machine *m)
{
    tn_lake_io_close(&m->lake);
    if (w.store) {
        tn_s3_target_close(m->target);
    }
    CHECK(sim_disk_used(&m->scratch) < FILE_MAX);
    free(m->memory);
}

static void open_world(uint64_t seed, bool store)
{
    memset(&w, 0, sizeof w);
    check_seed = seed;
    w.seed = seed;
    w.random = seed * 77 + 5;
    w.store = store;
    sim_clock_init(&w.clock, seed);
    sim_disk_init(&w.folder, DISK);
    sim_disk_init(&w.plain, DISK);
    if (store) {
        open_net();
    }
    for (int i = 0; i < 2; i++) {
        sim_disk_init(&w.machines[i].scratch, DISK);
        start(&w.machines[i]);
    }
}

static void close_world(void)
{
    for (int i = 0; i < 2; i++) {
        stop(&w.machines[i]);
        sim_disk_deinit(&w.machines[i].scratch);
    }
    if (w.store) {
        sim_net_deinit(&w.net);
    }
    sim_disk_deinit(&w.folder);
    sim_disk_deinit(&w.plain);
    check_seed = 0;
}

/* A store doesn't keep connections for ever; those whose other side is gone it would. */
static void close_far_ends(void)
{
    for (int i = 0; i < FAR_CONNECTIONS; i++) {
        far_close(&w.far.ends[i]);
    }
}

/* Only IO may come of it, and never for long. */
static void draw_faults(int tries)
{
    CHECK(tries < TRIES_MAX);
    if (w.store && random_below(&w.random, 20) == 0) {
        close_far_ends();
    }
    bool calm = !w.store || tries > TRIES_MAX / 2 || random_below(&w.random, 3) == 0;
    w.far.mood_percent = calm ? 0 : random_below(&w.random, 70);
    w.net.fault_percent = calm ? 0 : random_below(&w.random, 60);
    w.net.fault_at_max = 1 + random_below(&w.random, 9000);
}

static bool again(tn_rc rc)
{
    w.faults += rc == TN_IO && w.store;
    return rc == TN_IO && w.store;
}

/* ---- both sides ---- */

static struct tn_io *lake_io(int machine)
{
    return &w.machines[machine].lake.io;
}

static struct known *draw_known(void)
{
    return w.known_count > 0 ? &w.known[random_below(&w.random, w.known_count)] : NULL;
}

static struct tn_bytes draw_bytes(unsigned char data[FILE_MAX])
{
    size_t size = random_below(&w.random, 5) == 0 ? 0 : random_below(&w.random, FILE_MAX);
    for (size_t i = 0; i < size; i++) {
        data[i] = (unsigned char)random_next(&w.random);
    }
    return (struct tn_bytes){data, size};
}

static void make_plain_dir(const char *path)
{
    char dir[80];
    (void)snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(path, '/') - path), path);
    tn_rc rc = w.plain.io.vtable->make_dir(&w.plain.io, dir, &w.err);
    CHECK_OK(rc, w.err);
    rc = lake_io(0)->vtable->make_dir(lake_io(0), dir, &w.err);
    CHECK_OK(rc, w.err);
}

static tn_rc read_path(struct tn_io *io, const char *path, unsigned char data[FILE_MAX + 1],
                       size_t *size)
{
    uint64_t whole;
    int file;
    tn_rc rc = io->vtable->open(io, path, &file, &whole, &w.err);
    if (rc == TN_OK) {
        rc = io->vtable->read(io, file, 0, data, FILE_MAX, size, &w.err);
        CHECK(rc != TN_OK || *size == whole);
        io->vtable->close(io, file);
    }
    return rc;
}

static void same_file(int machine, const char *path, bool there)
{
    static unsigned char want[FILE_MAX + 1];
    static unsigned char got[FILE_MAX + 1];
    size_t want_size = 0;
    size_t got_size = 0;
    uint64_t size = 0;
    tn_rc rc = there ? read_path(&w.plain.io, path, want, &want_size) : TN_ABSENT;
    CHECK(rc == TN_OK || rc == TN_ABSENT);
    tn_rc found = TN_IO;
    for (int tries = 0; tries == 0 || again(found); tries++) {
        draw_faults(tries);
        found = read_path(lake_io(machine), path, got, &got_size);
    }
    CHECK(found == rc);
    CHECK(rc != TN_OK || (got_size == want_size && memcmp(got, want, got_size) == 0));
    for (int tries = 0; tries == 0 || again(found); tries++) {
        draw_faults(tries);
        found = lake_io(machine)->vtable->stat(lake_io(machine), path, &size, &w.err);
    }
    CHECK(found == rc && (rc != TN_OK || size == want_size));
}

/* ---- steps ---- */

static uint32_t waiting(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < w.known_count; i++) {
        count += !w.known[i].synced;
    }
    return count;
}

/* A new file in some pieces, opened again between two of them. */
static void write_file(void)
{
    static const char *const dirs[] = {"db.db/t/manifest", "db.db/t/p=a b/bucket-0",
                                       "db.db/t/other"};
    static unsigned char data[FILE_MAX];
    if (w.known_count == KNOWN_MAX || waiting() == WAITING_MAX) {
        return;
    }
    struct known *known = &w.known[w.known_count++];
    struct tn_bytes bytes = draw_bytes(data);
    size_t half = bytes.size / 2;
    *known = (struct known){.synced = false};
    (void)snprintf(known->path, sizeof known->path, "%s/f-%u", dirs[random_below(&w.random, 3)],
                   w.names++);
    make_plain_dir(known->path);
    struct tn_io *const ios[] = {&w.plain.io, lake_io(0)};
    for (int i = 0; i < 2; i++) {
        int file;
        tn_rc rc = tn_io_write_new(ios[i], known->path, (struct tn_bytes){data, half}, &w.err);
        CHECK_OK(rc, w.err);
        CHECK(tn_io_write_new(ios[i], known->path, bytes, &w.err) == TN_EXISTS);
        rc = ios[i]->vtable->reopen(ios[i], known->path, half / 2, &file, &w.err);
        CHECK_OK(rc, w.err);
        rc = ios[i]->vtable->append(
            ios[i], file, (struct tn_bytes){data + half / 2, bytes.size - half / 2}, &w.err);
        CHECK_OK(rc, w.err);
        ios[i]->vtable->close(ios[i], file);
    }
}

static void sync_some(void)
{
    const char *paths[KNOWN_MAX + 1];
    uint32_t count = 0;
    for (uint32_t i = 0; i < w.known_count; i++) {
        if (random_below(&w.random, 2) == 0) {
            w.known[i].synced = true;
            paths[count++] = w.known[i].path;
        }
    }
    paths[count++] = "db.db/t/manifest/";
    tn_rc rc = TN_IO;
    for (int tries = 0; tries == 0 || again(rc); tries++) {
        draw_faults(tries);
        rc = lake_io(0)->vtable->sync(lake_io(0), paths, count, &w.err);
    }
    CHECK_OK(rc, w.err);
}

static void look(void)
{
    const struct known *known = draw_known();
    char path[64];
    if (known) {
        same_file(0, known->path, true);
        same_file(1, known->path, known->synced);
    }
    (void)snprintf(path, sizeof path, "db.db/t/manifest/none-%u", w.names);
    same_file(0, path, true);
    (void)snprintf(path, sizeof path, "db.db/t/snapshot/snapshot-%" PRId64,
                   1 + (int64_t)random_below(&w.random, (uint32_t)w.snapshot + 2));
    same_file(0, path, true);
    same_file(1, path, true);
    same_file(0, "db.db/t/snapshot/LATEST", true);
}

/* By either machine, for what it knows. */
static void remove_file(void)
{
    struct known *known = draw_known();
    if (!known) {
        return;
    }
    struct tn_io *io = lake_io(0);
    tn_rc rc = w.plain.io.vtable->unlink(&w.plain.io, known->path, &w.err);
    CHECK_OK(rc, w.err);
    rc = TN_IO;
    for (int tries = 0; tries == 0 || again(rc); tries++) {
        draw_faults(tries);
        rc = io->vtable->unlink(io, known->path, &w.err);
    }
    CHECK(rc == TN_OK);
    same_file(0, known->path, true);
    if (strstr(known->path, "/other/")) { /* of others the second one may have a copy */
        same_file(1, known->path, true);
    }
    *known = w.known[--w.known_count];
}

/* A snapshot is published, by one of the machines; the other one loses the name. */
static void publish(void)
{
    static const char dir[] = "db.db/t/snapshot/";
    static unsigned char data[FILE_MAX];
    char final[64];
    char text[32];
    int machine = (int)random_below(&w.random, 2);
    (void)snprintf(final, sizeof final, "%ssnapshot-%" PRId64, dir, w.snapshot + 1);
    (void)snprintf(text, sizeof text, "another's %u", w.names++); /* as drawn bytes never are */
    make_plain_dir(final);
    struct tn_publish_spec spec = {.bytes = draw_bytes(data),
                                   .draft = "db.db/t/snapshot/.snapshot.tmp",
                                   .final = final,
                                   .dir = dir};
    struct tn_bytes other = tn_bytes_of(text);
    tn_rc rc = tn_publish(&w.plain.io, &spec, &w.err);
    CHECK_OK(rc, w.err);
    rc = TN_IO;
    for (int tries = 0; tries == 0 || again(rc); tries++) {
        draw_faults(tries);
        rc = tn_publish(lake_io(machine), &spec, &w.err);
    }
    CHECK_OK(rc, w.err);
    spec.bytes = other;
    for (int tries = 0; tries == 0 || again(rc); tries++) {
        draw_faults(tries);
        rc = tn_publish(lake_io(1 - machine), &spec, &w.err);
    }
    CHECK(rc == TN_CONFLICT);
    w.snapshot++;
    rc = tn_publish_over(&w.plain.io, "db.db/t/snapshot/.LATEST.tmp", "db.db/t/snapshot/LATEST",
                         other, &w.err);
    CHECK_OK(rc, w.err);
    rc = TN_IO;
    for (int tries = 0; tries == 0 || again(rc); tries++) {
        draw_faults(tries);
        rc = tn_publish_over(lake_io(machine), "db.db/t/snapshot/.LATEST.tmp",
                             "db.db/t/snapshot/LATEST", other, &w.err);
    }
    CHECK_OK(rc, w.err);
}

struct listed {
    struct tn_io *io; /* is asked while it lists */
    uint32_t count;
    uint64_t sum;
};

static tn_rc add_name(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct listed *listed = user;
    char path[128];
    uint64_t size;
    if (!is_dir) {
        listed->count++;
        listed->sum += tn_hash_64(tn_bytes_of(name), 3);
        (void)snprintf(path, sizeof path, "db.db/t/manifest/%s", name);
        tn_rc rc = listed->io->vtable->stat(listed->io, path, &size, err);
        return rc == TN_ABSENT ? TN_OK : rc;
    }
    return TN_OK;
}

/* The second machine lists what was synced. */
static void list_folder(void)
{
    const char *dir = "db.db/t/manifest/";
    struct listed want = {.io = &w.plain.io};
    struct listed got = {0};
    struct listed synced = {0};
    tn_rc rc = w.plain.io.vtable->list(&w.plain.io, dir, add_name, &want, &w.err);
    CHECK(rc == TN_OK || rc == TN_ABSENT);
    for (int machine = 0; machine < 2; machine++) {
        for (int tries = 0; tries == 0 || again(rc); tries++) {
            draw_faults(tries);
            got = (struct listed){.io = lake_io(machine)};
            rc = got.io->vtable->list(got.io, dir, add_name, &got, &w.err);
        }
        CHECK(rc == TN_OK || (rc == TN_ABSENT && got.count == 0));
        synced = machine == 0 ? got : synced;
        CHECK(machine > 0 || (got.count == want.count && got.sum == want.sum));
    }
    for (uint32_t i = 0; i < w.known_count; i++) {
        const struct known *known = &w.known[i];
        bool here = strncmp(known->path, dir, strlen(dir)) == 0 && !known->synced;
        synced.count -= here;
        synced.sum -= here ? tn_hash_64(tn_bytes_of(known->path + strlen(dir)), 3) : 0;
    }
    CHECK(got.count == synced.count && got.sum == synced.sum);
}

/* The power goes, or a process is killed: what wasn't synced is lost. */
static void start_again(void)
{
    struct machine *m = &w.machines[0];
    tn_lake_io_close(&m->lake);
    if (w.store) {
        tn_s3_target_close(m->target);
    }
    free(m->memory);
    sim_disk_reboot(&m->scratch, random_next(&w.random));
    for (uint32_t i = 0; i < w.known_count;) {
        if (w.known[i].synced) {
            i++;
            continue;
        }
        tn_rc rc = w.plain.io.vtable->unlink(&w.plain.io, w.known[i].path, &w.err);
        CHECK_OK(rc, w.err);
        w.known[i] = w.known[--w.known_count];
    }
    start(m);
}

/* What is beside the tables is this machine's. */
static void keep_own(void)
{
    char path[32];
    struct tn_bytes bytes = tn_bytes_of("mine");
    uint64_t size;
    (void)snprintf(path, sizeof path, ".tarn/own-%u", w.names++);
    make_plain_dir(path);
    tn_rc rc = tn_io_write_new(lake_io(0), path, bytes, &w.err);
    CHECK_OK(rc, w.err);
    rc = lake_io(0)->vtable->stat(lake_io(0), path, &size, &w.err);
    CHECK(rc == TN_OK && size == 4);
    CHECK(lake_io(1)->vtable->stat(lake_io(1), path, &size, &w.err) == TN_ABSENT);
    rc = lake_io(0)->vtable->unlink(lake_io(0), path, &w.err);
    CHECK_OK(rc, w.err);
}

static void run_world(uint64_t seed, bool store)
{
    static void (*const steps[])(void) = {write_file, write_file,  sync_some,   look,    look,
                                          look,       remove_file, list_folder, publish, keep_own};
    open_world(seed, store);
    for (int i = 0; i < STEPS && w.snapshot < 12; i++) {
        steps[random_below(&w.random, COUNT(steps))]();
        if (random_below(&w.random, 40) == 0) {
            start_again();
        }
    }
    close_world();
}

static void run_worlds(bool store)
{
    double until = given_until(6, 2);
    uint64_t seed = given_number("SEED", 1) * 1000;
    uint64_t faults = 0;
    for (uint64_t i = 0; i < 3 || seconds_now() < until; i++) {
        run_world(seed + i, store);
        faults += w.faults;
    }
    CHECK(!store || faults > 0);
}

static void lake_in_a_folder_is_like_a_disk(void)
{
    run_worlds(false);
}

static void lake_in_a_store_that_fails_is_like_a_disk(void)
{
    run_worlds(true);
}

/* ---- what it can't ---- */

static void it_says_what_it_cannot(void)
{
    open_world(1, false);
    struct tn_io *io = lake_io(0);
    uint64_t size;
    int file;
    CHECK(io->vtable->lock(io, "db.db/t/lock", "me", &file, &w.err) == TN_UNSUPPORTED);
    tn_rc rc = io->vtable->create(io, "db.db/t/manifest/open", &file, &w.err);
    CHECK_OK(rc, w.err);
    const char *open[] = {"db.db/t/manifest/open"};
    CHECK(io->vtable->sync(io, open, 1, &w.err) == TN_INVALID);
    io->vtable->close(io, file);
    rc = io->vtable->sync(io, open, 1, &w.err);
    CHECK_OK(rc, w.err);
    CHECK(io->vtable->rename_new(io, open[0], "db.db/t/manifest/other", &w.err) == TN_UNSUPPORTED);
    CHECK(strstr(w.err.text, "keeps its name"));
    CHECK(io->vtable->stat(io, "db.db/t/.draft", &size, &w.err) == TN_ABSENT);
    struct tn_lake_io second;
    unsigned char *memory = malloc(tn_lake_io_size(FILES));
    struct tn_arena arena;
    tn_arena_init(&arena, memory, tn_lake_io_size(FILES));
    struct tn_lake_io_spec spec = {.target = w.machines[0].target,
                                   .scratch = &w.machines[0].scratch.io,
                                   .arena = &arena,
                                   .files = FILES};
    CHECK(tn_lake_io_open(&second, &spec, &w.err) == TN_EXISTS); /* it has its scratch folder */
    CHECK(arena.used == 0);
    free(memory);
    close_world();
}

static const struct test tests[] = {
    TEST(lake_in_a_folder_is_like_a_disk),
    TEST(lake_in_a_store_that_fails_is_like_a_disk),
    TEST(it_says_what_it_cannot),
};

int main(int argc, char **argv)
{
    static alignas(16) unsigned char xml_memory[XML_HEAP];
    static struct tn_heap xml;
    tn_heap_init(&xml, xml_memory, sizeof xml_memory, true);
    tn_xml_use_heap(&xml);
    return run_tests(argc, argv, tests, COUNT(tests));
}
