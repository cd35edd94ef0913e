/* debezium: with and without the schema of Kafka Connect, which says how to read a value. A writer
 * of the form in the test, vectors of the producers, what users reported, and damage. */
#include "ingest/model.h"

static struct model m;
static unsigned char text[MODEL_RECORD_MAX];
static struct model_row after;
static struct model_row before;

#define SCHEMA(columns)                                                                      \
    "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"struct\",\"fields\":[" columns \
    "],\"optional\":true,\"name\":\"s.Value\",\"field\":\"before\"},{\"type\":\"struct\","   \
    "\"fields\":[" columns "],\"optional\":true,\"name\":\"s.Value\",\"field\":\"after\"},{" \
    "\"type\":\"string\",\"field\":\"op\"}],"                                                \
    "\"optional\":false,\"name\":\"s.Envelope\",\"version\":1},\"payload\":"
#define COLUMN(type, name, field)                               \
    "{\"type\":\"" type "\",\"optional\":true,\"name\":\"" name \
    "\",\"version\":1,\"field\":\"" field "\"}"
#define DECIMAL(scale, field)                                                                   \
    "{\"type\":\"bytes\",\"optional\":true,\"name\":\"org.apache.kafka.connect.data.Decimal\"," \
    "\"version\":1,\"parameters\":{\"scale\":\"" scale                                          \
    "\",\"connect.decimal.precision\":\"20\"},\"field\":\"" field "\"}"
#define PLAIN(type, field) "{\"type\":\"" type "\",\"optional\":true,\"field\":\"" field "\"}"
#define INSERT(values)     "{\"before\":null,\"after\":{\"k\":1," values "},\"op\":\"c\"}"

