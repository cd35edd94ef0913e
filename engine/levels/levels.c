#include "levels/levels.h"

#include "base/check.h"

tn_rc tn_key_types_init(struct tn_key_types *keys, const struct tn_schema *schema,
                        struct tn_arena *arena, struct tn_err *err)
{
    struct tn_columns columns = schema->trimmed_keys;
    size_t one = sizeof(struct tn_type) + 2 * sizeof(struct tn_value);
    void *memory;
    tn_rc rc = tn_arena_need(arena, (columns.count + 1) * one, "key types", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_value *values = memory;
    struct tn_type *types = (struct tn_type *)(void *)(values + 2 * (columns.count + 1));
    for (uint32_t i = 0; i < columns.count; i++) {
        types[i] = schema->fields[columns.index[i]].type;
    }
    *keys = (struct tn_key_types){types, columns.count, values, values + columns.count + 1};
    return TN_OK;
}

int tn_key_compare(const struct tn_key_types *keys, struct tn_bytes a, struct tn_bytes b)
{
    struct tn_err err;
    tn_rc rc = tn_binary_to_values(a, keys->types, keys->count, keys->a, &err);
    TN_CHECK(rc == TN_OK);
    rc = tn_binary_to_values(b, keys->types, keys->count, keys->b, &err);
    TN_CHECK(rc == TN_OK);
    for (uint32_t i = 0; i < keys->count; i++) {
        int c = tn_value_compare(&keys->types[i], &keys->a[i], &keys->b[i]);
        if (c != 0) {
            return c;
        }
    }
    return 0;
}

static struct tn_bytes put(unsigned char **at, struct tn_bytes bytes)
{
    struct tn_bytes copy = {*at, bytes.size};
    if (bytes.size > 0) {
        memcpy(*at, bytes.data, bytes.size);
    }
    *at += bytes.size;
    return copy;
}

/* Name and keys lie behind the struct. */
static void copy_texts(struct tn_level_file *file, const char *name, size_t name_size,
                       struct tn_bytes min_key, struct tn_bytes max_key)
{
    unsigned char *at = (unsigned char *)(file + 1);
    struct tn_bytes text = {(const unsigned char *)name, name_size};
    file->name = (const char *)put(&at, text).data;
    file->min_key = put(&at, min_key);
    file->max_key = put(&at, max_key);
}

tn_rc tn_level_file_make(struct tn_heap *heap, const struct tn_file_meta *meta, int32_t level,
                         struct tn_level_file **out, struct tn_err *err)
{
    size_t name_size = strlen(meta->file_name) + 1;
    struct tn_level_file *file =
        tn_heap_take(heap, sizeof *file + name_size + meta->min_key.size + meta->max_key.size);
    if (!file) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for another file of a bucket");
    }
    *file = (struct tn_level_file){
        .refs = 1,
        .level = level,
        .size = meta->file_size,
        .row_count = meta->row_count,
        .delete_row_count = meta->delete_row_count.present ? meta->delete_row_count.value : -1,
        .min_sequence = meta->min_sequence,
        .max_sequence = meta->max_sequence,
        .schema_id = meta->schema_id,
        .creation_time_ms = meta->creation_time_ms.value,
        .plain = meta->extra_files.count == 0 && !meta->embedded_index.data && !meta->external_path,
    };
    copy_texts(file, meta->file_name, name_size, meta->min_key, meta->max_key);
    *out = file;
    return TN_OK;
}

tn_rc tn_level_file_move(struct tn_heap *heap, const struct tn_level_file *from, int32_t level,
                         struct tn_level_file **out, struct tn_err *err)
{
    size_t name_size = strlen(from->name) + 1;
    struct tn_level_file *file =
        tn_heap_take(heap, sizeof *file + name_size + from->min_key.size + from->max_key.size);
    if (!file) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for another file of a bucket");
    }
    *file = *from;
    file->refs = 1;
    file->level = level;
    file->busy = false;
    copy_texts(file, from->name, name_size, from->min_key, from->max_key);
    *out = file;
    return TN_OK;
}

tn_rc tn_level_file_check(const struct tn_level_file *file, const struct tn_key_types *keys,
                          struct tn_err *err)
{
    if (keys->count == 0) {
        return TN_OK;
    }
    tn_rc rc = tn_binary_to_values(file->min_key, keys->types, keys->count, keys->a, err);
    if (rc == TN_OK) {
        rc = tn_binary_to_values(file->max_key, keys->types, keys->count, keys->b, err);
    }
    return rc == TN_OK ? TN_OK : tn_err_in(err, "the key range of %s", file->name);
}

void tn_level_file_hold(struct tn_level_file *file)
{
    file->refs++;
}

void tn_level_file_drop(struct tn_heap *heap, struct tn_level_file *file)
{
    TN_CHECK(file->refs > 0);
    if (--file->refs == 0) {
        tn_heap_give(heap, file);
    }
}

