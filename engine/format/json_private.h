/* json_private: what the files of json.h have in common.
 *
 *     json.c         a text through cJSON, whose long integers are quoted before
 *     json_record.c  records out of what it gives, and written
 */
#pragma once

#include "format/json.h"

enum { TN_JSON_DIGITS_EXACT = 15 }; /* of a decimal integer that a double surely holds */
