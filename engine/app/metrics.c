#include "app/metrics.h"

#include <inttypes.h>
#include <string.h>

#include "app/version.h"
#include "schema/value.h"

enum {
    LINES_A_PART = 4, /* with the longest names */
    MS_PER_S = 1000,
    NS_PER_MS = 1000000,
    NS_PER_S = 1000000000,
};

enum kind { COUNTER, GAUGE, SUMMARY, HISTOGRAM };

struct heading {
    const char *name;
    enum kind kind;
    const char *help;
};

static void say_heading(const struct heading *heading, struct tn_buf *out)
{
    static const char *const kinds[] = {"counter", "gauge", "summary", "histogram"};
    tn_buf_format(out, "# HELP %s %s\n# TYPE %s %s\n", heading->name, heading->help, heading->name,
                  kinds[heading->kind]);
}

static void say_value(struct tn_buf *out, double value)
{
    tn_buf_format(out, " %.15g\n", value);
}

/* What a configuration names has any bytes. */
static void say_text(struct tn_buf *out, const char *text)
{
    struct tn_bytes bytes = tn_bytes_of(text);
    size_t size = tn_utf8_span(bytes);
    for (size_t i = 0; i < size; i++) {
        const char *escaped = text[i] == '\n'   ? "\\n"
                              : text[i] == '"'  ? "\\\""
                              : text[i] == '\\' ? "\\\\"
                                                : NULL;
        if (escaped) {
            tn_buf_text(out, escaped);
        } else {
            tn_buf_byte(out, (unsigned char)text[i]);
        }
    }
}

static void say_label(struct tn_buf *out, const char *label, const char *text)
{
    tn_buf_format(out, "{%s=\"", label);
    say_text(out, text);
    tn_buf_text(out, "\"}");
}

static int64_t now_ms(const struct tn_status_spec *of)
{
    struct tn_clock *clock = of->intake->spec.env->clock;
    return clock->vtable->monotonic_ns(clock) / NS_PER_MS;
}

/* ---- of the process ---- */

#define OF(function, type, figure)                \
    static double function(const struct type *of) \
    {                                             \
        return (double)(figure);                  \
    }

static double began(const struct tn_status_spec *of)
{
    struct tn_clock *clock = of->intake->spec.env->clock;
    int64_t up_ms = now_ms(of) - of->begun_ms;
    return (double)(clock->vtable->now_ms(clock) - up_ms) / MS_PER_S;
}

static double counted(const uint64_t *count)
{
    return (double)__atomic_load_n(count, __ATOMIC_RELAXED);
}

static const struct tn_io_counts *io_of(const struct tn_status_spec *of)
{
    return &of->intake->spec.env->io->counts;
}

OF(health, tn_status_spec, tn_status_health(of))
OF(ready, tn_status_spec, tn_intake_ready(of->intake) && !of->intake->stopping)
OF(reload_trouble, tn_status_spec, tn_status_reload_trouble(of->reload) != NULL)
OF(io_read, tn_status_spec, counted(&io_of(of)->bytes_read))
OF(io_written, tn_status_spec, counted(&io_of(of)->bytes_written))
OF(io_syncs, tn_status_spec, counted(&io_of(of)->syncs))
OF(journal_size, tn_status_spec, tn_journal_size(of->intake->journal))
OF(journal_size_max, tn_status_spec, of->config->journal.size_max)
OF(journal_full, tn_status_spec, tn_journal_full(of->intake->journal))
OF(journal_unsynced, tn_status_spec,
   tn_journal_next(of->intake->journal) - tn_journal_durable(of->intake->journal))
OF(messages, tn_status_spec, of->intake->counts.messages)
OF(refused, tn_status_spec, of->intake->counts.refused)
OF(waits, tn_status_spec, of->intake->counts.waits)
OF(replayed, tn_status_spec, of->intake->counts.replayed)
OF(stalls, tn_status_spec, of->pulse->stalls)
OF(longest_stall, tn_status_spec, (double)of->pulse->longest_ns / NS_PER_S)

struct process_figure {
    struct heading heading;
    double (*of)(const struct tn_status_spec *of);
};

