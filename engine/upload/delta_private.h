/* delta, from inside: one sync, and what its parts share.
 *
 * delta_find.c   what the source has
 * delta_meet.c   what the target has, by the ledger or by asking; whose it is; is it the same table
 * delta_known.c  what of a snapshot its predecessor has brought
 * delta_send.c   one snapshot: its files, its lists, then its name
 * delta_tags.c   tags: made, replaced and removed as at the source
 * delta_keep.c   what the target keeps no longer
 * delta_marks.c  hints at the target, the ledger and the consumer at the source
 * delta.c        the order of it all, and starting over after an expiry
 */
#pragma once

#include "commit/live.h"
#include "commit/set.h"
#include "file/schemas.h"
#include "schema/options.h"
#include "upload/delta.h"
#include "upload/ledger.h"
#include "upload/tag_record.h"

/* Nothing of tarn has written the table yet. */
#define TN_DELTA_WRITER_UNKNOWN "unknown"

/* So often a long sync asks whose the mirror is, and writes down where it is. */
#define TN_DELTA_MINUTE_NS (60 * INT64_C(1000000000))

struct tn_delta_hint {
    int64_t id;  /* 0: it says nothing */
    bool hidden; /* nobody says whether there is one */
};

struct tn_delta {
    const struct tn_delta_spec *spec;
    struct tn_worker *worker;
    struct tn_delta_result *result;
    struct tn_target *target;
    const char *root;
    const char *table;             /* "db.t" */
    const char *lake;              /* NULL: no ledger is kept */
    char writer[TN_OWNER_ID_SIZE]; /* of the table */
    struct tn_set counted;         /* names of a dry run */
    struct tn_schemas schemas;
    const struct tn_schema *schema; /* of the snapshot that is being sent */
    struct tn_options options;
    int64_t source_first; /* ids; 0: none */
    int64_t source_last;
    int64_t schema_last;
    struct tn_tag_record tags;   /* of the source */
    struct tn_hash_128 tags_sum; /* over all of them */

    /* the target */
    struct tn_ledger ledger; /* what is there by now */
    bool known;              /* the ledger is right */
    bool marked;             /* ... and on disk it says that a sync is under way */
    bool unowned;            /* nobody has written itself down */
    bool hidden;             /* ... or somebody has, and we aren't told */
    bool supposed;           /* ... as LATEST is hidden, too: who makes the owner sees */
    bool latest_asked;       /* and its answer not used yet: */
    struct tn_delta_hint latest;
    bool heir;       /* the owner is who wrote this table before its state was lost */
    bool quiet;      /* there is nothing to do, and nothing was asked */
    bool latest_due; /* its LATEST is older than what is there */
    bool resume;     /* of the next snapshot some files may be there */
    bool dirty;      /* the ledger on disk is to be written */
    bool owner_asked;
    int64_t first_due; /* what EARLIEST should say; 0: it is right */
    bool first_hidden; /* and nobody says what it does */
    int64_t owner_ns;  /* when the owner was asked for */
    int64_t marked_ns; /* when the ledger was written */

    /* the snapshot that is being sent */
    int64_t at;
    bool ask;            /* for each file, before it is sent */
    uint64_t sent;       /* files of it in this pass */
    struct tn_set there; /* hashes of names that its predecessor reaches */
    bool again;          /* expiry took what was being sent */
    bool halved;         /* a limit ended it before all of it was sent */
};

static inline tn_rc tn_delta_no_room(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "sync: no room for a path");
}

/* Sets source_first, source_last and schema_last. */
TN_MUST_USE tn_rc tn_delta_find_source(struct tn_delta *d, struct tn_err *err);

/* Sets what is known of the target. CONFLICT: it is another's, another table, or another history of
 * this one; nothing was written there, then. */
TN_MUST_USE tn_rc tn_delta_meet(struct tn_delta *d, struct tn_err *err);
/* An hour has passed since, or the clock went back. */
bool tn_delta_is_hour_over(const struct tn_delta *d, int64_t since_ms);
/* Before a publish: is it still ours? Asks once a minute at most. */
TN_MUST_USE tn_rc tn_delta_still_ours(struct tn_delta *d, struct tn_err *err);
/* Says CONFLICT: `path` has other content there. */
tn_rc tn_delta_diverged(const struct tn_delta *d, const char *path, struct tn_err *err);

