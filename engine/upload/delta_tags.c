#include "upload/delta_private.h"

#include <errno.h>
#include <string.h>

#include "file/names.h"

/* ---- what the source has ---- */

static const char PREFIX[] = "tag-";

struct collection {
    struct tn_delta *d;
    uint32_t count_max;
    bool counting;
};

/* A name that a line of the record can't hold is no tag that travels. */
static const char *name_of_tag(const char *file_name, bool is_dir)
{
    const char *name = file_name + sizeof PREFIX - 1;
    bool is_tag = !is_dir && tn_name_begins(file_name, PREFIX) && name[0] != 0;
    return is_tag && !strchr(name, '\n') ? name : NULL;
}

static tn_rc collect(void *user, const char *file_name, bool is_dir, struct tn_err *err)
{
    struct collection *c = user;
    struct tn_tag_record *tags = &c->d->tags;
    const char *name = name_of_tag(file_name, is_dir);
    if (!name) {
        return TN_OK;
    }
    if (c->counting) {
        c->count_max++;
    } else if (tags->count < c->count_max) { /* one that was made meanwhile is for the next sync */
        const char *kept = tn_arena_text(&c->d->worker->arena, tn_bytes_of(name));
        if (!kept) {
            return tn_delta_no_room(err);
        }
        tags->lines[tags->count++] = (struct tn_tag_line){.name = kept};
    }
    return TN_OK;
}

static const char *path_of_tag(struct tn_delta *d, const char *name)
{
    return tn_arena_format(&d->worker->arena, "%s/" TN_DIR_TAG "%s%s", d->root, PREFIX, name);
}

/* In the arena. ABSENT: it is gone. */
static tn_rc read_tag(struct tn_delta *d, const char *name, struct tn_bytes *text,
                      struct tn_err *err)
{
    const char *path = path_of_tag(d, name);
    return path ? tn_io_read_all(d->worker->io, path, TN_SNAPSHOT_SIZE_MAX, &d->worker->arena, text,
                                 err)
                : tn_delta_no_room(err);
}

/* The sum doesn't depend on the order in which a folder tells its names. */
static void add_up(struct tn_delta *d, const struct tn_tag_line *tag)
{
    uint64_t name = tn_hash_64(tn_bytes_of(tag->name), 1);
    d->tags_sum.high += tag->hash.high * (name | 1);
    d->tags_sum.low += tag->hash.low ^ name;
}

static tn_rc hash_tags(struct tn_delta *d, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    uint32_t kept = 0;
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < d->tags.count; i++) {
        struct tn_bytes text;
        size_t mark = tn_arena_mark(arena);
        struct tn_tag_line tag = d->tags.lines[i];
        rc = read_tag(d, tag.name, &text, err);
        if (rc == TN_OK) {
            tag.hash = tn_hash_128(text);
            add_up(d, &tag);
            d->tags.lines[kept++] = tag;
        }
        rc = rc == TN_ABSENT ? TN_OK : rc;
        tn_arena_reset(arena, mark);
    }
    d->tags.count = kept;
    return rc;
}

tn_rc tn_delta_find_tags(struct tn_delta *d, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    struct tn_io *io = d->worker->io;
    struct collection c = {.d = d, .counting = true};
    void *memory;
    d->tags = (struct tn_tag_record){0};
    d->tags_sum = (struct tn_hash_128){0};
    const char *dir = tn_name_in(arena, d->root, TN_DIR_TAG, "");
    tn_rc rc = dir ? io->vtable->list(io, dir, collect, &c, err) : tn_delta_no_room(err);
    if (rc != TN_OK || c.count_max == 0) {
        return rc == TN_ABSENT ? TN_OK : rc;
    }
    rc = tn_arena_need(arena, c.count_max * sizeof *d->tags.lines, "tags", &memory, err);
    if (rc == TN_OK) {
        d->tags.lines = memory;
        c.counting = false;
        rc = io->vtable->list(io, dir, collect, &c, err);
    }
    return rc == TN_OK ? hash_tags(d, err) : rc == TN_ABSENT ? TN_OK : rc;
}

