/* pick: which runs of a bucket to merge next, and into which level. Paimon's UniversalCompaction,
 * as a pure function.
 *
 * Runs are ordered newest first: level-0 files by arrival, then levels 1..max that hold files. A
 * unit is always the first `take` runs, since a merge must take neighbours, or an old row could
 * pass a newer one. Source: Paimon 1.3, UniversalCompaction.
 *
 * With a largest unit the oldest runs, with which a unit would have more bytes, are held back: to
 * the newer ones they are one run without end, and these are merged above it.
 *
 *     level  0 0 0   2      4         5
 *     size   1 1 1   9     30       100      at most 64 together: the last one is held back
 *           '------- a unit -------'
 *
 * What can be taken so comes to an end, since each held run has its level. Then the unit that is
 * due waits, until there are so many runs that writing would (`crowd`), and some of what is held is
 * taken.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tn_run {
    int32_t level;
    int64_t size; /* bytes of its files */
    uint32_t file_count;
};

struct tn_pick_rules {
    int32_t max_size_amplification; /* percent */
    int32_t size_ratio;             /* percent */
    int32_t trigger;                /* runs */
    int32_t num_levels;
    bool force_level0; /* lookup tables, compaction.force-up-level-0: level 0 is always taken up */
    int64_t optimization_interval_ms;   /* -1: off */
    int64_t since_full_ms;              /* since the last full compaction; -1: never */
    int64_t total_size_threshold;       /* -1: off */
    int64_t incremental_size_threshold; /* -1: off */
    int64_t unit_size_max;              /* bytes of the files that a unit takes; 0: any */
    uint32_t crowd;                     /* runs at which it may take more */
};

/* Why; its texts are for people. */
#define TN_PICK_MAP(X)                                              \
    X(FEW, "fewer runs than the trigger")                           \
    X(APART, "no neighbours of like size")                          \
    X(IN_PLACE, "one file that is where it would go")               \
    X(OPTIMIZE, "a full compaction is due")                         \
    X(AMPLIFICATION, "newer runs are too large for the oldest one") \
    X(RATIO, "neighbours of like size")                             \
    X(COUNT, "more runs than the trigger")                          \
    X(LEVEL0, "level 0 is always moved up")                         \
    X(HELD, "what is due is larger than a unit may be, and waits")  \
    X(CROWD, "too many runs to hold the oldest ones back")          \
    X(FULL, "asked for")

enum tn_pick_reason {
#define X(name, text) TN_PICK_##name,
    TN_PICK_MAP(X)
#undef X
};
const char *tn_pick_text(enum tn_pick_reason reason);

struct tn_pick {
    uint32_t take; /* runs from the front; 0: nothing to do */
    int32_t output_level;
    bool full; /* all runs to the highest level */
    enum tn_pick_reason reason;
};

struct tn_pick tn_pick(const struct tn_run *runs, uint32_t count,
                       const struct tn_pick_rules *rules);

/* A full compaction: all runs to the highest level; nothing when there are none, or one that is
 * there already. */
struct tn_pick tn_pick_full(const struct tn_run *runs, uint32_t count,
                            const struct tn_pick_rules *rules);

/* numLevels - 1, or more where files were found higher. */
int32_t tn_pick_level_max(const struct tn_run *runs, uint32_t count,
                          const struct tn_pick_rules *rules);

/* Append tables: which neighbours to put behind each other. `sizes` are those of the bucket's
 * files, oldest first. A window of at least `min_file_num` files is taken as soon as there is one;
 * files fall out of its front when it reaches twice the target, or has more than `unit_size_max`
 * bytes (0: any). With `full`: all but large files at the front, from three on. Source: Paimon,
 * BucketedAppendCompactManager. */
struct tn_append_pick {
    uint32_t first;
    uint32_t count; /* 0: nothing to do, */
    bool held;      /* but something, if a window might be larger */
};
struct tn_append_pick tn_pick_append(const int64_t *sizes, uint32_t count, int64_t target_size,
                                     int64_t unit_size_max, uint32_t min_file_num, bool full);
