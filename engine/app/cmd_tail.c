/* tarn tail: what changed, snapshot by snapshot. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/cmd.h"
#include "app/reader.h"
#include "app/rows.h"
#include "app/stop.h"
#include "changelog/tail.h"
#include "commit/consumer.h"

static struct {
    const char *from;
    int64_t to;
    bool follow;
    const char *consumer;
    bool forget;
    const char *columns;
    const char *where;
    int64_t limit;
} o = {.to = -1, .limit = -1};

enum {
    POLL_MS = 250,     /* a new snapshot is seen by looking for its file */
    ROWS_A_LOOK = 256, /* rows between two looks for a signal */
    CONSUMER_NAME_MAX = 100,
    EARLIEST_TRIES = 20 /* while a writer expires the snapshot that was chosen */
};

static const struct tn_flag flags[] = {
    {"from", 0, TN_FLAG_TEXT, &o.from, "N",
     "first snapshot, or earliest (the default), latest, or full: all rows, then what comes"},
    {"to", 0, TN_FLAG_I64, &o.to, "N", "last snapshot"},
    {"follow", 0, TN_FLAG_SET, &o.follow, NULL, "wait for new snapshots, until a signal"},
    {"consumer", 0, TN_FLAG_TEXT, &o.consumer, "ID",
     "goes on where ID stopped, else --from; what it has not seen stays"},
    {"forget", 0, TN_FLAG_SET, &o.forget, NULL, "removes --consumer ID, and reads nothing"},
    {"columns", 0, TN_FLAG_TEXT, &o.columns, "A,B", "only these columns"},
    {"where", 0, TN_FLAG_TEXT, &o.where, "EXPR", "only rows like 'temp > 80 and unit = \"C\"'"},
    {"limit", 0, TN_FLAG_I64, &o.limit, "N", "at most N rows"},
};

struct follower {
    struct tn_reader reader;
    struct tn_scan_spec spec;
    struct tn_tail tail;
    struct tn_scan scan; /* of the state that full begins with */
    struct tn_row_printer printer;
    int64_t left; /* rows; -1: no limit */
    int64_t next; /* snapshot */
    int64_t said; /* what the consumer's file says; -1: nothing yet */
    bool full;    /* the state at next - 1 comes first */
    bool stopped; /* by a signal */
    char holder[CONSUMER_NAME_MAX + sizeof ".full"]; /* the consumer while the state is read */
};

static struct tn_io *io_of(const struct follower *f)
{
    return &f->reader.app->posix.io;
}

static struct tn_arena *scratch_of(const struct follower *f)
{
    return &f->reader.app->workers[TN_LANE_SHORT].arena;
}

/* ---- signals: blocked from the start, and looked for where stopping loses nothing ---- */

static void look_for_signal(struct follower *f, int64_t wait_ms)
{
    f->stopped = tn_stop_came(wait_ms);
}

/* ---- rows ---- */

/* One more row is asked for than is printed: so a limit that ends with a snapshot is known to. */
static bool may_ask(struct follower *f, uint64_t rows)
{
    if (rows % ROWS_A_LOOK == ROWS_A_LOOK - 1) {
        look_for_signal(f, 0);
    }
    return !f->stopped;
}

/* CANCELED behind the limit. */
static tn_rc print_row(struct follower *f, const struct tn_kv *kv, struct tn_err *err)
{
    if (f->left == 0) {
        return TN_CANCELED;
    }
    f->left -= f->left > 0;
    return tn_row_printer_put(&f->printer, kv, err);
}

/* ABSENT when all of it was printed. */
static tn_rc print_state(struct follower *f, struct tn_err *err)
{
    struct tn_app *app = f->reader.app;
    const struct tn_part *window = tn_budget_part(&app->budget, "memtable");
    struct tn_plan_filter filter = {tn_tail_in_state, &f->reader.options, true};
    struct tn_scan_spec spec = f->spec;
    spec.filter = &filter;
    tn_rc rc = tn_scan_open(&f->scan, &spec, window->base, window->size, &app->table,
                            &app->workers[TN_LANE_LONG], err);
    if (rc != TN_OK) {
        return rc;
    }
    for (uint64_t rows = 0; rc == TN_OK && may_ask(f, rows); rows++) {
        struct tn_kv kv;
        rc = tn_scan_next(&f->scan, &kv, err);
        rc = rc == TN_OK ? print_row(f, &kv, err) : rc;
    }
    tn_scan_close(&f->scan);
    if (rc == TN_CANCELED) {
        return TN_OK;
    }
    if (rc != TN_OK && rc != TN_ABSENT && tn_reader_expired(&f->reader, err)) {
        return tn_err_set(err, TN_IO, 0, "snapshot %" PRId64 " %s", f->reader.snapshot.id,
                          "expired while it was read; please try again");
    }
    return rc;
}

