/* data: files of random tables read back as they were written, whole, in part, from any position
 * and from any key; their metadata says what is in them; faults and changed bytes are errors. */
#include "file/data_schema.h"
#include "file/table.h"

static struct setup setup;
static struct table table;
static struct tn_data_reader reader;

static void open_table(int64_t size)
{
    tn_rc rc = tn_data_reader_open(&reader, table_path, size, 2, &table.schema, &table.read,
                                   &setup.worker, &setup.err);
    CHECK_OK(rc, setup.err);
}

static bool same_row(struct tn_row a, struct tn_row b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

static void check_kv(const struct tn_kv *kv, uint32_t index)
{
    const struct tn_kv *expected = &table.rows[index];
    CHECK(same_row(kv->row, expected->row));
    CHECK(kv->sequence == expected->sequence);
    CHECK(kv->kind == expected->kind);
    CHECK(kv->prefix == expected->prefix);
    CHECK(kv->level == 2);
}

static void check_end(void)
{
    struct tn_kv kv;
    for (int i = 0; i < 2; i++) {
        tn_rc rc = tn_iter_next(&reader.iter, &kv, &setup.err);
        CHECK(rc == TN_ABSENT);
    }
}

static void check_rows_from(uint32_t first)
{
    for (uint32_t i = first; i < table.row_count; i++) {
        struct tn_kv kv;
        tn_rc rc = tn_iter_next(&reader.iter, &kv, &setup.err);
        CHECK_OK(rc, setup.err);
        check_kv(&kv, i);
    }
    check_end();
}

static void check_binary_key(struct tn_bytes key, uint32_t row)
{
    static unsigned char memory[2 * TABLE_ROW_SIZE_MAX];
    struct tn_buf buf;
    tn_buf_init(&buf, memory, sizeof memory);
    tn_row_to_binary(&table.layout, table.read.keys, table.rows[row].row, true, &buf);
    CHECK(tn_bytes_equal(key, tn_buf_bytes(&buf)));
}

/* By one pass over all rows. */
static void check_meta(const struct tn_file_meta *meta)
{
    int64_t deletes = 0;
    int64_t min = INT64_MAX;
    int64_t max = INT64_MIN;
    for (uint32_t i = 0; i < table.row_count; i++) {
        deletes += tn_row_kind_retracts(table.rows[i].kind);
        min = table.rows[i].sequence < min ? table.rows[i].sequence : min;
        max = table.rows[i].sequence > max ? table.rows[i].sequence : max;
    }
    uint64_t size = 0;
    tn_rc rc = setup.disk.io.vtable->stat(&setup.disk.io, table_path, &size, &setup.err);
    CHECK_OK(rc, setup.err);
    CHECK((uint64_t)meta->file_size == size);
    CHECK(meta->row_count == table.row_count);
    CHECK(meta->delete_row_count.present && meta->delete_row_count.value == deletes);
    CHECK(meta->min_sequence == min && meta->max_sequence == max);
    CHECK(strcmp(meta->file_name, "data-0.avro") == 0);
    CHECK(meta->schema_id == 4 && meta->level == 2 && meta->file_source.value == 1);
    CHECK(meta->extra_files.present && meta->extra_files.count == 0);
    CHECK(meta->creation_time_ms.present && !meta->embedded_index.data && !meta->external_path);
    CHECK(!meta->first_row_id.present && !meta->write_cols.present);
    check_binary_key(meta->min_key, 0);
    check_binary_key(meta->max_key, table.row_count - 1);
}

/* Each value lies in its bounds, and null counts are exact. `columns` are what the statistics
 * cover. */
static void check_stats(const struct tn_stats *stats, struct tn_columns columns)
{
    static struct tn_type types[TABLE_COLUMNS_MAX];
    static struct tn_value min[TABLE_COLUMNS_MAX];
    static struct tn_value max[TABLE_COLUMNS_MAX];
    for (uint32_t i = 0; i < columns.count; i++) {
        types[i] = table.types[columns.index[i]];
    }
    tn_rc rc = tn_binary_to_values(stats->min, types, columns.count, min, &setup.err);
    CHECK_OK(rc, setup.err);
    rc = tn_binary_to_values(stats->max, types, columns.count, max, &setup.err);
    CHECK_OK(rc, setup.err);
    CHECK(stats->null_count_count == columns.count);
    for (uint32_t i = 0; i < columns.count; i++) {
        int64_t nulls = 0;
        bool bounded = !min[i].null;
        CHECK(min[i].null == max[i].null);
        for (uint32_t k = 0; k < table.row_count; k++) {
            struct tn_value value;
            tn_row_get(&table.layout, table.rows[k].row, columns.index[i], &value);
            nulls += value.null;
            if (bounded && !value.null) {
                CHECK(tn_value_compare(&types[i], &min[i], &value) <= 0);
                CHECK(tn_value_compare(&types[i], &max[i], &value) >= 0);
            }
        }
        bool counted = table.modes[columns.index[i]] != TN_STATS_NONE;
        CHECK(stats->null_counts[i] == (counted ? nulls : -1));
        CHECK(!bounded || table.modes[columns.index[i]] > TN_STATS_COUNTS);
    }
}

static void check_all_stats(const struct tn_file_meta *meta)
{
    uint32_t index[TABLE_COLUMNS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < table.layout.column_count; i++) {
        if (!table.options.stats_dense || table.modes[i] != TN_STATS_NONE) {
            index[count] = i;
            CHECK(!meta->value_stats_cols.present ||
                  strcmp(meta->value_stats_cols.items[count], table.names[i]) == 0);
            count++;
        }
    }
    CHECK(meta->value_stats_cols.present == (count < table.layout.column_count));
    check_stats(&meta->value_stats, (struct tn_columns){index, count});
    check_stats(&meta->key_stats, table.read.keys);
}

static void draw_table(uint64_t seed)
{
    uint64_t state = seed;
    setup_begin(&setup);
    table_random(&setup, &table, &state);
    uint32_t count = random_below(&state, 4) == 0 ? 1 : 1 + random_below(&state, 300);
    table_rows(&setup, &table, count, &state);
}

static void files_read_back_as_they_were_written(void)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        static struct tn_file_meta meta;
        static const uint32_t block_sizes[] = {1, 100, 2000, 65536};
        uint64_t state = seed;
        draw_table(seed);
        uint32_t rest = random_below(&state, 2) ? 1 + random_below(&state, 100) : 0;
        tn_rc rc = table_write(&setup, &table, block_sizes[random_below(&state, 4)], rest, &meta);
        CHECK_OK(rc, setup.err);
        check_meta(&meta);
        check_all_stats(&meta);
        open_table(meta.file_size);
        check_rows_from(0);
        tn_iter_close(&reader.iter);
        setup_end(&setup);
    }
}

