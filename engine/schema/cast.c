#include "schema/cast.h"

#include "schema/cast_private.h"
#include "schema/decimal.h"

/* ---- ends in a text or in bytes ---- */

/* Java: BinaryString.numBytesForFirstByte */
static size_t sequence_size(unsigned char first)
{
    if (first >= 0xf0 && first < 0xf8) {
        return 4;
    }
    if (first >= 0xe0 && first < 0xf0) {
        return 3;
    }
    return first >= 0xc2 && first < 0xe0 ? 2 : 1;
}

/* Cuts a text to its first `limit` characters; returns how many it has then. */
static uint32_t cut_characters(struct tn_bytes *text, uint32_t limit)
{
    size_t at = 0;
    uint32_t count = 0;
    while (at < text->size && count < limit) {
        at += sequence_size(text->data[at]);
        count++;
    }
    text->size = at < text->size ? at : text->size;
    return count;
}

/* Java: BinaryStringUtils.toCharacterString */
static bool end_in_text(const struct tn_cast *cast, struct tn_bytes text, struct tn_cast_out *out)
{
    uint32_t length = (uint32_t)cast->to.length;
    bool padded = cast->to.kind == TN_TYPE_CHAR;
    if (padded || text.size > length) {
        uint32_t count = cut_characters(&text, length);
        out->pad_size = padded ? length - count : 0;
    }
    out->value.as.bytes = text;
    return true;
}

/* Java: BinaryStringUtils.toBinaryString */
static bool end_in_binary(const struct tn_cast *cast, struct tn_bytes bytes,
                          struct tn_cast_out *out)
{
    uint32_t length = (uint32_t)cast->to.length;
    if (bytes.size > length) {
        bytes.size = length;
    }
    out->pad_size = cast->to.kind == TN_TYPE_BINARY ? length - (uint32_t)bytes.size : 0;
    out->value.as.bytes = bytes;
    return true;
}

static struct tn_buf text_of(struct tn_cast_out *out)
{
    struct tn_buf buf;
    tn_buf_init(&buf, out->text, sizeof out->text);
    return buf;
}

static bool text_to_text(const struct tn_cast *cast, const struct tn_value *from,
                         struct tn_cast_out *out)
{
    return end_in_text(cast, from->as.bytes, out);
}

static bool bytes_to_binary(const struct tn_cast *cast, const struct tn_value *from,
                            struct tn_cast_out *out)
{
    return end_in_binary(cast, from->as.bytes, out);
}

/* Neither cut nor padded, unlike all others. Java: BinaryToStringCastRule */
static bool binary_to_text(const struct tn_cast *cast, const struct tn_value *from,
                           struct tn_cast_out *out)
{
    (void)cast;
    out->value.as.bytes = from->as.bytes;
    return true;
}

/* Whatever has one text: what Java's toString of it gives. */
static bool number_to_text(const struct tn_cast *cast, const struct tn_value *from,
                           struct tn_cast_out *out)
{
    struct tn_buf buf = text_of(out);
    if (cast->from.kind == TN_TYPE_FLOAT) {
        tn_float_format_java(&buf, (float)from->as.f64);
    } else if (cast->from.kind == TN_TYPE_DOUBLE) {
        tn_double_format_java(&buf, from->as.f64);
    } else {
        tn_value_format_text(&cast->from, from, &buf);
    }
    return end_in_text(cast, tn_buf_bytes(&buf), out);
}

/* ---- numbers ---- */

/* The low bits. */
static int64_t narrow(enum tn_type_kind kind, int64_t value)
{
    switch ((int)kind) {
    case TN_TYPE_TINYINT:
        return (int8_t)value;
    case TN_TYPE_SMALLINT:
        return (int16_t)value;
    case TN_TYPE_INT:
        return (int32_t)value;
    default:
        return value;
    }
}

static bool integer_to_integer(const struct tn_cast *cast, const struct tn_value *from,
                               struct tn_cast_out *out)
{
    out->value.as.i64 = narrow(cast->to.kind, from->as.i64);
    return true;
}

static bool integer_to_boolean(const struct tn_cast *cast, const struct tn_value *from,
                               struct tn_cast_out *out)
{
    (void)cast;
    out->value.as.i64 = from->as.i64 != 0;
    return true;
}

