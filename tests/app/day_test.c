/* A day in the simulator: the whole daemon, and all who send to it, for 24 hours in which
 * everything happens that happens to a box in a shed: the power goes, the process is killed, the
 * disk is full for a while, fails, and gives errors for a minute; the wall clock is set, the
 * network is slow, cuts and loses, a file is rotated, the configuration is another one, senders and
 * broker vanish for hours, somebody else writes to the tables, the machine sleeps. One seed decides
 * all of it.
 *
 * At each look, and in the end: each table is whole (fsck); each row of a sender with an identity,
 * and of the file, is in its table once, in the sender's order, and was counted once by a script;
 * each other row that was acknowledged is there. */
#include "day_broker.h"
#include "day_file.h"
#include "day_http.h"
#include "day_process.h"
#include "day_socket.h"

#include <signal.h>
#include <unistd.h>

#include "counted.h"
#include "sim/mallocs.h"
#include "table/newest.h"

enum {
    DAY_MS = 24 * DAY_HOUR,
    TURNS_MAX = 4000000,
    CALM_MS = 2 * DAY_HOUR, /* within it all is answered */
    DISK_SIZE = 64 << 20,
    ROOM_MAX = 48 << 10,
};

static const char *const schemas[DAY_TABLES] = {
    "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"BIGINT\"}],"
    "\"options\":{\"bucket\":\"-1\",\"snapshot.num-retained.min\":\"4\","
    "\"snapshot.num-retained.max\":\"12\"}}",
    "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"BIGINT\"}],"
    "\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":\"2\",\"merge-engine\":\"aggregation\","
    "\"fields.n.aggregate-function\":\"sum\",\"snapshot.num-retained.min\":\"4\","
    "\"snapshot.num-retained.max\":\"12\"}}",
    "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"BIGINT\"}],"
    "\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":\"1\",\"changelog-producer\":\"lookup\","
    "\"snapshot.num-retained.min\":\"4\",\"snapshot.num-retained.max\":\"12\"}}",
    "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"BIGINT\"}],"
    "\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":\"2\",\"tarn.script\":\"app/day.lua\","
    "\"snapshot.num-retained.min\":\"4\",\"snapshot.num-retained.max\":\"12\"}}",
    "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"BIGINT\"}],"
    "\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":\"1\",\"merge-engine\":\"aggregation\","
    "\"fields.n.aggregate-function\":\"sum\",\"snapshot.num-retained.min\":\"4\","
    "\"snapshot.num-retained.max\":\"12\"}}",
};

static struct sim_disk base; /* with the tables, and no row */

static struct {
    int64_t room_ms;  /* when a full disk has room again; 0: it has */
    int64_t calls_ms; /* until when calls fail, */
    uint32_t calls;   /* one in so many; 0: none */
    bool cuts;        /* the cut that is due is of the power; else of the process */
    bool cut_due;
    int64_t other_id;
    enum day_promise others[DAY_NUMBERS + 1]; /* of another program's rows */
} trouble;

/* ---- what is there ---- */

static struct sim_disk looked_at; /* a copy of the day's, for what a look changes */
static uint32_t seen[DAY_CLIENTS * DAY_NUMBERS * DAY_ROWS + DAY_ROWS];

static void see_row(const struct tn_row_layout *layout, struct tn_row row)
{
    struct tn_value values[2];
    tn_row_get(layout, row, 0, &values[0]);
    tn_row_get(layout, row, 1, &values[1]);
    CHECK(values[0].as.i64 >= 0 && values[0].as.i64 < (int64_t)COUNT(seen));
    seen[values[0].as.i64] += (uint32_t)values[1].as.i64;
}

static void see_letter(const struct tn_row_layout *layout, struct tn_row row)
{
    char text[DAY_TEXT] = {0};
    struct tn_value record = {0};
    for (uint32_t i = 0; i < layout->column_count; i++) {
        if (strcmp(layout->columns[i].name, "record") == 0) {
            tn_row_get(layout, row, i, &record);
        }
    }
    CHECK(record.as.bytes.size > 0 && record.as.bytes.size < sizeof text);
    memcpy(text, record.as.bytes.data, record.as.bytes.size);
    CHECK(strncmp(text, "{\"id\":", 6) == 0);
    long long id = strtoll(text + 6, NULL, 10);
    CHECK(id >= 0 && id < (long long)COUNT(seen));
    seen[id]++;
}

