#include "base/hash_sha256.h"

#include "base/check.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>
#include <stdatomic.h>

#define NATIVE __attribute__((target("sha,sse4.1,ssse3")))

typedef __m128i words; /* four */

enum { UNKNOWN, NO, YES };

/* Leaf 7: EBX bit 29 is SHA; leaf 1: ECX bits 9 and 19 are SSSE3 and SSE4.1. Source: Intel,
 * Software Developer's Manual, CPUID. */
static bool ask_processor(void)
{
    unsigned a;
    unsigned b;
    unsigned c;
    unsigned d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1U << 9) || !(c & 1U << 19)) {
        return false;
    }
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & 1U << 29);
}

bool tn_sha256_is_native(void)
{
    static _Atomic int known;
    int now = atomic_load_explicit(&known, memory_order_relaxed);
    if (now == UNKNOWN) {
        now = ask_processor() ? YES : NO;
        atomic_store_explicit(&known, now, memory_order_relaxed);
    }
    return now == YES;
}

/* As the instructions want the state: f e b a and h g d c, from the lowest lane. */
struct halves {
    words one; /* abef */
    words two; /* cdgh */
};

static NATIVE inline words load(const void *from)
{
    return _mm_loadu_si128(from);
}

/* Four big-endian words. */
static NATIVE inline words load_words(const unsigned char *from)
{
    const words order = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    return _mm_shuffle_epi8(load(from), order);
}

static NATIVE inline void turn_four(struct halves *s, words four, const uint32_t *constants)
{
    words added = _mm_add_epi32(four, load(constants));
    s->two = _mm_sha256rnds2_epu32(s->two, s->one, added);
    s->one = _mm_sha256rnds2_epu32(s->one, s->two, _mm_shuffle_epi32(added, 0x0e));
}

/* The next four words, from the sixteen before. */
static NATIVE inline words next_words(words a, words b, words c, words d)
{
    words part = _mm_add_epi32(_mm_sha256msg1_epu32(a, b), _mm_alignr_epi8(d, c, 4));
    return _mm_sha256msg2_epu32(part, d);
}

static NATIVE inline words add(words a, words b)
{
    return _mm_add_epi32(a, b);
}

static NATIVE inline struct halves of_state(const uint32_t state[8])
{
    words low = _mm_shuffle_epi32(load(state), 0xb1);      /* b a d c */
    words high = _mm_shuffle_epi32(load(state + 4), 0x1b); /* h g f e */
    return (struct halves){_mm_alignr_epi8(low, high, 8), _mm_blend_epi16(high, low, 0xf0)};
}

static NATIVE inline void to_state(const struct halves *s, uint32_t state[8])
{
    words low = _mm_shuffle_epi32(s->one, 0x1b);  /* a b e f */
    words high = _mm_shuffle_epi32(s->two, 0xb1); /* g h c d */
    _mm_storeu_si128((void *)state, _mm_blend_epi16(low, high, 0xf0));
    _mm_storeu_si128((void *)(state + 4), _mm_alignr_epi8(high, low, 8));
}

#elif defined(__aarch64__)

#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>

#define NATIVE __attribute__((target("+crypto"))) /* SHA is a part of that */

typedef uint32x4_t words; /* four */

bool tn_sha256_is_native(void)
{
    return getauxval(AT_HWCAP) & HWCAP_SHA2;
}

struct halves {
    words one; /* abcd */
    words two; /* efgh */
};

static NATIVE inline words load_words(const unsigned char *from)
{
    return vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(from)));
}

static NATIVE inline void turn_four(struct halves *s, words four, const uint32_t *constants)
{
    words added = vaddq_u32(four, vld1q_u32(constants));
    words one = s->one;
    s->one = vsha256hq_u32(one, s->two, added);
    s->two = vsha256h2q_u32(s->two, one, added);
}

/* The next four words, from the sixteen before. */
static NATIVE inline words next_words(words a, words b, words c, words d)
{
    return vsha256su1q_u32(vsha256su0q_u32(a, b), c, d);
}

static NATIVE inline words add(words a, words b)
{
    return vaddq_u32(a, b);
}

static NATIVE inline struct halves of_state(const uint32_t state[8])
{
    return (struct halves){vld1q_u32(state), vld1q_u32(state + 4)};
}

static NATIVE inline void to_state(const struct halves *s, uint32_t state[8])
{
    vst1q_u32(state, s->one);
    vst1q_u32(state + 4, s->two);
}

#else

bool tn_sha256_is_native(void)
{
    return false;
}

void tn_sha256_blocks_native(uint32_t state[8], const unsigned char *data, size_t count)
{
    (void)state;
    (void)data;
    (void)count;
    TN_CHECK(false);
}

#endif

#if defined(NATIVE)

static NATIVE void add_block(struct halves *s, const unsigned char *data)
{
    const uint32_t *k = tn_sha256_constants;
    const struct halves before = *s;
    words a = load_words(data);
    words b = load_words(data + 16);
    words c = load_words(data + 32);
    words d = load_words(data + 48);
    for (int i = 0;; i += 16) {
        turn_four(s, a, k + i);
        turn_four(s, b, k + i + 4);
        turn_four(s, c, k + i + 8);
        turn_four(s, d, k + i + 12);
        if (i == 48) {
            break;
        }
        a = next_words(a, b, c, d);
        b = next_words(b, c, d, a);
        c = next_words(c, d, a, b);
        d = next_words(d, a, b, c);
    }
    s->one = add(s->one, before.one);
    s->two = add(s->two, before.two);
}

NATIVE void tn_sha256_blocks_native(uint32_t state[8], const unsigned char *data, size_t count)
{
    struct halves s = of_state(state);
    for (size_t i = 0; i < count; i++) {
        add_block(&s, data + i * TN_SHA256_BLOCK);
    }
    to_state(&s, state);
}

#endif
