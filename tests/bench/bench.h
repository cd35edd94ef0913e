/* bench: what the generator and the C peers share: the raw row, its file, and the sums that check a
 * peer.
 *
 * A raw file is 32 bytes of header and 88-byte little-endian records in the layout of struct row;
 * peers read it in commits, so that parsing text is not in their figures (it is in tarn's).
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMMIT_ROWS = 100000, OP_INSERT = 0, OP_UPDATE = 2, OP_DELETE = 3 };

struct row {
    char device[16]; /* ASCII, all 16 */
    int64_t ts;      /* ms since 1970 */
    int64_t seq;
    double v[4];
    int32_t metric;
    int32_t status;
    char unit[12]; /* padded with zeros */
    uint16_t nulls;
    uint8_t op; /* Paimon's byte of a row kind */
    uint8_t ok;
};
_Static_assert(sizeof(struct row) == 88, "a record has 88 bytes");

struct raw_header {
    char magic[8];
    uint32_t version;
    uint32_t workload;
    uint64_t row_count;
    uint64_t reserved;
};
_Static_assert(sizeof(struct raw_header) == 32, "the header has 32 bytes");

static inline void die(const char *what)
{
    (void)fprintf(stderr, "%s: %s\n", what, errno ? strerror(errno) : "failed");
    exit(1);
}

/* ---- raw input, one commit at a time ---- */

struct raw {
    int fd;
    struct raw_header header;
    struct row *rows;
};

static inline void raw_open(struct raw *raw, const char *path)
{
    raw->fd = open(path, O_RDONLY);
    if (raw->fd < 0 || read(raw->fd, &raw->header, sizeof raw->header) != sizeof raw->header ||
        memcmp(raw->header.magic, "TRNRAW1", 8) != 0) {
        die(path);
    }
    raw->rows = malloc(COMMIT_ROWS * sizeof(struct row));
    if (!raw->rows) {
        die("memory");
    }
}

/* Rows of the next commit in raw->rows; 0 at the end. */
static inline size_t raw_next(struct raw *raw)
{
    size_t got = 0;
    size_t want = COMMIT_ROWS * sizeof(struct row);
    while (got < want) {
        ssize_t count = read(raw->fd, (char *)raw->rows + got, want - got);
        if (count < 0) {
            die("read");
        }
        if (count == 0) {
            break;
        }
        got += (size_t)count;
    }
    return got / sizeof(struct row);
}

/* ---- the merged table as sums that no order changes ---- */

struct sums {
    uint64_t n, seq, status, v, ok;
};

static inline void sums_add(struct sums *sums, const struct row *row)
{
    sums->n++;
    sums->seq += (uint64_t)row->seq;
    sums->status += (uint64_t)(int64_t)row->status;
    for (int i = 0; i < 4; i++) {
        sums->v += (uint64_t)llround(row->v[i] * 1000.0);
    }
    sums->ok += row->ok != 0;
}

static inline void sums_print(const struct sums *sums)
{
    printf("n=%llu seq=%llu st=%llu v=%llu ok=%llu\n", (unsigned long long)sums->n,
           (unsigned long long)sums->seq, (unsigned long long)sums->status,
           (unsigned long long)sums->v, (unsigned long long)sums->ok);
}

static inline int unit_size(const char unit[12])
{
    return (int)strnlen(unit, 12);
}
