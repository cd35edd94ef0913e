/* tail: what changed from one snapshot to the next, as rows.
 *
 * A snapshot's changes are whole files: those that its delta list adds, or, where a changelog
 * producer works, those that its changelog list names. Their rows come as they are stored,
 * unmerged, file by file in the order of the manifests: so the changes of one bucket, and with it
 * of one key, come in the order in which they were made.
 *
 *     snapshot-N, else changelog-N -> list -> manifest -> entry -> file -> row
 *
 * Each arrow is one open reader on the worker's arena, above the one before it: memory is the same
 * however many files a snapshot has. Source: Paimon, DataTableStreamScan.
 */
#pragma once

#include "commit/manifest.h"
#include "read/scan.h"

enum tn_tail_source {
    TN_TAIL_DELTA,    /* the files that APPEND snapshots add */
    TN_TAIL_CHANGELOG /* changelog files, whatever the snapshot's kind */
};

/* Where followers of a table with these options find what changed. */
enum tn_tail_source tn_tail_source_of(const struct tn_options *options);

struct tn_tail_spec {
    const struct tn_scan_spec *scan; /* less `snapshot`, `keep_deletes` and `filter` */
    enum tn_tail_source source;
    bool upper_only;    /* files of level 0 are passed over */
    bool no_overwrites; /* changelogs of OVERWRITE snapshots are passed over */
};

struct tn_tail {
    struct tn_tail_spec spec;
    struct tn_projection projection;
    struct tn_worker *worker;
    bool begun;
    size_t mark; /* of the worker's arena, before the snapshot */
    struct tn_snapshot snapshot;
    struct tn_manifest_reader list;
    struct tn_manifest_reader manifest;
    struct tn_data_reader file;
    size_t manifest_mark; /* before the manifest's record */
    size_t file_mark;     /* before the file's entry */
    bool list_open;
    bool manifest_open;
    bool file_open;
    uint64_t rows_read;
};

/* The plan filter for the state that a follower starts with: it leaves out what the changelogs of
 * later snapshots will tell, which is level 0 where a lookup makes them, and all but the highest
 * level where full compactions do. `user` is the table's tn_options. */
bool tn_tail_in_state(const void *user, const struct tn_entry *entry);

/* True for tables of which batch reads see only what was compacted. */
bool tn_tail_skips_level0(const struct tn_schema *schema, const struct tn_options *options);

/* `spec->scan` lives as long as the tail; the projection lives in `arena`. The worker is the tail's
 * own from begin to end. */
TN_MUST_USE tn_rc tn_tail_open(struct tn_tail *tail, const struct tn_tail_spec *spec,
                               struct tn_arena *arena, struct tn_worker *worker,
                               struct tn_err *err);

/* The first snapshot whose changes are kept, be it in the changelog folder, and the newest one.
 * ABSENT for a table without snapshots. */
TN_MUST_USE tn_rc tn_tail_range(struct tn_io *io, const char *root, struct tn_arena *scratch,
                                int64_t *earliest, int64_t *latest, struct tn_err *err);

/* Stands before the changes of a snapshot. ABSENT when it is the next one, not there yet; INVALID
 * when it has expired, or is too far ahead: then the table was made anew, or rolled back. */
TN_MUST_USE tn_rc tn_tail_begin(struct tn_tail *tail, int64_t id, struct tn_err *err);

/* The next row that matches; it lives until the next call. ABSENT behind the snapshot's last one.
 * IO when the snapshot expired meanwhile and took its files along. */
TN_MUST_USE tn_rc tn_tail_next(struct tn_tail *tail, struct tn_kv *kv, struct tn_err *err);

/* Leaves the snapshot, wherever it stands; harmless when none was begun. */
void tn_tail_end(struct tn_tail *tail);
