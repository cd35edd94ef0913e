/* long: texts that find no room beside their record: with escapes, with doubled quotes, as hex, as
 * ISO-8859-1, as base64; two long rows of one record; rows over the limit. What a row holds then is
 * what was written. */
#include "check.h"
#include "given.h"
#include "ingest/decode.h"
#include "random.h"

enum {
    TEXT_MAX = 300 * 1024,
    RECORD_MAX = 16 * TEXT_MAX,
    ROW_MAX = 2 * TEXT_MAX + 1024,
    MEMORY_SIZE = RECORD_MAX + ROW_MAX + (1 << 20),
};

static unsigned char memory[MEMORY_SIZE];
static unsigned char input[RECORD_MAX + TN_DECODE_PAD];
static unsigned char texts[2][TEXT_MAX];
static unsigned char bytes[2][TEXT_MAX];
static uint32_t text_size[2];
static uint32_t bytes_size[2];
static struct tn_arena arena;
static struct tn_err err;
static struct tn_field fields[] = {{.name = "k"}, {.name = "s"}, {.name = "b"}};
static struct tn_schema schema = {.fields = fields, .field_count = COUNT(fields)};
static struct tn_row_layout layout;
static struct tn_decoder *decoder;

static void open_decoder(enum tn_input form, uint32_t row_size_max)
{
    static const char *const types[] = {"INT", "STRING", "BYTES"};
    const char *names[COUNT(fields)];
    struct tn_type parsed[COUNT(fields)];
    tn_arena_init(&arena, memory, sizeof memory);
    for (uint32_t i = 0; i < COUNT(fields); i++) {
        tn_rc rc = tn_type_parse(tn_bytes_of(types[i]), &fields[i].type, &err);
        CHECK_OK(rc, err);
        names[i] = fields[i].name;
        parsed[i] = fields[i].type;
    }
    tn_rc rc = tn_row_layout_init(&layout, names, parsed, COUNT(fields), &arena, &err);
    CHECK_OK(rc, err);
    struct tn_decode_spec spec = {.input = form,
                                  .schema = &schema,
                                  .layout = &layout,
                                  .record_size_max = RECORD_MAX,
                                  .row_size_max = row_size_max,
                                  .padded = true};
    size_t mark = tn_arena_mark(&arena);
    size_t free = tn_arena_free(&arena);
    rc = tn_decoder_open(&decoder, &spec, &arena, &err);
    CHECK_OK(rc, err);
    size_t size = free - tn_arena_free(&arena);
    /* Once more, so that nothing lies behind its scratch. */
    tn_arena_reset(&arena, mark);
    (void)tn_arena_take(&arena, free - size);
    rc = tn_decoder_open(&decoder, &spec, &arena, &err);
    CHECK_OK(rc, err);
    /* Less than two rows and the texts of one: what does not fit is written late. */
    CHECK(size < ROW_MAX + 300 * 1024);
    CHECK(tn_arena_free(&arena) == 0);
}

static void draw(uint64_t *state, int which)
{
    static const char letters[] = "abc\"\\\n\t,\x01";
    bool plain = random_below(state, 3) == 0;
    text_size[which] =
        random_below(state, 4) == 0 ? random_below(state, 50) : random_below(state, TEXT_MAX);
    bytes_size[which] = random_below(state, 3) == 0 ? 0 : random_below(state, TEXT_MAX);
    for (uint32_t i = 0; i < text_size[which]; i++) {
        texts[which][i] =
            plain ? 'x' : (unsigned char)letters[random_below(state, sizeof letters - 1)];
    }
    for (uint32_t i = 0; i < bytes_size[which]; i++) {
        bytes[which][i] = (unsigned char)random_below(state, 256);
    }
}

static void put_hex(struct tn_buf *buf, int which)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    for (uint32_t i = 0; i < bytes_size[which]; i++) {
        const char *of = digits + (i % 2) * 16;
        tn_buf_byte(buf, (unsigned char)of[bytes[which][i] >> 4]);
        tn_buf_byte(buf, (unsigned char)of[bytes[which][i] & 15]);
    }
}

