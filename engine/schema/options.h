/* options: every table option that tarn knows, in one array: name, type, default, bounds, who must
 * obey it, help. `tarn help options` prints it.
 *
 * An option is either obeyed (it fills a member of tn_options), or harmless to tarn (it concerns
 * engines and catalogs: `scan.*`, `sink.*`, ...), or it changes what a writer must do and tarn
 * cannot do that yet: then it is refused by name at create and write. Reading refuses only what
 * changes what is read. Options that are not in the array at all are kept in the schema and
 * ignored, unless they begin like one that matters (`fields.`), with a warning. Source: Paimon,
 * CoreOptions.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "format/codec.h"
#include "schema/schema.h"

enum tn_options_use { TN_OPTIONS_CREATE, TN_OPTIONS_WRITE, TN_OPTIONS_READ };

enum tn_stats_mode { TN_STATS_NONE, TN_STATS_COUNTS, TN_STATS_TRUNCATE, TN_STATS_FULL };

enum tn_bucket_function { TN_BUCKET_HASH, TN_BUCKET_MOD };

/* How rows of one key become one. */
enum tn_merge_engine {
    TN_MERGE_DEDUPLICATE,
    TN_MERGE_PARTIAL_UPDATE,
    TN_MERGE_AGGREGATION,
    TN_MERGE_FIRST_ROW,
};

enum tn_changelog_producer {
    TN_CHANGELOG_NONE,
    TN_CHANGELOG_INPUT,
    TN_CHANGELOG_FULL_COMPACTION,
    TN_CHANGELOG_LOOKUP,
};

/* What becomes of one column's values. */
enum tn_aggregate {
    TN_AGGREGATE_NONE, /* partial-update: what is not NULL, or in a sequence group all, replaces */
    TN_AGGREGATE_KEY,  /* a column of the primary key */
    TN_AGGREGATE_SUM,
    TN_AGGREGATE_PRODUCT,
    TN_AGGREGATE_MAX,
    TN_AGGREGATE_MIN,
    TN_AGGREGATE_LAST_VALUE,
    TN_AGGREGATE_LAST_NON_NULL_VALUE,
    TN_AGGREGATE_FIRST_VALUE,
    TN_AGGREGATE_FIRST_NON_NULL_VALUE,
    TN_AGGREGATE_LISTAGG,
    TN_AGGREGATE_BOOL_AND,
    TN_AGGREGATE_BOOL_OR,
    TN_AGGREGATE_RBM32,
    TN_AGGREGATE_COUNT,
};

struct tn_merge_field {
    enum tn_aggregate aggregate;
    bool ignore_retract;
    int32_t group;         /* of sequence_groups, or -1 */
    bool orders;           /* is one of its group's ordering columns */
    const char *delimiter; /* fields.COLUMN.list-agg-delimiter */
};

struct tn_sequence_group {
    struct tn_columns order; /* into the schema's fields */
    bool removes;            /* partial-update.remove-record-on-sequence-group names one of them */
};

struct tn_options {
    int32_t bucket;               /* > 0, or -1 (append tables) */
    struct tn_columns bucket_key; /* into the schema's fields; never empty for bucket > 0 */
    enum tn_bucket_function bucket_function;
    struct tn_columns sequence_fields; /* into the schema's fields; may be empty */
    bool sequence_descending;
    bool ignore_delete;
    bool ignore_update_before;
    int32_t rowkind_field; /* field index, or -1 */

    const char *script;            /* tarn.script: who resolves rows before they are written */
    int32_t script_sequence_field; /* tarn.sequence.field: field index, or -1 */

    enum tn_merge_engine merge_engine;
    struct tn_merge_field *merge_fields; /* per field: partial-update and aggregation, else NULL */
    struct tn_sequence_group *sequence_groups;
    uint32_t sequence_group_count;
    int64_t local_merge_size;    /* local-merge-buffer-size: 0 unset; else rows meet in memory */
    bool partial_update_removes; /* partial-update.remove-record-on-delete */
    bool aggregation_removes;    /* aggregation.remove-record-on-delete */

    enum tn_changelog_producer changelog_producer;
    bool changelog_deduplicate;          /* changelog-producer.row-deduplicate */
    struct tn_columns changelog_ignored; /* ...-ignore-fields: into the schema's fields */
    const char *changelog_file_prefix;   /* "changelog-" */
    enum tn_codec_id changelog_codec;    /* changelog-file.compression; else that of data files */
    int32_t full_compaction_delta;       /* full-compaction.delta-commits; 0: unset */
    bool lookup_wait;
    bool force_lookup;
    bool lookup_gentle;          /* lookup-compact = gentle */
    int32_t lookup_interval_max; /* lookup-compact.max-interval, its default put in */

