/* lakes_world: a daemon's lakes, in a world without sockets (daemon_world.h): two of them, each a
 * simulated disk. The first one has all tables, the other the keyed one; or, with `lakes_shared`,
 * the keyed one is a part of a table that the first lake has once for all gateways, and the other
 * has the one without keys.
 */
#pragma once

#include "daemon_world.h"

#include "app/lakes.h"
#include "commit/consumer.h"
#include "commit/manifest.h"
#include "temp.h"
#include "upload/directory.h"

enum {
    LAKES = 2,
    WORKER_SIZE = BED_SCALE * (1 << 20),
    MIRROR_SIZE = BED_SCALE * (512 << 10), /* that is enough where nothing is shared */
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
    struct sim_disk scratch; /* of who sends */
    bool shared;             /* the keyed table is */
    bool plain_worker;       /* there was none at the start */
    uint32_t waited;
    int64_t slow_ms; /* what a try at one that is off takes */
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
    (void)snprintf(consumer, TN_LAKES_CONSUMER_SIZE, "tarn-lake-%s", lake->target + 1);
    return TN_OK;
}

static tn_rc open_target(void *user, const struct tn_lakes_wish *wish, struct tn_lakes_place *place,
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
        sim_clock_advance_ms(&engine.clock, s.slow_ms);
        return tn_err_set(err, TN_IO, 0, "%s: nobody there", wish->lake->name);
    }
    CHECK(wish->shared == (s.shared && strcmp(wish->table, names[1]) == 0));
    tn_rc rc = tn_arena_need(wish->arena, sizeof(struct tn_directory), "a lake", &memory, err);
    if (rc == TN_OK) {
        rc = tn_directory_init(memory, &s.disks[i].io, wish->lake->name, wish->arena, err);
    }
    s.open = rc == TN_OK;
    if (s.open) {
        place->target = &((struct tn_directory *)memory)->target;
        place->target->stop = wish->stop;
    }
    if (s.open && wish->shared) {
        tn_directory_share(memory, &engine.clock.clock);
        sim_disk_deinit(&s.scratch);
        sim_disk_init(&s.scratch, DISK_SIZE);
        place->scratch = &s.scratch.io;
    }
    return rc;
}

static void wait_on_lane(void *user, uint32_t ms)
{
    (void)user;
    s.waited++;
    sim_clock_advance_ms(&engine.clock, ms);
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
    bool direct = s.shared && !s.plain_worker;
    tn_arena_init(&s.worker.arena, memory, direct ? WORKER_SIZE : MIRROR_SIZE);
    CHECK_OK(tn_codec_init(&s.worker.codec, 1, direct ? TN_BLOCK_SIZE : 0, &s.worker.arena, &err),
             err);
    CHECK_OK(tn_plan_cache_make(&s.worker.arena, &s.worker.plans, &err), err);
}

static void open_lakes(void)
{
    struct daemon *d = &world.daemon;
    struct tn_err err;
    d->config.lakes = s.configs;
    d->config.lake_count = LAKES;
    d->config.upload_count = TABLES + 1; /* whichever the second lake has */
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
                                          .wait = wait_on_lane,
                                          .kind = kind_of_target,
                                          .close = close_target,
                                          .near = near_target,
                                          .link = look_at_link},
                                 .policies = s.policies,
                                 .policies_size = sizeof s.policies};
    CHECK_OK(tn_lakes_open(&s.lakes, &spec, &err), err);
}

