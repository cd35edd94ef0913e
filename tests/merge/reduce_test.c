/* The reducer against what Paimon 1.3.1 made of tables (tests/golden/merge): each commit's versions
 * of a key are merged as a flush merges them, then all of a key as a reader does. And properties:
 * numbers against plain arithmetic, rows that are too large, texts that don't outlive the call. */
#include "merge/reduce.h"

#include <inttypes.h>

#include "base/heap.h"
#include "merge/aggregate.h"
#include "merge/golden.h"
#include "random.h"

enum { HEAP_SIZE = 4 << 20, ARENA_SIZE = 4 << 20, ROW_MAX = 1000, VERSIONS_MAX = 16 };

static unsigned char heap_memory[HEAP_SIZE];
static unsigned char arena_memory[ARENA_SIZE];
static struct tn_err err;

/* ---- a table in memory ---- */

struct version {
    struct tn_kv kv;
    bool used;
};

struct versions {
    struct version at[VERSIONS_MAX];
    uint32_t count;
};

struct bed {
    struct tn_arena arena;
    struct tn_schema schema;
    struct tn_options options;
    struct tn_row_layout layout;
    struct tn_order order;
    uint32_t *fields_of;
    const struct tn_engine *engine;
    struct tn_reducer *reducer;
    int64_t sequence;
    struct versions table; /* what flushes left */
};

static struct bed bed;

/* OK, or what refused the schema. */
static tn_rc bed_open(const char *schema_json, enum tn_options_use use)
{
    memset(&bed, 0, sizeof bed);
    tn_arena_init(&bed.arena, arena_memory, sizeof arena_memory);
    tn_rc rc = tn_schema_from_user(tn_bytes_of(schema_json), &bed.arena, &bed.schema, &err);
    rc = rc != TN_OK ? rc : tn_options_read(&bed.schema, use, &bed.arena, &bed.options, &err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_schema_layout(&bed.schema, &bed.layout, &bed.fields_of, NULL, &bed.arena, &err);
    CHECK_OK(rc, err);
    CHECK(bed.layout.column_count == bed.schema.field_count); /* so a field is its column */
    bed.order = (struct tn_order){.layout = &bed.layout,
                                  .keys = bed.schema.primary_keys,
                                  .sequence_fields = bed.options.sequence_fields,
                                  .sequence_descending = bed.options.sequence_descending};
    rc = tn_engine_make(&bed.options, &bed.order, bed.fields_of, &bed.arena, &bed.engine, &err);
    CHECK_OK(rc, err);
    size_t before = bed.arena.used;
    size_t size = tn_reducer_size(bed.engine, ROW_MAX);
    rc = tn_reducer_make(bed.engine, ROW_MAX, &bed.arena, &bed.reducer, &err);
    CHECK_OK(rc, err);
    CHECK(bed.arena.used - before <= size);
    return TN_OK;
}

static struct tn_kv keep(const struct tn_kv *kv)
{
    struct tn_kv kept = *kv;
    unsigned char *data = tn_arena_take(&bed.arena, kv->row.size + 1);
    CHECK(data != NULL);
    memcpy(data, kv->row.data, kv->row.size);
    kept.row.data = data;
    CHECK(tn_row_valid(&bed.layout, kept.row));
    return kept;
}

static struct tn_kv make_kv(const struct tn_value *values, enum tn_row_kind kind)
{
    static unsigned char data[ROW_MAX];
    CHECK(tn_row_packed_size(&bed.layout, values) <= sizeof data);
    struct tn_kv kv = {.row = {data, tn_row_pack(&bed.layout, values, data)},
                       .sequence = bed.sequence++,
                       .kind = kind,
                       .level = -1};
    kv.prefix = tn_row_prefix(&bed.layout, bed.order.keys, kv.row);
    return keep(&kv);
}

/* A row that is gone when the call returns. */
static tn_rc add_from_a_passing_row(const struct tn_kv *kv)
{
    static unsigned char row[ROW_MAX];
    struct tn_kv passing = *kv;
    memcpy(row, kv->row.data, kv->row.size);
    passing.row.data = row;
    tn_rc rc = tn_reducer_add(bed.reducer, &passing, &err);
    memset(row, 0xEE, kv->row.size);
    return rc;
}

/* Oldest first, as the reducer wants them. */
static void sort(struct tn_kv *group, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        for (uint32_t j = i; j > 0 && tn_kv_newer(&bed.order, &group[j - 1], &group[j]); j--) {
            struct tn_kv other = group[j];
            group[j] = group[j - 1];
            group[j - 1] = other;
        }
    }
}

