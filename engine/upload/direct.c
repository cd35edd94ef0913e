#include "upload/direct_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commit/consumer.h"
#include "file/names.h"
#include "upload/gather_pauser.h"
#include "upload/owner.h"
#include "upload/probe.h"

enum {
    HEALS_MAX = 4,   /* of a sync: somebody commits there who replaces what he finds */
    FILES_MAX = 256, /* of a commit, beyond one snapshot: a manifest of some 100 KB */
    LAKE_FILES = 64, /* that are at hand at once: lists, and manifests where one is searched */
    PASSES_MAX = 4,
    SENDING_MIN = 1 << 20,
    COMMIT_REQUESTS = 10,
    SHARE_SIZE = 448 * 1024, /* of either side: three blocks with what they are packed from */
};

#define BYTES_MAX  (UINT64_C(256) << 20)
#define CACHE_SIZE (UINT64_C(16) << 20)
#define ASK_MS     (5 * 60 * INT64_C(1000)) /* of the lake's newer schemas */
#define AGE_MAX_MS                                                                \
    (12 * 60 * 60 * INT64_C(1000)) /* cleaning of orphans takes what is a day old \
                                    */

static int64_t now_ms(struct tn_direct *d)
{
    struct tn_clock *clock = d->worker->clock;
    return clock->vtable->now_ms(clock);
}

tn_rc tn_direct_save(struct tn_direct *d, struct tn_err *err)
{
    return tn_sent_write(d->worker->io, d->spec->table, &d->sent, &d->worker->arena, err);
}

/* An attempt that was cut, or got an error, may have given a name that a power cut there still
 * takes back. */
tn_rc tn_direct_make_sure(struct tn_direct *d, struct tn_err *err)
{
    return d->target->vtable->settle(d->target, err);
}

/* What is safe may go here. */
static tn_rc protect(struct tn_direct *d, struct tn_err *err)
{
    return tn_consumer_write(d->worker->io, d->root, TN_SHARE_CONSUMER, d->sent.safe + 1,
                             &d->worker->arena, err);
}

/* ---- the commit before ---- */

static tn_rc forget_last(struct tn_direct *d, struct tn_err *err)
{
    d->sent.done = d->sent.safe;
    d->sent.sending = 0;
    d->sent.lake_id = 0;
    d->sent.manifest[0] = 0;
    d->result->replaced++;
    d->result->last_id = d->sent.done;
    return tn_direct_save(d, err);
}

tn_rc tn_direct_check_last(struct tn_direct *d, bool *replaced, struct tn_err *err)
{
    enum tn_direct_found found = TN_DIRECT_THERE;
    *replaced = false;
    if (d->sent.safe == d->sent.done || d->sent.trying > 0) {
        return TN_OK;
    }
    tn_rc rc = tn_direct_find(d, d->sent.safe + 1, d->sent.done, d->sent.base, &found, err);
    *replaced = rc == TN_OK && found == TN_DIRECT_NOT_THERE;
    return *replaced ? forget_last(d, err) : rc;
}

/* Nothing follows it for now, so it is looked at by itself, once. */
static tn_rc settle_last(struct tn_direct *d, bool *replaced, struct tn_err *err)
{
    struct tn_snapshot snapshot = {.commit_user = ""};
    *replaced = false;
    int64_t age = now_ms(d) - d->sent.since_ms;
    if (d->sent.safe == d->sent.done || (age >= 0 && age < TN_DIRECT_SETTLE_MS)) {
        return TN_OK;
    }
    tn_rc rc = d->sent.lake_id > 0 ? tn_direct_read(d, d->sent.lake_id, &snapshot, err) : TN_ABSENT;
    if (rc != TN_OK && rc != TN_ABSENT) {
        return rc;
    }
    if (rc != TN_OK || !tn_direct_is_ours(d, &snapshot, d->sent.done)) {
        rc = tn_direct_read_base(d, err);
        rc = rc == TN_OK ? tn_direct_check_last(d, replaced, err) : rc;
    }
    if (rc != TN_OK || *replaced) {
        return rc;
    }
    rc = tn_direct_make_sure(d, err);
    if (rc == TN_OK) {
        d->sent.safe = d->sent.done;
        rc = tn_direct_save(d, err);
    }
    return rc;
}

/* A sync was cut behind the first attempt. */
static tn_rc resolve(struct tn_direct *d, struct tn_err *err)
{
    enum tn_direct_found found = TN_DIRECT_NOT_THERE;
    struct tn_sent *sent = &d->sent;
    if (sent->trying == 0) {
        return TN_OK;
    }
    tn_rc rc = tn_direct_read_base(d, err);
    if (rc == TN_OK) {
        rc = tn_direct_find(d, sent->done + 1, sent->trying, sent->base, &found, err);
    }
    if (rc != TN_OK || found != TN_DIRECT_THERE) {
        return rc;
    }
    rc = tn_direct_make_sure(d, err);
    if (rc == TN_OK) {
        sent->done = sent->trying;
        sent->trying = 0;
        sent->sending = sent->sending > sent->done ? sent->sending : 0;
        sent->lake_id = d->own_id > 0 ? d->own_id : d->base.id;
        d->own_id = 0;
        rc = tn_direct_save(d, err);
    }
    return rc;
}

