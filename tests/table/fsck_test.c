/* fsck on simulated disks: tables of the writer are clean, also what a cut left of them; damage of
 * any byte ends neither the process nor the check; errors of the device are no findings. */
#include "table/fsck.h"

#include <time.h>

#include "bed.h"
#include "commit/expire.h"
#include "given.h"

enum { HEAP_SIZE = 256 << 10, TABLES = 40, CUTS = 6, FLIPS = 30, ROUNDS = 5 };

static struct bed_engine engine;
static struct bed_scenario scenario;
static struct tn_heap heap;
static unsigned char heap_memory[HEAP_SIZE];

static uint64_t seed_of_test(void)
{
    return given_number("SEED", 1);
}

struct found {
    struct tn_fsck_result result;
    struct tn_err err;
    uint32_t hints;  /* problems of hints and of the writer's consumer */
    char first[600]; /* problem of anything else */
};

static tn_rc note(void *user, enum tn_fsck_kind kind, const char *file, const char *text,
                  struct tn_err *err)
{
    (void)err;
    struct found *found = user;
    bool hint = kind == TN_FSCK_PROBLEM && (strstr(file, "/LATEST") || strstr(file, "/EARLIEST") ||
                                            strstr(file, "/consumer/"));
    found->hints += hint;
    if (kind == TN_FSCK_PROBLEM && !hint && found->first[0] == 0) {
        (void)snprintf(found->first, sizeof found->first, "%s: %s", file, text);
    }
    return TN_OK;
}

/* A door through which a check looks, and behind which something else happens before call number
 * `call`. */
struct door {
    struct tn_io io;
    struct sim_disk *disk;
    uint64_t calls;
    uint64_t call;
    uint64_t later; /* and then once more, 0: not */
    void (*happen)(struct sim_disk *disk);
};
static struct door door;

static void expire_in_javas_order(struct sim_disk *disk);

/* Whatever the outcome, all memory is given back. */
static tn_rc check_io(struct tn_io *io, size_t heap_size, bool orphans, struct found *found)
{
    *found = (struct found){0};
    bed_engine_start(&engine, io, 1);
    tn_heap_init(&heap, heap_memory, heap_size, false);
    size_t used = heap.used;
    struct tn_worker *worker = &engine.workers[TN_LANE_LONG];
    size_t mark = tn_arena_mark(&worker->arena);
    struct tn_fsck_spec spec = {.root = BED_ROOT,
                                .worker = worker,
                                .arena = &engine.own,
                                .heap = &heap,
                                .orphans = orphans,
                                .merged = door.happen != expire_in_javas_order,
                                .each = note,
                                .user = found};
    tn_rc rc = tn_fsck(&spec, &found->result, &found->err);
    CHECK(heap.used == used);
    CHECK(tn_arena_mark(&worker->arena) == mark && tn_arena_mark(&engine.own) == 0);
    tn_heap_deinit(&heap);
    return rc;
}

static tn_rc check_disk(struct sim_disk *disk, size_t heap_size, bool orphans, struct found *found)
{
    return check_io(&disk->io, heap_size, orphans, found);
}

/* Hints and the writer's consumer are not synced: a cut may leave them torn, and the next start or
 * commit writes them anew. */
static void check_clean(struct sim_disk *disk, bool cut)
{
    struct found found;
    tn_rc rc = check_disk(disk, HEAP_SIZE, !cut, &found);
    CHECK_OK(rc, found.err);
    uint32_t problems = found.result.problems - (cut ? found.hints : 0);
    if (problems > 0) {
        FAIL("%s", found.first);
    }
    CHECK(found.result.unchecked == 0);
}

/* A disk with the table of a seed, all of its rows written, or as many as there were calls for. */
static void make_disk(struct sim_disk *disk, uint64_t seed, uint64_t cut_call)
{
    sim_disk_init(disk, BED_DISK_SIZE);
    bed_scenario_init(&scenario, seed, ROUNDS);
    bed_create(&engine, &disk->io, &scenario);
    bed_engine_start(&engine, &disk->io, seed);
    struct bed_writer writer = {.engine = &engine, .scenario = &scenario, .who = "a test"};
    if (cut_call > 0) {
        sim_disk_cut_at(disk, disk->calls + cut_call);
    }
    tn_rc rc = bed_write(&writer);
    if (cut_call == 0) {
        CHECK_OK(rc, writer.err);
    }
}

