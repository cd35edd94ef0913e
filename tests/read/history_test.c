/* The life of a key: random tables of all engines, where what history ends with is what a lookup
 * finds, its steps come in the order of the merge, and the changes of the steps lead to the row;
 * and tables of cases for what each step is said to have done. */
#include "read/history.h"

#include "format/binrow.h"
#include "given.h"
#include "read/lookup.h"
#include "table/bed.h"

enum { KEYS = 9, ROUNDS = 12, STEPS_MAX = 64, FIELDS = 4 };

static struct bed_engine engine;
static struct sim_disk disk;
static struct tn_err err;
static struct bed_reader reader;
static struct tn_snapshot snapshot;
static struct tn_lookup lookup;
static struct tn_history history;

/* ---- tables: k the key, n and g numbers, a a text ---- */

struct engine_case {
    const char *options;
    bool retracts;
};

static const struct engine_case engines[] = {
    {"\"merge-engine\":\"deduplicate\"", true},
    {"\"sequence.field\":\"g\"", true},
    {"\"ignore-delete\":\"true\",\"sequence.field\":\"g\",\"sequence.field.sort-order\":"
     "\"descending\"",
     true},
    {"\"changelog-producer\":\"lookup\"", true},
    {"\"merge-engine\":\"first-row\"", false},
    {"\"merge-engine\":\"partial-update\"", false},
    {"\"merge-engine\":\"partial-update\",\"fields.g.sequence-group\":\"a\","
     "\"partial-update.remove-record-on-sequence-group\":\"g\"",
     true},
    {"\"merge-engine\":\"partial-update\",\"changelog-producer\":\"lookup\"", false},
    {"\"merge-engine\":\"aggregation\",\"fields.n.aggregate-function\":\"sum\"", true},
    {"\"merge-engine\":\"aggregation\",\"fields.n.aggregate-function\":\"sum\","
     "\"fields.a.aggregate-function\":\"listagg\",\"fields.a.ignore-retract\":\"true\","
     "\"changelog-producer\":\"full-compaction\",\"full-compaction.delta-commits\":\"4\"",
     true},
};

static void create(const char *options, uint64_t seed, bool compacts)
{
    static struct bed_scenario scenario;
    scenario = (struct bed_scenario){.seed = seed};
    (void)snprintf(
        scenario.schema, sizeof scenario.schema,
        "{\"fields\":[{\"name\":\"k\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"BIGINT\"},"
        "{\"name\":\"g\",\"type\":\"BIGINT\"},{\"name\":\"a\",\"type\":\"STRING\"}],"
        "\"primaryKeys\":[\"k\"],\"options\":{\"file.format\":\"avro\",\"bucket\":\"1\","
        "\"num-sorted-run.compaction-trigger\":\"3\",\"write-only\":\"%s\",%s}}",
        compacts ? "false" : "true", options);
    sim_disk_init(&disk, BED_DISK_SIZE);
    bed_create(&engine, &disk.io, &scenario);
    tn_rc rc = disk.io.vtable->make_dir(&disk.io, ".tarn/", &err);
    CHECK_OK(rc, err);
    bed_engine_start(&engine, &disk.io, seed);
}

enum { NO = INT32_MIN }; /* NULL */

struct row {
    enum tn_row_kind kind;
    int32_t k;
    int32_t n;
    int32_t g;
    const char *a;
};

static void put(struct tn_table *table, const struct row *row)
{
    struct tn_value values[FIELDS] = {
        {.as.i64 = row->k},
        {.null = row->n == NO, .as.i64 = row->n == NO ? 0 : row->n},
        {.null = row->g == NO, .as.i64 = row->g == NO ? 0 : row->g},
        {.null = !row->a, .as.bytes = tn_bytes_of(row->a ? row->a : "")}};
    tn_rc rc = bed_put_values(table, values, row->kind, &err);
    CHECK_OK(rc, err);
}

static struct tn_table *open_table(bool full)
{
    struct tn_table *table;
    struct tn_table_spec spec = {
        .name = BED_TABLE, .identifier = -1, .compact = true, .full = full, .dedicated = full};
    tn_rc rc = tn_table_open(&engine.env, &spec, &table, &err);
    CHECK_OK(rc, err);
    return table;
}

