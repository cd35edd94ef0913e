/* What the forms that tell of changes mean. */
#include <string.h>

#include "ingest/decode_envelope.h"

void tn_decode_changes(struct tn_decoder *d)
{
    struct tn_envelope e = {0};
    enum tn_row_kind kind;
    if (!tn_json_read_envelope(d, tn_scan_space(d->start), &e)) {
        return;
    }
    if (!e.has[TN_PART_WORD] || !tn_row_kind_parse(e.word, &kind)) {
        (void)tn_decode_fail(d, NULL, "'kind' has to be +I, -U, +U or -D");
    } else if (!e.has[TN_PART_AFTER]) {
        (void)tn_decode_fail(d, NULL, "there is no 'row'");
    } else {
        (void)tn_decode_row_finish(d, &d->rows[1], kind);
    }
}

static void finish_part(struct tn_decoder *d, const struct tn_envelope *e, enum tn_part part,
                        enum tn_row_kind kind)
{
    if (!e->has[part]) {
        (void)tn_decode_fail(d, NULL, "%s '%.*s' needs '%s'", d->parts[TN_PART_WORD].name,
                             (int)e->word.size, (const char *)e->word.data, d->parts[part].name);
        return;
    }
    (void)tn_decode_row_finish(d, &d->rows[part == TN_PART_AFTER], kind);
}

static void finish_debezium(struct tn_decoder *d, const struct tn_envelope *e)
{
    switch (e->change) {
    case TN_CHANGE_INSERT:
        finish_part(d, e, TN_PART_AFTER, TN_ROW_INSERT);
        return;
    case TN_CHANGE_UPDATE:
        if (e->has[TN_PART_BEFORE]) {
            finish_part(d, e, TN_PART_BEFORE, TN_ROW_UPDATE_BEFORE);
        }
        if (!d->decoded->dead) {
            finish_part(d, e, TN_PART_AFTER, TN_ROW_UPDATE_AFTER);
        }
        return;
    case TN_CHANGE_DELETE:
        finish_part(d, e, TN_PART_BEFORE, TN_ROW_DELETE);
        return;
    case TN_CHANGE_UNKNOWN:
    case TN_CHANGE_TRUNCATE:
    case TN_CHANGE_MESSAGE:
    case TN_CHANGE_NONE:
        break;
    }
    tn_envelope_finish_without_rows(d, e);
}

/* Now that the schema is known. */
static bool read_with_schema(struct tn_decoder *d, tn_cursor at, struct tn_envelope *e)
{
    *e = (struct tn_envelope){.schema_known = true};
    d->scratch.size = d->batch.scratch_size;
    d->late_count = 0;
    d->decoded->dead = false;
    d->decoded->reason[0] = 0;
    return tn_json_read_envelope(d, at, e);
}

void tn_decode_debezium(struct tn_decoder *d)
{
    struct tn_envelope e = {0};
    tn_cursor at = tn_scan_space(d->start);
    if (tn_json_is_word(at, "null", 4)) {
        d->decoded->skipped = tn_json_at_end(d, at + 4);
        return;
    }
    if (!tn_json_read_envelope(d, at, &e)) {
        return;
    }
    if (e.schema_late && !read_with_schema(d, at, &e)) {
        return;
    }
    if (e.failed) {
        return; /* dead */
    }
    d->decoded->skipped = e.seen[TN_PART_PAYLOAD] && !e.has[TN_PART_PAYLOAD]; /* a tombstone */
    if (!d->decoded->skipped) {
        finish_debezium(d, &e);
    }
}

/* `old` has what an update changed. Some producers put a deleted row there, and no `data`. */
static void finish_maxwell(struct tn_decoder *d, struct tn_envelope *e)
{
    bool has_data = e->has[TN_PART_AFTER] && d->rows[1].seen_count > 0;
    switch (e->change) {
    case TN_CHANGE_INSERT:
        finish_part(d, e, TN_PART_AFTER, TN_ROW_INSERT);
        return;
    case TN_CHANGE_UPDATE:
        if (e->has[TN_PART_BEFORE] && e->has[TN_PART_AFTER]) {
            tn_envelope_fill_before(d);
            finish_part(d, e, TN_PART_BEFORE, TN_ROW_UPDATE_BEFORE);
        }
        if (!d->decoded->dead) {
            finish_part(d, e, TN_PART_AFTER, TN_ROW_UPDATE_AFTER);
        }
        return;
    case TN_CHANGE_DELETE:
        finish_part(d, e, !has_data && e->has[TN_PART_BEFORE] ? TN_PART_BEFORE : TN_PART_AFTER,
                    TN_ROW_DELETE);
        return;
    case TN_CHANGE_UNKNOWN:
    case TN_CHANGE_TRUNCATE:
    case TN_CHANGE_MESSAGE:
    case TN_CHANGE_NONE:
        break;
    }
    tn_envelope_finish_without_rows(d, e);
}

void tn_decode_maxwell(struct tn_decoder *d)
{
    struct tn_envelope e = {0};
    if (!tn_json_read_envelope(d, tn_scan_space(d->start), &e)) {
        return;
    }
    bool rows = e.change != TN_CHANGE_UNKNOWN && e.change != TN_CHANGE_NONE;
    if (!rows || !e.failed) { /* else it is dead */
        finish_maxwell(d, &e);
    }
}
