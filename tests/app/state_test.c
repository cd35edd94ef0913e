/* Scripts whose `map` takes each id once (state_once.lua), or numbers all that comes
 * (state_count.lua), behind the intake: their stores are saved with what came, so wherever the
 * power goes, a process is killed, a table is opened again, or a message is refused, each id is in
 * the first table once, and as often as it came in the second one, under numbers without a gap and
 * without a twin.
 *
 * Ids come again and again: from two senders with numbers of their own, and from a file beside
 * each. What the senders' and files' own numbers make sure of is that nothing is sent twice or
 * never; the rest is up to the stores. Bad records are letters, and leave no trace in a store: the
 * same id is good another time. A whole message with a bad record is refused, and comes without. */
#define BED_SCALE 24
#include "daemon.h"

#include "app/feed.h"
#include "app/state_file.h"
#include "given.h"
#include "table/state.h"
#include "temp.h"

enum {
    SENDERS = 2,
    MESSAGES = 30, /* of a sender */
    RECORDS = 40,  /* of a file */
    IDS = 50,      /* of a table */
    IDS_MAX = 4,   /* of a message */
    ROWS_MAX = SENDERS * MESSAGES * IDS_MAX + RECORDS,
    TEXT_SIZE = 32 * 1024,
    PAD_MAX = 20 * 1024,
    TURNS_MAX = 60000,
    COMMIT_MS = 200,
    GIVE_UP_MS = 2500, /* the hub waits less for what it held to be offered again */
};

enum { ONCE, COUNT_ALL }; /* tables */

static const char *const names[TABLES] = {"db.a", "db.s"};
static const char *const letters[TABLES] = {"db.a_dead", "db.s_dead"};
static const char *const file_names[TABLES] = {"0", "1"};
static const char *const schemas[TABLES] = {
    "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"BIGINT\"}],"
    "\"primaryKeys\":[\"id\",\"n\"],\"options\":{\"bucket\":\"1\","
    "\"tarn.script\":\"app/state_once.lua\"}}",
    "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"BIGINT\"}],"
    "\"primaryKeys\":[\"id\",\"n\"],\"options\":{\"bucket\":\"2\","
    "\"tarn.script\":\"app/state_count.lua\"}}",
};

static struct sim_disk base; /* with the tables, and no row */

static struct file {
    char text[RECORDS * 16];
    size_t ends[RECORDS + 1];
} files[TABLES];

struct life {
    struct tn_hub_listener listener; /* first */
    struct sim_disk *disk;
    uint64_t random;
    struct daemon daemon;
    struct tn_config_source sources[TABLES];
    uint32_t next[SENDERS]; /* number of the message to be sent */
    bool rewound;
};

static uint64_t refused;
static uint64_t given_up;
static uint64_t reopened;
static uint64_t held;

/* ---- what is sent ---- */

static uint32_t draw(uint32_t whose, uint32_t number, uint32_t what, uint32_t count)
{
    uint64_t random = (uint64_t)whose << 40 | (uint64_t)number << 20 | what;
    return random_below(&random, count);
}

static uint32_t table_of(uint32_t number)
{
    return number % TABLES;
}

static bool is_whole(uint32_t sender, uint32_t number)
{
    return draw(sender, number, 1, 2) == 0;
}

static uint32_t ids_of(uint32_t sender, uint32_t number, uint32_t ids[IDS_MAX])
{
    uint32_t count = 1 + draw(sender, number, 2, IDS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = draw(sender, number, 10 + i, IDS);
    }
    return count;
}

/* What is `bad`, and how long that is, is drawn anew each time: it is not what decides what there
 * is in the end. */
static size_t make_message(uint32_t sender, uint32_t number, uint32_t bad, uint32_t pad,
                           char text[TEXT_SIZE])
{
    uint32_t ids[IDS_MAX];
    size_t size = 0;
    uint32_t count = ids_of(sender, number, ids);
    for (uint32_t i = 0; i < count; i++) {
        if (bad < IDS && i == count / 2) {
            size +=
                (size_t)sprintf(text + size, "{\"id\":%u,\"bad\":true%*s}\n", bad, (int)pad, "");
        }
        size += (size_t)sprintf(text + size, "{\"id\":%u}\n", ids[i]);
    }
    return size;
}

