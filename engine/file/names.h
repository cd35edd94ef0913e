/* names: every path of the layout, made in one place.
 *
 * Paths are relative to the warehouse. Source: Paimon, FileStorePathFactory,
 * DataFilePathFactory, PartitionPathUtils.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "schema/options.h"
#include "schema/schema.h"

/* "db.db/t" for "db.t" (a database may not hold a dot; the first dot splits). INVALID for empty
 * parts, '/', "..", '$'. */
TN_MUST_USE tn_rc tn_name_table_root(struct tn_arena *arena, const char *table, const char **root,
                                     struct tn_err *err);

/* `<root>/<kind><text>`; kind is one of the folders below. NULL when the arena is full. */
#define TN_DIR_SCHEMA     "schema/"
#define TN_DIR_SNAPSHOT   "snapshot/"
#define TN_DIR_MANIFEST   "manifest/"
#define TN_DIR_TAG        "tag/"
#define TN_DIR_CONSUMER   "consumer/"
#define TN_DIR_CHANGELOG  "changelog/"
#define TN_DIR_BRANCH     "branch/"
#define TN_DIR_STATISTICS "statistics/"
#define TN_DIR_INDEX      "index/"
const char *tn_name_in(struct tn_arena *arena, const char *root, const char *dir, const char *name);
const char *tn_name_numbered(struct tn_arena *arena, const char *root, const char *dir,
                             const char *prefix, int64_t number); /* snapshot/snapshot-7 */

/* The partition's part of a path, "dt=2024-01-01/h=3/", or "" for tables without partitions.
 * `partition` is the serialized row (with arity). Exactly Paimon's escapes, legacy or new names,
 * default name. */
TN_MUST_USE tn_rc tn_name_partition(struct tn_arena *arena, const struct tn_schema *schema,
                                    const struct tn_options *options, struct tn_bytes partition,
                                    const char **name, struct tn_err *err);

/* The folder of a bucket, with a final '/': "<root>/[data/]<partition>bucket-3/"; bucket -2 is
 * "bucket-postpone". */
TN_MUST_USE tn_rc tn_name_bucket(struct tn_arena *arena, const char *root,
                                 const struct tn_schema *schema, const struct tn_options *options,
                                 struct tn_bytes partition, int32_t bucket, const char **name,
                                 struct tn_err *err);

/* The folder of a bucket's index files: "<root>/index/", or the bucket's. */
TN_MUST_USE tn_rc tn_name_index(struct tn_arena *arena, const char *root,
                                const struct tn_schema *schema, const struct tn_options *options,
                                struct tn_bytes partition, int32_t bucket, const char **name,
                                struct tn_err *err);

/* "data-<uuid>-<counter>.avro", or with file.suffix.include.compression "….zst.avro". */
TN_MUST_USE tn_rc tn_name_data_file(struct tn_arena *arena, const struct tn_options *options,
                                    const char *uuid, uint32_t counter, const char **name,
                                    struct tn_err *err);

/* The same of a changelog file: "changelog-<uuid>-<counter>.avro". */
TN_MUST_USE tn_rc tn_name_changelog_file(struct tn_arena *arena, const struct tn_options *options,
                                         const char *uuid, uint32_t counter, const char **name,
                                         struct tn_err *err);

/* The format by the name's extension: OK for avro, UNSUPPORTED "parquet files can't be read yet:
 * NAME" else. */
TN_MUST_USE tn_rc tn_name_check_format(const char *name, struct tn_err *err);

bool tn_name_begins(const char *name, const char *prefix);

/* The number behind `prefix` in a file name ("snapshot-17" -> 17), or -1. */
int64_t tn_name_number(const char *name, const char *prefix);
