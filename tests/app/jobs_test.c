/* Jobs for tables that the daemon holds, while rows come: a keyed table and one without keys, their
 * intake and journal, on a disk that may fail. What a full compaction leaves is looked up in the
 * newest snapshot; in the end each row is in its table once, whatever a job came to. */
#include "daemon_world.h"

#include "app/offers.h"
#include "table/state.h"

static uint64_t ask(struct world *w, struct tn_job_wish wish, uint32_t t)
{
    struct tn_err err = {0};
    const struct tn_job *job = NULL;
    (void)snprintf(wish.table, sizeof wish.table, "%s", names[t]);
    CHECK_OK(tn_jobs_ask(&w->jobs, &wish, &job, &err), err);
    return job->number;
}

/* Who asked gets the answer. */
static void hear(struct world *w, uint64_t number)
{
    char query[32];
    char text[1024];
    struct tn_buf out;
    (void)snprintf(query, sizeof query, "job=%" PRIu64, number);
    tn_buf_init(&out, text, sizeof text);
    CHECK(tn_jobs_get(&w->jobs, tn_bytes_of(query), &out) == 200);
}

static const struct tn_job *until_over(struct world *w, uint64_t number, bool rows)
{
    const struct tn_job *job = tn_jobs_find(&w->jobs, number);
    while (job->state != TN_JOB_OVER) {
        turn(w, rows);
    }
    return job;
}

static const struct tn_job *await(struct world *w, uint64_t number, bool rows)
{
    const struct tn_job *job = until_over(w, number, rows);
    hear(w, number);
    return job;
}

static const struct tn_job_wish compact_fully = {
    .verb = TN_JOB_COMPACT, .full = true, .expiry = {-1, -1, -1}};

/* Of a bucket, in the newest snapshot. */
static void most_files(struct world *w, uint32_t t, int64_t *files, int32_t *level)
{
    struct tn_err err;
    struct tn_census census;
    struct tn_snapshot snapshot;
    const struct tn_census_bucket *bucket;
    const struct tn_table *table = w->daemon.keepers[t].table;
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
    const char *root = tn_table_root(w->daemon.keepers[t].table);
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
            int64_t before = w->daemon.keepers[t].latest_id;
            const struct tn_job *job = await(w, ask(w, compact_fully, t), false);
            CHECK_OK(job->rc, job->err);
            bool made = job->values[TN_JOB_SNAPSHOT] > 0; /* perhaps of results from before it */
            CHECK(made || job->values[TN_JOB_COMPACTIONS] == 0);
            CHECK((job->values[TN_JOB_COMPACTIONS] > 0) == (job->values[TN_JOB_BYTES] > 0));
            /* results make one snapshot, and without any there is none */
            CHECK(w->daemon.keepers[t].latest_id == before + made);
            most_files(w, t, &files, &level);
            CHECK(files <= (t == 0 ? 2 : 1)); /* of two files an append table makes none */
            CHECK(t == 0 || level == 5);
            check_rows(w, t);
        }
    }
    CHECK(w->daemon.keepers[1].rows > 500);
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

/* Another writer was there, and levels are read again behind a slice that takes its time: without
 * what the job did, where that was not committed. */
static void a_job_looks_again_where_its_results_may_be_lost(void)
{
    int64_t files;
    int32_t level;
    begin_world(&world, given_number("SEED", 1), "false");
    struct world *w = &world;
    struct tn_table *table = w->daemon.keepers[1].table;
    send_for_a_while(w);
    commit_all(w);
    const struct tn_job *job = tn_jobs_find(&w->jobs, ask(w, compact_fully, 1));
    while (job->state != TN_JOB_COMMITS) {
        turn(w, false);
    }
    CHECK(!table->slice.under_way);
    table->reload = true;
    table->slice.under_way = true;
    for (int i = 0; i < 50; i++) {
        turn(w, false);
        CHECK(job->state == TN_JOB_COMMITS);
    }
    table->slice.under_way = false;
    CHECK_OK(await(w, job->number, false)->rc, job->err);
    CHECK(w->jobs.tries == 1);
    most_files(w, 1, &files, &level);
    CHECK(files == 1 && level > 0);
    check_rows(w, 1);
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
    CHECK(job->values[TN_JOB_EARLIEST] == w->daemon.keepers[1].latest_id - 2);
    CHECK(snapshots(w, 1) == 3 &&
          w->daemon.keepers[1].earliest_id == w->daemon.keepers[1].latest_id - 2);
    wish.expiry.retain_max = 0;
    CHECK(await(w, ask(w, wish, 1), true)->rc == TN_INVALID);
    check_rows(w, 1);
    end_world(w);
}

static void one_goes_after_the_other_and_is_remembered_until_it_is_heard_of(void)
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
        CHECK_OK(until_over(w, i, true)->rc, tn_jobs_find(&w->jobs, i)->err);
    }
    sim_clock_advance_ms(&engine.clock, 9000);
    CHECK(tn_jobs_ask(&w->jobs, &wish, &job, &err) == TN_AGAIN && !job);
    hear(w, 3);
    CHECK(ask(w, compact_fully, 0) == TN_JOBS_MAX + 1);
    CHECK(!tn_jobs_find(&w->jobs, 3) && tn_jobs_find(&w->jobs, 1)->state == TN_JOB_OVER);
    CHECK(tn_jobs_ask(&w->jobs, &wish, &job, &err) == TN_AGAIN && !job);
    sim_clock_advance_ms(&engine.clock, 9000); /* nobody wants to hear of them */
    CHECK(ask(w, compact_fully, 0) == TN_JOBS_MAX + 2);
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
        tn_intake_stop(&w->daemon.intake);
        CHECK(over || tn_jobs_find(&w->jobs, number)->rc == TN_IO);
        CHECK(tn_jobs_find(&w->jobs, waits)->state == TN_JOB_OVER);
        (void)snprintf(wish.table, sizeof wish.table, "db.a");
        CHECK(tn_jobs_ask(&w->jobs, &wish, &job, &err) == TN_IO);
        while (!tn_intake_settled(&w->daemon.intake)) {
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
    double until = given_until(40, 8);
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
            CHECK(tn_table_sweeping(w->daemon.keepers[t].table) == 0);
            check_rows(w, t);
        }
        end_world(w);
    } while (seconds_now() < until);
    CHECK(done > 0);
    CHECK(failed > 0 || given_number("CUT_SECONDS", 40) < 20);
}

