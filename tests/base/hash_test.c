/* Published vectors for what others define; spread for what is ours. */
#include "base/hash_sha256.h"

#include "check.h"
#include "random.h"

static void sha256_gives_the_vectors_of_fips_180(void)
{
    static const struct {
        const char *text;
        const char *hex;
    } vectors[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrl"
         "mno"
         "pqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    for (size_t i = 0; i < COUNT(vectors); i++) {
        unsigned char digest[32];
        tn_hash_sha256(tn_bytes_of(vectors[i].text), digest);
        char hex[65];
        for (size_t j = 0; j < sizeof digest; j++) {
            (void)snprintf(hex + 2 * j, 3, "%02x", digest[j]);
        }
        CHECK(strcmp(hex, vectors[i].hex) == 0);
    }
}

/* What the processor does is what plain C does, block by block and many at once. Where it can't,
 * plain C is all there is, and the vectors above are about that. */
static void sha256_is_the_same_by_the_processor_and_in_plain_c(void)
{
    static unsigned char data[40 * TN_SHA256_BLOCK + 1];
    uint64_t random = 5;
    for (int round = 0; round < 200; round++) {
        uint32_t plain[8];
        uint32_t native[8];
        size_t count = random_below(&random, 41);
        size_t shift = random_below(&random, 2); /* of any alignment */
        for (size_t i = 0; i < sizeof data; i++) {
            data[i] = (unsigned char)random_next(&random);
        }
        for (size_t i = 0; i < COUNT(plain); i++) {
            plain[i] = native[i] = (uint32_t)random_next(&random);
        }
        tn_sha256_blocks_plain(plain, data + shift, count);
        if (tn_sha256_is_native()) {
            tn_sha256_blocks_native(native, data + shift, count);
            CHECK(memcmp(plain, native, sizeof plain) == 0);
        }
    }
}

/* FIPS 180's first vector, in plain C whatever the processor knows. */
static void sha256_in_plain_c_gives_the_vector_of_fips_180(void)
{
    static const uint32_t digest[8] = {0xba7816bf, 0x8f01cfea, 0x414140de, 0x5dae2223,
                                       0xb00361a3, 0x96177a9c, 0xb410ff61, 0xf20015ad};
    unsigned char block[TN_SHA256_BLOCK] = {'a', 'b', 'c', 0x80, [63] = 24};
    struct tn_sha256 sha;
    tn_sha256_init(&sha);
    tn_sha256_blocks_plain(sha.state, block, 1);
    CHECK(memcmp(sha.state, digest, sizeof digest) == 0);
}

/* Every size around two blocks, cut into pieces of every size. */
static void sha256_of_pieces_is_that_of_the_whole(void)
{
    unsigned char data[140];
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (unsigned char)(i * 7);
    }
    for (size_t size = 0; size <= sizeof data; size++) {
        unsigned char whole[TN_SHA256_SIZE];
        tn_hash_sha256((struct tn_bytes){data, size}, whole);
        for (size_t piece = 1; piece <= size; piece++) {
            struct tn_sha256 sha;
            unsigned char digest[TN_SHA256_SIZE];
            tn_sha256_init(&sha);
            for (size_t at = 0; at < size; at += piece) {
                size_t rest = size - at;
                tn_sha256_add(&sha, (struct tn_bytes){data + at, piece < rest ? piece : rest});
            }
            tn_sha256_finish(&sha, digest);
            CHECK(memcmp(digest, whole, sizeof digest) == 0);
        }
    }
}

static void crc32_gives_its_check_value(void)
{
    CHECK(tn_hash_crc32(tn_bytes_of("123456789")) == 0xcbf43926U);
    CHECK(tn_hash_crc32(tn_bytes_of("")) == 0);
    CHECK(tn_hash_crc32(tn_bytes_of("The quick brown fox jumps over the lazy dog")) == 0x414fa339U);
}

/* From an index file that Java Paimon wrote: the BinaryRows of the INT keys 1, 2, 3. */
static void murmur_gives_what_java_paimon_wrote(void)
{
    static const uint32_t hashes[] = {0x5759f99e, 0x4fe4bbf0, 0xd206e547};
    for (unsigned char key = 1; key <= COUNT(hashes); key++) {
        const unsigned char row[16] = {[8] = key};
        CHECK((uint32_t)tn_hash_murmur((struct tn_bytes){row, sizeof row}) == hashes[key - 1]);
    }
}

/* Flips each bit of an input: about half of the 64 output bits change, and no two outputs agree. */
static void hash_64_changes_half_of_its_bits_with_one_of_the_input(void)
{
    for (size_t size = 1; size <= 40; size++) {
        unsigned char data[40] = {0};
        uint64_t base = tn_hash_64((struct tn_bytes){data, size}, 7);
        int changed = 0;
        for (size_t bit = 0; bit < size * 8; bit++) {
            data[bit / 8] ^= (unsigned char)(1U << bit % 8);
            uint64_t other = tn_hash_64((struct tn_bytes){data, size}, 7);
            data[bit / 8] ^= (unsigned char)(1U << bit % 8);
            CHECK(other != base);
            changed += __builtin_popcountll(other ^ base);
        }
        CHECK(changed > (int)size * 8 * 24 && changed < (int)size * 8 * 40);
    }
}

static void hash_64_depends_on_seed_and_length(void)
{
    static const unsigned char zeroes[16] = {0};
    struct tn_bytes eight = {zeroes, 8};
    struct tn_bytes nine = {zeroes, 9};
    CHECK(tn_hash_64(eight, 1) != tn_hash_64(nine, 1));
    CHECK(tn_hash_64(eight, 1) != tn_hash_64(eight, 2));
    struct tn_hash_128 both = tn_hash_128(eight);
    CHECK(both.high != both.low);
    struct tn_bytes none = {zeroes, 0};
    CHECK(tn_hash_64(none, 1) != tn_hash_64(none, 2));
    CHECK(tn_hash_64(none, 1) != tn_hash_64((struct tn_bytes){zeroes, 1}, 1));
    both = tn_hash_128(none);
    CHECK(both.high != both.low);
}

static void a_hash_of_128_bits_is_text_and_back(void)
{
    static const struct tn_hash_128 hashes[] = {{0, 0}, {1, UINT64_MAX}, {0xabcd000000000000U, 7}};
    for (size_t i = 0; i < COUNT(hashes); i++) {
        char text[TN_HASH_128_DIGITS + 1];
        struct tn_hash_128 back = {0};
        tn_hash_128_format(hashes[i], text);
        CHECK(strlen(text) == TN_HASH_128_DIGITS && tn_hash_128_parse(text, &back));
        CHECK(back.high == hashes[i].high && back.low == hashes[i].low);
        text[5] = 'g';
        CHECK(!tn_hash_128_parse(text, &back));
        text[5] = 0;
        CHECK(!tn_hash_128_parse(text, &back));
    }
}

static const struct test tests[] = {
    TEST(sha256_gives_the_vectors_of_fips_180),
    TEST(sha256_is_the_same_by_the_processor_and_in_plain_c),
    TEST(sha256_in_plain_c_gives_the_vector_of_fips_180),
    TEST(sha256_of_pieces_is_that_of_the_whole),
    TEST(crc32_gives_its_check_value),
    TEST(murmur_gives_what_java_paimon_wrote),
    TEST(hash_64_changes_half_of_its_bits_with_one_of_the_input),
    TEST(hash_64_depends_on_seed_and_length),
    TEST(a_hash_of_128_bits_is_text_and_back),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
