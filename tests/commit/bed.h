/* bed: what the tests of commit/ stand on: a disk and a clock with a seed, a worker, a small table
 * "db.db/t" with key k, value v and, if wanted, a partition dt; and entries whose files need not
 * exist. */
#pragma once

#include <inttypes.h>
#include <stdlib.h>

#include "check.h"
#include "commit/commit.h"
#include "file/names.h"
#include "format/avro.h"
#include "format/binrow.h"
#include "format/json.h"
#include "random.h"
#include "sim/clock.h"
#include "sim/disk.h"

#define ROOT "db.db/t"

enum { BED_WORKER_SIZE = 2 << 20, BED_OWN_SIZE = 8 << 20, BED_DISK_SIZE = 64 << 20 };

struct bed {
    struct sim_disk disk;
    struct sim_clock clock;
    struct tn_worker worker;
    void *worker_memory;
    struct tn_arena own; /* the test's */
    void *own_memory;
    struct tn_field fields[3];
    struct tn_schema schema;
    struct tn_options options;
};

static const uint32_t bed_partition_key[] = {0};
static const uint32_t bed_trimmed_key[] = {1};
static const uint32_t bed_primary_key[] = {0, 1};

static struct tn_heap bed_json; /* what the C libraries take */
static struct tn_heap bed_avro;

static __attribute__((unused, noinline)) void bed_libraries(void)
{
    static bool done;
    if (!done) {
        tn_heap_init(&bed_json, malloc(64 << 10), 64 << 10, false);
        tn_heap_init(&bed_avro, malloc(96 << 10), 96 << 10, false);
        tn_json_use_heap(&bed_json);
        tn_avro_use_heap(&bed_avro);
        done = true;
    }
}

static __attribute__((unused, noinline)) void bed_schema(struct bed *bed, bool partitioned)
{
    const struct tn_type text = {
        .kind = TN_TYPE_VARCHAR, .nullable = true, .length = TN_LENGTH_MAX};
    const struct tn_type number = {.kind = TN_TYPE_BIGINT};
    bed->fields[0] = (struct tn_field){.id = 0, .name = "dt", .type = text};
    bed->fields[1] = (struct tn_field){.id = 1, .name = "k", .type = number};
    bed->fields[2] = (struct tn_field){.id = 2, .name = "v", .type = text};
    bed->schema = (struct tn_schema){.version = 3,
                                     .fields = bed->fields,
                                     .field_count = 3,
                                     .highest_field_id = 2,
                                     .trimmed_keys = {bed_trimmed_key, 1}};
    bed->schema.partition_keys = (struct tn_columns){bed_partition_key, partitioned ? 1 : 0};
    bed->schema.primary_keys =
        partitioned ? (struct tn_columns){bed_primary_key, 2} : bed->schema.trimmed_keys;
}

static __attribute__((unused, noinline)) void bed_worker(struct bed *bed, struct tn_io *io,
                                                         size_t size)
{
    struct tn_err err;
    bed->worker_memory = malloc(size);
    bed->worker = (struct tn_worker){.io = io, .clock = &bed->clock.clock};
    tn_arena_init(&bed->worker.arena, bed->worker_memory, size);
    tn_rc rc = tn_codec_init(&bed->worker.codec, 1, 64 * 1024, &bed->worker.arena, &err);
    CHECK_OK(rc, err);
    rc = tn_plan_cache_make(&bed->worker.arena, &bed->worker.plans, &err);
    CHECK_OK(rc, err);
}

