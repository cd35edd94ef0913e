/* Texts and numbers of any bytes through every cast: a result is one of the new type, points into
 * the value or the scratch, and is the same the second time. */
#include <stdlib.h>

#include "base/check.h"
#include "fuzz/fuzz.h"
#include "schema/cast.h"

static const char *const types[] = {
    "BOOLEAN",         "TINYINT",      "SMALLINT",     "INT",
    "BIGINT",          "FLOAT",        "DOUBLE",       "DECIMAL(5, 2)",
    "DECIMAL(38, 10)", "CHAR(4)",      "VARCHAR(3)",   "STRING",
    "BINARY(4)",       "BYTES",        "DATE",         "TIME(3)",
    "TIMESTAMP(0)",    "TIMESTAMP(4)", "TIMESTAMP(9)", "TIMESTAMP(3) WITH LOCAL TIME ZONE",
};
enum { TYPES = sizeof types / sizeof types[0] };

static struct tn_type type_of(uint32_t number)
{
    struct tn_type type;
    struct tn_err err;
    tn_rc rc = tn_type_parse(tn_bytes_of(types[number]), &type, &err);
    TN_CHECK(rc == TN_OK);
    return type;
}

static int64_t number_of(const struct tn_type *type, struct tn_bytes bytes)
{
    unsigned char raw[8] = {0};
    memcpy(raw, bytes.data, bytes.size < 8 ? bytes.size : 8);
    int64_t wide = (int64_t)tn_load_u64(raw);
    switch ((int)type->kind) {
    case TN_TYPE_BOOLEAN:
        return wide & 1;
    case TN_TYPE_TINYINT:
        return (int8_t)wide;
    case TN_TYPE_SMALLINT:
        return (int16_t)wide;
    case TN_TYPE_INT:
    case TN_TYPE_DATE:
    case TN_TYPE_TIME:
        return (int32_t)wide;
    default:
        return wide;
    }
}

/* Some value of the type, out of any bytes. */
static struct tn_value value_of(const struct tn_type *type, struct tn_bytes bytes)
{
    struct tn_value value = {0};
    if (tn_type_textual(type->kind) || tn_type_binary(type->kind)) {
        value.as.bytes = bytes;
        return value;
    }
    value.as.i64 = number_of(type, bytes);
    if (type->kind == TN_TYPE_DECIMAL) {
        value.as.i128 = tn_i128_of(value.as.i64);
        value.as.i128 =
            tn_i128_fits(value.as.i128, type->precision) ? value.as.i128 : tn_i128_of(-7);
    } else if (type->kind == TN_TYPE_FLOAT || type->kind == TN_TYPE_DOUBLE) {
        double number = 0;
        memcpy(&number, &value.as.i64, sizeof number);
        value.as.f64 = type->kind == TN_TYPE_FLOAT ? (double)(float)number : number;
    } else if (type->kind == TN_TYPE_TIMESTAMP || type->kind == TN_TYPE_TIMESTAMP_LTZ) {
        value.nanos = (uint32_t)((uint64_t)value.as.i64 % 1000000);
    }
    return value;
}

static bool inside(const void *at, size_t size, const void *base, size_t base_size)
{
    uintptr_t from = (uintptr_t)at;
    uintptr_t start = (uintptr_t)base;
    return from >= start && from + size <= start + base_size;
}

static void check(const struct tn_cast *cast, const struct tn_value *value,
                  const struct tn_cast_out *out, struct tn_bytes input)
{
    if (out->value.null) {
        TN_CHECK(cast->to.kind == TN_TYPE_DECIMAL);
        return;
    }
    if (tn_type_textual(cast->to.kind) || tn_type_binary(cast->to.kind)) {
        struct tn_bytes bytes = out->value.as.bytes;
        TN_CHECK(bytes.size == 0 || inside(bytes.data, bytes.size, input.data, input.size) ||
                 inside(bytes.data, bytes.size, out->text, sizeof out->text));
    } else if (cast->to.kind == TN_TYPE_DECIMAL) {
        TN_CHECK(tn_i128_fits(out->value.as.i128, cast->to.precision));
    } else if (tn_type_integer(cast->to.kind) || cast->to.kind == TN_TYPE_BOOLEAN) {
        unsigned char raw[8];
        tn_store_u64(raw, (uint64_t)out->value.as.i64);
        TN_CHECK(number_of(&cast->to, (struct tn_bytes){raw, 8}) == out->value.as.i64);
    } else {
        TN_CHECK(out->value.nanos < 1000000);
    }
    static struct tn_cast_out again;
    TN_CHECK(tn_cast_apply(cast, value, &again));
    TN_CHECK(again.pad_size == out->pad_size);
    TN_CHECK(tn_value_compare(&cast->to, &out->value, &again.value) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char *copy = malloc(size + 1); /* ASan sees its end */
    TN_CHECK(copy);
    memcpy(copy, data, size);
    struct tn_bytes input = {copy, size};
    for (uint32_t pair = 0; pair < TYPES * TYPES; pair++) {
        struct tn_type from = type_of(pair / TYPES);
        struct tn_type to = type_of(pair % TYPES);
        static struct tn_cast_out out;
        struct tn_cast cast;
        if (tn_cast_needed(&from, &to) && tn_cast_find(&from, &to, &cast)) {
            struct tn_value value = value_of(&from, input);
            if (tn_cast_apply(&cast, &value, &out)) {
                check(&cast, &value, &out, input);
            }
        }
    }
    free(copy);
    return 0;
}
