/* Random predicates over random rows: an evaluator of its own says which rows match, and bounds of
 * random subsets must never exclude one that does. Beside it tables: grammar, errors, literals that
 * the column can't hold, what has to be pruned. */
#include "read/predicate.h"

#include <math.h>

#include "check.h"

enum { COL_N, COL_BIG, COL_D, COL_C, COL_S, COL_TS, COL_OK, COL_F, COLUMNS };
enum { ROWS = 24 };

static const char *const names[COLUMNS] = {"n", "big", "d", "c", "s", "ts", "ok", "f"};
static const char *const type_texts[COLUMNS] = {
    "INT", "BIGINT", "DOUBLE", "DECIMAL(9, 2)", "STRING", "TIMESTAMP(3)", "BOOLEAN", "FLOAT"};

static unsigned char memory[1 << 21];
static struct tn_arena arena;
static struct tn_field fields[COLUMNS + 1];
static struct tn_type types[COLUMNS];
static struct tn_schema schema;
static struct tn_row_layout layout;
static int32_t column_of[COLUMNS + 1];
static struct tn_err err;

static void set_up(void)
{
    static const char nested[] = "list";
    tn_arena_init(&arena, memory, sizeof memory);
    for (uint32_t i = 0; i < COLUMNS; i++) {
        tn_rc rc = tn_type_parse(tn_bytes_of(type_texts[i]), &types[i], &err);
        CHECK_OK(rc, err);
        fields[i] = (struct tn_field){.name = names[i], .type = types[i]};
        column_of[i] = (int32_t)i;
    }
    fields[COLUMNS] = (struct tn_field){.name = nested, .type = {.kind = TN_TYPE_ARRAY}};
    column_of[COLUMNS] = -1;
    schema = (struct tn_schema){.fields = fields, .field_count = COLUMNS + 1};
    tn_rc rc = tn_row_layout_init(&layout, names, types, COLUMNS, &arena, &err);
    CHECK_OK(rc, err);
}

static struct tn_predicate *parse(const char *text)
{
    struct tn_predicate *predicate = NULL;
    tn_rc rc = tn_predicate_parse(text, &schema, &arena, &predicate, &err);
    if (rc) {
        (void)fprintf(stderr, "%s\n", text);
    }
    CHECK_OK(rc, err);
    return predicate;
}

static uint64_t random_state = 88172645463325252;

static uint32_t random_below(uint32_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 33) % bound;
}

/* ---- rows of few values, so that comparisons meet ---- */

struct rows {
    struct tn_value values[ROWS][COLUMNS];
    unsigned char data[ROWS][128];
    struct tn_row rows[ROWS];
};

static const char *const texts[] = {"", "a", "ab", "b", "ba", "it's", "\"q\"", "\xC3\xA4"};

static struct tn_value random_value(uint32_t column)
{
    struct tn_value value = {.null = random_below(5) == 0};
    int32_t small = (int32_t)random_below(7) - 3;
    if (value.null) {
        return value;
    }
    switch (column) {
    case COL_D:
    case COL_F:
        value.as.f64 = random_below(12) == 0   ? (double)NAN
                       : random_below(12) == 0 ? -0.0
                                               : small / 2.0;
        break;
    case COL_C:
        value.as.i128 = tn_i128_of(small * 50);
        break;
    case COL_S:
        value.as.bytes = tn_bytes_of(texts[random_below(COUNT(texts))]);
        break;
    case COL_TS:
        value.as.i64 = small;
        break;
    case COL_OK:
        value.as.i64 = small > 0;
        break;
    default:
        value.as.i64 = small;
        break;
    }
    return value;
}

static void random_rows(struct rows *rows)
{
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t c = 0; c < COLUMNS; c++) {
            rows->values[r][c] = random_value(c);
        }
        CHECK(tn_row_packed_size(&layout, rows->values[r]) <= sizeof rows->data[r]);
        uint32_t size = tn_row_pack(&layout, rows->values[r], rows->data[r]);
        rows->rows[r] = (struct tn_row){rows->data[r], size};
    }
}

