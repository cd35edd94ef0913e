/* Jobs for tables that the daemon holds, while rows come: a keyed table and one without keys, their
 * intake and journal, on a disk that may fail. What a full compaction leaves is looked up in the
 * newest snapshot; in the end each row is in its table once, whatever a job came to. */
#define BED_SCALE 2
#include "../table/bed.h"

#include "app/intake.h"
#include "app/jobs.h"
#include "given.h"
#include "table/census.h"
#include "table/make.h"

enum {
    TABLES = 2,
    ROWS = 3000, /* of a table, at the most */
    PARCEL_SIZE = 4096,
    INPUT_SIZE = 1 << 20,
    LOG_SIZE = 4096,
    TURNS_MAX = 100000,
    DISK_SIZE = 32 << 20,
};

static const char *const names[TABLES] = {"db.a", "db.k"};
static const char *const schemas[TABLES] = {
    "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"BIGINT\"}],"
    "\"options\":{\"bucket\":\"-1\"}}",
    "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"BIGINT\"}],"
    "\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":\"3\",\"write-only\":\"",
};
static const char rest_of_schema[] =
    "\",\"merge-engine\":\"aggregation\",\"fields.n.aggregate-function\":\"sum\"}}";

static struct bed_engine engine;
static unsigned char *input;

struct world {
    struct sim_disk disk;
    uint64_t random;
    struct tn_arena arena;
    struct tn_log log;
    unsigned char log_memory[LOG_SIZE];
    struct tn_share shares[TABLES];
    struct tn_keeper keepers[TABLES];
    struct tn_config config;
    struct tn_config_table configs[TABLES];
    struct tn_intake intake;
    struct tn_jobs jobs;
    int64_t sent[TABLES]; /* rows, numbered from 0 */
    uint32_t turns;
};

static struct world world;

/* ---- a daemon without sockets ---- */

static void make_tables(struct world *w, const char *write_only)
{
    struct tn_err err;
    bed_engine_start(&engine, &w->disk.io, w->random);
    for (uint32_t t = 0; t < TABLES; t++) {
        char text[512];
        struct tn_schema schema;
        struct tn_options options;
        (void)snprintf(text, sizeof text, "%s%s%s", schemas[t], t == 0 ? "" : write_only,
                       t == 0 ? "" : rest_of_schema);
        CHECK_OK(tn_schema_from_user(tn_bytes_of(text), &engine.own, &schema, &err), err);
        CHECK_OK(tn_make_table(&engine.env, names[t], &schema, &options, &err), err);
    }
    tn_arena_reset(&engine.own, 0);
}

static void begin_world(struct world *w, uint64_t seed, const char *write_only)
{
    struct tn_err err = {0};
    memset(w, 0, sizeof *w);
    w->random = seed;
    sim_disk_init(&w->disk, DISK_SIZE);
    make_tables(w, write_only);
    bed_engine_start(&engine, &w->disk.io, seed);
    tn_arena_init(&w->arena, input, INPUT_SIZE);
    tn_log_init(&w->log, w->log_memory, sizeof w->log_memory, NULL, NULL);
    CHECK_OK(tn_share_out(&engine.env, w->shares, TABLES, &err), err);
    for (uint32_t t = 0; t < TABLES; t++) {
        w->configs[t] = (struct tn_config_table){.name = names[t], .commit = {.ms = 50, .rows = 9}};
        struct tn_keeper_spec spec = {
            .config = &w->configs[t], .share = &w->shares[t], .who = "a test", .log = &w->log};
        CHECK_OK(tn_keeper_open(&w->keepers[t], &spec, &err), err);
    }
    w->config.journal = (struct tn_config_journal){5, 3000, 8 << 20};
    struct tn_intake_spec intake = {.env = &engine.env,
                                    .arena = &w->arena,
                                    .log = &w->log,
                                    .keepers = w->keepers,
                                    .keeper_count = TABLES,
                                    .config = &w->config,
                                    .parcel_size = PARCEL_SIZE};
    CHECK_OK(tn_intake_open(&w->intake, &intake, &err), err);
    struct tn_jobs_spec jobs = {
        .env = &engine.env, .keepers = w->keepers, .keeper_count = TABLES, .log = &w->log};
    tn_jobs_init(&w->jobs, &jobs);
}

