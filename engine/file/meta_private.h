/* meta, from inside: the members of each record, in one array that all parts walk.
 *
 * meta_members.c the arrays, and the avro schemas that Paimon writes
 * meta_encode.c  to avro
 * meta_plan.c    which member each field of a file's own schema is
 * meta_decode.c  from avro, by a plan
 * meta.c         copies and identity
 */
#pragma once

#include "file/meta.h"

/* Paimon: ManifestEntrySerializer.getVersion, IndexManifestEntrySerializer.getVersion */
enum { TN_META_VERSION = 2, TN_INDEX_VERSION = 1 };

enum tn_member_kind {
    TN_MEMBER_VERSION, /* a constant, no member: its offset says which */
    TN_MEMBER_I32,     /* int32_t or an enum */
    TN_MEMBER_I64,
    TN_MEMBER_COUNT,   /* int64_t, never negative */
    TN_MEMBER_NAME,    /* const char *, a bare file name */
    TN_MEMBER_TEXT,    /* const char * */
    TN_MEMBER_BYTES,   /* struct tn_bytes */
    TN_MEMBER_STATS,   /* struct tn_stats */
    TN_MEMBER_FILES,   /* struct tn_texts, not nullable, bare file names */
    TN_MEMBER_FILE,    /* struct tn_file_meta, last of its record */
    TN_MEMBER_OPT_I64, /* struct tn_json_i64; from here on ["null", T] */
    TN_MEMBER_OPT_I32, /* struct tn_json_i64 of an avro int */
    TN_MEMBER_OPT_BYTES,
    TN_MEMBER_OPT_TEXT,
    TN_MEMBER_OPT_TEXTS,
};

struct tn_member {
    const char *name;
    enum tn_member_kind kind;
    uint32_t offset;
};

struct tn_members {
    const struct tn_member *items;
    uint32_t count;
};

extern const struct tn_members tn_list_members;
extern const struct tn_members tn_entry_members; /* but for its file */
extern const struct tn_members tn_file_members;
extern const struct tn_members tn_index_members;

/* The enum is stored through an int32_t. */
_Static_assert(sizeof(enum tn_entry_kind) == sizeof(int32_t), "an entry's kind has 4 bytes");

/* Whether the member at `at` holds something. */
bool tn_member_present(const struct tn_member *m, const void *at);

/* The fields of a record of statistics. */
#define TN_STATS_MIN_NAME   "_MIN_VALUES"
#define TN_STATS_MAX_NAME   "_MAX_VALUES"
#define TN_STATS_NULLS_NAME "_NULL_COUNTS"

/* A record on its way into memory. */
struct tn_meta_decoder {
    struct tn_avro_cursor *cursor;
    struct tn_arena *arena;
    struct tn_err *err;
    const char *name; /* of the field at hand */
};

/* A copy in the arena. Never a NULL pointer, since that stands for an absent value. */
TN_MUST_USE tn_rc tn_meta_keep(struct tn_meta_decoder *d, struct tn_bytes from,
                               struct tn_bytes *to);