bool tn_delta_tags_stand(const struct tn_delta *d)
{
    const struct tn_ledger *ledger = &d->ledger;
    return ledger->tags_known && tn_hash_128_equal(ledger->tags, d->tags_sum) &&
           (ledger->tags_next == 0 || ledger->tags_next > ledger->have) &&
           (ledger->denied_ms == 0 || !tn_delta_is_hour_over(d, ledger->denied_ms));
}

/* ---- whether what a tag holds is there ---- */

struct tagging {
    struct tn_delta *d;
    struct tn_tag_record old;  /* what the target's record said, of what is ours there */
    struct tn_tag_record next; /* what it shall say; `due` ones are to be done */
    int64_t beyond;            /* the smallest snapshot of those that wait for theirs; 0: none */
    bool shorter;              /* lines of the record are of nothing of ours */
    bool changed;              /* `next` isn't what the record says now */
    bool unsettled;            /* a tag went while it was brought */
};

static bool same_text(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* Whether the target has its snapshot, and doesn't expire it. Newest ones stay. */
static tn_rc is_held(struct tn_delta *d, const struct tn_snapshot *tagged, bool *held,
                     struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    struct tn_bytes text;
    struct tn_snapshot there;
    struct tn_delta_hint first;
    *held = d->target && tagged->id == d->ledger.have;
    if (!d->target || *held) {
        return TN_OK;
    }
    tn_rc rc = tn_delta_read_hint(d, "EARLIEST", &first, err);
    if (rc != TN_OK || first.hidden || tagged->id < first.id) {
        return rc;
    }
    const char *path = tn_name_numbered(arena, d->root, TN_DIR_SNAPSHOT, "snapshot-", tagged->id);
    rc = path ? d->target->vtable->read(d->target, path, TN_SNAPSHOT_SIZE_MAX, arena, &text, err)
              : tn_delta_no_room(err);
    if (rc == TN_OK) {
        rc = tn_snapshot_decode(text, arena, &there, err);
        *held = rc == TN_OK && same_text(there.delta_manifest_list, tagged->delta_manifest_list) &&
                same_text(there.base_manifest_list, tagged->base_manifest_list);
    }
    return rc == TN_ABSENT || rc == TN_CORRUPT ? TN_OK : rc;
}

/* What it holds may have expired there, or never been there. */
static tn_rc bring_held(struct tn_delta *d, const struct tn_snapshot *tagged, struct tn_err *err)
{
    bool held;
    tn_rc rc = is_held(d, tagged, &held, err);
    return rc == TN_OK && !held ? tn_delta_bring_tagged(d, tagged, err) : rc;
}

/* ---- one tag ---- */

static tn_rc put_tag(struct tn_delta *d, const char *path, struct tn_bytes text, bool ours,
                     struct tn_err *err)
{
    return ours ? d->target->vtable->replace(d->target, path, text, err)
                : d->target->vtable->publish(d->target, path, text, err);
}

/* Expiry at the target that didn't see the tag is seen from here: of the two one comes second. To
 * bring what it holds may take long, and others may have made one of that name: `anothers`. */
static tn_rc bring_tag(struct tn_delta *d, const struct tn_tag_line *tag, struct tn_bytes text,
                       bool ours, bool *anothers, struct tn_err *err)
{
    struct tn_snapshot tagged;
    const char *path = path_of_tag(d, tag->name);
    tn_rc rc =
        path ? tn_snapshot_decode(text, &d->worker->arena, &tagged, err) : tn_delta_no_room(err);
    if (rc == TN_OK) {
        rc = bring_held(d, &tagged, err);
    }
    if (rc != TN_OK || d->spec->dry_run) {
        return rc;
    }
    rc = put_tag(d, path, text, ours, err);
    *anothers = rc == TN_CONFLICT && !ours;
    return rc == TN_OK ? bring_held(d, &tagged, err) : *anothers ? TN_OK : rc;
}

/* One that has gone, or is another one by now, is for the next sync. */
static tn_rc bring_or_leave(struct tagging *t, struct tn_tag_line *tag, bool ours, bool *anothers,
                            struct tn_err *err)
{
    struct tn_delta *d = t->d;
    struct tn_bytes text;
    struct tn_bytes again;
    struct tn_err ignored;
    tn_rc rc = read_tag(d, tag->name, &text, err);
    if (rc == TN_ABSENT || (rc == TN_OK && !tn_hash_128_equal(tn_hash_128(text), tag->hash))) {
        t->unsettled = true;
        return TN_OK;
    }
    if (rc == TN_OK) {
        rc = bring_tag(d, tag, text, ours, anothers, err);
    }
    bool missing = rc == TN_ABSENT || rc == TN_CORRUPT;
    if (missing &&
        (read_tag(d, tag->name, &again, &ignored) != TN_OK || !tn_bytes_equal(text, again))) {
        if (d->target) {
            d->target->vtable->drop(d->target);
        }
        t->unsettled = true;
        return TN_OK;
    }
    if (missing) {
        err->code = rc = TN_CORRUPT;
    }
    tag->due = rc != TN_OK;
    tag->unsure = tag->unsure && tag->due;
    d->result->tags += rc == TN_OK && !*anothers;
    d->result->tags_left += *anothers;
    return rc == TN_OK ? rc : tn_err_in(err, "tag %s", tag->name);
}

/* ---- whose it is ---- */

enum there { NONE, SOME, SOME_LARGE };

/* The target's tag of that name; `hash` is of SOME. */
static tn_rc look_there(struct tn_delta *d, const char *name, enum there *there,
                        struct tn_hash_128 *hash, struct tn_err *err)
{
    struct tn_bytes text;
    const char *path = path_of_tag(d, name);
    tn_rc rc = path ? d->target->vtable->read(d->target, path, TN_SNAPSHOT_SIZE_MAX,
                                              &d->worker->arena, &text, err)
                    : tn_delta_no_room(err);
    *there = rc == TN_OK ? SOME : rc == TN_INVALID ? SOME_LARGE : NONE;
    if (rc == TN_OK) {
        *hash = tn_hash_128(text);
    }
    return rc == TN_ABSENT || rc == TN_INVALID ? TN_OK : rc;
}

/* What a sync that was cut has left in the record. While ours is replaced its name is never free,
 * so what is there is ours; which of the two it is must be known before it may go. */
static tn_rc settle_line(struct tagging *t, struct tn_tag_line *line, bool *ours,
                         struct tn_err *err)
{
    struct tn_hash_128 hash;
    enum there there;
    bool goes = !tn_tag_record_find(&t->d->tags, line->name);
    *ours = true;
    if (!line->due || (!line->unsure && !goes)) {
        return TN_OK;
    }
    tn_rc rc = look_there(t->d, line->name, &there, &hash, err);
    if (rc == TN_OK) {
        *ours = there == SOME && (!line->unsure || tn_hash_128_equal(hash, line->hash));
        line->hash = *ours ? hash : line->hash;
        line->unsure = line->unsure && goes;
    }
    return rc;
}

/* Lines of what isn't ours there go. */
static tn_rc settle_record(struct tagging *t, struct tn_err *err)
{
    struct tn_arena *arena = &t->d->worker->arena;
    uint32_t kept = 0;
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < t->old.count; i++) {
        struct tn_tag_line line = t->old.lines[i];
        bool ours;
        size_t mark = tn_arena_mark(arena);
        rc = settle_line(t, &line, &ours, err);
        tn_arena_reset(arena, mark);
        t->old.lines[kept] = line;
        kept += ours;
    }
    t->shorter = kept < t->old.count;
    t->old.count = kept;
    return rc;
}

