/* mqtt_topic: examples of the standard (4.7), and a model that tries every way to match. */
#include "ingest/mqtt_topic.h"

#include "check.h"
#include "given.h"
#include "random.h"

enum { ROUNDS = 20000, TEXT_MAX = 24, PARTS_MAX = 8 };

static void filters_match_as_the_standard_says(void)
{
    static const struct {
        const char *filter;
        const char *topic;
        bool matches;
    } cases[] = {
        {"sport/tennis/player1/#", "sport/tennis/player1", true},
        {"sport/tennis/player1/#", "sport/tennis/player1/ranking", true},
        {"sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", true},
        {"sport/tennis/player1/#", "sport/tennis/player10", false},
        {"sport/#", "sport", true},
        {"#", "a/b/c", true},
        {"#", "/", true},
        {"sport/tennis/+", "sport/tennis/player1", true},
        {"sport/tennis/+", "sport/tennis/player1/ranking", false},
        {"sport/+", "sport", false},
        {"sport/+", "sport/", true},
        {"+/+", "/finance", true},
        {"/+", "/finance", true},
        {"+", "/finance", false},
        {"+/tennis/#", "sport/tennis", true},
        {"+/tennis/#", "tennis", false},
        {"sport/+/player1", "sport/tennis/player1", true},
        {"sport/+/player1", "sport//player1", true},
        {"sport/+/player1", "sport/player1", false},
        {"#", "$SYS/uptime", false},
        {"+/monitor/Clients", "$SYS/monitor/Clients", false},
        {"$SYS/#", "$SYS/uptime", true},
        {"$SYS/monitor/+", "$SYS/monitor/Clients", true},
        {"ACCOUNTS", "Accounts", false},
        {"/finance", "finance", false},
        {"$share/consumer1/sport/+", "sport/tennis", true},
        {"$share/consumer1//finance", "/finance", true},
        {"$share/consumer1/#", "$SYS/uptime", false},
        {"a", "a", true},
        {"a", "ab", false},
        {"ab", "a", false},
        {"a/b", "a/b/", false},
        {"a/b/", "a/b", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        bool matches =
            tn_mqtt_topic_matches(tn_bytes_of(cases[i].filter), tn_bytes_of(cases[i].topic));
        if (matches != cases[i].matches) {
            (void)fprintf(stderr, "%s of %s\n", cases[i].filter, cases[i].topic);
        }
        CHECK(matches == cases[i].matches);
    }
}

static void names_and_filters_that_are_none_say_why(void)
{
    static const struct {
        bool filter;
        const char *text;
        const char *why; /* NULL: it is one */
    } cases[] = {
        {true, "#", NULL},
        {true, "+", NULL},
        {true, "/", NULL},
        {true, "+/tennis/#", NULL},
        {true, "a b/\xE6\xB8\xA9\xE5\xBA\xA6/+", NULL},
        {true, "$share/g/a/#", NULL},
        {true, "$share/g//", NULL},
        {true, "$sharex", NULL},
        {true, "", "filter of 0 bytes"},
        {true, "sport/tennis#", "filter: # at byte 12 is no part of its own at the end"},
        {true, "sport/tennis/#/ranking", "filter: # at byte 13"},
        {true, "sport+", "filter: + at byte 5 is no part of its own"},
        {true, "+a", "filter: + at byte 0"},
        {true, "$share/g", "GROUP/FILTER"},
        {true, "$share/g/", "GROUP/FILTER"},
        {true, "$share//a", "GROUP/FILTER"},
        {true, "$share/+/a", "GROUP/FILTER"},
        {true, "$share/g/a+", "filter: + at byte 10"},
        {true, "a\xC3", "filter: byte 1 is no UTF-8"},
        {true, "\xED\xA0\x80", "filter: byte 0"},
        {true, "\xC0\x80", "filter: byte 0"},
        {true, "\xF4\x90\x80\x80", "filter: byte 0"},
        {true, "\xF0\x80\x80\x80", "filter: byte 0"},
        {true, "\xE0\x80\x80", "filter: byte 0"},
        {true, "ab\xE2\x82(", "filter: byte 2"},
        {true, "\x80", "filter: byte 0"},
        {false, "A\xF0\xAA\x9B\x94", NULL},
        {false, "$share/a", NULL},
        {false, "/", NULL},
        {false, "", "topic of 0 bytes"},
        {false, "a/+", "topic: wildcard + at byte 2"},
        {false, "a#", "topic: wildcard # at byte 1"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_err err = {0};
        struct tn_bytes text = tn_bytes_of(cases[i].text);
        tn_rc rc =
            cases[i].filter ? tn_mqtt_filter_check(text, &err) : tn_mqtt_topic_check(text, &err);
        bool right =
            cases[i].why ? rc == TN_INVALID && strstr(err.text, cases[i].why) != NULL : rc == TN_OK;
        if (!right) {
            (void)fprintf(stderr, "%s: %s\n", cases[i].text, err.text);
        }
        CHECK(right);
    }
    struct tn_err err = {0};
    tn_rc rc = tn_mqtt_topic_check((struct tn_bytes){(const unsigned char *)"a\0b", 3}, &err);
    CHECK(rc == TN_INVALID && strstr(err.text, "byte 1 is no UTF-8, or a zero") != NULL);
    static unsigned char long_text[TN_MQTT_TEXT_MAX + 1];
    memset(long_text, 'a', sizeof long_text);
    rc = tn_mqtt_topic_check((struct tn_bytes){long_text, TN_MQTT_TEXT_MAX}, &err);
    CHECK(rc == TN_OK);
    rc = tn_mqtt_topic_check((struct tn_bytes){long_text, TN_MQTT_TEXT_MAX + 1}, &err);
    CHECK(rc == TN_INVALID);
}

static void parts_are_what_stands_between_the_slashes(void)
{
    struct tn_bytes parts[PARTS_MAX];
    uint32_t count = tn_mqtt_topic_parts(tn_bytes_of("plant/line 1/dev-7/data"), parts, PARTS_MAX);
    CHECK(count == 4);
    CHECK(tn_bytes_equal(parts[1], tn_bytes_of("line 1")));
    CHECK(tn_bytes_equal(parts[3], tn_bytes_of("data")));
    count = tn_mqtt_topic_parts(tn_bytes_of("/a//b"), parts, PARTS_MAX);
    CHECK(count == 4 && parts[0].size == 0 && parts[2].size == 0 && parts[3].size == 1);
    count = tn_mqtt_topic_parts(tn_bytes_of("a/"), parts, PARTS_MAX);
    CHECK(count == 2 && parts[1].size == 0);
    count = tn_mqtt_topic_parts(tn_bytes_of("a/b/c"), parts, 2);
    CHECK(count == 3 && parts[1].data[0] == 'b');
}

/* ---- a model ---- */

/* Part by part, from the end, by the definition: # takes all, + any one. */
static bool model_matches(const char *filter, const char *topic)
{
    struct tn_bytes f[TEXT_MAX];
    struct tn_bytes t[TEXT_MAX];
    uint32_t f_count = tn_mqtt_topic_parts(tn_bytes_of(filter), f, TEXT_MAX);
    uint32_t t_count = tn_mqtt_topic_parts(tn_bytes_of(topic), t, TEXT_MAX);
    bool all = tn_bytes_equal(f[f_count - 1], tn_bytes_of("#"));
    uint32_t fixed = all ? f_count - 1 : f_count;
    if (all ? t_count < fixed : t_count != fixed) {
        return false;
    }
    bool matches = !(topic[0] == '$' && (filter[0] == '+' || filter[0] == '#'));
    for (uint32_t i = 0; i < fixed; i++) {
        matches = matches && (tn_bytes_equal(f[i], tn_bytes_of("+")) || tn_bytes_equal(f[i], t[i]));
    }
    return matches;
}

static void draw_text(uint64_t *random, const char *letters, char text[TEXT_MAX])
{
    uint32_t size = 1 + random_below(random, 9);
    for (uint32_t i = 0; i < size; i++) {
        text[i] = letters[random_below(random, (uint32_t)strlen(letters))];
    }
    text[size] = 0;
}

static void random_filters_match_as_the_model_does(void)
{
    uint64_t random = given_number("SEED", 1);
    uint32_t compared = 0;
    uint32_t matched = 0;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        char filter[TEXT_MAX];
        char topic[TEXT_MAX];
        struct tn_err err;
        draw_text(&random, "a//++#$", filter);
        draw_text(&random, "a//$", topic);
        if (tn_mqtt_filter_check(tn_bytes_of(filter), &err)) {
            continue;
        }
        bool matches = tn_mqtt_topic_matches(tn_bytes_of(filter), tn_bytes_of(topic));
        if (matches != model_matches(filter, topic)) {
            (void)fprintf(stderr, "%s of %s\n", filter, topic);
        }
        CHECK(matches == model_matches(filter, topic));
        compared++;
        matched += matches;
    }
    CHECK(compared > ROUNDS / 50 && matched > compared / 50);
}

/* A topic that both give, if there is one: each part as it is said, "a" where nobody says. */
static bool make_witness(const char *a, const char *b, char topic[4 * TEXT_MAX])
{
    struct tn_bytes x[TEXT_MAX];
    struct tn_bytes y[TEXT_MAX];
    const struct tn_bytes all = tn_bytes_of("#");
    struct tn_buf out;
    uint32_t x_count = tn_mqtt_topic_parts(tn_bytes_of(a), x, TEXT_MAX);
    uint32_t y_count = tn_mqtt_topic_parts(tn_bytes_of(b), y, TEXT_MAX);
    bool x_all = tn_bytes_equal(x[x_count - 1], all);
    bool y_all = tn_bytes_equal(y[y_count - 1], all);
    uint32_t count = x_count - x_all > y_count - y_all ? x_count - x_all : y_count - y_all;
    tn_buf_init(&out, topic, 4 * TEXT_MAX - 1);
    for (uint32_t i = 0; i < count || i < 1; i++) {
        struct tn_bytes part = tn_bytes_of("a");
        if (i < x_count - x_all && !tn_bytes_equal(x[i], tn_bytes_of("+"))) {
            part = x[i];
        } else if (i < y_count - y_all && !tn_bytes_equal(y[i], tn_bytes_of("+"))) {
            part = y[i];
        }
        tn_buf_text(&out, i > 0 ? "/" : "");
        tn_buf_append(&out, part.data, part.size);
    }
    topic[out.size] = 0;
    return model_matches(a, topic) && model_matches(b, topic);
}

static void filters_overlap_where_a_topic_says_so(void)
{
    uint64_t random = given_number("SEED", 1);
    uint32_t compared = 0;
    uint32_t overlapped = 0;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        char a[TEXT_MAX];
        char b[TEXT_MAX];
        char topic[4 * TEXT_MAX];
        struct tn_err err;
        draw_text(&random, "a//++#$", a);
        draw_text(&random, "a//++#$", b);
        if (tn_mqtt_filter_check(tn_bytes_of(a), &err) ||
            tn_mqtt_filter_check(tn_bytes_of(b), &err)) {
            continue;
        }
        bool overlap = tn_mqtt_filters_overlap(tn_bytes_of(a), tn_bytes_of(b));
        if (overlap != make_witness(a, b, topic)) {
            (void)fprintf(stderr, "%s and %s, as in '%s'\n", a, b, topic);
        }
        CHECK(overlap == make_witness(a, b, topic));
        compared++;
        overlapped += overlap;
    }
    CHECK(compared > ROUNDS / 100 && overlapped > compared / 50 && overlapped < compared);
    CHECK(tn_mqtt_filters_overlap(tn_bytes_of("$share/g/a/+"), tn_bytes_of("a/b")));
    CHECK(!tn_mqtt_filters_overlap(tn_bytes_of("$share/g/a"), tn_bytes_of("$share/g/b")));
}

static const struct test tests[] = {
    TEST(filters_match_as_the_standard_says),        TEST(names_and_filters_that_are_none_say_why),
    TEST(parts_are_what_stands_between_the_slashes), TEST(random_filters_match_as_the_model_does),
    TEST(filters_overlap_where_a_topic_says_so),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
