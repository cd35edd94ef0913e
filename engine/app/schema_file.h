/* schema_file: a schema that a person wrote as JSON, from a file: for `create` and `test`. */
#pragma once

#include "schema/schema.h"

/* INVALID "FILE:7: field 'temp': type ...". */
TN_MUST_USE tn_rc tn_schema_file_read(const char *path, struct tn_arena *arena,
                                      struct tn_schema *schema, struct tn_err *err);
