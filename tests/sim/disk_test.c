/* What a cut may take and what it may not; and that without one the disk is like the real one. */
#include "sim/disk.h"

#include <inttypes.h>

#include "check.h"
#include "random.h"
#include "temp.h"

enum { MEMORY_MAX = 1 << 20, SEEDS = 300 };

static struct sim_disk disk;
static struct tn_io *const io = &disk.io;

static void start(void)
{
    sim_disk_init(&disk, MEMORY_MAX);
}

static void stop(void)
{
    sim_disk_deinit(&disk);
}

static void ok(tn_rc rc, const struct tn_err *err)
{
    CHECK_OK(rc, *err);
}

static void write_file(const char *path, const char *text)
{
    struct tn_err err;
    ok(tn_io_write_new(io, path, tn_bytes_of(text), &err), &err);
}

static void sync_path(const char *path)
{
    struct tn_err err;
    ok(io->vtable->sync(io, &path, 1, &err), &err);
}

static void make_dir(const char *path)
{
    struct tn_err err;
    ok(io->vtable->make_dir(io, path, &err), &err);
}

static void rename_new(const char *path, const char *path_new)
{
    struct tn_err err;
    ok(io->vtable->rename_new(io, path, path_new, &err), &err);
}

static void remove_file(const char *path)
{
    struct tn_err err;
    ok(io->vtable->unlink(io, path, &err), &err);
}

/* The text of a file on `on`; NULL when there is none. Valid until the next call. */
static const char *text_of(struct sim_disk *on, const char *path, size_t *size)
{
    static _Alignas(16) unsigned char memory[65536];
    struct tn_arena arena;
    tn_arena_init(&arena, memory, sizeof memory);
    struct tn_bytes bytes;
    struct tn_err err;
    tn_rc rc = tn_io_read_all(&on->io, path, sizeof memory - 100, &arena, &bytes, &err);
    if (rc == TN_ABSENT) {
        return NULL;
    }
    ok(rc, &err);
    *size = bytes.size;
    return (const char *)bytes.data;
}

static bool has(struct sim_disk *on, const char *path)
{
    size_t size;
    return text_of(on, path, &size) != NULL;
}

static bool has_text(struct sim_disk *on, const char *path, const char *text)
{
    size_t size;
    const char *found = text_of(on, path, &size);
    return found && size == strlen(text) && memcmp(found, text, size) == 0;
}

/* For each seed reboots a clone of the disk and lets `look` add a bit for what it saw; gives all
 * bits that were seen. */
static unsigned seen_after_reboots(unsigned (*look)(struct sim_disk *on))
{
    unsigned seen = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sim_disk clone;
        sim_disk_clone(&clone, &disk);
        sim_disk_reboot(&clone, seed);
        seen |= look(&clone);
        sim_disk_deinit(&clone);
    }
    return seen;
}

enum { NO_BYTES = 1, ALL_BYTES = 2, FIRST_BYTES = 4, ZERO_BYTES = 8, HOLES = 16, GONE = 32 };

/* `f` was 2,000 times 'x'. */
static unsigned look_at_bytes(struct sim_disk *on)
{
    size_t size;
    const char *text = text_of(on, "d/f", &size);
    if (!text) {
        return GONE;
    }
    size_t xs = 0;
    size_t first = SIZE_MAX;
    for (size_t i = 0; i < size; i++) {
        CHECK(text[i] == 'x' || text[i] == 0);
        xs += text[i] == 'x';
        first = text[i] == 0 && first == SIZE_MAX ? i : first;
    }
    CHECK(size <= 2000);
    if (size == 0) {
        return NO_BYTES;
    }
    if (size < 2000) {
        CHECK(xs == size);
        return FIRST_BYTES;
    }
    return xs == 2000 ? ALL_BYTES : xs == 0 ? ZERO_BYTES : HOLES;
}

static void write_xs(void)
{
    static char text[2001];
    memset(text, 'x', 2000);
    text[2000] = 0;
    make_dir("d");
    write_file("d/f", text);
}