static void a_reader_goes_on_where_another_one_told(void)
{
    for (uint64_t seed = 1000; seed < 1060; seed++) {
        static struct tn_file_meta meta;
        draw_table(seed);
        tn_rc rc = table_write(&setup, &table, 500, 0, &meta);
        CHECK_OK(rc, setup.err);
        for (uint32_t i = 0; i <= table.row_count; i += 1 + i / 3) {
            size_t mark = tn_arena_mark(&setup.worker.arena);
            open_table(meta.file_size);
            for (uint32_t k = 0; k < i; k++) {
                struct tn_kv kv;
                rc = tn_iter_next(&reader.iter, &kv, &setup.err);
                CHECK_OK(rc, setup.err);
            }
            struct tn_data_position position = tn_data_reader_tell(&reader);
            tn_iter_close(&reader.iter);
            open_table(meta.file_size);
            rc = tn_data_reader_resume(&reader, position, &setup.err);
            CHECK_OK(rc, setup.err);
            check_rows_from(i);
            tn_iter_close(&reader.iter);
            tn_arena_reset(&setup.worker.arena, mark);
        }
        setup_end(&setup);
    }
}

static void key_of(uint32_t row, struct tn_value *key)
{
    for (uint32_t i = 0; i < table.read.keys.count; i++) {
        tn_row_get(&table.layout, table.rows[row].row, table.read.keys.index[i], &key[i]);
    }
}

/* Keys of the file itself, and keys that it need not have. */
static void seek_finds_the_first_row_not_below_the_key(void)
{
    for (uint64_t seed = 2000; seed < 2080; seed++) {
        static struct tn_file_meta meta;
        uint64_t state = seed;
        draw_table(seed);
        if (table.read.keys.count == 0) {
            setup_end(&setup);
            continue;
        }
        tn_rc rc = table_write(&setup, &table, 300, 0, &meta);
        CHECK_OK(rc, setup.err);
        open_table(meta.file_size);
        for (uint32_t i = 0; i < 40; i++) {
            struct tn_value key[4];
            uint32_t found = random_below(&state, table.row_count);
            key_of(found, key);
            if (i % 2 == 0) {
                table_value(&setup, &table.types[table.keys[0]], &state, &key[0]);
                for (found = 0; found < table.row_count; found++) {
                    if (tn_row_compare_values(&table.layout, table.read.keys, table.rows[found].row,
                                              key) >= 0) {
                        break;
                    }
                }
            }
            rc = reader.iter.vtable->seek(&reader.iter, key, &setup.err);
            CHECK_OK(rc, setup.err);
            struct tn_data_position position = tn_data_reader_tell(&reader);
            check_rows_from(found);
            rc = tn_data_reader_resume(&reader, position, &setup.err);
            CHECK_OK(rc, setup.err);
            check_rows_from(found);
        }
        tn_iter_close(&reader.iter);
        setup_end(&setup);
    }
}