static const char *const cases[][2] = {
    /* Paimon's own test data: MySQL's types by Debezium 1.9 */
    {SCHEMA(COLUMN("int32", "io.debezium.time.Date", "a_day") "," COLUMN(
         "int64", "io.debezium.time.Timestamp",
         "at_ms") "," COLUMN("int64", "io.debezium.time.MicroTimestamp",
                             "at_us") "," COLUMN("string", "io.debezium.time.ZonedTimestamp",
                                                 "zoned") "," COLUMN("int64",
                                                                     "io.debezium.time.MicroTime",
                                                                     "clock") "," COLUMN("bytes",
                                                                                         "io."
                                                                                         "debezium."
                                                                                         "data."
                                                                                         "Bits",
                                                                                         "raw"))
         INSERT("\"a_day\":19439,\"at_ms\":1679581805123,\"at_us\":1679581805123456,\"zoned\":"
                "\"2023-03-23T22:00:10.123456Z\","
                "\"clock\":36803000000,\"raw\":\"xwcAAAAAAAA=\",\"flag\":1") "}",
     "+I {k:1,flag:true,raw:\"00000000000007c7\",at_ms:\"2023-03-23T14:30:05.123000000\","
     "at_us:\"2023-03-23T14:30:05.123456000\",a_day:\"2023-03-23\",clock:\"10:13:23.000\","
     "zoned:\"2023-03-23T22:00:10.123456000Z\"}\n"},
    /* Kafka Connect's times, and ns */
    {SCHEMA(COLUMN("int32", "org.apache.kafka.connect.data.Date", "a_day") "," COLUMN(
         "int64", "org.apache.kafka.connect.data.Timestamp",
         "at_ms") "," COLUMN("int64", "io.debezium.time.NanoTimestamp",
                             "zoned") "," COLUMN("int32", "org.apache.kafka.connect.data.Time",
                                                 "clock"))
         INSERT("\"a_day\":-1,\"at_ms\":-1,\"zoned\":1679581805123456789,\"clock\":86399999") "}",
     "+I {k:1,at_ms:\"1969-12-31T23:59:59.999000000\",a_day:\"1969-12-31\",clock:\"23:59:59.999\","
     "zoned:\"2023-03-23T14:30:05.123456789Z\"}\n"},
    {SCHEMA(COLUMN("int64", "io.debezium.time.NanoTime",
                   "clock") "," COLUMN("string", "io.debezium.time.ZonedTimestamp", "at_us"))
         INSERT("\"clock\":1000000,\"at_us\":\"2023-03-23T15:00:10.5+01:00\"") "}",
     "+I {k:1,at_us:\"2023-03-23T14:00:10.500000000\",clock:\"00:00:00.001\"}\n"},
    {SCHEMA(COLUMN("string", "io.debezium.time.ZonedTime",
                   "clock") "," COLUMN("string", "io.debezium.time.IsoDate", "a_day"))
         INSERT("\"clock\":\"10:13:23.5Z\",\"a_day\":\"2017-09-15Z\"") "}",
     "+I {k:1,a_day:\"2017-09-15\",clock:\"10:13:23.500\"}\n"},
    {SCHEMA(COLUMN("int64", "io.debezium.time.MicroTime", "clock")) INSERT("\"clock\":1") "}",
     "~column 'clock'"},
    {SCHEMA(COLUMN("int64", "io.debezium.time.MicroTime", "clock")) INSERT("\"clock\":-1000") "}",
     "~column 'clock'"},
    {SCHEMA(COLUMN("int64", "io.debezium.time.Timestamp", "a_day"))
         INSERT("\"a_day\":86400000") "}",
     "+I {k:1,a_day:\"1970-01-02\"}\n"},
    {SCHEMA(COLUMN("int64", "io.debezium.time.Timestamp", "a_day"))
         INSERT("\"a_day\":86400001") "}",
     "~not midnight"},
    {SCHEMA(COLUMN("int32", "io.debezium.time.Date", "at_ms")) INSERT("\"at_ms\":5") "}",
     "~no unit is known"},
    /* decimals: risingwavelabs/risingwave#19792. 8700 is 0x21fc */
    {SCHEMA(DECIMAL("2", "cost")) INSERT("\"cost\":\"Ifw=\"") "}", "+I {k:1,cost:\"87.0000\"}\n"},
    {SCHEMA(DECIMAL("4", "cost")) INSERT("\"cost\":\"3gQ=\"") "}", "+I {k:1,cost:\"-0.8700\"}\n"},
    {SCHEMA(DECIMAL("6", "cost")) INSERT("\"cost\":\"Ifw=\"") "}", "+I {k:1,cost:\"0.0087\"}\n"},
    {SCHEMA(DECIMAL("7", "cost")) INSERT("\"cost\":\"Ifw=\"") "}", "~column 'cost'"},
    {SCHEMA(DECIMAL("0", "cost")) INSERT("\"cost\":\"AA==\"") "}", "+I {k:1,cost:\"0.0000\"}\n"},
    {SCHEMA(DECIMAL("-2", "cost")) INSERT("\"cost\":\"BQ==\"") "}", "+I {k:1,cost:\"500.0000\"}\n"},
    {SCHEMA(DECIMAL("2", "cost")) INSERT("\"cost\":87.5") "}", "+I {k:1,cost:\"87.5000\"}\n"},
    {SCHEMA(DECIMAL("2", "cost")) INSERT("\"cost\":\"\"") "}", "~no number in base64"},
    {SCHEMA(DECIMAL("2", "cost")) INSERT("\"cost\":\"87.5\"") "}", "~no number in base64"},
    {SCHEMA(DECIMAL("999", "cost")) INSERT("\"cost\":\"AA==\"") "}", "~schema: a scale of 999"},
    {SCHEMA(DECIMAL("x", "cost")) INSERT("\"cost\":\"AA==\"") "}", "~schema: no scale"},
    {SCHEMA(DECIMAL("0", "big")) INSERT("\"big\":\"f/////////8=\"") "}",
     "+I {k:1,big:9223372036854775807}\n"},
    {SCHEMA(DECIMAL("0", "big")) INSERT("\"big\":\"AP//////////\"") "}", "~does not fit"},
    {SCHEMA(DECIMAL("1", "big")) INSERT("\"big\":\"Ifw=\"") "}", "+I {k:1,big:870}\n"},
    {SCHEMA(DECIMAL("3", "note")) INSERT("\"note\":\"4f1D4Wh6dCOTRq+nDL2rgAifozP9Q4sOHSCH\"") "}",
     "+I {k:1,note:\"-12345678901234567890123456789012345678901234567890123456789012.345\"}\n"},
    {SCHEMA(DECIMAL("2", "a_double")) INSERT("\"a_double\":\"Ifw=\"") "}",
     "+I {k:1,a_double:87.0}\n"},
    {INSERT("\"cost\":{\"scale\":2,\"value\":\"Ifw=\"}"), "+I {k:1,cost:\"87.0000\"}\n"},
    {INSERT("\"cost\":{\"value\":\"Ifw=\", \"scale\":0}"), "+I {k:1,cost:\"8700.0000\"}\n"},
    {INSERT("\"cost\":{\"scale\":2}"), "~an object without 'scale' and 'value'"},
    {INSERT("\"cost\":{\"scale\":201,\"value\":\"Ifw=\"}"), "~no scale of a number"},
    {INSERT("\"cost\":{\"x\":2,\"value\":\"Ifw=\"}"), "~column 'cost' is no object"},
    {INSERT("\"big\":[1]"), "~has an array"},
    {INSERT("\"cost\":\"87.5\""), "+I {k:1,cost:\"87.5000\"}\n"},
    {INSERT("\"cost\":\"Ifw=\""), "~column 'cost'"},
    /* bytes */
    {SCHEMA(PLAIN("bytes", "raw")) INSERT("\"raw\":\"Ynl0ZXM=\"") "}",
     "+I {k:1,raw:\"6279746573\"}\n"},
    {SCHEMA(PLAIN("bytes", "note")) INSERT("\"note\":\"Ynl0ZXM=\"") "}",
     "+I {k:1,note:\"bytes\"}\n"},
    {SCHEMA(PLAIN("bytes", "note")) INSERT("\"note\":\"/w==\"") "}", "~no UTF-8"},
    {SCHEMA(PLAIN("string", "raw")) INSERT("\"raw\":\"00ff\"") "}", "~may be hex or base64"},
    {SCHEMA(COLUMN("bytes", "io.debezium.data.Bits", "big")) INSERT("\"big\":\"xwc=\"") "}",
     "+I {k:1,big:1991}\n"},
    {SCHEMA(COLUMN("bytes", "io.debezium.data.Bits", "small")) INSERT("\"small\":\"/w==\"") "}",
     "+I {k:1,small:255}\n"},
    {INSERT("\"raw\":\"Ynl0ZXM=\""), "+I {k:1,raw:\"6279746573\"}\n"},
    /* without a schema */
    {INSERT("\"a_day\":19439,\"flag\":0"), "+I {k:1,flag:false,a_day:\"2023-03-23\"}\n"},
    {INSERT("\"at_ms\":1679581805123"), "~no unit is known"},
    {INSERT("\"at_ms\":\"2023-03-23T14:30:05.123Z\""),
     "+I {k:1,at_ms:\"2023-03-23T14:30:05.123000000\"}\n"},
    /* the schema behind its payload, and one that is forgotten */
    {"{\"payload\":" INSERT(
         "\"at_ms\":5,\"cost\":\"Ifw=\",\"note\":\"a\\nb\"") ","
                                                             "\"schema\":{\"fields\":[{\"fields\":"
                                                             "[" DECIMAL("4", "cost") "," COLUMN(
                                                                 "int64",
                                                                 "io.debezium.time.MicroTimestamp",
                                                                 "at_ms") "],\"field\":\"before\"}]"
                                                                          "}}",
     "~at byte"},
    {"{\"payload\":" INSERT(
         "\"at_ms\":5000,\"cost\":\"Ifw=\",\"note\":\"a\\nb\"") ","
                                                                "\"schema\":{\"fields\":[{"
                                                                "\"fields\":[" DECIMAL("4", "cost") "," COLUMN(
                                                                    "int64",
                                                                    "io.debezium.time."
                                                                    "MicroTimestamp",
                                                                    "at_ms") "],\"field\":"
                                                                             "\"before\"}]}}"
                                                                             "\n" INSERT("\"at_"
                                                                                         "ms\":"
                                                                                         "5000"),
     "~+I {k:1,cost:\"0.8700\",note:\"a\\nb\",at_ms:\"1970-01-01T00:00:00.005000000\"}\ndead: at "
     "byte 38: column 'at_ms'"},
    {SCHEMA(COLUMN("int64", "io.debezium.time.MicroTimestamp", "at_us"))
         INSERT("\"at_us\":5") "}\n"
                               "{\"schema\":null,\"payload\":" INSERT("\"at_us\":5") "}\n" SCHEMA(
                                   COLUMN("int64", "io.debezium.time.NanoTimestamp", "at_us"))
                                   INSERT("\"at_us\":5000") "}\n",
     "~at_us:\"1970-01-01T00:00:00.000005000\"}\ndead: at byte 63: column 'at_us': '5' is a "
     "number, and no unit"},
    {"{\"schema\":{\"fields\":5},\"payload\":" INSERT("\"a_day\":1") "}",
     "+I {k:1,a_day:\"1970-01-02\"}\n"},
    {"{\"schema\":[1],\"payload\":" INSERT("\"a_day\":1") "}", "+I {k:1,a_day:\"1970-01-02\"}\n"},
    {"{\"schema\":{\"fields\":[5,{\"field\":\"after\",\"fields\":[6]}]},\"payload\":" INSERT(
         "\"a_day\":1") "}",
     "+I {k:1,a_day:\"1970-01-02\"}\n"},
    {"{\"schema\":{},\"schema\":{},\"payload\":{}}", "~'schema' stands there twice"},
    {"{\"payload\":" INSERT("\"no\":1") "}", "~field 'no' is no column"},
    /* apache/paimon#3176, #3113 */
    {"{\"before\":null,\"after\":{\"k\":1,\"note\":\"a\"},\"op\":\"r\"}\n"
     "{\"before\":null,\"after\":{\"k\":1,\"note\":\"b\"},\"op\":\"u\"}\n\n"
     "{\"payload\":{\"before\":{\"k\":1,\"note\":\"b\"},\"after\":null,\"op\":\"d\"}}\nnull\n"
     "{\"schema\":null,\"payload\":null}\n",
     "+I {k:1,note:\"a\"}\n+U {k:1,note:\"b\"}\n-D {k:1,note:\"b\"}\nskipped\nskipped\n"},
};

