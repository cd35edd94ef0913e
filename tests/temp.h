/* temp: a folder on the real disk for one test, below TMPDIR, and its removal. */
#pragma once

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

enum { TEMP_SIZE = 256 };

static inline void temp_make(char root[TEMP_SIZE])
{
    const char *parent = getenv("TMPDIR");
    (void)snprintf(root, TEMP_SIZE, "%s/tarn-test-XXXXXX", parent ? parent : "/tmp");
    CHECK(mkdtemp(root) != NULL);
}

static inline int temp_remove_one(const char *path, const struct stat *stat, int type,
                                  struct FTW *at)
{
    (void)stat;
    (void)type;
    (void)at;
    return remove(path);
}

/* With everything in it. */
static inline void temp_remove(const char root[TEMP_SIZE])
{
    CHECK(nftw(root, temp_remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0);
}
