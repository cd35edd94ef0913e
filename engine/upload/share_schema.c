#include "upload/share_schema.h"

#include <inttypes.h>
#include <stdio.h>

#include "commit/consumer.h"
#include "commit/publish.h"
#include "file/names.h"
#include "schema/options.h"
#include "upload/owner.h"

enum { TEXT_SIZE = 256, VERSIONS_MAX = 4096 };

static tn_rc no_room(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "no memory for a schema");
}

/* ---- differences ---- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static const char *type_of(const struct tn_field *field, char text[TN_TYPE_TEXT_SIZE])
{
    return field->type_json ? field->type_json : tn_type_format(&field->type, text);
}

static bool fields_differ(const struct tn_schema *here, const struct tn_schema *there, char *text,
                          size_t size)
{
    for (uint32_t i = 0; i < here->field_count && i < there->field_count; i++) {
        const struct tn_field *a = &here->fields[i];
        const struct tn_field *b = &there->fields[i];
        char of_a[TN_TYPE_TEXT_SIZE];
        char of_b[TN_TYPE_TEXT_SIZE];
        if (a->id != b->id || !same_text(a->name, b->name) ||
            !same_text(type_of(a, of_a), type_of(b, of_b)) ||
            !same_text(a->default_value, b->default_value)) {
            (void)snprintf(text, size,
                           "column %u is '%s' %s (id %d) here and '%s' %s (id %d) there",
                           (unsigned)i + 1, a->name, type_of(a, of_a), a->id, b->name,
                           type_of(b, of_b), b->id);
            return true;
        }
    }
    if (here->field_count != there->field_count) {
        bool ours = here->field_count > there->field_count;
        uint32_t at = ours ? there->field_count : here->field_count;
        (void)snprintf(text, size, "column '%s' is %s only", (ours ? here : there)->fields[at].name,
                       ours ? "here" : "there");
        return true;
    }
    return false;
}

/* Of schemas with the same fields. */
static bool same_columns(struct tn_columns a, struct tn_columns b)
{
    return a.count == b.count &&
           (a.count == 0 || memcmp(a.index, b.index, a.count * sizeof *a.index) == 0);
}

/* What `a` says and `b` says otherwise. */
static bool options_differ(const struct tn_schema *a, const struct tn_schema *b, const char *of_a,
                           const char *of_b, char *text, size_t size)
{
    for (uint32_t i = 0; i < a->option_count; i++) {
        const char *other = tn_schema_option(b, a->options[i].key);
        if (!other || strcmp(other, a->options[i].value) != 0) {
            (void)snprintf(text, size, "option %s is '%s' %s and %s%s%s %s", a->options[i].key,
                           a->options[i].value, of_a, other ? "'" : "", other ? other : "not set",
                           other ? "'" : "", of_b);
            return true;
        }
    }
    return false;
}

bool tn_share_schemas_differ(const struct tn_schema *here, const struct tn_schema *there,
                             char *text, size_t size)
{
    if (fields_differ(here, there, text, size)) {
        return true;
    }
    if (!same_columns(here->primary_keys, there->primary_keys) ||
        !same_columns(here->partition_keys, there->partition_keys)) {
        (void)snprintf(text, size, "the keys are others");
        return true;
    }
    if (here->highest_field_id != there->highest_field_id) {
        (void)snprintf(text, size, "the next column would have id %d here and %d there",
                       here->highest_field_id + 1, there->highest_field_id + 1);
        return true;
    }
    return options_differ(here, there, "here", "there", text, size) ||
           options_differ(there, here, "there", "here", text, size);
}

/* ---- one version ---- */

static const char *path_of(const struct tn_share_place *place, int64_t id)
{
    return tn_name_numbered(&place->worker->arena, place->root, TN_DIR_SCHEMA, "schema-", id);
}

static tn_rc decode(const struct tn_share_place *place, struct tn_bytes text, int64_t id,
                    struct tn_schema *schema, struct tn_err *err)
{
    tn_rc rc = tn_schema_decode(text, &place->worker->arena, schema, err);
    if (rc == TN_OK && schema->id != id) {
        rc = tn_err_set(err, TN_CORRUPT, 0, "it says that it is schema %" PRId64, schema->id);
    }
    return rc == TN_OK ? rc : tn_err_in(err, "schema-%" PRId64, id);
}

/* ABSENT: the lake has none of this number. */
static tn_rc read_there(const struct tn_share_place *place, int64_t id, struct tn_bytes *text,
                        struct tn_err *err)
{
    struct tn_target *target = place->target;
    const char *path = path_of(place, id);
    return path ? target->vtable->read(target, path, TN_SCHEMA_SIZE_MAX, &place->worker->arena,
                                       text, err)
                : no_room(err);
}

