#include "app/letter_file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "schema/value.h"

enum {
    PIECE_SIZE = 256, /* of a text: its JSON is six times as long at most */
    UTF8_MAX = 4,     /* bytes of a sequence */
};

static struct tn_letter_file *of(struct tn_letter_box *box)
{
    return (struct tn_letter_file *)(void *)box;
}

static tn_rc failed(const struct tn_letter_file *l, struct tn_err *err)
{
    int os = errno;
    return tn_err_set(err, TN_IO, os, "%s can't be written: %s", l->path, strerror(os));
}

/* ---- lines ---- */

/* A piece of a JSON string, less its quotes. */
static void put_piece(FILE *to, struct tn_bytes piece)
{
    unsigned char text[6 * PIECE_SIZE + 2];
    struct tn_buf buf;
    tn_buf_init(&buf, text, sizeof text);
    tn_json_string(&buf, piece);
    (void)fwrite(text + 1, 1, buf.size - 2, to);
}

static void put_member(FILE *to, const char *name, struct tn_bytes text)
{
    (void)fprintf(to, "\"%s\":\"", name);
    for (size_t at = 0; at < text.size; at += PIECE_SIZE) {
        size_t left = text.size - at;
        put_piece(to, (struct tn_bytes){text.data + at, left < PIECE_SIZE ? left : PIECE_SIZE});
    }
    (void)fputs("\",", to);
}

/* Whether the record is UTF-8: a sequence that a piece cuts begins the next one. */
static tn_rc record_is_text(const struct tn_dead_letter *letter, bool *text, struct tn_err *err)
{
    *text = true;
    for (uint32_t at = 0; *text && at < letter->record_size;) {
        unsigned char piece[PIECE_SIZE];
        uint32_t left = letter->record_size - at;
        uint32_t size = left < PIECE_SIZE ? left : PIECE_SIZE;
        tn_rc rc = tn_letter_record(letter, at, piece, size, err);
        if (rc != TN_OK) {
            return rc;
        }
        uint32_t good = (uint32_t)tn_utf8_span((struct tn_bytes){piece, size});
        *text = good == size || (size < left && size - good < UTF8_MAX);
        at += good;
    }
    return TN_OK;
}

static void put_hex(FILE *to, struct tn_bytes piece)
{
    for (size_t i = 0; i < piece.size; i++) {
        (void)fprintf(to, "%02x", piece.data[i]);
    }
}

/* A record may be longer than any memory here: it goes through piece by piece. */
static tn_rc put_record(FILE *to, const struct tn_dead_letter *letter, struct tn_err *err)
{
    bool text;
    tn_rc rc = record_is_text(letter, &text, err);
    if (rc != TN_OK) {
        return rc;
    }
    (void)fputs(text ? "\"record\":\"" : "\"bytes\":\"", to);
    for (uint32_t at = 0; rc == TN_OK && at < letter->record_size; at += PIECE_SIZE) {
        unsigned char piece[PIECE_SIZE];
        uint32_t left = letter->record_size - at;
        uint32_t size = left < PIECE_SIZE ? left : PIECE_SIZE;
        rc = tn_letter_record(letter, at, piece, size, err);
        (text ? put_piece : put_hex)(to, (struct tn_bytes){piece, rc == TN_OK ? size : 0});
    }
    (void)fputs("\",", to);
    return rc;
}

static tn_rc put_line(struct tn_letter_box *box, const struct tn_dead_letter *letter,
                      struct tn_err *err)
{
    struct tn_letter_file *l = of(box);
    (void)fputc('{', l->file);
    if (letter->line > 0) {
        (void)fprintf(l->file, "\"line\":%" PRIu64 ",", letter->line);
    }
    put_member(l->file, "reason", letter->reason);
    tn_rc rc = put_record(l->file, letter, err);
    put_member(l->file, "source", letter->source);
    (void)fprintf(l->file, "\"position\":%" PRId64 ",\"part\":%u,", letter->position, letter->part);
    put_member(l->file, "table", letter->table);
    if (letter->header.size > 0) {
        put_member(l->file, "header", letter->header);
    }
    (void)fprintf(l->file, "\"input\":\"%.*s\"}\n", (int)letter->input.size,
                  (const char *)letter->input.data);
    return rc == TN_OK && ferror(l->file) ? failed(l, err) : rc;
}

/* A pipe can't be synced, and need not be. */
static tn_rc commit_lines(struct tn_letter_box *box, struct tn_err *err)
{
    struct tn_letter_file *l = of(box);
    bool good = fflush(l->file) == 0;
    good = good && (fsync(fileno(l->file)) == 0 || errno == EINVAL || errno == EROFS);
    return good ? TN_OK : failed(l, err);
}

/* A line that a crash cut short is not gone on with. */
static tn_rc end_line(struct tn_letter_file *l, struct tn_err *err)
{
    if (fseek(l->file, -1, SEEK_END) != 0) { /* empty, or a pipe */
        clearerr(l->file);
        return TN_OK;
    }
    int last = fgetc(l->file);
    bool good = fseek(l->file, 0, SEEK_END) == 0;
    good = good && (last == '\n' || last == EOF || fputc('\n', l->file) != EOF);
    return good ? TN_OK : failed(l, err);
}

/* ---- messages ---- */

static tn_rc put_message(struct tn_letter_box *box, const struct tn_dead_letter *letter,
                         struct tn_err *err)
{
    (void)box;
    (void)err;
    (void)fprintf(stderr, "tarn: %.*s: row %u of the record at byte %" PRId64 ": %.*s\n",
                  (int)letter->source.size, (const char *)letter->source.data, letter->part + 1,
                  letter->position, (int)letter->reason.size, (const char *)letter->reason.data);
    return TN_OK;
}

static tn_rc commit_messages(struct tn_letter_box *box, struct tn_err *err)
{
    (void)box;
    (void)err;
    return TN_OK;
}

/* ---- open, close ---- */

tn_rc tn_letter_file_open(struct tn_letter_file *letters, const char *path, struct tn_err *err)
{
    *letters = (struct tn_letter_file){.path = path};
    if (!path) {
        letters->box = (struct tn_letter_box){.put = put_message, .commit = commit_messages};
        return TN_OK;
    }
    letters->box = (struct tn_letter_box){.put = put_line, .commit = commit_lines};
    letters->file = fopen(path, "a+e");
    letters->file = letters->file ? letters->file : fopen(path, "ae"); /* what can't be read */
    return letters->file ? end_line(letters, err) : failed(letters, err);
}

tn_rc tn_letter_file_close(struct tn_letter_file *letters, struct tn_err *err)
{
    bool good = !letters->file || fclose(letters->file) == 0;
    letters->file = NULL;
    return good ? TN_OK : failed(letters, err);
}
