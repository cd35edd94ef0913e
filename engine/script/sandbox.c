#include "script/sandbox.h"

#include <lua5.4/lauxlib.h>
#include <lua5.4/lua.h>
#include <lua5.4/lualib.h>

#include "schema/types.h"
#include "script/vm.h"

enum { NAMES_MAX = 64, BYTES_AN_INSTRUCTION = 16, COST_OF_CALL = 5, COST_OF_FORMATTED = 20 };

/* ---- what can be read and not written ---- */

static const char *key_text(lua_State *L, int index)
{
    return lua_type(L, index) == LUA_TSTRING ? lua_tostring(L, index) : luaL_typename(L, index);
}

static const char *nearest_key(lua_State *L, int table, const char *key)
{
    const char *names[NAMES_MAX];
    uint32_t count = 0;
    lua_pushnil(L);
    while (lua_next(L, table)) {
        lua_pop(L, 1);
        if (count < NAMES_MAX && lua_type(L, -1) == LUA_TSTRING) {
            names[count++] = lua_tostring(L, -1);
        }
    }
    return tn_nearest_name(tn_bytes_of(key), names, count);
}

int tn_sandbox_missing(lua_State *L, const char *of)
{
    const char *key = key_text(L, 2);
    const char *near = nearest_key(L, 1, key);
    return near ? luaL_error(L, "there is no %s'%s'; did you mean '%s'?", of, key, near)
                : luaL_error(L, "there is no %s'%s'", of, key);
}

/* upvalue 1: "global " or "string." */
static int missing(lua_State *L)
{
    return tn_sandbox_missing(L, lua_tostring(L, lua_upvalueindex(1)));
}

static int frozen(lua_State *L)
{
    const char *of = lua_tostring(L, lua_upvalueindex(1));
    return luaL_error(L, "%s'%s' can't be set; is a 'local' missing?", of, key_text(L, 2));
}

static void set_closure(lua_State *L, const char *of, lua_CFunction function, const char *field)
{
    lua_pushstring(L, of);
    lua_pushcclosure(L, function, 1);
    lua_setfield(L, -2, field);
}

void tn_sandbox_freeze(lua_State *L, const char *name)
{
    if (lua_getmetatable(L, -1)) { /* it looks further by itself */
        lua_pop(L, 1);
    } else {
        lua_createtable(L, 0, 1);
        set_closure(L, name, missing, "__index");
        (void)lua_setmetatable(L, -2);
    }
    (void)lua_newuserdatauv(L, 0, 0); /* no table: rawset can't get behind it */
    lua_createtable(L, 0, 4);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    set_closure(L, name, frozen, "__newindex");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__name");
    (void)lua_setmetatable(L, -2);
    lua_remove(L, -2);
}

/* ---- library functions that pay ---- */

enum cost { COST_TEXTS, COST_FORMAT, COST_LIST, COST_SORT, COST_RANGE, COST_MOVE };

static uint64_t texts_cost(lua_State *L)
{
    uint64_t size = 0;
    for (int i = lua_gettop(L); i > 0; i--) {
        size += lua_type(L, i) == LUA_TSTRING ? lua_rawlen(L, i) : 0;
    }
    return size / BYTES_AN_INSTRUCTION;
}

static uint64_t span(lua_State *L, int from, int to, lua_Integer first, lua_Integer last)
{
    first = luaL_optinteger(L, from, first);
    last = luaL_optinteger(L, to, last);
    return last < first ? 0 : (uint64_t)last - (uint64_t)first;
}

