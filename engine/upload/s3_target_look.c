#include <inttypes.h>
#include <stdio.h>

#include "upload/s3_target_private.h"

/* Each is a HEAD, and a GET that asks why. */
enum { NOTHING_TRIES = 2 };

tn_rc tn_s3_target_key(const struct tn_s3_target *target, const char *path,
                       char key[TN_S3_NAME_MAX], struct tn_err *err)
{
    const struct tn_s3_place *place = &target->place;
    int size = snprintf(key, TN_S3_NAME_MAX, "%.*s%s%s", (int)place->prefix_size, place->prefix,
                        place->prefix_size > 0 ? "/" : "", path);
    if (size < 0 || size >= TN_S3_NAME_MAX) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "%s: more than %d bytes of a key", path,
                          TN_S3_KEY_MAX);
    }
    return TN_OK;
}

/* Whether the store hides what isn't there is asked of a name that nobody makes. */
static tn_rc ask_nothing(struct tn_s3_target *target, const char *key, struct tn_err *err)
{
    const struct tn_s3_job job = {.request = {.verb = TN_S3_HEAD}};
    struct tn_s3_link *link = NULL;
    bool tells = false;
    tn_rc rc = TN_OK;
    for (int tries = 0; rc == TN_OK && !tells && tries < NOTHING_TRIES; tries++) {
        rc = tn_s3_target_ask(target, key, &job, &link, err);
        tells = rc == TN_ABSENT && !tn_target_is_hidden(rc, err);
        rc = rc == TN_ABSENT ? TN_OK : rc;
    }
    target->hides = rc == TN_OK && !tells;
    return rc;
}

/* Sets target->hides. */
static tn_rc learn(struct tn_s3_target *target, struct tn_err *err)
{
    char key[TN_S3_NAME_MAX];
    tn_rc rc = tn_s3_target_key(target, ".tarn/nothing", key, err);
    return rc == TN_OK ? ask_nothing(target, key, err) : rc;
}

tn_rc tn_s3_target_look(struct tn_s3_target *target, const char *key, const struct tn_s3_job *job,
                        struct tn_s3_link **link, struct tn_err *err)
{
    tn_rc rc = tn_s3_target_ask(target, key, job, link, err);
    if (!tn_target_is_hidden(rc, err)) {
        target->hides = target->hides && rc != TN_ABSENT;
        return rc;
    }
    if (target->target.hidden_will_do) {
        return rc;
    }
    struct tn_err answer;
    enum tn_s3_trouble trouble = target->trouble;
    rc = target->hides ? TN_OK : learn(target, &answer);
    if (rc != TN_OK) {
        *err = answer;
        return rc;
    }
    target->trouble = trouble;
    return target->hides ? TN_ABSENT : tn_target_if_hidden(TN_ABSENT, err);
}