/* What tarn can't write here it can't send. */
static tn_rc check_writable(const struct tn_share_place *place, const struct tn_schema *schema,
                            struct tn_err *err)
{
    struct tn_arena *arena = &place->worker->arena;
    size_t mark = tn_arena_mark(arena);
    struct tn_options options;
    tn_rc rc = tn_schema_check_create(schema, arena, err);
    if (rc == TN_OK) {
        rc = tn_options_read(schema, TN_OPTIONS_WRITE, arena, &options, err);
    }
    tn_arena_reset(arena, mark);
    return rc == TN_OK ? rc
                       : tn_err_in(err, "%s: schema-%" PRId64 " of %s", place->target->name,
                                   schema->id, place->table);
}

/* As the lake has it; one that is here already must be that. */
static tn_rc keep(const struct tn_share_place *place, int64_t id, struct tn_bytes text,
                  struct tn_err *err)
{
    struct tn_arena *arena = &place->worker->arena;
    struct tn_io *io = place->worker->io;
    const char *dir = tn_name_in(arena, place->root, TN_DIR_SCHEMA, "");
    const char *path = path_of(place, id);
    const char *draft =
        dir ? tn_arena_format(arena, "%s.schema-%" PRId64 ".shared.tmp", dir, id) : NULL;
    struct tn_err ignored;
    if (!path || !draft) {
        return no_room(err);
    }
    tn_rc rc = io->vtable->make_dir(io, dir, err);
    if (rc == TN_OK) {
        (void)io->vtable->unlink(io, draft, &ignored); /* one that a cut left */
        struct tn_publish_spec spec = {.bytes = text, .draft = draft, .final = path, .dir = dir};
        rc = tn_publish(io, &spec, err);
    }
    return rc;
}

/* ---- adoption ---- */

struct largest {
    int64_t number; /* -1: none */
};

static tn_rc note_larger(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    (void)err;
    struct largest *largest = user;
    int64_t number = is_dir ? -1 : tn_name_number(name, "schema-");
    largest->number = number > largest->number ? number : largest->number;
    return TN_OK;
}

