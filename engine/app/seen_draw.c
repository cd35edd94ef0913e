/* What was seen, as tables for people. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/pulse.h"
#include "app/seen.h"

enum { CELL_SIZE = 48, COLUMNS_MAX = 12, KIB = 1024, MS_PER_S = 1000, S_PER_MIN = 60 };

/* ---- units ---- */

static void put_bytes(char *text, size_t size, int64_t bytes)
{
    static const char UNITS[] = {'B', 'K', 'M', 'G', 'T'};
    int unit = 0;
    double value = (double)bytes;
    while (value >= KIB && unit + 1 < (int)sizeof UNITS) {
        value /= KIB;
        unit++;
    }
    (void)snprintf(text, size, value < 10 && unit > 0 ? "%.1f%c" : "%.0f%c", value, UNITS[unit]);
}

static void put_time(char *text, size_t size, int64_t ms)
{
    int64_t s = ms / MS_PER_S;
    if (s < S_PER_MIN) {
        (void)snprintf(text, size, "%.1f s", (double)ms / MS_PER_S);
    } else if (s < S_PER_MIN * S_PER_MIN) {
        (void)snprintf(text, size, "%" PRId64 " min", s / S_PER_MIN);
    } else if (s < (int64_t)48 * S_PER_MIN * S_PER_MIN) {
        (void)snprintf(text, size, "%" PRId64 " h", s / S_PER_MIN / S_PER_MIN);
    } else {
        (void)snprintf(text, size, "%" PRId64 " d", s / S_PER_MIN / S_PER_MIN / 24);
    }
}

static void put_number(char text[CELL_SIZE], struct tn_json_i64 number)
{
    if (number.present) {
        (void)snprintf(text, CELL_SIZE, "%" PRId64, number.value);
    } else {
        (void)snprintf(text, CELL_SIZE, "-");
    }
}

/* The other end's: nothing of it moves the cursor. */
static void put_text(struct tn_buf *out, const char *text)
{
    for (; text && *text; text++) {
        unsigned char byte = (unsigned char)*text;
        tn_buf_byte(out, byte < ' ' || byte == 0x7f ? '?' : byte);
    }
}

static void copy(char text[CELL_SIZE], const char *from)
{
    (void)snprintf(text, CELL_SIZE, "%s", from ? from : "-");
}

/* ---- a grid ---- */

struct column {
    const char *title;
    bool left;
};

struct grid {
    const struct column *columns;
    uint32_t column_count;
    const void *first;
    const void *(*next)(const void *row);
    void (*cell)(const void *context, const void *row, uint32_t column, char text[CELL_SIZE]);
    const void *context;
};

static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text; text++) {
        width += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return width;
}

static void pad(struct tn_buf *out, size_t count)
{
    for (; count > 0; count--) {
        tn_buf_byte(out, ' ');
    }
}

static void put_cell(struct tn_buf *out, const struct column *column, size_t width, bool last,
                     const char *text)
{
    size_t own = width_of(text);
    size_t rest = width > own ? width - own : 0;
    pad(out, column->left ? 0 : rest);
    put_text(out, text);
    pad(out, column->left && !last ? rest : 0);
    tn_buf_text(out, last ? "\n" : "  ");
}

static void draw(const struct grid *grid, struct tn_buf *out)
{
    size_t widths[COLUMNS_MAX];
    char text[CELL_SIZE];
    uint32_t count = grid->column_count;
    for (uint32_t c = 0; c < count; c++) {
        widths[c] = width_of(grid->columns[c].title);
        for (const void *row = grid->first; row; row = grid->next(row)) {
            grid->cell(grid->context, row, c, text);
            widths[c] = width_of(text) > widths[c] ? width_of(text) : widths[c];
        }
    }
    for (uint32_t c = 0; c < count; c++) {
        put_cell(out, &grid->columns[c], widths[c], c + 1 == count, grid->columns[c].title);
    }
    for (const void *row = grid->first; row; row = grid->next(row)) {
        for (uint32_t c = 0; c < count; c++) {
            grid->cell(grid->context, row, c, text);
            put_cell(out, &grid->columns[c], widths[c], c + 1 == count, text);
        }
    }
}

