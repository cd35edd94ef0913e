#include <float.h>
#include <math.h>

#include "read/predicate_private.h"

enum { EXPONENT_MAX = 100000 }; /* beyond it a number is 0 or too large, whatever its digits */

/* A number's text in parts: digits (with a point among them) * 10^exponent. */
struct number {
    struct tn_bytes digits;
    bool negative;
    int32_t exponent;
};

static struct number split_number(struct tn_bytes text)
{
    struct number number = {.digits = text};
    if (text.size > 0 && (text.data[0] == '-' || text.data[0] == '+')) {
        number.negative = text.data[0] == '-';
        number.digits = (struct tn_bytes){text.data + 1, text.size - 1};
    }
    size_t e = 0;
    while (e < number.digits.size && (number.digits.data[e] | 0x20) != 'e') {
        e++;
    }
    bool down = false;
    for (size_t i = e; i < number.digits.size; i++) {
        unsigned char c = number.digits.data[i];
        down = down || c == '-';
        if (c >= '0' && c <= '9' && number.exponent < EXPONENT_MAX) {
            number.exponent = number.exponent * 10 + (c - '0');
        }
    }
    number.exponent = down ? -number.exponent : number.exponent;
    number.digits.size = e;
    return number;
}

/* digits [. digits] [e [+-] digits], with a sign or without. */
static bool is_number(struct tn_bytes text)
{
    size_t i = 0;
    size_t first;
    i += text.size > 0 && (text.data[0] == '-' || text.data[0] == '+');
    for (int part = 0; part < 3; part++) {
        for (first = i; i < text.size && text.data[i] >= '0' && text.data[i] <= '9'; i++) {
        }
        if (i == first) {
            return false;
        }
        if (part == 0 && i < text.size && text.data[i] == '.') {
            i++;
        } else if (part < 2 && i < text.size && (text.data[i] | 0x20) == 'e') {
            part = 1;
            i++;
            i += i < text.size && (text.data[i] == '-' || text.data[i] == '+');
        } else {
            break;
        }
    }
    return i == text.size;
}

/* The number times 10^scale, cut towards zero. *cut: something was lost. False: more than 38
 * digits. */
static bool scaled(const struct number *number, uint32_t scale, struct tn_i128 *value, bool *cut)
{
    struct tn_bytes digits = number->digits;
    size_t whole = 0; /* digits before the point */
    while (whole < digits.size && digits.data[whole] != '.') {
        whole++;
    }
    /* How many digits count: those before the point, which the exponent and the scale move. */
    int64_t left = (int64_t)whole + number->exponent + (int64_t)scale;
    *value = (struct tn_i128){0};
    *cut = false;
    for (size_t i = 0; i < digits.size; i++) {
        if (digits.data[i] == '.') {
            continue;
        }
        unsigned digit = digits.data[i] - '0';
        if (left <= 0) {
            *cut = *cut || digit != 0;
        } else if (!tn_i128_push_digit(value, digit, number->negative)) {
            return false;
        }
        left--;
    }
    bool zero = value->low == 0 && value->high == 0;
    for (; left > 0 && !zero; left--) {
        if (!tn_i128_push_digit(value, 0, number->negative)) {
            return false;
        }
    }
    return true;
}

/* The place of a number among those with `scale` digits behind the point. */
static void place_number(struct tn_bytes text, uint32_t scale, struct tn_i128 *value,
                         enum tn_place *place)
{
    struct number number = split_number(text);
    bool cut;
    if (!scaled(&number, scale, value, &cut)) {
        *place = number.negative ? TN_PLACE_FIRST : TN_PLACE_LAST;
        return;
    }
    *place = cut ? TN_PLACE_AFTER : TN_PLACE_AT;
    if (cut && number.negative) { /* cut towards zero, but the place is after what is below */
        value->high -= value->low == 0;
        value->low -= 1;
    }
}

