#include "merge/fold.h"

#include <stdalign.h>
#include <stddef.h>

#include "base/check.h"

static void fold_close(struct tn_iter *iter)
{
    (void)iter;
}

/* A row that counts must be readable. Source: Paimon casts a value when somebody asks for it. */
static tn_rc check_good(const struct tn_kv *kv, struct tn_err *err)
{
    return kv->bad ? tn_err_set(err, TN_CORRUPT, 0, "%s", kv->bad) : TN_OK;
}

static bool left_out(const struct tn_fold *fold, const struct tn_kv *result)
{
    return (fold->spec.drop_deletes || fold->spec.mode == TN_FOLD_FULL) &&
           tn_row_kind_retracts(result->kind);
}

/* ---- the newest of a group: no version is copied ---- */

static const struct tn_kv *newest_of_all(const struct tn_fold *fold,
                                         const struct tn_kv *const *group, uint32_t count)
{
    const struct tn_kv *best = group[0];
    for (uint32_t i = 1; i < count; i++) {
        bool skip_best = fold->spec.ignore_delete && tn_row_kind_retracts(best->kind);
        bool skip_this = fold->spec.ignore_delete && tn_row_kind_retracts(group[i]->kind);
        if (skip_best != skip_this ? skip_best : tn_kv_newer(fold->merge->order, group[i], best)) {
            best = group[i];
        }
    }
    return best;
}

/* What versions are compared by must be readable. A value that isn't is NULL in its row. */
static tn_rc check_sequences(const struct tn_fold *fold, const struct tn_kv *const *group,
                             uint32_t count, struct tn_err *err)
{
    struct tn_columns fields = fold->merge->order->sequence_fields;
    for (uint32_t i = 0; count > 1 && i < count; i++) {
        for (uint32_t f = 0; group[i]->bad && f < fields.count; f++) {
            if (tn_row_null(group[i]->row, fields.index[f])) {
                return check_good(group[i], err);
            }
        }
    }
    return TN_OK;
}

/* Moves the versions that count to the front. */
static uint32_t drop_deeper(const struct tn_kv **group, uint32_t count)
{
    int32_t level = INT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        int32_t own = group[i]->level;
        level = own > 0 && own < level ? own : level;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (group[i]->level <= level) {
            group[kept++] = group[i];
        }
    }
    return kept;
}

static tn_rc next_of_groups(struct tn_iter *iter, struct tn_kv *kv, struct tn_err *err)
{
    struct tn_fold *fold = (struct tn_fold *)(void *)iter;
    for (;;) {
        const struct tn_kv *const *group;
        uint32_t count;
        tn_rc rc = tn_merge_next(fold->merge, &group, &count, err);
        if (rc != TN_OK) {
            return rc;
        }
        if (fold->spec.mode == TN_FOLD_LOOKUP && count > 1) {
            count = drop_deeper(fold->merge->group, count);
        }
        rc = check_sequences(fold, group, count, err);
        if (rc != TN_OK) {
            return rc;
        }
        const struct tn_kv *result = newest_of_all(fold, group, count);
        if (!left_out(fold, result)) {
            *kv = *result;
            return check_good(result, err);
        }
    }
}

static const struct tn_iter_vtable groups_vtable = {next_of_groups, NULL, fold_close, NULL};

/* ---- version by version, through a reducer ---- */

