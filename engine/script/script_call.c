#include <lua5.4/lauxlib.h>
#include <lua5.4/lua.h>

#include "base/check.h"
#include "script/json.h"
#include "script/script_private.h"

/* ---- results ---- */

static void push_reference(lua_State *L, int reference)
{
    (void)lua_rawgeti(L, LUA_REGISTRYINDEX, reference);
}

static void check_nulls(lua_State *L, const struct tn_script *script, struct tn_row row,
                        const char *what)
{
    const struct tn_row_layout *layout = script->shape->layout;
    for (uint32_t i = 0; i < layout->column_count; i++) {
        if (!layout->columns[i].type.nullable && tn_row_null(row, i)) {
            (void)luaL_error(L, "%s returned a row whose column '%s' is NULL, but it is NOT NULL",
                             what, layout->columns[i].name);
        }
    }
}

static void check_key(lua_State *L, const struct tn_script *script, struct tn_row row,
                      struct tn_row from, const char *what)
{
    const struct tn_row_layout *layout = script->shape->layout;
    for (uint32_t i = 0; i < script->spec.keys.count; i++) {
        struct tn_columns one = {script->spec.keys.index + i, 1};
        if (tn_row_compare(layout, one, row, from) != 0) {
            (void)luaL_error(L, "%s returned a row with another key: column '%s' has changed", what,
                             layout->columns[one.index[0]].name);
        }
    }
}

/* The value on top as a row: a handle, or a table of columns. False when it is neither. */
static bool take_row(lua_State *L, struct tn_script *script, const struct tn_row *key_from,
                     struct tn_row *row)
{
    const struct tn_script_row *handle = lua_touserdata(L, -1);
    if (handle && (handle == script->row || handle == script->now || tn_script_row_test(L, -1))) {
        *row = handle->row;
        return true;
    }
    if (!lua_istable(L, -1)) {
        return false;
    }
    int table = lua_gettop(L);
    push_reference(L, script->made_at);
    tn_script_row_fill(L, script->made, table + 1, table);
    if (key_from) {
        tn_script_row_keep(L, script->made, table + 1, *key_from, script->spec.keys);
    }
    lua_pop(L, 1);
    *row = script->made->row;
    return true;
}

/* What can't have changed needs no check. */
static void check_row(lua_State *L, const struct tn_script *script, struct tn_row row,
                      struct tn_row from, const char *what)
{
    if (row.data != from.data) {
        check_nulls(L, script, row, what);
        check_key(L, script, row, from, what);
    }
}

int tn_script_wrong_result(lua_State *L, const char *what, const char *want)
{
    const char *got = luaL_getmetafield(L, -1, "__name") == LUA_TSTRING
                          ? lua_tostring(L, -1)
                          : lua_typename(L, lua_type(L, -1));
    return luaL_error(L, "%s returned %s%s; want %s", what, lua_isnil(L, -1) ? "" : "a ", got,
                      want);
}

/* ---- merge and retract ---- */

static void push_now(lua_State *L, struct tn_script_merging *m)
{
    if (m->now) {
        tn_script_row_point(m->script->now, *m->now);
        push_reference(L, m->script->now_at);
    } else {
        lua_pushnil(L);
    }
}

static void take_verdict(lua_State *L, struct tn_script_merging *m)
{
    struct tn_script *script = m->script;
    const char *what = tn_script_handler_name(m->handler);
    const void *value = lua_touserdata(L, -1);
    m->verdict = TN_SCRIPT_ROW;
    if (value && value == script->keep) {
        m->verdict = TN_SCRIPT_KEEP;
    } else if (value && value == script->remove) {
        m->verdict = TN_SCRIPT_DELETE;
    } else if (take_row(L, script, &m->row, &m->result)) {
        check_row(L, script, m->result, m->row, what);
    } else {
        (void)tn_script_wrong_result(L, what, "a row, tarn.KEEP or tarn.DELETE");
    }
}

static void push_column(lua_State *L, const struct tn_script_row *handle, uint32_t column)
{
    if (handle) {
        tn_script_row_get(L, handle, column);
    } else {
        lua_pushnil(L);
    }
}