/* One version passes untouched: the bypass of the fold. ABSENT where nothing is left. */
static tn_rc reduce(struct tn_kv *group, uint32_t count, struct tn_kv *result)
{
    if (count == 1) {
        *result = group[0];
        return TN_OK;
    }
    sort(group, count);
    tn_reducer_begin(bed.reducer);
    for (uint32_t i = 0; i < count; i++) {
        tn_rc rc = add_from_a_passing_row(&group[i]);
        if (rc != TN_OK) {
            return rc;
        }
    }
    struct tn_kv merged;
    tn_rc rc = tn_reducer_end(bed.reducer, &merged, &err);
    if (rc == TN_OK) {
        CHECK(merged.prefix == group[0].prefix);
        *result = keep(&merged);
    }
    return rc;
}

/* Every key of `from` becomes one version of `to`. */
static tn_rc reduce_all(struct versions *from, struct versions *to)
{
    for (uint32_t i = 0; i < from->count; i++) {
        from->at[i].used = false;
    }
    for (uint32_t i = 0; i < from->count; i++) {
        struct tn_kv group[VERSIONS_MAX];
        uint32_t count = 0;
        for (uint32_t j = i; j < from->count && !from->at[i].used; j++) {
            if (!from->at[j].used &&
                tn_kv_compare(&bed.order, &from->at[i].kv, &from->at[j].kv) == 0) {
                group[count++] = from->at[j].kv;
                from->at[j].used = j != i;
            }
        }
        from->at[i].used = true;
        struct tn_kv result;
        tn_rc rc = count > 0 ? reduce(group, count, &result) : TN_ABSENT;
        if (rc == TN_OK) {
            CHECK(to->count < VERSIONS_MAX);
            to->at[to->count++].kv = result;
        } else if (rc != TN_ABSENT) {
            return rc;
        }
    }
    return TN_OK;
}

/* ---- golden cases ---- */

/* False when a NOT NULL column has no value. */
static bool read_row(const struct cJSON *row, struct tn_value *values)
{
    bool good = true;
    for (uint32_t i = 0; i < bed.layout.column_count; i++) {
        const struct tn_column *c = &bed.layout.columns[i];
        values[i] = golden_value(tn_json_member(row, c->name), &c->type, &bed.arena);
        good = good && (!values[i].null || c->type.nullable);
    }
    return good;
}

/* False when the row's own column holds no kind. */
static bool kind_of(const struct cJSON *change, const struct tn_value *values,
                    enum tn_row_kind *kind)
{
    const char *name = tn_schema_option(&bed.schema, "rowkind.field"); /* a reader has it not */
    int32_t field = name ? tn_schema_find(&bed.schema, tn_bytes_of(name)) : -1;
    struct tn_bytes text = tn_bytes_of(tn_json_member(change, "kind")->valuestring);
    return tn_row_kind_parse(field < 0            ? text
                             : values[field].null ? tn_bytes_of("")
                                                  : values[field].as.bytes,
                             kind);
}

/* What a writer lets through. */
static bool wanted(enum tn_row_kind kind)
{
    return !(bed.options.ignore_delete && tn_row_kind_retracts(kind)) &&
           !(bed.options.ignore_update_before && kind == TN_ROW_UPDATE_BEFORE);
}

static tn_rc commit(const struct cJSON *changes, struct versions *flushed)
{
    struct versions written = {.count = 0};
    const struct cJSON *change;
    cJSON_ArrayForEach(change, changes)
    {
        struct tn_value values[16];
        enum tn_row_kind kind = TN_ROW_INSERT;
        if (!read_row(tn_json_member(change, "row"), values) || !kind_of(change, values, &kind)) {
            return tn_err_set(&err, TN_INVALID, 0, "refused by the writer");
        }
        if (wanted(kind)) {
            CHECK(written.count < VERSIONS_MAX);
            written.at[written.count++].kv = make_kv(values, kind);
        }
    }
    bed.order.sequence_descending = false; /* as in a write buffer of Paimon up to 1.4 */
    tn_rc rc = reduce_all(&written, flushed);
    bed.order.sequence_descending = bed.options.sequence_descending;
    return rc;
}

