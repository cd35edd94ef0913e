/* json: a record of JSON as Lua values, for `map`, which sees records before they are rows.
 *
 * Integers are exact: those of more than 64 bits become tarn.decimal. Other numbers are floats,
 * null is nil, an array a list. A repeated key is an error, as in every decoder.
 */
#pragma once

#include "base/bytes.h"

struct lua_State;

enum { TN_SCRIPT_JSON_DEPTH_MAX = 32 };

/* Pushes the value; raises "JSON, byte 17: ..." */
void tn_script_json_push(struct lua_State *L, struct tn_bytes text);
