#include "script/upload.h"

#include <inttypes.h>
#include <lua5.4/lauxlib.h>
#include <lua5.4/lua.h>
#include <stddef.h>

#include "base/check.h"
#include "schema/options.h"
#include "schema/types.h"
#include "script/script_private.h"

/* ---- the state: tables in a table ---- */

enum group { STATE, PENDING, PINNED, DISK, LINK, SPENT, HOUR, DAY, MONTH, GROUP_COUNT };

static const struct {
    enum group parent;
    const char *name;
    const char *path;
} groups[GROUP_COUNT] = {
    [STATE] = {STATE, NULL, "state."},
    [PENDING] = {STATE, "pending", "state.pending."},
    [PINNED] = {STATE, "pinned", "state.pinned."},
    [DISK] = {STATE, "disk", "state.disk."},
    [LINK] = {STATE, "link", "state.link."},
    [SPENT] = {STATE, "spent", "state.spent."},
    [HOUR] = {SPENT, "hour", "state.spent.hour."},
    [DAY] = {SPENT, "day", "state.spent.day."},
    [MONTH] = {SPENT, "month", "state.spent.month."},
};

enum kind { COUNT, ID, FLAG, TEXT, LIST };

static const struct member {
    enum group group;
    enum kind kind;
    const char *name;
    size_t at;
} members[] = {
    {PENDING, COUNT, "count", offsetof(struct tn_upload_state, pending.count)},
    {PENDING, COUNT, "bytes", offsetof(struct tn_upload_state, pending.bytes)},
    {PENDING, COUNT, "rows", offsetof(struct tn_upload_state, pending.rows)},
    {PENDING, ID, "oldest", offsetof(struct tn_upload_state, pending.oldest)},
    {PENDING, ID, "newest", offsetof(struct tn_upload_state, pending.newest)},
    {PENDING, COUNT, "age_s", offsetof(struct tn_upload_state, pending.age_s)},
    {PINNED, COUNT, "bytes", offsetof(struct tn_upload_state, pinned.bytes)},
    {DISK, COUNT, "free", offsetof(struct tn_upload_state, disk.free)},
    {DISK, COUNT, "reserve", offsetof(struct tn_upload_state, disk.reserve)},
    {LINK, TEXT, "name", offsetof(struct tn_upload_state, link.name)},
    {LINK, FLAG, "up", offsetof(struct tn_upload_state, link.up)},
    {LINK, FLAG, "metered", offsetof(struct tn_upload_state, link.metered)},
    {LINK, COUNT, "rtt_ms", offsetof(struct tn_upload_state, link.rtt_ms)},
    {HOUR, COUNT, "bytes", offsetof(struct tn_upload_state, spent.hour.bytes)},
    {HOUR, COUNT, "requests", offsetof(struct tn_upload_state, spent.hour.requests)},
    {DAY, COUNT, "bytes", offsetof(struct tn_upload_state, spent.day.bytes)},
    {DAY, COUNT, "requests", offsetof(struct tn_upload_state, spent.day.requests)},
    {MONTH, COUNT, "bytes", offsetof(struct tn_upload_state, spent.month.bytes)},
    {MONTH, COUNT, "requests", offsetof(struct tn_upload_state, spent.month.requests)},
    {STATE, COUNT, "now_ms", offsetof(struct tn_upload_state, now_ms)},
    {STATE, COUNT, "local_ms", offsetof(struct tn_upload_state, local_ms)},
    {STATE, TEXT, "clock", offsetof(struct tn_upload_state, clock)},
    {STATE, TEXT, "last", offsetof(struct tn_upload_state, last)},
    {STATE, LIST, "tables", 0},
};

enum { MEMBER_COUNT = sizeof members / sizeof members[0], STACK_SLOTS = GROUP_COUNT + 10 };

static uint32_t names_of(enum group group, const char *names[MEMBER_COUNT + GROUP_COUNT])
{
    uint32_t count = 0;
    for (int i = 0; i < MEMBER_COUNT; i++) {
        if (members[i].group == group) {
            names[count++] = members[i].name;
        }
    }
    for (int i = PENDING; i < GROUP_COUNT; i++) {
        if (groups[i].parent == group) {
            names[count++] = groups[i].name;
        }
    }
    return count;
}

