/* http_world: a server of HTTP with a hub of the test, on one machine of a simulated network. The
 * hub takes any text: a line is a row, and one that holds "bad" refuses its message. It has no room
 * when it's told so, gets durable when it's told so, and loses what isn't when the process ends. */
#pragma once

#include "ingest/http_server.h"

#include <stdalign.h>

#include "check.h"
#include "ingest/http_memo.h"
#include "random.h"
#include "sim/net.h"

enum {
    HUB_ENTRIES_MAX = 8192,
    HUB_TEXT_MAX = 4096,
    WORLD_CONNECTIONS = 3,
    WORLD_BODY_MAX = 4096,
    WORLD_TIMEOUT_MS = 1000,
    WORLD_IDLE_MS = 3000,
    WORLD_ANSWER_MS = 2000,
    WORLD_PORT = 7080,
};

struct hub_entry {
    uint64_t place;
    enum tn_input input;
    char table[32];
    char sender[TN_SENDER_SIZE_MAX];
    unsigned char memo[TN_HTTP_MEMO_SIZE];
    size_t memo_size;
    uint64_t rows;
    char begin[48]; /* of its bytes */
};

static struct {
    struct tn_hub hub; /* first */
    struct hub_entry entries[HUB_ENTRIES_MAX];
    uint32_t count;
    uint32_t offers;
    bool full;     /* no room */
    bool troubled; /* the table takes nothing */
} fake;

static struct {
    struct sim_clock clock;
    struct sim_net net;
    struct tn_net *near; /* the server's machine */
    struct tn_net *far;
    struct tn_ops ops;
    struct tn_http_server *server;
    struct tn_http_server_spec spec;
    uint64_t random;
    uint32_t steps_max; /* in a turn */
} world;

static inline uint64_t seed_of_test(void)
{
    const char *text = getenv("SEED");
    return text ? strtoull(text, NULL, 10) : 1;
}

static inline bool chance(uint32_t in)
{
    return random_below(&world.random, in) == 0;
}

/* ---- the hub ---- */

static inline tn_rc fake_refuse(struct tn_message *message, uint64_t rows, struct tn_err *err)
{
    message->line = rows;
    return tn_err_set(err, TN_INVALID, 0, "line %llu: column temp: \"bad\xff\" is no number",
                      (unsigned long long)rows);
}

static inline tn_rc fake_count(struct tn_message *message, uint64_t *rows, struct tn_err *err)
{
    struct tn_bytes rest = message->bytes;
    *rows = 0;
    while (rest.size > 0) {
        const unsigned char *end = memchr(rest.data, '\n', rest.size);
        size_t size = end ? (size_t)(end - rest.data) + 1 : rest.size;
        ++*rows;
        if (memmem(rest.data, size, "bad", 3)) {
            return fake_refuse(message, *rows, err);
        }
        rest.data += size;
        rest.size -= size;
    }
    return TN_OK;
}

static inline void fake_keep(const struct tn_message *message, uint64_t rows)
{
    CHECK(fake.count < HUB_ENTRIES_MAX);
    struct hub_entry *entry = &fake.entries[fake.count];
    uint64_t last = fake.count > 0 ? entry[-1].place : 0;
    *entry = (struct hub_entry){
        .place = last + 1 + random_below(&world.random, 3), .input = message->input, .rows = rows};
    (void)snprintf(entry->table, sizeof entry->table, "%s", message->table);
    (void)snprintf(entry->begin, sizeof entry->begin, "%.*s", (int)message->bytes.size,
                   (const char *)message->bytes.data);
    (void)snprintf(entry->sender, sizeof entry->sender, "%.*s", (int)message->sender.size,
                   (const char *)message->sender.data);
    CHECK(message->memo.size <= sizeof entry->memo);
    CHECK((message->memo.size > 0) == (message->sender.size > 0));
    if (message->memo.size > 0) {
        memcpy(entry->memo, message->memo.data, message->memo.size);
    }
    entry->memo_size = message->memo.size;
    fake.count++;
}

