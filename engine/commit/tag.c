#include "commit/tag.h"

#include <inttypes.h>

#include <cjson/cJSON.h>

#include "commit/publish.h"
#include "file/names.h"
#include "schema/time_text.h"

enum {
    ADDED_SIZE = 160, /* what a tag says beside its snapshot */
    SECOND_MS = 1000,
    MINUTE_MS = 60 * SECOND_MS,
    HOUR_MS = 60 * MINUTE_MS,
    DAY_MS = 24 * HOUR_MS
};

static const char prefix[] = "tag-";
static const char create_time[] = "tagCreateTime";
static const char time_retained[] = "tagTimeRetained";

static tn_rc no_room(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "no room for a tag");
}

tn_rc tn_tag_check_name(const char *name, struct tn_err *err)
{
    size_t size = strlen(name);
    bool blank = true;
    bool fits = size <= TN_TAG_NAME_MAX;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)name[i];
        blank = blank && c == ' ';
        fits = fits && c >= ' ' && c != '/' && c != '\\' && c != 0x7f;
    }
    return fits && !blank ? TN_OK
                          : tn_err_set(err, TN_INVALID, 0,
                                       "'%s' is no tag's name: 1 to %d bytes, "
                                       "no '/', '\\' or control characters",
                                       name, TN_TAG_NAME_MAX);
}

static const char *path_of(struct tn_arena *arena, const char *root, const char *name)
{
    return tn_arena_format(arena, "%s/" TN_DIR_TAG "%s%s", root, prefix, name);
}

/* ---- the two members of its own ---- */

/* [2026, 11, 29, 14, 40, 6, 288925430]: a wall clock, whose last parts may be absent. */
static bool read_time(const struct cJSON *array, int64_t *ms)
{
    int64_t parts[7] = {0, 1, 1};
    int count = 0;
    const struct cJSON *item;
    cJSON_ArrayForEach(item, array)
    {
        if (count == 7 || !tn_json_i64(item, &parts[count]) || parts[count] < 0 ||
            parts[count] > 999999999) {
            return false;
        }
        count++;
    }
    struct tn_date date = {parts[0], (uint32_t)parts[1], (uint32_t)parts[2]};
    if (!cJSON_IsArray(array) || count < 5 || parts[0] > 9999 || parts[1] < 1 || parts[1] > 12 ||
        parts[2] < 1 || parts[2] > tn_days_in_month(parts[0], (uint32_t)parts[1])) {
        return false;
    }
    *ms = tn_days_of_date(&date) * DAY_MS + parts[3] * HOUR_MS + parts[4] * MINUTE_MS +
          parts[5] * SECOND_MS + parts[6] / 1000000;
    return true;
}

/* Seconds, with decimals. */
static bool read_retained(const struct cJSON *number, int64_t *ms)
{
    const double most = 9e15;
    if (!cJSON_IsNumber(number) || !(number->valuedouble >= 0)) {
        return false;
    }
    *ms = number->valuedouble * 1000 < most ? (int64_t)(number->valuedouble * 1000) : (int64_t)most;
    return true;
}

static tn_rc read_own(const struct cJSON *root, struct tn_tag *tag, struct tn_err *err)
{
    const struct cJSON *time = tn_json_member(root, create_time);
    const struct cJSON *retained = tn_json_member(root, time_retained);
    int64_t created_ms = 0;
    int64_t retained_ms = 0;
    if (!time || !retained) {
        return TN_OK;
    }
    if (!read_time(time, &created_ms)) {
        return tn_err_set(err, TN_CORRUPT, 0, "$.%s: no date and time", create_time);
    }
    if (!read_retained(retained, &retained_ms)) {
        return tn_err_set(err, TN_CORRUPT, 0, "$.%s: no number of seconds", time_retained);
    }
    tag->expires = true;
    tag->expires_ms = created_ms + retained_ms;
    return TN_OK;
}