static void read_rows(const char *root,
                      void (*see)(const struct tn_row_layout *layout, struct tn_row row))
{
    struct tn_kv kv;
    struct bed_engine *engine = &day_engines[1];
    memset(seen, 0, sizeof seen);
    day_start_engine(engine, &looked_at, 7);
    struct tn_scan *scan = newest_open(root, engine->env.workers[TN_LANE_LONG], &engine->own,
                                       engine->window, BED_WINDOW_SIZE);
    while (scan && newest_next(scan, &kv)) {
        see(&scan->projection.layout, kv.row);
    }
}

static enum day_promise promise_of(uint32_t client, uint32_t number)
{
    return client == DAY_MQTT                                         ? day_broker_promise(number)
           : client == DAY_OTHER                                      ? trouble.others[number]
           : client == DAY_HTTP_NOBODY || client == DAY_SOCKET_NOBODY ? DAY_AT_LEAST
                                                                      : DAY_ONCE;
}

static bool is_acked(uint32_t client, uint32_t number)
{
    return client == DAY_MQTT    ? day_broker_is_done(number)
           : client == DAY_OTHER ? trouble.others[number] != DAY_MAYBE
                                 : number <= day.clients[client].acked;
}

/* `all`: no row is on its way. */
static void check_counts(const char *name, uint32_t client, uint32_t number, bool all)
{
    enum day_promise promise = promise_of(client, number);
    uint32_t most = promise == DAY_AT_LEAST ? UINT32_MAX : 1;
    uint32_t least = all && promise != DAY_MAYBE && is_acked(client, number) ? 1 : 0;
    for (uint32_t row = 0; row < day_rows_of(client, number); row++) {
        uint32_t got = seen[day_id(client, number, row)];
        if (got < least || got > most) {
            DAY_BAD("%s has row %u of message %u of client %u %u times%s", name, row, number,
                    client, got, is_acked(client, number) ? ", and it was acknowledged" : "");
        }
    }
}

/* The newest of a key's values that was acknowledged for sure, 0: none; `*known`: whether the value
 * found is one of them. */
static uint32_t newest_of(uint32_t client, uint32_t slot, uint32_t row, uint32_t got, bool *known)
{
    uint32_t newest = 0;
    for (uint32_t n = 1; n <= day.clients[client].wanted; n++) {
        if (n % DAY_LASTS == slot && !day_is_bad(client, n) &&
            day_table_of(client, n) == DAY_LAST && row < day_rows_of(client, n)) {
            newest = is_acked(client, n) && promise_of(client, n) != DAY_MAYBE ? n : newest;
            *known = *known || n == got;
        }
    }
    return newest;
}

static void check_last(uint32_t client, uint32_t slot, uint32_t row, bool all)
{
    uint32_t got = seen[day_id(client, slot, row)];
    bool known = got == 0;
    bool ordered = client == DAY_HTTP_NUMBERS || client == DAY_HTTP_KEYS || client == DAY_FILE;
    uint32_t newest = newest_of(client, slot, row, got, &known);
    bool lost = all && (ordered ? got < newest : newest > 0 && got == 0);
    if (lost || !known) {
        DAY_BAD("db.last has %u of client %u, key %u.%u, where %u was acknowledged", got, client,
                slot, row, newest);
    }
}