/* A column at a time: each function sees what came, not what another one made of it. */
static void apply_folds(lua_State *L, struct tn_script_merging *m)
{
    struct tn_script *script = m->script;
    struct tn_script_row came = {.shape = script->shape, .row = m->row};
    push_now(L, m);
    push_reference(L, script->row_at);
    int self = lua_gettop(L);
    for (uint32_t i = 0; i < script->fold_count; i++) {
        const struct tn_script_fold *fold = &script->folds[i];
        push_reference(L, fold->function);
        push_column(L, m->now ? script->now : NULL, fold->column);
        push_column(L, &came, fold->column);
        push_reference(L, script->ctx_at);
        lua_call(L, 3, 1);
        tn_script_row_set(L, script->row, self, fold->column, self + 1);
        lua_settop(L, self);
    }
    take_verdict(L, m);
}

void tn_script_apply(lua_State *L, struct tn_script_merging *m)
{
    struct tn_script *script = m->script;
    script->vm->call_place = script->places[m->handler];
    script->calling = m->handler;
    tn_script_state_mark(L, script);
    tn_script_row_point(script->row, m->row);
    if (m->handler == TN_SCRIPT_MERGE && script->folds) {
        apply_folds(L, m);
        return;
    }
    push_reference(L, script->handlers[m->handler]);
    push_now(L, m);
    push_reference(L, script->row_at);
    push_reference(L, script->ctx_at);
    lua_call(L, 3, 1);
    take_verdict(L, m);
}

void tn_script_release(struct tn_script *script)
{
    if (script->shape) {
        tn_script_row_point(script->now, script->shape->blank);
        tn_script_row_point(script->row, script->shape->blank);
        tn_script_row_point(script->made, script->shape->blank);
    }
}

/* A call's result goes to the caller before the handles are let go. */
struct appending {
    struct tn_script_merging merging;
    struct tn_buf *out;
};

static int merge_protected(lua_State *L)
{
    struct appending *a = lua_touserdata(L, 1);
    tn_script_apply(L, &a->merging);
    if (a->merging.verdict == TN_SCRIPT_ROW) {
        tn_buf_append(a->out, a->merging.result.data, a->merging.result.size);
    }
    return 0;
}

static tn_rc run(struct tn_script *script, lua_CFunction function, void *user, struct tn_buf *out,
                 struct tn_err *err)
{
    TN_CHECK(script->shape && !out->overflow);
    size_t size = out->size;
    tn_rc rc = tn_script_check_parked(script, err);
    if (rc != TN_OK) {
        return rc;
    }
    lua_pushcfunction(script->vm->lua, function);
    lua_pushlightuserdata(script->vm->lua, user);
    rc = tn_vm_call(script->vm, 1, 0, err);
    tn_script_release(script);
    if (rc != TN_OK) {
        out->size = size;
        out->overflow = false;
        return tn_script_counted(script, rc, err);
    }
    (void)tn_script_counted(script, rc, err);
    return out->overflow ? tn_err_set(err, TN_AGAIN, 0, "%s: the rows need more than %zu bytes",
                                      script->spec.path, out->capacity)
                         : TN_OK;
}

static tn_rc decide(struct tn_script *script, enum tn_script_handler handler,
                    const struct tn_row *now, struct tn_row row, const struct tn_script_ctx *ctx,
                    enum tn_script_verdict *verdict, struct tn_buf *out, struct tn_err *err)
{
    struct appending a = {{script, handler, now, row, TN_SCRIPT_KEEP, {NULL, 0}}, out};
    script->ctx = *ctx;
    tn_rc rc = run(script, merge_protected, &a, out, err);
    if (rc == TN_OK) {
        *verdict = a.merging.verdict;
    }
    return rc;
}

tn_rc tn_script_merge(struct tn_script *script, const struct tn_row *now, struct tn_row row,
                      const struct tn_script_ctx *ctx, enum tn_script_verdict *verdict,
                      struct tn_buf *out, struct tn_err *err)
{
    TN_CHECK(tn_script_has(script, TN_SCRIPT_MERGE));
    return decide(script, TN_SCRIPT_MERGE, now, row, ctx, verdict, out, err);
}

