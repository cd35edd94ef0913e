#include "ingest/decode.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "base/hash.h"
#include "ingest/decode_private.h"
#include "schema/default.h"

static const char *const input_names[] = {
    [TN_INPUT_JSON] = "json",
    [TN_INPUT_CHANGES] = "changes",
    [TN_INPUT_DEBEZIUM] = "debezium-json",
    [TN_INPUT_CSV] = "csv",
    [TN_INPUT_CANAL] = "canal-json",
    [TN_INPUT_MAXWELL] = "maxwell-json",
    [TN_INPUT_LINE] = "line-protocol",
};
enum {
    INPUT_COUNT = sizeof input_names / sizeof input_names[0],
    SCRATCH_MAX = 192 * 1024,  /* texts of a record of 128 KiB, and a copy of it */
    COLUMN_SIZE = 320,         /* of a decoder: counted, and some more */
    DECODER_FIXED = 32 * 1024, /* and default values: a guess */
};
_Static_assert((int)TN_DECODE_PAD >= (int)TN_SCAN_PAD, "a padded source needs no copy");

static void (*const record_decoders[])(struct tn_decoder *) = {
    [TN_INPUT_JSON] = tn_decode_json,         [TN_INPUT_CHANGES] = tn_decode_changes,
    [TN_INPUT_DEBEZIUM] = tn_decode_debezium, [TN_INPUT_CSV] = tn_decode_csv,
    [TN_INPUT_CANAL] = tn_decode_canal,       [TN_INPUT_MAXWELL] = tn_decode_maxwell,
    [TN_INPUT_LINE] = tn_decode_line,
};

tn_rc tn_input_parse(const char *name, enum tn_input *input, struct tn_err *err)
{
    for (uint32_t i = 0; i < INPUT_COUNT; i++) {
        if (strcmp(name, input_names[i]) == 0) {
            *input = (enum tn_input)i;
            return TN_OK;
        }
    }
    const char *near = tn_nearest_name(tn_bytes_of(name), input_names, INPUT_COUNT);
    if (near) {
        return tn_err_set(err, TN_INVALID, 0, "input '%.40s' is unknown; did you mean '%s'?", name,
                          near);
    }
    return tn_err_set(err, TN_INVALID, 0,
                      "input '%.40s' is unknown; there are json, changes, csv, debezium-json, "
                      "canal-json, maxwell-json and line-protocol",
                      name);
}

const char *tn_input_name(enum tn_input input)
{
    return input_names[input];
}

/* ---- what the record readers share ---- */

const unsigned char *tn_decode_fail(struct tn_decoder *decoder, const unsigned char *at,
                                    const char *format, ...)
{
    char *reason = decoder->decoded->reason;
    int used = 0;
    if (at) {
        used = snprintf(reason, TN_ERR_TEXT_SIZE, "at byte %zu: ", (size_t)(at - decoder->start));
    }
    va_list args;
    va_start(args, format);
    (void)vsnprintf(reason + used, (size_t)(TN_ERR_TEXT_SIZE - used), format, args);
    va_end(args);
    for (char *c = reason; *c; c++) {
        if ((unsigned char)*c < 0x20) { /* a name from the record may hold anything */
            *c = '?';
        }
    }
    decoder->decoded->dead = true;
    return NULL;
}

int32_t tn_decode_find(const struct tn_decoder *decoder, struct tn_bytes name)
{
    uint32_t at = (uint32_t)tn_hash_64(name, 0) & decoder->table_mask;
    while (decoder->table[at]) {
        int32_t column = decoder->table[at] - 1;
        const struct tn_decode_key *key = &decoder->keys[column];
        if (key->size == name.size && memcmp(key->name, name.data, name.size) == 0) {
            return column;
        }
        at = (at + 1) & decoder->table_mask;
    }
    return -1;
}