/* ---- picks ---- */

/* Of a few bytes it is cheaper to send them twice than to write down that they may be there; but
 * who is bounded would begin with the same ones each time. */
static tn_rc mark_sending(struct tn_direct *d, struct tn_share_pick *pick, struct tn_err *err)
{
    const struct tn_share_bounds *bounds = &d->tally.bounds;
    bool bounded = bounds->bytes_max > 0 || bounds->requests_max > 0;
    pick->ask = d->sent.sending >= pick->first;
    d->sent.sending = pick->last > d->sent.sending ? pick->last : d->sent.sending;
    if (d->sent.trying == 0 && !pick->ask) {
        d->sent.since_ms = now_ms(d);
    }
    return pick->bytes > SENDING_MIN || bounded ? tn_direct_save(d, err) : TN_OK;
}

static bool is_old(struct tn_direct *d, int64_t since_ms)
{
    int64_t age = now_ms(d) - since_ms;
    return age < 0 || age >= AGE_MAX_MS;
}

/* A link that is slow: what went first may be cleaned away by now. */
static tn_rc send_files(struct tn_direct *d, struct tn_share_pick *pick, struct tn_err *err)
{
    int64_t since_ms = now_ms(d);
    tn_rc rc = tn_share_send(pick, d->target, &d->tally, err);
    for (int i = 1; rc == TN_OK && i < PASSES_MAX && is_old(d, since_ms); i++) {
        rc = d->target->vtable->settle(d->target, err);
        since_ms = now_ms(d);
        pick->ask = true;
        rc = rc == TN_OK ? tn_share_send(pick, d->target, &d->tally, err) : rc;
    }
    return rc;
}

static void note_sent(struct tn_direct *d, const struct tn_share_pick *pick)
{
    struct tn_direct_result *result = d->result;
    result->first_id = result->first_id > 0 ? result->first_id : pick->first;
    result->last_id = pick->last;
    result->files += (uint64_t)(pick->data_count + pick->change_count);
    result->bytes += pick->bytes;
}

/* Snapshots that added nothing need nobody's leave. */
static tn_rc pass_over(struct tn_direct *d, const struct tn_share_pick *pick, struct tn_err *err)
{
    d->result->last_id = pick->last;
    if (pick->last == d->sent.done || d->sent.safe < d->sent.done) {
        return TN_OK; /* the last commit is known by the snapshot that it ended with */
    }
    d->sent.safe = pick->last;
    d->sent.done = pick->last;
    return tn_direct_save(d, err);
}

static tn_rc send_pick(struct tn_direct *d, struct tn_share_pick *pick, bool *replaced,
                       struct tn_err *err)
{
    tn_rc rc = mark_sending(d, pick, err);
    if (rc == TN_OK) {
        rc = send_files(d, pick, err);
    }
    if (rc == TN_CANCELED && d->tally.spent) { /* what went is asked for by the next sync */
        d->result->limited = true;
        return d->target->vtable->settle(d->target, err);
    }
    if (rc == TN_OK) {
        rc = tn_direct_commit(d, pick, replaced, err);
    }
    if (rc != TN_OK || *replaced) {
        d->target->vtable->drop(d->target);
        return rc;
    }
    note_sent(d, pick);
    return protect(d, err);
}

/* What is tried is what was tried: another number of snapshots would be another commit. */
static tn_rc next_pick(struct tn_direct *d, struct tn_share_pick *pick, struct tn_err *err)
{
    static const struct tn_share_limits none = {0};
    const struct tn_share_limits usual = {FILES_MAX, BYTES_MAX, d->tally.bounds.through};
    bool again = d->sent.trying > 0;
    return tn_share_pick(d->root, d->sent.done, d->sent.trying, again ? &none : &usual, d->worker,
                         pick, err);
}

/* Whether another one may be begun. */
static bool goes_on(struct tn_direct *d, const struct tn_share_pick *pick)
{
    bool spent = tn_share_is_spent(&d->tally, d->target);
    d->result->limited = d->result->limited || (spent && !tn_share_pick_empty(pick));
    return !d->result->limited;
}

/* ---- the sync ---- */

