/* find: all versions of one key in a snapshot, file by file.
 *
 *     key -> predicate -> plan: one bucket, files whose key range holds the key
 *                           -> in each, newest first: seek -> its version -> taken
 *
 * Manifests are passed over by partition, entries by partition, bucket and key range, so memory is
 * that of the files that may hold the key. What the versions make is for whoever takes them:
 * lookup, history.
 */
#pragma once

#include "file/data_reader.h"
#include "read/scan.h"

struct tn_find_taker {
    /* A version and where it is; they live until the call ends. A `kv->bad` is the taker's to look
     * at. */
    tn_rc (*take)(void *user, const struct tn_kv *kv, const struct tn_level_file *file,
                  const char *dir, struct tn_err *err);
    /* True: neither this file nor any with older numbers is to be opened. NULL: all are. */
    bool (*enough)(void *user, const struct tn_level_file *file);
    void *user;
};

struct tn_find {
    struct tn_scan_spec spec;   /* with the key as its predicate */
    const struct tn_value *key; /* trimmed: the order of a file's key */
    struct tn_projection *projection;
    struct tn_arena *arena;
    struct tn_worker *worker;
    struct tn_find_taker taker;
    struct tn_data_reader reader;
    uint32_t file_count; /* that were opened */
};

/* `key` is one value for each of the schema's primary keys, in their order; its bytes are read
 * until the last call. `arena` holds the projection, which is made here. spec->predicate doesn't
 * count. INVALID: the table has no primary key. */
TN_MUST_USE tn_rc tn_find_init(struct tn_find *find, const struct tn_scan_spec *spec,
                               const struct tn_value *key, struct tn_projection *projection,
                               struct tn_arena *arena, struct tn_worker *worker,
                               struct tn_err *err);

/* `window` holds the plan's files meanwhile. */
TN_MUST_USE tn_rc tn_find_run(struct tn_find *find, void *window, size_t window_size,
                              struct tn_err *err);

/* One of the versions that were kept, as a cursor of one row. */
struct tn_find_version {
    struct tn_iter iter; /* first */
    struct tn_kv kv;     /* its row stands behind the struct */
    bool given;
    struct tn_find_version *next;
};

/* A copy of `kv` in the arena; AGAIN when it is full. */
TN_MUST_USE tn_rc tn_find_keep(const struct tn_kv *kv, struct tn_arena *arena,
                               struct tn_find_version **version, struct tn_err *err);

/* Folds versions of one key. `longest` is the size of their longest row, and `count` may count some
 * more than there are. The row lives in the arena. */
TN_MUST_USE tn_rc tn_find_fold(struct tn_find_version *versions, uint32_t count, uint32_t longest,
                               const struct tn_order *order, const struct tn_fold_spec *fold,
                               struct tn_arena *arena, struct tn_kv *kv, struct tn_err *err);