static void bytes_without_a_sync_survive_in_every_legal_way(void)
{
    start();
    write_xs();
    sync_path("d/");
    unsigned seen = seen_after_reboots(look_at_bytes);
    CHECK(seen == (NO_BYTES | ALL_BYTES | FIRST_BYTES | ZERO_BYTES | HOLES));
    stop();
}

static void a_name_without_a_sync_of_its_folder_may_be_lost(void)
{
    start();
    write_xs();
    sync_path("d/f");
    unsigned seen = seen_after_reboots(look_at_bytes);
    CHECK(seen == (ALL_BYTES | GONE));
    stop();
}

static void a_synced_file_under_a_synced_name_is_never_lost(void)
{
    static const char *const orders[][2] = {{"d/f", "d/"}, {"d/", "d/f"}};
    for (size_t i = 0; i < COUNT(orders); i++) {
        start();
        write_xs();
        sync_path(orders[i][0]);
        sync_path(orders[i][1]);
        unsigned seen = seen_after_reboots(look_at_bytes);
        CHECK(seen == ALL_BYTES);
        stop();
    }
}

static unsigned look_at_a_and_b(struct sim_disk *on)
{
    unsigned here = (has(on, "d/a") ? 1U : 0U) | (has(on, "d/b") ? 2U : 0U);
    return 1U << here;
}

static void start_with_a(void)
{
    start();
    make_dir("d");
    write_file("d/a", "text");
    const char *paths[] = {"d/a", "d/"};
    struct tn_err err;
    ok(io->vtable->sync(io, paths, 2, &err), &err);
}

enum { NEITHER = 1U << 0, ONLY_A = 1U << 1, ONLY_B = 1U << 2, BOTH = 1U << 3 };

static void a_rename_without_a_sync_of_its_folder_may_be_lost(void)
{
    start_with_a();
    rename_new("d/a", "d/b");
    CHECK(seen_after_reboots(look_at_a_and_b) == (ONLY_A | ONLY_B));
    sync_path("d/");
    CHECK(seen_after_reboots(look_at_a_and_b) == ONLY_B);
    stop();
}

static void an_unlink_without_a_sync_may_be_lost(void)
{
    start_with_a();
    remove_file("d/a");
    CHECK(!has(&disk, "d/a"));
    CHECK(seen_after_reboots(look_at_a_and_b) == (NEITHER | ONLY_A));
    sync_path("d/");
    CHECK(seen_after_reboots(look_at_a_and_b) == NEITHER);
    CHECK(sim_disk_used(&disk) == 0);
    stop();
}

/* The second of two names may be there without the first, unless the model is ordered. */
static void names_survive_as_any_subset_or_in_order(void)
{
    for (int ordered = 0; ordered < 2; ordered++) {
        start();
        disk.model = ordered ? SIM_ORDERED : SIM_STRICT;
        make_dir("d");
        write_file("d/a", "");
        write_file("d/b", "");
        unsigned seen = seen_after_reboots(look_at_a_and_b);
        CHECK(seen == (ordered ? NEITHER | ONLY_A | BOTH : NEITHER | ONLY_A | ONLY_B | BOTH));
        stop();
    }
}

static void in_order_any_sync_keeps_all_names_before_it(void)
{
    for (int ordered = 0; ordered < 2; ordered++) {
        start();
        disk.model = ordered ? SIM_ORDERED : SIM_STRICT;
        make_dir("d");
        make_dir("other");
        write_file("d/a", "");
        write_file("other/c", "");
        sync_path("other/c");
        sync_path("other/");
        unsigned seen = seen_after_reboots(look_at_a_and_b);
        CHECK(seen == (ordered ? ONLY_A : NEITHER | ONLY_A));
        stop();
    }
}

/* A file's first name is lost and its second one kept: it's there under the second. */
static void a_rename_survives_without_its_create(void)
{
    start();
    make_dir("d");
    write_file("d/a", "text");
    sync_path("d/a");
    rename_new("d/a", "d/b");
    /* rename lost: a; create lost: b; both lost: neither. Never two names by one rename. */
    CHECK(seen_after_reboots(look_at_a_and_b) == (NEITHER | ONLY_A | ONLY_B));
    stop();
}

