#include "file/data_writer.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "file/data_schema.h"
#include "format/avro.h"

/* zlib: 268 KB for a window of 2^15 and memory level 8, and its bookkeeping. */
enum { DEFLATE_STATE_SIZE = 288 * 1024 };

enum {
    HEAD_ROOM = 20, /* of a block: two varints of at most ten bytes */
    SYNC_SIZE = 16,
    HEADER_FIXED = 128, /* container header less the schema text */
};

/* ---- rows ---- */

/* Readers merge files by key order: a row out of order would hide others for good. */
static void check_order(const struct tn_data_writer *writer, const struct tn_kv *kv)
{
    if (writer->spec.keys.count == 0 || writer->row_count == 0) {
        return;
    }
    TN_CHECK(kv->prefix >= writer->last_prefix);
    if (kv->prefix == writer->last_prefix) {
        struct tn_row last = {writer->last_row, writer->last_row_size};
        int c = tn_row_compare(writer->spec.layout, writer->spec.keys, last, kv->row);
        TN_CHECK(c < 0 || (c == 0 && writer->spec.repeated));
    }
}

static tn_rc encode_row(struct tn_data_writer *writer, const struct tn_kv *kv, struct tn_err *err)
{
    struct tn_buf *block = &writer->block;
    const unsigned char *end = tn_encode_row(writer->plan, kv, block->data + block->size);
    if (!end) {
        return tn_encode_refuse(writer->plan, kv->row, err);
    }
    block->size = (size_t)(end - block->data);
    TN_CHECK(block->size <= block->capacity);
    return TN_OK;
}

static void keep_last(struct tn_data_writer *writer, const struct tn_kv *kv)
{
    writer->last_prefix = kv->prefix;
    if (kv->row.size <= writer->last_row_room) {
        memcpy(writer->last_row, kv->row.data, kv->row.size);
        writer->last_row_size = kv->row.size;
        return;
    }
    writer->last_row_size =
        tn_data_key_copy(writer->spec.layout, writer->spec.keys, kv->row, writer->last_row);
    TN_CHECK(writer->last_row_size <= writer->last_row_room);
}

static void count_row(struct tn_data_writer *writer, const struct tn_kv *kv)
{
    if (writer->row_count == 0) {
        writer->min_sequence = writer->max_sequence = kv->sequence;
        tn_row_to_binary(writer->spec.layout, writer->spec.keys, kv->row, true, &writer->min_key);
        TN_CHECK(!writer->min_key.overflow);
    }
    if (kv->sequence < writer->min_sequence) {
        writer->min_sequence = kv->sequence;
    }
    if (kv->sequence > writer->max_sequence) {
        writer->max_sequence = kv->sequence;
    }
    writer->row_count++;
    writer->block_row_count++;
    writer->delete_row_count += tn_row_kind_retracts(kv->kind);
    if (writer->spec.keys.count > 0) {
        keep_last(writer, kv);
    }
    tn_stats_add(&writer->stats, kv->row);
}

/* ---- blocks ---- */

static tn_rc append(struct tn_data_writer *writer, struct tn_bytes bytes, struct tn_err *err)
{
    tn_rc rc = writer->io->vtable->append(writer->io, writer->file, bytes, err);
    if (rc == TN_OK) {
        writer->file_size += (int64_t)bytes.size;
    }
    return rc;
}

/* The block is compressed behind room for its head, so that head, block and sync go out in one
 * piece. */
static tn_rc end_block(struct tn_data_writer *writer, struct tn_err *err)
{
    if (writer->block_row_count == 0) {
        return TN_OK;
    }
    struct tn_buf *packed = &writer->packed;
    packed->size = HEAD_ROOM;
    tn_rc rc = tn_codec_compress(&writer->worker->codec, writer->spec.options->codec,
                                 tn_buf_bytes(&writer->block), &writer->worker->arena, packed, err);
    if (rc) {
        return tn_err_in(err, "%s", writer->path);
    }
    unsigned char head[HEAD_ROOM];
    unsigned char *end = tn_avro_put_long(head, writer->block_row_count);
    end = tn_avro_put_long(end, (int64_t)(packed->size - HEAD_ROOM));
    size_t head_size = (size_t)(end - head);
    memcpy(packed->data + HEAD_ROOM - head_size, head, head_size);
    tn_buf_append(packed, writer->sync, SYNC_SIZE);
    TN_CHECK(!packed->overflow);
    struct tn_bytes bytes = {packed->data + HEAD_ROOM - head_size,
                             packed->size - HEAD_ROOM + head_size};
    rc = append(writer, bytes, err);
    writer->block.size = 0;
    writer->block_row_count = 0;
    return rc;
}

/* ---- memory ---- */

