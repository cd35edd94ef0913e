/* How a column is read: what its values stand for, their quick form, and text for all others. */
#include "ingest/decode_private.h"

static bool is_timestamp(enum tn_type_kind kind)
{
    return kind == TN_TYPE_TIMESTAMP || kind == TN_TYPE_TIMESTAMP_LTZ;
}

static enum tn_decode_quick quick_of(const struct tn_type *type, struct tn_decode_meaning meaning)
{
    static const enum tn_decode_quick quick[TN_TYPE_KIND_COUNT] = {
        [TN_TYPE_BOOLEAN] = TN_QUICK_BOOLEAN,  [TN_TYPE_TINYINT] = TN_QUICK_INTEGER,
        [TN_TYPE_SMALLINT] = TN_QUICK_INTEGER, [TN_TYPE_INT] = TN_QUICK_INTEGER,
        [TN_TYPE_BIGINT] = TN_QUICK_INTEGER,   [TN_TYPE_FLOAT] = TN_QUICK_FLOAT,
        [TN_TYPE_DOUBLE] = TN_QUICK_DOUBLE,    [TN_TYPE_CHAR] = TN_QUICK_TEXT,
        [TN_TYPE_VARCHAR] = TN_QUICK_TEXT,
    };
    bool ms = meaning.epoch == TN_EPOCH_MS && type->precision >= 3;
    bool us = meaning.epoch == TN_EPOCH_US && type->precision >= 6;
    if (is_timestamp(type->kind)) {
        return ms ? TN_QUICK_EPOCH_MS : us ? TN_QUICK_EPOCH_US : TN_QUICK_NONE;
    }
    if (type->kind == TN_TYPE_TIME) {
        return ms ? TN_QUICK_INTEGER : TN_QUICK_NONE;
    }
    if (type->kind == TN_TYPE_DATE) {
        return meaning.days ? TN_QUICK_INTEGER : TN_QUICK_NONE;
    }
    return quick[type->kind];
}

/* What databases write. */
static enum tn_decode_text text_of(const struct tn_type *type, enum tn_input input)
{
    static const enum tn_decode_text of_bytes[] = {
        [TN_INPUT_DEBEZIUM] = TN_TEXT_BASE64,
        [TN_INPUT_CANAL] = TN_TEXT_LATIN1,
        [TN_INPUT_MAXWELL] = TN_TEXT_BASE64,
    };
    bool database = tn_decode_is_database(input);
    if (database && type->kind == TN_TYPE_BOOLEAN) {
        return TN_TEXT_BIT;
    }
    if (input == TN_INPUT_DEBEZIUM && type->kind >= TN_TYPE_DATE) {
        return TN_TEXT_ZONED;
    }
    return database && tn_type_binary(type->kind) ? of_bytes[input] : TN_TEXT_PLAIN;
}

struct tn_decode_meaning tn_decode_meaning_of(const struct tn_decoder *decoder, uint32_t column)
{
    const struct tn_type *type = &decoder->spec.schema->fields[column].type;
    enum tn_epoch epoch = decoder->spec.epochs ? decoder->spec.epochs[column] : TN_EPOCH_NONE;
    return (struct tn_decode_meaning){
        .epoch = epoch,
        .days = decoder->spec.input == TN_INPUT_DEBEZIUM && epoch == TN_EPOCH_NONE,
        .text = text_of(type, decoder->spec.input),
    };
}

static unsigned bits_of(enum tn_type_kind kind)
{
    return kind == TN_TYPE_TINYINT                       ? 8
           : kind == TN_TYPE_SMALLINT                    ? 16
           : kind == TN_TYPE_INT || kind == TN_TYPE_DATE ? 32
                                                         : 64;
}

void tn_decode_column_init(struct tn_decoder *decoder, uint32_t column,
                           struct tn_decode_meaning meaning)
{
    struct tn_decode_column *c = &decoder->columns[column];
    const struct tn_field *field = &decoder->spec.schema->fields[column];
    c->type = field->type;
    c->quick = quick_of(&field->type, meaning);
    c->text = meaning.text;
    c->epoch = meaning.epoch;
    c->scale = meaning.scale;
    c->high = (int64_t)(UINT64_MAX >> (65 - bits_of(field->type.kind)));
    c->low = -c->high - 1;
    if (c->quick == TN_QUICK_EPOCH_MS || field->type.kind == TN_TYPE_TIME) {
        c->low = 0;
        c->high = field->type.kind == TN_TYPE_TIME
                      ? 86399999
                      : INT64_C(253402300799999); /* the end of the year 9999; beyond:
                                                     tn_value_parse knows */
    }
}

/* ---- text ---- */

/* Debezium writes a zone to every time that is text, UTC where the database has none: so Z says
 * nothing, and a TIMESTAMP is read as what it is at Greenwich. */
static struct tn_bytes without_zone(struct tn_type *type, struct tn_bytes text)
{
    size_t size = text.size;
    bool time = size > 5 && (memchr(text.data, ':', size) || memchr(text.data + 1, '-', size - 1));
    if (time && text.data[size - 1] == 'Z') {
        text.size--;
    } else if (time && is_timestamp(type->kind) &&
               (text.data[size - 6] == '+' || text.data[size - 6] == '-')) {
        type->kind = TN_TYPE_TIMESTAMP_LTZ;
    }
    return text;
}

static bool is_bit(struct tn_bytes text)
{
    return text.size == 1 && (text.data[0] == '0' || text.data[0] == '1');
}

bool tn_decode_text_value(struct tn_decoder *decoder, const unsigned char *at, uint32_t column,
                          struct tn_bytes text, struct tn_value *value)
{
    const struct tn_decode_column *c = &decoder->columns[column];
    struct tn_err err;
    *value = (struct tn_value){0};
    struct tn_type type = c->type;
    if (c->text == TN_TEXT_BIT && is_bit(text)) {
        value->as.i64 = text.data[0] == '1';
        return true;
    }
    if (c->text == TN_TEXT_ZONED) {
        text = without_zone(&type, text);
    }
    tn_rc rc = tn_value_parse(&type, c->epoch, text, &decoder->scratch, value, &err);
    if (rc == TN_AGAIN && tn_type_binary(c->type.kind) && !decoder->scratch.overflow) {
        return tn_decode_text_late(decoder, column, text, text.size / 2, TN_LATE_HEX, value);
    }
    if (rc) {
        (void)tn_decode_fail(decoder, at, "column '%.60s': %s", decoder->names[column], err.text);
        return false;
    }
    if (decoder->scratch.overflow) {
        (void)tn_decode_fail(decoder, at, "column '%.60s': the record is too long to be unescaped",
                             decoder->names[column]);
        return false;
    }
    return true;
}
