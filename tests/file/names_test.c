/* names: folders of partitions as official Paimon 1.3.1 named them (the values were given to it,
 * the names are what it made), escapes, file names, numbers, and names that must not become paths.
 */
#include "file/names.h"

#include "file/setup.h"

static struct setup setup;

struct partition_case {
    const char *type;
    const char *value; /* text as tn_value_parse reads it; NULL: NULL */
    const char *legacy;
    const char *new; /* NULL: UNSUPPORTED */
};

#define DEFAULT_NAME "__DEFAULT_PARTITION__"

static const struct partition_case cases[] = {
    {"STRING", "plain", "plain", "plain"},
    {"STRING", NULL, DEFAULT_NAME, DEFAULT_NAME},
    {"STRING", "", DEFAULT_NAME, DEFAULT_NAME},
    {"STRING", "  ", DEFAULT_NAME, DEFAULT_NAME},
    {"STRING", " \xe2\x80\x83\t", DEFAULT_NAME, DEFAULT_NAME}, /* em space */
    {"STRING", "\x1f", DEFAULT_NAME, DEFAULT_NAME},
    {"STRING", "\xc2\xa0", "\xc2\xa0", "\xc2\xa0"},             /* no-break space */
    {"STRING", "\xe2\x80\x87", "\xe2\x80\x87", "\xe2\x80\x87"}, /* figure space */
    {"STRING", DEFAULT_NAME "x", DEFAULT_NAME "x", DEFAULT_NAME "x"},
    {"STRING", "a/b=c:d%e f\"g'h#i*j?k\\l{m}n[o]p^q",
     "a%2Fb%3Dc%3Ad%25e f%22g%27h%23i%2Aj%3Fk%5Cl%7Bm%7Dn%5Bo%5Dp%5Eq",
     "a%2Fb%3Dc%3Ad%25e f%22g%27h%23i%2Aj%3Fk%5Cl%7Bm%7Dn%5Bo%5Dp%5Eq"},
    {"STRING", "\xe4\xb8\xad", "\xe4\xb8\xad", "\xe4\xb8\xad"},
    {"STRING", "&<>|~ ,;.", "&<>|~ ,;.", "&<>|~ ,;."},
    {"STRING", "a%20b", "a%2520b", "a%2520b"},
    {"STRING", "back\x01\x7f", "back%01%7F", "back%01%7F"},
    {"CHAR(3)", "ab", "ab", "ab"},
    {"BOOLEAN", "true", "true", "true"},
    {"BOOLEAN", "false", "false", "false"},
    {"TINYINT", "-128", "-128", "-128"},
    {"BIGINT", "9223372036854775807", "9223372036854775807", "9223372036854775807"},
    {"INT", NULL, DEFAULT_NAME, DEFAULT_NAME},
    {"DATE", "2022-01-08", "19000", "2022-01-08"},
    {"DATE", "1969-12-31", "-1", "1969-12-31"},
    {"DATE", "0000-01-01", "-719528", "0000-01-01"},
    {"DATE", "+10000-01-01", "2932897", "0000-01-01"},
    {"DATE", "-0001-01-01", "-719893", "000%2F-01-01"},
    {"DECIMAL(10, 2)", "1.50", "1.50", "1.50"},
    {"DECIMAL(10, 2)", "-0.01", "-0.01", "-0.01"},
    {"DECIMAL(38, 10)", "1234567890123456789012345678.0123456789",
     "1234567890123456789012345678.0123456789", "1234567890123456789012345678.0123456789"},
    {"DECIMAL(38, 10)", "-0.0000000001", "-0.0000000001", "-0.0000000001"},
    {"FLOAT", "0.1", "0.1", "0.1"},
    {"FLOAT", "0.00001", "1.0E-5", "1.0E-5"},
    {"FLOAT", "3.4E38", "3.4E38", "3.4E38"},
    {"FLOAT", "16777216", "1.6777216E7", "1.6777216E7"},
    {"FLOAT", "-0.0", "-0.0", "-0.0"},
    {"FLOAT", "NaN", "NaN", "NaN"},
    {"DOUBLE", "1e10", "1.0E10", "1.0E10"},
    {"DOUBLE", "9999999", "9999999.0", "9999999.0"},
    {"DOUBLE", "10000000", "1.0E7", "1.0E7"},
    {"DOUBLE", "0.001", "0.001", "0.001"},
    {"DOUBLE", "123456789.125", "1.23456789125E8", "1.23456789125E8"},
    {"DOUBLE", "-Infinity", "-Infinity", "-Infinity"},
    {"TIME(0)", "12:34:56", "45296000", "12%3A34%3A56"},
    {"TIME(3)", "12:34:56.789", "45296789", "12%3A34%3A56.789"},
    {"TIME(3)", "12:34:56.700", "45296700", "12%3A34%3A56.7"},
    {"TIME(3)", "12:34:00", "45240000", "12%3A34%3A00.0"},
    {"TIME(3)", "00:00:00.050", "50", "00%3A00%3A00.05"},
    {"TIMESTAMP(0)", "2023-11-14T22:13:20", "2023-11-14T22%3A13%3A20", "2023-11-14 22%3A13%3A20"},
    {"TIMESTAMP(0)", "2023-11-14T22:13:00", "2023-11-14T22%3A13", "2023-11-14 22%3A13%3A00"},
    {"TIMESTAMP(3)", "2023-11-14T22:13:20.120", "2023-11-14T22%3A13%3A20.120",
     "2023-11-14 22%3A13%3A20.120"},
    {"TIMESTAMP(3)", "2023-11-14T22:13:00", "2023-11-14T22%3A13", "2023-11-14 22%3A13%3A00.000"},
    {"TIMESTAMP(3)", "1969-12-31T23:59:59.999", "1969-12-31T23%3A59%3A59.999",
     "1969-12-31 23%3A59%3A59.999"},
    {"TIMESTAMP(3)", "+10000-01-01T00:00:00", "+10000-01-01T00%3A00",
     "0000-01-01 00%3A00%3A00.000"},
    {"TIMESTAMP(3)", "-0001-05-06T01:02:03", "-0001-05-06T01%3A02%3A03",
     "000%2F-05-06 01%3A02%3A03.000"},
    {"TIMESTAMP(6)", "2023-11-14T22:13:20.123456", "2023-11-14T22%3A13%3A20.123456",
     "2023-11-14 22%3A13%3A20.123456"},
    {"TIMESTAMP(6)", "2023-11-14T22:13:20.123", "2023-11-14T22%3A13%3A20.123",
     "2023-11-14 22%3A13%3A20.123000"},
    {"TIMESTAMP(6)", "2023-11-14T22:13:00.000100", "2023-11-14T22%3A13%3A00.000100",
     "2023-11-14 22%3A13%3A00.000100"},
    {"TIMESTAMP(6)", "1969-12-31T23:59:00.5", "1969-12-31T23%3A59%3A00.500",
     "1969-12-31 23%3A59%3A00.500000"},
    {"TIMESTAMP(6) WITH LOCAL TIME ZONE", "2023-11-14T22:13:20.123456Z",
     "2023-11-14T22%3A13%3A20.123456", NULL},
    {"TIMESTAMP(6) WITH LOCAL TIME ZONE", "2023-11-14T22:13:00Z", "2023-11-14T22%3A13", NULL},
};

