/* InfluxDB's line protocol.
 *
 *     measurement,tag=a\ b field="a \"text\"",n=5i,ok=t 1764547200000000000
 *
 * In names and tags a backslash takes the meaning from a comma, an equals sign or a blank, and in
 * texts from a quote or itself; before anything else it is one. Source: InfluxDB's description of
 * the line protocol, and its parser, models/points.go, where that is silent.
 */
#include <string.h>

#include "ingest/decode_private.h"

typedef const unsigned char *tn_cursor;

/* ---- where a record ends ---- */

/* A text is a field's value, so its quote stands behind an equals sign, and fields behind the first
 * blank. True: the byte ends the record. */
static inline bool pass_byte(struct tn_record_place *p, unsigned char byte)
{
    bool escaped = p->escaped;
    p->escaped = byte == '\\' && !escaped;
    if (p->text) {
        p->text = byte != '"' || escaped;
        p->opens = false;
        return false;
    }
    if (!escaped) {
        p->text = p->fields && byte == '"' && p->opens;
        p->fields = p->fields || byte == ' ';
    }
    p->opens = byte == '=';
    return byte == '\n';
}

static tn_cursor skip_blanks(tn_cursor at, tn_cursor end)
{
    while (at < end && (*at == ' ' || *at == '\t')) {
        at++;
    }
    return at;
}

tn_cursor tn_line_record_end(tn_cursor at, tn_cursor end, struct tn_record_place *place)
{
    tn_cursor newline = memchr(at, '\n', (size_t)(end - at));
    struct tn_record_place p = *place;
    if (!p.text && newline && !memchr(at, '"', (size_t)(newline - at))) {
        return newline + 1;
    }
    if (!p.within) {
        at = skip_blanks(at, end);
        p.comment = at < end && *at == '#';
    }
    if (p.comment) {
        at = newline ? newline : end;
    }
    while (at < end) {
        if (pass_byte(&p, *at++)) {
            return at;
        }
    }
    p.within = true;
    *place = p;
    return NULL;
}

/* ---- names and tags ---- */

static bool is_special(unsigned char byte, bool text)
{
    return text ? byte == '"' || byte == '\\' : byte == ',' || byte == '=' || byte == ' ';
}

/* Writes `raw` without the backslashes that mean nothing themselves; returns the size. `out` may be
 * NULL. */
static size_t unescape(struct tn_bytes raw, bool text, unsigned char *out)
{
    size_t size = 0;
    for (size_t i = 0; i < raw.size; i++) {
        bool pair = raw.data[i] == '\\' && i + 1 < raw.size;
        bool taken = pair && is_special(raw.data[i + 1], text);
        if (pair && !taken) { /* both are themselves */
            if (out) {
                out[size] = raw.data[i];
            }
            size++;
        }
        i += pair;
        if (out) {
            out[size] = raw.data[i];
        }
        size++;
    }
    return size;
}

void tn_line_unescape(struct tn_bytes raw, unsigned char *out)
{
    (void)unescape(raw, true, out);
}

/* In scratch; false when there is no room. */
static bool unescape_here(struct tn_decoder *d, struct tn_bytes *text, bool quoted)
{
    struct tn_buf *scratch = &d->scratch;
    size_t size = unescape(*text, quoted, NULL);
    if (size > scratch->capacity - scratch->size) {
        return false;
    }
    unsigned char *out = scratch->data + scratch->size;
    scratch->size += unescape(*text, quoted, out);
    *text = (struct tn_bytes){out, size};
    return true;
}

/* Up to one of `, = blank` that is not escaped, or the end. NULL: dead. */
static tn_cursor read_name(struct tn_decoder *d, tn_cursor at, struct tn_bytes *name)
{
    tn_cursor first = at;
    bool escapes = false;
    for (at = tn_scan_tag(at); at < d->end && *at == '\\'; at = tn_scan_tag(at)) {
        escapes = true;
        at += at + 1 < d->end ? 2 : 1;
    }
    at = at < d->end ? at : d->end;
    *name = (struct tn_bytes){first, (size_t)(at - first)};
    if (escapes && !unescape_here(d, name, false)) {
        return tn_decode_fail(d, first, "a name or tag is too long to be unescaped");
    }
    return at;
}

/* At the comma, blank or end behind it. */
static tn_cursor read_tag_value(struct tn_decoder *d, tn_cursor at, struct tn_bytes *text)
{
    tn_cursor end = read_name(d, at, text);
    if (!end || end == d->end || *end != '=') {
        return end && text->size == 0 ? tn_decode_fail(d, at, "a tag without a value") : end;
    }
    return tn_decode_fail(d, end, "an '=' in a tag, which needs a backslash");
}

