/* The C API and a table's script: rows go through it, and what it fails on is told. */
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "check.h"
#include "tarn.h"
#include "temp.h"

static char folder[TEMP_SIZE];
static tarn_error error;

static const char columns[] =
    "\"fields\":[{\"name\":\"k\",\"type\":\"STRING\"},{\"name\":\"n\",\"type\":\"BIGINT\"},"
    "{\"name\":\"samples\",\"type\":\"BIGINT\"}],\"primaryKeys\":[\"k\"]";

/* Splits what comes by the letters of its key, and sums; it fails on 13 and is beside itself on
 * 666. */
static const char sums[] = "local m = {}\n"
                           "function m.map(r)\n"
                           "    if r.n == 0 then return nil end\n"
                           "    local rows = {}\n"
                           "    for letter in r.k:gmatch('.') do\n"
                           "        rows[#rows + 1] = {k = letter, n = r.n}\n"
                           "    end\n"
                           "    return rows\n"
                           "end\n"
                           "function m.merge(now, row)\n"
                           "    if row.n == 13 then error('no thirteen') end\n"
                           "    while row.n == 666 do end\n"
                           "    row.n = row.n + (now and now.n or 0)\n"
                           "    row.samples = 1 + (now and now.samples or 0)\n"
                           "    return row\n"
                           "end\n"
                           "return m\n";