/* More blocks than seek keeps offsets of. */
static void seek_works_in_files_of_many_blocks(void)
{
    static struct tn_file_meta meta;
    setup_begin(&setup);
    table = (struct table){.options = {.codec = TN_CODEC_ID_NULL}};
    table.fields[0] = (struct tn_field){.id = 1, .name = "k"};
    table_type(&setup, "INT NOT NULL", &table.fields[0].type);
    table_finish(&setup, &table, 1, 1);
    uint64_t state = 1;
    table_rows(&setup, &table, 3000, &state);
    tn_rc rc = table_write(&setup, &table, 1, 0, &meta);
    CHECK_OK(rc, setup.err);
    open_table(meta.file_size);
    for (uint32_t i = 0; i < table.row_count; i += 97) {
        struct tn_value key;
        struct tn_kv kv;
        key_of(i, &key);
        rc = reader.iter.vtable->seek(&reader.iter, &key, &setup.err);
        CHECK_OK(rc, setup.err);
        rc = tn_iter_next(&reader.iter, &kv, &setup.err);
        CHECK_OK(rc, setup.err);
        check_kv(&kv, i);
    }
    tn_iter_close(&reader.iter);
    setup_end(&setup);
}

/* ---- keys alone ---- */

/* Passes over the rows below one that is still to come; `checked` as below. */
static tn_rc pass_some(uint64_t *state, bool checked, uint32_t *rows)
{
    uint32_t from = checked ? *rows : 0;
    uint64_t passed = 0;
    if (from >= table.row_count) {
        return TN_OK;
    }
    uint32_t to = from + random_below(state, table.row_count - from);
    tn_rc rc = tn_data_reader_pass_below(&reader, table.rows[to].row, &passed, &setup.err);
    CHECK(!checked || (rc == TN_OK && passed == to - from));
    *rows += (uint32_t)passed;
    return rc;
}

/* Looks at each key, once or twice, and passes its row or takes it; sometimes several are passed.
 * `checked`: they are those that were written. */
static tn_rc skim(uint64_t *state, bool checked, uint32_t *rows)
{
    tn_rc rc = TN_OK;
    for (*rows = 0; rc == TN_OK; ++*rows) {
        struct tn_row key;
        struct tn_kv kv;
        if (random_below(state, 5) == 0) {
            rc = pass_some(state, checked, rows);
        }
        for (uint32_t i = random_below(state, 2); rc == TN_OK && i < 2; i++) {
            rc = tn_data_reader_key(&reader, &key, &setup.err);
        }
        if (rc == TN_OK && checked) {
            CHECK(*rows < table.row_count &&
                  tn_row_compare(&table.layout, table.read.keys, key, table.rows[*rows].row) == 0);
        }
        if (rc == TN_OK && random_below(state, 3) > 0) {
            rc = tn_data_reader_pass(&reader, &setup.err);
        } else if (rc == TN_OK) {
            rc = tn_iter_next(&reader.iter, &kv, &setup.err);
            CHECK(rc != TN_OK || tn_row_valid(&table.layout, kv.row));
            if (rc == TN_OK && checked) {
                check_kv(&kv, *rows);
            }
        }
    }
    --*rows;
    return rc;
}

static void rows_are_passed_by_their_keys(void)
{
    for (uint64_t seed = 2500; seed < 2700; seed++) {
        static struct tn_file_meta meta;
        uint64_t state = seed;
        uint32_t rows = 0;
        draw_table(seed);
        tn_rc rc = table_write(&setup, &table, 400, 0, &meta);
        CHECK_OK(rc, setup.err);
        if (table.read.keys.count > 0) {
            open_table(meta.file_size);
            rc = skim(&state, true, &rows);
            CHECK(rc == TN_ABSENT && rows == table.row_count);
            check_end();
            tn_iter_close(&reader.iter);
        }
        setup_end(&setup);
    }
}

/* ---- other columns than the file's ---- */

static void parts_of_the_columns_come_in_any_order(void)
{
    for (uint64_t seed = 3000; seed < 3100; seed++) {
        static struct tn_file_meta meta;
        uint64_t state = seed;
        draw_table(seed);
        tn_rc rc = table_write(&setup, &table, 700, 0, &meta);
        CHECK_OK(rc, setup.err);
        const char *names[TABLE_COLUMNS_MAX];
        struct tn_type types[TABLE_COLUMNS_MAX];
        int32_t ids[TABLE_COLUMNS_MAX];
        uint32_t from[TABLE_COLUMNS_MAX];
        uint32_t count = 0;
        uint32_t columns = table.layout.column_count;
        uint32_t step = 1 + 2 * random_below(&state, 20); /* may leave some out, may come twice */
        bool seen[TABLE_COLUMNS_MAX] = {false};
        for (uint32_t i = 0, at = random_below(&state, columns); i < columns; i++) {
            at = (at + step) % columns;
            if (!seen[at] && random_below(&state, 4) > 0) {
                seen[at] = true;
                from[count] = at;
                names[count] = "renamed";
                types[count] = table.types[at];
                ids[count++] = table.ids[at];
            }
        }
        from[count] = UINT32_MAX; /* a column that was added later */
        names[count] = "added";
        table_type(&setup, "STRING", &types[count]);
        ids[count++] = 9999;
        struct tn_row_layout layout;
        rc = tn_row_layout_init(&layout, names, types, count, &setup.arena, &setup.err);
        CHECK_OK(rc, setup.err);
        struct tn_read_spec read = {&layout, ids, {NULL, 0}};
        rc = tn_data_reader_open(&reader, table_path, meta.file_size, 2, &table.schema, &read,
                                 &setup.worker, &setup.err);
        CHECK_OK(rc, setup.err);
        for (uint32_t i = 0; i < table.row_count; i++) {
            struct tn_kv kv;
            rc = tn_iter_next(&reader.iter, &kv, &setup.err);
            CHECK_OK(rc, setup.err);
            CHECK(tn_row_valid(&layout, kv.row));
            CHECK(kv.sequence == i && kv.kind == TN_ROW_INSERT);
            for (uint32_t c = 0; c < count; c++) {
                struct tn_value value;
                struct tn_value expected = {.null = true};
                tn_row_get(&layout, kv.row, c, &value);
                if (from[c] != UINT32_MAX) {
                    tn_row_get(&table.layout, table.rows[i].row, from[c], &expected);
                }
                CHECK(value.null == expected.null);
                CHECK(value.null || tn_value_compare(&types[c], &value, &expected) == 0);
            }
        }
        check_end();
        tn_iter_close(&reader.iter);
        setup_end(&setup);
    }
}

