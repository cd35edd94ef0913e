#include "file/data_reader_private.h"

#include <inttypes.h>
#include <string.h>

enum {
    HEAD_MAX = 20, /* of a block: two varints of at most ten bytes */
    SYNC_SIZE = 16,
    RAW_FIRST = 80 * 1024,     /* Java and tarn end a block at 64000 bytes and a bit */
    CODEC_SCRATCH = 64 * 1024, /* what inflate takes, and a bit */
    BLOCK_SIZE_MAX = 1 << 30,  /* far above any block; keeps sizes in 32 bits */
};

tn_rc tn_data_corrupt(const struct tn_data_reader *reader, uint64_t offset, const char *what,
                      struct tn_err *err)
{
    return tn_err_set(err, TN_CORRUPT, 0, "%s: byte %" PRIu64 ": %s", reader->path, offset, what);
}

/* ---- the buffers ---- */

void tn_data_buffers_begin(struct tn_data_reader *reader)
{
    reader->base = tn_arena_mark(&reader->worker->arena);
    reader->packed_end = reader->base;
    reader->raw_end = reader->base;
    reader->top = reader->base;
}

void tn_data_buffers_drop(struct tn_data_reader *reader, size_t mark)
{
    struct tn_arena *arena = &reader->worker->arena;
    if (tn_arena_mark(arena) != reader->top) {
        tn_data_buffers_begin(reader);
        return;
    }
    tn_arena_reset(arena, mark);
    reader->top = mark;
    reader->row = reader->row_small;
    reader->row_capacity = reader->row_small_capacity;
    if (mark < reader->raw_end) {
        tn_buf_init(&reader->raw, NULL, 0);
        reader->raw_end = mark;
    }
    if (mark < reader->packed_end) {
        tn_buf_init(&reader->packed, NULL, 0);
        reader->packed_end = mark;
    }
}

/* Memory for `size` bytes or, while there is plenty, a part more: blocks differ a little in size.
 */
static tn_rc take(struct tn_data_reader *reader, size_t size, const char *what, void **memory,
                  size_t *taken, struct tn_err *err)
{
    struct tn_arena *arena = &reader->worker->arena;
    size_t wanted = size + size / 4;
    if (wanted > tn_arena_free(arena) / 2) {
        wanted = size;
    }
    *memory = tn_arena_take_raw(arena, wanted + TN_DATA_SLACK);
    if (!*memory) {
        return tn_err_set(err, TN_AGAIN, 0, "%s: %s needs %zu bytes, %zu are free", reader->path,
                          what, wanted + TN_DATA_SLACK, tn_arena_free(arena));
    }
    reader->top = tn_arena_mark(arena);
    *taken = wanted;
    return TN_OK;
}

/* The window for `size` bytes; what it held, and the block at hand, are gone when it had to grow.
 */
static tn_rc need_window(struct tn_data_reader *reader, size_t size, struct tn_err *err)
{
    if (size <= reader->packed.capacity) {
        return TN_OK;
    }
    void *memory;
    size_t taken;
    tn_data_buffers_drop(reader, reader->base);
    tn_rc rc = take(reader, size, "a file's block", &memory, &taken, err);
    if (rc == TN_OK) {
        tn_buf_init(&reader->packed, memory, taken);
        reader->packed_end = reader->top;
        reader->raw_end = reader->top;
    }
    return rc;
}

/* Deflate and bzip2 don't know how much they will give, so `size` is a guess: of twice what did not
 * do. Less may do, and they need room for themselves. */
static bool guesses(const struct tn_data_reader *reader)
{
    enum tn_codec_id id = reader->header.codec;
    return id == TN_CODEC_ID_DEFLATE || id == TN_CODEC_ID_BZIP2;
}

static size_t guessed(const struct tn_data_reader *reader, size_t size)
{
    size_t left = tn_arena_free(&reader->worker->arena);
    bool much = left > CODEC_SCRATCH && size > left - CODEC_SCRATCH;
    return guesses(reader) && much ? left - CODEC_SCRATCH : size;
}