/* What the script counted of a key is of each message with it, once. */
static void check_count(uint32_t client, uint32_t slot, uint32_t row, bool all)
{
    uint64_t least = 0;
    uint64_t most = 0;
    uint32_t got = seen[day_id(client, slot, row)];
    for (uint32_t n = 1; n <= day.clients[client].wanted; n++) {
        if (n % DAY_LASTS == slot && !day_is_bad(client, n) &&
            day_table_of(client, n) == DAY_COUNT && row < day_rows_of(client, n)) {
            enum day_promise promise = promise_of(client, n);
            least += all && promise != DAY_MAYBE && is_acked(client, n) ? 1 : 0;
            most += promise == DAY_AT_LEAST ? UINT32_MAX : 1;
        }
    }
    if (got < least || got > most) {
        DAY_BAD("db.count has %u of client %u, key %u.%u, where %" PRIu64 " to %" PRIu64
                " were to be counted",
                got, client, slot, row, least, most);
    }
}

/* Rows of the table, or its letters. */
static void check_messages(enum day_table table, bool bad, bool all)
{
    const char *name = bad ? day_letters[table] : day_names[table];
    for (uint32_t client = 0; client < DAY_CLIENTS; client++) {
        for (uint32_t n = 1; n <= day.clients[client].wanted; n++) {
            if (day_table_of(client, n) == table && day_is_bad(client, n) == bad) {
                check_counts(name, client, n, all);
            }
        }
    }
}

static void check_table(enum day_table table, bool all)
{
    read_rows(day_letter_roots[table], see_letter);
    check_messages(table, true, all);
    read_rows(day_roots[table], see_row);
    if (!day_is_slotted(table)) {
        check_messages(table, false, all);
        return;
    }
    for (uint32_t i = 0; i < DAY_CLIENTS * DAY_LASTS * DAY_ROWS; i++) {
        (table == DAY_LAST ? check_last : check_count)(i / DAY_ROWS / DAY_LASTS,
                                                       i / DAY_ROWS % DAY_LASTS, i % DAY_ROWS, all);
    }
}

/* A writer that starts finds the newest snapshot, and mends what only hints at it. */
static void open_once(struct bed_engine *engine, const char *name)
{
    struct tn_err err;
    struct tn_table *opened;
    struct tn_table_spec spec = {.name = name, .who = "a look", .identifier = -1};
    tn_rc rc = tn_table_open(&engine->env, &spec, &opened, &err);
    CHECK_OK(rc, err);
    tn_table_close(opened);
}

static bool is_there(const char *root)
{
    int64_t id;
    struct tn_err err;
    return tn_snapshot_latest(&looked_at.io, root, &day_engines[1].own, &id, &err) == TN_OK;
}

static void check_whole(const char *name, const char *root)
{
    day_start_engine(&day_engines[1], &looked_at, 7);
    if (is_there(root)) {
        open_once(&day_engines[1], name);
        const char *problem = bed_fsck_of(&day_engines[1], root);
        if (problem) {
            DAY_BAD("%s: %s", name, problem);
        }
    }
}

/* No process is there. */
static void look(bool all)
{
    day_say("a look%s", all ? " at all" : "");
    sim_disk_clone(&looked_at, &day.disk);
    looked_at.capacity = UINT64_MAX;
    for (uint32_t table = 0; table < DAY_TABLES; table++) {
        check_whole(day_names[table], day_roots[table]);
        check_whole(day_letters[table], day_letter_roots[table]);
        check_table((enum day_table)table, all);
    }
    sim_disk_deinit(&looked_at);
}

/* ---- trouble ---- */

/* Calls fail in a bad minute. */
static void before_call(void *user, struct sim_disk *disk)
{
    (void)user;
    if (trouble.calls > 0 && day_now() < trouble.calls_ms && day_chance(trouble.calls)) {
        tn_rc rc = day_chance(2) ? TN_FULL : TN_IO;
        (day_chance(2) ? sim_disk_fail_call : sim_disk_fail_call_late)(disk, disk->calls + 1, rc);
    }
}

static void end_soon(bool cuts)
{
    trouble.cuts = cuts;
    trouble.cut_due = true;
    day_say("%s in some calls", cuts ? "the power goes" : "a kill");
    sim_disk_cut_at(&day.disk, day.disk.calls + 1 + day_below(day_chance(3) ? 600 : 60));
}

