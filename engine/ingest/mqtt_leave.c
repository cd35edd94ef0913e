/* Filters of earlier runs. A broker keeps what a session is subscribed to, and goes on sending what
 * nobody asks for any more; so the hub has a list of all that may be subscribed, a filter a line:
 *
 *     before the first connection    those of now and of earlier, durably
 *     once these are left            those of now
 */
#include "base/check.h"
#include "ingest/mqtt_source_private.h"

enum { LEAVE_MAX = 64, LEAVE_SIZE = 2048 };

struct tn_mqtt_leave {
    struct tn_bytes filters[LEAVE_MAX];
    uint32_t count;
    size_t size;
    unsigned char text[LEAVE_SIZE];
};

static tn_rc known_filters(const struct tn_mqtt_source_spec *spec, struct tn_bytes *list,
                           uint64_t *place)
{
    char sender[TN_MQTT_SENDER_MAX];
    tn_mqtt_source_sender(spec, "mqtt-filters", sender);
    *list = (struct tn_bytes){0};
    *place = 0;
    return tn_hub_sender(spec->hub, tn_bytes_of(sender), list, place);
}

static struct tn_bytes next_line(struct tn_bytes *rest)
{
    const unsigned char *end = rest->size > 0 ? memchr(rest->data, '\n', rest->size) : NULL;
    size_t size = end ? (size_t)(end - rest->data) : rest->size;
    struct tn_bytes line = {rest->data, size};
    rest->data += size + (end != NULL);
    rest->size -= size + (end != NULL);
    return line;
}

/* The session, too, needs room for the longest of them, twice. */
size_t tn_mqtt_leave_memory(void)
{
    size_t pieces = 1;
    return sizeof(struct tn_mqtt_leave) + LEAVE_MAX + 2 * LEAVE_SIZE +
           pieces * _Alignof(max_align_t);
}

static bool is_wanted(const struct tn_mqtt_spec *mqtt, struct tn_bytes filter)
{
    for (uint32_t i = 0; i < mqtt->filter_count; i++) {
        if (tn_bytes_equal(mqtt->filters[i].filter, filter)) {
            return true;
        }
    }
    return false;
}

/* Somebody else's list may hold anything. */
static bool is_filter(struct tn_bytes text)
{
    struct tn_err err;
    return tn_mqtt_filter_check(text, &err) == TN_OK;
}

static bool add_filter(struct tn_mqtt_leave *leave, struct tn_bytes filter)
{
    if (leave->count == LEAVE_MAX || filter.size > LEAVE_SIZE - leave->size) {
        return false;
    }
    unsigned char *text = leave->text + leave->size;
    memcpy(text, filter.data, filter.size);
    leave->filters[leave->count++] = (struct tn_bytes){text, filter.size};
    leave->size += filter.size;
    return true;
}

tn_rc tn_mqtt_leave_find(struct tn_mqtt_source *s, struct tn_arena *arena, struct tn_err *err)
{
    struct tn_mqtt_spec *mqtt = &s->spec.mqtt;
    struct tn_bytes list = {0};
    void *memory = NULL;
    uint32_t known = 0;
    uint32_t forgotten = 0;
    s->filters_due = known_filters(&s->spec, &list, &s->since) != TN_OK;
    tn_rc rc = tn_arena_need(arena, sizeof(struct tn_mqtt_leave), "MQTT source", &memory, err);
    if (rc) {
        return rc;
    }
    struct tn_mqtt_leave *leave = memory;
    while (list.size > 0) {
        struct tn_bytes filter = next_line(&list);
        if (is_wanted(mqtt, filter)) {
            known++;
        } else if (is_filter(filter)) {
            forgotten += !add_filter(leave, filter);
        }
    }
    if (forgotten > 0) {
        tn_log_event(
            s->spec.log, TN_LOG_WARN, "mqtt",
            "source=%s text=\"%u more filters were taken away than can be left at once: the "
            "broker goes on sending what they give; a new client id ends that\"",
            s->spec.name, forgotten);
    }
    mqtt->leave = leave->filters;
    mqtt->leave_count = leave->count;
    s->filters_due = s->filters_due || known < mqtt->filter_count;
    return TN_OK;
}

void tn_mqtt_leave_connected(struct tn_mqtt_source *s, bool resumed)
{
    s->left_count = 0;
    if (!resumed && s->spec.mqtt.leave_count > 0 && !s->all_left) {
        s->all_left = true; /* with their session */
        s->filters_due = true;
    }
}

/* One that the broker doesn't let go is in the list until it does. */
void tn_mqtt_leave_answered(struct tn_mqtt_source *s, unsigned char reason)
{
    s->left_count += reason < TN_MQTT_FAILURE;
    if (s->left_count == s->spec.mqtt.leave_count && !s->all_left) {
        s->all_left = true;
        s->filters_due = true;
    }
}

static struct tn_bytes write_list(struct tn_mqtt_source *s, bool *whole)
{
    const struct tn_mqtt_spec *mqtt = &s->spec.mqtt;
    struct tn_buf list;
    tn_buf_init(&list, s->memo, TN_MEMO_SIZE_MAX);
    for (uint32_t i = 0; i < mqtt->filter_count; i++) {
        tn_buf_append(&list, mqtt->filters[i].filter.data, mqtt->filters[i].filter.size);
        tn_buf_text(&list, "\n");
    }
    for (uint32_t i = 0; i < mqtt->leave_count && !s->all_left; i++) {
        tn_buf_append(&list, mqtt->leave[i].data, mqtt->leave[i].size);
        tn_buf_text(&list, "\n");
    }
    *whole = !list.overflow;
    return tn_buf_bytes(&list);
}

void tn_mqtt_leave_keep(struct tn_mqtt_source *s)
{
    char sender[TN_MQTT_SENDER_MAX];
    struct tn_err err;
    bool whole = false;
    if (!s->filters_due || s->block != TN_MQTT_FREE) {
        return;
    }
    tn_mqtt_source_sender(&s->spec, "mqtt-filters", sender);
    struct tn_message message = {
        .source = s->spec.name, .sender = tn_bytes_of(sender), .memo = write_list(s, &whole)};
    tn_rc rc = whole ? tn_hub_offer(s->spec.hub, &message, &err)
                     : tn_err_set(&err, TN_INVALID, 0, "they are too long");
    if (rc == TN_INVALID) {
        tn_log_event(
            s->spec.log, TN_LOG_WARN, "mqtt",
            "source=%s text=\"the filters are not remembered, and none will be left when it "
            "is taken away: %s\"",
            s->spec.name, err.text);
        s->filters_due = false;
        return;
    }
    if (rc) {
        tn_mqtt_source_block(s, rc, &err);
        return;
    }
    s->filters_due = false;
    s->last = message.place;
    s->since = s->session.connections == 0 ? message.place : s->since;
}
