#include "schema/options_private.h"

#include <stddef.h>

#define AT(name) (uint32_t) offsetof(struct tn_options, name)
#define SWITCH(name, at, fallback, help)                                                         \
    {                                                                                            \
        name, "boolean", fallback, TN_OPTION_WRITING, tn_option_read_switch, AT(at), 0, 0, NULL, \
            help                                                                                 \
    }
#define INTEGER(name, at, fallback, low, high, help)                                             \
    {                                                                                            \
        name, "integer", fallback, TN_OPTION_WRITING, tn_option_read_integer, AT(at), low, high, \
            NULL, help                                                                           \
    }
/* What the highest level is, tells a follower what changelogs will tell him. */
#define LEVELS(name, at, fallback, low, high, help)                                              \
    {                                                                                            \
        name, "integer", fallback, TN_OPTION_KEYED_READING, tn_option_read_integer, AT(at), low, \
            high, NULL, help                                                                     \
    }
#define SIZE(name, at, fallback, low, help)                                                     \
    {                                                                                           \
        name, "size", fallback, TN_OPTION_WRITING, tn_option_read_size, AT(at), low, INT64_MAX, \
            NULL, help                                                                          \
    }
#define DURATION(name, at, fallback, help)                                                 \
    {                                                                                      \
        name, "duration", fallback, TN_OPTION_WRITING, tn_option_read_duration, AT(at), 0, \
            INT64_MAX, NULL, help                                                          \
    }
#define SPECIAL(name, type, fallback, when, read, at, help)        \
    {                                                              \
        name, type, fallback, when, read, AT(at), 0, 0, NULL, help \
    }
#define REFUSED(name, type, fallback, when, fine, help)                   \
    {                                                                     \
        name, type, fallback, when, tn_option_refuse, 0, 0, 0, fine, help \
    }
#define HARMLESS(name, type, fallback, help)                               \
    {                                                                      \
        name, type, fallback, TN_OPTION_WRITING, NULL, 0, 0, 0, NULL, help \
    }