/* Looks at tables of all shapes that the bed draws: buckets, partitions, levels, expired ones. */
static void tables_of_the_writer_are_clean(void)
{
    for (uint64_t i = 0; i < TABLES; i++) {
        struct sim_disk disk;
        make_disk(&disk, seed_of_test() + i, 0);
        check_clean(&disk, false);
        sim_disk_deinit(&disk);
    }
}

/* As many rows as the scenario says that each snapshot holds. */
static void every_snapshot_is_read_merged(void)
{
    static struct bed_reader reader;
    static struct bed_state state;
    for (uint64_t i = 0; i < TABLES; i++) {
        static struct sim_disk disk;
        static struct found found;
        struct tn_err err;
        int64_t first = 0;
        uint64_t want = 0;
        make_disk(&disk, seed_of_test() + i, 0);
        tn_rc rc = check_disk(&disk, HEAP_SIZE, false, &found);
        CHECK_OK(rc, found.err);
        const char *problem = bed_read_open(&engine, &reader);
        CHECK(!problem);
        rc = tn_snapshot_earliest(&disk.io, BED_ROOT, &engine.own, &first, &err);
        CHECK_OK(rc, err);
        for (int64_t id = first; id < first + found.result.snapshots; id++) {
            struct tn_snapshot snapshot;
            uint32_t position = 0;
            rc = tn_snapshot_read(&disk.io, BED_ROOT, id, &engine.own, &snapshot, &err);
            CHECK_OK(rc, err);
            problem = bed_position_of(&snapshot, &scenario, &position);
            CHECK(!problem);
            bed_fold(&scenario, position, &state);
            for (uint32_t slot = 0; slot < BED_SLOTS; slot++) {
                want += state.present[slot];
            }
        }
        CHECK(found.result.merged == found.result.snapshots && found.result.merged_rows == want);
        sim_disk_deinit(&disk);
    }
}

/* Looks before anything is recovered. */
static void what_a_cut_leaves_is_clean(void)
{
    uint64_t random = seed_of_test();
    for (uint64_t i = 0; i < (uint64_t)TABLES * CUTS; i++) {
        struct sim_disk disk;
        uint64_t seed = random_next(&random);
        make_disk(&disk, seed, 1 + random_below(&random, 400));
        sim_disk_reboot(&disk, random_next(&random));
        check_clean(&disk, true);
        sim_disk_deinit(&disk);
    }
}

/* ---- damage ---- */

struct names {
    struct sim_disk *disk;
    char folders[64][200];
    uint32_t folder_count;
    char files[512][300];
    uint32_t file_count;
    const char *at;
};

static tn_rc add_name(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    (void)err;
    struct names *names = user;
    if (is_dir && names->folder_count < COUNT(names->folders)) {
        (void)snprintf(names->folders[names->folder_count++], sizeof names->folders[0], "%s%s/",
                       names->at, name);
    } else if (!is_dir && names->file_count < COUNT(names->files)) {
        (void)snprintf(names->files[names->file_count++], sizeof names->files[0], "%s%s", names->at,
                       name);
    }
    return TN_OK;
}

static void list_files(struct sim_disk *disk, struct names *names)
{
    struct tn_err err;
    *names = (struct names){.disk = disk, .folder_count = 1};
    (void)snprintf(names->folders[0], sizeof names->folders[0], "%s/", BED_ROOT);
    for (uint32_t i = 0; i < names->folder_count; i++) {
        names->at = names->folders[i];
        tn_rc rc = disk->io.vtable->list(&disk->io, names->at, add_name, names, &err);
        CHECK_OK(rc, err);
    }
}

static void change_file(struct sim_disk *disk, const char *path, uint64_t *random)
{
    static unsigned char memory[1 << 20];
    struct tn_arena arena;
    struct tn_bytes bytes;
    struct tn_err err;
    tn_arena_init(&arena, memory, sizeof memory);
    tn_rc rc = tn_io_read_all(&disk->io, path, sizeof memory / 2, &arena, &bytes, &err);
    CHECK_OK(rc, err);
    if (bytes.size == 0) {
        return;
    }
    unsigned char *data = memory + (bytes.data - memory);
    if (random_below(random, 4) == 0) {
        bytes.size = random_below(random, (uint32_t)bytes.size);
    } else {
        data[random_below(random, (uint32_t)bytes.size)] ^=
            (unsigned char)(1U << random_below(random, 8));
    }
    rc = disk->io.vtable->unlink(&disk->io, path, &err);
    CHECK_OK(rc, err);
    rc = tn_io_write_new(&disk->io, path, bytes, &err);
    CHECK_OK(rc, err);
}

