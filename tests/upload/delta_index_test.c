/* Index files (deletion vectors, the keys of dynamic buckets) are in a mirror before the snapshot
 * that names them, and travel once. */
#include "given.h"
#include "upload/world_index.h"

#ifdef TN_DEBUG
enum { STRIDE = 13, HISTORIES = 2 };
#else
enum { STRIDE = 1, HISTORIES = 8 };
#endif

static struct world_index indexes;

static void some_history(struct world *w, int steps)
{
    for (int i = 0; i < steps; i++) {
        switch (random_below(&w->random, 5)) {
        case 0:
            world_compact(w);
            break;
        case 1:
            world_lift(w);
            break;
        case 2:
            world_append(w);
            break;
        default:
            world_append_index(w, &indexes);
            break;
        }
    }
}

static void init(struct world *w, uint64_t seed)
{
    indexes = (struct world_index){0};
    world_init(w, seed);
}

static void mirror_has_the_index_files_of_each_snapshot(void)
{
    uint64_t first = given_number("SEED", 1);
    for (uint64_t seed = first; seed < first + HISTORIES; seed++) {
        static struct world w;
        init(&w, seed);
        for (int step = 0; step < 25; step++) {
            some_history(&w, (int)random_below(&w.random, 4));
            if (random_below(&w.random, 4) == 0) {
                world_lose_ledger(&w);
            }
            tn_rc rc = world_sync(&w);
            CHECK_OK(rc, w.err);
            CHECK(w.counting.sent_again == 0);
        }
        CHECK(indexes.manifest[0] != 0 && world_whole(&w, 1, w.newest));
        world_deinit(&w);
    }
}

/* What a snapshot inherits isn't sent, nor asked for. */
static void index_files_that_stay_are_not_asked_for(void)
{
    static struct world w;
    init(&w, 7);
    world_append_index(&w, &indexes);
    world_append_index(&w, &indexes);
    tn_rc rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    world_append(&w);
    CHECK(bed_snapshot(&w.source, w.newest).index_manifest != NULL);
    struct tn_snapshot snapshot = bed_snapshot(&w.source, w.newest);
    CHECK(strcmp(snapshot.index_manifest, indexes.manifest) == 0);
    struct tn_err err;
    const char *path = tn_name_in(&w.source.own, ROOT, TN_DIR_MANIFEST, indexes.manifest);
    rc = w.source.disk.io.vtable->unlink(&w.source.disk.io, path, &err); /* nor read */
    CHECK_OK(rc, err);
    rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    CHECK(world_asked(&w, TN_TARGET_HEAD) == 1 && world_whole(&w, 1, w.newest));
    world_deinit(&w);
}

static void an_index_file_that_is_gone_is_named(void)
{
    static struct world w;
    init(&w, 8);
    world_append(&w);
    do {
        world_append_index(&w, &indexes);
    } while (indexes.names[0][0] == 0);
    int64_t damaged = w.newest;
    const char *path = tn_name_in(&w.source.own, ROOT, TN_DIR_INDEX, indexes.names[0]);
    tn_rc rc = w.source.disk.io.vtable->unlink(&w.source.disk.io, path, &w.err);
    CHECK_OK(rc, w.err);
    rc = world_sync(&w);
    CHECK(rc == TN_CORRUPT && strstr(w.err.text, indexes.names[0]) != NULL);
    CHECK(!world_has(&w, damaged) && world_whole(&w, 1, 1));
    world_deinit(&w);
}

static void mirror_with_index_files_is_whole_after_any_cut(void)
{
    static struct world w;
    static struct world_pair fresh;
    init(&w, given_number("SEED", 3));
    some_history(&w, 3);
    tn_rc rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    int64_t had = w.newest;
    world_append_index(&w, &indexes);
    some_history(&w, 2);
    world_append_index(&w, &indexes);
    world_save(&w, &fresh);
    for (int at_source = 0; at_source < 2; at_source++) {
        bool done = false;
        for (uint64_t call = 1; !done; call += STRIDE) {
            world_go_back(&w, &fresh);
            struct sim_disk *disk = at_source ? &w.source.disk : &w.target;
            sim_disk_cut_at(disk, disk->calls + call);
            done = world_sync(&w) == TN_OK;
            sim_disk_reboot(disk, call);
            CHECK(world_whole(&w, 1, done ? w.newest : had));
            rc = world_sync(&w);
            CHECK_OK(rc, w.err);
            CHECK(w.counting.sent_again == 0);
            sim_disk_reboot(&w.target, SIM_SEED_NOTHING);
            CHECK(world_whole(&w, 1, w.newest));
        }
    }
    world_forget(&fresh);
    world_deinit(&w);
}

static const struct test tests[] = {
    TEST(mirror_has_the_index_files_of_each_snapshot),
    TEST(index_files_that_stay_are_not_asked_for),
    TEST(an_index_file_that_is_gone_is_named),
    TEST(mirror_with_index_files_is_whole_after_any_cut),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
