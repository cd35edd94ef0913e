/* Routes against the bucket functions' definitions: hash of the key's BinaryRow, floorMod of one
 * integer, and the partition's values as they were. */
#include "write/route.h"

#include "base/hash.h"
#include "check.h"
#include "format/binrow.h"
#include "random.h"

enum { DT = 0, ID = 1, NAME = 2, COLUMNS = 3, ARENA_SIZE = 64 << 10 };

static struct tn_row_layout layout;
static struct tn_type types[COLUMNS];
static struct tn_arena arena;
static const uint32_t dt_column[] = {DT};
static const uint32_t id_column[] = {ID};
static const uint32_t name_column[] = {NAME};

static void make_layout(void)
{
    static const char *const names[COLUMNS] = {"dt", "id", "name"};
    static const char *const texts[COLUMNS] = {"STRING", "BIGINT", "STRING"};
    struct tn_err err;
    for (int i = 0; i < COLUMNS; i++) {
        tn_rc rc = tn_type_parse(tn_bytes_of(texts[i]), &types[i], &err);
        CHECK_OK(rc, err);
    }
    tn_rc rc = tn_row_layout_init(&layout, names, types, COLUMNS, &arena, &err);
    CHECK_OK(rc, err);
}

static struct tn_row make_row(const char *dt, int64_t id, const char *name)
{
    static unsigned char data[512];
    struct tn_value values[COLUMNS] = {
        {.null = dt == NULL}, {.as.i64 = id}, {.null = name == NULL}};
    if (dt) {
        values[DT].as.bytes = tn_bytes_of(dt);
    }
    if (name) {
        values[NAME].as.bytes = tn_bytes_of(name);
    }
    return (struct tn_row){data, tn_row_pack(&layout, values, data)};
}

static struct tn_route route(const struct tn_route_spec *spec, struct tn_row row)
{
    static unsigned char memory[512];
    struct tn_buf scratch;
    struct tn_err err;
    struct tn_route to = {.bucket = -7};
    tn_buf_init(&scratch, memory, sizeof memory);
    tn_rc rc = tn_route(spec, row, &scratch, &to, &err);
    CHECK_OK(rc, err);
    return to;
}

static void the_bucket_is_the_hash_of_the_key(void)
{
    uint64_t seed = 1;
    uint32_t hit[16] = {0};
    for (int i = 0; i < 2000; i++) {
        int32_t count = 1 + (int32_t)random_below(&seed, 16);
        struct tn_route_spec spec = {.layout = &layout,
                                     .bucket_key = {id_column, 1},
                                     .function = TN_BUCKET_HASH,
                                     .bucket_count = count};
        struct tn_value id = {.as.i64 = (int64_t)random_next(&seed)};
        unsigned char memory[64];
        struct tn_buf binary;
        tn_buf_init(&binary, memory, sizeof memory);
        tn_values_to_binary(&types[ID], &id, 1, &binary);
        int32_t hash = tn_hash_murmur((struct tn_bytes){memory + 4, binary.size - 4}) % count;
        int32_t bucket = route(&spec, make_row("a", id.as.i64, "n")).bucket;
        CHECK(bucket == (hash < 0 ? -hash : hash));
        CHECK(bucket >= 0 && bucket < count);
        hit[bucket]++;
    }
    CHECK(hit[7] > 0 && hit[15] > 0);
}

static void mod_is_the_floor_of_negative_numbers_too(void)
{
    static const struct {
        int64_t id;
        int32_t count;
        int32_t bucket;
    } cases[] = {{0, 3, 0},         {4, 3, 1},         {-1, 3, 2},        {-3, 3, 0},
                 {INT64_MIN, 7, 6}, {INT64_MAX, 7, 0}, {INT64_MIN, 1, 0}, {-5, 1, 0}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_route_spec spec = {.layout = &layout,
                                     .bucket_key = {id_column, 1},
                                     .function = TN_BUCKET_MOD,
                                     .bucket_count = cases[i].count};
        CHECK(route(&spec, make_row("a", cases[i].id, "n")).bucket == cases[i].bucket);
    }
}

static void a_table_without_buckets_has_bucket_0(void)
{
    struct tn_route_spec spec = {.layout = &layout, .function = TN_BUCKET_HASH, .bucket_count = -1};
    struct tn_route to = route(&spec, make_row("a", 5, "n"));
    CHECK(to.bucket == 0);
    CHECK(tn_bytes_equal(to.partition, tn_binrow_empty));
}

/* The key's bytes and the partition's share the scratch memory; the partition is what stays. */
static void the_partition_keeps_its_values(void)
{
    static const char *const texts[] = {"2025-12-01", "", NULL, "a longer name than eight bytes"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct tn_route_spec spec = {.layout = &layout,
                                     .partition = {dt_column, 1},
                                     .bucket_key = {name_column, 1},
                                     .function = TN_BUCKET_HASH,
                                     .bucket_count = 4};
        struct tn_route to = route(&spec, make_row(texts[i], 5, "a name of more than eight bytes"));
        struct tn_value value;
        struct tn_err err;
        tn_rc rc = tn_binary_to_values(to.partition, &types[DT], 1, &value, &err);
        CHECK_OK(rc, err);
        CHECK(value.null == (texts[i] == NULL));
        CHECK(value.null || tn_bytes_equal(value.as.bytes, tn_bytes_of(texts[i])));
        CHECK(to.bucket >= 0 && to.bucket < 4);
    }
}

/* Keys that do not fit the scratch are refused, and nothing was written behind its end. */
static void a_key_larger_than_the_scratch_is_refused(void)
{
    for (size_t size = 0; size < 60; size++) {
        for (int partitioned = 0; partitioned < 2; partitioned++) {
            struct tn_route_spec spec = {.layout = &layout,
                                         .partition = {dt_column, partitioned ? 1 : 0},
                                         .bucket_key = {name_column, 1},
                                         .function = TN_BUCKET_HASH,
                                         .bucket_count = partitioned ? 1 : 4};
            unsigned char *memory = malloc(size + 1);
            struct tn_buf scratch;
            struct tn_err err;
            struct tn_route to;
            tn_buf_init(&scratch, memory, size);
            const char *text = "a text of some forty bytes, for a start.";
            tn_rc rc = tn_route(&spec, make_row(text, 5, text), &scratch, &to, &err);
            CHECK(rc != TN_OK || size >= 40);
            CHECK(size < 4 + 8 + 8 + 40 || rc == TN_OK);
            free(memory);
        }
    }
}

static const struct test tests[] = {
    TEST(the_bucket_is_the_hash_of_the_key),        TEST(mod_is_the_floor_of_negative_numbers_too),
    TEST(a_table_without_buckets_has_bucket_0),     TEST(the_partition_keeps_its_values),
    TEST(a_key_larger_than_the_scratch_is_refused),
};

int main(int argc, char **argv)
{
    tn_arena_init(&arena, malloc(ARENA_SIZE), ARENA_SIZE);
    make_layout();
    return run_tests(argc, argv, tests, COUNT(tests));
}
