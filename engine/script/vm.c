#include "script/vm.h"

#include <inttypes.h>
#include <lua5.4/lauxlib.h>
#include <lua5.4/lua.h>
#include <stdio.h>

#include "base/check.h"
#include "base/hash.h"
#include "script/sandbox.h"

const struct tn_vm_limits tn_vm_limits_default = {
    .instructions = 200 * 1000,       /* a guess: a merge takes some hundred */
    .instructions_load = 5000 * 1000, /* likewise for the tests in a script */
    .bytes = 16 * 1024 * 1024,        /* a guess: some ms of memory traffic */
    .text_size = 64 * 1024,
    .source_size = 128 * 1024,
};

enum {
    HOOK_STEP = 1000,       /* instructions between two looks at the budget */
    BLOCK_PART = 4,         /* no block is larger than the memory by this */
    LEVELS_LOOKED_AT = 220, /* of the call stack, for a place: above what Lua nests */
    GC_PAUSE = 120,         /* per cent: collect early, for memory is short */
    STACK_SLOTS = 1,        /* at the bottom of the stack: the message handler */
};

struct tn_vm *tn_vm_of(lua_State *L)
{
    struct tn_vm *vm;
    memcpy(&vm, lua_getextraspace(L), sizeof(struct tn_vm *));
    return vm;
}

/* ---- places ---- */

/* Whether a chunk is a file of the script's, rather than of tarn's own library. */
static bool is_script(const lua_Debug *ar)
{
    return ar->source[0] == '@' && ar->currentline > 0;
}

/* The line of the script that is running; library and C functions are passed over. Allocates
 * nothing. */
static void note_place(struct tn_vm *vm, lua_State *L)
{
    lua_Debug ar;
    for (int level = 0; level < LEVELS_LOOKED_AT && lua_getstack(L, level, &ar); level++) {
        if (lua_getinfo(L, "Sl", &ar) && is_script(&ar)) {
            (void)snprintf(vm->place, sizeof vm->place, "%s:%d", ar.short_src, ar.currentline);
            return;
        }
    }
    if (vm->call_place) {
        (void)snprintf(vm->place, sizeof vm->place, "%s", vm->call_place);
    }
}

/* ---- memory ---- */

static bool may_grow(struct tn_vm *vm, size_t size, size_t more)
{
    if (!vm->running) {
        return true;
    }
    if (vm->bytes_left < (int64_t)more) {
        vm->bytes_left = 0;
        vm->stopped = "its budget of allocated bytes is used up";
        return false;
    }
    vm->bytes_left -= (int64_t)more;
    return size <= vm->spec.size / BLOCK_PART;
}

static void *allocate(void *user, void *block, size_t size_old, size_t size)
{
    struct tn_vm *vm = user;
    if (size == 0) {
        tn_heap_give(&vm->heap, block);
        return NULL;
    }
    size_old = block ? size_old : 0; /* else it is a kind of value */
    if (size <= size_old) {
        void *less = tn_heap_resize(&vm->heap, block, size);
        return less ? less : block; /* Lua can't bear that this fails */
    }
    void *more =
        may_grow(vm, size, size - size_old) ? tn_heap_resize(&vm->heap, block, size) : NULL;
    if (!more && vm->running) {
        note_place(vm, vm->lua);
    }
    return more;
}

/* ---- budgets ---- */

int tn_vm_stop(lua_State *L, const char *reason)
{
    struct tn_vm *vm = tn_vm_of(L);
    note_place(vm, L);
    vm->stopped = reason;
    vm->instructions_left = 0;
    lua_pushliteral(L, "stopped");
    return lua_error(L);
}

void tn_vm_charge(lua_State *L, uint64_t cost)
{
    struct tn_vm *vm = tn_vm_of(L);
    if (vm->running && cost >= (uint64_t)(vm->instructions_left > 0 ? vm->instructions_left : 0)) {
        (void)tn_vm_stop(L, "its budget of instructions is used up");
    }
    vm->instructions_left -= (int64_t)cost;
}

void tn_vm_check_depth(lua_State *L, int most)
{
    lua_Debug deep;
    if (lua_getstack(L, most, &deep)) {
        note_place(tn_vm_of(L), L);
        (void)luaL_error(L, "calls are nested more than %d deep", most);
    }
}

/* Lua doesn't call hooks in a hook, in a finalizer, or in the handler of an error in a hook: there
 * are no finalizers here (sandbox.c), and no handlers but ours. */
static void look(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    tn_vm_charge(L, HOOK_STEP);
    tn_vm_check_depth(L, TN_VM_DEPTH_MAX);
}

/* ---- calls ---- */