static void compose(uint32_t f)
{
    size_t size = 0;
    for (uint32_t n = 0; n < RECORDS; n++) {
        size +=
            (size_t)sprintf(files[f].text + size, "{\"id\":%u}\n", draw(SENDERS + f, n, 0, IDS));
        files[f].ends[n + 1] = size;
    }
    CHECK(size < sizeof files[f].text);
}

/* ---- a process ---- */

static void room(struct tn_hub_listener *listener)
{
    (void)listener;
}

static void durable(struct tn_hub_listener *listener, uint64_t place)
{
    (void)listener;
    (void)place;
}

static struct tn_bytes sender_name(uint32_t s, char name[16])
{
    (void)snprintf(name, 16, "sender/%u", s);
    return tn_bytes_of(name);
}

static void ask(struct life *life, uint32_t s)
{
    char name[16];
    struct tn_bytes memo;
    uint64_t place;
    tn_rc rc = tn_hub_sender(&life->daemon.intake.hub, sender_name(s, name), &memo, &place);
    CHECK(rc == TN_OK || rc == TN_ABSENT);
    life->next[s] = 0;
    if (rc == TN_OK) {
        CHECK(memo.size == sizeof life->next[s]);
        memcpy(&life->next[s], memo.data, sizeof life->next[s]);
    }
}

static void send(struct life *life, uint32_t s)
{
    char name[16];
    static char text[TEXT_SIZE];
    struct tn_err err;
    uint32_t number = life->next[s];
    uint32_t memo = number + 1;
    if (number == MESSAGES) {
        return;
    }
    uint32_t bad = random_below(&life->random, 3 * IDS);
    uint32_t pad = random_below(&life->random, 2) * random_below(&life->random, PAD_MAX);
    struct tn_message message = {
        .table = names[table_of(number)],
        .input = TN_INPUT_JSON,
        .bytes = {(const unsigned char *)text, make_message(s, number, bad, pad, text)},
        .source = "test",
        .whole = is_whole(s, number),
        .sender = sender_name(s, name),
        .memo = {(const unsigned char *)&memo, sizeof memo}};
    tn_rc rc = tn_hub_offer(&life->daemon.intake.hub, &message, &err);
    CHECK(rc != TN_ABSENT && (rc != TN_INVALID || (message.whole && bad < IDS)));
    refused += rc == TN_INVALID;
    life->next[s] += rc == TN_OK;
    held += life->daemon.intake.held.keeper != NULL;
    if (rc == TN_AGAIN && random_below(&life->random, 4) == 0) { /* it is not offered again */
        sim_clock_advance_ms(&engine.clock, GIVE_UP_MS);
        given_up++;
    }
}

/* The journal has no room, then, for what `map` makes of the next message. */
static void fill(struct life *life)
{
    static const unsigned char memo[TN_MEMO_SIZE_MAX];
    struct tn_err err;
    struct tn_message message = {.sender = tn_bytes_of("filler"), .memo = {memo, sizeof memo}};
    tn_rc rc = TN_OK;
    while (rc == TN_OK) {
        rc = tn_hub_offer(&life->daemon.intake.hub, &message, &err);
    }
}

static struct tn_file_place place_of(uint32_t f, uint32_t number)
{
    struct tn_file_place place = {.line = number, .offset = files[f].ends[number]};
    (void)snprintf(place.identity, sizeof place.identity, "1-%u-%zu-0", f, (size_t)place.offset);
    return place;
}

static uint32_t find_record(struct life *life, uint32_t f, const char *name)
{
    struct tn_file_place place = {.offset = 0};
    uint32_t number = 0;
    tn_rc rc = tn_hub_place(&life->daemon.intake.hub, tn_bytes_of(name), &place);
    CHECK(rc == TN_OK || rc == TN_ABSENT);
    while (files[f].ends[number] < place.offset) {
        number++;
    }
    CHECK(files[f].ends[number] == place.offset && place.part == 0);
    return number;
}

