/* ChaCha20 for mbed TLS, several blocks at a time: its own goes word by word, and was most of what
 * an upload by TLS cost. In the archives that we link its function is a weak symbol (Makefile), so
 * this one takes its place; where it would be slower, it isn't here. */
#include <mbedtls/chacha20.h>

#include "base/bytes.h"
#include "base/check.h"
#include "io/tls_private.h"

#if defined(__x86_64__) || defined(__aarch64__)

enum {
    WORDS = 16, /* of a block; RFC 8439, 2.3 */
    BLOCK = 64,
    COUNTER = 12,
#if defined(__x86_64__)
    LANES = 8, /* AVX2's, or twice SSE2's */
#else
    LANES = 4,
#endif
};

/* One word of each block. */
typedef uint32_t lanes __attribute__((vector_size(LANES * sizeof(uint32_t))));

#define INLINE static inline __attribute__((always_inline))

INLINE void step(lanes *a, const lanes *b, lanes *d, int bits)
{
    *a += *b;
    *d ^= *a;
    *d = *d << bits | *d >> (32 - bits);
}

INLINE void quarter(lanes *a, lanes *b, lanes *c, lanes *d)
{
    step(a, b, d, 16);
    step(c, d, b, 12);
    step(a, b, d, 8);
    step(c, d, b, 7);
}

INLINE void add_first(const uint32_t state[WORDS], lanes x[WORDS])
{
    for (int i = 0; i < WORDS; i++) {
        x[i] += state[i];
    }
    for (uint32_t lane = 0; lane < LANES; lane++) {
        x[COUNTER][lane] += lane;
    }
}

/* What a lane has of all words is a block. */
INLINE void make_blocks(const uint32_t state[WORDS], uint32_t words[WORDS][LANES])
{
    lanes x[WORDS];
    memset(x, 0, sizeof x);
    add_first(state, x);
    for (int i = 0; i < 10; i++) {
        quarter(&x[0], &x[4], &x[8], &x[12]);
        quarter(&x[1], &x[5], &x[9], &x[13]);
        quarter(&x[2], &x[6], &x[10], &x[14]);
        quarter(&x[3], &x[7], &x[11], &x[15]);
        quarter(&x[0], &x[5], &x[10], &x[15]);
        quarter(&x[1], &x[6], &x[11], &x[12]);
        quarter(&x[2], &x[7], &x[8], &x[13]);
        quarter(&x[3], &x[4], &x[9], &x[14]);
    }
    add_first(state, x);
    memcpy(words, x, sizeof x);
}

static __attribute__((noinline)) void make_blocks_plain(const uint32_t state[WORDS],
                                                        uint32_t words[WORDS][LANES])
{
    make_blocks(state, words);
}

#if defined(__x86_64__)

static __attribute__((target("avx2"))) void make_blocks_avx2(const uint32_t state[WORDS],
                                                             uint32_t words[WORDS][LANES])
{
    make_blocks(state, words);
}

static void make_any(const uint32_t state[WORDS], uint32_t words[WORDS][LANES])
{
    if (__builtin_cpu_supports("avx2")) {
        make_blocks_avx2(state, words);
    } else {
        make_blocks_plain(state, words);
    }
}

#else

static void make_any(const uint32_t state[WORDS], uint32_t words[WORDS][LANES])
{
    make_blocks_plain(state, words);
}

#endif

static void mix_block(const unsigned char *in, unsigned char *out, uint32_t words[WORDS][LANES],
                      size_t lane)
{
    for (size_t i = 0; i < WORDS; i++) {
        tn_store_u32(out + 4 * i, tn_load_u32(in + 4 * i) ^ words[i][lane]);
    }
}

/* What is left of a block that was begun. */
static size_t mix_rest(mbedtls_chacha20_context *c, size_t size, const unsigned char *in,
                       unsigned char *out)
{
    size_t done = 0;
    for (; done < size && c->keystream_bytes_used < BLOCK; done++) {
        out[done] = in[done] ^ c->keystream8[c->keystream_bytes_used++];
    }
    return done;
}

static void begin_block(mbedtls_chacha20_context *c, uint32_t words[WORDS][LANES], size_t lane)
{
    static const unsigned char zeroes[BLOCK];
    mix_block(zeroes, c->keystream8, words, lane);
    c->keystream_bytes_used = 0;
}

int mbedtls_chacha20_update(mbedtls_chacha20_context *c, size_t size, const unsigned char *in,
                            unsigned char *out)
{
    size_t at = mix_rest(c, size, in, out);
    while (at < size) {
        uint32_t words[WORDS][LANES];
        size_t lane = 0;
        make_any(c->state, words);
        for (; lane < LANES && size - at >= BLOCK; lane++, at += BLOCK) {
            mix_block(in + at, out + at, words, lane);
        }
        if (lane < LANES && at < size) {
            begin_block(c, words, lane++);
            at += mix_rest(c, size - at, in + at, out + at);
        }
        c->state[COUNTER] += (uint32_t)lane;
    }
    return 0;
}

#endif

/* RFC 8439, 2.4.2: the key stream behind its first 64 bytes. It is asked for at boot, also so that
 * this file is linked. */
bool tn_tls_chacha_is_right(void)
{
    static const unsigned char nonce[12] = {0, 0, 0, 0, 0, 0, 0, 0x4a, 0, 0, 0, 0};
    static const unsigned char stream[8] = {0x22, 0x4f, 0x51, 0xf3, 0x40, 0x1b, 0xd9, 0xe1};
    static const unsigned char zeroes[8];
    unsigned char key[32];
    unsigned char out[sizeof stream];
    mbedtls_chacha20_context context;
    for (size_t i = 0; i < sizeof key; i++) {
        key[i] = (unsigned char)i;
    }
    mbedtls_chacha20_init(&context);
    int code = mbedtls_chacha20_setkey(&context, key);
    code = code == 0 ? mbedtls_chacha20_starts(&context, nonce, 1) : code;
    code = code == 0 ? mbedtls_chacha20_update(&context, sizeof out, zeroes, out) : code;
    mbedtls_chacha20_free(&context);
    return code == 0 && memcmp(out, stream, sizeof out) == 0;
}
