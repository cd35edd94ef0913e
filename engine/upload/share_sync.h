/* share_sync: what is new in a shared table goes to the lake, the way that its gateway commits: by
 * itself (direct.h), or handed in for a gather (inbox_send.h).
 */
#pragma once

#include "upload/direct.h"

/* As tn_direct_sync. Of a gather a commit is an entry of the inbox, and what the lake makes of it
 * isn't known: no `lake_id`, nothing `lost`, `replaced` or `open`; neither scratch nor `wait` is
 * used. */
TN_MUST_USE tn_rc tn_share_sync(enum tn_share_way way, const struct tn_direct_spec *spec,
                                struct tn_worker *worker, struct tn_direct_result *result,
                                struct tn_err *err);

/* Bytes of the worker's arena that it takes at the least. */
size_t tn_share_sync_memory(enum tn_share_way way);
