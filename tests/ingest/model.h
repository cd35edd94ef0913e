/* model: a table of every type, rows of it drawn by a seed, and a decoder that reads what a test
 * writes for them. Records lie in blocks without a byte to spare, so that ASan sees a look beyond.
 */
#pragma once

#include <math.h>

#include "check.h"
#include "given.h"
#include "ingest/decode.h"
#include "random.h"

enum {
    MODEL_COLUMNS = 15,
    MODEL_RECORD_MAX = 1 << 18,
    MODEL_TEXTS_MAX = 1 << 16, /* bytes of a row */
};

enum model_column {
    MODEL_KEY,
    MODEL_TINY,
    MODEL_SMALL,
    MODEL_BIG,
    MODEL_FLOAT,
    MODEL_DOUBLE,
    MODEL_FLAG,
    MODEL_COST,
    MODEL_NOTE,
    MODEL_RAW,
    MODEL_MS,
    MODEL_US,
    MODEL_DAY,
    MODEL_CLOCK,
    MODEL_ZONED,
};

struct model {
    struct tn_arena arena;
    struct tn_field fields[MODEL_COLUMNS];
    const char *names[MODEL_COLUMNS];
    struct tn_type types[MODEL_COLUMNS];
    enum tn_epoch epochs[MODEL_COLUMNS];
    struct tn_schema schema;
    struct tn_row_layout layout;
    struct tn_decoder *decoder;
    struct tn_err err;
    uint64_t state;
};

struct model_row {
    struct tn_value values[MODEL_COLUMNS];
    unsigned char texts[MODEL_TEXTS_MAX];
    uint32_t used;
};

static inline void model_open(struct model *m, enum tn_input input, uint32_t row_size_max)
{
    static unsigned char memory[4 << 20];
    static const char *const columns[MODEL_COLUMNS][2] = {
        {"k", "INT NOT NULL"},
        {"tiny", "TINYINT"},
        {"small", "SMALLINT"},
        {"big", "BIGINT"},
        {"a_float", "FLOAT"},
        {"a_double", "DOUBLE"},
        {"flag", "BOOLEAN"},
        {"cost", "DECIMAL(20, 4)"},
        {"note", "STRING"},
        {"raw", "VARBINARY(60000)"},
        {"at_ms", "TIMESTAMP(3)"},
        {"at_us", "TIMESTAMP(6)"},
        {"a_day", "DATE"},
        {"clock", "TIME(3)"},
        {"zoned", "TIMESTAMP(9) WITH LOCAL TIME ZONE"},
    };
    static const uint32_t key[] = {0};
    struct model kept = *m;
    *m = (struct model){.state = kept.state};
    memcpy(m->epochs, kept.epochs, sizeof m->epochs);
    tn_arena_init(&m->arena, memory, sizeof memory);
    for (uint32_t i = 0; i < MODEL_COLUMNS; i++) {
        m->fields[i] = (struct tn_field){.name = columns[i][0]};
        tn_rc rc = tn_type_parse(tn_bytes_of(columns[i][1]), &m->fields[i].type, &m->err);
        CHECK_OK(rc, m->err);
        m->names[i] = columns[i][0];
        m->types[i] = m->fields[i].type;
    }
    tn_rc rc =
        tn_row_layout_init(&m->layout, m->names, m->types, MODEL_COLUMNS, &m->arena, &m->err);
    CHECK_OK(rc, m->err);
    m->schema = (struct tn_schema){
        .fields = m->fields, .field_count = MODEL_COLUMNS, .primary_keys = {key, 1}};
    struct tn_decode_spec spec = {.input = input,
                                  .schema = &m->schema,
                                  .layout = &m->layout,
                                  .epochs = m->epochs,
                                  .record_size_max = MODEL_RECORD_MAX,
                                  .row_size_max = row_size_max};
    rc = tn_decoder_open(&m->decoder, &spec, &m->arena, &m->err);
    CHECK_OK(rc, m->err);
}

