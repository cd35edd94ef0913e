/* Flushes of memtables that keep every version: what the data files hold against a fold in plain C,
 * what the changelog files hold against the list of all rows, both read back from the disk. */
#include "write/flush.h"

#include "base/poison.h"
#include "file/data_reader.h"
#include "file/setup.h"
#include "random.h"

enum {
    POOL_SIZE = 4 << 20,
    PAGE_SIZE = 64 << 10,
    ROWS_MAX = 8000, /* files are cut at thousands */
    ROW_MAX = 64,
    MERGED_MAX = 2048,
    BLOCK_SIZE = 1024,
};

#define DIR "db.db/t/bucket-0/"

/* Id, value, kind, sequence number: all that a row is here. */
struct plain {
    int64_t id;
    int64_t v;
    int64_t sequence;
    enum tn_row_kind kind;
};

static struct {
    struct setup s;
    struct tn_schema schema;
    struct tn_options options;
    struct tn_row_layout layout;
    struct tn_order order;
    struct tn_read_spec read;
    int32_t ids[2];
    const struct tn_engine *engine;
    struct tn_pool pool;
    void *pool_memory;
    struct tn_memtable memtable;
    struct plain rows[ROWS_MAX]; /* as they came */
    uint32_t row_count;
    struct plain got[ROWS_MAX];
    uint32_t got_count;
} bed;

static void bed_begin_of(const char *type, const char *options, enum tn_memtable_keeps keeps,
                         int64_t target_size)
{
    memset(&bed, 0, sizeof bed);
    setup_begin(&bed.s);
    struct tn_err *err = &bed.s.err;
    struct tn_arena *arena = &bed.s.arena;
    const char *text = tn_arena_format(
        arena,
        "{\"fields\": [{\"name\": \"id\", \"type\": \"BIGINT\"}, {\"name\": \"v\", \"type\": "
        "\"%s\"}], \"primaryKeys\": [\"id\"], \"options\": {\"bucket\": \"1\", "
        "\"file.format\": \"avro\"%s}}",
        type, options);
    tn_rc rc = tn_schema_from_user(tn_bytes_of(text), arena, &bed.schema, err);
    CHECK_OK(rc, *err);
    rc = tn_options_read(&bed.schema, TN_OPTIONS_READ, arena, &bed.options, err);
    CHECK_OK(rc, *err);
    bed.options.target_file_size = target_size;
    uint32_t *fields_of;
    rc = tn_schema_layout(&bed.schema, &bed.layout, &fields_of, NULL, arena, err);
    CHECK_OK(rc, *err);
    bed.order = (struct tn_order){
        .layout = &bed.layout, .keys = bed.schema.primary_keys, .prefix_decides = true};
    for (uint32_t i = 0; i < 2; i++) {
        bed.ids[i] = bed.schema.fields[i].id;
    }
    bed.read = (struct tn_read_spec){&bed.layout, bed.ids, bed.schema.primary_keys};
    rc = tn_engine_make(&bed.options, &bed.order, fields_of, arena, &bed.engine, err);
    CHECK_OK(rc, *err);
    bed.pool_memory = malloc(POOL_SIZE);
    tn_pool_init(&bed.pool, bed.pool_memory, POOL_SIZE, PAGE_SIZE);
    tn_memtable_init(&bed.memtable, &bed.pool, &bed.order, keeps);
    rc = tn_reducer_make(bed.engine, MERGED_MAX, arena, &bed.memtable.reducer, err);
    CHECK_OK(rc, *err);
    rc = bed.s.disk.io.vtable->make_dir(&bed.s.disk.io, DIR, err);
    CHECK_OK(rc, *err);
}

static void bed_begin(const char *options, enum tn_memtable_keeps keeps, int64_t target_size)
{
    bed_begin_of("BIGINT", options, keeps, target_size);
}

