#include <string.h>

#include "app/intake_private.h"

enum { HELD_MS = 2000 };

static tn_rc again(struct tn_intake *in, struct tn_err *err, const char *why)
{
    in->room_owed = true;
    in->counts.waits++;
    return tn_err_set(err, TN_AGAIN, 0, "%s", why);
}

/* `k` is the table's, or NULL. */
static tn_rc append(struct tn_intake *in, struct tn_keeper *k, const struct tn_message *message,
                    struct tn_bytes parcel, uint64_t *place, struct tn_err *err)
{
    struct tn_journal_part parts[3];
    struct tn_journal_part state = {0};
    uint32_t count = 0;
    tn_rc rc = k && k->keeps ? tn_keeper_state(k, in->state, &state, err) : TN_OK;
    if (rc != TN_OK) {
        return rc == TN_INVALID ? tn_err_set(err, TN_UNSUPPORTED, 0, "%s", err->text) : rc;
    }
    if (state.data.size > 0) {
        parts[count++] = state;
    }
    if (parcel.size > 0) {
        parts[count++] =
            (struct tn_journal_part){TN_JOURNAL_ROWS, tn_bytes_of(message->table), parcel};
    }
    if (message->sender.size > 0) {
        parts[count++] = (struct tn_journal_part){TN_JOURNAL_MEMO, message->sender, message->memo};
    }
    if (count == 0) { /* nothing came of it: it is as durable as what was before it */
        *place = tn_journal_next(in->journal) - 1;
        in->durable_owed = true;
        return TN_OK;
    }
    rc = tn_journal_append(in->journal, parts, count, place, err);
    if (rc == TN_OK && state.data.size > 0) {
        tn_keeper_state_saved(k, &state);
    }
    return rc == TN_AGAIN ? again(in, err, err->text) : rc;
}

static tn_rc check_message(const struct tn_intake *in, const struct tn_message *message,
                           struct tn_err *err)
{
    if (message->bytes.size > in->hub.size_max) {
        return tn_err_set(err, TN_INVALID, 0, "a message of %zu bytes, at most %zu",
                          message->bytes.size, in->hub.size_max);
    }
    if (message->sender.size > TN_SENDER_SIZE_MAX || message->memo.size > TN_MEMO_SIZE_MAX) {
        return tn_err_set(err, TN_INVALID, 0, "a sender's name of %zu bytes and a memo of %zu",
                          message->sender.size, message->memo.size);
    }
    return TN_OK;
}

/* OK: the table takes rows. */
static tn_rc check_keeper(struct tn_intake *in, struct tn_bytes table, struct tn_keeper **keeper,
                          struct tn_err *err)
{
    struct tn_keeper *k = tn_intake_find(in, table);
    if (!k) {
        return tn_err_set(err, TN_ABSENT, 0, "there is no table %.*s", (int)table.size,
                          (const char *)table.data);
    }
    if (k->state == TN_KEEPER_SHUT && k->trouble != TN_OK) {
        tn_rc rc = k->trouble == TN_INVALID || k->trouble == TN_ABSENT || k->trouble == TN_AGAIN
                       ? TN_UNSUPPORTED
                       : k->trouble;
        return tn_err_set(err, rc, 0, "%s takes nothing now: %s", k->name, k->trouble_text.text);
    }
    if (k->state != TN_KEEPER_LIVE) {
        return again(in, err, "the table reads what it missed from the journal");
    }
    *keeper = k;
    return TN_OK;
}

/* What `map` was asked about is not taken: it never was. */
static void put_back(struct tn_intake *in, struct tn_keeper *k)
{
    struct tn_err err = {0};
    bool changed = k->table && k->keeps && tn_script_changed(k->mapper.script);
    tn_rc rc = changed ? tn_keeper_put_back(k, in->journal, &err) : TN_OK;
    if (rc != TN_OK) {
        tn_keeper_fail(k, rc, &err, tn_intake_now_ms(in));
    }
}

static tn_rc pack(struct tn_intake *in, struct tn_keeper *k, struct tn_message *message, void *room,
                  struct tn_bytes *parcel, struct tn_err *err)
{
    tn_rc rc = tn_packer_pack(&in->packer, k, message, room, parcel, err);
    if (rc == TN_CANCELED) { /* its script is parked */
        tn_keeper_fail(k, rc, err, tn_intake_now_ms(in));
    } else if (rc != TN_OK) {
        put_back(in, k);
    }
    return rc;
}

/* ---- what a script made is not made again ---- */