static void records_give_rows_nothing_or_a_reason(void)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        model_open(&m, TN_INPUT_DEBEZIUM, 0);
        model_check_case(&m, cases[i][0], cases[i][1]);
    }
}

/* ---- a writer ---- */

enum form {
    FORM_PLAIN, /* text, or as JSON has it */
    FORM_DAYS,
    FORM_MS,
    FORM_US,
    FORM_NS,
    FORM_DECIMAL,
    FORM_SCALED,
    FORM_BYTES,
    FORM_BITS,
};

struct choice {
    enum form form;
    const char *type;
    const char *name;
};

struct column_choices {
    enum model_column column;
    struct choice choices[5]; /* the first one needs no schema */
};

#define TIME    "io.debezium.time."
#define CONNECT "org.apache.kafka.connect.data."

static const struct column_choices all_choices[] = {
    {MODEL_BIG, {{FORM_PLAIN, "int64", NULL}, {FORM_DECIMAL, "bytes", CONNECT "Decimal"}}},
    {MODEL_COST,
     {{FORM_PLAIN, "string", NULL},
      {FORM_SCALED, "struct", "io.debezium.data.VariableScaleDecimal"},
      {FORM_DECIMAL, "bytes", CONNECT "Decimal"}}},
    {MODEL_NOTE, {{FORM_PLAIN, "string", NULL}, {FORM_BYTES, "bytes", NULL}}},
    {MODEL_RAW, {{FORM_BYTES, "bytes", NULL}, {FORM_BITS, "bytes", "io.debezium.data.Bits"}}},
    {MODEL_MS,
     {{FORM_PLAIN, "string", TIME "IsoTimestamp"},
      {FORM_MS, "int64", TIME "Timestamp"},
      {FORM_MS, "int64", CONNECT "Timestamp"},
      {FORM_US, "int64", TIME "MicroTimestamp"},
      {FORM_NS, "int64", TIME "NanoTimestamp"}}},
    {MODEL_US,
     {{FORM_PLAIN, "string", TIME "ZonedTimestamp"},
      {FORM_US, "int64", TIME "MicroTimestamp"},
      {FORM_NS, "int64", TIME "NanoTimestamp"}}},
    {MODEL_ZONED,
     {{FORM_PLAIN, "string", TIME "ZonedTimestamp"}, {FORM_NS, "int64", TIME "NanoTimestamp"}}},
    {MODEL_DAY,
     {{FORM_DAYS, "int32", TIME "Date"},
      {FORM_PLAIN, "string", TIME "IsoDate"},
      {FORM_DAYS, "int32", CONNECT "Date"}}},
    {MODEL_CLOCK,
     {{FORM_PLAIN, "string", TIME "ZonedTime"},
      {FORM_MS, "int32", TIME "Time"},
      {FORM_MS, "int32", CONNECT "Time"},
      {FORM_US, "int64", TIME "MicroTime"},
      {FORM_NS, "int64", TIME "NanoTime"}}},
};

