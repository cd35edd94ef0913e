/* s3: one request to an object store and its answer, without the socket.
 *
 *     start -> head to send, then the body (tn_http_sent) ...
 *     read  <- bytes that came; gives the object's bytes (GET) -> until `done` -> finish
 *        '---- lost: the connection broke, or the time is over --------------------------> verdict
 *
 * finish and lost give a verdict: what the caller is to do now. Most requests may simply be made
 * again. Two may not, a conditional PUT and the completion of an upload: if nobody knows whether
 * they happened, the verdict is UNKNOWN, and the answer is found by reading the name. So a CONFLICT
 * after an UNKNOWN may be our own first try. And who completes an upload for the second time looks
 * at the name even after DONE: versitygw says so of an upload that is gone, if the name is taken.
 *
 * Bodies have a length and a hash, or over TLS no hash; no Expect, no chunks, no trailers and no
 * checksums but the signature's, since not every store takes them.
 */
#pragma once

#include "upload/http.h"
#include "upload/s3_store.h"
#include "upload/xml.h"

enum {
    TN_S3_HEAD_SIZE = 16 * 1024,    /* room for a request's head: a session token has 2 KiB */
    TN_S3_SCRATCH_SIZE = 24 * 1024, /* what start needs for a moment */
    TN_S3_KEY_MAX = 1024,           /* S3: bytes of a key */
    TN_S3_ETAG_SIZE = 128,
    TN_S3_UPLOAD_SIZE = 512,
    TN_S3_TOKEN_SIZE = 2048,
    TN_S3_CODE_SIZE = 48,
    TN_S3_MESSAGE_SIZE = 160,
    TN_S3_PARTS_MAX = 10000, /* S3: part numbers go from 1 to this */
};

enum tn_s3_verb {
    TN_S3_GET,
    TN_S3_HEAD,
    TN_S3_PUT,
    TN_S3_DELETE,
    TN_S3_LIST,
    TN_S3_CREATE_UPLOAD,
    TN_S3_UPLOAD_PART,
    TN_S3_COMPLETE_UPLOAD,
    TN_S3_ABORT_UPLOAD,
    TN_S3_LIST_PARTS,
    TN_S3_LIST_UPLOADS,
};

enum tn_s3_verdict {
    TN_S3_OPEN,     /* the exchange goes on */
    TN_S3_DONE,     /* it is so. DELETE: also when there was nothing */
    TN_S3_ABSENT,   /* no such key; for parts: no such upload, begin a new one */
    TN_S3_CONFLICT, /* the condition doesn't hold */
    TN_S3_LATER,    /* nothing has happened, or it does no harm twice: again after a pause */
    TN_S3_AGAIN,    /* the store's clock or region was learned: again at once, but not for ever */
    TN_S3_UNKNOWN,  /* it may have happened: read the name */
    TN_S3_PERSON,   /* refused until somebody changes something: rights, credentials, quota */
    TN_S3_WRONG,    /* the store can't do this, or it isn't a store: again won't help */
};

/* A row of LIST, LIST_PARTS or LIST_UPLOADS. Most stores sort them, but not all (S3's directory
 * buckets). */
struct tn_s3_entry {
    const char *name; /* key, or with `folder` what stands before the delimiter; NULL: a part */
    const char *etag; /* as S3 writes it, in quotes; "" if there is none */
    const char *upload_id; /* LIST_UPLOADS; else "" */
    uint64_t size;
    int64_t modified_ms; /* since 1970; 0: unknown */
    uint32_t part;       /* its number */
    bool folder;
};

/* The texts live until it returns. Other than OK: the exchange fails with that. Rows are told as
 * they come, so also those of an answer that breaks off. */
typedef tn_rc tn_s3_entry_fn(void *user, const struct tn_s3_entry *entry, struct tn_err *err);

/* All texts live until the exchange has ended. */
struct tn_s3_request {
    enum tn_s3_verb verb;
    const char *key;                  /* LIST, LIST_UPLOADS: what keys begin with */
    uint64_t body_size;               /* PUT, UPLOAD_PART, COMPLETE_UPLOAD */
    const unsigned char *body_sha256; /* 32 bytes; NULL: not signed, over TLS only */
    uint64_t range_first;             /* GET: bytes range_first .. + range_size - 1 */
    uint64_t range_size;              /* 0: the whole object */
    bool if_absent;                   /* PUT, COMPLETE_UPLOAD: If-None-Match: * */
    const char *if_match;             /* PUT, COMPLETE_UPLOAD, GET: an etag, or NULL */
    const char *upload_id;
    uint32_t part;         /* UPLOAD_PART: 1 .. TN_S3_PARTS_MAX; LIST_PARTS: those behind it */
    const char *delimiter; /* LIST: NULL, or mostly "/" */
    const char *after;     /* LIST: NULL, or: only keys behind it, of the first page */
    const char *token;     /* LIST: NULL, or the `token` of the page before */
    uint32_t count_max;    /* LIST, LIST_PARTS: rows of a page; 0: the store's 1000 */
    tn_s3_entry_fn *each;  /* LIST, LIST_PARTS, LIST_UPLOADS (its first page) */
    void *user;
};

