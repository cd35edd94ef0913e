#include "script/uploaded.h"

#include <lua5.4/lauxlib.h>
#include <lua5.4/lua.h>

#include "base/check.h"
#include "script/script_private.h"

enum { STACK_SLOTS = 10, EVENT_MEMBERS = 6 };

static const char *const event_names[EVENT_MEMBERS] = {"lake",     "table",  "first",
                                                       "snapshot", "now_ms", "clock"};
static const char *const message_names[] = {"payload", "topic", "retain", "type"};
enum { MESSAGE_MEMBERS = sizeof message_names / sizeof message_names[0] };

/* ---- the event ---- */

/* All members are there: it is a wrong name, or one that the script took away. */
static int missing(lua_State *L)
{
    tn_script_check_name(L, "event.", tn_script_key_at(L, 2), event_names, EVENT_MEMBERS);
    lua_pushnil(L);
    return 1;
}

static void push_event(lua_State *L, const struct tn_uploaded_event *event)
{
    lua_createtable(L, 0, EVENT_MEMBERS);
    lua_pushstring(L, event->lake);
    lua_setfield(L, -2, "lake");
    lua_pushstring(L, event->table);
    lua_setfield(L, -2, "table");
    lua_pushinteger(L, event->first);
    lua_setfield(L, -2, "first");
    lua_pushinteger(L, event->snapshot);
    lua_setfield(L, -2, "snapshot");
    lua_pushinteger(L, event->now_ms);
    lua_setfield(L, -2, "now_ms");
    lua_pushstring(L, event->clock);
    lua_setfield(L, -2, "clock");
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, missing);
    lua_setfield(L, -2, "__index");
    (void)lua_setmetatable(L, -2);
}

/* ---- the answer: it lies in the state, and is copied at the end ---- */

/* The text on top, or nil. */
static struct tn_bytes take_text(lua_State *L, const char *name, size_t size_max)
{
    struct tn_bytes text = {0};
    if (lua_isnil(L, -1)) {
        return text;
    }
    if (lua_type(L, -1) != LUA_TSTRING) {
        (void)luaL_error(L, "uploaded: '%s' is a %s; want a text", name, luaL_typename(L, -1));
    }
    text.data = (const unsigned char *)lua_tolstring(L, -1, &text.size);
    if (text.size > size_max) {
        (void)luaL_error(L, "uploaded: '%s' has %d bytes, at most %d", name, (int)text.size,
                         (int)size_max);
    }
    return text;
}

static void check_topic(lua_State *L, struct tn_bytes topic)
{
    bool lawful = topic.size > 0;
    for (size_t i = 0; i < topic.size; i++) {
        lawful = lawful && topic.data[i] >= ' ' && topic.data[i] != '+' && topic.data[i] != '#';
    }
    if (!lawful) {
        (void)luaL_error(L, "uploaded: 'topic' is none: no + or #, no control bytes, not empty");
    }
}

static void check_type(lua_State *L, struct tn_bytes type)
{
    bool lawful = type.size > 0;
    for (size_t i = 0; i < type.size; i++) {
        lawful = lawful && type.data[i] >= ' ' && type.data[i] <= '~';
    }
    if (!lawful) {
        (void)luaL_error(L, "uploaded: 'type' is none, like application/json");
    }
}

static void get_raw(lua_State *L, int table, const char *name)
{
    lua_pushstring(L, name);
    (void)lua_rawget(L, table);
}

/* Its texts stay on the stack, so that they stay at all. */
static void take_table(lua_State *L, struct tn_uploaded_message *message, struct tn_bytes *type)
{
    int table = lua_gettop(L);
    lua_pushnil(L);
    while (lua_next(L, table)) {
        lua_pop(L, 1);
        tn_script_check_name(L, "message.", tn_script_key_at(L, -1), message_names,
                             MESSAGE_MEMBERS);
    }
    get_raw(L, table, "payload");
    if (lua_isnil(L, -1)) {
        (void)luaL_error(L, "uploaded: a message without 'payload'");
    }
    message->payload = take_text(L, "payload", TN_UPLOADED_PAYLOAD_MAX);
    get_raw(L, table, "topic");
    message->topic = take_text(L, "topic", TN_UPLOADED_TOPIC_MAX);
    if (message->topic.data) {
        check_topic(L, message->topic);
    }
    get_raw(L, table, "type");
    *type = take_text(L, "type", TN_UPLOADED_TYPE_MAX);
    if (type->data) {
        check_type(L, *type);
    }
    get_raw(L, table, "retain");
    if (!lua_isnil(L, -1) && !lua_isboolean(L, -1)) {
        (void)luaL_error(L, "uploaded: 'retain' is a %s; want true or false", luaL_typename(L, -1));
    }
    message->retain = lua_toboolean(L, -1);
}

static struct tn_bytes keep(struct tn_buf *room, struct tn_bytes text)
{
    struct tn_bytes kept = {room->data + room->size, text.size};
    tn_buf_append(room, text.data, text.size);
    return text.data ? kept : text;
}

