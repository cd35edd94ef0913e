/* attempt: the manifests and lists that one attempt at a snapshot writes.
 *
 * All manifests of an attempt share one uuid, its lists another, and a counter tells them apart; so
 * what was written is known by two numbers, to be synced before the snapshot's name, or removed
 * when the attempt lost. Source: Paimon, FileStorePathFactory.manifestFileFactory.
 */
#pragma once

#include "commit/manifest.h"
#include "schema/options.h"

struct tn_attempt {
    const char *root;
    const struct tn_schema *schema;
    const struct tn_options *options;
    struct tn_worker *worker;
    struct tn_arena keep; /* carved from the worker's: names and records that outlive readers */
    char manifest_uuid[TN_UUID_SIZE];
    char list_uuid[TN_UUID_SIZE];
    uint32_t manifest_count;
    uint32_t list_count;
};

/* Fills uuids and `keep`; the other members are the caller's. AGAIN. */
TN_MUST_USE tn_rc tn_attempt_begin(struct tn_attempt *attempt, struct tn_err *err);

/* Removes everything it wrote. What can't be removed is left until the table is cleaned. */
void tn_attempt_drop(struct tn_attempt *attempt);

/* `more` and then what the attempt wrote and its folder, in `arena`: what a barrier must cover. */
TN_MUST_USE tn_rc tn_attempt_paths(struct tn_attempt *attempt, const char *const *more,
                                   uint32_t more_count, struct tn_arena *arena,
                                   const char *const **paths, uint32_t *count, struct tn_err *err);

/* A list of the attempt: begin the writer, add records or entries, finish. */
TN_MUST_USE tn_rc tn_attempt_begin_list(struct tn_attempt *attempt, struct tn_manifest_writer *list,
                                        struct tn_err *err);
/* The name (in `keep`) and the size. */
TN_MUST_USE tn_rc tn_attempt_finish_list(struct tn_attempt *attempt,
                                         struct tn_manifest_writer *list, const char **name,
                                         int64_t *size, struct tn_err *err);

/* Entries into manifests of `manifest.target-file-size`, whose records go into an open list.
 * Readers may be opened and closed between two adds. */
struct tn_entry_writer {
    struct tn_attempt *attempt;
    struct tn_manifest_writer *list;
    struct tn_manifest_writer manifest;
    int64_t row_count; /* of the ADD entries less those of the DELETE entries */
};

TN_MUST_USE tn_rc tn_entry_writer_begin(struct tn_entry_writer *writer, struct tn_attempt *attempt,
                                        struct tn_manifest_writer *list, struct tn_err *err);
TN_MUST_USE tn_rc tn_entry_writer_add(struct tn_entry_writer *writer, const struct tn_entry *entry,
                                      struct tn_err *err);
/* Without an entry there is no manifest. */
TN_MUST_USE tn_rc tn_entry_writer_finish(struct tn_entry_writer *writer, struct tn_err *err);
void tn_entry_writer_abort(struct tn_entry_writer *writer);
