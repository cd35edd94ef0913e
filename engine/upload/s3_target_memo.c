#include <inttypes.h>

#include "commit/publish.h"
#include "upload/http.h"
#include "upload/s3_target_private.h"

/* A line an upload: key, id, size, size of a part, when it last went on, with tabs between. */

enum { FIELDS = 5, DRAFT_SIZE = 1024 };

/* ---- a line ---- */

static bool take_field(struct tn_bytes *line, struct tn_bytes *field)
{
    const unsigned char *tab = line->size > 0 ? memchr(line->data, '\t', line->size) : NULL;
    size_t size = tab ? (size_t)(tab - line->data) : line->size;
    *field = (struct tn_bytes){line->data, size};
    line->data += tab ? size + 1 : size;
    line->size -= tab ? size + 1 : size;
    return tab || size > 0;
}

static bool keep_text(char *text, size_t size, struct tn_bytes field)
{
    if (field.size >= size || memchr(field.data, 0, field.size)) {
        return false;
    }
    memcpy(text, field.data, field.size);
    text[field.size] = 0;
    return true;
}

static bool parse(struct tn_bytes line, struct tn_s3_memo_entry *entry)
{
    struct tn_bytes fields[FIELDS];
    uint64_t seen_ms = 0;
    for (int i = 0; i < FIELDS; i++) {
        if (!take_field(&line, &fields[i])) {
            return false;
        }
    }
    bool good = line.size == 0 && fields[0].size > 0 &&
                keep_text(entry->key, sizeof entry->key, fields[0]) &&
                keep_text(entry->id, sizeof entry->id, fields[1]) &&
                tn_http_number(fields[2], &entry->size) &&
                tn_http_number(fields[3], &entry->part_size) &&
                tn_http_number(fields[4], &seen_ms) && seen_ms <= INT64_MAX;
    entry->seen_ms = good ? (int64_t)seen_ms : 0;
    return good;
}

static bool fits_line(const struct tn_s3_memo_entry *entry)
{
    return !strpbrk(entry->key, "\t\n") && !strpbrk(entry->id, "\t\n") && entry->seen_ms >= 0;
}

/* ---- the file ---- */

void tn_s3_memo_load(struct tn_s3_memo *memo)
{
    struct tn_bytes text = {NULL, 0};
    struct tn_err ignored;
    struct tn_arena arena;
    if (!memo->io || memo->loaded) {
        return;
    }
    memo->loaded = true;
    tn_arena_init(&arena, memo->text, TN_S3_MEMO_SIZE);
    if (tn_io_read_all(memo->io, memo->path, TN_S3_MEMO_SIZE - 64, &arena, &text, &ignored) !=
        TN_OK) {
        return;
    }
    while (text.size > 0 && memo->count < TN_S3_MEMO_MAX) {
        const unsigned char *end = memchr(text.data, '\n', text.size);
        size_t size = end ? (size_t)(end - text.data) : text.size;
        memo->count += parse((struct tn_bytes){text.data, size}, &memo->entries[memo->count]);
        text.data += end ? size + 1 : size;
        text.size -= end ? size + 1 : size;
    }
}

/* Its name lasts, too: who has no memo after a power cut sends all parts again. */
static tn_rc write_file(struct tn_s3_memo *memo, struct tn_bytes bytes, struct tn_err *err)
{
    struct tn_buf draft;
    unsigned char memory[DRAFT_SIZE];
    tn_buf_init(&draft, memory, sizeof memory);
    tn_buf_format(&draft, "%s.tmp", memo->path);
    tn_buf_byte(&draft, 0);
    const char *path = (const char *)memory;
    if (draft.overflow) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "%s: too long", memo->path);
    }
    tn_rc rc = tn_publish_over(memo->io, path, memo->path, bytes, err);
    if (rc == TN_OK) {
        const char *slash = strrchr(memo->path, '/');
        tn_buf_init(&draft, memory, sizeof memory);
        tn_buf_format(&draft, "%.*s/", slash ? (int)(slash - memo->path) : 0, memo->path);
        tn_buf_byte(&draft, 0);
        rc = memo->io->vtable->sync(memo->io, &path, 1, err);
    }
    return rc;
}

bool tn_s3_memo_save(struct tn_s3_memo *memo)
{
    struct tn_err ignored;
    struct tn_buf text;
    tn_buf_init(&text, memo->text, TN_S3_MEMO_SIZE);
    for (uint32_t i = 0; i < memo->count; i++) {
        const struct tn_s3_memo_entry *entry = &memo->entries[i];
        tn_buf_format(&text, "%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRId64 "\n", entry->key,
                      entry->id, entry->size, entry->part_size, entry->seen_ms);
    }
    return !text.overflow && write_file(memo, tn_buf_bytes(&text), &ignored) == TN_OK;
}

struct tn_s3_memo_entry *tn_s3_memo_find(struct tn_s3_memo *memo, const char *key)
{
    for (uint32_t i = 0; i < memo->count; i++) {
        if (strcmp(memo->entries[i].key, key) == 0) {
            return &memo->entries[i];
        }
    }
    return NULL;
}

bool tn_s3_memo_add(struct tn_s3_memo *memo, const struct tn_s3_memo_entry *entry)
{
    if (!memo->io || !fits_line(entry) || memo->count == TN_S3_MEMO_MAX) {
        return false;
    }
    memo->entries[memo->count++] = *entry;
    if (tn_s3_memo_save(memo)) {
        return true;
    }
    memo->count--;
    return false;
}

void tn_s3_memo_remove(struct tn_s3_memo *memo, const char *key)
{
    struct tn_s3_memo_entry *entry = tn_s3_memo_find(memo, key);
    if (entry) {
        *entry = memo->entries[--memo->count];
        (void)tn_s3_memo_save(memo); /* what stays in the file is found to be gone, later */
    }
}
