/* A table of 100 million rows, of one real file of 100,000 rows with a thousand names, one a
 * bucket, in 500 manifests: it opens for writing, takes rows, is planned and answers lookups in the
 * memory of the host's board, which is mapped as a process maps it. */
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "commit/manifest.h"
#include "file/names.h"
#include "format/binrow.h"
#include "read/lookup.h"
#include "table/table.h"
#include "temp.h"

enum {
    ROWS = 100000,
    BUCKETS = 1000,
    MANIFESTS = 500,
    LOOKUPS = 8,
    NEW_ROWS = 8,
    SECONDS_MAX = 60,    /* of CPU, for all steps that are measured */
    RSS_MAX = 16 * 1024, /* KiB of anonymous memory, sanitizers aside */
    BUILD_ARENA_SIZE = 8 << 20,
};

#define ROOT "db.db/t"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true /* their shadow is anonymous memory, too */
#else
#define SANITIZED false
#endif

static const char schema_text[] =
    "{\"fields\":[{\"name\":\"k\",\"type\":\"BIGINT\"},{\"name\":\"v\",\"type\":\"STRING\"}],"
    "\"partitionKeys\":[],\"primaryKeys\":[\"k\"],\"options\":{\"file.format\":\"avro\","
    "\"bucket\":\"1000\"}}";

static char root[TEMP_SIZE];
static struct tn_io_posix posix;
static struct tn_budget budget;
static struct tn_heap json;
static struct tn_heap avro;
static struct tn_heap levels;
static struct tn_arena table_arena;
static struct tn_arena input;
static struct tn_worker workers[TN_LANE_COUNT];
static struct tn_exec_inline exec;
static struct tn_env env;
static struct tn_err err;

/* What the table is made with; given back before anything is measured. */
static struct tn_arena build;
static struct tn_schema schema;
static struct tn_options options;
static struct tn_row_layout layout;

static void boot(void)
{
    tn_rc rc = tn_budget_open(&budget, &tn_board, 0, &err);
    CHECK_OK(rc, err);
    tn_budget_arena(&budget, "input", &input);
    struct tn_env_spec spec = {.budget = &budget,
                               .json = &json,
                               .avro = &avro,
                               .levels = &levels,
                               .table = &table_arena,
                               .workers = workers,
                               .exec = &exec,
                               .io = &posix.io,
                               .clock = &tn_clock_system};
    rc = tn_env_open(&env, &spec, &err);
    CHECK_OK(rc, err);
}

/* ---- the table ---- */

static void write_schema(void)
{
    struct tn_io *io = &posix.io;
    static const char *const folders[] = {ROOT "/schema", ROOT "/snapshot", ROOT "/manifest"};
    for (size_t i = 0; i < COUNT(folders); i++) {
        tn_rc rc = io->vtable->make_dir(io, folders[i], &err);
        CHECK_OK(rc, err);
    }
    tn_rc rc = tn_schema_from_user(tn_bytes_of(schema_text), &build, &schema, &err);
    CHECK_OK(rc, err);
    struct tn_buf buf;
    tn_buf_init(&buf, tn_arena_take(&build, 16 << 10), 16 << 10);
    tn_schema_encode(&schema, &buf);
    CHECK(!buf.overflow);
    rc = tn_io_write_new(io, ROOT "/schema/schema-0", tn_buf_bytes(&buf), &err);
    CHECK_OK(rc, err);
    rc = tn_options_read(&schema, TN_OPTIONS_WRITE, &build, &options, &err);
    CHECK_OK(rc, err);
    rc = tn_schema_layout(&schema, &layout, NULL, NULL, &build, &err);
    CHECK_OK(rc, err);
}

static struct tn_row make_row(int64_t k, unsigned char data[128])
{
    char text[64];
    int length = snprintf(text, sizeof text, "value-%lld", (long long)k * 7);
    struct tn_value values[2] = {{.as.i64 = k},
                                 {.as.bytes = {(unsigned char *)text, (size_t)length}}};
    return (struct tn_row){data, tn_row_pack(&layout, values, data)};
}

