#include "upload/gather_pauser.h"

#include <stdio.h>

#include "upload/s3_target.h"

/* What a store still does with a request whose connection was closed, and a snapshot's bytes. */
enum { QUIET_MARGIN_MS = 30 * 1000 };
_Static_assert(TN_PAUSE_QUIET_MS >= TN_PAUSE_FRESH_MS + TN_S3_TARGET_PATIENCE_MS + QUIET_MARGIN_MS,
               "who has read before the pause may still be under way when it is called quiet");

/* A beat takes a GET and a swap, of a GET and a PUT, and each may take a store's whole patience. */
_Static_assert(TN_PAUSE_TTL_MS >= 2 * TN_S3_TARGET_PATIENCE_MS + 2 * TN_PAUSE_BEAT_MS,
               "a mark runs out while its beat is under way");

enum { TRIES_MAX = 20 /* of a swap that others were faster with */ };

#define MS_NS INT64_C(1000000)

struct work {
    struct tn_target *target;
    struct tn_arena *scratch;
    const char *path;
    struct tn_bytes was; /* data NULL: nothing is there */
    struct tn_pause_marks *marks;
};

static tn_rc no_room(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "no memory for a pause");
}

/* ---- reading and writing ---- */

static tn_rc format(const struct work *w, struct tn_bytes *text, struct tn_err *err)
{
    struct tn_buf buf;
    void *memory;
    tn_rc rc = tn_arena_need(w->scratch, TN_PAUSE_TEXT_MAX, "a pause", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_buf_init(&buf, memory, TN_PAUSE_TEXT_MAX);
    tn_pause_format(w->marks, &buf);
    *text = tn_buf_bytes(&buf);
    return buf.overflow
               ? tn_err_set(err, TN_FULL, 0, "%s: more marks of pauses than it takes", w->path)
               : TN_OK;
}

/* What is larger than any pause can't be read, so nothing can be swapped for it. */
static tn_rc empty(struct work *w, struct tn_err *err)
{
    w->marks->count = 0;
    tn_rc rc = format(w, &w->was, err);
    return rc == TN_OK ? w->target->vtable->replace(w->target, w->path, w->was, err) : rc;
}

/* What nobody can read is nobody's. */
static tn_rc read_marks(struct work *w, const char *table, struct tn_err *err)
{
    w->path = tn_pause_path(w->scratch, table);
    w->marks = tn_arena_take(w->scratch, sizeof *w->marks);
    w->was = (struct tn_bytes){NULL, 0};
    if (!w->path || !w->marks) {
        return no_room(err);
    }
    tn_rc rc =
        w->target->vtable->read(w->target, w->path, TN_PAUSE_TEXT_MAX, w->scratch, &w->was, err);
    if (rc == TN_OK) {
        rc = tn_pause_parse(w->was, w->scratch, w->marks, err);
        if (rc == TN_CORRUPT) {
            w->marks->count = 0;
            rc = TN_OK;
        }
    } else if (rc == TN_INVALID) {
        rc = empty(w, err);
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc write_marks(const struct work *w, struct tn_err *err)
{
    struct tn_bytes text;
    tn_rc rc = format(w, &text, err);
    return rc == TN_OK ? w->target->vtable->swap(w->target, w->path, w->was, text, err) : rc;
}

static struct tn_pause_mark *find(struct tn_pause_marks *marks, const char *id)
{
    for (uint32_t i = 0; i < marks->count; i++) {
        if (strcmp(marks->items[i].id, id) == 0) {
            return &marks->items[i];
        }
    }
    return NULL;
}

static void take_out(struct tn_pause_marks *marks, const struct tn_pause_mark *mark)
{
    uint32_t at = (uint32_t)(mark - marks->items);
    marks->count--;
    memmove(&marks->items[at], &marks->items[at + 1], (marks->count - at) * sizeof marks->items[0]);
}

/* ---- others ---- */

static int64_t now_of(const struct tn_pauser *pauser)
{
    return pauser->clock->vtable->monotonic_ns(pauser->clock);
}

/* Since when a mark is as it is. */
static int64_t seen_since(struct tn_pauser *pauser, const struct tn_pause_mark *mark, int64_t now)
{
    const struct tn_pause_mark *seen = find(&pauser->others, mark->id);
    return seen && seen->beat == mark->beat ? pauser->since_ns[seen - pauser->others.items] : now;
}

/* Remembers what is there, and leaves out whoever is dead. */
static void watch_others(struct tn_pauser *pauser, struct tn_pause_marks *marks)
{
    int64_t now = now_of(pauser);
    int64_t since[TN_PAUSE_MARKS_MAX] = {0};
    uint32_t kept = 0;
    for (uint32_t i = 0; i < marks->count; i++) {
        const struct tn_pause_mark *mark = &marks->items[i];
        since[kept] = seen_since(pauser, mark, now);
        if (strcmp(mark->id, pauser->own.id) == 0 || now - since[kept] < TN_PAUSE_TTL_MS * MS_NS) {
            marks->items[kept++] = *mark;
        }
    }
    marks->count = kept;
    pauser->others = *marks;
    memcpy(pauser->since_ns, since, kept * sizeof since[0]);
}

/* ---- a beat ---- */

static tn_rc beat(struct tn_pauser *pauser, struct work *w, bool *lost, struct tn_err *err)
{
    tn_rc rc = read_marks(w, pauser->table, err);
    if (rc != TN_OK) {
        return rc;
    }
    watch_others(pauser, w->marks);
    struct tn_pause_mark *own = find(w->marks, pauser->own.id);
    *lost = *lost || (pauser->set && !own);
    if (!own && w->marks->count == TN_PAUSE_MARKS_MAX) {
        return tn_err_set(err, TN_FULL, 0, "%s: commits are paused by %d others", pauser->table,
                          TN_PAUSE_MARKS_MAX);
    }
    own = own ? own : &w->marks->items[w->marks->count++];
    *own = pauser->own;
    return write_marks(w, err);
}

tn_rc tn_pauser_keep(struct tn_pauser *pauser, struct tn_arena *scratch, bool *lost,
                     struct tn_err *err)
{
    tn_rc rc = TN_CONFLICT;
    *lost = false;
    if (pauser->set && now_of(pauser) - pauser->beat_ns < TN_PAUSE_BEAT_MS * MS_NS) {
        return TN_OK;
    }
    pauser->own.beat++;
    for (int tries = 0; rc == TN_CONFLICT && tries < TRIES_MAX; tries++) {
        struct work w = {.target = pauser->target, .scratch = scratch};
        size_t mark = tn_arena_mark(scratch);
        rc = beat(pauser, &w, lost, err);
        tn_arena_reset(scratch, mark);
    }
    if (rc == TN_OK) {
        pauser->set = true;
        pauser->beat_ns = now_of(pauser);
    }
    return rc;
}

int64_t tn_pauser_age_ms(const struct tn_pauser *pauser)
{
    return (now_of(pauser) - pauser->beat_ns) / MS_NS;
}

void tn_pauser_init(struct tn_pauser *pauser, struct tn_target *target, struct tn_clock *clock,
                    const char *table, const char *by)
{
    *pauser = (struct tn_pauser){.target = target, .clock = clock, .table = table};
    tn_clock_uuid(clock, pauser->own.id);
    (void)snprintf(pauser->own.by, sizeof pauser->own.by, "%s", by);
    pauser->own.since_ms = clock->vtable->now_ms(clock);
}

/* ---- the end ---- */

static tn_rc lift(struct tn_pauser *pauser, struct work *w, struct tn_err *err)
{
    tn_rc rc = read_marks(w, pauser->table, err);
    struct tn_pause_mark *own = rc == TN_OK ? find(w->marks, pauser->own.id) : NULL;
    if (own) {
        take_out(w->marks, own);
        rc = write_marks(w, err);
    }
    return rc;
}

tn_rc tn_pauser_lift(struct tn_pauser *pauser, struct tn_arena *scratch, struct tn_err *err)
{
    tn_rc rc = TN_CONFLICT;
    for (int tries = 0; rc == TN_CONFLICT && tries < TRIES_MAX; tries++) {
        struct work w = {.target = pauser->target, .scratch = scratch};
        size_t mark = tn_arena_mark(scratch);
        rc = lift(pauser, &w, err);
        tn_arena_reset(scratch, mark);
    }
    pauser->set = pauser->set && rc != TN_OK;
    return rc;
}

tn_rc tn_pause_forget(struct tn_target *target, const char *table, const struct tn_pause *pause,
                      struct tn_arena *scratch, struct tn_err *err)
{
    struct work w = {.target = target, .scratch = scratch};
    size_t mark = tn_arena_mark(scratch);
    tn_rc rc = read_marks(&w, table, err);
    struct tn_hash_128 hash = tn_hash_128(w.was);
    if (rc == TN_OK && w.was.data && memcmp(&hash, &pause->hash, sizeof hash) == 0) {
        w.marks->count = 0;
        rc = write_marks(&w, err);
    }
    tn_arena_reset(scratch, mark);
    return rc == TN_CONFLICT ? TN_OK : rc; /* somebody pauses */
}