static const struct process_figure of_process[] = {
    {{"process_start_time_seconds", GAUGE, "since 1970, by the clock as it is now"}, began},
    {{"tarn_health_state", GAUGE, "0 ok, 1 degraded, 2 failing"}, health},
    {{"tarn_ready", GAUGE, "1: tables have what the journal had for them"}, ready},
    {{"tarn_reload_trouble", GAUGE, "1: the last reload was refused"}, reload_trouble},
    {{"tarn_io_read_bytes_total", COUNTER, "of files"}, io_read},
    {{"tarn_io_written_bytes_total", COUNTER, "to files, the journal among them"}, io_written},
    {{"tarn_io_syncs_total", COUNTER, "barriers"}, io_syncs},
    {{"tarn_journal_bytes", GAUGE, "on disk"}, journal_size},
    {{"tarn_journal_max_bytes", GAUGE, "that it may have"}, journal_size_max},
    {{"tarn_journal_full", GAUGE, "1: only a commit makes room"}, journal_full},
    {{"tarn_journal_unsynced_messages", GAUGE, "that nobody was answered"}, journal_unsynced},
    {{"tarn_messages_total", COUNTER, "that the hub took"}, messages},
    {{"tarn_refused_messages_total", COUNTER, "for good, or since a table takes nothing"}, refused},
    {{"tarn_waited_offers_total", COUNTER, "offers that found no room"}, waits},
    {{"tarn_replayed_rows_total", COUNTER, "rows and letters that came from the journal"},
     replayed},
    {{"tarn_loop_stalls_total", COUNTER, "turns in which the loop was away for over 50 ms"},
     stalls},
    {{"tarn_loop_longest_stall_seconds", GAUGE, "the longest time that it was away"},
     longest_stall},
};
enum { PROCESS_COUNT = sizeof of_process / sizeof of_process[0] };

static void say_build(struct tn_buf *out)
{
    static const struct heading heading = {"tarn_build_info", GAUGE, "always 1"};
    say_heading(&heading, out);
    tn_buf_text(out, heading.name);
    say_label(out, "version", TN_VERSION);
    say_value(out, 1);
}

static void say_pulse(const struct tn_pulse *pulse, struct tn_buf *out)
{
    static const struct heading heading = {
        "tarn_loop_away_seconds", HISTOGRAM,
        "turns of the loop by how long it was away from its sockets"};
    uint64_t count = 0;
    say_heading(&heading, out);
    for (int i = 0; i <= TN_PULSE_BOUNDS; i++) {
        count += pulse->within[i];
        if (i < TN_PULSE_BOUNDS) {
            tn_buf_format(out, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", heading.name,
                          (double)tn_pulse_bounds_ms[i] / MS_PER_S, count);
        }
    }
    tn_buf_format(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum %.9f\n%s_count %" PRIu64 "\n",
                  heading.name, count, heading.name, (double)pulse->away_ns / NS_PER_S,
                  heading.name, count);
}

/* ---- of the disk ---- */

static double disk_free(const struct tn_reserve *of)
{
    uint64_t left;
    (void)tn_reserve_left(of, &left);
    return (double)left;
}

OF(disk_reserve, tn_reserve, of->bytes)
OF(disk_low, tn_reserve, of->low)

struct disk_figure {
    struct heading heading;
    double (*of)(const struct tn_reserve *reserve);
    bool asked; /* a disk that doesn't say what it has is no empty one */
};

static const struct disk_figure of_disk[] = {
    {{"tarn_disk_reserve_bytes", GAUGE, "that are to be kept free"}, disk_reserve, false},
    {{"tarn_disk_free_bytes", GAUGE, "when it was asked last, less what was written since"},
     disk_free,
     true},
    {{"tarn_disk_low", GAUGE, "1: no row is taken, for less than the reserve is free"},
     disk_low,
     false},
};
enum { DISK_COUNT = sizeof of_disk / sizeof of_disk[0] };

static void say_disk(const struct tn_reserve *reserve, const struct disk_figure *figure,
                     struct tn_buf *out)
{
    if (reserve->known || !figure->asked) {
        say_heading(&figure->heading, out);
        tn_buf_text(out, figure->heading.name);
        say_value(out, figure->of(reserve));
    }
}

