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
    struct tn_gather_entry *entries;
    uint32_t count;
    struct tn_set names; /* of files */
};

/* Reads the entries of the inbox, from `count` on, and says what each is, as far as it and its mark
 * tell. AGAIN: no memory for the next one. */
TN_MUST_USE tn_rc tn_gather_look(struct tn_gather_run *run, struct tn_err *err);

/* Of entries that are MAYBE or LATE: whether their files are live, or were added by a snapshot that
 * is still there. After it there are none of them. */
TN_MUST_USE tn_rc tn_gather_settle(struct tn_gather_run *run, struct tn_err *err);

/* Whether the files of the new entries are there; one is refused where one isn't. */
TN_MUST_USE tn_rc tn_gather_look_at_files(struct tn_gather_run *run, struct tn_err *err);

/* Keeps the text of `err` as the reason. */
void tn_gather_refuse(struct tn_gather_run *run, struct tn_gather_entry *entry,
                      const struct tn_err *err);
