/* Many tables of one bucket in the memory of one process, as the daemon has them: each gets rows,
 * commits, compacts, is opened again behind a process that ended in the middle, and has each row
 * once in the end. */
#include <inttypes.h>
#include <stdlib.h>

#include "app/boot.h"
#include "app/intake.h"
#include "app/sizes.h"
#include "check.h"
#include "file/names.h"
#include "given.h"
#include "random.h"
#include "sim/clock.h"
#include "sim/disk.h"
#include "table/make.h"
#include "table/newest.h"

enum {
    TABLES = 200,
    MEMORY = 32 << 20,
    COMMIT_S = 10,
    PACE_MS = 10000,
    SECONDS = 100, /* of a process */
    LIVES = 2,
    KEYS = 20,
    COLUMNS = 16,
    DISK_SIZE = 512 << 20,
    OWN_SIZE = 4 << 20,
    WINDOW_SIZE = 256 << 10,
    LOG_SIZE = 4096,
    TURNS_MAX = 20000, /* of a second */
};

struct life {
    struct tn_hub_listener listener; /* first */
    struct tn_budget budget;
    struct tn_heap json, avro, levels;
    struct tn_arena table, input;
    struct tn_worker workers[TN_LANE_COUNT];
    struct tn_exec_inline exec;
    struct tn_env env;
    struct sim_clock clock;
    struct tn_log log;
    unsigned char log_memory[LOG_SIZE];
    struct tn_config config;
    struct tn_config_table configs[TABLES];
    char names[TABLES][16];
    struct tn_sizes sizes;
    struct tn_table_share *shares;
    struct tn_keeper *keepers;
    struct tn_intake intake;
};

static struct life life;
static uint64_t sums[TABLES]; /* of n, over the rows that were sent */
static uint64_t offered;      /* the place of the last */

static void hear_nothing(struct tn_hub_listener *listener)
{
    (void)listener;
}

static void hear_place(struct tn_hub_listener *listener, uint64_t place)
{
    (void)listener;
    (void)place;
}

/* ---- a process ---- */

/* As wide as tables in little shares may be. */
static void put_columns(struct tn_buf *text)
{
    for (uint32_t i = 3; i < COLUMNS; i++) {
        tn_buf_format(text, ",{\"name\":\"column_%u\",\"type\":\"STRING\"}", i);
    }
}

/* Of three tables one tells its changes, one is without keys. */
static void make_tables(void)
{
    static const char *const rest[] = {
        "\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":\"1\",\"merge-engine\":\"aggregation\","
        "\"fields.n.aggregate-function\":\"sum\"}",
        "\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":\"1\",\"changelog-producer\":\"lookup\","
        "\"merge-engine\":\"aggregation\",\"fields.n.aggregate-function\":\"sum\"}",
        "\"options\":{\"bucket\":\"-1\"}"};
    struct tn_err err;
    for (uint32_t i = 0; i < TABLES; i++) {
        static char data[2048];
        struct tn_buf text;
        struct tn_schema schema;
        struct tn_options options;
        size_t mark = tn_arena_mark(life.env.arena);
        tn_buf_init(&text, data, sizeof data);
        tn_buf_text(&text, "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\","
                           "\"type\":\"BIGINT\"},{\"name\":\"place\",\"type\":\"STRING\"}");
        put_columns(&text);
        tn_buf_format(&text, "],%s}", rest[i % 3]);
        CHECK_OK(tn_schema_from_user(tn_buf_bytes(&text), life.env.arena, &schema, &err), err);
        tn_rc rc = tn_make_table(&life.env, life.names[i], &schema, &options, &err);
        CHECK(rc == TN_OK || rc == TN_EXISTS);
        tn_arena_reset(life.env.arena, mark);
    }
}

static void configure(uint32_t pace_ms)
{
    life.config =
        (struct tn_config){.tables = life.configs,
                           .table_count = TABLES,
                           .plain_count = TABLES,
                           .pace_ms = pace_ms,
                           .journal = {.sync_ms = pace_ms > 0 ? 2000 : 100, .size_max = 64 << 20}};
    for (uint32_t i = 0; i < TABLES; i++) {
        (void)snprintf(life.names[i], sizeof life.names[i], "db.t%03u", i);
        life.configs[i] = (struct tn_config_table){.name = life.names[i],
                                                   .plain = true,
                                                   .commit = {.ms = COMMIT_S * 1000},
                                                   .next = &life.configs[i + 1]};
    }
    life.configs[TABLES - 1].next = NULL;
}

