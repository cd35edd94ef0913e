/* Senders with numbers, files, the intake, its journal and two tables, on a disk that loses power.
 *
 * Each message is one of a sender's, in their order, with its number as memo; its rows say whose
 * they are. After a cut a sender asks what is known of it, and goes on behind that. In the end all
 * messages of all senders are in their tables, each row once: an append table and a sum show what
 * came twice. What was said to be durable was never asked for again. A file's records go past the
 * journal: it is read where the hub says, also when a table was opened again, and never before
 * what a snapshot has; what stands there may be removed. And whenever the journal may forget
 * something, a copy of the disk that loses power just then has it in its snapshots. */
#include "daemon.h"

#include "given.h"

enum {
    SENDERS = 3,
    FILES = 2, /* one a table */
    WHOSE = SENDERS + FILES,
    FILE_RECORDS = 7, /* then it is rotated */
    BATCH_MAX = 5,    /* records */
    MESSAGES = 40,    /* of a sender */
    ROWS_MAX = 3,     /* of a message */
    OWN_SIZE = 256 << 10,
    TURNS_MAX = 40000,
};

static const char *const names[TABLES] = {"db.a", "db.s"};
static const char *const schemas[TABLES] = {
    "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"BIGINT\"}],"
    "\"options\":{\"bucket\":\"-1\"}}",
    "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"BIGINT\"}],"
    "\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":\"2\",\"merge-engine\":\"aggregation\","
    "\"fields.n.aggregate-function\":\"sum\"}}",
};

static const char *const file_names[FILES] = {"0", "1"};

static struct sim_disk base; /* with the tables, and no row */

struct sender {
    uint32_t next; /* number of the message to be sent */
    uint32_t told; /* messages that were said to be durable */
    uint64_t place[MESSAGES + 1];
    uint64_t taken[MESSAGES]; /* the place that the offer gave; 0: not known */
};

struct file {
    char text[MESSAGES * 160];
    size_t ends[MESSAGES + 1]; /* of the records before a number */
    uint32_t next;             /* number of the record to be read */
    uint32_t kept;             /* what is before it was committed once: it isn't there any more */
};

static struct file files[FILES];

struct life {
    struct tn_hub_listener listener; /* first */
    struct sim_disk *disk;
    struct sender *senders;
    uint64_t random;
    struct daemon daemon;
    struct tn_config_source sources[FILES];
    bool rewound;
    uint64_t trimmed; /* what was looked at */
};

/* ---- what is sent ---- */

static uint32_t draw(uint32_t sender, uint32_t number, uint32_t count)
{
    uint64_t random = (uint64_t)sender << 32 | number;
    return random_below(&random, count);
}

static uint32_t table_of(uint32_t sender, uint32_t number)
{
    return sender < SENDERS ? draw(sender, number, TABLES) : (sender - SENDERS) % TABLES;
}

static uint32_t rows_of(uint32_t sender, uint32_t number)
{
    return 1 + draw(sender, number ^ 0x5555, ROWS_MAX);
}

static int64_t id_of(uint32_t sender, uint32_t number, uint32_t row)
{
    return ((int64_t)sender * 1000 + number) * 10 + row;
}

static size_t make_message(uint32_t sender, uint32_t number, char text[512])
{
    size_t size = 0;
    for (uint32_t row = 0; row < rows_of(sender, number); row++) {
        size += (size_t)snprintf(text + size, 512 - size, "{\"id\":%" PRId64 ",\"n\":1}\n",
                                 id_of(sender, number, row));
    }
    return size;
}

