#include "read/find.h"

#include "base/check.h"
#include "file/names.h"

/* ---- files ---- */

static tn_rc open_file(struct tn_find *f, const char *dir, const struct tn_level_file *file,
                       struct tn_err *err)
{
    const struct tn_schema *schema;
    const char *path = tn_arena_format(&f->worker->arena, "%s%s", dir, file->name);
    tn_rc rc = path ? tn_name_check_format(file->name, err)
                    : tn_err_set(err, TN_AGAIN, 0, "no memory for the name of %s", file->name);
    if (rc == TN_OK) {
        rc = tn_err_named(err, tn_schemas_load(f->spec.schemas, file->schema_id, &schema, err));
    }
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_data_reader_open(&f->reader, path, file->size, file->level, schema,
                             &f->projection->read, f->worker, err);
    f->reader.keep_bad = true; /* the taker looks */
    return tn_err_named(err, rc);
}

/* Whether the row is the key's: what was sought may stand behind the key, or be another
 * partition's. */
static bool of_key(const struct tn_find *f, const struct tn_kv *kv)
{
    const struct tn_projection *p = f->projection;
    return tn_row_compare_values(&p->layout, p->order.keys, kv->row, f->key) == 0 &&
           tn_predicate_match(f->spec.predicate, &p->layout, p->column_of, kv->row);
}

static tn_rc look_in_file(struct tn_find *f, const char *dir, const struct tn_level_file *file,
                          struct tn_err *err)
{
    size_t mark = tn_arena_mark(&f->worker->arena);
    tn_rc rc = open_file(f, dir, file, err);
    if (rc == TN_OK) {
        struct tn_iter *iter = &f->reader.iter;
        struct tn_kv kv;
        f->file_count++;
        rc = iter->vtable->seek(iter, f->key, err);
        if (rc == TN_OK) {
            rc = tn_iter_next(iter, &kv, err);
        }
        if (rc == TN_OK && of_key(f, &kv)) {
            rc = f->taker.take(f->taker.user, &kv, file, dir, err);
        }
        tn_iter_close(iter);
    }
    tn_arena_reset(&f->worker->arena, mark);
    return rc == TN_ABSENT ? TN_OK : rc;
}

static void sort_newest_first(struct tn_level_file **files, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct tn_level_file *moving = files[i];
        uint32_t at = i;
        for (; at > 0 && files[at - 1]->max_sequence < moving->max_sequence; at--) {
            files[at] = files[at - 1];
        }
        files[at] = moving;
    }
}

static tn_rc look_in_bucket(struct tn_find *f, const struct tn_plan_bucket *bucket,
                            struct tn_err *err)
{
    const char *dir;
    size_t mark = tn_arena_mark(&f->worker->arena);
    tn_rc rc = tn_name_bucket(&f->worker->arena, f->spec.root, f->spec.schema, f->spec.options,
                              bucket->partition, bucket->number, &dir, err);
    sort_newest_first(bucket->files, bucket->file_count);
    for (uint32_t i = 0; rc == TN_OK && i < bucket->file_count; i++) {
        if (f->taker.enough && f->taker.enough(f->taker.user, bucket->files[i])) {
            break;
        }
        rc = look_in_file(f, dir, bucket->files[i], err);
    }
    tn_arena_reset(&f->worker->arena, mark);
    return rc;
}

/* ---- the key ---- */