/* Of what the spec allows nothing is left. */
bool tn_delta_is_over(const struct tn_delta *d);
/* ... and something was sent for it. */
bool tn_delta_is_spent(const struct tn_delta *d);
/* An id that isn't there (any more) is passed over: what comes behind it is a first one. ABSENT: a
 * file of the source is gone. */
TN_MUST_USE tn_rc tn_delta_send_snapshot(struct tn_delta *d, int64_t id, struct tn_err *err);
/* Versions up to `last`; those that are gone at the source are needed by nothing. */
TN_MUST_USE tn_rc tn_delta_bring_schemas(struct tn_delta *d, int64_t last, struct tn_err *err);

/* A snapshot is the first that the target keeps: those in front of a gap are to go. `had` is the
 * newest before it; 0: none. */
static inline void tn_delta_note_first(struct tn_delta *d, int64_t id, int64_t had)
{
    d->ledger.below = d->ledger.below || had > 0;
    d->ledger.first = id;
    d->ledger.first_ms = 0;
    d->ledger.wait_ms = 0;
}

/* The rows of a tag's snapshot, with what it takes to read them, up to the barrier; each file is
 * asked for. */
TN_MUST_USE tn_rc tn_delta_bring_tagged(struct tn_delta *d, const struct tn_snapshot *tagged,
                                        struct tn_err *err);

/* Sets tags and tags_sum. */
TN_MUST_USE tn_rc tn_delta_find_tags(struct tn_delta *d, struct tn_err *err);
/* By the ledger the target has them. */
bool tn_delta_tags_stand(const struct tn_delta *d);
/* Behind the snapshots. A tag of a snapshot that isn't there yet waits for it. */
TN_MUST_USE tn_rc tn_delta_bring_tags(struct tn_delta *d, struct tn_err *err);

/* By the ledger and the table's options something is to go there. */
bool tn_delta_keep_is_due(struct tn_delta *d);
/* Snapshots that the table's options don't keep there go, when it is time; behind all else. */
TN_MUST_USE tn_rc tn_delta_keep(struct tn_delta *d, struct tn_err *err);
/* A tag at the target goes, if it is there, and files that nothing else reaches. IO with EACCES: it
 * may not be removed. */
TN_MUST_USE tn_rc tn_delta_remove_tag(struct tn_delta *d, const char *name, struct tn_err *err);

/* Sets d->there from the snapshot before `snapshot`, and from what its delta list moves to another
 * level; sets d->ask where that can't be known. In the arena until the snapshot is sent. */
TN_MUST_USE tn_rc tn_delta_know(struct tn_delta *d, const struct tn_snapshot *snapshot,
                                struct tn_err *err);
bool tn_delta_is_there(const struct tn_delta *d, const char *name);

/* A hint of the target says `id`. */
TN_MUST_USE tn_rc tn_delta_write_hint(struct tn_delta *d, const char *name, int64_t id,
                                      struct tn_err *err);
/* One that there isn't. IO: there is, and it was hidden for a moment. */
TN_MUST_USE tn_rc tn_delta_make_hint(struct tn_delta *d, const char *name, int64_t id,
                                     struct tn_err *err);
/* Says IO: a file was hidden that isn't any more. The next sync reads it in time. */
tn_rc tn_delta_shown_late(const struct tn_delta *d, const char *what, struct tn_err *err);
TN_MUST_USE tn_rc tn_delta_read_hint(struct tn_delta *d, const char *name,
                                     struct tn_delta_hint *hint, struct tn_err *err);
/* Before the first file of snapshot `id` goes. */
TN_MUST_USE tn_rc tn_delta_mark(struct tn_delta *d, int64_t id, struct tn_err *err);
TN_MUST_USE tn_rc tn_delta_write_ledger(struct tn_delta *d, struct tn_err *err);
/* All that was to be sent is there. */
TN_MUST_USE tn_rc tn_delta_end(struct tn_delta *d, struct tn_err *err);
/* The newest snapshot of the target stays at the source, and before the first sync all do. */
TN_MUST_USE tn_rc tn_delta_protect(struct tn_delta *d, struct tn_err *err);
