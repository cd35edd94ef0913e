#include <inttypes.h>
#include <stdio.h>

#include "file/names.h"
#include "table/fsck_private.h"

/* What is remembered of one record of a manifest list, keyed by the record's hash. */
struct known {
    struct tn_hash_128 key;
    struct tn_hash_128 sum; /* of its entries: ADD less DELETE, modulo 2^64 each */
    uint64_t count;
    uint64_t rows;
    uint32_t list_number; /* the last list that named it */
    bool bad;
    bool missed; /* it was not there: the next list that names it looks again */
};

/* What one manifest really holds. */
struct tn_fsck_tally {
    int64_t added;
    int64_t deleted;
    int32_t bucket[2]; /* least and largest */
    int32_t level[2];
    uint64_t rows;
    struct tn_hash_128 sum;
    struct tn_fsck_claim *partition; /* per partition column; NULL: not compared */
    struct tn_value *values;
};

static void sum_add(struct tn_hash_128 *sum, struct tn_hash_128 hash, bool add)
{
    sum->high += add ? hash.high : 0 - hash.high;
    sum->low += add ? hash.low : 0 - hash.low;
}

void tn_fsck_manifests_init(struct tn_fsck *f)
{
    tn_fsck_table_init(&f->manifests, f->spec->heap, sizeof(struct known), "manifests");
}

/* ---- what is live ---- */

void tn_fsck_forget(struct tn_fsck *f)
{
    for (void *slot = tn_fsck_table_next(&f->seen, NULL); slot;
         slot = tn_fsck_table_next(&f->seen, slot)) {
        tn_fsck_set_mark(slot, TN_FSCK_NONE);
    }
    f->live = (struct tn_fsck_live){0};
    tn_fsck_runs_clear(f);
}

static void live_add(struct tn_fsck *f, const struct tn_entry *entry, struct tn_hash_128 identity,
                     bool add)
{
    uint64_t rows = (uint64_t)entry->file.row_count;
    f->live.count += add ? 1 : UINT64_MAX;
    f->live.rows += add ? rows : 0 - rows;
    sum_add(&f->live.sum, identity, add);
}

static tn_rc apply_add(struct tn_fsck_walk *w, const struct tn_entry *entry,
                       struct tn_hash_128 identity, struct tn_hash_128 *slot, struct tn_err *err)
{
    struct tn_fsck *f = w->f;
    enum tn_fsck_mark mark = tn_fsck_marked(slot);
    if (mark == TN_FSCK_LIVE) {
        return tn_fsck_problem(f, err, w->manifest, "adds a file twice: %s", entry->file.file_name);
    }
    w->dead -= mark == TN_FSCK_DEAD && !(w->actions & TN_FSCK_STRICT);
    tn_fsck_set_mark(slot, TN_FSCK_LIVE);
    live_add(f, entry, identity, true);
    return tn_fsck_runs_add(f, entry, identity, err);
}

static tn_rc apply_delete(struct tn_fsck_walk *w, const struct tn_entry *entry,
                          struct tn_hash_128 identity, struct tn_hash_128 *slot, struct tn_err *err)
{
    struct tn_fsck *f = w->f;
    if (tn_fsck_marked(slot) == TN_FSCK_LIVE) {
        tn_fsck_set_mark(slot, TN_FSCK_NONE);
        live_add(f, entry, identity, false);
        tn_fsck_runs_remove(f, entry, identity);
        return TN_OK;
    }
    if (w->actions & TN_FSCK_STRICT) {
        return f->live.known
                   ? tn_fsck_problem(f, err, w->manifest, "deletes a file that is not there: %s",
                                     entry->file.file_name)
                   : TN_OK;
    }
    if (tn_fsck_marked(slot) == TN_FSCK_NONE) {
        tn_fsck_set_mark(slot, TN_FSCK_DEAD);
        w->dead++;
        (void)snprintf(w->odd, sizeof w->odd, "%s", entry->file.file_name);
    }
    return TN_OK;
}

static tn_rc apply(struct tn_fsck_walk *w, const struct tn_entry *entry,
                   struct tn_hash_128 identity, struct tn_err *err)
{
    struct tn_hash_128 *slot;
    bool is_new;
    tn_rc rc = tn_fsck_see(w->f, TN_FSCK_IDENTITY, identity, &slot, &is_new, err);
    if (rc != TN_OK) {
        return rc;
    }
    return (entry->kind == TN_ENTRY_ADD ? apply_add : apply_delete)(w, entry, identity, slot, err);
}

