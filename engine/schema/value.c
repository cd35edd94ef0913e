#include "schema/value.h"

#include <math.h>

#include "base/check.h"
#include "schema/decimal.h"
#include "schema/text_scan.h"
#include "schema/time_text.h"

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* Double.compare: -0.0 is below 0.0, NaN above all. */
static int compare_doubles(double a, double b)
{
    if (a < b || a > b) {
        return a < b ? -1 : 1;
    }
    bool a_nan = a != a;
    bool b_nan = b != b;
    if (a_nan || b_nan) {
        return (int)a_nan - (int)b_nan;
    }
    uint64_t a_bits = 0;
    uint64_t b_bits = 0;
    memcpy(&a_bits, &a, sizeof a);
    memcpy(&b_bits, &b, sizeof b);
    return COMPARE((int64_t)a_bits, (int64_t)b_bits); /* equal, or zeros of two signs */
}

static int compare_times(const struct tn_value *a, const struct tn_value *b)
{
    int order = COMPARE(a->as.i64, b->as.i64);
    return order ? order : COMPARE(a->nanos, b->nanos);
}

int tn_value_compare(const struct tn_type *type, const struct tn_value *a, const struct tn_value *b)
{
    if (a->null || b->null) {
        return (int)b->null - (int)a->null;
    }
    if (type->kind == TN_TYPE_FLOAT || type->kind == TN_TYPE_DOUBLE) {
        return compare_doubles(a->as.f64, b->as.f64);
    }
    if (type->kind == TN_TYPE_DECIMAL) {
        return tn_i128_compare(a->as.i128, b->as.i128);
    }
    if (tn_type_textual(type->kind) || tn_type_binary(type->kind)) {
        return tn_bytes_compare(a->as.bytes, b->as.bytes);
    }
    if (type->kind == TN_TYPE_TIMESTAMP || type->kind == TN_TYPE_TIMESTAMP_LTZ) {
        return compare_times(a, b);
    }
    return COMPARE(a->as.i64, b->as.i64);
}

/* ---- format ---- */

static void format_hex(struct tn_buf *buf, struct tn_bytes bytes)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes.size; i++) {
        const char pair[2] = {digits[bytes.data[i] >> 4], digits[bytes.data[i] & 15]};
        tn_buf_append(buf, pair, sizeof pair);
    }
}

void tn_value_format_text(const struct tn_type *type, const struct tn_value *value,
                          struct tn_buf *buf)
{
    if (value->null) {
        return;
    }
    switch (type->kind) {
    case TN_TYPE_BOOLEAN:
        tn_buf_text(buf, value->as.i64 ? "true" : "false");
        break;
    case TN_TYPE_TINYINT:
    case TN_TYPE_SMALLINT:
    case TN_TYPE_INT:
    case TN_TYPE_BIGINT:
        tn_integer_format(buf, value->as.i64);
        break;
    case TN_TYPE_FLOAT:
        tn_float_format(buf, (float)value->as.f64);
        break;
    case TN_TYPE_DOUBLE:
        tn_double_format(buf, value->as.f64);
        break;
    case TN_TYPE_DECIMAL:
        tn_decimal_format(buf, value->as.i128, type->scale);
        break;
    case TN_TYPE_CHAR:
    case TN_TYPE_VARCHAR:
        tn_buf_append(buf, value->as.bytes.data, value->as.bytes.size);
        break;
    case TN_TYPE_BINARY:
    case TN_TYPE_VARBINARY:
        format_hex(buf, value->as.bytes);
        break;
    case TN_TYPE_DATE:
    case TN_TYPE_TIME:
    case TN_TYPE_TIMESTAMP:
    case TN_TYPE_TIMESTAMP_LTZ:
        tn_time_format(buf, type, value);
        break;
    case TN_TYPE_ARRAY:
    case TN_TYPE_MAP:
    case TN_TYPE_MULTISET:
    case TN_TYPE_ROW:
    case TN_TYPE_VARIANT:
    case TN_TYPE_BLOB:
    case TN_TYPE_KIND_COUNT:
        TN_CHECK(false); /* no row holds them */
    }
}

