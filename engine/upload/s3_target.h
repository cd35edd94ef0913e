/* s3_target: a target that is a bucket of an object store, over a network door of its own.
 *
 * A call blocks: it turns the door until what was asked is done. So many requests as there are
 * connections are under way at once; `send` hands a file to a free connection and returns, and
 * turns the door only while none is free.
 *
 *     send         -> hash (HTTP) -> PUT if absent -> (HEAD: it was there, or nobody knows)
 *     send, large  -> HEAD -> create -> a part a connection ... -> complete if absent
 *     publish      -> PUT if absent -> (GET, when nobody knows: ours, another's, or not there)
 *     swap         -> GET -> PUT if it is still that
 *
 * A name that is asked for by `publish` is given within the patience, and a millisecond a byte, or
 * not by this call: after so long its connection is closed (gather_pause.h rests on it).
 *
 * Nothing that is there is ever overwritten, but by `replace` and `swap`. What failed for the
 * network's sake, or was put off by the store, is done again after a growing pause, until there was
 * no progress for `patience_ms`; then IO, in plain words. What only a person can change ends a call
 * at once, and the trouble says of what kind it is.
 *
 * Large files go in parts. What is there of an upload by parts is found again after a restart when
 * there is a file to keep its id in; else an upload that isn't completed is given up. One that
 * nobody has gone on with for a week is given up, too.
 *
 * PUT and GET are all that a caller needs the right to (HEAD is a GET to S3). Without LIST a store
 * tells nobody what it lacks: then a name that isn't there is hidden (target.h). That it is such a
 * store is asked once, by a name that nobody makes; else a 403 is one of a moment, and an error.
 *
 *     verbs: stat, modified HEAD; read, fetch GET; list, walk LIST; send PUT, HEAD; publish, swap
 *     PUT, GET; replace PUT; remove DELETE; ask HEAD, GET, DELETE;
 *     in parts also POST (counts as PUT); LIST of parts after a restart, else all go again; LIST of
 *     uploads when the answer to a POST was lost, and DELETE of what is given up, else the bucket's
 *     rules must take them
 */
#pragma once

#include "io/net.h"
#include "io/tls.h"
#include "upload/s3.h"
#include "upload/target.h"

enum {
    TN_S3_TARGET_LINKS = 4, /* connections that are usual */
    TN_S3_TARGET_LINKS_MAX = 8,
    TN_S3_TARGET_PART_SIZE = 8 * 1024 * 1024, /* S3 wants 5 MiB at the least */
    TN_S3_TARGET_PARTS_MAX = 256,             /* of a file: beyond 2 GiB they are larger */
    TN_S3_TARGET_PATIENCE_MS = 60 * 1000,
};

/* Why a call failed last, for those who wait for a person. */
enum tn_s3_trouble {
    TN_S3_TROUBLE_NONE,
    TN_S3_TROUBLE_NETWORK, /* no answer comes */
    TN_S3_TROUBLE_STORE,   /* it answers, but doesn't do it */
    TN_S3_TROUBLE_PERMISSION,
    TN_S3_TROUBLE_CREDENTIALS,
    TN_S3_TROUBLE_CLOCK,
    TN_S3_TROUBLE_CERTIFICATE,
    TN_S3_TROUBLE_QUOTA,
};

struct tn_s3_target_spec {
    struct tn_net *net; /* nobody else's while a call runs; of its streams twice `links` */
    struct tn_clock *clock;
    struct tn_arena *arena; /* tn_s3_target_size(links) bytes, as long as the target */
    const char *where;      /* "s3://bucket/prefix"; also the target's name in messages */
    const struct tn_s3_options *options; /* may go after the call; its texts not */
    struct tn_tls_config *tls;           /* who is trusted; NULL: no https. Stays the caller's */
    uint32_t links;       /* connections, up to TN_S3_TARGET_LINKS_MAX; 0: TN_S3_TARGET_LINKS */
    uint32_t patience_ms; /* 0: TN_S3_TARGET_PATIENCE_MS */
    uint32_t rate;        /* bytes a second that are sent; 0: as fast as it goes */
    uint32_t part_size;   /* 0: TN_S3_TARGET_PART_SIZE. A file of more than two goes in parts */

    /* AWS's file of credentials, for options without any; read again when it has changed. */
    struct tn_io *credentials_io;    /* NULL: none */
    const char *credentials_path;    /* on it */
    const char *credentials_profile; /* NULL: "default" */

    /* Where the ids of uploads by parts are kept; its folder must be there. */
    struct tn_io *uploads_io; /* NULL: nowhere */
    const char *uploads_path; /* on it */
};

/* Some 600 KB for 4 connections, a MiB for 8. TLS has its own memory, a stream's (tls.h) for each
 * connection; and so has XML, process-wide, 16 KiB a connection: tn_xml_use_heap comes before. */
size_t tn_s3_target_size(uint32_t links);

/* Sends nothing yet. INVALID: place, endpoint or credentials are wrong or missing. AGAIN: the arena
 * is too small. */
TN_MUST_USE tn_rc tn_s3_target_open(const struct tn_s3_target_spec *spec, struct tn_target **target,
                                    struct tn_err *err);

/* Ends what is under way and closes the connections, turning the door for some seconds at most. The
 * door stays the caller's. */
void tn_s3_target_close(struct tn_target *target);

/* From any thread. */
void tn_s3_target_set_rate(struct tn_target *target, uint32_t rate);

/* The kind of the error that was returned last; NONE after a call that went well. */
enum tn_s3_trouble tn_s3_target_trouble(const struct tn_target *target);
const char *tn_s3_trouble_text(enum tn_s3_trouble trouble); /* "permission" */

/* How far the store's clock is ahead of ours, as it is signed with. */
int64_t tn_s3_target_clock_offset_ms(const struct tn_target *target);
