#include "app/status.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "app/tell.h"
#include "app/version.h"
#include "schema/value.h"

enum {
    NS_PER_US = 1000,
    TEXT_MAX = 160, /* its escapes are up to six times longer: two fit a part */
    FIRST_TABLE = 2,
};

static int64_t now_ms(const struct tn_status_spec *spec)
{
    struct tn_clock *clock = spec->intake->spec.env->clock;
    return tn_clock_monotonic_ms(clock);
}

/* ---- health ---- */

const char *tn_status_table_trouble(const struct tn_keeper *keeper)
{
    uint32_t failed = 0;
    if (keeper->trouble != TN_OK) {
        return keeper->trouble_text.text;
    }
    if (keeper->state == TN_KEEPER_BEHIND) {
        return "reads what it missed from the journal";
    }
    if (keeper->table && tn_table_behind(keeper->table, &failed) != TN_OK) {
        return "compaction failed in some of its buckets";
    }
    if (!tn_trend_converges(&keeper->trend)) {
        return "compaction falls behind: rows come faster than their runs are merged";
    }
    return NULL;
}

const char *tn_status_journal_trouble(const struct tn_intake *intake)
{
    if (intake->failed != TN_OK) {
        return intake->failure.text;
    }
    if (intake->reserve.low) {
        return "the disk has no more room than disk_reserve says is to be kept: no row is taken";
    }
    return tn_journal_full(intake->journal) ? "the journal is full: its tables don't commit" : NULL;
}

static bool takes_rows(const struct tn_intake *in)
{
    bool any = in->spec.keeper_count == 0;
    for (uint32_t i = 0; i < in->spec.keeper_count; i++) {
        any = any || in->spec.keepers[i].state == TN_KEEPER_LIVE;
    }
    return any && in->failed == TN_OK && !in->stopping && !in->reserve.low &&
           !tn_journal_full(in->journal);
}

const char *tn_status_reload_trouble(const struct tn_reload *reload)
{
    return reload->trouble[0] ? reload->trouble : NULL;
}

static void note_source(void *user, const struct tn_source_status *status)
{
    bool *wrong = user;
    *wrong = *wrong || status->trouble;
}

enum tn_health tn_status_health(const struct tn_status_spec *spec)
{
    const struct tn_intake *in = spec->intake;
    bool wrong = tn_status_journal_trouble(in) || tn_status_reload_trouble(spec->reload);
    for (uint32_t i = 0; i < in->spec.keeper_count; i++) {
        wrong = wrong || tn_status_table_trouble(&in->spec.keepers[i]);
    }
    for (uint32_t i = 0; i < spec->lakes->mirror_count; i++) {
        char text[TEXT_MAX];
        wrong = wrong || tn_lakes_trouble(spec->lakes, &spec->lakes->mirrors[i], text, sizeof text);
    }
    tn_sources_each(spec->sources, note_source, &wrong);
    return !takes_rows(in) ? TN_HEALTH_FAILING : wrong ? TN_HEALTH_DEGRADED : TN_HEALTH_OK;
}

const char *tn_health_text(enum tn_health health)
{
    static const char *const texts[] = {"ok", "degraded", "failing"};
    return texts[health];
}

/* ---- memory ---- */

static const struct tn_part *find_part(const struct tn_budget *budget, const char *name)
{
    for (uint32_t i = 0; i < budget->part_count; i++) {
        if (strcmp(budget->parts[i].spec->name, name) == 0) {
            return &budget->parts[i];
        }
    }
    return NULL;
}

static void add(struct tn_status_part *sum, size_t used, size_t peak)
{
    sum->used += used;
    sum->peak += peak;
}

static void add_arena(struct tn_status_part *sum, const struct tn_arena *arena)
{
    add(sum, arena->used, arena->peak);
}

/* The arena of a share lies in front of its rows, or in the process' part "table", of which it is
 * used then as a whole. */