/* ---- all of them ---- */

/* One of that name which isn't ours stays as it is, and ours stays at home. */
static tn_rc is_anothers(struct tagging *t, const struct tn_tag_line *tag, bool *others,
                         struct tn_err *err)
{
    struct tn_hash_128 hash;
    enum there there = NONE;
    tn_rc rc = TN_OK;
    if (t->d->target && !tn_tag_record_find(&t->old, tag->name)) {
        rc = look_there(t->d, tag->name, &there, &hash, err);
    }
    *others = there != NONE;
    return rc;
}

/* Whether its snapshot is there by now. */
static tn_rc is_in_time(struct tagging *t, const struct tn_tag_line *tag, bool *in_time,
                        struct tn_err *err)
{
    struct tn_delta *d = t->d;
    struct tn_snapshot tagged;
    struct tn_bytes text;
    *in_time = false;
    tn_rc rc = read_tag(d, tag->name, &text, err);
    if (rc == TN_OK) {
        rc = tn_snapshot_decode(text, &d->worker->arena, &tagged, err);
        rc = rc == TN_OK ? rc : tn_err_in(err, "tag %s", tag->name);
    }
    if (rc == TN_OK) {
        int64_t have = d->spec->dry_run ? d->source_last : d->ledger.have;
        *in_time = tagged.id <= have;
        bool sooner = t->beyond == 0 || tagged.id < t->beyond;
        t->beyond = !*in_time && sooner ? tagged.id : t->beyond;
    }
    t->unsettled = t->unsettled || rc == TN_ABSENT;
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc plan_tag(struct tagging *t, const struct tn_tag_line *tag, struct tn_err *err)
{
    struct tn_tag_line *old = tn_tag_record_find(&t->old, tag->name);
    struct tn_tag_line line = *tag;
    bool in_time = true;
    bool others = false;
    tn_rc rc = TN_OK;
    line.due = !old || old->due || !tn_hash_128_equal(old->hash, tag->hash);
    line.unsure = !old;
    if (line.due) {
        rc = is_in_time(t, tag, &in_time, err);
    }
    if (rc == TN_OK && line.due && in_time) {
        rc = is_anothers(t, tag, &others, err);
    }
    t->d->result->tags_left += others;
    if (rc == TN_OK && in_time && !others) {
        t->next.lines[t->next.count++] = line;
    } else if (rc == TN_OK && old) { /* what was there stays until the new one can come */
        line = *old;
        line.due = false;
        t->next.lines[t->next.count++] = line;
    }
    return rc;
}

/* Those that the source has no more stay in the record, due, until they are gone. */
static tn_rc plan(struct tagging *t, struct tn_err *err)
{
    struct tn_delta *d = t->d;
    struct tn_arena *arena = &d->worker->arena;
    void *memory;
    size_t size = (size_t)(d->tags.count + t->old.count) * sizeof *t->next.lines;
    tn_rc rc = tn_arena_need(arena, size + 1, "tags", &memory, err);
    t->next.lines = memory;
    for (uint32_t i = 0; rc == TN_OK && i < d->tags.count; i++) {
        size_t mark = tn_arena_mark(arena);
        rc = plan_tag(t, &d->tags.lines[i], err);
        tn_arena_reset(arena, mark);
    }
    for (uint32_t i = 0; rc == TN_OK && i < t->old.count; i++) {
        if (!tn_tag_record_find(&d->tags, t->old.lines[i].name)) {
            struct tn_tag_line line = t->old.lines[i];
            line.due = line.unsure = true;
            t->next.lines[t->next.count++] = line;
        }
    }
    return rc;
}

static bool any_due(const struct tn_tag_record *record)
{
    bool due = false;
    for (uint32_t i = 0; i < record->count; i++) {
        due = due || record->lines[i].due;
    }
    return due;
}

/* Who may not remove anything there leaves it due, until tags change again or an hour is over. */
static tn_rc remove_tag(struct tn_delta *d, const char *name, bool *gone, struct tn_err *err)
{
    tn_rc rc = d->spec->dry_run ? TN_OK : tn_delta_remove_tag(d, name, err);
    bool denied = rc == TN_IO && err->os == EACCES;
    d->result->tags_removed += rc == TN_OK;
    d->result->tags_denied += denied;
    *gone = rc == TN_OK;
    return denied ? TN_OK : rc;
}

/* What is done is no more due, or not in the record any more. */
static tn_rc do_due(struct tagging *t, struct tn_err *err)
{
    struct tn_delta *d = t->d;
    struct tn_arena *arena = &d->worker->arena;
    uint32_t kept = 0;
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < t->next.count; i++) {
        struct tn_tag_line line = t->next.lines[i];
        size_t mark = tn_arena_mark(arena);
        bool here = tn_tag_record_find(&d->tags, line.name) != NULL;
        bool gone = false;
        if (line.due && here) {
            bool ours = tn_tag_record_find(&t->old, line.name) != NULL;
            rc = bring_or_leave(t, &line, ours, &gone, err);
        } else if (line.due) {
            rc = remove_tag(d, line.name, &gone, err);
        }
        tn_arena_reset(arena, mark);
        t->changed = t->changed || gone || line.due != t->next.lines[i].due;
        t->next.lines[kept] = line;
        kept += !gone;
    }
    t->next.count = kept;
    return rc;
}