struct cast_case {
    const char *from;
    const char *to;
    const char *value;    /* as text of `from` */
    const char *expected; /* as text of `to`; NULL: the value is NULL; '!': what the error says */
};

static const struct cast_case casts[] = {
    {"TINYINT", "BIGINT", "-128", "-128"},
    {"FLOAT", "DOUBLE", "0.1", "0.10000000149011612"},
    {"CHAR(3)", "STRING", "abc", "abc"},
    {"BINARY(2)", "BYTES", "00ff", "00ff"},
    {"DECIMAL(9, 2)", "DECIMAL(38, 2)", "-1234567.89", "-1234567.89"},
    {"TIMESTAMP(3)", "TIMESTAMP(6)", "1969-12-31T23:59:59.999", "1969-12-31T23:59:59.999"},
    {"INT", "STRING", "-12", "-12"},
    {"INT", "BOOLEAN", "-12", "true"},
    {"BIGINT", "TINYINT", "300", "44"},
    {"BIGINT", "SMALLINT", "300", "300"},
    {"INT", "DOUBLE", "1", "1.0"},
    {"DOUBLE", "FLOAT", "0.1", "0.1"},
    {"DOUBLE", "DECIMAL(5, 2)", "2.675", "2.68"},
    {"DOUBLE", "DECIMAL(5, 2)", "1000", NULL},
    {"DECIMAL(9, 2)", "DECIMAL(19, 1)", "0.05", "0.1"},
    {"CHAR(3)", "CHAR(5)", "ab", "ab   "},
    {"INT", "CHAR(20)", "7", "7                   "},
    {"STRING", "VARCHAR(4)", "abcde", "abcd"},
    {"STRING", "TIMESTAMP(6)", "2020-01-02 03:04:05.6789", "2020-01-02T03:04:05.6789"},
    {"BINARY(2)", "BINARY(3)", "00ff", "00ff00"},
    {"STRING", "BYTES", "abc", "616263"},
    {"TIMESTAMP(6)", "TIMESTAMP(3)", "2024-01-01T00:00:00.0009", "2024-01-01T00:00:00"},
    {"TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", "2024-01-01T00:00:00", "2024-01-01T00:00:00Z"},
    {"DATE", "TIMESTAMP(3)", "2024-01-01", "2024-01-01T00:00:00"},
    {"STRING", "INT", "abc", "!row 0: column 'x': 'abc' of an older STRING is no INT"},
    {"DOUBLE", "DECIMAL(5, 2)", "NaN", "!column 'x': 'NaN' of an older DOUBLE is no DECIMAL(5, 2)"},
    {"TIME(0)", "TIME(3)", "12:00:00", "!column 'x': there is no cast from TIME(0)"},
    {"DATE", "VARCHAR(20)", "2024-01-01", "!column 'x': there is no cast from DATE"},
};

static void parse_value(const struct tn_type *type, const char *text, struct tn_value *value)
{
    static unsigned char memory[256];
    struct tn_buf scratch;
    tn_buf_init(&scratch, memory, sizeof memory);
    tn_rc rc = tn_value_parse(type, TN_EPOCH_NONE, tn_bytes_of(text), &scratch, value, &setup.err);
    CHECK_OK(rc, setup.err);
}

/* One row of one column. */
static void write_one(const struct cast_case *c, struct tn_file_meta *meta)
{
    struct tn_value value;
    table = (struct table){.options = {.codec = TN_CODEC_ID_ZSTANDARD}};
    table.fields[0] = (struct tn_field){.id = 7, .name = "x"};
    table_type(&setup, c->from, &table.fields[0].type);
    table_finish(&setup, &table, 1, 0);
    parse_value(&table.types[0], c->value, &value);
    static unsigned char row[256];
    struct tn_kv kv = {.row = {row, tn_row_packed_size(&table.layout, &value)}};
    (void)tn_row_pack(&table.layout, &value, row);
    table.rows = &kv;
    table.row_count = 1;
    tn_rc rc = table_write(&setup, &table, 100, 0, meta);
    CHECK_OK(rc, setup.err);
}

