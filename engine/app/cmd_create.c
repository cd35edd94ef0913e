/* tarn create: a table's schema-0. */
#include <stdio.h>

#include "app/cmd.h"
#include "app/schema_file.h"
#include "schema/options.h"
#include "script/scripted.h"
#include "table/make.h"
#include "table/recover.h"

static struct {
    const char *schema_file;
    struct tn_text_list fields;
    struct tn_text_list options;
    const char *primary_key;
    const char *partition_by;
    const char *comment;
} o = {.fields = TN_TEXT_LIST(TN_SCHEMA_FIELDS_MAX), .options = TN_TEXT_LIST(TN_LIST_MAX)};

static const struct tn_flag flags[] = {
    {"schema", 0, TN_FLAG_TEXT, &o.schema_file, "FILE",
     "JSON: fields, primaryKeys, partitionKeys, options, comment"},
    {"field", 0, TN_FLAG_LIST, &o.fields, "'NAME TYPE'", "a column; repeat it"},
    {"primary-key", 0, TN_FLAG_TEXT, &o.primary_key, "A,B", "the key's columns"},
    {"partition-by", 0, TN_FLAG_TEXT, &o.partition_by, "P", "the partition's columns"},
    {"option", 0, TN_FLAG_LIST, &o.options, "K=V", "a table option; repeat it"},
    {"comment", 0, TN_FLAG_TEXT, &o.comment, "TEXT", "of the table"},
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

static int run(const struct tn_text_list *words)
{
    if (words->count != 1 || (!o.schema_file && o.fields.count == 0)) {
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
        rc = create(&app, words->items[0], &err);
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
    "create D.T --schema FILE | --field ... --primary-key ...",
    "makes a table",
    flags,
    sizeof flags / sizeof flags[0],
    run,
};