/* Level 0 by arrival, newest first; ties as Paimon's Levels breaks them. */
static int compare_arrival(const struct tn_level_file *a, const struct tn_level_file *b)
{
    if (a->max_sequence != b->max_sequence) {
        return a->max_sequence > b->max_sequence ? -1 : 1;
    }
    if (a->min_sequence != b->min_sequence) {
        return a->min_sequence < b->min_sequence ? -1 : 1;
    }
    if (a->creation_time_ms != b->creation_time_ms) {
        return a->creation_time_ms < b->creation_time_ms ? -1 : 1;
    }
    return strcmp(a->name, b->name);
}

static int compare_files(const struct tn_key_types *keys, const struct tn_level_file *a,
                         const struct tn_level_file *b)
{
    if (a->level != b->level) {
        return a->level < b->level ? -1 : 1;
    }
    return a->level == 0 ? compare_arrival(a, b) : tn_key_compare(keys, a->min_key, b->min_key);
}

static bool holds(struct tn_level_file *const *files, uint32_t count,
                  const struct tn_level_file *file)
{
    for (uint32_t i = 0; i < count; i++) {
        if (files[i] == file) {
            return true;
        }
    }
    return false;
}

static void insert(struct tn_levels *levels, const struct tn_key_types *keys,
                   struct tn_level_file *file)
{
    uint32_t at = levels->count++;
    for (; at > 0 && compare_files(keys, file, levels->files[at - 1]) < 0; at--) {
        levels->files[at] = levels->files[at - 1];
    }
    levels->files[at] = file;
    tn_level_file_hold(file);
}

tn_rc tn_levels_edit(struct tn_heap *heap, const struct tn_levels *from,
                     struct tn_level_file *const *removed, uint32_t removed_count,
                     struct tn_level_file *const *added, uint32_t added_count,
                     const struct tn_key_types *keys, struct tn_levels **to, struct tn_err *err)
{
    for (uint32_t i = 0; i < added_count; i++) {
        tn_rc rc = tn_level_file_check(added[i], keys, err);
        if (rc != TN_OK) {
            return rc;
        }
    }
    uint32_t from_count = from ? from->count : 0;
    size_t room = (size_t)from_count + added_count;
    struct tn_levels *made = tn_heap_take(heap, sizeof *made + room * sizeof made->files[0]);
    if (!made) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for a bucket's list of %zu files", room);
    }
    made->refs = 1;
    made->count = 0;
    for (uint32_t i = 0; i < from_count; i++) {
        if (!holds(removed, removed_count, from->files[i])) {
            made->files[made->count++] = from->files[i];
            tn_level_file_hold(from->files[i]);
        }
    }
    for (uint32_t i = 0; i < added_count; i++) {
        insert(made, keys, added[i]);
    }
    *to = made;
    return TN_OK;
}

void tn_levels_drop(struct tn_heap *heap, struct tn_levels *levels)
{
    if (!levels || --levels->refs > 0) {
        return;
    }
    for (uint32_t i = 0; i < levels->count; i++) {
        tn_level_file_drop(heap, levels->files[i]);
    }
    tn_heap_give(heap, levels);
}

uint32_t tn_levels_runs(const struct tn_levels *levels, struct tn_run *runs, uint32_t max)
{
    uint32_t count = 0;
    int32_t level = 0;
    for (uint32_t i = 0; i < (levels ? levels->count : 0); i++) {
        const struct tn_level_file *file = levels->files[i];
        if (count == 0 || file->level == 0 || file->level != level) {
            level = file->level;
            if (count < max) {
                runs[count] = (struct tn_run){.level = level};
            }
            count++;
        }
        if (count <= max) {
            runs[count - 1].size += file->size;
            runs[count - 1].file_count++;
        }
    }
    return count;
}

uint32_t tn_levels_files_of(const struct tn_levels *levels, uint32_t take)
{
    uint32_t runs = 0;
    for (uint32_t i = 0; i < levels->count; i++) {
        bool begins = i == 0 || levels->files[i]->level == 0 ||
                      levels->files[i]->level != levels->files[i - 1]->level;
        runs += begins;
        if (runs > take) {
            return i;
        }
    }
    return levels->count;
}

int32_t tn_levels_highest_behind(const struct tn_levels *levels, uint32_t file_count)
{
    int32_t highest = -1;
    for (uint32_t i = file_count; i < levels->count; i++) {
        highest = levels->files[i]->level > highest ? levels->files[i]->level : highest;
    }
    return highest;
}

bool tn_levels_has_above(const struct tn_levels *levels, int32_t level)
{
    return levels && levels->count > 0 && levels->files[0]->level < level;
}

int64_t tn_levels_max_sequence(const struct tn_levels *levels)
{
    int64_t max = -1;
    for (uint32_t i = 0; i < (levels ? levels->count : 0); i++) {
        max = levels->files[i]->max_sequence > max ? levels->files[i]->max_sequence : max;
    }
    return max;
}
