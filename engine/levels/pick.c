#include "levels/pick.h"

#include <stddef.h>

const char *tn_pick_text(enum tn_pick_reason reason)
{
    static const char *const texts[] = {
#define X(name, text) text,
        TN_PICK_MAP(X)
#undef X
    };
    return texts[reason];
}

static int64_t add_sat(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int64_t multiply_sat(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t size_of(const struct tn_run *runs, uint32_t count)
{
    int64_t size = 0;
    for (uint32_t i = 0; i < count; i++) {
        size = add_sat(size, runs[i].size);
    }
    return size;
}

int32_t tn_pick_level_max(const struct tn_run *runs, uint32_t count,
                          const struct tn_pick_rules *rules)
{
    int32_t level = rules->num_levels - 1;
    for (uint32_t i = 0; i < count; i++) {
        level = runs[i].level > level ? runs[i].level : level;
    }
    return level;
}

static struct tn_pick take_none(enum tn_pick_reason reason)
{
    return (struct tn_pick){.reason = reason};
}

static struct tn_pick take_all(const struct tn_run *runs, uint32_t count,
                               const struct tn_pick_rules *rules, enum tn_pick_reason reason)
{
    return (struct tn_pick){count, tn_pick_level_max(runs, count, rules), true, reason};
}

/* Paimon: UniversalCompaction.createUnit. Level 0 is for files that were never merged, since only
 * there runs may overlap; a result that would land in it swallows runs up to the first one that has
 * a level of its own. */
static struct tn_pick take_first(const struct tn_run *runs, uint32_t count, uint32_t take,
                                 const struct tn_pick_rules *rules, enum tn_pick_reason reason)
{
    if (take == count) {
        return take_all(runs, count, rules, reason);
    }
    int32_t output = runs[take].level > 0 ? runs[take].level - 1 : 0;
    while (output == 0 && take < count) {
        output = runs[take++].level;
    }
    if (take == count) {
        return take_all(runs, count, rules, reason);
    }
    return (struct tn_pick){take, output, false, reason};
}

/* Takes further runs while what is taken is not clearly smaller than the next one: stopping at the
 * first run that would be rewritten for too little bounds write amplification. In doubles, as
 * Paimon does, so that both round alike. Paimon: UniversalCompaction.pickForSizeRatio. */
static uint32_t extend_by_ratio(const struct tn_run *runs, uint32_t count, uint32_t take,
                                const struct tn_pick_rules *rules)
{
    int64_t size = size_of(runs, take);
    while (take < count &&
           (double)size * (100.0 + rules->size_ratio) / 100.0 >= (double)runs[take].size) {
        size = add_sat(size, runs[take].size);
        take++;
    }
    return take;
}

/* Paimon: EarlyFullCompaction. */
static bool full_is_due(const struct tn_run *runs, uint32_t count,
                        const struct tn_pick_rules *rules)
{
    if (count < 2) {
        return false;
    }
    int64_t interval = rules->optimization_interval_ms;
    if (interval >= 0 && (rules->since_full_ms < 0 || rules->since_full_ms > interval)) {
        return true;
    }
    if (rules->total_size_threshold >= 0 && size_of(runs, count) < rules->total_size_threshold) {
        return true;
    }
    if (rules->incremental_size_threshold < 0) {
        return false;
    }
    bool last_is_base = runs[count - 1].level == tn_pick_level_max(runs, count, rules);
    return size_of(runs, last_is_base ? count - 1 : count) > rules->incremental_size_threshold;
}

/* The oldest run stands for the size of the table without waste; all the others may be waste. */
static bool too_much_waste(const struct tn_run *runs, uint32_t count,
                           const struct tn_pick_rules *rules)
{
    int64_t waste = size_of(runs, count - 1);
    return multiply_sat(waste, 100) >
           multiply_sat(rules->max_size_amplification, runs[count - 1].size);
}

static uint32_t trigger_of(const struct tn_pick_rules *rules)
{
    return rules->trigger > 1 ? (uint32_t)rules->trigger : 1;
}

static struct tn_pick pick_universal(const struct tn_run *runs, uint32_t count,
                                     const struct tn_pick_rules *rules)
{
    uint32_t trigger = trigger_of(rules);
    if (full_is_due(runs, count, rules)) {
        return take_all(runs, count, rules, TN_PICK_OPTIMIZE);
    }
    if (count < trigger) {
        return take_none(TN_PICK_FEW);
    }
    if (too_much_waste(runs, count, rules)) {
        return take_all(runs, count, rules, TN_PICK_AMPLIFICATION);
    }
    uint32_t take = extend_by_ratio(runs, count, 1, rules);
    enum tn_pick_reason reason = TN_PICK_RATIO;
    if (take == 1 && count > trigger) {
        take = extend_by_ratio(runs, count, count - trigger + 1, rules);
        reason = TN_PICK_COUNT;
    }
    return take > 1 ? take_first(runs, count, take, rules, reason) : take_none(TN_PICK_APART);
}

/* How many of the newest runs one unit may take. */
static uint32_t free_runs(const struct tn_run *runs, uint32_t count,
                          const struct tn_pick_rules *rules)
{
    uint32_t free = 0;
    int64_t size = 0;
    while (free < count) {
        size = add_sat(size, runs[free].size);
        if (rules->unit_size_max > 0 && size > rules->unit_size_max) {
            break;
        }
        free++;
    }
    return free;
}

/* As take_first, of the first `most` runs. What is swallowed, since its level is wanted, is not
 * rewritten alone each time: then the next is of like size, too. `must`: more are swallowed where
 * there is no level above the held ones. */
static struct tn_pick take_free(const struct tn_run *runs, uint32_t count, uint32_t most,
                                uint32_t take, const struct tn_pick_rules *rules, bool must,
                                enum tn_pick_reason reason)
{
    take = extend_by_ratio(runs, most, take, rules);
    while (take < count && runs[take].level <= 1) {
        if (take >= most && !must) {
            return take_none(TN_PICK_HELD);
        }
        take = extend_by_ratio(runs, most, take + 1, rules);
    }
    if (take == count) {
        return take_all(runs, count, rules, reason);
    }
    return (struct tn_pick){take, runs[take].level - 1, false, reason};
}

/* By the rules for all runs, with those that are held back as one. */
static struct tn_pick pick_free(const struct tn_run *runs, uint32_t count, uint32_t free,
                                const struct tn_pick_rules *rules)
{
    uint32_t seen = free + 1;
    uint32_t trigger = trigger_of(rules);
    if (free < 2 || seen < trigger) {
        return take_none(TN_PICK_FEW);
    }
    uint32_t take = extend_by_ratio(runs, free, 1, rules);
    enum tn_pick_reason reason = TN_PICK_RATIO;
    if (take == 1 && seen > trigger) {
        take = seen - trigger + 1 < free ? seen - trigger + 1 : free;
        reason = TN_PICK_COUNT;
    }
    return take > 1 ? take_free(runs, count, free, take, rules, false, reason)
                    : take_none(TN_PICK_APART);
}

static struct tn_pick pick_held(const struct tn_run *runs, uint32_t count, uint32_t free,
                                const struct tn_pick_rules *rules)
{
    struct tn_pick pick = pick_free(runs, count, free, rules);
    if (pick.take == 0 && count > 1 && count >= rules->crowd) {
        return take_free(runs, count, count, free + 1 > 2 ? free + 1 : 2, rules, true,
                         TN_PICK_CROWD);
    }
    if (pick.take == 0 && pick_universal(runs, count, rules).take > 0) {
        pick.reason = TN_PICK_HELD;
    }
    return pick;
}

/* Paimon: ForceUpLevel0Compaction. Rows are seen and changes told once they are above level 0: that
 * waits for nothing. */
static struct tn_pick pick_level0(const struct tn_run *runs, uint32_t count, uint32_t free,
                                  const struct tn_pick_rules *rules)
{
    uint32_t level0 = 0;
    while (level0 < count && runs[level0].level == 0) {
        level0++;
    }
    if (level0 == 0) {
        return take_none(TN_PICK_FEW);
    }
    if (free < count) {
        return take_free(runs, count, free, level0, rules, true, TN_PICK_LEVEL0);
    }
    return take_first(runs, count, extend_by_ratio(runs, count, level0, rules), rules,
                      TN_PICK_LEVEL0);
}

struct tn_pick tn_pick(const struct tn_run *runs, uint32_t count, const struct tn_pick_rules *rules)
{
    if (count == 0) {
        return take_none(TN_PICK_FEW);
    }
    uint32_t free = free_runs(runs, count, rules);
    struct tn_pick pick = free < count && !full_is_due(runs, count, rules)
                              ? pick_held(runs, count, free, rules)
                              : pick_universal(runs, count, rules);
    if (pick.take == 0 && rules->force_level0) {
        struct tn_pick level0 = pick_level0(runs, count, free, rules);
        pick = level0.take > 0 ? level0 : pick;
    }
    /* One file that is where it would go. Paimon: MergeTreeCompactManager.triggerCompaction. */
    if (pick.take == 1 && runs[0].file_count <= 1 && runs[0].level == pick.output_level) {
        return take_none(TN_PICK_IN_PLACE);
    }
    return pick;
}

struct tn_pick tn_pick_full(const struct tn_run *runs, uint32_t count,
                            const struct tn_pick_rules *rules)
{
    if (count == 0 || (count == 1 && runs[0].level == tn_pick_level_max(runs, count, rules))) {
        return take_none(TN_PICK_IN_PLACE);
    }
    return take_all(runs, count, rules, TN_PICK_FULL);
}

static struct tn_append_pick pick_append_full(const int64_t *sizes, uint32_t count,
                                              int64_t target_size)
{
    enum { FULL_MIN = 3 }; /* Paimon: FullCompactTask, MIN_FILES */
    uint32_t first = 0;
    while (first < count && sizes[first] >= target_size) {
        first++;
    }
    uint32_t left = count - first;
    return (struct tn_append_pick){first, left >= FULL_MIN ? left : 0, false};
}

/* Of a window of more than one file. */
static bool too_large(int64_t size, int64_t target_size, int64_t unit_size_max)
{
    return size >= multiply_sat(2, target_size) || (unit_size_max > 0 && size > unit_size_max);
}

static struct tn_append_pick pick_window(const int64_t *sizes, uint32_t count, int64_t target_size,
                                         int64_t unit_size_max, uint32_t min_file_num)
{
    uint32_t first = 0;
    int64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += sizes[i];
        while (first < i && too_large(sum, target_size, unit_size_max)) {
            sum -= sizes[first++];
        }
        uint32_t window = i + 1 - first;
        if (window >= min_file_num && window > 1) {
            return (struct tn_append_pick){first, window, false};
        }
    }
    return (struct tn_append_pick){0, 0, false};
}

struct tn_append_pick tn_pick_append(const int64_t *sizes, uint32_t count, int64_t target_size,
                                     int64_t unit_size_max, uint32_t min_file_num, bool full)
{
    if (full) {
        return pick_append_full(sizes, count, target_size);
    }
    struct tn_append_pick pick =
        pick_window(sizes, count, target_size, unit_size_max, min_file_num);
    pick.held = pick.count == 0 && unit_size_max > 0 &&
                pick_window(sizes, count, target_size, 0, min_file_num).count > 0;
    return pick;
}