/* A file is cut or changed in one bit; the check comes to its end, or says what it can't check. */
static void any_damage_is_survived(void)
{
    static struct names names;
    uint64_t random = seed_of_test();
    for (uint32_t i = 0; i < TABLES / 4; i++) {
        struct sim_disk good;
        make_disk(&good, random_next(&random), 0);
        list_files(&good, &names);
        for (uint32_t j = 0; j < FLIPS; j++) {
            struct sim_disk disk;
            struct found found;
            sim_disk_clone(&disk, &good);
            change_file(&disk, names.files[random_below(&random, names.file_count)], &random);
            tn_rc rc = check_disk(&disk, HEAP_SIZE, true, &found);
            CHECK(rc == TN_OK || rc == TN_UNSUPPORTED || rc == TN_AGAIN || rc == TN_INVALID);
            CHECK((found.result.problems > found.hints) == (found.first[0] != 0));
            sim_disk_deinit(&disk);
        }
        sim_disk_deinit(&good);
    }
}

/* Each file but those that hold nothing for readers is missed. */
static void a_missing_file_is_a_problem(void)
{
    static struct names names;
    uint64_t random = seed_of_test();
    struct sim_disk good;
    make_disk(&good, random_next(&random), 0);
    list_files(&good, &names);
    for (uint32_t i = 0; i < names.file_count; i++) {
        static struct sim_disk disk;
        struct found found;
        struct tn_err err;
        bool data = strstr(names.files[i], "/manifest/") || strstr(names.files[i], "/bucket-");
        sim_disk_clone(&disk, &good);
        tn_rc rc = disk.io.vtable->unlink(&disk.io, names.files[i], &err);
        CHECK_OK(rc, err);
        rc = check_disk(&disk, HEAP_SIZE, false, &found);
        CHECK(!data || (rc == TN_OK && found.result.problems > 0));
        sim_disk_deinit(&disk);
    }
    sim_disk_deinit(&good);
}

/* ---- index files ---- */

static const char *const indexes[] = {
    "index-6f025538-47be-4719-a9fd-631c1545c676-0", "index-894cf6a0-d206-403b-8dd5-d4b73bd888a2-0",
    "index-6ef82b39-5515-4c4d-81c2-1be1b35ca00e-0", "index-b77c14b4-3195-4670-8852-b7977db3ea80-0"};
enum { INDEX_SIZE = 100 }; /* as tests/golden/manifest/java-index-keys says of each */

static void put_new(struct sim_disk *disk, const char *path, struct tn_bytes bytes)
{
    struct tn_err err;
    tn_rc rc = tn_io_write_new(&disk->io, path, bytes, &err);
    CHECK_OK(rc, err);
}

/* The newest snapshot names the index manifest of a real writer. */
static void name_indexes(struct sim_disk *disk)
{
    static unsigned char manifest[4096];
    static char text[16384];
    struct tn_bytes json;
    struct tn_err err;
    char path[200];
    int64_t id;
    FILE *file = fopen("tests/golden/manifest/java-index-keys", "rb");
    CHECK(file != NULL);
    size_t size = fread(manifest, 1, sizeof manifest, file);
    (void)fclose(file);
    put_new(disk, BED_ROOT "/manifest/java-index-keys", (struct tn_bytes){manifest, size});
    bed_engine_start(&engine, &disk->io, 1);
    tn_rc rc = tn_snapshot_latest(&disk->io, BED_ROOT, &engine.own, &id, &err);
    CHECK_OK(rc, err);
    (void)snprintf(path, sizeof path, BED_ROOT "/snapshot/snapshot-%" PRId64, id);
    rc = tn_io_read_all(&disk->io, path, sizeof text / 2, &engine.own, &json, &err);
    CHECK_OK(rc, err);
    (void)snprintf(text, sizeof text, "{\"indexManifest\":\"java-index-keys\",%.*s",
                   (int)json.size - 1, (const char *)json.data + 1);
    rc = disk->io.vtable->unlink(&disk->io, path, &err);
    CHECK_OK(rc, err);
    put_new(disk, path, tn_bytes_of(text));
    rc = disk->io.vtable->make_dir(&disk->io, BED_ROOT "/index/", &err);
    CHECK_OK(rc, err);
}

