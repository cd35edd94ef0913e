/* tarn test: a script's own cases, and what it would do with real rows. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/cmd.h"
#include "app/reader.h"
#include "app/schema_file.h"
#include "app/trial.h"
#include "script/scripted.h"

static struct {
    const char *table;
    const char *schema_file;
    const char *rows;
    const char *input;
} o;

static const struct tn_flag flags[] = {
    {"table", 0, TN_FLAG_TEXT, &o.table, "D.T", "rows have this table's columns"},
    {"schema", 0, TN_FLAG_TEXT, &o.schema_file, "FILE",
     "rows have these columns: JSON, as `create --schema` takes it"},
    {"rows", 0, TN_FLAG_TEXT, &o.rows, "FILE|-",
     "show what the script makes of these records; with --quiet only what they cost"},
    {"input", 0, TN_FLAG_TEXT, &o.input, "FORM",
     "json (default), which a `map` gets as it stands; changes, csv, debezium-json, canal-json, "
     "maxwell-json, line-protocol"},
};

enum { PATH_SIZE = 4096 };

/* One script with all that it runs on. */
struct test {
    struct tn_app *app;
    const char *path;
    char folder[PATH_SIZE];
    struct tn_io_posix files;
    bool files_open;
    struct tn_vm vm;
    struct tn_script script;
    struct tn_arena arena; /* of the memtable's part, which has no table here */
    struct tn_schema schema;
    struct tn_row_layout layout;
    struct tn_columns keys;
    struct tn_default_row defaults;
    struct tn_columns late_by;
    bool typed;
    uint32_t failed;
};

/* ---- the columns ---- */

static tn_rc read_schema(struct test *t, struct tn_err *err)
{
    static struct tn_reader reader;
    if (o.schema_file) {
        return tn_schema_file_read(o.schema_file, &t->app->table, &t->schema, err);
    }
    tn_rc rc = tn_reader_open(&reader, t->app, o.table, err);
    if (rc == TN_OK) {
        t->schema = *reader.schema;
    }
    return rc;
}

static tn_rc open_columns(struct test *t, struct tn_err *err)
{
    int32_t *column_of;
    tn_rc rc = read_schema(t, err);
    if (rc == TN_OK) {
        rc = tn_schema_layout(&t->schema, &t->layout, NULL, &column_of, &t->app->table, err);
    }
    if (rc != TN_OK || t->layout.column_count != t->schema.field_count) {
        return rc != TN_OK ? rc
                           : tn_err_set(err, TN_UNSUPPORTED, 0,
                                        "a script needs a table without "
                                        "nested columns");
    }
    t->keys = t->schema.primary_keys; /* fields and columns are the same ones */
    t->typed = true;
    rc = tn_default_row_make(&t->schema, &t->layout, &t->app->table, &t->defaults, err);
    return rc == TN_OK ? tn_scripted_late(&t->schema, &t->app->table, &t->late_by, err) : rc;
}

/* ---- the script ---- */

/* The script's folder and its name in it. */
static tn_rc open_files(struct test *t, const char **name, struct tn_err *err)
{
    const char *slash = strrchr(t->path, '/');
    size_t size = slash ? (size_t)(slash - t->path) + 1 : 0;
    if (size >= PATH_SIZE) {
        return tn_err_set(err, TN_INVALID, 0, "%s: too long", t->path);
    }
    memcpy(t->folder, t->path, size);
    memcpy(t->folder + size, slash ? "" : ".", slash ? 1 : 2);
    *name = t->path + size;
    tn_rc rc = tn_io_posix_open(&t->files, t->folder, err);
    t->files_open = rc == TN_OK;
    return rc == TN_ABSENT ? tn_err_set(err, TN_INVALID, 0, "%s: there is no such file", t->path)
                           : rc;
}

static tn_rc open_script(struct test *t, struct tn_err *err)
{
    struct tn_budget *budget = &t->app->budget;
    const char *name = NULL;
    tn_rc rc = open_files(t, &name, err);
    if (rc != TN_OK) {
        return rc;
    }
    const struct tn_part *part = tn_budget_carve(budget, "lua_merge"); /* as a table's worker */
    const struct tn_part *rest = tn_budget_part(budget, "memtable");
    tn_arena_init(&t->arena, rest->base, rest->size);
    struct tn_vm_spec vm = {
        .memory = part->base, .size = part->size, .io = &t->files.io, .log = tn_say_log};
    rc = tn_vm_open(&t->vm, &vm, err);
    struct tn_script_spec spec = {.path = name,
                                  .layout = t->typed ? &t->layout : NULL,
                                  .keys = t->keys,
                                  .defaults = t->defaults,
                                  .table = o.table ? o.table : "test",
                                  .row_size_max = TN_TRIAL_ROW_SIZE_MAX,
                                  .skip_cases = true};
    return rc == TN_OK ? tn_script_load(&t->script, &t->vm, &spec, err) : rc;
}

