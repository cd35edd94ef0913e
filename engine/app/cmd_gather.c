/* tarn gather: the lake's side of a table that gateways share: commits what they hand in, merges
 * manifests, compacts, expires; or has all committers wait.
 *
 *     lease -> round -> snapshot? -> report -> upkeep, when it is due -> the rest of a second ->
 * ...
 *
 * What another try may mend ends no gather: it is said, and tried again, later and later.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/cmd.h"
#include "app/gathering.h"
#include "app/stop.h"
#include "commit/snapshot.h"
#include "schema/options.h"
#include "upload/gather_pauser.h"

static struct {
    bool once;
    bool pause;
    const char *quiet_after;
    const char *sure_after;
    uint64_t rate;
    struct tn_text_list options;
} o = {.options = TN_TEXT_LIST(TN_LIST_MAX)};

static const struct tn_flag flags[] = {
    {"once", 0, TN_FLAG_SET, &o.once, NULL, "what is there now, then stop"},
    {"pause", 0, TN_FLAG_SET, &o.pause, NULL,
     "have all committers wait until a signal comes, and say when it is quiet"},
    {"quiet-after", 0, TN_FLAG_TEXT, &o.quiet_after, "TIME",
     "with --pause: after so long without a commit (120 s)"},
    {"sure-after", 0, TN_FLAG_TEXT, &o.sure_after, "TIME",
     "so long after its commit an entry leaves the inbox, or behind the next commit (10 s)"},
    {"option", 0, TN_FLAG_LIST, &o.options, "K=V",
     "of an object store, like s3.endpoint=...; else the environment's AWS_..."},
    {"rate", 0, TN_FLAG_SIZE, &o.rate, "SIZE", "bytes a second to an object store, like 1M"},
};

enum {
    ROUND_MS = 1000,
    UPKEEP_MS = 10 * 1000, /* from one to the next, or ten times what it took */
    UPKEEP_PART = 10,
    RETRY_MAX_MS = 60 * 1000,
    CONFLICTS_MAX = 20, /* one behind the other: somebody else is always faster */
};

#define MS_NS INT64_C(1000000)

struct loop {
    struct tn_gathering gathering;
    struct tn_gather_result result;
    uint32_t refused;
    uint32_t conflicts; /* one behind the other */
    int64_t retry_ms;
    bool paused; /* that was said */
    bool new;    /* snapshots since the last upkeep */
    int64_t upkeep_due_ms;
};

static int64_t now_ms(const struct loop *loop)
{
    struct tn_clock *clock = loop->gathering.app->env.clock;
    return clock->vtable->monotonic_ns(clock) / MS_NS;
}

static struct tn_arena *scratch_of(const struct loop *loop)
{
    return &loop->gathering.app->workers[TN_LANE_LONG].arena;
}

/* ---- which table ---- */

/* "PLACE/D.db/T" is D.T at PLACE. */
static tn_rc split(const char *target, struct tn_arena *arena, struct tn_gathering_spec *spec,
                   struct tn_err *err)
{
    size_t size = strlen(target);
    while (size > 0 && target[size - 1] == '/') {
        size--;
    }
    char *text = tn_arena_text(arena, (struct tn_bytes){(const unsigned char *)target, size});
    char *table = text ? strrchr(text, '/') : NULL;
    if (!text) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for a path");
    }
    if (table) {
        *table++ = 0;
    }
    char *database = table ? strrchr(text, '/') : NULL;
    char *tail = database ? strstr(database, ".db") : NULL;
    if (!tail || tail[3] != 0 || database == text) {
        return tn_err_set(err, TN_INVALID, 0,
                          "%s: which table? It ends in /D.db/T, or is said before: D.T %s", target,
                          target);
    }
    *tail = 0;
    *database = 0;
    spec->where = text;
    spec->table = tn_arena_format(arena, "%s.%s", database + 1, table);
    return spec->table ? TN_OK : tn_err_set(err, TN_AGAIN, 0, "no memory for a name");
}

