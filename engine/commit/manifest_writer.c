#include "commit/manifest.h"

#include <inttypes.h>

#include "base/check.h"
#include "schema/row.h"

enum {
    BLOCK_HEAD_MAX = 20, /* two varints */
    SYNC_SIZE = 16,
};

struct tn_partition_range {
    struct tn_value min; /* when `any`; bytes are in min_bytes */
    struct tn_value max;
    bool any;
    int64_t null_count;
    unsigned char *min_bytes; /* TN_PARTITION_VALUE_MAX, columns of bytes only */
    unsigned char *max_bytes;
};

static bool is_bytes(const struct tn_type *type)
{
    return tn_type_textual(type->kind) || tn_type_binary(type->kind);
}

static tn_rc take_range(struct tn_manifest_writer *w, uint32_t i, struct tn_err *err)
{
    struct tn_arena *arena = &w->worker->arena;
    struct tn_partition_range *range = &w->partitions[i];
    w->partition_types[i] = w->schema->fields[w->schema->partition_keys.index[i]].type;
    if (!is_bytes(&w->partition_types[i])) {
        return TN_OK;
    }
    range->min_bytes = tn_arena_take_raw(arena, TN_PARTITION_VALUE_MAX);
    range->max_bytes = tn_arena_take_raw(arena, TN_PARTITION_VALUE_MAX);
    return range->max_bytes ? TN_OK
                            : tn_err_set(err, TN_AGAIN, 0, "no room for partition statistics");
}

static tn_rc take_memory(struct tn_manifest_writer *w, struct tn_err *err)
{
    struct tn_arena *arena = &w->worker->arena;
    size_t block_max = w->worker->codec.block_max;
    size_t raw = TN_MANIFEST_BLOCK_SIZE;
    if (w->codec == TN_CODEC_ID_ZSTANDARD && block_max > 0 && block_max < raw) {
        raw = block_max;
    }
    size_t packed = BLOCK_HEAD_MAX + tn_codec_bound(w->codec, raw) + SYNC_SIZE;
    uint32_t columns = w->list ? 0 : w->schema->partition_keys.count;
    tn_buf_init(&w->block, tn_arena_take_raw(arena, raw), raw);
    tn_buf_init(&w->packed, tn_arena_take_raw(arena, packed), packed);
    w->partitions = tn_arena_take(arena, columns * sizeof *w->partitions);
    w->partition_types = tn_arena_take(arena, columns * sizeof *w->partition_types);
    if (!w->block.data || !w->packed.data || !w->partitions || !w->partition_types) {
        return tn_err_set(err, TN_AGAIN, 0, "write %s: needs %zu bytes, %zu are free", w->path,
                          raw + packed, tn_arena_free(arena));
    }
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < columns; i++) {
        rc = take_range(w, i, err);
    }
    return rc;
}

static tn_rc append(struct tn_manifest_writer *w, struct tn_bytes bytes, struct tn_err *err)
{
    struct tn_io *io = w->worker->io;
    tn_rc rc = io->vtable->append(io, w->file, bytes, err);
    if (rc == TN_OK) {
        w->file_size += (int64_t)bytes.size;
    }
    return rc;
}

/* A new file and its head; what the writer knows of entries starts anew. */
static tn_rc open_file(struct tn_manifest_writer *w, struct tn_err *err)
{
    struct tn_io *io = w->worker->io;
    const char *schema = w->list ? tn_manifest_list_avro_schema : tn_entry_avro_schema;
    w->meta = (struct tn_manifest_meta){0};
    w->file_size = 0;
    w->block_rows = 0;
    for (uint32_t i = 0; !w->list && i < w->schema->partition_keys.count; i++) {
        w->partitions[i].any = false;
        w->partitions[i].null_count = 0;
    }
    for (size_t i = 0; i < SYNC_SIZE; i += 8) {
        tn_store_u64(w->sync + i, w->worker->clock->vtable->random(w->worker->clock));
    }
    tn_rc rc = io->vtable->create(io, w->path, &w->file, err);
    if (rc != TN_OK) {
        w->file = -1;
        return rc;
    }
    tn_buf_init(&w->block, w->block.data, w->block.capacity);
    tn_avro_header_encode(tn_bytes_of(schema), w->codec, w->sync, &w->block);
    rc = w->block.overflow
             ? tn_err_set(err, TN_AGAIN, 0, "write %s: the block is too small", w->path)
             : append(w, tn_buf_bytes(&w->block), err);
    w->block.size = 0;
    return rc;
}

