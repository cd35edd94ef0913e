/* ChaCha20 in mbed TLS's place: what RFC 8439 says of it, whatever the size and however it is cut.
 */
#include <mbedtls/chacha20.h>
#include <mbedtls/chachapoly.h>

#include "base/bytes.h"
#include "check.h"
#include "given.h"
#include "io/tls_private.h"
#include "random.h"

enum { SIZE_MAX_HERE = 3000, BLOCK = 64 };

static uint32_t rotate(uint32_t value, int bits)
{
    return value << bits | value >> (32 - bits);
}

static void quarter(uint32_t *x, int a, int b, int c, int d)
{
    x[a] += x[b], x[d] = rotate(x[d] ^ x[a], 16);
    x[c] += x[d], x[b] = rotate(x[b] ^ x[c], 12);
    x[a] += x[b], x[d] = rotate(x[d] ^ x[a], 8);
    x[c] += x[d], x[b] = rotate(x[b] ^ x[c], 7);
}

/* Source: RFC 8439, 2.3. */
static void block_of(const unsigned char key[32], const unsigned char nonce[12], uint32_t counter,
                     unsigned char out[BLOCK])
{
    uint32_t first[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
    uint32_t x[16];
    for (int i = 0; i < 8; i++) {
        first[4 + i] = tn_load_u32(key + 4 * i);
    }
    first[12] = counter;
    for (int i = 0; i < 3; i++) {
        first[13 + i] = tn_load_u32(nonce + 4 * i);
    }
    memcpy(x, first, sizeof x);
    for (int i = 0; i < 10; i++) {
        quarter(x, 0, 4, 8, 12), quarter(x, 1, 5, 9, 13);
        quarter(x, 2, 6, 10, 14), quarter(x, 3, 7, 11, 15);
        quarter(x, 0, 5, 10, 15), quarter(x, 1, 6, 11, 12);
        quarter(x, 2, 7, 8, 13), quarter(x, 3, 4, 9, 14);
    }
    for (int i = 0; i < 16; i++) {
        tn_store_u32(out + 4 * i, x[i] + first[i]);
    }
}

static void draw_bytes(uint64_t *random, unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (unsigned char)random_next(random);
    }
}

/* Texts of random sizes in pieces of random sizes, in place or not, from counters that wrap. */
static void stream_is_that_of_the_rfc(void)
{
    static unsigned char in[SIZE_MAX_HERE];
    static unsigned char out[SIZE_MAX_HERE];
    uint64_t random = given_number("SEED", 1);
    for (int round = 0; round < 400; round++) {
        unsigned char key[32];
        unsigned char nonce[12];
        mbedtls_chacha20_context context;
        size_t size = random_below(&random, SIZE_MAX_HERE + 1);
        uint32_t counter = random_below(&random, 4) == 0 ? UINT32_MAX - random_below(&random, 20)
                                                         : random_below(&random, 9);
        bool in_place = random_below(&random, 2) == 0;
        draw_bytes(&random, key, sizeof key);
        draw_bytes(&random, nonce, sizeof nonce);
        draw_bytes(&random, in, size);
        memcpy(out, in, size);
        mbedtls_chacha20_init(&context);
        CHECK(mbedtls_chacha20_setkey(&context, key) == 0);
        CHECK(mbedtls_chacha20_starts(&context, nonce, counter) == 0);
        for (size_t at = 0; at < size;) {
            size_t piece = 1 + random_below(&random, random_below(&random, 2) == 0 ? 100 : 1500);
            piece = piece < size - at ? piece : size - at;
            const unsigned char *from = in_place ? out + at : in + at;
            CHECK(mbedtls_chacha20_update(&context, piece, from, out + at) == 0);
            at += piece;
        }
        mbedtls_chacha20_free(&context);
        for (size_t at = 0; at < size; at++) {
            static unsigned char block[BLOCK];
            if (at % BLOCK == 0) {
                block_of(key, nonce, counter + (uint32_t)(at / BLOCK), block);
            }
            CHECK(out[at] == (in[at] ^ block[at % BLOCK]));
        }
    }
}

/* mbed TLS's own test of the cipher that TLS uses, on top of it. */
static void mbed_tls_finds_it_right(void)
{
    CHECK(tn_tls_chacha_is_right());
    CHECK(mbedtls_chacha20_self_test(0) == 0);
    CHECK(mbedtls_chachapoly_self_test(0) == 0);
}

static const struct test tests[] = {
    TEST(stream_is_that_of_the_rfc),
    TEST(mbed_tls_finds_it_right),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
