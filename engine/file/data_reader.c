#include "file/data_reader_private.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"

enum {
    FIRST_READ = 8 * 1024, /* holds the header of most files */
    ROW_FIRST = 1024,      /* bytes for the byte columns of a row, to begin with */
    BLOCKS_MAX = 512,      /* offsets kept for seek; beyond that every second, and so on */
};

struct tn_data_blocks {
    uint64_t offsets[BLOCKS_MAX];
    uint32_t count;
    uint32_t stride; /* blocks from one offset to the next */
};

static struct tn_data_reader *reader_of(struct tn_iter *iter)
{
    return (struct tn_data_reader *)(void *)iter;
}

/* ---- rows ---- */

/* Sees to it that the block at hand has a row to give; ABSENT at the end. */
static tn_rc need_rows(struct tn_data_reader *reader, struct tn_err *err)
{
    while (reader->rows_left == 0) {
        tn_rc rc = tn_data_block_load(reader, reader->next_block, err);
        if (rc) {
            return rc;
        }
    }
    return TN_OK;
}

/* Keeps the reason for whoever looks at the row. */
static const char *tell_bad(struct tn_data_reader *reader, const struct tn_data_record *record)
{
    struct tn_err why;
    (void)tn_data_plan_refuse(record, &why);
    (void)tn_err_in(&why, "%s: byte %" PRIu64 ": row %" PRIu64, reader->path,
                    reader->position.block_offset, reader->position.row);
    memcpy(reader->bad, why.text, sizeof why.text);
    return reader->bad;
}

static tn_rc row_failed(struct tn_data_reader *reader, struct tn_err *err)
{
    reader->cursor.failed = true; /* also for whoever asks again */
    return tn_err_set(err, TN_CORRUPT, 0,
                      "%s: byte %" PRIu64 ": row %" PRIu64
                      " of this block is none of the file's schema",
                      reader->path, reader->position.block_offset, reader->position.row);
}

static bool record_failed(const struct tn_data_reader *reader, const struct tn_avro_cursor *behind)
{
    return behind->failed || (reader->rows_left == 1 && behind->at != behind->end);
}

/* The cursor is behind a row. */
static void step(struct tn_data_reader *reader)
{
    reader->rows_left--;
    reader->position.row++;
    if (reader->rows_left == 0) {
        reader->position = (struct tn_data_position){reader->next_block, 0};
    }
}

/* The row under the cursor; position and cursor move behind it. */
static tn_rc decode_row(struct tn_data_reader *reader, struct tn_kv *kv, struct tn_err *err)
{
    struct tn_data_record record = {0};
    struct tn_avro_cursor start = reader->cursor;
    uint64_t size = tn_data_plan_decode(&reader->plan, &reader->cursor, reader->row, &record);
    if (record_failed(reader, &reader->cursor)) {
        return row_failed(reader, err);
    }
    if (size > reader->row_capacity) {
        reader->cursor = start; /* once more, where the block then is */
        tn_rc rc = tn_data_buffers_row(reader, size, err);
        if (rc) {
            return rc;
        }
        (void)tn_data_plan_decode(&reader->plan, &reader->cursor, reader->row, &record);
    }
    tn_data_plan_append(&reader->plan, reader->row);
    kv->bad = record.bad_cast ? tell_bad(reader, &record) : NULL;
    step(reader);
    kv->row = (struct tn_row){reader->row, (uint32_t)size};
    kv->level = reader->level;
    if (reader->keyed) {
        kv->sequence = record.sequence;
        kv->kind = (enum tn_row_kind)record.kind;
        kv->prefix = tn_row_prefix(reader->read->layout, reader->read->keys, kv->row);
    } else {
        kv->sequence = reader->row_sequence++;
        kv->kind = TN_ROW_INSERT;
        kv->prefix = 0;
    }
    return TN_OK;
}

static tn_rc reader_next(struct tn_iter *iter, struct tn_kv *kv, struct tn_err *err)
{
    struct tn_data_reader *reader = reader_of(iter);
    if (reader->rows_left == 0) {
        tn_rc rc = need_rows(reader, err);
        if (rc) {
            return rc;
        }
    }
    struct tn_kv decoded;
    tn_rc rc = decode_row(reader, &decoded, err);
    if (rc == TN_OK && decoded.bad && !reader->keep_bad) {
        return tn_err_set(err, TN_CORRUPT, 0, "%s", decoded.bad);
    }
    if (rc == TN_OK) {
        *kv = decoded;
    }
    return rc;
}