/* As if it had been adopted; where it is from has its schema. */
static void share_table(enum tn_share_way way)
{
    static const char schema[] = "db.db/k/schema/schema-0";
    struct tn_share share = {.where = "/all", .way = way};
    struct tn_sent sent = {.schema = -1};
    struct tn_bytes text;
    struct tn_err err;
    struct tn_io *io = &world.disk.io;
    tn_clock_uuid(&engine.clock.clock, share.gateway);
    CHECK_OK(tn_io_read_all(io, schema, 65536, &engine.own, &text, &err), err);
    CHECK_OK(s.disks[0].io.vtable->make_dir(&s.disks[0].io, "db.db/k/schema", &err), err);
    CHECK_OK(tn_io_write_new(&s.disks[0].io, schema, text, &err), err);
    sim_disk_reboot(&s.disks[0], SIM_SEED_ALL);
    CHECK_OK(tn_share_write(io, names[1], &share, &engine.own, &err), err);
    CHECK_OK(tn_sent_write(io, names[1], &sent, &engine.own, &err), err);
    CHECK_OK(tn_consumer_write(io, roots[1], TN_SHARE_CONSUMER, 1, &engine.own, &err), err);
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
    sim_disk_init(&s.scratch, DISK_SIZE);
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

/* Before anything was committed. */
static __attribute__((unused)) void begin_shared(uint64_t seed, enum tn_share_way way)
{
    begin_lakes(seed);
    close_lakes();
    s.items[1][0].text = names[0];
    s.shared = true;
    share_table(way);
    open_lakes();
}

/* Lakes begin anew, the first one with this policy. */
static __attribute__((unused)) void use_policy(const char *text)
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

static __attribute__((unused)) void end_lakes(void)
{
    daemon_close(&world.daemon);
    close_lakes();
    if (s.folder[0]) {
        temp_remove(s.folder);
    }
    for (int i = 0; i < LAKES; i++) {
        sim_disk_deinit(&s.disks[i]);
    }
    sim_disk_deinit(&s.scratch);
    sim_disk_deinit(&world.disk);
}

static __attribute__((unused)) struct tn_lakes_mirror *mirror_of(uint32_t lake, uint32_t table)
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

static __attribute__((unused)) int64_t oldest_of(struct tn_io *io, uint32_t table)
{
    int64_t id = 0;
    struct tn_err ignored;
    size_t mark = tn_arena_mark(&engine.own);
    tn_rc rc = tn_snapshot_earliest(io, roots[table], &engine.own, &id, &ignored);
    tn_arena_reset(&engine.own, mark);
    return rc == TN_OK ? id : 0;
}

static __attribute__((unused)) struct tn_bytes snapshot_of(struct tn_io *io, uint32_t table,
                                                           int64_t id)
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
        if (!s.noisy && !m->shared && m->have_id > s.shown[lake][table]) {
            look_at(lake, table);
        }
    }
}

static __attribute__((unused)) void send_some(uint32_t turns)
{
    for (uint32_t i = 0; i < turns; i++) {
        turn_lakes(true);
    }
}

static __attribute__((unused)) void settle(void)
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

static __attribute__((unused)) bool has_all(uint32_t lake, uint32_t table)
{
    const struct tn_lakes_mirror *m = mirror_of(lake, table);
    CHECK(m != NULL);
    return tn_lakes_lag(m) == 0 &&
           newest_of(&s.disks[lake].io, table) == newest_of(&world.disk.io, table);
}

/* As who reads it there: no process of the daemon's is left. */
static __attribute__((unused)) void check_rows_at(uint32_t lake, uint32_t table)
{
    static uint32_t seen[ROWS];
    memset(seen, 0, sizeof seen);
    bed_engine_start(&engine, &s.disks[lake].io, 1);
    daemon_sum_rows(roots[table], seen, ROWS);
    for (int64_t i = 0; i < ROWS; i++) {
        CHECK(seen[i] == (i < world.sent[table]));
    }
}

static __attribute__((unused)) uint64_t bytes_of(uint32_t lake)
{
    return s.lakes.lakes[lake].counts.bytes_sent;
}

static __attribute__((unused)) void run_for(int turns, bool rows, int64_t step_ms)
{
    for (int i = 0; i < turns; i++) {
        turn_lakes(rows);
        sim_clock_advance_ms(&engine.clock, step_ms);
    }
}
