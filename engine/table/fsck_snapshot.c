#include <inttypes.h>

#include "file/names.h"
#include "table/fsck_private.h"

/* What the next snapshot is held against. */
struct before {
    bool present;
    int64_t id;
    int64_t time_ms;
    struct tn_json_i64 total;
};

/* One snapshot, or a tag: what it says of itself. */
struct subject {
    struct tn_fsck *f;
    const char *path;
    const struct tn_snapshot *snapshot;
    const struct before *before; /* NULL for a tag */
    bool rebuilt;                /* what is live was gathered anew */
    bool tag;
};

static struct tn_fsck_walk walk_of(const struct subject *s, unsigned actions)
{
    return (struct tn_fsck_walk){.f = s->f, .actions = actions};
}

static tn_rc walk_base(const struct subject *s, struct tn_fsck_walk *walk, unsigned actions,
                       struct tn_err *err)
{
    *walk = walk_of(s, actions);
    return tn_fsck_walk(walk, s->snapshot->base_manifest_list, s->snapshot->base_manifest_list_size,
                        err);
}

static tn_rc walk_delta(const struct subject *s, struct tn_fsck_walk *walk, unsigned actions,
                        struct tn_err *err)
{
    *walk = walk_of(s, actions);
    return tn_fsck_walk(walk, s->snapshot->delta_manifest_list,
                        s->snapshot->delta_manifest_list_size, err);
}

/* ---- base ---- */

static tn_rc say_difference(const struct subject *s, uint64_t count, struct tn_err *err)
{
    struct tn_fsck_walk walk;
    uint64_t before = s->f->live.count;
    tn_rc rc = walk_base(s, &walk, TN_FSCK_DIFFER | TN_FSCK_EVERY, err);
    if (rc != TN_OK) {
        return rc;
    }
    return tn_fsck_problem(s->f, err, s->path,
                           "base manifests hold %" PRIu64 " files, not the %" PRIu64
                           " of the snapshot before%s%s",
                           count, before, walk.odd[0] ? "; they differ in " : "", walk.odd);
}

/* Equal sums of identities are equal sets, since what was live holds nothing twice. Of its files
 * the delta may delete some: those are the snapshot's before, and were looked at with it. */
static tn_rc compare_base(const struct subject *s, bool *same, struct tn_err *err)
{
    struct tn_fsck_walk walk;
    const struct tn_fsck_live *live = &s->f->live;
    *same = false;
    tn_rc rc = walk_base(s, &walk, TN_FSCK_FILES | TN_FSCK_AGAIN, err);
    if (rc != TN_OK || walk.broken) {
        return rc;
    }
    *same = walk.count == live->count && walk.sum.high == live->sum.high &&
            walk.sum.low == live->sum.low;
    return *same ? TN_OK : say_difference(s, walk.count, err);
}

static tn_rc gather_base(struct subject *s, struct tn_err *err)
{
    struct tn_fsck_walk walk;
    tn_fsck_forget(s->f);
    s->rebuilt = true;
    tn_rc rc = walk_base(s, &walk, TN_FSCK_APPLY | TN_FSCK_EVERY, err);
    s->f->live.known = !walk.broken;
    if (rc == TN_OK && walk.dead > 0 && !walk.broken) {
        rc = tn_fsck_problem(s->f, err, s->path,
                             "base manifests delete %" PRIu64 " files that they never add, as %s",
                             walk.dead, walk.odd);
    }
    return rc;
}

static tn_rc check_base(struct subject *s, struct tn_err *err)
{
    bool same = false;
    tn_rc rc = s->f->live.known ? compare_base(s, &same, err) : TN_OK;
    return rc != TN_OK || same ? rc : gather_base(s, err);
}

/* ---- counts ---- */

static tn_rc check_count(const struct subject *s, const char *name, struct tn_json_i64 said,
                         uint64_t real, struct tn_err *err)
{
    if (!said.present || said.value == (int64_t)real) {
        return TN_OK;
    }
    return tn_fsck_problem(s->f, err, s->path, "%s %" PRId64 ", the manifests hold %" PRId64, name,
                           said.value, (int64_t)real);
}

