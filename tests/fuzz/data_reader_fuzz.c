/* data_reader: any bytes as a data file, read with the columns of tests/golden/file's tables and of
 * a keyed table; every row must be one of the layout, and a reader that resumes gives the row that
 * was to come. */
#include <string.h>

#include "base/check.h"
#include "file/data_reader.h"
#include "fuzz/fuzz.h"
#include "fuzz/heaps.h"

enum {
    ARENA_SIZE = 16 << 20,
    ROWS_MAX = 20000,
};

/* A disk of one file, which is the input. */
struct one_file {
    struct tn_io io; /* first */
    const uint8_t *data;
    size_t size;
};

static tn_rc one_open(struct tn_io *io, const char *path, int *file, uint64_t *size,
                      struct tn_err *err)
{
    (void)path;
    (void)err;
    *file = 1;
    *size = ((struct one_file *)io)->size;
    return TN_OK;
}

static tn_rc one_read(struct tn_io *io, int file, uint64_t offset, void *data, size_t size,
                      size_t *got, struct tn_err *err)
{
    struct one_file *one = (struct one_file *)io;
    (void)err;
    TN_CHECK(file == 1 && offset <= one->size);
    *got = size < one->size - offset ? size : (size_t)(one->size - offset);
    if (*got > 0) {
        memcpy(data, one->data + offset, *got);
    }
    return TN_OK;
}

static void one_close(struct tn_io *io, int file)
{
    (void)io;
    TN_CHECK(file == 1);
}

static const struct tn_io_vtable vtable = {.open = one_open, .read = one_read, .close = one_close};

static struct tn_worker worker;
static struct tn_err err;
static struct one_file disk = {.io = {.vtable = &vtable}};

struct columns {
    const char *names[16];
    const char *types[16];
    uint32_t keys[2];
    uint32_t key_count;
    struct tn_field fields[16];
    struct tn_schema schema;
    struct tn_row_layout layout;
    struct tn_read_spec read;
    int32_t ids[16];
};

static struct columns tables[] = {
    {.names = {"k", "s", "d", "b", "n"}, .types = {"INT", "STRING", "DOUBLE", "BYTES", "BIGINT"}},
    {.names = {"k_int", "k_str", "k_date", "c_bool", "c_tiny", "c_float", "c_dec9", "c_dec38",
               "c_char", "c_bytes", "c_time", "c_ts3", "c_ts6", "c_ltz6", "absent"},
     .types = {"INT NOT NULL", "STRING NOT NULL", "DATE NOT NULL", "BOOLEAN", "TINYINT", "FLOAT",
               "DECIMAL(9, 2)", "DECIMAL(38, 10)", "CHAR(5)", "BYTES", "TIME(3)", "TIMESTAMP(3)",
               "TIMESTAMP(6)", "TIMESTAMP_LTZ(6)", "STRING"},
     .keys = {0, 1},
     .key_count = 2},
};

static void make_table(struct columns *t)
{
    static struct tn_type types[16];
    uint32_t count = 0;
    for (; count < 16 && t->names[count]; count++) {
        struct tn_field *field = &t->fields[count];
        tn_rc rc = tn_type_parse(tn_bytes_of(t->types[count]), &field->type, &err);
        TN_CHECK(rc == TN_OK);
        field->id = t->ids[count] = (int32_t)count;
        field->name = t->names[count];
        types[count] = field->type;
    }
    t->schema = (struct tn_schema){.fields = t->fields, .field_count = count};
    tn_rc rc = tn_row_layout_init(&t->layout, t->names, types, count, &worker.arena, &err);
    TN_CHECK(rc == TN_OK);
    t->read = (struct tn_read_spec){&t->layout, t->ids, {t->keys, t->key_count}};
}

static void set_up(void)
{
    static _Alignas(16) unsigned char arena_memory[ARENA_SIZE];
    heaps_init();
    tn_arena_init(&worker.arena, arena_memory, sizeof arena_memory);
    tn_rc rc = tn_codec_init(&worker.codec, 1, 0, &worker.arena, &err);
    TN_CHECK(rc == TN_OK);
    worker.io = &disk.io;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        make_table(&tables[i]);
    }
}

/* The row that comes after `resume` to where the reader is, is the row that comes now. */
static void check_resume(struct tn_data_reader *reader, const struct tn_row_layout *layout)
{
    static unsigned char copy[1 << 16];
    struct tn_data_position position = tn_data_reader_tell(reader);
    struct tn_kv kv;
    tn_rc rc = tn_iter_next(&reader->iter, &kv, &err);
    if (rc || kv.row.size > sizeof copy) {
        return;
    }
    TN_CHECK(tn_row_valid(layout, kv.row));
    uint32_t size = kv.row.size;
    memcpy(copy, kv.row.data, size);
    rc = tn_data_reader_resume(reader, position, &err);
    if (rc == TN_AGAIN) {
        return;
    }
    TN_CHECK(rc == TN_OK);
    rc = tn_iter_next(&reader->iter, &kv, &err);
    TN_CHECK(rc == TN_OK && kv.row.size == size && memcmp(kv.row.data, copy, size) == 0);
}

static void read_as(const struct columns *t)
{
    static struct tn_data_reader reader;
    size_t mark = tn_arena_mark(&worker.arena);
    tn_rc rc = tn_data_reader_open(&reader, "input", (int64_t)disk.size, 0, &t->schema, &t->read,
                                   &worker, &err);
    if (rc) {
        TN_CHECK(tn_arena_mark(&worker.arena) == mark);
        return;
    }
    check_resume(&reader, &t->layout);
    struct tn_kv kv;
    for (uint32_t rows = 0; rc == TN_OK && rows < ROWS_MAX; rows++) {
        rc = tn_iter_next(&reader.iter, &kv, &err);
        TN_CHECK(rc != TN_OK || tn_row_valid(&t->layout, kv.row));
    }
    if (t->key_count > 0) {
        struct tn_value key[2] = {{.as.i64 = 7}, {.as.bytes = {(const unsigned char *)"k", 1}}};
        rc = reader.iter.vtable->seek(&reader.iter, key, &err);
        if (rc == TN_OK) {
            (void)!tn_iter_next(&reader.iter, &kv, &err);
        }
    }
    tn_iter_close(&reader.iter);
    tn_arena_reset(&worker.arena, mark);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!worker.io) {
        set_up();
    }
    disk.data = data;
    disk.size = size;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        read_as(&tables[i]);
    }
    return 0;
}