/* ---- the order of it ---- */

/* A power cut here must not take back what is told there. */
static tn_rc settle_source(struct tn_delta *d, struct tn_err *err)
{
    struct tn_io *io = d->worker->io;
    const char *dir = tn_name_in(&d->worker->arena, d->root, TN_DIR_TAG, "");
    tn_rc rc = dir ? io->vtable->sync(io, &dir, 1, err) : tn_delta_no_room(err);
    return rc == TN_ABSENT ? TN_OK : rc;
}

static bool is_new(const struct tagging *t)
{
    bool same = t->next.count == t->old.count;
    for (uint32_t i = 0; same && i < t->next.count; i++) {
        const struct tn_tag_line *a = &t->old.lines[i];
        const struct tn_tag_line *b = &t->next.lines[i];
        same = a->due == b->due && a->unsure == b->unsure && tn_hash_128_equal(a->hash, b->hash) &&
               same_text(a->name, b->name);
    }
    return !same;
}

/* What was denied before, and is again, is in it already. */
static tn_rc write_record(struct tagging *t, struct tn_err *err)
{
    struct tn_delta *d = t->d;
    bool changed = t->changed;
    t->changed = false;
    return changed ? tn_tag_record_write(d->target, d->table, &t->next, &d->worker->arena, err)
                   : TN_OK;
}

