#include "app/output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "schema/value.h"

enum { LINE_SIZE = 96 * 1024, HELD_SIZE = 64 * 1024, WIDTH_MAX = 60 };

static const char NULL_TEXT[] = "NULL";

tn_rc tn_output_open(struct tn_output *output, const char *const *names, uint32_t count,
                     struct tn_arena *arena, struct tn_err *err)
{
    *output = (struct tn_output){.format = tn_common.format, .names = names, .count = count};
    if (output->format == TN_FORMAT_AUTO) {
        output->format = isatty(STDOUT_FILENO) ? TN_FORMAT_TABLE : TN_FORMAT_JSON;
    }
    void *memory;
    tn_rc rc = tn_arena_need(arena, LINE_SIZE + HELD_SIZE + count * sizeof(uint32_t) + 16, "output",
                             &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    output->widths = memory;
    unsigned char *at = (unsigned char *)(output->widths + count);
    tn_buf_init(&output->line, at, LINE_SIZE);
    tn_buf_init(&output->held, at + LINE_SIZE, HELD_SIZE);
    return TN_OK;
}

tn_rc tn_output_failed(struct tn_err *err)
{
    int os = errno;
    return tn_err_set(err, os == ENOSPC ? TN_FULL : TN_IO, os, "write standard output: %s",
                      strerror(os));
}

static void send_line(struct tn_output *output)
{
    size_t size = output->line.size;
    if (fwrite(output->line.data, 1, size, stdout) != size && output->failure == 0) {
        output->failure = errno;
    }
    output->line.size = 0;
}

static tn_rc put_line(struct tn_output *output, struct tn_err *err)
{
    if (output->line.overflow) {
        return tn_err_set(err, TN_AGAIN, 0, "a row of more than %d bytes of text", LINE_SIZE);
    }
    send_line(output);
    errno = output->failure;
    return output->failure == 0 ? TN_OK : tn_output_failed(err);
}

/* At the line's end, of which what no longer fits the buffer goes out before. */
static void put_bytes(struct tn_output *output, struct tn_bytes bytes)
{
    struct tn_buf *line = &output->line;
    while (bytes.size > 0) {
        size_t size = line->capacity - line->size;
        size = size < bytes.size ? size : bytes.size;
        tn_buf_append(line, bytes.data, size);
        bytes.data += size;
        bytes.size -= size;
        if (line->size == line->capacity) {
            send_line(output);
        }
    }
}

static void put_text(struct tn_output *output, const char *text)
{
    put_bytes(output, tn_bytes_of(text));
}

static void put_hex(struct tn_output *output, struct tn_bytes bytes)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes.size; i++) {
        unsigned char pair[] = {(unsigned char)digits[bytes.data[i] >> 4],
                                (unsigned char)digits[bytes.data[i] & 15]};
        put_bytes(output, (struct tn_bytes){pair, sizeof pair});
    }
}

tn_rc tn_output_json(struct tn_output *output, struct tn_bytes json, bool ends, struct tn_err *err)
{
    bool put = fwrite(json.data, 1, json.size, stdout) == json.size;
    if (ends) {
        output->rows++;
        put = fputc('\n', stdout) != EOF && put;
    }
    return put ? TN_OK : tn_output_failed(err);
}

/* ---- csv: RFC 4180; NULL is nothing, an empty text is "" ---- */

static bool needs_quotes(struct tn_bytes text)
{
    bool quote = text.size == 0;
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = text.data[i];
        quote = quote || c == ',' || c == '"' || c == '\n' || c == '\r';
    }
    return quote;
}

static void csv_cell(struct tn_output *output, const struct tn_cell *cell)
{
    struct tn_bytes text = cell->text;
    if (cell->hex) {
        put_hex(output, text);
        return;
    }
    if (!needs_quotes(text)) {
        put_bytes(output, text);
        return;
    }
    put_text(output, "\"");
    while (text.size > 0) {
        const unsigned char *quote = memchr(text.data, '"', text.size);
        size_t size = quote ? (size_t)(quote - text.data) + 1 : text.size;
        put_bytes(output, (struct tn_bytes){text.data, size});
        put_text(output, quote ? "\"" : "");
        text.data += size;
        text.size -= size;
    }
    put_text(output, "\"");
}

static tn_rc csv_row(struct tn_output *output, const struct tn_cell *cells, struct tn_err *err)
{
    if (!output->heading_done) {
        output->heading_done = true;
        for (uint32_t i = 0; i < output->count; i++) {
            put_text(output, i ? "," : "");
            csv_cell(output, &(struct tn_cell){.text = tn_bytes_of(output->names[i])});
        }
        put_text(output, "\n");
    }
    for (uint32_t i = 0; cells && i < output->count; i++) {
        put_text(output, i ? "," : "");
        if (!cells[i].null) {
            csv_cell(output, &cells[i]);
        }
    }
    if (cells) {
        put_text(output, "\n");
    }
    return put_line(output, err);
}

