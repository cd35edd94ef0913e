/* s3_store: where a bucket is, and who asks: options as Paimon and AWS name them, an endpoint and a
 * bucket made into a host.
 *
 *     options (catalog, then environment) + "s3://bucket/prefix" -> tn_s3_store
 *
 * The credentials are a set: they come all from the options or all from the environment, never one
 * key of each. What a store's answers teach, its region and its clock, is kept here for the
 * requests that follow; an answer never names the host that the next request goes to.
 */
#pragma once

#include "base/arena.h"

enum {
    TN_S3_HOST_SIZE = 256,
    TN_S3_REGION_SIZE = 48,
    TN_S3_BUCKET_SIZE = 256,
};

/* Texts that the caller owns, as they were written; NULL: not given. */
struct tn_s3_options {
    const char *endpoint;      /* "host", "host:port", "http://host:port" */
    const char *access_key;    /* s3.access-key */
    const char *secret_key;    /* s3.secret-key */
    const char *session_token; /* s3.session-token */
    const char *region;        /* s3.region */
    const char *path_style; /* s3.path-style-access: the bucket is in the path, not in the host */
    const char *tls;        /* s3.connection.ssl.enabled: for an endpoint without http(s):// */
};

/* Takes an option if it is one of these. The prefixes "s3.", "s3a.", "fs.s3a.", "fs.s3.", and '-'
 * or '.' between words, are all one, as for Paimon. Source: Paimon, S3FileIO; pypaimon,
 * PyArrowFileIO. */
bool tn_s3_option(struct tn_s3_options *options, const char *name, const char *value);

/* NULL: the environment has no such name. */
typedef const char *tn_s3_environment_fn(void *user, const char *name);

/* What isn't given is taken from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN (these
 * three or none), AWS_REGION, AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL. */
void tn_s3_options_environment(struct tn_s3_options *options, tn_s3_environment_fn *get,
                               void *user);

/* The text of AWS's file of credentials (~/.aws/credentials): takes the three keys of a profile, as
 * a set, if the options have none. The texts are copied into `arena`. ABSENT: no such profile, or
 * it has no keys. To be read again when the file has changed: that is how credentials that expire
 * are renewed.
 *
 *     [default]
 *     aws_access_key_id = AKIA...
 *     aws_secret_access_key = ...
 *     aws_session_token = ...
 */
TN_MUST_USE tn_rc tn_s3_options_file(struct tn_s3_options *options, struct tn_bytes text,
                                     const char *profile, struct tn_arena *arena,
                                     struct tn_err *err);

struct tn_s3_place {
    char bucket[TN_S3_BUCKET_SIZE];
    const char *prefix; /* inside the text; no '/' at its start or end */
    size_t prefix_size;
};

/* "s3://bucket/prefix", also s3a:// and s3n://. INVALID: it isn't one. */
TN_MUST_USE tn_rc tn_s3_place_parse(struct tn_s3_place *place, const char *text,
                                    struct tn_err *err);

struct tn_s3_store {
    bool tls;
    bool path_style;
    bool aws; /* the host's name follows from the region */
    uint16_t port;
    char host[TN_S3_HOST_SIZE];          /* to connect to; the name in its certificate */
    char authority[TN_S3_HOST_SIZE + 8]; /* the same in a request, with an unusual port */
    char region[TN_S3_REGION_SIZE];
    char bucket[TN_S3_BUCKET_SIZE];
    const char *access_key; /* of the options */
    const char *secret_key;
    const char *session_token; /* or NULL */
    int64_t clock_offset_ms;   /* the store's clock minus ours; for signing only */
};

/* The texts of the options stay the caller's, and must live as long as the store. The region is the
 * option's, else that of an endpoint of AWS, else us-east-1. A bucket goes into the host unless
 * s3.path-style-access says otherwise, or it can't: the endpoint is an address or has no dot, or
 * the bucket's name is no name of a host. INVALID: credentials are missing or half, and so on. */
TN_MUST_USE tn_rc tn_s3_store_init(struct tn_s3_store *store, const struct tn_s3_options *options,
                                   const char *bucket, struct tn_err *err);

/* The bucket is in another region: signs for that, and at AWS goes there. False: it isn't one. */
bool tn_s3_store_move(struct tn_s3_store *store, const char *region);
