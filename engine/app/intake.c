#include "app/intake.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/older.h"
#include "base/check.h"
#include "file/names.h"

enum {
    RING_PARCELS = 4,
    PARCEL_BESIDE = TN_SENDER_SIZE_MAX + TN_MEMO_SIZE_MAX + 512, /* in a block: names, memo */
    MESSAGE_SHARE = 2, /* rows are shorter than their text, mostly: a guess */
    DECODER_FIXED = 96 * 1024,
    DECODER_PARCELS = 3,     /* a row, the texts and the copy of a record */
    WALK_BYTES = 256 * 1024, /* of the journal in a turn */
    PUMP_ITEMS = 20000,      /* in a turn */
    STUCK_MS = 1000,         /* the ring's oldest waits so long for its table, then others go on */
    WAIT_MS_MAX = 1000,
    PRESSED = 4,             /* the journal is when less than this part of it is free */
    STOP_MS_MAX = 20 * 1000, /* of an end while something fails */
    PRESSED_MS = 1000,       /* then rows wait no longer for a commit */
};

/* Before a parcel in the ring. */
struct entry {
    uint64_t place;
    uint64_t next; /* of the entry behind it */
    uint32_t size; /* of the parcel */
    uint32_t keeper;
    uint32_t rest; /* where the parcel's next item begins; 0: the head was not read */
    uint32_t unused;
};

static size_t aligned(size_t size)
{
    return (size + 15) & ~(size_t)15;
}

static size_t slot_size(const struct tn_intake *in)
{
    return sizeof(struct entry) + aligned(in->spec.parcel_size);
}

/* ---- the ring ---- */

static struct entry *oldest(const struct tn_ring *ring)
{
    return ring->count > 0 ? (struct entry *)(void *)(ring->data + ring->head) : NULL;
}

/* Room for the longest parcel, or NULL. */
static struct entry *room(struct tn_ring *ring, size_t size)
{
    if (ring->count == 0) {
        ring->head = 0;
        ring->tail = 0;
        ring->wrap = ring->size;
    }
    if (ring->tail >= ring->head && (ring->count == 0 || ring->tail > ring->head)) {
        if (ring->size - ring->tail >= size) {
            return (struct entry *)(void *)(ring->data + ring->tail);
        }
        if (ring->head < size) {
            return NULL;
        }
        ring->wrap = ring->tail;
        ring->tail = 0;
        return (struct entry *)(void *)ring->data;
    }
    return ring->head - ring->tail >= size ? (struct entry *)(void *)(ring->data + ring->tail)
                                           : NULL;
}

static void keep(struct tn_ring *ring, const struct entry *entry)
{
    ring->tail += sizeof *entry + aligned(entry->size);
    ring->count++;
}

static void forget(struct tn_ring *ring, const struct entry *entry)
{
    ring->head += sizeof *entry + aligned(entry->size);
    ring->count--;
    if (ring->head == ring->wrap) {
        ring->head = 0;
        ring->wrap = ring->size;
    }
}

/* ---- decoding ---- */

static struct tn_keeper *find(const struct tn_intake *in, struct tn_bytes name)
{
    for (uint32_t i = 0; i < in->spec.keeper_count; i++) {
        if (tn_bytes_equal(tn_bytes_of(in->spec.keepers[i].name), name)) {
            return &in->spec.keepers[i];
        }
    }
    return NULL;
}

static void drop_decoder(struct tn_intake *in)
{
    tn_arena_reset(&in->decode, 0);
    in->decoder = NULL;
}

static tn_rc set_epochs(struct tn_intake *in, const struct tn_keeper *k,
                        const enum tn_epoch **epochs, struct tn_err *err)
{
    static const char *const UNITS[] = {"", "s", "ms", "us", "ns"};
    const struct tn_schema *schema = tn_table_schema(k->table);
    void *memory;
    tn_rc rc = tn_arena_need(&in->decode, (schema->field_count + 1) * sizeof(enum tn_epoch),
                             "times", &memory, err);
    enum tn_epoch *list = memory;
    const struct tn_config_pair *pair = k->spec.config->times;
    for (; rc == TN_OK && pair; pair = pair->next) {
        int32_t field = tn_schema_find(schema, tn_bytes_of(pair->key));
        for (int unit = TN_EPOCH_S; field >= 0 && unit <= TN_EPOCH_NS; unit++) {
            if (strcmp(pair->value, UNITS[unit]) == 0) {
                list[field] = (enum tn_epoch)unit;
            }
        }
    }
    *epochs = list;
    return rc;
}