static struct choice chosen[MODEL_COLUMNS];
static int32_t scales[MODEL_COLUMNS];

static void choose(bool schema)
{
    memset(chosen, 0, sizeof chosen);
    for (size_t i = 0; i < COUNT(all_choices); i++) {
        const struct column_choices *c = &all_choices[i];
        uint32_t count = 0;
        while (count < COUNT(c->choices) && c->choices[count].type) {
            count++;
        }
        chosen[c->column] = c->choices[schema ? random_below(&m.state, count) : 0];
        scales[c->column] = (c->column == MODEL_COST ? 4 : 0) + (int32_t)random_below(&m.state, 4);
    }
}

static void put_scaled(struct tn_buf *buf, struct tn_i128 number, int32_t digits_more)
{
    unsigned char bytes[20];
    unsigned char be[16];
    bool negative = number.high < 0;
    for (int32_t i = 0; i < digits_more; i++) {
        CHECK(tn_i128_push_digit(&number, 0, negative));
    }
    uint32_t longer = random_below(&m.state, 3);
    memset(bytes, negative ? 0xFF : 0, longer);
    uint32_t size = tn_i128_to_be(number, be);
    memcpy(bytes + longer, be, size);
    model_put_base64(&m, buf, (struct tn_bytes){bytes, size + longer});
}

