#include "base/check.h"
#include "ingest/mqtt_session_private.h"

enum {
    REPLIES_SPARE = 16,    /* for what is answered without being known */
    CONNECT_SIZE_MAX = 64, /* without its texts */
    ASK_SIZE_MAX = 16,     /* without its filter */
    TRIES_MAX = 20,        /* doublings that still tell a pause from the next */
};

/* ---- what is said of a spec ---- */

uint32_t tn_mqtt_ask_count(const struct tn_mqtt_spec *spec)
{
    return spec->leave_count + spec->filter_count;
}

static uint32_t reply_max(const struct tn_mqtt_spec *spec)
{
    return spec->known_max + REPLIES_SPARE;
}

size_t tn_mqtt_ask_size(const struct tn_mqtt_spec *spec)
{
    size_t longest = 0;
    for (uint32_t i = 0; i < tn_mqtt_ask_count(spec); i++) {
        size_t size = i < spec->leave_count ? spec->leave[i].size
                                            : spec->filters[i - spec->leave_count].filter.size;
        longest = size > longest ? size : longest;
    }
    return longest + 3;
}

size_t tn_mqtt_session_memory(const struct tn_mqtt_spec *spec)
{
    size_t pieces = 4;
    return (size_t)tn_mqtt_known_slots(spec->known_max) * sizeof(struct tn_mqtt_entry) +
           (size_t)reply_max(spec) * sizeof(struct tn_mqtt_reply) + tn_mqtt_ask_count(spec) +
           tn_mqtt_ask_size(spec) + pieces * _Alignof(max_align_t);
}

size_t tn_mqtt_session_output_size(const struct tn_mqtt_spec *spec)
{
    size_t connect =
        CONNECT_SIZE_MAX + spec->client_id.size + spec->user.size + spec->password.size;
    size_t ask = ASK_SIZE_MAX + tn_mqtt_ask_size(spec);
    return connect > ask ? connect : ask;
}

static tn_rc check_filters(const struct tn_mqtt_spec *spec, struct tn_err *err)
{
    for (uint32_t i = 0; i < spec->leave_count; i++) {
        tn_rc rc = tn_mqtt_filter_check(spec->leave[i], err);
        if (rc) {
            return rc;
        }
    }
    for (uint32_t i = 0; i < spec->filter_count; i++) {
        const struct tn_mqtt_wish *wish = &spec->filters[i];
        tn_rc rc = tn_mqtt_filter_check(wish->filter, err);
        if (rc) {
            return rc;
        }
        if (wish->qos > 2 || wish->retain_when > 2) {
            return tn_err_set(err, TN_INVALID, 0, "filter %u: QoS %u, retained %u: each is 0 to 2",
                              i, wish->qos, wish->retain_when);
        }
    }
    return TN_OK;
}

static tn_rc check_spec(const struct tn_mqtt_spec *spec, struct tn_err *err)
{
    bool version =
        spec->version == TN_MQTT_ANY || spec->version == TN_MQTT_V3 || spec->version == TN_MQTT_V5;
    bool texts = spec->client_id.size > 0 && spec->client_id.size <= TN_MQTT_TEXT_MAX &&
                 spec->user.size <= TN_MQTT_TEXT_MAX && spec->password.size <= TN_MQTT_TEXT_MAX;
    if (!version || !texts) {
        return tn_err_set(err, TN_INVALID, 0, "%s",
                          version ? "client id, user name or password: "
                                    "too long, or no client id"
                                  : "the version is neither 3.1.1 nor 5");
    }
    if (tn_mqtt_text_valid(spec->client_id) < spec->client_id.size ||
        tn_mqtt_text_valid(spec->user) < spec->user.size) {
        return tn_err_set(err, TN_INVALID, 0, "client id or user name: no UTF-8, or with a zero");
    }
    if (spec->password.data && !spec->user.data && spec->version != TN_MQTT_V5) {
        return tn_err_set(err, TN_INVALID, 0, "a password without a user name needs MQTT 5");
    }
    bool counts = spec->filter_count > 0 && spec->filter_count <= TN_MQTT_FILTERS_MAX &&
                  spec->leave_count <= TN_MQTT_FILTERS_MAX && spec->in_flight > 0 &&
                  spec->known_max >= spec->in_flight && spec->known_max <= TN_MQTT_KNOWN_MAX &&
                  spec->input_size >= TN_MQTT_INPUT_MIN;
    bool times = spec->wait_ms_min > 0 && spec->wait_ms_max >= spec->wait_ms_min &&
                 spec->wait_ms_max <= INT32_MAX && spec->answer_ms_max > 0;
    if (!counts || !times) {
        return tn_err_set(err, TN_INVALID, 0, "%s out of bounds",
                          counts ? "wait_ms or answer_ms"
                                 : "filters, in_flight, known_max or input_size");
    }
    return check_filters(spec, err);
}