static void add_share(struct tn_status_part *sum, const struct tn_table_share *share,
                      const struct tn_table *table)
{
    struct tn_backlog backlog = {0};
    bool in_front = find_part(&share->budget, "table") != NULL;
    const struct tn_part *part = find_part(&share->budget, sum->name);
    size_t used;
    size_t peak;
    if (strcmp(sum->name, "table") == 0) {
        if (!in_front) {
            sum->used -= share->arena.size;
            sum->peak -= share->arena.size;
            add_arena(sum, &share->arena);
        }
        return;
    }
    if (strcmp(sum->name, "memtable") != 0) {
        if (part && part->base) {
            tn_part_usage(part, &used, &peak);
            add(sum, used, peak);
            sum->there = true;
        }
        return;
    }
    if (table) {
        tn_table_backlog(table, &backlog);
    }
    add(sum, backlog.pages_used, backlog.pages_peak);
    if (in_front) {
        add_arena(sum, &share->arena);
    }
}

struct tn_status_part tn_status_part(const struct tn_status_spec *spec, uint32_t index)
{
    const struct tn_part *part = &spec->budget->parts[index];
    const struct tn_intake_spec *in = &spec->intake->spec;
    struct tn_status_part sum = {.name = part->spec->name,
                                 .kind = tn_part_kind_text(part->spec->kind),
                                 .size = part->size,
                                 .there = part->base != NULL};
    tn_part_usage(part, &sum.used, &sum.peak);
    for (uint32_t i = 0; i < in->keeper_count; i++) {
        add_share(&sum, &spec->shares[i], in->keepers[i].table);
    }
    return sum;
}

/* ---- the page ---- */

static bool ends_with(const struct tn_buf *out, char byte)
{
    return out->size > 0 && out->data[out->size - 1] == (unsigned char)byte;
}

/* A member's name, with what stands before it. */
static void put_key(struct tn_buf *out, const char *key)
{
    tn_buf_format(out, "%s\"%s\":", ends_with(out, '{') ? "" : ",", key);
}

static void put_number(struct tn_buf *out, const char *key, int64_t number)
{
    put_key(out, key);
    tn_buf_format(out, "%" PRId64, number);
}

static void put_count(struct tn_buf *out, const char *key, uint64_t number)
{
    put_key(out, key);
    tn_buf_format(out, "%" PRIu64, number);
}

static void put_null(struct tn_buf *out, const char *key)
{
    put_key(out, key);
    tn_buf_text(out, "null");
}

/* Texts of errors are cut anywhere, and may quote what came. */
static void put_text(struct tn_buf *out, const char *key, const char *text)
{
    if (!text) {
        put_null(out, key);
        return;
    }
    size_t size = strlen(text);
    struct tn_bytes bytes = {(const unsigned char *)text, size < TEXT_MAX ? size : TEXT_MAX};
    bytes.size = tn_utf8_span(bytes);
    put_key(out, key);
    tn_json_string(out, bytes);
}

static void put_switch(struct tn_buf *out, const char *key, bool on)
{
    put_key(out, key);
    tn_buf_text(out, on ? "true" : "false");
}

/* What was written, and where there is a budget for that, what is left of it. */
static void put_wear(const struct tn_status_spec *spec, struct tn_buf *out)
{
    const struct tn_io *io = spec->intake->spec.env->io;
    put_count(out, "written_bytes", __atomic_load_n(&io->counts.bytes_written, __ATOMIC_RELAXED));
    if (spec->wear) {
        put_count(out, "wear_budget", spec->wear->budget);
        put_number(out, "wear_left", spec->wear->left > 0 ? spec->wear->left : 0);
        put_count(out, "wear_overdraft", tn_wear_overdraft(spec->wear));
    }
}

static void put_disk(const struct tn_status_spec *spec, struct tn_buf *out)
{
    const struct tn_reserve *reserve = &spec->intake->reserve;
    uint64_t left;
    put_count(out, "disk_reserve", reserve->bytes);
    if (tn_reserve_left(reserve, &left)) {
        put_count(out, "disk_free", left);
    } else {
        put_null(out, "disk_free");
    }
    put_switch(out, "disk_low", reserve->low);
}

