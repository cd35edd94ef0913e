/* day_process: the daemon of a day: tables, intake and sources as app/daemon.c has them, on the
 * day's disk, network and clock. It starts, ends when it's told to, and is started again some time
 * after it ended, however that was. */
#pragma once

#include "day_file.h"
#include "day_world.h"

#include "ingest/file_source.h"
#include "ingest/http_server.h"
#include "ingest/mqtt_source.h"
#include "ingest/socket_source.h"

enum {
    DAY_INPUT_SIZE = 3 << 20,
    DAY_LOG_SIZE = 4096,
    DAY_PARCEL = 16384,
    DAY_STOP_MS = 5 * DAY_MINUTE, /* with a wear budget, two of them; then it's killed */
    DAY_STARTS_CALM = 3,
    DAY_LATE_MS = 30 * DAY_SECOND,
};

struct day_sources {
    struct tn_ops ops;
    struct tn_http_server *http;
    struct tn_socket_source *socket;
    struct tn_mqtt_source *mqtt;
    struct tn_mqtt_wish wishes[DAY_SPARE];
    struct tn_mqtt_route routes[DAY_SPARE];
    struct tn_file_source file;
    bool file_open;
    bool file_notified;
};

struct day_process {
    bool up;
    bool ready;
    bool stopping;
    bool whole;       /* it stopped with all rows in the tables */
    bool alone;       /* without sources: it commits what the journal has, and ends */
    int64_t start_ms; /* when it is started next */
    int64_t kill_ms;  /* when it has been stopping for too long */
    uint32_t failures_calm;
    bool reloads;  /* another configuration comes when it has stopped */
    uint32_t kept; /* tables */
    struct tn_arena arena;
    struct tn_log log;
    unsigned char log_memory[DAY_LOG_SIZE];
    struct tn_wear wear;
    struct tn_table_share shares[DAY_TABLES];
    struct tn_keeper keepers[DAY_TABLES];
    struct tn_config config;
    struct tn_config_table configs[DAY_TABLES];
    struct tn_config_source followed;
    uint32_t open;
    struct tn_intake intake;
    bool intake_open;
    struct day_sources sources;
    bool sources_open;
};

static struct day_process day_process;
static struct bed_engine day_engines[2]; /* the process's, and one for who looks or writes, too */
static unsigned char *day_input;

static struct {
    uint64_t starts;
    uint64_t failures;
    uint64_t kills;
    uint64_t cuts;
    uint64_t stops;
    uint64_t reloads;
} day_counts;

/* ---- start ---- */

static void day_log(void *user, enum tn_log_level level, const char *line, size_t size)
{
    (void)user;
    (void)level;
    day_say("  %.*s", (int)size - 1, line);
}

static void day_start_engine(struct bed_engine *engine, struct sim_disk *disk, uint64_t seed)
{
    bed_engine_begin(engine, &disk->io, &day.clock.clock, seed);
    tn_exec_inline_open(&engine->exec, engine->contexts);
    engine->env.exec = &engine->exec.exec;
}

/* Bytes a day: any, none, or some. */
static void day_open_wear(struct day_process *p, struct tn_env *env)
{
    static const uint64_t budgets[] = {0, 200 << 10, 1 << 20};
    struct tn_clock *clock = env->clock;
    env->wear = NULL;
    if (day_chance(2)) {
        tn_wear_init(&p->wear, budgets[day_below(COUNT(budgets))], env->io,
                     clock->vtable->monotonic_ns(clock) / 1000000);
        env->wear = &p->wear;
    }
}

static tn_rc day_open_keepers(struct day_process *p, struct tn_err *err)
{
    static unsigned char room[DAY_PARCEL];
    struct tn_env *env = &day_engines[0].env;
    p->shares[DAY_COUNT].scripted = true;
    day_open_wear(p, env);
    tn_rc rc = tn_share_out(env, p->shares, p->kept, err);
    for (uint32_t i = 0; rc == TN_OK && i < p->kept; i++) {
        p->configs[i] = (struct tn_config_table){
            .name = day_names[i], .commit = {.ms = 100 + day_below(20000), .rows = 40}};
        struct tn_keeper_spec spec = {.config = &p->configs[i],
                                      .share = &p->shares[i],
                                      .warehouse = "tests/app", /* of scripts */
                                      .dead_letters = i == DAY_SPARE ? NULL : day_letters[i],
                                      .who = "a day",
                                      .room = room,
                                      .room_size = sizeof room,
                                      .log = &p->log};
        rc = tn_keeper_open(&p->keepers[i], &spec, err);
        p->open += rc == TN_OK;
    }
    return rc;
}

