/* tarn write: records from files or standard input into a table.
 *
 *     source -> buffer -> decoder -> rows -> table (put, turn) -> cut -> commit
 *
 * A file's position is committed with its rows, so the same command goes on where it was after a
 * power cut, and does nothing when all was committed already.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/cmd.h"
#include "app/suggest.h"
#include "ingest/decode.h"
#include "io/source.h"
#include "table/table.h"

static struct {
    const char *input;
    const char *commit_every;
    const char *dead_letters;
    const char *unknown_columns;
    const char *user;
    const char *from;
    struct tn_text_list times;
    int64_t commit_id;
    bool stats;
} o = {.commit_id = -1};

static const struct tn_flag flags[] = {
    {"input", 0, TN_FLAG_TEXT, &o.input, "FORM", "json (default), changes, debezium-json or csv"},
    {"commit-every", 0, TN_FLAG_TEXT, &o.commit_every, "N|TIME",
     "commit each N rows, or each TIME (10s); default: at the end"},
    {"dead-letters", 0, TN_FLAG_TEXT, &o.dead_letters, "FILE",
     "records that can't become rows; else on stderr"},
    {"unknown-columns", 0, TN_FLAG_TEXT, &o.unknown_columns, "drop|fail",
     "what to do with them; default: fail"},
    {"time", 0, TN_FLAG_LIST, &o.times, "COLUMN=UNIT",
     "bare numbers in this time column are epoch s, ms, us or ns"},
    {"user", 0, TN_FLAG_TEXT, &o.user, "NAME",
     "commit user; with --commit-id a repeat is harmless"},
    {"commit-id", 0, TN_FLAG_I64, &o.commit_id, "N", "identifier of the one commit"},
    {"from", 0, TN_FLAG_TEXT, &o.from, "OFFSET",
     "byte of FILE to begin at, whatever was committed before"},
    {"stats", 0, TN_FLAG_SET, &o.stats, NULL, "say at the end what was written and read"},
};

enum {
    RECORD_MAX = 128 * 1024,
    BUFFER_SIZE = RECORD_MAX + 32 * 1024,
    TIME_CHECK_ROWS = 256, /* the clock is read once in so many records */
    DEAD_SHOWN_MAX = 200,  /* bytes of a dead record on stderr */
};

struct write {
    struct tn_app *app;
    const char *table_name;
    struct tn_table *table;
    struct tn_decode_spec decode;
    struct tn_decoder *decoder;
    struct tn_source source;
    char source_key[160];
    unsigned char *buffer;
    size_t begin; /* of what is not eaten yet */
    size_t end;
    uint64_t offset; /* in the source, of buffer[begin] */
    uint64_t line;
    bool at_end;
    uint64_t rows; /* of all inputs so far: what `committed` counts */
    uint64_t rows_cut;
    uint64_t record_offset; /* where the record at hand begins */
    uint64_t record_line;
    uint64_t dead;
    uint64_t rows_said; /* by the last `committed` line */
    uint64_t stalls_said;
    uint64_t every_rows; /* 0: not by rows */
    int64_t every_ms;    /* 0: not by time */
    int64_t last_cut_ms;
    uint32_t since_clock;
    FILE *letters; /* or NULL */
};

static void say_committed(void *user_data, const struct tn_committed *committed)
{
    struct write *w = user_data;
    const struct tn_table_counts *counts = w->table ? tn_table_counts(w->table) : NULL;
    if (!tn_common.quiet && counts && counts->stalls > w->stalls_said) {
        (void)fprintf(stderr,
                      "tarn: rows waited for compaction %" PRIu64
                      " times (num-sorted-run.stop-trigger)\n",
                      counts->stalls - w->stalls_said);
        w->stalls_said = counts->stalls;
    }
    bool made = committed->append_id > 0 || committed->compact_id > 0;
    if (!tn_common.quiet && (made || committed->row_count > w->rows_said)) {
        (void)fprintf(stderr, "committed snapshot=%" PRId64 " rows=%" PRIu64 " table=%s\n",
                      committed->latest_id, committed->row_count, w->table_name);
        (void)fflush(stderr);
        w->rows_said = committed->row_count;
    }
}

/* ---- options ---- */