/* Opens the file of one row with the column in its new type, and reads the row. */
static tn_rc read_one(const struct cast_case *c, int64_t file_size, struct tn_type *type,
                      struct tn_value *value)
{
    static struct tn_row_layout layout;
    static struct tn_read_spec read;
    static const char *name = "x";
    table_type(&setup, c->to, type);
    tn_rc rc = tn_row_layout_init(&layout, &name, type, 1, &setup.arena, &setup.err);
    CHECK_OK(rc, setup.err);
    read = (struct tn_read_spec){&layout, table.ids, {NULL, 0}};
    rc = tn_data_reader_open(&reader, table_path, file_size, 2, &table.schema, &read, &setup.worker,
                             &setup.err);
    if (rc != TN_OK) {
        CHECK(rc == TN_UNSUPPORTED);
        return rc;
    }
    struct tn_kv kv;
    rc = tn_iter_next(&reader.iter, &kv, &setup.err);
    if (rc == TN_OK) {
        CHECK(tn_row_valid(&layout, kv.row));
        tn_row_get(&layout, kv.row, 0, value);
    } else {
        CHECK(rc == TN_CORRUPT);
    }
    tn_iter_close(&reader.iter);
    return rc;
}

/* What each pair of types gives is in cast_test; here are all kinds of slots. */
static void a_column_of_an_older_type_is_cast(void)
{
    for (size_t i = 0; i < COUNT(casts); i++) {
        static struct tn_file_meta meta;
        const struct cast_case *c = &casts[i];
        struct tn_type type;
        struct tn_value value;
        struct tn_value expected = {.null = true};
        setup_begin(&setup);
        write_one(c, &meta);
        tn_rc rc = read_one(c, meta.file_size, &type, &value);
        if (c->expected && c->expected[0] == '!') {
            CHECK(rc != TN_OK);
            CHECK(strstr(setup.err.text, table_path));
            CHECK(strstr(setup.err.text, c->expected + 1));
        } else {
            CHECK_OK(rc, setup.err);
            if (c->expected) {
                parse_value(&type, c->expected, &expected);
            }
            CHECK(tn_value_compare(&type, &value, &expected) == 0);
        }
        setup_end(&setup);
    }
}

/* For a fold, which may pass over it. */
static void a_reader_can_keep_a_row_that_cannot_be_cast(void)
{
    static const struct cast_case c = {"STRING", "INT", "abc", NULL};
    static struct tn_file_meta meta;
    struct tn_type type;
    struct tn_row_layout layout;
    struct tn_kv kv;
    const char *name = "x";
    setup_begin(&setup);
    write_one(&c, &meta);
    table_type(&setup, c.to, &type);
    tn_rc rc = tn_row_layout_init(&layout, &name, &type, 1, &setup.arena, &setup.err);
    CHECK_OK(rc, setup.err);
    struct tn_read_spec read = {&layout, table.ids, {NULL, 0}};
    rc = tn_data_reader_open(&reader, table_path, meta.file_size, 2, &table.schema, &read,
                             &setup.worker, &setup.err);
    CHECK_OK(rc, setup.err);
    reader.keep_bad = true;
    rc = tn_iter_next(&reader.iter, &kv, &setup.err);
    CHECK_OK(rc, setup.err);
    CHECK(tn_row_null(kv.row, 0));
    CHECK(strstr(kv.bad, table_path) && strstr(kv.bad, "'abc' of an older STRING is no INT"));
    rc = tn_iter_next(&reader.iter, &kv, &setup.err);
    CHECK(rc == TN_ABSENT);
    tn_iter_close(&reader.iter);
    setup_end(&setup);
}

/* ---- faults ---- */

static bool file_exists(void)
{
    uint64_t size = 0;
    return setup.disk.io.vtable->stat(&setup.disk.io, table_path, &size, &setup.err) == TN_OK;
}

static void a_writer_that_failed_leaves_no_file(void)
{
    tn_rc rc = TN_IO;
    for (uint64_t call = 1; rc != TN_OK; call++) {
        static struct tn_file_meta meta;
        draw_table(77);
        sim_disk_fail_call(&setup.disk, call, TN_IO);
        rc = table_write(&setup, &table, 300, 20, &meta);
        CHECK(rc == TN_OK || rc == TN_IO);
        sim_disk_fail_call(&setup.disk, 0, TN_IO);
        CHECK(file_exists() == (rc == TN_OK));
        CHECK(call < 1000);
        setup_end(&setup);
    }
}

static void a_reader_reports_failed_reads(void)
{
    static struct tn_file_meta meta;
    draw_table(77);
    tn_rc rc = table_write(&setup, &table, 300, 20, &meta);
    CHECK_OK(rc, setup.err);
    uint64_t start = setup.disk.calls;
    uint64_t failed = 0;
    for (uint64_t call = 1; call < 1000; call++) {
        size_t mark = tn_arena_mark(&setup.worker.arena);
        sim_disk_fail_call(&setup.disk, setup.disk.calls + call, TN_IO);
        rc = tn_data_reader_open(&reader, table_path, meta.file_size, 2, &table.schema, &table.read,
                                 &setup.worker, &setup.err);
        struct tn_kv kv;
        bool open = rc == TN_OK;
        while (rc == TN_OK) {
            rc = tn_iter_next(&reader.iter, &kv, &setup.err);
        }
        if (open) {
            tn_iter_close(&reader.iter);
        }
        tn_arena_reset(&setup.worker.arena, mark);
        CHECK(rc == TN_IO || rc == TN_ABSENT);
        failed += rc == TN_IO;
        if (rc == TN_ABSENT) {
            break;
        }
    }
    CHECK(failed >= 2 && setup.disk.calls > start);
    setup_end(&setup);
}