/* Records of several rows, so that a part of one may be in. */
static void compose(uint32_t f)
{
    struct file *file = &files[f];
    size_t size = 0;
    for (uint32_t n = 0; n < MESSAGES; n++) {
        size += (size_t)sprintf(file->text + size, "{\"type\":\"INSERT\",\"data\":[");
        for (uint32_t row = 0; row < rows_of(SENDERS + f, n); row++) {
            size += (size_t)sprintf(file->text + size, "%s{\"id\":%" PRId64 ",\"n\":1}",
                                    row > 0 ? "," : "", id_of(SENDERS + f, n, row));
        }
        size += (size_t)sprintf(file->text + size, "]}\n");
        file->ends[n + 1] = size;
    }
    CHECK(size < sizeof file->text);
}

static uint32_t first_of(uint32_t number)
{
    return number / FILE_RECORDS * FILE_RECORDS;
}

/* As a file's that is read up to the record: what was read to its end is left when more comes. */
static struct tn_file_place place_of(uint32_t f, uint32_t number, uint32_t begun_at)
{
    struct tn_file_place place = {.line = number - first_of(begun_at)};
    const size_t *ends = files[f].ends;
    place.passed = ends[first_of(begun_at)];
    place.offset = ends[number] - place.passed;
    (void)snprintf(place.identity, sizeof place.identity, "1-%u-%zu-0", begun_at / FILE_RECORDS,
                   (size_t)place.offset);
    return place;
}

/* ---- a process ---- */

static void room(struct tn_hub_listener *listener)
{
    (void)listener;
}

static void durable(struct tn_hub_listener *listener, uint64_t place)
{
    struct life *life = (struct life *)(void *)listener;
    for (uint32_t s = 0; s < SENDERS; s++) {
        struct sender *sender = &life->senders[s];
        while (sender->told < sender->next && sender->place[sender->told] <= place) {
            sender->told++;
        }
    }
}

static void ask(struct life *life, uint32_t s)
{
    char name[16];
    struct tn_bytes memo;
    uint64_t place;
    struct sender *sender = &life->senders[s];
    (void)snprintf(name, sizeof name, "sender %u", s);
    tn_rc rc = tn_hub_sender(&life->daemon.intake.hub, tn_bytes_of(name), &memo, &place);
    uint32_t known = 0;
    if (rc == TN_OK) {
        CHECK(memo.size == sizeof known);
        memcpy(&known, memo.data, sizeof known);
    } else {
        CHECK(rc == TN_ABSENT);
    }
    CHECK(known >= sender->told);
    CHECK(known <= MESSAGES);
    for (uint32_t i = sender->told; i < known; i++) {
        sender->place[i] = place; /* it may not be durable yet */
    }
    sender->next = known;
}

static void send(struct life *life, uint32_t s)
{
    char name[16];
    char text[512];
    struct tn_err err;
    struct sender *sender = &life->senders[s];
    if (sender->next == MESSAGES) {
        return;
    }
    uint32_t memo = sender->next + 1;
    (void)snprintf(name, sizeof name, "sender %u", s);
    struct tn_message message = {
        .table = names[table_of(s, sender->next)],
        .input = TN_INPUT_JSON,
        .bytes = {(const unsigned char *)text, make_message(s, sender->next, text)},
        .source = "test",
        .whole = true,
        .sender = tn_bytes_of(name),
        .memo = {(const unsigned char *)&memo, sizeof memo}};
    tn_rc rc = tn_hub_offer(&life->daemon.intake.hub, &message, &err);
    if (rc == TN_OK) {
        CHECK(message.rows == rows_of(s, sender->next));
        sender->taken[sender->next] = message.place;
        sender->place[sender->next++] = message.place;
    } else {
        CHECK(rc != TN_INVALID && rc != TN_ABSENT);
    }
}

static void rewound(struct tn_hub_listener *listener)
{
    struct life *life = (struct life *)(void *)listener;
    life->rewound = true;
}

static struct tn_bytes name_of_file(uint32_t f, char name[16])
{
    (void)snprintf(name, 16, "file:%u", f);
    return tn_bytes_of(name);
}

