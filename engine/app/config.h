/* config: what `tarn run` is told: a Lua file that returns one table.
 *
 *     return {
 *         warehouse = "/var/lib/tarn", memory = "32M", listen = "127.0.0.1:7080",
 *         tables = { ["plant.readings"] = { fields = {...}, commit = "30s or 5000 rows or 1M" } },
 *         sources = { { kind = "mqtt", url = "mqtt://broker", subscribe = {...} } },
 *     }
 *
 * It runs in a state that has the libraries of scripts (script/sandbox.h), `env("NAME", default)`
 * and `file("path")`, and reaches nothing else. All that is wrong is said at once, each with the
 * place in the table, what was found, what would do, and the nearest known word; an unknown key is
 * wrong. A Lua table has no order: members are told of as below, tables by name, sources as they
 * stand. What came from env or file, and what is a secret, is never part of a text. Texts lie in
 * the arena, lists are walked.
 *
 *     config.c           the members on top, and what must hold between tables and sources
 *     config_table.c     a table: its schema, options and script, as `create` would check them
 *     config_source.c    sources, addresses, TLS
 *     config_lake.c      lakes
 *     config_script.c    its script, as the daemon would load it
 *     config_notify.c    who is told of uploads
 *     config_members.c   members by a list of them; the kinds of values
 *     config_value.c     texts that are sizes, times, rules, addresses
 *     config_tree.c      what the file returns, as plain values
 *     config_wrong.c     how mistakes are told
 *     config_report.c    memory by part, and what a table is promised
 */
#pragma once

#include "base/arena.h"
#include "base/budget.h"
#include "ingest/decode.h"
#include "ingest/journal.h"
#include "io/net.h"
#include "schema/schema.h"

enum {
    TN_CONFIG_MEMORY = 2 << 20, /* bytes that reading 200 tables takes (measured), and some */
    TN_CONFIG_FILE_SIZE_MAX = 64 * 1024, /* of what file() reads: a secret, a certificate */
    TN_CONFIG_WRONG_MAX = 200,           /* mistakes that are told one by one */
};

struct tn_text_list_item {
    const char *text;
    struct tn_text_list_item *next;
};

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
    const char *name;                 /* "db.t" */
    const char *schema_path;          /* JSON, as `create --schema`; or NULL: */
    struct tn_text_list_item *fields; /* "dev STRING NOT NULL"; both NULL: the table exists */
    struct tn_text_list_item *primary_key;
    struct tn_text_list_item *partition_by;
    struct tn_config_pair *options; /* Paimon's and tarn's, as texts */
    const char *script;             /* tarn.script, from "/"; or NULL */
    const char *dead_letters;       /* a table "db.t"; or NULL: a file beside the journal */
    enum tn_unknown unknown;
    struct tn_config_pair *times; /* column -> unit of bare numbers: s, ms, us, ns */
    struct tn_commit_rule commit; /* default: 30 s or 100,000 rows */
    bool plain; /* tn_config_is_plain as it would be made here; one that is there may differ */
    struct tn_config_table *next; /* by name */
};

enum tn_source_kind {
    TN_SOURCE_MQTT,
    TN_SOURCE_SOCKET, /* JSON lines, TCP or Unix */
    TN_SOURCE_FILE,   /* followed, by identity */
    TN_SOURCE_STDIN,
    TN_SOURCE_KINDS,
};

/* MQTT: a topic filter and where its messages go. */
struct tn_config_subscribe {
    const char *filter;
    const char *table;
    enum tn_input input;
    uint8_t qos;
    struct tn_config_subscribe *next;
};

/* Texts of PEM, as file(...) gave them; NULL: none. */
struct tn_config_tls {
    const char *ca;
    const char *pinned;
    const char *certificate;
    const char *key;
};

