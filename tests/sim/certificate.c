#include "sim/certificate.h"

#include <mbedtls/asn1write.h>
#include <mbedtls/ecp.h>
#include <mbedtls/oid.h>
#include <mbedtls/pk.h>
#include <mbedtls/x509_crt.h>

#include "check.h"
#include "random.h"

static int draw(void *user, unsigned char *out, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        out[i] = (unsigned char)random_next(user);
    }
    return 0;
}

static void make_key(mbedtls_pk_context *key, uint64_t *random)
{
    mbedtls_pk_init(key);
    CHECK(mbedtls_pk_setup(key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY)) == 0);
    CHECK(mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(*key), draw, random) == 0);
}

/* SubjectAltName by hand: SEQUENCE { [2] name, [7] address }. */
static void add_names(mbedtls_x509write_cert *crt, const struct certificate_spec *spec)
{
    unsigned char value[128] = {0x30, 0};
    size_t at = 2;
    if (spec->dns) {
        size_t size = strlen(spec->dns);
        CHECK(size < 60);
        value[at++] = 0x82;
        value[at++] = (unsigned char)size;
        memcpy(value + at, spec->dns, size);
        at += size;
    }
    if (spec->ip) {
        value[at++] = 0x87;
        value[at++] = 4;
        memcpy(value + at, spec->ip, 4);
        at += 4;
    }
    value[1] = (unsigned char)(at - 2);
    if (at > 2) {
        CHECK(mbedtls_x509write_crt_set_extension(crt, MBEDTLS_OID_SUBJECT_ALT_NAME,
                                                  MBEDTLS_OID_SIZE(MBEDTLS_OID_SUBJECT_ALT_NAME), 0,
                                                  value, at) == 0);
    }
}

static void write_certificate(struct certificate *certificate, const struct certificate_spec *spec,
                              mbedtls_pk_context *key, mbedtls_pk_context *signer, uint64_t *random)
{
    mbedtls_x509write_cert crt;
    mbedtls_mpi serial;
    mbedtls_x509write_crt_init(&crt);
    mbedtls_mpi_init(&serial);
    CHECK(mbedtls_mpi_lset(&serial, (mbedtls_mpi_sint)random_below(random, 1000000) + 1) == 0);
    mbedtls_x509write_crt_set_version(&crt, MBEDTLS_X509_CRT_VERSION_3);
    mbedtls_x509write_crt_set_md_alg(&crt, MBEDTLS_MD_SHA256);
    mbedtls_x509write_crt_set_subject_key(&crt, key);
    mbedtls_x509write_crt_set_issuer_key(&crt, signer);
    CHECK(mbedtls_x509write_crt_set_serial(&crt, &serial) == 0);
    CHECK(mbedtls_x509write_crt_set_subject_name(&crt, spec->name) == 0);
    CHECK(mbedtls_x509write_crt_set_issuer_name(&crt, spec->issuer ? spec->issuer->name
                                                                   : spec->name) == 0);
    CHECK(mbedtls_x509write_crt_set_validity(&crt, spec->from ? spec->from : "20230101000000",
                                             spec->to ? spec->to : "20330101000000") == 0);
    CHECK(mbedtls_x509write_crt_set_basic_constraints(&crt, spec->authority, -1) == 0);
    add_names(&crt, spec);
    CHECK(mbedtls_x509write_crt_pem(&crt, (unsigned char *)certificate->pem, CERTIFICATE_TEXT, draw,
                                    random) == 0);
    mbedtls_mpi_free(&serial);
    mbedtls_x509write_crt_free(&crt);
}

void certificate_make(struct certificate *certificate, const struct certificate_spec *spec,
                      uint64_t seed)
{
    uint64_t random = seed;
    mbedtls_pk_context key;
    mbedtls_pk_context signer;
    *certificate = (struct certificate){.issuer = spec->issuer};
    (void)snprintf(certificate->name, sizeof certificate->name, "%s", spec->name);
    make_key(&key, &random);
    mbedtls_pk_init(&signer);
    if (spec->issuer) {
        CHECK(mbedtls_pk_parse_key(&signer, (const unsigned char *)spec->issuer->key,
                                   strlen(spec->issuer->key) + 1, NULL, 0) == 0);
    }
    write_certificate(certificate, spec, &key, spec->issuer ? &signer : &key, &random);
    CHECK(mbedtls_pk_write_key_pem(&key, (unsigned char *)certificate->key, CERTIFICATE_TEXT) == 0);
    if (spec->issuer && spec->issuer->issuer) {
        size_t at = strlen(certificate->pem);
        (void)snprintf(certificate->pem + at, sizeof certificate->pem - at, "%.*s",
                       CERTIFICATE_TEXT - 1, spec->issuer->pem);
    }
    mbedtls_pk_free(&signer);
    mbedtls_pk_free(&key);
}

struct tn_bytes certificate_pem(const struct certificate *certificate)
{
    return tn_bytes_of(certificate->pem);
}

struct tn_bytes certificate_key(const struct certificate *certificate)
{
    return tn_bytes_of(certificate->key);
}