static void take_memory(struct tn_io *io)
{
    struct tn_err err;
    CHECK_OK(tn_budget_open(&life.budget, &tn_board, MEMORY, &err), err);
    struct tn_env_spec spec = {.budget = &life.budget,
                               .json = &life.json,
                               .avro = &life.avro,
                               .levels = &life.levels,
                               .table = &life.table,
                               .workers = life.workers,
                               .exec = &life.exec,
                               .io = io,
                               .clock = &life.clock.clock};
    CHECK_OK(tn_env_open(&life.env, &spec, &err), err);
    (void)tn_budget_carve(&life.budget, "net");
    tn_env_measure(&life.env, &life.budget);
    tn_budget_arena(&life.budget, "input", &life.input);
    tn_log_init(&life.log, life.log_memory, sizeof life.log_memory, NULL, NULL);
    CHECK_OK(tn_sizes_choose(&life.config, tn_arena_free(&life.input), &life.sizes, &err), err);
}

static void open_tables(void)
{
    struct tn_err err;
    life.shares = tn_arena_take(&life.input, TABLES * sizeof *life.shares);
    life.keepers = tn_arena_take(&life.input, TABLES * sizeof *life.keepers);
    void *room = tn_arena_take(&life.input, life.sizes.room);
    CHECK(life.shares && life.keepers && room);
    for (uint32_t i = 0; i < TABLES; i++) {
        life.shares[i].plain = true;
    }
    CHECK_OK(tn_share_out(&life.env, life.shares, TABLES, &err), err);
    for (uint32_t i = 0; i < TABLES; i++) {
        struct tn_keeper_spec spec = {.config = &life.configs[i],
                                      .share = &life.shares[i],
                                      .who = "a test",
                                      .log = &life.log,
                                      .room = room,
                                      .room_size = life.sizes.room};
        CHECK_OK(tn_keeper_open(&life.keepers[i], &spec, &err), err);
    }
}

static void begin(struct sim_disk *disk, uint32_t pace_ms, uint64_t seed)
{
    struct tn_err err;
    sim_clock_init(&life.clock, seed);
    configure(pace_ms);
    take_memory(&disk->io);
    make_tables();
    open_tables();
    struct tn_intake_spec spec = {.env = &life.env,
                                  .arena = &life.input,
                                  .log = &life.log,
                                  .keepers = life.keepers,
                                  .keeper_count = TABLES,
                                  .config = &life.config,
                                  .parcel_size = life.sizes.parcel};
    CHECK_OK(tn_intake_open(&life.intake, &spec, &err), err);
    life.listener = (struct tn_hub_listener){.room = hear_nothing, .durable = hear_place};
    tn_hub_listen(&life.intake.hub, &life.listener);
}

static void end(void)
{
    for (uint32_t i = 0; i < TABLES; i++) {
        tn_keeper_close(&life.keepers[i]);
    }
    tn_intake_close(&life.intake);
    tn_heap_deinit(&life.json);
    tn_heap_deinit(&life.avro);
    tn_heap_deinit(&life.levels);
    tn_budget_close(&life.budget);
}

/* ---- time ---- */

static void turn(void)
{
    struct tn_err err;
    uint32_t wait_ms;
    CHECK_OK(tn_intake_turn(&life.intake, &wait_ms, &err), err);
    for (uint32_t i = 0; i < TABLES; i++) {
        const struct tn_keeper *k = &life.keepers[i];
        if (k->trouble != TN_OK) {
            (void)fprintf(stderr, "%s: %s\n", k->name, k->trouble_text.text);
        }
        CHECK(k->trouble == TN_OK);
    }
}

static void turn_until(int64_t at_ms)
{
    struct tn_clock *clock = &life.clock.clock;
    uint32_t turns = 0;
    while (clock->vtable->monotonic_ns(clock) / 1000000 < at_ms) {
        sim_clock_advance_ms(&life.clock, 5);
        turn();
        CHECK(turns++ < TURNS_MAX);
    }
}

static void send(uint32_t i, uint64_t *random)
{
    struct tn_err err;
    char text[192];
    uint32_t n = 1 + random_below(random, 9);
    int size = snprintf(text, sizeof text,
                        "{\"id\":%u,\"n\":%u,\"place\":\"hall %u\",\"column_7\":\"a text of some "
                        "length, as they are\"}",
                        random_below(random, KEYS), n, i);
    struct tn_message message = {.table = life.names[i],
                                 .input = TN_INPUT_JSON,
                                 .bytes = {(const unsigned char *)text, (size_t)size},
                                 .source = "test",
                                 .whole = true};
    tn_rc rc;
    uint32_t turns = 0;
    while ((rc = tn_hub_offer(&life.intake.hub, &message, &err)) == TN_AGAIN) {
        turn();
        CHECK(turns++ < TURNS_MAX);
    }
    CHECK_OK(rc, err);
    CHECK(message.rows == 1);
    sums[i] += n;
    offered = message.place;
}

/* A row a second for each table. */
static void run(uint64_t *random)
{
    for (int64_t second = 1; second <= SECONDS; second++) {
        for (uint32_t i = 0; i < TABLES; i++) {
            send(i, random);
        }
        turn_until(second * 1000);
    }
}

