/* metrics_private: what the files of metrics.h have in common: figures, each with its heading, and
 * how they are written.
 *
 *     metrics.c        of the process, its disk, its memory, its sources; the page
 *     metrics_table.c  of tables
 *     metrics_lake.c   of lakes, and of the mirrors in them
 */
#pragma once

#include "app/metrics.h"

enum { TN_METRICS_LINES = 4 }; /* in a part of the page, with the longest names */

enum tn_metrics_kind { TN_COUNTER, TN_GAUGE, TN_SUMMARY, TN_HISTOGRAM };

struct tn_metrics_heading {
    const char *name;
    enum tn_metrics_kind kind;
    const char *help;
};

#define TN_FIGURE(function, type, figure)         \
    static double function(const struct type *of) \
    {                                             \
        return (double)(figure);                  \
    }

void tn_metrics_heading(const struct tn_metrics_heading *heading, struct tn_buf *out);

/* " 1\n", in the fewest digits that read back. */
void tn_metrics_value(struct tn_buf *out, double value);

/* What a configuration names has any bytes: as it stands in a label. */
void tn_metrics_text(struct tn_buf *out, const char *text);
void tn_metrics_label(struct tn_buf *out, const char *label, const char *text);

/* Monotonic. */
int64_t tn_metrics_now_ms(const struct tn_status_spec *of);

/* Figure `number` of so many, of TN_METRICS_LINES tables, lakes or mirrors from `first` on; the
 * heading is in front of the first. */
extern const uint32_t tn_metrics_table_count;
extern const uint32_t tn_metrics_lake_count;
extern const uint32_t tn_metrics_mirror_count;
void tn_metrics_tables(const struct tn_status_spec *of, uint32_t number, uint32_t first,
                       struct tn_buf *out);
void tn_metrics_lakes(const struct tn_lakes *lakes, uint32_t number, uint32_t first,
                      struct tn_buf *out);
void tn_metrics_mirrors(const struct tn_lakes *lakes, uint32_t number, uint32_t first,
                        struct tn_buf *out);
