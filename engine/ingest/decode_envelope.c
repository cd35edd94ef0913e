#include <string.h>

#include "ingest/decode_json.h"

enum part { PART_BEFORE, PART_AFTER, PART_WORD, PART_PAYLOAD, PART_COUNT };

_Static_assert((int)PART_COUNT == (int)TN_DECODE_PARTS, "the decoder has a key for each");

struct envelope {
    bool seen[PART_COUNT];
    bool has[PART_COUNT]; /* and it is not null */
    struct tn_bytes word; /* op, or kind */
    bool inside;          /* the payload */
};

/* `""` is a name that stands for none. */
void tn_decode_parts_init(struct tn_decoder *d)
{
    static const char *const names[][PART_COUNT] = {
        [TN_INPUT_JSON] = {"", "", "", ""},
        [TN_INPUT_CHANGES] = {"", "row", "kind", ""},
        [TN_INPUT_DEBEZIUM] = {"before", "after", "op", "payload"},
        [TN_INPUT_CSV] = {"", "", "", ""},
    };
    for (int i = 0; i < PART_COUNT; i++) {
        tn_decode_key_init(&d->parts[i], names[d->spec.input][i]);
    }
}

/* Which part the key at `at` is, and *value behind it and its colon. A key that is written with
 * escapes is no part. */
static enum part find_part(struct tn_decoder *d, tn_cursor at, tn_cursor *value)
{
    for (int i = 0; i < PART_COUNT; i++) {
        const struct tn_decode_key *key = &d->parts[i];
        if (key->size > 0 && *at == '"' && tn_decode_key_is(key, at + 1, d->end)) {
            at = tn_scan_space(at + key->size + 2);
            *value = *at == ':' ? tn_scan_space(at + 1) : tn_decode_fail(d, at, "':' belongs here");
            return (enum part)i;
        }
    }
    *value = tn_json_skip_key(d, at);
    return PART_COUNT;
}

static tn_cursor read_part(struct tn_decoder *d, tn_cursor at, struct envelope *e, enum part part)
{
    if (e->seen[part]) {
        return tn_decode_fail(d, at, "'%s' stands there twice", d->parts[part].name);
    }
    e->seen[part] = true;
    if (tn_json_is_word(at, "null", 4)) {
        return at + 4;
    }
    e->has[part] = true;
    if (part == PART_WORD) {
        uint64_t beyond_ascii = 0;
        return *at == '"' ? tn_json_read_string(d, at + 1, &e->word, &beyond_ascii)
                          : tn_decode_fail(d, at, "'%s' is no string", d->parts[part].name);
    }
    if (*at != '{') {
        return tn_decode_fail(d, at, "'%s' is no object", d->parts[part].name);
    }
    return tn_json_read_row(d, at + 1, &d->rows[part == PART_AFTER]);
}

/* `payload` is entered, up to behind its brace with *opened, instead of read by a call of its own:
 * its members then are those of the record. */
static tn_cursor read_envelope_member(struct tn_decoder *d, tn_cursor at, struct envelope *e,
                                      bool *opened)
{
    tn_cursor value = NULL;
    enum part part = find_part(d, at, &value);
    if (!value) {
        return NULL;
    }
    if (part == PART_PAYLOAD && !e->inside && !e->seen[part] && *value == '{') {
        e->inside = true;
        e->seen[part] = true;
        e->has[part] = true;
        *opened = true;
        return value + 1;
    }
    if (part == PART_COUNT) {
        bool strict = d->spec.input == TN_INPUT_CHANGES && d->spec.unknown == TN_UNKNOWN_FAIL;
        return strict ? tn_decode_fail(d, at, "only 'kind' and 'row' belong here")
                      : tn_json_skip_value(d, value);
    }
    return read_part(d, value, e, part);
}

/* Behind a member: behind the braces that close here, with *done when the record's own was among
 * them. */
