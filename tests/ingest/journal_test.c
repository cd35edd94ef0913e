/* The journal on a disk that loses power, fails and fills up, against a model that knows what was
 * appended and what was called durable. */
#include "ingest/journal.h"

#include <inttypes.h>

#include "base/exec.h"
#include "check.h"
#include "given.h"
#include "ingest/journal_bytes.h"
#include "random.h"
#include "sim/clock.h"
#include "sim/disk.h"
#include "temp.h"

enum {
    DISK_SIZE = 8 << 20,
    ARENA_SIZE = 128 << 10,
    ENTRIES_MAX = 8192,
    SENDERS = 4,
    BLOCK_SIZE = 600,
    DATA_MAX = 400,
};

/* ---- what was appended ---- */

struct entry {
    uint64_t place;
    uint32_t serial;
};

/* `durable`: everything before this place must be found. Entries are those that may be. */
struct model {
    struct entry entries[ENTRIES_MAX];
    uint32_t count;
    uint32_t serial;
    uint64_t durable;
    uint64_t trimmed;
    uint64_t highest; /* place that was ever given */
    char identity[TN_JOURNAL_IDENTITY_SIZE];
    bool opened; /* there is an identity */
};

struct world {
    struct sim_disk disk;
    struct sim_clock clock;
    struct tn_exec_inline exec;
    struct tn_journal_spec spec;
    struct tn_journal *journal;
    struct tn_arena arena;
    uint64_t random;
    _Alignas(16) unsigned char memory[ARENA_SIZE];
};

static struct model model;
static struct world worlds[2]; /* the one that runs, and what a cut would leave of it */
static struct tn_err err;

static uint64_t serial_random(uint32_t serial)
{
    uint64_t state = serial;
    return random_next(&state);
}

/* What the entry of a serial number is: rows of any size, and in every second one a memo. */
struct content {
    struct tn_journal_part parts[2];
    uint32_t count;
    unsigned char data[DATA_MAX + 8];
    char name[16];
    char memo[32];
};

static uint32_t sender_of(uint32_t serial)
{
    return serial % 2 == 0 ? (uint32_t)(serial_random(serial) % SENDERS) : SENDERS;
}

static void sender_name(uint32_t sender, char name[16])
{
    (void)snprintf(name, 16, "sender-%u", sender);
}

static void make_content(uint32_t serial, struct content *content)
{
    uint64_t random = serial_random(serial);
    size_t size = random_below(&random, 8) == 0 ? DATA_MAX : random_below(&random, 60);
    uint32_t mask = random_below(&random, 2) == 0 ? 0xff : 0x03; /* incompressible, or not */
    tn_store_u32(content->data, serial);
    for (size_t i = 4; i < 4 + size; i++) {
        content->data[i] = (unsigned char)(random_next(&random) & mask);
    }
    content->parts[0] =
        (struct tn_journal_part){TN_JOURNAL_ROWS, tn_bytes_of("db.t"), {content->data, 4 + size}};
    content->count = 1;
    if (sender_of(serial) < SENDERS) {
        sender_name(sender_of(serial), content->name);
        (void)snprintf(content->memo, sizeof content->memo, "%u%.*s", serial, (int)(serial % 9),
                       "abcdefghij");
        content->parts[content->count++] = (struct tn_journal_part){
            TN_JOURNAL_MEMO, tn_bytes_of(content->name), tn_bytes_of(content->memo)};
    }
}

static bool same_parts(const struct content *content, const struct tn_journal_part *parts,
                       uint32_t count)
{
    for (uint32_t i = 0; i < count && i < content->count; i++) {
        if (parts[i].kind != content->parts[i].kind ||
            !tn_bytes_equal(parts[i].name, content->parts[i].name) ||
            !tn_bytes_equal(parts[i].data, content->parts[i].data)) {
            return false;
        }
    }
    return count == content->count;
}

/* ---- what is found, against it ---- */

struct look {
    uint32_t at; /* of model.entries */
    const char *problem;
};

static tn_rc look_at_entry(void *user, uint64_t place, const struct tn_journal_part *parts,
                           uint32_t count, struct tn_err *out)
{
    static struct content content;
    struct look *look = user;
    (void)out;
    if (look->at == model.count || model.entries[look->at].place != place) {
        look->problem = "an entry that is not the next one";
        return TN_CANCELED;
    }
    make_content(model.entries[look->at].serial, &content);
    if (!same_parts(&content, parts, count)) {
        look->problem = "an entry with other content";
        return TN_CANCELED;
    }
    look->at++;
    return TN_OK;
}

static const char *look_at_memos(const struct world *w, uint32_t count)
{
    for (uint32_t sender = 0; sender < SENDERS; sender++) {
        static struct content content;
        const struct entry *newest = NULL;
        struct tn_bytes memo;
        uint64_t place;
        char name[16];
        for (uint32_t i = 0; i < count; i++) {
            newest = sender_of(model.entries[i].serial) == sender ? &model.entries[i] : newest;
        }
        sender_name(sender, name);
        tn_rc rc = tn_journal_memo(w->journal, tn_bytes_of(name), &memo, &place);
        if ((rc == TN_OK) != (newest != NULL)) {
            return newest ? "a memo is lost" : "a memo of nobody";
        }
        if (newest) {
            make_content(newest->serial, &content);
            if (place != newest->place || !tn_bytes_equal(memo, content.parts[1].data)) {
                return "a memo that is not the newest";
            }
        }
    }
    return NULL;
}