/* Up to `size_max` bytes; of a text, or any. Most are short. */
static inline struct tn_bytes model_bytes(struct model *m, struct model_row *row, uint32_t size_max,
                                          bool text)
{
    static const char letters[] = "abcxyz \"\\\n\t,=/'\x01\x7f";
    uint32_t room = (MODEL_TEXTS_MAX - row->used) / 4;
    uint32_t limit = random_below(&m->state, 8) ? 12 : size_max;
    uint32_t size = random_below(&m->state, (limit < room ? limit : room) + 1);
    unsigned char *data = row->texts + row->used;
    bool plain = random_below(&m->state, 2);
    uint32_t i = 0;
    while (i < size) {
        uint32_t choice = random_below(&m->state, 10);
        if (!text) {
            data[i++] = (unsigned char)random_below(&m->state, 256);
        } else if (plain || choice < 8 || size - i < 4) {
            data[i++] =
                plain ? 'p' : (unsigned char)letters[random_below(&m->state, sizeof letters - 1)];
        } else {
            const char *wide = choice == 8 ? "\u00e4" : "\U0001F600";
            memcpy(data + i, wide, strlen(wide));
            i += (uint32_t)strlen(wide);
        }
    }
    row->used += size;
    return (struct tn_bytes){data, size};
}

static inline int64_t model_integer(struct model *m, int bits)
{
    int64_t wide = (int64_t)random_next(&m->state);
    return wide >> (64 - bits) >> random_below(&m->state, (uint32_t)bits);
}

static inline void model_time(struct model *m, struct tn_value *value, uint32_t nanos_unit)
{
    value->as.i64 = model_integer(m, 43); /* as ns it fits 64 bits */
    value->nanos = nanos_unit ? random_below(&m->state, 1000000) / nanos_unit * nanos_unit : 0;
}

static inline void model_draw(struct model *m, struct model_row *row, uint32_t size_max)
{
    row->used = 0;
    for (uint32_t i = 0; i < MODEL_COLUMNS; i++) {
        row->values[i] = (struct tn_value){.null = i > 0 && random_below(&m->state, 5) == 0};
    }
    struct tn_value *v = row->values;
    v[MODEL_KEY].as.i64 = model_integer(m, 32);
    v[MODEL_TINY].as.i64 = model_integer(m, 8);
    v[MODEL_SMALL].as.i64 = model_integer(m, 16);
    v[MODEL_BIG].as.i64 = model_integer(m, 64);
    v[MODEL_FLOAT].as.f64 = (double)((float)model_integer(m, 24) / 8);
    v[MODEL_DOUBLE].as.f64 =
        ldexp((double)model_integer(m, 53), (int)random_below(&m->state, 40) - 20);
    v[MODEL_FLAG].as.i64 = random_below(&m->state, 2);
    v[MODEL_COST].as.i128 = tn_i128_of(model_integer(m, 64));
    v[MODEL_NOTE].as.bytes = model_bytes(m, row, size_max, true);
    v[MODEL_RAW].as.bytes = model_bytes(m, row, size_max, false);
    model_time(m, &v[MODEL_MS], 0);
    model_time(m, &v[MODEL_US], 1000);
    v[MODEL_DAY].as.i64 = model_integer(m, 20);
    v[MODEL_CLOCK].as.i64 = random_below(&m->state, 86400000);
    model_time(m, &v[MODEL_ZONED], 1);
    for (uint32_t i = 0; i < MODEL_COLUMNS; i++) {
        if (v[i].null) {
            v[i] = (struct tn_value){.null = true};
        }
    }
}

/* A JSON string, some of whose characters are escaped without need. */
static inline void model_put_string(struct model *m, struct tn_buf *buf, struct tn_bytes text)
{
    bool more_escapes = random_below(&m->state, 3) == 0;
    tn_buf_byte(buf, '"');
    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = text.data[i];
        bool must = byte < 0x20 || byte == '"' || byte == '\\';
        if (must || (byte < 0x80 && more_escapes && random_below(&m->state, 4) == 0)) {
            tn_buf_format(buf, "\\u%04x", byte);
        } else {
            tn_buf_byte(buf, byte);
        }
    }
    tn_buf_byte(buf, '"');
}

