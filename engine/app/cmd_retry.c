/* tarn retry: a table's dead letters, once more into the table. What promises that each is taken
 * once, wherever it is killed, is in table/letter_resend.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/cmd.h"
#include "app/suggest.h"
#include "app/writing.h"
#include "table/letter_resend.h"

static struct {
    const char *commit_every;
    const char *dead_letters;
    const char *unknown_columns;
    struct tn_text_list times;
    bool stats;
} o = {.times = TN_TEXT_LIST(TN_SCHEMA_FIELDS_MAX)};

static const struct tn_flag flags[] = {
    {"dead-letters", 0, TN_FLAG_TEXT, &o.dead_letters, "D.L",
     "the table that they are in; those of FILEs, which go, move there first"},
    {"commit-every", 0, TN_FLAG_TEXT, &o.commit_every, "N|TIME",
     "commit each N letters, or each TIME (10s); default: at the end"},
    {"unknown-columns", 0, TN_FLAG_TEXT, &o.unknown_columns, "drop|fail",
     "what to do with them; default: fail"},
    {"time", 0, TN_FLAG_LIST, &o.times, "COLUMN=UNIT",
     "bare numbers in this time column are epoch s, ms, us or ns"},
    {"stats", 0, TN_FLAG_SET, &o.stats, NULL, "say at the end what was written and read"},
};

struct retry {
    struct tn_writing writing;
    struct tn_resend resend;
    struct tn_resend_place place; /* as it was noted last */
    uint64_t sent;
    uint64_t left;
    size_t mark; /* of the input's arena, without a decoder */
    int64_t position;
    struct tn_source file; /* whose letters move to the table */
    char key[TN_SPOOL_PATH_SIZE];
    char source[TN_LETTER_SOURCE_SIZE];
    char input[TN_LETTER_INPUT_SIZE];
};

/* ---- up to where ---- */

static struct tn_resend_place place_of(const struct retry *r)
{
    const char *text = tn_table_position_of(r->writing.table, r->key);
    struct tn_resend_place place = {0};
    char *end = NULL;
    if (text) {
        place.number = strtoll(text, &end, 10);
        place.part = *end == ':' ? (uint32_t)strtoul(end + 1, NULL, 10) : 0;
    }
    return place;
}

/* Before a cut: behind a letter, or between the rows of one. */
static tn_rc note(void *user_data, struct tn_feed_place place, struct tn_err *err)
{
    struct retry *r = user_data;
    char text[48];
    bool within = place.offset == (uint64_t)r->position && r->sent > 0;
    if (r->sent == 0) {
        return TN_OK;
    }
    r->place = (struct tn_resend_place){r->resend.number - within, within ? place.part : 0};
    (void)snprintf(text, sizeof text, "%" PRId64 ":%" PRIu32, r->place.number, r->place.part);
    return tn_table_position(r->writing.table, r->key, text, err);
}

/* ---- a letter ---- */

static void copy_text(char *to, size_t size, const struct tn_value *value, const char *missing)
{
    if (value->null) {
        (void)snprintf(to, size, "%s", missing);
    } else {
        (void)snprintf(to, size, "%.*s",
                       (int)(value->as.bytes.size < size ? value->as.bytes.size : size),
                       (const char *)value->as.bytes.data);
    }
}

/* As of another source, or in another form, than the letter before. */
static tn_rc name_letter(struct retry *r, const struct tn_value *values, struct tn_err *err)
{
    struct tn_letters *letters = &r->writing.dead.letters;
    char source[TN_LETTER_SOURCE_SIZE];
    tn_rc rc = TN_OK;
    copy_text(source, sizeof source, &values[TN_LETTER_SOURCE], "?");
    copy_text(r->input, sizeof r->input, &values[TN_LETTER_INPUT], "json");
    if (r->sent == 0 || strcmp(source, r->source) != 0) {
        memcpy(r->source, source, sizeof source);
        rc = tn_letters_source(letters, r->source, r->input, 0, 0, false, &r->writing.feed.source,
                               err);
    }
    tn_letters_input(letters, r->input);
    if (!values[TN_LETTER_HEADER].null) {
        tn_letters_header(letters, values[TN_LETTER_HEADER].as.bytes);
    }
    return rc;
}

