#include "upload/sigv4.h"

#include <stdio.h>

#include "base/check.h"
#include "base/hash.h"
#include "schema/time_text.h"

enum { DAY_SIZE = 8, SECOND_MS = 1000, DAY_SECONDS = 86400 };

#define ALGORITHM "AWS4-HMAC-SHA256"
#define SCOPE_END "aws4_request"

/* ---- HMAC (RFC 2104) ---- */

struct hmac {
    struct tn_sha256 inner;
    unsigned char outer_pad[TN_SHA256_BLOCK];
};

static void hmac_init(struct hmac *hmac, struct tn_bytes key)
{
    unsigned char block[TN_SHA256_BLOCK] = {0};
    if (key.size > sizeof block) {
        tn_hash_sha256(key, block);
    } else if (key.size > 0) {
        memcpy(block, key.data, key.size);
    }
    for (size_t i = 0; i < sizeof block; i++) {
        hmac->outer_pad[i] = block[i] ^ 0x5c;
        block[i] ^= 0x36;
    }
    tn_sha256_init(&hmac->inner);
    tn_sha256_add(&hmac->inner, (struct tn_bytes){block, sizeof block});
}

static void hmac_finish(struct hmac *hmac, unsigned char digest[TN_SHA256_SIZE])
{
    struct tn_sha256 outer;
    tn_sha256_finish(&hmac->inner, digest);
    tn_sha256_init(&outer);
    tn_sha256_add(&outer, (struct tn_bytes){hmac->outer_pad, TN_SHA256_BLOCK});
    tn_sha256_add(&outer, (struct tn_bytes){digest, TN_SHA256_SIZE});
    tn_sha256_finish(&outer, digest);
}

/* The key becomes the HMAC of a text. */
static void derive(unsigned char key[TN_SHA256_SIZE], struct tn_bytes text)
{
    struct hmac hmac;
    hmac_init(&hmac, (struct tn_bytes){key, TN_SHA256_SIZE});
    tn_sha256_add(&hmac.inner, text);
    hmac_finish(&hmac, key);
}

static struct tn_bytes day_of(const struct tn_sigv4_spec *spec)
{
    return (struct tn_bytes){(const unsigned char *)spec->date, DAY_SIZE};
}

/* HMAC of the day by "AWS4" + secret: a key of any length, so it is hashed in pieces. */
static void derive_day(const struct tn_sigv4_spec *spec, unsigned char key[TN_SHA256_SIZE])
{
    struct hmac hmac;
    unsigned char short_key[TN_SHA256_BLOCK] = "AWS4";
    size_t secret_size = strlen(spec->secret_key);
    struct tn_bytes start = {short_key, 4 + secret_size};
    if (start.size > sizeof short_key) {
        struct tn_sha256 sha;
        tn_sha256_init(&sha);
        tn_sha256_add(&sha, tn_bytes_of("AWS4"));
        tn_sha256_add(&sha, tn_bytes_of(spec->secret_key));
        tn_sha256_finish(&sha, short_key);
        start.size = TN_SHA256_SIZE;
    } else {
        memcpy(short_key + 4, spec->secret_key, secret_size);
    }
    hmac_init(&hmac, start);
    tn_sha256_add(&hmac.inner, day_of(spec));
    hmac_finish(&hmac, key);
}

/* ---- texts ---- */

static bool is_plain(unsigned char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

void tn_sigv4_encode(struct tn_buf *out, struct tn_bytes text, bool slash)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = text.data[i];
        if (is_plain(byte) || (slash && byte == '/')) {
            tn_buf_byte(out, byte);
        } else {
            const char code[3] = {'%', digits[byte >> 4], digits[byte & 15]};
            tn_buf_append(out, code, sizeof code);
        }
    }
}

/* A byte's place in the order of encoded texts: one that is encoded begins with '%', before all
 * others, and ends in its digits, which are in its own order. */
static int rank_of(unsigned char byte)
{
    return is_plain(byte) ? 256 + byte : byte;
}

static int compare_encoded(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    if (!*a || !*b) {
        return (*a != 0) - (*b != 0);
    }
    return rank_of((unsigned char)*a) - rank_of((unsigned char)*b);
}

static int compare_pairs(const struct tn_sigv4_pair *a, const struct tn_sigv4_pair *b)
{
    int order = compare_encoded(a->name, b->name);
    return order != 0 ? order : compare_encoded(a->value, b->value);
}

