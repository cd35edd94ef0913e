/* Text of a predicate. One that parses is asked of rows and of the bounds of those rows: what
 * matches may never be pruned, nor be excluded by a part of the predicate. */
#include <stdlib.h>

#include "base/check.h"
#include "fuzz/fuzz.h"
#include "read/predicate.h"

static const char *const names[] = {"n", "d", "c", "s", "t", "b", "x"};
static const char *const type_texts[] = {"INT",       "DOUBLE",  "DECIMAL(5, 2)", "STRING",
                                         "TIMESTAMP", "BOOLEAN", "VARBINARY(4)"};
enum { COLUMNS = sizeof names / sizeof names[0], ROWS = 3 };

static unsigned char memory[1 << 20];
static struct tn_field fields[COLUMNS];
static struct tn_type types[COLUMNS];
static struct tn_row_layout layout;
static struct tn_schema schema;
static int32_t column_of[COLUMNS];

static void set_up(struct tn_arena *arena)
{
    struct tn_err err;
    tn_arena_init(arena, memory, sizeof memory);
    for (uint32_t i = 0; i < COLUMNS; i++) {
        tn_rc rc = tn_type_parse(tn_bytes_of(type_texts[i]), &types[i], &err);
        TN_CHECK(rc == TN_OK);
        fields[i] = (struct tn_field){.name = names[i], .type = types[i]};
        column_of[i] = (int32_t)i;
    }
    schema = (struct tn_schema){.fields = fields, .field_count = COLUMNS};
    tn_rc rc = tn_row_layout_init(&layout, names, types, COLUMNS, arena, &err);
    TN_CHECK(rc == TN_OK);
}

static struct tn_value value_of(uint32_t column, uint32_t row)
{
    struct tn_value value = {.null = (column + row) % 4 == 3};
    if (value.null) {
        return value;
    }
    if (column == 1) {
        value.as.f64 = row - 0.5;
    } else if (column == 2) {
        value.as.i128 = tn_i128_of(50 * (int64_t)row);
    } else if (column == 3 || column == 6) {
        value.as.bytes = tn_bytes_of(row == 0 ? "" : row == 1 ? "a" : "b");
    } else {
        value.as.i64 = column == 5 ? row > 0 : (int64_t)row - 1;
    }
    return value;
}

static void widen(struct tn_bounds *bounds, uint32_t column, const struct tn_value *value)
{
    if (value->null) {
        bounds->null_count++;
        return;
    }
    if (!bounds->has_range || tn_value_compare(&types[column], value, &bounds->min) < 0) {
        bounds->min = *value;
    }
    if (!bounds->has_range || tn_value_compare(&types[column], value, &bounds->max) > 0) {
        bounds->max = *value;
    }
    bounds->has_range = true;
}

static void ask(const struct tn_predicate *predicate, struct tn_arena *arena)
{
    static const bool some[COLUMNS] = {true, false, true, true};
    static const uint32_t keys[] = {0, 3};
    const struct tn_predicate *part = tn_predicate_only(predicate, some, arena);
    struct tn_value point[2];
    (void)tn_predicate_point(predicate, (struct tn_columns){keys, 2}, point);
    struct tn_bounds bounds[COLUMNS] = {{0}};
    bool any = false;
    for (uint32_t r = 0; r < ROWS; r++) {
        struct tn_value values[COLUMNS];
        unsigned char data[128];
        for (uint32_t c = 0; c < COLUMNS; c++) {
            values[c] = value_of(c, r);
            bounds[c].known = true;
            widen(&bounds[c], c, &values[c]);
        }
        struct tn_row row = {data, tn_row_pack(&layout, values, data)};
        bool match = tn_predicate_match(predicate, &layout, column_of, row);
        TN_CHECK(!match || !part || tn_predicate_match(part, &layout, column_of, row));
        any = any || match;
    }
    TN_CHECK(!any || tn_predicate_may_match(predicate, bounds, ROWS));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tn_arena arena;
    struct tn_err err = {0};
    struct tn_predicate *predicate = NULL;
    char *text = malloc(size + 1);
    TN_CHECK(text != NULL);
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = 0;
    set_up(&arena);
    tn_rc rc = tn_predicate_parse(text, &schema, &arena, &predicate, &err);
    free(text); /* nothing may point into it */
    TN_CHECK(rc == TN_OK || ((rc == TN_INVALID || rc == TN_AGAIN) && err.text[0] != 0));
    if (rc == TN_OK) {
        ask(predicate, &arena);
    }
    return 0;
}
