/* writing: a table that a verb writes records to: its script, its dead letters, the feed that
 * commits the rows, and what is said. `write` and `retry` differ in where their records come from.
 */
#pragma once

#include "app/copy.h"
#include "app/dead.h"
#include "app/state_file.h"
#include "script/scripted.h"

/* As their options have it; NULL where they were not given. */
struct tn_writing_spec {
    struct tn_app *app;
    const char *verb;
    const char *table_name;
    const char *input;
    const char *commit_every;
    const char *dead_letters;
    const char *unknown_columns;
    const char *user;
    int64_t commit_id; /* -1: not given */
    const char *from;
    const struct tn_text_list *times;
    bool stats;
    /* The feed's `note`; NULL: the copy's place. */
    tn_rc (*note)(void *user_data, struct tn_feed_place place, struct tn_err *err);
    void *user_data;
};

struct tn_writing {
    struct tn_writing_spec spec;
    struct tn_table *table;
    struct tn_scripted scripted;
    struct tn_mapper mapper; /* of its `map` */
    struct tn_state_file state;
    struct tn_copy copy;
    struct tn_feed feed;
    uint64_t rows_said; /* by the last `committed` line */
    uint64_t stalls_said;
    bool expiry_said;
    char who[96];
    char run[128]; /* names this run, or its one commit */
    struct tn_dead dead;
};

/* Also after a failure `close` comes. */
TN_MUST_USE tn_rc tn_writing_open(struct tn_writing *writing, const struct tn_writing_spec *spec,
                                  struct tn_err *err);
/* Says what went wrong, what it came to, and where the dead letters are. The exit code. */
int tn_writing_close(struct tn_writing *writing, tn_rc rc, struct tn_err *err);

/* --commit-every: a number of rows, or a time. Without a text both stay. */
TN_MUST_USE tn_rc tn_writing_every(const char *text, uint64_t *rows, int64_t *ms,
                                   struct tn_err *err);
