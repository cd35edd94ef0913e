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

static tn_rc lock(struct tn_lake *lake, const struct tn_lake_spec *spec, struct tn_err *err)
{
    char who[64];
    size_t mark = tn_arena_mark(spec->arena);
    (void)snprintf(who, sizeof who, "%s, process %ld", spec->who, (long)getpid());
    tn_rc rc = tn_table_lock(&lake->posix.io, spec->table, who, spec->arena, &lake->lock, err);
    tn_arena_reset(spec->arena, mark);
    return rc;
}

static tn_rc open_parts(struct tn_lake *lake, const struct tn_lake_spec *spec, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    if (same_folder(lake->posix.root, spec->warehouse)) {
        rc = tn_err_set(err, TN_INVALID, 0, "that is the warehouse itself");
    }
    if (rc == TN_OK) {
        rc = name_consumer(lake, spec->where, err);
    }
    if (rc == TN_OK && spec->make) {
        rc = lock(lake, spec, err);
    }
    return rc == TN_OK
               ? tn_directory_init(&lake->directory, &lake->posix.io, spec->where, spec->arena, err)
               : tn_err_in(err, "%s", spec->where);
}

tn_rc tn_lake_open_by(struct tn_lake *lake, const struct tn_lake_spec *spec, struct tn_err *err)
{
    const char *where = spec->where;
    memset(lake, 0, sizeof *lake); /* too large for a literal on the stack */
    lake->lock = -1;
    if (strstr(where, "://")) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "%s: only folders yet", where);
    }
    tn_rc rc = spec->make ? make_folder(where, err) : TN_OK;
    if (rc == TN_OK) {
        rc = tn_io_posix_open(&lake->posix, where, err);
    }
    if (rc == TN_ABSENT && !spec->make) {
        return TN_OK;
    }
    if (rc != TN_OK) {
        return rc;
    }
    lake->there = true;
    rc = open_parts(lake, spec, err);
    if (rc != TN_OK) {
        tn_lake_close(lake);
    }
    return rc;
}

tn_rc tn_lake_open(struct tn_lake *lake, struct tn_app *app, const char *where, const char *table,
                   bool make, struct tn_err *err)
{
    struct tn_lake_spec spec = {.where = where,
                                .table = table,
                                .who = "tarn sync",
                                .warehouse = app->posix.root,
                                .make = make,
                                .arena = &app->input};
    return tn_lake_open_by(lake, &spec, err);
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

struct tn_target *tn_lake_target(struct tn_lake *lake)
{
    return lake->there ? &lake->directory.target : NULL;
}

tn_rc tn_lake_sync(struct tn_lake *lake, struct tn_app *app, const struct tn_delta_spec *spec,
                   struct tn_delta_result *result, struct tn_err *err)
{
    struct tn_delta_spec with = *spec;
    with.target = tn_lake_target(lake);
    return tn_delta_sync(&with, &app->workers[TN_LANE_LONG], result, err);
}