/* NULL: all is as promised; *count of the model's entries are there. */
static const char *look_at(struct world *w, uint32_t *count)
{
    struct look look = {0};
    uint64_t first = tn_journal_first(w->journal);
    uint64_t next;
    while (look.at < model.count && model.entries[look.at].place < first) {
        if (model.entries[look.at].place >= model.trimmed) {
            return "what nobody trimmed is gone";
        }
        look.at++;
    }
    tn_rc rc = tn_journal_read(w->journal, first, &next, look_at_entry, &look, &w->arena, &err);
    if (rc) {
        return look.problem ? look.problem : err.text;
    }
    if (look.at < model.count && model.entries[look.at].place < model.durable) {
        return "an entry that was durable is lost";
    }
    if (look.at > 0 && tn_journal_next(w->journal) <= model.entries[look.at - 1].place) {
        return "a place is given twice";
    }
    if (tn_journal_next(w->journal) < w->spec.floor) {
        return "a place that a table knows is given";
    }
    if (model.opened && strcmp(tn_journal_identity(w->journal), model.identity) != 0) {
        return "another identity";
    }
    *count = look.at;
    return look_at_memos(w, look.at);
}

/* ---- processes ---- */

static void world_init(struct world *w, uint64_t seed)
{
    check_seed = seed;
    w->random = seed;
    sim_clock_init(&w->clock, seed);
    tn_arena_init(&w->arena, w->memory, sizeof w->memory);
    w->journal = NULL;
    w->spec = (struct tn_journal_spec){
        .io = &w->disk.io,
        .clock = &w->clock.clock,
        .exec = &w->exec.exec,
        .who = "a test",
        .block_size = BLOCK_SIZE,
        .file_size = 1500,
        .size_max = 12000,
        .sync_ms = 100,
        .sync_bytes = 300,
        .sender_max = SENDERS,
        .memo_bytes = 200,
    };
}

static tn_rc open_journal(struct world *w)
{
    void *const contexts[TN_LANE_COUNT] = {NULL, NULL};
    tn_arena_init(&w->arena, w->memory, tn_journal_memory(&w->spec));
    tn_exec_inline_open(&w->exec, contexts);
    return tn_journal_open(&w->journal, &w->spec, &w->arena, &err);
}

static void fail(const struct world *w, const char *what)
{
    COMPLAIN("%s", what);
    sim_disk_print_trace(&w->disk);
    abort();
}

/* Another process on what a cut or a kill left. It may fail while a fault is set, but not twice. */
static void start_again(struct world *w, bool cut)
{
    uint32_t count = 0;
    tn_rc rc = TN_IO;
    uint64_t seed = random_next(&w->random);
    uint64_t fails = w->disk.fail_call > w->disk.calls ? w->disk.fail_call - w->disk.calls : 0;
    tn_rc fail_rc = w->disk.fail_rc;
    w->spec.floor = random_below(&w->random, 2) == 0 ? model.highest + 1 : 0;
    for (int tries = 0; rc && tries < 3; tries++) {
        if (cut) {
            sim_disk_reboot(&w->disk, tries == 0 ? seed % 5 : seed + (uint64_t)tries);
        } else {
            sim_disk_kill(&w->disk);
        }
        if (tries == 0 && fails > 0) {
            sim_disk_fail_call(&w->disk, fails, fail_rc);
        }
        rc = open_journal(w);
        if (rc == TN_CORRUPT) {
            fail(w, err.text);
        }
    }
    CHECK_OK(rc, err);
    const char *problem = look_at(w, &count);
    if (problem == err.text && err.code == fail_rc && w->disk.fail_call == w->disk.calls) {
        problem = look_at(w, &count); /* the call that was to fail is one of a reader's */
    }
    if (problem) {
        fail(w, problem);
    }
    model.count = count;
    model.durable = tn_journal_durable(w->journal);
    (void)snprintf(model.identity, sizeof model.identity, "%s", tn_journal_identity(w->journal));
    model.opened = true;
}

static void learn_durable(const struct world *w)
{
    uint64_t durable = tn_journal_durable(w->journal);
    CHECK(durable >= model.durable);
    CHECK(durable <= tn_journal_next(w->journal));
    model.durable = durable;
}

static tn_rc append(struct world *w)
{
    static struct content content;
    uint64_t place;
    uint64_t next = tn_journal_next(w->journal);
    make_content(model.serial, &content);
    tn_rc rc = tn_journal_append(w->journal, content.parts, content.count, &place, &err);
    if (rc == TN_OK) {
        CHECK(model.count < ENTRIES_MAX);
        CHECK(place == next);
        CHECK(place >= w->spec.floor);
        model.entries[model.count++] = (struct entry){place, model.serial++};
        model.highest = place > model.highest ? place : model.highest;
    }
    return rc;
}

static tn_rc turn(struct world *w, bool now)
{
    uint32_t wait_ms;
    tn_rc rc = tn_journal_turn(w->journal, now, &wait_ms, &err);
    if (random_below(&w->random, 3) > 0) {
        (void)tn_exec_turn(&w->exec.exec, false);
        learn_durable(w);
    }
    return rc;
}

static void trim(struct world *w)
{
    uint64_t place = model.durable;
    if (model.count > 0 && random_below(&w->random, 2) == 0) {
        place = model.entries[random_below(&w->random, model.count)].place;
        place = place < model.durable ? place : model.durable;
    }
    model.trimmed = place > model.trimmed ? place : model.trimmed;
    tn_journal_trim(w->journal, place);
}

/* IO: the process has to end. */
static tn_rc one_step(struct world *w)
{
    uint32_t die = random_below(&w->random, 100);
    if (die < 55) {
        tn_rc rc = append(w);
        if (rc == TN_AGAIN && tn_journal_full(w->journal)) {
            trim(w);
        }
        return rc == TN_AGAIN ? turn(w, true) : rc;
    }
    if (die < 60) {
        trim(w);
    } else if (die < 70) {
        sim_clock_advance_ms(&w->clock, random_below(&w->random, 400));
    } else {
        return turn(w, die < 75);
    }
    return TN_OK;
}

