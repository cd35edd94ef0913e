#include "tarn.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "table/make.h"
#include "table/table.h"
#include "tarn_parts.h"
#include "tarn_private.h"

#define SAME(name) _Static_assert((int)TARN_##name == (int)TN_##name, "the codes are the engine's");
SAME(OK)
SAME(AGAIN)
SAME(ABSENT)
SAME(EXISTS)
SAME(INVALID)
SAME(CORRUPT)
SAME(IO)
SAME(FULL)
SAME(CONFLICT)
SAME(CANCELED)
SAME(UNSUPPORTED)
_Static_assert(sizeof((tarn_error){0}.text) == TN_ERR_TEXT_SIZE, "a text fits whole");
_Static_assert((int)TARN_DELETE == (int)TN_ROW_DELETE, "the kinds are the engine's");

enum { SCAN_ENOUGH = 384 * 1024 }; /* a schema, a plan, and names: a guess */

tarn_rc tn_api_tell(tn_rc rc, const struct tn_err *err, tarn_error *error)
{
    if (rc != TN_OK && error) {
        error->code = (tarn_rc)rc;
        memcpy(error->text, err->text, sizeof error->text);
    }
    return (tarn_rc)rc;
}

int64_t tn_api_i64_max(enum tn_type_kind kind)
{
    static const struct {
        enum tn_type_kind kind;
        int64_t max;
    } RANGES[] = {
        {TN_TYPE_BOOLEAN, 1},     {TN_TYPE_TINYINT, INT8_MAX}, {TN_TYPE_SMALLINT, INT16_MAX},
        {TN_TYPE_INT, INT32_MAX}, {TN_TYPE_BIGINT, INT64_MAX},
    };
    for (size_t i = 0; i < sizeof RANGES / sizeof RANGES[0]; i++) {
        if (RANGES[i].kind == kind) {
            return RANGES[i].max;
        }
    }
    return -1;
}

uint32_t tarn_version(void)
{
    return TARN_API_VERSION;
}

/* The engine itself lies in front of the part "input"; the rest is for a table and a scan: half of
 * it each, or more for the table, whose rows may be long, when the scan has enough. */
static tn_rc place_engine(struct tn_budget *budget, tarn_engine **out, struct tn_err *err)
{
    struct tn_part *input = tn_budget_part(budget, "input");
    struct tn_arena whole;
    void *place;
    tn_arena_init(&whole, input->base, input->size);
    tn_rc rc = tn_arena_need(&whole, sizeof(tarn_engine), "an engine", &place, err);
    if (rc != TN_OK) {
        return rc;
    }
    tarn_engine *engine = place;
    engine->budget = *budget;
    size_t half = tn_arena_free(&whole) / 2;
    size_t scan = half < SCAN_ENOUGH ? half : SCAN_ENOUGH;
    size_t size = (tn_arena_free(&whole) - scan) & ~(size_t)63;
    tn_arena_init(&engine->for_table, tn_arena_take_raw(&whole, size), size);
    size = tn_arena_free(&whole) & ~(size_t)63;
    tn_arena_init(&engine->for_scan, tn_arena_take_raw(&whole, size), size);
    *out = engine;
    return TN_OK;
}

static tn_rc open_budget(const tarn_engine_options *options, struct tn_budget *budget,
                         struct tn_err *err)
{
    if (!options || options->size != sizeof *options) {
        return tn_err_set(err, TN_INVALID, 0, "tarn_open: options.size is not that of version %d",
                          TARN_API_VERSION);
    }
    if (!options->memory) {
        return tn_budget_open(budget, &tn_board, options->memory_size, err);
    }
    if (options->memory_size > SIZE_MAX || (uintptr_t)options->memory % _Alignof(max_align_t) > 0) {
        return tn_err_set(err, TN_INVALID, 0, "tarn_open: memory that is no block");
    }
    return tn_budget_open_on(budget, &tn_board, options->memory, (size_t)options->memory_size, err);
}