static tn_cursor close_envelope(struct tn_decoder *d, tn_cursor at, struct envelope *e, bool *done)
{
    at = tn_scan_space(at);
    if (*at == '}' && e->inside) {
        e->inside = false;
        at = tn_scan_space(at + 1);
    }
    *done = *at == '}';
    return *at == '}' || *at == ',' ? at + 1 : tn_decode_fail(d, at, "',' or '}' belongs here");
}

/* `at` is behind the record's brace. */
static bool read_envelope(struct tn_decoder *d, tn_cursor at, struct envelope *e)
{
    bool done = false;
    bool opened = true; /* just behind a brace: an empty object may end here */
    while (at && !done) {
        at = tn_scan_space(at);
        if (!opened || *at != '}') {
            opened = false;
            at = read_envelope_member(d, at, e, &opened);
        } else {
            opened = false;
        }
        if (at && !opened) {
            at = close_envelope(d, at, e, &done);
        }
    }
    return at && tn_json_at_end(d, at);
}

void tn_decode_changes(struct tn_decoder *d)
{
    struct envelope e = {0};
    enum tn_row_kind kind;
    tn_cursor at = tn_scan_space(d->start);
    if (*at != '{') {
        (void)tn_decode_fail(d, at, "an object belongs here");
        return;
    }
    if (!read_envelope(d, at + 1, &e)) {
        return;
    }
    if (!e.has[PART_WORD] || !tn_row_kind_parse(e.word, &kind)) {
        (void)tn_decode_fail(d, NULL, "'kind' has to be +I, -U, +U or -D");
    } else if (!e.has[PART_AFTER]) {
        (void)tn_decode_fail(d, NULL, "there is no 'row'");
    } else {
        (void)tn_decode_row_finish(d, &d->rows[1], kind);
    }
}

static void finish_part(struct tn_decoder *d, const struct envelope *e, enum part part,
                        enum tn_row_kind kind)
{
    if (!e->has[part]) {
        (void)tn_decode_fail(d, NULL, "op '%.*s' needs '%s'", (int)e->word.size,
                             (const char *)e->word.data, d->parts[part].name);
        return;
    }
    (void)tn_decode_row_finish(d, &d->rows[part == PART_AFTER], kind);
}

static void finish_debezium(struct tn_decoder *d, const struct envelope *e)
{
    unsigned char op = e->word.size == 1 ? e->word.data[0] : 0;
    switch (op) {
    case 'c':
    case 'r':
        finish_part(d, e, PART_AFTER, TN_ROW_INSERT);
        return;
    case 'u':
        if (e->has[PART_BEFORE]) {
            finish_part(d, e, PART_BEFORE, TN_ROW_UPDATE_BEFORE);
        }
        if (!d->decoded->dead) {
            finish_part(d, e, PART_AFTER, TN_ROW_UPDATE_AFTER);
        }
        return;
    case 'd':
        finish_part(d, e, PART_BEFORE, TN_ROW_DELETE);
        return;
    case 't':
        (void)tn_decode_fail(d, NULL, "op 't': a truncate is no row, and is not applied");
        return;
    case 'm':
        (void)tn_decode_fail(d, NULL, "op 'm': a message is no row");
        return;
    default:
        (void)tn_decode_fail(d, NULL, "op '%.*s' is none of c, r, u, d",
                             (int)(e->word.size < 20 ? e->word.size : 20),
                             e->word.size ? (const char *)e->word.data : "");
    }
}

void tn_decode_debezium(struct tn_decoder *d)
{
    struct envelope e = {0};
    tn_cursor at = tn_scan_space(d->start);
    if (tn_json_is_word(at, "null", 4)) {
        (void)tn_json_at_end(d, at + 4);
        return;
    }
    if (*at != '{') {
        (void)tn_decode_fail(d, at, "an object belongs here");
        return;
    }
    if (!read_envelope(d, at + 1, &e)) {
        return;
    }
    bool tombstone = e.seen[PART_PAYLOAD] && !e.has[PART_PAYLOAD];
    if (!tombstone) {
        finish_debezium(d, &e);
    }
}