/* ---- the other evaluator: a number or a text a value, and a stack of texts with a truth a row
 * ---- */

struct operand {
    char text[4000];
    signed char truth[ROWS]; /* -1 false, 0 unknown, 1 true */
};

/* NaN is above all: a number that nothing else reaches. */
static double number_of(uint32_t column, const struct tn_value *value)
{
    if (column == COL_D || column == COL_F) {
        return isnan(value->as.f64) ? 1e300 : value->as.f64;
    }
    return column == COL_C ? (double)(int64_t)value->as.i128.low / 100 : (double)value->as.i64;
}

struct literal {
    char text[64];
    double number;
    const char *plain; /* texts */
};

static struct literal random_literal(uint32_t column)
{
    static const char *const numbers[] = {"0",     "1",      "-1",    "2",
                                          "-0.5",  "1.5",    "0.501", "-1e0",
                                          "3e-1",  "1e30",   "-1e30", "99999999999999999999",
                                          "1e400", "-1e400", "0.00",  "-3"};
    struct literal literal = {.plain = NULL};
    if (column == COL_S) {
        literal.plain = texts[random_below(COUNT(texts))];
        size_t size = 0;
        char quote = random_below(2) ? '\'' : '"';
        literal.text[size++] = quote;
        for (const char *c = literal.plain; *c; c++) {
            literal.text[size++] = *c;
            if (*c == quote) {
                literal.text[size++] = quote;
            }
        }
        literal.text[size] = quote;
    } else if (column == COL_TS) {
        /* in thousandths of a millisecond, finer than the column */
        int32_t micros = (int32_t)random_below(7000) - 3000;
        micros = random_below(2) ? micros : micros / 1000 * 1000;
        literal.number = micros / 1000.0;
        int32_t shown = micros < 0 ? micros + 60000000 : micros;
        (void)snprintf(literal.text, sizeof literal.text, "'%s:%02d.%06d'",
                       micros < 0 ? "1969-12-31 23:59" : "1970-01-01 00:00", (int)(shown / 1000000),
                       (int)(shown % 1000000));
    } else if (column == COL_OK) {
        literal.number = random_below(2);
        (void)snprintf(literal.text, sizeof literal.text, "%s",
                       literal.number > 0 ? "true" : "FALSE");
    } else {
        const char *text = numbers[random_below(COUNT(numbers))];
        literal.number = strtod(text, NULL);
        if (isinf(literal.number)) {
            literal.number = literal.number > 0 ? 1e299 : -1e299; /* below NaN */
        }
        if (column == COL_F && fabs(literal.number) < 1e20) {
            literal.number = (double)(float)literal.number;
        }
        (void)snprintf(literal.text, sizeof literal.text, random_below(3) ? "%s" : "'%s'", text);
    }
    return literal;
}

static int order_of(uint32_t column, const struct tn_value *value, const struct literal *literal)
{
    if (column == COL_S) {
        char text[16] = {0};
        memcpy(text, value->as.bytes.data, value->as.bytes.size);
        return strcmp(text, literal->plain);
    }
    double number = number_of(column, value);
    return (number > literal->number) - (number < literal->number);
}

static bool holds(int test, int order)
{
    switch (test) {
    case 0:
    case 1:
        return order == 0;
    case 2:
    case 3:
        return order != 0;
    case 4:
        return order < 0;
    case 5:
        return order <= 0;
    case 6:
        return order > 0;
    default:
        return order >= 0;
    }
}

