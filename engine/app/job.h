/* job: what a verb has the daemon do that holds its table: what it asks for, and what comes of it,
 * as both of them know it.
 *
 *     verb    POST /job?verb=compact&table=plant.levels&full=1
 *     daemon  {"begun_ms":81,"job":4,"over":0,"rc":0}
 *     verb    GET /job?job=4                                       now and then
 *     daemon  {"begun_ms":81,"job":4,"over":1,"rc":0,"buckets":8,"compactions":3,...}
 *
 * What is begun goes on, whether somebody asks or not. `begun_ms` is the daemon's start: with
 * another one the job is gone. "rc" is a tn_rc, with "error"; no "job": nothing was begun.
 */
#pragma once

#include "app/expiry.h"
#include "base/bytes.h"

enum tn_job_verb { TN_JOB_COMPACT, TN_JOB_EXPIRE, TN_JOB_COMMIT, TN_JOB_VERBS };

enum { TN_JOB_VALUES = 6, TN_JOB_TABLE_SIZE = 256, TN_JOB_QUERY_SIZE = 1024 };

#define TN_JOB_PAGE "/job"

struct tn_job_wish {
    enum tn_job_verb verb;
    char table[TN_JOB_TABLE_SIZE];
    bool full; /* compact */
    bool dry_run;
    struct tn_expiry expiry;
    uint64_t place; /* commit: of the rows that are to be in a snapshot, and all before it */
};

/* The values of a verb's result, in the order of its columns; behind the last one NULL. */
enum {
    TN_JOB_BUCKETS,
    TN_JOB_COMPACTIONS,
    TN_JOB_BYTES,
    TN_JOB_SNAPSHOT,
    TN_JOB_BEHIND,
    TN_JOB_BEHIND_RC
};
enum {
    TN_JOB_SNAPSHOTS,
    TN_JOB_DATA_FILES,
    TN_JOB_METADATA_FILES,
    TN_JOB_EARLIEST,
    TN_JOB_TAGS,
    TN_JOB_CHANGELOGS
};
enum { TN_JOB_COMMITTED };
extern const char *const tn_job_values[TN_JOB_VERBS][TN_JOB_VALUES];

const char *tn_job_verb_name(enum tn_job_verb verb);

/* What stands behind the question mark. */
void tn_job_wish_put(const struct tn_job_wish *wish, struct tn_buf *query);
/* INVALID: it is none, and why. */
TN_MUST_USE tn_rc tn_job_wish_read(struct tn_bytes query, struct tn_job_wish *wish,
                                   struct tn_err *err);

/* The member of a query, decoded, with its zero; false: it isn't there, or is too long. */
bool tn_job_member(struct tn_bytes query, const char *name, char *value, size_t size);

/* A number; 0 without one. */
uint64_t tn_job_number(struct tn_bytes query, const char *name);

/* The end of an answer, after its other members, with the text of what went wrong. */
void tn_job_put_end(struct tn_buf *answer, tn_rc rc, const struct tn_err *err);

/* A text as it stands in a query. */
void tn_job_put_text(struct tn_buf *query, const char *text);
