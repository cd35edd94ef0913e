#include <string.h>

#include "ingest/decode_private.h"

/* A quote opens a quoted field only where a field begins, or doubled behind one that just closed;
 * elsewhere it is an error, and hides no line end. */
const unsigned char *tn_csv_record_end(const unsigned char *at, const unsigned char *end,
                                       struct tn_record_place *place)
{
    const unsigned char *newline = memchr(at, '\n', (size_t)(end - at));
    if (!place->text && newline && !memchr(at, '"', (size_t)(newline - at))) {
        return newline + 1;
    }
    bool text = place->text;
    bool opens = place->opens || !place->within;
    for (; at < end; at++) {
        if (text) {
            const unsigned char *quote = memchr(at, '"', (size_t)(end - at));
            at = quote ? quote : end - 1;
            text = !quote;
            opens = true;
            continue;
        }
        if (*at == '\n') {
            return at + 1;
        }
        text = *at == '"' && opens;
        opens = *at == ',';
    }
    *place = (struct tn_record_place){.within = true, .text = text, .opens = opens};
    return NULL;
}

struct csv_field {
    struct tn_bytes text;
    bool quoted;
    bool late;   /* it has doubled quotes, which found no room to be halved */
    size_t size; /* without them */
};

/* Where a field with doubled quotes goes: a record that was copied makes room for itself. */
static unsigned char *room_for(struct tn_decoder *d, const unsigned char *at, size_t size)
{
    struct tn_buf *scratch = &d->scratch;
    if (d->start == scratch->data) {
        return scratch->data + (at - d->start);
    }
    return size <= scratch->capacity - scratch->size ? scratch->data + scratch->size : NULL;
}

static void undouble(struct tn_decoder *d, unsigned char *out, struct csv_field *field)
{
    const unsigned char *at = field->text.data;
    const unsigned char *end = at + field->text.size;
    field->text = (struct tn_bytes){out, 0};
    while (at < end) {
        unsigned char byte = *at;
        at += byte == '"' ? 2 : 1;
        out[field->text.size++] = byte;
    }
    if (d->start != d->scratch.data) {
        d->scratch.size += field->text.size;
    }
}

/* `at` is behind the opening quote. */
static const unsigned char *read_quoted(struct tn_decoder *d, const unsigned char *at,
                                        struct csv_field *field)
{
    const unsigned char *first = at;
    size_t doubled = 0;
    for (;;) {
        at = memchr(at, '"', (size_t)(d->end - at));
        if (!at) {
            return tn_decode_fail(d, first, "the quote does not end");
        }
        if (at + 1 == d->end || at[1] != '"') {
            break;
        }
        doubled++;
        at += 2;
    }
    *field = (struct csv_field){.text = {first, (size_t)(at - first)}, .quoted = true};
    if (doubled > 0) {
        field->size = field->text.size - doubled;
        unsigned char *out = room_for(d, first, field->size);
        field->late = !out;
        if (out) {
            undouble(d, out, field);
        }
    }
    return at + 1;
}

/* Up to the comma or end behind the field. */
static const unsigned char *read_field(struct tn_decoder *d, const unsigned char *at,
                                       struct csv_field *field)
{
    if (at < d->end && *at == '"') {
        at = read_quoted(d, at + 1, field);
        return !at || at == d->end || *at == ','
                   ? at
                   : tn_decode_fail(d, at, "a field goes on behind its quotes");
    }
    const unsigned char *first = at;
    at = tn_scan_field(at);
    if (at > d->end) {
        at = d->end; /* a line ends in \r\n */
    } else if (*at == '"') {
        return tn_decode_fail(d, at, "a quote inside a field without quotes");
    }
    *field = (struct csv_field){.text = {first, (size_t)(at - first)}};
    return at;
}

/* Behind a value that is read where it lies, or NULL: what follows it stops a token. */
static const unsigned char *quick_value(const struct tn_decode_column *c, const unsigned char *at,
                                        struct tn_value *value)
{
    const unsigned char *end;
    int64_t whole = 0;
    bool yes;
    *value = (struct tn_value){0};
    switch (c->quick) {
    case TN_QUICK_INTEGER:
    case TN_QUICK_EPOCH_MS:
        end = tn_scan_integer(at, &whole);
        value->as.i64 = whole;
        return whole >= c->low && whole <= c->high ? end : NULL;
    case TN_QUICK_DOUBLE:
        return tn_scan_double(at, &value->as.f64);
    case TN_QUICK_BOOLEAN:
        yes = memcmp(at, "true", 4) == 0;
        value->as.i64 = yes;
        return yes ? at + 4 : memcmp(at, "false", 5) == 0 ? at + 5 : NULL;
    case TN_QUICK_EPOCH_US:
    case TN_QUICK_TEXT:
    case TN_QUICK_FLOAT:
    case TN_QUICK_NONE:
        break;
    }
    return NULL;
}