static tn_rc day_open_intake(struct day_process *p, struct tn_err *err)
{
    p->config.journal = (struct tn_config_journal){
        .sync_ms = 1 + day_below(200), .sync_bytes = 1 + day_below(8000), .size_max = 8 << 20};
    p->followed = (struct tn_config_source){
        .kind = TN_SOURCE_FILE, .name = "file", .table = day_names[day.file_table]};
    p->config.sources = &p->followed;
    struct tn_intake_spec spec = {.env = &day_engines[0].env,
                                  .arena = &p->arena,
                                  .log = &p->log,
                                  .keepers = p->keepers,
                                  .keeper_count = p->kept,
                                  .config = &p->config,
                                  .parcel_size = DAY_PARCEL};
    CHECK(tn_intake_memory(&spec) <= tn_arena_free(&p->arena));
    tn_rc rc = tn_intake_open(&p->intake, &spec, err);
    p->intake_open = rc == TN_OK;
    return rc;
}

static tn_rc day_open_http(struct day_process *p, struct tn_err *err)
{
    struct tn_http_server_spec spec = {.net = day.gateway,
                                       .ops = &p->sources.ops,
                                       .hub = &p->intake.hub,
                                       .at = {"127.0.0.1", DAY_PORT_HTTP},
                                       .connections = 2 + day_below(3),
                                       .body_size_max = TN_HTTP_BODY_MIN};
    return tn_http_server_open(&p->sources.http, &spec, &p->arena, err);
}

static tn_rc day_open_socket(struct day_process *p, struct tn_err *err)
{
    struct tn_socket_source_spec spec = {.name = "socket",
                                         .table = day_names[DAY_SUM],
                                         .input = TN_INPUT_JSON,
                                         .net = day.gateway,
                                         .hub = &p->intake.hub,
                                         .log = &p->log,
                                         .at = {"127.0.0.1", DAY_PORT_SOCKET},
                                         .connections = 3,
                                         .idle_ms = 20 * DAY_SECOND};
    return tn_socket_source_open(&p->sources.socket, &spec, &p->arena, err);
}

static tn_rc day_open_mqtt(struct day_process *p, struct tn_err *err)
{
    static const char *const filters[DAY_SPARE] = {"plant/append/+", "plant/sum/#", "plant/last/+",
                                                   "plant/count/1"};
    for (uint32_t i = 0; i < DAY_SPARE; i++) {
        p->sources.wishes[i] = (struct tn_mqtt_wish){.filter = tn_bytes_of(filters[i]), .qos = 2};
        p->sources.routes[i] =
            (struct tn_mqtt_route){.table = day_names[i], .input = TN_INPUT_JSON};
    }
    struct tn_mqtt_source_spec spec = {.name = "mqtt",
                                       .net = day.gateway,
                                       .hub = &p->intake.hub,
                                       .log = &p->log,
                                       .broker = {"broker", DAY_PORT_BROKER},
                                       .mqtt = {.version = day_below(2) ? TN_MQTT_ANY : TN_MQTT_V3,
                                                .client_id = tn_bytes_of("gateway"),
                                                .filters = p->sources.wishes,
                                                .filter_count = DAY_SPARE,
                                                .session_expiry_s = UINT32_MAX,
                                                .keep_alive_s = 30,
                                                .in_flight = 8},
                                       .routes = p->sources.routes};
    return tn_mqtt_source_open(&p->sources.mqtt, &spec, &p->arena, err);
}

static void day_file_notify(void *user)
{
    struct day_sources *sources = user;
    sources->file_notified = true;
}

static tn_rc day_open_file(struct day_process *p, struct tn_err *err)
{
    size_t size = tn_file_source_memory(&p->intake.hub);
    struct tn_file_source_spec spec = {.name = "file",
                                       .table = day_names[day.file_table],
                                       .input = TN_INPUT_JSON,
                                       .path = DAY_FOLDER "/" DAY_FILE_NAME,
                                       .hub = &p->intake.hub,
                                       .exec = day_engines[0].env.exec,
                                       .clock = &day.clock.clock,
                                       .log = &p->log,
                                       .memory = tn_arena_take(&p->arena, size),
                                       .notify = day_file_notify,
                                       .user = &p->sources};
    CHECK(spec.memory != NULL);
    tn_rc rc = tn_file_source_open(&p->sources.file, &spec, err);
    p->sources.file_open = rc == TN_OK;
    return rc;
}