static size_t rounded(size_t size)
{
    size_t align = _Alignof(max_align_t);
    return (size + align - 1) & ~(align - 1);
}

static size_t packed_max(size_t raw_size)
{
    size_t size = raw_size;
    static const enum tn_codec_id written[] = {TN_CODEC_ID_DEFLATE, TN_CODEC_ID_ZSTANDARD};
    for (size_t i = 0; i < sizeof written / sizeof written[0]; i++) {
        size_t bound = tn_codec_bound(written[i], raw_size);
        size = bound > size ? bound : size;
    }
    return HEAD_ROOM + size + SYNC_SIZE;
}

static size_t binary_key_max(const struct tn_row_layout *layout, size_t row_size)
{
    size_t count = layout->column_count;
    return 4 + (count + 71) / 64 * 8 + count * (8 + 16 + 8) + row_size;
}

static uint32_t key_size_max(uint32_t row_size_max)
{
    return row_size_max < TN_DATA_KEY_MAX ? row_size_max : TN_DATA_KEY_MAX;
}

static tn_rc take_buffers(struct tn_data_writer *writer, struct tn_worker *worker,
                          struct tn_err *err)
{
    size_t raw = tn_data_writer_block_max(writer->spec.layout, writer->spec.block_size,
                                          writer->row_size_max);
    size_t packed = packed_max(raw);
    size_t size = rounded(raw) + packed;
    size_t scratch = tn_stats_scratch_size(writer->spec.layout, writer->spec.options);
    void *memory = NULL;
    writer->buffers_size = size > scratch ? size : scratch;
    tn_rc rc =
        tn_arena_need(&worker->arena, writer->buffers_size, "a writer's blocks", &memory, err);
    if (rc) {
        return rc;
    }
    tn_buf_init(&writer->block, memory, raw);
    tn_buf_init(&writer->packed, (unsigned char *)memory + rounded(raw), packed);
    writer->worker = worker;
    return TN_OK;
}

static tn_rc take_state(struct tn_data_writer *writer, struct tn_arena *state, struct tn_err *err)
{
    const struct tn_data_writer_spec *spec = &writer->spec;
    size_t key_size = binary_key_max(spec->layout, writer->key_size_max);
    writer->last_row_room = spec->layout->fixed_size + writer->key_size_max;
    writer->path = tn_arena_format(state, "%s%s", spec->dir, spec->name);
    unsigned char *key = tn_arena_take_raw(state, key_size);
    writer->last_row = tn_arena_take_raw(state, writer->last_row_room);
    if (!writer->path || !key || !writer->last_row) {
        return tn_err_set(err, TN_AGAIN, 0, "a writer's state: the arena is full");
    }
    tn_buf_init(&writer->min_key, key, key_size);
    tn_rc rc = tn_stats_init(&writer->stats, spec->layout, spec->options, state, err);
    return rc ? rc
              : tn_encode_plan_make(spec->layout, spec->keys, spec->options->thin_mode, state,
                                    &writer->plan, err);
}

/* ---- the file ---- */

static tn_rc create(struct tn_data_writer *writer, struct tn_err *err)
{
    struct tn_io *io = writer->io;
    tn_rc rc = io->vtable->create(io, writer->path, &writer->file, err);
    if (rc != TN_ABSENT) {
        return rc;
    }
    rc = io->vtable->make_dir(io, writer->spec.dir, err);
    return rc ? rc : io->vtable->create(io, writer->path, &writer->file, err);
}

/* The head of the file, made in the worker's arena, which is left as it was. */
static tn_rc make_head(struct tn_data_writer *writer, struct tn_worker *worker, struct tn_buf *head,
                       struct tn_err *err)
{
    struct tn_bytes text;
    tn_rc rc =
        tn_data_avro_schema(writer->spec.schema, writer->spec.options, &worker->arena, &text, err);
    if (rc) {
        return rc;
    }
    void *memory = NULL;
    rc = tn_arena_need(&worker->arena, text.size + HEADER_FIXED, "a file's head", &memory, err);
    if (rc) {
        return rc;
    }
    tn_buf_init(head, memory, text.size + HEADER_FIXED);
    tn_store_u64(writer->sync, worker->clock->vtable->random(worker->clock));
    tn_store_u64(writer->sync + 8, worker->clock->vtable->random(worker->clock));
    tn_avro_header_encode(text, writer->spec.options->codec, writer->sync, head);
    TN_CHECK(!head->overflow);
    return TN_OK;
}

static tn_rc write_head(struct tn_data_writer *writer, struct tn_worker *worker, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&worker->arena);
    struct tn_buf head;
    tn_rc rc = make_head(writer, worker, &head, err);
    if (rc == TN_OK) {
        rc = create(writer, err);
    }
    if (rc == TN_OK) {
        rc = append(writer, tn_buf_bytes(&head), err);
        if (rc) {
            tn_data_writer_abort(writer);
        }
    }
    tn_arena_reset(&worker->arena, mark);
    return rc;
}

