#include "script/decimal.h"

#include <lua5.4/lauxlib.h>
#include <lua5.4/lua.h>

#include "schema/decimal.h"
#include "schema/decimal_math.h"

static const char metatable[] = "tarn.decimal";

enum { TEXT_SIZE = 64 };

static struct tn_type whole(void)
{
    return (struct tn_type){.kind = TN_TYPE_DECIMAL, .precision = TN_DECIMAL_PRECISION_MAX};
}

void tn_script_decimal_push(lua_State *L, struct tn_script_decimal decimal)
{
    struct tn_script_decimal *d = lua_newuserdatauv(L, sizeof *d, 0);
    *d = decimal;
    luaL_setmetatable(L, metatable);
}

const struct tn_script_decimal *tn_script_decimal_test(lua_State *L, int index)
{
    return luaL_testudata(L, index, metatable);
}

static bool power_of_ten(uint32_t exponent, struct tn_i128 *power)
{
    *power = tn_i128_of(1);
    for (uint32_t i = 0; i < exponent; i++) {
        if (!tn_i128_push_digit(power, 0, false)) {
            return false;
        }
    }
    return true;
}

bool tn_script_decimal_rescale(const struct tn_script_decimal *d, uint32_t scale,
                               struct tn_i128 *unscaled)
{
    struct tn_type type = whole();
    struct tn_i128 power;
    struct tn_i128 back;
    if (scale >= d->scale) {
        return power_of_ten(scale - d->scale, &power) &&
               tn_decimal_multiply(&type, d->unscaled, power, unscaled);
    }
    return power_of_ten(d->scale - scale, &power) &&
           tn_decimal_divide(&type, d->unscaled, power, unscaled) == TN_DIVISION_OK &&
           tn_decimal_multiply(&type, *unscaled, power, &back) &&
           tn_i128_compare(back, d->unscaled) == 0;
}

bool tn_script_decimal_parse(struct tn_bytes text, struct tn_script_decimal *decimal)
{
    const unsigned char *point = text.size > 0 ? memchr(text.data, '.', text.size) : NULL;
    size_t scale = point ? text.size - (size_t)(point - text.data) - 1 : 0;
    struct tn_type type = whole();
    struct tn_err err = {0};
    if (scale > TN_DECIMAL_PRECISION_MAX || memchr(text.data, 'e', text.size) ||
        memchr(text.data, 'E', text.size)) {
        return false;
    }
    type.scale = (uint8_t)scale;
    decimal->scale = (uint32_t)scale;
    return tn_decimal_parse(&type, text, &decimal->unscaled, &err) == TN_OK;
}

/* ---- what a script does with them ---- */

static struct tn_script_decimal check(lua_State *L, int index)
{
    const struct tn_script_decimal *d = tn_script_decimal_test(L, index);
    if (d) {
        return *d;
    }
    if (!lua_isinteger(L, index)) {
        (void)luaL_error(L, "a tarn.decimal and a %s don't mix",
                         lua_isnumber(L, index) ? "float" : luaL_typename(L, index));
    }
    return (struct tn_script_decimal){tn_i128_of(lua_tointeger(L, index)), 0};
}

/* Both at the larger scale; false when one has no room for it. */
static bool align(struct tn_script_decimal *a, struct tn_script_decimal *b)
{
    uint32_t scale = a->scale > b->scale ? a->scale : b->scale;
    bool fits = tn_script_decimal_rescale(a, scale, &a->unscaled) &&
                tn_script_decimal_rescale(b, scale, &b->unscaled);
    a->scale = b->scale = scale;
    return fits;
}

static int push_result(lua_State *L, bool fits, struct tn_i128 unscaled, uint32_t scale)
{
    if (!fits || scale > TN_DECIMAL_PRECISION_MAX) {
        return luaL_error(L, "a tarn.decimal of more than %d digits", TN_DECIMAL_PRECISION_MAX);
    }
    tn_script_decimal_push(L, (struct tn_script_decimal){unscaled, scale});
    return 1;
}

typedef bool sum_fn(const struct tn_type *, struct tn_i128, struct tn_i128, struct tn_i128 *);

