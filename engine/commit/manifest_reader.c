#include "commit/manifest.h"

#include <inttypes.h>

#include "base/check.h"

enum {
    HEADER_SIZE_FIRST = 4096, /* Java's schema of a manifest has 2 KB */
    BLOCK_HEAD_MAX = 20,      /* two varints */
    SYNC_SIZE = 16,
    RAW_SIZE_MIN = 4096,
    PLAN_SIZE_MAX = 16 * 1024,      /* of a schema's text and its plan; Java's take half of it */
    RAW_SIZE_MAX_FIRST = 72 * 1024, /* Java's block: 64,000 bytes and the rest of a record */
};

static tn_rc read_exactly(struct tn_manifest_reader *r, uint64_t offset, void *data, size_t size,
                          struct tn_err *err)
{
    struct tn_io *io = r->worker->io;
    size_t got;
    tn_rc rc = io->vtable->read(io, r->file, offset, data, size, &got, err);
    if (rc == TN_OK && got != size) {
        rc = tn_err_set(err, TN_CORRUPT, 0, "%s: ends at byte %" PRIu64, r->path, offset + got);
    }
    return rc;
}

static unsigned char *take(struct tn_manifest_reader *r, size_t size, struct tn_err *err)
{
    unsigned char *data = tn_arena_take_raw(&r->worker->arena, size);
    if (!data) {
        (void)tn_err_set(err, TN_AGAIN, 0, "%s: a block needs %zu bytes, %zu are free", r->path,
                         size, tn_arena_free(&r->worker->arena));
    }
    return data;
}

/* A table may choose another format for its manifests, and their names don't say so. */
static tn_rc decode_header(struct tn_manifest_reader *r, struct tn_bytes head, struct tn_err *err)
{
    static const struct {
        const char *format;
        const char *magic;
    } others[] = {{"parquet", "PAR1"}, {"orc", "ORC"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        size_t size = strlen(others[i].magic);
        if (head.size >= size && memcmp(head.data, others[i].magic, size) == 0) {
            return tn_err_set(err, TN_UNSUPPORTED, 0, "%s: %s manifests can't be read yet", r->path,
                              others[i].format);
        }
    }
    tn_rc rc = tn_avro_header_decode(head, &r->header, err);
    return rc == TN_OK || rc == TN_AGAIN ? rc : tn_err_in(err, "%s", r->path);
}

/* Reads more of the file's head until it is whole. It stays in the arena, since the plan that is
 * made from it lies behind it. */
static tn_rc read_header(struct tn_manifest_reader *r, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&r->worker->arena);
    for (size_t want = HEADER_SIZE_FIRST;; want *= 4) {
        size_t size = want < r->file_size ? want : (size_t)r->file_size;
        tn_arena_reset(&r->worker->arena, mark);
        unsigned char *data = take(r, size, err);
        if (!data) {
            return TN_AGAIN;
        }
        tn_rc rc = read_exactly(r, 0, data, size, err);
        if (rc == TN_OK) {
            rc = decode_header(r, (struct tn_bytes){data, size}, err);
        }
        bool ended = size == r->file_size || size >= TN_AVRO_HEADER_MAX;
        if (rc == TN_AGAIN && ended) {
            rc = tn_err_set(err, TN_CORRUPT, 0, "%s: the head is cut off", r->path);
        }
        if (rc != TN_AGAIN) {
            return rc;
        }
    }
}

struct block_head {
    int64_t row_count;
    size_t size;     /* bytes, packed */
    uint64_t offset; /* of the first of them */
};

static tn_rc read_block_head(struct tn_manifest_reader *r, uint64_t offset, struct block_head *head,
                             struct tn_err *err)
{
    unsigned char bytes[BLOCK_HEAD_MAX];
    uint64_t left = r->file_size - offset;
    size_t got = left < sizeof bytes ? (size_t)left : sizeof bytes;
    uint32_t head_size = 0;
    int64_t size = 0;
    tn_rc rc = read_exactly(r, offset, bytes, got, err);
    if (rc == TN_OK) {
        rc = tn_avro_block_decode((struct tn_bytes){bytes, got}, &head->row_count, &size,
                                  &head_size, err);
    }
    if (rc == TN_AGAIN || rc == TN_CORRUPT ||
        (rc == TN_OK && (left - head_size < SYNC_SIZE ||
                         (uint64_t)size > left - head_size - SYNC_SIZE || size > INT32_MAX))) {
        return tn_err_set(err, TN_CORRUPT, 0, "%s: block at byte %" PRIu64 " is cut off or damaged",
                          r->path, offset);
    }
    head->size = (size_t)size;
    head->offset = offset + head_size;
    return rc;
}

