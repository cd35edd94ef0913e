/* share_schema: the schemas of a shared table are the lake's, version by version, byte by byte.
 *
 * A gateway makes its table from them, and each time before it sends it looks whether both are
 * still one: what the lake has got since is adopted, what only the gateway has is refused. So is
 * what tarn can't write; the table here stays as it was, then.
 */
#pragma once

#include "file/worker.h"
#include "schema/schema.h"
#include "upload/share.h"
#include "upload/target.h"

struct tn_share_place {
    const char *table;        /* "db.t", */
    const char *root;         /* "db.db/t": on both sides */
    struct tn_target *target; /* the lake */
    struct tn_worker *worker; /* its io is the table's */
};

/* The lake's table becomes one here: what share.h keeps, the consumer, all schemas. Its newest one
 * is in the worker's arena. A cut leaves no table, or one of fewer schemas, which the next look
 * completes. EXISTS: there is one here; ABSENT: there is none in the lake; INVALID: the lake's is
 * somebody's mirror; UNSUPPORTED: tarn can't write it. Asks the lake for a list once, for the owner
 * of a mirror, and for each schema. */
TN_MUST_USE tn_rc tn_share_adopt(const struct tn_share_place *place, const struct tn_share *share,
                                 const struct tn_schema **newest, struct tn_err *err);

/* Are both still one? Sets sent->schema, which the caller writes down. INVALID: they differ, and in
 * what; UNSUPPORTED: tarn can't write what the lake has now. One request, and one for each schema
 * that is new on either side. */
TN_MUST_USE tn_rc tn_share_look_at_schemas(const struct tn_share_place *place, struct tn_sent *sent,
                                           struct tn_err *err);

/* The first difference of two versions, but comments and times; false: none. */
bool tn_share_schemas_differ(const struct tn_schema *here, const struct tn_schema *there,
                             char *text, size_t size);
