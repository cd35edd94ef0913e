#include <lua5.4/lauxlib.h>
#include <lua5.4/lua.h>
#include <stdio.h>

#include "script/sandbox.h"
#include "script/script_private.h"

/* ---- what lua/tarn/case.lua calls, where rows are packed; upvalue 1: the script ---- */

static struct tn_script *script_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

/* The table at `index` as a row of its own: what the case leaves out is NULL, or, in a NOT NULL
 * column, 0, "" or false. Pushes its handle. */
static struct tn_row push_given(lua_State *L, const struct tn_script *script, int index)
{
    const struct tn_row_layout *layout = script->shape->layout;
    luaL_checktype(L, index, LUA_TTABLE);
    struct tn_script_row *handle = tn_script_row_push(L, script->shape);
    int self = lua_gettop(L);
    tn_script_row_fill(L, handle, self, index);
    unsigned char *zeros = lua_newuserdatauv(L, layout->fixed_size + 1, 0);
    memcpy(zeros, script->shape->blank.data, layout->fixed_size);
    memset(zeros, 0, (layout->column_count + 7) / 8); /* the null bits */
    for (uint32_t i = 0; i < layout->column_count; i++) {
        if (!layout->columns[i].type.nullable) {
            struct tn_row zero = {zeros, layout->fixed_size};
            tn_script_row_keep(L, handle, self, zero, (struct tn_columns){&i, 1});
        }
    }
    lua_settop(L, self);
    return handle->row;
}

static void push_copy(lua_State *L, const struct tn_script *script, struct tn_row row)
{
    struct tn_script_row *handle = tn_script_row_push(L, script->shape);
    unsigned char *own = lua_newuserdatauv(L, row.size, 0);
    memcpy(own, row.data, row.size);
    (void)lua_setiuservalue(L, -2, 1);
    *handle = (struct tn_script_row){script->shape, {own, row.size}, own, row.size};
}

static int64_t integer_field(lua_State *L, int index, const char *name, int64_t otherwise)
{
    if (!lua_istable(L, index)) {
        return otherwise;
    }
    lua_getfield(L, index, name);
    int64_t value = luaL_optinteger(L, -1, otherwise);
    lua_pop(L, 1);
    return value;
}

static void take_ctx(lua_State *L, struct tn_script *script, int index)
{
    script->ctx =
        (struct tn_script_ctx){TN_ROW_INSERT, integer_field(L, index, "sequence", 1), false};
    if (lua_istable(L, index)) {
        lua_getfield(L, index, "late");
        script->ctx.late = lua_toboolean(L, -1);
        lua_getfield(L, index, "kind");
        const char *kind = luaL_optstring(L, -1, "+I");
        luaL_argcheck(L, tn_row_kind_parse(tn_bytes_of(kind), &script->ctx.kind), index,
                      "kind is +I, +U or -D");
        lua_pop(L, 2);
    }
}

/* (now or nil, row, ctx or nil) -> KEEP, DELETE or a row */
static int decide(lua_State *L, enum tn_script_handler handler)
{
    struct tn_script *script = script_of(L);
    struct tn_row now = {NULL, 0};
    lua_settop(L, 3);
    struct tn_script_merging m = {.script = script, .handler = handler};
    take_ctx(L, script, 3);
    if (!lua_isnil(L, 1)) {
        now = push_given(L, script, 1);
        m.now = &now;
    }
    m.row = push_given(L, script, 2);
    tn_script_apply(L, &m);
    if (m.verdict == TN_SCRIPT_ROW) {
        push_copy(L, script, m.result);
    } else {
        lua_getfield(L, LUA_REGISTRYINDEX,
                     m.verdict == TN_SCRIPT_KEEP ? TN_SANDBOX_KEEP : TN_SANDBOX_DELETE);
    }
    return 1;
}

static int case_merge(lua_State *L)
{
    return decide(L, TN_SCRIPT_MERGE);
}

static int case_retract(lua_State *L)
{
    return decide(L, TN_SCRIPT_RETRACT);
}

/* (row) -> a row or nil */
static int case_announce(lua_State *L)
{
    struct tn_script *script = script_of(L);
    struct tn_row image = {NULL, 0};
    lua_settop(L, 1);
    if (tn_script_show(L, script, push_given(L, script, 1), &image)) {
        push_copy(L, script, image);
    } else {
        lua_pushnil(L);
    }
    return 1;
}