void tn_script_check_name(lua_State *L, const char *of, const char *name, const char *const *names,
                          uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return;
        }
    }
    const char *near = tn_nearest_name(tn_bytes_of(name), names, count);
    (void)(near ? luaL_error(L, "there is no %s%s; did you mean '%s'?", of, name, near)
                : luaL_error(L, "there is no %s%s", of, name));
}

const char *tn_script_key_at(lua_State *L, int index)
{
    return lua_type(L, index) == LUA_TSTRING ? lua_tostring(L, index) : luaL_typename(L, index);
}

/* A member of the group that is nil, or none at all. Upvalue 1: the group. */
static int missing(lua_State *L)
{
    const char *names[MEMBER_COUNT + GROUP_COUNT] = {NULL};
    enum group group = (enum group)lua_tointeger(L, lua_upvalueindex(1));
    tn_script_check_name(L, groups[group].path, tn_script_key_at(L, 2), names,
                         names_of(group, names));
    lua_pushnil(L);
    return 1;
}

static void push_tables(lua_State *L, const struct tn_upload_state *state)
{
    lua_createtable(L, (int)state->table_count, 0);
    for (uint32_t i = 0; i < state->table_count; i++) {
        lua_pushstring(L, state->tables[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

static void push_member(lua_State *L, const struct tn_upload_state *state,
                        const struct member *member)
{
    const void *at = (const unsigned char *)state + member->at;
    if (member->kind == LIST) {
        push_tables(L, state);
    } else if (member->kind == FLAG) {
        lua_pushboolean(L, *(const bool *)at);
    } else if (member->kind == TEXT) {
        lua_pushstring(L, *(const char *const *)at);
    } else if (member->kind == ID && *(const int64_t *)at == 0) {
        lua_pushnil(L);
    } else {
        lua_pushinteger(L, *(const int64_t *)at);
    }
}

static void push_group(lua_State *L, const struct tn_upload_state *state, enum group group)
{
    lua_newtable(L);
    for (int i = 0; i < MEMBER_COUNT; i++) {
        if (members[i].group == group) {
            push_member(L, state, &members[i]);
            lua_setfield(L, -2, members[i].name);
        }
    }
}

/* Its own at each call: what a script changes in it is gone with it. */
static void push_state(lua_State *L, const struct tn_upload_state *state)
{
    int base = lua_gettop(L) + 1;
    luaL_checkstack(L, STACK_SLOTS, NULL);
    for (int i = STATE; i < GROUP_COUNT; i++) {
        push_group(L, state, (enum group)i);
        if (i != STATE) {
            lua_pushvalue(L, -1);
            lua_setfield(L, base + (int)groups[i].parent, groups[i].name);
        }
    }
    for (int i = STATE; i < GROUP_COUNT; i++) { /* at last: they would ask */
        lua_createtable(L, 0, 1);
        lua_pushinteger(L, i);
        lua_pushcclosure(L, missing, 1);
        lua_setfield(L, -2, "__index");
        (void)lua_setmetatable(L, base + i);
    }
    lua_settop(L, base);
}

/* ---- the answer ---- */

/* The value at `index` for a message, not too long. */
static const char *shown(lua_State *L, int index)
{
    static const size_t most = 60;
    size_t size;
    const char *text = luaL_tolstring(L, index, &size);
    return size <= most ? text : lua_pushlstring(L, text, most);
}

/* The value on top as a whole number within limits; 0 where it is nil. */
static int64_t take_integer(lua_State *L, const char *name, int64_t low, int64_t high)
{
    int whole = 0;
    if (lua_isnil(L, -1)) {
        return 0;
    }
    lua_Integer value = lua_type(L, -1) == LUA_TNUMBER ? lua_tointegerx(L, -1, &whole) : 0;
    if (!whole || value < low || value > high) {
        (void)luaL_error(L, "upload: '%s' is %s; want a whole number, %I to %I", name, shown(L, -1),
                         (lua_Integer)low, (lua_Integer)high);
    }
    return value;
}

static int64_t take_through(lua_State *L, const struct tn_upload_state *state)
{
    if (!lua_isnil(L, -1) && state->pending.count == 0) {
        (void)luaL_error(L, "upload: 'through' is %s, but nothing is pending", shown(L, -1));
    }
    int64_t through = take_integer(L, "through", state->pending.oldest, state->pending.newest);
    return lua_isnil(L, -1) ? state->pending.newest : through;
}

/* "64K/s" */
static int64_t take_rate(lua_State *L)
{
    int64_t rate = 0;
    struct tn_bytes text = {0};
    if (lua_isnil(L, -1)) {
        return 0;
    }
    if (lua_type(L, -1) == LUA_TSTRING) {
        text.data = (const unsigned char *)lua_tolstring(L, -1, &text.size);
    }
    if (text.size < 2 || memcmp(text.data + text.size - 2, "/s", 2) != 0 ||
        !tn_parse_size((struct tn_bytes){text.data, text.size - 2}, &rate)) {
        (void)luaL_error(L, "upload: 'rate' is %s; want a text as \"64K/s\"", shown(L, -1));
    }
    if (rate < TN_UPLOAD_RATE_MIN || rate > TN_UPLOAD_RATE_MAX) {
        (void)luaL_error(L, "upload: 'rate' is %s; want %d to %I bytes a second", shown(L, -1),
                         (int)TN_UPLOAD_RATE_MIN, (lua_Integer)TN_UPLOAD_RATE_MAX);
    }
    return rate;
}

static uint32_t find_table(lua_State *L, const struct tn_upload_state *state, const char *name)
{
    for (uint32_t i = 0; i < state->table_count; i++) {
        if (strcmp(state->tables[i], name) == 0) {
            return i;
        }
    }
    tn_script_check_name(L, "table ", name, state->tables, state->table_count);
    return 0;
}

static void add_table(lua_State *L, const struct tn_upload_state *state,
                      struct tn_upload_plan *plan)
{
    if (lua_type(L, -1) != LUA_TSTRING) {
        (void)luaL_error(L, "upload: 'tables' has a %s; want names of tables",
                         luaL_typename(L, -1));
    }
    uint32_t table = find_table(L, state, lua_tostring(L, -1));
    for (uint32_t i = 0; i < plan->table_count; i++) {
        if (plan->tables[i] == table) {
            (void)luaL_error(L, "upload: 'tables' has %s twice", lua_tostring(L, -1));
        }
    }
    plan->tables[plan->table_count++] = table; /* they differ: as many as the state has at most */
}

/* Each key counts, so that a hole is found: more members than its length, or fewer. */
static void take_tables(lua_State *L, const struct tn_upload_state *state,
                        struct tn_upload_plan *plan)
{
    if (lua_isnil(L, -1)) {
        return;
    }
    if (!lua_istable(L, -1)) {
        (void)luaL_error(L, "upload: 'tables' is a %s; want a list of names", luaL_typename(L, -1));
    }
    int list = lua_gettop(L);
    while (lua_rawgeti(L, list, (lua_Integer)plan->table_count + 1) != LUA_TNIL) {
        add_table(L, state, plan);
        lua_settop(L, list);
    }
    lua_settop(L, list);
    lua_pushnil(L);
    for (uint32_t i = 0; lua_next(L, list); i++) {
        if (i == plan->table_count) {
            (void)luaL_error(L, "upload: 'tables' is no list without holes");
        }
        lua_pop(L, 1);
    }
    lua_settop(L, list);
}

static const char *const plan_names[] = {"wait", "through", "rate", "bytes", "requests", "tables"};
enum { PLAN_NAME_COUNT = sizeof plan_names / sizeof plan_names[0] };

static uint32_t check_plan_names(lua_State *L, int plan)
{
    uint32_t count = 0;
    lua_pushnil(L);
    while (lua_next(L, plan)) {
        lua_pop(L, 1);
        tn_script_check_name(L, "plan.", tn_script_key_at(L, -1), plan_names, PLAN_NAME_COUNT);
        count++;
    }
    return count;
}

static void get_raw(lua_State *L, int table, const char *name)
{
    lua_settop(L, table);
    lua_pushstring(L, name);
    (void)lua_rawget(L, table);
}

static void take_plan(lua_State *L, const struct tn_upload_state *state,
                      struct tn_upload_plan *plan)
{
    int table = lua_gettop(L);
    luaL_checkstack(L, STACK_SLOTS, NULL);
    uint32_t count = check_plan_names(L, table);
    get_raw(L, table, "wait");
    plan->wait_s = (uint32_t)take_integer(L, "wait", 1, TN_UPLOAD_WAIT_S_MAX);
    plan->wait = plan->wait_s > 0;
    if (plan->wait && count > 1) {
        (void)luaL_error(L, "upload: a plan with 'wait' sends nothing, and has nothing else");
    }
    get_raw(L, table, "through");
    plan->through = take_through(L, state);
    get_raw(L, table, "rate");
    plan->rate = take_rate(L);
    get_raw(L, table, "bytes");
    plan->bytes = take_integer(L, "bytes", 1, INT64_MAX);
    get_raw(L, table, "requests");
    plan->requests = take_integer(L, "requests", 1, INT64_MAX);
    get_raw(L, table, "tables");
    take_tables(L, state, plan);
    lua_settop(L, table);
}

static const char *const words[] = {"wait", "now"};

/* The answer is on top, and stays there. */
static void take_answer(lua_State *L, const struct tn_upload_state *state,
                        struct tn_upload_plan *plan)
{
    *plan = (struct tn_upload_plan){.through = state->pending.newest};
    if (lua_istable(L, -1)) {
        take_plan(L, state, plan);
    } else if (lua_type(L, -1) == LUA_TSTRING) {
        const char *word = lua_tostring(L, -1);
        tn_script_check_name(L, "answer of upload ", word, words, sizeof words / sizeof words[0]);
        plan->wait = strcmp(word, "wait") == 0;
    } else {
        (void)tn_script_wrong_result(L, "upload", "\"wait\", \"now\" or a plan");
    }
}

/* Leaves what the script answered on the stack. */
static void ask(lua_State *L, struct tn_script *script, const struct tn_upload_state *state,
                struct tn_upload_plan *plan)
{
    script->vm->call_place = script->places[TN_SCRIPT_UPLOAD];
    script->calling = TN_SCRIPT_UPLOAD;
    tn_script_state_mark(L, script);
    (void)lua_rawgeti(L, LUA_REGISTRYINDEX, script->handlers[TN_SCRIPT_UPLOAD]);
    push_state(L, state);
    (void)lua_rawgeti(L, LUA_REGISTRYINDEX, script->ctx_at);
    lua_call(L, 2, 1);
    take_answer(L, state, plan);
}

struct asking {
    struct tn_script *script;
    const struct tn_upload_state *state;
    struct tn_upload_plan *plan;
};

static int ask_protected(lua_State *L)
{
    const struct asking *a = lua_touserdata(L, 1);
    ask(L, a->script, a->state, a->plan);
    return 0;
}

tn_rc tn_script_upload(struct tn_script *script, const struct tn_upload_state *state,
                       struct tn_upload_plan *plan, struct tn_err *err)
{
    struct tn_upload_plan made;
    struct asking asking = {script, state, &made};
    TN_CHECK(tn_script_has(script, TN_SCRIPT_UPLOAD) && state->table_count <= TN_UPLOAD_TABLES_MAX);
    tn_rc rc = tn_script_check_parked(script, err);
    if (rc != TN_OK) {
        return rc;
    }
    lua_pushcfunction(script->vm->lua, ask_protected);
    lua_pushlightuserdata(script->vm->lua, &asking);
    rc = tn_vm_call(script->vm, 1, 0, err);
    if (rc == TN_OK) {
        *plan = made;
    }
    return tn_script_counted(script, rc, err);
}

/* ---- a case's state ---- */

static int bad_member(lua_State *L, const struct member *member, const char *want)
{
    return luaL_error(L, "%s%s is %s; want %s", groups[member->group].path, member->name,
                      shown(L, -1), want);
}

/* The list is on top; its texts live in the case. */
static void take_list(lua_State *L, const struct member *member, struct tn_upload_state *state,
                      const char **tables)
{
    if (!lua_istable(L, -1)) {
        (void)bad_member(L, member, "a list of names");
    }
    state->tables = tables;
    state->table_count = 0;
    while (lua_rawgeti(L, -1, (lua_Integer)state->table_count + 1) != LUA_TNIL) {
        if (lua_type(L, -1) != LUA_TSTRING || state->table_count == TN_UPLOAD_TABLES_MAX) {
            (void)bad_member(L, member, "a list of names, not too many");
        }
        tables[state->table_count++] = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static void take_member(lua_State *L, const struct member *member, struct tn_upload_state *state,
                        const char **tables)
{
    void *at = (unsigned char *)state + member->at;
    int type = lua_type(L, -1);
    int whole = 0;
    if (member->kind == LIST) {
        take_list(L, member, state, tables);
    } else if (member->kind == FLAG) {
        *(bool *)at = type == LUA_TBOOLEAN ? lua_toboolean(L, -1)
                                           : bad_member(L, member, "true or false") != 0;
    } else if (member->kind == TEXT) {
        *(const char **)at = type == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
        whole = type == LUA_TSTRING || bad_member(L, member, "a text");
    } else {
        int64_t value = type == LUA_TNUMBER ? lua_tointegerx(L, -1, &whole) : 0;
        *(int64_t *)at =
            whole && value >= 0 ? value : bad_member(L, member, "a whole number from 0 on");
    }
}

static void take_group(lua_State *L, enum group group, int index, struct tn_upload_state *state,
                       const char **tables)
{
    const char *names[MEMBER_COUNT + GROUP_COUNT] = {NULL};
    uint32_t count = names_of(group, names);
    if (lua_isnil(L, index)) {
        return;
    }
    if (!lua_istable(L, index)) {
        (void)luaL_error(L, "%s is a %s; want a table",
                         groups[group].name ? groups[group].name : "state",
                         luaL_typename(L, index));
    }
    lua_pushnil(L);
    while (lua_next(L, index)) {
        lua_pop(L, 1);
        tn_script_check_name(L, groups[group].path, tn_script_key_at(L, -1), names, count);
    }
    for (int i = 0; i < MEMBER_COUNT; i++) {
        lua_pushnil(L);
        if (members[i].group == group && lua_getfield(L, index, members[i].name) != LUA_TNIL) {
            take_member(L, &members[i], state, tables);
        }
        lua_settop(L, index);
    }
}

/* The table at `index`, or nil; below it nothing is on the stack afterwards. */
static void take_state(lua_State *L, int index, struct tn_upload_state *state, const char **tables)
{
    luaL_checkstack(L, STACK_SLOTS, NULL);
    lua_pushvalue(L, index);
    int base = lua_gettop(L);
    for (int i = STATE; i < GROUP_COUNT; i++) {
        int parent = base + (int)groups[i].parent;
        if (i != STATE && lua_isnil(L, parent)) {
            lua_pushnil(L);
        } else if (i != STATE) {
            lua_getfield(L, parent, groups[i].name);
        }
        take_group(L, (enum group)i, base + i, state, tables);
    }
    lua_settop(L, base - 1);
}

int tn_script_upload_case(lua_State *L)
{
    struct tn_script *script = lua_touserdata(L, lua_upvalueindex(1));
    const char *tables[TN_UPLOAD_TABLES_MAX];
    struct tn_upload_plan plan;
    struct tn_upload_state state = {.clock = "synced",
                                    .link.up = true,
                                    .tables = &script->spec.table,
                                    .table_count = script->spec.table != NULL};
    lua_settop(L, 1);
    take_state(L, 1, &state, tables);
    ask(L, script, &state, &plan);
    return 1;
}
