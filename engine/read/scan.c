#include "read/scan.h"

#include "base/check.h"
#include "file/names.h"

/* ---- projection ---- */

struct builder {
    const struct tn_schema *schema;
    struct tn_projection *p;
    const char **names;
    struct tn_type *types;
    uint32_t count;
};

/* The column of a field, made when it is not there yet. */
static uint32_t need_field(struct builder *b, uint32_t field)
{
    if (b->p->column_of[field] < 0) {
        b->names[b->count] = b->schema->fields[field].name;
        b->types[b->count] = b->schema->fields[field].type;
        b->p->field_ids[b->count] = b->schema->fields[field].id;
        b->p->column_of[field] = (int32_t)b->count++;
    }
    return (uint32_t)b->p->column_of[field];
}

static tn_rc map_columns(struct builder *b, struct tn_columns fields, struct tn_arena *arena,
                         struct tn_columns *columns, struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(arena, (fields.count + 1) * sizeof(uint32_t), "columns", &memory, err);
    uint32_t *index = memory;
    for (uint32_t i = 0; rc == TN_OK && i < fields.count; i++) {
        index[i] = need_field(b, fields.index[i]);
    }
    if (rc == TN_OK) {
        *columns = (struct tn_columns){index, fields.count};
    }
    return rc;
}

/* Sequence fields belong to the newest schema; a snapshot's older schema knows them by id, or not
 * at all. */