const unsigned char *tn_decode_fail_unknown(struct tn_decoder *d, const unsigned char *at,
                                            struct tn_bytes name)
{
    const char *near = tn_nearest_name(name, d->names, d->column_count);
    return tn_decode_fail(d, at, "field '%.*s' is no column%s%s%s",
                          (int)(name.size < 60 ? name.size : 60), (const char *)name.data,
                          near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

void tn_decode_row_begin(struct tn_decoder *decoder, struct tn_decode_row *row)
{
    memset(row->seen, 0, (decoder->column_count + 63) / 64 * sizeof row->seen[0]);
    row->seen_count = 0;
    row->any_null = false;
}

static bool is_timestamp(enum tn_type_kind kind)
{
    return kind == TN_TYPE_TIMESTAMP || kind == TN_TYPE_TIMESTAMP_LTZ;
}

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

static bool all_hex(struct tn_bytes text)
{
    for (size_t i = 0; i < text.size; i++) {
        unsigned char lower = text.data[i] | 0x20;
        if (!tn_scan_digit(text.data[i]) && (lower < 'a' || lower > 'f')) {
            return false;
        }
    }
    return true;
}

static bool late_fits(struct tn_decoder *decoder, const struct tn_decode_column *c,
                      struct tn_bytes raw, enum tn_decode_late_kind kind, struct tn_err *err)
{
    struct tn_value ignored;
    if (kind == TN_LATE_LATIN1 || kind == TN_LATE_BASE64) { /* looked at before */
        bool bytes = tn_type_binary(c->type.kind) && c->text != TN_TEXT_BITS;
        return bytes ||
               tn_err_set(err, TN_INVALID, 0, "the text is too long to be decoded") == TN_OK;
    }
    if (kind == TN_LATE_HEX) {
        return all_hex(raw) || tn_err_set(err, TN_INVALID, 0, "a long text is no hex") == TN_OK;
    }
    if (!tn_type_textual(c->type.kind)) {
        return tn_err_set(err, TN_INVALID, 0, "the text is too long to be unescaped") == TN_OK;
    }
    /* An escape counts as the characters that it is written with: one refused more, at the limit.
     */
    return tn_value_parse(&c->type, c->epoch, raw, &decoder->scratch, &ignored, err) == TN_OK;
}

bool tn_decode_text_late(struct tn_decoder *decoder, uint32_t column, struct tn_bytes raw,
                         size_t size, enum tn_decode_late_kind kind, struct tn_value *value)
{
    struct tn_err err;
    bool fits = decoder->late_count < TN_DECODE_LATE_MAX
                    ? late_fits(decoder, &decoder->columns[column], raw, kind, &err)
                    : tn_err_set(&err, TN_INVALID, 0, "too many long texts") == TN_OK;
    if (!fits) {
        (void)tn_decode_fail(decoder, raw.data, "column '%.60s': %s", decoder->names[column],
                             err.text);
        return false;
    }
    *value = (struct tn_value){.as.bytes = {raw.data, size}};
    decoder->late[decoder->late_count++] = (struct tn_decode_late){raw, kind};
    return true;
}

static unsigned hex_digit(unsigned char byte)
{
    return tn_scan_digit(byte) ? byte - (unsigned)'0' : (byte | 0x20U) - 'a' + 10U;
}

static void write_late(struct tn_decoder *decoder, const struct tn_decode_late *late,
                       unsigned char *out)
{
    struct tn_bytes raw = late->raw;
    switch (late->kind) {
    case TN_LATE_ESCAPED:
        tn_json_unescape(decoder, raw, out);
        break;
    case TN_LATE_LATIN1:
        tn_json_latin1(decoder, raw, out);
        break;
    case TN_LATE_LINE:
        tn_line_unescape(raw, out);
        break;
    case TN_LATE_BASE64:
        tn_base64_decode(raw, out);
        break;
    case TN_LATE_DOUBLED:
        for (size_t i = 0; i < raw.size; i += raw.data[i] == '"' ? 2 : 1) {
            *out++ = raw.data[i];
        }
        break;
    case TN_LATE_HEX:
        for (size_t i = 0; i + 1 < raw.size; i += 2) {
            *out++ = (unsigned char)(hex_digit(raw.data[i]) << 4 | hex_digit(raw.data[i + 1]));
        }
        break;
    }
}

static uint32_t pack(struct tn_decoder *decoder, const struct tn_decode_row *row,
                     unsigned char *data)
{
    const struct tn_row_layout *layout = decoder->spec.layout;
    uint32_t size = tn_row_pack(layout, row->values, data);
    for (uint32_t i = 0; i < decoder->late_count; i++) {
        for (uint32_t c = 0; c < decoder->column_count; c++) {
            const struct tn_value *value = &row->values[c];
            bool bytes = layout->columns[c].slot == TN_SLOT_BYTES && !value->null;
            if (bytes && value->as.bytes.data == decoder->late[i].raw.data) {
                struct tn_bytes place = tn_row_bytes(layout, (struct tn_row){data, size}, c);
                write_late(decoder, &decoder->late[i], data + (place.data - data));
            }
        }
    }
    return size;
}

static void fill_unseen(struct tn_decoder *decoder, struct tn_decode_row *row)
{
    for (uint32_t i = 0; i < decoder->column_count; i++) {
        if (!(row->seen[i / 64] >> (i % 64) & 1)) {
            row->values[i] = (struct tn_value){.null = true};
        }
    }
}

/* Paimon checks NOT NULL before it fills in defaults, so a default rescues no NULL there. */
static bool settle_nulls(struct tn_decoder *decoder, struct tn_decode_row *row)
{
    if (row->seen_count < decoder->column_count) {
        fill_unseen(decoder, row);
    }
    for (uint32_t i = 0; i < decoder->column_count; i++) {
        if (!row->values[i].null) {
            continue;
        }
        if (decoder->columns[i].required) {
            (void)tn_decode_fail(decoder, NULL, "column '%.60s' is NOT NULL, and has no value",
                                 decoder->names[i]);
            return false;
        }
        row->values[i] = decoder->defaults[i];
    }
    return true;
}

bool tn_decode_row_settle(struct tn_decoder *decoder, struct tn_decode_row *row)
{
    bool whole = !row->any_null && row->seen_count == decoder->column_count;
    return whole || settle_nulls(decoder, row);
}

bool tn_decode_row_finish(struct tn_decoder *decoder, struct tn_decode_row *row,
                          enum tn_row_kind kind)
{
    if (!tn_decode_row_settle(decoder, row)) {
        return false;
    }
    struct tn_decoded *decoded = decoder->decoded;
    uint32_t room = decoder->row_data_size - decoder->row_data_used;
    uint32_t size = tn_row_packed_size(decoder->spec.layout, row->values);
    if (size > decoder->row_size_max) {
        (void)tn_decode_fail(decoder, NULL,
                             "a row of %" PRIu32 " bytes, at most %" PRIu32 " fit the memory", size,
                             decoder->row_size_max);
        return false;
    }
    bool keep = decoder->kept_count == decoded->count && decoder->kept_count < TN_DECODE_KEPT_MAX;
    if (keep && size <= room) {
        unsigned char *data = decoder->row_data + decoder->row_data_used;
        (void)pack(decoder, row, data);
        decoder->row_data_used += size;
        decoder->kept[decoder->kept_count++] = (struct tn_row){data, size};
    }
    decoder->finished[decoded->count % TN_DECODE_ROWS] = row;
    decoded->kind_of_two[decoded->count % TN_DECODE_ROWS] = kind;
    decoded->count++;
    return true;
}

struct tn_row tn_decoder_row(struct tn_decoder *decoder, struct tn_decoded *decoded, uint32_t i)
{
    TN_CHECK(i < decoded->count);
    if (i < decoder->kept_count) {
        return decoder->kept[i];
    }
    decoder->kept_count = 0; /* this row takes their memory */
    decoder->decoded = decoded;
    const struct tn_decode_row *row =
        decoder->batch.data ? tn_decode_batch_row(decoder, i) : decoder->finished[i];
    return (struct tn_row){decoder->row_data, pack(decoder, row, decoder->row_data)};
}

unsigned char *tn_decoder_room(struct tn_decoder *decoder, uint32_t *size)
{
    *size = decoder->row_size_max;
    return decoder->row_data;
}

/* ---- open ---- */

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
    bool database =
        input == TN_INPUT_DEBEZIUM || input == TN_INPUT_CANAL || input == TN_INPUT_MAXWELL;
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

/* A name that JSON has to escape never stands in a record as it is: it gets a head that no mask
 * lets through. */
void tn_decode_key_init(struct tn_decode_key *key, const char *name)
{
    key->name = name;
    key->size = (uint32_t)strlen(name);
    unsigned char head[8] = {0};
    unsigned char mask[8] = {0};
    bool plain = true;
    for (uint32_t i = 0; i < key->size; i++) {
        unsigned char c = (unsigned char)name[i];
        plain = plain && c >= 0x20 && c != '"' && c != '\\';
    }
    for (uint32_t i = 0; plain && i < 8 && i <= key->size; i++) {
        head[i] = i < key->size ? (unsigned char)name[i] : '"';
        mask[i] = 0xFF;
    }
    key->mask = tn_load_u64(mask);
    key->head = plain ? tn_load_u64(head) : 1;
}

/* First, since a default may be longer than its text. */
static tn_rc read_defaults(struct tn_decoder *decoder, struct tn_arena *arena, struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(arena, decoder->column_count * sizeof decoder->defaults[0],
                             "a decoder", &memory, err);
    decoder->defaults = memory;
    for (uint32_t i = 0; rc == TN_OK && i < decoder->column_count; i++) {
        rc = tn_default_read(&decoder->spec.schema->fields[i], arena, &decoder->defaults[i], err);
    }
    return rc;
}

static void add_to_table(struct tn_decoder *decoder, uint32_t column)
{
    const struct tn_decode_key *key = &decoder->keys[column];
    struct tn_bytes name = {(const unsigned char *)key->name, key->size};
    uint32_t at = (uint32_t)tn_hash_64(name, 0) & decoder->table_mask;
    while (decoder->table[at]) {
        at = (at + 1) & decoder->table_mask;
    }
    decoder->table[at] = (uint16_t)(column + 1);
}

static void init_columns(struct tn_decoder *decoder)
{
    const struct tn_schema *schema = decoder->spec.schema;
    for (uint32_t i = 0; i < decoder->column_count; i++) {
        const struct tn_field *field = &schema->fields[i];
        tn_decode_column_init(decoder, i, tn_decode_meaning_of(decoder, i));
        decoder->columns[i].required = !field->type.nullable;
        tn_decode_key_init(&decoder->keys[i], field->name);
        decoder->keys[i].next = (i + 1) % decoder->column_count;
        decoder->names[i] = field->name;
        add_to_table(decoder, i);
    }
    for (uint32_t i = 0; i < schema->primary_keys.count; i++) {
        decoder->columns[schema->primary_keys.index[i]].required = true;
    }
}

/* Two rows' own parts with all their defaults, and the bytes of one record, for a text stands in
 * one of the two rows only, or of the largest row. */
static tn_rc row_data_size(struct tn_decoder *decoder, struct tn_err *err)
{
    uint64_t size = decoder->spec.layout->fixed_size;
    for (uint32_t i = 0; i < decoder->column_count; i++) {
        const struct tn_value *value = &decoder->defaults[i];
        bool bytes = decoder->spec.layout->columns[i].slot == TN_SLOT_BYTES && !value->null;
        size += bytes ? value->as.bytes.size : 0;
    }
    uint64_t one = size;
    uint32_t texts = decoder->spec.record_size_max;
    if (decoder->spec.row_size_max > 0 && decoder->spec.row_size_max < texts) {
        texts = decoder->spec.row_size_max;
    }
    size = size * TN_DECODE_ROWS + texts;
    if (size > UINT32_MAX / 2) {
        return tn_err_set(err, TN_INVALID, 0, "records of %u bytes are too long",
                          decoder->spec.record_size_max);
    }
    decoder->row_data_size = (uint32_t)size;
    decoder->row_size_max =
        decoder->spec.row_size_max > 0 ? decoder->spec.row_size_max : (uint32_t)(one + texts);
    if (decoder->row_size_max > decoder->row_data_size) {
        decoder->row_size_max = decoder->row_data_size;
    }
    return TN_OK;
}

static uint32_t table_size(uint32_t count)
{
    uint32_t size = 4;
    while (size < 2 * count) {
        size *= 2;
    }
    return size;
}

/* What texts that don't stand in a record as they are take. Longer ones are rewritten in their
 * rows, but a source that is not padded has records that must be copied. */
static size_t scratch_size(uint32_t record_size_max, bool padded)
{
    size_t texts = record_size_max + (size_t)record_size_max / 2;
    if (texts > SCRATCH_MAX) {
        texts = padded ? SCRATCH_MAX : record_size_max + (size_t)SCRATCH_MAX / 3;
    }
    return texts + (size_t)2 * TN_SCAN_PAD;
}

uint32_t tn_decode_record_max(const struct tn_row_layout *layout, uint32_t row_size_max,
                              bool padded, size_t size)
{
    size_t fixed =
        DECODER_FIXED + layout->column_count * (size_t)COLUMN_SIZE + 2 * (size_t)layout->fixed_size;
    uint32_t low = 0;
    uint32_t high = size > fixed && size - fixed < UINT32_MAX / 4 ? (uint32_t)(size - fixed) : 1;
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        size_t row = middle < row_size_max ? middle : row_size_max;
        if ((padded ? middle : 0) + row + scratch_size(middle, padded) <= size - fixed) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static tn_rc take_memory(struct tn_decoder *decoder, struct tn_arena *arena, struct tn_err *err)
{
    uint32_t count = decoder->column_count;
    size_t seen_size = (count + 63) / 64 * sizeof(uint64_t);
    size_t texts = scratch_size(decoder->spec.record_size_max, decoder->spec.padded);
    decoder->table_mask = table_size(count) - 1;
    void *scratch = NULL;
    const struct {
        void *at;
        size_t size;
    } parts[] = {
        {&decoder->columns, count * sizeof decoder->columns[0]},
        {&decoder->keys, ((size_t)count + 1) * sizeof decoder->keys[0]},
        {&decoder->names, count * sizeof decoder->names[0]},
        {&decoder->table, ((size_t)decoder->table_mask + 1) * sizeof decoder->table[0]},
        {&decoder->rows[0].values, count * sizeof(struct tn_value)},
        {&decoder->rows[1].values, count * sizeof(struct tn_value)},
        {&decoder->rows[0].seen, seen_size},
        {&decoder->rows[1].seen, seen_size},
        {&decoder->row_data, decoder->row_data_size},
        {&scratch, texts},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        void *memory;
        tn_rc rc = tn_arena_need(arena, parts[i].size, "a decoder", &memory, err);
        if (rc) {
            return rc;
        }
        memcpy(parts[i].at, &memory, sizeof memory);
    }
    tn_buf_init(&decoder->scratch, scratch, texts);
    return TN_OK;
}

tn_rc tn_decoder_open(struct tn_decoder **decoder, const struct tn_decode_spec *spec,
                      struct tn_arena *arena, struct tn_err *err)
{
    TN_CHECK(spec->layout->column_count == spec->schema->field_count);
    TN_CHECK(spec->schema->field_count > 0 && spec->schema->field_count <= TN_SCHEMA_FIELDS_MAX);
    void *memory;
    tn_rc rc = tn_arena_need(arena, sizeof **decoder, "a decoder", &memory, err);
    if (rc) {
        return rc;
    }
    struct tn_decoder *d = memory;
    *d = (struct tn_decoder){.spec = *spec, .column_count = spec->schema->field_count, .line = 1};
    rc = read_defaults(d, arena, err);
    if (!rc) {
        rc = row_data_size(d, err);
    }
    if (!rc) {
        rc = take_memory(d, arena, err);
    }
    if (!rc && spec->input == TN_INPUT_CSV) {
        d->csv_count_max = d->column_count + TN_CSV_DROPPED_MAX;
        rc = tn_arena_need(arena, d->csv_count_max * sizeof d->csv_columns[0], "a csv header",
                           &memory, err);
        d->csv_columns = memory;
    }
    if (rc) {
        return rc;
    }
    init_columns(d);
    tn_decode_parts_init(d);
    rc = spec->input == TN_INPUT_LINE ? tn_line_open(d, err) : TN_OK;
    if (rc == TN_OK) {
        *decoder = d;
    }
    return rc;
}

/* ---- one record after the other ---- */

/* Behind the record's line end, or NULL when the input has none. */
static const unsigned char *record_end(const struct tn_decoder *decoder, struct tn_bytes input,
                                       bool *quoted)
{
    if (decoder->spec.input == TN_INPUT_CSV) {
        return tn_csv_record_end(input.data, input.data + input.size, quoted);
    }
    if (decoder->spec.input == TN_INPUT_LINE) {
        return tn_line_record_end(input.data, input.data + input.size, quoted);
    }
    const unsigned char *newline = memchr(input.data, '\n', input.size);
    return newline ? newline + 1 : NULL;
}

/* Quoted texts of csv and the line protocol can hold line ends before the record's own. */
static void count_lines(struct tn_decoder *decoder, struct tn_bytes eaten)
{
    if (decoder->spec.input != TN_INPUT_CSV && decoder->spec.input != TN_INPUT_LINE) {
        decoder->line += eaten.data[eaten.size - 1] == '\n';
        return;
    }
    const unsigned char *at = eaten.data;
    const unsigned char *end = eaten.data + eaten.size;
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at)))) {
        decoder->line++;
        at++;
    }
}

