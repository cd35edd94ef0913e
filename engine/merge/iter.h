/* iter: the cursor, the one shape of everything that moves rows.
 *
 * A cursor yields key-values in key order, one at a time, and owns nothing that outlives its next
 * call. Memtable, data file, run and merge are all cursors; flush, compaction, lookup and scan are
 * short sentences of cursors put together, ending in a writer. A cursor never skips, sorts or
 * filters by side effect.
 *
 *     for (rc = next(&kv); rc == TN_OK; rc = next(&kv)) ...     // ends with ABSENT, or an error
 */
#pragma once

#include "base/err.h"
#include "schema/row.h"

struct tn_kv {
    struct tn_row row;
    int64_t sequence;
    uint64_t prefix; /* tn_row_prefix of the key */
    enum tn_row_kind kind;
    int32_t level; /* of the file it came from; -1 from a memtable */
    /* Why the row can't be read: a value of an older type is none of the newer one. NULL in all
     * rows but those of a reader that was told to keep such ones, for a fold, which passes over the
     * old versions of a key without looking at them. Keys are always good. */
    const char *bad;
};

struct tn_iter;
struct tn_iter_vtable {
    /* ABSENT at the end (`kv` untouched). What `kv` points to lives until the next call. */
    tn_rc (*next)(struct tn_iter *iter, struct tn_kv *kv, struct tn_err *err);
    /* Moves to the first row whose key is >= `key` (values in key order); NULL where not supported.
     */
    tn_rc (*seek)(struct tn_iter *iter, const struct tn_value *key, struct tn_err *err);
    void (*close)(struct tn_iter *iter);
    /* The file that it reads now, for errors; NULL where there is none. */
    const char *(*where)(const struct tn_iter *iter);
};

struct tn_iter {
    const struct tn_iter_vtable *vtable;
};

static inline tn_rc tn_iter_next(struct tn_iter *iter, struct tn_kv *kv, struct tn_err *err)
{
    return iter->vtable->next(iter, kv, err);
}

static inline const char *tn_iter_where(const struct tn_iter *iter)
{
    return iter->vtable->where ? iter->vtable->where(iter) : NULL;
}

static inline void tn_iter_close(struct tn_iter *iter)
{
    iter->vtable->close(iter);
}
