#include "app/key.h"

enum { HEX_SIZE = 32 * 1024 }; /* the bytes of keys that are given as hex */

static tn_rc wrong_count(const struct tn_reader *reader, uint32_t given, struct tn_err *err)
{
    char text[256];
    struct tn_buf names;
    struct tn_columns keys = reader->schema->primary_keys;
    tn_buf_init(&names, text, sizeof text - 1);
    for (uint32_t i = 0; i < keys.count; i++) {
        tn_buf_format(&names, "%s%s", i ? ", " : "", reader->schema->fields[keys.index[i]].name);
    }
    text[names.overflow ? 0 : names.size] = 0;
    return keys.count == 0
               ? tn_err_set(err, TN_INVALID, 0,
                            "%s has no primary key; `tarn cat --where` finds its rows",
                            reader->name)
               : tn_err_set(err, TN_INVALID, 0, "%s: its key is (%s): %u values, %u were given",
                            reader->name, text, keys.count, given);
}

tn_rc tn_key_parse(const struct tn_reader *reader, const struct tn_text_list *words,
                   const struct tn_value **key, struct tn_err *err)
{
    const struct tn_schema *schema = reader->schema;
    struct tn_columns keys = schema->primary_keys;
    uint32_t given = words->count - 1;
    if (given != keys.count || given == 0) {
        return wrong_count(reader, given, err);
    }
    struct tn_arena *arena = &reader->app->table;
    void *memory;
    void *hex;
    tn_rc rc = tn_arena_need(arena, keys.count * sizeof(struct tn_value), "the key", &memory, err);
    if (rc == TN_OK) {
        rc = tn_arena_need(arena, HEX_SIZE, "the key", &hex, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_value *values = memory;
    struct tn_buf scratch;
    tn_buf_init(&scratch, hex, HEX_SIZE);
    for (uint32_t i = 0; rc == TN_OK && i < keys.count; i++) {
        const struct tn_field *field = &schema->fields[keys.index[i]];
        rc = tn_value_parse(&field->type, TN_EPOCH_NONE, tn_bytes_of(words->items[1 + i]), &scratch,
                            &values[i], err);
        if (rc != TN_OK) {
            return tn_err_in(err, "key column '%s'", field->name);
        }
    }
    *key = values;
    return rc;
}
