/* tarn show: what a table consists of, as the rows of Paimon's system tables. */
#include "app/cells.h"
#include "app/cmd.h"
#include "app/reader.h"
#include "table/inspect.h"

static const struct tn_flag flags[] = {TN_READER_FLAGS};

static tn_rc unknown(const char *what, struct tn_err *err)
{
    char text[256];
    struct tn_buf names;
    tn_buf_init(&names, text, sizeof text - 1);
    for (uint32_t i = 0; i < tn_view_count; i++) {
        tn_buf_format(&names, "%s%s", i ? ", " : "", tn_view_names[i]);
    }
    text[names.size] = 0;
    const char *near = tn_nearest_name(tn_bytes_of(what), tn_view_names, tn_view_count);
    return near ? tn_err_set(err, TN_INVALID, 0, "show: '%s' is unknown; did you mean '%s'?", what,
                             near)
                : tn_err_set(err, TN_INVALID, 0, "show: '%s' is unknown; there are %s", what, text);
}

struct wanted {
    const char *what;
    const struct tn_view *view;
};

static tn_rc show(struct tn_reader *reader, struct tn_attempt *attempt, struct tn_err *err)
{
    static struct tn_cells cells;
    struct tn_app *app = reader->app;
    const struct wanted *wanted = attempt->user;
    const struct tn_part *window = tn_budget_part(&app->budget, "memtable");
    struct tn_inspect inspect = {.root = reader->root,
                                 .snapshot = reader->empty ? NULL : &reader->snapshot,
                                 .schema = reader->newest,
                                 .options = &reader->options,
                                 .schemas = &reader->schemas,
                                 .worker = &app->workers[TN_LANE_LONG],
                                 .arena = &app->table,
                                 .window = window->base,
                                 .window_size = window->size};
    uint32_t count;
    const char *const *names = tn_view_columns(wanted->view, &count);
    tn_rc rc = tn_cells_open(&cells, names, count, &app->input, err);
    if (rc == TN_OK) {
        rc = tn_view_each(wanted->view, &inspect, tn_cells_view_row, &cells, err);
    }
    attempt->began = cells.output.rows > 0;
    if (rc != TN_OK) {
        return tn_err_in(err, "%s: %s", reader->name, wanted->what);
    }
    return tn_cells_close(&cells, err);
}

static tn_rc show_view(struct tn_app *app, const struct tn_text_list *words, struct tn_err *err)
{
    static struct tn_reader reader;
    struct wanted wanted = {words->items[1], tn_view_find(words->items[1])};
    struct tn_attempt attempt = {.run = show, .user = &wanted};
    return wanted.view ? tn_reader_try(&reader, app, words->items[0], &attempt, err)
                       : unknown(wanted.what, err);
}

static int run(const struct tn_text_list *words)
{
    if (words->count != 2) {
        return tn_say_usage(&tn_cmd_show);
    }
    return tn_run_verb(show_view, words);
}

const struct tn_command tn_cmd_show = {
    "show",
    "show D.T WHAT",
    "prints schema, options, snapshots, schemas, manifests, files, partitions, buckets, tags, "
    "branches or consumers",
    flags,
    sizeof flags / sizeof flags[0],
    run,
};
