#include "table/letter_resend.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { HEAD_SIZE = 5, WHERE_SIZE = 700 };

/* ---- letters on their way ---- */

static tn_rc make_layout(struct tn_resend *r, struct tn_err *err)
{
    static const struct tn_type TYPES[TN_LETTER_COLUMNS] = {
        [TN_LETTER_SOURCE] = {.kind = TN_TYPE_VARCHAR, .length = TN_LENGTH_MAX},
        [TN_LETTER_POSITION] = {.kind = TN_TYPE_BIGINT},
        [TN_LETTER_PART] = {.kind = TN_TYPE_INT},
        [TN_LETTER_TABLE] = {.kind = TN_TYPE_VARCHAR, .length = TN_LENGTH_MAX, .nullable = true},
        [TN_LETTER_LINE] = {.kind = TN_TYPE_BIGINT, .nullable = true},
        [TN_LETTER_INPUT] = {.kind = TN_TYPE_VARCHAR, .length = TN_LENGTH_MAX, .nullable = true},
        [TN_LETTER_HEADER] = {.kind = TN_TYPE_VARCHAR, .length = TN_LENGTH_MAX, .nullable = true},
        [TN_LETTER_REASON] = {.kind = TN_TYPE_VARCHAR, .length = TN_LENGTH_MAX, .nullable = true},
        [TN_LETTER_RECORD] = {.kind = TN_TYPE_VARCHAR, .length = TN_LENGTH_MAX, .nullable = true},
        [TN_LETTER_BYTES] = {.kind = TN_TYPE_VARBINARY, .length = TN_LENGTH_MAX, .nullable = true},
        [TN_LETTER_RETRY] = {.kind = TN_TYPE_BIGINT, .nullable = true},
    };
    static const char *const NAMES[TN_LETTER_COLUMNS] = {"", "", "", "", "", "",
                                                         "", "", "", "", ""};
    return tn_row_layout_init(&r->layout, NAMES, TYPES, TN_LETTER_COLUMNS, &r->letters->arena, err);
}

static tn_rc add(struct tn_resend *r, const struct tn_value *values, bool covered,
                 struct tn_err *err)
{
    struct tn_letter_table *l = r->letters;
    unsigned char head[HEAD_SIZE];
    uint32_t size = tn_row_packed_size(&r->layout, values);
    if (size > l->env.row_size_max) {
        return tn_err_set(err, TN_UNSUPPORTED, 0,
                          "a dead letter of %u bytes, at most %u fit the "
                          "memory",
                          size, l->env.row_size_max);
    }
    (void)tn_row_pack(&r->layout, values, l->row);
    tn_store_u32(head, size);
    head[4] = covered;
    tn_rc rc = tn_spool_add(&r->spool, (struct tn_bytes){head, sizeof head}, err);
    return rc == TN_OK ? tn_spool_add(&r->spool, (struct tn_bytes){l->row, size}, err) : rc;
}

/* Into the letters' `text`; ABSENT at the end. */
static tn_rc load(struct tn_resend *r, struct tn_value *values, bool *covered, struct tn_err *err)
{
    struct tn_letter_table *l = r->letters;
    unsigned char head[HEAD_SIZE];
    if (r->at == r->spool.size) {
        return TN_ABSENT;
    }
    tn_rc rc = tn_spool_read(&r->spool, r->at, head, sizeof head, err);
    uint32_t size = rc == TN_OK ? tn_load_u32(head) : 0;
    if (size > l->env.row_size_max) { /* the disk has kept something else */
        return tn_err_set(err, TN_CORRUPT, 0, "%s: byte %" PRIu64 ": no letter begins here",
                          r->spool.path, r->at);
    }
    if (rc == TN_OK) {
        rc = tn_spool_read(&r->spool, r->at + HEAD_SIZE, l->text, size, err);
    }
    for (uint32_t i = 0; rc == TN_OK && i < TN_LETTER_COLUMNS; i++) {
        tn_row_get(&r->layout, (struct tn_row){l->text, size}, i, &values[i]);
    }
    *covered = head[4];
    r->at += HEAD_SIZE + (uint64_t)size;
    return rc;
}

static tn_rc scan(struct tn_resend *r, tn_letter_fn *each, int64_t number_max, struct tn_err *err)
{
    struct tn_buf where;
    unsigned char text[WHERE_SIZE];
    tn_buf_init(&where, text, sizeof text);
    tn_buf_text(&where, "`table` = ");
    tn_letter_table_quote(&where, r->table);
    if (number_max >= 0) {
        tn_buf_format(&where, " and `retry` <= %" PRId64, number_max);
    }
    tn_buf_byte(&where, 0);
    if (where.overflow) {
        return tn_err_set(err, TN_INVALID, 0, "%.100s: the name is too long", r->table);
    }
    r->at = 0;
    return tn_letter_table_each(r->letters, (const char *)text, each, r, err);
}

/* ---- those that were sent ---- */

static tn_rc take(void *user, const struct tn_value *values, struct tn_err *err)
{
    return add(user, values, false, err);
}

/* The first row that a letter is about. */
static int64_t first_part(const struct tn_value *values)
{
    int64_t part = values[TN_LETTER_PART].as.i64;
    return part < 0 ? -1 - part : part;
}