static __attribute__((unused, noinline)) void bed_init(struct bed *bed, uint64_t seed,
                                                       bool partitioned)
{
    bed_libraries();
    *bed = (struct bed){0};
    sim_disk_init(&bed->disk, BED_DISK_SIZE);
    check_seed = seed;
    sim_clock_init(&bed->clock, seed);
    bed_worker(bed, &bed->disk.io, BED_WORKER_SIZE);
    bed->own_memory = malloc(BED_OWN_SIZE);
    tn_arena_init(&bed->own, bed->own_memory, BED_OWN_SIZE);
    bed_schema(bed, partitioned);
    bed->options = (struct tn_options){
        .bucket = 2,
        .data_file_prefix = "data-",
        .path_directory = "",
        .partition_default_name = "__DEFAULT_PARTITION__",
        .partition_legacy_name = true,
        .manifest_codec = TN_CODEC_ID_ZSTANDARD,
        .manifest_target_size = 8 << 20,
        .manifest_merge_min = 30,
        .manifest_full_threshold = 16 << 20,
        .snapshot_retained_min = 1,
        .snapshot_retained_max = INT32_MAX,
        .snapshot_expire_limit = 50,
        .commit_max_retries = 10,
    };
    struct tn_err err;
    tn_rc rc = bed->disk.io.vtable->make_dir(&bed->disk.io, ROOT, &err);
    CHECK_OK(rc, err);
}

static __attribute__((unused, noinline)) void bed_deinit(struct bed *bed)
{
    sim_disk_deinit(&bed->disk);
    free(bed->worker_memory);
    free(bed->own_memory);
}

static __attribute__((unused, noinline)) struct tn_bytes
bed_row(struct bed *bed, const struct tn_type *types, const struct tn_value *values, uint32_t count)
{
    struct tn_buf buf;
    tn_buf_init(&buf, tn_arena_take(&bed->own, 256), 256);
    CHECK(buf.data != NULL);
    tn_values_to_binary(types, values, count, &buf);
    CHECK(!buf.overflow);
    return tn_buf_bytes(&buf);
}

/* `dt` NULL: the NULL partition; in a table without partitions it doesn't matter. */
static __attribute__((unused, noinline)) struct tn_bytes bed_partition(struct bed *bed,
                                                                       const char *dt)
{
    struct tn_value value = {.null = dt == NULL};
    if (dt) {
        value.as.bytes = tn_bytes_of(dt);
    }
    return bed_row(bed, &bed->fields[0].type, &value, bed->schema.partition_keys.count);
}

static __attribute__((unused, noinline)) struct tn_bytes bed_key(struct bed *bed, int64_t k)
{
    struct tn_value value = {.as.i64 = k};
    return bed_row(bed, &bed->fields[1].type, &value, 1);
}

struct bed_file {
    const char *dt;
    int32_t bucket;
    int32_t level;
    int64_t first; /* keys */
    int64_t last;
    int64_t rows;
};

/* An entry for a file of this name; everything lives in bed->own. */
static __attribute__((unused, noinline)) struct tn_entry
bed_entry(struct bed *bed, const char *name, struct bed_file file)
{
    struct tn_entry entry = {.kind = TN_ENTRY_ADD, .bucket = file.bucket, .total_buckets = 2};
    struct tn_file_meta *meta = &entry.file;
    entry.partition = bed_partition(bed, file.dt);
    meta->file_name = tn_arena_text(&bed->own, tn_bytes_of(name));
    meta->file_size = 1000;
    meta->row_count = file.rows;
    meta->min_key = bed_key(bed, file.first);
    meta->max_key = bed_key(bed, file.last);
    int64_t *nulls = tn_arena_take(&bed->own, sizeof *nulls);
    meta->key_stats = (struct tn_stats){meta->min_key, meta->max_key, nulls, 1};
    meta->value_stats = (struct tn_stats){tn_binrow_empty, tn_binrow_empty, nulls, 0};
    meta->max_sequence = 1;
    meta->level = file.level;
    meta->creation_time_ms = (struct tn_json_i64){1700000000000, true};
    meta->delete_row_count = (struct tn_json_i64){0, true};
    meta->file_source = (struct tn_json_i64){0, true};
    meta->value_stats_cols.present = true;
    return entry;
}

static __attribute__((unused, noinline)) struct tn_commit_removal
bed_removal(const struct tn_entry *entry)
{
    return (struct tn_commit_removal){.partition = entry->partition,
                                      .bucket = entry->bucket,
                                      .level = entry->file.level,
                                      .file_name = entry->file.file_name,
                                      .upgrade_level = -1};
}

static __attribute__((unused, noinline)) struct tn_commit_spec bed_spec(const struct bed *bed,
                                                                        int64_t identifier)
{
    return (struct tn_commit_spec){.root = ROOT,
                                   .schema = &bed->schema,
                                   .options = &bed->options,
                                   .user = "bed",
                                   .identifier = identifier};
}

