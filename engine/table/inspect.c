#include "table/inspect.h"

#include <inttypes.h>

#include "base/check.h"
#include "commit/live.h"
#include "file/names.h"
#include "table/census.h"
#include "table/folder.h"

enum { CELLS_MAX = 20, TEXT_SIZE = 64 * 1024, TAG_SIZE_MAX = TN_SNAPSHOT_SIZE_MAX };

/* One row in the making: each cell's text lies in `text` behind the one before. */
struct line {
    const struct tn_inspect *in;
    const struct tn_view *view;
    struct tn_view_cell cells[CELLS_MAX];
    uint32_t count;
    struct tn_buf text;
    size_t start; /* of the cell in the making */
    tn_view_fn *each;
    void *user;
};

struct tn_view {
    const char *const *columns;
    uint32_t column_count;
    tn_rc (*run)(struct line *line, struct tn_err *err);
    bool needs_snapshot;
};

/* ---- cells ---- */

static void end_cell(struct line *l, bool plain, bool null)
{
    TN_CHECK(l->count < CELLS_MAX);
    l->cells[l->count++] = (struct tn_view_cell){
        .text = {l->text.data + l->start, l->text.size - l->start}, .plain = plain, .null = null};
    l->start = l->text.size;
}

static void put_null(struct line *l)
{
    end_cell(l, false, true);
}

static void put_text(struct line *l, const char *text)
{
    if (!text) {
        put_null(l);
        return;
    }
    tn_buf_text(&l->text, text);
    end_cell(l, false, false);
}

static void put_number(struct line *l, int64_t value)
{
    tn_buf_format(&l->text, "%" PRId64, value);
    end_cell(l, true, false);
}

static void put_maybe(struct line *l, struct tn_json_i64 value)
{
    if (value.present) {
        put_number(l, value.value);
    } else {
        put_null(l);
    }
}

/* A moment in UTC, or a local wall clock. */
static void put_time(struct line *l, enum tn_type_kind kind, int64_t ms)
{
    struct tn_type type = {.kind = kind, .nullable = true, .precision = 3};
    struct tn_value value = {.as.i64 = ms};
    tn_value_format_text(&type, &value, &l->text);
    end_cell(l, false, false);
}

static tn_rc end_line(struct line *l, struct tn_err *err)
{
    TN_CHECK(l->count == l->view->column_count);
    tn_rc rc = l->text.overflow
                   ? tn_err_set(err, TN_AGAIN, 0, "a row of more than %d bytes of text", TEXT_SIZE)
                   : l->each(l->user, l->cells, err);
    l->count = 0;
    l->start = 0;
    l->text.size = 0;
    return rc;
}

/* ---- binary rows ---- */

static bool readable(const struct tn_type *types, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (tn_type_nested(types[i].kind)) {
            return false;
        }
    }
    return true;
}

/* One value a type; NULL when that can't be said. */
static struct tn_value *values_of(struct tn_bytes binary, const struct tn_type *types,
                                  uint32_t count, struct tn_arena *scratch)
{
    struct tn_err ignored;
    struct tn_value *values = tn_arena_take(scratch, (count + 1) * sizeof *values);
    bool ok = values && readable(types, count) && binary.size > 0 &&
              tn_binary_to_values(binary, types, count, values, &ignored) == TN_OK;
    return ok ? values : NULL;
}

static void append_value(struct tn_buf *buf, const struct tn_type *type,
                         const struct tn_value *value)
{
    if (value->null) {
        tn_buf_text(buf, "null");
    } else {
        tn_value_format_text(type, value, buf);
    }
}

bool tn_view_binary_text(struct tn_bytes binary, const struct tn_type *types, uint32_t count,
                         const char *brackets, struct tn_arena *scratch, struct tn_buf *buf)
{
    size_t mark = tn_arena_mark(scratch);
    const struct tn_value *values = values_of(binary, types, count, scratch);
    for (uint32_t i = 0; values && i < count; i++) {
        tn_buf_text(buf, i ? ", " : (const char[]){brackets[0], 0});
        append_value(buf, &types[i], &values[i]);
    }
    if (values) {
        tn_buf_text(buf, count ? brackets + 1 : brackets);
    }
    tn_arena_reset(scratch, mark);
    return values != NULL;
}

