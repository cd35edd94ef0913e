/* tarn reload: has the daemon of a warehouse take its configuration anew, and waits until it did;
 * with --shadow what comes goes through the old scripts and the new ones before. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/ask.h"
#include "app/cmd.h"
#include "app/shadow.h"
#include "app/stop.h"

enum {
    WAIT_MS_MAX = 300 * 1000, /* a journal may have much for the tables */
    PAUSE_MS = 50,
    NS_PER_MS = 1000000,
    SHADOW_MS_MAX = 24 * 3600 * 1000,
};

/* A table with two scripts takes some 5 MB, and rows. */
#define SHADOW_MEMORY (UINT64_C(64) << 20)

static struct {
    const char *shadow;
    int64_t examples;
    bool yes;
} o = {.examples = 5};

static const struct tn_flag flags[] = {
    {"shadow", 0, TN_FLAG_TEXT, &o.shadow, "DURATION",
     "first see for so long (30s) what the scripts on the disk make of the rows that come, "
     "and what those that run"},
    {"examples", 0, TN_FLAG_I64, &o.examples, "N", "show so many keys of a table (5)"},
    {"yes", 0, TN_FLAG_SET, &o.yes, NULL,
     "then activate them without a question, if they made no more dead letters"},
};

/* What became of it. */
struct answer {
    int64_t reload;
    int64_t answered;
    int64_t begun_ms;
    int64_t ready;
    const char *trouble;
};

#define FIELD(key, kind, need)                                                       \
    {                                                                                \
#key, TN_JSON_##kind, TN_JSON_##need, (uint32_t)offsetof(struct answer, key) \
    }

static const struct tn_json_field fields[] = {
    FIELD(reload, I64, REQUIRED), FIELD(answered, I64, REQUIRED), FIELD(begun_ms, I64, REQUIRED),
    FIELD(ready, I64, REQUIRED),  FIELD(trouble, TEXT, OPTIONAL),
};

/* Its texts last until the next one. */
static tn_rc ask_page(struct tn_app *app, const char *method, const char *page,
                      struct answer *answer, struct tn_err *err)
{
    struct tn_ask_spec spec = {.warehouse = app->warehouse,
                               .method = method,
                               .page = page,
                               .fields = fields,
                               .field_count = sizeof fields / sizeof fields[0]};
    *answer = (struct answer){.trouble = NULL};
    tn_arena_reset(&app->input, 0);
    return tn_ask_object(&spec, &app->input, answer, err);
}

static tn_rc ask(struct tn_app *app, const char *method, struct answer *answer, struct tn_err *err)
{
    return ask_page(app, method, "/reload", answer, err);
}

static int64_t now_ms(void)
{
    struct tn_clock *clock = &tn_clock_system;
    return tn_clock_monotonic_ms(clock);
}

static void pause_a_moment(void)
{
    struct timespec moment = {.tv_nsec = (long)PAUSE_MS * NS_PER_MS};
    (void)nanosleep(&moment, NULL);
}

/* It listens to nobody while it starts, so what counts is whether its process is there. */
static tn_rc await(struct tn_app *app, const struct answer *asked, long process, struct tn_err *err)
{
    int64_t deadline = now_ms() + WAIT_MS_MAX;
    struct answer now;
    while (now_ms() < deadline) {
        struct tn_err ignored;
        tn_rc rc = ask(app, "GET", &now, &ignored);
        bool anew = rc == TN_OK && now.begun_ms != asked->begun_ms;
        if (anew && now.ready) {
            return TN_OK;
        }
        if (rc == TN_OK && !anew && now.trouble && now.answered >= asked->reload) {
            return tn_err_set(err, TN_INVALID, 0, "refused: %s", now.trouble);
        }
        if (process > 0 && kill((pid_t)process, 0) != 0 && errno == ESRCH) {
            return tn_err_set(err, TN_IO, 0, "tarn run, process %ld, has ended: its log says why",
                              process);
        }
        pause_a_moment();
    }
    return tn_err_set(err, TN_IO, 0, "tarn run, process %ld, isn't ready within %d s", process,
                      WAIT_MS_MAX / 1000);
}