static tn_rc day_open_sources(struct day_process *p, struct tn_err *err)
{
    p->sources = (struct day_sources){0};
    p->sources_open = true;
    tn_rc rc = day_open_http(p, err);
    if (rc == TN_OK) {
        rc = day_open_socket(p, err);
    }
    if (rc == TN_OK) {
        rc = day_open_mqtt(p, err);
    }
    return rc == TN_OK ? day_open_file(p, err) : rc;
}

/* ---- end ---- */

/* What goes wrong when nothing is wrong, or otherwise than a disk does, is a fault of ours. */
static void day_judge(const char *what, tn_rc rc, const struct tn_err *err)
{
    bool disk = rc == TN_FULL || rc == TN_IO || rc == TN_CONFLICT;
    if (!disk && !day.disk.off) {
        DAY_BAD("%s: %s", what, err->text);
    }
    if (day.calm && ++day_process.failures_calm > DAY_STARTS_CALM) {
        DAY_BAD("%s, though nothing is wrong any more: %s", what, err->text);
    }
}

static void day_close(struct day_process *p)
{
    if (p->sources.file_open) {
        tn_file_source_stop(&p->sources.file);
    }
    for (uint32_t i = 0; i < p->open; i++) {
        tn_keeper_close(&p->keepers[i]);
    }
    while (day_engines[0].env.exec->under_way > 0) {
        (void)tn_exec_turn(day_engines[0].env.exec, true);
    }
    if (p->intake_open) {
        tn_intake_close(&p->intake);
    }
    p->up = false;
    p->start_ms = day_now() + 100 + day_below(day_chance(6) ? DAY_HOUR : 30 * DAY_SECOND);
}

/* The process is no more: nothing of it runs on. */
static void day_end(const char *how, bool silent)
{
    struct day_process *p = &day_process;
    if (p->up) {
        day_say("the process ends: %s", how);
        day.disk.off = true; /* what follows changes nothing */
        day_close(p);
    }
    day_kill_gateway(silent);
}

static void day_kill(void)
{
    day_counts.kills++;
    day_end("killed", false);
    sim_disk_kill(&day.disk);
}

static void day_cut(void)
{
    day_counts.cuts++;
    day_end("the power is cut", day_chance(2));
    day.disk.model = day_chance(2) ? SIM_STRICT : SIM_ORDERED;
    sim_disk_reboot(&day.disk, day_chance(4) ? SIM_SEED_NOTHING : random_next(&day.random));
}

static void day_fail(const char *what, tn_rc rc, const struct tn_err *err)
{
    day_say("%s: %s", what, err->text);
    day_counts.failures++;
    if (day.disk.off) {
        return; /* whoever cut says what it was */
    }
    day_judge(what, rc, err);
    day_close(&day_process);
    day_kill_gateway(false);
    sim_disk_kill(&day.disk);
}

static void day_start(void)
{
    struct tn_err err = {0};
    struct day_process *p = &day_process;
    bool alone = p->alone;
    uint32_t failures = p->failures_calm;
    memset(p, 0, sizeof *p);
    p->up = true;
    p->alone = alone;
    p->failures_calm = failures;
    p->kept = day.kept = day.calm ? DAY_TABLES : day.kept;
    day_counts.starts++;
    day_say("the process starts");
    day_start_engine(&day_engines[0], &day.disk, random_next(&day.random));
    tn_arena_init(&p->arena, day_input, DAY_INPUT_SIZE);
    tn_log_init(&p->log, p->log_memory, sizeof p->log_memory, day_log, NULL);
    tn_rc rc = day_open_keepers(p, &err);
    if (rc == TN_OK) {
        rc = day_open_intake(p, &err);
    }
    if (rc != TN_OK) {
        day_fail("start", rc, &err);
    }
}

static void day_stop(void)
{
    struct day_process *p = &day_process;
    if (!p->up || p->stopping) {
        return;
    }
    day_say("the process is told to end");
    p->stopping = true;
    p->kill_ms = day_now() + DAY_STOP_MS;
    if (p->sources_open) {
        tn_http_server_stop(p->sources.http);
        tn_socket_source_stop(p->sources.socket);
        tn_mqtt_source_stop(p->sources.mqtt);
        tn_file_source_stop(&p->sources.file);
    }
    tn_intake_stop(&p->intake);
}

