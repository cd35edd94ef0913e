#include "app/reload.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/boot.h"
#include "app/notify.h"
#include "base/wait.h"

enum {
    CHECK_MS_MAX = 30 * 1000,
    CHECK_WAIT_MS = 50, /* between two looks at what it says: a pipe holds more than that */
    LOOK_WAIT_MS = 100, /* between two looks at a file */
    NS_PER_MS = 1000000,
    READS_MAX = 16, /* in a turn */
    EXIT_NO_PROGRAM = 127,
    ARGUMENTS_MAX = 10,
};

void tn_reload_init(struct tn_reload *reload, const struct tn_reload_spec *spec)
{
    *reload = (struct tn_reload){.spec = *spec, .report.fd = -1, .words.fd = -1};
}

uint64_t tn_reload_ask(struct tn_reload *reload)
{
    reload->wanted = true;
    return ++reload->asked;
}

uint64_t tn_reload_look(struct tn_reload *reload)
{
    return ++reload->asked;
}

static void refuse(struct tn_reload *r, const char *why)
{
    (void)snprintf(r->trouble, sizeof r->trouble, "%s", why);
    r->answered = r->checking;
    r->wanted = r->wanted && r->asked > r->checking;
    r->state = TN_RELOAD_IDLE;
    tn_log_event(r->spec.log, TN_LOG_ERROR, "reload", "text=\"refused: %s\"", r->trouble);
}

/* ---- the other process ---- */

/* Between fork and exec: nothing that another thread may hold a lock of. */
static void become_check(char *const *argv, const int report[2], const int words[2])
{
    int nothing = open("/dev/null", O_RDONLY);
    (void)signal(SIGPIPE, SIG_DFL);
    if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(report[1], STDOUT_FILENO) >= 0 &&
        dup2(words[1], STDERR_FILENO) >= 0) {
        (void)execvp(tn_common.program, argv);
    }
    _exit(EXIT_NO_PROGRAM);
}

static bool open_pipes(int report[2], int words[2])
{
    if (pipe2(report, O_CLOEXEC) != 0) {
        return false;
    }
    if (pipe2(words, O_CLOEXEC) != 0) {
        (void)close(report[0]);
        (void)close(report[1]);
        return false;
    }
    (void)fcntl(report[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(words[0], F_SETFL, O_NONBLOCK);
    return true;
}

static pid_t start_check(struct tn_reload *r, char *const *argv)
{
    int report[2];
    int words[2];
    if (!open_pipes(report, words)) {
        return -1;
    }
    pid_t child = fork();
    if (child == 0) {
        become_check(argv, report, words);
    }
    int os = errno;
    (void)close(report[1]);
    (void)close(words[1]);
    r->report = (struct tn_reload_pipe){.fd = report[0]};
    r->words = (struct tn_reload_pipe){.fd = words[0]};
    errno = os;
    return child;
}

static void drop_pipes(struct tn_reload *r)
{
    struct tn_reload_pipe *pipes[] = {&r->report, &r->words};
    for (int i = 0; i < 2; i++) {
        if (pipes[i]->fd >= 0) {
            (void)close(pipes[i]->fd);
        }
        pipes[i]->fd = -1;
    }
}

static void begin_check(struct tn_reload *r, int64_t now_ms)
{
    char memory[32]; /* as the command line had it, for it goes before the configuration's */
    const struct tn_config *config = r->spec.config;
    const char *argv[ARGUMENTS_MAX] = {tn_common.program, "check",    config->path, "--stay-in",
                                       config->warehouse, "--format", "json"};
    r->checking = r->asked;
    r->begins = r->wanted;
    r->wanted = false;
    r->more = 0;
    r->trouble[0] = 0;
    for (uint32_t i = 0; i < r->spec.keeper_count; i++) {
        r->spec.keepers[i].stays = false;
    }
    if (r->spec.memory > 0) {
        (void)snprintf(memory, sizeof memory, "%" PRIu64, r->spec.memory);
        argv[7] = "--memory";
        argv[8] = memory;
    }
    pid_t child = start_check(r, (char *const *)argv);
    if (child < 0) {
        char text[128];
        (void)snprintf(text, sizeof text, "no process to check it with: %s", strerror(errno));
        drop_pipes(r);
        refuse(r, text);
        return;
    }
    r->child = child;
    r->late = false;
    r->deadline_ms = now_ms + CHECK_MS_MAX;
    r->state = TN_RELOAD_CHECKS;
    tn_log_event(r->spec.log, TN_LOG_INFO, "reload", "config=%s text=\"checked\"", config->path);
}

/* ---- what it says ---- */

/* {"table":"db.t",... */
static void take_report(struct tn_reload *r, const char *line)
{
    static const char BEGIN[] = "{\"table\":\"";
    if (strncmp(line, BEGIN, sizeof BEGIN - 1) != 0) {
        return;
    }
    const char *name = line + sizeof BEGIN - 1;
    size_t size = strcspn(name, "\"");
    bool known = false;
    for (uint32_t i = 0; i < r->spec.keeper_count; i++) {
        struct tn_keeper *k = &r->spec.keepers[i];
        bool same = strlen(k->name) == size && memcmp(k->name, name, size) == 0;
        k->stays = k->stays || same;
        known = known || same;
    }
    r->more += !known;
}

static void take_words(struct tn_reload *r, const char *line)
{
    static const char BEGIN[] = "tarn: ";
    line += strncmp(line, BEGIN, sizeof BEGIN - 1) == 0 ? sizeof BEGIN - 1 : 0;
    bool warning = strncmp(line, "warning: ", 9) == 0;
    tn_log_event(r->spec.log, warning ? TN_LOG_WARN : TN_LOG_ERROR, "reload", "text=\"%s\"", line);
    if (!warning && r->trouble[0] == 0) { /* the first says most */
        (void)snprintf(r->trouble, sizeof r->trouble, "%s", line);
    }
}

typedef void line_fn(struct tn_reload *r, const char *line);

/* Of a line that is too long the beginning counts. */
static void take_bytes(struct tn_reload *r, struct tn_reload_pipe *p, const char *bytes,
                       size_t size, line_fn *line)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '\n') {
            p->line[p->size] = 0;
            line(r, p->line);
            p->size = 0;
        } else if (p->size < sizeof p->line - 1) {
            p->line[p->size++] = bytes[i];
        }
    }
}

