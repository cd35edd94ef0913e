#include "file/meta_private.h"

#include <inttypes.h>
#include <string.h>

static tn_rc fail(struct tn_meta_decoder *d, const char *what)
{
    return tn_err_set(d->err, TN_CORRUPT, 0, "field %s: %s", d->name, what);
}

static tn_rc ends_early(struct tn_meta_decoder *d)
{
    return fail(d, "ends too early or is no legal value");
}

tn_rc tn_meta_keep(struct tn_meta_decoder *d, struct tn_bytes from, struct tn_bytes *to)
{
    unsigned char *copy = tn_arena_take_raw(d->arena, from.size + 1);
    if (!copy) {
        return tn_err_set(d->err, TN_AGAIN, 0, "field %s needs %zu bytes, %zu are free", d->name,
                          from.size + 1, tn_arena_free(d->arena));
    }
    memcpy(copy, from.data, from.size);
    copy[from.size] = 0;
    *to = (struct tn_bytes){copy, from.size};
    return TN_OK;
}

static tn_rc decode_bytes(struct tn_meta_decoder *d, struct tn_bytes *to)
{
    struct tn_bytes view = tn_avro_bytes(d->cursor);
    return d->cursor->failed ? ends_early(d) : tn_meta_keep(d, view, to);
}

static tn_rc decode_text(struct tn_meta_decoder *d, const char **text)
{
    struct tn_bytes view = tn_avro_bytes(d->cursor);
    if (d->cursor->failed) {
        return ends_early(d);
    }
    if (view.size > 0 && memchr(view.data, 0, view.size)) {
        return fail(d, "a text holds a zero byte");
    }
    struct tn_bytes kept;
    tn_rc rc = tn_meta_keep(d, view, &kept);
    if (rc == TN_OK) {
        *text = (const char *)kept.data;
    }
    return rc;
}

/* Names become parts of paths: what could leave the folder is refused where it comes in. */
static tn_rc check_name(struct tn_meta_decoder *d, const char *name)
{
    if (name[0] == '\0' || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        return fail(d, "is no bare file name");
    }
    return TN_OK;
}

static tn_rc decode_name(struct tn_meta_decoder *d, const char **name)
{
    const char *text = NULL;
    tn_rc rc = decode_text(d, &text);
    if (rc == TN_OK) {
        rc = check_name(d, text);
    }
    if (rc == TN_OK) {
        *name = text;
    }
    return rc;
}

/* The head of the next piece of an array: its items, 0 at the end. Each item has a byte or more. */
static int64_t array_next(struct tn_avro_cursor *c)
{
    int64_t count = tn_avro_long(c);
    if (count < 0) {
        count = count == INT64_MIN ? INT64_MAX : -count;
        (void)tn_avro_long(c); /* size in bytes, for those who skip */
    }
    if (count > c->end - c->at) {
        c->failed = true;
    }
    return c->failed ? 0 : count;
}

/* Counts an array's items without moving the cursor. False when the array is broken. */
static bool array_count(struct tn_avro_cursor cursor, const struct tn_avro_type *item,
                        uint32_t *count_out)
{
    uint32_t total = 0;
    for (int64_t count = array_next(&cursor); count > 0; count = array_next(&cursor)) {
        for (int64_t i = 0; i < count && !cursor.failed; i++) {
            tn_avro_skip(&cursor, item);
        }
        total += (uint32_t)count;
    }
    *count_out = total;
    return !cursor.failed;
}

static tn_rc decode_texts(struct tn_meta_decoder *d, const struct tn_avro_type *type, bool names,
                          struct tn_texts *texts)
{
    uint32_t count = 0;
    if (!array_count(*d->cursor, &type->children[0], &count)) {
        return ends_early(d);
    }
    void *made = NULL;
    tn_rc rc = tn_arena_need(d->arena, count * sizeof(char *) + 1, d->name, &made, d->err);
    if (rc) {
        return rc;
    }
    const char **items = made;
    uint32_t used = 0;
    for (int64_t piece = array_next(d->cursor); piece > 0; piece = array_next(d->cursor)) {
        for (; piece > 0 && used < count; piece--) {
            rc = names ? decode_name(d, &items[used]) : decode_text(d, &items[used]);
            if (rc) {
                return rc;
            }
            used++;
        }
    }
    *texts = (struct tn_texts){items, used, true};
    return d->cursor->failed ? ends_early(d) : TN_OK;
}