/* ---- turns ---- */

static bool day_has_stopped(const struct day_process *p)
{
    bool stopped = !p->sources_open || (tn_http_server_stopped(p->sources.http) &&
                                        tn_socket_source_stopped(p->sources.socket) &&
                                        tn_mqtt_source_stopped(p->sources.mqtt));
    return stopped && tn_intake_settled(&p->intake);
}

static void day_look_at_keepers(const struct day_process *p)
{
    for (uint32_t i = 0; i < p->kept && !day.disk.off; i++) {
        const struct tn_keeper *k = &p->keepers[i];
        bool fine = k->trouble == TN_OK || k->trouble == TN_FULL || k->trouble == TN_IO ||
                    k->trouble == TN_CONFLICT;
        if (!fine) {
            DAY_BAD("%s: %s", k->name, k->trouble_text.text);
        }
    }
}

/* It may also end with rows that wait in the journal for a disk with room. */
static bool day_is_whole(const struct day_process *p)
{
    bool whole = p->intake.ring.count == 0;
    for (uint32_t i = 0; i < p->kept; i++) {
        const struct tn_keeper *k = &p->keepers[i];
        whole = whole && k->state == TN_KEEPER_LIVE && tn_keeper_settled(k);
    }
    return whole;
}

/* The next configuration has one table more or less; it may lose only one that has committed all.
 * All else of it that may be another one is so with every start. */
static void day_reload(struct day_process *p)
{
    if (p->reloads && (p->whole || p->kept < DAY_TABLES)) {
        day.kept = p->kept < DAY_TABLES || day.calm ? DAY_TABLES : DAY_SPARE;
        p->start_ms = day_now();
        day_counts.reloads++;
        day_say("it begins again with %u tables", day.kept);
    }
}

static void day_go_on(struct day_process *p)
{
    struct tn_err err = {0};
    if (!p->ready && tn_intake_ready(&p->intake)) {
        p->ready = true;
        if (p->alone) {
            day_stop();
        } else if (!p->stopping) {
            tn_rc rc = day_open_sources(p, &err);
            CHECK_OK(rc, err);
        }
    }
    if (p->stopping && day_has_stopped(p)) {
        day_say("the process has stopped");
        day_counts.stops++;
        p->whole = day_is_whole(p);
        day_close(p);
        day_reload(p);
        day_kill_gateway(false);
        sim_disk_kill(&day.disk);
    } else if (p->stopping && day_now() > p->kill_ms) {
        if (day.calm) {
            DAY_BAD("the process doesn't end");
        }
        day_kill();
    }
}

/* What the file had is taken for good once a snapshot has it. */
static void day_turn_file(struct day_process *p, uint32_t *wait_ms)
{
    day_file_taken(&p->intake.tracks[0].committed);
    p->sources.file_notified = false;
    tn_file_source_turn(&p->sources.file, wait_ms);
}

/* Lowers `*wait_ms` to when it wants to be turned again; where it wants nothing it may be later
 * than it asks for. */
static void day_turn_process(int64_t *wait_ms)
{
    struct day_process *p = &day_process;
    struct tn_err err = {0};
    uint32_t soon = 0;
    uint32_t file_ms = UINT32_MAX;
    if (!p->up && day_now() >= p->start_ms) {
        day_start();
    }
    if (!p->up || day.disk.off) {
        return;
    }
    if (p->sources_open) {
        (void)tn_ops_run(&p->sources.ops, 1 + (int)day_below(8));
        day_turn_file(p, &file_ms);
    }
    tn_rc rc = tn_intake_turn(&p->intake, &soon, &err);
    if (rc != TN_OK) {
        day_fail("turn", rc, &err);
        return;
    }
    day_look_at_keepers(p);
    if (!day.disk.off) {
        day_go_on(p);
    }
    soon = soon < file_ms ? soon : file_ms;
    int64_t wait = p->sources.ops.first || p->sources.file_notified ? 0
                   : soon < 1000                                    ? soon
                                                                    : 1000 + day_below(DAY_LATE_MS);
    *wait_ms = wait < *wait_ms ? wait : *wait_ms;
}
