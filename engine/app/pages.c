#include "app/pages.h"

#include <inttypes.h>
#include <string.h>

#include "schema/value.h"

enum {
    HTTP_OK = 200,
    HTTP_UNAVAILABLE = 503,
    TABLES_A_PART = 4, /* with the longest names */
};

/* ---- /health, /ready ---- */

struct reasons {
    struct tn_buf *out;
    uint32_t count;
};

static void add_reason(struct reasons *r, const char *what, const char *name, const char *text)
{
    size_t size = strlen(text);
    tn_buf_format(r->out, "%s{\"%s\":", r->count > 0 ? "," : ",\"reasons\":[", what);
    tn_json_string(r->out, tn_bytes_of(name));
    tn_buf_text(r->out, ",\"text\":");
    tn_json_string(r->out, (struct tn_bytes){
                               (const unsigned char *)text,
                               tn_utf8_span((struct tn_bytes){(const unsigned char *)text, size})});
    tn_buf_text(r->out, "}");
    r->count++;
}

static void say_keepers(const struct tn_intake *in, struct reasons *r)
{
    for (uint32_t i = 0; i < in->spec.keeper_count; i++) {
        const char *trouble = tn_status_table_trouble(&in->spec.keepers[i]);
        if (trouble) {
            add_reason(r, "table", in->spec.keepers[i].name, trouble);
        }
    }
}

static void say_source(void *user, const struct tn_source_status *status)
{
    if (status->trouble) {
        add_reason(user, "source", status->name, status->trouble);
    }
}

static int fill_health(void *user, struct tn_buf *out)
{
    struct tn_pages *pages = user;
    const struct tn_intake *in = pages->of.intake;
    const char *journal = tn_status_journal_trouble(in);
    const char *reload = tn_status_reload_trouble(pages->of.reload);
    enum tn_health health = tn_status_health(&pages->of);
    struct tn_buf text;
    struct reasons reasons = {.out = &text};
    tn_buf_init(&text, pages->text, sizeof pages->text);
    say_keepers(in, &reasons);
    tn_sources_each(pages->of.sources, say_source, &reasons);
    if (journal) {
        add_reason(&reasons, "table", "", journal);
    }
    if (reload) {
        add_reason(&reasons, "reload", pages->of.config->path, reload);
    }
    tn_buf_text(&text, reasons.count > 0 ? "]" : "");
    tn_buf_format(out, "{\"status\":\"%s\"", tn_health_text(health));
    if (!text.overflow) {
        tn_buf_append(out, pages->text, text.size);
    }
    tn_buf_text(out, "}\n");
    return health == TN_HEALTH_FAILING ? HTTP_UNAVAILABLE : HTTP_OK;
}

static int fill_ready(void *user, struct tn_buf *out)
{
    const struct tn_intake *in = ((const struct tn_pages *)user)->of.intake;
    bool ready = tn_intake_ready(in) && !in->stopping;
    tn_buf_format(out, "{\"ready\":%s}\n", ready ? "true" : "false");
    return ready ? HTTP_OK : HTTP_UNAVAILABLE;
}

/* ---- /status ---- */

static bool put_status(void *user, uint32_t index, struct tn_buf *out)
{
    return tn_status_page(&((const struct tn_pages *)user)->of, index, out);
}

/* ---- /reload ---- */

static int fill_reload(void *user, struct tn_buf *out)
{
    const struct tn_status_spec *of = &((const struct tn_pages *)user)->of;
    const struct tn_reload *r = of->reload;
    const char *trouble = tn_status_reload_trouble(r);
    bool ready = tn_intake_ready(of->intake) && !of->intake->stopping;
    tn_buf_format(out,
                  "{\"reload\":%" PRIu64 ",\"answered\":%" PRIu64 ",\"begun_ms\":%" PRId64
                  ",\"ready\":%d",
                  r->asked, r->answered, of->begun_ms, ready);
    if (trouble) {
        tn_buf_text(out, ",\"trouble\":");
        tn_json_string(out, tn_bytes_of(trouble));
    }
    tn_buf_text(out, "}\n");
    return HTTP_OK;
}

static int ask_reload(void *user, struct tn_buf *out)
{
    (void)tn_reload_ask(((struct tn_pages *)user)->of.reload);
    return fill_reload(user, out);
}

/* ---- /metrics ---- */

enum figure_kind { COUNTER, GAUGE };

struct figure {
    const char *name;
    enum figure_kind kind;
    const char *help;
    double (*of)(const struct tn_intake *in, const struct tn_keeper *k);
};

static int64_t now_ms(const struct tn_intake *in)
{
    struct tn_clock *clock = in->spec.env->clock;
    return clock->vtable->monotonic_ns(clock) / 1000000;
}

