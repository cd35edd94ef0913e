#include "upload/ledger.h"

#include <stddef.h>
#include <stdio.h>

#include "format/json.h"
#include "upload/beside.h"

struct record {
    int64_t version;
    int64_t have;
    const char *hash;
    int64_t schema;
    int64_t sending;
    int64_t since_ms;
    int64_t checked_ms;
    int64_t generation;
    const char *writer;
    const char *mirror;
    int64_t owner_since_ms;
    const char *tags; /* or NULL */
    struct tn_json_i64 tags_next;
    struct tn_json_i64 denied_ms;
    struct tn_json_i64 first;
    struct tn_json_i64 first_ms;
    struct tn_json_i64 below;
    struct tn_json_i64 wait_ms;
    struct tn_json_i64 overwrite;
    struct tn_json_i64 overwrite_next;
};

#define MEMBER(key, kind, name)                                              \
    {                                                                        \
        key, TN_JSON_##kind, TN_JSON_REQUIRED, offsetof(struct record, name) \
    }

#define OPTIONAL(key, kind, name)                                            \
    {                                                                        \
        key, TN_JSON_##kind, TN_JSON_OPTIONAL, offsetof(struct record, name) \
    }

static const struct tn_json_field fields[] = {
    MEMBER("version", I64, version),
    MEMBER("have", I64, have),
    MEMBER("hash", TEXT, hash),
    MEMBER("schema", I64, schema),
    MEMBER("sending", I64, sending),
    MEMBER("sinceMs", I64, since_ms),
    MEMBER("checkedMs", I64, checked_ms),
    MEMBER("generation", I64, generation),
    MEMBER("writer", TEXT, writer),
    MEMBER("mirror", TEXT, mirror),
    MEMBER("ownerSinceMs", I64, owner_since_ms),
    OPTIONAL("tags", TEXT, tags),
    OPTIONAL("tagsNext", I64, tags_next),
    OPTIONAL("deniedMs", I64, denied_ms),
    OPTIONAL("first", I64, first),
    OPTIONAL("firstMs", I64, first_ms),
    OPTIONAL("below", I64, below),
    OPTIONAL("waitMs", I64, wait_ms),
    OPTIONAL("overwrite", I64, overwrite),
    OPTIONAL("overwriteNext", I64, overwrite_next),
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

/* The file's kind. */
static tn_rc kind_of(const char *lake, struct tn_arena *arena, const char **kind,
                     struct tn_err *err)
{
    *kind = tn_arena_format(arena, "%s.ledger", lake);
    return *kind ? TN_OK : tn_err_set(err, TN_AGAIN, 0, "no memory for a ledger's name");
}

static int64_t or_zero(struct tn_json_i64 number)
{
    return number.present ? number.value : 0;
}

/* Whether it may be what was written. */
static bool take(const struct record *record, struct tn_ledger *ledger)
{
    *ledger = (struct tn_ledger){.have = record->have,
                                 .schema = record->schema,
                                 .sending = record->sending,
                                 .since_ms = record->since_ms,
                                 .checked_ms = record->checked_ms,
                                 .owner.generation = record->generation,
                                 .owner.since_ms = record->owner_since_ms};
    (void)snprintf(ledger->owner.writer, sizeof ledger->owner.writer, "%s", record->writer);
    (void)snprintf(ledger->owner.mirror, sizeof ledger->owner.mirror, "%s", record->mirror);
    ledger->tags_known = record->tags && tn_hash_128_parse(record->tags, &ledger->tags);
    ledger->tags_next = or_zero(record->tags_next);
    ledger->denied_ms = or_zero(record->denied_ms);
    ledger->first = or_zero(record->first);
    ledger->first_ms = or_zero(record->first_ms);
    ledger->below = or_zero(record->below) > 0;
    ledger->wait_ms = or_zero(record->wait_ms);
    ledger->overwrite_known = record->overwrite.present;
    ledger->overwrite = or_zero(record->overwrite);
    ledger->overwrite_next = or_zero(record->overwrite_next);
    return record->version == 1 && record->have >= 0 && record->schema >= -1 &&
           record->generation > 0 && strlen(record->writer) < sizeof ledger->owner.writer &&
           strlen(record->mirror) < sizeof ledger->owner.mirror &&
           (record->sending == 0 || record->sending > record->have) &&
           strlen(record->hash) == TN_HASH_128_DIGITS &&
           tn_hash_128_parse(record->hash, &ledger->hash);
}

static tn_rc decode(struct tn_bytes text, struct tn_arena *arena, struct tn_ledger *ledger,
                    struct tn_err *err)
{
    struct record record = {0};
    tn_rc rc = tn_json_read_text(text, fields, FIELDS, &record, arena, err);
    return rc == TN_CORRUPT || (rc == TN_OK && !take(&record, ledger))
               ? tn_err_set(err, TN_ABSENT, 0, "a ledger of no use")
               : rc;
}

tn_rc tn_ledger_read(struct tn_io *io, const char *table, const char *lake,
                     struct tn_arena *scratch, struct tn_ledger *ledger, struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    const char *kind;
    struct tn_bytes text;
    tn_rc rc = kind_of(lake, scratch, &kind, err);
    if (rc == TN_OK) {
        rc = tn_beside_read(io, table, kind, scratch, &text, err);
        rc = rc == TN_INVALID ? tn_err_set(err, TN_ABSENT, 0, "a ledger of no use") : rc;
    }
    if (rc == TN_OK) {
        rc = decode(text, scratch, ledger, err);
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

static void encode(const struct tn_ledger *ledger, struct tn_buf *text)
{
    char hash[TN_HASH_128_DIGITS + 1];
    char tags[TN_HASH_128_DIGITS + 1];
    struct record record = {.version = 1,
                            .have = ledger->have,
                            .hash = hash,
                            .schema = ledger->schema,
                            .sending = ledger->sending,
                            .since_ms = ledger->since_ms,
                            .checked_ms = ledger->checked_ms,
                            .generation = ledger->owner.generation,
                            .writer = ledger->owner.writer,
                            .mirror = ledger->owner.mirror,
                            .owner_since_ms = ledger->owner.since_ms,
                            .tags = ledger->tags_known ? tags : NULL,
                            .tags_next = {ledger->tags_next, ledger->tags_next > 0},
                            .denied_ms = {ledger->denied_ms, ledger->denied_ms > 0},
                            .first = {ledger->first, ledger->first > 0},
                            .first_ms = {ledger->first_ms, ledger->first_ms > 0},
                            .below = {1, ledger->below},
                            .wait_ms = {ledger->wait_ms, ledger->wait_ms > 0},
                            .overwrite = {ledger->overwrite, ledger->overwrite_known},
                            .overwrite_next = {ledger->overwrite_next, ledger->overwrite_next > 0}};
    tn_hash_128_format(ledger->hash, hash);
    tn_hash_128_format(ledger->tags, tags);
    tn_json_write(&record, fields, FIELDS, text);
}

tn_rc tn_ledger_write(struct tn_io *io, const char *table, const char *lake,
                      const struct tn_ledger *ledger, struct tn_arena *scratch, struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    char memory[1024];
    struct tn_buf text;
    const char *kind;
    tn_buf_init(&text, memory, sizeof memory);
    encode(ledger, &text);
    tn_rc rc = kind_of(lake, scratch, &kind, err);
    if (rc == TN_OK) {
        rc = tn_beside_write(io, table, kind, tn_buf_bytes(&text), scratch, err);
    }
    tn_arena_reset(scratch, mark);
    return rc == TN_OK ? rc : tn_err_in(err, "what is known of %s", lake);
}
