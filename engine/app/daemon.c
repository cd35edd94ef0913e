#include "app/daemon_private.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/net_boot.h"
#include "schema/value.h"

enum {
    NS_PER_MS = 1000000,
    NS_PER_US = 1000,
    DROP_STEPS = 64,
    DROP_WAIT_MS = 20,
    REST_MS = 5000,
    EXIT_AT_ONCE = 4,
    OVERDRAWN_MS = 3600 * 1000,
};

/* ---- signals ---- */

/* A handler has nothing else to go by. */
static struct tn_net *signal_net;
static volatile sig_atomic_t stops;
static volatile sig_atomic_t hung_up;

/* Whoever was interrupted may be about to look at errno. */
static void wake_loop(void)
{
    int os = errno;
    tn_net_wake(signal_net);
    errno = os;
}

static void on_stop(int number)
{
    (void)number;
    stops = stops + 1;
    if (stops > 1) {
        _exit(EXIT_AT_ONCE);
    }
    wake_loop();
}

static void on_hangup(int number)
{
    (void)number;
    hung_up = 1;
    wake_loop();
}

static void on_child(int number)
{
    (void)number;
    wake_loop();
}

static void take_signals(struct tn_daemon *d)
{
    struct sigaction action = {.sa_handler = on_stop, .sa_flags = SA_RESTART | SA_NOCLDSTOP};
    signal_net = d->net;
    stops = 0;
    hung_up = 0;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    action.sa_handler = on_hangup;
    (void)sigaction(SIGHUP, &action, NULL);
    action.sa_handler = on_child;
    (void)sigaction(SIGCHLD, &action, NULL);
    action.sa_handler = SIG_IGN;
    (void)sigaction(SIGPIPE, &action, NULL);
    d->signals = true;
    d->notify.watched = tn_reload_started();
    tn_reload_let();
}

static void give_signals(struct tn_daemon *d)
{
    if (d->signals) {
        (void)signal(SIGTERM, SIG_DFL);
        (void)signal(SIGINT, SIG_DFL);
        (void)signal(SIGHUP, SIG_DFL);
        (void)signal(SIGCHLD, SIG_DFL);
        signal_net = NULL;
        d->signals = false;
    }
}

/* ---- log ---- */

static void say(void *user, enum tn_log_level level, const char *line, size_t size)
{
    struct tn_daemon *d = user;
    if (!d->spec.log_json) {
        (void)fwrite(line, 1, size, stderr);
        return;
    }
    struct tn_clock *clock = &tn_clock_system;
    struct tn_buf buf;
    tn_buf_init(&buf, d->log_text, sizeof d->log_text);
    tn_json_string(&buf, (struct tn_bytes){(const unsigned char *)line, size - 1});
    (void)fprintf(stderr, "{\"ms\":%" PRId64 ",\"level\":\"%s\",\"line\":%.*s}\n",
                  clock->vtable->now_ms(clock), tn_log_level_text(level), (int)buf.size,
                  (const char *)buf.data);
}

static tn_rc open_log(struct tn_daemon *d, struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(&d->spec.app->input, TN_DAEMON_LOG_SIZE, "the log", &memory, err);
    if (rc == TN_OK) {
        tn_log_init(&d->log, memory, TN_DAEMON_LOG_SIZE, say, d);
    }
    return rc;
}

/* ---- doors ---- */

static void wake(void *user)
{
    struct tn_daemon *d = user;
    tn_net_wake(d->net);
}

/* Uploads and network first: their parts are carved out of the memtable's. */
static tn_rc open_doors(struct tn_daemon *d, struct tn_err *err)
{
    struct tn_app *app = d->spec.app;
    bool tls;
    uint32_t streams = TN_CONTROL_STREAMS + tn_sources_streams(d->spec.config, &tls) +
                       tn_tell_streams(d->spec.config);
    tn_rc rc = d->spec.config->lakes ? tn_lakes_boot(&d->uploads, app, d->spec.config, err) : TN_OK;
    if (rc == TN_OK) {
        rc = tn_net_boot(app, streams, &d->net, err);
    }
    if (rc == TN_OK &&
        (tls || tn_lakes_boot_tls(d->spec.config) || tn_tell_tls(d->spec.config) > 0)) {
        tn_net_boot_tls(app);
    }
    if (rc == TN_OK && d->spec.config->lakes) {
        rc = tn_lakes_boot_stores(&d->uploads, d->spec.config, err);
    }
    if (rc == TN_OK) {
        rc = tn_exec_threads_open(d->threads, app->exec.exec.contexts, &d->exec, err);
    }
    if (rc == TN_OK) {
        d->exec->notify = wake;
        d->exec->notify_user = d;
        app->env.exec = d->exec;
    }
    return rc;
}

