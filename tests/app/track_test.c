/* A followed file on its way past the journal: what of it is in a table and in its letters when a
 * commit comes anywhere in a record, and a kill behind it; when places are committed; what is said
 * when a table is lost at the end. SEED=n runs other seeds. */
#include "intake_world.h"

#include "given.h"

#define NEVER_MS (1000 * 1000 * 1000)

enum {
    RECORDS = 12,
    ROWS_MAX = 4,
    BATCH_MAX = 4,
    FILE_RECORDS = 5, /* then it is rotated */
    LIVES_MAX = 400,
    SEEDS = 30,
    MINUTE_MS = 60 * 1000,
};

static const char table_a[] =
    "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"BIGINT\"}],"
    "\"options\":{\"bucket\":\"-1\"}}";
static const char table_b[] =
    "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"BIGINT\"}],"
    "\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":\"1\"}}";

static struct tn_config_source followed[] = {
    {.kind = TN_SOURCE_FILE, .name = "f", .table = "db.a", .next = &followed[1]},
    {.kind = TN_SOURCE_FILE, .name = "g", .table = "db.b"},
};

static struct {
    char text[RECORDS * 512];
    size_t ends[RECORDS + 1];
    uint32_t rows[RECORDS];
    bool bad[RECORDS]; /* one of its rows can't be read: all of it is a letter */
} file;

static uint64_t seed;

static uint32_t below(uint32_t count)
{
    return random_below(&seed, count);
}

/* ---- a file ---- */

static void compose(void)
{
    size_t size = 0;
    for (uint32_t n = 0; n < RECORDS; n++) {
        file.rows[n] = 1 + below(ROWS_MAX);
        file.bad[n] = below(3) == 0;
        size += (size_t)sprintf(file.text + size, "{\"type\":\"INSERT\",\"data\":[");
        for (uint32_t row = 0; row < file.rows[n]; row++) {
            bool bad = file.bad[n] && row + 1 == file.rows[n];
            size += (size_t)sprintf(file.text + size, "%s{\"id\":%u,\"n\":%s}", row > 0 ? "," : "",
                                    1000 + n * 10 + row, bad ? "\"x\"" : "1");
        }
        size += (size_t)sprintf(file.text + size, "]}\n");
        file.ends[n + 1] = size;
    }
    CHECK(size < sizeof file.text);
}

static struct tn_file_place place_of(uint32_t number, uint32_t begun_at)
{
    uint32_t first = begun_at / FILE_RECORDS * FILE_RECORDS;
    struct tn_file_place place = {.line = number - first, .passed = file.ends[first]};
    place.offset = file.ends[number] - place.passed;
    (void)snprintf(place.identity, sizeof place.identity, "1-%u-%zu-0", begun_at / FILE_RECORDS,
                   (size_t)place.offset);
    return place;
}

static bool find(struct tn_file_place *place)
{
    *place = (struct tn_file_place){.offset = 0};
    return tn_hub_place(&world.daemon.intake.hub, tn_bytes_of("file:f"), place) == TN_OK;
}

/* The number of the record that it is to be read from. */
static uint32_t find_record(uint32_t *part)
{
    struct tn_file_place place;
    uint32_t number = 0;
    (void)find(&place);
    while (file.ends[number] < place.passed + place.offset) {
        number++;
    }
    CHECK(file.ends[number] == place.passed + place.offset);
    *part = place.part;
    return number;
}

static tn_rc offer_text(const char *name, const char *table, enum tn_input input,
                        struct tn_bytes text, size_t header, const struct tn_file_place *from,
                        const struct tn_file_place *behind, struct tn_err *err)
{
    struct tn_message message = {.table = table,
                                 .input = input,
                                 .bytes = text,
                                 .header_size = header,
                                 .source = name + 5,
                                 .sender = tn_bytes_of(name),
                                 .from = from,
                                 .behind = behind};
    return tn_hub_offer(&world.daemon.intake.hub, &message, err);
}

static uint32_t offer_some(void)
{
    struct tn_err err;
    uint32_t part;
    uint32_t number = find_record(&part);
    uint32_t left = FILE_RECORDS - number % FILE_RECORDS;
    uint32_t count = 1 + below(BATCH_MAX);
    count = count < left ? count : left;
    count = count < RECORDS - number ? count : RECORDS - number;
    if (count > 0) {
        struct tn_file_place from = place_of(number, number);
        struct tn_file_place behind = place_of(number + count, number);
        struct tn_bytes text = {(const unsigned char *)file.text + file.ends[number],
                                file.ends[number + count] - file.ends[number]};
        from.part = part;
        CHECK_OK(offer_text("file:f", "db.a", TN_INPUT_CANAL, text, 0, &from, &behind, &err), err);
    }
    return number;
}

/* ---- a process ---- */