static void random_leaf(const struct rows *rows, struct operand *leaf)
{
    static const char *const operators[] = {"=", "==", "!=", "<>", "<", "<=", ">", ">="};
    uint32_t column = random_below(COLUMNS);
    struct literal a = random_literal(column);
    struct literal b = random_literal(column);
    uint32_t shape = random_below(7);
    int test = (int)random_below(8);
    bool negated = random_below(2);
    const char *quote = random_below(4) ? "" : "`";
    char name[16];
    (void)snprintf(name, sizeof name, "%s%s%s", quote, names[column], quote);
    if (shape == 0) {
        (void)snprintf(leaf->text, sizeof leaf->text, "%s is %snull", name, negated ? "not " : "");
    } else if (shape == 1) {
        (void)snprintf(leaf->text, sizeof leaf->text, "%s %sIN(%s,%s , %s)", name,
                       negated ? "not " : "", a.text, b.text, a.text);
    } else if (shape == 2) {
        (void)snprintf(leaf->text, sizeof leaf->text, "%s %sbetween %s And %s", name,
                       negated ? "NOT " : "", a.text, b.text);
    } else {
        (void)snprintf(leaf->text, sizeof leaf->text, "%s%s%s", name, operators[test], a.text);
    }
    for (uint32_t r = 0; r < ROWS; r++) {
        const struct tn_value *value = &rows->values[r][column];
        bool truth = value->null;
        if (shape > 0 && value->null) {
            leaf->truth[r] = 0;
            continue;
        }
        if (shape == 1) {
            truth = order_of(column, value, &a) == 0 || order_of(column, value, &b) == 0;
        } else if (shape == 2) {
            truth = order_of(column, value, &a) >= 0 && order_of(column, value, &b) <= 0;
        } else if (shape > 2) {
            truth = holds(test, order_of(column, value, &a));
        }
        leaf->truth[r] = truth != (shape < 3 && negated) ? 1 : -1;
    }
}

/* a = not a, or a = a and b, or a = a or b. */
static void combine(struct operand *a, const struct operand *b, uint32_t kind)
{
    static char text[sizeof a->text];
    static char right[sizeof a->text];
    (void)snprintf(text, sizeof text, "%s", a->text);
    (void)snprintf(right, sizeof right, "%s", b->text);
    if (kind == 0) {
        (void)snprintf(a->text, sizeof a->text, "not (%.3000s)", text);
    } else {
        (void)snprintf(a->text, sizeof a->text, "(%.1900s) %s (%.1900s)", text,
                       kind == 1 ? "and" : "OR", right);
    }
    for (uint32_t r = 0; r < ROWS; r++) {
        signed char x = a->truth[r];
        signed char y = b->truth[r];
        a->truth[r] = (signed char)(kind == 0 ? -x : kind == 1 ? (x < y ? x : y) : (x > y ? x : y));
    }
}

/* One to eight leaves. */
static const struct operand *random_predicate(const struct rows *rows)
{
    static struct operand stack[8];
    uint32_t leaves = 1 + random_below(8);
    uint32_t count = 0;
    uint32_t nots = 0;
    while (leaves > 0 || count > 1) {
        uint32_t choice = random_below(10);
        if (choice < 2 && count > 0 && nots < 6) {
            combine(&stack[count - 1], &stack[count - 1], 0);
            nots++;
        } else if (leaves > 0 && (count < 2 || choice < 6)) {
            random_leaf(rows, &stack[count++]);
            leaves--;
        } else if (count > 1) {
            combine(&stack[count - 2], &stack[count - 1], 1 + random_below(2));
            count--;
        }
    }
    return &stack[0];
}

/* Bounds of the rows in `set`, in one of the ways in which statistics know less than all. */
static void bounds_of(const struct rows *rows, uint32_t set, struct tn_bounds *bounds)
{
    for (uint32_t c = 0; c < COLUMNS; c++) {
        struct tn_bounds *b = &bounds[c];
        *b = (struct tn_bounds){.known = random_below(6) > 0};
        for (uint32_t r = 0; r < ROWS; r++) {
            const struct tn_value *value = &rows->values[r][c];
            if (!(set >> r & 1)) {
                continue;
            }
            if (value->null) {
                b->null_count++;
                continue;
            }
            if (!b->has_range || tn_value_compare(&types[c], value, &b->min) < 0) {
                b->min = *value;
            }
            if (!b->has_range || tn_value_compare(&types[c], value, &b->max) > 0) {
                b->max = *value;
            }
            b->has_range = true;
        }
        b->null_count = random_below(5) ? b->null_count : -1;
        b->has_range = b->has_range && random_below(6) > 0;
        if (b->has_range && random_below(3) == 0) { /* wider, as cut texts are */
            if (c == COL_S) {
                b->min.as.bytes.size -= b->min.as.bytes.size > 0;
                b->max.as.bytes = tn_bytes_of("\xC3\xA5");
            } else if (c == COL_N || c == COL_BIG || c == COL_TS) {
                b->min.as.i64 -= random_below(2);
                b->max.as.i64 += random_below(2);
            }
        }
    }
}