static bool is_live(const struct tn_fsck *f, struct tn_hash_128 identity)
{
    const struct tn_hash_128 *slot = tn_fsck_seen(f, TN_FSCK_IDENTITY, identity);
    return slot && tn_fsck_marked(slot) == TN_FSCK_LIVE;
}

static void differ(struct tn_fsck_walk *w, const struct tn_entry *entry,
                   struct tn_hash_128 identity)
{
    if (w->odd[0] == 0 && (entry->kind == TN_ENTRY_ADD) != is_live(w->f, identity)) {
        (void)snprintf(w->odd, sizeof w->odd, "%s", entry->file.file_name);
    }
}

/* ---- one manifest ---- */

static void tally_add(struct tn_fsck *f, struct tn_fsck_tally *t, const struct tn_entry *entry,
                      struct tn_hash_128 identity)
{
    bool first = t->added + t->deleted == 0;
    bool add = entry->kind == TN_ENTRY_ADD;
    const int32_t now[2] = {entry->bucket, entry->file.level};
    int32_t *ranges[2] = {t->bucket, t->level};
    for (int i = 0; i < 2; i++) {
        ranges[i][0] = first || now[i] < ranges[i][0] ? now[i] : ranges[i][0];
        ranges[i][1] = first || now[i] > ranges[i][1] ? now[i] : ranges[i][1];
    }
    t->added += add;
    t->deleted += !add;
    t->rows += add ? (uint64_t)entry->file.row_count : 0 - (uint64_t)entry->file.row_count;
    sum_add(&t->sum, identity, add);
    struct tn_err ignored;
    uint32_t count = f->newest.partition_keys.count;
    if (t->partition && tn_binary_to_values(entry->partition, f->partition_types, count, t->values,
                                            &ignored) == TN_OK) {
        for (uint32_t i = 0; i < count; i++) {
            tn_fsck_claim_add(&t->partition[i], &t->values[i]);
        }
    }
}

/* Claims of the partition's statistics, in the worker's arena. */
static tn_rc tally_begin(struct tn_fsck_walk *w, const struct tn_manifest_meta *meta,
                         struct tn_fsck_tally *t, struct tn_err *err)
{
    struct tn_fsck *f = w->f;
    uint32_t count = f->newest.partition_keys.count;
    *t = (struct tn_fsck_tally){0};
    struct tn_arena *arena = &f->worker->arena;
    struct tn_fsck_claim *claims = tn_arena_take(arena, count * sizeof *claims + 1);
    struct tn_type *types = tn_arena_take(arena, count * sizeof *types + 1);
    struct tn_value *values = tn_arena_take(arena, 2 * count * sizeof *values + 1);
    if (!claims || !types || !values) {
        return tn_fsck_no_path(f, err);
    }
    for (uint32_t i = 0; i < count; i++) {
        claims[i] = (struct tn_fsck_claim){
            .type = f->partition_types[i],
            .kind = "partition statistics",
            .name = f->newest.fields[f->newest.partition_keys.index[i]].name,
            .exact = true,
        };
    }
    if (!tn_fsck_claims_load(claims, count, &meta->partition_stats, types, values, err)) {
        return tn_fsck_damage(f, w->manifest, "partition statistics", TN_CORRUPT, err);
    }
    t->partition = claims;
    t->values = values; /* the bounds were copied out of it */
    return TN_OK;
}

static tn_rc check_range(struct tn_fsck_walk *w, const char *what, const int32_t real[2],
                         struct tn_json_i64 min, struct tn_json_i64 max, struct tn_err *err)
{
    if (min.present != max.present) { /* Java takes the other one for granted */
        return tn_fsck_problem(w->f, err, w->manifest, "%s are listed with one end only", what);
    }
    if (!min.present || (min.value == real[0] && max.value == real[1])) {
        return TN_OK;
    }
    return tn_fsck_problem(w->f, err, w->manifest,
                           "%s %" PRId32 "..%" PRId32 ", listed as %" PRId64 "..%" PRId64, what,
                           real[0], real[1], min.value, max.value);
}

