/* tarn cat: the merged rows of a snapshot. */
#include <inttypes.h>
#include <stdio.h>

#include "app/cmd.h"
#include "app/increment.h"
#include "app/reader.h"
#include "app/rows.h"

static struct {
    const char *columns;
    const char *where;
    const char *incremental;
    const char *incremental_mode;
    int64_t limit;
    bool last;
    bool kind;
} o = {.limit = -1};

enum { LAST_DEFAULT = 10 }; /* rows of --last without --limit */

static const struct tn_flag flags[] = {
    TN_READER_FLAGS,
    {"columns", 0, TN_FLAG_TEXT, &o.columns, "A,B", "only these columns"},
    {"where", 0, TN_FLAG_TEXT, &o.where, "EXPR", "only rows like 'temp > 80 and unit = \"C\"'"},
    {"limit", 0, TN_FLAG_I64, &o.limit, "N", "at most N rows"},
    {"last", 0, TN_FLAG_SET, &o.last, NULL,
     "the last N rows instead of the first (10 without --limit)"},
    {"kind", 0, TN_FLAG_SET, &o.kind, NULL, "with each row's kind"},
    {"incremental", 0, TN_FLAG_TEXT, &o.incremental, "A,B",
     "what changed behind snapshot A, up to B; or from tag A to tag B"},
    {"incremental-mode", 0, TN_FLAG_TEXT, &o.incremental_mode, "MODE",
     "delta: rows as they came; changelog: as the changelog tells; diff: rows that are new or "
     "other (with --kind also those that are gone); by default what the table has, diff for tags"},
};

struct printer {
    struct tn_row_printer rows;
    int64_t skip; /* rows that are passed over first */
    bool began;   /* something may have been printed */
    int64_t left; /* rows; -1: no limit */
};

static tn_rc open_printer(struct printer *p, struct tn_app *app,
                          const struct tn_projection *projection, const struct tn_scan_spec *spec,
                          struct tn_err *err)
{
    p->began = true;
    p->left = o.limit;
    return tn_row_printer_open(&p->rows, projection, spec, o.kind, &app->input, err);
}

static tn_rc print_row(struct printer *p, const struct tn_kv *kv, struct tn_err *err)
{
    if (p->skip > 0) {
        p->skip--;
        return TN_OK;
    }
    p->left -= p->left > 0;
    return tn_row_printer_put(&p->rows, kv, err);
}

static tn_rc open_scan(struct tn_reader *reader, const struct tn_scan_spec *spec,
                       struct tn_scan *scan, struct tn_err *err)
{
    struct tn_app *app = reader->app;
    const struct tn_part *window = tn_budget_part(&app->budget, "memtable");
    return tn_scan_open(scan, spec, window->base, window->size, &app->table,
                        &app->workers[TN_LANE_LONG], err);
}

