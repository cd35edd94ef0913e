/* config: what `tarn run` is told: a Lua file that returns one table.
 *
 *     return {
 *         warehouse = "/var/lib/tarn", memory = "32M", listen = "127.0.0.1:7080",
 *         tables = { ["plant.readings"] = { fields = {...}, commit = "30s or 5000 rows or 1M" } },
 *         sources = { { kind = "mqtt", url = "mqtt://broker", subscribe = {...} } },
 *     }
 *
 * It runs in a state that has the libraries of scripts (script/sandbox.h), `env("NAME", default)`
 * and `file("path")`, and reaches nothing else. All that is wrong is said at once, in the order of
 * the file, each with the place in the table, what was found, what would do, and the nearest known
 * word; an unknown key is wrong. Texts lie in the arena, lists are walked.
 */
#pragma once

#include "base/arena.h"
#include "ingest/decode.h"

struct tn_config_pair {
    const char *key;
    const char *value;
    struct tn_config_pair *next;
};

/* A commit is due when one of these is reached; 0: that one doesn't count. */
struct tn_commit_rule {
    int64_t ms;
    uint64_t rows;
    uint64_t bytes; /* of packed rows */
};

struct tn_config_table {
    const char *name;        /* "db.t" */
    const char *schema_path; /* JSON, as `create --schema`; or NULL: */
    struct tn_text_list_item
        *fields; /* "dev STRING NOT NULL", in order; NULL: the table must exist */
    struct tn_text_list_item *primary_key;
    struct tn_text_list_item *partition_by;
    struct tn_config_pair *options; /* Paimon's and tarn's, as texts */
    const char *script;             /* tarn.script; or NULL */
    const char *dead_letters;       /* a table "db.t"; or NULL: a file beside the journal */
    enum tn_unknown unknown;
    struct tn_config_pair *times; /* column -> unit of bare numbers */
    struct tn_commit_rule commit; /* default: 30 s or 100,000 rows */
    struct tn_config_table *next;
};

struct tn_text_list_item {
    const char *text;
    struct tn_text_list_item *next;
};

enum tn_source_kind {
    TN_SOURCE_MQTT,
    TN_SOURCE_SOCKET, /* JSON lines, TCP or Unix */
    TN_SOURCE_FILE,   /* followed, by identity */
    TN_SOURCE_STDIN,
};

/* MQTT: a topic filter and where its messages go. */
struct tn_config_subscribe {
    const char *filter;
    const char *table;
    enum tn_input input;
    uint8_t qos;
    struct tn_config_subscribe *next;
};

struct tn_config_tls {
    const char *ca; /* the PEM's text, as file(...) gave it; NULL: none */
    const char *pinned;
    const char *certificate;
    const char *key;
};

struct tn_config_source {
    enum tn_source_kind kind;
    const char *name;  /* unique; default: the kind, and a number where there are several */
    const char *table; /* socket, file, stdin */
    enum tn_input input;
    const char *url; /* mqtt://host:port, mqtts://...; socket: "host:port" or "unix:path"; file: its
                        path */
    const char *client_id;
    const char *user;
    const char *password;
    struct tn_config_tls tls;
    struct tn_config_subscribe *subscribe;
    uint32_t keep_alive_s;
    uint32_t in_flight;
    uint32_t session_expiry_s;
    uint32_t line_size_max; /* 0: what the memory allows */
    uint32_t connections;   /* socket: at once */
    struct tn_config_source *next;
};

struct tn_config_http {
    const char *listen; /* NULL: no HTTP */
    const char *token;  /* who doesn't show it is refused; needed when not on loopback */
    struct tn_config_tls tls;
    uint32_t connections;   /* at once */
    uint32_t body_size_max; /* bytes */
    uint32_t timeout_ms;    /* of a slow sender */
};

struct tn_config_journal {
    uint32_t sync_ms;
    uint32_t sync_bytes;
    uint64_t size_max;
};

struct tn_config {
    const char *path;
    const char *warehouse; /* relative paths begin in the config's folder */
    uint64_t memory;       /* bytes; 0: the board's */
    uint64_t disk_reserve;
    struct tn_config_http http; /* `listen`, `token`, `tls` and `limits` of the file */
    struct tn_config_journal journal;
    struct tn_config_table *tables;
    struct tn_config_source *sources;
    uint32_t table_count;
    uint32_t source_count;
};

/* Called for each thing that is wrong: "tables['plant.readings'].commit: ...". */
typedef void tn_config_wrong_fn(void *user, const char *text);

/* INVALID when anything was wrong, after all of it was told. `vm_memory` is for the Lua state, and
 * free again afterwards. Blocking I/O: it reads the file, and those that it names by file(). */
TN_MUST_USE tn_rc tn_config_read(const char *path, void *vm_memory, size_t vm_size,
                                 struct tn_arena *arena, tn_config_wrong_fn *wrong, void *user,
                                 struct tn_config *config, struct tn_err *err);