static void begin(void)
{
    sim_disk_init(&world.disk, DISK_SIZE);
    world.daemon.config.sources = followed;
    world_make_table("db.a", table_a);
    world_make_table("db.b", table_b);
}

static struct tn_track *track_of(const char *source)
{
    for (uint32_t i = 0; i < world.daemon.intake.track_count; i++) {
        if (strcmp(world.daemon.intake.tracks[i].source, source) == 0) {
            return &world.daemon.intake.tracks[i];
        }
    }
    FAIL("there is no track of %s", source);
}

static int64_t now_ms(void)
{
    return engine.clock.passed_ns / 1000000;
}

/* Without a turn of the intake, which would put what waits. */
static void commit_now(struct tn_keeper *k)
{
    uint32_t wait_ms = 0;
    k->wants_cut = true;
    do {
        (void)tn_keeper_commit(k, tn_journal_identity(world.daemon.intake.journal),
                               tn_intake_place(&world.daemon.intake, k), true, now_ms(), &wait_ms);
    } while (!k->cutting && tn_keeper_turn(k, now_ms(), &wait_ms));
    while (k->cutting) {
        CHECK(!tn_keeper_turn(k, now_ms(), &wait_ms));
        if (k->state != TN_KEEPER_LIVE) {
            FAIL("%s", k->trouble_text.text);
        }
    }
}

static void put_some(uint32_t items)
{
    struct tn_err err = {0};
    struct tn_track *track = track_of("file:f");
    if (track->size > 0) {
        tn_rc rc = tn_track_put(track, now_ms(), &items, &err);
        CHECK(rc == TN_OK || rc == TN_AGAIN);
    }
}

/* Items are put one by one, commits come anywhere, and the end does. True: all of it was put. */
static bool live(void)
{
    bool all = false;
    world_start(NEVER_MS);
    world_run(WORLD_STEP_MS);
    for (uint32_t steps = below(12); steps > 0 && !all; steps--) {
        all = track_of("file:f")->size == 0 && offer_some() == RECORDS;
        put_some(1 + below(5));
        if (below(3) == 0) {
            commit_now(&world.daemon.keepers[0]);
        }
    }
    if (all) {
        commit_now(&world.daemon.keepers[0]);
    }
    world_kill();
    return all;
}

static void check_rows(void)
{
    const char *rows = world_rows("db.a");
    for (uint32_t n = 0; n < RECORDS; n++) {
        for (uint32_t row = 0; row < ROWS_MAX; row++) {
            char text[32];
            bool there = row < file.rows[n] && !file.bad[n];
            (void)snprintf(text, sizeof text, "\"id\":%u,", 1000 + n * 10 + row);
            if (world_count(rows, text) != there) {
                FAIL("row %u of record %u is there %u times", row, n, world_count(rows, text));
            }
        }
    }
}

static void check_letters(void)
{
    const char *letters = world_rows("db.a_dead");
    uint32_t count = 0;
    for (uint32_t n = 0; n < RECORDS; n++) {
        char text[64];
        (void)snprintf(text, sizeof text, "\\\"id\\\":%u,", 1000 + n * 10);
        if (world_count(letters, text) != file.bad[n]) {
            FAIL("record %u has %u letters", n, world_count(letters, text));
        }
        (void)snprintf(text, sizeof text, "\"line\":%u,", 1 + n % FILE_RECORDS);
        count += file.bad[n];
        CHECK(!file.bad[n] || world_count(letters, text) > 0);
    }
    CHECK(world_count(letters, "\"source\":\"file:f:db.a\"") == count);
}

/* ---- tests ---- */

static void rows_and_letters_are_there_once_wherever_a_commit_and_a_kill_come(void)
{
    uint64_t first = given_number("SEED", 1);
    for (seed = first; seed < first + SEEDS; seed++) {
        uint64_t own = seed;
        uint32_t lives = 0;
        check_seed = own;
        begin();
        compose();
        while (!live()) {
            CHECK(lives++ < LIVES_MAX);
        }
        check_rows();
        check_letters();
        sim_disk_deinit(&world.disk);
        seed = own;
    }
}

static void take(const char *name, const char *table, const char *text, uint64_t from,
                 uint64_t behind)
{
    struct tn_err err;
    struct tn_file_place places[] = {{.identity = "1-7-0-0", .offset = from},
                                     {.identity = "1-7-9-0", .offset = behind}};
    CHECK_OK(
        offer_text(name, table, TN_INPUT_JSON, tn_bytes_of(text), 0, &places[0], &places[1], &err),
        err);
}

