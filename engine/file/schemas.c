#include "file/schemas.h"

#include "file/names.h"

void tn_schemas_init(struct tn_schemas *schemas, struct tn_io *io, const char *root,
                     struct tn_arena *arena)
{
    *schemas = (struct tn_schemas){.io = io, .root = root, .arena = arena};
}

const struct tn_schema *tn_schemas_find(const struct tn_schemas *schemas, int64_t id)
{
    for (uint32_t i = 0; i < schemas->count; i++) {
        if (schemas->items[i]->id == id) {
            return schemas->items[i];
        }
    }
    return NULL;
}

static tn_rc read_one(struct tn_schemas *schemas, int64_t id, struct tn_schema *schema,
                      struct tn_err *err)
{
    const char *path =
        tn_name_numbered(schemas->arena, schemas->root, TN_DIR_SCHEMA, "schema-", id);
    if (!path) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for the name of schema %lld", (long long)id);
    }
    struct tn_bytes json;
    tn_rc rc = tn_io_read_all(schemas->io, path, TN_SCHEMA_SIZE_MAX, schemas->arena, &json, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_schema_decode(json, schemas->arena, schema, err);
    if (rc == TN_OK && schema->id != id) {
        rc =
            tn_err_set(err, TN_CORRUPT, 0, "it says that it is schema %lld", (long long)schema->id);
    }
    return rc == TN_OK ? TN_OK : tn_err_in(err, "%s", path);
}

tn_rc tn_schemas_load(struct tn_schemas *schemas, int64_t id, const struct tn_schema **schema,
                      struct tn_err *err)
{
    const struct tn_schema *known = tn_schemas_find(schemas, id);
    if (known) {
        *schema = known;
        return TN_OK;
    }
    if (schemas->count == TN_SCHEMAS_MAX) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "%s: more than %d schema versions in use",
                          schemas->root, TN_SCHEMAS_MAX);
    }
    struct tn_schema *made = tn_arena_take(schemas->arena, sizeof *made);
    if (!made) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for schema %lld", (long long)id);
    }
    tn_rc rc = read_one(schemas, id, made, err);
    if (rc == TN_OK) {
        schemas->items[schemas->count++] = made;
        *schema = made;
    }
    return rc;
}

static tn_rc keep_largest(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    (void)err;
    int64_t *largest = user;
    int64_t number = is_dir ? -1 : tn_name_number(name, "schema-");
    *largest = number > *largest ? number : *largest;
    return TN_OK;
}

tn_rc tn_schemas_newest(struct tn_schemas *schemas, const struct tn_schema **schema,
                        struct tn_err *err)
{
    size_t mark = tn_arena_mark(schemas->arena);
    const char *dir = tn_name_in(schemas->arena, schemas->root, TN_DIR_SCHEMA, "");
    if (!dir) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for a folder's name");
    }
    int64_t largest = -1;
    tn_rc rc = schemas->io->vtable->list(schemas->io, dir, keep_largest, &largest, err);
    tn_arena_reset(schemas->arena, mark);
    if (rc == TN_OK && largest < 0) {
        rc = tn_err_set(err, TN_ABSENT, 0, "%s has no schema", schemas->root);
    }
    return rc == TN_OK ? tn_schemas_load(schemas, largest, schema, err) : rc;
}
