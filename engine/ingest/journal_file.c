#include "ingest/journal_file.h"

#include <inttypes.h>
#include <lz4.h>
#include <stdio.h>

#include "base/check.h"
#include "base/hash.h"

enum { NAME_SIZE = 20 };

/* ---- names ---- */

void tn_journal_path(char path[TN_JOURNAL_PATH_SIZE], uint64_t first)
{
    int size =
        snprintf(path, TN_JOURNAL_PATH_SIZE, TN_JOURNAL_FOLDER "%0*" PRIu64, NAME_SIZE, first);
    TN_CHECK(size > 0 && size < TN_JOURNAL_PATH_SIZE);
}

/* Twenty digits; other names are nobody's. */
static bool parse_name(const char *name, uint64_t *first)
{
    uint64_t value = 0;
    for (int i = 0; i < NAME_SIZE; i++) {
        if (name[i] < '0' || name[i] > '9' || value > TN_JOURNAL_PLACE_MAX / 10) {
            return false;
        }
        value = value * 10 + (uint64_t)(name[i] - '0');
    }
    *first = value;
    return name[NAME_SIZE] == 0;
}

struct search {
    uint64_t from;
    uint64_t found;
};

static tn_rc look_at_name(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct search *search = user;
    uint64_t first;
    (void)err;
    if (!is_dir && parse_name(name, &first) && first >= search->from && first < search->found) {
        search->found = first;
    }
    return TN_OK;
}

tn_rc tn_journal_find(struct tn_io *io, uint64_t from, uint64_t *first, struct tn_err *err)
{
    struct search search = {from, UINT64_MAX};
    tn_rc rc = io->vtable->list(io, TN_JOURNAL_FOLDER, look_at_name, &search, err);
    if (rc) {
        return tn_err_named(err, rc);
    }
    if (search.found == UINT64_MAX) {
        return tn_err_set(err, TN_ABSENT, 0, "no further file of the journal");
    }
    *first = search.found;
    return TN_OK;
}

/* ---- heads ---- */

/* CORRUPT where the file is shorter: the caller asks for what must be there. */
static tn_rc read_whole(struct tn_io *io, int file, uint64_t at, void *data, size_t size,
                        struct tn_err *err)
{
    size_t got = 0;
    tn_rc rc = io->vtable->read(io, file, at, data, size, &got, err);
    if (rc == TN_OK && got < size) {
        rc = tn_err_set(err, TN_CORRUPT, 0, "byte %" PRIu64 ": the file ends", at + got);
    }
    return rc;
}

static tn_rc read_head(struct tn_io *io, int file, uint64_t first, uint64_t size,
                       struct tn_journal_head *head, struct tn_err *err)
{
    unsigned char bytes[TN_JOURNAL_HEAD_SIZE];
    tn_rc rc = read_whole(io, file, 0, bytes, sizeof bytes, err);
    if (rc == TN_OK) {
        rc = tn_journal_head_decode(bytes, head, err);
    }
    if (rc == TN_OK && head->first != first) {
        rc = tn_err_set(err, TN_CORRUPT, 0, "byte 32: the head is of file %" PRIu64, head->first);
    }
    if (rc == TN_OK && head->memos_size > size - TN_JOURNAL_HEAD_SIZE) {
        rc = tn_err_set(err, TN_CORRUPT, 0, "byte 24: %u bytes of memos in a file of %" PRIu64,
                        head->memos_size, size);
    }
    return rc;
}

tn_rc tn_journal_head_read(struct tn_io *io, uint64_t first, struct tn_journal_head *head,
                           uint64_t *size, struct tn_err *err)
{
    char path[TN_JOURNAL_PATH_SIZE];
    int file = -1;
    uint64_t file_size = 0;
    tn_journal_path(path, first);
    tn_rc rc = io->vtable->open(io, path, &file, &file_size, err);
    if (rc) {
        return tn_err_named(err, rc);
    }
    rc = read_head(io, file, first, file_size, head, err);
    io->vtable->close(io, file);
    if (rc) {
        return tn_err_in(err, "%s", path);
    }
    if (size) {
        *size = file_size;
    }
    return TN_OK;
}

