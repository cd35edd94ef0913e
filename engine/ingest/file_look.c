#include "ingest/file_look.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOVES_MAX = 16,              /* from file to file in a look */
    SCAN_MAX = 16 * 1024 * 1024, /* bytes of a record that is too long, likewise */
};

/* ---- records ---- */

/* Whole records, up to the limit; at the last end what is left is one. */
static void cut(struct tn_file_look *l, size_t got, bool ended)
{
    const unsigned char *at = l->data;
    const unsigned char *end = at + got;
    uint32_t records = 0;
    while (at < end) {
        struct tn_record_place place = {0};
        const unsigned char *next =
            tn_record_end(l->input, (struct tn_bytes){at, (size_t)(end - at)}, &place);
        next = !next && ended ? end : next;
        if (!next || (records > 0 && (size_t)(next - l->data) > l->limit)) {
            break;
        }
        at = next;
        records++;
    }
    l->batch = (size_t)(at - l->data);
    l->one = records == 1;
}

static uint64_t count_lines(const unsigned char *data, size_t size)
{
    uint64_t count = 0;
    for (size_t at = 0; at < size; count++) {
        const unsigned char *newline = memchr(data + at, '\n', size - at);
        at = newline ? (size_t)(newline - data) + 1 : size;
    }
    return count;
}

/* ---- bytes ---- */

static tn_rc read_at(struct tn_file_look *l, uint64_t offset, unsigned char *data, size_t size,
                     size_t *got, struct tn_err *err)
{
    size_t n = 1;
    size_t filled = 0;
    tn_rc rc = tn_source_seek(&l->file, offset, err);
    while (rc == TN_OK && n > 0 && filled < size) {
        rc = tn_source_read(&l->file, data + filled, size - filled, &n, err);
        filled += rc == TN_OK ? n : 0;
    }
    *got = filled;
    return rc;
}

static bool is_blank(const unsigned char *at, const unsigned char *end)
{
    while (at < end && (*at == '\r' || *at == '\n')) {
        at++;
    }
    return at == end;
}

/* csv: the line that names the columns, with blank ones before it, to right before the data. */
static tn_rc read_header(struct tn_file_look *l, struct tn_err *err)
{
    unsigned char *room = l->data - TN_FILE_HEADER_MAX;
    size_t got;
    tn_rc rc = read_at(l, 0, room, TN_FILE_HEADER_MAX, &got, err);
    if (rc != TN_OK) {
        return rc;
    }
    const unsigned char *at = room;
    const unsigned char *next;
    while ((next = memchr(at, '\n', (size_t)(room + got - at))) && is_blank(at, next)) {
        at = next + 1;
    }
    if (!next) {
        return got < TN_FILE_HEADER_MAX
                   ? TN_OK
                   : tn_err_set(err, TN_INVALID, 0,
                                "%s: the line that names the columns is longer than %d bytes: "
                                "nothing of the file is read",
                                l->name, TN_FILE_HEADER_MAX);
    }
    l->header_size = (size_t)(next + 1 - room);
    if (l->place.offset < l->header_size) {
        l->place.offset = l->header_size;
        l->place.line = count_lines(room, l->header_size);
    }
    memmove(l->data - l->header_size, room, l->header_size);
    return TN_OK;
}

static uint64_t count_line_ends(struct tn_bytes bytes)
{
    uint64_t count = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        count += bytes.data[i] == '\n';
    }
    return count;
}

/* A record fills all of the data, and goes on behind it. More than that may be known of it. */
static struct tn_file_scan begin_scan(const struct tn_file_look *l)
{
    struct tn_bytes all = {l->data, l->size};
    struct tn_file_scan scan = {.end = l->place.offset + l->size};
    if (l->scanned.end > scan.end) {
        return l->scanned;
    }
    (void)tn_record_end(l->input, all, &scan.place);
    scan.line_ends = count_line_ends(all);
    return scan;
}

/* Looks for the end of such a record; its beginning stays in the data. */
static tn_rc scan(struct tn_file_look *l, bool ending, struct tn_err *err)
{
    size_t half = l->size / 2;
    size_t got = half;
    struct tn_file_scan s = begin_scan(l);
    uint64_t believed = l->place.offset + (uint64_t)TN_RECORD_MESSAGES_MAX * l->size;
    uint64_t most = s.end + SCAN_MAX;
    while (s.end < most && got == half) {
        tn_rc rc = read_at(l, s.end, l->data + half, half, &got, err);
        if (rc != TN_OK) {
            return rc;
        }
        struct tn_bytes more = {l->data + half, got};
        const unsigned char *next = tn_record_end_within(
            l->input, more, s.end < believed ? believed - s.end : 0, &s.place, &l->given_up);
        more.size = next ? (size_t)(next - more.data) : got;
        s.end += more.size;
        s.line_ends += count_line_ends(more);
        if (next || (got < half && ending)) {
            l->batch = half;
            l->one = true;
            l->too_long = s.end - l->place.offset;
            l->too_long_lines = s.line_ends + !next;
            return TN_OK;
        }
    }
    l->scanned = s;
    return got < half ? TN_OK : tn_err_set(err, TN_AGAIN, 0, "%s: a very long line", l->name);
}

/* ---- whether it is still what it was ---- */