static tn_rc decode(struct tn_bytes text, struct tn_arena *arena, struct tn_tag *tag,
                    struct tn_err *err)
{
    struct cJSON *root;
    struct tn_tag found = {0};
    tn_rc rc = tn_snapshot_decode(text, arena, &found.snapshot, err);
    if (rc != TN_OK) {
        return rc;
    }
    size_t mark = tn_arena_mark(arena);
    rc = tn_json_open(text, arena, &root, err);
    tn_arena_reset(arena, mark);
    if (rc == TN_OK) {
        rc = read_own(root, &found, err);
        tn_json_close(root);
    }
    if (rc == TN_OK) {
        *tag = found;
    }
    return rc;
}

static tn_rc read_path(struct tn_io *io, const char *path, struct tn_arena *arena,
                       struct tn_tag *tag, struct tn_err *err)
{
    struct tn_bytes text;
    tn_rc rc = tn_io_read_all(io, path, TN_SNAPSHOT_SIZE_MAX, arena, &text, err);
    if (rc != TN_OK) {
        return rc == TN_INVALID ? (err->code = TN_CORRUPT) : rc;
    }
    rc = decode(text, arena, tag, err);
    return rc == TN_OK ? rc : tn_err_in(err, "%s", path);
}

tn_rc tn_tag_read(struct tn_io *io, const char *root, const char *name, struct tn_arena *arena,
                  struct tn_tag *tag, struct tn_err *err)
{
    if (strchr(name, '/')) {
        return tn_err_set(err, TN_INVALID, 0, "'%s' is no tag's name", name);
    }
    const char *path = path_of(arena, root, name);
    return path ? read_path(io, path, arena, tag, err) : no_room(err);
}

/* ---- what is tagged ---- */

struct make {
    const struct tn_tag_spec *spec;
    struct tn_worker *worker;
    int64_t id;
    struct tn_bytes text; /* of the snapshot */
    bool found;
};

static tn_rc match_tag(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct make *m = user;
    struct tn_arena *arena = &m->worker->arena;
    struct tn_tag tag = {0};
    if (is_dir || m->found || !tn_name_begins(name, prefix) ||
        strcmp(name + sizeof prefix - 1, m->spec->name) == 0) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_in(arena, m->spec->root, TN_DIR_TAG, name);
    tn_rc rc = path ? read_path(m->worker->io, path, arena, &tag, err) : no_room(err);
    m->found = rc == TN_OK && tag.snapshot.id == m->id;
    if (!m->found) {
        tn_arena_reset(arena, mark);
        return rc == TN_ABSENT ? TN_OK : rc;
    }
    return tn_snapshot_text(&tag.snapshot, arena, &m->text, err);
}

