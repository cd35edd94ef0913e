#include "app/daemon_private.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/drift.h"
#include "file/names.h"
#include "file/schemas.h"
#include "table/make.h"

/* What share it gets. */
static void note_share(struct tn_table_share *share, const struct tn_config_table *table,
                       const struct tn_schema *schema)
{
    share->plain = table->plain && tn_config_is_plain(table, schema);
    share->scripted = tn_schema_option(schema, TN_SCRIPT_OPTION);
}

/* OK: the table is there, and nothing is written, for which a disk may have no room. `want`: NULL
 * where the configuration says nothing of it. */
static tn_rc find_table(struct tn_daemon *d, const struct tn_config_table *table,
                        const struct tn_schema *want, struct tn_table_share *share,
                        struct tn_err *err)
{
    struct tn_env *env = &d->spec.app->env;
    const struct tn_schema *has = NULL;
    const char *root;
    char text[TN_ERR_TEXT_SIZE];
    void *schemas = NULL;
    tn_rc rc = tn_name_table_root(env->arena, table->name, &root, err);
    if (rc == TN_OK) {
        rc = tn_arena_need(env->arena, sizeof(struct tn_schemas), "the schema", &schemas, err);
    }
    if (rc == TN_OK) {
        tn_schemas_init(schemas, env->io, root, env->arena);
        rc = tn_schemas_newest(schemas, &has, err);
    }
    if (rc == TN_OK) {
        note_share(share, table, has);
    }
    if (rc == TN_OK && want && tn_drift_find(want, has, text, sizeof text)) {
        tn_log_event(&d->log, TN_LOG_WARN, "table",
                     "table=%s text=\"the table is there, and stays as it is: %s\"", table->name,
                     text);
    }
    return rc;
}

/* One that the configuration only names. Who opens it says what is wrong with it, if it is there.
 */
static void look_at_table(struct tn_daemon *d, const struct tn_config_table *table,
                          struct tn_table_share *share)
{
    struct tn_err ignored;
    struct tn_arena *arena = d->spec.app->env.arena;
    size_t mark = tn_arena_mark(arena);
    (void)find_table(d, table, NULL, share, &ignored);
    tn_arena_reset(arena, mark);
}

/* OK: it is there, made now or before. */
static tn_rc make_table(struct tn_daemon *d, const struct tn_config_table *table,
                        struct tn_table_share *share, struct tn_err *err)
{
    struct tn_env *env = &d->spec.app->env;
    struct tn_schema schema;
    struct tn_options options;
    int lock;
    if (!table->fields && !table->schema_path) {
        look_at_table(d, table, share);
        return TN_OK;
    }
    size_t mark = tn_arena_mark(env->arena);
    tn_rc rc = tn_table_lock(env->io, table->name, "tarn run", env->arena, &lock, err);
    if (rc != TN_OK) {
        tn_arena_reset(env->arena, mark);
        return rc;
    }
    rc = tn_config_table_schema(table, env->arena, &schema, err);
    bool known = rc == TN_OK;
    rc = known ? find_table(d, table, &schema, share, err) : rc;
    bool absent = known && rc == TN_ABSENT;
    if (absent) {
        note_share(share, table, &schema);
        rc = tn_make_table(env, table->name, &schema, &options, err);
    }
    if (absent && rc == TN_OK) {
        tn_log_event(&d->log, TN_LOG_INFO, "table", "table=%s text=\"made\"", table->name);
    }
    env->io->vtable->close(env->io, lock);
    tn_arena_reset(env->arena, mark);
    return rc == TN_EXISTS ? TN_OK : rc;
}

/* Dead letters that no table is named for lie beside the journal. */
static tn_rc letters_path(const struct tn_daemon *d, const struct tn_config_table *table,
                          const char **path, struct tn_err *err)
{
    *path = table->dead_letters ? table->dead_letters
                                : tn_arena_format(&d->spec.app->input, "%s/.tarn/%s.letters",
                                                  d->spec.config->warehouse, table->name);
    return *path ? TN_OK : tn_err_set(err, TN_AGAIN, 0, "no memory for a path");
}

static tn_rc open_keeper(struct tn_daemon *d, const struct tn_config_table *table, void *room,
                         struct tn_err *err)
{
    char who[64];
    uint32_t i = d->keeper_count;
    struct tn_keeper_spec spec = {.config = table,
                                  .share = &d->shares[i],
                                  .warehouse = d->spec.config->warehouse,
                                  .who = who,
                                  .log = &d->log,
                                  .room = room,
                                  .room_size = d->sizes.room,
                                  .anew = d->spec.anew};
    if (!table->plain) {
        spec.scripted = d->scripted++;
    }
    (void)snprintf(who, sizeof who, "tarn run, process %ld", (long)getpid());
    tn_rc rc = letters_path(d, table, &spec.dead_letters, err);
    if (rc == TN_OK) {
        rc = tn_keeper_open(&d->keepers[i], &spec, err);
    }
    d->keeper_count += rc == TN_OK;
    return rc == TN_OK ? rc : tn_err_in(err, "tables['%s']", table->name);
}

/* Shares are nothing yet. */
static tn_rc take_tables(struct tn_daemon *d, void **room, struct tn_err *err)
{
    struct tn_arena *input = &d->spec.app->input;
    uint32_t count = d->spec.config->table_count;
    const struct {
        size_t size;
        const char *what;
    } needs[] = {{count * sizeof *d->shares, "tables"},
                 {count * sizeof *d->keepers, "tables"},
                 {d->sizes.scripts + 1, "scripts"},
                 {d->sizes.room, "the rows of a record"}};
    void *memory[sizeof needs / sizeof needs[0]];
    tn_rc rc = TN_OK;
    for (size_t i = 0; rc == TN_OK && i < sizeof needs / sizeof needs[0]; i++) {
        rc = tn_arena_need(input, needs[i].size, needs[i].what, &memory[i], err);
    }
    if (rc == TN_OK) {
        d->shares = memory[0];
        d->keepers = memory[1];
        d->scripted = memory[2];
        *room = memory[3];
        memset(d->shares, 0, needs[0].size);
    }
    return rc;
}

tn_rc tn_daemon_make_tables(struct tn_daemon *daemon, void **room, struct tn_err *err)
{
    tn_rc rc = take_tables(daemon, room, err);
    struct tn_table_share *share = daemon->shares;
    for (const struct tn_config_table *t = daemon->spec.config->tables; rc == TN_OK && t;
         t = t->next) {
        rc = make_table(daemon, t, share++, err);
    }
    return rc;
}

tn_rc tn_daemon_open_tables(struct tn_daemon *daemon, void *room, struct tn_err *err)
{
    const struct tn_config *config = daemon->spec.config;
    tn_rc rc = tn_share_out(&daemon->spec.app->env, daemon->shares, config->table_count, err);
    for (const struct tn_config_table *t = config->tables; rc == TN_OK && t; t = t->next) {
        rc = open_keeper(daemon, t, room, err);
    }
    return rc;
}
