/* disk: files in memory behind io.h, on a disk that loses power, fails and fills up.
 *
 * A program runs on `disk.io` until the cut that the test has set; from then on each call fails.
 * sim_disk_reboot then decides, from a seed, which of the bytes and names that were never synced
 * are still there, and the test opens the table again on what is left:
 *
 *     count the calls of a run without a cut
 *     for each call n:     cut before it, and run
 *         for each seed:   clone, reboot(seed), open, check the promises
 *
 * What survives is as bad as the contract of io.h allows, not as good as a file system is:
 *
 * - Bytes of a file since its last sync: none, all, the first few, the size with zeroes, one
 *   torn block, or any blocks with holes between. A file cut short by `reopen` may be its old self.
 * - Names: each create, rename, replace, unlink and remove_dir in a folder since that folder's last
 *   sync has happened or not, as any subset, in order (`SIM_STRICT`). A rename whose create is lost
 *   still leads to its file. In `SIM_ORDERED`, as on ext4: the first few of all, and any sync
 *   keeps all before it.
 * - make_dir is durable at once, but keeps no other name with it.
 * - A sync that failed has kept nothing, and the bytes that it should have kept are never
 *   written, though a later sync says OK: this is what Linux does.
 *
 * Also strict where a real disk is lenient: list's order is scrambled, a folder's sync must end in
 * '/', renames stay in one folder, a file number of before the reboot is dead.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "io/io.h"

enum sim_model { SIM_STRICT, SIM_ORDERED };

/* The two ends of what may survive; all other seeds draw. */
enum { SIM_SEED_NOTHING = 0, SIM_SEED_ALL = 1 };

struct sim_inode;
struct sim_entry;
struct sim_change;
struct sim_handle;
struct sim_call;

struct sim_disk {
    struct tn_io io;      /* first: &disk.io is what the engine gets */
    enum sim_model model; /* SIM_STRICT until the test sets another */

    uint64_t calls;     /* since init or reboot; every function of io.h but close is one */
    uint64_t syncs;     /* of them */
    uint64_t cut_call;  /* 0: none */
    uint64_t fail_call; /* 0: none */
    uint64_t ignored_sync;
    const char *ignored_path; /* or NULL */
    uint64_t paths_ignored;
    tn_rc fail_rc;
    bool fail_late;
    bool off;
    void (*watch)(void *user, struct sim_disk *disk); /* or NULL */
    void *watch_user;

    int64_t now_ms;    /* what files that are made or appended to from now on are dated */
    uint64_t capacity; /* bytes of all files; UINT64_MAX: no end */
    size_t memory_max; /* bytes of ours for contents; a test that needs more is stopped */
    size_t memory;
    uint32_t boot; /* reboots so far */

    struct sim_inode *inodes; /* number 0 is the root */
    uint32_t inode_count;
    struct sim_entry *entries; /* what the program sees */
    uint32_t entry_count;
    struct sim_entry *stable; /* what is on the medium for sure */
    uint32_t stable_count;
    struct sim_change *changes; /* of names, not known to be on the medium; in order */
    uint32_t change_count;
    struct sim_handle *handles;
    uint32_t handle_count;
    struct sim_call *trace;
    uint64_t trace_count;
};

/* An empty disk. Everything it takes is malloc's until sim_disk_deinit. */
void sim_disk_init(struct sim_disk *disk, size_t memory_max);
void sim_disk_deinit(struct sim_disk *disk);

/* The power goes before call number `call` (from 1) does anything; 0: never. */
void sim_disk_cut_at(struct sim_disk *disk, uint64_t call);

/* Before each call that could change the disk `watch` is called, to clone the disk as a cut there
 * would find it: so one run serves all cuts. NULL: none. Clones have none. */
void sim_disk_watch(struct sim_disk *disk, void (*watch)(void *user, struct sim_disk *disk),
                    void *user);

/* Call number `call` fails once with `rc`, and has done nothing; but an append has written half. */
void sim_disk_fail_call(struct sim_disk *disk, uint64_t call, tn_rc rc);

/* The same, and the call has done its work: an outcome that the caller can't know. */
void sim_disk_fail_call_late(struct sim_disk *disk, uint64_t call, tn_rc rc);

/* The files together may have so many bytes; an append beyond writes what fits and says FULL, a
 * full disk takes no new file or folder. */
void sim_disk_capacity(struct sim_disk *disk, uint64_t bytes);
uint64_t sim_disk_used(const struct sim_disk *disk);

/* Mutation: sync number `sync` (from 1) says OK and does nothing. A test that doesn't fail for any
 * seed then hasn't shown that this sync is needed. 0: none. */
void sim_disk_ignore_sync(struct sim_disk *disk, uint64_t sync);

/* Mutation: no sync covers a path that `part` is in; `paths_ignored` counts them. NULL: none. */
void sim_disk_ignore_path(struct sim_disk *disk, const char *part);

/* The first path of sync number `sync` since this disk was made or cloned; NULL without one. */
const char *sim_disk_sync_path(const struct sim_disk *disk, uint64_t sync);

/* Cuts, if that hasn't happened, and starts again with what `seed` lets survive. Calls count from 0
 * again; cut, failure and ignored sync are forgotten; open files and locks are gone. */
void sim_disk_reboot(struct sim_disk *disk, uint64_t seed);

/* The process ends and another one starts: open files and locks are gone, nothing else. */
void sim_disk_kill(struct sim_disk *disk);

/* `to` is not initialised before; it gets files, names, and what is open, but no trace. */
void sim_disk_clone(struct sim_disk *to, const struct sim_disk *from);

/* Whether call number `call` of this boot could change the disk: a cut before any other call leaves
 * what a cut before the next of these leaves. */
bool sim_disk_call_changes(const struct sim_disk *disk, uint64_t call);

/* One line a call, "17 rename_new a/b: ok", for people: on stderr, behind what is wrong. So few of
 * the last ones that the reason stays in sight; TRACE=n in the environment is for more. */
void sim_disk_print_trace(const struct sim_disk *disk);
