#include "read/lookup.h"

#include "base/check.h"
#include "file/data_reader.h"
#include "file/names.h"

/* A version that was found, as a cursor of one row. */
struct version {
    struct tn_iter iter; /* first */
    struct tn_kv kv;
    bool given;
    struct version *next;
};

struct search {
    const struct tn_scan_spec *spec; /* with the key as its predicate */
    const struct tn_value *key;      /* trimmed: the order of a file's key */
    struct tn_arena *arena;
    struct tn_arena rows; /* the versions' */
    struct tn_worker *worker;
    struct tn_lookup *found;
    unsigned char *row; /* the best version's bytes */
    uint32_t row_room;
    bool newest_wins;         /* of all versions; else they are kept, and merged in the end */
    struct version *versions; /* kept */
    uint32_t kept;
    struct tn_data_reader reader;
};

/* ---- versions: the newest ---- */

/* What tn_fold does with a group, one version after the other. */
static bool beats(const struct search *s, const struct tn_kv *kv)
{
    const struct tn_kv *best = &s->found->kv;
    if (s->found->version_count == 0) {
        return true;
    }
    bool skip_best = s->spec->options->ignore_delete && tn_row_kind_retracts(best->kind);
    bool skip_this = s->spec->options->ignore_delete && tn_row_kind_retracts(kv->kind);
    return skip_best != skip_this ? skip_best : tn_kv_newer(&s->found->projection.order, kv, best);
}

/* A longer row takes the place of the one before. */
static tn_rc make_room(struct search *s, uint32_t size, struct tn_err *err)
{
    void *memory;
    tn_arena_reset(&s->rows, 0);
    s->row_room = 0;
    tn_rc rc = tn_arena_need(&s->rows, size, "a row", &memory, err);
    if (rc == TN_OK) {
        s->row = memory;
        s->row_room = size;
    }
    return rc;
}

/* The file's buffers go when it is closed, so the best row is copied. */
static tn_rc replace(struct search *s, const struct tn_kv *kv, struct tn_err *err)
{
    tn_rc rc = kv->row.size > s->row_room ? make_room(s, kv->row.size, err) : TN_OK;
    if (rc != TN_OK) {
        return rc;
    }
    memcpy(s->row, kv->row.data, kv->row.size);
    s->found->kv = *kv;
    s->found->kv.row.data = s->row;
    return TN_OK;
}

/* ---- versions: all of them ---- */

