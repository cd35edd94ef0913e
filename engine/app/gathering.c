#include "app/gathering.h"

#include <stdio.h>
#include <unistd.h>

#include "app/round.h"
#include "app/stop.h"
#include "commit/expire.h"
#include "file/names.h"
#include "upload/gather_pauser.h"
#include "upload/owner.h"
#include "upload/probe.h"

enum {
    CACHE_SIZE = 64 * 1024 * 1024, /* of the lake's files, on disk */
    LOOK_MS = 2000,                /* how soon upkeep sees a pause */
    SCRATCH_PATH_MAX = 4096,
};

#define MS_NS INT64_C(1000000)

/* ---- the lake's files ---- */

static void work_on(struct tn_app *app, struct tn_io *io)
{
    app->env.io = io;
    for (int lane = 0; lane < TN_LANE_COUNT; lane++) {
        app->workers[lane].io = io;
    }
}

static tn_rc open_scratch(struct tn_gathering *g, struct tn_err *err)
{
    struct tn_io *io = &g->app->posix.io;
    static char path[SCRATCH_PATH_MAX];
    char folder[TN_LAKE_IO_PATH_MAX];
    int size = snprintf(folder, sizeof folder, ".tarn/gather/%s/", g->table);
    int whole = snprintf(path, sizeof path, "%s/%s", g->app->warehouse, folder);
    if (size >= (int)sizeof folder || whole >= (int)sizeof path) {
        return tn_err_set(err, TN_INVALID, 0, "%s: too long a path", g->table);
    }
    tn_rc rc = io->vtable->make_dir(io, folder, err);
    if (rc == TN_OK) {
        rc = tn_io_posix_open(&g->scratch, path, err);
    }
    g->has_scratch = rc == TN_OK;
    return rc;
}

/* Right before a snapshot of whatever kind gets its name: what it took to write its files may have
 * been long. */
static tn_rc look_for_pause(void *user, const char *path, struct tn_err *err)
{
    struct tn_gathering *g = user;
    struct tn_pause pause = {.set = false};
    if (!strstr(path, "/" TN_DIR_SNAPSHOT)) {
        return TN_OK;
    }
    tn_rc rc = tn_pause_read_target(g->place.lake.target, g->table,
                                    &g->app->workers[TN_LANE_LONG].arena, &pause, err);
    if (rc != TN_OK || !tn_pause_holds(&g->gather.pause_watch, &pause, g->app->env.clock)) {
        return rc;
    }
    (void)tn_pause_say(&pause, g->table, err);
    err->code = TN_IO; /* it is tried again */
    return TN_IO;
}

static tn_rc open_store(struct tn_gathering *g, struct tn_err *err)
{
    struct tn_lake_io_spec spec = {.target = g->place.lake.target,
                                   .scratch = &g->scratch.io,
                                   .arena = &g->app->input,
                                   .cache_size = CACHE_SIZE,
                                   .ready = look_for_pause,
                                   .user = g};
    tn_rc rc = open_scratch(g, err);
    if (rc == TN_OK) {
        rc = tn_lake_io_open(&g->lake, &spec, err);
    }
    g->has_lake = rc == TN_OK;
    g->io = &g->lake.io;
    return rc;
}

static tn_rc open_files(struct tn_gathering *g, const struct tn_gathering_spec *spec,
                        struct tn_err *err)
{
    struct tn_place_spec where = {.where = spec->where,
                                  .table = spec->table,
                                  .who = "tarn gather",
                                  .options = spec->options,
                                  .rate = spec->rate,
                                  .shared = true};
    tn_rc rc = tn_place_open(&g->place, g->app, &where, err);
    if (rc == TN_OK && !g->place.lake.target) {
        rc = tn_err_set(err, TN_ABSENT, 0, "%s isn't there", spec->where);
    }
    if (rc != TN_OK) {
        return rc;
    }
    g->io = &g->place.lake.posix.io;
    return g->place.lake.is_store ? open_store(g, err) : TN_OK;
}