static void cut(void)
{
    end_soon(true);
}

static void kill_it(void)
{
    end_soon(false);
}

static void fill_disk(void)
{
    uint64_t room = day_below(ROOM_MAX);
    trouble.room_ms = day_now() + day_below(day_chance(4) ? 2 * DAY_HOUR : 10 * DAY_MINUTE);
    sim_disk_capacity(&day.disk, sim_disk_used(&day.disk) + room);
    day_say("the disk has room for %d bytes", (int)room);
}

static void fail_once(void)
{
    tn_rc rc = day_chance(2) ? TN_FULL : TN_IO;
    uint64_t call = day.disk.calls + 1 + day_below(100);
    (day_chance(2) ? sim_disk_fail_call : sim_disk_fail_call_late)(&day.disk, call, rc);
    day_say("a call of the disk fails soon");
}

static void fail_often(void)
{
    trouble.calls_ms = day_now() + day_below(2 * DAY_MINUTE);
    trouble.calls = 2 + day_below(40);
    day_say("one call in %u fails", trouble.calls);
}

static void set_clock(void)
{
    const int64_t days_30 = INT64_C(30) * DAY_MS;
    const int64_t right = INT64_C(1704067200000) + day_now();
    const int64_t times[] = {right,
                             day.clock.wall_ms + days_30,
                             day.clock.wall_ms - days_30,
                             (int64_t)day_below(DAY_HOUR),
                             right - DAY_HOUR,
                             right + DAY_HOUR};
    int64_t to = times[day_below(COUNT(times))];
    to = to < 0 ? 0 : to;
    day_say("the wall clock goes from %" PRId64 " to %" PRId64, day.clock.wall_ms, to);
    sim_clock_set_ms(&day.clock, to);
}

static void bend_net(void)
{
    day.net.fault_percent = day_below(3) ? 0 : day_below(60);
    day.net.fault_at_max = 1 + day_below(day_chance(2) ? 200 : 6000);
    day.net.delay_ms_max = day_below(day_chance(3) ? 2000 : 40);
    day.net.fragment_max = day_chance(3) ? 1 + day_below(60) : SIM_WINDOW;
    day.net.bytes_a_ms = day_chance(4) ? 1 + day_below(5) : 0;
    day_say("the network: %u%% bad, %u ms", day.net.fault_percent, day.net.delay_ms_max);
}

static void vanish(void)
{
    uint32_t client = day_below(DAY_OTHER);
    day.clients[client].away_ms = day_now() + day_below(day_chance(3) ? 5 * DAY_HOUR : DAY_MINUTE);
    day_say("client %u vanishes", client);
}

static void sleep_a_while(void)
{
    int64_t ms = day_below(DAY_HOUR);
    day_say("the machine sleeps for %d s", (int)(ms / 1000));
    sim_clock_advance_ms(&day.clock, ms);
}

static void stop_it(void)
{
    day_stop();
}

static void reload(void)
{
    if (day_process.up && !day_process.stopping) {
        day_process.reloads = true;
        day_stop();
    }
}

static void send_more(void)
{
    for (uint32_t client = 0; client < DAY_OTHER; client++) {
        uint32_t count = day_chance(2) ? 0 : day_below(day_chance(4) ? 40 : 8);
        uint32_t left = DAY_NUMBERS - 1 - day.clients[client].wanted;
        day.clients[client].wanted += count < left ? count : left;
    }
}

/* ---- another program ---- */

static tn_rc other_puts(struct tn_table *table, uint32_t number, struct tn_err *err)
{
    unsigned char packed[128];
    const struct tn_row_layout *layout = tn_table_layout(table);
    struct tn_value values[2] = {{.as.i64 = day_id(DAY_OTHER, number, 0)}, {.as.i64 = 1}};
    CHECK(tn_row_packed_size(layout, values) <= sizeof packed);
    struct tn_row row = {packed, tn_row_pack(layout, values, packed)};
    tn_rc rc;
    while ((rc = tn_table_put(table, row, TN_ROW_INSERT, err)) == TN_AGAIN) {
        rc = tn_table_turn(table, true, err);
        if (rc != TN_OK) {
            return rc;
        }
    }
    return rc == TN_OK ? tn_table_finish(table, 1, err) : rc;
}