struct tn_config_source {
    enum tn_source_kind kind;
    const char *name;  /* unique; default: the kind, and a number where there are several */
    const char *table; /* socket, file, stdin */
    enum tn_input input;
    const char *url;       /* mqtt://host:port, mqtts://...; socket (`listen`): "host:port" or
                              "unix:/path"; file (`path`): its path; from "/" */
    const char *client_id; /* NULL: one that no other box has */
    const char *user;
    const char *password;
    const char *token; /* socket: as for HTTP */
    struct tn_config_tls tls;
    struct tn_config_subscribe *subscribe;
    uint32_t keep_alive_s;
    uint32_t in_flight;
    uint32_t session_expiry_s;
    uint32_t line_size_max; /* socket: 0: what the memory allows */
    uint32_t connections;   /* socket: at once */
    struct tn_config_source *next;
};

/* Who is told of uploads: a broker of MQTT, or who takes a POST. */
struct tn_config_notify {
    const char *url;       /* mqtt://host:port, mqtts://, http://host:port/path, https:// */
    const char *topic;     /* MQTT: where to, unless a script says more */
    const char *client_id; /* MQTT; NULL: one that no other box and no source has */
    const char *user;      /* MQTT */
    const char *password;
    const char *token; /* POST: as a bearer */
    struct tn_config_tls tls;
};

/* Where committed snapshots are sent. */
struct tn_config_lake {
    const char *name;                  /* "cloud" */
    const char *target;                /* "s3://bucket/prefix", or a folder, from "/" */
    struct tn_text_list_item *options; /* "s3.endpoint=...", of a store */
    uint32_t rate;                     /* bytes a second, likewise; 0: as fast as it goes */
    struct tn_text_list_item *tables;  /* that are configured; never empty */
    const char *policy;                /* a script with an `upload`, from "/"; or NULL */
    struct tn_config_notify notify;    /* `url` NULL: nobody is told */
    uint32_t every_ms;                 /* from one upload of a table to the next; 0: at once */
    bool gap; /* `on_full`: when the disk is full the lake loses snapshots; else sources stop */
    struct tn_config_lake *next; /* by name */
};

struct tn_config_http {
    const char *listen; /* NULL: no HTTP */
    const char *token;  /* who doesn't show it is refused; needed when not on loopback */
    struct tn_config_tls tls;
    uint32_t connections;   /* at once */
    uint32_t body_size_max; /* bytes */
    uint32_t timeout_ms;    /* of a slow sender */
    uint32_t idle_ms;       /* between two requests */
};

struct tn_config_journal {
    uint32_t sync_ms;
    uint32_t sync_bytes; /* 0: that one doesn't count */
    uint64_t size_max;
};

#define TN_CONFIG_NO_BUDGET UINT64_MAX

struct tn_config {
    const char *path;
    const char *warehouse; /* from "/"; relative paths begin in the config's folder */
    uint64_t memory;       /* bytes; 0: the board's */
    uint64_t disk_reserve;
    uint64_t wear_budget;   /* bytes a day; TN_CONFIG_NO_BUDGET: any */
    uint64_t unit_size_max; /* `compaction`: bytes of a unit, of tables that don't say it; 0: the
                               board's */
    uint32_t pace_ms; /* at most one commit that is due by age alone begins in so long; 0: any */
    struct tn_config_http http; /* `listen`, `token`, `tls` and `limits` of the file */
    struct tn_config_journal journal;
    struct tn_config_table *tables;
    struct tn_config_source *sources;
    struct tn_config_lake *lakes;
    struct tn_text_list_item *metered; /* names of interfaces; the last letter may be '*' */
    uint32_t table_count;
    uint32_t plain_count; /* tables that are plain */
    uint32_t source_count;
    uint32_t lake_count;
    uint32_t policy_count; /* lakes that have one */
    uint32_t notify_count; /* lakes of which somebody is told */
    uint32_t upload_count; /* tables of lakes, each as often as it is sent somewhere */
};

/* Called for each thing that is wrong, of the first TN_CONFIG_WRONG_MAX:
 * "tables['plant.readings'].commit: ...". */
typedef void tn_config_wrong_fn(void *user, const char *text);

/* INVALID when anything was wrong, after all of it was told; AGAIN when memory is short, IO when
 * the file can't be read. `vm_memory` (TN_CONFIG_MEMORY is enough) is for Lua, and free again
 * afterwards. The scripts of tables are loaded, too, and their cases run. Blocking I/O: it reads
 * the file, and those that it names. JSON's heap must have been set (format/json.h). */
