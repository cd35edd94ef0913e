#include "table/census.h"

static int compare(const struct tn_census_bucket *bucket, struct tn_bytes partition, int32_t number)
{
    int c = tn_bytes_compare(bucket->partition, partition);
    if (c != 0) {
        return c;
    }
    return bucket->number < number ? -1 : bucket->number > number;
}

static bool outside(const struct tn_census *c, struct tn_bytes partition, int32_t number)
{
    return (c->floor && compare(c->floor, partition, number) >= 0) ||
           (c->limit && compare(c->limit, partition, number) <= 0);
}

static uint32_t place_of(const struct tn_census *c, struct tn_bytes partition, int32_t number)
{
    uint32_t low = 0;
    uint32_t high = c->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare(c->buckets[middle], partition, number) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool make_room(struct tn_census *c)
{
    if (c->count < c->room) {
        return true;
    }
    uint32_t wanted = c->room ? 2 * c->room : 16;
    void *made = tn_heap_resize(&c->heap, c->buckets, wanted * sizeof *c->buckets);
    if (made) {
        c->buckets = made;
        c->room = wanted;
    }
    return made != NULL;
}

static bool insert(struct tn_census *c, uint32_t at, const struct tn_entry *entry)
{
    struct tn_census_bucket *bucket =
        make_room(c) ? tn_heap_take(&c->heap, sizeof *bucket + entry->partition.size) : NULL;
    if (!bucket) {
        return false;
    }
    unsigned char *bytes = (unsigned char *)(bucket + 1);
    memcpy(bytes, entry->partition.data, entry->partition.size);
    *bucket = (struct tn_census_bucket){.partition = {bytes, entry->partition.size},
                                        .number = entry->bucket,
                                        .total_buckets = entry->total_buckets,
                                        .newest_ms = INT64_MIN,
                                        .min_level = INT32_MAX};
    memmove(c->buckets + at + 1, c->buckets + at, (c->count - at) * sizeof *c->buckets);
    c->buckets[at] = bucket;
    c->count++;
    return true;
}

static void give_up_largest(struct tn_census *c)
{
    tn_heap_give(&c->heap, c->limit);
    c->limit = c->buckets[--c->count];
}

static int64_t add(int64_t a, int64_t b)
{
    int64_t sum;
    return b < 0 ? a : __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static void count_file(struct tn_census_bucket *bucket, const struct tn_file_meta *file)
{
    bucket->row_count = add(bucket->row_count, file->row_count);
    bucket->file_size = add(bucket->file_size, file->file_size);
    bucket->file_count++;
    if (file->creation_time_ms.present && file->creation_time_ms.value > bucket->newest_ms) {
        bucket->newest_ms = file->creation_time_ms.value;
    }
    bucket->min_level = file->level < bucket->min_level ? file->level : bucket->min_level;
}

static bool wanted(void *user, const struct tn_entry *entry)
{
    return !outside(user, entry->partition, entry->bucket);
}

static tn_rc take_entry(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct tn_census *c = user;
    while (!outside(c, entry->partition, entry->bucket)) {
        uint32_t at = place_of(c, entry->partition, entry->bucket);
        bool there = at < c->count && compare(c->buckets[at], entry->partition, entry->bucket) == 0;
        if (there || insert(c, at, entry)) {
            count_file(c->buckets[at], &entry->file);
            return TN_OK;
        }
        if (c->count == 0) {
            return tn_err_set(err, TN_AGAIN, 0, "no memory to look at buckets");
        }
        give_up_largest(c);
    }
    return TN_OK;
}

/* The last bucket becomes the floor. */
static void end_pass(struct tn_census *c)
{
    for (uint32_t i = 0; i + 1 < c->count; i++) {
        tn_heap_give(&c->heap, c->buckets[i]);
    }
    if (c->count > 0) {
        tn_heap_give(&c->heap, c->floor);
        c->floor = c->buckets[c->count - 1];
    }
    c->count = 0;
    c->done = c->started && !c->limit;
    tn_heap_give(&c->heap, c->limit);
    c->limit = NULL;
}

void tn_census_open(struct tn_census *census, const char *root, const struct tn_snapshot *snapshot,
                    const struct tn_schema *schema, void *window, size_t window_size,
                    struct tn_worker *worker)
{
    *census =
        (struct tn_census){.root = root, .snapshot = snapshot, .schema = schema, .worker = worker};
    tn_heap_init(&census->heap, window, window_size, false);
}

tn_rc tn_census_skip(struct tn_census *census, struct tn_bytes partition, int32_t number,
                     struct tn_err *err)
{
    struct tn_census_bucket *floor = tn_heap_take(&census->heap, sizeof *floor + partition.size);
    if (!floor) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory to look at buckets");
    }
    unsigned char *bytes = (unsigned char *)(floor + 1);
    memcpy(bytes, partition.data, partition.size);
    *floor = (struct tn_census_bucket){.partition = {bytes, partition.size}, .number = number};
    census->floor = floor;
    return TN_OK;
}

void tn_census_join(struct tn_census_bucket *sum, const struct tn_census_bucket *bucket)
{
    sum->row_count = add(sum->row_count, bucket->row_count);
    sum->file_size = add(sum->file_size, bucket->file_size);
    sum->file_count = add(sum->file_count, bucket->file_count);
    sum->newest_ms = bucket->newest_ms > sum->newest_ms ? bucket->newest_ms : sum->newest_ms;
    sum->min_level = bucket->min_level < sum->min_level ? bucket->min_level : sum->min_level;
}

tn_rc tn_census_next(struct tn_census *census, const struct tn_census_bucket **bucket,
                     struct tn_err *err)
{
    while (census->at == census->count) {
        end_pass(census);
        if (census->done) {
            return TN_ABSENT;
        }
        struct tn_live_filter filter = {.entry = wanted, .user = census};
        census->started = true;
        census->at = 0;
        tn_rc rc = tn_live_each(census->root, census->snapshot, census->schema, &filter,
                                census->worker, take_entry, census, err);
        if (rc != TN_OK) {
            return rc;
        }
    }
    *bucket = census->buckets[census->at++];
    return TN_OK;
}
