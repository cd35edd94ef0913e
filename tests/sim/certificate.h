/* certificate: authorities and certificates for tests of TLS, made when they are needed.
 * tn_tls_boot comes first. */
#pragma once

#include <stdint.h>

#include "base/bytes.h"

enum { CERTIFICATE_TEXT = 2048 };

struct certificate {
    char pem[2 * CERTIFICATE_TEXT]; /* with its issuer's behind it, when that is no root */
    char key[CERTIFICATE_TEXT];
    char name[64];                    /* "CN=broker" */
    const struct certificate *issuer; /* NULL: itself */
};

struct certificate_spec {
    const char *name;                 /* "CN=broker" */
    const char *dns;                  /* who it is for, or NULL */
    const unsigned char *ip;          /* 4 bytes, or NULL */
    const char *from;                 /* "20240101000000"; NULL: 2023 */
    const char *to;                   /* NULL: 2033 */
    const struct certificate *issuer; /* NULL: signs itself */
    bool authority;                   /* may sign others */
};

void certificate_make(struct certificate *certificate, const struct certificate_spec *spec,
                      uint64_t seed);
struct tn_bytes certificate_pem(const struct certificate *certificate);
struct tn_bytes certificate_key(const struct certificate *certificate);