/* Runs where the error is raised: the stack still tells the line. */
static int note_error(lua_State *L)
{
    struct tn_vm *vm = tn_vm_of(L);
    if (!vm->stopped) {
        note_place(vm, L);
    }
    return 1;
}

static bool begins_with_place(const struct tn_vm *vm, const char *text)
{
    const char *colon = strrchr(vm->place, ':');
    size_t size = colon ? (size_t)(colon - vm->place) : strlen(vm->place);
    return strncmp(text, vm->place, size) == 0 && text[size] == ':';
}

static void describe(const struct tn_vm *vm, int status, char *text, size_t size)
{
    lua_State *L = vm->lua;
    if (vm->stopped) {
        (void)snprintf(text, size, "%s", vm->stopped);
    } else if (status == LUA_ERRMEM) {
        (void)snprintf(text, size, "not enough memory: a state has %zu bytes, a block at most %zu",
                       vm->spec.size, vm->spec.size / BLOCK_PART);
    } else if (lua_type(L, -1) == LUA_TSTRING) {
        (void)snprintf(text, size, "%s", lua_tostring(L, -1));
    } else {
        (void)snprintf(text, size, "the error is a %s, not a text", luaL_typename(L, -1));
    }
}

static tn_rc failure(const struct tn_vm *vm, int status, struct tn_err *err)
{
    char text[TN_ERR_TEXT_SIZE];
    describe(vm, status, text, sizeof text);
    bool placed = vm->place[0] == 0 || begins_with_place(vm, text);
    return tn_err_set(err, TN_INVALID, 0, "%s%s%s", placed ? "" : vm->place, placed ? "" : ": ",
                      text);
}

static tn_rc call(struct tn_vm *vm, int arguments, int results, uint32_t instructions,
                  struct tn_err *err)
{
    lua_State *L = vm->lua;
    int base = lua_gettop(L) - arguments - 1;
    TN_CHECK(!vm->running && base >= STACK_SLOTS);
    vm->instructions_left = instructions;
    vm->bytes_left = (int64_t)vm->limits.bytes;
    vm->stopped = NULL;
    vm->call_place = NULL;
    vm->place[0] = 0;
    lua_sethook(L, look, LUA_MASKCOUNT, HOOK_STEP);
    vm->running = true;
    int status = lua_pcall(L, arguments, results, STACK_SLOTS);
    vm->running = false;
    if (status == LUA_OK && !vm->stopped) {
        return TN_OK;
    }
    tn_rc rc = failure(vm, status, err);
    lua_settop(L, base);
    return rc;
}

tn_rc tn_vm_call(struct tn_vm *vm, int arguments, int results, struct tn_err *err)
{
    return call(vm, arguments, results, vm->limits.instructions, err);
}

tn_rc tn_vm_call_loading(struct tn_vm *vm, int arguments, int results, struct tn_err *err)
{
    vm->loading = true;
    tn_rc rc = call(vm, arguments, results, vm->limits.instructions_load, err);
    vm->loading = false;
    return rc;
}

/* ---- files ---- */

static tn_rc read_into(struct tn_vm *vm, int file, unsigned char *text, uint64_t size,
                       struct tn_err *err)
{
    size_t got = 0;
    tn_rc rc = vm->spec.io->vtable->read(vm->spec.io, file, 0, text, (size_t)size, &got, err);
    if (rc == TN_OK && got != size) {
        return tn_err_set(err, TN_AGAIN, 0, "it changes while it is read");
    }
    return rc;
}

/* Room for a text of so many bytes, behind its path; NULL: there is none. */
static struct tn_vm_text *take_text(struct tn_vm *vm, const char *path, size_t size)
{
    size_t path_size = strlen(path) + 1;
    struct tn_vm_text *text = allocate(vm, NULL, 0, sizeof *text + path_size + size + 1);
    if (text) {
        char *name = (char *)(text + 1);
        memcpy(name, path, path_size);
        *text = (struct tn_vm_text){.path = name,
                                    .bytes = {(const unsigned char *)name + path_size, size}};
    }
    return text;
}

/* Fails as Lua does. */
static struct tn_vm_text *read_text(lua_State *L, const char *path)
{
    struct tn_vm *vm = tn_vm_of(L);
    struct tn_io *io = vm->spec.io;
    struct tn_err err = {0};
    int file = -1;
    uint64_t size = 0;
    tn_rc rc = io ? io->vtable->open(io, path, &file, &size, &err)
                  : tn_err_set(&err, TN_ABSENT, 0, "%s: there are no files here", path);
    if (rc == TN_OK && size > vm->limits.source_size) {
        rc = tn_err_set(&err, TN_INVALID, 0, "%s has %" PRIu64 " bytes, at most %" PRIu32, path,
                        size, vm->limits.source_size);
    }
    struct tn_vm_text *text = NULL;
    if (rc == TN_OK) { /* not lua_newuserdata: it may jump, and the file would stay open */
        (void)lua_gc(L, LUA_GCCOLLECT);
        text = take_text(vm, path, (size_t)size);
        rc = text ? read_into(vm, file, (unsigned char *)text->bytes.data, size, &err)
                  : tn_err_set(&err, TN_AGAIN, 0, "%s: the script doesn't fit its memory", path);
    }
    if (file >= 0) {
        io->vtable->close(io, file);
    }
    if (rc != TN_OK) {
        tn_heap_give(&vm->heap, text);
        lua_pushstring(L, err.text);
        (void)lua_error(L);
    }
    return text;
}

