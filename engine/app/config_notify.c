/* Who is told of uploads. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/config_private.h"
#include "format/http.h"
#include "ingest/mqtt_topic.h"
#include "script/uploaded.h"

enum { USER_MAX = 256, PASSWORD_MAX = 4096, PORT_MQTT = 1883, PORT_MQTTS = 8883 };

static const char want[] = "a URL like mqtt://host:1883, mqtts://host or https://host/path";

static const struct {
    const char *scheme;
    bool mqtt;
    bool tls;
    uint16_t port;
} schemes[] = {
    {"mqtt://", true, false, PORT_MQTT},
    {"mqtts://", true, true, PORT_MQTTS},
    {"http://", false, false, 80},
    {"https://", false, true, 443},
};
enum { SCHEMES = sizeof schemes / sizeof schemes[0] };

/* ---- a url ---- */

/* The path is what HTTP sends; where there is none it is "/". */
static bool take_path(struct tn_config_notify_url *url, const char *path)
{
    size_t size = strlen(path);
    if (size >= sizeof url->path - 1 || strchr(path, '#') ||
        !tn_http_all(tn_bytes_of(path), tn_http_is_visible)) {
        return false;
    }
    bool rooted = path[0] == '/';
    (void)snprintf(url->path, sizeof url->path, "%s%s", rooted ? "" : "/", path);
    char *mark = strchr(url->path, '?');
    url->query = mark ? mark + 1 : url->path + strlen(url->path);
    if (mark) {
        *mark = 0;
    }
    return true;
}

static void name_authority(struct tn_config_notify_url *url, uint16_t usual)
{
    bool v6 = strchr(url->at.host, ':');
    int used = snprintf(url->authority, sizeof url->authority, v6 ? "[%s]" : "%s", url->at.host);
    if (url->at.port != usual && used > 0 && (size_t)used < sizeof url->authority) {
        (void)snprintf(url->authority + used, sizeof url->authority - (size_t)used, ":%u",
                       url->at.port);
    }
}

static bool parse_behind(const char *text, int scheme, char host[TN_HOST_SIZE],
                         struct tn_config_notify_url *url)
{
    char address[TN_HOST_SIZE + 8];
    struct tn_err ignored;
    size_t size = strcspn(text, "/?");
    url->mqtt = schemes[scheme].mqtt;
    url->tls = schemes[scheme].tls;
    if (size >= sizeof address || memchr(text, '@', size) || (url->mqtt && text[size])) {
        return false;
    }
    memcpy(address, text, size);
    address[size] = 0;
    if (tn_endpoint_parse_or(address, schemes[scheme].port, host, &url->at, &ignored) != TN_OK ||
        !tn_config_host_legal(host) || !take_path(url, text + size)) {
        return false;
    }
    name_authority(url, schemes[scheme].port);
    return true;
}

tn_rc tn_config_notify_parse(const char *text, char host[TN_HOST_SIZE],
                             struct tn_config_notify_url *url, struct tn_err *err)
{
    for (int i = 0; i < SCHEMES; i++) {
        size_t size = strlen(schemes[i].scheme);
        if (strncmp(text, schemes[i].scheme, size) == 0 &&
            parse_behind(text + size, i, host, url)) {
            return TN_OK;
        }
    }
    return tn_err_set(err, TN_INVALID, 0, "want %s; user, password and token are members", want);
}

/* ---- members ---- */

/* The path of a hook is often its secret. */
static void take_url(struct tn_config_reader *r, struct tn_config_node *node,
                     const struct tn_config_member *member, void *target)
{
    char host[TN_HOST_SIZE];
    struct tn_config_notify_url url;
    struct tn_err err;
    (void)member;
    const char *text = tn_config_text(r, node, want);
    if (!text) {
        return;
    }
    node->secret = node->secret || strchr(text, '@') || strncmp(text, "http", 4) == 0;
    if (tn_config_notify_parse(text, host, &url, &err) == TN_OK) {
        *(const char **)target = tn_config_keep(r, text);
    } else {
        tn_config_wrong_value(r, node, "%s; user, password and token are members", want);
    }
}

