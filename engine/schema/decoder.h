/* decoder: what reading a stored schema and reading a person's have in common. Private to schema.c
 * and schema_build.c.
 *
 * A function that fails leaves the reason in `err` and the place in `spot`; its caller puts the
 * place in front, as a JSON path or as a line.
 */
#pragma once

#include "schema/schema.h"

struct cJSON;

/* Where in a document something is wrong: member[index].part. */
struct tn_spot {
    const char *member;
    int64_t index;    /* -1: not in an array */
    const char *part; /* or NULL */
};

struct tn_schema_decoder {
    struct tn_arena *arena;
    struct tn_schema *schema;
    struct tn_err *err;
    tn_rc bad; /* CORRUPT for a stored file, INVALID for a person's */
    struct tn_spot spot;
};

struct tn_names {
    const char **items;
    uint32_t count;
};

/* Parses the document; nothing of it stays in the arena. */
TN_MUST_USE tn_rc tn_schema_decoder_open(struct tn_bytes json, struct tn_arena *arena,
                                         struct cJSON **root, struct tn_err *err);

void tn_schema_decoder_look(struct tn_schema_decoder *d, const char *member, int64_t index,
                            const char *part);
tn_rc tn_schema_decoder_wrong(struct tn_schema_decoder *d, const char *why); /* d->bad */
TN_MUST_USE tn_rc tn_schema_decoder_need(struct tn_schema_decoder *d, size_t size, void **out);

TN_MUST_USE tn_rc tn_schema_decoder_number(struct tn_schema_decoder *d, const struct cJSON *node,
                                           int64_t low, int64_t high, int64_t *out);
/* `out` is NULL where the node is. */
TN_MUST_USE tn_rc tn_schema_decoder_text(struct tn_schema_decoder *d, const struct cJSON *node,
                                         const char **out);
/* An array of names; none where `node` is NULL. */
TN_MUST_USE tn_rc tn_schema_decoder_names(struct tn_schema_decoder *d, const struct cJSON *node,
                                          const char *member, struct tn_names *names);
/* Fills the schema's options, and leaves room for two more. */
TN_MUST_USE tn_rc tn_schema_decoder_options(struct tn_schema_decoder *d, const struct cJSON *node);
/* Takes the schema's fields, none filled yet. */
TN_MUST_USE tn_rc tn_schema_decoder_begin_fields(struct tn_schema_decoder *d,
                                                 const struct cJSON *node);
/* All of a field but its id; the spot must stand on the field. */
TN_MUST_USE tn_rc tn_schema_decoder_field(struct tn_schema_decoder *d, const struct cJSON *object,
                                          struct tn_field *field);

/* The columns of these names: there, not nested, none twice. */
TN_MUST_USE tn_rc tn_schema_decoder_keys(struct tn_schema_decoder *d, const char *member,
                                         struct tn_names names, struct tn_columns *columns);
TN_MUST_USE tn_rc tn_schema_decoder_trim_keys(struct tn_schema_decoder *d);