static tn_rc version_next(struct tn_iter *iter, struct tn_kv *kv, struct tn_err *err)
{
    (void)err;
    struct version *version = (struct version *)(void *)iter;
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

static tn_rc keep(struct search *s, const struct tn_kv *kv, struct tn_err *err)
{
    void *memory;
    tn_rc rc =
        tn_arena_need(&s->rows, sizeof(struct version) + kv->row.size, "a row", &memory, err);
    if (rc == TN_OK) {
        struct version *version = memory;
        unsigned char *row = (unsigned char *)(version + 1);
        memcpy(row, kv->row.data, kv->row.size);
        *version = (struct version){.iter = {&version_vtable}, .kv = *kv, .next = s->versions};
        version->kv.row.data = row;
        s->versions = version;
        s->kept++;
        s->row_room = kv->row.size > s->row_room ? kv->row.size : s->row_room;
    }
    return rc;
}

/* Bytes that a merged row may have: its parts, and what grows (listagg) within reason. */
static uint32_t merged_max(const struct search *s)
{
    enum { ROW_SHARE = 40 };
    size_t part = tn_arena_free(&s->worker->arena) / ROW_SHARE;
    return s->row_room > part ? s->row_room : (uint32_t)part;
}

static tn_rc fold_versions(struct search *s, struct tn_arena *arena, struct tn_kv *kv,
                           struct tn_err *err)
{
    struct tn_fold_spec spec = s->found->projection.fold;
    spec.row_size_max = merged_max(s);
    void *memory;
    tn_rc rc =
        tn_arena_need(arena, (s->kept + 1) * sizeof(struct tn_iter *), "versions", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_iter **iters = memory;
    uint32_t count = 0;
    for (struct version *version = s->versions; version; version = version->next) {
        iters[count++] = &version->iter;
    }
    struct tn_merge merge;
    struct tn_fold fold;
    rc = tn_merge_init(&merge, &s->found->projection.order, tn_fold_merges(&spec), iters, count,
                       arena, err);
    if (rc == TN_OK) {
        rc = tn_fold_init(&fold, &merge, &spec, arena, err);
    }
    return rc == TN_OK ? tn_iter_next(&fold.iter, kv, err) : rc;
}

/* The fold works in the worker's memory, where no file is open any more. */
static tn_rc merge_versions(struct search *s, struct tn_err *err)
{
    struct tn_arena *arena = &s->worker->arena;
    size_t mark = tn_arena_mark(arena);
    struct tn_kv kv;
    tn_rc rc = fold_versions(s, arena, &kv, err);
    void *memory = NULL;
    if (rc == TN_OK) {
        rc = tn_arena_need(&s->rows, kv.row.size, "a row", &memory, err);
    }
    if (rc == TN_OK) {
        memcpy(memory, kv.row.data, kv.row.size);
        s->found->kv = kv;
        s->found->kv.row.data = memory;
    }
    tn_arena_reset(arena, mark);
    return rc;
}

/* ---- rows ---- */

static tn_rc consider(struct search *s, const struct tn_kv *kv, struct tn_err *err)
{
    const struct tn_projection *p = &s->found->projection;
    if (tn_row_compare_values(&p->layout, p->order.keys, kv->row, s->key) != 0) {
        return TN_OK; /* the key would stand here */
    }
    bool looked_at = !s->newest_wins || p->order.sequence_fields.count > 0 || beats(s, kv);
    if (kv->bad && looked_at) {
        return tn_err_set(err, TN_CORRUPT, 0, "%s", kv->bad);
    }
    if (!tn_predicate_match(s->spec->predicate, &p->layout, p->column_of, kv->row)) {
        return TN_OK; /* it is another partition's */
    }
    tn_rc rc = TN_OK;
    if (!s->newest_wins) {
        rc = keep(s, kv, err);
    } else if (beats(s, kv)) {
        rc = replace(s, kv, err);
    }
    s->found->version_count++;
    return rc;
}

/* ---- files ---- */

static tn_rc open_file(struct search *s, const char *dir, const struct tn_level_file *file,
                       struct tn_err *err)
{
    const struct tn_schema *schema;
    const char *path = tn_arena_format(&s->worker->arena, "%s%s", dir, file->name);
    tn_rc rc = path ? tn_name_check_format(file->name, err)
                    : tn_err_set(err, TN_AGAIN, 0, "no memory for the name of %s", file->name);
    if (rc == TN_OK) {
        rc = tn_err_named(err, tn_schemas_load(s->spec->schemas, file->schema_id, &schema, err));
    }
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_data_reader_open(&s->reader, path, file->size, file->level, schema,
                             &s->found->projection.read, s->worker, err);
    s->reader.keep_bad = true; /* consider looks */
    return tn_err_named(err, rc);
}

static tn_rc look_in_file(struct search *s, const char *dir, const struct tn_level_file *file,
                          struct tn_err *err)
{
    size_t mark = tn_arena_mark(&s->worker->arena);
    tn_rc rc = open_file(s, dir, file, err);
    if (rc == TN_OK) {
        struct tn_iter *iter = &s->reader.iter;
        struct tn_kv kv;
        s->found->file_count++;
        rc = iter->vtable->seek(iter, s->key, err);
        if (rc == TN_OK) {
            rc = tn_iter_next(iter, &kv, err);
        }
        if (rc == TN_OK) {
            rc = consider(s, &kv, err);
        }
        tn_iter_close(iter);
    }
    tn_arena_reset(&s->worker->arena, mark);
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

/* No version in a file of such numbers can win any more. */
static bool decided(const struct search *s, const struct tn_level_file *next)
{
    const struct tn_kv *best = &s->found->kv;
    return s->newest_wins && s->found->version_count > 0 &&
           s->found->projection.order.sequence_fields.count == 0 &&
           !(s->spec->options->ignore_delete && tn_row_kind_retracts(best->kind)) &&
           best->sequence > next->max_sequence;
}

static tn_rc look_in_bucket(struct search *s, const struct tn_plan_bucket *bucket,
                            struct tn_err *err)
{
    const char *dir;
    size_t mark = tn_arena_mark(&s->worker->arena);
    tn_rc rc = tn_name_bucket(&s->worker->arena, s->spec->root, s->spec->schema, s->spec->options,
                              bucket->partition, bucket->number, &dir, err);
    sort_newest_first(bucket->files, bucket->file_count);
    for (uint32_t i = 0; rc == TN_OK && i < bucket->file_count; i++) {
        if (decided(s, bucket->files[i])) {
            break;
        }
        rc = look_in_file(s, dir, bucket->files[i], err);
    }
    tn_arena_reset(&s->worker->arena, mark);
    return rc;
}

static tn_rc look_everywhere(struct search *s, void *window, size_t window_size, struct tn_err *err)
{
    struct tn_plan plan;
    struct tn_plan_spec spec = {.root = s->spec->root,
                                .snapshot = s->spec->snapshot,
                                .schema = s->spec->schema,
                                .options = s->spec->options,
                                .predicate = s->spec->predicate,
                                .keys = &s->found->projection.key_types};
    tn_rc rc = tn_plan_open(&plan, &spec, window, window_size, s->arena, s->worker, err);
    while (rc == TN_OK) {
        struct tn_plan_bucket *bucket;
        rc = tn_plan_next(&plan, &bucket, err);
        if (rc == TN_OK) {
            rc = look_in_bucket(s, bucket, err);
        }
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* ---- the key ---- */

static tn_rc trim_key(struct search *s, const struct tn_value *key, struct tn_err *err)
{
    const struct tn_schema *schema = s->spec->schema;
    void *memory;
    tn_rc rc = tn_arena_need(s->arena, (schema->trimmed_keys.count + 1) * sizeof *key, "the key",
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
    s->key = trimmed;
    return TN_OK;
}

tn_rc tn_lookup(const struct tn_scan_spec *spec, const struct tn_value *key, void *window,
                size_t window_size, struct tn_arena *arena, struct tn_worker *worker,
                struct tn_lookup *lookup, struct tn_err *err)
{
    const struct tn_schema *schema = spec->schema;
    if (schema->primary_keys.count == 0) {
        return tn_err_set(err, TN_INVALID, 0, "the table has no primary key");
    }
    *lookup = (struct tn_lookup){0};
    struct tn_scan_spec own = *spec;
    struct tn_predicate *predicate = NULL;
    struct search s = {.spec = &own, .arena = arena, .worker = worker, .found = lookup};
    tn_rc rc = tn_predicate_equals(schema, schema->primary_keys, key, arena, &predicate, err);
    own.predicate = predicate;
    own.keep_deletes = false;
    if (rc == TN_OK) {
        rc = trim_key(&s, key, err);
    }
    if (rc == TN_OK) {
        rc = tn_projection_init(&lookup->projection, &own, arena, err);
    }
    size_t half = window_size / 2 & ~(size_t)63;
    tn_arena_init(&s.rows, (unsigned char *)window + half, window_size - half);
    s.newest_wins =
        !lookup->projection.fold.engine && lookup->projection.fold.mode == TN_FOLD_PLAIN;
    if (rc == TN_OK && own.snapshot) {
        rc = look_everywhere(&s, window, half, err);
    }
    if (rc == TN_OK && lookup->version_count == 0) {
        return TN_ABSENT;
    }
    if (rc == TN_OK && !s.newest_wins) {
        return merge_versions(&s, err);
    }
    return rc == TN_OK && tn_row_kind_retracts(lookup->kv.kind) ? TN_ABSENT : rc;
}
