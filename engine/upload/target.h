/* target: where a table lies that isn't at home, a mirror mostly: a folder, or an object store in
 * which each request costs.
 *
 * Who sends is straight-line code on one thread, and a call may block. Files go in with `send`,
 * which may only begin it: the work is done behind it, and `settle` is the one barrier. Only then
 * may `publish` give a snapshot its name.
 *
 *     { send | stat }* -> settle -> publish -> replace
 *          |                 |
 *          +---- error ------+--> drop -> from the start
 *
 * A name that `stat` or `read` finds is whole, whatever was cut or killed before; that it is
 * durable only the next `settle` says. No file is ever replaced by one of other bytes, but for what
 * `replace` and `swap` write; one goes by `remove` alone.
 *
 * Paths are those of the warehouse ("db.db/t/snapshot/snapshot-7"), the same on both sides. All
 * texts and bytes that a call is given are copied by what needs them longer; only the `io` of a
 * `send` is used until the next `settle` or `drop` has returned. Errors name the target. ABSENT
 * comes from `stat`, `modified`, `read`, `fetch` and `list` for what the target lacks, and from
 * `send` and `settle` for what the source lacks, and from nothing else. Who may not list a store is
 * not told what it lacks (S3 answers 403 then): for `stat` and `read` such a name is ABSENT, too,
 * but hidden. It may be there, so whoever goes on must put on the condition that it isn't, and who
 * knows better must not believe it.
 *
 * After an error of `send` or `settle`, `drop` must be called; what was sent since the last
 * `settle` may then be there or not, each file whole. After an error of the other calls what is
 * under way goes on, and the call can be made again.
 */
#pragma once

#include <errno.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "io/many.h"

struct tn_target;

/* PUTs that want one name at once. */
struct tn_target_race {
    const char *path;             /* of a file that isn't there */
    const struct tn_bytes *bytes; /* `count` small files, no two alike */
    uint32_t count;
    uint32_t ran;    /* set: of them, as many as the target does at once; 2 at the least, or 1 */
    uint32_t won;    /* set: that were told it is theirs */
    uint32_t winner; /* set: the last of these */
};