static void put_json(struct tn_buf *buf, int which)
{
    tn_buf_format(buf, "{\"k\":%d,\"s\":", which);
    tn_json_string(buf, (struct tn_bytes){texts[which], text_size[which]});
    tn_buf_text(buf, ",\"b\":\"");
    put_hex(buf, which);
    tn_buf_text(buf, "\"}");
}

static void put_latin1(struct tn_buf *buf, int which)
{
    for (uint32_t i = 0; i < bytes_size[which]; i++) {
        unsigned char byte = bytes[which][i];
        if (byte < 0x20 || byte == '"' || byte == '\\') {
            tn_buf_format(buf, "\\u%04x", byte);
        } else if (byte < 0x80) {
            tn_buf_byte(buf, byte);
        } else {
            tn_buf_byte(buf, (unsigned char)(0xC0 | byte >> 6));
            tn_buf_byte(buf, (unsigned char)(0x80 | (byte & 0x3F)));
        }
    }
}

static void put_canal(struct tn_buf *buf, int which)
{
    tn_buf_format(buf, "{\"k\":\"%d\",\"s\":", which);
    tn_json_string(buf, (struct tn_bytes){texts[which], text_size[which]});
    tn_buf_text(buf, ",\"b\":\"");
    put_latin1(buf, which);
    tn_buf_text(buf, "\"}");
}

static void put_base64(struct tn_buf *buf, int which)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (uint32_t bit = 0; bit < bytes_size[which] * 8; bit += 6) {
        const unsigned char *at = bytes[which] + bit / 8;
        unsigned word = (unsigned)at[0] << 8 | (bit / 8 + 1 < bytes_size[which] ? at[1] : 0U);
        tn_buf_byte(buf, (unsigned char)digits[word >> (10 - bit % 8) & 63]);
    }
}

/* A row of Debezium's or Maxwell's. */
static void put_changed(struct tn_buf *buf, int which)
{
    tn_buf_format(buf, "{\"k\":%d,\"s\":", which);
    tn_json_string(buf, (struct tn_bytes){texts[which], text_size[which]});
    tn_buf_text(buf, ",\"b\":\"");
    put_base64(buf, which);
    tn_buf_text(buf, "\"}");
}

static void put_maxwell(struct tn_buf *buf)
{
    tn_buf_text(buf, "{\"type\":\"insert\",\"data\":");
    put_changed(buf, 0);
    tn_buf_text(buf, "}");
}

static void put_canal_record(struct tn_buf *buf, int count)
{
    tn_buf_text(buf, "{\"data\":[");
    put_canal(buf, 0);
    if (count > 1) {
        tn_buf_byte(buf, ',');
        put_canal(buf, 1);
    }
    tn_buf_text(buf, "],\"type\":\"INSERT\"}");
}

static void put_line(struct tn_buf *buf, int which)
{
    tn_buf_format(buf, "m k=%di,s=\"", which);
    for (uint32_t i = 0; i < text_size[which]; i++) {
        if (texts[which][i] == '"' || texts[which][i] == '\\') {
            tn_buf_byte(buf, '\\');
        }
        tn_buf_byte(buf, texts[which][i]);
    }
    tn_buf_text(buf, "\",b=\"");
    put_hex(buf, which);
    tn_buf_byte(buf, '"');
}

static void put_csv(struct tn_buf *buf, int which)
{
    tn_buf_text(buf, "k,s,b\n");
    tn_buf_format(buf, "%d,\"", which);
    for (uint32_t i = 0; i < text_size[which]; i++) {
        tn_buf_byte(buf, texts[which][i]);
        if (texts[which][i] == '"') {
            tn_buf_byte(buf, '"');
        }
    }
    tn_buf_text(buf, "\",\"");
    put_hex(buf, which);
    tn_buf_byte(buf, '"');
}

