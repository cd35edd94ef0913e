#include "upload/tag_record.h"

#include <errno.h>
#include <string.h>

enum {
    WORD_SIZE = 4, /* "has " */
    NAME_AT = WORD_SIZE + TN_HASH_128_DIGITS + 1,
    RECORD_SIZE_MAX = 256 * 1024, /* some thousand tags */
};

static const char HAS[] = "has ";
static const char DUE[] = "due ";
static const char MAY[] = "may ";

static tn_rc path_of(const char *table, struct tn_arena *arena, const char **path,
                     struct tn_err *err)
{
    *path = tn_arena_format(arena, ".tarn/%s/tags", table);
    return *path ? TN_OK : tn_err_set(err, TN_AGAIN, 0, "no memory for the name of a record");
}

static bool parse_line(const char *text, struct tn_tag_line *line)
{
    line->unsure = strncmp(text, MAY, WORD_SIZE) == 0;
    line->due = line->unsure || strncmp(text, DUE, WORD_SIZE) == 0;
    if ((!line->due && strncmp(text, HAS, WORD_SIZE) != 0) || strlen(text) <= NAME_AT ||
        !tn_hash_128_parse(text + WORD_SIZE, &line->hash) || text[NAME_AT - 1] != ' ') {
        return false;
    }
    line->name = text + NAME_AT;
    return true;
}

static tn_rc parse(struct tn_bytes text, struct tn_arena *arena, struct tn_tag_record *record,
                   struct tn_err *err)
{
    const char *at = (const char *)text.data;
    const char *end = at + text.size;
    uint32_t count = 0;
    void *memory;
    for (const char *c = at; c < end; c++) {
        count += *c == '\n';
    }
    tn_rc rc = tn_arena_need(arena, (count + 1) * sizeof *record->lines, "tags", &memory, err);
    record->lines = rc == TN_OK ? memory : NULL;
    for (record->count = 0; rc == TN_OK && record->count < count; record->count++) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        const char *line = tn_arena_format(arena, "%.*s", (int)(line_end - at), at);
        if (!line) {
            rc = tn_err_set(err, TN_AGAIN, 0, "no memory for a record of tags");
        } else if (!parse_line(line, &record->lines[record->count])) {
            rc = tn_err_set(err, TN_CORRUPT, 0, "line %u is none", (unsigned)record->count + 1);
        }
        at = line_end + 1;
    }
    return rc == TN_OK && at != end ? tn_err_set(err, TN_CORRUPT, 0, "its end is missing") : rc;
}

/* To take one that can't be read for none would make strangers of our own tags. */
static tn_rc make_sure(struct tn_target *target, const char *path, struct tn_err *err)
{
    tn_rc rc = target->vtable->publish(target, path, tn_bytes_of(""), err);
    if (rc == TN_CONFLICT) {
        rc = tn_err_set(err, TN_IO, EACCES, "%s: %s: permission to read it was denied",
                        target->name, path);
    }
    return rc;
}

tn_rc tn_tag_record_read(struct tn_target *target, const char *table, bool writes,
                         struct tn_arena *arena, struct tn_tag_record *record, struct tn_err *err)
{
    const char *path;
    struct tn_bytes text;
    *record = (struct tn_tag_record){0};
    tn_rc rc = path_of(table, arena, &path, err);
    if (rc == TN_OK) {
        rc = target->vtable->read(target, path, RECORD_SIZE_MAX, arena, &text, err);
    }
    if (writes && tn_target_is_hidden(rc, err)) {
        return make_sure(target, path, err);
    }
    if (rc != TN_OK) {
        return rc == TN_ABSENT ? TN_OK : rc;
    }
    rc = parse(text, arena, record, err);
    return rc == TN_OK ? rc : tn_err_in(err, "%s: %s", target->name, path);
}

static const char *word_of(const struct tn_tag_line *line)
{
    return !line->due ? HAS : line->unsure ? MAY : DUE;
}

static tn_rc format(const struct tn_tag_record *record, struct tn_arena *arena, struct tn_buf *text,
                    struct tn_err *err)
{
    size_t size = 1;
    void *memory;
    for (uint32_t i = 0; i < record->count; i++) {
        size += NAME_AT + strlen(record->lines[i].name) + 1;
    }
    tn_rc rc = size <= RECORD_SIZE_MAX
                   ? tn_arena_need(arena, size, "a record of tags", &memory, err)
                   : tn_err_set(err, TN_UNSUPPORTED, 0, "%u tags are too many for a mirror",
                                (unsigned)record->count);
    if (rc != TN_OK) {
        return rc;
    }
    tn_buf_init(text, memory, size);
    for (uint32_t i = 0; i < record->count; i++) {
        char hash[TN_HASH_128_DIGITS + 1];
        tn_hash_128_format(record->lines[i].hash, hash);
        tn_buf_format(text, "%s%s %s\n", word_of(&record->lines[i]), hash, record->lines[i].name);
    }
    return TN_OK;
}

tn_rc tn_tag_record_write(struct tn_target *target, const char *table,
                          const struct tn_tag_record *record, struct tn_arena *scratch,
                          struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    const char *path;
    struct tn_buf text;
    tn_rc rc = path_of(table, scratch, &path, err);
    if (rc == TN_OK) {
        rc = format(record, scratch, &text, err);
    }
    if (rc == TN_OK) {
        rc = target->vtable->replace(target, path, tn_buf_bytes(&text), err);
    }
    tn_arena_reset(scratch, mark);
    return rc == TN_OK ? target->vtable->settle(target, err) : rc;
}

struct tn_tag_line *tn_tag_record_find(const struct tn_tag_record *record, const char *name)
{
    for (uint32_t i = 0; i < record->count; i++) {
        if (strcmp(record->lines[i].name, name) == 0) {
            return &record->lines[i];
        }
    }
    return NULL;
}
