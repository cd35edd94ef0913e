#include <lua5.4/lauxlib.h>
#include <lua5.4/lua.h>
#include <math.h>

#include "schema/decimal.h"
#include "script/decimal.h"
#include "script/row.h"

enum {
    MS_DIGITS = 3, /* a TIMESTAMP of at most so many is ms in a script */
    US_DIGITS = 6,
    NS_DIGITS = 9,
    MS_A_DAY = 24 * 60 * 60 * 1000,
};

/* ---- times: ms and nanos in it, as one integer of the column's unit ---- */

static int64_t unit_of(const struct tn_type *type) /* units a ms */
{
    return type->precision <= MS_DIGITS ? 1 : type->precision <= US_DIGITS ? 1000 : 1000 * 1000;
}

static void push_time(lua_State *L, const struct tn_type *type, const struct tn_value *value)
{
    int64_t unit = unit_of(type);
    int64_t whole = 0;
    if (__builtin_mul_overflow(value->as.i64, unit, &whole) ||
        __builtin_add_overflow(whole, (int64_t)value->nanos / (1000000 / unit), &whole)) {
        (void)luaL_error(L, "a TIMESTAMP(%d) too far from 1970 for a 64-bit integer",
                         (int)type->precision);
    }
    lua_pushinteger(L, whole);
}

static bool read_time(const struct tn_type *type, int64_t whole, struct tn_value *value)
{
    int64_t unit = unit_of(type);
    int64_t rest = whole % unit;
    rest += rest < 0 ? unit : 0;
    value->as.i64 = (whole - rest) / unit;
    value->nanos = (uint32_t)(rest * (1000000 / unit));
    int64_t step = 1; /* of the last digit that the column has, in units */
    for (int digits = unit == 1      ? MS_DIGITS
                      : unit == 1000 ? US_DIGITS
                                     : NS_DIGITS;
         digits > type->precision; digits--) {
        step *= 10;
    }
    return whole % step == 0;
}

void tn_script_value_push(lua_State *L, const struct tn_type *type, const struct tn_value *value)
{
    if (value->null) {
        lua_pushnil(L);
        return;
    }
    switch ((int)type->kind) {
    case TN_TYPE_BOOLEAN:
        lua_pushboolean(L, value->as.i64 != 0);
        break;
    case TN_TYPE_FLOAT:
    case TN_TYPE_DOUBLE:
        lua_pushnumber(L, value->as.f64);
        break;
    case TN_TYPE_DECIMAL:
        tn_script_decimal_push(L, (struct tn_script_decimal){value->as.i128, type->scale});
        break;
    case TN_TYPE_CHAR:
    case TN_TYPE_VARCHAR:
    case TN_TYPE_BINARY:
    case TN_TYPE_VARBINARY:
        (void)lua_pushlstring(L, (const char *)value->as.bytes.data, value->as.bytes.size);
        break;
    case TN_TYPE_TIMESTAMP:
    case TN_TYPE_TIMESTAMP_LTZ:
        push_time(L, type, value);
        break;
    default:
        lua_pushinteger(L, value->as.i64);
        break;
    }
}

/* ---- from Lua ---- */

static void refuse(lua_State *L, int index, const struct tn_column *column, const char *why)
{
    char type[TN_TYPE_TEXT_SIZE];
    const char *text = lua_type(L, index) == LUA_TNUMBER || lua_isboolean(L, index) ||
                               tn_script_decimal_test(L, index)
                           ? luaL_tolstring(L, index, NULL)
                           : lua_pushfstring(L, "a %s", luaL_typename(L, index));
    (void)luaL_error(L, "column '%s' (%s): %s %s", column->name,
                     tn_type_format(&column->type, type), text, why);
}

static int64_t check_integer(lua_State *L, int index, const struct tn_column *column)
{
    int whole = 0;
    lua_Integer value = lua_type(L, index) == LUA_TNUMBER ? lua_tointegerx(L, index, &whole) : 0;
    if (!whole) {
        refuse(L, index, column, "is no integer");
    }
    return value;
}

static void check_range(lua_State *L, int index, const struct tn_column *column, int64_t value,
                        int64_t low, int64_t high)
{
    if (value < low || value > high) {
        refuse(L, index, column, "doesn't fit");
    }
}

static const double TWO_TO_63 = 9223372036854775808.0;

/* (The least integer is refused with those that are not.) */
static bool exact(const struct tn_column *column, lua_Integer value)
{
    double wide = column->type.kind == TN_TYPE_FLOAT ? (double)(float)value : (double)value;
    return fabs(wide) < TWO_TO_63 && (lua_Integer)wide == value;
}

static double check_float(lua_State *L, int index, const struct tn_column *column)
{
    if (lua_type(L, index) != LUA_TNUMBER) {
        refuse(L, index, column, "is no number");
    }
    if (lua_isinteger(L, index) && !exact(column, lua_tointeger(L, index))) {
        refuse(L, index, column, "is not exact as a float");
    }
    double value = lua_tonumber(L, index);
    if (column->type.kind == TN_TYPE_FLOAT) {
        float narrow = (float)value;
        if (isinf(narrow) && !isinf(value)) {
            refuse(L, index, column, "doesn't fit");
        }
        value = (double)narrow;
    }
    return value;
}