/* Two gathers, and whoever commits beside them, rest on it that a name is given once. Asked once a
 * warehouse and store: then a file says so. No mirror is made of the table behind it. */
static tn_rc probe(struct tn_gathering *g, struct tn_err *err)
{
    char name[TN_LAKE_NAME_SIZE + 8];
    struct tn_io *scratch = &g->scratch.io;
    uint64_t size;
    (void)snprintf(name, sizeof name, "probed-%s", g->place.lake.consumer);
    bool is_store = g->place.lake.is_store;
    if (is_store && scratch->vtable->stat(scratch, name, &size, err) == TN_OK) {
        return TN_OK;
    }
    struct tn_target *target = g->place.lake.target;
    struct tn_clock *clock = g->app->env.clock;
    struct tn_arena *arena = &g->app->workers[TN_LANE_LONG].arena;
    tn_rc rc = is_store ? tn_probe(target, g->table, clock, arena, err) : TN_OK;
    if (rc == TN_OK) {
        rc = tn_owner_share(target, g->table, clock->vtable->now_ms(clock), arena, err);
    }
    return rc == TN_OK && is_store ? tn_io_write_new(scratch, name, tn_bytes_of("\n"), err) : rc;
}

/* ---- the table ---- */

static tn_rc read_schema(struct tn_gathering *g, struct tn_err *err)
{
    struct tn_arena *arena = &g->app->table;
    tn_arena_reset(arena, g->schema_mark);
    tn_schemas_init(&g->schemas, g->io, g->root, arena);
    tn_rc rc = tn_schemas_newest(&g->schemas, &g->schema, err);
    if (rc == TN_OK) {
        rc = tn_options_read(g->schema, TN_OPTIONS_WRITE, arena, &g->options, err);
    }
    return rc;
}

static void note_refused(void *user, const struct tn_inbox_item *item, const char *reason)
{
    (void)user;
    (void)fprintf(stderr, "tarn: entry %s/%lld is put aside: %s\n", item->gateway,
                  (long long)item->id, reason);
}

static tn_rc open_gather(struct tn_gathering *g, int64_t sure_ms, struct tn_err *err)
{
    char who[TN_LEASE_WHO_SIZE];
    char host[64] = "";
    struct tn_gather_spec spec = {
        .table = {g->table, g->root, g->schema, &g->options},
        .worker = &g->app->workers[TN_LANE_LONG],
        .arena = &g->arena,
        .sure_ms = sure_ms,
        .refused = note_refused,
    };
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(who, sizeof who, "tarn gather, process %ld on %s", (long)getpid(), host);
    tn_lease_init(&g->lease, g->io, g->app->env.clock, g->table, who);
    return tn_gather_open(&g->gather, &spec, err);
}