struct listing {
    const struct tn_script *script;
    int list;
    lua_Integer count;
};

static void add_listed(lua_State *L, void *user, struct tn_row row)
{
    struct listing *l = user;
    push_copy(L, l->script, row);
    lua_rawseti(L, l->list, ++l->count);
}

/* (record, meta) -> a list of rows */
static int case_map(lua_State *L)
{
    struct listing l = {.script = script_of(L), .list = 3};
    lua_settop(L, 2);
    lua_newtable(L);
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 2);
    tn_script_map_top(L, script_of(L), add_listed, &l);
    lua_settop(L, 3);
    return 1;
}

/* What is written into stores from here on can be taken back. */
static int case_begin(lua_State *L)
{
    tn_script_state_mark(L, script_of(L));
    return 0;
}

static int case_undo(lua_State *L)
{
    tn_script_state_take_back(L, script_of(L));
    return 0;
}

static void push_host(lua_State *L, struct tn_script *script)
{
    static const luaL_Reg typed[] = {{"merge", case_merge},
                                     {"retract", case_retract},
                                     {"announce", case_announce},
                                     {"map", case_map},
                                     {NULL, NULL}};
    static const luaL_Reg always[] = {{"upload", tn_script_upload_case},
                                      {"uploaded", tn_script_uploaded_case},
                                      {"begin", case_begin},
                                      {"undo", case_undo},
                                      {NULL, NULL}};
    lua_newtable(L);
    lua_pushlightuserdata(L, script);
    luaL_setfuncs(L, always, 1);
    if (script->shape) {
        lua_pushlightuserdata(L, script);
        luaL_setfuncs(L, typed, 1);
    }
}

static void push_handlers(lua_State *L, const struct tn_script *script)
{
    lua_newtable(L);
    for (int i = 0; i < TN_SCRIPT_HANDLER_COUNT; i++) {
        if (script->handlers[i]) {
            (void)lua_rawgeti(L, LUA_REGISTRYINDEX, script->handlers[i]);
            lua_setfield(L, -2, tn_script_handler_name((enum tn_script_handler)i));
        }
    }
}

struct running {
    struct tn_script *script;
    uint32_t index;
    struct tn_script_case *result;
};

static void copy_text(lua_State *L, int index, char *text)
{
    (void)snprintf(text, TN_SCRIPT_CASE_TEXT_SIZE, "%s",
                   lua_type(L, index) == LUA_TSTRING ? lua_tostring(L, index) : "");
}

static int run_protected(lua_State *L)
{
    struct running *r = lua_touserdata(L, 1);
    lua_pushcfunction(L, tn_sandbox_require);
    lua_pushliteral(L, "tarn.case");
    lua_call(L, 1, 1);
    push_handlers(L, r->script);
    (void)lua_rawgeti(L, LUA_REGISTRYINDEX, r->script->cases);
    (void)lua_rawgeti(L, -1, (lua_Integer)r->index + 1);
    lua_remove(L, -2);
    push_host(L, r->script);
    lua_call(L, 3, 3); /* handlers, case, host -> name, passed, reason */
    copy_text(L, -3, r->result->name);
    copy_text(L, -1, r->result->reason);
    r->result->passed = lua_toboolean(L, -2);
    return 0;
}

tn_rc tn_script_run_case(struct tn_script *script, uint32_t index, struct tn_script_case *result,
                         struct tn_err *err)
{
    struct running running = {script, index, result};
    *result = (struct tn_script_case){.passed = false};
    lua_pushcfunction(script->vm->lua, run_protected);
    lua_pushlightuserdata(script->vm->lua, &running);
    tn_rc rc = tn_vm_call_loading(script->vm, 1, 0, err);
    tn_script_release(script);
    result->instructions =
        script->vm->limits.instructions_load -
        (uint64_t)(script->vm->instructions_left > 0 ? script->vm->instructions_left : 0);
    if (rc != TN_OK) { /* a budget: nothing in the state could catch it */
        tn_script_state_undo(script);
        (void)snprintf(result->name, sizeof result->name, "case %u", index + 1);
        (void)snprintf(result->reason, sizeof result->reason, "%.200s", err->text);
    }
    return TN_OK;
}
