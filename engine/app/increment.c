#include "app/increment.h"

#include <inttypes.h>
#include <stdlib.h>

#include "file/names.h"

enum mode { AUTO, DELTA, CHANGELOG, DIFF };

struct ends {
    const char *a;
    const char *b;
    bool tags;
    int64_t from; /* without tags */
    int64_t to;
};

static tn_rc parse_mode(const char *text, enum mode *mode, struct tn_err *err)
{
    static const char *const words[] = {"auto", "delta", "changelog", "diff"};
    *mode = AUTO;
    for (int i = AUTO; text && i <= DIFF; i++) {
        if (strcmp(text, words[i]) == 0) {
            *mode = (enum mode)i;
            return TN_OK;
        }
    }
    return text ? tn_err_set(err, TN_INVALID, 0,
                             "--incremental-mode %s: auto, delta, changelog or diff", text)
                : TN_OK;
}

static const char *tag_path(struct tn_reader *reader, const char *tag)
{
    return strchr(tag, '/')
               ? NULL
               : tn_arena_format(&reader->app->table, "%s/%stag-%s", reader->root, TN_DIR_TAG, tag);
}

static bool is_tag(struct tn_reader *reader, const char *name)
{
    struct tn_err ignored;
    uint64_t size;
    const char *path = tag_path(reader, name);
    struct tn_io *io = &reader->app->posix.io;
    return path && io->vtable->stat(io, path, &size, &ignored) == TN_OK;
}

static bool parse_id(const char *text, int64_t *id)
{
    char *end;
    long long value = strtoll(text, &end, 10);
    *id = value;
    return end != text && *end == 0 && value >= 0;
}

static tn_rc parse_range(struct tn_reader *reader, const char *range, struct ends *ends,
                         struct tn_err *err)
{
    const char *comma = strchr(range, ',');
    if (comma) {
        struct tn_bytes a = {(const unsigned char *)range, (size_t)(comma - range)};
        ends->a = tn_arena_text(&reader->app->table, a);
        ends->b = comma + 1;
    }
    if (!comma || !ends->a) {
        return tn_err_set(err, TN_INVALID, 0, "--incremental %s: want A,B", range);
    }
    ends->tags = is_tag(reader, ends->a) && is_tag(reader, ends->b);
    if (!ends->tags && (!parse_id(ends->a, &ends->from) || !parse_id(ends->b, &ends->to) ||
                        ends->to < ends->from)) {
        return tn_err_set(err, TN_INVALID, 0,
                          "--incremental %s: want two snapshots A,B with A <= B, or two tags",
                          range);
    }
    return TN_OK;
}

/* ---- diff ---- */

static tn_rc read_tag(struct tn_reader *reader, const char *tag, struct tn_snapshot *snapshot,
                      struct tn_err *err)
{
    const char *path = tag_path(reader, tag);
    return path ? tn_snapshot_read_path(&reader->app->posix.io, path, &reader->app->table, snapshot,
                                        err)
                : tn_err_set(err, TN_AGAIN, 0, "no memory for a tag's name");
}

static tn_rc read_id(struct tn_reader *reader, int64_t id, struct tn_snapshot *snapshot,
                     struct tn_err *err)
{
    tn_rc rc = tn_snapshot_read(&reader->app->posix.io, reader->root, id, &reader->app->table,
                                snapshot, err);
    return rc == TN_ABSENT
               ? tn_err_set(err, TN_INVALID, 0, "%s has no snapshot %" PRId64, reader->name, id)
               : rc;
}

