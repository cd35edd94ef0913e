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
#include "upload/s3_target.h"

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

static tn_rc lock(struct tn_lake *lake, const struct tn_lake_spec *spec, struct tn_io *io,
                  const char *what, struct tn_err *err)
{
    char who[64];
    size_t mark = tn_arena_mark(spec->arena);
    (void)snprintf(who, sizeof who, "%s, process %ld", spec->who, (long)getpid());
    tn_rc rc = tn_table_lock(io, what, who, spec->arena, &lake->lock, err);
    tn_arena_reset(spec->arena, mark);
    lake->lock_io = io;
    return rc;
}

/* Two of our own at once would send everything twice. */
static tn_rc lock_here(struct tn_lake *lake, const struct tn_lake_spec *spec, struct tn_err *err)
{
    const char *what = tn_arena_format(spec->arena, "%s.%s", spec->table, lake->consumer);
    return what ? lock(lake, spec, spec->io, what, err)
                : tn_err_set(err, TN_AGAIN, 0, "no memory for a lock's name");
}

/* ---- names ---- */

/* Of a path without its last name. */
static size_t size_above(const char *path, size_t size)
{
    while (size > 0 && path[size - 1] == '/') {
        size--;
    }
    while (size > 0 && path[size - 1] != '/') {
        size--;
    }
    while (size > 0 && path[size - 1] == '/') {
        size--;
    }
    return size;
}

/* From "/" and without links, as far as it is there; what isn't follows as it is written. */
static tn_rc resolve(const char *where, char path[PATH_MAX], struct tn_err *err)
{
    static char there[PATH_MAX];
    size_t kept = strlen(where);
    if (kept >= sizeof there) {
        return tn_err_set(err, TN_INVALID, 0, "%s: too long", where);
    }
    memcpy(there, where, kept + 1);
    while (!realpath(kept > 0 ? there : where[0] == '/' ? "/" : ".", path)) {
        if (kept == 0) {
            int os = errno;
            return tn_err_set(err, TN_IO, os, "%s: %s", where, strerror(os));
        }
        kept = size_above(there, kept);
        there[kept] = 0;
    }
    size_t size = path[1] ? strlen(path) : 0;
    for (const char *rest = where + kept; rest[strspn(rest, "/")];) {
        rest += strspn(rest, "/");
        size_t name = strcspn(rest, "/");
        int more = snprintf(path + size, PATH_MAX - size, "/%.*s", (int)name, rest);
        size += (size_t)more;
        if (size >= PATH_MAX) {
            return tn_err_set(err, TN_INVALID, 0, "%s: too long", where);
        }
        rest += name;
    }
    return TN_OK;
}

static tn_rc hash_folder(const char *where, uint64_t *hash, struct tn_err *err)
{
    static char path[PATH_MAX];
    tn_rc rc = resolve(where, path, err);
    if (rc == TN_OK) {
        *hash = tn_hash_64(tn_bytes_of(path), 0);
    }
    return rc;
}

tn_rc tn_lake_name(const char *where, const struct tn_lake_options *options,
                   char name[TN_LAKE_NAME_SIZE], struct tn_err *err)
{
    uint64_t hash;
    tn_rc rc = tn_lake_is_store(where) ? tn_lake_store_hash(where, options, &hash, err)
                                       : hash_folder(where, &hash, err);
    if (rc == TN_OK) {
        (void)snprintf(name, TN_LAKE_NAME_SIZE, "tarn-lake-%016" PRIx64, hash);
    }
    return rc;
}

/* ---- a folder ---- */

static tn_rc open_parts(struct tn_lake *lake, const struct tn_lake_spec *spec, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    if (same_folder(lake->posix.root, spec->warehouse)) {
        rc = tn_err_set(err, TN_INVALID, 0, "that is the warehouse itself");
    }
    if (rc == TN_OK) {
        rc = tn_lake_name(spec->where, NULL, lake->consumer, err);
    }
    if (rc == TN_OK && spec->make) {
        rc = spec->shared ? lock_here(lake, spec, err)
                          : lock(lake, spec, &lake->posix.io, spec->table, err);
    }
    if (rc == TN_OK) {
        rc = tn_directory_init(&lake->directory, &lake->posix.io, spec->where, spec->arena, err);
    }
    if (rc == TN_OK && spec->shared) {
        tn_directory_share(&lake->directory, &tn_clock_system);
    }
    lake->target = rc == TN_OK ? &lake->directory.target : NULL;
    return rc == TN_OK ? rc : tn_err_in(err, "%s", spec->where);
}

static tn_rc open_folder(struct tn_lake *lake, const struct tn_lake_spec *spec, struct tn_err *err)
{
    tn_rc rc = spec->make ? make_folder(spec->where, err) : TN_OK;
    if (rc == TN_OK) {
        rc = tn_io_posix_open(&lake->posix, spec->where, err);
    }
    if (rc == TN_ABSENT && !spec->make) {
        return TN_OK;
    }
    lake->has_posix = rc == TN_OK;
    return rc == TN_OK ? open_parts(lake, spec, err) : rc;
}

