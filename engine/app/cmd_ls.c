/* tarn ls: the tables of a warehouse or of a database, or one table's files. */
#include <stdio.h>

#include "app/cells.h"
#include "app/cmd.h"
#include "app/reader.h"
#include "app/suggest.h"
#include "file/names.h"
#include "table/folder.h"

static const struct tn_flag flags[] = {TN_READER_FLAGS};

enum { TRIES_MAX = 20 }; /* for a snapshot that lives long enough to be read */

/* ---- tables ---- */

static const char *const table_columns[] = {"table", "primary_key", "snapshot", "rows",
                                            "last_commit"};

struct tables {
    struct tn_app *app;
    const char *database;
    struct tn_cells cells;
    struct tn_schemas schemas; /* of the table at hand */
    void *window;              /* of the folder at hand; databases have one of their own */
    size_t window_size;
    int code; /* of the worst table */
};

static void put_keys(struct tn_cells *cells, const struct tn_schema *schema)
{
    for (uint32_t i = 0; i < schema->primary_keys.count; i++) {
        tn_buf_format(&cells->text, "%s%s", i ? "," : "",
                      schema->fields[schema->primary_keys.index[i]].name);
    }
    tn_cells_put(cells, schema->primary_keys.count == 0);
}

static void put_snapshot(struct tn_cells *cells, const struct tn_snapshot *snapshot)
{
    const struct tn_type type = {.kind = TN_TYPE_TIMESTAMP_LTZ, .nullable = true, .precision = 3};
    tn_cells_number(cells, snapshot->id);
    if (snapshot->total_record_count.present) {
        tn_cells_number(cells, snapshot->total_record_count.value);
    } else {
        tn_cells_text(cells, NULL);
    }
    if (snapshot->time_ms.present) {
        struct tn_value value = {.as.i64 = snapshot->time_ms.value};
        tn_value_format_text(&type, &value, &cells->text);
    }
    tn_cells_put(cells, !snapshot->time_ms.present);
}

/* ABSENT: the table is empty, so `snapshot` is untouched. A writer may expire the newest snapshot
 * between its id is known and it is read. */
static tn_rc read_newest(struct tn_io *io, const char *root, struct tn_arena *arena,
                         struct tn_snapshot *snapshot, struct tn_err *err)
{
    int64_t id = 0;
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        tn_rc rc = tn_snapshot_latest(io, root, arena, &id, err);
        if (rc != TN_OK) {
            return rc;
        }
        rc = tn_snapshot_read(io, root, id, arena, snapshot, err);
        if (rc != TN_ABSENT) {
            return rc;
        }
    }
    return tn_err_set(err, TN_IO, 0, "snapshot %lld has gone; please try again", (long long)id);
}

