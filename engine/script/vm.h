/* vm: one Lua state on a fixed piece of memory, which no script can get out of.
 *
 * A state belongs to one script on one worker. It has what lua.c gives less io, os, debug, package,
 * coroutine, load and dofile (sandbox.h); it takes no memory but its own, and each call into it has
 * a budget of instructions and of bytes allocated. Budgets count, they never look at a clock, so
 * the same call is stopped at the same place in every run. C functions that loop pay for it from
 * the same budget. What stops a call can't be caught by it: `pcall` passes it on.
 *
 *     rc = tn_vm_open(&vm, &spec, err);
 *     lua_rawgeti(vm.lua, ...function...); lua_push...(arguments);
 *     rc = tn_vm_call(&vm, 2, 1, err);        INVALID "fold.lua:12: attempt to ..."
 *
 * The engine enters Lua by tn_vm_call only: no longjmp crosses its frames.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/heap.h"
#include "io/io.h"
#include "script/pattern.h"

struct lua_State;

struct tn_vm_limits {
    uint32_t instructions;      /* a call of a handler */
    uint32_t instructions_load; /* loading a file; each case of its m.test */
    uint64_t bytes;             /* allocated in one call, given back or not */
    uint32_t text_size;         /* of a text that a library function makes or searches */
    uint32_t source_size;       /* of a script, or of a file that it requires */
};
extern const struct tn_vm_limits tn_vm_limits_default;

enum {
    TN_VM_SIZE_MIN = 96 * 1024, /* the libraries take 40 KB (measured), an empty script the rest */
    TN_VM_SIZE = 640 * 1024,    /* what the board gives a state; a guess */
    TN_VM_DEPTH_MAX = 180,      /* calls inside calls: Lua's C stack ends at 200 */
    TN_VM_DEPTH_LIBRARY_MAX = 100, /* the same where a library function is called: its frame may
                                      be 2 KB, and scripts can make it call itself */
    TN_VM_STACK_SIZE = 192 * 1024, /* of the C stack, that a call may take (measured: 160 KB) */
};

/* `level` is error, warn, info or debug. */
typedef void tn_vm_log_fn(void *user, const char *level, struct tn_bytes text);

struct tn_vm_spec {
    void *memory; /* all that the state may ever use, until tn_vm_close */
    size_t size;
    struct tn_io *io; /* where `require` looks for files: io's root is the script's folder */
    uint64_t seed;    /* of math.random */
    const struct tn_vm_limits *limits; /* NULL: the default */
    tn_vm_log_fn *log;                 /* NULL: nobody listens */
    void *user;
};

enum { TN_VM_PLACE_SIZE = 96 };

/* A file as it was loaded, in the state's memory: whatever its path has by now, this is what runs.
 */
struct tn_vm_text {
    struct tn_vm_text *next;
    const char *path;
    struct tn_bytes bytes;
};

struct tn_vm {
    struct tn_vm_spec spec;
    struct tn_vm_limits limits;
    struct tn_heap heap;
    struct tn_vm_text *texts; /* the script, then what it requires */
    struct lua_State *lua;
    int64_t instructions_left;
    int64_t bytes_left;
    bool running;
    bool loading;                 /* require may read files only then */
    const char *stopped;          /* why this call may not go on, or NULL */
    const char *call_place;       /* for failures outside of any script's function; or NULL */
    char place[TN_VM_PLACE_SIZE]; /* "fold.lua:12" of the newest failure, "" when unknown */
    struct tn_matcher matcher;    /* used within one match, never across a call */
};

/* Makes the state and its libraries. INVALID when the memory is too small. */
TN_MUST_USE tn_rc tn_vm_open(struct tn_vm *vm, const struct tn_vm_spec *spec, struct tn_err *err);

/* Forgets the state with all that is in it. */
void tn_vm_close(struct tn_vm *vm);

/* Calls the function below `arguments` values on the stack, with a fresh budget. OK: `results`
 * values are there instead. INVALID: nothing is there, and `err` says script:line and reason; the
 * state can be used again. */
TN_MUST_USE tn_rc tn_vm_call(struct tn_vm *vm, int arguments, int results, struct tn_err *err);
/* The same with the budget of a load. */
TN_MUST_USE tn_rc tn_vm_call_loading(struct tn_vm *vm, int arguments, int results,
                                     struct tn_err *err);

/* Reads `path` and leaves its function, or nothing when it fails. `digest` (NULL: not wanted) is
 * the SHA-256 of its text. Bytecode is refused. */
TN_MUST_USE tn_rc tn_vm_load(struct tn_vm *vm, const char *path, unsigned char digest[32],
                             struct tn_err *err);

/* Bytes of live values, garbage included until it is collected; `collect` does that first. */
size_t tn_vm_used(struct tn_vm *vm, bool collect);

/* ---- for C functions that scripts call; they leave by a Lua error ---- */

struct tn_vm *tn_vm_of(struct lua_State *L);

/* Pushes the function of a file of the script's folder; `digest` may be NULL. */
void tn_vm_push_file(struct lua_State *L, const char *path, unsigned char *digest);

/* Pushes the function of a text that runs in the sandbox, called `name` in errors. */
void tn_vm_push_chunk(struct lua_State *L, struct tn_bytes text, const char *name);

/* Takes `cost` instructions from the call's budget. */
void tn_vm_charge(struct lua_State *L, uint64_t cost);

/* Leaves the call when more than `most` calls are under way. */
void tn_vm_check_depth(struct lua_State *L, int most);

/* Notes why the call may not go on, and leaves it. `reason` is static. */
int tn_vm_stop(struct lua_State *L, const char *reason);
