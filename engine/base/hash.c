#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"

static uint32_t rotate_32(uint32_t value, int bits)
{
    return value << bits | value >> (32 - bits);
}

static uint32_t rotate_right_32(uint32_t value, int bits)
{
    return value >> bits | value << (32 - bits);
}

static uint64_t rotate_64(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

int32_t tn_hash_murmur(struct tn_bytes words)
{
    TN_CHECK(words.size % 4 == 0);
    uint32_t hash = 42; /* Paimon: MurmurHashUtils.DEFAULT_SEED */
    for (size_t i = 0; i < words.size; i += 4) {
        uint32_t word = tn_load_u32(words.data + i) * 0xcc9e2d51U;
        hash ^= rotate_32(word, 15) * 0x1b873593U;
        hash = rotate_32(hash, 13) * 5 + 0xe6546b64U;
    }
    hash ^= (uint32_t)words.size;
    hash = (hash ^ hash >> 16) * 0x85ebca6bU;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35U;
    return (int32_t)(hash ^ hash >> 16);
}

/* Half a byte a step: 64 bytes of table rather than 1 KiB. */
uint32_t tn_hash_crc32(struct tn_bytes bytes)
{
    static const uint32_t table[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
        0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
    };
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < bytes.size; i++) {
        crc ^= bytes.data[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

/* Murmur3's 64-bit finisher: every bit of the input changes half of the output's. */
static uint64_t mix_64(uint64_t value)
{
    value = (value ^ value >> 33) * 0xff51afd7ed558ccdU;
    value = (value ^ value >> 33) * 0xc4ceb9fe1a85ec53U;
    return value ^ value >> 33;
}

/* The seed goes into each word, not only into the start: else two inputs that collide under one
 * seed could collide under all, and tn_hash_128 would be no better than 64 bits. */
uint64_t tn_hash_64(struct tn_bytes bytes, uint64_t seed)
{
    uint64_t hash = mix_64(seed ^ bytes.size * 0x9e3779b97f4a7c15U);
    size_t i = 0;
    for (; bytes.size - i >= 8; i += 8) {
        hash ^= mix_64(tn_load_u64(bytes.data + i) + seed);
        hash = rotate_64(hash, 27) * 0x9fb21c651e98df25U + 0x52dce729U;
    }
    uint64_t last = 0;
    for (int shift = 0; i < bytes.size; i++, shift += 8) {
        last |= (uint64_t)bytes.data[i] << shift;
    }
    /* Of no byte both are the seed's, and would leave nothing of it. */
    return mix_64(bytes.size > 0 ? hash ^ mix_64(last + seed) : hash);
}

struct tn_hash_128 tn_hash_128(struct tn_bytes bytes)
{
    return (struct tn_hash_128){
        .high = tn_hash_64(bytes, 0x243f6a8885a308d3U), /* digits of pi */
        .low = tn_hash_64(bytes, 0x13198a2e03707344U),
    };
}

static const uint32_t sha256_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static void sha256_expand(uint32_t word[64], const unsigned char block[64])
{
    for (size_t i = 0; i < 16; i++) {
        word[i] = tn_load_u32_be(block + 4 * i);
    }
    for (int i = 16; i < 64; i++) {
        uint32_t a = word[i - 15];
        uint32_t b = word[i - 2];
        uint32_t small_0 = rotate_right_32(a, 7) ^ rotate_right_32(a, 18) ^ a >> 3;
        uint32_t small_1 = rotate_right_32(b, 17) ^ rotate_right_32(b, 19) ^ b >> 10;
        word[i] = word[i - 16] + small_0 + word[i - 7] + small_1;
    }
}

/* Source: FIPS 180-4, 6.2.2; s[0..7] are its a..h. */
static void sha256_block(uint32_t state[8], const unsigned char block[64])
{
    uint32_t word[64];
    sha256_expand(word, block);
    uint32_t s[8];
    memcpy(s, state, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t big_1 =
            rotate_right_32(s[4], 6) ^ rotate_right_32(s[4], 11) ^ rotate_right_32(s[4], 25);
        uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        uint32_t one = s[7] + big_1 + choice + sha256_k[i] + word[i];
        uint32_t big_0 =
            rotate_right_32(s[0], 2) ^ rotate_right_32(s[0], 13) ^ rotate_right_32(s[0], 22);
        uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        memmove(s + 1, s, 7 * sizeof s[0]);
        s[4] += one;
        s[0] = one + big_0 + majority;
    }
    for (int i = 0; i < 8; i++) {
        state[i] += s[i];
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
            sha256_block(sha->state, bytes.data + at);
            at += TN_SHA256_BLOCK;
            continue;
        }
        piece = piece < rest ? piece : rest;
        memcpy(sha->block + waiting, bytes.data + at, piece);
        at += piece;
        waiting = (waiting + piece) % TN_SHA256_BLOCK;
        if (waiting == 0) {
            sha256_block(sha->state, sha->block);
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

void tn_hash_128_format(struct tn_hash_128 hash, char text[TN_HASH_128_DIGITS + 1])
{
    (void)snprintf(text, TN_HASH_128_DIGITS + 1, "%016" PRIx64 "%016" PRIx64, hash.high, hash.low);
}

bool tn_hash_128_parse(const char *text, struct tn_hash_128 *hash)
{
    char half[TN_HASH_128_DIGITS / 2 + 1] = "";
    if (strspn(text, "0123456789abcdef") < TN_HASH_128_DIGITS) {
        return false;
    }
    memcpy(half, text, sizeof half - 1);
    hash->high = strtoull(half, NULL, 16);
    memcpy(half, text + sizeof half - 1, sizeof half - 1);
    hash->low = strtoull(half, NULL, 16);
    return true;
}
