#include "ingest/decode_envelope.h"

#include <string.h>

_Static_assert((int)TN_PART_COUNT == (int)TN_DECODE_PARTS, "the decoder has a key for each");

/* `""` is a name that stands for none. */
static const char *const part_names[][TN_PART_COUNT] = {
    [TN_INPUT_JSON] = {"", "", "", "", "", ""},
    [TN_INPUT_CHANGES] = {"", "row", "kind", "", "", ""},
    [TN_INPUT_DEBEZIUM] = {"before", "after", "op", "payload", "", "schema"},
    [TN_INPUT_CSV] = {"", "", "", "", "", ""},
    [TN_INPUT_CANAL] = {"old", "data", "type", "", "isDdl", ""},
    [TN_INPUT_MAXWELL] = {"old", "data", "type", "", "", ""},
    [TN_INPUT_LINE] = {"", "", "", "", "", ""},
};

/* Paimon: CanalRecordParser, MaxwellRecordParser; CREATE: Flink's CanalJsonDeserializationSchema;
 * Maxwell's words for what is no row: its documentation of the format. */
static const struct {
    enum tn_input input;
    enum tn_change change;
    const char *word;
} words[] = {
    {TN_INPUT_DEBEZIUM, TN_CHANGE_INSERT, "c"},
    {TN_INPUT_DEBEZIUM, TN_CHANGE_INSERT, "r"},
    {TN_INPUT_DEBEZIUM, TN_CHANGE_UPDATE, "u"},
    {TN_INPUT_DEBEZIUM, TN_CHANGE_DELETE, "d"},
    {TN_INPUT_DEBEZIUM, TN_CHANGE_TRUNCATE, "t"},
    {TN_INPUT_DEBEZIUM, TN_CHANGE_MESSAGE, "m"},
    {TN_INPUT_CANAL, TN_CHANGE_INSERT, "INSERT"},
    {TN_INPUT_CANAL, TN_CHANGE_INSERT, "ROW"},
    {TN_INPUT_CANAL, TN_CHANGE_UPDATE, "UPDATE"},
    {TN_INPUT_CANAL, TN_CHANGE_DELETE, "DELETE"},
    {TN_INPUT_CANAL, TN_CHANGE_NONE, "CREATE"},
    {TN_INPUT_CANAL, TN_CHANGE_TRUNCATE, "TRUNCATE"},
    {TN_INPUT_MAXWELL, TN_CHANGE_INSERT, "insert"},
    {TN_INPUT_MAXWELL, TN_CHANGE_INSERT, "bootstrap-insert"},
    {TN_INPUT_MAXWELL, TN_CHANGE_UPDATE, "update"},
    {TN_INPUT_MAXWELL, TN_CHANGE_DELETE, "delete"},
    {TN_INPUT_MAXWELL, TN_CHANGE_NONE, "bootstrap-start"},
    {TN_INPUT_MAXWELL, TN_CHANGE_NONE, "bootstrap-complete"},
    {TN_INPUT_MAXWELL, TN_CHANGE_NONE, "table-create"},
    {TN_INPUT_MAXWELL, TN_CHANGE_NONE, "table-alter"},
    {TN_INPUT_MAXWELL, TN_CHANGE_NONE, "table-drop"},
    {TN_INPUT_MAXWELL, TN_CHANGE_NONE, "database-create"},
    {TN_INPUT_MAXWELL, TN_CHANGE_NONE, "database-alter"},
    {TN_INPUT_MAXWELL, TN_CHANGE_NONE, "database-drop"},
};

void tn_decode_parts_init(struct tn_decoder *d)
{
    for (int i = 0; i < TN_PART_COUNT; i++) {
        tn_decode_key_init(&d->parts[i], part_names[d->spec.input][i]);
    }
}

static enum tn_change change_of(enum tn_input input, struct tn_bytes word)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (words[i].input == input && tn_bytes_equal(word, tn_bytes_of(words[i].word))) {
            return words[i].change;
        }
    }
    return TN_CHANGE_UNKNOWN;
}

void tn_envelope_fill_before(struct tn_decoder *d)
{
    struct tn_decode_row *before = &d->rows[0];
    const struct tn_decode_row *after = &d->rows[1];
    for (uint32_t word = 0; word < (d->column_count + 63) / 64; word++) {
        uint64_t missing = after->seen[word] & ~before->seen[word];
        for (; missing; missing &= missing - 1) {
            uint32_t column = word * 64 + (uint32_t)__builtin_ctzll(missing);
            before->values[column] = after->values[column];
            before->any_null |= after->values[column].null;
            (void)tn_decode_see(before, column);
        }
    }
}