/* INVALID: it can't be read at all. */
static tn_rc open_decoder(struct retry *r, const struct tn_value *values, struct tn_err *err)
{
    struct tn_writing *w = &r->writing;
    struct tn_arena *arena = &w->spec.app->input;
    struct tn_decode_spec decode = w->copy.spec.decode;
    bool is_row = strcmp(r->input, TN_LETTER_ROW) == 0;
    tn_rc rc = tn_input_parse(is_row ? "changes" : r->input, &decode.input, err);
    if (rc != TN_OK) {
        return rc;
    }
    w->feed.spec.mapper = is_row ? NULL : w->copy.spec.mapper;
    w->mapper.records = decode.input == TN_INPUT_JSON;
    w->mapper.source = r->source;
    decode.framed = w->feed.spec.mapper && w->mapper.records;
    tn_arena_reset(arena, r->mark);
    rc = tn_decoder_open(&w->feed.decoder, &decode, arena, err);
    struct tn_bytes header = {0};
    if (rc == TN_OK && decode.input == TN_INPUT_CSV) {
        const struct tn_value *known = &values[TN_LETTER_HEADER];
        header = known->null ? header : known->as.bytes;
        rc = known->null ? tn_err_set(err, TN_INVALID, 0, "the header is not known") : TN_OK;
    }
    return rc == TN_OK ? tn_decoder_resume(w->feed.decoder, w->feed.next.line + 1, header, err)
                       : rc;
}

static tn_rc keep(struct retry *r, struct tn_bytes record, uint32_t part, struct tn_err *err)
{
    struct tn_err why = *err;
    struct tn_letter_record letter = {.position = r->position,
                                      .part = part,
                                      .line = r->writing.feed.next.line + 1,
                                      .record = record,
                                      .reason = why.text};
    r->writing.feed.dead++;
    return tn_letters_bury(&r->writing.dead.letters, &letter, err);
}

static tn_rc send_record(struct retry *r, struct tn_bytes record, struct tn_err *err)
{
    struct tn_copy *copy = &r->writing.copy;
    memcpy(copy->buffer, record.data, record.size);
    memset(copy->buffer + record.size, '\n', TN_DECODE_PAD);
    struct tn_bytes input = {copy->buffer, record.size};
    tn_rc rc = tn_feed_eat(&r->writing.feed, &input, true, err);
    return rc == TN_AGAIN ? TN_OK : rc;
}

static tn_rc send(struct retry *r, const struct tn_value *values, struct tn_err *err)
{
    struct tn_feed *feed = &r->writing.feed;
    bool is_row = !values[TN_LETTER_INPUT].null &&
                  tn_bytes_equal(values[TN_LETTER_INPUT].as.bytes, tn_bytes_of(TN_LETTER_ROW));
    uint32_t part = (uint32_t)values[TN_LETTER_PART].as.i64;
    int64_t line = values[TN_LETTER_LINE].null ? 1 : values[TN_LETTER_LINE].as.i64;
    const struct tn_value *text = &values[TN_LETTER_RECORD];
    struct tn_bytes record = text->null ? values[TN_LETTER_BYTES].as.bytes : text->as.bytes;
    tn_rc rc = name_letter(r, values, err);
    r->position = values[TN_LETTER_POSITION].as.i64;
    r->sent++;
    feed->first_part = is_row ? part : 0;
    feed->next =
        (struct tn_feed_place){(uint64_t)r->position, (uint64_t)line - 1, is_row ? 0 : part};
    if (rc != TN_OK) {
        return rc;
    }
    rc = open_decoder(r, values, err);
    if (rc == TN_OK && record.size + 1 > r->writing.copy.spec.decode.record_size_max) {
        rc = tn_err_set(err, TN_INVALID, 0, "the record is longer than %" PRIu32 " bytes",
                        r->writing.copy.spec.decode.record_size_max);
    }
    if (rc == TN_INVALID) {
        rc = keep(r, record, part, err);
        feed->next.offset++;
        return rc;
    }
    return rc == TN_OK ? send_record(r, record, err) : rc;
}

