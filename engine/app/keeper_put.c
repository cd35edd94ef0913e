#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/keeper_private.h"
#include "app/older.h"

enum { LETTER_TEXTS = 2048 }; /* bytes of a letter, all but the record */

/* ---- letters ---- */

/* One that is too large for its box is its beginning. */
static tn_rc bury(struct tn_keeper *k, const struct tn_letter_record *letter, struct tn_err *err)
{
    struct tn_letters *letters = &k->dead.letters;
    tn_rc rc = tn_letters_bury(letters, letter, err);
    if (rc == TN_UNSUPPORTED) {
        uint32_t most = letters->box->size_max;
        struct tn_letter_record part = *letter;
        char reason[TN_ERR_TEXT_SIZE];
        part.record.size = most > 2 * LETTER_TEXTS ? most - 2 * LETTER_TEXTS : 0;
        part.record.size =
            letter->record.size < part.record.size ? letter->record.size : part.record.size;
        (void)snprintf(reason, sizeof reason, "(the beginning of %zu bytes) %.160s",
                       letter->record.size, letter->reason);
        part.reason = reason;
        rc = tn_letters_bury(letters, &part, err);
    }
    k->letters += rc == TN_OK;
    return rc;
}

static tn_rc bury_item(struct tn_keeper *k, const struct tn_keeper_from *from,
                       const struct tn_parcel_head *head, const struct tn_parcel_item *item,
                       struct tn_err *err)
{
    char reason[TN_ERR_TEXT_SIZE];
    (void)snprintf(reason, sizeof reason, "%.*s: %.*s", (int)head->source.size,
                   (const char *)head->source.data, (int)item->reason.size,
                   (const char *)item->reason.data);
    struct tn_letter_record letter = {.position = from->position,
                                      .part = item->part,
                                      .line = from->line,
                                      .record = item->data,
                                      .reason = reason};
    return bury(k, &letter, err);
}

/* As a script's rows that die are told of. */
static tn_rc bury_text(struct tn_keeper *k, const struct tn_keeper_from *from,
                       const struct tn_parcel_item *item, struct tn_bytes record, const char *why,
                       struct tn_err *err)
{
    struct tn_letters *letters = &k->dead.letters;
    char input[TN_LETTER_INPUT_SIZE];
    struct tn_letter_record letter = {
        .position = from->position, .part = item->part, .record = record, .reason = why};
    uint32_t header_size = letters->header_size;
    memcpy(input, letters->input, sizeof input);
    tn_letters_input(letters, TN_LETTER_ROW);
    tn_rc rc = bury(k, &letter, err);
    tn_letters_input(letters, input);
    letters->header_size = header_size; /* which is there still */
    return rc;
}

/* A row that was taken, and now can't be. */
static tn_rc bury_row(struct tn_keeper *k, const struct tn_keeper_from *from,
                      const struct tn_parcel_item *item, const char *why, struct tn_err *err)
{
    struct tn_buf text;
    tn_buf_init(&text, k->spec.room, k->spec.room_size);
    tn_older_text(tn_table_layout(k->table), item, &text);
    return bury_text(k, from, item, text.overflow ? item->data : tn_buf_bytes(&text), why, err);
}

/* ---- rows ---- */

static tn_rc check_head(const struct tn_keeper *k, const struct tn_parcel_head *head,
                        struct tn_err *err)
{
    int64_t id = tn_table_schema(k->table)->id;
    return head->schema == id ? TN_OK
                              : tn_err_set(err, TN_UNSUPPORTED, 0,
                                           "%s: the journal has rows of schema %" PRId64
                                           ", which is %" PRId64 " by now",
                                           k->name, head->schema, id);
}

/* No work is left that would make room: what is in is committed, so that buckets can be closed. */
static tn_rc make_room(struct tn_keeper *k, struct tn_err *err)
{
    if (!tn_table_idle(k->table)) {
        k->idle_once = false;
        return TN_AGAIN;
    }
    if (k->items != k->items_cut || k->cutting) {
        k->wants_cut = true;
        return TN_AGAIN;
    }
    if (k->idle_once) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "%s", err->text);
    }
    k->idle_once = true;
    tn_table_release(k->table);
    return TN_AGAIN;
}

