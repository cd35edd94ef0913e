/* Sources, what they listen on or connect to, and TLS. */
#include <inttypes.h>
#include <sys/un.h>

#include "app/config_private.h"
#include "ingest/mqtt_source.h"
#include "ingest/mqtt_topic.h"

enum {
    SECRET_MAX = 4096,
    TOKEN_MIN = 8,
    USER_MAX = 256,
    SOCKET_PATH_SIZE = sizeof((struct sockaddr_un *)0)->sun_path,
};

static const uint64_t day_ms = 86400000;

static const char *const kinds[TN_SOURCE_KINDS] = {[TN_SOURCE_MQTT] = "mqtt",
                                                   [TN_SOURCE_SOCKET] = "socket",
                                                   [TN_SOURCE_FILE] = "file",
                                                   [TN_SOURCE_STDIN] = "stdin"};

const char *tn_source_kind_name(enum tn_source_kind kind)
{
    return kinds[kind];
}

/* ---- secrets ---- */

static bool visible(const char *text)
{
    for (; *text; text++) {
        if (*text <= ' ' || *text > '~') {
            return false;
        }
    }
    return true;
}

void tn_config_take_token(struct tn_config_reader *r, struct tn_config_node *node,
                          const struct tn_config_member *member, void *target)
{
    (void)member;
    node->secret = true;
    if (node->kind != TN_CONFIG_TEXT) {
        tn_config_wrong_value(r, node, "a text");
    } else if (!node->told && strlen(node->text) < TOKEN_MIN) {
        tn_config_wrong(r, node, "has %zu bytes; shorter than %d is guessed", strlen(node->text),
                        TOKEN_MIN);
    } else if (!node->told && (strlen(node->text) > SECRET_MAX || !visible(node->text))) {
        tn_config_wrong(r, node, "has blanks or other bytes that no header of HTTP can hold");
    } else {
        *(const char **)target = tn_config_keep(r, node->text);
    }
}

/* PEM, of which a key is never shown, and a certificate is too long to. */
static void take_pem(struct tn_config_reader *r, struct tn_config_node *node,
                     const struct tn_config_member *member, void *target)
{
    bool key = strcmp(member->name, "key") == 0;
    node->secret = true;
    if (node->kind == TN_CONFIG_TEXT &&
        strstr(node->text, key ? "PRIVATE KEY-----" : "-----BEGIN CERTIFICATE-----")) {
        *(const char **)target = tn_config_keep(r, node->text);
    } else {
        tn_config_wrong_value(r, node, "the text of a PEM file with a %s: file(\"%s.pem\")",
                              key ? "private key" : "certificate", member->name);
    }
}

void tn_config_take_tls(struct tn_config_reader *r, struct tn_config_node *node,
                        const struct tn_config_member *member, void *target)
{
    static const struct tn_config_member members[] = {
        {"ca", take_pem, offsetof(struct tn_config_tls, ca), 0, 0, false},
        {"pinned", take_pem, offsetof(struct tn_config_tls, pinned), 0, 0, false},
        {"certificate", take_pem, offsetof(struct tn_config_tls, certificate), 0, 0, false},
        {"key", take_pem, offsetof(struct tn_config_tls, key), 0, 0, false},
    };
    (void)member;
    if (!tn_config_members(r, node, members, sizeof members / sizeof members[0], target)) {
        return;
    }
    if (tn_config_member_of(node, "ca") && tn_config_member_of(node, "pinned")) {
        tn_config_wrong(r, node, "'ca' and 'pinned' exclude each other");
    }
    bool certificate = tn_config_member_of(node, "certificate");
    bool key = tn_config_member_of(node, "key");
    if (certificate != key) {
        tn_config_wrong(r, node, "'%s' is missing: certificate and key go together",
                        key ? "certificate" : "key");
    }
}

void tn_config_check_open(struct tn_config_reader *r, const struct tn_config_node *node,
                          const char *member, bool loopback)
{
    if (!loopback && !tn_config_member_of(node, "token")) {
        tn_config_wrong(r, tn_config_member_of(node, member),
                        "others than this machine can reach it, so a 'token' is needed: token = "
                        "file(\"...\"); or listen on 127.0.0.1");
    }
}

