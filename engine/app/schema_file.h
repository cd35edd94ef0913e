/* schema_file: a schema that a person wrote: JSON from a file, or a column as "NAME TYPE". */
#pragma once

#include "schema/schema.h"

/* INVALID "FILE:7: field 'temp': type ...". */
TN_MUST_USE tn_rc tn_schema_file_read(const char *path, struct tn_arena *arena,
                                      struct tn_schema *schema, struct tn_err *err);

/* "temp DOUBLE NOT NULL": name and type of a field. INVALID "field 'temp': ...". */
TN_MUST_USE tn_rc tn_schema_field_parse(const char *text, struct tn_arena *arena,
                                        struct tn_field *field, struct tn_err *err);
