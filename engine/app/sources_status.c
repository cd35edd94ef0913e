/* How the sources are: what each kind counts, in one form. */
#include "app/sources.h"

static void say_http(const struct tn_sources *s, tn_source_each *each, void *user)
{
    const struct tn_http_counts *counts = tn_http_server_counts(s->http);
    struct tn_source_status status = {.name = "http",
                                      .kind = "http",
                                      .state = s->stopping ? "stopping" : "listening",
                                      .at = s->spec.config->http.listen,
                                      .messages = counts->requests,
                                      .rows = counts->rows,
                                      .refused = counts->refused};
    each(user, &status);
}

static void say_lines(const struct tn_sources *s, tn_source_each *each, void *user)
{
    const struct tn_lines *l = &s->lines;
    struct tn_source_status status = {.name = l->spec.name,
                                      .kind = "stdin",
                                      .state = l->ended ? "ended" : "reading",
                                      .waits = l->blocked,
                                      .rows = l->rows,
                                      .dead = l->dead};
    each(user, &status);
}

static const char *state_of(enum tn_mqtt_state state)
{
    switch (state) {
    case TN_MQTT_WAIT:
        return "waiting to connect";
    case TN_MQTT_OPEN:
    case TN_MQTT_AWAIT_CONNACK:
        return "connecting";
    case TN_MQTT_CLEAR:
    case TN_MQTT_AWAIT_SUBACK:
        return "subscribing";
    case TN_MQTT_READY:
        return "connected";
    case TN_MQTT_CLOSING:
        return "closing";
    case TN_MQTT_STOPPED:
        return "stopped";
    }
    return "";
}

static void say_broker(const struct tn_broker *broker, tn_source_each *each, void *user)
{
    struct tn_mqtt_source_status mqtt;
    tn_mqtt_source_status(broker->source, &mqtt);
    bool failed = mqtt.err.code != TN_OK && mqtt.err.text[0];
    struct tn_source_status status = {.name = broker->config->name,
                                      .kind = "mqtt",
                                      .state = state_of(mqtt.state),
                                      .at = broker->host,
                                      .trouble = failed ? mqtt.err.text : NULL,
                                      .waits = mqtt.blocked,
                                      .messages = mqtt.messages,
                                      .rows = mqtt.rows,
                                      .dead = mqtt.dead,
                                      .refused = mqtt.refused};
    each(user, &status);
}

static void say_door(const struct tn_door *door, tn_source_each *each, void *user)
{
    struct tn_socket_source_status socket;
    tn_socket_source_status(door->source, &socket);
    bool failed = socket.err.code != TN_OK && socket.err.text[0];
    struct tn_source_status status = {.name = door->config->name,
                                      .kind = "socket",
                                      .state = socket.open > 0 ? "connected" : "listening",
                                      .at = door->config->url,
                                      .trouble = failed ? socket.err.text : NULL,
                                      .waits = socket.blocked,
                                      .messages = socket.lines,
                                      .rows = socket.rows,
                                      .dead = socket.dead,
                                      .refused = socket.refused};
    each(user, &status);
}

static const char *state_of_file(const struct tn_file_source *file)
{
    return file->ended               ? "ended"
           : file->said == TN_ABSENT ? "waiting for the file"
           : file->idle              ? "at its end"
                                     : "reading";
}

static void say_file(const struct tn_file_source *file, tn_source_each *each, void *user)
{
    bool failed = file->said != TN_OK && file->said != TN_ABSENT;
    struct tn_source_status status = {
        .name = file->spec.name,
        .kind = "file",
        .state = state_of_file(file),
        .at = file->spec.path,
        .trouble = failed ? file->trouble.text : NULL,
        .waits = file->blocked,
        .messages = file->batches,
        .rows = file->rows,
        .dead = file->dead,
        .is_file = true,
        .bytes = tn_file_place_bytes(&file->taken),
        .bytes_committed = tn_hub_committed(file->spec.hub, tn_bytes_of(file->sender))};
    each(user, &status);
}

void tn_sources_each(const struct tn_sources *sources, tn_source_each *each, void *user)
{
    if (sources->http) {
        say_http(sources, each, user);
    }
    if (sources->has_lines) {
        say_lines(sources, each, user);
    }
    for (const struct tn_broker *broker = sources->brokers; broker; broker = broker->next) {
        if (broker->source) {
            say_broker(broker, each, user);
        }
    }
    for (const struct tn_door *door = sources->doors; door; door = door->next) {
        if (door->source) {
            say_door(door, each, user);
        }
    }
    for (const struct tn_followed *file = sources->files; file; file = file->next) {
        say_file(&file->source, each, user);
    }
}
