#include "table/make.h"

#include "file/names.h"
#include "schema/value.h"

/* schema-0 appears whole, with its folder, or not at all; a table that is there already is left
 * alone. */
static tn_rc publish_schema(struct tn_env *env, const char *root, struct tn_bytes text,
                            struct tn_err *err)
{
    struct tn_io *io = env->io;
    const char *dir = tn_name_in(env->arena, root, TN_DIR_SCHEMA, "");
    const char *path = tn_name_numbered(env->arena, root, TN_DIR_SCHEMA, "schema-", 0);
    char uuid[TN_UUID_SIZE];
    tn_clock_uuid(env->clock, uuid);
    const char *draft = dir ? tn_arena_format(env->arena, "%s.schema-0.%s.tmp", dir, uuid) : NULL;
    if (!draft || !path) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for the schema's name");
    }
    tn_rc rc = io->vtable->make_dir(io, dir, err);
    if (rc == TN_OK) {
        rc = tn_io_write_new(io, draft, text, err);
    }
    if (rc == TN_OK) {
        rc = io->vtable->sync(io, &draft, 1, err);
    }
    if (rc == TN_OK) {
        rc = io->vtable->rename_new(io, draft, path, err);
        if (rc != TN_OK) {
            struct tn_err ignored = {0};
            (void)io->vtable->unlink(io, draft, &ignored);
        }
    }
    return rc == TN_OK ? io->vtable->sync(io, &dir, 1, err) : rc;
}

/* One that was cut has left snapshots without a schema (upload/restore.h). With another one they
 * would be another table's. */
static tn_rc check_not_restored(struct tn_env *env, const char *table, struct tn_err *err)
{
    uint64_t size;
    size_t mark = tn_arena_mark(env->arena);
    const char *path = tn_arena_format(env->arena, ".tarn/%s.restore", table);
    tn_rc rc = path ? env->io->vtable->stat(env->io, path, &size, err)
                    : tn_err_set(err, TN_AGAIN, 0, "no memory for a file's name");
    tn_arena_reset(env->arena, mark);
    return rc == TN_OK
               ? tn_err_set(err, TN_INVALID, 0,
                            "%s is half restored from its mirror: run `tarn restore` again", table)
           : rc == TN_ABSENT ? TN_OK
                             : rc;
}

/* Paimon's own default is parquet, so the table must say what it has. */
static tn_rc name_format(struct tn_arena *arena, struct tn_schema *schema, struct tn_err *err)
{
    void *memory;
    if (tn_schema_option(schema, "file.format")) {
        return TN_OK;
    }
    tn_rc rc = tn_arena_need(arena, (schema->option_count + 1) * sizeof(struct tn_option),
                             "the schema", &memory, err);
    if (rc == TN_OK) {
        struct tn_option *options = memory;
        for (uint32_t i = 0; i < schema->option_count; i++) {
            options[i] = schema->options[i];
        }
        options[schema->option_count++] = (struct tn_option){"file.format", "avro"};
        schema->options = options;
    }
    return rc;
}

static tn_rc check(struct tn_env *env, struct tn_schema *schema, struct tn_options *options,
                   struct tn_err *err)
{
    tn_rc rc = tn_schema_check_create(schema, env->arena, err);
    return rc == TN_OK ? tn_options_read(schema, TN_OPTIONS_CREATE, env->arena, options, err) : rc;
}

/* What could not be read again is not made: JSON needs a heap some times its size. */
static tn_rc read_back(struct tn_arena *arena, struct tn_bytes text, struct tn_err *err)
{
    struct tn_schema back;
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = tn_schema_decode(text, arena, &back, err);
    tn_arena_reset(arena, mark);
    return rc == TN_OK ? rc : tn_err_in(err, "the schema");
}

tn_rc tn_make_table(struct tn_env *env, const char *table, struct tn_schema *schema,
                    struct tn_options *options, struct tn_err *err)
{
    struct tn_arena *arena = env->arena;
    const char *root;
    tn_rc rc = tn_name_table_root(arena, table, &root, err);
    if (rc == TN_OK) {
        rc = name_format(arena, schema, err);
    }
    if (rc == TN_OK) {
        rc = check(env, schema, options, err);
    }
    if (rc == TN_OK) {
        rc = check_not_restored(env, table, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_buf text;
    size_t size = tn_arena_free(arena) / 2;
    tn_buf_init(&text, tn_arena_take_raw(arena, size), size);
    schema->time_ms = env->clock->vtable->now_ms(env->clock);
    tn_schema_encode(schema, &text);
    if (text.overflow) {
        return tn_err_set(err, TN_AGAIN, 0, "the schema needs more than %zu KB", size / 1024);
    }
    if (!tn_is_utf8(tn_buf_bytes(&text))) {
        return tn_err_set(err, TN_INVALID, 0, "the schema has a text that is no UTF-8");
    }
    rc = read_back(arena, tn_buf_bytes(&text), err);
    return rc == TN_OK ? publish_schema(env, root, tn_buf_bytes(&text), err) : rc;
}