static void put_decimal(struct tn_buf *buf, uint32_t column, const struct tn_value *value)
{
    bool cost = column == MODEL_COST;
    put_scaled(buf, cost ? value->as.i128 : tn_i128_of(value->as.i64),
               scales[column] - (cost ? 4 : 0));
}

static void put_turned(struct tn_buf *buf, struct tn_bytes bytes)
{
    static unsigned char turned[MODEL_TEXTS_MAX];
    for (size_t i = 0; i < bytes.size; i++) {
        turned[i] = bytes.data[bytes.size - 1 - i];
    }
    model_put_base64(&m, buf, (struct tn_bytes){turned, bytes.size});
}

static void put_plain(struct tn_buf *buf, uint32_t column, const struct tn_value *value)
{
    if (column == MODEL_FLAG && random_below(&m.state, 2)) {
        tn_buf_text(buf, value->as.i64 ? "1" : "0");
    } else if (column <= MODEL_FLAG) {
        tn_value_format_text(&m.types[column], value, buf);
    } else {
        model_put_text(&m, buf, column, value);
        if (column >= MODEL_MS && column != MODEL_ZONED && random_below(&m.state, 2)) {
            buf->size--;
            tn_buf_text(buf, "Z\"");
        }
    }
}

static void put_value(struct tn_buf *buf, uint32_t column, const struct tn_value *value)
{
    int64_t whole = value->as.i64;
    int64_t nanos = (int64_t)value->nanos;
    switch (value->null ? FORM_PLAIN : chosen[column].form) {
    case FORM_PLAIN:
        value->null ? tn_buf_text(buf, "null") : put_plain(buf, column, value);
        return;
    case FORM_DAYS:
    case FORM_MS:
        tn_buf_format(buf, "%lld", (long long)whole);
        return;
    case FORM_US:
        tn_buf_format(buf, "%lld", (long long)(whole * 1000 + nanos / 1000));
        return;
    case FORM_NS:
        tn_buf_format(buf, "%lld", (long long)(whole * 1000000 + nanos));
        return;
    case FORM_DECIMAL:
        put_decimal(buf, column, value);
        return;
    case FORM_SCALED:
        tn_buf_format(buf, "{\"scale\":%d,\"value\":", scales[column]);
        put_decimal(buf, column, value);
        tn_buf_text(buf, "}");
        return;
    case FORM_BYTES:
        model_put_base64(&m, buf, value->as.bytes);
        return;
    case FORM_BITS:
        put_turned(buf, value->as.bytes);
        return;
    }
}