/* A table with these partition columns, and the partition as a manifest has it. */
struct table {
    struct tn_field fields[4];
    uint32_t index[4];
    struct tn_schema schema;
    struct tn_options options;
    struct tn_buf partition;
    unsigned char memory[512];
};

static void table_make(struct table *table, const struct partition_case *columns, uint32_t count,
                       bool legacy)
{
    static const char *const names[] = {"p", "q", "a=b", "s"};
    static unsigned char text_memory[256];
    struct tn_type types[4];
    struct tn_value values[4];
    struct tn_buf text;
    tn_buf_init(&text, text_memory, sizeof text_memory);
    tn_buf_init(&table->partition, table->memory, sizeof table->memory);
    for (uint32_t i = 0; i < count; i++) {
        tn_rc rc = tn_type_parse(tn_bytes_of(columns[i].type), &types[i], &setup.err);
        CHECK_OK(rc, setup.err);
        values[i] = (struct tn_value){.null = columns[i].value == NULL};
        if (columns[i].value) {
            rc = tn_value_parse(&types[i], TN_EPOCH_NONE, tn_bytes_of(columns[i].value), &text,
                                &values[i], &setup.err);
            CHECK_OK(rc, setup.err);
        }
        table->fields[i] = (struct tn_field){.id = (int32_t)i, .name = names[i], .type = types[i]};
        table->index[i] = i;
    }
    table->schema = (struct tn_schema){
        .fields = table->fields, .field_count = count, .partition_keys = {table->index, count}};
    table->options = (struct tn_options){.partition_default_name = DEFAULT_NAME,
                                         .path_directory = "",
                                         .data_file_prefix = "data-",
                                         .codec = TN_CODEC_ID_ZSTANDARD,
                                         .partition_legacy_name = legacy};
    tn_values_to_binary(types, values, count, &table->partition);
    CHECK(!table->partition.overflow);
}

