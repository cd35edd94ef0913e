/* Tables are written with a thread a lane, on real files: the result is that of the model, at every
 * snapshot. Built with TSan, too. */
#include "base/exec.h"

#include "bed.h"
#include "given.h"
#include "temp.h"

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { TABLES = 4 };
#else
enum { TABLES = 20 };
#endif
enum { ROUNDS = 12 };

static struct bed_engine engine;
static struct bed_scenario scenario;

static void write_and_read(struct tn_io *io, uint64_t seed)
{
    struct bed_writer w = {.engine = &engine, .scenario = &scenario, .who = "a test"};
    bed_create(&engine, io, &scenario);
    bed_engine_start_threads(&engine, io);
    tn_rc rc = bed_write(&w);
    bed_engine_stop(&engine);
    CHECK_OK(rc, w.err);
    CHECK(w.told.rows == scenario.row_count);
    struct bed_told found;
    bed_engine_start(&engine, io, seed);
    const char *problem = bed_read_all(&engine, &scenario, &found, false);
    if (problem) {
        FAIL("%s\n%s", problem, scenario.schema);
    }
    CHECK(found.rows == scenario.row_count && found.id == w.told.id);
}

static void tables_written_with_threads_are_as_the_model_says(void)
{
    uint64_t first = given_number("SEED", 1);
    for (uint64_t seed = first; seed < first + TABLES; seed++) {
        char root[TEMP_SIZE];
        struct tn_io_posix posix;
        temp_make(root);
        bed_open_files(&posix, root);
        bed_scenario_init_merging(&scenario, seed, ROUNDS);
        write_and_read(&posix.io, seed);
        tn_io_posix_close(&posix);
        temp_remove(root);
    }
}

static const struct test tests[] = {
    TEST(tables_written_with_threads_are_as_the_model_says),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), &engine, 1);
}
