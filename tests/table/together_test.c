/* Two tasks of a table fail in one turn, with a thread a lane, on real files: its buckets' files
 * and its manifests fail for a while, and what is under way by then is completed together: a flush
 * or a slice of a compaction of one bucket, others that are opened, a commit. What was acknowledged
 * is there, the same program goes on where it can, the next one where it can't, and the table is
 * whole. Built with TSan, too. */
#include "base/exec.h"

#include <stdatomic.h>

#include "bed.h"
#include "given.h"
#include "temp.h"

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { TABLES = 12 };
#else
enum { TABLES = 60 };
#endif
enum { ROUNDS = 8, FILES_MAX = 1024, TRIES = 3, TASKS_MAX = 16 };

static struct bed_engine engine;
static struct bed_scenario scenario;

/* ---- a disk that fails in one table ---- */

static struct {
    struct tn_io io; /* first */
    struct tn_io *inner;
    tn_rc rc;
    atomic_uint calls; /* of such files */
    unsigned from;     /* these fail */
    unsigned to;
    atomic_bool files[FILES_MAX]; /* that are open, and such ones */
} door;

static bool may_fail(const char *path)
{
    return strstr(path, "/bucket-") || strstr(path, "/manifest/");
}

static bool fails(bool may, struct tn_err *err)
{
    if (!may) {
        return false;
    }
    unsigned call = atomic_fetch_add(&door.calls, 1);
    bool bad = call >= door.from && call < door.to;
    if (bad) {
        (void)tn_err_set(err, door.rc, 0, "a failure was asked for");
    }
    return bad;
}

static void note(const char *path, int file)
{
    CHECK(file >= 0 && file < FILES_MAX);
    atomic_store(&door.files[file], may_fail(path));
}

static tn_rc door_open(struct tn_io *io, const char *path, int *file, uint64_t *size,
                       struct tn_err *err)
{
    (void)io;
    tn_rc rc = fails(may_fail(path), err)
                   ? door.rc
                   : door.inner->vtable->open(door.inner, path, file, size, err);
    if (rc == TN_OK) {
        note(path, *file);
    }
    return rc;
}

static tn_rc door_read(struct tn_io *io, int file, uint64_t offset, void *data, size_t size,
                       size_t *got, struct tn_err *err)
{
    (void)io;
    return fails(atomic_load(&door.files[file]), err)
               ? door.rc
               : door.inner->vtable->read(door.inner, file, offset, data, size, got, err);
}

static tn_rc door_create(struct tn_io *io, const char *path, int *file, struct tn_err *err)
{
    (void)io;
    tn_rc rc = fails(may_fail(path), err) ? door.rc
                                          : door.inner->vtable->create(door.inner, path, file, err);
    if (rc == TN_OK) {
        note(path, *file);
    }
    return rc;
}

static tn_rc door_append(struct tn_io *io, int file, struct tn_bytes bytes, struct tn_err *err)
{
    (void)io;
    return fails(atomic_load(&door.files[file]), err)
               ? door.rc
               : door.inner->vtable->append(door.inner, file, bytes, err);
}

static void door_close(struct tn_io *io, int file)
{
    (void)io;
    door.inner->vtable->close(door.inner, file);
}

static tn_rc door_reopen(struct tn_io *io, const char *path, uint64_t size, int *file,
                         struct tn_err *err)
{
    (void)io;
    tn_rc rc = door.inner->vtable->reopen(door.inner, path, size, file, err);
    if (rc == TN_OK) {
        note(path, *file);
    }
    return rc;
}

static tn_rc door_sync(struct tn_io *io, const char *const *paths, uint32_t count,
                       struct tn_err *err)
{
    (void)io;
    bool may = false;
    for (uint32_t i = 0; i < count; i++) {
        may = may || may_fail(paths[i]);
    }
    return fails(may, err) ? door.rc : door.inner->vtable->sync(door.inner, paths, count, err);
}