static tn_rc max_key(const struct tn_data_writer *writer, struct tn_arena *arena,
                     struct tn_bytes *key, struct tn_err *err)
{
    size_t size = binary_key_max(writer->spec.layout, writer->last_row_size);
    void *memory = NULL;
    tn_rc rc = tn_arena_need(arena, size, "a file's last key", &memory, err);
    if (rc) {
        return rc;
    }
    struct tn_buf buf;
    tn_buf_init(&buf, memory, size);
    struct tn_row last = {writer->last_row, writer->last_row_size};
    tn_row_to_binary(writer->spec.layout, writer->spec.keys, last, true, &buf);
    TN_CHECK(!buf.overflow);
    *key = tn_buf_bytes(&buf);
    return TN_OK;
}

static tn_rc describe(const struct tn_data_writer *writer, struct tn_arena *arena,
                      struct tn_file_meta *meta, struct tn_err *err)
{
    struct tn_clock *clock = writer->worker->clock;
    bool copied = false;
    struct tn_file_meta out = {
        .file_name = tn_arena_text(arena, tn_bytes_of(writer->spec.name)),
        .file_size = writer->file_size,
        .row_count = writer->row_count,
        .min_key = tn_arena_copy(arena, tn_buf_bytes(&writer->min_key), &copied),
        .min_sequence = writer->min_sequence,
        .max_sequence = writer->max_sequence,
        .schema_id = writer->spec.schema->id,
        .level = writer->spec.level,
        .extra_files = {.present = true},
        .creation_time_ms = {clock->vtable->local_ms(clock), true},
        .delete_row_count = {writer->delete_row_count, true},
        .file_source = {writer->spec.source, true},
    };
    if (!out.file_name || !copied) {
        return tn_err_set(err, TN_AGAIN, 0, "%s: no room to describe it", writer->path);
    }
    struct tn_arena scratch; /* its blocks are in the file */
    tn_arena_init(&scratch, writer->block.data, writer->buffers_size);
    tn_rc rc = max_key(writer, arena, &out.max_key, err);
    if (rc == TN_OK) {
        rc =
            tn_stats_finish(&writer->stats, writer->spec.options, writer->spec.keys, arena,
                            &scratch, &out.value_stats, &out.value_stats_cols, &out.key_stats, err);
    }
    if (rc == TN_OK) {
        *meta = out;
    }
    return rc;
}

static void close_file(struct tn_data_writer *writer)
{
    if (writer->file >= 0) {
        writer->io->vtable->close(writer->io, writer->file);
        writer->file = -1;
    }
}

/* ---- public ---- */

/* Room behind a block that is just not full for one more row, or for a long row alone. */
size_t tn_data_writer_block_max(const struct tn_row_layout *layout, uint32_t block_size,
                                uint32_t row_size_max)
{
    uint32_t behind = row_size_max < block_size ? row_size_max : block_size;
    size_t shared = block_size + tn_encode_max(layout, behind + (size_t)key_size_max(behind));
    size_t alone = tn_encode_max(layout, row_size_max + (size_t)key_size_max(row_size_max));
    return shared > alone ? shared : alone;
}

size_t tn_data_writer_size(const struct tn_row_layout *layout, const struct tn_options *options,
                           uint32_t block_size, uint32_t row_size_max)
{
    size_t raw = tn_data_writer_block_max(layout, block_size, row_size_max);
    size_t buffers = rounded(raw) + rounded(packed_max(raw));
    size_t scratch = tn_stats_scratch_size(layout, options);
    buffers = buffers > scratch ? buffers : scratch;
    size_t head = 2 * tn_data_avro_schema_max(layout) + HEADER_FIXED + 2 * _Alignof(max_align_t);
    size_t codec = options->codec == TN_CODEC_ID_DEFLATE ? DEFLATE_STATE_SIZE : 0;
    return (buffers > head ? buffers : head) + codec + _Alignof(max_align_t);
}

size_t tn_data_writer_state_size(const struct tn_row_layout *layout,
                                 const struct tn_options *options, uint32_t row_size_max)
{
    return tn_stats_size(layout, options) + tn_encode_plan_size(layout) +
           rounded(binary_key_max(layout, key_size_max(row_size_max))) +
           rounded(layout->fixed_size + key_size_max(row_size_max)) + TN_DATA_PATH_MAX +
           2 * _Alignof(max_align_t);
}