static void put_row(struct tn_buf *buf, const char *name, const struct model_row *row)
{
    tn_buf_format(buf, "\"%s\":", name);
    for (uint32_t i = 0; i < MODEL_COLUMNS; i++) {
        uint32_t column = (i + row->used) % MODEL_COLUMNS;
        tn_buf_format(buf, "%s\"%s\":", i > 0 ? "," : "{", m.names[column]);
        put_value(buf, column, &row->values[column]);
    }
    tn_buf_text(buf, "},");
}

static void put_payload(struct tn_buf *buf, enum tn_row_kind kind, bool old)
{
    static const char *const words[] = {"c", "r", "u", "d"};
    bool deleted = kind == TN_ROW_DELETE;
    tn_buf_text(buf, "{");
    if (old) {
        put_row(buf, "before", &before);
    } else if (!deleted) {
        tn_buf_text(buf, "\"before\":null,");
    }
    put_row(buf, deleted ? "before" : "after", &after);
    tn_buf_format(buf, "\"source\":{\"ts_ms\":1},\"op\":\"%s\"}",
                  words[kind == TN_ROW_INSERT ? random_below(&m.state, 2) : kind]);
}

static void put_fields(struct tn_buf *buf, const char *field)
{
    tn_buf_text(buf, "{\"type\":\"struct\",\"fields\":[");
    for (uint32_t i = 0; i < MODEL_COLUMNS; i++) {
        const struct choice *c = &chosen[i];
        tn_buf_format(buf, "%s{\"type\":\"%s\",\"optional\":true", i > 0 ? "," : "",
                      c->type ? c->type : "int32");
        if (c->name) {
            tn_buf_format(buf, ",\"name\":\"%s\",\"version\":1", c->name);
        }
        if (c->form == FORM_DECIMAL) {
            tn_buf_format(buf,
                          ",\"parameters\":{\"scale\":\"%d\",\"connect.decimal.precision\":\"9\"}",
                          scales[i]);
        }
        tn_buf_format(buf, ",\"field\":\"%s\"}", m.names[i]);
    }
    tn_buf_format(buf, "],\"optional\":true,\"name\":\"a.Value\",\"field\":\"%s\"}", field);
}

static void put_schema(struct tn_buf *buf)
{
    tn_buf_text(buf, "\"schema\":{\"type\":\"struct\",\"fields\":[");
    put_fields(buf, "before");
    tn_buf_text(buf, ",");
    put_fields(buf, "after");
    tn_buf_text(buf, ",{\"type\":\"string\",\"optional\":false,\"field\":\"op\"}]}");
}

