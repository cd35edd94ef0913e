/* target: where a table's mirror lies: a folder today, an object store later.
 *
 * Files go in with begin, append, finish; a name that `stat` finds is whole, whatever was cut or
 * killed before. `settle` is the one barrier: all that was finished, and all that `stat` has found,
 * survives a power cut once it has returned OK. Only then may `publish` give a snapshot its name.
 *
 *     { stat -> (begin -> append* -> finish) }* -> settle -> publish
 *
 * Paths are those of the warehouse ("db.db/t/snapshot/snapshot-7"). Errors name the target; ABSENT
 * comes from `stat`, `read` and `list` only.
 */
#pragma once

#include "base/arena.h"
#include "io/io.h"

struct tn_target;

struct tn_target_vtable {
    tn_rc (*stat)(struct tn_target *target, const char *path, uint64_t *size, struct tn_err *err);
    /* A whole small file into the arena. */
    tn_rc (*read)(struct tn_target *target, const char *path, size_t size_max,
                  struct tn_arena *arena, struct tn_bytes *bytes, struct tn_err *err);
    /* Every name in a folder, in no order. */
    tn_rc (*list)(struct tn_target *target, const char *path, tn_io_name_fn *each, void *user,
                  struct tn_err *err);
    /* One file at a time. It gets its name, or replaces what has it, at some time after `finish`
     * and before `settle` returns. `abort` drops what was begun; twice is harmless. */
    tn_rc (*begin)(struct tn_target *target, const char *path, uint64_t size, struct tn_err *err);
    tn_rc (*append)(struct tn_target *target, struct tn_bytes bytes, struct tn_err *err);
    tn_rc (*finish)(struct tn_target *target, struct tn_err *err);
    void (*abort)(struct tn_target *target);
    tn_rc (*settle)(struct tn_target *target, struct tn_err *err);
    /* A small file that must not be there: CONFLICT when it is. Durable when it returns OK; after
     * IO nobody knows. */
    tn_rc (*publish)(struct tn_target *target, const char *path, struct tn_bytes bytes,
                     struct tn_err *err);
    /* A small file that may be there: a hint. */
    tn_rc (*replace)(struct tn_target *target, const char *path, struct tn_bytes bytes,
                     struct tn_err *err);
};

struct tn_target {
    const struct tn_target_vtable *vtable;
    const char *name; /* for messages */
};
