/* Lakes of a daemon: each snapshot that is committed comes to each of them, in order, whatever
 * fails in between; who fails waits longer each time and keeps nobody else; what a lake lacks
 * doesn't expire, but for one that gives way on a full disk. */
#include "daemon_world.h"

#include "app/lakes.h"
#include "commit/consumer.h"
#include "commit/manifest.h"
#include "temp.h"
#include "upload/directory.h"

enum {
    LAKES = 2,
    WORKER_SIZE = BED_SCALE * (512 << 10),
    MINUTE_MS = 60 * 1000,
    HOUR_MS = 60 * MINUTE_MS,
    RESERVE = 1 << 20,
};

static const char *const roots[TABLES] = {"db.db/a", "db.db/k"};

static struct {
    struct sim_disk disks[LAKES];
    struct tn_config_lake configs[LAKES];
    struct tn_text_list_item items[LAKES][TABLES];
    struct tn_lakes lakes;
    struct tn_worker worker;
    unsigned char memory[65536];
    struct tn_arena arena;
    _Alignas(max_align_t) unsigned char policies[LAKES * BED_SCALE * TN_LAKES_POLICY_SIZE];
    char folder[TEMP_SIZE]; /* of policies; "": there is none */
    char policy[TEMP_SIZE + 16];
    struct tn_link link;
    bool off[LAKES]; /* it can't be reached */
    bool noisy;      /* calls of the lakes' disks fail */
    bool stops;      /* what is under way is to end */
    uint32_t stopped;
    uint32_t tries[LAKES];
    int64_t tried_ms[LAKES]; /* the last time */
    int64_t shown[LAKES][TABLES];
    bool open;
} s;

static uint32_t number_of(const struct tn_config_lake *config)
{
    return (uint32_t)(config - s.configs);
}

static int64_t now_ms(void)
{
    return engine.clock.clock.vtable->monotonic_ns(&engine.clock.clock) / 1000000;
}

static tn_rc name_target(void *user, const struct tn_config_lake *lake,
                         char consumer[TN_LAKES_CONSUMER_SIZE], struct tn_err *err)
{
    (void)user;
    (void)err;
    (void)snprintf(consumer, TN_LAKES_CONSUMER_SIZE, "tarn-lake-%s", lake->name);
    return TN_OK;
}

static tn_rc open_target(void *user, const struct tn_lakes_wish *wish, struct tn_target **target,
                         struct tn_err *err)
{
    uint32_t i = number_of(wish->lake);
    void *memory;
    (void)user;
    CHECK(!s.open && !atomic_load(wish->stop));
    CHECK(wish->patience_ms == TN_LAKES_PATIENCE_SHORT_MS); /* there are two lakes */
    s.tries[i]++;
    s.tried_ms[i] = now_ms();
    if (s.off[i]) {
        return tn_err_set(err, TN_IO, 0, "%s: nobody there", wish->lake->name);
    }
    tn_rc rc = tn_arena_need(wish->arena, sizeof(struct tn_directory), "a lake", &memory, err);
    if (rc == TN_OK) {
        rc = tn_directory_init(memory, &s.disks[i].io, wish->lake->name, wish->arena, err);
    }
    s.open = rc == TN_OK;
    if (s.open) {
        *target = &((struct tn_directory *)memory)->target;
        (*target)->stop = wish->stop;
    }
    return rc;
}

static const char *kind_of_target(void *user, const struct tn_target *target)
{
    (void)user;
    return target ? NULL : "permission";
}

static void close_target(void *user, struct tn_target *target)
{
    (void)user;
    CHECK(s.open && target != NULL);
    s.open = false;
}

static bool near_target(void *user, const struct tn_config_lake *lake)
{
    (void)user;
    return !lake->policy;
}

static void look_at_link(void *user, const struct tn_text_list_item *metered, struct tn_link *link)
{
    (void)user;
    (void)metered;
    *link = s.link;
}

/* ---- a daemon with lakes: one has all tables, the other the keyed one ---- */

static void open_worker(void)
{
    static void *memory;
    struct tn_err err;
    memory = memory ? memory : malloc(WORKER_SIZE);
    CHECK(memory != NULL);
    s.worker = (struct tn_worker){.io = &world.disk.io, .clock = &engine.clock.clock};
    tn_arena_init(&s.worker.arena, memory, WORKER_SIZE);
    CHECK_OK(tn_codec_init(&s.worker.codec, 1, 0, &s.worker.arena, &err), err);
    CHECK_OK(tn_plan_cache_make(&s.worker.arena, &s.worker.plans, &err), err);
}

