#include "upload/committable.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "base/check.h"

/* Its line has always the same size, so it is written when what it tells is known. */
#define MAGIC "tarn-committable "
enum { VERSION = 1, LINE_SIZE = 46, RECORD_SIZE_MIN = 20 /* bytes; a guess from below */ };

struct header {
    const char *table;
    int64_t schema_id;
    const char *user;
    int64_t identifier;
    int64_t first_id;
    int64_t last_id;
    int64_t row_count;
    int64_t added_count;
    int64_t changelog_count;
    struct tn_json_i64 watermark;
};

#define MEMBER(key, kind, need, name)                                      \
    {                                                                      \
        key, TN_JSON_##kind, TN_JSON_##need, offsetof(struct header, name) \
    }

static const struct tn_json_field fields[] = {
    MEMBER("table", TEXT, REQUIRED, table),
    MEMBER("schemaId", I64, REQUIRED, schema_id),
    MEMBER("user", TEXT, REQUIRED, user),
    MEMBER("identifier", I64, REQUIRED, identifier),
    MEMBER("firstSnapshot", I64, REQUIRED, first_id),
    MEMBER("lastSnapshot", I64, REQUIRED, last_id),
    MEMBER("rows", I64, REQUIRED, row_count),
    MEMBER("files", I64, REQUIRED, added_count),
    MEMBER("changelogFiles", I64, REQUIRED, changelog_count),
    MEMBER("watermark", I64, OPTIONAL, watermark),
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

/* ---- writing ---- */

static void put_entries(const struct tn_entry *entries, uint32_t count, struct tn_buf *buf)
{
    for (uint32_t i = 0; i < count; i++) {
        tn_entry_encode(&entries[i], buf);
    }
}

static void put_line(unsigned char *at, size_t header_size, size_t records_size, uint32_t crc)
{
    char line[LINE_SIZE + 1];
    int size = snprintf(line, sizeof line, MAGIC "%d %08zx %08zx %08" PRIx32 "\n", VERSION,
                        header_size, records_size, crc);
    TN_CHECK(size == LINE_SIZE);
    memcpy(at, line, LINE_SIZE);
}

void tn_committable_begin(const struct tn_committable *committable, struct tn_buf *buf,
                          struct tn_committable_place *place)
{
    static const char blank[LINE_SIZE];
    struct header header = {.table = committable->table,
                            .schema_id = committable->schema_id,
                            .user = committable->user,
                            .identifier = committable->identifier,
                            .first_id = committable->first_id,
                            .last_id = committable->last_id,
                            .row_count = committable->row_count,
                            .added_count = committable->added_count,
                            .changelog_count = committable->changelog_count,
                            .watermark = committable->watermark};
    place->start = buf->size;
    tn_buf_append(buf, blank, sizeof blank);
    tn_json_write(&header, fields, FIELDS, buf);
    place->records = buf->size;
}

void tn_committable_finish(const struct tn_committable_place *place, struct tn_buf *buf)
{
    if (!buf->overflow) {
        size_t first = place->start + LINE_SIZE;
        struct tn_bytes all = {buf->data + first, buf->size - first};
        put_line(buf->data + place->start, place->records - first, buf->size - place->records,
                 tn_hash_crc32(all));
    }
}

void tn_committable_encode(const struct tn_committable *committable, struct tn_buf *buf)
{
    struct tn_committable_place place;
    tn_committable_begin(committable, buf, &place);
    put_entries(committable->added, committable->added_count, buf);
    put_entries(committable->changelog, committable->changelog_count, buf);
    tn_committable_finish(&place, buf);
}

/* ---- reading ---- */

struct parts {
    struct tn_bytes header;
    struct tn_bytes records;
};

/* Eight digits and what must stand behind them. */
static bool take_number(const unsigned char **at, unsigned char end, uint32_t *value)
{
    uint32_t number = 0;
    for (int i = 0; i < 8; i++) {
        unsigned char c = *(*at)++;
        if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) {
            return false;
        }
        number = number << 4 | (c <= '9' ? c - (uint32_t)'0' : c - (uint32_t)'a' + 10);
    }
    *value = number;
    return *(*at)++ == end;
}

