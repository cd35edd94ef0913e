#include <lua5.4/lauxlib.h>
#include <lua5.4/lua.h>

#include "base/hash.h"
#include "script/sandbox.h"
#include "script/script_private.h"

/* A piece: "ts", version, kind, size and checksum of what follows; the checksum is of these eight
 * bytes, too. What follows is lua/tarn/state.lua's. */
enum { VERSION = 1, KIND_ALL = '=', KIND_MORE = '+', CHECKED = 8 };

enum { SLACK = 16 * 1024 }; /* bytes of changes, before all is saved again */

struct asking {
    struct tn_script *script;
    const char *member; /* of the module */
    struct tn_bytes text;
    size_t saved;
    size_t most;
    struct tn_buf *out;
    bool all;
    bool any;
};

/* ---- in Lua ---- */

static void push_member(lua_State *L, const struct asking *a)
{
    (void)lua_rawgeti(L, LUA_REGISTRYINDEX, a->script->state_at);
    lua_getfield(L, -1, a->member);
}

static int call_member(lua_State *L)
{
    const struct asking *a = lua_touserdata(L, 1);
    push_member(L, a);
    if (a->text.data) {
        (void)lua_pushlstring(L, (const char *)a->text.data, a->text.size);
    }
    lua_call(L, a->text.data ? 1 : 0, 0);
    return 0;
}

/* The stores that a script made have their module loaded. */
static int begin_protected(lua_State *L)
{
    struct asking *a = lua_touserdata(L, 1);
    lua_getfield(L, LUA_REGISTRYINDEX, TN_SANDBOX_MODULES);
    if (lua_getfield(L, -1, "tarn.state") != LUA_TTABLE) {
        return 0;
    }
    a->script->state_at = luaL_ref(L, LUA_REGISTRYINDEX);
    push_member(L, a);
    lua_call(L, 0, 2);
    a->script->undo_at = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_Integer size = lua_tointeger(L, -1);
    a->script->state_size_max = size > 0 ? (uint32_t)size + TN_SCRIPT_PIECE_HEAD_SIZE : 0;
    return 0;
}

static int save_protected(lua_State *L)
{
    struct asking *a = lua_touserdata(L, 1);
    push_member(L, a);
    if (a->saved > 0) {
        lua_pushinteger(L, (lua_Integer)a->saved + TN_SCRIPT_PIECE_HEAD_SIZE);
    } else {
        lua_pushnil(L);
    }
    lua_pushinteger(L, (lua_Integer)a->most);
    lua_call(L, 2, 2);
    a->all = lua_toboolean(L, -1);
    a->any = !lua_isnil(L, -2);
    if (a->any) {
        tn_buf_append(a->out, lua_tostring(L, -2), (size_t)lua_rawlen(L, -2));
    }
    return 0;
}

static tn_rc ask(struct asking *a, lua_CFunction function, struct tn_err *err)
{
    lua_pushcfunction(a->script->vm->lua, function);
    lua_pushlightuserdata(a->script->vm->lua, a);
    return tn_vm_call_loading(a->script->vm, 1, 0, err);
}

static tn_rc ask_member(struct tn_script *script, const char *member, struct tn_bytes text,
                        struct tn_err *err)
{
    struct asking a = {.script = script, .member = member, .text = text};
    return ask(&a, call_member, err);
}

/* ---- what can be taken back ---- */

tn_rc tn_script_state_begin(struct tn_script *script, struct tn_err *err)
{
    struct asking a = {.script = script, .member = "seal"};
    return ask(&a, begin_protected, err);
}

void tn_script_state_mark(lua_State *L, const struct tn_script *script)
{
    if (tn_script_keeps(script)) {
        (void)lua_rawgeti(L, LUA_REGISTRYINDEX, script->undo_at);
        lua_pushinteger(L, 0);
        lua_rawseti(L, -2, 0);
        lua_pop(L, 1);
    }
}

void tn_script_state_take_back(lua_State *L, const struct tn_script *script)
{
    if (tn_script_keeps(script)) {
        (void)lua_rawgeti(L, LUA_REGISTRYINDEX, script->state_at);
        lua_getfield(L, -1, "undo");
        lua_call(L, 0, 0);
        lua_pop(L, 1);
    }
}

/* Where there is no memory even for that the stores are in doubt: a script that is parked is loaded
 * again, and gets what was saved. */
void tn_script_state_undo(struct tn_script *script)
{
    struct tn_err ignored = {0};
    if (tn_script_keeps(script) &&
        ask_member(script, "undo", (struct tn_bytes){0}, &ignored) != TN_OK) {
        script->failures_in_row = TN_SCRIPT_FAILURES_MAX;
    }
}

/* ---- pieces ---- */

size_t tn_script_state_room(const struct tn_script *script)
{
    size_t size = script->state_size_max;
    return size + (size < SLACK ? size : SLACK);
}

static uint32_t checksum(const unsigned char *piece, size_t size)
{
    unsigned char sums[8];
    tn_store_u32(sums, tn_hash_crc32((struct tn_bytes){piece, CHECKED}));
    tn_store_u32(sums + 4, tn_hash_crc32((struct tn_bytes){piece + TN_SCRIPT_PIECE_HEAD_SIZE,
                                                           size - TN_SCRIPT_PIECE_HEAD_SIZE}));
    return tn_hash_crc32((struct tn_bytes){sums, sizeof sums});
}