static void show(const char *what, const struct tn_kv *kv)
{
    unsigned char memory[1000];
    struct tn_buf buf;
    tn_buf_init(&buf, memory, sizeof memory);
    tn_row_format_json(&bed.layout, NULL, kv->row, &buf);
    (void)fprintf(stderr, "  %s %s %.*s\n", what, tn_row_kind_text(kv->kind), (int)buf.size,
                  buf.data);
}

/* Each row of `expected` is among `versions`, with its kind when there is one, and no other. */
static bool same_rows(const struct cJSON *expected, const struct versions *versions, bool kinds)
{
    uint32_t matched = 0;
    const struct cJSON *item;
    cJSON_ArrayForEach(item, expected)
    {
        struct tn_value values[16];
        (void)read_row(kinds ? tn_json_member(item, "row") : item, values);
        struct tn_kv kv = make_kv(values, TN_ROW_INSERT);
        if (kinds) {
            CHECK(tn_row_kind_parse(tn_bytes_of(tn_json_member(item, "kind")->valuestring),
                                    &kv.kind));
        }
        bool found = false;
        for (uint32_t i = 0; i < versions->count && !found; i++) {
            const struct tn_kv *have = &versions->at[i].kv;
            found = have->row.size == kv.row.size && (!kinds || have->kind == kv.kind) &&
                    memcmp(have->row.data, kv.row.data, kv.row.size) == 0;
        }
        matched += found;
        if (!found) {
            show("wanted", &kv);
        }
    }
    for (uint32_t i = 0; i < versions->count && matched < versions->count; i++) {
        show("found ", &versions->at[i].kv);
    }
    return matched == versions->count && (int)matched == cJSON_GetArraySize(expected);
}

static bool in_scope(const struct cJSON *item)
{
    bool flat = true;
    const struct cJSON *field;
    cJSON_ArrayForEach(field, tn_json_member(item, "schema"))
    {
        flat = flat && cJSON_IsString(tn_json_member(field, "type"));
    }
    const char *engine = golden_option(item, "merge-engine");
    bool first = engine && strcmp(engine, "first-row") == 0; /* level 0 is not read */
    const char *bucket = golden_option(item, "bucket");
    const struct cJSON *changes;
    cJSON_ArrayForEach(changes, tn_json_member(item, "commits"))
    {
        flat = flat && cJSON_GetArraySize(changes) < VERSIONS_MAX;
    }
    return flat && !first && strcmp(tn_json_member(item, "compact")->valuestring, "none") == 0 &&
           cJSON_GetArraySize(tn_json_member(item, "primary_key")) > 0 &&
           golden_option(item, "deletion-vectors.enabled") == NULL && (!bucket || bucket[0] != '-');
}

static tn_rc run_commits(const struct cJSON *item, bool *agrees)
{
    const char *producer = golden_option(item, "changelog-producer");
    const struct cJSON *changelog = tn_json_member(item, "expect_changelog");
    const struct cJSON *commits = tn_json_member(item, "commits");
    bool raw = (!producer || strcmp(producer, "none") == 0) && changelog &&
               cJSON_GetArraySize(changelog) == cJSON_GetArraySize(commits);
    for (int i = 0; i < cJSON_GetArraySize(commits); i++) {
        static struct versions flushed;
        flushed.count = 0;
        tn_rc rc = commit(cJSON_GetArrayItem(commits, i), &flushed);
        if (rc != TN_OK) {
            return rc;
        }
        const struct cJSON *delta = raw ? cJSON_GetArrayItem(changelog, i) : NULL;
        *agrees =
            *agrees && (delta == NULL || cJSON_IsNull(delta) || same_rows(delta, &flushed, true));
        for (uint32_t j = 0; j < flushed.count; j++) {
            CHECK(bed.table.count < VERSIONS_MAX);
            bed.table.at[bed.table.count] = flushed.at[j];
            bed.table.at[bed.table.count++].kv.level = 0;
        }
    }
    return TN_OK;
}