/* The number of records that the hub has. */
static uint32_t read_file(struct life *life, uint32_t f)
{
    char name[16];
    struct tn_err err;
    (void)snprintf(name, sizeof name, "file:%s", file_names[f]);
    uint32_t number = find_record(life, f, name);
    uint32_t count = 1 + random_below(&life->random, 6);
    count = count < RECORDS - number ? count : RECORDS - number;
    if (count == 0 || random_below(&life->random, 3) > 0) {
        return number;
    }
    struct tn_file_place from = place_of(f, number);
    struct tn_file_place behind = place_of(f, number + count);
    size_t begin = files[f].ends[number];
    struct tn_message message = {.table = names[f],
                                 .input = TN_INPUT_JSON,
                                 .bytes = {(const unsigned char *)files[f].text + begin,
                                           files[f].ends[number + count] - begin},
                                 .source = "test",
                                 .sender = tn_bytes_of(name),
                                 .split = count > 1,
                                 .from = &from,
                                 .behind = &behind};
    tn_rc rc = tn_hub_offer(&life->daemon.intake.hub, &message, &err);
    CHECK(rc != TN_INVALID && rc != TN_ABSENT);
    return number;
}

static bool all_sent(struct life *life)
{
    bool all = true;
    for (uint32_t s = 0; s < SENDERS; s++) {
        all = all && life->next[s] == MESSAGES;
    }
    for (uint32_t f = 0; f < TABLES; f++) {
        all = read_file(life, f) == RECORDS && all;
    }
    return all;
}

/* It is opened again, and what its stores have is what the journal has. */
static void fail_a_table(struct life *life)
{
    struct tn_err why = {.text = "for a test"};
    struct tn_keeper *k = &life->daemon.keepers[random_below(&life->random, TABLES)];
    if (k->state != TN_KEEPER_SHUT && life->daemon.intake.failed == TN_OK) {
        tn_keeper_fail(k, TN_CONFLICT, &why, engine.clock.passed_ns / 1000000);
        reopened++;
    }
}

static tn_rc turn(struct life *life, struct tn_err *err)
{
    uint32_t wait_ms;
    tn_rc rc = tn_intake_turn(&life->daemon.intake, &wait_ms, err);
    if (random_below(&life->random, 3) == 0) {
        sim_clock_advance_ms(&engine.clock,
                             random_below(&life->random, wait_ms < 60 ? wait_ms + 1 : 60));
    }
    return rc;
}

static tn_rc open_life(struct life *life, struct tn_err *err)
{
    struct daemon *d = &life->daemon;
    bed_engine_start(&engine, &life->disk->io, random_next(&life->random));
    d->warehouse = "tests/app";
    for (uint32_t t = 0; t < TABLES; t++) {
        life->sources[t] = (struct tn_config_source){.kind = TN_SOURCE_FILE,
                                                     .name = file_names[t],
                                                     .table = names[t],
                                                     .next = t > 0 ? &life->sources[t - 1] : NULL};
        d->configs[t] = (struct tn_config_table){.name = names[t], .commit = {.ms = COMMIT_MS}};
        d->dead_letters[t] = letters[t];
    }
    d->config.sources = &life->sources[TABLES - 1];
    d->config.journal = (struct tn_config_journal){
        .sync_ms = 10, .sync_bytes = 200 + random_below(&life->random, 4000), .size_max = 8 << 20};
    return daemon_open(d, err);
}

static tn_rc run(struct life *life, bool calm, struct tn_err *err)
{
    struct tn_intake *in = &life->daemon.intake;
    tn_rc rc = TN_OK;
    uint32_t turns = 0;
    for (uint32_t s = 0; s < SENDERS; s++) {
        ask(life, s);
    }
    tn_hub_listen(&in->hub, &life->listener);
    while (rc == TN_OK && !life->disk->off && !all_sent(life)) {
        if (random_below(&life->random, 8) == 0) {
            fill(life);
        }
        for (uint32_t i = random_below(&life->random, 4); i > 0; i--) {
            send(life, random_below(&life->random, SENDERS));
        }
        if (!calm && random_below(&life->random, 40) == 0) {
            fail_a_table(life);
        }
        rc = turn(life, err);
        CHECK(turns++ < TURNS_MAX);
    }
    tn_intake_stop(in);
    while (rc == TN_OK && !life->disk->off && !tn_intake_settled(in)) {
        rc = turn(life, err);
        CHECK(turns++ < TURNS_MAX);
    }
    return rc;
}

