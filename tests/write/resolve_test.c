/* What becomes of a key: rows are words ("7" sets the value, "k" keeps, "d" deletes, "x" can't be
 * resolved, "u" is a row before an update), and what comes out is read as words, too. Some tables
 * have a time in each row. */
#include "write/resolve.h"

#include "base/poison.h"
#include "check.h"
#include "given.h"
#include "random.h"

enum { POOL_SIZE = 1 << 20, PAGE_SIZE = 16 << 10, KEY = 5, ROW_MAX = 64, TEXT_MAX = 200 };

static struct {
    struct tn_arena arena;
    struct tn_row_layout layout;
    struct tn_order order;
    struct tn_pool pool;
    struct tn_memtable memtable;
    struct tn_state before;
    struct tn_resolver resolver;
    struct tn_letter_sink letters;
    struct tn_change_sink rows;
    struct tn_change_sink changes;
    int64_t was; /* -1: nothing */
    enum tn_row_kind was_kind;
    unsigned char was_row[ROW_MAX];
    uint32_t images; /* how often it was asked what is seen */
    char rows_text[TEXT_MAX];
    char changes_text[TEXT_MAX];
    char letters_text[TEXT_MAX];
    struct tn_err err;
} bed;

/* Words in a row's text column: what the resolver is to do. */
enum {
    WORD_KEEP = 1000,
    WORD_DELETE,
    WORD_BAD,
    WORD_LONG,
    WORD_OTHER_KEY,
    WORD_EMPTY,
    WORD_PARKED,
    WORD_FIRST, /* times: the ends of what fits, and those beside them */
    WORD_EARLY,
    WORD_LAST,
    WORD_LATE
};

static int64_t time_of(int64_t v)
{
    return v == WORD_FIRST   ? INT64_MIN / 1000 + 1
           : v == WORD_EARLY ? INT64_MIN / 1000
           : v == WORD_LAST  ? INT64_MAX / 1000 - 1
           : v == WORD_LATE  ? INT64_MAX / 1000
                             : 0;
}

static uint32_t pack(int64_t key, int64_t v, bool null, unsigned char *at)
{
    struct tn_value values[] = {
        {.as.i64 = key}, {.as.i64 = v, .null = null}, {.as.i64 = time_of(v)}};
    return tn_row_pack(&bed.layout, values, at);
}

static int64_t value_of(struct tn_row row)
{
    struct tn_value v;
    tn_row_get(&bed.layout, row, 1, &v);
    return v.as.i64;
}

static tn_rc resolve(struct tn_resolver *resolver, const struct tn_row *now, struct tn_row row,
                     enum tn_row_kind kind, int64_t sequence, enum tn_verdict *verdict,
                     struct tn_buf *out, struct tn_err *err)
{
    (void)resolver;
    (void)now;
    (void)sequence;
    CHECK(kind != TN_ROW_UPDATE_BEFORE && out->size == 0 && row.size == bed.layout.fixed_size);
    int64_t v = value_of(row);
    unsigned char packed[ROW_MAX];
    switch (v) {
    case WORD_KEEP:
        *verdict = TN_VERDICT_KEEP;
        return TN_OK;
    case WORD_DELETE:
        *verdict = TN_VERDICT_DELETE;
        return TN_OK;
    case WORD_BAD:
        return tn_err_set(err, TN_INVALID, 0, "bad");
    case WORD_PARKED:
        return tn_err_set(err, TN_CANCELED, 0, "parked");
    default:
        break;
    }
    *verdict = TN_VERDICT_ROW;
    tn_buf_append(out, packed,
                  pack(v == WORD_OTHER_KEY ? KEY + 1 : KEY, v, v == WORD_EMPTY, packed));
    for (uint32_t i = 0; v == WORD_LONG && i < ROW_MAX; i++) {
        tn_buf_byte(out, 0);
    }
    return TN_OK;
}