static bool run_case(const struct cJSON *item)
{
    static struct versions merged; /* too large for a frame, each */
    static struct versions read;
    bool agrees = true;
    bool fails = tn_json_member(item, "expect_error") != NULL;
    char *schema = golden_schema(item, NULL);
    tn_rc rc = bed_open(schema, TN_OPTIONS_CREATE);
    if (rc == TN_UNSUPPORTED) {
        rc = bed_open(schema, TN_OPTIONS_READ); /* what this build does not write it may merge */
    }
    cJSON_free(schema);
    rc = rc != TN_OK ? rc : run_commits(item, &agrees);
    merged.count = 0;
    rc = rc != TN_OK ? rc : reduce_all(&bed.table, &merged);
    if (fails || rc != TN_OK) {
        return fails && rc == TN_INVALID;
    }
    read.count = 0;
    for (uint32_t i = 0; i < merged.count; i++) {
        if (!tn_row_kind_retracts(merged.at[i].kv.kind)) {
            read.at[read.count++] = merged.at[i];
        }
    }
    return agrees && same_rows(tn_json_member(item, "expect_rows"), &read, false);
}

static int cases;
static int wrong;

static void check_case(const struct cJSON *item)
{
    if (!in_scope(item)) {
        return;
    }
    err.text[0] = 0;
    bool good = run_case(item);
    if (!good) {
        (void)fprintf(stderr, "%s: %s\n", golden_text(item, "name"), err.text);
    }
    cases++;
    wrong += !good;
}

static int run_file(const char *path)
{
    cases = 0;
    wrong = 0;
    (void)golden_each(path, check_case);
    CHECK(wrong == 0);
    return cases;
}

static void rows_are_those_of_paimon_1_3(void)
{
    CHECK(run_file("tests/golden/merge/cases.jsonl") == 133);
}

static void random_rows_are_those_of_paimon_1_3(void)
{
    CHECK(run_file("tests/golden/merge/random.jsonl") == 150);
}

/* ---- one by one ---- */

/* Columns k INT NOT NULL, then those of `fields`; the key is k. */
static void open_table(const char *fields, const char *options, enum tn_options_use use)
{
    char json[1000];
    (void)snprintf(json, sizeof json,
                   "{\"fields\":[{\"name\":\"k\",\"type\":\"INT NOT NULL\"},%s],"
                   "\"primaryKeys\":[\"k\"],\"options\":{\"bucket\":\"1\",%s}}",
                   fields, options);
    tn_rc rc = bed_open(json, use);
    CHECK_OK(rc, err);
}

#define FIELD(name, type) "{\"name\":\"" name "\",\"type\":\"" type "\"}"

static const struct tn_value none = {.null = true};

static struct tn_value text_of(const char *text)
{
    return (struct tn_value){.as.bytes = tn_bytes_of(text)};
}

static tn_rc add(enum tn_row_kind kind, struct tn_value first, struct tn_value second)
{
    struct tn_value values[] = {{.as.i64 = 1}, first, second};
    struct tn_kv kv = make_kv(values, kind);
    return add_from_a_passing_row(&kv);
}

static void expect_error(tn_rc rc, const char *text)
{
    if (rc != TN_INVALID || strcmp(err.text, text) != 0) {
        FAIL("found:  %s\nwanted: %s", err.text, text);
    }
}

static void what_cannot_be_merged_names_column_function_and_kind(void)
{
    open_table(FIELD("v", "INT"),
               "\"merge-engine\":\"aggregation\",\"fields.v.aggregate-function\":\"max\"",
               TN_OPTIONS_CREATE);
    tn_reducer_begin(bed.reducer);
    CHECK(add(TN_ROW_INSERT, none, none) == TN_OK);
    expect_error(add(TN_ROW_DELETE, none, none),
                 "column 'v': max can't take back a -D; 'fields.v.ignore-retract' = 'true' passes "
                 "it over");
    open_table(FIELD("v", "INT"),
               "\"merge-engine\":\"aggregation\",\"fields.v.aggregate-function\":\"product\"",
               TN_OPTIONS_CREATE);
    tn_reducer_begin(bed.reducer);
    CHECK(add(TN_ROW_INSERT, (struct tn_value){.as.i64 = 7}, none) == TN_OK);
    expect_error(add(TN_ROW_UPDATE_BEFORE, (struct tn_value){.as.i64 = 0}, none),
                 "column 'v': product: division by zero");
    open_table(FIELD("v", "INT"), "\"merge-engine\":\"partial-update\"", TN_OPTIONS_CREATE);
    tn_reducer_begin(bed.reducer);
    expect_error(add(TN_ROW_UPDATE_BEFORE, none, none),
                 "partial-update can't take a -U: 'ignore-delete', "
                 "'partial-update.remove-record-on-delete' or a sequence group says what becomes "
                 "of it");
}

