/* tarn check: all that is wrong with a configuration; else what it will need, and promise. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/ask.h"
#include "app/cells.h"
#include "app/cmd.h"
#include "app/config.h"
#include "app/connecting.h"
#include "app/lakes_boot.h"
#include "schema/options.h"

enum {
    OUTPUT_SIZE = 256 * 1024, /* what is left of the input part for cells */
    WHY_SIZE = 4096,
    HAZARDS_SIZE = 8192,
};

static struct {
    const char *place;
    bool connect;
} o;

static const struct tn_flag flags[] = {
    {"connect", 0, TN_FLAG_SET, &o.connect, NULL,
     "try lakes, brokers and who is told, too; nothing is written or sent"},
    {"stay-in", 0, TN_FLAG_TEXT, &o.place, "DIR", "another warehouse is wrong: for a reload"},
};

static void say_wrong(void *user, const char *text)
{
    (void)user;
    (void)fprintf(stderr, "tarn: %s\n", text);
}

/* ---- the memory ---- */

struct report {
    struct tn_cells cells;
    struct tn_budget plan;
    struct tn_config config;
    uint32_t ways; /* in which tables of lakes are shared */
    uint64_t sum;
    uint32_t short_parts; /* that are too small */
};

static tn_rc put_part(void *user, const struct tn_config_part *part, struct tn_err *err)
{
    struct report *r = user;
    tn_cells_text(&r->cells, part->name);
    tn_cells_text(&r->cells, part->kind);
    tn_cells_number(&r->cells, (int64_t)part->size);
    if (part->needed > 0) {
        tn_cells_number(&r->cells, (int64_t)part->needed);
    } else {
        tn_cells_text(&r->cells, NULL);
    }
    tn_cells_text(&r->cells, part->use);
    if (part->needed > part->size) {
        r->short_parts++;
        (void)fprintf(stderr,
                      "tarn: memory: part '%s' needs %" PRIu64 " bytes, and has %" PRIu64
                      "; give more memory\n",
                      part->name, part->needed, part->size);
    }
    return tn_cells_end(&r->cells, err);
}