static void end_world(struct world *w)
{
    for (uint32_t t = 0; t < TABLES; t++) {
        tn_keeper_close(&w->keepers[t]);
    }
    while (engine.env.exec->under_way > 0) {
        (void)tn_exec_turn(engine.env.exec, true);
    }
    tn_intake_close(&w->intake);
    sim_disk_deinit(&w->disk);
}

/* A row's number may come again and again: what is refused for now is sent later. */
static void send(struct world *w, uint32_t t)
{
    char text[64];
    struct tn_err err;
    int size = snprintf(text, sizeof text, "{\"id\":%" PRId64 ",\"n\":1}\n", w->sent[t]);
    struct tn_message message = {.table = names[t],
                                 .input = TN_INPUT_JSON,
                                 .bytes = {(const unsigned char *)text, (size_t)size},
                                 .source = "test",
                                 .whole = true};
    if (w->sent[t] < ROWS && tn_hub_offer(&w->intake.hub, &message, &err) == TN_OK) {
        w->sent[t]++;
    }
}

static void turn(struct world *w, bool rows)
{
    struct tn_err err = {0};
    uint32_t wait_ms;
    for (uint32_t i = rows ? random_below(&w->random, 4) : 0; i > 0; i--) {
        send(w, random_below(&w->random, TABLES));
    }
    CHECK_OK(tn_intake_turn(&w->intake, &wait_ms, &err), err);
    tn_jobs_turn(&w->jobs, &wait_ms);
    sim_clock_advance_ms(&engine.clock, wait_ms < 7 ? wait_ms : 7);
    CHECK(w->turns++ < TURNS_MAX);
}

static uint64_t ask(struct world *w, struct tn_job_wish wish, uint32_t t)
{
    struct tn_err err = {0};
    const struct tn_job *job = NULL;
    (void)snprintf(wish.table, sizeof wish.table, "%s", names[t]);
    CHECK_OK(tn_jobs_ask(&w->jobs, &wish, &job, &err), err);
    return job->number;
}

static const struct tn_job *await(struct world *w, uint64_t number, bool rows)
{
    const struct tn_job *job = tn_jobs_find(&w->jobs, number);
    while (job->state != TN_JOB_OVER) {
        turn(w, rows);
    }
    return job;
}

static const struct tn_job_wish compact_fully = {
    .verb = TN_JOB_COMPACT, .full = true, .expiry = {-1, -1, -1}};

static void send_for_a_while(struct world *w)
{
    for (uint32_t i = 200 + random_below(&w->random, 300); i > 0; i--) {
        turn(w, true);
    }
}

static void commit_all(struct world *w)
{
    for (int t = 0; t < TABLES; t++) {
        while (!tn_keeper_settled(&w->keepers[t]) || w->intake.ring.count > 0 ||
               w->keepers[t].state != TN_KEEPER_LIVE) {
            turn(w, false);
        }
    }
}

/* ---- what is there ---- */

static void check_rows(struct world *w, uint32_t t)
{
    struct tn_err err;
    static struct tn_schemas known;
    static struct tn_scan scan;
    static struct tn_options options;
    static struct tn_snapshot snapshot;
    static uint32_t seen[ROWS];
    const struct tn_schema *schema = NULL;
    const char *root = tn_table_root(w->keepers[t].table);
    int64_t id = 0;
    struct tn_arena *own = &engine.own;
    size_t mark = tn_arena_mark(own);
    memset(seen, 0, sizeof seen);
    tn_schemas_init(&known, &w->disk.io, root, own);
    CHECK_OK(tn_schemas_newest(&known, &schema, &err), err);
    CHECK_OK(tn_options_read(schema, TN_OPTIONS_READ, own, &options, &err), err);
    CHECK_OK(tn_snapshot_latest(&w->disk.io, root, own, &id, &err), err);
    CHECK_OK(tn_snapshot_read(&w->disk.io, root, id, own, &snapshot, &err), err);
    struct tn_scan_spec spec = {.root = root,
                                .snapshot = &snapshot,
                                .schema = schema,
                                .options = &options,
                                .schemas = &known};
    CHECK_OK(tn_scan_open(&scan, &spec, engine.window, BED_WINDOW_SIZE, own,
                          engine.env.workers[TN_LANE_LONG], &err),
             err);
    struct tn_kv kv;
    tn_rc rc;
    while ((rc = tn_scan_next(&scan, &kv, &err)) == TN_OK) {
        struct tn_value values[2];
        tn_row_get(&scan.projection.layout, kv.row, 0, &values[0]);
        tn_row_get(&scan.projection.layout, kv.row, 1, &values[1]);
        CHECK(values[0].as.i64 >= 0 && values[0].as.i64 < ROWS);
        seen[values[0].as.i64] += (uint32_t)values[1].as.i64;
    }
    CHECK(rc == TN_ABSENT);
    tn_scan_close(&scan);
    for (int64_t i = 0; i < ROWS; i++) {
        CHECK(seen[i] == (i < w->sent[t]));
    }
    tn_arena_reset(own, mark);
}

