#include "upload/gather_pause.h"

#include <stddef.h>
#include <stdio.h>

#include "format/json.h"
#include "schema/time_text.h"

#define MAGIC "tarn-pause 2\n"
#define MS_NS INT64_C(1000000)

struct record {
    const char *id;
    const char *by;
    int64_t since_ms;
    int64_t beat;
};

static const struct tn_json_field fields[] = {
    {"id", TN_JSON_TEXT, TN_JSON_REQUIRED, offsetof(struct record, id)},
    {"by", TN_JSON_TEXT, TN_JSON_REQUIRED, offsetof(struct record, by)},
    {"sinceMs", TN_JSON_I64, TN_JSON_REQUIRED, offsetof(struct record, since_ms)},
    {"beat", TN_JSON_I64, TN_JSON_REQUIRED, offsetof(struct record, beat)},
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static tn_rc no_room(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "no memory for a pause");
}

const char *tn_pause_path(struct tn_arena *arena, const char *table)
{
    return tn_arena_format(arena, ".tarn/%s/pause", table);
}

/* ---- the text ---- */

static tn_rc take_mark(struct tn_bytes object, struct tn_arena *scratch, struct tn_pause_mark *mark,
                       struct tn_err *err)
{
    struct record record = {0};
    size_t before = tn_arena_mark(scratch);
    tn_rc rc = tn_json_read_text(object, fields, FIELDS, &record, scratch, err);
    if (rc == TN_OK) {
        *mark = (struct tn_pause_mark){.since_ms = record.since_ms, .beat = record.beat};
        (void)snprintf(mark->id, sizeof mark->id, "%s", record.id);
        (void)snprintf(mark->by, sizeof mark->by, "%s", record.by);
    }
    tn_arena_reset(scratch, before);
    return rc == TN_OK || rc == TN_AGAIN ? rc
                                         : tn_err_set(err, TN_CORRUPT, 0, "no mark of a pause");
}

/* With its line's end, of which texts in it have none. */
static struct tn_bytes first_object(struct tn_bytes text)
{
    for (size_t i = 1; i < text.size; i++) {
        if (text.data[i] == '\n' && text.data[i - 1] == '}') {
            return (struct tn_bytes){text.data, i + 1};
        }
    }
    return (struct tn_bytes){text.data, 0};
}

tn_rc tn_pause_parse(struct tn_bytes text, struct tn_arena *scratch, struct tn_pause_marks *marks,
                     struct tn_err *err)
{
    size_t at = strlen(MAGIC);
    tn_rc rc = TN_OK;
    marks->count = 0;
    if (text.size < at || memcmp(text.data, MAGIC, at) != 0) {
        return tn_err_set(err, TN_CORRUPT, 0, "no marks of a pause");
    }
    while (rc == TN_OK && at < text.size) {
        struct tn_bytes object = first_object((struct tn_bytes){text.data + at, text.size - at});
        if (object.size == 0 || marks->count == TN_PAUSE_MARKS_MAX) {
            return tn_err_set(err, TN_CORRUPT, 0, "marks of a pause that are torn, or too many");
        }
        rc = take_mark(object, scratch, &marks->items[marks->count++], err);
        at += object.size;
    }
    return rc;
}

void tn_pause_format(const struct tn_pause_marks *marks, struct tn_buf *text)
{
    tn_buf_text(text, MAGIC);
    for (uint32_t i = 0; i < marks->count; i++) {
        const struct tn_pause_mark *mark = &marks->items[i];
        struct record record = {mark->id, mark->by, mark->since_ms, mark->beat};
        tn_json_write(&record, fields, FIELDS, text);
        tn_buf_byte(text, '\n');
    }
}

/* ---- reading ---- */

static void take_first(const struct tn_pause_marks *marks, struct tn_pause *pause)
{
    pause->set = marks->count > 0;
    for (uint32_t i = 0; i < marks->count; i++) {
        if (i == 0 || marks->items[i].since_ms < pause->since_ms) {
            pause->since_ms = marks->items[i].since_ms;
            memcpy(pause->by, marks->items[i].by, sizeof pause->by);
        }
    }
}

static tn_rc take(struct tn_bytes text, struct tn_arena *scratch, struct tn_pause *pause,
                  struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(scratch, sizeof(struct tn_pause_marks), "a pause", &memory, err);
    if (rc == TN_OK) {
        rc = tn_pause_parse(text, scratch, memory, err);
    }
    if (rc == TN_AGAIN) {
        return rc;
    }
    if (rc == TN_OK) {
        take_first(memory, pause);
    } else {
        pause->set = true;
        (void)snprintf(pause->by, sizeof pause->by, "somebody");
    }
    pause->hash = tn_hash_128(text);
    return TN_OK;
}

/* What a read said, for either door. */
static tn_rc after(tn_rc rc, struct tn_bytes text, struct tn_arena *scratch, struct tn_pause *pause,
                   struct tn_err *err)
{
    if (rc == TN_INVALID) { /* too large to be one that we wrote */
        text = tn_bytes_of("");
        rc = TN_OK;
    }
    rc = rc == TN_OK ? take(text, scratch, pause, err) : rc;
    return rc == TN_ABSENT ? TN_OK : rc;
}

tn_rc tn_pause_read(struct tn_io *io, const char *table, struct tn_arena *scratch,
                    struct tn_pause *pause, struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    struct tn_bytes text = {0};
    const char *path = tn_pause_path(scratch, table);
    *pause = (struct tn_pause){.set = false};
    tn_rc rc =
        path ? tn_io_read_all(io, path, TN_PAUSE_TEXT_MAX, scratch, &text, err) : no_room(err);
    rc = after(rc, text, scratch, pause, err);
    tn_arena_reset(scratch, mark);
    return rc;
}

tn_rc tn_pause_read_target(struct tn_target *target, const char *table, struct tn_arena *scratch,
                           struct tn_pause *pause, struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    struct tn_bytes text = {0};
    const char *path = tn_pause_path(scratch, table);
    *pause = (struct tn_pause){.set = false};
    tn_rc rc = path ? target->vtable->read(target, path, TN_PAUSE_TEXT_MAX, scratch, &text, err)
                    : no_room(err);
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

/* ---- watching ---- */

bool tn_pause_holds(struct tn_pause_watch *watch, const struct tn_pause *pause,
                    struct tn_clock *clock)
{
    int64_t now_ns = clock->vtable->monotonic_ns(clock);
    if (!pause->set) {
        *watch = (struct tn_pause_watch){.any = false};
        return false;
    }
    if (!watch->any || memcmp(&watch->seen, &pause->hash, sizeof watch->seen) != 0) {
        *watch = (struct tn_pause_watch){
            .seen = pause->hash, .any = true, .alive = watch->any, .since_ns = now_ns};
    }
    return now_ns - watch->since_ns < TN_PAUSE_TTL_MS * MS_NS;
}