/* The whole file as it is on the disk. */
static struct tn_bytes file_bytes(void)
{
    struct tn_bytes bytes;
    tn_rc rc = tn_io_read_all(&setup.disk.io, table_path, SETUP_FILE_MAX, &setup.arena, &bytes,
                              &setup.err);
    CHECK_OK(rc, setup.err);
    return bytes;
}

static tn_rc open_bytes(struct tn_bytes bytes, int64_t size)
{
    static const char path[] = "other";
    struct tn_io *io = &setup.disk.io;
    (void)io->vtable->unlink(io, path, &setup.err);
    tn_rc rc = tn_io_write_new(io, path, bytes, &setup.err);
    CHECK_OK(rc, setup.err);
    return tn_data_reader_open(&reader, path, size, 2, &table.schema, &table.read, &setup.worker,
                               &setup.err);
}

/* Reads another file to its end. */
static tn_rc read_bytes(struct tn_bytes bytes, int64_t size, uint32_t *rows)
{
    size_t mark = tn_arena_mark(&setup.worker.arena);
    tn_rc rc = open_bytes(bytes, size);
    *rows = 0;
    if (rc == TN_OK) {
        struct tn_kv kv;
        for (; rc == TN_OK; ++*rows) {
            rc = tn_iter_next(&reader.iter, &kv, &setup.err);
            CHECK(rc != TN_OK || tn_row_valid(&table.layout, kv.row));
        }
        --*rows;
        tn_iter_close(&reader.iter);
    }
    tn_arena_reset(&setup.worker.arena, mark);
    return rc;
}

/* The same by its keys. */
static tn_rc skim_bytes(struct tn_bytes bytes, int64_t size, uint64_t *state)
{
    size_t mark = tn_arena_mark(&setup.worker.arena);
    tn_rc rc = open_bytes(bytes, size);
    uint32_t rows = 0;
    if (rc == TN_OK) {
        rc = table.read.keys.count > 0 ? skim(state, false, &rows) : TN_ABSENT;
        tn_iter_close(&reader.iter);
    }
    tn_arena_reset(&setup.worker.arena, mark);
    return rc;
}

static void files_that_were_cut_are_corrupt(void)
{
    for (uint64_t seed = 4000; seed < 4006; seed++) {
        static struct tn_file_meta meta;
        draw_table(seed);
        tn_rc rc = table_write(&setup, &table, 400, 0, &meta);
        CHECK_OK(rc, setup.err);
        struct tn_bytes bytes = file_bytes();
        for (size_t size = 0; size < bytes.size; size += 1 + size / 50) {
            uint32_t rows = 0;
            struct tn_bytes cut = {bytes.data, size};
            rc = read_bytes(cut, meta.file_size, &rows);
            CHECK(rc == TN_CORRUPT); /* the manifest knows better */
            rc = read_bytes(cut, (int64_t)size, &rows);
            CHECK(rc == TN_CORRUPT || (rc == TN_ABSENT && rows < table.row_count));
            CHECK(rc != TN_CORRUPT || (strstr(setup.err.text, "other") &&
                                       (strstr(setup.err.text, "byte") || size < 1000)));
        }
        setup_end(&setup);
    }
}

static void blocks_behind_the_manifests_size_are_not_read(void)
{
    static struct tn_file_meta meta;
    draw_table(77);
    tn_rc rc = table_write(&setup, &table, 400, 0, &meta);
    CHECK_OK(rc, setup.err);
    struct tn_bytes bytes = file_bytes();
    unsigned char *longer = tn_arena_take(&setup.arena, bytes.size + 50);
    memcpy(longer, bytes.data, bytes.size);
    uint32_t rows = 0;
    rc = read_bytes((struct tn_bytes){longer, bytes.size + 50}, meta.file_size, &rows);
    CHECK(rc == TN_ABSENT && rows == table.row_count);
    rc = read_bytes((struct tn_bytes){longer, bytes.size + 50}, meta.file_size + 50, &rows);
    CHECK(rc == TN_CORRUPT);
    setup_end(&setup);
}