/* One of the ways to put a payload; without a schema its columns are read as they are at first. */
static void put_record(struct tn_buf *buf, bool schema, enum tn_row_kind kind, bool old)
{
    uint32_t way = random_below(&m.state, 3);
    if (!schema && way == 0) {
        put_payload(buf, kind, old);
        return;
    }
    tn_buf_text(buf, "{");
    if (schema && way > 0) {
        put_schema(buf);
        tn_buf_text(buf, ",");
    } else if (!schema && way == 2) {
        tn_buf_text(buf, "\"schema\":null,");
    }
    tn_buf_text(buf, "\"payload\":");
    put_payload(buf, kind, old);
    if (schema && way == 0) {
        tn_buf_text(buf, ",");
        put_schema(buf);
    }
    tn_buf_text(buf, "}");
}

static uint32_t draw_record(struct tn_buf *buf, struct model_expect *expect, bool *schema)
{
    static const enum tn_row_kind kinds[] = {TN_ROW_INSERT, TN_ROW_UPDATE_AFTER, TN_ROW_DELETE};
    enum tn_row_kind kind = kinds[random_below(&m.state, COUNT(kinds))];
    bool old = kind == TN_ROW_UPDATE_AFTER && random_below(&m.state, 2);
    if (random_below(&m.state, 3) == 0) {
        *schema = random_below(&m.state, 3) > 0;
        choose(*schema);
    }
    model_draw(&m, &after, 6000);
    if (old) {
        model_draw_before(&m, &before, &after, 6000);
    }
    tn_buf_init(buf, text, sizeof text);
    put_record(buf, *schema, kind, old);
    expect[0] = (struct model_expect){&before, TN_ROW_UPDATE_BEFORE};
    expect[old] = (struct model_expect){&after, kind};
    return 1 + old;
}

/* A stream in which the schema stays, changes, goes and comes. */
static void what_is_written_comes_back(void)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        m.state = seed + 100000 * given_number("SEED", 1);
        bool schema = false;
        choose(false);
        model_open(&m, TN_INPUT_DEBEZIUM, random_below(&m.state, 2) ? 13000 : 0);
        for (int record = 0; record < 150; record++) {
            struct model_expect expect[2];
            struct tn_buf buf;
            uint32_t count = draw_record(&buf, expect, &schema);
            model_check_record(&m, &buf, expect, count);
        }
    }
}

static void damage_does_no_harm(void)
{
    bool schema = true;
    choose(true);
    model_open(&m, TN_INPUT_DEBEZIUM, 13000);
    for (uint64_t seed = 0; seed < 10000; seed++) {
        m.state = seed + 100000 * given_number("SEED", 1);
        struct model_expect expect[2];
        struct tn_buf buf;
        (void)draw_record(&buf, expect, &schema);
        model_damage(&m, &buf);
    }
}

/* A column's length counts characters, also of a text that comes as bytes. */
static void bytes_may_be_a_text_of_fewer_characters(void)
{
    model_open(&m, TN_INPUT_DEBEZIUM, 0);
    m.fields[MODEL_NOTE].type.length = 3; /* as the columns are read by a schema */
    model_check_case(&m, SCHEMA(PLAIN("bytes", "note")) INSERT("\"note\":\"w6TDtsO8\"") "}",
                     "+I {k:1,note:\"\xc3\xa4\xc3\xb6\xc3\xbc\"}\n");
    model_check_case(&m, SCHEMA(PLAIN("bytes", "note")) INSERT("\"note\":\"Ynl0ZQ==\"") "}",
                     "~column 'note'");
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(records_give_rows_nothing_or_a_reason),
        TEST(what_is_written_comes_back),
        TEST(bytes_may_be_a_text_of_fewer_characters),
        TEST(damage_does_no_harm),
    };
    return run_tests(argc, argv, tests, COUNT(tests));
}
