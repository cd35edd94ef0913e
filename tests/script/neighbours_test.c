/* Two tables of one process, each with a script, an executor and workers of its own: whatever the
 * script of the one does, rows of the other go on and are committed. (A flush leaves its files in
 * its worker's arena until it completes, so tables that work at once share no worker.) */
#include "table/bed.h"

#include "given.h"
#include "given_script.h"
#include "random.h"
#include "script/resolver.h"
#include "table/newest.h"
#include "table/state.h"

enum { GOOD, BAD, TABLES };
enum { KEYS = 5, ROWS = 400, ROW_SIZE = 256 };

static struct bed_engine engines[TABLES];

static const char schema_text[] =
    "{\"fields\":[{\"name\":\"k\",\"type\":\"STRING\"},{\"name\":\"n\",\"type\":\"BIGINT\"}],"
    "\"partitionKeys\":[],\"primaryKeys\":[\"k\"],\"options\":{\"bucket\":\"1\","
    "\"file.format\":\"avro\",\"tarn.script\":\"t.lua\"}}";

static const char counting[] =
    "return {merge = function(now, row) row.n = (now and now.n or 0) + 1 return row end}";

/* ---- a table with its script, letters and share of the memory ---- */

struct neighbour {
    struct tn_letter_sink sink; /* first */
    const char *name;
    const char *root;
    struct tn_table *table;
    struct tn_vm vm;
    struct tn_io scripts;
    struct tn_script script;
    struct tn_script_resolver resolver;
    _Alignas(16) unsigned char memory[STATE_SIZE];
    uint64_t put;
    uint64_t letters;
    uint64_t told;
    struct tn_err err;
};

static struct neighbour all[TABLES];
static struct given_columns columns;
static struct sim_disk disk;

static tn_rc sink_begin(struct tn_letter_sink *sink, struct tn_err *err)
{
    (void)sink;
    (void)err;
    return TN_OK;
}

static tn_rc sink_put(struct tn_letter_sink *sink, const struct tn_letter *letter,
                      struct tn_err *err)
{
    (void)err;
    CHECK(strncmp(letter->reason, "t.lua", 5) == 0);
    ((struct neighbour *)(void *)sink)->letters++;
    return TN_OK;
}

static tn_rc sink_end(struct tn_letter_sink *sink, bool success, struct tn_err *err)
{
    (void)sink;
    (void)success;
    (void)err;
    return TN_OK;
}

static void committed(void *user, const struct tn_committed *committed)
{
    struct neighbour *n = user;
    n->told = committed->row_count;
}

static void load_neighbour(struct neighbour *n, const char *text)
{
    static const uint32_t key[] = {0};
    struct tn_vm_spec vm = {
        .memory = n->memory, .size = sizeof n->memory, .io = &n->scripts, .seed = 1};
    struct tn_script_spec spec = {
        .path = "t.lua", .layout = &columns.layout, .keys = {key, 1}, .table = n->name};
    n->scripts.vtable = &given_vtable;
    set_file(0, "t.lua", text, strlen(text));
    tn_rc rc = tn_vm_open(&n->vm, &vm, &n->err);
    CHECK_OK(rc, n->err);
    rc = tn_script_load(&n->script, &n->vm, &spec, &n->err);
    CHECK_OK(rc, n->err);
    tn_script_resolver_init(&n->resolver, &n->script, (struct tn_columns){0});
}

static void open_neighbour(struct neighbour *n, struct tn_env *env)
{
    struct tn_table_spec spec = {.name = n->name,
                                 .identifier = -1,
                                 .compact = true,
                                 .small = true,
                                 .resolver = &n->resolver.resolver,
                                 .letters = &n->sink,
                                 .committed = committed,
                                 .user_data = n};
    tn_rc rc = tn_table_open(env, &spec, &n->table, &n->err);
    CHECK_OK(rc, n->err);
}

static void begin(const char *bad)
{
    static const char *const names[] = {"db.good", "db.bad"};
    static const char *const roots[] = {"db.db/good", "db.db/bad"};
    struct tn_err err;
    sim_disk_init(&disk, BED_DISK_SIZE);
    CHECK_OK(disk.io.vtable->make_dir(&disk.io, ".tarn/", &err), err);
    open_columns(&columns, "k STRING NOT NULL; n BIGINT");
    for (uint32_t i = 0; i < TABLES; i++) {
        struct neighbour *n = &all[i];
        memset(n, 0, sizeof *n);
        n->sink = (struct tn_letter_sink){sink_begin, sink_put, sink_end};
        n->name = names[i];
        n->root = roots[i];
        load_neighbour(n, i == GOOD ? counting : bad);
        bed_engine_start(&engines[i], &disk.io, 1 + i);
        bed_make_table(&engines[i], n->name, schema_text);
        open_neighbour(n, &engines[i].env);
    }
}

static void end(void)
{
    for (uint32_t i = 0; i < TABLES; i++) {
        tn_table_close(all[i].table);
        tn_vm_close(&all[i].vm);
    }
    sim_disk_deinit(&disk);
}

