/* tarn explain: the life of one key: its versions, what each did, what a reader sees. */
#include "app/cells.h"
#include "app/cmd.h"
#include "app/key.h"
#include "read/history.h"
#include "script/scripted.h"

static struct {
    const char *columns;
} o;

static const struct tn_flag flags[] = {
    TN_READER_FLAGS,
    {"columns", 0, TN_FLAG_TEXT, &o.columns, "A,B", "only these columns"},
};

enum { ROW_TEXT_MAX = 12 * 1024 }; /* JSON of a row; a line has two and its texts */

static const char *const columns[] = {"step", "file", "level",   "sequence",
                                      "kind", "row",  "changed", "did"};

struct explain {
    const struct tn_text_list *words;
    bool found;
    struct tn_scan_spec spec;
    bool newest; /* schema */
    struct tn_cells cells;
    struct tn_history history;
};

/* ---- cells ---- */

/* Columns that are shown, of those that `changed` names (NULL: all), as a JSON object; a text that
 * names its size where it is too long. */
static void put_values(struct tn_cells *cells, const struct tn_projection *p, struct tn_row row,
                       const bool *changed)
{
    struct tn_buf *buf = &cells->text;
    size_t start = buf->size;
    const char *separator = "{";
    for (uint32_t i = 0; i < p->columns.count; i++) {
        const struct tn_column *c = &p->layout.columns[p->columns.index[i]];
        struct tn_value value;
        if (changed && !changed[p->columns.index[i]]) {
            continue;
        }
        tn_row_get(&p->layout, row, p->columns.index[i], &value);
        tn_buf_text(buf, separator);
        tn_json_string(buf, tn_bytes_of(c->name));
        tn_buf_byte(buf, ':');
        tn_value_format_json(&c->type, &value, buf);
        separator = ",";
    }
    tn_buf_text(buf, *separator == '{' ? "{}" : "}");
    if (buf->overflow || buf->size - start > ROW_TEXT_MAX) {
        buf->overflow = false;
        buf->size = start;
        tn_buf_format(buf, "\"%u bytes\"", row.size);
    }
    tn_cells_json(cells);
}

static void put_version(struct tn_cells *cells, const struct tn_history_step *step)
{
    tn_cells_number(cells, step->number);
    tn_cells_text(cells, step->file);
    tn_cells_number(cells, step->kv->level);
    tn_cells_number(cells, step->kv->sequence);
    tn_cells_text(cells, tn_row_kind_text(step->kv->kind));
}

static void put_order(const struct explain *e, const struct tn_history_step *step,
                      struct tn_buf *text)
{
    const struct tn_order *order = &e->history.projection.order;
    switch (step->order) {
    case TN_HISTORY_FIRST:
        break;
    case TN_HISTORY_SEQUENCE_FIELDS:
        tn_buf_text(text, "later by ");
        for (uint32_t i = 0; i < order->sequence_fields.count; i++) {
            tn_buf_format(text, "%s%s", i > 0 ? ", " : "",
                          order->layout->columns[order->sequence_fields.index[i]].name);
        }
        tn_buf_text(text, ": ");
        break;
    case TN_HISTORY_SEQUENCE_NUMBER:
        tn_buf_text(text, "later by its sequence number: ");
        break;
    case TN_HISTORY_ADD:
        tn_buf_text(text, "an add comes behind a retract of the same number: ");
        break;
    case TN_HISTORY_LEVEL:
        tn_buf_text(text, "of the same number, on a smaller level: ");
        break;
    }
}

static const char *passed_text(const struct explain *e, const struct tn_history_step *step)
{
    if (tn_row_kind_retracts(step->kv->kind)) {
        return "passed over: ignore-delete";
    }
    return e->history.engine == TN_MERGE_FIRST_ROW ? "passed over: the first row stays"
                                                   : "passed over";
}

static const char *counts_text(const struct explain *e, const struct tn_history_step *step)
{
    bool gone = tn_row_kind_retracts(step->kind);
    bool whole = e->history.engine == TN_MERGE_DEDUPLICATE;
    if (gone != tn_row_kind_retracts(step->before)) {
        return gone ? "removes the row" : "brings the row back";
    }
    for (uint32_t i = 0; i < e->history.projection.layout.column_count; i++) {
        if (step->changed[i]) {
            return whole ? "replaces the row" : "changes columns";
        }
    }
    return whole ? "replaces the row by the same" : "changes nothing";
}