/* Defaults are Paimon's 1.3.1. Source: Paimon, CoreOptions. */
const struct tn_option_rule tn_option_rules[] = {
    /* obeyed */
    SPECIAL("bucket", "integer", "-1", TN_OPTION_READING, tn_option_read_bucket, bucket,
            "number of buckets; -1: none (tables without a primary key)"),
    SPECIAL("bucket-key", "columns", NULL, TN_OPTION_READING, tn_option_read_columns, bucket_key,
            "columns that choose the bucket; default: the primary key less the partition keys"),
    SPECIAL("bucket-function.type", "default|mod", "default", TN_OPTION_READING,
            tn_option_read_function, bucket_function,
            "mod: the value of one INT or BIGINT column chooses"),
    SPECIAL("sequence.field", "columns", NULL, TN_OPTION_READING, tn_option_read_columns,
            sequence_fields,
            "of two rows of one key the one with the larger value counts, not the later one"),
    SPECIAL("sequence.field.sort-order", "ascending|descending", "ascending", TN_OPTION_READING,
            tn_option_read_order, sequence_descending,
            "descending: where files meet, the one with the smaller value counts"),
    SPECIAL("ignore-delete", "boolean", "false", TN_OPTION_READING, tn_option_read_switch,
            ignore_delete, "deletes and rows before an update are dropped"),
    SWITCH("ignore-update-before", ignore_update_before, "false",
           "rows before an update (-U) are dropped"),
    SPECIAL("rowkind.field", "column", NULL, TN_OPTION_WRITING, tn_option_read_column,
            rowkind_field, "column that holds +I, -U, +U or -D"),
    SPECIAL("merge-engine", "deduplicate|partial-update|aggregation|first-row", "deduplicate",
            TN_OPTION_KEYED_READING, tn_option_read_engine, merge_engine,
            "how rows of one key become one"),
    SPECIAL("fields.default-aggregate-function", "text", NULL, TN_OPTION_KEYED_READING,
            tn_option_read_later, merge_fields,
            "function of columns that have no fields.COLUMN.aggregate-function"),
    SPECIAL("partial-update.remove-record-on-delete", "boolean", "false", TN_OPTION_KEYED_READING,
            tn_option_read_switch, partial_update_removes, "partial-update: a -D removes the row"),
    SPECIAL("partial-update.remove-record-on-sequence-group", "columns", NULL,
            TN_OPTION_KEYED_READING, tn_option_read_later, sequence_groups,
            "partial-update: a -D that one of these columns orders removes the row"),
    SPECIAL("aggregation.remove-record-on-delete", "boolean", "false", TN_OPTION_KEYED_READING,
            tn_option_read_switch, aggregation_removes, "aggregation: a -D removes the row"),
    SPECIAL("changelog-producer", "none|input|full-compaction|lookup", "none",
            TN_OPTION_KEYED_READING, tn_option_read_producer, changelog_producer,
            "who writes changelog files, and when"),
    SWITCH("changelog-producer.row-deduplicate", changelog_deduplicate, "false",
           "no -U and +U of equal rows"),
    SPECIAL("changelog-producer.row-deduplicate-ignore-fields", "columns", NULL, TN_OPTION_WRITING,
            tn_option_read_columns, changelog_ignored,
            "columns that make no difference to row-deduplicate"),
    SPECIAL("changelog-file.prefix", "text", "changelog-", TN_OPTION_WRITING, tn_option_read_name,
            changelog_file_prefix, "how names of changelog files begin"),
    SPECIAL("force-lookup", "boolean", "false", TN_OPTION_KEYED_READING, tn_option_read_switch,
            force_lookup, "compaction looks keys up, whatever the changelog producer"),
    SWITCH("lookup-wait", lookup_wait, "true", "a commit waits for compaction by lookup"),
    SPECIAL("lookup-compact", "radical|gentle", "radical", TN_OPTION_WRITING,
            tn_option_read_lookup_compact, lookup_gentle,
            "radical: compaction by lookup takes all of level 0, always"),
    INTEGER("lookup-compact.max-interval", lookup_interval_max, NULL, 0, INT32_MAX,
            "gentle: so many commits until all of level 0 is taken; default: twice the compaction "
            "trigger"),
    INTEGER("full-compaction.delta-commits", full_compaction_delta, NULL, 1, INT32_MAX,
            "so many commits start a full compaction"),
    SWITCH("write-only", write_only, "false", "never compact, never expire: another job does"),
    SWITCH("data-file.thin-mode", thin_mode, "false", "keys are not stored twice"),
    SPECIAL("data-file.prefix", "text", "data-", TN_OPTION_WRITING, tn_option_read_name,
            data_file_prefix, "how names of data files begin"),
    SPECIAL("data-file.path-directory", "folder", NULL, TN_OPTION_READING, tn_option_read_directory,
            path_directory, "folder in the table's that holds partitions and buckets"),
    SPECIAL("partition.default-name", "text", "__DEFAULT_PARTITION__", TN_OPTION_READING,
            tn_option_read_name, partition_default_name,
            "folder of NULL and blank partition values"),
    SPECIAL("partition.legacy-name", "boolean", "true", TN_OPTION_READING, tn_option_read_switch,
            partition_legacy_name, "true: a DATE's folder is its number of days"),
    SPECIAL("index-file-in-data-file-dir", "boolean", "false", TN_OPTION_READING,
            tn_option_read_switch, index_in_data_folder,
            "index files lie in their bucket's folder, not in index/"),
    SWITCH("file.suffix.include.compression", suffix_compression, "false",
           "names of data files say their compression"),
    SPECIAL("file.format", "text", "parquet", TN_OPTION_WRITING, tn_option_read_format, codec,
            "avro is what this build writes, and what create puts here"),
    SPECIAL("file.compression", "zstd|deflate|null", "zstd", TN_OPTION_WRITING,
            tn_option_read_codec, codec, "of data files"),
    SPECIAL("changelog-file.format", "text", NULL, TN_OPTION_WRITING, tn_option_read_later, codec,
            "of changelog files; default: file.format"),
    SPECIAL("changelog-file.compression", "zstd|deflate|null", NULL, TN_OPTION_WRITING,
            tn_option_read_later, changelog_codec, "of changelog files; default: file.compression"),
    INTEGER("file.compression.zstd-level", zstd_level, "1", 1, 22, "1 is fast, 22 is small"),
    SPECIAL("manifest.compression", "zstd|deflate|null", "zstd", TN_OPTION_WRITING,
            tn_option_read_codec, manifest_codec, "of manifests and their lists"),
    SIZE("target-file-size", target_file_size, NULL, 1,
         "a data file that has it is closed; default 128 mb, without a primary key 256 mb"),
    SIZE("write-buffer-size", write_buffer_size, "256 mb", 1,
         "a hint only: the memory of the board decides"),
    SPECIAL("metadata.stats-mode", "none|counts|truncate(n)|full", "truncate(16)",
            TN_OPTION_WRITING, tn_option_read_stats, stats_modes,
            "what manifests tell of each column; also fields.COLUMN.stats-mode"),
    SPECIAL("metadata.stats-keep-first-n-columns", "integer", "-1", TN_OPTION_WRITING,
            tn_option_read_stats_columns, stats_modes,
            "columns behind the first n have no statistics; -1: all have"),
    SWITCH("metadata.stats-dense-store", stats_dense, "true",
           "columns without statistics take no place"),
    SIZE("manifest.target-file-size", manifest_target_size, "8 mb", 1, "size of merged manifests"),
    INTEGER("manifest.merge-min-count", manifest_merge_min, "30", 1, INT32_MAX,
            "so many small manifests are merged"),
    SIZE("manifest.full-compaction-threshold-size", manifest_full_threshold, "16 mb", 0,
         "changed manifests of that size are merged with all others"),
    LEVELS("num-sorted-run.compaction-trigger", compaction_trigger, "5", 1, INT32_MAX - 3,
           "so many sorted runs in a bucket start a compaction"),
    INTEGER("num-sorted-run.stop-trigger", stop_trigger, NULL, 1, INT32_MAX,
            "so many sorted runs make writing wait; default: the compaction trigger + 3"),
    LEVELS("num-levels", num_levels, NULL, 2, INT32_MAX,
           "levels of a bucket; default: the compaction trigger + 1"),
    INTEGER("compaction.max-size-amplification-percent", max_size_amplification, "200", 0,
            INT32_MAX, "newer runs of that part of the oldest one's size: all are compacted"),
    INTEGER("compaction.size-ratio", size_ratio, "1", 0, INT32_MAX,
            "percent that a run may be larger than those before it, to be taken along"),
    DURATION("compaction.optimization-interval", optimization_interval_ms, NULL,
             "all of a bucket is compacted that often"),
    SIZE("compaction.total-size-threshold", total_size_threshold, NULL, 0,
         "a bucket that is smaller is always compacted as a whole"),
    SIZE("compaction.incremental-size-threshold", incremental_size_threshold, NULL, 0,
         "newer runs of that size: all are compacted"),
    INTEGER("compaction.offpeak.start.hour", off_peak_start, "-1", -1, 24,
            "hours of the local clock, from this one on, in which more is compacted; -1: none"),
    INTEGER("compaction.offpeak.end.hour", off_peak_end, "-1", -1, 24,
            "hour at which they end; -1: none"),
    INTEGER("compaction.offpeak-ratio", off_peak_ratio, "0", 0, INT32_MAX,
            "percent that is added to compaction.size-ratio in these hours"),
    SIZE("tarn.compaction.unit-size-max", unit_size_max, NULL, 1,
         "what would merge more at once waits for `compact --full` or the off-peak hours; default: "
         "what the daemon is told, or the board's"),
    INTEGER("compaction.min.file-num", min_file_num, "5", 1, INT32_MAX,
            "tables without a primary key: so many small files are compacted"),
    SWITCH("commit.force-compact", force_compact, "false", "a commit waits for its compaction"),
    SWITCH("compaction.force-up-level-0", force_up_level0, "false",
           "every compaction takes all of level 0"),
    SWITCH("compaction.force-rewrite-all-files", force_rewrite, "false",
           "a full compaction rewrites what is in place, too"),
    INTEGER("snapshot.num-retained.min", snapshot_retained_min, "10", 1, INT32_MAX,
            "snapshots that are kept however old"),
    INTEGER("snapshot.num-retained.max", snapshot_retained_max, "2147483647", 1, INT32_MAX,
            "snapshots that are kept however young"),
    DURATION("snapshot.time-retained", snapshot_time_retained_ms, "1 h", "age that is kept"),
    INTEGER("snapshot.expire.limit", snapshot_expire_limit, "50", 1, INT32_MAX,
            "snapshots that expire at a time"),
    INTEGER("changelog.num-retained.min", changelog_retained_min, NULL, 1, INT32_MAX,
            "changelogs that are kept however old; default: as snapshots"),
    INTEGER("changelog.num-retained.max", changelog_retained_max, NULL, 1, INT32_MAX,
            "changelogs that are kept however young; default: as snapshots"),
    DURATION("changelog.time-retained", changelog_time_retained_ms, NULL,
             "age of changelogs that is kept; default: as snapshots"),
    INTEGER("lake.snapshot.num-retained.min", lake_retained_min, NULL, 1, INT32_MAX,
            "snapshots that its mirrors keep however old; default: as here"),
    INTEGER("lake.snapshot.num-retained.max", lake_retained_max, NULL, 1, INT32_MAX,
            "snapshots that its mirrors keep however young; without any of these three they keep "
            "all"),
    DURATION("lake.snapshot.time-retained", lake_time_retained_ms, NULL,
             "age that its mirrors keep; default: as here where .min is set, else any"),
    DURATION("tag.default-time-retained", tag_time_retained_ms, NULL,
             "age that a tag goes with; default: it stays"),
    SWITCH("snapshot.clean-empty-directories", clean_empty_directories, "false",
           "folders that expiry empties are removed"),
    SIZE("local-merge-buffer-size", local_merge_size, NULL, 1,
         "rows of one key are merged as they come; memtables are the buffer"),
    SPECIAL("tarn.script", "text", NULL, TN_OPTION_WRITING, tn_option_read_script, script,
            "script that says what is true of a key when another row comes: its rows are finished "
            "before they are written"),
    SPECIAL("tarn.sequence.field", "column", NULL, TN_OPTION_WRITING, tn_option_read_column,
            script_sequence_field,
            "column by which a script is told that a row came late; with 'tarn.script'"),
    INTEGER("commit.max-retries", commit_max_retries, "10", 0, INT32_MAX,
            "how often a commit that lost against another one tries again"),

    /* refused, unless at a value that changes nothing */
    REFUSED("deletion-vectors.enabled", "boolean", "false", TN_OPTION_READING, "false",
            "rows are deleted by position"),
    REFUSED("data-evolution.enabled", "boolean", "false", TN_OPTION_READING, "false",
            "files hold some of the columns"),
    REFUSED("type", "text", "table", TN_OPTION_READING, "table", "kind of the table"),
    REFUSED("branch", "text", "main", TN_OPTION_READING, "main", "branch that is meant"),
    REFUSED("scan.fallback-branch", "text", NULL, TN_OPTION_READING, NULL,
            "branch that has the partitions this one lacks"),
    REFUSED("row-tracking.enabled", "boolean", "false", TN_OPTION_WRITING, "false",
            "rows have ids"),
    REFUSED("file.format.per.level", "map", NULL, TN_OPTION_WRITING, "",
            "a file format for each level"),
    REFUSED("data-file.external-paths", "text", NULL, TN_OPTION_WRITING, "",
            "data files outside the table"),
    REFUSED("data-file.external-paths.strategy", "text", "none", TN_OPTION_WRITING, "none",
            "data files outside the table"),
    REFUSED("manifest.format", "text", "avro", TN_OPTION_WRITING, "avro",
            "file format of manifests"),
    REFUSED("record-level.expire-time", "duration", NULL, TN_OPTION_WRITING, NULL, "rows expire"),
    REFUSED("partition.expiration-time", "duration", NULL, TN_OPTION_WRITING, NULL,
            "partitions expire"),
    REFUSED("tag.automatic-creation", "text", "none", TN_OPTION_WRITING, "none",
            "commits make tags"),
    REFUSED("commit.callbacks", "text", NULL, TN_OPTION_WRITING, "",
            "Java classes that commits call"),
    REFUSED("metadata.iceberg.storage", "text", "disabled", TN_OPTION_WRITING, "disabled",
            "commits write Iceberg's metadata as well"),
    REFUSED("clustering.incremental", "boolean", "false", TN_OPTION_WRITING, "false",
            "compaction sorts by columns"),
    REFUSED("sequence.snapshot-ordering", "boolean", "false", TN_OPTION_READING, "false",
            "commits set sequence numbers"),
    REFUSED("write.sequence-number-init-mode", "text", "scan", TN_OPTION_WRITING, "scan",
            "where sequence numbers go on from"),
    REFUSED("pk-clustering-override", "boolean", "false", TN_OPTION_READING, "false",
            "files are not sorted by key"),
    REFUSED("primary-key.nullable", "boolean", "false", TN_OPTION_WRITING, "false",
            "keys may be NULL"),
    REFUSED("blob-field", "columns", NULL, TN_OPTION_WRITING, "", "columns in files of their own"),
    REFUSED("vector-field", "columns", NULL, TN_OPTION_WRITING, "",
            "columns in files of their own"),
    REFUSED("chain-table.enabled", "boolean", "false", TN_OPTION_READING, "false",
            "branches make up one table"),
    REFUSED("variant.shreddingSchema", "text", NULL, TN_OPTION_WRITING, "", "VARIANT in columns"),
    REFUSED("manifest-sort.enabled", "boolean", "false", TN_OPTION_WRITING, "false",
            "manifests are sorted by partition"),

    /* harmless: engines, catalogs, streams, and what goes with an option that is refused */
    HARMLESS("alter-column-null-to-not-null.disabled", "boolean", "true", "altering in engines"),
    HARMLESS("async-file-write", "boolean", "true", "writing in Java"),
    HARMLESS("auto-create", "boolean", "false", "engines"),
    HARMLESS("avro.*", "text", NULL, "avro files that Java writes"),
    HARMLESS("batch-scan-mode", "text", "none", "internal to engines"),
    HARMLESS("bucket-append-ordered", "boolean", "true", "order of rows in engines"),
    HARMLESS("cache-page-size", "size", "64 kb", "memory of Java"),
    HARMLESS("changelog-file.stats-mode", "text", NULL, "they have those of data files"),
    HARMLESS("clustering.*", "text", NULL, "sort compaction"),
    HARMLESS("commit.callback.*", "text", NULL, "commit.callbacks"),
    HARMLESS("commit.force-create-snapshot", "boolean", "false", "empty commits of engines"),
    HARMLESS("commit.max-retry-wait", "duration", "10 s", "waits between retries in Java"),
    HARMLESS("commit.min-retry-wait", "duration", "10 ms", "waits between retries in Java"),
    HARMLESS("commit.strict-mode.last-safe-snapshot", "integer", NULL, "commits of engines"),
    HARMLESS("commit.timeout", "duration", NULL, "retries in Java"),
    HARMLESS("commit.user-prefix", "text", NULL, "names of Java's writers"),
    HARMLESS("compaction.delete-ratio-threshold", "number", "0.2", "deletion vectors"),
    HARMLESS("compaction.max.file-num", "integer", NULL, "older Paimon's append tables"),
    HARMLESS("consumer-id", "text", NULL, "streaming reads"),
    HARMLESS("consumer.*", "text", NULL, "streaming reads"),
    HARMLESS("continuous.discovery-interval", "duration", "10 s", "streaming reads"),
    HARMLESS("cross-partition-upsert.*", "text", NULL, "dynamic buckets"),
    HARMLESS("data-file.external-paths.specific-fs", "text", NULL, "data-file.external-paths"),
    HARMLESS("delete-file.thread-num", "integer", NULL, "threads of Java"),
    HARMLESS("delete.force-produce-changelog", "boolean", "false", "DELETE of engines"),
    HARMLESS("deletion-vector.index-file.target-size", "size", "2 mb", "deletion vectors"),
    HARMLESS("deletion-vectors.bitmap64", "boolean", "false", "deletion vectors"),
    HARMLESS("disable-explicit-type-casting", "boolean", "false", "altering in engines"),
    HARMLESS("dynamic-bucket.*", "text", NULL, "dynamic buckets"),
    HARMLESS("dynamic-partition-overwrite", "boolean", "true", "INSERT OVERWRITE of engines"),
    HARMLESS("end-input.check-partition-expire", "boolean", "false", "partition.expiration-time"),
    HARMLESS("file-index.in-manifest-threshold", "size", "500 bytes", "file indexes"),
    HARMLESS("file-index.read.enabled", "boolean", "true", "file indexes"),
    HARMLESS("file-operation.thread-num", "integer", NULL, "threads of Java"),
    HARMLESS("file-reader-async-threshold", "size", "10 mb", "reading in Java"),
    HARMLESS("file.block-size", "size", NULL, "parquet and ORC"),
    HARMLESS("file.compression.per.level", "map", NULL, "a compression for each level in Java"),
    HARMLESS("incremental-*", "text", NULL, "incremental reads of engines"),
    HARMLESS("local-sort.max-num-file-handles", "integer", "128", "sorting in Java"),
    HARMLESS("log.*", "text", NULL, "log systems"),
    HARMLESS("lookup.*", "text", NULL, "lookups in Java"),
    HARMLESS("manifest.delete-file-drop-stats", "boolean", "false", "manifests that Java writes"),
    HARMLESS("materialized-table.*", "text", NULL, "materialized tables of Flink"),
    HARMLESS("metadata.iceberg.*", "text", NULL, "metadata.iceberg.storage"),
    HARMLESS("metadata.stats-mode.per.level", "map", NULL, "statistics for each level in Java"),
    HARMLESS("metastore.*", "text", NULL, "catalogs"),
    HARMLESS("orc.*", "text", NULL, "ORC files"),
    HARMLESS("owner", "text", NULL, "catalogs"),
    HARMLESS("page-size", "size", "64 kb", "memory of Java"),
    HARMLESS("parquet.*", "text", NULL, "parquet files"),
    HARMLESS("partition", "columns", NULL, "create takes the partition keys from it"),
    HARMLESS("partition.end-input-to-done", "boolean", "false", "marking of partitions"),
    HARMLESS("partition.expiration-batch-size", "integer", NULL, "partition.expiration-time"),
    HARMLESS("partition.expiration-check-interval", "duration", "1 h", "partition.expiration-time"),
    HARMLESS("partition.expiration-max-num", "integer", "100", "partition.expiration-time"),
    HARMLESS("partition.expiration-strategy", "text", "values-time", "partition.expiration-time"),
    HARMLESS("partition.idle-time-to-report-statistic", "duration", "0 s", "catalogs"),
    HARMLESS("partition.mark-done-action*", "text", NULL, "marking of partitions"),
    HARMLESS("partition.sink-strategy", "text", "NONE", "writing in engines"),
    HARMLESS("partition.timestamp-formatter", "text", NULL, "partition.expiration-time"),
    HARMLESS("partition.timestamp-pattern", "text", NULL, "partition.expiration-time"),
    HARMLESS("path", "text", NULL, "catalogs"),
    HARMLESS("postpone.*", "text", NULL, "postponed buckets"),
    HARMLESS("primary-key", "columns", NULL, "create takes the primary key from it"),
    HARMLESS("query-auth.enabled", "boolean", "false", "catalogs"),
    HARMLESS("read.batch-size", "integer", "1024", "reading in Java"),
    HARMLESS("record-level.time-field", "column", NULL, "record-level.expire-time"),
    HARMLESS("scan.*", "text", NULL, "where reads of engines start"),
    HARMLESS("sink.*", "text", NULL, "writing in engines"),
    HARMLESS("snapshot.expire.execution-mode", "text", "sync", "expiry in Java"),
    HARMLESS("snapshot.ignore-empty-commit", "boolean", NULL, "empty commits of engines"),
    HARMLESS("snapshot.watermark-idle-timeout", "duration", NULL, "watermarks of Flink"),
    HARMLESS("sort-compaction.*", "text", NULL, "sort compaction"),
    HARMLESS("sort-engine", "text", "loser-tree", "merging in Java"),
    HARMLESS("sort-spill-buffer-size", "size", "64 mb", "sorting in Java"),
    HARMLESS("sort-spill-threshold", "integer", NULL, "sorting in Java"),
    HARMLESS("source.*", "text", NULL, "splits of engines"),
    HARMLESS("spill-compression*", "text", NULL, "spilling in Java"),
    HARMLESS("stream-scan-mode", "text", "none", "internal to engines"),
    HARMLESS("streaming*", "text", NULL, "streaming reads"),
    HARMLESS("tag.*", "text", NULL, "automatic tags"),
    HARMLESS("upsert-key", "columns", NULL, "streams of tables without a primary key"),
    HARMLESS("write-buffer-for-append", "boolean", "false", "memory of Java"),
    HARMLESS("write-buffer-spill.max-disk-size", "size", NULL, "spilling in Java"),
    HARMLESS("write-buffer-spillable", "boolean", "true", "spilling in Java"),
    HARMLESS("write-max-writers-to-spill", "integer", "10", "spilling in Java"),
    HARMLESS("write.batch-memory", "size", "128 mb", "writing in Java"),
    HARMLESS("write.batch-size", "integer", "1024", "writing in Java"),
    HARMLESS("zorder.var-length-contribution", "integer", "8", "sort compaction"),
};

