/* stats: cuts as Paimon made them, and bounds against a plain search. */
#include "file/table.h"
#include "format/binrow.h"

struct cut_case {
    const char *text;
    uint32_t n;
    const char *min;
    const char *max; /* NULL: no bound */
};

#define A14  "aaaaaaaaaaaaaa"
#define Z15  "zzzzzzzzzzzzzzz"
#define MID  "\xe4\xb8\xad"
#define MID5 MID MID MID MID MID
#define TOP  "\xf4\x8f\xbf\xbf"
#define TOP4 TOP TOP TOP TOP

static const struct cut_case cuts[] = {
    {"abcdefghijklmnop", 16, "abcdefghijklmnop", "abcdefghijklmnop"},
    {"abcdefghijklmnopq", 16, "abcdefghijklmnop", "abcdefghijklmnoq"},
    {Z15 "\x7fq", 16, Z15 "\x7f", Z15 "\xc2\x80"},
    {A14 "a\xf0\x9f\x98\x80"
         "b",
     16, A14 "a\xf0\x9f\x98\x80", A14 "a\xf0\x9f\x98\x81"},
    {MID5 MID5 MID5 MID MID, 16, MID5 MID5 MID5 MID, MID5 MID5 MID5 "\xe4\xb8\xae"},
    {A14 "a" TOP "b", 16, A14 "a" TOP, A14 "b"},
    {TOP4 TOP4 TOP4 TOP4 TOP, 16, TOP4 TOP4 TOP4 TOP4, NULL},
    {A14 "a\xed\x9f\xbf"
         "b",
     16, A14 "a\xed\x9f\xbf", A14 "a\xee\x80\x80"}, /* Java writes a '?', which is too small */
    {"", 16, "", ""},
    {"ab", 1, "a", "b"},
    {"\xff\xff", 1, "\xff\xff", "\xff\xff"}, /* one character of four bytes, cut short: fits */
    {"\x80\x80", 1, "\x80", NULL},           /* no character at all */
};

static void cuts_are_those_of_paimon(void)
{
    for (size_t i = 0; i < COUNT(cuts); i++) {
        unsigned char out[80];
        struct tn_bytes text = tn_bytes_of(cuts[i].text);
        uint32_t size = tn_stats_cut_min(text, cuts[i].n, out);
        CHECK(tn_bytes_equal((struct tn_bytes){out, size}, tn_bytes_of(cuts[i].min)));
        bool bounded = tn_stats_cut_max(text, cuts[i].n, out, &size);
        CHECK(bounded == (cuts[i].max != NULL));
        CHECK(!bounded || tn_bytes_equal((struct tn_bytes){out, size}, tn_bytes_of(cuts[i].max)));
    }
}

/* Any bytes, also such that are no text: a maximum is never below its text, a minimum never above.
 */
static void bounds_hold_for_any_bytes(void)
{
    uint64_t seed = 9;
    for (int i = 0; i < 200000; i++) {
        static const unsigned char some[] = {0,    'a',  0x7f, 0x80, 0xbf, 0xc2, 0xdf, 0xe0,
                                             0xed, 0x9f, 0xa0, 0xef, 0xf0, 0xf4, 0x8f, 0xff};
        unsigned char text[12];
        unsigned char out[64];
        uint32_t size = random_below(&seed, sizeof text + 1);
        for (uint32_t k = 0; k < size; k++) {
            text[k] = some[random_below(&seed, sizeof some)];
        }
        struct tn_bytes whole = {text, size};
        uint32_t n = 1 + random_below(&seed, 4);
        uint32_t cut = tn_stats_cut_min(whole, n, out);
        CHECK(tn_bytes_compare((struct tn_bytes){out, cut}, whole) <= 0);
        if (tn_stats_cut_max(whole, n, out, &cut)) {
            CHECK(cut <= 4 * n + 1);
            CHECK(tn_bytes_compare((struct tn_bytes){out, cut}, whole) >= 0);
        }
    }
}

/* One text column, random rows: the bounds are the cuts of the least and the greatest value. */
static void bounds_are_cuts_of_the_extremes(void)
{
    static struct setup setup;
    static struct table table;
    for (uint64_t seed = 1; seed < 200; seed++) {
        uint64_t state = seed;
        setup_begin(&setup);
        table = (struct table){.options = {.stats_dense = true}};
        table.fields[0] = (struct tn_field){.id = 1, .name = "s"};
        table_type(&setup, "STRING", &table.fields[0].type);
        table.modes[0] = TN_STATS_TRUNCATE;
        table.lengths[0] = 1 + random_below(&state, 6);
        table_finish(&setup, &table, 1, 0);
        table_rows(&setup, &table, 1 + random_below(&state, 60), &state);
        struct tn_stats_collector stats;
        tn_rc rc = tn_stats_init(&stats, &table.layout, &table.options, &setup.arena, &setup.err);
        CHECK_OK(rc, setup.err);
        struct tn_bytes min = {NULL, 0};
        struct tn_bytes max = {NULL, 0};
        for (uint32_t i = 0; i < table.row_count; i++) {
            struct tn_row row = table.rows[i].row;
            tn_stats_add(&stats, row);
            if (!tn_row_null(row, 0)) {
                struct tn_bytes text = tn_row_bytes(&table.layout, row, 0);
                min = !min.data || tn_bytes_compare(text, min) < 0 ? text : min;
                max = !max.data || tn_bytes_compare(text, max) > 0 ? text : max;
            }
        }
        struct tn_stats values;
        struct tn_stats keys;
        struct tn_texts cols;
        size_t scratch_size = tn_stats_scratch_size(&table.layout, &table.options);
        struct tn_arena scratch;
        tn_arena_init(&scratch, tn_arena_take(&setup.arena, scratch_size), scratch_size);
        rc = tn_stats_finish(&stats, &table.options, table.read.keys, &setup.arena, &scratch,
                             &values, &cols, &keys, &setup.err);
        CHECK_OK(rc, setup.err);
        struct tn_value bounds[2];
        rc = tn_binary_to_values(values.min, table.types, 1, &bounds[0], &setup.err);
        CHECK_OK(rc, setup.err);
        rc = tn_binary_to_values(values.max, table.types, 1, &bounds[1], &setup.err);
        CHECK_OK(rc, setup.err);
        unsigned char out[2][64];
        uint32_t size = 0;
        bool bounded = min.data && tn_stats_cut_max(max, table.lengths[0], out[1], &size);
        CHECK(bounded == !bounds[0].null && bounded == !bounds[1].null);
        if (bounded) {
            CHECK(tn_bytes_equal(bounds[1].as.bytes, (struct tn_bytes){out[1], size}));
            size = tn_stats_cut_min(min, table.lengths[0], out[0]);
            CHECK(tn_bytes_equal(bounds[0].as.bytes, (struct tn_bytes){out[0], size}));
        }
        CHECK(tn_bytes_equal(keys.min, tn_binrow_empty) && keys.null_count_count == 0);
        setup_end(&setup);
    }
}

static const struct test tests[] = {
    TEST(cuts_are_those_of_paimon),
    TEST(bounds_hold_for_any_bytes),
    TEST(bounds_are_cuts_of_the_extremes),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
