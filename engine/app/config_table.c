/* A table of the configuration: what `create` would refuse is refused here, too. */
#include "app/config_private.h"
#include "app/schema_file.h"
#include "file/names.h"
#include "file/schemas.h"
#include "schema/default.h"
#include "schema/options.h"
#include "script/scripted.h"

enum { KEYS_MAX = 64, COMMIT_ROWS = 100000, COMMIT_MS = 30000 };

/* ---- members ---- */

static void take_unknown(struct tn_config_reader *r, struct tn_config_node *node,
                         const struct tn_config_member *member, void *target)
{
    static const char *const words[] = {[TN_UNKNOWN_FAIL] = "fail", [TN_UNKNOWN_DROP] = "drop"};
    (void)member;
    int word = tn_config_word(r, node, words, 2);
    if (word >= 0) {
        *(enum tn_unknown *)target = (enum tn_unknown)word;
    }
}

static void take_rule(struct tn_config_reader *r, struct tn_config_node *node,
                      const struct tn_config_member *member, void *target)
{
    (void)member;
    struct tn_err err = {0};
    static const char want[] = "a rule like '30s or 5000 rows or 1M'";
    const char *text = tn_config_text(r, node, want);
    if (text && tn_commit_rule_parse(text, target, &err) != TN_OK) {
        tn_config_wrong_value(r, node, "%s%s%s", want, node->secret ? "" : "; ",
                              node->secret ? "" : err.text);
    }
}

/* Which tables there are is known once all have been read. */
static void take_letters(struct tn_config_reader *r, struct tn_config_node *node,
                         const struct tn_config_member *member, void *target)
{
    (void)member;
    const char *text = tn_config_text(r, node, "a table, like 'plant.letters'");
    if (text) {
        *(const char **)target = tn_config_keep(r, text);
    }
}

#define AT(member) offsetof(struct tn_config_table, member)
enum { PLAIN_FIELDS = 16 }; /* more of them need more of an arena */
enum { WHOLE = 1 };         /* of lists of texts: commas have a meaning */

static const struct tn_config_member members[] = {
    {"schema", tn_config_take_path, AT(schema_path), 0, 0, false},
    {"fields", tn_config_take_texts, AT(fields), 0, WHOLE, false},
    {"primary_key", tn_config_take_texts, AT(primary_key), 0, 0, false},
    {"partition_by", tn_config_take_texts, AT(partition_by), 0, 0, false},
    {"options", tn_config_take_pairs, AT(options), 0, 0, false},
    {"script", tn_config_take_path, AT(script), 0, 0, false},
    {"commit", take_rule, AT(commit), 0, 0, false},
    {"dead_letters", take_letters, AT(dead_letters), 0, 0, false},
    {"unknown", take_unknown, AT(unknown), 0, 0, false},
    {"times", tn_config_take_pairs, AT(times), 0, 0, false},
};

static struct tn_config_table *take_one(struct tn_config_reader *r, struct tn_config_node *node)
{
    struct tn_err err = {0};
    const char *root;
    struct tn_config_table *table = tn_config_take(r, sizeof *table);
    if (!table) {
        return NULL;
    }
    *table = (struct tn_config_table){.name = tn_config_keep(r, node->key),
                                      .commit = {.ms = COMMIT_MS, .rows = COMMIT_ROWS}};
    if (tn_name_table_root(&r->scratch, node->key, &root, &err) == TN_INVALID) {
        tn_config_wrong(r, node, "%s", err.text);
    }
    (void)tn_config_members(r, node, members, sizeof members / sizeof members[0], table);
    return table->name ? table : NULL;
}

/* Whose letters go there, too; of two tables the one that comes first in the list. */
static const struct tn_config_table *letters_with(const struct tn_config *config,
                                                  const struct tn_config_table *table)
{
    for (const struct tn_config_table *t = config->tables; t && t != table; t = t->next) {
        if (t->dead_letters && strcmp(t->dead_letters, table->dead_letters) == 0) {
            return t;
        }
    }
    return NULL;
}