tn_rc tn_gathering_open(struct tn_gathering *g, struct tn_app *app,
                        const struct tn_gathering_spec *spec, struct tn_err *err)
{
    memset(g, 0, sizeof *g);
    g->app = app;
    g->table = spec->table;
    g->place.lake.lock = -1;
    tn_rc rc = tn_name_table_root(&app->table, spec->table, &g->root, err);
    if (rc == TN_OK) {
        rc = open_files(g, spec, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    (void)tn_budget_carve(&app->budget, "upload");
    tn_env_measure(&app->env, &app->budget);
    tn_budget_arena(&app->budget, "upload", &g->arena);
    work_on(app, g->io);
    g->schema_mark = tn_arena_mark(&app->table);
    rc = read_schema(g, err);
    if (rc == TN_OK) {
        rc = probe(g, err);
    }
    return rc == TN_OK ? open_gather(g, spec->sure_ms, err) : rc;
}

void tn_gathering_close(struct tn_gathering *g)
{
    if (g->lease.io) {
        tn_lease_give(&g->lease, &g->app->workers[TN_LANE_LONG].arena);
    }
    work_on(g->app, &g->app->posix.io);
    if (g->has_lake) {
        tn_lake_io_close(&g->lake);
    }
    if (g->has_scratch) {
        tn_io_posix_close(&g->scratch);
    }
    tn_place_close(&g->place);
}

/* ---- rounds ---- */

/* What was left behind is no pause for this gather; for the next one it would be. */
static void forget_pause(struct tn_gathering *g, const struct tn_pause *pause)
{
    struct tn_err ignored;
    tn_rc rc = tn_pause_forget(g->place.lake.target, g->table, pause,
                               &g->app->workers[TN_LANE_LONG].arena, &ignored);
    (void)rc;
}

tn_rc tn_gathering_round(struct tn_gathering *g, struct tn_gather_result *result,
                         struct tn_err *err)
{
    tn_rc rc = tn_gather_round(&g->gather, false, result, err);
    if (rc == TN_OK && result->old_schema) {
        rc = read_schema(g, err);
        if (rc == TN_OK) {
            g->gather.spec.table.schema = g->schema;
            rc = tn_gather_round(&g->gather, true, result, err);
        }
    }
    if (rc == TN_OK && result->pause_over) {
        forget_pause(g, &result->pause);
    }
    return rc;
}

/* ---- upkeep ---- */

static struct tn_gathering *of_round; /* a round's `stopped` takes nothing */

static bool is_due(struct tn_gathering *g)
{
    struct tn_clock *clock = g->app->env.clock;
    int64_t now = clock->vtable->monotonic_ns(clock);
    if (now - g->paused_look_ns < LOOK_MS * MS_NS) {
        return false;
    }
    g->paused_look_ns = now;
    return true;
}

static bool must_stop(void)
{
    struct tn_gathering *g = of_round;
    struct tn_pause pause;
    struct tn_err ignored;
    struct tn_arena *scratch = &g->app->input;
    if (tn_stop_came(0)) {
        g->stopped = true;
    } else if (!g->stopped && is_due(g)) {
        g->stopped = tn_lease_keep(&g->lease, scratch, &ignored) == TN_EXISTS ||
                     (tn_pause_read(g->io, g->table, scratch, &pause, &ignored) == TN_OK &&
                      tn_pause_holds(&g->gather.pause_watch, &pause, g->app->env.clock));
    }
    return g->stopped;
}

static tn_rc compact(struct tn_gathering *g, struct tn_err *err)
{
    struct tn_compact_round round;
    struct tn_compact_round_spec spec = {.app = g->app, .table = g->table, .stopped = must_stop};
    tn_rc rc = tn_compact_round(&spec, &round, err);
    return rc == TN_CANCELED ? TN_OK : rc;
}

static tn_rc expire(struct tn_gathering *g, struct tn_err *err)
{
    struct tn_expire_spec spec = {.root = g->root, .schema = g->schema, .options = &g->options};
    struct tn_expire_result result = {.snapshots = 1};
    tn_rc rc = TN_OK;
    while (rc == TN_OK && result.snapshots > 0 && !must_stop()) {
        rc = tn_expire(&spec, &g->app->workers[TN_LANE_LONG], &result, err);
    }
    return rc == TN_AGAIN ? TN_OK : rc; /* a tag was made meanwhile */
}

tn_rc tn_gathering_upkeep(struct tn_gathering *g, struct tn_err *err)
{
    of_round = g;
    g->stopped = false;
    g->paused_look_ns = 0;
    if (must_stop()) {
        return TN_OK;
    }
    bool settled = false;
    tn_rc rc = compact(g, err);
    if (rc == TN_OK && !g->stopped) { /* what is above what is held makes that sure */
        rc = tn_gather_look_again(&g->gather, &settled, err);
    }
    return rc == TN_OK && settled ? expire(g, err) : rc;
}
