#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"

static uint32_t rotate_32(uint32_t value, int bits)
{
    return value << bits | value >> (32 - bits);
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

bool tn_hash_is_secret(struct tn_bytes shown, struct tn_bytes secret)
{
    unsigned char a[TN_SHA256_SIZE];
    unsigned char b[TN_SHA256_SIZE];
    unsigned char differs = 0;
    tn_hash_sha256(shown, a);
    tn_hash_sha256(secret, b);
    for (int i = 0; i < TN_SHA256_SIZE; i++) {
        differs |= a[i] ^ b[i];
    }
    return differs == 0;
}
