/* journal_world: a journal on a disk of the simulator, and a model that knows what was appended and
 * what was called durable. For tests of this folder. */
#pragma once

#include "ingest/journal.h"

#include <inttypes.h>

#include "check.h"
#include "given.h"
#include "ingest/journal_bytes.h"
#include "random.h"
#include "sim/clock.h"
#include "sim/disk.h"

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
