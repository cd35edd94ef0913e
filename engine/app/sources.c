#include "app/sources.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    STREAMS_BESIDE = 4, /* of brokers that are closed while others are opened */
    STREAMS_BROKER = 2,
    STEPS_MAX = 256,     /* of operations in a turn */
    BROKER_FIXED = 4096, /* filters, a client's id */
    ALIGNMENT = 64,
};

/* ---- what they will take ---- */

static bool speaks_tls(const struct tn_config_source *source)
{
    return source->kind == TN_SOURCE_SOCKET
               ? source->tls.certificate != NULL
               : source->kind == TN_SOURCE_MQTT && tn_config_url_tls(source->url);
}

uint32_t tn_sources_streams(const struct tn_config *config, bool *tls)
{
    uint32_t count = STREAMS_BESIDE;
    *tls = config->http.listen && config->http.tls.certificate;
    if (config->http.listen) {
        count += config->http.connections + TN_HTTP_SPARE_CONNECTIONS;
    }
    for (const struct tn_config_source *s = config->sources; s; s = s->next) {
        *tls = *tls || speaks_tls(s);
        count += s->kind == TN_SOURCE_MQTT     ? STREAMS_BROKER
                 : s->kind == TN_SOURCE_SOCKET ? s->connections + 1 /* one that replaces */
                                               : 0;
    }
    return count;
}

static struct tn_http_server_spec http_spec(const struct tn_config *config, struct tn_hub *hub)
{
    const struct tn_config_http *http = &config->http;
    size_t body = http->body_size_max < hub->size_max ? http->body_size_max : hub->size_max;
    return (struct tn_http_server_spec){.hub = hub,
                                        .token = http->token,
                                        .connections = http->connections,
                                        .body_size_max =
                                            body > TN_HTTP_BODY_MIN ? body : TN_HTTP_BODY_MIN,
                                        .timeout_ms = http->timeout_ms,
                                        .idle_ms = http->idle_ms};
}

static struct tn_mqtt_source_spec broker_spec(const struct tn_config_source *source,
                                              struct tn_hub *hub)
{
    struct tn_mqtt_source_spec spec = {.name = source->name, .hub = hub};
    for (const struct tn_config_subscribe *s = source->subscribe; s; s = s->next) {
        spec.mqtt.filter_count++;
    }
    spec.mqtt.in_flight = (uint16_t)source->in_flight;
    spec.mqtt.keep_alive_s = (uint16_t)source->keep_alive_s;
    spec.mqtt.session_expiry_s = source->session_expiry_s;
    return spec;
}

static struct tn_bytes text_or_none(const char *text)
{
    return text ? tn_bytes_of(text) : (struct tn_bytes){0};
}

/* As of a client with the longest name that is made up here. */
static size_t broker_memory(const struct tn_config_source *source, struct tn_hub *hub)
{
    struct tn_net net = {.clock = &tn_clock_system};
    struct tn_mqtt_source_spec spec = broker_spec(source, hub);
    uint32_t count = spec.mqtt.filter_count;
    size_t filters = 0;
    for (const struct tn_config_subscribe *sub = source->subscribe; sub; sub = sub->next) {
        filters += strlen(sub->filter) + 8;
    }
    spec.net = &net;
    spec.mqtt.filter_count = 0; /* they are counted above */
    spec.mqtt.seed = 1;
    spec.mqtt.client_id = tn_bytes_of(source->client_id ? source->client_id : "tarn-0123456789abc");
    spec.mqtt.user = text_or_none(source->user);
    spec.mqtt.password = text_or_none(source->password);
    return tn_mqtt_source_memory(&spec) + 2 * filters + BROKER_FIXED + sizeof(struct tn_broker) +
           count * (sizeof(struct tn_mqtt_wish) + sizeof(struct tn_mqtt_route) +
                    sizeof(struct tn_bytes));
}

static struct tn_socket_source_spec door_spec(const struct tn_config_source *source,
                                              struct tn_hub *hub)
{
    return (struct tn_socket_source_spec){.name = source->name,
                                          .table = source->table,
                                          .input = source->input,
                                          .hub = hub,
                                          .token = source->token,
                                          .connections = source->connections,
                                          .line_size_max = source->line_size_max};
}