tn_rc tn_manifest_begin(struct tn_manifest_writer *writer, const char *path, bool list,
                        const struct tn_schema *schema, enum tn_codec_id codec,
                        struct tn_worker *worker, struct tn_err *err)
{
    *writer = (struct tn_manifest_writer){.worker = worker,
                                          .path = path,
                                          .file = -1,
                                          .list = list,
                                          .codec = codec,
                                          .mark = tn_arena_mark(&worker->arena),
                                          .schema = schema};
    tn_rc rc = take_memory(writer, err);
    if (rc == TN_OK) {
        rc = open_file(writer, err);
    }
    if (rc != TN_OK) {
        tn_manifest_abort(writer);
        tn_arena_reset(&worker->arena, writer->mark);
    }
    return rc;
}

void tn_manifest_abort(struct tn_manifest_writer *writer)
{
    struct tn_io *io = writer->worker ? writer->worker->io : NULL;
    struct tn_err ignored;
    if (io && writer->file >= 0) {
        io->vtable->close(io, writer->file);
        writer->file = -1;
        (void)io->vtable->unlink(io, writer->path, &ignored);
        tn_arena_reset(&writer->worker->arena, writer->mark);
    }
}

/* The open block goes to the file: head, packed bytes, sync. The head is written to the left of
 * bytes whose size it tells. */
static tn_rc flush_block(struct tn_manifest_writer *w, struct tn_err *err)
{
    unsigned char head[BLOCK_HEAD_MAX];
    struct tn_buf packed;
    tn_buf_init(&packed, w->packed.data + BLOCK_HEAD_MAX, w->packed.capacity - BLOCK_HEAD_MAX);
    tn_rc rc = tn_codec_compress(&w->worker->codec, w->codec, tn_buf_bytes(&w->block),
                                 &w->worker->arena, &packed, err);
    if (rc != TN_OK) {
        return tn_err_in(err, "write %s", w->path);
    }
    unsigned char *end = tn_avro_put_long(head, w->block_rows);
    size_t head_size = (size_t)(tn_avro_put_long(end, (int64_t)packed.size) - head);
    tn_buf_append(&packed, w->sync, SYNC_SIZE);
    TN_CHECK(!packed.overflow);
    memcpy(packed.data - head_size, head, head_size);
    rc = append(w, (struct tn_bytes){packed.data - head_size, head_size + packed.size}, err);
    w->block.size = 0;
    w->block_rows = 0;
    return rc;
}

static bool encode(struct tn_manifest_writer *w, const struct tn_entry *entry,
                   const struct tn_manifest_meta *meta)
{
    size_t size = w->block.size;
    if (entry) {
        tn_entry_encode(entry, &w->block);
    } else {
        tn_manifest_meta_encode(meta, &w->block);
    }
    if (w->block.overflow) {
        w->block.overflow = false;
        w->block.size = size;
        return false;
    }
    w->block_rows++;
    return true;
}

static tn_rc put(struct tn_manifest_writer *w, const struct tn_entry *entry,
                 const struct tn_manifest_meta *meta, struct tn_err *err)
{
    TN_CHECK(w->file >= 0);
    if (encode(w, entry, meta)) {
        return TN_OK;
    }
    tn_rc rc = w->block_rows > 0 ? flush_block(w, err) : TN_OK;
    if (rc == TN_OK && !encode(w, entry, meta)) {
        rc = tn_err_set(err, TN_UNSUPPORTED, 0, "write %s: a record of more than %zu bytes",
                        w->path, w->block.capacity);
    }
    return rc;
}