static __attribute__((unused, noinline)) struct tn_snapshot bed_snapshot(struct bed *bed,
                                                                         int64_t id)
{
    struct tn_snapshot snapshot;
    struct tn_err err;
    tn_rc rc = tn_snapshot_read(bed->worker.io, ROOT, id, &bed->own, &snapshot, &err);
    CHECK_OK(rc, err);
    return snapshot;
}

/* The names of live files, with their level, sorted: "a@0 b@5". */
struct bed_names {
    struct bed *bed;
    const char *names[4096];
    uint32_t count;
    int64_t rows;
};

static __attribute__((unused, noinline)) tn_rc
bed_add_name(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct bed_names *names = user;
    (void)err;
    CHECK(names->count < COUNT(names->names));
    names->names[names->count++] =
        tn_arena_format(&names->bed->own, "%s@%" PRId32, entry->file.file_name, entry->file.level);
    names->rows += entry->file.row_count;
    return TN_OK;
}

static __attribute__((unused, noinline)) int bed_by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static __attribute__((unused, noinline)) const char *bed_live(struct bed *bed,
                                                              const struct tn_snapshot *snapshot)
{
    static struct bed_names names;
    struct tn_err err;
    names.bed = bed;
    names.count = 0;
    names.rows = 0;
    tn_rc rc =
        tn_live_each(ROOT, snapshot, &bed->schema, NULL, &bed->worker, bed_add_name, &names, &err);
    CHECK_OK(rc, err);
    qsort(names.names, names.count, sizeof names.names[0], bed_by_text);
    struct tn_buf buf;
    static char text[1 << 18]; /* until the next call */
    tn_buf_init(&buf, text, sizeof text);
    for (uint32_t i = 0; i < names.count; i++) {
        tn_buf_format(&buf, i > 0 ? " %s" : "%s", names.names[i]);
    }
    tn_buf_byte(&buf, 0);
    CHECK(!buf.overflow);
    CHECK(names.rows == snapshot->total_record_count.value);
    return (const char *)buf.data;
}

/* "3/0,1/2": added and deleted of each manifest of a list. */
static __attribute__((unused, noinline)) tn_rc
bed_add_counts(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    (void)err;
    struct tn_buf *buf = user;
    tn_buf_format(buf, buf->size > 0 ? ",%" PRId64 "/%" PRId64 : "%" PRId64 "/%" PRId64,
                  meta->added_count, meta->deleted_count);
    return TN_OK;
}

static __attribute__((unused, noinline)) const char *bed_list(struct bed *bed, const char *list,
                                                              struct tn_json_i64 size)
{
    struct tn_buf buf;
    struct tn_err err;
    static char text[4096]; /* until the next call */
    tn_buf_init(&buf, text, sizeof text);
    tn_rc rc = tn_list_each_meta(ROOT, list, size.value, &bed->worker, bed_add_counts, &buf, &err);
    CHECK_OK(rc, err);
    tn_buf_byte(&buf, 0);
    CHECK(!buf.overflow);
    return (const char *)buf.data;
}

/* ---- files of real writers ---- */

/* Until the next call. */
static __attribute__((unused, noinline)) struct tn_bytes read_golden(const char *folder,
                                                                     const char *name)
{
    static unsigned char data[1 << 16];
    char path[128];
    (void)snprintf(path, sizeof path, "tests/golden/%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    size_t size = fread(data, 1, sizeof data, file);
    (void)fclose(file);
    return (struct tn_bytes){data, size};
}

static __attribute__((unused, noinline)) struct tn_bytes
put_golden(struct bed *bed, const char *folder, const char *name)
{
    char path[128];
    bool ok;
    struct tn_err err;
    struct tn_bytes bytes = tn_arena_copy(&bed->own, read_golden(folder, name), &ok);
    CHECK(ok);
    (void)snprintf(path, sizeof path, ROOT "/manifest/%s", name);
    tn_rc rc = tn_io_write_new(&bed->disk.io, path, bytes, &err);
    CHECK_OK(rc, err);
    return bytes;
}