/* Everything that was appended gets durable, unless the process has to end. */
static tn_rc drain(struct world *w)
{
    tn_rc rc = TN_OK;
    for (int tries = 0; tn_journal_durable(w->journal) < tn_journal_next(w->journal); tries++) {
        uint32_t wait_ms;
        CHECK(tries < 20);
        rc = tn_journal_turn(w->journal, true, &wait_ms, &err);
        if (rc == TN_IO) {
            break;
        }
        while (tn_exec_turn(&w->exec.exec, false) > 0) {
        }
        learn_durable(w);
    }
    while (tn_exec_turn(&w->exec.exec, false) > 0) {
    }
    return rc == TN_IO ? rc : TN_OK;
}

static void begin_run(struct world *w, uint64_t seed)
{
    model = (struct model){0};
    sim_disk_init(&w->disk, DISK_SIZE);
    world_init(w, seed);
}

static void run(struct world *w, uint32_t steps, uint32_t restart_every)
{
    start_again(w, false);
    for (uint32_t i = 0; i < steps; i++) {
        tn_rc rc = one_step(w);
        CHECK(rc == TN_OK || rc == TN_IO || rc == TN_FULL);
        if (rc == TN_IO || random_below(&w->random, restart_every) == 0) {
            start_again(w, w->disk.off || random_below(&w->random, 2) == 0);
        }
    }
}

static void end_run(struct world *w)
{
    uint32_t count;
    if (drain(w) == TN_IO) {
        start_again(w, true);
    }
    sim_disk_reboot(&w->disk, SIM_SEED_NOTHING);
    w->spec.floor = 0;
    tn_rc rc = open_journal(w);
    CHECK_OK(rc, err);
    const char *problem = look_at(w, &count);
    if (problem) {
        fail(w, problem);
    }
    CHECK(count == model.count || model.entries[count].place >= model.durable);
    sim_disk_deinit(&w->disk);
}

/* ---- cuts ---- */

static const char *found_problem; /* by a watcher */
static uint64_t cuts;

/* A second cut may come while the journal is opened. */
static void look_behind_cut(struct world *w, const struct sim_disk *disk, uint64_t seed)
{
    uint32_t count;
    sim_disk_clone(&w->disk, disk);
    world_init(w, seed);
    sim_disk_reboot(&w->disk, seed);
    if (random_below(&w->random, 4) == 0) {
        sim_disk_cut_at(&w->disk, 1 + random_below(&w->random, 24));
    }
    tn_rc rc = open_journal(w);
    if (w->disk.off) {
        sim_disk_reboot(&w->disk, seed + 1);
        rc = open_journal(w);
    }
    const char *problem = rc ? err.text : look_at(w, &count);
    if (problem && !found_problem) {
        static char text[TN_ERR_TEXT_SIZE];
        (void)snprintf(text, sizeof text, "%s", problem);
        found_problem = text;
    }
    sim_disk_deinit(&w->disk);
    cuts++;
}

static void at_each_change(void *user, struct sim_disk *disk)
{
    uint64_t *random = user;
    if (!found_problem) {
        struct tn_err before = err; /* of the call that is interrupted here */
        look_behind_cut(&worlds[1], disk, SIM_SEED_NOTHING);
        look_behind_cut(&worlds[1], disk, SIM_SEED_ALL);
        for (int i = 0; i < 4; i++) {
            look_behind_cut(&worlds[1], disk, random_next(random));
        }
        err = before;
    }
}

/* Before each call that changes the disk, of processes that are killed and cut off, too. */
static void what_was_durable_survives_a_cut_at_any_call(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = seconds_now() + (double)given_number("CUT_SECONDS", 2) / 8;
    struct world *w = &worlds[0];
    do {
        uint64_t random = seed;
        begin_run(w, seed);
        w->disk.model = seed % 2 ? SIM_STRICT : SIM_ORDERED;
        found_problem = NULL;
        sim_disk_watch(&w->disk, at_each_change, &random);
        run(w, 150, 40);
        sim_disk_watch(&w->disk, NULL, NULL);
        if (found_problem) {
            fail(w, found_problem);
        }
        end_run(w);
        seed++;
    } while (seconds_now() < until);
    (void)printf("%" PRIu64 " cuts\n", cuts);
}

/* A run of many processes, each of which ends by a cut, a kill or a failure. */
static void processes_go_on_where_others_ended(void)
{
    uint64_t seed = given_number("SEED", 1) + 1000;
    double until = seconds_now() + (double)given_number("CUT_SECONDS", 2) / 8;
    struct world *w = &worlds[0];
    do {
        begin_run(w, seed);
        start_again(w, false);
        for (int i = 0; i < 20; i++) {
            uint64_t call = w->disk.calls + 1 + random_below(&w->random, 60);
            uint32_t die = random_below(&w->random, 4);
            if (die == 0) {
                sim_disk_cut_at(&w->disk, call);
            } else if (die < 3) {
                sim_disk_fail_call(&w->disk, call, die == 1 ? TN_IO : TN_FULL);
            }
            run(w, 60, 50);
        }
        end_run(w);
        seed++;
    } while (seconds_now() < until);
}

/* ---- failures ---- */

/* Each call of a run fails, also after it has done its work. */
static void every_call_may_fail(void)
{
    uint64_t seed = given_number("SEED", 1);
    struct world *w = &worlds[0];
    begin_run(w, seed);
    run(w, 120, UINT32_MAX);
    uint64_t calls = w->disk.calls;
    end_run(w);
    CHECK(calls > 50);
    for (uint64_t call = 1; call <= calls; call++) {
        for (uint32_t i = 0; i < 4; i++) {
            begin_run(w, seed);
            start_again(w, false);
            uint64_t opened = w->disk.calls;
            if (call <= opened) { /* of open: a process of its own fails */
                w->disk.fail_call = w->disk.calls + call;
                w->disk.fail_rc = i % 2 ? TN_IO : TN_FULL;
                start_again(w, i < 2);
            } else if (i < 2) {
                sim_disk_fail_call(&w->disk, call, i % 2 ? TN_IO : TN_FULL);
            } else {
                sim_disk_fail_call_late(&w->disk, call, i % 2 ? TN_IO : TN_FULL);
            }
            run(w, 120, UINT32_MAX);
            end_run(w);
        }
    }
}

