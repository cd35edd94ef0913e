#include <inttypes.h>

#include "file/data_key.h"
#include "file/data_reader.h"
#include "file/names.h"
#include "table/fsck_private.h"
#include "write/route.h"

enum {
    ENTRY_SIZE_MAX = 64 * 1024, /* no record of a manifest may be larger (manifest.h) */
    ROUTE_SIZE = 16 * 1024,
    KEY_TEXT_SIZE = 256,
    LAST_KEY_SIZE = 4096, /* bytes of keys to begin with */
};

/* One file while it is read. */
struct scan {
    struct tn_fsck *f;
    const struct tn_entry *entry;
    const struct tn_file_meta *file;
    const struct tn_fsck_plan *plan;
    const char *path;
    bool changelog;
    struct tn_data_reader reader;
    struct tn_fsck_claim *claims; /* value columns, then keys */
    uint32_t claim_count;
    struct tn_value *partition;
    struct tn_route_spec route; /* bucket_count 0: not checked */
    struct tn_buf scratch;
    unsigned char *last; /* the row before, or its key */
    uint32_t last_size;
    uint32_t last_capacity;
    uint64_t last_prefix;
    int64_t rows;
    int64_t retracts;
    int64_t min_sequence;
    int64_t max_sequence;
    uint64_t wrong_buckets;
    int32_t wrong_bucket;
    char wrong_key[KEY_TEXT_SIZE];
    int64_t key_differs; /* a row, from 1; likewise those below */
    int64_t key_null;
    int64_t null_row;
    const char *null_column;
    bool thin;
    bool unsorted;
    bool repeated;
    bool other_partition;
    bool min_key_differs;
    char min_key[KEY_TEXT_SIZE]; /* of the first row */
};

static void *need(struct scan *s, size_t size, struct tn_err *err)
{
    void *memory = NULL;
    return tn_arena_need(&s->f->worker->arena, size + 1, s->path, &memory, err) == TN_OK ? memory
                                                                                         : NULL;
}

static void key_text(const struct tn_fsck_plan *plan, struct tn_columns columns, struct tn_row row,
                     char text[KEY_TEXT_SIZE])
{
    struct tn_buf buf;
    tn_buf_init(&buf, text, KEY_TEXT_SIZE - 1);
    tn_row_format_json(&plan->layout, &columns, row, &buf);
    text[buf.size] = 0; /* a long one is cut */
}

/* ---- rows ---- */

static void check_copies(struct scan *s, struct tn_row row)
{
    const struct tn_row_layout *layout = &s->plan->layout;
    for (uint32_t i = 0; i < s->plan->copies.count; i++) {
        uint32_t copy = s->plan->copies.index[i];
        uint32_t column = s->plan->keys.index[i];
        if (s->rows == 1 && i == 0) {
            s->thin = tn_row_null(row, copy);
        }
        if (tn_row_null(row, copy) != s->thin) {
            s->key_null = s->key_null ? s->key_null : s->rows;
            continue;
        }
        const struct tn_column *a = &layout->columns[copy];
        const struct tn_column *b = &layout->columns[column];
        bool same =
            s->thin || (a->slot == TN_SLOT_BYTES
                            ? tn_bytes_equal(tn_row_bytes(layout, row, copy),
                                             tn_row_bytes(layout, row, column))
                            : memcmp(row.data + a->offset, row.data + b->offset, a->width) == 0);
        if (!same && !s->key_differs) {
            s->key_differs = s->rows;
        }
    }
}

/* Whether the first or the last row has the key that the manifest says. */
static bool key_is(struct scan *s, struct tn_bytes key, struct tn_row row)
{
    struct tn_err ignored;
    struct tn_arena *arena = &s->f->worker->arena;
    size_t mark = tn_arena_mark(arena);
    struct tn_value *values = tn_arena_take(arena, s->plan->keys.count * sizeof *values + 1);
    bool same = values &&
                tn_binary_to_values(key, s->plan->key_types, s->plan->keys.count, values,
                                    &ignored) == TN_OK &&
                tn_row_compare_values(&s->plan->layout, s->plan->keys, row, values) == 0;
    tn_arena_reset(arena, mark);
    return same;
}

