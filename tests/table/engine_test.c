/* Tables of the merge engines, whole: random rows through memtable, flush and compaction, then read
 * by scan and by lookup, any columns, against a fold of all rows in plain C. Some tables are never
 * compacted, so that their files are reduced by scratch files. */
#include "read/lookup.h"

#include <math.h>

#include "table/bed.h"

enum { KEYS = 25, ROUNDS_MAX = 60, FIELDS = 5, K = 0, N, A, G, B };

static struct bed_engine engine;
static struct sim_disk disk;
static struct tn_err err;

/* Columns: k the key, n a number, a a text, g a number, b a text. All but k may be NULL. */
struct row {
    bool there;
    bool null[FIELDS];
    int64_t n;
    int64_t g;
    uint32_t a;
    uint32_t b;
};

static struct row model[KEYS];

static const struct engine {
    const char *options;
    bool groups; /* g orders a; else what is not NULL replaces */
    bool sums;   /* n is a sum */
} engines[] = {
    {"\"merge-engine\":\"partial-update\"", false, false},
    {"\"merge-engine\":\"partial-update\",\"fields.g.sequence-group\":\"a\"", true, false},
    {"\"merge-engine\":\"aggregation\",\"fields.n.aggregate-function\":\"sum\"", false, true},
};

/* ---- the model ---- */

static void model_put(const struct engine *e, int64_t key, const struct row *row)
{
    struct row *m = &model[key];
    if (!m->there) {
        *m = *row;
        m->there = true;
        return;
    }
    if (!row->null[N]) {
        m->n = (e->sums && !m->null[N] ? m->n : 0) + row->n;
        m->null[N] = false;
    }
    bool newer = !e->groups || row->g >= m->g;
    if (e->groups ? newer : !row->null[A]) {
        m->a = row->a;
        m->null[A] = row->null[A];
    }
    if (!row->null[G] && newer) {
        m->g = row->g;
        m->null[G] = false;
    }
    if (!row->null[B]) {
        m->b = row->b;
        m->null[B] = false;
    }
}

static void row_values(int64_t key, const struct row *row, struct tn_value *values, char *texts)
{
    const int64_t numbers[FIELDS] = {key, row->n, 0, row->g, 0};
    for (int f = 0; f < FIELDS; f++) {
        values[f] = (struct tn_value){.null = row->null[f]};
        if (row->null[f]) {
            continue;
        }
        if (f == A || f == B) {
            values[f].as.bytes = bed_text(f == A ? row->a : row->b, texts);
            texts += BED_VALUE_MAX;
        } else {
            values[f].as.i64 = numbers[f];
        }
    }
}

/* ---- writing ---- */

static void create(const struct engine *e, uint64_t seed, bool compacts)
{
    static struct bed_scenario scenario;
    scenario = (struct bed_scenario){.seed = seed};
    (void)snprintf(
        scenario.schema, sizeof scenario.schema,
        "{\"fields\":[{\"name\":\"k\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"BIGINT\"},"
        "{\"name\":\"a\",\"type\":\"STRING\"},{\"name\":\"g\",\"type\":\"BIGINT\"},"
        "{\"name\":\"b\",\"type\":\"STRING\"}],\"primaryKeys\":[\"k\"],\"options\":{"
        "\"file.format\":\"avro\",\"bucket\":\"1\",\"num-sorted-run.compaction-trigger\":\"3\","
        "\"write-only\":\"%s\",%s}}",
        compacts ? "false" : "true", e->options);
    memset(model, 0, sizeof model);
    bed_create(&engine, &disk.io, &scenario);
    tn_rc rc = disk.io.vtable->make_dir(&disk.io, ".tarn/", &err);
    CHECK_OK(rc, err);
}

static void put(struct tn_table *table, int64_t key, const struct row *row)
{
    char texts[2 * BED_VALUE_MAX];
    struct tn_value values[FIELDS];
    row_values(key, row, values, texts);
    tn_rc rc = bed_put_values(table, values, TN_ROW_INSERT, &err);
    CHECK_OK(rc, err);
}

/* Of a sequence group the order is never NULL: such rows lose what they hold when they are merged,
 * which depends on when that is. */
