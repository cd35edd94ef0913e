#include <inttypes.h>

#include "file/names.h"
#include "table/fsck_private.h"

enum { KEY_ID_FIRST = 0x3fffffff }; /* Paimon: SpecialFields.KEY_FIELD_ID_START */

static void *need(struct tn_fsck *f, size_t count, size_t size, struct tn_err *err)
{
    void *memory = NULL;
    if (tn_arena_need(f->spec->arena, count * size + 1, "fsck: a schema", &memory, err) != TN_OK) {
        (void)tn_fsck_stop(f, TN_AGAIN);
    }
    return memory;
}

static tn_rc read_schema(struct tn_fsck *f, const char *path, struct tn_schema *schema,
                         struct tn_err *err)
{
    struct tn_bytes json;
    size_t mark = tn_arena_mark(&f->worker->arena);
    tn_rc rc = tn_io_read_all(f->io, path, TN_SCHEMA_SIZE_MAX, &f->worker->arena, &json, err);
    if (rc == TN_OK) {
        rc = tn_schema_decode(json, f->spec->arena, schema, err);
    }
    tn_arena_reset(&f->worker->arena, mark);
    return rc;
}

/* ---- the newest schema: what partitions and keys are made of ---- */

static tn_rc take_types(struct tn_fsck *f, const struct tn_schema *schema,
                        struct tn_columns columns, struct tn_type **types, struct tn_err *err)
{
    *types = need(f, columns.count, sizeof **types, err);
    for (uint32_t i = 0; *types && i < columns.count; i++) {
        (*types)[i] = schema->fields[columns.index[i]].type;
    }
    return *types ? TN_OK : TN_AGAIN;
}

static void note_buckets(struct tn_fsck *f)
{
    const char *bucket = tn_schema_option(&f->newest, "bucket");
    bool none = !bucket || strcmp(bucket, "-1") == 0;
    f->unaware = f->options.bucket < 0 && none;
    f->by_row = f->options.bucket < 0 && !none;
}

/* Decoding mends a highestFieldId that is too small; the next column that Paimon adds would get an
 * id that is taken. */
static tn_rc check_highest(struct tn_fsck *f, const char *path, struct tn_err *err)
{
    struct tn_arena *arena = &f->worker->arena;
    size_t mark = tn_arena_mark(arena);
    struct tn_bytes text;
    struct cJSON *json = NULL;
    int64_t said = INT64_MAX;
    int32_t real = -1;
    tn_rc rc = tn_io_read_all(f->io, path, TN_SCHEMA_SIZE_MAX, arena, &text, err);
    rc = rc == TN_OK ? tn_json_open(text, arena, &json, err) : rc;
    if (rc == TN_OK) {
        (void)tn_json_i64(tn_json_member(json, "highestFieldId"), &said);
        tn_json_close(json);
    }
    for (uint32_t i = 0; i < f->newest.field_count; i++) {
        real = f->newest.fields[i].id > real ? f->newest.fields[i].id : real;
    }
    tn_arena_reset(arena, mark);
    if (rc != TN_OK) {
        return tn_fsck_damage(f, path, NULL, rc, err);
    }
    return said < real
               ? tn_fsck_problem(f, err, path, "highestFieldId %" PRId64 " below field id %" PRId32,
                                 said, real)
               : TN_OK;
}

/* Goes through all versions; the last good one stays. */
static tn_rc check_schema(struct tn_fsck *f, int64_t id, bool *good, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&f->worker->arena);
    const char *path = tn_name_numbered(&f->worker->arena, f->home, TN_DIR_SCHEMA, "schema-", id);
    if (!path) {
        return tn_fsck_no_path(f, err);
    }
    tn_arena_reset(f->spec->arena, f->schema_mark);
    tn_rc rc = tn_fsck_reach(f, path, err);
    if (rc == TN_OK) {
        rc = read_schema(f, path, &f->newest, err);
        *good = rc == TN_OK;
        rc = tn_fsck_damage(f, path, NULL, rc, err);
    }
    if (*good && rc == TN_OK && f->newest.id != id) {
        rc = tn_fsck_problem(f, err, path, "holds id %" PRId64, f->newest.id);
    }
    if (*good && rc == TN_OK) {
        rc = check_highest(f, path, err);
    }
    for (uint32_t i = 0; *good && rc == TN_OK && i < f->newest.primary_keys.count; i++) {
        const struct tn_field *key = &f->newest.fields[f->newest.primary_keys.index[i]];
        if (key->type.nullable) {
            rc = tn_fsck_problem(f, err, path, "nullable primary key %s", key->name);
        }
    }
    tn_arena_reset(&f->worker->arena, mark);
    return rc;
}

