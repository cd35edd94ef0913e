#include "app/older.h"

#include <inttypes.h>

enum { ALIGN = 16, TEXT_MAX = 1 << 20 };

void tn_older_open(struct tn_older *older, const struct tn_table *table, int64_t schema,
                   uint32_t size_max, struct tn_arena *arena)
{
    const struct tn_schema *newest = tn_table_schema(table);
    const struct tn_schema *was = tn_table_schema_of(table, schema);
    *older = (struct tn_older){.table = table, .size_max = size_max, .arena = arena};
    if (schema == newest->id) {
        older->layout = tn_table_layout(table);
    } else if (!was) {
        (void)tn_err_set(&older->why, TN_INVALID, 0,
                         "a row of schema %" PRId64 ", which the table does not have", schema);
    } else {
        tn_rc rc =
            tn_evolve_open(&older->evolve, was, newest, tn_table_layout(table), arena, &older->why);
        older->evolves = rc == TN_OK;
        older->layout = older->evolve.from;
    }
    older->mark = tn_arena_mark(arena);
}

void tn_older_text(const struct tn_row_layout *layout, const struct tn_parcel_item *item,
                   struct tn_buf *text)
{
    tn_buf_format(text, "{\"kind\":\"%s\",\"row\":", tn_row_kind_text(item->row_kind));
    tn_row_format_json(layout, NULL, (struct tn_row){item->data.data, (uint32_t)item->data.size},
                       text);
    tn_buf_text(text, "}");
}

/* In what is left of the arena; if that is too little the bytes stay. */
static void become_text(const struct tn_older *older, struct tn_parcel_item *item)
{
    struct tn_buf text;
    tn_arena_reset(older->arena, older->mark);
    size_t size = tn_arena_free(older->arena) / ALIGN * ALIGN;
    size = size < TEXT_MAX ? size : TEXT_MAX;
    unsigned char *memory = tn_arena_take_raw(older->arena, size);
    if (!memory) {
        return;
    }
    tn_buf_init(&text, memory, size);
    tn_older_text(older->layout, item, &text);
    item->data = text.overflow ? item->data : tn_buf_bytes(&text);
}

tn_rc tn_older_item(struct tn_older *older, struct tn_parcel_item *item, struct tn_err *err)
{
    struct tn_row row = {item->data.data, (uint32_t)item->data.size};
    if (item->kind != TN_PARCEL_ROW) {
        return TN_OK;
    }
    if (!older->layout) {
        *err = older->why;
        return TN_INVALID;
    }
    if (!tn_row_valid(older->layout, row)) {
        return tn_err_set(err, TN_INVALID, 0,
                          "the journal's row is none of the table: another one was there before");
    }
    if (!older->evolves && older->why.code != TN_OK) {
        *err = older->why;
        become_text(older, item);
        return TN_INVALID;
    }
    if (!older->evolves) {
        return TN_OK;
    }
    tn_arena_reset(older->arena, older->mark);
    tn_rc rc = tn_evolve_row(&older->evolve, row, older->size_max, older->arena, &row, err);
    if (rc == TN_OK) {
        item->data = (struct tn_bytes){row.data, row.size};
        return TN_OK;
    }
    become_text(older, item);
    return TN_INVALID;
}
