#include "app/metrics_private.h"

enum {
    MS_PER_S = 1000,
    NS_PER_S = 1000000000,
};

/* A table that is shut has none but the keeper's. */
struct table {
    const struct tn_status_spec *of;
    const struct tn_keeper *keeper;
    struct tn_backlog backlog;
    struct tn_table_counts counts;
    struct tn_commit_figures commit;
};

static double seconds(int64_t ns)
{
    return (double)ns / NS_PER_S;
}

static double mean(uint64_t sum, uint64_t count)
{
    return count > 0 ? (double)sum / (double)count : 0;
}

static double age(const struct table *t)
{
    const struct tn_keeper *k = t->keeper;
    return k->items == k->items_cut ? 0
                                    : (double)(tn_metrics_now_ms(t->of) - k->since_ms) / MS_PER_S;
}

static double snapshot_count(const struct table *t)
{
    const struct tn_keeper *k = t->keeper;
    return k->earliest_id > 0 ? (double)(k->latest_id - k->earliest_id + 1) : 0;
}

static double busy(const struct table *t)
{
    return tn_trend_busy_percent(&t->keeper->trend, t->counts.compaction_ns,
                                 tn_metrics_now_ms(t->of));
}

TN_FIGURE(state, table, of->keeper->state)
TN_FIGURE(rows, table, of->keeper->rows)
TN_FIGURE(letters, table, of->keeper->letters)
TN_FIGURE(uncommitted, table, of->keeper->items - of->keeper->items_cut)
TN_FIGURE(uncommitted_age, table, age(of))
TN_FIGURE(commits, table, of->keeper->commits)
TN_FIGURE(committed, table, (double)of->keeper->committed_ms / MS_PER_S)
TN_FIGURE(snapshot_id, table, of->keeper->latest_id)
TN_FIGURE(snapshots, table, snapshot_count(of))
TN_FIGURE(untold, table, of->keeper->untold)
TN_FIGURE(reopened, table, of->keeper->reopened)
TN_FIGURE(spared, table, of->keeper->table &&tn_table_spared(of->keeper->table))
TN_FIGURE(held, table, of->keeper->table &&tn_table_held(of->keeper->table))
TN_FIGURE(converges, table, tn_trend_converges(&of->keeper->trend))
TN_FIGURE(runs, table, of->backlog.runs_max)
TN_FIGURE(runs_stop, table, of->backlog.stop)
TN_FIGURE(runs_over, table, of->backlog.runs_over)
TN_FIGURE(level0_bytes, table, of->backlog.level0_bytes)
TN_FIGURE(flush_stalls, table, of->counts.stalls)
TN_FIGURE(failed, table, of->counts.compactions_failed)
TN_FIGURE(flushes, table, of->counts.flushes)
TN_FIGURE(flushed, table, of->counts.flushed_bytes)
TN_FIGURE(compacted, table, of->counts.compacted_bytes)
TN_FIGURE(compaction_time, table, seconds(of->counts.compaction_ns))

TN_FIGURE(level0_max, table, of->backlog.level0_max)
TN_FIGURE(level0_mean, table, mean(of->backlog.level0_files, of->backlog.buckets))
TN_FIGURE(thread_busy, table, busy(of))
TN_FIGURE(compaction_mean, table,
          of->counts.compactions > 0
              ? seconds(of->counts.compaction_ns) / (double)of->counts.compactions
              : 0)
TN_FIGURE(completed, table, of->counts.compactions)
TN_FIGURE(begun, table, of->counts.compactions_begun)
TN_FIGURE(queued, table, of->backlog.queued)
TN_FIGURE(input_max, table, of->backlog.input_max)
TN_FIGURE(output_max, table, of->backlog.output_max)
TN_FIGURE(input_mean, table, mean(of->backlog.input_sum, of->backlog.compacted))
TN_FIGURE(output_mean, table, mean(of->backlog.output_sum, of->backlog.compacted))
TN_FIGURE(size_max, table, of->backlog.size_max)
TN_FIGURE(size_mean, table, mean(of->backlog.size_sum, of->backlog.buckets))

TN_FIGURE(commit_time, table, seconds(of->commit.ns))
TN_FIGURE(attempts, table, of->commit.attempts)
TN_FIGURE(added, table, of->commit.files_added)
TN_FIGURE(deleted, table, of->commit.files_deleted)
TN_FIGURE(appended, table, of->commit.files_appended)
TN_FIGURE(compacted_files, table, of->commit.files_compacted)
TN_FIGURE(changelogs, table, of->commit.changelogs_appended)
TN_FIGURE(compacted_changelogs, table, of->commit.changelogs_compacted)
TN_FIGURE(generated, table, of->commit.snapshots)
TN_FIGURE(delta_rows, table, of->commit.rows_appended)
TN_FIGURE(changelog_rows, table, of->commit.changelog_rows_appended)
TN_FIGURE(compacted_rows, table, of->commit.rows_compacted)
TN_FIGURE(compacted_changelog_rows, table, of->commit.changelog_rows_compacted)
TN_FIGURE(input_size, table, of->commit.input_bytes)
TN_FIGURE(output_size, table, of->commit.output_bytes)
TN_FIGURE(commit_times, table, seconds(of->counts.commit_ns))

