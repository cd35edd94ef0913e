#include <inttypes.h>

#include "commit/live.h"
#include "file/names.h"
#include "table/census.h"
#include "table/inspect_private.h"

/* ---- manifests ---- */

static const char *const manifests_columns[] = {
    "file_name", "file_size",           "num_added_files",    "num_deleted_files",
    "schema_id", "min_partition_stats", "max_partition_stats"};

static tn_rc show_manifest(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    struct tn_line *l = user;
    tn_line_text(l, meta->file_name);
    tn_line_number(l, meta->file_size);
    tn_line_number(l, meta->added_count);
    tn_line_number(l, meta->deleted_count);
    tn_line_number(l, meta->schema_id);
    tn_line_partition(l, meta->partition_stats.min);
    tn_line_partition(l, meta->partition_stats.max);
    return tn_line_end(l, err);
}

static tn_rc run_manifests(struct tn_line *l, struct tn_err *err)
{
    return tn_live_each_meta(l->in->root, l->in->snapshot, l->in->worker, show_manifest, l, err);
}

const struct tn_view tn_view_manifests = {
    manifests_columns, sizeof manifests_columns / sizeof manifests_columns[0], run_manifests, true};

/* ---- files ---- */

static const char *const files_columns[] = {"partition",
                                            "bucket",
                                            "file_path",
                                            "file_format",
                                            "schema_id",
                                            "level",
                                            "record_count",
                                            "file_size_in_bytes",
                                            "min_key",
                                            "max_key",
                                            "null_value_counts",
                                            "min_value_stats",
                                            "max_value_stats",
                                            "min_sequence_number",
                                            "max_sequence_number",
                                            "creation_time",
                                            "deleteRowCount",
                                            "file_source"};

/* The columns that a file's value statistics are of, in the schema that it was written with. */
struct measured {
    const char **names;
    struct tn_type *types;
    uint32_t count;
};

static bool find_measured(const struct tn_schema *schema, const struct tn_file_meta *file,
                          struct tn_arena *arena, struct measured *m)
{
    bool dense = file->value_stats_cols.present;
    m->count = dense ? file->value_stats_cols.count : schema->field_count;
    m->names = tn_arena_take(arena, (m->count + 1) * sizeof *m->names);
    m->types = tn_arena_take(arena, (m->count + 1) * sizeof *m->types);
    for (uint32_t i = 0; m->names && m->types && i < m->count; i++) {
        int32_t field = dense ? tn_schema_find(schema, tn_bytes_of(file->value_stats_cols.items[i]))
                              : (int32_t)i;
        if (field < 0) {
            return false;
        }
        m->names[i] = schema->fields[field].name;
        m->types[i] = schema->fields[field].type;
    }
    return m->names && m->types;
}

static void put_null_counts(struct tn_line *l, const struct measured *m,
                            const struct tn_stats *stats)
{
    bool known = stats->null_count_count == m->count;
    for (uint32_t i = 0; known && i < m->count; i++) {
        tn_buf_format(&l->text, "%s%s=", i ? ", " : "{", m->names[i]);
        if (stats->null_counts[i] >= 0) {
            tn_buf_format(&l->text, "%" PRId64, stats->null_counts[i]);
        } else {
            tn_buf_text(&l->text, "null");
        }
    }
    tn_buf_text(&l->text, !known ? "" : m->count ? "}" : "{}");
    tn_line_cell(l, false, !known);
}

static void put_bound(struct tn_line *l, const struct measured *m, struct tn_bytes binary)
{
    struct tn_arena *scratch = &l->in->worker->arena;
    size_t mark = tn_arena_mark(scratch);
    const struct tn_value *values = tn_line_values(binary, m->types, m->count, scratch);
    for (uint32_t i = 0; values && i < m->count; i++) {
        tn_buf_format(&l->text, "%s%s=", i ? ", " : "{", m->names[i]);
        tn_line_value(&l->text, &m->types[i], &values[i]);
    }
    tn_buf_text(&l->text, !values ? "" : m->count ? "}" : "{}");
    tn_arena_reset(scratch, mark);
    tn_line_cell(l, false, !values);
}

static void put_stats(struct tn_line *l, const struct tn_schema *schema,
                      const struct tn_file_meta *file)
{
    struct tn_arena *scratch = &l->in->worker->arena;
    size_t mark = tn_arena_mark(scratch);
    struct measured m;
    if (find_measured(schema, file, scratch, &m)) {
        put_null_counts(l, &m, &file->value_stats);
        put_bound(l, &m, file->value_stats.min);
        put_bound(l, &m, file->value_stats.max);
    } else {
        for (int i = 0; i < 3; i++) {
            tn_line_null(l);
        }
    }
    tn_arena_reset(scratch, mark);
}

static void put_key(struct tn_line *l, struct tn_bytes key)
{
    if (l->in->schema->trimmed_keys.count > 0) {
        tn_line_row(l, key, l->in->schema, l->in->schema->trimmed_keys, "[]");
    } else {
        tn_line_null(l);
    }
}