static void set_bound(const struct tn_type *type, struct tn_value *bound, unsigned char *bytes,
                      const struct tn_value *value)
{
    *bound = *value;
    if (is_bytes(type)) {
        memcpy(bytes, value->as.bytes.data, value->as.bytes.size);
        bound->as.bytes.data = bytes;
    }
}

static tn_rc widen_range(const struct tn_type *type, struct tn_partition_range *range,
                         const struct tn_value *value, struct tn_err *err)
{
    if (value->null) {
        range->null_count++;
        return TN_OK;
    }
    if (is_bytes(type) && value->as.bytes.size > TN_PARTITION_VALUE_MAX) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "a partition value of %zu bytes, at most %d",
                          value->as.bytes.size, TN_PARTITION_VALUE_MAX);
    }
    if (!range->any || tn_value_compare(type, value, &range->min) < 0) {
        set_bound(type, &range->min, range->min_bytes, value);
    }
    if (!range->any || tn_value_compare(type, value, &range->max) > 0) {
        set_bound(type, &range->max, range->max_bytes, value);
    }
    range->any = true;
    return TN_OK;
}

static tn_rc widen_partition(struct tn_manifest_writer *w, struct tn_bytes partition,
                             struct tn_err *err)
{
    struct tn_arena *arena = &w->worker->arena;
    uint32_t count = w->schema->partition_keys.count;
    if (count == 0) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    struct tn_value *values = tn_arena_take(arena, count * sizeof *values);
    tn_rc rc = values ? tn_binary_to_values(partition, w->partition_types, count, values, err)
                      : tn_err_set(err, TN_AGAIN, 0, "no room for a partition");
    for (uint32_t i = 0; rc == TN_OK && i < count; i++) {
        rc = widen_range(&w->partition_types[i], &w->partitions[i], &values[i], err);
    }
    tn_arena_reset(arena, mark);
    return rc == TN_OK ? TN_OK : tn_err_in(err, "write %s: partition", w->path);
}

static void widen_i64(struct tn_json_i64 *min, struct tn_json_i64 *max, int64_t value)
{
    if (!min->present || value < min->value) {
        *min = (struct tn_json_i64){value, true};
    }
    if (!max->present || value > max->value) {
        *max = (struct tn_json_i64){value, true};
    }
}

