#include "app/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "app/cmd.h"
#include "app/handing.h"
#include "app/lines.h"

enum {
    LOG_SIZE = 4096,
    ROOM_MS = 5,       /* to the next try where the daemon has no room */
    SAY_MS = 2 * 1000, /* then it is said */
    WAIT_MS_MAX = 1000,
};

struct handover {
    struct tn_offering *offering;
    const struct tn_writing_spec *spec;
    enum tn_input input;
    uint64_t every_rows;
    int64_t every_ms;
    uint64_t committed; /* rows */
    int64_t committed_ms;
    int64_t blocked_ms; /* since when; 0: it isn't */
    bool said;          /* that it is */
    int event;          /* the reading thread's */
    void *memory;
    struct tn_log log;
    unsigned char log_memory[LOG_SIZE];
    struct tn_lines lines;
};

/* ---- what can't be obeyed ---- */

static tn_rc check_options(const struct tn_writing_spec *spec, struct tn_err *err)
{
    const struct {
        const char *name;
        bool given;
    } refused[] = {
        {"--dead-letters", spec->dead_letters != NULL},
        {"--unknown-columns", spec->unknown_columns != NULL},
        {"--time", spec->times->count > 0},
        {"--user", spec->user != NULL},
        {"--commit-id", spec->commit_id >= 0},
        {"--from", spec->from != NULL},
        {"--stats", spec->stats},
    };
    char names[128];
    struct tn_buf buf;
    tn_buf_init(&buf, names, sizeof names - 1);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (refused[i].given) {
            tn_buf_format(&buf, "%s%s", buf.size > 0 ? ", " : "", refused[i].name);
        }
    }
    names[buf.size] = 0;
    return buf.size == 0 ? TN_OK
                         : tn_err_set(err, TN_INVALID, 0,
                                      "tarn run holds %s and takes the rows: %s can't be obeyed "
                                      "there",
                                      spec->table_name, names);
}

/* ---- commits ---- */

static int64_t now_ms(const struct handover *h)
{
    struct tn_clock *clock = h->spec->app->env.clock;
    return tn_clock_monotonic_ms(clock);
}

static tn_rc commit(struct handover *h, struct tn_err *err)
{
    struct tn_offering *o = h->offering;
    struct tn_handed handed;
    struct tn_job_wish wish = {.verb = TN_JOB_COMMIT, .expiry = {-1, -1, -1}, .place = o->place};
    (void)snprintf(wish.table, sizeof wish.table, "%s", h->spec->table_name);
    tn_rc rc = tn_hand(h->spec->app, &wish, NULL, &handed, err);
    h->committed_ms = now_ms(h);
    if (rc != TN_OK) {
        return rc == TN_ABSENT ? tn_err_set(err, TN_IO, 0, "tarn run has ended, or begins anew")
                               : rc;
    }
    h->committed = o->rows;
    if (!tn_common.quiet) {
        (void)fprintf(stderr, "committed snapshot=%" PRId64 " rows=%" PRIu64 " table=%s\n",
                      handed.values[TN_JOB_COMMITTED], o->rows, h->spec->table_name);
        (void)fflush(stderr);
    }
    return TN_OK;
}

static bool is_due(const struct handover *h)
{
    uint64_t rows = h->offering->rows - h->committed;
    return (h->every_rows > 0 && rows >= h->every_rows) ||
           (h->every_ms > 0 && rows > 0 && now_ms(h) - h->committed_ms >= h->every_ms);
}

/* ---- rows ---- */

static void wake(void *user)
{
    const struct handover *h = user;
    (void)eventfd_write(h->event, 1);
}

static void wait_for_bytes(struct handover *h, uint32_t wait_ms)
{
    struct pollfd poll_fd = {.fd = h->event, .events = POLLIN};
    eventfd_t ignored;
    if (poll(&poll_fd, 1, (int)wait_ms) > 0) {
        (void)eventfd_read(h->event, &ignored);
    }
}

/* Who waits for long hears why, once. */
static void say_waits(struct handover *h)
{
    if (!h->lines.blocked) {
        h->blocked_ms = 0;
        h->said = false;
        return;
    }
    h->blocked_ms = h->blocked_ms == 0 ? now_ms(h) : h->blocked_ms;
    if (!h->said && now_ms(h) - h->blocked_ms >= SAY_MS) {
        (void)fprintf(stderr, "tarn: tarn run takes no rows now: %s\n", h->offering->waits.text);
        h->said = true;
    }
}

