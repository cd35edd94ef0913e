/* tarn get: one row by its key. */
#include "app/cmd.h"
#include "app/key.h"
#include "app/rows.h"
#include "read/lookup.h"

static struct {
    const char *columns;
} o;

static const struct tn_flag flags[] = {
    TN_READER_FLAGS,
    {"columns", 0, TN_FLAG_TEXT, &o.columns, "A,B", "only these columns"},
};

static tn_rc print(struct tn_app *app, const struct tn_lookup *lookup,
                   const struct tn_scan_spec *spec, struct tn_err *err)
{
    static struct tn_row_printer printer;
    tn_rc rc = tn_row_printer_open(&printer, &lookup->projection, spec, false, &app->input, err);
    if (rc == TN_OK) {
        rc = tn_row_printer_put(&printer, &lookup->kv, err);
    }
    return rc == TN_OK ? tn_row_printer_close(&printer, err) : rc;
}

struct wanted {
    const struct tn_text_list *words;
    bool found;
};

static tn_rc find(struct tn_reader *reader, const struct tn_scan_spec *spec,
                  const struct tn_value *key, struct tn_lookup *lookup, struct tn_err *err)
{
    struct tn_app *app = reader->app;
    const struct tn_part *window = tn_budget_part(&app->budget, "memtable");
    return tn_lookup(spec, key, window->base, window->size, &app->table,
                     &app->workers[TN_LANE_LONG], lookup, err);
}

/* `found` false: there is no such row, which is no error. */
static tn_rc get(struct tn_reader *reader, struct tn_attempt *attempt, struct tn_err *err)
{
    static struct tn_lookup lookup;
    struct wanted *wanted = attempt->user;
    const struct tn_value *key = NULL;
    tn_rc rc = tn_key_parse(reader, wanted->words, &key, err);
    struct tn_scan_spec spec = {.root = reader->root,
                                .snapshot = reader->empty ? NULL : &reader->snapshot,
                                .schema = reader->schema,
                                .options = &reader->options,
                                .schemas = &reader->schemas};
    if (rc == TN_OK && o.columns) {
        rc = tn_reader_fields(reader, o.columns, &spec.fields, &spec.field_count, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    rc = find(reader, &spec, key, &lookup, err);
    wanted->found = rc == TN_OK;
    attempt->began = wanted->found;
    if (rc == TN_ABSENT) {
        return TN_OK;
    }
    return rc == TN_OK ? print(reader->app, &lookup, &spec, err) : rc;
}

static int run(const struct tn_text_list *words)
{
    if (words->count < 2) {
        return tn_say_usage(&tn_cmd_get);
    }
    static struct tn_app app;
    static struct tn_reader reader;
    struct wanted wanted = {.words = words};
    struct tn_attempt attempt = {.run = get, .user = &wanted};
    struct tn_err err = {0};
    tn_rc rc = tn_boot(&app, false, &err);
    if (rc != TN_OK) {
        return tn_say_error(rc, &err);
    }
    rc = tn_reader_try(&reader, &app, words->items[0], &attempt, &err);
    int code = rc != TN_OK ? tn_say_error(rc, &err) : wanted.found ? 0 : 1;
    tn_shut(&app);
    return code;
}

const struct tn_command tn_cmd_get = {
    "get", "get D.T KEY...", "prints one row by its key", flags, sizeof flags / sizeof flags[0],
    run,
};