/* ---- keys ---- */

static uint64_t decode_key(struct tn_data_reader *reader, struct tn_data_record *record)
{
    reader->behind_key = reader->cursor;
    return tn_data_plan_decode_key(&reader->plan, &reader->behind_key, reader->row, record);
}

tn_rc tn_data_reader_key(struct tn_data_reader *reader, struct tn_row *key, struct tn_err *err)
{
    struct tn_data_record record = {0};
    TN_CHECK(reader->keyed);
    tn_rc rc = need_rows(reader, err);
    if (rc) {
        return rc;
    }
    uint64_t size = decode_key(reader, &record);
    if (reader->behind_key.failed) {
        return row_failed(reader, err);
    }
    if (size > reader->row_capacity) {
        rc = tn_data_buffers_row(reader, size, err); /* the block may be elsewhere then */
        if (rc) {
            return rc;
        }
        (void)decode_key(reader, &record);
    }
    tn_data_plan_append(&reader->plan, reader->row);
    *key = (struct tn_row){reader->row, (uint32_t)size};
    return record.bad_cast ? tn_err_set(err, TN_CORRUPT, 0, "%s", tell_bad(reader, &record))
                           : TN_OK;
}

tn_rc tn_data_reader_pass(struct tn_data_reader *reader, struct tn_err *err)
{
    tn_data_plan_pass(&reader->plan, &reader->behind_key);
    if (record_failed(reader, &reader->behind_key)) {
        return row_failed(reader, err);
    }
    reader->cursor = reader->behind_key;
    step(reader);
    return TN_OK;
}

/* The row at hand, by its key as a row; `*order` is how that compares with `key`. */
static tn_rc pass_decoded(struct tn_data_reader *reader, struct tn_row key, int *order,
                          struct tn_err *err)
{
    struct tn_row own;
    tn_rc rc = tn_data_reader_key(reader, &own, err);
    if (rc) {
        return rc;
    }
    *order = tn_row_compare(reader->read->layout, reader->read->keys, own, key);
    return *order < 0 ? tn_data_reader_pass(reader, err) : TN_OK;
}

/* The same by its bytes in the file. */
static tn_rc pass_as_it_lies(struct tn_data_reader *reader, struct tn_row key, int *order,
                             struct tn_err *err)
{
    *order = tn_data_plan_pass_below(&reader->plan, &reader->cursor, key);
    if (reader->cursor.failed || (*order < 0 && record_failed(reader, &reader->cursor))) {
        return row_failed(reader, err);
    }
    if (*order < 0) {
        step(reader);
    }
    return TN_OK;
}

tn_rc tn_data_reader_pass_below(struct tn_data_reader *reader, struct tn_row key, uint64_t *passed,
                                struct tn_err *err)
{
    TN_CHECK(reader->keyed);
    for (int order = -1; order < 0; *passed += order < 0) {
        tn_rc rc = reader->rows_left > 0 ? TN_OK : need_rows(reader, err);
        if (rc == TN_OK) {
            rc = reader->plan.key_lies ? pass_as_it_lies(reader, key, &order, err)
                                       : pass_decoded(reader, key, &order, err);
        }
        if (rc) {
            return rc;
        }
    }
    return TN_OK;
}

/* ---- seek ---- */

static void halve(struct tn_data_blocks *blocks)
{
    for (uint32_t i = 0; i < blocks->count / 2; i++) {
        blocks->offsets[i] = blocks->offsets[2 * i];
    }
    blocks->count /= 2;
    blocks->stride *= 2;
}

/* Hops from head to head. Blocks without rows are left out: they have no first key. */
static tn_rc list_blocks(struct tn_data_reader *reader, struct tn_err *err)
{
    void *memory = NULL;
    tn_data_buffers_drop(reader, reader->base);
    tn_rc rc = tn_arena_need(&reader->worker->arena, sizeof(struct tn_data_blocks),
                             "a file's blocks", &memory, err);
    if (rc) {
        return rc;
    }
    tn_data_buffers_begin(reader);
    struct tn_data_blocks *blocks = memory;
    *blocks = (struct tn_data_blocks){.stride = 1};
    uint64_t offset = reader->header.size;
    struct tn_data_block_head head;
    for (uint64_t number = 0; (rc = tn_data_block_head(reader, offset, &head, err)) == TN_OK;) {
        if (head.row_count > 0) {
            if (blocks->count == BLOCKS_MAX) {
                halve(blocks);
            }
            if (number % blocks->stride == 0) {
                blocks->offsets[blocks->count++] = offset;
            }
            number++;
        }
        offset = head.next;
    }
    if (rc == TN_ABSENT) {
        reader->blocks = blocks;
        rc = TN_OK;
    }
    return rc;
}

