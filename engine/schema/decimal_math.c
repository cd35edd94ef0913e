#include "schema/decimal_math.h"

#include "base/check.h"

enum { DIGITS_OF_64_BITS = 18, LIMBS = 4, WIDE_LIMBS = 8 };

/* Magnitudes in limbs of 32 bits, lowest first: products fit 64 bits on every machine. */
struct limbs {
    uint32_t at[LIMBS];
};
struct wide {
    uint32_t at[WIDE_LIMBS];
};

static struct tn_i128 negated(struct tn_i128 value)
{
    return (struct tn_i128){~value.low + 1, (int64_t)(~(uint64_t)value.high + (value.low == 0))};
}

static struct limbs magnitude(struct tn_i128 value)
{
    struct tn_i128 size = value.high < 0 ? negated(value) : value;
    uint64_t high = (uint64_t)size.high;
    return (struct limbs){
        {(uint32_t)size.low, (uint32_t)(size.low >> 32), (uint32_t)high, (uint32_t)(high >> 32)}};
}

static struct tn_i128 value_of(const uint32_t *limbs, bool negative)
{
    struct tn_i128 value = {limbs[0] | (uint64_t)limbs[1] << 32,
                            (int64_t)(limbs[2] | (uint64_t)limbs[3] << 32)};
    return negative ? negated(value) : value;
}

static struct limbs power_of_ten(uint32_t exponent)
{
    struct tn_i128 power = tn_i128_of(1);
    for (uint32_t i = 0; i < exponent; i++) {
        bool fits = tn_i128_push_digit(&power, 0, false);
        TN_CHECK(fits);
    }
    return magnitude(power);
}

static struct wide multiply(struct limbs a, struct limbs b)
{
    struct wide product = {{0}};
    for (int i = 0; i < LIMBS; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < LIMBS; j++) {
            uint64_t sum = (uint64_t)a.at[i] * b.at[j] + product.at[i + j] + carry;
            product.at[i + j] = (uint32_t)sum;
            carry = sum >> 32;
        }
        product.at[i + LIMBS] = (uint32_t)carry;
    }
    return product;
}

/* ---- division: bit by bit, for it is rare ---- */

static bool less(struct limbs a, struct limbs b)
{
    for (int i = LIMBS - 1; i >= 0; i--) {
        if (a.at[i] != b.at[i]) {
            return a.at[i] < b.at[i];
        }
    }
    return false;
}

static void subtract(struct limbs *from, struct limbs b)
{
    uint64_t borrow = 0;
    for (int i = 0; i < LIMBS; i++) {
        uint64_t rest = (uint64_t)from->at[i] - b.at[i] - borrow;
        from->at[i] = (uint32_t)rest;
        borrow = rest >> 63;
    }
}

/* Shifts in a bit; returns the one that falls out. */
static uint32_t shift_left(uint32_t *limbs, int count, uint32_t bit)
{
    for (int i = 0; i < count; i++) {
        uint32_t out = limbs[i] >> 31;
        limbs[i] = limbs[i] << 1 | bit;
        bit = out;
    }
    return bit;
}

/* value / by in place, `by` below 2^127; returns the rest. */
static struct limbs divide(struct wide *value, struct limbs by)
{
    struct limbs rest = {{0}};
    for (int i = 0; i < 32 * WIDE_LIMBS; i++) {
        (void)shift_left(rest.at, LIMBS, shift_left(value->at, WIDE_LIMBS, 0));
        if (!less(rest, by)) {
            subtract(&rest, by);
            value->at[0] |= 1;
        }
    }
    return rest;
}

static bool is_zero(struct limbs a)
{
    return (a.at[0] | a.at[1] | a.at[2] | a.at[3]) == 0;
}

static struct wide widened(struct limbs a)
{
    return (struct wide){{a.at[0], a.at[1], a.at[2], a.at[3]}};
}

