#include "script/row.h"

#include <lua5.4/lauxlib.h>
#include <lua5.4/lua.h>
#include <string.h>

#include "base/check.h"
#include "script/vm.h"

static const char metatable[] = "tarn.row";

enum { OWN_SIZE_MIN = 128, NAMES_LOOKED_AT = 128 };

/* ---- shapes ---- */

static uint32_t place_of(const struct tn_script_shape *shape, const char *name)
{
    return (uint32_t)((uintptr_t)name >> 4 ^ (uintptr_t)name >> 12) & shape->place_mask;
}

static void intern(lua_State *L, struct tn_script_shape *shape, int anchor)
{
    for (uint32_t i = 0; i < shape->layout->column_count; i++) {
        shape->names[i] = lua_pushstring(L, shape->layout->columns[i].name);
        lua_rawseti(L, anchor, (lua_Integer)i + 1); /* the pointer is good while it is held */
        uint32_t at = place_of(shape, shape->names[i]);
        while (shape->places[at] != 0) {
            at = (at + 1) & shape->place_mask;
        }
        shape->places[at] = (uint16_t)(i + 1);
    }
}

static void blank(struct tn_script_shape *shape, unsigned char *data)
{
    const struct tn_row_layout *layout = shape->layout;
    memset(data, 0, layout->fixed_size);
    for (uint32_t i = 0; i < layout->column_count; i++) {
        data[i / 8] = (unsigned char)(data[i / 8] | 1U << (i % 8));
        if (layout->columns[i].slot == TN_SLOT_BYTES) {
            tn_store_u32(data + layout->columns[i].offset, layout->fixed_size);
        }
    }
    shape->blank = (struct tn_row){data, layout->fixed_size};
}

static int row_index(lua_State *L);
static int row_newindex(lua_State *L);
static int row_pairs(lua_State *L);
static int row_text(lua_State *L);

static void open_metatable(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__index", row_index},
                                    {"__newindex", row_newindex},
                                    {"__pairs", row_pairs},
                                    {"__tostring", row_text},
                                    {NULL, NULL}};
    (void)luaL_newmetatable(L, metatable);
    luaL_setfuncs(L, meta, 0);
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}

/* Keeps the userdata on top for as long as the state lives. */
static void *keep(lua_State *L, void *memory)
{
    (void)luaL_ref(L, LUA_REGISTRYINDEX);
    return memory;
}

struct tn_script_shape *tn_script_shape_open(lua_State *L, const struct tn_row_layout *layout,
                                             uint32_t row_size_max)
{
    uint32_t count = layout->column_count;
    uint32_t places = 8;
    while (places < 2 * count) {
        places *= 2;
    }
    struct tn_script_shape *shape = keep(L, lua_newuserdatauv(L, sizeof *shape, 0));
    *shape = (struct tn_script_shape){
        .layout = layout, .place_mask = places - 1, .row_size_max = row_size_max};
    shape->names = keep(L, lua_newuserdatauv(L, (count + 1) * sizeof *shape->names, 0));
    shape->places = keep(L, lua_newuserdatauv(L, places * sizeof *shape->places, 0));
    memset(shape->places, 0, places * sizeof *shape->places);
    blank(shape, keep(L, lua_newuserdatauv(L, layout->fixed_size + 1, 0)));
    lua_createtable(L, (int)count, 0);
    intern(L, shape, lua_gettop(L));
    (void)luaL_ref(L, LUA_REGISTRYINDEX);
    open_metatable(L);
    return shape;
}

static int unknown_column(lua_State *L, const struct tn_script_shape *shape, int index)
{
    const char *names[NAMES_LOOKED_AT]; /* of a wide table only so many */
    uint32_t count = 0;
    for (; count < shape->layout->column_count && count < NAMES_LOOKED_AT; count++) {
        names[count] = shape->layout->columns[count].name;
    }
    const char *word =
        lua_type(L, index) == LUA_TSTRING ? lua_tostring(L, index) : luaL_tolstring(L, index, NULL);
    const char *near = tn_nearest_name(tn_bytes_of(word), names, count);
    return near ? luaL_error(L, "there is no column '%s'; did you mean '%s'?", word, near)
                : luaL_error(L, "there is no column '%s'", word);
}

