#include "app/lakes_boot.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "commit/manifest.h"
#include "io/net_uv.h"
#include "upload/s3_target.h"
#include "upload/xml.h"

enum {
    BUFFER_SIZE = 4096,
    TLS_BESIDE = 64 * 1024, /* what is TLS's whoever speaks it, and some certificates */
    BUFFERS = 4,
    ROUNDING = 64,
    XML_SIZE = 16 * 1024,      /* a connection */
    BESIDE_LINKS = 192 * 1024, /* what a sync takes beside its connections: a guess from some */
    BESIDE_SHARE = 160 * 1024, /* a lake, what is known of a table's files, paths */
    LINKS_SHARED = 2,          /* a name that one alone asks for says nothing of the store */
    WAIT_MS = 50,
};

/* ---- stores ---- */

static bool has_stores(const struct tn_config *config)
{
    bool any = false;
    for (const struct tn_config_lake *l = config->lakes; l; l = l->next) {
        any = any || tn_lake_is_store(l->target);
    }
    return any;
}

/* ---- shared tables ---- */

uint32_t tn_lakes_boot_ways(const struct tn_config *config, struct tn_io *io,
                            struct tn_arena *scratch)
{
    uint32_t ways = 0;
    for (const struct tn_config_lake *l = config->lakes; l; l = l->next) {
        for (const struct tn_text_list_item *t = l->tables; t; t = t->next) {
            struct tn_share share;
            struct tn_err ignored;
            size_t mark = tn_arena_mark(scratch);
            bool shared = tn_share_read(io, t->text, scratch, &share, &ignored) == TN_OK;
            ways |= shared ? UINT32_C(1) << share.way : 0;
            tn_arena_reset(scratch, mark);
        }
    }
    return ways;
}

static bool has_way(uint32_t ways, enum tn_share_way way)
{
    return ways & (UINT32_C(1) << way);
}

/* Who commits by himself writes manifests. */
static size_t block_of(uint32_t ways)
{
    return has_way(ways, TN_SHARE_DIRECT) ? TN_MANIFEST_BLOCK_SIZE : 0;
}

/* What a sync of them takes. */
static size_t sync_of(uint32_t ways)
{
    size_t most = 0;
    for (int way = TN_SHARE_DIRECT; way <= TN_SHARE_GATHER; way++) {
        size_t size = tn_share_sync_memory((enum tn_share_way)way);
        most = has_way(ways, (enum tn_share_way)way) && size > most ? size : most;
    }
    return most > 0 ? BESIDE_SHARE + most : 0;
}

size_t tn_lakes_boot_needs(const struct tn_config *config, uint32_t ways)
{
    size_t net = tn_net_uv_size(2 * TN_LAKE_LINKS) + BUFFERS * (BUFFER_SIZE + ROUNDING);
    uint32_t links = ways ? LINKS_SHARED : 1;
    size_t stores = net + (size_t)TN_LAKE_LINKS * XML_SIZE + tn_s3_target_size(links);
    size_t shared = ways ? tn_codec_size(1, block_of(ways)) + sync_of(ways) : 0;
    size_t sync = shared > TN_LAKES_MEMORY_MIN ? shared : TN_LAKES_MEMORY_MIN;
    return !config->lakes ? 0 : sync + (has_stores(config) ? stores : 0);
}

void tn_lakes_boot_grow(struct tn_budget *budget, const struct tn_config *config, uint32_t ways)
{
    if (ways) {
        tn_budget_grow(budget, "upload", tn_lakes_boot_needs(config, ways));
    }
}

/* ---- memory ---- */

static bool fits(struct tn_app *app, const struct tn_config *config, uint32_t ways)
{
    const struct tn_part *part = tn_budget_part(&app->budget, "upload");
    return part->size >= tn_lakes_boot_needs(config, ways) &&
           part->size < tn_budget_part(&app->budget, "memtable")->size;
}

size_t tn_lakes_boot_policies(const struct tn_config *config)
{
    return config->policy_count * (size_t)TN_LAKES_POLICY_SIZE;
}

