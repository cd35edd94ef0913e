/* Versions of a bucket's files: ordered, never changed, counted; and what is asked of them, against
 * slow loops. */
#include "levels/levels.h"

#include "check.h"
#include "random.h"

enum { HEAP_SIZE = 1 << 20, FILES_MAX = 60, VERSIONS_MAX = 12 };

static const struct tn_type number = {.kind = TN_TYPE_INT};
static struct tn_value values[2];
static const struct tn_key_types keys = {&number, 1, &values[0], &values[1]};
static struct tn_heap heap;
static unsigned char heap_memory[HEAP_SIZE];

static struct tn_bytes key_of(int64_t value, unsigned char memory[64])
{
    struct tn_buf buf;
    tn_buf_init(&buf, memory, 64);
    struct tn_value v = {.as.i64 = value};
    tn_values_to_binary(&number, &v, 1, &buf);
    CHECK(!buf.overflow);
    return tn_buf_bytes(&buf);
}

/* Files of level 1.. get ranges that do not overlap: their number says where. */
static struct tn_level_file *make_file(uint32_t number_of, int32_t level, uint64_t *seed)
{
    unsigned char min[64];
    unsigned char max[64];
    char name[40];
    (void)snprintf(name, sizeof name, "data-%u.avro", number_of);
    struct tn_file_meta meta = {
        .file_name = name,
        .file_size = 1 + random_below(seed, 1000),
        .row_count = 5,
        .min_key = key_of(10 * (int64_t)number_of, min),
        .max_key = key_of(10 * (int64_t)number_of + 9, max),
        .min_sequence = random_below(seed, 3),
        .max_sequence = random_below(seed, 5),
        .creation_time_ms = {random_below(seed, 2), true},
    };
    struct tn_err err;
    struct tn_level_file *file;
    tn_rc rc = tn_level_file_make(&heap, &meta, level, &file, &err);
    CHECK_OK(rc, err);
    memset(min, 0xEE, sizeof min); /* the file has copies */
    memset(max, 0xEE, sizeof max);
    CHECK(strcmp(file->name, name) == 0);
    return file;
}

/* As in Paimon's Levels: level 0 newest first, with Paimon's ties; the others by key. */
static bool in_order(const struct tn_level_file *a, const struct tn_level_file *b)
{
    if (a->level != b->level) {
        return a->level < b->level;
    }
    if (a->level > 0) {
        return tn_key_compare(&keys, a->min_key, b->min_key) < 0;
    }
    if (a->max_sequence != b->max_sequence) {
        return a->max_sequence > b->max_sequence;
    }
    if (a->min_sequence != b->min_sequence) {
        return a->min_sequence < b->min_sequence;
    }
    if (a->creation_time_ms != b->creation_time_ms) {
        return a->creation_time_ms < b->creation_time_ms;
    }
    return strcmp(a->name, b->name) < 0;
}

static bool has(const struct tn_levels *levels, const struct tn_level_file *file)
{
    for (uint32_t i = 0; i < levels->count; i++) {
        if (levels->files[i] == file) {
            return true;
        }
    }
    return false;
}

static void check_order(const struct tn_levels *levels)
{
    for (uint32_t i = 1; i < levels->count; i++) {
        CHECK(in_order(levels->files[i - 1], levels->files[i]));
    }
}