static tn_rc check_counts(const struct subject *s, uint64_t delta, struct tn_err *err)
{
    const struct tn_snapshot *now = s->snapshot;
    tn_rc rc = check_count(s, "totalRecordCount", now->total_record_count, s->f->live.rows, err);
    if (rc == TN_OK) {
        rc = check_count(s, "deltaRecordCount", now->delta_record_count, delta, err);
    }
    bool all = s->before && s->before->present && s->before->total.present &&
               now->total_record_count.present && now->delta_record_count.present;
    if (rc != TN_OK || !all ||
        (uint64_t)s->before->total.value + (uint64_t)now->delta_record_count.value ==
            (uint64_t)now->total_record_count.value) {
        return rc;
    }
    return tn_fsck_problem(
        s->f, err, s->path, "totalRecordCount %" PRId64 " is not %" PRId64 " + %" PRId64,
        now->total_record_count.value, s->before->total.value, now->delta_record_count.value);
}

/* ---- delta ---- */

/* A snapshot that follows another reads each new file as its entry comes by. For the first, files
 * that its delta deletes may be gone already, so all entries come before the first file. */
static tn_rc check_delta(struct subject *s, struct tn_err *err)
{
    struct tn_fsck *f = s->f;
    struct tn_fsck_walk walk;
    unsigned files = s->rebuilt ? 0 : TN_FSCK_FILES;
    bool known = f->live.known;
    tn_rc rc = walk_delta(s, &walk, TN_FSCK_APPLY | TN_FSCK_STRICT | TN_FSCK_EVERY | files, err);
    uint64_t delta = walk.rows;
    f->live.known = known && !walk.broken;
    if (rc == TN_OK && f->live.known) {
        rc = check_counts(s, delta, err);
    }
    if (rc == TN_OK && s->rebuilt) {
        rc = walk_base(s, &walk, TN_FSCK_FILES | TN_FSCK_EVERY, err);
        rc = rc == TN_OK ? walk_delta(s, &walk, TN_FSCK_FILES | TN_FSCK_EVERY, err) : rc;
    }
    return rc == TN_OK && !f->left_out ? tn_fsck_runs_check(f, s->path, err) : rc;
}

/* ---- what else a snapshot names ---- */