/* The length may come from __len, as it will for the function itself. */
static uint64_t cost_of(lua_State *L, enum cost kind)
{
    if (kind == COST_FORMAT) { /* "%99.99f" of 1e308 takes some us */
        return texts_cost(L) + COST_OF_FORMATTED * (uint64_t)lua_gettop(L);
    }
    if (kind == COST_TEXTS || !lua_istable(L, 1)) {
        return texts_cost(L);
    }
    if (kind == COST_MOVE) {
        return span(L, 2, 3, 1, 0);
    }
    lua_Integer length = luaL_len(L, 1);
    uint64_t count = length > 0 ? (uint64_t)length : 0;
    if (kind == COST_RANGE) {
        bool concat = lua_type(L, 2) == LUA_TSTRING || lua_gettop(L) > 3;
        return span(L, 2 + concat, 3 + concat, 1, length);
    }
    uint64_t passes = 1;
    for (uint64_t n = count; kind == COST_SORT && n > 1; n /= 2) {
        passes++;
    }
    return count > INT32_MAX ? count : count * passes;
}

static void check_text(lua_State *L)
{
    uint32_t most = tn_vm_of(L)->limits.text_size;
    if (lua_type(L, -1) == LUA_TSTRING && lua_rawlen(L, -1) > most) {
        (void)luaL_error(L, "a text of %I bytes; at most %d", (lua_Integer)lua_rawlen(L, -1),
                         (int)most);
    }
}

/* Calls the function in its own frame, so that errors name it as if it were there alone.
 * upvalue 1: the function, 2: enum cost */
static int bounded(lua_State *L)
{
    lua_CFunction function = lua_tocfunction(L, lua_upvalueindex(1));
    enum cost kind = (enum cost)lua_tointeger(L, lua_upvalueindex(2));
    tn_vm_check_depth(L, TN_VM_DEPTH_LIBRARY_MAX);
    tn_vm_charge(L, COST_OF_CALL + cost_of(L, kind));
    int count = function(L);
    if (count > 0) {
        check_text(L);
    }
    return count;
}

static enum cost kind_of(const char *name)
{
    static const struct {
        const char *name;
        enum cost kind;
    } kinds[] = {{"format", COST_FORMAT}, {"insert", COST_LIST},  {"remove", COST_LIST},
                 {"sort", COST_SORT},     {"concat", COST_RANGE}, {"unpack", COST_RANGE},
                 {"move", COST_MOVE}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return kinds[i].kind;
        }
    }
    return COST_TEXTS;
}

/* Puts `bounded` around each function of the table on top. */
static void bound_all(lua_State *L)
{
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        if (!lua_iscfunction(L, -1)) {
            lua_pop(L, 1);
            continue;
        }
        lua_pushinteger(L, (lua_Integer)kind_of(lua_tostring(L, -2)));
        lua_pushcclosure(L, bounded, 2);
        lua_pushvalue(L, -2); /* a field that is there may be set during a walk */
        lua_insert(L, -2);
        lua_settable(L, -4);
    }
}

/* ---- the base library ---- */

/* What stopped the call goes on through it. */
static int safe_pcall(lua_State *L)
{
    luaL_checkany(L, 1);
    int status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
    if (tn_vm_of(L)->stopped) {
        lua_pushliteral(L, "stopped");
        return lua_error(L);
    }
    luaL_checkstack(L, 1, NULL);
    lua_pushboolean(L, status == LUA_OK);
    lua_insert(L, 1);
    return lua_gettop(L);
}

/* The handler runs when the error has left its function: inside, where hooks may be off, it could
 * loop for ever. */
static int safe_xpcall(lua_State *L)
{
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_pushvalue(L, 2);
    lua_insert(L, 1); /* handler, function, handler, arguments... */
    lua_remove(L, 3);
    int status = lua_pcall(L, lua_gettop(L) - 2, LUA_MULTRET, 0);
    if (tn_vm_of(L)->stopped) {
        lua_pushliteral(L, "stopped");
        return lua_error(L);
    }
    if (status == LUA_OK) {
        lua_pushboolean(L, true);
        lua_replace(L, 1);
        return lua_gettop(L);
    }
    lua_call(L, 1, 1);
    lua_pushboolean(L, false);
    lua_insert(L, -2);
    return 2;
}

