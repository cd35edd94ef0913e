/* canal-json: several rows a record, in `data`, and what was in their columns before an update, in
 * `old`.
 *
 * A record of one row is read while its envelope is. The elements of a longer one are read twice:
 * once to know that all of them are rows, for a record is taken as a whole or not at all, and those
 * that don't fit the decoder's memory beside each other again when they are asked for.
 */
#include "base/check.h"
#include "ingest/decode_envelope.h"

static tn_cursor read_element(struct tn_decoder *d, tn_cursor at, struct tn_decode_row *row)
{
    if (*at != '{') {
        return tn_decode_fail(d, at, "an object belongs here");
    }
    at = tn_json_read_row(d, at + 1, row);
    if (!at) {
        return NULL;
    }
    at = tn_scan_space(at);
    return *at == ',' ? tn_scan_space(at + 1) : at;
}

/* The element that comes next, and the one of `old` beside it. */
static bool read_next(struct tn_decoder *d)
{
    struct tn_decode_batch *batch = &d->batch;
    d->scratch.size = batch->scratch_size;
    d->late_count = 0;
    batch->next_data = read_element(d, batch->next_data, &d->rows[1]);
    if (batch->next_data && batch->old) {
        batch->next_old = read_element(d, batch->next_old, &d->rows[0]);
        tn_envelope_fill_before(d);
    }
    batch->element++;
    return batch->next_data && (!batch->old || batch->next_old);
}

static void rewind_batch(struct tn_decode_batch *batch)
{
    batch->element = 0; /* 1 behind the first */
    batch->next_data = batch->data;
    batch->next_old = batch->old;
}

const struct tn_decode_row *tn_decode_batch_row(struct tn_decoder *d, uint32_t i)
{
    struct tn_decode_batch *batch = &d->batch;
    uint32_t rows_each = batch->old ? 2 : 1;
    uint32_t element = i / rows_each + 1;
    if (batch->element > element) {
        rewind_batch(batch);
    }
    while (batch->element < element) {
        bool read = read_next(d);
        TN_CHECK(read);
    }
    struct tn_decode_row *row = &d->rows[batch->old ? i % 2 : 1];
    bool settled = tn_decode_row_settle(d, row);
    TN_CHECK(settled);
    return row;
}

/* Both rows of an element, or its one. */
static bool finish_element(struct tn_decoder *d, bool before, enum tn_row_kind kind)
{
    return (!before || tn_decode_row_finish(d, &d->rows[0], TN_ROW_UPDATE_BEFORE)) &&
           tn_decode_row_finish(d, &d->rows[1], kind);
}

static void finish_rows(struct tn_decoder *d, const struct tn_envelope *e, enum tn_part part,
                        bool before, enum tn_row_kind kind)
{
    if (e->row_count[part] == 1) {
        if (before) {
            tn_envelope_fill_before(d);
        }
        if (part == TN_PART_BEFORE) {
            (void)tn_decode_row_finish(d, &d->rows[0], kind);
        } else {
            (void)finish_element(d, before, kind);
        }
        return;
    }
    d->batch.data = e->first[part];
    d->batch.old = before ? e->first[TN_PART_BEFORE] : NULL;
    rewind_batch(&d->batch);
    for (uint32_t i = 0; i < e->row_count[part]; i++) {
        if (!read_next(d) || !finish_element(d, before, kind)) {
            return;
        }
    }
}

/* An unchanged row has no element in `old`, so fewer of them than rows tell not whose they are. */
static void finish_update(struct tn_decoder *d, const struct tn_envelope *e)
{
    uint32_t before = e->row_count[TN_PART_BEFORE];
    uint32_t after = e->row_count[TN_PART_AFTER];
    if (before > 0 && before != after) {
        (void)tn_decode_fail(
            d, NULL, "'data' has %u rows, and 'old' has %u: whose they are is open", after, before);
        return;
    }
    finish_rows(d, e, TN_PART_AFTER, before > 0, TN_ROW_UPDATE_AFTER);
}

/* Some producers put a deleted row into `old`, and no `data`. */
void tn_decode_canal(struct tn_decoder *d)
{
    struct tn_envelope e = {0};
    if (!tn_json_read_envelope(d, tn_scan_space(d->start), &e)) {
        return;
    }
    if (e.ddl && e.change != TN_CHANGE_TRUNCATE) {
        e.change = TN_CHANGE_NONE;
    }
    bool rows = e.change == TN_CHANGE_INSERT || e.change == TN_CHANGE_UPDATE ||
                e.change == TN_CHANGE_DELETE;
    if (!rows) {
        tn_envelope_finish_without_rows(d, &e);
        return;
    }
    if (e.failed) {
        return; /* dead */
    }
    bool in_old = e.change == TN_CHANGE_DELETE && e.row_count[TN_PART_AFTER] == 0;
    enum tn_part part = in_old ? TN_PART_BEFORE : TN_PART_AFTER;
    if (e.row_count[part] == 0) {
        (void)tn_decode_fail(d, NULL, "type '%.*s' needs rows in 'data'", (int)e.word.size,
                             (const char *)e.word.data);
    } else if (e.change == TN_CHANGE_UPDATE) {
        finish_update(d, &e);
    } else {
        finish_rows(d, &e, part, false,
                    e.change == TN_CHANGE_INSERT ? TN_ROW_INSERT : TN_ROW_DELETE);
    }
}