static void predicates_agree_with_another_evaluator_and_never_prune_a_match(void)
{
    static struct rows rows;
    set_up();
    size_t mark = tn_arena_mark(&arena);
    uint32_t pruned = 0;
    uint32_t matched = 0;
    for (int round = 0; round < 60000; round++) {
        if (round % 50 == 0) {
            random_rows(&rows);
        }
        tn_arena_reset(&arena, mark);
        const struct operand *expect = random_predicate(&rows);
        const struct tn_predicate *predicate = parse(expect->text);
        bool some[COLUMNS + 1];
        for (uint32_t c = 0; c <= COLUMNS; c++) {
            some[c] = random_below(2);
        }
        const struct tn_predicate *part = tn_predicate_only(predicate, some, &arena);
        uint32_t set = random_below(2) ? random_below(1u << ROWS) : 1u << random_below(ROWS);
        struct tn_bounds bounds[COLUMNS + 1] = {0};
        bounds_of(&rows, set, bounds);
        bool any = false;
        for (uint32_t r = 0; r < ROWS; r++) {
            bool match = tn_predicate_match(predicate, &layout, column_of, rows.rows[r]);
            if (match != (expect->truth[r] == 1)) {
                (void)fprintf(stderr, "row %u: %s\n", r, expect->text);
            }
            CHECK(match == (expect->truth[r] == 1));
            bool part_match = !part || tn_predicate_match(part, &layout, column_of, rows.rows[r]);
            CHECK(!match || part_match);
            any = any || (match && (set >> r & 1));
            matched += match;
        }
        int64_t row_count = random_below(3) ? __builtin_popcount(set) : -1;
        bool may = tn_predicate_may_match(predicate, bounds, row_count);
        if (any && !may) {
            (void)fprintf(stderr, "pruned: %s\n", expect->text);
        }
        CHECK(may || !any);
        CHECK(!part || tn_predicate_may_match(part, bounds, row_count) || !any);
        pruned += !may;
        if (part) {
            bool used[COLUMNS + 1] = {0};
            tn_predicate_fields(part, used);
            for (uint32_t c = 0; c <= COLUMNS; c++) {
                CHECK(!used[c] || some[c]);
            }
        }
    }
    CHECK(pruned > 5000 && matched > 50000); /* or the test would say nothing */
}

/* ---- tables ---- */

struct match_case {
    const char *text;
    bool match; /* n = 2, big NULL, d = 2.5, c = 1.50, s = "it's", ts = 0, ok true, f = 0.1f */
};