/* ---- names of tables ---- */

struct tn_config_table *tn_config_find_table(const struct tn_config *config, const char *name)
{
    struct tn_config_table *table = config->tables;
    while (table && strcmp(table->name, name) != 0) {
        table = table->next;
    }
    return table;
}

static const char *nearest_table(struct tn_config_reader *r, const char *name)
{
    uint32_t count = 0;
    size_t mark = tn_arena_mark(&r->scratch);
    const char **names =
        tn_arena_take(&r->scratch, (r->config->table_count + 1) * sizeof(const char *));
    for (struct tn_config_table *t = r->config->tables; t && names; t = t->next) {
        names[count++] = t->name;
    }
    const char *near = names ? tn_nearest_name(tn_bytes_of(name), names, count) : NULL;
    tn_arena_reset(&r->scratch, mark);
    return near;
}

void tn_config_take_table(struct tn_config_reader *r, struct tn_config_node *node,
                          const struct tn_config_member *member, void *target)
{
    (void)member;
    const char *name = tn_config_text(r, node, "a table, like 'plant.readings'");
    const struct tn_config_table *table = name ? tn_config_find_table(r->config, name) : NULL;
    if (table) {
        *(const char **)target = table->name;
        return;
    }
    const char *near = name ? nearest_table(r, name) : NULL;
    if (near) {
        tn_config_wrong_value(r, node, "a table of 'tables'; did you mean '%s'?", near);
    } else if (name) {
        tn_config_wrong_value(r, node, "a table that is in 'tables'");
    }
}

/* ---- MQTT ---- */

static void take_filter(struct tn_config_reader *r, struct tn_config_node *node,
                        const struct tn_config_member *member, void *target)
{
    (void)member;
    struct tn_err err = {0};
    const char *text = tn_config_text(r, node, "a topic filter, like 'plant/+/temp'");
    if (!text) {
        return;
    }
    if (tn_mqtt_filter_check(tn_bytes_of(text), &err) != TN_OK) {
        tn_config_wrong_value(r, node, "a topic filter; %s",
                              node->secret ? "+ and # stand alone" : err.text);
        return;
    }
    *(const char **)target = tn_config_keep(r, text);
}

static void take_qos(struct tn_config_reader *r, struct tn_config_node *node,
                     const struct tn_config_member *member, void *target)
{
    (void)member;
    if (node->kind == TN_CONFIG_INTEGER && node->integer >= 0 && node->integer <= 2) {
        *(uint8_t *)target = (uint8_t)node->integer;
    } else {
        tn_config_wrong_value(r, node, "0, 1 or 2");
    }
}

/* The broker has one subscription of a filter, and may send twice what two of them give. */
static void check_filters(struct tn_config_reader *r, const struct tn_config_node *item,
                          const struct tn_config_subscribe *all,
                          const struct tn_config_subscribe *made)
{
    for (const struct tn_config_subscribe *s = all; s && s != made && made->filter; s = s->next) {
        const struct tn_config_node *filter = tn_config_member_of(item, "filter");
        if (s->filter && strcmp(s->filter, made->filter) == 0) {
            tn_config_wrong(r, filter, "a second subscription to the same filter");
            return;
        }
        if (s->filter &&
            tn_mqtt_filters_overlap(tn_bytes_of(s->filter), tn_bytes_of(made->filter))) {
            tn_config_wrong(r, filter,
                            "a topic may be of another filter, too, and its messages come twice: "
                            "give one of them a source of its own");
            return;
        }
    }
}

static void take_subscribe(struct tn_config_reader *r, struct tn_config_node *node,
                           const struct tn_config_member *member, void *target)
{
    static const struct tn_config_member members[] = {
        {"filter", take_filter, offsetof(struct tn_config_subscribe, filter), 0, 0, true},
        {"table", tn_config_take_table, offsetof(struct tn_config_subscribe, table), 0, 0, true},
        {"input", tn_config_take_input, offsetof(struct tn_config_subscribe, input), 0, 0, false},
        {"qos", take_qos, offsetof(struct tn_config_subscribe, qos), 0, 2, false},
    };
    (void)member;
    struct tn_config_subscribe **first = target;
    struct tn_config_subscribe **end = target;
    struct tn_config_node *item = tn_config_item(r, node, NULL);
    if (!item && !node->told) {
        tn_config_wrong(r, node, "is empty: it says what comes from the broker");
    }
    for (; item; item = tn_config_item(r, node, item)) {
        struct tn_config_subscribe *s = tn_config_take(r, sizeof *s);
        if (!s) {
            return;
        }
        s->qos = 1;
        *end = s;
        end = &s->next;
        if (tn_config_members(r, item, members, sizeof members / sizeof members[0], s)) {
            check_filters(r, item, *first, s);
        }
    }
}