static void put_daemon(const struct tn_status_spec *spec, struct tn_buf *out)
{
    const struct tn_pulse *pulse = spec->pulse;
    const struct tn_intake *in = spec->intake;
    tn_buf_text(out, "{");
    put_text(out, "daemon", TN_VERSION);
    put_number(out, "process", (int64_t)getpid());
    put_text(out, "status", tn_health_text(tn_status_health(spec)));
    put_switch(out, "ready", tn_intake_ready(in) && !in->stopping);
    put_switch(out, "stopping", in->stopping);
    put_number(out, "up_ms", now_ms(spec) - spec->begun_ms);
    put_text(out, "config", spec->config->path);
    put_text(out, "listen", spec->config->http.listen);
    put_count(out, "messages", in->counts.messages);
    put_count(out, "refused", in->counts.refused);
    put_count(out, "turns", pulse->turns);
    put_count(out, "stalls", pulse->stalls);
    put_number(out, "stall_longest_us", pulse->longest_ns / NS_PER_US);
    put_disk(spec, out);
    put_wear(spec, out);
    put_text(out, "trouble", tn_status_reload_trouble(spec->reload));
    tn_buf_text(out, "}\n");
}

static void put_journal(const struct tn_status_spec *spec, struct tn_buf *out)
{
    const struct tn_intake *in = spec->intake;
    const struct tn_journal *journal = in->journal;
    tn_buf_text(out, "{");
    put_text(out, "journal", tn_journal_identity(journal));
    put_count(out, "bytes", tn_journal_size(journal));
    put_count(out, "bytes_max", spec->config->journal.size_max);
    put_count(out, "first", tn_journal_first(journal));
    put_count(out, "durable", tn_journal_durable(journal));
    put_count(out, "next", tn_journal_next(journal));
    put_count(out, "waits", in->counts.waits);
    put_count(out, "replayed", in->counts.replayed);
    put_text(out, "trouble", tn_status_journal_trouble(in));
    tn_buf_text(out, "}\n");
}

static void put_backlog(const struct tn_status_spec *spec, const struct tn_keeper *k,
                        struct tn_buf *out)
{
    struct tn_backlog backlog;
    if (!k->table) {
        return; /* members that are not there are not known */
    }
    const struct tn_table_counts *counts = tn_table_counts(k->table);
    tn_table_backlog(k->table, &backlog);
    put_count(out, "buckets", backlog.buckets);
    put_count(out, "runs_max", backlog.runs_max);
    put_count(out, "runs_stop", backlog.stop);
    put_count(out, "files_max", backlog.files_max);
    put_count(out, "level0_max", backlog.level0_max);
    put_count(out, "runs_over", backlog.runs_over);
    put_count(out, "level0_bytes", backlog.level0_bytes);
    put_switch(out, "converges", tn_trend_converges(&k->trend));
    put_switch(out, "spared", tn_table_spared(k->table));
    put_switch(out, "held", tn_table_held(k->table));
    put_number(out, "compaction_busy",
               (int64_t)tn_trend_busy_percent(&k->trend, counts->compaction_ns, now_ms(spec)));
    put_count(out, "compactions", counts->compactions);
    put_count(out, "compactions_failed", counts->compactions_failed);
    put_count(out, "stalls", counts->stalls);
}

static void put_snapshots(const struct tn_keeper *k, struct tn_buf *out)
{
    put_number(out, "snapshot", k->latest_id);
    if (k->earliest_id > 0) {
        put_number(out, "snapshots", k->latest_id - k->earliest_id + 1);
    } else {
        put_null(out, "snapshots");
    }
    put_count(out, "untold", k->untold);
}