static void commit(struct tn_table *table, uint64_t position)
{
    tn_rc rc = tn_table_finish(table, position, &err);
    CHECK_OK(rc, err);
}

static void write_random(const struct engine_case *e, uint64_t *seed)
{
    static const char *const texts[] = {NULL, "a", "bc", "a longer text than others"};
    struct tn_table *table = open_table(false);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = random_below(seed, 12); i > 0; i--) {
            bool retracts = e->retracts && random_below(seed, 4) == 0;
            struct row row = {.kind = retracts ? TN_ROW_DELETE : TN_ROW_INSERT,
                              .k = (int32_t)random_below(seed, KEYS),
                              .n = random_below(seed, 4) ? (int32_t)random_below(seed, 50) : NO,
                              .g = random_below(seed, 4) ? (int32_t)random_below(seed, 9) : NO,
                              .a = texts[random_below(seed, 4)]};
            put(table, &row);
        }
        commit(table, round + 1);
    }
    tn_table_close(table);
}

/* ---- reading ---- */

static struct tn_scan_spec open_newest(void)
{
    int64_t last;
    tn_arena_reset(&engine.own, 0);
    const char *problem = bed_read_open(&engine, &reader);
    CHECK(!problem);
    tn_rc rc = tn_snapshot_latest(&disk.io, BED_ROOT, &engine.own, &last, &err);
    CHECK_OK(rc, err);
    rc = tn_snapshot_read(&disk.io, BED_ROOT, last, &engine.own, &snapshot, &err);
    CHECK_OK(rc, err);
    return (struct tn_scan_spec){.root = BED_ROOT,
                                 .snapshot = &snapshot,
                                 .schema = reader.schema,
                                 .options = &reader.options,
                                 .schemas = &reader.schemas};
}

/* What was told: the versions, and the row that the changes lead to. */
static struct told {
    enum tn_history_deed deeds[STEPS_MAX];
    enum tn_history_order orders[STEPS_MAX];
    bool changed[STEPS_MAX][FIELDS];
    char why[TN_ERR_TEXT_SIZE];
    struct tn_kv before;
    unsigned char before_row[512];
    struct tn_value row[FIELDS]; /* numbers, and sizes of texts */
    uint32_t count;
} told;

static uint32_t deed_counts[TN_HISTORY_UNREACHED + 1]; /* of all tables */

static void apply(const struct tn_history *h, const struct tn_history_step *step)
{
    const struct tn_row_layout *layout = &h->projection.layout;
    bool all = step->deed == TN_HISTORY_BEGINS || step->deed == TN_HISTORY_ALONE;
    struct tn_row row = step->deed == TN_HISTORY_ALONE ? step->kv->row : step->row;
    for (uint32_t c = 0; c < layout->column_count; c++) {
        told.changed[told.count][c] = step->deed == TN_HISTORY_COUNTS && step->changed[c];
        if (all || told.changed[told.count][c]) {
            tn_row_get(layout, row, c, &told.row[c]);
            told.row[c].as.i64 = layout->columns[c].slot == TN_SLOT_BYTES && !told.row[c].null
                                     ? (int64_t)told.row[c].as.bytes.size
                                     : told.row[c].as.i64;
        }
    }
}

static tn_rc take_step(void *user, const struct tn_history *h, const struct tn_history_step *step,
                       struct tn_err *e)
{
    (void)user;
    (void)e;
    CHECK(told.count < STEPS_MAX && step->number == told.count + 1);
    CHECK(strncmp(step->file, "bucket-0/data-", 14) == 0 && !step->bad);
    if (told.count > 0 && step->deed != TN_HISTORY_UNSEEN) {
        CHECK(!tn_kv_newer(&h->projection.order, &told.before, step->kv));
    }
    CHECK(step->kv->row.size <= sizeof told.before_row);
    memcpy(told.before_row, step->kv->row.data, step->kv->row.size);
    told.before = *step->kv;
    told.before.row.data = told.before_row;
    told.deeds[told.count] = step->deed;
    deed_counts[step->deed]++;
    told.orders[told.count] = step->order;
    if (step->why) {
        (void)snprintf(told.why, sizeof told.why, "%s", step->why);
    }
    apply(h, step);
    told.count++;
    return TN_OK;
}