static tn_rc other_compacts(struct tn_table *table, enum day_table which, struct tn_err *err)
{
    unsigned char bytes[64];
    struct tn_buf buf;
    tn_rc rc = TN_OK;
    tn_buf_init(&buf, bytes, sizeof bytes);
    tn_values_to_binary(NULL, NULL, 0, &buf);
    for (int32_t bucket = 0; rc == TN_OK && bucket < (which == DAY_LAST ? 1 : 2); bucket++) {
        while ((rc = tn_table_touch(table, tn_buf_bytes(&buf), bucket, err)) == TN_AGAIN) {
            rc = tn_table_turn(table, true, err);
            if (rc != TN_OK) {
                return rc;
            }
        }
    }
    return rc == TN_OK ? tn_table_finish(table, 0, err) : rc;
}

/* Between two calls of the daemon's, from another machine; where there is no daemon, from this one.
 * It may fail as the daemon may. */
static void other_writes(void)
{
    struct tn_err err = {0};
    struct tn_table *table;
    struct day_client *client = &day.clients[DAY_OTHER];
    bool compacts = day_chance(2);
    if (day.disk.off || client->wanted == DAY_NUMBERS - 1) {
        return;
    }
    uint32_t number = client->wanted + !compacts;
    enum day_table which =
        compacts ? (enum day_table)(DAY_SUM + day_below(3)) : day_table_of(DAY_OTHER, number);
    client->wanted = number;
    struct tn_table_spec spec = {.name = day_names[which],
                                 .user = day_process.up ? "somebody" : NULL,
                                 .identifier = day_process.up ? ++trouble.other_id : -1,
                                 .compact = true,
                                 .dedicated = compacts,
                                 .full = compacts};
    day_start_engine(&day_engines[1], &day.disk, random_next(&day.random));
    tn_rc rc = tn_table_open(&day_engines[1].env, &spec, &table, &err);
    if (rc == TN_OK) {
        rc = compacts ? other_compacts(table, which, &err) : other_puts(table, number, &err);
        tn_table_close(table);
    }
    if (!compacts) {
        trouble.others[number] = rc == TN_OK ? DAY_ONCE : DAY_MAYBE;
    }
    day_say("another program %s %s: %s", compacts ? "compacts" : "writes", day_names[which],
            rc == TN_OK ? "ok" : err.text);
    if (rc != TN_OK && rc != TN_IO && rc != TN_FULL && rc != TN_CONFLICT) {
        DAY_BAD("another program: %s", err.text);
    }
}

/* ---- a day ---- */

static const struct {
    uint32_t weight;
    void (*run)(void);
} events[] = {
    {6, cut},       {6, kill_it},   {3, stop_it},       {3, reload},
    {4, fill_disk}, {4, fail_once}, {2, fail_often},    {4, set_clock},
    {5, bend_net},  {6, vanish},    {3, sleep_a_while}, {8, other_writes},
};

static void draw_event(void)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < COUNT(events); i++) {
        sum += events[i].weight;
    }
    uint32_t at = day_below(sum);
    size_t i = 0;
    for (; at >= events[i].weight; i++) {
        at -= events[i].weight;
    }
    events[i].run();
}

/* The cut that was asked for has come, or has to. */
static void end_now(void)
{
    bool power = trouble.cuts;
    trouble.cut_due = false;
    if (power) {
        day_cut();
    } else {
        day_kill();
    }
    if (day_chance(2)) {
        look(false);
    }
}

static void make_room_in_time(void)
{
    if (trouble.room_ms > 0 && day_now() >= trouble.room_ms) {
        day_say("the disk has room again");
        trouble.room_ms = 0;
        sim_disk_capacity(&day.disk, UINT64_MAX);
    }
}

