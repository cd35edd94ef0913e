#include "upload/s3_target_private.h"

#include <inttypes.h>

/* One on each connection, all of them begun before any is waited for. */
static tn_rc start_all(struct tn_s3_target *target, const char *key, struct tn_target_race *race,
                       struct tn_s3_link *links[TN_S3_TARGET_LINKS_MAX], struct tn_err *err)
{
    tn_rc rc = TN_OK;
    race->ran = race->count < target->link_count ? race->count : target->link_count;
    for (uint32_t i = 0; rc == TN_OK && i < race->ran; i++) {
        const struct tn_s3_job job = {
            .request = {.verb = TN_S3_PUT, .body_size = race->bytes[i].size, .if_absent = true},
            .body = race->bytes[i]};
        rc = tn_s3_target_free_link(target, &links[i], err);
        if (rc == TN_OK) {
            tn_s3_link_start(links[i], &job, key);
        }
    }
    return rc;
}

static bool is_over(struct tn_s3_link *const *links, uint32_t count)
{
    bool over = true;
    for (uint32_t i = 0; i < count; i++) {
        over = over && links[i]->ended;
    }
    return over;
}

static tn_rc judge(struct tn_s3_target *target, struct tn_s3_link *const *links,
                   struct tn_target_race *race, struct tn_err *err)
{
    race->won = 0;
    for (uint32_t i = 0; i < race->ran; i++) {
        if (links[i]->rc == TN_OK) {
            race->won++;
            race->winner = i;
        } else if (links[i]->verdict != TN_S3_CONFLICT) {
            target->trouble = links[i]->trouble;
            *err = links[i]->err;
            return links[i]->rc;
        }
    }
    target->trouble = TN_S3_TROUBLE_NONE;
    return TN_OK;
}

tn_rc tn_s3_target_race(struct tn_s3_target *target, const char *key, struct tn_target_race *race,
                        struct tn_err *err)
{
    struct tn_s3_link *links[TN_S3_TARGET_LINKS_MAX] = {NULL};
    tn_rc rc = start_all(target, key, race, links, err);
    while (rc == TN_OK && !is_over(links, race->ran)) {
        rc = tn_s3_target_turn(target, err);
    }
    return rc == TN_OK ? judge(target, links, race, err) : rc;
}