static void check_order(struct scan *s, const struct tn_kv *kv)
{
    if (s->rows == 1) {
        s->min_key_differs = !key_is(s, s->file->min_key, kv->row);
        key_text(s->plan, s->plan->keys, kv->row, s->min_key);
        return;
    }
    if (s->last_prefix < kv->prefix) {
        return;
    }
    int order = 1;
    if (s->last_prefix == kv->prefix) {
        struct tn_row last = {s->last, s->last_size};
        order = tn_row_compare(&s->plan->layout, s->plan->keys, last, kv->row);
    }
    s->unsorted = s->unsorted || order > 0;
    s->repeated = s->repeated || order == 0;
}

static tn_rc keep_last(struct scan *s, const struct tn_kv *kv, struct tn_err *err)
{
    const struct tn_row_layout *layout = &s->plan->layout;
    uint32_t size = kv->row.size;
    if (size > s->last_capacity) { /* long: its key alone */
        size = layout->fixed_size + tn_data_key_size(layout, s->plan->keys, kv->row);
    }
    if (size > s->last_capacity) {
        s->last = need(s, size, err);
        if (!s->last) {
            return TN_AGAIN;
        }
        s->last_capacity = size;
    }
    if (size == kv->row.size) {
        memcpy(s->last, kv->row.data, size);
    } else {
        (void)tn_data_key_copy(layout, s->plan->keys, kv->row, s->last);
    }
    s->last_size = size;
    s->last_prefix = kv->prefix;
    return TN_OK;
}

static tn_rc check_keyed(struct scan *s, const struct tn_kv *kv, struct tn_err *err)
{
    s->retracts += tn_row_kind_retracts(kv->kind);
    s->min_sequence =
        s->rows == 1 || kv->sequence < s->min_sequence ? kv->sequence : s->min_sequence;
    s->max_sequence =
        s->rows == 1 || kv->sequence > s->max_sequence ? kv->sequence : s->max_sequence;
    check_copies(s, kv->row);
    check_order(s, kv);
    return keep_last(s, kv, err);
}

static tn_rc check_bucket(struct scan *s, struct tn_row row, struct tn_err *err)
{
    struct tn_route route;
    tn_rc rc = tn_route(&s->route, row, &s->scratch, &route, err);
    if (rc != TN_OK || route.bucket == s->entry->bucket) {
        return rc;
    }
    if (s->wrong_buckets++ == 0) {
        s->wrong_bucket = route.bucket;
        key_text(s->plan, s->plan->bucket_key, row, s->wrong_key);
    }
    return TN_OK;
}

static tn_rc check_row(struct scan *s, const struct tn_kv *kv, struct tn_err *err)
{
    const struct tn_fsck_plan *plan = s->plan;
    s->rows++;
    for (uint32_t i = 0; i < plan->not_null.count; i++) {
        uint32_t column = plan->not_null.index[i];
        if (tn_row_null(kv->row, column) && !s->null_column) {
            s->null_column = plan->layout.columns[column].name;
            s->null_row = s->rows;
        }
    }
    for (uint32_t i = 0; i < s->claim_count; i++) {
        struct tn_value value;
        if (!s->claims[i].nested) {
            tn_row_get(&plan->layout, kv->row, s->claims[i].column, &value);
            tn_fsck_claim_add(&s->claims[i], &value);
        }
    }
    if (plan->partition.count > 0 && !s->other_partition) {
        s->other_partition =
            tn_row_compare_values(&plan->layout, plan->partition, kv->row, s->partition) != 0;
    }
    tn_rc rc = s->route.bucket_count > 0 ? check_bucket(s, kv->row, err) : TN_OK;
    return rc == TN_OK && s->f->keyed ? check_keyed(s, kv, err) : rc;
}

/* ---- before: what the manifest claims ---- */

/* The columns that the file has statistics of; false for a name that is no column. */
static bool value_claims(struct scan *s, struct tn_fsck_claim *claims, uint32_t *count)
{
    const struct tn_schema *schema = &s->plan->schema;
    const struct tn_texts *names = &s->file->value_stats_cols;
    uint32_t wanted = names->present ? names->count : schema->field_count;
    if (wanted > schema->field_count) {
        return false;
    }
    for (uint32_t i = 0; i < wanted; i++) {
        int32_t field =
            names->present ? tn_schema_find(schema, tn_bytes_of(names->items[i])) : (int32_t)i;
        if (field < 0) {
            return false;
        }
        int32_t column = s->plan->column_of[field];
        claims[i] = (struct tn_fsck_claim){.type = schema->fields[field].type,
                                           .kind = "statistics",
                                           .name = schema->fields[field].name,
                                           .column = column < 0 ? 0 : (uint32_t)column,
                                           .nested = column < 0};
    }
    *count = wanted;
    return true;
}

