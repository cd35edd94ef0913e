/* Scripts, records of JSON and patterns of any bytes. The first byte says which: 's' a script,
 * which is loaded and called with rows, 'j' a record that goes through a `map`, 'p' a pattern, a
 * zero and a subject. Whatever a script does, it ends, the rows that it gives are rows, and its
 * memory is whole. */
#include <stdlib.h>

#include "base/check.h"
#include "fuzz/fuzz.h"
#include "script/script.h"

enum { COLUMNS = 8, STATE_SIZE = 256 * 1024 };

static const char *const names[COLUMNS] = {"dev", "n", "d", "f", "c", "b", "t", "note"};
static const char *const types[COLUMNS] = {"STRING NOT NULL", "BIGINT",        "DOUBLE",
                                           "BOOLEAN",         "DECIMAL(9, 2)", "VARBINARY(4)",
                                           "TIMESTAMP(6)",    "STRING"};
static const struct tn_vm_limits limits = {.instructions = 20000,
                                           .instructions_load = 20000,
                                           .bytes = 1 << 20,
                                           .text_size = 16 * 1024,
                                           .source_size = 128 * 1024};
static const char mapper[] = "return {map = function(r) return r end}";

static _Alignas(16) unsigned char state[STATE_SIZE];
static _Alignas(16) unsigned char arena_memory[8192];
static unsigned char out_memory[64 * 1024];
static struct tn_row_layout layout;
static struct tn_vm vm;
static struct tn_script script;
static struct tn_err err;

/* ---- the one file there is ---- */

static struct tn_bytes file_text;

static tn_rc open_file(struct tn_io *io, const char *path, int *file, uint64_t *size,
                       struct tn_err *why)
{
    (void)io;
    if (strcmp(path, "t.lua") != 0) {
        return tn_err_set(why, TN_ABSENT, 0, "%s: there is no such file", path);
    }
    *file = 0;
    *size = file_text.size;
    return TN_OK;
}

static tn_rc read_file(struct tn_io *io, int file, uint64_t offset, void *to, size_t size,
                       size_t *got, struct tn_err *why)
{
    (void)io;
    (void)file;
    (void)why;
    if (size > 0) {
        memcpy(to, file_text.data + offset, size);
    }
    *got = size;
    return TN_OK;
}

static void close_file(struct tn_io *io, int file)
{
    (void)io;
    (void)file;
}

static const struct tn_io_vtable vtable = {
    .open = open_file, .read = read_file, .close = close_file};

/* ---- a state ---- */

static void open_layout(void)
{
    struct tn_arena arena;
    struct tn_type parsed[COLUMNS];
    tn_arena_init(&arena, arena_memory, sizeof arena_memory);
    for (int i = 0; i < COLUMNS; i++) {
        tn_rc rc = tn_type_parse(tn_bytes_of(types[i]), &parsed[i], &err);
        TN_CHECK(rc == TN_OK);
    }
    tn_rc rc = tn_row_layout_init(&layout, names, parsed, COLUMNS, &arena, &err);
    TN_CHECK(rc == TN_OK);
}

static tn_rc load(struct tn_bytes text)
{
    static struct tn_io io = {.vtable = &vtable};
    static const uint32_t key[] = {0};
    struct tn_vm_spec spec = {
        .memory = state, .size = sizeof state, .io = &io, .seed = 7, .limits = &limits};
    file_text = text;
    open_layout();
    tn_rc rc = tn_vm_open(&vm, &spec, &err);
    TN_CHECK(rc == TN_OK);
    struct tn_script_spec script_spec = {
        .path = "t.lua", .layout = &layout, .keys = {key, 1}, .table = "a.b"};
    return tn_script_load(&script, &vm, &script_spec, &err);
}

static void check_rows(struct tn_bytes rows)
{
    struct tn_row row;
    while (tn_script_next_row(&rows, &row)) {
        TN_CHECK(tn_row_valid(&layout, row));
    }
    TN_CHECK(rows.size == 0);
}

