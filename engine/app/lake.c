#include "app/lake.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "table/recover.h"

static tn_rc make_folder(const char *where, struct tn_err *err)
{
    if (mkdir(where, 0777) != 0 && errno != EEXIST) {
        int os = errno;
        return tn_err_set(err, TN_IO, os, "make folder %s: %s", where, strerror(os));
    }
    return TN_OK;
}

static bool same_folder(int a, int b)
{
    struct stat left;
    struct stat right;
    return fstat(a, &left) == 0 && fstat(b, &right) == 0 && left.st_dev == right.st_dev &&
           left.st_ino == right.st_ino;
}

/* One name for one place, however it is written. */
static tn_rc name_consumer(struct tn_lake *lake, const char *where, struct tn_err *err)
{
    static char path[PATH_MAX];
    if (!realpath(where, path)) {
        int os = errno;
        return tn_err_set(err, TN_IO, os, "%s: %s", where, strerror(os));
    }
    (void)snprintf(lake->consumer, sizeof lake->consumer, "tarn-lake-%016" PRIx64,
                   tn_hash_64(tn_bytes_of(path), 0));
    return TN_OK;
}

static tn_rc lock(struct tn_lake *lake, struct tn_app *app, const char *table, struct tn_err *err)
{
    char who[64];
    size_t mark = tn_arena_mark(&app->input);
    (void)snprintf(who, sizeof who, "tarn sync, process %ld", (long)getpid());
    tn_rc rc = tn_table_lock(&lake->posix.io, table, who, &app->input, &lake->lock, err);
    tn_arena_reset(&app->input, mark);
    return rc;
}

static tn_rc open_parts(struct tn_lake *lake, struct tn_app *app, const char *where,
                        const char *table, bool make, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    if (same_folder(lake->posix.root, app->posix.root)) {
        rc = tn_err_set(err, TN_INVALID, 0, "that is the warehouse itself");
    }
    if (rc == TN_OK) {
        rc = name_consumer(lake, where, err);
    }
    if (rc == TN_OK && make) {
        rc = lock(lake, app, table, err);
    }
    return rc == TN_OK
               ? tn_directory_init(&lake->directory, &lake->posix.io, where, &app->input, err)
               : tn_err_in(err, "%s", where);
}

tn_rc tn_lake_open(struct tn_lake *lake, struct tn_app *app, const char *where, const char *table,
                   bool make, struct tn_err *err)
{
    memset(lake, 0, sizeof *lake); /* too large for a literal on the stack */
    lake->lock = -1;
    if (strstr(where, "://")) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "%s: only folders yet", where);
    }
    tn_rc rc = make ? make_folder(where, err) : TN_OK;
    if (rc == TN_OK) {
        rc = tn_io_posix_open(&lake->posix, where, err);
    }
    if (rc == TN_ABSENT && !make) {
        return TN_OK;
    }
    if (rc != TN_OK) {
        return rc;
    }
    lake->there = true;
    rc = open_parts(lake, app, where, table, make, err);
    if (rc != TN_OK) {
        tn_lake_close(lake);
    }
    return rc;
}

void tn_lake_close(struct tn_lake *lake)
{
    if (lake->lock >= 0) {
        lake->posix.io.vtable->close(&lake->posix.io, lake->lock);
    }
    if (lake->there) {
        tn_io_posix_close(&lake->posix);
    }
    lake->there = false;
    lake->lock = -1;
}

tn_rc tn_lake_sync(struct tn_lake *lake, struct tn_app *app, const struct tn_delta_spec *spec,
                   struct tn_delta_result *result, struct tn_err *err)
{
    struct tn_delta_spec with = *spec;
    with.target = lake->there ? &lake->directory.target : NULL;
    return tn_delta_sync(&with, &app->workers[TN_LANE_LONG], result, err);
}
