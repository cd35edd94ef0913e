#include <inttypes.h>

#include "file/names.h"
#include "table/inspect_private.h"

/* ---- snapshots ---- */

static const char *const snapshots_columns[] = {
    "snapshot_id",        "schema_id",           "commit_user",
    "commit_identifier",  "commit_kind",         "commit_time",
    "base_manifest_list", "delta_manifest_list", "changelog_manifest_list",
    "total_record_count", "delta_record_count",  "changelog_record_count",
    "watermark"};

static tn_rc show_snapshot(struct tn_line *l, const struct tn_snapshot *s, struct tn_err *err)
{
    tn_line_number(l, s->id);
    tn_line_number(l, s->schema_id);
    tn_line_text(l, s->commit_user);
    tn_line_maybe(l, s->commit_identifier);
    tn_line_text(l, s->commit_kind);
    if (s->time_ms.present) {
        tn_line_time(l, TN_TYPE_TIMESTAMP_LTZ, s->time_ms.value);
    } else {
        tn_line_null(l);
    }
    tn_line_text(l, s->base_manifest_list);
    tn_line_text(l, s->delta_manifest_list);
    tn_line_text(l, s->changelog_manifest_list);
    tn_line_maybe(l, s->total_record_count);
    tn_line_maybe(l, s->delta_record_count);
    tn_line_maybe(l, s->changelog_record_count);
    tn_line_maybe(l, s->watermark);
    return tn_line_end(l, err);
}

/* Ids from the oldest that counts; a hole is passed over. */
static tn_rc run_snapshots(struct tn_line *l, struct tn_err *err)
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

const struct tn_view tn_view_snapshots = {
    snapshots_columns, sizeof snapshots_columns / sizeof snapshots_columns[0], run_snapshots, true};

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

static tn_rc show_schema(struct tn_line *l, const struct tn_schema *s, struct tn_err *err)
{
    tn_line_number(l, s->id);
    for (uint32_t i = 0; i < s->field_count; i++) {
        tn_buf_byte(&l->text, i ? ',' : '[');
        append_field(&l->text, &s->fields[i]);
    }
    tn_buf_byte(&l->text, ']');
    tn_line_cell(l, false, false);
    append_names(&l->text, s, s->partition_keys);
    tn_line_cell(l, false, false);
    append_names(&l->text, s, s->primary_keys);
    tn_line_cell(l, false, false);
    append_options(&l->text, s);
    tn_line_cell(l, false, false);
    tn_line_text(l, s->comment);
    tn_line_time(l, TN_TYPE_TIMESTAMP_LTZ, s->time_ms);
    return tn_line_end(l, err);
}

/* Not by tn_schemas, which keeps what it reads: there may be thousands. */
static tn_rc read_schema(struct tn_line *l, int64_t id, struct tn_err *err)
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

static tn_rc run_schemas(struct tn_line *l, struct tn_err *err)
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

const struct tn_view tn_view_schemas = {
    schemas_columns, sizeof schemas_columns / sizeof schemas_columns[0], run_schemas, false};

static const char *const schema_columns[] = {"id",        "name",    "type",       "key",
                                             "partition", "default", "description"};

/* Its place among `columns`, from 1. */
static void put_place(struct tn_line *l, struct tn_columns columns, uint32_t field)
{
    for (uint32_t i = 0; i < columns.count; i++) {
        if (columns.index[i] == field) {
            tn_line_number(l, i + 1);
            return;
        }
    }
    tn_line_null(l);
}

static tn_rc run_schema(struct tn_line *l, struct tn_err *err)
{
    const struct tn_schema *s = l->in->schema;
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < s->field_count; i++) {
        const struct tn_field *field = &s->fields[i];
        char type[TN_TYPE_TEXT_SIZE];
        tn_line_number(l, field->id);
        tn_line_text(l, field->name);
        tn_line_text(l, field->type_json ? field->type_json : tn_type_format(&field->type, type));
        put_place(l, s->primary_keys, i);
        put_place(l, s->partition_keys, i);
        tn_line_text(l, field->default_value);
        tn_line_text(l, field->description);
        rc = tn_line_end(l, err);
    }
    return rc;
}

const struct tn_view tn_view_schema = {
    schema_columns, sizeof schema_columns / sizeof schema_columns[0], run_schema, false};

static const char *const options_columns[] = {"key", "value"};

static tn_rc run_options(struct tn_line *l, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < l->in->schema->option_count; i++) {
        tn_line_text(l, l->in->schema->options[i].key);
        tn_line_text(l, l->in->schema->options[i].value);
        rc = tn_line_end(l, err);
    }
    return rc;
}

const struct tn_view tn_view_options = {
    options_columns, sizeof options_columns / sizeof options_columns[0], run_options, false};