static void open_lakes(void)
{
    struct daemon *d = &world.daemon;
    struct tn_err err;
    d->config.lakes = s.configs;
    d->config.lake_count = LAKES;
    d->config.upload_count = TABLES + 1;
    CHECK(tn_lakes_memory(&d->config) <= sizeof s.memory);
    tn_arena_init(&s.arena, s.memory, sizeof s.memory);
    open_worker();
    struct tn_lakes_spec spec = {.config = &d->config,
                                 .env = &engine.env,
                                 .keepers = d->keepers,
                                 .keeper_count = TABLES,
                                 .intake = &d->intake,
                                 .jobs = &world.jobs,
                                 .log = &d->log,
                                 .arena = &s.arena,
                                 .worker = &s.worker,
                                 .door = {.name = name_target,
                                          .open = open_target,
                                          .kind = kind_of_target,
                                          .close = close_target,
                                          .near = near_target,
                                          .link = look_at_link},
                                 .policies = s.policies,
                                 .policies_size = sizeof s.policies};
    CHECK_OK(tn_lakes_open(&s.lakes, &spec, &err), err);
}

static void begin_lakes(uint64_t seed)
{
    memset(&s, 0, sizeof s);
    begin_world(&world, seed, "false");
    s.items[0][0] = (struct tn_text_list_item){names[0], &s.items[0][1]};
    s.items[0][1] = (struct tn_text_list_item){names[1], NULL};
    s.items[1][0] = (struct tn_text_list_item){names[1], NULL};
    s.configs[0] = (struct tn_config_lake){
        .name = "all", .target = "/all", .tables = s.items[0], .next = &s.configs[1]};
    s.configs[1] = (struct tn_config_lake){
        .name = "one", .target = "/one", .tables = s.items[1], .every_ms = 200};
    for (int i = 0; i < LAKES; i++) {
        sim_disk_init(&s.disks[i], DISK_SIZE);
    }
    s.link = (struct tn_link){.name = "eth0", .up = true};
    open_lakes();
}

static void close_lakes(void)
{
    tn_lakes_stop(&s.lakes);
    while (engine.env.exec->uploads > 0 || engine.env.exec->under_way > 0) {
        (void)tn_exec_turn(engine.env.exec, true);
    }
    tn_lakes_close(&s.lakes);
}

/* Lakes begin anew, the first one with this policy. */
static void use_policy(const char *text)
{
    close_lakes();
    if (!s.folder[0]) {
        temp_make(s.folder);
        (void)snprintf(s.policy, sizeof s.policy, "%s/policy.lua", s.folder);
    }
    FILE *file = fopen(s.policy, "wb");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
    s.configs[0].policy = s.policy;
    world.daemon.config.policy_count = 1;
    open_lakes();
}

static void end_lakes(void)
{
    daemon_close(&world.daemon);
    close_lakes();
    if (s.folder[0]) {
        temp_remove(s.folder);
    }
    for (int i = 0; i < LAKES; i++) {
        sim_disk_deinit(&s.disks[i]);
    }
    sim_disk_deinit(&world.disk);
}

static struct tn_lakes_mirror *mirror_of(uint32_t lake, uint32_t table)
{
    for (uint32_t i = 0; i < s.lakes.mirror_count; i++) {
        struct tn_lakes_mirror *m = &s.lakes.mirrors[i];
        if (m->lake->config == &s.configs[lake] && strcmp(m->keeper->name, names[table]) == 0) {
            return m;
        }
    }
    return NULL;
}

static int64_t newest_of(struct tn_io *io, uint32_t table)
{
    int64_t id = 0;
    struct tn_err ignored;
    size_t mark = tn_arena_mark(&engine.own);
    tn_rc rc = tn_snapshot_latest(io, roots[table], &engine.own, &id, &ignored);
    tn_arena_reset(&engine.own, mark);
    return rc == TN_OK ? id : 0;
}

static int64_t oldest_of(struct tn_io *io, uint32_t table)
{
    int64_t id = 0;
    struct tn_err ignored;
    size_t mark = tn_arena_mark(&engine.own);
    tn_rc rc = tn_snapshot_earliest(io, roots[table], &engine.own, &id, &ignored);
    tn_arena_reset(&engine.own, mark);
    return rc == TN_OK ? id : 0;
}

static struct tn_bytes snapshot_of(struct tn_io *io, uint32_t table, int64_t id)
{
    char path[64];
    struct tn_err err;
    struct tn_bytes bytes;
    (void)snprintf(path, sizeof path, "%s/snapshot/snapshot-%" PRId64, roots[table], id);
    CHECK_OK(tn_io_read_all(io, path, 65536, &engine.own, &bytes, &err), err);
    return bytes;
}