static void take_topic(struct tn_config_reader *r, struct tn_config_node *node,
                       const struct tn_config_member *member, void *target)
{
    (void)member;
    const char *text = tn_config_text(r, node, "a topic, like 'plant/lake'");
    if (text && (strlen(text) > TN_UPLOADED_TOPIC_MAX || strpbrk(text, "+#") ||
                 tn_mqtt_text_valid(tn_bytes_of(text)) < strlen(text))) {
        tn_config_wrong_value(r, node, "a topic without + and #, of at most %d bytes",
                              TN_UPLOADED_TOPIC_MAX);
    } else if (text) {
        *(const char **)target = tn_config_keep(r, text);
    }
}

static void refuse(struct tn_config_reader *r, const struct tn_config_node *node,
                   const char *const *names, const char *whose)
{
    for (; *names; names++) {
        const struct tn_config_node *member = tn_config_member_of(node, *names);
        if (member) {
            tn_config_wrong(r, member, "is of %s", whose);
        }
    }
}

static void check_mqtt(struct tn_config_reader *r, const struct tn_config_node *node,
                       const struct tn_config_notify *notify)
{
    static const char *const http_names[] = {"token", NULL};
    refuse(r, node, http_names, "http:// and https://; MQTT has user and password");
    if (notify->password && !tn_config_member_of(node, "user")) {
        tn_config_wrong(r, tn_config_member_of(node, "password"), "a password without a 'user'");
    }
    for (const struct tn_config_source *s = r->config->sources; s && notify->client_id;
         s = s->next) {
        if (s->client_id && strcmp(s->client_id, notify->client_id) == 0) {
            tn_config_wrong(r, tn_config_member_of(node, "client_id"),
                            "is that of source '%s', too: a broker would shut one of them out",
                            s->name);
        }
    }
}

static void check_post(struct tn_config_reader *r, const struct tn_config_node *node,
                       const struct tn_config_notify *notify,
                       const struct tn_config_notify_url *url)
{
    static const char *const mqtt_names[] = {"topic", "client_id", "user", "password", NULL};
    refuse(r, node, mqtt_names, "mqtt:// and mqtts://; a POST has a token");
    if (notify->token && !url->tls && !tn_config_is_loopback(url->at.host)) {
        tn_config_wrong(r, tn_config_member_of(node, "token"),
                        "everybody on the way could read it: https://");
    }
}

static void check(struct tn_config_reader *r, struct tn_config_node *node,
                  const struct tn_config_notify *notify)
{
    char host[TN_HOST_SIZE];
    struct tn_config_notify_url url;
    struct tn_err ignored;
    struct tn_config_node *tls = tn_config_member_of(node, "tls");
    if (!notify->url || tn_config_notify_parse(notify->url, host, &url, &ignored) != TN_OK) {
        return;
    }
    if (url.mqtt) {
        check_mqtt(r, node, notify);
    } else {
        check_post(r, node, notify, &url);
    }
    if (!url.tls && tls) {
        tn_config_wrong(r, tls, "is for an url with mqtts:// or https://");
    } else if (url.tls && !notify->tls.ca && !notify->tls.pinned && (!tls || !tls->told)) {
        tn_config_wrong(r, tls ? tls : node,
                        "TLS needs tls.ca or tls.pinned, to know the other side by: tls = { ca = "
                        "file(\"ca.pem\") }");
    }
}

void tn_config_take_notify(struct tn_config_reader *r, struct tn_config_node *node,
                           const struct tn_config_member *member, void *target)
{
    static const struct tn_config_member members[] = {
        {"url", take_url, offsetof(struct tn_config_notify, url), 0, 0, true},
        {"topic", take_topic, offsetof(struct tn_config_notify, topic), 0, 0, false},
        {"client_id", tn_config_take_text, offsetof(struct tn_config_notify, client_id), 0,
         TN_CONFIG_NAME_MAX, false},
        {"user", tn_config_take_text, offsetof(struct tn_config_notify, user), 0, USER_MAX, false},
        {"password", tn_config_take_secret, offsetof(struct tn_config_notify, password), 0,
         PASSWORD_MAX, false},
        {"token", tn_config_take_token, offsetof(struct tn_config_notify, token), 0, 0, false},
        {"tls", tn_config_take_tls, offsetof(struct tn_config_notify, tls), 0, 0, false},
    };
    (void)member;
    if (tn_config_members(r, node, members, sizeof members / sizeof members[0], target)) {
        check(r, node, target);
    }
}