static tn_rc door_rename_new(struct tn_io *io, const char *path, const char *path_new,
                             struct tn_err *err)
{
    (void)io;
    return door.inner->vtable->rename_new(door.inner, path, path_new, err);
}

static tn_rc door_replace(struct tn_io *io, const char *path, const char *path_new,
                          struct tn_err *err)
{
    (void)io;
    return door.inner->vtable->replace(door.inner, path, path_new, err);
}

static tn_rc door_unlink(struct tn_io *io, const char *path, struct tn_err *err)
{
    (void)io;
    return door.inner->vtable->unlink(door.inner, path, err);
}

static tn_rc door_remove_dir(struct tn_io *io, const char *path, struct tn_err *err)
{
    (void)io;
    return door.inner->vtable->remove_dir(door.inner, path, err);
}

static tn_rc door_make_dir(struct tn_io *io, const char *path, struct tn_err *err)
{
    (void)io;
    return door.inner->vtable->make_dir(door.inner, path, err);
}

static tn_rc door_list(struct tn_io *io, const char *path, tn_io_name_fn *each, void *user,
                       struct tn_err *err)
{
    (void)io;
    return door.inner->vtable->list(door.inner, path, each, user, err);
}

static tn_rc door_stat(struct tn_io *io, const char *path, uint64_t *size, struct tn_err *err)
{
    (void)io;
    return door.inner->vtable->stat(door.inner, path, size, err);
}

static tn_rc door_modified(struct tn_io *io, const char *path, int64_t *ms, struct tn_err *err)
{
    (void)io;
    return door.inner->vtable->modified(door.inner, path, ms, err);
}

static tn_rc door_lock(struct tn_io *io, const char *path, const char *who, int *file,
                       struct tn_err *err)
{
    (void)io;
    tn_rc rc = door.inner->vtable->lock(door.inner, path, who, file, err);
    if (rc == TN_OK) {
        note(path, *file);
    }
    return rc;
}

static const struct tn_io_vtable door_vtable = {
    .open = door_open,
    .read = door_read,
    .create = door_create,
    .append = door_append,
    .close = door_close,
    .reopen = door_reopen,
    .sync = door_sync,
    .rename_new = door_rename_new,
    .replace = door_replace,
    .unlink = door_unlink,
    .remove_dir = door_remove_dir,
    .make_dir = door_make_dir,
    .list = door_list,
    .stat = door_stat,
    .modified = door_modified,
    .lock = door_lock,
};

/* ---- turns that complete all that is under way ---- */

typedef tn_rc execute_fn(struct tn_task *task, void *context, struct tn_err *err);

static struct {
    struct tn_exec exec; /* first */
    struct tn_exec *inner;
    struct tn_task *tasks[TASKS_MAX]; /* of the run, */
    execute_fn *does[TASKS_MAX];      /* and what each does */
    atomic_uint count;
    atomic_uint failed; /* in this turn */
    uint32_t together;  /* turns in which two failed */
} crowd;

static uint32_t find_task(const struct tn_task *task)
{
    uint32_t i = 0;
    while (i < crowd.count && crowd.tasks[i] != task) {
        i++;
    }
    return i;
}

static tn_rc crowd_execute(struct tn_task *task, void *context, struct tn_err *err)
{
    tn_rc rc = crowd.does[find_task(task)](task, context, err);
    if (rc != TN_OK) {
        atomic_fetch_add(&crowd.failed, 1);
    }
    return rc;
}

static void crowd_submit(struct tn_exec *exec, struct tn_task *task)
{
    uint32_t i = find_task(task);
    CHECK(i < TASKS_MAX);
    crowd.does[i] = task->execute == crowd_execute ? crowd.does[i] : task->execute;
    if (i == crowd.count) { /* others look for theirs meanwhile */
        crowd.tasks[i] = task;
        crowd.count++;
    }
    task->execute = crowd_execute;
    tn_exec_submit(crowd.inner, task);
    exec->under_way = crowd.inner->under_way;
}