/* True when the JSON of a value that is not NULL stands without quotes. */
static bool json_bare(const struct tn_type *type, const struct tn_value *value)
{
    if (type->kind == TN_TYPE_FLOAT || type->kind == TN_TYPE_DOUBLE) {
        return isfinite(value->as.f64);
    }
    return type->kind == TN_TYPE_BOOLEAN || tn_type_integer(type->kind);
}

void tn_value_format_json(const struct tn_type *type, const struct tn_value *value,
                          struct tn_buf *buf)
{
    if (value->null) {
        tn_buf_text(buf, "null");
    } else if (tn_type_textual(type->kind)) {
        tn_json_string(buf, value->as.bytes);
    } else if (json_bare(type, value)) {
        tn_value_format_text(type, value, buf);
    } else {
        tn_buf_byte(buf, '"');
        tn_value_format_text(type, value, buf);
        tn_buf_byte(buf, '"');
    }
}

static void json_escape(struct tn_buf *buf, unsigned char byte)
{
    static const char letters[0x20] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    tn_buf_byte(buf, '\\');
    if (byte >= 0x20) {
        tn_buf_byte(buf, byte);
    } else if (letters[byte]) {
        tn_buf_byte(buf, (unsigned char)letters[byte]);
    } else {
        tn_buf_text(buf, "u00");
        format_hex(buf, (struct tn_bytes){&byte, 1});
    }
}

void tn_json_string(struct tn_buf *buf, struct tn_bytes text)
{
    size_t copied = 0;
    tn_buf_byte(buf, '"');
    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = text.data[i];
        if (byte < 0x20 || byte == '"' || byte == '\\') {
            tn_buf_append(buf, text.data + copied, i - copied);
            json_escape(buf, byte);
            copied = i + 1;
        }
    }
    if (copied < text.size) {
        tn_buf_append(buf, text.data + copied, text.size - copied);
    }
    tn_buf_byte(buf, '"');
}

/* ---- parse ---- */

/* The type without NOT NULL, which is not what is wrong. */
static const char *bare_name(const struct tn_type *type, char name[TN_TYPE_TEXT_SIZE])
{
    struct tn_type bare = *type;
    bare.nullable = true;
    return tn_type_format(&bare, name);
}

/* "'<text>' <why> <type>" */
static tn_rc refuse(const struct tn_type *type, struct tn_bytes text, const char *why,
                    struct tn_err *err)
{
    char name[TN_TYPE_TEXT_SIZE];
    return tn_err_set(err, TN_INVALID, 0, "'%.*s' %s %s", tn_quote_size(text), text.data, why,
                      bare_name(type, name));
}

static tn_rc refuse_size(const struct tn_type *type, struct tn_bytes number, struct tn_err *err)
{
    char name[TN_TYPE_TEXT_SIZE];
    return tn_err_set(err, TN_INVALID, 0, "%.*s does not fit %s", tn_quote_size(number),
                      number.data, bare_name(type, name));
}

/* `word` is in lower case. */
static bool is_word(struct tn_bytes text, const char *word)
{
    size_t size = strlen(word);
    if (text.size != size) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = text.data[i];
        byte = (unsigned char)(byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte);
        if (byte != (unsigned char)word[i]) {
            return false;
        }
    }
    return true;
}

static tn_rc parse_boolean(const struct tn_type *type, struct tn_bytes text, struct tn_value *value,
                           struct tn_err *err)
{
    bool yes = is_word(text, "true");
    if (!yes && !is_word(text, "false")) {
        return refuse(type, text, "is no", err);
    }
    value->as.i64 = yes;
    return TN_OK;
}