static tn_rc send_all(struct retry *r, struct tn_err *err)
{
    struct tn_value values[TN_LETTER_COLUMNS];
    tn_rc rc;
    while ((rc = tn_resend_next(&r->resend, values, err)) == TN_OK) {
        rc = send(r, values, err);
        if (rc == TN_OK) { /* work that is due goes on */
            rc = tn_table_turn(r->writing.table, false, err);
        }
        if (rc != TN_OK) {
            return rc;
        }
    }
    if (rc != TN_ABSENT) {
        return rc;
    }
    rc = r->sent > 0 ? tn_feed_note(&r->writing.feed, err) : TN_OK;
    return rc == TN_OK && r->sent > 0 ? tn_table_finish(r->writing.table, r->writing.feed.rows, err)
                                      : rc;
}

/* ---- letters in files ---- */

static tn_rc move_line(struct retry *r, struct tn_decoder *decoder, struct tn_decoded *decoded,
                       const struct tn_row_layout *layout, struct tn_err *err)
{
    struct tn_value values[TN_LETTER_COLUMNS];
    if (decoded->dead) {
        return tn_err_set(err, TN_INVALID, 0, "%s:%" PRIu64 ": %s", r->file.name, decoded->line,
                          decoded->reason);
    }
    if (decoded->count == 0) {
        return TN_OK;
    }
    struct tn_row row = tn_decoder_row(decoder, decoded, 0);
    for (uint32_t i = 0; i < TN_LETTER_COLUMNS; i++) {
        tn_row_get(layout, row, i, &values[i]);
    }
    values[TN_LETTER_RETRY].null = true;
    return tn_letter_table_put(r->writing.dead.table, values, TN_ROW_INSERT, err);
}

static tn_rc move_lines(struct retry *r, struct tn_decoder *decoder,
                        const struct tn_row_layout *layout, struct tn_err *err)
{
    struct tn_copy *copy = &r->writing.copy;
    struct tn_bytes rest = {copy->buffer, 0};
    for (bool last = false;;) {
        struct tn_decoded decoded;
        size_t eaten = 0;
        tn_rc rc = tn_decoder_next(decoder, rest, last, &decoded, &eaten, err);
        rest = (struct tn_bytes){rest.data + eaten, rest.size - eaten};
        if (rc == TN_OK) {
            rc = move_line(r, decoder, &decoded, layout, err);
        } else if (rc == TN_AGAIN && !last) {
            size_t got = 0;
            memmove(copy->buffer, rest.data, rest.size);
            rc = tn_source_read(&r->file, copy->buffer + rest.size, copy->buffer_size - rest.size,
                                &got, err);
            rest = (struct tn_bytes){copy->buffer, rest.size + got};
            memset(copy->buffer + rest.size, '\n', TN_DECODE_PAD);
            last = got == 0;
        }
        if (rc != TN_OK) {
            return rc == TN_AGAIN ? TN_OK : rc;
        }
    }
}

static tn_rc open_lines(struct retry *r, struct tn_decoder **decoder, struct tn_row_layout *layout,
                        struct tn_err *err)
{
    struct tn_arena *arena = &r->writing.spec.app->input;
    struct tn_decode_spec decode = r->writing.copy.spec.decode;
    void *memory;
    tn_rc rc = tn_arena_need(arena, sizeof(struct tn_schema), "a schema", &memory, err);
    struct tn_schema *schema = memory;
    if (rc == TN_OK) {
        rc = tn_letter_table_schema(arena, schema, err);
    }
    if (rc == TN_OK) {
        rc = tn_schema_layout(schema, layout, NULL, NULL, arena, err);
    }
    decode.input = TN_INPUT_JSON;
    decode.unknown = TN_UNKNOWN_DROP;
    decode.schema = schema;
    decode.layout = layout;
    decode.epochs = NULL;
    decode.framed = false;
    return rc == TN_OK ? tn_decoder_open(decoder, &decode, arena, err) : rc;
}

