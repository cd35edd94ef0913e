#include "commit/base_list.h"

#include "commit/live.h"
#include "commit/set.h"

enum {
    GROUPS_MAX = 32, /* what lies behind is merged by a later commit */
    /* Two writers of two blocks, three readers of two: what merging takes beside the set. */
    RESERVE = 10 * 72 * 1024,
};

/* Manifests first .. end-1, counted over base list and delta list. */
struct group {
    uint32_t first;
    uint32_t end;
    uint64_t delete_count;
};

struct plan {
    const struct tn_options *options;
    uint64_t delete_count_max; /* that a set has room for */
    uint32_t count;            /* manifests seen */
    /* full */
    uint64_t change_size; /* of manifests that are small or have DELETE entries */
    uint64_t delete_count;
    /* minor */
    struct group groups[GROUPS_MAX];
    uint32_t group_count;
    struct group open;
    uint64_t open_size;
};

static uint64_t not_negative(int64_t value)
{
    return value > 0 ? (uint64_t)value : 0;
}

/* What a list says may be anything; sums of it must not wrap around. */
static uint64_t add_up(uint64_t a, uint64_t b)
{
    return a + b < a ? UINT64_MAX : a + b;
}

static bool must_change(const struct tn_options *options, const struct tn_manifest_meta *meta)
{
    return meta->deleted_count > 0 || meta->file_size < options->manifest_target_size;
}

static void close_group(struct plan *plan, uint32_t count_min)
{
    if (plan->open.end - plan->open.first >= count_min && plan->group_count < GROUPS_MAX) {
        plan->groups[plan->group_count++] = plan->open;
    }
    plan->open = (struct group){plan->count, plan->count, 0};
    plan->open_size = 0;
}

static uint32_t tail_min(const struct tn_options *options)
{
    return options->manifest_merge_min > 2 ? (uint32_t)options->manifest_merge_min : 2;
}

/* Sizes and counts are somebody's word: sums saturate, and a group that promises too many DELETE
 * entries ends before it. */
static tn_rc plan_manifest(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    (void)err;
    struct plan *plan = user;
    uint64_t size = not_negative(meta->file_size);
    uint64_t deletes = not_negative(meta->deleted_count);
    if (must_change(plan->options, meta)) {
        plan->change_size = add_up(plan->change_size, size);
    }
    plan->delete_count = add_up(plan->delete_count, deletes);
    if (add_up(plan->open.delete_count, deletes) > plan->delete_count_max) {
        close_group(plan, tail_min(plan->options));
    }
    plan->count++;
    if (deletes > plan->delete_count_max) {
        plan->open = (struct group){plan->count, plan->count, 0};
        return TN_OK;
    }
    plan->open.end = plan->count;
    plan->open.delete_count += deletes;
    plan->open_size = add_up(plan->open_size, size);
    if (plan->open_size >= not_negative(plan->options->manifest_target_size)) {
        close_group(plan, 2);
    }
    return TN_OK;
}

/* ---- merging ---- */

struct base_list {
    struct tn_attempt *attempt;
    const struct tn_snapshot *previous;
    struct plan plan;
    bool full;
    struct tn_manifest_writer list;
    uint32_t index; /* of the manifest that the outer pass stands at */
    uint32_t group; /* the next one of plan.groups */
};

/* One group on its way into new manifests. */
struct merge {
    struct base_list *base;
    const struct group *group;
    uint32_t index;        /* of the manifest that the pass stands at */
    struct tn_set deleted; /* marked: its ADD was seen, both vanish */
    struct tn_entry_writer writer;
    bool touched; /* the manifest at hand holds a deleted ADD */
};

static struct tn_hash_128 identity(const struct merge *merge, const struct tn_entry *entry)
{
    return tn_entry_identity(entry, &merge->base->attempt->worker->arena);
}

static tn_rc collect_delete(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct merge *merge = user;
    if (entry->kind == TN_ENTRY_DELETE && !tn_set_add(&merge->deleted, identity(merge, entry))) {
        return tn_err_set(err, TN_CORRUPT, 0, "more DELETE entries than the manifest lists say");
    }
    return TN_OK;
}

/* A DELETE stays when its ADD isn't in the group (it stands further up); a full merge has them all.
 */
static tn_rc merge_entry(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct merge *merge = user;
    bool full = merge->base->full;
    if (entry->kind == TN_ENTRY_DELETE) {
        bool gone = full || tn_set_marked(&merge->deleted, identity(merge, entry));
        return gone ? TN_OK : tn_entry_writer_add(&merge->writer, entry, err);
    }
    if (merge->deleted.count > 0 && tn_set_mark(&merge->deleted, identity(merge, entry), true)) {
        return TN_OK;
    }
    return tn_entry_writer_add(&merge->writer, entry, err);
}

static tn_rc look_for_deleted(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    (void)err;
    struct merge *merge = user;
    if (entry->kind == TN_ENTRY_ADD && tn_set_has(&merge->deleted, identity(merge, entry))) {
        merge->touched = true;
    }
    return TN_OK;
}