/* Whether the block's first key is below `key`. */
static tn_rc begins_below(struct tn_data_reader *reader, uint64_t offset,
                          const struct tn_value *key, bool *below, struct tn_err *err)
{
    struct tn_kv kv;
    tn_rc rc = tn_data_block_load(reader, offset, err);
    if (rc == TN_OK) {
        rc = decode_row(reader, &kv, err);
    }
    if (rc == TN_OK) {
        *below = tn_row_compare_values(reader->read->layout, reader->read->keys, kv.row, key) < 0;
    }
    return rc;
}

/* The last of the listed blocks that begins below the key, or the first of all. */
static tn_rc find_block(struct tn_data_reader *reader, const struct tn_value *key, uint64_t *offset,
                        struct tn_err *err)
{
    uint32_t low = 0;
    uint32_t high = reader->blocks->count;
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        bool below = false;
        tn_rc rc = begins_below(reader, reader->blocks->offsets[middle], key, &below, err);
        if (rc) {
            return rc;
        }
        if (below) {
            low = middle;
        } else {
            high = middle;
        }
    }
    *offset = reader->blocks->offsets[low];
    return TN_OK;
}

/* Rows are passed until one is not below the key; the cursor is set back in front of it. */
static tn_rc scan_to(struct tn_data_reader *reader, const struct tn_value *key, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    while ((rc = need_rows(reader, err)) == TN_OK) {
        size_t at = (size_t)(reader->cursor.at - reader->block.data);
        struct tn_data_position position = reader->position;
        struct tn_kv kv;
        rc = decode_row(reader, &kv, err);
        if (rc) {
            return rc;
        }
        if (tn_row_compare_values(reader->read->layout, reader->read->keys, kv.row, key) >= 0) {
            reader->cursor.at = reader->block.data + at;
            reader->position = position;
            reader->rows_left++;
            return TN_OK;
        }
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc reader_seek(struct tn_iter *iter, const struct tn_value *key, struct tn_err *err)
{
    struct tn_data_reader *reader = reader_of(iter);
    if (!reader->keyed) {
        return tn_err_set(err, TN_INVALID, 0, "%s: no keys to seek in", reader->path);
    }
    tn_rc rc = reader->blocks ? TN_OK : list_blocks(reader, err);
    if (rc) {
        return rc;
    }
    uint64_t offset = reader->file_size;
    if (reader->blocks->count > 0) {
        rc = find_block(reader, key, &offset, err);
    }
    if (rc) {
        return rc;
    }
    reader->rows_left = 0;
    reader->next_block = offset;
    return scan_to(reader, key, err);
}

/* ---- open ---- */

static tn_rc open_sized(struct tn_data_reader *reader, const char *path, int64_t file_size,
                        struct tn_err *err)
{
    struct tn_io *io = reader->worker->io;
    uint64_t size = 0;
    tn_rc rc = io->vtable->open(io, path, &reader->file, &size, err);
    if (rc) {
        return rc;
    }
    if (file_size < 0 || (uint64_t)file_size > size) {
        io->vtable->close(io, reader->file);
        return tn_err_set(err, TN_CORRUPT, 0,
                          "%s: byte %" PRIu64 ": the file ends here, its manifest says %" PRId64,
                          path, size, file_size);
    }
    reader->file_size = (uint64_t)file_size;
    return TN_OK;
}

static tn_rc read_header(struct tn_data_reader *reader, struct tn_err *err)
{
    tn_rc rc = TN_AGAIN;
    if (reader->file_size == 0) {
        return tn_data_corrupt(reader, 0, "the file is empty", err);
    }
    for (size_t size = FIRST_READ; rc == TN_AGAIN && size <= TN_AVRO_HEADER_MAX; size *= 2) {
        size_t wanted = size < reader->file_size ? size : (size_t)reader->file_size;
        struct tn_bytes bytes;
        rc = tn_data_look(reader, 0, wanted, 0, &bytes, err);
        if (rc) {
            return rc;
        }
        rc = tn_avro_header_decode(bytes, &reader->header, err);
        if (rc == TN_AGAIN && wanted == reader->file_size) {
            return tn_data_corrupt(reader, wanted, "the file ends in its head", err);
        }
    }
    if (rc == TN_AGAIN) {
        return tn_data_corrupt(reader, TN_AVRO_HEADER_MAX, "the file's head is too large", err);
    }
    return rc ? tn_err_in(err, "%s", reader->path) : TN_OK;
}

static tn_rc make_plan(struct tn_data_reader *reader, const struct tn_schema *file_schema,
                       struct tn_err *err)
{
    struct tn_arena *arena = &reader->worker->arena;
    tn_rc rc = tn_data_plan_make(reader->header.schema, file_schema, reader->read, arena,
                                 &reader->plan, err);
    if (rc) {
        return tn_err_in(err, "%s", reader->path);
    }
    reader->header.schema = (struct tn_bytes){0}; /* its bytes are in the window, which moves on */
    reader->keyed = reader->plan.keyed;
    reader->row_capacity = reader->plan.fixed_size + ROW_FIRST;
    void *memory = NULL;
    rc = tn_arena_need(arena, reader->row_capacity + TN_DATA_SLACK, "a row", &memory, err);
    reader->row = memory;
    reader->row_small = memory;
    reader->row_small_capacity = reader->row_capacity;
    if (rc == TN_OK && reader->plan.cast_count > 0) {
        rc = tn_arena_need(arena, TN_ERR_TEXT_SIZE, "a row", &memory, err);
        reader->bad = memory;
    }
    tn_data_buffers_begin(reader);
    return rc ? tn_err_in(err, "%s", reader->path) : TN_OK;
}

static void reader_close(struct tn_iter *iter)
{
    struct tn_data_reader *reader = reader_of(iter);
    if (reader->file >= 0) {
        reader->worker->io->vtable->close(reader->worker->io, reader->file);
        reader->file = -1;
    }
}

static const struct tn_iter_vtable vtable = {reader_next, reader_seek, reader_close, NULL};

/* ---- public ---- */

tn_rc tn_data_reader_open(struct tn_data_reader *reader, const char *path, int64_t file_size,
                          int32_t level, const struct tn_schema *file_schema,
                          const struct tn_read_spec *read, struct tn_worker *worker,
                          struct tn_err *err)
{
    size_t mark = tn_arena_mark(&worker->arena);
    *reader = (struct tn_data_reader){.iter = {&vtable},
                                      .worker = worker,
                                      .read = read,
                                      .path = path,
                                      .file = -1,
                                      .level = level};
    tn_data_buffers_begin(reader);
    tn_rc rc = open_sized(reader, path, file_size, err);
    if (rc) {
        return rc;
    }
    rc = read_header(reader, err);
    if (rc == TN_OK) {
        rc = make_plan(reader, file_schema, err);
    }
    if (rc) {
        reader_close(&reader->iter);
        tn_arena_reset(&worker->arena, mark);
        return rc;
    }
    reader->next_block = reader->header.size;
    return TN_OK;
}

/* How many rows lie in the blocks before `offset`. */
static tn_rc count_rows_before(struct tn_data_reader *reader, uint64_t offset, int64_t *count,
                               struct tn_err *err)
{
    int64_t total = 0;
    for (uint64_t at = reader->header.size; at < offset;) {
        struct tn_data_block_head head;
        tn_rc rc = tn_data_block_head(reader, at, &head, err);
        if (rc) {
            return rc;
        }
        total += head.row_count;
        at = head.next;
    }
    *count = total;
    return TN_OK;
}

tn_rc tn_data_reader_resume(struct tn_data_reader *reader, struct tn_data_position position,
                            struct tn_err *err)
{
    uint64_t offset = position.block_offset ? position.block_offset : reader->header.size;
    if (offset < reader->header.size || offset > reader->file_size) {
        return tn_data_corrupt(reader, offset, "no block begins here", err);
    }
    reader->row_sequence = 0;
    if (!reader->keyed) {
        tn_rc rc = count_rows_before(reader, offset, &reader->row_sequence, err);
        if (rc) {
            return rc;
        }
    }
    reader->rows_left = 0;
    reader->next_block = offset;
    reader->position = (struct tn_data_position){offset, 0};
    for (uint64_t i = 0; i < position.row; i++) {
        struct tn_kv kv;
        tn_rc rc = reader_next(&reader->iter, &kv, err);
        if (rc) {
            return rc == TN_ABSENT ? tn_data_corrupt(reader, offset, "a block has fewer rows", err)
                                   : rc;
        }
    }
    return TN_OK;
}