static void bed_end(void)
{
    tn_memtable_drop(&bed.memtable);
    tn_unpoison(bed.pool_memory, POOL_SIZE);
    free(bed.pool_memory);
    setup_end(&bed.s);
}

static void put(struct plain row)
{
    unsigned char data[ROW_MAX];
    struct tn_value values[] = {{.as.i64 = row.id}, {.as.i64 = row.v}};
    struct tn_row packed = {data, tn_row_pack(&bed.layout, values, data)};
    row.sequence = bed.row_count;
    tn_rc rc = tn_memtable_put(&bed.memtable, packed, row.kind, row.sequence, &bed.s.err);
    CHECK_OK(rc, bed.s.err);
    bed.rows[bed.row_count++] = row;
}

static void draw(uint64_t *seed, uint32_t count, bool retracts)
{
    uint32_t ids = 1 + random_below(seed, 2 * count);
    for (uint32_t i = 0; i < count; i++) {
        put((struct plain){.id = random_below(seed, ids),
                           .v = (int64_t)random_below(seed, 100),
                           .kind = (enum tn_row_kind)(retracts ? random_below(seed, 4) : 0)});
    }
    tn_memtable_freeze(&bed.memtable);
}

/* By id, then as they came. */
static int compare(const void *a, const void *b)
{
    const struct plain *x = a;
    const struct plain *y = b;
    if (x->id != y->id) {
        return x->id < y->id ? -1 : 1;
    }
    return x->sequence < y->sequence ? -1 : 1;
}

static tn_rc flush(bool changelog, uint32_t *counter, struct tn_flush_file **files)
{
    struct tn_flush_spec spec = {.order = &bed.order,
                                 .schema = &bed.schema,
                                 .options = &bed.options,
                                 .memtable = &bed.memtable,
                                 .engine = bed.engine,
                                 .changelog = changelog,
                                 .dir = DIR,
                                 .uuid = "u",
                                 .counter = counter,
                                 .block_size = BLOCK_SIZE,
                                 .row_size_max = ROW_MAX};
    return tn_flush(&spec, &bed.s.worker, files, &bed.s.err);
}

static void read_file(const struct tn_file_meta *meta)
{
    static struct tn_data_reader reader;
    struct tn_err *err = &bed.s.err;
    size_t mark = tn_arena_mark(&bed.s.worker.arena);
    const char *path = tn_arena_format(&bed.s.arena, "%s%s", DIR, meta->file_name);
    tn_rc rc = tn_data_reader_open(&reader, path, meta->file_size, meta->level, &bed.schema,
                                   &bed.read, &bed.s.worker, err);
    CHECK_OK(rc, *err);
    struct tn_kv kv;
    while ((rc = tn_iter_next(&reader.iter, &kv, err)) == TN_OK) {
        struct tn_value id;
        struct tn_value v;
        tn_row_get(&bed.layout, kv.row, 0, &id);
        tn_row_get(&bed.layout, kv.row, 1, &v);
        CHECK(bed.got_count < ROWS_MAX);
        bed.got[bed.got_count++] = (struct plain){id.as.i64, v.as.i64, kv.sequence, kv.kind};
    }
    CHECK(rc == TN_ABSENT);
    tn_iter_close(&reader.iter);
    tn_arena_reset(&bed.s.worker.arena, mark);
}

/* The rows of all files of one kind; returns how many files they are. */
static uint32_t read_files(const struct tn_flush_file *files, bool changelog)
{
    static const char *const prefixes[] = {"data-u-", "changelog-u-"};
    uint32_t count = 0;
    bool data_seen = false;
    bed.got_count = 0;
    for (const struct tn_flush_file *file = files; file; file = file->next) {
        CHECK(!(file->changelog && data_seen)); /* the changelog comes first */
        data_seen = data_seen || !file->changelog;
        if (file->changelog == changelog) {
            uint32_t before = bed.got_count;
            CHECK(strncmp(file->meta.file_name, prefixes[changelog], strlen(prefixes[changelog])) ==
                  0);
            CHECK(file->meta.level == 0);
            read_file(&file->meta);
            CHECK(bed.got_count - before == file->meta.row_count);
            count++;
        }
    }
    return count;
}

