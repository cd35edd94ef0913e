/* bytes: views on memory, buffers that know when they are full, and little-endian loads and stores.
 *
 * A `tn_bytes` is a view: it owns nothing, and lives as long as what it points into. A `tn_buf` is
 * appended to; when it is full it stays full (`overflow`), so that a writer of many small parts
 * checks once, at the end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct tn_bytes {
    const unsigned char *data;
    size_t size; /* bytes */
};

/* Owned by whoever gave the memory at `data`. */
struct tn_buf {
    unsigned char *data;
    size_t size;     /* bytes used */
    size_t capacity; /* bytes at data */
    bool overflow;   /* something did not fit; the contents are not to be used */
};

static inline struct tn_bytes tn_bytes_of(const char *text)
{
    return (struct tn_bytes){(const unsigned char *)text, strlen(text)};
}

static inline struct tn_bytes tn_buf_bytes(const struct tn_buf *buf)
{
    return (struct tn_bytes){buf->data, buf->size};
}

bool tn_bytes_equal(struct tn_bytes a, struct tn_bytes b);

/* Unsigned bytes, then length: the order of Paimon's strings and binaries. <0, 0 or >0. */
int tn_bytes_compare(struct tn_bytes a, struct tn_bytes b);

void tn_buf_init(struct tn_buf *buf, void *data, size_t capacity);
void tn_buf_append(struct tn_buf *buf, const void *data, size_t size);
void tn_buf_byte(struct tn_buf *buf, unsigned char byte);
void tn_buf_text(struct tn_buf *buf, const char *text); /* without its final zero */
void tn_buf_format(struct tn_buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline uint16_t tn_load_u16(const unsigned char *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t tn_load_u32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t tn_load_u64(const unsigned char *at)
{
    return (uint64_t)tn_load_u32(at) | (uint64_t)tn_load_u32(at + 4) << 32;
}

static inline uint32_t tn_load_u32_be(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | (uint32_t)at[3];
}

static inline uint64_t tn_load_u64_be(const unsigned char *at)
{
    return (uint64_t)tn_load_u32_be(at) << 32 | (uint64_t)tn_load_u32_be(at + 4);
}

static inline void tn_store_u16(unsigned char *at, uint16_t value)
{
    at[0] = (unsigned char)value;
    at[1] = (unsigned char)(value >> 8);
}

static inline void tn_store_u32(unsigned char *at, uint32_t value)
{
    at[0] = (unsigned char)value;
    at[1] = (unsigned char)(value >> 8);
    at[2] = (unsigned char)(value >> 16);
    at[3] = (unsigned char)(value >> 24);
}

static inline void tn_store_u64(unsigned char *at, uint64_t value)
{
    tn_store_u32(at, (uint32_t)value);
    tn_store_u32(at + 4, (uint32_t)(value >> 32));
}

static inline void tn_store_u32_be(unsigned char *at, uint32_t value)
{
    at[0] = (unsigned char)(value >> 24);
    at[1] = (unsigned char)(value >> 16);
    at[2] = (unsigned char)(value >> 8);
    at[3] = (unsigned char)value;
}