static struct tn_hash_128 identity_of(const struct tn_message *message)
{
    const uint64_t numbers[] = {message->input, message->cut_size, message->whole, message->split};
    const struct tn_bytes parts[] = {{(const unsigned char *)numbers, sizeof numbers},
                                     tn_bytes_of(message->table),
                                     tn_bytes_of(message->source ? message->source : ""),
                                     message->topic,
                                     message->sender,
                                     message->memo,
                                     message->bytes};
    struct tn_hash_128 id = {1, 2};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        id.high = tn_hash_64(parts[i], id.high);
        id.low = tn_hash_64(parts[i], id.low);
    }
    return id;
}

static void hold(struct tn_intake *in, struct tn_keeper *k, const struct tn_message *message,
                 const struct tn_ring_entry *entry, size_t size)
{
    in->held = (struct tn_intake_held){.of = identity_of(message),
                                       .keeper = k,
                                       .opened = k->reopened,
                                       .entry = entry,
                                       .size = size,
                                       .rows = message->rows,
                                       .dead = message->dead,
                                       .left = message->left,
                                       .until_ms = tn_intake_now_ms(in) + HELD_MS};
}

/* Nobody wants it any more. Where its table was opened since, its stores are as they were already.
 */
static void drop_held(struct tn_intake *in)
{
    struct tn_keeper *k = in->held.keeper;
    in->held.keeper = NULL;
    if (in->held.opened == k->reopened) {
        put_back(in, k);
    }
}

/* OK: the parcel is that of this message, where it is to lie. ABSENT: it has to be made. */
static tn_rc take_held(struct tn_intake *in, const struct tn_keeper *k, struct tn_message *message,
                       struct tn_ring_entry *entry, struct tn_bytes *parcel, struct tn_err *err)
{
    struct tn_intake_held *held = &in->held;
    struct tn_hash_128 of = {0};
    if (!held->keeper) {
        return TN_ABSENT;
    }
    of = identity_of(message);
    if (held->of.high != of.high || held->of.low != of.low) {
        if (tn_intake_now_ms(in) < held->until_ms) {
            return again(in, err, "what came before waits for room in the journal");
        }
        drop_held(in); /* nobody offers it any more */
        return k->table ? TN_ABSENT : again(in, err, "its table is opened again");
    }
    if (held->keeper != k || held->opened != k->reopened) { /* its script is another one */
        drop_held(in);
        return k->table ? TN_ABSENT : again(in, err, "its table is opened again");
    }
    held->keeper = NULL;
    memmove(entry + 1, held->entry + 1, held->size); /* the ring may have begun anew */
    *parcel = (struct tn_bytes){(const unsigned char *)(entry + 1), held->size};
    message->rows = held->rows;
    message->dead = held->dead;
    message->left = held->left;
    return TN_OK;
}

static tn_rc make_parcel(struct tn_intake *in, struct tn_keeper *k, struct tn_message *message,
                         struct tn_ring_entry *entry, struct tn_bytes *parcel, struct tn_err *err)
{
    tn_rc rc = take_held(in, k, message, entry, parcel, err);
    return rc == TN_ABSENT ? pack(in, k, message, entry + 1, parcel, err) : rc;
}

/* Of a file that is kept: the place behind what was taken. */
static void note_place(struct tn_message *message, char text[TN_FILE_PLACE_SIZE])
{
    struct tn_file_place behind = *message->behind;
    tn_file_place_back(&behind, tn_message_left(message));
    tn_file_place_format(&behind, text);
    message->memo = tn_bytes_of(text);
}