static void check_letters(struct tn_config_reader *r, const struct tn_config_node *node,
                          const struct tn_config_table *table)
{
    struct tn_err err = {0};
    const char *root;
    const struct tn_config_node *member = tn_config_member_of(node, "dead_letters");
    if (!table->dead_letters) {
        return;
    }
    if (tn_name_table_root(&r->scratch, table->dead_letters, &root, &err) == TN_INVALID) {
        tn_config_wrong(r, member, "%s", member->secret ? "no name of a table" : err.text);
    } else if (strcmp(table->dead_letters, table->name) == 0) {
        tn_config_wrong(r, member, "a table can't hold its own dead letters");
    } else if (tn_config_find_table(r->config, table->dead_letters)) {
        tn_config_wrong(r, member,
                        "a table of 'tables' has rows of its own; letters need another "
                        "one, which is made when the first comes");
    } else if (letters_with(r->config, table)) {
        tn_config_wrong(r, member, "it has those of %s; each table's letters need one of their own",
                        letters_with(r->config, table)->name);
    }
}

void tn_config_take_tables(struct tn_config_reader *r, struct tn_config_node *node,
                           const struct tn_config_member *member, void *target)
{
    (void)member;
    struct tn_config *config = target;
    struct tn_config_table **end = &config->tables;
    if (node->kind != TN_CONFIG_TABLE || !node->first) {
        tn_config_wrong_value(r, node, "tables: { ['plant.readings'] = {...} }");
        return;
    }
    for (struct tn_config_node *child = node->first; child; child = child->next) {
        if (!child->key) {
            tn_config_wrong(r, child,
                            "a list's item; a table has a name: ['plant.readings'] = "
                            "{...}");
            continue;
        }
        struct tn_config_table *table = take_one(r, child);
        if (table) {
            *end = table;
            end = &table->next;
            config->table_count++;
        }
    }
    for (struct tn_config_table *t = config->tables; t; t = t->next) {
        check_letters(r, tn_config_member_of(node, t->name), t);
    }
}

/* ---- the schema ---- */

static tn_rc no_memory(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "no memory for the schema");
}

static tn_rc names_of(const struct tn_text_list_item *list, const char *what, const char **names,
                      uint32_t *count, struct tn_err *err)
{
    *count = 0;
    for (; list; list = list->next) {
        if (*count == KEYS_MAX) {
            return tn_err_set(err, TN_INVALID, 0, "%s: more than %d columns", what, KEYS_MAX);
        }
        names[(*count)++] = list->text;
    }
    return TN_OK;
}

static tn_rc build(const struct tn_config_table *table, struct tn_arena *arena,
                   struct tn_schema *schema, struct tn_err *err)
{
    const char *primary[KEYS_MAX];
    const char *partition[KEYS_MAX];
    uint32_t primary_count;
    uint32_t partition_count;
    tn_rc rc = names_of(table->primary_key, "primary_key", primary, &primary_count, err);
    if (rc == TN_OK) {
        rc = names_of(table->partition_by, "partition_by", partition, &partition_count, err);
    }
    return rc == TN_OK ? tn_schema_build(schema, primary, primary_count, partition, partition_count,
                                         arena, err)
                       : rc;
}

static tn_rc from_fields(const struct tn_config_table *table, struct tn_arena *arena,
                         struct tn_schema *schema, struct tn_err *err)
{
    uint32_t count = 0;
    for (const struct tn_text_list_item *f = table->fields; f; f = f->next) {
        count++;
    }
    if (count > TN_SCHEMA_FIELDS_MAX) {
        return tn_err_set(err, TN_INVALID, 0, "more than %d fields", TN_SCHEMA_FIELDS_MAX);
    }
    *schema = (struct tn_schema){.version = 3};
    schema->fields = tn_arena_take(arena, (count + 1) * sizeof *schema->fields);
    tn_rc rc = schema->fields ? TN_OK : no_memory(err);
    for (const struct tn_text_list_item *f = table->fields; f && rc == TN_OK; f = f->next) {
        rc = tn_schema_field_parse(f->text, arena, &schema->fields[schema->field_count++], err);
    }
    return rc == TN_OK ? build(table, arena, schema, err) : rc;
}

static void set_option(struct tn_schema *schema, const char *key, const char *value)
{
    uint32_t i = 0;
    while (i < schema->option_count && strcmp(schema->options[i].key, key) != 0) {
        i++;
    }
    schema->options[i] = (struct tn_option){key, value};
    schema->option_count += i == schema->option_count;
}

