/* tarn status: how the daemon of a warehouse is. Exit code 1 when it isn't well. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/cmd.h"
#include "app/output.h"
#include "app/seen.h"

enum { TEXT_SIZE = 128 * 1024 };

/* ---- output ---- */

static bool for_people(void)
{
    return tn_common.format == TN_FORMAT_TABLE ||
           (tn_common.format == TN_FORMAT_AUTO && isatty(STDOUT_FILENO));
}

static tn_rc print_table(const struct tn_seen *seen, struct tn_arena *arena, struct tn_err *err)
{
    void *memory;
    struct tn_buf text;
    tn_rc rc = tn_arena_need(arena, TEXT_SIZE, "a screen", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_buf_init(&text, memory, TEXT_SIZE);
    tn_seen_draw(seen, NULL, 0, &text);
    (void)fwrite(text.data, 1, text.size, stdout);
    return TN_OK;
}

/* Each of the page's objects is a line. */
static void print_lines(const struct tn_seen *seen)
{
    struct tn_bytes page = seen->page;
    struct tn_bytes object;
    while (tn_seen_next(&page, &object)) {
        (void)fwrite(object.data, 1, object.size, stdout);
        (void)fputc('\n', stdout);
    }
}

static void say_reason(void *user, const char *whose, const char *text)
{
    (void)user;
    (void)fprintf(stderr, "tarn: %s: %s\n", whose, text);
}

static void ignore_reason(void *user, const char *whose, const char *text)
{
    (void)user;
    (void)whose;
    (void)text;
}

/* ---- the verb ---- */

static tn_rc status(struct tn_app *app, struct tn_arena *arena, struct tn_seen *seen,
                    struct tn_err *err)
{
    tn_rc rc = tn_common.format == TN_FORMAT_CSV
                   ? tn_err_set(err, TN_INVALID, 0, "--format csv: status is no one table")
                   : tn_seen_ask(seen, app->warehouse, arena, err);
    if (rc == TN_OK && for_people()) {
        rc = print_table(seen, arena, err);
    } else if (rc == TN_OK) {
        print_lines(seen);
    }
    return rc == TN_OK && fflush(stdout) != 0 ? tn_output_failed(err) : rc;
}

static int run(const struct tn_text_list *words)
{
    static struct tn_app app;
    struct tn_arena arena;
    struct tn_seen seen;
    struct tn_err err = {0};
    if (words->count > 0) {
        return tn_say_usage(&tn_cmd_status);
    }
    tn_rc rc = tn_boot(&app, false, &err);
    if (rc != TN_OK) {
        return tn_say_error(rc, &err);
    }
    tn_arena_init(&arena, app.env.memtable, app.env.memtable_size); /* no table is open */
    rc = status(&app, &arena, &seen, &err);
    int code = rc == TN_ABSENT ? tn_say_error(TN_IO, &err)
               : rc != TN_OK   ? tn_say_error(rc, &err)
               : tn_seen_reasons(&seen, for_people() ? ignore_reason : say_reason, NULL) > 0 ? 1
                                                                                             : 0;
    tn_shut(&app);
    return code;
}

const struct tn_command tn_cmd_status = {
    "status", "status", "says how the `tarn run` of a warehouse is", NULL, 0, run,
};