static bool integer_to_float(const struct tn_cast *cast, const struct tn_value *from,
                             struct tn_cast_out *out)
{
    out->value.as.f64 = cast->to.kind == TN_TYPE_FLOAT ? (double)(float)from->as.i64 /* not twice */
                                                       : (double)from->as.i64;
    return true;
}

static bool float_to_float(const struct tn_cast *cast, const struct tn_value *from,
                           struct tn_cast_out *out)
{
    out->value.as.f64 = cast->to.kind == TN_TYPE_FLOAT ? (double)(float)from->as.f64 : from->as.f64;
    return true;
}

static int64_t saturate(double value, double min, double max, int64_t least, int64_t most)
{
    if (value != value) {
        return 0;
    }
    return value <= min ? least : value >= max ? most : (int64_t)value;
}

/* Java: BIGINT saturates, all others saturate at INT and keep the low bits of that. */
static bool float_to_integer(const struct tn_cast *cast, const struct tn_value *from,
                             struct tn_cast_out *out)
{
    double value = from->as.f64;
    int64_t whole = cast->to.kind == TN_TYPE_BIGINT
                        ? saturate(value, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX)
                        : saturate(value, -0x1p31, 0x1p31 - 1, INT32_MIN, INT32_MAX);
    out->value.as.i64 = narrow(cast->to.kind, whole);
    return true;
}

/* What does not fit is NULL. Java: Decimal.fromBigDecimal */
static bool end_in_decimal(const struct tn_cast *cast, struct tn_bytes text,
                           struct tn_cast_out *out)
{
    enum tn_decimal_rounded rounded = tn_decimal_round(&cast->to, text, &out->value.as.i128);
    out->value.null = rounded == TN_DECIMAL_TOO_LARGE;
    return rounded != TN_DECIMAL_NONE;
}

static bool integer_to_decimal(const struct tn_cast *cast, const struct tn_value *from,
                               struct tn_cast_out *out)
{
    struct tn_buf buf = text_of(out);
    tn_integer_format(&buf, from->as.i64);
    return end_in_decimal(cast, tn_buf_bytes(&buf), out);
}

/* By way of Double.toString, as BigDecimal.valueOf does; also for a FLOAT. NaN and Infinity are no
 * numbers there. */
static bool float_to_decimal(const struct tn_cast *cast, const struct tn_value *from,
                             struct tn_cast_out *out)
{
    struct tn_buf buf = text_of(out);
    tn_double_format_java(&buf, from->as.f64);
    return end_in_decimal(cast, tn_buf_bytes(&buf), out);
}

static struct tn_bytes decimal_text(const struct tn_cast *cast, const struct tn_value *from,
                                    struct tn_cast_out *out)
{
    struct tn_buf buf = text_of(out);
    tn_decimal_format(&buf, from->as.i128, cast->from.scale);
    return tn_buf_bytes(&buf);
}

static bool decimal_to_decimal(const struct tn_cast *cast, const struct tn_value *from,
                               struct tn_cast_out *out)
{
    return end_in_decimal(cast, decimal_text(cast, from, out), out);
}

/* Towards zero, then the low bits of what may have 128. Java: BigDecimal.longValue */
static bool decimal_to_integer(const struct tn_cast *cast, const struct tn_value *from,
                               struct tn_cast_out *out)
{
    struct tn_bytes text = decimal_text(cast, from, out);
    bool negative = text.data[0] == '-';
    uint64_t low = 0;
    for (size_t i = negative; i < text.size && text.data[i] != '.'; i++) {
        low = low * 10 + (uint64_t)(text.data[i] - '0');
    }
    out->value.as.i64 = narrow(cast->to.kind, (int64_t)(negative ? 0 - low : low));
    return true;
}

enum { COMPACT_PRECISION = 18 }; /* Java: Decimal keeps up to so many digits in a long */

/* Java: DecimalUtils.doubleValue. The compact way rounds twice above 2^53. */
static bool decimal_to_float(const struct tn_cast *cast, const struct tn_value *from,
                             struct tn_cast_out *out)
{
    double value = 0;
    if (cast->from.precision <= COMPACT_PRECISION) {
        double power = 1;
        for (uint32_t i = 0; i < cast->from.scale; i++) {
            power *= 10; /* exact below 10^23 */
        }
        value = (double)(int64_t)from->as.i128.low / power;
    } else if (!tn_double_parse(decimal_text(cast, from, out), &value)) {
        return false;
    }
    out->value.as.f64 = cast->to.kind == TN_TYPE_FLOAT ? (double)(float)value : value;
    return true;
}