/* Integers in another form, as "1.0" or "1e3": taken when they are exact. */
static enum tn_integer_parsed parse_exact_decimal(struct tn_bytes text, int64_t *value)
{
    static const struct tn_type whole = {
        .kind = TN_TYPE_DECIMAL, .precision = TN_DECIMAL_PRECISION_MAX, .scale = 0};
    struct tn_i128 wide;
    struct tn_err err;
    if (tn_decimal_parse(&whole, text, &wide, &err)) {
        return TN_INTEGER_NONE;
    }
    *value = (int64_t)wide.low;
    return tn_i128_compare(wide, tn_i128_of(*value)) == 0 ? TN_INTEGER_OK : TN_INTEGER_TOO_LARGE;
}

static tn_rc parse_integer(const struct tn_type *type, struct tn_bytes text, struct tn_value *value,
                           struct tn_err *err)
{
    static const int64_t max_of_kind[] = {
        [TN_TYPE_TINYINT] = INT8_MAX,
        [TN_TYPE_SMALLINT] = INT16_MAX,
        [TN_TYPE_INT] = INT32_MAX,
        [TN_TYPE_BIGINT] = INT64_MAX,
    };
    int64_t max = max_of_kind[type->kind];
    int64_t number = 0;
    enum tn_integer_parsed parsed = tn_integer_parse(text, &number);
    if (parsed == TN_INTEGER_NONE) {
        parsed = parse_exact_decimal(text, &number);
    }
    if (parsed == TN_INTEGER_NONE) {
        return refuse(type, text, "is no", err);
    }
    if (parsed == TN_INTEGER_TOO_LARGE || number > max || number < -max - 1) {
        return refuse_size(type, text, err);
    }
    value->as.i64 = number;
    return TN_OK;
}

/* NaN and Infinity, in any case. */
static bool parse_special(struct tn_bytes text, double *value)
{
    if (is_word(text, "nan")) {
        *value = (double)NAN;
        return true;
    }
    bool negative = text.size > 0 && text.data[0] == '-';
    if (negative || (text.size > 0 && text.data[0] == '+')) {
        text = (struct tn_bytes){text.data + 1, text.size - 1};
    }
    *value = negative ? -(double)INFINITY : (double)INFINITY;
    return is_word(text, "infinity");
}

static tn_rc parse_floating(const struct tn_type *type, struct tn_bytes text,
                            struct tn_value *value, struct tn_err *err)
{
    float narrow = 0;
    bool parsed = false;
    if (type->kind == TN_TYPE_FLOAT) {
        parsed = tn_float_parse(text, &narrow);
        value->as.f64 = (double)narrow;
    } else {
        parsed = tn_double_parse(text, &value->as.f64);
    }
    if (parsed) {
        return isfinite(value->as.f64) ? TN_OK : refuse_size(type, text, err);
    }
    return parse_special(text, &value->as.f64) ? TN_OK : refuse(type, text, "is no", err);
}