static void write_file(struct tn_file_meta *meta)
{
    static struct tn_data_writer writer;
    static const uint32_t key[] = {0};
    struct tn_worker *worker = env.workers[TN_LANE_LONG];
    struct tn_data_writer_spec spec = {.schema = &schema,
                                       .options = &options,
                                       .layout = &layout,
                                       .keys = {key, 1},
                                       .dir = ROOT "/bucket-0/",
                                       .name = "data-large-0.avro",
                                       .level = options.num_levels - 1,
                                       .source = 1,
                                       .block_size = env.block_size};
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc = tn_data_writer_begin(&writer, &spec, worker, 4096, &build, &err);
    CHECK_OK(rc, err);
    for (int64_t k = 0; k < ROWS; k++) {
        unsigned char data[128];
        struct tn_kv kv = {.row = make_row(k, data), .sequence = k, .kind = TN_ROW_INSERT};
        kv.prefix = tn_row_prefix(&layout, spec.keys, kv.row);
        rc = tn_data_writer_add(&writer, &kv, &err);
        CHECK_OK(rc, err);
    }
    rc = tn_data_writer_finish(&writer, &build, meta, &err);
    CHECK_OK(rc, err);
    tn_arena_reset(&worker->arena, mark);
}

static void link_file(int bucket)
{
    char from[TEMP_SIZE + 128];
    char to[TEMP_SIZE + 128];
    char folder[64];
    (void)snprintf(folder, sizeof folder, ROOT "/bucket-%d", bucket);
    tn_rc rc = posix.io.vtable->make_dir(&posix.io, folder, &err);
    CHECK_OK(rc, err);
    (void)snprintf(from, sizeof from, "%s/" ROOT "/bucket-0/data-large-0.avro", root);
    (void)snprintf(to, sizeof to, "%s/%s/data-large-%d.avro", root, folder, bucket);
    CHECK(link(from, to) == 0);
}

static void add(struct tn_manifest_writer *writer, const struct tn_file_meta *meta,
                enum tn_entry_kind kind, const char *name, int bucket)
{
    struct tn_entry entry = {.kind = kind,
                             .partition = tn_binrow_empty,
                             .bucket = bucket,
                             .total_buckets = BUCKETS,
                             .file = *meta};
    char text[64];
    (void)snprintf(text, sizeof text, "data-%s-%d.avro", name, bucket);
    entry.file.file_name = text;
    tn_rc rc = tn_manifest_add_entry(writer, &entry, &err);
    CHECK_OK(rc, err);
}

/* Two files that live a manifest, and one that the next deletes: so DELETE entries are looked for
 * in every manifest but one. */
static struct tn_manifest_meta write_manifest(int number, const struct tn_file_meta *meta)
{
    struct tn_worker *worker = env.workers[TN_LANE_SHORT];
    static struct tn_manifest_writer writer;
    struct tn_manifest_meta made;
    int64_t size;
    const char *path = tn_arena_format(&build, ROOT "/manifest/manifest-%d", number);
    tn_rc rc =
        tn_manifest_begin(&writer, path, false, &schema, TN_CODEC_ID_ZSTANDARD, worker, &err);
    CHECK_OK(rc, err);
    for (int i = 0; i < BUCKETS / MANIFESTS; i++) {
        add(&writer, meta, TN_ENTRY_ADD, "large", number * (BUCKETS / MANIFESTS) + i);
    }
    if (number + 1 < MANIFESTS) {
        add(&writer, meta, TN_ENTRY_ADD, "old", number);
    }
    if (number > 0) {
        add(&writer, meta, TN_ENTRY_DELETE, "old", number - 1);
    }
    rc = tn_manifest_finish(&writer, &build, &made, &size, &err);
    CHECK_OK(rc, err);
    return made;
}