/* The record lies at the very end of what can be read, but for the padding. */
static struct tn_bytes at_the_end(const struct tn_buf *buf)
{
    unsigned char *at = input + RECORD_MAX - buf->size;
    memmove(at, buf->data, buf->size);
    memset(input + RECORD_MAX, '\n', TN_DECODE_PAD);
    return (struct tn_bytes){at, buf->size};
}

static void next(struct tn_bytes *rest, struct tn_decoded *decoded)
{
    size_t eaten;
    tn_rc rc = tn_decoder_next(decoder, *rest, true, decoded, &eaten, &err);
    CHECK_OK(rc, err);
    rest->data += eaten;
    rest->size -= eaten;
}

static void check_row(struct tn_decoded *decoded, uint32_t i, int which)
{
    struct tn_row row = tn_decoder_row(decoder, decoded, i);
    CHECK(tn_row_valid(&layout, row));
    struct tn_bytes text = tn_row_bytes(&layout, row, 1);
    struct tn_bytes hex = tn_row_bytes(&layout, row, 2);
    CHECK(text.size == text_size[which] && memcmp(text.data, texts[which], text.size) == 0);
    CHECK(hex.size == bytes_size[which] && memcmp(hex.data, bytes[which], hex.size) == 0);
}

static void put_record(struct tn_buf *buf, enum tn_input form)
{
    switch (form) {
    case TN_INPUT_CSV:
        put_csv(buf, 0);
        return;
    case TN_INPUT_CANAL:
        put_canal_record(buf, 1);
        return;
    case TN_INPUT_MAXWELL:
        put_maxwell(buf);
        return;
    case TN_INPUT_LINE:
        put_line(buf, 0);
        return;
    case TN_INPUT_JSON:
    case TN_INPUT_CHANGES:
    case TN_INPUT_DEBEZIUM:
        break;
    }
    put_json(buf, 0);
}

static void long_texts_are_written_into_their_rows(void)
{
    static const enum tn_input forms[] = {TN_INPUT_JSON, TN_INPUT_CSV, TN_INPUT_CANAL,
                                          TN_INPUT_MAXWELL, TN_INPUT_LINE};
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t state = seed + 1000 * given_number("SEED", 1);
        enum tn_input form = forms[seed % COUNT(forms)];
        struct tn_buf buf;
        tn_buf_init(&buf, input, RECORD_MAX);
        draw(&state, 0);
        open_decoder(form, ROW_MAX);
        put_record(&buf, form);
        CHECK(!buf.overflow);
        struct tn_bytes rest = at_the_end(&buf);
        struct tn_decoded decoded;
        if (form == TN_INPUT_CSV) {
            next(&rest, &decoded);
        }
        next(&rest, &decoded);
        CHECK(rest.size == 0 && decoded.count == 1);
        check_row(&decoded, 0, 0);
    }
}

static void two_long_rows_come_one_by_one(void)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        uint64_t state = seed + 1000 * given_number("SEED", 1);
        struct tn_buf buf;
        tn_buf_init(&buf, input, RECORD_MAX);
        draw(&state, 0);
        draw(&state, 1);
        bool canal = seed % 2;
        open_decoder(canal ? TN_INPUT_CANAL : TN_INPUT_DEBEZIUM, ROW_MAX);
        if (canal) {
            put_canal_record(&buf, 2);
        } else {
            tn_buf_text(&buf, "{\"before\":");
            put_changed(&buf, 0);
            tn_buf_text(&buf, ",\"after\":");
            put_changed(&buf, 1);
            tn_buf_text(&buf, ",\"op\":\"u\"}");
        }
        CHECK(!buf.overflow);
        struct tn_bytes rest = at_the_end(&buf);
        struct tn_decoded decoded;
        next(&rest, &decoded);
        CHECK(decoded.count == 2);
        check_row(&decoded, 0, 0);
        check_row(&decoded, 1, 1);
    }
}

