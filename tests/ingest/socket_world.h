/* socket_world: a socket source on one host of a simulated network, and a hub of the test that has
 * no room, refuses, and loses what isn't durable. A row is a line as it came; what it holds is
 * "SENDER NUMBER ...". */
#pragma once

#include <stdalign.h>

#include "check.h"
#include "given.h"
#include "ingest/socket_source.h"
#include "random.h"
#include "sim/net.h"

enum {
    ENTRIES_MAX = 1 << 13,
    ROWS_MAX = 1 << 14,
    ROW_TEXT = 40,
    NAME_MAX = 64,
    SOURCES_MAX = 8,
    SOURCE_SIZE = 128 * 1024,
    LOG_SIZE = 1 << 16,
    BLOCK = 512,
    STEPS_MAX = 400000,
    PORT = 7081,
};

struct row {
    uint32_t entry;
    uint64_t cut_size;
    size_t size;
    char text[ROW_TEXT]; /* its beginning */
};

struct entry {
    uint64_t place;
    uint32_t row_count; /* of the hub, with it */
    char sender[NAME_MAX];
    unsigned char memo[16];
    size_t memo_size;
};

static struct {
    struct tn_hub hub; /* first */
    struct entry entries[ENTRIES_MAX];
    uint32_t count;
    uint32_t durable_count;
    struct row rows[ROWS_MAX];
    uint32_t row_count;
    bool full;
    bool troubled;
    bool refuses; /* messages with a row that begins with "refuse" */
} hub;

static struct {
    struct sim_clock clock;
    struct sim_net net;
    struct tn_net *gateway;
    struct tn_net *far;
    uint64_t random;
    bool calm;
    struct tn_socket_source *source;
    uint32_t opened; /* sources since the process began */
    struct tn_socket_source_spec spec;
    struct tn_socket_source_status sum; /* of sources that ended */
} world;

static struct tn_log events;
static struct tn_err err;

static bool chance(uint32_t in)
{
    return random_below(&world.random, in) == 0;
}

/* ---- the hub ---- */

static void keep_row(struct tn_bytes line, uint64_t cut_size)
{
    CHECK(hub.row_count < ROWS_MAX);
    struct row *row = &hub.rows[hub.row_count++];
    *row = (struct row){.entry = hub.count, .cut_size = cut_size, .size = line.size};
    size_t size = line.size < ROW_TEXT - 1 ? line.size : ROW_TEXT - 1;
    memcpy(row->text, line.data, size);
}

static bool has(struct tn_bytes bytes, const char *text)
{
    return memmem(bytes.data, bytes.size, text, strlen(text)) != NULL;
}

static void keep_rows(struct tn_message *message)
{
    struct tn_bytes rest = message->bytes;
    CHECK(rest.size > 0 && rest.size <= hub.hub.size_max);
    if (message->cut_size > 0) {
        CHECK(message->cut_size > rest.size && !has(rest, "\n"));
        keep_row(rest, message->cut_size);
        message->dead = 1;
        return;
    }
    CHECK(rest.data[rest.size - 1] == '\n');
    while (rest.size > 0) {
        size_t size = (size_t)((unsigned char *)memchr(rest.data, '\n', rest.size) - rest.data);
        if (size > 0) {
            keep_row((struct tn_bytes){rest.data, size}, 0);
            message->rows++;
        }
        rest.data += size + 1;
        rest.size -= size + 1;
    }
}

static tn_rc f_offer(struct tn_hub *self, struct tn_message *message, struct tn_err *why)
{
    CHECK(self == &hub.hub && (message->table || message->sender.size > 0) && !message->whole);
    CHECK((message->sender.size > 0) == (message->memo.size > 0));
    if (hub.full) {
        return tn_err_set(why, TN_AGAIN, 0, "no room");
    }
    if (message->table && hub.refuses && has(message->bytes, "refuse")) {
        return tn_err_set(why, TN_INVALID, 0, "not that one");
    }
    if (hub.troubled) {
        return tn_err_set(why, TN_FULL, 0, "no space left");
    }
    CHECK(hub.count < ENTRIES_MAX);
    struct entry *entry = &hub.entries[hub.count];
    uint64_t last = hub.count > 0 ? entry[-1].place : 0;
    *entry = (struct entry){.place = last + 1 + random_below(&world.random, 3)};
    CHECK(message->sender.size < NAME_MAX && message->memo.size <= sizeof entry->memo);
    if (message->sender.size > 0) {
        memcpy(entry->sender, message->sender.data, message->sender.size);
        memcpy(entry->memo, message->memo.data, message->memo.size);
        entry->memo_size = message->memo.size;
    }
    if (message->table) {
        CHECK(strcmp(message->table, "plant.readings") == 0);
        keep_rows(message);
    }
    entry->row_count = hub.row_count;
    hub.count++;
    message->place = entry->place;
    return TN_OK;
}

static tn_rc f_sender(struct tn_hub *self, struct tn_bytes name, struct tn_bytes *memo,
                      uint64_t *place)
{
    CHECK(self == &hub.hub);
    for (uint32_t i = hub.count; i-- > 0;) {
        const struct entry *entry = &hub.entries[i];
        if (tn_bytes_equal(name, tn_bytes_of(entry->sender))) {
            *memo = (struct tn_bytes){entry->memo, entry->memo_size};
            *place = entry->place;
            return TN_OK;
        }
    }
    return TN_ABSENT;
}

