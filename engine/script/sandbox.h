/* sandbox: what a script finds in its state.
 *
 * Globals are read-only, and so are the libraries: a script can't leave anything behind for the
 * next call but in its own upvalues. Reading a global that isn't there is an error, too. Each
 * library function whose work grows with its arguments pays for it (tn_vm_charge).
 *
 *     sandbox.c        globals, base library, budgets of string, table and utf8
 *     sandbox_text.c   find, match, gmatch, gsub, rep
 *     sandbox_tarn.c   the table `tarn`, and `require`
 */
#pragma once

struct lua_State;

/* Builds it all; called once, protected. Leaves nothing on the stack. */
void tn_sandbox_open(struct lua_State *L);

/* Makes the table on top an object that can be read and not written, called `name` in errors. Only
 * what it holds is seen: a missing member is an error with the nearest name. */
void tn_sandbox_freeze(struct lua_State *L, const char *name);

/* Raises what reading a missing member is; the stack has the table and the key. */
int tn_sandbox_missing(struct lua_State *L, const char *of);

/* Private to the parts. */
void tn_sandbox_text(struct lua_State *L); /* puts its functions into the table on top */
void tn_sandbox_tarn(struct lua_State *L); /* leaves the table `tarn` */
int tn_sandbox_require(struct lua_State *L);

/* In the registry: the environment that chunks run in, what was required, and the two words. */
#define TN_SANDBOX_GLOBALS "tarn.globals"
#define TN_SANDBOX_MODULES "tarn.modules"
#define TN_SANDBOX_KEEP    "tarn.KEEP"
#define TN_SANDBOX_DELETE  "tarn.DELETE"
