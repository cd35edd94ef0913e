/* What the Lua file returns, as plain values. Only here is Lua. */
#include <inttypes.h>
#include <lua5.4/lauxlib.h>
#include <lua5.4/lua.h>
#include <stdlib.h>

#include "app/config_private.h"
#include "base/check.h"
#include "schema/value.h"
#include "script/sandbox.h"
#include "script/vm.h"

enum { STACK_OF_LEVEL = 8 };

/* In the registry: texts that came from outside -> from where; false: it is no value at all. */
#define ORIGINS "tarn.config.origins"

/* ---- files ---- */

tn_rc tn_config_folder(struct tn_arena *arena, const char *path, const char **folder,
                       const char **name, struct tn_err *err)
{
    const char *slash = strrchr(path, '/');
    size_t size = slash ? (size_t)(slash - path) + 1 : 0;
    const char *given =
        slash ? tn_arena_text(arena, (struct tn_bytes){(const unsigned char *)path, size}) : ".";
    char *from_root = tn_arena_take(arena, TN_CONFIG_PATH_MAX);
    struct tn_io_posix posix;
    if (!given || !from_root) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for the path of %s", path);
    }
    tn_rc rc = tn_io_posix_open(&posix, given, err);
    if (rc == TN_OK) {
        tn_io_posix_where(&posix, from_root, TN_CONFIG_PATH_MAX);
        tn_io_posix_close(&posix);
        *folder = strcmp(from_root, "/") == 0 ? "" : from_root;
        *name = path + size;
    }
    return rc;
}