/* The comma or end behind a field that is no more than such a value; else NULL, and it is read in
 * two steps. */
static const unsigned char *set_quick(struct tn_decoder *d, uint32_t column,
                                      const unsigned char *at)
{
    struct tn_decode_row *row = &d->rows[0];
    const unsigned char *end = quick_value(&d->columns[column], at, &row->values[column]);
    if (!end || end > d->end || (end < d->end && *end != ',')) {
        return NULL;
    }
    (void)tn_decode_see(row, column);
    return end;
}

static bool set_column(struct tn_decoder *d, uint32_t column, const struct csv_field *field)
{
    struct tn_decode_row *row = &d->rows[0];
    struct tn_value *value = &row->values[column];
    (void)tn_decode_see(row, column);
    if (field->late) {
        return tn_decode_text_late(d, column, field->text, field->size, TN_LATE_DOUBLED, value);
    }
    if (field->text.size == 0 && !field->quoted) {
        *value = (struct tn_value){.null = true};
        row->any_null = true;
        return true;
    }
    return tn_decode_text_value(d, field->text.data, column, field->text, value);
}

/* Up to the comma or end behind the field, whose value is its column's; NULL: it has none. */
static const unsigned char *take_field(struct tn_decoder *d, int32_t column,
                                       const unsigned char *at)
{
    struct csv_field field = {0};
    const unsigned char *end = column >= 0 ? set_quick(d, (uint32_t)column, at) : NULL;
    if (end) {
        return end;
    }
    end = read_field(d, at, &field);
    return end && column >= 0 && !set_column(d, (uint32_t)column, &field) ? NULL : end;
}

void tn_decode_csv(struct tn_decoder *d)
{
    const unsigned char *at = d->start;
    tn_decode_row_begin(d, &d->rows[0]);
    for (uint32_t i = 0; i < d->csv_count; i++) {
        at = take_field(d, d->csv_columns[i], at);
        if (!at) {
            return;
        }
        bool more = at < d->end;
        if (more != (i + 1 < d->csv_count)) {
            (void)tn_decode_fail(d, at, "%s fields than the header's %u", more ? "more" : "fewer",
                                 d->csv_count);
            return;
        }
        at += more;
    }
    (void)tn_decode_row_finish(d, &d->rows[0], TN_ROW_INSERT);
}

static tn_rc add_header_name(struct tn_decoder *d, struct tn_bytes name, struct tn_err *err)
{
    int shown = (int)(name.size < 60 ? name.size : 60);
    int32_t column = tn_decode_find(d, name);
    if (column < 0 && d->spec.unknown == TN_UNKNOWN_FAIL) {
        const char *near = tn_nearest_name(name, d->names, d->column_count);
        return tn_err_set(err, TN_INVALID, 0, "csv header: '%.*s' is no column%s%s%s", shown,
                          (const char *)name.data, near ? "; did you mean '" : "", near ? near : "",
                          near ? "'?" : "");
    }
    if (column >= 0 && !tn_decode_see(&d->rows[0], (uint32_t)column)) {
        return tn_err_set(err, TN_INVALID, 0, "csv header: '%.*s' stands there twice", shown,
                          (const char *)name.data);
    }
    if (d->csv_count == d->csv_count_max) {
        return tn_err_set(err, TN_INVALID, 0, "csv header: more than %u names", d->csv_count_max);
    }
    d->csv_columns[d->csv_count++] = column;
    return TN_OK;
}

static tn_rc read_header(struct tn_decoder *d, struct tn_err *err)
{
    d->csv_count = 0;
    tn_decode_row_begin(d, &d->rows[0]);
    for (const unsigned char *at = d->start;; at++) {
        struct csv_field field = {0};
        at = read_field(d, at, &field);
        if (!at) {
            return tn_err_set(err, TN_INVALID, 0, "csv header: %s", d->decoded->reason);
        }
        tn_rc rc = add_header_name(d, field.text, err);
        if (rc || at == d->end) {
            return rc;
        }
    }
}

tn_rc tn_csv_header(struct tn_decoder *d, struct tn_err *err)
{
    struct tn_decoded failure = {0};
    d->decoded = &failure;
    tn_rc rc = read_header(d, err);
    d->csv_header_known = rc == TN_OK;
    d->decoded = NULL;
    return rc;
}
