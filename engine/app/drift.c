#include "app/drift.h"

#include <stdio.h>
#include <string.h>

static bool find_field(const struct tn_schema *want, const struct tn_schema *has, char *text,
                       size_t size)
{
    for (uint32_t i = 0; i < want->field_count; i++) {
        const struct tn_field *field = &want->fields[i];
        char wanted[TN_TYPE_TEXT_SIZE];
        char there[TN_TYPE_TEXT_SIZE];
        int32_t at = tn_schema_find(has, tn_bytes_of(field->name));
        if (at < 0) {
            (void)snprintf(text, size, "it has no column '%s'", field->name);
            return true;
        }
        (void)tn_type_format(&field->type, wanted);
        (void)tn_type_format(&has->fields[at].type, there);
        if (strcmp(wanted, there) != 0) {
            (void)snprintf(text, size, "its column '%s' is %s, not %s", field->name, there, wanted);
            return true;
        }
    }
    return false;
}

static bool same_columns(const struct tn_schema *a, struct tn_columns of_a,
                         const struct tn_schema *b, struct tn_columns of_b)
{
    bool same = of_a.count == of_b.count;
    for (uint32_t i = 0; same && i < of_a.count; i++) {
        same = strcmp(a->fields[of_a.index[i]].name, b->fields[of_b.index[i]].name) == 0;
    }
    return same;
}

static bool find_option(const struct tn_schema *want, const struct tn_schema *has, char *text,
                        size_t size)
{
    for (uint32_t i = 0; i < want->option_count; i++) {
        const struct tn_option *option = &want->options[i];
        const char *value = tn_schema_option(has, option->key);
        if (!value || strcmp(value, option->value) != 0) {
            (void)snprintf(text, size, "its option '%s' is %s, not '%s'", option->key,
                           value ? value : "not set", option->value);
            return true;
        }
    }
    return false;
}

bool tn_drift_find(const struct tn_schema *want, const struct tn_schema *has, char *text,
                   size_t size)
{
    if (find_field(want, has, text, size)) {
        return true;
    }
    if (!same_columns(want, want->primary_keys, has, has->primary_keys)) {
        (void)snprintf(text, size, "its primary key is another");
        return true;
    }
    if (!same_columns(want, want->partition_keys, has, has->partition_keys)) {
        (void)snprintf(text, size, "it is partitioned by others");
        return true;
    }
    return find_option(want, has, text, size);
}
