#include "ingest/socket_greeting.h"

enum {
    SENDER,
    FIRST,
    TOKEN,
    COLUMNS,
    WORD_SIZE = 5, /* "tarn " */
};

#define FIRST_MAX (INT64_C(1) << 53) /* every client's numbers are exact up to there */

static const char begin_text[] = "tarn {";

static const struct {
    const char *name;
    const char *type;
} columns[COLUMNS] = {
    [SENDER] = {"sender", "STRING"},
    [FIRST] = {"first", "BIGINT"},
    [TOKEN] = {"token", "STRING"},
};

static tn_rc describe(struct tn_socket_greeter *greeter, struct tn_arena *arena, struct tn_err *err)
{
    void *memory = NULL;
    const char *names[COLUMNS];
    struct tn_type types[COLUMNS];
    tn_rc rc = tn_arena_need(arena, COLUMNS * sizeof(struct tn_field), "a greeting", &memory, err);
    if (rc) {
        return rc;
    }
    struct tn_field *fields = memory;
    for (uint32_t i = 0; rc == TN_OK && i < COLUMNS; i++) {
        fields[i] = (struct tn_field){.id = (int32_t)i, .name = columns[i].name};
        rc = tn_type_parse(tn_bytes_of(columns[i].type), &fields[i].type, err);
        names[i] = fields[i].name;
        types[i] = fields[i].type;
    }
    greeter->schema = (struct tn_schema){.fields = fields, .field_count = COLUMNS};
    return rc ? rc : tn_row_layout_init(&greeter->layout, names, types, COLUMNS, arena, err);
}

tn_rc tn_socket_greeter_init(struct tn_socket_greeter *greeter, struct tn_arena *arena,
                             struct tn_err *err)
{
    struct tn_decode_spec spec = {.input = TN_INPUT_JSON,
                                  .schema = &greeter->schema,
                                  .layout = &greeter->layout,
                                  .record_size_max = TN_SOCKET_GREETING_MAX};
    tn_rc rc = describe(greeter, arena, err);
    return rc ? rc : tn_decoder_open(&greeter->decoder, &spec, arena, err);
}

bool tn_socket_may_greet(struct tn_bytes begin)
{
    size_t size = sizeof begin_text - 1;
    size = begin.size < size ? begin.size : size;
    return size == 0 || memcmp(begin.data, begin_text, size) == 0;
}

static bool is_name(struct tn_bytes name)
{
    for (size_t i = 0; i < name.size; i++) {
        unsigned char c = name.data[i];
        if (c <= ' ' || c > '~' || c == '"' || c == '\\') {
            return false;
        }
    }
    return name.size > 0 && name.size <= TN_SOCKET_NAME_MAX;
}

static tn_rc take_row(struct tn_socket_greeter *greeter, struct tn_row row,
                      struct tn_socket_greeting *greeting, struct tn_err *err)
{
    struct tn_value first = {.null = true};
    if (!tn_row_null(row, SENDER)) {
        greeting->sender = tn_row_bytes(&greeter->layout, row, SENDER);
        if (!is_name(greeting->sender)) {
            return tn_err_set(err, TN_INVALID, 0,
                              "a sender's name is 1 to %d visible characters of ASCII, no quotes",
                              TN_SOCKET_NAME_MAX);
        }
    }
    if (!tn_row_null(row, FIRST)) {
        tn_row_get(&greeter->layout, row, FIRST, &first);
        if (first.as.i64 < 1 || first.as.i64 > FIRST_MAX || greeting->sender.size == 0) {
            return tn_err_set(err, TN_INVALID, 0, "`first` is a number from 1, of a sender's line");
        }
        greeting->first = (uint64_t)first.as.i64;
    }
    if (!tn_row_null(row, TOKEN)) {
        greeting->token = tn_row_bytes(&greeter->layout, row, TOKEN);
    }
    return TN_OK;
}

tn_rc tn_socket_greeting_read(struct tn_socket_greeter *greeter, struct tn_bytes line,
                              struct tn_socket_greeting *greeting, struct tn_err *err)
{
    size_t eaten = 0;
    struct tn_decoded decoded;
    *greeting = (struct tn_socket_greeting){0};
    if (line.size < sizeof begin_text || !tn_socket_may_greet(line)) {
        return tn_err_set(err, TN_INVALID, 0, "a greeting is: tarn {\"sender\":\"name\"}");
    }
    struct tn_bytes record = {line.data + WORD_SIZE, line.size - WORD_SIZE};
    tn_rc rc = tn_decoder_next(greeter->decoder, record, true, &decoded, &eaten, err);
    if (rc) {
        return rc;
    }
    if (decoded.dead || decoded.count != 1 || eaten != record.size) {
        return tn_err_set(err, TN_INVALID, 0, "greeting: %.200s",
                          decoded.dead ? decoded.reason : "it's not one line");
    }
    return take_row(greeter, tn_decoder_row(greeter->decoder, &decoded, 0), greeting, err);
}