/* Where a version is older by a group's order, or has none, it has not changed the group. */
static void put_group(const struct explain *e, const struct tn_history_step *step,
                      const struct tn_sequence_group *group, struct tn_buf *text)
{
    const struct tn_projection *p = &e->history.projection;
    bool empty = true;
    bool taken = true;
    for (uint32_t i = 0; i < group->order.count; i++) {
        int32_t column = p->column_of[group->order.index[i]];
        struct tn_value own;
        struct tn_value made;
        if (column < 0) {
            return;
        }
        tn_row_get(&p->layout, step->kv->row, (uint32_t)column, &own);
        tn_row_get(&p->layout, step->row, (uint32_t)column, &made);
        empty = empty && own.null;
        taken = taken && tn_value_compare(&p->layout.columns[column].type, &own, &made) == 0;
    }
    const char *separator = "; ";
    for (uint32_t i = 0; (empty || !taken) && i < group->order.count; i++) {
        tn_buf_format(text, "%s%s", separator, e->spec.schema->fields[group->order.index[i]].name);
        separator = ", ";
    }
    tn_buf_text(text, empty   ? ": NULL, so its group stays"
                      : taken ? ""
                              : ": older, so its group stays");
}

/* Groups are numbered by the newest schema. */
static void put_groups(const struct explain *e, const struct tn_history_step *step,
                       struct tn_buf *text)
{
    const struct tn_options *options = e->spec.options;
    bool gone = tn_row_kind_retracts(step->kind);
    for (uint32_t g = 0; !gone && e->newest && g < options->sequence_group_count; g++) {
        put_group(e, step, &options->sequence_groups[g], text);
    }
}

static void put_deed(struct explain *e, const struct tn_history_step *step)
{
    struct tn_buf *text = &e->cells.text;
    if (step->deed != TN_HISTORY_UNSEEN) {
        put_order(e, step, text);
    }
    switch (step->deed) {
    case TN_HISTORY_ALONE:
        tn_buf_text(text, "the only version: it is not merged");
        break;
    case TN_HISTORY_BEGINS:
        tn_buf_text(text,
                    tn_row_kind_retracts(step->kind) ? "begins without a row" : "begins the row");
        break;
    case TN_HISTORY_COUNTS:
        tn_buf_text(text, counts_text(e, step));
        put_groups(e, step, text);
        break;
    case TN_HISTORY_PASSED:
        tn_buf_text(text, passed_text(e, step));
        break;
    case TN_HISTORY_DEEPER:
        tn_buf_text(text, "not counted: of the levels above 0 only the smallest is, into which "
                          "this was merged");
        break;
    case TN_HISTORY_UNSEEN:
        tn_buf_text(text, "not read: level 0 of first-row is seen when it is compacted");
        break;
    case TN_HISTORY_FAILS:
        tn_buf_format(text, "can't be merged: %s", step->why);
        break;
    case TN_HISTORY_UNREACHED:
        tn_buf_text(text, "not reached: the merge failed");
        break;
    }
    if (step->bad) {
        tn_buf_format(text, "; can't be read: %s", step->bad);
    }
    tn_cells_put(&e->cells, false);
}

static tn_rc put_step(void *user, const struct tn_history *history,
                      const struct tn_history_step *step, struct tn_err *err)
{
    struct explain *e = user;
    put_version(&e->cells, step);
    put_values(&e->cells, &history->projection, step->kv->row, NULL);
    if (step->deed == TN_HISTORY_COUNTS) {
        put_values(&e->cells, &history->projection, step->row, step->changed);
    } else {
        tn_cells_text(&e->cells, NULL);
    }
    put_deed(e, step);
    return tn_cells_end(&e->cells, err);
}

/* A script is asked when rows are flushed, never where versions are merged. */
static void put_outcome(struct explain *e, bool shown)
{
    struct tn_buf *text = &e->cells.text;
    bool script = tn_schema_option(e->spec.schema, TN_SCRIPT_OPTION) != NULL;
    tn_buf_text(text, shown ? "a reader sees this row" : "a reader sees no row");
    if (!shown && e->history.there) {
        tn_buf_text(text, "; a compaction of all levels forgets that there was one");
    }
    if (shown && script) {
        tn_buf_text(text, "; tarn.script resolved what came before it was written");
    }
    tn_cells_put(&e->cells, false);
}

