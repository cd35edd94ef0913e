/* What survives a cut: one outcome of many that the contract of io.h allows, drawn by a seed. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "random.h"
#include "sim/mallocs.h"
#include "sim/medium.h"

enum { BLOCK_SIZE = 512 };

/* Bytes [from, to) of what may survive: in whole blocks the new ones or the old ones, by coin. */
static void mix_blocks(const struct sim_inode *inode, unsigned char *data, size_t from, size_t to,
                       uint64_t *random)
{
    bool is_new = true;
    for (size_t i = from; i < to; i++) {
        if (i == from || i % BLOCK_SIZE == 0) {
            is_new = random_below(random, 2) == 0;
        }
        if (!is_new) {
            data[i] = inode->old && i < inode->old_size ? inode->old[i] : 0;
        }
    }
}

/* From some byte on, the rest of its block is zero. */
static void tear_block(unsigned char *data, size_t from, size_t to, uint64_t *random)
{
    size_t at = from + random_below(random, (uint32_t)(to - from));
    size_t end_of_block = (at / BLOCK_SIZE + 1) * BLOCK_SIZE;
    memset(data + at, 0, (end_of_block < to ? end_of_block : to) - at);
}

static void survive_as_on_medium(struct sim_disk *disk, struct sim_inode *inode)
{
    if (!inode->old) {
        sim_set_size(disk, inode, inode->synced_size);
        return;
    }
    sim_set_size(disk, inode, inode->old_size);
    memcpy(inode->data, inode->old, inode->old_size);
}

enum fate { FATE_NONE, FATE_ALL, FATE_PREFIX, FATE_ZEROES, FATE_TORN, FATE_BLOCKS, FATE_COUNT };

static void survive_in_part(struct sim_disk *disk, struct sim_inode *inode, enum fate fate,
                            uint64_t *random)
{
    size_t from = inode->synced_size;
    size_t to = inode->size;
    if (from == to) {
        return;
    }
    if (fate == FATE_PREFIX) {
        sim_set_size(disk, inode, from + random_below(random, (uint32_t)(to - from)));
    } else if (fate == FATE_ZEROES) {
        memset(inode->data + from, 0, to - from);
    } else if (fate == FATE_TORN) {
        tear_block(inode->data, from, to, random);
    } else if (fate == FATE_BLOCKS) {
        mix_blocks(inode, inode->data, from, to, random);
    }
}

static void survive_bytes(struct sim_disk *disk, struct sim_inode *inode, uint64_t seed,
                          uint64_t *random)
{
    enum fate fate = (enum fate)random_below(random, FATE_COUNT);
    if (seed == SIM_SEED_NOTHING || (seed == SIM_SEED_ALL && inode->spoiled)) {
        fate = FATE_NONE;
    } else if (seed == SIM_SEED_ALL) {
        fate = FATE_ALL;
    }
    if (fate == FATE_NONE) {
        survive_as_on_medium(disk, inode);
    } else {
        survive_in_part(disk, inode, fate, random);
    }
    sim_drop_old(disk, inode);
    inode->synced_size = inode->size;
    inode->spoiled = false;
}

static void survive_names(struct sim_disk *disk, uint64_t seed, uint64_t *random)
{
    uint32_t first_lost = random_below(random, disk->change_count + 1);
    for (uint32_t i = 0; i < disk->change_count; i++) {
        bool survives = disk->model == SIM_ORDERED ? i < first_lost : random_below(random, 2) == 0;
        survives = seed == SIM_SEED_ALL || (survives && seed != SIM_SEED_NOTHING);
        if (survives) {
            sim_apply(&disk->stable, &disk->stable_count, &disk->changes[i]);
        }
        sim_free_change(&disk->changes[i]);
    }
    disk->change_count = 0;
}

/* A folder that is gone takes with it what a lost unlink left in it; so does each folder below. */
static void drop_orphans(struct sim_disk *disk)
{
    sim_mallocs++;
    bool *named = calloc(disk->inode_count, sizeof *named);
    CHECK(named != NULL);
    uint32_t count;
    do {
        count = disk->stable_count;
        memset(named, 0, disk->inode_count * sizeof *named);
        named[SIM_ROOT] = true;
        for (uint32_t i = 0; i < count; i++) {
            named[disk->stable[i].inode] = true;
        }
        for (uint32_t i = count; i > 0; i--) {
            if (!named[disk->stable[i - 1].dir]) {
                sim_drop_at(disk->stable, &disk->stable_count, i - 1);
            }
        }
    } while (disk->stable_count < count);
    free(named);
}

static void forget_open_files(struct sim_disk *disk)
{
    disk->handle_count = 0;
    for (uint32_t i = 0; i < disk->inode_count; i++) {
        disk->inodes[i].opens = 0;
        disk->inodes[i].locked = false;
    }
}

static void begin_boot(struct sim_disk *disk, const char *how)
{
    disk->boot++;
    disk->calls = 0;
    disk->syncs = 0;
    disk->cut_call = 0;
    disk->fail_call = 0;
    disk->ignored_sync = 0;
    disk->ignored_path = NULL;
    disk->off = false;
    sim_trace(disk, 0, how, "", false);
}

void sim_disk_reboot(struct sim_disk *disk, uint64_t seed)
{
    uint64_t random = seed;
    survive_names(disk, seed, &random);
    drop_orphans(disk);
    sim_free_entries(disk->entries, disk->entry_count);
    disk->entries = sim_copied_entries(disk->stable, disk->stable_count);
    disk->entry_count = disk->stable_count;
    forget_open_files(disk);
    sim_count_links(disk);
    sim_free_unreachable(disk);
    for (uint32_t i = 0; i < disk->inode_count; i++) {
        if (disk->inodes[i].used && !disk->inodes[i].is_dir) {
            survive_bytes(disk, &disk->inodes[i], seed, &random);
        }
    }
    begin_boot(disk, "reboot");
}

void sim_disk_kill(struct sim_disk *disk)
{
    forget_open_files(disk);
    sim_free_unreachable(disk);
    begin_boot(disk, "kill");
}