/* ---- tables ---- */

struct times {
    const struct tn_seen *before; /* or NULL */
    int64_t ms;
};

static void put_rate(char text[CELL_SIZE], const struct times *times, int64_t rows, int64_t before,
                     bool known)
{
    if (!known || times->ms <= 0 || rows < before) {
        copy(text, NULL);
        return;
    }
    (void)snprintf(text, CELL_SIZE, "%.0f", (double)(rows - before) * MS_PER_S / (double)times->ms);
}

static void put_table_rate(char text[CELL_SIZE], const struct times *times,
                           const struct tn_seen_table *t)
{
    const struct tn_seen_table *old = times->before ? times->before->tables : NULL;
    while (old && (!old->name || !t->name || strcmp(old->name, t->name) != 0)) {
        old = old->next;
    }
    put_rate(text, times, t->rows.value, old ? old->rows.value : 0, old != NULL);
}

static void put_runs(char text[CELL_SIZE], const struct tn_seen_table *t)
{
    if (t->runs_stop.value > 0) {
        (void)snprintf(text, CELL_SIZE, "%" PRId64 "/%" PRId64, t->runs_max.value,
                       t->runs_stop.value);
    } else {
        copy(text, NULL);
    }
}

static const struct column of_tables[] = {
    {"TABLE", true},    {"STATE", true},    {"ROWS", false},     {"ROWS/S", false},
    {"WAITING", false}, {"FOR", false},     {"SNAPSHOT", false}, {"KEPT", false},
    {"RUNS", false},    {"BACKLOG", false}, {"UNTOLD", false},   {"LETTERS", false},
};

static void table_cell(const void *context, const void *row, uint32_t column, char text[CELL_SIZE])
{
    const struct tn_seen_table *t = row;
    const struct tn_json_i64 numbers[] = {t->rows,      t->uncommitted, t->snapshot,
                                          t->snapshots, t->untold,      t->letters};
    static const int number_of[] = {-1, -1, 0, -1, 1, -1, 2, 3, -1, -1, 4, 5};
    if (number_of[column] >= 0) {
        put_number(text, numbers[number_of[column]]);
    } else if (column <= 1) {
        copy(text, column == 0 ? t->name : t->state);
    } else if (column == 3) {
        put_table_rate(text, context, t);
    } else if (column == 5) {
        put_time(text, CELL_SIZE, t->oldest_ms.value);
    } else if (column == 8) {
        put_runs(text, t);
    } else {
        put_bytes(text, CELL_SIZE, t->level0_bytes.value);
    }
}

static const void *next_table(const void *row)
{
    return ((const struct tn_seen_table *)row)->next;
}

/* ---- sources ---- */

static const struct column of_sources[] = {
    {"SOURCE", true}, {"KIND", true},     {"STATE", true},    {"MESSAGES", false},
    {"ROWS", false},  {"LETTERS", false}, {"REFUSED", false}, {"AT", true},
};

static void source_cell(const void *context, const void *row, uint32_t column, char text[CELL_SIZE])
{
    const struct tn_seen_source *s = row;
    const char *const texts[] = {s->name, s->kind, s->state, NULL, NULL, NULL, NULL, s->at};
    const struct tn_json_i64 numbers[] = {s->messages, s->rows, s->letters, s->refused};
    (void)context;
    if (column >= 3 && column <= 6) {
        put_number(text, numbers[column - 3]);
    } else {
        copy(text, texts[column]);
    }
}

static const void *next_source(const void *row)
{
    return ((const struct tn_seen_source *)row)->next;
}

/* ---- lakes ---- */

static const struct column of_lakes[] = {
    {"LAKE", true},   {"UPLOADS", false}, {"FAILED", false}, {"SENT", false},
    {"TODAY", false}, {"MONTH", false},   {"ASKED", false},  {"TARGET", true},
};

