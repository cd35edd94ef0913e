#include "read/lookup.h"

#include "read/find.h"

struct search {
    struct tn_find find;
    struct tn_arena rows; /* the versions' */
    struct tn_lookup *found;
    unsigned char *row; /* the best version's bytes */
    uint32_t row_room;
    bool newest_wins; /* of all versions; else they are kept, and merged in the end */
    struct tn_find_version *versions; /* kept */
    uint32_t kept;
};

/* ---- versions: the newest ---- */

/* What tn_fold does with a group, one version after the other. */
static bool beats(const struct search *s, const struct tn_kv *kv)
{
    const struct tn_kv *best = &s->found->kv;
    if (s->found->version_count == 0) {
        return true;
    }
    bool skip_best = s->find.spec.options->ignore_delete && tn_row_kind_retracts(best->kind);
    bool skip_this = s->find.spec.options->ignore_delete && tn_row_kind_retracts(kv->kind);
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

static tn_rc keep(struct search *s, const struct tn_kv *kv, struct tn_err *err)
{
    struct tn_find_version *version;
    tn_rc rc = tn_find_keep(kv, &s->rows, &version, err);
    if (rc == TN_OK) {
        version->next = s->versions;
        s->versions = version;
        s->kept++;
        s->row_room = kv->row.size > s->row_room ? kv->row.size : s->row_room;
    }
    return rc;
}

/* The fold works in the worker's memory, where no file is open any more. */
static tn_rc merge_versions(struct search *s, struct tn_err *err)
{
    const struct tn_projection *p = &s->found->projection;
    struct tn_arena *arena = &s->find.worker->arena;
    size_t mark = tn_arena_mark(arena);
    struct tn_kv kv;
    tn_rc rc =
        tn_find_fold(s->versions, s->kept, s->row_room, &p->order, &p->fold, arena, &kv, err);
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

/* ---- files ---- */

static tn_rc take(void *user, const struct tn_kv *kv, const struct tn_level_file *file,
                  const char *dir, struct tn_err *err)
{
    struct search *s = user;
    (void)file;
    (void)dir;
    bool sequenced = s->found->projection.order.sequence_fields.count > 0;
    bool looked_at = !s->newest_wins || sequenced || beats(s, kv);
    if (kv->bad && looked_at) {
        return tn_err_set(err, TN_CORRUPT, 0, "%s", kv->bad);
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

/* No version in a file of such numbers can win any more. */
static bool decided(void *user, const struct tn_level_file *next)
{
    const struct search *s = user;
    const struct tn_kv *best = &s->found->kv;
    return s->newest_wins && s->found->version_count > 0 &&
           s->found->projection.order.sequence_fields.count == 0 &&
           !(s->find.spec.options->ignore_delete && tn_row_kind_retracts(best->kind)) &&
           best->sequence > next->max_sequence;
}

tn_rc tn_lookup(const struct tn_scan_spec *spec, const struct tn_value *key, void *window,
                size_t window_size, struct tn_arena *arena, struct tn_worker *worker,
                struct tn_lookup *lookup, struct tn_err *err)
{
    *lookup = (struct tn_lookup){0};
    struct search s = {.found = lookup};
    struct tn_scan_spec own = *spec;
    own.keep_deletes = false;
    own.filter = NULL;
    tn_rc rc = tn_find_init(&s.find, &own, key, &lookup->projection, arena, worker, err);
    if (rc != TN_OK) {
        return rc;
    }
    size_t half = window_size / 2 & ~(size_t)63;
    tn_arena_init(&s.rows, (unsigned char *)window + half, window_size - half);
    s.newest_wins =
        !lookup->projection.fold.engine && lookup->projection.fold.mode == TN_FOLD_PLAIN;
    s.find.taker = (struct tn_find_taker){take, decided, &s};
    rc = tn_find_run(&s.find, window, half, err);
    lookup->file_count = s.find.file_count;
    if (rc == TN_OK && lookup->version_count == 0) {
        return TN_ABSENT;
    }
    if (rc == TN_OK && !s.newest_wins) {
        return merge_versions(&s, err);
    }
    return rc == TN_OK && tn_row_kind_retracts(lookup->kv.kind) ? TN_ABSENT : rc;
}
