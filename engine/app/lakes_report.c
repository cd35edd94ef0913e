#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/lakes_private.h"

int64_t tn_lakes_lag(const struct tn_lakes_mirror *mirror)
{
    int64_t lag = mirror->seen_id - mirror->have_id;
    return lag > 0 ? lag : 0;
}

/* By the wall clock, unless that was set since. */
int64_t tn_lakes_age_ms(const struct tn_lakes *lakes, const struct tn_lakes_mirror *mirror)
{
    struct tn_clock *clock = lakes->spec.env->clock;
    int64_t since = mirror->since_ms > 0 ? mirror->since_ms : mirror->after_ms;
    int64_t age = since > 0 ? tn_lakes_now_ms(lakes) - since : 0;
    int64_t old =
        mirror->tally.oldest_ms > 0 ? clock->vtable->now_ms(clock) - mirror->tally.oldest_ms : 0;
    return tn_lakes_lag(mirror) == 0 ? 0 : old > age ? old : age;
}

/* ---- troubles ---- */

/* The words are those of tn_s3_trouble_text, and some of our own. */
static const struct {
    const char *kind;
    const char *text;
} kinds[] = {
    {"network", "it can't be reached"},
    {"store", "it answers, but doesn't do it"},
    {"permission", "it doesn't let us"},
    {"credentials", "the key that we show is wrong, or over"},
    {"clock", "its clock and ours are too far apart"},
    {"certificate", "nobody vouches for its certificate"},
    {"quota", "it is full, or its quota is"},
    {"conflict", "it has another history of the table, or another owner"},
    {"busy", "somebody else sends to it"},
    {"table", "the table can't be read"},
    {"disk", "the disk is full of what it lacks"},
    {"policy", "its policy failed, so it waits"},
    {"place", "its part of the table belongs elsewhere"},
    {"memory", "there is too little memory for it"},
    {"paused", "all who commit there are asked to wait"},
    {"schema", "the table is another one there"},
    {"manifests", "nobody merges the table's manifests there"},
    {"raced", "others commit faster there"},
    {"replaced", "somebody writes over what is committed there"},
    {"other", "it failed"},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

const char *tn_lakes_kind(uint32_t index)
{
    return index < KINDS ? kinds[index].kind : NULL;
}

static const char *text_of(const char *kind)
{
    for (uint32_t i = 0; i < KINDS; i++) {
        if (strcmp(kinds[i].kind, kind) == 0) {
            return kinds[i].text;
        }
    }
    return kind;
}

const char *tn_lakes_kind_of_share(enum tn_share_why why)
{
    static const char *const words[] = {
        [TN_SHARE_PAUSED] = "paused",      [TN_SHARE_SCHEMA] = "schema",
        [TN_SHARE_UNMERGED] = "manifests", [TN_SHARE_RACED] = "raced",
        [TN_SHARE_REPLACED] = "replaced",
    };
    return words[why];
}

const char *tn_lakes_kind_of(tn_rc rc, const char *known)
{
    return known               ? known
           : rc == TN_CONFLICT ? "conflict"
           : rc == TN_EXISTS   ? "busy"
           : rc == TN_FULL     ? "quota"
           : rc == TN_CORRUPT  ? "table"
           : rc == TN_IO       ? "network"
                               : "other";
}

/* It waits for nobody's fault, but the disk is full of it. */
static bool fills_the_disk(const struct tn_lakes *lakes, const struct tn_lakes_mirror *m)
{
    return lakes->spec.intake->reserve.low && tn_lakes_is_pending(m) &&
           (!m->lake->config->gap || m->shared);
}

/* It was sent again; but who commits there doesn't wait for a pause. */
static bool was_replaced(const struct tn_lakes *lakes, const struct tn_lakes_mirror *m)
{
    return m->replaced > 0 && tn_lakes_now_ms(lakes) - m->replaced_ms < TN_LAKES_REPLACED_MS;
}

const char *tn_lakes_trouble_kind(const struct tn_lakes *lakes,
                                  const struct tn_lakes_mirror *mirror)
{
    if (mirror->plan.failed) {
        return "policy";
    }
    return mirror->trouble != TN_OK        ? mirror->kind
           : fills_the_disk(lakes, mirror) ? "disk"
           : was_replaced(lakes, mirror)   ? "replaced"
                                           : NULL;
}

const char *tn_lakes_trouble(const struct tn_lakes *lakes, const struct tn_lakes_mirror *mirror,
                             char *text, size_t size)
{
    const struct tn_lakes_mirror *m = mirror;
    const char *kind = tn_lakes_trouble_kind(lakes, m);
    if (!kind) {
        return NULL;
    }
    if (m->plan.failed) {
        (void)snprintf(text, size, "%s: %s", text_of(kind), m->plan_text.text);
    } else if (m->trouble != TN_OK) {
        (void)snprintf(text, size, "%s: %s", text_of(kind), m->trouble_text.text);
    } else if (strcmp(kind, "replaced") == 0) {
        (void)snprintf(text, size,
                       "%s: what this gateway had committed was, %" PRIu64
                       " times; it was sent again. Who commits there must not replace snapshots "
                       "(a pause: `tarn help upload`)",
                       text_of(kind), m->replaced);
    } else {
        (void)snprintf(text, size,
                       "%" PRId64 " snapshots, about %" PRIu64
                       " bytes, wait to be sent, and stay on the full disk until then",
                       tn_lakes_lag(m), m->tally.bytes);
    }
    return text;
}

static bool is_paused(const struct tn_lakes_mirror *m)
{
    return m->trouble != TN_OK && m->kind &&
           strcmp(m->kind, tn_lakes_kind_of_share(TN_SHARE_PAUSED)) == 0;
}

const char *tn_lakes_state(const struct tn_lakes *lakes, const struct tn_lakes_mirror *mirror)
{
    return mirror->stopped                ? "stopped"
           : lakes->now.mirror == mirror  ? "sends"
           : !tn_lakes_is_pending(mirror) ? "has all"
           : lakes->way.mirror == mirror  ? "gives way"
           : is_paused(mirror)            ? "paused"
           : mirror->trouble != TN_OK     ? "tries again"
                                          : "waits";
}