static void check_partition(const struct partition_case *c, bool legacy, const char *expected)
{
    static struct table table;
    char whole[200];
    const char *name = NULL;
    table_make(&table, c, 1, legacy);
    tn_rc rc = tn_name_partition(&setup.arena, &table.schema, &table.options,
                                 tn_buf_bytes(&table.partition), &name, &setup.err);
    if (!expected) {
        CHECK(rc == TN_UNSUPPORTED);
        return;
    }
    CHECK_OK(rc, setup.err);
    (void)snprintf(whole, sizeof whole, "p=%s/", expected);
    if (strcmp(name, whole) != 0) {
        (void)fprintf(stderr, "%s %s: %s\n", c->type, c->value ? c->value : "NULL", name);
    }
    CHECK(strcmp(name, whole) == 0);
}

static void folders_of_partitions_are_those_of_paimon(void)
{
    setup_begin(&setup);
    for (size_t i = 0; i < COUNT(cases); i++) {
        check_partition(&cases[i], true, cases[i].legacy);
        check_partition(&cases[i], false, cases[i].new);
    }
    setup_end(&setup);
}

static void several_columns_make_several_folders(void)
{
    static const struct partition_case columns[] = {
        {"DATE", "2023-12-09", NULL, NULL}, {"INT", "-1", NULL, NULL}, {"STRING", "x", NULL, NULL}};
    static struct table table;
    const char *name = NULL;
    setup_begin(&setup);
    table_make(&table, columns, 3, true);
    size_t before = tn_arena_mark(&setup.arena);
    tn_rc rc = tn_name_partition(&setup.arena, &table.schema, &table.options,
                                 tn_buf_bytes(&table.partition), &name, &setup.err);
    CHECK_OK(rc, setup.err);
    CHECK(strcmp(name, "p=19700/q=-1/a%3Db=x/") == 0);
    CHECK(tn_arena_mark(&setup.arena) - before <= 64); /* no more is kept than the name */
    static const struct {
        int32_t bucket;
        const char *directory;
        const char *path;
    } buckets[] = {
        {3, "", "db.db/t/p=19700/q=-1/a%3Db=x/bucket-3/"},
        {0, "data/", "db.db/t/data/p=19700/q=-1/a%3Db=x/bucket-0/"},
        {-2, "", "db.db/t/p=19700/q=-1/a%3Db=x/bucket-postpone/"},
    };
    for (size_t i = 0; i < COUNT(buckets); i++) {
        table.options.path_directory = buckets[i].directory;
        rc = tn_name_bucket(&setup.arena, "db.db/t", &table.schema, &table.options,
                            tn_buf_bytes(&table.partition), buckets[i].bucket, &name, &setup.err);
        CHECK_OK(rc, setup.err);
        CHECK(strcmp(name, buckets[i].path) == 0);
    }
    rc = tn_name_bucket(&setup.arena, "r", &table.schema, &table.options,
                        tn_buf_bytes(&table.partition), -7, &name, &setup.err);
    CHECK(rc == TN_CORRUPT);
    setup_end(&setup);
}