/* Its snapshots are those of the table, and their ids grow; each that it ever showed is there. */
static void look_at(uint32_t lake, uint32_t table)
{
    struct tn_io *io = &s.disks[lake].io;
    int64_t *shown = &s.shown[lake][table];
    int64_t newest = newest_of(io, table);
    CHECK(newest >= *shown);
    if (newest > *shown) {
        size_t mark = tn_arena_mark(&engine.own);
        CHECK(tn_bytes_equal(snapshot_of(io, table, newest),
                             snapshot_of(&world.disk.io, table, newest)));
        tn_arena_reset(&engine.own, mark);
        *shown = newest;
    }
}

/* Only one that has to give way is stopped, and once in an episode. */
static void check_stopped(void)
{
    const struct tn_lakes_mirror *m = s.lakes.now.mirror;
    bool stops = m && atomic_load(&s.lakes.stop);
    CHECK(!stops || (m->lake->config->gap && m->way_id == 0));
    s.stopped += stops && !s.stops;
    s.stops = stops;
}

static void turn_lakes(bool rows)
{
    uint32_t wait_ms = UINT32_MAX;
    turn(&world, rows);
    for (int i = 0; i < 2; i++) { /* in the second nothing has ended */
        tn_lakes_turn(&s.lakes, &wait_ms);
        check_stopped();
    }
    for (uint32_t i = 0; i < s.lakes.mirror_count; i++) {
        const struct tn_lakes_mirror *m = &s.lakes.mirrors[i];
        uint32_t lake = number_of(m->lake->config);
        uint32_t table = m->keeper == &world.daemon.keepers[1];
        if (!s.noisy && m->have_id > s.shown[lake][table]) {
            look_at(lake, table);
        }
    }
}

static void send_some(uint32_t turns)
{
    for (uint32_t i = 0; i < turns; i++) {
        turn_lakes(true);
    }
}

static void settle(void)
{
    while (!tn_keeper_settled(&world.daemon.keepers[0]) ||
           !tn_keeper_settled(&world.daemon.keepers[1]) || world.daemon.intake.ring.count > 0) {
        turn_lakes(false);
    }
    tn_lakes_hurry(&s.lakes);
    while (!tn_lakes_settled(&s.lakes)) {
        turn_lakes(false);
    }
    s.lakes.hurries = false;
}

static bool has_all(uint32_t lake, uint32_t table)
{
    const struct tn_lakes_mirror *m = mirror_of(lake, table);
    CHECK(m != NULL);
    return tn_lakes_lag(m) == 0 &&
           newest_of(&s.disks[lake].io, table) == newest_of(&world.disk.io, table);
}

/* As who reads it there: no process of the daemon's is left. */
static void check_rows_at(uint32_t lake, uint32_t table)
{
    static uint32_t seen[ROWS];
    memset(seen, 0, sizeof seen);
    bed_engine_start(&engine, &s.disks[lake].io, 1);
    daemon_sum_rows(roots[table], seen, ROWS);
    for (int64_t i = 0; i < ROWS; i++) {
        CHECK(seen[i] == (i < world.sent[table]));
    }
}

static uint64_t bytes_of(uint32_t lake)
{
    return s.lakes.lakes[lake].counts.bytes_sent;
}

/* ---- tests ---- */

static void each_commit_comes_to_each_lake(void)
{
    uint64_t random = given_number("SEED", 1);
    for (int round = 0; round < 3; round++) {
        begin_lakes(random_next(&random));
        send_some(400);
        settle();
        struct tn_err err;
        CHECK_OK(tn_lakes_check(&s.lakes, &err), err);
        CHECK(has_all(0, 0) && has_all(0, 1) && has_all(1, 1));
        CHECK(s.tries[0] > 20 && s.tries[1] < s.tries[0] / 2); /* every 200 ms */
        CHECK(s.lakes.lakes[0].failures == 0 && bytes_of(0) > bytes_of(1));
        CHECK(s.lakes.lakes[0].spent.of[TN_SPENT_DAY].bytes == bytes_of(0));
        daemon_close(&world.daemon);
        world.daemon.open = 0;
        world.daemon.intake_open = false;
        check_rows_at(0, 0);
        check_rows_at(0, 1);
        check_rows_at(1, 1);
        bed_engine_start(&engine, &world.disk.io, 1);
        end_lakes();
    }
}