static void not_null_columns_are_never_null(void)
{
    open_table(FIELD("v", "INT NOT NULL"), "\"merge-engine\":\"partial-update\"",
               TN_OPTIONS_CREATE);
    tn_reducer_begin(bed.reducer);
    expect_error(add(TN_ROW_INSERT, none, none), "column 'v': NULL, and the column is NOT NULL");
    open_table(FIELD("v", "INT NOT NULL"),
               "\"merge-engine\":\"aggregation\",\"fields.v.aggregate-function\":\"last_value\"",
               TN_OPTIONS_CREATE);
    struct tn_value four = {.as.i64 = 4};
    struct tn_kv kv;
    tn_reducer_begin(bed.reducer);
    CHECK(add(TN_ROW_INSERT, four, none) == TN_OK && add(TN_ROW_DELETE, four, none) == TN_OK);
    expect_error(tn_reducer_end(bed.reducer, &kv, &err),
                 "column 'v': NULL, and the column is NOT NULL");
    CHECK(add(TN_ROW_INSERT, four, none) == TN_OK); /* and a later version mends it */
    tn_rc rc = tn_reducer_end(bed.reducer, &kv, &err);
    CHECK_OK(rc, err);
}

/* A retract is no first row: the NOT NULL columns of the first one stay, of later ones not. */
static void only_the_first_retract_lays_a_row(void)
{
    open_table(
        FIELD("v", "INT NOT NULL") "," FIELD("g", "INT"),
        "\"merge-engine\":\"partial-update\",\"fields.g.sequence-group\":\"v\","
        "\"fields.v.aggregate-function\":\"last_value\",\"fields.v.ignore-retract\":\"true\"",
        TN_OPTIONS_CREATE);
    struct tn_kv kv;
    struct tn_value value;
    tn_reducer_begin(bed.reducer);
    CHECK(add(TN_ROW_DELETE, (struct tn_value){.as.i64 = 4}, none) == TN_OK);
    CHECK(add(TN_ROW_DELETE, (struct tn_value){.as.i64 = 5}, none) == TN_OK);
    tn_rc rc = tn_reducer_end(bed.reducer, &kv, &err);
    CHECK_OK(rc, err);
    tn_row_get(&bed.layout, kv.row, 1, &value);
    CHECK(kv.kind == TN_ROW_DELETE && value.as.i64 == 4 && kv.sequence == 1);
}

/* Lists of growing length, until one is refused with its size; the row before is what fits. */
static void rows_that_are_too_large_are_refused_with_their_size(void)
{
    open_table(FIELD("v", "STRING") "," FIELD("w", "STRING"),
               "\"merge-engine\":\"aggregation\",\"fields.v.aggregate-function\":\"listagg\","
               "\"fields.v.list-agg-delimiter\":\"--\"",
               TN_OPTIONS_CREATE);
    char long_text[ROW_MAX];
    memset(long_text, 'x', sizeof long_text);
    long_text[600] = 0;
    tn_reducer_begin(bed.reducer);
    CHECK(add(TN_ROW_INSERT, text_of("a"), text_of(long_text)) == TN_OK);
    long_text[300] = 0;
    CHECK(add(TN_ROW_INSERT, text_of(long_text), none) == TN_OK);
    struct tn_kv kv;
    struct tn_value value;
    tn_rc rc = tn_reducer_end(bed.reducer, &kv, &err);
    CHECK_OK(rc, err);
    tn_row_get(&bed.layout, kv.row, 1, &value);
    CHECK(value.as.bytes.size == 303 && memcmp(value.as.bytes.data, "a--xxx", 6) == 0);
    tn_row_get(&bed.layout, kv.row, 2, &value);
    CHECK(value.as.bytes.size == 600 && bed.layout.fixed_size == 13);
    long_text[82] = 0; /* 13 + 303 + 2 + 82 + 600 */
    CHECK(add(TN_ROW_INSERT, text_of(long_text), none) == TN_OK);
    expect_error(add(TN_ROW_INSERT, text_of(""), none),
                 "column 'w': a merged row takes 1002 bytes, 600 of them here, at most 1000; what "
                 "helps is more memory (--memory)");
    tn_reducer_begin(bed.reducer);
    CHECK(add(TN_ROW_INSERT, text_of(long_text), text_of("w")) == TN_OK);
    rc = tn_reducer_end(bed.reducer, &kv, &err);
    CHECK_OK(rc, err);
    CHECK(kv.row.size == 13 + 82 + 1);
}

