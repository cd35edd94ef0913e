#include "commit/conflict.h"

#include <inttypes.h>

#include "commit/set.h"
#include "schema/row.h"

enum { UPGRADES_SIZE_MAX = 256 * 1024 };

struct check {
    const struct tn_commit_spec *spec;
    struct tn_worker *worker;
    struct tn_entry_writer *entries;
    uint32_t *slots; /* index into spec->removed + 1, 0: free */
    uint32_t slot_count;
    bool *found;           /* per removal */
    struct tn_set touched; /* buckets */
    int32_t bucket_min;
    int32_t bucket_max;
    struct tn_set added;       /* identities of all results */
    struct tn_entry *upgraded; /* whole records at their new level, in `upgrades` */
    uint32_t upgraded_count;
    struct tn_arena upgrades;
    uint32_t key_count;
    struct tn_type *key_types;
    struct tn_value *keys; /* four rows: min and max of two files */
};

/* ---- which buckets ---- */

static struct tn_hash_128 bucket_hash(struct tn_bytes partition, int32_t bucket)
{
    uint64_t seed = (uint64_t)(uint32_t)bucket;
    return (struct tn_hash_128){tn_hash_64(partition, seed), tn_hash_64(partition, ~seed)};
}

static void touch(struct check *check, struct tn_bytes partition, int32_t bucket)
{
    bool fits = tn_set_add(&check->touched, bucket_hash(partition, bucket));
    (void)fits; /* the set was made for all of them */
    check->bucket_min = bucket < check->bucket_min ? bucket : check->bucket_min;
    check->bucket_max = bucket > check->bucket_max ? bucket : check->bucket_max;
}

static bool manifest_touched(void *user, const struct tn_manifest_meta *meta)
{
    const struct check *check = user;
    return !(meta->max_bucket.present && meta->max_bucket.value < check->bucket_min) &&
           !(meta->min_bucket.present && meta->min_bucket.value > check->bucket_max);
}

static bool entry_touched(void *user, const struct tn_entry *entry)
{
    const struct check *check = user;
    return tn_set_has(&check->touched, bucket_hash(entry->partition, entry->bucket));
}

/* ---- sources ---- */

static uint32_t first_slot(const struct check *check, struct tn_bytes partition, int32_t bucket,
                           int32_t level, const char *file_name)
{
    uint64_t where = (uint64_t)(uint32_t)bucket << 32 | (uint32_t)level;
    uint64_t seed = tn_hash_64(partition, where);
    return (uint32_t)tn_hash_64(tn_bytes_of(file_name), seed) & (check->slot_count - 1);
}

static bool is_removal(const struct tn_commit_removal *removal, struct tn_bytes partition,
                       int32_t bucket, int32_t level, const char *file_name)
{
    return removal->bucket == bucket && removal->level == level &&
           strcmp(removal->file_name, file_name) == 0 &&
           tn_bytes_equal(removal->partition, partition);
}

/* The slot that holds this removal, or the free one where it would go. */
static uint32_t *find_slot(const struct check *check, struct tn_bytes partition, int32_t bucket,
                           int32_t level, const char *file_name)
{
    uint32_t at = first_slot(check, partition, bucket, level, file_name);
    while (check->slots[at] != 0 && !is_removal(&check->spec->removed[check->slots[at] - 1],
                                                partition, bucket, level, file_name)) {
        at = (at + 1) & (check->slot_count - 1);
    }
    return &check->slots[at];
}

static tn_rc index_removals(struct check *check, struct tn_err *err)
{
    for (uint32_t i = 0; i < check->spec->removed_count; i++) {
        const struct tn_commit_removal *r = &check->spec->removed[i];
        uint32_t *slot = find_slot(check, r->partition, r->bucket, r->level, r->file_name);
        if (*slot != 0) {
            return tn_err_set(err, TN_INVALID, 0, "compaction removes %s twice", r->file_name);
        }
        *slot = i + 1;
        touch(check, r->partition, r->bucket);
    }
    return TN_OK;
}

/* What is there afterwards by this compaction: its own files, then those that changed their level.
 */
static uint32_t result_count(const struct check *check)
{
    return check->spec->compacted_count + check->upgraded_count;
}