/* A short text is one object in a state: its pointer tells the column. -1: none. */
static int32_t find_column(lua_State *L, const struct tn_script_shape *shape, int index)
{
    if (lua_type(L, index) != LUA_TSTRING) {
        return -1;
    }
    size_t size;
    const char *name = lua_tolstring(L, index, &size);
    uint32_t at = place_of(shape, name);
    while (shape->places[at] != 0) {
        if (shape->names[shape->places[at] - 1] == name) {
            return shape->places[at] - 1;
        }
        at = (at + 1) & shape->place_mask;
    }
    return tn_row_layout_find(shape->layout, (struct tn_bytes){(const unsigned char *)name, size});
}

uint32_t tn_script_row_column(lua_State *L, const struct tn_script_shape *shape, int index)
{
    int32_t column = find_column(L, shape, index);
    return (uint32_t)(column >= 0 ? column : unknown_column(L, shape, index));
}

/* ---- reading ---- */

void tn_script_row_get(lua_State *L, const struct tn_script_row *handle, uint32_t column)
{
    const struct tn_row_layout *layout = handle->shape->layout;
    struct tn_value value;
    tn_row_get(layout, handle->row, column, &value);
    tn_script_value_push(L, &layout->columns[column].type, &value);
}

/* ---- writing ---- */

/* The row in the handle's own memory, with room for `more` bytes. */
static void make_own(lua_State *L, struct tn_script_row *handle, int self, uint32_t more)
{
    uint64_t need = (uint64_t)handle->row.size + more;
    uint32_t most = handle->shape->row_size_max;
    if (most > 0 && need > most) {
        (void)luaL_error(L, "a row of %I bytes; at most %I", (lua_Integer)need, (lua_Integer)most);
    }
    if (need > handle->own_size) {
        uint64_t size = need < OWN_SIZE_MIN ? OWN_SIZE_MIN : need + need / 4;
        unsigned char *larger = lua_newuserdatauv(L, (size_t)size, 0);
        memcpy(larger, handle->row.data, handle->row.size);
        handle->own = larger;
        handle->own_size = (uint32_t)size;
        handle->row.data = larger;
        (void)lua_setiuservalue(L, self, 1);
    } else if (handle->row.data != handle->own) {
        TN_CHECK(handle->own);
        memcpy(handle->own, handle->row.data, handle->row.size);
        handle->row.data = handle->own;
    }
}

/* Puts bytes where a column's are, and moves what stands behind them. */
static void splice(struct tn_script_row *handle, uint32_t column, struct tn_bytes bytes)
{
    const struct tn_row_layout *layout = handle->shape->layout;
    struct tn_bytes was = tn_row_bytes(layout, handle->row, column);
    unsigned char *at = handle->own + (was.data - handle->row.data);
    size_t behind = (size_t)(handle->own + handle->row.size - (at + was.size));
    memmove(at + bytes.size, at + was.size, behind);
    if (bytes.size > 0) {
        memcpy(at, bytes.data, bytes.size);
    }
    uint32_t shift = (uint32_t)bytes.size - (uint32_t)was.size; /* modulo 2^32 */
    for (uint32_t i = column; i < layout->column_count; i++) {
        if (layout->columns[i].slot == TN_SLOT_BYTES) {
            unsigned char *end = handle->own + layout->columns[i].offset;
            tn_store_u32(end, tn_load_u32(end) + shift);
        }
    }
    handle->row.size += shift;
}

static void put(lua_State *L, struct tn_script_row *handle, int self, uint32_t column,
                const struct tn_value *value)
{
    const struct tn_column *c = &handle->shape->layout->columns[column];
    bool bytes = c->slot == TN_SLOT_BYTES;
    struct tn_bytes text = {NULL, 0};
    if (bytes && !value->null) {
        text = value->as.bytes;
    }
    if (text.size > UINT32_MAX / 2) {
        (void)luaL_error(L, "column '%s': too many bytes", c->name);
    }
    make_own(L, handle, self, (uint32_t)text.size);
    unsigned char *nulls = handle->own + column / 8;
    unsigned bit = 1U << (column % 8);
    *nulls = (unsigned char)(value->null ? *nulls | bit : *nulls & ~bit);
    if (bytes) {
        splice(handle, column, text);
    } else if (value->null) {
        memset(handle->own + c->offset, 0, c->width);
    } else {
        tn_row_store(handle->own + c->offset, (enum tn_slot)c->slot, value);
    }
}

