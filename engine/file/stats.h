/* stats: minimum, maximum and null count of each column of a file, by the modes of
 * `metadata.stats-mode`.
 *
 * Strings are kept cut to what the mode can store, with a mark whether the longest one goes on;
 * that is enough, since only the cut is written (min cut, max cut and rounded up). A column that
 * saw a NaN, or a value too long for its buffer in `full` mode, has no bounds: fewer statistics are
 * always legal. Source: Paimon, `metadata.stats-mode`, SimpleColStatsCollector.
 */
#pragma once

#include "base/arena.h"
#include "file/meta.h"
#include "schema/options.h"
#include "schema/schema.h"

struct tn_stats_column; /* stats.c */

struct tn_stats_collector {
    struct tn_stats_column *columns;
    uint32_t count;
    const struct tn_row_layout *layout;
};

/* Bytes that tn_stats_init takes. */
size_t tn_stats_size(const struct tn_row_layout *layout, const struct tn_options *options);

/* For all columns of `layout` (those of `schema`). The state lives in `arena` (96 + 2 × 4n bytes a
 * column); it needs no other memory, so a writer can rest between slices. */
TN_MUST_USE tn_rc tn_stats_init(struct tn_stats_collector *stats,
                                const struct tn_row_layout *layout,
                                const struct tn_options *options, struct tn_arena *arena,
                                struct tn_err *err);

/* Costs about 2 ns a fixed column, 5 ns a byte column. */
void tn_stats_add(struct tn_stats_collector *stats, struct tn_row row);

/* Bytes of `scratch` that tn_stats_finish takes. */
size_t tn_stats_scratch_size(const struct tn_row_layout *layout, const struct tn_options *options);

/* The value stats of all columns, dense or not, and the key stats of `keys`; `cols` is the list for
 * _VALUE_STATS_COLS. What is made in `arena` takes no more than it has to: a round or a compaction
 * holds that of many files. */
TN_MUST_USE tn_rc tn_stats_finish(const struct tn_stats_collector *stats,
                                  const struct tn_options *options, struct tn_columns keys,
                                  struct tn_arena *arena, struct tn_arena *scratch,
                                  struct tn_stats *values, struct tn_texts *cols,
                                  struct tn_stats *key_stats, struct tn_err *err);

/* First n code points; for the upper bound rounded up. `out` holds 4n + 1 bytes. False: no bound
 * (only U+10FFFF). Both return the size. Exposed for a test with Paimon's own cuts. */
uint32_t tn_stats_cut_min(struct tn_bytes text, uint32_t n, unsigned char *out);
bool tn_stats_cut_max(struct tn_bytes text, uint32_t n, unsigned char *out, uint32_t *size);
