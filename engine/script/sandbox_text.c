#include <lua5.4/lauxlib.h>
#include <lua5.4/lua.h>

#include "script/sandbox.h"
#include "script/vm.h"

enum { BYTES_AN_INSTRUCTION = 16 };

static struct tn_bytes check_bytes(lua_State *L, int index)
{
    size_t size;
    const char *text = luaL_checklstring(L, index, &size);
    return (struct tn_bytes){(const unsigned char *)text, size};
}

static struct tn_bytes check_subject(lua_State *L, int index)
{
    struct tn_bytes subject = check_bytes(L, index);
    uint32_t most = tn_vm_of(L)->limits.text_size;
    if (subject.size > most) {
        (void)luaL_error(L, "a text of %I bytes; at most %d", (lua_Integer)subject.size, (int)most);
    }
    return subject;
}

/* A place counted from 1, or from the end when negative, as an offset. */
static size_t check_start(lua_State *L, int index, size_t size)
{
    lua_Integer at = luaL_optinteger(L, index, 1);
    if (at > 0) {
        return (lua_Unsigned)at - 1 > size ? size + 1 : (size_t)at - 1;
    }
    return at == 0 || at < -(lua_Integer)size ? 0 : size - (size_t)-at;
}

/* ---- one match ---- */

static struct tn_matcher *begin(lua_State *L, struct tn_bytes subject, struct tn_bytes pattern,
                                bool *anchored)
{
    struct tn_matcher *matcher = &tn_vm_of(L)->matcher;
    *anchored = pattern.size > 0 && pattern.data[0] == '^';
    matcher->subject = subject;
    matcher->pattern = (struct tn_bytes){pattern.data + *anchored, pattern.size - *anchored};
    return matcher;
}

/* Its steps are paid for like instructions. */
static bool match_at(lua_State *L, struct tn_matcher *matcher, const unsigned char *at)
{
    const struct tn_vm *vm = tn_vm_of(L);
    uint64_t given = vm->instructions_left > 0 ? (uint64_t)vm->instructions_left : 0;
    matcher->steps_left = given;
    enum tn_pattern_result result = tn_pattern_match(matcher, at);
    if (result == TN_PATTERN_SPENT) {
        (void)tn_vm_stop(L, "the pattern takes more steps than its budget has");
    }
    tn_vm_charge(L, given - matcher->steps_left);
    if (result == TN_PATTERN_WRONG) {
        (void)luaL_error(L, "%s", matcher->reason);
    }
    return result == TN_PATTERN_YES;
}

static void push_capture(lua_State *L, const struct tn_matcher *m, uint32_t i,
                         const unsigned char *start)
{
    if (i >= m->capture_count) {
        if (i > 0) {
            (void)luaL_error(L, "invalid capture index %%%d", (int)i + 1);
        }
        (void)lua_pushlstring(L, (const char *)start, (size_t)(m->end - start));
    } else if (m->captures[i].size == TN_CAPTURE_POSITION) {
        lua_pushinteger(L, m->captures[i].at - m->subject.data + 1);
    } else if (m->captures[i].size == TN_CAPTURE_OPEN) {
        (void)luaL_error(L, "unfinished capture");
    } else {
        (void)lua_pushlstring(L, (const char *)m->captures[i].at, (size_t)m->captures[i].size);
    }
}

/* All captures, or the whole match where there are none. */
static int push_captures(lua_State *L, const struct tn_matcher *m, const unsigned char *start)
{
    uint32_t count = m->capture_count > 0 ? m->capture_count : 1;
    luaL_checkstack(L, (int)count, "too many captures");
    for (uint32_t i = 0; i < count; i++) {
        push_capture(L, m, i, start);
    }
    return (int)count;
}

/* ---- find and match ---- */

static int find_plain(lua_State *L, struct tn_bytes subject, struct tn_bytes word, size_t start)
{
    tn_vm_charge(L, subject.size / BYTES_AN_INSTRUCTION);
    const unsigned char *from = subject.data + start;
    const unsigned char *at = memmem(from, subject.size - start, word.data, word.size);
    if (!at) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushinteger(L, at - subject.data + 1);
    lua_pushinteger(L, at - subject.data + (lua_Integer)word.size);
    return 2;
}

