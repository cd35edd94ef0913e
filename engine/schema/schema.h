/* schema: what a table's `schema-N` file says.
 *
 * Read from JSON and written as JSON; the fields of the file are one array (schema.c), walked by
 * both. Everything in a tn_schema lives in the arena it was read into. Source: Paimon,
 * TableSchema, SchemaSerializer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"
#include "schema/row.h"
#include "schema/types.h"

struct tn_field {
    int32_t id;
    const char *name;
    struct tn_type type;
    const char *type_json;   /* nested types: the JSON as it stood, to be written back; else NULL */
    const char *description; /* or NULL */
    const char *default_value; /* or NULL */
};

struct tn_option {
    const char *key;
    const char *value;
};

struct tn_schema {
    int32_t version; /* 3; a file that has none is 1 */
    int64_t id;
    struct tn_field *fields;
    uint32_t field_count;
    int32_t highest_field_id;
    struct tn_columns partition_keys; /* indices into fields */
    struct tn_columns primary_keys;   /* as declared */
    struct tn_columns trimmed_keys;   /* primary keys less partition keys: the key of a file */
    struct tn_option *options;
    uint32_t option_count;
    const char *comment; /* or NULL */
    int64_t time_ms;
};

enum {
    TN_SCHEMA_SIZE_MAX = 1 << 20, /* a guess: 4096 columns with comments */
    TN_SCHEMA_FIELDS_MAX = 4096,
};

/* Decodes a schema file. `err` names the JSON path: "$.fields[3].type: type 'DUOBLE' is unknown;
 * ...". Accepts what pypaimon writes (comment null, extra keys). */
TN_MUST_USE tn_rc tn_schema_decode(struct tn_bytes json, struct tn_arena *arena,
                                   struct tn_schema *schema, struct tn_err *err);

/* Appends the JSON that Java would write. */
void tn_schema_encode(const struct tn_schema *schema, struct tn_buf *buf);

/* What `create` was asked for: a user's JSON (`fields` [`name`, `type`, `description`,
 * `defaultValue`], `primaryKeys`, `partitionKeys`, `options`, `comment`) becomes schema 0: ids
 * given, key columns NOT NULL. Line numbers in `err`: "7: field 'temp': type ...". */
TN_MUST_USE tn_rc tn_schema_from_user(struct tn_bytes json, struct tn_arena *arena,
                                      struct tn_schema *schema, struct tn_err *err);

/* The same from parts. Checks what Paimon's SchemaValidation checks of names and keys: at least one
 * field, no duplicate or reserved names (_KEY_..., _SEQUENCE_NUMBER, _VALUE_KIND, ...), keys that
 * exist, partition keys not all of the primary key, no nested key. INVALID names the column. Fills
 * ids, highest_field_id, trimmed_keys and makes key columns NOT NULL. */
TN_MUST_USE tn_rc tn_schema_build(struct tn_schema *schema, const char *const *primary_keys,
                                  uint32_t primary_key_count, const char *const *partition_keys,
                                  uint32_t partition_key_count, struct tn_arena *arena,
                                  struct tn_err *err);

/* Refuses what tarn does not create yet: nested types, timestamps of more than 6 digits and TIME of
 * more than 3 (avro can't hold them), FLOAT and DOUBLE as primary, partition or bucket key, default
 * values that do not parse. UNSUPPORTED or INVALID by column name. */
TN_MUST_USE tn_rc tn_schema_check_create(const struct tn_schema *schema, struct tn_arena *scratch,
                                         struct tn_err *err);

int32_t tn_schema_find(const struct tn_schema *schema, struct tn_bytes name);  /* index or -1 */
const char *tn_schema_option(const struct tn_schema *schema, const char *key); /* value or NULL */

/* The layout of all columns that are not nested, in schema order; `field_of[i]` is the field of
 * column i, `column_of[f]` the column of field f or -1 (either may be NULL). */
TN_MUST_USE tn_rc tn_schema_layout(const struct tn_schema *schema, struct tn_row_layout *layout,
                                   uint32_t **field_of, int32_t **column_of, struct tn_arena *arena,
                                   struct tn_err *err);
