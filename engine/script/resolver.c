#include "script/resolver.h"

#include "script/script_private.h"

bool tn_script_is_late(const struct tn_row_layout *layout, struct tn_columns late_by,
                       const struct tn_row *now, struct tn_row row)
{
    return now && late_by.count > 0 && tn_row_compare(layout, late_by, row, *now) < 0;
}

static tn_rc call(struct tn_script_resolver *r, const struct tn_row *now, struct tn_row row,
                  const struct tn_script_ctx *ctx, enum tn_script_verdict *verdict,
                  struct tn_buf *out, struct tn_err *err)
{
    if (ctx->kind == TN_ROW_DELETE) {
        return tn_script_retract(r->script, now, row, ctx, verdict, out, err);
    }
    if (tn_script_has(r->script, TN_SCRIPT_MERGE)) {
        return tn_script_merge(r->script, now, row, ctx, verdict, out, err);
    }
    tn_buf_append(out, row.data, row.size);
    *verdict = TN_SCRIPT_ROW;
    return TN_OK;
}

/* A row that does not fit the flush's memory is a row that the script made too large. */
static tn_rc as_dead(tn_rc rc)
{
    return rc == TN_AGAIN ? TN_INVALID : rc;
}

static tn_rc resolve(struct tn_resolver *resolver, const struct tn_row *now, struct tn_row row,
                     enum tn_row_kind kind, int64_t sequence, enum tn_verdict *verdict,
                     struct tn_buf *out, struct tn_err *err)
{
    static const enum tn_verdict VERDICTS[] = {
        [TN_SCRIPT_KEEP] = TN_VERDICT_KEEP,
        [TN_SCRIPT_DELETE] = TN_VERDICT_DELETE,
        [TN_SCRIPT_ROW] = TN_VERDICT_ROW,
    };
    struct tn_script_resolver *r = (struct tn_script_resolver *)(void *)resolver;
    bool late = tn_script_is_late(r->script->spec.layout, r->late_by, now, row);
    struct tn_script_ctx ctx = {kind, sequence, late};
    enum tn_script_verdict said = TN_SCRIPT_KEEP;
    tn_rc rc = tn_script_check_parked(r->script, err);
    if (rc == TN_OK) {
        rc = call(r, now, row, &ctx, &said, out, err);
    }
    if (rc == TN_OK) {
        *verdict = VERDICTS[said];
    }
    return as_dead(rc);
}

static tn_rc announce(struct tn_resolver *resolver, struct tn_row row, bool *shown,
                      struct tn_buf *out, struct tn_err *err)
{
    struct tn_script_resolver *r = (struct tn_script_resolver *)(void *)resolver;
    return as_dead(tn_script_announce(r->script, row, shown, out, err));
}

void tn_script_resolver_init(struct tn_script_resolver *resolver, struct tn_script *script,
                             struct tn_columns late_by)
{
    bool announces = tn_script_has(script, TN_SCRIPT_ANNOUNCE);
    *resolver = (struct tn_script_resolver){
        .resolver = {.resolve = resolve, .announce = announces ? announce : NULL},
        .script = script,
        .late_by = late_by};
}