    bool write_only;
    bool thin_mode; /* data-file.thin-mode: no _KEY_ columns */

    const char *data_file_prefix;       /* "data-" */
    const char *path_directory;         /* data-file.path-directory: "" or "data/" */
    const char *partition_default_name; /* "__DEFAULT_PARTITION__" */
    bool partition_legacy_name;
    bool index_in_data_folder; /* index-file-in-data-file-dir */
    bool suffix_compression;   /* file.suffix.include.compression */

    enum tn_codec_id
        codec; /* file.compression: zstd, null/none, deflate; snappy and bzip2 are refused */
    int32_t zstd_level;
    enum tn_codec_id manifest_codec; /* manifest.compression */
    int64_t target_file_size;        /* bytes */
    int64_t write_buffer_size;       /* a hint; the board's pages decide */

    enum tn_stats_mode *stats_modes; /* per field */
    uint32_t *stats_lengths;         /* per field: n of truncate(n), code points */
    bool stats_dense;                /* metadata.stats-dense-store */

    int64_t manifest_target_size;
    int32_t manifest_merge_min;
    int64_t manifest_full_threshold;

    int32_t compaction_trigger; /* num-sorted-run.compaction-trigger */
    int32_t stop_trigger;
    int32_t num_levels;
    int32_t max_size_amplification;     /* percent */
    int32_t size_ratio;                 /* percent */
    int64_t optimization_interval_ms;   /* -1: unset */
    int64_t total_size_threshold;       /* -1: unset */
    int64_t incremental_size_threshold; /* -1: unset */
    int64_t unit_size_max;  /* tarn.compaction.unit-size-max; 0: what the engine has (env.h) */
    int32_t off_peak_start; /* compaction.offpeak.start.hour, likewise; -1: none */
    int32_t off_peak_end;
    int32_t off_peak_ratio; /* percent, beside size_ratio */
    int32_t min_file_num;   /* append tables: compaction.min.file-num */
    bool force_compact;     /* commit.force-compact */
    bool force_up_level0;   /* compaction.force-up-level-0 */
    bool force_rewrite;     /* compaction.force-rewrite-all-files */

    int32_t snapshot_retained_min;
    int32_t snapshot_retained_max; /* INT32_MAX: unlimited */
    int64_t snapshot_time_retained_ms;
    int32_t snapshot_expire_limit;
    int32_t changelog_retained_min;     /* 0: as snapshots, also below */
    int32_t changelog_retained_max;     /* 0 */
    int64_t changelog_time_retained_ms; /* -1 */
    int32_t lake_retained_min;          /* 0: unset, also below; of a table's mirrors */
    int32_t lake_retained_max;          /* 0 */
    int64_t lake_time_retained_ms;      /* -1 */
    int64_t tag_time_retained_ms;       /* tag.default-time-retained; 0: for good */
    bool clean_empty_directories;
    int32_t commit_max_retries;
};

/* True where compaction looks keys up, and a reader takes of the levels above 0 the newest row
 * alone. Source: Paimon, CoreOptions.needLookup. */
static inline bool tn_options_need_lookup(const struct tn_options *options)
{
    return options->changelog_producer == TN_CHANGELOG_LOOKUP || options->force_lookup ||
           options->merge_engine == TN_MERGE_FIRST_ROW;
}

/* Hours in which more may be compacted, however few. */
static inline bool tn_options_has_off_peak(const struct tn_options *options)
{
    return options->off_peak_start != -1 && options->off_peak_end != -1 &&
           options->off_peak_start != options->off_peak_end;
}

/* True in the hours in which more may be compacted. `local_ms`: by the local clock, as if UTC.
 * Source: Paimon, OffPeakHours. */
static inline bool tn_options_off_peak(const struct tn_options *options, int64_t local_ms)
{
    enum { HOUR_MS = 3600 * 1000, DAY_MS = 24 * HOUR_MS };
    int64_t hour = (local_ms % DAY_MS + DAY_MS) % DAY_MS / HOUR_MS;
    int32_t start = options->off_peak_start;
    int32_t end = options->off_peak_end;
    if (!tn_options_has_off_peak(options)) {
        return false;
    }
    return start < end ? start <= hour && hour < end : start <= hour || hour < end;
}