static double rows_of(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)in;
    return (double)k->rows;
}

static double uncommitted_of(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)in;
    return (double)(k->items - k->items_cut);
}

static double age_of(const struct tn_intake *in, const struct tn_keeper *k)
{
    return k->items == k->items_cut ? 0 : (double)(now_ms(in) - k->since_ms) / 1000;
}

static double commits_of(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)in;
    return (double)k->commits;
}

static double snapshot_of(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)in;
    return (double)k->latest_id;
}

static double letters_of(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)in;
    return (double)k->letters;
}

static double state_of(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)in;
    return (double)k->state;
}

static double reopened_of(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)in;
    return (double)k->reopened;
}

static double compactions_of(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)in;
    return k->table ? (double)tn_table_counts(k->table)->compactions : 0;
}

static double stalls_of(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)in;
    return k->table ? (double)tn_table_counts(k->table)->stalls : 0;
}

static struct tn_backlog backlog_of(const struct tn_keeper *k)
{
    struct tn_backlog backlog = {0};
    if (k->table) {
        tn_table_backlog(k->table, &backlog);
    }
    return backlog;
}

static double runs_of(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)in;
    return backlog_of(k).runs_max;
}

static double runs_stop_of(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)in;
    return backlog_of(k).stop;
}

static double level0_of(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)in;
    return backlog_of(k).level0_max;
}

static double level0_bytes_of(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)in;
    return (double)backlog_of(k).level0_bytes;
}

static double compacted_of(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)in;
    return k->table ? (double)tn_table_counts(k->table)->compacted_bytes : 0;
}

static double flushed_of(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)in;
    return k->table ? (double)tn_table_counts(k->table)->flushed_bytes : 0;
}

static double failed_of(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)in;
    return k->table ? (double)tn_table_counts(k->table)->compactions_failed : 0;
}

static double untold_of(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)in;
    return (double)k->untold;
}

static double snapshots_of(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)in;
    return k->earliest_id > 0 ? (double)(k->latest_id - k->earliest_id + 1) : 0;
}

static const struct figure of_tables[] = {
    {"tarn_table_state", GAUGE, "0 shut, 1 reads from the journal, 2 live", state_of},
    {"tarn_table_rows_total", COUNTER, "rows that were put", rows_of},
    {"tarn_table_uncommitted_rows", GAUGE, "rows and letters of the open round", uncommitted_of},
    {"tarn_table_uncommitted_age_seconds", GAUGE, "of the oldest of them", age_of},
    {"tarn_table_commits_total", COUNTER, "rounds that made a snapshot", commits_of},
    {"tarn_table_snapshot_id", GAUGE, "the newest", snapshot_of},
    {"tarn_table_letters_total", COUNTER, "dead letters of records", letters_of},
    {"tarn_table_reopened_total", COUNTER, "times that it was opened again", reopened_of},
    {"tarn_table_compactions_total", COUNTER, "since it was opened", compactions_of},
    {"tarn_table_stalls_total", COUNTER, "flushes that waited for compaction", stalls_of},
    {"tarn_table_compactions_failed_total", COUNTER, "since it was opened", failed_of},
    {"tarn_table_flushed_bytes_total", COUNTER, "since it was opened", flushed_of},
    {"tarn_table_compacted_bytes_total", COUNTER, "that compactions wrote", compacted_of},
    {"tarn_table_max_sorted_run_count", GAUGE, "of its open buckets", runs_of},
    {"tarn_table_stop_sorted_run_count", GAUGE, "at which flushes wait; 0: never", runs_stop_of},
    {"tarn_table_max_level0_file_count", GAUGE, "of its open buckets", level0_of},
    {"tarn_table_level0_bytes", GAUGE, "of all open buckets: not merged yet", level0_bytes_of},
    {"tarn_table_snapshot_count", GAUGE, "0: not known before a commit", snapshots_of},
    {"tarn_table_untold_commits", GAUGE, "with rows, since changes were told last", untold_of},
};

static double journal_size(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)k;
    return (double)tn_journal_size(in->journal);
}

static double journal_full(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)k;
    return tn_journal_full(in->journal) ? 1 : 0;
}

static double messages(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)k;
    return (double)in->counts.messages;
}

static double refused(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)k;
    return (double)in->counts.refused;
}

static double waits(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)k;
    return (double)in->counts.waits;
}

static double replayed(const struct tn_intake *in, const struct tn_keeper *k)
{
    (void)k;
    return (double)in->counts.replayed;
}

