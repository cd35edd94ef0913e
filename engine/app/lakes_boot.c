#include "app/lakes_boot.h"

#include "commit/manifest.h"

static bool fits(const struct tn_app *app)
{
    struct tn_budget *budget = (struct tn_budget *)&app->budget;
    const struct tn_part *part = tn_budget_part(budget, "upload");
    return part->size >= TN_LAKES_MEMORY_MIN &&
           part->size < tn_budget_part(budget, "memtable")->size;
}

tn_rc tn_lakes_boot(struct tn_lakes_boot *boot, struct tn_app *app, struct tn_err *err)
{
    struct tn_worker *worker = &boot->worker;
    *boot = (struct tn_lakes_boot){.app = app};
    if (!fits(app)) {
        return tn_err_set(
            err, TN_INVALID, 0,
            "lakes: the %zu KiB of the part 'upload' are too few; give it more memory",
            tn_budget_part(&app->budget, "upload")->size / 1024);
    }
    *worker = (struct tn_worker){.io = app->env.io, .clock = app->env.clock};
    (void)tn_budget_carve(&app->budget, "upload");
    tn_env_measure(&app->env, &app->budget);
    tn_budget_arena(&app->budget, "upload", &worker->arena);
    tn_rc rc = tn_codec_init(&worker->codec, 1, 0, &worker->arena, err); /* it only reads */
    return rc == TN_OK ? tn_plan_cache_make(&worker->arena, &worker->plans, err) : rc;
}

/* ---- the door ---- */

static tn_rc open_lake(void *user, const struct tn_config_lake *config, const char *table,
                       atomic_bool *stop, struct tn_arena *arena, struct tn_target **target,
                       struct tn_err *err)
{
    struct tn_lakes_boot *boot = user;
    struct tn_lake_spec spec = {.where = config->target,
                                .table = table,
                                .who = "tarn run",
                                .warehouse = boot->app->posix.root,
                                .make = true,
                                .arena = arena};
    void *memory;
    tn_rc rc = tn_arena_need(arena, sizeof *boot->lake, "a lake", &memory, err);
    if (rc == TN_OK) {
        boot->lake = memory;
        rc = tn_lake_open_by(boot->lake, &spec, err);
    }
    if (rc == TN_OK) {
        *target = tn_lake_target(boot->lake);
        (*target)->stop = stop;
    }
    return rc;
}

static void close_lake(void *user, struct tn_target *target)
{
    struct tn_lakes_boot *boot = user;
    (void)target;
    tn_lake_close(boot->lake);
}

struct tn_lakes_door tn_lakes_door(struct tn_lakes_boot *boot)
{
    return (struct tn_lakes_door){.open = open_lake, .close = close_lake, .user = boot};
}
