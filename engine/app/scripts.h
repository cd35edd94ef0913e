/* scripts: what of its tables' scripts the daemon tells a `tarn reload --shadow`: the texts that it
 * runs, whatever the files have by now, and how records are read.
 *
 *     table db.t
 *     about <sha-256 of the first text> <schema's id> <unknown> <stays>
 *     path /etc/tarn/fold.lua
 *     time ms ts                     a line for each column with a unit
 *     file 812 fold.lua              so many bytes, which follow; then what it requires
 *     ...
 *     end 1                          tables that the configuration checked last has more
 *
 * A table without a script that runs has neither path nor files.
 */
#pragma once

#include "app/reload.h"

struct tn_scripts_table {
    const char *name;
    const char *path; /* NULL: no script */
    const char *digest;
    int64_t schema; /* -1: the table is shut, whether it has a script or not */
    enum tn_unknown unknown;
    bool stays; /* the configuration checked last has it */
    struct tn_config_pair *times;
    struct tn_vm_text *texts;
    struct tn_scripts_table *next;
};

struct tn_scripts {
    struct tn_scripts_table *tables;
    uint32_t more;
};

/* A tn_http_page's part. */
bool tn_scripts_page(const struct tn_reload *reload, uint32_t index, struct tn_buf *out);

/* Reads the whole page, whose bytes become texts of the result, and change. CORRUPT: it is none,
 * since scripts were loaded while it was told, or there is no memory. */
TN_MUST_USE tn_rc tn_scripts_read(struct tn_buf *page, struct tn_arena *arena,
                                  struct tn_scripts *scripts, struct tn_err *err);
