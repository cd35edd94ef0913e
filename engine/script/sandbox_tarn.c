#include <ctype.h>
#include <lua5.4/lauxlib.h>
#include <lua5.4/lua.h>

#include "base/hash.h"
#include "script/decimal.h"
#include "script/library.h"
#include "script/sandbox.h"
#include "script/vm.h"

enum { PATH_SIZE = 128, BYTES_AN_INSTRUCTION = 16 };

/* ---- require ---- */

/* "units.length" -> "units/length.lua"; false when it is no name of a module. */
static bool path_of(const char *name, size_t size, char path[PATH_SIZE])
{
    if (size == 0 || size > PATH_SIZE - sizeof ".lua" || name[0] == '.' || name[size - 1] == '.') {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)name[i];
        if (!isalnum(c) && c != '_' && (c != '.' || name[i + 1] == '.')) {
            return false;
        }
        path[i] = name[i];
        if (c == '.') {
            path[i] = '/';
        }
    }
    memcpy(path + size, ".lua", sizeof ".lua");
    return true;
}

static void push_file(lua_State *L, const char *name, size_t size)
{
    char path[PATH_SIZE];
    if (!path_of(name, size, path)) {
        (void)luaL_error(L, "require '%s': no name of a module", name);
    }
    if (!tn_vm_of(L)->loading) {
        (void)luaL_error(L, "require '%s': files are read only while the script loads", name);
    }
    tn_vm_push_file(L, path, NULL);
}

int tn_sandbox_require(lua_State *L)
{
    size_t size;
    const char *name = luaL_checklstring(L, 1, &size);
    lua_settop(L, 1);
    lua_getfield(L, LUA_REGISTRYINDEX, TN_SANDBOX_MODULES);
    int known = lua_getfield(L, 2, name);
    if (known == LUA_TBOOLEAN) {
        return luaL_error(L, "require '%s': it requires itself", name);
    }
    if (known != LUA_TNIL) {
        return 1;
    }
    if (strcmp(name, "tarn.state") == 0 && !tn_vm_of(L)->loading) {
        return luaL_error(L, "tarn.state: stores are made while the script loads");
    }
    lua_pushboolean(L, false);
    lua_setfield(L, 2, name);
    const struct tn_embedded *own = tn_script_library_find(name);
    if (own) {
        tn_vm_push_chunk(L, own->text, lua_pushfstring(L, "=%s", own->name));
        lua_remove(L, -2);
    } else {
        push_file(L, name, size);
    }
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    if (lua_isnil(L, -1)) {
        return luaL_error(L, "require '%s': it returns nothing", name);
    }
    lua_pushvalue(L, -1);
    lua_setfield(L, 2, name);
    return 1;
}

/* ---- tarn ---- */

static int tarn_hash(lua_State *L)
{
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    tn_vm_charge(L, size / BYTES_AN_INSTRUCTION);
    lua_pushinteger(
        L, (lua_Integer)tn_hash_64((struct tn_bytes){(const unsigned char *)text, size}, 0));
    return 1;
}

static int tarn_log(lua_State *L)
{
    static const char *const levels[] = {"error", "warn", "info", "debug", NULL};
    int level = luaL_checkoption(L, 1, NULL, levels);
    size_t size;
    const char *text = luaL_tolstring(L, 2, &size);
    const struct tn_vm *vm = tn_vm_of(L);
    if (vm->spec.log) {
        vm->spec.log(vm->spec.user, levels[level],
                     (struct tn_bytes){(const unsigned char *)text, size});
    }
    return 0;
}

/* A member that isn't there yet may be a module of the library: tarn.fold. */
static int tarn_member(lua_State *L)
{
    size_t size;
    const char *key = lua_tolstring(L, 2, &size);
    lua_pushfstring(L, "tarn.%s", key ? key : "");
    if (!tn_script_library_find(lua_tostring(L, -1))) {
        lua_settop(L, 2);
        return tn_sandbox_missing(L, "tarn.");
    }
    lua_pushcfunction(L, tn_sandbox_require);
    lua_insert(L, -2);
    lua_call(L, 1, 1);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, -2);
    lua_rawset(L, 1);
    return 1;
}

static int word_text(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    return 1;
}

/* A value that is only itself. */
static void set_word(lua_State *L, const char *field, const char *name)
{
    (void)lua_newuserdatauv(L, 0, 0);
    lua_createtable(L, 0, 3);
    lua_pushstring(L, name);
    lua_pushvalue(L, -1);
    lua_pushcclosure(L, word_text, 1);
    lua_setfield(L, -3, "__tostring");
    lua_setfield(L, -2, "__name");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    (void)lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, name);
    lua_setfield(L, -2, field);
}

void tn_sandbox_tarn(lua_State *L)
{
    static const luaL_Reg own[] = {{"hash", tarn_hash}, {"log", tarn_log}, {NULL, NULL}};
    lua_createtable(L, 0, 12);
    luaL_setfuncs(L, own, 0);
    set_word(L, "KEEP", TN_SANDBOX_KEEP);
    set_word(L, "DELETE", TN_SANDBOX_DELETE);
    tn_script_decimal_open(L);
    lua_setfield(L, -2, "decimal");
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, tarn_member);
    lua_setfield(L, -2, "__index");
    (void)lua_setmetatable(L, -2);
    tn_sandbox_freeze(L, "tarn.");
}