/* What a snapshot has is never asked for again. */
static void find_file(struct life *life, uint32_t f, uint32_t *part)
{
    char name[16];
    uint32_t number = 0;
    struct tn_file_place place = {.offset = 0};
    struct file *file = &files[f];
    tn_rc rc = tn_hub_place(&life->daemon.intake.hub, name_of_file(f, name), &place);
    CHECK(rc == TN_OK || rc == TN_ABSENT);
    while (file->ends[number] < place.passed + place.offset) {
        number++;
    }
    CHECK(file->ends[number] == place.passed + place.offset);
    CHECK(number >= file->kept);
    file->next = number;
    *part = place.part;
}

static void read_file(struct life *life, uint32_t f, uint32_t part)
{
    char name[16];
    struct tn_err err;
    struct file *file = &files[f];
    uint32_t left = first_of(file->next) + FILE_RECORDS - file->next;
    uint32_t count = 1 + random_below(&life->random, BATCH_MAX);
    count = count < left ? count : left;
    count = count < MESSAGES - file->next ? count : MESSAGES - file->next;
    if (count == 0) {
        return;
    }
    struct tn_file_place from = place_of(f, file->next, file->next);
    struct tn_file_place behind = place_of(f, file->next + count, file->next);
    from.part = part;
    size_t begin = file->ends[file->next];
    struct tn_message message = {.table = names[table_of(SENDERS + f, 0)],
                                 .input = TN_INPUT_CANAL,
                                 .bytes = {(const unsigned char *)file->text + begin,
                                           file->ends[file->next + count] - begin},
                                 .source = "test",
                                 .sender = name_of_file(f, name),
                                 .split = count > 1,
                                 .from = &from,
                                 .behind = &behind};
    tn_rc rc = tn_hub_offer(&life->daemon.intake.hub, &message, &err);
    CHECK(rc != TN_INVALID && rc != TN_ABSENT);
    if (rc == TN_OK) {
        file->next += count;
    }
}

/* Who was told to go back does so before it reads on. */
static void read_files(struct life *life)
{
    uint32_t parts[FILES] = {0};
    for (uint32_t f = 0; f < FILES; f++) {
        find_file(life, f, &parts[f]);
        if (random_below(&life->random, 3) == 0) {
            read_file(life, f, parts[f]);
        }
    }
    life->rewound = false;
}

/* What a cut leaves may be removed. */
static void remove_files(struct life *life)
{
    for (uint32_t f = 0; f < life->daemon.intake.track_count; f++) {
        const struct tn_track *track = &life->daemon.intake.tracks[f];
        uint32_t which = (uint32_t)(track->source[5] - '0');
        struct file *file = &files[which];
        uint64_t at = track->committed.passed + track->committed.offset;
        while (file->kept < MESSAGES && file->ends[file->kept + 1] <= at) {
            file->kept++;
        }
    }
}

static tn_rc open_life(struct life *life, struct tn_err *err)
{
    bed_engine_start(&engine, &life->disk->io, life->random);
    for (uint32_t i = 0; i < TABLES; i++) {
        life->daemon.configs[i] = (struct tn_config_table){
            .name = names[i], .commit = {.ms = 50 + random_below(&life->random, 400), .rows = 20}};
    }
    life->daemon.config.journal =
        (struct tn_config_journal){.sync_ms = 1 + random_below(&life->random, 60),
                                   .sync_bytes = 1 + random_below(&life->random, 3000),
                                   .size_max = 8 << 20};
    for (uint32_t f = 0; f < FILES; f++) {
        life->sources[f] =
            (struct tn_config_source){.kind = TN_SOURCE_FILE,
                                      .name = file_names[f],
                                      .table = names[f % TABLES],
                                      .next = f + 1 < FILES ? &life->sources[f + 1] : NULL};
    }
    life->daemon.config.sources = life->sources;
    return daemon_open(&life->daemon, err);
}