static tn_rc read_packed(struct tn_manifest_reader *r, const struct block_head *head,
                         struct tn_err *err)
{
    size_t size = head->size + SYNC_SIZE;
    TN_CHECK(size <= r->packed.capacity);
    tn_rc rc = read_exactly(r, head->offset, r->packed.data, size, err);
    if (rc == TN_OK && memcmp(r->packed.data + head->size, r->header.sync, SYNC_SIZE) != 0) {
        rc = tn_err_set(err, TN_CORRUPT, 0, "%s: no sync marker behind the block at byte %" PRIu64,
                        r->path, head->offset);
    }
    r->packed.size = head->size;
    return rc;
}

static tn_rc unpack(struct tn_manifest_reader *r, size_t *needed, struct tn_err *err)
{
    return tn_codec_decompress(&r->worker->codec, r->header.codec, tn_buf_bytes(&r->packed),
                               &r->worker->arena, &r->raw, needed, err);
}

/* The buffers for the largest block. What a block unpacks to is known only by doing it, so files of
 * several blocks are unpacked twice; in return `next` never takes memory behind the caller's back.
 */
static tn_rc make_raw(struct tn_manifest_reader *r, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&r->worker->arena);
    size_t size = r->packed.capacity * 4;
    size = size < RAW_SIZE_MIN ? RAW_SIZE_MIN : size;
    size = size > RAW_SIZE_MAX_FIRST ? RAW_SIZE_MAX_FIRST : size;
    uint64_t offset = r->header.size;
    tn_rc rc = TN_OK;
    tn_buf_init(&r->raw, take(r, size, err), size);
    if (!r->raw.data) {
        return TN_AGAIN;
    }
    while (rc == TN_OK && offset < r->file_size) {
        struct block_head head;
        size_t needed = 0;
        rc = read_block_head(r, offset, &head, err);
        if (rc == TN_OK) {
            rc = read_packed(r, &head, err);
        }
        if (rc != TN_OK) {
            return rc;
        }
        rc = unpack(r, &needed, err);
        if (rc == TN_AGAIN && needed > r->raw.capacity) {
            tn_arena_reset(&r->worker->arena, mark);
            tn_buf_init(&r->raw, take(r, needed, err), needed);
            rc = r->raw.data ? TN_OK : TN_AGAIN;
        } else if (rc == TN_OK) {
            offset = head.offset + head.size + SYNC_SIZE;
        } else {
            rc = tn_err_in(err, "%s: block at byte %" PRIu64, r->path, offset);
        }
    }
    return rc;
}

static tn_rc make_buffers(struct tn_manifest_reader *r, struct tn_err *err)
{
    size_t largest = 0;
    tn_rc rc = TN_OK;
    uint64_t offset = r->header.size;
    while (rc == TN_OK && offset < r->file_size) {
        struct block_head head;
        rc = read_block_head(r, offset, &head, err);
        if (rc == TN_OK) {
            largest = head.size > largest ? head.size : largest;
            offset = head.offset + head.size + SYNC_SIZE;
        }
    }
    if (rc != TN_OK || offset == r->header.size) {
        return rc; /* no block, no buffer */
    }
    tn_buf_init(&r->packed, take(r, largest + SYNC_SIZE, err), largest + SYNC_SIZE);
    if (!r->packed.data) {
        return TN_AGAIN;
    }
    return r->header.codec == TN_CODEC_ID_NULL ? TN_OK : make_raw(r, err);
}

/* ---- plans ---- */