/* A decoder takes little time to make next to what one for each table would take of memory. */
static tn_rc open_decoder(struct tn_intake *in, const struct tn_keeper *k,
                          const struct tn_message *message, struct tn_err *err)
{
    bool same = in->decoder && in->whose == k && in->opened == k->reopened &&
                in->input == message->input && message->input != TN_INPUT_CSV;
    if (same) {
        return tn_decoder_resume(in->decoder, 1, (struct tn_bytes){0}, err);
    }
    drop_decoder(in);
    struct tn_decode_spec spec = {.input = message->input,
                                  .unknown = k->spec.config->unknown,
                                  .schema = tn_table_schema(k->table),
                                  .layout = tn_table_layout(k->table),
                                  .record_size_max = (uint32_t)in->hub.size_max,
                                  .row_size_max = k->spec.share->env.row_size_max,
                                  .framed = k->mapper.script && message->input == TN_INPUT_JSON};
    tn_rc rc = set_epochs(in, k, &spec.epochs, err);
    if (rc == TN_OK) {
        rc = tn_decoder_open(&in->decoder, &spec, &in->decode, err);
    }
    if (rc != TN_OK) {
        drop_decoder(in);
        return rc;
    }
    in->whose = k;
    in->opened = k->reopened;
    in->input = message->input;
    return TN_OK;
}

/* ---- a message becomes a parcel ---- */

struct packing {
    struct tn_intake *intake;
    struct tn_keeper *keeper;
    struct tn_message *message;
    struct tn_buf parcel;
    uint32_t record;
};

static tn_rc bury(struct packing *p, struct tn_bytes record, uint32_t part, uint64_t line,
                  const char *reason, struct tn_err *err)
{
    if (p->message->whole) {
        p->message->line = line;
        return tn_err_set(err, TN_INVALID, 0, "%s", reason);
    }
    struct tn_parcel_item item = {.kind = TN_PARCEL_LETTER,
                                  .record = p->record,
                                  .part = part,
                                  .data = record,
                                  .reason = tn_bytes_of(reason)};
    tn_parcel_add(&p->parcel, &item);
    p->message->dead++;
    return TN_OK;
}

/* Row `i` of the record. ABSENT: that were all. */
static tn_rc next_row(struct packing *p, struct tn_decoded *decoded, uint32_t i, struct tn_row *row,
                      enum tn_row_kind *kind, struct tn_err *err)
{
    if (p->keeper->mapper.script) {
        return tn_mapper_next(&p->keeper->mapper, p->intake->decoder, decoded, 0, row, kind, err);
    }
    if (i == decoded->count) {
        return TN_ABSENT;
    }
    *row = tn_decoder_row(p->intake->decoder, decoded, i);
    *kind = tn_decoded_kind(decoded, i);
    return TN_OK;
}

/* Of a record's rows those before one that can't be taken are taken. */
static tn_rc pack_rows(struct packing *p, struct tn_decoded *decoded, struct tn_err *err)
{
    for (uint32_t i = 0;; i++) {
        struct tn_row row;
        enum tn_row_kind kind;
        tn_rc rc = next_row(p, decoded, i, &row, &kind, err);
        if (rc == TN_OK) {
            rc = tn_table_admits(p->keeper->table, row, kind, err);
        }
        if (rc == TN_INVALID) {
            struct tn_err why = *err;
            return bury(p, decoded->record, i, decoded->line, why.text, err);
        }
        if (rc != TN_OK) {
            return rc == TN_ABSENT ? TN_OK : rc;
        }
        struct tn_parcel_item item = {.kind = TN_PARCEL_ROW,
                                      .row_kind = kind,
                                      .record = p->record,
                                      .part = i,
                                      .data = {row.data, row.size}};
        tn_parcel_add(&p->parcel, &item);
        p->message->rows++;
    }
}

static tn_rc pack_record(struct packing *p, struct tn_decoded *decoded, struct tn_err *err)
{
    bool header = p->message->input == TN_INPUT_CSV && decoded->count == 0 && !decoded->dead &&
                  decoded->record.size > 0;
    if (header) {
        struct tn_parcel_item item = {.kind = TN_PARCEL_HEADER, .data = decoded->record};
        tn_parcel_add(&p->parcel, &item);
        return TN_OK;
    }
    tn_rc rc;
    if (decoded->dead) {
        rc = bury(p, decoded->record, 0, decoded->line, decoded->reason, err);
    } else {
        if (p->keeper->mapper.script) {
            tn_mapper_begin(&p->keeper->mapper);
        }
        rc = pack_rows(p, decoded, err);
    }
    p->record++;
    return rc;
}

/* Of a record that was too long to be sent there is the beginning, which no decoder may see: it
 * could take it for a whole one. */
static tn_rc pack_cut(struct packing *p, struct tn_err *err)
{
    char reason[96];
    (void)snprintf(reason, sizeof reason, "a record of %" PRIu64 " bytes is too long: at most %zu",
                   p->message->cut_size, p->message->bytes.size);
    return bury(p, p->message->bytes, 0, 1, reason, err);
}

