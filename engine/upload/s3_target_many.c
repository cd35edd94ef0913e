/* Many questions at once, one on each connection that is free, and names a page at a time. */
#include "upload/s3_target_private.h"

struct asking {
    struct tn_s3_target *target;
    struct tn_io_ask *of[TN_S3_TARGET_LINKS_MAX]; /* by link; NULL: nothing of ours */
    struct tn_arena rooms[TN_S3_TARGET_LINKS_MAX];
};

static tn_rc take_answer(struct asking *asking, uint32_t number, struct tn_err *err)
{
    const struct tn_s3_link *link = &asking->target->links[number];
    struct tn_io_ask *ask = asking->of[number];
    asking->of[number] = NULL;
    ask->rc = link->rc;
    *err = link->err;
    if (tn_target_is_hidden(link->rc, err)) {
        asking->target->trouble = TN_S3_TROUBLE_PERMISSION;
        return tn_target_if_hidden(link->rc, err);
    }
    if ((link->rc == TN_ABSENT && ask->verb != TN_IO_ASK_UNLINK) ||
        (link->rc == TN_INVALID && ask->verb == TN_IO_ASK_READ)) {
        return TN_OK;
    }
    if (link->rc != TN_OK) {
        asking->target->trouble = link->trouble;
        return tn_s3_target_checked(link->rc, err);
    }
    ask->size = ask->verb == TN_IO_ASK_READ ? link->got.size : link->exchange.answer.size;
    if (ask->verb == TN_IO_ASK_READ) {
        ((char *)ask->room)[ask->size] = 0;
    }
    return TN_OK;
}

static tn_rc take_answers(struct asking *asking, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < asking->target->link_count; i++) {
        if (asking->of[i] && asking->target->links[i].ended) {
            rc = take_answer(asking, i, err);
        }
    }
    return rc;
}

static bool waits(const struct asking *asking)
{
    bool any = false;
    for (uint32_t i = 0; i < asking->target->link_count; i++) {
        any = any || asking->of[i];
    }
    return any;
}

static struct tn_s3_job job_of(struct asking *asking, struct tn_io_ask *ask, uint32_t number)
{
    static const enum tn_s3_verb verbs[] = {[TN_IO_ASK_STAT] = TN_S3_HEAD,
                                            [TN_IO_ASK_READ] = TN_S3_GET,
                                            [TN_IO_ASK_UNLINK] = TN_S3_DELETE};
    struct tn_s3_job job = {.request = {.verb = verbs[ask->verb]}};
    if (ask->verb == TN_IO_ASK_READ) {
        tn_arena_init(&asking->rooms[number], ask->room, ask->room_size);
        job.arena = &asking->rooms[number];
        job.size_max = ask->room_size - 1;
    }
    return job;
}

