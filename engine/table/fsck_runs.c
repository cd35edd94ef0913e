#include <inttypes.h>

#include "file/names.h"
#include "table/fsck_private.h"

/* A live file above level 0. */
struct item {
    struct item *next; /* of the same partition, bucket and level */
    struct tn_hash_128 identity;
    bool fresh; /* not compared yet */
    uint32_t min_size;
    uint32_t max_size;
    uint32_t name_size;    /* with its zero */
    unsigned char bytes[]; /* min key, max key, name */
};

struct chain {
    struct tn_hash_128 key;
    struct item *items;
    int32_t bucket;
    int32_t level;
    uint64_t fresh;
};

/* Two numbers of buckets at once are as wrong as more. */
struct partition {
    struct tn_hash_128 key;
    int32_t totals[2];
    uint32_t counts[2]; /* live files that say so */
};

static struct tn_hash_128 chain_key(const struct tn_entry *entry)
{
    struct tn_hash_128 key = tn_hash_128(entry->partition);
    uint64_t place = (uint64_t)(uint32_t)entry->bucket << 32 | (uint32_t)entry->file.level;
    key.high += place * UINT64_C(0x9e3779b97f4a7c15);
    key.low += place * UINT64_C(0xc2b2ae3d27d4eb4f);
    return key;
}

/* ---- chains ---- */

/* NULL, with the reason in `err`, when the heap is full. */
static struct item *make_item(struct tn_fsck *f, const struct tn_file_meta *file,
                              struct tn_err *err)
{
    size_t name_size = strlen(file->file_name) + 1;
    size_t size = sizeof(struct item) + file->min_key.size + file->max_key.size + name_size;
    struct item *item = tn_heap_take(f->spec->heap, size);
    if (!item) {
        (void)tn_fsck_stop(f, tn_err_set(err, TN_AGAIN, 0,
                                         "fsck: files above level 0: one more needs %zu bytes, "
                                         "all of %zu KiB are taken",
                                         size, f->spec->heap->size / 1024));
        return NULL;
    }
    *item = (struct item){.fresh = true,
                          .min_size = (uint32_t)file->min_key.size,
                          .max_size = (uint32_t)file->max_key.size,
                          .name_size = (uint32_t)name_size};
    memcpy(item->bytes, file->min_key.data, item->min_size);
    memcpy(item->bytes + item->min_size, file->max_key.data, item->max_size);
    memcpy(item->bytes + item->min_size + item->max_size, file->file_name, name_size);
    return item;
}

static tn_rc add_item(struct tn_fsck *f, const struct tn_entry *entry, struct tn_hash_128 identity,
                      struct tn_err *err)
{
    void *slot;
    bool is_new;
    struct item *item = make_item(f, &entry->file, err);
    if (!item) {
        return TN_AGAIN;
    }
    tn_rc rc = tn_fsck_table_add(&f->chains, chain_key(entry), &slot, &is_new, err);
    if (rc != TN_OK) {
        tn_heap_give(f->spec->heap, item);
        return tn_fsck_stop(f, rc);
    }
    struct chain *chain = slot;
    chain->bucket = entry->bucket;
    chain->level = entry->file.level;
    chain->fresh++;
    item->identity = identity;
    item->next = chain->items;
    chain->items = item;
    return TN_OK;
}

static void remove_item(struct tn_fsck *f, const struct tn_entry *entry,
                        struct tn_hash_128 identity)
{
    struct chain *chain = tn_fsck_table_find(&f->chains, chain_key(entry));
    for (struct item **at = chain ? &chain->items : NULL; at && *at; at = &(*at)->next) {
        struct item *item = *at;
        if (item->identity.high == identity.high && item->identity.low == identity.low) {
            chain->fresh -= item->fresh;
            *at = item->next;
            tn_heap_give(f->spec->heap, item);
            return;
        }
    }
}

/* ---- partitions ---- */

static tn_rc add_total(struct tn_fsck *f, const struct tn_entry *entry, struct tn_err *err)
{
    void *slot;
    bool is_new;
    tn_rc rc =
        tn_fsck_table_add(&f->partitions, tn_hash_128(entry->partition), &slot, &is_new, err);
    if (rc != TN_OK) {
        return tn_fsck_stop(f, rc);
    }
    struct partition *p = slot;
    int at = p->counts[0] > 0 && p->totals[0] != entry->total_buckets;
    if (at == 0 && p->counts[0] == 0 && p->counts[1] > 0 && p->totals[1] == entry->total_buckets) {
        at = 1;
    }
    f->mixed = f->mixed || at == 1;
    p->totals[at] = entry->total_buckets; /* a third takes the place of the second */
    p->counts[at]++;
    return TN_OK;
}

static void remove_total(struct tn_fsck *f, const struct tn_entry *entry)
{
    struct partition *p = tn_fsck_table_find(&f->partitions, tn_hash_128(entry->partition));
    for (int i = 0; p && i < 2; i++) {
        if (p->counts[i] > 0 && p->totals[i] == entry->total_buckets) {
            p->counts[i]--;
            return;
        }
    }
}