static struct row draw_row(const struct engine *e, uint64_t *seed)
{
    struct row row = {.n = (int64_t)random_below(seed, 1000) - 500,
                      .g = (int64_t)random_below(seed, 30),
                      .a = (uint32_t)random_next(seed),
                      .b = (uint32_t)random_next(seed)};
    for (int f = N; f < FIELDS; f++) {
        row.null[f] = random_below(seed, 3) == 0 && !(f == G && e->groups);
    }
    return row;
}

static void write_rounds(const struct engine *e, uint32_t rounds, uint64_t *seed)
{
    struct tn_table *table;
    struct tn_table_spec spec = {.name = BED_TABLE, .identifier = -1, .compact = true};
    tn_rc rc = tn_table_open(&engine.env, &spec, &table, &err);
    CHECK_OK(rc, err);
    for (uint32_t round = 0; round < rounds; round++) {
        for (uint32_t i = 1 + random_below(seed, 30); i > 0; i--) {
            int64_t key = random_below(seed, KEYS);
            struct row row = draw_row(e, seed);
            put(table, key, &row);
            model_put(e, key, &row);
        }
        rc = tn_table_finish(table, round + 1, &err);
        CHECK_OK(rc, err);
    }
    tn_table_close(table);
}

/* ---- reading ---- */

static void check_row(const struct tn_projection *p, const struct tn_kv *kv, int64_t key,
                      const uint32_t *fields)
{
    char texts[2 * BED_VALUE_MAX];
    struct tn_value want[FIELDS];
    row_values(key, &model[key], want, texts);
    for (uint32_t i = 0; i < p->columns.count; i++) {
        struct tn_value got;
        uint32_t column = p->columns.index[i];
        const struct tn_value *w = &want[fields[i]];
        tn_row_get(&p->layout, kv->row, column, &got);
        CHECK(got.null == w->null);
        CHECK(got.null || tn_value_compare(&p->layout.columns[column].type, &got, w) == 0);
    }
}

static void check_scan(const struct tn_scan_spec *spec, const uint32_t *fields)
{
    static struct tn_scan scan;
    size_t mark = tn_arena_mark(&engine.own);
    tn_rc rc = tn_scan_open(&scan, spec, engine.window, BED_WINDOW_SIZE, &engine.own,
                            &engine.workers[TN_LANE_LONG], &err);
    CHECK_OK(rc, err);
    struct tn_kv kv;
    for (int64_t key = 0; key < KEYS; key++) {
        if (model[key].there) {
            rc = tn_scan_next(&scan, &kv, &err);
            CHECK_OK(rc, err);
            check_row(&scan.projection, &kv, key, fields);
        }
    }
    rc = tn_scan_next(&scan, &kv, &err);
    CHECK(rc == TN_ABSENT);
    tn_scan_close(&scan);
    tn_arena_reset(&engine.own, mark);
}

static void check_lookup(const struct tn_scan_spec *spec, const uint32_t *fields, int64_t key)
{
    static struct tn_lookup lookup;
    struct tn_value value = {.as.i64 = key};
    size_t mark = tn_arena_mark(&engine.own);
    tn_rc rc = tn_lookup(spec, &value, engine.window, BED_WINDOW_SIZE, &engine.own,
                         &engine.workers[TN_LANE_LONG], &lookup, &err);
    if (model[key].there) {
        CHECK_OK(rc, err);
        check_row(&lookup.projection, &lookup.kv, key, fields);
    } else {
        CHECK(rc == TN_ABSENT);
    }
    tn_arena_reset(&engine.own, mark);
}

static void open_latest(struct bed_reader *reader, struct tn_snapshot *snapshot,
                        struct tn_scan_spec *spec)
{
    int64_t last;
    tn_arena_reset(&engine.own, 0);
    const char *problem = bed_read_open(&engine, reader);
    CHECK(!problem);
    tn_rc rc = tn_snapshot_latest(&disk.io, BED_ROOT, &engine.own, &last, &err);
    CHECK_OK(rc, err);
    rc = tn_snapshot_read(&disk.io, BED_ROOT, last, &engine.own, snapshot, &err);
    CHECK_OK(rc, err);
    *spec = (struct tn_scan_spec){.root = BED_ROOT,
                                  .snapshot = snapshot,
                                  .schema = reader->schema,
                                  .options = &reader->options,
                                  .schemas = &reader->schemas};
}

