/* long: rows of very different lengths go through a writer and a reader that have just the memory
 * which their headers promise: blocks as they come, and twice the largest of them. */
#include "file/data_reader.h"
#include "file/data_writer.h"
#include "file/setup.h"
#include "given.h"
#include "random.h"

enum {
    ROW_MAX = 400 * 1024,
    ROWS_MAX = 120,
    BLOCK = 64 * 1024,
    READER_FIXED = 48 * 1024, /* plan, head and first window */
};

static struct setup setup;
static struct tn_field fields[] = {
    {.id = 0, .name = "k"}, {.id = 1, .name = "s"}, {.id = 2, .name = "b"}};
enum { COLUMNS = COUNT(fields) };
static struct tn_schema schema;
static struct tn_options options;
static struct tn_row_layout layout;
static struct tn_read_spec read_spec;
static const uint32_t key_index[] = {0};
static const int32_t ids[] = {0, 1, 2};
static enum tn_stats_mode modes[COLUMNS];
static uint32_t lengths[COLUMNS];
static unsigned char bytes[2 * ROW_MAX];
static uint32_t sizes[ROWS_MAX];
static uint32_t starts[ROWS_MAX];
static struct tn_data_writer writer;
static struct tn_data_reader reader;

static void begin(const char *key_type, enum tn_codec_id codec)
{
    const char *types[COLUMNS] = {key_type, "STRING", "BYTES"};
    const char *names[COLUMNS];
    struct tn_type parsed[COLUMNS];
    setup_begin(&setup);
    for (uint32_t i = 0; i < COLUMNS; i++) {
        tn_rc rc = tn_type_parse(tn_bytes_of(types[i]), &fields[i].type, &setup.err);
        CHECK_OK(rc, setup.err);
        names[i] = fields[i].name;
        parsed[i] = fields[i].type;
        modes[i] = TN_STATS_FULL;
    }
    struct tn_columns keys = {key_index, 1};
    schema = (struct tn_schema){.version = 3,
                                .fields = fields,
                                .field_count = COLUMNS,
                                .primary_keys = keys,
                                .trimmed_keys = keys};
    options = (struct tn_options){
        .codec = codec, .stats_modes = modes, .stats_lengths = lengths, .target_file_size = 1};
    tn_rc rc = tn_row_layout_init(&layout, names, parsed, COLUMNS, &setup.arena, &setup.err);
    CHECK_OK(rc, setup.err);
    read_spec = (struct tn_read_spec){&layout, ids, keys};
}

/* Row i: its bytes are a part of `bytes`, so nobody has to remember them. */
static struct tn_row make_row(uint32_t i)
{
    static unsigned char data[ROW_MAX];
    static unsigned char key[8];
    (void)snprintf((char *)key, sizeof key, "%06u", i);
    struct tn_value values[COLUMNS] = {
        {.as.bytes = {key, 6}},
        {.null = i % 3 == 0, .as.bytes = {(const unsigned char *)"short", 5}},
        {.as.bytes = {bytes + starts[i], sizes[i]}},
    };
    CHECK(tn_row_packed_size(&layout, values) <= sizeof data);
    return (struct tn_row){data, tn_row_pack(&layout, values, data)};
}

static struct tn_kv make_kv(uint32_t i)
{
    struct tn_kv kv = {.row = make_row(i), .sequence = i, .kind = TN_ROW_INSERT};
    kv.prefix = tn_row_prefix(&layout, read_spec.keys, kv.row);
    return kv;
}

static void draw(uint64_t *state, uint32_t count)
{
    static const uint32_t orders[] = {10, 1000, 60000, 200000, ROW_MAX - 64};
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)random_below(state, 256);
    }
    for (uint32_t i = 0; i < count; i++) {
        sizes[i] = random_below(state, orders[random_below(state, COUNT(orders))] + 1);
        starts[i] = random_below(state, ROW_MAX);
    }
}