static void check_row(const struct tn_buf *out)
{
    struct tn_row row = {out->data, (uint32_t)out->size};
    TN_CHECK(tn_row_valid(&layout, row));
}

static struct tn_row a_row(unsigned char *data)
{
    struct tn_value values[COLUMNS] = {{.as.bytes = tn_bytes_of("k")},
                                       {.as.i64 = 7},
                                       {.as.f64 = 1.5},
                                       {.null = true},
                                       {.as.i128 = tn_i128_of(150)},
                                       {.as.bytes = tn_bytes_of("")},
                                       {.nanos = 1000, .as.i64 = -1},
                                       {.as.bytes = tn_bytes_of("note")}};
    return (struct tn_row){data, tn_row_pack(&layout, values, data)};
}

static const struct tn_script_meta meta = {.topic = "a/b", .clock = "unset"};

static void call_all(void)
{
    unsigned char data[256];
    struct tn_row row = a_row(data);
    struct tn_script_ctx ctx = {TN_ROW_INSERT, 1, false};
    enum tn_script_verdict verdict;
    struct tn_buf out;
    bool shown;
    uint32_t count;
    tn_buf_init(&out, out_memory, sizeof out_memory);
    if (tn_script_has(&script, TN_SCRIPT_MERGE) &&
        tn_script_merge(&script, &row, row, &ctx, &verdict, &out, &err) == TN_OK &&
        verdict == TN_SCRIPT_ROW) {
        check_row(&out);
    }
    tn_buf_init(&out, out_memory, sizeof out_memory);
    if (tn_script_announce(&script, row, &shown, &out, &err) == TN_OK && shown) {
        check_row(&out);
    }
    tn_buf_init(&out, out_memory, sizeof out_memory);
    if (tn_script_map(&script, row, &meta, &count, &out, &err) == TN_OK) {
        check_rows(tn_buf_bytes(&out));
    }
}

static void try_record(struct tn_bytes record)
{
    struct tn_buf out;
    uint32_t count = 0;
    tn_rc rc = load(tn_bytes_of(mapper));
    TN_CHECK(rc == TN_OK);
    tn_buf_init(&out, out_memory, sizeof out_memory);
    rc = tn_script_map_json(&script, record, &meta, &count, &out, &err);
    if (rc == TN_OK) {
        check_rows(tn_buf_bytes(&out));
    }
}

static void try_pattern(struct tn_bytes text)
{
    static struct tn_matcher m;
    const unsigned char *zero = text.size > 0 ? memchr(text.data, 0, text.size) : NULL;
    size_t split = zero ? (size_t)(zero - text.data) : text.size;
    size_t rest = zero ? split + 1 : split;
    m.pattern = (struct tn_bytes){text.data, split};
    m.subject = (struct tn_bytes){text.data + rest, text.size - rest};
    m.steps_left = 20000;
    const unsigned char *end = m.subject.data + m.subject.size;
    if (tn_pattern_match(&m, m.subject.data) == TN_PATTERN_YES) {
        TN_CHECK(m.end >= m.subject.data && m.end <= end);
        for (uint32_t i = 0; i < m.capture_count; i++) {
            ptrdiff_t size = m.captures[i].size > 0 ? m.captures[i].size : 0;
            TN_CHECK(m.captures[i].at >= m.subject.data && size <= end - m.captures[i].at);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    unsigned char *copy = malloc(size); /* ASan sees its end */
    TN_CHECK(copy);
    memcpy(copy, data + 1, size - 1);
    struct tn_bytes text = {copy, size - 1};
    vm.lua = NULL;
    if (data[0] == 'p') {
        try_pattern(text);
    } else if (data[0] == 'j') {
        try_record(text);
    } else if (load(text) == TN_OK) {
        call_all();
    }
    if (vm.lua) {
        tn_heap_check(&vm.heap);
        tn_vm_close(&vm);
    }
    free(copy);
    return 0;
}