/* Its letters are in the table for good before the file goes, and it goes before they are sent. */
static tn_rc move_file(struct retry *r, const char *path, struct tn_err *err)
{
    struct tn_decoder *decoder = NULL;
    struct tn_row_layout layout;
    struct tn_letter_box *box = &r->writing.dead.table->box;
    tn_rc rc = tn_source_open(&r->file, path, NULL, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = open_lines(r, &decoder, &layout, err);
    if (rc == TN_OK) {
        rc = move_lines(r, decoder, &layout, err);
    }
    if (rc == TN_OK) {
        rc = box->commit(box, err);
    }
    tn_source_close(&r->file);
    tn_arena_reset(&r->writing.spec.app->input, r->mark);
    if (rc == TN_OK && remove(path) != 0) {
        rc = tn_err_set(err, TN_IO, errno, "%s: its letters are in %s, and it can't be removed",
                        path, o.dead_letters);
    }
    return rc;
}

/* ---- all of it ---- */

static tn_rc retry_all(struct retry *r, const struct tn_text_list *words, struct tn_err *err)
{
    struct tn_writing *w = &r->writing;
    (void)snprintf(r->key, sizeof r->key, "retry.%s", o.dead_letters);
    if (w->dead.table->absent && words->count == 1) {
        (void)tn_err_set(err, TN_ABSENT, 0, "%s: there is no such table", o.dead_letters);
        return tn_suggest_table(w->spec.app, o.dead_letters, err);
    }
    r->mark = tn_arena_mark(&w->spec.app->input);
    r->place = place_of(r);
    tn_rc rc = TN_OK;
    for (uint32_t i = 1; rc == TN_OK && i < words->count; i++) {
        rc = move_file(r, words->items[i], err);
    }
    rc = rc != TN_OK
             ? rc
             : tn_resend_begin(&r->resend, w->dead.table, w->spec.table_name, r->place, err);
    if (rc == TN_OK) {
        rc = send_all(r, err);
    }
    if (rc == TN_OK) {
        rc = tn_resend_finish(&r->resend, r->place, &r->left, err);
    }
    return rc;
}

static tn_rc check(struct tn_app *app, struct tn_err *err)
{
    bool is_table = false;
    if (!o.dead_letters) {
        return tn_err_set(err, TN_INVALID, 0, "--dead-letters D.L says where they are");
    }
    tn_rc rc = tn_dead_is_table(&app->env, o.dead_letters, &is_table, err);
    return rc == TN_OK && !is_table
               ? tn_err_set(err, TN_UNSUPPORTED, 0,
                            "%s: letters are sent again from a table, D.L in a database D that is "
                            "there; tarn retry D.T FILE --dead-letters D.L moves those of a file",
                            o.dead_letters)
               : rc;
}

static int finish(struct retry *r, tn_rc rc, struct tn_err *err)
{
    struct tn_letters *letters = &r->writing.dead.letters;
    letters->record_count = 0; /* said here, by how many are left */
    letters->row_count = 0;
    tn_resend_close(&r->resend);
    int code = tn_writing_close(&r->writing, rc, err);
    if (rc == TN_OK && (r->left > 0 || !tn_common.quiet)) {
        (void)fprintf(stderr, "tarn: %" PRIu64 " letters were sent again, %" PRIu64 " are left\n",
                      r->sent, r->left);
    }
    return code == 0 && rc == TN_OK && r->left > 0 ? 1 : code;
}

static int run(const struct tn_text_list *words)
{
    if (words->count < 1) {
        return tn_say_usage(&tn_cmd_retry);
    }
    static struct tn_app app;
    static struct retry r;
    struct tn_err err = {0};
    tn_rc rc = tn_boot(&app, false, &err);
    if (rc != TN_OK) {
        return tn_say_error(rc, &err);
    }
    rc = check(&app, &err);
    if (rc != TN_OK) {
        tn_shut(&app);
        return tn_say_error(rc, &err);
    }
    struct tn_writing_spec spec = {.app = &app,
                                   .verb = "retry",
                                   .table_name = words->items[0],
                                   .commit_every = o.commit_every,
                                   .dead_letters = o.dead_letters,
                                   .unknown_columns = o.unknown_columns,
                                   .commit_id = -1,
                                   .times = &o.times,
                                   .stats = o.stats,
                                   .note = note,
                                   .user_data = &r};
    rc = tn_writing_open(&r.writing, &spec, &err);
    if (rc == TN_OK) {
        rc = retry_all(&r, words, &err);
    }
    int code = finish(&r, rc, &err);
    tn_shut(&app);
    return code;
}

const struct tn_command tn_cmd_retry = {
    "retry", "retry D.T [FILE...] --dead-letters D.L", "sends the dead letters again",
    flags,   sizeof flags / sizeof flags[0],           run,
};
