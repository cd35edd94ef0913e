#include "upload/committable.h"

#include <inttypes.h>

#include "commit/manifest.h"
#include "file/names.h"
#include "upload/lake_io.h"

enum {
    NAME_MAX = 255,     /* bytes of a file's name, as file systems have it */
    OWN_NAME_MAX = 100, /* of one that a writer makes: a prefix, a UUID, a number, an ending */
};
_Static_assert(TN_COMMITTABLE_FOLDER_MAX + OWN_NAME_MAX < TN_LAKE_IO_PATH_MAX,
               "a gather can't work on the files of each folder that it takes");

struct check {
    const struct tn_committable *committable;
    const struct tn_committable_table *table;
    struct tn_arena *scratch;
};

/* ---- rows: partitions and keys ---- */

static tn_rc values_of(const struct check *check, struct tn_bytes row, struct tn_columns columns,
                       struct tn_value **values, struct tn_type **types, struct tn_err *err)
{
    const struct tn_schema *schema = check->table->schema;
    *types = tn_arena_take(check->scratch, (columns.count + 1) * sizeof **types);
    *values = tn_arena_take(check->scratch, (columns.count + 1) * sizeof **values);
    if (!*types || !*values) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory to check a committable");
    }
    for (uint32_t i = 0; i < columns.count; i++) {
        (*types)[i] = schema->fields[columns.index[i]].type;
    }
    return tn_binary_to_values(row, *types, columns.count, *values, err);
}

/* Values in folders' names are short, but there may be many. */
static tn_rc check_path(const char *folder, const char *name, struct tn_err *err)
{
    size_t size = strlen(folder);
    if (size > TN_COMMITTABLE_FOLDER_MAX || size + strlen(name) >= TN_LAKE_IO_PATH_MAX) {
        return tn_err_set(err, TN_INVALID, 0,
                          "%.40s...: %zu bytes of a folder and %zu of a name, more than %d, or %d "
                          "in all",
                          folder, size, strlen(name), TN_COMMITTABLE_FOLDER_MAX,
                          TN_LAKE_IO_PATH_MAX - 1);
    }
    return TN_OK;
}

static tn_rc check_partition(const struct check *check, const struct tn_entry *entry,
                             struct tn_err *err)
{
    struct tn_type *types;
    struct tn_value *values;
    const char *folder;
    struct tn_columns columns = check->table->schema->partition_keys;
    tn_rc rc = values_of(check, entry->partition, columns, &values, &types, err);
    for (uint32_t i = 0; rc == TN_OK && i < columns.count; i++) {
        bool bytes = tn_type_textual(types[i].kind) || tn_type_binary(types[i].kind);
        if (bytes && !values[i].null && values[i].as.bytes.size > TN_PARTITION_VALUE_MAX) {
            rc = tn_err_set(err, TN_INVALID, 0, "%zu bytes, more than a folder's name has",
                            values[i].as.bytes.size);
        }
    }
    if (rc == TN_OK) {
        rc = tn_name_bucket(check->scratch, check->table->root, check->table->schema,
                            check->table->options, entry->partition, entry->bucket, &folder, err);
    }
    if (rc == TN_OK) {
        rc = check_path(folder, entry->file.file_name, err);
    }
    return rc == TN_OK ? TN_OK : tn_err_in(err, "its partition");
}

static tn_rc check_key(const struct check *check, struct tn_bytes row, struct tn_value **values,
                       struct tn_type **types, struct tn_err *err)
{
    struct tn_columns columns = check->table->schema->trimmed_keys;
    tn_rc rc = values_of(check, row, columns, values, types, err);
    for (uint32_t i = 0; rc == TN_OK && i < columns.count; i++) {
        if ((*values)[i].null) {
            rc = tn_err_set(err, TN_INVALID, 0, "NULL");
        }
    }
    return rc == TN_OK ? TN_OK : tn_err_in(err, "its keys");
}

static tn_rc check_keys(const struct check *check, const struct tn_file_meta *file,
                        struct tn_err *err)
{
    struct tn_type *types;
    struct tn_value *low;
    struct tn_value *high;
    tn_rc rc = check_key(check, file->min_key, &low, &types, err);
    if (rc == TN_OK) {
        rc = check_key(check, file->max_key, &high, &types, err);
    }
    int order = 0;
    for (uint32_t i = 0; rc == TN_OK && order == 0 && i < check->table->schema->trimmed_keys.count;
         i++) {
        order = tn_value_compare(&types[i], &low[i], &high[i]);
    }
    return rc == TN_OK && order > 0
               ? tn_err_set(err, TN_INVALID, 0, "its keys: the first is behind the last")
               : rc;
}

/* ---- statistics: readers pass over files by them ---- */

struct claims {
    const char *what;
    const struct tn_stats *stats;
    struct tn_type *types; /* of its columns */
    uint32_t count;
    int64_t row_count;
};

