#include "file/meta_private.h"

static void encode_texts(const struct tn_texts *texts, struct tn_buf *buf)
{
    if (texts->count > 0) {
        tn_avro_write_long(buf, texts->count);
        for (uint32_t i = 0; i < texts->count; i++) {
            tn_avro_write_bytes(buf, tn_bytes_of(texts->items[i]));
        }
    }
    tn_buf_byte(buf, 0);
}

/* The null counts are never a null union: Java 1.3.1 fails on it. An empty array says the same. */
static void encode_stats(const struct tn_stats *stats, struct tn_buf *buf)
{
    tn_avro_write_bytes(buf, stats->min);
    tn_avro_write_bytes(buf, stats->max);
    tn_avro_write_long(buf, 1);
    if (stats->null_count_count > 0) {
        tn_avro_write_long(buf, stats->null_count_count);
        for (uint32_t i = 0; i < stats->null_count_count; i++) {
            bool known = stats->null_counts[i] >= 0;
            tn_avro_write_long(buf, known ? 1 : 0);
            if (known) {
                tn_avro_write_long(buf, stats->null_counts[i]);
            }
        }
    }
    tn_buf_byte(buf, 0);
}

bool tn_member_present(const struct tn_member *m, const void *at)
{
    switch (m->kind) {
    case TN_MEMBER_OPT_I64:
    case TN_MEMBER_OPT_I32:
        return ((const struct tn_json_i64 *)at)->present;
    case TN_MEMBER_OPT_BYTES:
        return ((const struct tn_bytes *)at)->data != NULL;
    case TN_MEMBER_OPT_TEXT:
        return *(const char *const *)at != NULL;
    case TN_MEMBER_OPT_TEXTS:
        return ((const struct tn_texts *)at)->present;
    case TN_MEMBER_VERSION:
    case TN_MEMBER_I32:
    case TN_MEMBER_I64:
    case TN_MEMBER_COUNT:
    case TN_MEMBER_NAME:
    case TN_MEMBER_TEXT:
    case TN_MEMBER_BYTES:
    case TN_MEMBER_STATS:
    case TN_MEMBER_FILES:
    case TN_MEMBER_FILE:
        break;
    }
    return true;
}

static void encode_value(const struct tn_member *m, const void *at, struct tn_buf *buf)
{
    switch (m->kind) {
    case TN_MEMBER_VERSION:
        tn_avro_write_long(buf, (int64_t)m->offset);
        break;
    case TN_MEMBER_I32:
        tn_avro_write_long(buf, *(const int32_t *)at);
        break;
    case TN_MEMBER_I64:
    case TN_MEMBER_COUNT:
        tn_avro_write_long(buf, *(const int64_t *)at);
        break;
    case TN_MEMBER_OPT_I64:
    case TN_MEMBER_OPT_I32:
        tn_avro_write_long(buf, ((const struct tn_json_i64 *)at)->value);
        break;
    case TN_MEMBER_NAME:
    case TN_MEMBER_TEXT:
    case TN_MEMBER_OPT_TEXT:
        tn_avro_write_bytes(buf, tn_bytes_of(*(const char *const *)at));
        break;
    case TN_MEMBER_BYTES:
    case TN_MEMBER_OPT_BYTES:
        tn_avro_write_bytes(buf, *(const struct tn_bytes *)at);
        break;
    case TN_MEMBER_STATS:
        encode_stats(at, buf);
        break;
    case TN_MEMBER_FILES:
    case TN_MEMBER_OPT_TEXTS:
        encode_texts(at, buf);
        break;
    case TN_MEMBER_FILE: /* tn_entry_encode goes on with the file's own members */
        break;
    }
}

static void encode_members(struct tn_members members, const void *record, struct tn_buf *buf)
{
    for (uint32_t i = 0; i < members.count; i++) {
        const struct tn_member *m = &members.items[i];
        const void *at = (const unsigned char *)record + m->offset;
        bool present = tn_member_present(m, at);
        if (m->kind >= TN_MEMBER_OPT_I64) {
            tn_avro_write_long(buf, present ? 1 : 0);
        }
        if (present) {
            encode_value(m, at, buf);
        }
    }
}

void tn_entry_encode(const struct tn_entry *entry, struct tn_buf *buf)
{
    encode_members(tn_entry_members, entry, buf);
    encode_members(tn_file_members, &entry->file, buf);
}

void tn_manifest_meta_encode(const struct tn_manifest_meta *meta, struct tn_buf *buf)
{
    encode_members(tn_list_members, meta, buf);
}