static struct tn_bytes without_line_end(struct tn_bytes line)
{
    if (line.size > 0 && line.data[line.size - 1] == '\n') {
        line.size--;
    }
    if (line.size > 0 && line.data[line.size - 1] == '\r') {
        line.size--;
    }
    return line;
}

/* In csv a blank is a text. */
static bool is_blank(const struct tn_decoder *decoder, struct tn_bytes record)
{
    size_t i = 0;
    while (decoder->spec.input != TN_INPUT_CSV && i < record.size &&
           (record.data[i] == ' ' || record.data[i] == '\t')) {
        i++;
    }
    return i == record.size;
}

/* Readers look up to 16 bytes ahead: a record that has less behind it is copied. */
static void place_record(struct tn_decoder *decoder, struct tn_bytes record, struct tn_bytes input)
{
    decoder->scratch.size = 0;
    decoder->scratch.overflow = false;
    const unsigned char *end = record.data + record.size;
    bool padded = decoder->spec.padded || (size_t)(input.data + input.size - end) > TN_SCAN_PAD;
    if (padded && (*end == '\n' || end[1] == '\n')) {
        decoder->start = record.data;
        decoder->end = end;
        return;
    }
    unsigned char pad[TN_SCAN_PAD];
    memset(pad, '\n', sizeof pad);
    decoder->start = decoder->scratch.data;
    decoder->end = decoder->start + record.size;
    tn_buf_append(&decoder->scratch, record.data, record.size);
    tn_buf_append(&decoder->scratch, pad, sizeof pad);
    TN_CHECK(!decoder->scratch.overflow);
}