/* The writer rests now and then, and gets its memory back filled with something else. */
static void write_rows(uint32_t count, uint64_t *state, struct tn_file_meta *meta)
{
    size_t size = tn_data_writer_size(&layout, &options, BLOCK, ROW_MAX);
    size_t state_size = tn_data_writer_state_size(&layout, &options, ROW_MAX);
    struct tn_worker worker = setup.worker;
    struct tn_arena kept;
    CHECK(state_size < 80 * 1024);
    tn_arena_init(&worker.arena, tn_arena_take_raw(&setup.arena, size), size);
    tn_arena_init(&kept, tn_arena_take_raw(&setup.arena, state_size), state_size);
    struct tn_data_writer_spec spec = {.schema = &schema,
                                       .options = &options,
                                       .layout = &layout,
                                       .keys = read_spec.keys,
                                       .dir = "",
                                       .name = "file",
                                       .block_size = BLOCK};
    tn_rc rc = tn_data_writer_begin(&writer, &spec, &worker, ROW_MAX, &kept, &setup.err);
    CHECK_OK(rc, setup.err);
    for (uint32_t i = 0; i < count; i++) {
        struct tn_kv kv = make_kv(i);
        rc = tn_data_writer_add(&writer, &kv, &setup.err);
        CHECK_OK(rc, setup.err);
        CHECK(!tn_data_writer_full(&writer)); /* fewer than 1,000 rows */
        if (random_below(state, 8) == 0) {
            rc = tn_data_writer_rest(&writer, &setup.err);
            CHECK_OK(rc, setup.err);
            memset(worker.arena.base, 0xEE, worker.arena.size);
            tn_arena_reset(&worker.arena, 0);
            rc = tn_data_writer_wake(&writer, &worker, &setup.err);
            CHECK_OK(rc, setup.err);
        }
    }
    rc = tn_data_writer_finish(&writer, &setup.arena, meta, &setup.err);
    CHECK_OK(rc, setup.err);
}

static void check_row(const struct tn_kv *kv, uint32_t i)
{
    struct tn_row want = make_row(i);
    CHECK(kv->row.size == want.size && memcmp(kv->row.data, want.data, want.size) == 0);
    CHECK(kv->sequence == i);
}

static void open_reader(struct tn_worker *worker, const struct tn_file_meta *meta)
{
    tn_arena_reset(&worker->arena, 0);
    tn_rc rc = tn_data_reader_open(&reader, "file", meta->file_size, 0, &schema, &read_spec, worker,
                                   &setup.err);
    CHECK_OK(rc, setup.err);
}

/* All rows in order, and from some keys on: a seek reads what it needs twice. */
static void read_rows(uint32_t count, uint64_t *state, const struct tn_file_meta *meta)
{
    size_t size = 2 * tn_data_writer_block_max(&layout, BLOCK, ROW_MAX) + READER_FIXED;
    struct tn_worker worker = setup.worker;
    tn_arena_init(&worker.arena, tn_arena_take_raw(&setup.arena, size), size);
    open_reader(&worker, meta);
    for (uint32_t i = 0; i < count; i++) {
        struct tn_kv kv;
        tn_rc rc = tn_iter_next(&reader.iter, &kv, &setup.err);
        CHECK_OK(rc, setup.err);
        check_row(&kv, i);
    }
    tn_iter_close(&reader.iter);
    for (int n = 0; n < 4; n++) {
        uint32_t i = random_below(state, count);
        struct tn_kv kv = make_kv(i);
        struct tn_value key;
        tn_row_get(&layout, kv.row, 0, &key);
        unsigned char text[8];
        memcpy(text, key.as.bytes.data, key.as.bytes.size); /* the row is made anew below */
        key.as.bytes.data = text;
        open_reader(&worker, meta);
        tn_rc rc = reader.iter.vtable->seek(&reader.iter, &key, &setup.err);
        CHECK_OK(rc, setup.err);
        for (; i < count && n % 2 == 0; i++) {
            rc = tn_iter_next(&reader.iter, &kv, &setup.err);
            CHECK_OK(rc, setup.err);
            check_row(&kv, i);
        }
        tn_iter_close(&reader.iter);
    }
}