/* File number `odd` is not there, or has `size` bytes: that is the only problem. */
static void look_at_indexes(const struct sim_disk *from, uint32_t odd, uint32_t size)
{
    static const unsigned char zeros[INDEX_SIZE + 1];
    static struct sim_disk disk;
    struct found found;
    char path[200];
    sim_disk_clone(&disk, from);
    for (uint32_t i = 0; i < COUNT(indexes); i++) {
        uint32_t has = i == odd ? size : (uint32_t)INDEX_SIZE;
        (void)snprintf(path, sizeof path, BED_ROOT "/index/%s", indexes[i]);
        if (has > 0) {
            put_new(&disk, path, (struct tn_bytes){zeros, has});
        }
    }
    bool good = odd == COUNT(indexes);
    tn_rc rc = check_disk(&disk, HEAP_SIZE, true, &found);
    CHECK(rc == (good ? TN_UNSUPPORTED : TN_OK));
    CHECK(found.result.problems == !good && found.result.unchecked > 0);
    CHECK(good || strstr(found.first, indexes[odd]));
    CHECK(good || strstr(found.first, size > 0 ? "bytes, not 100" : "missing"));
    sim_disk_deinit(&disk);
}

static void index_files_are_there_as_large_as_they_should_be(void)
{
    struct sim_disk good;
    make_disk(&good, seed_of_test(), 0);
    name_indexes(&good);
    look_at_indexes(&good, COUNT(indexes), 0);
    for (uint32_t i = 0; i < COUNT(indexes); i++) {
        look_at_indexes(&good, i, 0);
        look_at_indexes(&good, i, INDEX_SIZE - 1);
        look_at_indexes(&good, i, INDEX_SIZE + 1);
    }
    sim_disk_deinit(&good);
}

/* ---- beside a writer ---- */

static struct tn_io *behind(void)
{
    door.calls++;
    if (door.calls == door.call || door.calls == door.later) {
        door.happen(door.disk);
    }
    return &door.disk->io;
}

static tn_rc door_open(struct tn_io *io, const char *path, int *file, uint64_t *size,
                       struct tn_err *err)
{
    (void)io;
    struct tn_io *inner = behind();
    return inner->vtable->open(inner, path, file, size, err);
}

static tn_rc door_read(struct tn_io *io, int file, uint64_t offset, void *data, size_t size,
                       size_t *got, struct tn_err *err)
{
    (void)io;
    struct tn_io *inner = behind();
    return inner->vtable->read(inner, file, offset, data, size, got, err);
}

static void door_close(struct tn_io *io, int file)
{
    (void)io;
    door.disk->io.vtable->close(&door.disk->io, file);
}

static tn_rc door_list(struct tn_io *io, const char *path, tn_io_name_fn *each, void *user,
                       struct tn_err *err)
{
    (void)io;
    struct tn_io *inner = behind();
    return inner->vtable->list(inner, path, each, user, err);
}

static tn_rc door_stat(struct tn_io *io, const char *path, uint64_t *size, struct tn_err *err)
{
    (void)io;
    struct tn_io *inner = behind();
    return inner->vtable->stat(inner, path, size, err);
}

static const struct tn_io_vtable door_vtable = {.open = door_open,
                                                .read = door_read,
                                                .close = door_close,
                                                .list = door_list,
                                                .stat = door_stat};

/* A check during which `happen` happens before call number `call`; returns how many calls it had.
 */
static uint64_t check_beside(struct sim_disk *disk, void (*happen)(struct sim_disk *disk),
                             uint64_t call, struct found *found)
{
    door =
        (struct door){.io = {.vtable = &door_vtable}, .disk = disk, .call = call, .happen = happen};
    tn_rc rc = check_io(&door.io, HEAP_SIZE, false, found);
    CHECK_OK(rc, found->err);
    return door.calls;
}

static struct bed_engine beside;
enum { BESIDE_SEED = 0x5eed0001 }; /* no other engine's: ids come from it */

/* The rows that aren't there yet, with all that commits, compaction and expiry do. */
static void go_on_writing(struct sim_disk *disk)
{
    bed_engine_start(&beside, &disk->io, BESIDE_SEED);
    struct bed_writer writer = {.engine = &beside, .scenario = &scenario, .who = "another"};
    tn_rc rc = bed_write(&writer);
    CHECK_OK(rc, writer.err);
}