/* ---- blocks ---- */

static tn_rc take_blocks(struct tn_journal_walk *walk, struct tn_arena *arena, struct tn_err *err)
{
    void *stored = NULL;
    void *raw = NULL;
    tn_rc rc = tn_arena_need(arena, walk->head.block_size, "a block of the journal", &stored, err);
    if (rc == TN_OK) {
        rc = tn_arena_need(arena, walk->head.block_size, "a block of the journal", &raw, err);
    }
    walk->stored_memory = stored;
    walk->raw_memory = raw;
    return rc;
}

tn_rc tn_journal_walk_open(struct tn_journal_walk *walk, struct tn_io *io, uint64_t first,
                           struct tn_arena *arena, struct tn_err *err)
{
    *walk = (struct tn_journal_walk){.io = io, .file = -1};
    tn_journal_path(walk->path, first);
    tn_rc rc = io->vtable->open(io, walk->path, &walk->file, &walk->size, err);
    if (rc) {
        return tn_err_named(err, rc);
    }
    rc = read_head(io, walk->file, first, walk->size, &walk->head, err);
    if (rc == TN_OK) {
        rc = take_blocks(walk, arena, err);
    }
    if (rc) {
        tn_journal_walk_close(walk);
        return tn_err_in(err, "%s", walk->path);
    }
    walk->at = TN_JOURNAL_HEAD_SIZE + walk->head.memos_size;
    walk->chain = walk->head.after;
    return TN_OK;
}

void tn_journal_walk_close(struct tn_journal_walk *walk)
{
    if (walk->file >= 0) {
        walk->io->vtable->close(walk->io, walk->file);
        walk->file = -1;
    }
}

tn_rc tn_journal_walk_damage(const struct tn_journal_walk *walk, const char *what,
                             struct tn_err *err)
{
    return tn_err_set(err, TN_CORRUPT, 0, "%s: byte %" PRIu64 ": %s", walk->path, walk->at, what);
}

tn_rc tn_journal_walk_memos(struct tn_journal_walk *walk, struct tn_arena *arena,
                            struct tn_bytes *memos, struct tn_err *err)
{
    void *data = NULL;
    size_t size = walk->head.memos_size;
    tn_rc rc = tn_arena_need(arena, size, "memos of the journal", &data, err);
    if (rc == TN_OK) {
        rc = read_whole(walk->io, walk->file, TN_JOURNAL_HEAD_SIZE, data, size, err);
    }
    if (rc) {
        return tn_err_in(err, "%s", walk->path);
    }
    struct tn_bytes got = {data, size};
    if (tn_hash_crc32(got) != walk->head.memos_crc) {
        return tn_err_set(err, TN_CORRUPT, 0, "%s: byte %d: memos are damaged", walk->path,
                          TN_JOURNAL_HEAD_SIZE);
    }
    *memos = got;
    return TN_OK;
}

/* What may be a block's head, at the front of what was read. */
static bool block_follows(const struct tn_journal_walk *walk, const unsigned char *bytes,
                          size_t size, struct tn_journal_block_head *block)
{
    return size >= TN_JOURNAL_BLOCK_HEAD_SIZE &&
           tn_journal_block_head_decode(bytes, walk->head.identity, block);
}

static bool fits(const struct tn_journal_walk *walk, const struct tn_journal_block_head *block)
{
    bool first = walk->at == TN_JOURNAL_HEAD_SIZE + walk->head.memos_size;
    return block->after == walk->chain && (!first || block->first == walk->head.first) &&
           block->raw_size <= walk->head.block_size &&
           block->stored_size <= walk->size - walk->at - TN_JOURNAL_BLOCK_HEAD_SIZE;
}

