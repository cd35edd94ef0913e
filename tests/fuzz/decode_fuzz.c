/* A stream of records in any format, in pieces: the first byte says which, the second how large the
 * pieces are. Every row must be one of the layout; nothing may read beyond its piece (each is a
 * block of its own). */
#include <stdlib.h>

#include "base/check.h"
#include "fuzz/fuzz.h"
#include "ingest/decode.h"

static const char *const names[] = {"k", "i", "l", "f", "d", "b", "t", "x", "c", "long_name", "s"};
static const char *const type_texts[] = {
    "STRING NOT NULL", "INT",          "BIGINT",        "FLOAT",      "DOUBLE",  "BOOLEAN",
    "TIMESTAMP(3)",    "VARBINARY(4)", "DECIMAL(9, 2)", "VARCHAR(3)", "SMALLINT"};
enum { COLUMNS = sizeof names / sizeof names[0], RECORD_MAX = 600 };

static const enum tn_input forms[8] = {
    TN_INPUT_JSON,  TN_INPUT_CHANGES, TN_INPUT_DEBEZIUM, TN_INPUT_CSV,
    TN_INPUT_CANAL, TN_INPUT_MAXWELL, TN_INPUT_LINE,     TN_INPUT_DEBEZIUM,
};

static unsigned char memory[1 << 16];

static struct tn_decoder *open_decoder(uint8_t choice, struct tn_row_layout *layout,
                                       struct tn_schema *schema)
{
    static struct tn_field fields[COLUMNS];
    static struct tn_type types[COLUMNS];
    static enum tn_epoch epochs[COLUMNS];
    static const uint32_t keys[] = {0};
    struct tn_decoder *decoder = NULL;
    struct tn_arena arena;
    struct tn_err err;
    tn_arena_init(&arena, memory, sizeof memory);
    for (uint32_t i = 0; i < COLUMNS; i++) {
        fields[i] = (struct tn_field){.name = names[i], .default_value = i == 9 ? "new" : NULL};
        tn_rc rc = tn_type_parse(tn_bytes_of(type_texts[i]), &fields[i].type, &err);
        TN_CHECK(rc == TN_OK);
        types[i] = fields[i].type;
        epochs[i] = choice & 16 && i == 6 ? TN_EPOCH_MS : TN_EPOCH_NONE;
    }
    tn_rc rc = tn_row_layout_init(layout, names, types, COLUMNS, &arena, &err);
    TN_CHECK(rc == TN_OK);
    *schema =
        (struct tn_schema){.fields = fields, .field_count = COLUMNS, .primary_keys = {keys, 1}};
    struct tn_decode_spec spec = {
        .input = forms[choice % 8],
        .unknown = choice & 8 ? TN_UNKNOWN_DROP : TN_UNKNOWN_FAIL,
        .schema = schema,
        .layout = layout,
        .epochs = epochs,
        .record_size_max = RECORD_MAX,
    };
    rc = tn_decoder_open(&decoder, &spec, &arena, &err);
    TN_CHECK(rc == TN_OK);
    return decoder;
}

static void check_rows(const struct tn_row_layout *layout, struct tn_decoder *decoder,
                       struct tn_decoded *decoded)
{
    TN_CHECK(!decoded->dead || (decoded->count == 0 && decoded->reason[0] != 0));
    TN_CHECK(decoded->record.size <= RECORD_MAX);
    for (uint32_t i = 0; i < decoded->count; i++) {
        TN_CHECK(tn_row_valid(layout, tn_decoder_row(decoder, decoded, i)));
        TN_CHECK(tn_decoded_kind(decoded, i) <= TN_ROW_DELETE);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    struct tn_row_layout layout;
    struct tn_schema schema;
    struct tn_decoder *decoder = open_decoder(data[0], &layout, &schema);
    size_t begin = 2;
    size_t end = 2;
    for (;;) {
        struct tn_decoded decoded;
        struct tn_err err;
        size_t eaten = 0;
        size_t piece = end - begin;
        unsigned char *copy = malloc(piece + 1);
        TN_CHECK(copy != NULL);
        memcpy(copy + 1, data + begin, piece);
        tn_rc rc = tn_decoder_next(decoder, (struct tn_bytes){copy + 1, piece}, end == size,
                                   &decoded, &eaten, &err);
        if (rc == TN_OK) {
            TN_CHECK(eaten > 0 && eaten <= piece);
            check_rows(&layout, decoder, &decoded);
        }
        free(copy);
        if (rc != TN_OK && (rc != TN_AGAIN || end == size)) {
            return 0;
        }
        begin += eaten;
        if (rc == TN_AGAIN) {
            size_t more = 1 + data[1] % 64U;
            end = size - end < more ? size : end + more;
        }
    }
}
