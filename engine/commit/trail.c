#include "commit/trail.h"

static tn_rc add_name(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    (void)err;
    struct tn_trail *trail = user;
    trail->hash = tn_hash_64(tn_bytes_of(meta->file_name), trail->hash);
    trail->count++;
    return TN_OK;
}

void tn_trail_read(struct tn_trail *trail, const char *root, const struct tn_snapshot *snapshot,
                   struct tn_worker *worker)
{
    struct tn_err ignored;
    *trail = (struct tn_trail){0};
    tn_rc rc = tn_live_each_meta(root, snapshot, worker, add_name, trail, &ignored);
    trail->id = rc == TN_OK ? snapshot->id : 0;
}

/* ---- what stands behind it ---- */

struct follow {
    const struct tn_trail *trail;
    int64_t target_size;
    struct tn_trail before; /* as many as the trail has */
    uint64_t behind;
    bool large; /* one that may have a second one behind it */
    tn_trail_fn *each;
    void *user;
};

static tn_rc count_manifest(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    struct follow *follow = user;
    if (follow->before.count < follow->trail->count) {
        return add_name(&follow->before, meta, err);
    }
    follow->behind++;
    follow->large = follow->large || meta->file_size >= follow->target_size;
    return TN_OK;
}

static tn_rc tell_manifest(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    struct follow *follow = user;
    if (follow->before.count < follow->trail->count) {
        follow->before.count++;
        return TN_OK;
    }
    return follow->each(follow->user, follow->trail->id + 1 + (int64_t)follow->behind++, meta, err);
}

static tn_rc each_base(const char *root, const struct tn_snapshot *next, struct tn_worker *worker,
                       tn_list_meta_fn *each, struct follow *follow, struct tn_err *err)
{
    struct tn_list lists[TN_LIST_COUNT];
    tn_lists_of(next, lists);
    follow->before = (struct tn_trail){0};
    follow->behind = 0;
    return tn_list_each_meta(root, lists[0].name, lists[0].size, worker, each, follow, err);
}

static bool leads_on(const struct follow *follow, const struct tn_snapshot *next)
{
    const struct tn_trail *trail = follow->trail;
    return !follow->large && follow->before.count == trail->count &&
           follow->before.hash == trail->hash &&
           follow->behind == (uint64_t)(next->id - trail->id - 1);
}

bool tn_trail_each(const struct tn_trail *trail, const char *root, const struct tn_snapshot *next,
                   int64_t target_size, struct tn_worker *worker, tn_trail_fn *each, void *user,
                   tn_rc *rc, struct tn_err *err)
{
    struct follow follow = {.trail = trail, .target_size = target_size, .each = each, .user = user};
    if (trail->id <= 0 || next->id <= trail->id || !next->base_manifest_list ||
        each_base(root, next, worker, count_manifest, &follow, err) != TN_OK ||
        !leads_on(&follow, next)) {
        return false;
    }
    *rc = each_base(root, next, worker, tell_manifest, &follow, err);
    return true;
}