/* ---- of the wear budget ---- */

OF(wear_budget, tn_wear, of->budget)
OF(wear_left, tn_wear, of->left > 0 ? of->left : 0)
OF(wear_overdraft, tn_wear, tn_wear_overdraft(of))

struct wear_figure {
    struct heading heading;
    double (*of)(const struct tn_wear *wear);
};

static const struct wear_figure of_wear[] = {
    {{"tarn_wear_budget_bytes", GAUGE, "that may be written a day"}, wear_budget},
    {{"tarn_wear_left_bytes", GAUGE, "of it, now"}, wear_left},
    {{"tarn_wear_overdraft_bytes", GAUGE, "written without it, not paid back yet"}, wear_overdraft},
};
enum { WEAR_COUNT = sizeof of_wear / sizeof of_wear[0] };

static void say_wear(const struct tn_wear *wear, const struct wear_figure *figure,
                     struct tn_buf *out)
{
    if (wear) {
        say_heading(&figure->heading, out);
        tn_buf_text(out, figure->heading.name);
        say_value(out, figure->of(wear));
    }
}

/* ---- of parts of the memory ---- */

OF(part_size, tn_status_part, of->there ? of->size : 0)
OF(part_used, tn_status_part, of->used)
OF(part_peak, tn_status_part, of->peak)

struct part_figure {
    struct heading heading;
    double (*of)(const struct tn_status_part *part);
};

static const struct part_figure of_parts[] = {
    {{"tarn_memory_size_bytes", GAUGE, "of a part of the memory; 0: it lies in another"},
     part_size},
    {{"tarn_memory_used_bytes", GAUGE, "of it"}, part_used},
    {{"tarn_memory_peak_bytes", GAUGE, "of it, at the most"}, part_peak},
};
enum { PARTS_COUNT = sizeof of_parts / sizeof of_parts[0] };

static void say_parts(const struct tn_status_spec *of, const struct part_figure *figure,
                      struct tn_buf *out)
{
    say_heading(&figure->heading, out);
    for (uint32_t i = 0; i < of->budget->part_count; i++) {
        struct tn_status_part part = tn_status_part(of, i);
        tn_buf_text(out, figure->heading.name);
        say_label(out, "part", part.name);
        say_value(out, figure->of(&part));
    }
}

/* ---- of sources ---- */

OF(source_messages, tn_source_status, of->messages)
OF(source_rows, tn_source_status, of->rows)
OF(source_letters, tn_source_status, of->dead)
OF(source_refused, tn_source_status, of->refused)
OF(source_waits, tn_source_status, of->waits)
OF(source_trouble, tn_source_status, of->trouble != NULL)
OF(source_bytes, tn_source_status, of->bytes)
OF(source_committed, tn_source_status, of->bytes_committed)

struct source_figure {
    struct heading heading;
    double (*of)(const struct tn_source_status *source);
    bool of_files; /* and of no other */
};

static const struct source_figure of_sources[] = {
    {{"tarn_source_messages_total", COUNTER, "that were taken of it"}, source_messages, false},
    {{"tarn_source_rows_total", COUNTER, "in them"}, source_rows, false},
    {{"tarn_source_letters_total", COUNTER, "dead letters of it"}, source_letters, false},
    {{"tarn_source_refused_messages_total", COUNTER, "for good"}, source_refused, false},
    {{"tarn_source_waits", GAUGE, "1: there is no room for it"}, source_waits, false},
    {{"tarn_source_trouble", GAUGE, "1: nothing comes of it"}, source_trouble, false},
    {{"tarn_source_read_bytes", GAUGE, "of a file and those before it"}, source_bytes, true},
    {{"tarn_source_committed_bytes", GAUGE, "of them, in snapshots"}, source_committed, true},
};
enum { SOURCES_COUNT = sizeof of_sources / sizeof of_sources[0] };

struct some_sources {
    const struct source_figure *figure;
    uint32_t first;
    uint32_t at;
    struct tn_buf *out;
};

