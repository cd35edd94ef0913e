/* sigv4: AWS signature version 4, as a header of a request.
 *
 *     headers -> canonical request -> its hash -> string to sign -> HMAC by a key that is made of
 *     the secret, the day, the region and the service
 *
 * What is signed is what goes over the wire: the path and the query are the encoded ones, encoded
 * once (S3's way; other services of AWS encode a path twice), and every header that is given is
 * signed, so headers that a proxy may change are added to the request afterwards.
 * Source: AWS, "Create a signed AWS API request"; S3, "Authenticating Requests: Using the
 * Authorization Header".
 */
#pragma once

#include "upload/http.h"

enum {
    TN_SIGV4_DATE_SIZE = 17, /* "20130524T000000Z" and a zero */
    TN_SIGV4_HASH_SIZE = 65, /* a SHA-256 in hex, and a zero */
    TN_SIGV4_HEADERS_MAX = 16,
    TN_SIGV4_QUERY_MAX = 8,
};

/* Stands for a body's hash: the body is not signed. For TLS only, which keeps it whole anyway. */
#define TN_SIGV4_UNSIGNED "UNSIGNED-PAYLOAD"

struct tn_sigv4_pair {
    const char *name;
    const char *value;
};

struct tn_sigv4_spec {
    const char *access_key;
    const char *secret_key;
    const char *region;
    const char *service;
    const char *method;
    const char *path;                     /* encoded */
    const char *query;                    /* of tn_sigv4_query; "" for none */
    const struct tn_http_header *headers; /* in any order; host is one of them */
    uint32_t header_count;
    const char *payload; /* hash of the body, or TN_SIGV4_UNSIGNED */
    const char *date;    /* of tn_sigv4_date; x-amz-date says the same */
};

/* Appends the value of the header "authorization". */
void tn_sigv4_sign(const struct tn_sigv4_spec *spec, struct tn_buf *out);

/* Appends a text with all but letters, digits and "-._~" as %XX; `slash` stays, too, for paths. */
void tn_sigv4_encode(struct tn_buf *out, struct tn_bytes text, bool slash);

/* Appends name=value&..., encoded, in the order that is signed. */
void tn_sigv4_query(struct tn_buf *out, const struct tn_sigv4_pair *pairs, uint32_t count);

/* A time in milliseconds since 1970; years 0 to 9999. */
void tn_sigv4_date(int64_t time_ms, char date[TN_SIGV4_DATE_SIZE]);

void tn_sigv4_hex(const unsigned char digest[32], char hex[TN_SIGV4_HASH_SIZE]);
