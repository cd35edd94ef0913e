#include "merge/change.h"

static bool equal_values(const struct tn_row_layout *layout, uint32_t column, struct tn_row a,
                         struct tn_row b)
{
    bool a_null = tn_row_null(a, column);
    if (a_null || a_null != tn_row_null(b, column)) {
        return a_null && tn_row_null(b, column);
    }
    enum tn_slot slot = (enum tn_slot)layout->columns[column].slot;
    if (slot == TN_SLOT_F32 || slot == TN_SLOT_F64) { /* their order knows NaN and -0.0, == not */
        struct tn_value x;
        struct tn_value y;
        tn_row_get(layout, a, column, &x);
        tn_row_get(layout, b, column, &y);
        return x.as.f64 == y.as.f64;
    }
    return tn_row_compare(layout, (struct tn_columns){&column, 1}, a, b) == 0;
}

static bool equal_rows(const struct tn_change *change, struct tn_row a, struct tn_row b)
{
    for (uint32_t i = 0; i < change->compared.count; i++) {
        if (!equal_values(change->layout, change->compared.index[i], a, b)) {
            return false;
        }
    }
    return true;
}

static tn_rc put(const struct tn_change *change, const struct tn_kv *kv, enum tn_row_kind kind,
                 struct tn_err *err)
{
    struct tn_kv told = *kv;
    told.kind = kind;
    return change->sink->put(change->sink, &told, err);
}

tn_rc tn_change_tell(const struct tn_change *change, const struct tn_kv *was,
                     const struct tn_kv *is, struct tn_err *err)
{
    bool before = was && !tn_row_kind_retracts(was->kind);
    bool after = is && !tn_row_kind_retracts(is->kind);
    if (before && after) {
        if (change->deduplicate && equal_rows(change, was->row, is->row)) {
            return TN_OK;
        }
        tn_rc rc = put(change, was, TN_ROW_UPDATE_BEFORE, err);
        return rc == TN_OK ? put(change, is, TN_ROW_UPDATE_AFTER, err) : rc;
    }
    if (before) {
        return put(change, was, TN_ROW_DELETE, err);
    }
    return after ? put(change, is, TN_ROW_INSERT, err) : TN_OK;
}
