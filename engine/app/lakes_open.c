#include <string.h>

#include "app/lake_store.h"
#include "app/lakes_private.h"
#include "commit/consumer.h"
#include "commit/snapshot.h"
#include "file/names.h"
#include "upload/ledger.h"

enum { ROOT_SIZE = 256 /* of a table's path, for its share of the arena */ };

size_t tn_lakes_memory(const struct tn_config *config)
{
    return config->lakes ? config->lake_count * sizeof(struct tn_lakes_lake) +
                               config->policy_count * sizeof(struct tn_lakes_policy) +
                               config->upload_count * (sizeof(struct tn_lakes_mirror) + ROOT_SIZE)
                         : 0;
}

static struct tn_keeper *find_keeper(const struct tn_lakes_spec *spec, const char *name)
{
    for (uint32_t i = 0; i < spec->keeper_count; i++) {
        if (strcmp(spec->keepers[i].name, name) == 0) {
            return &spec->keepers[i];
        }
    }
    return NULL;
}

/* What the lake has by its ledger. Without one nothing is known of it, but that the consumer keeps
 * what it may lack. */
static tn_rc look_up(const struct tn_lakes *lakes, struct tn_lakes_mirror *m, int64_t kept,
                     struct tn_err *err)
{
    struct tn_ledger ledger;
    tn_rc rc = tn_ledger_read(lakes->spec.env->io, m->keeper->name, m->lake->consumer,
                              &lakes->spec.worker->arena, &ledger, err);
    m->have_id = rc == TN_OK ? ledger.have : kept - 1;
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* A new consumer keeps all that there is. */
static tn_rc protect(const struct tn_lakes *lakes, struct tn_lakes_mirror *m, struct tn_err *err)
{
    struct tn_io *io = lakes->spec.env->io;
    struct tn_arena *scratch = &lakes->spec.worker->arena;
    const char *consumer = m->lake->consumer;
    int64_t first = 1;
    tn_rc rc = tn_consumer_read(io, m->root, consumer, scratch, &first, err);
    if (rc == TN_ABSENT || rc == TN_CORRUPT) {
        rc = tn_snapshot_earliest(io, m->root, scratch, &first, err);
        if (rc == TN_OK || rc == TN_ABSENT) {
            rc = tn_consumer_write(io, m->root, consumer, first, scratch, err);
        }
    }
    return rc == TN_OK ? look_up(lakes, m, first, err) : rc;
}

tn_rc tn_lakes_forget_mirror(const struct tn_lakes *lakes, const struct tn_lakes_mirror *m,
                             struct tn_err *err)
{
    struct tn_io *io = lakes->spec.env->io;
    struct tn_arena *scratch = &lakes->spec.worker->arena;
    const char *consumer = m->lake->consumer;
    int64_t next;
    tn_rc rc = tn_consumer_read(io, m->root, consumer, scratch, &next, err);
    return rc == TN_ABSENT ? TN_OK : tn_consumer_remove(io, m->root, consumer, scratch, err);
}

/* Its consumer came with it. */
static tn_rc take_shared(const struct tn_lakes *lakes, struct tn_lakes_mirror *m,
                         const struct tn_share *share, struct tn_err *err)
{
    struct tn_io *io = lakes->spec.env->io;
    struct tn_arena *scratch = &lakes->spec.worker->arena;
    struct tn_sent sent;
    int64_t next;
    m->shared = true;
    m->way = share->way;
    tn_rc rc = tn_lakes_forget_mirror(lakes, m, err);
    if (rc == TN_OK) {
        rc = tn_err_named(err, tn_sent_read(io, m->keeper->name, scratch, &sent, err));
    }
    if (rc != TN_OK) {
        return rc;
    }
    m->have_id = sent.done;
    m->lake_id = sent.lake_id;
    rc = tn_consumer_read(io, m->root, TN_SHARE_CONSUMER, scratch, &next, err);
    return rc == TN_ABSENT || rc == TN_CORRUPT
               ? tn_consumer_write(io, m->root, TN_SHARE_CONSUMER, sent.safe + 1, scratch, err)
               : rc;
}

static tn_rc take_table(const struct tn_lakes *lakes, struct tn_lakes_mirror *m, struct tn_err *err)
{
    const struct tn_lakes_spec *spec = &lakes->spec;
    struct tn_arena *scratch = &spec->worker->arena;
    struct tn_share share;
    size_t mark = tn_arena_mark(scratch);
    tn_rc rc = tn_share_read(spec->env->io, m->keeper->name, scratch, &share, err);
    if (rc == TN_ABSENT) {
        rc = protect(lakes, m, err);
    } else if (rc == TN_OK) {
        rc = take_shared(lakes, m, &share, err);
        rc = rc == TN_OK ? tn_lakes_check_place(&spec->door, m->lake, m->keeper->name, &share, err)
                         : rc;
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

static tn_rc open_mirror(struct tn_lakes *lakes, struct tn_lakes_lake *lake, const char *table,
                         struct tn_err *err)
{
    struct tn_lakes_mirror *m = &lakes->mirrors[lakes->mirror_count];
    struct tn_err why = {0};
    *m = (struct tn_lakes_mirror){.lake = lake, .keeper = find_keeper(&lakes->spec, table)};
    if (!m->keeper) { /* it comes with a later configuration */
        return TN_OK;
    }
    tn_rc rc = tn_name_table_root(lakes->spec.arena, table, &m->root, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (take_table(lakes, m, &why) != TN_OK) { /* an upload says so, too */
        (void)tn_err_in(&why, "lake %s", lake->config->name);
        tn_log_err(lakes->spec.log, TN_LOG_WARN, "lake", &why);
    }
    lakes->mirror_count++;
    return TN_OK;
}

static tn_rc open_lake(struct tn_lakes *lakes, const struct tn_config_lake *config,
                       uint32_t *policies, struct tn_err *err)
{
    struct tn_lakes_lake *lake = &lakes->lakes[lakes->lake_count++];
    const struct tn_lakes_door *door = &lakes->spec.door;
    *lake = (struct tn_lakes_lake){.config = config,
                                   .store = tn_lake_is_store(config->target),
                                   .near = door->near(door->user, config),
                                   .asks = true};
    tn_rc rc = door->name(door->user, config, lake->consumer, err);
    if (rc == TN_OK && config->policy) {
        rc = tn_lakes_policy_open(lakes, lake, *policies, err);
        (*policies)++;
    }
    tn_spent_load(&lake->spent, lakes->spec.env->io, config->name, &lakes->spec.worker->arena);
    for (const struct tn_text_list_item *t = config->tables; rc == TN_OK && t; t = t->next) {
        rc = open_mirror(lakes, lake, t->text, err);
    }
    return rc == TN_OK ? rc : tn_err_in(err, "lakes.%s", config->name);
}

tn_rc tn_lakes_open(struct tn_lakes *lakes, const struct tn_lakes_spec *spec, struct tn_err *err)
{
    const struct tn_config *config = spec->config;
    uint32_t policies = 0;
    void *memory = NULL;
    *lakes = (struct tn_lakes){.spec = *spec};
    lakes->now.lakes = lakes;
    if (!config->lakes) {
        return TN_OK;
    }
    tn_clock_watch_init(&lakes->watch, spec->env->clock, 0);
    tn_rc rc = tn_arena_need(spec->arena, config->lake_count * sizeof *lakes->lakes, "lakes",
                             &memory, err);
    lakes->lakes = memory;
    if (rc == TN_OK) {
        rc = tn_arena_need(spec->arena, config->upload_count * sizeof *lakes->mirrors, "lakes",
                           &memory, err);
        lakes->mirrors = memory;
    }
    for (const struct tn_config_lake *l = config->lakes; rc == TN_OK && l; l = l->next) {
        rc = open_lake(lakes, l, &policies, err);
    }
    return rc;
}
