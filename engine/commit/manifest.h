/* manifest: manifests, manifest lists and index manifests as streams of records over a file.
 *
 * A reader holds one block at a time: its memory is two blocks and the plan, whatever the file's
 * size. A record that `next` gave lives in the arena it was given; the caller marks and resets.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "file/meta.h"
#include "file/worker.h"
#include "schema/schema.h"

/* How the manifests (and the lists) read last are decoded. Files of one writer all have the same
 * schema, which takes longer to parse than the file to read. One a worker; NULL: none. */
struct tn_plan_slot {
    struct tn_arena arena;
    struct tn_bytes schema; /* the text; empty: nothing is kept */
    struct tn_meta_plan plan;
    uint32_t readers; /* open ones that use it */
};
struct tn_plan_cache {
    struct tn_plan_slot slots[2]; /* manifests, lists */
};
TN_MUST_USE tn_rc tn_plan_cache_make(struct tn_arena *arena, struct tn_plan_cache **cache,
                                     struct tn_err *err);

enum tn_manifest_kind { TN_MANIFEST_ENTRIES, TN_MANIFEST_LIST, TN_MANIFEST_INDEX };

struct tn_manifest_reader {
    struct tn_worker *worker;
    const char *path; /* the caller's, until close */
    enum tn_manifest_kind kind;
    int file; /* -1: closed */
    uint64_t file_size;
    uint64_t offset; /* of the next block */
    struct tn_avro_header header;
    struct tn_meta_plan plan;
    struct tn_plan_slot *slot; /* whose plan it is, or NULL: its own */
    struct tn_buf packed;
    struct tn_buf raw;
    struct tn_avro_cursor cursor;
    int64_t rows_left;
    size_t mark; /* of the worker's arena, restored by close */
};

/* A size that a snapshot or list may say, or -1. */
static inline int64_t tn_manifest_size(struct tn_json_i64 size)
{
    return size.present ? size.value : -1;
}

/* Opens a manifest (`list` false) or a manifest list. `size` is what the snapshot or list says, or
 * -1; a file of another size is CORRUPT. Buffers come from the worker's arena and stay there until
 * close: readers close in reverse order of opening. They are made for the file's largest block at
 * once, which is looked for, so `next` takes nothing but the record: it may well go to the worker's
 * arena, too. After an error there is nothing to close. */
TN_MUST_USE tn_rc tn_manifest_open(struct tn_manifest_reader *reader, const char *path,
                                   int64_t size, bool list, struct tn_worker *worker,
                                   struct tn_err *err);
/* An index manifest, whose size nobody says. */
TN_MUST_USE tn_rc tn_manifest_open_index(struct tn_manifest_reader *reader, const char *path,
                                         struct tn_worker *worker, struct tn_err *err);
/* ABSENT at the end. */
TN_MUST_USE tn_rc tn_manifest_next_entry(struct tn_manifest_reader *reader, struct tn_arena *arena,
                                         struct tn_entry *entry, struct tn_err *err);
TN_MUST_USE tn_rc tn_manifest_next_meta(struct tn_manifest_reader *reader, struct tn_arena *arena,
                                        struct tn_manifest_meta *meta, struct tn_err *err);
TN_MUST_USE tn_rc tn_manifest_next_index(struct tn_manifest_reader *reader, struct tn_arena *arena,
                                         struct tn_index_entry *entry, struct tn_err *err);
void tn_manifest_close(struct tn_manifest_reader *reader);

enum {
    TN_MANIFEST_BLOCK_SIZE =
        64 * 1024,                 /* raw bytes; Java cuts at 64,000. No record may be larger */
    TN_PARTITION_VALUE_MAX = 1024, /* bytes of a text in a partition: it is a folder's name */
};

/* Writes a manifest or a list, record by record, blocks of 64 KB raw; keeps what a list must say of
 * it. */
struct tn_manifest_writer {
    struct tn_worker *worker;
    const char *path; /* the caller's, until finish, roll or abort */
    int file;         /* -1: there is nothing to finish or abort */
    bool list;
    enum tn_codec_id codec;
    unsigned char sync[16];
    struct tn_buf block;
    struct tn_buf packed;
    int64_t block_rows;
    int64_t file_size; /* bytes written so far, less the open block */
    size_t mark;
    /* of the entries written so far */
    const struct tn_schema *schema;
    struct tn_manifest_meta meta;
    struct tn_type *partition_types;
    struct tn_partition_range *partitions; /* manifest.c: min, max, nulls a partition column */
};

/* `schema` gives the partition columns. After an error there is nothing to abort. */
TN_MUST_USE tn_rc tn_manifest_begin(struct tn_manifest_writer *writer, const char *path, bool list,
                                    const struct tn_schema *schema, enum tn_codec_id codec,
                                    struct tn_worker *worker, struct tn_err *err);
TN_MUST_USE tn_rc tn_manifest_add_entry(struct tn_manifest_writer *writer,
                                        const struct tn_entry *entry, struct tn_err *err);
TN_MUST_USE tn_rc tn_manifest_add_meta(struct tn_manifest_writer *writer,
                                       const struct tn_manifest_meta *meta, struct tn_err *err);
/* Closes the file (not synced). `meta`, if wanted, is made in `arena` (name without folder), which
 * is not the worker's: that one is back where it was at begin, so writers and readers nest. After
 * an error the file is gone. */
TN_MUST_USE tn_rc tn_manifest_finish(struct tn_manifest_writer *writer, struct tn_arena *arena,
                                     struct tn_manifest_meta *meta, int64_t *file_size,
                                     struct tn_err *err);
/* The same, and the next file begins in the same memory: for entries that come from readers which
 * were opened after the writer. */
TN_MUST_USE tn_rc tn_manifest_roll(struct tn_manifest_writer *writer, const char *path_next,
                                   struct tn_arena *arena, struct tn_manifest_meta *meta,
                                   struct tn_err *err);
void tn_manifest_abort(struct tn_manifest_writer *writer); /* removes the file; twice is harmless */