static bool same(const struct plain *a, const struct plain *b)
{
    return a->id == b->id && a->v == b->v && a->sequence == b->sequence && a->kind == b->kind;
}

/* Sums of several versions, a single one as it is; the newest one's number. */
static void check_sums(void)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < bed.row_count;) {
        struct plain want = bed.rows[i];
        uint32_t count = 1;
        int64_t sum = tn_row_kind_retracts(want.kind) ? -want.v : want.v;
        for (; i + count < bed.row_count && bed.rows[i + count].id == want.id; count++) {
            const struct plain *row = &bed.rows[i + count];
            sum += tn_row_kind_retracts(row->kind) ? -row->v : row->v;
            want = (struct plain){row->id, sum, row->sequence, TN_ROW_INSERT};
        }
        CHECK(at < bed.got_count && same(&bed.got[at], &want));
        at++;
        i += count;
    }
    CHECK(at == bed.got_count);
}

static void check_newest(void)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < bed.row_count; i++) {
        if (i + 1 == bed.row_count || bed.rows[i + 1].id != bed.rows[i].id) {
            CHECK(at < bed.got_count && same(&bed.got[at], &bed.rows[i]));
            at++;
        }
    }
    CHECK(at == bed.got_count);
}

static void check_all(void)
{
    CHECK(bed.got_count == bed.row_count);
    for (uint32_t i = 0; i < bed.row_count; i++) {
        CHECK(same(&bed.got[i], &bed.rows[i]));
    }
}

/* An aggregation, and deduplicate; with a changelog and without; in one file and in many; with any
 * codec for either. */
static void a_flush_folds_versions_and_tells_all_of_them(void)
{
    uint32_t many = 0;
    for (uint64_t round = 0; round < 40; round++) {
        uint64_t seed = round;
        bool sums = random_below(&seed, 2) == 0;
        bool changelog = random_below(&seed, 2) == 0;
        bed_begin(sums ? ", \"merge-engine\": \"aggregation\", \"fields.v.aggregate-function\": "
                         "\"sum\""
                       : "",
                  TN_MEMTABLE_ALL, random_below(&seed, 2) == 0 ? 3000 : 1 << 20);
        static const enum tn_codec_id codecs[] = {TN_CODEC_ID_NULL, TN_CODEC_ID_DEFLATE,
                                                  TN_CODEC_ID_ZSTANDARD};
        bed.options.codec = codecs[round % COUNT(codecs)];
        bed.options.changelog_codec = codecs[round / COUNT(codecs) % COUNT(codecs)];
        draw(&seed, 1 + random_below(&seed, ROWS_MAX - 1), true);
        qsort(bed.rows, bed.row_count, sizeof *bed.rows, compare);
        struct tn_flush_file *files;
        uint32_t counter = 7;
        tn_rc rc = flush(changelog, &counter, &files);
        CHECK_OK(rc, bed.s.err);
        uint32_t data_files = read_files(files, false);
        sums ? check_sums() : check_newest();
        uint32_t changelog_files = read_files(files, true);
        CHECK((changelog_files > 0) == changelog);
        if (changelog) {
            check_all();
        }
        CHECK(counter == 7 + data_files + changelog_files);
        many += data_files > 1 && changelog_files > 1;
        bed_end();
    }
    CHECK(many > 2);
}