static void key_claims(struct scan *s, struct tn_fsck_claim *claims)
{
    for (uint32_t i = 0; i < s->plan->keys.count; i++) {
        uint32_t column = s->plan->keys.index[i];
        claims[i] = (struct tn_fsck_claim){.type = s->plan->layout.columns[column].type,
                                           .kind = "key statistics",
                                           .name = s->plan->layout.columns[column].name,
                                           .column = column};
    }
}

static tn_rc load_claims(struct scan *s, struct tn_err *err)
{
    struct tn_fsck *f = s->f;
    uint32_t values = s->plan->schema.field_count;
    uint32_t keys = f->keyed ? s->plan->keys.count : 0;
    s->claims = need(s, (values + keys) * sizeof *s->claims, err);
    struct tn_type *types = need(s, (values + keys) * sizeof *types, err);
    struct tn_value *bounds = need(s, 2 * (values + keys) * sizeof *bounds, err);
    if (!s->claims || !types || !bounds) {
        return TN_AGAIN;
    }
    tn_rc rc = TN_OK;
    if (!value_claims(s, s->claims, &s->claim_count)) {
        rc = tn_fsck_problem(f, err, s->path,
                             "value statistics of columns that schema %" PRId64 " doesn't have",
                             s->plan->id);
    } else if (!tn_fsck_claims_load(s->claims, s->claim_count, &s->file->value_stats, types, bounds,
                                    err)) {
        s->claim_count = 0;
        rc = tn_fsck_damage(f, s->path, "value statistics", TN_CORRUPT, err);
    }
    if (rc != TN_OK || keys == 0) {
        return tn_fsck_stop(f, rc);
    }
    key_claims(s, s->claims + s->claim_count);
    if (tn_fsck_claims_load(s->claims + s->claim_count, keys, &s->file->key_stats, types, bounds,
                            err)) {
        s->claim_count += keys;
        return TN_OK;
    }
    return tn_fsck_damage(f, s->path, "key statistics", TN_CORRUPT, err);
}

static tn_rc load_partition(struct scan *s, struct tn_err *err)
{
    uint32_t count = s->plan->partition.count;
    s->partition = need(s, count * sizeof *s->partition, err);
    return s->partition ? tn_binary_to_values(s->entry->partition, s->plan->partition_types, count,
                                              s->partition, err)
                        : TN_AGAIN;
}

/* The number of buckets, and which of them the rows must be in. */
static tn_rc load_buckets(struct scan *s, struct tn_err *err)
{
    struct tn_fsck *f = s->f;
    int32_t total = s->entry->total_buckets;
    int32_t bucket = s->entry->bucket;
    if (f->by_row) {
        return TN_OK;
    }
    if (f->unaware) {
        tn_rc rc = total != -1 ? tn_fsck_problem(f, err, s->path,
                                                 "totalBuckets %" PRId32
                                                 " in a table without buckets, not -1",
                                                 total)
                               : TN_OK;
        return rc == TN_OK && bucket != 0
                   ? tn_fsck_problem(f, err, s->path,
                                     "bucket %" PRId32 " in a table without buckets", bucket)
                   : rc;
    }
    if (total <= 0) {
        return tn_fsck_problem(f, err, s->path, "totalBuckets %" PRId32, total);
    }
    if (bucket < 0 || bucket >= total) {
        return tn_fsck_problem(f, err, s->path, "bucket %" PRId32 " of %" PRId32, bucket, total);
    }
    /* A bucket key that is no part of a key may have had another type, and other buckets. */
    bool steady = f->newest.trimmed_keys.count > 0 || f->newest.id == 0;
    if (s->plan->bucket_key.count > 0 && steady) {
        s->route = (struct tn_route_spec){.layout = &s->plan->layout,
                                          .bucket_key = s->plan->bucket_key,
                                          .bucket_count = total,
                                          .function = s->plan->options.bucket_function};
    }
    void *memory = need(s, ROUTE_SIZE, err);
    tn_buf_init(&s->scratch, memory, ROUTE_SIZE);
    return memory ? TN_OK : TN_AGAIN;
}

/* ---- after: what was seen ---- */