/* Behind, or in place of, what the schema file had. */
static tn_rc add_options(const struct tn_config_table *table, struct tn_arena *arena,
                         struct tn_schema *schema, struct tn_err *err)
{
    uint32_t count = schema->option_count + 1;
    for (const struct tn_config_pair *p = table->options; p; p = p->next) {
        count++;
    }
    struct tn_option *options = tn_arena_take(arena, count * sizeof *options);
    if (!options) {
        return no_memory(err);
    }
    if (schema->option_count > 0) {
        memcpy(options, schema->options, schema->option_count * sizeof *options);
    }
    schema->options = options;
    for (const struct tn_config_pair *p = table->options; p; p = p->next) {
        set_option(schema, p->key, p->value);
    }
    if (table->script) {
        set_option(schema, TN_SCRIPT_OPTION, table->script);
    }
    return TN_OK;
}

bool tn_config_is_plain(const struct tn_config_table *table, const struct tn_schema *schema)
{
    const char *bucket = tn_schema_option(schema, "bucket");
    bool one = !bucket || strcmp(bucket, "1") == 0 || strcmp(bucket, "-1") == 0;
    return one && schema->partition_keys.count == 0 && schema->field_count <= PLAIN_FIELDS &&
           !table->dead_letters && !tn_schema_option(schema, TN_SCRIPT_OPTION);
}

tn_rc tn_config_table_schema(const struct tn_config_table *table, struct tn_arena *arena,
                             struct tn_schema *schema, struct tn_err *err)
{
    tn_rc rc = table->schema_path ? tn_schema_file_read(table->schema_path, arena, schema, err)
                                  : from_fields(table, arena, schema, err);
    return rc == TN_OK ? add_options(table, arena, schema, err) : rc;
}

/* ---- its checks ---- */

/* A table of the file, while it is checked. */
struct check {
    struct tn_config_reader *r;
    struct tn_config_node *node;
    struct tn_config_table *table;
    struct tn_schema schema;
    struct tn_err err;
};

static struct tn_config_node *at(const struct check *c, const char *member)
{
    struct tn_config_node *node = tn_config_member_of(c->node, member);
    return node ? node : c->node;
}

/* Memory that is short is nobody's mistake. */
static bool held(struct check *c, tn_rc rc, const char *member)
{
    if (rc == TN_AGAIN) {
        c->r->full = true;
    } else if (rc != TN_OK) {
        tn_config_wrong(c->r, at(c, member), "%s", c->err.text);
    }
    return rc == TN_OK;
}

/* All fields that are wrong, not only the first. */
static bool check_fields(struct check *c)
{
    bool good = true;
    struct tn_config_node *list = tn_config_member_of(c->node, "fields");
    for (struct tn_config_node *item = list ? list->first : NULL; item; item = item->next) {
        struct tn_field field;
        if (item->kind != TN_CONFIG_TEXT || item->told) {
            good = false;
            continue;
        }
        tn_rc rc = tn_schema_field_parse(item->text, &c->r->scratch, &field, &c->err);
        if (rc != TN_OK) {
            tn_config_wrong(c->r, item, "%s", item->secret ? "is no column" : c->err.text);
            good = false;
        }
    }
    return good;
}

/* The option that a text is about: the first of them that it names. */
static const struct tn_option *option_in(const struct tn_schema *schema, const char *text)
{
    static const char begin[] = "option '";
    const char *name = strncmp(text, begin, strlen(begin)) == 0 ? text + strlen(begin) : NULL;
    for (uint32_t i = 0; name && i < schema->option_count; i++) {
        size_t size = strlen(schema->options[i].key);
        if (strncmp(name, schema->options[i].key, size) == 0 && name[size] == '\'') {
            return &schema->options[i];
        }
    }
    return NULL;
}

static const char *good_bucket(const struct tn_schema *schema)
{
    return schema->primary_keys.count > 0 ? "1" : "-1";
}

/* Whether the option is as wrong without the others: then it doesn't follow from them. */
static bool wrong_alone(struct check *c, const struct tn_option *option)
{
    struct tn_option options[] = {{"bucket", good_bucket(&c->schema)}, *option};
    bool is_bucket = strcmp(option->key, "bucket") == 0;
    struct tn_schema alone = c->schema;
    struct tn_options read;
    struct tn_err err = {0};
    size_t mark = tn_arena_mark(&c->r->scratch);
    alone.options = is_bucket ? options + 1 : options;
    alone.option_count = is_bucket ? 1 : 2;
    tn_rc rc = tn_options_read(&alone, TN_OPTIONS_CREATE, &c->r->scratch, &read, &err);
    tn_arena_reset(&c->r->scratch, mark);
    return rc != TN_OK && strcmp(err.text, c->err.text) == 0 &&
           strncmp(option->key, "fields.", strlen("fields.")) != 0;
}

