#include <lua5.4/lauxlib.h>
#include <lua5.4/lua.h>
#include <stdio.h>

#include "base/check.h"
#include "script/sandbox.h"
#include "script/script_private.h"

static const char *const names[TN_SCRIPT_HANDLER_COUNT] = {"map",      "merge",  "retract",
                                                           "announce", "upload", "uploaded"};

const char *tn_script_handler_name(enum tn_script_handler handler)
{
    return names[handler];
}

/* ---- ctx: read when asked ---- */

static int ctx_index(lua_State *L)
{
    const struct tn_script *script = lua_touserdata(L, lua_upvalueindex(1));
    const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    bool rowless = script->calling == TN_SCRIPT_UPLOAD || script->calling == TN_SCRIPT_UPLOADED;
    if (rowless && strcmp(key, "table") != 0) {
        return luaL_error(L, "there is no ctx.%s; %s has ctx.table", key, names[script->calling]);
    }
    if (strcmp(key, "sequence") == 0) {
        lua_pushinteger(L, script->ctx.sequence);
    } else if (strcmp(key, "late") == 0) {
        lua_pushboolean(L, script->ctx.late);
    } else if (strcmp(key, "kind") == 0) {
        lua_pushstring(L, tn_row_kind_text(script->ctx.kind));
    } else if (strcmp(key, "table") == 0) {
        lua_pushstring(L, script->spec.table);
    } else {
        return luaL_error(L, "there is no ctx.%s; there are kind, sequence, late, table", key);
    }
    return 1;
}

static int ctx_newindex(lua_State *L)
{
    return luaL_error(L, "ctx can't be changed");
}

static void open_ctx(lua_State *L, struct tn_script *script)
{
    (void)lua_newuserdatauv(L, 0, 0);
    lua_createtable(L, 0, 4);
    lua_pushlightuserdata(L, script);
    lua_pushcclosure(L, ctx_index, 1);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, ctx_newindex);
    lua_setfield(L, -2, "__newindex");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    (void)lua_setmetatable(L, -2);
    script->ctx_at = luaL_ref(L, LUA_REGISTRYINDEX);
}

/* ---- loading ---- */

static struct tn_script_row *open_handle(lua_State *L, struct tn_script *script, int *at)
{
    struct tn_script_row *handle = tn_script_row_push(L, script->shape);
    *at = luaL_ref(L, LUA_REGISTRYINDEX);
    return handle;
}

static const void *word(lua_State *L, const char *name)
{
    lua_getfield(L, LUA_REGISTRYINDEX, name);
    const void *value = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return value;
}

/* Before the file runs: what calls will need. */
static int prepare(lua_State *L)
{
    struct tn_script *script = lua_touserdata(L, 1);
    script->keep = word(L, TN_SANDBOX_KEEP);
    script->remove = word(L, TN_SANDBOX_DELETE);
    open_ctx(L, script);
    if (script->spec.layout) {
        script->shape = tn_script_shape_open(L, script->spec.layout, script->spec.row_size_max);
        script->now = open_handle(L, script, &script->now_at);
        script->row = open_handle(L, script, &script->row_at);
        script->made = open_handle(L, script, &script->made_at);
    }
    return 0;
}

static void note_place(lua_State *L, struct tn_script *script, int handler)
{
    lua_Debug ar;
    lua_pushvalue(L, -1);
    (void)lua_getinfo(L, ">S", &ar);
    (void)snprintf(script->places[handler], TN_VM_PLACE_SIZE, "%s:%d", ar.short_src,
                   ar.linedefined);
}

static void take_fold(lua_State *L, struct tn_script *script, struct tn_script_fold *fold)
{
    if (!lua_isfunction(L, -1)) {
        const char *type = luaL_typename(L, -1);
        (void)luaL_error(L, "merge: column '%s' has a %s, not a function",
                         luaL_tolstring(L, -2, NULL), type);
    }
    fold->column = tn_script_row_column(L, script->shape, lua_gettop(L) - 1);
    if (tn_columns_have(script->spec.keys, fold->column)) {
        (void)luaL_error(L, "merge: column '%s' is of the key, which never changes",
                         lua_tostring(L, -2));
    }
    note_place(L, script, TN_SCRIPT_MERGE);
    fold->function = luaL_ref(L, LUA_REGISTRYINDEX);
}

static int by_column(const struct tn_script_fold *a, const struct tn_script_fold *b)
{
    return a->column < b->column ? -1 : a->column > b->column;
}

/* In the order of the columns: Lua's differs from run to run. */
static void sort_folds(struct tn_script_fold *folds, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct tn_script_fold fold = folds[i];
        uint32_t at = i;
        for (; at > 0 && by_column(&fold, &folds[at - 1]) < 0; at--) {
            folds[at] = folds[at - 1];
        }
        folds[at] = fold;
    }
}

/* m.merge is a table of column functions, on top. */
static void take_folds(lua_State *L, struct tn_script *script)
{
    uint32_t most = script->shape->layout->column_count;
    struct tn_script_fold *folds = lua_newuserdatauv(L, (most + 1) * sizeof *folds, 0);
    (void)luaL_ref(L, LUA_REGISTRYINDEX);
    uint32_t count = 0;
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        TN_CHECK(count < most); /* each key is another column, or an error */
        take_fold(L, script, &folds[count]);
        count++;
    }
    sort_folds(folds, count);
    script->folds = folds;
    script->fold_count = count;
}

