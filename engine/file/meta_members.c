#include "file/meta_private.h"

#include <stddef.h>

/* Both texts stand in every file that Paimon 1.3.1 writes: one line, no blanks. */
const char tn_manifest_list_avro_schema[] =
    "{\"type\":\"record\",\"name\":\"record\",\"namespace\":"
    "\"org.apache.paimon.avro.generated\",\"fields\":["
    "{\"name\":\"_VERSION\",\"type\":\"int\"},"
    "{\"name\":\"_FILE_NAME\",\"type\":\"string\"},"
    "{\"name\":\"_FILE_SIZE\",\"type\":\"long\"},"
    "{\"name\":\"_NUM_ADDED_FILES\",\"type\":\"long\"},"
    "{\"name\":\"_NUM_DELETED_FILES\",\"type\":\"long\"},"
    "{\"name\":\"_PARTITION_STATS\",\"type\":{\"type\":\"record\",\"name\":"
    "\"record__PARTITION_STATS\",\"fields\":["
    "{\"name\":\"_MIN_VALUES\",\"type\":\"bytes\"},"
    "{\"name\":\"_MAX_VALUES\",\"type\":\"bytes\"},"
    "{\"name\":\"_NULL_COUNTS\",\"type\":[\"null\",{\"type\":\"array\",\"items\":"
    "[\"null\",\"long\"]}],\"default\":null}]}},"
    "{\"name\":\"_SCHEMA_ID\",\"type\":\"long\"},"
    "{\"name\":\"_MIN_BUCKET\",\"type\":[\"null\",\"int\"],\"default\":null},"
    "{\"name\":\"_MAX_BUCKET\",\"type\":[\"null\",\"int\"],\"default\":null},"
    "{\"name\":\"_MIN_LEVEL\",\"type\":[\"null\",\"int\"],\"default\":null},"
    "{\"name\":\"_MAX_LEVEL\",\"type\":[\"null\",\"int\"],\"default\":null}]}";

const char tn_entry_avro_schema[] =
    "{\"type\":\"record\",\"name\":\"record\",\"namespace\":"
    "\"org.apache.paimon.avro.generated\",\"fields\":["
    "{\"name\":\"_VERSION\",\"type\":\"int\"},"
    "{\"name\":\"_KIND\",\"type\":\"int\"},"
    "{\"name\":\"_PARTITION\",\"type\":\"bytes\"},"
    "{\"name\":\"_BUCKET\",\"type\":\"int\"},"
    "{\"name\":\"_TOTAL_BUCKETS\",\"type\":\"int\"},"
    "{\"name\":\"_FILE\",\"type\":{\"type\":\"record\",\"name\":\"record__FILE\","
    "\"fields\":["
    "{\"name\":\"_FILE_NAME\",\"type\":\"string\"},"
    "{\"name\":\"_FILE_SIZE\",\"type\":\"long\"},"
    "{\"name\":\"_ROW_COUNT\",\"type\":\"long\"},"
    "{\"name\":\"_MIN_KEY\",\"type\":\"bytes\"},"
    "{\"name\":\"_MAX_KEY\",\"type\":\"bytes\"},"
    "{\"name\":\"_KEY_STATS\",\"type\":{\"type\":\"record\",\"name\":"
    "\"record__FILE__KEY_STATS\",\"fields\":[{\"name\":\"_MIN_VALUES\",\"type\":"
    "\"bytes\"},{\"name\":\"_MAX_VALUES\",\"type\":\"bytes\"},{\"name\":"
    "\"_NULL_COUNTS\",\"type\":[\"null\",{\"type\":\"array\",\"items\":[\"null\","
    "\"long\"]}],\"default\":null}]}},"
    "{\"name\":\"_VALUE_STATS\",\"type\":{\"type\":\"record\",\"name\":"
    "\"record__FILE__VALUE_STATS\",\"fields\":[{\"name\":\"_MIN_VALUES\",\"type\":"
    "\"bytes\"},{\"name\":\"_MAX_VALUES\",\"type\":\"bytes\"},{\"name\":"
    "\"_NULL_COUNTS\",\"type\":[\"null\",{\"type\":\"array\",\"items\":[\"null\","
    "\"long\"]}],\"default\":null}]}},"
    "{\"name\":\"_MIN_SEQUENCE_NUMBER\",\"type\":\"long\"},"
    "{\"name\":\"_MAX_SEQUENCE_NUMBER\",\"type\":\"long\"},"
    "{\"name\":\"_SCHEMA_ID\",\"type\":\"long\"},"
    "{\"name\":\"_LEVEL\",\"type\":\"int\"},"
    "{\"name\":\"_EXTRA_FILES\",\"type\":{\"type\":\"array\",\"items\":\"string\"}},"
    "{\"name\":\"_CREATION_TIME\",\"type\":[\"null\",{\"type\":\"long\","
    "\"logicalType\":\"timestamp-millis\"}],\"default\":null},"
    "{\"name\":\"_DELETE_ROW_COUNT\",\"type\":[\"null\",\"long\"],\"default\":null},"
    "{\"name\":\"_EMBEDDED_FILE_INDEX\",\"type\":[\"null\",\"bytes\"],\"default\":"
    "null},"
    "{\"name\":\"_FILE_SOURCE\",\"type\":[\"null\",\"int\"],\"default\":null},"
    "{\"name\":\"_VALUE_STATS_COLS\",\"type\":[\"null\",{\"type\":\"array\","
    "\"items\":\"string\"}],\"default\":null},"
    "{\"name\":\"_EXTERNAL_PATH\",\"type\":[\"null\",\"string\"],\"default\":null},"
    "{\"name\":\"_FIRST_ROW_ID\",\"type\":[\"null\",\"long\"],\"default\":null},"
    "{\"name\":\"_WRITE_COLS\",\"type\":[\"null\",{\"type\":\"array\",\"items\":"
    "\"string\"}],\"default\":null}]}}]}";

