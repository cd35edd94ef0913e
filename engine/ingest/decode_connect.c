/* The schema beside a payload, by Kafka Connect's JsonConverter. What it says of the columns:
 *
 *     {"type":"struct","fields":[
 *         {"type":"struct","fields":[
 *             {"type":"int64","name":"io.debezium.time.MicroTimestamp","field":"at"},
 *             {"type":"bytes","name":"org.apache.kafka.connect.data.Decimal",
 *              "parameters":{"scale":"2"},"field":"cost"},...],"field":"after"},...]}
 *
 * Every record of a table repeats it, longer than the row itself: so it is read once, and known
 * again by its size and hash.
 */
#include "base/hash.h"
#include "ingest/decode_json.h"
#include "schema/decimal.h"

struct field {
    struct tn_bytes type;
    struct tn_bytes name; /* what the type stands for */
    struct tn_bytes field;
    int64_t scale;
    tn_cursor fields; /* the array, or NULL */
};

static const struct {
    const char *name;
    enum tn_epoch epoch;
    bool days;
} times[] = {
    {"io.debezium.time.Date", TN_EPOCH_NONE, true},
    {"io.debezium.time.Time", TN_EPOCH_MS, false},
    {"io.debezium.time.MicroTime", TN_EPOCH_US, false},
    {"io.debezium.time.NanoTime", TN_EPOCH_NS, false},
    {"io.debezium.time.Timestamp", TN_EPOCH_MS, false},
    {"io.debezium.time.MicroTimestamp", TN_EPOCH_US, false},
    {"io.debezium.time.NanoTimestamp", TN_EPOCH_NS, false},
    {"org.apache.kafka.connect.data.Date", TN_EPOCH_NONE, true},
    {"org.apache.kafka.connect.data.Time", TN_EPOCH_MS, false},
    {"org.apache.kafka.connect.data.Timestamp", TN_EPOCH_MS, false},
};

static bool is(struct tn_bytes text, const char *word)
{
    return tn_bytes_equal(text, tn_bytes_of(word));
}

static tn_cursor read_text(struct tn_decoder *d, tn_cursor at, struct tn_bytes *text)
{
    uint64_t beyond_ascii = 0;
    return *at == '"' ? tn_json_read_string(d, at + 1, text, &beyond_ascii)
                      : tn_json_skip_value(d, at);
}

/* {"scale":"2","connect.decimal.precision":"9"} */
static tn_cursor read_parameters(struct tn_decoder *d, tn_cursor at, int64_t *scale)
{
    if (*at != '{') {
        return tn_json_skip_value(d, at);
    }
    struct tn_json_walk walk = tn_json_walk_into(at);
    while (tn_json_walk_next(d, &walk)) {
        struct tn_bytes name = {0};
        struct tn_bytes text = {0};
        walk.at = tn_json_read_key(d, walk.at, &name);
        walk.at = walk.at ? read_text(d, walk.at, &text) : NULL;
        if (walk.at && is(name, "scale") && text.size > 0 &&
            tn_integer_parse(text, scale) != TN_INTEGER_OK) {
            return tn_decode_fail(d, at, "schema: no scale of a number");
        }
    }
    return walk.at;
}

static tn_cursor read_field_member(struct tn_decoder *d, tn_cursor at, struct field *field)
{
    struct tn_bytes name = {0};
    at = tn_json_read_key(d, at, &name);
    if (!at) {
        return NULL;
    }
    if (is(name, "parameters")) {
        return read_parameters(d, at, &field->scale);
    }
    if (is(name, "fields") && *at == '[') {
        field->fields = at;
    }
    struct tn_bytes ignored;
    return read_text(d, at,
                     is(name, "type")    ? &field->type
                     : is(name, "name")  ? &field->name
                     : is(name, "field") ? &field->field
                                         : &ignored);
}

static tn_cursor read_field(struct tn_decoder *d, tn_cursor at, struct field *field)
{
    *field = (struct field){0};
    if (*at != '{') {
        return tn_json_skip_value(d, at);
    }
    struct tn_json_walk walk = tn_json_walk_into(at);
    while (tn_json_walk_next(d, &walk)) {
        walk.at = read_field_member(d, walk.at, field);
    }
    return walk.at;
}

