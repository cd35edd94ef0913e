#include "app/writing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/cmd.h"
#include "app/suggest.h"
#include "commit/commit.h"
#include "schema/value.h"

static void say_committed(void *user_data, const struct tn_committed *committed)
{
    struct tn_writing *w = user_data;
    const struct tn_table_counts *counts = w->table ? tn_table_counts(w->table) : NULL;
    if (!tn_common.quiet && counts && counts->stalls > w->stalls_said) {
        (void)fprintf(stderr,
                      "tarn: rows waited for compaction %" PRIu64
                      " times (num-sorted-run.stop-trigger)\n",
                      counts->stalls - w->stalls_said);
        w->stalls_said = counts->stalls;
    }
    if (committed->not_expired && !w->expiry_said) {
        (void)fprintf(stderr, "tarn: warning: old snapshots stay: %s\n", committed->not_expired);
        w->expiry_said = true;
    }
    bool made = committed->append_id > 0 || committed->compact_id > 0;
    if (!tn_common.quiet && (made || committed->row_count > w->rows_said)) {
        (void)fprintf(stderr, "committed snapshot=%" PRId64 " rows=%" PRIu64 " table=%s\n",
                      committed->latest_id, committed->row_count, w->spec.table_name);
        (void)fflush(stderr);
        w->rows_said = committed->row_count;
    }
}

static void say_compaction_failed(void *user_data, const struct tn_compaction_failed *failed)
{
    (void)user_data;
    (void)fprintf(stderr, "tarn: warning: %s\n", failed->text);
}

/* ---- options ---- */

tn_rc tn_writing_every(const char *text, uint64_t *rows, int64_t *ms, struct tn_err *err)
{
    if (!text) {
        return TN_OK;
    }
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    bool digits = strspn(text, "0123456789") > 0; /* strtoull takes a sign, too */
    if (errno == 0 && digits && *end == 0 && number > 0) {
        *rows = number;
        return TN_OK;
    }
    if (tn_parse_duration(tn_bytes_of(text), ms) && *ms > 0) {
        return TN_OK;
    }
    return tn_err_set(err, TN_INVALID, 0,
                      "--commit-every %s: want a number of rows, or a time like 10s", text);
}

static tn_rc parse_epoch(const char *text, const struct tn_schema *schema, enum tn_epoch *epochs,
                         struct tn_err *err)
{
    static const char *const UNITS[] = {"", "s", "ms", "us", "ns"};
    size_t size = strcspn(text, "=");
    int32_t field = tn_schema_find(schema, (struct tn_bytes){(const unsigned char *)text, size});
    if (field < 0) {
        return tn_err_set(err, TN_INVALID, 0, "--time %s: there is no such column", text);
    }
    for (int unit = TN_EPOCH_S; unit <= TN_EPOCH_NS && text[size]; unit++) {
        if (strcmp(text + size + 1, UNITS[unit]) == 0) {
            epochs[field] = (enum tn_epoch)unit;
            return TN_OK;
        }
    }
    return tn_err_set(err, TN_INVALID, 0, "--time %s: the unit is s, ms, us or ns", text);
}

static tn_rc parse_decode(struct tn_writing *w, struct tn_decode_spec *decode, struct tn_err *err)
{
    const struct tn_schema *schema = tn_table_schema(w->table);
    void *memory;
    tn_rc rc = tn_arena_need(&w->spec.app->input, schema->field_count * sizeof(enum tn_epoch),
                             "times", &memory, err);
    enum tn_epoch *epochs = memory;
    for (uint32_t i = 0; rc == TN_OK && i < w->spec.times->count; i++) {
        rc = parse_epoch(w->spec.times->items[i], schema, epochs, err);
    }
    *decode = (struct tn_decode_spec){
        .schema = schema, .layout = tn_table_layout(w->table), .epochs = epochs};
    if (rc == TN_OK) {
        rc = tn_input_parse(w->spec.input ? w->spec.input : "json", &decode->input, err);
    }
    if (rc == TN_OK && w->spec.unknown_columns) {
        if (strcmp(w->spec.unknown_columns, "drop") == 0) {
            decode->unknown = TN_UNKNOWN_DROP;
        } else if (strcmp(w->spec.unknown_columns, "fail") != 0) {
            rc = tn_err_set(err, TN_INVALID, 0, "--unknown-columns: drop or fail");
        }
    }
    return rc;
}

/* ---- the script ---- */

static tn_rc open_script(struct tn_writing *w, struct tn_err *err)
{
    struct tn_scripted_spec spec = {.env = &w->spec.app->env,
                                    .budget = &w->spec.app->budget,
                                    .table = w->spec.table_name,
                                    .warehouse = w->spec.app->warehouse,
                                    .log = tn_say_log};
    return tn_scripted_find(&w->scripted, &spec, err);
}

static void say_stores(const char *why)
{
    (void)fprintf(stderr, "tarn: warning: the stores of its script begin empty: %s\n", why);
}