void tn_sigv4_query(struct tn_buf *out, const struct tn_sigv4_pair *pairs, uint32_t count)
{
    struct tn_sigv4_pair sorted[TN_SIGV4_QUERY_MAX];
    TN_CHECK(count <= TN_SIGV4_QUERY_MAX);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        for (; at > 0 && compare_pairs(&pairs[i], &sorted[at - 1]) < 0; at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = pairs[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        tn_buf_text(out, i > 0 ? "&" : "");
        tn_sigv4_encode(out, tn_bytes_of(sorted[i].name), false);
        tn_buf_byte(out, '=');
        tn_sigv4_encode(out, tn_bytes_of(sorted[i].value), false);
    }
}

void tn_sigv4_date(int64_t time_ms, char date[TN_SIGV4_DATE_SIZE])
{
    int64_t seconds = time_ms / SECOND_MS - (time_ms % SECOND_MS < 0);
    int64_t days = seconds / DAY_SECONDS - (seconds % DAY_SECONDS < 0);
    uint32_t rest = (uint32_t)(seconds - days * DAY_SECONDS);
    struct tn_date day = tn_date_of_days(days);
    TN_CHECK(day.year >= 0 && day.year <= 9999);
    (void)snprintf(date, TN_SIGV4_DATE_SIZE, "%04u%02u%02uT%02u%02u%02uZ",
                   (uint32_t)day.year % 10000, day.month % 100, day.day % 100, rest / 3600 % 100,
                   rest / 60 % 60, rest % 60);
}

void tn_sigv4_hex(const unsigned char digest[32], char hex[TN_SIGV4_HASH_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < TN_SHA256_SIZE; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[TN_SIGV4_HASH_SIZE - 1] = 0;
}

/* ---- what is signed ---- */

struct sorted {
    const struct tn_http_header *items[TN_SIGV4_HEADERS_MAX];
    uint32_t count;
};

/* Header names as they are signed: in lower case. */
static unsigned char lower(unsigned char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (unsigned char)(byte + 'a' - 'A') : byte;
}

static int compare_names(const char *a, const char *b)
{
    while (*a && lower((unsigned char)*a) == lower((unsigned char)*b)) {
        a++;
        b++;
    }
    return lower((unsigned char)*a) - lower((unsigned char)*b);
}

static void sort_headers(const struct tn_sigv4_spec *spec, struct sorted *sorted)
{
    TN_CHECK(spec->header_count <= TN_SIGV4_HEADERS_MAX);
    for (uint32_t i = 0; i < spec->header_count; i++) {
        uint32_t at = i;
        for (; at > 0 && compare_names(spec->headers[i].name, sorted->items[at - 1]->name) < 0;
             at--) {
            sorted->items[at] = sorted->items[at - 1];
        }
        sorted->items[at] = &spec->headers[i];
    }
    sorted->count = spec->header_count;
}

static void add_text(struct tn_sha256 *sha, const char *text)
{
    tn_sha256_add(sha, tn_bytes_of(text));
}

static void add_name(struct tn_sha256 *sha, const char *name)
{
    for (; *name; name++) {
        unsigned char byte = lower((unsigned char)*name);
        tn_sha256_add(sha, (struct tn_bytes){&byte, 1});
    }
}

/* Without spaces at its ends, and with one where there are several. */
static void add_value(struct tn_sha256 *sha, const char *value)
{
    bool begun = false;
    bool space = false;
    for (; *value; value++) {
        if (*value == ' ' || *value == '\t') {
            space = begun;
            continue;
        }
        add_text(sha, space ? " " : "");
        tn_sha256_add(sha, (struct tn_bytes){(const unsigned char *)value, 1});
        begun = true;
        space = false;
    }
}

/* The hash of the canonical request, which is never in memory as a whole. */
static void hash_request(const struct tn_sigv4_spec *spec, const struct sorted *sorted,
                         unsigned char digest[TN_SHA256_SIZE])
{
    struct tn_sha256 sha;
    const char *const lines[] = {spec->method, spec->path, spec->query};
    tn_sha256_init(&sha);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        add_text(&sha, lines[i]);
        add_text(&sha, "\n");
    }
    for (uint32_t i = 0; i < sorted->count; i++) {
        add_name(&sha, sorted->items[i]->name);
        add_text(&sha, ":");
        add_value(&sha, sorted->items[i]->value);
        add_text(&sha, "\n");
    }
    for (uint32_t i = 0; i < sorted->count; i++) {
        add_text(&sha, i > 0 ? ";" : "\n");
        add_name(&sha, sorted->items[i]->name);
    }
    add_text(&sha, "\n");
    add_text(&sha, spec->payload);
    tn_sha256_finish(&sha, digest);
}

static void make_signature(const struct tn_sigv4_spec *spec, const char *request_hash,
                           char signature[TN_SIGV4_HASH_SIZE])
{
    unsigned char key[TN_SHA256_SIZE];
    struct hmac hmac;
    derive_day(spec, key);
    derive(key, tn_bytes_of(spec->region));
    derive(key, tn_bytes_of(spec->service));
    derive(key, tn_bytes_of(SCOPE_END));
    hmac_init(&hmac, (struct tn_bytes){key, sizeof key});
    add_text(&hmac.inner, ALGORITHM "\n");
    add_text(&hmac.inner, spec->date);
    add_text(&hmac.inner, "\n");
    tn_sha256_add(&hmac.inner, day_of(spec));
    const char *const rest[] = {
        "/", spec->region, "/", spec->service, "/", SCOPE_END, "\n", request_hash,
    };
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++) {
        add_text(&hmac.inner, rest[i]);
    }
    hmac_finish(&hmac, key);
    tn_sigv4_hex(key, signature);
}

void tn_sigv4_sign(const struct tn_sigv4_spec *spec, struct tn_buf *out)
{
    struct sorted sorted;
    unsigned char digest[TN_SHA256_SIZE];
    char hash[TN_SIGV4_HASH_SIZE];
    char signature[TN_SIGV4_HASH_SIZE];
    TN_CHECK(strlen(spec->date) == TN_SIGV4_DATE_SIZE - 1);
    sort_headers(spec, &sorted);
    hash_request(spec, &sorted, digest);
    tn_sigv4_hex(digest, hash);
    make_signature(spec, hash, signature);
    tn_buf_format(out, ALGORITHM " Credential=%s/%.*s/%s/%s/" SCOPE_END ", SignedHeaders=",
                  spec->access_key, DAY_SIZE, spec->date, spec->region, spec->service);
    for (uint32_t i = 0; i < sorted.count; i++) {
        tn_buf_text(out, i > 0 ? ";" : "");
        for (const char *name = sorted.items[i]->name; *name; name++) {
            tn_buf_byte(out, lower((unsigned char)*name));
        }
    }
    tn_buf_format(out, ", Signature=%s", signature);
}