/* Calls of a lake's disk fail, and the whole lake does, for a while. */
static void who_fails_goes_on_where_it_was(void)
{
    uint64_t random = given_number("SEED", 1);
    for (int round = 0; round < 3; round++) {
        begin_lakes(random_next(&random));
        s.noisy = true;
        for (int i = 0; i < 60; i++) {
            uint32_t lake = random_below(&random, LAKES);
            s.off[lake] = random_below(&random, 4) == 0;
            sim_disk_fail_call(&s.disks[lake], s.disks[lake].calls + 1 + random_below(&random, 200),
                               random_below(&random, 2) ? TN_IO : TN_FULL);
            send_some(10);
        }
        s.off[0] = s.off[1] = s.noisy = false;
        for (int i = 0; i < LAKES; i++) {
            sim_disk_fail_call(&s.disks[i], 0, TN_OK);
        }
        CHECK(s.lakes.lakes[0].failures + s.lakes.lakes[1].failures > 0);
        settle();
        CHECK(has_all(0, 0) && has_all(0, 1) && has_all(1, 1));
        CHECK(!mirror_of(0, 0)->stopped && !mirror_of(0, 1)->stopped && !mirror_of(1, 1)->stopped);
        end_lakes();
    }
}

/* From half a second to a minute, as within a try; the other lake has all meanwhile. */
static void pauses_grow_and_keep_nobody_else(void)
{
    begin_lakes(4);
    s.off[0] = true;
    send_some(100);
    int64_t last_ms = s.tried_ms[0];
    int64_t longest_ms = 0;
    const struct tn_lakes_mirror *m = mirror_of(0, 0);
    for (int i = 0; i < 4000; i++) {
        int64_t retry_ms = m->retry_ms;
        turn_lakes(i < 100);
        sim_clock_advance_ms(&engine.clock, i < 100 ? 0 : 200);
        if (m->retry_ms != retry_ms) {
            int64_t pause_ms = m->retry_ms - s.tried_ms[0];
            CHECK(now_ms() >= retry_ms);
            CHECK(pause_ms >= 250 && pause_ms <= MINUTE_MS + 1000);
            longest_ms = pause_ms > longest_ms ? pause_ms : longest_ms;
            last_ms = now_ms();
        }
    }
    CHECK(longest_ms > MINUTE_MS / 2 && m->tries > 8 && last_ms > 0 && has_all(1, 1) &&
          !has_all(0, 1));
    char text[TN_ERR_TEXT_SIZE];
    CHECK(strcmp(tn_lakes_trouble_kind(&s.lakes, m), "permission") == 0);
    CHECK(strcmp(tn_lakes_trouble(&s.lakes, m, text, sizeof text),
                 "it doesn't let us: all: nobody there") == 0);
    CHECK(tn_lakes_age_ms(&s.lakes, m) > MINUTE_MS && tn_lakes_lag(m) > 0 && m->tally.bytes > 0);
    struct tn_err err;
    settle();
    CHECK(tn_lakes_check(&s.lakes, &err) == TN_CONFLICT && strstr(err.text, "lake all lacks"));
    s.off[0] = false;
    settle();
    CHECK(has_all(0, 0) && has_all(0, 1));
    CHECK_OK(tn_lakes_check(&s.lakes, &err), err);
    CHECK(!tn_lakes_trouble(&s.lakes, m, text, sizeof text));
    end_lakes();
}

/* From the start on, also before the first upload, and over a restart. */
static void what_a_lake_lacks_stays(void)
{
    begin_lakes(6);
    s.off[0] = true;
    for (int i = 0; i < 4; i++) {
        send_some(200);
        sim_clock_advance_ms(&engine.clock, 2 * HOUR_MS); /* all but ten are too old */
    }
    CHECK(newest_of(&world.disk.io, 0) > 12 && oldest_of(&world.disk.io, 0) == 1);
    close_lakes();
    open_lakes();
    CHECK(mirror_of(0, 0)->have_id == 0);
    s.off[0] = false;
    settle();
    CHECK(has_all(0, 0) && has_all(0, 1) && oldest_of(&s.disks[0].io, 0) == 1);
    for (int64_t id = 1; id <= newest_of(&s.disks[0].io, 0); id++) {
        size_t mark = tn_arena_mark(&engine.own);
        CHECK(snapshot_of(&s.disks[0].io, 0, id).size > 0);
        tn_arena_reset(&engine.own, mark);
    }
    for (int i = 0; i < 30; i++) {
        send_some(20);
        sim_clock_advance_ms(&engine.clock, HOUR_MS);
    }
    CHECK(oldest_of(&world.disk.io, 0) > 1); /* what it has got expires */
    end_lakes();
}

