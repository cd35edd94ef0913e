/* types: Paimon's column types, and their text in schema files.
 *
 *     DECIMAL(9, 2)   STRING   TIMESTAMP(3) WITH LOCAL TIME ZONE NOT NULL
 *
 * Nested types are known by kind only: tarn reads tables that have such columns and leaves those
 * columns out; it creates none. Source: Paimon, DataTypeJsonParser.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

enum tn_type_kind {
    TN_TYPE_BOOLEAN,
    TN_TYPE_TINYINT,
    TN_TYPE_SMALLINT,
    TN_TYPE_INT,
    TN_TYPE_BIGINT,
    TN_TYPE_FLOAT,
    TN_TYPE_DOUBLE,
    TN_TYPE_DECIMAL,
    TN_TYPE_CHAR,
    TN_TYPE_VARCHAR, /* STRING is VARCHAR(2147483647) */
    TN_TYPE_BINARY,
    TN_TYPE_VARBINARY, /* BYTES is VARBINARY(2147483647) */
    TN_TYPE_DATE,
    TN_TYPE_TIME,
    TN_TYPE_TIMESTAMP,
    TN_TYPE_TIMESTAMP_LTZ,
    TN_TYPE_ARRAY, /* from here on: known by name, not read */
    TN_TYPE_MAP,
    TN_TYPE_MULTISET,
    TN_TYPE_ROW,
    TN_TYPE_VARIANT,
    TN_TYPE_BLOB,
    TN_TYPE_KIND_COUNT,
};

struct tn_type {
    enum tn_type_kind kind;
    bool nullable;
    uint8_t precision; /* DECIMAL 1..38, TIME 0..9, TIMESTAMP and _LTZ 0..9 */
    uint8_t scale;     /* DECIMAL 0..precision */
    int32_t length;    /* CHAR, VARCHAR, BINARY, VARBINARY: 1..2147483647 */
};

enum { TN_TYPE_TEXT_SIZE = 64, TN_DECIMAL_PRECISION_MAX = 38, TN_LENGTH_MAX = 2147483647 };

/* Parses a type as Paimon's own parser does (any case, INTEGER, DEC, missing parameters,
 * TIMESTAMP_LTZ). INVALID with "type 'DUOBLE' is unknown; did you mean 'DOUBLE'?". */
TN_MUST_USE tn_rc tn_type_parse(struct tn_bytes text, struct tn_type *type, struct tn_err *err);

/* The text that Java writes, with NOT NULL. Returns `text`. */
const char *tn_type_format(const struct tn_type *type, char text[TN_TYPE_TEXT_SIZE]);

const char *tn_type_name(enum tn_type_kind kind); /* "BIGINT" */

static inline bool tn_type_nested(enum tn_type_kind kind)
{
    return kind >= TN_TYPE_ARRAY;
}

static inline bool tn_type_textual(enum tn_type_kind kind)
{
    return kind == TN_TYPE_CHAR || kind == TN_TYPE_VARCHAR;
}

static inline bool tn_type_binary(enum tn_type_kind kind)
{
    return kind == TN_TYPE_BINARY || kind == TN_TYPE_VARBINARY;
}

static inline bool tn_type_integer(enum tn_type_kind kind)
{
    return kind >= TN_TYPE_TINYINT && kind <= TN_TYPE_BIGINT;
}

/* The name among `names` that is nearest to `word` (case-insensitive edit distance), or NULL when
 * none is near enough to be meant. Used for every "did you mean". */
const char *tn_nearest_name(struct tn_bytes word, const char *const *names, uint32_t count);