static void read_lines(struct tn_reload *r, struct tn_reload_pipe *p, line_fn *line)
{
    char bytes[512];
    for (int i = 0; i < READS_MAX && p->fd >= 0; i++) {
        ssize_t got = read(p->fd, bytes, sizeof bytes);
        if (got > 0) {
            take_bytes(r, p, bytes, (size_t)got, line);
        } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        } else {
            (void)close(p->fd);
            p->fd = -1;
        }
    }
}

/* ---- what comes of it ---- */

/* Of a table that goes nobody takes what it hasn't committed. */
static const struct tn_keeper *find_stuck(const struct tn_reload *r)
{
    for (uint32_t i = 0; i < r->spec.keeper_count; i++) {
        const struct tn_keeper *k = &r->spec.keepers[i];
        if (!k->stays && (k->trouble != TN_OK || k->state == TN_KEEPER_SHUT)) {
            return k;
        }
    }
    return NULL;
}

static void say_failed(struct tn_reload *r, int status)
{
    char text[TN_ERR_TEXT_SIZE];
    if (r->late) {
        (void)snprintf(text, sizeof text, "checking it takes more than %d s", CHECK_MS_MAX / 1000);
    } else if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_PROGRAM) {
        (void)snprintf(text, sizeof text, "%s can't be run", tn_common.program);
    } else if (WIFSIGNALED(status)) {
        (void)snprintf(text, sizeof text, "checking it was ended by signal %d", WTERMSIG(status));
    } else if (r->trouble[0] == 0) {
        (void)snprintf(text, sizeof text, "checking it failed, and didn't say why");
    } else {
        memcpy(text, r->trouble, sizeof text);
    }
    refuse(r, text);
}

static void take_result(struct tn_reload *r, int status)
{
    char text[TN_ERR_TEXT_SIZE];
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        say_failed(r, status);
        return;
    }
    const struct tn_keeper *stuck = find_stuck(r);
    if (stuck) {
        (void)snprintf(text, sizeof text, "%s isn't in it, and can't commit what it has: %.180s",
                       stuck->name, stuck->trouble_text.text);
        refuse(r, text);
        return;
    }
    r->trouble[0] = 0;
    if (r->asked > r->checking || !r->begins) { /* it may be another one by now */
        r->answered = r->checking;
        r->wanted = r->wanted || (r->begins && r->asked > r->checking);
        r->state = TN_RELOAD_IDLE;
        return;
    }
    r->state = TN_RELOAD_BEGINS;
    tn_log_event(r->spec.log, TN_LOG_INFO, "reload",
                 "text=\"begins: sources stop, tables commit\"");
}