static tn_rc check_schemas(struct tn_fsck *f, int64_t *newest, struct tn_err *err)
{
    int64_t id = -1;
    *newest = -1;
    for (;;) {
        int64_t next;
        bool good = false;
        tn_rc rc = tn_fsck_next_number(f, TN_DIR_SCHEMA, "schema-", id, &next, err);
        if (rc != TN_OK || next < 0) {
            return rc;
        }
        if (id >= 0 && next != id + 1) {
            rc = tn_fsck_note(f, err, f->home, "schema ids jump from %" PRId64 " to %" PRId64, id,
                              next);
        }
        if (rc == TN_OK) {
            rc = check_schema(f, next, &good, err);
        }
        if (rc != TN_OK) {
            return rc;
        }
        *newest = good ? next : *newest;
        id = next;
    }
}

/* Readers find out by themselves; here it would look like damage. */
static tn_rc check_manifest_format(const struct tn_fsck *f, struct tn_err *err)
{
    const char *format = tn_schema_option(&f->newest, "manifest.format");
    return !format || strcmp(format, "avro") == 0
               ? TN_OK
               : tn_err_set(err, TN_UNSUPPORTED, 0, "%s manifests are not read by this build",
                            format);
}

tn_rc tn_fsck_newest(struct tn_fsck *f, struct tn_err *err)
{
    int64_t id;
    bool good = false;
    f->plan = (struct tn_fsck_plan){0};
    tn_rc rc = check_schemas(f, &id, err);
    f->readable = rc == TN_OK && id >= 0;
    if (rc == TN_OK && id < 0) {
        bool table = f->home == f->root && f->result->problems == 0;
        return table ? tn_fsck_stop(f, tn_err_set(err, TN_ABSENT, 0, "there is no such table"))
                     : tn_fsck_problem(f, err, f->home, "no schema that can be read");
    }
    rc = rc != TN_OK ? rc : check_schema(f, id, &good, err); /* findings come once */
    if (rc == TN_OK) {
        rc = tn_options_read(&f->newest, TN_OPTIONS_READ, f->spec->arena, &f->options, err);
    }
    if (rc == TN_OK) {
        rc = check_manifest_format(f, err);
    }
    if (rc == TN_OK) {
        rc = take_types(f, &f->newest, f->newest.trimmed_keys, &f->key_types, err);
    }
    if (rc == TN_OK) {
        rc = take_types(f, &f->newest, f->newest.partition_keys, &f->partition_types, err);
    }
    if (rc == TN_OK) {
        f->keyed = f->newest.primary_keys.count > 0;
        note_buckets(f);
        f->plan_mark = tn_arena_mark(f->spec->arena);
    }
    return tn_fsck_stop(f, rc);
}

/* ---- a schema that files were written with ---- */

/* The fields of a record in a file of a primary-key table, less the system's two. */
static tn_rc widen(struct tn_fsck *f, struct tn_fsck_plan *p, struct tn_err *err)
{
    uint32_t keys = p->schema.trimmed_keys.count;
    struct tn_field *fields = need(f, p->schema.field_count + keys, sizeof *fields, err);
    if (!fields) {
        return TN_AGAIN;
    }
    memcpy(fields, p->schema.fields, p->schema.field_count * sizeof *fields);
    for (uint32_t i = 0; i < keys; i++) {
        struct tn_field *field = &fields[p->schema.field_count + i];
        *field = p->schema.fields[p->schema.trimmed_keys.index[i]];
        field->id = KEY_ID_FIRST + (int32_t)i;
        field->name = tn_arena_format(f->spec->arena, "_KEY_%s", field->name);
        field->type.nullable = true; /* thin files lack them */
        if (!field->name) {
            return tn_fsck_no_path(f, err);
        }
    }
    p->wide = p->schema;
    p->wide.fields = fields;
    p->wide.field_count += keys;
    return TN_OK;
}

