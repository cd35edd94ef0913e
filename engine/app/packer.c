#include "app/packer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ingest/parcel.h"

enum {
    DECODER_FIXED = 96 * 1024,
    DECODER_PARCELS = 3, /* a row, the texts and the copy of a record */
    BESIDE_SHARE = 4,    /* what items have beside their rows, as a part of these: a guess */
};

/* ---- the decoder ---- */

static void drop_decoder(struct tn_packer *packer)
{
    tn_arena_reset(&packer->arena, 0);
    packer->decoder = NULL;
}

/* A decoder takes little time to make next to what one for each table would take of memory. */
static tn_rc open_decoder(struct tn_packer *packer, const struct tn_keeper *k,
                          const struct tn_message *message, struct tn_err *err)
{
    bool same = packer->decoder && packer->whose == k && packer->opened == k->reopened &&
                packer->input == message->input && message->input != TN_INPUT_CSV;
    if (same) {
        return tn_decoder_resume(packer->decoder, 1, (struct tn_bytes){0}, err);
    }
    drop_decoder(packer);
    struct tn_decode_spec spec = {.input = message->input,
                                  .unknown = k->spec.config->unknown,
                                  .schema = tn_table_schema(k->table),
                                  .layout = tn_table_layout(k->table),
                                  .record_size_max = (uint32_t)packer->record_size_max,
                                  .row_size_max = k->spec.share->env.row_size_max,
                                  .framed = k->mapper.script && message->input == TN_INPUT_JSON};
    tn_rc rc =
        tn_config_epochs(k->spec.config->times, spec.schema, &packer->arena, &spec.epochs, err);
    if (rc == TN_OK) {
        rc = tn_decoder_open(&packer->decoder, &spec, &packer->arena, err);
    }
    if (rc != TN_OK) {
        drop_decoder(packer);
        return rc;
    }
    packer->whose = k;
    packer->opened = k->reopened;
    packer->input = message->input;
    return TN_OK;
}

/* ---- a message becomes a parcel ---- */

struct packing {
    struct tn_packer *packer;
    struct tn_keeper *keeper;
    struct tn_message *message;
    struct tn_buf parcel;
    uint32_t record;
    uint32_t done; /* of the first one's rows, that were taken before */
    /* Of a file: where the record begins, and the one before that gave something. */
    struct place {
        size_t begin;
        uint64_t lines; /* before it */
    } at, before;
};

/* Who can read a record again wants to know where it begins, and not its number. */
static void add(struct packing *p, struct tn_parcel_item item)
{
    if (p->message->from && !p->message->kept) {
        struct tn_parcel_item place = {.kind = TN_PARCEL_PLACE,
                                       .record = (uint32_t)(p->at.begin - p->before.begin),
                                       .part = (uint32_t)(p->at.lines - p->before.lines)};
        item.record = 0;
        p->before = p->at;
        if (item.part == 0) { /* the first of the record */
            tn_parcel_add(&p->parcel, &place);
        }
    }
    tn_parcel_add(&p->parcel, &item);
}

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
    add(p, item);
    p->message->dead++;
    return TN_OK;
}