tn_rc tn_lakes_boot(struct tn_lakes_boot *boot, struct tn_app *app, const struct tn_config *config,
                    struct tn_err *err)
{
    struct tn_worker *worker = &boot->worker;
    *boot = (struct tn_lakes_boot){.app = app,
                                   .ways = tn_lakes_boot_ways(config, app->env.io, app->env.arena)};
    tn_lakes_boot_grow(&app->budget, config, boot->ways);
    if (!fits(app, config, boot->ways)) {
        return tn_err_set(err, TN_INVALID, 0, "lakes: the %zu KiB of the part '%s' are too few%s",
                          tn_budget_part(&app->budget, boot->ways ? "memtable" : "upload")->size /
                              1024,
                          boot->ways ? "memtable" : "upload",
                          boot->ways ? " for what shared tables take of them; give it more memory"
                                     : "; give it more memory");
    }
    if (tn_budget_part(&app->budget, "policy")->size < tn_lakes_boot_policies(config)) {
        return tn_err_set(err, TN_INVALID, 0,
                          "lakes: %" PRIu32 " policies: the %zu KiB of the part 'policy' are too "
                          "few; give it more memory, or lakes one `policy` less",
                          config->policy_count,
                          tn_budget_part(&app->budget, "policy")->size / 1024);
    }
    *worker = (struct tn_worker){.io = app->env.io, .clock = app->env.clock};
    (void)tn_budget_carve(&app->budget, "upload");
    if (config->policy_count > 0) {
        (void)tn_budget_carve(&app->budget, "policy");
    }
    tn_env_measure(&app->env, &app->budget);
    tn_budget_arena(&app->budget, "upload", &worker->arena);
    tn_rc rc = tn_codec_init(&worker->codec, 1, block_of(boot->ways), &worker->arena, err);
    return rc == TN_OK ? tn_plan_cache_make(&worker->arena, &worker->plans, err) : rc;
}

static uint32_t links_of(const struct tn_arena *arena, uint32_t ways)
{
    uint32_t links = TN_LAKE_LINKS;
    size_t beside = sync_of(ways) > BESIDE_LINKS ? sync_of(ways) : BESIDE_LINKS;
    while (links > 1 && tn_s3_target_size(links) + beside > tn_arena_free(arena)) {
        links--;
    }
    return links;
}

static uint32_t tls_links_of(struct tn_budget *budget)
{
    size_t size = tn_budget_part(budget, "tls")->size;
    size_t beside = TLS_BESIDE + TN_TLS_STREAM_SIZE;
    size_t links = size > beside ? (size - beside) / TN_TLS_STREAM_SIZE : 0;
    return links == 0 ? 1 : links < TN_LAKE_LINKS ? (uint32_t)links : TN_LAKE_LINKS;
}