static void say_source(void *user, const struct tn_source_status *source)
{
    struct some_sources *some = user;
    uint32_t at = some->at++;
    bool wanted = source->is_file || !some->figure->of_files;
    if (wanted && at >= some->first && at < some->first + LINES_A_PART) {
        tn_buf_text(some->out, some->figure->heading.name);
        say_label(some->out, "source", source->name);
        say_value(some->out, some->figure->of(source));
    }
}

/* A figure of some sources, with its heading in front of the first. */
static void say_sources(const struct tn_status_spec *of, const struct source_figure *figure,
                        uint32_t first, struct tn_buf *out)
{
    struct some_sources some = {.figure = figure, .first = first, .out = out};
    if (first == 0) {
        say_heading(&figure->heading, out);
    }
    tn_sources_each(of->sources, say_source, &some);
}

/* ---- of tables ---- */

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
    return k->items == k->items_cut ? 0 : (double)(now_ms(t->of) - k->since_ms) / MS_PER_S;
}

static double snapshot_count(const struct table *t)
{
    const struct tn_keeper *k = t->keeper;
    return k->earliest_id > 0 ? (double)(k->latest_id - k->earliest_id + 1) : 0;
}

static double busy(const struct table *t)
{
    return tn_trend_busy_percent(&t->keeper->trend, t->counts.compaction_ns, now_ms(t->of));
}

OF(state, table, of->keeper->state)
OF(rows, table, of->keeper->rows)
OF(letters, table, of->keeper->letters)
OF(uncommitted, table, of->keeper->items - of->keeper->items_cut)
OF(uncommitted_age, table, age(of))
OF(commits, table, of->keeper->commits)
OF(committed, table, (double)of->keeper->committed_ms / MS_PER_S)
OF(snapshot_id, table, of->keeper->latest_id)
OF(snapshots, table, snapshot_count(of))
OF(untold, table, of->keeper->untold)
OF(reopened, table, of->keeper->reopened)
OF(spared, table, of->keeper->table &&tn_table_spared(of->keeper->table))
OF(converges, table, tn_trend_converges(&of->keeper->trend))
OF(runs, table, of->backlog.runs_max)
OF(runs_stop, table, of->backlog.stop)
OF(runs_over, table, of->backlog.runs_over)
OF(level0_bytes, table, of->backlog.level0_bytes)
OF(flush_stalls, table, of->counts.stalls)
OF(failed, table, of->counts.compactions_failed)
OF(flushes, table, of->counts.flushes)
OF(flushed, table, of->counts.flushed_bytes)
OF(compacted, table, of->counts.compacted_bytes)
OF(compaction_time, table, seconds(of->counts.compaction_ns))

OF(level0_max, table, of->backlog.level0_max)
OF(level0_mean, table, mean(of->backlog.level0_files, of->backlog.buckets))
OF(thread_busy, table, busy(of))
OF(compaction_mean, table,
   of->counts.compactions > 0 ? seconds(of->counts.compaction_ns) / (double)of->counts.compactions
                              : 0)
OF(completed, table, of->counts.compactions)
OF(begun, table, of->counts.compactions_begun)
OF(queued, table, of->backlog.queued)
OF(input_max, table, of->backlog.input_max)
OF(output_max, table, of->backlog.output_max)
OF(input_mean, table, mean(of->backlog.input_sum, of->backlog.compacted))
OF(output_mean, table, mean(of->backlog.output_sum, of->backlog.compacted))
OF(size_max, table, of->backlog.size_max)
OF(size_mean, table, mean(of->backlog.size_sum, of->backlog.buckets))

OF(commit_time, table, seconds(of->commit.ns))
OF(attempts, table, of->commit.attempts)
OF(added, table, of->commit.files_added)
OF(deleted, table, of->commit.files_deleted)
OF(appended, table, of->commit.files_appended)
OF(compacted_files, table, of->commit.files_compacted)
OF(changelogs, table, of->commit.changelogs_appended)
OF(compacted_changelogs, table, of->commit.changelogs_compacted)
OF(generated, table, of->commit.snapshots)
OF(delta_rows, table, of->commit.rows_appended)
OF(changelog_rows, table, of->commit.changelog_rows_appended)
OF(compacted_rows, table, of->commit.rows_compacted)
OF(compacted_changelog_rows, table, of->commit.changelog_rows_compacted)
OF(input_size, table, of->commit.input_bytes)
OF(output_size, table, of->commit.output_bytes)
OF(commit_times, table, seconds(of->counts.commit_ns))

