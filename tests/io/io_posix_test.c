/* The real files, in a folder of their own below TMPDIR. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "check.h"
#include "io/io.h"
#include "temp.h"

static struct tn_io_posix posix;
static struct tn_io *const io = &posix.io;
static char root[TEMP_SIZE];

static void open_root(void)
{
    temp_make(root);
    struct tn_err err;
    tn_rc rc = tn_io_posix_open(&posix, root, &err);
    CHECK_OK(rc, err);
}

static void close_root(void)
{
    tn_io_posix_close(&posix);
    temp_remove(root);
}

/* For folders that can't be listed. */
static tn_rc unseen(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    (void)user;
    (void)name;
    (void)is_dir;
    (void)err;
    CHECK(false);
    return TN_OK;
}

static void write_file(const char *path, const char *text)
{
    struct tn_err err;
    tn_rc rc = tn_io_write_new(io, path, tn_bytes_of(text), &err);
    CHECK_OK(rc, err);
}

static bool file_is(const char *path, const char *text)
{
    static _Alignas(16) unsigned char memory[4096];
    struct tn_arena arena;
    tn_arena_init(&arena, memory, sizeof memory);
    struct tn_bytes bytes;
    struct tn_err err;
    tn_rc rc = tn_io_read_all(io, path, 4000, &arena, &bytes, &err);
    return rc == TN_OK && bytes.data[bytes.size] == 0 && tn_bytes_equal(bytes, tn_bytes_of(text));
}

static void make_dir(const char *path)
{
    struct tn_err err;
    tn_rc rc = io->vtable->make_dir(io, path, &err);
    CHECK_OK(rc, err);
}

static void what_is_written_is_read_back(void)
{
    open_root();
    make_dir("db/t");
    struct tn_err err;
    int file;
    tn_rc rc = io->vtable->create(io, "db/t/f", &file, &err);
    CHECK_OK(rc, err);
    rc = io->vtable->append(io, file, tn_bytes_of("hello "), &err);
    CHECK_OK(rc, err);
    rc = io->vtable->append(io, file, tn_bytes_of("world"), &err);
    CHECK_OK(rc, err);
    io->vtable->close(io, file);
    CHECK(file_is("db/t/f", "hello world"));

    uint64_t size = 0;
    rc = io->vtable->open(io, "db/t/f", &file, &size, &err);
    CHECK_OK(rc, err);
    char data[20];
    size_t got = 0;
    rc = io->vtable->read(io, file, 6, data, sizeof data, &got, &err);
    CHECK_OK(rc, err);
    CHECK(size == 11 && got == 5 && memcmp(data, "world", 5) == 0);
    rc = io->vtable->read(io, file, 100, data, sizeof data, &got, &err);
    CHECK_OK(rc, err);
    CHECK(got == 0);
    io->vtable->close(io, file);
    CHECK(io->counts.files_created == 1 && io->counts.bytes_written == 11);
    CHECK(io->counts.bytes_read == 16);
    close_root();
}

static void each_failure_names_verb_and_path(void)
{
    open_root();
    write_file("f", "x");
    make_dir("d/e");
    struct tn_err err;
    int file;
    uint64_t size;
    CHECK(io->vtable->open(io, "none", &file, &size, &err) == TN_ABSENT);
    CHECK(strcmp(err.text, "open none: No such file or directory") == 0);
    CHECK(io->vtable->open(io, "d", &file, &size, &err) == TN_IO);
    CHECK(io->vtable->create(io, "none/f", &file, &err) == TN_ABSENT);
    CHECK(io->vtable->create(io, "f", &file, &err) == TN_EXISTS);
    CHECK(strcmp(err.text, "create f: File exists") == 0);
    CHECK(io->vtable->unlink(io, "none", &err) == TN_ABSENT);
    CHECK(io->vtable->remove_dir(io, "d", &err) == TN_EXISTS);
    CHECK(io->vtable->make_dir(io, "f", &err) == TN_EXISTS);
    CHECK(io->vtable->make_dir(io, "f/below", &err) == TN_EXISTS);
    CHECK(io->vtable->stat(io, "none", &size, &err) == TN_ABSENT);
    CHECK(io->vtable->list(io, "none", unseen, NULL, &err) == TN_ABSENT);
    const char *paths[] = {"f", "none"};
    CHECK(io->vtable->sync(io, paths, 2, &err) == TN_ABSENT);
    struct tn_io_posix other;
    CHECK(tn_io_posix_open(&other, "/no/such/folder", &err) == TN_ABSENT);
    close_root();
}

