/* pair: a table's script: one file, loaded twice, for the two places where rows are at hand.
 *
 *     loop     map, upload, uploaded: what comes in, what goes out
 *     worker   merge, retract, announce: rows that are flushed -> resolver
 *
 * The two have nothing in common but the file: each has memory of its own, so that what one uses
 * never decides what the other can do. The script's cases run once, in the worker's state.
 */
#pragma once

#include "script/resolver.h"
#include "table/table.h"

enum tn_script_place { TN_SCRIPT_LOOP, TN_SCRIPT_WORKER, TN_SCRIPT_PLACES };

struct tn_script_pair_spec {
    struct tn_io *io; /* its root is the script's folder; needed only until the pair is open */
    struct tn_script_spec script;
    struct tn_columns late_by; /* see tn_script_resolver */
    void *memory[TN_SCRIPT_PLACES];
    size_t size[TN_SCRIPT_PLACES];
    uint64_t seed;
    tn_vm_log_fn *log; /* NULL: nobody listens */
    void *user;
};

struct tn_script_pair {
    struct tn_vm vms[TN_SCRIPT_PLACES];
    struct tn_script scripts[TN_SCRIPT_PLACES];
    struct tn_script_resolver resolver;
    /* "tarn.script.merge": the SHA-256 of the file that has this handler, for each that is there */
    struct tn_property properties[TN_SCRIPT_HANDLER_COUNT];
    uint32_t property_count;
};

/* INVALID: the file, its columns, or one of its cases; AGAIN: it was changed meanwhile. Stays where
 * it is from then on. */
TN_MUST_USE tn_rc tn_script_pair_open(struct tn_script_pair *pair,
                                      const struct tn_script_pair_spec *spec, struct tn_err *err);
/* Also one that failed to open, or of {0}. */
void tn_script_pair_close(struct tn_script_pair *pair);

/* NULL: the script has no such handler. */
static inline struct tn_script *tn_script_pair_map(struct tn_script_pair *pair)
{
    struct tn_script *script = &pair->scripts[TN_SCRIPT_LOOP];
    return tn_script_has(script, TN_SCRIPT_MAP) ? script : NULL;
}

static inline struct tn_script *tn_script_pair_upload(struct tn_script_pair *pair)
{
    struct tn_script *script = &pair->scripts[TN_SCRIPT_LOOP];
    return tn_script_has(script, TN_SCRIPT_UPLOAD) ? script : NULL;
}

static inline struct tn_script *tn_script_pair_uploaded(struct tn_script_pair *pair)
{
    struct tn_script *script = &pair->scripts[TN_SCRIPT_LOOP];
    return tn_script_has(script, TN_SCRIPT_UPLOADED) ? script : NULL;
}