/* Which part the key at `at` is, and *value behind it and its colon. A key that is written with
 * escapes is no part. */
static enum tn_part find_part(struct tn_decoder *d, tn_cursor at, tn_cursor *value)
{
    for (int i = 0; i < TN_PART_COUNT; i++) {
        const struct tn_decode_key *key = &d->parts[i];
        if (key->size > 0 && *at == '"' && tn_decode_key_is(key, at + 1, d->end)) {
            at = tn_scan_space(at + key->size + 2);
            *value = *at == ':' ? tn_scan_space(at + 1) : tn_decode_fail(d, at, "':' belongs here");
            return (enum tn_part)i;
        }
    }
    *value = tn_json_skip_key(d, at);
    return TN_PART_COUNT;
}

static tn_cursor read_word(struct tn_decoder *d, tn_cursor at, struct tn_envelope *e)
{
    uint64_t beyond_ascii = 0;
    if (*at != '"') {
        return tn_decode_fail(d, at, "'%s' is no string", d->parts[TN_PART_WORD].name);
    }
    at = tn_json_read_string(d, at + 1, &e->word, &beyond_ascii);
    e->change = at ? change_of(d->spec.input, e->word) : TN_CHANGE_UNKNOWN;
    return at;
}

static tn_cursor read_ddl(struct tn_decoder *d, tn_cursor at, struct tn_envelope *e)
{
    e->ddl = tn_json_is_word(at, "true", 4);
    return tn_json_skip_value(d, at);
}

/* Connect's converter puts the schema first, but members have no order: where it comes later, the
 * record is read again. */
static tn_cursor read_schema(struct tn_decoder *d, tn_cursor at, struct tn_envelope *e)
{
    bool rows = e->seen[TN_PART_BEFORE] || e->seen[TN_PART_AFTER];
    e->schema_late = rows && !e->schema_known;
    return tn_connect_read_schema(d, at);
}

static bool schema_seen(const struct tn_envelope *e)
{
    return e->seen[TN_PART_SCHEMA] || e->schema_known;
}

/* Whether what comes later says how to read a row, or that it is none. */
static bool may_be_no_row(const struct tn_decoder *d, const struct tn_envelope *e)
{
    bool word_decides = d->spec.input == TN_INPUT_CANAL || d->spec.input == TN_INPUT_MAXWELL;
    return (word_decides && !e->seen[TN_PART_WORD]) || (e->inside && !schema_seen(e));
}

static tn_cursor read_row(struct tn_decoder *d, tn_cursor at, struct tn_envelope *e,
                          enum tn_part part)
{
    if (*at != '{') {
        return tn_decode_fail(d, at, "'%s' is no object", d->parts[part].name);
    }
    if (!schema_seen(e)) {
        tn_connect_forget_schema(d);
    }
    tn_cursor end = tn_json_read_row(d, at + 1, &d->rows[part == TN_PART_AFTER]);
    if (!end && may_be_no_row(d, e)) {
        e->failed = true;
        return tn_json_skip_value(d, at);
    }
    return end;
}

/* Of canal's arrays the first element is read at once, for most have no other; those behind it only
 * have to be JSON now. */
static tn_cursor read_rows(struct tn_decoder *d, tn_cursor at, struct tn_envelope *e,
                           enum tn_part part)
{
    if (*at != '[') {
        return tn_decode_fail(d, at, "'%s' is no array", d->parts[part].name);
    }
    at = tn_scan_space(at + 1);
    e->first[part] = at;
    if (*at == ']') {
        return at + 1;
    }
    for (;;) {
        if (*at != '{') {
            return tn_decode_fail(d, at, "an object of '%s' belongs here", d->parts[part].name);
        }
        at = e->row_count[part] == 0 ? read_row(d, at, e, part) : tn_json_skip_value(d, at);
        if (!at) {
            return NULL;
        }
        e->row_count[part]++;
        at = tn_scan_space(at);
        if (*at != ',') {
            return *at == ']' ? at + 1 : tn_decode_fail(d, at, "',' or ']' belongs here");
        }
        at = tn_scan_space(at + 1);
    }
}