static tn_rc open_schema(struct tn_direct *d, struct tn_err *err)
{
    tn_schemas_init(&d->schemas, d->worker->io, d->root, &d->worker->arena);
    tn_rc rc = tn_schemas_newest(&d->schemas, &d->schema, err);
    return rc == TN_OK
               ? tn_options_read(d->schema, TN_OPTIONS_READ, &d->worker->arena, &d->options, err)
               : rc;
}

static tn_rc open_lake(struct tn_direct *d, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    struct tn_lake_io_spec spec = {.target = d->target,
                                   .scratch = d->spec->scratch,
                                   .arena = arena,
                                   .cache_size = CACHE_SIZE,
                                   .files = LAKE_FILES};
    void *memory;
    tn_rc rc = tn_lake_io_open(&d->lake, &spec, err);
    if (rc != TN_OK) {
        return rc;
    }
    size_t size = tn_arena_free(arena) / 2;
    rc = tn_arena_need(arena, size, "the lake's lists", &memory, err);
    if (rc != TN_OK) {
        tn_lake_io_close(&d->lake);
        return rc;
    }
    d->there =
        (struct tn_worker){.codec = d->worker->codec, .io = &d->lake.io, .clock = d->worker->clock};
    tn_arena_init(&d->there.arena, memory, size);
    return TN_OK;
}

/* Before anything of ours goes there, once at each place: of another store nothing is known. No
 * mirror is made of the table behind it. */
static tn_rc probe(struct tn_direct *d, struct tn_err *err)
{
    const char *place = d->spec->place ? d->spec->place : "";
    if (d->sent.probed > 0 && strcmp(d->sent.probed_at, place) == 0) {
        return TN_OK;
    }
    tn_rc rc = tn_probe(d->target, d->spec->table, d->worker->clock, &d->worker->arena, err);
    if (rc == TN_OK) {
        rc = tn_owner_share(d->target, d->spec->table, now_ms(d), &d->worker->arena, err);
    }
    if (rc == TN_OK) {
        d->sent.probed = now_ms(d);
        (void)snprintf(d->sent.probed_at, sizeof d->sent.probed_at, "%s", place);
        rc = tn_direct_save(d, err);
    }
    return rc;
}

/* What is new here is compared at once; what may be new there is asked for now and then. */
static tn_rc look_at_schemas(struct tn_direct *d, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    size_t mark = tn_arena_mark(arena);
    int64_t age = now_ms(d) - d->sent.asked;
    tn_rc rc = open_schema(d, err);
    if (rc != TN_OK || (d->schema->id == d->sent.schema && age >= 0 && age < ASK_MS)) {
        return rc;
    }
    tn_arena_reset(arena, mark);
    rc = tn_share_look_at_schemas(&d->place, &d->sent, err);
    d->result->why = rc == TN_INVALID ? TN_SHARE_SCHEMA : d->result->why;
    d->sent.asked = now_ms(d);
    return rc == TN_OK ? open_schema(d, err) : rc;
}

/* Whoever left marks behind without an end is waited out; one who is alive is heard of soon. */
static tn_rc watch_pause(struct tn_direct *d, struct tn_err *err)
{
    struct tn_pause_watch own = {.any = false};
    struct tn_pause_watch *watch = d->spec->watch ? d->spec->watch : &own;
    const char *table = d->spec->table;
    for (;;) {
        struct tn_pause pause = {.set = false};
        d->looked_ms = tn_clock_monotonic_ms(d->worker->clock);
        tn_rc rc = tn_pause_read_target(d->target, table, &d->worker->arena, &pause, err);
        if (rc != TN_OK) {
            return rc;
        }
        if (!tn_pause_holds(watch, &pause, d->worker->clock)) {
            return pause.set ? tn_pause_forget(d->target, table, &pause, &d->worker->arena, err)
                             : TN_OK;
        }
        if (watch->alive || d->spec->watch) {
            d->result->why = TN_SHARE_PAUSED;
            return tn_pause_say(&pause, table, err);
        }
        d->spec->wait(d->spec->user, TN_DIRECT_LOOK_MS);
    }
}

/* Somebody may want to commit there who honours no condition. */
tn_rc tn_direct_look_for_pause(struct tn_direct *d, struct tn_err *err)
{
    int64_t ms = tn_clock_monotonic_ms(d->worker->clock);
    if (d->looked_ms > 0 && ms - d->looked_ms < TN_PAUSE_FRESH_MS) {
        return TN_OK;
    }
    tn_rc rc = watch_pause(d, err);
    d->looked_ms = rc == TN_OK ? d->looked_ms : 0;
    return rc;
}