static bool all_sent(const struct sender senders[SENDERS])
{
    bool sent = true;
    for (uint32_t s = 0; s < SENDERS; s++) {
        sent = sent && senders[s].next == MESSAGES;
    }
    for (uint32_t f = 0; f < FILES; f++) {
        sent = sent && files[f].next == MESSAGES;
    }
    return sent;
}

/* All before it is in the table's newest snapshot, and of it so many rows. */
static struct tn_keeper_place committed_place(struct sim_disk *disk, const char *name,
                                              const char *identity)
{
    struct tn_keeper_place at = {0};
    static unsigned char memory[OWN_SIZE];
    struct tn_arena own;
    struct tn_recovered found;
    struct tn_err err;
    const char *root = NULL;
    size_t size = strlen(identity);
    tn_arena_init(&own, memory, sizeof memory);
    CHECK_OK(tn_name_table_root(&own, name, &root, &err), err);
    tn_rc rc = tn_table_recover(&disk->io, &engine.clock.clock, name, root, &own, &found, &err);
    CHECK_OK(rc, err);
    for (uint32_t i = 0; i < found.properties.count; i++) {
        const struct tn_json_pair *pair = &found.properties.pairs[i];
        if (strcmp(pair->key, TN_POSITION_PROPERTY TN_KEEPER_SOURCE) == 0) {
            CHECK(strncmp(pair->value, identity, size) == 0 && pair->value[size] == ':');
            char *end;
            at.place = strtoull(pair->value + size + 1, &end, 10);
            at.items = *end == ':' ? (uint32_t)strtoul(end + 1, NULL, 10) : 0;
        }
    }
    return at;
}

/* What the journal may forget would be found after a cut that comes now. */
static void check_trimmed(struct life *life)
{
    static struct sim_disk after;
    if (life->disk->off || life->daemon.intake.trimmed == life->trimmed) {
        return;
    }
    life->trimmed = life->daemon.intake.trimmed;
    sim_disk_clone(&after, life->disk);
    sim_disk_reboot(&after, SIM_SEED_NOTHING);
    for (uint32_t t = 0; t < TABLES; t++) {
        struct tn_keeper_place committed =
            committed_place(&after, names[t], tn_journal_identity(life->daemon.intake.journal));
        for (uint32_t s = 0; s < SENDERS; s++) {
            const struct sender *sender = &life->senders[s];
            for (uint32_t i = 0; i < sender->next; i++) {
                uint64_t place = sender->taken[i];
                bool forgotten = table_of(s, i) == t && place > 0 && place < life->trimmed;
                bool in = place < committed.place ||
                          (place == committed.place && rows_of(s, i) <= committed.items);
                if (forgotten && !in) {
                    FAIL("place %" PRIu64 " of %s is to be trimmed before %" PRIu64
                         ", and only what is before %" PRIu64 " is committed",
                         place, names[t], life->trimmed, committed.place);
                }
            }
        }
    }
    sim_disk_deinit(&after);
}

/* One turn, and whatever the senders do around it. Now and then the disk seems to have little room:
 * nothing is taken then, and the journal is trimmed as far as can be. */
static tn_rc turn(struct life *life, struct tn_err *err)
{
    uint32_t wait_ms;
    if (random_below(&life->random, 20) == 0) {
        life->daemon.intake.reserve.low = !life->daemon.intake.reserve.low;
    }
    tn_rc rc = tn_intake_turn(&life->daemon.intake, &wait_ms, err);
    check_trimmed(life);
    remove_files(life);
    if (random_below(&life->random, 3) == 0) {
        sim_clock_advance_ms(&engine.clock,
                             random_below(&life->random, wait_ms < 60 ? wait_ms + 1 : 60));
    }
    return rc;
}

