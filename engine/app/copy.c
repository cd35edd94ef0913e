#include "app/copy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/value.h"

enum {
    READ_AHEAD = 32 * 1024, /* behind the longest record */
};

/* ---- where a file goes on ---- */

/* "<identity>:<offset>:<line>:<part>"; the part is left out when it is 0 */
static bool parse_position(const char *text, char identity[TN_SOURCE_IDENTITY_SIZE],
                           struct tn_feed_place *place)
{
    size_t size = strcspn(text, ":");
    if (size >= TN_SOURCE_IDENTITY_SIZE || !text[size]) {
        return false;
    }
    memcpy(identity, text, size);
    identity[size] = 0;
    char *end;
    place->offset = strtoull(text + size + 1, &end, 10);
    place->line = *end == ':' ? strtoull(end + 1, &end, 10) : 0;
    place->part = *end == ':' ? (uint32_t)strtoul(end + 1, &end, 10) : 0;
    return *end == 0;
}

/* The header line of a csv file, in the buffer. */
static tn_rc read_header(struct tn_copy *copy, struct tn_bytes *header, struct tn_err *err)
{
    size_t got;
    tn_rc rc = tn_source_read(&copy->source, copy->buffer, copy->buffer_size, &got, err);
    if (rc == TN_OK) {
        const unsigned char *newline = memchr(copy->buffer, '\n', got);
        size_t size = newline ? (size_t)(newline - copy->buffer) : got;
        size_t mark = size >= 3 && memcmp(copy->buffer, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
        *header = (struct tn_bytes){copy->buffer + mark, size - mark};
    }
    return rc;
}

static tn_rc go_to(struct tn_copy *copy, struct tn_feed *feed, struct tn_feed_place place,
                   struct tn_err *err)
{
    struct tn_bytes header = {0};
    tn_rc rc = TN_OK;
    if (copy->spec.decode.input == TN_INPUT_CSV && place.offset > 0) {
        rc = read_header(copy, &header, err);
    }
    if (rc == TN_OK) {
        rc = tn_source_seek(&copy->source, place.offset, err);
    }
    if (rc == TN_OK && place.offset > 0) {
        rc = tn_decoder_resume(feed->decoder, place.line + 1, header, err);
    }
    if (rc == TN_OK && feed->spec.letters) {
        tn_letters_header(feed->spec.letters, header);
    }
    feed->next = place;
    return rc;
}

/* Among the sources of letters. Another file under the same name is another source, and so is the
 * same file for another table. */
static tn_rc name_source(struct tn_copy *copy, struct tn_feed *feed, struct tn_err *err)
{
    const struct tn_source *source = &copy->source;
    const char *identity = source->seekable ? source->identity : copy->spec.run;
    bool again = source->seekable || !copy->spec.placed; /* else each run has its own name */
    char name[2 * TN_LETTER_SOURCE_SIZE]; /* one that is too long is found to be so */
    (void)snprintf(name, sizeof name, "%s:%s:%s", copy->key, identity, copy->spec.table_name);
    return tn_letters_source(feed->spec.letters, name, tn_input_name(copy->spec.decode.input),
                             (int64_t)feed->next.offset, feed->next.part, again, &feed->source,
                             err);
}

/* A file's identity is of its first bytes, as many as there were when it was first seen. When
 * nothing of it is committed yet, letters may know: it has grown since. */
static tn_rc recognize(struct tn_copy *copy, struct tn_letters *letters, const char *path,
                       struct tn_err *err)
{
    const char *inode = strchr(copy->source.identity, '-');
    const char *end = inode ? strchr(inode + 1, '-') : NULL;
    char name[TN_LETTER_SOURCE_SIZE];
    char prefix[TN_LETTER_SOURCE_SIZE];
    if (!end || !letters->box->find) {
        return TN_OK;
    }
    int size = snprintf(prefix, sizeof prefix, "%s:%.*s", copy->key,
                        (int)(end + 1 - copy->source.identity), copy->source.identity);
    tn_rc rc = letters->box->find(letters->box, prefix, name, err);
    if (rc != TN_OK || !name[0] || size <= 0) {
        return rc;
    }
    struct tn_source again;
    char *known = name + strlen(copy->key) + 1;
    known[strcspn(known, ":")] = 0;
    rc = tn_source_open(&again, path, known, err);
    if (rc != TN_OK) {
        return rc;
    }
    bool same = strcmp(again.identity, known) == 0;
    tn_source_close(same ? &copy->source : &again);
    copy->source = same ? again : copy->source;
    return TN_OK;
}

static tn_rc find_place(struct tn_copy *copy, const struct tn_table *table,
                        struct tn_feed_place *place, struct tn_err *err)
{
    const struct tn_recovered *recovered = tn_table_recovered(table);
    const char *text = tn_table_position_of(table, copy->key);
    const char *name = copy->source.name;
    if (copy->spec.from) {
        place->offset = strtoull(copy->spec.from, NULL, 10);
        return TN_OK;
    }
    if (!text) {
        bool gone = !recovered->found && recovered->positioned && recovered->latest_id > 0;
        return !gone ? TN_OK
                     : tn_err_set(err, TN_INVALID, 0,
                                  "positions of %s are gone; --from OFFSET says where %s goes on "
                                  "(0: its beginning)",
                                  copy->spec.table_name, name);
    }
    char identity[TN_SOURCE_IDENTITY_SIZE];
    struct tn_feed_place known = {0};
    if (!parse_position(text, identity, &known)) {
        return tn_err_set(err, TN_CORRUPT, 0, "position of %s: '%s'", copy->key, text);
    }
    if (strcmp(identity, copy->source.identity) != 0) {
        return TN_OK; /* another file under the same name */
    }
    *place = known;
    if (!tn_common.quiet && known.offset > 0) {
        (void)fprintf(stderr, "tarn: %s goes on at byte %" PRIu64 " (line %" PRIu64 ")\n", name,
                      known.offset, known.line + 1);
    }
    return TN_OK;
}

/* A part of a snapshot's JSON: a name that is no UTF-8, or is cut within a sequence, is made to be.
 */
static void make_key(struct tn_copy *copy, const char *path)
{
    const char *slash = strrchr(path, '/');
    int size = snprintf(copy->key, sizeof copy->key, "file.%.120s", slash ? slash + 1 : path);
    struct tn_bytes key = {(const unsigned char *)copy->key, (size_t)size};
    for (size_t at = 0;
         (at += tn_utf8_span((struct tn_bytes){key.data + at, key.size - at})) < key.size;) {
        copy->key[at] = '?';
    }
}

/* ---- bytes ---- */

static tn_rc read_more(struct tn_copy *copy, struct tn_err *err)
{
    size_t kept = copy->rest.size;
    size_t got;
    memmove(copy->buffer, copy->rest.data, kept);
    tn_rc rc =
        tn_source_read(&copy->source, copy->buffer + kept, copy->buffer_size - kept, &got, err);
    copy->rest = (struct tn_bytes){copy->buffer, kept};
    if (rc == TN_OK) {
        copy->rest.size += got;
        copy->at_end = got == 0;
    }
    memset(copy->buffer + copy->rest.size, '\n', TN_DECODE_PAD);
    return rc;
}

/* A slow pipe: while no bytes come, work that is under way goes on, and rows are committed when it
 * is time. */
static tn_rc wait_for_input(struct tn_copy *copy, struct tn_feed *feed, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    int wait_ms = 0;
    while (rc == TN_OK && !tn_source_ready(&copy->source, wait_ms)) {
        rc = tn_feed_rest(feed, &wait_ms, err);
    }
    return rc;
}

static tn_rc copy_all(struct tn_copy *copy, struct tn_feed *feed, struct tn_err *err)
{
    for (;;) {
        tn_rc rc = tn_feed_eat(feed, &copy->rest, copy->at_end, err);
        if (rc != TN_AGAIN) {
            return rc;
        }
        if (copy->at_end) {
            return tn_feed_note(feed, err);
        }
        rc = wait_for_input(copy, feed, err);
        if (rc == TN_OK) {
            rc = read_more(copy, err);
        }
        if (rc == TN_OK) { /* work that is due goes on while rows come in */
            rc = tn_table_turn(feed->spec.table, false, err);
        }
        if (rc != TN_OK) {
            return rc;
        }
    }
}

/* ---- public ---- */

tn_rc tn_copy_init(struct tn_copy *copy, const struct tn_copy_spec *spec, struct tn_err *err)
{
    *copy = (struct tn_copy){.spec = *spec};
    struct tn_decode_spec *decode = &copy->spec.decode;
    size_t left = tn_arena_free(&spec->app->input);
    size_t ahead = READ_AHEAD + TN_DECODE_PAD;
    decode->padded = true;
    decode->framed = spec->mapper && spec->mapper->records;
    decode->row_size_max = spec->app->env.row_size_max;
    decode->record_size_max = tn_decode_record_max(decode->layout, decode->row_size_max, true,
                                                   left > ahead ? left - ahead : 0);
    copy->buffer_size = decode->record_size_max + (size_t)READ_AHEAD;
    copy->buffer = tn_arena_take_raw(&spec->app->input, copy->buffer_size + TN_DECODE_PAD);
    return copy->buffer ? TN_OK
                        : tn_err_set(err, TN_AGAIN, 0, "the input needs %zu bytes, %zu are free",
                                     copy->buffer_size, tn_arena_free(&spec->app->input));
}

tn_rc tn_copy_source(struct tn_copy *copy, struct tn_feed *feed, const char *path,
                     struct tn_err *err)
{
    struct tn_table *table = feed->spec.table;
    struct tn_arena *arena = &copy->spec.app->input;
    make_key(copy, path);
    tn_rc rc = tn_source_open(&copy->source, path, tn_table_position_of(table, copy->key), err);
    if (rc != TN_OK) {
        return rc;
    }
    size_t mark = tn_arena_mark(arena);
    copy->rest = (struct tn_bytes){copy->buffer, 0};
    copy->at_end = false;
    memset(copy->buffer, '\n', TN_DECODE_PAD);
    if (copy->spec.mapper) {
        copy->spec.mapper->source = copy->source.name;
    }
    struct tn_feed_place place = {0};
    rc = tn_decoder_open(&feed->decoder, &copy->spec.decode, arena, err);
    if (rc == TN_OK && feed->spec.letters && copy->source.seekable &&
        !tn_table_position_of(table, copy->key)) {
        rc = recognize(copy, feed->spec.letters, path, err);
    }
    if (rc == TN_OK && copy->spec.placed && copy->source.seekable) {
        rc = find_place(copy, table, &place, err);
    }
    feed->next = place;
    if (rc == TN_OK && feed->spec.letters) {
        rc = name_source(copy, feed, err);
    }
    if (rc == TN_OK && copy->source.seekable) {
        rc = go_to(copy, feed, place, err);
    }
    if (rc == TN_OK) {
        rc = copy_all(copy, feed, err);
    }
    tn_source_close(&copy->source);
    tn_arena_reset(arena, mark);
    return rc;
}

tn_rc tn_copy_note(struct tn_copy *copy, struct tn_table *table, struct tn_feed_place place,
                   struct tn_err *err)
{
    if (!copy->spec.placed || !copy->source.seekable) {
        return TN_OK;
    }
    char text[TN_SOURCE_IDENTITY_SIZE + 64];
    char part[16] = "";
    if (place.part > 0) {
        (void)snprintf(part, sizeof part, ":%" PRIu32, place.part);
    }
    (void)snprintf(text, sizeof text, "%s:%" PRIu64 ":%" PRIu64 "%s", copy->source.identity,
                   place.offset, place.line, part);
    return tn_table_position(table, copy->key, text, err);
}