static void operators_bind_as_in_sql(void)
{
    static const struct match_case cases[] = {
        {"n=2 or n=3 and n=4", true},
        {"(n=2 or n=3) and n=4", false},
        {"not n=3 and n=4", false},
        {"not (n=3 and n=4)", true},
        {"not not n=2", true},
        {"not n=2 or n=2", true},
        {"n=1 or n=2 and not n=3 or n=4", true},
        {"n between 1 and 3 and n=3", false},
        {"n not between 1 and 3 or n=2", true},
        {"ok", true},
        {"not ok or ok and n = 2", true},
        {"(ok)", true},
        {"ok = false", false},
        {"big = 1", false},
        {"not big = 1", false},
        {"big = 1 or n = 2", true},
        {"not (big = 1 and n = 3)", true},
        {"big is null and n IS NOT NULL", true},
        {"big not in (1)", false},
        {"s = 'it''s'", true},
        {"s = \"it's\"", true},
        {"`s` >= 'it'", true},
        {"n > 1.5 and n < 2.5", true},
        {"n = 2.0 and n == 20e-1 and n in (1.5, 2)", true},
        {"n = 2.5 or n <> 2", false},
        {"n < 1e999 and n > -1e999", true},
        {"n != 99999999999999999999999999999999999999999999", true},
        {"c > 1.499999 and c < 1.500001 and c = 1.5", true},
        {"c = 1.505", false},
        {"d = 2.5 and d < 1e400 and d > -1e400", true},
        {"f = 0.1 and f < 1e39", true},
        {"ts < '1970-01-01T00:00:00.0000001' and ts = '1970-01-01 00:00:00'", true},
    };
    set_up();
    struct tn_value values[COLUMNS] = {
        [COL_N] = {.as.i64 = 2},
        [COL_BIG] = {.null = true},
        [COL_D] = {.as.f64 = 2.5},
        [COL_C] = {.as.i128 = {150, 0}},
        [COL_S] = {.as.bytes = tn_bytes_of("it's")},
        [COL_OK] = {.as.i64 = 1},
        [COL_F] = {.as.f64 = (double)0.1f},
    };
    unsigned char data[128];
    struct tn_row row = {data, tn_row_pack(&layout, values, data)};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct tn_predicate *predicate = parse(cases[i].text);
        bool match = tn_predicate_match(predicate, &layout, column_of, row);
        if (match != cases[i].match) {
            (void)fprintf(stderr, "%s\n", cases[i].text);
        }
        CHECK(match == cases[i].match);
    }
}

static void errors_name_the_byte_and_what_belongs_there(void)
{
    static const struct {
        const char *text;
        const char *error;
    } cases[] = {
        {"", "where: at byte 0: a column's name belongs at the end"},
        {"bigg = 1", "where: at byte 0: 'bigg' is no column; did you mean 'big'?"},
        {"n = 1 and list is null", "at byte 10: column 'list' is ARRAY"},
        {"n", "at byte 1: an operator like = or 'is null' belongs at the end"},
        {"n =", "at byte 3: a number or a value in quotes belongs at the end"},
        {"n = s", "a number or a value in quotes belongs here, not 's'"},
        {"n = true", "a value in quotes belongs here, not 'true'"},
        {"n = 'x'", "at byte 4: column 'n'"},
        {"n = 1..5", "at byte 6"},
        {"s = 5", "at byte 4: column 's': a number, and the column is VARCHAR"},
        {"ok = 1", "a number, and the column is BOOLEAN"},
        {"ts > 5", "at byte 5: column 'ts'"},
        {"n = null", "write 'n is null'"},
        {"n in (1, null)", "write 'n is null'"},
        {"n in 1", "'(' belongs here, not '1'"},
        {"n in (1", "',' or ')' belongs at the end"},
        {"n in ()", "a number or a value in quotes belongs here, not ')'"},
        {"n between 1 or 2", "'and' (of between) belongs here, not 'or'"},
        {"n not = 1", "'in' or 'between' belongs here, not '='"},
        {"n is 5", "'null' belongs here, not '5'"},
        {"(n = 1", "'and', 'or' or ')' belongs at the end"},
        {"n = 1)", "at byte 5: 'and' or 'or' belongs here, not ')'"},
        {"n = 1 n = 2", "'and' or 'or' belongs here, not 'n'"},
        {"n = 1 and", "a column's name belongs at the end"},
        {"and n = 1", "'and' is no column"},
        {"s = 'abc", "at byte 4: the ' is never closed"},
        {"n = 1 ; drop", "'and' or 'or' belongs here, not ';'"},
        {"()", "a column's name belongs here, not ')'"},
    };
    set_up();
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_predicate *predicate;
        tn_rc rc = tn_predicate_parse(cases[i].text, &schema, &arena, &predicate, &err);
        if (rc != TN_INVALID || !strstr(err.text, cases[i].error)) {
            (void)fprintf(stderr, "%s\n got %s\nwant %s\n", cases[i].text, err.text,
                          cases[i].error);
        }
        CHECK(rc == TN_INVALID && strstr(err.text, cases[i].error));
    }
}

