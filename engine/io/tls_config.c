#include <mbedtls/asn1.h>
#include <mbedtls/bignum.h>
#include <mbedtls/pem.h>
#include <string.h>

#include "base/check.h"
#include "io/tls_memory.h"
#include "io/tls_private.h"

enum { TICKET_LIFE_S = 24 * 3600 };

/* Forward secret, authenticated, and what every server of the last ten years has; ChaCha first is
 * for machines that have no AES of their own. */
static const int SUITES[] = {
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    MBEDTLS_TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    MBEDTLS_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    MBEDTLS_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    0,
};

/* The clock's random bits are the system's; in the simulator a seed fixes every key. */
static int draw(void *user, unsigned char *out, size_t size)
{
    struct tn_clock *clock = user;
    while (size > 0) {
        uint64_t bits = clock->vtable->random(clock);
        size_t part = size < sizeof bits ? size : sizeof bits;
        memcpy(out, &bits, part);
        out += part;
        size -= part;
    }
    return 0;
}

/* The high part of a code says what failed, the low one why. */
static bool is_memory(int code)
{
    int high = -(-code & 0x7f80);
    int low = -(-code & 0x7f);
    return high == MBEDTLS_ERR_X509_ALLOC_FAILED || high == MBEDTLS_ERR_PK_ALLOC_FAILED ||
           high == MBEDTLS_ERR_PEM_ALLOC_FAILED || low == MBEDTLS_ERR_ASN1_ALLOC_FAILED ||
           low == MBEDTLS_ERR_MPI_ALLOC_FAILED;
}

static tn_rc bad_text(const char *what, int code, struct tn_err *err)
{
    if (is_memory(code)) {
        return tn_err_set(err, TN_AGAIN, code, "%s: the memory for TLS is too small", what);
    }
    return tn_err_set(err, TN_INVALID, code,
                      "%s: not in PEM form, or of a kind unknown here (-0x%x)", what,
                      (unsigned)-code);
}

/* Single certificates of a bundle may be of kinds that mbed TLS doesn't know: the others count. */
static tn_rc parse_certificates(mbedtls_x509_crt *out, struct tn_bytes text, const char *what,
                                struct tn_err *err)
{
    TN_CHECK(text.data[text.size] == 0);
    int code = mbedtls_x509_crt_parse(out, text.data, text.size + 1);
    return code < 0 || !out->raw.p ? bad_text(what, code, err) : TN_OK;
}

static tn_rc parse_trust(struct tn_tls_config *config, const struct tn_tls_spec *spec,
                         struct tn_err *err)
{
    config->pins = spec->pinned.data != NULL;
    if (config->pins && spec->ca.data) {
        return tn_err_set(err, TN_INVALID, 0, "a pinned certificate and a CA file: one of the two");
    }
    if (!config->pins && !spec->ca.data) {
        return config->server
                   ? TN_OK
                   : tn_err_set(err, TN_INVALID, 0,
                                "whom to trust: needs a CA file or a pinned certificate");
    }
    tn_rc rc = parse_certificates(&config->ca, config->pins ? spec->pinned : spec->ca,
                                  config->pins ? "the pinned certificate" : "the CA file", err);
    if (rc == TN_OK && config->pins && config->ca.next) {
        return tn_err_set(err, TN_INVALID, 0, "the pinned certificate: there is more than one");
    }
    if (rc == TN_OK) {
        mbedtls_ssl_conf_ca_chain(&config->conf, &config->ca, NULL);
        mbedtls_ssl_conf_authmode(&config->conf, MBEDTLS_SSL_VERIFY_REQUIRED);
    }
    return rc;
}

static tn_rc parse_own(struct tn_tls_config *config, const struct tn_tls_spec *spec,
                       struct tn_err *err)
{
    if (!spec->certificate.data || !spec->key.data) {
        bool none = !spec->certificate.data && !spec->key.data && !config->server;
        return none ? TN_OK
                    : tn_err_set(err, TN_INVALID, 0, "needs both a certificate and its key file");
    }
    tn_rc rc = parse_certificates(&config->own, spec->certificate, "the certificate", err);
    if (rc != TN_OK) {
        return rc;
    }
    TN_CHECK(spec->key.data[spec->key.size] == 0);
    int code = mbedtls_pk_parse_key(&config->key, spec->key.data, spec->key.size + 1, NULL, 0);
    if (code != 0) {
        return bad_text("the key file", code, err);
    }
    if (mbedtls_pk_check_pair(&config->own.pk, &config->key) != 0) {
        return tn_err_set(err, TN_INVALID, 0, "the key file: not the key of the certificate");
    }
    code = mbedtls_ssl_conf_own_cert(&config->conf, &config->own, &config->key);
    return code == 0 ? TN_OK : bad_text("the certificate", code, err);
}

