/* A serialized row, behind a byte with the arity: every getter on every field stays in the row.
 * What the getters gave is written to a new row, and read from it again. */
#include "check.h"
#include "format/binrow.h"
#include "fuzz/fuzz.h"

enum { ROW_MAX = 256 * 1024 };

static unsigned char memory[ROW_MAX];

static bool inside(struct tn_bytes part, struct tn_bytes whole)
{
    return part.data >= whole.data && part.size <= whole.size &&
           part.data + part.size <= whole.data + whole.size;
}

/* Each field as the first form that its bytes allow; the same order reads it again. */
static void copy_field(const struct tn_binrow *row, uint32_t field, struct tn_binrow_writer *writer)
{
    struct tn_bytes bytes;
    int64_t millis = 0;
    uint32_t nanos = 0;
    if (tn_binrow_is_null(row, field)) {
        tn_binrow_null(writer, field);
    } else if (field % 3 == 0 && tn_binrow_get_bytes(row, field, &bytes)) {
        CHECK(inside(bytes, row->bytes));
        tn_binrow_bytes(writer, field, bytes);
    } else if (field % 3 == 1 && tn_binrow_get_decimal(row, field, &bytes)) {
        CHECK(inside(bytes, row->bytes) && bytes.size >= 1 && bytes.size <= 16);
        tn_binrow_decimal(writer, field, false, bytes);
    } else if (field % 3 == 2 && tn_binrow_get_time(row, field, &millis, &nanos)) {
        CHECK(nanos < 1000000);
        tn_binrow_time(writer, field, false, millis, nanos);
    } else {
        tn_binrow_fixed(writer, field, tn_binrow_slot(row, field), 8);
    }
}

static void check_field(const struct tn_binrow *row, const struct tn_binrow *copy, uint32_t field)
{
    struct tn_bytes a;
    struct tn_bytes b;
    int64_t millis[2];
    uint32_t nanos[2];
    CHECK(tn_binrow_is_null(row, field) == tn_binrow_is_null(copy, field));
    if (tn_binrow_is_null(row, field)) {
        return;
    }
    if (field % 3 == 0 && tn_binrow_get_bytes(row, field, &a)) {
        CHECK(tn_binrow_get_bytes(copy, field, &b) && tn_bytes_equal(a, b));
    } else if (field % 3 == 1 && tn_binrow_get_decimal(row, field, &a)) {
        CHECK(tn_binrow_get_decimal(copy, field, &b) && tn_bytes_equal(a, b));
    } else if (field % 3 == 2 && tn_binrow_get_time(row, field, &millis[0], &nanos[0])) {
        CHECK(tn_binrow_get_time(copy, field, &millis[1], &nanos[1]));
        CHECK(millis[0] == millis[1] && nanos[0] == nanos[1]);
    } else {
        CHECK(tn_binrow_slot(row, field) == tn_binrow_slot(copy, field));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tn_binrow row;
    struct tn_binrow copy;
    struct tn_binrow_writer writer;
    struct tn_buf buf;
    struct tn_err err;
    if (size < 1 || tn_binrow_open((struct tn_bytes){data + 1, size - 1}, data[0], &row, &err)) {
        return 0;
    }
    tn_buf_init(&buf, memory, sizeof memory);
    tn_binrow_begin(&writer, &buf, row.arity, true);
    for (uint32_t i = 0; i < row.arity; i++) {
        copy_field(&row, i, &writer);
    }
    if (buf.overflow) { /* many fields may point at the same large bytes */
        return 0;
    }
    CHECK(buf.size % 8 == 4);
    tn_rc rc = tn_binrow_open(tn_buf_bytes(&buf), row.arity, &copy, &err);
    CHECK_OK(rc, err);
    for (uint32_t i = 0; i < row.arity; i++) {
        check_field(&row, &copy, i);
    }
    return 0;
}
