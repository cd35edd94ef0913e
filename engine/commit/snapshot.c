#include "commit/snapshot.h"

#include <inttypes.h>
#include <stddef.h>

#include "file/names.h"

enum { HINT_SIZE_MAX = 64 }; /* a number and what an editor may have put behind it */

#define MEMBER(key, kind, need, name)                                           \
    {                                                                           \
        key, TN_JSON_##kind, TN_JSON_##need, offsetof(struct tn_snapshot, name) \
    }

/* In the order of Java's file. Source: Paimon, Snapshot. */
static const struct tn_json_field members[] = {
    MEMBER("version", I64, OPTIONAL, version),
    MEMBER("id", I64, REQUIRED, id),
    MEMBER("schemaId", I64, REQUIRED, schema_id),
    MEMBER("baseManifestList", TEXT, REQUIRED, base_manifest_list),
    MEMBER("baseManifestListSize", I64, OPTIONAL, base_manifest_list_size),
    MEMBER("deltaManifestList", TEXT, REQUIRED, delta_manifest_list),
    MEMBER("deltaManifestListSize", I64, OPTIONAL, delta_manifest_list_size),
    MEMBER("changelogManifestList", TEXT, OPTIONAL, changelog_manifest_list),
    MEMBER("changelogManifestListSize", I64, OPTIONAL, changelog_manifest_list_size),
    MEMBER("indexManifest", TEXT, OPTIONAL, index_manifest),
    MEMBER("commitUser", TEXT, REQUIRED, commit_user),
    MEMBER("commitIdentifier", I64, OPTIONAL, commit_identifier),
    MEMBER("commitKind", TEXT, REQUIRED, commit_kind),
    MEMBER("timeMillis", I64, OPTIONAL, time_ms),
    MEMBER("totalRecordCount", I64, OPTIONAL, total_record_count),
    MEMBER("deltaRecordCount", I64, OPTIONAL, delta_record_count),
    MEMBER("changelogRecordCount", I64, OPTIONAL, changelog_record_count),
    MEMBER("watermark", I64, OPTIONAL, watermark),
    MEMBER("statistics", TEXT, OPTIONAL, statistics),
    MEMBER("properties", MAP, OPTIONAL, properties),
    MEMBER("nextRowId", I64, OPTIONAL, next_row_id),
};
enum { MEMBER_COUNT = sizeof members / sizeof members[0] };

/* What 1.3 writes although it says nothing; later versions leave both out. `logOffsets` is no
 * member: nobody reads it. */
static const char absent_changelog[] = "changelogManifestList";
static const char log_offsets[] = "logOffsets";
static const char behind_log_offsets[] = "totalRecordCount";

static void put_key(struct tn_buf *buf, const char *key, bool *first)
{
    tn_buf_text(buf, *first ? "\n  \"" : ",\n  \"");
    tn_buf_text(buf, key);
    tn_buf_text(buf, "\" : ");
    *first = false;
}

static void put_i64(const struct tn_json_field *field, const void *at, struct tn_buf *buf,
                    bool *first)
{
    int64_t value;
    if (field->need == TN_JSON_REQUIRED) {
        value = *(const int64_t *)at;
    } else {
        const struct tn_json_i64 *optional = at;
        if (!optional->present) {
            return;
        }
        value = optional->value;
    }
    put_key(buf, field->key, first);
    tn_buf_format(buf, "%" PRId64, value);
}

static void put_text(const struct tn_json_field *field, const void *at, struct tn_buf *buf,
                     bool *first)
{
    const char *text = *(const char *const *)at;
    if (text) {
        put_key(buf, field->key, first);
        tn_json_quote(buf, text);
    } else if (strcmp(field->key, absent_changelog) == 0) {
        put_key(buf, field->key, first);
        tn_buf_text(buf, "null");
    }
}

static void put_map(const struct tn_json_field *field, const void *at, struct tn_buf *buf,
                    bool *first)
{
    const struct tn_json_map *map = at;
    if (map->count > 0) {
        put_key(buf, field->key, first);
        tn_json_put_map(buf, map);
    }
}