/* Of a bucket, in the newest snapshot. */
static void most_files(struct world *w, uint32_t t, int64_t *files, int32_t *level)
{
    struct tn_err err;
    struct tn_census census;
    struct tn_snapshot snapshot;
    const struct tn_census_bucket *bucket;
    const struct tn_table *table = w->keepers[t].table;
    struct tn_arena *own = &engine.own;
    size_t mark = tn_arena_mark(own);
    int64_t id = 0;
    tn_rc rc;
    const char *root = tn_table_root(table);
    CHECK_OK(tn_snapshot_latest(&w->disk.io, root, own, &id, &err), err);
    CHECK_OK(tn_snapshot_read(&w->disk.io, root, id, own, &snapshot, &err), err);
    tn_census_open(&census, root, &snapshot, tn_table_schema(table), engine.window, BED_WINDOW_SIZE,
                   engine.env.workers[TN_LANE_LONG]);
    *files = 0;
    *level = INT32_MAX;
    while ((rc = tn_census_next(&census, &bucket, &err)) == TN_OK) {
        *files = bucket->file_count > *files ? bucket->file_count : *files;
        *level = bucket->min_level < *level ? bucket->min_level : *level;
    }
    CHECK(rc == TN_ABSENT);
    tn_arena_reset(own, mark);
}

static int64_t snapshots(const struct world *w, uint32_t t)
{
    struct tn_err err;
    int64_t earliest;
    int64_t latest;
    const char *root = tn_table_root(w->keepers[t].table);
    size_t mark = tn_arena_mark(&engine.own);
    struct tn_io *io = engine.env.io;
    CHECK_OK(tn_snapshot_earliest(io, root, &engine.own, &earliest, &err), err);
    CHECK_OK(tn_snapshot_latest(io, root, &engine.own, &latest, &err), err);
    tn_arena_reset(&engine.own, mark);
    return latest - earliest + 1;
}

/* ---- tests ---- */

static void compact_and_look(const char *write_only)
{
    int64_t files;
    int32_t level;
    begin_world(&world, given_number("SEED", 1), write_only);
    struct world *w = &world;
    for (int round = 0; round < 6; round++) {
        send_for_a_while(w);
        for (uint32_t t = 0; t < TABLES; t++) {
            const struct tn_job *job = await(w, ask(w, compact_fully, t), true);
            CHECK_OK(job->rc, job->err);
            CHECK(job->values[TN_JOB_BUCKETS] == (t == 0 ? 1 : 3));
        }
        commit_all(w);
        for (uint32_t t = 0; t < TABLES; t++) {
            int64_t before = w->keepers[t].latest_id;
            const struct tn_job *job = await(w, ask(w, compact_fully, t), false);
            CHECK_OK(job->rc, job->err);
            bool made = job->values[TN_JOB_SNAPSHOT] > 0; /* perhaps of results from before it */
            CHECK(made || job->values[TN_JOB_COMPACTIONS] == 0);
            CHECK((job->values[TN_JOB_COMPACTIONS] > 0) == (job->values[TN_JOB_BYTES] > 0));
            /* results make one snapshot, and without any there is none */
            CHECK(w->keepers[t].latest_id == before + made);
            most_files(w, t, &files, &level);
            CHECK(files <= (t == 0 ? 2 : 1)); /* of two files an append table makes none */
            CHECK(t == 0 || level == 5);
            check_rows(w, t);
        }
    }
    CHECK(w->keepers[1].rows > 500);
    end_world(w);
}

static void a_full_compaction_leaves_one_run_while_rows_come(void)
{
    compact_and_look("false");
}