static int64_t write_list(const char *path, const struct tn_manifest_meta *metas, uint32_t count)
{
    static struct tn_manifest_writer writer;
    int64_t size;
    tn_rc rc = tn_manifest_begin(&writer, path, true, &schema, TN_CODEC_ID_ZSTANDARD,
                                 env.workers[TN_LANE_SHORT], &err);
    CHECK_OK(rc, err);
    for (uint32_t i = 0; i < count; i++) {
        rc = tn_manifest_add_meta(&writer, &metas[i], &err);
        CHECK_OK(rc, err);
    }
    rc = tn_manifest_finish(&writer, &build, NULL, &size, &err);
    CHECK_OK(rc, err);
    return size;
}

static void write_snapshot(int64_t base_size, int64_t delta_size)
{
    struct tn_snapshot snapshot = {
        .version = {3, true},
        .id = 1,
        .base_manifest_list = "manifest-list-base",
        .base_manifest_list_size = {base_size, true},
        .delta_manifest_list = "manifest-list-delta",
        .delta_manifest_list_size = {delta_size, true},
        .commit_user = "somebody",
        .commit_identifier = {1, true},
        .commit_kind = "APPEND",
        .time_ms = {1764547200000, true},
        .total_record_count = {(int64_t)ROWS * BUCKETS, true},
        .delta_record_count = {(int64_t)ROWS * BUCKETS, true},
    };
    struct tn_buf buf;
    tn_buf_init(&buf, tn_arena_take(&build, 4096), 4096);
    tn_snapshot_encode(&snapshot, &buf);
    CHECK(!buf.overflow);
    tn_rc rc = tn_io_write_new(&posix.io, ROOT "/snapshot/snapshot-1", tn_buf_bytes(&buf), &err);
    CHECK_OK(rc, err);
}

static void make_table(void)
{
    static struct tn_file_meta meta;
    struct tn_manifest_meta *metas = tn_arena_take(&build, MANIFESTS * sizeof *metas);
    write_schema();
    write_file(&meta);
    for (int bucket = 1; bucket < BUCKETS; bucket++) {
        link_file(bucket);
    }
    for (int i = 0; i < MANIFESTS; i++) {
        metas[i] = write_manifest(i, &meta);
    }
    int64_t base = write_list(ROOT "/manifest/manifest-list-base", metas, MANIFESTS - 1);
    int64_t delta = write_list(ROOT "/manifest/manifest-list-delta", metas + MANIFESTS - 1, 1);
    write_snapshot(base, delta);
}

/* ---- what is done with it ---- */

static long anonymous_kib(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[128];
    long kib = 0;
    while (status && fgets(line, sizeof line, status)) {
        if (strncmp(line, "RssAnon:", 8) == 0) {
            kib = strtol(line + 8, NULL, 10);
        }
    }
    if (status) {
        (void)fclose(status);
    }
    return kib;
}

static void write_rows(void)
{
    struct tn_table_spec spec = {
        .name = "db.t", .who = "a test", .identifier = -1, .compact = true};
    struct tn_table *table;
    tn_rc rc = tn_table_open(&env, &spec, &table, &err);
    CHECK_OK(rc, err);
    for (int64_t i = 0; i < NEW_ROWS; i++) { /* each in a bucket of its own, more or less */
        unsigned char data[128];
        do {
            rc = tn_table_put(table, make_row(ROWS + i, data), TN_ROW_INSERT, &err);
            if (rc == TN_AGAIN) {
                tn_rc turned = tn_table_turn(table, true, &err);
                CHECK_OK(turned, err);
            }
        } while (rc == TN_AGAIN);
        CHECK_OK(rc, err);
    }
    rc = tn_table_finish(table, NEW_ROWS, &err);
    CHECK_OK(rc, err);
    tn_table_close(table);
}

static void look_up(const struct tn_scan_spec *spec, int64_t k, bool there)
{
    static struct tn_lookup lookup;
    struct tn_value key = {.as.i64 = k};
    struct tn_part *window = tn_budget_part(&budget, "memtable");
    size_t mark = tn_arena_mark(&table_arena);
    tn_rc rc = tn_lookup(spec, &key, window->base, window->size, &table_arena,
                         env.workers[TN_LANE_LONG], &lookup, &err);
    CHECK(there ? rc == TN_OK : rc == TN_ABSENT);
    if (there) {
        struct tn_value value;
        char text[64];
        (void)snprintf(text, sizeof text, "value-%lld", (long long)k * 7);
        tn_row_get(&lookup.projection.layout, lookup.kv.row, 1, &value);
        CHECK(tn_bytes_equal(value.as.bytes, tn_bytes_of(text)));
        CHECK(lookup.file_count == 1);
    }
    tn_arena_reset(&table_arena, mark);
}