static tn_rc parse_every(struct write *w, struct tn_err *err)
{
    if (!o.commit_every) {
        return TN_OK;
    }
    char *end;
    errno = 0;
    unsigned long long rows = strtoull(o.commit_every, &end, 10);
    if (errno == 0 && end != o.commit_every && *end == 0 && rows > 0) {
        w->every_rows = rows;
        return TN_OK;
    }
    if (tn_parse_duration(tn_bytes_of(o.commit_every), &w->every_ms) && w->every_ms > 0) {
        return TN_OK;
    }
    return tn_err_set(err, TN_INVALID, 0,
                      "--commit-every %s: want a number of rows, or a time like 10s",
                      o.commit_every);
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

static tn_rc init_decode(struct write *w, struct tn_err *err)
{
    const struct tn_schema *schema = tn_table_schema(w->table);
    void *memory;
    tn_rc rc = tn_arena_need(&w->app->input, schema->field_count * sizeof(enum tn_epoch), "times",
                             &memory, err);
    enum tn_epoch *epochs = memory;
    for (uint32_t i = 0; rc == TN_OK && i < o.times.count; i++) {
        rc = parse_epoch(o.times.items[i], schema, epochs, err);
    }
    w->decode = (struct tn_decode_spec){.schema = schema,
                                        .layout = tn_table_layout(w->table),
                                        .epochs = epochs,
                                        .record_size_max = RECORD_MAX};
    if (rc == TN_OK) {
        rc = tn_input_parse(o.input ? o.input : "json", &w->decode.input, err);
    }
    if (rc == TN_OK && o.unknown_columns) {
        if (strcmp(o.unknown_columns, "drop") == 0) {
            w->decode.unknown = TN_UNKNOWN_DROP;
        } else if (strcmp(o.unknown_columns, "fail") != 0) {
            rc = tn_err_set(err, TN_INVALID, 0, "--unknown-columns: drop or fail");
        }
    }
    if (rc == TN_OK) {
        rc = tn_arena_need(&w->app->input, BUFFER_SIZE, "the input", &memory, err);
        w->buffer = memory;
    }
    return rc;
}

/* ---- dead letters ---- */

static void put_letter(FILE *to, const struct tn_decoded *d, const char *reason)
{
    static unsigned char text[3 * RECORD_MAX / 2];
    struct tn_buf buf;
    tn_buf_init(&buf, text, sizeof text);
    tn_buf_format(&buf, "{\"line\":%" PRIu64 ",\"reason\":", d->line);
    tn_json_string(&buf, tn_bytes_of(reason));
    tn_buf_text(&buf, ",\"record\":");
    size_t mark = buf.size;
    tn_json_string(&buf, d->record);
    if (buf.overflow) { /* many escapes: the first part must do */
        buf.size = mark;
        buf.overflow = false;
        tn_json_string(&buf, (struct tn_bytes){d->record.data, DEAD_SHOWN_MAX});
    }
    tn_buf_text(&buf, "}\n");
    (void)fwrite(text, 1, buf.size, to);
}

static void bury(struct write *w, const struct tn_decoded *d, const char *reason)
{
    w->dead++;
    if (w->letters) {
        put_letter(w->letters, d, reason);
    } else {
        (void)fprintf(stderr, "tarn: %s:%" PRIu64 ": %s\n", w->source.name, d->line, reason);
    }
}

/* ---- rows ---- */

static tn_rc cut(struct write *w, struct tn_err *err)
{
    if (w->letters && fflush(w->letters) != 0) {
        return tn_err_set(err, TN_IO, errno, "%s can't be written", o.dead_letters);
    }
    tn_rc rc = tn_table_cut(w->table, w->rows, err);
    while (rc == TN_AGAIN) {
        rc = tn_table_turn(w->table, true, err);
        if (rc == TN_OK) {
            rc = tn_table_cut(w->table, w->rows, err);
        }
    }
    w->rows_cut = w->rows;
    w->last_cut_ms = w->app->env.clock->vtable->now_ms(w->app->env.clock);
    return rc;
}

static tn_rc note_position_at(struct write *w, uint64_t offset, uint64_t line, struct tn_err *err)
{
    if (!w->source.seekable || o.user) {
        return TN_OK;
    }
    char text[TN_SOURCE_IDENTITY_SIZE + 48];
    (void)snprintf(text, sizeof text, "%s:%" PRIu64 ":%" PRIu64, w->source.identity, offset, line);
    return tn_table_position(w->table, w->source_key, text, err);
}

static tn_rc note_position(struct write *w, struct tn_err *err)
{
    return note_position_at(w, w->offset, w->line, err);
}

/* No work is left that would make room: the rows so far are committed, so that their buckets can be
 * closed. The record at hand belongs to the next commit. */
static tn_rc make_room(struct write *w, uint32_t stuck, struct tn_err *err)
{
    if (stuck > 1 || o.user) { /* closing buckets did not help, or there is to be one commit only */
        return tn_err_set(err, TN_UNSUPPORTED, 0, "%s%s", err->text,
                          o.user ? "; without --commit-id it would be several commits" : "");
    }
    tn_rc rc = note_position_at(w, w->record_offset, w->record_line, err);
    if (rc == TN_OK) {
        rc = cut(w, err);
    }
    while (rc == TN_OK && !tn_table_idle(w->table)) {
        rc = tn_table_turn(w->table, true, err);
    }
    tn_table_release(w->table);
    return rc;
}

/* OK with `*dead`: this row can't be taken, the text says why. */
static tn_rc put(struct write *w, struct tn_row row, enum tn_row_kind kind, bool *dead,
                 struct tn_err *err)
{
    for (uint32_t stuck = 0;;) {
        tn_rc rc = tn_table_put(w->table, row, kind, err);
        *dead = rc == TN_INVALID;
        if (rc != TN_AGAIN) {
            return *dead ? TN_OK : rc;
        }
        rc = tn_table_idle(w->table) ? make_room(w, stuck++, err)
                                     : tn_table_turn(w->table, true, err);
        if (rc != TN_OK) {
            return rc;
        }
    }
}

static bool cut_is_due(struct write *w)
{
    if (w->every_rows > 0 && w->rows - w->rows_cut >= w->every_rows) {
        return true;
    }
    if (w->every_ms > 0 && ++w->since_clock >= TIME_CHECK_ROWS) {
        w->since_clock = 0;
        int64_t now = w->app->env.clock->vtable->now_ms(w->app->env.clock);
        return now - w->last_cut_ms >= w->every_ms;
    }
    return tn_table_wants_cut(w->table);
}

static tn_rc take_record(struct write *w, const struct tn_decoded *d, struct tn_err *err)
{
    if (d->dead) {
        bury(w, d, d->reason);
    }
    for (uint32_t i = 0; i < d->count; i++) {
        bool dead;
        tn_rc rc = put(w, d->rows[i], d->kinds[i], &dead, err);
        if (rc != TN_OK) {
            return rc;
        }
        if (dead) {
            bury(w, d, err->text);
            break;
        }
    }
    w->rows += d->count > 0 || d->dead;
    return TN_OK;
}

static tn_rc eat(struct write *w, struct tn_err *err)
{
    for (;;) {
        struct tn_decoded d;
        size_t eaten = 0;
        tn_rc rc =
            tn_decoder_next(w->decoder, (struct tn_bytes){w->buffer + w->begin, w->end - w->begin},
                            w->at_end, &d, &eaten, err);
        w->record_offset = w->offset;
        w->record_line = w->line;
        w->begin += eaten;
        w->offset += eaten;
        if (rc == TN_OK) {
            w->line = d.line;
            rc = take_record(w, &d, err);
        }
        if (rc == TN_OK && cut_is_due(w)) {
            rc = note_position(w, err);
            rc = rc == TN_OK ? cut(w, err) : rc;
        }
        if (rc != TN_OK) {
            return rc;
        }
    }
}

static tn_rc read_more(struct write *w, struct tn_err *err)
{
    memmove(w->buffer, w->buffer + w->begin, w->end - w->begin);
    w->end -= w->begin;
    w->begin = 0;
    size_t got;
    tn_rc rc = tn_source_read(&w->source, w->buffer + w->end, BUFFER_SIZE - w->end, &got, err);
    if (rc == TN_OK) {
        w->end += got;
        w->at_end = got == 0;
    }
    return rc;
}

/* Milliseconds until a cut by time is due, or -1 when there is nothing to cut. */
static int64_t cut_due_in(const struct write *w)
{
    if (w->every_ms == 0 || w->rows == w->rows_cut) {
        return -1;
    }
    int64_t now = w->app->env.clock->vtable->now_ms(w->app->env.clock);
    int64_t left = w->last_cut_ms + w->every_ms - now;
    return left > 0 ? left : 0;
}

/* A slow pipe: while no bytes come, work that is under way goes on, and rows are committed when it
 * is time. */
static tn_rc wait_for_input(struct write *w, struct tn_err *err)
{
    enum { WAIT_MAX = 1000 };
    tn_rc rc = TN_OK;
    while (rc == TN_OK && !tn_source_ready(&w->source, 0)) {
        int64_t due = cut_due_in(w);
        if (due == 0) {
            rc = note_position(w, err);
            rc = rc == TN_OK ? cut(w, err) : rc;
        } else if (!tn_table_idle(w->table)) {
            rc = tn_table_turn(w->table, true, err);
        } else {
            (void)tn_source_ready(&w->source, due > 0 && due < WAIT_MAX ? (int)due : WAIT_MAX);
        }
    }
    return rc;
}

static tn_rc copy_source(struct write *w, struct tn_err *err)
{
    for (;;) {
        tn_rc rc = eat(w, err);
        if (rc != TN_AGAIN) {
            return rc;
        }
        if (w->at_end) {
            return note_position(w, err);
        }
        rc = wait_for_input(w, err);
        if (rc == TN_OK) {
            rc = read_more(w, err);
        }
        if (rc == TN_OK) { /* work that is due goes on while rows come in */
            rc = tn_table_turn(w->table, false, err);
        }
        if (rc != TN_OK) {
            return rc;
        }
    }
}

/* ---- where a file goes on ---- */

/* "<identity>:<offset>:<line>" */
static bool parse_position(const char *text, char identity[TN_SOURCE_IDENTITY_SIZE],
                           uint64_t *offset, uint64_t *line)
{
    size_t size = strcspn(text, ":");
    if (size >= TN_SOURCE_IDENTITY_SIZE || !text[size]) {
        return false;
    }
    memcpy(identity, text, size);
    identity[size] = 0;
    char *end;
    *offset = strtoull(text + size + 1, &end, 10);
    *line = *end == ':' ? strtoull(end + 1, &end, 10) : 0;
    return *end == 0;
}

static tn_rc go_to(struct write *w, uint64_t offset, uint64_t line, struct tn_err *err)
{
    struct tn_bytes header = {0};
    if (w->decode.input == TN_INPUT_CSV && offset > 0) {
        size_t got;
        tn_rc rc = tn_source_read(&w->source, w->buffer, BUFFER_SIZE, &got, err);
        if (rc != TN_OK) {
            return rc;
        }
        const unsigned char *newline = memchr(w->buffer, '\n', got);
        header = (struct tn_bytes){w->buffer, newline ? (size_t)(newline - w->buffer) : got};
    }
    tn_rc rc = tn_source_seek(&w->source, offset, err);
    if (rc == TN_OK && offset > 0) {
        rc = tn_decoder_resume(w->decoder, line + 1, header, err);
    }
    w->offset = offset;
    w->line = line;
    return rc;
}

static tn_rc find_start(struct write *w, struct tn_err *err)
{
    const struct tn_recovered *recovered = tn_table_recovered(w->table);
    const char *text = tn_table_position_of(w->table, w->source_key);
    char identity[TN_SOURCE_IDENTITY_SIZE];
    uint64_t offset = 0;
    uint64_t line = 0;
    if (o.from) {
        offset = strtoull(o.from, NULL, 10);
        return go_to(w, offset, 0, err);
    }
    if (!text) {
        if (!recovered->found && recovered->positioned && recovered->latest_id > 0) {
            return tn_err_set(
                err, TN_INVALID, 0,
                "positions of %s are gone; --from OFFSET says where %s goes on (0: its "
                "beginning)",
                w->table_name, w->source.name);
        }
        return go_to(w, 0, 0, err);
    }
    if (!parse_position(text, identity, &offset, &line)) {
        return tn_err_set(err, TN_CORRUPT, 0, "position of %s: '%s'", w->source_key, text);
    }
    if (strcmp(identity, w->source.identity) != 0) {
        return go_to(w, 0, 0, err); /* another file under the same name */
    }
    if (!tn_common.quiet && offset > 0) {
        (void)fprintf(stderr, "tarn: %s goes on at byte %" PRIu64 " (line %" PRIu64 ")\n",
                      w->source.name, offset, line + 1);
    }
    return go_to(w, offset, line, err);
}

static void make_source_key(struct write *w, const char *path)
{
    const char *slash = strrchr(path, '/');
    (void)snprintf(w->source_key, sizeof w->source_key, "file.%.120s", slash ? slash + 1 : path);
}

static tn_rc write_source(struct write *w, const char *path, struct tn_err *err)
{
    make_source_key(w, path);
    const char *known = tn_table_position_of(w->table, w->source_key);
    tn_rc rc = tn_source_open(&w->source, path, known, err);
    if (rc != TN_OK) {
        return rc;
    }
    size_t mark = tn_arena_mark(&w->app->input);
    w->begin = 0;
    w->end = 0;
    w->offset = 0;
    w->line = 0;
    w->at_end = false;
    rc = tn_decoder_open(&w->decoder, &w->decode, &w->app->input, err);
    if (rc == TN_OK && w->source.seekable && !o.user) {
        rc = find_start(w, err);
    }
    if (rc == TN_OK) {
        rc = copy_source(w, err);
    }
    tn_source_close(&w->source);
    tn_arena_reset(&w->app->input, mark);
    return rc;
}

static tn_rc write_all(struct write *w, const struct tn_text_list *words, struct tn_err *err)
{
    static const char *const STANDARD[] = {"-"};
    bool given = words->count > 1;
    const char *const *paths = given ? words->items + 1 : STANDARD;
    uint32_t count = given ? words->count - 1 : 1;
    w->last_cut_ms = w->app->env.clock->vtable->now_ms(w->app->env.clock);
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < count; i++) {
        rc = write_source(w, paths[i], err);
    }
    return rc == TN_OK ? tn_table_finish(w->table, w->rows, err) : rc;
}

