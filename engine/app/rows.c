#include "app/rows.h"

enum {
    TEXT_SIZE = 128 * 1024,
    PIECE_SIZE = 8 * 1024, /* of a long value at once: its JSON is six times as long at most */
    LONG_ROW = 32 * 1024,  /* from here on texts are not copied: their hex may not fit the buffer */
};

tn_rc tn_row_printer_open(struct tn_row_printer *printer, const struct tn_projection *projection,
                          const struct tn_scan_spec *spec, bool kind, struct tn_arena *arena,
                          struct tn_err *err)
{
    *printer = (struct tn_row_printer){.projection = projection, .kind = kind};
    uint32_t count = projection->columns.count + kind;
    void *memory;
    tn_rc rc = tn_arena_need(
        arena, (count + 1) * (sizeof(char *) + sizeof *printer->cells) + TEXT_SIZE + 64, "output",
        &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    printer->cells = memory;
    const char **names = (const char **)(void *)(printer->cells + count + 1);
    tn_buf_init(&printer->text, names + count + 1, TEXT_SIZE);
    uint32_t at = 0;
    if (kind) {
        names[at++] = "_kind";
    }
    for (uint32_t i = 0; at < count; i++) {
        names[at++] = spec->schema->fields[spec->fields ? spec->fields[i] : i].name;
    }
    return tn_output_open(&printer->output, names, count, arena, err);
}

/* ---- rows that are longer than the buffer, piece by piece ---- */

static tn_rc send(struct tn_row_printer *p, bool ends, struct tn_err *err)
{
    struct tn_bytes text = tn_buf_bytes(&p->text);
    p->text.size = 0;
    return tn_output_json(&p->output, text, ends, err);
}

/* Bytes as JSON, or their hex: of each piece without the quotes. */
static tn_rc send_bytes(struct tn_row_printer *p, const struct tn_type *type, struct tn_bytes bytes,
                        struct tn_err *err)
{
    tn_buf_byte(&p->text, '"');
    tn_rc rc = send(p, false, err);
    for (size_t at = 0; rc == TN_OK && at < bytes.size; at += PIECE_SIZE) {
        size_t left = bytes.size - at;
        struct tn_value piece = {
            .as.bytes = {bytes.data + at, left < PIECE_SIZE ? left : PIECE_SIZE}};
        tn_value_format_json(type, &piece, &p->text);
        struct tn_bytes text = {p->text.data + 1, p->text.size - 2};
        p->text.size = 0;
        rc = tn_output_json(&p->output, text, false, err);
    }
    tn_buf_byte(&p->text, '"');
    return rc;
}

static tn_rc put_long_json(struct tn_row_printer *p, const struct tn_kv *kv, struct tn_err *err)
{
    const struct tn_row_layout *layout = &p->projection->layout;
    struct tn_columns columns = p->projection->columns;
    if (p->kind) {
        tn_buf_format(&p->text, "{\"kind\":\"%s\",\"row\":", tn_row_kind_text(kv->kind));
    }
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < columns.count; i++) {
        const struct tn_column *c = &layout->columns[columns.index[i]];
        struct tn_value value;
        tn_row_get(layout, kv->row, columns.index[i], &value);
        tn_buf_byte(&p->text, i > 0 ? ',' : '{');
        tn_json_string(&p->text, tn_bytes_of(c->name));
        tn_buf_byte(&p->text, ':');
        if (c->slot == TN_SLOT_BYTES && !value.null) {
            rc = send_bytes(p, &c->type, value.as.bytes, err);
        } else {
            tn_value_format_json(&c->type, &value, &p->text);
            rc = send(p, false, err);
        }
    }
    tn_buf_text(&p->text, p->kind ? "}}" : "}");
    return rc == TN_OK ? send(p, true, err) : rc;
}

/* Texts stay where they are in the row, and hex is made where it is printed. */
static void long_cell(struct tn_row_printer *p, const struct tn_column *column,
                      const struct tn_value *value, struct tn_cell *cell)
{
    size_t start = p->text.size;
    *cell = (struct tn_cell){.null = value->null};
    if (column->slot == TN_SLOT_BYTES) {
        if (!value->null) {
            cell->text = value->as.bytes;
        }
        cell->hex = tn_type_binary(column->type.kind);
        return;
    }
    tn_value_format_text(&column->type, value, &p->text);
    cell->text = (struct tn_bytes){p->text.data + start, p->text.size - start};
}

/* ---- rows ---- */

static tn_rc put_json(struct tn_row_printer *p, const struct tn_kv *kv, struct tn_err *err)
{
    p->text.size = 0;
    if (p->kind) {
        tn_buf_format(&p->text, "{\"kind\":\"%s\",\"row\":", tn_row_kind_text(kv->kind));
    }
    tn_row_format_json(&p->projection->layout, &p->projection->columns, kv->row, &p->text);
    if (p->kind) {
        tn_buf_byte(&p->text, '}');
    }
    if (p->text.overflow) {
        tn_buf_init(&p->text, p->text.data, p->text.capacity);
        return put_long_json(p, kv, err);
    }
    return tn_output_json(&p->output, tn_buf_bytes(&p->text), true, err);
}

static void fill_cells(struct tn_row_printer *p, const struct tn_kv *kv)
{
    const struct tn_row_layout *layout = &p->projection->layout;
    bool is_long = kv->row.size > LONG_ROW;
    uint32_t at = 0;
    if (p->kind) {
        p->cells[at++] = (struct tn_cell){.text = tn_bytes_of(tn_row_kind_text(kv->kind))};
    }
    for (uint32_t i = 0; i < p->projection->columns.count; i++) {
        const struct tn_column *column = &layout->columns[p->projection->columns.index[i]];
        struct tn_value value;
        size_t start = p->text.size;
        tn_row_get(layout, kv->row, p->projection->columns.index[i], &value);
        if (is_long) {
            long_cell(p, column, &value, &p->cells[at++]);
            continue;
        }
        tn_value_format_text(&column->type, &value, &p->text);
        p->cells[at++] = (struct tn_cell){.text = {p->text.data + start, p->text.size - start},
                                          .null = value.null};
    }
}

static tn_rc put_cells(struct tn_row_printer *p, const struct tn_kv *kv, struct tn_err *err)
{
    p->text.size = 0;
    fill_cells(p, kv);
    if (p->text.overflow) {
        return tn_err_set(err, TN_AGAIN, 0, "a row of more than %zu bytes of text",
                          p->text.capacity);
    }
    return tn_output_row(&p->output, p->cells, err);
}

tn_rc tn_row_printer_put(struct tn_row_printer *printer, const struct tn_kv *kv, struct tn_err *err)
{
    return printer->output.format == TN_FORMAT_JSON ? put_json(printer, kv, err)
                                                    : put_cells(printer, kv, err);
}

tn_rc tn_row_printer_flush(struct tn_row_printer *printer, struct tn_err *err)
{
    return tn_output_flush(&printer->output, err);
}

tn_rc tn_row_printer_close(struct tn_row_printer *printer, struct tn_err *err)
{
    return tn_output_close(&printer->output, err);
}
