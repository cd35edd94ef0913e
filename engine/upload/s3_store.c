#include "upload/s3_store.h"

#include <stdio.h>

#include "upload/http.h"

enum { PORT_HTTP = 80, PORT_HTTPS = 443, LABEL_MAX = 63 };

/* ---- names ---- */

static bool is_small(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
}

static bool is_name_byte(char byte)
{
    return is_small(byte) || (byte >= 'A' && byte <= 'Z') || byte == '-' || byte == '.' ||
           byte == '_';
}

static bool all_name_bytes(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (!is_name_byte(text[i])) {
            return false;
        }
    }
    return true;
}

/* Whether a bucket can be the first part of a host's name. A dot would leave the certificate. */
static bool is_label(const char *bucket, bool tls)
{
    size_t size = strlen(bucket);
    for (size_t i = 0; i < size; i++) {
        bool edge = i == 0 || i + 1 == size;
        if (!is_small(bucket[i]) && (edge || (bucket[i] != '-' && (bucket[i] != '.' || tls)))) {
            return false;
        }
    }
    return size > 0 && size <= LABEL_MAX;
}

tn_rc tn_s3_place_parse(struct tn_s3_place *place, const char *text, struct tn_err *err)
{
    static const char *const schemes[] = {"s3://", "s3a://", "s3n://"};
    const char *at = NULL;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        size_t size = strlen(schemes[i]);
        at = strncmp(text, schemes[i], size) == 0 ? text + size : at;
    }
    if (!at) {
        return tn_err_set(err, TN_INVALID, 0, "%s: that is not s3://bucket/prefix", text);
    }
    size_t size = strcspn(at, "/");
    if (size == 0 || size >= sizeof place->bucket || !all_name_bytes(at, size)) {
        return tn_err_set(err, TN_INVALID, 0, "%s: that is no name of a bucket", text);
    }
    memcpy(place->bucket, at, size);
    place->bucket[size] = 0;
    at += size;
    at += strspn(at, "/");
    place->prefix = at;
    place->prefix_size = strlen(at);
    while (place->prefix_size > 0 && at[place->prefix_size - 1] == '/') {
        place->prefix_size--;
    }
    return TN_OK;
}

/* ---- the host ---- */

static tn_rc parse_flag(const char *text, const char *name, bool *flag, struct tn_err *err)
{
    if (!text) {
        return TN_OK;
    }
    bool yes = tn_http_same(tn_bytes_of(text), "true");
    if (!yes && !tn_http_same(tn_bytes_of(text), "false")) {
        return tn_err_set(err, TN_INVALID, 0, "%s: true or false, not '%s'", name, text);
    }
    *flag = yes;
    return TN_OK;
}

/* An address: what has only digits and dots, or colons. */
static bool is_address(const char *host)
{
    return strchr(host, ':') || strspn(host, "0123456789.") == strlen(host);
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text);
    size_t end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

static bool set_region(struct tn_s3_store *store, const char *region, size_t size)
{
    if (size == 0 || size >= sizeof store->region || !all_name_bytes(region, size) ||
        memchr(region, '.', size)) {
        return false;
    }
    memcpy(store->region, region, size);
    store->region[size] = 0;
    return true;
}

/* "s3.eu-west-1.amazonaws.com": only these follow a region. Dual stack, FIPS and private ones are
 * taken as they are. */
static void read_aws(struct tn_s3_store *store, bool region_given)
{
    const char *end =
        ends_with(store->host, ".amazonaws.com.cn") ? ".amazonaws.com.cn" : ".amazonaws.com";
    if (strcmp(store->host, "s3.amazonaws.com") == 0) {
        store->aws = true;
        return;
    }
    if (strncmp(store->host, "s3.", 3) != 0 || !ends_with(store->host, end)) {
        return;
    }
    size_t whole = strlen(store->host);
    size_t size = whole > 3 + strlen(end) ? whole - 3 - strlen(end) : 0;
    if (size > 0 && !memchr(store->host + 3, '.', size)) {
        store->aws = true;
        if (!region_given) {
            (void)set_region(store, store->host + 3, size);
        }
    }
}

static bool set_aws_host(struct tn_s3_store *store)
{
    const char *end = strncmp(store->region, "cn-", 3) == 0 ? ".cn" : "";
    bool dots = store->path_style;
    int size = snprintf(store->host, sizeof store->host, "%s%ss3.%s.amazonaws.com%s",
                        dots ? "" : store->bucket, dots ? "" : ".", store->region, end);
    (void)snprintf(store->authority, sizeof store->authority, "%s", store->host);
    return size > 0 && (size_t)size < sizeof store->host;
}

static bool parse_port(const char *text, uint16_t *port)
{
    uint64_t number = 0;
    if (!tn_http_number(tn_bytes_of(text), &number) || number == 0 || number > UINT16_MAX) {
        return false;
    }
    *port = (uint16_t)number;
    return true;
}

/* "host", "host:port", "[::1]:port"; a '/' may stand at the end. */
static bool split_endpoint(struct tn_s3_store *store, const char *at)
{
    char text[TN_S3_HOST_SIZE];
    size_t size = strlen(at);
    size -= size > 0 && at[size - 1] == '/';
    if (size == 0 || size >= sizeof text) {
        return false;
    }
    memcpy(text, at, size);
    text[size] = 0;
    char *host = text;
    char *end = NULL;
    if (*host == '[') {
        host++;
        end = strchr(host, ']');
        if (!end || strspn(host, "0123456789abcdefABCDEF:.") != (size_t)(end - host)) {
            return false;
        }
        *end++ = 0;
    } else {
        end = host + strcspn(host, ":");
    }
    if (*end == ':' && !parse_port(end + 1, &store->port)) {
        return false;
    }
    if (*end != 0 && *end != ':') {
        return false;
    }
    *end = 0;
    (void)snprintf(store->host, sizeof store->host, "%s", host);
    return *host && (*text == '[' || all_name_bytes(host, strlen(host)));
}

