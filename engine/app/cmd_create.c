/* tarn create: a table's schema-0, or those of a lake's table. */
#include <stdio.h>

#include "app/cmd.h"
#include "app/place.h"
#include "app/schema_file.h"
#include "file/names.h"
#include "schema/options.h"
#include "script/scripted.h"
#include "table/make.h"
#include "table/recover.h"
#include "upload/share_schema.h"

static struct {
    const char *schema_file;
    struct tn_text_list fields;
    struct tn_text_list options;
    const char *primary_key;
    const char *partition_by;
    const char *comment;
    const char *from;
    const char *commit;
} o = {.fields = TN_TEXT_LIST(TN_SCHEMA_FIELDS_MAX), .options = TN_TEXT_LIST(TN_LIST_MAX)};

static const struct tn_flag flags[] = {
    {"schema", 0, TN_FLAG_TEXT, &o.schema_file, "FILE",
     "JSON: fields, primaryKeys, partitionKeys, options, comment"},
    {"field", 0, TN_FLAG_LIST, &o.fields, "'NAME TYPE'", "a column; repeat it"},
    {"primary-key", 0, TN_FLAG_TEXT, &o.primary_key, "A,B", "the key's columns"},
    {"partition-by", 0, TN_FLAG_TEXT, &o.partition_by, "P", "the partition's columns"},
    {"option", 0, TN_FLAG_LIST, &o.options, "K=V",
     "a table option; repeat it. With --from: of the store, as for sync"},
    {"comment", 0, TN_FLAG_TEXT, &o.comment, "TEXT", "of the table"},
    {"from", 0, TN_FLAG_TEXT, &o.from, "PLACE",
     "s3://bucket/prefix/D.db/T, or a folder: this gateway writes a part of that table"},
    {"commit", 0, TN_FLAG_TEXT, &o.commit, "WAY",
     "with --from: direct (the gateway commits there; default), or gather (`tarn gather` does)"},
};

enum { SPLIT_MAX = 64 };

static tn_rc split(const char *text, struct tn_arena *arena, const char **names, uint32_t *count,
                   struct tn_err *err)
{
    *count = 0;
    while (text && *text) {
        size_t size = strcspn(text, ",");
        if (*count == SPLIT_MAX) {
            return tn_err_set(err, TN_INVALID, 0, "more than %d key columns", SPLIT_MAX);
        }
        names[*count] = tn_arena_text(arena, (struct tn_bytes){(const unsigned char *)text, size});
        if (!names[(*count)++]) {
            return tn_err_set(err, TN_AGAIN, 0, "no memory for the schema");
        }
        text += size + (text[size] == ',');
    }
    return TN_OK;
}

static tn_rc add_option(const char *text, struct tn_arena *arena, struct tn_schema *schema,
                        struct tn_err *err)
{
    const char *equals = strchr(text, '=');
    if (!equals) {
        return tn_err_set(err, TN_INVALID, 0, "--option %s: want KEY=VALUE", text);
    }
    struct tn_bytes key = {(const unsigned char *)text, (size_t)(equals - text)};
    const char *kept = tn_arena_text(arena, key);
    if (!kept) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for the schema");
    }
    for (uint32_t i = 0; i < schema->option_count; i++) {
        if (strcmp(schema->options[i].key, kept) == 0) {
            schema->options[i].value = equals + 1;
            return TN_OK;
        }
    }
    schema->options[schema->option_count++] = (struct tn_option){kept, equals + 1};
    return TN_OK;
}

/* Room for what the command line adds behind what the file had. */
static tn_rc add_options(struct tn_arena *arena, struct tn_schema *schema, struct tn_err *err)
{
    struct tn_option *options =
        tn_arena_take(arena, (schema->option_count + o.options.count + 1) * sizeof *options);
    if (!options) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for the schema");
    }
    if (schema->option_count > 0) {
        memcpy(options, schema->options, schema->option_count * sizeof *options);
    }
    schema->options = options;
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < o.options.count; i++) {
        rc = add_option(o.options.items[i], arena, schema, err);
    }
    return rc;
}

static tn_rc schema_from_flags(struct tn_arena *arena, struct tn_schema *schema, struct tn_err *err)
{
    static const char *primary[SPLIT_MAX];
    static const char *partition[SPLIT_MAX];
    uint32_t primary_count;
    uint32_t partition_count;
    *schema = (struct tn_schema){.version = 3, .comment = o.comment};
    schema->fields = tn_arena_take(arena, (o.fields.count + 1) * sizeof *schema->fields);
    if (!schema->fields) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for the schema");
    }
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < o.fields.count; i++) {
        rc = tn_schema_field_parse(o.fields.items[i], arena, &schema->fields[i], err);
    }
    schema->field_count = o.fields.count;
    if (rc == TN_OK) {
        rc = split(o.primary_key, arena, primary, &primary_count, err);
    }
    if (rc == TN_OK) {
        rc = split(o.partition_by, arena, partition, &partition_count, err);
    }
    return rc == TN_OK ? tn_schema_build(schema, primary, primary_count, partition, partition_count,
                                         arena, err)
                       : rc;
}

static tn_rc schema_from_file(struct tn_arena *arena, struct tn_schema *schema, struct tn_err *err)
{
    tn_rc rc = tn_schema_file_read(o.schema_file, arena, schema, err);
    if (rc == TN_OK && o.comment) {
        schema->comment = o.comment;
    }
    return rc;
}

static void say_hazards(const struct tn_schema *schema, const struct tn_options *options)
{
    static char text[8192];
    struct tn_buf lines;
    tn_buf_init(&lines, text, sizeof text - 1);
    tn_options_hazards(schema, options, &lines);
    text[lines.size] = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        (void)fprintf(stderr, "tarn: warning: %s\n", line);
    }
}

