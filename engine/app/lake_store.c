#include "app/lake_store.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "app/net_boot.h"
#include "base/check.h"
#include "base/hash.h"
#include "io/tls_memory.h"
#include "upload/xml.h"

static const char SYSTEM_CA[] = "/etc/ssl/certs/ca-certificates.crt";

enum {
    OPTION_NAME_SIZE = 64,
    CA_SIZE_MAX = 1024 * 1024,
    XML_SIZE = 16 * 1024,   /* a connection */
    TLS_BESIDE = 32 * 1024, /* what is TLS's, whoever speaks it */
};

bool tn_lake_is_store(const char *where)
{
    return strstr(where, "://") != NULL;
}

/* ---- options ---- */

static const struct {
    const char *name;
    size_t offset;
} own_options[] = {
    {"s3.ca-file", offsetof(struct tn_lake_options, ca_file)},
    {"s3.credentials-file", offsetof(struct tn_lake_options, credentials)},
    {"s3.profile", offsetof(struct tn_lake_options, profile)},
};

static bool take_own(struct tn_lake_options *options, const char *name, const char *value)
{
    for (size_t i = 0; i < sizeof own_options / sizeof own_options[0]; i++) {
        if (strcmp(name, own_options[i].name) == 0) {
            *(const char **)(void *)((char *)options + own_options[i].offset) = value;
            return true;
        }
    }
    return false;
}

tn_rc tn_lake_option(struct tn_lake_options *options, const char *text, struct tn_err *err)
{
    char name[OPTION_NAME_SIZE];
    const char *equals = strchr(text, '=');
    size_t size = equals ? (size_t)(equals - text) : 0;
    if (size == 0) {
        return tn_err_set(err, TN_INVALID, 0, "--option %s: want name=value", text);
    }
    if (size < sizeof name) {
        memcpy(name, text, size);
        name[size] = 0;
        if (take_own(options, name, equals + 1) || tn_s3_option(&options->s3, name, equals + 1)) {
            return TN_OK;
        }
    }
    return tn_err_set(err, TN_INVALID, 0,
                      "--option %.*s: there is no such option of a lake; see `tarn help upload`",
                      (int)size, text);
}

static const char *of_environment(void *user, const char *name)
{
    (void)user;
    return getenv(name);
}

static void from_environment(const char **member, const char *name)
{
    const char *value = *member ? NULL : getenv(name);
    if (value && *value) {
        *member = value;
    }
}

void tn_lake_options_environment(struct tn_lake_options *options)
{
    tn_s3_options_environment(&options->s3, of_environment, NULL);
    from_environment(&options->ca_file, "AWS_CA_BUNDLE");
    from_environment(&options->ca_file, "SSL_CERT_FILE");
    from_environment(&options->credentials, "AWS_SHARED_CREDENTIALS_FILE");
    from_environment(&options->profile, "AWS_PROFILE");
}

/* ---- which store ---- */

static const char *without_scheme(const char *endpoint)
{
    const char *slashes = strstr(endpoint, "://");
    return slashes ? slashes + 3 : endpoint;
}

static bool is_plain(const struct tn_s3_options *s3)
{
    if (s3->endpoint && strstr(s3->endpoint, "://")) {
        return strncasecmp(s3->endpoint, "http:", 5) == 0;
    }
    return s3->tls && strcasecmp(s3->tls, "false") == 0;
}

static bool is_this_machine(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, host, &v4) == 1) {
        return ntohl(v4.s_addr) >> 24 == 127;
    }
    if (inet_pton(AF_INET6, host, &v6) == 1) {
        return IN6_IS_ADDR_LOOPBACK(&v6);
    }
    return strcasecmp(host, "localhost") == 0;
}

static tn_rc host_of(const struct tn_s3_options *s3, char host[TN_HOST_SIZE], struct tn_err *err)
{
    struct tn_endpoint at;
    const char *text = without_scheme(s3->endpoint ? s3->endpoint : "");
    size_t size = strcspn(text, "/");
    char endpoint[TN_HOST_SIZE];
    if (size >= sizeof endpoint) {
        return tn_err_set(err, TN_INVALID, 0, "s3.endpoint %s: too long", s3->endpoint);
    }
    memcpy(endpoint, text, size);
    endpoint[size] = 0;
    return tn_endpoint_parse_or(endpoint, 80, host, &at, err);
}

/* Over http everybody on the way reads the rows, and may change them. */
static tn_rc check_plain(const struct tn_s3_options *s3, struct tn_err *err)
{
    char host[TN_HOST_SIZE];
    tn_rc rc = host_of(s3, host, err);
    if (rc == TN_OK && !is_this_machine(host)) {
        rc = tn_err_set(err, TN_INVALID, 0,
                        "s3.endpoint %s: http is for stores on this machine; use https",
                        without_scheme(s3->endpoint ? s3->endpoint : ""));
    }
    return rc;
}

