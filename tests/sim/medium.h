/* medium: what a simulated disk is made of. Only tests/sim/disk*.c look in here.
 *
 * Names are kept twice: what the program sees, and what is on the medium for sure; between them is
 * the ordered list of changes that may or may not have reached it. Of a file's bytes, those up to
 * `synced_size` have.
 */
#pragma once

#include "sim/disk.h"

#define SIM_NONE UINT32_MAX

enum { SIM_ROOT = 0, SIM_PATH_SIZE = 120 };

struct sim_inode {
    bool used;
    bool is_dir;
    bool locked;
    bool spoiled;   /* a sync of it failed: its later bytes never reach the medium */
    uint32_t links; /* visible entries */
    uint32_t opens;
    unsigned char *data;
    size_t size;
    int64_t modified_ms;
    size_t synced_size; /* the first bytes of `data` that are on the medium */
    unsigned char *old; /* what is on the medium, when `data` was cut below it since; or NULL */
    size_t old_size;
};

struct sim_entry {
    uint32_t dir;
    uint32_t inode;
    uint32_t hash; /* of dir and name: finds and scrambles */
    char *name;
};

enum sim_change_kind { SIM_CHANGE_CREATE, SIM_CHANGE_RENAME, SIM_CHANGE_UNLINK };

struct sim_change {
    enum sim_change_kind kind;
    uint32_t dir;
    uint32_t inode;
    char *name;     /* that comes (create, rename) or goes (unlink) */
    char *name_old; /* that goes (rename), or NULL */
};

struct sim_handle {
    bool open;
    bool writes;
    bool locks;
    uint32_t inode;
    char path[SIM_PATH_SIZE];
};

struct sim_call {
    uint64_t number; /* 0: the power was cut here */
    const char *verb;
    bool changes;
    tn_rc rc;
    char path[SIM_PATH_SIZE]; /* its end, when it is longer */
};

/* ---- memory: a test that has none left is over ---- */

/* `array` with room for one item more behind the `count` it has. */
void *sim_grown(void *array, size_t count, size_t item_size);
void *sim_copied(const void *data, size_t size);
char *sim_copied_text(const char *text); /* NULL stays NULL */
/* A copy that sim_grown can go on with. */
void *sim_copied_array(const void *array, size_t count, size_t item_size);
struct sim_entry *sim_copied_entries(const struct sim_entry *entries, uint32_t count);
void sim_free_entries(struct sim_entry *entries, uint32_t count);

/* ---- names ---- */

/* The index of an entry, or SIM_NONE. */
uint32_t sim_find(const struct sim_entry *entries, uint32_t count, uint32_t dir, const char *name);
void sim_put_name(struct sim_entry **entries, uint32_t *count, uint32_t dir, const char *name,
                  uint32_t inode);
void sim_drop_at(struct sim_entry *entries, uint32_t *count, uint32_t at);
void sim_apply(struct sim_entry **entries, uint32_t *count, const struct sim_change *change);
void sim_free_change(struct sim_change *change);

/* The program sees a change at once; the medium may. */
void sim_change_names(struct sim_disk *disk, enum sim_change_kind kind, uint32_t dir,
                      uint32_t inode, const char *name, const char *name_old);
/* The changes in `dir` (SIM_NONE: in all) are on the medium now. */
void sim_settle(struct sim_disk *disk, uint32_t dir);
void sim_count_links(struct sim_disk *disk);

/* ---- files ---- */

uint32_t sim_new_inode(struct sim_disk *disk, bool is_dir);
void sim_free_inode(struct sim_disk *disk, struct sim_inode *inode);
/* Frees what no name leads to: none that is seen, none that may come back after a cut. */
void sim_free_unreachable(struct sim_disk *disk);
void sim_set_size(struct sim_disk *disk, struct sim_inode *inode, size_t size);
void sim_drop_old(struct sim_disk *disk, struct sim_inode *inode);

/* Notes a call; what happened in it is set later. */
void sim_trace(struct sim_disk *disk, uint64_t number, const char *verb, const char *path,
               bool changes);
void sim_copy_end(char to[SIM_PATH_SIZE], const char *path); /* the end of a long path */
