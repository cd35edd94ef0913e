/* bucket: what is open of one (partition, bucket): its memtables, its levels, the next sequence
 * number.
 *
 *     LOADING -> READY        the live files are read by a task; rows wait meanwhile
 *     READY -> LOADING        another writer changed the table: levels are read again
 *     READY -> FREE           its rows are in files and another bucket needs its place; what is not
 *                             committed the rounds know
 *
 * A bucket has one active memtable and any number of frozen ones, oldest first; it flushes one at a
 * time. Rows get their sequence numbers on arrival, before they are merged.
 */
#pragma once

#include "base/hash.h"
#include "levels/compact.h"
#include "table/env.h"
#include "write/flush.h"

enum tn_bucket_state { TN_BUCKET_FREE, TN_BUCKET_LOADING, TN_BUCKET_READY };

/* A flush that looks the bucket's runs up lacks memory for so many. */
enum tn_crowd {
    TN_CROWD_NONE,
    TN_CROWD_WAITS,   /* until a compaction leaves fewer */
    TN_CROWD_PRESSES, /* with what it leaves there are too many yet: that must not wait for a cut */
    TN_CROWD_HOPELESS, /* the compaction failed */
};

struct tn_frozen {
    struct tn_memtable memtable;
    int64_t round; /* whose rows these are */
    struct tn_frozen *next;
};

struct tn_bucket {
    enum tn_bucket_state state;
    struct tn_bytes partition; /* in the levels heap */
    int32_t number;
    const char *dir;          /* likewise */
    struct tn_levels *levels; /* NULL: no files */
    int64_t next_sequence;
    struct tn_frozen *active; /* or NULL */
    struct tn_frozen *frozen; /* oldest first */
    struct tn_frozen **frozen_end;
    bool flushing;
    bool compacting;
    uint8_t halved;       /* how often a compaction had to take fewer runs for want of memory */
    bool unproven;        /* opened at the stop trigger: no row before a compaction makes room */
    bool unfolded;        /* files came, or were there, since the last compaction of everything */
    bool owes;            /* flushed, and not yet compacted as its commit should have it */
    bool fresh;           /* written to since the last forced pick of level 0 was thought of */
    int32_t spared;       /* how often level 0 was left where it is (lookup-compact = gentle) */
    uint8_t crowded;      /* enum tn_crowd */
    bool stalled;         /* its oldest flush waits for a compaction */
    uint64_t input_bytes; /* of its last compaction; 0: none since this open */
    uint64_t output_bytes;
    int64_t last_full_ms; /* when a compaction of everything ended; -1: never since this open */
    bool awaited;         /* rows that waited will be next */
    uint8_t swept;        /* enum tn_sweep: what it still owes to a sweep, and stays open for */
    uint64_t last_use;    /* number of a use: the one longest idle is closed first */
    char uuid[TN_UUID_SIZE];
    uint32_t counter; /* of file names */
};

/* What a bucket goes by where there is no room for its partition. */
static inline uint64_t tn_bucket_name(struct tn_bytes partition, int32_t number)
{
    return tn_hash_64(partition, (uint64_t)(uint32_t)number);
}

static inline uint32_t tn_bucket_pages(const struct tn_bucket *bucket)
{
    return bucket->active ? bucket->active->memtable.pages : 0;
}