static tn_rc run(struct life *life, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    uint32_t turns = 0;
    while (rc == TN_OK && !life->disk->off && !tn_intake_ready(&life->daemon.intake)) {
        rc = turn(life, err);
        CHECK(turns++ < TURNS_MAX);
    }
    for (uint32_t s = 0; rc == TN_OK && s < SENDERS; s++) {
        ask(life, s);
    }
    tn_hub_listen(&life->daemon.intake.hub, &life->listener);
    while (rc == TN_OK && !life->disk->off && !all_sent(life->senders)) {
        for (uint32_t i = random_below(&life->random, 4); i > 0; i--) {
            send(life, random_below(&life->random, SENDERS));
        }
        read_files(life);
        rc = turn(life, err);
        CHECK(turns++ < TURNS_MAX);
    }
    tn_intake_stop(&life->daemon.intake);
    while (rc == TN_OK && !life->disk->off && !tn_intake_settled(&life->daemon.intake)) {
        rc = turn(life, err);
        CHECK(turns++ < TURNS_MAX);
    }
    if (rc == TN_OK && life->daemon.intake.undone) { /* another process reads it again */
        rc = tn_err_set(err, TN_CONFLICT, 0, "a table was opened again at the end");
    }
    for (uint32_t i = 0; rc == TN_OK && i < TABLES; i++) { /* shut: the journal has its rows */
        *err = life->daemon.keepers[i].trouble_text;
        rc = life->daemon.keepers[i].state == TN_KEEPER_SHUT ? life->daemon.keepers[i].trouble
                                                             : TN_OK;
    }
    return rc;
}

/* On a disk without rows. */
static void forget_all(struct sender senders[SENDERS])
{
    memset(senders, 0, SENDERS * sizeof *senders);
    for (uint32_t f = 0; f < FILES; f++) {
        files[f].next = 0;
        files[f].kept = 0;
    }
}

/* What was not durable may have been lost with the process before. */
static void forget_taken(struct sender senders[SENDERS])
{
    for (uint32_t s = 0; s < SENDERS; s++) {
        for (uint32_t i = senders[s].told; i < MESSAGES; i++) {
            senders[s].taken[i] = 0;
        }
    }
    for (uint32_t f = 0; f < FILES; f++) {
        files[f].next = files[f].kept;
    }
}

/* A process from its start to its end: a cut, or when all is committed. */
static tn_rc live(struct sim_disk *disk, struct sender senders[SENDERS], uint64_t seed,
                  struct tn_err *err)
{
    static struct life life;
    life = (struct life){.listener = {.room = room, .durable = durable, .rewound = rewound},
                         .disk = disk,
                         .senders = senders,
                         .random = seed};
    forget_taken(senders);
    tn_rc rc = open_life(&life, err);
    if (rc == TN_OK) {
        rc = run(&life, err);
    }
    daemon_close(&life.daemon);
    return rc;
}

/* ---- what is there in the end ---- */

static void count_rows(struct sim_disk *disk, const char *name, uint32_t *seen)
{
    struct tn_err err;
    const char *root = NULL;
    bed_engine_start(&engine, &disk->io, 7);
    CHECK_OK(tn_name_table_root(&engine.own, name, &root, &err), err);
    daemon_sum_rows(root, seen, id_of(WHOSE, 0, 0));
}

static void check_all(struct sim_disk *disk, uint64_t cut)
{
    for (uint32_t t = 0; t < TABLES; t++) {
        static uint32_t seen[WHOSE * 10000 + 1];
        memset(seen, 0, sizeof seen);
        count_rows(disk, names[t], seen);
        for (uint32_t s = 0; s < WHOSE; s++) {
            for (uint32_t i = 0; i < MESSAGES; i++) {
                for (uint32_t row = 0; row < ROWS_MAX; row++) {
                    uint32_t want = table_of(s, i) == t && row < rows_of(s, i);
                    uint32_t got = seen[id_of(s, i, row)];
                    if (got != want) {
                        FAIL("cut %" PRIu64 ": %s has row %u of message %u of sender %u %u times",
                             cut, names[t], row, i, s, got);
                    }
                }
            }
        }
    }
}