/* OK when all changes of the snapshot were printed or a limit or signal came; ABSENT when it isn't
 * there yet. `whole` says which. */
static tn_rc print_changes(struct follower *f, bool *whole, struct tn_err *err)
{
    *whole = false;
    tn_rc rc = tn_tail_begin(&f->tail, f->next, err);
    if (rc != TN_OK) {
        return rc;
    }
    for (uint64_t rows = 0; rc == TN_OK && may_ask(f, rows); rows++) {
        struct tn_kv kv;
        rc = tn_tail_next(&f->tail, &kv, err);
        rc = rc == TN_OK ? print_row(f, &kv, err) : rc;
    }
    tn_tail_end(&f->tail);
    *whole = rc == TN_ABSENT;
    return *whole || rc == TN_CANCELED ? TN_OK : rc;
}

/* ---- where it starts ---- */

static tn_rc parse_from(struct follower *f, const char *from, struct tn_err *err)
{
    bool full = strncmp(from, "full:", 5) == 0;
    const char *digits = full ? from + 5 : from;
    char *end;
    long long id = strtoll(digits, &end, 10);
    if (*end != 0 || end == digits || id < 1) {
        return tn_err_set(err, TN_INVALID, 0,
                          "--from %s: a snapshot, earliest, latest, full, or full:N", from);
    }
    f->full = full;
    f->next = id;
    return TN_OK;
}

static tn_rc choose_earliest(struct follower *f, struct tn_err *err)
{
    int64_t latest;
    tn_rc rc = tn_tail_range(io_of(f), f->reader.root, scratch_of(f), &f->next, &latest, err);
    if (rc == TN_ABSENT) {
        f->next = 1;
        return TN_OK;
    }
    return rc;
}

static tn_rc choose_start(struct follower *f, struct tn_err *err)
{
    const char *from = o.from ? o.from : "earliest";
    f->full = false;
    if (strcmp(from, "earliest") == 0) {
        return choose_earliest(f, err);
    }
    if (strcmp(from, "latest") == 0 || strcmp(from, "full") == 0) {
        f->full = from[0] == 'f' && !f->reader.empty;
        f->next = f->reader.empty ? 1 : f->reader.snapshot.id + !f->full;
        return TN_OK;
    }
    return parse_from(f, from, err);
}

/* The snapshot whose state is read, when it isn't the newest. */
static tn_rc load_state(struct follower *f, struct tn_err *err)
{
    struct tn_reader *reader = &f->reader;
    if (!reader->empty && reader->snapshot.id == f->next) {
        return TN_OK;
    }
    tn_rc rc = tn_snapshot_read(io_of(f), reader->root, f->next, &reader->app->table,
                                &reader->snapshot, err);
    return rc == TN_ABSENT
               ? tn_err_set(err, TN_INVALID, 0, "there is no snapshot %" PRId64, f->next)
               : rc;
}

/* ---- the consumer ---- */

/* tarn's own must not be moved by hand; and `ID.full` is ours, too: it holds the snapshot whose
 * state is being read, since `ID` at that snapshot would mean that its state was read. */
static tn_rc check_consumer(const char *id, bool forget, struct tn_err *err)
{
    size_t size = strlen(id);
    enum tn_consumer_kind kind = tn_consumer_kind_of(id);
    bool own = kind != TN_CONSUMER_READER && !(forget && kind == TN_CONSUMER_LAKE);
    bool bad = size == 0 || size > CONSUMER_NAME_MAX || strchr(id, '/') || id[0] == '.';
    bool holder = size >= 5 && strcmp(id + size - 5, ".full") == 0;
    if (own || bad || holder) {
        return tn_err_set(err, TN_INVALID, 0, "--consumer %.100s: %s", id,
                          own ? "tarn's own" : "is no name for a consumer");
    }
    return TN_OK;
}

