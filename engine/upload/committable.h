/* committable: what a gateway asks a gather to commit: the files of some of its snapshots, that lie
 * in the lake already, as one small file.
 *
 *     tarn-committable 1 <header> <records> <crc32>     sizes in bytes, of both; hexadecimal
 *     { "table": ..., "schemaId": ..., "user": ..., ... }
 *     manifest entries as they stand in a manifest: data files, behind them changelog files
 *
 * Nothing in it is believed: before its files become part of a table each is held against that
 * table, since one wrong entry would be in the way of all who read.
 */
#pragma once

#include "file/meta.h"
#include "schema/options.h"
#include "schema/schema.h"

enum {
    TN_COMMITTABLE_SIZE_MAX = 256 * 1024, /* some 400 files */
    /* Bytes of a bucket's path in the lake: so a gather can work on what a compaction makes there,
     * too (lake_io.h). */
    TN_COMMITTABLE_FOLDER_MAX = 400,
};

struct tn_committable {
    const char *table;  /* "db.t" */
    int64_t schema_id;  /* the lake's, when it was written; a file says its own */
    const char *user;   /* who committed it at home */
    int64_t identifier; /* of the last commit there */
    int64_t first_id;   /* the snapshots there */
    int64_t last_id;
    int64_t row_count; /* of the data files */
    struct tn_json_i64 watermark;
    const struct tn_entry *added; /* ADD, level 0 */
    uint32_t added_count;
    const struct tn_entry *changelog;
    uint32_t changelog_count;
};

/* Overflows when it is larger than the buffer. */
void tn_committable_encode(const struct tn_committable *committable, struct tn_buf *buf);

/* The same where the entries come one by one: `begin`, tn_entry_encode of as many as `committable`
 * counts, `finish`. */
struct tn_committable_place {
    size_t start; /* in the buffer */
    size_t records;
};
void tn_committable_begin(const struct tn_committable *committable, struct tn_buf *buf,
                          struct tn_committable_place *place);
void tn_committable_finish(const struct tn_committable_place *place, struct tn_buf *buf);

/* Into the arena. `plan` is that of tn_entry_avro_schema. CORRUPT: it is none, or torn;
 * UNSUPPORTED: a later version; AGAIN: the arena is full. */
TN_MUST_USE tn_rc tn_committable_decode(struct tn_bytes bytes, const struct tn_meta_plan *plan,
                                        struct tn_arena *arena, struct tn_committable *committable,
                                        struct tn_err *err);

/* The table that a committable wants to change. */
struct tn_committable_table {
    const char *name;               /* "db.t" */
    const char *root;               /* "db.db/t" */
    const struct tn_schema *schema; /* the newest */
    const struct tn_options *options;
};

/* Whether its files may become part of the table: files of this table's folders, at level 0, with
 * partition, bucket and keys as the schema has them, of a schema up to the newest, and with rows
 * and statistics that can be: of columns of the newest schema, where the file has that, a least
 * value not above the greatest, no more NULLs than rows. INVALID says which file and why not. What
 * can't be seen here, without reading the files: whether they are there (gather.h looks), whether
 * rows and statistics are those of their rows, and their keys those of their bucket; `tarn fsck`
 * of the lake reads them. */
TN_MUST_USE tn_rc tn_committable_check(const struct tn_committable *committable,
                                       const struct tn_committable_table *table,
                                       struct tn_arena *scratch, struct tn_err *err);
