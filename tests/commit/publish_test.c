/* Cuts the power before every call that a publish makes, and looks at what is left on the disk. */
#include "bed.h"
#include "commit/publish.h"

enum { SEEDS = 12 };

static const char *const before[] = {"d/other/list", "d/other/"};
static const struct tn_publish_spec spec = {
    .bytes = {(const unsigned char *)"{\"id\":7}", 8},
    .draft = "d/.draft-7",
    .final = "d/snapshot-7",
    .dir = "d/",
    .before = before,
    .before_count = 2,
};

static struct tn_bytes read_file(struct tn_io *io, const char *path, struct tn_arena *arena)
{
    struct tn_err err;
    struct tn_bytes bytes = {NULL, 0};
    tn_rc rc = tn_io_read_all(io, path, 100, arena, &bytes, &err);
    return rc == TN_OK ? bytes : (struct tn_bytes){NULL, 0};
}

static void write_file(struct tn_io *io, const char *path, const char *text)
{
    struct tn_err err;
    tn_rc rc = tn_io_write_new(io, path, tn_bytes_of(text), &err);
    CHECK_OK(rc, err);
}

static void prepare(struct sim_disk *disk)
{
    struct tn_err err;
    const char *paths[] = {"d/"};
    sim_disk_init(disk, 1 << 20);
    tn_rc rc = disk->io.vtable->make_dir(&disk->io, "d/other", &err);
    CHECK_OK(rc, err);
    rc = disk->io.vtable->sync(&disk->io, paths, 1, &err);
    CHECK_OK(rc, err);
    write_file(&disk->io, "d/other/list", "list");
}

/* The name is whole or absent, and with it all that stands before it; after OK it is there. */
static void publish_survives_a_power_cut_before_every_call(void)
{
    static unsigned char memory[4096];
    for (uint64_t cut = 1;; cut++) {
        tn_rc rc = TN_OK;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            static struct sim_disk disk;
            struct tn_arena arena;
            struct tn_err err = {0};
            tn_arena_init(&arena, memory, sizeof memory);
            prepare(&disk);
            sim_disk_cut_at(&disk, disk.calls + cut);
            rc = tn_publish(&disk.io, &spec, &err);
            sim_disk_reboot(&disk, seed);
            struct tn_bytes found = read_file(&disk.io, spec.final, &arena);
            CHECK(rc != TN_OK || found.data != NULL);
            if (found.data) {
                CHECK(tn_bytes_equal(found, spec.bytes));
                CHECK(tn_bytes_equal(read_file(&disk.io, "d/other/list", &arena),
                                     tn_bytes_of("list")));
            }
            sim_disk_deinit(&disk);
        }
        if (rc == TN_OK) {
            CHECK(cut > 5);
            break;
        }
    }
}

static void publish_reports_conflict_and_keeps_the_winner(void)
{
    static unsigned char memory[1024];
    static struct sim_disk disk;
    struct tn_arena arena;
    struct tn_err err = {0};
    tn_arena_init(&arena, memory, sizeof memory);
    prepare(&disk);
    write_file(&disk.io, spec.final, "winner");
    tn_rc rc = tn_publish(&disk.io, &spec, &err);
    CHECK(rc == TN_CONFLICT);
    CHECK(strncmp(err.text, "publish d/snapshot-7: ", 22) == 0);
    CHECK(read_file(&disk.io, spec.draft, &arena).data == NULL);
    CHECK(tn_bytes_equal(read_file(&disk.io, spec.final, &arena), tn_bytes_of("winner")));
    sim_disk_deinit(&disk);
}

/* Each call fails once: FULL means that there is no such name, and nothing but IO may leave one. */
static void publish_leaves_no_name_after_an_error_before_it(void)
{
    static unsigned char memory[1024];
    for (uint64_t call = 1; call < 10; call++) {
        static struct sim_disk disk;
        struct tn_arena arena;
        struct tn_err err = {0};
        tn_arena_init(&arena, memory, sizeof memory);
        prepare(&disk);
        sim_disk_fail_call(&disk, disk.calls + call, TN_FULL);
        tn_rc rc = tn_publish(&disk.io, &spec, &err);
        sim_disk_fail_call(&disk, 0, TN_OK);
        bool there = read_file(&disk.io, spec.final, &arena).data != NULL;
        CHECK(!there || rc == TN_OK || rc == TN_IO);
        CHECK(there || rc != TN_OK);
        CHECK(read_file(&disk.io, spec.draft, &arena).data == NULL);
        sim_disk_deinit(&disk);
    }
}

/* More names than fit on the stack go in several calls: each is synced. */
static void publish_covers_any_number_of_files(void)
{
    enum { FILES = 250 };
    static char names[FILES][16];
    static const char *paths[FILES];
    static struct sim_disk disk;
    struct tn_err err = {0};
    prepare(&disk);
    for (int i = 0; i < FILES; i++) {
        (void)snprintf(names[i], sizeof names[i], "d/f%d", i);
        paths[i] = names[i];
        write_file(&disk.io, names[i], "x");
    }
    struct tn_publish_spec many = spec;
    many.before = paths;
    many.before_count = FILES;
    tn_rc rc = tn_publish(&disk.io, &many, &err);
    CHECK_OK(rc, err);
    sim_disk_reboot(&disk, SIM_SEED_NOTHING);
    for (int i = 0; i < FILES; i++) {
        static unsigned char memory[64];
        struct tn_arena arena;
        tn_arena_init(&arena, memory, sizeof memory);
        CHECK(read_file(&disk.io, names[i], &arena).size == 1);
    }
    sim_disk_deinit(&disk);
}

static const struct test tests[] = {
    TEST(publish_survives_a_power_cut_before_every_call),
    TEST(publish_reports_conflict_and_keeps_the_winner),
    TEST(publish_leaves_no_name_after_an_error_before_it),
    TEST(publish_covers_any_number_of_files),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