static void check_table(uint64_t *seed)
{
    static struct bed_reader reader;
    struct tn_snapshot snapshot;
    struct tn_scan_spec spec;
    open_latest(&reader, &snapshot, &spec);
    uint32_t all[FIELDS] = {K, N, A, G, B};
    check_scan(&spec, all);
    for (int64_t key = 0; key < KEYS; key++) {
        check_lookup(&spec, all, key);
    }
    uint32_t fields[FIELDS];
    spec.fields = fields;
    for (int i = 0; i < 6; i++) { /* without the columns that decide, too */
        spec.field_count = 1 + random_below(seed, FIELDS);
        for (uint32_t f = 0; f < spec.field_count; f++) {
            fields[f] = random_below(seed, FIELDS);
        }
        check_scan(&spec, fields);
        check_lookup(&spec, fields, random_below(seed, KEYS));
    }
}

static void random_rows_are_merged_as_the_model_does(void)
{
    for (uint64_t round = 0; round < 36; round++) {
        uint64_t seed = round + 100;
        const struct engine *e = &engines[round % COUNT(engines)];
        bool compacts = random_below(&seed, 2) == 0;
        sim_disk_init(&disk, BED_DISK_SIZE);
        create(e, round, compacts);
        bed_engine_start(&engine, &disk.io, round);
        uint32_t rounds = compacts ? 12 : round % 4 == 1 ? ROUNDS_MAX : 5;
        write_rounds(e, rounds, &seed);
        check_table(&seed);
        bed_engine_stop(&engine);
        sim_disk_deinit(&disk);
    }
}

/* ---- descending ---- */

/* Rows of one key: the numbers that order them, a commit a list; which of them a reader gets.
 * Paimon up to 1.4 obeys the order where files meet and in a local merge of rows that have slots
 * alone. */
#define MERGED  "\"local-merge-buffer-size\":\"1 mb\","
#define INPUT   "\"changelog-producer\":\"input\","
#define PARTIAL "\"merge-engine\":\"partial-update\","
#define SUMS    "\"merge-engine\":\"aggregation\","

static const struct descending {
    const char *type; /* of a second column */
    const char *options;
    int64_t commits[2][3];
    int64_t wins;
} descending[] = {
    {"INT", "", {{5, 3, 4}, {8, 6, 7}}, 5},
    {"INT", "", {{8, 6, 7}, {5, 3, 4}}, 5},
    {"INT", INPUT, {{5, 3, 4}, {8, 6, 7}}, 5},
    {"INT", SUMS, {{8, 6, 7}, {5, 3, 4}}, 5},
    {"INT", PARTIAL, {{8, 6, 7}, {5, 3, 4}}, 5},
    {"INT", MERGED, {{5, 3, 4}, {8, 6, 7}}, 3},
    {"INT", MERGED PARTIAL, {{8, 6, 7}, {5, 3, 4}}, 3},
    {"DECIMAL(18,2)", MERGED, {{5, 3, 4}, {8, 6, 7}}, 3},
    {"DECIMAL(19,2)", MERGED, {{5, 3, 4}, {8, 6, 7}}, 5},
    {"TIMESTAMP(3)", MERGED SUMS, {{5, 3, 4}, {8, 6, 7}}, 3},
    {"TIMESTAMP(6)", MERGED SUMS, {{5, 3, 4}, {8, 6, 7}}, 5},
    {"STRING", MERGED PARTIAL, {{5, 3, 4}, {8, 6, 7}}, 5},
};

static void put_number(struct tn_table *table, int64_t number)
{
    static const unsigned char name[] = "key";
    struct tn_value values[] = {
        {.as.bytes = {name, sizeof name - 1}}, {.as.i64 = number}, {.null = true}};
    tn_rc rc = bed_put_values(table, values, TN_ROW_INSERT, &err);
    CHECK_OK(rc, err);
}

