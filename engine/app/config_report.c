/* What a configuration comes to: its memory, and what its tables are promised. */
#include <inttypes.h>
#include <stdlib.h>

#include "app/boot.h"
#include "app/config_private.h"
#include "app/control.h"
#include "app/lakes_boot.h"
#include "app/net_boot.h"
#include "app/share.h"
#include "app/sizes.h"
#include "app/sources.h"
#include "app/tell.h"
#include "io/tls.h"
#include "schema/options.h"

/* ---- memory ---- */

/* Of the memtable part; four an open bucket. */
enum { PAGE_MIN = 4096, PAGES_OF_BUCKET = 4 };

struct sum {
    const struct tn_config *config;
    const struct tn_budget *budget;
    uint32_t ways;
    struct tn_arena *arena;
};

static int64_t buckets_of(const struct sum *s, const struct tn_config_table *table)
{
    struct tn_schema schema;
    struct tn_err err = {0};
    size_t mark = tn_arena_mark(s->arena);
    int64_t buckets = 1;
    if ((table->fields || table->schema_path) &&
        tn_config_table_schema(table, s->arena, &schema, &err) == TN_OK) {
        const char *text = tn_schema_option(&schema, "bucket");
        buckets = text ? strtoll(text, NULL, 10) : 1;
    }
    tn_arena_reset(s->arena, mark);
    return buckets > 0 ? buckets : 1;
}

static uint64_t tls_of(const struct tn_config_tls *tls, bool used)
{
    return used ? TN_TLS_STREAM_SIZE + 2 * (tls->ca ? strlen(tls->ca) : 0) : 0;
}

/* Who comes by HTTP or socket when it is used up waits; one at a time is the least. */
static uint64_t tls_needs(const struct sum *s)
{
    uint64_t lakes = tn_lakes_boot_tls(s->config) ? 2 * TN_TLS_STREAM_SIZE : 0;
    uint64_t need = lakes + tn_tell_tls(s->config) +
                    tls_of(&s->config->http.tls, s->config->http.tls.certificate);
    for (const struct tn_config_source *source = s->config->sources; source;
         source = source->next) {
        bool client = source->kind == TN_SOURCE_MQTT && tn_config_url_tls(source->url);
        need += tls_of(&source->tls, client || source->tls.certificate);
    }
    return need;
}

/* Whether a part that lies in another one will be carved out of it. The network is used always, for
 * the daemon's own socket; scripts' states lie in the shares of their tables. */
static bool is_used(const struct sum *s, const char *part)
{
    return strcmp(part, "tls") == 0      ? tls_needs(s) > 0
           : strcmp(part, "upload") == 0 ? s->config->lakes != NULL
           : strcmp(part, "policy") == 0 ? s->config->policy_count > 0
                                         : strncmp(part, "lua", 3) != 0;
}

/* Beside what is carved out of it, four pages a bucket; of partitions one is open at a time, for
 * the bucket that is longest idle is closed. Each table has as much as the largest, but for plain
 * ones in little shares. */
static uint64_t memtable_needs(const struct sum *s)
{
    uint64_t most = 0;
    size_t within = 0;
    uint32_t scripted = 0;
    for (const struct tn_config_table *t = s->config->tables; t; t = t->next) {
        uint64_t own = (uint64_t)buckets_of(s, t) * PAGES_OF_BUCKET * PAGE_MIN;
        most = own > most ? own : most;
        scripted += t->script != NULL;
    }
    for (uint32_t i = 0; i < s->budget->part_count; i++) {
        const struct tn_part *part = &s->budget->parts[i];
        bool in = part->spec->of && strcmp(part->spec->of, "memtable") == 0;
        within += in && is_used(s, part->spec->name) ? part->size : 0;
    }
    size_t size = tn_budget_part((struct tn_budget *)s->budget, "memtable")->size;
    struct tn_share_sizes sizes = {
        .table = tn_budget_part((struct tn_budget *)s->budget, "table")->size,
        .memtable = size > within ? size - within : 0,
        .work = tn_budget_part((struct tn_budget *)s->budget, "long")->size,
        .count = s->config->table_count,
        .plain = s->config->plain_count,
        .scripted = scripted};
    return within + tn_share_needed(&sizes, most);
}

static uint64_t intake_needs(const struct sum *s)
{
    struct tn_sizes sizes;
    tn_sizes_least(s->config, &sizes);
    return sizes.intake + sizes.tables + sizes.lakes;
}

static uint64_t sources_needs(const struct sum *s)
{
    struct tn_sizes sizes;
    tn_sizes_least(s->config, &sizes);
    return sizes.sources + sizes.control;
}

static uint64_t upload_needs(const struct sum *s)
{
    return tn_lakes_boot_needs(s->config, s->ways);
}

static uint64_t policy_needs(const struct sum *s)
{
    return tn_lakes_boot_policies(s->config);
}

static uint64_t net_needs(const struct sum *s)
{
    bool tls;
    return tn_net_boot_size(TN_CONTROL_STREAMS + tn_sources_streams(s->config, &tls) +
                            tn_tell_streams(s->config));
}

/* What of the parts can be said before anything runs. One that the board doesn't have lies in
 * `of`. */
static const struct {
    const char *part;
    const char *of;
    uint64_t (*needs)(const struct sum *s);
    const char *use;
} needs[] = {
    {"memtable", NULL, memtable_needs, NULL},
    {"net", "memtable", net_needs, NULL},
    {"tls", "memtable", tls_needs, NULL},
    {"upload", "memtable", upload_needs, NULL},
    {"policy", "memtable", policy_needs, NULL},
    {"intake", "input", intake_needs,
     "journal, decoder, ring and rows of files, for short messages; tables"},
    {"sources", "input", sources_needs,
     "connections, sessions with brokers, standard input, files"},
};
enum { NEEDS_COUNT = sizeof needs / sizeof needs[0] };