static const struct tn_entry *result_at(const struct check *check, uint32_t i)
{
    uint32_t compacted = check->spec->compacted_count;
    return i < compacted ? &check->spec->compacted[i] : &check->upgraded[i - compacted];
}

static tn_rc index_results(struct check *check, struct tn_err *err)
{
    struct tn_arena *arena = &check->worker->arena;
    for (uint32_t i = 0; i < result_count(check); i++) {
        const struct tn_entry *entry = result_at(check, i);
        struct tn_hash_128 hash = tn_entry_identity(entry, arena);
        if (tn_set_has(&check->added, hash) || !tn_set_add(&check->added, hash)) {
            return tn_err_set(err, TN_INVALID, 0, "compaction adds %s twice",
                              entry->file.file_name);
        }
        touch(check, entry->partition, entry->bucket);
    }
    return TN_OK;
}

/* The removal that the entry is the record of, or NULL. */
static const struct tn_commit_removal *removal_of(const struct check *check,
                                                  const struct tn_entry *entry)
{
    uint32_t slot = *find_slot(check, entry->partition, entry->bucket, entry->file.level,
                               entry->file.file_name);
    return slot > 0 ? &check->spec->removed[slot - 1] : NULL;
}

/* Keeps the whole record of a file that goes up. */
static tn_rc collect_upgrade(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct check *check = user;
    const struct tn_commit_removal *removal = removal_of(check, entry);
    bool fits = true;
    if (!removal || removal->upgrade_level < 0 ||
        check->upgraded_count == check->spec->removed_count) {
        return TN_OK;
    }
    if (removal->upgrade_level == removal->level) {
        return tn_err_set(err, TN_INVALID, 0, "%s goes up to its own level", removal->file_name);
    }
    struct tn_entry *kept = &check->upgraded[check->upgraded_count];
    *kept = *entry;
    kept->partition = tn_arena_copy(&check->upgrades, entry->partition, &fits);
    if (!fits) {
        return tn_err_set(err, TN_AGAIN, 0, "no room for the records of files that go up");
    }
    tn_rc rc = tn_file_meta_copy(&entry->file, &check->upgrades, &kept->file, err);
    kept->file.level = removal->upgrade_level;
    check->upgraded_count += rc == TN_OK ? 1 : 0;
    return rc;
}

/* ---- levels ---- */

static tn_rc decode_keys(const struct check *check, const struct tn_file_meta *file,
                         struct tn_value *min, struct tn_err *err)
{
    tn_rc rc = tn_binary_to_values(file->min_key, check->key_types, check->key_count, min, err);
    if (rc == TN_OK) {
        rc = tn_binary_to_values(file->max_key, check->key_types, check->key_count,
                                 min + check->key_count, err);
    }
    return rc == TN_OK ? TN_OK : tn_err_in(err, "keys of %s", file->file_name);
}

static int compare_keys(const struct check *check, const struct tn_value *a,
                        const struct tn_value *b)
{
    int order = 0;
    for (uint32_t i = 0; order == 0 && i < check->key_count; i++) {
        order = tn_value_compare(&check->key_types[i], &a[i], &b[i]);
    }
    return order;
}

static bool same_run(const struct tn_entry *a, const struct tn_entry *b)
{
    return a->bucket == b->bucket && a->file.level == b->file.level &&
           tn_bytes_equal(a->partition, b->partition);
}

/* `entry`, whose keys are decoded, against results from `from` on. `code` is what an overlap is. */
static tn_rc check_overlap(const struct check *check, const struct tn_entry *entry, uint32_t from,
                           tn_rc code, struct tn_err *err)
{
    const uint32_t n = check->key_count;
    const struct tn_value *a = check->keys;
    struct tn_value *b = check->keys + 2 * (size_t)n;
    for (uint32_t i = from; i < result_count(check); i++) {
        const struct tn_entry *result = result_at(check, i);
        if (!same_run(entry, result)) {
            continue;
        }
        tn_rc rc = decode_keys(check, &result->file, b, err);
        if (rc != TN_OK) {
            return rc;
        }
        if (compare_keys(check, a, b + n) <= 0 && compare_keys(check, b, a + n) <= 0) {
            return tn_err_set(err, code, 0, "%s would overlap %s in level %" PRId32,
                              result->file.file_name, entry->file.file_name, entry->file.level);
        }
    }
    return TN_OK;
}