static tn_rc tell(const struct tn_scan_spec *scan, int64_t key)
{
    struct tn_value value = {.as.i64 = key};
    struct tn_history_spec spec = {.scan = scan, .key = &value, .step = take_step};
    size_t used = engine.workers[TN_LANE_LONG].arena.used;
    told = (struct told){0};
    tn_rc rc = tn_history(&spec, engine.window, BED_WINDOW_SIZE, &engine.own,
                          &engine.workers[TN_LANE_LONG], &history, &err);
    CHECK(engine.workers[TN_LANE_LONG].arena.used == used);
    CHECK(told.count == history.version_count);
    return rc;
}

static void check_row_of_steps(struct tn_row row)
{
    const struct tn_row_layout *layout = &history.projection.layout;
    for (uint32_t c = 0; c < layout->column_count; c++) {
        struct tn_value value;
        tn_row_get(layout, row, c, &value);
        CHECK(value.null == told.row[c].null);
        int64_t number =
            layout->columns[c].slot == TN_SLOT_BYTES ? (int64_t)value.as.bytes.size : value.as.i64;
        CHECK(value.null || number == told.row[c].as.i64);
    }
}

static void check_key(const struct tn_scan_spec *spec, int64_t key)
{
    static unsigned char row[4096];
    struct tn_value value = {.as.i64 = key};
    size_t mark = tn_arena_mark(&engine.own);
    tn_rc found = tn_lookup(spec, &value, engine.window, BED_WINDOW_SIZE, &engine.own,
                            &engine.workers[TN_LANE_LONG], &lookup, &err);
    uint32_t size = found == TN_OK ? lookup.kv.row.size : 0;
    CHECK(size <= sizeof row && (found == TN_OK || found == TN_ABSENT));
    memcpy(row, size > 0 ? lookup.kv.row.data : row, size);
    tn_rc rc = tell(spec, key);
    CHECK(rc == TN_OK || (rc == TN_ABSENT && found == TN_ABSENT));
    bool seen = rc == TN_OK && history.there && !tn_row_kind_retracts(history.kv.kind);
    CHECK(seen == (found == TN_OK));
    if (seen) {
        CHECK(size == history.kv.row.size && memcmp(row, history.kv.row.data, size) == 0);
        CHECK(lookup.kv.sequence == history.kv.sequence);
        check_row_of_steps(history.kv.row);
    }
    tn_arena_reset(&engine.own, mark);
}

/* Or the tables are no proof of it. What ignore-delete passes over tarn doesn't write. */
static bool all_was_seen(void)
{
    bool all = true;
    for (int deed = 0; deed < TN_HISTORY_FAILS; deed++) {
        all = all && (deed_counts[deed] > 0 || deed == TN_HISTORY_PASSED);
    }
    return all;
}

static void a_life_ends_with_what_a_lookup_finds(void)
{
    uint64_t first = given_number("SEED", 1);
    for (uint64_t i = 0; i < 60 || (i < 600 && !all_was_seen()); i++) {
        uint64_t seed = first * 1000 + i;
        const struct engine_case *e = &engines[i % COUNT(engines)];
        create(e->options, seed, random_below(&seed, 3) > 0);
        write_random(e, &seed);
        struct tn_scan_spec spec = open_newest();
        for (int64_t key = 0; key <= KEYS; key++) {
            check_key(&spec, key);
        }
        uint32_t some[] = {3, 1}; /* what decides over them is read, too */
        spec.fields = some;
        spec.field_count = COUNT(some);
        for (int64_t key = 0; key < KEYS; key++) {
            check_key(&spec, key);
        }
        bed_engine_stop(&engine);
        sim_disk_deinit(&disk);
    }
    CHECK(all_was_seen());
}

/* ---- cases: one key, a version a commit ---- */

#define A TN_ROW_INSERT
#define D TN_ROW_DELETE