static tn_rc tally_check(struct tn_fsck_walk *w, const struct tn_manifest_meta *meta,
                         const struct tn_fsck_tally *t, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    if (t->added != meta->added_count || t->deleted != meta->deleted_count) {
        rc = tn_fsck_problem(w->f, err, w->manifest,
                             "holds %" PRId64 " added and %" PRId64 " deleted, listed as %" PRId64
                             " and %" PRId64,
                             t->added, t->deleted, meta->added_count, meta->deleted_count);
    }
    if (rc == TN_OK && t->added + t->deleted > 0) {
        rc = check_range(w, "buckets", t->bucket, meta->min_bucket, meta->max_bucket, err);
        rc = rc != TN_OK
                 ? rc
                 : check_range(w, "levels", t->level, meta->min_level, meta->max_level, err);
    }
    for (uint32_t i = 0; rc == TN_OK && t->partition && i < w->f->newest.partition_keys.count;
         i++) {
        rc = tn_fsck_claim_check(w->f, &t->partition[i], w->manifest, err);
    }
    return rc;
}

static tn_rc reach_entry(struct tn_fsck *f, const struct tn_entry *entry, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&f->worker->arena);
    const char *dir;
    const char *path;
    tn_rc rc = tn_fsck_file_path(f, entry, &dir, &path, err);
    if (rc == TN_OK) {
        rc = tn_fsck_reach_entry(f, entry, dir, path, err);
    } else if (!f->stopped) {
        rc = TN_OK;
    }
    tn_arena_reset(&f->worker->arena, mark);
    return rc;
}

static tn_rc visit_files(struct tn_fsck_walk *w, const struct tn_entry *entry,
                         struct tn_hash_128 identity, struct tn_err *err)
{
    if (w->actions & TN_FSCK_CHANGELOG) {
        return entry->kind == TN_ENTRY_ADD
                   ? tn_fsck_file(w->f, entry, true, w->manifest, err)
                   : tn_fsck_problem(w->f, err, w->manifest, "a changelog that deletes a file: %s",
                                     entry->file.file_name);
    }
    if ((w->actions & TN_FSCK_FILES) && entry->kind == TN_ENTRY_ADD && is_live(w->f, identity)) {
        w->f->forgives = (w->actions & TN_FSCK_AGAIN) != 0;
        tn_rc rc = tn_fsck_file(w->f, entry, false, w->manifest, err);
        w->f->forgives = false;
        return rc;
    }
    return w->actions & TN_FSCK_REACH ? reach_entry(w->f, entry, err) : TN_OK;
}

static tn_rc visit(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct tn_fsck_walk *w = user;
    struct tn_hash_128 identity = tn_entry_identity(entry, &w->f->worker->arena);
    tally_add(w->f, w->tally, entry, identity);
    if (w->actions & TN_FSCK_DIFFER) {
        differ(w, entry, identity);
    }
    tn_rc rc = w->actions & TN_FSCK_APPLY ? apply(w, entry, identity, err) : TN_OK;
    return rc == TN_OK ? visit_files(w, entry, identity, err) : rc;
}