static tn_rc take_words(const struct tn_text_list *words, struct tn_arena *arena,
                        struct tn_gathering_spec *spec, struct tn_err *err)
{
    *spec = (struct tn_gathering_spec){
        .options = &o.options, .rate = o.rate, .sure_ms = TN_GATHER_SURE_MS};
    if (o.sure_after && !tn_parse_duration(tn_bytes_of(o.sure_after), &spec->sure_ms)) {
        return tn_err_set(err, TN_INVALID, 0, "--sure-after %s: a time, like 10s", o.sure_after);
    }
    if (words->count == 1) {
        return split(words->items[0], arena, spec, err);
    }
    spec->table = words->items[0];
    spec->where = words->items[1];
    return TN_OK;
}

/* ---- the lease ---- */

/* Another's lease ends `once` as soon as it is known to be alive; else it is waited for. */
static tn_rc take_lease(struct loop *loop, struct tn_err *err)
{
    struct tn_lease *lease = &loop->gathering.lease;
    bool said = false;
    for (;;) {
        tn_rc rc = tn_lease_keep(lease, scratch_of(loop), err);
        if (rc != TN_EXISTS || (o.once && lease->alive)) {
            return rc;
        }
        if (!said && !tn_common.quiet) {
            (void)fprintf(stderr, "waiting: %s\n", err->text);
            said = true;
        }
        if (tn_stop_came(ROUND_MS)) {
            return tn_err_set(err, TN_CANCELED, 0, "stopped");
        }
    }
}

/* ---- the loop ---- */

static void report(struct loop *loop)
{
    const struct tn_gather_result *r = &loop->result;
    loop->refused += r->refused;
    loop->new = loop->new || r->snapshot_id > 0;
    if (r->snapshot_id > 0 && !tn_common.quiet) {
        (void)fprintf(stderr,
                      "committed snapshot=%" PRId64 " rows=%" PRId64 " table=%s entries=%" PRIu32
                      " files=%" PRIu32 "\n",
                      r->snapshot_id, r->rows, loop->gathering.table, r->entries, r->files);
    }
    if (r->written_over > 0) {
        (void)fprintf(stderr,
                      "tarn: warning: %s: somebody wrote over snapshot %" PRId64
                      ", which this gather had made: %s; official writers need a pause\n",
                      loop->gathering.table, r->written_over,
                      r->heals ? "what it had of gateways is gathered again"
                               : "rows that it had of gateways may be lost");
    }
    bool says = r->paused && !loop->paused && !(o.once && r->pause_alive);
    if (says && !tn_common.quiet) {
        struct tn_err said;
        (void)tn_pause_say(&r->pause, loop->gathering.table, &said);
        (void)fprintf(stderr, "waiting: %s\n", said.text);
    }
    loop->paused = r->paused;
}

/* OK: it goes on. */
static tn_rc settle(struct loop *loop, tn_rc rc, struct tn_err *err)
{
    if (rc == TN_OK) {
        loop->conflicts = 0;
        loop->retry_ms = 0;
        return TN_OK;
    }
    if (rc == TN_CONFLICT && ++loop->conflicts < CONFLICTS_MAX) {
        return TN_OK;
    }
    if (o.once || (rc != TN_IO && rc != TN_FULL && rc != TN_CONFLICT && rc != TN_EXISTS)) {
        return rc;
    }
    loop->retry_ms = loop->retry_ms > 0 ? 2 * loop->retry_ms : ROUND_MS;
    loop->retry_ms = loop->retry_ms < RETRY_MAX_MS ? loop->retry_ms : RETRY_MAX_MS;
    (void)fprintf(stderr, "tarn: %s; it is tried again\n", err->text);
    (void)tn_stop_came(loop->retry_ms);
    return TN_OK;
}

static tn_rc upkeep(struct loop *loop, struct tn_err *err)
{
    int64_t begin = now_ms(loop);
    tn_rc rc = tn_gathering_upkeep(&loop->gathering, err);
    int64_t took = now_ms(loop) - begin;
    int64_t pause = took * UPKEEP_PART > UPKEEP_MS ? took * UPKEEP_PART : UPKEEP_MS;
    loop->upkeep_due_ms = now_ms(loop) + pause;
    loop->new = loop->new && (rc != TN_OK || loop->gathering.stopped);
    return rc;
}