void tn_script_row_set(lua_State *L, struct tn_script_row *handle, int self, uint32_t column,
                       int index)
{
    struct tn_value value;
    tn_script_value_check(L, index, &handle->shape->layout->columns[column], &value);
    put(L, handle, self, column, &value);
}

void tn_script_row_fill(lua_State *L, struct tn_script_row *handle, int self, int index)
{
    handle->row = handle->shape->blank;
    lua_pushnil(L);
    while (lua_next(L, index)) {
        tn_vm_charge(L, 1);
        int top = lua_gettop(L);
        tn_script_row_set(L, handle, self, tn_script_row_column(L, handle->shape, top - 1), top);
        lua_settop(L, top - 1);
    }
}

void tn_script_row_keep(lua_State *L, struct tn_script_row *handle, int self, struct tn_row from,
                        struct tn_columns columns)
{
    for (uint32_t i = 0; i < columns.count; i++) {
        struct tn_value value;
        if (tn_row_null(handle->row, columns.index[i])) {
            tn_row_get(handle->shape->layout, from, columns.index[i], &value);
            put(L, handle, self, columns.index[i], &value);
        }
    }
}

/* ---- what a script sees. A handle's metatable is out of its reach, so the first argument of
 * __index and __newindex is a handle; others may be called with anything ---- */

static struct tn_script_row *check(lua_State *L, int index)
{
    struct tn_script_row *handle = luaL_checkudata(L, index, metatable);
    return handle;
}

static int row_copy(lua_State *L)
{
    const struct tn_script_row *from = check(L, 1);
    struct tn_script_row *to = tn_script_row_push(L, from->shape);
    to->row = from->row;
    make_own(L, to, lua_gettop(L), 0);
    return 1;
}

static int row_index(lua_State *L)
{
    const struct tn_script_row *handle = lua_touserdata(L, 1);
    int32_t column = find_column(L, handle->shape, 2);
    if (column >= 0) {
        tn_script_row_get(L, handle, (uint32_t)column);
        return 1;
    }
    if (lua_type(L, 2) == LUA_TSTRING && strcmp(lua_tostring(L, 2), "copy") == 0) {
        lua_pushcfunction(L, row_copy);
        return 1;
    }
    return unknown_column(L, handle->shape, 2);
}

static int row_newindex(lua_State *L)
{
    struct tn_script_row *handle = lua_touserdata(L, 1);
    tn_script_row_set(L, handle, 1, tn_script_row_column(L, handle->shape, 2), 3);
    return 0;
}

static int row_next(lua_State *L)
{
    const struct tn_script_row *handle = check(L, 1);
    const struct tn_row_layout *layout = handle->shape->layout;
    uint32_t column = lua_isnil(L, 2) ? 0 : tn_script_row_column(L, handle->shape, 2) + 1;
    while (column < layout->column_count && tn_row_null(handle->row, column)) {
        column++;
    }
    if (column == layout->column_count) {
        return 0;
    }
    lua_pushstring(L, layout->columns[column].name);
    tn_script_row_get(L, handle, column);
    return 2;
}

static int row_pairs(lua_State *L)
{
    (void)check(L, 1);
    lua_pushcfunction(L, row_next);
    lua_pushvalue(L, 1);
    return 2;
}

enum { TEXT_SIZE_MAX = 4096 };

static int row_text(lua_State *L)
{
    const struct tn_script_row *handle = check(L, 1);
    unsigned char *text = lua_newuserdatauv(L, TEXT_SIZE_MAX, 0);
    struct tn_buf buf;
    tn_buf_init(&buf, text, TEXT_SIZE_MAX);
    tn_row_format_json(handle->shape->layout, NULL, handle->row, &buf);
    if (buf.overflow) {
        lua_pushliteral(L, "a long row");
    } else {
        (void)lua_pushlstring(L, (const char *)text, buf.size);
    }
    return 1;
}

struct tn_script_row *tn_script_row_push(lua_State *L, struct tn_script_shape *shape)
{
    struct tn_script_row *handle = lua_newuserdatauv(L, sizeof *handle, 1);
    *handle = (struct tn_script_row){.shape = shape, .row = shape->blank};
    luaL_setmetatable(L, metatable);
    return handle;
}

struct tn_script_row *tn_script_row_test(lua_State *L, int index)
{
    return luaL_testudata(L, index, metatable);
}