/* A manifest may name any path; it must not reach what lies beside the warehouse. */
static void no_path_leaves_the_root(void)
{
    static const char *const paths[] = {"/etc/passwd", "..", "../f", "a/../../f", "a/..", "//etc"};
    open_root();
    make_dir("a");
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct tn_err err;
        int file;
        uint64_t size;
        CHECK(io->vtable->open(io, paths[i], &file, &size, &err) == TN_INVALID);
        CHECK(io->vtable->create(io, paths[i], &file, &err) == TN_INVALID);
        CHECK(io->vtable->unlink(io, paths[i], &err) == TN_INVALID);
        CHECK(io->vtable->rename_new(io, "x", paths[i], &err) == TN_INVALID);
        CHECK(io->vtable->replace(io, paths[i], "x", &err) == TN_INVALID);
        CHECK(io->vtable->make_dir(io, paths[i], &err) == TN_INVALID);
        CHECK(io->vtable->list(io, paths[i], unseen, NULL, &err) == TN_INVALID);
    }
    write_file("a/..b", "dots are fine");
    close_root();
}

static void rename_new_never_replaces_and_replace_does(void)
{
    open_root();
    write_file("a", "first");
    write_file("b", "second");
    struct tn_err err;
    CHECK(io->vtable->rename_new(io, "a", "b", &err) == TN_EXISTS);
    CHECK(file_is("a", "first") && file_is("b", "second"));
    tn_rc rc = io->vtable->rename_new(io, "a", "c", &err);
    CHECK_OK(rc, err);
    CHECK(!file_is("a", "first") && file_is("c", "first"));
    rc = io->vtable->replace(io, "c", "b", &err);
    CHECK_OK(rc, err);
    CHECK(file_is("b", "first"));
    CHECK(io->vtable->rename_new(io, "none", "d", &err) == TN_ABSENT);
    close_root();
}

/* A time that this test gives, and the system's own. */
static void modified_is_the_time_of_the_last_change(void)
{
    open_root();
    make_dir("dir");
    write_file("dir/a", "bytes");
    char path[TEMP_SIZE + 16];
    struct tn_err err;
    int64_t ms = 0;
    const struct timespec times[2] = {{86400, 0}, {86400, 250000000}};
    (void)snprintf(path, sizeof path, "%s/dir/a", root);
    CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
    tn_rc rc = io->vtable->modified(io, "dir/a", &ms, &err);
    CHECK_OK(rc, err);
    CHECK(ms == 86400250);
    rc = io->vtable->modified(io, "dir/", &ms, &err);
    CHECK_OK(rc, err);
    CHECK(ms > 86400250 && ms / 1000 <= (int64_t)time(NULL));
    CHECK(io->vtable->modified(io, "none", &ms, &err) == TN_ABSENT);
    CHECK(io->vtable->modified(io, "../x", &ms, &err) == TN_INVALID);
    close_root();
}

/* As the system says it; others may write meanwhile, so it is near that. */
static void room_is_what_the_file_system_has_for_who_is_not_root(void)
{
    open_root();
    struct tn_err err;
    struct statvfs system;
    uint64_t bytes = 0;
    CHECK(statvfs(root, &system) == 0);
    tn_rc rc = io->vtable->room(io, &bytes, &err);
    CHECK_OK(rc, err);
    uint64_t want = (uint64_t)system.f_bavail * system.f_frsize;
    CHECK(bytes > want / 2 && bytes / 2 <= want);
    close_root();
}

static void reopen_cuts_off_and_appends(void)
{
    open_root();
    write_file("f", "12345678");
    struct tn_err err;
    int file;
    tn_rc rc = io->vtable->reopen(io, "f", 3, &file, &err);
    CHECK_OK(rc, err);
    rc = io->vtable->append(io, file, tn_bytes_of("abc"), &err);
    CHECK_OK(rc, err);
    io->vtable->close(io, file);
    CHECK(file_is("f", "123abc"));
    CHECK(io->vtable->reopen(io, "f", 7, &file, &err) == TN_CORRUPT);
    CHECK(io->vtable->reopen(io, "none", 0, &file, &err) == TN_ABSENT);
    close_root();
}

static void both_kinds_of_barrier_take_files_and_folders(void)
{
    open_root();
    make_dir("d");
    write_file("d/f", "x");
    const char *paths[] = {"d/f", "d/", "/", ""};
    for (int whole = 0; whole < 2; whole++) {
        posix.sync_whole = whole == 1;
        struct tn_err err;
        tn_rc rc = io->vtable->sync(io, paths, COUNT(paths), &err);
        CHECK_OK(rc, err);
        const char *gone[] = {"d/f", "d/gone"};
        CHECK(io->vtable->sync(io, gone, 2, &err) == TN_ABSENT);
    }
    CHECK(io->counts.syncs == 4);
    close_root();
}