/* Fields as columns of the layout. CORRUPT for a nested one, which nothing here may be. */
static tn_rc map(struct tn_fsck *f, struct tn_fsck_plan *p, struct tn_columns fields,
                 struct tn_columns *columns, struct tn_err *err)
{
    uint32_t *index = need(f, fields.count, sizeof *index, err);
    if (!index) {
        return TN_AGAIN;
    }
    for (uint32_t i = 0; i < fields.count; i++) {
        int32_t column = p->column_of[fields.index[i]];
        if (column < 0) {
            return tn_err_set(err, TN_CORRUPT, 0, "key column %s is nested",
                              p->wide.fields[fields.index[i]].name);
        }
        index[i] = (uint32_t)column;
    }
    *columns = (struct tn_columns){index, fields.count};
    return TN_OK;
}

static tn_rc map_not_null(struct tn_fsck *f, struct tn_fsck_plan *p, struct tn_err *err)
{
    uint32_t *index = need(f, p->schema.field_count, sizeof *index, err);
    uint32_t count = 0;
    for (uint32_t i = 0; index && i < p->schema.field_count; i++) {
        if (!p->schema.fields[i].type.nullable && p->column_of[i] >= 0) {
            index[count++] = (uint32_t)p->column_of[i];
        }
    }
    p->not_null = (struct tn_columns){index, count};
    return index ? TN_OK : TN_AGAIN;
}

static tn_rc map_copies(struct tn_fsck *f, struct tn_fsck_plan *p, struct tn_err *err)
{
    uint32_t count = p->schema.trimmed_keys.count;
    uint32_t *fields = need(f, count, sizeof *fields, err);
    for (uint32_t i = 0; fields && i < count; i++) {
        fields[i] = p->schema.field_count + i;
    }
    return fields ? map(f, p, (struct tn_columns){fields, count}, &p->copies, err) : TN_AGAIN;
}

static tn_rc map_all(struct tn_fsck *f, struct tn_fsck_plan *p, struct tn_err *err)
{
    tn_rc rc = map(f, p, p->schema.trimmed_keys, &p->keys, err);
    rc = rc != TN_OK ? rc : map_copies(f, p, err);
    rc = rc != TN_OK ? rc : map(f, p, p->schema.partition_keys, &p->partition, err);
    rc = rc != TN_OK ? rc : map(f, p, p->options.bucket_key, &p->bucket_key, err);
    rc = rc != TN_OK ? rc : map_not_null(f, p, err);
    rc = rc != TN_OK ? rc : take_types(f, &p->schema, p->schema.trimmed_keys, &p->key_types, err);
    return rc != TN_OK
               ? rc
               : take_types(f, &p->schema, p->schema.partition_keys, &p->partition_types, err);
}

static tn_rc make(struct tn_fsck *f, struct tn_fsck_plan *p, struct tn_err *err)
{
    struct tn_arena *arena = f->spec->arena;
    uint32_t *field_of = NULL;
    tn_rc rc = tn_options_read(&p->schema, TN_OPTIONS_READ, arena, &p->options, err);
    rc = rc != TN_OK ? rc : widen(f, p, err);
    rc = rc != TN_OK ? rc
                     : tn_schema_layout(&p->wide, &p->layout, &field_of, &p->column_of, arena, err);
    rc = rc != TN_OK ? rc : map_all(f, p, err);
    if (rc != TN_OK) {
        return rc;
    }
    int32_t *ids = need(f, p->layout.column_count, sizeof *ids, err);
    for (uint32_t i = 0; ids && i < p->layout.column_count; i++) {
        ids[i] = p->wide.fields[field_of[i]].id;
    }
    p->read = (struct tn_read_spec){&p->layout, ids, p->keys};
    return ids ? TN_OK : TN_AGAIN;
}

tn_rc tn_fsck_plan(struct tn_fsck *f, int64_t schema_id, struct tn_err *err)
{
    struct tn_fsck_plan *p = &f->plan;
    if (p->tried && p->id == schema_id) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(&f->worker->arena);
    tn_arena_reset(f->spec->arena, f->plan_mark);
    *p = (struct tn_fsck_plan){.tried = true, .id = schema_id};
    const char *path =
        tn_name_numbered(&f->worker->arena, f->home, TN_DIR_SCHEMA, "schema-", schema_id);
    if (!path) {
        return tn_fsck_no_path(f, err);
    }
    tn_rc rc = read_schema(f, path, &p->schema, err);
    rc = rc != TN_OK ? rc : make(f, p, err);
    p->good = rc == TN_OK;
    rc = tn_fsck_damage(f, path, NULL, rc, err);
    tn_arena_reset(&f->worker->arena, mark);
    return rc;
}