static void open_new(struct tn_table **table, const char *fields, const char *options)
{
    static struct bed_scenario scenario;
    scenario = (struct bed_scenario){.seed = 1};
    (void)snprintf(scenario.schema, sizeof scenario.schema,
                   "{\"fields\":[%s],\"primaryKeys\":[\"k\"],"
                   "\"options\":{%s\"file.format\":\"avro\",\"bucket\":\"1\"}}",
                   fields, options);
    sim_disk_init(&disk, BED_DISK_SIZE);
    bed_create(&engine, &disk.io, &scenario);
    tn_rc rc = disk.io.vtable->make_dir(&disk.io, ".tarn/", &err);
    CHECK_OK(rc, err);
    bed_engine_start(&engine, &disk.io, 1);
    struct tn_table_spec spec = {.name = BED_TABLE, .identifier = -1, .compact = true};
    rc = tn_table_open(&engine.env, &spec, table, &err);
    CHECK_OK(rc, err);
}

static void end_new(void)
{
    bed_engine_stop(&engine);
    sim_disk_deinit(&disk);
}

static void write_descending(const struct descending *d)
{
    struct tn_table *table;
    char fields[200];
    char options[300];
    (void)snprintf(fields, sizeof fields,
                   "{\"name\":\"k\",\"type\":\"STRING\"},{\"name\":\"n\",\"type\":"
                   "\"BIGINT\"},{\"name\":\"t\",\"type\":\"%s\"}",
                   d->type);
    (void)snprintf(options, sizeof options,
                   "%s\"sequence.field\":\"n\",\"sequence.field.sort-order\":\"descending\",",
                   d->options);
    open_new(&table, fields, options);
    for (uint32_t c = 0; c < COUNT(d->commits); c++) {
        for (uint32_t i = 0; i < COUNT(d->commits[c]); i++) {
            put_number(table, d->commits[c][i]);
        }
        tn_rc rc = tn_table_finish(table, c + 1, &err);
        CHECK_OK(rc, err);
    }
    tn_table_close(table);
}

static int64_t read_number(void)
{
    static struct bed_reader reader;
    static struct tn_lookup lookup;
    struct tn_scan_spec spec;
    struct tn_snapshot snapshot;
    open_latest(&reader, &snapshot, &spec);
    struct tn_value key = {.as.bytes = tn_bytes_of("key")};
    tn_rc rc = tn_lookup(&spec, &key, engine.window, BED_WINDOW_SIZE, &engine.own,
                         &engine.workers[TN_LANE_LONG], &lookup, &err);
    CHECK_OK(rc, err);
    struct tn_value number;
    tn_row_get(&lookup.projection.layout, lookup.kv.row, 1, &number);
    CHECK(!number.null);
    return number.as.i64;
}

static void a_descending_order_counts_where_files_meet(void)
{
    for (size_t i = 0; i < COUNT(descending); i++) {
        write_descending(&descending[i]);
        int64_t number = read_number();
        if (number != descending[i].wins) {
            (void)fprintf(stderr, "case %zu: %" PRId64 "\n", i, number);
        }
        CHECK(number == descending[i].wins);
        end_new();
    }
}

/* ---- keys of floating point ---- */

static void what_paimon_takes_for_another_key_is_refused(void)
{
    static const struct {
        double key;
        tn_rc rc;
    } keys[] = {{1.5, TN_OK},       {(double)NAN, TN_INVALID}, {0.0, TN_OK},
                {-0.0, TN_INVALID}, {(double)INFINITY, TN_OK}, {-(double)INFINITY, TN_OK}};
    static const char *const types[] = {"DOUBLE", "FLOAT"};
    for (size_t t = 0; t < COUNT(types); t++) {
        struct tn_table *table;
        char fields[100];
        (void)snprintf(fields, sizeof fields,
                       "{\"name\":\"k\",\"type\":\"%s\"},{\"name\":\"v\",\"type\":\"DOUBLE\"}",
                       types[t]);
        open_new(&table, fields, "");
        for (size_t i = 0; i < COUNT(keys); i++) {
            struct tn_value values[] = {{.as.f64 = keys[i].key}, {.as.f64 = (double)NAN}};
            tn_rc rc = bed_put_values(table, values, TN_ROW_INSERT, &err);
            CHECK(rc == keys[i].rc);
        }
        tn_table_close(table);
        end_new();
    }
}

static const struct test tests[] = {
    TEST(random_rows_are_merged_as_the_model_does),
    TEST(a_descending_order_counts_where_files_meet),
    TEST(what_paimon_takes_for_another_key_is_refused),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), &engine, 1);
}