static void take_url(struct tn_config_reader *r, struct tn_config_node *node,
                     const struct tn_config_member *member, void *target)
{
    (void)member;
    bool tls = false;
    const char *text = tn_config_text(r, node, "a URL like mqtt://host:1883");
    if (!text) {
        return;
    }
    const char *want = tn_config_url_check(text, &tls);
    node->secret = node->secret || strchr(text, '@'); /* a password may be in it */
    if (want) {
        tn_config_wrong_value(r, node, "%s", want);
    } else {
        *(const char **)target = tn_config_keep(r, text);
    }
}

/* TLS verifies always: with nothing to verify by it can't begin. */
static void check_mqtt(struct tn_config_reader *r, struct tn_config_node *node,
                       struct tn_config_source *source)
{
    bool tls = false;
    struct tn_config_node *member = tn_config_member_of(node, "tls");
    if (!source->url || tn_config_url_check(source->url, &tls)) {
        return;
    }
    if (!tls && member) {
        tn_config_wrong(r, member, "is for an url with mqtts://");
    } else if (tls && !source->tls.ca && !source->tls.pinned && (!member || !member->told)) {
        tn_config_wrong(r, member ? member : node,
                        "an url with mqtts:// needs tls.ca or tls.pinned, to know the broker by: "
                        "tls = { ca = file(\"ca.pem\") }");
    }
    if (source->password && !tn_config_member_of(node, "user")) {
        tn_config_wrong(r, tn_config_member_of(node, "password"), "a password without a 'user'");
    }
}

/* ---- sockets ---- */

static void take_listen(struct tn_config_reader *r, struct tn_config_node *node,
                        const struct tn_config_member *member, void *target)
{
    (void)member;
    static const char want[] = "127.0.0.1:7081 or unix:/run/tarn/in: an address with a port, or "
                               "a path";
    bool loopback = true;
    const char *text = tn_config_text(r, node, want);
    if (!text) {
        return;
    }
    if (strncmp(text, "unix:", 5) != 0) {
        *(const char **)target = tn_config_keep(r, text);
        if (!tn_config_listen_parse(text, &loopback)) {
            tn_config_wrong_value(r, node, "%s", want);
        } else {
            tn_config_check_open(r, node->parent, "listen", loopback);
        }
        return;
    }
    const char *path = text[5] ? tn_config_path(r, text + 5) : NULL;
    if (!path || strlen(path) >= SOCKET_PATH_SIZE) {
        tn_config_wrong_value(r, node, "a path of less than %d bytes", SOCKET_PATH_SIZE);
        return;
    }
    const char *kept = tn_arena_format(r->kept, "unix:%s", path);
    r->full |= !kept;
    *(const char **)target = kept;
}

void tn_config_check_served(struct tn_config_reader *r, struct tn_config_node *tls)
{
    if (tls && tls->kind == TN_CONFIG_TABLE && !tn_config_member_of(tls, "certificate") &&
        !tn_config_member_of(tls, "key")) {
        tn_config_wrong(r, tls, "'certificate' and 'key' are missing: this side shows them");
    }
}

static void check_socket(struct tn_config_reader *r, struct tn_config_node *node,
                         struct tn_config_source *source)
{
    struct tn_config_node *tls = tn_config_member_of(node, "tls");
    tn_config_check_served(r, tls);
    if (source->input == TN_INPUT_CSV) {
        tn_config_wrong(r, tn_config_member_of(node, "input"),
                        "csv names its columns in the first line alone; a socket takes other "
                        "inputs");
    }
    if (tls && source->url && strncmp(source->url, "unix:", 5) == 0) {
        tn_config_wrong(r, tls, "is not for a Unix socket");
    }
}

