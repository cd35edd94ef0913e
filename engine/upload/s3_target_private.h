/* s3_target, from inside:
 *
 * s3_target_link.c         one connection: a job's tries, each a request and its answer
 * s3_target_wire.c         the bytes of a request and of its answer
 * s3_target_turn.c         all connections: who is free, turns, pace, the end
 * s3_target_parts.c        a file in parts
 * s3_target_memo.c         which uploads by parts are under way
 * s3_target_credentials.c  who asks
 * s3_target_look.c         what a 403 means
 * s3_target_many.c         many questions at once, and names of folders
 * s3_target.c              the calls of target.h
 *
 * A link is one connection, and does one job at a time:
 *
 *             .----------------------- pause, again ------------------------.
 *             v                                                             |
 *     FREE -> HASH -> CONNECT -> SECURE -> TALK --(verdict)--> (CLOSE) --> PAUSE or FREE
 *
 * HASH is left out over TLS, CONNECT and SECURE for a connection that is kept. Requests to the door
 * only end in a turn; after each turn all links are stepped, and see for themselves which of theirs
 * have ended.
 */
#pragma once

#include <stdatomic.h>

#include "base/hash.h"
#include "commit/set.h"
#include "upload/s3_target.h"

enum {
    TN_S3_OUT_SIZE = 64 * 1024, /* a request's head, and pieces of its body */
    TN_S3_IN_SIZE = 8 * 1024,
    TN_S3_NAME_MAX = TN_S3_KEY_MAX + 1,
    TN_S3_ANSWER_ID_SIZE = 64,
    TN_S3_MEMO_MAX = 8,
    TN_S3_STRAYS_MAX = 4, /* uploads that nobody knows of, given up at once */
    TN_S3_MEMO_SIZE = 16 * 1024,
    TN_S3_UPLOAD_TEXT_SIZE = 64 * 1024,
    TN_S3_CREDENTIALS_SIZE = 16 * 1024,
    TN_S3_PAGE_ROWS = 1000, /* S3: of a LIST, at most */
};

struct tn_s3_target;
struct tn_s3_link;

enum tn_s3_job_kind {
    TN_S3_JOB_ASK,  /* somebody waits for it */
    TN_S3_JOB_FILE, /* of `send`: its error is told later */
    TN_S3_JOB_PART, /* of the upload by parts */
};

/* What a link is to do. What it points to stays until the job has ended. */
struct tn_s3_job {
    enum tn_s3_job_kind kind;
    struct tn_s3_request request; /* its key is the link's */
    /* The body: bytes, or a piece of a file. */
    struct tn_bytes body;
    struct tn_io *from;
    int file;       /* of `from`, or of `to` */
    uint64_t first; /* where the piece begins */
    /* GET: where the object goes, with a zero byte behind it; NULL: nowhere. */
    struct tn_arena *arena;
    size_t size_max;
    /* GET: or it is appended to this file, from byte `first` of the object on. */
    struct tn_io *to;
    /* GET: what it is compared with. */
    struct tn_bytes alike[2];
    tn_io_name_fn *each; /* LIST */
    void *each_user;
    uint32_t pause_ms; /* before the first try */
};

enum tn_s3_link_state {
    TN_S3_LINK_FREE,
    TN_S3_LINK_PAUSE,
    TN_S3_LINK_HASH,
    TN_S3_LINK_CONNECT,
    TN_S3_LINK_SECURE,
    TN_S3_LINK_TALK,
    TN_S3_LINK_CLOSE, /* until the door has given back all requests */
};

enum tn_s3_wire {
    TN_S3_WIRE_OPEN,
    TN_S3_WIRE_DONE,  /* link->rc and ->err are what the answer means */
    TN_S3_WIRE_LOST,  /* link->err says why; the exchange has ended */
    TN_S3_WIRE_FATAL, /* the same, and again won't help: a file that can't be read, no room */
};

struct tn_s3_link {
    struct tn_s3_target *target;
    enum tn_s3_link_state state;
    enum tn_s3_link_state next; /* after CLOSE: FREE, PAUSE, or HASH: again at once */

