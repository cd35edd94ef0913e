/* binrow: Paimon's BinaryRow, the form of keys, partitions and statistics in metadata, and what the
 * bucket hash is taken of.
 *
 *     null bits (header byte 0, padded to 8)  |  8-byte slots  |  variable part, 8-byte padded
 *
 * In manifests a 4-byte big-endian arity stands before it. Source: Paimon, BinaryRow,
 * SerializationUtils.serializeBinaryRow.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

/* Writes one row, fields in order, into a buffer that overflows when it is full. */
struct tn_binrow_writer {
    struct tn_buf *buf;
    size_t start; /* of the row in buf, behind the arity prefix */
    uint32_t arity;
};

void tn_binrow_begin(struct tn_binrow_writer *writer, struct tn_buf *buf, uint32_t arity,
                     bool prefix);
void tn_binrow_null(struct tn_binrow_writer *writer, uint32_t field);
/* `width` 1, 2, 4 or 8 bytes of `bits`, little-endian, the rest of the slot zero. */
void tn_binrow_fixed(struct tn_binrow_writer *writer, uint32_t field, uint64_t bits,
                     uint32_t width);
void tn_binrow_bytes(struct tn_binrow_writer *writer, uint32_t field, struct tn_bytes bytes);
/* TIMESTAMP with more than 3 digits. NULL still takes its 8 bytes. */
void tn_binrow_time(struct tn_binrow_writer *writer, uint32_t field, bool null, int64_t millis,
                    uint32_t nanos);
/* DECIMAL of more than 18 digits: minimal big-endian bytes, at most 16. NULL still takes its 16
 * bytes. */
void tn_binrow_decimal(struct tn_binrow_writer *writer, uint32_t field, bool null,
                       struct tn_bytes big_endian);

/* A view on a row's bytes. */
struct tn_binrow {
    struct tn_bytes bytes; /* without arity */
    uint32_t arity;
};

/* With the arity prefix. CORRUPT when it has not `arity` fields or is too short for its slots. */
TN_MUST_USE tn_rc tn_binrow_open(struct tn_bytes serialized, uint32_t arity, struct tn_binrow *row,
                                 struct tn_err *err);
bool tn_binrow_is_null(const struct tn_binrow *row, uint32_t field);
uint64_t tn_binrow_slot(const struct tn_binrow *row, uint32_t field);
/* False when offset and length leave the row. */
bool tn_binrow_get_bytes(const struct tn_binrow *row, uint32_t field, struct tn_bytes *bytes);
bool tn_binrow_get_time(const struct tn_binrow *row, uint32_t field, int64_t *millis,
                        uint32_t *nanos);
bool tn_binrow_get_decimal(const struct tn_binrow *row, uint32_t field,
                           struct tn_bytes *big_endian);

/* 12 zero bytes: the row of no fields, with its arity. */
extern const struct tn_bytes tn_binrow_empty;