static void turn_check(struct tn_reload *r, int64_t now_ms)
{
    int status = 0;
    pid_t ended = waitpid(r->child, &status, WNOHANG);
    read_lines(r, &r->report, take_report); /* what was said before it ended is there */
    read_lines(r, &r->words, take_words);
    if (ended == 0) {
        if (now_ms > r->deadline_ms && !r->late) {
            r->late = true;
            (void)kill(r->child, SIGKILL);
        }
        return;
    }
    while (r->report.fd >= 0 || r->words.fd >= 0) { /* more than a turn's share */
        read_lines(r, &r->report, take_report);
        read_lines(r, &r->words, take_words);
    }
    r->child = 0;
    take_result(r, ended < 0 ? EXIT_NO_PROGRAM << 8 : status);
}

void tn_reload_turn(struct tn_reload *reload, const char *refusal, int64_t now_ms,
                    uint32_t *wait_ms)
{
    struct tn_reload *r = reload;
    r->refusal = refusal;
    if (r->state == TN_RELOAD_IDLE && r->asked > r->answered && refusal) {
        r->checking = r->asked;
        refuse(r, refusal);
    } else if (r->state == TN_RELOAD_IDLE && r->asked > r->answered) {
        begin_check(r, now_ms);
    } else if (r->state == TN_RELOAD_CHECKS) {
        turn_check(r, now_ms);
    }
    if (r->state == TN_RELOAD_CHECKS) {
        tn_wait_lower(wait_ms, CHECK_WAIT_MS);
    } else if (r->state == TN_RELOAD_BEGINS || r->asked > r->answered) {
        *wait_ms = 0;
    }
}

bool tn_reload_waits(const struct tn_reload *reload)
{
    for (uint32_t i = 0; i < reload->spec.keeper_count; i++) {
        const struct tn_keeper *k = &reload->spec.keepers[i];
        if (!k->stays && !(k->state == TN_KEEPER_LIVE && tn_keeper_settled(k))) {
            return true;
        }
    }
    return false;
}

void tn_reload_close(struct tn_reload *reload)
{
    struct tn_reload *r = reload;
    if (r->child > 0) {
        (void)kill(r->child, SIGKILL);
        (void)waitpid(r->child, NULL, 0);
    }
    r->child = 0;
    drop_pipes(r);
}

/* ---- another start ---- */

static void fill(sigset_t *set, bool all)
{
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGHUP);
    if (all) {
        (void)sigaddset(set, SIGINT);
        (void)sigaddset(set, SIGTERM);
    }
}

void tn_reload_hold(bool all)
{
    sigset_t set;
    fill(&set, all);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
}

void tn_reload_let(void)
{
    sigset_t set;
    fill(&set, true);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

bool tn_reload_started(void)
{
    sigset_t held;
    (void)sigprocmask(SIG_BLOCK, NULL, &held);
    return sigismember(&held, SIGTERM) == 1;
}

static struct stat stamp_of(const char *path)
{
    struct stat stamp;
    if (stat(path, &stamp) != 0) {
        memset(&stamp, 0, sizeof stamp);
    }
    return stamp;
}

struct stat tn_reload_stamp(const char *path)
{
    static const struct timespec none = {.tv_sec = 0};
    sigset_t set;
    fill(&set, false);
    (void)sigtimedwait(&set, NULL, &none); /* it is held: tn_reload_hold */
    return stamp_of(path);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Who watches the process hears that it lives. */
static int wait_for_word(const sigset_t *set, const char *path, const struct stat *before)
{
    static const struct timespec wait = {.tv_nsec = (long)LOOK_WAIT_MS * NS_PER_MS};
    struct tn_clock *clock = &tn_clock_system;
    struct tn_notify notify;
    struct stat now = stamp_of(path);
    int number = -1;
    tn_notify_open(&notify);
    notify.watched = true;
    while (number < 0 && same_file(&now, before)) {
        uint32_t ignored = 0;
        tn_notify_turn(&notify, tn_clock_monotonic_ms(clock), &ignored);
        number = sigtimedwait(set, NULL, &wait);
        now = stamp_of(path);
    }
    tn_notify_close(&notify);
    return number;
}

bool tn_reload_await(const char *path, const struct stat *was)
{
    sigset_t set;
    fill(&set, true);
    (void)fprintf(stderr, "tarn: reload: no rows are taken until %s is good\n", path);
    int number = wait_for_word(&set, path, was);
    return number != SIGTERM && number != SIGINT;
}

void tn_reload_exec(struct tn_err *err)
{
    (void)fflush(NULL);
    (void)execvp(tn_common.program, tn_common.argv);
    int os = errno;
    (void)tn_err_set(err, TN_IO, os, "reload: %s can't be run: %s", tn_common.program,
                     strerror(os));
}