/* --last reads twice: once to count, so that no row has to be kept. */
static tn_rc count_rows(struct tn_reader *reader, const struct tn_scan_spec *spec, int64_t *count,
                        struct tn_err *err)
{
    static struct tn_scan scan;
    tn_rc rc = open_scan(reader, spec, &scan, err);
    if (rc != TN_OK) {
        return rc;
    }
    *count = 0;
    while (rc == TN_OK) {
        struct tn_kv kv;
        rc = tn_scan_next(&scan, &kv, err);
        *count += rc == TN_OK;
    }
    tn_scan_close(&scan);
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* From the row that was read first, so that a plan or file that fails has printed nothing. */
static tn_rc print_rows(struct tn_scan *scan, struct printer *printer, struct tn_kv *kv,
                        struct tn_err *err)
{
    tn_rc rc = TN_OK;
    while (rc == TN_OK && printer->left != 0) {
        rc = print_row(printer, kv, err);
        if (rc == TN_OK && printer->left != 0) {
            rc = tn_scan_next(scan, kv, err);
        }
    }
    return rc;
}

static tn_rc print_scan(struct tn_reader *reader, const struct tn_scan_spec *spec,
                        struct printer *printer, struct tn_err *err)
{
    static struct tn_scan scan;
    int64_t count = 0;
    tn_rc rc = o.last ? count_rows(reader, spec, &count, err) : TN_OK;
    if (rc == TN_OK) {
        rc = open_scan(reader, spec, &scan, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_kv kv;
    tn_rc first = tn_scan_next(&scan, &kv, err);
    rc = first == TN_ABSENT ? TN_OK : first;
    if (rc == TN_OK) {
        rc = open_printer(printer, reader->app, &scan.projection, spec, err);
        printer->skip = o.last && count > o.limit ? count - o.limit : 0;
    }
    if (rc == TN_OK && first == TN_OK) {
        rc = print_rows(&scan, printer, &kv, err);
    }
    tn_scan_close(&scan);
    return rc == TN_OK || rc == TN_ABSENT ? tn_row_printer_close(&printer->rows, err) : rc;
}

static tn_rc print_incremental(struct tn_reader *reader, const struct tn_scan_spec *spec,
                               struct printer *printer, struct tn_err *err)
{
    static struct tn_increment increment;
    struct tn_kv kv;
    tn_rc rc =
        tn_increment_open(&increment, reader, spec, o.incremental, o.incremental_mode, o.kind, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = open_printer(printer, reader->app, increment.projection, spec, err);
    while (rc == TN_OK && printer->left != 0) {
        rc = tn_increment_next(&increment, &kv, err);
        rc = rc == TN_OK ? print_row(printer, &kv, err) : rc;
    }
    tn_increment_close(&increment);
    return rc == TN_OK || rc == TN_ABSENT ? tn_row_printer_close(&printer->rows, err) : rc;
}

static tn_rc print_nothing(struct tn_reader *reader, const struct tn_scan_spec *spec,
                           struct printer *printer, struct tn_err *err)
{
    static struct tn_projection projection;
    tn_rc rc = tn_projection_init(&projection, spec, &reader->app->table, err);
    if (rc == TN_OK) {
        rc = open_printer(printer, reader->app, &projection, spec, err);
    }
    return rc == TN_OK ? tn_row_printer_close(&printer->rows, err) : rc;
}

static tn_rc cat(struct tn_reader *reader, struct printer *printer, struct tn_err *err)
{
    struct tn_scan_spec spec;
    tn_rc rc = tn_reader_scan_spec(reader, o.columns, o.where, &spec, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (reader->empty) {
        return print_nothing(reader, &spec, printer, err);
    }
    return o.incremental ? print_incremental(reader, &spec, printer, err)
                         : print_scan(reader, &spec, printer, err);
}

static tn_rc cat_once(struct tn_reader *reader, struct tn_attempt *attempt, struct tn_err *err)
{
    static struct printer printer;
    printer.began = o.incremental != NULL;
    tn_rc rc = cat(reader, &printer, err);
    attempt->began = printer.began;
    return rc;
}

static tn_rc cat_table(struct tn_app *app, const struct tn_text_list *words, struct tn_err *err)
{
    static struct tn_reader reader;
    struct tn_attempt attempt = {.run = cat_once};
    return tn_reader_try(&reader, app, words->items[0], &attempt, err);
}

static int run(const struct tn_text_list *words)
{
    if (words->count != 1) {
        return tn_say_usage(&tn_cmd_cat);
    }
    if (o.last) {
        o.limit = o.limit < 0 ? LAST_DEFAULT : o.limit;
        if (o.incremental) {
            (void)fputs("tarn: --last and --incremental don't go together\n", stderr);
            return 2;
        }
    }
    if (o.incremental_mode && !o.incremental) {
        (void)fputs("tarn: --incremental-mode needs --incremental A,B\n", stderr);
        return 2;
    }
    return tn_run_verb(cat_table, words);
}

const struct tn_command tn_cmd_cat = {
    "cat", "cat D.T", "prints the merged rows", flags, sizeof flags / sizeof flags[0], run,
};
