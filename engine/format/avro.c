#include "format/avro.h"

#include <inttypes.h>

static const unsigned char magic[4] = {'O', 'b', 'j', 1};
static const char schema_key[] = "avro.schema";
static const char codec_key[] = "avro.codec";

/* ---- the head of a container ---- */

/* A cursor that stopped at the end of its bytes asks for more of them; elsewhere the bytes are
 * wrong. */
static tn_rc head_failed(const struct tn_avro_cursor *c, struct tn_bytes bytes, struct tn_err *err)
{
    size_t at = (size_t)(c->at - bytes.data);
    if (c->at != c->end) {
        return tn_err_set(err, TN_CORRUPT, 0, "avro header: no number or length at byte %zu", at);
    }
    if (bytes.size >= TN_AVRO_HEADER_MAX) {
        return tn_err_set(err, TN_CORRUPT, 0, "avro header: more than %d bytes",
                          TN_AVRO_HEADER_MAX);
    }
    return tn_err_set(err, TN_AGAIN, 0, "avro header: needs more than %zu bytes", bytes.size);
}

/* Like tn_avro_bytes, but a length that only reaches past the end so far leaves the cursor there.
 */
static struct tn_bytes head_bytes(struct tn_avro_cursor *c)
{
    int64_t size = tn_avro_long(c);
    if (c->failed || size < 0 || size > TN_AVRO_HEADER_MAX) {
        c->failed = true;
        return (struct tn_bytes){c->end, 0};
    }
    if (size > c->end - c->at) {
        c->failed = true;
        c->at = c->end;
        return (struct tn_bytes){c->end, 0};
    }
    struct tn_bytes bytes = {c->at, (size_t)size};
    c->at += size;
    return bytes;
}

static tn_rc head_entry(struct tn_avro_cursor *c, struct tn_avro_header *header, struct tn_err *err)
{
    struct tn_bytes key = head_bytes(c);
    struct tn_bytes value = c->failed ? key : head_bytes(c);
    if (c->failed) {
        return TN_OK; /* the caller sees it */
    }
    if (tn_bytes_equal(key, tn_bytes_of(schema_key))) {
        header->schema = value;
    } else if (tn_bytes_equal(key, tn_bytes_of(codec_key))) {
        return tn_codec_parse(value, &header->codec, err);
    }
    return TN_OK;
}

/* The metadata map: blocks of entries, until one of none. Each entry takes bytes, so the bytes
 * bound it. */
static tn_rc head_map(struct tn_avro_cursor *c, struct tn_avro_header *header, struct tn_err *err)
{
    while (!c->failed) {
        int64_t count = tn_avro_long(c);
        if (c->failed || count == 0) {
            break;
        }
        if (count < 0) { /* the block's size follows; nobody needs it here */
            (void)tn_avro_long(c);
            count = count == INT64_MIN ? INT64_MAX : -count;
        }
        for (; count > 0 && !c->failed; count--) {
            tn_rc rc = head_entry(c, header, err);
            if (rc) {
                return rc;
            }
        }
    }
    return TN_OK;
}

tn_rc tn_avro_header_decode(struct tn_bytes bytes, struct tn_avro_header *header,
                            struct tn_err *err)
{
    size_t known = bytes.size < sizeof magic ? bytes.size : sizeof magic;
    if (known > 0 && memcmp(bytes.data, magic, known) != 0) {
        return tn_err_set(err, TN_CORRUPT, 0, "avro header: byte 0 is not \"Obj\" 1");
    }
    if (known < sizeof magic) {
        return tn_err_set(err, TN_AGAIN, 0, "avro header: needs more than %zu bytes", known);
    }
    struct tn_avro_cursor c = {bytes.data + known, bytes.data + bytes.size, false};
    struct tn_avro_header found = {.codec = TN_CODEC_ID_NULL};
    tn_rc rc = head_map(&c, &found, err);
    if (rc) {
        return rc;
    }
    if (!c.failed && c.end - c.at < (ptrdiff_t)sizeof found.sync) {
        c.failed = true;
        c.at = c.end;
    }
    if (c.failed) {
        return head_failed(&c, bytes, err);
    }
    if (found.schema.size == 0) {
        return tn_err_set(err, TN_CORRUPT, 0, "avro header: no %s", schema_key);
    }
    memcpy(found.sync, c.at, sizeof found.sync);
    found.size = (uint32_t)(c.at - bytes.data) + (uint32_t)sizeof found.sync;
    *header = found;
    return TN_OK;
}

void tn_avro_header_encode(struct tn_bytes schema, enum tn_codec_id codec,
                           const unsigned char sync[16], struct tn_buf *buf)
{
    tn_buf_append(buf, magic, sizeof magic);
    tn_avro_write_long(buf, 2);
    tn_avro_write_bytes(buf, tn_bytes_of(schema_key));
    tn_avro_write_bytes(buf, schema);
    tn_avro_write_bytes(buf, tn_bytes_of(codec_key));
    tn_avro_write_bytes(buf, tn_bytes_of(tn_codec_name(codec)));
    tn_avro_write_long(buf, 0);
    tn_buf_append(buf, sync, 16);
}

