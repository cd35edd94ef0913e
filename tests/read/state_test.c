/* What keys were before: random levels, and random keys in ascending order, against the versions
 * that were written; with an index of the blocks, one too small for them all, and none. */
#include "read/state.h"

#include "given.h"
#include "levels/bed.h"

static struct bed bed;

enum { STATE_SIZE = 1 << 20, INDEX_SIZE_MAX = 64 << 10 };

static unsigned char index_memory[INDEX_SIZE_MAX];
static uint64_t answers; /* of all levels */

/* The version in the smallest level above `above`, of level 0 the newest; NULL: none. */
static const struct tn_kv *nearest(uint32_t key, int32_t above)
{
    const struct tn_kv *best = NULL;
    for (uint32_t i = 0; i < bed.version_counts[key]; i++) {
        const struct tn_kv *kv = &bed.versions[key][i];
        bool nearer = !best || kv->level < best->level ||
                      (kv->level == best->level && kv->sequence > best->sequence);
        if (kv->level > above && nearer) {
            best = kv;
        }
    }
    return best;
}

static uint32_t deeper_files(struct tn_levels *levels, int32_t above)
{
    uint32_t first = 0;
    while (first < levels->count && levels->files[first]->level <= above) {
        first++;
    }
    return first;
}

static void ask_all(struct tn_key_state *state, int32_t above, uint32_t every, uint64_t *seed)
{
    for (uint32_t key = 0; key < bed.t.row_count; key++) {
        if (random_below(seed, every) > 0) {
            continue;
        }
        const struct tn_kv *expected = nearest(key, above);
        for (uint32_t again = random_below(seed, 2); again < 2; again++) {
            struct tn_kv found;
            struct tn_err err;
            struct tn_kv asked = bed_version(&bed, key, 0, seed);
            tn_rc rc = state->state.find(&state->state, &asked, &found, &err);
            if (rc == TN_AGAIN && above < 0) { /* so many runs may be too many */
                return;
            }
            answers += above < 0;
            if (!expected) {
                CHECK(rc == TN_ABSENT);
                continue;
            }
            CHECK_OK(rc, err);
            CHECK(bed_same(&found, expected) && found.level == expected->level);
        }
    }
}

static uint64_t ask(struct tn_levels *levels, struct tn_block_indexes *indexes, int32_t above,
                    uint32_t every, uint64_t *seed)
{
    struct tn_worker *worker = &bed.s.worker;
    size_t mark = tn_arena_mark(&worker->arena);
    struct tn_key_state_spec spec = {.order = &bed.order,
                                     .read = &bed.t.read,
                                     .schemas = &bed.schemas,
                                     .keys = &bed.keys,
                                     .dir = BED_DIR,
                                     .indexes = indexes,
                                     .asks = random_below(seed, 2)};
    uint32_t first = deeper_files(levels, above);
    struct tn_key_state state;
    tn_rc rc = tn_key_state_open(&state, &spec, levels->files + first, levels->count - first,
                                 STATE_SIZE, worker, &bed.s.err);
    CHECK_OK(rc, bed.s.err);
    ask_all(&state, above, every, seed);
    tn_key_state_close(&state);
    tn_arena_reset(&worker->arena, mark);
    return state.rows_read;
}

static void a_key_was_its_version_in_the_nearest_level(void)
{
    uint64_t seed = given_number("SEED", 1);
    for (int i = 0; i < 60; i++) {
        bed_make(&bed, 3, &seed);
        struct tn_levels *levels;
        tn_rc rc = tn_levels_edit(&bed.heap, NULL, NULL, 0, bed.files, bed.file_count, &bed.keys,
                                  &levels, &bed.s.err);
        CHECK_OK(rc, bed.s.err);
        struct tn_block_indexes indexes;
        tn_block_indexes_init(&indexes, index_memory,
                              8192 + random_below(&seed, INDEX_SIZE_MAX - 8192));
        for (int32_t above = -1; above < 5; above++) {
            uint32_t every = 1 + random_below(&seed, 30);
            uint64_t same = seed;
            uint64_t indexed = ask(levels, &indexes, above, every, &seed);
            CHECK(ask(levels, NULL, above, every, &same) >= indexed);
        }
        tn_levels_drop(&bed.heap, levels);
        bed_end(&bed);
    }
    CHECK(answers > 1000);
}

/* What helps is said where memory is short. */
static void runs_that_find_no_room_say_so(void)
{
    uint64_t seed = given_number("SEED", 1);
    bed_make(&bed, 4, &seed);
    struct tn_levels *levels;
    tn_rc rc = tn_levels_edit(&bed.heap, NULL, NULL, 0, bed.files, bed.file_count, &bed.keys,
                              &levels, &bed.s.err);
    CHECK_OK(rc, bed.s.err);
    struct tn_key_state_spec spec = {.order = &bed.order,
                                     .read = &bed.t.read,
                                     .schemas = &bed.schemas,
                                     .keys = &bed.keys,
                                     .dir = BED_DIR};
    struct tn_key_state state;
    rc = tn_key_state_open(&state, &spec, levels->files, levels->count, 1024, &bed.s.worker,
                           &bed.s.err);
    CHECK_OK(rc, bed.s.err);
    for (uint32_t key = 0; rc != TN_AGAIN && key < bed.t.row_count; key++) {
        struct tn_kv found;
        struct tn_kv asked = bed_version(&bed, key, 0, &seed);
        rc = state.state.find(&state.state, &asked, &found, &bed.s.err);
    }
    CHECK(rc == TN_AGAIN && strstr(bed.s.err.text, "num-sorted-run.stop-trigger"));
    tn_key_state_close(&state);
    tn_levels_drop(&bed.heap, levels);
    bed_end(&bed);
}

/* Keys that begin alike for longer than an index tells apart. */
static void blocks_that_begin_alike_are_not_passed_over(void)
{
    _Alignas(struct tn_block_index) static unsigned char memory[1024];
    struct tn_block_index *index = (struct tn_block_index *)(void *)memory;
    static const uint64_t firsts[] = {1, 5, 5, 5, 7};
    for (uint64_t i = 0; i < COUNT(firsts); i++) {
        index->entries[index->count++] = (struct tn_block_index_entry){{firsts[i]}, 100 * i};
    }
    static const uint64_t expected[] = {0, 0, 0, 0, 0, 0, 300, 300, 400};
    for (uint64_t key = 0; key < COUNT(expected); key++) {
        uint64_t words[TN_BLOCK_INDEX_WORDS] = {key};
        CHECK(tn_block_index_find(index, words) == expected[key]);
    }
}

static const struct test tests[] = {
    TEST(blocks_that_begin_alike_are_not_passed_over),
    TEST(a_key_was_its_version_in_the_nearest_level),
    TEST(runs_that_find_no_room_say_so),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