static tn_rc put_path(struct tn_line *l, const struct tn_entry *entry, struct tn_err *err)
{
    struct tn_arena *scratch = &l->in->worker->arena;
    size_t mark = tn_arena_mark(scratch);
    const char *dir;
    tn_rc rc = tn_name_bucket(scratch, l->in->root, l->in->schema, l->in->options, entry->partition,
                              entry->bucket, &dir, err);
    if (rc == TN_OK && entry->file.external_path) {
        tn_line_text(l, entry->file.external_path);
    } else if (rc == TN_OK) {
        tn_buf_format(&l->text, "%s%s", dir, entry->file.file_name);
        tn_line_cell(l, false, false);
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

static tn_rc show_file(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct tn_line *l = user;
    const struct tn_file_meta *file = &entry->file;
    const struct tn_schema *schema;
    tn_rc rc = tn_schemas_load(l->in->schemas, file->schema_id, &schema, err);
    tn_line_partition(l, entry->partition);
    tn_line_number(l, entry->bucket);
    if (rc == TN_OK) {
        rc = put_path(l, entry, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    const char *dot = strrchr(file->file_name, '.');
    tn_line_text(l, dot ? dot + 1 : NULL);
    tn_line_number(l, file->schema_id);
    tn_line_number(l, file->level);
    tn_line_number(l, file->row_count);
    tn_line_number(l, file->file_size);
    put_key(l, file->min_key);
    put_key(l, file->max_key);
    put_stats(l, schema, file);
    tn_line_number(l, file->min_sequence);
    tn_line_number(l, file->max_sequence);
    if (file->creation_time_ms.present) {
        tn_line_time(l, TN_TYPE_TIMESTAMP, file->creation_time_ms.value);
    } else {
        tn_line_null(l);
    }
    tn_line_maybe(l, file->delete_row_count);
    tn_line_text(l, !file->file_source.present     ? NULL
                    : file->file_source.value == 0 ? "APPEND"
                                                   : "COMPACT");
    return tn_line_end(l, err);
}

static tn_rc run_files(struct tn_line *l, struct tn_err *err)
{
    return tn_live_each(l->in->root, l->in->snapshot, l->in->schema, NULL, l->in->worker, show_file,
                        l, err);
}

const struct tn_view tn_view_files = {files_columns, sizeof files_columns / sizeof files_columns[0],
                                      run_files, true};

/* ---- partitions and buckets ---- */

static const char *const buckets_columns[] = {
    "partition", "bucket", "record_count", "file_size_in_bytes", "file_count", "last_update_time"};
static const char *const partitions_columns[] = {"partition", "record_count", "file_size_in_bytes",
                                                 "file_count", "last_update_time"};

static tn_rc show_sum(struct tn_line *l, const struct tn_census_bucket *sum, bool bucket,
                      struct tn_err *err)
{
    tn_line_partition(l, sum->partition);
    if (bucket) {
        tn_line_number(l, sum->number);
    }
    tn_line_number(l, sum->row_count);
    tn_line_number(l, sum->file_size);
    tn_line_number(l, sum->file_count);
    if (sum->newest_ms != INT64_MIN) {
        tn_line_time(l, TN_TYPE_TIMESTAMP, sum->newest_ms);
    } else {
        tn_line_null(l);
    }
    return tn_line_end(l, err);
}

static void open_census(const struct tn_line *l, struct tn_census *census)
{
    const struct tn_inspect *in = l->in;
    tn_census_open(census, in->root, in->snapshot, in->schema, in->window, in->window_size,
                   in->worker);
}

static tn_rc run_buckets(struct tn_line *l, struct tn_err *err)
{
    struct tn_census census;
    open_census(l, &census);
    tn_rc rc = TN_OK;
    while (rc == TN_OK) {
        const struct tn_census_bucket *bucket;
        rc = tn_census_next(&census, &bucket, err);
        if (rc == TN_OK) {
            rc = show_sum(l, bucket, true, err);
        }
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

const struct tn_view tn_view_buckets = {
    buckets_columns, sizeof buckets_columns / sizeof buckets_columns[0], run_buckets, true};

/* Buckets come partition by partition. `kept` holds the partition's bytes. */
static tn_rc sum_partitions(struct tn_line *l, struct tn_buf *kept, struct tn_err *err)
{
    struct tn_census census;
    struct tn_census_bucket sum = {.number = -1};
    bool any = false;
    tn_rc rc = TN_OK;
    open_census(l, &census);
    while (rc == TN_OK) {
        const struct tn_census_bucket *bucket = NULL;
        rc = tn_census_next(&census, &bucket, err);
        if (rc == TN_OK && any && tn_bytes_equal(bucket->partition, sum.partition)) {
            tn_census_join(&sum, bucket);
            continue;
        }
        if ((rc == TN_OK || rc == TN_ABSENT) && any) {
            tn_rc shown = show_sum(l, &sum, false, err);
            rc = shown == TN_OK ? rc : shown;
        }
        if (rc == TN_OK) {
            kept->size = 0;
            tn_buf_append(kept, bucket->partition.data, bucket->partition.size);
            sum = *bucket;
            sum.partition = tn_buf_bytes(kept);
            any = true;
        }
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc run_partitions(struct tn_line *l, struct tn_err *err)
{
    struct tn_buf kept;
    void *memory;
    tn_rc rc = tn_arena_need(l->in->arena, TN_LINE_SIZE / 2, "a partition", &memory, err);
    tn_buf_init(&kept, memory, TN_LINE_SIZE / 2);
    rc = rc == TN_OK ? sum_partitions(l, &kept, err) : rc;
    return rc == TN_OK && kept.overflow
               ? tn_err_set(err, TN_AGAIN, 0, "a partition of more than %d bytes", TN_LINE_SIZE / 2)
               : rc;
}

const struct tn_view tn_view_partitions = {partitions_columns,
                                           sizeof partitions_columns / sizeof partitions_columns[0],
                                           run_partitions, true};