static void a_row_over_the_limit_is_dead_with_its_size(void)
{
    struct tn_buf buf;
    tn_buf_init(&buf, input, RECORD_MAX);
    memset(texts[0], 'x', TEXT_MAX);
    text_size[0] = 5000;
    bytes_size[0] = 0;
    open_decoder(TN_INPUT_JSON, 5000);
    put_json(&buf, 0);
    struct tn_bytes rest = at_the_end(&buf);
    struct tn_decoded decoded;
    next(&rest, &decoded);
    CHECK(decoded.dead && decoded.count == 0);
    CHECK(strcmp(decoded.reason, "a row of 5013 bytes, at most 5000 fit the memory") == 0);
    CHECK(decoded.record.size == buf.size);
}

/* What can't be written late is said: not JSON, not hex, too long for its column. */
static void what_is_wrong_with_long_texts_is_said(void)
{
    static const struct {
        const char *head;
        const char *tail;
        const char *reason;
    } cases[] = {
        {"{\"s\":\"\\n", "\\x\"}", "there is no such escape"},
        {"{\"s\":\"\\n", "\\ud800\"}", "half a surrogate pair"},
        {"{\"s\":\"\\n", "\xff\"}", "no UTF-8"},
        {"{\"b\":\"", "xy\"}", "no hex"},
        {"{\"b\":\"", "a\"}", "odd number"},
        {"{\"b\":\"\\n", "\"}", "too long to be unescaped"},
        {"{\"k\":\"\\n", "\"}", "too long to be unescaped"},
        {"{\"\\n", "\":1}", "no room"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_buf buf;
        tn_buf_init(&buf, input, RECORD_MAX);
        memset(texts[0], 'a', TEXT_MAX);
        open_decoder(TN_INPUT_JSON, ROW_MAX);
        tn_buf_text(&buf, cases[i].head);
        for (int n = 0; n < 2; n++) {
            tn_buf_append(&buf, texts[0], TEXT_MAX);
        }
        tn_buf_text(&buf, cases[i].tail);
        struct tn_bytes rest = at_the_end(&buf);
        struct tn_decoded decoded;
        next(&rest, &decoded);
        if (!decoded.dead || !strstr(decoded.reason, cases[i].reason)) {
            (void)fprintf(stderr, "case %zu: %s\n", i, decoded.reason);
        }
        CHECK(decoded.dead && strstr(decoded.reason, cases[i].reason));
    }
}

/* Of a text that ends where scratch ends nothing behind is read; the address sanitizer sees it. */
static void a_scale_may_be_the_last_that_fits(void)
{
    enum { SCRATCH = 192 * 1024 + 2 * 16 };
    struct tn_buf buf;
    tn_buf_init(&buf, input, RECORD_MAX);
    open_decoder(TN_INPUT_DEBEZIUM, ROW_MAX);
    tn_buf_text(&buf, "{\"schema\":{\"fields\":[{\"field\":\"after\",\"fields\":[{\"doc\":\"\\n");
    for (int n = 2; n < SCRATCH; n++) {
        tn_buf_byte(&buf, 'a');
    }
    tn_buf_text(&buf,
                "\",\"parameters\":{\"scale\":\"\\u0031\"},\"field\":\"k\",\"type\":\"bytes\","
                "\"name\":\"org.apache.kafka.connect.data.Decimal\"}]}]},"
                "\"payload\":{\"op\":\"c\",\"after\":{\"k\":null}}}");
    struct tn_bytes rest = at_the_end(&buf);
    struct tn_decoded decoded;
    next(&rest, &decoded);
    CHECK(!decoded.dead && decoded.count == 1);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(long_texts_are_written_into_their_rows),
        TEST(two_long_rows_come_one_by_one),
        TEST(a_row_over_the_limit_is_dead_with_its_size),
        TEST(what_is_wrong_with_long_texts_is_said),
        TEST(a_scale_may_be_the_last_that_fits),
    };
    return run_tests(argc, argv, tests, COUNT(tests));
}
