#include "upload/gather_pause.h"

#include <stddef.h>
#include <stdio.h>

#include "commit/publish.h"
#include "format/json.h"
#include "schema/time_text.h"

enum { TEXT_MAX = 4096 };

struct record {
    int64_t version;
    const char *by;
    int64_t since_ms;
};

static const struct tn_json_field fields[] = {
    {"version", TN_JSON_I64, TN_JSON_REQUIRED, offsetof(struct record, version)},
    {"by", TN_JSON_TEXT, TN_JSON_REQUIRED, offsetof(struct record, by)},
    {"sinceMs", TN_JSON_I64, TN_JSON_REQUIRED, offsetof(struct record, since_ms)},
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static tn_rc no_room(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "no memory for a pause");
}

static const char *path_of(const char *table, struct tn_arena *arena)
{
    return tn_arena_format(arena, ".tarn/%s/pause", table);
}

/* ---- reading ---- */

static tn_rc take(struct tn_bytes text, struct tn_arena *arena, struct tn_pause *pause,
                  struct tn_err *err)
{
    struct record record = {0};
    tn_rc rc = tn_json_read_text(text, fields, FIELDS, &record, arena, err);
    if (rc == TN_AGAIN) {
        return rc;
    }
    pause->set = true;
    pause->since_ms = rc == TN_OK ? record.since_ms : 0;
    (void)snprintf(pause->by, sizeof pause->by, "%s", rc == TN_OK ? record.by : "somebody");
    return TN_OK;
}

/* What a read said, for either door. */
static tn_rc after(tn_rc rc, struct tn_bytes text, struct tn_arena *arena, struct tn_pause *pause,
                   struct tn_err *err)
{
    if (rc == TN_INVALID) { /* too large to be one that we wrote */
        text = tn_bytes_of("");
        rc = TN_OK;
    }
    rc = rc == TN_OK ? take(text, arena, pause, err) : rc;
    return rc == TN_ABSENT ? TN_OK : rc;
}

tn_rc tn_pause_read(struct tn_io *io, const char *table, struct tn_arena *scratch,
                    struct tn_pause *pause, struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    struct tn_bytes text = {0};
    const char *path = path_of(table, scratch);
    *pause = (struct tn_pause){.set = false};
    tn_rc rc = path ? tn_io_read_all(io, path, TEXT_MAX, scratch, &text, err) : no_room(err);
    rc = after(rc, text, scratch, pause, err);
    tn_arena_reset(scratch, mark);
    return rc;
}

tn_rc tn_pause_read_target(struct tn_target *target, const char *table, struct tn_arena *scratch,
                           struct tn_pause *pause, struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    struct tn_bytes text = {0};
    const char *path = path_of(table, scratch);
    *pause = (struct tn_pause){.set = false};
    tn_rc rc =
        path ? target->vtable->read(target, path, TEXT_MAX, scratch, &text, err) : no_room(err);
    rc = after(rc, text, scratch, pause, err);
    tn_arena_reset(scratch, mark);
    return rc;
}

tn_rc tn_pause_say(const struct tn_pause *pause, const char *table, struct tn_err *err)
{
    char since[64];
    tn_time_format_utc(pause->since_ms, since, sizeof since);
    return tn_err_set(err, TN_AGAIN, 0, "%s: commits are paused by %s since %s", table, pause->by,
                      since);
}

/* ---- writing ---- */

tn_rc tn_pause_set(struct tn_io *io, const char *table, const char *by, int64_t now_ms,
                   struct tn_arena *scratch, struct tn_err *err)
{
    char memory[512];
    struct tn_buf text;
    struct record record = {1, by, now_ms};
    size_t mark = tn_arena_mark(scratch);
    const char *path = path_of(table, scratch);
    const char *draft = tn_arena_format(scratch, ".tarn/%s/.pause.tmp", table);
    const char *dir = tn_arena_format(scratch, ".tarn/%s/", table);
    tn_buf_init(&text, memory, sizeof memory);
    tn_json_write(&record, fields, FIELDS, &text);
    tn_rc rc = path && draft && dir ? io->vtable->make_dir(io, dir, err) : no_room(err);
    if (rc == TN_OK) {
        rc = tn_publish_over(io, draft, path, tn_buf_bytes(&text), err);
    }
    if (rc == TN_OK) {
        rc = io->vtable->sync(io, &dir, 1, err);
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

tn_rc tn_pause_lift(struct tn_io *io, const char *table, struct tn_arena *scratch,
                    struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    const char *path = path_of(table, scratch);
    const char *dir = tn_arena_format(scratch, ".tarn/%s/", table);
    tn_rc rc = path && dir ? io->vtable->unlink(io, path, err) : no_room(err);
    if (rc == TN_OK) {
        rc = io->vtable->sync(io, &dir, 1, err);
    }
    tn_arena_reset(scratch, mark);
    return rc == TN_ABSENT ? TN_OK : rc;
}
