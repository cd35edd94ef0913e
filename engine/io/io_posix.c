#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "io/io.h"

enum { PATH_SIZE = 512, HOLDER_SIZE = 128 };

#define COUNT_UP(counter, by) ((void)__atomic_fetch_add(&(counter), (by), __ATOMIC_RELAXED))

static int root_of(const struct tn_io *io)
{
    return ((const struct tn_io_posix *)io)->root;
}

static tn_rc code_of(int os)
{
    switch (os) {
    case ENOENT:
        return TN_ABSENT;
    case EEXIST:
    case ENOTEMPTY:
        return TN_EXISTS;
    case ENOSPC:
    case EDQUOT:
        return TN_FULL;
    default:
        return TN_IO;
    }
}

static tn_rc fail(struct tn_err *err, const char *verb, const char *path)
{
    int os = errno;
    return tn_err_set(err, code_of(os), os, "%s %s: %s", verb, path, strerror(os));
}

/* Names come out of other people's manifests: none may lead out of the root. */
static tn_rc check_path(const char *verb, const char *path, struct tn_err *err)
{
    if (path[0] == '/' && path[1] != 0) {
        return tn_err_set(err, TN_INVALID, 0, "%s %s: not below the root", verb, path);
    }
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (at[0] == '.' && at[1] == '.' && (at[2] == '/' || at[2] == 0)) {
            return tn_err_set(err, TN_INVALID, 0, "%s %s: leads out of the root", verb, path);
        }
    }
    return TN_OK;
}

/* The root itself is "" or "/". */
static const char *system_path(const char *path)
{
    return path[0] == 0 || (path[0] == '/' && path[1] == 0) ? "." : path;
}

static int open_again(const struct tn_io *io, const char *path, int flags)
{
    int file = -1;
    do {
        file = openat(root_of(io), system_path(path), flags | O_CLOEXEC, 0644);
    } while (file < 0 && errno == EINTR);
    return file;
}

static tn_rc open_checked(const struct tn_io *io, const char *verb, const char *path, int flags,
                          int *file, struct tn_err *err)
{
    tn_rc rc = check_path(verb, path, err);
    if (rc != TN_OK) {
        return rc;
    }
    int got = open_again(io, path, flags);
    if (got < 0) {
        return fail(err, verb, path);
    }
    *file = got;
    return TN_OK;
}

/* O_NONBLOCK: a pipe with a file's name is an error, not a wait. */
static tn_rc posix_open(struct tn_io *io, const char *path, int *file, uint64_t *size,
                        struct tn_err *err)
{
    int got = -1;
    tn_rc rc = open_checked(io, "open", path, O_RDONLY | O_NONBLOCK, &got, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct stat stat;
    if (fstat(got, &stat) != 0) {
        rc = fail(err, "open", path);
    } else if (!S_ISREG(stat.st_mode)) {
        rc = tn_err_set(err, TN_IO, 0, "open %s: not a file", path);
    }
    if (rc != TN_OK) {
        (void)close(got);
        return rc;
    }
    *file = got;
    *size = (uint64_t)stat.st_size;
    return TN_OK;
}

/* The path of an open file for a message; "file 7" when the system won't tell. */
static const char *path_of(int file, char *path, size_t size)
{
    char link[40];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, size - 1);
    if (length < 0) {
        (void)snprintf(path, size, "file %d", file);
    } else {
        path[length] = 0;
    }
    return path;
}

static tn_rc fail_file(struct tn_err *err, const char *verb, int file)
{
    int os = errno;
    char path[PATH_SIZE];
    (void)path_of(file, path, sizeof path);
    errno = os;
    return fail(err, verb, path);
}

static tn_rc posix_read(struct tn_io *io, int file, uint64_t offset, void *data, size_t size,
                        size_t *got, struct tn_err *err)
{
    size_t done = 0;
    while (done < size) {
        ssize_t part =
            pread(file, (unsigned char *)data + done, size - done, (off_t)(offset + done));
        if (part == 0) {
            break;
        }
        if (part < 0 && errno != EINTR) {
            return fail_file(err, "read", file);
        }
        done += part > 0 ? (size_t)part : 0;
    }
    COUNT_UP(io->counts.bytes_read, done);
    *got = done;
    return TN_OK;
}

static tn_rc posix_create(struct tn_io *io, const char *path, int *file, struct tn_err *err)
{
    tn_rc rc = open_checked(io, "create", path, O_WRONLY | O_CREAT | O_EXCL, file, err);
    if (rc == TN_OK) {
        COUNT_UP(io->counts.files_created, 1);
    }
    return rc;
}