/* A branch begins with a snapshot of the main table, whose changelog goes with that one. */
static tn_rc went_with_the_table(const struct subject *s, bool *gone, struct tn_err *err)
{
    struct tn_fsck *f = s->f;
    size_t mark = tn_arena_mark(&f->worker->arena);
    const char *path = tn_name_in(&f->worker->arena, f->root, TN_DIR_MANIFEST,
                                  s->snapshot->changelog_manifest_list);
    uint64_t size;
    tn_rc rc = path ? f->io->vtable->stat(f->io, path, &size, err) : tn_fsck_no_path(f, err);
    *gone = rc == TN_ABSENT && f->home != f->root;
    if (*gone) {
        rc = tn_fsck_note(f, err, s->path, "its changelog has expired in the main table");
    }
    tn_arena_reset(&f->worker->arena, mark);
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc check_changelog(struct subject *s, struct tn_err *err)
{
    const struct tn_snapshot *now = s->snapshot;
    struct tn_fsck_walk walk = walk_of(s, TN_FSCK_CHANGELOG | TN_FSCK_EVERY);
    if (s->tag) {
        return TN_OK; /* a tag doesn't keep it */
    }
    if (!now->changelog_manifest_list) {
        return now->changelog_record_count.present && now->changelog_record_count.value != 0
                   ? tn_fsck_problem(s->f, err, s->path,
                                     "changelogRecordCount %" PRId64 " without a changelog",
                                     now->changelog_record_count.value)
                   : TN_OK;
    }
    bool gone;
    tn_rc rc = went_with_the_table(s, &gone, err);
    if (rc != TN_OK || gone) {
        return rc;
    }
    rc = tn_fsck_walk(&walk, now->changelog_manifest_list, now->changelog_manifest_list_size, err);
    return rc == TN_OK && !walk.broken
               ? check_count(s, "changelogRecordCount", now->changelog_record_count, walk.rows, err)
               : rc;
}

enum { STATISTICS_SIZE_MAX = 1 << 20 };

static tn_rc check_statistics(struct subject *s, struct tn_err *err)
{
    struct tn_fsck *f = s->f;
    struct tn_arena *arena = &f->worker->arena;
    if (!s->snapshot->statistics) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_in(arena, f->root, TN_DIR_STATISTICS, s->snapshot->statistics);
    if (!path) {
        return tn_fsck_no_path(f, err);
    }
    struct tn_bytes text;
    struct cJSON *json = NULL;
    tn_rc rc = tn_fsck_reach(f, path, err);
    if (rc == TN_OK) {
        rc = tn_io_read_all(f->io, path, STATISTICS_SIZE_MAX, arena, &text, err);
        rc = rc == TN_OK ? tn_json_open(text, arena, &json, err) : rc;
        rc = rc == TN_INVALID ? TN_UNSUPPORTED : rc; /* too large to be looked at */
        tn_json_close(json);
        rc = tn_fsck_damage(f, path, NULL, rc, err);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc check_index(struct subject *s, struct tn_err *err)
{
    if (!s->snapshot->index_manifest) {
        return TN_OK;
    }
    tn_rc rc = tn_fsck_index(s->f, s->snapshot->index_manifest, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_err_set(err, TN_UNSUPPORTED, 0, "what index files say is not read");
    return tn_fsck_damage(s->f, s->path, NULL, rc, err);
}

static tn_rc check_schema(struct subject *s, struct tn_err *err)
{
    struct tn_fsck *f = s->f;
    uint64_t size;
    size_t mark = tn_arena_mark(&f->worker->arena);
    const char *path = tn_name_numbered(&f->worker->arena, f->home, TN_DIR_SCHEMA, "schema-",
                                        s->snapshot->schema_id);
    tn_rc rc = path ? f->io->vtable->stat(f->io, path, &size, err) : tn_fsck_no_path(f, err);
    if (rc == TN_ABSENT) {
        rc = tn_fsck_problem(f, err, s->path, "no schema %" PRId64, s->snapshot->schema_id);
    }
    tn_arena_reset(&f->worker->arena, mark);
    return rc;
}

static tn_rc check_subject(struct subject *s, struct tn_err *err)
{
    static tn_rc (*const steps[])(struct subject *, struct tn_err *) = {
        check_schema, check_base, check_delta, check_changelog, check_statistics, check_index};
    tn_rc rc = TN_OK;
    for (size_t i = 0; rc == TN_OK && !s->f->left_out && i < sizeof steps / sizeof steps[0]; i++) {
        rc = steps[i](s, err);
    }
    return rc;
}

/* ---- all snapshots ---- */

/* A tag with the lists and counts of a snapshot that was checked says nothing new. */
static struct tn_hash_128 lists_hash(const struct tn_snapshot *s)
{
    struct tn_hash_128 a = tn_hash_128(tn_bytes_of(s->base_manifest_list));
    struct tn_hash_128 b = tn_hash_128(tn_bytes_of(s->delta_manifest_list));
    uint64_t counts =
        (uint64_t)s->total_record_count.value * 31 + (uint64_t)s->delta_record_count.value;
    a.high = a.high * 31 + b.high + counts * UINT64_C(0x9e3779b97f4a7c15);
    a.low = a.low * 31 + b.low + (uint64_t)s->schema_id * UINT64_C(0xc2b2ae3d27d4eb4f);
    return a;
}

/* Checks it, and remembers its lists when all of it was there. */
static tn_rc check_and_note(struct subject *s, struct tn_err *err)
{
    struct tn_fsck *f = s->f;
    struct tn_hash_128 *slot;
    bool is_new;
    uint32_t missed = f->missed;
    tn_rc rc = check_subject(s, err);
    return rc == TN_OK && f->missed == missed
               ? tn_fsck_see(f, TN_FSCK_LISTS, lists_hash(s->snapshot), &slot, &is_new, err)
               : rc;
}

static tn_rc check_sequel(struct tn_fsck *f, const char *path, const struct tn_snapshot *s,
                          const struct before *before, struct tn_err *err)
{
    if (!before->present) {
        return TN_OK;
    }
    if (s->id != before->id + 1) {
        bool gone; /* then those between went with it */
        f->live.known = false;
        tn_rc rc = tn_fsck_expired(f, before->id, &gone, err);
        return rc != TN_OK || gone
                   ? rc
                   : tn_fsck_problem(f, err, path, "snapshots jump from %" PRId64 " to %" PRId64,
                                     before->id, s->id);
    }
    return s->time_ms.present && s->time_ms.value < before->time_ms
               ? tn_fsck_note(f, err, path, "time goes back")
               : TN_OK;
}

static tn_rc check_read(struct tn_fsck *f, const char *path, const struct tn_snapshot *snapshot,
                        struct before *before, struct tn_err *err)
{
    struct subject s = {.f = f, .path = path, .snapshot = snapshot, .before = before};
    tn_rc rc = check_sequel(f, path, snapshot, before, err);
    before->present = before->present && snapshot->id == before->id + 1;
    rc = rc == TN_OK ? check_and_note(&s, err) : rc;
    *before =
        (struct before){true, snapshot->id, snapshot->time_ms.value, snapshot->total_record_count};
    return rc;
}

/* Reads one and checks it; one that can't be read or that went breaks the chain. */
static tn_rc check_one(struct tn_fsck *f, int64_t id, struct before *before, struct tn_err *err)
{
    struct tn_arena *arena = &f->worker->arena;
    struct tn_snapshot snapshot;
    const char *path = tn_name_numbered(arena, f->home, TN_DIR_SNAPSHOT, "snapshot-", id);
    if (!path) {
        return tn_fsck_no_path(f, err);
    }
    tn_fsck_subject(f, path, id);
    tn_rc rc = tn_snapshot_read(f->io, f->home, id, arena, &snapshot, err);
    bool whole = rc == TN_OK;
    rc = whole ? check_read(f, path, &snapshot, before, err)
               : tn_fsck_damage(f, path, NULL, rc, err);
    if (!whole || f->left_out) {
        f->live.known = false;
        before->present = false;
    }
    if (rc == TN_OK && f->left_out) {
        return tn_fsck_note_left_out(f, err);
    }
    f->result->snapshots++;
    return rc;
}

enum { HINT_SIZE_MAX = 64 };

/* A writer that goes on moves both hints; one that names no snapshot is wrong. */
static tn_rc check_ahead(struct tn_fsck *f, const char *path, const char *name, int64_t id,
                         int64_t real, struct tn_err *err)
{
    uint64_t size;
    const char *named =
        tn_name_numbered(&f->worker->arena, f->home, TN_DIR_SNAPSHOT, "snapshot-", id);
    tn_rc rc = named ? f->io->vtable->stat(f->io, named, &size, err) : tn_fsck_no_path(f, err);
    if (rc != TN_ABSENT) {
        return rc;
    }
    return strcmp(name, "LATEST") == 0
               ? tn_fsck_problem(f, err, path,
                                 "hint LATEST is %" PRId64 ", the last snapshot %" PRId64, id, real)
               : tn_fsck_note(f, err, path, "hint %s is %" PRId64 ", actual %" PRId64, name, id,
                              real);
}

/* Only digits: official readers parse nothing else. -1: none, or a problem that was told. */
static tn_rc check_hint(struct tn_fsck *f, const char *name, int64_t real, struct tn_err *err)
{
    struct tn_arena *arena = &f->worker->arena;
    size_t mark = tn_arena_mark(arena);
    struct tn_bytes text = {0};
    int64_t id = 0;
    const char *path = tn_name_in(arena, f->home, TN_DIR_SNAPSHOT, name);
    if (!path) {
        return tn_fsck_no_path(f, err);
    }
    tn_rc rc = tn_io_read_all(f->io, path, HINT_SIZE_MAX, arena, &text, err);
    bool digits = rc == TN_OK && text.size > 0 && text.size < 19;
    for (size_t i = 0; digits && i < text.size; i++) {
        digits = text.data[i] >= '0' && text.data[i] <= '9';
        id = id * 10 + (text.data[i] - '0');
    }
    if (rc == TN_ABSENT) {
        rc = TN_OK;
    } else if (rc == TN_OK && !digits) {
        rc = tn_fsck_problem(f, err, path, "hint %s is not a number", name);
    } else if (rc == TN_OK && id < real) {
        rc = tn_fsck_note(f, err, path, "hint %s is %" PRId64 ", actual %" PRId64, name, id, real);
    } else if (rc == TN_OK && id > real) {
        rc = check_ahead(f, path, name, id, real, err);
    }
    rc = tn_fsck_damage(f, path, NULL, rc, err);
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc reach_name(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct tn_fsck *f = user;
    return is_dir ? TN_OK : tn_fsck_reach_in(f, f->home, TN_DIR_SNAPSHOT, name, err);
}

/* Snapshots below EARLIEST are on their way out; what they still name is no orphan yet. */
static tn_rc reach_expiring(struct tn_fsck *f, int64_t id, struct tn_err *err)
{
    struct tn_arena *arena = &f->worker->arena;
    size_t mark = tn_arena_mark(arena);
    struct tn_snapshot snapshot;
    tn_rc rc = tn_snapshot_read(f->io, f->home, id, arena, &snapshot, err);
    if (rc == TN_OK) {
        struct tn_fsck_walk walk;
        struct subject s = {.f = f, .path = "", .snapshot = &snapshot};
        rc = walk_base(&s, &walk, TN_FSCK_REACH | TN_FSCK_EVERY, err);
        rc = rc == TN_OK ? walk_delta(&s, &walk, TN_FSCK_REACH | TN_FSCK_EVERY, err) : rc;
    } else if (rc != TN_IO) {
        rc = TN_OK;
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc pass_expiring(struct tn_fsck *f, int64_t end, struct tn_err *err)
{
    int64_t id = 0;
    tn_rc rc = tn_fsck_next_number(f, TN_DIR_SNAPSHOT, "snapshot-", 0, &id, err);
    while (rc == TN_OK && id > 0 && id < end) {
        rc = f->spec->orphans ? reach_expiring(f, id, err) : TN_OK;
        if (rc == TN_OK) {
            rc = tn_fsck_note(f, err, f->home, "snapshot %" PRId64 " is being expired", id);
        }
        if (rc == TN_OK) {
            rc = tn_fsck_next_number(f, TN_DIR_SNAPSHOT, "snapshot-", id, &id, err);
        }
    }
    return rc;
}

enum { CHASES_MAX = 20 }; /* snapshots that went, one behind the other, before one was checked */

/* Those that there were at the start; beyond, until one has been checked. A writer may go on for
 * ever. */
static tn_rc check_from(struct tn_fsck *f, int64_t first, int64_t last, struct tn_err *err)
{
    struct before before = {0};
    uint32_t chases = 0;
    int64_t id = first;
    tn_rc rc = TN_OK;
    tn_fsck_forget(f);
    f->latest = 0;
    while (rc == TN_OK && id > 0 && (id <= last || f->latest == 0)) {
        size_t mark = tn_arena_mark(&f->worker->arena);
        rc = check_one(f, id, &before, err);
        tn_arena_reset(&f->worker->arena, mark);
        f->latest = f->left_out ? f->latest : id;
        chases = f->left_out ? chases + 1 : 0;
        if (rc == TN_OK && chases == CHASES_MAX) {
            rc = tn_fsck_stop(f, tn_err_set(err, TN_IO, 0,
                                            "snapshots expire faster than they can "
                                            "be checked; please try again"));
        }
        if (rc == TN_OK) {
            rc = tn_fsck_next_number(f, TN_DIR_SNAPSHOT, "snapshot-", id, &id, err);
        }
    }
    tn_fsck_subject(f, NULL, 0);
    return rc;
}

tn_rc tn_fsck_snapshots(struct tn_fsck *f, struct tn_err *err)
{
    int64_t first = 0;
    int64_t last = 0;
    tn_rc rc =
        f->spec->orphans ? tn_fsck_list(f, f->home, TN_DIR_SNAPSHOT, reach_name, f, err) : TN_OK;
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_snapshot_earliest(f->io, f->home, &f->worker->arena, &first, err);
    if (rc == TN_ABSENT) {
        f->latest = 0;
        return TN_OK;
    }
    rc = rc == TN_OK ? tn_snapshot_latest(f->io, f->home, &f->worker->arena, &last, err) : rc;
    rc = tn_fsck_damage(f, f->home, NULL, rc, err);
    rc = rc == TN_OK ? check_from(f, first, last, err) : rc;
    rc = rc == TN_OK ? check_hint(f, "LATEST", f->latest, err) : rc;
    rc = rc == TN_OK ? check_hint(f, "EARLIEST", first, err) : rc;
    return rc == TN_OK ? pass_expiring(f, first, err) : rc;
}

/* ---- tags ---- */

static tn_rc check_tag_of(struct tn_fsck *f, const char *path, const struct tn_snapshot *snapshot,
                          struct tn_err *err)
{
    struct subject s = {.f = f, .path = path, .snapshot = snapshot, .tag = true};
    f->live.known = false;
    tn_rc rc =
        tn_fsck_seen(f, TN_FSCK_LISTS, lists_hash(snapshot)) ? TN_OK : check_and_note(&s, err);
    f->live.known = false;
    return rc == TN_OK && f->left_out ? tn_fsck_note_left_out(f, err) : rc;
}

static tn_rc check_tag(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct tn_fsck *f = user;
    struct tn_arena *arena = &f->worker->arena;
    if (is_dir || strncmp(name, "tag-", 4) != 0) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    struct tn_snapshot snapshot;
    const char *path = tn_name_in(arena, f->home, TN_DIR_TAG, name);
    if (!path) {
        return tn_fsck_no_path(f, err);
    }
    f->result->tags++;
    tn_fsck_subject(f, path, 0);
    tn_rc rc = tn_fsck_reach(f, path, err);
    if (rc == TN_OK) {
        rc = tn_snapshot_read_path(f->io, path, arena, &snapshot, err);
        rc = rc == TN_OK ? check_tag_of(f, path, &snapshot, err)
                         : tn_fsck_damage(f, path, NULL, rc, err);
    }
    tn_fsck_subject(f, NULL, 0);
    tn_arena_reset(arena, mark);
    return rc;
}

tn_rc tn_fsck_tags(struct tn_fsck *f, struct tn_err *err)
{
    return tn_fsck_list(f, f->home, TN_DIR_TAG, check_tag, f, err);
}

/* ---- changelogs that outlive their snapshots ---- */

/* Without a changelog producer the rows that an APPEND added are its changelog. Its state is gone,
 * but for the lists, which go with the record. */
static tn_rc check_delta_kept(struct subject *s, struct tn_err *err)
{
    struct tn_fsck *f = s->f;
    struct tn_fsck_walk walk;
    tn_rc rc = TN_OK;
    if (f->spec->orphans) {
        rc = walk_base(s, &walk, TN_FSCK_REACH | TN_FSCK_EVERY, err);
        rc = rc == TN_OK ? walk_delta(s, &walk, TN_FSCK_REACH | TN_FSCK_EVERY, err) : rc;
    }
    return rc == TN_OK && strcmp(s->snapshot->commit_kind, "APPEND") == 0
               ? walk_delta(s, &walk, TN_FSCK_CHANGELOG | TN_FSCK_EVERY, err)
               : rc;
}

static tn_rc check_changelog_file(struct tn_fsck *f, const char *path, int64_t id,
                                  struct tn_err *err)
{
    struct tn_snapshot snapshot;
    tn_rc rc = tn_snapshot_read_path(f->io, path, &f->worker->arena, &snapshot, err);
    if (rc != TN_OK) {
        return tn_fsck_damage(f, path, NULL, rc, err);
    }
    struct subject s = {.f = f, .path = path, .snapshot = &snapshot};
    if (snapshot.id != id) {
        rc = tn_fsck_problem(f, err, path, "holds id %" PRId64, snapshot.id);
    }
    if (rc == TN_OK && f->options.changelog_producer == TN_CHANGELOG_NONE) {
        return check_delta_kept(&s, err);
    }
    return rc == TN_OK && snapshot.changelog_manifest_list ? check_changelog(&s, err) : rc;
}

static tn_rc check_changelog_name(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct tn_fsck *f = user;
    size_t mark = tn_arena_mark(&f->worker->arena);
    const char *path = tn_name_in(&f->worker->arena, f->home, TN_DIR_CHANGELOG, name);
    if (!path) {
        return tn_fsck_no_path(f, err);
    }
    tn_rc rc = is_dir ? TN_OK : tn_fsck_reach(f, path, err);
    int64_t id = tn_name_number(name, "changelog-");
    if (rc == TN_OK && !is_dir && id >= f->changelog_first && id > 0) {
        f->result->changelogs++;
        tn_fsck_subject(f, path, 0);
        rc = check_changelog_file(f, path, id, err);
        tn_fsck_subject(f, NULL, 0);
    }
    tn_arena_reset(&f->worker->arena, mark);
    return rc;
}

/* One below EARLIEST is being expired, and may be in pieces. */
tn_rc tn_fsck_changelogs(struct tn_fsck *f, struct tn_err *err)
{
    struct tn_changelog_range range = {0};
    tn_rc rc = tn_changelog_range(f->io, f->home, &f->worker->arena, &range, err);
    if (rc != TN_OK) {
        return rc == TN_ABSENT ? TN_OK : tn_fsck_stop(f, rc);
    }
    f->changelog_first = range.first;
    return tn_fsck_list(f, f->home, TN_DIR_CHANGELOG, check_changelog_name, f, err);
}