static void tables_without_partitions_have_no_folder_for_them(void)
{
    static struct table table;
    const char *name = NULL;
    setup_begin(&setup);
    table_make(&table, NULL, 0, true);
    tn_rc rc = tn_name_bucket(&setup.arena, "db.db/t", &table.schema, &table.options,
                              tn_buf_bytes(&table.partition), 12, &name, &setup.err);
    CHECK_OK(rc, setup.err);
    CHECK(strcmp(name, "db.db/t/bucket-12/") == 0);
    setup_end(&setup);
}

/* What comes from a manifest is cut and changed; a zero byte in a value would end the path. */
static void broken_partitions_are_errors(void)
{
    static struct table table;
    static const struct partition_case column = {"STRING", "abcdefghijklmnop", NULL, NULL};
    setup_begin(&setup);
    table_make(&table, &column, 1, true);
    const char *name = NULL;
    for (size_t size = 0; size < table.partition.size; size++) {
        struct tn_bytes cut = {table.partition.data, size};
        tn_rc rc =
            tn_name_partition(&setup.arena, &table.schema, &table.options, cut, &name, &setup.err);
        CHECK(rc == TN_CORRUPT);
    }
    table.partition.data[table.partition.size - 6] = 0;
    tn_rc rc = tn_name_partition(&setup.arena, &table.schema, &table.options,
                                 tn_buf_bytes(&table.partition), &name, &setup.err);
    CHECK(rc == TN_INVALID);
    CHECK(tn_arena_mark(&setup.arena) == 0);
    setup_end(&setup);
}

static void a_full_arena_is_no_shorter_name(void)
{
    static struct table table;
    static const struct partition_case column = {"STRING", "abc/def", NULL, NULL};
    setup_begin(&setup);
    table_make(&table, &column, 1, true);
    tn_rc rc = TN_AGAIN;
    for (size_t size = 0; rc == TN_AGAIN; size += 8) {
        struct tn_arena small;
        const char *name = NULL;
        tn_arena_init(&small, setup.arena.base, size);
        rc = tn_name_bucket(&small, "db.db/t", &table.schema, &table.options,
                            tn_buf_bytes(&table.partition), 1, &name, &setup.err);
        CHECK(rc == TN_AGAIN || strcmp(name, "db.db/t/p=abc%2Fdef/bucket-1/") == 0);
    }
    CHECK_OK(rc, setup.err);
    setup_end(&setup);
}

static void tables_have_two_names(void)
{
    static const struct {
        const char *table;
        const char *root; /* NULL: INVALID */
    } tables[] = {
        {"db.t", "db.db/t"},  {"d.a.b", "d.db/a.b"}, {"a_1.B-2", "a_1.db/B-2"},
        {"t", NULL},          {".t", NULL},          {"db.", NULL},
        {"", NULL},           {"d/e.t", NULL},       {"db.t/u", NULL},
        {"db.t$files", NULL}, {"..t", NULL},         {"db...", NULL},
        {"db.a..b", NULL},    {"db.t\n", NULL},      {"db.\\t", NULL},
    };
    setup_begin(&setup);
    for (size_t i = 0; i < COUNT(tables); i++) {
        const char *root = NULL;
        tn_rc rc = tn_name_table_root(&setup.arena, tables[i].table, &root, &setup.err);
        CHECK(rc == (tables[i].root ? TN_OK : TN_INVALID));
        CHECK(!tables[i].root || strcmp(root, tables[i].root) == 0);
    }
    setup_end(&setup);
}