static void a_lake_with_another_history_is_sent_nothing(void)
{
    begin_lakes(8);
    send_some(200);
    settle();
    struct tn_err err;
    char path[64];
    const char *const name = path;
    int64_t id = newest_of(&s.disks[0].io, 0) + 1; /* somebody commits there */
    (void)snprintf(path, sizeof path, "%s/snapshot/snapshot-%" PRId64, roots[0], id);
    struct tn_bytes other = snapshot_of(&s.disks[0].io, 0, id - 1);
    CHECK_OK(tn_io_write_new(&s.disks[0].io, path, other, &err), err);
    CHECK_OK(s.disks[0].io.vtable->sync(&s.disks[0].io, &name, 1, &err), err);
    s.shown[0][0] = INT64_MAX; /* it is looked at no more */
    send_some(200);
    settle();
    const struct tn_lakes_mirror *m = mirror_of(0, 0);
    uint64_t failures = s.lakes.lakes[0].failures;
    CHECK(m->stopped && m->trouble == TN_CONFLICT && has_all(0, 1) && has_all(1, 1));
    CHECK(newest_of(&s.disks[0].io, 0) == id && failures == 1);
    CHECK(tn_lakes_check(&s.lakes, &err) == TN_CONFLICT);
    send_some(200);
    CHECK(s.lakes.lakes[0].failures == failures);
    end_lakes();
}

static void fill_the_disk(void)
{
    s.off[0] = true;
    for (int i = 0; i < 4; i++) {
        send_some(200);
        sim_clock_advance_ms(&engine.clock, 2 * HOUR_MS);
    }
    sim_disk_capacity(&world.disk, sim_disk_used(&world.disk) + RESERVE - 1);
    for (int i = 0; i < 600; i++) {
        turn_lakes(false);
        sim_clock_advance_ms(&engine.clock, 50);
    }
}

/* Sources stop, and it is said why, until the lake has got what stays for it. */
static void on_a_full_disk_sources_stop(void)
{
    disk_reserve = RESERVE;
    begin_lakes(9);
    char text[TN_ERR_TEXT_SIZE];
    fill_the_disk();
    const struct tn_lakes_mirror *m = mirror_of(0, 0);
    CHECK(world.daemon.intake.reserve.low && oldest_of(&world.disk.io, 0) == 1);
    s.off[0] = false;
    settle();
    CHECK(has_all(0, 0));
    CHECK(!tn_lakes_trouble(&s.lakes, m, text, sizeof text));
    end_lakes();
    disk_reserve = 0;
}

/* It is not said to be in trouble while it waits for that, but for what it then holds. */
static void a_full_disk_does_not_wait_for_every(void)
{
    disk_reserve = RESERVE;
    begin_lakes(10);
    char text[TN_ERR_TEXT_SIZE];
    s.configs[0].every_ms = 24 * HOUR_MS;
    send_some(200);
    const struct tn_lakes_mirror *m = mirror_of(0, 0);
    CHECK(m->known && !has_all(0, 0) && !tn_lakes_trouble(&s.lakes, m, text, sizeof text));
    world.daemon.intake.reserve.low = true;
    CHECK(strstr(tn_lakes_trouble(&s.lakes, m, text, sizeof text), "stay on the full disk"));
    world.daemon.intake.reserve.low = false;
    sim_disk_capacity(&world.disk, sim_disk_used(&world.disk) + RESERVE - 1);
    for (int i = 0; i < 600; i++) {
        turn_lakes(false);
        sim_clock_advance_ms(&engine.clock, 50);
    }
    CHECK(has_all(0, 0) && has_all(0, 1));
    end_lakes();
    disk_reserve = 0;
}

/* What it lacks expires, and it goes on behind a gap. */
static void on_a_full_disk_a_lake_gives_way(void)
{
    disk_reserve = RESERVE;
    begin_lakes(9);
    s.configs[0].gap = true;
    send_some(50);
    settle();
    int64_t had = newest_of(&s.disks[0].io, 0);
    fill_the_disk();
    int64_t oldest = oldest_of(&world.disk.io, 0);
    CHECK(had > 0 && oldest > had + 1);
    sim_disk_capacity(&world.disk, UINT64_MAX);
    s.off[0] = false;
    for (int i = 0; i < 200; i++) {
        turn_lakes(false);
        sim_clock_advance_ms(&engine.clock, 50);
    }
    CHECK(!world.daemon.intake.reserve.low);
    send_some(50);
    settle();
    CHECK(has_all(0, 0) && has_all(0, 1) && oldest_of(&s.disks[0].io, 0) >= oldest);
    end_lakes();
    disk_reserve = 0;
}