static int crowd_turn(struct tn_exec *exec, bool wait)
{
    int done = 0;
    do {
        done += tn_exec_turn(crowd.inner, wait);
    } while (wait && crowd.inner->under_way > 0);
    exec->under_way = crowd.inner->under_way;
    if (exec->under_way == 0) {
        crowd.together += atomic_exchange(&crowd.failed, 0) > 1;
    }
    return done;
}

static void crowd_close(struct tn_exec *exec)
{
    (void)exec;
    crowd.inner->vtable->close(crowd.inner);
}

static const struct tn_exec_vtable crowd_vtable = {crowd_submit, crowd_turn, crowd_close};

static void start_crowd(void)
{
    bed_engine_start_threads(&engine, &door.io);
    crowd.inner = engine.env.exec;
    crowd.exec = (struct tn_exec){.vtable = &crowd_vtable};
    crowd.count = 0;
    memcpy(crowd.exec.contexts, crowd.inner->contexts, sizeof crowd.exec.contexts);
    engine.env.exec = &crowd.exec;
}

/* ---- tables ---- */

static void expect(struct tn_io *io, const struct bed_writer *w, uint64_t seed)
{
    struct bed_told found;
    bed_engine_start(&engine, io, seed);
    const char *problem = bed_read_all(&engine, &scenario, &found, false);
    if (!problem && (found.rows < w->told.rows || found.id < w->told.id)) {
        problem = BED_PROBLEM("told were %u rows, there are %u", w->told.rows, found.rows);
    }
    if (!problem) {
        problem = bed_fsck(&engine);
    }
    if (problem) {
        FAIL("seed %" PRIu64 ", calls %u to %u: %s\n%s", seed, door.from, door.to, problem,
             scenario.schema);
    }
}

static tn_rc write(struct bed_writer *w, uint32_t retries)
{
    *w = (struct bed_writer){
        .engine = &engine, .scenario = &scenario, .who = "a test", .retries = retries};
    start_crowd();
    tn_rc rc = bed_write(w);
    bed_engine_stop(&engine);
    return rc;
}

static void fail_and_go_on(struct tn_io *io, uint64_t seed)
{
    uint64_t random = seed;
    struct bed_writer w;
    bed_create(&engine, io, &scenario);
    for (int i = 0; i < TRIES; i++) {
        atomic_store(&door.calls, 0);
        door.rc = random_below(&random, 2) ? TN_IO : TN_FULL;
        door.from = random_below(&random, 200);
        door.to = door.from + 2 + random_below(&random, 12);
        tn_rc rc = write(&w, random_below(&random, 4));
        if (rc != TN_OK && !strstr(w.err.text, "a failure was asked for")) {
            FAIL("seed %" PRIu64 ": %s", seed, w.err.text);
        }
        CHECK(rc != TN_OK || w.told.rows == scenario.row_count);
        expect(io, &w, seed);
    }
    door.from = UINT32_MAX;
    tn_rc rc = write(&w, 0);
    CHECK_OK(rc, w.err);
    CHECK(w.told.rows == scenario.row_count);
    expect(io, &w, seed);
}

static void what_fails_in_one_turn_loses_nothing(void)
{
    uint64_t seed = given_number("SEED", 1);
    int tables = 0;
    for (; tables < TABLES || (crowd.together == 0 && tables < 10 * TABLES); seed++) {
        char root[TEMP_SIZE];
        struct tn_io_posix posix;
        bed_scenario_init_merging(&scenario, seed, ROUNDS);
        if (scenario.buckets < 2) {
            continue;
        }
        temp_make(root);
        bed_open_files(&posix, root);
        door.io.vtable = &door_vtable;
        door.inner = &posix.io;
        fail_and_go_on(&posix.io, seed);
        tn_io_posix_close(&posix);
        temp_remove(root);
        tables++;
    }
    (void)printf("%u times two tasks failed in one turn\n", crowd.together);
    CHECK(crowd.together > 0);
}

static const struct test tests[] = {
    TEST(what_fails_in_one_turn_loses_nothing),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), &engine, 1);
}