static tn_rc split(struct tn_bytes bytes, struct parts *parts, struct tn_err *err)
{
    static const char begin[] = MAGIC "1 ";
    uint32_t header;
    uint32_t records;
    uint32_t crc;
    if (bytes.size < LINE_SIZE || memcmp(bytes.data, MAGIC, strlen(MAGIC)) != 0) {
        return tn_err_set(err, TN_CORRUPT, 0, "no committable: it begins otherwise");
    }
    if (memcmp(bytes.data, begin, strlen(begin)) != 0) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "a committable of a later version");
    }
    const unsigned char *at = bytes.data + strlen(begin);
    if (!take_number(&at, ' ', &header) || !take_number(&at, ' ', &records) ||
        !take_number(&at, '\n', &crc)) {
        return tn_err_set(err, TN_CORRUPT, 0, "no committable: its first line has no sizes");
    }
    struct tn_bytes rest = {bytes.data + LINE_SIZE, bytes.size - LINE_SIZE};
    if ((uint64_t)header + records != rest.size || tn_hash_crc32(rest) != crc) {
        return tn_err_set(err, TN_CORRUPT, 0, "a committable that is torn: %zu bytes, of %" PRIu64,
                          bytes.size, LINE_SIZE + (uint64_t)header + records);
    }
    parts->header = (struct tn_bytes){rest.data, header};
    parts->records = (struct tn_bytes){rest.data + header, records};
    return TN_OK;
}

static tn_rc take_header(const struct header *header, const struct parts *parts,
                         struct tn_committable *committable, struct tn_err *err)
{
    int64_t most = (int64_t)(parts->records.size / RECORD_SIZE_MIN);
    if (header->added_count < 0 || header->changelog_count < 0 || header->added_count > most ||
        header->changelog_count > most - header->added_count) {
        return tn_err_set(err, TN_CORRUPT, 0, "%" PRId64 " and %" PRId64 " files in %zu bytes",
                          header->added_count, header->changelog_count, parts->records.size);
    }
    *committable = (struct tn_committable){.table = header->table,
                                           .schema_id = header->schema_id,
                                           .user = header->user,
                                           .identifier = header->identifier,
                                           .first_id = header->first_id,
                                           .last_id = header->last_id,
                                           .row_count = header->row_count,
                                           .watermark = header->watermark,
                                           .added_count = (uint32_t)header->added_count,
                                           .changelog_count = (uint32_t)header->changelog_count};
    return TN_OK;
}

static tn_rc take_records(struct tn_bytes records, const struct tn_meta_plan *plan,
                          struct tn_arena *arena, struct tn_committable *committable,
                          struct tn_err *err)
{
    uint32_t count = committable->added_count + committable->changelog_count;
    struct tn_avro_cursor cursor = {records.data, records.data + records.size, false};
    void *memory;
    tn_rc rc =
        tn_arena_need(arena, (count + 1) * sizeof(struct tn_entry), "a committable", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_entry *entries = memory;
    for (uint32_t i = 0; rc == TN_OK && i < count; i++) {
        rc = tn_entry_decode(plan, &cursor, arena, &entries[i], err);
    }
    if (rc == TN_OK && cursor.at != cursor.end) {
        rc = tn_err_set(err, TN_CORRUPT, 0, "%zu bytes behind its files",
                        (size_t)(cursor.end - cursor.at));
    }
    committable->added = entries;
    committable->changelog = entries + committable->added_count;
    return rc;
}

tn_rc tn_committable_decode(struct tn_bytes bytes, const struct tn_meta_plan *plan,
                            struct tn_arena *arena, struct tn_committable *committable,
                            struct tn_err *err)
{
    struct parts parts = {{NULL, 0}, {NULL, 0}};
    struct header header = {0};
    struct tn_committable read = {0};
    tn_rc rc = split(bytes, &parts, err);
    if (rc == TN_OK) {
        rc = tn_json_read_text(parts.header, fields, FIELDS, &header, arena, err);
    }
    if (rc == TN_OK) {
        rc = take_header(&header, &parts, &read, err);
    }
    if (rc == TN_OK) {
        rc = take_records(parts.records, plan, arena, &read, err);
    }
    if (rc == TN_OK) {
        *committable = read;
    }
    return rc;
}