#define MEMBER(record, name, kind, member)                      \
    {                                                           \
        name, TN_MEMBER_##kind, offsetof(struct record, member) \
    }
#define MEMBERS(array)                            \
    {                                             \
        array, sizeof(array) / sizeof((array)[0]) \
    }

static const struct tn_member list_members[] = {
    {"_VERSION", TN_MEMBER_VERSION, TN_META_VERSION},
    MEMBER(tn_manifest_meta, "_FILE_NAME", NAME, file_name),
    MEMBER(tn_manifest_meta, "_FILE_SIZE", COUNT, file_size),
    MEMBER(tn_manifest_meta, "_NUM_ADDED_FILES", COUNT, added_count),
    MEMBER(tn_manifest_meta, "_NUM_DELETED_FILES", COUNT, deleted_count),
    MEMBER(tn_manifest_meta, "_PARTITION_STATS", STATS, partition_stats),
    MEMBER(tn_manifest_meta, "_SCHEMA_ID", COUNT, schema_id),
    MEMBER(tn_manifest_meta, "_MIN_BUCKET", OPT_I32, min_bucket),
    MEMBER(tn_manifest_meta, "_MAX_BUCKET", OPT_I32, max_bucket),
    MEMBER(tn_manifest_meta, "_MIN_LEVEL", OPT_I32, min_level),
    MEMBER(tn_manifest_meta, "_MAX_LEVEL", OPT_I32, max_level),
};

static const struct tn_member entry_members[] = {
    {"_VERSION", TN_MEMBER_VERSION, TN_META_VERSION},
    MEMBER(tn_entry, "_KIND", I32, kind),
    MEMBER(tn_entry, "_PARTITION", BYTES, partition),
    MEMBER(tn_entry, "_BUCKET", I32, bucket),
    MEMBER(tn_entry, "_TOTAL_BUCKETS", I32, total_buckets),
    MEMBER(tn_entry, "_FILE", FILE, file),
};

static const struct tn_member file_members[] = {
    MEMBER(tn_file_meta, "_FILE_NAME", NAME, file_name),
    MEMBER(tn_file_meta, "_FILE_SIZE", COUNT, file_size),
    MEMBER(tn_file_meta, "_ROW_COUNT", COUNT, row_count),
    MEMBER(tn_file_meta, "_MIN_KEY", BYTES, min_key),
    MEMBER(tn_file_meta, "_MAX_KEY", BYTES, max_key),
    MEMBER(tn_file_meta, "_KEY_STATS", STATS, key_stats),
    MEMBER(tn_file_meta, "_VALUE_STATS", STATS, value_stats),
    MEMBER(tn_file_meta, "_MIN_SEQUENCE_NUMBER", I64, min_sequence),
    MEMBER(tn_file_meta, "_MAX_SEQUENCE_NUMBER", I64, max_sequence),
    MEMBER(tn_file_meta, "_SCHEMA_ID", COUNT, schema_id),
    MEMBER(tn_file_meta, "_LEVEL", I32, level),
    MEMBER(tn_file_meta, "_EXTRA_FILES", FILES, extra_files),
    MEMBER(tn_file_meta, "_CREATION_TIME", OPT_I64, creation_time_ms),
    MEMBER(tn_file_meta, "_DELETE_ROW_COUNT", OPT_I64, delete_row_count),
    MEMBER(tn_file_meta, "_EMBEDDED_FILE_INDEX", OPT_BYTES, embedded_index),
    MEMBER(tn_file_meta, "_FILE_SOURCE", OPT_I32, file_source),
    MEMBER(tn_file_meta, "_VALUE_STATS_COLS", OPT_TEXTS, value_stats_cols),
    MEMBER(tn_file_meta, "_EXTERNAL_PATH", OPT_TEXT, external_path),
    MEMBER(tn_file_meta, "_FIRST_ROW_ID", OPT_I64, first_row_id),
    MEMBER(tn_file_meta, "_WRITE_COLS", OPT_TEXTS, write_cols),
};

static const struct tn_member index_members[] = {
    {"_VERSION", TN_MEMBER_VERSION, TN_INDEX_VERSION},
    MEMBER(tn_index_entry, "_KIND", I32, kind),
    MEMBER(tn_index_entry, "_PARTITION", BYTES, partition),
    MEMBER(tn_index_entry, "_BUCKET", I32, bucket),
    MEMBER(tn_index_entry, "_INDEX_TYPE", TEXT, index_type),
    MEMBER(tn_index_entry, "_FILE_NAME", NAME, file_name),
    MEMBER(tn_index_entry, "_FILE_SIZE", COUNT, file_size),
    MEMBER(tn_index_entry, "_EXTERNAL_PATH", OPT_TEXT, external_path),
};

const struct tn_members tn_list_members = MEMBERS(list_members);
const struct tn_members tn_entry_members = MEMBERS(entry_members);
const struct tn_members tn_file_members = MEMBERS(file_members);
const struct tn_members tn_index_members = MEMBERS(index_members);