static void read_rows(void)
{
    static struct tn_schemas schemas;
    struct tn_snapshot snapshot;
    int64_t id;
    size_t mark = tn_arena_mark(&table_arena);
    tn_rc rc = tn_snapshot_latest(&posix.io, ROOT, &table_arena, &id, &err);
    CHECK_OK(rc, err);
    CHECK(id > 1);
    rc = tn_snapshot_read(&posix.io, ROOT, id, &table_arena, &snapshot, &err);
    CHECK_OK(rc, err);
    CHECK(snapshot.total_record_count.value == (int64_t)ROWS * BUCKETS + NEW_ROWS);
    tn_schemas_init(&schemas, &posix.io, ROOT, &table_arena);
    struct tn_scan_spec spec = {.root = ROOT,
                                .snapshot = &snapshot,
                                .schema = &schema,
                                .options = &options,
                                .schemas = &schemas};
    for (int64_t i = 0; i < LOOKUPS; i++) {
        look_up(&spec, i * 1999 % ROWS, true);
    }
    look_up(&spec, ROWS + NEW_ROWS - 1, true);
    look_up(&spec, ROWS + NEW_ROWS, false);
    look_up(&spec, -1, false);
    tn_arena_reset(&table_arena, mark);
}

/* Every bucket with its files, in a window of a hundredth of what they take. */
static void plan_all(void)
{
    static struct tn_plan plan;
    static struct tn_value values[2];
    struct tn_snapshot snapshot;
    size_t mark = tn_arena_mark(&table_arena);
    tn_rc rc = tn_snapshot_read(&posix.io, ROOT, 1, &table_arena, &snapshot, &err);
    CHECK_OK(rc, err);
    struct tn_key_types keys = {&schema.fields[0].type, 1, &values[0], &values[1]};
    struct tn_plan_spec spec = {
        .root = ROOT, .snapshot = &snapshot, .schema = &schema, .options = &options, .keys = &keys};
    struct tn_part *window = tn_budget_part(&budget, "memtable");
    rc = tn_plan_open(&plan, &spec, window->base, 64 << 10, &table_arena, env.workers[TN_LANE_LONG],
                      &err);
    CHECK_OK(rc, err);
    int buckets = 0;
    struct tn_plan_bucket *bucket;
    while ((rc = tn_plan_next(&plan, &bucket, &err)) == TN_OK) {
        CHECK(bucket->number == buckets && bucket->file_count == 1);
        CHECK(bucket->files[0]->row_count == ROWS);
        buckets++;
    }
    CHECK(rc == TN_ABSENT && buckets == BUCKETS);
    CHECK(plan.passes > 1);
    tn_arena_reset(&table_arena, mark);
}

static void a_hundred_million_rows_fit_16_mib(void)
{
    temp_make(root);
    tn_rc rc = tn_io_posix_open(&posix, root, &err);
    CHECK_OK(rc, err);
    tn_arena_init(&build, malloc(BUILD_ARENA_SIZE), BUILD_ARENA_SIZE);
    boot();
    make_table();
    clock_t began = clock();
    plan_all();
    write_rows();
    read_rows();
    double seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
    long kib = anonymous_kib() - (long)(build.peak / 1024); /* which no process of tarn has */
    (void)printf("%.1f s of CPU, %ld KiB\n", seconds, kib);
    CHECK(seconds < SECONDS_MAX);
    CHECK(SANITIZED || getenv("EMULATED") || kib <= RSS_MAX); /* an emulator has more */
    tn_io_posix_close(&posix);
    tn_budget_close(&budget);
    free(build.base);
    temp_remove(root);
}

static const struct test tests[] = {TEST(a_hundred_million_rows_fit_16_mib)};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
