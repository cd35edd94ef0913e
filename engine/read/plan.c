#include "read/plan.h"

#include "base/check.h"

static int compare_bucket(const struct tn_plan_bucket *bucket, struct tn_bytes partition,
                          int32_t number)
{
    int c = tn_bytes_compare(bucket->partition, partition);
    if (c != 0) {
        return c;
    }
    return bucket->number < number ? -1 : bucket->number > number;
}

/* What is left says only where the bucket stands. */
static void drop_files(struct tn_plan *plan, struct tn_plan_bucket *bucket)
{
    for (uint32_t i = 0; i < bucket->file_count; i++) {
        tn_level_file_drop(&plan->heap, bucket->files[i]);
    }
    tn_heap_give(&plan->heap, bucket->files);
    bucket->files = NULL;
    bucket->file_count = 0;
    bucket->file_room = 0;
}

static void free_bucket(struct tn_plan *plan, struct tn_plan_bucket *bucket)
{
    if (!bucket) {
        return;
    }
    drop_files(plan, bucket);
    tn_heap_give(&plan->heap, bucket); /* the partition's bytes lie behind it */
}

static struct tn_plan_bucket *make_bucket(struct tn_plan *plan, struct tn_bytes partition,
                                          int32_t number)
{
    struct tn_plan_bucket *bucket = tn_heap_take(&plan->heap, sizeof *bucket + partition.size);
    if (bucket) {
        unsigned char *bytes = (unsigned char *)(bucket + 1);
        memcpy(bytes, partition.data, partition.size);
        *bucket = (struct tn_plan_bucket){.partition = {bytes, partition.size}, .number = number};
    }
    return bucket;
}

