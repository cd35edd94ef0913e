#include "upload/delta_private.h"

#include <errno.h>
#include <stdio.h>

#include "commit/expire.h"
#include "commit/tag.h"
#include "file/names.h"
#include "upload/lake_io.h"
#include "upload/side_io.h"

/* Expiry at the target, by the code that does it at home (lake_io.h). It takes an unlink that fails
 * for a file that leaks; here an answer may be lost, and then nothing more is removed: what is left
 * stands below EARLIEST, and the next sync goes on, as behind a cut. */

#define HOUR_MS (60 * 60 * INT64_C(1000))

enum {
    FILES = 32,
    SMALL_SIZE = 64 * 1024,        /* of a snapshot whose changelog outlives it */
    CACHE_SIZE = 16 * 1024 * 1024, /* of manifests that are read twice, on disk */
    SLACK = 10,                    /* that part more is let stand, since each run asks a lot */
    LOOKS = 200,                   /* a sync, for an OVERWRITE: each may be a GET */
};

/* Nobody's: whether something may be removed there is asked before something is. */
static const char PROBE[] = ".tarn-removes";

struct keep {
    struct tn_lake_io lake; /* first: the engine's io */
    struct tn_delta *d;
    struct tn_io *home;
    struct tn_side_io side;
    struct tn_io_vtable vtable; /* the lake's, but for what changes something there: */
    const struct tn_io_vtable *lakes;
    const struct tn_schema *schema;
    struct tn_options options; /* what the target keeps */
    bool expires;              /* the table says that less than all is kept */
    bool began;                /* something may have changed there */
    bool whole;                /* it's about snapshots: a cut leaves something to do */
    tn_rc failed;
    struct tn_err why;
};

static int64_t now_ms(const struct tn_delta *d)
{
    return d->worker->clock->vtable->now_ms(d->worker->clock);
}

static bool is_denied(tn_rc rc, const struct tn_err *err)
{
    return rc == TN_IO && err->os == EACCES;
}

/* ---- before the first change ---- */

