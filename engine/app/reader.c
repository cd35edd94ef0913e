#include "app/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/suggest.h"
#include "file/names.h"

enum {
    NAMES_MAX = 128, /* columns that are looked at for the one that was meant */
    TRIES_MAX = 20   /* while a writer expires what it just made */
};

struct tn_reader_at tn_reader_at;

static tn_rc find_tag(struct tn_reader *r, const char *tag, struct tn_err *err)
{
    const char *path = tn_arena_format(&r->app->table, "%s/%stag-%s", r->root, TN_DIR_TAG, tag);
    if (!path || strchr(tag, '/')) {
        return tn_err_set(err, TN_INVALID, 0, "'%s' is no tag's name", tag);
    }
    tn_rc rc = tn_snapshot_read_path(&r->app->posix.io, path, &r->app->table, &r->snapshot, err);
    return rc == TN_ABSENT ? tn_err_set(err, TN_INVALID, 0, "there is no tag '%s'", tag) : rc;
}

tn_rc tn_reader_time(const char *flag, const char *text, int64_t *ms, struct tn_err *err)
{
    struct tn_type type = {.kind = TN_TYPE_TIMESTAMP_LTZ, .nullable = true, .precision = 9};
    unsigned char scratch[64];
    char whole[32];
    struct tn_buf buf;
    tn_buf_init(&buf, scratch, sizeof scratch);
    struct tn_value value;
    bool day = strlen(text) == sizeof "2026-01-31" - 1 && text[4] == '-';
    if (day) { /* its first moment */
        (void)snprintf(whole, sizeof whole, "%s 00:00:00", text);
    }
    tn_rc rc =
        tn_value_parse(&type, TN_EPOCH_MS, tn_bytes_of(day ? whole : text), &buf, &value, err);
    if (rc != TN_OK) {
        return tn_err_in(err, "%s", flag);
    }
    *ms = value.as.i64;
    return TN_OK;
}