static tn_cursor read_part(struct tn_decoder *d, tn_cursor at, struct tn_envelope *e,
                           enum tn_part part)
{
    if (e->seen[part]) {
        return tn_decode_fail(d, at, "'%s' stands there twice", d->parts[part].name);
    }
    e->seen[part] = true;
    if (tn_json_is_word(at, "null", 4)) {
        if (part == TN_PART_SCHEMA) {
            tn_connect_forget_schema(d);
        }
        return at + 4;
    }
    e->has[part] = true;
    switch (part) {
    case TN_PART_WORD:
        return read_word(d, at, e);
    case TN_PART_DDL:
        return read_ddl(d, at, e);
    case TN_PART_SCHEMA:
        return read_schema(d, at, e);
    case TN_PART_BEFORE:
    case TN_PART_AFTER:
    case TN_PART_PAYLOAD:
    case TN_PART_COUNT:
        break;
    }
    if (e->change == TN_CHANGE_NONE) {
        return tn_json_skip_value(d, at);
    }
    return d->spec.input == TN_INPUT_CANAL ? read_rows(d, at, e, part) : read_row(d, at, e, part);
}

/* `payload` is entered, up to behind its brace with *opened, instead of read by a call of its own:
 * its members then are those of the record. */
static tn_cursor read_envelope_member(struct tn_decoder *d, tn_cursor at, struct tn_envelope *e,
                                      bool *opened)
{
    tn_cursor value = NULL;
    enum tn_part part = find_part(d, at, &value);
    if (!value) {
        return NULL;
    }
    if (part == TN_PART_PAYLOAD && !e->inside && !e->seen[part] && *value == '{') {
        e->inside = true;
        e->seen[part] = true;
        e->has[part] = true;
        *opened = true;
        return value + 1;
    }
    if (part == TN_PART_COUNT || (part == TN_PART_SCHEMA && e->inside)) {
        bool strict = d->spec.input == TN_INPUT_CHANGES && d->spec.unknown == TN_UNKNOWN_FAIL;
        return strict ? tn_decode_fail(d, at, "only 'kind' and 'row' belong here")
                      : tn_json_skip_value(d, value);
    }
    return read_part(d, value, e, part);
}

/* Behind a member: behind the braces that close here, with *done when the record's own was among
 * them. */
static tn_cursor close_envelope(struct tn_decoder *d, tn_cursor at, struct tn_envelope *e,
                                bool *done)
{
    at = tn_scan_space(at);
    if (*at == '}' && e->inside) {
        e->inside = false;
        at = tn_scan_space(at + 1);
    }
    *done = *at == '}';
    return *at == '}' || *at == ',' ? at + 1 : tn_decode_fail(d, at, "',' or '}' belongs here");
}

bool tn_json_read_envelope(struct tn_decoder *d, tn_cursor at, struct tn_envelope *e)
{
    if (*at != '{') {
        (void)tn_decode_fail(d, at, "an object belongs here");
        return false;
    }
    at++;
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

void tn_envelope_finish_without_rows(struct tn_decoder *d, const struct tn_envelope *e)
{
    static const char *const wanted[] = {
        [TN_INPUT_DEBEZIUM] = "c, r, u, d",
        [TN_INPUT_CANAL] = "INSERT, UPDATE, DELETE",
        [TN_INPUT_MAXWELL] = "insert, update, delete",
    };
    const char *name = d->parts[TN_PART_WORD].name;
    int size = (int)(e->word.size < 20 ? e->word.size : 20);
    const char *word = size > 0 ? (const char *)e->word.data : "";
    switch (e->change) {
    case TN_CHANGE_NONE:
        d->decoded->skipped = true;
        d->decoded->dead = false; /* what is no row was none */
        d->decoded->reason[0] = 0;
        return;
    case TN_CHANGE_TRUNCATE:
        (void)tn_decode_fail(d, NULL, "%s '%.*s': a truncate is no row, and is not applied", name,
                             size, word);
        return;
    case TN_CHANGE_MESSAGE:
        (void)tn_decode_fail(d, NULL, "%s '%.*s': a message is no row", name, size, word);
        return;
    case TN_CHANGE_UNKNOWN:
    case TN_CHANGE_INSERT:
    case TN_CHANGE_UPDATE:
    case TN_CHANGE_DELETE:
        break;
    }
    (void)tn_decode_fail(d, NULL, "%s '%.*s' is none of %s", name, size, word,
                         wanted[d->spec.input]);
}