/* It says FULL, keeps the block, opens on the full disk, and goes on once there is room. */
static void a_full_disk_is_waited_for(void)
{
    struct world *w = &worlds[0];
    uint32_t wait_ms;
    begin_run(w, given_number("SEED", 1));
    run(w, 30, UINT32_MAX);
    tn_rc rc = drain(w);
    CHECK_OK(rc, err);
    uint64_t durable = model.durable;
    sim_disk_capacity(&w->disk, sim_disk_used(&w->disk) + 30);
    rc = append(w);
    CHECK_OK(rc, err);
    rc = tn_journal_turn(w->journal, true, &wait_ms, &err);
    CHECK_OK(rc, err);
    (void)tn_exec_turn(&w->exec.exec, false);
    rc = tn_journal_turn(w->journal, false, &wait_ms, &err);
    CHECK(rc == TN_FULL);
    CHECK(wait_ms > 500 && wait_ms <= 1000);
    CHECK(tn_journal_durable(w->journal) == durable);
    rc = append(w); /* the other block takes it */
    CHECK_OK(rc, err);
    start_again(w, true);
    rc = tn_journal_turn(w->journal, false, &wait_ms, &err);
    CHECK(rc == TN_FULL);
    sim_disk_capacity(&w->disk, UINT64_MAX);
    rc = append(w);
    CHECK_OK(rc, err);
    sim_clock_advance_ms(&w->clock, 1000);
    rc = tn_journal_turn(w->journal, false, &wait_ms, &err); /* of the try before */
    CHECK(rc == TN_FULL);
    (void)tn_exec_turn(&w->exec.exec, false);
    rc = tn_journal_turn(w->journal, false, &wait_ms, &err);
    CHECK_OK(rc, err);
    learn_durable(w);
    end_run(w);
}

/* ---- mutations ---- */

/* The run of a seed without sync number `sync`: whether a cut shows it. */
static bool misses(uint64_t seed, uint64_t sync, uint64_t *syncs, const char **path, bool *named)
{
    static char text[128];
    struct world *w = &worlds[0];
    uint64_t random = seed ^ 77;
    begin_run(w, seed);
    found_problem = NULL;
    start_again(w, false);
    w->disk.syncs = 0;
    sim_disk_ignore_sync(&w->disk, sync);
    sim_disk_watch(&w->disk, sync > 0 ? at_each_change : NULL, &random);
    for (int i = 0; i < 100; i++) {
        tn_rc rc = one_step(w);
        CHECK_OK(rc, err);
    }
    tn_rc rc = drain(w);
    CHECK_OK(rc, err);
    if (sync > 0) {
        at_each_change(&random, &w->disk);
    }
    *syncs = w->disk.syncs;
    if (sync > 0) {
        uint64_t open_syncs = 2;
        const char *before = sim_disk_sync_path(&w->disk, sync + open_syncs - 1);
        const char *behind = sim_disk_sync_path(&w->disk, sync + open_syncs + 1);
        bool covered = behind && strcmp(behind, ".tarn/journal/") == 0;
        *named = before && strcmp(before, ".tarn/journal/new") == 0 && !covered;
        before = sim_disk_sync_path(&w->disk, sync + open_syncs);
        (void)snprintf(text, sizeof text, "%s", before ? before : "");
        *path = text;
    }
    sim_disk_deinit(&w->disk);
    return found_problem != NULL;
}

/* All of what is appended, and of a file's name, where names that are removed don't sync the folder
 * before anything is told; that of names removed only where a hole shows. */
static void a_sync_that_is_left_out_is_missed(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = seconds_now() + (double)given_number("CUT_SECONDS", 2) / 8;
    uint64_t holes = 0;
    uint64_t count = 0;
    do {
        uint64_t syncs;
        const char *path = "";
        bool named;
        (void)misses(seed, 0, &syncs, &path, &named);
        CHECK(syncs > 5);
        for (uint64_t sync = 1; sync <= syncs; sync++) {
            uint64_t ignored;
            bool missed = misses(seed, sync, &ignored, &path, &named);
            bool of_folder = path[0] != 0 && path[strlen(path) - 1] == '/';
            if (!missed && (!of_folder || named)) {
                FAIL("nobody misses sync %" PRIu64 " of %s", sync, path);
            }
            holes += missed && of_folder && !named;
            count++;
        }
        seed++;
    } while (seconds_now() < until || (holes == 0 && seconds_now() < until + 60));
    CHECK(holes > 0);
    (void)printf("%" PRIu64 " syncs left out\n", count);
}

/* ---- damage ---- */

enum { FILES_MAX = 16 };

struct names {
    char paths[FILES_MAX][64];
    uint32_t count;
};

