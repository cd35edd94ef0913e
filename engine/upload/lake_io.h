/* lake_io: the files of a target behind the door of io.h, so that a table which lies in an object
 * store is read, committed to, compacted, expired and checked by the code that does it at home.
 *
 *     open, read       GET, once, into a scratch folder      sync        PUT of those files, settle
 *     create, append   into the scratch folder               rename_new  PUT if absent
 *     list             LIST                                  replace     PUT
 *     stat, modified   HEAD                                  unlink      DELETE
 *     ask              HEAD, GET and DELETE, many at once    walk        LIST
 *
 * Files that are here and not there: those that were written and not synced yet; drafts, whose
 * names begin with a dot; and what is below ".tarn/", with the locks, but for a table's own folder
 * there, ".tarn/db.t/", which is for all who work on it. So a lock keeps out nobody who is
 * elsewhere: of two committers one loses its name, and `rename_new` says EXISTS. The target's own
 * names that begin with a dot are not shown.
 *
 * What never changes under its name is asked for once: data, changelog and index files, manifests
 * and statistics stay in the scratch folder, up to a size, the longest unused go first; such a copy
 * is read also when others have removed the file there. All others (snapshots, schemas, tags,
 * consumers, hints) are asked for each time.
 *
 * Where it differs from a disk, since a store would have to be asked, or has no such thing:
 * `create` doesn't see a file that is there (names have a UUID; the sync would say so), `unlink` of
 * what isn't there is OK, folders are made and removed by saying so and have no date. A file that
 * gets its name by `rename_new` or `replace` is small: it goes through memory.
 *
 * At a cut the target has whole files only, and what was synced; the scratch folder is emptied by
 * the next who opens it. One thread at a time.
 */
#pragma once

#include "upload/target.h"

enum {
    TN_LAKE_IO_PATH_MAX = 512, /* bytes with the final zero */
    TN_LAKE_IO_FILES = 512,
    TN_LAKE_IO_HANDLES = 256,          /* files that are open at once */
    TN_LAKE_IO_SMALL_MAX = 256 * 1024, /* bytes of a file that gets its name by being renamed */
};

struct tn_lake_io_spec {
    struct tn_target *target;
    struct tn_io *scratch;  /* a folder that is this one's alone */
    struct tn_arena *arena; /* tn_lake_io_size() bytes of it, as long as the io */
    uint64_t cache_size;    /* bytes of files that stay though nobody has them open */
    uint32_t files;         /* that are in the scratch folder at once; 0: TN_LAKE_IO_FILES */
    uint32_t small_size;    /* of a file that gets its name by being renamed;
                               0: TN_LAKE_IO_SMALL_MAX */
    /* Asked right before `rename_new` gives a file its name there: its error is the call's. NULL:
     * nobody is. */
    tn_rc (*ready)(void *user, const char *path, struct tn_err *err);
    void *user;
};

struct tn_lake_file;
struct tn_lake_handle;

struct tn_lake_io {
    struct tn_io io; /* first: what the engine gets */
    struct tn_target *target;
    struct tn_io *scratch;
    struct tn_arena arena; /* of a call */
    struct tn_lake_file *files;
    struct tn_lake_handle *handles;
    uint32_t file_count;
    uint32_t small_size;
    uint64_t cache_size;
    uint64_t kept_size; /* bytes of files that could go */
    uint64_t uses;      /* counts up: which file was used last */
    uint32_t names;     /* given in the scratch folder so far */
    tn_rc (*ready)(void *user, const char *path, struct tn_err *err);
    void *user;
    int lock;
};

size_t tn_lake_io_size(uint32_t files);

/* Empties the scratch folder. EXISTS: another process has it; AGAIN: the arena is too small. */
TN_MUST_USE tn_rc tn_lake_io_open(struct tn_lake_io *lake, const struct tn_lake_io_spec *spec,
                                  struct tn_err *err);
/* Removes what it has there. */
void tn_lake_io_close(struct tn_lake_io *lake);