/* Until the power goes, or all is committed, or, where it is not `calm`, it is killed. */
static tn_rc live(struct sim_disk *disk, uint64_t seed, bool calm, struct tn_err *err)
{
    static struct life life;
    life =
        (struct life){.listener = {.room = room, .durable = durable}, .disk = disk, .random = seed};
    tn_rc rc = open_life(&life, err);
    if (rc == TN_OK) {
        rc = run(&life, calm, err);
    }
    daemon_close(&life.daemon);
    return rc;
}

/* ---- what is there in the end ---- */

/* How often each id is to be there; all of them together. */
static uint32_t want_ids(uint32_t table, uint32_t wanted[IDS])
{
    uint32_t ids[IDS_MAX];
    uint32_t count = 0;
    for (uint32_t s = 0; s < SENDERS; s++) {
        for (uint32_t n = 0; n < MESSAGES; n++) {
            for (uint32_t i = ids_of(s, n, ids); i > 0 && table_of(n) == table; i--) {
                wanted[ids[i - 1]]++;
            }
        }
    }
    for (uint32_t n = 0; n < RECORDS; n++) {
        wanted[draw(SENDERS + table, n, 0, IDS)]++;
    }
    for (uint32_t id = 0; id < IDS; id++) {
        wanted[id] = table == ONCE ? wanted[id] > 0 : wanted[id];
        count += wanted[id];
    }
    return count;
}

/* Each id so often, with numbers from 1 to `count` among them. */
static void check_rows(struct sim_disk *disk, uint32_t table, const uint32_t wanted[IDS],
                       uint32_t count, uint64_t cut)
{
    struct tn_err err;
    struct tn_kv kv;
    const char *root = NULL;
    uint32_t ids[IDS] = {0};
    bool numbers[ROWS_MAX + 1] = {false};
    bed_engine_start(&engine, &disk->io, 7);
    CHECK_OK(tn_name_table_root(&engine.own, names[table], &root, &err), err);
    struct tn_scan *scan = daemon_rows(root);
    CHECK(scan != NULL);
    while (newest_next(scan, &kv)) {
        struct tn_value id;
        struct tn_value n;
        tn_row_get(&scan->projection.layout, kv.row, 0, &id);
        tn_row_get(&scan->projection.layout, kv.row, 1, &n);
        CHECK(id.as.i64 >= 0 && id.as.i64 < IDS && n.as.i64 > 0 && n.as.i64 <= ROWS_MAX);
        if (n.as.i64 > count || numbers[n.as.i64]) {
            FAIL("cut %" PRIu64 ": %s has number %" PRId64 " of %u, or twice, with id %" PRId64,
                 cut, names[table], n.as.i64, count, id.as.i64);
        }
        ids[id.as.i64]++;
        numbers[n.as.i64] = true;
    }
    for (uint32_t id = 0; id < IDS; id++) {
        if (ids[id] != wanted[id]) {
            FAIL("cut %" PRIu64 ": %s has id %u %u times, not %u", cut, names[table], id, ids[id],
                 wanted[id]);
        }
    }
}

static void check_table(struct sim_disk *disk, uint32_t table, uint64_t cut)
{
    uint32_t wanted[IDS] = {0};
    uint32_t count = want_ids(table, wanted);
    check_rows(disk, table, wanted, count, cut);
}

static void check_all(struct sim_disk *disk, uint64_t cut)
{
    for (uint32_t t = 0; t < TABLES; t++) {
        check_table(disk, t, cut);
    }
}

/* ---- tests ---- */

static void make_base(void)
{
    sim_disk_init(&base, DISK_SIZE);
    bed_engine_start(&engine, &base.io, 1);
    for (uint32_t t = 0; t < TABLES; t++) {
        compose(t);
        bed_make_table(&engine, names[t], schemas[t]);
    }
    sim_disk_kill(&base);
}