static tn_rc offer_rows(struct tn_intake *in, struct tn_message *message, struct tn_err *err)
{
    char place[TN_FILE_PLACE_SIZE];
    struct tn_keeper *k = NULL;
    tn_rc rc = check_keeper(in, tn_bytes_of(message->table), &k, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_ring_entry *entry = tn_ring_room(&in->ring);
    if (!entry) {
        return again(in, err, "what came before is on its way to the disk");
    }
    struct tn_bytes parcel;
    rc = make_parcel(in, k, message, entry, &parcel, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_bytes memo = message->memo;
    if (message->kept) {
        note_place(message, place);
    }
    rc = append(in, k, message, parcel, &message->place, err);
    message->memo = memo;
    if (rc == TN_AGAIN && k->mapper.script) {
        hold(in, k, message, entry, parcel.size);
    } else if (rc != TN_OK) {
        put_back(in, k);
    }
    if (rc != TN_OK || parcel.size == 0) {
        return rc;
    }
    *entry = (struct tn_ring_entry){.place = message->place,
                                    .next = tn_journal_next(in->journal),
                                    .size = (uint32_t)parcel.size,
                                    .keeper = (uint32_t)(k - in->spec.keepers)};
    tn_ring_keep(&in->ring, entry);
    k->newest = message->place;
    return TN_OK;
}

static struct tn_track *find_track(const struct tn_intake *in, struct tn_bytes source)
{
    for (uint32_t i = 0; i < in->track_count; i++) {
        if (tn_bytes_equal(tn_bytes_of(in->tracks[i].source), source)) {
            return &in->tracks[i];
        }
    }
    return NULL;
}

/* Of a file whose table's `map` has stores. */
static tn_rc offer_kept(struct tn_intake *in, struct tn_track *track, struct tn_message *message,
                        struct tn_err *err)
{
    char place[TN_FILE_PLACE_SIZE];
    struct tn_message kept = *message;
    tn_rc rc;
    kept.kept = true;
    kept.sender = tn_bytes_of(track->source);
    if (message->table) {
        rc = offer_rows(in, &kept, err);
    } else {
        note_place(&kept, place);
        rc = append(in, NULL, &kept, (struct tn_bytes){0}, &kept.place, err);
    }
    message->place = kept.place;
    message->rows = kept.rows;
    message->dead = kept.dead;
    message->left = kept.left;
    if (rc == TN_OK) {
        struct tn_message taken = kept;
        struct tn_file_place behind = *message->behind;
        tn_file_place_back(&behind, tn_message_left(message));
        taken.behind = &behind;
        tn_track_keep(track, &taken, kept.place);
    }
    return rc;
}

/* Of a file, past the journal. */
static tn_rc offer_file(struct tn_intake *in, struct tn_message *message, struct tn_err *err)
{
    struct tn_keeper *k = NULL;
    struct tn_bytes parcel = {0};
    struct tn_track *track = find_track(in, message->sender);
    if (!track) {
        return tn_err_set(err, TN_ABSENT, 0, "no file of this name is configured");
    }
    tn_rc rc = check_keeper(in, tn_bytes_of(track->keeper->name), &k, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (k->keeps) {
        return offer_kept(in, track, message, err);
    }
    if (track->size > 0) {
        track->owed = true;
        in->counts.waits++;
        return tn_err_set(err, TN_AGAIN, 0, "what came before is on its way to the table");
    }
    if (message->table) {
        rc = pack(in, k, message, track->parcel, &parcel, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_message taken = *message;
    struct tn_file_place behind = *message->behind;
    tn_file_place_back(&behind, tn_message_left(message));
    taken.behind = &behind;
    if (parcel.size > 0) {
        tn_track_take(track, &taken, parcel.size);
    } else {
        tn_track_pass(track, &taken);
    }
    return TN_OK;
}

static tn_rc offer(struct tn_hub *hub, struct tn_message *message, struct tn_err *err)
{
    struct tn_intake *in = (struct tn_intake *)(void *)hub;
    message->rows = 0;
    message->dead = 0;
    message->line = 0;
    message->left = 0;
    tn_rc rc = check_message(in, message, err);
    if (rc == TN_OK && in->failed != TN_OK) {
        *err = in->failure;
        return in->failed;
    }
    if (rc == TN_OK && in->stopping) {
        rc = tn_err_set(err, TN_CANCELED, 0, "tarn ends");
    }
    if (rc == TN_OK && in->reserve.low) {
        rc = again(in, err, "the disk has no more room than disk_reserve says is to be kept");
    }
    if (rc == TN_OK) {
        rc = message->from ? offer_file(in, message, err)
             : message->table
                 ? offer_rows(in, message, err)
                 : append(in, NULL, message, (struct tn_bytes){0}, &message->place, err);
    }
    in->counts.messages += rc == TN_OK;
    in->counts.rows += rc == TN_OK ? message->rows : 0;
    in->counts.dead += rc == TN_OK ? message->dead : 0;
    in->counts.refused += rc != TN_OK && rc != TN_AGAIN;
    if (rc == TN_OK && in->tee.open) {
        struct tn_message taken = *message;
        taken.bytes.size -= message->left;
        tn_tee_put(&in->tee, &taken);
    }
    return rc;
}

static tn_rc sender(struct tn_hub *hub, struct tn_bytes name, struct tn_bytes *memo,
                    uint64_t *place)
{
    const struct tn_intake *in = (const struct tn_intake *)(const void *)hub;
    return tn_journal_memo(in->journal, name, memo, place);
}

static tn_rc place(struct tn_hub *hub, struct tn_bytes name, struct tn_file_place *place)
{
    const struct tn_intake *in = (const struct tn_intake *)(const void *)hub;
    const struct tn_track *track = find_track(in, name);
    if (!track || track->fresh) {
        return TN_ABSENT;
    }
    *place = track->behind;
    return TN_OK;
}

static uint64_t committed(const struct tn_hub *hub, struct tn_bytes name)
{
    const struct tn_intake *in = (const struct tn_intake *)(const void *)hub;
    const struct tn_track *track = find_track(in, name);
    return track ? tn_file_place_bytes(&track->committed) : 0;
}

const struct tn_hub_vtable tn_intake_hub = {
    .offer = offer, .sender = sender, .place = place, .committed = committed};