static void set_cursor(struct tn_decoder *decoder, struct tn_bytes record, struct tn_bytes input)
{
    place_record(decoder, record, input);
    decoder->read_again =
        decoder->spec.input == TN_INPUT_CANAL || decoder->spec.input == TN_INPUT_DEBEZIUM;
    decoder->row_data_used = 0;
    decoder->late_count = 0;
    decoder->kept_count = 0;
    decoder->batch = (struct tn_decode_batch){.scratch_size = decoder->scratch.size};
}

static void begin_decoded(struct tn_decoder *decoder, struct tn_decoded *decoded,
                          struct tn_bytes record)
{
    decoded->count = 0;
    decoded->skipped = false;
    decoded->dead = false;
    decoded->reason[0] = 0;
    decoded->record = record;
    decoded->line = decoder->line;
    decoder->decoded = decoded;
}

/* Reports a record that is longer than it may be, once; what follows of it is eaten silently. */
static void fail_too_long(struct tn_decoder *decoder, struct tn_bytes eaten)
{
    uint32_t size_max = decoder->spec.record_size_max;
    decoder->decoded->record.size = eaten.size < size_max ? eaten.size : size_max;
    (void)tn_decode_fail(decoder, NULL, "the record is longer than %" PRIu32 " bytes", size_max);
}