/* It may have expired, and be held by another tag. */
static tn_rc find_tag(struct make *m, struct tn_err *err)
{
    struct tn_io *io = m->worker->io;
    const char *dir = tn_name_in(&m->worker->arena, m->spec->root, TN_DIR_TAG, "");
    tn_rc rc = dir ? io->vtable->list(io, dir, match_tag, m, err) : no_room(err);
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* A snapshot below EARLIEST is being expired. */
static tn_rc find_snapshot(struct make *m, struct tn_err *err)
{
    struct tn_io *io = m->worker->io;
    struct tn_arena *arena = &m->worker->arena;
    int64_t earliest;
    struct tn_snapshot snapshot;
    tn_rc rc = tn_snapshot_earliest(io, m->spec->root, arena, &earliest, err);
    if (rc != TN_OK) {
        return rc == TN_ABSENT ? TN_OK : rc;
    }
    rc = m->id < earliest ? TN_ABSENT
                          : tn_snapshot_read(io, m->spec->root, m->id, arena, &snapshot, err);
    if (rc != TN_OK) {
        return rc == TN_ABSENT ? TN_OK : rc;
    }
    const char *path = tn_name_numbered(arena, m->spec->root, TN_DIR_SNAPSHOT, "snapshot-", m->id);
    rc = path ? tn_io_read_all(io, path, TN_SNAPSHOT_SIZE_MAX, arena, &m->text, err) : no_room(err);
    m->found = rc == TN_OK;
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc find(struct make *m, struct tn_err *err)
{
    m->found = false;
    tn_rc rc = find_snapshot(m, err);
    return rc == TN_OK && !m->found ? find_tag(m, err) : rc;
}

static tn_rc choose(struct make *m, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    m->id = m->spec->snapshot_id;
    if (m->id == 0) {
        rc = tn_snapshot_latest(m->worker->io, m->spec->root, &m->worker->arena, &m->id, err);
        if (rc == TN_ABSENT) {
            return tn_err_set(err, TN_INVALID, 0, "there is no snapshot yet");
        }
    }
    if (rc == TN_OK) {
        rc = find(m, err);
    }
    return rc == TN_OK && !m->found
               ? tn_err_set(err, TN_INVALID, 0, "there is no snapshot %" PRId64, m->id)
               : rc;
}

/* ---- making one ---- */

static void put_own(struct make *m, struct tn_buf *buf)
{
    int64_t now = m->worker->clock->vtable->local_ms(m->worker->clock);
    int64_t of_day = now % DAY_MS < 0 ? now % DAY_MS + DAY_MS : now % DAY_MS;
    struct tn_date date = tn_date_of_days((now - of_day) / DAY_MS);
    int64_t second = of_day / SECOND_MS % 60;
    int64_t nanos = of_day % SECOND_MS * 1000000;
    tn_buf_format(buf, ",\n  \"%s\" : [ %" PRId64 ", %" PRIu32 ", %" PRIu32, create_time, date.year,
                  date.month, date.day);
    tn_buf_format(buf, ", %" PRId64 ", %" PRId64, of_day / HOUR_MS, of_day / MINUTE_MS % 60);
    if (second > 0 || nanos > 0) {
        tn_buf_format(buf, ", %" PRId64, second);
    }
    if (nanos > 0) {
        tn_buf_format(buf, ", %" PRId64, nanos);
    }
    tn_buf_format(buf, " ],\n  \"%s\" : %" PRId64 ".%03" PRId64 "000000\n}", time_retained,
                  m->spec->retained_ms / SECOND_MS, m->spec->retained_ms % SECOND_MS);
}

/* Without a retention a tag's text is the snapshot's: Paimon up to 0.7 reads no other. */
static tn_rc write_text(struct make *m, struct tn_bytes *text, struct tn_err *err)
{
    size_t size = m->text.size;
    *text = m->text;
    if (m->spec->retained_ms == 0) {
        return TN_OK;
    }
    while (size > 0 && m->text.data[size - 1] != '}') {
        size--;
    }
    do {
        size -= size > 0;
    } while (size > 0 && strchr(" \t\r\n", m->text.data[size - 1]));
    struct tn_buf buf;
    void *block = tn_arena_take(&m->worker->arena, size + ADDED_SIZE);
    tn_buf_init(&buf, block, block ? size + ADDED_SIZE : 0);
    tn_buf_append(&buf, m->text.data, size);
    put_own(m, &buf);
    *text = tn_buf_bytes(&buf);
    return buf.overflow ? no_room(err) : TN_OK;
}

static tn_rc taken(const char *name, struct tn_err *err)
{
    return tn_err_set(err, TN_EXISTS, 0, "there is a tag '%s' already", name);
}

static tn_rc check_free(struct make *m, const char *path, struct tn_err *err)
{
    uint64_t size;
    tn_rc rc = m->worker->io->vtable->stat(m->worker->io, path, &size, err);
    return rc == TN_OK ? taken(m->spec->name, err) : rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc publish(struct make *m, struct tn_bytes text, const char *path, struct tn_err *err)
{
    struct tn_arena *arena = &m->worker->arena;
    char uuid[TN_UUID_SIZE];
    tn_clock_uuid(m->worker->clock, uuid);
    struct tn_publish_spec spec = {
        .bytes = text,
        .draft = tn_arena_format(arena, "%s/" TN_DIR_TAG ".tag-%s.tmp", m->spec->root, uuid),
        .final = path,
        .dir = tn_name_in(arena, m->spec->root, TN_DIR_TAG, "")};
    if (!spec.draft || !spec.dir) {
        return no_room(err);
    }
    tn_rc rc = m->worker->io->vtable->make_dir(m->worker->io, spec.dir, err);
    rc = rc == TN_OK ? tn_publish(m->worker->io, &spec, err) : rc;
    return rc == TN_CONFLICT ? taken(m->spec->name, err) : rc;
}

/* Whoever listed the tags before this one was there has moved EARLIEST, or unlinked the other tag,
 * by now, or will see it. */
static tn_rc confirm(struct make *m, const char *path, struct tn_err *err)
{
    struct tn_io *io = m->worker->io;
    struct tn_err ignored;
    tn_rc rc = find(m, err);
    if (rc == TN_OK && !m->found) {
        rc = tn_err_set(err, TN_AGAIN, 0, "snapshot %" PRId64 " expired meanwhile", m->id);
    }
    if (rc != TN_OK) {
        (void)io->vtable->unlink(io, path, &ignored);
    }
    return rc;
}

static bool is_number(const char *name)
{
    return strspn(name, "0123456789") == strlen(name);
}

static tn_rc make(struct make *m, struct tn_err *err)
{
    struct tn_bytes text;
    tn_rc rc = tn_tag_check_name(m->spec->name, err);
    if (rc == TN_OK && is_number(m->spec->name)) {
        rc = tn_err_set(err, TN_INVALID, 0, "'%s' would be taken for a snapshot", m->spec->name);
    }
    const char *path = path_of(&m->worker->arena, m->spec->root, m->spec->name);
    rc = rc == TN_OK && !path ? no_room(err) : rc;
    rc = rc == TN_OK ? check_free(m, path, err) : rc;
    rc = rc == TN_OK ? choose(m, err) : rc;
    if (rc != TN_OK || m->spec->dry_run) {
        return rc;
    }
    rc = write_text(m, &text, err);
    rc = rc == TN_OK ? publish(m, text, path, err) : rc;
    return rc == TN_OK ? confirm(m, path, err) : rc;
}

tn_rc tn_tag_make(const struct tn_tag_spec *spec, struct tn_worker *worker, int64_t *snapshot_id,
                  struct tn_err *err)
{
    struct make m = {.spec = spec, .worker = worker};
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc = make(&m, err);
    tn_arena_reset(&worker->arena, mark);
    if (rc == TN_OK) {
        *snapshot_id = m.id;
    }
    return rc;
}

/* ---- those whose time is over ---- */

struct over {
    struct tn_worker *worker;
    const char *root;
    const struct tn_tag_over *after;
    struct tn_tag_over *found;
    int64_t now;
};

static tn_rc look_at(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct over *o = user;
    struct tn_arena *arena = &o->worker->arena;
    struct tn_tag tag = {0};
    if (is_dir || !tn_name_begins(name, prefix)) {
        return TN_OK;
    }
    const char *own = name + sizeof prefix - 1;
    if (strlen(own) >= sizeof o->found->name || strcmp(own, o->after->name) <= 0 ||
        (o->found->name[0] && strcmp(own, o->found->name) > 0)) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_in(arena, o->root, TN_DIR_TAG, name);
    tn_rc rc = path ? read_path(o->worker->io, path, arena, &tag, err) : no_room(err);
    if (rc == TN_OK && tag.expires && o->now > tag.expires_ms) {
        memcpy(o->found->name, own, strlen(own) + 1);
    }
    tn_arena_reset(arena, mark);
    return rc == TN_ABSENT ? TN_OK : rc;
}

tn_rc tn_tag_find_over(const char *root, struct tn_worker *worker, const struct tn_tag_over *after,
                       struct tn_tag_over *over, struct tn_err *err)
{
    struct over o = {.worker = worker, .root = root, .after = after, .found = over};
    size_t mark = tn_arena_mark(&worker->arena);
    const char *dir = tn_name_in(&worker->arena, root, TN_DIR_TAG, "");
    o.now = worker->clock->vtable->local_ms(worker->clock);
    over->name[0] = 0;
    tn_rc rc = dir ? worker->io->vtable->list(worker->io, dir, look_at, &o, err) : no_room(err);
    tn_arena_reset(&worker->arena, mark);
    return rc == TN_ABSENT ? TN_OK : rc;
}
