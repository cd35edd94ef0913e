/* sources: all that the daemon takes messages from: standard input, files, HTTP, sockets, brokers
 * of MQTT.
 *
 * Each offers to the hub; none knows another. They are opened when the tables have what the journal
 * had for them, and stopped before the last commit: turns go on until they are.
 */
#pragma once

#include "app/config.h"
#include "app/lines.h"
#include "base/op.h"
#include "ingest/file_source.h"
#include "ingest/http_server.h"
#include "ingest/mqtt_source.h"
#include "ingest/socket_source.h"

struct tn_sources_spec {
    const struct tn_config *config;
    struct tn_net *net;
    struct tn_exec *exec;
    struct tn_hub *hub;
    struct tn_clock *clock;
    struct tn_log *log;
    struct tn_arena *arena;
    const char *identity; /* of this box, for brokers that know it by none */
    const struct tn_http_page *pages;
    uint32_t page_count;
    bool once;                  /* files end where they end */
    void (*notify)(void *user); /* wakes the loop, from another thread */
    void *user;
};

struct tn_broker {
    const struct tn_config_source *config;
    struct tn_mqtt_source *source;
    struct tn_tls_config *tls; /* or NULL */
    char host[TN_HOST_SIZE];
    struct tn_broker *next;
};

struct tn_door {
    const struct tn_config_source *config;
    struct tn_socket_source *source;
    struct tn_tls_config *tls; /* or NULL */
    char host[TN_HOST_SIZE];
    struct tn_door *next;
};

struct tn_followed {
    struct tn_file_source source;
    struct tn_followed *next;
};

struct tn_sources {
    struct tn_sources_spec spec;
    struct tn_ops ops;
    struct tn_lines lines;
    bool has_lines;
    struct tn_http_server *http; /* or NULL */
    struct tn_tls_config *http_tls;
    char http_host[TN_HOST_SIZE];
    struct tn_broker *brokers;
    struct tn_door *doors;
    struct tn_followed *files;
    bool stopping;
};

/* Streams at once, and whether any of them speaks TLS. */
uint32_t tn_sources_streams(const struct tn_config *config, bool *tls);

/* Bytes of arena that open takes where the hub takes messages of `size_max`. */
size_t tn_sources_memory(const struct tn_config *config, size_t size_max);

/* Also after a failure they are stopped. UNSUPPORTED: a source that this build doesn't have. */
TN_MUST_USE tn_rc tn_sources_open(struct tn_sources *sources, const struct tn_sources_spec *spec,
                                  struct tn_err *err);
void tn_sources_turn(struct tn_sources *sources, uint32_t *wait_ms);
void tn_sources_stop(struct tn_sources *sources);
bool tn_sources_stopped(const struct tn_sources *sources);
/* Standard input has ended, and so have files with `once`; or there are none. */
bool tn_sources_ended(const struct tn_sources *sources);
void tn_sources_close(struct tn_sources *sources); /* once they are stopped */

/* How one of them is, for reports. */
struct tn_source_status {
    const char *name;
    const char *kind;
    const char *state;   /* a word or three */
    const char *at;      /* an address, or NULL */
    const char *trouble; /* why nothing comes; NULL: no trouble */
    bool waits;          /* the hub has no room */
    uint64_t messages;   /* that were taken */
    uint64_t rows;
    uint64_t dead;    /* letters */
    uint64_t refused; /* messages, for good */
    bool is_file;
    uint64_t bytes; /* of a file and of those before it, that were taken */
    uint64_t bytes_committed;
};
typedef void tn_source_each(void *user, const struct tn_source_status *status);
void tn_sources_each(const struct tn_sources *sources, tn_source_each *each, void *user);