static const struct tn_hub_vtable hub_vtable = {.offer = f_offer, .sender = f_sender};

static void open_hub(size_t size_max)
{
    memset(&hub, 0, sizeof hub);
    hub.hub = (struct tn_hub){.vtable = &hub_vtable, .size_max = size_max};
}

static void make_durable(uint32_t count)
{
    if (count > hub.durable_count) {
        hub.durable_count = count;
        tn_hub_say_durable(&hub.hub, hub.entries[count - 1].place);
    }
}

static __attribute__((unused)) void step_hub(void)
{
    if (chance(world.calm ? 2 : 6)) {
        uint32_t waits = hub.count - hub.durable_count;
        make_durable(hub.durable_count + random_below(&world.random, waits + 1));
    }
    if (hub.full && (world.calm || chance(8))) {
        hub.full = false;
        tn_hub_say_room(&hub.hub);
    } else if (!world.calm && chance(15)) {
        hub.full = true;
    }
    hub.troubled = !world.calm && (hub.troubled ? !chance(20) : chance(80));
}

/* What was on its way to the disk may have got there; what is there after a crash is durable. */
static void crash_hub(void)
{
    hub.count = hub.durable_count + random_below(&world.random, hub.count - hub.durable_count + 1);
    hub.durable_count = hub.count;
    hub.row_count = hub.count > 0 ? hub.entries[hub.count - 1].row_count : 0;
    hub.hub.durable = hub.count > 0 ? hub.entries[hub.count - 1].place : 0;
    hub.hub.listeners = NULL;
    hub.full = false;
}

/* Rows that begin with the text; `durable`: of these only the ones that are. */
static __attribute__((unused)) uint32_t count_rows(const char *begin, bool durable)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < hub.row_count; i++) {
        count += (!durable || hub.rows[i].entry < hub.durable_count) &&
                 strncmp(hub.rows[i].text, begin, strlen(begin)) == 0;
    }
    return count;
}

/* ---- the process ---- */

static void open_source(void)
{
    static alignas(16) unsigned char memory[SOURCES_MAX][SOURCE_SIZE];
    struct tn_arena arena;
    size_t size = tn_socket_source_memory(&world.spec);
    CHECK(size <= SOURCE_SIZE);
    tn_arena_init(&arena, memory[world.opened++ % SOURCES_MAX], size);
    tn_rc rc = tn_socket_source_open(&world.source, &world.spec, &arena, &err);
    CHECK_OK(rc, err);
    CHECK(tn_socket_source_port(world.source) == PORT);
}

static struct tn_socket_source_status status_now(void)
{
    struct tn_socket_source_status status;
    tn_socket_source_status(world.source, &status);
    return status;
}

static void count_source(void)
{
    struct tn_socket_source_status status = status_now();
    world.sum.connections += status.connections;
    world.sum.replaced += status.replaced;
    world.sum.lines += status.lines;
    world.sum.too_long += status.too_long;
    world.sum.repeated += status.repeated;
    world.sum.refused += status.refused;
    world.sum.waits += status.waits;
}

/* A world without chances: links are fine, and the hub takes and keeps everything at once when the
 * test says so. */
static void open_world(uint64_t seed)
{
    static alignas(16) unsigned char pool_memory[2][4 * (BLOCK + 8)];
    static struct tn_pool pools[2];
    static unsigned char log_memory[LOG_SIZE];
    memset(&world, 0, sizeof world);
    world.random = seed;
    world.calm = true;
    check_seed = seed;
    tn_log_init(&events, log_memory, sizeof log_memory, NULL, NULL);
    sim_clock_init(&world.clock, seed);
    sim_net_init(&world.net, &world.clock, seed);
    for (int i = 0; i < 2; i++) {
        tn_pool_init(&pools[i], pool_memory[i], sizeof pool_memory[i], BLOCK);
    }
    world.gateway = sim_net_host(&world.net, "gateway", &pools[0]);
    world.far = sim_net_host(&world.net, "far", &pools[1]);
    open_hub(4096);
    world.spec = (struct tn_socket_source_spec){.name = "socket.plant",
                                                .table = "plant.readings",
                                                .input = TN_INPUT_JSON,
                                                .net = world.gateway,
                                                .hub = &hub.hub,
                                                .log = &events,
                                                .at = {"127.0.0.1", PORT},
                                                .connections = 4,
                                                .line_size_max = 100};
}

static void turn_calm(void)
{
    (void)sim_net_turn(&world.net);
}

static void turns(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        turn_calm();
    }
}

static void stop_source(void (*turn)(void))
{
    tn_socket_source_stop(world.source);
    for (uint32_t i = 0; !tn_socket_source_stopped(world.source); i++) {
        CHECK(i < STEPS_MAX);
        turn();
    }
    count_source();
}

static void close_net(void)
{
    CHECK(world.gateway->streams == 0 && world.gateway->under_way == 0);
    while (world.gateway->under_way + world.far->under_way > 0) {
        CHECK(sim_net_turn(&world.net) >= 0);
    }
    sim_net_deinit(&world.net);
}
