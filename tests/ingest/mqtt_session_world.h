/* mqtt_session_world: one side of a wire, a session and what is given to it. For tests of this
 * folder. */
#pragma once

#include "ingest/mqtt_session.h"

#include "check.h"
#include "given.h"
#include "random.h"

enum {
    INPUT_SIZE = 256,
    ARENA_SIZE = 1 << 16,
    OUT_SIZE = 1024,
    SAVED_MAX = 2048,
};

static struct tn_err err;

static const struct tn_mqtt_wish filters[] = {
    {.filter = {(const unsigned char *)"plant/+/data", 12}, .qos = 2},
    {.filter = {(const unsigned char *)"alarm/#", 7}, .qos = 1, .retain_when = 1},
};
static const struct tn_bytes left[] = {{(const unsigned char *)"old/#", 5}};

static struct tn_mqtt_spec spec;
static struct tn_mqtt_session session;
static struct tn_mqtt_event event;
static unsigned char input[1 << 17];
static size_t input_size;
static int64_t now_ms;

static struct tn_mqtt_spec plain_spec(enum tn_mqtt_version version)
{
    return (struct tn_mqtt_spec){.version = version,
                                 .client_id = tn_bytes_of("gateway"),
                                 .filters = filters,
                                 .filter_count = 1,
                                 .session_expiry_s = UINT32_MAX,
                                 .keep_alive_s = 60,
                                 .in_flight = 4,
                                 .known_max = 4,
                                 .answer_ms_max = 10000,
                                 .wait_ms_min = 1000,
                                 .wait_ms_max = 60000,
                                 .input_size = INPUT_SIZE,
                                 .seed = 7};
}

static void start(void)
{
    static _Alignas(16) unsigned char memory[ARENA_SIZE];
    struct tn_arena arena;
    CHECK(tn_mqtt_session_memory(&spec) <= sizeof memory);
    tn_arena_init(&arena, memory, tn_mqtt_session_memory(&spec));
    tn_rc rc = tn_mqtt_session_init(&session, &spec, &arena, &err);
    CHECK_OK(rc, err);
    input_size = 0;
}

static void give(struct tn_bytes bytes)
{
    CHECK(input_size + bytes.size <= sizeof input);
    memcpy(input + input_size, bytes.data, bytes.size);
    input_size += bytes.size;
}

static void eat(size_t size)
{
    CHECK(size <= input_size);
    memmove(input, input + size, input_size - size);
    input_size -= size;
}

static tn_rc next(void)
{
    return tn_mqtt_session_next(&session, (struct tn_bytes){input, input_size}, now_ms, &event,
                                &err);
}

static uint64_t saved_text(bool next, char text[SAVED_MAX])
{
    struct tn_buf buf;
    tn_buf_init(&buf, text, SAVED_MAX - 1);
    uint64_t place = next ? tn_mqtt_session_save_next(&session, &event, &buf)
                          : tn_mqtt_session_save(&session, &buf);
    CHECK(!buf.overflow);
    text[buf.size] = 0;
    return place;
}

/* In any order. */
static void check_same_ids(const char *a, char *b)
{
    CHECK(strlen(a) == strlen(b));
    for (char *id = strtok(b, " "); id; id = strtok(NULL, " ")) {
        const char *at = strstr(a, id);
        while (at && at > a && at[-1] != ' ') {
            at = strstr(at + 1, id);
        }
        CHECK(at != NULL);
    }
}

static uint64_t admit(void)
{
    CHECK(event.kind == TN_MQTT_MESSAGE);
    static char before[SAVED_MAX];
    static char after[SAVED_MAX];
    uint64_t saved = saved_text(true, before);
    uint64_t place = tn_mqtt_session_admit(&session, &event);
    CHECK(saved == place && saved_text(false, after) == place);
    check_same_ids(before, after);
    eat(event.eaten);
    return place;
}