static size_t door_memory(const struct tn_config_source *source, struct tn_hub *hub)
{
    struct tn_socket_source_spec spec = door_spec(source, hub);
    return tn_socket_source_memory(&spec) + sizeof(struct tn_door);
}

static size_t file_memory(const struct tn_hub *hub)
{
    return tn_file_source_memory(hub) + sizeof(struct tn_followed) + ALIGNMENT;
}

size_t tn_sources_memory(const struct tn_config *config, size_t size_max)
{
    struct tn_hub hub = {.size_max = size_max};
    size_t size = 0;
    if (config->http.listen) {
        struct tn_http_server_spec spec = http_spec(config, &hub);
        size += tn_http_server_memory(&spec);
    }
    for (const struct tn_config_source *s = config->sources; s; s = s->next) {
        size += s->kind == TN_SOURCE_MQTT     ? broker_memory(s, &hub)
                : s->kind == TN_SOURCE_SOCKET ? door_memory(s, &hub)
                : s->kind == TN_SOURCE_FILE   ? file_memory(&hub)
                : s->kind == TN_SOURCE_STDIN  ? tn_lines_memory(&hub)
                                              : 0;
    }
    return size;
}

/* ---- standard input ---- */

static tn_rc open_lines(struct tn_sources *s, const struct tn_config_source *source,
                        struct tn_err *err)
{
    void *memory;
    struct tn_lines_spec spec = {.name = source->name,
                                 .table = source->table,
                                 .input = source->input,
                                 .hub = s->spec.hub,
                                 .log = s->spec.log,
                                 .clock = s->spec.clock,
                                 .fd = STDIN_FILENO,
                                 .notify = s->spec.notify,
                                 .user = s->spec.user};
    tn_rc rc =
        tn_arena_need(s->spec.arena, tn_lines_memory(s->spec.hub), "standard input", &memory, err);
    if (rc == TN_OK) {
        spec.memory = memory;
        rc = tn_lines_open(&s->lines, &spec, err);
    }
    s->has_lines = rc == TN_OK;
    return rc;
}

/* ---- files ---- */