static tn_rc pack(struct packing *p, struct tn_err *err)
{
    struct tn_bytes rest = p->message->bytes;
    if (p->message->cut_size > 0) {
        return pack_cut(p, err);
    }
    while (!p->parcel.overflow) {
        struct tn_decoded decoded;
        size_t eaten = 0;
        tn_rc rc = tn_decoder_next(p->intake->decoder, rest, true, &decoded, &eaten, err);
        rest.data += eaten;
        rest.size -= eaten;
        if (rc == TN_AGAIN) {
            return TN_OK;
        }
        if (rc == TN_INVALID) { /* no header that the rows could be read by */
            struct tn_err why = *err;
            return bury(p, p->message->bytes, 0, 1, why.text, err);
        }
        if (rc == TN_OK) {
            rc = pack_record(p, &decoded, err);
        }
        if (rc != TN_OK) {
            return rc;
        }
    }
    return tn_err_set(err, TN_INVALID, 0, "its rows and letters take more than %zu bytes",
                      p->intake->spec.parcel_size);
}

/* Rows and letters are too much for a parcel: all of the message is one letter. */
static tn_rc pack_whole(struct packing *p, const struct tn_parcel_head *head, struct tn_err *err)
{
    struct tn_err why = *err;
    p->message->rows = 0;
    p->message->dead = 0;
    p->record = 0;
    p->parcel.size = 0;
    p->parcel.overflow = false;
    tn_parcel_begin(&p->parcel, head);
    tn_rc rc = bury(p, p->message->bytes, 0, 1, why.text, err);
    return p->parcel.overflow ? tn_err_set(err, TN_INVALID, 0, "%s", why.text) : rc;
}

/* What `map` hears of the message. */
static void tell_mapper(struct tn_intake *in, struct tn_keeper *k, const struct tn_message *message)
{
    size_t size = message->topic.size;
    k->mapper.records = message->input == TN_INPUT_JSON;
    k->mapper.source = message->source;
    k->mapper.topic = NULL;
    if (size > 0 && size < sizeof in->topic) {
        memcpy(in->topic, message->topic.data, size);
        in->topic[size] = 0;
        k->mapper.topic = in->topic;
    }
}

/* ---- offers ---- */

static tn_rc again(struct tn_intake *in, struct tn_err *err, const char *why)
{
    in->room_owed = true;
    in->counts.waits++;
    return tn_err_set(err, TN_AGAIN, 0, "%s", why);
}