static int sum(lua_State *L, sum_fn *of)
{
    struct tn_script_decimal a = check(L, 1);
    struct tn_script_decimal b = check(L, 2);
    struct tn_type type = whole();
    struct tn_i128 result = {0};
    bool fits = align(&a, &b) && of(&type, a.unscaled, b.unscaled, &result);
    return push_result(L, fits, result, a.scale);
}

static int add(lua_State *L)
{
    return sum(L, tn_decimal_add);
}

static int subtract(lua_State *L)
{
    return sum(L, tn_decimal_subtract);
}

static int multiply(lua_State *L)
{
    struct tn_script_decimal a = check(L, 1);
    struct tn_script_decimal b = check(L, 2);
    struct tn_type type = whole();
    struct tn_i128 result = {0};
    bool fits = tn_decimal_multiply(&type, a.unscaled, b.unscaled, &result);
    return push_result(L, fits, result, a.scale + b.scale);
}

static int negate(lua_State *L)
{
    struct tn_script_decimal a = check(L, 1);
    struct tn_type type = whole();
    struct tn_i128 result = {0};
    return push_result(L, tn_decimal_negate(&type, a.unscaled, &result), result, a.scale);
}

static int compare(lua_State *L)
{
    struct tn_script_decimal a = check(L, 1);
    struct tn_script_decimal b = check(L, 2);
    bool a_coarser = a.scale < b.scale;
    if (align(&a, &b)) {
        return tn_i128_compare(a.unscaled, b.unscaled);
    }
    /* The coarser one has more digits than the other can have: its sign decides. */
    int sign = (a_coarser ? a : b).unscaled.high < 0 ? -1 : 1;
    return a_coarser ? sign : -sign;
}

static int equal(lua_State *L)
{
    bool both = tn_script_decimal_test(L, 1) && tn_script_decimal_test(L, 2);
    lua_pushboolean(L, both && compare(L) == 0);
    return 1;
}

static int less(lua_State *L)
{
    lua_pushboolean(L, compare(L) < 0);
    return 1;
}

static int less_or_equal(lua_State *L)
{
    lua_pushboolean(L, compare(L) <= 0);
    return 1;
}

static size_t format(const struct tn_script_decimal *d, char *text)
{
    struct tn_buf buf;
    tn_buf_init(&buf, text, TEXT_SIZE);
    tn_decimal_format(&buf, d->unscaled, d->scale);
    return buf.size;
}

static int to_text(lua_State *L)
{
    char text[TEXT_SIZE];
    struct tn_script_decimal d = check(L, 1);
    (void)lua_pushlstring(L, text, format(&d, text));
    return 1;
}

/* The nearest float. */
static int to_number(lua_State *L)
{
    char text[TEXT_SIZE];
    struct tn_script_decimal d = check(L, 1);
    double value = 0;
    (void)tn_double_parse((struct tn_bytes){(unsigned char *)text, format(&d, text)}, &value);
    lua_pushnumber(L, value);
    return 1;
}

static int make(lua_State *L)
{
    struct tn_script_decimal d;
    if (lua_type(L, 1) != LUA_TSTRING) {
        tn_script_decimal_push(L, check(L, 1));
        return 1;
    }
    size_t size;
    const char *text = lua_tolstring(L, 1, &size);
    if (!tn_script_decimal_parse((struct tn_bytes){(const unsigned char *)text, size}, &d)) {
        return luaL_error(L, "tarn.decimal: '%s' is no number of at most %d digits", text,
                          TN_DECIMAL_PRECISION_MAX);
    }
    tn_script_decimal_push(L, d);
    return 1;
}

void tn_script_decimal_open(lua_State *L)
{
    static const luaL_Reg meta[] = {
        {"__add", add},          {"__sub", subtract},     {"__mul", multiply},
        {"__unm", negate},       {"__eq", equal},         {"__lt", less},
        {"__le", less_or_equal}, {"__tostring", to_text}, {NULL, NULL}};
    (void)luaL_newmetatable(L, metatable);
    luaL_setfuncs(L, meta, 0);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, to_number);
    lua_setfield(L, -2, "number");
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
    lua_pushcfunction(L, make);
}
