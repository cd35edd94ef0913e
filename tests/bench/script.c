/* What one call of a script's handlers costs: a merge that reads three columns and writes two, with
 * integers and floats, and the same with a text. usage: script [calls] */
#include "../script/given_script.h"
#include "given.h"

static const char script[] = "local m = {}\n"
                             "function m.merge(now, row, ctx)\n"
                             "    local temp, was = row.temp, now and now.temp_max\n"
                             "    if not was or temp > was then row.temp_max = temp end\n"
                             "    row.samples = (now and now.samples or 0) + 1\n"
                             "    return row\n"
                             "end\n"
                             "function m.announce(row) return row end\n"
                             "return m\n";

static const char columns[] = "dev STRING NOT NULL; ts TIMESTAMP(3); temp DOUBLE; temp_max DOUBLE; "
                              "samples BIGINT; a INT; b INT; c DOUBLE; d DOUBLE; e STRING";

enum { LOADS = 100 };

int main(int argc, char **argv)
{
    static struct given_state s;
    static struct given_columns c;
    uint64_t calls = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    open_columns(&c, columns);
    open_state(&s, NULL);
    tn_rc rc = load_script(&s, &c, script);
    CHECK_OK(rc, s.err);
    unsigned char rows[2][256];
    const char *const was[] = {
        "boiler-7", "2026-01-31 12:00:00", "20.5", "21.5", "17", "1", "2", "3", "4", "north"};
    const char *const is[] = {
        "boiler-7", "2026-01-31 12:00:01", "22.5", NULL, NULL, "1", "2", "3", "4", "north"};
    struct tn_row now = pack_texts(&c, was, rows[0]);
    struct tn_row row = pack_texts(&c, is, rows[1]);
    struct tn_script_ctx ctx = {TN_ROW_INSERT, 1, false};
    unsigned char memory[512];
    double begin = seconds_now();
    for (uint64_t i = 0; i < calls; i++) {
        struct tn_buf out;
        enum tn_script_verdict verdict;
        tn_buf_init(&out, memory, sizeof memory);
        rc = tn_script_merge(&s.script, &now, row, &ctx, &verdict, &out, &s.err);
        CHECK_OK(rc, s.err);
        CHECK(verdict == TN_SCRIPT_ROW);
    }
    double merge = seconds_now() - begin;
    begin = seconds_now();
    for (uint64_t i = 0; i < calls; i++) {
        struct tn_buf out;
        bool shown;
        tn_buf_init(&out, memory, sizeof memory);
        rc = tn_script_announce(&s.script, row, &shown, &out, &s.err);
        CHECK_OK(rc, s.err);
    }
    double announce = seconds_now() - begin;
    (void)printf("merge, 3 columns read, 2 written: %.0f ns a call\n", merge * 1e9 / (double)calls);
    (void)printf("announce of the row as it is: %.0f ns a call\n", announce * 1e9 / (double)calls);
    size_t used = tn_vm_used(&s.vm, true);
    begin = seconds_now();
    for (int i = 0; i < LOADS; i++) {
        open_state(&s, NULL);
        rc = load_script(&s, &c, script);
        CHECK_OK(rc, s.err);
    }
    double load = seconds_now() - begin;
    (void)printf("a state with the script: %zu bytes, made in %.0f us\n", used, load * 1e6 / LOADS);
    return 0;
}