/* Where it would not be found again before, and later as the table's rule says. */
static void a_first_place_and_the_end_of_a_file_are_committed_at_once(void)
{
    struct tn_err err;
    struct tn_keeper *k = &world.daemon.keepers[0];
    begin();
    world_start(NEVER_MS);
    world_run(100);
    take("file:f", "db.a", "{\"id\":1}\n", 0, 9);
    world_run(100);
    CHECK(k->commits == 1 && track_of("file:f")->committed.offset == 9);
    take("file:f", "db.a", "{\"id\":2}\n", 9, 18);
    world_run(MINUTE_MS);
    CHECK(k->commits == 1 && track_of("file:f")->committed.offset == 9);
    struct tn_file_place from = {.identity = "1-8-0-0", .passed = 18};
    struct tn_file_place behind = {.identity = "1-8-9-0", .offset = 9, .passed = 18};
    CHECK_OK(offer_text("file:f", "db.a", TN_INPUT_JSON, tn_bytes_of("{\"id\":3}\n"), 0, &from,
                        &behind, &err),
             err);
    world_run(100);
    CHECK(k->commits == 2 && track_of("file:f")->committed.passed == 18);
    struct tn_journal *journal = world.daemon.intake.journal;
    CHECK(tn_journal_next(journal) == tn_journal_first(journal)); /* which has nothing of it */
    world_kill();
    CHECK(world_count(world_rows("db.a"), "\"id\":") == 3);
    sim_disk_deinit(&world.disk);
}

static void a_place_without_rows_is_committed_late_or_at_the_end(void)
{
    struct tn_keeper *k = &world.daemon.keepers[0];
    begin();
    world_start(20);
    world_run(100);
    take("file:f", "db.a", "{\"id\":1}\n", 0, 9);
    world_run(100);
    CHECK(k->commits == 1);
    take("file:f", "db.a", "\n\n", 9, 11);
    world_run(MINUTE_MS);
    CHECK(k->commits == 1);
    world_run(5 * MINUTE_MS);
    CHECK(k->commits == 2 && track_of("file:f")->committed.offset == 11);
    take("file:f", "db.a", "\n", 11, 12);
    tn_intake_stop(&world.daemon.intake);
    CHECK(!tn_intake_settled(&world.daemon.intake));
    world_run(100);
    CHECK(tn_intake_settled(&world.daemon.intake) && track_of("file:f")->committed.offset == 12);
    world_kill();
    world_start(20);
    struct tn_file_place place;
    CHECK(find(&place) && place.offset == 12);
    world_kill();
    sim_disk_deinit(&world.disk);
}

/* Nobody reads its file again in this process. */
static void a_table_that_is_lost_at_the_end_is_told(void)
{
    struct tn_err why = {.text = "for a test"};
    struct tn_file_place place;
    begin();
    world_start(NEVER_MS);
    world_run(100);
    take("file:f", "db.a", "{\"id\":1}\n", 0, 9);
    world_run(100);
    take("file:f", "db.a", "{\"id\":2}\n", 9, 18);
    CHECK(find(&place) && place.offset == 18);
    tn_intake_stop(&world.daemon.intake);
    tn_keeper_fail(&world.daemon.keepers[0], TN_CONFLICT, &why, now_ms());
    world_run(1000);
    CHECK(tn_intake_settled(&world.daemon.intake) && world.daemon.intake.undone);
    CHECK(find(&place) && place.offset == 9);
    world_kill();
    CHECK(world_count(world_rows("db.a"), "\"id\":") == 1);
    world_start(NEVER_MS);
    tn_keeper_fail(&world.daemon.keepers[0], TN_CONFLICT, &why, now_ms());
    track_of("file:f")->behind = (struct tn_file_place){.offset = 0}; /* as at a first open */
    tn_intake_stop(&world.daemon.intake);
    world_run(1000);
    CHECK(tn_intake_settled(&world.daemon.intake) && !world.daemon.intake.undone);
    world_kill();
    sim_disk_deinit(&world.disk);
}

/* Between the two halves of a file's message come rows of the journal, with other columns. */
static void a_letter_has_its_own_header_whatever_came_between(void)
{
    static const char text[] = "n,id\n1,1\nx,2\nx,3\n";
    struct tn_err err;
    uint32_t items = 3; /* with the header and a place */
    struct tn_file_place from = {.identity = "1-7-0-0", .offset = 5, .line = 1};
    struct tn_file_place behind = {.identity = "1-7-9-0", .offset = sizeof text - 1, .line = 4};
    begin();
    world_start(NEVER_MS);
    world_run(100);
    CHECK_OK(offer_text("file:f", "db.a", TN_INPUT_CSV, tn_bytes_of(text), 5, &from, &behind, &err),
             err);
    CHECK(tn_track_put(track_of("file:f"), now_ms(), &items, &err) == TN_AGAIN);
    CHECK_OK(world_offer("db.a", TN_INPUT_CSV, "id,n,m\n7,x,1\n", &err), err);
    world_run(200);
    commit_now(&world.daemon.keepers[0]);
    world_kill();
    const char *letters = world_rows("db.a_dead");
    CHECK(world_count(letters, "\"source\":\"file:f:db.a\"") == 2);
    CHECK(world_count(letters, "\"header\":\"n,id\"") == 2);
    CHECK(world_count(letters, "\"line\":3,") == 1 && world_count(letters, "\"line\":4,") == 1);
    CHECK(world_count(letters, "\"position\":9,") == 1 &&
          world_count(letters, "\"position\":13,") == 1);
    sim_disk_deinit(&world.disk);
}