tn_rc tn_avro_block_decode(struct tn_bytes bytes, int64_t *row_count, int64_t *block_size,
                           uint32_t *size, struct tn_err *err)
{
    enum { HEAD_MAX = 20 }; /* two varints of ten bytes */
    struct tn_avro_cursor c = {bytes.data, bytes.data + bytes.size, false};
    int64_t count = tn_avro_long(&c);
    int64_t length = tn_avro_long(&c);
    if (c.failed && c.at == c.end && bytes.size < HEAD_MAX) {
        return tn_err_set(err, TN_AGAIN, 0, "avro block: needs more than %zu bytes", bytes.size);
    }
    if (c.failed || count < 0 || length < 0) {
        return tn_err_set(err, TN_CORRUPT, 0, "avro block: bad row count or size");
    }
    *row_count = count;
    *block_size = length;
    *size = (uint32_t)(c.at - bytes.data);
    return TN_OK;
}

/* ---- values ---- */

/* A record, array or map on the way through a value; nested ones stand above it. */
struct frame {
    const struct tn_avro_type *type;
    uint64_t left;              /* fields, or items of the array block */
    const unsigned char *start; /* of the last item */
};

static void skip_bytes(struct tn_avro_cursor *c, uint64_t size)
{
    if (c->failed || size > (uint64_t)(c->end - c->at)) {
        c->failed = true;
        return;
    }
    c->at += size;
}

static void skip_scalar(struct tn_avro_cursor *c, const struct tn_avro_type *type)
{
    switch (type->kind) {
    case TN_AVRO_BOOLEAN:
        skip_bytes(c, 1);
        return;
    case TN_AVRO_INT:
    case TN_AVRO_LONG:
    case TN_AVRO_ENUM:
        (void)tn_avro_varint(c);
        return;
    case TN_AVRO_FLOAT:
        skip_bytes(c, 4);
        return;
    case TN_AVRO_DOUBLE:
        skip_bytes(c, 8);
        return;
    case TN_AVRO_BYTES:
    case TN_AVRO_STRING:
        (void)tn_avro_bytes(c);
        return;
    case TN_AVRO_FIXED:
        skip_bytes(c, type->fixed_size);
        return;
    case TN_AVRO_NULL:
    case TN_AVRO_ARRAY:
    case TN_AVRO_MAP:
    case TN_AVRO_RECORD:
    case TN_AVRO_UNION:
        return;
    }
}

/* What stands here after branch numbers are read: NULL for no value. A union in a union is no Avro.
 */
static const struct tn_avro_type *branch_of(struct tn_avro_cursor *c,
                                            const struct tn_avro_type *type)
{
    if (type->kind == TN_AVRO_UNION) {
        int64_t branch = tn_avro_long(c);
        if (c->failed || branch < 0 || branch >= type->child_count ||
            type->children[branch].kind == TN_AVRO_UNION) {
            c->failed = true;
            return NULL;
        }
        type = &type->children[branch];
    }
    return tn_avro_present(c, type) ? type : NULL;
}

/* Begins the next block of an array or map that holds items; false at the end. A block with its
 * size in bytes is passed at once. */
static bool next_block(struct tn_avro_cursor *c, struct frame *frame)
{
    int64_t count = tn_avro_long(c);
    while (!c->failed && count < 0) {
        int64_t size = tn_avro_long(c);
        if (size < 0) {
            c->failed = true;
        } else {
            skip_bytes(c, (uint64_t)size);
        }
        count = tn_avro_long(c);
    }
    frame->left = c->failed ? 0 : (uint64_t)count;
    frame->start = NULL;
    return frame->left > 0;
}

/* The next value inside a frame, or NULL when it is through. */
static const struct tn_avro_type *next_in(struct tn_avro_cursor *c, struct frame *frame)
{
    const struct tn_avro_type *type = frame->type;
    if (type->kind == TN_AVRO_RECORD) {
        return frame->left > 0 ? &type->children[type->child_count - frame->left--] : NULL;
    }
    /* An item of no bytes is followed by items of no bytes, however many the block claims. */
    bool through = frame->left == 0 || frame->start == c->at;
    if (through && !next_block(c, frame)) {
        return NULL;
    }
    frame->left--;
    frame->start = c->at;
    if (type->kind == TN_AVRO_MAP) {
        (void)tn_avro_bytes(c);
    }
    return &type->children[0];
}

static bool is_nest(const struct tn_avro_type *type)
{
    return type->kind == TN_AVRO_RECORD || type->kind == TN_AVRO_ARRAY || type->kind == TN_AVRO_MAP;
}

void tn_avro_skip(struct tn_avro_cursor *c, const struct tn_avro_type *type)
{
    struct frame frames[TN_AVRO_DEPTH_MAX];
    uint32_t depth = 0;
    while (type) {
        type = branch_of(c, type);
        if (type && !is_nest(type)) {
            skip_scalar(c, type);
        } else if (type && depth == TN_AVRO_DEPTH_MAX) {
            c->failed = true;
        } else if (type) {
            uint64_t left = type->kind == TN_AVRO_RECORD ? type->child_count : 0;
            frames[depth++] = (struct frame){.type = type, .left = left};
        }
        type = NULL;
        while (!c->failed && !type && depth > 0) {
            type = next_in(c, &frames[depth - 1]);
            depth -= type ? 0 : 1;
        }
    }
}

void tn_avro_write_long(struct tn_buf *buf, int64_t value)
{
    unsigned char bytes[10];
    unsigned char *end = tn_avro_put_long(bytes, value);
    tn_buf_append(buf, bytes, (size_t)(end - bytes));
}

void tn_avro_write_bytes(struct tn_buf *buf, struct tn_bytes bytes)
{
    tn_avro_write_long(buf, (int64_t)bytes.size);
    tn_buf_append(buf, bytes.data, bytes.size);
}