struct seen {
    int files;
    int folders;
    bool by_number[300];
};

static tn_rc see(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct seen *seen = user;
    seen->files += !is_dir;
    seen->folders += is_dir;
    if (!is_dir) {
        int number = atoi(name);
        CHECK(!seen->by_number[number]);
        seen->by_number[number] = true;
    }
    return seen->files + seen->folders > 302 ? tn_err_set(err, TN_CANCELED, 0, "enough") : TN_OK;
}

/* More names than one system call gives. */
static void list_gives_each_name_once_and_stops_at_an_error(void)
{
    open_root();
    make_dir("d/below");
    for (int i = 0; i < 300; i++) {
        char path[100];
        (void)snprintf(path, sizeof path, "d/%03d-with-a-name-of-some-length", i);
        write_file(path, "");
    }
    struct seen seen = {0};
    struct tn_err err;
    tn_rc rc = io->vtable->list(io, "d/", see, &seen, &err);
    CHECK_OK(rc, err);
    CHECK(seen.files == 300 && seen.folders == 1);
    struct seen again = {.folders = 300};
    CHECK(io->vtable->list(io, "d", see, &again, &err) == TN_CANCELED);
    CHECK(again.files + again.folders == 303);
    close_root();
}

static void a_lock_names_its_holder_and_ends_with_close(void)
{
    open_root();
    struct tn_err err;
    int first;
    int second;
    tn_rc rc = io->vtable->lock(io, "t.lock", "pid 17 (tarn\nwrite)", &first, &err);
    CHECK_OK(rc, err);
    CHECK(io->vtable->lock(io, "t.lock", "pid 18", &second, &err) == TN_EXISTS);
    CHECK(strcmp(err.text, "lock t.lock: held by pid 17 (tarn write)") == 0);
    io->vtable->close(io, first);
    rc = io->vtable->lock(io, "t.lock", "pid 18", &second, &err);
    CHECK_OK(rc, err);
    CHECK(file_is("t.lock", "pid 18"));
    io->vtable->close(io, second);
    CHECK(io->vtable->lock(io, "none/t.lock", "x", &first, &err) == TN_ABSENT);
    close_root();
}

static void read_all_is_bounded_and_gives_back_what_it_took(void)
{
    open_root();
    write_file("f", "0123456789");
    static _Alignas(16) unsigned char memory[64];
    struct tn_arena arena;
    tn_arena_init(&arena, memory, 8);
    struct tn_bytes bytes;
    struct tn_err err;
    CHECK(tn_io_read_all(io, "f", 9, &arena, &bytes, &err) == TN_INVALID);
    CHECK(strcmp(err.text, "read f: 10 bytes, at most 9") == 0);
    CHECK(tn_io_read_all(io, "f", 10, &arena, &bytes, &err) == TN_AGAIN);
    CHECK(arena.used == 0);
    close_root();
}

/* The largest file that the process may write stands for a full disk: the file must not stay. */
static void write_new_leaves_nothing_when_it_fails(void)
{
    open_root();
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    struct rlimit before;
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    struct rlimit small = {.rlim_cur = 4, .rlim_max = before.rlim_max};
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    struct tn_err err;
    tn_rc rc = tn_io_write_new(io, "f", tn_bytes_of("0123456789"), &err);
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK(rc == TN_IO);
    CHECK(strstr(err.text, "/f: File too large") != NULL);
    uint64_t size;
    CHECK(io->vtable->stat(io, "f", &size, &err) == TN_ABSENT);
    close_root();
}

static const struct test tests[] = {
    TEST(what_is_written_is_read_back),
    TEST(each_failure_names_verb_and_path),
    TEST(no_path_leaves_the_root),
    TEST(rename_new_never_replaces_and_replace_does),
    TEST(modified_is_the_time_of_the_last_change),
    TEST(room_is_what_the_file_system_has_for_who_is_not_root),
    TEST(reopen_cuts_off_and_appends),
    TEST(both_kinds_of_barrier_take_files_and_folders),
    TEST(list_gives_each_name_once_and_stops_at_an_error),
    TEST(a_lock_names_its_holder_and_ends_with_close),
    TEST(read_all_is_bounded_and_gives_back_what_it_took),
    TEST(write_new_leaves_nothing_when_it_fails),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