static tn_rc decode_counts(struct tn_meta_decoder *d, const struct tn_avro_type *type,
                           struct tn_stats *stats)
{
    if (!tn_avro_present(d->cursor, type)) {
        return d->cursor->failed ? ends_early(d) : TN_OK;
    }
    const struct tn_avro_type *item = &type->children[0];
    uint32_t count = 0;
    if (!array_count(*d->cursor, item, &count)) {
        return ends_early(d);
    }
    void *made = NULL;
    tn_rc rc = tn_arena_need(d->arena, count * sizeof(int64_t) + 1, d->name, &made, d->err);
    if (rc) {
        return rc;
    }
    int64_t *counts = made;
    uint32_t used = 0;
    for (int64_t piece = array_next(d->cursor); piece > 0; piece = array_next(d->cursor)) {
        for (; piece > 0 && used < count; piece--) {
            bool known = tn_avro_present(d->cursor, item);
            int64_t value = known ? tn_avro_long(d->cursor) : -1;
            counts[used++] = value < 0 ? -1 : value;
        }
    }
    stats->null_counts = counts;
    stats->null_count_count = used;
    return d->cursor->failed ? ends_early(d) : TN_OK;
}

static tn_rc decode_stats(struct tn_meta_decoder *d, const struct tn_avro_type *type,
                          struct tn_stats *stats)
{
    for (uint32_t i = 0; i < type->child_count; i++) {
        const struct tn_avro_type *child = &type->children[i];
        tn_rc rc = TN_OK;
        if (strcmp(type->names[i], TN_STATS_NULLS_NAME) == 0) {
            rc = decode_counts(d, child, stats);
        } else if (strcmp(type->names[i], TN_STATS_MIN_NAME) == 0) {
            rc = tn_avro_present(d->cursor, child) ? decode_bytes(d, &stats->min) : ends_early(d);
        } else if (strcmp(type->names[i], TN_STATS_MAX_NAME) == 0) {
            rc = tn_avro_present(d->cursor, child) ? decode_bytes(d, &stats->max) : ends_early(d);
        } else {
            tn_avro_skip(d->cursor, child);
        }
        if (rc) {
            return rc;
        }
    }
    return d->cursor->failed ? ends_early(d) : TN_OK;
}

static tn_rc decode_number(struct tn_meta_decoder *d, const struct tn_member *m, void *at)
{
    int64_t value = tn_avro_long(d->cursor);
    if (d->cursor->failed) {
        return ends_early(d);
    }
    bool narrow = m->kind == TN_MEMBER_I32 || m->kind == TN_MEMBER_OPT_I32;
    if ((narrow && (value < INT32_MIN || value > INT32_MAX)) ||
        (m->kind == TN_MEMBER_COUNT && value < 0)) {
        return tn_err_set(d->err, TN_CORRUPT, 0, "field %s: %" PRId64 " is out of range", d->name,
                          value);
    }
    if (m->kind == TN_MEMBER_VERSION) {
        return value == (int64_t)m->offset
                   ? TN_OK
                   : tn_err_set(d->err, TN_UNSUPPORTED, 0, "metadata version %" PRId64, value);
    }
    if (m->kind == TN_MEMBER_I32) {
        *(int32_t *)at = (int32_t)value;
    } else if (m->kind == TN_MEMBER_OPT_I64 || m->kind == TN_MEMBER_OPT_I32) {
        *(struct tn_json_i64 *)at = (struct tn_json_i64){value, true};
    } else {
        *(int64_t *)at = value;
    }
    return TN_OK;
}

static tn_rc decode_member(struct tn_meta_decoder *d, const struct tn_avro_type *type,
                           const struct tn_member *m, void *at)
{
    d->name = m->name;
    if (!tn_avro_present(d->cursor, type)) {
        bool legal = m->kind >= TN_MEMBER_OPT_I64 && !d->cursor->failed;
        return legal ? TN_OK : fail(d, "is null");
    }
    switch (m->kind) {
    case TN_MEMBER_VERSION:
    case TN_MEMBER_I32:
    case TN_MEMBER_I64:
    case TN_MEMBER_COUNT:
    case TN_MEMBER_OPT_I64:
    case TN_MEMBER_OPT_I32:
        return decode_number(d, m, at);
    case TN_MEMBER_NAME:
        return decode_name(d, at);
    case TN_MEMBER_TEXT:
    case TN_MEMBER_OPT_TEXT:
        return decode_text(d, at);
    case TN_MEMBER_BYTES:
    case TN_MEMBER_OPT_BYTES:
        return decode_bytes(d, at);
    case TN_MEMBER_STATS:
        return decode_stats(d, type, at);
    case TN_MEMBER_FILES:
    case TN_MEMBER_OPT_TEXTS:
        return decode_texts(d, type, m->kind == TN_MEMBER_FILES, at);
    case TN_MEMBER_FILE:
        break;
    }
    return TN_OK;
}