/* The answer is on top, and stays below what is pushed here. */
static void take_answer(lua_State *L, struct tn_uploaded_message *message, struct tn_buf *room)
{
    struct tn_bytes type = {0};
    *message = (struct tn_uploaded_message){.none = lua_isnil(L, -1)};
    luaL_checkstack(L, STACK_SLOTS, NULL);
    if (lua_istable(L, -1)) {
        take_table(L, message, &type);
    } else if (lua_type(L, -1) == LUA_TSTRING) {
        message->payload = take_text(L, "payload", TN_UPLOADED_PAYLOAD_MAX);
    } else if (!message->none) {
        (void)tn_script_wrong_result(L, "uploaded", "nil, a text or a message");
    }
    if (room) {
        message->payload = keep(room, message->payload);
        message->topic = keep(room, message->topic);
        message->type = type.data ? (const char *)keep(room, type).data : NULL;
        tn_buf_byte(room, 0); /* behind the type, which is a text of C */
    }
}

/* Leaves what the script answered on the stack, and what was taken out of it behind that. */
static void ask(lua_State *L, struct tn_script *script, const struct tn_uploaded_event *event,
                struct tn_uploaded_message *message, struct tn_buf *room)
{
    script->vm->call_place = script->places[TN_SCRIPT_UPLOADED];
    script->calling = TN_SCRIPT_UPLOADED;
    tn_script_state_mark(L, script);
    (void)lua_rawgeti(L, LUA_REGISTRYINDEX, script->handlers[TN_SCRIPT_UPLOADED]);
    push_event(L, event);
    (void)lua_rawgeti(L, LUA_REGISTRYINDEX, script->ctx_at);
    lua_call(L, 2, 1);
    take_answer(L, message, room);
}

struct asking {
    struct tn_script *script;
    const struct tn_uploaded_event *event;
    struct tn_uploaded_message *message;
    struct tn_buf *room;
};

static int ask_protected(lua_State *L)
{
    const struct asking *a = lua_touserdata(L, 1);
    ask(L, a->script, a->event, a->message, a->room);
    return 0;
}

tn_rc tn_script_uploaded(struct tn_script *script, const struct tn_uploaded_event *event,
                         struct tn_uploaded_message *message, struct tn_buf *room,
                         struct tn_err *err)
{
    struct tn_uploaded_message made;
    struct asking asking = {script, event, &made, room};
    TN_CHECK(tn_script_has(script, TN_SCRIPT_UPLOADED) && room->capacity >= TN_UPLOADED_ROOM);
    tn_rc rc = tn_script_check_parked(script, err);
    if (rc != TN_OK) {
        return rc;
    }
    room->size = 0;
    lua_pushcfunction(script->vm->lua, ask_protected);
    lua_pushlightuserdata(script->vm->lua, &asking);
    rc = tn_vm_call(script->vm, 1, 0, err);
    if (rc == TN_OK) {
        *message = made;
    }
    return rc;
}

/* ---- a case's event ---- */

static const char *text_of(lua_State *L, const char *name, const char *otherwise)
{
    if (!lua_istable(L, 1)) {
        return otherwise;
    }
    int type = lua_getfield(L, 1, name);
    if (type != LUA_TNIL && type != LUA_TSTRING) {
        (void)luaL_error(L, "event.%s is a %s; want a text", name, luaL_typename(L, -1));
    }
    return type == LUA_TNIL ? otherwise : lua_tostring(L, -1);
}

static int64_t number_of(lua_State *L, const char *name, int64_t otherwise)
{
    int whole = 0;
    if (!lua_istable(L, 1) || lua_getfield(L, 1, name) == LUA_TNIL) {
        return otherwise;
    }
    lua_Integer value = lua_tointegerx(L, -1, &whole);
    if (!whole || value < 0) {
        (void)luaL_error(L, "event.%s is no whole number from 0 on", name);
    }
    return value;
}

int tn_script_uploaded_case(lua_State *L)
{
    struct tn_script *script = lua_touserdata(L, lua_upvalueindex(1));
    struct tn_uploaded_message message;
    lua_settop(L, 1);
    luaL_checkstack(L, STACK_SLOTS, NULL);
    if (!lua_isnil(L, 1)) {
        luaL_checktype(L, 1, LUA_TTABLE);
        lua_pushnil(L);
        while (lua_next(L, 1)) {
            lua_pop(L, 1);
            tn_script_check_name(L, "event.", tn_script_key_at(L, -1), event_names, EVENT_MEMBERS);
        }
    }
    int64_t snapshot = number_of(L, "snapshot", 1);
    struct tn_uploaded_event event = {
        .lake = text_of(L, "lake", "lake"),
        .table = text_of(L, "table", script->spec.table ? script->spec.table : "db.t"),
        .first = number_of(L, "first", snapshot),
        .snapshot = snapshot,
        .now_ms = number_of(L, "now_ms", 0),
        .clock = text_of(L, "clock", "synced")};
    int answer = lua_gettop(L) + 1;
    ask(L, script, &event, &message, NULL);
    lua_settop(L, answer);
    return 1;
}