static const struct deed_case {
    const char *options;
    struct row rows[5];
    uint32_t count;
    uint32_t full_behind; /* all is compacted behind so many commits; 0: never */
    const char *told;     /* a letter a step: deeds below, then + when there is a row */
    const char *changed;  /* columns of the last step */
} deed_cases[] = {
    {"\"bucket\":\"1\"", {{A, 7, 1, 1, "a"}}, 1, 0, "a+", ""},
    {"\"bucket\":\"1\"", {{A, 7, 1, 1, "a"}, {A, 7, 2, 1, "a"}}, 2, 0, "bc+", "n"},
    {"\"bucket\":\"1\"", {{A, 7, 1, 1, "a"}, {D, 7, 1, 1, "a"}}, 2, 0, "bc-", ""},
    {"\"bucket\":\"1\"", {{D, 7, 1, 1, "a"}}, 1, 0, "a-", ""},
    {"\"ignore-delete\":\"true\"", {{A, 7, 1, 1, "a"}, {A, 7, 3, 1, NULL}}, 2, 0, "bc+", "na"},
    {"\"sequence.field\":\"g\"", {{A, 7, 1, 9, "a"}, {A, 7, 2, 3, "b"}}, 2, 0, "bc+", "nga"},
    {"\"merge-engine\":\"first-row\"", {{A, 7, 1, 1, "a"}, {A, 7, 2, 1, "b"}}, 2, 0, "uu-", ""},
    {"\"merge-engine\":\"first-row\"", {{A, 7, 1, 1, "a"}, {A, 7, 2, 1, "b"}}, 2, 1, "au+", ""},
    {"\"merge-engine\":\"partial-update\"",
     {{A, 7, 1, NO, NULL}, {A, 7, NO, NO, "x"}, {A, 7, NO, NO, "x"}},
     3,
     0,
     "bcc+",
     ""},
    {"\"merge-engine\":\"partial-update\",\"partial-update.remove-record-on-delete\":\"true\"",
     {{A, 7, 1, NO, NULL}, {D, 7, NO, NO, "x"}, {A, 7, NO, NO, "x"}},
     3,
     0,
     "bcc+",
     "a"},
    {"\"merge-engine\":\"aggregation\",\"fields.n.aggregate-function\":\"sum\"",
     {{A, 7, 5, NO, NULL}, {D, 7, 2, NO, NULL}, {A, 7, 4, 1, NULL}},
     3,
     0,
     "bcc+",
     "ng"},
};

static char letter_of(enum tn_history_deed deed)
{
    static const char letters[] = {
        [TN_HISTORY_ALONE] = 'a',  [TN_HISTORY_BEGINS] = 'b',    [TN_HISTORY_COUNTS] = 'c',
        [TN_HISTORY_PASSED] = 'p', [TN_HISTORY_DEEPER] = 'd',    [TN_HISTORY_UNSEEN] = 'u',
        [TN_HISTORY_FAILS] = 'f',  [TN_HISTORY_UNREACHED] = 'r',
    };
    return letters[deed];
}

static void compact_all(void)
{
    struct tn_table *table = open_table(true);
    tn_rc rc;
    while ((rc = tn_table_touch(table, tn_binrow_empty, 0, &err)) == TN_AGAIN) {
        rc = tn_table_turn(table, true, &err);
        CHECK_OK(rc, err);
    }
    CHECK_OK(rc, err);
    rc = tn_table_finish(table, 0, &err);
    CHECK_OK(rc, err);
    tn_table_close(table);
}