static tn_rc check_nulls(const struct claims *claims, struct tn_err *err)
{
    const struct tn_stats *stats = claims->stats;
    if (stats->null_count_count != claims->count) {
        return tn_err_set(err, TN_INVALID, 0, "%s of %" PRIu32 " columns, not %" PRIu32,
                          claims->what, stats->null_count_count, claims->count);
    }
    for (uint32_t i = 0; i < claims->count; i++) {
        int64_t nulls = stats->null_counts[i];
        if (nulls < -1 || nulls > claims->row_count) {
            return tn_err_set(err, TN_INVALID, 0, "%s: NULL %" PRId64 " times in %" PRId64 " rows",
                              claims->what, nulls, claims->row_count);
        }
    }
    return TN_OK;
}

static tn_rc check_claims(const struct check *check, const struct claims *claims,
                          struct tn_err *err)
{
    uint32_t count = claims->count;
    struct tn_value *low = tn_arena_take(check->scratch, (2 * count + 1) * sizeof *low);
    struct tn_value *high = low ? low + count : NULL;
    if (!low) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory to check a committable");
    }
    tn_rc rc = check_nulls(claims, err);
    if (rc == TN_OK) {
        rc = tn_binary_to_values(claims->stats->min, claims->types, count, low, err);
    }
    if (rc == TN_OK) {
        rc = tn_binary_to_values(claims->stats->max, claims->types, count, high, err);
    }
    for (uint32_t i = 0; rc == TN_OK && i < count; i++) {
        if (!low[i].null && !high[i].null &&
            tn_value_compare(&claims->types[i], &low[i], &high[i]) > 0) {
            rc = tn_err_set(err, TN_INVALID, 0, "%s: a least value above the greatest",
                            claims->what);
        }
    }
    return rc == TN_OK || rc == TN_INVALID ? rc : tn_err_in(err, "%s", claims->what);
}

static tn_rc check_key_stats(const struct check *check, const struct tn_file_meta *file,
                             struct tn_err *err)
{
    const struct tn_schema *schema = check->table->schema;
    struct tn_columns keys = schema->trimmed_keys;
    struct claims claims = {
        .what = "its key statistics",
        .stats = &file->key_stats,
        .types = tn_arena_take(check->scratch, (keys.count + 1) * sizeof *claims.types),
        .count = keys.count,
        .row_count = file->row_count};
    for (uint32_t i = 0; claims.types && i < keys.count; i++) {
        claims.types[i] = schema->fields[keys.index[i]].type;
    }
    return claims.types ? check_claims(check, &claims, err)
                        : tn_err_set(err, TN_AGAIN, 0, "no memory to check a committable");
}

/* Of the newest schema only: what a column was in an older one isn't known here. */
static tn_rc check_value_stats(const struct check *check, const struct tn_file_meta *file,
                               struct tn_err *err)
{
    const struct tn_schema *schema = check->table->schema;
    const struct tn_texts *names = &file->value_stats_cols;
    struct claims claims = {.what = "its statistics",
                            .stats = &file->value_stats,
                            .count = names->present ? names->count : schema->field_count,
                            .row_count = file->row_count};
    if (file->schema_id != schema->id) {
        return TN_OK;
    }
    claims.types = tn_arena_take(check->scratch, (claims.count + 1) * sizeof *claims.types);
    if (!claims.types) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory to check a committable");
    }
    for (uint32_t i = 0; i < claims.count; i++) {
        int32_t field =
            names->present ? tn_schema_find(schema, tn_bytes_of(names->items[i])) : (int32_t)i;
        if (field < 0) {
            return tn_err_set(err, TN_INVALID, 0, "its statistics: there is no column %.80s",
                              names->items[i]);
        }
        claims.types[i] = schema->fields[field].type;
    }
    return check_claims(check, &claims, err);
}

/* ---- files ---- */

static bool plain(const char *name)
{
    return strlen(name) <= NAME_MAX && name[0] != '.' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
               strlen(name);
}

static tn_rc check_place(const struct check *check, const struct tn_entry *entry,
                         struct tn_err *err)
{
    int32_t buckets = check->table->options->bucket;
    if (!plain(entry->file.file_name)) {
        return tn_err_set(err, TN_INVALID, 0, "a name that no file of a table has");
    }
    if (entry->file.external_path || entry->file.extra_files.count > 0) {
        return tn_err_set(err, TN_INVALID, 0, "it, or a part of it, lies outside of its folder");
    }
    if (entry->total_buckets != buckets) {
        return tn_err_set(err, TN_INVALID, 0,
                          "it is of a table with %" PRId32 " buckets, and this one has %" PRId32,
                          entry->total_buckets, buckets);
    }
    if (entry->bucket < 0 || entry->bucket >= (buckets > 0 ? buckets : 1)) {
        return tn_err_set(err, TN_INVALID, 0, "bucket %" PRId32 ": there are %" PRId32,
                          entry->bucket, buckets);
    }
    return check_partition(check, entry, err);
}

