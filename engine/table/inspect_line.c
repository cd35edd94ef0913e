#include "table/inspect_private.h"

#include <inttypes.h>

#include "base/check.h"

/* ---- cells ---- */

void tn_line_cell(struct tn_line *l, bool plain, bool null)
{
    TN_CHECK(l->count < TN_LINE_CELLS_MAX);
    l->cells[l->count++] = (struct tn_view_cell){
        .text = {l->text.data + l->start, l->text.size - l->start}, .plain = plain, .null = null};
    l->start = l->text.size;
}

void tn_line_null(struct tn_line *l)
{
    tn_line_cell(l, false, true);
}

void tn_line_text(struct tn_line *l, const char *text)
{
    if (!text) {
        tn_line_null(l);
        return;
    }
    tn_buf_text(&l->text, text);
    tn_line_cell(l, false, false);
}

void tn_line_number(struct tn_line *l, int64_t value)
{
    tn_buf_format(&l->text, "%" PRId64, value);
    tn_line_cell(l, true, false);
}

void tn_line_maybe(struct tn_line *l, struct tn_json_i64 value)
{
    if (value.present) {
        tn_line_number(l, value.value);
    } else {
        tn_line_null(l);
    }
}

/* A moment in UTC, or a local wall clock. */
void tn_line_time(struct tn_line *l, enum tn_type_kind kind, int64_t ms)
{
    struct tn_type type = {.kind = kind, .nullable = true, .precision = 3};
    struct tn_value value = {.as.i64 = ms};
    tn_value_format_text(&type, &value, &l->text);
    tn_line_cell(l, false, false);
}

tn_rc tn_line_end(struct tn_line *l, struct tn_err *err)
{
    TN_CHECK(l->count == l->view->column_count);
    tn_rc rc = l->text.overflow ? tn_err_set(err, TN_AGAIN, 0,
                                             "a row of more than %d bytes of text", TN_LINE_SIZE)
                                : l->each(l->user, l->cells, err);
    l->count = 0;
    l->start = 0;
    l->text.size = 0;
    return rc;
}

/* ---- binary rows ---- */

static bool readable(const struct tn_type *types, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (tn_type_nested(types[i].kind)) {
            return false;
        }
    }
    return true;
}

/* One value a type; NULL when that can't be said. */
struct tn_value *tn_line_values(struct tn_bytes binary, const struct tn_type *types, uint32_t count,
                                struct tn_arena *scratch)
{
    struct tn_err ignored;
    struct tn_value *values = tn_arena_take(scratch, (count + 1) * sizeof *values);
    bool ok = values && readable(types, count) && binary.size > 0 &&
              tn_binary_to_values(binary, types, count, values, &ignored) == TN_OK;
    return ok ? values : NULL;
}

void tn_line_value(struct tn_buf *buf, const struct tn_type *type, const struct tn_value *value)
{
    if (value->null) {
        tn_buf_text(buf, "null");
    } else {
        tn_value_format_text(type, value, buf);
    }
}

bool tn_view_binary_text(struct tn_bytes binary, const struct tn_type *types, uint32_t count,
                         const char *brackets, struct tn_arena *scratch, struct tn_buf *buf)
{
    size_t mark = tn_arena_mark(scratch);
    const struct tn_value *values = tn_line_values(binary, types, count, scratch);
    for (uint32_t i = 0; values && i < count; i++) {
        tn_buf_text(buf, i ? ", " : (const char[]){brackets[0], 0});
        tn_line_value(buf, &types[i], &values[i]);
    }
    if (values) {
        tn_buf_text(buf, count ? brackets + 1 : brackets);
    }
    tn_arena_reset(scratch, mark);
    return values != NULL;
}

static const struct tn_type *types_of(const struct tn_schema *schema, struct tn_columns columns,
                                      struct tn_arena *arena)
{
    struct tn_type *types = tn_arena_take(arena, (columns.count + 1) * sizeof *types);
    for (uint32_t i = 0; types && i < columns.count; i++) {
        types[i] = schema->fields[columns.index[i]].type;
    }
    return types;
}

void tn_line_row(struct tn_line *l, struct tn_bytes binary, const struct tn_schema *schema,
                 struct tn_columns columns, const char *brackets)
{
    struct tn_arena *scratch = &l->in->worker->arena;
    size_t mark = tn_arena_mark(scratch);
    const struct tn_type *types = types_of(schema, columns, scratch);
    bool known =
        types && tn_view_binary_text(binary, types, columns.count, brackets, scratch, &l->text);
    tn_arena_reset(scratch, mark);
    tn_line_cell(l, false, !known);
}

void tn_line_partition(struct tn_line *l, struct tn_bytes partition)
{
    tn_line_row(l, partition, l->in->schema, l->in->schema->partition_keys, "{}");
}