tn_rc tn_manifest_add_entry(struct tn_manifest_writer *writer, const struct tn_entry *entry,
                            struct tn_err *err)
{
    TN_CHECK(!writer->list);
    struct tn_manifest_meta *meta = &writer->meta;
    tn_rc rc = widen_partition(writer, entry->partition, err);
    if (rc == TN_OK) {
        rc = put(writer, entry, NULL, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    bool first = meta->added_count + meta->deleted_count == 0;
    *(entry->kind == TN_ENTRY_ADD ? &meta->added_count : &meta->deleted_count) += 1;
    widen_i64(&meta->min_bucket, &meta->max_bucket, entry->bucket);
    widen_i64(&meta->min_level, &meta->max_level, entry->file.level);
    if (first || entry->file.schema_id > meta->schema_id) {
        meta->schema_id = entry->file.schema_id;
    }
    return TN_OK;
}

tn_rc tn_manifest_add_meta(struct tn_manifest_writer *writer, const struct tn_manifest_meta *meta,
                           struct tn_err *err)
{
    TN_CHECK(writer->list);
    return put(writer, NULL, meta, err);
}

static tn_rc close_file(struct tn_manifest_writer *w, struct tn_err *err)
{
    tn_rc rc = w->block_rows > 0 ? flush_block(w, err) : TN_OK;
    if (rc == TN_OK) {
        w->worker->io->vtable->close(w->worker->io, w->file);
        w->file = -1;
    }
    return rc;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The row of all lower or all upper bounds; a column that was always NULL is NULL. */
static tn_rc make_bounds(const struct tn_manifest_writer *w, bool upper, struct tn_value *values,
                         struct tn_arena *arena, struct tn_bytes *row, struct tn_err *err)
{
    uint32_t count = w->schema->partition_keys.count;
    size_t capacity = 64;
    for (uint32_t i = 0; i < count; i++) {
        const struct tn_partition_range *range = &w->partitions[i];
        values[i] = upper ? range->max : range->min;
        values[i].null = !range->any;
        bool bytes = range->any && is_bytes(&w->partition_types[i]);
        capacity += 48 + (bytes ? values[i].as.bytes.size : 0);
    }
    struct tn_buf buf;
    tn_buf_init(&buf, tn_arena_take_raw(arena, capacity), capacity);
    if (buf.data) {
        tn_values_to_binary(w->partition_types, values, count, &buf);
    }
    if (!buf.data || buf.overflow) {
        return tn_err_set(err, TN_AGAIN, 0, "no room for partition statistics");
    }
    *row = tn_buf_bytes(&buf);
    return TN_OK;
}

static tn_rc make_stats(const struct tn_manifest_writer *w, struct tn_arena *arena,
                        struct tn_stats *stats, struct tn_err *err)
{
    uint32_t count = w->schema->partition_keys.count;
    struct tn_value *values = tn_arena_take(arena, count * sizeof *values);
    int64_t *nulls = tn_arena_take(arena, count * sizeof *nulls);
    if (!values || !nulls) {
        return tn_err_set(err, TN_AGAIN, 0, "no room for partition statistics");
    }
    for (uint32_t i = 0; i < count; i++) {
        nulls[i] = w->partitions[i].null_count;
    }
    stats->null_counts = nulls;
    stats->null_count_count = count;
    tn_rc rc = make_bounds(w, false, values, arena, &stats->min, err);
    return rc == TN_OK ? make_bounds(w, true, values, arena, &stats->max, err) : rc;
}

static tn_rc make_meta(const struct tn_manifest_writer *w, struct tn_arena *arena,
                       struct tn_manifest_meta *meta, struct tn_err *err)
{
    TN_CHECK(!w->list);
    TN_CHECK(arena != &w->worker->arena);
    struct tn_manifest_meta made = w->meta;
    made.file_name = tn_arena_text(arena, tn_bytes_of(base_name(w->path)));
    made.file_size = w->file_size;
    if (made.added_count + made.deleted_count == 0) {
        made.schema_id = w->schema->id;
    }
    tn_rc rc = made.file_name ? make_stats(w, arena, &made.partition_stats, err)
                              : tn_err_set(err, TN_AGAIN, 0, "no room for a manifest's name");
    if (rc == TN_OK) {
        *meta = made;
    }
    return rc;
}

tn_rc tn_manifest_finish(struct tn_manifest_writer *writer, struct tn_arena *arena,
                         struct tn_manifest_meta *meta, int64_t *file_size, struct tn_err *err)
{
    tn_rc rc = close_file(writer, err);
    if (rc != TN_OK) {
        tn_manifest_abort(writer);
        return rc;
    }
    if (meta) {
        rc = make_meta(writer, arena, meta, err);
    }
    if (rc == TN_OK && file_size) {
        *file_size = writer->file_size;
    }
    if (rc != TN_OK) {
        struct tn_err ignored;
        (void)writer->worker->io->vtable->unlink(writer->worker->io, writer->path, &ignored);
    }
    tn_arena_reset(&writer->worker->arena, writer->mark);
    return rc;
}

tn_rc tn_manifest_roll(struct tn_manifest_writer *writer, const char *path_next,
                       struct tn_arena *arena, struct tn_manifest_meta *meta, struct tn_err *err)
{
    tn_rc rc = close_file(writer, err);
    if (rc == TN_OK) {
        rc = make_meta(writer, arena, meta, err);
    }
    if (rc == TN_OK) {
        writer->path = path_next;
        rc = open_file(writer, err);
    }
    return rc;
}
