/* tarn run: the daemon: sources in, commits on time, until it is told to end. */
#include <stdio.h>
#include <string.h>

#include "app/cmd.h"
#include "app/daemon.h"

static struct {
    bool once;
    bool anew;
    bool drop;
    const char *log_format;
} o;

static const struct tn_flag flags[] = {
    {"once", 0, TN_FLAG_SET, &o.once, NULL, "end when standard input and files have"},
    {"anew", 0, TN_FLAG_SET, &o.anew, NULL,
     "where a table's positions are gone, take all that the journal has"},
    {"drop", 0, TN_FLAG_SET, &o.drop, NULL,
     "forget rows of the journal whose table is not configured any more"},
    {"log-format", 0, TN_FLAG_TEXT, &o.log_format, "FORM", "text (default) or json, on stderr"},
};

enum { CONFIG_SIZE = 256 * 1024 }; /* what stays of it: outside the block, whose size it says */

static void say_wrong(void *user, const char *text)
{
    (void)user;
    (void)fprintf(stderr, "tarn: %s\n", text);
}

/* With the memory of a process that doesn't run yet. */
static tn_rc read_config(const char *path, struct tn_config *config, struct tn_err *err)
{
    static unsigned char memory[CONFIG_SIZE];
    static struct tn_arena kept;
    static struct tn_app app;
    app = (struct tn_app){.open = false};
    *config = (struct tn_config){.path = NULL};
    tn_common.warehouse = "."; /* the configuration names its own */
    tn_rc rc = tn_boot(&app, false, err);
    if (rc != TN_OK) {
        return rc;
    }
    size_t vm_size = app.env.memtable_size;
    tn_arena_init(&kept, memory, sizeof memory);
    rc = tn_config_read(path, app.env.memtable,
                        vm_size < TN_CONFIG_MEMORY ? vm_size : TN_CONFIG_MEMORY, &kept, say_wrong,
                        NULL, config, err);
    tn_shut(&app);
    return rc;
}

/* Of a reload it was good a moment ago: somebody is writing it. */
static tn_rc read_good_config(const char *path, struct tn_config *config, struct tn_err *err)
{
    struct stat stamp = tn_reload_stamp(path);
    tn_rc rc = read_config(path, config, err);
    while (rc != TN_OK && tn_reload_started()) {
        (void)tn_say_error(rc, err);
        if (!tn_reload_await(path, &stamp)) {
            return rc;
        }
        stamp = tn_reload_stamp(path);
        rc = read_config(path, config, err);
    }
    return rc;
}

static tn_rc check_words(const struct tn_text_list *words, struct tn_err *err)
{
    if (words->count != 1) {
        return tn_err_set(err, TN_INVALID, 0, "usage: tarn %s", tn_cmd_run.usage);
    }
    if (o.log_format && strcmp(o.log_format, "json") != 0 && strcmp(o.log_format, "text") != 0) {
        return tn_err_set(err, TN_INVALID, 0, "--log-format %s: text or json", o.log_format);
    }
    return TN_OK;
}

static int run(const struct tn_text_list *words)
{
    static struct tn_config config;
    static struct tn_app app;
    static struct tn_daemon daemon;
    struct tn_err err = {0};
    uint64_t memory = tn_common.memory;
    tn_reload_hold(false);
    tn_rc rc = check_words(words, &err);
    if (rc == TN_OK) {
        rc = read_good_config(words->items[0], &config, &err);
    }
    if (rc == TN_OK) {
        tn_common.warehouse = config.warehouse;
        tn_common.memory = tn_common.memory ? tn_common.memory : config.memory;
        rc = tn_boot(&app, true, &err);
    }
    if (rc != TN_OK) {
        return tn_say_error(rc, &err);
    }
    struct tn_daemon_spec spec = {.app = &app,
                                  .config = &config,
                                  .once = o.once,
                                  .anew = o.anew,
                                  .drop = o.drop,
                                  .memory = memory,
                                  .log_json = o.log_format && strcmp(o.log_format, "json") == 0};
    rc = tn_daemon_open(&daemon, &spec, &err);
    if (rc == TN_OK) {
        rc = tn_daemon_run(&daemon, &err);
    }
    int code = rc == TN_OK ? 0 : tn_say_error(rc, &err);
    tn_daemon_close(&daemon);
    tn_shut(&app);
    if (daemon.again) {
        tn_reload_exec(&err);
        code = tn_say_error(TN_IO, &err);
    }
    return code;
}

const struct tn_command tn_cmd_run = {
    "run",
    "run CONFIG.lua",
    "keeps tables: takes rows from sources, commits on time",
    flags,
    sizeof flags / sizeof flags[0],
    run,
};