static void cut_somewhere(uint64_t seed)
{
    struct sim_disk disk;
    struct tn_err err = {0};
    uint64_t random = seed;
    check_seed = seed;
    sim_disk_clone(&disk, &base);
    tn_rc rc = live(&disk, seed, false, &err);
    CHECK_OK(rc, err);
    uint64_t calls = disk.calls;
    check_all(&disk, 0);
    sim_disk_deinit(&disk);
    for (int i = 0; i < 6; i++) {
        sim_disk_clone(&disk, &base);
        disk.model = random_below(&random, 2) ? SIM_STRICT : SIM_ORDERED;
        uint64_t cut = 1 + random_below(&random, (uint32_t)calls);
        for (int lives = 0; lives < 3; lives++) {
            sim_disk_cut_at(&disk, 1 + random_below(&random, (uint32_t)cut));
            rc = live(&disk, random_next(&random), false, &err);
            CHECK(rc == TN_OK || disk.off);
            if (random_below(&random, 3) == 0) { /* of what it didn't sync nothing is lost */
                disk.off = false;
                sim_disk_kill(&disk);
            } else {
                sim_disk_reboot(&disk,
                                random_below(&random, 4) ? random_next(&random) : SIM_SEED_NOTHING);
            }
        }
        sim_disk_cut_at(&disk, 0);
        rc = live(&disk, random_next(&random), true, &err);
        if (rc != TN_OK) {
            FAIL("cut %" PRIu64 ": %s", cut, err.text);
        }
        check_all(&disk, cut);
        sim_disk_deinit(&disk);
    }
}

static void each_id_is_taken_and_counted_once_whatever_call_is_cut(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(20, 2);
    make_base();
    do {
        cut_somewhere(seed++);
    } while (seconds_now() < until);
    CHECK(refused > 0 && given_up > 0 && reopened > 0 && held > 0);
    sim_disk_deinit(&base);
}

/* ---- `write` ---- */

enum { CANALS = 40 }; /* records */

static struct {
    char text[CANALS * 160];
    size_t size;
    uint32_t rows;
    uint32_t ids[IDS];
} stream;

/* What `write` is made of, around a text with places. */
struct writing {
    struct tn_table_share share[1];
    struct tn_scripted scripted;
    struct tn_table *table;
    struct tn_mapper mapper;
    struct tn_state_file state;
    struct tn_feed feed;
    struct tn_arena arena;
    uint32_t empty; /* times that it was said that they begin so */
};
static struct writing writing;
static uint32_t parts_cut; /* cuts within a record */

static void compose_stream(uint64_t seed)
{
    memset(&stream, 0, sizeof stream);
    for (uint32_t n = 0; n < CANALS; n++) {
        uint32_t rows = 1 + random_below(&seed, 4);
        stream.size +=
            (size_t)sprintf(stream.text + stream.size, "{\"type\":\"INSERT\",\"data\":[");
        for (uint32_t row = 0; row < rows; row++) {
            uint32_t id = random_below(&seed, IDS);
            stream.ids[id]++;
            stream.size += (size_t)sprintf(stream.text + stream.size, "%s{\"id\":%u,\"n\":0}",
                                           row > 0 ? "," : "", id);
        }
        stream.rows += rows;
        stream.size += (size_t)sprintf(stream.text + stream.size, "]}\n");
    }
    CHECK(stream.size < sizeof stream.text);
}

static void say_empty(const char *why)
{
    (void)why;
    writing.empty++;
}

static tn_rc write_note(void *user, struct tn_feed_place place, struct tn_err *err)
{
    struct writing *w = user;
    char text[64];
    parts_cut += place.part > 0;
    (void)snprintf(text, sizeof text, "%" PRIu64 ":%u", place.offset, place.part);
    tn_rc rc = tn_state_file_note(&w->state, w->feed.cuts, err);
    return rc == TN_OK ? tn_table_position(w->table, "text", text, err) : rc;
}

static tn_rc write_taken(void *user, struct tn_err *err)
{
    struct writing *w = user;
    return tn_state_file_take(&w->state, err);
}