static void changed_bytes_are_errors_or_other_rows(void)
{
    for (uint64_t seed = 5000; seed < 5020; seed++) {
        static struct tn_file_meta meta;
        uint64_t state = seed;
        draw_table(seed);
        tn_rc rc = table_write(&setup, &table, 400, 0, &meta);
        CHECK_OK(rc, setup.err);
        struct tn_bytes bytes = file_bytes();
        unsigned char *changed = tn_arena_take(&setup.arena, bytes.size);
        for (uint32_t i = 0; i < 150; i++) {
            memcpy(changed, bytes.data, bytes.size);
            uint32_t from = i % 3 == 0 ? 0 : (uint32_t)bytes.size / 3; /* not always the schema */
            for (uint32_t k = random_below(&state, 3); k < 3; k++) {
                changed[from + random_below(&state, (uint32_t)bytes.size - from)] =
                    (unsigned char)random_next(&state);
            }
            uint32_t rows = 0;
            rc = read_bytes((struct tn_bytes){changed, bytes.size}, meta.file_size, &rows);
            CHECK(rc == TN_ABSENT || rc == TN_CORRUPT || rc == TN_UNSUPPORTED || rc == TN_AGAIN);
            tn_rc skimmed =
                skim_bytes((struct tn_bytes){changed, bytes.size}, meta.file_size, &state);
            bool known = skimmed == TN_ABSENT || skimmed == TN_CORRUPT ||
                         skimmed == TN_UNSUPPORTED || skimmed == TN_AGAIN;
            CHECK(skimmed == rc || (rc == TN_CORRUPT && known)); /* it may have gone further */
        }
        setup_end(&setup);
    }
}

/* One block without compression: its row count, its size, a byte of its mark are changed alone. */
static void what_a_block_says_of_itself_is_checked(void)
{
    static struct tn_file_meta meta;
    setup_begin(&setup);
    table = (struct table){.options = {.codec = TN_CODEC_ID_NULL}};
    table.fields[0] = (struct tn_field){.id = 1, .name = "k"};
    table_type(&setup, "BIGINT NOT NULL", &table.fields[0].type);
    table_finish(&setup, &table, 1, 1);
    uint64_t state = 1;
    table_rows(&setup, &table, 40, &state);
    tn_rc rc = table_write(&setup, &table, 65536, 0, &meta);
    CHECK_OK(rc, setup.err);
    struct tn_bytes bytes = file_bytes();
    struct tn_avro_header header;
    rc = tn_avro_header_decode(bytes, &header, &setup.err);
    CHECK_OK(rc, setup.err);
    static const struct {
        bool from_end;
        size_t offset;
        int change;
        const char *text; /* NULL: no error */
    } changes[] = {
        {false, 0, 0, NULL},
        {false, 0, 2, "of this block is none"},  /* one row more */
        {false, 0, -2, "of this block is none"}, /* one less: bytes are left */
        {false, 0, -1, "no block begins here"},  /* a negative count */
        {false, 1, 2, "goes on behind the end"},
        {false, 1, -2, "doesn't end with the file's mark"},
        {true, 1, 1, "doesn't end with the file's mark"},
        {true, 16, 1, "doesn't end with the file's mark"},
    };
    for (size_t i = 0; i < COUNT(changes); i++) {
        unsigned char *changed = tn_arena_take(&setup.arena, bytes.size);
        size_t start =
            changes[i].from_end ? bytes.size - changes[i].offset : header.size + changes[i].offset;
        memcpy(changed, bytes.data, bytes.size);
        changed[start] = (unsigned char)(changed[start] + changes[i].change);
        uint32_t rows = 0;
        rc = read_bytes((struct tn_bytes){changed, bytes.size}, meta.file_size, &rows);
        CHECK(rc == (changes[i].text ? TN_CORRUPT : TN_ABSENT));
        CHECK(!changes[i].text || strstr(setup.err.text, changes[i].text));
    }
    setup_end(&setup);
}

/* ---- what a writer refuses ---- */

static void rows_that_avro_can_not_hold_are_refused_and_nothing_is_added(void)
{
    static struct tn_file_meta meta;
    static struct tn_data_writer writer;
    setup_begin(&setup);
    table = (struct table){.options = {.codec = TN_CODEC_ID_NULL}};
    table.fields[0] = (struct tn_field){.id = 1, .name = "k"};
    table.fields[1] = (struct tn_field){.id = 2, .name = "t"};
    table_type(&setup, "INT NOT NULL", &table.fields[0].type);
    table_type(&setup, "TIMESTAMP(6)", &table.fields[1].type);
    table_finish(&setup, &table, 2, 1);
    struct tn_data_writer_spec spec;
    table_spec(&table, 100, &spec);
    tn_rc rc = tn_data_writer_begin(&writer, &spec, &setup.worker, 64, &setup.arena, &setup.err);
    CHECK_OK(rc, setup.err);
    unsigned char row[64];
    struct tn_value values[2] = {{.as.i64 = 1}, {.as.i64 = INT64_MAX / 1000}};
    struct tn_kv kv = {.row = {row, tn_row_pack(&table.layout, values, row)}};
    rc = tn_data_writer_add(&writer, &kv, &setup.err);
    CHECK(rc == TN_INVALID && strstr(setup.err.text, "'t'"));
    values[0].null = true;
    values[1].null = true;
    (void)tn_row_pack(&table.layout, values, row);
    rc = tn_data_writer_add(&writer, &kv, &setup.err);
    CHECK(rc == TN_INVALID && strstr(setup.err.text, "'k'"));
    kv.row.size = 65;
    rc = tn_data_writer_add(&writer, &kv, &setup.err);
    CHECK(rc == TN_INVALID);
    values[0].null = false;
    kv.row.size = tn_row_pack(&table.layout, values, row);
    rc = tn_data_writer_add(&writer, &kv, &setup.err);
    CHECK_OK(rc, setup.err);
    rc = tn_data_writer_finish(&writer, &setup.arena, &meta, &setup.err);
    CHECK_OK(rc, setup.err);
    CHECK(meta.row_count == 1);
    setup_end(&setup);
}