/* Where a bucket stands in the window, or would. */
static uint32_t place_of(const struct tn_plan *plan, struct tn_bytes partition, int32_t number)
{
    uint32_t low = 0;
    uint32_t high = plan->bucket_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_bucket(plan->buckets[middle], partition, number) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* ---- the window ---- */

/* Gives up the largest bucket: a later pass begins with it. */
static void give_up_largest(struct tn_plan *plan)
{
    struct tn_plan_bucket *largest = plan->buckets[--plan->bucket_count];
    struct tn_plan_bucket *limit = plan->limit;
    free_bucket(plan, limit);
    drop_files(plan, largest);
    plan->limit = largest;
    plan->closed = false; /* what is behind the window is behind the limit */
}

/* Makes room for a file of this bucket, or decides that it is left for a later pass. False when it
 * is the bucket that the window holds, and nothing else: that one simply does not fit. */
static bool make_room(struct tn_plan *plan, struct tn_bytes partition, int32_t number)
{
    if (plan->bucket_count == 0) {
        return false;
    }
    int c = compare_bucket(plan->buckets[plan->bucket_count - 1], partition, number);
    if (c < 0) {
        plan->closed = true; /* it is behind all that are here, and a limit needs memory, too */
    } else if (c > 0 || plan->bucket_count > 1) {
        give_up_largest(plan);
    } else {
        return false;
    }
    return true;
}

static bool outside(const struct tn_plan *plan, struct tn_bytes partition, int32_t number)
{
    return (plan->floor && compare_bucket(plan->floor, partition, number) >= 0) ||
           (plan->limit && compare_bucket(plan->limit, partition, number) <= 0) ||
           (plan->closed &&
            compare_bucket(plan->buckets[plan->bucket_count - 1], partition, number) < 0);
}

/* Doubles an array of pointers in the window. */
static bool grow(struct tn_plan *plan, void **array, uint32_t *room, size_t item)
{
    uint32_t wanted = *room ? 2 * *room : 8;
    void *made = tn_heap_resize(&plan->heap, *array, wanted * item);
    if (made) {
        *array = made;
        *room = wanted;
    }
    return made != NULL;
}

static struct tn_plan_bucket *find_or_make(struct tn_plan *plan, const struct tn_entry *entry)
{
    uint32_t at = place_of(plan, entry->partition, entry->bucket);
    if (at < plan->bucket_count &&
        compare_bucket(plan->buckets[at], entry->partition, entry->bucket) == 0) {
        return plan->buckets[at];
    }
    void *array = plan->buckets;
    if (plan->bucket_count == plan->bucket_room &&
        !grow(plan, &array, &plan->bucket_room, sizeof(struct tn_plan_bucket *))) {
        return NULL;
    }
    plan->buckets = array;
    struct tn_plan_bucket *bucket = make_bucket(plan, entry->partition, entry->bucket);
    if (!bucket) {
        return NULL;
    }
    bucket->total_buckets = entry->total_buckets;
    memmove(plan->buckets + at + 1, plan->buckets + at,
            (plan->bucket_count - at) * sizeof(struct tn_plan_bucket *));
    plan->buckets[at] = bucket;
    plan->bucket_count++;
    return bucket;
}

/* False when the window is full. */
static bool add_file(struct tn_plan *plan, const struct tn_entry *entry)
{
    struct tn_plan_bucket *bucket = find_or_make(plan, entry);
    if (!bucket) {
        return false;
    }
    void *array = bucket->files;
    if (bucket->file_count == bucket->file_room &&
        !grow(plan, &array, &bucket->file_room, sizeof(struct tn_level_file *))) {
        return false;
    }
    bucket->files = array;
    struct tn_err full;
    struct tn_level_file *file;
    if (tn_level_file_make(&plan->heap, &entry->file, entry->file.level, &file, &full) != TN_OK) {
        return false;
    }
    bucket->files[bucket->file_count++] = file;
    return true;
}

/* ---- pruning ---- */

static bool decode(const struct tn_plan *plan, struct tn_bytes row, const struct tn_type *types,
                   uint32_t count, struct tn_value *values)
{
    (void)plan;
    struct tn_err ignored;
    return tn_binary_to_values(row, types, count, values, &ignored) == TN_OK;
}

static void forget_bounds(struct tn_plan *plan)
{
    memset(plan->bounds, 0, plan->spec.schema->field_count * sizeof *plan->bounds);
}

static void bound(struct tn_plan *plan, uint32_t field, const struct tn_value *min,
                  const struct tn_value *max, int64_t null_count)
{
    struct tn_bounds *b = &plan->bounds[field];
    b->known = true;
    b->null_count = null_count;
    b->has_range = !min->null && !max->null;
    b->min = *min;
    b->max = *max;
}

static void bound_partition(struct tn_plan *plan, struct tn_bytes partition)
{
    struct tn_columns keys = plan->spec.schema->partition_keys;
    if (keys.count == 0 ||
        !decode(plan, partition, plan->partition_types, keys.count, plan->values)) {
        return;
    }
    for (uint32_t i = 0; i < keys.count; i++) {
        const struct tn_value *v = &plan->values[i];
        bound(plan, keys.index[i], v, v, v->null ? -1 : 0);
        plan->bounds[keys.index[i]].has_range = !v->null;
    }
}

static void bound_keys(struct tn_plan *plan, const struct tn_file_meta *file)
{
    struct tn_columns keys = plan->spec.schema->trimmed_keys;
    struct tn_value *max = plan->values + keys.count;
    if (keys.count == 0 ||
        !decode(plan, file->key_stats.min, plan->spec.keys->types, keys.count, plan->values) ||
        !decode(plan, file->key_stats.max, plan->spec.keys->types, keys.count, max)) {
        return;
    }
    for (uint32_t i = 0; i < keys.count; i++) {
        if (!plan->values[i].null && !max[i].null) {
            bound(plan, keys.index[i], &plan->values[i], &max[i], 0);
        }
    }
}

/* A key's types never change. Those of an append table's bucket key may, and then a value hashes to
 * another bucket than before; compaction leaves old rows where they are. */
static bool hashed_as_now(const struct tn_schema *schema)
{
    return schema->trimmed_keys.count > 0 || schema->id == 0;
}

/* Equality on all bucket key columns names one bucket, by the entry's own number of buckets. */
static bool bucket_ruled_out(const struct tn_plan *plan, const struct tn_entry *entry)
{
    struct tn_columns key = plan->spec.options->bucket_key;
    if (!plan->spec.predicate || entry->total_buckets <= 1 || key.count == 0 ||
        plan->spec.options->bucket_function != TN_BUCKET_HASH ||
        !hashed_as_now(plan->spec.schema) ||
        !tn_predicate_point(plan->spec.predicate, key, plan->values)) {
        return false;
    }
    unsigned char memory[1024];
    struct tn_buf buf;
    struct tn_type types[16];
    if (key.count > 16) {
        return false;
    }
    for (uint32_t i = 0; i < key.count; i++) {
        types[i] = plan->spec.schema->fields[key.index[i]].type;
    }
    tn_buf_init(&buf, memory, sizeof memory);
    tn_values_to_binary(types, plan->values, key.count, &buf);
    if (buf.overflow) {
        return false;
    }
    struct tn_bytes row = {memory + 4, buf.size - 4}; /* without the arity */
    int32_t bucket = tn_hash_murmur(row) % entry->total_buckets;
    return entry->bucket != (bucket < 0 ? -bucket : bucket);
}

/* The ADD and the DELETE of one file are judged alike: both hold the same record. */
static bool wanted(void *user, const struct tn_entry *entry)
{
    struct tn_plan *plan = user;
    const struct tn_plan_filter *filter = plan->spec.filter;
    bool first_row = plan->spec.options->merge_engine == TN_MERGE_FIRST_ROW;
    if (outside(plan, entry->partition, entry->bucket) || entry->bucket < 0 ||
        (entry->file.level == 0 && first_row && !(filter && filter->level0))) {
        return false;
    }
    if (filter && !filter->wanted(filter->user, entry)) {
        return false;
    }
    if (!plan->spec.predicate) {
        return true;
    }
    if (bucket_ruled_out(plan, entry)) {
        return false;
    }
    if (!plan->key_part) {
        return true;
    }
    forget_bounds(plan);
    bound_partition(plan, entry->partition);
    bound_keys(plan, &entry->file);
    return tn_predicate_may_match(plan->key_part, plan->bounds, entry->file.row_count);
}

static bool manifest_wanted(void *user, const struct tn_manifest_meta *meta)
{
    struct tn_plan *plan = user;
    struct tn_columns keys = plan->spec.schema->partition_keys;
    struct tn_value *max = plan->values + keys.count;
    if (!plan->key_part || keys.count == 0 ||
        !decode(plan, meta->partition_stats.min, plan->partition_types, keys.count, plan->values) ||
        !decode(plan, meta->partition_stats.max, plan->partition_types, keys.count, max)) {
        return true;
    }
    forget_bounds(plan);
    for (uint32_t i = 0; i < keys.count; i++) {
        int64_t nulls =
            i < meta->partition_stats.null_count_count ? meta->partition_stats.null_counts[i] : -1;
        if (!plan->values[i].null && !max[i].null) {
            bound(plan, keys.index[i], &plan->values[i], &max[i], nulls);
        }
    }
    return tn_predicate_may_match(plan->key_part, plan->bounds, -1);
}

/* ---- passes ---- */

/* What comes out is compared by its keys, and manifests may say anything. */
static tn_rc check_keys(const struct tn_plan *plan, const struct tn_file_meta *meta,
                        struct tn_err *err)
{
    const struct tn_level_file file = {
        .name = meta->file_name, .min_key = meta->min_key, .max_key = meta->max_key};
    return tn_level_file_check(&file, plan->spec.keys, err);
}

static tn_rc take_entry(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct tn_plan *plan = user;
    plan->files_seen++;
    tn_rc rc = check_keys(plan, &entry->file, err);
    if (rc != TN_OK) {
        return rc;
    }
    while (!outside(plan, entry->partition, entry->bucket)) {
        if (add_file(plan, entry)) {
            return TN_OK;
        }
        if (!make_room(plan, entry->partition, entry->bucket)) {
            return tn_err_set(err, TN_AGAIN, 0, "the files of bucket %d need more than %zu KB",
                              entry->bucket, plan->heap.size / 1024);
        }
    }
    return TN_OK;
}

static void free_pass(struct tn_plan *plan, uint32_t kept)
{
    for (uint32_t i = 0; i + kept < plan->bucket_count; i++) {
        free_bucket(plan, plan->buckets[i]);
    }
    free_bucket(plan, plan->limit);
    plan->limit = NULL;
    plan->closed = false;
    tn_heap_give(&plan->heap, plan->buckets);
    plan->buckets = NULL;
    plan->bucket_room = 0;
    plan->bucket_count = 0;
    plan->at = 0;
}

/* What was gathered before an error is of no use: it may be part of a bucket. */
static tn_rc run_pass(struct tn_plan *plan, struct tn_err *err)
{
    struct tn_live_filter filter = {.manifest = manifest_wanted, .entry = wanted, .user = plan};
    tn_rc rc = tn_live_each(plan->spec.root, plan->spec.snapshot, plan->spec.schema, &filter,
                            plan->worker, take_entry, plan, err);
    if (rc == TN_OK) {
        plan->passes++;
        plan->done = !plan->limit && !plan->closed;
    } else {
        free_pass(plan, 0);
    }
    return rc;
}

/* The last bucket becomes the floor: the next pass begins behind it. */
static void end_pass(struct tn_plan *plan)
{
    uint32_t kept = plan->bucket_count > 0;
    if (kept) {
        free_bucket(plan, plan->floor);
        plan->floor = plan->buckets[plan->bucket_count - 1];
        drop_files(plan, plan->floor);
    }
    free_pass(plan, kept);
}

static tn_rc take_scratch(struct tn_plan *plan, struct tn_arena *arena, struct tn_err *err)
{
    const struct tn_schema *schema = plan->spec.schema;
    uint32_t keys = schema->partition_keys.count + schema->trimmed_keys.count +
                    plan->spec.options->bucket_key.count;
    void *memory;
    tn_rc rc = tn_arena_need(arena,
                             schema->field_count * sizeof *plan->bounds +
                                 2 * (keys + 1) * sizeof *plan->values +
                                 (keys + 1) * sizeof *plan->partition_types,
                             "a plan", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    plan->bounds = memory;
    plan->values = (struct tn_value *)(void *)(plan->bounds + schema->field_count);
    plan->partition_types = (struct tn_type *)(void *)(plan->values + 2 * (keys + 1));
    for (uint32_t i = 0; i < schema->partition_keys.count; i++) {
        plan->partition_types[i] = schema->fields[schema->partition_keys.index[i]].type;
    }
    return TN_OK;
}

static tn_rc split_predicate(struct tn_plan *plan, struct tn_arena *arena, struct tn_err *err)
{
    const struct tn_schema *schema = plan->spec.schema;
    void *memory;
    tn_rc rc = tn_arena_need(arena, schema->field_count * sizeof(bool), "a plan", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    bool *fields = memory;
    for (uint32_t i = 0; i < schema->partition_keys.count; i++) {
        fields[schema->partition_keys.index[i]] = true;
    }
    for (uint32_t i = 0; i < schema->trimmed_keys.count; i++) {
        fields[schema->trimmed_keys.index[i]] = true;
    }
    plan->key_part = tn_predicate_only(plan->spec.predicate, fields, arena);
    return TN_OK;
}

tn_rc tn_plan_open(struct tn_plan *plan, const struct tn_plan_spec *spec, void *window,
                   size_t window_size, struct tn_arena *arena, struct tn_worker *worker,
                   struct tn_err *err)
{
    *plan = (struct tn_plan){.spec = *spec, .worker = worker};
    tn_heap_init(&plan->heap, window, window_size, false);
    tn_rc rc = take_scratch(plan, arena, err);
    if (rc == TN_OK && spec->predicate) {
        rc = split_predicate(plan, arena, err);
    }
    return rc;
}

tn_rc tn_plan_next(struct tn_plan *plan, struct tn_plan_bucket **bucket, struct tn_err *err)
{
    while (plan->at == plan->bucket_count) {
        end_pass(plan);
        if (plan->done) {
            return TN_ABSENT;
        }
        tn_rc rc = run_pass(plan, err);
        if (rc != TN_OK) {
            return rc;
        }
    }
    *bucket = plan->buckets[plan->at++];
    return TN_OK;
}