static unsigned look_at_replaced(struct sim_disk *on)
{
    CHECK(has_text(on, "hint", "old") || has_text(on, "hint", "new"));
    return has_text(on, "hint", "old") ? 1 : 2;
}

static void replace_leaves_the_old_or_the_new_file(void)
{
    start();
    write_file("hint", "old");
    write_file("tmp", "new");
    const char *paths[] = {"hint", "tmp", "/"};
    struct tn_err err;
    ok(io->vtable->sync(io, paths, 3, &err), &err);
    ok(io->vtable->replace(io, "tmp", "hint", &err), &err);
    CHECK(has_text(&disk, "hint", "new"));
    CHECK(seen_after_reboots(look_at_replaced) == (1 | 2));
    stop();
}

static void rename_new_never_replaces(void)
{
    start();
    write_file("a", "first");
    write_file("b", "second");
    struct tn_err err;
    CHECK(io->vtable->rename_new(io, "a", "b", &err) == TN_EXISTS);
    CHECK(has_text(&disk, "a", "first") && has_text(&disk, "b", "second"));
    CHECK(io->vtable->rename_new(io, "none", "c", &err) == TN_ABSENT);
    stop();
}

static unsigned look_at_folder(struct sim_disk *on)
{
    uint64_t size;
    struct tn_err err;
    CHECK(on->io.vtable->stat(&on->io, "d/e/f", &size, &err) == TN_OK);
    return has(on, "d/a") ? 1 : 2;
}

static void a_folder_is_durable_at_once_but_takes_no_other_name_along(void)
{
    start();
    make_dir("d");
    write_file("d/a", "");
    make_dir("d/e/f");
    CHECK(seen_after_reboots(look_at_folder) == (1 | 2));
    stop();
}

static unsigned look_at_removed(struct sim_disk *on)
{
    uint64_t size;
    struct tn_err err;
    tn_rc rc = on->io.vtable->stat(&on->io, "d", &size, &err);
    if (rc == TN_ABSENT) {
        CHECK(!has(on, "d/a"));
        CHECK(sim_disk_used(on) == 0);
        return 1;
    }
    return has(on, "d/a") ? 2 : 4;
}

/* Also: a folder that is made again under the name is another one, and empty. */
static void a_folder_that_is_gone_takes_its_files_along(void)
{
    start_with_a();
    remove_file("d/a");
    struct tn_err err;
    ok(io->vtable->remove_dir(io, "d", &err), &err);
    CHECK(seen_after_reboots(look_at_removed) == (1 | 2 | 4));
    sync_path("/");
    CHECK(seen_after_reboots(look_at_removed) == 1);
    make_dir("d");
    CHECK(seen_after_reboots(look_at_removed) == 4);
    stop();
}

static unsigned look_at_kind(struct sim_disk *on)
{
    uint64_t size;
    struct tn_err err;
    tn_rc rc = on->io.vtable->stat(&on->io, "d/f/below", &size, &err);
    return rc == TN_OK ? 1 : 2;
}

static void a_folder_is_not_replaced_by_a_file_that_had_its_name(void)
{
    start();
    make_dir("d");
    write_file("d/f", "");
    remove_file("d/f");
    make_dir("d/f/below");
    CHECK(seen_after_reboots(look_at_kind) == 1);
    stop();
}

/* As on the real one; and its bytes take their space until it is closed. */
static void an_open_file_outlives_its_name(void)
{
    start();
    write_file("f", "text");
    struct tn_err err;
    int file;
    uint64_t size;
    ok(io->vtable->open(io, "f", &file, &size, &err), &err);
    remove_file("f");
    sync_path("/");
    char data[8];
    size_t got;
    ok(io->vtable->read(io, file, 1, data, sizeof data, &got, &err), &err);
    CHECK(got == 3 && memcmp(data, "ext", 3) == 0);
    CHECK(sim_disk_used(&disk) == 4);
    io->vtable->close(io, file);
    CHECK(sim_disk_used(&disk) == 0);
    stop();
}