static bool on_board(const struct tn_budget *budget, const char *part)
{
    for (uint32_t i = 0; i < budget->part_count; i++) {
        if (strcmp(budget->parts[i].spec->name, part) == 0) {
            return true;
        }
    }
    return false;
}

/* With what lies in it. */
static uint64_t needs_of(const struct sum *s, const char *part)
{
    uint64_t sum = 0;
    for (int i = 0; i < NEEDS_COUNT; i++) {
        bool within = needs[i].of && strcmp(needs[i].of, part) == 0;
        if (strcmp(needs[i].part, part) == 0 || (within && !on_board(s->budget, needs[i].part))) {
            sum += needs[i].needs(s);
        }
    }
    return sum;
}

static tn_rc put_parts(const struct sum *s, const struct tn_budget *budget, tn_config_part_fn *each,
                       void *user, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < budget->part_count; i++) {
        const struct tn_part_spec *spec = budget->parts[i].spec;
        struct tn_config_part part = {.name = spec->name,
                                      .kind = spec->of ? spec->of : tn_part_kind_text(spec->kind),
                                      .size = budget->parts[i].size,
                                      .needed = needs_of(s, spec->name),
                                      .use = tn_part_use(spec->name)};
        rc = each(user, &part, err);
    }
    return rc;
}

tn_rc tn_config_parts(const struct tn_config *config, const struct tn_budget *budget, uint32_t ways,
                      struct tn_arena *arena, tn_config_part_fn *each, void *user,
                      struct tn_err *err)
{
    struct sum s = {config, budget, ways, arena};
    tn_rc rc = put_parts(&s, budget, each, user, err);
    for (int i = 0; rc == TN_OK && i < NEEDS_COUNT; i++) {
        uint64_t needed = on_board(budget, needs[i].part) ? 0 : needs[i].needs(&s);
        if (needed > 0) {
            struct tn_config_part part = {.name = needs[i].part,
                                          .kind = needs[i].of,
                                          .size = needed,
                                          .needed = needed,
                                          .use = needs[i].use};
            rc = each(user, &part, err);
        }
    }
    struct tn_config_part other = {.name = "other",
                                   .kind = "process",
                                   .size = (uint64_t)tn_board.other_kib * 1024,
                                   .use = "libc, stacks, code: outside the block"};
    return rc == TN_OK ? each(user, &other, err) : rc;
}

/* ---- what a table is promised ---- */

static void say(struct tn_config_promise *promise, struct tn_buf *why, const char *source,
                const char *what)
{
    tn_buf_format(why, "%s%s: %s", promise->exactly_once ? "" : "; ", source, what);
    promise->exactly_once = false;
}

static void look_at_mqtt(const struct tn_config_source *source, const struct tn_config_table *table,
                         struct tn_config_promise *promise, struct tn_buf *why)
{
    for (const struct tn_config_subscribe *s = source->subscribe; s; s = s->next) {
        if (s->qos < 2 && strcmp(s->table, table->name) == 0) {
            say(promise, why, source->name, s->filter);
            tn_buf_text(why, s->qos == 1 ? " has QoS 1" : " has QoS 0, which may lose, too");
        }
    }
}

static void look_at(const struct tn_config_source *source, const struct tn_config_table *table,
                    struct tn_config_promise *promise, struct tn_buf *why)
{
    if (source->kind == TN_SOURCE_MQTT) {
        look_at_mqtt(source, table, promise, why);
    } else if (strcmp(source->table, table->name) == 0) {
        if (source->kind == TN_SOURCE_SOCKET) {
            say(promise, why, source->name, "who gives no sender");
        } else if (source->kind == TN_SOURCE_STDIN) {
            say(promise, why, source->name, "can't be read again");
        }
    }
}

/* A row that comes again is the same row where the newest of a key counts, and that alone. */
static bool shows(const struct tn_schema *schema, struct tn_arena *arena)
{
    struct tn_options o;
    struct tn_err err = {0};
    if (!schema || schema->primary_keys.count == 0 ||
        tn_options_read(schema, TN_OPTIONS_CREATE, arena, &o, &err) != TN_OK || o.script ||
        o.changelog_producer == TN_CHANGELOG_INPUT) {
        return true;
    }
    for (uint32_t i = 0; o.merge_fields && i < schema->field_count; i++) {
        enum tn_aggregate aggregate = o.merge_fields[i].aggregate;
        if (aggregate == TN_AGGREGATE_SUM || aggregate == TN_AGGREGATE_PRODUCT ||
            aggregate == TN_AGGREGATE_COUNT || aggregate == TN_AGGREGATE_LISTAGG) {
            return true;
        }
    }
    return false;
}

struct tn_config_promise tn_config_promise(const struct tn_config *config,
                                           const struct tn_config_table *table,
                                           const struct tn_schema *schema, struct tn_arena *arena,
                                           struct tn_buf *why)
{
    struct tn_config_promise promise = {.exactly_once = true};
    for (const struct tn_config_source *s = config->sources; s; s = s->next) {
        look_at(s, table, &promise, why);
    }
    if (config->http.listen) {
        say(&promise, why, "http", "who gives neither X-Sender and X-Sequence nor Idempotency-Key");
    }
    size_t mark = tn_arena_mark(arena);
    promise.shows = !promise.exactly_once && shows(schema, arena);
    tn_arena_reset(arena, mark);
    return promise;
}