/* The value's own text; a zoned time, which ends in Z, also as one at Greenwich, or without. */
static inline void model_put_text(struct model *m, struct tn_buf *buf, uint32_t column,
                                  const struct tn_value *value)
{
    static unsigned char text[MODEL_TEXTS_MAX];
    struct tn_buf plain;
    tn_buf_init(&plain, text, sizeof text);
    tn_value_format_text(&m->types[column], value, &plain);
    if (column == MODEL_ZONED && random_below(&m->state, 2)) {
        plain.size--;
        tn_buf_text(&plain, random_below(&m->state, 2) ? "+00:00" : "");
    }
    model_put_string(m, buf, tn_buf_bytes(&plain));
}

/* With or without padding, in either alphabet. */
static inline void model_put_base64(struct model *m, struct tn_buf *buf, struct tn_bytes bytes)
{
    static const char digits[2][65] = {
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
    };
    const char *alphabet = digits[random_below(&m->state, 2)];
    bool padded = random_below(&m->state, 2);
    tn_buf_byte(buf, '"');
    for (size_t i = 0; i < bytes.size; i += 3) {
        size_t left = bytes.size - i < 3 ? bytes.size - i : 3;
        uint32_t word = (uint32_t)bytes.data[i] << 16 |
                        (left > 1 ? (uint32_t)bytes.data[i + 1] << 8 : 0) |
                        (left > 2 ? bytes.data[i + 2] : 0U);
        for (size_t k = 0; k < 4 && (k <= left || padded); k++) {
            tn_buf_byte(buf,
                        (unsigned char)(k <= left ? alphabet[word >> (18 - 6 * k) & 63] : '='));
        }
    }
    tn_buf_byte(buf, '"');
}

/* What was, before the row became `after`: some columns differ. */
static inline void model_draw_before(struct model *m, struct model_row *before,
                                     const struct model_row *after, uint32_t size_max)
{
    model_draw(m, before, size_max);
    for (uint32_t c = 0; c < MODEL_COLUMNS; c++) {
        if (random_below(&m->state, 2)) {
            before->values[c] = after->values[c];
        }
    }
}

struct model_expect {
    const struct model_row *row;
    enum tn_row_kind kind;
};

static inline void model_check_row(struct model *m, struct tn_decoded *decoded, uint32_t i,
                                   const struct model_expect *expect)
{
    static unsigned char packed[2 * MODEL_TEXTS_MAX];
    struct tn_row row = tn_decoder_row(m->decoder, decoded, i);
    uint32_t size = tn_row_pack(&m->layout, expect->row->values, packed);
    CHECK(tn_row_valid(&m->layout, row));
    for (uint32_t c = 0; c < MODEL_COLUMNS; c++) {
        struct tn_value have;
        tn_row_get(&m->layout, row, c, &have);
        const struct tn_value *want = &expect->row->values[c];
        if (tn_value_compare(&m->types[c], &have, want) != 0) {
            (void)fprintf(stderr, "row %u, column %s\n", i, m->names[c]);
        }
    }
    CHECK(row.size == size && memcmp(row.data, packed, size) == 0);
    CHECK(tn_decoded_kind(decoded, i) == expect->kind);
}

/* One record, with or without room behind it, gives these rows, in whatever order they are asked
 * for. */
static inline void model_check_record(struct model *m, const struct tn_buf *record,
                                      const struct model_expect *expect, uint32_t count)
{
    CHECK(!record->overflow);
    uint32_t behind = random_below(&m->state, 2) ? 40 : 0;
    size_t total = record->size + (behind > 0) + behind;
    unsigned char *block = malloc(total + 1);
    CHECK(block != NULL);
    memset(block, ' ', total + 1);
    memcpy(block + 1, record->data, record->size);
    if (behind > 0) {
        block[1 + record->size] = '\n';
    }
    struct tn_bytes input = {block + 1, total};
    struct tn_decoded decoded;
    size_t eaten = 0;
    tn_rc rc = tn_decoder_next(m->decoder, input, true, &decoded, &eaten, &m->err);
    CHECK_OK(rc, m->err);
    if (decoded.dead || decoded.count != count) {
        (void)fprintf(stderr, "%s\n%.*s\n", decoded.reason, (int)record->size, record->data);
    }
    CHECK(!decoded.dead && decoded.count == count);
    for (uint32_t i = 0; i < count; i++) {
        model_check_row(m, &decoded, i, &expect[i]);
    }
    for (uint32_t n = 0; n < 4 && count > 0; n++) {
        uint32_t i = random_below(&m->state, count);
        model_check_row(m, &decoded, i, &expect[i]);
    }
    free(block);
}