    struct tn_stream *stream; /* or NULL */
    uint32_t moves;           /* target->moves when it was made */
    int64_t idle_ns;          /* when it was used last; 0: never */
    struct tn_request opening;
    struct tn_request reading;
    struct tn_request writing;
    struct tn_request timer;
    bool open_due; /* was started, and its outcome not looked at */
    bool read_due;
    bool write_due;

    /* The job. */
    struct tn_s3_job job;
    bool ended; /* `rc`, `verdict` and the exchange's answer are the outcome */
    tn_rc rc;
    enum tn_s3_verdict verdict;
    enum tn_s3_trouble trouble;
    struct tn_err err;
    uint32_t tries; /* that failed */
    uint32_t pause_ms;
    int64_t since_ns;    /* nothing was done */
    int64_t sent_ns;     /* of that time, with sending */
    int64_t try_ns;      /* when this try began to send */
    int64_t wrote_ns;    /* and what it sent last was gone; 0: nothing */
    bool looks;          /* with HEAD, at the name of a file that may be there */
    bool sure;           /* it was there, as the store has said */
    struct tn_err cause; /* why */
    bool asks;           /* with GET, why HEAD was refused, which comes without words */
    bool resent;         /* again at once, since a connection that was kept had been closed */
    uint32_t learned;    /* times that clock or region were wrong */
    unsigned char digest[TN_SHA256_SIZE];
    bool hashed;
    struct tn_sha256 hash;
    uint64_t appended;          /* to the job's file */
    char etag[TN_S3_ETAG_SIZE]; /* of the object whose first bytes they are; "": not told */

    /* A try. */
    struct tn_s3_request request;
    bool heard;  /* bytes of an answer came */
    bool excess; /* and some behind it */
    bool wrote;  /* since the read began */
    bool write_failed;
    uint64_t at;         /* of the body: bytes hashed, or given to the stream */
    size_t out_head;     /* bytes of `out` that are its head; the body's are behind them */
    size_t out_at;       /* bytes of `out` that were written */
    size_t out_size;     /* that are being written */
    int64_t paced_ns;    /* since when it waits for the pace; 0: it doesn't */
    tn_rc each_rc;       /* what `each` returned */
    struct tn_bytes got; /* in the job's arena, from `mark` */
    size_t mark;
    uint64_t skip; /* bytes of the object that come, and that the job's file has */
    bool same[2];
    bool told; /* a row of LIST, in any try */

    char answer_id[TN_S3_ANSWER_ID_SIZE]; /* of the connection's last answer; "": none */
    struct tn_buf out;
    unsigned char *in;
    unsigned char *head; /* of the answer */
    struct tn_http http;
    struct tn_s3_exchange exchange;
    char key[TN_S3_NAME_MAX];
};

/* A file in parts. */
struct tn_s3_upload {
    char id[TN_S3_UPLOAD_SIZE]; /* "": none */
    bool kept;                  /* in the memo */
    char key[TN_S3_NAME_MAX];
    uint64_t size; /* of the file */
    uint64_t part_size;
    uint32_t part_count;
    tn_rc rc; /* of the first part that failed */
    struct tn_err err;
    enum tn_s3_trouble trouble;
    char (*etags)[TN_S3_ETAG_SIZE]; /* by part, from 0; "": not there */
    struct tn_s3_part parts[TN_S3_TARGET_PARTS_MAX];
    unsigned char *text; /* of its completion */
    char strays[TN_S3_STRAYS_MAX][TN_S3_UPLOAD_SIZE];
    uint32_t stray_count;
};

struct tn_s3_memo_entry {
    char key[TN_S3_NAME_MAX];
    char id[TN_S3_UPLOAD_SIZE]; /* "": it was about to be created */
    uint64_t size;
    uint64_t part_size;
    int64_t seen_ms; /* when it last went on */
};

struct tn_s3_memo {
    struct tn_io *io; /* or NULL */
    const char *path;
    bool loaded;
    struct tn_s3_memo_entry *entries;
    struct tn_s3_memo_entry entry; /* that is being made, or given up */
    uint32_t count;
    unsigned char *text; /* TN_S3_MEMO_SIZE */
};

struct tn_s3_credentials {
    struct tn_io *io; /* or NULL */
    const char *path;
    const char *profile;
    uint64_t size; /* of the file, when it was read last */
    int64_t modified_ms;
    uint32_t half;         /* of the memory, that is in use */
    unsigned char *memory; /* twice TN_S3_CREDENTIALS_SIZE */
};