/* The answers of levels.c, each by a loop of its own. */
static void check_answers(const struct tn_levels *levels)
{
    static struct tn_run runs[FILES_MAX];
    uint32_t count = tn_levels_runs(levels, runs, FILES_MAX);
    struct tn_run few[2];
    CHECK(tn_levels_runs(levels, few, 2) == count); /* also when there are more */
    uint32_t at = 0;
    for (uint32_t r = 0; r < count; r++) {
        int64_t size = 0;
        for (uint32_t i = at; i < at + runs[r].file_count; i++) {
            CHECK(levels->files[i]->level == runs[r].level);
            size += levels->files[i]->size;
        }
        CHECK(size == runs[r].size);
        CHECK(runs[r].file_count == 1 || runs[r].level > 0);
        CHECK(r == 0 || runs[r].level > runs[r - 1].level || runs[r].level == 0);
        CHECK(r >= 2 || (few[r].size == size && few[r].file_count == runs[r].file_count));
        at += runs[r].file_count;
        CHECK(tn_levels_files_of(levels, r + 1) == at);
        int32_t highest = -1;
        for (uint32_t i = at; i < levels->count; i++) {
            highest = levels->files[i]->level > highest ? levels->files[i]->level : highest;
        }
        CHECK(tn_levels_highest_behind(levels, at) == highest);
    }
    CHECK(at == levels->count);
    CHECK(tn_levels_files_of(levels, 0) == 0);
    int64_t max = -1;
    for (uint32_t i = 0; i < levels->count; i++) {
        max = levels->files[i]->max_sequence > max ? levels->files[i]->max_sequence : max;
    }
    CHECK(tn_levels_max_sequence(levels) == max);
}

/* One edit: a few files go, a few come. */
static struct tn_levels *edit(const struct tn_levels *from, uint32_t *next, uint64_t *seed)
{
    static struct tn_level_file *removed[FILES_MAX];
    struct tn_level_file *added[8];
    uint32_t removed_count = 0;
    uint32_t added_count = random_below(seed, 8);
    for (uint32_t i = 0; from && i < from->count; i++) {
        if (random_below(seed, 3) == 0) {
            removed[removed_count++] = from->files[i];
        }
    }
    for (uint32_t i = 0; i < added_count; i++) {
        added[i] = make_file((*next)++, (int32_t)random_below(seed, 4), seed);
    }
    struct tn_err err;
    struct tn_levels *to;
    tn_rc rc =
        tn_levels_edit(&heap, from, removed, removed_count, added, added_count, &keys, &to, &err);
    CHECK_OK(rc, err);
    uint32_t before = from ? from->count : 0;
    CHECK(to->count == before - removed_count + added_count);
    for (uint32_t i = 0; i < added_count; i++) {
        CHECK(has(to, added[i]));
        CHECK(added[i]->refs == 2);
        tn_level_file_drop(&heap, added[i]);
    }
    for (uint32_t i = 0; i < removed_count; i++) {
        CHECK(!has(to, removed[i]));
    }
    return to;
}

static void versions_are_ordered_immutable_and_counted(void)
{
    for (uint64_t round = 0; round < 100; round++) {
        uint64_t seed = round;
        tn_heap_init(&heap, heap_memory, sizeof heap_memory, false);
        size_t used = heap.used;
        struct tn_levels *versions[VERSIONS_MAX];
        static struct tn_level_file *seen[VERSIONS_MAX][FILES_MAX];
        uint32_t seen_count[VERSIONS_MAX];
        uint32_t next = 0;
        for (uint32_t v = 0; v < VERSIONS_MAX; v++) {
            versions[v] = edit(v > 0 ? versions[v - 1] : NULL, &next, &seed);
            check_order(versions[v]);
            check_answers(versions[v]);
            seen_count[v] = versions[v]->count;
            CHECK(seen_count[v] <= FILES_MAX);
            memcpy(seen[v], versions[v]->files, seen_count[v] * sizeof(struct tn_level_file *));
        }
        for (uint32_t v = VERSIONS_MAX; v > 0; v--) { /* in any order: here every second first */
            uint32_t i = v % 2 == 0 ? v / 2 - 1 : VERSIONS_MAX / 2 + v / 2;
            CHECK(versions[i]->count == seen_count[i]);
            CHECK(memcmp(versions[i]->files, seen[i],
                         seen_count[i] * sizeof(struct tn_level_file *)) == 0);
            tn_levels_drop(&heap, versions[i]);
            versions[i] = NULL;
        }
        tn_levels_drop(&heap, NULL);
        CHECK(heap.used == used);
        tn_heap_check(&heap);
        tn_heap_deinit(&heap);
    }
}