/* ---- all sources ---- */

static void take_name(struct tn_config_reader *r, struct tn_config_node *node,
                      const struct tn_config_member *member, void *target)
{
    (void)member;
    static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const char *text = tn_config_text(r, node, "a name");
    if (text && (strspn(text, legal) != strlen(text) || strlen(text) > TN_CONFIG_NAME_MAX)) {
        tn_config_wrong_value(r, node, "letters, digits, - and _, at most %d", TN_CONFIG_NAME_MAX);
    } else if (text) {
        *(const char **)target = tn_config_keep(r, text);
    }
}

static void take_kind(struct tn_config_reader *r, struct tn_config_node *node,
                      const struct tn_config_member *member, void *target)
{
    (void)r; /* it was read before */
    (void)node;
    (void)member;
    (void)target;
}

#define AT(member) offsetof(struct tn_config_source, member)
#define OF_ALL                                   \
    {"kind", take_kind, 0, 0, 0, false},         \
    {                                            \
        "name", take_name, AT(name), 0, 0, false \
    }
#define OF_RECORDS                                            \
    {"table", tn_config_take_table, AT(table), 0, 0, true},   \
    {                                                         \
        "input", tn_config_take_input, AT(input), 0, 0, false \
    }

static const struct tn_config_member mqtt_members[] = {
    OF_ALL,
    {"url", take_url, AT(url), 0, 0, true},
    {"client_id", tn_config_take_text, AT(client_id), 0, TN_CONFIG_NAME_MAX, false},
    {"user", tn_config_take_text, AT(user), 0, USER_MAX, false},
    {"password", tn_config_take_secret, AT(password), 0, SECRET_MAX, false},
    {"tls", tn_config_take_tls, AT(tls), 0, 0, false},
    {"keep_alive", tn_config_take_seconds, AT(keep_alive_s), 1000, 65535000, false},
    {"in_flight", tn_config_take_count, AT(in_flight), 1, TN_MQTT_SOURCE_KNOWN_MAX, false},
    {"session_expiry", tn_config_take_seconds, AT(session_expiry_s), 0, 365 * 86400000ULL, false},
    {"subscribe", take_subscribe, AT(subscribe), 0, 0, true},
};
static const struct tn_config_member socket_members[] = {
    OF_ALL,
    {"token", tn_config_take_token, AT(token), 0, 0, false},
    {"listen", take_listen, AT(url), 0, 0, true},
    {"tls", tn_config_take_tls, AT(tls), 0, 0, false},
    {"connections", tn_config_take_count, AT(connections), 1, 1024, false},
    {"line_size", tn_config_take_size_32, AT(line_size_max), 64, 1 << 30, false},
    OF_RECORDS,
};
static const struct tn_config_member file_members[] = {
    OF_ALL,
    {"path", tn_config_take_path, AT(url), 0, 0, true},
    OF_RECORDS,
};
static const struct tn_config_member stdin_members[] = {OF_ALL, OF_RECORDS};

#define MEMBERS(list) list, sizeof(list) / sizeof((list)[0])

static const struct {
    const struct tn_config_member *members;
    uint32_t count;
    void (*check)(struct tn_config_reader *r, struct tn_config_node *node,
                  struct tn_config_source *source);
} by_kind[TN_SOURCE_KINDS] = {
    [TN_SOURCE_MQTT] = {MEMBERS(mqtt_members), check_mqtt},
    [TN_SOURCE_SOCKET] = {MEMBERS(socket_members), check_socket},
    [TN_SOURCE_FILE] = {MEMBERS(file_members), NULL},
    [TN_SOURCE_STDIN] = {MEMBERS(stdin_members), NULL},
};

/* What it is decides what else it may have. */
static int kind_of(struct tn_config_reader *r, struct tn_config_node *node)
{
    if (node->kind != TN_CONFIG_TABLE) {
        tn_config_wrong_value(r, node, "a source: { kind = ... }");
        return -1;
    }
    struct tn_config_node *kind = tn_config_member_of(node, "kind");
    if (!kind) {
        tn_config_wrong(r, node, "'kind' is missing: mqtt, socket, file or stdin");
        return -1;
    }
    return tn_config_word(r, kind, kinds, TN_SOURCE_KINDS);
}

