/* A ring of lines: what stays, what is cut, and what no event can do to its neighbours. */
#include "base/log.h"

#include "check.h"

static unsigned char memory[1024];
static char last_line[TN_LOG_LINE_SIZE + 1];

static void keep_line(void *user, enum tn_log_level level, const char *line, size_t size)
{
    (void)level;
    *(int *)user += 1;
    memcpy(last_line, line, size + 1);
}

static void an_event_is_one_line_for_ring_and_sink(void)
{
    struct tn_log log;
    int calls = 0;
    tn_log_init(&log, memory, sizeof memory, keep_line, &calls);
    tn_log_event(&log, TN_LOG_WARN, "commit", "snapshot=%d text=\"%s\"", 17, "a\nb\x7f");
    CHECK(calls == 1);
    CHECK(strcmp(last_line, "warn commit snapshot=17 text=\"a b \"\n") == 0);
    struct tn_err err;
    (void)tn_err_set(&err, TN_FULL, 28, "write \"a\": no space left");
    tn_log_err(&log, TN_LOG_ERROR, "flush", &err);
    CHECK(strcmp(last_line, "error flush rc=-7 text=\"write 'a': no space left\"\n") == 0);

    char text[200];
    struct tn_buf out;
    tn_buf_init(&out, text, sizeof text);
    uint64_t end = tn_log_read(&log, 0, &out);
    CHECK(end == log.written && out.size == end);
    CHECK(memcmp(text, "warn commit", 11) == 0);
    CHECK(memcmp(text + out.size - strlen(last_line), last_line, strlen(last_line)) == 0);
}

static void chattier_levels_are_counted_and_dropped(void)
{
    struct tn_log log;
    tn_log_init(&log, memory, sizeof memory, NULL, NULL);
    tn_log_event(&log, TN_LOG_DEBUG, "merge", "runs=%d", 3);
    CHECK(log.written == 0 && log.count[TN_LOG_DEBUG] == 1);
    log.most = TN_LOG_DEBUG;
    tn_log_event(&log, TN_LOG_DEBUG, "merge", "runs=%d", 3);
    CHECK(log.written > 0 && log.count[TN_LOG_DEBUG] == 2);
}

static void a_long_event_is_cut_to_one_line(void)
{
    struct tn_log log;
    int calls = 0;
    tn_log_init(&log, memory, sizeof memory, keep_line, &calls);
    tn_log_event(&log, TN_LOG_INFO, "input", "text=%02000d", 1);
    CHECK(strlen(last_line) == TN_LOG_LINE_SIZE - 1);
    CHECK(strchr(last_line, '\n') == last_line + TN_LOG_LINE_SIZE - 2);
}

/* Follows a ring that turns over many times; sees whole lines only, each once, and a gap at most
 * when it was too slow. */
static void a_reader_gets_whole_lines_in_order(void)
{
    struct tn_log log;
    tn_log_init(&log, memory, sizeof memory, NULL, NULL);
    uint64_t since = 0;
    int next = 0;
    for (int i = 0; i < 1000; i++) {
        tn_log_event(&log, TN_LOG_INFO, "m", "number=%d", i);
        if (i % 10 != 9 && i < 900) {
            continue;
        }
        char text[150 + 1];
        struct tn_buf out;
        tn_buf_init(&out, text, sizeof text - 1);
        since = tn_log_read(&log, since, &out);
        CHECK(!out.overflow);
        text[out.size] = 0;
        for (char *line = text; *line; line = strchr(line, '\n') + 1) {
            int number = -1;
            CHECK(sscanf(line, "info m number=%d\n", &number) == 1);
            CHECK(number >= next && number <= i);
            next = number + 1;
        }
    }
    CHECK(next == 1000);
}

static const struct test tests[] = {
    TEST(an_event_is_one_line_for_ring_and_sink),
    TEST(chattier_levels_are_counted_and_dropped),
    TEST(a_long_event_is_cut_to_one_line),
    TEST(a_reader_gets_whole_lines_in_order),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
