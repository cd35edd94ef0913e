/* script_private: what the parts of script.h share.
 *
 *     script.c        loading, references, parking
 *     script_call.c   the handlers: arguments, results, checks
 *     script_state.c  what `map` keeps (tarn.state)
 *     upload.c        those that get no row:
 *     uploaded.c
 *     script_case.c   m.test; what it needs from here is in lua/tarn/case.lua
 */
#pragma once

#include "script/script.h"

struct tn_script_fold {
    uint32_t column;
    int function; /* reference */
};

/* One call of merge or retract. */
struct tn_script_merging {
    struct tn_script *script;
    enum tn_script_handler handler;
    const struct tn_row *now;
    struct tn_row row;
    enum tn_script_verdict verdict;
    struct tn_row result; /* good until the handles are used again */
};

/* Each runs inside a tn_vm_call, and raises what is wrong. */
void tn_script_apply(struct lua_State *L, struct tn_script_merging *merging);
/* The image is in `*image`; false when there is none. */
bool tn_script_show(struct lua_State *L, struct tn_script *script, struct tn_row row,
                    struct tn_row *image);
/* The arguments of `map` are on top, two of them. What it returned becomes a list of rows: calls
 * `each` for each, with the handle's index on the stack. */
typedef void tn_script_each_fn(struct lua_State *L, void *user, struct tn_row row);
void tn_script_map_top(struct lua_State *L, struct tn_script *script, tn_script_each_fn *each,
                       void *user);

/* Raises that a handler's result, on top, is none: "merge returned a number; want ...". */
int tn_script_wrong_result(struct lua_State *L, const char *what, const char *want);

/* Raises that there is no such member `of` something, with the nearest. */
void tn_script_check_name(struct lua_State *L, const char *of, const char *name,
                          const char *const *names, uint32_t count);
/* A key for such a message: a text, or the name of its type. */
const char *tn_script_key_at(struct lua_State *L, int index);

/* Of a case: (state or nil) -> what `upload` answered, which is right. Upvalue 1: the script. */
int tn_script_upload_case(struct lua_State *L);
/* Likewise: (event or nil) -> what `uploaded` answered. */
int tn_script_uploaded_case(struct lua_State *L);

/* The handles forget the rows that they were pointed at. */
void tn_script_release(struct tn_script *script);

/* Counts a call that ended with `rc`. */
tn_rc tn_script_counted(struct tn_script *script, tn_rc rc, const struct tn_err *err);
TN_MUST_USE tn_rc tn_script_check_parked(const struct tn_script *script, struct tn_err *err);

/* It is loaded: which stores there are is known from here on. */
TN_MUST_USE tn_rc tn_script_state_begin(struct tn_script *script, struct tn_err *err);
/* Inside a tn_vm_call, before a handler is called: what it writes can be taken back, and nothing
 * from before: else that would grow from call to call. */
void tn_script_state_mark(struct lua_State *L, const struct tn_script *script);
/* Inside one, too: what was written since then is taken back. */
void tn_script_state_take_back(struct lua_State *L, const struct tn_script *script);
/* That call, of `map`, failed, so it changed no store. */
void tn_script_state_undo(struct tn_script *script);