/* Where the script has a `map`, it gets the records before they are rows. */
static tn_rc open_mapper(struct tn_writing *w, struct tn_copy_spec *copy, struct tn_feed_spec *feed,
                         struct tn_err *err)
{
    struct tn_script *script = tn_scripted_map(&w->scripted);
    if (!script) {
        return TN_OK;
    }
    int64_t known_ms = tn_table_recovered(w->table)->latest_ms;
    tn_rc rc = tn_mapper_init(&w->mapper, script, w->spec.app->env.clock, known_ms,
                              &w->spec.app->input, err);
    w->mapper.records = copy->decode.input == TN_INPUT_JSON;
    copy->mapper = &w->mapper;
    feed->mapper = &w->mapper;
    return rc == TN_OK
               ? tn_state_file_open(&w->state, script, w->table, &w->spec.app->env,
                                    w->spec.table_name, say_stores, &w->spec.app->input, err)
               : rc;
}

static void say_script(const struct tn_writing *w)
{
    const struct tn_script *map = &w->scripted.pair.scripts[TN_SCRIPT_LOOP];
    uint64_t failed = map->failures + tn_table_counts(w->table)->letters;
    if (failed > 0) {
        (void)fprintf(stderr, "tarn: %s failed on %" PRIu64 " rows\n", w->scripted.path, failed);
    }
    if (w->mapper.dropped > 0 && !tn_common.quiet) {
        (void)fprintf(stderr, "tarn: its map dropped %" PRIu64 " records\n", w->mapper.dropped);
    }
}

/* ---- dead letters ---- */

static void bury(void *user, const struct tn_decoded *d, const char *reason)
{
    struct tn_writing *w = user;
    (void)fprintf(stderr, "tarn: %s:%" PRIu64 ": %s\n", w->copy.source.name, d->line, reason);
}

static tn_rc publish_letters(void *user_data, struct tn_err *err)
{
    struct tn_writing *w = user_data;
    return tn_letters_publish(&w->dead.letters, err);
}

static tn_rc note(void *user, struct tn_feed_place place, struct tn_err *err)
{
    struct tn_writing *w = user;
    tn_rc rc = tn_state_file_note(&w->state, w->feed.cuts, err);
    if (rc != TN_OK) {
        return rc;
    }
    return w->spec.note ? w->spec.note(w->spec.user_data, place, err)
                        : tn_copy_note(&w->copy, w->table, place, err);
}

static tn_rc taken(void *user, struct tn_err *err)
{
    struct tn_writing *w = user;
    return tn_state_file_take(&w->state, err);
}

static void say_stats(const struct tn_writing *w)
{
    const struct tn_table_counts *c = tn_table_counts(w->table);
    const struct tn_io_counts *io = &w->spec.app->posix.io.counts;
    uint64_t dead = w->feed.dead + c->letters;
    (void)fprintf(stderr,
                  "rows=%" PRIu64 " filtered=%" PRIu64 " dead=%" PRIu64 " commits=%" PRIu64
                  " flushes=%" PRIu64 " flushed_bytes=%" PRIu64 " compactions=%" PRIu64
                  " compactions_failed=%" PRIu64 " compacted_bytes=%" PRIu64 " stalls=%" PRIu64
                  " written_bytes=%" PRIu64 " read_bytes=%" PRIu64 " syncs=%" PRIu64 "\n",
                  c->rows, c->rows_filtered, dead, c->commits, c->flushes, c->flushed_bytes,
                  c->compactions, c->compactions_failed, c->compacted_bytes, c->stalls,
                  io->bytes_written, io->bytes_read, io->syncs);
}

static tn_rc open_feed(struct tn_writing *w, struct tn_err *err)
{
    struct tn_copy_spec copy = {.app = w->spec.app,
                                .table_name = w->spec.table_name,
                                .from = w->spec.from,
                                .placed = !w->spec.user,
                                .run = w->run};
    struct tn_feed_spec feed = {.table = w->table,
                                .clock = w->spec.app->env.clock,
                                .single = w->spec.user != NULL,
                                .letters = &w->dead.letters,
                                .note = note,
                                .taken = taken,
                                .bury = w->spec.dead_letters ? NULL : bury,
                                .user = w};
    tn_rc rc = parse_decode(w, &copy.decode, err);
    if (rc == TN_OK) {
        rc = open_mapper(w, &copy, &feed, err);
    }
    if (rc == TN_OK) {
        rc = tn_writing_every(w->spec.commit_every, &feed.every_rows, &feed.every_ms, err);
    }
    if (rc == TN_OK) {
        rc = tn_copy_init(&w->copy, &copy, err);
    }
    tn_feed_init(&w->feed, &feed);
    return rc;
}

/* Rows of a script die when they are flushed. */
static tn_rc open_letters(struct tn_writing *w, struct tn_err *err)
{
    struct tn_commit_found found = {0};
    tn_rc rc = TN_OK;
    if (w->scripted.open) {
        tn_letters_layout(&w->dead.letters, tn_table_layout(w->table));
    }
    if (w->spec.user) {
        rc = tn_commit_find(w->spec.app->env.workers[TN_LANE_SHORT], tn_table_root(w->table),
                            w->spec.user, w->spec.commit_id, &found, err);
    }
    if (found.done) {
        tn_letters_mute(&w->dead.letters);
    }
    return rc;
}

