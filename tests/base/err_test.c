#include "base/err.h"

#include "check.h"

/* A text is told anew with a new code, and with something in front of it. */
static void an_error_may_be_told_from_its_own_text(void)
{
    struct tn_err err = {0};
    tn_rc rc = tn_err_set(&err, TN_FULL, 28, "sync %s: no space left", "a/b");
    CHECK(rc == TN_FULL);
    rc = tn_err_set(&err, TN_IO, err.os, "%s", err.text);
    CHECK(rc == TN_IO && err.code == TN_IO && err.os == 28);
    CHECK(strcmp(err.text, "sync a/b: no space left") == 0);
    rc = tn_err_set(&err, TN_IO, 0, "round: %s", err.text);
    CHECK(rc == TN_IO);
    CHECK(strcmp(err.text, "round: sync a/b: no space left") == 0);
    rc = tn_err_in(&err, "commit %d", 7);
    CHECK(rc == TN_IO);
    CHECK(strcmp(err.text, "commit 7: round: sync a/b: no space left") == 0);
}

/* Texts end with a zero byte, however long they are. */
static void a_long_text_is_cut(void)
{
    static char name[2 * TN_ERR_TEXT_SIZE];
    struct tn_err err = {0};
    memset(name, 'x', sizeof name - 1);
    tn_rc rc = tn_err_set(&err, TN_IO, 0, "%s", name);
    CHECK(rc == TN_IO && strlen(err.text) == TN_ERR_TEXT_SIZE - 1);
    rc = tn_err_in(&err, "a");
    CHECK(rc == TN_IO && strlen(err.text) == TN_ERR_TEXT_SIZE - 1);
    CHECK(strncmp(err.text, "a: xx", 5) == 0);
}

static const struct test tests[] = {
    TEST(an_error_may_be_told_from_its_own_text),
    TEST(a_long_text_is_cut),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
