/* A folder keeps what a target promises; the mirror's tests cut the power in it. */
#include "sim/disk.h"
#include "upload/contract.h"
#include "upload/directory.h"

static void folder_keeps_the_contract_of_a_target(void)
{
    static struct contract c;
    static struct tn_directory directory;
    static unsigned char memory[64 * 1024];
    struct sim_disk from;
    struct sim_disk to;
    struct tn_arena arena;
    struct tn_err err;
    sim_disk_init(&from, 1 << 20);
    sim_disk_init(&to, 1 << 20);
    to.now_ms = INT64_C(1790000000000);
    tn_arena_init(&arena, memory, sizeof memory);
    tn_rc rc = tn_directory_init(&directory, &to.io, "lake", &arena, &err);
    CHECK_OK(rc, err);
    c.target = &directory.target;
    c.from = &from.io;
    contract_files(&c);
    contract_small_files(&c);
    contract_fetch(&c);
    contract_remove(&c);
    contract_stop(&c);
    CHECK(directory.target.counts.bytes_sent == 5 + 3 + 3 + 1 + 2 + 10 + 4 + 4 + 4);
    sim_disk_reboot(&to, SIM_SEED_NOTHING);
    CHECK(contract_shows(&c, "db.db/t/a=x %2F/one", "first"));
    CHECK(contract_shows(&c, "db.db/t/snapshot/snapshot-1", "one"));
    CHECK(contract_shows(&c, ".tarn/db.db/t/owner", "bb"));
    sim_disk_deinit(&from);
    sim_disk_deinit(&to);
}

static const struct test tests[] = {
    TEST(folder_keeps_the_contract_of_a_target),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