static void tell_option(struct check *c, const struct tn_option *option)
{
    const struct tn_config_node *options = tn_config_member_of(c->node, "options");
    const struct tn_config_node *node =
        option && options ? tn_config_member_of(options, option->key) : NULL;
    if (node && node->secret) {
        tn_config_wrong(c->r, node, "the text of %s is no value of it", node->origin);
    } else {
        tn_config_wrong(c->r, options ? options : c->node, "%s", c->err.text);
    }
}

/* As if it had been right. */
static void pass_over(struct tn_schema *schema, uint32_t i)
{
    if (strcmp(schema->options[i].key, "bucket") == 0) {
        schema->options[i].value = good_bucket(schema);
    } else {
        schema->options[i] = schema->options[--schema->option_count];
    }
}

/* One after the other: the reader ends at the first. */
static bool check_options(struct check *c)
{
    struct tn_options read;
    for (bool first = true; true; first = false) {
        tn_rc rc = tn_options_read(&c->schema, TN_OPTIONS_CREATE, &c->r->scratch, &read, &c->err);
        if (rc == TN_OK || rc == TN_AGAIN) {
            c->r->full |= rc == TN_AGAIN;
            return first && rc == TN_OK;
        }
        const struct tn_option *option = option_in(&c->schema, c->err.text);
        if (!first && (!option || !wrong_alone(c, option))) {
            return false;
        }
        tell_option(c, option);
        if (!option) {
            return false;
        }
        pass_over(&c->schema, (uint32_t)(option - c->schema.options));
    }
}

static void check_times(struct check *c)
{
    static const char *const units[] = {"s", "ms", "us", "ns"};
    struct tn_config_node *times = tn_config_member_of(c->node, "times");
    for (struct tn_config_node *n = times ? times->first : NULL; n; n = n->next) {
        if (!n->key) {
            continue; /* told */
        }
        (void)tn_config_word(c->r, n, units, 4);
        int32_t field = tn_schema_find(&c->schema, tn_bytes_of(n->key));
        enum tn_type_kind kind = field >= 0 ? c->schema.fields[field].type.kind : TN_TYPE_DATE;
        if (field < 0) {
            tn_config_wrong(c->r, n, "there is no such column");
        } else if (kind != TN_TYPE_TIMESTAMP && kind != TN_TYPE_TIMESTAMP_LTZ) {
            tn_config_wrong(c->r, n, "the column is %s; a TIMESTAMP has a unit",
                            tn_type_name(kind));
        }
    }
}

/* ---- all of it ---- */

/* From where the daemon takes it: a path that doesn't begin with '/' begins beside the warehouse.
 */
static tn_rc check_script_of(struct check *c, const struct tn_schema *schema)
{
    struct tn_arena *arena = &c->r->scratch;
    const char *given = tn_schema_option(schema, TN_SCRIPT_OPTION);
    if (!given) {
        return TN_OK;
    }
    const char *path = given[0] == '/'
                           ? given
                           : tn_arena_format(arena, "%s/../%s", c->r->config->warehouse, given);
    tn_rc rc = path ? tn_config_check_script(c->r, schema, c->table->name, path, &c->err)
                    : no_memory(&c->err);
    return rc == TN_OK ? rc : tn_err_in(&c->err, "its script %s", given);
}

/* Of a table that is there. */
static void check_its_script(struct check *c, struct tn_io *io, const char *root)
{
    const struct tn_schema *schema = NULL;
    struct tn_schemas *schemas = tn_arena_take(&c->r->scratch, sizeof *schemas);
    if (!schemas) {
        (void)held(c, no_memory(&c->err), "script");
        return;
    }
    tn_schemas_init(schemas, io, root, &c->r->scratch);
    tn_rc rc = tn_schemas_newest(schemas, &schema, &c->err);
    rc = rc == TN_OK ? check_script_of(c, schema) : rc;
    (void)held(c, rc, "script");
}

