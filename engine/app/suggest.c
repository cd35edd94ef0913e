#include "app/suggest.h"

#include "schema/types.h"
#include "table/folder.h"

enum { NAMES_MAX = 128, WINDOW_SIZE = 64 * 1024 };

struct names {
    struct tn_arena *arena;
    const char *items[NAMES_MAX];
    uint32_t count;
};

static tn_rc note(void *user, const char *name, struct tn_err *err)
{
    (void)err;
    struct names *names = user;
    const char *kept =
        names->count < NAMES_MAX ? tn_arena_text(names->arena, tn_bytes_of(name)) : NULL;
    if (kept) {
        names->items[names->count++] = kept;
    }
    return TN_OK;
}

static void list(struct tn_app *app, const char *path, const char *suffix, struct names *names)
{
    struct tn_err ignored;
    void *window = tn_arena_take_raw(&app->input, WINDOW_SIZE);
    struct tn_folder folder = {&app->posix.io, path, "", suffix, true};
    if (!window || !path ||
        tn_folder_each(&folder, window, WINDOW_SIZE, note, names, &ignored) != TN_OK) {
        names->count = 0; /* no suggestion, then */
    }
}

/* `before` stands before the near name: a table's database. */
static tn_rc say(const char *name, const char *what, struct tn_bytes before, const char *near,
                 struct tn_err *err)
{
    return near
               ? tn_err_set(err, TN_ABSENT, 0, "%s: %s; did you mean '%.*s%s'?", name, what,
                            (int)before.size, (const char *)before.data, near)
               : tn_err_set(err, TN_ABSENT, 0, "%s: %s; `tarn ls` lists what there is", name, what);
}

tn_rc tn_suggest_database(struct tn_app *app, const char *database, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&app->input);
    struct names names = {.arena = &app->input};
    list(app, "/", ".db", &names);
    const char *near = tn_nearest_name(tn_bytes_of(database), names.items, names.count);
    tn_rc rc = say(database, "there is no such database", (struct tn_bytes){0}, near, err);
    tn_arena_reset(&app->input, mark);
    return rc;
}

tn_rc tn_suggest_table(struct tn_app *app, const char *table, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&app->input);
    struct names names = {.arena = &app->input};
    size_t size = strcspn(table, ".");
    struct tn_bytes database = {(const unsigned char *)table, size};
    const char *path = tn_arena_format(&app->input, "%.*s.db/", (int)size, table);
    list(app, path, "", &names);
    bool known = names.count > 0;
    if (!known) {
        list(app, "/", ".db", &names);
    }
    struct tn_bytes word = known ? tn_bytes_of(table + size + (table[size] == '.')) : database;
    const char *near = tn_nearest_name(word, names.items, names.count);
    struct tn_bytes dot = {(const unsigned char *)table, size + 1};
    tn_rc rc = known ? say(table, "there is no such table", dot, near, err)
                     : say(table, "there is no such database", (struct tn_bytes){0}, near, err);
    tn_arena_reset(&app->input, mark);
    return rc;
}