/* ---- the cases ---- */

static tn_rc run_case(struct test *t, uint32_t index, struct tn_err *err)
{
    struct tn_script_case result = {.passed = false};
    tn_rc rc = tn_script_run_case(&t->script, index, &result, err);
    if (rc != TN_OK) {
        return rc;
    }
    t->failed += !result.passed;
    if (!result.passed) {
        (void)fprintf(stdout, "  FAIL  %u. %s\n        %s\n", index + 1, result.name,
                      result.reason);
    } else if (!tn_common.quiet) {
        (void)fprintf(stdout, "  ok    %u. %s\n", index + 1, result.name);
    }
    return TN_OK;
}

static tn_rc run_cases(struct test *t, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    uint32_t count = t->script.case_count;
    (void)fprintf(stdout, "%s\n", t->path);
    for (uint32_t i = 0; rc == TN_OK && i < count; i++) {
        rc = run_case(t, i, err);
    }
    if (rc == TN_OK) {
        (void)fprintf(stdout, "%u passed, %u failed%s\n", count - t->failed, t->failed,
                      count == 0 ? "; it has no m.test" : "");
    }
    return rc;
}

/* ---- the rows ---- */

static void say_costs(const struct test *t, const struct tn_trial *trial)
{
    (void)fprintf(stdout,
                  "%" PRIu64 " records: %" PRIu64 " changes of the table, %" PRIu64
                  " told, %" PRIu64 " dead\n",
                  trial->records, trial->changed, trial->told, trial->dead);
    tn_trial_say_costs(trial, "", stdout);
    (void)fprintf(stdout, "the state: %zu bytes at most, of %zu\n", t->vm.heap.peak,
                  t->vm.heap.size);
}

static tn_rc run_rows(struct test *t, struct tn_err *err)
{
    static struct tn_trial trial;
    struct tn_trial_spec spec = {.script = &t->script,
                                 .schema = &t->schema,
                                 .layout = &t->layout,
                                 .keys = t->keys,
                                 .late_by = t->late_by,
                                 .to = stdout,
                                 .quiet = tn_common.quiet};
    bool standard = strcmp(o.rows, "-") == 0;
    FILE *from = standard ? stdin : fopen(o.rows, "rb");
    if (!from) {
        return tn_err_set(err, TN_INVALID, errno, "%s: %s", o.rows, strerror(errno));
    }
    tn_rc rc = o.input ? tn_input_parse(o.input, &spec.input, err) : TN_OK;
    if (rc == TN_OK) {
        rc = tn_trial_open(&trial, &spec, &t->arena, err);
    }
    if (rc == TN_OK) {
        rc = tn_trial_run(&trial, from, err);
    }
    if (!standard) {
        (void)fclose(from);
    }
    if (rc != TN_OK) {
        return tn_err_in(err, "%s", standard ? "standard input" : o.rows);
    }
    t->failed += trial.dead > 0;
    say_costs(t, &trial);
    return TN_OK;
}

static tn_rc test(struct test *t, struct tn_err *err)
{
    tn_rc rc = o.table || o.schema_file ? open_columns(t, err) : TN_OK;
    if (rc == TN_OK) {
        rc = open_script(t, err);
    }
    if (rc == TN_OK) {
        rc = run_cases(t, err);
    }
    return rc == TN_OK && o.rows ? run_rows(t, err) : rc;
}

static bool flags_fit(void)
{
    const char *wrong = NULL;
    if (o.table && o.schema_file) {
        wrong = "--table and --schema don't go together";
    } else if (o.rows && !o.table && !o.schema_file) {
        wrong = "--rows needs --table D.T or --schema FILE";
    }
    if (wrong) {
        (void)fprintf(stderr, "tarn: %s\n", wrong);
    }
    return !wrong;
}

static int run(const struct tn_text_list *words)
{
    if (words->count != 1) {
        return tn_say_usage(&tn_cmd_test);
    }
    if (!flags_fit()) {
        return 2;
    }
    static struct tn_app app;
    static struct test t;
    struct tn_err err = {0};
    if (!o.table) {
        tn_common.warehouse = "."; /* none is needed, and none is made */
    }
    tn_rc rc = tn_boot(&app, false, &err);
    if (rc != TN_OK) {
        return tn_say_error(rc, &err);
    }
    t.app = &app;
    t.path = words->items[0];
    rc = test(&t, &err);
    int code = rc != TN_OK ? tn_say_error(rc, &err) : t.failed > 0 ? 1 : 0;
    tn_vm_close(&t.vm);
    if (t.files_open) {
        tn_io_posix_close(&t.files);
    }
    tn_shut(&app);
    return code;
}

const struct tn_command tn_cmd_test = {
    "test",
    "test SCRIPT.lua",
    "runs a script's cases, and real rows through it",
    flags,
    sizeof flags / sizeof flags[0],
    run,
};
