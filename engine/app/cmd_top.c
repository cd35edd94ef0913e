/* tarn top: how the daemon of a warehouse is, again and again, on a terminal. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "app/cmd.h"
#include "app/output.h"
#include "app/screen.h"
#include "app/seen.h"
#include "schema/options.h"

static struct {
    const char *every;
} o;

static const struct tn_flag flags[] = {
    {"every", 0, TN_FLAG_TEXT, &o.every, "TIME", "draw again each TIME (1s)"},
};

enum { TEXT_SIZE = 128 * 1024, EVERY_MS = 1000, EVERY_MS_MIN = 100 };

/* What is seen now and what was before, in turn. */
struct top {
    struct tn_app *app;
    int64_t every_ms;
    int64_t at_ms[2];
    struct tn_arena arenas[2];
    struct tn_seen seen[2];
    bool known[2];
    int now;
    struct tn_buf text;
};

static int64_t now_ms(const struct top *top)
{
    struct tn_clock *clock = top->app->env.clock;
    return tn_clock_monotonic_ms(clock);
}

static tn_rc read_flags(struct top *top, struct tn_err *err)
{
    top->every_ms = EVERY_MS;
    if (o.every && (!tn_parse_duration(tn_bytes_of(o.every), &top->every_ms) ||
                    top->every_ms < EVERY_MS_MIN || top->every_ms > INT32_MAX)) {
        return tn_err_set(err, TN_INVALID, 0, "--every %s: a time like 2s, %d ms at the least",
                          o.every, EVERY_MS_MIN);
    }
    return TN_OK;
}

static tn_rc take_memory(struct top *top, struct tn_err *err)
{
    struct tn_arena all;
    void *memory;
    tn_arena_init(&all, top->app->env.memtable, top->app->env.memtable_size);
    tn_rc rc = tn_arena_need(&all, TEXT_SIZE, "a screen", &memory, err);
    size_t half = rc == TN_OK ? tn_arena_free(&all) / 2 / 64 * 64 : 0;
    tn_buf_init(&top->text, rc == TN_OK ? memory : NULL, rc == TN_OK ? TEXT_SIZE : 0);
    for (int i = 0; rc == TN_OK && i < 2; i++) {
        rc = tn_arena_need(&all, half - 64, "what was seen", &memory, err);
        if (rc == TN_OK) {
            tn_arena_init(&top->arenas[i], memory, half - 64);
        }
    }
    return rc;
}

/* A daemon that is away now may come back: that is drawn, too. */
static tn_rc look(struct top *top, struct tn_err *err)
{
    int before = top->now;
    int now = 1 - before;
    top->now = now;
    tn_arena_reset(&top->arenas[now], 0);
    tn_rc rc = tn_seen_ask(&top->seen[now], top->app->warehouse, &top->arenas[now], err);
    top->known[now] = rc == TN_OK;
    top->at_ms[now] = now_ms(top);
    top->text.size = 0;
    top->text.overflow = false;
    if (rc == TN_OK) {
        tn_seen_draw(&top->seen[now], top->known[before] ? &top->seen[before] : NULL,
                     top->at_ms[now] - top->at_ms[before], &top->text);
    } else {
        tn_buf_format(&top->text, "tarn: %s\n", err->text);
    }
    return rc;
}

static tn_rc once(struct top *top, struct tn_err *err)
{
    tn_rc rc = look(top, err);
    if (rc == TN_OK) {
        (void)fwrite(top->text.data, 1, top->text.size, stdout);
    }
    return rc == TN_OK && fflush(stdout) != 0 ? tn_output_failed(err) : rc;
}

static tn_rc again_and_again(struct top *top, struct tn_err *err)
{
    tn_rc rc = look(top, err);
    if (rc == TN_OK) {
        rc = tn_screen_open(err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    bool goes_on = tn_screen_draw(tn_buf_bytes(&top->text));
    while (goes_on && !tn_screen_ends(top->every_ms)) {
        struct tn_err away = {0};
        if (look(top, &away) == TN_OK || away.code == TN_ABSENT || away.code == TN_IO) {
            goes_on = tn_screen_draw(tn_buf_bytes(&top->text));
        } else {
            *err = away;
            rc = away.code;
            goes_on = false;
        }
    }
    tn_screen_close();
    return rc;
}

static int run(const struct tn_text_list *words)
{
    static struct tn_app app;
    static struct top top;
    struct tn_err err = {0};
    if (words->count > 0) {
        return tn_say_usage(&tn_cmd_top);
    }
    top.app = &app;
    tn_rc rc = read_flags(&top, &err);
    if (rc == TN_OK) {
        rc = tn_boot(&app, false, &err);
    }
    if (rc != TN_OK) {
        return tn_say_error(rc, &err);
    }
    rc = take_memory(&top, &err);
    if (rc == TN_OK) {
        rc = isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) ? again_and_again(&top, &err)
                                                           : once(&top, &err);
    }
    int code = rc == TN_OK ? 0 : tn_say_error(rc == TN_ABSENT ? TN_IO : rc, &err);
    tn_shut(&app);
    return code;
}

const struct tn_command tn_cmd_top = {
    "top",
    "top",
    "shows how the `tarn run` of a warehouse is, live; q ends it",
    flags,
    sizeof flags / sizeof flags[0],
    run,
};