static tn_rc json_row(struct tn_output *output, const struct tn_cell *cells, struct tn_err *err)
{
    for (uint32_t i = 0; i < output->count; i++) {
        tn_buf_byte(&output->line, i ? ',' : '{');
        tn_json_string(&output->line, tn_bytes_of(output->names[i]));
        tn_buf_byte(&output->line, ':');
        if (cells[i].null) {
            tn_buf_text(&output->line, "null");
        } else if (cells[i].json.data) {
            tn_buf_append(&output->line, cells[i].json.data, cells[i].json.size);
        } else {
            tn_json_string(&output->line, cells[i].text);
        }
    }
    tn_buf_text(&output->line, "}\n");
    return put_line(output, err);
}

/* ---- a table ---- */

static uint32_t code_points(struct tn_bytes text)
{
    uint32_t count = 0;
    for (size_t i = 0; i < text.size; i++) {
        count += (text.data[i] & 0xC0) != 0x80;
    }
    return count;
}

static struct tn_bytes shown(const struct tn_cell *cell)
{
    return cell->null ? tn_bytes_of(NULL_TEXT) : cell->text;
}

static void widen(struct tn_output *output, uint32_t column, struct tn_bytes text)
{
    uint32_t width = code_points(text);
    width = width < WIDTH_MAX ? width : WIDTH_MAX;
    if (width > output->widths[column]) {
        output->widths[column] = width;
    }
}

static void pad(struct tn_output *output, uint32_t column, uint32_t size)
{
    bool last = column + 1 == output->count;
    uint32_t width = size > output->widths[column] ? size : output->widths[column];
    for (; !last && size < width + 2; size++) {
        put_text(output, " ");
    }
    if (last) {
        put_text(output, "\n");
    }
}

static void padded(struct tn_output *output, uint32_t column, struct tn_bytes text)
{
    put_bytes(output, text);
    pad(output, column, code_points(text));
}

static tn_rc release_held(struct tn_output *output, struct tn_err *err)
{
    if (output->heading_done) {
        return TN_OK;
    }
    output->heading_done = true;
    for (uint32_t i = 0; i < output->count; i++) {
        widen(output, i, tn_bytes_of(output->names[i]));
    }
    for (uint32_t i = 0; i < output->count; i++) {
        padded(output, i, tn_bytes_of(output->names[i]));
    }
    tn_rc rc = put_line(output, err);
    const unsigned char *at = output->held.data;
    for (uint32_t row = 0; rc == TN_OK && row < output->held_rows; row++) {
        for (uint32_t i = 0; i < output->count; i++) {
            struct tn_bytes text = {at + 4, tn_load_u32(at)};
            padded(output, i, text);
            at += 4 + text.size;
        }
        rc = put_line(output, err);
    }
    return rc;
}

static bool hold(struct tn_output *output, const struct tn_cell *cells)
{
    size_t before = output->held.size;
    for (uint32_t i = 0; i < output->count; i++) {
        output->held.overflow = output->held.overflow || cells[i].hex;
        unsigned char size[4];
        struct tn_bytes text = shown(&cells[i]);
        tn_store_u32(size, (uint32_t)text.size);
        tn_buf_append(&output->held, size, sizeof size);
        tn_buf_append(&output->held, text.data, text.size);
    }
    if (output->held.overflow) {
        output->held.size = before;
        return false;
    }
    for (uint32_t i = 0; i < output->count; i++) {
        widen(output, i, shown(&cells[i]));
    }
    output->held_rows++;
    return true;
}

static tn_rc table_row(struct tn_output *output, const struct tn_cell *cells, struct tn_err *err)
{
    if (!output->heading_done) {
        if (hold(output, cells)) {
            return TN_OK;
        }
        tn_rc rc = release_held(output, err);
        if (rc != TN_OK) {
            return rc;
        }
    }
    for (uint32_t i = 0; i < output->count; i++) {
        if (cells[i].hex && !cells[i].null) {
            put_hex(output, cells[i].text);
            pad(output, i, 2 * (uint32_t)cells[i].text.size);
        } else {
            padded(output, i, shown(&cells[i]));
        }
    }
    return put_line(output, err);
}

tn_rc tn_output_row(struct tn_output *output, const struct tn_cell *cells, struct tn_err *err)
{
    output->rows++;
    switch (output->format) {
    case TN_FORMAT_JSON:
        return json_row(output, cells, err);
    case TN_FORMAT_CSV:
        return csv_row(output, cells, err);
    case TN_FORMAT_AUTO:
    case TN_FORMAT_TABLE:
        break;
    }
    return table_row(output, cells, err);
}

tn_rc tn_output_flush(struct tn_output *output, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    if (output->format == TN_FORMAT_TABLE) {
        rc = release_held(output, err);
    } else if (output->format == TN_FORMAT_CSV && !output->heading_done) {
        rc = csv_row(output, NULL, err);
    }
    if (rc == TN_OK && fflush(stdout) != 0) {
        rc = tn_output_failed(err);
    }
    return rc;
}

tn_rc tn_output_close(struct tn_output *output, struct tn_err *err)
{
    return tn_output_flush(output, err);
}