static tn_rc open_diff(struct tn_increment *inc, struct tn_reader *reader,
                       const struct tn_scan_spec *spec, const struct ends *ends, bool with_deletes,
                       struct tn_err *err)
{
    struct tn_app *app = reader->app;
    const struct tn_part *window = tn_budget_part(&app->budget, "memtable");
    struct tn_snapshot *both = tn_arena_take(&app->table, 2 * sizeof *both);
    if (!both) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for two snapshots");
    }
    tn_rc rc = ends->tags ? read_tag(reader, ends->a, &both[0], err)
                          : read_id(reader, ends->from, &both[0], err);
    if (rc == TN_OK) {
        rc = ends->tags ? read_tag(reader, ends->b, &both[1], err)
                        : read_id(reader, ends->to, &both[1], err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    if (both[1].id < both[0].id) {
        return tn_err_set(err, TN_INVALID, 0, "--incremental: tag '%s' is older than tag '%s'",
                          ends->b, ends->a);
    }
    struct tn_diff_spec diff = {
        .scan = spec, .before = &both[0], .after = &both[1], .with_deletes = with_deletes};
    inc->compares = true;
    inc->projection = &inc->diff.projection;
    return tn_diff_open(&inc->diff, &diff, window->base, window->size, &app->table,
                        &app->workers[TN_LANE_LONG], err);
}

/* ---- delta and changelog ---- */

/* A may be the snapshot before the earliest: nothing of it is read. */
static tn_rc check_range(struct tn_reader *reader, const struct ends *ends, struct tn_err *err)
{
    struct tn_io *io = &reader->app->posix.io;
    struct tn_arena *arena = &reader->app->table;
    int64_t first;
    int64_t last;
    tn_rc rc = tn_snapshot_earliest(io, reader->root, arena, &first, err);
    if (rc == TN_OK) {
        rc = tn_snapshot_latest(io, reader->root, arena, &last, err);
    }
    if (rc == TN_OK && (ends->from < first - 1 || ends->to > last)) {
        rc = tn_err_set(err, TN_INVALID, 0,
                        "--incremental %s,%s: snapshots %" PRId64 " to %" PRId64 " are there",
                        ends->a, ends->b, first, last);
    }
    return rc;
}

static tn_rc open_tail(struct tn_increment *inc, struct tn_reader *reader,
                       const struct tn_scan_spec *spec, enum mode mode, const struct ends *ends,
                       struct tn_err *err)
{
    struct tn_tail_spec tail = {.scan = spec,
                                .source = tn_tail_source_of(spec->options),
                                .upper_only = tn_tail_skips_level0(reader->newest, spec->options),
                                .no_overwrites = true};
    if (mode != AUTO) {
        tail.source = mode == DELTA ? TN_TAIL_DELTA : TN_TAIL_CHANGELOG;
    }
    tn_rc rc = check_range(reader, ends, err);
    if (rc != TN_OK) {
        return rc;
    }
    inc->next = ends->from + 1;
    inc->to = ends->to;
    inc->projection = &inc->tail.projection;
    return tn_tail_open(&inc->tail, &tail, &reader->app->table, &reader->app->workers[TN_LANE_LONG],
                        err);
}

static tn_rc next_change(struct tn_increment *inc, struct tn_kv *kv, struct tn_err *err)
{
    for (;;) {
        if (!inc->tail.begun) {
            if (inc->next > inc->to) {
                return TN_ABSENT;
            }
            tn_rc rc = tn_err_named(err, tn_tail_begin(&inc->tail, inc->next, err));
            if (rc != TN_OK) {
                return rc;
            }
            inc->next++;
        }
        tn_rc rc = tn_tail_next(&inc->tail, kv, err);
        if (rc != TN_ABSENT) {
            return rc;
        }
        tn_tail_end(&inc->tail);
    }
}

/* ---- either ---- */

tn_rc tn_increment_open(struct tn_increment *increment, struct tn_reader *reader,
                        const struct tn_scan_spec *spec, const char *range, const char *mode,
                        bool with_deletes, struct tn_err *err)
{
    memset(increment, 0, sizeof *increment); /* too large for a literal on the stack */
    struct ends ends = {0};
    enum mode wanted;
    tn_rc rc = parse_mode(mode, &wanted, err);
    if (rc == TN_OK) {
        rc = parse_range(reader, range, &ends, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    if (ends.tags && (wanted == DELTA || wanted == CHANGELOG)) {
        return tn_err_set(err, TN_INVALID, 0, "--incremental-mode %s: tags are only compared: diff",
                          mode);
    }
    return ends.tags || wanted == DIFF
               ? open_diff(increment, reader, spec, &ends, with_deletes, err)
               : open_tail(increment, reader, spec, wanted, &ends, err);
}

tn_rc tn_increment_next(struct tn_increment *increment, struct tn_kv *kv, struct tn_err *err)
{
    return increment->compares ? tn_diff_next(&increment->diff, kv, err)
                               : next_change(increment, kv, err);
}

void tn_increment_close(struct tn_increment *increment)
{
    if (increment->compares) {
        tn_diff_close(&increment->diff);
    } else {
        tn_tail_end(&increment->tail);
    }
}
