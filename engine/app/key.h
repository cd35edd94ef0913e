/* key: a row's key as words of the command line, for the verbs that are about one row. */
#pragma once

#include "app/reader.h"

/* The words behind the table's name, one for each primary key, in their order. The values live as
 * long as the reader. INVALID names the key's columns. */
TN_MUST_USE tn_rc tn_key_parse(const struct tn_reader *reader, const struct tn_text_list *words,
                               const struct tn_value **key, struct tn_err *err);
