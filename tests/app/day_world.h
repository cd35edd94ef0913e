/* day_world: what all in a day in the simulator share: the machine's disk, the network, the clock,
 * and what clients send.
 *
 * A client's messages are numbered from 1; client and number say which table a message is for, and
 * the rows that it has. So what is in the tables in the end can be held against what was sent.
 *
 *     append, sum   {"id": client, number, row; "n": 1}     a row that is there twice shows
 *     last          {"id": client, number % 8, row; "n": number}     so does one out of its order
 *     count         {"id": client, number % 8, row; "n": 1}     day.lua counts how many there were
 *     spare         as sum, of HTTP alone; a table that the configuration has or hasn't
 *     bad_...       letters: {"id": client, number, 0; "n": "bad"}
 */
#pragma once

#define BED_SCALE 22
#include "../table/bed.h"

#include <stdarg.h>

#include "app/intake.h"
#include "given.h"
#include "sim/net.h"

enum day_table { DAY_APPEND, DAY_SUM, DAY_LAST, DAY_COUNT, DAY_SPARE, DAY_TABLES };

enum {
    DAY_NUMBERS = 600, /* of a client */
    DAY_ROWS = 3,      /* of a message */
    DAY_LASTS = 8,
    DAY_PORT_HTTP = 7080,
    DAY_PORT_SOCKET = 7081,
    DAY_PORT_BROKER = 1883,
    DAY_TEXT = 512,
    DAY_BLOCK = 512,
    DAY_BLOCKS = 32,
    DAY_SECOND = 1000,
    DAY_MINUTE = 60 * DAY_SECOND,
    DAY_HOUR = 60 * DAY_MINUTE,
};

enum day_client_id {
    DAY_HTTP_NUMBERS, /* X-Sender and X-Sequence */
    DAY_HTTP_KEYS,    /* Idempotency-Key */
    DAY_HTTP_NOBODY,
    DAY_SOCKET_NAMED,
    DAY_SOCKET_CERTAIN, /* named, and says which line comes first */
    DAY_SOCKET_NOBODY,
    DAY_FILE,
    DAY_MQTT,
    DAY_OTHER, /* another program that writes on the same disk */
    DAY_CLIENTS,
};

enum day_promise { DAY_ONCE, DAY_AT_LEAST, DAY_MAYBE };

struct day_client {
    uint32_t wanted; /* numbers to be sent so far */
    uint32_t acked;  /* of them, from the first on; of MQTT the broker knows */
    int64_t away_ms; /* until when it doesn't connect */
};

static const char *const day_names[DAY_TABLES] = {"db.append", "db.sum", "db.last", "db.count",
                                                  "db.spare"};
static const char *const day_roots[DAY_TABLES] = {"db.db/append", "db.db/sum", "db.db/last",
                                                  "db.db/count", "db.db/spare"};
static const char *const day_letters[DAY_TABLES] = {"db.bad_append", "db.bad_sum", "db.bad_last",
                                                    "db.bad_count", "db.bad_spare"};
static const char *const day_letter_roots[DAY_TABLES] = {
    "db.db/bad_append", "db.db/bad_sum", "db.db/bad_last", "db.db/bad_count", "db.db/bad_spare"};

static struct {
    uint64_t seed;
    uint64_t random;
    bool traces;
    enum day_table file_table; /* where rows of the file go */
    bool calm;                 /* nothing goes wrong any more */
    uint32_t kept;             /* tables that the configuration has, the first ones */
    struct sim_clock clock;
    struct sim_disk disk;
    struct sim_net net;
    struct tn_net *gateway;
    struct tn_net *far;    /* senders */
    struct tn_net *broker; /* and what serves them */
    struct day_client clients[DAY_CLIENTS];
} day;

static bool day_chance(uint32_t in)
{
    return random_below(&day.random, in) == 0;
}

static uint32_t day_below(uint32_t count)
{
    return random_below(&day.random, count);
}

static int64_t day_now(void)
{
    return day.clock.passed_ns / 1000000;
}

static __attribute__((format(printf, 1, 2))) void day_say(const char *format, ...)
{
    va_list args;
    int64_t ms = day_now();
    if (!day.traces) {
        return;
    }
    (void)printf("%02d:%02d:%02d.%03d ", (int)(ms / DAY_HOUR), (int)(ms / DAY_MINUTE % 60),
                 (int)(ms / DAY_SECOND % 60), (int)(ms % DAY_SECOND));
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    (void)putchar('\n');
}