static void place_integer(struct tn_bytes text, struct tn_literal *literal)
{
    struct tn_i128 value;
    place_number(text, 0, &value, &literal->place);
    int64_t narrow = (int64_t)value.low;
    literal->value.as.i64 = narrow;
    bool fits = literal->place <= TN_PLACE_AFTER && tn_i128_compare(value, tn_i128_of(narrow)) == 0;
    if (!fits && literal->place <= TN_PLACE_AFTER) {
        literal->place = value.high < 0 ? TN_PLACE_FIRST : TN_PLACE_LAST;
    }
}

/* Above the largest finite number there is still Infinity. */
static void place_huge(enum tn_type_kind kind, bool negative, struct tn_literal *literal)
{
    double max = kind == TN_TYPE_FLOAT ? (double)FLT_MAX : DBL_MAX;
    literal->place = TN_PLACE_AFTER;
    literal->value.as.f64 = negative ? -(double)INFINITY : max;
}

/* The type that a literal is read as: one that keeps all of it, whatever the column can hold. */
static struct tn_type widest(const struct tn_type *type)
{
    struct tn_type wide = *type;
    if (tn_type_textual(type->kind)) {
        wide.kind = TN_TYPE_VARCHAR;
        wide.length = TN_LENGTH_MAX;
    } else if (tn_type_binary(type->kind)) {
        wide.kind = TN_TYPE_VARBINARY;
        wide.length = TN_LENGTH_MAX;
    } else if (type->kind == TN_TYPE_TIMESTAMP || type->kind == TN_TYPE_TIMESTAMP_LTZ) {
        wide.precision = 9;
    }
    return wide;
}

tn_rc tn_literal_read(const struct tn_type *type, struct tn_bytes text, bool number,
                      struct tn_arena *arena, struct tn_literal *literal, struct tn_err *err)
{
    *literal = (struct tn_literal){0};
    bool takes_text = tn_type_textual(type->kind) || tn_type_binary(type->kind);
    if (number && (takes_text || type->kind == TN_TYPE_BOOLEAN)) {
        return tn_err_set(err, TN_INVALID, 0, "a number, and the column is %s",
                          tn_type_name(type->kind));
    }
    if (tn_type_integer(type->kind) && is_number(text)) {
        place_integer(text, literal);
        return TN_OK;
    }
    if (type->kind == TN_TYPE_DECIMAL && is_number(text)) {
        place_number(text, type->scale, &literal->value.as.i128, &literal->place);
        return TN_OK;
    }
    struct tn_type wide = widest(type);
    struct tn_buf scratch;
    void *memory;
    size_t room = tn_type_binary(type->kind) ? text.size / 2 + 1 : 1;
    tn_rc rc = tn_arena_need(arena, room, "a literal", &memory, err);
    if (rc) {
        return rc;
    }
    tn_buf_init(&scratch, memory, room);
    rc = tn_value_parse(&wide, TN_EPOCH_NONE, text, &scratch, &literal->value, err);
    bool floating = type->kind == TN_TYPE_FLOAT || type->kind == TN_TYPE_DOUBLE;
    if (rc == TN_INVALID && floating && is_number(text)) {
        place_huge(type->kind, text.data[0] == '-', literal);
        return TN_OK;
    }
    return rc;
}

static int compare_double(double a, double b)
{
    bool a_nan = isnan(a);
    bool b_nan = isnan(b);
    if (a_nan || b_nan) {
        return a_nan - b_nan;
    }
    return (a > b) - (a < b);
}

enum tn_order tn_literal_order(const struct tn_type *type, const struct tn_value *value,
                               const struct tn_literal *literal)
{
    if (literal->place >= TN_PLACE_FIRST) {
        return literal->place == TN_PLACE_FIRST ? TN_ORDER_ABOVE : TN_ORDER_BELOW;
    }
    bool floating = type->kind == TN_TYPE_FLOAT || type->kind == TN_TYPE_DOUBLE;
    int order = floating ? compare_double(value->as.f64, literal->value.as.f64)
                         : tn_value_compare(type, value, &literal->value);
    if (order == 0 && literal->place == TN_PLACE_AT) {
        return TN_ORDER_SAME;
    }
    return order <= 0 ? TN_ORDER_BELOW : TN_ORDER_ABOVE;
}