static unsigned look_at_reopened(struct sim_disk *on)
{
    size_t size;
    const char *text = text_of(on, "f", &size);
    CHECK(text && size >= 3 && memcmp(text, "abc", 3) == 0);
    return has_text(on, "f", "abcdef") ? 1 : has_text(on, "f", "abcXYZ!") ? 2 : 4;
}

static void a_file_that_was_cut_short_may_be_its_old_self(void)
{
    start();
    write_file("f", "abcdef");
    const char *paths[] = {"f", "/"};
    struct tn_err err;
    ok(io->vtable->sync(io, paths, 2, &err), &err);
    int file;
    CHECK(io->vtable->reopen(io, "f", 7, &file, &err) == TN_CORRUPT);
    ok(io->vtable->reopen(io, "f", 3, &file, &err), &err);
    ok(io->vtable->append(io, file, tn_bytes_of("XYZ!"), &err), &err);
    io->vtable->close(io, file);
    CHECK(seen_after_reboots(look_at_reopened) == (1 | 2 | 4));
    sync_path("f");
    CHECK(seen_after_reboots(look_at_reopened) == 2);
    stop();
}

/* write, sync, rename, sync: what commit does with a snapshot. */
static tn_rc publish(struct tn_io *on, struct tn_err *err)
{
    const char *file = "d/tmp";
    const char *dir = "d/";
    tn_rc rc = tn_io_write_new(on, file, tn_bytes_of("a whole snapshot"), err);
    rc = rc ? rc : on->vtable->sync(on, &file, 1, err);
    rc = rc ? rc : on->vtable->rename_new(on, "d/tmp", "d/snapshot-1", err);
    return rc ? rc : on->vtable->sync(on, &dir, 1, err);
}

/* Whether a seed shows a snapshot that is torn, or gone though it was acknowledged. */
static bool some_reboot_breaks_it(const struct sim_disk *from, bool acknowledged)
{
    bool broken = false;
    for (uint64_t seed = 0; seed < SEEDS && !broken; seed++) {
        struct sim_disk clone;
        sim_disk_clone(&clone, from);
        sim_disk_reboot(&clone, seed);
        bool there = has(&clone, "d/snapshot-1");
        broken = there ? !has_text(&clone, "d/snapshot-1", "a whole snapshot") : acknowledged;
        sim_disk_deinit(&clone);
    }
    return broken;
}

/* Publishes with a cut before call `cut` (0: none), the sync `ignored` being a lie. */
static bool publish_can_break(uint64_t cut, uint64_t ignored, uint64_t *calls)
{
    start();
    make_dir("d");
    sim_disk_cut_at(&disk, cut ? disk.calls + cut : 0);
    sim_disk_ignore_sync(&disk, ignored);
    uint64_t before = disk.calls;
    struct tn_err err;
    tn_rc rc = publish(io, &err);
    CHECK(rc == TN_OK || (cut && strstr(err.text, "the power is off")));
    *calls = disk.calls - before;
    bool broken = some_reboot_breaks_it(&disk, rc == TN_OK);
    stop();
    return broken;
}

static void a_sync_leaves_out_the_paths_that_are_ignored(void)
{
    start();
    make_dir("d");
    sim_disk_ignore_path(&disk, "/b");
    write_file("d/a", "text");
    write_file("d/b", "text");
    sync_path("d/a");
    sync_path("d/b");
    sync_path("d/");
    CHECK(disk.paths_ignored == 1);
    sim_disk_reboot(&disk, SIM_SEED_NOTHING);
    CHECK(has_text(&disk, "d/a", "text"));
    CHECK(!has_text(&disk, "d/b", "text"));
    stop();
}