static tn_rc open_net(struct tn_lakes_boot *boot, struct tn_err *err)
{
    struct tn_arena *arena = &boot->worker.arena;
    void *memory;
    tn_rc rc = tn_arena_need(arena, BUFFERS * (BUFFER_SIZE + ROUNDING), "buffers", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_pool_init(&boot->buffers, memory, BUFFERS * (BUFFER_SIZE + ROUNDING), BUFFER_SIZE);
    struct tn_net_spec spec = {.heap = &boot->app->uv,
                               .arena = arena,
                               .buffers = &boot->buffers,
                               .clock = &tn_clock_system,
                               .streams_max = 2 * TN_LAKE_LINKS};
    return tn_net_uv_open(&spec, &boot->doors.net, err);
}

static tn_rc open_xml(struct tn_lakes_boot *boot, struct tn_err *err)
{
    size_t size = (size_t)TN_LAKE_LINKS * XML_SIZE;
    void *memory;
    tn_rc rc = tn_arena_need(&boot->worker.arena, size, "a store's answers", &memory, err);
    if (rc == TN_OK) {
        tn_heap_init(&boot->doors.xml, memory, size, true);
        tn_xml_use_heap(&boot->doors.xml);
    }
    return rc;
}

tn_rc tn_lakes_boot_stores(struct tn_lakes_boot *boot, const struct tn_config *config,
                           struct tn_err *err)
{
    bool any = has_stores(config);
    tn_rc rc = any ? open_net(boot, err) : TN_OK;
    if (rc == TN_OK && any) {
        rc = open_xml(boot, err);
    }
    boot->links = links_of(&boot->worker.arena, boot->ways);
    boot->tls_links = tls_links_of(&boot->app->budget);
    return rc;
}

tn_rc tn_lakes_boot_options(const struct tn_config_lake *config, struct tn_lake_options *options,
                            struct tn_err *err)
{
    tn_rc rc = TN_OK;
    *options = (struct tn_lake_options){.ca_file = NULL};
    for (const struct tn_text_list_item *o = config->options; rc == TN_OK && o; o = o->next) {
        rc = tn_lake_option(options, o->text, err);
    }
    tn_lake_options_environment(options);
    return rc;
}

bool tn_lakes_boot_tls(const struct tn_config *config)
{
    for (const struct tn_config_lake *l = config->lakes; l; l = l->next) {
        struct tn_lake_options options;
        struct tn_err ignored;
        tn_rc rc = tn_lakes_boot_options(l, &options, &ignored);
        if (rc == TN_OK && tn_lake_is_store(l->target) && !tn_lake_is_plain(&options)) {
            return true;
        }
    }
    return false;
}

void tn_lakes_boot_close(struct tn_lakes_boot *boot, struct tn_exec *exec, uint32_t wait_ms)
{
    tn_lake_distrust(&boot->doors);
    if (boot->doors.net && tn_net_rest(boot->doors.net, exec, wait_ms)) {
        tn_net_close(boot->doors.net);
    }
    boot->doors.net = NULL;
}

/* ---- the door ---- */

static tn_rc name_lake(void *user, const struct tn_config_lake *config,
                       char consumer[TN_LAKES_CONSUMER_SIZE], struct tn_err *err)
{
    struct tn_lake_options options;
    tn_rc rc = tn_lakes_boot_options(config, &options, err);
    (void)user;
    _Static_assert((int)TN_LAKES_CONSUMER_SIZE >= (int)TN_LAKE_NAME_SIZE,
                   "a lake's name is its consumer's");
    return rc == TN_OK ? tn_lake_name(config->target, &options, consumer, err) : rc;
}

bool tn_lakes_boot_is_there(const struct tn_config_lake *lake, const char *where)
{
    struct tn_config_lake there = *lake;
    char names[2][TN_LAKES_CONSUMER_SIZE];
    struct tn_err ignored;
    there.target = where;
    return name_lake(NULL, lake, names[0], &ignored) != TN_OK ||
           name_lake(NULL, &there, names[1], &ignored) != TN_OK || strcmp(names[0], names[1]) == 0;
}

/* Of the last lake that was opened: each has options of its own, and few change between two. */
static tn_rc prepare_store(struct tn_lakes_boot *boot, const struct tn_config_lake *config,
                           struct tn_lake_spec *spec, struct tn_err *err)
{
    boot->kind = "credentials";
    tn_rc rc = tn_lakes_boot_options(config, &boot->options, err);
    if (rc == TN_OK) {
        boot->kind = "certificate";
        rc = tn_lake_trust(&boot->doors, &boot->options, spec->arena, err);
    }
    bool plain = tn_lake_is_plain(&boot->options);
    boot->doors.links = plain || boot->links < boot->tls_links ? boot->links : boot->tls_links;
    spec->options = &boot->options;
    spec->doors = &boot->doors;
    boot->kind = rc == TN_OK ? "credentials" : boot->kind;
    return rc;
}

static tn_rc open_side(struct tn_lakes_boot *boot, const struct tn_lakes_wish *wish,
                       struct tn_err *err)
{
    const char *name = tn_arena_format(wish->arena, "%s.sending", wish->table);
    struct tn_app *app = boot->app;
    tn_rc rc =
        name ? tn_side_folder_open(&boot->side, app->env.io, app->warehouse, name, wish->arena, err)
             : tn_err_set(err, TN_AGAIN, 0, "no memory for a folder's name");
    boot->has_side = rc == TN_OK;
    return rc;
}

static tn_rc open_place(struct tn_lakes_boot *boot, const struct tn_lakes_wish *wish,
                        struct tn_lake_spec *spec, struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(wish->arena, sizeof *boot->lake, "a lake", &memory, err);
    if (rc == TN_OK && tn_lake_is_store(wish->lake->target)) {
        rc = prepare_store(boot, wish->lake, spec, err);
    }
    if (rc == TN_OK) {
        boot->lake = memory;
        rc = tn_lake_open_by(boot->lake, spec, err);
    }
    return rc;
}

static tn_rc open_lake(void *user, const struct tn_lakes_wish *wish, struct tn_lakes_place *place,
                       struct tn_err *err)
{
    struct tn_lakes_boot *boot = user;
    struct tn_lake_spec spec = {.where = wish->lake->target,
                                .table = wish->table,
                                .who = "tarn run",
                                .warehouse = boot->app->posix.root,
                                .make = true,
                                .shared = wish->shared,
                                .arena = wish->arena,
                                .io = boot->app->env.io,
                                .rate = wish->rate,
                                .patience_ms = wish->patience_ms};
    boot->kind = NULL;
    boot->has_side = false;
    boot->stop = wish->stop;
    tn_rc rc = open_place(boot, wish, &spec, err);
    if (rc != TN_OK) {
        return rc;
    }
    boot->kind = NULL;
    rc = wish->shared ? open_side(boot, wish, err) : TN_OK;
    if (rc != TN_OK) {
        tn_lake_close(boot->lake);
        return rc;
    }
    place->target = tn_lake_target(boot->lake);
    place->target->stop = wish->stop;
    place->scratch = boot->has_side ? tn_side_folder_io(&boot->side) : NULL;
    return TN_OK;
}

/* In pieces: a stop ends it. */
static void let_pass(void *user, uint32_t ms)
{
    struct tn_lakes_boot *boot = user;
    while (ms > 0 && !atomic_load(boot->stop)) {
        uint32_t piece = ms < WAIT_MS ? ms : WAIT_MS;
        struct timespec time = {0, (long)piece * 1000000};
        (void)nanosleep(&time, NULL);
        ms -= piece;
    }
}

/* A folder has none: what its disk says is enough. */
static const char *kind_of(void *user, const struct tn_target *target)
{
    const struct tn_lakes_boot *boot = user;
    if (!target) {
        return boot->kind;
    }
    enum tn_s3_trouble trouble =
        boot->lake->is_store ? tn_s3_target_trouble(target) : TN_S3_TROUBLE_NONE;
    return trouble == TN_S3_TROUBLE_NONE ? NULL : tn_s3_trouble_text(trouble);
}

static void close_lake(void *user, struct tn_target *target)
{
    struct tn_lakes_boot *boot = user;
    (void)target;
    if (boot->has_side) {
        tn_side_folder_close(&boot->side);
    }
    tn_lake_close(boot->lake);
}

static bool is_near(void *user, const struct tn_config_lake *config)
{
    struct tn_lake_options options;
    struct tn_err ignored;
    (void)user;
    return !tn_lake_is_store(config->target) ||
           (tn_lakes_boot_options(config, &options, &ignored) == TN_OK &&
            tn_lake_is_here(&options));
}

static void look_at_link(void *user, const struct tn_text_list_item *metered, struct tn_link *link)
{
    (void)user;
    tn_link_look(metered, link);
}

struct tn_lakes_door tn_lakes_door(struct tn_lakes_boot *boot)
{
    return (struct tn_lakes_door){.name = name_lake,
                                  .open = open_lake,
                                  .wait = let_pass,
                                  .kind = kind_of,
                                  .close = close_lake,
                                  .near = is_near,
                                  .link = look_at_link,
                                  .user = boot};
}