/* ---- an object store ---- */

/* AWS's file of credentials, which need not be there: then the options must have some. */
static tn_rc find_credentials(struct tn_lake *lake, const struct tn_lake_spec *spec,
                              const char **name, struct tn_err *err)
{
    const char *path = spec->options->credentials;
    const char *home = getenv("HOME");
    if (!path && home) {
        path = tn_arena_format(spec->arena, "%s/.aws/credentials", home);
    }
    const char *slash = path ? strrchr(path, '/') : NULL;
    const char *folder =
        slash ? tn_arena_format(spec->arena, "%.*s/", (int)(slash - path), path) : ".";
    if (!path || !folder) {
        return TN_OK;
    }
    tn_rc rc = tn_io_posix_open(&lake->posix, folder, err);
    if (rc == TN_ABSENT && !spec->options->credentials) {
        return TN_OK;
    }
    lake->has_posix = rc == TN_OK;
    *name = slash ? slash + 1 : path;
    return rc;
}

static tn_rc lock_store(struct tn_lake *lake, const struct tn_lake_spec *spec, const char **parts,
                        struct tn_err *err)
{
    *parts = tn_arena_format(spec->arena, ".tarn/%s.%s.parts", spec->table, lake->consumer);
    return *parts ? lock_here(lake, spec, err)
                  : tn_err_set(err, TN_AGAIN, 0, "no memory for the name of parts");
}

static uint32_t links_that_fit(const struct tn_lake_spec *spec)
{
    uint32_t links = spec->doors->links;
    while (links > 1 && tn_s3_target_size(links) > tn_arena_free(spec->arena)) {
        links--;
    }
    return links;
}

static tn_rc open_store(struct tn_lake *lake, const struct tn_lake_spec *spec, struct tn_err *err)
{
    struct tn_s3_target_spec s3 = {.net = spec->doors->net,
                                   .clock = &tn_clock_system,
                                   .arena = spec->arena,
                                   .where = spec->where,
                                   .options = &spec->options->s3,
                                   .tls = spec->doors->tls,
                                   .rate = spec->rate,
                                   .patience_ms = spec->patience_ms,
                                   .credentials_profile = spec->options->profile};
    tn_rc rc = tn_lake_name(spec->where, spec->options, lake->consumer, err);
    if (rc != TN_OK) {
        return rc;
    }
    lake->is_store = true;
    if (spec->make) {
        rc = lock_store(lake, spec, &s3.uploads_path, err);
        s3.uploads_io = spec->io;
    }
    if (rc == TN_OK) {
        rc = find_credentials(lake, spec, &s3.credentials_path, err);
        s3.credentials_io = lake->has_posix ? &lake->posix.io : NULL;
    }
    s3.links = links_that_fit(spec);
    return rc == TN_OK ? tn_s3_target_open(&s3, &lake->target, err) : rc;
}

/* ---- either ---- */

tn_rc tn_lake_open_by(struct tn_lake *lake, const struct tn_lake_spec *spec, struct tn_err *err)
{
    bool store = tn_lake_is_store(spec->where);
    memset(lake, 0, sizeof *lake); /* too large for a literal on the stack */
    lake->lock = -1;
    if (store && !spec->doors) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "%s: only folders here", spec->where);
    }
    tn_rc rc = store ? open_store(lake, spec, err) : open_folder(lake, spec, err);
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
    if (lake->is_store && lake->target) {
        tn_s3_target_close(lake->target);
    }
    if (lake->lock >= 0) {
        lake->lock_io->vtable->close(lake->lock_io, lake->lock);
    }
    if (lake->has_posix) {
        tn_io_posix_close(&lake->posix);
    }
    lake->target = NULL;
    lake->has_posix = false;
    lake->lock = -1;
}

tn_rc tn_lake_place(const char *where, struct tn_arena *arena, const char **place,
                    struct tn_err *err)
{
    static char path[PATH_MAX];
    bool store = tn_lake_is_store(where);
    tn_rc rc = store ? TN_OK : resolve(where, path, err);
    if (rc == TN_OK) {
        *place = tn_arena_text(arena, tn_bytes_of(store ? where : path));
        rc = *place ? TN_OK : tn_err_set(err, TN_AGAIN, 0, "no memory for a path");
    }
    return rc;
}

struct tn_target *tn_lake_target(struct tn_lake *lake)
{
    return lake->target;
}

tn_rc tn_lake_sync(struct tn_lake *lake, struct tn_app *app, const struct tn_delta_spec *spec,
                   struct tn_delta_result *result, struct tn_err *err)
{
    struct tn_delta_spec with = *spec;
    with.target = tn_lake_target(lake);
    return tn_delta_sync(&with, &app->workers[TN_LANE_LONG], result, err);
}