static const struct tn_type *types_of(const struct tn_schema *schema, struct tn_columns columns,
                                      struct tn_arena *arena)
{
    struct tn_type *types = tn_arena_take(arena, (columns.count + 1) * sizeof *types);
    for (uint32_t i = 0; types && i < columns.count; i++) {
        types[i] = schema->fields[columns.index[i]].type;
    }
    return types;
}

static void put_row(struct line *l, struct tn_bytes binary, const struct tn_schema *schema,
                    struct tn_columns columns, const char *brackets)
{
    struct tn_arena *scratch = &l->in->worker->arena;
    size_t mark = tn_arena_mark(scratch);
    const struct tn_type *types = types_of(schema, columns, scratch);
    bool known =
        types && tn_view_binary_text(binary, types, columns.count, brackets, scratch, &l->text);
    tn_arena_reset(scratch, mark);
    end_cell(l, false, !known);
}

static void put_partition(struct line *l, struct tn_bytes partition)
{
    put_row(l, partition, l->in->schema, l->in->schema->partition_keys, "{}");
}

/* ---- snapshots ---- */

static const char *const snapshots_columns[] = {
    "snapshot_id",        "schema_id",           "commit_user",
    "commit_identifier",  "commit_kind",         "commit_time",
    "base_manifest_list", "delta_manifest_list", "changelog_manifest_list",
    "total_record_count", "delta_record_count",  "changelog_record_count",
    "watermark"};

static tn_rc show_snapshot(struct line *l, const struct tn_snapshot *s, struct tn_err *err)
{
    put_number(l, s->id);
    put_number(l, s->schema_id);
    put_text(l, s->commit_user);
    put_maybe(l, s->commit_identifier);
    put_text(l, s->commit_kind);
    if (s->time_ms.present) {
        put_time(l, TN_TYPE_TIMESTAMP_LTZ, s->time_ms.value);
    } else {
        put_null(l);
    }
    put_text(l, s->base_manifest_list);
    put_text(l, s->delta_manifest_list);
    put_text(l, s->changelog_manifest_list);
    put_maybe(l, s->total_record_count);
    put_maybe(l, s->delta_record_count);
    put_maybe(l, s->changelog_record_count);
    put_maybe(l, s->watermark);
    return end_line(l, err);
}

/* Ids from the oldest that counts; a hole is passed over. */
static tn_rc run_snapshots(struct line *l, struct tn_err *err)
{
    struct tn_io *io = l->in->worker->io;
    struct tn_arena *arena = &l->in->worker->arena;
    int64_t first;
    int64_t last;
    tn_rc rc = tn_snapshot_earliest(io, l->in->root, arena, &first, err);
    if (rc == TN_OK) {
        rc = tn_snapshot_latest(io, l->in->root, arena, &last, err);
    }
    for (int64_t id = first; rc == TN_OK && id <= last; id++) {
        struct tn_snapshot snapshot;
        size_t mark = tn_arena_mark(arena);
        rc = tn_snapshot_read(io, l->in->root, id, arena, &snapshot, err);
        if (rc == TN_OK) {
            rc = show_snapshot(l, &snapshot, err);
        } else if (rc == TN_ABSENT) {
            rc = TN_OK;
        }
        tn_arena_reset(arena, mark);
    }
    return rc;
}

/* ---- schemas, schema, options ---- */

static void append_names(struct tn_buf *buf, const struct tn_schema *schema,
                         struct tn_columns columns)
{
    for (uint32_t i = 0; i < columns.count; i++) {
        tn_buf_byte(buf, i ? ',' : '[');
        tn_json_string(buf, tn_bytes_of(schema->fields[columns.index[i]].name));
    }
    tn_buf_text(buf, columns.count ? "]" : "[]");
}

