#include "file/meta_private.h"

#include <string.h>

static tn_rc copy_texts(struct tn_meta_decoder *d, struct tn_texts *texts)
{
    void *made = NULL;
    tn_rc rc = tn_arena_need(d->arena, texts->count * sizeof(char *) + 1, d->name, &made, d->err);
    const char **items = made;
    for (uint32_t i = 0; i < texts->count && rc == TN_OK; i++) {
        struct tn_bytes kept = {NULL, 0};
        rc = tn_meta_keep(d, tn_bytes_of(texts->items[i]), &kept);
        items[i] = (const char *)kept.data;
    }
    texts->items = items;
    return rc;
}

static tn_rc copy_stats(struct tn_meta_decoder *d, struct tn_stats *stats)
{
    size_t size = stats->null_count_count * sizeof(int64_t);
    struct tn_bytes counts = {(const unsigned char *)stats->null_counts, size};
    void *made = NULL;
    tn_rc rc = tn_arena_need(d->arena, size + 1, d->name, &made, d->err);
    if (rc == TN_OK) {
        if (size > 0) {
            memcpy(made, counts.data, size);
        }
        stats->null_counts = made;
        rc = tn_meta_keep(d, stats->min, &stats->min);
    }
    return rc == TN_OK ? tn_meta_keep(d, stats->max, &stats->max) : rc;
}

/* `at` holds a shallow copy; what it points to is made its own. */
static tn_rc copy_member(struct tn_meta_decoder *d, const struct tn_member *m, void *at)
{
    struct tn_bytes kept = {NULL, 0};
    tn_rc rc = TN_OK;
    switch (m->kind) {
    case TN_MEMBER_NAME:
    case TN_MEMBER_TEXT:
    case TN_MEMBER_OPT_TEXT:
        rc = tn_meta_keep(d, tn_bytes_of(*(const char **)at), &kept);
        *(const char **)at = (const char *)kept.data;
        return rc;
    case TN_MEMBER_BYTES:
    case TN_MEMBER_OPT_BYTES:
        return tn_meta_keep(d, *(struct tn_bytes *)at, at);
    case TN_MEMBER_STATS:
        return copy_stats(d, at);
    case TN_MEMBER_FILES:
    case TN_MEMBER_OPT_TEXTS:
        return copy_texts(d, at);
    case TN_MEMBER_VERSION:
    case TN_MEMBER_I32:
    case TN_MEMBER_I64:
    case TN_MEMBER_COUNT:
    case TN_MEMBER_OPT_I64:
    case TN_MEMBER_OPT_I32:
    case TN_MEMBER_FILE:
        break;
    }
    return TN_OK;
}

/* Two hashes over parts, each seeded with what came before, so no memory is needed. The size of a
 * part goes first: neighbours can't run into each other, and no hash is taken of nothing. */
struct identity {
    uint64_t high;
    uint64_t low;
};

static void identity_hash(struct identity *id, struct tn_bytes part)
{
    id->high = tn_hash_64(part, id->high);
    id->low = tn_hash_64(part, id->low);
}

static void identity_number(struct identity *id, int64_t number)
{
    unsigned char bytes[8];
    tn_store_u64(bytes, (uint64_t)number);
    identity_hash(id, (struct tn_bytes){bytes, sizeof bytes});
}

static void identity_add(struct identity *id, struct tn_bytes part)
{
    identity_number(id, (int64_t)part.size);
    if (part.size > 0) {
        identity_hash(id, part);
    }
}

struct tn_hash_128 tn_entry_identity(const struct tn_entry *entry, struct tn_arena *scratch)
{
    (void)scratch; /* hashed part by part, so that a full arena is no case */
    const struct tn_file_meta *file = &entry->file;
    struct identity id = {0x9e3779b97f4a7c15u, 0xc2b2ae3d27d4eb4fu};
    identity_add(&id, entry->partition);
    identity_number(&id, entry->bucket);
    identity_number(&id, file->level);
    identity_add(&id, tn_bytes_of(file->file_name));
    identity_number(&id, file->extra_files.count);
    for (uint32_t i = 0; i < file->extra_files.count; i++) {
        identity_add(&id, tn_bytes_of(file->extra_files.items[i]));
    }
    identity_number(&id, file->embedded_index.data != NULL);
    identity_add(&id, file->embedded_index);
    identity_number(&id, file->external_path != NULL);
    identity_add(&id, tn_bytes_of(file->external_path ? file->external_path : ""));
    return (struct tn_hash_128){id.high, id.low};
}

tn_rc tn_file_meta_copy(const struct tn_file_meta *from, struct tn_arena *arena,
                        struct tn_file_meta *to, struct tn_err *err)
{
    struct tn_meta_decoder d = {NULL, arena, err, ""};
    struct tn_file_meta out = *from;
    for (uint32_t i = 0; i < tn_file_members.count; i++) {
        const struct tn_member *m = &tn_file_members.items[i];
        void *at = (unsigned char *)&out + m->offset;
        d.name = m->name;
        tn_rc rc = tn_member_present(m, at) ? copy_member(&d, m, at) : TN_OK;
        if (rc) {
            return rc;
        }
    }
    *to = out;
    return TN_OK;
}
