#include "ingest/decode.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "ingest/decode_private.h"

static const char *const input_names[TN_INPUT_COUNT] = {
    [TN_INPUT_JSON] = "json",
    [TN_INPUT_CHANGES] = "changes",
    [TN_INPUT_DEBEZIUM] = "debezium-json",
    [TN_INPUT_CSV] = "csv",
    [TN_INPUT_CANAL] = "canal-json",
    [TN_INPUT_MAXWELL] = "maxwell-json",
    [TN_INPUT_LINE] = "line-protocol",
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
    for (uint32_t i = 0; i < TN_INPUT_COUNT; i++) {
        if (strcmp(name, input_names[i]) == 0) {
            *input = (enum tn_input)i;
            return TN_OK;
        }
    }
    const char *near = tn_nearest_name(tn_bytes_of(name), input_names, TN_INPUT_COUNT);
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

/* ---- one record after the other ---- */

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

const unsigned char *tn_record_end(enum tn_input input, struct tn_bytes from,
                                   struct tn_record_place *place)
{
    if (input == TN_INPUT_CSV) {
        return tn_csv_record_end(from.data, from.data + from.size, place);
    }
    if (input == TN_INPUT_LINE) {
        return tn_line_record_end(from.data, from.data + from.size, place);
    }
    const unsigned char *newline = memchr(from.data, '\n', from.size);
    return newline ? newline + 1 : NULL;
}

const unsigned char *tn_record_end_within(enum tn_input input, struct tn_bytes from, uint64_t left,
                                          struct tn_record_place *place, bool *given_up)
{
    const unsigned char *next = from.size > 0 ? tn_record_end(input, from, place) : NULL;
    const unsigned char *newline =
        left < from.size ? memchr(from.data + left, '\n', from.size - (size_t)left) : NULL;
    *given_up = newline && (!next || newline + 1 < next);
    return *given_up ? newline + 1 : next;
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
    decoder->read_again = tn_decode_is_database(decoder->spec.input);
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
    struct tn_record_place place = decoder->place;
    const unsigned char *end =
        input.size ? tn_record_end(decoder->spec.input, input, &place) : NULL;
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
    decoder->place = place;
    if (whole) {
        decoder->place = (struct tn_record_place){0};
    }
    count_lines(decoder, line);
    *eaten = size;
    return TN_OK;
}

tn_rc tn_decoder_resume(struct tn_decoder *decoder, uint64_t line, struct tn_bytes csv_header,
                        struct tn_err *err)
{
    decoder->line = line;
    decoder->skipping = false;
    decoder->place = (struct tn_record_place){0};
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