static tn_rc unpack(struct tn_journal_walk *walk, const struct tn_journal_block_head *block,
                    struct tn_err *err)
{
    const unsigned char *raw = walk->stored_memory;
    if (block->stored_size < block->raw_size) {
        int size = LZ4_decompress_safe((const char *)walk->stored_memory, (char *)walk->raw_memory,
                                       (int)block->stored_size, (int)block->raw_size);
        if (size != (int)block->raw_size) {
            return tn_journal_walk_damage(walk, "the block can't be decompressed", err);
        }
        raw = walk->raw_memory;
    }
    walk->raw = (struct tn_bytes){raw, block->raw_size};
    return TN_OK;
}

/* ABSENT: the checksum says that it is not whole. */
static tn_rc read_block(struct tn_journal_walk *walk, const struct tn_journal_block_head *block,
                        struct tn_err *err)
{
    size_t got = 0;
    tn_rc rc = walk->io->vtable->read(walk->io, walk->file, walk->at + TN_JOURNAL_BLOCK_HEAD_SIZE,
                                      walk->stored_memory, block->stored_size, &got, err);
    if (rc) {
        return tn_err_in(err, "%s", walk->path);
    }
    struct tn_bytes stored = {walk->stored_memory, got};
    if (got < block->stored_size || tn_hash_crc32(stored) != block->crc) {
        return tn_err_set(err, TN_ABSENT, 0, "no whole block");
    }
    return unpack(walk, block, err);
}

tn_rc tn_journal_walk_next(struct tn_journal_walk *walk, uint64_t from, struct tn_err *err)
{
    unsigned char bytes[TN_JOURNAL_BLOCK_HEAD_SIZE];
    struct tn_journal_block_head block;
    size_t got = 0;
    walk->raw = (struct tn_bytes){0};
    tn_rc rc =
        walk->io->vtable->read(walk->io, walk->file, walk->at, bytes, sizeof bytes, &got, err);
    if (rc) {
        return tn_err_in(err, "%s", walk->path);
    }
    if (!block_follows(walk, bytes, got, &block) || !fits(walk, &block)) {
        return tn_err_set(err, TN_ABSENT, 0, "no whole block");
    }
    if (block.first + block.count > from) {
        rc = read_block(walk, &block, err);
        if (rc) {
            return rc;
        }
    }
    walk->block = block;
    walk->at += TN_JOURNAL_BLOCK_HEAD_SIZE + block.stored_size;
    walk->chain = block.first + block.count;
    return TN_OK;
}

/* A block whose places come later than those that are missing was written after those were synced:
 * one is written at a time. An older one is what the disk had there before. */
static bool later_block_in(const struct tn_journal_walk *walk, const unsigned char *data,
                           size_t size)
{
    struct tn_journal_block_head block;
    for (size_t at = 0; at + TN_JOURNAL_BLOCK_HEAD_SIZE <= size; at++) {
        if (block_follows(walk, data + at, size - at, &block) && block.after > walk->chain) {
            return true;
        }
    }
    return false;
}

tn_rc tn_journal_walk_end(struct tn_journal_walk *walk, struct tn_err *err)
{
    unsigned char data[1024];
    size_t got = sizeof data;
    bool first = walk->at == TN_JOURNAL_HEAD_SIZE + walk->head.memos_size;
    if (first && walk->head.block_count > 0) {
        return tn_journal_walk_damage(walk, "the first block is damaged", err);
    }
    for (uint64_t at = walk->at; got == sizeof data; at += got - TN_JOURNAL_BLOCK_HEAD_SIZE + 1) {
        tn_rc rc = walk->io->vtable->read(walk->io, walk->file, at, data, sizeof data, &got, err);
        if (rc) {
            return tn_err_in(err, "%s", walk->path);
        }
        if (later_block_in(walk, data, got)) {
            return tn_journal_walk_damage(walk, "a block is damaged, and later ones are there",
                                          err);
        }
    }
    return TN_OK;
}