static void append_field(struct tn_buf *buf, const struct tn_field *field)
{
    char type[TN_TYPE_TEXT_SIZE];
    tn_buf_format(buf, "{\"id\":%" PRId32 ",\"name\":", field->id);
    tn_json_string(buf, tn_bytes_of(field->name));
    tn_buf_text(buf, ",\"type\":");
    if (field->type_json) {
        tn_buf_text(buf, field->type_json);
    } else {
        tn_json_string(buf, tn_bytes_of(tn_type_format(&field->type, type)));
    }
    if (field->description) {
        tn_buf_text(buf, ",\"description\":");
        tn_json_string(buf, tn_bytes_of(field->description));
    }
    if (field->default_value) {
        tn_buf_text(buf, ",\"defaultValue\":");
        tn_json_string(buf, tn_bytes_of(field->default_value));
    }
    tn_buf_byte(buf, '}');
}

static void append_options(struct tn_buf *buf, const struct tn_schema *schema)
{
    for (uint32_t i = 0; i < schema->option_count; i++) {
        tn_buf_byte(buf, i ? ',' : '{');
        tn_json_string(buf, tn_bytes_of(schema->options[i].key));
        tn_buf_byte(buf, ':');
        tn_json_string(buf, tn_bytes_of(schema->options[i].value));
    }
    tn_buf_text(buf, schema->option_count ? "}" : "{}");
}

static const char *const schemas_columns[] = {
    "schema_id", "fields", "partition_keys", "primary_keys", "options", "comment", "update_time"};

static tn_rc show_schema(struct line *l, const struct tn_schema *s, struct tn_err *err)
{
    put_number(l, s->id);
    for (uint32_t i = 0; i < s->field_count; i++) {
        tn_buf_byte(&l->text, i ? ',' : '[');
        append_field(&l->text, &s->fields[i]);
    }
    tn_buf_byte(&l->text, ']');
    end_cell(l, false, false);
    append_names(&l->text, s, s->partition_keys);
    end_cell(l, false, false);
    append_names(&l->text, s, s->primary_keys);
    end_cell(l, false, false);
    append_options(&l->text, s);
    end_cell(l, false, false);
    put_text(l, s->comment);
    put_time(l, TN_TYPE_TIMESTAMP_LTZ, s->time_ms);
    return end_line(l, err);
}

/* Not by tn_schemas, which keeps what it reads: there may be thousands. */
static tn_rc read_schema(struct line *l, int64_t id, struct tn_err *err)
{
    struct tn_arena *arena = &l->in->worker->arena;
    const char *path = tn_name_numbered(arena, l->in->root, TN_DIR_SCHEMA, "schema-", id);
    struct tn_bytes json;
    struct tn_schema schema;
    tn_rc rc = path ? tn_io_read_all(l->in->worker->io, path, TN_SCHEMA_SIZE_MAX, arena, &json, err)
                    : tn_err_set(err, TN_AGAIN, 0, "no memory for a schema's name");
    if (rc == TN_OK) {
        rc = tn_schema_decode(json, arena, &schema, err);
    }
    if (rc != TN_OK) {
        return rc == TN_ABSENT ? rc : tn_err_in(err, "schema %" PRId64, id);
    }
    return show_schema(l, &schema, err);
}

static tn_rc run_schemas(struct line *l, struct tn_err *err)
{
    struct tn_arena *arena = &l->in->worker->arena;
    tn_rc rc = TN_OK;
    for (int64_t id = 0; rc == TN_OK && id <= l->in->schema->id; id++) {
        size_t mark = tn_arena_mark(arena);
        rc = read_schema(l, id, err);
        rc = rc == TN_ABSENT ? TN_OK : rc;
        tn_arena_reset(arena, mark);
    }
    return rc;
}

static const char *const schema_columns[] = {"id",        "name",    "type",       "key",
                                             "partition", "default", "description"};

/* Its place among `columns`, from 1. */
static void put_place(struct line *l, struct tn_columns columns, uint32_t field)
{
    for (uint32_t i = 0; i < columns.count; i++) {
        if (columns.index[i] == field) {
            put_number(l, i + 1);
            return;
        }
    }
    put_null(l);
}