/* A name with its '='. The column, or -1 for what is dropped. The guess is what came behind `last`
 * in the record before. */
static tn_cursor read_key(struct tn_decoder *d, tn_cursor at, uint32_t *last, int32_t *column)
{
    uint32_t guess = d->keys[*last].next;
    const struct tn_decode_key *key = &d->keys[guess];
    bool same = key->mask != 0 && (size_t)(d->end - at) > key->size && at[key->size] == '=' &&
                memcmp(at, key->name, key->size) == 0;
    tn_cursor end = same ? at + key->size : at;
    *column = (int32_t)guess;
    if (!same) {
        struct tn_bytes name;
        end = read_name(d, at, &name);
        if (!end || end == d->end || *end != '=' || name.size == 0) {
            return end ? tn_decode_fail(d, at, "a name with '=' belongs here") : NULL;
        }
        *column = tn_decode_find(d, name);
        if (*column < 0) {
            bool fail = d->spec.unknown == TN_UNKNOWN_FAIL;
            return fail ? tn_decode_fail_unknown(d, at, name) : end + 1;
        }
        d->keys[*last].next = (uint32_t)*column;
    }
    if (!tn_decode_see(&d->rows[0], (uint32_t)*column)) {
        return tn_decode_fail(d, at, "column '%.60s' stands there twice", d->names[*column]);
    }
    *last = (uint32_t)*column;
    return end + 1;
}

/* ---- values ---- */

static bool set_text(struct tn_decoder *d, tn_cursor at, uint32_t column, struct tn_bytes text)
{
    return tn_decode_text_value(d, at, column, text, &d->rows[0].values[column]);
}

/* `at` is behind the opening quote. */
static tn_cursor read_text(struct tn_decoder *d, tn_cursor at, int32_t column)
{
    tn_cursor first = at;
    bool escapes = false;
    uint64_t beyond_ascii = 0;
    for (at = tn_scan_plain(at, &beyond_ascii); at < d->end && *at != '"';
         at = tn_scan_plain(at, &beyond_ascii)) {
        escapes = escapes || *at == '\\';
        at += *at == '\\' && at + 1 < d->end ? 2 : 1;
    }
    if (at >= d->end) {
        return tn_decode_fail(d, first, "the text does not end");
    }
    struct tn_bytes text = {first, (size_t)(at - first)};
    if (column < 0) {
        return at + 1;
    }
    if (escapes && !unescape_here(d, &text, true)) {
        return tn_decode_text_late(d, (uint32_t)column, text, unescape(text, true, NULL),
                                   TN_LATE_LINE, &d->rows[0].values[column])
                   ? at + 1
                   : NULL;
    }
    return set_text(d, first, (uint32_t)column, text) ? at + 1 : NULL;
}

static bool ends_value(const struct tn_decoder *d, tn_cursor at)
{
    return at >= d->end || *at == ',' || *at == ' ';
}

static bool is_true(struct tn_bytes word)
{
    return word.data[0] == 't' || word.data[0] == 'T';
}

static bool is_boolean(struct tn_bytes word)
{
    static const char *const words[] = {"t", "T", "true",  "True",  "TRUE",
                                        "f", "F", "false", "False", "FALSE"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (tn_bytes_equal(word, tn_bytes_of(words[i]))) {
            return true;
        }
    }
    return false;
}

/* 5i, 5u, 1.5, -2e+10; without its letter, which only says what is seen. */
static bool is_number(struct tn_bytes *word)
{
    unsigned char last = word->data[word->size - 1];
    bool whole = last == 'i' || last == 'u';
    bool negative = word->data[0] == '-';
    size_t digits = 0;
    size_t size = word->size - whole;
    for (size_t i = negative; i < size; i++) {
        bool digit = tn_scan_digit(word->data[i]);
        digits += digit;
        if (!digit && (whole || !memchr(".eE+-", word->data[i], 5))) {
            return false;
        }
    }
    bool number = digits > 0 && !(negative && last == 'u');
    word->size = number ? size : word->size;
    return number;
}