/* All but the newest snapshot go. */
static void expire_all(struct sim_disk *disk)
{
    static struct bed_reader reader;
    struct tn_expire_result result;
    struct tn_err err;
    bed_engine_start(&beside, &disk->io, BESIDE_SEED);
    const char *problem = bed_read_open(&beside, &reader);
    CHECK(!problem);
    reader.options.snapshot_retained_min = 1;
    reader.options.snapshot_retained_max = 1;
    struct tn_expire_spec spec = {
        .root = BED_ROOT, .schema = reader.schema, .options = &reader.options};
    tn_rc rc = tn_expire(&spec, &beside.workers[TN_LANE_LONG], &result, &err);
    CHECK_OK(rc, err);
}

/* As official expiry does: snapshots go behind their files, EARLIEST is moved last, and here not at
 * all. Half of it happens at once, the other some calls later. */
static void expire_in_javas_order(struct sim_disk *disk)
{
    bool first = door.later == 0;
    door.later = first ? door.calls + 9 : door.later;
    static struct names names;
    struct sim_disk other;
    struct tn_err err;
    list_files(disk, &names);
    sim_disk_clone(&other, disk);
    expire_all(&other);
    for (uint32_t i = 0; i < names.file_count; i++) {
        uint64_t size;
        bool gone = other.io.vtable->stat(&other.io, names.files[i], &size, &err) == TN_ABSENT;
        bool now = !first || !strstr(names.files[i], "/snapshot/");
        if (gone && now) {
            tn_rc rc = disk->io.vtable->unlink(&disk->io, names.files[i], &err);
            CHECK_OK(rc, err);
        }
    }
    sim_disk_deinit(&other);
}

/* Before each call of a check the others do something; nothing is missed by it. How many snapshots
 * were left out. */
static uint32_t never_a_problem_beside(void (*happen)(struct sim_disk *disk), uint64_t seed,
                                       bool half_written)
{
    struct sim_disk disk;
    struct found found;
    uint32_t left_out = 0;
    uint64_t random = seed;
    make_disk(&disk, seed, half_written ? 150 : 0);
    if (half_written) {
        sim_disk_reboot(&disk, SIM_SEED_ALL);
    }
    uint64_t calls = check_beside(&disk, happen, 0, &found);
    uint64_t step = calls / 100 + 1;
    for (uint64_t call = 1; call <= calls; call += 1 + random_below(&random, (uint32_t)step)) {
        struct sim_disk now;
        sim_disk_clone(&now, &disk);
        (void)check_beside(&now, happen, call, &found);
        if (found.result.problems > found.hints && door.later <= door.calls) {
            FAIL("before call %" PRIu64 ": %s", call, found.first);
        }
        bool half_done = door.later > door.calls;
        CHECK(half_done || found.result.problems == (half_written ? found.hints : 0));
        left_out += found.result.left_out;
        sim_disk_deinit(&now);
    }
    (void)printf("%llu calls, %u snapshots left out\n", (unsigned long long)calls, left_out);
    sim_disk_deinit(&disk);
    return left_out;
}

static void what_expires_meanwhile_is_no_problem(void)
{
    uint32_t left_out = 0;
    for (uint64_t seed = seed_of_test(); seed < seed_of_test() + 3; seed++) {
        left_out += never_a_problem_beside(expire_all, seed, false);
        left_out += never_a_problem_beside(expire_in_javas_order, seed, false);
        left_out += never_a_problem_beside(go_on_writing, seed, true);
    }
    CHECK(left_out > 0); /* else nothing came between */
}

/* The snapshots but not their files. */
static void unlink_old_snapshots(struct sim_disk *disk)
{
    struct tn_err err;
    int64_t latest;
    bed_engine_start(&beside, &disk->io, BESIDE_SEED);
    tn_rc rc = tn_snapshot_latest(&disk->io, BED_ROOT, &beside.own, &latest, &err);
    CHECK_OK(rc, err);
    for (int64_t id = 1; id < latest; id++) {
        char path[64];
        (void)snprintf(path, sizeof path, BED_ROOT "/snapshot/snapshot-%" PRId64, id);
        (void)disk->io.vtable->unlink(&disk->io, path, &err);
    }
}