TN_FIGURE(writers, table, of->backlog.buckets)
TN_FIGURE(buffer_used, table, of->backlog.pages_used)
TN_FIGURE(buffer_size, table, of->backlog.pages_size)

struct table_figure {
    struct tn_metrics_heading heading;
    double (*of)(const struct table *table);
};

static const struct table_figure of_tables[] = {
    {{"tarn_table_state", TN_GAUGE, "0 shut, 1 reads from the journal, 2 live"}, state},
    {{"tarn_table_rows_total", TN_COUNTER, "that were put"}, rows},
    {{"tarn_table_letters_total", TN_COUNTER, "dead letters of records"}, letters},
    {{"tarn_table_uncommitted_rows", TN_GAUGE, "rows and letters of the open round"}, uncommitted},
    {{"tarn_table_uncommitted_age_seconds", TN_GAUGE, "of the oldest of them"}, uncommitted_age},
    {{"tarn_table_commits_total", TN_COUNTER, "rounds that made a snapshot"}, commits},
    {{"tarn_table_last_commit_timestamp_seconds", TN_GAUGE, "since 1970; 0: none yet"}, committed},
    {{"tarn_table_snapshot_id", TN_GAUGE, "the newest"}, snapshot_id},
    {{"tarn_table_kept_snapshots", TN_GAUGE, "0: not known before a commit"}, snapshots},
    {{"tarn_table_untold_commits", TN_GAUGE, "with rows, since changes were told last"}, untold},
    {{"tarn_table_reopens_total", TN_COUNTER, "times that it was opened again"}, reopened},
    {{"tarn_table_sorted_runs", TN_GAUGE, "of the open bucket that has most"}, runs},
    {{"tarn_table_stop_sorted_runs", TN_GAUGE, "at which flushes wait; 0: never"}, runs_stop},
    {{"tarn_table_overdue_sorted_runs", TN_GAUGE,
      "above the compaction trigger, of all its buckets"},
     runs_over},
    {{"tarn_table_level0_bytes", TN_GAUGE, "of all open buckets: not merged yet"}, level0_bytes},
    {{"tarn_table_compaction_converges", TN_GAUGE,
      "0: for minutes flushes waited, or the least overdue runs of a minute grew"},
     converges},
    {{"tarn_table_compaction_spared", TN_GAUGE, "1: compaction waits for the wear budget"}, spared},
    {{"tarn_table_compaction_held", TN_GAUGE, "1: large compactions wait for the off-peak hours"},
     held},
    {{"tarn_table_stalls_total", TN_COUNTER, "flushes that waited for compaction"}, flush_stalls},
    {{"tarn_table_failed_compactions_total", TN_COUNTER, "tries that came to nothing"}, failed},
    {{"tarn_table_flushes_total", TN_COUNTER, "memory that became files"}, flushes},
    {{"tarn_table_flushed_bytes_total", TN_COUNTER, "that they wrote"}, flushed},
    {{"tarn_table_compacted_bytes_total", TN_COUNTER, "that compactions wrote"}, compacted},
    {{"tarn_table_compaction_seconds_total", TN_COUNTER, "that workers spent on them"},
     compaction_time},

    {{"paimon_compaction_max_level0_file_count", TN_GAUGE, "maxLevel0FileCount, of open buckets"},
     level0_max},
    {{"paimon_compaction_avg_level0_file_count", TN_GAUGE, "avgLevel0FileCount, of open buckets"},
     level0_mean},
    {{"paimon_compaction_compaction_thread_busy", TN_GAUGE,
      "compactionThreadBusy, percent of the last minute or two"},
     thread_busy},
    {{"paimon_compaction_avg_compaction_time_seconds", TN_GAUGE,
      "avgCompactionTime, of all since it was opened"},
     compaction_mean},
    {{"paimon_compaction_compaction_completed_count_total", TN_COUNTER, "compactionCompletedCount"},
     completed},
    {{"paimon_compaction_compaction_total_count_total", TN_COUNTER,
      "compactionTotalCount, those that were begun"},
     begun},
    {{"paimon_compaction_compaction_queued_count", TN_GAUGE,
      "compactionQueuedCount, buckets in which one runs or is overdue"},
     queued},
    {{"paimon_compaction_max_compaction_input_size_bytes", TN_GAUGE,
      "maxCompactionInputSize, of the last one of each open bucket"},
     input_max},
    {{"paimon_compaction_max_compaction_output_size_bytes", TN_GAUGE,
      "maxCompactionOutputSize, likewise"},
     output_max},
    {{"paimon_compaction_avg_compaction_input_size_bytes", TN_GAUGE,
      "avgCompactionInputSize, likewise"},
     input_mean},
    {{"paimon_compaction_avg_compaction_output_size_bytes", TN_GAUGE,
      "avgCompactionOutputSize, likewise"},
     output_mean},
    {{"paimon_compaction_max_total_file_size_bytes", TN_GAUGE, "maxTotalFileSize, of open buckets"},
     size_max},
    {{"paimon_compaction_avg_total_file_size_bytes", TN_GAUGE, "avgTotalFileSize, of open buckets"},
     size_mean},

    {{"paimon_commit_last_commit_duration_seconds", TN_GAUGE, "lastCommitDuration"}, commit_time},
    {{"paimon_commit_last_commit_attempts", TN_GAUGE, "lastCommitAttempts"}, attempts},
    {{"paimon_commit_last_table_files_added", TN_GAUGE, "lastTableFilesAdded"}, added},
    {{"paimon_commit_last_table_files_deleted", TN_GAUGE, "lastTableFilesDeleted"}, deleted},
    {{"paimon_commit_last_table_files_appended", TN_GAUGE, "lastTableFilesAppended"}, appended},
    {{"paimon_commit_last_table_files_commit_compacted", TN_GAUGE, "lastTableFilesCommitCompacted"},
     compacted_files},
    {{"paimon_commit_last_changelog_files_appended", TN_GAUGE, "lastChangelogFilesAppended"},
     changelogs},
    {{"paimon_commit_last_changelog_file_commit_compacted", TN_GAUGE,
      "lastChangelogFileCommitCompacted"},
     compacted_changelogs},
    {{"paimon_commit_last_generated_snapshots", TN_GAUGE, "lastGeneratedSnapshots"}, generated},
    {{"paimon_commit_last_delta_records_appended", TN_GAUGE, "lastDeltaRecordsAppended"},
     delta_rows},
    {{"paimon_commit_last_changelog_records_appended", TN_GAUGE, "lastChangelogRecordsAppended"},
     changelog_rows},
    {{"paimon_commit_last_delta_records_commit_compacted", TN_GAUGE,
      "lastDeltaRecordsCommitCompacted"},
     compacted_rows},
    {{"paimon_commit_last_changelog_records_commit_compacted", TN_GAUGE,
      "lastChangelogRecordsCommitCompacted"},
     compacted_changelog_rows},
    {{"paimon_commit_last_compaction_input_file_size_bytes", TN_GAUGE,
      "lastCompactionInputFileSize"},
     input_size},
    {{"paimon_commit_last_compaction_output_file_size_bytes", TN_GAUGE,
      "lastCompactionOutputFileSize"},
     output_size},
    {{"paimon_commit_commit_duration_seconds", TN_SUMMARY, "commitDuration, since it was opened"},
     commit_times},

    {{"paimon_writer_buffer_num_writers", TN_GAUGE, "numWriters, open buckets"}, writers},
    {{"paimon_writer_buffer_used_write_buffer_size_bytes", TN_GAUGE, "usedWriteBufferSizeByte"},
     buffer_used},
    {{"paimon_writer_buffer_total_write_buffer_size_bytes", TN_GAUGE, "totalWriteBufferSizeByte"},
     buffer_size},
};
const uint32_t tn_metrics_table_count = sizeof of_tables / sizeof of_tables[0];

