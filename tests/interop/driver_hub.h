/* driver_hub: a file in the place of journal and tables, for drivers whose clients send: rows as
 * they came, and the memos of senders. It is durable when the file is replaced, every `commit_ms`.
 */
#pragma once

#include <signal.h>

#include "driver.h"
#include "ingest/hub.h"

enum { ROWS_MAX = 1 << 23, SENDERS_MAX = 64 };

struct sender {
    char name[TN_SENDER_SIZE_MAX + 1];
    unsigned char memo[TN_MEMO_SIZE_MAX];
    size_t memo_size;
    uint64_t place;
};

static struct {
    struct tn_hub hub; /* first */
    char rows[ROWS_MAX];
    size_t rows_size;
    uint64_t place;
    struct sender senders[SENDERS_MAX];
    uint32_t sender_count;
    const char *path;
    uint32_t commit_ms;
    struct tn_net *net;
    struct tn_request tick;
} state = {.commit_ms = 10};

static volatile sig_atomic_t stopping;

static void on_signal(int number)
{
    (void)number;
    stopping = 1;
}

/* ---- the file: "place N", "sender NAME PLACE MEMO" a line, an empty one, and the rows ---- */

static void save(void)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s.new", state.path);
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL);
    (void)fprintf(file, "place %llu\n", (unsigned long long)state.place);
    for (uint32_t i = 0; i < state.sender_count; i++) {
        const struct sender *sender = &state.senders[i];
        (void)fprintf(file, "sender %s %llu ", sender->name, (unsigned long long)sender->place);
        for (size_t k = 0; k < sender->memo_size; k++) {
            (void)fprintf(file, "%02x", sender->memo[k]);
        }
        (void)fputc('\n', file);
    }
    (void)fputc('\n', file);
    CHECK(fwrite(state.rows, 1, state.rows_size, file) == state.rows_size);
    CHECK(fclose(file) == 0 && rename(path, state.path) == 0);
}

static void load_sender(char *line)
{
    struct sender *sender = &state.senders[state.sender_count++];
    char *place = strchr(line, ' ');
    char *memo = place ? strchr(place + 1, ' ') : NULL;
    CHECK(memo && state.sender_count <= SENDERS_MAX);
    (void)snprintf(sender->name, sizeof sender->name, "%.*s", (int)(place - line), line);
    sender->place = strtoull(place, NULL, 10);
    for (memo++; *memo && *memo != '\n'; memo += 2) {
        char digits[3] = {memo[0], memo[1], 0};
        sender->memo[sender->memo_size++] = (unsigned char)strtoul(digits, NULL, 16);
    }
}

static void load(void)
{
    static char line[2 * TN_MEMO_SIZE_MAX + TN_SENDER_SIZE_MAX + 64];
    FILE *file = fopen(state.path, "rb");
    if (!file) {
        return;
    }
    while (fgets(line, sizeof line, file) && line[0] != '\n') {
        if (strncmp(line, "sender ", 7) == 0) {
            load_sender(line + 7);
        } else {
            state.place = strtoull(line + 6, NULL, 10);
        }
    }
    state.rows_size = fread(state.rows, 1, sizeof state.rows, file);
    state.hub.durable = state.place;
    (void)fclose(file);
}

/* ---- the hub ---- */

static struct sender *find_sender(struct tn_bytes name)
{
    for (uint32_t i = 0; i < state.sender_count; i++) {
        if (tn_bytes_equal(name, tn_bytes_of(state.senders[i].name))) {
            return &state.senders[i];
        }
    }
    return NULL;
}

static void keep_memo(const struct tn_message *message)
{
    struct sender *sender = find_sender(message->sender);
    if (!sender) {
        CHECK(state.sender_count < SENDERS_MAX);
        sender = &state.senders[state.sender_count++];
        (void)snprintf(sender->name, sizeof sender->name, "%.*s", (int)message->sender.size,
                       (const char *)message->sender.data);
    }
    memcpy(sender->memo, message->memo.data, message->memo.size);
    sender->memo_size = message->memo.size;
    sender->place = state.place;
}

static tn_rc hub_sender(struct tn_hub *hub, struct tn_bytes name, struct tn_bytes *memo,
                        uint64_t *place)
{
    (void)hub;
    const struct sender *sender = find_sender(name);
    if (!sender) {
        return TN_ABSENT;
    }
    *memo = (struct tn_bytes){sender->memo, sender->memo_size};
    *place = sender->place;
    return TN_OK;
}

/* What was put behind the rows has the next place, and so has the message's memo. */
static void take_rows(struct tn_message *message, size_t size)
{
    state.rows_size += size;
    message->place = ++state.place;
    if (message->sender.size > 0) {
        keep_memo(message);
    }
}

/* ---- its life ---- */

static void on_tick(struct tn_request *request)
{
    if (state.hub.durable < state.place) {
        save();
        tn_hub_say_durable(&state.hub, state.place);
    }
    if (!stopping) {
        tn_net_after(state.net, state.commit_ms, request);
    }
}

static void open_hub(const struct tn_hub_vtable *vtable, size_t size_max, struct tn_net *net)
{
    state.hub = (struct tn_hub){.vtable = vtable, .size_max = size_max};
    state.net = net;
    state.tick.done = on_tick;
    CHECK(state.path);
    load();
    (void)signal(SIGTERM, on_signal);
    (void)signal(SIGPIPE, SIG_IGN);
    tn_net_after(net, state.commit_ms, &state.tick);
}

/* Whether all is durable; else it soon is. For who stops. */
static bool hub_rests(void)
{
    if (!tn_request_under_way(&state.tick) && state.hub.durable < state.place) {
        tn_net_after(state.net, state.commit_ms, &state.tick);
    }
    return !tn_request_under_way(&state.tick);
}
