/* row: a packed row in a script's hands.
 *
 * A handle is one userdata that is pointed at a packed row (schema/row.h) before a call. Reading a
 * column decodes it; the first assignment copies the row into the handle's own memory, and that
 * copy is a packed row at any time: nothing has to be packed at the end. So a merge of numbers
 * makes no garbage. A handle is good during its call: what is to stay is copied with row:copy().
 *
 *     row.temp         the value; nil is NULL; a misspelt name is an error with the nearest
 *     row.temp = 3     a value that doesn't fit its column is an error with the reason
 *     pairs(row)       columns that are not NULL, in their order
 *
 * What values are in a script (value.c):
 *
 *     TINYINT .. BIGINT   integer; a float that is whole will do
 *     FLOAT, DOUBLE       float; an integer that is exact as one. A FLOAT takes the nearest
 *     BOOLEAN             boolean
 *     DECIMAL             tarn.decimal (decimal.h); takes integers, text, and floats whose shortest
 *                         digits fit
 *     TIMESTAMP(p)        integer: ms to p = 3, us to 6, ns above; takes the column's text
 *     DATE, TIME          integer: days since 1970, ms of the day; take the column's text
 *     texts and bytes     string
 *
 * All functions that take a lua_State raise Lua errors and are called inside a tn_vm_call.
 */
#pragma once

#include "schema/row.h"

struct lua_State;

struct tn_script_shape {
    const struct tn_row_layout *layout;
    struct tn_row blank; /* all NULL */
    const char **names;  /* by column: Lua's own texts, so that most look-ups compare pointers */
    uint16_t *places;    /* open addressing: column + 1 */
    uint32_t place_mask;
    uint32_t row_size_max; /* bytes; 0: no limit but the state's memory */
};

struct tn_script_row {
    struct tn_script_shape *shape;
    struct tn_row row; /* what is read */
    unsigned char *own;
    uint32_t own_size; /* room at `own` */
};

/* Makes the shape of a layout, which must outlive the state; once a state. It lives in the state.
 */
struct tn_script_shape *tn_script_shape_open(struct lua_State *L,
                                             const struct tn_row_layout *layout,
                                             uint32_t row_size_max);

/* Pushes a new handle that points at the blank row. */
struct tn_script_row *tn_script_row_push(struct lua_State *L, struct tn_script_shape *shape);

static inline void tn_script_row_point(struct tn_script_row *handle, struct tn_row row)
{
    handle->row = row;
}

/* NULL when the value is no handle. */
struct tn_script_row *tn_script_row_test(struct lua_State *L, int index);

/* The column of a name, or an error that names the nearest. `index` holds the name. */
uint32_t tn_script_row_column(struct lua_State *L, const struct tn_script_shape *shape, int index);

void tn_script_row_get(struct lua_State *L, const struct tn_script_row *handle, uint32_t column);
/* `self` is the stack index of the handle, here and below. */
void tn_script_row_set(struct lua_State *L, struct tn_script_row *handle, int self, uint32_t column,
                       int index);

/* The handle gets what the table at `index` says; other columns are NULL. */
void tn_script_row_fill(struct lua_State *L, struct tn_script_row *handle, int self, int index);

/* Copies columns of another row of the same shape where the handle has NULL. */
void tn_script_row_keep(struct lua_State *L, struct tn_script_row *handle, int self,
                        struct tn_row from, struct tn_columns columns);

/* ---- value.c ---- */

/* Pushes a value of a column's type. */
void tn_script_value_push(struct lua_State *L, const struct tn_type *type,
                          const struct tn_value *value);

/* The Lua value at `index` as one of the column's type; bytes point into it. Raises "column 'n'
 * (INT): 2.5 is no integer". */
void tn_script_value_check(struct lua_State *L, int index, const struct tn_column *column,
                           struct tn_value *value);