tn_rc tn_mqtt_session_init(struct tn_mqtt_session *s, const struct tn_mqtt_spec *spec,
                           struct tn_arena *arena, struct tn_err *err)
{
    tn_rc rc = check_spec(spec, err);
    if (rc) {
        return rc;
    }
    uint32_t slots = tn_mqtt_known_slots(spec->known_max);
    struct {
        void *out;
        size_t size;
    } parts[] = {{NULL, slots * sizeof(struct tn_mqtt_entry)},
                 {NULL, reply_max(spec) * sizeof(struct tn_mqtt_reply)},
                 {NULL, tn_mqtt_ask_count(spec)},
                 {NULL, tn_mqtt_ask_size(spec)}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        rc = tn_arena_need(arena, parts[i].size, "MQTT session", &parts[i].out, err);
        if (rc) {
            return rc;
        }
    }
    *s = (struct tn_mqtt_session){.spec = spec,
                                  .state = TN_MQTT_WAIT,
                                  .version =
                                      spec->version == TN_MQTT_ANY ? TN_MQTT_V5 : spec->version,
                                  .entries = parts[0].out,
                                  .replies = parts[1].out,
                                  .answered = parts[2].out,
                                  .ask = parts[3].out,
                                  .slot_count = slots,
                                  .reply_max = reply_max(spec),
                                  .due_ms = INT64_MIN,
                                  .ready_ms = INT64_MAX,
                                  .random = spec->seed};
    return TN_OK;
}

/* ---- states ---- */

bool tn_mqtt_connected(const struct tn_mqtt_session *s)
{
    return s->state >= TN_MQTT_AWAIT_CONNACK && s->state <= TN_MQTT_READY;
}

void tn_mqtt_ask_for_filters(struct tn_mqtt_session *s, bool resumed)
{
    s->ask_next = resumed ? 0 : s->spec->leave_count;
    s->ask_left = tn_mqtt_ask_count(s->spec) - s->ask_next;
    s->resumed = resumed;
    s->asked = false;
    memset(s->answered, 0, tn_mqtt_ask_count(s->spec));
    memset(s->answered, 1, s->ask_next); /* of what isn't asked no answer is due */
    s->state = TN_MQTT_AWAIT_SUBACK;
}

void tn_mqtt_session_durable(struct tn_mqtt_session *s, uint64_t place)
{
    TN_CHECK(place <= s->place);
    s->durable = place > s->durable ? place : s->durable;
    if (s->state == TN_MQTT_CLEAR && s->durable >= s->clear_place) {
        tn_mqtt_ask_for_filters(s, false);
    }
}

/* ---- time ---- */