static void files_are_named_by_their_codec_only_when_asked(void)
{
    static struct table table;
    const char *name = NULL;
    setup_begin(&setup);
    table_make(&table, NULL, 0, true);
    tn_rc rc = tn_name_data_file(&setup.arena, &table.options, "uuid", 7, &name, &setup.err);
    CHECK_OK(rc, setup.err);
    CHECK(strcmp(name, "data-uuid-7.avro") == 0);
    table.options.suffix_compression = true;
    rc = tn_name_data_file(&setup.arena, &table.options, "uuid", 7, &name, &setup.err);
    CHECK_OK(rc, setup.err);
    CHECK(strcmp(name, "data-uuid-7.zst.avro") == 0);
    table.options.codec = TN_CODEC_ID_NULL;
    rc = tn_name_data_file(&setup.arena, &table.options, "uuid", 0, &name, &setup.err);
    CHECK_OK(rc, setup.err);
    CHECK(strcmp(name, "data-uuid-0.avro") == 0);
    setup_end(&setup);
}

static void formats_are_told_by_the_name(void)
{
    static const struct {
        const char *name;
        const char *text; /* NULL: avro */
    } files[] = {
        {"data-x-0.avro", NULL},
        {"data-x-0.zst.avro", NULL},
        {"data-x-0.avro.zst", NULL},
        {"data-x-0.parquet", "parquet files can't be read yet"},
        {"data-x-0.gz.orc", "orc files can't be read yet"},
        {"data-x-0.avro.parquet", "parquet files can't be read yet"},
        {"data-x-0.csv.gz", "csv files can't be read yet"},
        {"avro", "without a format"},
        {"zst", "without a format"},
        {"x.", "without a format"},
        {".zst", "without a format"},
        {"", "without a format"},
    };
    struct tn_err err;
    for (size_t i = 0; i < COUNT(files); i++) {
        tn_rc rc = tn_name_check_format(files[i].name, &err);
        CHECK(rc == (files[i].text ? TN_UNSUPPORTED : TN_OK));
        CHECK(!files[i].text || strstr(err.text, files[i].text));
    }
}

static void numbers_are_read_as_they_are_written(void)
{
    static const struct {
        const char *name;
        int64_t number;
    } names[] = {
        {"snapshot-17", 17},
        {"snapshot-0", 0},
        {"snapshot-9223372036854775807", INT64_MAX},
        {"snapshot-9223372036854775808", -1},
        {"snapshot-", -1},
        {"snapshot-1x", -1},
        {"snapshot--1", -1},
        {"snapshot-07", -1},
        {".snapshot-1.tmp", -1},
        {"schema-1", -1},
        {"LATEST", -1},
    };
    setup_begin(&setup);
    for (size_t i = 0; i < COUNT(names); i++) {
        CHECK(tn_name_number(names[i].name, "snapshot-") == names[i].number);
    }
    const char *path = tn_name_numbered(&setup.arena, "db.db/t", TN_DIR_SNAPSHOT, "snapshot-", 7);
    CHECK(strcmp(path, "db.db/t/snapshot/snapshot-7") == 0);
    path = tn_name_in(&setup.arena, "db.db/t", TN_DIR_MANIFEST, "m");
    CHECK(strcmp(path, "db.db/t/manifest/m") == 0);
    setup_end(&setup);
}

static const struct test tests[] = {
    TEST(folders_of_partitions_are_those_of_paimon),
    TEST(several_columns_make_several_folders),
    TEST(tables_without_partitions_have_no_folder_for_them),
    TEST(broken_partitions_are_errors),
    TEST(a_full_arena_is_no_shorter_name),
    TEST(tables_have_two_names),
    TEST(files_are_named_by_their_codec_only_when_asked),
    TEST(formats_are_told_by_the_name),
    TEST(numbers_are_read_as_they_are_written),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