/* A connection that is free may have an answer of ours. */
static tn_rc begin(struct asking *asking, struct tn_io_ask *ask, const char *key,
                   struct tn_err *err)
{
    struct tn_s3_link *link = NULL;
    tn_rc rc = tn_s3_target_free_link(asking->target, &link, err);
    uint32_t number = rc == TN_OK ? (uint32_t)(link - asking->target->links) : 0;
    if (rc == TN_OK && asking->of[number]) {
        rc = take_answer(asking, number, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    const struct tn_s3_job job = job_of(asking, ask, number);
    asking->of[number] = ask;
    tn_s3_link_start(link, &job, key);
    return tn_s3_target_turn(asking->target, err); /* so that it begins */
}

static tn_rc ask_each(struct asking *asking, struct tn_io_ask *asks, uint32_t count,
                      struct tn_err *err)
{
    char key[TN_S3_NAME_MAX];
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < count; i++) {
        rc = tn_s3_target_key(asking->target, asks[i].path, key, err);
        if (rc == TN_OK) {
            rc = begin(asking, &asks[i], key, err);
        }
    }
    while (rc == TN_OK && waits(asking)) {
        rc = tn_s3_target_turn(asking->target, err);
        rc = rc == TN_OK ? take_answers(asking, err) : rc;
    }
    return rc;
}

/* What is under way after an error may use its room no longer. */
tn_rc tn_s3_target_many(struct tn_target *base, struct tn_io_ask *asks, uint32_t count,
                        struct tn_err *err)
{
    struct tn_s3_target *target = tn_s3_target_of(base);
    struct asking asking = {.target = target};
    target->trouble = TN_S3_TROUBLE_NONE;
    tn_rc rc = ask_each(&asking, asks, count, err);
    for (uint32_t i = 0; rc != TN_OK && i < target->link_count; i++) {
        if (asking.of[i] && !target->links[i].ended) {
            tn_s3_link_cancel(&target->links[i]);
        }
    }
    return rc;
}

/* ---- names ---- */

static tn_rc list_page(struct tn_s3_target *target, const char *key, struct tn_s3_job *job,
                       bool *any, struct tn_err *err)
{
    struct tn_s3_link *link = NULL;
    tn_rc rc = tn_s3_target_ask(target, key, job, &link, err);
    if (rc == TN_OK) {
        *any = *any || link->told;
        memcpy(target->token, link->exchange.answer.token, sizeof target->token);
        job->request.token = link->exchange.answer.more ? target->token : NULL;
    }
    return rc;
}

static tn_rc absent(const struct tn_s3_target *target, const char *key, struct tn_err *err)
{
    return tn_err_set(err, TN_ABSENT, 0, "s3://%s/%s: nothing is there", target->store.bucket, key);
}

tn_rc tn_s3_target_list(struct tn_target *base, const char *path, tn_io_name_fn *each, void *user,
                        struct tn_err *err)
{
    struct tn_s3_target *target = tn_s3_target_of(base);
    struct tn_s3_job job = {
        .request = {.verb = TN_S3_LIST, .delimiter = "/"}, .each = each, .each_user = user};
    char key[TN_S3_NAME_MAX];
    bool any = false;
    tn_rc rc = tn_s3_target_key(target, path, key, err);
    size_t size = rc == TN_OK ? strlen(key) : 0;
    if (rc == TN_OK && size > 0 && key[size - 1] != '/' && size < TN_S3_KEY_MAX) {
        key[size] = '/';
        key[size + 1] = 0;
    }
    if (rc == TN_OK) {
        rc = list_page(target, key, &job, &any, err);
    }
    while (rc == TN_OK && job.request.token) {
        rc = list_page(target, key, &job, &any, err);
    }
    return rc == TN_OK && !any ? absent(target, key, err) : rc;
}

/* Where it begins, as a key. */
static tn_rc set_after(struct tn_s3_target *target, const char *key, const char *after,
                       struct tn_err *err)
{
    size_t above = strlen(key);
    size_t size = strlen(after);
    if (above + size >= TN_S3_NAME_MAX) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "%.60s...: more than %d bytes of a key", key,
                          TN_S3_KEY_MAX);
    }
    memcpy(target->after, key, above);
    memcpy(target->after + above, after, size + 1);
    return TN_OK;
}

tn_rc tn_s3_target_walk(struct tn_target *base, struct tn_io_walk *walk, struct tn_err *err)
{
    struct tn_s3_target *target = tn_s3_target_of(base);
    struct tn_s3_job job = {
        .request = {.verb = TN_S3_LIST}, .each = walk->each, .each_user = walk->user};
    char key[TN_S3_NAME_MAX];
    bool any = false;
    tn_rc rc = tn_s3_target_key(target, walk->path, key, err);
    if (rc == TN_OK && walk->after) {
        rc = set_after(target, key, walk->after, err);
        job.request.after = target->after;
    }
    if (rc == TN_OK) {
        rc = list_page(target, key, &job, &any, err);
    }
    while (rc == TN_OK && job.request.token && !walk->enough) {
        rc = list_page(target, key, &job, &any, err);
    }
    return rc == TN_OK && !any ? absent(target, key, err) : rc;
}