/* The handler on top. */
static void take_handler(lua_State *L, struct tn_script *script, int handler)
{
    bool folds = handler == TN_SCRIPT_MERGE && lua_istable(L, -1);
    if (!lua_isfunction(L, -1) && !folds) {
        (void)luaL_error(L, "%s is a %s; want a function%s", names[handler], luaL_typename(L, -1),
                         handler == TN_SCRIPT_MERGE ? " or a table of them by column" : "");
    }
    if (folds && script->shape) {
        take_folds(L, script);
    } else if (!folds) {
        note_place(L, script, handler);
    }
    script->handlers[handler] = luaL_ref(L, LUA_REGISTRYINDEX);
}

static int find_handler(lua_State *L, const char *key)
{
    for (int i = 0; i < TN_SCRIPT_HANDLER_COUNT; i++) {
        if (strcmp(names[i], key) == 0) {
            return i;
        }
    }
    const char *near = tn_nearest_name(tn_bytes_of(key), names, TN_SCRIPT_HANDLER_COUNT);
    return near ? luaL_error(L, "there is no handler '%s'; did you mean '%s'?", key, near)
                : luaL_error(L, "there is no handler '%s'", key);
}

static void take_cases(lua_State *L, struct tn_script *script)
{
    luaL_checktype(L, -1, LUA_TTABLE);
    script->case_count = (uint32_t)lua_rawlen(L, -1);
    if (script->case_count > TN_SCRIPT_CASES_MAX) {
        (void)luaL_error(L, "more than %d cases", TN_SCRIPT_CASES_MAX);
    }
    script->cases = luaL_ref(L, LUA_REGISTRYINDEX);
}

/* (script, chunk): runs the chunk and takes what it returns apart. Whatever of the table isn't a
 * function and has no name of a handler is the script's own. */
static int take_apart(lua_State *L)
{
    struct tn_script *script = lua_touserdata(L, 1);
    lua_call(L, 0, 1);
    if (!lua_istable(L, -1)) {
        return luaL_error(L, "%s returns a %s; want a table of handlers", script->spec.path,
                          luaL_typename(L, -1));
    }
    int table = lua_gettop(L);
    lua_pushnil(L);
    while (lua_next(L, table)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "";
        if (strcmp(key, "test") == 0) {
            take_cases(L, script);
        } else if (lua_isfunction(L, -1) || strcmp(key, "merge") == 0) {
            take_handler(L, script, find_handler(L, key));
        }
        lua_settop(L, table + 1);
    }
    return 0;
}

static tn_rc call_with_script(struct tn_script *script, lua_CFunction function, bool chunk,
                              struct tn_err *err)
{
    lua_State *L = script->vm->lua;
    lua_pushcfunction(L, function);
    lua_pushlightuserdata(L, script);
    if (chunk) {
        lua_rotate(L, -3, -1); /* the chunk, which was there, goes on top */
    }
    return tn_vm_call_loading(script->vm, chunk ? 2 : 1, 0, err);
}

static void set_digest(struct tn_script *script, const unsigned char digest[32])
{
    for (int i = 0; i < 32; i++) {
        (void)snprintf(script->digest + 2 * i, 3, "%02x", digest[i]);
    }
}

static tn_rc run_cases(struct tn_script *script, struct tn_err *err)
{
    static const int shown = TN_SCRIPT_CASE_TEXT_SIZE;
    for (uint32_t i = 0; i < script->case_count; i++) {
        struct tn_script_case result = {.passed = false};
        tn_rc rc = tn_script_run_case(script, i, &result, err);
        if (rc != TN_OK) {
            return rc;
        }
        if (!result.passed) {
            return tn_err_set(err, TN_INVALID, 0, "%s: its case %u fails (%.*s): %.*s",
                              script->spec.path, i + 1, shown, result.name, shown, result.reason);
        }
    }
    return TN_OK;
}

tn_rc tn_script_load(struct tn_script *script, struct tn_vm *vm, const struct tn_script_spec *spec,
                     struct tn_err *err)
{
    unsigned char digest[32];
    *script = (struct tn_script){.vm = vm, .spec = *spec};
    tn_rc rc = call_with_script(script, prepare, false, err);
    if (rc == TN_OK) {
        rc = tn_vm_load(vm, spec->path, digest, err);
    }
    if (rc == TN_OK) {
        set_digest(script, digest);
        rc = call_with_script(script, take_apart, true, err);
    }
    if (rc == TN_OK) {
        rc = tn_script_state_begin(script, err);
    }
    return rc == TN_OK && !spec->skip_cases ? run_cases(script, err) : rc;
}

/* ---- counting and parking ---- */

tn_rc tn_script_counted(struct tn_script *script, tn_rc rc, const struct tn_err *err)
{
    script->calls++;
    if (rc == TN_OK) {
        script->failures_in_row = 0;
    } else {
        script->failures++;
        script->failures_in_row++;
        memcpy(script->failure, err->text, sizeof script->failure);
    }
    return rc;
}

bool tn_script_parked(const struct tn_script *script)
{
    return script->failures_in_row >= TN_SCRIPT_FAILURES_MAX;
}

void tn_script_resume(struct tn_script *script)
{
    script->failures_in_row = 0;
}

tn_rc tn_script_check_parked(const struct tn_script *script, struct tn_err *err)
{
    return tn_script_parked(script)
               ? tn_err_set(err, TN_CANCELED, 0, "%s is parked after %d failures in a row: %s",
                            script->spec.path, TN_SCRIPT_FAILURES_MAX, script->failure)
               : TN_OK;
}