struct tn_s3_target {
    struct tn_target target; /* first */
    struct tn_net *net;
    struct tn_clock *clock;
    struct tn_tls_config *tls;
    struct tn_s3_store store;
    struct tn_s3_place place;
    struct tn_arena scratch; /* of a moment */
    uint32_t link_count;
    struct tn_s3_link *links;
    uint32_t patience_ms;
    uint32_t answer_ms; /* 0: what is usual */
    uint32_t part_size;
    bool hides;                   /* what isn't there: it answers 403 */
    bool busy;                    /* a link has more to do at once */
    uint32_t moves;               /* times that the bucket was found elsewhere */
    int64_t progress_ns;          /* when a request was last answered well */
    int64_t deadline_ns;          /* of the name that is being given; 0: none */
    enum tn_s3_trouble trouble;   /* of the last error that was told */
    char token[TN_S3_TOKEN_SIZE]; /* of the next page */
    char after[TN_S3_NAME_MAX];   /* the key that a walk begins behind */
    struct tn_set rows;           /* of the page that is being listed: their names' hashes */

    tn_rc failed; /* of a file sent before; until `drop` */
    struct tn_err failure;
    enum tn_s3_trouble failure_trouble;

    _Atomic uint32_t rate;
    int64_t pace_ns; /* when `credit` was right */
    int64_t credit;  /* bytes; below 0: too many were sent */

    struct tn_s3_upload upload;
    struct tn_s3_memo memo;
    struct tn_s3_credentials credentials;
};

static inline struct tn_s3_target *tn_s3_target_of(struct tn_target *target)
{
    return (struct tn_s3_target *)(void *)target;
}

static inline int64_t tn_s3_now_ns(const struct tn_s3_target *target)
{
    return target->clock->vtable->monotonic_ns(target->clock);
}

/* ---- s3_target_link.c ---- */

/* Begins a job on a free link. */
void tn_s3_link_start(struct tn_s3_link *link, const struct tn_s3_job *job, const char *key);
/* True: it has more to do at once. */
bool tn_s3_link_step(struct tn_s3_link *link);
/* Ends the job, if there is one, with CANCELED, and the connection. */
void tn_s3_link_cancel(struct tn_s3_link *link);
/* Ends it with IO, in words of why it took so long; nobody knows what comes of it. */
void tn_s3_link_give_up(struct tn_s3_link *link);
/* The policy forbids it. A store says so, too, of a name that isn't there, to who may not list
 * (S3): then GET and HEAD don't tell whether it is. Whoever goes on puts on the condition that it
 * isn't. */
static inline bool tn_s3_link_is_denied(const struct tn_s3_link *link)
{
    return link->verdict == TN_S3_PERSON && link->exchange.answer.status == 403 &&
           strcmp(link->exchange.answer.code, "AccessDenied") == 0;
}
/* Whether a job's outcome says that its name has to be looked at: nobody knows, or who was there
 * first may have been a try of ours. */
static inline bool tn_s3_link_is_open(const struct tn_s3_link *link)
{
    return link && (link->verdict == TN_S3_UNKNOWN || link->verdict == TN_S3_CONFLICT);
}

/* ---- s3_target_wire.c ---- */

/* Over an open connection: makes the head, and sends it with what fits of the body. FATAL or OPEN.
 */
enum tn_s3_wire tn_s3_wire_begin(struct tn_s3_link *link);
enum tn_s3_wire tn_s3_wire_step(struct tn_s3_link *link);
/* Hashes a piece of the body. DONE: that was the last one. */
enum tn_s3_wire tn_s3_wire_hash(struct tn_s3_link *link);

/* ---- s3_target_turn.c ---- */

/* One turn. CANCELED: all jobs have been ended. */
TN_MUST_USE tn_rc tn_s3_target_turn(struct tn_s3_target *target, struct tn_err *err);
TN_MUST_USE tn_rc tn_s3_target_free_link(struct tn_s3_target *target, struct tn_s3_link **link,
                                         struct tn_err *err);
