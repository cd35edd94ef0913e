#include "upload/gather_lease.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "commit/publish.h"
#include "format/json.h"

enum { TEXT_MAX = 4096 };

#define MS_NS INT64_C(1000000)

struct record {
    int64_t version;
    const char *holder;
    const char *who;
    int64_t generation;
    int64_t beat;
};

static const struct tn_json_field fields[] = {
    {"version", TN_JSON_I64, TN_JSON_REQUIRED, offsetof(struct record, version)},
    {"holder", TN_JSON_TEXT, TN_JSON_REQUIRED, offsetof(struct record, holder)},
    {"who", TN_JSON_TEXT, TN_JSON_REQUIRED, offsetof(struct record, who)},
    {"generation", TN_JSON_I64, TN_JSON_REQUIRED, offsetof(struct record, generation)},
    {"beat", TN_JSON_I64, TN_JSON_REQUIRED, offsetof(struct record, beat)},
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

struct paths {
    const char *final;
    const char *draft;
    const char *dir;
};

static tn_rc paths_of(const struct tn_lease *lease, struct tn_arena *arena, struct paths *paths,
                      struct tn_err *err)
{
    paths->final = tn_arena_format(arena, ".tarn/%s/lease", lease->table);
    paths->draft =
        tn_arena_format(arena, ".tarn/%s/.lease.%s.tmp", lease->table, lease->own.holder);
    paths->dir = tn_arena_format(arena, ".tarn/%s/", lease->table);
    return paths->final && paths->draft && paths->dir
               ? TN_OK
               : tn_err_set(err, TN_AGAIN, 0, "no memory for a lease");
}

void tn_lease_init(struct tn_lease *lease, struct tn_io *io, struct tn_clock *clock,
                   const char *table, const char *who)
{
    *lease = (struct tn_lease){.io = io, .clock = clock, .table = table};
    tn_clock_uuid(clock, lease->own.holder);
    (void)snprintf(lease->own.who, sizeof lease->own.who, "%s", who);
}

/* One that can't be read is somebody's, who doesn't beat. */
static tn_rc read_seen(const struct tn_lease *lease, const char *path, struct tn_arena *arena,
                       struct tn_lease_seen *seen, struct tn_err *err)
{
    struct tn_bytes text = {0};
    struct record record = {0};
    tn_rc rc = tn_io_read_all(lease->io, path, TEXT_MAX, arena, &text, err);
    if (rc == TN_OK) {
        rc = tn_json_read_text(text, fields, FIELDS, &record, arena, err);
    }
    *seen = (struct tn_lease_seen){.generation = 1, .who = "somebody"};
    if (rc == TN_OK) {
        seen->generation = record.generation > 0 ? record.generation : 1;
        seen->beat = record.beat;
        (void)snprintf(seen->holder, sizeof seen->holder, "%s", record.holder);
        (void)snprintf(seen->who, sizeof seen->who, "%s", record.who);
    }
    return rc == TN_CORRUPT || rc == TN_INVALID ? TN_OK : rc;
}

static void encode(const struct tn_lease_seen *own, struct tn_buf *text)
{
    struct record record = {1, own->holder, own->who, own->generation, own->beat};
    tn_json_write(&record, fields, FIELDS, text);
}

static int64_t now_of(const struct tn_lease *lease)
{
    return lease->clock->vtable->monotonic_ns(lease->clock);
}

static tn_rc say_taken(const struct tn_lease *lease, const struct tn_lease_seen *by,
                       struct tn_err *err)
{
    return tn_err_set(err, TN_EXISTS, 0, "%s is gathered by %s (generation %" PRId64 ")",
                      lease->table, by->who, by->generation);
}

static void note_written(struct tn_lease *lease)
{
    lease->held = true;
    lease->alive = false;
    lease->seen = (struct tn_lease_seen){.generation = 0};
    lease->since_ns = now_of(lease);
}

static tn_rc write_over(struct tn_lease *lease, const struct paths *paths, struct tn_err *err)
{
    char memory[1024];
    struct tn_buf text;
    tn_buf_init(&text, memory, sizeof memory);
    encode(&lease->own, &text);
    tn_rc rc = tn_publish_over(lease->io, paths->draft, paths->final, tn_buf_bytes(&text), err);
    if (rc == TN_OK) {
        note_written(lease);
    }
    return rc;
}

/* Where there is none. */
static tn_rc make(struct tn_lease *lease, const struct paths *paths, struct tn_err *err)
{
    char memory[1024];
    struct tn_buf text;
    lease->own.generation = lease->seen.generation + 1;
    tn_buf_init(&text, memory, sizeof memory);
    encode(&lease->own, &text);
    struct tn_publish_spec publish = {.bytes = tn_buf_bytes(&text),
                                      .draft = paths->draft,
                                      .final = paths->final,
                                      .dir = paths->dir};
    struct tn_err ignored;
    (void)lease->io->vtable->unlink(lease->io, paths->draft, &ignored); /* of a try that failed */
    tn_rc rc = lease->io->vtable->make_dir(lease->io, paths->dir, err);
    if (rc == TN_OK) {
        rc = tn_publish(lease->io, &publish, err);
    }
    if (rc == TN_OK) {
        note_written(lease);
    }
    return rc == TN_CONFLICT
               ? tn_err_set(err, TN_EXISTS, 0, "%s: another gather has just begun", lease->table)
               : rc;
}

static bool same(const struct tn_lease_seen *a, const struct tn_lease_seen *b)
{
    return a->generation == b->generation && a->beat == b->beat &&
           strcmp(a->holder, b->holder) == 0;
}

/* Another's is there. */
static tn_rc watch(struct tn_lease *lease, const struct tn_lease_seen *there,
                   const struct paths *paths, struct tn_err *err)
{
    int64_t now = now_of(lease);
    if (!same(&lease->seen, there)) {
        lease->alive = lease->seen.generation > 0 || lease->held;
        lease->held = false;
        lease->seen = *there;
        lease->since_ns = now;
        return say_taken(lease, there, err);
    }
    if (now - lease->since_ns < TN_LEASE_TTL_MS * MS_NS) {
        return say_taken(lease, there, err);
    }
    lease->own.generation = there->generation + 1;
    return write_over(lease, paths, err);
}

static tn_rc look(struct tn_lease *lease, struct tn_arena *scratch, struct tn_err *err)
{
    struct paths paths;
    struct tn_lease_seen there;
    tn_rc rc = paths_of(lease, scratch, &paths, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = read_seen(lease, paths.final, scratch, &there, err);
    if (rc == TN_ABSENT) {
        return make(lease, &paths, err);
    }
    if (rc == TN_OK && strcmp(there.holder, lease->own.holder) == 0) {
        lease->own.beat++;
        return write_over(lease, &paths, err);
    }
    return rc == TN_OK ? watch(lease, &there, &paths, err) : rc;
}

tn_rc tn_lease_keep(struct tn_lease *lease, struct tn_arena *scratch, struct tn_err *err)
{
    if (lease->held && now_of(lease) - lease->since_ns < TN_LEASE_BEAT_MS * MS_NS) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(scratch);
    tn_rc rc = look(lease, scratch, err);
    tn_arena_reset(scratch, mark);
    return rc;
}

void tn_lease_give(struct tn_lease *lease, struct tn_arena *scratch)
{
    struct paths paths;
    struct tn_lease_seen there;
    struct tn_err ignored;
    size_t mark = tn_arena_mark(scratch);
    tn_rc rc = lease->held ? paths_of(lease, scratch, &paths, &ignored) : TN_ABSENT;
    if (rc == TN_OK) {
        rc = read_seen(lease, paths.final, scratch, &there, &ignored);
    }
    if (rc == TN_OK && strcmp(there.holder, lease->own.holder) == 0) {
        (void)lease->io->vtable->unlink(lease->io, paths.final, &ignored);
    }
    lease->held = false;
    tn_arena_reset(scratch, mark);
}
