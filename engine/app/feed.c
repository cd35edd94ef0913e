#include "app/feed.h"

/* INVALID is this row's fault; a turn that says so is ours. */
static tn_rc put(struct tn_feed *feed, struct tn_row row, enum tn_row_kind kind, struct tn_err *err)
{
    for (;;) {
        tn_rc rc = tn_table_put(feed->table, row, kind, err);
        if (rc != TN_AGAIN) {
            return rc;
        }
        rc = tn_table_turn(feed->table, true, err);
        if (rc != TN_OK) {
            return rc == TN_INVALID ? tn_err_set(err, TN_IO, 0, "%s", err->text) : rc;
        }
    }
}

static void bury(struct tn_feed *feed, const struct tn_decoded *decoded, const char *reason)
{
    feed->dead++;
    feed->bury(feed->user, decoded, reason);
}

tn_rc tn_feed_record(struct tn_feed *feed, const struct tn_decoded *decoded, struct tn_err *err)
{
    if (decoded->dead) {
        bury(feed, decoded, decoded->reason);
    }
    for (uint32_t i = 0; i < decoded->count; i++) {
        tn_rc rc = put(feed, decoded->rows[i], decoded->kinds[i], err);
        if (rc == TN_INVALID) {
            bury(feed, decoded, err->text);
            break;
        }
        if (rc != TN_OK) {
            return rc;
        }
    }
    feed->rows += decoded->count > 0 || decoded->dead;
    return TN_OK;
}

tn_rc tn_feed_cut(struct tn_feed *feed, struct tn_err *err)
{
    tn_rc rc = tn_table_cut(feed->table, feed->rows, err);
    while (rc == TN_AGAIN) {
        rc = tn_table_turn(feed->table, true, err);
        if (rc == TN_OK) {
            rc = tn_table_cut(feed->table, feed->rows, err);
        }
    }
    feed->rows_cut = feed->rows;
    return rc;
}
