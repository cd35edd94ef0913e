#include "app/offering.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "app/ask.h"
#include "app/job.h"
#include "app/offers.h"

enum { TRIES_MAX = 500, PAUSE_NS = 10 * 1000 * 1000 };

struct answer {
    struct tn_json_i64 rc;
    struct tn_json_i64 size_max;
    struct tn_json_i64 place;
    struct tn_json_i64 rows;
    struct tn_json_i64 dead;
    struct tn_json_i64 left;
    const char *error;
};

#define FIELD(key, kind)                                                               \
    {                                                                                  \
#key, TN_JSON_##kind, TN_JSON_OPTIONAL, (uint32_t)offsetof(struct answer, key) \
    }

static const struct tn_json_field fields[] = {
    FIELD(rc, I64),   FIELD(size_max, I64), FIELD(place, I64),  FIELD(rows, I64),
    FIELD(dead, I64), FIELD(left, I64),     FIELD(error, TEXT),
};

/* What the daemon says of it is `*said`; the outcome is of the way to it. */
static tn_rc ask(struct tn_app *app, const char *method, const char *page, struct tn_bytes sent,
                 struct answer *answer, tn_rc *said, struct tn_err *err)
{
    struct tn_ask_spec spec = {.warehouse = app->warehouse,
                               .method = method,
                               .page = page,
                               .sent = sent,
                               .fields = fields,
                               .field_count = sizeof fields / sizeof fields[0]};
    size_t mark = tn_arena_mark(&app->input);
    *answer = (struct answer){.error = NULL};
    tn_rc rc = tn_ask_object(&spec, &app->input, answer, err);
    if (rc == TN_OK && !answer->rc.present) { /* it has too many to answer at once */
        rc = tn_err_set(err, TN_AGAIN, 0, "%s", answer->error ? answer->error : "");
    }
    *said = rc == TN_OK ? (tn_rc)answer->rc.value : TN_OK;
    if (*said != TN_OK) {
        (void)tn_err_set(err, *said, 0, "%s", answer->error ? answer->error : "");
    }
    answer->error = NULL; /* it was in the arena */
    tn_arena_reset(&app->input, mark);
    return rc;
}

static tn_rc fail(struct tn_offering *o, tn_rc rc, struct tn_err *err)
{
    o->failed = rc;
    o->failure = *err;
    return rc;
}

static tn_rc name_page(const struct tn_message *message, char page[TN_JOB_QUERY_SIZE],
                       struct tn_err *err)
{
    struct tn_buf buf;
    tn_buf_init(&buf, page, TN_JOB_QUERY_SIZE - 1);
    tn_buf_format(&buf, "%s?input=%s&split=%d&table=", TN_OFFER_PAGE, tn_input_name(message->input),
                  message->split);
    tn_job_put_text(&buf, message->table);
    if (message->cut_size > 0) {
        tn_buf_format(&buf, "&cut=%" PRIu64, message->cut_size);
    }
    page[buf.size] = 0;
    return buf.overflow ? tn_err_set(err, TN_INVALID, 0, "the table's name is too long") : TN_OK;
}

static void take(struct tn_offering *o, const struct answer *answer, struct tn_message *message)
{
    message->place = (uint64_t)answer->place.value;
    message->rows = (uint32_t)answer->rows.value;
    message->dead = (uint32_t)answer->dead.value;
    message->left = (size_t)answer->left.value;
    o->place = message->place;
    o->rows += message->rows + message->dead;
    o->dead += message->dead;
}

/* A body that is refused for its size comes in pieces; all else ends it. */
static tn_rc offer(struct tn_hub *hub, struct tn_message *message, struct tn_err *err)
{
    struct tn_offering *o = (struct tn_offering *)(void *)hub;
    char page[TN_JOB_QUERY_SIZE];
    struct answer answer;
    tn_rc said = TN_OK;
    if (o->failed != TN_OK) {
        *err = o->failure;
        return o->failed;
    }
    tn_rc rc = name_page(message, page, err);
    if (rc == TN_OK) {
        rc = ask(o->app, "POST", page, message->bytes, &answer, &said, err);
    }
    if (rc == TN_ABSENT) {
        rc = tn_err_set(err, TN_IO, 0, "tarn run has ended, or begins anew");
    }
    if (rc == TN_OK && said == TN_OK) {
        take(o, &answer, message);
        return TN_OK;
    }
    rc = rc == TN_OK ? said : rc;
    if (rc == TN_AGAIN) {
        o->waits = *err;
    }
    bool again = rc == TN_AGAIN || (rc == TN_INVALID && message->split);
    return again ? rc : fail(o, rc == TN_CANCELED ? TN_IO : rc, err);
}

/* Nobody has an identity. */
static tn_rc sender(struct tn_hub *hub, struct tn_bytes name, struct tn_bytes *memo,
                    uint64_t *place)
{
    (void)hub;
    (void)name;
    *memo = (struct tn_bytes){0};
    *place = 0;
    return TN_ABSENT;
}

tn_rc tn_offering_open(struct tn_offering *offering, struct tn_app *app, const char *table,
                       struct tn_err *err)
{
    static const struct tn_hub_vtable vtable = {.offer = offer, .sender = sender};
    char page[TN_JOB_QUERY_SIZE];
    struct tn_buf buf;
    struct answer answer;
    tn_rc said = TN_OK;
    *offering = (struct tn_offering){.hub = {.vtable = &vtable}, .app = app};
    tn_buf_init(&buf, page, sizeof page - 1);
    tn_buf_text(&buf, TN_OFFER_PAGE "?table=");
    tn_job_put_text(&buf, table);
    page[buf.size] = 0;
    tn_rc rc = buf.overflow ? TN_ABSENT : TN_AGAIN;
    for (int i = 0; rc == TN_AGAIN && i < TRIES_MAX; i++) {
        struct timespec moment = {.tv_nsec = i == 0 ? 0 : PAUSE_NS};
        (void)nanosleep(&moment, NULL);
        rc = ask(app, "GET", page, (struct tn_bytes){0}, &answer, &said, err);
    }
    if (rc == TN_OK && said == TN_OK) {
        offering->hub.size_max = (size_t)answer.size_max.value;
    }
    return rc == TN_OK ? said : TN_ABSENT; /* who holds it then, the lock says */
}