static tn_rc pass_all(struct handover *h, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    while (rc == TN_OK && !h->lines.ended) {
        uint32_t wait_ms =
            h->every_ms > 0 && h->every_ms < WAIT_MS_MAX ? (uint32_t)h->every_ms : WAIT_MS_MAX;
        tn_lines_turn(&h->lines, &wait_ms);
        if (h->offering->failed != TN_OK) {
            *err = h->offering->failure;
            return h->offering->failed;
        }
        say_waits(h);
        if (is_due(h)) {
            rc = commit(h, err);
        } else if (!h->lines.ended) {
            wait_for_bytes(h, h->lines.blocked ? ROOM_MS : wait_ms);
        }
    }
    return rc;
}

static tn_rc pass(struct handover *h, const char *path, struct tn_err *err)
{
    bool standard = strcmp(path, "-") == 0;
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return tn_err_set(err, errno == ENOENT ? TN_INVALID : TN_IO, errno, "open %s: %s", path,
                          strerror(errno));
    }
    struct tn_lines_spec spec = {.name = path,
                                 .table = h->spec->table_name,
                                 .input = h->input,
                                 .hub = &h->offering->hub,
                                 .log = &h->log,
                                 .clock = h->spec->app->env.clock,
                                 .memory = h->memory,
                                 .fd = fd,
                                 .notify = wake,
                                 .user = h};
    tn_rc rc = tn_lines_open(&h->lines, &spec, err);
    if (rc == TN_OK) {
        rc = pass_all(h, err);
        tn_lines_close(&h->lines);
    }
    if (!standard) {
        (void)close(fd);
    }
    return rc == TN_OK ? rc : tn_err_in(err, "%s", standard ? "stdin" : path);
}

static void say(void *user, enum tn_log_level level, const char *line, size_t size)
{
    (void)user;
    (void)level;
    (void)fprintf(stderr, "tarn: %.*s", (int)size, line);
}

static tn_rc open_handover(struct handover *h, struct tn_err *err)
{
    tn_rc rc = check_options(h->spec, err);
    if (rc == TN_OK) {
        rc = tn_writing_every(h->spec->commit_every, &h->every_rows, &h->every_ms, err);
    }
    if (rc == TN_OK) {
        rc = tn_input_parse(h->spec->input ? h->spec->input : "json", &h->input, err);
    }
    if (rc == TN_OK) {
        rc = tn_arena_need(&h->spec->app->input, tn_lines_memory(&h->offering->hub),
                           "records on their way", &h->memory, err);
    }
    if (rc == TN_OK) {
        tn_log_init(&h->log, h->log_memory, sizeof h->log_memory, say, NULL);
        h->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        rc = h->event >= 0 ? TN_OK : tn_err_set(err, TN_IO, errno, "eventfd: %s", strerror(errno));
    }
    return rc;
}

tn_rc tn_handover(struct tn_offering *offering, const struct tn_writing_spec *spec,
                  const char *const *paths, uint32_t count, int *code, struct tn_err *err)
{
    static struct handover handover;
    struct handover *h = &handover;
    *h = (struct handover){.offering = offering, .spec = spec, .event = -1};
    tn_rc rc = open_handover(h, err);
    h->committed_ms = rc == TN_OK ? now_ms(h) : 0;
    for (uint32_t i = 0; rc == TN_OK && i < count; i++) {
        rc = pass(h, paths[i], err);
    }
    if (rc == TN_OK && offering->rows > h->committed) {
        rc = commit(h, err);
    }
    if (h->event >= 0) {
        (void)close(h->event);
    }
    if (rc != TN_OK && offering->rows > h->committed) {
        (void)fprintf(stderr, "tarn: of %" PRIu64 " rows tarn run knows, or may know\n",
                      offering->rows - h->committed);
    }
    if (offering->dead > 0) {
        (void)fprintf(stderr, "tarn: %" PRIu64 " rows went to the dead letters of tarn run\n",
                      offering->dead);
        *code = 1;
    }
    return rc;
}