static tn_rc run_schema(struct line *l, struct tn_err *err)
{
    const struct tn_schema *s = l->in->schema;
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < s->field_count; i++) {
        const struct tn_field *field = &s->fields[i];
        char type[TN_TYPE_TEXT_SIZE];
        put_number(l, field->id);
        put_text(l, field->name);
        put_text(l, field->type_json ? field->type_json : tn_type_format(&field->type, type));
        put_place(l, s->primary_keys, i);
        put_place(l, s->partition_keys, i);
        put_text(l, field->default_value);
        put_text(l, field->description);
        rc = end_line(l, err);
    }
    return rc;
}

static const char *const options_columns[] = {"key", "value"};

static tn_rc run_options(struct line *l, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < l->in->schema->option_count; i++) {
        put_text(l, l->in->schema->options[i].key);
        put_text(l, l->in->schema->options[i].value);
        rc = end_line(l, err);
    }
    return rc;
}

/* ---- manifests ---- */

static const char *const manifests_columns[] = {
    "file_name", "file_size",           "num_added_files",    "num_deleted_files",
    "schema_id", "min_partition_stats", "max_partition_stats"};

static tn_rc show_manifest(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    struct line *l = user;
    put_text(l, meta->file_name);
    put_number(l, meta->file_size);
    put_number(l, meta->added_count);
    put_number(l, meta->deleted_count);
    put_number(l, meta->schema_id);
    put_partition(l, meta->partition_stats.min);
    put_partition(l, meta->partition_stats.max);
    return end_line(l, err);
}

static int64_t size_or_unknown(struct tn_json_i64 size)
{
    return size.present ? size.value : -1;
}

static tn_rc run_manifests(struct line *l, struct tn_err *err)
{
    const struct tn_snapshot *s = l->in->snapshot;
    tn_rc rc = tn_list_each_meta(l->in->root, s->base_manifest_list,
                                 size_or_unknown(s->base_manifest_list_size), l->in->worker,
                                 show_manifest, l, err);
    return rc == TN_OK ? tn_list_each_meta(l->in->root, s->delta_manifest_list,
                                           size_or_unknown(s->delta_manifest_list_size),
                                           l->in->worker, show_manifest, l, err)
                       : rc;
}

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

static void put_null_counts(struct line *l, const struct measured *m, const struct tn_stats *stats)
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
    end_cell(l, false, !known);
}

static void put_bound(struct line *l, const struct measured *m, struct tn_bytes binary)
{
    struct tn_arena *scratch = &l->in->worker->arena;
    size_t mark = tn_arena_mark(scratch);
    const struct tn_value *values = values_of(binary, m->types, m->count, scratch);
    for (uint32_t i = 0; values && i < m->count; i++) {
        tn_buf_format(&l->text, "%s%s=", i ? ", " : "{", m->names[i]);
        append_value(&l->text, &m->types[i], &values[i]);
    }
    tn_buf_text(&l->text, !values ? "" : m->count ? "}" : "{}");
    tn_arena_reset(scratch, mark);
    end_cell(l, false, !values);
}

static void put_stats(struct line *l, const struct tn_schema *schema,
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
            put_null(l);
        }
    }
    tn_arena_reset(scratch, mark);
}

static void put_key(struct line *l, struct tn_bytes key)
{
    if (l->in->schema->trimmed_keys.count > 0) {
        put_row(l, key, l->in->schema, l->in->schema->trimmed_keys, "[]");
    } else {
        put_null(l);
    }
}