static void say_stats(const struct write *w)
{
    const struct tn_table_counts *c = tn_table_counts(w->table);
    const struct tn_io_counts *io = &w->app->posix.io.counts;
    (void)fprintf(stderr,
                  "rows=%" PRIu64 " filtered=%" PRIu64 " dead=%" PRIu64 " commits=%" PRIu64
                  " flushes=%" PRIu64 " flushed_bytes=%" PRIu64 " compactions=%" PRIu64
                  " compacted_bytes=%" PRIu64 " stalls=%" PRIu64 " written_bytes=%" PRIu64
                  " read_bytes=%" PRIu64 " syncs=%" PRIu64 "\n",
                  c->rows, c->rows_filtered, w->dead, c->commits, c->flushes, c->flushed_bytes,
                  c->compactions, c->compacted_bytes, c->stalls, io->bytes_written, io->bytes_read,
                  io->syncs);
}

static tn_rc open_table(struct write *w, struct tn_err *err)
{
    char who[96];
    (void)snprintf(who, sizeof who, "tarn write, process %ld", (long)getpid());
    if ((o.user != NULL) != (o.commit_id >= 0)) {
        return tn_err_set(err, TN_INVALID, 0, "--user and --commit-id belong together");
    }
    if (o.user && o.commit_every) {
        return tn_err_set(err, TN_INVALID, 0, "--commit-id names one commit: no --commit-every");
    }
    struct tn_table_spec spec = {.name = w->table_name,
                                 .who = who,
                                 .user = o.user,
                                 .identifier = o.commit_id,
                                 .compact = true,
                                 .committed = say_committed,
                                 .user_data = w};
    tn_rc rc = tn_table_open(&w->app->env, &spec, &w->table, err);
    if (rc == TN_ABSENT) {
        return tn_suggest_table(w->app, w->table_name, err);
    }
    if (rc == TN_OK) {
        rc = init_decode(w, err);
    }
    if (rc == TN_OK) {
        rc = parse_every(w, err);
    }
    return rc;
}