static void put_table(const struct tn_status_spec *spec, const struct tn_keeper *k,
                      struct tn_buf *out)
{
    static const char *const states[] = {"shut", "behind", "live"};
    bool waits = k->items != k->items_cut;
    tn_buf_text(out, "{");
    put_text(out, "table", k->name);
    put_text(out, "state", states[k->state]);
    put_count(out, "rows", k->rows);
    put_count(out, "letters", k->letters);
    put_count(out, "uncommitted", k->items - k->items_cut);
    put_number(out, "oldest_ms", waits ? now_ms(spec) - k->since_ms : 0);
    put_count(out, "commits", k->commits);
    put_snapshots(k, out);
    put_backlog(spec, k, out);
    put_count(out, "reopened", k->reopened);
    put_text(out, "trouble", tn_status_table_trouble(k));
    tn_buf_text(out, "}");
}

struct nth {
    uint32_t wanted;
    uint32_t at;
    struct tn_buf *out;
};

static void put_source(void *user, const struct tn_source_status *status)
{
    struct nth *nth = user;
    struct tn_buf *out = nth->out;
    if (nth->at++ != nth->wanted) {
        return;
    }
    tn_buf_text(out, nth->wanted > 0 ? ",\n{" : "{");
    put_text(out, "source", status->name);
    put_text(out, "kind", status->kind);
    put_text(out, "state", status->waits ? "waits for room" : status->state);
    put_text(out, "at", status->at);
    put_count(out, "messages", status->messages);
    put_count(out, "rows", status->rows);
    put_count(out, "letters", status->dead);
    put_count(out, "refused", status->refused);
    put_switch(out, "waits", status->waits);
    if (status->is_file) {
        put_count(out, "bytes", status->bytes);
        put_count(out, "bytes_committed", status->bytes_committed);
    }
    put_text(out, "trouble", status->trouble);
    tn_buf_text(out, "}");
}

/* Of the url the machine alone: a secret may be in it. */
static void put_tell(const struct tn_tell_place *place, struct tn_buf *out)
{
    put_text(out, "notify", place->teller.url.authority);
    put_count(out, "told", place->messages);
    put_count(out, "tell_failures", place->failures);
    put_count(out, "tell_refused", place->refused);
    put_count(out, "tell_script_failures", place->script_failures);
    put_count(out, "untold_tables", tn_tell_behind(place));
    put_text(out, "tell_trouble", place->trouble != TN_OK ? place->trouble_text.text : NULL);
}

static void put_lake(const struct tn_lakes_lake *lake, struct tn_buf *out)
{
    tn_buf_text(out, "{");
    put_text(out, "lake", lake->config->name);
    put_text(out, "target", lake->config->target);
    put_count(out, "uploads", lake->uploads);
    put_count(out, "failures", lake->failures);
    put_count(out, "gets", lake->counts.requests[TN_TARGET_GET]);
    put_count(out, "heads", lake->counts.requests[TN_TARGET_HEAD]);
    put_count(out, "puts", lake->counts.requests[TN_TARGET_PUT]);
    put_count(out, "lists", lake->counts.requests[TN_TARGET_LIST]);
    put_count(out, "deletes", lake->counts.requests[TN_TARGET_DELETE]);
    put_count(out, "sent_bytes", lake->counts.bytes_sent);
    put_count(out, "received_bytes", lake->counts.bytes_received);
    put_count(out, "day_bytes", lake->spent.of[TN_SPENT_DAY].bytes);
    put_count(out, "day_requests", lake->spent.of[TN_SPENT_DAY].requests);
    put_count(out, "month_bytes", lake->spent.of[TN_SPENT_MONTH].bytes);
    put_count(out, "month_requests", lake->spent.of[TN_SPENT_MONTH].requests);
    put_text(out, "consumer", lake->consumer);
    put_text(out, "policy", lake->config->policy);
    if (lake->tell) {
        put_tell(lake->tell, out);
    }
    tn_buf_text(out, "}");
}

