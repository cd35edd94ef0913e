#include "merge/aggregate.h"

#include "merge/bitmap32.h"
#include "schema/decimal_math.h"

/* ---- NULL ---- */

/* Most functions pass NULL over. True when `out` is set. */
static inline bool one_alone(const struct tn_value *old, const struct tn_value *in,
                             struct tn_value *out)
{
    if (!old->null && !in->null) {
        return false;
    }
    *out = old->null ? *in : *old;
    return true;
}

static void set_null(struct tn_value *out)
{
    *out = (struct tn_value){.null = true};
}

/* ---- numbers ---- */

static tn_rc refuse(const struct tn_aggregation *a, const char *why)
{
    return tn_err_set(a->err, TN_INVALID, 0, "%s", why);
}

/* Integers wrap at the width of their column, as Java's do. */
static inline int64_t wrapped(const struct tn_aggregation *a, uint64_t value)
{
    switch (a->column->width) {
    case 1:
        return (int8_t)value;
    case 2:
        return (int16_t)value;
    case 4:
        return (int32_t)value;
    default:
        return (int64_t)value;
    }
}

static bool is_decimal(const struct tn_aggregation *a)
{
    return a->column->type.kind == TN_TYPE_DECIMAL;
}

typedef bool decimal_step(const struct tn_type *type, struct tn_i128 a, struct tn_i128 b,
                          struct tn_i128 *out);

/* A result that is too large for the column is NULL. */
static void decimals(const struct tn_aggregation *a, decimal_step *step, const struct tn_value *old,
                     const struct tn_value *in, struct tn_value *out)
{
    struct tn_i128 result;
    if (step(&a->column->type, old->as.i128, in->as.i128, &result)) {
        *out = (struct tn_value){.as.i128 = result};
    } else {
        set_null(out);
    }
}

static tn_rc add_sum(const struct tn_aggregation *a, const struct tn_value *old,
                     const struct tn_value *in, struct tn_value *out)
{
    if (one_alone(old, in, out)) {
        return TN_OK;
    }
    if (a->column->slot == TN_SLOT_F64) {
        out->as.f64 = old->as.f64 + in->as.f64;
    } else if (a->column->slot == TN_SLOT_F32) {
        out->as.f64 = (double)((float)old->as.f64 + (float)in->as.f64);
    } else if (is_decimal(a)) {
        decimals(a, tn_decimal_add, old, in, out);
        return TN_OK;
    } else {
        out->as.i64 = wrapped(a, (uint64_t)old->as.i64 + (uint64_t)in->as.i64);
    }
    out->null = false;
    return TN_OK;
}

static void negate(const struct tn_aggregation *a, const struct tn_value *in, struct tn_value *out)
{
    struct tn_value result = {.null = in->null};
    if (in->null) {
        *out = result;
        return;
    }
    if (a->column->slot == TN_SLOT_F64 || a->column->slot == TN_SLOT_F32) {
        result.as.f64 = -in->as.f64;
    } else if (is_decimal(a)) {
        result.null = !tn_decimal_negate(&a->column->type, in->as.i128, &result.as.i128);
    } else {
        result.as.i64 = wrapped(a, 0 - (uint64_t)in->as.i64);
    }
    *out = result;
}

static tn_rc retract_sum(const struct tn_aggregation *a, const struct tn_value *old,
                         const struct tn_value *in, struct tn_value *out)
{
    if (old->null) {
        negate(a, in, out);
    } else if (in->null) {
        *out = *old;
    } else if (a->column->slot == TN_SLOT_F64) {
        *out = (struct tn_value){.as.f64 = old->as.f64 - in->as.f64};
    } else if (a->column->slot == TN_SLOT_F32) {
        float rest = (float)old->as.f64 - (float)in->as.f64;
        *out = (struct tn_value){.as.f64 = (double)rest};
    } else if (is_decimal(a)) {
        decimals(a, tn_decimal_subtract, old, in, out);
    } else {
        int64_t rest = wrapped(a, (uint64_t)old->as.i64 - (uint64_t)in->as.i64);
        *out = (struct tn_value){.as.i64 = rest};
    }
    return TN_OK;
}

