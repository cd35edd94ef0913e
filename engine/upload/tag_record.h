/* tag_record: which tags of a mirror came from its source: `.tarn/<db>.<table>/tags` at the target,
 * beside the table, a line a tag:
 *
 *     has 5f0c...e1 daily-2026-11-29
 *     due 07ab...93 release
 *     may 91c4...0d trial
 *
 * Others may tag a mirror, so what goes when its tag goes at the source must be known there. A tag
 * is written down before it is replaced (due), and before it is made or removed (may be there):
 * after a cut one that isn't in the record is somebody else's, and so is one that may be there and
 * has other bytes than these; what isn't done is done again. The hash is of the tag's bytes.
 */
#pragma once

#include "base/hash.h"
#include "upload/target.h"

struct tn_tag_line {
    const char *name; /* without "tag-" */
    struct tn_hash_128 hash;
    bool due;    /* not done */
    bool unsure; /* and ours only with these bytes */
};

struct tn_tag_record {
    struct tn_tag_line *lines;
    uint32_t count;
};

/* No record is an empty one. In the arena; some 100 bytes a tag. CORRUPT: it has lines of another
 * shape. Where nobody says whether there is one, whoever `writes` makes an empty one, to be sure;
 * IO: it is there, and can't be read. */
TN_MUST_USE tn_rc tn_tag_record_read(struct tn_target *target, const char *table, bool writes,
                                     struct tn_arena *arena, struct tn_tag_record *record,
                                     struct tn_err *err);

/* Durable when it returns. */
TN_MUST_USE tn_rc tn_tag_record_write(struct tn_target *target, const char *table,
                                      const struct tn_tag_record *record, struct tn_arena *scratch,
                                      struct tn_err *err);

/* Or NULL. */
struct tn_tag_line *tn_tag_record_find(const struct tn_tag_record *record, const char *name);