/* Fields from `from` up to the next one that is a `_FILE`, or to the end; returns where it stopped
 * in *stop. */
static tn_rc decode_fields(struct tn_meta_decoder *d, const struct tn_avro_type *record,
                           const int32_t *map, struct tn_members members, void *out, uint32_t from,
                           uint32_t *stop)
{
    uint32_t i = from;
    for (; i < record->child_count; i++) {
        if (map[i] < 0) {
            tn_avro_skip(d->cursor, &record->children[i]);
            continue;
        }
        const struct tn_member *m = &members.items[map[i]];
        if (m->kind == TN_MEMBER_FILE) {
            break;
        }
        tn_rc rc = decode_member(d, &record->children[i], m, (unsigned char *)out + m->offset);
        if (rc) {
            return rc;
        }
    }
    *stop = i;
    d->name = record->child_count > 0 ? record->names[record->child_count - 1] : "";
    return d->cursor->failed ? ends_early(d) : TN_OK;
}

static tn_rc check_kind(struct tn_meta_decoder *d, enum tn_entry_kind kind)
{
    d->name = "_KIND";
    return kind == TN_ENTRY_ADD || kind == TN_ENTRY_DELETE
               ? TN_OK
               : fail(d, "is neither 0 (ADD) nor 1 (DELETE)");
}

static tn_rc check_entry(struct tn_meta_decoder *d, const struct tn_entry *entry)
{
    if (entry->file.level < 0) {
        d->name = "_LEVEL";
        return fail(d, "is negative");
    }
    return TN_OK;
}

tn_rc tn_entry_decode(const struct tn_meta_plan *plan, struct tn_avro_cursor *cursor,
                      struct tn_arena *arena, struct tn_entry *entry, struct tn_err *err)
{
    struct tn_meta_decoder d = {cursor, arena, err, ""};
    struct tn_entry out;
    memset(&out, 0, sizeof out);
    const struct tn_avro_type *top = &plan->type;
    uint32_t at = 0;
    uint32_t end = 0;
    tn_rc rc = decode_fields(&d, top, plan->top, tn_entry_members, &out, 0, &at);
    if (rc == TN_OK) { /* the plan saw to it that there is one _FILE */
        rc = decode_fields(&d, &top->children[at], plan->file, tn_file_members, &out.file, 0, &end);
    }
    if (rc == TN_OK) {
        rc = decode_fields(&d, top, plan->top, tn_entry_members, &out, at + 1, &end);
    }
    if (rc == TN_OK) {
        rc = check_kind(&d, out.kind);
    }
    if (rc == TN_OK) {
        rc = check_entry(&d, &out);
    }
    if (rc == TN_OK) {
        *entry = out;
    }
    return rc;
}

tn_rc tn_manifest_meta_decode(const struct tn_meta_plan *plan, struct tn_avro_cursor *cursor,
                              struct tn_arena *arena, struct tn_manifest_meta *meta,
                              struct tn_err *err)
{
    struct tn_meta_decoder d = {cursor, arena, err, ""};
    struct tn_manifest_meta out;
    memset(&out, 0, sizeof out);
    uint32_t end = 0;
    tn_rc rc = decode_fields(&d, &plan->type, plan->top, tn_list_members, &out, 0, &end);
    if (rc == TN_OK) {
        *meta = out;
    }
    return rc;
}

tn_rc tn_index_decode(const struct tn_meta_plan *plan, struct tn_avro_cursor *cursor,
                      struct tn_arena *arena, struct tn_index_entry *entry, struct tn_err *err)
{
    struct tn_meta_decoder d = {cursor, arena, err, ""};
    struct tn_index_entry out;
    memset(&out, 0, sizeof out);
    uint32_t end = 0;
    tn_rc rc = decode_fields(&d, &plan->type, plan->top, tn_index_members, &out, 0, &end);
    if (rc == TN_OK) {
        rc = check_kind(&d, out.kind);
    }
    if (rc == TN_OK) {
        *entry = out;
    }
    return rc;
}