static tn_rc add_product(const struct tn_aggregation *a, const struct tn_value *old,
                         const struct tn_value *in, struct tn_value *out)
{
    if (one_alone(old, in, out)) {
        return TN_OK;
    }
    if (a->column->slot == TN_SLOT_F64) {
        *out = (struct tn_value){.as.f64 = old->as.f64 * in->as.f64};
    } else if (a->column->slot == TN_SLOT_F32) {
        float product = (float)old->as.f64 * (float)in->as.f64;
        *out = (struct tn_value){.as.f64 = (double)product};
    } else if (is_decimal(a)) {
        decimals(a, tn_decimal_multiply, old, in, out);
    } else {
        int64_t product = wrapped(a, (uint64_t)old->as.i64 * (uint64_t)in->as.i64);
        *out = (struct tn_value){.as.i64 = product};
    }
    return TN_OK;
}

static tn_rc divide_decimals(const struct tn_aggregation *a, const struct tn_value *old,
                             const struct tn_value *in, struct tn_value *out)
{
    struct tn_i128 quotient = {0, 0};
    switch (tn_decimal_divide(&a->column->type, old->as.i128, in->as.i128, &quotient)) {
    case TN_DIVISION_OK:
        *out = (struct tn_value){.as.i128 = quotient};
        return TN_OK;
    case TN_DIVISION_TOO_LARGE:
        set_null(out);
        return TN_OK;
    case TN_DIVISION_BY_ZERO:
        return refuse(a, "division by zero");
    case TN_DIVISION_ENDLESS:
        break;
    }
    return refuse(a, "a division without end: the quotient is no DECIMAL");
}

static tn_rc retract_product(const struct tn_aggregation *a, const struct tn_value *old,
                             const struct tn_value *in, struct tn_value *out)
{
    if (old->null || in->null) {
        *out = *old;
    } else if (a->column->slot == TN_SLOT_F64) {
        *out = (struct tn_value){.as.f64 = old->as.f64 / in->as.f64};
    } else if (a->column->slot == TN_SLOT_F32) {
        float quotient = (float)old->as.f64 / (float)in->as.f64;
        *out = (struct tn_value){.as.f64 = (double)quotient};
    } else if (is_decimal(a)) {
        return divide_decimals(a, old, in, out);
    } else if (in->as.i64 == 0) {
        return refuse(a, "division by zero");
    } else if (in->as.i64 == -1) { /* the lowest number has no opposite */
        negate(a, old, out);
    } else {
        *out = (struct tn_value){.as.i64 = old->as.i64 / in->as.i64};
    }
    return TN_OK;
}

/* ---- one of the two ---- */

static tn_rc add_max(const struct tn_aggregation *a, const struct tn_value *old,
                     const struct tn_value *in, struct tn_value *out)
{
    if (!one_alone(old, in, out)) {
        *out = tn_value_compare(&a->column->type, old, in) < 0 ? *in : *old;
    }
    return TN_OK;
}

static tn_rc add_min(const struct tn_aggregation *a, const struct tn_value *old,
                     const struct tn_value *in, struct tn_value *out)
{
    if (!one_alone(old, in, out)) {
        *out = tn_value_compare(&a->column->type, old, in) < 0 ? *old : *in;
    }
    return TN_OK;
}

static tn_rc take_new(const struct tn_aggregation *a, const struct tn_value *old,
                      const struct tn_value *in, struct tn_value *out)
{
    (void)a;
    (void)old;
    *out = *in;
    return TN_OK;
}

static tn_rc take_null(const struct tn_aggregation *a, const struct tn_value *old,
                       const struct tn_value *in, struct tn_value *out)
{
    (void)a;
    (void)old;
    (void)in;
    set_null(out);
    return TN_OK;
}

static tn_rc add_last_non_null(const struct tn_aggregation *a, const struct tn_value *old,
                               const struct tn_value *in, struct tn_value *out)
{
    (void)a;
    *out = in->null ? *old : *in;
    return TN_OK;
}

static tn_rc retract_last_non_null(const struct tn_aggregation *a, const struct tn_value *old,
                                   const struct tn_value *in, struct tn_value *out)
{
    (void)a;
    if (in->null) {
        *out = *old;
    } else {
        set_null(out);
    }
    return TN_OK;
}

static tn_rc add_first(const struct tn_aggregation *a, const struct tn_value *old,
                       const struct tn_value *in, struct tn_value *out)
{
    *out = *a->begun ? *old : *in;
    *a->begun = true;
    return TN_OK;
}

