/* What an arena gives: aligned, zeroed, in order, and a clear answer when it is full. */
#include "base/arena.h"

#include "check.h"

static _Alignas(16) unsigned char memory[1024];

static void take_gives_zeroed_and_aligned_memory_until_full(void)
{
    memset(memory, 0xff, sizeof memory);
    struct tn_arena arena;
    tn_arena_init(&arena, memory + 1, sizeof memory - 1); /* a base at an odd address */
    unsigned char *a = tn_arena_take(&arena, 3);
    unsigned char *b = tn_arena_take(&arena, 500);
    CHECK(a && b);
    CHECK((uintptr_t)a % _Alignof(max_align_t) == 0);
    CHECK((uintptr_t)b % _Alignof(max_align_t) == 0);
    CHECK(b >= a + 3);
    for (int i = 0; i < 500; i++) {
        CHECK(b[i] == 0);
    }
    size_t left = tn_arena_free(&arena);
    CHECK(tn_arena_take_raw(&arena, left + 1) == NULL);
    CHECK(tn_arena_take_raw(&arena, SIZE_MAX) == NULL);
    CHECK(tn_arena_take_raw(&arena, left) != NULL);
    CHECK(tn_arena_free(&arena) == 0);
    CHECK(tn_arena_take(&arena, 1) == NULL);
}

static void reset_frees_to_the_mark_and_peak_stays(void)
{
    struct tn_arena arena;
    tn_arena_init(&arena, memory, sizeof memory);
    CHECK(tn_arena_take(&arena, 64) != NULL);
    size_t mark = tn_arena_mark(&arena);
    void *first = tn_arena_take(&arena, 128);
    CHECK(arena.peak == 192);
    tn_arena_reset(&arena, mark);
    CHECK(arena.used == 64 && arena.peak == 192);
    CHECK(tn_arena_take(&arena, 8) == first);
}

static void need_says_what_there_was_no_room_for(void)
{
    struct tn_arena arena;
    tn_arena_init(&arena, memory, 100);
    struct tn_err err;
    void *out = NULL;
    tn_rc rc = tn_arena_need(&arena, 101, "block", &out, &err);
    CHECK(rc == TN_AGAIN && out == NULL);
    CHECK(strcmp(err.text,
                 "block needs 101 bytes, 100 are free; what helps is more memory (--memory)") == 0);
    rc = tn_arena_need(&arena, 100, "block", &out, &err);
    CHECK_OK(rc, err);
    CHECK(out == memory);
}

static void texts_end_in_a_zero_and_take_only_what_they_need(void)
{
    struct tn_arena arena;
    tn_arena_init(&arena, memory, 32);
    char *text = tn_arena_format(&arena, "%s-%d", "snapshot", 17);
    CHECK(text && strcmp(text, "snapshot-17") == 0);
    CHECK(arena.used == 12);
    char *copy = tn_arena_text(&arena, (struct tn_bytes){(const unsigned char *)"abc", 2});
    CHECK(copy && strcmp(copy, "ab") == 0);
    CHECK(tn_arena_format(&arena, "%0100d", 1) == NULL);
    CHECK(tn_arena_text(&arena, tn_bytes_of("0123456789abcdef")) == NULL);
    CHECK(arena.used == 19);
}

static void copy_tells_full_from_empty(void)
{
    struct tn_arena arena;
    tn_arena_init(&arena, memory, 4);
    bool ok = false;
    struct tn_bytes copy = tn_arena_copy(&arena, (struct tn_bytes){NULL, 0}, &ok);
    CHECK(ok && copy.size == 0);
    copy = tn_arena_copy(&arena, tn_bytes_of("12345"), &ok);
    CHECK(!ok && copy.data == NULL);
    copy = tn_arena_copy(&arena, tn_bytes_of("1234"), &ok);
    CHECK(ok && tn_bytes_equal(copy, tn_bytes_of("1234")));
}

static const struct test tests[] = {
    TEST(take_gives_zeroed_and_aligned_memory_until_full),
    TEST(reset_frees_to_the_mark_and_peak_stays),
    TEST(need_says_what_there_was_no_room_for),
    TEST(texts_end_in_a_zero_and_take_only_what_they_need),
    TEST(copy_tells_full_from_empty),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
