/* Texts that are sizes, times, rules and addresses. */
#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>

#include "app/config_private.h"
#include "schema/options.h"

enum { PART_MAX = 64 };

static const int64_t day_ms = 86400000;

/* ---- sizes and times ---- */

bool tn_config_size_parse(const char *text, uint64_t *bytes)
{
    int64_t value = 0;
    if (!isdigit((unsigned char)text[0]) || !tn_parse_size(tn_bytes_of(text), &value)) {
        return false;
    }
    *bytes = (uint64_t)value;
    return true;
}

bool tn_config_time_parse(const char *text, int64_t *ms)
{
    size_t size = strlen(text);
    return size > 0 && isdigit((unsigned char)text[0]) && !isdigit((unsigned char)text[size - 1]) &&
           text[size - 1] != 'M' && /* a size */
           tn_parse_duration(tn_bytes_of(text), ms);
}

struct unit {
    int64_t scale;
    const char *name;
};

static void put_scaled(uint64_t value, const struct unit *units, struct tn_buf *buf)
{
    const struct unit *unit = units;
    while (value == 0 ? unit->scale > 1 : value % (uint64_t)unit->scale != 0) {
        unit++; /* the last one's is 1 */
    }
    tn_buf_format(buf, "%" PRIu64 "%s", value / (uint64_t)unit->scale, unit->name);
}

void tn_config_size_format(uint64_t bytes, struct tn_buf *buf)
{
    static const struct unit units[] = {{1 << 30, "G"}, {1 << 20, "M"}, {1 << 10, "K"}, {1, ""}};
    put_scaled(bytes, units, buf);
}

void tn_config_time_format(int64_t ms, struct tn_buf *buf)
{
    static const struct unit units[] = {
        {86400000, "d"}, {3600000, "h"}, {60000, "min"}, {1000, "s"}, {1, "ms"}};
    put_scaled((uint64_t)ms, units, buf);
}

/* ---- rules ---- */

static bool parse_rows(const char *text, uint64_t *rows)
{
    char *end = NULL;
    if (!isdigit((unsigned char)text[0]) || strlen(text) > 15) {
        return false;
    }
    *rows = strtoull(text, &end, 10);
    end += strspn(end, " ");
    return strcmp(end, "rows") == 0 || strcmp(end, "row") == 0;
}

static tn_rc twice(const char *part, const char *what, struct tn_err *err)
{
    return tn_err_set(err, TN_INVALID, 0, "'%s' is a second %s", part, what);
}

static tn_rc parse_part(const char *part, bool with_rows, struct tn_commit_rule *rule,
                        struct tn_err *err)
{
    uint64_t value = 0;
    int64_t ms = 0;
    size_t size = strlen(part);
    if (size > 1 && part[size - 1] == 'm' && isdigit((unsigned char)part[0])) {
        return tn_err_set(err, TN_INVALID, 0, "'%s' is a time or a size? write %.*smin or %.*sM",
                          part, (int)size - 1, part, (int)size - 1, part);
    }
    if (with_rows && parse_rows(part, &value)) {
        bool again = rule->rows > 0;
        rule->rows = value;
        return again       ? twice(part, "number of rows", err)
               : value > 0 ? TN_OK
                           : tn_err_set(err, TN_INVALID, 0, "'%s' is no rule: 1 or more", part);
    }
    if (tn_config_time_parse(part, &ms)) {
        bool again = rule->ms > 0;
        rule->ms = ms;
        return again ? twice(part, "time", err)
               : ms > 0 && ms <= 7 * day_ms
                   ? TN_OK
                   : tn_err_set(err, TN_INVALID, 0, "'%s' is not between 1ms and 7d", part);
    }
    if (!isdigit((unsigned char)part[size ? size - 1 : 0]) && tn_config_size_parse(part, &value)) {
        bool again = rule->bytes > 0;
        rule->bytes = value;
        return again           ? twice(part, "size", err)
               : value >= 1024 ? TN_OK
                               : tn_err_set(err, TN_INVALID, 0, "'%s' is below 1K", part);
    }
    return tn_err_set(err, TN_INVALID, 0, "'%s' is no time (30s)%s size (1M)", part,
                      with_rows ? ", number of rows (5000 rows) or" : " or");
}

