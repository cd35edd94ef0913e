/* tarn fsck: everything that can be checked in a table. */
#include "table/fsck.h"

#include <inttypes.h>
#include <stdio.h>

#include "app/cmd.h"
#include "app/output.h"
#include "file/names.h"
#include "schema/value.h"

static struct {
    bool orphans;
    bool quick;
} o;

static const struct tn_flag flags[] = {
    {"quick", 0, TN_FLAG_SET, &o.quick, NULL,
     "each file once, but not the merged rows of each snapshot, which costs a cat of each"},
    {"orphans", 0, TN_FLAG_SET, &o.orphans, NULL, "files that nothing reaches are problems, too"},
};

enum { LINE_SIZE = 8192 };

static tn_rc put_problem(const char *file, const char *text, struct tn_err *err)
{
    static unsigned char line[LINE_SIZE];
    struct tn_buf buf;
    tn_buf_init(&buf, line, sizeof line);
    if (tn_common.format == TN_FORMAT_JSON) {
        tn_buf_text(&buf, "{\"file\":");
        tn_json_string(&buf, tn_bytes_of(file));
        tn_buf_text(&buf, ",\"problem\":");
        tn_json_string(&buf, tn_bytes_of(text));
        tn_buf_text(&buf, "}\n");
    } else {
        tn_buf_format(&buf, "%s: %s\n", file, text);
    }
    if (fwrite(line, 1, buf.size, stdout) != buf.size) {
        return tn_output_failed(err);
    }
    return TN_OK;
}

static tn_rc put(void *user, enum tn_fsck_kind kind, const char *file, const char *text,
                 struct tn_err *err)
{
    (void)user;
    if (kind == TN_FSCK_PROBLEM) {
        return put_problem(file, text, err);
    }
    if (tn_common.verbose) {
        (void)fprintf(stderr, "note: %s: %s\n", file, text);
    }
    return TN_OK;
}

static void summarize(const struct tn_fsck_result *r)
{
    if (r->problems > 0) {
        (void)fprintf(stderr, "FAULTY: %" PRIu32 " problem%s; ", r->problems,
                      r->problems == 1 ? "" : "s");
    } else {
        (void)fprintf(stderr, "clean: ");
    }
    if (r->unchecked > 0) {
        (void)fprintf(stderr, "%" PRIu32 " files not checked, ", r->unchecked);
    }
    if (r->left_out > 0) {
        (void)fprintf(stderr, "%" PRIu32 " went meanwhile, ", r->left_out);
    }
    (void)fprintf(stderr,
                  "%" PRIu32 " snapshots, %" PRIu32 " tags, %" PRIu32 " long-lived changelogs, "
                  "%" PRIu32 " branches, %" PRIu64 " data files, %" PRIu64 " rows in files",
                  r->snapshots, r->tags, r->changelogs, r->branches, r->data_files, r->rows);
    if (r->merged > 0) {
        (void)fprintf(stderr, ", %" PRIu64 " read by merge", r->merged_rows);
    }
    (void)fputc('\n', stderr);
}

/* The memtable part is free as long as nothing is written: it remembers what was seen. */
static tn_rc check(struct tn_app *app, const char *table, struct tn_fsck_result *result,
                   struct tn_err *err)
{
    static struct tn_heap heap;
    const struct tn_part *part = tn_budget_part(&app->budget, "memtable");
    struct tn_fsck_spec spec = {
        .worker = &app->workers[TN_LANE_LONG],
        .arena = &app->table,
        .heap = &heap,
        .orphans = o.orphans,
        .merged = !o.quick,
        .each = put,
    };
    tn_rc rc = tn_name_table_root(&app->table, table, &spec.root, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_heap_init(&heap, part->base, part->size, false);
    rc = tn_fsck(&spec, result, err);
    tn_heap_deinit(&heap);
    return rc == TN_OK ? rc : tn_err_in(err, "%s", table);
}

static int run(const struct tn_text_list *words)
{
    static struct tn_app app;
    struct tn_fsck_result result = {0};
    struct tn_err err = {0};
    if (words->count != 1) {
        return tn_say_usage(&tn_cmd_fsck);
    }
    tn_rc rc = tn_boot(&app, false, &err);
    if (rc == TN_OK) {
        rc = check(&app, words->items[0], &result, &err);
        tn_shut(&app);
    }
    if (rc != TN_OK) {
        return tn_say_error(rc, &err);
    }
    if (fflush(stdout) != 0) {
        return tn_say_error(tn_output_failed(&err), &err);
    }
    if (!tn_common.quiet) {
        summarize(&result);
    }
    return result.problems == 0 ? 0 : 1;
}

const struct tn_command tn_cmd_fsck = {
    .name = "fsck",
    .usage = "fsck D.T",
    .summary = "everything that can be checked; exit code 1 and one line a problem",
    .flags = flags,
    .flag_count = sizeof flags / sizeof flags[0],
    .run = run,
};
