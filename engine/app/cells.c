#include "app/cells.h"

#include <inttypes.h>

#include "base/check.h"

enum { TEXT_SIZE = 32 * 1024 };

tn_rc tn_cells_open(struct tn_cells *cells, const char *const *names, uint32_t count,
                    struct tn_arena *arena, struct tn_err *err)
{
    void *memory;
    *cells = (struct tn_cells){0};
    tn_rc rc = tn_arena_need(arena, TEXT_SIZE, "output", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_buf_init(&cells->text, memory, TEXT_SIZE);
    return tn_output_open(&cells->output, names, count, arena, err);
}

tn_rc tn_cells_close(struct tn_cells *cells, struct tn_err *err)
{
    return tn_output_close(&cells->output, err);
}

static struct tn_cell *next_cell(struct tn_cells *cells)
{
    TN_CHECK(cells->count < cells->output.count && cells->count < TN_CELLS_MAX);
    struct tn_cell *cell = &cells->cells[cells->count++];
    *cell = (struct tn_cell){
        .text = {cells->text.data + cells->start, cells->text.size - cells->start}};
    cells->start = cells->text.size;
    return cell;
}

void tn_cells_put(struct tn_cells *cells, bool null)
{
    next_cell(cells)->null = null;
}

void tn_cells_json(struct tn_cells *cells)
{
    struct tn_cell *cell = next_cell(cells);
    cell->json = cell->text;
}

void tn_cells_text(struct tn_cells *cells, const char *text)
{
    tn_buf_text(&cells->text, text ? text : "");
    next_cell(cells)->null = !text;
}

void tn_cells_number(struct tn_cells *cells, int64_t number)
{
    tn_buf_format(&cells->text, "%" PRId64, number);
    struct tn_cell *cell = next_cell(cells);
    cell->json = cell->text;
}

tn_rc tn_cells_end(struct tn_cells *cells, struct tn_err *err)
{
    TN_CHECK(cells->count == cells->output.count);
    tn_rc rc = cells->text.overflow
                   ? tn_err_set(err, TN_AGAIN, 0, "a row of more than %d bytes of text", TEXT_SIZE)
                   : tn_output_row(&cells->output, cells->cells, err);
    cells->count = 0;
    cells->start = 0;
    cells->text.size = 0;
    return rc;
}

tn_rc tn_cells_view_row(void *cells, const struct tn_view_cell *row, struct tn_err *err)
{
    struct tn_cells *c = cells;
    TN_CHECK(c->output.count <= TN_CELLS_MAX);
    for (uint32_t i = 0; i < c->output.count; i++) {
        c->cells[i] = (struct tn_cell){.text = row[i].text, .null = row[i].null};
        if (row[i].plain) {
            c->cells[i].json = row[i].text;
        }
    }
    return tn_output_row(&c->output, c->cells, err);
}