static tn_rc trim_key(struct tn_find *f, const struct tn_value *key, struct tn_err *err)
{
    const struct tn_schema *schema = f->spec.schema;
    void *memory;
    tn_rc rc = tn_arena_need(f->arena, (schema->trimmed_keys.count + 1) * sizeof *key, "the key",
                             &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_value *trimmed = memory;
    for (uint32_t i = 0; i < schema->trimmed_keys.count; i++) {
        uint32_t at = 0;
        while (schema->primary_keys.index[at] != schema->trimmed_keys.index[i]) {
            at++;
            TN_CHECK(at < schema->primary_keys.count); /* trimmed keys are primary keys */
        }
        trimmed[i] = key[at];
    }
    f->key = trimmed;
    return TN_OK;
}

tn_rc tn_find_init(struct tn_find *find, const struct tn_scan_spec *spec,
                   const struct tn_value *key, struct tn_projection *projection,
                   struct tn_arena *arena, struct tn_worker *worker, struct tn_err *err)
{
    const struct tn_schema *schema = spec->schema;
    *find =
        (struct tn_find){.spec = *spec, .projection = projection, .arena = arena, .worker = worker};
    if (schema->primary_keys.count == 0) {
        return tn_err_set(err, TN_INVALID, 0, "the table has no primary key");
    }
    struct tn_predicate *predicate = NULL;
    tn_rc rc = tn_predicate_equals(schema, schema->primary_keys, key, arena, &predicate, err);
    find->spec.predicate = predicate;
    if (rc == TN_OK) {
        rc = trim_key(find, key, err);
    }
    return rc == TN_OK ? tn_projection_init(projection, &find->spec, arena, err) : rc;
}

tn_rc tn_find_run(struct tn_find *find, void *window, size_t window_size, struct tn_err *err)
{
    struct tn_plan plan;
    struct tn_plan_spec spec = {.root = find->spec.root,
                                .snapshot = find->spec.snapshot,
                                .schema = find->spec.schema,
                                .options = find->spec.options,
                                .predicate = find->spec.predicate,
                                .keys = &find->projection->key_types,
                                .filter = find->spec.filter};
    if (!find->spec.snapshot) {
        return TN_OK;
    }
    tn_rc rc = tn_plan_open(&plan, &spec, window, window_size, find->arena, find->worker, err);
    while (rc == TN_OK) {
        struct tn_plan_bucket *bucket;
        rc = tn_plan_next(&plan, &bucket, err);
        if (rc == TN_OK) {
            rc = look_in_bucket(find, bucket, err);
        }
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* ---- versions that are kept ---- */

static tn_rc version_next(struct tn_iter *iter, struct tn_kv *kv, struct tn_err *err)
{
    (void)err;
    struct tn_find_version *version = (struct tn_find_version *)(void *)iter;
    if (version->given) {
        return TN_ABSENT;
    }
    version->given = true;
    *kv = version->kv;
    return TN_OK;
}

static void version_close(struct tn_iter *iter)
{
    (void)iter;
}

static const struct tn_iter_vtable version_vtable = {version_next, NULL, version_close, NULL};

tn_rc tn_find_keep(const struct tn_kv *kv, struct tn_arena *arena, struct tn_find_version **version,
                   struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(arena, sizeof **version + kv->row.size, "a row", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_find_version *made = memory;
    unsigned char *row = (unsigned char *)(made + 1);
    memcpy(row, kv->row.data, kv->row.size);
    *made = (struct tn_find_version){.iter = {&version_vtable}, .kv = *kv};
    made->kv.row.data = row;
    *version = made;
    return TN_OK;
}

/* Bytes that a merged row may have: its parts, and what grows (listagg) within reason. */
static uint32_t merged_max(uint32_t longest, const struct tn_arena *arena)
{
    enum { ROW_SHARE = 40 };
    size_t part = tn_arena_free(arena) / ROW_SHARE;
    return longest > part ? longest : (uint32_t)part;
}

tn_rc tn_find_fold(struct tn_find_version *versions, uint32_t count, uint32_t longest,
                   const struct tn_order *order, const struct tn_fold_spec *fold,
                   struct tn_arena *arena, struct tn_kv *kv, struct tn_err *err)
{
    struct tn_fold_spec spec = *fold;
    spec.row_size_max = merged_max(longest, arena);
    void *memory;
    tn_rc rc =
        tn_arena_need(arena, (count + 1) * sizeof(struct tn_iter *), "versions", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_iter **iters = memory;
    uint32_t given = 0;
    for (struct tn_find_version *version = versions; version; version = version->next) {
        iters[given++] = &version->iter;
    }
    struct tn_merge merge;
    struct tn_fold folded;
    rc = tn_merge_init(&merge, order, tn_fold_merges(&spec), iters, given, arena, err);
    if (rc == TN_OK) {
        rc = tn_fold_init(&folded, &merge, &spec, arena, err);
    }
    return rc == TN_OK ? tn_iter_next(&folded.iter, kv, err) : rc;
}