static tn_rc open_files(tarn_engine *engine, const char *warehouse, struct tn_err *err)
{
    if (!warehouse || !*warehouse) {
        return tn_err_set(err, TN_INVALID, 0, "tarn_open: no warehouse");
    }
    if (mkdir(warehouse, 0777) != 0 && errno != EEXIST) {
        int os = errno;
        return tn_err_set(err, TN_IO, os, "make folder %s: %s", warehouse, strerror(os));
    }
    tn_rc rc = tn_io_posix_open(&engine->posix, warehouse, err);
    engine->posix_open = rc == TN_OK;
    return rc;
}

static tn_rc open_env(tarn_engine *engine, struct tn_io *io, struct tn_clock *clock,
                      struct tn_err *err)
{
    struct tn_env_spec spec = {.budget = &engine->budget,
                               .json = &engine->json,
                               .avro = &engine->avro,
                               .levels = &engine->levels,
                               .table = &engine->arena,
                               .workers = engine->workers,
                               .exec = &engine->exec,
                               .io = io,
                               .clock = clock};
    return tn_env_open(&engine->env, &spec, err);
}

/* Not inline: a stack holds one copy of a budget. */
static __attribute__((noinline)) void shut(tarn_engine *engine)
{
    if (engine->posix_open) {
        tn_io_posix_close(&engine->posix);
    }
    struct tn_budget budget = engine->budget; /* the engine lies in what it closes */
    tn_budget_close(&budget);
}

tarn_rc tarn_open_on(const tarn_engine_options *options, struct tn_io *io, struct tn_clock *clock,
                     tarn_engine **engine, tarn_error *error)
{
    struct tn_budget budget = {0};
    struct tn_err err = {0};
    tarn_engine *opened;
    tn_rc rc = open_budget(options, &budget, &err);
    if (rc != TN_OK) {
        return tn_api_tell(rc, &err, error);
    }
    rc = place_engine(&budget, &opened, &err);
    if (rc != TN_OK) {
        tn_budget_close(&budget);
        return tn_api_tell(rc, &err, error);
    }
    if (!io) {
        rc = open_files(opened, options->warehouse, &err);
        io = &opened->posix.io;
    }
    if (rc == TN_OK) {
        rc = open_env(opened, io, clock, &err);
    }
    if (rc == TN_OK && opened->posix_open) {
        opened->warehouse = tn_arena_text(&opened->arena, tn_bytes_of(options->warehouse));
        rc = opened->warehouse ? TN_OK : tn_err_set(&err, TN_AGAIN, 0, "no memory for a name");
    }
    if (rc != TN_OK) {
        shut(opened);
        return tn_api_tell(rc, &err, error);
    }
    *engine = opened;
    return TARN_OK;
}

tarn_rc tarn_open(const tarn_engine_options *options, tarn_engine **engine, tarn_error *error)
{
    return tarn_open_on(options, NULL, &tn_clock_system, engine, error);
}

void tarn_close(tarn_engine *engine)
{
    if (engine) {
        tarn_scan_close(engine->scan);
        tarn_table_close(engine->table);
        shut(engine);
    }
}

static tn_rc create(tarn_engine *engine, const char *table, const char *text, struct tn_err *err)
{
    struct tn_schema schema;
    struct tn_options options;
    tn_rc rc = tn_schema_from_user(tn_bytes_of(text), &engine->arena, &schema, err);
    if (rc == TN_OK) {
        rc = tn_api_script_try(engine, table, &schema, err);
    }
    return rc == TN_OK ? tn_make_table(&engine->env, table, &schema, &options, err) : rc;
}

tarn_rc tarn_create(tarn_engine *engine, const char *table, const char *schema, tarn_error *error)
{
    struct tn_err err = {0};
    struct tn_io *io = engine->env.io;
    size_t mark = tn_arena_mark(&engine->arena);
    int lock;
    tn_rc rc = tn_table_lock(io, table, "tarn_create", &engine->arena, &lock, &err);
    if (rc == TN_OK) {
        rc = create(engine, table, schema, &err);
        io->vtable->close(io, lock);
    }
    tn_arena_reset(&engine->arena, mark);
    if (rc != TN_OK) {
        (void)tn_err_in(&err, "%s", table);
    }
    return tn_api_tell(rc, &err, error);
}