struct tn_s3_answer {
    enum tn_s3_verdict verdict;
    int status;              /* HTTP's; 0: no answer came */
    uint64_t size;           /* HEAD: of the object; GET: bytes that came */
    int64_t modified_ms;     /* GET, HEAD; 0: unknown */
    int64_t server_ms;       /* the store's clock; 0: not told */
    uint32_t retry_after_ms; /* what the store asks for; 0: nothing */
    bool more;               /* LIST, LIST_PARTS: there is another page */
    uint32_t part;           /* LIST_PARTS: where the next page begins */
    char etag[TN_S3_ETAG_SIZE];
    char upload_id[TN_S3_UPLOAD_SIZE]; /* CREATE_UPLOAD */
    char token[TN_S3_TOKEN_SIZE];      /* LIST: of the next page */
    char code[TN_S3_CODE_SIZE];        /* of the store's error, "NoSuchKey" */
    char message[TN_S3_MESSAGE_SIZE];  /* its words, cut */
    char region[TN_S3_REGION_SIZE];    /* where the bucket is, when it is elsewhere */
};

struct tn_s3_exchange {
    struct tn_s3_store *store;
    const struct tn_s3_request *request;
    struct tn_http *http;
    struct tn_s3_answer answer;
    bool done;   /* the answer is whole: finish */
    bool root;   /* the XML is of the kind that was asked for */
    bool failed; /* the XML is an error, whatever the status says */
    bool ranged; /* the answer says which part of the object it is: from `range_first` on */
    uint64_t range_first;
    int64_t now_ms; /* at start, by our clock */
    tn_rc xml_rc;   /* of an answer that must be XML */
    struct tn_err xml_err;
    struct tn_xml xml;
    struct tn_s3_entry entry; /* that is being read */
    char entry_name[TN_S3_KEY_MAX + 1];
    char entry_etag[TN_S3_ETAG_SIZE];
    char entry_upload[TN_S3_UPLOAD_SIZE];
};

/* Appends the request's head to `head`. `now_ms` is our clock, at the moment of sending. The
 * connection is new or reusable; it belongs to the exchange until that ends. INVALID: the request
 * can't be made so; AGAIN: no room in `head` or `scratch`. After an error nothing is open. */
TN_MUST_USE tn_rc tn_s3_start(struct tn_s3_exchange *exchange, struct tn_s3_store *store,
                              const struct tn_s3_request *request, struct tn_http *http,
                              int64_t now_ms, struct tn_arena *scratch, struct tn_buf *head,
                              struct tn_err *err);

/* Takes bytes that came, up to a piece of the object (GET; the caller goes on while input is left),
 * or to the end of the answer, which sets `done`, maybe together with the last piece. After an
 * error the exchange has ended with a verdict, and the connection is to be closed. */
TN_MUST_USE tn_rc tn_s3_read(struct tn_s3_exchange *exchange, struct tn_bytes *input,
                             struct tn_bytes *body, struct tn_err *err);

/* The other side has closed. OK: that was the end, finish. Else as for read. */
TN_MUST_USE tn_rc tn_s3_closed(struct tn_s3_exchange *exchange, struct tn_err *err);

/* Ends a whole answer: OK, or what the verdict means in words. A clock or region that was learned
 * is in the store. The connection may be used again if tn_http_reusable says so. */
TN_MUST_USE tn_rc tn_s3_finish(struct tn_s3_exchange *exchange, struct tn_err *err);

/* Ends an exchange whose connection failed, with the cause in `err`, or that is given up. */
void tn_s3_lost(struct tn_s3_exchange *exchange, struct tn_err *err);

/* The body of COMPLETE_UPLOAD. */
struct tn_s3_part {
    uint32_t number;
    const char *etag;
};
void tn_s3_parts(struct tn_buf *out, const struct tn_s3_part *parts, uint32_t count);

/* The pause before try `attempt` (1, 2, ...): half a second doubled each time, up to a minute, less
 * up to half of it, and never less than the store asked for. `random`: any 64 bits. */
uint32_t tn_s3_pause_ms(uint32_t attempt, uint32_t retry_after_ms, uint64_t random);

const char *tn_s3_verb_text(enum tn_s3_verb verb);
