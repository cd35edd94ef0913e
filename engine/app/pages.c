#include "app/pages.h"

#include <inttypes.h>
#include <string.h>

#include "schema/value.h"

enum { HTTP_OK = 200, HTTP_UNAVAILABLE = 503 };

/* ---- /health, /ready ---- */

static void add_reason(struct tn_buf *out, uint32_t *count, const char *table, const char *text)
{
    tn_buf_text(out, *count > 0 ? "," : ",\"reasons\":[");
    (*count)++;
    tn_buf_text(out, "{\"table\":");
    tn_json_string(out, tn_bytes_of(table));
    tn_buf_text(out, ",\"text\":");
    tn_json_string(out, tn_bytes_of(text));
    tn_buf_text(out, "}");
}

static void say_keepers(const struct tn_intake *in, struct tn_buf *out, uint32_t *count)
{
    for (uint32_t i = 0; i < in->spec.keeper_count; i++) {
        const struct tn_keeper *k = &in->spec.keepers[i];
        uint32_t failed = 0;
        if (k->trouble != TN_OK) {
            add_reason(out, count, k->name, k->trouble_text.text);
        } else if (k->state == TN_KEEPER_BEHIND) {
            add_reason(out, count, k->name, "reads what it missed from the journal");
        }
        if (k->table && tn_table_behind(k->table, &failed) != TN_OK) {
            add_reason(out, count, k->name, "compaction failed in some of its buckets");
        }
    }
}

static bool takes_rows(const struct tn_intake *in)
{
    bool any = in->spec.keeper_count == 0;
    for (uint32_t i = 0; i < in->spec.keeper_count; i++) {
        any = any || in->spec.keepers[i].state == TN_KEEPER_LIVE;
    }
    return any && in->failed == TN_OK && !in->stopping && !tn_journal_full(in->journal);
}

static int fill_health(void *user, struct tn_buf *out)
{
    struct tn_pages *pages = user;
    const struct tn_intake *in = pages->intake;
    struct tn_buf reasons;
    uint32_t count = 0;
    tn_buf_init(&reasons, pages->text, sizeof pages->text);
    say_keepers(in, &reasons, &count);
    if (tn_journal_full(in->journal)) {
        add_reason(&reasons, &count, "", "the journal is full: its tables don't commit");
    }
    tn_buf_text(&reasons, count > 0 ? "]" : "");
    bool takes = takes_rows(in);
    tn_buf_format(out, "{\"status\":\"%s\"", !takes ? "failing" : count > 0 ? "degraded" : "ok");
    if (!reasons.overflow) {
        tn_buf_append(out, pages->text, reasons.size);
    }
    tn_buf_text(out, "}\n");
    return takes ? HTTP_OK : HTTP_UNAVAILABLE;
}

static int fill_ready(void *user, struct tn_buf *out)
{
    const struct tn_intake *in = ((const struct tn_pages *)user)->intake;
    bool ready = tn_intake_ready(in) && !in->stopping;
    tn_buf_format(out, "{\"ready\":%s}\n", ready ? "true" : "false");
    return ready ? HTTP_OK : HTTP_UNAVAILABLE;
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

static int fill_metrics(void *user, struct tn_buf *out)
{
    const struct tn_intake *in = ((const struct tn_pages *)user)->intake;
    for (size_t i = 0; i < sizeof of_all / sizeof of_all[0]; i++) {
        say_figure(&of_all[i], out);
        tn_buf_format(out, "%s %.15g\n", of_all[i].name, of_all[i].of(in, NULL));
    }
    for (size_t i = 0; i < sizeof of_tables / sizeof of_tables[0]; i++) {
        say_figure(&of_tables[i], out);
        for (uint32_t t = 0; t < in->spec.keeper_count; t++) {
            const struct tn_keeper *k = &in->spec.keepers[t];
            tn_buf_format(out, "%s{table=\"%s\"} %.15g\n", of_tables[i].name, k->name,
                          of_tables[i].of(in, k));
        }
    }
    return HTTP_OK;
}

void tn_pages_init(struct tn_pages *pages, const struct tn_intake *intake,
                   const struct tn_sources *sources)
{
    *pages = (struct tn_pages){
        .intake = intake,
        .sources = sources,
        .pages = {{"/health", "application/json", true, fill_health, pages},
                  {"/ready", "application/json", true, fill_ready, pages},
                  {"/metrics", "text/plain; version=0.0.4", false, fill_metrics, pages}}};
}