static void keep_text(struct tn_vm *vm, struct tn_vm_text *text)
{
    struct tn_vm_text **end = &vm->texts;
    while (*end) {
        end = &(*end)->next;
    }
    *end = text;
}

static void push_chunk(lua_State *L, int status)
{
    if (status != LUA_OK) {
        (void)lua_error(L);
    }
    lua_getfield(L, LUA_REGISTRYINDEX, TN_SANDBOX_GLOBALS);
    if (!lua_setupvalue(L, -2, 1)) { /* it uses no globals at all */
        lua_pop(L, 1);
    }
}

void tn_vm_push_chunk(lua_State *L, struct tn_bytes text, const char *name)
{
    push_chunk(L, luaL_loadbufferx(L, (const char *)text.data, text.size, name, "t"));
}

void tn_vm_push_file(lua_State *L, const char *path, unsigned char *digest)
{
    struct tn_vm *vm = tn_vm_of(L);
    const char *name = lua_pushfstring(L, "@%s", path);
    struct tn_vm_text *text = read_text(L, path);
    if (digest) {
        tn_hash_sha256(text->bytes, digest);
    }
    int status = luaL_loadbufferx(L, (const char *)text->bytes.data, text->bytes.size, name, "t");
    if (status == LUA_OK) {
        keep_text(vm, text);
    } else {
        tn_heap_give(&vm->heap, text);
    }
    push_chunk(L, status);
    lua_remove(L, -2);
}

struct wanted {
    const char *path;
    unsigned char *digest;
};

static int load_file(lua_State *L)
{
    const struct wanted *wanted = lua_touserdata(L, 1);
    tn_vm_of(L)->call_place = wanted->path;
    tn_vm_push_file(L, wanted->path, wanted->digest);
    return 1;
}

tn_rc tn_vm_load(struct tn_vm *vm, const char *path, unsigned char digest[32], struct tn_err *err)
{
    struct wanted wanted = {.path = path};
    wanted.digest = digest;
    lua_pushcfunction(vm->lua, load_file);
    lua_pushlightuserdata(vm->lua, &wanted);
    return tn_vm_call_loading(vm, 1, 1, err);
}

size_t tn_vm_used(struct tn_vm *vm, bool collect)
{
    if (collect) { /* there are no finalizers, so no Lua code runs in here */
        (void)lua_gc(vm->lua, LUA_GCCOLLECT);
    }
    return vm->heap.used;
}

/* ---- opening ---- */

static int build(lua_State *L)
{
    tn_sandbox_open(L);
    return 0;
}

static int panic(lua_State *L)
{
    (void)L;
    TN_CHECK(!"Lua was entered without protection");
    return 0;
}

tn_rc tn_vm_open(struct tn_vm *vm, const struct tn_vm_spec *spec, struct tn_err *err)
{
    *vm = (struct tn_vm){.spec = *spec,
                         .limits = spec->limits ? *spec->limits : tn_vm_limits_default};
    if (spec->size < TN_VM_SIZE_MIN) {
        return tn_err_set(err, TN_INVALID, 0, "a Lua state needs %d bytes, not %zu", TN_VM_SIZE_MIN,
                          spec->size);
    }
    tn_heap_init(&vm->heap, spec->memory, spec->size, false);
    lua_State *L = lua_newstate(allocate, vm);
    TN_CHECK(L);
    vm->lua = L;
    memcpy(lua_getextraspace(L), &(struct tn_vm *){vm}, sizeof(struct tn_vm *));
    (void)lua_atpanic(L, panic);
    (void)lua_gc(L, LUA_GCINC, GC_PAUSE, 0, 0);
    lua_pushcfunction(L, note_error);
    lua_pushcfunction(L, build);
    tn_rc rc = tn_vm_call_loading(vm, 0, 0, err);
    if (rc != TN_OK) {
        tn_vm_close(vm);
    }
    return rc;
}

void tn_vm_close(struct tn_vm *vm)
{
    if (vm->lua) {
        tn_heap_deinit(&vm->heap);
        vm->lua = NULL;
        vm->texts = NULL;
    }
}
