#include "app/metrics_private.h"
#include "app/tell.h"

enum { MS_PER_S = 1000 };

struct lake_figure {
    struct tn_metrics_heading heading;
    double (*of)(const struct tn_lakes_lake *lake);
};

TN_FIGURE(lake_uploads, tn_lakes_lake, of->uploads)
TN_FIGURE(lake_failures, tn_lakes_lake, of->failures)
TN_FIGURE(lake_gets, tn_lakes_lake, of->counts.requests[TN_TARGET_GET])
TN_FIGURE(lake_heads, tn_lakes_lake, of->counts.requests[TN_TARGET_HEAD])
TN_FIGURE(lake_puts, tn_lakes_lake, of->counts.requests[TN_TARGET_PUT])
TN_FIGURE(lake_lists, tn_lakes_lake, of->counts.requests[TN_TARGET_LIST])
TN_FIGURE(lake_deletes, tn_lakes_lake, of->counts.requests[TN_TARGET_DELETE])
TN_FIGURE(lake_bytes, tn_lakes_lake, of->counts.bytes_sent)
TN_FIGURE(lake_received, tn_lakes_lake, of->counts.bytes_received)
TN_FIGURE(lake_day, tn_lakes_lake, of->spent.of[TN_SPENT_DAY].bytes)
TN_FIGURE(lake_day_requests, tn_lakes_lake, of->spent.of[TN_SPENT_DAY].requests)
TN_FIGURE(lake_month, tn_lakes_lake, of->spent.of[TN_SPENT_MONTH].bytes)
TN_FIGURE(lake_month_requests, tn_lakes_lake, of->spent.of[TN_SPENT_MONTH].requests)

TN_FIGURE(lake_told, tn_lakes_lake, of->tell ? of->tell->messages : 0)
TN_FIGURE(lake_tell_failures, tn_lakes_lake, of->tell ? of->tell->failures : 0)
TN_FIGURE(lake_tell_refused, tn_lakes_lake, of->tell ? of->tell->refused : 0)
TN_FIGURE(lake_tell_script, tn_lakes_lake, of->tell ? of->tell->script_failures : 0)
TN_FIGURE(lake_untold, tn_lakes_lake, of->tell ? tn_tell_behind(of->tell) : 0)

static const struct lake_figure of_lakes[] = {
    {{"tarn_lake_uploads_total", TN_COUNTER, "that brought a snapshot"}, lake_uploads},
    {{"tarn_lake_failed_uploads_total", TN_COUNTER, "that are tried again"}, lake_failures},
    {{"tarn_lake_get_requests_total", TN_COUNTER, "of an object store, by verb"}, lake_gets},
    {{"tarn_lake_head_requests_total", TN_COUNTER, "likewise"}, lake_heads},
    {{"tarn_lake_put_requests_total", TN_COUNTER, "likewise"}, lake_puts},
    {{"tarn_lake_list_requests_total", TN_COUNTER, "likewise"}, lake_lists},
    {{"tarn_lake_delete_requests_total", TN_COUNTER, "likewise"}, lake_deletes},
    {{"tarn_lake_sent_bytes_total", TN_COUNTER, "of files, also of tries that failed"}, lake_bytes},
    {{"tarn_lake_received_bytes_total", TN_COUNTER, "likewise"}, lake_received},
    {{"tarn_lake_day_sent_bytes", TN_GAUGE, "today, by the local clock"}, lake_day},
    {{"tarn_lake_day_requests", TN_GAUGE, "likewise, of an object store"}, lake_day_requests},
    {{"tarn_lake_month_sent_bytes", TN_GAUGE, "this month, likewise"}, lake_month},
    {{"tarn_lake_month_requests", TN_GAUGE, "likewise"}, lake_month_requests},
    {{"tarn_lake_told_messages_total", TN_COUNTER, "messages of `notify` that were taken"},
     lake_told},
    {{"tarn_lake_failed_messages_total", TN_COUNTER, "that are tried again"}, lake_tell_failures},
    {{"tarn_lake_refused_messages_total", TN_COUNTER, "for good"}, lake_tell_refused},
    {{"tarn_lake_failed_script_calls_total", TN_COUNTER, "of scripts"}, lake_tell_script},
    {{"tarn_lake_untold_tables", TN_GAUGE, "of which something is there and wasn't told"},
     lake_untold},
};
const uint32_t tn_metrics_lake_count = sizeof of_lakes / sizeof of_lakes[0];

void tn_metrics_lakes(const struct tn_lakes *lakes, uint32_t number, uint32_t first,
                      struct tn_buf *out)
{
    const struct lake_figure *figure = &of_lakes[number];
    if (first == 0 && lakes->lake_count > 0) {
        tn_metrics_heading(&figure->heading, out);
    }
    for (uint32_t i = first; i < lakes->lake_count && i < first + TN_METRICS_LINES; i++) {
        tn_buf_text(out, figure->heading.name);
        tn_metrics_label(out, "lake", lakes->lakes[i].config->name);
        tn_metrics_value(out, figure->of(&lakes->lakes[i]));
    }
}

