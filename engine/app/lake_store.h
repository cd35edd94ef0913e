/* lake_store: what a lake in an object store needs beside its name: options, whom to trust, and
 * doors to the network.
 *
 *     --option s3.endpoint=..., then AWS_...  ->  tn_lake_options
 *     tn_lake_options                         ->  tn_lake_doors: sockets, TLS
 */
#pragma once

#include "app/boot.h"
#include "base/heap.h"
#include "io/net.h"
#include "io/tls.h"
#include "upload/s3_store.h"

enum { TN_LAKE_LINKS = 4 }; /* connections at once */

/* Texts that are somebody else's; NULL: not given. */
struct tn_lake_options {
    struct tn_s3_options s3;
    const char *ca_file;     /* s3.ca-file: PEM */
    const char *credentials; /* AWS's file of them */
    const char *profile;     /* in it */
};

/* "s3://..." or something like it: no folder. */
bool tn_lake_is_store(const char *where);

/* Takes "name=value"; the value stays where it is. INVALID: there is no such option. */
TN_MUST_USE tn_rc tn_lake_option(struct tn_lake_options *options, const char *text,
                                 struct tn_err *err);
/* What wasn't given, from the environment. */
void tn_lake_options_environment(struct tn_lake_options *options);

/* Whom the last store by https trusted: reading a system's bundle takes a tenth of a second. */
struct tn_lake_trusted {
    struct tn_tls_config *tls; /* NULL: none yet */
    uint64_t path_hash;
    uint64_t size;
    int64_t modified_ms;
};

struct tn_lake_doors {
    struct tn_net *net;
    struct tn_tls_config *tls; /* NULL: http */
    uint32_t links;            /* connections that there is memory for */
    struct tn_heap xml;
    struct tn_lake_trusted trusted;
};

/* For a verb, once a process: sockets from the part "net", TLS's memory from the short worker's.
 * INVALID: nobody to trust; or http to another machine. AGAIN: not enough memory. */
TN_MUST_USE tn_rc tn_lake_doors_open(struct tn_lake_doors *doors, struct tn_app *app,
                                     const struct tn_lake_options *options, struct tn_err *err);
void tn_lake_doors_close(struct tn_lake_doors *doors);

/* Of one that has net and memory for TLS already: whom the options trust, or that none is needed.
 * The file is read once, and again when it is another one or has changed; it stays in memory until
 * tn_lake_distrust. The arena is for the moment. Errors as above. */
TN_MUST_USE tn_rc tn_lake_trust(struct tn_lake_doors *doors, const struct tn_lake_options *options,
                                struct tn_arena *arena, struct tn_err *err);
void tn_lake_distrust(struct tn_lake_doors *doors);
bool tn_lake_is_plain(const struct tn_lake_options *options);
/* The store is on this machine. */
bool tn_lake_is_here(const struct tn_lake_options *options);

/* The name of the consumer that stands for a lake: of endpoint, bucket and prefix. INVALID: `where`
 * isn't s3://bucket/prefix. */
TN_MUST_USE tn_rc tn_lake_store_hash(const char *where, const struct tn_lake_options *options,
                                     uint64_t *hash, struct tn_err *err);