/* Files without keys have no order to keep. */
static tn_rc check_level(const struct check *check, const struct tn_entry *entry, uint32_t from,
                         tn_rc code, struct tn_err *err)
{
    bool ordered = check->key_count > 0 && entry->file.level >= 1;
    bool compared = false;
    for (uint32_t i = from; ordered && !compared && i < result_count(check); i++) {
        compared = same_run(entry, result_at(check, i));
    }
    if (!compared) {
        return TN_OK;
    }
    tn_rc rc = decode_keys(check, &entry->file, check->keys, err);
    return rc == TN_OK ? check_overlap(check, entry, from, code, err) : rc;
}

static tn_rc check_results(const struct check *check, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < result_count(check); i++) {
        rc = check_level(check, result_at(check, i), i + 1, TN_INVALID, err);
    }
    return rc;
}

/* ---- what is live ---- */

static tn_rc check_bucket_count(const struct check *check, const struct tn_entry *entry,
                                struct tn_err *err)
{
    for (uint32_t i = 0; i < check->spec->compacted_count; i++) {
        const struct tn_entry *result = &check->spec->compacted[i];
        if (entry->total_buckets > 0 && result->total_buckets > 0 &&
            entry->total_buckets != result->total_buckets &&
            tn_bytes_equal(entry->partition, result->partition)) {
            return tn_err_set(err, TN_CONFLICT, 0,
                              "a partition has %" PRId32 " buckets, the compaction %" PRId32,
                              entry->total_buckets, result->total_buckets);
        }
    }
    return TN_OK;
}

static tn_rc remove_live(struct check *check, const struct tn_entry *entry,
                         const struct tn_commit_removal *removal, struct tn_err *err)
{
    struct tn_entry removed = *entry;
    ptrdiff_t index = removal - check->spec->removed;
    removed.kind = TN_ENTRY_DELETE;
    if (check->found[index]) {
        return tn_err_set(err, TN_CONFLICT, 0, "%s is live twice", entry->file.file_name);
    }
    check->found[index] = true;
    return tn_entry_writer_add(check->entries, &removed, err);
}

static tn_rc check_live(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct check *check = user;
    if (tn_set_has(&check->added, tn_entry_identity(entry, &check->worker->arena))) {
        return tn_err_set(err, TN_CONFLICT, 0, "%s is already there", entry->file.file_name);
    }
    tn_rc rc = check_bucket_count(check, entry, err);
    if (rc != TN_OK) {
        return rc;
    }
    const struct tn_commit_removal *removal = removal_of(check, entry);
    return removal ? remove_live(check, entry, removal, err)
                   : check_level(check, entry, 0, TN_CONFLICT, err);
}

static tn_rc check_found(const struct check *check, struct tn_err *err)
{
    for (uint32_t i = 0; i < check->spec->removed_count; i++) {
        if (!check->found[i]) {
            return tn_err_set(err, TN_CONFLICT, 0, "%s isn't live any more",
                              check->spec->removed[i].file_name);
        }
    }
    return TN_OK;
}

/* ---- */

static tn_rc take_keys(struct check *check, struct tn_err *err)
{
    const struct tn_schema *schema = check->spec->schema;
    struct tn_arena *arena = &check->worker->arena;
    uint32_t n = schema->trimmed_keys.count;
    check->key_count = n;
    check->key_types = tn_arena_take(arena, n * sizeof *check->key_types);
    check->keys = tn_arena_take(arena, 4 * (size_t)n * sizeof *check->keys);
    if (!check->key_types || !check->keys) {
        return tn_err_set(err, TN_AGAIN, 0, "no room for %u key columns", (unsigned)n);
    }
    for (uint32_t i = 0; i < n; i++) {
        check->key_types[i] = schema->fields[schema->trimmed_keys.index[i]].type;
    }
    return TN_OK;
}