static tn_rc put(struct neighbour *n)
{
    static const char *const keys[KEYS] = {"a", "b", "c", "d", "e"};
    unsigned char data[ROW_SIZE];
    const char *const texts[] = {keys[n->put % KEYS], "0"};
    struct tn_row row = pack_texts(&columns, texts, data);
    struct tn_origin origin = {.position = (int64_t)n->put};
    tn_rc rc;
    while ((rc = tn_table_put_from(n->table, row, TN_ROW_INSERT, &origin, &n->err)) == TN_AGAIN) {
        rc = tn_table_turn(n->table, true, &n->err);
        if (rc != TN_OK) {
            return rc;
        }
    }
    n->put += rc == TN_OK;
    return rc;
}

static tn_rc finish(struct neighbour *n)
{
    return tn_table_finish(n->table, n->put, &n->err);
}

/* Each row of the table that counts is in its count. */
static void check_good(void)
{
    struct neighbour *n = &all[GOOD];
    struct bed_engine *engine = &engines[GOOD];
    struct tn_kv kv;
    uint64_t rows = 0;
    size_t mark = tn_arena_mark(&engine->own);
    struct tn_scan *scan = newest_open(n->root, &engine->workers[TN_LANE_LONG], &engine->own,
                                       engine->window, BED_WINDOW_SIZE);
    CHECK(scan != NULL);
    while (newest_next(scan, &kv)) {
        struct tn_value value;
        tn_row_get(&columns.layout, kv.row, 1, &value);
        rows += (uint64_t)value.as.i64;
    }
    CHECK(rows == n->put && n->told == n->put && n->letters == 0);
    tn_arena_reset(&engine->own, mark);
}

/* ---- tests ---- */

static const char *const misdeeds[] = {
    "return {merge = function() while true do end end}",
    "return {merge = function() while true do pcall(error) end end}",
    "return {merge = function() error('no') end}",
    "return {merge = function() local t = {} while true do t[#t + 1] = {#t} end end}",
    "return {merge = function() return string.rep('x', 1 << 30) end}",
    "return {merge = function(now, row) return {n = 'many'} end}",
    "return {merge = function(now, row) x = 1 return row end}",
    "return {merge = function(now, row) row.k = 'z' return row end}",
};

/* Rows come to both in turn. Less than a hundred of the bad one fail before a cut, and it goes on;
 * more park its script. */
static void run_beside(const char *bad, uint64_t seed)
{
    uint64_t random = seed;
    tn_rc bad_rc = TN_OK;
    begin(bad);
    for (uint32_t i = 0; i < ROWS; i++) {
        tn_rc rc = put(&all[GOOD]);
        CHECK_OK(rc, all[GOOD].err);
        bad_rc = bad_rc == TN_OK ? put(&all[BAD]) : bad_rc;
        if (random_below(&random, 40) == 0) {
            bad_rc = bad_rc == TN_OK ? finish(&all[BAD]) : bad_rc;
        }
        if (random_below(&random, 60) == 0) {
            rc = finish(&all[GOOD]);
            CHECK_OK(rc, all[GOOD].err);
            check_good();
        }
    }
    bad_rc = bad_rc == TN_OK ? finish(&all[BAD]) : bad_rc;
    CHECK(bad_rc == TN_CANCELED && all[BAD].told < ROWS && all[BAD].letters < ROWS);
    for (uint32_t i = 0; i < ROWS; i++) { /* its rows wait, and it is asked again now and then */
        tn_rc rc = put(&all[GOOD]);
        CHECK_OK(rc, all[GOOD].err);
        rc = i % 100 == 0 ? tn_table_turn(all[BAD].table, true, &all[BAD].err) : TN_OK;
        CHECK(rc == TN_OK || rc == TN_CANCELED);
    }
    tn_rc rc = finish(&all[GOOD]);
    CHECK_OK(rc, all[GOOD].err);
    check_good();
    end();
}

static void a_script_harms_its_own_table_only(void)
{
    uint64_t seed = given_number("SEED", 1);
    for (uint32_t i = 0; i < COUNT(misdeeds); i++) {
        run_beside(misdeeds[i], seed + i);
    }
}

/* A table that ended between two turns says why, and says it again. */
static void a_table_that_ended_says_why_each_time(void)
{
    static const char why[] = "the disk is on fire";
    struct tn_err err = {0};
    begin(counting);
    struct neighbour *n = &all[BAD];
    tn_rc rc = put(n);
    CHECK_OK(rc, n->err);
    rc = put(&all[GOOD]);
    CHECK_OK(rc, all[GOOD].err);
    rc = tn_table_cut(n->table, 1, &n->err);
    CHECK_OK(rc, n->err);
    (void)tn_err_set(&err, TN_CORRUPT, 0, "%s", why);
    tn_table_break(n->table, TN_CORRUPT, &err);
    rc = finish(&all[GOOD]);
    CHECK_OK(rc, all[GOOD].err);
    for (int i = 0; i < 4; i++) {
        rc = i % 2 ? finish(n) : tn_table_turn(n->table, true, &n->err);
        CHECK(rc == TN_CORRUPT && strstr(n->err.text, why) && strstr(n->err.text, "opened again"));
    }
    check_good();
    end();
}

static const struct test tests[] = {
    TEST(a_script_harms_its_own_table_only),
    TEST(a_table_that_ended_says_why_each_time),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), engines, COUNT(engines));
}