tn_rc tn_script_retract(struct tn_script *script, const struct tn_row *now, struct tn_row row,
                        const struct tn_script_ctx *ctx, enum tn_script_verdict *verdict,
                        struct tn_buf *out, struct tn_err *err)
{
    if (!tn_script_has(script, TN_SCRIPT_RETRACT)) {
        *verdict = TN_SCRIPT_DELETE;
        return TN_OK;
    }
    return decide(script, TN_SCRIPT_RETRACT, now, row, ctx, verdict, out, err);
}

/* ---- announce ---- */

bool tn_script_show(lua_State *L, struct tn_script *script, struct tn_row row, struct tn_row *image)
{
    script->vm->call_place = script->places[TN_SCRIPT_ANNOUNCE];
    tn_script_state_mark(L, script);
    tn_script_row_point(script->row, row);
    push_reference(L, script->handlers[TN_SCRIPT_ANNOUNCE]);
    push_reference(L, script->row_at);
    lua_call(L, 1, 1);
    if (lua_isnil(L, -1)) {
        return false;
    }
    if (!take_row(L, script, &row, image)) {
        return tn_script_wrong_result(L, "announce", "a row or nil") != 0;
    }
    check_row(L, script, *image, row, "announce");
    return true;
}

struct announcing {
    struct tn_script *script;
    struct tn_row row;
    bool shown;
    struct tn_buf *out;
};

static int announce_protected(lua_State *L)
{
    struct announcing *a = lua_touserdata(L, 1);
    struct tn_row image = {NULL, 0};
    a->shown = tn_script_show(L, a->script, a->row, &image);
    if (a->shown) {
        tn_buf_append(a->out, image.data, image.size);
    }
    return 0;
}

tn_rc tn_script_announce(struct tn_script *script, struct tn_row row, bool *shown,
                         struct tn_buf *out, struct tn_err *err)
{
    struct announcing a = {script, row, true, out};
    if (!tn_script_has(script, TN_SCRIPT_ANNOUNCE)) {
        tn_buf_append(out, row.data, row.size);
        *shown = true;
        return TN_OK;
    }
    tn_rc rc = run(script, announce_protected, &a, out, err);
    if (rc == TN_OK) {
        *shown = a.shown;
    }
    return rc;
}

/* ---- map ---- */

/* The row on top is one of a record: NULL gets the column's default, after NOT NULL was looked at,
 * as where records are decoded. */
static struct tn_row with_defaults(lua_State *L, struct tn_script *script, struct tn_row row)
{
    const struct tn_default_row *defaults = &script->spec.defaults;
    struct tn_script_row *handle = lua_touserdata(L, -1);
    if (defaults->columns.count == 0) {
        return row;
    }
    if (handle) {
        lua_pushvalue(L, -1);
    } else {
        push_reference(L, script->made_at);
        handle = script->made;
    }
    tn_script_row_keep(L, handle, lua_gettop(L), defaults->row, defaults->columns);
    lua_pop(L, 1);
    return handle->row;
}

static void each_result(lua_State *L, struct tn_script *script, tn_script_each_fn *each, void *user)
{
    struct tn_row row = {NULL, 0};
    if (!take_row(L, script, NULL, &row)) {
        (void)tn_script_wrong_result(L, "map", "a row, a list of rows or nil");
        return;
    }
    check_nulls(L, script, row, "map");
    each(L, user, with_defaults(L, script, row));
}

