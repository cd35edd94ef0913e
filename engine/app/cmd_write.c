/* tarn write: records from files or standard input into a table. */
#include "app/cmd.h"
#include "app/handover.h"
#include "app/writing.h"

static struct {
    const char *input;
    const char *commit_every;
    const char *dead_letters;
    const char *unknown_columns;
    const char *user;
    const char *from;
    struct tn_text_list times;
    int64_t commit_id;
    bool stats;
} o = {.times = TN_TEXT_LIST(TN_SCHEMA_FIELDS_MAX), .commit_id = -1};

static const struct tn_flag flags[] = {
    {"input", 0, TN_FLAG_TEXT, &o.input, "FORM",
     "json (default), changes, csv, debezium-json, canal-json, "
     "maxwell-json, line-protocol"},
    {"commit-every", 0, TN_FLAG_TEXT, &o.commit_every, "N|TIME",
     "commit each N rows, or each TIME (10s); default: at the end"},
    {"dead-letters", 0, TN_FLAG_TEXT, &o.dead_letters, "FILE|D.T",
     "records and rows that can't be taken; else on stderr"},
    {"unknown-columns", 0, TN_FLAG_TEXT, &o.unknown_columns, "drop|fail",
     "what to do with them; default: fail"},
    {"time", 0, TN_FLAG_LIST, &o.times, "COLUMN=UNIT",
     "bare numbers in this time column are epoch s, ms, us or ns"},
    {"user", 0, TN_FLAG_TEXT, &o.user, "NAME",
     "commit user; with --commit-id a repeat is harmless"},
    {"commit-id", 0, TN_FLAG_I64, &o.commit_id, "N", "identifier of the one commit"},
    {"from", 0, TN_FLAG_TEXT, &o.from, "OFFSET",
     "byte of FILE to begin at, whatever was committed before"},
    {"stats", 0, TN_FLAG_SET, &o.stats, NULL, "say at the end what was written and read"},
};

static tn_rc write_all(struct tn_writing *w, const char *const *paths, uint32_t count,
                       struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < count; i++) {
        rc = tn_copy_source(&w->copy, &w->feed, paths[i], err);
    }
    return rc == TN_OK ? tn_table_finish(w->table, w->feed.rows, err) : rc;
}

/* Where the daemon holds the table, its rows go there. */
static int write_rows(const struct tn_writing_spec *spec, const char *const *paths, uint32_t count)
{
    static struct tn_writing w;
    static struct tn_offering offering;
    struct tn_err err = {0};
    int code = 0;
    tn_rc rc = tn_offering_open(&offering, spec->app, spec->table_name, &err);
    if (rc != TN_ABSENT) {
        rc = rc == TN_OK ? tn_handover(&offering, spec, paths, count, &code, &err) : rc;
        return rc == TN_OK ? code : tn_say_error(rc, &err);
    }
    rc = tn_writing_open(&w, spec, &err);
    if (rc == TN_OK) {
        rc = write_all(&w, paths, count, &err);
    }
    return tn_writing_close(&w, rc, &err);
}

static int run(const struct tn_text_list *words)
{
    if (words->count < 1) {
        return tn_say_usage(&tn_cmd_write);
    }
    static struct tn_app app;
    static const char *const STANDARD[] = {"-"};
    bool given = words->count > 1;
    struct tn_err err = {0};
    tn_rc rc = tn_boot(&app, false, &err);
    if (rc != TN_OK) {
        return tn_say_error(rc, &err);
    }
    struct tn_writing_spec spec = {.app = &app,
                                   .verb = "write",
                                   .table_name = words->items[0],
                                   .input = o.input,
                                   .commit_every = o.commit_every,
                                   .dead_letters = o.dead_letters,
                                   .unknown_columns = o.unknown_columns,
                                   .user = o.user,
                                   .commit_id = o.commit_id,
                                   .from = o.from,
                                   .times = &o.times,
                                   .stats = o.stats};
    int code = write_rows(&spec, given ? words->items + 1 : STANDARD, given ? words->count - 1 : 1);
    tn_shut(&app);
    return code;
}

const struct tn_command tn_cmd_write = {
    "write", "write D.T [FILE...|-]",        "adds rows from files or standard input",
    flags,   sizeof flags / sizeof flags[0], run,
};