static void check_case(const struct deed_case *c)
{
    char got[STEPS_MAX + 2] = "";
    char changed[FIELDS + 1] = "";
    create(c->options, 1, false);
    for (uint32_t i = 0; i < c->count; i++) {
        struct tn_table *table = open_table(false);
        put(table, &c->rows[i]);
        commit(table, i + 1);
        tn_table_close(table);
        if (i + 1 == c->full_behind) {
            compact_all();
        }
    }
    struct tn_scan_spec spec = open_newest();
    tn_rc rc = tell(&spec, 7);
    for (uint32_t i = 0; i < told.count; i++) {
        got[i] = letter_of(told.deeds[i]);
    }
    bool shown = history.there && !tn_row_kind_retracts(history.kv.kind);
    got[told.count] = '!';
    if (rc == TN_OK) {
        got[told.count] = shown ? '+' : '-';
    }
    for (uint32_t f = 0, n = 0; f < FIELDS; f++) {
        if (told.changed[told.count - 1][f]) {
            changed[n++] = reader.schema->fields[f].name[0];
        }
    }
    if (strcmp(got, c->told) != 0 || strcmp(changed, c->changed) != 0) {
        (void)fprintf(stderr, "%s: %s, %s\n", c->options, got, changed);
    }
    CHECK(strcmp(got, c->told) == 0 && strcmp(changed, c->changed) == 0);
    sim_disk_deinit(&disk);
}

static void each_step_says_what_it_did(void)
{
    for (size_t i = 0; i < COUNT(deed_cases); i++) {
        check_case(&deed_cases[i]);
    }
}

/* Written while the table had another option, or by somebody who doesn't look. */
static void a_version_that_cant_be_merged_is_told_with_the_rest(void)
{
    static const struct row rows[] = {
        {A, 7, 1, NO, NULL}, {D, 7, NO, NO, "x"}, {A, 7, NO, NO, "x"}};
    create(
        "\"merge-engine\":\"partial-update\",\"partial-update.remove-record-on-delete\":\"true\"",
        1, false);
    struct tn_table *table = open_table(false);
    for (uint32_t i = 0; i < COUNT(rows); i++) {
        put(table, &rows[i]);
        commit(table, i + 1);
    }
    tn_table_close(table);
    struct tn_scan_spec spec = open_newest();
    reader.options.partial_update_removes = false;
    tn_rc rc = tell(&spec, 7);
    CHECK(rc == TN_INVALID && !history.there && told.count == COUNT(rows));
    CHECK(told.deeds[0] == TN_HISTORY_BEGINS && told.deeds[1] == TN_HISTORY_FAILS &&
          told.deeds[2] == TN_HISTORY_UNREACHED);
    CHECK(strstr(told.why, "can't take a -D") && strstr(err.text, told.why));
    CHECK(strstr(err.text, "key {\"k\":7}: "));
    sim_disk_deinit(&disk);
}

/* The option came when the delete was there, as a lookup sees it, too. */
static void an_ignored_delete_is_passed_over(void)
{
    create("\"sequence.field\":\"g\"", 1, false);
    struct tn_table *table = open_table(false);
    put(table, &(struct row){A, 7, 1, 1, "a"});
    commit(table, 1);
    put(table, &(struct row){D, 7, 1, 2, "a"});
    commit(table, 2);
    tn_table_close(table);
    struct tn_scan_spec spec = open_newest();
    reader.options.ignore_delete = true;
    check_key(&spec, 7);
    CHECK(told.count == 2 && told.deeds[0] == TN_HISTORY_BEGINS &&
          told.deeds[1] == TN_HISTORY_PASSED);
    CHECK(history.there && history.kv.kind == A);
    sim_disk_deinit(&disk);
}

static void a_key_without_a_version_has_no_life(void)
{
    create("\"write-buffer-size\":\"1 mb\"", 1, true);
    struct tn_table *table = open_table(false);
    put(table, &(struct row){.k = 3, .n = 1});
    commit(table, 1);
    tn_table_close(table);
    struct tn_scan_spec spec = open_newest();
    tn_rc rc = tell(&spec, 4);
    CHECK(rc == TN_ABSENT && told.count == 0);
    rc = tell(&spec, 3);
    CHECK_OK(rc, err);
    CHECK(told.count == 1 && told.orders[0] == TN_HISTORY_FIRST && history.file_count == 1);
    sim_disk_deinit(&disk);
}

static const struct test tests[] = {
    TEST(a_life_ends_with_what_a_lookup_finds),
    TEST(each_step_says_what_it_did),
    TEST(a_version_that_cant_be_merged_is_told_with_the_rest),
    TEST(an_ignored_delete_is_passed_over),
    TEST(a_key_without_a_version_has_no_life),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), &engine, 1);
}