static void say_line(const struct table *t, const char *name, const char *end, double value,
                     struct tn_buf *out)
{
    tn_buf_format(out, "%s%s", name, end);
    tn_metrics_label(out, "table", t->keeper->name);
    tn_metrics_value(out, value);
}

static void look(struct table *t)
{
    const struct tn_table *table = t->keeper->table;
    if (table) {
        tn_table_backlog(table, &t->backlog);
        t->counts = *tn_table_counts(table);
        t->commit = *tn_table_last_commit(table);
    }
}

void tn_metrics_tables(const struct tn_status_spec *of, uint32_t number, uint32_t first,
                       struct tn_buf *out)
{
    const struct tn_intake_spec *in = &of->intake->spec;
    const struct table_figure *figure = &of_tables[number];
    const char *name = figure->heading.name;
    bool summary = figure->heading.kind == TN_SUMMARY;
    if (first == 0) {
        tn_metrics_heading(&figure->heading, out);
    }
    for (uint32_t i = first; i < in->keeper_count && i < first + TN_METRICS_LINES; i++) {
        struct table t = {.of = of, .keeper = &in->keepers[i]};
        look(&t);
        say_line(&t, name, summary ? "_sum" : "", figure->of(&t), out);
        if (summary) {
            say_line(&t, name, "_count", (double)t.counts.commits, out);
        }
    }
}