static tn_rc take_sources(struct check *check, struct tn_err *err)
{
    const struct tn_commit_spec *spec = check->spec;
    struct tn_arena *arena = &check->worker->arena;
    check->slot_count = 2;
    while (check->slot_count / 2 < spec->removed_count && check->slot_count < (1u << 30)) {
        check->slot_count *= 2;
    }
    check->slots = tn_arena_take(arena, check->slot_count * sizeof *check->slots);
    check->found = tn_arena_take(arena, spec->removed_count * sizeof *check->found);
    return check->slots && check->found
               ? TN_OK
               : tn_err_set(err, TN_AGAIN, 0, "no room for %u sources of a compaction",
                            (unsigned)spec->removed_count);
}

static uint32_t count_upgrades(const struct tn_commit_spec *spec)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < spec->removed_count; i++) {
        count += spec->removed[i].upgrade_level >= 0 ? 1 : 0;
    }
    return count;
}

/* Records are copied into a part of their own: what a callback takes from the worker's arena is
 * gone with the next record. */
static tn_rc take_upgrades(struct check *check, struct tn_err *err)
{
    struct tn_arena *arena = &check->worker->arena;
    size_t size = tn_arena_free(arena) / 4;
    size = size > UPGRADES_SIZE_MAX ? UPGRADES_SIZE_MAX : size;
    check->upgraded = tn_arena_take(arena, check->spec->removed_count * sizeof *check->upgraded);
    void *block = tn_arena_take_raw(arena, size);
    if (!check->upgraded || !block) {
        return tn_err_set(err, TN_AGAIN, 0, "no room for the records of files that go up");
    }
    tn_arena_init(&check->upgrades, block, size);
    return TN_OK;
}

static tn_rc take_memory(struct check *check, struct tn_err *err)
{
    const struct tn_commit_spec *spec = check->spec;
    struct tn_arena *arena = &check->worker->arena;
    uint32_t upgrades = count_upgrades(spec);
    uint64_t results = (uint64_t)spec->compacted_count + upgrades;
    tn_rc rc = take_sources(check, err);
    if (rc == TN_OK) {
        rc = tn_set_init(&check->touched, spec->removed_count + results, arena, err);
    }
    if (rc == TN_OK) {
        rc = tn_set_init(&check->added, results, arena, err);
    }
    if (rc == TN_OK && upgrades > 0) {
        rc = take_upgrades(check, err);
    }
    return rc == TN_OK ? take_keys(check, err) : rc;
}

static tn_rc each_live(struct check *check, const struct tn_snapshot *previous, tn_live_fn *each,
                       struct tn_err *err)
{
    struct tn_live_filter filter = {
        .manifest = manifest_touched, .entry = entry_touched, .user = check};
    const struct tn_commit_spec *spec = check->spec;
    return previous ? tn_live_each(spec->root, previous, spec->schema, &filter, check->worker, each,
                                   check, err)
                    : TN_OK;
}

static tn_rc add_upgraded(struct check *check, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < check->upgraded_count; i++) {
        check->upgraded[i].kind = TN_ENTRY_ADD;
        rc = tn_entry_writer_add(check->entries, &check->upgraded[i], err);
    }
    return rc;
}

/* Results against each other, then against what is live. */
static tn_rc check_all(struct check *check, const struct tn_snapshot *previous, struct tn_err *err)
{
    tn_rc rc = index_removals(check, err);
    if (rc == TN_OK && check->upgraded) {
        rc = each_live(check, previous, collect_upgrade, err);
    }
    if (rc == TN_OK) {
        rc = index_results(check, err);
    }
    if (rc == TN_OK) {
        rc = check_results(check, err);
    }
    if (rc == TN_OK) {
        rc = each_live(check, previous, check_live, err);
    }
    return rc == TN_OK ? check_found(check, err) : rc;
}

tn_rc tn_conflict_check(const struct tn_commit_spec *spec, const struct tn_snapshot *previous,
                        struct tn_worker *worker, struct tn_entry_writer *entries,
                        struct tn_err *err)
{
    struct check check = {.spec = spec,
                          .worker = worker,
                          .entries = entries,
                          .bucket_min = INT32_MAX,
                          .bucket_max = INT32_MIN};
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc = take_memory(&check, err);
    if (rc == TN_OK) {
        rc = check_all(&check, previous, err);
    }
    if (rc == TN_OK) {
        rc = add_upgraded(&check, err);
    }
    tn_arena_reset(&worker->arena, mark);
    return rc;
}