static const struct figure of_all[] = {
    {"tarn_journal_bytes", GAUGE, "on disk", journal_size},
    {"tarn_journal_full", GAUGE, "1: only a commit makes room", journal_full},
    {"tarn_messages_total", COUNTER, "that the hub took", messages},
    {"tarn_messages_refused_total", COUNTER, "for good, or since a table takes nothing", refused},
    {"tarn_messages_waited_total", COUNTER, "offers that found no room", waits},
    {"tarn_replayed_rows_total", COUNTER, "rows and letters that came from the journal", replayed},
};

static void say_figure(const struct figure *figure, struct tn_buf *out)
{
    tn_buf_format(out, "# HELP %s %s\n# TYPE %s %s\n", figure->name, figure->help, figure->name,
                  figure->kind == COUNTER ? "counter" : "gauge");
}

static void say_parts(const struct tn_status_spec *of, const char *name, const char *help,
                      bool peak, struct tn_buf *out)
{
    tn_buf_format(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
    for (uint32_t i = 0; i < of->budget->part_count; i++) {
        struct tn_status_part part = tn_status_part(of, i);
        tn_buf_format(out, "%s{part=\"%s\"} %zu\n", name, part.name, peak ? part.peak : part.used);
    }
}

static void say_loop(const struct tn_pulse *pulse, struct tn_buf *out)
{
    tn_buf_format(out,
                  "# HELP tarn_loop_turns_total times that the loop waited for its sockets\n"
                  "# TYPE tarn_loop_turns_total counter\n"
                  "tarn_loop_turns_total %" PRIu64 "\n"
                  "# HELP tarn_loop_stalls_total times that it was away from them for over %d ms\n"
                  "# TYPE tarn_loop_stalls_total counter\n"
                  "tarn_loop_stalls_total %" PRIu64 "\n"
                  "# HELP tarn_loop_longest_stall_seconds the longest time\n"
                  "# TYPE tarn_loop_longest_stall_seconds gauge\n"
                  "tarn_loop_longest_stall_seconds %.6f\n",
                  pulse->turns, TN_PULSE_STALL_MS, pulse->stalls,
                  (double)pulse->longest_ns / 1000000000);
}

/* A figure of some tables, with its name in front of the first. */
static void say_tables(const struct tn_intake *in, const struct figure *figure, uint32_t first,
                       struct tn_buf *out)
{
    if (first == 0) {
        say_figure(figure, out);
    }
    for (uint32_t t = first; t < in->spec.keeper_count && t < first + TABLES_A_PART; t++) {
        const struct tn_keeper *k = &in->spec.keepers[t];
        tn_buf_format(out, "%s{table=\"%s\"} %.15g\n", figure->name, k->name, figure->of(in, k));
    }
}

static bool put_metrics(void *user, uint32_t index, struct tn_buf *out)
{
    enum { ALL_COUNT = sizeof of_all / sizeof of_all[0], LOOP, USED, PEAK, TABLES };
    const struct tn_status_spec *of = &((const struct tn_pages *)user)->of;
    const struct tn_intake *in = of->intake;
    uint32_t figures = sizeof of_tables / sizeof of_tables[0];
    uint32_t turns = (in->spec.keeper_count + TABLES_A_PART - 1) / TABLES_A_PART;
    if (index < ALL_COUNT) {
        say_figure(&of_all[index], out);
        tn_buf_format(out, "%s %.15g\n", of_all[index].name, of_all[index].of(in, NULL));
        return true;
    }
    switch (index + 1) {
    case LOOP:
        say_loop(of->pulse, out);
        return true;
    case USED:
        say_parts(of, "tarn_memory_used_bytes", "of a part of the memory", false, out);
        return true;
    case PEAK:
        say_parts(of, "tarn_memory_peak_bytes", "of it, at the most", true, out);
        return true;
    default:
        break;
    }
    uint32_t at = index + 1 - TABLES;
    if (at >= figures * turns) {
        return false;
    }
    say_tables(in, &of_tables[at / turns], at % turns * TABLES_A_PART, out);
    return true;
}

void tn_pages_init(struct tn_pages *pages, const struct tn_status_spec *of)
{
    static const char json[] = "application/json";
    static const char text[] = "text/plain; version=0.0.4";
    *pages = (struct tn_pages){
        .of = *of,
        .pages = {{.path = "/health", .type = json, .open = true, .fill = fill_health},
                  {.path = "/ready", .type = json, .open = true, .fill = fill_ready},
                  {.path = "/status", .type = json, .part = put_status},
                  {.path = "/metrics", .type = text, .part = put_metrics},
                  {.path = "/reload", .type = json, .fill = fill_reload},
                  {.path = "/reload", .type = json, .post = true, .fill = ask_reload}}};
    for (int i = 0; i < TN_PAGES_COUNT + TN_PAGES_OWN; i++) {
        pages->pages[i].user = pages;
    }
}