bool tn_lake_is_here(const struct tn_lake_options *options)
{
    char host[TN_HOST_SIZE];
    struct tn_err ignored;
    return options->s3.endpoint && host_of(&options->s3, host, &ignored) == TN_OK &&
           is_this_machine(host);
}

tn_rc tn_lake_store_hash(const char *where, const struct tn_lake_options *options, uint64_t *hash,
                         struct tn_err *err)
{
    struct tn_s3_place place;
    tn_rc rc = tn_s3_place_parse(&place, where, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_bytes at =
        tn_bytes_of(options->s3.endpoint ? without_scheme(options->s3.endpoint) : "");
    while (at.size > 0 && at.data[at.size - 1] == '/') {
        at.size--;
    }
    struct tn_bytes prefix = {(const unsigned char *)place.prefix, place.prefix_size};
    uint64_t found = tn_hash_64(at, 0);
    found = tn_hash_64(tn_bytes_of(place.bucket), found);
    *hash = tn_hash_64(prefix, found);
    return TN_OK;
}

/* ---- doors ---- */

/* The file of those who sign. */
struct ca {
    struct tn_io_posix folder;
    const char *path;
    const char *name;
};

static tn_rc ca_absent(const struct ca *ca, tn_rc rc, struct tn_err *err)
{
    return rc == TN_ABSENT ? tn_err_set(err, TN_INVALID, 0,
                                        "%s: there is no such file of certificates; name one by "
                                        "s3.ca-file or SSL_CERT_FILE",
                                        ca->path)
                           : rc;
}

static tn_rc open_ca(struct ca *ca, const struct tn_lake_options *options, struct tn_arena *arena,
                     struct tn_err *err)
{
    ca->path = options->ca_file ? options->ca_file : SYSTEM_CA;
    const char *slash = strrchr(ca->path, '/');
    const char *where =
        slash ? tn_arena_format(arena, "%.*s/", (int)(slash - ca->path), ca->path) : ".";
    ca->name = slash ? slash + 1 : ca->path;
    return where ? ca_absent(ca, tn_io_posix_open(&ca->folder, where, err), err)
                 : tn_err_set(err, TN_AGAIN, 0, "no memory for a path");
}

static tn_rc read_open_ca(struct ca *ca, struct tn_arena *arena, struct tn_bytes *text,
                          struct tn_err *err)
{
    return ca_absent(ca, tn_io_read_all(&ca->folder.io, ca->name, CA_SIZE_MAX, arena, text, err),
                     err);
}

static tn_rc read_ca(const struct tn_lake_options *options, struct tn_arena *arena,
                     struct tn_bytes *text, struct tn_err *err)
{
    struct ca ca;
    tn_rc rc = open_ca(&ca, options, arena, err);
    if (rc == TN_OK) {
        rc = read_open_ca(&ca, arena, text, err);
        tn_io_posix_close(&ca.folder);
    }
    return rc;
}

/* With less memory there are fewer connections. */
static tn_rc boot_tls(struct tn_lake_doors *doors, struct tn_app *app, size_t ca_size,
                      struct tn_err *err)
{
    struct tn_arena *arena = &app->workers[TN_LANE_SHORT].arena;
    size_t left = tn_arena_free(arena);
    size_t trust = 2 * ca_size + TLS_BESIDE;
    size_t streams = left > trust ? (left - trust) / TN_TLS_STREAM_SIZE : 0;
    if (streams == 0) {
        return tn_err_set(err, TN_AGAIN, 0,
                          "TLS: %zu KiB are too few for %zu KiB of certificates: give it more "
                          "--memory, or name the store's own by s3.ca-file",
                          left / 1024, ca_size / 1024);
    }
    doors->links = streams < TN_LAKE_LINKS ? (uint32_t)streams : TN_LAKE_LINKS;
    size_t size = trust + doors->links * TN_TLS_STREAM_SIZE;
    void *memory = tn_arena_take(arena, size);
    TN_CHECK(memory);
    tn_heap_init(&app->tls, memory, size, true);
    tn_tls_boot(&app->tls);
    return TN_OK;
}

static tn_rc open_tls(struct tn_lake_doors *doors, struct tn_app *app,
                      const struct tn_lake_options *options, struct tn_err *err)
{
    struct tn_arena *scratch = &app->workers[TN_LANE_LONG].arena;
    size_t mark = tn_arena_mark(scratch);
    struct tn_tls_spec spec = {.clock = app->env.clock};
    tn_rc rc = read_ca(options, scratch, &spec.ca, err);
    if (rc == TN_OK) {
        rc = boot_tls(doors, app, spec.ca.size, err);
    }
    if (rc == TN_OK) {
        rc = tn_tls_config_make(&spec, &doors->tls, err);
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

static tn_rc open_xml(struct tn_lake_doors *doors, struct tn_app *app, struct tn_err *err)
{
    size_t size = (size_t)TN_LAKE_LINKS * XML_SIZE;
    void *memory;
    tn_rc rc = tn_arena_need(&app->input, size, "a store's answers", &memory, err);
    if (rc == TN_OK) {
        tn_heap_init(&doors->xml, memory, size, true);
        tn_xml_use_heap(&doors->xml);
    }
    return rc;
}

bool tn_lake_is_plain(const struct tn_lake_options *options)
{
    return is_plain(&options->s3);
}

static tn_rc trust_anew(struct tn_lake_trusted *trusted, struct ca *ca, struct tn_arena *arena,
                        struct tn_err *err)
{
    struct tn_tls_spec spec = {.clock = &tn_clock_system};
    if (trusted->tls) { /* first: there is memory for one */
        tn_tls_config_free(trusted->tls);
        trusted->tls = NULL;
    }
    tn_rc rc = read_open_ca(ca, arena, &spec.ca, err);
    return rc == TN_OK ? tn_tls_config_make(&spec, &trusted->tls, err) : rc;
}

/* What is in the file may be newer than what is known of it; then it is read once more. */
static tn_rc trust_open_ca(struct tn_lake_trusted *trusted, struct ca *ca, struct tn_arena *arena,
                           struct tn_err *err)
{
    struct tn_io *io = &ca->folder.io;
    struct tn_lake_trusted now = {.path_hash = tn_hash_64(tn_bytes_of(ca->path), 0)};
    tn_rc rc = ca_absent(ca, io->vtable->stat(io, ca->name, &now.size, err), err);
    if (rc == TN_OK) {
        rc = io->vtable->modified(io, ca->name, &now.modified_ms, err);
    }
    if (rc != TN_OK || (trusted->tls && trusted->path_hash == now.path_hash &&
                        trusted->size == now.size && trusted->modified_ms == now.modified_ms)) {
        return rc;
    }
    rc = trust_anew(trusted, ca, arena, err);
    now.tls = trusted->tls;
    *trusted = now;
    return rc;
}

tn_rc tn_lake_trust(struct tn_lake_doors *doors, const struct tn_lake_options *options,
                    struct tn_arena *arena, struct tn_err *err)
{
    struct ca ca;
    size_t mark = tn_arena_mark(arena);
    doors->tls = NULL;
    if (is_plain(&options->s3)) {
        return check_plain(&options->s3, err);
    }
    tn_rc rc = open_ca(&ca, options, arena, err);
    if (rc == TN_OK) {
        rc = trust_open_ca(&doors->trusted, &ca, arena, err);
        tn_io_posix_close(&ca.folder);
    }
    if (rc == TN_OK) {
        doors->tls = doors->trusted.tls;
    }
    tn_arena_reset(arena, mark);
    return rc;
}

void tn_lake_distrust(struct tn_lake_doors *doors)
{
    if (doors->trusted.tls) {
        tn_tls_config_free(doors->trusted.tls);
    }
    doors->trusted = (struct tn_lake_trusted){.tls = NULL};
    doors->tls = NULL;
}

tn_rc tn_lake_doors_open(struct tn_lake_doors *doors, struct tn_app *app,
                         const struct tn_lake_options *options, struct tn_err *err)
{
    bool plain = is_plain(&options->s3);
    doors->net = NULL;
    doors->tls = NULL;
    doors->links = TN_LAKE_LINKS;
    tn_rc rc = plain ? check_plain(&options->s3, err) : TN_OK;
    if (rc == TN_OK) {
        rc = tn_net_boot(app, 2 * TN_LAKE_LINKS, &doors->net, err);
    }
    if (rc == TN_OK) {
        rc = open_xml(doors, app, err);
    }
    if (rc == TN_OK && !plain) {
        rc = open_tls(doors, app, options, err);
    }
    if (rc != TN_OK) {
        tn_lake_doors_close(doors);
    }
    return rc;
}

void tn_lake_doors_close(struct tn_lake_doors *doors)
{
    if (doors->tls) {
        tn_tls_config_free(doors->tls);
    }
    if (doors->net) {
        tn_net_close(doors->net);
    }
    doors->tls = NULL;
    doors->net = NULL;
}
