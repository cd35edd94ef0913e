/* hash: the hashes that the format names, and one for our own tables. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

/* Murmur3-32 over whole little-endian words, seed 42: Paimon's bucket hash. `size` is a multiple of
 * 4. Source: Paimon, MurmurHashUtils.hashBytesByWords. */
int32_t tn_hash_murmur(struct tn_bytes words);

/* CRC-32, zlib's polynomial: deletion vectors, avro's snappy blocks. */
uint32_t tn_hash_crc32(struct tn_bytes bytes);

/* 64 bits, fast: for tables in memory, and for the identity of an input file. The same on every
 * machine. */
uint64_t tn_hash_64(struct tn_bytes bytes, uint64_t seed);

struct tn_hash_128 {
    uint64_t high;
    uint64_t low;
};

/* 128 bits: stands for a file's identity in a commit. Two 64-bit passes with different seeds. */
struct tn_hash_128 tn_hash_128(struct tn_bytes bytes);

/* As hexadecimal text. The reader takes exactly so many lower-case digits, whatever follows. */
enum { TN_HASH_128_DIGITS = 32 };
void tn_hash_128_format(struct tn_hash_128 hash, char text[TN_HASH_128_DIGITS + 1]);
bool tn_hash_128_parse(const char *text, struct tn_hash_128 *hash);
static inline bool tn_hash_128_equal(struct tn_hash_128 a, struct tn_hash_128 b)
{
    return a.high == b.high && a.low == b.low;
}

/* SHA-256: what a file's identity and a script's name are made of. */
enum { TN_SHA256_SIZE = 32, TN_SHA256_BLOCK = 64 };
void tn_hash_sha256(struct tn_bytes bytes, unsigned char digest[TN_SHA256_SIZE]);

/* Whether it is the secret. Digests are compared, so that the time it takes says nothing of it. */
bool tn_hash_is_secret(struct tn_bytes shown, struct tn_bytes secret);

/* The same for bytes that come in pieces: init, add*, finish. */
struct tn_sha256 {
    uint32_t state[8];
    uint64_t size;                        /* of all that was added */
    unsigned char block[TN_SHA256_BLOCK]; /* size % TN_SHA256_BLOCK bytes wait here */
};

void tn_sha256_init(struct tn_sha256 *sha);
void tn_sha256_add(struct tn_sha256 *sha, struct tn_bytes bytes);
void tn_sha256_finish(struct tn_sha256 *sha, unsigned char digest[TN_SHA256_SIZE]);
