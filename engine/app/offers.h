/* offers: rows that `write` hands over, for a table that the daemon holds.
 *
 *     verb    GET /offer?table=plant.levels
 *     daemon  {"rc":0,"size_max":16384}                      the longest body
 *     verb    POST /offer?table=plant.levels&input=json      whole records
 *     daemon  {"rc":0,"place":17,"rows":3,"dead":1}          taken; durable when it is committed:
 *                                                            a job (job.h) waits for that
 *
 * What can't become a row is a dead letter of the table's. "rc" is a tn_rc, with "error"; AGAIN:
 * there is no room now. "split": where rows are too many at once the body is refused, to come in
 * pieces; "cut": it is the beginning of a record of that size.
 */
#pragma once

#include "app/intake.h"

#define TN_OFFER_PAGE "/offer"

int tn_offers_get(const struct tn_intake *intake, struct tn_bytes query, struct tn_buf *out);
int tn_offers_post(struct tn_intake *intake, struct tn_bytes query, struct tn_bytes body,
                   struct tn_buf *out);
