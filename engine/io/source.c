#include "io/source.h"

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

static tn_rc identify(struct tn_source *source, const struct stat *st, const char *known,
                      struct tn_err *err)
{
    uint64_t hash = 0;
    size_t size = hashed_size(known, st);
    unsigned char piece[1024];
    for (size_t at = 0; at < size;) { /* each piece is seeded with the one before */
        size_t want = size - at < sizeof piece ? size - at : sizeof piece;
        ssize_t n = pread(source->file, piece, want, (off_t)at);
        if (n <= 0) {
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
    tn_rc rc = source->seekable ? identify(source, &st, known, err) : TN_OK;
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