static tn_rc bring_due(struct tagging *t, struct tn_err *err)
{
    struct tn_delta *d = t->d;
    if (d->spec->dry_run) {
        return do_due(t, err);
    }
    d->ledger.tags_known = false;
    t->changed = t->shorter || is_new(t);
    tn_rc rc = settle_source(d, err);
    rc = rc == TN_OK ? tn_delta_write_ledger(d, err) : rc;
    rc = rc == TN_OK ? tn_delta_still_ours(d, err) : rc;
    rc = rc == TN_OK ? write_record(t, err) : rc;
    rc = rc == TN_OK ? do_due(t, err) : rc;
    rc = rc == TN_OK ? d->target->vtable->settle(d->target, err) : rc;
    return rc == TN_OK ? write_record(t, err) : rc;
}

static tn_rc note_tags(struct tagging *t, struct tn_err *err)
{
    struct tn_delta *d = t->d;
    struct tn_clock *clock = d->worker->clock;
    struct tn_ledger *ledger = &d->ledger;
    ledger->tags_known = !t->unsettled;
    ledger->tags = d->tags_sum;
    ledger->tags_next = t->beyond;
    ledger->denied_ms = d->result->tags_denied > 0 ? clock->vtable->now_ms(clock) : 0;
    return tn_delta_write_ledger(d, err);
}

tn_rc tn_delta_bring_tags(struct tn_delta *d, struct tn_err *err)
{
    struct tagging t = {.d = d};
    if (tn_delta_tags_stand(d)) {
        return TN_OK;
    }
    d->result->tags_looked = true;
    d->at = d->source_last; /* what a tag lacks is no matter of expiry */
    tn_rc rc = d->target ? tn_tag_record_read(d->target, d->table, !d->spec->dry_run,
                                              &d->worker->arena, &t.old, err)
                         : TN_OK;
    rc = rc == TN_OK ? settle_record(&t, err) : rc;
    rc = rc == TN_OK ? plan(&t, err) : rc;
    if (rc == TN_OK && (t.shorter || any_due(&t.next))) {
        rc = bring_due(&t, err);
    }
    return rc == TN_OK && !d->spec->dry_run ? note_tags(&t, err) : rc;
}