/* Nobody else commits there: who does has another history, and it isn't ours to expire. */
static tn_rc check_newest(struct tn_delta *d, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    struct tn_bytes text;
    uint64_t size;
    size_t mark = tn_arena_mark(arena);
    const char *path =
        tn_name_numbered(arena, d->root, TN_DIR_SNAPSHOT, "snapshot-", d->ledger.have);
    const char *next =
        tn_name_numbered(arena, d->root, TN_DIR_SNAPSHOT, "snapshot-", d->ledger.have + 1);
    tn_rc rc = path && next ? d->target->vtable->read(d->target, path, TN_SNAPSHOT_SIZE_MAX, arena,
                                                      &text, err)
                            : tn_delta_no_room(err);
    rc = tn_target_if_hidden(rc, err);
    if (rc == TN_ABSENT) {
        rc = tn_err_set(err, TN_IO, 0, "%s: %s is gone: somebody removes the newest snapshot",
                        d->target->name, path);
    }
    if (rc == TN_INVALID ||
        (rc == TN_OK && !tn_hash_128_equal(tn_hash_128(text), d->ledger.hash))) {
        rc = tn_delta_diverged(d, path, err);
    }
    if (rc == TN_OK) {
        rc = d->target->vtable->stat(d->target, next, &size, err);
        rc = rc == TN_OK ? tn_delta_diverged(d, next, err) : rc == TN_ABSENT ? TN_OK : rc;
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc check_right(struct tn_delta *d, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_in(arena, d->root, TN_DIR_SNAPSHOT, PROBE);
    tn_rc rc = path ? d->target->vtable->remove(d->target, path, err) : tn_delta_no_room(err);
    tn_arena_reset(arena, mark);
    return rc;
}

/* A device that takes the mirror over raises the owner before it looks for what is there. */
static tn_rc begin(struct keep *k, struct tn_err *err)
{
    struct tn_delta *d = k->d;
    if (k->began) {
        return tn_delta_still_ours(d, err);
    }
    d->owner_ns -= TN_DELTA_MINUTE_NS;
    tn_rc rc = tn_delta_still_ours(d, err);
    rc = rc == TN_OK ? check_newest(d, err) : rc;
    rc = rc == TN_OK ? check_right(d, err) : rc;
    if (rc == TN_OK && k->whole && !d->ledger.below) {
        struct tn_io *io = d->worker->io;
        d->ledger.below = true;
        d->worker->io = k->home;
        rc = tn_delta_write_ledger(d, err);
        d->worker->io = io;
    }
    k->began = rc == TN_OK;
    return rc;
}

/* ---- the io that the engine gets ---- */

static struct keep *of(struct tn_io *io)
{
    return (struct keep *)(void *)io;
}

/* The first one that fails is the last that is tried. */
static tn_rc fail_once(struct keep *k, tn_rc rc, const struct tn_err *err)
{
    if (rc != TN_OK && rc != TN_ABSENT && k->failed == TN_OK) {
        k->failed = rc;
        k->why = *err;
    }
    return rc;
}

static tn_rc keep_unlink(struct tn_io *io, const char *path, struct tn_err *err)
{
    struct keep *k = of(io);
    if (k->failed != TN_OK) {
        *err = k->why;
        return k->failed;
    }
    tn_rc rc = begin(k, err);
    rc = rc == TN_OK ? k->lakes->unlink(io, path, err) : rc;
    return fail_once(k, rc, err);
}

static tn_rc keep_replace(struct tn_io *io, const char *path, const char *path_new,
                          struct tn_err *err)
{
    tn_rc rc = begin(of(io), err);
    return rc == TN_OK ? of(io)->lakes->replace(io, path, path_new, err) : rc;
}

static tn_rc keep_rename_new(struct tn_io *io, const char *path, const char *path_new,
                             struct tn_err *err)
{
    tn_rc rc = begin(of(io), err);
    return rc == TN_OK ? of(io)->lakes->rename_new(io, path, path_new, err) : rc;
}

static tn_rc open_lake(struct keep *k, struct tn_err *err)
{
    struct tn_delta *d = k->d;
    struct tn_arena *arena = &d->worker->arena;
    const char *name = tn_arena_format(arena, "%s.%s.keep", d->table, d->lake ? d->lake : "lake");
    struct tn_lake_io_spec spec = {.target = d->target,
                                   .scratch = &k->side.io,
                                   .arena = arena,
                                   .cache_size = CACHE_SIZE,
                                   .files = FILES,
                                   .small_size = SMALL_SIZE};
    tn_rc rc = name ? tn_side_io_open(&k->side, k->home, name, arena, err) : tn_delta_no_room(err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_lake_io_open(&k->lake, &spec, err);
    if (rc != TN_OK) {
        tn_side_io_close(&k->side);
        return rc;
    }
    k->lakes = k->lake.io.vtable;
    k->vtable = *k->lakes;
    k->vtable.unlink = keep_unlink;
    k->vtable.replace = keep_replace;
    k->vtable.rename_new = keep_rename_new;
    k->lake.io.vtable = &k->vtable;
    return TN_OK;
}

typedef tn_rc work_fn(struct keep *k, void *user, struct tn_err *err);

/* What was tried and failed is the outcome, whatever was made of it. */
static tn_rc with_lake(struct keep *k, work_fn *work, void *user, struct tn_err *err)
{
    struct tn_worker *worker = k->d->worker;
    k->home = worker->io;
    tn_rc rc = open_lake(k, err);
    if (rc != TN_OK) {
        return rc;
    }
    worker->io = &k->lake.io;
    rc = work(k, user, err);
    worker->io = k->home;
    tn_lake_io_close(&k->lake);
    tn_side_io_close(&k->side);
    if (k->failed != TN_OK) {
        *err = k->why;
        rc = k->failed;
    }
    if (rc == TN_ABSENT) { /* the target's: no matter of what the source lacks */
        err->code = rc = TN_CORRUPT;
    }
    return rc;
}

static tn_rc read_rules(struct keep *k, struct tn_err *err)
{
    struct tn_delta *d = k->d;
    struct tn_arena *arena = &d->worker->arena;
    tn_schemas_init(&d->schemas, d->worker->io, d->root, arena);
    tn_rc rc = tn_schemas_load(&d->schemas, d->schema_last, &k->schema, err);
    rc = rc == TN_OK ? tn_options_read_retention(k->schema, arena, &k->options, err) : rc;
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_retention kept = {1, INT32_MAX, INT64_MAX};
    k->expires = tn_options_lake_expires(&k->options);
    kept = k->expires ? tn_options_lake_retention(&k->options) : kept;
    k->options.snapshot_retained_min = kept.count_min;
    k->options.snapshot_retained_max = kept.count_max;
    k->options.snapshot_time_retained_ms = kept.time_ms;
    return TN_OK;
}

/* ---- snapshots ---- */

static bool is_too_old(const struct keep *k, int64_t now)
{
    int64_t kept = k->options.snapshot_time_retained_ms;
    int64_t slack = kept / SLACK < HOUR_MS ? kept / SLACK : HOUR_MS;
    int64_t age = now - k->d->ledger.first_ms;
    return k->d->ledger.first_ms == 0 || age - slack > kept;
}

static bool is_due(const struct keep *k)
{
    const struct tn_ledger *ledger = &k->d->ledger;
    int64_t now = now_ms(k->d);
    int64_t count = ledger->have - ledger->first + 1;
    int64_t max = k->options.snapshot_retained_max;
    if (now < ledger->wait_ms && ledger->wait_ms - now <= HOUR_MS) {
        return false;
    }
    return ledger->below ||
           (k->expires && (ledger->first == 0 || count > max + max / SLACK ||
                           (count > k->options.snapshot_retained_min && is_too_old(k, now))));
}

/* A limit lets one thing be done where nothing was sent, or none ever were. */
static bool may_go_on(const struct keep *k, bool any)
{
    return !tn_delta_is_over(k->d) || (k->d->result->files == 0 && !any);
}

/* Of those that the source still has nothing is asked there; expiry may be taking them here. */
static tn_rc read_either(struct keep *k, int64_t id, struct tn_snapshot *snapshot,
                         struct tn_err *err)
{
    struct tn_delta *d = k->d;
    struct tn_arena *arena = &d->worker->arena;
    tn_rc rc = TN_ABSENT;
    if (id >= d->source_first) {
        rc = tn_snapshot_read(k->home, d->root, id, arena, snapshot, err);
    }
    return rc == TN_ABSENT ? tn_snapshot_read(&k->lake.io, d->root, id, arena, snapshot, err) : rc;
}

/* From the newest one down, or on from where the last sync came to: those that were sent since
 * aren't one, or it would be known. */
static tn_rc find_overwrite(struct keep *k, struct tn_err *err)
{
    struct tn_delta *d = k->d;
    struct tn_ledger *ledger = &d->ledger;
    struct tn_arena *arena = &d->worker->arena;
    tn_rc rc = TN_OK;
    bool found = false;
    int64_t id = ledger->overwrite_next > 0 ? ledger->overwrite_next : ledger->have;
    for (int left = LOOKS; rc == TN_OK && !found && id > 0 && may_go_on(k, left < LOOKS); left--) {
        struct tn_snapshot snapshot;
        size_t mark = tn_arena_mark(arena);
        rc = left > 0 ? read_either(k, id, &snapshot, err) : TN_CANCELED;
        found = rc == TN_OK && strcmp(snapshot.commit_kind, "OVERWRITE") == 0;
        id -= rc == TN_OK && !found;
        tn_arena_reset(arena, mark);
    }
    ledger->overwrite_known = found || id == 0 || rc == TN_ABSENT;
    ledger->overwrite = found ? id : 0;
    ledger->overwrite_next = ledger->overwrite_known ? 0 : id;
    return rc == TN_ABSENT || rc == TN_CANCELED ? TN_OK : rc;
}

static tn_rc expire_once(struct keep *k, struct tn_expire_result *result, struct tn_err *err)
{
    struct tn_delta *d = k->d;
    const struct tn_expire_spec spec = {.root = d->root,
                                        .schema = k->schema,
                                        .options = &k->options,
                                        .settled = true,
                                        .overwrite_known = true,
                                        .overwrite = d->ledger.overwrite};
    tn_rc rc = tn_expire(&spec, d->worker, result, err);
    d->result->expired += result->snapshots;
    return rc == TN_OK ? k->failed : rc;
}

/* A snapshot that says no time is as old as can be. */
static tn_rc note_first(struct keep *k, int64_t first, struct tn_err *err)
{
    struct tn_delta *d = k->d;
    struct tn_arena *arena = &d->worker->arena;
    struct tn_snapshot snapshot;
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = tn_snapshot_read(&k->lake.io, d->root, first, arena, &snapshot, err);
    if (rc == TN_OK) {
        d->ledger.first = first;
        d->ledger.first_ms = snapshot.time_ms.present ? snapshot.time_ms.value : 0;
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc expire(struct keep *k, void *user, struct tn_err *err)
{
    struct tn_delta *d = k->d;
    struct tn_expire_result result = {.snapshots = 1};
    (void)user;
    bool any = !d->ledger.overwrite_known;
    tn_rc rc = any ? find_overwrite(k, err) : TN_OK;
    bool known = d->ledger.overwrite_known;
    while (rc == TN_OK && known && result.snapshots > 0 && may_go_on(k, any)) {
        rc = expire_once(k, &result, err);
        any = any || result.snapshots > 0;
    }
    if (rc == TN_OK && result.snapshots > 0) { /* the next sync goes on */
        d->result->limited = tn_delta_is_over(d);
        return d->target->vtable->settle(d->target, err);
    }
    rc = rc == TN_OK ? note_first(k, result.earliest_id, err) : rc;
    rc = rc == TN_OK ? d->target->vtable->settle(d->target, err) : rc;
    if (rc == TN_OK) {
        d->ledger.below = false;
        d->ledger.wait_ms = 0;                                           /* is_due looks at it */
        d->ledger.wait_ms = !any && is_due(k) ? now_ms(d) + HOUR_MS : 0; /* a consumer holds it */
    }
    return rc;
}

/* The tags here are there, too, so that expiry sees them; and all that was begun is sent. */
static bool may_keep(const struct tn_delta *d)
{
    return d->target && !d->spec->dry_run && !d->quiet && !d->result->limited &&
           d->ledger.have > 0 && d->ledger.sending == 0 && tn_delta_tags_stand(d);
}

static tn_rc make(struct tn_delta *d, struct keep **made, struct tn_err *err)
{
    void *memory = NULL;
    tn_rc rc = tn_arena_need(&d->worker->arena, sizeof **made, "sync", &memory, err);
    if (rc == TN_OK) {
        *made = memory;
        **made = (struct keep){.d = d};
        rc = read_rules(*made, err);
    }
    return rc;
}

/* What ends no sync: what others left there can't be read, there is no room, or somebody else is at
 * it. */
static bool waits(tn_rc rc, const struct tn_err *err)
{
    return is_denied(rc, err) || rc == TN_CORRUPT || rc == TN_AGAIN || rc == TN_EXISTS ||
           rc == TN_UNSUPPORTED || rc == TN_INVALID;
}

/* What can't be read is said by who is to do it. */
bool tn_delta_keep_is_due(struct tn_delta *d)
{
    struct tn_err ignored;
    struct keep *k;
    size_t mark = tn_arena_mark(&d->worker->arena);
    bool due = d->ledger.have > 0 && make(d, &k, &ignored) == TN_OK && is_due(k);
    tn_arena_reset(&d->worker->arena, mark);
    return due;
}

static tn_rc keep(struct tn_delta *d, struct tn_err *err)
{
    struct keep *k;
    tn_rc rc = make(d, &k, err);
    if (rc != TN_OK || !is_due(k)) {
        return rc;
    }
    k->whole = true;
    rc = with_lake(k, expire, NULL, err);
    if (waits(rc, err)) { /* all was sent, and this may get better */
        d->result->keep_denied = is_denied(rc, err);
        d->result->keep_err = *err;
        d->ledger.wait_ms = now_ms(d) + HOUR_MS;
        rc = TN_OK;
    }
    return rc == TN_OK ? tn_delta_write_ledger(d, err) : tn_err_in(err, "expire there");
}

tn_rc tn_delta_keep(struct tn_delta *d, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&d->worker->arena);
    tn_rc rc = may_keep(d) ? keep(d, err) : TN_OK;
    tn_arena_reset(&d->worker->arena, mark);
    return rc;
}

/* ---- a tag ---- */

static tn_rc remove_tag(struct keep *k, void *user, struct tn_err *err)
{
    const char *name = user;
    const struct tn_expire_spec spec = {.root = k->d->root,
                                        .schema = k->schema,
                                        .options = &k->options,
                                        .overwrite_known = k->d->ledger.overwrite_known,
                                        .overwrite = k->d->ledger.overwrite};
    struct tn_expire_result result = {0};
    tn_rc rc = tn_tag_remove(&spec, name, k->d->worker, &result, err);
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc remove_with_files(struct tn_delta *d, const char *name, struct tn_err *err)
{
    char text[TN_LAKE_IO_PATH_MAX];
    struct keep *k;
    size_t mark = tn_arena_mark(&d->worker->arena);
    tn_rc rc = make(d, &k, err);
    if (rc == TN_OK) {
        (void)snprintf(text, sizeof text, "%s", name);
        rc = with_lake(k, remove_tag, text, err);
    }
    tn_arena_reset(&d->worker->arena, mark);
    return rc;
}

tn_rc tn_delta_remove_tag(struct tn_delta *d, const char *name, struct tn_err *err)
{
    struct tn_delta_hint first;
    tn_rc rc = tn_delta_read_hint(d, "EARLIEST", &first, err);
    bool alone = d->ledger.have == 0 || first.id <= 1;
    if (rc == TN_OK && !alone) {
        rc = remove_with_files(d, name, err);
        alone = waits(rc, err); /* which files are its own can't be told: they are left */
    }
    if ((rc == TN_OK || waits(rc, err)) && alone) {
        size_t mark = tn_arena_mark(&d->worker->arena);
        const char *path =
            tn_arena_format(&d->worker->arena, "%s/" TN_DIR_TAG "tag-%s", d->root, name);
        rc = path ? d->target->vtable->remove(d->target, path, err) : tn_delta_no_room(err);
        tn_arena_reset(&d->worker->arena, mark);
    }
    return rc;
}
