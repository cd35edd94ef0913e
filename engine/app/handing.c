#include "app/handing.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "app/ask.h"

enum {
    PAUSE_MS = 50,
    NS_PER_MS = 1000000,
    FIELDS = 5, /* beside the values */
};

struct answer {
    struct tn_json_i64 begun_ms;
    struct tn_json_i64 rc;
    struct tn_json_i64 job;
    struct tn_json_i64 over;
    const char *error;
    struct tn_json_i64 values[TN_JOB_VALUES];
};

#define FIELD(key, kind)                                                               \
    {                                                                                  \
#key, TN_JSON_##kind, TN_JSON_OPTIONAL, (uint32_t)offsetof(struct answer, key) \
    }

static const struct tn_json_field fields[FIELDS] = {
    FIELD(begun_ms, I64), FIELD(rc, I64), FIELD(job, I64), FIELD(over, I64), FIELD(error, TEXT),
};

/* Those of a verb's answers; how many. */
static uint32_t list_fields(enum tn_job_verb verb, struct tn_json_field all[FIELDS + TN_JOB_VALUES])
{
    for (uint32_t i = 0; i < FIELDS; i++) {
        all[i] = fields[i];
    }
    uint32_t count = 0;
    for (; count < TN_JOB_VALUES && tn_job_values[verb][count]; count++) {
        all[FIELDS + count] = (struct tn_json_field){
            tn_job_values[verb][count], TN_JSON_I64, TN_JSON_OPTIONAL,
            (uint32_t)(offsetof(struct answer, values) + count * sizeof(struct tn_json_i64))};
    }
    return FIELDS + count;
}

/* OK: it is begun, or over. AGAIN: too many ask at once. Else what the daemon says, or why it
 * can't. */
static tn_rc ask(struct tn_app *app, enum tn_job_verb verb, const char *method, const char *page,
                 struct answer *out, struct tn_err *err)
{
    struct tn_json_field all[FIELDS + TN_JOB_VALUES];
    struct answer answer = {.error = NULL};
    struct tn_ask_spec spec = {.warehouse = app->warehouse,
                               .method = method,
                               .page = page,
                               .fields = all,
                               .field_count = list_fields(verb, all)};
    size_t mark = tn_arena_mark(&app->input);
    tn_rc rc = tn_ask_object(&spec, &app->input, &answer, err);
    if (rc == TN_OK) {
        *out = answer;
    }
    if (rc == TN_OK && (!answer.rc.present || answer.rc.value != TN_OK)) {
        tn_rc said = answer.rc.present ? (tn_rc)answer.rc.value : TN_AGAIN;
        rc = tn_err_set(err, said, 0, "%s", answer.error ? answer.error : "");
    }
    out->error = NULL; /* it was in the arena */
    tn_arena_reset(&app->input, mark);
    return rc;
}

static void pause_a_moment(void)
{
    struct timespec moment = {.tv_nsec = (long)PAUSE_MS * NS_PER_MS};
    (void)nanosleep(&moment, NULL);
}

static tn_rc begin(struct tn_app *app, const struct tn_job_wish *wish, bool (*stopped)(void),
                   struct answer *answer, struct tn_err *err)
{
    char page[TN_JOB_QUERY_SIZE];
    struct tn_buf buf;
    tn_buf_init(&buf, page, sizeof page - 1);
    tn_buf_text(&buf, TN_JOB_PAGE "?");
    tn_job_wish_put(wish, &buf);
    if (buf.overflow) {
        return tn_err_set(err, TN_ABSENT, 0, "the table's name is too long");
    }
    page[buf.size] = 0;
    for (;;) {
        tn_rc rc = ask(app, wish->verb, "POST", page, answer, err);
        if (rc != TN_AGAIN) {
            return rc;
        }
        if (stopped && stopped()) {
            return tn_err_set(err, TN_CANCELED, 0, "stopped");
        }
        pause_a_moment();
    }
}

static tn_rc await(struct tn_app *app, const struct tn_job_wish *wish, bool (*stopped)(void),
                   const struct answer *asked, struct answer *now, struct tn_err *err)
{
    char page[64];
    (void)snprintf(page, sizeof page, TN_JOB_PAGE "?job=%" PRId64, asked->job.value);
    *now = *asked;
    while (!now->over.value) {
        if (stopped && stopped()) {
            return tn_err_set(err, TN_CANCELED, 0, "stopped");
        }
        pause_a_moment();
        now->begun_ms = asked->begun_ms; /* if nobody answers */
        tn_rc rc = ask(app, wish->verb, "GET", page, now, err);
        if (rc == TN_AGAIN) {
            now->over.value = 0;
            continue;
        }
        if (rc == TN_ABSENT || now->begun_ms.value != asked->begun_ms.value) {
            return tn_err_set(err, TN_IO, 0,
                              "tarn run has ended, or begun anew, before the job was over: what is "
                              "committed stays, try again for the rest");
        }
        if (rc != TN_OK) {
            return rc;
        }
    }
    return TN_OK;
}

tn_rc tn_hand(struct tn_app *app, const struct tn_job_wish *wish, bool (*stopped)(void),
              struct tn_handed *handed, struct tn_err *err)
{
    struct answer asked;
    struct answer now;
    struct tn_err why = {0};
    tn_rc rc = begin(app, wish, stopped, &asked, &why);
    if (rc == TN_ABSENT) {
        return rc;
    }
    if (rc == TN_OK && !tn_common.quiet && isatty(STDERR_FILENO)) {
        (void)fprintf(stderr, "tarn run holds %s and does it ...\n", wish->table);
    }
    if (rc == TN_OK) {
        rc = await(app, wish, stopped, &asked, &now, &why);
    }
    for (uint32_t i = 0; rc == TN_OK && i < TN_JOB_VALUES; i++) {
        handed->values[i] = now.values[i].value;
    }
    *err = rc == TN_OK ? *err : why;
    return rc;
}
