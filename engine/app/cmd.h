/* cmd: the verbs. Each is one file; `run` gets the words behind the verb, says its errors itself
 * and returns the exit code. */
#pragma once

#include <stdio.h>

#include "app/boot.h"

struct tn_command {
    const char *name;
    const char *usage; /* "write D.T [FILE...|-]" */
    const char *summary;
    const struct tn_flag *flags;
    uint32_t flag_count;
    int (*run)(const struct tn_text_list *words);
};

extern const struct tn_command tn_cmd_create;
extern const struct tn_command tn_cmd_write;
extern const struct tn_command tn_cmd_retry;
extern const struct tn_command tn_cmd_cat;
extern const struct tn_command tn_cmd_get;
extern const struct tn_command tn_cmd_explain;
extern const struct tn_command tn_cmd_tail;
extern const struct tn_command tn_cmd_compact;
extern const struct tn_command tn_cmd_expire;
extern const struct tn_command tn_cmd_clean;
extern const struct tn_command tn_cmd_tag;
extern const struct tn_command tn_cmd_rollback;
extern const struct tn_command tn_cmd_ls;
extern const struct tn_command tn_cmd_show;
extern const struct tn_command tn_cmd_pools;
extern const struct tn_command tn_cmd_help;
extern const struct tn_command tn_cmd_sync;
extern const struct tn_command tn_cmd_restore;
extern const struct tn_command tn_cmd_gather;
extern const struct tn_command tn_cmd_demo;
extern const struct tn_command tn_cmd_fsck;
extern const struct tn_command tn_cmd_test;
extern const struct tn_command tn_cmd_check;
extern const struct tn_command tn_cmd_run;
extern const struct tn_command tn_cmd_status;
extern const struct tn_command tn_cmd_top;
extern const struct tn_command tn_cmd_reload;

/* One line on stderr, "tarn: what, where, why"; returns the exit code. */
int tn_say_error(tn_rc rc, const struct tn_err *err);

/* What a script logs, a line on stderr: a tn_vm_log_fn. */
void tn_say_log(void *user, const char *level, struct tn_bytes text);

/* Boots, lets `verb` work on its words, says what failed, shuts; returns the exit code. For verbs
 * whose only outcomes are success and an error, in a warehouse that is there. */
typedef tn_rc tn_verb_fn(struct tn_app *app, const struct tn_text_list *words, struct tn_err *err);
int tn_run_verb(tn_verb_fn *verb, const struct tn_text_list *words);

/* All verbs, a line each; and one verb's options, false when there is no such verb. */
void tn_say_overview(FILE *to);
bool tn_say_help(const char *verb);

/* "D.T is needed": for a verb without its table; returns 2. */
int tn_say_usage(const struct tn_command *command);