/* ---- the wear budget ---- */

static int64_t now_ns(const struct tn_daemon *d)
{
    struct tn_clock *clock = d->spec.app->env.clock;
    return clock->vtable->monotonic_ns(clock);
}

static int64_t wall_ms(const struct tn_daemon *d)
{
    struct tn_clock *clock = d->spec.app->env.clock;
    return clock->vtable->now_ms(clock);
}

/* Before the tables are opened, which go by it. */
static void open_wear(struct tn_daemon *d)
{
    struct tn_env *env = &d->spec.app->env;
    uint64_t budget = d->spec.config->wear_budget;
    d->wears = budget != TN_CONFIG_NO_BUDGET;
    if (d->wears) {
        tn_wear_init(&d->wear, budget, env->io, now_ns(d) / NS_PER_MS);
        tn_wear_load(&d->wear, wall_ms(d), env->arena);
        env->wear = &d->wear;
    }
}

/* Once an hour, while it is overdrawn. */
static void turn_wear(struct tn_daemon *d)
{
    int64_t now_ms = now_ns(d) / NS_PER_MS;
    if (!d->wears) {
        return;
    }
    tn_wear_look(&d->wear, now_ms);
    bool due = !d->overdrawn || now_ms - d->overdrawn_said_ms >= OVERDRAWN_MS;
    if (tn_wear_overdraft(&d->wear) > 0 && due) {
        d->overdrawn = true;
        d->overdrawn_said_ms = now_ms;
        tn_log_event(&d->log, TN_LOG_WARN, "wear",
                     "budget=%" PRIu64 " overdraft=%" PRIu64
                     " text=\"the wear budget is spent: compaction waits where rows don't\"",
                     d->wear.budget, tn_wear_overdraft(&d->wear));
    }
}

/* All has been written. */
static void close_wear(struct tn_daemon *d)
{
    struct tn_err err = {0};
    if (!d->wears) {
        return;
    }
    tn_wear_look(&d->wear, now_ns(d) / NS_PER_MS);
    if (tn_wear_save(&d->wear, wall_ms(d), &err) != TN_OK) {
        tn_log_err(&d->log, TN_LOG_WARN, "wear", &err);
    }
    d->spec.app->env.wear = NULL;
}

/* ---- parts ---- */

static struct tn_intake_spec intake_spec(struct tn_daemon *d)
{
    return (struct tn_intake_spec){.env = &d->spec.app->env,
                                   .arena = &d->spec.app->input,
                                   .log = &d->log,
                                   .keepers = d->keepers,
                                   .keeper_count = d->keeper_count,
                                   .config = d->spec.config,
                                   .drop = d->spec.drop,
                                   .parcel_size = d->sizes.parcel,
                                   .states = tn_intake_states(d->keepers, d->keeper_count)};
}

/* Only who has loaded the scripts knows what they keep. */
static tn_rc make_room_for_states(struct tn_daemon *d, struct tn_err *err)
{
    struct tn_intake_states states = tn_intake_states(d->keepers, d->keeper_count);
    return states.count == 0
               ? TN_OK
               : tn_sizes_choose_beside(d->spec.config, &states, tn_arena_free(&d->spec.app->input),
                                        &d->sizes, err);
}

static tn_rc open_tables(struct tn_daemon *d, struct tn_err *err)
{
    void *room;
    uint64_t unit = d->spec.config->unit_size_max;
    struct tn_env *env = &d->spec.app->env;
    env->unit_size_max = unit > 0 ? (int64_t)unit : env->unit_size_max;
    tn_rc rc = tn_daemon_make_tables(d, &room, err);
    if (rc == TN_OK) {
        open_wear(d);
        rc = tn_daemon_open_tables(d, room, err);
    }
    return rc == TN_OK ? make_room_for_states(d, err) : rc;
}