/* Divides and rounds half up, away from zero; false when more than 128 bits are left. */
static bool divide_rounding(struct wide *value, struct limbs by)
{
    struct limbs rest = divide(value, by);
    (void)shift_left(rest.at, LIMBS, 0);
    uint32_t carry = !less(rest, by);
    for (int i = 0; i < WIDE_LIMBS && carry; i++) {
        value->at[i]++;
        carry = value->at[i] == 0;
    }
    bool narrow = value->at[3] >> 31 == 0;
    for (int i = LIMBS; i < WIDE_LIMBS; i++) {
        narrow = narrow && value->at[i] == 0;
    }
    return narrow;
}

static bool finish(const struct tn_type *type, struct wide *value, struct limbs by, bool negative,
                   struct tn_i128 *out)
{
    if (!divide_rounding(value, by)) {
        return false;
    }
    struct tn_i128 result = value_of(value->at, negative);
    if (!tn_i128_fits(result, type->precision)) {
        return false;
    }
    *out = result;
    return true;
}

/* ---- the operations ---- */

static bool fits_64_bits(struct tn_i128 value)
{
    return value.high == ((int64_t)value.low < 0 ? -1 : 0);
}

bool tn_decimal_add(const struct tn_type *type, struct tn_i128 a, struct tn_i128 b,
                    struct tn_i128 *sum)
{
    struct tn_i128 result = {a.low + b.low, 0};
    uint64_t high = (uint64_t)a.high + (uint64_t)b.high + (result.low < a.low);
    result.high = (int64_t)high;
    bool overflow = (a.high < 0) == (b.high < 0) && (result.high < 0) != (a.high < 0);
    bool fits = type->precision <= DIGITS_OF_64_BITS ? fits_64_bits(result)
                                                     : tn_i128_fits(result, type->precision);
    if (overflow || !fits) {
        return false;
    }
    *sum = result;
    return true;
}

bool tn_decimal_subtract(const struct tn_type *type, struct tn_i128 a, struct tn_i128 b,
                         struct tn_i128 *difference)
{
    return tn_decimal_add(type, a, negated(b), difference);
}

bool tn_decimal_negate(const struct tn_type *type, struct tn_i128 a, struct tn_i128 *result)
{
    if (!tn_i128_fits(a, type->precision)) {
        return false;
    }
    *result = negated(a);
    return true;
}

bool tn_decimal_multiply(const struct tn_type *type, struct tn_i128 a, struct tn_i128 b,
                         struct tn_i128 *product)
{
    struct wide value = multiply(magnitude(a), magnitude(b));
    return finish(type, &value, power_of_ten(type->scale), (a.high < 0) != (b.high < 0), product);
}

static struct limbs greatest_common_divisor(struct limbs a, struct limbs b)
{
    while (!is_zero(b)) {
        struct wide value = widened(a);
        struct limbs rest = divide(&value, b);
        a = b;
        b = rest;
    }
    return a;
}

/* Takes a factor out as often as it is there. */
static void strip(struct limbs *value, uint32_t factor)
{
    for (;;) {
        struct wide quotient = widened(*value);
        struct limbs rest = divide(&quotient, (struct limbs){{factor}});
        if (!is_zero(rest)) {
            return;
        }
        memcpy(value->at, quotient.at, sizeof value->at);
    }
}

/* A quotient has an end when its reduced divisor has no factors but those of ten. */
static bool ends(struct limbs a, struct limbs b)
{
    struct wide reduced = widened(b);
    (void)divide(&reduced, greatest_common_divisor(a, b));
    struct limbs rest;
    memcpy(rest.at, reduced.at, sizeof rest.at);
    strip(&rest, 2);
    strip(&rest, 5);
    return rest.at[0] == 1 && (rest.at[1] | rest.at[2] | rest.at[3]) == 0;
}

enum tn_division tn_decimal_divide(const struct tn_type *type, struct tn_i128 a, struct tn_i128 b,
                                   struct tn_i128 *quotient)
{
    struct limbs divisor = magnitude(b);
    if (is_zero(divisor)) {
        return TN_DIVISION_BY_ZERO;
    }
    if (!ends(magnitude(a), divisor)) {
        return TN_DIVISION_ENDLESS;
    }
    struct wide value = multiply(magnitude(a), power_of_ten(type->scale));
    return finish(type, &value, divisor, (a.high < 0) != (b.high < 0), quotient)
               ? TN_DIVISION_OK
               : TN_DIVISION_TOO_LARGE;
}