static struct tn_config_source *take_source(struct tn_config_reader *r, struct tn_config_node *node)
{
    int kind = kind_of(r, node);
    struct tn_config_source *source = kind >= 0 ? tn_config_take(r, sizeof *source) : NULL;
    if (!source) {
        return NULL;
    }
    *source = (struct tn_config_source){.kind = (enum tn_source_kind)kind,
                                        .keep_alive_s = 60,
                                        .in_flight = 32,
                                        .session_expiry_s = (uint32_t)(7 * day_ms / 1000),
                                        .connections = 8};
    if (tn_config_members(r, node, by_kind[kind].members, by_kind[kind].count, source) &&
        by_kind[kind].check) {
        by_kind[kind].check(r, node, source);
    }
    return source;
}

/* ---- between sources ---- */

static uint32_t count_of(const struct tn_config *config, enum tn_source_kind kind)
{
    uint32_t count = 0;
    for (const struct tn_config_source *s = config->sources; s; s = s->next) {
        count += s->kind == kind;
    }
    return count;
}

/* "mqtt", or where there are several "mqtt-2", in the order of the list: a name decides what a
 * source has of its positions, so one that was given is better. */
static void give_names(struct tn_config_reader *r)
{
    uint32_t numbers[TN_SOURCE_KINDS] = {0};
    for (struct tn_config_source *s = r->config->sources; s; s = s->next) {
        uint32_t number = ++numbers[s->kind];
        if (!s->name) {
            s->name = count_of(r->config, s->kind) == 1
                          ? kinds[s->kind]
                          : tn_arena_format(r->kept, "%s-%" PRIu32, kinds[s->kind], number);
            r->full |= !s->name;
        }
    }
}

static bool same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

static void check_pair(struct tn_config_reader *r, const struct tn_config_node *node,
                       const struct tn_config_source *a, const struct tn_config_source *b)
{
    if (same(a->name, b->name)) {
        tn_config_wrong(r, node, "a second source named '%s'; give it a 'name'", b->name);
    }
    if (a->kind != b->kind) {
        return;
    }
    if (a->kind == TN_SOURCE_STDIN) {
        tn_config_wrong(r, node, "a second source on standard input");
    } else if (a->kind == TN_SOURCE_MQTT && same(a->url, b->url) &&
               same(a->client_id, b->client_id)) {
        tn_config_wrong(r, node,
                        "a second source with this 'client_id' at this broker, which "
                        "would throw out the first");
    } else if (a->kind != TN_SOURCE_MQTT && same(a->url, b->url)) {
        tn_config_wrong(r, node, "a second source of the same '%s'",
                        a->kind == TN_SOURCE_FILE ? "path" : "listen");
    }
}

static void check_pairs(struct tn_config_reader *r, const struct tn_config_node *const *nodes)
{
    const struct tn_config_source *b = r->config->sources;
    for (uint32_t i = 0; b; b = b->next, i++) {
        for (const struct tn_config_source *a = r->config->sources; a != b; a = a->next) {
            check_pair(r, nodes[i], a, b);
        }
    }
}

void tn_config_take_sources(struct tn_config_reader *r, struct tn_config_node *node,
                            const struct tn_config_member *member, void *target)
{
    (void)member;
    struct tn_config *config = target;
    struct tn_config_source **end = &config->sources;
    uint32_t room = 0;
    for (const struct tn_config_node *n = node->first; n; n = n->next) {
        room++;
    }
    const struct tn_config_node **nodes =
        tn_arena_take(&r->scratch, (room + 1) * sizeof(const struct tn_config_node *));
    r->full |= !nodes;
    struct tn_config_node *item = tn_config_item(r, node, NULL);
    for (; nodes && item; item = tn_config_item(r, node, item)) {
        struct tn_config_source *source = take_source(r, item);
        if (source) {
            nodes[config->source_count++] = item;
            *end = source;
            end = &source->next;
        }
    }
    give_names(r);
    if (nodes) {
        check_pairs(r, nodes);
    }
}