void tn_snapshot_encode(const struct tn_snapshot *snapshot, struct tn_buf *buf)
{
    bool first = true;
    tn_buf_text(buf, "{");
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        const struct tn_json_field *field = &members[i];
        const void *at = (const unsigned char *)snapshot + field->offset;
        if (strcmp(field->key, behind_log_offsets) == 0) {
            put_key(buf, log_offsets, &first);
            tn_buf_text(buf, "{ }");
        }
        if (field->kind == TN_JSON_I64) {
            put_i64(field, at, buf, &first);
        } else if (field->kind == TN_JSON_TEXT) {
            put_text(field, at, buf, &first);
        } else {
            put_map(field, at, buf, &first);
        }
    }
    tn_buf_text(buf, "\n}");
}

tn_rc tn_snapshot_text(const struct tn_snapshot *snapshot, struct tn_arena *arena,
                       struct tn_bytes *text, struct tn_err *err)
{
    size_t size = tn_arena_free(arena) / 2;
    struct tn_buf buf;
    size = size > TN_SNAPSHOT_SIZE_MAX ? TN_SNAPSHOT_SIZE_MAX : size;
    tn_buf_init(&buf, tn_arena_take_raw(arena, size), size);
    if (!buf.data) {
        return tn_err_set(err, TN_AGAIN, 0, "no room for a snapshot");
    }
    tn_snapshot_encode(snapshot, &buf);
    if (buf.overflow && size == TN_SNAPSHOT_SIZE_MAX) {
        return tn_err_set(err, TN_INVALID, 0, "the snapshot has more than %d bytes",
                          TN_SNAPSHOT_SIZE_MAX);
    }
    *text = tn_buf_bytes(&buf);
    return buf.overflow ? tn_err_set(err, TN_AGAIN, 0, "no room for a snapshot") : TN_OK;
}

static struct tn_json_i64 later(struct tn_json_i64 a, struct tn_json_i64 b)
{
    if (!a.present || !b.present) {
        return a.present ? a : b;
    }
    return a.value > b.value ? a : b;
}

static struct tn_json_i64 or_zero(struct tn_json_i64 value)
{
    return (struct tn_json_i64){value.present ? value.value : 0, true};
}

void tn_snapshot_follow(struct tn_snapshot *next, const struct tn_snapshot *previous,
                        int64_t now_ms)
{
    static const struct tn_snapshot none;
    previous = previous ? previous : &none;
    uint64_t before = (uint64_t)or_zero(previous->total_record_count).value;
    next->version = (struct tn_json_i64){3, true};
    next->id = previous->id + 1;
    next->index_manifest = previous->index_manifest;
    next->time_ms = later((struct tn_json_i64){now_ms, true}, previous->time_ms);
    next->total_record_count =
        (struct tn_json_i64){(int64_t)(before + (uint64_t)next->delta_record_count.value), true};
    next->watermark = later(next->watermark, previous->watermark);
    next->statistics = next->schema_id == previous->schema_id ? previous->statistics : NULL;
    next->next_row_id = or_zero(previous->next_row_id);
}

/* A list's name becomes part of a path, so it must stay in its folder. */
static bool is_file_name(const char *name)
{
    return !name || (name[0] != 0 && name[0] != '.' && !strchr(name, '/'));
}

static tn_rc check_names(const struct tn_snapshot *snapshot, struct tn_err *err)
{
    const struct {
        const char *key;
        const char *name;
    } names[] = {
        {"baseManifestList", snapshot->base_manifest_list},
        {"deltaManifestList", snapshot->delta_manifest_list},
        {"changelogManifestList", snapshot->changelog_manifest_list},
        {"indexManifest", snapshot->index_manifest},
        {"statistics", snapshot->statistics},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!is_file_name(names[i].name)) {
            return tn_err_set(err, TN_CORRUPT, 0, "$.%s: '%s' is no file name", names[i].key,
                              names[i].name);
        }
    }
    return TN_OK;
}