static void publishing_is_safe_at_every_cut_and_needs_each_of_its_syncs(void)
{
    uint64_t calls;
    CHECK(!publish_can_break(0, 0, &calls));
    CHECK(calls == 5);
    for (uint64_t cut = 1; cut <= 5; cut++) {
        uint64_t some;
        CHECK(!publish_can_break(cut, 0, &some));
    }
    CHECK(publish_can_break(0, 1, &calls));
    CHECK(publish_can_break(0, 2, &calls));
    CHECK(publish_can_break(5, 1, &calls));
}

static void after_the_cut_every_call_fails_and_does_nothing(void)
{
    start();
    write_file("a", "x");
    sync_path("/");
    sim_disk_cut_at(&disk, disk.calls + 2);
    remove_file("a");
    struct tn_err err;
    uint64_t size;
    for (int i = 0; i < 2; i++) {
        CHECK(tn_io_write_new(io, "b", tn_bytes_of("y"), &err) == TN_IO);
        CHECK(strcmp(err.text, "create b: the power is off") == 0);
        CHECK(io->vtable->stat(io, "a", &size, &err) == TN_IO);
    }
    CHECK(!sim_disk_call_changes(&disk, disk.calls) && sim_disk_call_changes(&disk, 1));
    sim_disk_reboot(&disk, SIM_SEED_ALL);
    CHECK(!has(&disk, "a") && !has(&disk, "b"));
    CHECK(disk.boot == 1 && disk.syncs == 0);
    stop();
}

static void a_call_fails_once_before_or_after_its_work(void)
{
    start();
    struct tn_err err;
    sim_disk_fail_call(&disk, 1, TN_FULL);
    CHECK(io->vtable->make_dir(io, "d", &err) == TN_FULL);
    CHECK(strstr(err.text, "make_dir d") != NULL);
    make_dir("d");
    write_file("d/a", "x");
    sim_disk_fail_call_late(&disk, disk.calls + 1, TN_IO);
    CHECK(io->vtable->rename_new(io, "d/a", "d/b", &err) == TN_IO);
    CHECK(!has(&disk, "d/a") && has(&disk, "d/b"));
    stop();
}

static unsigned look_at_spoiled(struct sim_disk *on)
{
    return has_text(on, "f", "text") ? 1 : 2;
}

/* Linux marks the pages clean when their write fails, so the next fsync has nothing to do. */
static void a_sync_after_one_that_failed_keeps_nothing(void)
{
    start();
    write_file("f", "text");
    sync_path("/");
    sim_disk_fail_call(&disk, disk.calls + 1, TN_IO);
    struct tn_err err;
    const char *path = "f";
    CHECK(io->vtable->sync(io, &path, 1, &err) == TN_IO);
    sync_path("f");
    CHECK((seen_after_reboots(look_at_spoiled) & 2) != 0);

    int file; /* written again, the bytes are new ones */
    ok(io->vtable->reopen(io, "f", 0, &file, &err), &err);
    ok(io->vtable->append(io, file, tn_bytes_of("text"), &err), &err);
    io->vtable->close(io, file);
    sync_path("f");
    CHECK(seen_after_reboots(look_at_spoiled) == 1);
    stop();
}

static void a_full_disk_takes_what_fits_until_something_goes(void)
{
    start();
    write_file("a", "12345678");
    sim_disk_capacity(&disk, 10);
    struct tn_err err;
    CHECK(tn_io_write_new(io, "b", tn_bytes_of("123"), &err) == TN_FULL);
    CHECK(!has(&disk, "b")); /* write_new removes the half */
    write_file("b", "12");
    CHECK(sim_disk_used(&disk) == 10);
    int file;
    CHECK(io->vtable->create(io, "c", &file, &err) == TN_FULL);
    CHECK(io->vtable->make_dir(io, "d", &err) == TN_FULL);
    remove_file("a");
    write_file("c", "12345678");
    ok(io->vtable->reopen(io, "c", 0, &file, &err), &err);
    CHECK(io->vtable->append(io, file, tn_bytes_of("123456789"), &err) == TN_FULL);
    io->vtable->close(io, file);
    CHECK(has_text(&disk, "c", "12345678"));
    stop();
}