/* Tens are seen, from 100 on nothing; 66 can't be. */
static tn_rc announce(struct tn_resolver *resolver, struct tn_row row, bool *shown,
                      struct tn_buf *out, struct tn_err *err)
{
    (void)resolver;
    int64_t v = value_of(row);
    unsigned char packed[ROW_MAX];
    bed.images++;
    if (v == 66) {
        return tn_err_set(err, TN_INVALID, 0, "can't be seen");
    }
    *shown = v < 100;
    if (*shown) {
        tn_buf_append(out, packed, pack(KEY, v / 10 * 10, false, packed));
    }
    return TN_OK;
}

static tn_rc find(struct tn_state *state, const struct tn_kv *key, struct tn_kv *found,
                  struct tn_err *err)
{
    (void)state;
    (void)err;
    (void)key;
    if (bed.was < 0) {
        return TN_ABSENT;
    }
    *found = (struct tn_kv){.row = {bed.was_row, pack(KEY, bed.was, false, bed.was_row)},
                            .sequence = 1,
                            .kind = bed.was_kind};
    return TN_OK;
}

static void say(char *text, const struct tn_kv *kv, bool sequence)
{
    size_t size = strlen(text);
    (void)snprintf(text + size, TEXT_MAX - size, sequence ? "%s%s%d@%d" : "%s%s%d",
                   size > 0 ? " " : "", tn_row_kind_text(kv->kind), (int)value_of(kv->row),
                   (int)kv->sequence);
}

static tn_rc put_row(struct tn_change_sink *sink, const struct tn_kv *kv, struct tn_err *err)
{
    (void)sink;
    (void)err;
    say(bed.rows_text, kv, true);
    return TN_OK;
}

static tn_rc put_change(struct tn_change_sink *sink, const struct tn_kv *kv, struct tn_err *err)
{
    (void)sink;
    (void)err;
    say(bed.changes_text, kv, false);
    return TN_OK;
}

static tn_rc put_letter(struct tn_letter_sink *sink, const struct tn_letter *letter,
                        struct tn_err *err)
{
    (void)sink;
    (void)err;
    size_t size = strlen(bed.letters_text);
    CHECK(letter->origin.part == 3 && letter->origin.source == 9);
    (void)snprintf(bed.letters_text + size, TEXT_MAX - size, "%s%d %s", size > 0 ? ", " : "",
                   (int)letter->origin.position, letter->reason);
    return TN_OK;
}

static void bed_make(uint32_t columns)
{
    static const char *const names[] = {"k", "v", "t"};
    static const struct tn_type types[] = {
        {.kind = TN_TYPE_BIGINT},
        {.kind = TN_TYPE_BIGINT, .nullable = false},
        {.kind = TN_TYPE_TIMESTAMP, .precision = 6, .nullable = true}};
    static const uint32_t keys[] = {0};
    tn_arena_init(&bed.arena, malloc(64 << 10), 64 << 10);
    tn_rc rc = tn_row_layout_init(&bed.layout, names, types, columns, &bed.arena, &bed.err);
    CHECK_OK(rc, bed.err);
    bed.order = (struct tn_order){.layout = &bed.layout, .keys = {keys, 1}, .prefix_decides = true};
    tn_pool_init(&bed.pool, malloc(POOL_SIZE), POOL_SIZE, PAGE_SIZE);
    bed.before.find = find;
    bed.resolver.resolve = resolve;
    bed.letters.put = put_letter;
    bed.rows.put = put_row;
    bed.changes.put = put_change;
}

static int64_t word_of(const char *word, enum tn_row_kind *kind)
{
    static const struct {
        char letter;
        int64_t value;
    } words[] = {{'k', WORD_KEEP},      {'d', WORD_DELETE}, {'x', WORD_BAD},    {'l', WORD_LONG},
                 {'o', WORD_OTHER_KEY}, {'e', WORD_EMPTY},  {'p', WORD_PARKED}, {'f', WORD_FIRST},
                 {'a', WORD_EARLY},     {'z', WORD_LAST},   {'t', WORD_LATE}};
    *kind = word[0] == 'u' ? TN_ROW_UPDATE_BEFORE : TN_ROW_INSERT;
    for (size_t i = 0; i < COUNT(words); i++) {
        if (words[i].letter == word[0]) {
            return words[i].value;
        }
    }
    return atoi(word);
}

