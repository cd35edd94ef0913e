/* scripted: what a table with a script needs to be written: from its option `tarn.script` to what
 * decides, in memory of its own.
 *
 *     rc = tn_scripted_find(&scripted, &spec, err);    OK: there may be none
 *     tn_scripted_fill(&scripted, &table_spec);
 *     rc = tn_table_open(env, &table_spec, &table, err);
 *     ...
 *     tn_table_close(table); tn_scripted_close(&scripted);
 *
 * The states have the parts "lua_map" and "lua_merge", which are carved out of the memtable's while
 * a script is there (that of `map` and of uploads only where it has them): so this comes before a
 * table is opened, and ends after it was closed. Only who writes needs a script; readers,
 * compaction and upkeep never look at it.
 *
 * A path that begins with '/' is taken as it is; another one begins in the folder that holds the
 * warehouse, whatever folder the process is in.
 */
#pragma once

#include "base/budget.h"
#include "schema/schema.h"
#include "script/pair.h"
#include "table/env.h"

#define TN_SCRIPT_OPTION   "tarn.script"
#define TN_SEQUENCE_OPTION "tarn.sequence.field"

struct tn_scripted_spec {
    struct tn_env *env; /* memory for names comes from its arena until close */
    struct tn_budget *budget;
    const char *table;     /* "db.t"; lives as long */
    const char *warehouse; /* its folder; NULL: none of the system's, so paths begin with '/' */
    bool skip_cases;
    tn_vm_log_fn *log; /* NULL: nobody listens */
    void *user;
};

struct tn_scripted {
    struct tn_scripted_spec spec;
    bool open;                     /* there is a script */
    bool carved[TN_SCRIPT_PLACES]; /* the state's part is there */
    size_t mark;                   /* of the env's arena */
    int64_t schema;                /* id of the table's that it was loaded for */
    struct tn_row_layout layout;
    const char *path; /* of the file, from "/" */
    struct tn_script_pair pair;
};

/* For the schema of a table that is there. OK with `open` false: it has no script, or there is no
 * such table, which others say better. INVALID: the script can't be used, with its whole path. */
TN_MUST_USE tn_rc tn_scripted_find(struct tn_scripted *scripted,
                                   const struct tn_scripted_spec *spec, struct tn_err *err);
/* Whether there is something to find, for who wants no room for it otherwise. */
TN_MUST_USE tn_rc tn_scripted_wanted(const struct tn_scripted_spec *spec, bool *wanted,
                                     struct tn_err *err);
/* For a schema that is given, which is kept by pointer. */
TN_MUST_USE tn_rc tn_scripted_open(struct tn_scripted *scripted,
                                   const struct tn_scripted_spec *spec,
                                   const struct tn_schema *schema, struct tn_err *err);
void tn_scripted_close(struct tn_scripted *scripted); /* also one that failed to open, or of {0} */

/* The column of tarn.sequence.field, which ctx.late goes by; none where the schema names none. */
TN_MUST_USE tn_rc tn_scripted_late(const struct tn_schema *schema, struct tn_arena *arena,
                                   struct tn_columns *columns, struct tn_err *err);

/* What the table is to be opened with; nothing where there is no script. */
void tn_scripted_fill(struct tn_scripted *scripted, struct tn_table_spec *spec);

/* The table has the columns that the script was loaded for: AGAIN when it was altered meanwhile. */
TN_MUST_USE tn_rc tn_scripted_check(const struct tn_scripted *scripted,
                                    const struct tn_table *table, struct tn_err *err);

/* The one whose `map` rows go through, or NULL. */
static inline struct tn_script *tn_scripted_map(struct tn_scripted *scripted)
{
    return scripted->open ? tn_script_pair_map(&scripted->pair) : NULL;
}
