/* A consumer's file over power cuts: whole or absent, and once it was said, there. */
#include "commit/consumer.h"

#include "bed.h"

enum { SEEDS = 12, SYNCS = 2 };

static unsigned char memory[16384];

static struct tn_arena scratch(void)
{
    struct tn_arena arena;
    tn_arena_init(&arena, memory, sizeof memory);
    return arena;
}

static tn_rc write(struct sim_disk *disk, int64_t next)
{
    struct tn_err err = {0};
    struct tn_arena arena = scratch();
    return tn_consumer_write(&disk->io, ROOT, "c", next, &arena, &err);
}

/* -1: there is none. */
static int64_t read(struct sim_disk *disk)
{
    struct tn_err err = {0};
    struct tn_arena arena = scratch();
    int64_t next = -1;
    tn_rc rc = tn_consumer_read(&disk->io, ROOT, "c", &arena, &next, &err);
    CHECK(rc == TN_OK || rc == TN_ABSENT);
    return next;
}

static void prepare(struct sim_disk *disk, int64_t next)
{
    struct tn_err err;
    bed_libraries();
    sim_disk_init(disk, 1 << 20);
    tn_rc rc = disk->io.vtable->make_dir(&disk->io, ROOT, &err);
    CHECK_OK(rc, err);
    rc = next < 0 ? TN_OK : write(disk, next);
    CHECK(rc == TN_OK);
}

static void cut_everywhere(int64_t before, int64_t after)
{
    tn_rc rc = TN_IO;
    for (uint64_t cut = 1; rc != TN_OK; cut++) {
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            static struct sim_disk disk;
            prepare(&disk, before);
            sim_disk_cut_at(&disk, disk.calls + cut);
            rc = write(&disk, after);
            sim_disk_reboot(&disk, seed);
            int64_t found = read(&disk);
            CHECK(found == after || (rc != TN_OK && found == before));
            sim_disk_deinit(&disk);
        }
    }
}

static void a_consumer_is_whole_or_absent_whenever_the_power_goes(void)
{
    cut_everywhere(-1, 7);
    cut_everywhere(7, 8);
    cut_everywhere(99, 100); /* of another size */
}

/* Each barrier is needed: without it some cut leaves a torn file, or loses one that was promised.
 */
static void both_barriers_are_needed(void)
{
    for (uint64_t sync = 1; sync <= SYNCS; sync++) {
        bool seen = false;
        for (uint64_t seed = 0; seed < 4 * SEEDS; seed++) {
            static struct sim_disk disk;
            struct tn_err err = {0};
            struct tn_arena arena = scratch();
            int64_t next = -1;
            prepare(&disk, 7);
            sim_disk_ignore_sync(&disk, disk.syncs + sync);
            tn_rc rc = write(&disk, 100);
            CHECK(rc == TN_OK);
            sim_disk_reboot(&disk, seed);
            rc = tn_consumer_read(&disk.io, ROOT, "c", &arena, &next, &err);
            seen = seen || rc != TN_OK || next != 100;
            sim_disk_deinit(&disk);
        }
        CHECK(seen);
    }
}

static void a_consumer_is_read_as_official_paimon_writes_it(void)
{
    static struct sim_disk disk;
    struct tn_err err = {0};
    prepare(&disk, 1);
    const char *path = ROOT "/consumer/consumer-c";
    static const struct {
        const char *text;
        tn_rc rc;
    } cases[] = {{"{\n  \"nextSnapshot\" : 12\n}", TN_OK},
                 {"{\"nextSnapshot\":12,\"more\":null}", TN_OK},
                 {"{\"nextSnapshot\":\"twelve\"}", TN_CORRUPT},
                 {"{}", TN_CORRUPT},
                 {"", TN_CORRUPT}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_arena arena = scratch();
        int64_t next = 0;
        tn_rc rc = disk.io.vtable->unlink(&disk.io, path, &err);
        CHECK_OK(rc, err);
        rc = tn_io_write_new(&disk.io, path, tn_bytes_of(cases[i].text), &err);
        CHECK_OK(rc, err);
        rc = tn_consumer_read(&disk.io, ROOT, "c", &arena, &next, &err);
        CHECK(rc == cases[i].rc && (rc != TN_OK || next == 12));
        CHECK(rc == TN_OK || strstr(err.text, path));
    }
    sim_disk_deinit(&disk);
}

static void one_that_is_removed_stays_removed(void)
{
    static struct sim_disk disk;
    struct tn_err err = {0};
    struct tn_arena arena = scratch();
    prepare(&disk, 5);
    uint64_t calls = disk.syncs;
    tn_rc rc = write(&disk, 5);
    CHECK(rc == TN_OK && disk.syncs == calls); /* it says so already */
    rc = tn_consumer_remove(&disk.io, ROOT, "c", &arena, &err);
    CHECK_OK(rc, err);
    sim_disk_reboot(&disk, SIM_SEED_NOTHING);
    CHECK(read(&disk) == -1);
    rc = tn_consumer_remove(&disk.io, ROOT, "c", &arena, &err);
    CHECK(rc == TN_ABSENT);
    sim_disk_deinit(&disk);
}

static void tarn_s_own_are_told_by_their_names(void)
{
    static const struct {
        const char *name;
        enum tn_consumer_kind kind;
    } cases[] = {
        {"consumer-tail", TN_CONSUMER_READER},
        {"consumer-", TN_CONSUMER_READER},
        {"consumer-tarn", TN_CONSUMER_READER},
        {"consumer-tarn-01234567-89ab-4cde-8fab-0123456789ab", TN_CONSUMER_WRITER},
        {"consumer-tarn-lake-0123456789abcdef", TN_CONSUMER_LAKE},
        {"consumer-tarn-01234567", TN_CONSUMER_RESERVED},
        {"consumer-tarn-", TN_CONSUMER_RESERVED},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *id = tn_consumer_id(cases[i].name);
        CHECK(id && strcmp(id, cases[i].name + 9) == 0);
        CHECK(tn_consumer_kind_of(id) == cases[i].kind);
    }
    CHECK(!tn_consumer_id(".consumer-tail.tmp") && !tn_consumer_id("consumer"));
}

static const struct test tests[] = {
    TEST(tarn_s_own_are_told_by_their_names),
    TEST(a_consumer_is_whole_or_absent_whenever_the_power_goes),
    TEST(both_barriers_are_needed),
    TEST(a_consumer_is_read_as_official_paimon_writes_it),
    TEST(one_that_is_removed_stays_removed),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