static void turn(int64_t until_ms)
{
    int64_t wait = until_ms - day_now();
    wait = wait > 0 ? wait : 0;
    make_room_in_time();
    day.disk.now_ms = day.clock.wall_ms;
    day_http_steps();
    day_socket_steps();
    day_broker_step();
    day_file_step();
    day_turn_process(&wait);
    if (day.disk.off) {
        end_now();
        return;
    }
    if (!day_process.up) {
        int64_t start = day_process.start_ms - day_now();
        wait = start < wait ? start > 0 ? start : 0 : wait;
    }
    (void)sim_net_wait(&day.net, wait);
}

static bool all_answered(void)
{
    for (uint32_t client = 0; client < DAY_MQTT; client++) {
        if (day.clients[client].acked < day.clients[client].wanted) {
            return false;
        }
    }
    return day_broker_is_over();
}

static void calm_down(void)
{
    day_say("nothing goes wrong any more");
    day.calm = true;
    if (trouble.cut_due) {
        end_now();
    }
    trouble.room_ms = 0;
    trouble.calls = 0;
    day.disk.fail_call = 0;
    sim_disk_capacity(&day.disk, UINT64_MAX);
    day.net.fault_percent = 0;
    day.net.delay_ms_max = 20;
    day.net.fragment_max = SIM_WINDOW;
    day.net.bytes_a_ms = 0;
    for (uint32_t client = 0; client < DAY_CLIENTS; client++) {
        day.clients[client].away_ms = 0;
    }
    reload();
}

/* The process is started without sources, and ends: what the journal had is in the tables, if
 * nothing came between. */
static bool settle(void)
{
    day_process.alone = true;
    day_process.whole = false;
    day_process.start_ms = day_now();
    for (uint32_t turns = 0; day_process.alone; turns++) {
        CHECK(turns < TURNS_MAX);
        turn(day_now() + DAY_MINUTE);
        if (!day_process.up && day_process.stopping) {
            day_process.alone = false;
        }
    }
    return day_process.whole;
}

/* All that was acknowledged so far. */
static void look_in_between(void)
{
    if (trouble.cut_due) {
        end_now();
    }
    for (day_stop(); day_process.up;) {
        turn(day_now() + DAY_MINUTE);
    }
    if (settle()) {
        look(true);
    }
}

static void end_day(void)
{
    int64_t until = day_now() + CALM_MS;
    calm_down();
    while (!all_answered()) {
        if (day_now() > until) {
            DAY_BAD("not all is answered, though nothing is wrong any more");
        }
        turn(day_now() + DAY_MINUTE);
    }
    if (day_chance(2)) {
        day_kill();
    }
    day_stop();
    while (day_process.up) {
        turn(day_now() + DAY_MINUTE);
    }
    CHECK(settle());
    look(true);
}

static void begin(uint64_t seed)
{
    day_open_world(seed, &base);
    memset(&trouble, 0, sizeof trouble);
    memset(&day_process, 0, sizeof day_process);
    sim_disk_watch(&day.disk, before_call, NULL);
    day_http_open();
    day_socket_open();
    day_broker_open();
    day_file_open();
}

static void check_mallocs(uint64_t before)
{
    if (COUNTS_MALLOC && malloc_calls - sim_mallocs != before) {
        DAY_BAD("%" PRIu64 " calls of malloc", malloc_calls - sim_mallocs - before);
    }
}

/* A number that another run with the same seed ends with, too. */
static uint64_t run_day(uint64_t seed)
{
    uint64_t mallocs = malloc_calls - sim_mallocs;
    begin(seed);
    if (day_chance(3)) { /* no battery; and the right time comes with the network */
        sim_clock_set_ms(&day.clock, day_below(DAY_MINUTE));
    }
    for (int64_t next = 0; day_now() < DAY_MS;) {
        if (day_now() >= next) {
            uint32_t far = day_below(10);
            send_more();
            if (day_chance(40)) {
                look_in_between();
            } else {
                draw_event();
            }
            next = day_now() + day_below(far < 5   ? 5 * DAY_SECOND
                                         : far < 9 ? 20 * DAY_MINUTE
                                                   : 3 * DAY_HOUR);
        }
        turn(next);
    }
    end_day();
    check_mallocs(mallocs);
    uint64_t end = day.random ^ (uint64_t)day.clock.passed_ns ^ day.disk.calls;
    day_close_world();
    return end;
}

