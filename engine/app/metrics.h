/* metrics: the daemon's figures for Prometheus, in its text format 0.0.4.
 *
 * What Paimon has a metric for has its name: paimon_<group>_<name>, both in Prometheus' spelling,
 * maxLevel0FileCount of the group compaction is paimon_compaction_max_level0_file_count, with a
 * label for the table; a unit stands behind it where the name has none (seconds and bytes, whatever
 * Paimon's is), _total behind what only grows. HELP has Paimon's own spelling. Of Paimon's group
 * scan there is nothing, for a writer's files are read once. Everything else is tarn_<of what>_*.
 *
 * A counter's name ends in its unit and _total: tarn_table_flushed_bytes_total. Counters of a table
 * begin anew when it is opened again. Source of names: Paimon 1.3, CommitMetrics,
 * CompactionMetrics, WriterBufferMetric.
 */
#pragma once

#include "app/status.h"

/* A tn_http_page's part. */
bool tn_metrics_part(const struct tn_status_spec *of, uint32_t index, struct tn_buf *out);