tn_rc tn_config_rule_parse(const char *text, bool rows, struct tn_commit_rule *rule,
                           struct tn_err *err)
{
    struct tn_commit_rule made = {0};
    tn_rc rc = TN_OK;
    for (const char *at = text; rc == TN_OK && at;) {
        char part[PART_MAX];
        const char *end = strstr(at, " or ");
        size_t size = end ? (size_t)(end - at) : strlen(at);
        if (size >= sizeof part) {
            return tn_err_set(err, TN_INVALID, 0, "its parts are too long");
        }
        memcpy(part, at, size);
        part[size] = 0;
        rc = parse_part(part, rows, &made, err);
        at = end ? end + strlen(" or ") : NULL;
    }
    if (rc == TN_OK) {
        *rule = made;
    }
    return rc;
}

tn_rc tn_commit_rule_parse(const char *text, struct tn_commit_rule *rule, struct tn_err *err)
{
    return tn_config_rule_parse(text, true, rule, err);
}

void tn_commit_rule_format(const struct tn_commit_rule *rule, struct tn_buf *buf)
{
    const char *between = "";
    if (rule->ms > 0) {
        tn_config_time_format(rule->ms, buf);
        between = " or ";
    }
    if (rule->rows > 0) {
        tn_buf_format(buf, "%s%" PRIu64 " rows", between, rule->rows);
        between = " or ";
    }
    if (rule->bytes > 0) {
        tn_buf_text(buf, between);
        tn_config_size_format(rule->bytes, buf);
    }
}

/* ---- addresses ---- */

static bool is_loopback(const char *host, bool *known)
{
    struct in6_addr v6;
    struct in_addr v4;
    *known = true;
    if (inet_pton(AF_INET, host, &v4) == 1) {
        return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    if (inet_pton(AF_INET6, host, &v6) == 1) {
        return memcmp(&v6, &in6addr_loopback, sizeof v6) == 0;
    }
    return *known = strcmp(host, "localhost") == 0;
}

bool tn_config_listen_parse(const char *text, bool *loopback)
{
    char host[TN_HOST_SIZE];
    struct tn_endpoint at;
    struct tn_err ignored;
    bool known = false;
    if (tn_endpoint_parse(text, host, &at, &ignored) != TN_OK) {
        return false;
    }
    *loopback = is_loopback(host, &known);
    return known; /* a name may mean another place tomorrow, and a path is none */
}

bool tn_config_is_loopback(const char *host)
{
    bool known;
    return is_loopback(host, &known) && known;
}

bool tn_config_host_legal(const char *host)
{
    static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    struct in6_addr v6;
    return strspn(host, legal) == strlen(host) || inet_pton(AF_INET6, host, &v6) == 1;
}

bool tn_config_url_tls(const char *url)
{
    return strncmp(url, "mqtts://", 8) == 0;
}

tn_rc tn_config_url_parse(const char *url, char host[TN_HOST_SIZE], struct tn_endpoint *at,
                          struct tn_err *err)
{
    bool tls = tn_config_url_tls(url);
    const char *address = strstr(url, "://");
    return tn_endpoint_parse_or(address ? address + 3 : url, tls ? 8883 : 1883, host, at, err);
}

const char *tn_config_url_check(const char *text, bool *tls)
{
    char host[TN_HOST_SIZE];
    struct tn_endpoint at;
    struct tn_err ignored;
    *tls = tn_config_url_tls(text);
    if (!*tls && strncmp(text, "mqtt://", 7) != 0) {
        return "a URL like mqtt://host:1883 or mqtts://host:8883";
    }
    const char *from = text + (*tls ? 8 : 7);
    if (strchr(from, '@')) {
        return "a URL without a user: `user` and `password` are members of their own";
    }
    if (strchr(from, '/')) {
        return "a URL that ends behind host and port";
    }
    if (tn_config_url_parse(text, host, &at, &ignored) != TN_OK || !tn_config_host_legal(host)) {
        return "a host behind the slashes, and a port from 1 to 65535 or none";
    }
    return NULL;
}