static inline tn_rc fake_offer(struct tn_hub *hub, struct tn_message *message, struct tn_err *err)
{
    uint64_t rows = 0;
    CHECK(hub == &fake.hub && message->whole && message->bytes.size <= hub->size_max);
    CHECK(strcmp(message->source, "http") == 0 && message->topic.size == 0);
    fake.offers++;
    if (fake.full) {
        return tn_err_set(err, TN_AGAIN, 0, "no room");
    }
    if (fake.troubled) {
        return tn_err_set(err, TN_FULL, 0, "table plant.readings: no space left");
    }
    if (strcmp(message->table, "plant.readings") != 0) {
        return tn_err_set(err, TN_ABSENT, 0,
                          "there is no table '%s'; the nearest is plant.readings", message->table);
    }
    tn_rc rc = fake_count(message, &rows, err);
    if (rc == TN_OK) {
        fake_keep(message, rows);
        message->place = fake.entries[fake.count - 1].place;
        message->rows = (uint32_t)rows;
    }
    return rc;
}

static inline tn_rc fake_sender(struct tn_hub *hub, struct tn_bytes name, struct tn_bytes *memo,
                                uint64_t *place)
{
    CHECK(hub == &fake.hub);
    for (uint32_t i = fake.count; i-- > 0;) {
        const struct hub_entry *entry = &fake.entries[i];
        if (tn_bytes_equal(name, tn_bytes_of(entry->sender))) {
            *memo = (struct tn_bytes){entry->memo, entry->memo_size};
            *place = entry->place;
            return TN_OK;
        }
    }
    return TN_ABSENT;
}

static inline void fake_sync(uint32_t count)
{
    if (count > 0 && fake.entries[count - 1].place > fake.hub.durable) {
        tn_hub_say_durable(&fake.hub, fake.entries[count - 1].place);
    }
}

static inline void fake_make_room(void)
{
    fake.full = false;
    tn_hub_say_room(&fake.hub);
}

/* Of what isn't durable, any part from the front is there after a restart. */
static inline void fake_lose(void)
{
    uint32_t kept = 0;
    while (kept < fake.count && fake.entries[kept].place <= fake.hub.durable) {
        kept++;
    }
    fake.count = kept + random_below(&world.random, fake.count - kept + 1);
    fake.hub.listeners = NULL;
    fake.hub.durable = fake.count > 0 ? fake.entries[fake.count - 1].place : 0;
    fake.full = false;
}

static inline bool fake_is_durable(const struct hub_entry *entry)
{
    return entry->place <= fake.hub.durable;
}

/* ---- the server ---- */

static inline int world_fill(void *user, struct tn_buf *out)
{
    const char *text = user;
    tn_buf_text(out, text);
    return strstr(text, "ill") ? 503 : 200;
}

static inline void world_start(void)
{
    static alignas(16) unsigned char memory[256 * 1024];
    static struct tn_arena arena;
    struct tn_err err;
    size_t size = tn_http_server_memory(&world.spec);
    CHECK(size <= sizeof memory);
    tn_arena_init(&arena, memory, size);
    world.ops = (struct tn_ops){NULL, NULL};
    tn_rc rc = tn_http_server_open(&world.server, &world.spec, &arena, &err);
    CHECK_OK(rc, err);
}

