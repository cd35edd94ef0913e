/* decimal_math: arithmetic of unscaled DECIMAL values.
 *
 * A result is rounded half up to the type's scale. What has more digits than the type allows is no
 * value: the functions give false. Source: Paimon, DecimalUtils, Decimal.fromBigDecimal.
 */
#pragma once

#include "schema/value.h"

/* a + b, a - b and -a. Of types that fit 64 bits only that is checked: a sum may have more digits
 * than its type, as in Paimon. */
bool tn_decimal_add(const struct tn_type *type, struct tn_i128 a, struct tn_i128 b,
                    struct tn_i128 *sum);
bool tn_decimal_subtract(const struct tn_type *type, struct tn_i128 a, struct tn_i128 b,
                         struct tn_i128 *difference);
bool tn_decimal_negate(const struct tn_type *type, struct tn_i128 a, struct tn_i128 *negated);

bool tn_decimal_multiply(const struct tn_type *type, struct tn_i128 a, struct tn_i128 b,
                         struct tn_i128 *product);

enum tn_division {
    TN_DIVISION_OK,
    TN_DIVISION_TOO_LARGE,
    TN_DIVISION_BY_ZERO,
    TN_DIVISION_ENDLESS, /* no finite number of digits is the quotient: 1/3 */
};
enum tn_division tn_decimal_divide(const struct tn_type *type, struct tn_i128 a, struct tn_i128 b,
                                   struct tn_i128 *quotient);
