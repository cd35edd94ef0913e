/* Arithmetic of decimals against 64-bit integers where those are exact, and cases at the edges that
 * BigDecimal was asked for. */
#include "schema/decimal_math.h"

#include "base/arena.h"
#include "check.h"
#include "random.h"

enum { ROUNDS = 20000 };

static struct tn_err err;

static struct tn_type decimal(uint8_t precision, uint8_t scale)
{
    return (struct tn_type){.kind = TN_TYPE_DECIMAL, .precision = precision, .scale = scale};
}

static struct tn_i128 parse(uint8_t scale, const char *text)
{
    struct tn_type type = decimal(38, scale);
    struct tn_value value;
    tn_rc rc = tn_value_parse(&type, TN_EPOCH_NONE, tn_bytes_of(text), NULL, &value, &err);
    CHECK_OK(rc, err);
    return value.as.i128;
}

static void is_value(struct tn_i128 value, uint8_t scale, const char *text)
{
    CHECK(tn_i128_compare(value, parse(scale, text)) == 0);
}

/* a / b, rounded half away from zero. */
static int64_t divided(int64_t a, int64_t b)
{
    int64_t size = (a < 0 ? -a : a) / b;
    int64_t rest = (a < 0 ? -a : a) % b;
    size += 2 * rest >= b;
    return a < 0 ? -size : size;
}

static void small_decimals_are_integers(void)
{
    uint64_t seed = 7;
    struct tn_type wide = decimal(38, 3);
    struct tn_type narrow = decimal(18, 3);
    for (int i = 0; i < ROUNDS; i++) {
        int64_t a = (int64_t)random_below(&seed, 2000000001) - 1000000000;
        int64_t b = (int64_t)random_below(&seed, 2000000001) - 1000000000;
        const struct tn_type *type = i % 2 ? &wide : &narrow;
        struct tn_i128 result;
        CHECK(tn_decimal_add(type, tn_i128_of(a), tn_i128_of(b), &result));
        CHECK(tn_i128_compare(result, tn_i128_of(a + b)) == 0);
        CHECK(tn_decimal_subtract(type, tn_i128_of(a), tn_i128_of(b), &result));
        CHECK(tn_i128_compare(result, tn_i128_of(a - b)) == 0);
        CHECK(tn_decimal_negate(type, tn_i128_of(a), &result));
        CHECK(tn_i128_compare(result, tn_i128_of(-a)) == 0);
        CHECK(tn_decimal_multiply(type, tn_i128_of(a), tn_i128_of(b), &result));
        CHECK(tn_i128_compare(result, tn_i128_of(divided(a * b, 1000))) == 0);
    }
}

/* A divisor of twos and fives always has a quotient with an end. */
static void quotients_are_rounded_or_have_no_end(void)
{
    static const int64_t divisors[] = {1, 2, 5, 8, 10, 16, 25, 125, 640, 1000, 15625};
    uint64_t seed = 8;
    struct tn_type type = decimal(18, 2);
    struct tn_i128 result;
    for (int i = 0; i < ROUNDS / 10; i++) {
        int64_t a = (int64_t)random_below(&seed, 2000001) - 1000000;
        int64_t b = divisors[random_below(&seed, COUNT(divisors))];
        CHECK(tn_decimal_divide(&type, tn_i128_of(a), tn_i128_of(b), &result) == TN_DIVISION_OK);
        CHECK(tn_i128_compare(result, tn_i128_of(divided(a * 100, b))) == 0);
        CHECK(tn_decimal_divide(&type, tn_i128_of(a), tn_i128_of(-b), &result) == TN_DIVISION_OK);
        CHECK(tn_i128_compare(result, tn_i128_of(divided(-a * 100, b))) == 0);
        bool ends = a % 7 == 0;
        CHECK(tn_decimal_divide(&type, tn_i128_of(a), tn_i128_of(7), &result) ==
              (ends ? TN_DIVISION_OK : TN_DIVISION_ENDLESS));
    }
    CHECK(tn_decimal_divide(&type, tn_i128_of(0), tn_i128_of(3), &result) == TN_DIVISION_OK);
    CHECK(tn_i128_compare(result, tn_i128_of(0)) == 0);
    CHECK(tn_decimal_divide(&type, tn_i128_of(3), tn_i128_of(0), &result) == TN_DIVISION_BY_ZERO);
    CHECK(tn_decimal_divide(&type, parse(2, "9999999999999999.99"), tn_i128_of(1), &result) ==
          TN_DIVISION_TOO_LARGE);
}

static void large_results_are_none(void)
{
    static const char most[] = "9999999999999999999999999999.9999999999"; /* 38 digits */
    struct tn_type type = decimal(38, 10);
    struct tn_i128 result;
    CHECK(!tn_decimal_add(&type, parse(10, most), parse(10, most), &result)); /* past 128 bits */
    CHECK(!tn_decimal_add(&type, parse(10, most), tn_i128_of(1), &result));
    CHECK(tn_decimal_subtract(&type, parse(10, most), parse(10, most), &result));
    CHECK(tn_i128_compare(result, tn_i128_of(0)) == 0);
    CHECK(!tn_decimal_multiply(&type, parse(10, most), parse(10, "-1.0000000001"), &result));
    CHECK(tn_decimal_multiply(&type, parse(10, most), parse(10, "-1"), &result));
    is_value(result, 10, "-9999999999999999999999999999.9999999999");
    CHECK(tn_decimal_multiply(&type, parse(10, "12345678901234.5678901234"),
                              parse(10, "98765432109876.5432109876"), &result));
    is_value(result, 10, "1219326311370217952261844047.9164815516");
    CHECK(tn_decimal_multiply(&type, parse(10, "0.0000000001"), parse(10, "0.5"), &result));
    is_value(result, 10, "0.0000000001"); /* half is rounded up */
    CHECK(tn_decimal_multiply(&type, parse(10, "-0.0000000001"), parse(10, "0.5"), &result));
    is_value(result, 10, "-0.0000000001");
    CHECK(tn_decimal_divide(&type, parse(10, most), parse(10, "-10000000000"), &result) ==
          TN_DIVISION_OK);
    is_value(result, 10, "-1000000000000000000");
}

/* Up to 18 digits a sum is as large as 64 bits hold. Source: Paimon, DecimalUtils.add. */
static void short_sums_may_leave_their_type(void)
{
    struct tn_type type = decimal(3, 0);
    struct tn_i128 result;
    CHECK(tn_decimal_add(&type, tn_i128_of(900), tn_i128_of(200), &result));
    CHECK(tn_i128_compare(result, tn_i128_of(1100)) == 0);
    CHECK(!tn_decimal_negate(&type, result, &result));
    CHECK(!tn_decimal_add(&type, tn_i128_of(INT64_MAX), tn_i128_of(1), &result));
    CHECK(!tn_decimal_subtract(&type, tn_i128_of(INT64_MIN), tn_i128_of(1), &result));
}

static const struct test tests[] = {
    TEST(small_decimals_are_integers),
    TEST(quotients_are_rounded_or_have_no_end),
    TEST(large_results_are_none),
    TEST(short_sums_may_leave_their_type),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