/* ---- which cast it is ---- */

#define KIND(name) (UINT32_C(1) << TN_TYPE_##name)

enum {
    INTEGERS = KIND(TINYINT) | KIND(SMALLINT) | KIND(INT) | KIND(BIGINT),
    FLOATS = KIND(FLOAT) | KIND(DOUBLE),
    TEXTS = KIND(CHAR) | KIND(VARCHAR),
    BINARIES = KIND(BINARY) | KIND(VARBINARY),
    TIMESTAMPS = KIND(TIMESTAMP) | KIND(TIMESTAMP_LTZ),
};

struct rule {
    uint32_t from;
    uint32_t to;
    bool (*apply)(const struct tn_cast *cast, const struct tn_value *from, struct tn_cast_out *out);
    bool string_only; /* not to a VARCHAR(n) */
};

/* Java: CastExecutors, and what each rule's `create` doesn't leave out. */
static const struct rule rules[] = {
    {KIND(BOOLEAN) | INTEGERS, INTEGERS, integer_to_integer, false},
    {KIND(BOOLEAN) | INTEGERS, FLOATS, integer_to_float, false},
    {KIND(BOOLEAN) | INTEGERS, KIND(DECIMAL), integer_to_decimal, false},
    {INTEGERS, KIND(BOOLEAN), integer_to_boolean, false},
    {FLOATS, INTEGERS, float_to_integer, false},
    {FLOATS, FLOATS, float_to_float, false},
    {FLOATS, KIND(DECIMAL), float_to_decimal, false},
    {KIND(DECIMAL), INTEGERS, decimal_to_integer, false},
    {KIND(DECIMAL), FLOATS, decimal_to_float, false},
    {KIND(DECIMAL), KIND(DECIMAL), decimal_to_decimal, false},
    {KIND(BOOLEAN) | INTEGERS | FLOATS | KIND(DECIMAL), TEXTS, number_to_text, false},
    {TEXTS, TEXTS, text_to_text, false},
    {TEXTS | BINARIES, BINARIES, bytes_to_binary, false},
    {BINARIES, TEXTS, binary_to_text, false},
    {TEXTS, KIND(BOOLEAN), tn_cast_text_to_boolean, false},
    {TEXTS, INTEGERS, tn_cast_text_to_integer, false},
    {TEXTS, FLOATS, tn_cast_text_to_float, false},
    {TEXTS, KIND(DECIMAL), tn_cast_text_to_decimal, false},
    {TEXTS, KIND(DATE), tn_cast_text_to_date, false},
    {TEXTS, KIND(TIME), tn_cast_text_to_time, false},
    {TEXTS, TIMESTAMPS, tn_cast_text_to_timestamp, false},
    {KIND(DATE), KIND(VARCHAR), tn_cast_date_to_text, true},
    {KIND(TIME), KIND(VARCHAR), tn_cast_time_to_text, true},
    {TIMESTAMPS, KIND(VARCHAR), tn_cast_timestamp_to_text, true},
    {TIMESTAMPS, TIMESTAMPS, tn_cast_timestamp_to_timestamp, false},
    {TIMESTAMPS, KIND(DATE), tn_cast_timestamp_to_date, false},
    {TIMESTAMPS, KIND(TIME), tn_cast_timestamp_to_time, false},
    {TIMESTAMPS, KIND(INT) | KIND(BIGINT), tn_cast_timestamp_to_seconds, false},
    {KIND(INT) | KIND(BIGINT), TIMESTAMPS, tn_cast_seconds_to_timestamp, false},
    {KIND(DATE), TIMESTAMPS, tn_cast_date_to_timestamp, false},
    {KIND(TIME), TIMESTAMPS, tn_cast_time_to_timestamp, false},
};

bool tn_cast_needed(const struct tn_type *from, const struct tn_type *to)
{
    return from->kind != to->kind || from->precision != to->precision || from->scale != to->scale ||
           from->length != to->length;
}

bool tn_cast_find(const struct tn_type *from, const struct tn_type *to, struct tn_cast *cast)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const struct rule *rule = &rules[i];
        bool kinds = (rule->from >> from->kind & 1) && (rule->to >> to->kind & 1);
        if (kinds && (!rule->string_only || to->length == TN_LENGTH_MAX)) {
            *cast = (struct tn_cast){rule->apply, *from, *to};
            return true;
        }
    }
    return false;
}