static tn_rc parse_repeated(const char *before, const char *middle, const char *after, int count)
{
    static char text[1 << 16];
    struct tn_predicate *predicate;
    size_t size = 0;
    for (int i = 0; i < count; i++) {
        size += (size_t)snprintf(text + size, sizeof text - size, "%s", before);
    }
    size += (size_t)snprintf(text + size, sizeof text - size, "%s", middle);
    for (int i = 0; i < count; i++) {
        size += (size_t)snprintf(text + size, sizeof text - size, "%s", after);
    }
    tn_arena_init(&arena, memory, sizeof memory);
    set_up();
    return tn_predicate_parse(text, &schema, &arena, &predicate, &err);
}

static void depth_and_size_have_a_bound(void)
{
    tn_rc rc = parse_repeated("(", "n = 1", ")", TN_PREDICATE_DEPTH_MAX);
    CHECK_OK(rc, err);
    rc = parse_repeated("(", "n = 1", ")", TN_PREDICATE_DEPTH_MAX + 1);
    CHECK(rc == TN_INVALID && strstr(err.text, "nested more than 32 deep"));
    rc = parse_repeated("not ", "n = 1", "", TN_PREDICATE_DEPTH_MAX);
    CHECK_OK(rc, err);
    rc = parse_repeated("not ", "n = 1", "", TN_PREDICATE_DEPTH_MAX + 1);
    CHECK(rc == TN_INVALID && strstr(err.text, "nested"));
    rc = parse_repeated("not n = 1 and ", "n = 1", "", 3 * TN_PREDICATE_DEPTH_MAX);
    CHECK_OK(rc, err);
    rc = parse_repeated("n = 1 or n = 2 and (", "n = 3", ")", TN_PREDICATE_DEPTH_MAX);
    CHECK_OK(rc, err);
    rc = parse_repeated("n = 1 and ", "n = 3", "", TN_PREDICATE_NODES_MAX / 2 - 1);
    CHECK_OK(rc, err);
    rc = parse_repeated("n = 1 and ", "n = 3", "", TN_PREDICATE_NODES_MAX / 2);
    CHECK(rc == TN_INVALID && strstr(err.text, "more than 1024"));
    rc = parse_repeated("", "n in (0", ",1", TN_PREDICATE_NODES_MAX);
    CHECK(rc == TN_INVALID && strstr(err.text, "more than 1024"));
}

static void files_that_cannot_match_are_pruned(void)
{
    /* n in 10..20 with no NULL, s in "b".."d" with some, d all NULL; 100 rows */
    static const struct match_case cases[] = {
        {"n = 9", false},
        {"n = 10", true},
        {"n > 20", false},
        {"n >= 20", true},
        {"n < 10", false},
        {"n <= 10.5", true},
        {"n = 15.5", false},
        {"n in (1, 2, 30)", false},
        {"n in (1, 12)", true},
        {"n is null", false},
        {"n is not null", true},
        {"n not between 10 and 20", false},
        {"not n < 21", false},
        {"not (n >= 10)", false},
        {"n != 15", true},
        {"s = 'a'", false},
        {"s > 'd'", false},
        {"s is null", true},
        {"not s < 'e'", false},
        {"d = 1", false},
        {"not d = 1", false},
        {"d is null", true},
        {"d is not null", false},
        {"n = 9 or s = 'a'", false},
        {"n = 9 or s = 'c'", true},
        {"n = 15 and s = 'z'", false},
        {"big = 1", true},
        {"big = 1 and n = 9", false},
        {"not (big = 1 or n >= 10)", false},
        {"n < 1e400 and n > 1e400", false},
    };
    set_up();
    struct tn_bounds bounds[COLUMNS + 1] = {
        [COL_N] = {true, true, {.as.i64 = 10}, {.as.i64 = 20}, 0},
        [COL_S] = {true, true, {.as.bytes = tn_bytes_of("b")}, {.as.bytes = tn_bytes_of("d")}, 5},
        [COL_D] = {.known = true, .null_count = 100},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        bool may = tn_predicate_may_match(parse(cases[i].text), bounds, 100);
        if (may != cases[i].match) {
            (void)fprintf(stderr, "%s\n", cases[i].text);
        }
        CHECK(may == cases[i].match);
    }
    bounds[COL_N].min.as.i64 = 30; /* above max: no bounds */
    CHECK(tn_predicate_may_match(parse("n = 9"), bounds, 100));
}

