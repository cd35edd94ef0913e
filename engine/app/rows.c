#include "app/rows.h"

enum { TEXT_SIZE = 128 * 1024 };

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
        return tn_err_set(err, TN_AGAIN, 0, "a row of more than %zu bytes of JSON",
                          p->text.capacity);
    }
    return tn_output_json(&p->output, tn_buf_bytes(&p->text), err);
}

static tn_rc put_cells(struct tn_row_printer *p, const struct tn_kv *kv, struct tn_err *err)
{
    p->text.size = 0;
    uint32_t at = 0;
    if (p->kind) {
        p->cells[at++] = (struct tn_cell){.text = tn_bytes_of(tn_row_kind_text(kv->kind))};
    }
    for (uint32_t i = 0; i < p->projection->columns.count; i++) {
        uint32_t column = p->projection->columns.index[i];
        struct tn_value value;
        size_t start = p->text.size;
        tn_row_get(&p->projection->layout, kv->row, column, &value);
        tn_value_format_text(&p->projection->layout.columns[column].type, &value, &p->text);
        p->cells[at++] = (struct tn_cell){.text = {p->text.data + start, p->text.size - start},
                                          .null = value.null};
    }
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