static tn_rc open_intake(struct tn_daemon *d, struct tn_err *err)
{
    struct tn_intake_spec spec = intake_spec(d);
    struct tn_status_spec status = {.config = d->spec.config,
                                    .intake = &d->intake,
                                    .sources = &d->sources,
                                    .budget = &d->spec.app->budget,
                                    .shares = d->shares,
                                    .lakes = &d->lakes,
                                    .pulse = &d->pulse,
                                    .wear = d->wears ? &d->wear : NULL,
                                    .reload = &d->reload,
                                    .begun_ms = now_ns(d) / NS_PER_MS};
    struct tn_reload_spec reload = {.config = d->spec.config,
                                    .memory = d->spec.memory,
                                    .keepers = d->keepers,
                                    .keeper_count = d->keeper_count,
                                    .log = &d->log};
    struct tn_jobs_spec jobs = {.env = &d->spec.app->env,
                                .keepers = d->keepers,
                                .keeper_count = d->keeper_count,
                                .log = &d->log,
                                .intake = &d->intake,
                                .begun_ms = status.begun_ms};
    tn_reload_init(&d->reload, &reload);
    tn_jobs_init(&d->jobs, &jobs);
    tn_rc rc = tn_intake_open(&d->intake, &spec, err);
    if (rc == TN_OK) {
        tn_pages_init(&d->pages, &status, &d->jobs);
    }
    return rc;
}

static tn_rc open_lakes(struct tn_daemon *d, struct tn_err *err)
{
    struct tn_lakes_spec spec = {.config = d->spec.config,
                                 .env = &d->spec.app->env,
                                 .keepers = d->keepers,
                                 .keeper_count = d->keeper_count,
                                 .intake = &d->intake,
                                 .jobs = &d->jobs,
                                 .log = &d->log,
                                 .arena = &d->spec.app->input,
                                 .worker = &d->uploads.worker,
                                 .door = tn_lakes_door(&d->uploads)};
    const struct tn_part *policies = tn_budget_part(&d->spec.app->budget, "policy");
    if (d->spec.config->policy_count > 0) {
        spec.policies = policies->base;
        spec.policies_size = policies->size;
    }
    return tn_lakes_open(&d->lakes, &spec, err);
}

static tn_rc open_tell(struct tn_daemon *d, struct tn_err *err)
{
    struct tn_tell_spec spec = {.config = d->spec.config,
                                .lakes = &d->lakes,
                                .env = &d->spec.app->env,
                                .net = d->net,
                                .exec = d->exec,
                                .log = &d->log,
                                .arena = &d->spec.app->input,
                                .identity = tn_journal_identity(d->intake.journal)};
    return tn_tell_open(&d->tell, &spec, err);
}

/* Before anything is locked, for a clear answer. */
static tn_rc check_alone(const struct tn_daemon *d, struct tn_err *err)
{
    char path[TN_ASK_PATH_SIZE];
    const char *warehouse = d->spec.config->warehouse;
    tn_rc rc = tn_ask_path(warehouse, path, err);
    long process = rc == TN_OK ? tn_ask_process(warehouse) : 0;
    return process == 0 ? rc
                        : tn_err_set(err, TN_EXISTS, 0,
                                     "warehouse %s: tarn run, process %ld, has it: one of them is "
                                     "enough for all tables",
                                     warehouse, process);
}

static tn_rc open_control(struct tn_daemon *d, struct tn_err *err)
{
    struct tn_control_spec spec = {.warehouse = d->spec.config->warehouse,
                                   .net = d->net,
                                   .hub = &d->intake.hub,
                                   .arena = &d->spec.app->input,
                                   .pages = d->pages.pages,
                                   .page_count = TN_PAGES_COUNT + TN_PAGES_OWN};
    return tn_control_open(&d->control, &spec, err);
}

static tn_rc open_sources(struct tn_daemon *d, struct tn_err *err)
{
    struct tn_sources_spec spec = {.config = d->spec.config,
                                   .net = d->net,
                                   .exec = d->exec,
                                   .hub = &d->intake.hub,
                                   .clock = d->spec.app->env.clock,
                                   .log = &d->log,
                                   .arena = &d->spec.app->input,
                                   .identity = tn_journal_identity(d->intake.journal),
                                   .pages = d->pages.pages,
                                   .page_count = TN_PAGES_COUNT,
                                   .once = d->spec.once,
                                   .notify = wake,
                                   .user = d};
    return tn_sources_open(&d->sources, &spec, err);
}

/* ---- open, run, close ---- */

