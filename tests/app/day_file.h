/* day_file: a file that another program of the machine appends to, and rotates: NAME, then NAME.1,
 * NAME.2. What io/source.h reads are these files here instead of the system's, so that their
 * numbers, times and order are those of the seed.
 *
 * All that was ever written is one text; a file is a stretch of it. They lie on a disk of their own
 * that keeps what was written. Files go when all of them was taken. */
#pragma once

#include <errno.h>

#include "base/hash.h"
#include "day_world.h"
#include "ingest/file_look.h"

#define DAY_FOLDER    "/log"
#define DAY_FILE_NAME "day"

enum {
    DAY_FILES = DAY_NUMBERS,
    DAY_FILES_BESIDE = 9, /* that are kept though not all of them was taken */
    DAY_HANDLES = 8,
    DAY_FILE_CHUNK = 150,
};

struct day_written {
    size_t begin; /* in the text; it ends where the next one begins */
    uint64_t inode;
    int64_t modified_ns;
};

static struct {
    char text[DAY_NUMBERS * 64];
    size_t ends[DAY_NUMBERS]; /* of the lines up to a number */
    uint32_t lines;           /* that the text has */
    size_t size;              /* that is written */
    struct day_written files[DAY_FILES];
    uint32_t count;
    uint32_t oldest; /* that is still there */
    bool absent;     /* the newest was renamed, and there is none of the name yet */
    struct {
        bool open;
        uint32_t file;
        size_t offset;
    } handles[DAY_HANDLES];
} day_log_file;

/* ---- what io/source.h sees ---- */

static size_t day_file_size(uint32_t file)
{
    bool newest = file + 1 == day_log_file.count;
    size_t end = newest ? day_log_file.size : day_log_file.files[file + 1].begin;
    return end - day_log_file.files[file].begin;
}

/* Which one has a name now; `count`: none. */
static uint32_t day_file_find(const char *path)
{
    static const char stem[] = DAY_FOLDER "/" DAY_FILE_NAME;
    CHECK(strncmp(path, stem, sizeof stem - 1) == 0);
    const char *suffix = path + sizeof stem - 1;
    uint32_t age = suffix[0] == '.' ? (uint32_t)strtoul(suffix + 1, NULL, 10) : 0;
    uint32_t newest = day_log_file.count - !day_log_file.absent;
    return age <= newest && newest - age >= day_log_file.oldest ? newest - age : day_log_file.count;
}

static struct tn_source_about day_file_about(uint32_t file)
{
    return (struct tn_source_about){.device = 1,
                                    .inode = day_log_file.files[file].inode,
                                    .size = day_file_size(file),
                                    .modified_ns = day_log_file.files[file].modified_ns,
                                    .regular = true};
}

static tn_rc day_file_none(const char *path, tn_rc rc, struct tn_err *err)
{
    return tn_err_set(err, rc, ENOENT, "open %s: there is none", path);
}

tn_rc tn_source_stat(const char *path, struct tn_source_about *about, struct tn_err *err)
{
    uint32_t file = day_file_find(path);
    if (file == day_log_file.count) {
        return day_file_none(path, TN_ABSENT, err);
    }
    *about = day_file_about(file);
    return TN_OK;
}

tn_rc tn_source_about(const struct tn_source *source, struct tn_source_about *about,
                      struct tn_err *err)
{
    (void)err;
    *about = day_file_about(day_log_file.handles[source->file].file);
    return TN_OK;
}

tn_rc tn_source_identify(struct tn_source *source, uint64_t size, struct tn_err *err)
{
    (void)err;
    uint32_t file = day_log_file.handles[source->file].file;
    const struct day_written *written = &day_log_file.files[file];
    size_t most = day_file_size(file) < TN_SOURCE_HASHED ? day_file_size(file) : TN_SOURCE_HASHED;
    size_t hashed = size < most ? (size_t)size : most;
    const unsigned char *bytes = (const unsigned char *)day_log_file.text + written->begin;
    (void)snprintf(source->identity, sizeof source->identity, "1-%" PRIu64 "-%zu-%016" PRIx64,
                   written->inode, hashed, tn_hash_64((struct tn_bytes){bytes, hashed}, 0));
    return TN_OK;
}

tn_rc tn_source_open(struct tn_source *source, const char *path, const char *known,
                     struct tn_err *err)
{
    uint64_t hashed = TN_SOURCE_HASHED;
    uint32_t file = day_file_find(path);
    int handle = 1;
    if (file == day_log_file.count) {
        return day_file_none(path, TN_INVALID, err);
    }
    while (day_log_file.handles[handle].open) {
        handle++;
        CHECK(handle < DAY_HANDLES);
    }
    day_log_file.handles[handle].open = true;
    day_log_file.handles[handle].file = file;
    day_log_file.handles[handle].offset = 0;
    *source = (struct tn_source){.file = handle, .name = path, .seekable = true};
    if (known) {
        CHECK(sscanf(known, "%*u-%*u-%" SCNu64, &hashed) == 1);
    }
    return tn_source_identify(source, hashed, err);
}

