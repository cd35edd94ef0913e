/* json: documents of a few kilobytes (snapshots, schemas, tags, hints) read with cJSON, and a
 * writer.
 *
 * cJSON keeps numbers as doubles, which loses ids: commitIdentifier is often 9223372036854775807.
 * So integers of more than 15 digits are quoted before parsing, and tn_json_i64 reads both. cJSON's
 * memory is a heap that tn_json_use_heap sets once for the process. What cJSON would misread
 * (control characters, a zero inside a string, more than 64 levels, bytes behind the end) is
 * refused before it sees the text.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/heap.h"

struct cJSON;

/* First call of all, before any thread: cJSON's hooks are process-wide. */
void tn_json_use_heap(struct tn_heap *heap);

/* Parses a whole document. CORRUPT with "at byte N"; AGAIN when the heap is too small ("needs more
 * than N KB"). Duplicate keys: the last counts. `scratch` takes the quoted copy. Free with
 * tn_json_close. */
TN_MUST_USE tn_rc tn_json_open(struct tn_bytes text, struct tn_arena *scratch, struct cJSON **root,
                               struct tn_err *err);
void tn_json_close(struct cJSON *root); /* NULL is fine */

const struct cJSON *tn_json_member(const struct cJSON *object,
                                   const char *key); /* or NULL; JSON null is NULL */

/* An integer, exact; false when the node is none (or a fraction, or out of range). */
bool tn_json_i64(const struct cJSON *node, int64_t *value);

/* The line, from 1, of a byte of `text`: for errors about a file that a person wrote. */
uint32_t tn_json_line_of(struct tn_bytes text, size_t offset);

/* ---- records: one array of members, walked by the reader and by the writer ---- */

enum tn_json_kind { TN_JSON_I64, TN_JSON_I32, TN_JSON_TEXT, TN_JSON_MAP };
enum tn_json_need { TN_JSON_REQUIRED, TN_JSON_OPTIONAL };

struct tn_json_pair {
    const char *key;
    const char *value;
};
struct tn_json_map {
    struct tn_json_pair *pairs;
    uint32_t count;
};
struct tn_json_i64 {
    int64_t value;
    bool present;
};

/* An optional I64 member is a struct tn_json_i64, a required one an int64_t; TEXT is a const char *
 * (NULL when absent); MAP a struct tn_json_map of strings. */
struct tn_json_field {
    const char *key;
    enum tn_json_kind kind;
    enum tn_json_need need;
    uint32_t offset;
};

/* Reads members of `object` into `record` by the table; texts are copied to `arena`. CORRUPT:
 * "$.schemaId: missing". After a failure the record is to be thrown away. */
TN_MUST_USE tn_rc tn_json_read(const struct cJSON *object, const struct tn_json_field *fields,
                               uint32_t count, void *record, struct tn_arena *arena,
                               struct tn_err *err);

/* The same of a whole document. CORRUPT and AGAIN as tn_json_open, too. */
TN_MUST_USE tn_rc tn_json_read_text(struct tn_bytes text, const struct tn_json_field *fields,
                                    uint32_t count, void *record, struct tn_arena *arena,
                                    struct tn_err *err);

/* Appends the object, two blanks of indentation, ` : ` as Java does; absent members are left out.
 */
void tn_json_write(const void *record, const struct tn_json_field *fields, uint32_t count,
                   struct tn_buf *buf);

/* Appends a map of strings, as Java writes one that is a member of the document. */
void tn_json_put_map(struct tn_buf *buf, const struct tn_json_map *map);

/* Appends a JSON string literal with quotes. */
void tn_json_quote(struct tn_buf *buf, const char *text);
