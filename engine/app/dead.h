/* dead: where a verb's dead letters go: a file, a table, or, as messages, standard error.
 *
 * NAME is a table when it is DB.TABLE, without a slash, and the warehouse has database DB; anything
 * else is a file. So ./NAME always is a file.
 */
#pragma once

#include "app/boot.h"
#include "app/letter_file.h"
#include "table/letter_table.h"

struct tn_dead {
    struct tn_letters letters;
    struct tn_letter_file file;
    struct tn_letter_table *table; /* with `is_table`, of the env's arena */
    const char *where;             /* NULL: standard error */
    bool is_table;
    bool open;
};

TN_MUST_USE tn_rc tn_dead_is_table(struct tn_env *env, const char *name, bool *is_table,
                                   struct tn_err *err);

/* Before the table whose letters these are is opened: a table of letters takes a share of its
 * memory. `who` is what the letters' lock says. */
TN_MUST_USE tn_rc tn_dead_open(struct tn_dead *dead, struct tn_env *env, const char *where,
                               const char *table, const char *who, struct tn_err *err);
/* No more letters: before the table whose letters these are is closed. */
void tn_dead_rest(struct tn_dead *dead);
/* Without a word. */
TN_MUST_USE tn_rc tn_dead_end(struct tn_dead *dead, struct tn_err *err);
/* Says how many there were; `told` of standard error's were said by others. The exit code: `code`,
 * or what became of it. */
int tn_dead_close(struct tn_dead *dead, uint64_t told, int code);