static void a_conjunction_can_fix_a_key(void)
{
    static const struct {
        const char *text;
        bool fixed;
    } cases[] = {
        {"n = 5 and s = 'x'", true},        {"s = 'x' and (ok and (n = 5.0 and d > 1))", true},
        {"n in (5) and s in ('x')", true},  {"n = 5", false},
        {"n = 5 or s = 'x'", false},        {"n = 5 and not s = 'x'", false},
        {"n = 5.5 and s = 'x'", false},     {"n >= 5 and s = 'x'", false},
        {"n in (5, 6) and s = 'x'", false}, {"(n = 5 or ok) and s = 'x'", false},
    };
    static const uint32_t keys[] = {COL_S, COL_N};
    set_up();
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_value values[2];
        bool fixed = tn_predicate_point(parse(cases[i].text), (struct tn_columns){keys, 2}, values);
        if (fixed != cases[i].fixed) {
            (void)fprintf(stderr, "%s\n", cases[i].text);
        }
        CHECK(fixed == cases[i].fixed);
        CHECK(!fixed ||
              (values[1].as.i64 == 5 && tn_bytes_equal(values[0].as.bytes, tn_bytes_of("x"))));
    }
    static const uint32_t d_key[] = {COL_D};
    struct tn_value value;
    bool fixed = tn_predicate_point(parse("d = 0"), (struct tn_columns){d_key, 1}, &value);
    CHECK(!fixed); /* two zeros, two hashes */
}

static void a_part_keeps_the_members_that_name_only_its_fields(void)
{
    set_up();
    bool keys[COLUMNS + 1] = {[COL_N] = true, [COL_S] = true};
    bool used[COLUMNS + 1] = {0};
    CHECK(tn_predicate_only(parse("n = 1 or d = 2"), keys, &arena) == NULL);
    CHECK(tn_predicate_only(parse("d = 2"), keys, &arena) == NULL);
    const struct tn_predicate *part = tn_predicate_only(
        parse("d = 1 and (n = 1 or s = 'a') and not (n = 5) and (n = 2 or d = 1)"), keys, &arena);
    CHECK(part != NULL);
    tn_predicate_fields(part, used);
    CHECK(used[COL_N] && used[COL_S] && !used[COL_D]);
    struct tn_bounds bounds[COLUMNS + 1] = {
        [COL_N] = {true, true, {.as.i64 = 5}, {.as.i64 = 5}, 0}};
    CHECK(!tn_predicate_may_match(part, bounds, 1));
    struct tn_arena full = {0};
    CHECK(tn_predicate_only(parse("n = 1"), keys, &full) == NULL);
}

static void a_full_arena_is_an_answer(void)
{
    set_up();
    for (size_t size = 0; size < 2000; size += 16) {
        struct tn_arena small;
        struct tn_predicate *predicate;
        tn_arena_init(&small, memory + sizeof memory / 2, size);
        tn_rc rc =
            tn_predicate_parse("n = 1 and s in ('abc', 'def')", &schema, &small, &predicate, &err);
        CHECK(rc == TN_OK || rc == TN_AGAIN);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(predicates_agree_with_another_evaluator_and_never_prune_a_match),
        TEST(operators_bind_as_in_sql),
        TEST(errors_name_the_byte_and_what_belongs_there),
        TEST(depth_and_size_have_a_bound),
        TEST(files_that_cannot_match_are_pruned),
        TEST(a_conjunction_can_fix_a_key),
        TEST(a_part_keeps_the_members_that_name_only_its_fields),
        TEST(a_full_arena_is_an_answer),
    };
    return run_tests(argc, argv, tests, COUNT(tests));
}