static void post(struct world *w, const char *query, const char *body, const char *want)
{
    char text[1024];
    struct tn_buf out;
    tn_buf_init(&out, text, sizeof text - 1);
    CHECK(tn_offers_post(&w->daemon.intake, tn_bytes_of(query), tn_bytes_of(body), &out) == 200);
    text[out.size] = 0;
    if (!strstr(text, want)) {
        FAIL("%s: %s", query, text);
    }
}

/* With a commit rule that would not come, and rows of others meanwhile. */
static void what_is_handed_over_is_in_a_snapshot_when_its_commit_is_over(void)
{
    struct tn_job_wish wish = {.verb = TN_JOB_COMMIT, .expiry = {-1, -1, -1}};
    begin_world(&world, given_number("SEED", 1), "false");
    struct world *w = &world;
    w->daemon.configs[1].commit = (struct tn_commit_rule){.ms = 3600 * 1000};
    commit_all(w); /* they are open */
    for (int i = 0; i < 40; i++) {
        char body[64];
        char want[32];
        (void)snprintf(body, sizeof body, "{\"id\":%" PRId64 ",\"n\":1}", w->sent[1]);
        wish.place = tn_journal_next(w->daemon.intake.journal);
        (void)snprintf(want, sizeof want, "\"place\":%" PRIu64 ",", wish.place);
        post(w, "table=db.k&input=json", body, want);
        w->sent[1]++;
        const struct tn_job *job = await(w, ask(w, wish, 1), random_below(&w->random, 2));
        CHECK_OK(job->rc, job->err);
        CHECK(job->values[TN_JOB_COMMITTED] == w->daemon.keepers[1].latest_id);
        CHECK(w->daemon.keepers[1].committed.place > wish.place);
    }
    while (!tn_keeper_settled(&w->daemon.keepers[1]) ||
           w->daemon.intake.ring.count > 0) { /* others' rows */
        wish.place = tn_journal_next(w->daemon.intake.journal) - 1;
        (void)await(w, ask(w, wish, 1), false);
    }
    int64_t latest = w->daemon.keepers[1].latest_id;
    CHECK_OK(await(w, ask(w, wish, 1), false)->rc, w->jobs.jobs[0].err);
    CHECK(w->daemon.keepers[1].latest_id == latest); /* there is nothing to commit */
    check_rows(w, 1);
    end_world(w);
}

static void offers_say_what_became_of_them(void)
{
    begin_world(&world, 1, "false");
    struct world *w = &world;
    commit_all(w);
    post(w, "table=db.k&input=json", "{\"id\":0,\"n\":1}\nx\n{\"id\":1,\"n\":1}",
         "\"rows\":2,\"dead\":1}");
    post(w, "table=db.k&input=csv", "n,id\n1,2\n", "\"rows\":1,\"dead\":0}");
    post(w, "table=db.k&input=json&cut=9999", "{\"id\":7", "\"rows\":0,\"dead\":1}");
    post(w, "table=db.k", "{}", "\"error\":\"it doesn't say what its input is\"");
    post(w, "table=db.k&input=jsn", "{}", "did you mean 'json'");
    post(w, "table=db.x&input=json", "{}", "\"error\":\"it is none of tarn run's tables\"");
    tn_intake_stop(&w->daemon.intake);
    post(w, "table=db.k&input=json", "{}", "\"error\":\"tarn ends\"");
    end_world(w);
}

static void a_wish_is_read_as_it_was_put(void)
{
    static const struct tn_job_wish wishes[] = {
        {TN_JOB_COMPACT, "db.t", true, false, {-1, -1, -1}, 0},
        {TN_JOB_EXPIRE, "d b.t&full=1%2e\xc3\xa9", false, true, {1, 2, 0}, 0},
        {TN_JOB_EXPIRE, "db.t", false, false, {-1, 2, INT64_MAX}, 0},
        {TN_JOB_COMMIT, "db.t", false, false, {-1, -1, -1}, UINT64_MAX},
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
        CHECK(read.place == wishes[i].place);
    }
    for (size_t i = 0; i < COUNT(wrong); i++) {
        tn_rc rc = tn_job_wish_read(tn_bytes_of(wrong[i]), &read, &err);
        CHECK(rc == TN_INVALID || rc == TN_UNSUPPORTED);
    }
}

static const struct test tests[] = {
    TEST(a_full_compaction_leaves_one_run_while_rows_come),
    TEST(a_write_only_table_is_compacted_and_only_then),
    TEST(a_job_looks_again_where_its_results_may_be_lost),
    TEST(an_expiry_leaves_what_it_is_told_to),
    TEST(one_goes_after_the_other_and_is_remembered_until_it_is_heard_of),
    TEST(who_waits_hears_of_the_end),
    TEST(a_job_ends_whatever_call_fails),
    TEST(what_is_handed_over_is_in_a_snapshot_when_its_commit_is_over),
    TEST(offers_say_what_became_of_them),
    TEST(a_wish_is_read_as_it_was_put),
};

int main(int argc, char **argv)
{
    return daemon_run_tests(argc, argv, tests, COUNT(tests));
}
