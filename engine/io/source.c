#include "io/source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

static tn_rc failed(const char *verb, const char *name, struct tn_err *err)
{
    int os = errno;
    tn_rc code = os == ENOENT ? TN_INVALID : TN_IO;
    return tn_err_set(err, code, os, "%s %s: %s", verb, name, strerror(os));
}

tn_rc tn_source_read(struct tn_source *source, void *data, size_t size, size_t *got,
                     struct tn_err *err)
{
    for (;;) {
        ssize_t n = read(source->file, data, size);
        if (n >= 0) {
            *got = (size_t)n;
            return TN_OK;
        }
        if (errno != EINTR) {
            return failed("read", source->name, err);
        }
    }
}

bool tn_source_ready(const struct tn_source *source, int wait_ms_max)
{
    struct pollfd fd = {.fd = source->file, .events = POLLIN};
    return source->seekable || poll(&fd, 1, wait_ms_max) != 0; /* an error shows in the read */
}

tn_rc tn_source_seek(struct tn_source *source, uint64_t offset, struct tn_err *err)
{
    return lseek(source->file, (off_t)offset, SEEK_SET) < 0 ? failed("seek", source->name, err)
                                                            : TN_OK;
}

/* How many bytes the identity `known` was made of: the number in "<device>-<inode>-<size>-<hash>".
 */
static size_t hashed_size(const char *known, const struct stat *st)
{
    size_t most = (uint64_t)st->st_size < TN_SOURCE_HASHED ? (size_t)st->st_size : TN_SOURCE_HASHED;
    const char *at = known;
    for (int dash = 0; at && dash < 2; dash++) {
        at = strchr(at, '-');
        at = at ? at + 1 : NULL;
    }
    size_t size = at ? (size_t)strtoul(at, NULL, 10) : most;
    return size < most ? size : most;
}

static tn_rc identify(struct tn_source *source, const struct stat *st, size_t size,
                      struct tn_err *err)
{
    uint64_t hash = 0;
    unsigned char piece[1024];
    for (size_t at = 0; at < size;) { /* each piece is seeded with the one before */
        size_t want = size - at < sizeof piece ? size - at : sizeof piece;
        ssize_t n = pread(source->file, piece, want, (off_t)at);
        if (n <= 0) {
            errno = n == 0 ? ENODATA : errno; /* it was cut short meanwhile */
            return failed("read", source->name, err);
        }
        hash = tn_hash_64((struct tn_bytes){piece, (size_t)n}, hash);
        at += (size_t)n;
    }
    (void)snprintf(source->identity, sizeof source->identity,
                   "%" PRIu64 "-%" PRIu64 "-%zu-%016" PRIx64, (uint64_t)st->st_dev,
                   (uint64_t)st->st_ino, size, hash);
    return TN_OK;
}

tn_rc tn_source_open(struct tn_source *source, const char *path, const char *known,
                     struct tn_err *err)
{
    bool standard = strcmp(path, "-") == 0;
    *source = (struct tn_source){.file = 0, .name = standard ? "standard input" : path};
    if (standard) {
        return TN_OK;
    }
    source->file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (source->file < 0 || fstat(source->file, &st) != 0) {
        return failed("open", path, err);
    }
    source->seekable = S_ISREG(st.st_mode);
    tn_rc rc = source->seekable ? identify(source, &st, hashed_size(known, &st), err) : TN_OK;
    if (rc != TN_OK) {
        tn_source_close(source);
    }
    return rc;
}

void tn_source_close(struct tn_source *source)
{
    if (source->file > 0) {
        (void)close(source->file);
    }
}

/* ---- followed ---- */

static struct tn_source_about about_of(const struct stat *st)
{
    return (struct tn_source_about){.device = (uint64_t)st->st_dev,
                                    .inode = (uint64_t)st->st_ino,
                                    .size = (uint64_t)st->st_size,
                                    .modified_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 +
                                                   st->st_mtim.tv_nsec,
                                    .regular = S_ISREG(st->st_mode)};
}

tn_rc tn_source_stat(const char *path, struct tn_source_about *about, struct tn_err *err)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        int os = errno;
        bool absent = os == ENOENT || os == ENOTDIR;
        return tn_err_set(err, absent ? TN_ABSENT : TN_IO, os, "open %s: %s", path, strerror(os));
    }
    *about = about_of(&st);
    return TN_OK;
}

tn_rc tn_source_about(const struct tn_source *source, struct tn_source_about *about,
                      struct tn_err *err)
{
    struct stat st;
    if (fstat(source->file, &st) != 0) {
        return failed("stat", source->name, err);
    }
    *about = about_of(&st);
    return TN_OK;
}

tn_rc tn_source_identify(struct tn_source *source, uint64_t size, struct tn_err *err)
{
    struct stat st;
    if (fstat(source->file, &st) != 0) {
        return failed("stat", source->name, err);
    }
    uint64_t most = size < TN_SOURCE_HASHED ? size : TN_SOURCE_HASHED;
    return identify(source, &st, (uint64_t)st.st_size < most ? (size_t)st.st_size : (size_t)most,
                    err);
}

static tn_rc each_name(const unsigned char *data, size_t size, const char *name,
                       tn_source_sibling_fn *each, void *user, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    size_t length = strlen(name);
    for (size_t at = 0; rc == TN_OK && at < size;) {
        const struct dirent64 *entry = (const void *)(data + at);
        at += entry->d_reclen;
        if (strncmp(entry->d_name, name, length) == 0 &&
            (entry->d_name[length] == '.' || entry->d_name[length] == '-')) {
            rc = each(user, entry->d_name, err);
        }
    }
    return rc;
}

/* By the system call, which takes no memory. */
tn_rc tn_source_siblings(const char *folder, const char *name, tn_source_sibling_fn *each,
                         void *user, struct tn_err *err)
{
    _Alignas(struct dirent64) unsigned char data[1024];
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) {
        return failed("list", folder, err);
    }
    tn_rc rc = TN_OK;
    ssize_t size = 1;
    while (rc == TN_OK && size > 0) {
        size = getdents64(dir, data, sizeof data);
        rc = size < 0 ? failed("list", folder, err)
                      : each_name(data, (size_t)size, name, each, user, err);
    }
    (void)close(dir);
    return rc;
}