static tn_rc posix_append(struct tn_io *io, int file, struct tn_bytes bytes, struct tn_err *err)
{
    size_t done = 0;
    while (done < bytes.size) {
        ssize_t part = write(file, bytes.data + done, bytes.size - done);
        if (part < 0 && errno != EINTR) {
            return fail_file(err, "write", file);
        }
        done += part > 0 ? (size_t)part : 0;
        COUNT_UP(io->counts.bytes_written, part > 0 ? (uint64_t)part : 0);
    }
    return TN_OK;
}

/* What close could report, sync reports. */
static void posix_close(struct tn_io *io, int file)
{
    (void)io;
    (void)close(file);
}

static tn_rc cut_back(int file, const char *path, uint64_t size, struct tn_err *err)
{
    struct stat stat;
    if (fstat(file, &stat) != 0) {
        return fail(err, "reopen", path);
    }
    if ((uint64_t)stat.st_size < size) {
        return tn_err_set(err, TN_CORRUPT, 0, "reopen %s: %" PRId64 " bytes, not %" PRIu64, path,
                          (int64_t)stat.st_size, size);
    }
    if (ftruncate(file, (off_t)size) != 0 || lseek(file, (off_t)size, SEEK_SET) < 0) {
        return fail(err, "reopen", path);
    }
    return TN_OK;
}

static tn_rc posix_reopen(struct tn_io *io, const char *path, uint64_t size, int *file,
                          struct tn_err *err)
{
    int got = -1;
    tn_rc rc = open_checked(io, "reopen", path, O_WRONLY | O_NONBLOCK, &got, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = cut_back(got, path, size, err);
    if (rc != TN_OK) {
        (void)close(got);
        return rc;
    }
    *file = got;
    return TN_OK;
}

static int sync_again(int file, int (*call)(int file))
{
    int rc;
    do {
        rc = call(file);
    } while (rc != 0 && errno == EINTR);
    return rc;
}

static tn_rc sync_one(const struct tn_io *io, const char *path, struct tn_err *err)
{
    int file = -1;
    tn_rc rc = open_checked(io, "sync", path, O_RDONLY | O_NONBLOCK, &file, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (sync_again(file, fsync) != 0) {
        rc = fail(err, "sync", path);
    }
    (void)close(file);
    return rc;
}

/* With syncfs, too, each path must be there: a barrier over a name that is gone is a bug of ours
 * that must not depend on the file system. */
static tn_rc sync_whole(const struct tn_io *io, const char *const *paths, uint32_t count,
                        struct tn_err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        struct stat stat;
        tn_rc rc = check_path("sync", paths[i], err);
        if (rc != TN_OK) {
            return rc;
        }
        if (fstatat(root_of(io), system_path(paths[i]), &stat, 0) != 0) {
            return fail(err, "sync", paths[i]);
        }
    }
    return sync_again(root_of(io), syncfs) == 0 ? TN_OK : fail(err, "sync", "/");
}

static tn_rc posix_sync(struct tn_io *io, const char *const *paths, uint32_t count,
                        struct tn_err *err)
{
    COUNT_UP(io->counts.syncs, 1);
    if (((struct tn_io_posix *)io)->sync_whole) {
        return sync_whole(io, paths, count, err);
    }
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; i < count && rc == TN_OK; i++) {
        rc = sync_one(io, paths[i], err);
    }
    return rc;
}

static tn_rc check_paths(const char *verb, const char *path, const char *path_new,
                         struct tn_err *err)
{
    tn_rc rc = check_path(verb, path, err);
    return rc != TN_OK ? rc : check_path(verb, path_new, err);
}

/* NFS and many FUSE file systems know no flags on rename. A link never replaces, either. Once it
 * stands the file has its name: an old name that can't be removed is litter, not a failure. */
static int rename_by_link(int root, const char *path, const char *path_new)
{
    int rc = linkat(root, path, root, path_new, 0);
    if (rc == 0) {
        (void)unlinkat(root, path, 0);
    }
    return rc;
}

static tn_rc posix_rename_new(struct tn_io *io, const char *path, const char *path_new,
                              struct tn_err *err)
{
    tn_rc rc = check_paths("rename", path, path_new, err);
    if (rc != TN_OK) {
        return rc;
    }
    int root = root_of(io);
    int done = renameat2(root, path, root, path_new, RENAME_NOREPLACE);
    if (done != 0 && (errno == EINVAL || errno == ENOSYS)) {
        done = rename_by_link(root, path, path_new);
    }
    return done == 0 ? TN_OK : fail(err, "rename to", path_new);
}

static tn_rc posix_replace(struct tn_io *io, const char *path, const char *path_new,
                           struct tn_err *err)
{
    tn_rc rc = check_paths("replace", path, path_new, err);
    if (rc != TN_OK) {
        return rc;
    }
    int root = root_of(io);
    return renameat(root, path, root, path_new) == 0 ? TN_OK : fail(err, "replace", path_new);
}