struct mirror {
    const struct tn_lakes *lakes;
    const struct tn_lakes_mirror *mirror;
};

struct mirror_figure {
    struct tn_metrics_heading heading;
    double (*of)(const struct mirror *mirror); /* NULL: 1 for those in trouble, with its kind */
};

static double mirror_trouble(const struct mirror *of)
{
    char text[TN_ERR_TEXT_SIZE];
    return tn_lakes_trouble(of->lakes, of->mirror, text, sizeof text) ? 1 : 0;
}

TN_FIGURE(mirror_snapshot, mirror, of->mirror->have_id > 0 ? of->mirror->have_id : 0)
TN_FIGURE(mirror_behind, mirror, tn_lakes_lag(of->mirror))
TN_FIGURE(mirror_bytes, mirror, of->mirror->tally.bytes)
TN_FIGURE(mirror_pinned, mirror, of->mirror->tally.pinned)
TN_FIGURE(mirror_commits, mirror, of->mirror->commits)
TN_FIGURE(mirror_lost, mirror, of->mirror->lost)
TN_FIGURE(mirror_replaced, mirror, of->mirror->replaced)
TN_FIGURE(mirror_tags_left, mirror, of->mirror->tags_left)
TN_FIGURE(mirror_tags_denied, mirror, of->mirror->tags_denied)
TN_FIGURE(mirror_age, mirror, (double)tn_lakes_age_ms(of->lakes, of->mirror) / MS_PER_S)

static const struct mirror_figure of_mirrors[] = {
    {{"tarn_mirror_snapshot_id", TN_GAUGE, "the newest that the lake has"}, mirror_snapshot},
    {{"tarn_mirror_behind_snapshots", TN_GAUGE, "that the lake lacks, and that can't expire"},
     mirror_behind},
    {{"tarn_mirror_behind_bytes", TN_GAUGE, "of files that are new in them"}, mirror_bytes},
    {{"tarn_mirror_pinned_bytes", TN_GAUGE, "of files that are kept for the lake alone"},
     mirror_pinned},
    {{"tarn_mirror_behind_seconds", TN_GAUGE, "since the oldest of them"}, mirror_age},
    {{"tarn_mirror_commits_total", TN_COUNTER, "to a shared table"}, mirror_commits},
    {{"tarn_mirror_lost_commits_total", TN_COUNTER, "tries that gateways beat who were faster"},
     mirror_lost},
    {{"tarn_mirror_replaced_commits_total", TN_COUNTER,
      "that somebody wrote over there; they were sent again"},
     mirror_replaced},
    {{"tarn_mirror_left_tags", TN_GAUGE, "that stay here: the lake has others of their names"},
     mirror_tags_left},
    {{"tarn_mirror_denied_tags", TN_GAUGE, "that stay there: nobody may remove them"},
     mirror_tags_denied},
    {{"tarn_mirror_trouble", TN_GAUGE, "1: it is behind for a reason that status tells"},
     mirror_trouble},
    {{"tarn_mirror_trouble_kind", TN_GAUGE, "1: of what kind it is"}, NULL},
};
const uint32_t tn_metrics_mirror_count = sizeof of_mirrors / sizeof of_mirrors[0];

static void say_mirror(const struct mirror *m, const struct mirror_figure *figure,
                       struct tn_buf *out)
{
    const char *kind = tn_lakes_trouble_kind(m->lakes, m->mirror);
    if (!figure->of && !kind) {
        return;
    }
    tn_buf_format(out, "%s{lake=\"", figure->heading.name);
    tn_metrics_text(out, m->mirror->lake->config->name);
    tn_buf_text(out, "\",table=\"");
    tn_metrics_text(out, m->mirror->keeper->name);
    if (!figure->of) {
        tn_buf_format(out, "\",kind=\"%s", kind);
    }
    tn_buf_text(out, "\"}");
    tn_metrics_value(out, figure->of ? figure->of(m) : 1);
}

void tn_metrics_mirrors(const struct tn_lakes *lakes, uint32_t number, uint32_t first,
                        struct tn_buf *out)
{
    const struct mirror_figure *figure = &of_mirrors[number];
    if (first == 0 && lakes->mirror_count > 0) {
        tn_metrics_heading(&figure->heading, out);
    }
    for (uint32_t i = first; i < lakes->mirror_count && i < first + TN_METRICS_LINES; i++) {
        struct mirror m = {lakes, &lakes->mirrors[i]};
        say_mirror(&m, figure, out);
    }
}
