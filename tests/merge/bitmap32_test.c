/* Unions of random sets against plain arrays of bits, with every form of container; and bytes that
 * are no bitmap. */
#include "merge/bitmap32.h"

#include "check.h"
#include "random.h"

enum { KEYS = 6, ROUNDS = 60, BUF_SIZE = 1 << 18 };

/* The numbers of a few containers; key i stands for the high bits 7 * i. */
struct set {
    unsigned char bits[KEYS][8192];
};

static bool has(const struct set *set, uint32_t key, uint32_t low)
{
    return set->bits[key][low / 8] >> (low % 8) & 1;
}

static void add_run(struct set *set, uint32_t key, uint32_t from, uint32_t count)
{
    for (uint32_t i = from; i < from + count && i < 65536; i++) {
        set->bits[key][i / 8] = (unsigned char)(set->bits[key][i / 8] | 1U << (i % 8));
    }
}

static void fill(struct set *set, uint64_t *seed)
{
    static const uint32_t counts[] = {0, 1, 5, 4000, 30000};
    memset(set, 0, sizeof *set);
    for (uint32_t key = 0; key < KEYS; key++) {
        uint32_t count = counts[random_below(seed, COUNT(counts))];
        for (uint32_t i = 0; i < count; i++) {
            add_run(set, key, random_below(seed, 65536), 1);
        }
        if (random_below(seed, 3) == 0) {
            add_run(set, key, random_below(seed, 65536), random_below(seed, 9000));
        }
    }
}

static uint32_t count_of(const struct set *set, uint32_t key)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < 65536; i++) {
        count += has(set, key, i);
    }
    return count;
}

static void put16(struct tn_buf *buf, uint32_t value)
{
    tn_buf_byte(buf, (unsigned char)value);
    tn_buf_byte(buf, (unsigned char)(value >> 8));
}

static void put32(struct tn_buf *buf, uint32_t value)
{
    put16(buf, value);
    put16(buf, value >> 16);
}

static void put_container(struct tn_buf *buf, const struct set *set, uint32_t key, bool runs)
{
    size_t count_at = buf->size;
    uint32_t run_count = 0;
    if (!runs && count_of(set, key) > 4096) {
        tn_buf_append(buf, set->bits[key], 8192);
        return;
    }
    if (runs) {
        put16(buf, 0);
    }
    for (uint32_t i = 0; i < 65536; i++) {
        if (!has(set, key, i)) {
            continue;
        }
        put16(buf, i);
        uint32_t start = i;
        while (runs && i + 1 < 65536 && has(set, key, i + 1)) {
            i++;
        }
        if (runs) {
            put16(buf, i - start);
            run_count++;
        }
    }
    if (runs) {
        tn_store_u16(buf->data + count_at, (uint16_t)run_count);
    }
}

/* With runs: of every second container. */
static void encode(const struct set *set, bool with_runs, struct tn_buf *buf)
{
    uint32_t keys[KEYS];
    uint32_t count = 0;
    for (uint32_t key = 0; key < KEYS; key++) {
        keys[count] = key;
        count += count_of(set, key) > 0;
    }
    with_runs = with_runs && count > 0;
    buf->size = 0;
    put32(buf, with_runs ? 12347 | (count - 1) << 16 : 12346);
    if (with_runs) {
        tn_buf_byte(buf, 0xaa);
    } else {
        put32(buf, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        put16(buf, 7 * keys[i]);
        put16(buf, count_of(set, keys[i]) - 1);
    }
    size_t offsets = buf->size;
    bool has_offsets = !with_runs || count >= 4;
    for (uint32_t i = 0; i < count && has_offsets; i++) {
        put32(buf, 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (has_offsets) {
            tn_store_u32(buf->data + offsets + 4 * (size_t)i, (uint32_t)buf->size);
        }
        put_container(buf, set, keys[i], with_runs && i % 2 == 1);
    }
    CHECK(!buf->overflow);
}

static unsigned char memory[4][BUF_SIZE];

static void unions_have_the_numbers_of_both(void)
{
    static struct set a;
    static struct set b;
    uint64_t seed = 3;
    for (int round = 0; round < ROUNDS; round++) {
        struct tn_buf buf[4];
        for (int i = 0; i < 4; i++) {
            tn_buf_init(&buf[i], memory[i], BUF_SIZE);
        }
        fill(&a, &seed);
        fill(&b, &seed);
        encode(&a, round % 2, &buf[0]);
        encode(&b, round % 3 == 0, &buf[1]);
        tn_buf_text(&buf[3], "before");
        CHECK(tn_bitmap32_union(tn_buf_bytes(&buf[0]), tn_buf_bytes(&buf[1]), &buf[3]));
        for (uint32_t key = 0; key < KEYS; key++) {
            for (size_t i = 0; i < 8192; i++) {
                a.bits[key][i] |= b.bits[key][i];
            }
        }
        encode(&a, false, &buf[2]);
        CHECK(!buf[3].overflow && buf[3].size == buf[2].size + 6);
        CHECK(memcmp(buf[3].data + 6, buf[2].data, buf[2].size) == 0);
    }
}

/* Cut anywhere, or with a byte changed: refused, or some other set; and never read past the end. */
static void damaged_bitmaps_are_refused_or_read_within_bounds(void)
{
    static struct set set;
    uint64_t seed = 4;
    struct tn_buf whole;
    struct tn_buf out;
    tn_buf_init(&whole, memory[0], BUF_SIZE);
    memset(&set, 0, sizeof set);
    for (uint32_t key = 0; key < KEYS; key++) {
        add_run(&set, key, 100 * key, 3 + key);
        add_run(&set, key, 60000, 1);
    }
    for (int runs = 0; runs < 2; runs++) {
        encode(&set, runs, &whole);
        for (size_t size = 0; size <= whole.size; size++) {
            unsigned char *cut = malloc(size + 1);
            memcpy(cut, whole.data, size);
            tn_buf_init(&out, memory[1], BUF_SIZE);
            bool good = tn_bitmap32_union((struct tn_bytes){cut, size}, tn_buf_bytes(&whole), &out);
            CHECK(good == (size == whole.size));
            if (size == whole.size) {
                for (int i = 0; i < 20000; i++) {
                    memcpy(cut, whole.data, size);
                    cut[random_below(&seed, (uint32_t)size)] = (unsigned char)random_next(&seed);
                    tn_buf_init(&out, memory[1], 300);
                    (void)tn_bitmap32_union(tn_buf_bytes(&whole), (struct tn_bytes){cut, size},
                                            &out);
                }
            }
            free(cut);
        }
    }
}

static void a_full_buffer_says_so(void)
{
    static struct set set;
    struct tn_buf whole;
    struct tn_buf out;
    tn_buf_init(&whole, memory[0], BUF_SIZE);
    memset(&set, 0, sizeof set);
    add_run(&set, 2, 5, 10);
    encode(&set, false, &whole);
    CHECK(whole.size == 8 + 8 + 20);
    for (size_t size = 0; size <= whole.size; size++) {
        tn_buf_init(&out, memory[1], size);
        CHECK(tn_bitmap32_union(tn_buf_bytes(&whole), tn_buf_bytes(&whole), &out));
        CHECK(out.overflow == (size < whole.size));
    }
}

static const struct test tests[] = {
    TEST(unions_have_the_numbers_of_both),
    TEST(damaged_bitmaps_are_refused_or_read_within_bounds),
    TEST(a_full_buffer_says_so),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
