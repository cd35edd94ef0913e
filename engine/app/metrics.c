#include "app/metrics_private.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "app/version.h"
#include "schema/value.h"

enum {
    MS_PER_S = 1000,
    NS_PER_S = 1000000000,
};

static const double whole_max = 9007199254740992.0; /* 2^53: from here on doubles have gaps */

void tn_metrics_heading(const struct tn_metrics_heading *heading, struct tn_buf *out)
{
    static const char *const kinds[] = {"counter", "gauge", "summary", "histogram"};
    tn_buf_format(out, "# HELP %s %s\n# TYPE %s %s\n", heading->name, heading->help, heading->name,
                  kinds[heading->kind]);
}

void tn_metrics_value(struct tn_buf *out, double value)
{
    bool whole = fabs(value) < whole_max && trunc(value) >= value && trunc(value) <= value;
    tn_buf_byte(out, ' ');
    if (whole) {
        tn_buf_format(out, "%.0f", value);
    } else {
        tn_double_format(out, value);
    }
    tn_buf_byte(out, '\n');
}

void tn_metrics_text(struct tn_buf *out, const char *text)
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

void tn_metrics_label(struct tn_buf *out, const char *label, const char *text)
{
    tn_buf_format(out, "{%s=\"", label);
    tn_metrics_text(out, text);
    tn_buf_text(out, "\"}");
}

int64_t tn_metrics_now_ms(const struct tn_status_spec *of)
{
    struct tn_clock *clock = of->intake->spec.env->clock;
    return tn_clock_monotonic_ms(clock);
}

/* ---- of the process ---- */

