#include "merge/fold.h"

static const struct tn_kv *newest(const struct tn_fold *fold, const struct tn_kv *const *group,
                                  uint32_t count)
{
    const struct tn_kv *best = group[0];
    for (uint32_t i = 1; i < count; i++) {
        bool skip_best = fold->ignore_delete && tn_row_kind_retracts(best->kind);
        bool skip_this = fold->ignore_delete && tn_row_kind_retracts(group[i]->kind);
        if (skip_best != skip_this ? skip_best : tn_kv_newer(fold->merge->order, group[i], best)) {
            best = group[i];
        }
    }
    return best;
}

static tn_rc fold_next(struct tn_iter *iter, struct tn_kv *kv, struct tn_err *err)
{
    struct tn_fold *fold = (struct tn_fold *)iter;
    for (;;) {
        const struct tn_kv *const *group;
        uint32_t count;
        tn_rc rc = tn_merge_next(fold->merge, &group, &count, err);
        if (rc != TN_OK) {
            return rc;
        }
        const struct tn_kv *result = newest(fold, group, count);
        if (!fold->drop_deletes || !tn_row_kind_retracts(result->kind)) {
            *kv = *result;
            return TN_OK;
        }
    }
}

static void fold_close(struct tn_iter *iter)
{
    (void)iter;
}

static const struct tn_iter_vtable fold_vtable = {fold_next, NULL, fold_close, NULL};

void tn_fold_init(struct tn_fold *fold, struct tn_merge *merge, bool ignore_delete,
                  bool drop_deletes)
{
    *fold = (struct tn_fold){.iter = {&fold_vtable},
                             .merge = merge,
                             .ignore_delete = ignore_delete,
                             .drop_deletes = drop_deletes};
}