static tn_rc add_name(void *user, const char *name, bool is_dir, struct tn_err *out)
{
    struct names *names = user;
    (void)out;
    CHECK(!is_dir && names->count < FILES_MAX);
    if (strcmp(name, "lock") != 0) {
        (void)snprintf(names->paths[names->count++], 64, ".tarn/journal/%.30s", name);
    }
    return TN_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void list_files(struct sim_disk *disk, struct names *names)
{
    names->count = 0;
    tn_rc rc = disk->io.vtable->list(&disk->io, ".tarn/journal/", add_name, names, &err);
    CHECK_OK(rc, err);
    qsort(names->paths, names->count, sizeof names->paths[0], by_name);
}

static size_t read_file(struct sim_disk *disk, const char *path, unsigned char *data, size_t max)
{
    int file;
    uint64_t size;
    size_t got;
    tn_rc rc = disk->io.vtable->open(&disk->io, path, &file, &size, &err);
    CHECK_OK(rc, err);
    CHECK(size <= max);
    rc = disk->io.vtable->read(&disk->io, file, 0, data, max, &got, &err);
    CHECK_OK(rc, err);
    disk->io.vtable->close(&disk->io, file);
    return got;
}

static void write_file(struct sim_disk *disk, const char *path, struct tn_bytes bytes)
{
    tn_rc rc = disk->io.vtable->unlink(&disk->io, path, &err);
    CHECK_OK(rc, err);
    rc = tn_io_write_new(&disk->io, path, bytes, &err);
    CHECK_OK(rc, err);
}

/* Files of two processes, nothing trimmed; returns the place of the last block. */
static uint64_t make_files(struct world *w, uint64_t seed)
{
    begin_run(w, seed);
    uint64_t last = 0;
    start_again(w, false);
    for (int i = 0; i < 60; i++) {
        tn_rc rc = append(w);
        CHECK_OK(rc, err);
        if (i % 3 == 0) {
            last = model.durable;
            rc = drain(w);
            CHECK_OK(rc, err);
        }
        if (i == 30) {
            start_again(w, false);
        }
    }
    last = model.durable;
    tn_rc rc = drain(w);
    CHECK_OK(rc, err);
    CHECK(last < model.durable);
    return last;
}

/* CORRUPT, or all but the last block, of which nobody can tell what it was. */
static bool tells_damage(struct world *w, uint64_t last)
{
    uint32_t count = 0;
    tn_rc rc = open_journal(w);
    if (rc) {
        CHECK(rc == TN_CORRUPT);
        CHECK(strstr(err.text, "byte ") != NULL);
        return true;
    }
    model.durable = last;
    const char *problem = look_at(w, &count);
    if (problem) {
        CHECK(problem == err.text);
        CHECK(err.code == TN_CORRUPT);
        CHECK(strstr(err.text, ".tarn/journal/0") != NULL);
        CHECK(strstr(err.text, "byte ") != NULL);
    }
    return problem != NULL || count < model.count;
}

static void a_damaged_byte_is_told_or_costs_the_last_block(void)
{
    static unsigned char bytes[8192];
    static struct names names;
    uint64_t seed = given_number("SEED", 1);
    uint64_t random = seed;
    uint64_t last = make_files(&worlds[0], seed);
    uint64_t told = 0;
    uint64_t all = 0;
    list_files(&worlds[0].disk, &names);
    CHECK(names.count > 4);
    for (uint32_t i = 0; i < names.count; i++) {
        size_t size = read_file(&worlds[0].disk, names.paths[i], bytes, sizeof bytes);
        for (size_t at = 0; at < size; at++) {
            struct world *w = &worlds[1];
            unsigned char flip = (unsigned char)(1 + random_below(&random, 255));
            sim_disk_clone(&w->disk, &worlds[0].disk);
            sim_disk_kill(&w->disk);
            world_init(w, seed);
            bytes[at] ^= flip;
            write_file(&w->disk, names.paths[i], (struct tn_bytes){bytes, size});
            bytes[at] ^= flip;
            told += tells_damage(w, last);
            sim_disk_deinit(&w->disk);
            all++;
        }
    }
    CHECK(told > all * 3 / 4); /* the rest is what the file behind begins with, too */
    sim_disk_deinit(&worlds[0].disk);
}

/* A file that is gone or shorter, wherever; of the last one what is left counts. */
static void a_file_cut_short_is_told_or_costs_the_last_block(void)
{
    static unsigned char bytes[8192];
    static struct names names;
    uint64_t seed = given_number("SEED", 1);
    uint64_t last = make_files(&worlds[0], seed);
    list_files(&worlds[0].disk, &names);
    for (uint32_t i = 0; i < names.count; i++) {
        size_t size = read_file(&worlds[0].disk, names.paths[i], bytes, sizeof bytes);
        for (size_t left = 0; left < size; left += 1 + left % 7) {
            struct world *w = &worlds[1];
            sim_disk_clone(&w->disk, &worlds[0].disk);
            sim_disk_kill(&w->disk);
            world_init(w, seed);
            write_file(&w->disk, names.paths[i], (struct tn_bytes){bytes, left});
            /* Of several blocks behind each other, the later ones are lost as if never written. */
            (void)tells_damage(w, i + 1 == names.count ? 0 : last);
            sim_disk_deinit(&w->disk);
        }
    }
    sim_disk_deinit(&worlds[0].disk);
}

/* ---- bounds ---- */

static tn_rc append_of(struct world *w, const char *sender, size_t size, uint64_t *place)
{
    static unsigned char data[4096];
    CHECK(size <= sizeof data);
    struct tn_journal_part part = {sender ? TN_JOURNAL_MEMO : TN_JOURNAL_ROWS,
                                   tn_bytes_of(sender ? sender : "db.t"),
                                   {data, size}};
    return tn_journal_append(w->journal, &part, 1, place, &err);
}

static void sync_now(struct world *w)
{
    uint32_t wait_ms;
    tn_rc rc = tn_journal_turn(w->journal, true, &wait_ms, &err);
    CHECK_OK(rc, err);
    while (tn_exec_turn(&w->exec.exec, false) > 0) {
    }
}

static void appends_are_synced_by_time_and_by_size(void)
{
    struct world *w = &worlds[0];
    uint64_t place;
    uint32_t wait_ms;
    begin_run(w, 1);
    start_again(w, false);
    tn_rc rc = tn_journal_turn(w->journal, false, &wait_ms, &err);
    CHECK_OK(rc, err);
    CHECK(wait_ms == UINT32_MAX);
    rc = append_of(w, NULL, 10, &place);
    CHECK_OK(rc, err);
    rc = tn_journal_turn(w->journal, false, &wait_ms, &err);
    CHECK_OK(rc, err);
    CHECK(wait_ms > 80 && wait_ms <= 100 && w->exec.exec.under_way == 0);
    sim_clock_advance_ms(&w->clock, 100);
    rc = tn_journal_turn(w->journal, false, &wait_ms, &err);
    CHECK_OK(rc, err);
    CHECK(w->exec.exec.under_way == 1 && tn_journal_durable(w->journal) == place);
    uint64_t second;
    rc = append_of(w, NULL, 400, &second); /* into the other block, and enough at once */
    CHECK_OK(rc, err);
    rc = tn_journal_turn(w->journal, true, &wait_ms, &err);
    CHECK_OK(rc, err);
    CHECK(w->exec.exec.under_way == 1 && wait_ms == UINT32_MAX);
    uint64_t third;
    rc = append_of(w, NULL, 400, &third);
    CHECK(rc == TN_AGAIN && !tn_journal_full(w->journal));
    CHECK(tn_exec_turn(&w->exec.exec, false) == 1);
    CHECK(tn_journal_durable(w->journal) == second);
    rc = append_of(w, NULL, 400, &third); /* a full block goes by itself */
    CHECK_OK(rc, err);
    CHECK(w->exec.exec.under_way == 1 && third == second + 1);
    CHECK(tn_exec_turn(&w->exec.exec, false) == 1);
    CHECK(tn_journal_durable(w->journal) == third);
    rc = append_of(w, NULL, BLOCK_SIZE, &third);
    CHECK(rc == TN_INVALID);
    sim_disk_deinit(&w->disk);
}

static void what_disk_it_may_have_bounds_it(void)
{
    struct world *w = &worlds[0];
    uint64_t place = 0;
    begin_run(w, 1);
    start_again(w, false);
    for (int i = 0; !tn_journal_full(w->journal); i++) {
        CHECK(i < 2000);
        tn_rc rc = append_of(w, NULL, 100, &place);
        CHECK(rc == TN_OK || rc == TN_AGAIN);
        if (rc == TN_AGAIN) {
            sync_now(w);
        }
        CHECK(tn_journal_size(w->journal) + strlen(w->spec.who) == sim_disk_used(&w->disk));
        CHECK(tn_journal_size(w->journal) <= w->spec.size_max);
    }
    CHECK(tn_journal_durable(w->journal) == place + 1);
    tn_journal_trim(w->journal, place + 1);
    CHECK(tn_exec_turn(&w->exec.exec, false) == 1);
    CHECK(!tn_journal_full(w->journal));
    CHECK(tn_journal_size(w->journal) + strlen(w->spec.who) == sim_disk_used(&w->disk));
    CHECK(tn_journal_size(w->journal) < w->spec.size_max / 2);
    CHECK(tn_journal_first(w->journal) > 1);
    uint64_t next;
    struct look look = {0};
    tn_rc rc = tn_journal_read(w->journal, tn_journal_first(w->journal) - 1, &next, look_at_entry,
                               &look, &w->arena, &err);
    CHECK(rc == TN_ABSENT);
    rc = append_of(w, NULL, 100, &place);
    CHECK_OK(rc, err);
    sim_disk_deinit(&w->disk);
}

/* Also over restarts, and when fewer are allowed then. */
static void the_sender_that_is_longest_unheard_of_goes(void)
{
    struct world *w = &worlds[0];
    static const char *const senders[] = {"a", "b", "c", "d", "a", "e"};
    struct tn_bytes memo;
    uint64_t place;
    begin_run(w, 1);
    start_again(w, false);
    for (uint32_t i = 0; i < COUNT(senders); i++) {
        tn_rc rc = append_of(w, senders[i], i, &place);
        CHECK_OK(rc, err);
    }
    for (uint32_t max = SENDERS; max >= 2; max -= 2) {
        CHECK(tn_journal_memo(w->journal, tn_bytes_of("b"), &memo, &place) == TN_ABSENT);
        tn_rc rc = tn_journal_memo(w->journal, tn_bytes_of("a"), &memo, &place);
        CHECK(rc == TN_OK && memo.size == 4 && place == 5);
        rc = tn_journal_memo(w->journal, tn_bytes_of("c"), &memo, &place);
        CHECK(rc == (max == SENDERS ? TN_OK : TN_ABSENT));
        sync_now(w);
        sim_disk_kill(&w->disk);
        w->spec.sender_max = 2;
        rc = open_journal(w);
        CHECK_OK(rc, err);
    }
    tn_rc rc = append_of(w, "f", 200, &place);
    CHECK(rc == TN_INVALID);
    rc = append_of(w, "f", 199, &place); /* all that they may have together */
    CHECK_OK(rc, err);
    CHECK(tn_journal_memo(w->journal, tn_bytes_of("a"), &memo, &place) == TN_ABSENT);
    rc = tn_journal_memo(w->journal, tn_bytes_of("f"), &memo, &place);
    CHECK(rc == TN_OK && memo.size == 199);
    struct tn_journal_part part = {TN_JOURNAL_MEMO, tn_bytes_of("f"), memo}; /* it moves */
    rc = tn_journal_append(w->journal, &part, 1, &place, &err);
    CHECK_OK(rc, err);
    sim_disk_deinit(&w->disk);
}

static void any_number_of_clients_makes_no_broker_forgotten(void)
{
    static const char *const senders[] = {"mqtt:1", "http/1", "http/2", "http/3", "http/4", "x"};
    static const bool kept[] = {true, false, false, true, true, true};
    struct world *w = &worlds[0];
    struct tn_bytes memo;
    uint64_t place;
    begin_run(w, 1);
    w->spec.sender_max = 4;
    start_again(w, false);
    for (uint32_t i = 0; i < COUNT(senders); i++) {
        tn_rc rc = append_of(w, senders[i], 8, &place);
        CHECK_OK(rc, err);
        if (i == 4) { /* now there is none of its kind: the first goes, which is heard of again */
            rc = append_of(w, senders[0], 8, &place);
            CHECK_OK(rc, err);
        }
    }
    for (uint32_t i = 0; i < COUNT(senders); i++) {
        tn_rc rc = tn_journal_memo(w->journal, tn_bytes_of(senders[i]), &memo, &place);
        CHECK(rc == (kept[i] ? TN_OK : TN_ABSENT));
    }
    sim_disk_deinit(&w->disk);
}

static tn_rc stop_at_serial(void *user, uint64_t place, const struct tn_journal_part *parts,
                            uint32_t count, struct tn_err *out)
{
    struct look *look = user;
    if (model.serial == tn_load_u32(parts[0].data.data)) {
        model.serial = UINT32_MAX;
        return TN_AGAIN;
    }
    return look_at_entry(look, place, parts, count, out);
}

static void a_reader_may_stop_anywhere_and_go_on(void)
{
    struct world *w = &worlds[0];
    (void)make_files(w, given_number("SEED", 1));
    for (uint32_t i = 0; i < model.count; i++) {
        struct look look = {0};
        uint64_t next = 0;
        model.serial = i;
        tn_rc rc = tn_journal_read(w->journal, tn_journal_first(w->journal), &next, stop_at_serial,
                                   &look, &w->arena, &err);
        CHECK(rc == TN_AGAIN && next == model.entries[i].place && look.at == i);
        rc = tn_journal_read(w->journal, next, &next, stop_at_serial, &look, &w->arena, &err);
        CHECK_OK(rc, err);
        CHECK(look.at == model.count && next == tn_journal_durable(w->journal));
    }
    sim_disk_deinit(&w->disk);
}

/* A block of before is read whatever blocks are now; not where the arena has no room for it. */
static void a_larger_block_of_before_is_read(void)
{
    struct world *w = &worlds[0];
    (void)make_files(w, given_number("SEED", 1));
    uint32_t count;
    w->spec.block_size = 64;
    sim_disk_kill(&w->disk);
    tn_rc rc = open_journal(w);
    CHECK(rc == TN_AGAIN);
    w->spec.block_size = BLOCK_SIZE;
    rc = open_journal(w);
    CHECK_OK(rc, err);
    sim_disk_kill(&w->disk);
    w->spec.block_size = 500;
    void *const contexts[TN_LANE_COUNT] = {NULL, NULL};
    tn_arena_init(&w->arena, w->memory, sizeof w->memory);
    tn_exec_inline_open(&w->exec, contexts);
    rc = tn_journal_open(&w->journal, &w->spec, &w->arena, &err);
    CHECK_OK(rc, err);
    const char *problem = look_at(w, &count);
    CHECK(!problem && count == model.count);
    sim_disk_deinit(&w->disk);
}

static void a_second_process_is_kept_out(void)
{
    struct world *w = &worlds[0];
    struct tn_journal *second = NULL;
    static unsigned char memory[ARENA_SIZE];
    struct tn_arena arena;
    begin_run(w, 1);
    start_again(w, false);
    tn_arena_init(&arena, memory, sizeof memory);
    tn_rc rc = tn_journal_open(&second, &w->spec, &arena, &err);
    CHECK(rc == TN_EXISTS && !second && arena.used == 0);
    CHECK(strstr(err.text, "a test") != NULL);
    tn_journal_close(w->journal);
    rc = tn_journal_open(&second, &w->spec, &arena, &err);
    CHECK_OK(rc, err);
    tn_journal_close(second);
    sim_disk_deinit(&w->disk);
}

/* Whichever call of the first open fails: what the next process is told lasts. */
static void an_identity_that_was_told_stays(void)
{
    struct world *w = &worlds[0];
    bool opened = false;
    for (uint64_t call = 1; !opened; call++) {
        char identity[TN_JOURNAL_IDENTITY_SIZE];
        begin_run(w, 1);
        sim_disk_fail_call(&w->disk, call, TN_IO);
        opened = open_journal(w) == TN_OK;
        sim_disk_kill(&w->disk);
        tn_rc rc = open_journal(w);
        CHECK_OK(rc, err);
        (void)snprintf(identity, sizeof identity, "%s", tn_journal_identity(w->journal));
        sim_disk_reboot(&w->disk, SIM_SEED_NOTHING);
        rc = open_journal(w);
        CHECK_OK(rc, err);
        CHECK(strcmp(identity, tn_journal_identity(w->journal)) == 0);
        sim_disk_deinit(&w->disk);
    }
}

/* More than there is, too; and nothing of what comes later. */
static void all_may_be_trimmed(void)
{
    struct world *w = &worlds[0];
    begin_run(w, given_number("SEED", 1));
    run(w, 60, UINT32_MAX);
    tn_rc rc = drain(w); /* else there may be no room */
    CHECK_OK(rc, err);
    rc = append(w);
    CHECK_OK(rc, err);
    tn_journal_trim(w->journal, UINT64_MAX);
    model.trimmed = tn_journal_next(w->journal);
    rc = drain(w);
    CHECK_OK(rc, err);
    CHECK(w->exec.exec.under_way == 0);
    for (int i = 0; i < 60; i++) {
        rc = append(w);
        CHECK_OK(rc, err);
        rc = drain(w);
        CHECK_OK(rc, err);
    }
    end_run(w);
}

/* A sender's data that looks like a block of another journal, in a block that is torn. */
static void data_can_not_pass_for_a_block(void)
{
    static unsigned char bytes[8192];
    static struct names names;
    static const char other[TN_JOURNAL_IDENTITY_SIZE] = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
    struct world *w = &worlds[0];
    unsigned char forged[TN_JOURNAL_BLOCK_HEAD_SIZE];
    const struct tn_journal_block_head block = {
        /* nothing that lz4 shortens */
        .after = 0x0123456789abcdef, .first = 0x0213243546576879, .count = 0x123456,
        .raw_size = 0xf1e2d3,        .stored_size = 0xc1b2a3,     .crc = 0x55667788};
    struct tn_journal_part part = {TN_JOURNAL_ROWS, {0}, {forged, sizeof forged}};
    uint64_t place;
    uint32_t count;
    (void)make_files(w, given_number("SEED", 1));
    for (int with_own = 0; with_own < 2; with_own++) {
        const char *identity = with_own ? tn_journal_identity(w->journal) : other;
        tn_journal_block_head_encode(&block, identity, forged);
        tn_rc rc = tn_journal_append(w->journal, &part, 1, &place, &err);
        CHECK_OK(rc, err);
        sync_now(w);
        list_files(&w->disk, &names);
        const char *path = names.paths[names.count - 1];
        size_t size = read_file(&w->disk, path, bytes, sizeof bytes);
        bytes[size - sizeof forged - 1] ^= 1;
        write_file(&w->disk, path, (struct tn_bytes){bytes, size});
        sim_disk_kill(&w->disk);
        rc = open_journal(w);
        CHECK(rc == (with_own ? TN_CORRUPT : TN_OK));
        CHECK(with_own || !look_at(w, &count));
    }
    sim_disk_deinit(&w->disk);
}

static void a_spec_that_can_not_work_is_refused(void)
{
    struct world *w = &worlds[0];
    begin_run(w, 1);
    w->spec.size_max = w->spec.file_size + 3 * BLOCK_SIZE;
    CHECK(open_journal(w) == TN_INVALID);
    world_init(w, 1);
    w->spec.block_size = 0;
    CHECK(open_journal(w) == TN_INVALID);
    world_init(w, 1);
    w->spec.floor = UINT64_MAX;
    CHECK(open_journal(w) == TN_INVALID);
    sim_disk_deinit(&w->disk);
}

/* ---- real files ---- */

static uint64_t mallocs;

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern void *__libc_malloc(size_t size);
void *malloc(size_t size)
{
    mallocs++;
    return __libc_malloc(size);
}
#endif

/* On the system's files, with threads: no allocation, and what a row of 90 bytes costs. */
static void an_append_takes_no_memory(void)
{
    static unsigned char memory[1 << 20];
    static _Alignas(max_align_t) unsigned char exec_memory[TN_EXEC_THREADS_SIZE];
    static unsigned char row[90];
    void *const contexts[TN_LANE_COUNT] = {NULL, NULL};
    struct tn_io_posix posix;
    struct tn_arena arena;
    struct tn_journal *journal;
    struct tn_exec *exec;
    char root[TEMP_SIZE];
    temp_make(root);
    tn_rc rc = tn_io_posix_open(&posix, root, &err);
    CHECK_OK(rc, err);
    rc = tn_exec_threads_open(exec_memory, contexts, &exec, &err);
    CHECK_OK(rc, err);
    struct tn_journal_spec spec = {
        .io = &posix.io,
        .clock = &tn_clock_system,
        .exec = exec,
        .block_size = 64 << 10,
        .file_size = 1 << 20,
        .size_max = 8 << 20,
        .sync_ms = 1000,
        .sync_bytes = 48 << 10,
        .sender_max = 100,
        .memo_bytes = 10000,
    };
    tn_arena_init(&arena, memory, tn_journal_memory(&spec));
    rc = tn_journal_open(&journal, &spec, &arena, &err);
    CHECK_OK(rc, err);
    uint64_t before = mallocs;
    double spent = 0;
    uint32_t count = 200000;
    struct tn_journal_part part = {TN_JOURNAL_ROWS, tn_bytes_of("db.t"), {row, sizeof row}};
    for (uint32_t i = 0; i < count;) {
        uint64_t place;
        uint32_t wait_ms;
        double begin = seconds_now();
        for (rc = TN_OK; rc == TN_OK && i < count; i += rc == TN_OK) {
            tn_store_u32(row, i);
            rc = tn_journal_append(journal, &part, 1, &place, &err);
        }
        spent += seconds_now() - begin;
        CHECK(rc == TN_OK || rc == TN_AGAIN);
        rc = tn_journal_turn(journal, true, &wait_ms, &err);
        CHECK_OK(rc, err);
        (void)tn_exec_turn(exec, true);
        tn_journal_trim(journal, tn_journal_durable(journal));
    }
    while (exec->under_way > 0) {
        (void)tn_exec_turn(exec, true);
    }
    CHECK(mallocs == before);
    (void)printf("%.0f ns an append of 90 bytes\n", spent * 1e9 / count);
    tn_journal_close(journal);
    exec->vtable->close(exec);
    tn_io_posix_close(&posix);
    temp_remove(root);
}

static const struct test tests[] = {
    TEST(appends_are_synced_by_time_and_by_size),
    TEST(what_disk_it_may_have_bounds_it),
    TEST(the_sender_that_is_longest_unheard_of_goes),
    TEST(any_number_of_clients_makes_no_broker_forgotten),
    TEST(a_reader_may_stop_anywhere_and_go_on),
    TEST(a_larger_block_of_before_is_read),
    TEST(a_second_process_is_kept_out),
    TEST(an_identity_that_was_told_stays),
    TEST(all_may_be_trimmed),
    TEST(data_can_not_pass_for_a_block),
    TEST(a_spec_that_can_not_work_is_refused),
    TEST(a_full_disk_is_waited_for),
    TEST(every_call_may_fail),
    TEST(a_damaged_byte_is_told_or_costs_the_last_block),
    TEST(a_file_cut_short_is_told_or_costs_the_last_block),
    TEST(what_was_durable_survives_a_cut_at_any_call),
    TEST(processes_go_on_where_others_ended),
    TEST(a_sync_that_is_left_out_is_missed),
    TEST(an_append_takes_no_memory),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
