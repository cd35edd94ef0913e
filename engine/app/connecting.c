#include "app/connecting.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/lakes_boot.h"
#include "app/net_boot.h"
#include "app/teller.h"
#include "upload/s3_target.h"

enum {
    STREAMS = 2 * TN_LAKE_LINKS,
    XML_SIZE = 16 * 1024,
    TEXT_SIZE = 2 * TN_ERR_TEXT_SIZE,
    PATH_SIZE = 4096,
    OWNER_SIZE = 4096, /* of the small file that is asked for */
    PATIENCE_MS = 10 * 1000,
    TURN_MS = 100,
    REST_MS = 2000,
    SKEW_MS = 2000, /* more is told */
};

struct connecting {
    struct tn_app *app;
    const struct tn_config *config;
    struct tn_cells *cells;
    struct tn_arena *arena; /* for the moment, and what stays is at its begin */
    struct tn_lake_doors doors;
    uint32_t asked;
    uint32_t failed;
};

/* ---- what is said ---- */

static const struct {
    const char *kind;
    const char *advice;
} kinds[] = {
    {"network", "is the address right, does it run, and may this machine reach it?"},
    {"certificate", "name who signs it (s3.ca-file, tls.ca); is this machine's clock right?"},
    {"credentials", "look at the access key and the secret key; a session token expires"},
    {"permission", "the key needs s3:GetObject and s3:PutObject there"},
    {"clock", "set this machine's clock"},
    {"store", "is the bucket's name right, and its region?"},
    {"folder", "make it, or mount it, and let tarn write there"},
    {"refused", "look at user, password and what the broker lets them do"},
    {"configuration", "see `tarn help config` and `tarn help upload`"},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const char *advice_of(const char *kind)
{
    for (int i = 0; kind && i < KINDS; i++) {
        if (strcmp(kinds[i].kind, kind) == 0) {
            return kinds[i].advice;
        }
    }
    return "see `tarn help troubles`";
}

/* `kind` NULL: it works. */
static tn_rc put(struct connecting *c, const char *what, const char *name, const char *at,
                 const char *kind, const char *why, struct tn_err *err)
{
    char text[TEXT_SIZE];
    c->asked++;
    c->failed += kind != NULL;
    (void)snprintf(text, sizeof text, kind ? "%s: %s" : "%s", why, advice_of(kind));
    tn_cells_text(c->cells, what);
    tn_cells_text(c->cells, name);
    tn_cells_text(c->cells, at);
    tn_buf_text(&c->cells->text, kind ? "false" : "true");
    tn_cells_json(c->cells);
    tn_cells_text(c->cells, kind);
    tn_cells_text(c->cells, text);
    return tn_cells_end(c->cells, err);
}

/* ---- lakes ---- */

/* One that isn't there the first upload makes, in a folder that is. */
static bool may_be_made(const char *path)
{
    static char parent[PATH_SIZE];
    const char *slash = strrchr(path, '/');
    size_t size = slash ? (size_t)(slash - path) : 0;
    if (!slash || size + 2 > sizeof parent) {
        return false;
    }
    (void)snprintf(parent, sizeof parent, "%.*s/", (int)size, path);
    return access(parent, W_OK | X_OK) == 0;
}

static tn_rc check_folder(struct connecting *c, const struct tn_config_lake *lake,
                          struct tn_err *err)
{
    bool there = access(lake->target, F_OK) == 0;
    bool open = there ? access(lake->target, W_OK | X_OK) == 0 : may_be_made(lake->target);
    return put(c, "lake", lake->name, lake->target, open ? NULL : "folder",
               there && open ? "the folder is there, and may be written to"
               : open        ? "the folder isn't there: the first upload makes it"
               : there       ? "the folder may not be written to"
                             : "there is no such folder, and it can't be made",
               err);
}

/* Whatever is there or not: that the store answers such a question is what counts. A 403 may be of
 * the name alone, which whoever may not list is told of what isn't there. */
static tn_rc ask_store(struct tn_lake *lake, const struct tn_config_lake *config,
                       struct connecting *c, bool *reads, struct tn_err *why)
{
    struct tn_target *target = tn_lake_target(lake);
    struct tn_bytes bytes;
    const char *path =
        tn_arena_format(c->arena, ".tarn/%s/owner", config->tables ? config->tables->text : "db.t");
    tn_rc rc = path ? target->vtable->read(target, path, OWNER_SIZE, c->arena, &bytes, why)
                    : tn_err_set(why, TN_AGAIN, 0, "no memory for a path");
    *reads = !tn_target_is_hidden(rc, why);
    return rc == TN_ABSENT || rc == TN_INVALID ? TN_OK : rc;
}

static void say_store(const struct tn_target *target, bool reads, char *text, size_t size)
{
    int64_t ahead_ms = tn_s3_target_clock_offset_ms(target);
    bool apart = ahead_ms > SKEW_MS || ahead_ms < -SKEW_MS;
    int used =
        snprintf(text, size, "it answers, and %s (nothing was written)",
                 reads ? "lets us read"
                       : "403 of what isn't there: whether we may read shows where something is");
    if (apart && used > 0) {
        (void)snprintf(
            text + used, size - (size_t)used,
            "; this machine's clock is %" PRId64 " s %s the store's, whose time it signs "
            "with: set it",
            (ahead_ms < 0 ? -ahead_ms : ahead_ms) / 1000, ahead_ms < 0 ? "ahead of" : "behind");
    }
}

/* As the daemon would. */
static const char *try_store(struct connecting *c, const struct tn_config_lake *config,
                             struct tn_lake *lake, char *text, size_t size)
{
    struct tn_lake_options options;
    struct tn_err why = {0};
    const char *kind = "configuration";
    bool opened = false;
    bool reads = true;
    tn_rc rc = tn_lakes_boot_options(config, &options, &why);
    if (rc == TN_OK) {
        kind = "certificate";
        rc = tn_lake_trust(&c->doors, &options, c->arena, &why);
    }
    struct tn_lake_spec spec = {.where = config->target,
                                .table = "db.t",
                                .who = "tarn check",
                                .warehouse = c->app->posix.root,
                                .arena = c->arena,
                                .io = &c->app->posix.io,
                                .options = &options,
                                .doors = &c->doors,
                                .patience_ms = PATIENCE_MS};
    if (rc == TN_OK) {
        kind = "credentials";
        rc = tn_lake_open_by(lake, &spec, &why);
        opened = rc == TN_OK;
    }
    if (opened) {
        rc = ask_store(lake, config, c, &reads, &why);
        enum tn_s3_trouble trouble = tn_s3_target_trouble(tn_lake_target(lake));
        kind = rc == TN_OK                     ? NULL
               : trouble == TN_S3_TROUBLE_NONE ? "store"
                                               : tn_s3_trouble_text(trouble);
        say_store(tn_lake_target(lake), reads, text, size);
        tn_lake_close(lake);
    }
    if (rc != TN_OK) {
        (void)snprintf(text, size, "%s", why.text);
    }
    return rc == TN_OK ? NULL : kind;
}

static tn_rc check_lake(struct connecting *c, const struct tn_config_lake *config,
                        struct tn_err *err)
{
    char text[TN_ERR_TEXT_SIZE];
    void *memory;
    if (!tn_lake_is_store(config->target)) {
        return check_folder(c, config, err);
    }
    size_t mark = tn_arena_mark(c->arena);
    tn_rc rc = tn_arena_need(c->arena, sizeof(struct tn_lake), "a lake", &memory, err);
    if (rc == TN_OK) {
        const char *kind = try_store(c, config, memory, text, sizeof text);
        rc = put(c, "lake", config->name, config->target, kind, text, err);
    }
    tn_arena_reset(c->arena, mark);
    return rc;
}

/* ---- brokers, and who takes a POST ---- */

static struct tn_bytes text_or_none(const char *text)
{
    return text ? tn_bytes_of(text) : (struct tn_bytes){0};
}

/* Another try where only the version of MQTT may have been wrong. */
static void knock(struct connecting *c, struct tn_teller *teller)
{
    struct tn_ops ops = {NULL, NULL};
    enum tn_mqtt_version version;
    int tries = 0;
    do {
        version = teller->version;
        tn_teller_knock(teller, &ops);
        while (tn_teller_busy(teller)) {
            (void)tn_ops_run(&ops, 1);
            if (tn_teller_busy(teller) && !ops.first) {
                (void)tn_net_turn(c->doors.net, TURN_MS);
            }
        }
        tries++;
    } while (teller->rc != TN_OK && teller->version != version && tries < 2);
}

static const char *kind_of(const struct tn_teller *teller)
{
    return teller->rc == TN_OK                          ? NULL
           : teller->rc == TN_INVALID && !teller->talks ? "certificate"
           : teller->talks                              ? "refused"
                                                        : "network";
}

static tn_rc try_place(struct connecting *c, const struct tn_config_notify *config,
                       struct tn_teller *teller, struct tn_err *err)
{
    struct tn_tls_config *tls = NULL;
    struct tn_clock *clock = c->app->env.clock;
    char id[32];
    struct tn_tls_spec spec = {.clock = clock,
                               .ca = text_or_none(config->tls.ca),
                               .pinned = text_or_none(config->tls.pinned),
                               .certificate = text_or_none(config->tls.certificate),
                               .key = text_or_none(config->tls.key)};
    (void)snprintf(id, sizeof id, "tarn-check-%08" PRIx32, (uint32_t)clock->vtable->random(clock));
    tn_rc rc = spec.ca.data || spec.pinned.data ? tn_tls_config_make(&spec, &tls, err) : TN_OK;
    if (rc == TN_OK) {
        struct tn_teller_spec of = {
            .net = c->doors.net, .tls = tls, .config = config, .client_id = id};
        rc = tn_teller_open(teller, &of, err);
    }
    if (rc == TN_OK) {
        knock(c, teller);
        (void)tn_net_rest(c->doors.net, NULL, REST_MS);
    }
    if (tls) {
        tn_tls_config_free(tls);
    }
    return rc;
}

static tn_rc check_place(struct connecting *c, const char *what, const char *name,
                         const struct tn_config_notify *config, struct tn_err *err)
{
    struct tn_err why = {0};
    void *memory;
    size_t mark = tn_arena_mark(c->arena);
    tn_rc rc = tn_arena_need(c->arena, sizeof(struct tn_teller), "a broker", &memory, err);
    if (rc == TN_OK) {
        struct tn_teller *teller = memory;
        tn_rc wrong = try_place(c, config, teller, &why);
        const char *kind = wrong != TN_OK ? "configuration" : kind_of(teller);
        const char *text = wrong != TN_OK     ? why.text
                           : kind             ? teller->err.text
                           : teller->url.mqtt ? "it lets us in (nothing was sent)"
                                              : "it is there (nothing was sent)";
        rc = put(c, what, name, wrong == TN_OK ? teller->url.authority : NULL, kind, text, err);
    }
    tn_arena_reset(c->arena, mark);
    return rc;
}

static tn_rc check_source(struct connecting *c, const struct tn_config_source *source,
                          struct tn_err *err)
{
    struct tn_config_notify as = {
        .url = source->url, .user = source->user, .password = source->password, .tls = source->tls};
    return check_place(c, "broker", source->name, &as, err);
}

/* ---- all of them ---- */

static tn_rc open_doors(struct connecting *c, struct tn_err *err)
{
    size_t size = (size_t)TN_LAKE_LINKS * XML_SIZE;
    void *memory;
    tn_rc rc = tn_arena_need(c->arena, size, "a store's answers", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_heap_init(&c->doors.xml, memory, size, true);
    tn_xml_use_heap(&c->doors.xml);
    c->doors.links = 1;
    rc = tn_net_boot(c->app, STREAMS, &c->doors.net, err);
    if (rc == TN_OK) {
        tn_net_boot_tls(c->app);
    }
    return rc;
}

static tn_rc check_each(struct connecting *c, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (const struct tn_config_lake *l = c->config->lakes; rc == TN_OK && l; l = l->next) {
        rc = check_lake(c, l, err);
        if (rc == TN_OK && l->notify.url) {
            rc = check_place(c, "notify", l->name, &l->notify, err);
        }
    }
    for (const struct tn_config_source *s = c->config->sources; rc == TN_OK && s; s = s->next) {
        rc = s->kind == TN_SOURCE_MQTT ? check_source(c, s, err) : TN_OK;
    }
    return rc;
}

tn_rc tn_connect_all(struct tn_app *app, const struct tn_config *config, struct tn_cells *cells,
                     struct tn_err *err)
{
    static struct connecting c;
    c = (struct connecting){
        .app = app, .config = config, .cells = cells, .arena = &app->workers[TN_LANE_LONG].arena};
    tn_rc rc = open_doors(&c, err);
    if (rc == TN_OK) {
        rc = check_each(&c, err);
    }
    tn_lake_distrust(&c.doors);
    if (c.doors.net && tn_net_rest(c.doors.net, NULL, REST_MS)) {
        tn_net_close(c.doors.net);
    }
    return rc == TN_OK && c.failed > 0
               ? tn_err_set(err, TN_IO, 0,
                            "%" PRIu32 " of %" PRIu32 " can't be reached as they are configured",
                            c.failed, c.asked)
               : rc;
}