/* The text of a file, without its last line end, in memory for the moment. */
static tn_rc read_text(struct tn_config_reader *r, const char *path, struct tn_bytes *text,
                       struct tn_err *err)
{
    struct tn_io_posix posix;
    const char *folder = NULL;
    const char *name = NULL;
    const char *whole =
        path[0] == '/' ? path : tn_arena_format(&r->scratch, "%s/%s", r->folder, path);
    tn_rc rc = whole ? tn_config_folder(&r->scratch, whole, &folder, &name, err)
                     : tn_err_set(err, TN_AGAIN, 0, "no memory for a path");
    if (rc == TN_OK) {
        rc = tn_io_posix_open(&posix, folder[0] ? folder : "/", err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_io_read_all(&posix.io, name, TN_CONFIG_FILE_SIZE_MAX, &r->scratch, text, err);
    tn_io_posix_close(&posix);
    if (rc == TN_OK && text->size > 0 && text->data[text->size - 1] == '\n') {
        text->size--;
        text->size -= text->size > 0 && text->data[text->size - 1] == '\r';
    }
    return rc;
}

/* ---- env and file ---- */

static struct tn_config_reader *reader_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

/* Notes where the text on top is from. */
static void note_origin(lua_State *L, const char *call, const char *name)
{
    lua_getfield(L, LUA_REGISTRYINDEX, ORIGINS);
    lua_pushvalue(L, -2);
    lua_pushfstring(L, "%s('%s')", call, name);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

/* A text in place of what isn't there, so that the rest of the file is looked at, too. */
static int missing(lua_State *L, const char *call, const char *name, const char *why)
{
    luaL_where(L, 1);
    tn_config_wrong(reader_of(L), NULL, "%s%s('%.100s'): %s", lua_tostring(L, -1), call, name, why);
    lua_pushfstring(L, "what %s('%s') is not", call, name);
    lua_getfield(L, LUA_REGISTRYINDEX, ORIGINS);
    lua_pushvalue(L, -2);
    lua_pushboolean(L, false);
    lua_rawset(L, -3);
    lua_pop(L, 1);
    return 1;
}

static int get_env(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    const char *value = getenv(name);
    if (value) {
        lua_pushstring(L, value);
        note_origin(L, "env", name);
        return 1;
    }
    if (lua_isnoneornil(L, 2)) {
        return missing(L, "env", name, "it isn't set, and has no default");
    }
    lua_settop(L, 2);
    return 1;
}

static int get_file(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct tn_config_reader *r = reader_of(L);
    struct tn_bytes text = {0};
    struct tn_err err = {0};
    size_t mark = tn_arena_mark(&r->scratch);
    tn_vm_charge(L, TN_CONFIG_FILE_SIZE_MAX); /* a loop of these ends soon */
    tn_rc rc = path[0] ? read_text(r, path, &text, &err)
                       : tn_err_set(&err, TN_INVALID, 0, "a path is wanted");
    if (rc == TN_OK) {
        lua_pushlstring(L, (const char *)text.data, text.size);
    }
    tn_arena_reset(&r->scratch, mark);
    if (rc != TN_OK) {
        return missing(L, "file", path, err.text);
    }
    note_origin(L, "file", path);
    return 1;
}

/* They stand beside the globals of the sandbox, and like those can't be set. */
static int add_globals(lua_State *L)
{
    lua_newtable(L);
    lua_setfield(L, LUA_REGISTRYINDEX, ORIGINS);
    lua_createtable(L, 0, 2);
    lua_pushvalue(L, 1);
    lua_pushcclosure(L, get_env, 1);
    lua_setfield(L, -2, "env");
    lua_pushvalue(L, 1);
    lua_pushcclosure(L, get_file, 1);
    lua_setfield(L, -2, "file");
    lua_createtable(L, 0, 1);
    lua_getfield(L, LUA_REGISTRYINDEX, TN_SANDBOX_GLOBALS);
    lua_setfield(L, -2, "__index");
    (void)lua_setmetatable(L, -2);
    tn_sandbox_freeze(L, "global ");
    lua_setfield(L, LUA_REGISTRYINDEX, TN_SANDBOX_GLOBALS);
    return 0;
}

/* ---- values ---- */

static int full(lua_State *L)
{
    return luaL_error(L, "the configuration needs more memory than there is for it");
}

static void set_text(lua_State *L, struct tn_config_reader *r, struct tn_config_node *node)
{
    size_t size = 0;
    const char *text = lua_tolstring(L, -1, &size);
    struct tn_bytes bytes = {(const unsigned char *)text, size};
    node->kind = TN_CONFIG_TEXT;
    node->text = tn_arena_text(&r->scratch, bytes);
    if (!node->text) {
        full(L);
    }
    lua_getfield(L, LUA_REGISTRYINDEX, ORIGINS);
    lua_pushvalue(L, -2);
    if (lua_rawget(L, -2) == LUA_TSTRING) {
        node->secret = true;
        node->origin = tn_arena_text(&r->scratch, tn_bytes_of(lua_tostring(L, -1)));
    }
    node->told = lua_isboolean(L, -1);
    lua_pop(L, 2);
    if (!node->told && (memchr(text, 0, size) || !tn_is_utf8(bytes))) {
        node->why = "the text is no UTF-8, or has a zero byte";
    }
}

/* Of the value on top of the stack. */
static void set_value(lua_State *L, struct tn_config_reader *r, struct tn_config_node *node)
{
    switch (lua_type(L, -1)) {
    case LUA_TTABLE:
        node->kind = TN_CONFIG_TABLE;
        break;
    case LUA_TSTRING:
        set_text(L, r, node);
        break;
    case LUA_TBOOLEAN:
        node->kind = TN_CONFIG_BOOLEAN;
        node->integer = lua_toboolean(L, -1);
        break;
    case LUA_TNUMBER:
        node->kind = lua_isinteger(L, -1) ? TN_CONFIG_INTEGER : TN_CONFIG_NUMBER;
        node->integer = lua_tointeger(L, -1);
        node->number = lua_tonumber(L, -1);
        break;
    default:
        node->kind = TN_CONFIG_OTHER;
        node->text = luaL_typename(L, -1); /* static */
    }
}

/* Items come before members. */
static bool before(const struct tn_config_node *a, const struct tn_config_node *b)
{
    if (!a->key || !b->key) {
        return !a->key && (b->key || a->index < b->index);
    }
    return strcmp(a->key, b->key) < 0;
}

static void link_child(struct tn_config_node *parent, struct tn_config_node *child)
{
    struct tn_config_node **at = &parent->first;
    if (parent->last && before(parent->last, child)) {
        at = &parent->last->next;
    }
    while (*at && before(*at, child)) {
        at = &(*at)->next;
    }
    child->next = *at;
    *at = child;
    parent->last = child->next ? parent->last : child;
}

static struct tn_config_node *new_node(lua_State *L, struct tn_config_reader *r)
{
    struct tn_config_node *node = tn_arena_take(&r->scratch, sizeof *node);
    if (!node) {
        full(L);
    }
    return node;
}

/* The key is below the value on top. NULL: it is none that a configuration has. */
static struct tn_config_node *add_child(lua_State *L, struct tn_config_reader *r,
                                        struct tn_config_node *parent)
{
    size_t size = 0;
    struct tn_config_node *child = new_node(L, r);
    if (lua_type(L, -2) == LUA_TSTRING) {
        const char *key = lua_tolstring(L, -2, &size);
        child->key =
            tn_arena_text(&r->scratch, (struct tn_bytes){(const unsigned char *)key, size});
        if (!child->key) {
            full(L);
        }
    } else if (lua_isinteger(L, -2)) {
        child->index = lua_tointeger(L, -2);
    } else {
        parent->why = "has a member whose name is no text";
        return NULL;
    }
    if (child->key && strlen(child->key) != size) {
        parent->why = "has a member whose name has a zero byte";
        return NULL;
    }
    child->parent = parent;
    link_child(parent, child);
    set_value(L, r, child);
    return child;
}

/* Walks the table on top, without calling itself: the stack has a table and its key a level. A
 * table that holds itself ends at the depth, or with the memory. */
static void walk(lua_State *L, struct tn_config_reader *r, struct tn_config_node *root)
{
    struct tn_config_node *at = root;
    int depth = 1;
    lua_pushnil(L);
    while (depth > 0) {
        if (!lua_next(L, -2)) {
            at = at->parent;
            depth--;
            lua_pop(L, 1); /* the table: then its own key is on top */
            continue;
        }
        struct tn_config_node *child = add_child(L, r, at);
        bool deeper = child && child->kind == TN_CONFIG_TABLE;
        if (deeper && depth == TN_CONFIG_DEPTH_MAX) {
            child->why = "tables are nested too deep";
            deeper = false;
        }
        if (deeper) {
            luaL_checkstack(L, STACK_OF_LEVEL, NULL);
            at = child;
            depth++;
            lua_pushnil(L);
        } else {
            lua_pop(L, 1);
        }
    }
}

/* Lua has no order of names; the tree has. */
static void tell_all(struct tn_config_reader *r, struct tn_config_node *node)
{
    while (node) {
        if (node->why) {
            node->told = true;
            tn_config_wrong(r, node, "%s", node->why);
        }
        struct tn_config_node *next = node->first;
        while (!next && node) {
            next = node->next;
            node = node->parent;
        }
        node = next;
    }
}

struct conversion {
    struct tn_config_reader *reader;
    struct tn_config_node *root;
};

/* 1: what the file returned, 2: the conversion */
static int convert(lua_State *L)
{
    struct conversion *c = lua_touserdata(L, 2);
    lua_settop(L, 1);
    c->root = new_node(L, c->reader);
    set_value(L, c->reader, c->root);
    if (c->root->kind == TN_CONFIG_TABLE) {
        walk(L, c->reader, c->root);
    }
    tell_all(c->reader, c->root);
    return 0;
}

/* ---- the file ---- */

static tn_rc run(struct tn_vm *vm, struct tn_config_reader *r, struct conversion *c,
                 struct tn_err *err)
{
    lua_pushcfunction(vm->lua, add_globals);
    lua_pushlightuserdata(vm->lua, r);
    tn_rc rc = tn_vm_call_loading(vm, 1, 0, err);
    if (rc == TN_OK) {
        rc = tn_vm_load(vm, r->name, NULL, err);
    }
    if (rc == TN_OK) {
        rc = tn_vm_call_loading(vm, 0, 1, err);
    }
    if (rc == TN_OK) {
        lua_pushcfunction(vm->lua, convert);
        lua_insert(vm->lua, -2);
        lua_pushlightuserdata(vm->lua, c);
        rc = tn_vm_call_loading(vm, 2, 0, err);
    }
    return rc;
}

tn_rc tn_config_tree(struct tn_config_reader *r, struct tn_config_node **root, struct tn_err *err)
{
    struct tn_io_posix files;
    void *memory = NULL;
    struct conversion c = {.reader = r};
    *root = NULL;
    tn_rc rc = tn_arena_need(&r->scratch, sizeof(struct tn_vm), "Lua", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_vm *vm = memory;
    rc = tn_io_posix_open(&files, r->folder[0] ? r->folder : "/", err);
    if (rc != TN_OK) {
        return rc;
    }
    uint64_t size;
    rc = files.io.vtable->stat(&files.io, r->name, &size, err); /* else it is Lua's error */
    struct tn_vm_spec spec = {.memory = r->vm_memory, .size = r->vm_size, .io = &files.io};
    if (rc == TN_OK) {
        rc = tn_vm_open(vm, &spec, err);
    }
    if (rc == TN_OK) {
        rc = run(vm, r, &c, err);
        if (rc == TN_INVALID) { /* what the person wrote */
            tn_config_wrong(r, NULL, "%s", err->text);
            c.root = NULL;
            rc = TN_OK;
        }
        tn_vm_close(vm);
    }
    tn_io_posix_close(&files);
    *root = rc == TN_OK ? c.root : NULL;
    return rc;
}