static tn_rc read_endpoint(struct tn_s3_store *store, const char *endpoint, struct tn_err *err)
{
    const char *at = endpoint;
    if (strncmp(at, "https://", 8) == 0) {
        store->tls = true;
        at += 8;
    } else if (strncmp(at, "http://", 7) == 0) {
        store->tls = false;
        at += 7;
    }
    store->port = store->tls ? PORT_HTTPS : PORT_HTTP;
    if (!split_endpoint(store, at)) {
        return tn_err_set(err, TN_INVALID, 0,
                          "s3.endpoint: '%s' is not a host, or http://host:port", endpoint);
    }
    return TN_OK;
}

/* The bucket in front, brackets around, the port behind. */
static tn_rc finish_host(struct tn_s3_store *store, struct tn_err *err)
{
    char name[TN_S3_HOST_SIZE];
    bool bare = store->port == (store->tls ? PORT_HTTPS : PORT_HTTP);
    int size = snprintf(name, sizeof name, "%s%s%s", store->path_style ? "" : store->bucket,
                        store->path_style ? "" : ".", store->host);
    if (size < 0 || (size_t)size >= sizeof name) {
        return tn_err_set(err, TN_INVALID, 0, "s3.endpoint: its name is too long");
    }
    memcpy(store->host, name, (size_t)size + 1);
    bool brackets = strchr(name, ':') != NULL;
    char port[8] = "";
    if (!bare) {
        (void)snprintf(port, sizeof port, ":%u", (unsigned)store->port);
    }
    size = snprintf(store->authority, sizeof store->authority, "%s%s%s%s", brackets ? "[" : "",
                    name, brackets ? "]" : "", port);
    return size > 0 && (size_t)size < sizeof store->authority
               ? TN_OK
               : tn_err_set(err, TN_INVALID, 0, "s3.endpoint: its name is too long");
}

static tn_rc read_credentials(struct tn_s3_store *store, const struct tn_s3_options *options,
                              struct tn_err *err)
{
    bool access = options->access_key && *options->access_key;
    bool secret = options->secret_key && *options->secret_key;
    if (!access || !secret) {
        return tn_err_set(err, TN_INVALID, 0,
                          "S3: no %s: set s3.access-key and s3.secret-key, or "
                          "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
                          access   ? "secret key"
                          : secret ? "access key"
                                   : "credentials");
    }
    bool token = options->session_token && *options->session_token;
    store->access_key = options->access_key;
    store->secret_key = options->secret_key;
    store->session_token = token ? options->session_token : NULL;
    return TN_OK;
}

static tn_rc read_place(struct tn_s3_store *store, const struct tn_s3_options *options,
                        const char *bucket, struct tn_err *err)
{
    size_t size = strlen(bucket);
    if (size == 0 || size >= sizeof store->bucket || !all_name_bytes(bucket, size)) {
        return tn_err_set(err, TN_INVALID, 0, "S3: '%s' is no name of a bucket", bucket);
    }
    memcpy(store->bucket, bucket, size + 1);
    const char *region = options->region && *options->region ? options->region : "us-east-1";
    return set_region(store, region, strlen(region))
               ? TN_OK
               : tn_err_set(err, TN_INVALID, 0, "s3.region: '%s' is no name of a region", region);
}

static tn_rc choose_host(struct tn_s3_store *store, const struct tn_s3_options *options,
                         struct tn_err *err)
{
    bool given = options->endpoint && *options->endpoint;
    bool path_style = false;
    tn_rc rc = parse_flag(options->path_style, "s3.path-style-access", &path_style, err);
    if (rc == TN_OK && given) {
        rc = read_endpoint(store, options->endpoint, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    if (given) {
        read_aws(store, options->region && *options->region);
    } else {
        store->aws = true;
        store->port = store->tls ? PORT_HTTPS : PORT_HTTP;
    }
    store->path_style = path_style || !is_label(store->bucket, store->tls) ||
                        (!store->aws && (is_address(store->host) || !strchr(store->host, '.')));
    if (store->aws && store->port == (store->tls ? PORT_HTTPS : PORT_HTTP)) {
        return set_aws_host(store)
                   ? TN_OK
                   : tn_err_set(err, TN_INVALID, 0, "S3: the bucket's name is too long");
    }
    store->aws = false;
    return finish_host(store, err);
}

tn_rc tn_s3_store_init(struct tn_s3_store *store, const struct tn_s3_options *options,
                       const char *bucket, struct tn_err *err)
{
    memset(store, 0, sizeof *store);
    store->tls = true;
    tn_rc rc = read_credentials(store, options, err);
    if (rc == TN_OK) {
        rc = read_place(store, options, bucket, err);
    }
    if (rc == TN_OK) {
        rc = parse_flag(options->tls, "s3.connection.ssl.enabled", &store->tls, err);
    }
    return rc == TN_OK ? choose_host(store, options, err) : rc;
}

bool tn_s3_store_move(struct tn_s3_store *store, const char *region)
{
    if (strcmp(region, store->region) == 0 || !set_region(store, region, strlen(region))) {
        return false;
    }
    return !store->aws || set_aws_host(store);
}