tn_rc tn_daemon_open(struct tn_daemon *daemon, const struct tn_daemon_spec *spec,
                     struct tn_err *err)
{
    struct tn_daemon *d = daemon;
    *d = (struct tn_daemon){.spec = *spec};
    tn_reload_init(&d->reload, &(struct tn_reload_spec){0});
    tn_notify_open(&d->notify);
    tn_rc rc = check_alone(d, err);
    if (rc == TN_OK) { /* all that is taken of it is counted */
        rc = tn_sizes_choose(d->spec.config, tn_arena_free(&spec->app->input), &d->sizes, err);
    }
    if (rc == TN_OK) {
        rc = open_log(d, err);
    }
    if (rc == TN_OK) {
        rc = open_doors(d, err);
    }
    if (rc == TN_OK) {
        rc = open_tables(d, err);
    }
    if (rc == TN_OK) {
        rc = open_intake(d, err);
    }
    if (rc == TN_OK) {
        rc = open_lakes(d, err);
    }
    if (rc == TN_OK) {
        rc = open_tell(d, err);
    }
    return rc == TN_OK ? open_control(d, err) : rc;
}

/* With what is measured of it. */
static void wait_for_sockets(struct tn_daemon *d, uint32_t wait_ms)
{
    tn_notify_turn(&d->notify, now_ns(d) / NS_PER_MS, &wait_ms);
    (void)tn_net_turn(d->net, wait_ms);
    tn_pulse_note(&d->pulse, now_ns(d), (int64_t)d->net->counts.waited_ns);
}

/* Waits at most until `soon`. */
static tn_rc turn(struct tn_daemon *d, uint32_t soon, struct tn_err *err)
{
    uint32_t wait_ms;
    tn_control_turn(&d->control);
    turn_wear(d);
    tn_sources_turn(&d->sources, &soon);
    tn_rc rc = tn_intake_turn(&d->intake, &wait_ms, err);
    if (rc == TN_OK) {
        tn_jobs_turn(&d->jobs, &wait_ms);
        tn_lakes_turn(&d->lakes, &wait_ms);
        tn_tell_turn(&d->tell, &wait_ms);
        bool steps = d->sources.ops.first || d->control.ops.first;
        wait_for_sockets(d, steps ? 0 : wait_ms < soon ? wait_ms : soon);
    }
    return rc;
}

/* What the journal has for the tables is in them before anything else comes. */
static tn_rc catch_up(struct tn_daemon *d, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    while (rc == TN_OK && !tn_intake_ready(&d->intake) && stops == 0) {
        rc = turn(d, UINT32_MAX, err);
    }
    return rc;
}

/* What is read of standard input, and is no whole line yet, no other start could read again. */
static void turn_reload(struct tn_daemon *d, uint32_t *wait_ms)
{
    bool reads = d->sources.has_lines && !d->sources.lines.ended;
    if (hung_up) {
        hung_up = 0;
        (void)tn_reload_ask(&d->reload);
    }
    tn_reload_turn(&d->reload,
                   reads ? "standard input is a source, which can't be opened again: end it first"
                         : NULL,
                   now_ns(d) / NS_PER_MS, wait_ms);
}

static bool reloads(const struct tn_daemon *d)
{
    return d->reload.state == TN_RELOAD_BEGINS && stops == 0;
}

/* Until it is to end. */
static tn_rc serve(struct tn_daemon *d, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    while (rc == TN_OK && stops == 0 && d->reload.state != TN_RELOAD_BEGINS &&
           !(d->spec.once && tn_sources_ended(&d->sources))) {
        uint32_t soon = UINT32_MAX;
        turn_reload(d, &soon);
        rc = turn(d, soon, err);
    }
    return rc;
}

static bool settled(const struct tn_daemon *d)
{
    return tn_sources_stopped(&d->sources) && tn_intake_settled(&d->intake) &&
           !(reloads(d) && tn_reload_waits(&d->reload));
}

/* Who waits for an answer gets it, then all that was taken is committed. */
static tn_rc settle(struct tn_daemon *d, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    if (reloads(d)) {
        tn_notify_reloading(&d->notify, now_ns(d) / NS_PER_US);
    } else {
        tn_notify_stopping(&d->notify);
    }
    if (stops > 0 || reloads(d)) {
        tn_lakes_stop(&d->lakes);
    }
    tn_jobs_stop(&d->jobs);
    tn_sources_stop(&d->sources);
    tn_intake_stop(&d->intake);
    while (rc == TN_OK && !settled(d)) {
        rc = turn(d, UINT32_MAX, err);
    }
    return rc;
}