/* Those of the place's number and below; the next one's first rows may be in. */
static tn_rc settle_one(struct tn_resend *r, struct tn_value *values, struct tn_resend_place place,
                        struct tn_err *err)
{
    tn_rc rc = TN_OK;
    if (values[TN_LETTER_RETRY].as.i64 > place.number) {
        struct tn_value kept[] = {values[TN_LETTER_PART], values[TN_LETTER_RETRY]};
        if ((int64_t)place.part <= first_part(values)) {
            return TN_OK;
        }
        values[TN_LETTER_PART].as.i64 = -1 - (int64_t)place.part;
        values[TN_LETTER_RETRY].null = true;
        rc = tn_letter_table_put(r->letters, values, TN_ROW_INSERT, err);
        values[TN_LETTER_PART] = kept[0];
        values[TN_LETTER_RETRY] = kept[1];
    }
    return rc == TN_OK ? tn_letter_table_put(r->letters, values, TN_ROW_DELETE, err) : rc;
}

static tn_rc settle(struct tn_resend *r, struct tn_resend_place place, struct tn_err *err)
{
    tn_rc rc = scan(r, take, place.number + 1, err);
    while (rc == TN_OK) {
        struct tn_value values[TN_LETTER_COLUMNS];
        bool ignored;
        rc = load(r, values, &ignored, err);
        rc = rc == TN_OK ? settle_one(r, values, place, err) : rc;
    }
    rc = rc == TN_ABSENT ? r->letters->box.commit(&r->letters->box, err) : rc;
    return rc == TN_OK ? tn_spool_cut(&r->spool, 0, err) : rc;
}

/* ---- those that are to be sent ---- */

static bool is_row(const struct tn_value *values)
{
    const struct tn_value *input = &values[TN_LETTER_INPUT];
    return !input->null && tn_bytes_equal(input->as.bytes, tn_bytes_of(TN_LETTER_ROW));
}

/* Those of part -1 - p come first. */
static tn_rc take_next(void *user, const struct tn_value *values, struct tn_err *err)
{
    struct tn_resend *r = user;
    struct tn_bytes source = values[TN_LETTER_SOURCE].as.bytes;
    int64_t position = values[TN_LETTER_POSITION].as.i64;
    bool covered = r->covering_size > 0 && position == r->covering_position &&
                   first_part(values) >= r->covering_part &&
                   tn_bytes_equal(source, (struct tn_bytes){r->covering, r->covering_size});
    if (!covered && !is_row(values) && source.size <= sizeof r->covering) {
        memcpy(r->covering, source.data, source.size);
        r->covering_size = source.size;
        r->covering_position = position;
        r->covering_part = first_part(values);
    }
    return add(r, values, covered, err);
}

static tn_rc count_one(void *user, const struct tn_value *values, struct tn_err *err)
{
    struct tn_resend *r = user;
    (void)values;
    (void)err;
    r->count++;
    return TN_OK;
}

/* A record's letter changes its key: what it had goes last. */
static tn_rc number_one(struct tn_resend *r, struct tn_value *values, int64_t number,
                        struct tn_err *err)
{
    struct tn_value part = values[TN_LETTER_PART];
    bool moves = !is_row(values) && part.as.i64 >= 0;
    values[TN_LETTER_RETRY] = (struct tn_value){.as.i64 = number};
    values[TN_LETTER_PART].as.i64 = moves ? -1 - part.as.i64 : part.as.i64;
    tn_rc rc = tn_letter_table_put(r->letters, values, TN_ROW_INSERT, err);
    values[TN_LETTER_PART] = part;
    return rc == TN_OK && moves ? tn_letter_table_put(r->letters, values, TN_ROW_DELETE, err) : rc;
}

static tn_rc number_all(struct tn_resend *r, int64_t number, struct tn_err *err)
{
    tn_rc rc = scan(r, take_next, -1, err);
    while (rc == TN_OK) {
        struct tn_value values[TN_LETTER_COLUMNS];
        bool covered = false;
        rc = load(r, values, &covered, err);
        if (rc == TN_OK && covered) {
            rc = tn_letter_table_put(r->letters, values, TN_ROW_DELETE, err);
        } else if (rc == TN_OK) {
            r->count++;
            rc = number_one(r, values, number++, err);
        }
    }
    r->at = 0;
    return rc == TN_ABSENT ? r->letters->box.commit(&r->letters->box, err) : rc;
}

/* ---- the calls ---- */

tn_rc tn_resend_begin(struct tn_resend *resend, struct tn_letter_table *letters, const char *table,
                      struct tn_resend_place place, struct tn_err *err)
{
    *resend = (struct tn_resend){.letters = letters, .table = table};
    tn_letter_table_rest(letters); /* the layout lies below what it takes when it is open */
    tn_rc rc = tn_spool_init(&resend->spool, letters->env.io, table, "resend", err);
    if (rc == TN_OK) {
        rc = make_layout(resend, err);
    }
    if (rc == TN_OK) {
        rc = settle(resend, place, err);
    }
    resend->number = place.number + 1; /* the next one's number is not given again */
    return rc == TN_OK ? number_all(resend, place.number + 2, err) : rc;
}

tn_rc tn_resend_next(struct tn_resend *resend, struct tn_value *values, struct tn_err *err)
{
    bool covered = false;
    tn_rc rc;
    do {
        rc = load(resend, values, &covered, err);
    } while (rc == TN_OK && covered);
    if (rc == TN_OK) {
        resend->number++;
        values[TN_LETTER_PART].as.i64 = first_part(values);
    }
    return rc;
}

tn_rc tn_resend_finish(struct tn_resend *resend, struct tn_resend_place place, uint64_t *left,
                       struct tn_err *err)
{
    tn_rc rc = tn_spool_cut(&resend->spool, 0, err);
    if (rc == TN_OK) {
        rc = settle(resend, place, err);
    }
    resend->count = 0;
    if (rc == TN_OK) {
        rc = scan(resend, count_one, -1, err);
    }
    *left = resend->count;
    return rc;
}

void tn_resend_close(struct tn_resend *resend)
{
    if (resend->letters) {
        tn_spool_close(&resend->spool);
    }
}