static void a_row_of_nothing_but_slots_must_fit(void)
{
    open_table(FIELD("v", "INT"), "\"merge-engine\":\"aggregation\"", TN_OPTIONS_CREATE);
    struct tn_reducer *small;
    tn_rc rc = tn_reducer_make(bed.engine, 8, &bed.arena, &small, &err);
    expect_error(rc, "a row takes 9 bytes, at most 8");
    struct tn_arena full;
    static unsigned char memory[64];
    tn_arena_init(&full, memory, sizeof memory);
    CHECK(tn_reducer_make(bed.engine, 100, &full, &small, &err) == TN_AGAIN);
}

static void versions_that_are_passed_over_leave_nothing(void)
{
    static const char *const engines[] = {"deduplicate", "partial-update", "first-row"};
    for (size_t i = 0; i < COUNT(engines); i++) {
        char options[100];
        struct tn_kv kv;
        (void)snprintf(options, sizeof options,
                       "\"merge-engine\":\"%s\",\"ignore-delete\":\"true\"", engines[i]);
        open_table(FIELD("v", "STRING"), options, TN_OPTIONS_READ);
        CHECK(tn_engine_keeps_newest(bed.engine) == (i == 0));
        tn_reducer_begin(bed.reducer);
        CHECK(add(TN_ROW_DELETE, text_of("gone"), none) == TN_OK);
        CHECK(add(TN_ROW_UPDATE_BEFORE, text_of("gone"), none) == TN_OK);
        CHECK(tn_reducer_end(bed.reducer, &kv, &err) == TN_ABSENT);
        CHECK(add(TN_ROW_UPDATE_AFTER, text_of("here"), none) == TN_OK);
        CHECK(add(TN_ROW_DELETE, text_of("gone"), none) == TN_OK);
        tn_rc rc = tn_reducer_end(bed.reducer, &kv, &err);
        CHECK_OK(rc, err);
        CHECK(kv.sequence == 2 && tn_row_valid(&bed.layout, kv.row));
        struct tn_bytes here = tn_row_bytes(&bed.layout, kv.row, 1);
        CHECK(tn_bytes_equal(here, tn_bytes_of("here")));
    }
}

/* Who takes rows in refuses what could never be merged, and nothing else. */
static void kinds_that_are_never_taken_are_known_before(void)
{
    static const struct {
        const char *options;
        bool update_before;
        bool delete;
    } engines[] = {
        {"\"merge-engine\":\"deduplicate\"", true, true},
        {"\"merge-engine\":\"first-row\"", false, false},
        {"\"merge-engine\":\"first-row\",\"ignore-delete\":\"true\"", true, true},
        {"\"merge-engine\":\"partial-update\"", false, false},
        {"\"merge-engine\":\"partial-update\",\"ignore-delete\":\"true\"", true, true},
        {"\"merge-engine\":\"partial-update\",\"fields.g.sequence-group\":\"v\"", true, true},
        {"\"merge-engine\":\"partial-update\","
         "\"partial-update.remove-record-on-delete\":\"true\"",
         true, true},
        {"\"merge-engine\":\"aggregation\"", true, true},
        {"\"merge-engine\":\"aggregation\",\"fields.v.aggregate-function\":\"max\"", false, false},
        {"\"merge-engine\":\"aggregation\",\"fields.v.aggregate-function\":\"max\","
         "\"fields.v.ignore-retract\":\"true\"",
         true, true},
        {"\"merge-engine\":\"aggregation\",\"fields.v.aggregate-function\":\"max\","
         "\"aggregation.remove-record-on-delete\":\"true\"",
         false, true},
    };
    for (size_t i = 0; i < COUNT(engines); i++) {
        open_table(FIELD("v", "INT") "," FIELD("g", "INT"), engines[i].options, TN_OPTIONS_READ);
        tn_rc expected[] = {TN_OK, engines[i].update_before ? TN_OK : TN_INVALID, TN_OK,
                            engines[i].delete ? TN_OK : TN_INVALID};
        for (int kind = 0; kind < 4; kind++) {
            CHECK(tn_engine_check_kind(bed.engine, (enum tn_row_kind)kind, &err) == expected[kind]);
        }
    }
}

