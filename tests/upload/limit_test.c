/* A sync that may only go so far: whole snapshots in their order, none skipped and none before its
 * files, whatever it is told; and in the end all of it is there, each file sent once. */
#include "given.h"
#include "upload/world.h"

enum { ROUNDS = 40, SYNCS_MAX = 400 };

static int64_t shown(struct world *w)
{
    return world_hint(w, "LATEST") > 0 ? world_hint(w, "LATEST") : 0;
}

static void change(struct world *w)
{
    static void (*const changes[])(struct world *) = {world_append, world_append, world_compact,
                                                      world_lift};
    changes[random_below(&w->random, COUNT(changes))](w);
}

static uint64_t size_of_largest(const struct world *w)
{
    uint64_t largest = 64 * 1024; /* of manifests and lists */
    for (uint32_t i = 0; i < w->file_count; i++) {
        uint64_t size = (uint64_t)w->files[i].entry.file.file_size;
        largest = size > largest ? size : largest;
    }
    return largest;
}

/* Older and newer ids, ids that there never were, and limits of next to nothing. */
static struct tn_delta_spec draw(struct world *w)
{
    struct tn_delta_spec spec = {.consumer = "tarn-lake-test"};
    static const int64_t odd[] = {1, INT64_MAX, INT64_MAX - 1};
    switch (random_below(&w->random, 3)) {
    case 0:
        spec.through = (int64_t)random_below(&w->random, (uint32_t)w->newest + 4);
        break;
    case 1:
        spec.through = odd[random_below(&w->random, COUNT(odd))];
        break;
    default:
        break;
    }
    spec.bytes_max = random_below(&w->random, 2) ? 1 + random_below(&w->random, 60000) : 0;
    spec.requests_max = random_below(&w->random, 3) == 0 ? 1 + random_below(&w->random, 30) : 0;
    return spec;
}

static void check_shown(struct world *w, int64_t had, const struct tn_delta_spec *spec)
{
    int64_t has = shown(w);
    int64_t most = spec->through > 0 && spec->through < w->newest ? spec->through : w->newest;
    CHECK(has >= had && has == w->result.last_id);
    CHECK(has == had || has <= most);
    CHECK(w->result.first_id == 0 || w->result.first_id == had + 1);
    for (int64_t id = 1; id <= w->newest; id++) {
        CHECK(world_has(w, id) == (id <= has));
    }
    CHECK(has == 0 || world_check(w, has) == TN_OK);
    CHECK(spec->bytes_max == 0 || w->result.bytes <= spec->bytes_max + size_of_largest(w));
    CHECK(w->counting.replaced == 0);
    if (had < most) {
        CHECK(w->result.files > 0 && (w->result.limited || has == most));
    }
}

static void limits_bring_whole_snapshots_in_order(void)
{
    uint32_t limited = 0;
    for (uint64_t seed = given_number("SEED", 1), i = 0; i < 6; i++) {
        static struct world w;
        world_init(&w, seed + i);
        for (int round = 0; round < ROUNDS; round++) {
            for (uint64_t left = random_below(&w.random, 3); left > 0; left--) {
                change(&w);
            }
            int64_t had = shown(&w);
            struct tn_delta_spec spec = draw(&w);
            tn_rc rc = world_sync_with(&w, spec);
            CHECK_OK(rc, w.err);
            check_shown(&w, had, &spec);
            limited += w.result.limited;
        }
        world_deinit(&w);
    }
    CHECK(limited > 3);
}

/* A byte a time is a file a time, and nothing of it twice. */
static void the_least_that_is_allowed_comes_to_an_end(void)
{
    static struct world w;
    struct tn_delta_spec spec = {.consumer = "tarn-lake-test", .bytes_max = 1};
    uint32_t syncs = 0;
    world_init(&w, given_number("SEED", 1));
    world_append(&w);
    for (int i = 0; i < 5; i++) {
        change(&w);
    }
    do {
        tn_rc rc = world_sync_with(&w, spec);
        CHECK_OK(rc, w.err);
        CHECK(w.result.files <= 4); /* some have no bytes, and a snapshot's own text is one */
        CHECK(w.counting.sent_again == 0);
        syncs++;
    } while (shown(&w) < w.newest && syncs < SYNCS_MAX);
    CHECK(shown(&w) == w.newest);
    CHECK(syncs > 3);
    CHECK(world_whole(&w, 1, w.newest));
    world_deinit(&w);
}

static const struct test tests[] = {
    TEST(limits_bring_whole_snapshots_in_order),
    TEST(the_least_that_is_allowed_comes_to_an_end),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