/* ---- tests ---- */

static void make_base(void)
{
    for (uint32_t f = 0; f < FILES; f++) {
        compose(f);
    }
    sim_disk_init(&base, DISK_SIZE);
    bed_engine_start(&engine, &base.io, 1);
    for (uint32_t t = 0; t < TABLES; t++) {
        bed_make_table(&engine, names[t], schemas[t]);
    }
    sim_disk_kill(&base);
}

/* Cuts at drawn calls, in the first life and in the second, which begins with what is there. */
static void cut_somewhere(uint64_t seed)
{
    struct sim_disk disk;
    struct tn_err err = {0};
    static struct sender senders[SENDERS];
    uint64_t random = seed;
    forget_all(senders);
    check_seed = seed;
    sim_disk_clone(&disk, &base);
    tn_rc rc = live(&disk, senders, seed, &err);
    CHECK_OK(rc, err);
    uint64_t calls = disk.calls;
    check_all(&disk, 0);
    sim_disk_deinit(&disk);
    for (int i = 0; i < 8; i++) {
        forget_all(senders);
        sim_disk_clone(&disk, &base);
        disk.model = random_below(&random, 2) ? SIM_STRICT : SIM_ORDERED;
        uint64_t cut = 1 + random_below(&random, (uint32_t)calls);
        for (int lives = 0; lives < 2; lives++) {
            sim_disk_cut_at(&disk, 1 + random_below(&random, (uint32_t)cut));
            rc = live(&disk, senders, random_next(&random), &err);
            CHECK(rc != TN_OK || disk.off || all_sent(senders));
            sim_disk_reboot(&disk,
                            random_below(&random, 4) ? random_next(&random) : SIM_SEED_NOTHING);
        }
        rc = live(&disk, senders, random_next(&random), &err);
        if (rc != TN_OK) {
            FAIL("cut %" PRIu64 ": %s", cut, err.text);
        }
        check_all(&disk, cut);
        sim_disk_deinit(&disk);
    }
}

static void rows_are_there_once_whatever_call_is_cut(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(40, 4);
    make_base();
    do {
        cut_somewhere(seed++);
    } while (seconds_now() < until);
    sim_disk_deinit(&base);
}

/* A call fails once: a table that suffers is opened again, and the others go on; only where the
 * journal suffers does it take another process. */
static void rows_are_there_once_whatever_call_fails(void)
{
    uint64_t random = given_number("SEED", 1);
    double until = given_until(40, 8);
    uint32_t ended = 0;
    make_base();
    do {
        struct sim_disk disk;
        struct tn_err err = {0};
        static struct sender senders[SENDERS];
        forget_all(senders);
        check_seed = random;
        uint64_t call = 1 + random_below(&random, 1200);
        tn_rc how = random_below(&random, 2) ? TN_FULL : TN_IO;
        sim_disk_clone(&disk, &base);
        (random_below(&random, 2) ? sim_disk_fail_call : sim_disk_fail_call_late)(&disk, call, how);
        tn_rc rc = live(&disk, senders, random_next(&random), &err);
        if (rc != TN_OK) {
            ended++;
            sim_disk_kill(&disk);
            rc = live(&disk, senders, random_next(&random), &err);
        }
        CHECK_OK(rc, err);
        disk.fail_call = 0; /* it may be that it was never made */
        check_all(&disk, call);
        sim_disk_deinit(&disk);
    } while (seconds_now() < until);
    CHECK(ended > 0 || given_number("CUT_SECONDS", 40) < 20);
    sim_disk_deinit(&base);
}

static const struct test tests[] = {
    TEST(rows_are_there_once_whatever_call_is_cut),
    TEST(rows_are_there_once_whatever_call_fails),
};

int main(int argc, char **argv)
{
    return daemon_run_tests(argc, argv, tests, COUNT(tests));
}