static int look_for(lua_State *L, bool find)
{
    struct tn_bytes subject = check_subject(L, 1);
    struct tn_bytes pattern = check_bytes(L, 2);
    size_t start = check_start(L, 3, subject.size);
    if (start > subject.size) {
        lua_pushnil(L);
        return 1;
    }
    if (find && (lua_toboolean(L, 4) || !tn_pattern_special(pattern))) {
        return find_plain(L, subject, pattern, start);
    }
    bool anchored;
    struct tn_matcher *m = begin(L, subject, pattern, &anchored);
    const unsigned char *at = subject.data + start;
    bool met = match_at(L, m, at);
    while (!met && !anchored && at < subject.data + subject.size) {
        met = match_at(L, m, ++at);
    }
    if (!met) {
        lua_pushnil(L);
        return 1;
    }
    if (!find) {
        return push_captures(L, m, at);
    }
    lua_pushinteger(L, at - subject.data + 1);
    lua_pushinteger(L, m->end - subject.data);
    return m->capture_count == 0 ? 2 : 2 + push_captures(L, m, at);
}

static int text_find(lua_State *L)
{
    return look_for(L, true);
}

static int text_match(lua_State *L)
{
    return look_for(L, false);
}

/* ---- gmatch; upvalues: subject, pattern, where to go on, where the last match ended ---- */

static int gmatch_next(lua_State *L)
{
    struct tn_bytes subject = check_subject(L, lua_upvalueindex(1));
    struct tn_matcher *m = &tn_vm_of(L)->matcher;
    m->subject = subject;
    m->pattern = check_bytes(L, lua_upvalueindex(2)); /* a '^' has no meaning here */
    size_t start = (size_t)lua_tointeger(L, lua_upvalueindex(3));
    lua_Integer last = lua_tointeger(L, lua_upvalueindex(4));
    for (; start <= subject.size; start++) {
        const unsigned char *at = subject.data + start;
        if (match_at(L, m, at) && m->end - subject.data != last) {
            lua_pushinteger(L, m->end - subject.data);
            lua_pushvalue(L, -1);
            lua_replace(L, lua_upvalueindex(3));
            lua_replace(L, lua_upvalueindex(4));
            return push_captures(L, m, at);
        }
    }
    return 0;
}

static int text_gmatch(lua_State *L)
{
    struct tn_bytes subject = check_subject(L, 1);
    (void)check_bytes(L, 2);
    size_t start = check_start(L, 3, subject.size);
    lua_settop(L, 2);
    lua_pushinteger(L, (lua_Integer)start);
    lua_pushinteger(L, -1);
    lua_pushcclosure(L, gmatch_next, 4);
    return 1;
}

/* ---- gsub ---- */

/* A text that grows in a userdata: on the C stack it would be too much where callbacks nest. */
struct builder {
    int index; /* of the userdata */
    unsigned char *data;
    size_t size;
    size_t capacity;
};

static void add(lua_State *L, struct builder *b, const void *data, size_t size)
{
    uint32_t most = tn_vm_of(L)->limits.text_size;
    if (size > most || b->size + size > most) {
        (void)luaL_error(L, "the result has more than %d bytes", (int)most);
    }
    if (b->size + size > b->capacity) {
        b->capacity = 2 * (b->size + size);
        unsigned char *larger = lua_newuserdatauv(L, b->capacity, 0);
        if (b->size > 0) {
            memcpy(larger, b->data, b->size);
        }
        b->data = larger;
        lua_replace(L, b->index);
    }
    if (size > 0) {
        memcpy(b->data + b->size, data, size);
        b->size += size;
    }
}

/* The value on top, which goes. */
static void add_top(lua_State *L, struct builder *b)
{
    size_t size;
    const char *text = luaL_tolstring(L, -1, &size);
    add(L, b, text, size);
    lua_pop(L, 2);
}