static tn_rc changed(const struct tn_file_look *l, struct tn_err *err)
{
    return tn_err_set(err, TN_CONFLICT, 0, "%s was cut short or written anew", l->name);
}

/* The place's first bytes come last: had they changed before the batch was read, they would be
 * other ones now. */
static tn_rc verify(struct tn_file_look *l, struct tn_err *err)
{
    const char *dash = strchr(l->place.identity, '-');
    dash = dash ? strchr(dash + 1, '-') : NULL;
    uint64_t hashed = dash ? strtoull(dash + 1, NULL, 10) : 0;
    struct tn_source_about about;
    tn_rc rc = tn_source_about(&l->file, &about, err);
    if (rc != TN_OK) {
        return rc;
    }
    l->next = l->place;
    l->next.modified_ns = about.modified_ns;
    l->next.offset += l->too_long > 0 ? l->too_long : l->batch;
    l->next.line += l->too_long > 0 ? l->too_long_lines : count_lines(l->data, l->batch);
    l->next.part = l->batch > 0 ? 0 : l->next.part;
    if (l->next.offset > hashed && hashed < TN_SOURCE_HASHED) {
        rc = tn_source_identify(&l->file, l->next.offset, err);
        (void)memcpy(l->next.identity, l->file.identity, sizeof l->next.identity);
    }
    if (rc == TN_OK) {
        rc = tn_source_identify(&l->file, hashed, err);
    }
    if (rc != TN_OK) {
        return err->os == ENODATA ? changed(l, err) : rc;
    }
    return strcmp(l->file.identity, l->place.identity) == 0 ? TN_OK : changed(l, err);
}

static bool is_idle(const struct tn_file_look *l, const struct tn_source_about *about, bool ending)
{
    return about->size == l->idle.size && about->modified_ns == l->idle.modified_ns &&
           about->inode == l->idle.inode && ending == l->idle_ending;
}

static tn_rc read_records(struct tn_file_look *l, bool ending, struct tn_err *err)
{
    size_t got;
    tn_rc rc = read_at(l, l->place.offset, l->data, l->size, &got, err);
    if (rc != TN_OK) {
        return rc;
    }
    cut(l, got, ending && got < l->size);
    if (l->batch > 0 || got < l->size) {
        return TN_OK;
    }
    return scan(l, ending, err);
}

/* `ending`: nobody writes to it any more. CONFLICT: it is another one. */
static tn_rc read_batch(struct tn_file_look *l, bool ending, struct tn_err *err)
{
    struct tn_source_about about;
    tn_rc rc = tn_source_about(&l->file, &about, err);
    if (rc != TN_OK || is_idle(l, &about, ending)) {
        return rc;
    }
    if (about.size < l->place.offset) {
        return changed(l, err);
    }
    if (l->input == TN_INPUT_CSV && l->header_size == 0) {
        rc = read_header(l, err);
        if (rc != TN_OK) {
            return rc;
        }
    }
    bool any = l->input != TN_INPUT_CSV || l->header_size > 0;
    rc = any ? read_records(l, ending, err) : TN_OK;
    tn_rc verified = verify(l, err);
    if (verified != TN_OK) {
        l->batch = 0;
        return verified;
    }
    if (rc == TN_OK && l->batch == 0) {
        l->idle = about;
        l->idle_ending = ending;
    }
    return rc;
}

/* ---- public ---- */

tn_rc tn_file_look_init(struct tn_file_look *look, struct tn_err *err)
{
    const char *slash = strrchr(look->path, '/');
    size_t size = slash ? (size_t)(slash - look->path) + (slash == look->path) : 1;
    if (strlen(look->path) >= TN_FILE_PATH_MAX) {
        return tn_err_set(err, TN_INVALID, 0, "a path of more than %d bytes", TN_FILE_PATH_MAX - 1);
    }
    memcpy(look->folder, slash ? look->path : ".", size);
    look->folder[size] = 0;
    look->limit = look->size;
    return TN_OK;
}

void tn_file_look_close(struct tn_file_look *look)
{
    if (look->open) {
        tn_source_close(&look->file);
    }
    look->open = false;
}

tn_rc tn_file_look(struct tn_file_look *look, struct tn_err *err)
{
    struct tn_file_look *l = look;
    l->loss = TN_FILE_LOSS_NONE;
    for (int moves = 0; moves < MOVES_MAX; moves++) {
        struct tn_file_next next = {0};
        l->batch = 0;
        l->too_long = 0;
        tn_rc rc = l->open ? TN_OK : tn_file_find(l, err);
        if (rc == TN_OK) {
            rc = tn_file_find_next(l, &next, err);
        }
        if (rc == TN_OK) {
            rc = read_batch(l, next.found || l->once, err);
        }
        if (rc == TN_CONFLICT) { /* a copy of it may lie beside it */
            tn_file_look_close(l);
            continue;
        }
        bool passed = next.found && (rc == TN_OK || rc == TN_INVALID) && l->batch == 0;
        if (!passed) {
            return rc;
        }
        rc = tn_file_begin_next(l, &next, err);
        if (rc != TN_OK) {
            return rc;
        }
    }
    return tn_err_set(err, TN_AGAIN, 0, "%s: files go by", l->path);
}