tn_rc tn_script_save(struct tn_script *script, size_t saved, size_t most, bool *all,
                     struct tn_buf *out, struct tn_err *err)
{
    struct asking a = {
        .script = script, .member = "changes", .saved = saved, .most = most, .out = out};
    size_t begin = out->size;
    unsigned char head[TN_SCRIPT_PIECE_HEAD_SIZE] = {'t', 's', VERSION};
    *all = false;
    if (!tn_script_keeps(script)) {
        return TN_OK;
    }
    tn_buf_append(out, head, sizeof head);
    tn_rc rc = ask(&a, save_protected, err);
    if (rc == TN_OK && out->overflow) {
        rc = tn_err_set(err, TN_AGAIN, 0, "%s: its stores need more than %zu bytes",
                        script->spec.path, out->capacity);
    }
    if (rc != TN_OK || !a.any) {
        out->size = begin;
        return rc;
    }
    unsigned char *piece = out->data + begin;
    piece[3] = a.all ? KIND_ALL : KIND_MORE;
    tn_store_u32(piece + 4, (uint32_t)(out->size - begin - sizeof head));
    tn_store_u32(piece + CHECKED, checksum(piece, out->size - begin));
    *all = a.all;
    return TN_OK;
}

static int changed_protected(lua_State *L)
{
    struct asking *a = lua_touserdata(L, 1);
    push_member(L, a);
    lua_call(L, 0, 1);
    a->any = lua_toboolean(L, -1);
    return 0;
}

bool tn_script_changed(struct tn_script *script)
{
    struct tn_err ignored = {0};
    struct asking a = {.script = script, .member = "changed", .any = true};
    return tn_script_keeps(script) && (ask(&a, changed_protected, &ignored) != TN_OK || a.any);
}

tn_rc tn_script_saved(struct tn_script *script, struct tn_err *err)
{
    return tn_script_keeps(script) ? ask_member(script, "saved", (struct tn_bytes){0}, err) : TN_OK;
}

/* What is wrong with the piece at the front, or NULL; `*size` is the whole of it. */
static const char *check_piece(struct tn_bytes rest, bool first, size_t *size)
{
    const unsigned char *at = rest.data;
    if (rest.size < TN_SCRIPT_PIECE_HEAD_SIZE) {
        return "it ends in the head of a piece";
    }
    if (at[0] != 't' || at[1] != 's') {
        return "no piece of a script's stores";
    }
    if (at[2] != VERSION) {
        return "of another version";
    }
    size_t length = tn_load_u32(at + 4);
    if (length > rest.size - TN_SCRIPT_PIECE_HEAD_SIZE) { /* the sum might not fit 32 bits */
        return "it ends in a piece";
    }
    *size = TN_SCRIPT_PIECE_HEAD_SIZE + length;
    if (checksum(at, *size) != tn_load_u32(at + CHECKED)) {
        return "the checksum is another one";
    }
    if (at[3] != KIND_ALL && at[3] != KIND_MORE) {
        return "a piece of no known kind";
    }
    return first && at[3] != KIND_ALL ? "the first piece is not all there was" : NULL;
}

static tn_rc check_pieces(struct tn_bytes pieces, struct tn_err *err)
{
    size_t at = 0;
    size_t size = 0;
    while (at < pieces.size) {
        struct tn_bytes rest = {pieces.data + at, pieces.size - at};
        const char *why = check_piece(rest, at == 0, &size);
        if (why) {
            return tn_err_set(err, TN_CORRUPT, 0, "byte %zu: %s", at, why);
        }
        at += size;
    }
    return TN_OK;
}

static tn_rc clear(struct tn_script *script, struct tn_err *err)
{
    return ask_member(script, "clear", (struct tn_bytes){0}, err);
}

static tn_rc apply(struct tn_script *script, struct tn_bytes piece, struct tn_err *err)
{
    struct tn_bytes text = {piece.data + TN_SCRIPT_PIECE_HEAD_SIZE,
                            piece.size - TN_SCRIPT_PIECE_HEAD_SIZE};
    tn_rc rc = piece.data[3] == KIND_ALL ? clear(script, err) : TN_OK;
    return rc == TN_OK ? ask_member(script, "apply", text, err) : rc;
}

tn_rc tn_script_restore(struct tn_script *script, struct tn_bytes pieces, struct tn_err *err)
{
    if (!tn_script_keeps(script)) {
        return TN_OK;
    }
    tn_rc rc = clear(script, err);
    if (rc == TN_OK) {
        rc = check_pieces(pieces, err);
    }
    for (size_t at = 0; rc == TN_OK && at < pieces.size;) {
        size_t size = (size_t)tn_load_u32(pieces.data + at + 4) + TN_SCRIPT_PIECE_HEAD_SIZE;
        rc = apply(script, (struct tn_bytes){pieces.data + at, size}, err);
        if (rc != TN_OK) {
            struct tn_err ignored = {0};
            rc = tn_err_set(err, TN_CORRUPT, 0, "byte %zu: %s", at, err->text);
            (void)(clear(script, &ignored) == TN_OK);
        }
        at += size;
    }
    return rc;
}