static int finish(struct write *w, tn_rc rc, struct tn_err *err)
{
    int code = rc == TN_OK ? 0 : tn_say_error(rc, err);
    if (w->table && o.stats) {
        say_stats(w);
    }
    if (w->dead > 0) {
        (void)fprintf(stderr, "tarn: %" PRIu64 " records went to the dead letters%s%s\n", w->dead,
                      o.dead_letters ? ": " : "", o.dead_letters ? o.dead_letters : "");
        code = code == 0 ? 1 : code;
    }
    if (w->table) {
        tn_table_close(w->table);
    }
    if (w->letters && fclose(w->letters) != 0 && code <= 1) {
        (void)fprintf(stderr, "tarn: %s can't be written\n", o.dead_letters);
        code = 4;
    }
    return code;
}

static int run(const struct tn_text_list *words)
{
    if (words->count < 1) {
        return tn_say_usage(&tn_cmd_write);
    }
    static struct tn_app app;
    static struct write w;
    struct tn_err err = {0};
    w = (struct write){.app = &app, .table_name = words->items[0]};
    tn_rc rc = tn_boot(&app, false, &err);
    if (rc != TN_OK) {
        return tn_say_error(rc, &err);
    }
    if (o.dead_letters) {
        w.letters = fopen(o.dead_letters, "ae");
        if (!w.letters) {
            rc = tn_err_set(&err, TN_IO, errno, "%s can't be written", o.dead_letters);
        }
    }
    if (rc == TN_OK) {
        rc = open_table(&w, &err);
    }
    if (rc == TN_OK) {
        rc = write_all(&w, words, &err);
    }
    int code = finish(&w, rc, &err);
    tn_shut(&app);
    return code;
}

const struct tn_command tn_cmd_write = {
    "write", "write D.T [FILE...|-]",        "adds rows from files or standard input",
    flags,   sizeof flags / sizeof flags[0], run,
};
