#include "upload/share_sync.h"

#include "upload/inbox_send.h"

static tn_rc hand_in(const struct tn_direct_spec *spec, struct tn_worker *worker,
                     struct tn_direct_result *result, struct tn_err *err)
{
    struct tn_inbox_send_spec send = {.table = spec->table,
                                      .target = spec->target,
                                      .dry_run = spec->dry_run,
                                      .bounds = spec->bounds};
    struct tn_inbox_sent sent;
    tn_rc rc = tn_inbox_send(&send, worker, &sent, err);
    *result = (struct tn_direct_result){.first_id = sent.first_id,
                                        .last_id = sent.last_id,
                                        .files = sent.files,
                                        .bytes = sent.bytes,
                                        .commits = sent.entries,
                                        .requests = sent.requests,
                                        .limited = sent.limited,
                                        .why = sent.why};
    return rc;
}

tn_rc tn_share_sync(enum tn_share_way way, const struct tn_direct_spec *spec,
                    struct tn_worker *worker, struct tn_direct_result *result, struct tn_err *err)
{
    return way == TN_SHARE_GATHER ? hand_in(spec, worker, result, err)
                                  : tn_direct_sync(spec, worker, result, err);
}

size_t tn_share_sync_memory(enum tn_share_way way)
{
    return way == TN_SHARE_GATHER ? tn_inbox_send_memory() : tn_direct_memory();
}
