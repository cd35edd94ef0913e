/* tarn reload: has the daemon of a warehouse take its configuration anew, and waits until it did.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "app/ask.h"
#include "app/cmd.h"
#include "format/json.h"

enum {
    WAIT_MS_MAX = 300 * 1000, /* a journal may have much for the tables */
    PAUSE_MS = 50,
    NS_PER_MS = 1000000,
    ANSWER_SIZE = 4096,
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

static tn_rc ask(struct tn_app *app, const char *method, struct answer *answer, struct tn_err *err)
{
    static unsigned char text[ANSWER_SIZE];
    struct tn_buf body;
    struct cJSON *json;
    struct tn_arena *arena = &app->input;
    tn_buf_init(&body, text, sizeof text);
    tn_rc rc = tn_ask_by(method, app->warehouse, "/reload", &body, err);
    *answer = (struct answer){.trouble = NULL};
    tn_arena_reset(arena, 0);
    if (rc == TN_OK) {
        rc = tn_json_open(tn_buf_bytes(&body), arena, &json, err);
    }
    if (rc == TN_OK) {
        rc = tn_json_read(json, fields, sizeof fields / sizeof fields[0], answer, arena, err);
        tn_json_close(json);
    }
    return rc;
}

static int64_t now_ms(void)
{
    struct tn_clock *clock = &tn_clock_system;
    return clock->vtable->monotonic_ns(clock) / NS_PER_MS;
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

static tn_rc reload(struct tn_app *app, const struct tn_text_list *words, struct tn_err *err)
{
    struct answer asked;
    (void)words;
    long process = tn_ask_process(app->warehouse);
    tn_rc rc = ask(app, "POST", &asked, err);
    if (rc == TN_ABSENT) {
        return TN_IO; /* nothing is wrong with what was asked */
    }
    return rc == TN_OK ? await(app, &asked, process, err) : rc;
}

static int run(const struct tn_text_list *words)
{
    return words->count > 0 ? tn_say_usage(&tn_cmd_reload) : tn_run_verb(reload, words);
}

const struct tn_command tn_cmd_reload = {
    "reload", "reload", "has `tarn run` of a warehouse take its configuration anew", NULL, 0, run,
};