static tn_rc append(struct tn_intake *in, const struct tn_message *message, struct tn_bytes parcel,
                    uint64_t *place, struct tn_err *err)
{
    struct tn_journal_part parts[2];
    uint32_t count = 0;
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
    tn_rc rc = tn_journal_append(in->journal, parts, count, place, err);
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
static tn_rc check_keeper(struct tn_intake *in, const struct tn_message *message,
                          struct tn_keeper **keeper, struct tn_err *err)
{
    struct tn_keeper *k = find(in, tn_bytes_of(message->table));
    if (!k) {
        return tn_err_set(err, TN_ABSENT, 0, "there is no table %s", message->table);
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

static tn_rc offer_rows(struct tn_intake *in, struct tn_message *message, struct tn_err *err)
{
    struct tn_keeper *k = NULL;
    tn_rc rc = check_keeper(in, message, &k, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct entry *entry = room(&in->ring, slot_size(in));
    if (!entry) {
        return again(in, err, "what came before is on its way to the disk");
    }
    rc = open_decoder(in, k, message, err);
    if (rc != TN_OK) {
        return rc == TN_AGAIN ? tn_err_set(err, TN_UNSUPPORTED, 0, "%s", err->text) : rc;
    }
    struct packing p = {.intake = in, .keeper = k, .message = message};
    struct tn_parcel_head head = {tn_table_schema(k->table)->id, message->input,
                                  tn_bytes_of(message->source ? message->source : "")};
    tn_buf_init(&p.parcel, entry + 1, in->spec.parcel_size);
    tn_parcel_begin(&p.parcel, &head);
    tell_mapper(in, k, message);
    rc = pack(&p, err);
    if (rc == TN_INVALID && p.parcel.overflow && !message->whole && !message->split) {
        rc = pack_whole(&p, &head, err);
    }
    if (rc == TN_CANCELED) { /* its script is parked */
        int64_t now_ms = in->spec.env->clock->vtable->monotonic_ns(in->spec.env->clock) / 1000000;
        tn_keeper_fail(k, rc, err, now_ms);
    }
    if (rc != TN_OK) {
        return rc == TN_AGAIN ? tn_err_set(err, TN_UNSUPPORTED, 0, "%s", err->text) : rc;
    }
    bool empty = message->rows + message->dead == 0;
    struct tn_bytes parcel = tn_buf_bytes(&p.parcel);
    parcel.size = empty ? 0 : parcel.size;
    rc = append(in, message, parcel, &message->place, err);
    if (rc != TN_OK || empty) {
        return rc;
    }
    *entry = (struct entry){.place = message->place,
                            .next = tn_journal_next(in->journal),
                            .size = (uint32_t)p.parcel.size,
                            .keeper = (uint32_t)(k - in->spec.keepers)};
    keep(&in->ring, entry);
    k->newest = message->place;
    return TN_OK;
}

static tn_rc offer(struct tn_hub *hub, struct tn_message *message, struct tn_err *err)
{
    struct tn_intake *in = (struct tn_intake *)(void *)hub;
    message->rows = 0;
    message->dead = 0;
    message->line = 0;
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
        rc = message->table ? offer_rows(in, message, err)
                            : append(in, message, (struct tn_bytes){0}, &message->place, err);
    }
    in->counts.messages += rc == TN_OK;
    in->counts.rows += rc == TN_OK ? message->rows : 0;
    in->counts.dead += rc == TN_OK ? message->dead : 0;
    in->counts.refused += rc != TN_OK && rc != TN_AGAIN;
    return rc;
}

static tn_rc sender(struct tn_hub *hub, struct tn_bytes name, struct tn_bytes *memo,
                    uint64_t *place)
{
    const struct tn_intake *in = (const struct tn_intake *)(const void *)hub;
    return tn_journal_memo(in->journal, name, memo, place);
}

/* ---- into the tables ---- */

/* Where the table is: all before it is put. Nothing of a place that isn't durable is named. */
static struct tn_keeper_place place_of(const struct tn_intake *in, const struct tn_keeper *k)
{
    const struct entry *entry = oldest(&in->ring);
    if (k->state != TN_KEEPER_LIVE) {
        return k->next;
    }
    if (entry && &in->spec.keepers[entry->keeper] == k && k->next.place == entry->place) {
        return k->next;
    }
    uint64_t durable = tn_journal_durable(in->journal);
    uint64_t at = entry && entry->place < durable ? entry->place : durable;
    return (struct tn_keeper_place){.place = at > k->next.place ? at : k->next.place};
}

static void fall_behind(struct tn_intake *in, struct tn_keeper *k)
{
    k->next = place_of(in, k);
    k->state = TN_KEEPER_BEHIND;
}

/* AGAIN: there is no room for its next item. */
static tn_rc put_entry(struct tn_keeper *k, struct entry *entry, int64_t now_ms, uint32_t *items,
                       struct tn_err *err)
{
    const unsigned char *data = (const unsigned char *)(entry + 1);
    struct tn_bytes rest = {data, entry->size};
    struct tn_parcel_head head;
    struct tn_parcel_item item;
    tn_rc rc = tn_parcel_open(&rest, &head, err);
    TN_CHECK(rc == TN_OK); /* it was made here */
    if (k->next.place < entry->place) {
        k->next = (struct tn_keeper_place){.place = entry->place};
    }
    if (entry->rest > 0) {
        rest = (struct tn_bytes){data + entry->rest, entry->size - entry->rest};
    }
    while (*items > 0 && (rc = tn_parcel_next(&rest, &item, err)) == TN_OK) {
        rc = tn_keeper_put(k, &head, &item, now_ms, err);
        if (rc != TN_OK) {
            return rc;
        }
        entry->rest = (uint32_t)(rest.data - data);
        (*items)--;
    }
    return rc == TN_ABSENT ? TN_OK : rc == TN_OK ? TN_AGAIN : rc;
}

/* Parcels that are durable go to their tables, the oldest first. */
static void pump(struct tn_intake *in, int64_t now_ms, uint32_t *wait_ms)
{
    uint32_t items = PUMP_ITEMS;
    for (struct entry *entry; (entry = oldest(&in->ring)) != NULL;) {
        struct tn_keeper *k = &in->spec.keepers[entry->keeper];
        struct tn_err err = {0};
        if (tn_journal_durable(in->journal) <= entry->place) {
            return;
        }
        bool wanted = k->state == TN_KEEPER_LIVE && k->next.place <= entry->place;
        tn_rc rc = wanted ? put_entry(k, entry, now_ms, &items, &err) : TN_OK;
        if (rc == TN_AGAIN && items == 0) { /* enough for a turn */
            *wait_ms = 0;
            return;
        }
        if (rc == TN_AGAIN) {
            in->stuck_ms = in->stuck_ms == 0 ? now_ms : in->stuck_ms;
            if (now_ms - in->stuck_ms < STUCK_MS) {
                return;
            }
            fall_behind(in, k);
        } else if (rc != TN_OK) {
            tn_keeper_fail(k, rc, &err, now_ms);
        } else if (wanted) {
            k->next = (struct tn_keeper_place){.place = entry->next};
        }
        in->stuck_ms = 0;
        forget(&in->ring, entry);
    }
    in->stuck_ms = 0;
}

/* ---- from the journal ---- */

struct walk {
    struct tn_intake *intake;
    int64_t now_ms;
    bool waits;               /* a table has no room */
    struct tn_keeper *failed; /* closed when the walk is over: that gives others a turn */
    tn_rc rc;
    struct tn_err err;
};

static tn_rc take_item(struct walk *walk, struct tn_keeper *k, const struct tn_parcel_head *head,
                       struct tn_older *older, struct tn_parcel_item *item, struct tn_err *err)
{
    struct tn_err why = {0};
    tn_rc rc = tn_older_item(older, item, &why) == TN_OK
                   ? tn_keeper_put(k, head, item, walk->now_ms, err)
                   : tn_keeper_bury(k, item, why.text, walk->now_ms, err);
    walk->intake->counts.replayed += rc == TN_OK;
    return rc;
}

static tn_rc take_items(struct walk *walk, struct tn_keeper *k, struct tn_parcel_head head,
                        struct tn_bytes parcel, struct tn_err *err)
{
    struct tn_parcel_item item;
    struct tn_older older;
    uint32_t done = k->next.items;
    tn_rc rc = TN_OK;
    tn_older_open(&older, k->table, head.schema, k->spec.share->env.row_size_max,
                  &walk->intake->decode);
    head.schema = tn_table_schema(k->table)->id; /* of what comes of its items */
    for (uint32_t i = 0; rc == TN_OK; i++) {
        rc = tn_parcel_next(&parcel, &item, err);
        if (rc == TN_OK && i >= done) {
            rc = take_item(walk, k, &head, &older, &item, err);
        }
    }
    return rc;
}

static tn_rc take_part(struct walk *walk, struct tn_keeper *k, uint64_t place,
                       struct tn_bytes parcel, struct tn_err *err)
{
    struct tn_parcel_head head;
    struct tn_arena *arena = &walk->intake->decode;
    size_t mark = tn_arena_mark(arena);
    if (k->next.place < place) {
        k->next = (struct tn_keeper_place){.place = place};
    }
    tn_rc rc = tn_parcel_open(&parcel, &head, err);
    if (rc == TN_OK) {
        rc = take_items(walk, k, head, parcel, err);
        tn_arena_reset(arena, mark);
    }
    if (rc == TN_ABSENT) {
        k->next = (struct tn_keeper_place){.place = place + 1};
        rc = TN_OK;
    }
    return rc;
}

/* ---- tables that the configuration names no more ---- */

/* Where its newest snapshot says that it is in this journal. */
static tn_rc ask_stranger(struct tn_intake *in, struct tn_stranger *stranger, struct tn_err *err)
{
    struct tn_env *env = in->spec.env;
    struct tn_recovered found;
    const char *root;
    size_t mark = tn_arena_mark(env->arena);
    tn_rc rc = tn_name_table_root(env->arena, stranger->name, &root, err);
    if (rc == TN_OK) {
        rc = tn_table_recover(env->io, env->clock, stranger->name, root, env->arena, &found, err);
    }
    const char *identity = tn_journal_identity(in->journal);
    for (uint32_t i = 0; rc == TN_OK && i < found.properties.count; i++) {
        const struct tn_json_pair *pair = &found.properties.pairs[i];
        if (strcmp(pair->key, TN_POSITION_PROPERTY TN_KEEPER_SOURCE) == 0 &&
            strncmp(pair->value, identity, strlen(identity)) == 0 &&
            pair->value[strlen(identity)] == ':') {
            stranger->place = strtoull(pair->value + strlen(identity) + 1, NULL, 10);
        }
    }
    tn_arena_reset(env->arena, mark);
    return rc;
}

static tn_rc find_stranger(struct tn_intake *in, struct tn_bytes name,
                           const struct tn_stranger **found, struct tn_err *err)
{
    for (uint32_t i = 0; i < in->stranger_count; i++) {
        if (tn_bytes_equal(tn_bytes_of(in->strangers[i].name), name)) {
            *found = &in->strangers[i];
            return TN_OK;
        }
    }
    struct tn_stranger *stranger = &in->strangers[in->stranger_count % TN_STRANGERS_MAX];
    (void)snprintf(stranger->name, sizeof stranger->name, "%.*s", (int)name.size,
                   (const char *)name.data);
    stranger->place = 0;
    in->stranger_count += in->stranger_count < TN_STRANGERS_MAX;
    *found = stranger;
    return ask_stranger(in, stranger, err);
}

/* What was acknowledged is not forgotten without a word of somebody's. */
static tn_rc see_stranger(struct tn_intake *in, struct tn_bytes name, uint64_t place,
                          struct tn_err *err)
{
    const struct tn_stranger *stranger = NULL;
    if (in->spec.drop || place < in->known) {
        return TN_OK;
    }
    tn_rc rc = find_stranger(in, name, &stranger, err);
    in->known = place + 1;
    return rc != TN_OK || place < stranger->place
               ? rc
               : tn_err_set(err, TN_INVALID, 0,
                            "the journal has rows of %s that are not committed, and it is not "
                            "configured any more: configure it once again, or give them up with "
                            "--drop",
                            stranger->name);
}

static tn_rc each(void *user, uint64_t place, const struct tn_journal_part *parts, uint32_t count,
                  struct tn_err *err)
{
    struct walk *walk = user;
    struct tn_intake *in = walk->intake;
    if (in->walk_bytes > WALK_BYTES) {
        return TN_AGAIN;
    }
    for (uint32_t i = 0; i < count; i++) {
        in->walk_bytes += parts[i].data.size;
        struct tn_keeper *k = parts[i].kind == TN_JOURNAL_ROWS ? find(in, parts[i].name) : NULL;
        tn_rc strange = !k && parts[i].kind == TN_JOURNAL_ROWS
                            ? see_stranger(in, parts[i].name, place, err)
                            : TN_OK;
        if (strange != TN_OK) {
            return strange;
        }
        if (!k || k->state != TN_KEEPER_BEHIND || k->next.place > place) {
            continue;
        }
        tn_rc rc = take_part(walk, k, place, parts[i].data, err);
        if (rc != TN_OK) {
            walk->waits = rc == TN_AGAIN;
            walk->failed = rc == TN_AGAIN ? NULL : k;
            walk->rc = rc;
            walk->err = *err;
            return TN_AGAIN;
        }
    }
    return TN_OK;
}

static uint32_t behind(const struct tn_intake *in, uint64_t *from)
{
    uint32_t count = 0;
    *from = UINT64_MAX;
    for (uint32_t i = 0; i < in->spec.keeper_count; i++) {
        const struct tn_keeper *k = &in->spec.keepers[i];
        if (k->state == TN_KEEPER_BEHIND) {
            count++;
            *from = k->next.place < *from ? k->next.place : *from;
        }
    }
    uint64_t first = tn_journal_first(in->journal);
    *from = *from < first ? first : *from;
    return count;
}

/* Those that are behind have all before `next`; and with `all` they have what there is: entries
 * that are not durable yet come by the ring. */
static void come_up(struct tn_intake *in, uint64_t next, bool all)
{
    for (uint32_t i = 0; i < in->spec.keeper_count; i++) {
        struct tn_keeper *k = &in->spec.keepers[i];
        if (k->state == TN_KEEPER_BEHIND) {
            if (next > k->next.place) {
                k->next = (struct tn_keeper_place){.place = next};
            }
            k->state = all ? TN_KEEPER_LIVE : TN_KEEPER_BEHIND;
            k->trouble = all && tn_keeper_settled(k) ? TN_OK : k->trouble; /* else a commit shows */
            in->room_owed = true;
        }
    }
}

/* The journal is read while nothing works on it. */
static void wait_for_tasks(struct tn_intake *in)
{
    while (in->spec.env->exec->under_way > 0) {
        (void)tn_exec_turn(in->spec.env->exec, true);
    }
}

static tn_rc walk(struct tn_intake *in, int64_t now_ms, uint32_t *wait_ms, struct tn_err *err)
{
    uint64_t from;
    if (behind(in, &from) == 0) {
        return TN_OK;
    }
    struct walk walk = {.intake = in, .now_ms = now_ms};
    wait_for_tasks(in);
    uint64_t durable = tn_journal_durable(in->journal);
    uint64_t end = durable > in->begun ? durable : in->begun;
    uint64_t next = end;
    in->walk_bytes = 0;
    tn_rc rc = TN_OK;
    if (from < end) {
        drop_decoder(in);
        rc = tn_journal_read(in->journal, from, &next, each, &walk, &in->decode, err);
    }
    if (rc == TN_OK || rc == TN_AGAIN) {
        come_up(in, next, rc == TN_OK);
    }
    if (rc == TN_AGAIN) {
        *wait_ms = walk.waits ? *wait_ms : 0;
        rc = TN_OK;
    }
    if (walk.failed) {
        tn_keeper_fail(walk.failed, walk.rc, &walk.err, now_ms);
    }
    return rc;
}

/* ---- turns ---- */

static int64_t now(const struct tn_intake *in)
{
    struct tn_clock *clock = in->spec.env->clock;
    return clock->vtable->monotonic_ns(clock) / 1000000;
}

static tn_rc turn_journal(struct tn_intake *in, uint32_t *wait_ms, struct tn_err *err)
{
    uint32_t wait = WAIT_MS_MAX;
    bool hurry = in->stopping || in->ring.count > 1; /* but a full disk isn't asked every turn */
    size_t used = in->ring.tail >= in->ring.head ? in->ring.tail - in->ring.head
                                                 : in->ring.wrap - in->ring.head + in->ring.tail;
    hurry = hurry && (in->stopping || used > in->ring.size / 2) && in->said != TN_FULL;
    tn_rc rc = tn_journal_turn(in->journal, hurry, &wait, err);
    *wait_ms = wait < *wait_ms ? wait : *wait_ms;
    if (rc == TN_FULL) {
        if (in->said != rc) {
            tn_log_err(in->spec.log, TN_LOG_ERROR, "journal", err);
        }
        in->said = rc;
        return TN_OK;
    }
    in->said = rc;
    return rc;
}

static void say_durable(struct tn_intake *in)
{
    uint64_t durable = tn_journal_durable(in->journal);
    uint64_t newest = durable > 0 ? durable - 1 : 0;
    if (newest != in->hub.durable || in->durable_owed) {
        in->durable_owed = false;
        tn_hub_say_durable(&in->hub, newest);
    }
}

static void say_room(struct tn_intake *in)
{
    if (in->room_owed && !in->stopping && !in->reserve.low && room(&in->ring, slot_size(in))) {
        in->room_owed = false;
        tn_hub_say_room(&in->hub);
    }
}

/* Only commits make room, and some are not due for long. */
static bool pressed(const struct tn_intake *in)
{
    uint64_t most = in->spec.config->journal.size_max;
    return in->reserve.low || tn_journal_full(in->journal) ||
           tn_journal_size(in->journal) > most - most / PRESSED;
}

static void trim(struct tn_intake *in, int64_t now_ms)
{
    uint64_t place = UINT64_MAX;
    bool hurry = pressed(in);
    for (uint32_t i = 0; i < in->spec.keeper_count; i++) {
        const struct tn_keeper *k = &in->spec.keepers[i];
        uint64_t done = tn_keeper_done(k, place_of(in, k), now_ms, hurry);
        place = done < place ? done : place;
    }
    if (place != UINT64_MAX && place > in->trimmed) {
        in->trimmed = place;
        tn_journal_trim(in->journal, place);
    }
}

/* A table that was opened again wants from the journal what its newest snapshot has not. */
static void begin_again(struct tn_intake *in, struct tn_keeper *k, int64_t now_ms)
{
    struct tn_err err = {0};
    tn_rc rc = tn_keeper_begin(k, in->journal, &err);
    if (rc != TN_OK) {
        tn_keeper_fail(k, rc, &err, now_ms);
    }
}

static bool must_commit(const struct tn_intake *in, const struct tn_keeper *k, int64_t now_ms)
{
    bool waits = k->table && !k->cutting && k->items != k->items_cut;
    bool old = now_ms - k->since_ms >= PRESSED_MS;
    return waits && ((in->stopping && in->ring.count == 0) || (old && pressed(in)));
}

/* Those that are due by age alone commit one after the other, at the pace of all. Who can't do so
 * now is passed by. */
static void commit(struct tn_intake *in, uint32_t i, struct tn_keeper_place at, int64_t now_ms,
                   uint32_t *wait_ms)
{
    uint32_t pace_ms = in->spec.config->pace_ms;
    bool may = pace_ms == 0 || now_ms >= in->paced_ms;
    bool aged = tn_keeper_commit(&in->spec.keepers[i], tn_journal_identity(in->journal), at, may,
                                 now_ms, wait_ms);
    if (aged && pace_ms > 0) {
        in->paced_ms = now_ms + pace_ms;
        in->paced = i + 1;
    }
}

static void turn_keepers(struct tn_intake *in, int64_t now_ms, uint32_t *wait_ms)
{
    uint32_t first = in->paced;
    for (uint32_t n = 0; n < in->spec.keeper_count; n++) {
        uint32_t i = (first + n) % in->spec.keeper_count;
        struct tn_keeper *k = &in->spec.keepers[i];
        k->wants_cut = k->wants_cut || must_commit(in, k, now_ms);
        struct tn_keeper_place at = place_of(in, k);
        if (at.place + (at.items > 0) <= tn_journal_durable(in->journal)) {
            commit(in, i, at, now_ms, wait_ms);
        }
        if (tn_keeper_turn(k, now_ms, wait_ms)) {
            begin_again(in, k, now_ms);
            *wait_ms = 0;
        }
    }
    int64_t left = in->paced_ms - now_ms;
    if (left > 0 && left < *wait_ms) {
        *wait_ms = (uint32_t)left;
    }
}

tn_rc tn_intake_turn(struct tn_intake *intake, uint32_t *wait_ms, struct tn_err *err)
{
    struct tn_intake *in = intake;
    int64_t now_ms = now(in);
    *wait_ms = WAIT_MS_MAX;
    (void)tn_exec_turn(in->spec.env->exec, false);
    tn_rc rc = turn_journal(in, wait_ms, err);
    say_durable(in);
    if (rc == TN_OK) {
        rc = walk(in, now_ms, wait_ms, err);
    }
    if (rc != TN_OK) {
        in->failed = rc;
        in->failure = *err;
        return rc;
    }
    pump(in, now_ms, wait_ms);
    turn_keepers(in, now_ms, wait_ms);
    trim(in, now_ms);
    in->room_owed = tn_reserve_turn(&in->reserve, now_ms, wait_ms) || in->room_owed;
    say_room(in);
    return TN_OK;
}

bool tn_intake_ready(const struct tn_intake *intake)
{
    uint64_t ignored;
    return behind(intake, &ignored) == 0;
}

/* What was taken is in the journal, or was acknowledged to nobody. */
static bool gives_up(const struct tn_intake *in)
{
    bool trouble = in->said != TN_OK;
    for (uint32_t i = 0; i < in->spec.keeper_count; i++) {
        trouble = trouble || in->spec.keepers[i].trouble != TN_OK;
    }
    return trouble && in->stopping && now(in) - in->stop_ms > STOP_MS_MAX;
}

bool tn_intake_settled(const struct tn_intake *intake)
{
    bool settled = intake->ring.count == 0 &&
                   tn_journal_durable(intake->journal) == tn_journal_next(intake->journal);
    for (uint32_t i = 0; i < intake->spec.keeper_count; i++) {
        const struct tn_keeper *k = &intake->spec.keepers[i];
        bool again = k->state == TN_KEEPER_SHUT && k->trouble == TN_CONFLICT; /* it opens at once */
        settled = settled && !again && k->state != TN_KEEPER_BEHIND && tn_keeper_settled(k);
    }
    return settled || gives_up(intake);
}

void tn_intake_stop(struct tn_intake *intake)
{
    intake->stop_ms = intake->stopping ? intake->stop_ms : now(intake);
    intake->stopping = true;
}

/* ---- open, close ---- */

/* Blocks are as long as a parcel needs, so there may be more syncs than the configuration asks for.
 */
static struct tn_journal_spec journal_spec(const struct tn_intake_spec *spec)
{
    struct tn_journal_spec journal = {
        .io = spec->env->io, .clock = spec->env->clock, .exec = spec->env->exec};
    tn_config_journal_spec(spec->config, &journal);
    journal.block_size = (uint32_t)(spec->parcel_size + PARCEL_BESIDE);
    if (journal.sync_bytes > journal.block_size) {
        journal.sync_bytes = journal.block_size;
    }
    return journal;
}

static size_t ring_size(const struct tn_intake_spec *spec)
{
    return RING_PARCELS * (sizeof(struct entry) + aligned(spec->parcel_size));
}

static size_t decode_size(const struct tn_intake_spec *spec)
{
    size_t decoder = DECODER_PARCELS * spec->parcel_size + DECODER_FIXED;
    size_t blocks = 2 * (spec->parcel_size + PARCEL_BESIDE) + DECODER_FIXED;
    return decoder > blocks ? decoder : blocks;
}

size_t tn_intake_size_max(const struct tn_intake_spec *spec)
{
    return spec->parcel_size / MESSAGE_SHARE;
}

size_t tn_intake_memory(const struct tn_intake_spec *spec)
{
    struct tn_journal_spec journal = journal_spec(spec);
    return tn_journal_memory(&journal) + ring_size(spec) + decode_size(spec) + 4096;
}

static tn_rc take_memory(struct tn_intake *in, struct tn_err *err)
{
    void *ring;
    void *decode;
    tn_rc rc = tn_arena_need(in->spec.arena, ring_size(&in->spec), "rows on their way", &ring, err);
    if (rc == TN_OK) {
        rc = tn_arena_need(in->spec.arena, decode_size(&in->spec), "a decoder", &decode, err);
    }
    if (rc == TN_OK) {
        in->ring = (struct tn_ring){.data = ring, .size = ring_size(&in->spec)};
        in->ring.wrap = in->ring.size;
        tn_arena_init(&in->decode, decode, decode_size(&in->spec));
    }
    return rc;
}

static tn_rc open_journal(struct tn_intake *in, struct tn_err *err)
{
    struct tn_journal_spec spec = journal_spec(&in->spec);
    spec.floor = 1;
    for (uint32_t i = 0; i < in->spec.keeper_count; i++) {
        uint64_t known = tn_keeper_known(&in->spec.keepers[i]);
        spec.floor = known + 1 > spec.floor ? known + 1 : spec.floor;
    }
    return tn_journal_open(&in->journal, &spec, in->spec.arena, err);
}

tn_rc tn_intake_open(struct tn_intake *intake, const struct tn_intake_spec *spec,
                     struct tn_err *err)
{
    static const struct tn_hub_vtable vtable = {.offer = offer, .sender = sender};
    struct tn_intake *in = intake;
    *in = (struct tn_intake){.hub = {.vtable = &vtable, .size_max = tn_intake_size_max(spec)},
                             .spec = *spec};
    tn_rc rc = take_memory(in, err);
    if (rc == TN_OK) {
        rc = open_journal(in, err);
    }
    for (uint32_t i = 0; rc == TN_OK && i < spec->keeper_count; i++) {
        rc = tn_keeper_begin(&spec->keepers[i], in->journal, err);
    }
    if (rc == TN_OK) {
        uint64_t durable = tn_journal_durable(in->journal);
        in->hub.durable = durable > 0 ? durable - 1 : 0;
        in->begun = tn_journal_next(in->journal);
        tn_reserve_open(&in->reserve, spec->env->io, spec->env->exec, spec->log,
                        spec->config->disk_reserve);
    }
    return rc;
}

void tn_intake_close(struct tn_intake *intake)
{
    if (intake->journal) {
        tn_journal_close(intake->journal);
    }
    intake->journal = NULL;
}
