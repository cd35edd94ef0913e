#include "app/told.h"

#include <inttypes.h>
#include <string.h>

#include "commit/publish.h"

#define FOLDER ".tarn/lakes/"

enum { LINE_BESIDE = 24 }; /* an id, a blank and the line's end */

/* "17 plant.readings", without its end. False: it is no such line. */
static bool take_line(struct tn_bytes line, struct tn_told_entry *entries, uint32_t count)
{
    int64_t id = 0;
    size_t at = 0;
    for (; at < line.size && line.data[at] >= '0' && line.data[at] <= '9'; at++) {
        if (id > (INT64_MAX - 9) / 10) {
            return false;
        }
        id = id * 10 + (line.data[at] - '0');
    }
    if (at == 0 || at + 1 >= line.size || line.data[at] != ' ') {
        return false;
    }
    struct tn_bytes table = {line.data + at + 1, line.size - at - 1};
    for (uint32_t i = 0; i < count; i++) {
        if (tn_bytes_equal(table, tn_bytes_of(entries[i].table))) {
            entries[i].id = id;
        }
    }
    return true;
}

static void set_all(struct tn_told_entry *entries, uint32_t count, int64_t id)
{
    for (uint32_t i = 0; i < count; i++) {
        entries[i].id = id;
    }
}

/* The last line has an end, too: one that was cut is found. */
static bool parse(struct tn_bytes text, struct tn_told_entry *entries, uint32_t count)
{
    while (text.size > 0) {
        const unsigned char *end = memchr(text.data, '\n', text.size);
        size_t size = end ? (size_t)(end - text.data) : 0;
        if (!end || !take_line((struct tn_bytes){text.data, size}, entries, count)) {
            return false;
        }
        text.data += size + 1;
        text.size -= size + 1;
    }
    return true;
}

tn_rc tn_told_load(struct tn_told_entry *entries, uint32_t count, struct tn_io *io,
                   const char *lake, struct tn_arena *scratch, struct tn_err *err)
{
    struct tn_bytes text;
    size_t mark = tn_arena_mark(scratch);
    const char *path = tn_arena_format(scratch, FOLDER "%s.told", lake);
    set_all(entries, count, TN_TOLD_UNKNOWN);
    tn_rc rc = path ? tn_io_read_all(io, path, TN_TOLD_SIZE_MAX, scratch, &text, err)
                    : tn_err_set(err, TN_AGAIN, 0, "no memory for a path");
    if (rc == TN_OK && !parse(text, entries, count)) {
        rc = tn_err_set(err, TN_CORRUPT, 0, "%s: it isn't what was written there", path);
    }
    if (rc != TN_OK && rc != TN_ABSENT) {
        set_all(entries, count, 0);
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

static tn_rc put_all(const struct tn_told_entry *entries, uint32_t count, struct tn_arena *scratch,
                     struct tn_buf *text, struct tn_err *err)
{
    size_t size = 1;
    void *memory;
    for (uint32_t i = 0; i < count; i++) {
        size += strlen(entries[i].table) + LINE_BESIDE;
    }
    tn_rc rc = tn_arena_need(scratch, size, "what was told", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_buf_init(text, memory, size);
    for (uint32_t i = 0; i < count; i++) {
        if (entries[i].id != TN_TOLD_UNKNOWN) {
            tn_buf_format(text, "%" PRId64 " ", entries[i].id);
            tn_buf_text(text, entries[i].table);
            tn_buf_byte(text, '\n');
        }
    }
    return TN_OK;
}

tn_rc tn_told_save(const struct tn_told_entry *entries, uint32_t count, struct tn_io *io,
                   const char *lake, struct tn_arena *scratch, struct tn_err *err)
{
    static const char *const folders[] = {FOLDER};
    struct tn_buf text;
    size_t mark = tn_arena_mark(scratch);
    const char *path = tn_arena_format(scratch, FOLDER "%s.told", lake);
    const char *draft = tn_arena_format(scratch, FOLDER "%s.told.draft", lake);
    tn_rc rc = path && draft ? put_all(entries, count, scratch, &text, err)
                             : tn_err_set(err, TN_AGAIN, 0, "no memory for a path");
    if (rc == TN_OK) {
        rc = io->vtable->make_dir(io, FOLDER, err);
    }
    if (rc == TN_OK) {
        rc = tn_publish_over(io, draft, path, tn_buf_bytes(&text), err);
    }
    if (rc == TN_OK) {
        rc = io->vtable->sync(io, folders, 1, err);
    }
    tn_arena_reset(scratch, mark);
    return rc;
}