static void put_mirror(const struct tn_status_spec *spec, const struct tn_lakes_mirror *m,
                       struct tn_buf *out)
{
    char text[TEXT_MAX];
    tn_buf_text(out, "{");
    put_text(out, "mirror", m->keeper->name);
    put_text(out, "lake", m->lake->config->name);
    put_text(out, "state", tn_lakes_state(spec->lakes, m));
    put_text(out, "shared", m->shared ? tn_share_way_name(m->way) : NULL);
    put_number(out, "snapshot", m->have_id > 0 ? m->have_id : 0);
    put_number(out, "behind", tn_lakes_lag(m));
    put_count(out, "behind_bytes", m->tally.bytes);
    put_count(out, "behind_rows", m->tally.rows);
    put_count(out, "pinned_bytes", m->tally.pinned);
    put_number(out, "behind_ms", tn_lakes_age_ms(spec->lakes, m));
    put_number(out, "lake_snapshot", m->lake_id);
    put_count(out, "commits", m->commits);
    put_count(out, "lost_names", m->lost);
    put_count(out, "replaced_commits", m->replaced);
    put_count(out, "tags_left", m->tags_left);
    put_count(out, "tags_denied", m->tags_denied);
    put_text(out, "kind", tn_lakes_trouble_kind(spec->lakes, m));
    put_text(out, "trouble", tn_lakes_trouble(spec->lakes, m, text, sizeof text));
    tn_buf_text(out, "}");
}

static void put_lakes(const struct tn_status_spec *spec, uint32_t i, struct tn_buf *out)
{
    const struct tn_lakes *lakes = spec->lakes;
    if (i < lakes->lake_count) {
        put_lake(&lakes->lakes[i], out);
    } else {
        put_mirror(spec, &lakes->mirrors[i - lakes->lake_count], out);
    }
}

static void put_part(const struct tn_status_spec *spec, uint32_t i, struct tn_buf *out)
{
    struct tn_status_part part = tn_status_part(spec, i);
    tn_buf_text(out, "{");
    put_text(out, "part", part.name);
    put_text(out, "kind", part.kind);
    put_count(out, "size", part.there ? part.size : 0);
    put_count(out, "used", part.used);
    put_count(out, "peak", part.peak);
    tn_buf_text(out, "}");
}

static void put_parts(const struct tn_status_spec *spec, struct tn_buf *out)
{
    tn_buf_text(out, "\n],\"memory\":[\n");
    for (uint32_t i = 0; i < spec->budget->part_count; i++) {
        put_part(spec, i, out);
        tn_buf_text(out, i + 1 < spec->budget->part_count ? ",\n" : "");
    }
    tn_buf_text(out, "\n],\"sources\":[\n");
}

/* The number of parts is that of what is configured: sources are opened later. */
bool tn_status_page(const struct tn_status_spec *spec, uint32_t index, struct tn_buf *out)
{
    const struct tn_intake_spec *in = &spec->intake->spec;
    uint32_t tables = FIRST_TABLE + in->keeper_count;
    uint32_t sources = tables + 1 + spec->config->source_count + 1;
    uint32_t end = sources + spec->lakes->lake_count + spec->lakes->mirror_count;
    if (index == 0) {
        tn_buf_text(out, "{\n\"daemon\":\n");
        put_daemon(spec, out);
    } else if (index < FIRST_TABLE) {
        tn_buf_text(out, ",\"journal\":\n");
        put_journal(spec, out);
        tn_buf_text(out, ",\"tables\":[\n");
    } else if (index < tables) {
        tn_buf_text(out, index > FIRST_TABLE ? ",\n" : "");
        put_table(spec, &in->keepers[index - FIRST_TABLE], out);
    } else if (index == tables) {
        put_parts(spec, out);
    } else if (index < sources) {
        struct nth nth = {.wanted = index - tables - 1, .out = out};
        tn_sources_each(spec->sources, put_source, &nth);
        tn_buf_text(out, index + 1 == sources ? "\n],\"lakes\":[\n" : "");
    } else if (index < end) {
        tn_buf_text(out, index > sources ? ",\n" : "");
        put_lakes(spec, index - sources, out);
    } else if (index == end) {
        tn_buf_text(out, "\n]\n}\n");
    }
    return index <= end;
}