static void columns_that_avro_can_not_hold_are_refused_by_name(void)
{
    static const struct {
        const char *name;
        const char *type;
        bool fine;
    } columns[] = {
        {"a_1", "INT", true},         {"_", "INT", true},      {"1a", "INT", false},
        {"a-b", "INT", false},        {"", "INT", false},      {"\xc3\xa9", "INT", false},
        {"x", "TIMESTAMP(9)", false}, {"x", "TIME(6)", false}, {"x", "TIMESTAMP(6)", true},
        {"x", "ARRAY", false},
    };
    for (size_t i = 0; i < COUNT(columns); i++) {
        setup_begin(&setup);
        struct tn_bytes text;
        table = (struct table){0};
        table.fields[0] = (struct tn_field){.id = 1, .name = columns[i].name};
        table.fields[0].type.kind = TN_TYPE_ARRAY;
        if (strcmp(columns[i].type, "ARRAY") != 0) {
            table_type(&setup, columns[i].type, &table.fields[0].type);
        }
        table.schema = (struct tn_schema){.fields = table.fields, .field_count = 1};
        tn_rc rc =
            tn_data_avro_schema(&table.schema, &table.options, &setup.arena, &text, &setup.err);
        CHECK(rc == (columns[i].fine ? TN_OK : TN_UNSUPPORTED));
        CHECK(columns[i].fine || strstr(setup.err.text, "column '"));
        setup_end(&setup);
    }
}

static bool same_type(const struct tn_avro_type *a, const struct tn_avro_type *b)
{
    return a->kind == b->kind && a->nullable == b->nullable && a->null_last == b->null_last &&
           a->logical == b->logical && a->fixed_size == b->fixed_size &&
           a->child_count == b->child_count;
}

/* The text of each random table gives what the parser makes of it; one byte less or another one,
 * and it is not known. */
static void a_schema_in_our_own_words_needs_no_parser(void)
{
    for (uint64_t seed = 1; seed < 400; seed++) {
        uint64_t random = seed;
        setup_begin(&setup);
        table_random(&setup, &table, &random);
        struct tn_bytes text;
        struct tn_avro_type parsed;
        struct tn_avro_type known;
        tn_rc rc =
            tn_data_avro_schema(&table.schema, &table.options, &setup.arena, &text, &setup.err);
        CHECK_OK(rc, setup.err);
        rc = tn_avro_schema_parse(text, &setup.arena, &parsed, &setup.err);
        CHECK_OK(rc, setup.err);
        rc = tn_data_avro_known(text, &table.schema, &setup.arena, &known, &setup.err);
        CHECK_OK(rc, setup.err);
        CHECK(same_type(&parsed, &known));
        for (uint32_t i = 0; i < parsed.child_count; i++) {
            CHECK(same_type(&parsed.children[i], &known.children[i]));
            CHECK(strcmp(parsed.names[i], known.names[i]) == 0 ||
                  (strncmp(parsed.names[i], "_KEY_", 5) == 0 &&
                   strcmp(known.names[i], "_KEY_") == 0));
        }
        struct tn_bytes less = {text.data, text.size - 1};
        rc = tn_data_avro_known(less, &table.schema, &setup.arena, &known, &setup.err);
        CHECK(rc == TN_ABSENT);
        unsigned char *other = tn_arena_take(&setup.arena, text.size);
        memcpy(other, text.data, text.size);
        other[random_below(&random, (uint32_t)text.size)] ^= 1;
        rc = tn_data_avro_known((struct tn_bytes){other, text.size}, &table.schema, &setup.arena,
                                &known, &setup.err);
        CHECK(rc == TN_ABSENT);
        setup_end(&setup);
    }
}

static const struct test tests[] = {
    TEST(files_read_back_as_they_were_written),
    TEST(a_reader_goes_on_where_another_one_told),
    TEST(seek_finds_the_first_row_not_below_the_key),
    TEST(seek_works_in_files_of_many_blocks),
    TEST(rows_are_passed_by_their_keys),
    TEST(parts_of_the_columns_come_in_any_order),
    TEST(a_column_of_an_older_type_is_cast),
    TEST(a_reader_can_keep_a_row_that_cannot_be_cast),
    TEST(a_writer_that_failed_leaves_no_file),
    TEST(a_reader_reports_failed_reads),
    TEST(files_that_were_cut_are_corrupt),
    TEST(blocks_behind_the_manifests_size_are_not_read),
    TEST(changed_bytes_are_errors_or_other_rows),
    TEST(what_a_block_says_of_itself_is_checked),
    TEST(rows_that_avro_can_not_hold_are_refused_and_nothing_is_added),
    TEST(columns_that_avro_can_not_hold_are_refused_by_name),
    TEST(a_schema_in_our_own_words_needs_no_parser),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