static double began(const struct tn_status_spec *of)
{
    struct tn_clock *clock = of->intake->spec.env->clock;
    int64_t up_ms = tn_metrics_now_ms(of) - of->begun_ms;
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

TN_FIGURE(health, tn_status_spec, tn_status_health(of))
TN_FIGURE(ready, tn_status_spec, tn_intake_ready(of->intake) && !of->intake->stopping)
TN_FIGURE(reload_trouble, tn_status_spec, tn_status_reload_trouble(of->reload) != NULL)
TN_FIGURE(io_read, tn_status_spec, counted(&io_of(of)->bytes_read))
TN_FIGURE(io_written, tn_status_spec, counted(&io_of(of)->bytes_written))
TN_FIGURE(io_syncs, tn_status_spec, counted(&io_of(of)->syncs))
TN_FIGURE(journal_size, tn_status_spec, tn_journal_size(of->intake->journal))
TN_FIGURE(journal_size_max, tn_status_spec, of->config->journal.size_max)
TN_FIGURE(journal_full, tn_status_spec, tn_journal_full(of->intake->journal))
TN_FIGURE(journal_unsynced, tn_status_spec,
          tn_journal_next(of->intake->journal) - tn_journal_durable(of->intake->journal))
TN_FIGURE(messages, tn_status_spec, of->intake->counts.messages)
TN_FIGURE(refused, tn_status_spec, of->intake->counts.refused)
TN_FIGURE(waits, tn_status_spec, of->intake->counts.waits)
TN_FIGURE(replayed, tn_status_spec, of->intake->counts.replayed)
TN_FIGURE(stalls, tn_status_spec, of->pulse->stalls)
TN_FIGURE(longest_stall, tn_status_spec, (double)of->pulse->longest_ns / NS_PER_S)

struct process_figure {
    struct tn_metrics_heading heading;
    double (*of)(const struct tn_status_spec *of);
};

static const struct process_figure of_process[] = {
    {{"process_start_time_seconds", TN_GAUGE, "since 1970, by the clock as it is now"}, began},
    {{"tarn_health_state", TN_GAUGE, "0 ok, 1 degraded, 2 failing"}, health},
    {{"tarn_ready", TN_GAUGE, "1: tables have what the journal had for them"}, ready},
    {{"tarn_reload_trouble", TN_GAUGE, "1: the last reload was refused"}, reload_trouble},
    {{"tarn_io_read_bytes_total", TN_COUNTER, "of files"}, io_read},
    {{"tarn_io_written_bytes_total", TN_COUNTER, "to files, the journal among them"}, io_written},
    {{"tarn_io_syncs_total", TN_COUNTER, "barriers"}, io_syncs},
    {{"tarn_journal_bytes", TN_GAUGE, "on disk"}, journal_size},
    {{"tarn_journal_max_bytes", TN_GAUGE, "that it may have"}, journal_size_max},
    {{"tarn_journal_full", TN_GAUGE, "1: only a commit makes room"}, journal_full},
    {{"tarn_journal_unsynced_messages", TN_GAUGE, "that nobody was answered"}, journal_unsynced},
    {{"tarn_messages_total", TN_COUNTER, "that the hub took"}, messages},
    {{"tarn_refused_messages_total", TN_COUNTER, "for good, or since a table takes nothing"},
     refused},
    {{"tarn_waited_offers_total", TN_COUNTER, "offers that found no room"}, waits},
    {{"tarn_replayed_rows_total", TN_COUNTER, "rows and letters that came from the journal"},
     replayed},
    {{"tarn_loop_stalls_total", TN_COUNTER, "turns in which the loop was away for over 50 ms"},
     stalls},
    {{"tarn_loop_longest_stall_seconds", TN_GAUGE, "the longest time that it was away"},
     longest_stall},
};
enum { PROCESS_COUNT = sizeof of_process / sizeof of_process[0] };

static void say_build(struct tn_buf *out)
{
    static const struct tn_metrics_heading heading = {"tarn_build_info", TN_GAUGE, "always 1"};
    tn_metrics_heading(&heading, out);
    tn_buf_text(out, heading.name);
    tn_metrics_label(out, "version", TN_VERSION);
    tn_metrics_value(out, 1);
}

static void say_pulse(const struct tn_pulse *pulse, struct tn_buf *out)
{
    static const struct tn_metrics_heading heading = {
        "tarn_loop_away_seconds", TN_HISTOGRAM,
        "turns of the loop by how long it was away from its sockets"};
    uint64_t count = 0;
    tn_metrics_heading(&heading, out);
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

TN_FIGURE(disk_reserve, tn_reserve, of->bytes)
TN_FIGURE(disk_low, tn_reserve, of->low)

struct disk_figure {
    struct tn_metrics_heading heading;
    double (*of)(const struct tn_reserve *reserve);
    bool asked; /* a disk that doesn't say what it has is no empty one */
};

static const struct disk_figure of_disk[] = {
    {{"tarn_disk_reserve_bytes", TN_GAUGE, "that are to be kept free"}, disk_reserve, false},
    {{"tarn_disk_free_bytes", TN_GAUGE, "when it was asked last, less what was written since"},
     disk_free,
     true},
    {{"tarn_disk_low", TN_GAUGE, "1: no row is taken, for less than the reserve is free"},
     disk_low,
     false},
};
enum { DISK_COUNT = sizeof of_disk / sizeof of_disk[0] };

static void say_disk(const struct tn_reserve *reserve, const struct disk_figure *figure,
                     struct tn_buf *out)
{
    if (reserve->known || !figure->asked) {
        tn_metrics_heading(&figure->heading, out);
        tn_buf_text(out, figure->heading.name);
        tn_metrics_value(out, figure->of(reserve));
    }
}

/* ---- of the wear budget ---- */

TN_FIGURE(wear_budget, tn_wear, of->budget)
TN_FIGURE(wear_left, tn_wear, of->left > 0 ? of->left : 0)
TN_FIGURE(wear_overdraft, tn_wear, tn_wear_overdraft(of))

struct wear_figure {
    struct tn_metrics_heading heading;
    double (*of)(const struct tn_wear *wear);
};

static const struct wear_figure of_wear[] = {
    {{"tarn_wear_budget_bytes", TN_GAUGE, "that may be written a day"}, wear_budget},
    {{"tarn_wear_left_bytes", TN_GAUGE, "of it, now"}, wear_left},
    {{"tarn_wear_overdraft_bytes", TN_GAUGE, "written without it, not paid back yet"},
     wear_overdraft},
};
enum { WEAR_COUNT = sizeof of_wear / sizeof of_wear[0] };

static void say_wear(const struct tn_wear *wear, const struct wear_figure *figure,
                     struct tn_buf *out)
{
    if (wear) {
        tn_metrics_heading(&figure->heading, out);
        tn_buf_text(out, figure->heading.name);
        tn_metrics_value(out, figure->of(wear));
    }
}

/* ---- of parts of the memory ---- */

TN_FIGURE(part_size, tn_status_part, of->there ? of->size : 0)
TN_FIGURE(part_used, tn_status_part, of->used)
TN_FIGURE(part_peak, tn_status_part, of->peak)

struct part_figure {
    struct tn_metrics_heading heading;
    double (*of)(const struct tn_status_part *part);
};

static const struct part_figure of_parts[] = {
    {{"tarn_memory_size_bytes", TN_GAUGE, "of a part of the memory; 0: it lies in another"},
     part_size},
    {{"tarn_memory_used_bytes", TN_GAUGE, "of it"}, part_used},
    {{"tarn_memory_peak_bytes", TN_GAUGE, "of it, at the most"}, part_peak},
};
enum { PARTS_COUNT = sizeof of_parts / sizeof of_parts[0] };

static void say_parts(const struct tn_status_spec *of, const struct part_figure *figure,
                      struct tn_buf *out)
{
    tn_metrics_heading(&figure->heading, out);
    for (uint32_t i = 0; i < of->budget->part_count; i++) {
        struct tn_status_part part = tn_status_part(of, i);
        tn_buf_text(out, figure->heading.name);
        tn_metrics_label(out, "part", part.name);
        tn_metrics_value(out, figure->of(&part));
    }
}

/* ---- of sources ---- */

TN_FIGURE(source_messages, tn_source_status, of->messages)
TN_FIGURE(source_rows, tn_source_status, of->rows)
TN_FIGURE(source_letters, tn_source_status, of->dead)
TN_FIGURE(source_refused, tn_source_status, of->refused)
TN_FIGURE(source_waits, tn_source_status, of->waits)
TN_FIGURE(source_trouble, tn_source_status, of->trouble != NULL)
TN_FIGURE(source_bytes, tn_source_status, of->bytes)
TN_FIGURE(source_committed, tn_source_status, of->bytes_committed)

struct source_figure {
    struct tn_metrics_heading heading;
    double (*of)(const struct tn_source_status *source);
    bool of_files; /* and of no other */
};

static const struct source_figure of_sources[] = {
    {{"tarn_source_messages_total", TN_COUNTER, "that were taken of it"}, source_messages, false},
    {{"tarn_source_rows_total", TN_COUNTER, "in them"}, source_rows, false},
    {{"tarn_source_letters_total", TN_COUNTER, "dead letters of it"}, source_letters, false},
    {{"tarn_source_refused_messages_total", TN_COUNTER, "for good"}, source_refused, false},
    {{"tarn_source_waits", TN_GAUGE, "1: there is no room for it"}, source_waits, false},
    {{"tarn_source_trouble", TN_GAUGE, "1: nothing comes of it"}, source_trouble, false},
    {{"tarn_source_read_bytes", TN_GAUGE, "of a file and those before it"}, source_bytes, true},
    {{"tarn_source_committed_bytes", TN_GAUGE, "of them, in snapshots"}, source_committed, true},
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
    if (wanted && at >= some->first && at < some->first + TN_METRICS_LINES) {
        tn_buf_text(some->out, some->figure->heading.name);
        tn_metrics_label(some->out, "source", source->name);
        tn_metrics_value(some->out, some->figure->of(source));
    }
}

/* A figure of some sources, with its heading in front of the first. */
static void say_sources(const struct tn_status_spec *of, const struct source_figure *figure,
                        uint32_t first, struct tn_buf *out)
{
    struct some_sources some = {.figure = figure, .first = first, .out = out};
    if (first == 0) {
        tn_metrics_heading(&figure->heading, out);
    }
    tn_sources_each(of->sources, say_source, &some);
}

/* ---- the page ---- */

/* Parts of the page that `count` figures of `each` things take; takes them off the index. */
static bool among(uint32_t *index, uint32_t count, uint32_t each, uint32_t *figure, uint32_t *first)
{
    uint32_t turns = (each + TN_METRICS_LINES - 1) / TN_METRICS_LINES;
    if (*index >= count * turns) {
        *index -= count * turns;
        return false;
    }
    *figure = *index / turns;
    *first = *index % turns * TN_METRICS_LINES;
    return true;
}

/* The number of parts is that of what is configured: sources are opened later. */
bool tn_metrics_part(const struct tn_status_spec *of, uint32_t index, struct tn_buf *out)
{
    uint32_t figure;
    uint32_t first;
    if (among(&index, PROCESS_COUNT, 1, &figure, &first)) {
        tn_metrics_heading(&of_process[figure].heading, out);
        tn_buf_text(out, of_process[figure].heading.name);
        tn_metrics_value(out, of_process[figure].of(of));
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
    } else if (among(&index, tn_metrics_table_count, of->intake->spec.keeper_count, &figure,
                     &first)) {
        tn_metrics_tables(of, figure, first, out);
    } else if (among(&index, tn_metrics_lake_count, of->lakes->lake_count, &figure, &first)) {
        tn_metrics_lakes(of->lakes, figure, first, out);
    } else if (among(&index, tn_metrics_mirror_count, of->lakes->mirror_count, &figure, &first)) {
        tn_metrics_mirrors(of->lakes, figure, first, out);
    } else {
        return false;
    }
    return true;
}