/* A repeat of the same commit has the same letters; another run's standard input has its own. */
static void name_run(struct tn_writing *w)
{
    char uuid[TN_UUID_SIZE];
    if (w->spec.user) {
        (void)snprintf(w->run, sizeof w->run, "%.80s:%" PRId64, w->spec.user, w->spec.commit_id);
    } else {
        tn_clock_uuid(w->spec.app->env.clock, uuid);
        (void)snprintf(w->run, sizeof w->run, "%s", uuid);
    }
}

static tn_rc check_options(const struct tn_writing *w, struct tn_err *err)
{
    if ((w->spec.user != NULL) != (w->spec.commit_id >= 0)) {
        return tn_err_set(err, TN_INVALID, 0, "--user and --commit-id belong together");
    }
    if (w->spec.user && !tn_is_utf8(tn_bytes_of(w->spec.user))) {
        return tn_err_set(err, TN_INVALID, 0, "--user is no UTF-8, which snapshots are written in");
    }
    if (w->spec.user && w->spec.commit_every) {
        return tn_err_set(err, TN_INVALID, 0, "--commit-id names one commit: no --commit-every");
    }
    return TN_OK;
}

/* The script and the letters come first: they take their memory from the table's parts. */
static tn_rc open_table(struct tn_writing *w, struct tn_err *err)
{
    struct tn_table_spec spec = {.name = w->spec.table_name,
                                 .who = w->who,
                                 .user = w->spec.user,
                                 .identifier = w->spec.commit_id,
                                 .compact = true,
                                 .letters = &w->dead.letters.sink,
                                 .publish_letters = publish_letters,
                                 .committed = say_committed,
                                 .compaction_failed = say_compaction_failed,
                                 .user_data = w};
    tn_rc rc = open_script(w, err);
    if (rc == TN_OK) {
        tn_scripted_fill(&w->scripted, &spec);
        rc = tn_dead_open(&w->dead, &w->spec.app->env, w->spec.dead_letters, w->spec.table_name,
                          w->who, err);
    }
    if (rc == TN_OK) {
        rc = tn_table_open(&w->spec.app->env, &spec, &w->table, err);
    }
    if (rc == TN_ABSENT) {
        return tn_suggest_table(w->spec.app, w->spec.table_name, err);
    }
    return rc == TN_OK ? tn_scripted_check(&w->scripted, w->table, err) : rc;
}

tn_rc tn_writing_open(struct tn_writing *writing, const struct tn_writing_spec *spec,
                      struct tn_err *err)
{
    struct tn_writing *w = writing;
    *w = (struct tn_writing){.spec = *spec};
    (void)snprintf(w->who, sizeof w->who, "tarn %s, process %ld", spec->verb, (long)getpid());
    name_run(w);
    tn_rc rc = check_options(w, err);
    if (rc == TN_OK) {
        rc = open_table(w, err);
    }
    if (rc == TN_OK) {
        rc = open_letters(w, err);
    }
    if (rc == TN_OK) {
        rc = tn_table_tell(w->table, err);
    }
    return rc == TN_OK ? open_feed(w, err) : rc;
}

/* What was committed before an error is a change: 2 would deny it. */
static int code_of_error(const struct tn_writing *w, tn_rc rc, const struct tn_err *err)
{
    int code = tn_say_error(rc, err);
    if (rc == TN_CANCELED && w->scripted.open) {
        /* It is parked: wrong, as one that can't be loaded. */
        (void)fprintf(stderr,
                      "tarn: rows since the last commit are not in; correct %s, then write again\n",
                      w->scripted.path);
        code = 2;
    }
    bool changed = w->table && tn_table_counts(w->table)->commits > 0;
    return code == 2 && changed ? tn_exit_code(TN_IO) : code;
}

/* The rows are in, but not all was done that should be. */
static int code_of_behind(const struct tn_writing *w, int code)
{
    uint32_t count;
    tn_rc rc = tn_table_behind(w->table, &count);
    if (count == 0) {
        return code;
    }
    (void)fprintf(stderr,
                  "tarn: compaction failed in %u of the buckets; committed rows are safe, and the "
                  "next write or `tarn compact %s` tries again\n",
                  count, w->spec.table_name);
    if (code > 1) {
        return code;
    }
    return rc == TN_CORRUPT ? tn_exit_code(rc) : 1;
}

int tn_writing_close(struct tn_writing *w, tn_rc rc, struct tn_err *err)
{
    int code = rc == TN_OK ? 0 : code_of_error(w, rc, err);
    if (rc == TN_OK) {
        tn_state_file_close(&w->state);
    }
    if (w->table && w->spec.stats) {
        say_stats(w);
    }
    if (w->table) {
        if (w->scripted.open) {
            say_script(w);
        }
        code = code_of_behind(w, code);
        tn_dead_rest(&w->dead);
        tn_table_close(w->table);
    }
    code = tn_dead_close(&w->dead, w->feed.dead, code);
    tn_scripted_close(&w->scripted);
    return code;
}