/* Does a job about a key, and waits for it. What the link has of it stays until its next job. */
TN_MUST_USE tn_rc tn_s3_target_ask(struct tn_s3_target *target, const char *key,
                                   const struct tn_s3_job *job, struct tn_s3_link **link,
                                   struct tn_err *err);
/* Waits until no job of that kind is under way. */
TN_MUST_USE tn_rc tn_s3_target_wait(struct tn_s3_target *target, enum tn_s3_job_kind kind,
                                    struct tn_err *err);
/* Ends the jobs of that kind. */
void tn_s3_target_cancel(struct tn_s3_target *target, enum tn_s3_job_kind kind);
/* Before try number `tries`, from 0. */
uint32_t tn_s3_target_pause(struct tn_s3_target *target, uint32_t tries);
/* How many bytes may be sent now, up to `size`; 0: wait. */
size_t tn_s3_pace_allows(struct tn_s3_target *target, size_t size);
void tn_s3_pace_took(struct tn_s3_target *target, size_t size);
uint32_t tn_s3_pace_wait_ms(struct tn_s3_target *target);

/* ---- s3_target_look.c ---- */

/* The key of a path of target.h. UNSUPPORTED: it is too long. */
TN_MUST_USE tn_rc tn_s3_target_key(const struct tn_s3_target *target, const char *path,
                                   char key[TN_S3_NAME_MAX], struct tn_err *err);
/* tn_s3_target_ask with HEAD or GET. In a store that hides all that it lacks a 403 is as good as
 * ABSENT; in one that tells, it is one of a moment, and an error. Which it is, the store is asked
 * by a name that nobody makes. */
TN_MUST_USE tn_rc tn_s3_target_look(struct tn_s3_target *target, const char *key,
                                    const struct tn_s3_job *job, struct tn_s3_link **link,
                                    struct tn_err *err);

/* ---- s3_target.c ---- */

/* ABSENT as IO: it would be taken for a file that the source has lost. */
tn_rc tn_s3_target_checked(tn_rc rc, struct tn_err *err);

/* ---- s3_target_many.c: of the vtable ---- */

TN_MUST_USE tn_rc tn_s3_target_many(struct tn_target *base, struct tn_io_ask *asks, uint32_t count,
                                    struct tn_err *err);
TN_MUST_USE tn_rc tn_s3_target_list(struct tn_target *base, const char *path, tn_io_name_fn *each,
                                    void *user, struct tn_err *err);
TN_MUST_USE tn_rc tn_s3_target_walk(struct tn_target *base, struct tn_io_walk *walk,
                                    struct tn_err *err);

/* ---- s3_target_race.c ---- */

/* The race of target.h; `key` is of its path. */
TN_MUST_USE tn_rc tn_s3_target_race(struct tn_s3_target *target, const char *key,
                                    struct tn_target_race *race, struct tn_err *err);

/* ---- s3_target_parts.c ---- */

/* A file that is open, in parts; returns when it's there. */
TN_MUST_USE tn_rc tn_s3_parts_send(struct tn_s3_target *target, struct tn_io *from, int file,
                                   const char *key, uint64_t size, struct tn_err *err);
/* Gives up the upload that is under way, unless it is kept. */
void tn_s3_parts_drop(struct tn_s3_target *target);
/* Gives up uploads that nobody has gone on with for a week. */
void tn_s3_parts_clean(struct tn_s3_target *target);

/* ---- s3_target_memo.c ---- */

/* Once; what can't be read is forgotten. */
void tn_s3_memo_load(struct tn_s3_memo *memo);
struct tn_s3_memo_entry *tn_s3_memo_find(struct tn_s3_memo *memo, const char *key);
/* False: it isn't kept. */
bool tn_s3_memo_add(struct tn_s3_memo *memo, const struct tn_s3_memo_entry *entry);
/* What has changed of an entry. False: it isn't kept. */
bool tn_s3_memo_save(struct tn_s3_memo *memo);
void tn_s3_memo_remove(struct tn_s3_memo *memo, const char *key);

/* ---- s3_target_credentials.c ---- */

TN_MUST_USE tn_rc tn_s3_credentials_load(struct tn_s3_credentials *credentials,
                                         struct tn_s3_options *options, struct tn_err *err);
/* Reads the file again when it is another. What can't be read leaves all as it was. */
void tn_s3_credentials_refresh(struct tn_s3_target *target);