static tn_rc open_writing(struct writing *w, struct tn_io *io, uint64_t seed, struct tn_err *err)
{
    bed_engine_start(&engine, io, seed);
    *w = (struct writing){.share = {{.scripted = true}}};
    tn_arena_init(&w->arena, daemon_input, INPUT_SIZE);
    tn_rc rc = tn_share_out(&engine.env, w->share, 1, err);
    struct tn_scripted_spec script = {.env = &w->share[0].env,
                                      .budget = &w->share[0].budget,
                                      .table = names[COUNT_ALL],
                                      .warehouse = "tests/app"};
    struct tn_table_spec spec = {
        .name = names[COUNT_ALL], .who = "a test", .identifier = -1, .compact = true};
    if (rc == TN_OK) {
        rc = tn_scripted_find(&w->scripted, &script, err);
        tn_share_cap(&w->share[0]);
    }
    if (rc == TN_OK) {
        tn_scripted_fill(&w->scripted, &spec);
        rc = tn_table_open(&w->share[0].env, &spec, &w->table, err);
    }
    if (rc == TN_OK) {
        rc = tn_table_tell(w->table, err);
    }
    return rc == TN_OK
               ? tn_state_file_open(&w->state, tn_scripted_map(&w->scripted), w->table,
                                    &w->share[0].env, names[COUNT_ALL], say_empty, &w->arena, err)
               : rc;
}

static tn_rc open_write_feed(struct writing *w, struct tn_err *err)
{
    struct tn_feed_spec feed = {.table = w->table,
                                .clock = w->share[0].env.clock,
                                .every_rows = 12,
                                .mapper = &w->mapper,
                                .note = write_note,
                                .taken = write_taken,
                                .user = w};
    struct tn_decode_spec decode = {.input = TN_INPUT_CANAL,
                                    .schema = tn_table_schema(w->table),
                                    .layout = tn_table_layout(w->table),
                                    .record_size_max = 4096,
                                    .row_size_max = w->share[0].env.row_size_max};
    const char *place = tn_table_position_of(w->table, "text");
    tn_rc rc =
        tn_mapper_init(&w->mapper, tn_scripted_map(&w->scripted), feed.clock, 0, &w->arena, err);
    tn_feed_init(&w->feed, &feed);
    if (rc == TN_OK && place) {
        char *end;
        w->feed.next.offset = strtoull(place, &end, 10);
        w->feed.next.part = (uint32_t)strtoul(end + 1, NULL, 10);
    }
    return rc == TN_OK ? tn_decoder_open(&w->feed.decoder, &decode, &w->arena, err) : rc;
}

/* Some bytes at a time; now and then the round is full, wherever that is. */
static tn_rc write_rest(struct writing *w, uint64_t random, struct tn_err *err)
{
    size_t at = (size_t)w->feed.next.offset;
    size_t end = at;
    tn_rc rc = TN_AGAIN;
    while (rc == TN_AGAIN && at < stream.size) {
        end += random_below(&random, 400);
        end = end < stream.size ? end : stream.size;
        w->table->round_full = random_below(&random, 3) == 0;
        struct tn_bytes input = {(const unsigned char *)stream.text + at, end - at};
        rc = tn_feed_eat(&w->feed, &input, end == stream.size, err);
        at = end - input.size;
        if (rc == TN_AGAIN) {
            tn_rc turned = tn_table_turn(w->table, false, err);
            rc = turned == TN_OK ? rc : turned;
        }
    }
    rc = rc == TN_AGAIN ? TN_OK : rc;
    if (rc == TN_OK) {
        rc = tn_feed_note(&w->feed, err);
    }
    return rc == TN_OK ? tn_table_finish(w->table, w->feed.rows, err) : rc;
}

static tn_rc write_once(struct tn_io *io, uint64_t seed, struct tn_err *err)
{
    struct writing *w = &writing;
    tn_rc rc = open_writing(w, io, seed, err);
    if (rc == TN_OK) {
        rc = open_write_feed(w, err);
    }
    if (rc == TN_OK) {
        rc = write_rest(w, seed, err);
    }
    if (rc == TN_OK) {
        tn_state_file_close(&w->state);
    }
    if (w->table) {
        tn_table_close(w->table);
    }
    tn_scripted_close(&w->scripted);
    return rc;
}

static tn_rc count_state(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    uint32_t *count = user;
    (void)err;
    *count += !is_dir && strstr(name, ".state-") != NULL;
    return TN_OK;
}