tn_rc tn_snapshot_decode(struct tn_bytes json, struct tn_arena *arena, struct tn_snapshot *snapshot,
                         struct tn_err *err)
{
    struct cJSON *root;
    struct tn_snapshot found = {0};
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = tn_json_open(json, arena, &root, err);
    tn_arena_reset(arena, mark); /* cJSON keeps its own copies */
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_json_read(root, members, MEMBER_COUNT, &found, arena, err);
    tn_json_close(root);
    if (rc == TN_OK) {
        rc = check_names(&found, err);
    }
    if (rc == TN_OK) {
        *snapshot = found;
    }
    return rc;
}

static tn_rc no_room(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "no room for a path");
}

tn_rc tn_snapshot_read_path(struct tn_io *io, const char *path, struct tn_arena *arena,
                            struct tn_snapshot *snapshot, struct tn_err *err)
{
    struct tn_bytes text;
    tn_rc rc = tn_io_read_all(io, path, TN_SNAPSHOT_SIZE_MAX, arena, &text, err);
    if (rc != TN_OK) {
        return rc == TN_INVALID ? (err->code = TN_CORRUPT) : rc;
    }
    rc = tn_snapshot_decode(text, arena, snapshot, err);
    if (rc != TN_OK) {
        (void)tn_err_in(err, "%s", path);
    }
    return rc;
}

tn_rc tn_snapshot_read(struct tn_io *io, const char *root, int64_t id, struct tn_arena *arena,
                       struct tn_snapshot *snapshot, struct tn_err *err)
{
    struct tn_snapshot found;
    const char *path = tn_name_numbered(arena, root, TN_DIR_SNAPSHOT, "snapshot-", id);
    if (!path) {
        return no_room(err);
    }
    tn_rc rc = tn_snapshot_read_path(io, path, arena, &found, err);
    if (rc == TN_OK && found.id != id) {
        rc = tn_err_set(err, TN_CORRUPT, 0, "%s: $.id: it says %" PRId64, path, found.id);
    }
    if (rc == TN_OK) {
        *snapshot = found;
    }
    return rc;
}

/* ---- ids and hints, of snapshots and of changelogs ---- */

struct numbered {
    const char *folder;
    const char *prefix;
};
static const struct numbered snapshots = {TN_DIR_SNAPSHOT, "snapshot-"};
static const struct numbered changelogs = {TN_DIR_CHANGELOG, "changelog-"};

