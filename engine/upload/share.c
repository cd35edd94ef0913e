#include "upload/share.h"

#include <stddef.h>
#include <stdio.h>

#include "format/json.h"
#include "upload/beside.h"

static const char *const ways[] = {[TN_SHARE_DIRECT] = "direct", [TN_SHARE_GATHER] = "gather"};
enum { WAYS = sizeof ways / sizeof ways[0] };

const char *tn_share_way_name(enum tn_share_way way)
{
    return ways[way];
}

bool tn_share_way_parse(const char *text, enum tn_share_way *way)
{
    for (int i = 0; i < WAYS; i++) {
        if (strcmp(text, ways[i]) == 0) {
            *way = (enum tn_share_way)i;
            return true;
        }
    }
    return false;
}

enum { TEXT_SIZE = 1536 }; /* of what is written */

static size_t place_size(const char *text)
{
    size_t size = strlen(text);
    while (size > 1 && text[size - 1] == '/') {
        size--;
    }
    return size;
}

bool tn_share_same_place(const char *a, const char *b)
{
    size_t size = place_size(a);
    return size == place_size(b) && memcmp(a, b, size) == 0;
}

static tn_rc no_use(struct tn_err *err, const char *table, const char *kind)
{
    return tn_err_set(err, TN_CORRUPT, 0, ".tarn/%s.%s: nothing of use is in it", table, kind);
}

/* ---- that it is one ---- */

struct share_record {
    int64_t version;
    const char *where;
    const char *way;
    const char *gateway;
    int64_t since_ms;
};

#define MEMBER(record, key, kind, name)                                               \
    {                                                                                 \
        key, TN_JSON_##kind, TN_JSON_REQUIRED, offsetof(struct record##_record, name) \
    }

static const struct tn_json_field share_fields[] = {
    MEMBER(share, "version", I64, version),  MEMBER(share, "where", TEXT, where),
    MEMBER(share, "commit", TEXT, way),      MEMBER(share, "gateway", TEXT, gateway),
    MEMBER(share, "sinceMs", I64, since_ms),
};
enum { SHARE_FIELDS = sizeof share_fields / sizeof share_fields[0] };

static bool take_share(const struct share_record *record, struct tn_share *share)
{
    share->where = record->where;
    share->since_ms = record->since_ms;
    (void)snprintf(share->gateway, sizeof share->gateway, "%s", record->gateway);
    return record->version == 1 && record->where[0] != 0 &&
           strlen(record->gateway) == TN_UUID_SIZE - 1 &&
           tn_share_way_parse(record->way, &share->way);
}

tn_rc tn_share_read(struct tn_io *io, const char *table, struct tn_arena *arena,
                    struct tn_share *share, struct tn_err *err)
{
    struct tn_bytes text;
    struct share_record record = {0};
    struct tn_share found = {0};
    tn_rc rc = tn_beside_read(io, table, "shared", arena, &text, err);
    if (rc == TN_OK) {
        rc = tn_json_read_text(text, share_fields, SHARE_FIELDS, &record, arena, err);
    }
    if (rc == TN_INVALID || rc == TN_CORRUPT || (rc == TN_OK && !take_share(&record, &found))) {
        return no_use(err, table, "shared");
    }
    if (rc == TN_OK) {
        *share = found;
    }
    return rc;
}

tn_rc tn_share_write(struct tn_io *io, const char *table, const struct tn_share *share,
                     struct tn_arena *scratch, struct tn_err *err)
{
    char memory[TEXT_SIZE];
    struct tn_buf text;
    struct share_record record = {1, share->where, ways[share->way], share->gateway,
                                  share->since_ms};
    tn_buf_init(&text, memory, sizeof memory);
    tn_json_write(&record, share_fields, SHARE_FIELDS, &text);
    return text.overflow
               ? tn_err_set(err, TN_INVALID, 0, "a place of more than %d bytes", TEXT_SIZE - 256)
               : tn_beside_write(io, table, "shared", tn_buf_bytes(&text), scratch, err);
}

/* ---- how far it was sent ---- */

struct sent_record {
    int64_t version;
    struct tn_sent sent;
    const char *manifest;
    const char *probed_at; /* none where an older tarn wrote it */
};

static const struct tn_json_field sent_fields[] = {
    MEMBER(sent, "version", I64, version),
    MEMBER(sent, "done", I64, sent.done),
    MEMBER(sent, "safe", I64, sent.safe),
    MEMBER(sent, "sending", I64, sent.sending),
    MEMBER(sent, "trying", I64, sent.trying),
    MEMBER(sent, "base", I64, sent.base),
    MEMBER(sent, "lakeId", I64, sent.lake_id),
    MEMBER(sent, "sinceMs", I64, sent.since_ms),
    MEMBER(sent, "schema", I64, sent.schema),
    MEMBER(sent, "askedMs", I64, sent.asked),
    MEMBER(sent, "probedMs", I64, sent.probed),
    MEMBER(sent, "manifest", TEXT, manifest),
    {"probedAt", TN_JSON_TEXT, TN_JSON_OPTIONAL, offsetof(struct sent_record, probed_at)},
};
enum { SENT_FIELDS = sizeof sent_fields / sizeof sent_fields[0] };

static bool is_sound(const struct sent_record *record)
{
    const struct tn_sent *sent = &record->sent;
    return record->version == 1 && sent->safe >= 0 && sent->done >= sent->safe &&
           (sent->trying == 0 || sent->trying > sent->done) && sent->base >= 0 &&
           sent->schema >= -1 && strlen(record->manifest) < sizeof sent->manifest;
}

tn_rc tn_sent_read(struct tn_io *io, const char *table, struct tn_arena *scratch,
                   struct tn_sent *sent, struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    struct tn_bytes text;
    struct sent_record record = {0};
    tn_rc rc = tn_beside_read(io, table, "sent", scratch, &text, err);
    if (rc == TN_OK) {
        rc = tn_json_read_text(text, sent_fields, SENT_FIELDS, &record, scratch, err);
    }
    bool sound = rc == TN_OK && is_sound(&record);
    if (sound) {
        *sent = record.sent;
        (void)snprintf(sent->manifest, sizeof sent->manifest, "%s", record.manifest);
        (void)snprintf(sent->probed_at, sizeof sent->probed_at, "%s",
                       record.probed_at ? record.probed_at : "");
    }
    tn_arena_reset(scratch, mark);
    return rc == TN_INVALID || rc == TN_CORRUPT || (rc == TN_OK && !sound)
               ? no_use(err, table, "sent")
               : rc;
}

tn_rc tn_sent_write(struct tn_io *io, const char *table, const struct tn_sent *sent,
                    struct tn_arena *scratch, struct tn_err *err)
{
    char memory[1024];
    struct tn_buf text;
    struct sent_record record = {1, *sent, sent->manifest, sent->probed_at};
    tn_buf_init(&text, memory, sizeof memory);
    tn_json_write(&record, sent_fields, SENT_FIELDS, &text);
    return tn_beside_write(io, table, "sent", tn_buf_bytes(&text), scratch, err);
}