static void settle_tables(void)
{
    struct tn_lakes_mirror *m = mirror_of(0, 1);
    while (!tn_keeper_settled(&world.daemon.keepers[0]) ||
           !tn_keeper_settled(&world.daemon.keepers[1]) || world.daemon.intake.ring.count > 0) {
        turn_lakes(false);
    }
    for (int i = 0; i < 2000 && (m->tally.to < m->seen_id || i < 500); i++) {
        turn_lakes(false);
    }
    CHECK(m->tally.to == m->seen_id && m->tally.from == m->have_id + 1);
}

/* Lets all go that was kept for the lakes. */
static uint64_t freed_by_expiry(void)
{
    struct tn_err err;
    struct tn_job_wish wish = {.verb = TN_JOB_EXPIRE, .table = "db.k", .expiry = {1, 1, 0}};
    const struct tn_job *job;
    for (int i = 0; i < LAKES; i++) {
        CHECK_OK(tn_consumer_remove(&world.disk.io, roots[1], s.lakes.lakes[i].consumer,
                                    &s.worker.arena, &err),
                 err);
    }
    uint64_t used = sim_disk_used(&world.disk);
    CHECK_OK(tn_jobs_ask(&world.jobs, &wish, &job, &err), err);
    for (int i = 0; job->state != TN_JOB_OVER; i++) {
        turn(&world, false);
        CHECK(i < 5000);
    }
    CHECK_OK(job->rc, job->err);
    return used - sim_disk_used(&world.disk);
}

/* What will be sent, and what would be free, but for the texts of snapshots, lists and hints. */
static void what_a_lake_lacks_is_counted(void)
{
    uint64_t random = given_number("SEED", 1);
    for (int round = 0; round < 4; round++) {
        begin_lakes(random_next(&random));
        s.off[0] = s.off[1] = true;
        send_some(200);
        settle_tables();
        const struct tn_lakes_mirror *m = mirror_of(0, 1);
        struct tn_lakes_tally tally = m->tally;
        uint64_t lists = 8192 * (uint64_t)m->seen_id;
        CHECK(tally.from == 1 && tally.rows >= (uint64_t)world.sent[1] && tally.bytes > 0);
        if (round % 2 == 0) {
            s.off[1] = false;
            settle();
            CHECK(has_all(1, 1) && mirror_of(1, 1)->tally.bytes == 0);
            CHECK(bytes_of(1) >= tally.bytes && bytes_of(1) <= tally.bytes + lists / 4);
        } else {
            uint64_t freed = freed_by_expiry();
            CHECK(freed >= tally.pinned && freed <= tally.pinned + 2 * lists);
        }
        end_lakes();
    }
}

/* Whoever sends while one gives way moves its consumer back, and nothing would expire. So there are
 * no uploads of it until the expiry is over; those of others end in peace. */
static void what_gives_way_is_let_go_whoever_sends(void)
{
    uint64_t random = given_number("SEED", 1);
    for (int round = 0; round < 3; round++) {
        disk_reserve = RESERVE;
        begin_lakes(random_next(&random));
        s.configs[0].gap = true;
        s.noisy = true;
        s.off[0] = s.off[1] = true;
        send_some(400);
        sim_clock_advance_ms(&engine.clock, 2 * HOUR_MS);
        send_some(100);
        int64_t oldest = oldest_of(&world.disk.io, 0);
        s.off[0] = s.off[1] = false;
        sim_disk_capacity(&s.disks[0], sim_disk_used(&s.disks[0]) + 20000); /* no room for all */
        sim_disk_capacity(&world.disk, sim_disk_used(&world.disk) + RESERVE - 1);
        mirror_of(1, 1)->retry_ms = now_ms() + HOUR_MS;
        for (int i = 0; i < 2000; i++) {
            mirror_of(0, i % 16 < 8 ? 0 : 1)->retry_ms = 0;
            turn_lakes(false);
            mirror_of(1, 1)->retry_ms = s.lakes.way.mirror ? 0 : mirror_of(1, 1)->retry_ms;
            sim_clock_advance_ms(&engine.clock, (int64_t)random_below(&random, 100));
        }
        CHECK(oldest_of(&world.disk.io, 0) > oldest && has_all(1, 1));
        CHECK(s.stopped <= 2);
        end_lakes();
    }
    disk_reserve = 0;
}

/* ---- policies ---- */

static void run_for(int turns, bool rows, int64_t step_ms)
{
    for (int i = 0; i < turns; i++) {
        turn_lakes(rows);
        sim_clock_advance_ms(&engine.clock, step_ms);
    }
}