/* -1: no table. */
static tn_rc newest_here(const struct tn_share_place *place, int64_t *id, struct tn_err *err)
{
    struct largest largest = {-1};
    struct tn_io *io = place->worker->io;
    const char *dir = tn_name_in(&place->worker->arena, place->root, TN_DIR_SCHEMA, "");
    tn_rc rc = dir ? io->vtable->list(io, dir, note_larger, &largest, err) : no_room(err);
    *id = largest.number;
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc newest_there(const struct tn_share_place *place, int64_t *id, struct tn_err *err)
{
    struct largest largest = {-1};
    struct tn_target *target = place->target;
    const char *dir = tn_name_in(&place->worker->arena, place->root, TN_DIR_SCHEMA, "");
    tn_rc rc = dir ? target->vtable->list(target, dir, note_larger, &largest, err) : no_room(err);
    *id = largest.number;
    if (rc == TN_ABSENT || (rc == TN_OK && largest.number < 0)) {
        return tn_err_set(err, TN_ABSENT, 0, "%s has no table %s", target->name, place->table);
    }
    return rc == TN_OK && largest.number >= VERSIONS_MAX
               ? tn_err_set(err, TN_UNSUPPORTED, 0, "%s: more than %d schemas", target->name,
                            VERSIONS_MAX)
               : rc;
}

/* Whoever keeps a mirror up to date takes it for its own. */
static tn_rc check_no_mirror(const struct tn_share_place *place, struct tn_err *err)
{
    struct tn_owner owner;
    tn_rc rc = tn_owner_read(place->target, place->table, &place->worker->arena, &owner, err);
    if (rc == TN_CORRUPT || (rc == TN_OK && !tn_owner_is_shared(&owner))) {
        return tn_owner_has_mirror(place->target, place->table, err);
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc read_newest(const struct tn_share_place *place, int64_t id,
                         const struct tn_schema **newest, struct tn_err *err)
{
    struct tn_bytes text;
    void *memory;
    tn_rc rc =
        tn_arena_need(&place->worker->arena, sizeof(struct tn_schema), "a schema", &memory, err);
    if (rc == TN_OK) {
        rc = read_there(place, id, &text, err);
    }
    if (rc == TN_OK) {
        rc = decode(place, text, id, memory, err);
    }
    if (rc == TN_OK) {
        rc = check_writable(place, memory, err);
    }
    *newest = memory;
    return rc;
}

static tn_rc keep_all(const struct tn_share_place *place, int64_t last, struct tn_err *err)
{
    struct tn_arena *arena = &place->worker->arena;
    tn_rc rc = TN_OK;
    for (int64_t id = 0; rc == TN_OK && id <= last; id++) {
        size_t mark = tn_arena_mark(arena);
        struct tn_bytes text;
        rc = read_there(place, id, &text, err);
        rc = rc == TN_OK ? keep(place, id, text, err) : tn_err_named(err, rc);
        tn_arena_reset(arena, mark);
    }
    return rc;
}

/* The schemas come last: without one there is no table. */
static tn_rc make(const struct tn_share_place *place, const struct tn_share *share, int64_t last,
                  struct tn_err *err)
{
    struct tn_worker *worker = place->worker;
    struct tn_sent sent = {.schema = -1};
    tn_rc rc = tn_sent_write(worker->io, place->table, &sent, &worker->arena, err);
    if (rc == TN_OK) {
        rc = tn_share_write(worker->io, place->table, share, &worker->arena, err);
    }
    if (rc == TN_OK) {
        rc = tn_consumer_write(worker->io, place->root, TN_SHARE_CONSUMER, 1, &worker->arena, err);
    }
    return rc == TN_OK ? keep_all(place, last, err) : rc;
}

tn_rc tn_share_adopt(const struct tn_share_place *place, const struct tn_share *share,
                     const struct tn_schema **newest, struct tn_err *err)
{
    int64_t here;
    int64_t there = -1;
    tn_rc rc = newest_here(place, &here, err);
    if (rc == TN_OK && here >= 0) {
        rc = tn_err_set(err, TN_EXISTS, 0, "table %s exists", place->table);
    }
    if (rc == TN_OK) {
        rc = newest_there(place, &there, err);
    }
    if (rc == TN_OK) {
        rc = check_no_mirror(place, err);
    }
    if (rc == TN_OK) {
        rc = read_newest(place, there, newest, err);
    }
    return rc == TN_OK ? make(place, share, there, err) : rc;
}

/* ---- are both one? ---- */

static tn_rc refuse(const struct tn_share_place *place, int64_t id, const char *why,
                    struct tn_err *err)
{
    return tn_err_set(
        err, TN_INVALID, 0,
        "%s: schema-%" PRId64
        " is not the lake's: %s; nothing is sent until both tables were altered alike",
        place->target->name, id, why);
}

static tn_rc compare(const struct tn_share_place *place, int64_t id, struct tn_err *err)
{
    struct tn_schema ours;
    struct tn_schema theirs;
    struct tn_bytes here = {NULL, 0};
    struct tn_bytes there = {NULL, 0};
    char why[TEXT_SIZE];
    const char *path = path_of(place, id);
    tn_rc rc = path ? tn_io_read_all(place->worker->io, path, TN_SCHEMA_SIZE_MAX,
                                     &place->worker->arena, &here, err)
                    : no_room(err);
    rc = rc == TN_OK ? read_there(place, id, &there, err) : tn_err_named(err, rc);
    if (rc == TN_ABSENT) {
        return refuse(place, id, "there is none of this number there", err);
    }
    if (rc != TN_OK || tn_bytes_equal(here, there)) {
        return rc;
    }
    rc = decode(place, here, id, &ours, err);
    if (rc == TN_OK) {
        rc = decode(place, there, id, &theirs, err);
    }
    return rc == TN_OK && tn_share_schemas_differ(&ours, &theirs, why, sizeof why)
               ? refuse(place, id, why, err)
               : rc;
}

/* ABSENT: the lake has no such one, so none is to be adopted. */
static tn_rc adopt_next(const struct tn_share_place *place, int64_t id, struct tn_err *err)
{
    struct tn_schema schema;
    struct tn_bytes text = {NULL, 0};
    tn_rc rc = read_there(place, id, &text, err);
    if (rc == TN_OK) {
        rc = decode(place, text, id, &schema, err);
    }
    if (rc == TN_OK) {
        rc = check_writable(place, &schema, err);
    }
    return rc == TN_OK ? tn_err_named(err, keep(place, id, text, err)) : rc;
}

tn_rc tn_share_look_at_schemas(const struct tn_share_place *place, struct tn_sent *sent,
                               struct tn_err *err)
{
    struct tn_arena *arena = &place->worker->arena;
    int64_t here;
    tn_rc rc = newest_here(place, &here, err);
    for (int64_t id = sent->schema + 1; rc == TN_OK && id <= here; id++) {
        size_t mark = tn_arena_mark(arena);
        rc = compare(place, id, err);
        tn_arena_reset(arena, mark);
        sent->schema = rc == TN_OK ? id : sent->schema;
    }
    while (rc == TN_OK && sent->schema < VERSIONS_MAX) {
        size_t mark = tn_arena_mark(arena);
        rc = adopt_next(place, sent->schema + 1, err);
        tn_arena_reset(arena, mark);
        sent->schema += rc == TN_OK;
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}
