/* levels: the files of one bucket, as immutable versions.
 *
 *     level 0    each file a run of its own, newest first        may overlap
 *     level 1..  one run a level, files in key order             never overlap
 *
 * An edit makes a new version and leaves the old one as it was; versions and files are counted, and
 * go when nobody holds them. A file knows the round that adds it (0: committed), and whether it is
 * that round's own compaction output. All of this happens on the loop. Memory is the `levels` heap:
 * about 200 bytes a file, name and keys included.
 */
#pragma once

#include "base/heap.h"
#include "file/meta.h"
#include "levels/pick.h"
#include "merge/merge.h"
#include "schema/schema.h"

struct tn_level_file {
    uint32_t refs;
    int32_t level;
    int64_t size;
    int64_t row_count;
    int64_t delete_row_count; /* -1: unknown */
    int64_t min_sequence;
    int64_t max_sequence;
    int64_t schema_id;
    int64_t creation_time_ms;
    int64_t round;  /* that adds it; 0: in a snapshot */
    bool compacted; /* stands in that round's COMPACT part */
    bool busy;      /* source of a compaction under way */
    bool plain;     /* no extra files, embedded index or external path */
    const char *name;
    const char *dir;         /* NULL: the bucket's; else where this file lies instead */
    struct tn_bytes min_key; /* BinaryRow with arity */
    struct tn_bytes max_key;
    struct tn_level_file *next; /* while a load gathers them */
};

struct tn_levels {
    uint32_t refs;
    uint32_t count;
    struct tn_level_file *files[]; /* level 0 newest first, then level 1.. in key order */
};

/* How BinaryRow keys are compared. */
struct tn_key_types {
    const struct tn_type *types;
    uint32_t count;
    struct tn_value *a; /* `count` each, scratch */
    struct tn_value *b;
};
/* The types of a schema's keys, as data files have them: less the partition's. */
TN_MUST_USE tn_rc tn_key_types_init(struct tn_key_types *keys, const struct tn_schema *schema,
                                    struct tn_arena *arena, struct tn_err *err);
/* Both are keys of these types: what tn_level_file_check has seen, or our own writer made. */
int tn_key_compare(const struct tn_key_types *keys, struct tn_bytes a, struct tn_bytes b);

/* A file's entry from its metadata, with one reference. AGAIN when the heap is full. */
TN_MUST_USE tn_rc tn_level_file_make(struct tn_heap *heap, const struct tn_file_meta *meta,
                                     int32_t level, struct tn_level_file **file,
                                     struct tn_err *err);
/* The same file under another level: what an upgrade makes. */
TN_MUST_USE tn_rc tn_level_file_move(struct tn_heap *heap, const struct tn_level_file *from,
                                     int32_t level, struct tn_level_file **file,
                                     struct tn_err *err);
/* CORRUPT when the file's first or last key is no key of these types: manifests may say anything.
 */
TN_MUST_USE tn_rc tn_level_file_check(const struct tn_level_file *file,
                                      const struct tn_key_types *keys, struct tn_err *err);
void tn_level_file_hold(struct tn_level_file *file);
void tn_level_file_drop(struct tn_heap *heap, struct tn_level_file *file);

/* `from` (NULL: empty) less `removed` plus `added`, ordered; references to the files are the new
 * version's own. The caller keeps its reference to `from`. Keys of `added` are checked. */
TN_MUST_USE tn_rc tn_levels_edit(struct tn_heap *heap, const struct tn_levels *from,
                                 struct tn_level_file *const *removed, uint32_t removed_count,
                                 struct tn_level_file *const *added, uint32_t added_count,
                                 const struct tn_key_types *keys, struct tn_levels **to,
                                 struct tn_err *err);
void tn_levels_drop(struct tn_heap *heap, struct tn_levels *levels); /* NULL is fine */

/* The sorted runs, newest first, for tn_pick. `runs` has room for `max`; returns how many there are
 * (which may be more). */
uint32_t tn_levels_runs(const struct tn_levels *levels, struct tn_run *runs, uint32_t max);

/* How many files the first `take` runs have. */
uint32_t tn_levels_files_of(const struct tn_levels *levels, uint32_t take);

/* The highest level with files outside the first `file_count` files, or -1: what decides whether
 * deletes may go. */
int32_t tn_levels_highest_behind(const struct tn_levels *levels, uint32_t file_count);

/* Whether files are newer than those of `level`: of a lower number. `levels` may be NULL. */
bool tn_levels_has_above(const struct tn_levels *levels, int32_t level);

int64_t tn_levels_max_sequence(const struct tn_levels *levels); /* -1 when empty */