tn_rc tn_plan_cache_make(struct tn_arena *arena, struct tn_plan_cache **cache, struct tn_err *err)
{
    void *memory;
    tn_rc rc =
        tn_arena_need(arena, sizeof **cache + (size_t)2 * PLAN_SIZE_MAX, "plans", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_plan_cache *made = memory;
    unsigned char *at = (unsigned char *)(made + 1);
    *made = (struct tn_plan_cache){0};
    for (size_t i = 0; i < 2; i++) {
        tn_arena_init(&made->slots[i].arena, at + i * PLAN_SIZE_MAX, PLAN_SIZE_MAX);
    }
    *cache = made;
    return TN_OK;
}

static tn_rc parse_plan(const struct tn_manifest_reader *r, struct tn_bytes schema,
                        struct tn_arena *arena, struct tn_meta_plan *plan, struct tn_err *err)
{
    static tn_rc (*const parse[])(struct tn_bytes, struct tn_arena *, struct tn_meta_plan *,
                                  struct tn_err *) = {tn_entry_plan, tn_manifest_list_plan,
                                                      tn_index_plan};
    return parse[r->kind](schema, arena, plan, err);
}

/* Puts the reader's plan into the slot, unless another reader needs what is there. */
static bool fill_slot(struct tn_plan_slot *slot, const struct tn_manifest_reader *r)
{
    struct tn_err ignored = {0};
    bool ok = slot->readers == 0;
    if (ok) {
        slot->schema = (struct tn_bytes){NULL, 0};
        tn_arena_reset(&slot->arena, 0);
        struct tn_bytes schema = tn_arena_copy(&slot->arena, r->header.schema, &ok);
        ok = ok && parse_plan(r, schema, &slot->arena, &slot->plan, &ignored) == TN_OK;
        slot->schema = ok ? schema : slot->schema;
    }
    return ok;
}

static tn_rc find_plan(struct tn_manifest_reader *r, struct tn_err *err)
{
    bool cached = r->worker->plans && r->kind != TN_MANIFEST_INDEX;
    struct tn_plan_slot *slot = cached ? &r->worker->plans->slots[r->kind] : NULL;
    struct tn_bytes schema = r->header.schema;
    if (slot &&
        ((slot->schema.size > 0 && tn_bytes_equal(slot->schema, schema)) || fill_slot(slot, r))) {
        slot->readers++;
        r->slot = slot;
        r->plan = slot->plan;
        return TN_OK;
    }
    tn_rc rc = parse_plan(r, schema, &r->worker->arena, &r->plan, err);
    return rc == TN_OK ? rc : tn_err_in(err, "%s", r->path);
}

/* ---- opening ---- */

static tn_rc prepare(struct tn_manifest_reader *r, int64_t size, struct tn_err *err)
{
    if (size >= 0 && (uint64_t)size != r->file_size) {
        return tn_err_set(err, TN_CORRUPT, 0, "%s: has %" PRIu64 " bytes, should have %" PRId64,
                          r->path, r->file_size, size);
    }
    tn_rc rc = read_header(r, err);
    if (rc == TN_OK) {
        rc = find_plan(r, err);
    }
    return rc == TN_OK ? make_buffers(r, err) : rc;
}

static tn_rc open_kind(struct tn_manifest_reader *reader, const char *path, int64_t size,
                       enum tn_manifest_kind kind, struct tn_worker *worker, struct tn_err *err)
{
    *reader = (struct tn_manifest_reader){.worker = worker,
                                          .path = path,
                                          .kind = kind,
                                          .file = -1,
                                          .mark = tn_arena_mark(&worker->arena)};
    struct tn_io *io = worker->io;
    tn_rc rc = io->vtable->open(io, path, &reader->file, &reader->file_size, err);
    if (rc != TN_OK) {
        reader->file = -1;
        return rc;
    }
    rc = prepare(reader, size, err);
    reader->offset = reader->header.size;
    if (rc != TN_OK) {
        tn_manifest_close(reader);
    }
    return rc;
}

tn_rc tn_manifest_open(struct tn_manifest_reader *reader, const char *path, int64_t size, bool list,
                       struct tn_worker *worker, struct tn_err *err)
{
    return open_kind(reader, path, size, list ? TN_MANIFEST_LIST : TN_MANIFEST_ENTRIES, worker,
                     err);
}

tn_rc tn_manifest_open_index(struct tn_manifest_reader *reader, const char *path,
                             struct tn_worker *worker, struct tn_err *err)
{
    return open_kind(reader, path, -1, TN_MANIFEST_INDEX, worker, err);
}

void tn_manifest_close(struct tn_manifest_reader *reader)
{
    if (reader->file >= 0) {
        reader->worker->io->vtable->close(reader->worker->io, reader->file);
        reader->file = -1;
        if (reader->slot) {
            reader->slot->readers--;
            reader->slot = NULL;
        }
        tn_arena_reset(&reader->worker->arena, reader->mark);
    }
}

static tn_rc load_block(struct tn_manifest_reader *r, struct tn_err *err)
{
    struct block_head head;
    size_t needed;
    const struct tn_buf *bytes = &r->packed;
    tn_rc rc = read_block_head(r, r->offset, &head, err);
    if (rc == TN_OK) {
        rc = read_packed(r, &head, err);
    }
    if (rc == TN_OK && r->header.codec != TN_CODEC_ID_NULL) {
        bytes = &r->raw;
        rc = unpack(r, &needed, err);
    }
    if (rc == TN_OK) {
        r->offset = head.offset + head.size + SYNC_SIZE;
        r->rows_left = head.row_count;
        r->cursor = (struct tn_avro_cursor){bytes->data, bytes->data + bytes->size, false};
    }
    return rc;
}

/* Stands before a record, or says ABSENT. */
static tn_rc next_record(struct tn_manifest_reader *r, struct tn_err *err)
{
    while (r->rows_left == 0) {
        if (r->cursor.at != r->cursor.end) {
            return tn_err_set(err, TN_CORRUPT, 0, "%s: bytes behind the last record of a block",
                              r->path);
        }
        if (r->offset >= r->file_size) {
            return TN_ABSENT;
        }
        tn_rc rc = load_block(r, err);
        if (rc != TN_OK) {
            return rc;
        }
    }
    r->rows_left--;
    return TN_OK;
}

/* Names of files become parts of paths: they must stay in their folders. */
static bool is_file_name(const char *name)
{
    return name && name[0] != 0 && name[0] != '.' && !strchr(name, '/');
}

static tn_rc check_name(const struct tn_manifest_reader *r, const char *name, struct tn_err *err)
{
    if (is_file_name(name)) {
        return TN_OK;
    }
    return tn_err_set(err, TN_CORRUPT, 0, "%s: '%s' is no file name", r->path, name ? name : "");
}

tn_rc tn_manifest_next_entry(struct tn_manifest_reader *reader, struct tn_arena *arena,
                             struct tn_entry *entry, struct tn_err *err)
{
    TN_CHECK(reader->kind == TN_MANIFEST_ENTRIES);
    tn_rc rc = next_record(reader, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_entry_decode(&reader->plan, &reader->cursor, arena, entry, err);
    if (rc != TN_OK) {
        return tn_err_in(err, "%s", reader->path);
    }
    rc = check_name(reader, entry->file.file_name, err);
    for (uint32_t i = 0; rc == TN_OK && i < entry->file.extra_files.count; i++) {
        rc = check_name(reader, entry->file.extra_files.items[i], err);
    }
    return rc;
}

tn_rc tn_manifest_next_meta(struct tn_manifest_reader *reader, struct tn_arena *arena,
                            struct tn_manifest_meta *meta, struct tn_err *err)
{
    TN_CHECK(reader->kind == TN_MANIFEST_LIST);
    tn_rc rc = next_record(reader, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_manifest_meta_decode(&reader->plan, &reader->cursor, arena, meta, err);
    if (rc != TN_OK) {
        return tn_err_in(err, "%s", reader->path);
    }
    return check_name(reader, meta->file_name, err);
}

tn_rc tn_manifest_next_index(struct tn_manifest_reader *reader, struct tn_arena *arena,
                             struct tn_index_entry *entry, struct tn_err *err)
{
    TN_CHECK(reader->kind == TN_MANIFEST_INDEX);
    tn_rc rc = next_record(reader, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_index_decode(&reader->plan, &reader->cursor, arena, entry, err);
    if (rc != TN_OK) {
        return tn_err_in(err, "%s", reader->path);
    }
    return check_name(reader, entry->file_name, err);
}
