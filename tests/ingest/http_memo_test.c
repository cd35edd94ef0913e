/* What a sender's memo knows: held against a model that forgets nothing but what it may. */
#include "ingest/http_memo.h"

#include "check.h"
#include "random.h"

enum { ROUNDS = 3000, KEYS = 400 };

static unsigned char memories[2][TN_HTTP_MEMO_SIZE];

static uint64_t seed_of_test(void)
{
    const char *text = getenv("SEED");
    return text ? strtoull(text, NULL, 10) : 1;
}

static bool meet(struct tn_bytes *known, const struct tn_http_mark *mark)
{
    static int turn;
    struct tn_buf next;
    struct tn_err err;
    bool repeated = false;
    turn = !turn;
    tn_buf_init(&next, memories[turn], sizeof memories[turn]);
    tn_rc rc = tn_http_memo_meet(*known, mark, &repeated, &next, &err);
    CHECK_OK(rc, err);
    CHECK(!next.overflow);
    if (!repeated) {
        *known = tn_buf_bytes(&next);
    } else {
        turn = !turn;
    }
    return repeated;
}

static void the_newest_keys_and_the_sequence_are_known(void)
{
    uint64_t random = seed_of_test();
    struct tn_bytes known = {NULL, 0};
    uint64_t newest = 0;
    uint32_t came[KEYS] = {0}; /* the key's number among all that were new, or 0 */
    uint32_t count = 0;
    uint32_t forgotten = 0;
    for (int i = 0; i < ROUNDS; i++) {
        if (random_below(&random, 4) == 0) {
            uint64_t sequence = 1 + newest + random_below(&random, 5) - (newest > 2 ? 2 : 0);
            bool repeated = meet(&known, &(struct tn_http_mark){.sequence = sequence});
            CHECK(repeated == (sequence <= newest));
            newest = sequence > newest ? sequence : newest;
            continue;
        }
        char text[16];
        uint32_t key = random_below(&random, KEYS);
        (void)snprintf(text, sizeof text, "key-%u", key);
        bool repeated = meet(&known, &(struct tn_http_mark){.key = tn_bytes_of(text)});
        bool kept = came[key] > 0 && count - came[key] < TN_HTTP_KEYS_MAX;
        CHECK(repeated == kept);
        forgotten += came[key] > 0 && !kept;
        if (!repeated) {
            came[key] = ++count;
        }
    }
    CHECK(forgotten > 0);
}

static void what_is_no_memo_is_said(void)
{
    static const char *const memos[] = {"x", "\2--------", "\1-------", "\1--------key"};
    for (size_t i = 0; i < COUNT(memos); i++) {
        struct tn_buf next;
        struct tn_err err;
        bool repeated = false;
        tn_buf_init(&next, memories[0], sizeof memories[0]);
        tn_rc rc = tn_http_memo_meet(tn_bytes_of(memos[i]), &(struct tn_http_mark){.sequence = 1},
                                     &repeated, &next, &err);
        CHECK(rc == TN_CORRUPT && err.text[0]);
    }
}

static const struct test tests[] = {
    TEST(the_newest_keys_and_the_sequence_are_known),
    TEST(what_is_no_memo_is_said),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