static void write_file(const char *name, const char *text)
{
    char path[TEMP_SIZE + 32];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* The script lies beside the warehouse, where relative paths begin. */
static tarn_engine *begin_in(const char *script, void *memory, uint64_t memory_size)
{
    static char warehouse[TEMP_SIZE + 32];
    tarn_engine *engine;
    temp_make(folder);
    write_file("sums.lua", script);
    (void)snprintf(warehouse, sizeof warehouse, "%s/lake", folder);
    tarn_engine_options options = {.size = sizeof options,
                                   .warehouse = warehouse,
                                   .memory = memory,
                                   .memory_size = memory_size};
    tarn_rc rc = tarn_open(&options, &engine, &error);
    CHECK_OK((int)rc, error);
    return engine;
}

static tarn_engine *begin(const char *script)
{
    return begin_in(script, NULL, 0);
}

static tarn_rc create(tarn_engine *engine, const char *script)
{
    char schema[1024];
    (void)snprintf(schema, sizeof schema,
                   "{%s,\"options\":{\"bucket\":\"1\",\"tarn.script\":\"%s\"}}", columns, script);
    return tarn_create(engine, "d.t", schema, &error);
}

static void end(tarn_engine *engine)
{
    tarn_close(engine);
    temp_remove(folder);
}

static struct {
    int count;
    char json[256];
    char reason[256];
    int64_t put;
    uint32_t part;
} told;

static void note_letter(void *user, const tarn_dead_letter *letter)
{
    CHECK(user == &told && letter->json && letter->json_size == strlen(letter->json));
    told.count++;
    (void)snprintf(told.json, sizeof told.json, "%s", letter->json);
    (void)snprintf(told.reason, sizeof told.reason, "%s", letter->reason);
    told.put = letter->put;
    told.part = letter->part;
}

static tarn_table *open_table(tarn_engine *engine, bool listens)
{
    tarn_table *table;
    memset(&told, 0, sizeof told);
    tarn_table_options options = {.size = sizeof options,
                                  .name = "d.t",
                                  .dead_letter = listens ? note_letter : NULL,
                                  .user = &told};
    tarn_rc rc = tarn_table_open(engine, &options, &table, &error);
    CHECK_OK((int)rc, error);
    return table;
}

static tarn_rc put(tarn_table *table, const char *json)
{
    return tarn_put_json(table, TARN_INSERT, json, strlen(json), &error);
}

static void commit(tarn_table *table)
{
    tarn_rc rc = tarn_commit(table, NULL, &error);
    CHECK_OK((int)rc, error);
}

static void check_rows(tarn_engine *engine, const char *want)
{
    char got[1024] = "";
    tarn_scan *scan;
    tarn_scan_options options = {.size = sizeof options, .table = "d.t"};
    tarn_rc rc = tarn_scan_open(engine, &options, &scan, &error);
    CHECK_OK((int)rc, error);
    while ((rc = tarn_scan_next(scan, &error)) == TARN_OK) {
        const char *json;
        size_t size;
        rc = tarn_scan_json(scan, &json, &size, &error);
        CHECK_OK((int)rc, error);
        size_t at = strlen(got);
        (void)snprintf(got + at, sizeof got - at, "%s\n", json);
    }
    CHECK(rc == TARN_ABSENT);
    tarn_scan_close(scan);
    if (strcmp(got, want) != 0) {
        FAIL("got\n%swant\n%s", got, want);
    }
}

static void puts_go_through_map_and_merge(void)
{
    tarn_engine *engine = begin(sums);
    tarn_rc rc = create(engine, "sums.lua");
    CHECK_OK((int)rc, error);
    tarn_table *table = open_table(engine, true);
    rc = put(table, "{\"k\":\"ab\",\"n\":1,\"unknown\":[{}]}");
    CHECK_OK((int)rc, error);
    rc = put(table, "{\"k\":\"b\",\"n\":0}"); /* dropped */
    CHECK_OK((int)rc, error);
    commit(table);
    tarn_row_begin(table, TARN_INSERT);
    rc = tarn_row_set_text(table, tarn_table_column(table, "k"), "bb", 2, &error);
    CHECK_OK((int)rc, error);
    rc = tarn_row_set_i64(table, tarn_table_column(table, "n"), 20, &error);
    CHECK_OK((int)rc, error);
    rc = tarn_put(table, &error);
    CHECK_OK((int)rc, error);
    commit(table);
    check_rows(engine,
               "{\"k\":\"a\",\"n\":1,\"samples\":1}\n{\"k\":\"b\",\"n\":41,\"samples\":3}\n");
    rc = put(table, "{\"n\":1}");
    CHECK(rc == TARN_INVALID && strstr(error.text, "sums.lua:5: attempt to index a nil value"));
    CHECK(told.count == 0);
    tarn_table_close(table);
    end(engine);
}

static void a_row_that_merge_fails_on_is_told_and_changes_nothing(void)
{
    tarn_engine *engine = begin(sums);
    tarn_rc rc = create(engine, "sums.lua");
    CHECK_OK((int)rc, error);
    tarn_table *table = open_table(engine, true);
    rc = put(table, "{\"k\":\"a\",\"n\":1}");
    CHECK_OK((int)rc, error);
    rc = put(table, "{\"k\":\"ca\",\"n\":13}");
    CHECK_OK((int)rc, error);
    commit(table);
    CHECK(told.count == 2 && told.put == 1 && told.part == 0); /* in the order of the keys */
    CHECK(strcmp(told.json, "{\"k\":\"c\",\"n\":13,\"samples\":null}") == 0);
    CHECK(strcmp(told.reason, "sums.lua:11: no thirteen") == 0);
    rc = put(table, "{\"k\":\"c\",\"n\":666}");
    CHECK_OK((int)rc, error);
    commit(table);
    CHECK(told.count == 3 && strstr(told.reason, "sums.lua:12: its budget of instructions"));
    check_rows(engine, "{\"k\":\"a\",\"n\":1,\"samples\":1}\n");
    end(engine); /* with the table open */
}

/* Nobody listens: the commit says it, and what was put is not in. */
static void a_letter_that_nobody_wants_fails_the_commit(void)
{
    tarn_engine *engine = begin(sums);
    tarn_rc rc = create(engine, "sums.lua");
    CHECK_OK((int)rc, error);
    tarn_table *table = open_table(engine, false);
    rc = put(table, "{\"k\":\"a\",\"n\":13}");
    CHECK_OK((int)rc, error);
    rc = tarn_commit(table, NULL, &error);
    CHECK(rc == TARN_UNSUPPORTED && strstr(error.text, "sums.lua:11: no thirteen"));
    tarn_table_close(table);
    table = open_table(engine, false);
    rc = put(table, "{\"k\":\"a\",\"n\":12}");
    CHECK_OK((int)rc, error);
    commit(table);
    check_rows(engine, "{\"k\":\"a\",\"n\":12,\"samples\":1}\n");
    end(engine);
}

static void a_script_that_fails_a_hundred_times_is_parked(void)
{
    tarn_engine *engine = begin(sums);
    tarn_rc rc = create(engine, "sums.lua");
    CHECK_OK((int)rc, error);
    tarn_table *table = open_table(engine, true);
    for (int i = 0; i < 150; i++) {
        rc = put(table, "{\"k\":\"a\",\"n\":13}");
        CHECK_OK((int)rc, error);
    }
    rc = tarn_commit(table, NULL, &error);
    CHECK(rc == TARN_CANCELED && strstr(error.text, "sums.lua is parked after 100 failures"));
    tarn_table_close(table);
    table = open_table(engine, true);
    rc = put(table, "{\"k\":\"a\",\"n\":14}");
    CHECK_OK((int)rc, error);
    commit(table);
    check_rows(engine, "{\"k\":\"a\",\"n\":14,\"samples\":1}\n");
    end(engine);
}

static void a_script_that_cannot_be_used_is_refused_with_its_path(void)
{
    tarn_engine *engine = begin("return {merge = 1}");
    tarn_rc rc = create(engine, "sums.lua");
    CHECK(rc == TARN_INVALID && strstr(error.text, folder) && strstr(error.text, "/sums.lua: "));
    CHECK(strstr(error.text, "merge is a number; want a function"));
    rc = create(engine, "none.lua");
    CHECK(rc == TARN_INVALID && strstr(error.text, folder) && strstr(error.text, "/none.lua: "));
    write_file("sums.lua", sums);
    rc = create(engine, "sums.lua");
    CHECK_OK((int)rc, error);
    tarn_table *table = open_table(engine, false);
    rc = create(engine, "sums.lua");
    CHECK(rc == TARN_EXISTS || rc == TARN_AGAIN);
    tarn_table_close(table);
    write_file("sums.lua", "return {");
    tarn_table_options options = {.size = sizeof options, .name = "d.t"};
    rc = tarn_table_open(engine, &options, &table, &error);
    CHECK(rc == TARN_INVALID && strstr(error.text, "/sums.lua: sums.lua:1: "));
    write_file("sums.lua", sums);
    tarn_table_close(open_table(engine, false));
    end(engine);
}

/* A scan has the memory that a script would take. */
static void no_table_with_a_script_is_made_while_a_scan_is_open(void)
{
    tarn_engine *engine = begin(sums);
    tarn_rc rc = create(engine, "sums.lua");
    CHECK_OK((int)rc, error);
    tarn_scan *scan;
    tarn_scan_options options = {.size = sizeof options, .table = "d.t"};
    rc = tarn_scan_open(engine, &options, &scan, &error);
    CHECK_OK((int)rc, error);
    rc = tarn_create(engine, "d.u",
                     "{\"fields\":[{\"name\":\"k\",\"type\":\"INT\"}],\"primaryKeys\":"
                     "[\"k\"],\"options\":{\"bucket\":\"1\",\"tarn.script\":\"sums.lua\"}}",
                     &error);
    CHECK(rc == TARN_AGAIN && strstr(error.text, "a scan is open"));
    tarn_scan_close(scan);
    end(engine);
}

/* What both of its states hold is found again in the block that the caller gave. */
/* What a heap has given back is poisoned, and may be looked at here. */
__attribute__((no_sanitize("address"))) static size_t count_needles(const unsigned char *block,
                                                                    size_t size)
{
    static const char needle[] = "needle";
    size_t found = 0;
    size_t same = 0;
    for (size_t i = 0; i < size; i++) {
        same = block[i] == (unsigned char)needle[same] ? same + 1 : block[i] == 'n';
        found += needle[same] == 0;
        same = needle[same] == 0 ? 0 : same;
    }
    return found;
}

static void a_script_s_states_lie_in_the_caller_s_block(void)
{
    enum { BLOCK_SIZE = 16 << 20, HELD = 500, STATES = 2 };
    static _Alignas(max_align_t) unsigned char block[BLOCK_SIZE];
    static const char holding[] = "local all = {}\n"
                                  "for i = 1, 500 do all[i] = ('needle'):rep(100) .. i end\n"
                                  "return {map = function(r) r.n = #all return r end,\n"
                                  "merge = function(now, row) row.samples = #all return row end}\n";
    tarn_engine *engine = begin_in(holding, block, sizeof block);
    tarn_rc rc = create(engine, "sums.lua");
    CHECK_OK((int)rc, error);
    tarn_table *table = open_table(engine, true);
    CHECK(count_needles(block, sizeof block) >= STATES * HELD * 100);
    rc = put(table, "{\"k\":\"a\"}");
    CHECK_OK((int)rc, error);
    commit(table);
    check_rows(engine, "{\"k\":\"a\",\"n\":500,\"samples\":500}\n");
    end(engine);
}

/* Of each record 61 rows; of one that it saw before none, for it fails. */
static const char once[] = "local m, seen = {}, {}\n"
                           "function m.map(r)\n"
                           "    if seen[r.k] then error('again') end\n"
                           "    seen[r.k] = true\n"
                           "    local rows = {}\n"
                           "    for i = 1, 61 do\n"
                           "        rows[i] = {k = r.k .. i .. ('x'):rep(1000)}\n"
                           "    end\n"
                           "    return rows\n"
                           "end\n"
                           "return m\n";

static int count_rows(tarn_engine *engine, const char *where)
{
    int count = 0;
    tarn_scan *scan;
    tarn_scan_options options = {.size = sizeof options, .table = "d.t", .where = where};
    tarn_rc rc = tarn_scan_open(engine, &options, &scan, &error);
    CHECK_OK((int)rc, error);
    while ((rc = tarn_scan_next(scan, &error)) == TARN_OK) {
        count++;
    }
    CHECK(rc == TARN_ABSENT);
    tarn_scan_close(scan);
    return count;
}

/* The scan keeps the put from making room, between the rows that `map` made of it; called again,
 * `map` fails, and what was put of it has nothing to do with the put that comes next. */
static void a_put_that_ends_in_the_middle_takes_nothing_from_the_next(void)
{
    tarn_engine *engine = begin(once);
    tarn_rc rc = create(engine, "sums.lua");
    CHECK_OK((int)rc, error);
    tarn_table *table = open_table(engine, true);
    rc = put(table, "{\"k\":\"a-\"}"); /* which opens the bucket */
    CHECK_OK((int)rc, error);
    tarn_scan *scan;
    tarn_scan_options options = {.size = sizeof options, .table = "d.t"};
    rc = tarn_scan_open(engine, &options, &scan, &error);
    CHECK_OK((int)rc, error);
    char json[32];
    for (int i = 0; rc == TARN_OK; i++) {
        CHECK(i < 1000);
        (void)snprintf(json, sizeof json, "{\"k\":\"a%d-\"}", i);
        rc = put(table, json);
    }
    CHECK(rc == TARN_AGAIN && strstr(error.text, "row "));
    tarn_scan_close(scan);
    rc = put(table, json);
    CHECK(rc == TARN_INVALID && strstr(error.text, "again"));
    rc = put(table, "{\"k\":\"z-\"}");
    CHECK_OK((int)rc, error);
    commit(table);
    CHECK(count_rows(engine, "k >= 'z'") == 61);
    end(engine);
}

/* Programs that were built before there were dead letters go on working. */
static void options_of_the_version_before_are_taken(void)
{
    tarn_engine *engine = begin(sums);
    tarn_rc rc = create(engine, "sums.lua");
    CHECK_OK((int)rc, error);
    tarn_table *table;
    tarn_table_options options = {.size = offsetof(tarn_table_options, dead_letter), .name = "d.t"};
    rc = tarn_table_open(engine, &options, &table, &error);
    CHECK_OK((int)rc, error);
    options.size = 7;
    tarn_table_close(table);
    rc = tarn_table_open(engine, &options, &table, &error);
    CHECK(rc == TARN_INVALID);
    end(engine);
}

static const struct test tests[] = {
    TEST(puts_go_through_map_and_merge),
    TEST(a_row_that_merge_fails_on_is_told_and_changes_nothing),
    TEST(a_letter_that_nobody_wants_fails_the_commit),
    TEST(a_script_that_fails_a_hundred_times_is_parked),
    TEST(a_script_s_states_lie_in_the_caller_s_block),
    TEST(a_script_that_cannot_be_used_is_refused_with_its_path),
    TEST(no_table_with_a_script_is_made_while_a_scan_is_open),
    TEST(a_put_that_ends_in_the_middle_takes_nothing_from_the_next),
    TEST(options_of_the_version_before_are_taken),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