/* A ticket is the session, sealed by us and kept by the client: resuming costs us no memory. */
static tn_rc offer_tickets(struct tn_tls_config *config, struct tn_err *err)
{
    if (!config->server) {
        return TN_OK;
    }
    int code = mbedtls_ssl_ticket_setup(&config->tickets, draw, config->clock,
                                        MBEDTLS_CIPHER_AES_256_GCM, TICKET_LIFE_S);
    if (code != 0) {
        return tn_err_set(err, TN_AGAIN, code, "the memory for TLS is too small");
    }
    mbedtls_ssl_conf_session_tickets_cb(&config->conf, mbedtls_ssl_ticket_write,
                                        mbedtls_ssl_ticket_parse, &config->tickets);
    return TN_OK;
}

static tn_rc fill(struct tn_tls_config *config, const struct tn_tls_spec *spec, struct tn_err *err)
{
    int code = mbedtls_ssl_config_defaults(
        &config->conf, spec->server ? MBEDTLS_SSL_IS_SERVER : MBEDTLS_SSL_IS_CLIENT,
        MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT);
    if (code != 0) {
        return tn_err_set(err, TN_AGAIN, code, "the memory for TLS is too small");
    }
    mbedtls_ssl_conf_rng(&config->conf, draw, config->clock);
    mbedtls_ssl_conf_ciphersuites(&config->conf, SUITES);
    mbedtls_ssl_conf_min_version(&config->conf, MBEDTLS_SSL_MAJOR_VERSION_3,
                                 MBEDTLS_SSL_MINOR_VERSION_3);
    mbedtls_ssl_conf_authmode(&config->conf,
                              spec->server ? MBEDTLS_SSL_VERIFY_NONE : MBEDTLS_SSL_VERIFY_REQUIRED);
    tn_rc rc = parse_trust(config, spec, err);
    if (rc == TN_OK) {
        rc = parse_own(config, spec, err);
    }
    return rc == TN_OK ? offer_tickets(config, err) : rc;
}

static void free_config(struct tn_tls_config *config)
{
    mbedtls_ssl_session_free(&config->session);
    mbedtls_ssl_config_free(&config->conf);
    mbedtls_ssl_ticket_free(&config->tickets);
    mbedtls_x509_crt_free(&config->ca);
    mbedtls_x509_crt_free(&config->own);
    mbedtls_pk_free(&config->key);
    tn_tls_give(config);
}

tn_rc tn_tls_config_make(const struct tn_tls_spec *spec, struct tn_tls_config **out,
                         struct tn_err *err)
{
    struct tn_tls_config *config = tn_tls_take(sizeof *config);
    if (!config) {
        return tn_err_set(err, TN_AGAIN, 0, "TLS: the memory for it is too small");
    }
    config->clock = spec->clock;
    config->server = spec->server;
    mbedtls_ssl_config_init(&config->conf);
    mbedtls_ssl_session_init(&config->session);
    mbedtls_ssl_ticket_init(&config->tickets);
    mbedtls_x509_crt_init(&config->ca);
    mbedtls_x509_crt_init(&config->own);
    mbedtls_pk_init(&config->key);
    tn_rc rc = fill(config, spec, err);
    if (rc != TN_OK) {
        free_config(config);
        return tn_err_in(err, "TLS");
    }
    *out = config;
    return TN_OK;
}

void tn_tls_config_free(struct tn_tls_config *config)
{
    TN_CHECK(!config->released);
    config->released = true;
    if (config->streams == 0) {
        free_config(config);
    }
}

void tn_tls_config_give(struct tn_tls_config *config)
{
    TN_CHECK(config->streams > 0);
    config->streams--;
    if (config->released && config->streams == 0) {
        free_config(config);
    }
}

void tn_tls_config_counts(const struct tn_tls_config *config, uint64_t *done, uint64_t *resumed)
{
    *done = config->done;
    *resumed = config->resumed;
}