OF(writers, table, of->backlog.buckets)
OF(buffer_used, table, of->backlog.pages_used)
OF(buffer_size, table, of->backlog.pages_size)

struct table_figure {
    struct heading heading;
    double (*of)(const struct table *table);
};

static const struct table_figure of_tables[] = {
    {{"tarn_table_state", GAUGE, "0 shut, 1 reads from the journal, 2 live"}, state},
    {{"tarn_table_rows_total", COUNTER, "that were put"}, rows},
    {{"tarn_table_letters_total", COUNTER, "dead letters of records"}, letters},
    {{"tarn_table_uncommitted_rows", GAUGE, "rows and letters of the open round"}, uncommitted},
    {{"tarn_table_uncommitted_age_seconds", GAUGE, "of the oldest of them"}, uncommitted_age},
    {{"tarn_table_commits_total", COUNTER, "rounds that made a snapshot"}, commits},
    {{"tarn_table_last_commit_timestamp_seconds", GAUGE, "since 1970; 0: none yet"}, committed},
    {{"tarn_table_snapshot_id", GAUGE, "the newest"}, snapshot_id},
    {{"tarn_table_kept_snapshots", GAUGE, "0: not known before a commit"}, snapshots},
    {{"tarn_table_untold_commits", GAUGE, "with rows, since changes were told last"}, untold},
    {{"tarn_table_reopens_total", COUNTER, "times that it was opened again"}, reopened},
    {{"tarn_table_sorted_runs", GAUGE, "of the open bucket that has most"}, runs},
    {{"tarn_table_stop_sorted_runs", GAUGE, "at which flushes wait; 0: never"}, runs_stop},
    {{"tarn_table_overdue_sorted_runs", GAUGE, "above the compaction trigger, of all its buckets"},
     runs_over},
    {{"tarn_table_level0_bytes", GAUGE, "of all open buckets: not merged yet"}, level0_bytes},
    {{"tarn_table_compaction_converges", GAUGE,
      "0: for minutes flushes waited, or the least overdue runs of a minute grew"},
     converges},
    {{"tarn_table_compaction_spared", GAUGE, "1: compaction waits for the wear budget"}, spared},
    {{"tarn_table_stalls_total", COUNTER, "flushes that waited for compaction"}, flush_stalls},
    {{"tarn_table_failed_compactions_total", COUNTER, "tries that came to nothing"}, failed},
    {{"tarn_table_flushes_total", COUNTER, "memory that became files"}, flushes},
    {{"tarn_table_flushed_bytes_total", COUNTER, "that they wrote"}, flushed},
    {{"tarn_table_compacted_bytes_total", COUNTER, "that compactions wrote"}, compacted},
    {{"tarn_table_compaction_seconds_total", COUNTER, "that workers spent on them"},
     compaction_time},

    {{"paimon_compaction_max_level0_file_count", GAUGE, "maxLevel0FileCount, of open buckets"},
     level0_max},
    {{"paimon_compaction_avg_level0_file_count", GAUGE, "avgLevel0FileCount, of open buckets"},
     level0_mean},
    {{"paimon_compaction_compaction_thread_busy", GAUGE,
      "compactionThreadBusy, percent of the last minute or two"},
     thread_busy},
    {{"paimon_compaction_avg_compaction_time_seconds", GAUGE,
      "avgCompactionTime, of all since it was opened"},
     compaction_mean},
    {{"paimon_compaction_compaction_completed_count_total", COUNTER, "compactionCompletedCount"},
     completed},
    {{"paimon_compaction_compaction_total_count_total", COUNTER,
      "compactionTotalCount, those that were begun"},
     begun},
    {{"paimon_compaction_compaction_queued_count", GAUGE,
      "compactionQueuedCount, buckets in which one runs or is overdue"},
     queued},
    {{"paimon_compaction_max_compaction_input_size_bytes", GAUGE,
      "maxCompactionInputSize, of the last one of each open bucket"},
     input_max},
    {{"paimon_compaction_max_compaction_output_size_bytes", GAUGE,
      "maxCompactionOutputSize, likewise"},
     output_max},
    {{"paimon_compaction_avg_compaction_input_size_bytes", GAUGE,
      "avgCompactionInputSize, likewise"},
     input_mean},
    {{"paimon_compaction_avg_compaction_output_size_bytes", GAUGE,
      "avgCompactionOutputSize, likewise"},
     output_mean},
    {{"paimon_compaction_max_total_file_size_bytes", GAUGE, "maxTotalFileSize, of open buckets"},
     size_max},
    {{"paimon_compaction_avg_total_file_size_bytes", GAUGE, "avgTotalFileSize, of open buckets"},
     size_mean},

    {{"paimon_commit_last_commit_duration_seconds", GAUGE, "lastCommitDuration"}, commit_time},
    {{"paimon_commit_last_commit_attempts", GAUGE, "lastCommitAttempts"}, attempts},
    {{"paimon_commit_last_table_files_added", GAUGE, "lastTableFilesAdded"}, added},
    {{"paimon_commit_last_table_files_deleted", GAUGE, "lastTableFilesDeleted"}, deleted},
    {{"paimon_commit_last_table_files_appended", GAUGE, "lastTableFilesAppended"}, appended},
    {{"paimon_commit_last_table_files_commit_compacted", GAUGE, "lastTableFilesCommitCompacted"},
     compacted_files},
    {{"paimon_commit_last_changelog_files_appended", GAUGE, "lastChangelogFilesAppended"},
     changelogs},
    {{"paimon_commit_last_changelog_file_commit_compacted", GAUGE,
      "lastChangelogFileCommitCompacted"},
     compacted_changelogs},
    {{"paimon_commit_last_generated_snapshots", GAUGE, "lastGeneratedSnapshots"}, generated},
    {{"paimon_commit_last_delta_records_appended", GAUGE, "lastDeltaRecordsAppended"}, delta_rows},
    {{"paimon_commit_last_changelog_records_appended", GAUGE, "lastChangelogRecordsAppended"},
     changelog_rows},
    {{"paimon_commit_last_delta_records_commit_compacted", GAUGE,
      "lastDeltaRecordsCommitCompacted"},
     compacted_rows},
    {{"paimon_commit_last_changelog_records_commit_compacted", GAUGE,
      "lastChangelogRecordsCommitCompacted"},
     compacted_changelog_rows},
    {{"paimon_commit_last_compaction_input_file_size_bytes", GAUGE, "lastCompactionInputFileSize"},
     input_size},
    {{"paimon_commit_last_compaction_output_file_size_bytes", GAUGE,
      "lastCompactionOutputFileSize"},
     output_size},
    {{"paimon_commit_commit_duration_seconds", SUMMARY, "commitDuration, since it was opened"},
     commit_times},

    {{"paimon_writer_buffer_num_writers", GAUGE, "numWriters, open buckets"}, writers},
    {{"paimon_writer_buffer_used_write_buffer_size_bytes", GAUGE, "usedWriteBufferSizeByte"},
     buffer_used},
    {{"paimon_writer_buffer_total_write_buffer_size_bytes", GAUGE, "totalWriteBufferSizeByte"},
     buffer_size},
};
enum { TABLES_COUNT = sizeof of_tables / sizeof of_tables[0] };