static void lake_cell(const void *context, const void *row, uint32_t column, char text[CELL_SIZE])
{
    const struct tn_seen_lake *l = row;
    const struct tn_json_i64 bytes[] = {l->sent_bytes, l->day_bytes, l->month_bytes};
    (void)context;
    if (column == 0 || column == 7) {
        copy(text, column == 0 ? l->name : l->target);
    } else if (column <= 2) {
        put_number(text, column == 1 ? l->uploads : l->failures);
    } else if (column <= 5) {
        put_bytes(text, CELL_SIZE, bytes[column - 3].value);
    } else {
        put_number(text, l->month_requests);
    }
}

static const void *next_lake(const void *row)
{
    return ((const struct tn_seen_lake *)row)->next;
}

static const struct column of_mirrors[] = {
    {"MIRROR", true},  {"LAKE", true},   {"STATE", true},   {"SNAPSHOT", false},
    {"BEHIND", false}, {"BYTES", false}, {"PINNED", false}, {"FOR", false},
};

static void mirror_cell(const void *context, const void *row, uint32_t column, char text[CELL_SIZE])
{
    const struct tn_seen_mirror *m = row;
    const char *const texts[] = {m->table, m->lake, m->state};
    (void)context;
    if (column <= 2) {
        copy(text, texts[column]);
    } else if (column <= 4) {
        put_number(text, column == 3 ? m->snapshot : m->behind);
    } else if (column <= 6) {
        put_bytes(text, CELL_SIZE, column == 5 ? m->behind_bytes.value : m->pinned_bytes.value);
    } else {
        put_time(text, CELL_SIZE, m->behind_ms.value);
    }
}

static const void *next_mirror(const void *row)
{
    return ((const struct tn_seen_mirror *)row)->next;
}

struct count {
    int64_t count;
    const char *of;
};

/* A line, where any is more than 0. */
static void draw_counts(const char *whose, const char *what, const struct count *counts,
                        size_t count, struct tn_buf *out)
{
    const char *before = what;
    for (size_t i = 0; i < count; i++) {
        if (counts[i].count > 0) {
            put_text(out, before == what ? whose : "");
            tn_buf_format(out, "%s%" PRId64 " %s", before, counts[i].count, counts[i].of);
            before = ", ";
        }
    }
    tn_buf_text(out, before == what ? "" : "\n");
}

/* What a store charges for: a line for each lake that was asked anything. */
static void draw_requests(const struct tn_seen_lake *lake, struct tn_buf *out)
{
    for (; lake; lake = lake->next) {
        const struct count verbs[] = {{lake->gets.value, "GET"},
                                      {lake->heads.value, "HEAD"},
                                      {lake->puts.value, "PUT"},
                                      {lake->lists.value, "LIST"},
                                      {lake->deletes.value, "DELETE"}};
        draw_counts(lake->name, " asked: ", verbs, sizeof verbs / sizeof verbs[0], out);
    }
}

/* What a gateway did to a table that it shares, and tags that could not go along. */
static void draw_notes(const struct tn_seen_mirror *m, struct tn_buf *out)
{
    for (; m; m = m->next) {
        const struct count notes[] = {
            {m->shared ? m->commits.value : 0, "commits"},
            {m->lost_names.value, "names lost to others"},
            {m->replaced_commits.value, "commits written over, and sent again"},
            {m->tags_left.value, "tags stay here: there are others of their names"},
            {m->tags_denied.value, "tags stay there: nobody may remove them"}};
        draw_counts(m->table, m->shared ? ", shared: " : ": ", notes,
                    sizeof notes / sizeof notes[0], out);
    }
}

static void draw_lakes(const struct tn_seen *seen, struct tn_buf *out)
{
    struct grid lakes = {.columns = of_lakes,
                         .column_count = sizeof of_lakes / sizeof of_lakes[0],
                         .first = seen->lakes,
                         .next = next_lake,
                         .cell = lake_cell};
    struct grid mirrors = {.columns = of_mirrors,
                           .column_count = sizeof of_mirrors / sizeof of_mirrors[0],
                           .first = seen->mirrors,
                           .next = next_mirror,
                           .cell = mirror_cell};
    if (seen->lakes) {
        draw(&lakes, out);
        draw_requests(seen->lakes, out);
        tn_buf_text(out, "\n");
        draw(&mirrors, out);
        draw_notes(seen->mirrors, out);
        tn_buf_text(out, "\n");
    }
}