static bool awaits_answer(const struct tn_mqtt_session *s)
{
    bool asked = s->state == TN_MQTT_AWAIT_CONNACK || s->pings_open > 0 || s->draining ||
                 (s->state == TN_MQTT_AWAIT_SUBACK && s->asked);
    return asked && !s->held;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Silence counts from what was said last, by either side: while bytes come, the broker lives, and
 * while they are not read, nobody knows. */
static int64_t answer_due(const struct tn_mqtt_session *s)
{
    return awaits_answer(s) ? later(s->heard_ms, s->asked_ms) + s->spec->answer_ms_max : INT64_MAX;
}

/* At three quarters of the keep-alive, which the broker counts on its own clock. Also when the one
 * before has no answer: that may stand behind messages which nobody can take now, and the broker
 * wants to hear something all the same. */
static int64_t ping_due(const struct tn_mqtt_session *s)
{
    bool pings = s->keep_alive_ms > 0 && s->state > TN_MQTT_AWAIT_CONNACK && !s->ping_due;
    return pings ? s->sent_ms + s->keep_alive_ms / 4 * 3 : INT64_MAX;
}

int64_t tn_mqtt_session_due(const struct tn_mqtt_session *s)
{
    if (s->state == TN_MQTT_WAIT) {
        return s->due_ms;
    }
    if (!tn_mqtt_connected(s)) {
        return INT64_MAX;
    }
    int64_t answer = answer_due(s);
    int64_t ping = ping_due(s);
    return answer < ping ? answer : ping;
}

tn_rc tn_mqtt_session_tick(struct tn_mqtt_session *s, int64_t now_ms, bool *open,
                           struct tn_err *err)
{
    *open = s->state == TN_MQTT_WAIT && now_ms >= s->due_ms;
    if (*open) {
        s->state = TN_MQTT_OPEN;
    }
    if (!tn_mqtt_connected(s)) {
        return TN_OK;
    }
    if (now_ms >= answer_due(s)) {
        s->state = TN_MQTT_CLOSING;
        s->goodbye_due = false;
        return tn_err_set(err, TN_IO, 0, "the broker gave no answer for %u ms",
                          s->spec->answer_ms_max);
    }
    if (now_ms >= ping_due(s)) {
        s->ping_due = true;
    }
    return TN_OK;
}

void tn_mqtt_session_opened(struct tn_mqtt_session *s, int64_t now_ms)
{
    TN_CHECK(s->state == TN_MQTT_OPEN || s->state == TN_MQTT_CLOSING);
    if (s->state == TN_MQTT_CLOSING) {
        return; /* `stop` came first */
    }
    s->state = TN_MQTT_AWAIT_CONNACK;
    s->connect_due = true;
    s->spoke = false;
    s->reason = 0;
    s->heard_ms = now_ms;
    s->asked_ms = now_ms;
    s->sent_ms = now_ms;
}

/* ---- the end ---- */

static uint64_t draw(struct tn_mqtt_session *s)
{
    uint64_t z = (s->random += 0x9e3779b97f4a7c15U); /* SplitMix64 */
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
}

/* A connection that stood for as long as the longest pause was a good one. */
static int64_t pause_ms(struct tn_mqtt_session *s, int64_t now_ms)
{
    const struct tn_mqtt_spec *spec = s->spec;
    bool good = s->ready_ms != INT64_MAX && now_ms - s->ready_ms >= spec->wait_ms_max;
    s->tries = good ? 0 : s->tries;
    uint64_t whole = (uint64_t)spec->wait_ms_min << s->tries;
    whole = whole < spec->wait_ms_max ? whole : spec->wait_ms_max;
    s->tries += s->tries < TRIES_MAX;
    return (int64_t)(whole / 2 + draw(s) % (whole - whole / 2 + 1));
}

/* Some brokers of 3.1.1 just close when 5.0 knocks. */
static void try_the_other_version(struct tn_mqtt_session *s)
{
    bool silent = s->state == TN_MQTT_AWAIT_CONNACK && !s->spoke && s->connections == 0;
    if (s->spec->version == TN_MQTT_ANY && silent) {
        s->version = s->version == TN_MQTT_V5 ? TN_MQTT_V3 : TN_MQTT_V5;
    }
}

void tn_mqtt_session_lost(struct tn_mqtt_session *s, int64_t now_ms)
{
    TN_CHECK(s->state != TN_MQTT_WAIT && s->state != TN_MQTT_STOPPED);
    try_the_other_version(s);
    tn_mqtt_known_disconnect(s);
    s->due_ms = s->at_once ? now_ms : now_ms + pause_ms(s, now_ms);
    s->at_once = false;
    s->draining = false;
    s->pings_to_come = 0;
    s->ready_ms = INT64_MAX;
    s->skip = 0;
    s->seek = 0;
    s->seek_rest = 0;
    s->seen = 0;
    s->held = false;
    s->connect_due = false;
    s->ping_due = false;
    s->pings_open = 0;
    s->goodbye_due = false;
    s->state = s->stopping ? TN_MQTT_STOPPED : TN_MQTT_WAIT;
}

void tn_mqtt_session_stop(struct tn_mqtt_session *s)
{
    s->stopping = true;
    s->goodbye_due = tn_mqtt_connected(s) && s->state != TN_MQTT_AWAIT_CONNACK;
    s->goodbye = TN_MQTT_SUCCESS;
    s->state =
        s->state == TN_MQTT_WAIT || s->state == TN_MQTT_STOPPED ? TN_MQTT_STOPPED : TN_MQTT_CLOSING;
}