/* As files were followed once; the table knows better as soon as it knows anything. */
static void what_the_journal_was_told_counts_where_the_table_knows_nothing(void)
{
    struct tn_err err;
    struct tn_file_place place;
    struct tn_message message = {.sender = tn_bytes_of("file:f"),
                                 .memo = tn_bytes_of("1-7-9-0:9:1")};
    begin();
    world_start(NEVER_MS);
    world_run(100);
    CHECK(!find(&place));
    CHECK_OK(tn_hub_offer(&world.daemon.intake.hub, &message, &err), err);
    world_run(100);
    world_kill();
    world_start(NEVER_MS);
    world_run(100);
    CHECK(find(&place) && place.offset == 9 && place.line == 1);
    take("file:f", "db.a", "{\"id\":2}\n", 9, 18);
    world_run(100);
    commit_now(&world.daemon.keepers[0]);
    world_kill();
    world_start(NEVER_MS);
    CHECK(find(&place) && place.offset == 18);
    world_kill();
    sim_disk_deinit(&world.disk);
}

/* A letter may be there before its commit; what comes again decides anew. */
static void a_letter_of_what_is_read_again_is_taken_back(void)
{
    struct tn_err err;
    struct tn_keeper *k = &world.daemon.keepers[0];
    begin();
    world_start(NEVER_MS);
    world_run(100);
    take("file:f", "db.a", "{\"id\":1}\n", 0, 9);
    world_run(100);
    take("file:f", "db.a", "{\"id\":x}\n", 9, 18);
    world_run(100);
    CHECK_OK(tn_letters_publish(&k->dead.letters, &err), err);
    world_kill();
    CHECK(world_count(world_rows("db.a_dead"), "file:f:db.a") == 1);
    world_start(20);
    world_run(100);
    take("file:f", "db.a", "{\"id\":2}\n", 9, 18);
    world_run(100);
    world_kill();
    CHECK(world_count(world_rows("db.a_dead"), "file:f:db.a") == 0);
    CHECK(world_count(world_rows("db.a"), "\"id\":") == 2);
    sim_disk_deinit(&world.disk);
}

/* And what waits for it takes nobody else's time. */
static void a_table_that_is_shut_holds_up_no_file_of_another(void)
{
    struct tn_err err;
    struct tn_err why = {.text = "for a test"};
    struct tn_file_place from = {.identity = "1-7-0-0"};
    begin();
    world_start(20);
    world_run(100);
    tn_keeper_fail(&world.daemon.keepers[0], TN_IO, &why, now_ms());
    CHECK(offer_text("file:f", "db.a", TN_INPUT_JSON, tn_bytes_of("{\"id\":1}\n"), 0, &from, &from,
                     &err) == TN_IO);
    take("file:g", "db.b", "{\"id\":1}\n", 0, 9);
    world_run(100);
    CHECK(world.daemon.keepers[1].commits == 1);
    take("file:g", "db.b", "{\"id\":2}\n", 9, 18);
    CHECK(offer_text("file:g", "db.b", TN_INPUT_JSON, tn_bytes_of("{\"id\":3}\n"), 0, &from, &from,
                     &err) == TN_AGAIN);
    CHECK(offer_text("file:h", "db.b", TN_INPUT_JSON, tn_bytes_of("{\"id\":3}\n"), 0, &from, &from,
                     &err) == TN_ABSENT);
    world_kill();
    sim_disk_deinit(&world.disk);
}

static const struct test tests[] = {
    TEST(rows_and_letters_are_there_once_wherever_a_commit_and_a_kill_come),
    TEST(a_first_place_and_the_end_of_a_file_are_committed_at_once),
    TEST(a_place_without_rows_is_committed_late_or_at_the_end),
    TEST(a_table_that_is_lost_at_the_end_is_told),
    TEST(a_letter_has_its_own_header_whatever_came_between),
    TEST(what_the_journal_was_told_counts_where_the_table_knows_nothing),
    TEST(a_letter_of_what_is_read_again_is_taken_back),
    TEST(a_table_that_is_shut_holds_up_no_file_of_another),
};

int main(int argc, char **argv)
{
    return daemon_run_tests(argc, argv, tests, COUNT(tests));
}