static tn_rc check_numbers(const struct check *check, const struct tn_file_meta *file,
                           struct tn_err *err)
{
    if (file->level != 0) {
        return tn_err_set(err, TN_INVALID, 0, "it is of level %" PRId32 ", not 0", file->level);
    }
    if (file->schema_id < 0 || file->schema_id > check->table->schema->id) {
        return tn_err_set(err, TN_INVALID, 0,
                          "it has schema %" PRId64 ", and the newest here is %" PRId64,
                          file->schema_id, check->table->schema->id);
    }
    if (file->file_size <= 0 || file->row_count <= 0 || file->min_sequence > file->max_sequence) {
        return tn_err_set(err, TN_INVALID, 0,
                          "%" PRId64 " bytes, %" PRId64 " rows, sequence numbers %" PRId64
                          "..%" PRId64,
                          file->file_size, file->row_count, file->min_sequence, file->max_sequence);
    }
    if (file->delete_row_count.present &&
        (file->delete_row_count.value < 0 || file->delete_row_count.value > file->row_count)) {
        return tn_err_set(err, TN_INVALID, 0, "%" PRId64 " rows, of which %" PRId64 " delete",
                          file->row_count, file->delete_row_count.value);
    }
    return TN_OK;
}

static tn_rc check_file(const struct check *check, const struct tn_entry *entry, struct tn_err *err)
{
    size_t mark = tn_arena_mark(check->scratch);
    tn_rc rc = entry->kind == TN_ENTRY_ADD
                   ? check_place(check, entry, err)
                   : tn_err_set(err, TN_INVALID, 0, "a file to be taken away");
    if (rc == TN_OK) {
        rc = check_numbers(check, &entry->file, err);
    }
    if (rc == TN_OK) {
        rc = tn_name_check_format(entry->file.file_name, err);
    }
    if (rc == TN_OK) {
        rc = check_keys(check, &entry->file, err);
    }
    if (rc == TN_OK) {
        rc = check_key_stats(check, &entry->file, err);
    }
    if (rc == TN_OK) {
        rc = check_value_stats(check, &entry->file, err);
    }
    tn_arena_reset(check->scratch, mark);
    if (rc == TN_OK || rc == TN_AGAIN) {
        return rc;
    }
    (void)tn_err_in(err, "%.80s", entry->file.file_name);
    return tn_err_set(err, TN_INVALID, 0, "%s", err->text);
}

static tn_rc check_files(const struct check *check, const struct tn_entry *entries, uint32_t count,
                         struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < count; i++) {
        rc = check_file(check, &entries[i], err);
    }
    return rc;
}

/* ---- all of it ---- */

/* Numbers of rows may be anything here. */
static bool says_its_rows(const struct tn_committable *committable)
{
    int64_t left = committable->row_count;
    for (uint32_t i = 0; left >= 0 && i < committable->added_count; i++) {
        int64_t rows = committable->added[i].file.row_count;
        left = rows >= 0 && rows <= left ? left - rows : -1;
    }
    return left == 0;
}

static tn_rc check_whole(const struct tn_committable *committable,
                         const struct tn_committable_table *table, struct tn_err *err)
{
    if (strcmp(committable->table, table->name) != 0) {
        return tn_err_set(err, TN_INVALID, 0, "it is of table %.80s", committable->table);
    }
    if (committable->schema_id < 0 || committable->schema_id > table->schema->id) {
        return tn_err_set(err, TN_INVALID, 0,
                          "it was made by schema %" PRId64 ", and the newest here is %" PRId64,
                          committable->schema_id, table->schema->id);
    }
    if (committable->added_count + committable->changelog_count == 0) {
        return tn_err_set(err, TN_INVALID, 0, "it has no files");
    }
    if (!says_its_rows(committable)) {
        return tn_err_set(err, TN_INVALID, 0, "its files don't have the %" PRId64 " rows it says",
                          committable->row_count);
    }
    if (committable->changelog_count > 0 &&
        table->options->changelog_producer != TN_CHANGELOG_INPUT) {
        return tn_err_set(err, TN_INVALID, 0,
                          "it has changelog files, which writers of this table don't make");
    }
    return TN_OK;
}

tn_rc tn_committable_check(const struct tn_committable *committable,
                           const struct tn_committable_table *table, struct tn_arena *scratch,
                           struct tn_err *err)
{
    struct check check = {committable, table, scratch};
    tn_rc rc = check_whole(committable, table, err);
    if (rc == TN_OK) {
        rc = check_files(&check, committable->added, committable->added_count, err);
    }
    return rc == TN_OK
               ? check_files(&check, committable->changelog, committable->changelog_count, err)
               : rc;
}
