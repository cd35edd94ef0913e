#include "upload/probe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum { TEXT_SIZE = TN_UUID_SIZE + 16 };

struct probe {
    struct tn_target *target;
    const char *table;
    struct tn_clock *clock;
    struct tn_arena *arena;
    char uuid[TN_UUID_SIZE];
    char texts[TN_PROBE_RACERS][TEXT_SIZE];
    struct tn_bytes bytes[TN_PROBE_RACERS];
    uint32_t done; /* racers of whom all is known */
    uint32_t lost; /* races of which it isn't */
    bool stays;    /* DELETE isn't allowed, or not possible: it isn't asked for again */
};

static tn_rc fail(const struct probe *p, const char *how, struct tn_err *err)
{
    return tn_err_set(err, TN_UNSUPPORTED, 0,
                      "%s: %s: this store does not keep to \"only if it isn't there\" "
                      "(If-None-Match), on which a shared table rests; nothing is committed there",
                      p->target->name, how);
}

static tn_rc check_winner(const struct probe *p, const struct tn_target_race *race,
                          struct tn_err *err)
{
    char how[96];
    struct tn_bytes there;
    if (race->won != 1) {
        (void)snprintf(how, sizeof how,
                       "of %" PRIu32 " that wanted one name at once %" PRIu32
                       " were told that it is theirs",
                       race->ran, race->won);
        return fail(p, how, err);
    }
    tn_rc rc = p->target->vtable->read(p->target, race->path, TEXT_SIZE, p->arena, &there, err);
    if (rc != TN_OK) {
        return rc == TN_ABSENT || rc == TN_INVALID ? fail(p, "what was written isn't there", err)
                                                   : rc;
    }
    return tn_bytes_equal(there, p->bytes[race->winner])
               ? TN_OK
               : fail(p, "who was told that a name is his finds another's bytes there", err);
}

static tn_rc check_late(const struct probe *p, const char *path, struct tn_err *err)
{
    tn_rc rc = p->target->vtable->publish(p->target, path, tn_bytes_of("late"), err);
    return rc == TN_CONFLICT ? TN_OK
           : rc == TN_OK     ? fail(p, "a name that was there was given again", err)
                             : rc;
}

/* An answer didn't come. What is read is asked for with patience: when that is answered, the next
 * race has a link. */
static tn_rc look_again(struct probe *p, const char *path, struct tn_err *err)
{
    struct tn_err why;
    struct tn_bytes there;
    if (err->os == EACCES || ++p->lost > TN_PROBE_LOST) {
        return TN_IO;
    }
    tn_rc rc = p->target->vtable->read(p->target, path, TEXT_SIZE, p->arena, &there, &why);
    if (rc != TN_OK && rc != TN_ABSENT) {
        *err = why;
        return rc;
    }
    return TN_OK;
}

static tn_rc run_race(struct probe *p, const char *path, struct tn_err *err)
{
    struct tn_target_race race = {.path = path, .bytes = p->bytes, .count = TN_PROBE_RACERS};
    tn_rc rc = p->target->vtable->race(p->target, &race, err);
    if (rc == TN_IO) {
        return look_again(p, path, err);
    }
    if (rc == TN_OK) {
        rc = check_winner(p, &race, err);
    }
    if (rc == TN_OK) {
        rc = check_late(p, path, err);
    }
    p->done += race.ran > 0 ? race.ran : 1;
    return rc;
}

static tn_rc run_round(struct probe *p, uint32_t round, struct tn_err *err)
{
    struct tn_err ignored;
    const char *path =
        tn_arena_format(p->arena, ".tarn/%s/probe-%s-%" PRIu32, p->table, p->uuid, round);
    if (!path) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for a probe's name");
    }
    tn_rc rc = run_race(p, path, err);
    if (!p->stays && rc != TN_CANCELED) {
        p->stays = p->target->vtable->remove(p->target, path, &ignored) != TN_OK;
    }
    return rc;
}

tn_rc tn_probe(struct tn_target *target, const char *table, struct tn_clock *clock,
               struct tn_arena *scratch, struct tn_err *err)
{
    struct probe p = {.target = target, .table = table, .clock = clock, .arena = scratch};
    tn_clock_uuid(clock, p.uuid);
    for (uint32_t i = 0; i < TN_PROBE_RACERS; i++) {
        (void)snprintf(p.texts[i], TEXT_SIZE, "%s %" PRIu32, p.uuid, i);
        p.bytes[i] = tn_bytes_of(p.texts[i]);
    }
    tn_rc rc = TN_OK;
    for (uint32_t round = 0; rc == TN_OK && p.done < TN_PROBE_ROUNDS * TN_PROBE_RACERS; round++) {
        size_t mark = tn_arena_mark(scratch);
        rc = run_round(&p, round, err);
        tn_arena_reset(scratch, mark);
    }
    return rc;
}