static struct tn_bytes bytes_at(lua_State *L, int index)
{
    size_t size;
    const char *text = lua_tolstring(L, index, &size);
    return (struct tn_bytes){(const unsigned char *)text, size};
}

/* Text of a DECIMAL or of a time, as a decoder reads it. */
static void parse(lua_State *L, struct tn_bytes text, const struct tn_column *column,
                  struct tn_value *value)
{
    struct tn_err err = {0};
    struct tn_buf none;
    tn_buf_init(&none, NULL, 0);
    if (tn_value_parse(&column->type, TN_EPOCH_NONE, text, &none, value, &err) != TN_OK) {
        (void)luaL_error(L, "column '%s': %s", column->name, err.text);
    }
}

static void check_decimal(lua_State *L, int index, const struct tn_column *column,
                          struct tn_value *value)
{
    const struct tn_type *type = &column->type;
    const struct tn_script_decimal *given = tn_script_decimal_test(L, index);
    struct tn_script_decimal decimal = {tn_i128_of(0), 0};
    if (given) {
        decimal = *given;
    } else if (lua_isinteger(L, index)) {
        decimal.unscaled = tn_i128_of(lua_tointeger(L, index));
    } else if (lua_type(L, index) == LUA_TNUMBER) {
        unsigned char text[TN_TYPE_TEXT_SIZE];
        struct tn_buf buf;
        tn_buf_init(&buf, text, sizeof text);
        tn_double_format(&buf, lua_tonumber(L, index));
        parse(L, tn_buf_bytes(&buf), column, value);
        return;
    } else {
        refuse(L, index, column, "is no number");
    }
    if (!tn_script_decimal_rescale(&decimal, type->scale, &value->as.i128) ||
        !tn_i128_fits(value->as.i128, type->precision)) {
        refuse(L, index, column, "doesn't fit");
    }
}

static void check_bytes(lua_State *L, int index, const struct tn_column *column,
                        struct tn_value *value)
{
    const struct tn_type *type = &column->type;
    if (lua_type(L, index) != LUA_TSTRING) {
        refuse(L, index, column, "is no text");
    }
    struct tn_bytes bytes = bytes_at(L, index);
    if (tn_type_textual(type->kind)) {
        parse(L, bytes, column, value);
        return;
    }
    size_t length = (size_t)type->length;
    if (bytes.size > length || (type->kind == TN_TYPE_BINARY && bytes.size != length)) {
        (void)luaL_error(L, "column '%s': %I bytes; %s %d", column->name, (lua_Integer)bytes.size,
                         type->kind == TN_TYPE_BINARY ? "it takes" : "at most", (int)length);
    }
    value->as.bytes = bytes;
}

static void check_time(lua_State *L, int index, const struct tn_column *column,
                       struct tn_value *value)
{
    int64_t whole = check_integer(L, index, column);
    if (!read_time(&column->type, whole, value)) {
        refuse(L, index, column, "has more digits than the column");
    }
}

/* By kind, for those that are an integer: what fits. */
static const struct {
    int64_t low, high;
} ranges[TN_TYPE_KIND_COUNT] = {
    [TN_TYPE_TINYINT] = {INT8_MIN, INT8_MAX}, [TN_TYPE_SMALLINT] = {INT16_MIN, INT16_MAX},
    [TN_TYPE_INT] = {INT32_MIN, INT32_MAX},   [TN_TYPE_BIGINT] = {INT64_MIN, INT64_MAX},
    [TN_TYPE_DATE] = {INT32_MIN, INT32_MAX},  [TN_TYPE_TIME] = {0, MS_A_DAY - 1},
};

void tn_script_value_check(lua_State *L, int index, const struct tn_column *column,
                           struct tn_value *value)
{
    enum tn_type_kind kind = column->type.kind;
    *value = (struct tn_value){.null = lua_isnil(L, index)};
    if (value->null) {
        return;
    }
    bool parsed = kind == TN_TYPE_DECIMAL || kind >= TN_TYPE_DATE;
    if (parsed && lua_type(L, index) == LUA_TSTRING) {
        parse(L, bytes_at(L, index), column, value);
        return;
    }
    switch ((int)kind) {
    case TN_TYPE_BOOLEAN:
        if (!lua_isboolean(L, index)) {
            refuse(L, index, column, "is no boolean");
        }
        value->as.i64 = lua_toboolean(L, index);
        break;
    case TN_TYPE_FLOAT:
    case TN_TYPE_DOUBLE:
        value->as.f64 = check_float(L, index, column);
        break;
    case TN_TYPE_DECIMAL:
        check_decimal(L, index, column, value);
        break;
    case TN_TYPE_TIMESTAMP:
    case TN_TYPE_TIMESTAMP_LTZ:
        check_time(L, index, column, value);
        break;
    case TN_TYPE_CHAR:
    case TN_TYPE_VARCHAR:
    case TN_TYPE_BINARY:
    case TN_TYPE_VARBINARY:
        check_bytes(L, index, column, value);
        break;
    default:
        value->as.i64 = check_integer(L, index, column);
        check_range(L, index, column, value->as.i64, ranges[kind].low, ranges[kind].high);
        break;
    }
}