static tn_rc put_path(struct line *l, const struct tn_entry *entry, struct tn_err *err)
{
    struct tn_arena *scratch = &l->in->worker->arena;
    size_t mark = tn_arena_mark(scratch);
    const char *dir;
    tn_rc rc = tn_name_bucket(scratch, l->in->root, l->in->schema, l->in->options, entry->partition,
                              entry->bucket, &dir, err);
    if (rc == TN_OK && entry->file.external_path) {
        put_text(l, entry->file.external_path);
    } else if (rc == TN_OK) {
        tn_buf_format(&l->text, "%s%s", dir, entry->file.file_name);
        end_cell(l, false, false);
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

static tn_rc show_file(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct line *l = user;
    const struct tn_file_meta *file = &entry->file;
    const struct tn_schema *schema;
    tn_rc rc = tn_schemas_load(l->in->schemas, file->schema_id, &schema, err);
    put_partition(l, entry->partition);
    put_number(l, entry->bucket);
    if (rc == TN_OK) {
        rc = put_path(l, entry, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    const char *dot = strrchr(file->file_name, '.');
    put_text(l, dot ? dot + 1 : NULL);
    put_number(l, file->schema_id);
    put_number(l, file->level);
    put_number(l, file->row_count);
    put_number(l, file->file_size);
    put_key(l, file->min_key);
    put_key(l, file->max_key);
    put_stats(l, schema, file);
    put_number(l, file->min_sequence);
    put_number(l, file->max_sequence);
    if (file->creation_time_ms.present) {
        put_time(l, TN_TYPE_TIMESTAMP, file->creation_time_ms.value);
    } else {
        put_null(l);
    }
    put_maybe(l, file->delete_row_count);
    put_text(l, !file->file_source.present     ? NULL
                : file->file_source.value == 0 ? "APPEND"
                                               : "COMPACT");
    return end_line(l, err);
}

static tn_rc run_files(struct line *l, struct tn_err *err)
{
    return tn_live_each(l->in->root, l->in->snapshot, l->in->schema, NULL, l->in->worker, show_file,
                        l, err);
}

/* ---- partitions and buckets ---- */

static const char *const buckets_columns[] = {
    "partition", "bucket", "record_count", "file_size_in_bytes", "file_count", "last_update_time"};
static const char *const partitions_columns[] = {"partition", "record_count", "file_size_in_bytes",
                                                 "file_count", "last_update_time"};

static tn_rc show_sum(struct line *l, const struct tn_census_bucket *sum, bool bucket,
                      struct tn_err *err)
{
    put_partition(l, sum->partition);
    if (bucket) {
        put_number(l, sum->number);
    }
    put_number(l, sum->row_count);
    put_number(l, sum->file_size);
    put_number(l, sum->file_count);
    if (sum->newest_ms != INT64_MIN) {
        put_time(l, TN_TYPE_TIMESTAMP, sum->newest_ms);
    } else {
        put_null(l);
    }
    return end_line(l, err);
}

static void open_census(const struct line *l, struct tn_census *census)
{
    const struct tn_inspect *in = l->in;
    tn_census_open(census, in->root, in->snapshot, in->schema, in->window, in->window_size,
                   in->worker);
}

static tn_rc run_buckets(struct line *l, struct tn_err *err)
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

/* Buckets come partition by partition. `kept` holds the partition's bytes. */
static tn_rc sum_partitions(struct line *l, struct tn_buf *kept, struct tn_err *err)
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

static tn_rc run_partitions(struct line *l, struct tn_err *err)
{
    struct tn_buf kept;
    void *memory;
    tn_rc rc = tn_arena_need(l->in->arena, TEXT_SIZE / 2, "a partition", &memory, err);
    tn_buf_init(&kept, memory, TEXT_SIZE / 2);
    rc = rc == TN_OK ? sum_partitions(l, &kept, err) : rc;
    return rc == TN_OK && kept.overflow
               ? tn_err_set(err, TN_AGAIN, 0, "a partition of more than %d bytes", TEXT_SIZE / 2)
               : rc;
}

/* ---- tags, branches, consumers ---- */

static tn_rc each_name(struct line *l, const char *dir, const char *prefix, bool folders,
                       tn_folder_fn *each, struct tn_err *err)
{
    const char *path = tn_name_in(l->in->arena, l->in->root, dir, "");
    if (!path) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for a folder's name");
    }
    struct tn_folder folder = {l->in->worker->io, path, prefix, "", folders};
    return tn_folder_each(&folder, l->in->window, l->in->window_size, each, l, err);
}

static const char *const tags_columns[] = {"tag_name",     "snapshot_id",  "schema_id",
                                           "commit_time",  "record_count", "create_time",
                                           "time_retained"};

/* The text of a member of a tag's file, as it stands: both of a tag's own are arrays and numbers
 * without quotes. */
static struct tn_bytes raw_member(struct tn_bytes json, const char *key)
{
    size_t size = strlen(key);
    for (size_t i = 0; i + size + 2 < json.size; i++) {
        if (json.data[i] != '"' || memcmp(json.data + i + 1, key, size) != 0 ||
            json.data[i + 1 + size] != '"') {
            continue;
        }
        size_t from = i + size + 2;
        while (from < json.size && strchr(" :\n\r\t", json.data[from])) {
            from++;
        }
        char end = from < json.size && json.data[from] == '[' ? ']' : ',';
        size_t to = from;
        while (to < json.size && json.data[to] != end && json.data[to] != '}' &&
               json.data[to] != '\n') {
            to++;
        }
        return (struct tn_bytes){json.data + from, to - from};
    }
    return (struct tn_bytes){0};
}

/* [2026, 11, 29, 14, 40, 6, 288925430]: a local wall clock; trailing zeros may be absent. */
static void put_tag_time(struct line *l, struct tn_bytes array)
{
    int64_t parts[7] = {0};
    uint32_t count = 0;
    bool digits = false;
    for (size_t i = 0; i < array.size && count < 7; i++) {
        unsigned char c = array.data[i];
        if (c >= '0' && c <= '9' && parts[count] < 1000000000) {
            parts[count] = parts[count] * 10 + (c - '0');
            digits = true;
        } else if (c == ',') {
            count++;
        }
    }
    if (!digits || count < 4) {
        put_null(l);
        return;
    }
    tn_buf_format(&l->text,
                  "%04" PRId64 "-%02" PRId64 "-%02" PRId64 "T%02" PRId64 ":%02" PRId64 ":%02" PRId64
                  ".%09" PRId64,
                  parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], parts[6]);
    end_cell(l, false, false);
}

static tn_rc show_tag_file(struct line *l, const char *name, struct tn_bytes json,
                           struct tn_err *err)
{
    struct tn_snapshot s;
    tn_rc rc = tn_snapshot_decode(json, &l->in->worker->arena, &s, err);
    if (rc != TN_OK) {
        return tn_err_in(err, "tag %s", name);
    }
    put_text(l, name);
    put_number(l, s.id);
    put_number(l, s.schema_id);
    if (s.time_ms.present) {
        put_time(l, TN_TYPE_TIMESTAMP_LTZ, s.time_ms.value);
    } else {
        put_null(l);
    }
    put_maybe(l, s.total_record_count);
    put_tag_time(l, raw_member(json, "tagCreateTime"));
    struct tn_bytes retained = raw_member(json, "tagTimeRetained");
    size_t size = 0; /* seconds; its decimals are zeros */
    while (size < retained.size && retained.data[size] >= '0' && retained.data[size] <= '9') {
        size++;
    }
    tn_buf_append(&l->text, retained.data ? (const void *)retained.data : "", size);
    tn_buf_text(&l->text, size ? " s" : "");
    end_cell(l, false, size == 0);
    return end_line(l, err);
}

static tn_rc show_tag(void *user, const char *name, struct tn_err *err)
{
    struct line *l = user;
    struct tn_arena *arena = &l->in->worker->arena;
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_arena_format(arena, "%s/%stag-%s", l->in->root, TN_DIR_TAG, name);
    struct tn_bytes json;
    tn_rc rc = path ? tn_io_read_all(l->in->worker->io, path, TAG_SIZE_MAX, arena, &json, err)
                    : tn_err_set(err, TN_AGAIN, 0, "no memory for a tag's name");
    if (rc == TN_OK) {
        rc = show_tag_file(l, name, json, err);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc run_tags(struct line *l, struct tn_err *err)
{
    return each_name(l, TN_DIR_TAG, "tag-", false, show_tag, err);
}

static const char *const branches_columns[] = {"branch_name", "create_time"};

static tn_rc show_branch(void *user, const char *name, struct tn_err *err)
{
    struct line *l = user;
    put_text(l, name);
    put_null(l); /* the folder's own time: no io tells it */
    return end_line(l, err);
}

static tn_rc run_branches(struct line *l, struct tn_err *err)
{
    return each_name(l, TN_DIR_BRANCH, "branch-", true, show_branch, err);
}

static const char *const consumers_columns[] = {"consumer_id", "next_snapshot_id"};

struct consumer {
    int64_t next;
};

static const struct tn_json_field consumer_fields[] = {
    {"nextSnapshot", TN_JSON_I64, TN_JSON_REQUIRED, offsetof(struct consumer, next)}};

static tn_rc read_consumer(struct line *l, const char *path, struct consumer *consumer,
                           struct tn_err *err)
{
    struct tn_arena *arena = &l->in->worker->arena;
    struct tn_bytes json;
    struct cJSON *root = NULL;
    tn_rc rc = tn_io_read_all(l->in->worker->io, path, 4096, arena, &json, err);
    if (rc == TN_OK) {
        rc = tn_json_open(json, arena, &root, err);
    }
    if (rc == TN_OK) {
        rc = tn_json_read(root, consumer_fields, 1, consumer, arena, err);
    }
    tn_json_close(root);
    return rc == TN_OK ? rc : tn_err_in(err, "%s", path);
}

static tn_rc show_consumer(void *user, const char *name, struct tn_err *err)
{
    struct line *l = user;
    struct tn_arena *arena = &l->in->worker->arena;
    size_t mark = tn_arena_mark(arena);
    struct consumer consumer;
    const char *path =
        tn_arena_format(arena, "%s/%sconsumer-%s", l->in->root, TN_DIR_CONSUMER, name);
    tn_rc rc = path ? read_consumer(l, path, &consumer, err)
                    : tn_err_set(err, TN_AGAIN, 0, "no memory for a consumer's name");
    if (rc == TN_OK) {
        put_text(l, name);
        put_number(l, consumer.next);
        rc = end_line(l, err);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc run_consumers(struct line *l, struct tn_err *err)
{
    return each_name(l, TN_DIR_CONSUMER, "consumer-", false, show_consumer, err);
}

/* ---- the list ---- */

#define VIEW(name, needs)                                                                   \
    {                                                                                       \
        name##_columns, sizeof name##_columns / sizeof name##_columns[0], run_##name, needs \
    }

static const struct tn_view views[] = {
    VIEW(schema, false),   VIEW(options, false),  VIEW(snapshots, true),  VIEW(schemas, false),
    VIEW(manifests, true), VIEW(files, true),     VIEW(partitions, true), VIEW(buckets, true),
    VIEW(tags, false),     VIEW(branches, false), VIEW(consumers, false),
};
const char *const tn_view_names[] = {"schema",    "options",  "snapshots",  "schemas",
                                     "manifests", "files",    "partitions", "buckets",
                                     "tags",      "branches", "consumers"};
enum { VIEW_COUNT = sizeof views / sizeof views[0] };
const uint32_t tn_view_count = VIEW_COUNT;
_Static_assert(sizeof tn_view_names / sizeof tn_view_names[0] == VIEW_COUNT, "a name a view");

const struct tn_view *tn_view_find(const char *name)
{
    for (uint32_t i = 0; i < VIEW_COUNT; i++) {
        if (strcmp(tn_view_names[i], name) == 0) {
            return &views[i];
        }
    }
    return NULL;
}

const char *const *tn_view_columns(const struct tn_view *view, uint32_t *count)
{
    *count = view->column_count;
    return view->columns;
}

tn_rc tn_view_each(const struct tn_view *view, const struct tn_inspect *inspect, tn_view_fn *each,
                   void *user, struct tn_err *err)
{
    if (view->needs_snapshot && !inspect->snapshot) {
        return TN_OK;
    }
    struct line line = {.in = inspect, .view = view, .each = each, .user = user};
    size_t mark = tn_arena_mark(inspect->arena);
    void *memory;
    tn_rc rc = tn_arena_need(inspect->arena, TEXT_SIZE, "a row", &memory, err);
    if (rc == TN_OK) {
        tn_buf_init(&line.text, memory, TEXT_SIZE);
        rc = view->run(&line, err);
    }
    if (!inspect->schemas || inspect->schemas->arena != inspect->arena) {
        tn_arena_reset(inspect->arena, mark); /* else schemas that were loaded stay in it */
    }
    return rc;
}
