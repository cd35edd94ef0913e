/* config_private: what the files of config.h have in common.
 *
 * The Lua file's result is first a tree of plain values, in memory that is given back; then lists
 * of members, one a kind of table, put it into the structs, and tell what doesn't fit.
 */
#pragma once

#include "app/config.h"

enum {
    TN_CONFIG_DEPTH_MAX = 8, /* tables in tables; five are of use */
    TN_CONFIG_NAME_MAX = 64, /* bytes of a source's name, or of a client id */
    TN_CONFIG_PATH_MAX = 4096,
};

enum tn_config_kind {
    TN_CONFIG_TABLE,
    TN_CONFIG_TEXT,
    TN_CONFIG_INTEGER,
    TN_CONFIG_NUMBER,
    TN_CONFIG_BOOLEAN,
    TN_CONFIG_OTHER, /* a function or the like: `text` says what */
};

struct tn_config_node {
    enum tn_config_kind kind;
    struct tn_config_node *parent; /* NULL: of the root */
    struct tn_config_node *next;
    struct tn_config_node *first; /* items in order, then members by name */
    struct tn_config_node *last;
    const char *key; /* NULL: an item of a list */
    int64_t index;   /* of an item, from 1 */
    bool known;      /* some member is this */
    bool told;       /* what is wrong with it was said; any use of it is fine */
    bool secret;     /* its value is never shown */
    const char *why; /* it can't be read; or NULL. Told in the order of the tree */
    const char *text;
    const char *origin; /* "env('HOST')", where the text came by that; or NULL */
    int64_t integer;    /* also a boolean */
    double number;
};

struct tn_config_reader {
    struct tn_arena *kept;   /* what the config holds */
    struct tn_arena scratch; /* the tree, and what is for the moment */
    void *vm_memory;
    size_t vm_size;
    const char *folder; /* the file's, from "/" and without a slash at its end */
    const char *name;   /* the file's, in its folder */
    tn_config_wrong_fn *wrong;
    void *user;
    uint32_t wrong_count;
    bool full; /* `kept` or `scratch` is */
    struct tn_config *config;
};

/* ---- config_wrong.c ---- */

/* "PLACE: text"; `node` NULL: the text alone. */
void tn_config_wrong(struct tn_config_reader *r, const struct tn_config_node *node,
                     const char *format, ...) __attribute__((format(printf, 3, 4)));
/* "PLACE: got 'x', want ..."; a text's value is left out where it is secret. Once a node. */
void tn_config_wrong_value(struct tn_config_reader *r, struct tn_config_node *node,
                           const char *want, ...) __attribute__((format(printf, 3, 4)));
/* What was found, for people: "'x'", "7", "a table". */
void tn_config_show(const struct tn_config_node *node, struct tn_buf *buf);
/* Cut where it is long. */
void tn_config_show_text(const char *text, struct tn_buf *buf);

/* ---- config_tree.c ---- */

/* Runs the file. OK with *root NULL: it has no result, and why was told. */
TN_MUST_USE tn_rc tn_config_tree(struct tn_config_reader *r, struct tn_config_node **root,
                                 struct tn_err *err);
/* The folder of `path` and its name in it. ABSENT, IO. */
TN_MUST_USE tn_rc tn_config_folder(struct tn_arena *arena, const char *path, const char **folder,
                                   const char **name, struct tn_err *err);

/* ---- config_value.c ---- */

bool tn_config_size_parse(const char *text, uint64_t *bytes); /* "32M", "4096" */
/* "100ms"; a number without a unit is none. */
bool tn_config_time_parse(const char *text, int64_t *ms);
void tn_config_size_format(uint64_t bytes, struct tn_buf *buf);
void tn_config_time_format(int64_t ms, struct tn_buf *buf);
/* "100ms or 1M", as a rule without rows. */
TN_MUST_USE tn_rc tn_config_rule_parse(const char *text, bool rows, struct tn_commit_rule *rule,
                                       struct tn_err *err);
/* "127.0.0.1:80", "[::1]:80", "localhost:80". */
bool tn_config_listen_parse(const char *text, bool *loopback);
/* It can be a name or an address of a machine. */
bool tn_config_host_legal(const char *host);
bool tn_config_is_loopback(const char *host);
/* NULL, or what is wrong with it. */
const char *tn_config_url_check(const char *text, bool *tls);