static tn_rc check_keys(struct scan *s, struct tn_err *err)
{
    struct tn_fsck *f = s->f;
    const struct tn_file_meta *file = s->file;
    struct tn_row last = {s->last, s->last_size};
    char text[KEY_TEXT_SIZE];
    tn_rc rc = TN_OK;
    if (s->key_null) {
        rc = tn_fsck_problem(f, err, s->path, "row %" PRId64 " has null in its key", s->key_null);
    }
    if (rc == TN_OK && s->key_differs) {
        rc = tn_fsck_problem(f, err, s->path,
                             "row %" PRId64 ": a _KEY_ column differs from the value column",
                             s->key_differs);
    }
    if (rc == TN_OK && s->unsorted) {
        rc = tn_fsck_problem(f, err, s->path, "keys are not sorted");
    }
    if (rc == TN_OK && s->repeated && !s->changelog) {
        rc = tn_fsck_problem(f, err, s->path, "a key twice in one file");
    }
    if (rc == TN_OK && s->min_key_differs) {
        rc = tn_fsck_problem(f, err, s->path, "min key is not that of the first row, %s",
                             s->min_key);
    }
    if (rc == TN_OK && !key_is(s, file->max_key, last)) {
        key_text(s->plan, s->plan->keys, last, text);
        rc = tn_fsck_problem(f, err, s->path, "max key is not that of the last row, %s", text);
    }
    return rc;
}

static tn_rc check_keyed_counts(struct scan *s, struct tn_err *err)
{
    const struct tn_file_meta *file = s->file;
    tn_rc rc = TN_OK;
    if (s->min_sequence != file->min_sequence || s->max_sequence != file->max_sequence) {
        rc = tn_fsck_problem(
            s->f, err, s->path,
            "sequence numbers %" PRId64 "..%" PRId64 ", the manifest says %" PRId64 "..%" PRId64,
            s->min_sequence, s->max_sequence, file->min_sequence, file->max_sequence);
    }
    if (rc == TN_OK && file->delete_row_count.present &&
        file->delete_row_count.value != s->retracts) {
        rc = tn_fsck_problem(s->f, err, s->path,
                             "%" PRId64 " retract rows, the manifest says %" PRId64, s->retracts,
                             file->delete_row_count.value);
    }
    return rc;
}

static tn_rc check_rows(struct scan *s, struct tn_err *err)
{
    struct tn_fsck *f = s->f;
    tn_rc rc = TN_OK;
    if (s->rows != s->file->row_count) {
        rc = tn_fsck_problem(f, err, s->path, "%" PRId64 " rows, the manifest says %" PRId64,
                             s->rows, s->file->row_count);
    }
    if (rc == TN_OK && s->rows == 0) {
        rc = tn_fsck_problem(f, err, s->path, "no rows");
    }
    if (rc == TN_OK && s->other_partition) {
        rc = tn_fsck_problem(f, err, s->path, "rows of another partition");
    }
    if (rc == TN_OK && s->null_column) {
        rc = tn_fsck_problem(f, err, s->path, "row %" PRId64 ": null in NOT NULL column %s",
                             s->null_row, s->null_column);
    }
    if (rc == TN_OK && s->wrong_buckets > 0) {
        rc = tn_fsck_problem(f, err, s->path,
                             "%" PRIu64 " rows in the wrong bucket, as %s, which belongs to bucket "
                             "%" PRId32,
                             s->wrong_buckets, s->wrong_key, s->wrong_bucket);
    }
    for (uint32_t i = 0; rc == TN_OK && i < s->claim_count; i++) {
        rc = tn_fsck_claim_check(f, &s->claims[i], s->path, err);
    }
    if (rc == TN_OK && f->keyed && s->rows > 0) {
        rc = check_keyed_counts(s, err);
        rc = rc == TN_OK ? check_keys(s, err) : rc;
    }
    return rc;
}

/* ---- the file ---- */

