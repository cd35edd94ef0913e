/* gather_private: the parts of a round. */
#pragma once

#include "commit/set.h"
#include "commit/snapshot.h"
#include "upload/gather.h"

enum tn_gather_verdict {
    TN_GATHER_NEW,     /* in no snapshot */
    TN_GATHER_MAYBE,   /* a gather may have committed it before it ended */
    TN_GATHER_LATE,    /* of an id below the last that was gathered */
    TN_GATHER_KNOWN,   /* in the table */
    TN_GATHER_FOUND,   /* in the newest snapshot, as what is new in it */
    TN_GATHER_REFUSED, /* `reason` says why */
    TN_GATHER_GONE,    /* another gather took it */
};

struct tn_gather_entry {
    struct tn_inbox_item item;
    enum tn_gather_verdict verdict;
    struct tn_hash_128 hash; /* of its bytes */
    struct tn_committable committable;
    const char *reason;
};

struct tn_gather_run {
    struct tn_gather *gather;
    struct tn_gather_result *result;
    bool newest_schema;
    int64_t newest; /* S; 0: the table has no snapshot */
    struct tn_snapshot snapshot;
    struct tn_inbox inbox;
    bool listed;
    bool searched; /* entries were looked for, in snapshots up to S, and not found */
    struct tn_gather_entry *entries;
    uint32_t count;
    struct tn_set names; /* of files */
};

/* Reads the entries of the inbox, from `count` on, and says what each is, as far as it and its mark
 * tell. AGAIN: no memory for the next one. */
TN_MUST_USE tn_rc tn_gather_look(struct tn_gather_run *run, struct tn_err *err);

/* Of entries that are MAYBE or LATE: whether their files are live, or were added or taken out again
 * by a snapshot that is still there. After it there are none of them. */
TN_MUST_USE tn_rc tn_gather_settle(struct tn_gather_run *run, struct tn_err *err);

/* Whether the files of the new entries are there; one is refused where one isn't. */
TN_MUST_USE tn_rc tn_gather_look_at_files(struct tn_gather_run *run, struct tn_err *err);

/* What tells a snapshot from another one of its id. */
struct tn_hash_128 tn_gather_trace(const char *user, int64_t identifier, const char *kind);

/* Looks again at the snapshot that has what is held: it goes, waits on, or is forgotten and said.
 * Marks are read, and so is the newest snapshot. */
TN_MUST_USE tn_rc tn_gather_look_back(struct tn_gather_run *run, struct tn_err *err);

/* Behind a commit, or where there was nothing to be committed: what is in the table for sure goes,
 * the rest is held. */
TN_MUST_USE tn_rc tn_gather_keep_held(struct tn_gather_run *run, struct tn_err *err);

/* Of a tn_gather_hold: it has the entry. */
bool tn_gather_holds(void *hold, const struct tn_inbox_item *item);
/* It has one that is in an earlier snapshot, and waits for another one of its gateway. */
bool tn_gather_holds_sure(const struct tn_gather_hold *hold);
/* Where it has any: the snapshots with all of them are above this one. */
int64_t tn_gather_hold_after(const struct tn_gather *gather);

/* Keeps the text of `err` as the reason. */
void tn_gather_refuse(struct tn_gather_run *run, struct tn_gather_entry *entry,
                      const struct tn_err *err);
