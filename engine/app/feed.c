#include "app/feed.h"

enum {
    TIME_CHECK_ROWS = 256, /* the clock is read once in so many records */
    WAIT_MS_MAX = 1000,
};

static int64_t now_ms(const struct tn_feed *feed)
{
    struct tn_clock *clock = feed->spec.clock;
    return clock->vtable->now_ms(clock);
}

/* Letters of records before the place are there before the rows are committed. */
static tn_rc note(struct tn_feed *feed, struct tn_feed_place place, struct tn_err *err)
{
    tn_rc rc = feed->spec.letters ? tn_letters_publish(feed->spec.letters, err) : TN_OK;
    return rc == TN_OK ? feed->spec.note(feed->spec.user, place, err) : rc;
}

static tn_rc cut(struct tn_feed *feed, struct tn_feed_place place, struct tn_err *err)
{
    struct tn_table *table = feed->spec.table;
    tn_rc rc = note(feed, place, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_table_cut(table, feed->rows, err);
    while (rc == TN_AGAIN) {
        rc = tn_table_turn(table, true, err);
        if (rc == TN_OK) {
            rc = tn_table_cut(table, feed->rows, err);
        }
    }
    feed->rows_cut = feed->rows;
    feed->cuts += rc == TN_OK;
    feed->last_cut_ms = now_ms(feed);
    return rc;
}

/* No work is left that would make room: the rows so far are committed, so that their buckets can be
 * closed. The record at hand belongs to the next commit. */
static tn_rc make_room(struct tn_feed *feed, uint32_t stuck, struct tn_err *err)
{
    struct tn_table *table = feed->spec.table;
    bool single = feed->spec.single;
    if (stuck > 1 || single) { /* closing buckets did not help, or must not be */
        return tn_err_set(err, TN_UNSUPPORTED, 0, "%s%s", err->text,
                          single ? "; without --commit-id it would be several commits" : "");
    }
    tn_rc rc = cut(feed, feed->at, err);
    while (rc == TN_OK && !tn_table_idle(table)) {
        rc = tn_table_turn(table, true, err);
    }
    tn_table_release(table);
    return rc;
}

/* The table can't take this row, and waiting does not help: what was put before is committed. The
 * first error is the one to tell. */
static void keep_rows(struct tn_feed *feed)
{
    struct tn_err ignored = {0};
    tn_rc rc = feed->spec.single ? TN_INVALID : cut(feed, feed->at, &ignored);
    while (rc == TN_OK && !tn_table_idle(feed->spec.table)) {
        rc = tn_table_turn(feed->spec.table, true, &ignored);
    }
}

/* OK with `*dead`: this row can't be taken, the text says why. */
static tn_rc put(struct tn_feed *feed, struct tn_row row, enum tn_row_kind kind, bool *dead,
                 struct tn_err *err)
{
    struct tn_table *table = feed->spec.table;
    struct tn_origin origin = {(int64_t)feed->at.offset, feed->first_part + feed->at.part,
                               feed->source};
    for (uint32_t stuck = 0;;) {
        tn_rc rc = tn_table_put_from(table, row, kind, &origin, err);
        *dead = rc == TN_INVALID;
        if (rc != TN_OK && rc != TN_AGAIN && !*dead) {
            keep_rows(feed);
        }
        if (rc != TN_AGAIN) {
            return *dead ? TN_OK : rc;
        }
        rc = tn_table_idle(table) ? make_room(feed, stuck++, err) : tn_table_turn(table, true, err);
        if (rc != TN_OK) {
            return rc;
        }
    }
}

/* From row `at.part` on the record can't be taken. */
static tn_rc bury(struct tn_feed *feed, const struct tn_decoded *decoded, const char *reason,
                  struct tn_err *err)
{
    tn_rc rc = TN_OK;
    if (feed->spec.bury) {
        feed->spec.bury(feed->spec.user, decoded, reason);
    } else {
        struct tn_letter_record letter = {.position = (int64_t)feed->at.offset,
                                          .part = feed->first_part + feed->at.part,
                                          .line = decoded->line,
                                          .record = decoded->record,
                                          .reason = reason};
        rc = tn_letters_bury(feed->spec.letters, &letter, err);
    }
    feed->dead += rc == TN_OK;
    return rc;
}

/* Row i of the record; they are asked for in their order. ABSENT: that were all. */
static tn_rc next_row(struct tn_feed *feed, struct tn_decoded *decoded, uint32_t i,
                      struct tn_row *row, enum tn_row_kind *kind, struct tn_err *err)
{
    if (feed->spec.mapper) {
        return tn_mapper_next(feed->spec.mapper, feed->decoder, decoded, feed->at.offset, row, kind,
                              err);
    }
    if (i == decoded->count) {
        return TN_ABSENT;
    }
    *row = tn_decoder_row(feed->decoder, decoded, i);
    *kind = tn_decoded_kind(decoded, i);
    return TN_OK;
}

/* Those before `at.part` went in before a cut, in an earlier run. A record may make more rows than
 * a commit has room for, so a cut may come between them. */
static tn_rc take_rows(struct tn_feed *feed, struct tn_decoded *decoded, struct tn_err *err)
{
    uint32_t part = feed->at.part;
    for (uint32_t i = 0;; i++) {
        struct tn_row row;
        enum tn_row_kind kind;
        tn_rc rc = next_row(feed, decoded, i, &row, &kind, err);
        bool dead = rc == TN_INVALID;
        feed->at.part = i > part ? i : part;
        if (rc == TN_OK && i > part && tn_table_wants_cut(feed->spec.table)) {
            rc = cut(feed, feed->at, err);
        }
        if (rc == TN_OK && i >= part) {
            rc = put(feed, row, kind, &dead, err);
        }
        if (dead) {
            struct tn_err why = *err;
            return bury(feed, decoded, why.text, err);
        }
        if (rc != TN_OK) {
            return rc == TN_ABSENT ? TN_OK : rc;
        }
    }
}

static tn_rc take_record(struct tn_feed *feed, struct tn_decoded *decoded, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    if (decoded->dead) {
        rc = bury(feed, decoded, decoded->reason, err);
    } else {
        if (feed->spec.mapper) {
            tn_mapper_begin(feed->spec.mapper);
        }
        rc = take_rows(feed, decoded, err);
    }
    bool framed = feed->spec.mapper && feed->spec.mapper->records && decoded->record.size > 0;
    if (rc == TN_OK && feed->spec.taken) {
        rc = feed->spec.taken(feed->spec.user, err);
    }
    feed->rows += rc == TN_OK && (decoded->count > 0 || decoded->dead || framed);
    return rc;
}

static bool cut_is_due(struct tn_feed *feed)
{
    const struct tn_feed_spec *spec = &feed->spec;
    if (spec->every_rows > 0 && feed->rows - feed->rows_cut >= spec->every_rows) {
        return true;
    }
    if (spec->every_ms > 0 && ++feed->since_clock >= TIME_CHECK_ROWS) {
        feed->since_clock = 0;
        return now_ms(feed) - feed->last_cut_ms >= spec->every_ms;
    }
    return tn_table_wants_cut(spec->table);
}

/* Milliseconds until a cut by time is due, or -1 when there is nothing to cut. */
static int64_t cut_due_in(const struct tn_feed *feed)
{
    if (feed->spec.every_ms == 0 || feed->rows == feed->rows_cut) {
        return -1;
    }
    int64_t left = feed->last_cut_ms + feed->spec.every_ms - now_ms(feed);
    return left > 0 ? left : 0;
}

void tn_feed_init(struct tn_feed *feed, const struct tn_feed_spec *spec)
{
    *feed = (struct tn_feed){.spec = *spec};
    feed->last_cut_ms = now_ms(feed);
}

/* A csv record can't be read without its header, which gives no row. */
static void note_header(struct tn_feed *feed, const struct tn_decoded *decoded)
{
    if (feed->spec.letters && decoded->count == 0 && !decoded->dead && decoded->record.size > 0) {
        tn_letters_header(feed->spec.letters, decoded->record);
    }
}

tn_rc tn_feed_eat(struct tn_feed *feed, struct tn_bytes *input, bool last, struct tn_err *err)
{
    for (;;) {
        struct tn_decoded decoded;
        size_t eaten = 0;
        tn_rc rc = tn_decoder_next(feed->decoder, *input, last, &decoded, &eaten, err);
        feed->at = feed->next;
        input->data += eaten;
        input->size -= eaten;
        feed->next.offset += eaten;
        if (rc == TN_OK) {
            feed->next.line = decoded.line;
            feed->next.part = 0;
            note_header(feed, &decoded);
            rc = take_record(feed, &decoded, err);
        }
        if (rc == TN_OK && cut_is_due(feed)) {
            rc = cut(feed, feed->next, err);
        }
        if (rc != TN_OK) {
            return rc;
        }
    }
}

tn_rc tn_feed_rest(struct tn_feed *feed, int *wait_ms, struct tn_err *err)
{
    int64_t due = cut_due_in(feed);
    *wait_ms = 0;
    if (due == 0) {
        return cut(feed, feed->next, err);
    }
    if (!tn_table_idle(feed->spec.table)) {
        return tn_table_turn(feed->spec.table, true, err);
    }
    *wait_ms = due > 0 && due < WAIT_MS_MAX ? (int)due : WAIT_MS_MAX;
    return TN_OK;
}

tn_rc tn_feed_note(struct tn_feed *feed, struct tn_err *err)
{
    return note(feed, feed->next, err);
}