static tn_rc use_record(struct tn_decoder *decoder, struct tn_bytes record, struct tn_bytes input,
                        struct tn_err *err)
{
    if (decoder->spec.framed) {
        record.size = is_blank(decoder, record) ? 0 : record.size;
        decoder->decoded->record = record;
        return TN_OK;
    }
    if (decoder->spec.input == TN_INPUT_CSV && !decoder->csv_header_known) {
        set_cursor(decoder, record, input);
        return tn_csv_header(decoder, err);
    }
    if (!is_blank(decoder, record)) {
        set_cursor(decoder, record, input);
        record_decoders[decoder->spec.input](decoder);
    }
    if (decoder->decoded->dead) {
        decoder->decoded->count = 0;
    }
    return TN_OK;
}

static size_t byte_order_mark(const struct tn_decoder *decoder, struct tn_bytes input)
{
    bool marked =
        decoder->line == 1 && input.size >= 3 && memcmp(input.data, "\xEF\xBB\xBF", 3) == 0;
    return marked ? 3 : 0;
}

tn_rc tn_decoder_next(struct tn_decoder *decoder, struct tn_bytes input, bool last,
                      struct tn_decoded *decoded, size_t *eaten, struct tn_err *err)
{
    bool quoted = decoder->skipping_quote;
    const unsigned char *end = input.size ? record_end(decoder, input, &quoted) : NULL;
    size_t size = end ? (size_t)(end - input.data) : input.size;
    bool too_long = size + !end > decoder->spec.record_size_max;
    if (!end && (input.size == 0 || !(last || too_long || decoder->skipping))) {
        return TN_AGAIN;
    }
    struct tn_bytes line = {input.data, size};
    begin_decoded(decoder, decoded, without_line_end(line));
    bool whole = end || last;
    tn_rc rc = TN_OK;
    if (decoder->skipping) {
        decoded->record.size = 0;
    } else if (too_long) {
        fail_too_long(decoder, line);
    } else {
        size_t mark = byte_order_mark(decoder, input);
        struct tn_bytes record = {line.data + mark, decoded->record.size - mark};
        rc = use_record(decoder, record, input, err);
    }
    if (rc) {
        return rc;
    }
    decoder->skipping = !whole;
    decoder->skipping_quote = !whole && quoted;
    count_lines(decoder, line);
    *eaten = size;
    return TN_OK;
}

tn_rc tn_decoder_resume(struct tn_decoder *decoder, uint64_t line, struct tn_bytes csv_header,
                        struct tn_err *err)
{
    decoder->line = line;
    decoder->skipping = false;
    decoder->skipping_quote = false;
    if (decoder->spec.input != TN_INPUT_CSV) {
        return TN_OK;
    }
    if (csv_header.size > decoder->spec.record_size_max) {
        return tn_err_set(err, TN_INVALID, 0, "csv header: longer than %" PRIu32 " bytes",
                          decoder->spec.record_size_max);
    }
    struct tn_bytes record = without_line_end(csv_header);
    set_cursor(decoder, record, record);
    return tn_csv_header(decoder, err);
}