/* Rows are numbered from 2 on. */
static void put_rows(const char *words)
{
    tn_memtable_init(&bed.memtable, &bed.pool, &bed.order, TN_MEMTABLE_ALL);
    int64_t number = 2;
    for (const char *word = words; *word; number++) {
        unsigned char packed[ROW_MAX];
        enum tn_row_kind kind;
        int64_t v = word_of(word, &kind);
        uint32_t size = pack(KEY, v, false, packed);
        struct tn_origin origin = {.position = number, .part = 3, .source = 9};
        uint32_t origin_size = tn_origin_put(packed + size, &origin);
        tn_rc rc = tn_memtable_put(&bed.memtable, (struct tn_row){packed, size + origin_size}, kind,
                                   number, &bed.err);
        CHECK_OK(rc, bed.err);
        word += strcspn(word, " ");
        word += *word == ' ';
    }
    tn_memtable_freeze(&bed.memtable);
    tn_memtable_sort(&bed.memtable);
}

static tn_rc run(int64_t was, const char *words, bool images)
{
    bed.was = was;
    bed.images = 0;
    bed.rows_text[0] = bed.changes_text[0] = bed.letters_text[0] = 0;
    bed.resolver.announce = images ? announce : NULL;
    put_rows(words);
    struct tn_resolve_counts counts;
    struct tn_resolve_spec spec = {.order = &bed.order,
                                   .memtable = &bed.memtable,
                                   .resolver = &bed.resolver,
                                   .letters = &bed.letters,
                                   .before = &bed.before,
                                   .rows = &bed.rows,
                                   .changes = &bed.changes,
                                   .row_size_max = 32};
    size_t mark = tn_arena_mark(&bed.arena);
    tn_rc rc = tn_resolve(&spec, &bed.arena, &counts, &bed.err);
    CHECK(tn_arena_mark(&bed.arena) - mark <= tn_resolve_size(spec.row_size_max) + 16);
    CHECK(tn_memtable_keys(&bed.memtable) <= 1);
    tn_arena_reset(&bed.arena, mark);
    tn_memtable_drop(&bed.memtable);
    return rc;
}

struct story {
    int64_t was;
    const char *words;
    const char *rows;
    const char *changes;
    const char *letters;
    uint32_t images; /* the most that are asked for */
};

static void tell(const struct story *stories, size_t count, uint32_t columns, bool images)
{
    bed_make(columns);
    for (size_t i = 0; i < count; i++) {
        const struct story *s = &stories[i];
        tn_rc rc = run(s->was, s->words, images);
        CHECK_OK(rc, bed.err);
        if (strcmp(bed.rows_text, s->rows) != 0 || strcmp(bed.changes_text, s->changes) != 0 ||
            strcmp(bed.letters_text, s->letters) != 0 || bed.images != s->images) {
            FAIL("%d, then %s: rows '%s' changes '%s' letters '%s', %u images", (int)s->was,
                 s->words, bed.rows_text, bed.changes_text, bed.letters_text, bed.images);
        }
    }
    tn_unpoison(bed.pool.base, POOL_SIZE);
    free(bed.pool.base);
    free(bed.arena.base);
}

static void a_key_ends_as_its_rows_say(void)
{
    static const struct story stories[] = {
        {-1, "7", "+I7@2", "+I7", "", 0},
        {-1, "7 8 k", "+I8@3", "+I8", "", 0},
        {-1, "7 d", "", "", "", 0},
        {-1, "d k u x", "", "", "5 bad", 0},
        {7, "7", "", "", "", 0},
        {7, "8", "+U8@2", "-U7 +U8", "", 0},
        {7, "8 8 8", "+U8@2", "-U7 +U8", "", 0},
        {7, "8 7", "", "", "", 0},
        {7, "d", "-D7@2", "-D7", "", 0},
        {7, "d d", "-D7@2", "-D7", "", 0},
        {7, "8 d k", "-D7@3", "-D7", "", 0},
        {7, "d 9", "+U9@3", "-U7 +U9", "", 0},
        {7, "d 7", "", "", "", 0},
        {7, "u x 9 x", "+U9@4", "-U7 +U9", "3 bad, 5 bad", 0},
        {7, "l o e 9", "+U9@5", "-U7 +U9",
         "2 the result is longer than 32 bytes, 3 the result has another key, "
         "4 column 'v' is NOT NULL, and the result has none",
         0},
    };
    bed.was_kind = TN_ROW_INSERT;
    tell(stories, COUNT(stories), 2, false);
}