static void say_line(const struct table *t, const char *name, const char *end, double value,
                     struct tn_buf *out)
{
    tn_buf_format(out, "%s%s", name, end);
    say_label(out, "table", t->keeper->name);
    say_value(out, value);
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

/* A figure of some tables, with its heading in front of the first. */
static void say_tables(const struct tn_status_spec *of, const struct table_figure *figure,
                       uint32_t first, struct tn_buf *out)
{
    const struct tn_intake_spec *in = &of->intake->spec;
    const char *name = figure->heading.name;
    bool summary = figure->heading.kind == SUMMARY;
    if (first == 0) {
        say_heading(&figure->heading, out);
    }
    for (uint32_t i = first; i < in->keeper_count && i < first + LINES_A_PART; i++) {
        struct table t = {.of = of, .keeper = &in->keepers[i]};
        look(&t);
        say_line(&t, name, summary ? "_sum" : "", figure->of(&t), out);
        if (summary) {
            say_line(&t, name, "_count", (double)t.counts.commits, out);
        }
    }
}

/* ---- of lakes ---- */

struct lake_figure {
    struct heading heading;
    double (*of)(const struct tn_lakes_lake *lake);
};

OF(lake_uploads, tn_lakes_lake, of->uploads)
OF(lake_failures, tn_lakes_lake, of->failures)
OF(lake_gets, tn_lakes_lake, of->counts.requests[TN_TARGET_GET])
OF(lake_heads, tn_lakes_lake, of->counts.requests[TN_TARGET_HEAD])
OF(lake_puts, tn_lakes_lake, of->counts.requests[TN_TARGET_PUT])
OF(lake_lists, tn_lakes_lake, of->counts.requests[TN_TARGET_LIST])
OF(lake_deletes, tn_lakes_lake, of->counts.requests[TN_TARGET_DELETE])
OF(lake_bytes, tn_lakes_lake, of->counts.bytes_sent)
OF(lake_received, tn_lakes_lake, of->counts.bytes_received)
OF(lake_day, tn_lakes_lake, of->spent.day_bytes)
OF(lake_month, tn_lakes_lake, of->spent.month_bytes)

static const struct lake_figure of_lakes[] = {
    {{"tarn_lake_uploads_total", COUNTER, "that brought a snapshot"}, lake_uploads},
    {{"tarn_lake_failed_uploads_total", COUNTER, "that are tried again"}, lake_failures},
    {{"tarn_lake_get_requests_total", COUNTER, "of an object store, by verb"}, lake_gets},
    {{"tarn_lake_head_requests_total", COUNTER, "likewise"}, lake_heads},
    {{"tarn_lake_put_requests_total", COUNTER, "likewise"}, lake_puts},
    {{"tarn_lake_list_requests_total", COUNTER, "likewise"}, lake_lists},
    {{"tarn_lake_delete_requests_total", COUNTER, "likewise"}, lake_deletes},
    {{"tarn_lake_sent_bytes_total", COUNTER, "of files, also of tries that failed"}, lake_bytes},
    {{"tarn_lake_received_bytes_total", COUNTER, "likewise"}, lake_received},
    {{"tarn_lake_day_sent_bytes", GAUGE, "today, by the local clock"}, lake_day},
    {{"tarn_lake_month_sent_bytes", GAUGE, "this month, likewise"}, lake_month},
};
enum { LAKES_COUNT = sizeof of_lakes / sizeof of_lakes[0] };

static void say_lakes(const struct tn_lakes *lakes, const struct lake_figure *figure,
                      uint32_t first, struct tn_buf *out)
{
    if (first == 0 && lakes->lake_count > 0) {
        say_heading(&figure->heading, out);
    }
    for (uint32_t i = first; i < lakes->lake_count && i < first + LINES_A_PART; i++) {
        tn_buf_text(out, figure->heading.name);
        say_label(out, "lake", lakes->lakes[i].config->name);
        say_value(out, figure->of(&lakes->lakes[i]));
    }
}

struct mirror {
    const struct tn_lakes *lakes;
    const struct tn_lakes_mirror *mirror;
};

struct mirror_figure {
    struct heading heading;
    double (*of)(const struct mirror *mirror);
};

static double mirror_trouble(const struct mirror *of)
{
    char text[TN_ERR_TEXT_SIZE];
    return tn_lakes_trouble(of->lakes, of->mirror, text, sizeof text) ? 1 : 0;
}

OF(mirror_snapshot, mirror, of->mirror->have_id > 0 ? of->mirror->have_id : 0)
OF(mirror_behind, mirror, tn_lakes_lag(of->mirror))
OF(mirror_bytes, mirror, of->mirror->bytes + of->mirror->after_bytes)
OF(mirror_age, mirror, (double)tn_lakes_age_ms(of->lakes, of->mirror) / MS_PER_S)

static const struct mirror_figure of_mirrors[] = {
    {{"tarn_mirror_snapshot_id", GAUGE, "the newest that the lake has"}, mirror_snapshot},
    {{"tarn_mirror_behind_snapshots", GAUGE, "that the lake lacks, and that can't expire"},
     mirror_behind},
    {{"tarn_mirror_behind_bytes", GAUGE, "about: what the table has written since, from the start"},
     mirror_bytes},
    {{"tarn_mirror_behind_seconds", GAUGE, "since the oldest of them, likewise"}, mirror_age},
    {{"tarn_mirror_trouble", GAUGE, "1: it is behind for a reason that status tells"},
     mirror_trouble},
};
enum { MIRRORS_COUNT = sizeof of_mirrors / sizeof of_mirrors[0] };

static void say_mirror(const struct mirror *m, const struct mirror_figure *figure,
                       struct tn_buf *out)
{
    tn_buf_format(out, "%s{lake=\"%s\",table=\"", figure->heading.name,
                  m->mirror->lake->config->name);
    say_text(out, m->mirror->keeper->name);
    tn_buf_text(out, "\"}");
    say_value(out, figure->of(m));
}

static void say_mirrors(const struct tn_lakes *lakes, const struct mirror_figure *figure,
                        uint32_t first, struct tn_buf *out)
{
    if (first == 0 && lakes->mirror_count > 0) {
        say_heading(&figure->heading, out);
    }
    for (uint32_t i = first; i < lakes->mirror_count && i < first + LINES_A_PART; i++) {
        struct mirror m = {lakes, &lakes->mirrors[i]};
        say_mirror(&m, figure, out);
    }
}

/* ---- the page ---- */

/* Parts of the page that `count` figures of `each` things take; takes them off the index. */
static bool among(uint32_t *index, uint32_t count, uint32_t each, uint32_t *figure, uint32_t *first)
{
    uint32_t turns = (each + LINES_A_PART - 1) / LINES_A_PART;
    if (*index >= count * turns) {
        *index -= count * turns;
        return false;
    }
    *figure = *index / turns;
    *first = *index % turns * LINES_A_PART;
    return true;
}

/* The number of parts is that of what is configured: sources are opened later. */
bool tn_metrics_part(const struct tn_status_spec *of, uint32_t index, struct tn_buf *out)
{
    uint32_t figure;
    uint32_t first;
    if (among(&index, PROCESS_COUNT, 1, &figure, &first)) {
        say_heading(&of_process[figure].heading, out);
        tn_buf_text(out, of_process[figure].heading.name);
        say_value(out, of_process[figure].of(of));
    } else if (among(&index, 1, 1, &figure, &first)) {
        say_build(out);
    } else if (among(&index, 1, 1, &figure, &first)) {
        say_pulse(of->pulse, out);
    } else if (among(&index, DISK_COUNT, 1, &figure, &first)) {
        say_disk(&of->intake->reserve, &of_disk[figure], out);
    } else if (among(&index, WEAR_COUNT, 1, &figure, &first)) {
        say_wear(of->wear, &of_wear[figure], out);
    } else if (among(&index, PARTS_COUNT, 1, &figure, &first)) {
        say_parts(of, &of_parts[figure], out);
    } else if (among(&index, SOURCES_COUNT, of->config->source_count + 1, &figure, &first)) {
        say_sources(of, &of_sources[figure], first, out);
    } else if (among(&index, TABLES_COUNT, of->intake->spec.keeper_count, &figure, &first)) {
        say_tables(of, &of_tables[figure], first, out);
    } else if (among(&index, LAKES_COUNT, of->lakes->lake_count, &figure, &first)) {
        say_lakes(of->lakes, &of_lakes[figure], first, out);
    } else if (among(&index, MIRRORS_COUNT, of->lakes->mirror_count, &figure, &first)) {
        say_mirrors(of->lakes, &of_mirrors[figure], first, out);
    } else {
        return false;
    }
    return true;
}