static tn_rc put_parts(struct report *r, struct tn_arena *arena, struct tn_err *err)
{
    static const char *const columns[] = {"part", "kind", "size", "needs", "for"};
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = tn_cells_open(&r->cells, columns, sizeof columns / sizeof columns[0], arena, err);
    if (rc == TN_OK) {
        rc = tn_config_parts(&r->config, &r->plan, r->ways, arena, put_part, r, err);
    }
    if (rc == TN_OK) {
        struct tn_config_part all = {
            .name = "all", .kind = "process", .size = r->plan.size, .use = "the block, and other"};
        all.size += (uint64_t)tn_board.other_kib * 1024;
        rc = put_part(r, &all, err);
    }
    if (rc == TN_OK) {
        rc = tn_cells_close(&r->cells, err);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

/* ---- the tables ---- */

static void say_hazards(const char *table, const struct tn_schema *schema, struct tn_arena *arena)
{
    static char text[HAZARDS_SIZE];
    struct tn_options options;
    struct tn_err err = {0};
    struct tn_buf lines;
    if (tn_common.quiet || tn_options_read(schema, TN_OPTIONS_CREATE, arena, &options, &err)) {
        return;
    }
    tn_buf_init(&lines, text, sizeof text - 1);
    tn_options_hazards(schema, &options, &lines);
    text[lines.size] = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        (void)fprintf(stderr, "tarn: warning: tables['%s']: %s\n", table, line);
    }
}

static tn_rc put_table(struct report *r, const struct tn_config_table *table,
                       struct tn_arena *arena, struct tn_err *err)
{
    static char text[WHY_SIZE];
    struct tn_buf why;
    struct tn_schema schema;
    bool made = table->fields || table->schema_path;
    tn_rc rc = made ? tn_config_table_schema(table, arena, &schema, err) : TN_OK;
    if (rc != TN_OK) {
        return rc;
    }
    if (made) {
        say_hazards(table->name, &schema, arena);
    }
    tn_buf_init(&why, text, sizeof text - 1);
    struct tn_config_promise promise =
        tn_config_promise(&r->config, table, made ? &schema : NULL, arena, &why);
    text[why.size] = 0;
    tn_cells_text(&r->cells, table->name);
    tn_commit_rule_format(&table->commit, &r->cells.text);
    tn_cells_put(&r->cells, false);
    tn_cells_text(&r->cells, promise.exactly_once ? "exactly once" : "at least once");
    tn_buf_text(&r->cells.text, promise.shows ? "true" : "false");
    tn_cells_json(&r->cells);
    tn_cells_text(&r->cells, why.size > 0 ? text : NULL);
    return tn_cells_end(&r->cells, err);
}

static tn_rc put_tables(struct report *r, struct tn_arena *arena, struct tn_err *err)
{
    static const char *const columns[] = {"table", "commit", "delivery", "repeats_show",
                                          "because_of"};
    size_t begin = tn_arena_mark(arena);
    tn_rc rc = tn_cells_open(&r->cells, columns, sizeof columns / sizeof columns[0], arena, err);
    if (r->cells.output.format != TN_FORMAT_JSON) { /* another table than the one above */
        (void)fputs("\n", stdout);
    }
    for (const struct tn_config_table *t = r->config.tables; rc == TN_OK && t; t = t->next) {
        size_t mark = tn_arena_mark(arena);
        rc = put_table(r, t, arena, err);
        tn_arena_reset(arena, mark);
    }
    if (rc == TN_OK) {
        rc = tn_cells_close(&r->cells, err);
    }
    tn_arena_reset(arena, begin);
    return rc;
}

/* ---- what it names ---- */

static tn_rc put_connections(struct report *r, struct tn_app *app, struct tn_err *err)
{
    static const char *const columns[] = {"connect", "name", "at", "works", "kind", "text"};
    struct tn_err why = {0};
    size_t mark = tn_arena_mark(&app->input);
    tn_rc rc =
        tn_cells_open(&r->cells, columns, sizeof columns / sizeof columns[0], &app->input, err);
    if (rc == TN_OK && r->cells.output.format != TN_FORMAT_JSON) {
        (void)fputs("\n", stdout);
    }
    tn_rc wrong = rc == TN_OK ? tn_connect_all(app, &r->config, &r->cells, &why) : TN_OK;
    if (rc == TN_OK) {
        rc = tn_cells_close(&r->cells, err);
    }
    tn_arena_reset(&app->input, mark);
    if (rc == TN_OK && wrong != TN_OK) {
        *err = why;
    }
    return rc == TN_OK ? wrong : rc;
}

/* ---- tables that are shared ---- */

static void look_at_share(const struct tn_config_lake *lake, const char *table, struct tn_io *io,
                          struct tn_arena *arena)
{
    struct tn_share share;
    struct tn_err err = {0};
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = tn_share_read(io, table, arena, &share, &err);
    bool wrong = rc == TN_OK && !tn_lakes_boot_is_there(lake, share.where);
    if (wrong || rc == TN_CORRUPT) {
        (void)fprintf(stderr, "tarn: warning: lakes.%s: table %s isn't sent there: %s%s\n",
                      lake->name, table, wrong ? "it is a part of the one at " : err.text,
                      wrong ? share.where : "");
    }
    tn_arena_reset(arena, mark);
}

/* Which they are stands in the warehouse, if that is there. */
static void find_shares(struct report *r, struct tn_arena *arena)
{
    struct tn_io_posix posix;
    struct tn_err ignored;
    if (!r->config.lakes || tn_io_posix_open(&posix, r->config.warehouse, &ignored) != TN_OK) {
        return;
    }
    r->ways = tn_lakes_boot_ways(&r->config, &posix.io, arena);
    for (const struct tn_config_lake *l = r->config.lakes; l; l = l->next) {
        for (const struct tn_text_list_item *t = l->tables; t && !tn_common.quiet; t = t->next) {
            look_at_share(l, t->text, &posix.io, arena);
        }
    }
    tn_io_posix_close(&posix);
}

/* ---- the verb ---- */

static tn_rc check_place(const struct tn_config *config, struct tn_err *err)
{
    return !o.place || strcmp(o.place, config->warehouse) == 0
               ? TN_OK
               : tn_err_set(err, TN_INVALID, 0, "warehouse is %s, and not %s", config->warehouse,
                            o.place);
}

static tn_rc check(struct tn_app *app, const struct tn_text_list *words, struct tn_err *err)
{
    static struct report r;
    struct tn_arena kept;
    char socket[TN_ASK_PATH_SIZE];
    void *memory = NULL;
    size_t room = tn_arena_free(&app->input);
    size_t vm_size = app->env.memtable_size; /* no table is open */
    size_t size = room > OUTPUT_SIZE ? room - OUTPUT_SIZE : 0;
    tn_rc rc = tn_arena_need(&app->input, size, "a configuration", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_arena_init(&kept, memory, size);
    rc = tn_config_read(words->items[0], app->env.memtable,
                        vm_size < TN_CONFIG_MEMORY ? vm_size : TN_CONFIG_MEMORY, &kept, say_wrong,
                        NULL, &r.config, err);
    if (rc == TN_OK) {
        rc = check_place(&r.config, err);
    }
    if (rc == TN_OK) {
        rc = tn_ask_path(r.config.warehouse, socket, err);
    }
    if (rc == TN_OK) {
        rc = tn_budget_plan(&r.plan, &tn_board,
                            tn_common.memory ? tn_common.memory : r.config.memory, err);
    }
    if (rc == TN_OK) {
        find_shares(&r, &app->input);
        tn_lakes_boot_grow(&r.plan, &r.config, r.ways);
        rc = put_parts(&r, &app->input, err);
    }
    if (rc == TN_OK) {
        rc = put_tables(&r, &app->input, err);
    }
    if (rc == TN_OK && r.short_parts > 0) {
        rc = tn_err_set(err, TN_INVALID, 0, "%s: it doesn't fit its memory", words->items[0]);
    }
    return rc == TN_OK && o.connect ? put_connections(&r, app, err) : rc;
}

static int run(const struct tn_text_list *words)
{
    if (words->count != 1) {
        return tn_say_usage(&tn_cmd_check);
    }
    tn_common.warehouse = "."; /* the configuration names its own */
    return tn_run_verb(check, words);
}

const struct tn_command tn_cmd_check = {
    "check",
    "check CONFIG.lua",
    "says all that is wrong with a configuration, or what memory it needs",
    flags,
    sizeof flags / sizeof flags[0],
    run,
};