static void rows_of_any_length_take_what_was_promised(void)
{
    static const enum tn_codec_id codecs[] = {TN_CODEC_ID_ZSTANDARD, TN_CODEC_ID_NULL};
    for (uint64_t seed = 1; seed <= 12; seed++) {
        uint64_t state = seed + 100 * given_number("SEED", 1);
        begin("STRING NOT NULL", codecs[seed % 2]);
        uint32_t count = 1 + random_below(&state, ROWS_MAX);
        draw(&state, count);
        struct tn_file_meta meta;
        write_rows(count, &state, &meta);
        CHECK(meta.row_count == count);
        read_rows(count, &state, &meta);
        setup_end(&setup);
    }
}

/* What lies above its buffers is somebody else's: the reader leaves it alone, and goes on. */
static void a_reader_leaves_what_others_took(void)
{
    begin("STRING NOT NULL", TN_CODEC_ID_ZSTANDARD);
    uint64_t state = 7;
    uint32_t count = 60;
    draw(&state, count);
    struct tn_file_meta meta;
    write_rows(count, &state, &meta);
    struct tn_worker worker = setup.worker;
    size_t size = tn_arena_free(&setup.arena) / 2;
    tn_arena_init(&worker.arena, tn_arena_take_raw(&setup.arena, size), size);
    open_reader(&worker, &meta);
    unsigned char *taken[ROWS_MAX];
    for (uint32_t i = 0; i < count; i++) {
        struct tn_kv kv;
        tn_rc rc = tn_iter_next(&reader.iter, &kv, &setup.err);
        CHECK_OK(rc, setup.err);
        check_row(&kv, i);
        taken[i] = tn_arena_take_raw(&worker.arena, 16);
        CHECK(taken[i]);
        memset(taken[i], (int)i, 16);
    }
    for (uint32_t i = 0; i < count; i++) {
        CHECK(taken[i][0] == i && taken[i][15] == i);
    }
    tn_iter_close(&reader.iter);
    setup_end(&setup);
}

static void long_keys_are_refused_with_their_size(void)
{
    begin("STRING NOT NULL", TN_CODEC_ID_ZSTANDARD);
    size_t state_size = tn_data_writer_state_size(&layout, &options, ROW_MAX);
    struct tn_arena kept;
    tn_arena_init(&kept, tn_arena_take_raw(&setup.arena, state_size), state_size);
    struct tn_data_writer_spec spec = {.schema = &schema,
                                       .options = &options,
                                       .layout = &layout,
                                       .keys = read_spec.keys,
                                       .dir = "",
                                       .name = "file",
                                       .block_size = BLOCK};
    tn_rc rc = tn_data_writer_begin(&writer, &spec, &setup.worker, ROW_MAX, &kept, &setup.err);
    CHECK_OK(rc, setup.err);
    static const struct {
        uint32_t size;
        bool taken;
    } keys[] = {
        {TN_DATA_KEY_MAX, true}, {TN_DATA_KEY_MAX + 1, false}, {3 * TN_DATA_KEY_MAX, false}};
    for (size_t i = 0; i < COUNT(keys); i++) {
        static unsigned char data[ROW_MAX];
        memset(bytes, 'a' + (int)i, sizeof bytes);
        struct tn_value values[COLUMNS] = {
            {.as.bytes = {bytes, keys[i].size}}, {.null = true}, {.as.bytes = {bytes, 50000}}};
        struct tn_kv kv = {.row = {data, tn_row_pack(&layout, values, data)}};
        kv.prefix = tn_row_prefix(&layout, read_spec.keys, kv.row);
        CHECK(tn_data_key_size(&layout, read_spec.keys, kv.row) == keys[i].size);
        rc = tn_data_writer_add(&writer, &kv, &setup.err);
        CHECK(rc == (keys[i].taken ? TN_OK : TN_INVALID));
        CHECK(keys[i].taken || strstr(setup.err.text, "at most 32768"));
    }
    struct tn_file_meta meta;
    rc = tn_data_writer_finish(&writer, &setup.arena, &meta, &setup.err);
    CHECK_OK(rc, setup.err);
    CHECK(meta.row_count == 1 && tn_bytes_equal(meta.min_key, meta.max_key));
    setup_end(&setup);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(rows_of_any_length_take_what_was_promised),
        TEST(a_reader_leaves_what_others_took),
        TEST(long_keys_are_refused_with_their_size),
    };
    return run_tests(argc, argv, tests, COUNT(tests));
}
