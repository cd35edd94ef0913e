#include "base/bytes.h"

#include <stdarg.h>
#include <stdio.h>

bool tn_bytes_equal(struct tn_bytes a, struct tn_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

int tn_bytes_compare(struct tn_bytes a, struct tn_bytes b)
{
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size > 0 ? memcmp(a.data, b.data, size) : 0;
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

void tn_buf_init(struct tn_buf *buf, void *data, size_t capacity)
{
    *buf = (struct tn_buf){.data = data, .capacity = capacity};
}

void tn_buf_append(struct tn_buf *buf, const void *data, size_t size)
{
    if (buf->overflow || size > buf->capacity - buf->size) {
        buf->overflow = true;
        return;
    }
    if (size > 0) { /* memcpy takes no NULL, not even for nothing */
        memcpy(buf->data + buf->size, data, size);
        buf->size += size;
    }
}

void tn_buf_byte(struct tn_buf *buf, unsigned char byte)
{
    tn_buf_append(buf, &byte, 1);
}

void tn_buf_text(struct tn_buf *buf, const char *text)
{
    tn_buf_append(buf, text, strlen(text));
}

/* vsnprintf wants room for a final zero, which a buffer doesn't keep: a text that fits but for that
 * zero overflows, too. */
void tn_buf_format(struct tn_buf *buf, const char *format, ...)
{
    if (buf->overflow) {
        return;
    }
    size_t room = buf->capacity - buf->size;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(room > 0 ? (char *)buf->data + buf->size : NULL, room, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= room) {
        buf->overflow = true;
        return;
    }
    buf->size += (size_t)length;
}