/* Connect's `bytes` are base64; its strings may be anything, which is clear unless the column is of
 * bytes. */
static void use_type(const struct tn_type *type, const struct field *field,
                     struct tn_decode_meaning *meaning)
{
    bool bytes = is(field->type, "bytes");
    if (bytes && is(field->name, "org.apache.kafka.connect.data.Decimal")) {
        meaning->text = TN_TEXT_DECIMAL;
        meaning->scale = (int32_t)field->scale;
    } else if (bytes && is(field->name, "io.debezium.data.Bits")) {
        meaning->text = TN_TEXT_BITS;
    } else if (bytes && (tn_type_textual(type->kind) || tn_type_binary(type->kind))) {
        meaning->text = TN_TEXT_BASE64;
    } else if (tn_type_binary(type->kind) && is(field->type, "string")) {
        meaning->text = TN_TEXT_UNCLEAR;
    }
}

static void use_field(struct tn_decoder *d, const struct field *field)
{
    int32_t column = field->field.size > 0 ? tn_decode_find(d, field->field) : -1;
    if (column < 0) {
        return;
    }
    struct tn_decode_meaning meaning = tn_decode_meaning_of(d, (uint32_t)column);
    use_type(&d->columns[column].type, field, &meaning);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        if (is(field->name, times[i].name)) {
            meaning.epoch = times[i].epoch;
            meaning.days = times[i].days;
        }
    }
    tn_decode_column_init(d, (uint32_t)column, meaning);
}

static bool use_fields(struct tn_decoder *d, tn_cursor fields)
{
    struct tn_json_walk walk = tn_json_walk_into(fields);
    while (tn_json_walk_next(d, &walk)) {
        struct field field;
        walk.at = read_field(d, walk.at, &field);
        if (walk.at &&
            (field.scale > TN_CONNECT_SCALE_MAX || field.scale < -TN_CONNECT_SCALE_MAX)) {
            walk.at = tn_decode_fail(d, fields, "schema: a scale of %lld", (long long)field.scale);
        }
        if (walk.at) {
            use_field(d, &field);
        }
    }
    return walk.at != NULL;
}

/* The columns are those of `after`, which are those of `before`. */
static bool use_schema(struct tn_decoder *d, tn_cursor at)
{
    struct field envelope;
    tn_cursor columns = NULL;
    if (!read_field(d, at, &envelope)) {
        return false;
    }
    if (!envelope.fields) {
        return true;
    }
    struct tn_json_walk walk = tn_json_walk_into(envelope.fields);
    while (tn_json_walk_next(d, &walk)) {
        struct field field;
        walk.at = read_field(d, walk.at, &field);
        bool after = is(field.field, "after");
        if (walk.at && (after || (is(field.field, "before") && !columns)) && field.fields) {
            columns = field.fields;
        }
    }
    return walk.at && (!columns || use_fields(d, columns));
}

void tn_connect_forget_schema(struct tn_decoder *d)
{
    if (d->connect_size > 0) {
        for (uint32_t i = 0; i < d->column_count; i++) {
            tn_decode_column_init(d, i, tn_decode_meaning_of(d, i));
        }
        d->connect_size = 0;
    }
}

tn_cursor tn_connect_read_schema(struct tn_decoder *d, tn_cursor at)
{
    size_t known = d->connect_size;
    if (known > 0 && known < (size_t)(d->end - at) &&
        tn_hash_64((struct tn_bytes){at, known}, 0) == d->connect_hash) {
        return at + known;
    }
    tn_connect_forget_schema(d);
    tn_cursor end = tn_json_skip_value(d, at);
    if (!end || *at != '{') {
        return end;
    }
    /* Before it is used, so that it is forgotten, too, when half of it is. */
    d->connect_size = (size_t)(end - at);
    d->connect_hash = tn_hash_64((struct tn_bytes){at, d->connect_size}, 0);
    if (!use_schema(d, at)) {
        tn_connect_forget_schema(d);
        return NULL;
    }
    return end;
}
