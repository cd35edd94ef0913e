/* The journal: damage is told, its bounds hold, and it runs on real files without taking memory. */
#include "base/exec.h"

#include "journal_world.h"
#include "temp.h"

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

static bool nobody_wants(void *user, struct tn_bytes name)
{
    (void)user;
    (void)name;
    return false;
}

static void check_kept(struct world *w, const char *want)
{
    struct tn_bytes memo = {0};
    uint64_t place;
    tn_rc rc = tn_journal_memo(w->journal, tn_bytes_of(TN_JOURNAL_KEPT "t"), &memo, &place);
    CHECK(want ? rc == TN_OK : rc == TN_ABSENT);
    CHECK(!want || tn_bytes_equal(memo, tn_bytes_of(want)));
}

/* What is put behind it is there once, in whichever file's head or block it is found; no sender
 * makes it go; and it goes where nobody wants it. */
static void what_is_kept_grows_and_goes_for_nobody(void)
{
    struct world *w = &worlds[0];
    char want[16] = "";
    uint64_t place;
    begin_run(w, 1);
    w->spec.sender_max = 2;
    start_again(w, false);
    for (uint32_t i = 0; i < 10; i++) {
        char letter[2] = {(char)('a' + i), 0};
        char sender[8];
        struct tn_journal_part part = {i == 0 ? TN_JOURNAL_MEMO : TN_JOURNAL_MORE,
                                       tn_bytes_of(TN_JOURNAL_KEPT "t"), tn_bytes_of(letter)};
        tn_rc rc = tn_journal_append(w->journal, &part, 1, &place, &err);
        CHECK_OK(rc, err);
        (void)snprintf(sender, sizeof sender, "s/%u", i);
        rc = append_of(w, sender, 150, &place);
        CHECK_OK(rc, err);
        want[i] = letter[0];
        check_kept(w, want);
        sync_now(w);
        if (i % 3 > 0) {
            sim_disk_kill(&w->disk);
            rc = open_journal(w);
            CHECK_OK(rc, err);
            check_kept(w, want);
        }
    }
    tn_rc rc = append_of(w, "s/1", 200, &place); /* no room beside it */
    CHECK(rc == TN_INVALID);
    sim_disk_kill(&w->disk);
    w->spec.wanted = nobody_wants;
    rc = open_journal(w);
    CHECK_OK(rc, err);
    check_kept(w, NULL);
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
    TEST(what_is_kept_grows_and_goes_for_nobody),
    TEST(a_reader_may_stop_anywhere_and_go_on),
    TEST(a_larger_block_of_before_is_read),
    TEST(a_second_process_is_kept_out),
    TEST(an_identity_that_was_told_stays),
    TEST(all_may_be_trimmed),
    TEST(data_can_not_pass_for_a_block),
    TEST(a_spec_that_can_not_work_is_refused),
    TEST(a_damaged_byte_is_told_or_costs_the_last_block),
    TEST(a_file_cut_short_is_told_or_costs_the_last_block),
    TEST(an_append_takes_no_memory),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