static tn_rc put_row(struct tn_keeper *k, const struct tn_keeper_from *from,
                     const struct tn_parcel_item *item, struct tn_err *err)
{
    struct tn_origin origin = {from->position, item->part,
                               from->letters ? from->letters->number : k->source};
    struct tn_row row = {item->data.data, (uint32_t)item->data.size};
    if (tn_table_wants_cut(k->table)) {
        k->wants_cut = true;
    }
    tn_rc rc = tn_table_put_from(k->table, row, item->row_kind, &origin, err);
    if (rc == TN_AGAIN) {
        return make_room(k, err);
    }
    k->idle_once = false;
    if (rc == TN_INVALID) {
        struct tn_err why = *err;
        return bury_row(k, from, item, why.text, err);
    }
    k->rows += rc == TN_OK;
    return rc;
}

static void count_item(struct tn_keeper *k, const struct tn_parcel_item *item, int64_t now_ms)
{
    k->since_ms = k->items == k->items_cut ? now_ms : k->since_ms;
    k->quiet_ms = now_ms;
    k->items++;
    k->bytes += item->data.size;
}

void tn_keeper_parcel(struct tn_keeper *keeper, const struct tn_parcel_head *head,
                      struct tn_bytes items)
{
    struct tn_parcel_item item;
    struct tn_err ignored;
    tn_letters_input(&keeper->dead.letters, tn_input_name(head->input));
    if (head->input == TN_INPUT_CSV && tn_parcel_next(&items, &item, &ignored) == TN_OK &&
        item.kind == TN_PARCEL_HEADER) {
        tn_letters_header(&keeper->dead.letters, item.data);
    }
}

void tn_keeper_moved(struct tn_keeper *keeper)
{
    struct tn_clock *clock = keeper->spec.share->env.clock;
    if (keeper->moved_ms == 0) {
        keeper->moved_ms = tn_clock_monotonic_ms(clock);
    }
}

tn_rc tn_keeper_put_from(struct tn_keeper *keeper, const struct tn_keeper_from *from,
                         const struct tn_parcel_head *head, const struct tn_parcel_item *item,
                         int64_t now_ms, struct tn_err *err)
{
    struct tn_keeper *k = keeper;
    tn_rc rc = check_head(k, head, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_letters_turn(&k->dead.letters, from->letters);
    switch (item->kind) {
    case TN_PARCEL_ROW:
        rc = put_row(k, from, item, err);
        break;
    case TN_PARCEL_LETTER:
        rc = bury_item(k, from, head, item, err);
        break;
    case TN_PARCEL_HEADER: /* see tn_keeper_parcel */
        break;
    case TN_PARCEL_PLACE: /* of a track, which keeps it */
        return TN_OK;
    }
    if (rc == TN_OK) {
        count_item(k, item, now_ms);
    }
    return rc;
}

static struct tn_keeper_from from_journal(const struct tn_keeper *k,
                                          const struct tn_parcel_item *item)
{
    return (struct tn_keeper_from){.position =
                                       tn_keeper_letter_position(k->next.place, item->record),
                                   .line = item->record + (uint64_t)1};
}

tn_rc tn_keeper_put(struct tn_keeper *keeper, const struct tn_parcel_head *head,
                    const struct tn_parcel_item *item, int64_t now_ms, struct tn_err *err)
{
    struct tn_keeper_from from = from_journal(keeper, item);
    tn_rc rc = tn_keeper_put_from(keeper, &from, head, item, now_ms, err);
    keeper->next.items += rc == TN_OK;
    return rc;
}

tn_rc tn_keeper_bury(struct tn_keeper *keeper, const struct tn_parcel_item *item, const char *why,
                     int64_t now_ms, struct tn_err *err)
{
    struct tn_keeper_from from = from_journal(keeper, item);
    tn_letters_turn(&keeper->dead.letters, NULL);
    tn_rc rc = bury_text(keeper, &from, item, item->data, why, err);
    if (rc == TN_OK) {
        count_item(keeper, item, now_ms);
        keeper->next.items++;
    }
    return rc;
}