/* upvalue 1: the function. A finalizer would run where no hook looks at it. */
static int safe_setmetatable(lua_State *L)
{
    if (lua_istable(L, 2)) {
        lua_pushliteral(L, "__gc");
        if (lua_rawget(L, 2) != LUA_TNIL) {
            return luaL_error(L, "there are no finalizers: __gc");
        }
        lua_pop(L, 1);
    }
    return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

static int print(lua_State *L)
{
    int count = lua_gettop(L);
    lua_pushliteral(L, "");
    for (int i = 1; i <= count; i++) {
        (void)luaL_tolstring(L, i, NULL);
        lua_pushstring(L, i < count ? "\t" : "");
        lua_concat(L, 3);
    }
    const struct tn_vm *vm = tn_vm_of(L);
    size_t size;
    const char *text = lua_tolstring(L, -1, &size);
    if (vm->spec.log) {
        vm->spec.log(vm->spec.user, "info", (struct tn_bytes){(const unsigned char *)text, size});
    }
    return 0;
}

static void open_base(lua_State *L)
{
    static const char *const kept[] = {"assert", "error",    "getmetatable", "ipairs", "next",
                                       "pairs",  "rawequal", "rawget",       "rawlen", "rawset",
                                       "select", "tonumber", "tostring",     "type",   "_VERSION"};
    lua_pushcfunction(L, luaopen_base); /* fills the state's own table of globals */
    lua_call(L, 0, 1);
    lua_createtable(L, 0, 32);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        lua_getfield(L, -2, kept[i]);
        lua_setfield(L, -2, kept[i]);
    }
    lua_getfield(L, -2, "setmetatable");
    lua_pushcclosure(L, safe_setmetatable, 1);
    lua_setfield(L, -2, "setmetatable");
    static const luaL_Reg own[] = {{"pcall", safe_pcall},
                                   {"xpcall", safe_xpcall},
                                   {"print", print},
                                   {"require", tn_sandbox_require},
                                   {NULL, NULL}};
    luaL_setfuncs(L, own, 0);
    lua_remove(L, -2);
    lua_newtable(L); /* nothing of it is reached by that way any more */
    lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
}

/* ---- the other libraries; each goes into the globals on top ---- */

static void open_library(lua_State *L, lua_CFunction open, const char *name, const char *of)
{
    lua_pushcfunction(L, open);
    lua_call(L, 0, 1);
    bound_all(L);
    tn_sandbox_freeze(L, of);
    lua_setfield(L, -2, name);
}

static void open_string(lua_State *L)
{
    lua_pushcfunction(L, luaopen_string);
    lua_call(L, 0, 1);
    lua_pushnil(L);
    lua_setfield(L, -2, "dump"); /* it makes bytecode */
    bound_all(L);
    tn_sandbox_text(L);
    lua_pushliteral(L, "");
    (void)lua_getmetatable(L, -1);
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 2);
    tn_sandbox_freeze(L, "string.");
    lua_setfield(L, -2, "string");
}

/* Its numbers come from the engine's seed. */
static void open_math(lua_State *L)
{
    uint64_t seed = tn_vm_of(L)->spec.seed;
    lua_pushcfunction(L, luaopen_math);
    lua_call(L, 0, 1);
    lua_getfield(L, -1, "randomseed");
    lua_pushinteger(L, (lua_Integer)seed);
    lua_call(L, 1, 0);
    lua_pushnil(L);
    lua_setfield(L, -2, "randomseed");
    tn_sandbox_freeze(L, "math.");
    lua_setfield(L, -2, "math");
}

void tn_sandbox_open(lua_State *L)
{
    lua_newtable(L);
    lua_setfield(L, LUA_REGISTRYINDEX, TN_SANDBOX_MODULES);
    open_base(L);
    open_string(L);
    open_library(L, luaopen_table, "table", "table.");
    open_library(L, luaopen_utf8, "utf8", "utf8.");
    open_math(L);
    tn_sandbox_tarn(L);
    lua_setfield(L, -2, "tarn");
    tn_sandbox_freeze(L, "global ");
    lua_setfield(L, LUA_REGISTRYINDEX, TN_SANDBOX_GLOBALS);
}