/* More than `tried` bytes, and `size` where there is room. */
static tn_rc need_raw(struct tn_data_reader *reader, size_t size, size_t tried, struct tn_err *err)
{
    if (size <= reader->raw.capacity) {
        return TN_OK;
    }
    void *memory;
    size_t taken;
    tn_data_buffers_drop(reader, reader->packed_end);
    size_t less = guessed(reader, size);
    tn_rc rc = take(reader, less > tried ? less : size, "a raw block", &memory, &taken, err);
    if (rc == TN_OK) {
        tn_buf_init(&reader->raw, memory, taken);
        reader->raw_end = reader->top;
    }
    return rc;
}

/* The raw block moves to where the compressed one is, which is done with. */
static void lower_block(struct tn_data_reader *reader)
{
    struct tn_arena *arena = &reader->worker->arena;
    size_t size = reader->block.size;
    bool stacked = reader->base < reader->packed_end && reader->packed_end < reader->raw_end;
    if (!stacked || reader->block.data != reader->raw.data) {
        return;
    }
    tn_buf_init(&reader->packed, NULL, 0);
    size_t at = (size_t)(reader->cursor.at - reader->block.data);
    unsigned char *low = arena->base + reader->base;
    low += (size_t)(reader->block.data - low) % _Alignof(max_align_t);
    memmove(low, reader->block.data, size);
    tn_buf_init(&reader->raw, low, size);
    reader->raw.size = size;
    reader->packed_end = reader->base;
    reader->raw_end = (size_t)(low - arena->base) + size + TN_DATA_SLACK;
    tn_data_buffers_drop(reader, reader->raw_end);
    reader->block = tn_buf_bytes(&reader->raw);
    reader->cursor = (struct tn_avro_cursor){low + at, low + size, false};
}

tn_rc tn_data_buffers_row(struct tn_data_reader *reader, uint64_t size, struct tn_err *err)
{
    if (size > UINT32_MAX / 2) {
        return tn_data_corrupt(reader, reader->position.block_offset, "a row is too large", err);
    }
    tn_data_buffers_drop(reader, reader->raw_end);
    if (size + TN_DATA_SLACK > tn_arena_free(&reader->worker->arena)) {
        lower_block(reader);
    }
    void *memory;
    size_t taken;
    tn_rc rc = take(reader, (size_t)size, "a row", &memory, &taken, err);
    if (rc == TN_OK) {
        reader->row = memory;
        reader->row_capacity = (uint32_t)taken;
    }
    return rc;
}

/* ---- the window ---- */

tn_rc tn_data_look(struct tn_data_reader *reader, uint64_t offset, size_t size, size_t ahead,
                   struct tn_bytes *bytes, struct tn_err *err)
{
    uint64_t window_end = reader->packed_offset + reader->packed.size;
    if (offset < reader->packed_offset || offset + size > window_end) {
        uint64_t left = reader->file_size - offset;
        size_t wanted = size + ahead < left ? size + ahead : (size_t)left;
        tn_rc rc = need_window(reader, wanted, err);
        if (rc) {
            return rc;
        }
        size_t got = 0;
        reader->packed.size = 0;
        rc = reader->worker->io->vtable->read(reader->worker->io, reader->file, offset,
                                              reader->packed.data, wanted, &got, err);
        if (rc) {
            return rc;
        }
        if (got < size) {
            return tn_data_corrupt(reader, offset + got, "the file ends early", err);
        }
        reader->packed.size = got;
        reader->packed_offset = offset;
        window_end = offset + got;
    }
    *bytes = (struct tn_bytes){reader->packed.data + (offset - reader->packed_offset),
                               (size_t)(window_end - offset)};
    return TN_OK;
}

/* ---- blocks ---- */