void tn_script_map_top(lua_State *L, struct tn_script *script, tn_script_each_fn *each, void *user)
{
    script->vm->call_place = script->places[TN_SCRIPT_MAP];
    push_reference(L, script->handlers[TN_SCRIPT_MAP]);
    lua_insert(L, -3);
    lua_call(L, 2, 1);
    if (lua_isnil(L, -1)) {
        return;
    }
    bool list = lua_istable(L, -1);
    if (list) { /* an empty table is an empty list */
        lua_pushnil(L);
        list = !lua_next(L, -2) || (lua_pop(L, 2), lua_rawlen(L, -1) > 0);
    }
    if (!list) {
        each_result(L, script, each, user);
        return;
    }
    lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
    for (lua_Integer i = 1; i <= count; i++) {
        tn_vm_charge(L, 1);
        (void)lua_rawgeti(L, -1, i);
        each_result(L, script, each, user);
        lua_pop(L, 1);
    }
}

static void push_topic(lua_State *L, const char *topic)
{
    lua_newtable(L);
    for (lua_Integer i = 1; topic; i++) {
        size_t size = strcspn(topic, "/");
        (void)lua_pushlstring(L, topic, size);
        lua_rawseti(L, -2, i);
        topic = topic[size] ? topic + size + 1 : NULL;
    }
}

static void push_meta(lua_State *L, const struct tn_script_meta *meta)
{
    lua_createtable(L, 0, 5);
    push_topic(L, meta->topic);
    lua_setfield(L, -2, "topic");
    lua_pushinteger(L, meta->received_ms);
    lua_setfield(L, -2, "received_ms");
    lua_pushstring(L, meta->clock);
    lua_setfield(L, -2, "clock");
    lua_pushstring(L, meta->source);
    lua_setfield(L, -2, "source");
    lua_pushinteger(L, meta->position);
    lua_setfield(L, -2, "position");
}

struct mapping {
    struct tn_script *script;
    const struct tn_row *row; /* or the record */
    struct tn_bytes record;
    const struct tn_script_meta *meta;
    uint32_t count;
    struct tn_buf *out;
};

static void add_sized(struct tn_buf *out, struct tn_row row)
{
    unsigned char size[4];
    tn_store_u32(size, row.size);
    tn_buf_append(out, size, sizeof size);
    tn_buf_append(out, row.data, row.size);
}

static void add_mapped(lua_State *L, void *user, struct tn_row row)
{
    struct mapping *m = user;
    (void)L;
    add_sized(m->out, row);
    m->count++;
}

static int map_protected(lua_State *L)
{
    struct mapping *m = lua_touserdata(L, 1);
    tn_script_state_mark(L, m->script);
    if (m->row) {
        tn_script_row_point(m->script->row, *m->row);
        push_reference(L, m->script->row_at);
    } else {
        tn_script_json_push(L, m->record);
    }
    push_meta(L, m->meta);
    tn_script_map_top(L, m->script, add_mapped, m);
    return 0;
}

static tn_rc map(struct mapping *m, uint32_t *count, struct tn_err *err)
{
    tn_rc rc = run(m->script, map_protected, m, m->out, err);
    if (rc == TN_OK) {
        *count = m->count;
    } else if (rc != TN_CANCELED) {
        tn_script_state_undo(m->script);
    }
    return rc;
}

tn_rc tn_script_map(struct tn_script *script, struct tn_row row, const struct tn_script_meta *meta,
                    uint32_t *count, struct tn_buf *out, struct tn_err *err)
{
    struct mapping m = {.script = script, .row = &row, .meta = meta, .out = out};
    if (!tn_script_has(script, TN_SCRIPT_MAP)) {
        add_sized(out, row);
        *count = 1;
        return TN_OK;
    }
    return map(&m, count, err);
}

tn_rc tn_script_map_json(struct tn_script *script, struct tn_bytes record,
                         const struct tn_script_meta *meta, uint32_t *count, struct tn_buf *out,
                         struct tn_err *err)
{
    TN_CHECK(tn_script_has(script, TN_SCRIPT_MAP));
    struct mapping m = {.script = script, .record = record, .meta = meta, .out = out};
    return map(&m, count, err);
}

bool tn_script_next_row(struct tn_bytes *rows, struct tn_row *row)
{
    if (rows->size < 4) {
        return false;
    }
    *row = (struct tn_row){rows->data + 4, tn_load_u32(rows->data)};
    *rows = (struct tn_bytes){row->data + row->size, rows->size - 4 - row->size};
    return true;
}