TN_MUST_USE tn_rc tn_config_read(const char *path, void *vm_memory, size_t vm_size,
                                 struct tn_arena *arena, tn_config_wrong_fn *wrong, void *user,
                                 struct tn_config *config, struct tn_err *err);

/* The schema that a table is made with: fields, keys, options with tarn.script. Not for one that
 * has neither fields nor a schema file. */
TN_MUST_USE tn_rc tn_config_table_schema(const struct tn_config_table *table,
                                         struct tn_arena *arena, struct tn_schema *schema,
                                         struct tn_err *err);

/* What bare numbers of each field are, by a table's `times`. */
TN_MUST_USE tn_rc tn_config_epochs(const struct tn_config_pair *times,
                                   const struct tn_schema *schema, struct tn_arena *arena,
                                   const enum tn_epoch **epochs, struct tn_err *err);

/* One bucket, few columns, no partitions, script, or table for dead letters: many such tables share
 * little memory (share.h). */
bool tn_config_is_plain(const struct tn_config_table *table, const struct tn_schema *schema);

/* Fills in what sizes and times the journal has; its doors are the caller's. */
void tn_config_journal_spec(const struct tn_config *config, struct tn_journal_spec *spec);

struct tn_config_table *tn_config_find_table(const struct tn_config *config, const char *name);

/* "30s or 5000 rows or 1M". INVALID names the part that is none. */
TN_MUST_USE tn_rc tn_commit_rule_parse(const char *text, struct tn_commit_rule *rule,
                                       struct tn_err *err);
void tn_commit_rule_format(const struct tn_commit_rule *rule, struct tn_buf *buf);

/* Of a broker: "mqtt://host:port" and "mqtts://host", whose port is the usual one. */
TN_MUST_USE tn_rc tn_config_url_parse(const char *url, char host[TN_HOST_SIZE],
                                      struct tn_endpoint *at, struct tn_err *err);
bool tn_config_url_tls(const char *url);

/* Of who is told of uploads. Texts are in it, and one that is a secret may be in the path. */
enum { TN_NOTIFY_PATH_SIZE = 1024 };
struct tn_config_notify_url {
    bool mqtt;
    bool tls;
    struct tn_endpoint at;            /* its host is the caller's */
    char authority[TN_HOST_SIZE + 8]; /* "host:port", as a header of HTTP has it */
    char path[TN_NOTIFY_PATH_SIZE];
    const char *query; /* in `path`'s memory; "": none */
};
TN_MUST_USE tn_rc tn_config_notify_parse(const char *text, char host[TN_HOST_SIZE],
                                         struct tn_config_notify_url *url, struct tn_err *err);

const char *tn_source_kind_name(enum tn_source_kind kind); /* "mqtt" */

/* ---- what it comes to ---- */

struct tn_config_part {
    const char *name;
    const char *kind; /* "pool", "arena", "heap"; of what lies in another part: its name */
    uint64_t size;    /* bytes that it has */
    uint64_t needed;  /* at least, by this configuration; 0: not known before it runs */
    const char *use;
};
typedef tn_rc tn_config_part_fn(void *user, const struct tn_config_part *part, struct tn_err *err);

/* Each part of the memory of a daemon with this configuration, in a fixed order. `ways` are those
 * in which its lakes' tables are shared (lakes_boot.h), for which the budget has grown. Its error
 * is that of `each`. The arena is for the moment. */
TN_MUST_USE tn_rc tn_config_parts(const struct tn_config *config, const struct tn_budget *budget,
                                  uint32_t ways, struct tn_arena *arena, tn_config_part_fn *each,
                                  void *user, struct tn_err *err);

struct tn_config_promise {
    bool exactly_once;
    bool shows; /* else a row that comes twice changes nothing */
};

/* Appends which sources of a table may bring a row twice (or, with QoS 0, not at all), for those
 * who send have no identity. `schema` (NULL: not known) tells whether that shows. The arena is for
 * the moment. */
struct tn_config_promise tn_config_promise(const struct tn_config *config,
                                           const struct tn_config_table *table,
                                           const struct tn_schema *schema, struct tn_arena *arena,
                                           struct tn_buf *why);
