#include "script/scripted.h"

#include <string.h>

#include "base/hash.h"
#include "file/names.h"
#include "file/schemas.h"
#include "io/io.h"

static const char *const parts[TN_SCRIPT_PLACES] = {
    [TN_SCRIPT_LOOP] = "lua_map", [TN_SCRIPT_WORKER] = "lua_merge"};

enum { PATH_SIZE = 4096 }; /* Linux: PATH_MAX */

/* ---- where the file is ---- */

static tn_rc no_memory(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "no memory for a script's path");
}

/* The folder that holds the warehouse, from "/". */
static tn_rc find_base(const struct tn_scripted *s, const char **base, struct tn_err *err)
{
    struct tn_arena *arena = s->spec.env->arena;
    struct tn_io_posix posix;
    if (!s->spec.warehouse) {
        return tn_err_set(err, TN_INVALID, 0, "its path must begin with '/' here");
    }
    const char *up = tn_arena_format(arena, "%s/..", s->spec.warehouse);
    char *path = tn_arena_take(arena, PATH_SIZE);
    tn_rc rc = up && path ? tn_io_posix_open(&posix, up, err) : no_memory(err);
    if (rc == TN_OK) {
        tn_io_posix_where(&posix, path, PATH_SIZE);
        tn_io_posix_close(&posix);
        *base = path;
    }
    return rc;
}

static tn_rc find_path(struct tn_scripted *s, const char *given, struct tn_err *err)
{
    const char *base = "";
    tn_rc rc = given[0] == '/' ? TN_OK : find_base(s, &base, err);
    if (rc != TN_OK) {
        return tn_err_in(err, "script %s", given);
    }
    const char *slash = base[0] && base[strlen(base) - 1] != '/' ? "/" : "";
    s->path = tn_arena_format(s->spec.env->arena, "%s%s%s", base, slash, given);
    return s->path ? TN_OK : no_memory(err);
}

/* Its folder, where it may require other files. */
static tn_rc open_folder(const struct tn_scripted *s, struct tn_io_posix *files, const char **name,
                         struct tn_err *err)
{
    const char *slash = strrchr(s->path, '/');
    size_t size = (size_t)(slash - s->path) + 1;
    const char *folder =
        tn_arena_text(s->spec.env->arena, (struct tn_bytes){(const unsigned char *)s->path, size});
    *name = slash + 1;
    tn_rc rc = folder ? tn_io_posix_open(files, folder, err) : no_memory(err);
    return rc == TN_ABSENT ? tn_err_set(err, TN_INVALID, 0, "there is no such file") : rc;
}

/* ---- what it is loaded with ---- */

tn_rc tn_scripted_late(const struct tn_schema *schema, struct tn_arena *arena,
                       struct tn_columns *columns, struct tn_err *err)
{
    const char *name = tn_schema_option(schema, TN_SEQUENCE_OPTION);
    int32_t field = name ? tn_schema_find(schema, tn_bytes_of(name)) : -1;
    void *memory;
    *columns = (struct tn_columns){0};
    if (name && field < 0) {
        return tn_err_set(err, TN_INVALID, 0, "option '%s': there is no column '%s'",
                          TN_SEQUENCE_OPTION, name);
    }
    if (!name) {
        return TN_OK;
    }
    tn_rc rc = tn_arena_need(arena, sizeof(uint32_t), "columns", &memory, err);
    if (rc == TN_OK) {
        uint32_t *index = memory;
        *index = (uint32_t)field;
        *columns = (struct tn_columns){index, 1};
    }
    return rc;
}

static tn_rc init_layout(struct tn_scripted *s, const struct tn_schema *schema, struct tn_err *err)
{
    tn_rc rc = tn_schema_layout(schema, &s->layout, NULL, NULL, s->spec.env->arena, err);
    return rc == TN_OK && s->layout.column_count != schema->field_count
               ? tn_err_set(err, TN_UNSUPPORTED, 0, "a script needs a table without nested columns")
               : rc;
}

/* The last that is carved is the first that may be given back: the loop's. */
static void carve(struct tn_scripted *s, struct tn_script_pair_spec *pair)
{
    for (int place = TN_SCRIPT_PLACES - 1; place >= 0; place--) {
        struct tn_part *part = tn_budget_carve(s->spec.budget, parts[place]);
        pair->memory[place] = part->base;
        pair->size[place] = part->size;
        part->heap = &s->pair.vms[place].heap;
        s->carved[place] = true;
    }
    tn_env_measure(s->spec.env, s->spec.budget);
}

static void join(struct tn_scripted *s, enum tn_script_place place)
{
    if (s->carved[place]) {
        tn_budget_join(s->spec.budget, parts[place]);
        s->carved[place] = false;
        tn_env_measure(s->spec.env, s->spec.budget);
    }
}

/* A script that only merges needs no state for rows that come in. */
static void give_back(struct tn_scripted *s)
{
    const struct tn_script *script = &s->pair.scripts[TN_SCRIPT_LOOP];
    if (!tn_script_has(script, TN_SCRIPT_MAP) && !tn_script_has(script, TN_SCRIPT_UPLOAD) &&
        !tn_script_has(script, TN_SCRIPT_UPLOADED)) {
        tn_vm_close(&s->pair.vms[TN_SCRIPT_LOOP]);
        join(s, TN_SCRIPT_LOOP);
    }
}