/* ---- config_members.c ---- */

struct tn_config_member;
typedef void tn_config_take_fn(struct tn_config_reader *r, struct tn_config_node *node,
                               const struct tn_config_member *member, void *target);

struct tn_config_member {
    const char *name;
    tn_config_take_fn *take; /* of the value that is there */
    size_t offset;           /* in the struct; `target` is that place */
    uint64_t low;            /* of numbers: between these */
    uint64_t high;
    bool needed;
};

/* Goes through the list, then tells of members that aren't in it. False: `node` is no table. */
bool tn_config_members(struct tn_config_reader *r, struct tn_config_node *node,
                       const struct tn_config_member *members, uint32_t count, void *target);
struct tn_config_node *tn_config_member_of(const struct tn_config_node *node, const char *name);
/* The next item of a list, `before` NULL: the first; tells of what is no item. */
struct tn_config_node *tn_config_item(struct tn_config_reader *r, struct tn_config_node *list,
                                      const struct tn_config_node *before);
/* The text of a node, or NULL after it was told that it is none, or an empty one. */
const char *tn_config_text(struct tn_config_reader *r, struct tn_config_node *node,
                           const char *want);
/* One of the words, or -1 after it was told. */
int tn_config_word(struct tn_config_reader *r, struct tn_config_node *node,
                   const char *const *words, uint32_t count);
/* Copies into the arena of the config; NULL: it is full. */
const char *tn_config_keep(struct tn_config_reader *r, const char *text);
void *tn_config_take(struct tn_config_reader *r, size_t size);
/* From the folder of the config. */
const char *tn_config_path(struct tn_config_reader *r, const char *text);

tn_config_take_fn tn_config_take_text;    /* const char * */
tn_config_take_fn tn_config_take_secret;  /* const char *, which may be empty */
tn_config_take_fn tn_config_take_path;    /* const char * */
tn_config_take_fn tn_config_take_size;    /* uint64_t */
tn_config_take_fn tn_config_take_size_32; /* uint32_t */
tn_config_take_fn tn_config_take_ms;      /* uint32_t */
tn_config_take_fn tn_config_take_seconds; /* uint32_t */
tn_config_take_fn tn_config_take_count;   /* uint32_t */
tn_config_take_fn tn_config_take_input;   /* enum tn_input */
tn_config_take_fn tn_config_take_texts;   /* struct tn_text_list_item *: a list, or "a, b" */
tn_config_take_fn tn_config_take_pairs;   /* struct tn_config_pair * */

/* ---- config_source.c ---- */

tn_config_take_fn tn_config_take_sources; /* of struct tn_config: the whole */
tn_config_take_fn tn_config_take_tls;     /* struct tn_config_tls */
tn_config_take_fn tn_config_take_token;   /* const char * */
tn_config_take_fn tn_config_take_table;   /* const char *: a table that is configured */
/* A listening place must be the box's own, or ask for a token. */
void tn_config_check_open(struct tn_config_reader *r, const struct tn_config_node *node,
                          const char *member, bool loopback);
/* Who listens with TLS has a certificate. */
void tn_config_check_served(struct tn_config_reader *r, struct tn_config_node *tls);

/* ---- config_lake.c ---- */

tn_config_take_fn tn_config_take_lakes; /* of struct tn_config: the whole, with its tables */
/* What needs files: policies. */
TN_MUST_USE tn_rc tn_config_check_lakes(struct tn_config_reader *r, struct tn_config_node *lakes,
                                        struct tn_err *err);

/* ---- config_notify.c ---- */

tn_config_take_fn tn_config_take_notify; /* struct tn_config_notify */

/* ---- config_script.c ---- */

/* Loads a table's script, at a path from "/", and runs its cases. INVALID: it can't be used. */
TN_MUST_USE tn_rc tn_config_check_script(struct tn_config_reader *r, const struct tn_schema *schema,
                                         const char *table, const char *path, struct tn_err *err);

/* ---- config_table.c ---- */

tn_config_take_fn tn_config_take_tables; /* of struct tn_config: the whole */
/* What needs files: schemas, tables that are there, scripts. */
TN_MUST_USE tn_rc tn_config_check_tables(struct tn_config_reader *r, struct tn_config_node *tables,
                                         struct tn_err *err);