static void a_write_only_table_is_compacted_and_only_then(void)
{
    int64_t files;
    int32_t level;
    compact_and_look("true");
    begin_world(&world, 5, "true");
    struct world *w = &world;
    send_for_a_while(w);
    CHECK_OK(await(w, ask(w, compact_fully, 1), true)->rc, world.jobs.jobs[0].err);
    for (int i = 0; i < 20; i++) {
        send_for_a_while(w);
    }
    commit_all(w);
    most_files(w, 1, &files, &level);
    CHECK(files > 20 && level == 0);
    end_world(w);
}

static void an_expiry_leaves_what_it_is_told_to(void)
{
    struct tn_job_wish wish = {
        .verb = TN_JOB_EXPIRE, .dry_run = true, .expiry = {.retain_max = 3, -1, .older_ms = -1}};
    begin_world(&world, 2, "false");
    struct world *w = &world;
    send_for_a_while(w);
    send_for_a_while(w);
    commit_all(w);
    int64_t before = snapshots(w, 1);
    CHECK(before > 13); /* more than a task takes at once */
    const struct tn_job *job = await(w, ask(w, wish, 1), false);
    CHECK_OK(job->rc, job->err);
    CHECK(job->values[TN_JOB_SNAPSHOTS] == before - 3 && snapshots(w, 1) == before);
    wish.dry_run = false;
    job = await(w, ask(w, wish, 1), false);
    CHECK_OK(job->rc, job->err);
    CHECK(job->values[TN_JOB_SNAPSHOTS] == before - 3);
    CHECK(job->values[TN_JOB_EARLIEST] == w->keepers[1].latest_id - 2);
    CHECK(snapshots(w, 1) == 3 && w->keepers[1].earliest_id == w->keepers[1].latest_id - 2);
    wish.expiry.retain_max = 0;
    CHECK(await(w, ask(w, wish, 1), true)->rc == TN_INVALID);
    check_rows(w, 1);
    end_world(w);
}

static void one_goes_after_the_other_and_some_are_remembered(void)
{
    struct tn_err err = {0};
    const struct tn_job *job = NULL;
    struct tn_job_wish wish = compact_fully;
    begin_world(&world, 3, "false");
    struct world *w = &world;
    send_for_a_while(w);
    (void)snprintf(wish.table, sizeof wish.table, "db.nobodys");
    CHECK(tn_jobs_ask(&w->jobs, &wish, &job, &err) == TN_ABSENT && !job);
    for (uint64_t i = 1; i <= TN_JOBS_MAX; i++) {
        CHECK(ask(w, compact_fully, i % TABLES) == i);
    }
    (void)snprintf(wish.table, sizeof wish.table, "db.a");
    CHECK(tn_jobs_ask(&w->jobs, &wish, &job, &err) == TN_AGAIN && !job);
    for (uint64_t i = 1; i <= TN_JOBS_MAX; i++) {
        for (uint64_t later = i + 1; later <= TN_JOBS_MAX; later++) {
            CHECK(tn_jobs_find(&w->jobs, later)->state == TN_JOB_WAITS);
        }
        CHECK_OK(await(w, i, true)->rc, tn_jobs_find(&w->jobs, i)->err);
    }
    CHECK(ask(w, compact_fully, 0) == TN_JOBS_MAX + 1);
    CHECK(!tn_jobs_find(&w->jobs, 1) && tn_jobs_find(&w->jobs, 2)->state == TN_JOB_OVER);
    end_world(w);
}

static void who_waits_hears_of_the_end(void)
{
    struct tn_err err;
    uint64_t random = given_number("SEED", 1);
    for (int i = 0; i < 20; i++) {
        const struct tn_job *job = NULL;
        struct tn_job_wish wish = compact_fully;
        begin_world(&world, random_next(&random), "false");
        struct world *w = &world;
        send_for_a_while(w);
        uint64_t number = ask(w, compact_fully, 1);
        uint64_t waits = ask(w, compact_fully, 0);
        for (uint32_t turns = random_below(&random, 30); turns > 0; turns--) {
            turn(w, true);
        }
        bool over = tn_jobs_find(&w->jobs, number)->state == TN_JOB_OVER;
        tn_jobs_stop(&w->jobs);
        tn_intake_stop(&w->intake);
        CHECK(over || tn_jobs_find(&w->jobs, number)->rc == TN_IO);
        CHECK(tn_jobs_find(&w->jobs, waits)->state == TN_JOB_OVER);
        (void)snprintf(wish.table, sizeof wish.table, "db.a");
        CHECK(tn_jobs_ask(&w->jobs, &wish, &job, &err) == TN_IO);
        while (!tn_intake_settled(&w->intake)) {
            turn(w, false);
        }
        check_rows(w, 0);
        check_rows(w, 1);
        end_world(w);
    }
}