const size_t tn_option_rule_count = TN_ENTRIES(tn_option_rules);

/* Names of before; the name of now counts first. Source: Paimon, CoreOptions, fallback keys. */
static const char *const old_names[][2] = {
    {"write.compaction-skip", "write-only"},
    {"first-row.ignore-delete", "ignore-delete"},
    {"deduplicate.ignore-delete", "ignore-delete"},
    {"partial-update.ignore-delete", "ignore-delete"},
    {"changelog-producer.lookup-wait", "lookup-wait"},
    {"snapshot.expire.clean-empty-directories", "snapshot.clean-empty-directories"},
};

const char *tn_option_value(const struct tn_schema *schema, const char *name)
{
    const char *value = tn_schema_option(schema, name);
    for (size_t i = 0; i < TN_ENTRIES(old_names) && value == NULL; i++) {
        if (strcmp(old_names[i][1], name) == 0) {
            value = tn_schema_option(schema, old_names[i][0]);
        }
    }
    return value;
}

/* `name` of the list, which may end in a star. */
static bool covers(const char *name, const char *key)
{
    size_t size = strlen(name);
    return name[size - 1] == '*' ? strncmp(key, name, size - 1) == 0 : strcmp(key, name) == 0;
}

bool tn_option_listed(const char *key)
{
    for (size_t i = 0; i < TN_ENTRIES(tn_option_rules); i++) {
        if (covers(tn_option_rules[i].name, key)) {
            return true;
        }
    }
    for (size_t i = 0; i < TN_ENTRIES(old_names); i++) {
        if (strcmp(old_names[i][0], key) == 0) {
            return true;
        }
    }
    return false;
}

const char *tn_option_nearest(const char *key)
{
    const char *names[TN_ENTRIES(tn_option_rules)];
    for (size_t i = 0; i < TN_ENTRIES(names); i++) {
        names[i] = tn_option_rules[i].name;
    }
    return tn_nearest_name(tn_bytes_of(key), names, TN_ENTRIES(names));
}
