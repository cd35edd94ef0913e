#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"

void tn_log_init(struct tn_log *log, void *memory, size_t size, tn_log_sink_fn *sink, void *user)
{
    TN_CHECK(size >= TN_LOG_LINE_SIZE);
    *log = (struct tn_log){
        .ring = memory, .ring_size = size, .most = TN_LOG_INFO, .sink = sink, .user = user};
}

const char *tn_log_level_text(enum tn_log_level level)
{
    static const char *const texts[] = {"error", "warn", "info", "debug"};
    return texts[level];
}

static void append(struct tn_log *log, const char *line, size_t size)
{
    size_t at = (size_t)(log->written % log->ring_size);
    size_t first = size < log->ring_size - at ? size : log->ring_size - at;
    memcpy(log->ring + at, line, first);
    memcpy(log->ring, line + first, size - first);
    log->written += size;
}

/* `length` is what snprintf wanted to write; the newline and the zero always find room. */
static size_t end_line(char line[TN_LOG_LINE_SIZE], int length)
{
    size_t size = length < 0 ? 0 : (size_t)length;
    if (size > TN_LOG_LINE_SIZE - 2) {
        size = TN_LOG_LINE_SIZE - 2;
    }
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f) {
            line[i] = ' ';
        }
    }
    line[size] = '\n';
    line[size + 1] = 0;
    return size + 1;
}

void tn_log_event(struct tn_log *log, enum tn_log_level level, const char *module,
                  const char *format, ...)
{
    log->count[level]++;
    if (level > log->most) {
        return;
    }
    char line[TN_LOG_LINE_SIZE];
    int length = snprintf(line, sizeof line, "%s %s ", tn_log_level_text(level), module);
    if (length >= 0 && (size_t)length < sizeof line) {
        va_list args;
        va_start(args, format);
        int more = vsnprintf(line + length, sizeof line - (size_t)length, format, args);
        va_end(args);
        length += more > 0 ? more : 0;
    }
    size_t size = end_line(line, length);
    append(log, line, size);
    if (log->sink) {
        log->sink(log->user, level, line, size);
    }
}

void tn_log_err(struct tn_log *log, enum tn_log_level level, const char *module,
                const struct tn_err *err)
{
    char text[TN_ERR_TEXT_SIZE];
    memcpy(text, err->text, sizeof text);
    for (char *at = strchr(text, '"'); at; at = strchr(at, '"')) {
        *at = '\'';
    }
    tn_log_event(log, level, module, "rc=%d text=\"%s\"", err->code, text);
}

static unsigned char byte_at(const struct tn_log *log, uint64_t position)
{
    return log->ring[position % log->ring_size];
}

uint64_t tn_log_read(const struct tn_log *log, uint64_t since, struct tn_buf *out)
{
    uint64_t oldest = log->written > log->ring_size ? log->written - log->ring_size : 0;
    uint64_t start = since > log->written ? log->written : since;
    if (start < oldest) { /* behind the line that lost its head */
        start = oldest;
        while (start < log->written && byte_at(log, start) != '\n') {
            start++;
        }
        start += start < log->written;
    }
    uint64_t end = start; /* behind the last line that fits */
    for (uint64_t at = start; at < log->written && at - start < out->capacity - out->size; at++) {
        end = byte_at(log, at) == '\n' ? at + 1 : end;
    }
    for (uint64_t at = start; at < end; at++) {
        tn_buf_byte(out, byte_at(log, at));
    }
    return end;
}