static tn_rc map_sequence(struct builder *b, const struct tn_scan_spec *spec,
                          struct tn_arena *arena, struct tn_err *err)
{
    const struct tn_schema *newest;
    tn_rc rc = tn_schemas_newest(spec->schemas, &newest, err);
    void *memory;
    struct tn_columns fields = spec->options->sequence_fields;
    if (rc == TN_OK) {
        rc = tn_arena_need(arena, (fields.count + 1) * sizeof(uint32_t), "columns", &memory, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    uint32_t *index = memory;
    for (uint32_t i = 0; i < fields.count; i++) {
        int32_t id = newest->fields[fields.index[i]].id;
        uint32_t f = 0;
        while (f < spec->schema->field_count && spec->schema->fields[f].id != id) {
            f++;
        }
        if (f == spec->schema->field_count) {
            return tn_err_set(err, TN_UNSUPPORTED, 0,
                              "sequence.field '%s' is not a column of schema %lld",
                              newest->fields[fields.index[i]].name, (long long)spec->schema->id);
        }
        index[i] = need_field(b, f);
    }
    b->p->order.sequence_fields = (struct tn_columns){index, fields.count};
    return TN_OK;
}

static tn_rc map_shown(struct builder *b, const struct tn_scan_spec *spec, struct tn_arena *arena,
                       struct tn_err *err)
{
    const struct tn_schema *schema = spec->schema;
    void *memory;
    tn_rc rc =
        tn_arena_need(arena, (schema->field_count + spec->field_count + 1) * sizeof(uint32_t),
                      "columns", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    uint32_t *index = memory;
    uint32_t count = spec->fields ? spec->field_count : schema->field_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t field = spec->fields ? spec->fields[i] : i;
        if (tn_type_nested(schema->fields[field].type.kind)) {
            return tn_err_set(
                err, TN_UNSUPPORTED, 0,
                "column '%s': %s can't be read yet; name other columns with --columns",
                schema->fields[field].name, tn_type_name(schema->fields[field].type.kind));
        }
        index[i] = need_field(b, field);
    }
    b->p->columns = (struct tn_columns){index, count};
    return TN_OK;
}

static tn_rc map_predicate(struct builder *b, const struct tn_predicate *predicate,
                           struct tn_arena *arena, struct tn_err *err)
{
    if (!predicate) {
        return TN_OK;
    }
    void *memory;
    tn_rc rc = tn_arena_need(arena, b->schema->field_count * sizeof(bool), "columns", &memory, err);
    bool *used = memory;
    if (rc == TN_OK) {
        tn_predicate_fields(predicate, used);
    }
    for (uint32_t i = 0; rc == TN_OK && i < b->schema->field_count; i++) {
        if (used[i]) {
            (void)need_field(b, i);
        }
    }
    return rc;
}

/* The options by which rows are merged: those of the schema that is read, where that is an older
 * one, since they name its columns. */
static tn_rc merge_options(const struct tn_scan_spec *spec, struct tn_arena *arena,
                           const struct tn_options **options, struct tn_err *err)
{
    const struct tn_schema *newest;
    *options = spec->options;
    tn_rc rc = tn_schemas_newest(spec->schemas, &newest, err);
    if (rc != TN_OK || spec->schema->id == newest->id ||
        spec->options->merge_engine == TN_MERGE_DEDUPLICATE) {
        return rc;
    }
    void *memory;
    rc = tn_arena_need(arena, sizeof(struct tn_options), "options", &memory, err);
    if (rc == TN_OK) {
        rc = tn_options_read(spec->schema, TN_OPTIONS_READ, arena, memory, err);
        *options = memory;
    }
    return rc;
}

/* What decides over a member of a sequence group, or over the whole row, is read with it. Source:
 * Paimon, PartialUpdateMergeFunction.Factory.adjustProjection (which forgets groups that remove
 * rows). */
static void map_groups(struct builder *b, const struct tn_options *options)
{
    for (uint32_t g = 0; g < options->sequence_group_count; g++) {
        const struct tn_sequence_group *group = &options->sequence_groups[g];
        bool needed = group->removes;
        for (uint32_t f = 0; f < b->schema->field_count; f++) {
            needed =
                needed || (b->p->column_of[f] >= 0 && options->merge_fields[f].group == (int32_t)g);
        }
        for (uint32_t i = 0; needed && i < group->order.count; i++) {
            (void)need_field(b, group->order.index[i]);
        }
    }
}

static tn_rc make_fold(struct builder *b, const struct tn_scan_spec *spec,
                       const struct tn_options *options, struct tn_arena *arena, struct tn_err *err)
{
    struct tn_fold_spec *fold = &b->p->fold;
    fold->mode = tn_fold_reading(spec->options);
    fold->ignore_delete = spec->options->ignore_delete;
    fold->drop_deletes = !spec->keep_deletes;
    if (options->merge_engine == TN_MERGE_DEDUPLICATE || b->schema->primary_keys.count == 0) {
        return TN_OK;
    }
    void *memory;
    tn_rc rc = tn_arena_need(arena, (b->count + 1) * sizeof(uint32_t), "columns", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    uint32_t *fields_of = memory;
    for (uint32_t f = 0; f < b->schema->field_count; f++) {
        if (b->p->column_of[f] >= 0) {
            fields_of[b->p->column_of[f]] = f;
        }
    }
    return tn_engine_make(options, &b->p->order, fields_of, arena, &fold->engine, err);
}

static tn_rc take_builder(struct builder *b, struct tn_arena *arena, struct tn_err *err)
{
    uint32_t n = b->schema->field_count;
    void *memory;
    tn_rc rc = tn_arena_need(arena, n * (sizeof *b->names + sizeof *b->types + 2 * sizeof(int32_t)),
                             "columns", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    b->names = memory;
    b->types = (struct tn_type *)(void *)(b->names + n);
    b->p->column_of = (int32_t *)(void *)(b->types + n);
    b->p->field_ids = b->p->column_of + n;
    for (uint32_t i = 0; i < n; i++) {
        b->p->column_of[i] = -1;
    }
    return TN_OK;
}

tn_rc tn_projection_init(struct tn_projection *projection, const struct tn_scan_spec *spec,
                         struct tn_arena *arena, struct tn_err *err)
{
    *projection = (struct tn_projection){0};
    struct builder b = {.schema = spec->schema, .p = projection};
    const struct tn_options *options;
    tn_rc rc = merge_options(spec, arena, &options, err);
    if (rc == TN_OK) {
        rc = take_builder(&b, arena, err);
    }
    if (rc == TN_OK) {
        rc = map_shown(&b, spec, arena, err);
    }
    if (rc == TN_OK) {
        rc = map_columns(&b, spec->schema->trimmed_keys, arena, &projection->order.keys, err);
    }
    if (rc == TN_OK) {
        rc = map_sequence(&b, spec, arena, err);
    }
    if (rc == TN_OK) {
        rc = map_predicate(&b, spec->predicate, arena, err);
    }
    if (rc == TN_OK) {
        map_groups(&b, options);
        rc = tn_row_layout_init(&projection->layout, b.names, b.types, b.count, arena, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    projection->order.layout = &projection->layout;
    projection->order.sequence_descending = spec->options->sequence_descending;
    projection->order.prefix_decides =
        projection->order.keys.count > 0 &&
        tn_row_prefix_decides(&projection->layout, projection->order.keys);
    projection->read =
        (struct tn_read_spec){&projection->layout, projection->field_ids, projection->order.keys};
    rc = tn_key_types_init(&projection->key_types, spec->schema, arena, err);
    return rc == TN_OK ? make_fold(&b, spec, options, arena, err) : rc;
}

/* ---- scan ---- */

static bool keyed(const struct tn_scan *scan)
{
    return scan->spec.schema->primary_keys.count > 0;
}

tn_rc tn_scan_open(struct tn_scan *scan, const struct tn_scan_spec *spec, void *window,
                   size_t window_size, struct tn_arena *arena, struct tn_worker *worker,
                   struct tn_err *err)
{
    *scan = (struct tn_scan){.spec = *spec, .worker = worker};
    tn_rc rc = tn_projection_init(&scan->projection, spec, arena, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_plan_spec plan = {.root = spec->root,
                                .snapshot = spec->snapshot,
                                .schema = spec->schema,
                                .options = spec->options,
                                .predicate = spec->predicate,
                                .keys = &scan->projection.key_types,
                                .filter = spec->filter};
    tn_scratch_init(&scan->scratch, &scan->cursor_spec, spec->schemas, &scan->plan.heap, arena,
                    worker);
    return tn_plan_open(&scan->plan, &plan, window, window_size, arena, worker, err);
}

static void close_section(struct tn_scan *scan)
{
    if (!scan->rows) {
        return;
    }
    if (keyed(scan)) {
        tn_cursor_close(&scan->cursor);
    } else {
        tn_iter_close(scan->rows);
        tn_arena_reset(&scan->worker->arena, scan->bucket_mark);
    }
    scan->rows = NULL;
}

/* Append files in the order of their rows' numbers. */
static void sort_by_sequence(struct tn_level_file **files, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct tn_level_file *moving = files[i];
        uint32_t at = i;
        for (; at > 0 && files[at - 1]->min_sequence > moving->min_sequence; at--) {
            files[at] = files[at - 1];
        }
        files[at] = moving;
    }
}

static tn_rc check_file(struct tn_scan *scan, const struct tn_level_file *file, struct tn_err *err)
{
    const struct tn_schema *ignored;
    tn_rc rc = tn_name_check_format(file->name, err);
    if (rc == TN_OK) {
        rc = tn_err_named(err, tn_schemas_load(scan->spec.schemas, file->schema_id, &ignored, err));
    }
    return rc;
}

/* Back to where the worker's arena was before the bucket. */
static void end_bucket(struct tn_scan *scan)
{
    if (scan->bucket) {
        tn_arena_reset(&scan->worker->arena, scan->base_mark);
        scan->bucket = NULL;
    }
}

static tn_rc begin_bucket(struct tn_scan *scan, struct tn_err *err)
{
    struct tn_plan_bucket *bucket;
    tn_rc rc = tn_plan_next(&scan->plan, &bucket, err);
    if (rc != TN_OK) {
        return rc;
    }
    for (uint32_t i = 0; rc == TN_OK && i < bucket->file_count; i++) {
        rc = check_file(scan, bucket->files[i], err);
    }
    scan->base_mark = tn_arena_mark(&scan->worker->arena);
    if (rc == TN_OK) {
        rc = tn_name_bucket(&scan->worker->arena, scan->spec.root, scan->spec.schema,
                            scan->spec.options, bucket->partition, bucket->number, &scan->dir, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    scan->bucket_mark = tn_arena_mark(&scan->worker->arena);
    scan->bucket = bucket;
    scan->file_at = 0;
    if (keyed(scan)) {
        tn_files_sort(&scan->projection.key_types, bucket->files, bucket->file_count);
    } else {
        sort_by_sequence(bucket->files, bucket->file_count);
    }
    return TN_OK;
}

/* The section's files that scratch files stand for leave the bucket's list. */
static tn_rc reduce_section(struct tn_scan *scan, uint32_t *count, struct tn_err *err)
{
    struct tn_plan_bucket *bucket = scan->bucket;
    uint32_t before = *count;
    struct tn_level_file **files = bucket->files + scan->file_at;
    tn_rc rc = tn_scratch_reduce(&scan->scratch, files, count, err);
    uint32_t behind = bucket->file_count - scan->file_at - before;
    memmove(files + *count, files + before, behind * sizeof(struct tn_level_file *));
    bucket->file_count -= before - *count;
    return rc;
}

static tn_rc open_merged(struct tn_scan *scan, struct tn_err *err)
{
    struct tn_plan_bucket *bucket = scan->bucket;
    scan->cursor_spec = (struct tn_cursor_spec){.order = &scan->projection.order,
                                                .read = &scan->projection.read,
                                                .schemas = scan->spec.schemas,
                                                .keys = &scan->projection.key_types,
                                                .dir = scan->dir,
                                                .fold = scan->projection.fold};
    uint32_t count = tn_files_section(&scan->projection.key_types, bucket->files,
                                      bucket->file_count, scan->file_at);
    scan->section_at = scan->file_at;
    scan->section_rows = 0;
    tn_rc rc = TN_AGAIN;
    for (bool more = true; rc == TN_AGAIN && more;) {
        rc = reduce_section(scan, &count, err);
        if (rc != TN_OK) {
            return rc;
        }
        rc = tn_cursor_open(&scan->cursor, &scan->cursor_spec, bucket->files + scan->file_at, count,
                            NULL, scan->worker, err);
        more = rc == TN_AGAIN && tn_scratch_fewer(&scan->scratch, scan->cursor.run_count);
    }
    if (rc == TN_OK) {
        scan->file_at += count;
        scan->rows = &scan->cursor.fold.iter;
    }
    return rc;
}

static tn_rc open_plain(struct tn_scan *scan, struct tn_err *err)
{
    const struct tn_level_file *file = scan->bucket->files[scan->file_at];
    struct tn_arena *arena = &scan->worker->arena;
    const char *path = tn_arena_format(arena, "%s%s", scan->dir, file->name);
    size_t size = tn_arena_free(arena);
    void *memory = path && size > 64 ? tn_arena_take_raw(arena, size - 64) : NULL;
    if (!memory) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory to read %s", file->name);
    }
    struct tn_arena own;
    tn_arena_init(&own, memory, size - 64);
    scan->run_file = (struct tn_run_file){path, file->size, file->row_count, file->level,
                                          tn_schemas_find(scan->spec.schemas, file->schema_id)};
    tn_run_reader_init(&scan->run, &scan->run_file, 1, &scan->projection.read, scan->worker, own);
    scan->file_at++;
    scan->rows = &scan->run.iter;
    return TN_OK;
}

/* The next section of the bucket at hand, or the next bucket. */
static tn_rc open_section(struct tn_scan *scan, struct tn_err *err)
{
    while (!scan->bucket || scan->file_at == scan->bucket->file_count) {
        end_bucket(scan);
        tn_rc rc = begin_bucket(scan, err);
        if (rc != TN_OK) {
            return rc;
        }
    }
    return keyed(scan) ? open_merged(scan, err) : open_plain(scan, err);
}

/* The section from its start, with its files made fewer, and behind the rows that were read. */
static tn_rc begin_again(struct tn_scan *scan, uint64_t passed, struct tn_err *err)
{
    close_section(scan);
    scan->file_at = scan->section_at;
    tn_rc rc = open_merged(scan, err);
    for (uint64_t i = 0; rc == TN_OK && i < passed; i++) {
        struct tn_kv ignored;
        rc = tn_iter_next(scan->rows, &ignored, err);
    }
    return rc;
}

/* The next row. Memory may turn out to be short in the middle of a section. */
static tn_rc next_of_section(struct tn_scan *scan, struct tn_kv *kv, struct tn_err *err)
{
    uint64_t passed = scan->section_rows;
    tn_rc rc = tn_iter_next(scan->rows, kv, err);
    while (rc == TN_AGAIN && scan->rows && keyed(scan) &&
           tn_scratch_fewer(&scan->scratch, scan->cursor.run_count)) {
        rc = begin_again(scan, passed, err);
        rc = rc == TN_OK ? tn_iter_next(scan->rows, kv, err) : rc;
    }
    scan->section_rows = passed + (rc == TN_OK);
    return rc;
}

static bool matches(const struct tn_scan *scan, struct tn_row row)
{
    return !scan->spec.predicate ||
           tn_predicate_match(scan->spec.predicate, &scan->projection.layout,
                              scan->projection.column_of, row);
}

tn_rc tn_scan_next(struct tn_scan *scan, struct tn_kv *kv, struct tn_err *err)
{
    for (;;) {
        if (!scan->rows) {
            tn_rc rc = open_section(scan, err);
            if (rc != TN_OK) {
                return rc;
            }
        }
        tn_rc rc = next_of_section(scan, kv, err);
        if (rc == TN_ABSENT) {
            close_section(scan);
        } else if (rc != TN_OK) {
            return rc;
        } else {
            scan->rows_read++;
            if (matches(scan, kv->row)) {
                return TN_OK;
            }
        }
    }
}

void tn_scan_close(struct tn_scan *scan)
{
    close_section(scan);
    end_bucket(scan);
    tn_scratch_close(&scan->scratch);
}