static tn_rc read_rows(struct scan *s, int64_t size, struct tn_err *err)
{
    struct tn_fsck *f = s->f;
    s->last_capacity = s->plan->layout.fixed_size + LAST_KEY_SIZE;
    s->last = need(s, s->last_capacity, err); /* before the reader, which takes what is above */
    if (!s->last) {
        return TN_AGAIN;
    }
    tn_rc rc = tn_data_reader_open(&s->reader, s->path, size, s->file->level, &s->plan->wide,
                                   &s->plan->read, f->worker, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_kv kv;
    while (rc == TN_OK) {
        rc = tn_iter_next(&s->reader.iter, &kv, err);
        if (rc == TN_OK) {
            rc = check_row(s, &kv, err);
        }
    }
    tn_iter_close(&s->reader.iter);
    f->result->rows += (uint64_t)s->rows;
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc scan_file(struct scan *s, int64_t size, struct tn_err *err)
{
    tn_rc rc = load_claims(s, err);
    rc = rc != TN_OK ? rc : load_partition(s, err);
    rc = rc != TN_OK ? rc : load_buckets(s, err);
    rc = rc != TN_OK ? rc : read_rows(s, size, err);
    return rc != TN_OK ? tn_fsck_damage(s->f, s->path, NULL, rc, err) : check_rows(s, err);
}

/* What of a file can be checked by this build. */
static tn_rc can_read(const struct tn_file_meta *file, struct tn_err *err)
{
    if (file->write_cols.present) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "files with part of the columns are not read");
    }
    return tn_name_check_format(file->file_name, err);
}

static tn_rc check_extra(struct tn_fsck *f, const struct tn_entry *entry, const char *dir,
                         const char *path, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < entry->file.extra_files.count; i++) {
        const char *name = entry->file.extra_files.items[i];
        const char *extra = tn_arena_format(&f->worker->arena, "%s%s", dir, name);
        uint64_t size;
        if (!extra) {
            return tn_fsck_no_path(f, err);
        }
        rc = f->io->vtable->stat(f->io, extra, &size, err);
        if (rc == TN_ABSENT) {
            rc = tn_fsck_missing(f, err, path, "extra file is missing: %s", name);
        }
    }
    return rc;
}

/* What this build doesn't look at, in a file that is checked otherwise: readers of ours don't use
 * it. */
static tn_rc note_rest(struct tn_fsck *f, const struct tn_file_meta *file, const char *path,
                       struct tn_err *err)
{
    bool index = file->embedded_index.data != NULL;
    for (uint32_t i = 0; i < file->extra_files.count; i++) {
        size_t size = strlen(file->extra_files.items[i]);
        index = index || (size > 6 && strcmp(file->extra_files.items[i] + size - 6, ".index") == 0);
    }
    tn_rc rc = index ? tn_fsck_note(f, err, path, "its file index is not checked") : TN_OK;
    return rc == TN_OK && file->first_row_id.present
               ? tn_fsck_note(f, err, path, "its row ids are not checked")
               : rc;
}

static tn_rc check_whole(struct tn_fsck *f, const struct tn_entry *entry, bool changelog,
                         const char *dir, const char *path, struct tn_err *err)
{
    const struct tn_file_meta *file = &entry->file;
    uint64_t size = 0;
    tn_rc rc = f->io->vtable->stat(f->io, path, &size, err);
    if (rc != TN_OK) {
        return tn_fsck_damage(f, path, NULL, rc, err);
    }
    f->result->data_files++;
    if ((int64_t)size != file->file_size) {
        rc = tn_fsck_problem(f, err, path, "%" PRIu64 " bytes, the manifest says %" PRId64, size,
                             file->file_size);
    }
    rc = rc == TN_OK ? check_extra(f, entry, dir, path, err) : rc;
    rc = rc == TN_OK ? note_rest(f, file, path, err) : rc;
    rc = rc == TN_OK ? tn_fsck_plan(f, file->schema_id, err) : rc;
    if (rc != TN_OK || !f->plan.good) {
        return rc;
    }
    rc = can_read(file, err);
    if (rc != TN_OK) {
        return tn_fsck_damage(f, path, NULL, rc, err);
    }
    struct scan *s = tn_arena_take(&f->worker->arena, sizeof *s);
    if (!s) {
        return tn_fsck_no_path(f, err);
    }
    *s = (struct scan){.f = f,
                       .entry = entry,
                       .file = file,
                       .plan = &f->plan,
                       .path = path,
                       .changelog = changelog};
    return scan_file(s, (int64_t)size, err);
}

static tn_rc check_level(struct tn_fsck *f, const struct tn_file_meta *file, const char *path,
                         struct tn_err *err)
{
    if (file->level < 0 || (!f->keyed && file->level != 0)) {
        return tn_fsck_problem(f, err, path,
                               f->keyed ? "level %" PRId32 : "append file on level %" PRId32,
                               file->level);
    }
    bool keys =
        file->min_key.size >= 4 && file->max_key.size >= 4 &&
        (tn_load_u32_be(file->min_key.data) != 0 || tn_load_u32_be(file->max_key.data) != 0);
    return !f->keyed && keys ? tn_fsck_problem(f, err, path, "append file with keys") : TN_OK;
}