/* A record as text gives rows as text: "+I {...}\n", "dead: ...\n", "skipped\n". `expect` is all of
 * it, or a part behind '~'. */
static inline void model_check_case(struct model *m, const char *text, const char *expect)
{
    static unsigned char out[1 << 16];
    struct tn_buf buf;
    size_t size = strlen(text);
    unsigned char *block = malloc(size + 1);
    CHECK(block != NULL);
    memcpy(block + 1, text, size);
    tn_buf_init(&buf, out, sizeof out - 1);
    for (size_t at = 0; at < size;) {
        struct tn_decoded decoded;
        size_t eaten = 0;
        struct tn_bytes rest = {block + 1 + at, size - at};
        tn_rc rc = tn_decoder_next(m->decoder, rest, true, &decoded, &eaten, &m->err);
        CHECK_OK(rc, m->err);
        at += eaten;
        if (decoded.dead || decoded.skipped) {
            CHECK(decoded.count == 0 && (decoded.reason[0] != 0) == decoded.dead);
            tn_buf_format(&buf, "%s%s\n", decoded.dead ? "dead: " : "skipped", decoded.reason);
        }
        for (uint32_t i = 0; i < decoded.count; i++) {
            struct tn_row row = tn_decoder_row(m->decoder, &decoded, i);
            tn_buf_format(&buf, "%s {", tn_row_kind_text(tn_decoded_kind(&decoded, i)));
            bool first = true;
            for (uint32_t c = 0; c < MODEL_COLUMNS; c++) {
                struct tn_value value;
                tn_row_get(&m->layout, row, c, &value);
                if (!value.null) {
                    tn_buf_format(&buf, "%s%s:", first ? "" : ",", m->names[c]);
                    tn_value_format_json(&m->types[c], &value, &buf);
                    first = false;
                }
            }
            tn_buf_text(&buf, "}\n");
        }
    }
    free(block);
    CHECK(!buf.overflow);
    out[buf.size] = 0;
    bool ok = expect[0] == '~' ? strstr((char *)out, expect + 1) != NULL
                               : strcmp((char *)out, expect) == 0;
    if (!ok) {
        (void)fprintf(stderr, "%s\n got %s\nwant %s\n", text, out, expect);
    }
    CHECK(ok);
}

/* Changes bytes of a record: whatever comes out, rows are rows, and the decoder goes on. */
static inline void model_damage(struct model *m, struct tn_buf *record)
{
    static const char spice[] = "\"\\{}[]:,\n\x80 0x-e.=Zn";
    uint32_t hits = 1 + random_below(&m->state, 3);
    for (uint32_t n = 0; n < hits && record->size > 1; n++) {
        size_t at = random_below(&m->state, (uint32_t)record->size);
        switch (random_below(&m->state, 4)) {
        case 0:
            record->size = at + 1;
            break;
        case 1:
            memmove(record->data + at, record->data + at + 1, record->size - at - 1);
            record->size--;
            break;
        default:
            record->data[at] = (unsigned char)spice[random_below(&m->state, sizeof spice - 1)];
        }
    }
    unsigned char *block = malloc(record->size + 1);
    CHECK(block != NULL);
    memcpy(block + 1, record->data, record->size);
    for (size_t at = 0; at < record->size;) {
        struct tn_decoded decoded;
        size_t eaten = 0;
        struct tn_bytes rest = {block + 1 + at, record->size - at};
        tn_rc rc = tn_decoder_next(m->decoder, rest, true, &decoded, &eaten, &m->err);
        CHECK_OK(rc, m->err);
        CHECK(eaten > 0 && !(decoded.dead && decoded.count > 0));
        for (uint32_t i = 0; i < decoded.count; i++) {
            CHECK(tn_row_valid(&m->layout, tn_decoder_row(m->decoder, &decoded, i)));
        }
        at += eaten;
    }
    free(block);
}