struct tn_retention {
    int32_t count_min;
    int32_t count_max;
    int64_t time_ms;
};

/* How long changelogs are kept. */
static inline struct tn_retention tn_options_changelog_retention(const struct tn_options *o)
{
    return (struct tn_retention){
        o->changelog_retained_min > 0 ? o->changelog_retained_min : o->snapshot_retained_min,
        o->changelog_retained_max > 0 ? o->changelog_retained_max : o->snapshot_retained_max,
        o->changelog_time_retained_ms >= 0 ? o->changelog_time_retained_ms
                                           : o->snapshot_time_retained_ms};
}

/* Whether they outlive their snapshots, as files of their own. Source: Paimon,
 * CoreOptions.changelogLifecycleDecoupled. */
static inline bool tn_options_changelogs_outlive(const struct tn_options *o)
{
    struct tn_retention kept = tn_options_changelog_retention(o);
    return kept.count_max > o->snapshot_retained_max || kept.count_min > o->snapshot_retained_min ||
           kept.time_ms > o->snapshot_time_retained_ms;
}

/* Whether mirrors keep less than all. */
static inline bool tn_options_lake_expires(const struct tn_options *o)
{
    return o->lake_retained_min > 0 || o->lake_retained_max > 0 || o->lake_time_retained_ms >= 0;
}

/* How long mirrors keep snapshots. What isn't said lets nothing go by itself: who gives the largest
 * number alone means no age. */
static inline struct tn_retention tn_options_lake_retention(const struct tn_options *o)
{
    int32_t max = o->lake_retained_max > 0 ? o->lake_retained_max : INT32_MAX;
    int32_t min = o->lake_retained_min > 0 ? o->lake_retained_min : o->snapshot_retained_min;
    int64_t age = o->lake_retained_min > 0 ? o->snapshot_time_retained_ms : INT64_MAX;
    return (struct tn_retention){min < max ? min : max, max,
                                 o->lake_time_retained_ms >= 0 ? o->lake_time_retained_ms : age};
}

const char *tn_merge_engine_name(enum tn_merge_engine engine);
const char *tn_aggregate_name(enum tn_aggregate aggregate); /* "sum" */
bool tn_aggregate_knows_no_retract(enum tn_aggregate aggregate);

/* Reads a schema's options. For CREATE and WRITE everything that cannot be obeyed is UNSUPPORTED by
 * name, a bad value INVALID with what is allowed; for READ only what changes the rows (functions
 * that are not computed, deletion vectors, dynamic and postpone buckets of primary-key
 * tables, file formats are seen by the file's name). Memory strings like "128 mb" and durations
 * like "1 h" as in Paimon. */
TN_MUST_USE tn_rc tn_options_read(const struct tn_schema *schema, enum tn_options_use use,
                                  struct tn_arena *arena, struct tn_options *options,
                                  struct tn_err *err);

/* Reads only what says where files lie, for who copies a table as it is: nothing is refused. All
 * other members are empty. */
TN_MUST_USE tn_rc tn_options_read_places(const struct tn_schema *schema, struct tn_arena *arena,
                                         struct tn_options *options, struct tn_err *err);

/* The same, and how long snapshots and changelogs are kept, here and in mirrors. INVALID: a value
 * that says nothing. */
TN_MUST_USE tn_rc tn_options_read_retention(const struct tn_schema *schema, struct tn_arena *arena,
                                            struct tn_options *options, struct tn_err *err);

/* Appends one line a hazard that it sees in the schema and its options (write-only without expiry,
 * descending sequence, fixed buckets with a key that lacks the partition, deletes under
 * sequence.field, an unknown option with the nearest known name, ...). */
void tn_options_hazards(const struct tn_schema *schema, const struct tn_options *options,
                        struct tn_buf *lines);

/* Appends the array as text: one line an option, "name TAB type TAB default TAB
 * obeyed|refused|harmless TAB help". A name that ends in `*` stands for all that begin so. */
void tn_options_help(struct tn_buf *lines);

/* Sizes and durations in Paimon's forms: "64 kb", "1g", "128mb"; "10 min", "1h", "1 d", ISO-less.
 */
bool tn_parse_size(struct tn_bytes text, int64_t *bytes);
bool tn_parse_duration(struct tn_bytes text, int64_t *ms);