static void a_lock_lasts_until_close_or_reboot(void)
{
    start();
    struct tn_err err;
    int file;
    int second;
    ok(io->vtable->lock(io, "t.lock", "pid 17", &file, &err), &err);
    CHECK(io->vtable->lock(io, "t.lock", "pid 18", &second, &err) == TN_EXISTS);
    CHECK(strcmp(err.text, "lock t.lock: held by pid 17") == 0);
    io->vtable->close(io, file);
    ok(io->vtable->lock(io, "t.lock", "pid 18", &second, &err), &err);
    CHECK(has_text(&disk, "t.lock", "pid 18"));
    sim_disk_reboot(&disk, SIM_SEED_ALL);
    io->vtable->close(io, second); /* of before the reboot: nothing */
    ok(io->vtable->lock(io, "t.lock", "pid 19", &file, &err), &err);
    stop();
}

static void one_seed_gives_one_outcome_and_a_clone_leaves_its_model_alone(void)
{
    start();
    write_xs();
    write_file("d/a", "text");
    for (uint64_t seed = 0; seed < 50; seed++) {
        static struct sim_disk first;
        static struct sim_disk second;
        sim_disk_clone(&first, &disk);
        sim_disk_clone(&second, &disk);
        sim_disk_reboot(&first, seed);
        sim_disk_reboot(&second, seed);
        CHECK(has(&first, "d/a") == has(&second, "d/a"));
        CHECK(look_at_bytes(&first) == look_at_bytes(&second));
        sim_disk_deinit(&first);
        sim_disk_deinit(&second);
        CHECK(has_text(&disk, "d/a", "text") && look_at_bytes(&disk) == ALL_BYTES);
    }
    stop();
}

/* ---- beside the real file system: the same calls, the same answers ---- */

static struct tn_io_posix posix;

/* Adds up the names, since their order is free. */
static tn_rc add_name(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    (void)err;
    uint64_t *sum = user;
    uint64_t hash = is_dir ? 77 : 7;
    for (; *name; name++) {
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3U;
    }
    *sum += hash;
    return TN_OK;
}

struct answer {
    tn_rc rc;
    uint64_t value;
};

static struct answer read_answer(struct tn_io *on, const char *path)
{
    static _Alignas(16) unsigned char memory[8192];
    struct tn_arena arena;
    tn_arena_init(&arena, memory, sizeof memory);
    struct answer answer = {.rc = TN_OK};
    struct tn_bytes bytes;
    struct tn_err err;
    answer.rc = tn_io_read_all(on, path, 8000, &arena, &bytes, &err);
    for (size_t i = 0; answer.rc == TN_OK && i < bytes.size; i++) {
        answer.value = answer.value * 31 + bytes.data[i];
    }
    return answer;
}

static tn_rc rewrite_end(struct tn_io *on, const char *path, uint64_t size, struct tn_err *err)
{
    int file;
    tn_rc rc = on->vtable->reopen(on, path, size, &file, err);
    if (rc == TN_OK) {
        rc = on->vtable->append(on, file, tn_bytes_of("and more"), err);
        on->vtable->close(on, file);
    }
    return rc;
}

static const char *pick_path(uint64_t *random)
{
    static const char *const paths[] = {"a",     "b",     "d",     "d/a", "d/b", "d/e",
                                        "d/e/a", "d/e/b", "f/a/b", "f/a", "f",   "../a"};
    return paths[random_below(random, COUNT(paths))];
}

/* A path in the same folder as `path`, for renames. */
static const char *pick_beside(const char *path, char beside[20], uint64_t *random)
{
    (void)snprintf(beside, 20, "%s", path);
    size_t length = strlen(beside);
    beside[length - 1] = "abdef"[random_below(random, 5)];
    return beside;
}

/* io.h renames files; the real one would rename folders, too. */
static bool is_folder(struct tn_io *on, const char *path)
{
    uint64_t sum = 0;
    struct tn_err err;
    return on->vtable->list(on, path, add_name, &sum, &err) == TN_OK;
}