/* ---- all of it ---- */

static void put_heading(const struct tn_seen *seen, struct tn_buf *out)
{
    char up[CELL_SIZE];
    put_time(up, sizeof up, seen->daemon.up_ms.value);
    tn_buf_text(out, "tarn ");
    put_text(out, seen->daemon.version);
    tn_buf_format(out, ", process %" PRId64 ", since %s: ", seen->daemon.process.value, up);
    put_text(out, seen->daemon.status);
    tn_buf_text(out, "\n");
}

struct amount {
    const char *word; /* before it */
    int64_t bytes;
};

static void put_amounts(struct tn_buf *out, const struct amount *amounts, size_t count,
                        const char *end)
{
    char text[CELL_SIZE];
    for (size_t i = 0; i < count; i++) {
        put_bytes(text, sizeof text, amounts[i].bytes);
        tn_buf_text(out, amounts[i].word);
        tn_buf_text(out, text);
    }
    tn_buf_text(out, end);
}

/* What the daemon tells of them. */
static void put_disk_and_wear(const struct tn_seen_daemon *d, struct tn_buf *out)
{
    const struct amount disk[] = {{"disk: ", d->disk_free.value},
                                  {" free, of which ", d->disk_reserve.value}};
    const struct amount wear[] = {{"wear: ", d->wear_left.value},
                                  {" of ", d->wear_budget.value},
                                  {" a day left, ", d->wear_overdraft.value}};
    if (d->disk_free.present) {
        put_amounts(out, disk, sizeof disk / sizeof disk[0], " are kept\n");
    }
    if (d->wear_budget.present) {
        put_amounts(out, wear, sizeof wear / sizeof wear[0], " overdrawn\n");
    }
}

static void put_rest(const struct tn_seen *seen, struct tn_buf *out)
{
    const struct tn_seen_journal *j = &seen->journal;
    char bytes[CELL_SIZE];
    char most[CELL_SIZE];
    put_bytes(bytes, sizeof bytes, j->bytes.value);
    put_bytes(most, sizeof most, j->bytes_max.value);
    tn_buf_format(out,
                  "journal: %s of %s, %" PRId64 " messages not synced, %" PRId64
                  " offers found no room\n",
                  bytes, most, j->next.value - j->durable.value, j->waits.value);
    tn_buf_format(out, "loop: longest stall %.1f ms, %" PRId64 " over %d ms\n",
                  (double)seen->daemon.stall_longest_us.value / MS_PER_S, seen->daemon.stalls.value,
                  TN_PULSE_STALL_MS);
    put_disk_and_wear(&seen->daemon, out);
}

static void put_reason(void *user, const char *whose, const char *text)
{
    struct tn_buf *out = user;
    put_text(out, whose);
    tn_buf_text(out, ": ");
    put_text(out, text);
    tn_buf_text(out, "\n");
}

void tn_seen_draw(const struct tn_seen *seen, const struct tn_seen *before, int64_t ms,
                  struct tn_buf *out)
{
    struct times times = {before, ms};
    struct grid tables = {.columns = of_tables,
                          .column_count = sizeof of_tables / sizeof of_tables[0],
                          .first = seen->tables,
                          .next = next_table,
                          .cell = table_cell,
                          .context = &times};
    struct grid sources = {.columns = of_sources,
                           .column_count = sizeof of_sources / sizeof of_sources[0],
                           .first = seen->sources,
                           .next = next_source,
                           .cell = source_cell};
    put_heading(seen, out);
    (void)tn_seen_reasons(seen, put_reason, out);
    tn_buf_text(out, "\n");
    draw(&tables, out);
    tn_buf_text(out, "\n");
    draw(&sources, out);
    tn_buf_text(out, "\n");
    draw_lakes(seen, out);
    put_rest(seen, out);
}