static tn_rc copy(const struct tn_fold *fold, const struct tn_kv *from, unsigned char *row,
                  struct tn_kv *to, struct tn_err *err)
{
    tn_rc rc = check_good(from, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (from->row.size > fold->spec.row_size_max) {
        return tn_err_set(err, TN_UNSUPPORTED, 0,
                          "a row of %u bytes; at most %u can be merged, and what helps is "
                          "more memory (--memory)",
                          from->row.size, fold->spec.row_size_max);
    }
    memcpy(row, from->row.data, from->row.size);
    *to = *from;
    to->row.data = row;
    return TN_OK;
}

static bool may_bypass(const struct tn_fold_spec *spec)
{
    return spec->mode != TN_FOLD_FIRST_ROW &&
           (spec->mode != TN_FOLD_LOOKUP || (!spec->state && !spec->change));
}

static bool of_this_key(const struct tn_fold *fold, const struct tn_kv *head)
{
    return head && tn_kv_compare(fold->merge->order, head, &fold->first) == 0;
}

static tn_rc feed_state(struct tn_fold *fold, struct tn_err *err)
{
    fold->key.state_waits = false;
    return tn_reducer_add(fold->reducer, &fold->key.state, err);
}

static tn_rc show(struct tn_fold *fold, const struct tn_kv *kv, enum tn_fold_deed deed,
                  struct tn_err *err)
{
    struct tn_fold_watch *watch = fold->spec.watch;
    return watch ? watch->seen(watch, kv, deed, fold->reducer, err) : TN_OK;
}

static tn_rc reduce_version(struct tn_fold *fold, const struct tn_kv *kv, struct tn_err *err)
{
    tn_rc rc = tn_reducer_add(fold->reducer, kv, err);
    tn_rc shown = show(fold, kv, rc == TN_OK ? TN_FOLD_FED : TN_FOLD_FAILED, err);
    return shown == TN_OK ? rc : shown;
}

/* One version that counts. */
static tn_rc feed(struct tn_fold *fold, const struct tn_kv *kv, struct tn_err *err)
{
    struct tn_fold_key *key = &fold->key;
    key->level0 = key->level0 || kv->level <= 0;
    key->level_up = key->level_up || kv->level > 0;
    tn_rc rc = TN_OK;
    if (key->state_waits && !tn_kv_newer(fold->merge->order, &key->state, kv)) {
        rc = feed_state(fold, err);
    }
    bool is_was =
        fold->spec.mode == TN_FOLD_FULL ? kv->level == fold->spec.level_max : kv->level > 0;
    if (rc == TN_OK && fold->was_row && is_was && !key->was) {
        rc = copy(fold, kv, fold->was_row, &fold->was, err);
        key->was = rc == TN_OK;
    }
    return rc == TN_OK ? reduce_version(fold, kv, err) : rc;
}

static tn_rc consider(struct tn_fold *fold, const struct tn_kv *kv, struct tn_err *err)
{
    tn_rc rc = check_good(kv, err);
    if (rc != TN_OK) {
        return rc;
    }
    bool deeper = fold->spec.mode == TN_FOLD_LOOKUP && kv->level > 0 &&
                  (kv->level != fold->key.level || fold->key.level_up);
    return deeper ? show(fold, kv, TN_FOLD_DEEPER, err) : feed(fold, kv, err);
}

/* No version above level 0 is among them: what lies deeper is one of them. */
static tn_rc ask_state(struct tn_fold *fold, struct tn_err *err)
{
    struct tn_fold_key *key = &fold->key;
    tn_rc rc = fold->spec.state->find(fold->spec.state, &fold->first, &key->state, err);
    key->state_waits = rc == TN_OK;
    key->was = rc == TN_OK;
    fold->was = key->state;
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc reduce(struct tn_fold *fold, struct tn_kv *result, struct tn_err *err)
{
    tn_reducer_begin(fold->reducer);
    tn_rc rc = TN_OK;
    if (fold->spec.mode == TN_FOLD_LOOKUP && fold->spec.state && fold->key.level == INT32_MAX) {
        rc = ask_state(fold, err);
    }
    if (rc == TN_OK) {
        rc = consider(fold, &fold->first, err);
    }
    const struct tn_kv *head = tn_merge_head(fold->merge);
    while (rc == TN_OK && head && of_this_key(fold, head)) {
        rc = consider(fold, head, err);
        if (rc == TN_OK) {
            rc = tn_merge_step(fold->merge, err);
        }
        head = tn_merge_head(fold->merge);
    }
    if (rc == TN_OK && fold->key.state_waits) {
        rc = feed_state(fold, err);
    }
    return rc == TN_OK ? tn_reducer_end(fold->reducer, result, err) : rc;
}

/* A key that was there before is no news; ABSENT leaves it out. */
static tn_rc tell_first_row(struct tn_fold *fold, const struct tn_kv *result, struct tn_err *err)
{
    if (!result || fold->key.level_up) {
        return TN_OK;
    }
    struct tn_kv found;
    tn_rc rc = fold->spec.state ? fold->spec.state->find(fold->spec.state, result, &found, err)
                                : TN_ABSENT;
    if (rc != TN_ABSENT) {
        return rc == TN_OK ? TN_ABSENT : rc;
    }
    const struct tn_change *change = fold->spec.change;
    return change ? change->sink->put(change->sink, result, err) : TN_OK;
}

static tn_rc tell(struct tn_fold *fold, const struct tn_kv *result, struct tn_err *err)
{
    const struct tn_change *change = fold->spec.change;
    if (fold->spec.mode == TN_FOLD_FIRST_ROW) {
        return tell_first_row(fold, result, err);
    }
    if (!change || (fold->spec.mode == TN_FOLD_LOOKUP && !fold->key.level0)) {
        return TN_OK;
    }
    return tn_change_tell(change, fold->key.was ? &fold->was : NULL, result, err);
}

/* The only version there is; in the last level it is what it was. */
static tn_rc pass(struct tn_fold *fold, struct tn_kv *result, struct tn_err *err)
{
    *result = fold->first;
    tn_rc rc = show(fold, &fold->first, TN_FOLD_PASSED, err);
    bool news = fold->spec.mode == TN_FOLD_FULL && fold->first.level != fold->spec.level_max;
    return rc == TN_OK && news ? tell(fold, result, err) : rc;
}

/* Versions that can't be merged are found by their key, and one that is met by its file. */
static tn_rc at_key(const struct tn_fold *fold, const struct tn_kv *kv, tn_rc rc,
                    struct tn_err *err)
{
    enum { KEY_TEXT_SIZE = 120 };
    if (rc != TN_INVALID && rc != TN_UNSUPPORTED) {
        return rc;
    }
    const struct tn_merge *merge = fold->merge;
    const struct tn_kv *head = tn_merge_head(merge);
    bool met = head && tn_kv_compare(merge->order, head, kv) == 0;
    const char *where = met ? tn_iter_where(merge->sources[merge->heap[0]].iter) : NULL;
    unsigned char memory[KEY_TEXT_SIZE];
    struct tn_buf text;
    tn_buf_init(&text, memory, sizeof memory);
    tn_row_format_json(merge->order->layout, &merge->order->keys, kv->row, &text);
    (void)tn_err_in(err, "%s%skey %.*s%s", where ? where : "", where ? ": " : "", (int)text.size,
                    (const char *)text.data, text.overflow ? "..." : "");
    return rc;
}

/* ABSENT: nothing of the key remains. */
static tn_rc fold_key(struct tn_fold *fold, const struct tn_kv *head, struct tn_kv *result,
                      struct tn_err *err)
{
    bool lookup = fold->spec.mode == TN_FOLD_LOOKUP;
    fold->key = (struct tn_fold_key){.level = lookup ? tn_merge_level(fold->merge) : INT32_MAX};
    tn_rc rc = at_key(fold, head, copy(fold, head, fold->first_row, &fold->first, err), err);
    if (rc == TN_OK) {
        rc = tn_merge_step(fold->merge, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    if (may_bypass(&fold->spec) && !of_this_key(fold, tn_merge_head(fold->merge))) {
        return pass(fold, result, err);
    }
    rc = at_key(fold, &fold->first, reduce(fold, result, err), err);
    if (rc == TN_OK || rc == TN_ABSENT) {
        tn_rc told = tell(fold, rc == TN_OK ? result : NULL, err);
        rc = told == TN_OK ? rc : told;
    }
    return rc;
}

static tn_rc next_of_versions(struct tn_iter *iter, struct tn_kv *kv, struct tn_err *err)
{
    struct tn_fold *fold = (struct tn_fold *)(void *)iter;
    const struct tn_kv *head;
    while ((head = tn_merge_head(fold->merge)) != NULL) {
        struct tn_kv result;
        tn_rc rc = fold_key(fold, head, &result, err);
        if (rc == TN_OK && !left_out(fold, &result)) {
            *kv = result;
            return TN_OK;
        }
        if (rc != TN_OK && rc != TN_ABSENT) {
            return rc;
        }
    }
    return TN_ABSENT;
}

static const struct tn_iter_vtable versions_vtable = {next_of_versions, NULL, fold_close, NULL};

/* ---- every version ---- */

static tn_rc next_of_all(struct tn_iter *iter, struct tn_kv *kv, struct tn_err *err)
{
    struct tn_fold *fold = (struct tn_fold *)(void *)iter;
    tn_rc rc = fold->given ? tn_merge_step(fold->merge, err) : TN_OK;
    fold->given = false;
    const struct tn_kv *head = tn_merge_head(fold->merge);
    if (rc != TN_OK || !head) {
        return rc != TN_OK ? rc : TN_ABSENT;
    }
    fold->given = true;
    *kv = *head;
    return check_good(head, err);
}

static const struct tn_iter_vtable all_vtable = {next_of_all, NULL, fold_close, NULL};

/* ---- init ---- */

enum tn_merge_mode tn_fold_merges(const struct tn_fold_spec *spec)
{
    bool newest = !spec->engine || tn_engine_keeps_newest(spec->engine);
    bool plain = spec->mode == TN_FOLD_PLAIN || spec->mode == TN_FOLD_LOOKUP;
    bool groups = newest && !spec->repeated && plain && may_bypass(spec) && !spec->watch;
    return groups ? TN_MERGE_GROUPS : TN_MERGE_VERSIONS;
}

static size_t rows_size(const struct tn_fold_spec *spec)
{
    return (spec->change ? 2 : 1) * (size_t)spec->row_size_max;
}

size_t tn_fold_size(const struct tn_fold_spec *spec)
{
    if (tn_fold_merges(spec) == TN_MERGE_GROUPS || spec->mode == TN_FOLD_NONE) {
        return 0;
    }
    return rows_size(spec) + tn_reducer_size(spec->engine, spec->row_size_max) +
           2 * alignof(max_align_t);
}

tn_rc tn_fold_init(struct tn_fold *fold, struct tn_merge *merge, const struct tn_fold_spec *spec,
                   struct tn_arena *arena, struct tn_err *err)
{
    *fold = (struct tn_fold){.merge = merge, .spec = *spec};
    TN_CHECK(tn_fold_merges(spec) == merge->mode);
    if (merge->mode == TN_MERGE_GROUPS || spec->mode == TN_FOLD_NONE) {
        fold->iter.vtable = spec->mode == TN_FOLD_NONE ? &all_vtable : &groups_vtable;
        return TN_OK;
    }
    TN_CHECK(spec->engine);
    fold->iter.vtable = &versions_vtable;
    fold->first_row = tn_arena_take_raw(arena, rows_size(spec));
    if (!fold->first_row) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory to merge rows of %u bytes",
                          spec->row_size_max);
    }
    fold->was_row = spec->change ? fold->first_row + spec->row_size_max : NULL;
    return tn_reducer_make(spec->engine, spec->row_size_max, arena, &fold->reducer, err);
}