static tn_rc add_first_non_null(const struct tn_aggregation *a, const struct tn_value *old,
                                const struct tn_value *in, struct tn_value *out)
{
    bool takes = !*a->begun && !in->null;
    *out = takes ? *in : *old;
    *a->begun = *a->begun || takes;
    return TN_OK;
}

/* All versions of a row have the same key: the first one is kept, so that it is copied once. */
static tn_rc take_key(const struct tn_aggregation *a, const struct tn_value *old,
                      const struct tn_value *in, struct tn_value *out)
{
    (void)a;
    *out = old->null ? *in : *old;
    return TN_OK;
}

/* ---- bool, text ---- */

static tn_rc add_and(const struct tn_aggregation *a, const struct tn_value *old,
                     const struct tn_value *in, struct tn_value *out)
{
    (void)a;
    if (!one_alone(old, in, out)) {
        *out = (struct tn_value){.as.i64 = old->as.i64 & in->as.i64};
    }
    return TN_OK;
}

static tn_rc add_or(const struct tn_aggregation *a, const struct tn_value *old,
                    const struct tn_value *in, struct tn_value *out)
{
    (void)a;
    if (!one_alone(old, in, out)) {
        *out = (struct tn_value){.as.i64 = old->as.i64 | in->as.i64};
    }
    return TN_OK;
}

static tn_rc add_list(const struct tn_aggregation *a, const struct tn_value *old,
                      const struct tn_value *in, struct tn_value *out)
{
    if (one_alone(old, in, out)) {
        return TN_OK;
    }
    const struct tn_bytes parts[] = {old->as.bytes, a->delimiter, in->as.bytes};
    size_t start = a->text->size;
    size_t size = parts[0].size + parts[1].size + parts[2].size;
    for (int i = 0; i < 3; i++) {
        tn_buf_append(a->text, parts[i].data, parts[i].size);
    }
    if (a->text->overflow) {
        return tn_err_set(
            a->err, TN_INVALID, 0,
            "the list takes %zu bytes, a row at most %zu; what helps is more memory (--memory)",
            size, a->text->capacity);
    }
    *out = (struct tn_value){.as.bytes = {a->text->data + start, size}};
    return TN_OK;
}

static tn_rc add_bitmap(const struct tn_aggregation *a, const struct tn_value *old,
                        const struct tn_value *in, struct tn_value *out)
{
    if (one_alone(old, in, out)) {
        return TN_OK;
    }
    size_t start = a->text->size;
    if (!tn_bitmap32_union(old->as.bytes, in->as.bytes, a->text)) {
        return refuse(a, "one of the values is no 32-bit roaring bitmap");
    }
    if (a->text->overflow) {
        return tn_err_set(a->err, TN_INVALID, 0,
                          "the bitmap takes more than the %zu bytes of a row", a->text->capacity);
    }
    *out = (struct tn_value){.as.bytes = {a->text->data + start, a->text->size - start}};
    return TN_OK;
}

const struct tn_aggregate_function tn_aggregate_functions[TN_AGGREGATE_COUNT] = {
    [TN_AGGREGATE_KEY] = {take_key, take_key},
    [TN_AGGREGATE_SUM] = {add_sum, retract_sum},
    [TN_AGGREGATE_PRODUCT] = {add_product, retract_product},
    [TN_AGGREGATE_MAX] = {add_max, NULL},
    [TN_AGGREGATE_MIN] = {add_min, NULL},
    [TN_AGGREGATE_LAST_VALUE] = {take_new, take_null},
    [TN_AGGREGATE_LAST_NON_NULL_VALUE] = {add_last_non_null, retract_last_non_null},
    [TN_AGGREGATE_FIRST_VALUE] = {add_first, NULL},
    [TN_AGGREGATE_FIRST_NON_NULL_VALUE] = {add_first_non_null, NULL},
    [TN_AGGREGATE_LISTAGG] = {add_list, NULL},
    [TN_AGGREGATE_BOOL_AND] = {add_and, NULL},
    [TN_AGGREGATE_BOOL_OR] = {add_or, NULL},
    [TN_AGGREGATE_RBM32] = {add_bitmap, NULL},
};