/* A snapshot goes, and its files with it, but one was missing before, and all others need it. */
static void what_was_missing_before_is_still_told(void)
{
    static struct names names;
    static struct sim_disk good;
    static struct sim_disk last;
    uint32_t told = 0;
    make_disk(&good, seed_of_test(), 0);
    sim_disk_clone(&last, &good);
    expire_all(&last);
    list_files(&last, &names);
    for (uint32_t i = 0; i < names.file_count; i++) {
        struct found found;
        struct tn_err err;
        if (!strstr(names.files[i], "/manifest/") && !strstr(names.files[i], "/bucket-")) {
            continue;
        }
        for (uint64_t call = 1; call < 200; call += 23) {
            static struct sim_disk disk;
            sim_disk_clone(&disk, &good);
            tn_rc rc = disk.io.vtable->unlink(&disk.io, names.files[i], &err);
            CHECK_OK(rc, err);
            (void)check_beside(&disk, unlink_old_snapshots, call, &found);
            CHECK(found.result.problems > 0);
            told++;
            sim_disk_deinit(&disk);
        }
    }
    CHECK(told > 0);
    sim_disk_deinit(&last);
    sim_disk_deinit(&good);
}

/* Fails each call of a whole check in turn. */
static void an_error_of_the_device_is_no_finding(void)
{
    struct sim_disk disk;
    struct found found;
    make_disk(&disk, seed_of_test(), 0);
    uint64_t before = disk.calls;
    check_clean(&disk, false);
    uint64_t calls = disk.calls - before;
    for (uint64_t call = 1; call <= calls; call++) {
        sim_disk_fail_call(&disk, disk.calls + call, TN_IO);
        tn_rc rc = check_disk(&disk, HEAP_SIZE, true, &found);
        CHECK(rc == TN_IO || found.result.problems == 0);
        CHECK(found.result.problems == 0);
    }
    sim_disk_deinit(&disk);
}

/* From nothing to enough. */
static void little_memory_is_an_answer(void)
{
    struct sim_disk disk;
    struct found found;
    bool refused = false;
    make_disk(&disk, seed_of_test(), 0);
    for (size_t size = 256; size <= HEAP_SIZE; size += size / 8) {
        tn_rc rc = check_disk(&disk, size, true, &found);
        CHECK(rc == TN_OK || rc == TN_AGAIN);
        CHECK(found.result.problems == 0);
        CHECK(rc == TN_OK || strstr(found.err.text, "fsck: "));
        refused = refused || rc == TN_AGAIN;
    }
    CHECK(refused);
    sim_disk_deinit(&disk);
}

/* The simulator calls it for every state that it looks at. */
static void a_tiny_table_takes_little_time(void)
{
    struct sim_disk disk;
    struct found found;
    struct timespec from;
    struct timespec to;
    enum { TURNS = 50 };
    make_disk(&disk, seed_of_test(), 0);
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    for (int i = 0; i < TURNS; i++) {
        tn_rc rc = check_disk(&disk, HEAP_SIZE, false, &found);
        CHECK_OK(rc, found.err);
    }
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    double ms =
        ((double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) / 1e6) /
        TURNS;
    (void)printf("%u snapshots, %llu data files: %.2f ms\n", found.result.snapshots,
                 (unsigned long long)found.result.data_files, ms);
    CHECK(ms < 500); /* under sanitizers, too */
    sim_disk_deinit(&disk);
}

static const struct test tests[] = {
    TEST(tables_of_the_writer_are_clean),
    TEST(every_snapshot_is_read_merged),
    TEST(what_a_cut_leaves_is_clean),
    TEST(any_damage_is_survived),
    TEST(a_missing_file_is_a_problem),
    TEST(index_files_are_there_as_large_as_they_should_be),
    TEST(what_expires_meanwhile_is_no_problem),
    TEST(what_was_missing_before_is_still_told),
    TEST(an_error_of_the_device_is_no_finding),
    TEST(little_memory_is_an_answer),
    TEST(a_tiny_table_takes_little_time),
};

/* As small as a board's: in debug builds a heap fills what is left of it at each step. */
static void use_small_heaps(void)
{
    static unsigned char memory[2][192 << 10];
    static struct tn_heap heaps[2];
    for (int i = 0; i < 2; i++) {
        tn_heap_init(&heaps[i], memory[i], sizeof memory[i], false);
    }
    tn_avro_use_heap(&heaps[0]);
    tn_json_use_heap(&heaps[1]);
}

int main(int argc, char **argv)
{
    bed_engine_make(&engine);
    bed_engine_make(&beside);
    use_small_heaps();
    int rc = run_tests(argc, argv, tests, COUNT(tests));
    bed_engine_free(&engine);
    bed_engine_free(&beside);
    return rc;
}