/* With --once, and whom nobody tells to end. */
static tn_rc bring_to_lakes(struct tn_daemon *d, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    tn_lakes_hurry(&d->lakes);
    while (rc == TN_OK && stops == 0 && !tn_lakes_settled(&d->lakes)) {
        rc = turn(d, UINT32_MAX, err);
    }
    tn_tell_hurry(&d->tell);
    while (rc == TN_OK && stops == 0 && !tn_tell_settled(&d->tell)) {
        rc = turn(d, UINT32_MAX, err);
    }
    return rc == TN_OK && stops == 0 ? tn_lakes_check(&d->lakes, err) : rc;
}

/* After an error nothing is committed any more, but what is under way ends. */
static void drop_sources(struct tn_daemon *d)
{
    tn_sources_stop(&d->sources);
    tn_control_stop(&d->control);
    tn_tell_stop(&d->tell);
    while (!tn_sources_stopped(&d->sources) || !tn_control_stopped(&d->control) ||
           !tn_tell_stopped(&d->tell)) {
        (void)tn_ops_run(&d->sources.ops, DROP_STEPS);
        (void)tn_ops_run(&d->tell.ops, DROP_STEPS);
        tn_control_turn(&d->control);
        (void)tn_net_turn(d->net, DROP_WAIT_MS);
    }
    tn_sources_close(&d->sources);
}

/* A table that fails at the end has rows in the journal, and gets them with the next start. */
static tn_rc check_tables(const struct tn_daemon *d, struct tn_err *err)
{
    for (uint32_t i = 0; i < d->keeper_count; i++) {
        const struct tn_keeper *k = &d->keepers[i];
        if (k->trouble != TN_OK && !(k->state == TN_KEEPER_LIVE && tn_keeper_settled(k))) {
            *err = k->trouble_text;
            return k->trouble;
        }
    }
    if (d->intake.undone) {
        return tn_err_set(err, TN_CONFLICT, 0,
                          "a table was opened again at the end: what was read of its files and not "
                          "committed is read again by the next start");
    }
    return d->intake.said == TN_OK
               ? TN_OK
               : tn_err_set(err, d->intake.said, 0, "the journal could not be written to its end");
}

/* What came before is not what the loop is like. */
static void say_ready(struct tn_daemon *d)
{
    char text[64];
    (void)snprintf(text, sizeof text, "takes rows for %u table%s", d->keeper_count,
                   d->keeper_count == 1 ? "" : "s");
    tn_notify_ready(&d->notify, text, now_ns(d) / NS_PER_MS);
    d->pulse = (struct tn_pulse){.since_ns = 0};
}

tn_rc tn_daemon_run(struct tn_daemon *daemon, struct tn_err *err)
{
    struct tn_daemon *d = daemon;
    take_signals(d);
    tn_rc rc = catch_up(d, err);
    if (rc == TN_OK) {
        rc = open_sources(d, err);
    }
    if (rc == TN_OK) {
        say_ready(d);
        tn_log_event(&d->log, TN_LOG_INFO, "run", "tables=%u message_size_max=%zu text=\"ready\"",
                     d->keeper_count, d->intake.hub.size_max);
    }
    if (rc == TN_OK) {
        rc = serve(d, err);
    }
    if (rc == TN_OK) {
        rc = settle(d, err);
    }
    if (rc == TN_OK && d->spec.once && !reloads(d) && stops == 0) {
        rc = bring_to_lakes(d, err);
    }
    if (rc == TN_OK && d->reload.state == TN_RELOAD_BEGINS) {
        tn_reload_hold(true); /* what comes from now on the next start hears */
        d->again = reloads(d);
    }
    return rc == TN_OK && !d->again ? check_tables(d, err) : rc;
}

void tn_daemon_close(struct tn_daemon *daemon)
{
    struct tn_daemon *d = daemon;
    tn_reload_close(&d->reload);
    if (d->net) {
        drop_sources(d);
    }
    for (uint32_t i = 0; i < d->keeper_count; i++) {
        tn_keeper_close(&d->keepers[i]);
    }
    tn_lakes_stop(&d->lakes);
    while (d->exec && (d->exec->under_way > 0 || d->exec->uploads > 0)) { /* the journal's, too */
        (void)tn_exec_turn(d->exec, true);
    }
    tn_tell_close(&d->tell);
    tn_lakes_close(&d->lakes);
    tn_lakes_boot_close(&d->uploads, d->exec, REST_MS);
    tn_intake_close(&d->intake);
    bool rests = d->net && tn_net_rest(d->net, d->exec, REST_MS);
    if (d->exec) {
        d->exec->vtable->close(d->exec);
    }
    close_wear(d);
    give_signals(d);
    if (rests) {
        tn_net_close(d->net);
    }
    tn_notify_close(&d->notify);
}