static tn_rc load(struct tn_scripted *s, struct tn_script_pair_spec *pair, struct tn_err *err)
{
    struct tn_io_posix files;
    tn_rc rc = open_folder(s, &files, &pair->script.path, err);
    if (rc == TN_OK) {
        pair->script.row_size_max = s->spec.env->row_size_max; /* the table's is no larger */
        carve(s, pair);
        pair->io = &files.io;
        rc = tn_script_pair_open(&s->pair, pair, err);
        pair->io = NULL;
        tn_io_posix_close(&files);
    }
    if (rc == TN_OK) {
        give_back(s);
    }
    return rc == TN_OK ? rc : tn_err_in(err, "script %s", s->path);
}

tn_rc tn_scripted_open(struct tn_scripted *s, const struct tn_scripted_spec *spec,
                       const struct tn_schema *schema, struct tn_err *err)
{
    const char *given = tn_schema_option(schema, TN_SCRIPT_OPTION);
    *s = (struct tn_scripted){.spec = *spec, .schema = schema->id};
    s->mark = tn_arena_mark(spec->env->arena);
    if (!given) {
        return TN_OK;
    }
    struct tn_script_pair_spec pair = {
        .seed = tn_hash_64(tn_bytes_of(spec->table), 0), .log = spec->log, .user = spec->user};
    tn_rc rc = find_path(s, given, err);
    if (rc == TN_OK) {
        rc = init_layout(s, schema, err);
    }
    if (rc == TN_OK) {
        rc = tn_scripted_late(schema, spec->env->arena, &pair.late_by, err);
    }
    struct tn_default_row defaults = {0};
    if (rc == TN_OK) {
        rc = tn_default_row_make(schema, &s->layout, spec->env->arena, &defaults, err);
    }
    pair.script = (struct tn_script_spec){.defaults = defaults,
                                          .layout = &s->layout,
                                          .keys = schema->primary_keys,
                                          .table = spec->table,
                                          .skip_cases = spec->skip_cases};
    if (rc == TN_OK) {
        rc = load(s, &pair, err);
    }
    s->open = rc == TN_OK;
    if (rc != TN_OK) {
        tn_scripted_close(s);
    }
    return rc;
}

static tn_rc read_schema(const struct tn_scripted_spec *spec, const struct tn_schema **schema,
                         struct tn_err *err)
{
    struct tn_arena *arena = spec->env->arena;
    const char *root;
    void *schemas;
    tn_rc rc = tn_name_table_root(arena, spec->table, &root, err);
    if (rc == TN_OK) {
        rc = tn_arena_need(arena, sizeof(struct tn_schemas), "the schema", &schemas, err);
    }
    if (rc == TN_OK) {
        tn_schemas_init(schemas, spec->env->io, root, arena);
        rc = tn_schemas_newest(schemas, schema, err);
    }
    return rc;
}

tn_rc tn_scripted_find(struct tn_scripted *s, const struct tn_scripted_spec *spec,
                       struct tn_err *err)
{
    struct tn_arena *arena = spec->env->arena;
    const struct tn_schema *schema = NULL;
    size_t mark = tn_arena_mark(arena);
    *s = (struct tn_scripted){0};
    tn_rc rc = read_schema(spec, &schema, err);
    if (rc == TN_OK) {
        rc = tn_scripted_open(s, spec, schema, err);
    }
    s->mark = mark;
    if (!s->open) {
        tn_arena_reset(arena, mark);
    }
    return rc == TN_ABSENT && !schema ? TN_OK : rc;
}

tn_rc tn_scripted_wanted(const struct tn_scripted_spec *spec, bool *wanted, struct tn_err *err)
{
    struct tn_arena *arena = spec->env->arena;
    const struct tn_schema *schema = NULL;
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = read_schema(spec, &schema, err);
    *wanted = rc == TN_OK && tn_schema_option(schema, TN_SCRIPT_OPTION);
    tn_arena_reset(arena, mark);
    return rc == TN_ABSENT && !schema ? TN_OK : rc;
}

void tn_scripted_fill(struct tn_scripted *s, struct tn_table_spec *spec)
{
    if (s->open) {
        spec->resolver = &s->pair.resolver.resolver;
        spec->properties = s->pair.properties;
        spec->property_count = s->pair.property_count;
    }
}

tn_rc tn_scripted_check(const struct tn_scripted *s, const struct tn_table *table,
                        struct tn_err *err)
{
    return s->open && tn_table_schema(table)->id != s->schema
               ? tn_err_set(err, TN_AGAIN, 0, "%s was altered while it was opened", s->spec.table)
               : TN_OK;
}

void tn_scripted_close(struct tn_scripted *s)
{
    tn_script_pair_close(&s->pair);
    join(s, TN_SCRIPT_LOOP);
    join(s, TN_SCRIPT_WORKER);
    if (s->open) {
        tn_arena_reset(s->spec.env->arena, s->mark);
        s->open = false;
    }
}
