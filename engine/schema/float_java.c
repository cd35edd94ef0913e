/* Java's Double.toString and Float.toString: they name partition folders, so they must be those of
 * the Java that wrote the table, and up to JDK 18 that is not always the shortest text. Source:
 * JDK 17, jdk.internal.math.FloatingDecimal.dtoa, step by step: Steele and White's digits, with its
 * limits where a number is near a power of two. */
#include <math.h>

#include "base/check.h"
#include "schema/decimal.h"
#include "schema/float_text.h"
#include "schema/value.h"

/* ---- large integers ---- */

enum { LIMBS = 48 }; /* 5^325 * 2^750 or 10^310 * 2^64, shifted: below 1300 bits */

struct large {
    uint32_t limbs[LIMBS]; /* the lowest first, zeros above `count` */
    int count;
};

static void multiply(struct large *a, uint32_t factor)
{
    uint64_t carry = 0;
    for (int i = 0; i < a->count; i++) {
        carry += (uint64_t)a->limbs[i] * factor;
        a->limbs[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry > 0) {
        TN_CHECK(a->count < LIMBS);
        a->limbs[a->count++] = (uint32_t)carry;
    }
}

/* value * 5^fives * 2^twos */
static struct large large_of(uint64_t value, int fives, int twos)
{
    struct large a = {.limbs = {(uint32_t)value, (uint32_t)(value >> 32)}, .count = 2};
    for (int i = 0; i < fives; i++) {
        multiply(&a, 5);
    }
    for (; twos >= 31; twos -= 31) {
        multiply(&a, UINT32_C(1) << 31);
    }
    multiply(&a, UINT32_C(1) << twos);
    return a;
}

static int compare(const struct large *a, const struct large *b)
{
    for (int i = LIMBS - 1; i >= 0; i--) {
        if (a->limbs[i] != b->limbs[i]) {
            return a->limbs[i] < b->limbs[i] ? -1 : 1;
        }
    }
    return 0;
}

static struct large sum_of(const struct large *a, const struct large *b)
{
    struct large sum = {.count = LIMBS};
    uint64_t carry = 0;
    for (int i = 0; i < LIMBS; i++) {
        carry += (uint64_t)a->limbs[i] + b->limbs[i];
        sum.limbs[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return sum;
}

/* a -= b, for b <= a. */
static void subtract(struct large *a, const struct large *b)
{
    uint64_t borrow = 0;
    for (int i = 0; i < a->count; i++) {
        uint64_t difference = (uint64_t)a->limbs[i] - b->limbs[i] - borrow;
        a->limbs[i] = (uint32_t)difference;
        borrow = difference >> 63;
    }
}

/* ---- digits ---- */

struct java_digits {
    char digits[24];
    int count;
    int exponent; /* of the first digit */
};

/* A number as Java takes it apart: fraction / 2^52 * 2^exponent, 1 <= fraction / 2^52 < 2. */
struct parts {
    uint64_t fraction;
    int exponent;
    int significant_bits; /* 53 or 24, fewer for subnormal ones */
};

enum { FRACTION_BITS = 52, LONG_FIVES = 27, EASY_EXPONENT_MAX = 62, EASY_EXPONENT_MIN = -21 };

static struct parts parts_of(double value, bool narrow)
{
    int exponent = 0;
    double fraction = frexp(value, &exponent); /* 0.5 .. 1 */
    int smallest = narrow ? -125 : -1021;      /* of frexp, for normal numbers */
    int bits = narrow ? 24 : 53;
    return (struct parts){
        .fraction = (uint64_t)ldexp(fraction, FRACTION_BITS + 1),
        .exponent = exponent - 1,
        .significant_bits = exponent < smallest ? bits - (smallest - exponent) : bits,
    };
}

static int bit_length_of_five_to(int power)
{
    return power == 0 ? 0 : power * 1189 / 512 + 1; /* log2(5), right up to 5^27 */
}

/* As the source has it: three bits a five where its table ends. */
static int bits_of_fives(int power)
{
    return power < LONG_FIVES ? bit_length_of_five_to(power) : power * 3;
}

static void add_digit(struct java_digits *d, uint32_t digit)
{
    TN_CHECK(d->count < (int)sizeof d->digits);
    d->digits[d->count++] = (char)('0' + digit);
}

/* Whole numbers: all digits but those that the bits below the last significant one make up. */
static struct java_digits whole_digits(const struct parts *p)
{
    uint64_t whole = p->exponent >= FRACTION_BITS ? p->fraction << (p->exponent - FRACTION_BITS)
                                                  : p->fraction >> (FRACTION_BITS - p->exponent);
    int spare_bits = p->exponent - p->significant_bits - 1;
    int dropped = spare_bits > 1 ? spare_bits * 30103 / 100000 : 0; /* log10(2) */
    uint64_t power = 1;
    for (int i = 0; i < dropped; i++) {
        power *= 10;
    }
    uint64_t rest = whole % power;
    whole = whole / power + (dropped > 0 && rest >= power / 2);
    while (whole % 10 == 0) {
        whole /= 10;
        dropped++;
    }
    struct java_digits d = {.exponent = dropped - 1};
    char reversed[24] = {0};
    int count = 0;
    for (; whole > 0; whole /= 10) {
        reversed[count++] = (char)(whole % 10);
    }
    d.exponent += count;
    while (count > 0) {
        add_digit(&d, (uint32_t)reversed[--count]);
    }
    return d;
}

/* number = b / s * 10^exponent; `m` is half of its last place's worth, scaled as b is. */
struct fraction {
    struct large b;
    struct large s;
    struct large m;
    struct large ten_s;
    int width;      /* 32, 64: b and s fit a Java int, a long; 0: neither */
    int64_t java_m; /* m in that width: it may wrap around, and what Java does then is seen */
};

/* floor(log10), or one too much. */
static int estimate_exponent(const struct parts *p)
{
    double fraction = ldexp((double)p->fraction, -FRACTION_BITS);
    return (int)floor((fraction - 1.5) * 0.289529654 + 0.176091259 +
                      p->exponent * 0.301029995663981);
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static int trailing_zeros(uint64_t value)
{
    int zeros = 0;
    for (; (value & 1) == 0; value >>= 1) {
        zeros++;
    }
    return zeros;
}

static uint64_t low_word(const struct large *a)
{
    return (uint64_t)a->limbs[1] << 32 | a->limbs[0];
}

static int64_t wrap(uint64_t value, int width)
{
    return width == 32 ? (int32_t)(uint32_t)value : (int64_t)value;
}

static void set_fraction(struct fraction *f, const struct parts *p, int zeros, int exponent)
{
    int bits = FRACTION_BITS + 1 - zeros;
    int bits_behind_point = larger(0, bits - p->exponent - 1);
    int b5 = larger(0, -exponent);
    int b2 = b5 + bits_behind_point + p->exponent;
    int s5 = larger(0, exponent);
    int s2 = s5 + bits_behind_point;
    int m2 = b2 - p->significant_bits;
    b2 -= bits - 1;
    int shared = b2 < s2 ? b2 : s2;
    b2 -= shared;
    s2 -= shared;
    m2 -= shared;
    if (bits == 1) {
        m2--; /* below a power of two the next number is half as far */
    }
    if (m2 < 0) {
        b2 -= m2;
        s2 -= m2;
        m2 = 0;
    }
    f->b = large_of(p->fraction >> zeros, b5, b2);
    f->s = large_of(1, s5, s2);
    f->m = large_of(1, b5, m2);
    f->ten_s = large_of(1, s5 + 1, s2 + 1);
    int size = larger(bits + b2 + bits_of_fives(b5), s2 + 1 + bits_of_fives(s5 + 1));
    f->width = size < 32 ? 32 : size < 64 ? 64 : 0;
    f->java_m = wrap(low_word(&f->m), f->width);
}

/* Whether the digits so far are near enough from below, from above. */
static void test_large(const struct fraction *f, bool *low, bool *high)
{
    struct large sum = sum_of(&f->b, &f->m);
    *low = compare(&f->b, &f->m) < 0;
    *high = compare(&sum, &f->ten_s) >= 0;
}

static void test_small(struct fraction *f, bool first, bool *low, bool *high)
{
    int64_t b = wrap(low_word(&f->b), f->width);
    f->java_m = wrap((uint64_t)f->java_m * 10, f->width);
    *low = b < f->java_m;
    *high = wrap((uint64_t)b + (uint64_t)f->java_m, f->width) > wrap(low_word(&f->ten_s), f->width);
    if (!first && f->java_m <= 0) { /* the source's own guard, which the first digit lacks */
        *low = true;
        *high = true;
    }
}

/* The next digit; the rest of b, and m, are ten times as large afterwards. */
static uint32_t next_digit(struct fraction *f, bool first, bool *low, bool *high)
{
    uint32_t digit = 0;
    while (compare(&f->b, &f->s) >= 0) {
        subtract(&f->b, &f->s);
        digit++;
    }
    multiply(&f->b, 10);
    multiply(&f->m, 10);
    if (f->width > 0) {
        test_small(f, first, low, high);
    } else {
        test_large(f, low, high);
    }
    return digit;
}

static void round_up(struct java_digits *d)
{
    int last = d->count - 1;
    while (last > 0 && d->digits[last] == '9') {
        d->digits[last--] = '0';
    }
    if (d->digits[last] == '9') {
        d->digits[last] = '1';
        d->exponent++;
    } else {
        d->digits[last]++;
    }
}

static bool rounds_up(const struct java_digits *d, struct fraction *f, bool low, bool high)
{
    if (!high || !low) {
        return high;
    }
    multiply(&f->b, 2);
    int order = compare(&f->b, &f->ten_s);
    return order > 0 || (order == 0 && d->digits[d->count - 1] % 2 != 0);
}

/* Digits until what is left is less than the number's own uncertainty. */
static struct java_digits fraction_digits(const struct parts *p, int zeros)
{
    struct java_digits d = {.exponent = estimate_exponent(p)};
    struct fraction f;
    bool low = false;
    bool high = false;
    set_fraction(&f, p, zeros, d.exponent);
    uint32_t first = next_digit(&f, true, &low, &high);
    if (first == 0 && !high) {
        d.exponent--;
    } else {
        add_digit(&d, first);
    }
    if (d.exponent < -3 || d.exponent >= 8) {
        low = false; /* the form with an exponent has two digits at least */
        high = false;
    }
    while (!low && !high) {
        add_digit(&d, next_digit(&f, false, &low, &high));
    }
    if (rounds_up(&d, &f, low, high)) {
        round_up(&d);
    }
    return d;
}

static struct java_digits java_digits_of(double value, bool narrow)
{
    struct parts p = parts_of(value, narrow);
    int zeros = trailing_zeros(p.fraction);
    bool whole = FRACTION_BITS - zeros <= p.exponent;
    if (whole && p.exponent <= EASY_EXPONENT_MAX) {
        return whole_digits(&p);
    }
    return fraction_digits(&p, zeros);
}

static void format(struct tn_buf *buf, double value, bool narrow)
{
    if (tn_float_special(buf, value)) {
        return;
    }
    struct java_digits d = java_digits_of(fabs(value), narrow);
    if (d.exponent >= -3 && d.exponent < 7) {
        tn_digits_plain(buf, d.digits, d.count, d.exponent);
        return;
    }
    tn_digits_plain(buf, d.digits, d.count, 0);
    tn_buf_byte(buf, 'E');
    tn_integer_format(buf, d.exponent);
}

void tn_double_format_java(struct tn_buf *buf, double value)
{
    format(buf, value, false);
}

void tn_float_format_java(struct tn_buf *buf, float value)
{
    format(buf, (double)value, true);
}