tn_rc tn_data_block_head(struct tn_data_reader *reader, uint64_t offset,
                         struct tn_data_block_head *head, struct tn_err *err)
{
    if (offset == reader->file_size) {
        return TN_ABSENT;
    }
    uint64_t left = reader->file_size - offset;
    size_t wanted = left < HEAD_MAX ? (size_t)left : HEAD_MAX;
    struct tn_bytes bytes;
    tn_rc rc = tn_data_look(reader, offset, wanted, 0, &bytes, err);
    if (rc) {
        return rc;
    }
    int64_t size = 0;
    uint32_t head_size = 0;
    bytes.size = wanted;
    rc = tn_avro_block_decode(bytes, &head->row_count, &size, &head_size, err);
    if (rc) {
        return tn_data_corrupt(reader, offset, "no block begins here", err);
    }
    left -= head_size;
    if (head->row_count > BLOCK_SIZE_MAX || size > BLOCK_SIZE_MAX || left < SYNC_SIZE ||
        (uint64_t)size > left - SYNC_SIZE) {
        return tn_data_corrupt(reader, offset, "a block goes on behind the end of the file", err);
    }
    head->size = (size_t)size;
    head->offset = offset + head_size;
    head->next = head->offset + head->size + SYNC_SIZE;
    return TN_OK;
}

static tn_rc decompress(struct tn_data_reader *reader, struct tn_bytes packed, uint64_t offset,
                        struct tn_err *err)
{
    if (reader->header.codec == TN_CODEC_ID_NULL) {
        reader->block = packed;
        return TN_OK;
    }
    if (guesses(reader)) {
        tn_data_buffers_drop(reader, reader->raw_end); /* the row before: its place is needed */
    }
    size_t needed = guesses(reader) ? RAW_FIRST : 0; /* the others say how much, when asked */
    size_t tried = 0;
    tn_rc rc = TN_AGAIN;
    while (rc == TN_AGAIN) {
        rc = need_raw(reader, needed, tried, err);
        if (rc) {
            return rc;
        }
        tried = reader->raw.capacity;
        rc = tn_codec_decompress(&reader->worker->codec, reader->header.codec, packed,
                                 &reader->worker->arena, &reader->raw, &needed, err);
        if (rc == TN_AGAIN && needed > BLOCK_SIZE_MAX) {
            return tn_data_corrupt(reader, offset, "a block claims to be larger than any is", err);
        }
        if (rc == TN_AGAIN && needed <= tried) {
            return tn_err_in(err, "%s: byte %" PRIu64, reader->path, offset); /* no scratch */
        }
    }
    reader->block = tn_buf_bytes(&reader->raw);
    return rc ? tn_err_in(err, "%s: byte %" PRIu64, reader->path, offset) : TN_OK;
}

tn_rc tn_data_block_load(struct tn_data_reader *reader, uint64_t offset, struct tn_err *err)
{
    struct tn_data_block_head head;
    reader->rows_left = 0;
    tn_rc rc = tn_data_block_head(reader, offset, &head, err);
    if (rc) {
        return rc;
    }
    struct tn_bytes bytes;
    rc = tn_data_look(reader, head.offset, head.size + SYNC_SIZE, HEAD_MAX, &bytes, err);
    if (rc) {
        return rc;
    }
    if (memcmp(bytes.data + head.size, reader->header.sync, SYNC_SIZE) != 0) {
        return tn_data_corrupt(reader, head.offset + head.size,
                               "a block doesn't end with the file's mark", err);
    }
    rc = decompress(reader, (struct tn_bytes){bytes.data, head.size}, offset, err);
    if (rc) {
        return rc;
    }
    if ((uint64_t)head.row_count > reader->block.size) { /* no record of this file has no bytes */
        return tn_data_corrupt(reader, offset, "a block has more rows than bytes", err);
    }
    reader->cursor =
        (struct tn_avro_cursor){reader->block.data, reader->block.data + reader->block.size, false};
    reader->rows_left = head.row_count;
    reader->position = (struct tn_data_position){offset, 0};
    reader->next_block = head.next;
    if (head.row_count == 0 && reader->block.size != 0) {
        return tn_data_corrupt(reader, offset, "a block without rows has bytes", err);
    }
    return TN_OK;
}
