#include "app/schema_file.h"

#include <stdio.h>

tn_rc tn_schema_file_read(const char *path, struct tn_arena *arena, struct tn_schema *schema,
                          struct tn_err *err)
{
    FILE *file = fopen(path, "rb");
    size_t room = 64 * 1024;
    unsigned char *text = tn_arena_take_raw(arena, room);
    if (!file || !text) {
        if (file) {
            (void)fclose(file);
        }
        return tn_err_set(err, TN_INVALID, 0, "%s can't be read", path);
    }
    size_t size = fread(text, 1, room - 1, file);
    (void)fclose(file);
    text[size] = 0;
    tn_rc rc = size == room - 1
                   ? tn_err_set(err, TN_INVALID, 0, "more than %zu bytes", room - 2)
                   : tn_schema_from_user((struct tn_bytes){text, size}, arena, schema, err);
    return rc == TN_OK ? rc : tn_err_set(err, rc, 0, "%s:%s", path, err->text);
}

tn_rc tn_schema_field_parse(const char *text, struct tn_arena *arena, struct tn_field *field,
                            struct tn_err *err)
{
    size_t name_size = strcspn(text, " ");
    struct tn_bytes name = {(const unsigned char *)text, name_size};
    const char *type = text + name_size + strspn(text + name_size, " ");
    field->name = tn_arena_text(arena, name);
    if (!field->name) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for the schema");
    }
    tn_rc rc = *type ? tn_type_parse(tn_bytes_of(type), &field->type, err)
                     : tn_err_set(err, TN_INVALID, 0, "the type is missing");
    return rc == TN_OK ? rc : tn_err_in(err, "field '%s'", field->name);
}