/* True: there was nothing to be done. */
static tn_rc one_round(struct loop *loop, bool *idle, struct tn_err *err)
{
    *idle = false;
    tn_rc rc = take_lease(loop, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_gathering_round(&loop->gathering, &loop->result, err);
    report(loop);
    if (rc != TN_OK) {
        return rc;
    }
    const struct tn_gather_result *r = &loop->result;
    /* A pause that nobody is known to hold is waited out, also by `once`, and so is what is held.
     */
    *idle = r->held == 0 &&
            (r->paused ? r->pause_alive : !r->more && r->entries + r->known + r->refused == 0);
    bool due = loop->new && !r->paused && (o.once ? *idle : now_ms(loop) >= loop->upkeep_due_ms);
    return due ? upkeep(loop, err) : TN_OK;
}

/* There is nothing to be done but to see that what was committed stays. */
static bool holds_only(const struct tn_gather_result *r)
{
    return r->held > 0 && !r->more && r->entries + r->known + r->gone + r->refused == 0;
}

static tn_rc go_on(struct loop *loop, struct tn_err *err)
{
    bool idle = false;
    tn_rc rc = TN_OK;
    while (rc == TN_OK && !(o.once && idle) && !tn_stop_came(0)) {
        int64_t begin = now_ms(loop);
        rc = settle(loop, one_round(loop, &idle, err), err);
        int64_t left = ROUND_MS - (now_ms(loop) - begin);
        bool busy = o.once ? !loop->paused && !holds_only(&loop->result) : loop->result.more;
        bool waits = rc == TN_OK && !(o.once && idle) && !busy && loop->conflicts == 0;
        if (waits && left > 0) {
            (void)tn_stop_came(left);
        }
    }
    if (rc == TN_OK && o.once && loop->paused) {
        (void)tn_pause_say(&loop->result.pause, loop->gathering.table, err);
        return tn_err_set(err, TN_EXISTS, 0, "%s", err->text);
    }
    return rc == TN_CANCELED ? TN_OK : rc;
}

/* ---- the pause ---- */

struct holding {
    const struct loop *loop;
    struct tn_pauser pauser;
    int64_t quiet_ms;
    bool quiet; /* nobody took the mark away since it was looked at */
    bool said;  /* that it can't be kept */
};

static tn_rc newest(const struct loop *loop, int64_t *id, struct tn_err *err)
{
    struct tn_arena *scratch = scratch_of(loop);
    size_t mark = tn_arena_mark(scratch);
    tn_rc rc = tn_snapshot_latest(loop->gathering.io, loop->gathering.root, scratch, id, err);
    tn_arena_reset(scratch, mark);
    *id = rc == TN_ABSENT ? 0 : *id;
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* What fails is tried again a moment later; before the mark has run out people must know. */
static void keep_pause(struct holding *h)
{
    bool lost = false;
    struct tn_err err;
    tn_rc rc = tn_pauser_keep(&h->pauser, scratch_of(h->loop), &lost, &err);
    if (lost) {
        (void)fprintf(stderr, "tarn: the pause was taken away, and is set again: what official "
                              "work was done meanwhile may have met commits\n");
        h->quiet = false;
    }
    bool says = rc != TN_OK && tn_pauser_age_ms(&h->pauser) >= TN_PAUSE_TTL_MS / 3;
    if (says && !h->said) {
        (void)fprintf(stderr,
                      "tarn: the pause can't be kept, and ends in a minute or two: stop "
                      "official work: %s\n",
                      err.text);
    }
    h->said = says;
}

/* Until no snapshot came for so long. */
static tn_rc wait_for_quiet(struct holding *h, int64_t *id, struct tn_err *err)
{
    int64_t since = now_ms(h->loop);
    tn_rc rc = newest(h->loop, id, err);
    h->quiet = true;
    while (rc == TN_OK && now_ms(h->loop) - since < h->quiet_ms && !tn_stop_came(ROUND_MS)) {
        int64_t now = *id;
        keep_pause(h);
        rc = newest(h->loop, &now, err);
        if (rc == TN_OK && (now != *id || !h->quiet)) {
            since = now_ms(h->loop);
            *id = now;
            h->quiet = true;
        }
    }
    return rc;
}

static tn_rc hold_pause(struct holding *h, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    while (rc == TN_OK && !tn_stop_came(0)) {
        int64_t id = 0;
        rc = wait_for_quiet(h, &id, err);
        if (rc != TN_OK || tn_stop_came(0)) {
            break;
        }
        (void)fprintf(
            stderr,
            "quiet: %s is at snapshot %" PRId64
            " and nobody of tarn commits. When official work is done, end this (SIGINT)\n",
            h->loop->gathering.table, id);
        while (h->quiet && !tn_stop_came(ROUND_MS)) {
            keep_pause(h);
        }
    }
    return rc;
}

static tn_rc pause_all(struct loop *loop, struct tn_err *err)
{
    static struct holding h;
    struct tn_gathering *g = &loop->gathering;
    bool lost;
    h = (struct holding){.loop = loop, .quiet_ms = TN_PAUSE_QUIET_MS};
    if (o.quiet_after && !tn_parse_duration(tn_bytes_of(o.quiet_after), &h.quiet_ms)) {
        return tn_err_set(err, TN_INVALID, 0, "--quiet-after %s: a time, like 60s", o.quiet_after);
    }
    tn_pauser_init(&h.pauser, g->place.lake.target, g->app->env.clock, g->table, g->lease.own.who);
    tn_rc rc = tn_pauser_keep(&h.pauser, scratch_of(loop), &lost, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (!tn_common.quiet) {
        (void)fprintf(stderr, "commits to %s are paused\n", g->table);
    }
    rc = hold_pause(&h, err);
    struct tn_err lift_err;
    tn_rc lifted = tn_pauser_lift(&h.pauser, scratch_of(loop), &lift_err);
    if (lifted != TN_OK) {
        (void)fprintf(stderr, "tarn: the pause stays for some minutes: %s\n", lift_err.text);
    }
    return rc == TN_OK && lifted != TN_OK ? lifted : rc;
}

/* ---- the verb ---- */

static int gather(struct tn_app *app, const struct tn_text_list *words)
{
    static struct loop loop;
    struct tn_gathering_spec spec;
    struct tn_err err = {0};
    tn_rc rc = take_words(words, &app->table, &spec, &err);
    if (rc != TN_OK) {
        return tn_say_error(rc, &err);
    }
    tn_stop_hold();
    rc = tn_gathering_open(&loop.gathering, app, &spec, &err);
    if (rc == TN_OK) {
        rc = o.pause ? pause_all(&loop, &err) : go_on(&loop, &err);
    }
    int code = rc != TN_OK ? tn_say_error(rc, &err) : loop.refused > 0 && o.once ? 1 : 0;
    tn_gathering_close(&loop.gathering);
    return code;
}

static int run(const struct tn_text_list *words)
{
    static struct tn_app app;
    struct tn_err err = {0};
    if (words->count < 1 || words->count > 2 || (o.once && o.pause) ||
        (o.quiet_after && !o.pause) || (o.sure_after && o.pause)) {
        return tn_say_usage(&tn_cmd_gather);
    }
    tn_rc rc = tn_boot(&app, true, &err);
    if (rc != TN_OK) {
        return tn_say_error(rc, &err);
    }
    int code = gather(&app, words);
    tn_shut(&app);
    return code;
}

const struct tn_command tn_cmd_gather = {
    "gather",
    "gather PLACE/D.db/T | D.T PLACE",
    "commits what gateways hand in to a lake's table that they share; compacts it, expires",
    flags,
    sizeof flags / sizeof flags[0],
    run,
};