static tn_rc check_totals(struct tn_fsck *f, const char *file, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    struct partition *p = f->mixed ? tn_fsck_table_next(&f->partitions, NULL) : NULL;
    for (; p && rc == TN_OK; p = tn_fsck_table_next(&f->partitions, p)) {
        if (p->counts[0] > 0 && p->counts[1] > 0) {
            rc = tn_fsck_problem(f, err, file,
                                 "one partition with total buckets %" PRId32 " and %" PRId32,
                                 p->totals[0], p->totals[1]);
        }
    }
    return rc;
}

/* ---- overlaps ---- */

struct range {
    struct tn_value *min;
    struct tn_value *max;
};

static bool decode(struct tn_fsck *f, const struct item *item, struct range range)
{
    struct tn_err ignored;
    uint32_t count = f->newest.trimmed_keys.count;
    struct tn_bytes min = {item->bytes, item->min_size};
    struct tn_bytes max = {item->bytes + item->min_size, item->max_size};
    return tn_binary_to_values(min, f->key_types, count, range.min, &ignored) == TN_OK &&
           tn_binary_to_values(max, f->key_types, count, range.max, &ignored) == TN_OK;
}

static int compare(const struct tn_fsck *f, const struct tn_value *a, const struct tn_value *b)
{
    int order = 0;
    for (uint32_t i = 0; order == 0 && i < f->newest.trimmed_keys.count; i++) {
        order = tn_value_compare(&f->key_types[i], &a[i], &b[i]);
    }
    return order;
}

static const char *name_of(const struct item *item)
{
    return (const char *)item->bytes + item->min_size + item->max_size;
}

/* Keys that can't be decoded are the file check's to tell. */
static tn_rc check_item(struct tn_fsck *f, const struct chain *chain, const struct item *item,
                        struct tn_value *values, const char *file, struct tn_err *err)
{
    uint32_t count = f->newest.trimmed_keys.count;
    struct range a = {values, values + count};
    struct range b = {values + (size_t)2 * count, values + (size_t)3 * count};
    tn_rc rc = TN_OK;
    if (!decode(f, item, a)) {
        return TN_OK;
    }
    for (const struct item *other = chain->items; other && rc == TN_OK; other = other->next) {
        bool done = other == item || (other->fresh && other < item); /* each pair once */
        if (!done && decode(f, other, b) && compare(f, a.max, b.min) >= 0 &&
            compare(f, b.max, a.min) >= 0) {
            rc = tn_fsck_problem(f, err, file,
                                 "bucket %" PRId32 " level %" PRId32 ": files overlap: %s and %s",
                                 chain->bucket, chain->level, name_of(item), name_of(other));
        }
    }
    return rc;
}

static tn_rc check_chain(struct tn_fsck *f, struct chain *chain, struct tn_value *values,
                         const char *file, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (struct item *item = chain->items; item && rc == TN_OK; item = item->next) {
        if (item->fresh) {
            rc = check_item(f, chain, item, values, file, err);
        }
    }
    for (struct item *item = chain->items; item; item = item->next) {
        item->fresh = false;
    }
    chain->fresh = 0;
    return rc;
}

/* ---- what is live ---- */

static bool counts(const struct tn_fsck *f, const struct tn_entry *entry)
{
    return f->keyed && entry->file.level > 0;
}

tn_rc tn_fsck_runs_add(struct tn_fsck *f, const struct tn_entry *entry, struct tn_hash_128 identity,
                       struct tn_err *err)
{
    tn_rc rc = entry->bucket >= 0 ? add_total(f, entry, err) : TN_OK;
    return rc == TN_OK && counts(f, entry) ? add_item(f, entry, identity, err) : rc;
}

void tn_fsck_runs_remove(struct tn_fsck *f, const struct tn_entry *entry,
                         struct tn_hash_128 identity)
{
    if (entry->bucket >= 0) {
        remove_total(f, entry);
    }
    if (counts(f, entry)) {
        remove_item(f, entry, identity);
    }
}

void tn_fsck_runs_init(struct tn_fsck *f)
{
    tn_fsck_table_init(&f->chains, f->spec->heap, sizeof(struct chain), "levels of buckets");
    tn_fsck_table_init(&f->partitions, f->spec->heap, sizeof(struct partition), "partitions");
}

void tn_fsck_runs_clear(struct tn_fsck *f)
{
    for (struct chain *chain = tn_fsck_table_next(&f->chains, NULL); chain;
         chain = tn_fsck_table_next(&f->chains, chain)) {
        while (chain->items) {
            struct item *item = chain->items;
            chain->items = item->next;
            tn_heap_give(f->spec->heap, item);
        }
    }
    tn_fsck_table_clear(&f->chains);
    tn_fsck_table_clear(&f->partitions);
    f->mixed = false;
}

tn_rc tn_fsck_runs_check(struct tn_fsck *f, const char *file, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&f->worker->arena);
    size_t size = 4 * (size_t)f->newest.trimmed_keys.count * sizeof(struct tn_value);
    void *values;
    tn_rc rc = tn_fsck_stop(f, tn_arena_need(&f->worker->arena, size + 1, "keys", &values, err));
    if (rc == TN_OK) {
        rc = check_totals(f, file, err);
    }
    struct chain *chain = tn_fsck_table_next(&f->chains, NULL);
    for (; chain && rc == TN_OK; chain = tn_fsck_table_next(&f->chains, chain)) {
        if (chain->fresh > 0) {
            rc = check_chain(f, chain, values, file, err);
        }
    }
    tn_arena_reset(&f->worker->arena, mark);
    return rc;
}