/* A file is checked once under just this record, whatever its level. False: it is too large to be
 * remembered. */
static tn_rc record_hash(struct tn_fsck *f, const struct tn_entry *entry, bool changelog,
                         struct tn_hash_128 *hash, bool *known, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&f->worker->arena);
    void *memory = tn_arena_take_raw(&f->worker->arena, ENTRY_SIZE_MAX);
    struct tn_entry *same = tn_arena_take(&f->worker->arena, sizeof *same);
    if (!memory || !same) {
        return tn_fsck_no_path(f, err);
    }
    struct tn_buf buf;
    tn_buf_init(&buf, memory, ENTRY_SIZE_MAX);
    *same = *entry;
    same->kind = TN_ENTRY_ADD;
    same->file.level = 0;
    tn_entry_encode(same, &buf);
    tn_buf_byte(&buf, changelog);
    *known = !buf.overflow;
    if (*known) {
        *hash = tn_hash_128(tn_buf_bytes(&buf));
    }
    tn_arena_reset(&f->worker->arena, mark);
    return TN_OK;
}

/* One that was missed is looked at again: the next snapshot may need it, too. */
static tn_rc check_once(struct tn_fsck *f, const struct tn_entry *entry, bool changelog,
                        const char *dir, const char *path, struct tn_err *err)
{
    struct tn_hash_128 hash = {0};
    struct tn_hash_128 *slot;
    bool known = false;
    bool is_new;
    uint32_t missed = f->missed;
    tn_rc rc = record_hash(f, entry, changelog, &hash, &known, err);
    if (rc != TN_OK || (known && tn_fsck_seen(f, TN_FSCK_READ, hash))) {
        return rc;
    }
    if (entry->file.external_path) {
        rc = tn_err_set(err, TN_UNSUPPORTED, 0, "it lies outside of the table");
        rc = tn_fsck_damage(f, path, NULL, rc, err);
    } else {
        rc = check_whole(f, entry, changelog, dir, path, err);
    }
    return rc == TN_OK && known && f->missed == missed
               ? tn_fsck_see(f, TN_FSCK_READ, hash, &slot, &is_new, err)
               : rc;
}

tn_rc tn_fsck_file_path(struct tn_fsck *f, const struct tn_entry *entry, const char **dir,
                        const char **path, struct tn_err *err)
{
    struct tn_arena *arena = &f->worker->arena;
    tn_rc rc = tn_name_bucket(arena, f->root, &f->newest, &f->options, entry->partition,
                              entry->bucket, dir, err);
    if (rc == TN_OK) {
        *path = tn_arena_format(arena, "%s%s", *dir, entry->file.file_name);
        rc = *path ? TN_OK : tn_fsck_no_path(f, err);
    }
    return rc;
}

tn_rc tn_fsck_reach_entry(struct tn_fsck *f, const struct tn_entry *entry, const char *dir,
                          const char *path, struct tn_err *err)
{
    tn_rc rc = tn_fsck_reach(f, path, err);
    for (uint32_t i = 0; rc == TN_OK && f->spec->orphans && i < entry->file.extra_files.count;
         i++) {
        const char *extra =
            tn_arena_format(&f->worker->arena, "%s%s", dir, entry->file.extra_files.items[i]);
        rc = extra ? tn_fsck_reach(f, extra, err) : tn_fsck_no_path(f, err);
    }
    return rc;
}

static tn_rc check_entry(struct tn_fsck *f, const struct tn_entry *entry, bool changelog,
                         const char *manifest, struct tn_err *err)
{
    const char *dir;
    const char *path;
    tn_rc rc = tn_fsck_file_path(f, entry, &dir, &path, err);
    if (rc != TN_OK) {
        return tn_fsck_damage(f, manifest, entry->file.file_name, rc, err);
    }
    rc = tn_fsck_reach_entry(f, entry, dir, path, err);
    rc = rc == TN_OK ? check_level(f, &entry->file, path, err) : rc;
    return rc == TN_OK ? check_once(f, entry, changelog, dir, path, err) : rc;
}

tn_rc tn_fsck_file(struct tn_fsck *f, const struct tn_entry *entry, bool changelog,
                   const char *manifest, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&f->worker->arena);
    tn_rc rc = check_entry(f, entry, changelog, manifest, err);
    tn_arena_reset(&f->worker->arena, mark);
    return rc;
}