/* The table suffers, is opened again, and the job is done or says why not. */
static void a_job_ends_whatever_call_fails(void)
{
    uint64_t random = given_number("SEED", 1);
    double until = seconds_now() + (double)given_number("CUT_SECONDS", 40) / 8;
    uint32_t failed = 0;
    uint32_t done = 0;
    do {
        begin_world(&world, random_next(&random), random_below(&random, 2) ? "true" : "false");
        struct world *w = &world;
        send_for_a_while(w);
        uint64_t numbers[3];
        uint64_t call = w->disk.calls + 1 + random_below(&random, 150);
        numbers[0] = ask(w, compact_fully, 1);
        numbers[1] = ask(w, (struct tn_job_wish){.verb = TN_JOB_EXPIRE, .expiry = {4, 1, 0}}, 1);
        numbers[2] = ask(w, compact_fully, 0);
        sim_disk_fail_call(&w->disk, call, TN_FULL);
        for (int i = 0; i < 3; i++) {
            const struct tn_job *job = await(w, numbers[i], true);
            failed += job->rc != TN_OK;
            done += job->rc == TN_OK;
        }
        w->disk.fail_call = 0;
        commit_all(w);
        for (uint32_t t = 0; t < TABLES; t++) {
            CHECK(tn_table_sweeping(w->keepers[t].table) == 0);
            check_rows(w, t);
        }
        end_world(w);
    } while (seconds_now() < until);
    CHECK(done > 0);
    CHECK(failed > 0 || given_number("CUT_SECONDS", 40) < 20);
}

static void a_wish_is_read_as_it_was_put(void)
{
    static const struct tn_job_wish wishes[] = {
        {TN_JOB_COMPACT, "db.t", true, false, {-1, -1, -1}},
        {TN_JOB_EXPIRE, "d b.t&full=1%2e\xc3\xa9", false, true, {1, 2, 0}},
        {TN_JOB_EXPIRE, "db.t", false, false, {-1, 2, INT64_MAX}},
    };
    static const char *const wrong[] = {"",
                                        "verb=compact",
                                        "table=db.t",
                                        "verb=&table=db.t",
                                        "verb=x",
                                        "table=%zz&verb=compact",
                                        "table=%00&verb=compact",
                                        "verb=dance&table=db.t"};
    struct tn_err err;
    struct tn_job_wish read;
    for (size_t i = 0; i < COUNT(wishes); i++) {
        char text[TN_JOB_QUERY_SIZE];
        struct tn_buf query;
        tn_buf_init(&query, text, sizeof text);
        tn_job_wish_put(&wishes[i], &query);
        CHECK_OK(tn_job_wish_read(tn_buf_bytes(&query), &read, &err), err);
        CHECK(read.verb == wishes[i].verb && strcmp(read.table, wishes[i].table) == 0);
        CHECK(read.full == wishes[i].full && read.dry_run == wishes[i].dry_run);
        CHECK(memcmp(&read.expiry, &wishes[i].expiry, sizeof read.expiry) == 0);
    }
    for (size_t i = 0; i < COUNT(wrong); i++) {
        tn_rc rc = tn_job_wish_read(tn_bytes_of(wrong[i]), &read, &err);
        CHECK(rc == TN_INVALID || rc == TN_UNSUPPORTED);
    }
}

static const struct test tests[] = {
    TEST(a_full_compaction_leaves_one_run_while_rows_come),
    TEST(a_write_only_table_is_compacted_and_only_then),
    TEST(an_expiry_leaves_what_it_is_told_to),
    TEST(one_goes_after_the_other_and_some_are_remembered),
    TEST(who_waits_hears_of_the_end),
    TEST(a_job_ends_whatever_call_fails),
    TEST(a_wish_is_read_as_it_was_put),
};

int main(int argc, char **argv)
{
    input = malloc(INPUT_SIZE);
    CHECK(input != NULL);
    int code = bed_run_tests(argc, argv, tests, COUNT(tests), &engine, 1);
    free(input);
    return code;
}
