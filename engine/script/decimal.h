/* decimal: `tarn.decimal`, what a DECIMAL is in a script: an exact number of up to 38 digits.
 *
 *     tarn.decimal("19.99") * 3 == tarn.decimal("59.97")
 *
 * + and - keep the larger scale, * adds them; an integer may stand on either side, a float may not.
 * A result of more than 38 digits is an error.
 */
#pragma once

#include <stdbool.h>

#include "schema/value.h"

struct lua_State;

struct tn_script_decimal {
    struct tn_i128 unscaled;
    uint32_t scale; /* 0..38 */
};

void tn_script_decimal_push(struct lua_State *L, struct tn_script_decimal decimal);

/* NULL when the value is none. */
const struct tn_script_decimal *tn_script_decimal_test(struct lua_State *L, int index);

/* The same number at another scale; false when digits would be lost or added beyond 38. */
bool tn_script_decimal_rescale(const struct tn_script_decimal *decimal, uint32_t scale,
                               struct tn_i128 *unscaled);

/* Digits with a point, no exponent. False when it is none of 38 digits. */
bool tn_script_decimal_parse(struct tn_bytes text, struct tn_script_decimal *decimal);

/* Leaves the function `tarn.decimal`; once a state. */
void tn_script_decimal_open(struct lua_State *L);