/* What says how a table is made means nothing for one that is there. */
static void check_found(struct check *c)
{
    static const char *const making[] = {"primary_key", "partition_by", "options", "script"};
    for (size_t i = 0; i < sizeof making / sizeof making[0]; i++) {
        const struct tn_config_node *member = tn_config_member_of(c->node, making[i]);
        if (member) {
            tn_config_wrong(c->r, member, "is for a table that is made, and 'fields' is missing");
        }
    }
    struct tn_io_posix posix;
    const char *warehouse = c->r->config->warehouse;
    const char *root = NULL;
    int64_t ms;
    if (!warehouse || tn_name_table_root(&c->r->scratch, c->table->name, &root, &c->err) != TN_OK) {
        return; /* told */
    }
    tn_rc rc = tn_io_posix_open(&posix, warehouse, &c->err);
    if (rc == TN_OK) {
        const char *path = tn_name_in(&c->r->scratch, root, TN_DIR_SCHEMA, "");
        c->r->full |= !path;
        rc = path ? posix.io.vtable->modified(&posix.io, path, &ms, &c->err) : TN_OK;
        if (rc == TN_OK && path) {
            check_its_script(c, &posix.io, root);
        }
        tn_io_posix_close(&posix);
    }
    if (rc != TN_OK) {
        tn_config_wrong(c->r, c->node,
                        "'fields' or 'schema' is missing, and there is no such "
                        "table in %s",
                        warehouse);
    }
}

/* Keys are beside the fields. */
static const char *place_of(const struct check *c)
{
    return c->table->schema_path                       ? "schema"
           : strncmp(c->err.text, "primary", 7) == 0   ? "primary_key"
           : strncmp(c->err.text, "partition", 9) == 0 ? "partition_by"
                                                       : "fields";
}

static void check_made(struct check *c)
{
    if ((!c->table->schema_path && !check_fields(c)) || at(c, "primary_key")->told ||
        at(c, "partition_by")->told) {
        return;
    }
    tn_rc rc = tn_config_table_schema(c->table, &c->r->scratch, &c->schema, &c->err);
    if (!held(c, rc, place_of(c))) {
        return;
    }
    rc = tn_schema_check_create(&c->schema, &c->r->scratch, &c->err);
    check_times(c);
    c->table->plain = tn_config_is_plain(c->table, &c->schema);
    c->r->config->plain_count += c->table->plain;
    if (!held(c, rc, place_of(c)) || !check_options(c) || !c->table->script) {
        return;
    }
    rc = tn_config_check_script(c->r, &c->schema, c->table->name, c->table->script, &c->err);
    (void)held(c, rc, "script");
}

static void check_table(struct check *c)
{
    bool from_file = tn_config_member_of(c->node, "schema");
    bool from_fields_too = tn_config_member_of(c->node, "fields");
    if (from_file && from_fields_too) {
        tn_config_wrong(c->r, at(c, "fields"), "is in the schema file, too; one of the two");
    } else if (from_file && (c->table->primary_key || c->table->partition_by)) {
        tn_config_wrong(c->r, at(c, c->table->primary_key ? "primary_key" : "partition_by"),
                        "is in the schema file");
    } else if (!from_file && !from_fields_too) {
        check_found(c);
    } else if (c->table->schema_path || c->table->fields) {
        check_made(c);
    }
}

tn_rc tn_config_check_tables(struct tn_config_reader *r, struct tn_config_node *tables,
                             struct tn_err *err)
{
    for (struct tn_config_table *t = r->config->tables; t && !r->full; t = t->next) {
        size_t mark = tn_arena_mark(&r->scratch);
        void *memory = NULL;
        tn_rc rc = tn_arena_need(&r->scratch, sizeof(struct check), "a table", &memory, err);
        if (rc != TN_OK) {
            return rc;
        }
        struct check *c = memory;
        *c = (struct check){.r = r, .node = tn_config_member_of(tables, t->name), .table = t};
        if (c->node->kind == TN_CONFIG_TABLE) {
            check_table(c);
        }
        tn_arena_reset(&r->scratch, mark);
    }
    return TN_OK;
}

tn_rc tn_config_epochs(const struct tn_config_pair *times, const struct tn_schema *schema,
                       struct tn_arena *arena, const enum tn_epoch **epochs, struct tn_err *err)
{
    static const char *const UNITS[] = {"", "s", "ms", "us", "ns"};
    void *memory;
    tn_rc rc = tn_arena_need(arena, (schema->field_count + 1) * sizeof(enum tn_epoch), "times",
                             &memory, err);
    enum tn_epoch *list = memory;
    for (const struct tn_config_pair *pair = times; rc == TN_OK && pair; pair = pair->next) {
        int32_t field = tn_schema_find(schema, tn_bytes_of(pair->key));
        for (int unit = TN_EPOCH_S; field >= 0 && unit <= TN_EPOCH_NS; unit++) {
            if (strcmp(pair->value, UNITS[unit]) == 0) {
                list[field] = (enum tn_epoch)unit;
            }
        }
    }
    if (rc == TN_OK) {
        *epochs = list;
    }
    return rc;
}