static tn_rc say_progress(struct follower *f, struct tn_err *err)
{
    if (!o.consumer || f->said == f->next) {
        return TN_OK;
    }
    tn_rc rc = tn_consumer_write(io_of(f), f->reader.root, o.consumer, f->next, scratch_of(f), err);
    f->said = rc == TN_OK ? f->next : f->said;
    return rc;
}

/* Before the first read, so that no expiry passes the start. Whoever expired it just before has
 * moved the earliest. */
static tn_rc hold_start(struct follower *f, struct tn_err *err)
{
    const char *name = f->full ? f->holder : o.consumer;
    tn_rc rc = TN_OK;
    int64_t held = -1;
    for (int tries = 0; rc == TN_OK && held != f->next && tries < EARLIEST_TRIES; tries++) {
        held = f->next;
        rc = tn_consumer_write(io_of(f), f->reader.root, name, held, scratch_of(f), err);
        rc = rc == TN_OK && !f->full ? choose_start(f, err) : rc;
    }
    f->said = f->full ? -1 : held;
    return rc;
}

static tn_rc remove_holder(struct follower *f, struct tn_err *err)
{
    tn_rc rc = tn_consumer_remove(io_of(f), f->reader.root, f->holder, scratch_of(f), err);
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* True when the consumer says where to go on. */
static tn_rc resume(struct follower *f, bool *found, struct tn_err *err)
{
    int64_t next;
    tn_rc rc = tn_consumer_read(io_of(f), f->reader.root, o.consumer, scratch_of(f), &next, err);
    *found = rc == TN_OK;
    if (rc == TN_OK) {
        f->full = false;
        f->next = next;
        f->said = next;
        return remove_holder(f, err); /* of a run that ended between the two */
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc forget(struct follower *f, struct tn_err *err)
{
    tn_rc rc = tn_consumer_remove(io_of(f), f->reader.root, o.consumer, scratch_of(f), err);
    tn_rc holder = tn_consumer_remove(io_of(f), f->reader.root, f->holder, scratch_of(f), err);
    if (rc == TN_ABSENT && holder == TN_ABSENT) {
        return tn_err_set(err, TN_ABSENT, 0, "there is no consumer '%s'", o.consumer);
    }
    return rc == TN_OK || rc == TN_ABSENT ? (holder == TN_ABSENT ? TN_OK : holder) : rc;
}

/* ---- the run ---- */

/* A start that can't be is refused before a consumer stands at it. */
static tn_rc check_start(struct follower *f, struct tn_err *err)
{
    if (f->full) {
        return load_state(f, err);
    }
    tn_rc rc = tn_tail_begin(&f->tail, f->next, err);
    tn_tail_end(&f->tail);
    bool chosen = !o.from || strcmp(o.from, "earliest") == 0; /* and chosen again if it expired */
    return rc == TN_ABSENT || (rc == TN_INVALID && chosen) ? TN_OK : rc;
}

static tn_rc start(struct follower *f, struct tn_err *err)
{
    bool resumed = false;
    f->said = -1;
    tn_rc rc = choose_start(f, err);
    if (rc == TN_OK && o.consumer) {
        rc = resume(f, &resumed, err);
    }
    if (rc == TN_OK && o.consumer && !resumed) {
        rc = check_start(f, err);
        rc = rc == TN_OK ? hold_start(f, err) : rc;
    }
    return rc == TN_OK && f->full ? load_state(f, err) : rc;
}

/* The order is: rows out, progress durable, holder gone; so that at any end the rows come again or
 * were seen. */
static tn_rc run_state(struct follower *f, struct tn_err *err)
{
    tn_rc rc = print_state(f, err);
    if (rc != TN_ABSENT) {
        return rc;
    }
    f->full = false;
    f->next++;
    rc = tn_row_printer_flush(&f->printer, err);
    if (rc == TN_OK) {
        rc = say_progress(f, err);
    }
    return rc == TN_OK && o.consumer ? remove_holder(f, err) : rc;
}

static tn_rc run_snapshot(struct follower *f, bool *whole, struct tn_err *err)
{
    uint64_t before = f->printer.output.rows;
    tn_rc rc = print_changes(f, whole, err);
    if (rc != TN_OK || !*whole) {
        return rc;
    }
    f->next++;
    if (f->printer.output.rows == before) {
        return TN_OK; /* said with the next rows, or at the end */
    }
    rc = tn_row_printer_flush(&f->printer, err);
    return rc == TN_OK ? say_progress(f, err) : rc;
}

/* ABSENT: there is nothing more for now. */
static tn_rc catch_up(struct follower *f, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    bool whole = true;
    while (rc == TN_OK && whole && !f->stopped && f->left != 0 && (o.to < 0 || f->next <= o.to)) {
        rc = run_snapshot(f, &whole, err);
        look_for_signal(f, 0);
    }
    if (rc != TN_OK && rc != TN_ABSENT) {
        return rc;
    }
    struct tn_err failure = {0};
    tn_rc said = say_progress(f, &failure);
    if (said != TN_OK) {
        *err = failure;
    }
    return said == TN_OK ? rc : said;
}

static tn_rc follow(struct follower *f, struct tn_err *err)
{
    tn_rc rc = f->full ? run_state(f, err) : TN_OK;
    if (rc == TN_OK && !f->full) {
        rc = catch_up(f, err);
    }
    while (rc == TN_ABSENT && o.follow && !f->stopped) {
        look_for_signal(f, POLL_MS);
        rc = f->stopped ? TN_OK : catch_up(f, err);
    }
    if (rc == TN_ABSENT && o.to >= f->next) {
        return tn_err_set(err, TN_INVALID, 0,
                          "--to %" PRId64 ": the latest snapshot is %" PRId64
                          "; --follow waits for more",
                          o.to, f->next - 1);
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc print_all(struct follower *f, struct tn_err *err)
{
    struct tn_app *app = f->reader.app;
    struct tn_tail_spec spec = {.scan = &f->spec, .source = tn_tail_source_of(&f->reader.options)};
    tn_rc rc = tn_reader_scan_spec(&f->reader, o.columns, o.where, &f->spec, err);
    if (rc == TN_OK) {
        rc = tn_tail_open(&f->tail, &spec, &app->table, &app->workers[TN_LANE_LONG], err);
    }
    if (rc == TN_OK) {
        rc = start(f, err);
    }
    if (rc == TN_OK) {
        rc =
            tn_row_printer_open(&f->printer, &f->tail.projection, &f->spec, true, &app->input, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    rc = follow(f, err);
    /* What came before a snapshot that fails was read right. */
    struct tn_err ignored;
    tn_rc closed = tn_row_printer_close(&f->printer, rc == TN_OK ? err : &ignored);
    return rc == TN_OK ? closed : rc;
}

static tn_rc tail(struct tn_app *app, const struct tn_text_list *words, struct tn_err *err)
{
    static struct follower f;
    const char *table = words->items[0];
    tn_rc rc = o.consumer ? check_consumer(o.consumer, o.forget, err) : TN_OK;
    if (rc == TN_OK) {
        rc = tn_reader_open(&f.reader, app, table, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    f.left = o.limit;
    if (o.consumer) {
        (void)snprintf(f.holder, sizeof f.holder, "%s.full", o.consumer);
    }
    rc = o.forget ? forget(&f, err) : print_all(&f, err);
    return rc == TN_OK ? rc : tn_err_in(err, "%s", table);
}

static int run(const struct tn_text_list *words)
{
    if (words->count != 1) {
        return tn_say_usage(&tn_cmd_tail);
    }
    if (o.forget && !o.consumer) {
        (void)fputs("tarn: --forget needs --consumer ID\n", stderr);
        return 2;
    }
    tn_stop_hold();
    return tn_run_verb(tail, words);
}

const struct tn_command tn_cmd_tail = {
    "tail",
    "tail D.T",
    "prints what changed, snapshot by snapshot",
    flags,
    sizeof flags / sizeof flags[0],
    run,
};