static void first_row_keeps_the_first_with_its_kind(void)
{
    open_table(FIELD("v", "STRING"), "\"merge-engine\":\"first-row\"", TN_OPTIONS_READ);
    struct tn_kv kv;
    tn_reducer_begin(bed.reducer);
    CHECK(add(TN_ROW_UPDATE_AFTER, text_of("first"), none) == TN_OK);
    CHECK(add(TN_ROW_INSERT, text_of("second"), none) == TN_OK);
    tn_rc rc = tn_reducer_end(bed.reducer, &kv, &err);
    CHECK_OK(rc, err);
    CHECK(kv.kind == TN_ROW_UPDATE_AFTER && kv.sequence == 0);
    CHECK(tn_bytes_equal(tn_row_bytes(&bed.layout, kv.row, 1), tn_bytes_of("first")));
    expect_error(add(TN_ROW_DELETE, text_of("x"), none),
                 "first-row can't take a -D; 'ignore-delete' passes it over");
}

/* A reader that shows some columns gets the same values in them; what orders must be shown. */
static void a_part_of_the_columns_merges_alike(void)
{
    open_table(FIELD("v", "INT") "," FIELD("g", "INT"),
               "\"merge-engine\":\"partial-update\",\"fields.g.sequence-group\":\"v\"",
               TN_OPTIONS_READ);
    static const char *const names[] = {"g", "v"};
    struct tn_type types[] = {bed.schema.fields[2].type, bed.schema.fields[1].type};
    static const uint32_t fields_of[] = {2, 1};
    struct tn_row_layout part;
    tn_rc rc = tn_row_layout_init(&part, names, types, 2, &bed.arena, &err);
    CHECK_OK(rc, err);
    struct tn_order order = {.layout = &part};
    rc = tn_engine_make(&bed.options, &order, fields_of, &bed.arena, &bed.engine, &err);
    CHECK_OK(rc, err);
    rc = tn_row_layout_init(&part, names + 1, types + 1, 1, &bed.arena, &err);
    CHECK_OK(rc, err);
    expect_error(tn_engine_make(&bed.options, &order, fields_of + 1, &bed.arena, &bed.engine, &err),
                 "column 'v' is read without the columns that order it");
}

/* The options warn of functions without a retract; which those are, the functions say. */
static void options_and_functions_agree_on_retracts(void)
{
    for (int i = 0; i < TN_AGGREGATE_COUNT; i++) {
        const struct tn_aggregate_function *function = &tn_aggregate_functions[i];
        bool knows_none = function->add && !function->retract;
        CHECK(tn_aggregate_knows_no_retract((enum tn_aggregate)i) == knows_none);
    }
}

static const struct test tests[] = {
    TEST(rows_are_those_of_paimon_1_3),
    TEST(random_rows_are_those_of_paimon_1_3),
    TEST(what_cannot_be_merged_names_column_function_and_kind),
    TEST(not_null_columns_are_never_null),
    TEST(only_the_first_retract_lays_a_row),
    TEST(rows_that_are_too_large_are_refused_with_their_size),
    TEST(a_row_of_nothing_but_slots_must_fit),
    TEST(versions_that_are_passed_over_leave_nothing),
    TEST(kinds_that_are_never_taken_are_known_before),
    TEST(first_row_keeps_the_first_with_its_kind),
    TEST(a_part_of_the_columns_merges_alike),
    TEST(options_and_functions_agree_on_retracts),
};

int main(int argc, char **argv)
{
    static struct tn_heap heap;
    tn_heap_init(&heap, heap_memory, sizeof heap_memory, false);
    tn_json_use_heap(&heap);
    return run_tests(argc, argv, tests, COUNT(tests));
}