static bool set_word(struct tn_decoder *d, tn_cursor at, struct tn_bytes word, uint32_t column)
{
    const struct tn_type *type = &d->columns[column].type;
    const char *found = is_boolean(word) ? "a boolean" : is_number(&word) ? "a number" : NULL;
    if (!found) {
        (void)tn_decode_fail(d, at, "column '%.60s': '%.*s' is no value", d->names[column],
                             (int)(word.size < 40 ? word.size : 40), (const char *)word.data);
        return false;
    }
    bool boolean = found[2] == 'b';
    if (boolean != (type->kind == TN_TYPE_BOOLEAN) || tn_type_textual(type->kind) ||
        tn_type_binary(type->kind)) {
        (void)tn_decode_fail(d, at, "column '%.60s' is %s, and the record has %s", d->names[column],
                             tn_type_name(type->kind), found);
        return false;
    }
    if (boolean) {
        d->rows[0].values[column] = (struct tn_value){.as.i64 = is_true(word)};
        return true;
    }
    return set_text(d, at, column, word);
}

static tn_cursor word_end(const struct tn_decoder *d, tn_cursor at)
{
    while (!ends_value(d, at)) {
        at++;
    }
    return at;
}

/* What is usual for the column is read at once; the rest is looked at as a word. */
static tn_cursor read_value(struct tn_decoder *d, tn_cursor at, int32_t column)
{
    if (at < d->end && *at == '"') {
        return read_text(d, at + 1, column);
    }
    if (column >= 0) {
        struct tn_value *value = &d->rows[0].values[column];
        tn_cursor end = tn_decode_quick_number(&d->columns[column], at, value);
        bool whole = end && *end == 'i' && !memchr(at, '.', (size_t)(end - at));
        if (end && ends_value(d, end + whole)) {
            value->null = false;
            return end + whole;
        }
    }
    tn_cursor end = word_end(d, at);
    struct tn_bytes word = {at, (size_t)(end - at)};
    if (word.size == 0) {
        return tn_decode_fail(d, at, "a field without a value");
    }
    if (column < 0) {
        return is_boolean(word) || is_number(&word) ? end : tn_decode_fail(d, at, "no value");
    }
    return set_word(d, at, word, (uint32_t)column) ? end : NULL;
}

/* ns since 1970 and their like, whose digits the column keeps. NULL: the long way. */
static tn_cursor read_instant(const struct tn_decode_column *c, tn_cursor at,
                              struct tn_value *value)
{
    static const uint32_t nanos_each[] = {
        [TN_EPOCH_MS] = 1000000, [TN_EPOCH_US] = 1000, [TN_EPOCH_NS] = 1};
    static const uint32_t kept[] = {1000000, 1000000, 1000000, 1000000, 100000,
                                    10000,   1000,    100,     10,      1};
    bool timestamp = c->type.kind == TN_TYPE_TIMESTAMP || c->type.kind == TN_TYPE_TIMESTAMP_LTZ;
    if (!timestamp || c->epoch < TN_EPOCH_MS || c->type.precision < 3) {
        return NULL;
    }
    uint64_t number = 0;
    tn_cursor end = tn_scan_digits(at, &number);
    if (end == at || end - at > 19 || number > INT64_MAX) {
        return NULL;
    }
    uint32_t units = 1000000 / nanos_each[c->epoch];
    uint32_t nanos = (uint32_t)(number % units) * nanos_each[c->epoch];
    *value = (struct tn_value){.nanos = nanos, .as.i64 = (int64_t)(number / units)};
    return nanos % kept[c->type.precision] == 0 ? end : NULL;
}

static tn_cursor read_time(struct tn_decoder *d, tn_cursor at)
{
    tn_cursor first = at;
    if (d->time < 0) {
        return d->spec.unknown == TN_UNKNOWN_DROP
                   ? word_end(d, at)
                   : tn_decode_fail(d, at,
                                    "a time, and no column `time`; --time COLUMN=UNIT says "
                                    "which one is meant");
    }
    uint32_t column = (uint32_t)d->time;
    if (!tn_decode_see(&d->rows[0], column)) {
        return tn_decode_fail(d, at, "column '%.60s' stands there twice", d->names[column]);
    }
    tn_cursor end = read_instant(&d->columns[column], at, &d->rows[0].values[column]);
    if (end && ends_value(d, end)) {
        return end;
    }
    at = word_end(d, at);
    struct tn_bytes word = {first, (size_t)(at - first)};
    struct tn_bytes digits = {first + (*first == '-'), word.size - (*first == '-')};
    for (size_t i = 0; i < digits.size; i++) {
        if (!tn_scan_digit(digits.data[i])) {
            return tn_decode_fail(d, first, "the time is no integer");
        }
    }
    return set_text(d, first, column, word) ? at : NULL;
}

