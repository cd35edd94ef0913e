/* delta: brings a mirror up to its source: the same table, the same ids.
 *
 * What the source's snapshots reach, minus what the target has, in dependency order; every snapshot
 * that the source still has and the target lacks travels, oldest first.
 *
 *     for each snapshot:  data, changelog and index files -> manifests -> lists -> schemas
 *                         -> barrier -> snapshot-N (which must not be there)
 *     then:               newer schemas -> EARLIEST, if ids are missing -> LATEST
 *
 * A snapshot whose predecessor is there needs only what its delta and changelog lists add, and the
 * manifests and index files that are new; the first one, one behind a gap, and an OVERWRITE need
 * all that is live.
 *
 * In an object store each request costs, so what is there is remembered in a ledger (ledger.h), and
 * a sync that goes on where one ended asks for the owner (owner.h, one GET) and whether the newest
 * snapshot that it knows of is still there (one HEAD); then it sends: a PUT for each file, one for
 * each snapshot, one for LATEST. With nothing to do it asks for nothing, and once an hour for the
 * owner. Files are asked for, one HEAD each, where some may be there: in the one snapshot in which
 * a sync was cut, behind a gap, in an OVERWRITE, and when they were sent more than twelve hours ago
 * and no snapshot reaches them yet, since cleaning of orphans takes them away. Without a ledger
 * LATEST is asked for, then the owner; where LATEST is hidden (target.h) the owner is made at once,
 * on the condition that there is none, so that a first sync is refused one GET and no more. Only a
 * target that is met without a ledger, and whose LATEST is wrong, is listed; who may not do that
 * goes by EARLIEST, and by what is first here.
 *
 * The table is only read; no lock is needed. Its expiry may take files away meanwhile: then the
 * sync begins again with what is left, a few times. So that this does not happen the mirror is a
 * consumer of the source: no expiry, ours or official, passes what the target has. If the source
 * expired ids that the target never got, EARLIEST of the target is set behind the gap, since a
 * streaming reader would wait for the missing ids for ever; the snapshots below go then.
 *
 * Else nothing is removed at the target, which keeps the history, unless the table's options say
 * how much of it (lake.snapshot.num-retained.min, .max, lake.snapshot.time-retained). Then, behind
 * all else, it is expired as at home (expire.h): what its tags, its consumers and its branches hold
 * stays, EARLIEST moves first, changelogs outlive their snapshots where they do here. That asks a
 * lot (LIST and GET, a DELETE for each file), so a tenth more is let stand, an hour at the most,
 * and what can't go is looked at once an hour. It is begun only by who is the owner just then, and
 * has the newest snapshot of the target as its own. Who may not list or remove there is told so
 * (keep_denied), and of what can't be read there, or has no room here (keep_err); it is tried again
 * in an hour, and all else goes on. No run of it is begun once bytes_max or requests_max is spent,
 * but for the first of a sync that has sent nothing. Where the ledger was lost the newest OVERWRITE
 * is looked for before, 200 snapshots a sync.
 *
 * A PUT of a process that was killed may come when the next one has asked for that name and gone
 * on; no store can be told to refuse it. What the source still has is sent again, with the same
 * bytes, and nothing is seen of it. A snapshot that the source has expired meanwhile, which no
 * consumer lets it, then stands alone behind the gap: whole, since its files were there before it
 * was sent. A reader that waits in front of the gap waits until the next snapshot follows, and
 * EARLIEST with it; from then on, and when it comes later still, it lies below EARLIEST, where
 * nobody looks. The expiry behind the gap takes it with the rest, where it may remove; one that
 * comes behind that lacks files, and goes with the next.
 *
 * Tags travel behind the snapshots: what a tag holds is brought where the target doesn't have its
 * snapshot (any more), then the tag. One that is replaced or removed at the source is there, too;
 * those that others made there stay, and where one has a tag's name the source's stays at home.
 * Which are the source's is in a file beside the table (tag_record.h). Tags that stand cost
 * nothing; when some don't: GET and two PUT of the record; for each tag GET, PUT, or DELETE, and
 * where its snapshot isn't the newest two GET before and behind. One that may not be removed is
 * asked for again once an hour, with three GET and DELETE. A file that only a removed tag reached
 * goes with it, if the target may be listed; one that only a replaced tag reached stays until the
 * mirror is cleaned. Official expiry at the target that runs while a tag is brought there may not
 * see it.
 *
 * A target whose newest snapshot, or any schema, has our id and other content is another table, or
 * another history of this one: CONFLICT, and nothing is sent. Branches and consumers of the source
 * stay at home.
 */
#pragma once

#include "file/worker.h"
#include "upload/target.h"

struct tn_delta_spec {
    const char *root;         /* "db.db/t", on both sides */
    struct tn_target *target; /* NULL: an empty one, for a dry run */
    const char *consumer;     /* "tarn-lake-..."; NULL: none is written */
    const char *lake;         /* part of the ledger's name; NULL: as the consumer */
    bool dry_run;             /* nothing is written anywhere */

    /* How far it goes, in whole snapshots and in their order, as ever; 0: as far as there is
     * something. Once so many bytes of files were sent, or so many requests made, no file is begun
     * any more but a first one: the snapshot under way goes on with the next sync. */
    int64_t through; /* the newest that is sent */
    uint64_t bytes_max;
    uint64_t requests_max;
};

struct tn_delta_result {
    int64_t first_id;  /* of the snapshots that were sent; 0: none */
    int64_t last_id;   /* newest in the target now; 0: none */
    uint64_t files;    /* sent, or to be sent */
    uint64_t bytes;    /* of them */
    uint32_t restarts; /* times that expiry was faster */
    bool tags_looked;  /* at, and the next four count; else they stand as they did */
    uint32_t tags;     /* made or replaced */
    uint32_t tags_removed;
    uint32_t tags_denied;   /* that were to be removed and may not be */
    uint32_t tags_left;     /* that stayed at home: others have made tags of the same names */
    uint32_t expired;       /* snapshots that went there */
    bool keep_denied;       /* some are to go there and may not be removed, or listed */
    struct tn_err keep_err; /* why expiry there stopped, which ends no sync; code OK: it didn't */
    bool limited;           /* bytes_max or requests_max ended it */
};

/* Reads the source through the worker's io, and needs some 100 KiB of its arena beside what reading
 * manifests takes; as much again where the target expires, and a folder beside the table,
 * `.tarn/<db>.<table>.<lake>.keep`, which is gone behind it. ABSENT: no such table; CONFLICT:
 * diverged, or somebody took the mirror over; CORRUPT: a file that a snapshot reaches is missing or
 * has another size; UNSUPPORTED: files outside the table, manifests that aren't avro; AGAIN: too
 * little memory, or expiry was faster each time. After an error `result` says what was sent. */
TN_MUST_USE tn_rc tn_delta_sync(const struct tn_delta_spec *spec, struct tn_worker *worker,
                                struct tn_delta_result *result, struct tn_err *err);
