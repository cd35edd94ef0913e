/* meta: what a manifest says about files: DataFileMeta, manifest entries, and the records of
 * manifest lists, to and from avro bytes; those of index manifests only from them.
 *
 * Writing uses Paimon 1.3's schemas, all 20 fields of `_FILE`, byte for byte its schema texts.
 * Reading goes by field name over whatever schema the file has (pypaimon and later versions add
 * fields, older ones lack some). Source: Paimon, ManifestEntrySerializer, DataFileMetaSerializer,
 * ManifestFileMetaSerializer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/hash.h"
#include "format/avro.h"
#include "format/json.h"

struct tn_stats {
    struct tn_bytes min; /* serialized rows with arity */
    struct tn_bytes max;
    const int64_t *null_counts; /* -1: unknown */
    uint32_t null_count_count;
};

struct tn_texts {
    const char *const *items;
    uint32_t count;
    bool present; /* for nullable lists: false is NULL, which differs from empty */
};

/* Optional numbers are struct tn_json_i64 {value, present}. Strings end in a zero and, like all
 * else, belong to the arena that decoded them. */
struct tn_file_meta {
    const char *file_name;
    int64_t file_size; /* bytes */
    int64_t row_count;
    struct tn_bytes min_key; /* serialized rows with arity, never truncated */
    struct tn_bytes max_key;
    struct tn_stats key_stats;
    struct tn_stats value_stats;
    int64_t min_sequence;
    int64_t max_sequence;
    int64_t schema_id;
    int32_t level;
    struct tn_texts extra_files;
    struct tn_json_i64 creation_time_ms; /* local wall clock as if UTC */
    struct tn_json_i64 delete_row_count;
    struct tn_bytes embedded_index; /* data NULL: none */
    struct tn_json_i64 file_source; /* 0 APPEND, 1 COMPACT */
    struct tn_texts value_stats_cols;
    const char *external_path; /* or NULL */
    struct tn_json_i64 first_row_id;
    struct tn_texts write_cols;
};

enum tn_entry_kind { TN_ENTRY_ADD = 0, TN_ENTRY_DELETE = 1 };

struct tn_entry {
    enum tn_entry_kind kind;
    struct tn_bytes partition; /* serialized row with arity */
    int32_t bucket;
    int32_t total_buckets;
    struct tn_file_meta file;
};

/* One record of a manifest list. */
struct tn_manifest_meta {
    const char *file_name;
    int64_t file_size;
    int64_t added_count;
    int64_t deleted_count;
    struct tn_stats partition_stats;
    int64_t schema_id;
    struct tn_json_i64 min_bucket;
    struct tn_json_i64 max_bucket;
    struct tn_json_i64 min_level;
    struct tn_json_i64 max_level;
};

/* One record of an index manifest, which lists all index files of a snapshot. Source: Paimon,
 * IndexManifestEntrySerializer. */
struct tn_index_entry {
    enum tn_entry_kind kind;
    struct tn_bytes partition; /* serialized row with arity */
    int32_t bucket;
    const char *index_type; /* "HASH", "DELETION_VECTORS", later Paimon's */
    const char *file_name;
    int64_t file_size;
    const char *external_path; /* or NULL */
};

extern const char tn_entry_avro_schema[];         /* manifests */
extern const char tn_manifest_list_avro_schema[]; /* manifest lists */

void tn_entry_encode(const struct tn_entry *entry, struct tn_buf *buf);
void tn_manifest_meta_encode(const struct tn_manifest_meta *meta, struct tn_buf *buf);

/* How the fields of one file's schema map to the structs; made once a file. */
struct tn_meta_plan {
    struct tn_avro_type type;
    int32_t *top;  /* per field of the record: which member, or -1 to skip */
    int32_t *file; /* per field of `_FILE` (entries only) */
};

/* CORRUPT names the field that is missing or of a wrong type. */
TN_MUST_USE tn_rc tn_entry_plan(struct tn_bytes schema, struct tn_arena *arena,
                                struct tn_meta_plan *plan, struct tn_err *err);
TN_MUST_USE tn_rc tn_manifest_list_plan(struct tn_bytes schema, struct tn_arena *arena,
                                        struct tn_meta_plan *plan, struct tn_err *err);
TN_MUST_USE tn_rc tn_index_plan(struct tn_bytes schema, struct tn_arena *arena,
                                struct tn_meta_plan *plan, struct tn_err *err);

/* One record; byte strings and texts are copied into the arena. CORRUPT; AGAIN when the arena is
 * full. */
TN_MUST_USE tn_rc tn_entry_decode(const struct tn_meta_plan *plan, struct tn_avro_cursor *cursor,
                                  struct tn_arena *arena, struct tn_entry *entry,
                                  struct tn_err *err);
TN_MUST_USE tn_rc tn_manifest_meta_decode(const struct tn_meta_plan *plan,
                                          struct tn_avro_cursor *cursor, struct tn_arena *arena,
                                          struct tn_manifest_meta *meta, struct tn_err *err);
TN_MUST_USE tn_rc tn_index_decode(const struct tn_meta_plan *plan, struct tn_avro_cursor *cursor,
                                  struct tn_arena *arena, struct tn_index_entry *entry,
                                  struct tn_err *err);

/* What makes two entries the same file: partition, bucket, level, name, extra files, embedded
 * index, external path. Source: Paimon, FileEntry.Identifier. */
struct tn_hash_128 tn_entry_identity(const struct tn_entry *entry, struct tn_arena *scratch);

/* A deep copy. AGAIN when the arena is full. */
TN_MUST_USE tn_rc tn_file_meta_copy(const struct tn_file_meta *from, struct tn_arena *arena,
                                    struct tn_file_meta *to, struct tn_err *err);
