#include "base/hash_sha256.h"

const uint32_t tn_sha256_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate_right(uint32_t value, int bits)
{
    return value >> bits | value << (32 - bits);
}

static void expand(uint32_t word[64], const unsigned char block[TN_SHA256_BLOCK])
{
    for (size_t i = 0; i < 16; i++) {
        word[i] = tn_load_u32_be(block + 4 * i);
    }
    for (int i = 16; i < 64; i++) {
        uint32_t a = word[i - 15];
        uint32_t b = word[i - 2];
        uint32_t small_0 = rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3;
        uint32_t small_1 = rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10;
        word[i] = word[i - 16] + small_0 + word[i - 7] + small_1;
    }
}

/* One of the 64 rounds: what are a..h for it are h, a..g for the next. */
static inline void turn(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e, uint32_t f,
                        uint32_t g, uint32_t *h, uint32_t word)
{
    uint32_t big_1 = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25);
    uint32_t one = *h + big_1 + ((e & f) ^ (~e & g)) + word;
    uint32_t big_0 = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);
    *d += one;
    *h = one + big_0 + ((a & b) ^ (a & c) ^ (b & c));
}

/* Eight at a time, so that nothing moves. Source: FIPS 180-4, 6.2.2. */
static void add_block(uint32_t state[8], const unsigned char block[TN_SHA256_BLOCK])
{
    const uint32_t *k = tn_sha256_constants;
    uint32_t w[64];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    expand(w, block);
    for (int i = 0; i < 64; i += 8) {
        turn(a, b, c, &d, e, f, g, &h, k[i] + w[i]);
        turn(h, a, b, &c, d, e, f, &g, k[i + 1] + w[i + 1]);
        turn(g, h, a, &b, c, d, e, &f, k[i + 2] + w[i + 2]);
        turn(f, g, h, &a, b, c, d, &e, k[i + 3] + w[i + 3]);
        turn(e, f, g, &h, a, b, c, &d, k[i + 4] + w[i + 4]);
        turn(d, e, f, &g, h, a, b, &c, k[i + 5] + w[i + 5]);
        turn(c, d, e, &f, g, h, a, &b, k[i + 6] + w[i + 6]);
        turn(b, c, d, &e, f, g, h, &a, k[i + 7] + w[i + 7]);
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
}

void tn_sha256_blocks_plain(uint32_t state[8], const unsigned char *data, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        add_block(state, data + i * TN_SHA256_BLOCK);
    }
}

static void add_blocks(uint32_t state[8], const unsigned char *data, size_t count)
{
    if (tn_sha256_is_native()) {
        tn_sha256_blocks_native(state, data, count);
    } else {
        tn_sha256_blocks_plain(state, data, count);
    }
}

void tn_sha256_init(struct tn_sha256 *sha)
{
    *sha = (struct tn_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                        0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void tn_sha256_add(struct tn_sha256 *sha, struct tn_bytes bytes)
{
    size_t waiting = (size_t)(sha->size % TN_SHA256_BLOCK);
    sha->size += bytes.size;
    for (size_t at = 0; at < bytes.size;) {
        size_t rest = bytes.size - at;
        size_t piece = TN_SHA256_BLOCK - waiting;
        if (waiting == 0 && rest >= TN_SHA256_BLOCK) {
            size_t count = rest / TN_SHA256_BLOCK;
            add_blocks(sha->state, bytes.data + at, count);
            at += count * TN_SHA256_BLOCK;
            continue;
        }
        piece = piece < rest ? piece : rest;
        memcpy(sha->block + waiting, bytes.data + at, piece);
        at += piece;
        waiting = (waiting + piece) % TN_SHA256_BLOCK;
        if (waiting == 0) {
            add_blocks(sha->state, sha->block, 1);
        }
    }
}

/* The rest, a one bit, zeroes, and the size in bits: one block or two. */
void tn_sha256_finish(struct tn_sha256 *sha, unsigned char digest[TN_SHA256_SIZE])
{
    unsigned char tail[2 * TN_SHA256_BLOCK] = {0x80};
    size_t waiting = (size_t)(sha->size % TN_SHA256_BLOCK);
    uint64_t bits = sha->size * 8;
    size_t size = (waiting < 56 ? TN_SHA256_BLOCK : 2 * TN_SHA256_BLOCK) - waiting;
    tn_store_u32_be(tail + size - 8, (uint32_t)(bits >> 32));
    tn_store_u32_be(tail + size - 4, (uint32_t)bits);
    tn_sha256_add(sha, (struct tn_bytes){tail, size});
    for (size_t i = 0; i < 8; i++) {
        tn_store_u32_be(digest + 4 * i, sha->state[i]);
    }
}

void tn_hash_sha256(struct tn_bytes bytes, unsigned char digest[TN_SHA256_SIZE])
{
    struct tn_sha256 sha;
    tn_sha256_init(&sha);
    tn_sha256_add(&sha, bytes);
    tn_sha256_finish(&sha, digest);
}