/* ---- the record ---- */

static tn_cursor read_measurement(struct tn_decoder *d, tn_cursor at)
{
    tn_cursor first = at;
    bool escapes = false;
    for (at = tn_scan_tag(at); at < d->end && (*at == '\\' || *at == '='); at = tn_scan_tag(at)) {
        escapes = escapes || *at == '\\';
        at += *at == '\\' && at + 1 < d->end ? 2 : 1;
    }
    at = at < d->end ? at : d->end;
    struct tn_bytes name = {first, (size_t)(at - first)};
    if (name.size == 0) {
        return tn_decode_fail(d, first, "a measurement belongs here");
    }
    if (d->measurement < 0) {
        return at;
    }
    if (escapes && !unescape_here(d, &name, false)) {
        return tn_decode_fail(d, first, "the measurement is too long to be unescaped");
    }
    (void)tn_decode_see(&d->rows[0], (uint32_t)d->measurement);
    return set_text(d, first, (uint32_t)d->measurement, name) ? at : NULL;
}

static tn_cursor read_tags(struct tn_decoder *d, tn_cursor at, uint32_t *last)
{
    while (at && at < d->end && *at == ',') {
        int32_t column;
        struct tn_bytes text;
        at = read_key(d, at + 1, last, &column);
        tn_cursor value = at;
        at = at ? read_tag_value(d, at, &text) : NULL;
        if (at && column >= 0 && !set_text(d, value, (uint32_t)column, text)) {
            return NULL;
        }
    }
    return at;
}

static tn_cursor read_fields(struct tn_decoder *d, tn_cursor at, uint32_t *last)
{
    for (;;) {
        int32_t column;
        at = read_key(d, at, last, &column);
        at = at ? read_value(d, at, column) : NULL;
        if (!at || at >= d->end || *at != ',') {
            return at;
        }
        at++;
    }
}

void tn_decode_line(struct tn_decoder *d)
{
    uint32_t last = d->column_count;
    tn_cursor at = skip_blanks(d->start, d->end);
    if (at == d->end || *at == '#') {
        return;
    }
    tn_decode_row_begin(d, &d->rows[0]);
    at = read_measurement(d, at);
    at = at ? read_tags(d, at, &last) : NULL;
    at = at ? read_fields(d, skip_blanks(at, d->end), &last) : NULL;
    if (at && at < d->end && *at != ' ') {
        at = tn_decode_fail(d, at, "',' or a blank belongs here");
    }
    at = at ? skip_blanks(at, d->end) : NULL;
    if (at && at < d->end) {
        at = read_time(d, at);
        at = at ? skip_blanks(at, d->end) : NULL;
    }
    if (at && at < d->end) {
        at = tn_decode_fail(d, at, "something follows the record");
    }
    if (at) {
        (void)tn_decode_row_finish(d, &d->rows[0], TN_ROW_INSERT);
    }
}

/* ---- open ---- */

/* A column `time`, or else the one for which there is a unit. */
static tn_rc find_time(struct tn_decoder *d, struct tn_err *err)
{
    d->time = tn_decode_find(d, tn_bytes_of("time"));
    for (uint32_t i = 0; d->spec.epochs && i < d->column_count; i++) {
        bool named = d->time >= 0 && strcmp(d->names[d->time], "time") == 0;
        if (d->spec.epochs[i] == TN_EPOCH_NONE || named) {
            continue;
        }
        if (d->time >= 0) {
            return tn_err_set(err, TN_INVALID, 0,
                              "line-protocol: is the time to go to '%.60s' or to '%.60s'?",
                              d->names[d->time], d->names[i]);
        }
        d->time = (int32_t)i;
    }
    return TN_OK;
}

tn_rc tn_line_open(struct tn_decoder *d, struct tn_err *err)
{
    d->measurement = tn_decode_find(d, tn_bytes_of("measurement"));
    tn_rc rc = find_time(d, err);
    if (d->time >= 0 && d->columns[d->time].epoch == TN_EPOCH_NONE) {
        struct tn_decode_meaning meaning = {.epoch = TN_EPOCH_NS};
        tn_decode_column_init(d, (uint32_t)d->time, meaning);
    }
    for (uint32_t i = 0; i < d->column_count; i++) {
        if (strpbrk(d->names[i], ",= \\\n")) {
            d->keys[i].mask = 0; /* it never stands in a record as it is */
        }
    }
    return rc;
}