/* ---- tests ---- */

static void make_base(void)
{
    struct bed_engine *engine = &day_engines[0];
    sim_disk_init(&base, DISK_SIZE);
    for (uint32_t t = 0; t < DAY_TABLES; t++) {
        bed_engine_start(engine, &base.io, 1);
        bed_make_table(engine, day_names[t], schemas[t]);
        bed_engine_start(engine, &base.io, 1);
        open_once(engine, day_names[t]);
    }
    sim_disk_kill(&base);
}

static void a_day_loses_nothing_and_doubles_nothing(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(40, 1);
    uint32_t days = 0;
    make_base();
    do {
        uint64_t end = run_day(seed + days);
        if (days++ == 0 && !day.traces && run_day(seed) != end) {
            DAY_BAD("the same seed makes two different days");
        }
    } while (seconds_now() < until);
    (void)printf("%u days: %" PRIu64 " starts, %" PRIu64 " cuts, %" PRIu64 " kills, %" PRIu64
                 " stops, %" PRIu64 " failures, %" PRIu64 " reloads\n",
                 days, day_counts.starts, day_counts.cuts, day_counts.kills, day_counts.stops,
                 day_counts.failures, day_counts.reloads);
    sim_disk_deinit(&base);
}

/* Once it has started; a day shows the same of all its starts. */
static void a_steady_hour_with_all_sources_calls_no_malloc(void)
{
    make_base();
    begin(given_number("SEED", 1));
    day.kept = DAY_TABLES;
    day.calm = true;
    while (!day_process.sources_open) {
        turn(day_now() + DAY_SECOND);
    }
    uint64_t mallocs = malloc_calls - sim_mallocs;
    uint64_t starts = day_counts.starts;
    for (int64_t next = 0, end = day_now() + DAY_HOUR; day_now() < end; turn(next)) {
        if (day_now() >= next) {
            send_more();
            next = day_now() + day_below(2 * DAY_MINUTE);
        }
    }
    check_mallocs(mallocs);
    CHECK(day_counts.starts == starts);
    for (uint32_t client = 0; client < DAY_MQTT; client++) {
        CHECK(day.clients[client].acked > 0);
    }
    CHECK(day_broker_is_done(1));
    for (uint32_t i = 0; i < DAY_TABLES; i++) {
        CHECK(day_process.keepers[i].commits > 1);
    }
    day_kill();
    day_close_world();
    sim_disk_deinit(&base);
}

static const struct test tests[] = {
    TEST(a_day_loses_nothing_and_doubles_nothing),
    TEST(a_steady_hour_with_all_sources_calls_no_malloc),
};

/* Whatever ends the program, this is how to see it again. */
static void say_how_to_repeat(void)
{
    char text[96];
    int size = snprintf(text, sizeof text, "repeat it: make sim SEED=%" PRIu64 "\n", day.seed);
    (void)fflush(stdout);
    (void)!write(STDERR_FILENO, text, (size_t)size);
}

static void on_signal(int number)
{
    say_how_to_repeat();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

#ifdef __SANITIZE_ADDRESS__
void __sanitizer_set_death_callback(void (*callback)(void));
#endif

int main(int argc, char **argv)
{
    static char out[1 << 16]; /* stdout takes none of malloc's */
    (void)setvbuf(stdout, out, _IOFBF, sizeof out);
    (void)signal(SIGABRT, on_signal);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_set_death_callback(say_how_to_repeat);
#else
    (void)signal(SIGSEGV, on_signal);
#endif
    day_input = malloc(DAY_INPUT_SIZE);
    CHECK(day_input != NULL);
    int code = bed_run_tests(argc, argv, tests, COUNT(tests), day_engines, COUNT(day_engines));
    free(day_input);
    return code;
}