/* The last line: no version, but what comes of them. */
static tn_rc put_result(struct explain *e, struct tn_err *err)
{
    const struct tn_history *h = &e->history;
    bool shown = h->there && !tn_row_kind_retracts(h->kv.kind);
    tn_cells_text(&e->cells, NULL);
    tn_cells_text(&e->cells, NULL);
    tn_cells_text(&e->cells, NULL);
    if (!h->there) {
        tn_cells_text(&e->cells, NULL);
        tn_cells_text(&e->cells, NULL);
    } else {
        tn_cells_number(&e->cells, h->kv.sequence);
        tn_cells_text(&e->cells, tn_row_kind_text(h->kv.kind));
    }
    if (shown) {
        put_values(&e->cells, &h->projection, h->kv.row, NULL);
    } else {
        tn_cells_text(&e->cells, NULL);
    }
    tn_cells_text(&e->cells, NULL);
    put_outcome(e, shown);
    return tn_cells_end(&e->cells, err);
}

/* ---- the verb ---- */

static tn_rc tell(struct tn_reader *reader, struct explain *e, const struct tn_value *key,
                  struct tn_err *err)
{
    struct tn_app *app = reader->app;
    const struct tn_part *window = tn_budget_part(&app->budget, "memtable");
    struct tn_history_spec spec = {.scan = &e->spec, .key = key, .step = put_step, .user = e};
    tn_rc rc =
        tn_cells_open(&e->cells, columns, sizeof columns / sizeof columns[0], &app->input, err);
    if (rc == TN_OK) {
        rc = tn_history(&spec, window->base, window->size, &app->table, &app->workers[TN_LANE_LONG],
                        &e->history, err);
    }
    e->found = rc == TN_OK;
    if (rc == TN_ABSENT) {
        return TN_OK;
    }
    if (rc == TN_OK) {
        rc = put_result(e, err);
    }
    struct tn_err unsaid;
    tn_rc closed = tn_cells_close(&e->cells, rc == TN_OK ? err : &unsaid);
    return rc == TN_OK ? closed : rc;
}

static tn_rc explain(struct tn_reader *reader, struct tn_attempt *attempt, struct tn_err *err)
{
    struct explain *e = attempt->user;
    const struct tn_value *key = NULL;
    tn_rc rc = tn_key_parse(reader, e->words, &key, err);
    e->spec = (struct tn_scan_spec){.root = reader->root,
                                    .snapshot = reader->empty ? NULL : &reader->snapshot,
                                    .schema = reader->schema,
                                    .options = &reader->options,
                                    .schemas = &reader->schemas};
    e->newest = reader->schema == reader->newest;
    if (rc == TN_OK && o.columns) {
        rc = tn_reader_fields(reader, o.columns, &e->spec.fields, &e->spec.field_count, err);
    }
    if (rc == TN_OK) {
        rc = tell(reader, e, key, err);
        attempt->began = e->history.version_count > 0 && e->cells.output.rows > 0;
    }
    return rc;
}

static int run(const struct tn_text_list *words)
{
    if (words->count < 2) {
        return tn_say_usage(&tn_cmd_explain);
    }
    static struct tn_app app;
    static struct tn_reader reader;
    static struct explain e;
    struct tn_attempt attempt = {.run = explain, .user = &e};
    struct tn_err err = {0};
    tn_rc rc = tn_boot(&app, false, &err);
    if (rc != TN_OK) {
        return tn_say_error(rc, &err);
    }
    e = (struct explain){.words = words};
    rc = tn_reader_try(&reader, &app, words->items[0], &attempt, &err);
    int code = rc != TN_OK ? tn_say_error(rc, &err) : e.found ? 0 : 1;
    tn_shut(&app);
    return code;
}

const struct tn_command tn_cmd_explain = {
    "explain",
    "explain D.T KEY...",
    "the life of one key: its versions, and which counts why",
    flags,
    sizeof flags / sizeof flags[0],
    run,
};