static void add_template(lua_State *L, struct builder *b, const struct tn_matcher *m,
                         const unsigned char *start)
{
    struct tn_bytes text = check_bytes(L, 3);
    for (size_t i = 0; i < text.size; i++) {
        int c = text.data[i];
        if (c != '%') {
            add(L, b, text.data + i, 1);
            continue;
        }
        c = ++i < text.size ? text.data[i] : 0;
        if (c == '%') {
            add(L, b, "%", 1);
        } else if (c == '0') {
            add(L, b, start, (size_t)(m->end - start));
        } else if (c >= '1' && c <= '9') {
            push_capture(L, m, (uint32_t)(c - '1'), start);
            add_top(L, b);
        } else {
            (void)luaL_error(L, "invalid use of '%%' in replacement string");
        }
    }
}

/* What a table or function says is in place of the match. */
static void add_answer(lua_State *L, struct builder *b, const struct tn_matcher *m,
                       const unsigned char *start)
{
    size_t size = (size_t)(m->end - start);
    if (lua_istable(L, 3)) {
        push_capture(L, m, 0, start);
        (void)lua_gettable(L, 3);
    } else {
        lua_pushvalue(L, 3);
        lua_call(L, push_captures(L, m, start), 1);
    } /* from here on the matcher may be another match's */
    if (!lua_toboolean(L, -1)) {
        add(L, b, start, size);
        lua_pop(L, 1);
    } else if (lua_isstring(L, -1)) {
        add_top(L, b);
    } else {
        (void)luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    }
}

static void check_replacement(lua_State *L)
{
    int type = lua_type(L, 3);
    bool fits =
        type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TTABLE || type == LUA_TFUNCTION;
    luaL_argexpected(L, fits, 3, "string/function/table");
}

static int text_gsub(lua_State *L)
{
    struct tn_bytes subject = check_subject(L, 1);
    struct tn_bytes pattern = check_bytes(L, 2);
    check_replacement(L);
    lua_Integer most = luaL_optinteger(L, 4, (lua_Integer)subject.size + 1);
    lua_settop(L, 4);
    lua_pushnil(L);
    struct builder b = {.index = 5};
    bool template = lua_isstring(L, 3);
    const unsigned char *at = subject.data;
    const unsigned char *last = NULL;
    lua_Integer count = 0;
    bool anchored = false;
    while (count < most) {
        struct tn_matcher *m = begin(L, subject, pattern, &anchored);
        if (match_at(L, m, at) && m->end != last) {
            const unsigned char *end = m->end;
            (template ? add_template : add_answer)(L, &b, m, at);
            at = last = end;
            count++;
        } else if (at < subject.data + subject.size) {
            add(L, &b, at++, 1);
        } else {
            break;
        }
        if (anchored) {
            break;
        }
    }
    add(L, &b, at, (size_t)(subject.data + subject.size - at));
    (void)lua_pushlstring(L, (const char *)b.data, b.size);
    lua_pushinteger(L, count);
    return 2;
}

/* ---- rep ---- */

/* upvalue 1: Lua's own */
static int text_rep(lua_State *L)
{
    struct tn_bytes text = check_bytes(L, 1);
    lua_Integer count = luaL_checkinteger(L, 2);
    uint64_t each = text.size + (lua_isnoneornil(L, 3) ? 0 : check_bytes(L, 3).size);
    uint32_t most = tn_vm_of(L)->limits.text_size;
    if (count > 0 && each > 0 && (uint64_t)count > most / each) {
        return luaL_error(L, "string.rep would make %f bytes; at most %d",
                          (double)each * (double)count, (int)most);
    }
    tn_vm_charge(L, count > 0 && each > 0 ? (uint64_t)count : 1);
    return count > 0 && each == 0 ? (lua_settop(L, 1), 1)
                                  : lua_tocfunction(L, lua_upvalueindex(1))(L);
}

void tn_sandbox_text(lua_State *L)
{
    static const luaL_Reg own[] = {{"find", text_find},
                                   {"match", text_match},
                                   {"gmatch", text_gmatch},
                                   {"gsub", text_gsub},
                                   {NULL, NULL}};
    luaL_setfuncs(L, own, 0);
    lua_getfield(L, -1, "rep"); /* bounded: its function is the first upvalue */
    (void)lua_getupvalue(L, -1, 1);
    lua_remove(L, -2);
    lua_pushcclosure(L, text_rep, 1);
    lua_setfield(L, -2, "rep");
}