/* Whatever a script says, be it nonsense: what the lake shows is whole, in order, from the first id
 * on, and no answer loses anything. look_at() compares each snapshot that it shows. */
static void no_policy_can_do_harm(void)
{
    static const char policy[] =
        "local m = {}\n"
        "local odd = { 0, 1, -1, 3, 1 << 62, 0.5, '7', true }\n"
        "local names = { 'db.a', 'db.k', 'db.x', '' }\n"
        "function m.upload(state)\n"
        "    local p = state.pending\n"
        "    local function any(list) return list[math.random(#list)] end\n"
        "    local kind = math.random(8)\n"
        "    if kind == 1 then return any({ 'wait', 'now', 'nwo', '' }) end\n"
        "    if kind == 2 then return { wait = any({ 1, 2, 5, 0, -1 }) } end\n"
        "    if kind == 3 then error('no') end\n"
        "    if kind == 4 then while true do end end\n"
        "    if kind == 5 then return { through = any(odd) } end\n"
        "    if kind == 6 then return { tables = { any(names), any(names) } } end\n"
        "    local plan = { bytes = math.random(20000) }\n"
        "    if p.count > 0 then plan.through = math.random(p.oldest, p.newest) end\n"
        "    if kind == 8 then state.pending.newest = 99; plan.through = 98 end\n"
        "    return plan\n"
        "end\n"
        "return m";
    uint64_t random = given_number("SEED", 1);
    begin_lakes(random_next(&random));
    use_policy(policy);
    for (int i = 0; i < 150; i++) {
        run_for(10, true, 0);
        sim_clock_advance_ms(&engine.clock, (int64_t)random_below(&random, 3 * MINUTE_MS));
        tn_script_resume(&s.lakes.lakes[0].policy->script); /* as if it were loaded anew */
        for (uint32_t t = 0; t < TABLES; t++) {
            int64_t newest = newest_of(&s.disks[0].io, t);
            for (int64_t id = newest > 3 ? newest - 3 : 1; id <= newest; id++) {
                size_t mark = tn_arena_mark(&engine.own);
                struct tn_bytes there = snapshot_of(&s.disks[0].io, t, id);
                CHECK(id < oldest_of(&world.disk.io, t) ||
                      tn_bytes_equal(there, snapshot_of(&world.disk.io, t, id)));
                tn_arena_reset(&engine.own, mark);
            }
        }
    }
    CHECK(newest_of(&s.disks[0].io, 0) > 0 && s.lakes.lakes[0].policy->script.failures > 5);
    CHECK(s.lakes.lakes[0].failures == 0 && oldest_of(&s.disks[0].io, 0) == 1);
    use_policy("return { upload = function() return 'now' end }");
    settle();
    CHECK(has_all(0, 0) && has_all(0, 1) && has_all(1, 1));
    end_lakes();
}

/* It waits, is behind, and says so; with a script that works it has all. */
static void a_policy_that_fails_has_its_lake_wait(void)
{
    char text[TN_ERR_TEXT_SIZE];
    begin_lakes(12);
    use_policy("return { upload = function(state) return state.pendng end }");
    send_some(100);
    const struct tn_lakes_mirror *m = mirror_of(0, 0);
    CHECK(newest_of(&s.disks[0].io, 0) == 0 && tn_lakes_lag(m) > 0);
    CHECK(newest_of(&s.disks[1].io, 1) > 0);
    const char *trouble = tn_lakes_trouble(&s.lakes, m, text, sizeof text);
    CHECK(trouble && strstr(trouble, "its policy failed, so it waits: policy.lua:1: "));
    CHECK(strcmp(tn_lakes_trouble_kind(&s.lakes, m), "policy") == 0);
    run_for(9000, false, MINUTE_MS); /* until it is parked */
    CHECK(strstr(tn_lakes_trouble(&s.lakes, m, text, sizeof text), "parked"));
    settle();
    struct tn_err err;
    CHECK(tn_lakes_check(&s.lakes, &err) == TN_CONFLICT && strstr(err.text, "parked"));
    use_policy("return { upload = function() return 'now' end }");
    settle();
    CHECK(has_all(0, 0) && has_all(0, 1));
    end_lakes();
}