/* Rows that are merged as they come make the same file, and take a place a key. */
static void rows_merged_as_they_come_give_the_same_sums(void)
{
    for (uint64_t round = 0; round < 20; round++) {
        uint64_t seed = round;
        bed_begin(", \"merge-engine\": \"aggregation\", \"fields.v.aggregate-function\": \"sum\"",
                  TN_MEMTABLE_FOLDED, 1 << 20);
        draw(&seed, 1 + random_below(&seed, ROWS_MAX - 1), true);
        qsort(bed.rows, bed.row_count, sizeof *bed.rows, compare);
        struct tn_flush_file *files;
        uint32_t counter = 0;
        tn_rc rc = flush(false, &counter, &files);
        CHECK_OK(rc, bed.s.err);
        (void)read_files(files, false);
        check_sums();
        CHECK(bed.memtable.count == bed.got_count);
        bed_end();
    }
}

/* Texts of one key that are put together as they come: the row that is kept is longer than any that
 * came, and the flush has room for it. */
static void rows_that_grow_as_they_are_merged_are_flushed(void)
{
    enum { COUNT_OF_ROWS = 20, TEXT_SIZE = 40 };
    bed_begin_of("STRING",
                 ", \"merge-engine\": \"aggregation\", \"fields.v.aggregate-function\": "
                 "\"listagg\"",
                 TN_MEMTABLE_FOLDED, 1 << 20);
    const unsigned char text[TEXT_SIZE] = "0123456789abcdefghij0123456789abcdefghij";
    for (uint32_t i = 0; i < COUNT_OF_ROWS; i++) {
        unsigned char data[ROW_MAX];
        struct tn_value values[] = {{.as.i64 = 7}, {.as.bytes = {text, TEXT_SIZE}}};
        struct tn_row packed = {data, tn_row_pack(&bed.layout, values, data)};
        tn_rc rc = tn_memtable_put(&bed.memtable, packed, TN_ROW_INSERT, i, &bed.s.err);
        CHECK_OK(rc, bed.s.err);
    }
    tn_memtable_freeze(&bed.memtable);
    struct tn_flush_file *files;
    uint32_t counter = 0;
    tn_rc rc = flush(false, &counter, &files);
    CHECK_OK(rc, bed.s.err);
    CHECK(files && !files->next && files->meta.row_count == 1);
    CHECK(bed.memtable.row_size_max > COUNT_OF_ROWS * TEXT_SIZE);
    bed_end();
}

/* What can't be merged fails the flush, and leaves neither data nor changelog. */
static void a_flush_that_fails_leaves_no_file(void)
{
    bed_begin(", \"merge-engine\": \"partial-update\"", TN_MEMTABLE_ALL, 1 << 20);
    for (int64_t id = 0; id < 500; id++) {
        put((struct plain){.id = id, .v = 1, .kind = TN_ROW_INSERT});
    }
    put((struct plain){.id = 499, .v = 1, .kind = TN_ROW_DELETE});
    tn_memtable_freeze(&bed.memtable);
    struct tn_flush_file *files = NULL;
    uint32_t counter = 0;
    for (int tries = 0; tries < 2; tries++) {
        size_t mark = tn_arena_mark(&bed.s.worker.arena);
        tn_rc rc = flush(true, &counter, &files);
        CHECK(rc == TN_INVALID && !files);
        tn_arena_reset(&bed.s.worker.arena, mark);
    }
    CHECK(counter == 4);
    uint64_t size;
    for (uint32_t i = 0; i < 4; i++) {
        const char *path =
            tn_arena_format(&bed.s.arena, DIR "%s-u-%u.avro", i % 2 ? "data" : "changelog", i);
        tn_rc rc = bed.s.disk.io.vtable->stat(&bed.s.disk.io, path, &size, &bed.s.err);
        CHECK(rc == TN_ABSENT);
    }
    bed_end();
}

static const struct test tests[] = {
    TEST(a_flush_folds_versions_and_tells_all_of_them),
    TEST(rows_merged_as_they_come_give_the_same_sums),
    TEST(rows_that_grow_as_they_are_merged_are_flushed),
    TEST(a_flush_that_fails_leaves_no_file),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
