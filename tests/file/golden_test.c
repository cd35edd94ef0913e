/* golden: data files of Java and Python give the rows that fastavro reads in them
 * (tests/golden/file). */
#include "file/data_reader.h"
#include "file/data_schema.h"
#include "file/data_writer.h"
#include "file/setup.h"

struct golden {
    const char *name;
    int number;
};

static const struct golden files[] = {
    {"types-pk", 0}, {"types-pk", 1}, {"types-append", 0}, {"pypaimon", 0}, {"codecs", 0},
    {"codecs", 1},   {"codecs", 2},   {"codecs", 3},       {"codecs", 4},   {"codecs", 5},
};

static struct setup setup;
static struct tn_schema schema;
static struct tn_row_layout layout;
static struct tn_read_spec read_spec;

static struct tn_bytes golden(const struct golden *g, const char *suffix, bool number)
{
    char path[128];
    char digits[16] = "";
    if (number) {
        (void)snprintf(digits, sizeof digits, "-%d", g->number);
    }
    (void)snprintf(path, sizeof path, "tests/golden/file/%s%s%s", g->name, digits, suffix);
    return setup_golden(&setup, path);
}

static void open_schema(const struct golden *g)
{
    uint32_t *field_of = NULL;
    int32_t *column_of = NULL;
    tn_rc rc = tn_schema_decode(golden(g, ".schema", false), &setup.arena, &schema, &setup.err);
    CHECK_OK(rc, setup.err);
    rc = tn_schema_layout(&schema, &layout, &field_of, &column_of, &setup.arena, &setup.err);
    CHECK_OK(rc, setup.err);
    int32_t *ids = tn_arena_take(&setup.arena, layout.column_count * sizeof *ids);
    for (uint32_t i = 0; i < layout.column_count; i++) {
        ids[i] = schema.fields[field_of[i]].id;
    }
    uint32_t *keys = tn_arena_take(&setup.arena, schema.trimmed_keys.count * sizeof *keys + 1);
    for (uint32_t i = 0; i < schema.trimmed_keys.count; i++) {
        keys[i] = (uint32_t)column_of[schema.trimmed_keys.index[i]];
    }
    read_spec = (struct tn_read_spec){&layout, ids, {keys, schema.trimmed_keys.count}};
}

static void check_file(const struct golden *g)
{
    static struct tn_data_reader reader;
    static unsigned char memory[SETUP_FILE_MAX];
    struct tn_buf out;
    setup_begin(&setup);
    open_schema(g);
    struct tn_bytes file = golden(g, ".avro", true);
    tn_rc rc = tn_io_write_new(&setup.disk.io, "file", file, &setup.err);
    CHECK_OK(rc, setup.err);
    rc = tn_data_reader_open(&reader, "file", (int64_t)file.size, 0, &schema, &read_spec,
                             &setup.worker, &setup.err);
    CHECK_OK(rc, setup.err);
    tn_buf_init(&out, memory, sizeof memory);
    struct tn_kv kv;
    while ((rc = tn_iter_next(&reader.iter, &kv, &setup.err)) == TN_OK) {
        CHECK(tn_row_valid(&layout, kv.row));
        tn_buf_format(&out, "%" PRId64 " %d ", kv.sequence, (int)kv.kind);
        tn_row_format_json(&layout, NULL, kv.row, &out);
        tn_buf_byte(&out, '\n');
    }
    CHECK(rc == TN_ABSENT || (fprintf(stderr, "%s\n", setup.err.text), false));
    CHECK(tn_bytes_equal(tn_buf_bytes(&out), golden(g, ".txt", true)));
    tn_iter_close(&reader.iter);
    setup_end(&setup);
}

static void files_of_other_writers_give_the_rows_that_fastavro_reads(void)
{
    for (size_t i = 0; i < COUNT(files); i++) {
        check_file(&files[i]);
    }
}

/* The schema text of a file without nested columns is Java's, cut out of a file that has some. */
static void the_schema_text_is_as_java_writes_it(void)
{
    struct tn_options options = {.thin_mode = false};
    struct tn_avro_header header;
    struct tn_bytes text;
    setup_begin(&setup);
    open_schema(&files[0]);
    tn_rc rc = tn_avro_header_decode(golden(&files[0], ".avro", true), &header, &setup.err);
    CHECK_OK(rc, setup.err);
    while (schema.fields[schema.field_count - 1].type.kind >= TN_TYPE_ARRAY) {
        schema.field_count--; /* all nested columns are at the end */
    }
    rc = tn_data_avro_schema(&schema, &options, &setup.arena, &text, &setup.err);
    CHECK_OK(rc, setup.err);
    size_t fields_end = text.size - 2; /* without "]}" */
    CHECK(fields_end < header.schema.size);
    CHECK(memcmp(text.data, header.schema.data, fields_end) == 0);
    CHECK(header.schema.data[fields_end] == ',');
    options.thin_mode = true;
    rc = tn_data_avro_schema(&schema, &options, &setup.arena, &text, &setup.err);
    CHECK_OK(rc, setup.err);
    CHECK(!memmem(text.data, text.size, "_KEY_", 5));
    CHECK(memmem(text.data, text.size, "[{\"name\":\"_SEQUENCE_NUMBER\"", 27));
    setup_end(&setup);
}

static const struct test tests[] = {
    TEST(files_of_other_writers_give_the_rows_that_fastavro_reads),
    TEST(the_schema_text_is_as_java_writes_it),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