static tn_rc send_all(struct tn_direct *d, struct tn_err *err)
{
    struct tn_share_pick pick;
    bool replaced = false;
    tn_rc rc = probe(d, err);
    if (rc == TN_OK) {
        rc = look_at_schemas(d, err);
    }
    if (rc == TN_OK) {
        rc = tn_direct_look_for_pause(d, err);
    }
    if (rc == TN_OK) {
        rc = resolve(d, err);
    }
    bool more = true;
    for (uint32_t healed = 0; rc == TN_OK && more && healed < HEALS_MAX; healed += replaced) {
        replaced = false;
        rc = next_pick(d, &pick, err);
        more = rc == TN_OK && !tn_share_pick_empty(&pick);
        if (rc == TN_OK && !goes_on(d, &pick)) {
            return TN_OK;
        }
        if (more) {
            rc = send_pick(d, &pick, &replaced, err);
            more = !d->result->limited;
        } else if (rc == TN_OK) {
            rc = pass_over(d, &pick, err);
            rc = rc == TN_OK ? settle_last(d, &replaced, err) : rc;
            more = replaced;
        }
    }
    if (rc != TN_OK || !more) {
        return rc;
    }
    d->result->why = TN_SHARE_REPLACED;
    return tn_err_set(err, TN_IO, 0, "%s: somebody replaces snapshots that are there",
                      d->target->name);
}

/* Without a question to anybody: is there something to do? */
static tn_rc look_here(struct tn_direct *d, bool *quiet, struct tn_err *err)
{
    struct tn_share_pick pick;
    size_t mark = tn_arena_mark(&d->worker->arena);
    tn_rc rc = next_pick(d, &pick, err);
    *quiet = rc == TN_OK && tn_share_pick_empty(&pick) && d->sent.trying == 0;
    if (*quiet && !d->spec->dry_run) {
        rc = pass_over(d, &pick, err);
        int64_t age = now_ms(d) - d->sent.since_ms;
        *quiet = d->sent.safe == d->sent.done || (age >= 0 && age < TN_DIRECT_SETTLE_MS);
    }
    tn_arena_reset(&d->worker->arena, mark);
    return rc;
}

/* With a changelog a commit has a manifest and a list more. */
static tn_rc plan(struct tn_direct *d, struct tn_err *err)
{
    struct tn_share_pick pick;
    tn_rc rc = TN_OK;
    bool more = true;
    while (rc == TN_OK && more) {
        rc = next_pick(d, &pick, err);
        more = rc == TN_OK && !tn_share_pick_empty(&pick);
        if (more) {
            note_sent(d, &pick);
            d->result->commits++;
            d->result->requests += (uint64_t)(pick.data_count + pick.change_count) +
                                   COMMIT_REQUESTS + (pick.change_count > 0 ? 2 : 0);
            d->sent.done = pick.last;
            d->sent.trying = 0;
        }
    }
    return rc;
}

static tn_rc run(struct tn_direct *d, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    struct tn_share share;
    bool quiet = false;
    tn_rc rc = tn_share_read(d->worker->io, d->spec->table, arena, &share, err);
    if (rc == TN_OK) {
        rc = tn_err_named(err, tn_sent_read(d->worker->io, d->spec->table, arena, &d->sent, err));
    }
    if (rc == TN_OK) {
        (void)snprintf(d->user, sizeof d->user, "tarn-%s", share.gateway);
        d->result->last_id = d->sent.done;
        rc = look_here(d, &quiet, err);
    }
    if (rc != TN_OK || (quiet && !d->spec->dry_run)) {
        return rc == TN_OK ? protect(d, err) : rc;
    }
    if (d->spec->dry_run) {
        return plan(d, err);
    }
    rc = open_lake(d, err);
    if (rc == TN_OK) {
        rc = send_all(d, err);
        tn_lake_io_close(&d->lake);
    }
    return rc == TN_OK ? protect(d, err) : rc;
}

size_t tn_direct_memory(void)
{
    return sizeof(struct tn_direct) + tn_lake_io_size(LAKE_FILES) + 2 * (size_t)SHARE_SIZE;
}

tn_rc tn_direct_sync(const struct tn_direct_spec *spec, struct tn_worker *worker,
                     struct tn_direct_result *result, struct tn_err *err)
{
    struct tn_arena *arena = &worker->arena;
    size_t mark = tn_arena_mark(arena);
    void *memory;
    *result = (struct tn_direct_result){0};
    tn_rc rc = tn_arena_need(arena, sizeof(struct tn_direct), "sync", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_direct *d = memory;
    d->spec = spec;
    d->worker = worker;
    d->result = result;
    d->target = spec->target;
    d->newest = -1;
    d->tally.bounds = spec->bounds;
    rc = tn_name_table_root(arena, spec->table, &d->root, err);
    if (rc == TN_OK) {
        d->place = (struct tn_share_place){spec->table, d->root, spec->target, worker};
        rc = run(d, err);
        result->open = d->sent.safe < d->sent.done;
    }
    tn_arena_reset(arena, mark);
    return rc == TN_OK ? rc : tn_err_in(err, "sync %s", spec->table);
}