static bool in_group(struct merge *merge)
{
    uint32_t index = merge->index++;
    return index >= merge->group->first && index < merge->group->end;
}

static tn_rc each_entry(struct merge *merge, const struct tn_manifest_meta *meta, tn_live_fn *each,
                        struct tn_err *err)
{
    struct tn_attempt *attempt = merge->base->attempt;
    return tn_manifest_each(attempt->root, meta, attempt->worker, each, merge, err);
}

static tn_rc collect_manifest(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    struct merge *merge = user;
    bool wanted = in_group(merge) && meta->deleted_count > 0;
    return wanted ? each_entry(merge, meta, collect_delete, err) : TN_OK;
}

/* A full merge leaves a large manifest alone when nothing in it was deleted. */
static tn_rc merge_manifest(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    struct merge *merge = user;
    struct base_list *base = merge->base;
    if (!in_group(merge)) {
        return TN_OK;
    }
    if (base->full && !must_change(base->attempt->options, meta)) {
        merge->touched = false;
        tn_rc rc = each_entry(merge, meta, look_for_deleted, err);
        if (rc != TN_OK || !merge->touched) {
            return rc == TN_OK ? tn_manifest_add_meta(&base->list, meta, err) : rc;
        }
    }
    return each_entry(merge, meta, merge_entry, err);
}

static tn_rc merge_passes(struct merge *merge, struct tn_err *err)
{
    struct base_list *base = merge->base;
    tn_rc rc = tn_set_init(&merge->deleted, merge->group->delete_count,
                           &base->attempt->worker->arena, err);
    if (rc == TN_OK && merge->group->delete_count > 0) {
        rc = tn_live_each_meta(base->attempt->root, base->previous, base->attempt->worker,
                               collect_manifest, merge, err);
    }
    merge->index = 0;
    if (rc == TN_OK) {
        rc = tn_entry_writer_begin(&merge->writer, base->attempt, &base->list, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_live_each_meta(base->attempt->root, base->previous, base->attempt->worker,
                           merge_manifest, merge, err);
    if (rc == TN_OK) {
        rc = tn_entry_writer_finish(&merge->writer, err);
    } else {
        tn_entry_writer_abort(&merge->writer);
    }
    return rc;
}

static tn_rc merge_group(struct base_list *base, const struct group *group, struct tn_err *err)
{
    struct tn_arena *arena = &base->attempt->worker->arena;
    size_t mark = tn_arena_mark(arena);
    struct merge merge = {.base = base, .group = group};
    tn_rc rc = merge_passes(&merge, err);
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc copy_or_merge(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    struct base_list *base = user;
    uint32_t index = base->index++;
    const struct group *group = &base->plan.groups[base->group];
    if (base->group == base->plan.group_count || index < group->first) {
        return tn_manifest_add_meta(&base->list, meta, err);
    }
    tn_rc rc = index == group->first ? merge_group(base, group, err) : TN_OK;
    if (index + 1 == group->end) {
        base->group++;
    }
    return rc;
}

/* How many DELETE entries a set may hold so that the rest of the merge still has room. */
static uint64_t room_for_deletes(const struct tn_arena *arena)
{
    size_t free = tn_arena_free(arena);
    uint64_t count = 1;
    if (free < RESERVE + tn_set_size(count)) {
        return 0;
    }
    while (tn_set_size(count * 2) <= free - RESERVE) {
        count *= 2;
    }
    return count;
}

static tn_rc make_plan(struct base_list *base, struct tn_err *err)
{
    struct plan *plan = &base->plan;
    const struct tn_options *options = base->attempt->options;
    plan->options = options;
    plan->delete_count_max = room_for_deletes(&base->attempt->worker->arena);
    if (plan->delete_count_max == 0) {
        return TN_OK;
    }
    tn_rc rc = tn_live_each_meta(base->attempt->root, base->previous, base->attempt->worker,
                                 plan_manifest, plan, err);
    close_group(plan, tail_min(options));
    if (rc == TN_OK && plan->count > 1 && plan->delete_count <= plan->delete_count_max &&
        plan->change_size >= not_negative(options->manifest_full_threshold)) {
        base->full = true;
        plan->groups[0] = (struct group){0, plan->count, plan->delete_count};
        plan->group_count = 1;
    }
    return rc;
}

tn_rc tn_base_list_write(struct tn_attempt *attempt, const struct tn_snapshot *previous, bool merge,
                         const char **name, int64_t *size, struct tn_err *err)
{
    struct base_list base = {.attempt = attempt, .previous = previous};
    tn_rc rc = previous && merge ? make_plan(&base, err) : TN_OK;
    if (rc == TN_OK) {
        rc = tn_attempt_begin_list(attempt, &base.list, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    if (previous) {
        rc = tn_live_each_meta(attempt->root, previous, attempt->worker, copy_or_merge, &base, err);
    }
    if (rc != TN_OK) {
        tn_manifest_abort(&base.list);
        return rc;
    }
    return tn_attempt_finish_list(attempt, &base.list, name, size, err);
}