static uint32_t count_state_files(struct sim_disk *disk)
{
    struct tn_err err;
    uint32_t count = 0;
    CHECK_OK(disk->io.vtable->list(&disk->io, ".tarn/", count_state, &count, &err), err);
    return count;
}

static void check_stream(struct sim_disk *disk, uint64_t cut)
{
    uint32_t ids[IDS];
    memcpy(ids, stream.ids, sizeof ids);
    check_rows(disk, COUNT_ALL, ids, stream.rows, cut);
    CHECK(count_state_files(disk) == 1);
}

/* A commit may be between two rows of a record, which comes again as a whole. */
static void what_write_keeps_is_committed_with_its_rows_whatever_call_is_cut(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(20, 2);
    struct sim_disk disk;
    struct tn_err err;
    make_base();
    do {
        uint64_t random = seed;
        check_seed = seed;
        compose_stream(seed++);
        sim_disk_clone(&disk, &base);
        CHECK_OK(write_once(&disk.io, random, &err), err);
        uint64_t calls = disk.calls;
        check_stream(&disk, 0);
        sim_disk_deinit(&disk);
        sim_disk_clone(&disk, &base);
        disk.model = random_below(&random, 2) ? SIM_STRICT : SIM_ORDERED;
        uint64_t cut = 0;
        for (int lives = 0; lives < 6; lives++) {
            cut = 1 + random_below(&random, (uint32_t)calls);
            sim_disk_cut_at(&disk, cut);
            tn_rc rc = write_once(&disk.io, random_next(&random), &err);
            CHECK(rc == TN_OK || disk.off);
            CHECK(writing.empty == 0);
            if (random_below(&random, 3) == 0) {
                disk.off = false;
                sim_disk_kill(&disk);
            } else {
                sim_disk_reboot(&disk,
                                random_below(&random, 4) ? random_next(&random) : SIM_SEED_NOTHING);
            }
        }
        CHECK_OK(write_once(&disk.io, random, &err), err);
        CHECK(writing.empty == 0);
        check_stream(&disk, cut);
        sim_disk_deinit(&disk);
    } while (seconds_now() < until);
    CHECK(parts_cut > 0);
    sim_disk_deinit(&base);
}

/* ---- a script that is changed ---- */

#define ONCE_TEXT                           \
    "function m.map(row)\n"                 \
    "if seen[row.id] then return nil end\n" \
    "seen[row.id] = true\nrow.n = 1\nreturn row\nend\nreturn m\n"

static struct life changed;
static char script_folder[TEMP_SIZE];

static void start_with(struct sim_disk *disk, const char *text)
{
    char path[TEMP_SIZE + 16];
    struct tn_err err;
    (void)snprintf(path, sizeof path, "%s/s.lua", script_folder);
    FILE *script = fopen(path, "w");
    CHECK(script != NULL);
    CHECK(fputs(text, script) >= 0 && fclose(script) == 0);
    changed = (struct life){
        .listener = {.room = room, .durable = durable}, .disk = disk, .random = disk->calls};
    CHECK_OK(open_life(&changed, &err), err);
    tn_hub_listen(&changed.daemon.intake.hub, &changed.listener);
}

static void settle_for_ms(uint32_t ms)
{
    struct tn_err err;
    for (uint32_t past = 0; past < ms; past += 20) {
        for (int i = 0; i < 10; i++) {
            uint32_t wait_ms;
            CHECK_OK(tn_intake_turn(&changed.daemon.intake, &wait_ms, &err), err);
        }
        sim_clock_advance_ms(&engine.clock, 20);
    }
}

static uint32_t rows_of(uint32_t id)
{
    char text[32];
    struct tn_err err;
    (void)snprintf(text, sizeof text, "{\"id\":%u}", id);
    struct tn_message message = {
        .table = names[0], .input = TN_INPUT_JSON, .bytes = tn_bytes_of(text), .source = "test"};
    CHECK_OK(tn_hub_offer(&changed.daemon.intake.hub, &message, &err), err);
    return message.rows;
}