/* Row `i` of the record. ABSENT: that were all. */
static tn_rc next_row(struct packing *p, struct tn_decoded *decoded, uint32_t i, struct tn_row *row,
                      enum tn_row_kind *kind, struct tn_err *err)
{
    if (p->keeper->mapper.script) {
        return tn_mapper_next(&p->keeper->mapper, p->packer->decoder, decoded, 0, row, kind, err);
    }
    if (i == decoded->count) {
        return TN_ABSENT;
    }
    *row = tn_decoder_row(p->packer->decoder, decoded, i);
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
        if (p->record == 0 && i < p->done) {
            continue;
        }
        struct tn_parcel_item item = {.kind = TN_PARCEL_ROW,
                                      .row_kind = kind,
                                      .record = p->record,
                                      .part = i,
                                      .data = {row.data, row.size}};
        add(p, item);
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

/* What `map` gives of one more record surely fits: it isn't to be asked twice. */
static bool has_room(const struct packing *p)
{
    size_t rows = p->keeper->spec.room_size;
    return p->parcel.capacity - p->parcel.size >= rows + rows / BESIDE_SHARE;
}

static tn_rc pack(struct packing *p, struct tn_err *err)
{
    bool pieces = p->message->split && p->keeper->mapper.script;
    struct tn_bytes rest = p->message->bytes;
    p->at = (struct place){.begin = p->message->header_size};
    if (p->message->cut_size > 0) {
        return pack_cut(p, err);
    }
    while (!p->parcel.overflow) {
        if (pieces && p->record > 0 && rest.size > 0 && !has_room(p)) {
            p->message->left = rest.size;
            return TN_OK;
        }
        struct tn_decoded decoded;
        size_t eaten = 0;
        size_t begin = (size_t)(rest.data - p->message->bytes.data);
        tn_rc rc = tn_decoder_next(p->packer->decoder, rest, true, &decoded, &eaten, err);
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
            p->at = (struct place){begin, decoded.line - 1};
            rc = pack_record(p, &decoded, err);
        }
        if (rc != TN_OK) {
            return rc;
        }
    }
    return tn_err_set(err, TN_INVALID, 0, "its rows and letters take more than %zu bytes",
                      p->packer->parcel_size);
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
    p->at = (struct place){.begin = p->message->header_size};
    p->before = (struct place){.begin = 0};
    tn_rc rc = bury(p, p->message->bytes, 0, 1, why.text, err);
    return p->parcel.overflow ? tn_err_set(err, TN_INVALID, 0, "%s", why.text) : rc;
}

/* What `map` hears of the message. */
static void tell_mapper(struct tn_packer *packer, struct tn_keeper *k,
                        const struct tn_message *message)
{
    size_t size = message->topic.size;
    k->mapper.records = message->input == TN_INPUT_JSON;
    k->mapper.source = message->source;
    k->mapper.topic = NULL;
    if (size > 0 && size < sizeof packer->topic) {
        memcpy(packer->topic, message->topic.data, size);
        packer->topic[size] = 0;
        k->mapper.topic = packer->topic;
    }
}

/* ---- for others ---- */

size_t tn_packer_memory(size_t parcel_size)
{
    return DECODER_PARCELS * parcel_size + DECODER_FIXED;
}

void tn_packer_init(struct tn_packer *packer, void *memory, size_t size, size_t parcel_size,
                    size_t record_size_max)
{
    *packer = (struct tn_packer){.parcel_size = parcel_size, .record_size_max = record_size_max};
    tn_arena_init(&packer->arena, memory, size);
}

struct tn_arena *tn_packer_lend(struct tn_packer *packer)
{
    drop_decoder(packer);
    return &packer->arena;
}

static tn_rc make_parcel(struct tn_packer *packer, struct tn_keeper *k, struct tn_message *message,
                         void *room, struct tn_bytes *parcel, struct tn_err *err)
{
    struct packing p = {.packer = packer, .keeper = k, .message = message};
    p.done = message->kept ? message->from->part : 0;
    struct tn_parcel_head head = {tn_table_schema(k->table)->id, message->input,
                                  tn_bytes_of(message->source ? message->source : "")};
    tn_buf_init(&p.parcel, room, packer->parcel_size);
    tn_parcel_begin(&p.parcel, &head);
    tn_rc rc = open_decoder(packer, k, message, err);
    bool unread = rc == TN_INVALID; /* the table's columns are to blame, or their defaults */
    if (rc == TN_OK) {
        tell_mapper(packer, k, message);
        rc = pack(&p, err);
    }
    bool letter = unread || (rc == TN_INVALID && p.parcel.overflow);
    if (letter && !message->whole && !message->split) {
        rc = pack_whole(&p, &head, err);
    }
    if (rc == TN_OK) {
        *parcel = tn_buf_bytes(&p.parcel);
        parcel->size = message->rows + message->dead == 0 ? 0 : parcel->size;
    }
    return rc;
}

tn_rc tn_packer_pack(struct tn_packer *packer, struct tn_keeper *keeper, struct tn_message *message,
                     void *room, struct tn_bytes *parcel, struct tn_err *err)
{
    tn_rc rc = make_parcel(packer, keeper, message, room, parcel, err);
    return rc == TN_AGAIN ? tn_err_set(err, TN_UNSUPPORTED, 0, "%s", err->text) : rc;
}