static tn_rc put_table(struct tables *t, const char *name, struct tn_err *err)
{
    struct tn_io *io = &t->app->posix.io;
    struct tn_arena *arena = &t->app->workers[TN_LANE_LONG].arena;
    const struct tn_schema *schema;
    struct tn_snapshot snapshot;
    const char *root;
    tn_rc rc = tn_name_table_root(arena, name, &root, err);
    if (rc == TN_OK) {
        tn_schemas_init(&t->schemas, io, root, arena);
        rc = tn_schemas_newest(&t->schemas, &schema, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    rc = read_newest(io, root, arena, &snapshot, err);
    if (rc != TN_OK && rc != TN_ABSENT) {
        return rc;
    }
    tn_cells_text(&t->cells, name);
    put_keys(&t->cells, schema);
    if (rc == TN_OK) {
        put_snapshot(&t->cells, &snapshot);
    } else {
        tn_cells_text(&t->cells, NULL);
        tn_cells_number(&t->cells, 0);
        tn_cells_text(&t->cells, NULL);
    }
    return tn_cells_end(&t->cells, err);
}

/* A table that can't be read is said, and the others are listed. */
static tn_rc show_table(void *user, const char *name, struct tn_err *err)
{
    struct tables *t = user;
    struct tn_arena *arena = &t->app->workers[TN_LANE_LONG].arena;
    size_t mark = tn_arena_mark(arena);
    const char *full = tn_arena_format(arena, "%s.%s", t->database, name);
    tn_rc rc = full ? put_table(t, full, err)
                    : tn_err_set(err, TN_AGAIN, 0, "no memory for a table's name");
    if (rc != TN_OK && rc != TN_ABSENT && full) { /* ABSENT: a folder that is no table */
        (void)tn_err_in(err, "%s", full);
        t->code = tn_say_error(rc, err);
    }
    tn_arena_reset(arena, mark);
    return TN_OK;
}

static tn_rc show_database(void *user, const char *name, struct tn_err *err)
{
    struct tables *t = user;
    struct tn_arena *arena = &t->app->workers[TN_LANE_SHORT].arena;
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_arena_format(arena, "%s.db/", name);
    struct tn_folder folder = {&t->app->posix.io, path, "", "", true};
    t->database = name;
    tn_rc rc = path ? tn_folder_each(&folder, t->window, t->window_size, show_table, t, err)
                    : tn_err_set(err, TN_AGAIN, 0, "no memory for a database's name");
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc ignore_name(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    (void)user;
    (void)name;
    (void)is_dir;
    (void)err;
    return TN_OK;
}

static tn_rc check_database(struct tn_app *app, const char *database, struct tn_err *err)
{
    struct tn_io *io = &app->posix.io;
    const char *path = tn_arena_format(&app->table, "%s.db/", database);
    tn_rc rc = path ? io->vtable->list(io, path, ignore_name, NULL, err)
                    : tn_err_set(err, TN_AGAIN, 0, "no memory for a database's name");
    return rc == TN_ABSENT ? tn_suggest_database(app, database, err) : rc;
}

static tn_rc list_tables(struct tn_app *app, const char *database, int *code, struct tn_err *err)
{
    static struct tables t;
    const struct tn_part *window = tn_budget_part(&app->budget, "memtable");
    t.app = app;
    t.window = window->base;
    t.window_size = (window->size / 2) & ~(size_t)63;
    tn_rc rc = database ? check_database(app, database, err) : TN_OK;
    if (rc == TN_OK) {
        rc = tn_cells_open(&t.cells, table_columns, sizeof table_columns / sizeof table_columns[0],
                           &app->input, err);
    }
    if (rc == TN_OK && database) {
        rc = show_database(&t, database, err);
    } else if (rc == TN_OK) {
        struct tn_folder root = {&app->posix.io, "/", "", ".db", true};
        rc = tn_folder_each(&root, window->base + t.window_size, t.window_size, show_database, &t,
                            err);
    }
    *code = t.code;
    return rc == TN_OK ? tn_cells_close(&t.cells, err) : rc;
}

/* ---- files ---- */

static const char *const file_columns[] = {"partition", "bucket",  "level",   "rows",
                                           "bytes",     "min_key", "max_key", "name"};

struct files {
    struct tn_reader *reader;
    struct tn_plan plan;
    struct tn_key_types keys;
    struct tn_cells cells;
};

static tn_rc put_partition(struct files *f, struct tn_bytes partition, struct tn_err *err)
{
    struct tn_arena *arena = &f->reader->app->table;
    size_t mark = tn_arena_mark(arena);
    const char *name;
    tn_rc rc =
        tn_name_partition(arena, f->reader->schema, &f->reader->options, partition, &name, err);
    if (rc == TN_OK) {
        size_t size = strlen(name);
        tn_buf_append(&f->cells.text, name, size > 0 ? size - 1 : 0); /* without its '/' */
        tn_cells_put(&f->cells, size == 0);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static void put_key(struct files *f, struct tn_bytes key)
{
    bool known = f->keys.count > 0 && tn_view_binary_text(key, f->keys.types, f->keys.count, "[]",
                                                          &f->reader->app->table, &f->cells.text);
    tn_cells_put(&f->cells, !known);
}

static tn_rc put_file(struct files *f, const struct tn_plan_bucket *bucket,
                      const struct tn_level_file *file, struct tn_err *err)
{
    tn_rc rc = put_partition(f, bucket->partition, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_cells_number(&f->cells, bucket->number);
    tn_cells_number(&f->cells, file->level);
    tn_cells_number(&f->cells, file->row_count);
    tn_cells_number(&f->cells, file->size);
    put_key(f, file->min_key);
    put_key(f, file->max_key);
    tn_cells_text(&f->cells, file->name);
    return tn_cells_end(&f->cells, err);
}

/* Level by level; within one by key. */
static tn_rc put_bucket(struct files *f, const struct tn_plan_bucket *bucket, struct tn_err *err)
{
    int64_t level = INT64_MIN;
    if (f->keys.count > 0) {
        tn_files_sort(&f->keys, bucket->files, bucket->file_count);
    }
    for (;;) {
        int64_t next = INT64_MAX;
        for (uint32_t i = 0; i < bucket->file_count; i++) {
            int64_t found = bucket->files[i]->level;
            next = found > level && found < next ? found : next;
        }
        if (next == INT64_MAX) {
            return TN_OK;
        }
        level = next;
        for (uint32_t i = 0; i < bucket->file_count; i++) {
            if (bucket->files[i]->level == level) {
                tn_rc rc = put_file(f, bucket, bucket->files[i], err);
                if (rc != TN_OK) {
                    return rc;
                }
            }
        }
    }
}

static tn_rc put_buckets(struct files *f, struct tn_err *err)
{
    tn_rc rc = tn_reader_plan(f->reader, &f->plan, &f->keys, err);
    while (rc == TN_OK) {
        struct tn_plan_bucket *bucket;
        rc = tn_plan_next(&f->plan, &bucket, err);
        if (rc == TN_OK) {
            rc = put_bucket(f, bucket, err);
        }
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc list_once(struct tn_reader *reader, struct tn_attempt *attempt, struct tn_err *err)
{
    static struct files f;
    f.reader = reader;
    tn_rc rc = tn_cells_open(&f.cells, file_columns, sizeof file_columns / sizeof file_columns[0],
                             &reader->app->input, err);
    if (rc == TN_OK && !reader->empty) {
        rc = put_buckets(&f, err);
    }
    attempt->began = f.cells.output.rows > 0;
    return rc == TN_OK ? tn_cells_close(&f.cells, err) : tn_err_in(err, "%s", reader->name);
}

static tn_rc list_files(struct tn_app *app, const char *table, struct tn_err *err)
{
    static struct tn_reader reader;
    struct tn_attempt attempt = {.run = list_once};
    return tn_reader_try(&reader, app, table, &attempt, err);
}

static int run(const struct tn_text_list *words)
{
    if (words->count > 1) {
        return tn_say_usage(&tn_cmd_ls);
    }
    static struct tn_app app;
    struct tn_err err = {0};
    int code = 0;
    tn_rc rc = tn_boot(&app, false, &err);
    if (rc != TN_OK) {
        return tn_say_error(rc, &err);
    }
    const char *name = words->count ? words->items[0] : NULL;
    rc = name && strchr(name, '.') ? list_files(&app, name, &err)
                                   : list_tables(&app, name, &code, &err);
    code = rc == TN_OK ? code : tn_say_error(rc, &err);
    tn_shut(&app);
    return code;
}

const struct tn_command tn_cmd_ls = {
    "ls", "ls [D[.T]]", "lists tables, or one table's files", flags, sizeof flags / sizeof flags[0],
    run,
};