static struct answer call_one(struct tn_io *on, uint64_t *random)
{
    struct answer answer = {.rc = TN_OK};
    struct tn_err err;
    char beside[20];
    const char *path = pick_path(random);
    const char *other = pick_beside(path, beside, random);
    uint64_t number = random_below(random, 12);
    uint32_t verb = random_below(random, 10);
    if ((verb == 2 || verb == 3) && is_folder(on, path)) {
        return answer;
    }
    switch (verb) {
    case 0:
        answer.rc = tn_io_write_new(on, path, (struct tn_bytes){(const void *)&number, 8}, &err);
        break;
    case 1:
        answer = read_answer(on, path);
        break;
    case 2:
        answer.rc = on->vtable->rename_new(on, path, other, &err);
        break;
    case 3:
        answer.rc = on->vtable->replace(on, path, other, &err);
        break;
    case 4:
        answer.rc = on->vtable->unlink(on, path, &err);
        break;
    case 5:
        answer.rc = on->vtable->remove_dir(on, path, &err);
        break;
    case 6:
        answer.rc = on->vtable->make_dir(on, path, &err);
        break;
    case 7:
        answer.rc = on->vtable->list(on, path, add_name, &answer.value, &err);
        break;
    case 8:
        answer.rc = rewrite_end(on, path, number, &err);
        break;
    default:
        answer.rc = on->vtable->stat(on, path, &answer.value, &err);
        answer.value = answer.rc == TN_OK ? answer.value : 0;
        break;
    }
    return answer;
}

static void without_a_cut_it_answers_as_the_real_one(void)
{
    char root[TEMP_SIZE];
    temp_make(root);
    struct tn_err err;
    ok(tn_io_posix_open(&posix, root, &err), &err);
    start();
    uint64_t random = 5;
    for (int i = 0; i < 20000; i++) {
        uint64_t same = random;
        struct answer real = call_one(&posix.io, &same);
        struct answer sim = call_one(io, &random);
        if (real.rc != sim.rc || real.value != sim.value) {
            COMPLAIN("step %d: real %d %" PRIu64 ", simulated %d %" PRIu64, i, real.rc, real.value,
                     sim.rc, sim.value);
            sim_disk_print_trace(&disk);
            abort();
        }
    }
    stop();
    tn_io_posix_close(&posix);
    temp_remove(root);
}

static const struct test tests[] = {
    TEST(bytes_without_a_sync_survive_in_every_legal_way),
    TEST(a_name_without_a_sync_of_its_folder_may_be_lost),
    TEST(a_synced_file_under_a_synced_name_is_never_lost),
    TEST(a_rename_without_a_sync_of_its_folder_may_be_lost),
    TEST(an_unlink_without_a_sync_may_be_lost),
    TEST(names_survive_as_any_subset_or_in_order),
    TEST(in_order_any_sync_keeps_all_names_before_it),
    TEST(a_rename_survives_without_its_create),
    TEST(replace_leaves_the_old_or_the_new_file),
    TEST(rename_new_never_replaces),
    TEST(a_folder_is_durable_at_once_but_takes_no_other_name_along),
    TEST(a_folder_that_is_gone_takes_its_files_along),
    TEST(a_folder_is_not_replaced_by_a_file_that_had_its_name),
    TEST(an_open_file_outlives_its_name),
    TEST(a_file_that_was_cut_short_may_be_its_old_self),
    TEST(a_sync_leaves_out_the_paths_that_are_ignored),
    TEST(publishing_is_safe_at_every_cut_and_needs_each_of_its_syncs),
    TEST(after_the_cut_every_call_fails_and_does_nothing),
    TEST(a_call_fails_once_before_or_after_its_work),
    TEST(a_sync_after_one_that_failed_keeps_nothing),
    TEST(a_full_disk_takes_what_fits_until_something_goes),
    TEST(a_lock_lasts_until_close_or_reboot),
    TEST(one_seed_gives_one_outcome_and_a_clone_leaves_its_model_alone),
    TEST(without_a_cut_it_answers_as_the_real_one),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