tn_rc tn_data_writer_begin(struct tn_data_writer *writer, const struct tn_data_writer_spec *spec,
                           struct tn_worker *worker, uint32_t row_size_max, struct tn_arena *state,
                           struct tn_err *err)
{
    *writer = (struct tn_data_writer){.spec = *spec,
                                      .io = worker->io,
                                      .file = -1,
                                      .row_size_max = row_size_max,
                                      .key_size_max = key_size_max(row_size_max),
                                      .record_fixed = tn_encode_max(spec->layout, 0)};
    if (strlen(spec->dir) + strlen(spec->name) >= TN_DATA_PATH_MAX) {
        return tn_err_set(err, TN_INVALID, 0, "%s%s: a path of more than %d bytes", spec->dir,
                          spec->name, TN_DATA_PATH_MAX);
    }
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc = take_state(writer, state, err);
    if (rc == TN_OK) {
        rc = write_head(writer, worker, err);
    }
    if (rc) {
        return rc;
    }
    rc = take_buffers(writer, worker, err);
    if (rc) {
        tn_data_writer_abort(writer);
        tn_arena_reset(&worker->arena, mark);
    }
    return rc;
}

static tn_rc check_size(const struct tn_data_writer *writer, struct tn_row row, struct tn_err *err)
{
    if (row.size > writer->row_size_max) {
        return tn_err_set(err, TN_INVALID, 0, "a row of %" PRIu32 " bytes, at most %" PRIu32,
                          row.size, writer->row_size_max);
    }
    if (row.size > writer->key_size_max) {
        uint32_t size = tn_data_key_size(writer->spec.layout, writer->spec.keys, row);
        if (size > writer->key_size_max) {
            return tn_err_set(err, TN_INVALID, 0, "a key of %" PRIu32 " bytes, at most %" PRIu32,
                              size, writer->key_size_max);
        }
    }
    return TN_OK;
}

static bool has_room(const struct tn_data_writer *writer, uint32_t row_size)
{
    uint32_t key = row_size < writer->key_size_max ? row_size : writer->key_size_max;
    size_t record = writer->record_fixed + row_size + key;
    return record <= writer->block.capacity - writer->block.size;
}

/* Shorter rows fit behind any block that is not full, and their keys are no longer than they. */
static tn_rc prepare_long(struct tn_data_writer *writer, struct tn_row row, struct tn_err *err)
{
    tn_rc rc = check_size(writer, row, err);
    return rc == TN_OK && !has_room(writer, row.size) ? end_block(writer, err) : rc;
}

tn_rc tn_data_writer_add(struct tn_data_writer *writer, const struct tn_kv *kv, struct tn_err *err)
{
    TN_CHECK(writer->worker != NULL);
    tn_rc rc = TN_OK;
    if (kv->row.size > writer->key_size_max || kv->row.size > writer->spec.block_size) {
        rc = prepare_long(writer, kv->row, err);
    }
    if (rc) {
        return rc;
    }
    check_order(writer, kv);
    rc = encode_row(writer, kv, err);
    if (rc) {
        return rc;
    }
    count_row(writer, kv);
    return writer->block.size >= writer->spec.block_size ? end_block(writer, err) : TN_OK;
}

tn_rc tn_data_writer_rest(struct tn_data_writer *writer, struct tn_err *err)
{
    TN_CHECK(writer->worker != NULL);
    tn_rc rc = end_block(writer, err);
    close_file(writer);
    writer->worker = NULL;
    return rc;
}

tn_rc tn_data_writer_wake(struct tn_data_writer *writer, struct tn_worker *worker,
                          struct tn_err *err)
{
    TN_CHECK(writer->worker == NULL);
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc = take_buffers(writer, worker, err);
    if (rc) {
        return rc;
    }
    rc = writer->io->vtable->reopen(writer->io, writer->path, (uint64_t)writer->file_size,
                                    &writer->file, err);
    if (rc) {
        writer->file = -1;
        writer->worker = NULL;
        tn_arena_reset(&worker->arena, mark);
    }
    return rc;
}

tn_rc tn_data_writer_finish(struct tn_data_writer *writer, struct tn_arena *arena,
                            struct tn_file_meta *meta, struct tn_err *err)
{
    TN_CHECK(writer->worker != NULL);
    TN_CHECK(writer->row_count > 0);
    tn_rc rc = end_block(writer, err);
    if (rc == TN_OK) {
        rc = describe(writer, arena, meta, err);
    }
    if (rc == TN_OK) {
        close_file(writer);
        writer->worker = NULL;
    }
    return rc;
}

/* The file may be gone already, and nobody refers to it: nothing to report. */
void tn_data_writer_abort(struct tn_data_writer *writer)
{
    struct tn_err ignored;
    close_file(writer);
    if (writer->path) {
        (void)writer->io->vtable->unlink(writer->io, writer->path, &ignored);
    }
    writer->worker = NULL;
}