/* The size of the UTF-8 sequence at `at`, or 0 when it is none. Unicode, table 3-7. */
static size_t utf8_sequence(const unsigned char *at, size_t left)
{
    unsigned char first = at[0];
    size_t size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (first > 0xf4 || size > left) {
        return 0;
    }
    for (size_t i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool bad = (first == 0xe0 && at[1] < 0xa0) || (first == 0xed && at[1] > 0x9f) ||
               (first == 0xf0 && at[1] < 0x90) || (first == 0xf4 && at[1] > 0x8f);
    return bad ? 0 : size;
}

size_t tn_utf8_span(struct tn_bytes text)
{
    size_t at = 0;
    size_t size = 1;
    while (size > 0 && at < text.size) {
        size = utf8_sequence(text.data + at, text.size - at);
        at += size;
    }
    return at;
}

/* False when the text is no UTF-8. */
static bool count_code_points(struct tn_bytes text, size_t *count)
{
    size_t points = 0;
    for (size_t at = 0; at < text.size;) {
        if (text.size - at >= 8 &&
            (tn_load_u64(text.data + at) & UINT64_C(0x8080808080808080)) == 0) {
            at += 8;
            points += 8;
            continue;
        }
        size_t size = utf8_sequence(text.data + at, text.size - at);
        if (size == 0) {
            return false;
        }
        at += size;
        points++;
    }
    *count = points;
    return true;
}

static tn_rc parse_characters(const struct tn_type *type, struct tn_bytes text,
                              struct tn_value *value, struct tn_err *err)
{
    size_t count = 0;
    if (!count_code_points(text, &count)) {
        return tn_err_set(err, TN_INVALID, 0, "the text is no UTF-8");
    }
    if (count > (size_t)type->length) {
        return refuse(type, text, "does not fit", err);
    }
    value->as.bytes = text;
    return TN_OK;
}

/* 0..15, or 16 for what is no hex digit. */
static unsigned hex_digit(unsigned char byte)
{
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10U : 16;
}

/* Paimon pads no BINARY(n): a shorter value stays as it is. */
static tn_rc parse_hex(const struct tn_type *type, struct tn_bytes text, struct tn_buf *scratch,
                       struct tn_value *value, struct tn_err *err)
{
    size_t size = text.size / 2;
    if (text.size % 2 != 0) {
        return refuse(type, text, "has an odd number of hex digits:", err);
    }
    if (size > (size_t)type->length) {
        return refuse(type, text, "does not fit", err);
    }
    if (scratch->overflow || scratch->capacity - scratch->size < size) {
        return tn_err_set(err, TN_AGAIN, 0, "no room for %zu bytes of hex", size);
    }
    unsigned char *bytes = scratch->data + scratch->size;
    for (size_t i = 0; i < size; i++) {
        unsigned high = hex_digit(text.data[2 * i]);
        unsigned low = hex_digit(text.data[2 * i + 1]);
        if ((high | low) > 15) {
            return refuse(type, text, "is no hex, which is how to write", err);
        }
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    scratch->size += size;
    value->as.bytes = (struct tn_bytes){bytes, size};
    return TN_OK;
}

static tn_rc parse(const struct tn_type *type, enum tn_epoch epoch, struct tn_bytes text,
                   struct tn_buf *scratch, struct tn_value *value, struct tn_err *err)
{
    switch (type->kind) {
    case TN_TYPE_BOOLEAN:
        return parse_boolean(type, text, value, err);
    case TN_TYPE_TINYINT:
    case TN_TYPE_SMALLINT:
    case TN_TYPE_INT:
    case TN_TYPE_BIGINT:
        return parse_integer(type, text, value, err);
    case TN_TYPE_FLOAT:
    case TN_TYPE_DOUBLE:
        return parse_floating(type, text, value, err);
    case TN_TYPE_DECIMAL:
        return tn_decimal_parse(type, text, &value->as.i128, err);
    case TN_TYPE_CHAR:
    case TN_TYPE_VARCHAR:
        return parse_characters(type, text, value, err);
    case TN_TYPE_BINARY:
    case TN_TYPE_VARBINARY:
        return parse_hex(type, text, scratch, value, err);
    case TN_TYPE_DATE:
    case TN_TYPE_TIME:
    case TN_TYPE_TIMESTAMP:
    case TN_TYPE_TIMESTAMP_LTZ:
        return tn_time_parse(type, epoch, text, value, err);
    case TN_TYPE_ARRAY:
    case TN_TYPE_MAP:
    case TN_TYPE_MULTISET:
    case TN_TYPE_ROW:
    case TN_TYPE_VARIANT:
    case TN_TYPE_BLOB:
    case TN_TYPE_KIND_COUNT:
        break;
    }
    return tn_err_set(err, TN_UNSUPPORTED, 0, "%s values are not read", tn_type_name(type->kind));
}

tn_rc tn_value_parse(const struct tn_type *type, enum tn_epoch epoch, struct tn_bytes text,
                     struct tn_buf *scratch, struct tn_value *value, struct tn_err *err)
{
    struct tn_value parsed = {0};
    tn_rc rc = parse(type, epoch, text, scratch, &parsed, err);
    if (rc == TN_OK) {
        *value = parsed;
    }
    return rc;
}