static tn_rc posix_unlink(struct tn_io *io, const char *path, struct tn_err *err)
{
    tn_rc rc = check_path("unlink", path, err);
    if (rc != TN_OK) {
        return rc;
    }
    return unlinkat(root_of(io), path, 0) == 0 ? TN_OK : fail(err, "unlink", path);
}

static tn_rc posix_remove_dir(struct tn_io *io, const char *path, struct tn_err *err)
{
    tn_rc rc = check_path("remove folder", path, err);
    if (rc != TN_OK) {
        return rc;
    }
    return unlinkat(root_of(io), path, AT_REMOVEDIR) == 0 ? TN_OK
                                                          : fail(err, "remove folder", path);
}

/* Makes the folder named by the first `size` bytes of `path`, whose parent is there. */
static tn_rc make_one(const struct tn_io *io, char *path, size_t size, size_t parent_size,
                      struct tn_err *err)
{
    char behind = path[size];
    path[size] = 0;
    tn_rc rc = TN_OK;
    int made = mkdirat(root_of(io), path, 0755);
    int os = errno;
    struct stat stat;
    if (made != 0 && os == EEXIST && fstatat(root_of(io), path, &stat, 0) == 0 &&
        S_ISDIR(stat.st_mode)) {
        path[size] = behind;
        return TN_OK;
    }
    if (made != 0) {
        errno = os;
        rc = fail(err, "make folder", path);
    } else {
        char cut = path[parent_size];
        path[parent_size] = 0;
        rc = sync_one(io, path, err);
        path[parent_size] = cut;
    }
    path[size] = behind;
    return rc;
}

static tn_rc posix_make_dir(struct tn_io *io, const char *path, struct tn_err *err)
{
    tn_rc rc = check_path("make folder", path, err);
    if (rc != TN_OK) {
        return rc;
    }
    char copy[PATH_SIZE];
    int length = snprintf(copy, sizeof copy, "%s", path);
    if (length < 0 || (size_t)length >= sizeof copy) {
        return tn_err_set(err, TN_INVALID, 0, "make folder %s: more than %zu bytes", path,
                          sizeof copy - 1);
    }
    size_t parent_size = 0;
    for (size_t size = 1; size <= (size_t)length && rc == TN_OK; size++) {
        bool part_ends = (copy[size] == '/' || copy[size] == 0) && copy[size - 1] != '/';
        if (part_ends) {
            rc = make_one(io, copy, size, parent_size, err);
            parent_size = size;
        }
    }
    return rc;
}

static bool is_folder(int dir, const struct dirent64 *entry)
{
    if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK) {
        return entry->d_type == DT_DIR;
    }
    struct stat stat;
    return fstatat(dir, entry->d_name, &stat, 0) == 0 && S_ISDIR(stat.st_mode);
}

static tn_rc each_entry(int dir, const unsigned char *data, size_t size, tn_io_name_fn *each,
                        void *user, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (size_t at = 0; at < size && rc == TN_OK;) {
        const struct dirent64 *entry = (const void *)(data + at);
        at += entry->d_reclen;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            rc = each(user, entry->d_name, is_folder(dir, entry), err);
        }
    }
    return rc;
}

/* The system call rather than opendir, which takes 32 KiB from malloc. */
static tn_rc posix_list(struct tn_io *io, const char *path, tn_io_name_fn *each, void *user,
                        struct tn_err *err)
{
    int dir = -1;
    tn_rc rc = open_checked(io, "list", path, O_RDONLY | O_DIRECTORY, &dir, err);
    if (rc != TN_OK) {
        return rc;
    }
    _Alignas(struct dirent64) unsigned char data[1536];
    ssize_t size = 1;
    while (rc == TN_OK && size > 0) {
        size = getdents64(dir, data, sizeof data);
        if (size < 0) {
            rc = fail(err, "list", path);
        } else {
            rc = each_entry(dir, data, (size_t)size, each, user, err);
        }
    }
    (void)close(dir);
    return rc;
}

static tn_rc ask_about(struct tn_io *io, const char *path, struct stat *about, struct tn_err *err)
{
    tn_rc rc = check_path("stat", path, err);
    if (rc == TN_OK && fstatat(root_of(io), system_path(path), about, 0) != 0) {
        rc = fail(err, "stat", path);
    }
    return rc;
}

static tn_rc posix_stat(struct tn_io *io, const char *path, uint64_t *size, struct tn_err *err)
{
    struct stat about;
    tn_rc rc = ask_about(io, path, &about, err);
    if (rc == TN_OK) {
        *size = S_ISREG(about.st_mode) ? (uint64_t)about.st_size : 0;
    }
    return rc;
}