static tn_rc create(struct tn_app *app, const char *table, struct tn_err *err)
{
    struct tn_arena *arena = &app->table;
    static struct tn_scripted scripted;
    struct tn_scripted_spec script = {.env = &app->env,
                                      .budget = &app->budget,
                                      .table = table,
                                      .warehouse = app->warehouse,
                                      .log = tn_say_log};
    struct tn_schema schema;
    struct tn_options options;
    tn_rc rc = o.schema_file ? schema_from_file(arena, &schema, err)
                             : schema_from_flags(arena, &schema, err);
    if (rc == TN_OK) {
        rc = add_options(arena, &schema, err);
    }
    if (rc == TN_OK) { /* a script that can't be used is no part of a table */
        rc = tn_scripted_open(&scripted, &script, &schema, err);
    }
    if (rc == TN_OK) {
        rc = tn_make_table(&app->env, table, &schema, &options, err);
    }
    if (rc == TN_OK && !tn_common.quiet) {
        say_hazards(&schema, &options);
    }
    tn_scripted_close(&scripted);
    return rc == TN_EXISTS ? tn_err_set(err, TN_INVALID, 0, "table %s exists", table) : rc;
}

/* ---- a lake's table ---- */

/* The place without "/D.db/T", by which the lake knows the table as we do. */
static tn_rc split_place(const char *table, struct tn_arena *arena, const char **root,
                         const char **where, struct tn_err *err)
{
    tn_rc rc = tn_name_table_root(arena, table, root, err);
    if (rc != TN_OK) {
        return rc;
    }
    size_t size = strlen(o.from);
    size_t tail = strlen(*root);
    while (size > 0 && o.from[size - 1] == '/') {
        size--;
    }
    if (size < tail + 2 || o.from[size - tail - 1] != '/' ||
        memcmp(o.from + size - tail, *root, tail) != 0) {
        return tn_err_set(err, TN_INVALID, 0,
                          "--from %s: table %s lies at .../%s there: it has the same name", o.from,
                          table, *root);
    }
    struct tn_bytes kept = {(const unsigned char *)o.from, size - tail - 1};
    *where = tn_arena_text(arena, kept);
    return *where ? TN_OK : tn_err_set(err, TN_AGAIN, 0, "no memory for a path");
}

static tn_rc parse_way(struct tn_share *share, struct tn_err *err)
{
    share->way = TN_SHARE_DIRECT;
    return !o.commit || tn_share_way_parse(o.commit, &share->way)
               ? TN_OK
               : tn_err_set(err, TN_INVALID, 0, "--commit %s: direct or gather", o.commit);
}

static tn_rc adopt_from(struct tn_app *app, struct tn_target *target, const char *table,
                        const char *root, const struct tn_share *share, struct tn_err *err)
{
    struct tn_worker *worker = &app->workers[TN_LANE_LONG];
    struct tn_share_place place = {table, root, target, worker};
    const struct tn_schema *schema;
    struct tn_options options;
    tn_rc rc = tn_share_adopt(&place, share, &schema, err);
    if (rc != TN_OK || tn_common.quiet) {
        return rc;
    }
    rc = tn_options_read(schema, TN_OPTIONS_WRITE, &worker->arena, &options, err);
    if (rc == TN_OK) {
        say_hazards(schema, &options);
    }
    return rc;
}

static tn_rc adopt(struct tn_app *app, const char *table, struct tn_err *err)
{
    static struct tn_place place;
    struct tn_clock *clock = app->env.clock;
    struct tn_share share = {.since_ms = clock->vtable->now_ms(clock)};
    const char *root;
    tn_clock_uuid(clock, share.gateway);
    tn_rc rc = parse_way(&share, err);
    if (rc == TN_OK) {
        rc = split_place(table, &app->table, &root, &share.where, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_place_spec where = {
        .where = share.where, .table = table, .who = "tarn create", .options = &o.options};
    rc = tn_place_open(&place, app, &where, err);
    if (rc == TN_OK && !place.lake.target) {
        rc = tn_err_set(err, TN_ABSENT, 0, "%s isn't there", share.where);
    }
    if (rc == TN_OK) {
        rc = tn_lake_place(share.where, &app->table, &share.where, err);
    }
    if (rc == TN_OK) {
        rc = adopt_from(app, place.lake.target, table, root, &share, err);
    }
    tn_place_close(&place);
    return rc == TN_EXISTS ? tn_err_set(err, TN_INVALID, 0, "table %s exists", table) : rc;
}

static int run(const struct tn_text_list *words)
{
    bool described =
        o.schema_file || o.fields.count > 0 || o.primary_key || o.partition_by || o.comment;
    bool usable = o.from ? !described : !o.commit && (o.schema_file || o.fields.count > 0);
    if (words->count != 1 || !usable) {
        return tn_say_usage(&tn_cmd_create);
    }
    static struct tn_app app;
    struct tn_err err = {0};
    int lock = -1;
    tn_rc rc = tn_boot(&app, true, &err);
    if (rc == TN_OK) {
        rc = tn_table_lock(&app.posix.io, words->items[0], "tarn create", &app.table, &lock, &err);
    }
    if (rc == TN_OK) {
        rc = o.from ? adopt(&app, words->items[0], &err) : create(&app, words->items[0], &err);
    }
    int code = rc == TN_OK ? 0 : tn_say_error(rc, &err);
    if (lock >= 0) {
        app.posix.io.vtable->close(&app.posix.io, lock);
    }
    tn_shut(&app);
    return code;
}

const struct tn_command tn_cmd_create = {
    "create",
    "create D.T --schema FILE | --field ... --primary-key ... | --from PLACE",
    "makes a table",
    flags,
    sizeof flags / sizeof flags[0],
    run,
};