static void a_moved_file_is_the_same_file_on_another_level(void)
{
    uint64_t seed = 1;
    tn_heap_init(&heap, heap_memory, sizeof heap_memory, false);
    size_t used = heap.used;
    struct tn_level_file *file = make_file(7, 0, &seed);
    file->busy = true;
    file->round = 9;
    struct tn_err err;
    struct tn_level_file *moved;
    tn_rc rc = tn_level_file_move(&heap, file, 3, &moved, &err);
    CHECK_OK(rc, err);
    tn_level_file_drop(&heap, file);
    CHECK(moved->level == 3 && !moved->busy && moved->refs == 1);
    CHECK(strcmp(moved->name, "data-7.avro") == 0);
    unsigned char memory[64];
    CHECK(tn_bytes_equal(moved->min_key, key_of(70, memory)));
    CHECK(tn_bytes_equal(moved->max_key, key_of(79, memory)));
    tn_level_file_drop(&heap, moved);
    CHECK(heap.used == used);
    tn_heap_deinit(&heap);
}

/* A full heap refuses an edit, and nothing has changed. */
static void a_full_heap_refuses_an_edit(void)
{
    tn_heap_init(&heap, heap_memory, 4096, false);
    size_t used = heap.used;
    struct tn_levels *levels = NULL;
    struct tn_err err;
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK; i++) {
        CHECK(i < 100);
        struct tn_levels *to;
        unsigned char key[64];
        struct tn_file_meta meta = {.file_name = "data", .min_key = key_of(i, key)};
        meta.max_key = meta.min_key;
        struct tn_level_file *file;
        rc = tn_level_file_make(&heap, &meta, 0, &file, &err);
        if (rc != TN_OK) {
            break;
        }
        rc = tn_levels_edit(&heap, levels, NULL, 0, &file, 1, &keys, &to, &err);
        if (rc == TN_OK) {
            tn_levels_drop(&heap, levels);
            levels = to;
        }
        tn_level_file_drop(&heap, file);
        CHECK(levels->count == i + (rc == TN_OK));
    }
    CHECK(rc == TN_AGAIN);
    tn_levels_drop(&heap, levels);
    CHECK(heap.used == used);
    tn_heap_deinit(&heap);
}

/* Keys come from manifests, which anybody may have written. */
static void a_key_that_is_none_is_corrupt(void)
{
    uint64_t seed = 3;
    tn_heap_init(&heap, heap_memory, sizeof heap_memory, false);
    size_t used = heap.used;
    struct tn_level_file *good = make_file(1, 0, &seed);
    static const char *const bad[] = {"", "x", "\0\0\0\1", "\0\0\0\2\0\0\0\0\0\0\0\0\5\0\0\0"};
    static const size_t sizes[] = {0, 1, 4, 16};
    for (size_t i = 0; i < 2 * COUNT(bad); i++) {
        unsigned char key[64];
        struct tn_file_meta meta = {.file_name = "data-bad.avro", .min_key = key_of(1, key)};
        meta.max_key = meta.min_key;
        struct tn_bytes *broken = i % 2 == 0 ? &meta.min_key : &meta.max_key;
        *broken = (struct tn_bytes){(const unsigned char *)bad[i / 2], sizes[i / 2]};
        struct tn_err err = {0};
        struct tn_level_file *file;
        tn_rc rc = tn_level_file_make(&heap, &meta, 1, &file, &err);
        CHECK_OK(rc, err);
        struct tn_level_file *both[2] = {good, file};
        struct tn_levels *to = NULL;
        rc = tn_levels_edit(&heap, NULL, NULL, 0, both, 2, &keys, &to, &err);
        CHECK(rc == TN_CORRUPT);
        CHECK(strstr(err.text, "data-bad.avro") != NULL);
        CHECK(to == NULL && good->refs == 1 && file->refs == 1);
        tn_level_file_drop(&heap, file);
    }
    tn_level_file_drop(&heap, good);
    CHECK(heap.used == used);
    tn_heap_deinit(&heap);
}

static const struct test tests[] = {
    TEST(versions_are_ordered_immutable_and_counted),
    TEST(a_moved_file_is_the_same_file_on_another_level),
    TEST(a_full_heap_refuses_an_edit),
    TEST(a_key_that_is_none_is_corrupt),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
