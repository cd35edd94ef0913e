#include <string.h>

#include "app/lakes_private.h"
#include "base/wait.h"

enum { LOOK_MS = 5000 };

static bool wanted(const struct tn_lakes *lakes)
{
    for (uint32_t i = 0; i < lakes->mirror_count; i++) {
        const struct tn_lakes_mirror *m = &lakes->mirrors[i];
        if (!m->lake->near && tn_lakes_has_policy(m)) {
            return true;
        }
    }
    return false;
}

static tn_rc execute(struct tn_task *task, void *context, struct tn_err *err)
{
    struct tn_lakes_link *l = (struct tn_lakes_link *)(void *)task;
    const struct tn_lakes_spec *spec = &l->lakes->spec;
    (void)context;
    (void)err;
    spec->door.link(spec->door.user, spec->config->metered, &l->answer);
    return TN_OK;
}

static void say(const struct tn_lakes *lakes, const struct tn_link *link)
{
    tn_log_event(lakes->spec.log, TN_LOG_INFO, "lake", "link=%s up=%d metered=%d",
                 link->name[0] ? link->name : "-", link->up, link->metered);
}

static void complete(struct tn_task *task, tn_rc rc)
{
    struct tn_lakes_link *l = (struct tn_lakes_link *)(void *)task;
    bool same = l->known && l->now.up == l->answer.up && l->now.metered == l->answer.metered &&
                strcmp(l->now.name, l->answer.name) == 0;
    (void)rc;
    l->under_way = false;
    l->known = true;
    l->now = l->answer;
    for (uint32_t i = 0; !same && i < l->lakes->lake_count; i++) {
        struct tn_lakes_lake *lake = &l->lakes->lakes[i];
        lake->relinked = lake->relinked || !lake->near;
        lake->asks = true;
    }
    if (!same) {
        say(l->lakes, &l->now);
    }
}

void tn_lakes_link_turn(struct tn_lakes *lakes, int64_t now_ms, uint32_t *wait_ms)
{
    struct tn_lakes_link *l = &lakes->link;
    if (!wanted(lakes)) {
        return;
    }
    if (!l->under_way && now_ms >= l->next_ms) {
        l->task = (struct tn_task){.execute = execute, .complete = complete, .lane = TN_LANE_SHORT};
        l->lakes = lakes;
        l->under_way = true;
        l->next_ms = now_ms + LOOK_MS;
        tn_exec_submit(lakes->spec.env->exec, &l->task);
    }
    tn_wait_lower(wait_ms, l->next_ms - now_ms);
}
