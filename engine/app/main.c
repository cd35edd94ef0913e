/* tarn: one program, verbs first. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "app/ask.h"
#include "app/cmd.h"
#include "app/version.h"
#include "schema/types.h"

static const struct tn_command *const commands[] = {
    &tn_cmd_create,  &tn_cmd_write,    &tn_cmd_retry,   &tn_cmd_cat,    &tn_cmd_get,
    &tn_cmd_compact, &tn_cmd_expire,   &tn_cmd_ls,      &tn_cmd_show,   &tn_cmd_pools,
    &tn_cmd_help,    &tn_cmd_sync,     &tn_cmd_restore, &tn_cmd_gather, &tn_cmd_demo,
    &tn_cmd_fsck,    &tn_cmd_tail,     &tn_cmd_clean,   &tn_cmd_test,   &tn_cmd_explain,
    &tn_cmd_tag,     &tn_cmd_rollback, &tn_cmd_check,   &tn_cmd_run,    &tn_cmd_status,
    &tn_cmd_top,     &tn_cmd_reload,
};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0], HELP_SIZE = 8192 };

void tn_say_overview(FILE *to)
{
    (void)fputs("tarn VERB [DB.TABLE] [arguments] [options]\n\n", to);
    for (int i = 0; i < COMMAND_COUNT; i++) {
        (void)fprintf(to, "  %-34s %s\n", commands[i]->usage, commands[i]->summary);
    }
    (void)fputs("\n`tarn VERB --help` lists a verb's options.\n", to);
}

static int print_help(const struct tn_command *command)
{
    static char text[HELP_SIZE];
    struct tn_buf buf;
    tn_buf_init(&buf, text, sizeof text);
    tn_buf_format(&buf, "tarn %s\n%s\n\n", command->usage, command->summary);
    tn_args_help(command->flags, command->flag_count, &buf);
    tn_buf_text(&buf, "\n");
    tn_args_help(tn_common_flags, tn_common_flag_count, &buf);
    (void)fwrite(text, 1, buf.size, stdout);
    return 0;
}

static const struct tn_command *find(const char *name)
{
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i]->name, name) == 0) {
            return commands[i];
        }
    }
    return NULL;
}

bool tn_say_help(const char *verb)
{
    const struct tn_command *command = find(verb);
    if (command) {
        print_help(command);
    }
    return command != NULL;
}

static int unknown_verb(const char *word)
{
    const char *names[COMMAND_COUNT];
    for (int i = 0; i < COMMAND_COUNT; i++) {
        names[i] = commands[i]->name;
    }
    const char *near = tn_nearest_name(tn_bytes_of(word), names, COMMAND_COUNT);
    (void)fprintf(stderr,
                  near ? "tarn: verb '%s' is unknown; did you mean '%s'?\n"
                       : "tarn: verb '%s' is unknown; `tarn help` lists them\n",
                  word, near);
    return 2;
}

/* What can be done about a table that the daemon has. */
static void say_way(void)
{
    char address[TN_ASK_ADDRESS_SIZE];
    if (tn_ask_address(tn_warehouse(), address)) {
        (void)fprintf(stderr, "; stop it, or send rows to its HTTP address, %s", address);
    } else {
        (void)fputs("; stop it, or send rows to its sources", stderr);
    }
}

int tn_say_error(tn_rc rc, const struct tn_err *err)
{
    (void)fflush(stdout);
    (void)fprintf(stderr, "tarn: %s", err->text);
    if (rc == TN_EXISTS && strstr(err->text, "held by tarn run, process")) {
        say_way();
    }
    (void)fputc('\n', stderr);
    return tn_exit_code(rc);
}

void tn_say_log(void *user, const char *level, struct tn_bytes text)
{
    (void)user;
    (void)fprintf(stderr, "%s: %.*s\n", level, (int)text.size, (const char *)text.data);
}

int tn_say_usage(const struct tn_command *command)
{
    (void)fprintf(stderr, "tarn: usage: tarn %s\n", command->usage);
    return 2;
}

int tn_run_verb(tn_verb_fn *verb, const struct tn_text_list *words)
{
    static struct tn_app app;
    struct tn_err err = {0};
    tn_rc rc = tn_boot(&app, false, &err);
    if (rc != TN_OK) {
        return tn_say_error(rc, &err);
    }
    rc = verb(&app, words, &err);
    int code = rc == TN_OK ? 0 : tn_say_error(rc, &err);
    tn_shut(&app);
    return code;
}

/* A closed standard stream's number goes to the next file that is opened: what is said on stderr
 * would end up in a table's file. Opened the wrong way round, so that its use still fails. */
static void keep_standard_numbers(void)
{
    for (int number = 0; number <= STDERR_FILENO; number++) {
        if (fcntl(number, F_GETFD) < 0 && errno == EBADF) {
            (void)open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

/* By its own path, which stays when the file is replaced: then the new one is meant. */
static void find_program(char **argv)
{
    static char path[4096];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    tn_common.argv = argv;
    tn_common.program = size > 0 && size < (ssize_t)sizeof path - 1 ? path : argv[0];
}

int main(int argc, char **argv)
{
    keep_standard_numbers();
    find_program(argv);
    const char *verb = argc > 1 ? argv[1] : "--help";
    if (strcmp(verb, "--help") == 0) {
        tn_say_overview(argc > 1 ? stdout : stderr);
        return argc > 1 ? 0 : 2;
    }
    if (strcmp(verb, "--version") == 0) {
        tn_say_version(stdout);
        return 0;
    }
    const struct tn_command *command = find(verb);
    if (!command) {
        return unknown_verb(verb);
    }
    const struct tn_flag *tables[] = {command->flags, tn_common_flags};
    const uint32_t counts[] = {command->flag_count, tn_common_flag_count};
    static const char *items[TN_LIST_MAX];
    struct tn_text_list words = {.items = items, .capacity = TN_LIST_MAX};
    struct tn_err err = {0};
    tn_rc rc = tn_args_parse(argc - 2, argv + 2, tables, counts, 2, &words, &err);
    if (rc != TN_OK) {
        return tn_say_error(rc, &err);
    }
    if (tn_common.version) {
        tn_say_version(stdout);
        return 0;
    }
    return tn_common.help ? print_help(command) : command->run(&words);
}