struct tn_target_vtable {
    /* HEAD */
    tn_rc (*stat)(struct tn_target *target, const char *path, uint64_t *size, struct tn_err *err);
    /* HEAD: when a file was written, ms since 1970 by the target's clock. UNSUPPORTED: a store that
     * doesn't say. */
    tn_rc (*modified)(struct tn_target *target, const char *path, int64_t *ms, struct tn_err *err);
    /* GET: a whole small file into the arena, with a zero byte behind it. INVALID when it is larger
     * than `size_max`. */
    tn_rc (*read)(struct tn_target *target, const char *path, size_t size_max,
                  struct tn_arena *arena, struct tn_bytes *bytes, struct tn_err *err);
    /* GET: what a file of any size has from byte `first` on is appended to the open `file` of `to`.
     * `got` says how many bytes were, also after an error: of a file that never changes the rest
     * can be asked for. A lost connection is taken up where it broke. Errors of `to` are told as
     * they are. */
    tn_rc (*fetch)(struct tn_target *target, const char *path, uint64_t first, struct tn_io *to,
                   int file, uint64_t *got, struct tn_err *err);
    /* LIST: every name in a folder, in no order. `path` ends in '/'. Costs most: where nothing is
     * known of the target, and never in a sync that goes on where one ended. */
    tn_rc (*list)(struct tn_target *target, const char *path, tn_io_name_fn *each, void *user,
                  struct tn_err *err);
    /* Brings the file `path` of `from`, which has `size` bytes. It is made only if absent; one that
     * is there with as many bytes is the file, with another number CONFLICT. ABSENT: `from` lacks
     * it; CORRUPT: it has another size there. The error may be that of a file that was sent before,
     * and names that one. */
    tn_rc (*send)(struct tn_target *target, struct tn_io *from, const char *path, uint64_t size,
                  struct tn_err *err);
    /* All that was sent, and all that `stat` and `read` have found, is whole and survives a power
     * cut. Errors as those of `send`. */
    tn_rc (*settle)(struct tn_target *target, struct tn_err *err);
    /* Ends what is under way and forgets what was sent since the last `settle`. Twice is harmless,
     * and so it is with nothing under way. */
    void (*drop)(struct tn_target *target);
    /* PUT: a small file that must not be there, durable when this returns OK. One that is there
     * with these bytes is OK, with others CONFLICT. After IO nobody knows whether it is there. */
    tn_rc (*publish)(struct tn_target *target, const char *path, struct tn_bytes bytes,
                     struct tn_err *err);
    /* PUT: a small file that may be there: a hint. At a cut it is the old one or the new
     * one; that it is the new one the next `settle` says. */
    tn_rc (*replace)(struct tn_target *target, const char *path, struct tn_bytes bytes,
                     struct tn_err *err);
    /* PUT: a small file that is there with the bytes `was` (data NULL: that isn't there) gets
     * others, durable when this returns OK; of two that swap at once, one does. CONFLICT: it has
     * other bytes. One that has the new bytes already is OK: an answer may have been lost. After IO
     * nobody knows which it has. */
    tn_rc (*swap)(struct tn_target *target, const char *path, struct tn_bytes was,
                  struct tn_bytes bytes, struct tn_err *err);
    /* DELETE: a file that may be there. It isn't when this returns OK; that a cut doesn't bring it
     * back the next `settle` says. After IO nobody knows; IO with EACCES: it may not be removed. */
    tn_rc (*remove)(struct tn_target *target, const char *path, struct tn_err *err);
    /* Several `publish` of one name at the same time, each tried once: for finding out whether the
     * store keeps to its conditions (probe.h). IO: of one the outcome isn't known. */
    tn_rc (*race)(struct tn_target *target, struct tn_target_race *race, struct tn_err *err);
    /* HEAD, GET, DELETE: many questions and removals at once (io/many.h), as `stat`, `read` and
     * `remove` would do them; a name that is hidden is an error. NULL: one by one is as fast. */
    tn_rc (*ask)(struct tn_target *target, struct tn_io_ask *asks, uint32_t count,
                 struct tn_err *err);
    /* LIST: all files below a folder (io/many.h), a page at a time, as long as they are wanted.
     * NULL: one folder after the other is as fast. */
    tn_rc (*walk)(struct tn_target *target, struct tn_io_walk *walk, struct tn_err *err);
};

/* Of an answer of ABSENT: nobody says whether the name is there. */
static inline bool tn_target_is_hidden(tn_rc rc, const struct tn_err *err)
{
    return rc == TN_ABSENT && err->os == EACCES;
}
/* What is known to be there can't be read: an error, and no lack. */
static inline tn_rc tn_target_if_hidden(tn_rc rc, struct tn_err *err)
{
    if (tn_target_is_hidden(rc, err)) {
        err->code = TN_IO;
        return TN_IO;
    }
    return rc;
}

/* Verbs of an object store. */
enum tn_target_verb {
    TN_TARGET_GET,
    TN_TARGET_HEAD,
    TN_TARGET_PUT,
    TN_TARGET_LIST,
    TN_TARGET_DELETE,
    TN_TARGET_VERBS,
};

/* Since the target was opened: all that was asked and all bytes of files, also of tries that
 * failed. A folder counts no requests. */
struct tn_target_counts {
    uint64_t requests[TN_TARGET_VERBS];
    uint64_t bytes_sent;
    uint64_t bytes_received;
    uint32_t answer_ms; /* the shortest that it took to answer a question; 0: it was asked none */
};

/* Of all verbs. */
static inline uint64_t tn_target_asked(const struct tn_target_counts *counts)
{
    uint64_t sum = 0;
    for (int verb = 0; verb < TN_TARGET_VERBS; verb++) {
        sum += counts->requests[verb];
    }
    return sum;
}

struct tn_target {
    const struct tn_target_vtable *vtable;
    const char *name; /* for messages */
    struct tn_target_counts counts;
    bool hidden_will_do; /* who asks needn't know whether a name is hidden for a moment or for ever
                          */
    atomic_bool *stop;   /* NULL: none. From when it is true, calls end soon, with CANCELED */
};