static tn_rc posix_modified(struct tn_io *io, const char *path, int64_t *ms, struct tn_err *err)
{
    struct stat about;
    tn_rc rc = ask_about(io, path, &about, err);
    if (rc == TN_OK) {
        *ms = (int64_t)about.st_mtim.tv_sec * 1000 + about.st_mtim.tv_nsec / 1000000;
    }
    return rc;
}

static tn_rc posix_room(struct tn_io *io, uint64_t *bytes, struct tn_err *err)
{
    struct statvfs system;
    if (fstatvfs(root_of(io), &system) != 0) {
        return fail(err, "room of", "/");
    }
    *bytes = (uint64_t)system.f_bavail * system.f_frsize;
    return TN_OK;
}

static tn_rc fail_held(int file, const char *path, struct tn_err *err)
{
    char holder[HOLDER_SIZE];
    ssize_t size = pread(file, holder, sizeof holder - 1, 0);
    holder[size > 0 ? size : 0] = 0;
    for (char *at = holder; *at; at++) { /* one printable line, whoever wrote it */
        if ((unsigned char)*at < ' ' || *at == 0x7f) {
            *at = ' ';
        }
    }
    return tn_err_set(err, TN_EXISTS, 0, "lock %s: held by %s", path,
                      holder[0] ? holder : "another process");
}

/* The lock counts, not the text: on a full disk it is taken without one. */
static void write_holder(int file, const char *who)
{
    if (ftruncate(file, 0) == 0) {
        ssize_t written = pwrite(file, who, strlen(who), 0);
        (void)written;
    }
}

/* Locks of the open file, not of the process: two tables in one process exclude each other, too. */
static tn_rc posix_lock(struct tn_io *io, const char *path, const char *who, int *file,
                        struct tn_err *err)
{
    int got = -1;
    tn_rc rc = open_checked(io, "lock", path, O_RDWR | O_CREAT | O_NONBLOCK, &got, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(got, F_OFD_SETLK, &lock) != 0) {
        rc = errno == EAGAIN || errno == EACCES ? fail_held(got, path, err)
                                                : fail(err, "lock", path);
        (void)close(got);
        return rc;
    }
    write_holder(got, who);
    *file = got;
    return TN_OK;
}

static const struct tn_io_vtable vtable = {
    .open = posix_open,
    .read = posix_read,
    .create = posix_create,
    .append = posix_append,
    .close = posix_close,
    .reopen = posix_reopen,
    .sync = posix_sync,
    .rename_new = posix_rename_new,
    .replace = posix_replace,
    .unlink = posix_unlink,
    .remove_dir = posix_remove_dir,
    .make_dir = posix_make_dir,
    .list = posix_list,
    .stat = posix_stat,
    .modified = posix_modified,
    .room = posix_room,
    .lock = posix_lock,
};

/* Before Linux 5.8 syncfs said OK when a write-back had failed. */
static bool syncfs_tells_errors(void)
{
    struct utsname name;
    if (uname(&name) != 0) {
        return false;
    }
    char *end;
    unsigned long major = strtoul(name.release, &end, 10);
    unsigned long minor = *end == '.' ? strtoul(end + 1, &end, 10) : 0;
    return major > 5 || (major == 5 && minor >= 8);
}

/* Where syncfs is a barrier down to the medium. On FUSE it isn't. */
static bool is_native(int root)
{
    static const unsigned long types[] = {
        0xEF53,     /* ext4 */
        0xF2F52010, /* f2fs */
        0x24051905, /* ubifs */
        0x58465342, /* xfs */
        0x9123683E, /* btrfs */
    };
    struct statfs statfs;
    if (fstatfs(root, &statfs) != 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (((unsigned long)statfs.f_type & 0xFFFFFFFF) == types[i]) {
            return true;
        }
    }
    return false;
}

/* A mount point is on another device than its parent. Only there does syncfs write nobody else's
 * bytes. */
static bool is_mount(int root)
{
    struct stat own;
    struct stat above;
    return fstat(root, &own) == 0 && fstatat(root, "..", &above, 0) == 0 &&
           own.st_dev != above.st_dev;
}

tn_rc tn_io_posix_open(struct tn_io_posix *posix, const char *root, struct tn_err *err)
{
    int file = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) {
        return fail(err, "open", root);
    }
    *posix = (struct tn_io_posix){
        .io = {.vtable = &vtable},
        .root = file,
        .sync_whole = is_mount(file) && is_native(file) && syncfs_tells_errors(),
    };
    return TN_OK;
}

void tn_io_posix_where(const struct tn_io_posix *posix, char *path, size_t size)
{
    (void)path_of(posix->root, path, size);
}

void tn_io_posix_close(struct tn_io_posix *posix)
{
    (void)close(posix->root);
    posix->root = -1;
}