static tn_rc exists(struct tn_io *io, const char *root, const struct numbered *of, int64_t id,
                    struct tn_arena *scratch, bool *there, struct tn_err *err)
{
    uint64_t size;
    const char *path = tn_name_numbered(scratch, root, of->folder, of->prefix, id);
    tn_rc rc = path ? io->vtable->stat(io, path, &size, err) : no_room(err);
    *there = rc == TN_OK;
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* -1: no number. */
static int64_t number_of(struct tn_bytes text)
{
    int64_t id = 0;
    size_t i = 0;
    for (; i < text.size && text.data[i] >= '0' && text.data[i] <= '9'; i++) {
        if (id > (INT64_MAX - 9) / 10) {
            return -1;
        }
        id = id * 10 + (text.data[i] - '0');
    }
    size_t digits = i;
    while (i < text.size && (text.data[i] == '\n' || text.data[i] == '\r' || text.data[i] == ' ')) {
        i++;
    }
    return digits > 0 && i == text.size ? id : -1;
}

/* The number in a hint file; -1 when there is none or it holds something else. */
static tn_rc read_hint(struct tn_io *io, const char *root, const struct numbered *of,
                       const char *name, struct tn_arena *scratch, int64_t *id, struct tn_err *err)
{
    struct tn_bytes text;
    const char *path = tn_name_in(scratch, root, of->folder, name);
    tn_rc rc = path ? tn_io_read_all(io, path, HINT_SIZE_MAX, scratch, &text, err) : no_room(err);
    *id = rc == TN_OK ? number_of(text) : -1;
    return rc == TN_ABSENT || rc == TN_INVALID ? TN_OK : rc;
}

/* ... when what it names is there; else -1. */
static tn_rc read_sound_hint(struct tn_io *io, const char *root, const struct numbered *of,
                             const char *name, struct tn_arena *scratch, int64_t *id,
                             struct tn_err *err)
{
    bool there = false;
    tn_rc rc = read_hint(io, root, of, name, scratch, id, err);
    if (rc == TN_OK && *id > 0) {
        rc = exists(io, root, of, *id, scratch, &there, err);
    }
    *id = there ? *id : -1;
    return rc;
}

struct range {
    const struct numbered *of;
    int64_t min;
    int64_t max;
};

static tn_rc widen(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    (void)err;
    struct range *range = user;
    int64_t id = is_dir ? -1 : tn_name_number(name, range->of->prefix);
    if (id > 0) {
        range->min = range->min == 0 || id < range->min ? id : range->min;
        range->max = id > range->max ? id : range->max;
    }
    return TN_OK;
}

static tn_rc list_range(struct tn_io *io, const char *root, const struct numbered *of,
                        struct tn_arena *scratch, struct range *range, struct tn_err *err)
{
    *range = (struct range){.of = of};
    const char *dir = tn_name_in(scratch, root, of->folder, "");
    tn_rc rc = dir ? io->vtable->list(io, dir, widen, range, err) : no_room(err);
    if (rc == TN_OK && range->max == 0) {
        rc = tn_err_set(err, TN_ABSENT, 0, "%s has no %s", root,
                        of == &snapshots ? "snapshot" : "long-lived changelog");
    }
    return rc;
}

/* -1: the folder is to be asked, which is never wrong. A torn hint may name one that was being
 * expired, and came back after a cut. */
static int64_t latest_by_hints(struct tn_io *io, const char *root, struct tn_arena *scratch)
{
    struct tn_err ignored;
    int64_t hint;
    int64_t earliest = -1;
    bool more = true;
    tn_rc rc = read_sound_hint(io, root, &snapshots, "LATEST", scratch, &hint, &ignored);
    if (rc == TN_OK && hint > 0) {
        rc = read_hint(io, root, &snapshots, "EARLIEST", scratch, &earliest, &ignored);
    }
    if (rc == TN_OK && hint > 0 && hint >= earliest) {
        rc = exists(io, root, &snapshots, hint + 1, scratch, &more, &ignored);
    }
    return rc == TN_OK && !more ? hint : -1;
}

tn_rc tn_snapshot_latest(struct tn_io *io, const char *root, struct tn_arena *scratch, int64_t *id,
                         struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    int64_t hint = latest_by_hints(io, root, scratch);
    tn_arena_reset(scratch, mark);
    if (hint > 0) {
        *id = hint;
        return TN_OK;
    }
    return tn_snapshot_newest_name(io, root, scratch, id, err);
}

tn_rc tn_snapshot_earliest(struct tn_io *io, const char *root, struct tn_arena *scratch,
                           int64_t *id, struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    int64_t hint;
    tn_rc rc = read_sound_hint(io, root, &snapshots, "EARLIEST", scratch, &hint, err);
    tn_arena_reset(scratch, mark);
    if (rc == TN_OK && hint > 0) {
        *id = hint;
        return TN_OK;
    }
    return rc == TN_OK ? tn_snapshot_oldest_name(io, root, scratch, id, err) : rc;
}

static tn_rc names(struct tn_io *io, const char *root, struct tn_arena *scratch,
                   struct range *range, struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    tn_rc rc = list_range(io, root, &snapshots, scratch, range, err);
    tn_arena_reset(scratch, mark);
    return rc;
}

tn_rc tn_snapshot_newest_name(struct tn_io *io, const char *root, struct tn_arena *scratch,
                              int64_t *id, struct tn_err *err)
{
    struct range range;
    tn_rc rc = names(io, root, scratch, &range, err);
    if (rc == TN_OK) {
        *id = range.max;
    }
    return rc;
}

tn_rc tn_snapshot_oldest_name(struct tn_io *io, const char *root, struct tn_arena *scratch,
                              int64_t *id, struct tn_err *err)
{
    struct range range;
    tn_rc rc = names(io, root, scratch, &range, err);
    if (rc == TN_OK) {
        *id = range.min;
    }
    return rc;
}

static tn_rc write_hint(struct tn_io *io, const char *draft, const char *final, int64_t id,
                        struct tn_err *err)
{
    char text[24];
    struct tn_buf buf;
    struct tn_err ignored;
    tn_buf_init(&buf, text, sizeof text);
    tn_buf_format(&buf, "%" PRId64, id);
    (void)io->vtable->unlink(io, draft, &ignored); /* one that a power cut left */
    tn_rc rc = tn_io_write_new(io, draft, tn_buf_bytes(&buf), err);
    return rc == TN_OK ? io->vtable->replace(io, draft, final, err) : rc;
}

static tn_rc put_hint(struct tn_io *io, const char *root, const struct numbered *of,
                      const char *name, int64_t id, struct tn_arena *scratch, struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    const char *draft = tn_arena_format(scratch, "%s/%s.%s.tmp", root, of->folder, name);
    const char *final = tn_name_in(scratch, root, of->folder, name);
    tn_rc rc = draft && final ? write_hint(io, draft, final, id, err) : no_room(err);
    tn_arena_reset(scratch, mark);
    return rc == TN_OK ? TN_OK : tn_err_in(err, "hint %s%s", of->folder, name);
}

tn_rc tn_snapshot_hint(struct tn_io *io, const char *root, const char *name, int64_t id,
                       struct tn_arena *scratch, struct tn_err *err)
{
    return put_hint(io, root, &snapshots, name, id, scratch, err);
}

tn_rc tn_changelog_hint(struct tn_io *io, const char *root, const char *name, int64_t id,
                        struct tn_arena *scratch, struct tn_err *err)
{
    return put_hint(io, root, &changelogs, name, id, scratch, err);
}

tn_rc tn_changelog_range(struct tn_io *io, const char *root, struct tn_arena *scratch,
                         struct tn_changelog_range *range, struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    struct range found;
    tn_rc rc = list_range(io, root, &changelogs, scratch, &found, err);
    if (rc == TN_OK) {
        int64_t id;
        rc = read_sound_hint(io, root, &changelogs, "EARLIEST", scratch, &id, err);
        if (rc == TN_OK) {
            *range = (struct tn_changelog_range){found.min, id > 0 ? id : found.min, found.max};
        }
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

static void remove_hint(struct tn_io *io, const char *root, const char *name,
                        struct tn_arena *scratch)
{
    struct tn_err ignored;
    size_t mark = tn_arena_mark(scratch);
    const char *path = tn_name_in(scratch, root, TN_DIR_SNAPSHOT, name);
    if (path) {
        (void)io->vtable->unlink(io, path, &ignored);
    }
    tn_arena_reset(scratch, mark);
}

static void heal_hint(struct tn_io *io, const char *root, const char *name, int64_t id,
                      struct tn_arena *scratch)
{
    struct tn_err ignored;
    int64_t said;
    size_t mark = tn_arena_mark(scratch);
    tn_rc rc = read_hint(io, root, &snapshots, name, scratch, &said, &ignored);
    tn_arena_reset(scratch, mark);
    if (rc == TN_OK && said != id &&
        tn_snapshot_hint(io, root, name, id, scratch, &ignored) != TN_OK) {
        remove_hint(io, root, name, scratch); /* none is better than a wrong one */
    }
}

void tn_snapshot_heal_hints(struct tn_io *io, const char *root, struct tn_arena *scratch)
{
    struct tn_err ignored;
    int64_t first;
    int64_t last;
    size_t mark = tn_arena_mark(scratch);
    tn_rc rc = tn_snapshot_newest_name(io, root, scratch, &last, &ignored);
    if (rc == TN_OK) {
        rc = tn_snapshot_earliest(io, root, scratch, &first, &ignored);
    }
    tn_arena_reset(scratch, mark);
    if (rc == TN_OK) {
        heal_hint(io, root, "LATEST", last, scratch);
        heal_hint(io, root, "EARLIEST", first, scratch);
    } else if (rc == TN_ABSENT) {
        remove_hint(io, root, "LATEST", scratch);
        remove_hint(io, root, "EARLIEST", scratch);
    }
}