/* What a retract says of was: nothing is there. */
static void what_was_deleted_is_not_there(void)
{
    static const struct story stories[] = {
        {7, "8", "+I8@2", "+I8", "", 0},
        {7, "d", "", "", "", 0},
    };
    bed.was_kind = TN_ROW_DELETE;
    tell(stories, COUNT(stories), 2, false);
}

/* Files have microseconds of 64 bits. */
static void a_result_has_times_that_fit(void)
{
    static const struct story stories[] = {
        {7, "f", "+U1007@2", "-U7 +U1007", "", 0},
        {7, "z", "+U1009@2", "-U7 +U1009", "", 0},
        {7, "a 9 t", "+U9@3", "-U7 +U9",
         "2 column 't': a timestamp is out of the range of microseconds, "
         "4 column 't': a timestamp is out of the range of microseconds",
         0},
        {7, "e 9", "+U9@3", "-U7 +U9", "2 column 'v' is NOT NULL, and the result has none", 0},
    };
    bed.was_kind = TN_ROW_INSERT;
    tell(stories, COUNT(stories), 3, false);
}

static void followers_see_the_difference_of_images(void)
{
    static const struct story stories[] = {
        {-1, "7", "+I7@2", "+I0", "", 1},
        {-1, "100", "+I100@2", "", "", 1},
        {-1, "7 d", "", "", "", 1},
        {7, "k k u", "", "", "", 0},
        {7, "7 7", "", "", "", 0},
        {7, "8", "+U8@2", "", "", 2},
        {7, "8 17", "+U17@3", "-U0 +U10", "", 3},
        {7, "17 8", "+U8@3", "", "", 3},
        {7, "100", "+U100@2", "-D0", "", 2},
        {100, "7", "+U7@2", "+I0", "", 2},
        {100, "d", "-D100@2", "", "", 1},
        {17, "100 d", "-D17@3", "-D10", "", 2},
        {7, "66", "", "", "2 can't be seen", 2},
        {7, "17 66 d", "-D7@4", "-D0", "3 can't be seen", 3},
        {7, "17 66", "+U17@2", "-U0 +U10", "3 can't be seen", 3},
        {66, "7 d", "", "",
         "2 the row that is there: can't be seen, 3 the row that is there: can't be seen", 1},
    };
    bed.was_kind = TN_ROW_UPDATE_AFTER;
    tell(stories, COUNT(stories), 2, true);
}

static void a_resolver_that_gives_up_is_heard(void)
{
    bed_make(2);
    tn_rc rc = run(7, "8 p 9", false);
    CHECK(rc == TN_CANCELED && strcmp(bed.err.text, "parked") == 0);
    tn_unpoison(bed.pool.base, POOL_SIZE);
    free(bed.pool.base);
    free(bed.arena.base);
}

static void an_origin_is_read_as_it_was_put(void)
{
    uint64_t random = given_number("SEED", 1);
    for (int i = 0; i < 10000; i++) {
        const struct tn_origin origin = {
            .position = (int64_t)(random_next(&random) >> random_below(&random, 64)),
            .part = (uint32_t)(random_next(&random) >> 32 >> random_below(&random, 32)),
            .source = (uint16_t)(random_next(&random) >> 48 >> random_below(&random, 16))};
        unsigned char bytes[TN_ORIGIN_SIZE_MAX];
        CHECK(tn_origin_put(bytes, &origin) <= TN_ORIGIN_SIZE_MAX);
        struct tn_origin back = tn_origin_get(bytes);
        CHECK(back.position == origin.position);
        CHECK(back.part == origin.part && back.source == origin.source);
    }
}

static const struct test tests[] = {
    TEST(an_origin_is_read_as_it_was_put),   TEST(a_key_ends_as_its_rows_say),
    TEST(what_was_deleted_is_not_there),     TEST(followers_see_the_difference_of_images),
    TEST(a_resolver_that_gives_up_is_heard), TEST(a_result_has_times_that_fit),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