static tn_rc say_earliest(struct tn_reader *r, const char *text, int64_t first, struct tn_err *err)
{
    const struct tn_type type = {.kind = TN_TYPE_TIMESTAMP_LTZ, .nullable = true, .precision = 3};
    struct tn_snapshot snapshot;
    unsigned char time[64];
    struct tn_buf buf;
    tn_buf_init(&buf, time, sizeof time);
    tn_rc rc = tn_snapshot_read(&r->app->posix.io, r->root, first, &r->app->table, &snapshot, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_value value = {.as.i64 = snapshot.time_ms.value};
    tn_value_format_text(&type, &value, &buf);
    return tn_err_set(err, TN_INVALID, 0,
                      "there is no snapshot as old as %s; the earliest is of %.*s", text,
                      (int)buf.size, (const char *)time);
}

static tn_rc no_snapshot_yet(struct tn_err *err)
{
    return tn_err_set(err, TN_INVALID, 0, "there is no snapshot yet");
}

/* Snapshot times grow with ids, so this bisects. */
static tn_rc find_as_of(struct tn_reader *r, const char *text, struct tn_err *err)
{
    int64_t ms = 0;
    tn_rc rc = tn_reader_time("--as-of", text, &ms, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_arena *arena = &r->app->table;
    struct tn_io *io = &r->app->posix.io;
    int64_t low;
    int64_t high;
    rc = tn_snapshot_earliest(io, r->root, arena, &low, err);
    if (rc == TN_OK) {
        rc = tn_snapshot_latest(io, r->root, arena, &high, err);
    }
    if (rc == TN_ABSENT) {
        return no_snapshot_yet(err);
    }
    int64_t first = low;
    int64_t found = 0;
    while (rc == TN_OK && low <= high) {
        size_t mark = tn_arena_mark(arena);
        int64_t middle = low + (high - low) / 2;
        struct tn_snapshot snapshot;
        rc = tn_snapshot_read(io, r->root, middle, arena, &snapshot, err);
        if (rc == TN_OK && snapshot.time_ms.value <= ms) {
            found = middle;
            low = middle + 1;
        } else {
            high = middle - 1;
        }
        tn_arena_reset(arena, mark);
    }
    if (rc == TN_OK && found == 0) {
        return say_earliest(r, text, first, err);
    }
    return rc == TN_OK ? tn_snapshot_read(io, r->root, found, arena, &r->snapshot, err) : rc;
}

/* A writer may expire the newest snapshot between its id is known and it is read. */
static tn_rc find_newest(struct tn_reader *r, struct tn_err *err)
{
    struct tn_io *io = &r->app->posix.io;
    struct tn_arena *arena = &r->app->table;
    tn_rc rc = TN_ABSENT;
    for (int tries = 0; rc == TN_ABSENT && tries < TRIES_MAX; tries++) {
        int64_t id;
        rc = tn_snapshot_latest(io, r->root, arena, &id, err);
        if (rc == TN_ABSENT) {
            r->empty = true;
            return TN_OK;
        }
        rc = rc == TN_OK ? tn_snapshot_read(io, r->root, id, arena, &r->snapshot, err) : rc;
    }
    return rc;
}

static tn_rc say_which(struct tn_reader *r, int64_t id, struct tn_err *err)
{
    struct tn_io *io = &r->app->posix.io;
    int64_t first;
    int64_t last;
    tn_rc rc = tn_snapshot_earliest(io, r->root, &r->app->table, &first, err);
    rc = rc == TN_OK ? tn_snapshot_latest(io, r->root, &r->app->table, &last, err) : rc;
    if (rc == TN_ABSENT) {
        return tn_err_set(err, TN_INVALID, 0, "there is no snapshot %lld; there is none yet",
                          (long long)id);
    }
    return rc == TN_OK
               ? tn_err_set(err, TN_INVALID, 0,
                            "there is no snapshot %" PRId64 "; there are %" PRId64 " to %" PRId64,
                            id, first, last)
               : rc;
}

static tn_rc find_snapshot(struct tn_reader *r, struct tn_err *err)
{
    const struct tn_reader_at *at = &tn_reader_at;
    if ((at->snapshot != 0) + (at->tag != NULL) + (at->as_of != NULL) > 1) {
        return tn_err_set(err, TN_INVALID, 0, "only one of --snapshot, --tag and --as-of");
    }
    if (at->tag) {
        return find_tag(r, at->tag, err);
    }
    if (at->as_of) {
        return find_as_of(r, at->as_of, err);
    }
    if (at->snapshot == 0) {
        return find_newest(r, err);
    }
    tn_rc rc = tn_snapshot_read(&r->app->posix.io, r->root, at->snapshot, &r->app->table,
                                &r->snapshot, err);
    return rc == TN_ABSENT ? say_which(r, at->snapshot, err) : rc;
}

static bool travels(void)
{
    return tn_reader_at.snapshot != 0 || tn_reader_at.tag || tn_reader_at.as_of;
}

static tn_rc open_parts(struct tn_reader *r, struct tn_err *err)
{
    struct tn_arena *arena = &r->app->table;
    tn_rc rc = tn_name_table_root(arena, r->name, &r->root, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_schemas_init(&r->schemas, &r->app->posix.io, r->root, arena);
    rc = tn_schemas_newest(&r->schemas, &r->newest, err);
    if (rc == TN_ABSENT) {
        return tn_err_set(err, TN_ABSENT, 0, "there is no such table");
    }
    if (rc == TN_OK) {
        rc = tn_options_read(r->newest, TN_OPTIONS_READ, arena, &r->options, err);
    }
    r->schema = r->newest;
    if (rc == TN_OK) {
        rc = find_snapshot(r, err);
    }
    if (rc == TN_OK && !r->empty && travels()) {
        rc = tn_schemas_load(&r->schemas, r->snapshot.schema_id, &r->schema, err);
    }
    return rc;
}

tn_rc tn_reader_open(struct tn_reader *reader, struct tn_app *app, const char *table,
                     struct tn_err *err)
{
    memset(reader, 0, sizeof *reader); /* too large for a literal on the stack */
    reader->app = app;
    reader->name = table;
    tn_rc rc = open_parts(reader, err);
    if (rc == TN_ABSENT && !reader->newest) {
        return tn_suggest_table(app, table, err);
    }
    return rc == TN_OK ? rc : tn_err_in(err, "%s", table);
}

/* Files go before their snapshot does, so one that has a successor may already be on its way; one
 * that was asked for by its number has to be gone. */
bool tn_reader_expired(const struct tn_reader *reader, const struct tn_err *failure)
{
    if (failure->os != ENOENT || !reader->newest || reader->empty || tn_reader_at.tag) {
        return false;
    }
    struct tn_io *io = &reader->app->posix.io;
    struct tn_arena *arena = &reader->app->table;
    size_t mark = tn_arena_mark(arena);
    struct tn_err err = {0};
    struct tn_snapshot snapshot;
    int64_t latest = reader->snapshot.id;
    tn_rc rc = tn_snapshot_read(io, reader->root, reader->snapshot.id, arena, &snapshot, &err);
    if (rc == TN_OK && !travels()) {
        rc = tn_snapshot_latest(io, reader->root, arena, &latest, &err);
    }
    tn_arena_reset(arena, mark);
    return rc == TN_ABSENT || latest != reader->snapshot.id;
}

static tn_rc try_once(struct tn_reader *reader, struct tn_app *app, const char *table,
                      struct tn_attempt *attempt, struct tn_err *err)
{
    tn_rc rc = tn_reader_open(reader, app, table, err);
    return rc == TN_OK ? attempt->run(reader, attempt, err) : rc;
}

tn_rc tn_reader_try(struct tn_reader *reader, struct tn_app *app, const char *table,
                    struct tn_attempt *attempt, struct tn_err *err)
{
    struct tn_arena *arenas[] = {&app->table, &app->input, &app->workers[TN_LANE_LONG].arena,
                                 &app->workers[TN_LANE_SHORT].arena};
    size_t marks[sizeof arenas / sizeof arenas[0]];
    for (size_t i = 0; i < sizeof arenas / sizeof arenas[0]; i++) {
        marks[i] = tn_arena_mark(arenas[i]);
    }
    tn_rc rc = try_once(reader, app, table, attempt, err);
    for (int tries = 1; rc != TN_OK && tn_reader_expired(reader, err); tries++) {
        if (attempt->began || tries == TRIES_MAX) {
            return tn_err_set(err, TN_IO, 0, "%s: snapshot %" PRId64 " %s", table,
                              reader->snapshot.id, "expired while it was read; please try again");
        }
        for (size_t i = 0; i < sizeof arenas / sizeof arenas[0]; i++) {
            tn_arena_reset(arenas[i], marks[i]);
        }
        *err = (struct tn_err){0};
        rc = try_once(reader, app, table, attempt, err);
    }
    return rc;
}

tn_rc tn_reader_plan(struct tn_reader *reader, struct tn_plan *plan, struct tn_key_types *keys,
                     struct tn_err *err)
{
    struct tn_app *app = reader->app;
    const struct tn_part *window = tn_budget_part(&app->budget, "memtable");
    struct tn_plan_spec spec = {.root = reader->root,
                                .snapshot = &reader->snapshot,
                                .schema = reader->schema,
                                .options = &reader->options,
                                .keys = keys};
    tn_rc rc = tn_key_types_init(keys, reader->schema, &reader->app->table, err);
    return rc == TN_OK ? tn_plan_open(plan, &spec, window->base, window->size, &app->table,
                                      &app->workers[TN_LANE_LONG], err)
                       : rc;
}

static tn_rc unknown_column(const struct tn_reader *reader, struct tn_bytes name,
                            struct tn_err *err)
{
    const char *names[NAMES_MAX];
    uint32_t count =
        reader->schema->field_count < NAMES_MAX ? reader->schema->field_count : NAMES_MAX;
    for (uint32_t i = 0; i < count; i++) {
        names[i] = reader->schema->fields[i].name;
    }
    const char *near = tn_nearest_name(name, names, count);
    return tn_err_set(err, TN_INVALID, 0, "column '%.*s' is unknown%s%s%s", (int)name.size,
                      (const char *)name.data, near ? "; did you mean '" : "", near ? near : "",
                      near ? "'?" : "");
}

tn_rc tn_reader_fields(const struct tn_reader *reader, const char *names, const uint32_t **fields,
                       uint32_t *count, struct tn_err *err)
{
    uint32_t *index =
        tn_arena_take(&reader->app->table, (strlen(names) / 2 + 2) * sizeof(uint32_t));
    if (!index) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for --columns");
    }
    *count = 0;
    while (*names) {
        struct tn_bytes name = {(const unsigned char *)names, strcspn(names, ",")};
        int32_t field = tn_schema_find(reader->schema, name);
        if (field < 0) {
            return unknown_column(reader, name, err);
        }
        index[(*count)++] = (uint32_t)field;
        names += name.size;
        names += *names == ',';
    }
    *fields = index;
    return TN_OK;
}

tn_rc tn_reader_scan_spec(struct tn_reader *reader, const char *columns, const char *where,
                          struct tn_scan_spec *spec, struct tn_err *err)
{
    *spec = (struct tn_scan_spec){.root = reader->root,
                                  .snapshot = &reader->snapshot,
                                  .schema = reader->schema,
                                  .options = &reader->options,
                                  .schemas = &reader->schemas};
    tn_rc rc = TN_OK;
    if (columns) {
        rc = tn_reader_fields(reader, columns, &spec->fields, &spec->field_count, err);
    }
    struct tn_predicate *predicate = NULL;
    if (rc == TN_OK && where) {
        rc = tn_predicate_parse(where, reader->schema, &reader->app->table, &predicate, err);
    }
    spec->predicate = predicate;
    return rc;
}