/* The day is over, and bad. */
#define DAY_BAD FAIL

/* ---- what is sent ---- */

static uint32_t day_draw(uint32_t client, uint32_t number, uint32_t count)
{
    uint64_t random = day.seed * 31 + ((uint64_t)client << 32 | number);
    return random_below(&random, count);
}

static bool day_is_socket(uint32_t client)
{
    return client >= DAY_SOCKET_NAMED && client <= DAY_SOCKET_NOBODY;
}

static bool day_is_http(uint32_t client)
{
    return client <= DAY_HTTP_NOBODY;
}

static enum day_table day_table_of(uint32_t client, uint32_t number)
{
    return day_is_socket(client) ? DAY_SUM
           : client == DAY_FILE  ? day.file_table
           : client == DAY_OTHER
               ? (enum day_table)day_draw(client, number, DAY_LAST)
               : (enum day_table)day_draw(client, number,
                                          day_is_http(client) ? DAY_TABLES : DAY_SPARE);
}

static uint32_t day_rows_of(uint32_t client, uint32_t number)
{
    return day_is_http(client) ? 1 + day_draw(client, number ^ 0x5555, DAY_ROWS) : 1;
}

/* Few keys, which come again and again. */
static bool day_is_slotted(enum day_table table)
{
    return table == DAY_LAST || table == DAY_COUNT;
}

/* One that can't be taken: a letter. HTTP has none: it would refuse the whole message. */
static bool day_is_bad(uint32_t client, uint32_t number)
{
    return (day_is_socket(client) || client == DAY_FILE || client == DAY_MQTT) && number % 13 == 6;
}

static int64_t day_id(uint32_t client, uint32_t number, uint32_t row)
{
    return ((int64_t)client * DAY_NUMBERS + number) * DAY_ROWS + row;
}

static void day_put_rows(struct tn_buf *out, uint32_t client, uint32_t number)
{
    enum day_table table = day_table_of(client, number);
    uint32_t key = day_is_slotted(table) ? number % DAY_LASTS : number;
    if (day_is_bad(client, number)) {
        tn_buf_format(out, "{\"id\":%" PRId64 ",\"n\":\"bad\"}\n", day_id(client, number, 0));
        return;
    }
    for (uint32_t row = 0; row < day_rows_of(client, number); row++) {
        tn_buf_format(out, "{\"id\":%" PRId64 ",\"n\":%u}\n", day_id(client, key, row),
                      table == DAY_LAST ? number : 1);
    }
}

/* ---- the world ---- */

static void day_open_world(uint64_t seed, const struct sim_disk *base)
{
    static _Alignas(16) unsigned char memory[3][DAY_BLOCKS * (DAY_BLOCK + 8)];
    static struct tn_pool pools[3];
    memset(&day, 0, sizeof day);
    check_seed = seed;
    day.seed = seed;
    day.random = seed;
    day.kept = day_chance(2) ? DAY_TABLES : DAY_SPARE;
    day.file_table = (enum day_table)day_draw(DAY_FILE, (uint32_t)seed, DAY_SPARE);
    day.traces = given_number("TRACE", 0) > 0;
    sim_clock_init(&day.clock, seed);
    sim_disk_clone(&day.disk, base);
    sim_net_init(&day.net, &day.clock, seed);
    for (int i = 0; i < 3; i++) {
        tn_pool_init(&pools[i], memory[i], sizeof memory[i], DAY_BLOCK);
    }
    day.gateway = sim_net_host(&day.net, "gateway", &pools[0]);
    day.far = sim_net_host(&day.net, "far", &pools[1]);
    day.broker = sim_net_host(&day.net, "broker", &pools[2]);
}

/* The machine's process is gone; buffers with it. */
static void day_kill_gateway(bool silent)
{
    static _Alignas(16) unsigned char memory[DAY_BLOCKS * (DAY_BLOCK + 8)];
    static struct tn_pool pool;
    tn_pool_init(&pool, memory, sizeof memory, DAY_BLOCK);
    day.gateway->buffers = &pool;
    sim_net_kill(&day.net, day.gateway, silent);
}

static void day_close_world(void)
{
    day_kill_gateway(true);
    sim_net_kill(&day.net, day.far, true);
    sim_net_kill(&day.net, day.broker, true);
    sim_net_deinit(&day.net);
    sim_disk_deinit(&day.disk);
}