/* Half of what is pending, again and again: `through` and the order hold. */
static void a_plan_is_obeyed(void)
{
    begin_lakes(given_number("SEED", 1));
    use_policy("return { upload = function(state)\n"
               "    local p = state.pending\n"
               "    if p.count < 8 then return 'wait' end\n"
               "    return { through = p.oldest + 2, tables = { 'db.k' } }\n"
               "end }");
    int64_t had = 0;
    for (int i = 0; i < 300; i++) {
        turn_lakes(true);
        const struct tn_lakes_mirror *a = mirror_of(0, 0);
        const struct tn_lakes_mirror *k = mirror_of(0, 1);
        if (k->plan.there && !k->plan.waits && s.lakes.now.mirror == a) {
            CHECK(k->have_id >= k->plan.through);
        }
        int64_t has = newest_of(&s.disks[0].io, 1);
        CHECK(has - had <= 8);
        had = has;
    }
    CHECK(had > 0 && tn_lakes_lag(mirror_of(0, 0)) + tn_lakes_lag(mirror_of(0, 1)) <= 16);
    settle(); /* what a policy holds is settled */
    CHECK(!has_all(0, 0) || !has_all(0, 1));
    end_lakes();
}

/* A day has so many bytes, whatever waits; the next day goes on. */
static void a_budget_of_a_day_holds(void)
{
    enum { BUDGET = 60000, FILE_MAX = 64 * 1024 };
    begin_lakes(given_number("SEED", 1));
    sim_clock_set_ms(&engine.clock, INT64_C(2000000000000)); /* it is set */
    use_policy("return { upload = function(state)\n"
               "    local left = 60000 - state.spent.day.bytes\n"
               "    if left <= 0 then return { wait = 900 } end\n"
               "    return { bytes = left }\n"
               "end }");
    uint64_t before = 0;
    uint32_t spent_days = 0;
    int64_t day = 0;
    for (int i = 0; i < 72; i++) {
        run_for(30, i < 48, 0);
        sim_clock_advance_ms(&engine.clock, HOUR_MS);
        run_for(30, false, 0);
        const struct tn_spent_sum *sum = &s.lakes.lakes[0].spent.of[TN_SPENT_DAY];
        CHECK(sum->bytes <= BUDGET + FILE_MAX);
        spent_days += day != sum->at && before >= BUDGET;
        day = sum->at;
        before = sum->bytes;
    }
    CHECK(spent_days > 0);
    for (int i = 0; i < 1000 && !(has_all(0, 0) && has_all(0, 1)); i++) {
        sim_clock_advance_ms(&engine.clock, 24 * HOUR_MS);
        run_for(30, false, 0);
    }
    CHECK(has_all(0, 0) && has_all(0, 1));
    end_lakes();
}

/* On a metered link nothing goes, and what is under way ends when the link becomes one. */
static void a_policy_goes_by_the_link(void)
{
    begin_lakes(given_number("SEED", 1));
    s.link = (struct tn_link){.name = "wwan0", .up = true, .metered = true};
    use_policy("return { upload = function(state)\n"
               "    return state.link.up and not state.link.metered and 'now' or 'wait'\n"
               "end }");
    run_for(200, true, 100);
    CHECK(newest_of(&s.disks[0].io, 0) == 0 && newest_of(&s.disks[1].io, 1) > 0);
    s.link = (struct tn_link){.name = "eth0", .up = true};
    run_for(200, true, 100);
    int64_t had = newest_of(&s.disks[0].io, 0);
    CHECK(had > 0);
    s.link.up = false;
    run_for(100, false, 100);
    int64_t has = newest_of(&s.disks[0].io, 0);
    run_for(200, true, 100);
    CHECK(newest_of(&s.disks[0].io, 0) == has && tn_lakes_lag(mirror_of(0, 0)) > 0);
    s.link.up = true;
    run_for(200, false, 100);
    CHECK(has_all(0, 0) && has_all(0, 1));
    end_lakes();
}

static const struct test tests[] = {
    TEST(each_commit_comes_to_each_lake),
    TEST(who_fails_goes_on_where_it_was),
    TEST(pauses_grow_and_keep_nobody_else),
    TEST(what_a_lake_lacks_stays),
    TEST(a_lake_with_another_history_is_sent_nothing),
    TEST(on_a_full_disk_sources_stop),
    TEST(a_full_disk_does_not_wait_for_every),
    TEST(on_a_full_disk_a_lake_gives_way),
    TEST(what_gives_way_is_let_go_whoever_sends),
    TEST(what_a_lake_lacks_is_counted),
    TEST(no_policy_can_do_harm),
    TEST(a_policy_that_fails_has_its_lake_wait),
    TEST(a_plan_is_obeyed),
    TEST(a_budget_of_a_day_holds),
    TEST(a_policy_goes_by_the_link),
};

int main(int argc, char **argv)
{
    return daemon_run_tests(argc, argv, tests, COUNT(tests));
}
