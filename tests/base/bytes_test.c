/* Views, buffers that overflow once and for good, and little-endian loads. */
#include "base/bytes.h"

#include "check.h"

/* Each text is smaller than the next. */
static void compare_orders_unsigned_bytes_then_length(void)
{
    static const struct tn_bytes ordered[] = {
        {NULL, 0},
        {(const unsigned char *)"\0", 1},
        {(const unsigned char *)"\0\0", 2},
        {(const unsigned char *)"a", 1},
        {(const unsigned char *)"ab", 2},
        {(const unsigned char *)"b", 1},
        {(const unsigned char *)"\x7f", 1},
        {(const unsigned char *)"\x80", 1},
        {(const unsigned char *)"\xff", 1},
    };
    for (size_t i = 0; i < COUNT(ordered); i++) {
        for (size_t j = 0; j < COUNT(ordered); j++) {
            int order = tn_bytes_compare(ordered[i], ordered[j]);
            CHECK((order > 0) - (order < 0) == (i > j) - (i < j));
            CHECK(tn_bytes_equal(ordered[i], ordered[j]) == (i == j));
        }
    }
}

static void a_buffer_that_overflowed_stays_so(void)
{
    unsigned char memory[8];
    struct tn_buf buf;
    tn_buf_init(&buf, memory, sizeof memory);
    tn_buf_text(&buf, "abcdef");
    tn_buf_append(&buf, NULL, 0);
    CHECK(!buf.overflow && buf.size == 6);
    tn_buf_text(&buf, "xyz");
    CHECK(buf.overflow && buf.size == 6);
    tn_buf_byte(&buf, '!');
    tn_buf_format(&buf, "%d", 1);
    CHECK(buf.overflow && buf.size == 6);
    CHECK(memcmp(memory, "abcdef", 6) == 0);
}

static void format_needs_room_for_its_zero_but_keeps_none(void)
{
    unsigned char memory[8];
    struct tn_buf buf;
    tn_buf_init(&buf, memory, sizeof memory);
    tn_buf_format(&buf, "%d", 1234567);
    CHECK(!buf.overflow && buf.size == 7);
    tn_buf_byte(&buf, '8');
    CHECK(!buf.overflow && buf.size == 8);
    tn_buf_format(&buf, "%s", "");
    CHECK(buf.overflow);
    tn_buf_init(&buf, memory, sizeof memory);
    tn_buf_format(&buf, "%d", 12345678);
    CHECK(buf.overflow && buf.size == 0);
}

static void loads_undo_stores_at_odd_addresses(void)
{
    unsigned char memory[9];
    tn_store_u64(memory + 1, 0x8877665544332211U);
    CHECK(memory[1] == 0x11 && memory[8] == 0x88);
    CHECK(tn_load_u64(memory + 1) == 0x8877665544332211U);
    CHECK(tn_load_u32(memory + 1) == 0x44332211U);
    CHECK(tn_load_u16(memory + 1) == 0x2211U);
    CHECK(tn_load_u64_be(memory + 1) == 0x1122334455667788U);
    tn_store_u32_be(memory + 1, 0xfedcba98U);
    CHECK(memory[1] == 0xfe && tn_load_u32_be(memory + 1) == 0xfedcba98U);
    tn_store_u16(memory + 1, 0xfffe);
    CHECK(tn_load_u16(memory + 1) == 0xfffe);
}

static const struct test tests[] = {
    TEST(compare_orders_unsigned_bytes_then_length),
    TEST(a_buffer_that_overflowed_stays_so),
    TEST(format_needs_room_for_its_zero_but_keeps_none),
    TEST(loads_undo_stores_at_odd_addresses),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
