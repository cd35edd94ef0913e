#include "table/setback.h"

#include "table/bucket.h"

enum { BACK_OFF_MAX = 6 }; /* 64 rounds */

/* Its place, or `count`. */
static uint32_t find(const struct tn_setbacks *setbacks, uint64_t name)
{
    uint32_t i = 0;
    while (i < setbacks->count && setbacks->items[i].bucket != name) {
        i++;
    }
    return i;
}

const struct tn_setback *tn_setback_of(const struct tn_setbacks *setbacks,
                                       struct tn_bytes partition, int32_t bucket)
{
    if (setbacks->count == 0) { /* as ever when all is well */
        return NULL;
    }
    uint32_t i = find(setbacks, tn_bucket_name(partition, bucket));
    return i < setbacks->count ? &setbacks->items[i] : NULL;
}

/* A free place, or that of the one that would be tried again first. */
static struct tn_setback *take(struct tn_setbacks *setbacks)
{
    if (setbacks->count < TN_SETBACKS_MAX) {
        return &setbacks->items[setbacks->count++];
    }
    struct tn_setback *first = &setbacks->items[0];
    for (uint32_t i = 1; i < setbacks->count; i++) {
        if (setbacks->items[i].retry_round < first->retry_round) {
            first = &setbacks->items[i];
        }
    }
    setbacks->forgotten++;
    setbacks->damage = setbacks->damage || first->rc == TN_CORRUPT;
    return first;
}

bool tn_setback_note(struct tn_setbacks *setbacks, struct tn_bytes partition, int32_t bucket,
                     int64_t round, bool at_stop, tn_rc rc, const struct tn_err *err)
{
    uint64_t name = tn_bucket_name(partition, bucket);
    uint32_t i = find(setbacks, name);
    bool known = i < setbacks->count;
    struct tn_setback *setback = known ? &setbacks->items[i] : take(setbacks);
    if (!known) {
        *setback = (struct tn_setback){.bucket = name};
    }
    bool news = setback->rc != rc;
    uint32_t shift = setback->failures < BACK_OFF_MAX ? setback->failures : BACK_OFF_MAX;
    setback->rc = rc;
    setback->failures++;
    setback->retry_round = round + (1 << shift);
    setback->at_stop = at_stop;
    if (at_stop) {
        setbacks->stop_reason = *err;
        setbacks->stop_bucket = name;
    }
    return news;
}

void tn_setback_forget(struct tn_setbacks *setbacks, struct tn_bytes partition, int32_t bucket)
{
    uint32_t i = find(setbacks, tn_bucket_name(partition, bucket));
    if (i < setbacks->count) {
        setbacks->items[i] = setbacks->items[--setbacks->count];
    }
}
