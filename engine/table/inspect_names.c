#include <inttypes.h>
#include <stddef.h>

#include "commit/consumer.h"
#include "file/names.h"
#include "table/folder.h"
#include "table/inspect_private.h"

enum { TAG_SIZE_MAX = TN_SNAPSHOT_SIZE_MAX };

/* ---- tags, branches, consumers ---- */

static tn_rc each_name(struct tn_line *l, const char *dir, const char *prefix, bool folders,
                       tn_folder_fn *each, struct tn_err *err)
{
    const char *path = tn_name_in(l->in->arena, l->in->root, dir, "");
    if (!path) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for a folder's name");
    }
    struct tn_folder folder = {l->in->worker->io, path, prefix, "", folders};
    return tn_folder_each(&folder, l->in->window, l->in->window_size, each, l, err);
}

static const char *const tags_columns[] = {"tag_name",     "snapshot_id",  "schema_id",
                                           "commit_time",  "record_count", "create_time",
                                           "time_retained"};

/* The text of a member of a tag's file, as it stands: both of a tag's own are arrays and numbers
 * without quotes. */
static struct tn_bytes raw_member(struct tn_bytes json, const char *key)
{
    size_t size = strlen(key);
    for (size_t i = 0; i + size + 2 < json.size; i++) {
        if (json.data[i] != '"' || memcmp(json.data + i + 1, key, size) != 0 ||
            json.data[i + 1 + size] != '"') {
            continue;
        }
        size_t from = i + size + 2;
        while (from < json.size && strchr(" :\n\r\t", json.data[from])) {
            from++;
        }
        char end = from < json.size && json.data[from] == '[' ? ']' : ',';
        size_t to = from;
        while (to < json.size && json.data[to] != end && json.data[to] != '}' &&
               json.data[to] != '\n') {
            to++;
        }
        return (struct tn_bytes){json.data + from, to - from};
    }
    return (struct tn_bytes){0};
}

/* [2026, 11, 29, 14, 40, 6, 288925430]: a local wall clock; trailing zeros may be absent. */
static void put_tag_time(struct tn_line *l, struct tn_bytes array)
{
    int64_t parts[7] = {0};
    uint32_t count = 0;
    bool digits = false;
    for (size_t i = 0; i < array.size && count < 7; i++) {
        unsigned char c = array.data[i];
        if (c >= '0' && c <= '9' && parts[count] < 1000000000) {
            parts[count] = parts[count] * 10 + (c - '0');
            digits = true;
        } else if (c == ',') {
            count++;
        }
    }
    if (!digits || count < 4) {
        tn_line_null(l);
        return;
    }
    tn_buf_format(&l->text,
                  "%04" PRId64 "-%02" PRId64 "-%02" PRId64 "T%02" PRId64 ":%02" PRId64 ":%02" PRId64
                  ".%09" PRId64,
                  parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], parts[6]);
    tn_line_cell(l, false, false);
}

static tn_rc show_tag_file(struct tn_line *l, const char *name, struct tn_bytes json,
                           struct tn_err *err)
{
    struct tn_snapshot s;
    tn_rc rc = tn_snapshot_decode(json, &l->in->worker->arena, &s, err);
    if (rc != TN_OK) {
        return tn_err_in(err, "tag %s", name);
    }
    tn_line_text(l, name);
    tn_line_number(l, s.id);
    tn_line_number(l, s.schema_id);
    if (s.time_ms.present) {
        tn_line_time(l, TN_TYPE_TIMESTAMP_LTZ, s.time_ms.value);
    } else {
        tn_line_null(l);
    }
    tn_line_maybe(l, s.total_record_count);
    put_tag_time(l, raw_member(json, "tagCreateTime"));
    struct tn_bytes retained = raw_member(json, "tagTimeRetained");
    size_t size = 0; /* seconds; its decimals are zeros */
    while (size < retained.size && retained.data[size] >= '0' && retained.data[size] <= '9') {
        size++;
    }
    tn_buf_append(&l->text, retained.data ? (const void *)retained.data : "", size);
    tn_buf_text(&l->text, size ? " s" : "");
    tn_line_cell(l, false, size == 0);
    return tn_line_end(l, err);
}

static tn_rc show_tag(void *user, const char *name, struct tn_err *err)
{
    struct tn_line *l = user;
    struct tn_arena *arena = &l->in->worker->arena;
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_arena_format(arena, "%s/%stag-%s", l->in->root, TN_DIR_TAG, name);
    struct tn_bytes json;
    tn_rc rc = path ? tn_io_read_all(l->in->worker->io, path, TAG_SIZE_MAX, arena, &json, err)
                    : tn_err_set(err, TN_AGAIN, 0, "no memory for a tag's name");
    if (rc == TN_OK) {
        rc = show_tag_file(l, name, json, err);
    } else if (rc == TN_ABSENT) {
        rc = TN_OK; /* dropped meanwhile */
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc run_tags(struct tn_line *l, struct tn_err *err)
{
    return each_name(l, TN_DIR_TAG, "tag-", false, show_tag, err);
}

const struct tn_view tn_view_tags = {tags_columns, sizeof tags_columns / sizeof tags_columns[0],
                                     run_tags, false};

static const char *const branches_columns[] = {"branch_name", "create_time"};

/* Paimon, too, takes the time that its folder was changed last. */
static tn_rc show_branch(void *user, const char *name, struct tn_err *err)
{
    struct tn_line *l = user;
    struct tn_arena *arena = &l->in->worker->arena;
    struct tn_io *io = l->in->worker->io;
    size_t mark = tn_arena_mark(arena);
    int64_t ms;
    const char *path = tn_arena_format(arena, "%s/%sbranch-%s", l->in->root, TN_DIR_BRANCH, name);
    tn_rc rc = path ? io->vtable->modified(io, path, &ms, err)
                    : tn_err_set(err, TN_AGAIN, 0, "no memory for a branch's name");
    if (rc == TN_OK) {
        tn_line_text(l, name);
        tn_line_time(l, TN_TYPE_TIMESTAMP_LTZ, ms);
        rc = tn_line_end(l, err);
    }
    tn_arena_reset(arena, mark);
    return rc == TN_ABSENT ? TN_OK : rc; /* dropped meanwhile */
}

static tn_rc run_branches(struct tn_line *l, struct tn_err *err)
{
    return each_name(l, TN_DIR_BRANCH, "branch-", true, show_branch, err);
}

const struct tn_view tn_view_branches = {
    branches_columns, sizeof branches_columns / sizeof branches_columns[0], run_branches, false};

static const char *const consumers_columns[] = {"consumer_id", "next_snapshot_id"};

static tn_rc show_consumer(void *user, const char *name, struct tn_err *err)
{
    struct tn_line *l = user;
    int64_t next;
    tn_rc rc =
        tn_consumer_read(l->in->worker->io, l->in->root, name, &l->in->worker->arena, &next, err);
    if (rc == TN_ABSENT) {
        return TN_OK; /* removed meanwhile */
    }
    if (rc == TN_OK) {
        tn_line_text(l, name);
        tn_line_number(l, next);
        rc = tn_line_end(l, err);
    }
    return rc;
}

static tn_rc run_consumers(struct tn_line *l, struct tn_err *err)
{
    return each_name(l, TN_DIR_CONSUMER, TN_CONSUMER_FILE, false, show_consumer, err);
}

const struct tn_view tn_view_consumers = {consumers_columns,
                                          sizeof consumers_columns / sizeof consumers_columns[0],
                                          run_consumers, false};