static inline void world_init(uint64_t seed, uint32_t delay_ms_max, const char *token)
{
    static const struct tn_hub_vtable vtable = {.offer = fake_offer, .sender = fake_sender};
    static alignas(16) unsigned char pools[2][4096];
    static struct tn_pool buffers[2];
    static char well[] = "{\"health\":\"well\"}";
    static char ill[] = "ill";
    static char metrics[] = "tarn_rows 5\n";
    static char done[] = "done";
    static char told[] = "told";
    static const struct tn_http_page pages[] = {
        {.path = "/health",
         .type = "application/json",
         .open = true,
         .fill = world_fill,
         .user = well},
        {.path = "/ready", .type = "text/plain", .open = true, .fill = world_fill, .user = ill},
        {.path = "/metrics",
         .type = "text/plain; version=0.0.4",
         .fill = world_fill,
         .user = metrics},
        {.path = "/deed", .type = "text/plain", .post = true, .fill = world_fill, .user = done},
        {.path = "/deed", .type = "text/plain", .fill = world_fill, .user = told},
    };
    check_seed = seed;
    sim_clock_init(&world.clock, seed);
    sim_net_init(&world.net, &world.clock, seed);
    world.net.delay_ms_max = delay_ms_max;
    world.random = seed;
    world.steps_max = 4;
    for (int i = 0; i < 2; i++) {
        tn_pool_init(&buffers[i], pools[i], sizeof pools[i], 512);
    }
    world.near = sim_net_host(&world.net, "gateway", &buffers[0]);
    world.far = sim_net_host(&world.net, "sender", &buffers[1]);
    fake.count = fake.offers = 0;
    fake.full = fake.troubled = false;
    fake.hub = (struct tn_hub){.vtable = &vtable, .size_max = WORLD_BODY_MAX};
    world.spec = (struct tn_http_server_spec){.net = world.near,
                                              .ops = &world.ops,
                                              .hub = &fake.hub,
                                              .at = {"127.0.0.1", WORLD_PORT},
                                              .token = token,
                                              .source = "http",
                                              .pages = pages,
                                              .page_count = COUNT(pages),
                                              .connections = WORLD_CONNECTIONS,
                                              .body_size_max = WORLD_BODY_MAX,
                                              .timeout_ms = WORLD_TIMEOUT_MS,
                                              .idle_ms = WORLD_IDLE_MS,
                                              .answer_ms_max = WORLD_ANSWER_MS};
    world_start();
}

static inline void world_deinit(void)
{
    sim_net_kill(&world.net, world.near, true);
    sim_net_kill(&world.net, world.far, true);
    sim_net_deinit(&world.net);
}

/* The process ends, and another begins. */
static inline void world_restart(void)
{
    sim_net_kill(&world.net, world.near, chance(3));
    fake_lose();
    world_start();
}

static inline void world_run(void)
{
    (void)tn_ops_run(&world.ops, (int)(1 + random_below(&world.random, world.steps_max)));
}

/* Time moves on only when nothing else can happen. */
static inline void world_turn(void)
{
    if (!world.ops.first) { /* else the server isn't done with this moment */
        (void)sim_net_turn(&world.net);
    }
}

static inline int64_t world_ms(void)
{
    return world.clock.passed_ns / 1000000;
}

/* ---- answers ---- */

struct answer {
    int status;
    char head[1024];
    char body[WORLD_BODY_MAX + 1];
    size_t size; /* of all of it */
};

/* False: it isn't whole yet. `bodiless`: it answers HEAD. */
static inline bool answer_read(const char *text, size_t size, bool bodiless, struct answer *answer)
{
    const char *end = memmem(text, size, "\r\n\r\n", 4);
    if (!end) {
        return false;
    }
    size_t head = (size_t)(end - text) + 4;
    CHECK(head < sizeof answer->head && memcmp(text, "HTTP/1.1 ", 9) == 0);
    memcpy(answer->head, text, head);
    answer->head[head] = 0;
    answer->status = (int)strtol(text + 9, NULL, 10);
    const char *length = strstr(answer->head, "Content-Length: ");
    CHECK(length || answer->status == 100);
    size_t body = length && !bodiless ? strtoul(length + 16, NULL, 10) : 0;
    CHECK(body < sizeof answer->body);
    if (size - head < body) {
        return false;
    }
    memcpy(answer->body, text + head, body);
    answer->body[body] = 0;
    answer->size = head + body;
    return true;
}