/* Until what was sent outlives the process. */
static void be_durable(void)
{
    uint32_t turns = 0;
    while (life.intake.hub.durable < offered) {
        turn();
        CHECK(turns++ < TURNS_MAX);
    }
}

static void settle(void)
{
    uint32_t turns = 0;
    tn_intake_stop(&life.intake);
    while (!tn_intake_settled(&life.intake)) {
        sim_clock_advance_ms(&life.clock, 1);
        turn();
        CHECK(turns++ < 100 * TURNS_MAX);
    }
}

/* ---- what is there ---- */

static uint64_t sum_of(const char *name)
{
    static unsigned char own_memory[OWN_SIZE];
    static unsigned char window[WINDOW_SIZE];
    struct tn_arena own;
    struct tn_err err;
    struct tn_kv kv;
    const char *root = NULL;
    uint64_t sum = 0;
    tn_arena_init(&own, own_memory, sizeof own_memory);
    CHECK_OK(tn_name_table_root(&own, name, &root, &err), err);
    struct tn_scan *scan =
        newest_open(root, life.env.workers[TN_LANE_LONG], &own, window, sizeof window);
    CHECK(scan != NULL);
    while (newest_next(scan, &kv)) {
        struct tn_value value;
        tn_row_get(&scan->projection.layout, kv.row, 1, &value);
        sum += (uint64_t)value.as.i64;
    }
    return sum;
}

static void say_memory(const struct sim_disk *disk, uint64_t syncs)
{
    if (given_number("SAY", 0) == 0) {
        return;
    }
    size_t arena = 0;
    size_t pages = 0;
    for (uint32_t i = 0; i < TABLES; i++) {
        struct tn_backlog backlog;
        tn_table_backlog(life.keepers[i].table, &backlog);
        arena = life.shares[i].arena.peak > arena ? life.shares[i].arena.peak : arena;
        pages = backlog.pages_peak > pages ? backlog.pages_peak : pages;
    }
    (void)printf("keeper %zu, share %zu, parcel %zu; arena %zu of %zu, rows %zu of %zu, "
                 "levels %zu of %zu, long %zu of %zu, table %zu of %zu; barriers %.2f a second\n",
                 sizeof *life.keepers, sizeof *life.shares, life.sizes.parcel, arena,
                 life.shares[0].arena.size, pages, life.shares[0].env.memtable_size,
                 life.levels.peak, life.levels.size, life.workers[TN_LANE_LONG].arena.used,
                 life.workers[TN_LANE_LONG].arena.size, life.table.used, life.table.size,
                 (double)(disk->syncs - syncs) / SECONDS);
}

static void each_table_commits_and_compacts(void)
{
    static struct sim_disk disk;
    uint64_t random = given_number("SEED", 1);
    sim_disk_init(&disk, DISK_SIZE);
    memset(sums, 0, sizeof sums);
    for (int lives = 0; lives < LIVES; lives++) {
        begin(&disk, 0, random_next(&random));
        uint64_t syncs = disk.syncs;
        run(&random);
        say_memory(&disk, syncs);
        if (lives == LIVES - 1) {
            settle();
            for (uint32_t i = 0; i < TABLES; i++) {
                const struct tn_table_counts *counts = tn_table_counts(life.keepers[i].table);
                CHECK(counts->compactions > 0 && counts->compactions_failed == 0);
                CHECK(counts->commits >= SECONDS / COMMIT_S - 1);
                CHECK(sum_of(life.names[i]) == sums[i]);
            }
        } else {
            be_durable();
        }
        end();
    }
    sim_disk_deinit(&disk);
}

/* Each takes its turn: nobody commits twice before all have. */
static void quiet_tables_commit_at_a_pace(void)
{
    static struct sim_disk disk;
    uint64_t random = given_number("SEED", 1);
    uint64_t commits = 0;
    sim_disk_init(&disk, DISK_SIZE);
    memset(sums, 0, sizeof sums);
    begin(&disk, PACE_MS, random_next(&random));
    uint64_t syncs = disk.syncs;
    run(&random);
    say_memory(&disk, syncs);
    CHECK(disk.syncs - syncs <= SECONDS);
    for (uint32_t i = 0; i < TABLES; i++) {
        CHECK(life.keepers[i].commits <= 1);
        commits += life.keepers[i].commits;
    }
    CHECK(commits >= (SECONDS - COMMIT_S) * 1000 / PACE_MS - 1);
    settle();
    for (uint32_t i = 0; i < TABLES; i++) {
        CHECK(sum_of(life.names[i]) == sums[i]);
    }
    end();
    sim_disk_deinit(&disk);
}

static const struct test tests[] = {
    TEST(each_table_commits_and_compacts),
    TEST(quiet_tables_commit_at_a_pace),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