static tn_rc open_file(struct tn_sources *s, const struct tn_config_source *source,
                       struct tn_err *err)
{
    void *memory;
    void *buffer;
    tn_rc rc = tn_arena_need(s->spec.arena, sizeof(struct tn_followed), "a file", &memory, err);
    if (rc == TN_OK) {
        rc = tn_arena_need(s->spec.arena, tn_file_source_memory(s->spec.hub), "a file", &buffer,
                           err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_followed *file = memory;
    struct tn_file_source_spec spec = {.name = source->name,
                                       .table = source->table,
                                       .input = source->input,
                                       .path = source->url,
                                       .hub = s->spec.hub,
                                       .exec = s->spec.exec,
                                       .clock = s->spec.clock,
                                       .log = s->spec.log,
                                       .memory = buffer,
                                       .once = s->spec.once,
                                       .notify = s->spec.notify,
                                       .user = s->spec.user};
    rc = tn_file_source_open(&file->source, &spec, err);
    if (rc == TN_OK) {
        file->next = s->files;
        s->files = file;
    }
    return rc;
}

/* ---- TLS ---- */

static tn_rc make_tls(const struct tn_sources *s, const struct tn_config_tls *tls, bool server,
                      struct tn_tls_config **config, struct tn_err *err)
{
    struct tn_tls_spec spec = {.clock = s->spec.clock,
                               .ca = text_or_none(tls->ca),
                               .pinned = text_or_none(tls->pinned),
                               .certificate = text_or_none(tls->certificate),
                               .key = text_or_none(tls->key),
                               .server = server};
    return tn_tls_config_make(&spec, config, err);
}

/* ---- HTTP ---- */

static tn_rc open_http(struct tn_sources *s, struct tn_err *err)
{
    const struct tn_config_http *http = &s->spec.config->http;
    struct tn_http_server_spec spec = http_spec(s->spec.config, s->spec.hub);
    tn_rc rc = tn_endpoint_parse(http->listen, s->http_host, &spec.at, err);
    if (rc == TN_OK && http->tls.certificate) {
        rc = make_tls(s, &http->tls, true, &s->http_tls, err);
    }
    spec.net = s->spec.net;
    spec.ops = &s->ops;
    spec.tls = s->http_tls;
    spec.exec = s->spec.exec;
    spec.pages = s->spec.pages;
    spec.page_count = s->spec.page_count;
    if (rc == TN_OK) {
        rc = tn_http_server_open(&s->http, &spec, s->spec.arena, err);
    }
    if (rc == TN_OK) {
        tn_log_event(s->spec.log, TN_LOG_INFO, "http", "listen=%s port=%u", http->listen,
                     (unsigned)tn_http_server_port(s->http));
    }
    return rc == TN_OK ? rc : tn_err_in(err, "listen %s", http->listen);
}

/* ---- MQTT ---- */

static tn_rc fill_filters(struct tn_sources *s, const struct tn_config_source *source,
                          struct tn_mqtt_source_spec *spec, struct tn_err *err)
{
    void *filters = NULL;
    void *routes = NULL;
    uint32_t count = spec->mqtt.filter_count;
    tn_rc rc =
        tn_arena_need(s->spec.arena, count * sizeof(struct tn_mqtt_wish), "filters", &filters, err);
    if (rc == TN_OK) {
        rc = tn_arena_need(s->spec.arena, count * sizeof(struct tn_mqtt_route), "filters", &routes,
                           err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_mqtt_wish *wish = filters;
    struct tn_mqtt_route *route = routes;
    spec->mqtt.filters = wish;
    spec->routes = route;
    for (const struct tn_config_subscribe *sub = source->subscribe; sub; sub = sub->next) {
        *wish++ = (struct tn_mqtt_wish){.filter = tn_bytes_of(sub->filter), .qos = sub->qos};
        *route++ = (struct tn_mqtt_route){.table = sub->table, .input = sub->input};
    }
    return TN_OK;
}

static tn_rc fill_broker(struct tn_sources *s, struct tn_broker *broker,
                         struct tn_mqtt_source_spec *spec, struct tn_err *err)
{
    const struct tn_config_source *source = broker->config;
    const char *id = source->client_id
                         ? source->client_id
                         : tn_arena_format(s->spec.arena, "tarn-%.13s", s->spec.identity);
    if (!id) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for a client's id");
    }
    spec->net = s->spec.net;
    spec->log = s->spec.log;
    spec->exec = s->spec.exec;
    spec->mqtt.client_id = tn_bytes_of(id);
    spec->mqtt.user = text_or_none(source->user);
    spec->mqtt.password = text_or_none(source->password);
    tn_rc rc = tn_config_url_parse(source->url, broker->host, &spec->broker, err);
    if (rc == TN_OK) {
        rc = fill_filters(s, source, spec, err);
    }
    if (rc == TN_OK && speaks_tls(source)) {
        rc = make_tls(s, &source->tls, false, &broker->tls, err);
        spec->tls = broker->tls;
    }
    return rc;
}

static tn_rc open_broker(struct tn_sources *s, const struct tn_config_source *source,
                         struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(s->spec.arena, sizeof(struct tn_broker), "a broker", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_broker *broker = memory;
    struct tn_mqtt_source_spec spec = broker_spec(source, s->spec.hub);
    broker->config = source;
    broker->next = s->brokers;
    s->brokers = broker;
    rc = fill_broker(s, broker, &spec, err);
    return rc == TN_OK ? tn_mqtt_source_open(&broker->source, &spec, s->spec.arena, err) : rc;
}

/* ---- sockets ---- */

static tn_rc open_door(struct tn_sources *s, const struct tn_config_source *source,
                       struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(s->spec.arena, sizeof(struct tn_door), "a socket", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_door *door = memory;
    struct tn_socket_source_spec spec = door_spec(source, s->spec.hub);
    door->config = source;
    door->next = s->doors;
    s->doors = door;
    rc = tn_endpoint_parse(source->url, door->host, &spec.at, err);
    if (rc == TN_OK && speaks_tls(source)) {
        rc = make_tls(s, &source->tls, true, &door->tls, err);
    }
    spec.net = s->spec.net;
    spec.log = s->spec.log;
    spec.tls = door->tls;
    spec.exec = s->spec.exec;
    if (rc == TN_OK) {
        rc = tn_socket_source_open(&door->source, &spec, s->spec.arena, err);
    }
    if (rc == TN_OK) {
        tn_log_event(s->spec.log, TN_LOG_INFO, "socket", "source=%s listen=%s", source->name,
                     source->url);
    }
    return rc;
}

/* ---- all of them ---- */

static tn_rc open_source(struct tn_sources *s, const struct tn_config_source *source,
                         struct tn_err *err)
{
    switch (source->kind) {
    case TN_SOURCE_STDIN:
        return open_lines(s, source, err);
    case TN_SOURCE_MQTT:
        return open_broker(s, source, err);
    case TN_SOURCE_SOCKET:
        return open_door(s, source, err);
    case TN_SOURCE_FILE:
        return open_file(s, source, err);
    case TN_SOURCE_KINDS:
        break;
    }
    return tn_err_set(err, TN_UNSUPPORTED, 0, "this build has no source of kind '%s' yet",
                      tn_source_kind_name(source->kind));
}

tn_rc tn_sources_open(struct tn_sources *sources, const struct tn_sources_spec *spec,
                      struct tn_err *err)
{
    struct tn_sources *s = sources;
    *s = (struct tn_sources){.spec = *spec};
    tn_rc rc = spec->config->http.listen ? open_http(s, err) : TN_OK;
    const struct tn_config_source *source = spec->config->sources;
    for (; rc == TN_OK && source; source = source->next) {
        rc = open_source(s, source, err);
        rc = rc == TN_OK ? rc : tn_err_in(err, "source %s", source->name);
    }
    return rc;
}

void tn_sources_turn(struct tn_sources *sources, uint32_t *wait_ms)
{
    struct tn_sources *s = sources;
    if (s->has_lines && !s->stopping) {
        tn_lines_turn(&s->lines, wait_ms);
    }
    for (struct tn_followed *file = s->files; file; file = file->next) {
        tn_file_source_turn(&file->source, wait_ms);
    }
    (void)tn_ops_run(&s->ops, STEPS_MAX);
}

void tn_sources_stop(struct tn_sources *sources)
{
    struct tn_sources *s = sources;
    if (s->stopping) {
        return;
    }
    s->stopping = true;
    tn_lines_close(&s->lines);
    for (struct tn_followed *file = s->files; file; file = file->next) {
        tn_file_source_stop(&file->source);
    }
    if (s->http) {
        tn_http_server_stop(s->http);
    }
    for (struct tn_broker *broker = s->brokers; broker; broker = broker->next) {
        if (broker->source) {
            tn_mqtt_source_stop(broker->source);
        }
    }
    for (struct tn_door *door = s->doors; door; door = door->next) {
        if (door->source) {
            tn_socket_source_stop(door->source);
        }
    }
}

bool tn_sources_stopped(const struct tn_sources *sources)
{
    bool stopped = !sources->http || tn_http_server_stopped(sources->http);
    for (const struct tn_broker *broker = sources->brokers; broker; broker = broker->next) {
        stopped = stopped && (!broker->source || tn_mqtt_source_stopped(broker->source));
    }
    for (const struct tn_door *door = sources->doors; door; door = door->next) {
        stopped = stopped && (!door->source || tn_socket_source_stopped(door->source));
    }
    return stopped;
}

bool tn_sources_ended(const struct tn_sources *sources)
{
    bool ended = !sources->has_lines || sources->lines.ended;
    for (const struct tn_followed *file = sources->files; file; file = file->next) {
        ended = ended && file->source.ended;
    }
    return ended;
}

void tn_sources_close(struct tn_sources *sources)
{
    struct tn_sources *s = sources;
    tn_lines_close(&s->lines);
    if (s->http_tls) {
        tn_tls_config_free(s->http_tls);
    }
    for (struct tn_broker *broker = s->brokers; broker; broker = broker->next) {
        if (broker->tls) {
            tn_tls_config_free(broker->tls);
        }
    }
    for (struct tn_door *door = s->doors; door; door = door->next) {
        if (door->tls) {
            tn_tls_config_free(door->tls);
        }
    }
    s->http_tls = NULL;
    s->brokers = NULL;
    s->doors = NULL;
}
