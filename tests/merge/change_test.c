/* What is told of "was" and "is": every pair of kinds, and what counts as equal. */
#include "merge/change.h"

#include <math.h>

#include "check.h"

enum { ID, NAME, AMOUNT, RATIO, COLUMNS, TOLD_MAX = 4 };

static const char *const names[COLUMNS] = {"id", "name", "amount", "ratio"};
static const char *const types_text[COLUMNS] = {"INT NOT NULL", "STRING", "DOUBLE", "FLOAT"};
static uint32_t all_columns[COLUMNS] = {ID, NAME, AMOUNT, RATIO};

static struct {
    struct tn_change_sink sink; /* first */
    unsigned char memory[1 << 16];
    struct tn_arena arena;
    struct tn_row_layout layout;
    struct tn_change change;
    struct tn_kv told[TOLD_MAX];
    uint32_t told_count;
    uint32_t fail_at;
    struct tn_err err;
} bed;

static tn_rc sink_put(struct tn_change_sink *sink, const struct tn_kv *kv, struct tn_err *err)
{
    CHECK(sink == &bed.sink && bed.told_count < TOLD_MAX);
    if (bed.told_count == bed.fail_at) {
        return tn_err_set(err, TN_FULL, 0, "no space");
    }
    bed.told[bed.told_count++] = *kv;
    return TN_OK;
}

static void bed_begin(void)
{
    memset(&bed, 0, sizeof bed);
    tn_arena_init(&bed.arena, bed.memory, sizeof bed.memory);
    struct tn_type types[COLUMNS];
    for (int i = 0; i < COLUMNS; i++) {
        tn_rc rc = tn_type_parse(tn_bytes_of(types_text[i]), &types[i], &bed.err);
        CHECK_OK(rc, bed.err);
    }
    tn_rc rc = tn_row_layout_init(&bed.layout, names, types, COLUMNS, &bed.arena, &bed.err);
    CHECK_OK(rc, bed.err);
    bed.sink.put = sink_put;
    bed.fail_at = UINT32_MAX;
    bed.change = (struct tn_change){
        .layout = &bed.layout, .compared = {all_columns, COLUMNS}, .sink = &bed.sink};
}

/* NULL texts are NULL; an amount of INFINITY stands for NULL. */
static struct tn_kv row_of(const char *name, double amount, float ratio, enum tn_row_kind kind,
                           int64_t sequence)
{
    struct tn_value values[COLUMNS] = {
        {.as.i64 = 7},
        {.null = !name, .as.bytes = tn_bytes_of(name ? name : "")},
        {.null = isinf(amount), .as.f64 = isinf(amount) ? 0 : amount},
        {.as.f64 = (double)ratio},
    };
    unsigned char *data = tn_arena_take(&bed.arena, tn_row_packed_size(&bed.layout, values));
    CHECK(data);
    uint32_t size = tn_row_pack(&bed.layout, values, data);
    return (struct tn_kv){.row = {data, size}, .sequence = sequence, .kind = kind};
}

static void expect(const struct tn_kv *was, const struct tn_kv *is, uint32_t count)
{
    bed.told_count = 0;
    tn_rc rc = tn_change_tell(&bed.change, was, is, &bed.err);
    CHECK_OK(rc, bed.err);
    CHECK(bed.told_count == count);
}

static void check_told(uint32_t at, enum tn_row_kind kind, const struct tn_kv *row)
{
    CHECK(bed.told[at].kind == kind);
    CHECK(bed.told[at].row.data == row->row.data && bed.told[at].sequence == row->sequence);
}

/* NULL, and each of the four kinds, on both sides. */
static void each_pair_of_was_and_is_is_told_by_the_table(void)
{
    bed_begin();
    for (int w = -1; w < 4; w++) {
        for (int i = -1; i < 4; i++) {
            struct tn_kv was = row_of("was", 1, 1, (enum tn_row_kind)(w < 0 ? 0 : w), 3);
            struct tn_kv is = row_of("is", 2, 1, (enum tn_row_kind)(i < 0 ? 0 : i), 8);
            bool before = w >= 0 && !tn_row_kind_retracts(was.kind);
            bool after = i >= 0 && !tn_row_kind_retracts(is.kind);
            expect(w < 0 ? NULL : &was, i < 0 ? NULL : &is, (uint32_t)before + after);
            if (before && after) {
                check_told(0, TN_ROW_UPDATE_BEFORE, &was);
                check_told(1, TN_ROW_UPDATE_AFTER, &is);
            } else if (before) {
                check_told(0, TN_ROW_DELETE, &was);
            } else if (after) {
                check_told(0, TN_ROW_INSERT, &is);
            }
        }
    }
}

/* With row-deduplicate, and without. */
static void equal_rows_are_no_change_where_asked(void)
{
    static const struct {
        const char *was_name, *is_name;
        double was_amount, is_amount;
        float was_ratio, is_ratio;
        bool equal;
    } pairs[] = {
        {"a", "a", 1, 1, 2, 2, true},         {"a", "b", 1, 1, 2, 2, false},
        {"a", "a", 1, 1.5, 2, 2, false},      {NULL, NULL, 1, 1, 2, 2, true},
        {NULL, "", 1, 1, 2, 2, false},        {"a", "a", INFINITY, INFINITY, 2, 2, true},
        {"a", "a", INFINITY, 0, 2, 2, false}, {"a", "a", 0.0, -0.0, 2, 2, true},
        {"a", "a", NAN, NAN, 2, 2, false},    {"a", "a", 1, 1, NAN, NAN, false},
    };
    bed_begin();
    for (size_t p = 0; p < COUNT(pairs); p++) {
        struct tn_kv was =
            row_of(pairs[p].was_name, pairs[p].was_amount, pairs[p].was_ratio, TN_ROW_INSERT, 1);
        struct tn_kv is =
            row_of(pairs[p].is_name, pairs[p].is_amount, pairs[p].is_ratio, TN_ROW_INSERT, 2);
        bed.change.deduplicate = true;
        expect(&was, &is, pairs[p].equal ? 0 : 2);
        bed.change.deduplicate = false;
        expect(&was, &is, 2);
    }
}

/* A column that is not compared makes no difference; the others still do. */
static void ignored_columns_make_no_difference(void)
{
    bed_begin();
    static uint32_t compared[] = {ID, NAME, RATIO};
    bed.change.deduplicate = true;
    bed.change.compared = (struct tn_columns){compared, COUNT(compared)};
    struct tn_kv was = row_of("a", 1, 1, TN_ROW_INSERT, 1);
    struct tn_kv same = row_of("a", 99, 1, TN_ROW_INSERT, 2);
    struct tn_kv other = row_of("b", 1, 1, TN_ROW_INSERT, 2);
    expect(&was, &same, 0);
    expect(&was, &other, 2);
}

static void an_error_of_the_sink_is_passed_on(void)
{
    bed_begin();
    struct tn_kv was = row_of("a", 1, 1, TN_ROW_INSERT, 1);
    for (bed.fail_at = 0; bed.fail_at < 2; bed.fail_at++) {
        bed.told_count = 0;
        tn_rc rc = tn_change_tell(&bed.change, &was, &was, &bed.err);
        CHECK(rc == TN_FULL && bed.told_count == bed.fail_at);
    }
}

static const struct test tests[] = {
    TEST(each_pair_of_was_and_is_is_told_by_the_table),
    TEST(equal_rows_are_no_change_where_asked),
    TEST(ignored_columns_make_no_difference),
    TEST(an_error_of_the_sink_is_passed_on),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
