/* reader: a table opened for reading at some snapshot: what cat, get, ls, show and fsck start with.
 */
#pragma once

#include "app/boot.h"
#include "commit/snapshot.h"
#include "read/scan.h"

/* Options that name a snapshot; a verb lists TN_READER_FLAGS among its flags. At most one may be
 * given. */
struct tn_reader_at {
    int64_t snapshot; /* 0: the newest */
    const char *tag;
    const char *as_of;
};
extern struct tn_reader_at tn_reader_at;
#define TN_READER_FLAGS                                                         \
    {"snapshot", 0, TN_FLAG_I64, &tn_reader_at.snapshot, "N", "at snapshot N"}, \
        {"tag", 0, TN_FLAG_TEXT, &tn_reader_at.tag, "NAME", "at a tag"},        \
    {                                                                           \
        "as-of", 0, TN_FLAG_TEXT, &tn_reader_at.as_of, "TIME",                  \
            "at the newest snapshot not after TIME (UTC)"                       \
    }

struct tn_reader {
    struct tn_app *app;
    const char *name;
    const char *root;
    struct tn_schemas schemas;
    const struct tn_schema *newest;
    const struct tn_schema *schema; /* whose columns are read */
    struct tn_options options;
    bool empty; /* no snapshot */
    struct tn_snapshot snapshot;
};

/* ABSENT: no such table, snapshot or tag. */
TN_MUST_USE tn_rc tn_reader_open(struct tn_reader *reader, struct tn_app *app, const char *table,
                                 struct tn_err *err);

/* Whether a file that a read missed is no damage: its snapshot is being expired, or is gone. */
bool tn_reader_expired(const struct tn_reader *reader, const struct tn_err *failure);

/* What a verb does with a table, from opening it on. */
struct tn_attempt {
    tn_rc (*run)(struct tn_reader *reader, struct tn_attempt *attempt, struct tn_err *err);
    void *user;
    bool began; /* something may have been printed */
};

/* Opens the table and runs the attempt. A writer may expire the snapshot that is read: then all is
 * done anew, a bounded number of times, and nobody notices; once something was printed it is IO. */
TN_MUST_USE tn_rc tn_reader_try(struct tn_reader *reader, struct tn_app *app, const char *table,
                                struct tn_attempt *attempt, struct tn_err *err);

/* A moment as text (UTC), or as ms since 1970; `flag` names the option that it is the value of. */
TN_MUST_USE tn_rc tn_reader_time(const char *flag, const char *text, int64_t *ms,
                                 struct tn_err *err);

/* All buckets of the reader's snapshot, which must be there; `keys` are made for it. The memtable
 * part is the window, so no table may be open for writing. */
TN_MUST_USE tn_rc tn_reader_plan(struct tn_reader *reader, struct tn_plan *plan,
                                 struct tn_key_types *keys, struct tn_err *err);

/* What a scan of the reader's snapshot is made of. `columns` ("a,b") and `where` may be NULL. */
TN_MUST_USE tn_rc tn_reader_scan_spec(struct tn_reader *reader, const char *columns,
                                      const char *where, struct tn_scan_spec *spec,
                                      struct tn_err *err);

/* "a,b" as fields of the reader's schema. */
TN_MUST_USE tn_rc tn_reader_fields(const struct tn_reader *reader, const char *names,
                                   const uint32_t **fields, uint32_t *count, struct tn_err *err);
