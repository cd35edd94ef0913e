/* Dates are checked by our clock, and the reason is kept in words a person can act on: a gateway's
 * clock is wrong more often than a certificate. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <mbedtls/oid.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "io/tls_private.h"

enum { NAME_SIZE = 96, IP_TAG = MBEDTLS_ASN1_CONTEXT_SPECIFIC | 7 };
enum { DNS_TAG = MBEDTLS_ASN1_CONTEXT_SPECIFIC | 2 };
enum { DAY_MS = 24 * 3600 * 1000, DATE_SIZE = 48 };

/* What is said when several things are wrong: the clock first, it makes all else doubtful. */
enum { RANK_OTHER = 1, RANK_SIGNER, RANK_NAME, RANK_PIN, RANK_DATE };

static void say(struct tn_tls_check *check, int rank, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void say(struct tn_tls_check *check, int rank, const char *format, ...)
{
    if (rank <= check->rank) {
        return;
    }
    check->rank = rank;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(check->reason, sizeof check->reason, format, args);
    va_end(args);
}

static const char *whose(const struct tn_tls_check *check)
{
    return check->host ? check->host : "the peer";
}

static void subject_of(const mbedtls_x509_name *name, char text[NAME_SIZE])
{
    if (mbedtls_x509_dn_gets(text, NAME_SIZE, name) < 0) {
        (void)snprintf(text, NAME_SIZE, "somebody with a long name");
    }
}

/* ---- dates ---- */

/* Days since 1970; after Howard Hinnant's days_from_civil. */
static int64_t days_of(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static int64_t ms_of(const mbedtls_x509_time *at)
{
    return days_of(at->year, at->mon, at->day) * DAY_MS +
           ((at->hour * 60 + at->min) * 60 + at->sec) * INT64_C(1000);
}

static void date_text(int64_t ms, char text[DATE_SIZE])
{
    int64_t day = (ms >= 0 ? ms : ms - DAY_MS + 1) / DAY_MS;
    int64_t year = 1970 + day * 400 / 146097; /* off by one at most */
    year += days_of(year + 1, 1, 1) <= day;
    year -= days_of(year, 1, 1) > day;
    int month = 12;
    while (month > 1 && days_of(year, month, 1) > day) {
        month--;
    }
    int64_t of_month = day - days_of(year, month, 1) + 1;
    (void)snprintf(text, DATE_SIZE, "%04" PRId64 "-%02d-%02" PRId64, year, month, of_month);
}

static void check_dates(struct tn_tls_check *check, const mbedtls_x509_crt *crt, uint32_t *flags)
{
    *flags &= ~(uint32_t)(MBEDTLS_X509_BADCERT_EXPIRED | MBEDTLS_X509_BADCERT_FUTURE);
    struct tn_clock *clock = check->config->clock;
    int64_t now_ms = clock->vtable->now_ms(clock);
    char now[DATE_SIZE];
    date_text(now_ms, now);
    if (now_ms < ms_of(&crt->valid_from)) {
        *flags |= MBEDTLS_X509_BADCERT_FUTURE;
        say(check, RANK_DATE,
            "a certificate of %s is valid from %04d-%02d-%02d, and here it is %s: is the clock "
            "wrong?",
            whose(check), crt->valid_from.year, crt->valid_from.mon, crt->valid_from.day, now);
    } else if (now_ms > ms_of(&crt->valid_to)) {
        *flags |= MBEDTLS_X509_BADCERT_EXPIRED;
        say(check, RANK_DATE, "a certificate of %s expired on %04d-%02d-%02d, and here it is %s",
            whose(check), crt->valid_to.year, crt->valid_to.mon, crt->valid_to.day, now);
    }
}

/* ---- whose it is ---- */

/* The first names that a certificate is for, as far as they fit; whoever made it chose the bytes.
 */
static void names_of(const mbedtls_x509_crt *crt, char text[NAME_SIZE])
{
    size_t at = 0;
    for (const mbedtls_x509_sequence *name = &crt->subject_alt_names; name; name = name->next) {
        if (name->buf.tag != DNS_TAG || at + name->buf.len + 3 > NAME_SIZE) {
            continue;
        }
        at += at > 0 ? (size_t)snprintf(text + at, NAME_SIZE - at, ", ") : 0;
        for (size_t i = 0; i < name->buf.len; i++) {
            unsigned char byte = name->buf.p[i];
            text[at] = '?';
            if (byte > ' ' && byte < 127) {
                text[at] = (char)byte;
            }
            at++;
        }
        text[at] = 0;
    }
    if (at == 0) {
        subject_of(&crt->subject, text);
    }
}

/* mbed TLS compares names only. */
static bool is_for_ip(const struct tn_tls_check *check, const mbedtls_x509_crt *crt)
{
    for (const mbedtls_x509_sequence *name = &crt->subject_alt_names; name; name = name->next) {
        if (name->buf.tag == IP_TAG && name->buf.len == check->ip_size &&
            memcmp(name->buf.p, check->ip, check->ip_size) == 0) {
            return true;
        }
    }
    return false;
}

static void check_name(struct tn_tls_check *check, const mbedtls_x509_crt *crt, uint32_t *flags)
{
    if (check->ip_size > 0 && !is_for_ip(check, crt)) {
        *flags |= MBEDTLS_X509_BADCERT_CN_MISMATCH;
    }
    if (*flags & MBEDTLS_X509_BADCERT_CN_MISMATCH) {
        char names[NAME_SIZE];
        names_of(crt, names);
        say(check, RANK_NAME, "its certificate is for %s, not for %s", names, whose(check));
    }
}

/* The pinned certificate is trusted for what it is; who signed it, and for whom, is no question. */
static void check_pin(struct tn_tls_check *check, const mbedtls_x509_crt *crt, uint32_t *flags)
{
    const mbedtls_x509_crt *pin = &check->config->ca;
    *flags &= MBEDTLS_X509_BADCERT_EXPIRED | MBEDTLS_X509_BADCERT_FUTURE;
    if (crt->raw.len != pin->raw.len || memcmp(crt->raw.p, pin->raw.p, pin->raw.len) != 0) {
        *flags |= MBEDTLS_X509_BADCERT_NOT_TRUSTED;
        char names[NAME_SIZE];
        names_of(crt, names);
        say(check, RANK_PIN, "its certificate (for %s) is not the pinned one", names);
    }
}

static void say_flags(struct tn_tls_check *check, const mbedtls_x509_crt *crt, uint32_t flags)
{
    char issuer[NAME_SIZE];
    if (flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED) {
        subject_of(&crt->issuer, issuer);
        say(check, RANK_SIGNER,
            "a certificate of %s is signed by '%s', which is not in the CA file", whose(check),
            issuer);
    } else if (flags & (MBEDTLS_X509_BADCERT_BAD_MD | MBEDTLS_X509_BADCERT_BAD_PK |
                        MBEDTLS_X509_BADCERT_BAD_KEY)) {
        say(check, RANK_OTHER, "a certificate of %s is made with keys or hashes too weak to trust",
            whose(check));
    } else if (flags != 0) {
        say(check, RANK_OTHER, "a certificate of %s may not be used like this (flags 0x%x)",
            whose(check), (unsigned)flags);
    }
}

int tn_tls_check_certificate(void *user, mbedtls_x509_crt *crt, int depth, uint32_t *flags)
{
    struct tn_tls_check *check = user;
    check->seen = true;
    if (check->config->pins && depth > 0) {
        *flags = 0;
        return 0;
    }
    check_dates(check, crt, flags);
    if (check->config->pins) {
        check_pin(check, crt, flags);
    } else {
        if (depth == 0) {
            check_name(check, crt, flags);
        }
        say_flags(check, crt, *flags);
    }
    return 0;
}

void tn_tls_check_init(struct tn_tls_check *check, const struct tn_tls_config *config,
                       const char *host)
{
    *check = (struct tn_tls_check){.config = config, .host = host};
    if (host && inet_pton(AF_INET, host, check->ip) == 1) {
        check->ip_size = 4;
    } else if (host && inet_pton(AF_INET6, host, check->ip) == 1) {
        check->ip_size = 16;
    }
}