static tn_rc activate(struct tn_app *app, struct tn_err *err)
{
    struct answer asked;
    long process = tn_ask_process(app->warehouse);
    tn_rc rc = ask(app, "POST", &asked, err);
    return rc == TN_OK ? await(app, &asked, process, err) : rc;
}

/* ---- with a shadow ---- */

/* What a reload would say, without one. */
static tn_rc check(struct tn_app *app, struct tn_err *err)
{
    struct answer asked;
    tn_rc rc = ask_page(app, "POST", "/reload?look=1", &asked, err);
    struct answer now = asked;
    int64_t deadline = now_ms() + WAIT_MS_MAX;
    while (rc == TN_OK && now.answered < asked.reload && now_ms() < deadline) {
        pause_a_moment();
        rc = ask(app, "GET", &now, err);
    }
    if (rc == TN_OK && (now.begun_ms != asked.begun_ms || now.answered < asked.reload)) {
        return tn_err_set(err, TN_IO, 0,
                          "tarn run ended or began anew before it was asked for more");
    }
    return rc == TN_OK && now.trouble ? tn_err_set(err, TN_INVALID, 0, "refused: %s", now.trouble)
                                      : rc;
}

static bool says_yes(void)
{
    char answer[16];
    (void)fputs("activate? [y/N] ", stdout);
    (void)fflush(stdout);
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static struct shadowing {
    struct tn_shadow shadow;
    int64_t ms;
    bool kept;  /* the old ones */
    bool fails; /* though something else was wanted */
} shadowing;

/* Whether to activate, after what was said. */
static bool decide(const struct tn_shadow *shadow)
{
    const char *objection = tn_shadow_objection(shadow);
    bool asks = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !o.yes;
    if (objection) {
        (void)fprintf(stderr, "tarn: %s%s\n", objection,
                      asks && !shadow->cut && !shadow->stopped ? "" : ": nothing is activated");
    }
    return asks ? !shadow->cut && !shadow->stopped && says_yes() : o.yes && !objection;
}

static tn_rc see(struct shadowing *s, struct tn_app *app, struct tn_err *err)
{
    struct tn_shadow *shadow = &s->shadow;
    tn_rc rc = tn_shadow_open(shadow, app, err);
    if (rc == TN_OK && shadow->tables) {
        rc = tn_shadow_run(shadow, s->ms, err);
    }
    if (rc == TN_OK) {
        rc = tn_shadow_report(shadow, (uint32_t)o.examples, stdout, err);
    }
    if (rc == TN_OK) {
        s->kept = !decide(shadow);
        s->fails = s->kept && (o.yes || shadow->cut || shadow->stopped);
    }
    return rc == TN_OK && !s->kept ? tn_shadow_check_files(shadow, err) : rc;
}

static tn_rc reload(struct tn_app *app, const struct tn_text_list *words, struct tn_err *err)
{
    struct shadowing *s = &shadowing;
    (void)words;
    tn_rc rc = TN_OK;
    if (o.shadow) {
        if (!tn_parse_duration(tn_bytes_of(o.shadow), &s->ms) || s->ms < 1 ||
            s->ms > SHADOW_MS_MAX) {
            return tn_err_set(err, TN_INVALID, 0, "--shadow %s: a duration, as 30s", o.shadow);
        }
        rc = check(app, err);
        if (rc == TN_OK) {
            rc = see(s, app, err);
            tn_shadow_close(&s->shadow);
        }
    }
    rc = rc == TN_OK && !s->kept ? activate(app, err) : rc;
    return rc == TN_ABSENT ? TN_IO : rc; /* nothing is wrong with what was asked */
}

static int run(const struct tn_text_list *words)
{
    bool alone = !o.shadow && o.yes;
    if (words->count > 0 || alone || o.examples < 0 || o.examples > UINT32_MAX) {
        return tn_say_usage(&tn_cmd_reload);
    }
    tn_common.memory = o.shadow && tn_common.memory == 0 ? SHADOW_MEMORY : tn_common.memory;
    int code = tn_run_verb(reload, words);
    return code == 0 && shadowing.fails ? 1 : code;
}

const struct tn_command tn_cmd_reload = {
    "reload",
    "reload",
    "has `tarn run` of a warehouse take its configuration anew",
    flags,
    sizeof flags / sizeof flags[0],
    run,
};