/* Reads the manifest, and says in `good` whether all of it could be read. */
static tn_rc read_manifest(struct tn_fsck_walk *w, const struct tn_manifest_meta *meta,
                           struct tn_fsck_tally *tally, bool is_new, bool *good, struct tn_err *err)
{
    struct tn_fsck *f = w->f;
    tn_rc rc = tally_begin(w, meta, tally, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (!is_new) {
        tally->partition = NULL;
    }
    w->tally = tally;
    rc = tn_manifest_each(f->root, meta, f->worker, visit, w, err);
    *good = rc == TN_OK;
    if (rc != TN_OK) {
        return w->actions & TN_FSCK_REACH && !f->stopped
                   ? TN_OK
                   : tn_fsck_damage(f, w->manifest, NULL, rc, err);
    }
    return is_new && !(w->actions & TN_FSCK_REACH) ? tally_check(w, meta, tally, err) : TN_OK;
}

/* ---- lists ---- */

enum { RECORD_SIZE_MAX = 16 * 1024 }; /* of a list: two rows of a partition's values, and a name */

/* Equal records say the same of the same manifest, which is never changed. */
static struct tn_hash_128 record_hash(struct tn_fsck *f, const struct tn_manifest_meta *meta)
{
    size_t mark = tn_arena_mark(&f->worker->arena);
    struct tn_hash_128 hash = tn_hash_128(tn_bytes_of(meta->file_name));
    void *memory = tn_arena_take_raw(&f->worker->arena, RECORD_SIZE_MAX);
    struct tn_buf buf;
    tn_buf_init(&buf, memory, memory ? RECORD_SIZE_MAX : 0);
    tn_manifest_meta_encode(meta, &buf);
    if (!buf.overflow) {
        hash = tn_hash_128(tn_buf_bytes(&buf));
    }
    tn_arena_reset(&f->worker->arena, mark);
    return hash;
}

static void walk_add(struct tn_fsck_walk *w, const struct known *known)
{
    w->count += known->count;
    w->rows += known->rows;
    w->sum.high += known->sum.high;
    w->sum.low += known->sum.low;
    w->broken = w->broken || known->bad;
}

static tn_rc learn(struct tn_fsck_walk *w, const struct tn_manifest_meta *meta,
                   struct tn_hash_128 hash, bool is_new, struct tn_err *err)
{
    struct tn_fsck_tally tally;
    bool good = false;
    uint32_t missed = w->f->missed;
    tn_rc rc = read_manifest(w, meta, &tally, is_new, &good, err);
    struct known *known = tn_fsck_table_find(&w->f->manifests, hash);
    if (is_new && known) {
        known->bad = !good;
        known->missed = !good && (w->f->missed != missed || (w->actions & TN_FSCK_REACH));
        known->sum = tally.sum;
        known->count = (uint64_t)tally.added - (uint64_t)tally.deleted;
        known->rows = tally.rows;
    }
    return rc;
}

static tn_rc visit_record(struct tn_fsck_walk *w, const struct tn_manifest_meta *meta,
                          struct tn_err *err)
{
    struct tn_hash_128 hash = record_hash(w->f, meta);
    void *slot;
    bool is_new;
    tn_rc rc = tn_fsck_table_add(&w->f->manifests, hash, &slot, &is_new, err);
    if (rc != TN_OK) {
        return tn_fsck_stop(w->f, rc);
    }
    struct known *known = slot;
    if (!is_new && known->list_number == w->number) {
        rc = tn_fsck_problem(w->f, err, w->list, "manifest %s listed twice", meta->file_name);
    }
    known->list_number = w->number;
    is_new = is_new || known->missed;
    bool read = is_new || (!known->bad && (w->actions & TN_FSCK_EVERY));
    if (rc == TN_OK && read) {
        rc = learn(w, meta, hash, is_new, err);
        known = tn_fsck_table_find(&w->f->manifests, hash);
    }
    if (rc == TN_OK && known) {
        walk_add(w, known);
    }
    return rc;
}

static tn_rc each_record(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    struct tn_fsck_walk *w = user;
    struct tn_fsck *f = w->f;
    w->manifest = tn_name_in(&f->worker->arena, f->root, TN_DIR_MANIFEST, meta->file_name);
    if (!w->manifest) {
        return tn_fsck_no_path(f, err);
    }
    tn_rc rc = tn_fsck_reach(f, w->manifest, err);
    return rc == TN_OK ? visit_record(w, meta, err) : rc;
}

tn_rc tn_fsck_walk(struct tn_fsck_walk *walk, const char *list, struct tn_json_i64 list_size,
                   struct tn_err *err)
{
    struct tn_fsck *f = walk->f;
    size_t mark = tn_arena_mark(&f->worker->arena);
    walk->number = ++f->list_number;
    walk->list = tn_name_in(&f->worker->arena, f->root, TN_DIR_MANIFEST, list);
    if (!walk->list) {
        return tn_fsck_no_path(f, err);
    }
    tn_rc rc = tn_fsck_reach(f, walk->list, err);
    if (rc == TN_OK) {
        rc = tn_list_each_meta(f->root, list, tn_manifest_size(list_size), f->worker, each_record,
                               walk, err);
        walk->broken = walk->broken || rc != TN_OK;
        if (walk->actions & TN_FSCK_REACH && !f->stopped) {
            rc = TN_OK;
        }
        rc = tn_fsck_damage(f, walk->list, NULL, rc, err);
    }
    tn_arena_reset(&f->worker->arena, mark);
    return rc;
}