/* A part of what it could. */
tn_rc tn_source_read(struct tn_source *source, void *data, size_t size, size_t *got,
                     struct tn_err *err)
{
    uint32_t file = day_log_file.handles[source->file].file;
    size_t *offset = &day_log_file.handles[source->file].offset;
    size_t left = day_file_size(file) > *offset ? day_file_size(file) - *offset : 0;
    size_t most = size < left ? size : left;
    if (!day.calm && day_chance(300)) {
        return tn_err_set(err, TN_IO, EIO, "read %s: a failure was asked for", source->name);
    }
    *got = most > 0 ? 1 + day_below((uint32_t)most) : 0;
    memcpy(data, day_log_file.text + day_log_file.files[file].begin + *offset, *got);
    *offset += *got;
    return TN_OK;
}

bool tn_source_ready(const struct tn_source *source, int wait_ms_max)
{
    (void)source;
    (void)wait_ms_max;
    return true;
}

tn_rc tn_source_seek(struct tn_source *source, uint64_t offset, struct tn_err *err)
{
    (void)err;
    day_log_file.handles[source->file].offset = (size_t)offset;
    return TN_OK;
}

void tn_source_close(struct tn_source *source)
{
    CHECK(day_log_file.handles[source->file].open);
    day_log_file.handles[source->file].open = false;
}

tn_rc tn_source_siblings(const char *folder, const char *name, tn_source_sibling_fn *each,
                         void *user, struct tn_err *err)
{
    char sibling[32];
    tn_rc rc = TN_OK;
    CHECK(strcmp(folder, DAY_FOLDER) == 0 && strcmp(name, DAY_FILE_NAME) == 0);
    uint32_t most = day_log_file.count - !day_log_file.absent - day_log_file.oldest;
    for (uint32_t age = 1; rc == TN_OK && age <= most; age++) {
        (void)snprintf(sibling, sizeof sibling, DAY_FILE_NAME ".%u", age);
        rc = each(user, sibling, err);
    }
    return rc;
}

/* ---- who writes ---- */

static void day_file_begin(void)
{
    uint32_t number = day_log_file.count++;
    CHECK(number < DAY_FILES);
    day_log_file.files[number] = (struct day_written){
        .begin = day_log_file.size,
        .inode = 100 + number % (DAY_FILES_BESIDE + 3), /* of one that is gone */
        .modified_ns = day.clock.passed_ns};
    day_log_file.absent = false;
}

/* Lines that are to be written. */
static void day_file_compose(void)
{
    struct tn_buf buf;
    tn_buf_init(&buf, day_log_file.text, sizeof day_log_file.text);
    buf.size = day_log_file.ends[day_log_file.lines];
    while (day_log_file.lines < day.clients[DAY_FILE].wanted) {
        day_put_rows(&buf, DAY_FILE, ++day_log_file.lines);
        day_log_file.ends[day_log_file.lines] = buf.size;
    }
    CHECK(!buf.overflow);
}

static bool day_file_is_whole_line(void)
{
    for (uint32_t n = 0; n <= day_log_file.lines; n++) {
        if (day_log_file.ends[n] == day_log_file.size) {
            return true;
        }
    }
    return false;
}

static void day_file_rotate(void)
{
    size_t taken = day_log_file.ends[day.clients[DAY_FILE].acked];
    uint32_t oldest = day_log_file.oldest;
    bool many = day_log_file.count - oldest >= DAY_FILES_BESIDE;
    /* What is gone must have been left: of what is beside it nobody knows which came next. */
    bool may_go = many && day_log_file.files[oldest + 1].begin < taken;
    bool known = day.clients[DAY_FILE].acked > 0; /* it begins with the one that has the name */
    if (day_log_file.absent || !known || (many && !may_go)) {
        return;
    }
    day_say("the file is rotated");
    day_log_file.oldest += may_go;
    day_log_file.absent = true;
    if (day_chance(2)) {
        day_file_begin();
    }
}

static void day_file_step(void)
{
    size_t end;
    day_file_compose();
    end = day_log_file.ends[day_log_file.lines];
    if (day_log_file.size == end || day_now() < day.clients[DAY_FILE].away_ms) {
        return;
    }
    if (!day.calm && day_chance(3) && day_file_is_whole_line()) {
        day_file_rotate();
    }
    if (day_log_file.absent) {
        day_file_begin();
    }
    size_t more = 1 + day_below(DAY_FILE_CHUNK);
    more = more < end - day_log_file.size ? more : end - day_log_file.size;
    day_log_file.size += more;
    day_log_file.files[day_log_file.count - 1].modified_ns = day.clock.passed_ns;
}

/* All before a place was taken, and is durable. */
static void day_file_taken(const struct tn_file_place *place)
{
    uint64_t inode = 0;
    struct day_client *client = &day.clients[DAY_FILE];
    if (!place->identity[0]) {
        return;
    }
    CHECK(sscanf(place->identity, "%*u-%" SCNu64, &inode) == 1);
    uint32_t file = day_log_file.count - 1;
    while (day_log_file.files[file].inode != inode) {
        CHECK(file-- > day_log_file.oldest);
    }
    size_t upto = day_log_file.files[file].begin + (size_t)place->offset;
    while (client->acked < day_log_file.lines && day_log_file.ends[client->acked + 1] <= upto) {
        day_say("file: %u is taken", ++client->acked);
    }
}

static void day_file_open(void)
{
    memset(&day_log_file, 0, sizeof day_log_file);
    day_log_file.absent = true;
}