/* Which id has the file's record of a number. */
static uint32_t rows_of_record(uint32_t number)
{
    struct tn_err err;
    CHECK(find_record(&changed, 0, "file:0") == number);
    struct tn_file_place from = place_of(0, number);
    struct tn_file_place behind = place_of(0, number + 1);
    size_t begin = files[0].ends[number];
    struct tn_message message = {
        .table = names[0],
        .input = TN_INPUT_JSON,
        .bytes = {(const unsigned char *)files[0].text + begin, files[0].ends[number + 1] - begin},
        .source = "test",
        .sender = tn_bytes_of("file:0"),
        .from = &from,
        .behind = &behind};
    CHECK_OK(tn_hub_offer(&changed.daemon.intake.hub, &message, &err), err);
    return message.rows;
}

static void kill_it(struct sim_disk *disk, uint32_t after_ms)
{
    settle_for_ms(after_ms);
    daemon_close(&changed.daemon);
    sim_disk_kill(disk);
}

/* A store is known by its name, whatever else was changed; a script without one leaves it as it is;
 * and a file goes on where it was, through the journal or past it. */
static void a_script_that_is_changed_has_its_stores_by_name(void)
{
    char schema[TEMP_SIZE + 256];
    struct sim_disk disk;
    struct tn_err err;
    uint32_t first = draw(SENDERS, 0, 0, IDS);
    temp_make(script_folder);
    (void)snprintf(schema, sizeof schema,
                   "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":"
                   "\"BIGINT\"}],\"primaryKeys\":[\"id\",\"n\"],\"options\":{\"bucket\":\"1\","
                   "\"tarn.script\":\"%s/s.lua\"}}",
                   script_folder);
    sim_disk_init(&disk, DISK_SIZE);
    bed_engine_start(&engine, &disk.io, 1);
    compose(0);
    bed_make_table(&engine, names[0], schema);
    bed_make_table(&engine, names[1], schema);
    sim_disk_kill(&disk);

    start_with(&disk, "local seen = tarn.state('seen')\nlocal m = {}\n" ONCE_TEXT);
    settle_for_ms(20);
    CHECK(rows_of(1000) == 1 && rows_of(1000) == 0);
    settle_for_ms(20);
    CHECK(rows_of_record(0) == 1 && rows_of(first) == 0);
    kill_it(&disk, 50); /* it is in the journal, and not committed */

    start_with(&disk, "local seen = tarn.state('seen', { size = 400 })\nlocal other = "
                      "tarn.state('other')\nlocal m = {}\n" ONCE_TEXT);
    settle_for_ms(20);
    CHECK(rows_of(1000) == 0 && rows_of(first) == 0);
    CHECK(find_record(&changed, 0, "file:0") == 1);
    kill_it(&disk, 50);

    start_with(&disk, "local m = {}\nfunction m.map(row)\nrow.n = 2\nreturn row\nend\nreturn m\n");
    settle_for_ms(20);
    CHECK(rows_of_record(1) == 1 && rows_of(1000) == 1);
    kill_it(&disk, 10 * COMMIT_MS);

    start_with(&disk, "local seen = tarn.state('seen')\nlocal m = {}\n" ONCE_TEXT);
    settle_for_ms(20);
    CHECK(rows_of(1000) == 0 && rows_of(first) == 0 && rows_of(1001) == 1);
    CHECK(find_record(&changed, 0, "file:0") == 2);
    struct tn_message message = {.sender = tn_bytes_of("keep:db.a"),
                                 .memo = tn_bytes_of("rubbish")};
    CHECK_OK(tn_hub_offer(&changed.daemon.intake.hub, &message, &err), err);
    kill_it(&disk, 50);

    start_with(&disk, "local seen = tarn.state('seen')\nlocal m = {}\n" ONCE_TEXT);
    settle_for_ms(20);
    CHECK(rows_of(1000) == 1 && rows_of(1000) == 0);
    kill_it(&disk, 10 * COMMIT_MS);
    sim_disk_deinit(&disk);
    temp_remove(script_folder);
}

static const struct test tests[] = {
    TEST(a_script_that_is_changed_has_its_stores_by_name),
    TEST(what_write_keeps_is_committed_with_its_rows_whatever_call_is_cut),
    TEST(each_id_is_taken_and_counted_once_whatever_call_is_cut),
};

int main(int argc, char **argv)
{
    return daemon_run_tests(argc, argv, tests, COUNT(tests));
}
