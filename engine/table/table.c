#include "table/table.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "file/names.h"
#include "table/state.h"

enum {
    PAGE_SIZE_MAX = 64 * 1024,
    PAGE_SIZE_MIN = 4 * 1024,
    PAGES_A_BUCKET = 4,    /* design §4 */
    OPEN_PARTITIONED = 16, /* buckets a partitioned table is expected to have open: a guess */
    FLUSHES_A_SLICE = 2,   /* design §3: one slice may run after at most two flushes */
    POSITIONS_MAX = 32,    /* sources that snapshots carry: 160 bytes each */
    ROUND_SHARE = 6,       /* of the table part: 1/6 a round */
    COMPACTION_SHARE = 4,
};

/* ---- open ---- */

static tn_rc columns_in_layout(struct tn_columns fields, const int32_t *column_of,
                               struct tn_arena *arena, struct tn_columns *columns,
                               struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(arena, (fields.count + 1) * sizeof(uint32_t), "columns", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    uint32_t *index = memory;
    for (uint32_t i = 0; i < fields.count; i++) {
        int32_t column = column_of[fields.index[i]];
        TN_CHECK(column >= 0); /* options and keys never name a nested column */
        index[i] = (uint32_t)column;
    }
    *columns = (struct tn_columns){index, fields.count};
    return TN_OK;
}

static tn_rc init_read(struct tn_table *t, const uint32_t *field_of, struct tn_arena *arena,
                       struct tn_err *err)
{
    void *memory;
    tn_rc rc =
        tn_arena_need(arena, t->layout.column_count * sizeof(int32_t), "field ids", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    int32_t *ids = memory;
    for (uint32_t i = 0; i < t->layout.column_count; i++) {
        ids[i] = t->schema->fields[field_of[i]].id;
    }
    t->read = (struct tn_read_spec){&t->layout, ids, t->order.keys};
    return TN_OK;
}

static tn_rc init_layout(struct tn_table *t, struct tn_arena *arena, struct tn_err *err)
{
    uint32_t *field_of;
    int32_t *column_of;
    tn_rc rc = tn_schema_layout(t->schema, &t->layout, &field_of, &column_of, arena, err);
    if (rc == TN_OK && t->layout.column_count != t->schema->field_count) {
        rc = tn_err_set(err, TN_UNSUPPORTED, 0, "%s has nested columns, which can't be written yet",
                        t->spec.name);
    }
    if (rc == TN_OK) {
        rc = columns_in_layout(t->schema->trimmed_keys, column_of, arena, &t->order.keys, err);
    }
    if (rc == TN_OK) {
        rc = columns_in_layout(t->options.sequence_fields, column_of, arena,
                               &t->order.sequence_fields, err);
    }
    if (rc == TN_OK) {
        rc = columns_in_layout(t->schema->partition_keys, column_of, arena, &t->route.partition,
                               err);
    }
    if (rc == TN_OK) {
        rc = columns_in_layout(t->options.bucket_key, column_of, arena, &t->route.bucket_key, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    t->keyed = t->schema->primary_keys.count > 0;
    t->order.layout = &t->layout;
    t->order.sequence_descending = t->options.sequence_descending;
    t->order.prefix_decides = t->keyed && tn_row_prefix_decides(&t->layout, t->order.keys);
    t->route.layout = &t->layout;
    t->route.function = t->options.bucket_function;
    t->route.bucket_count = t->options.bucket;
    rc = tn_key_types_init(&t->key_types, t->schema, arena, err);
    return rc == TN_OK ? init_read(t, field_of, arena, err) : rc;
}

/* Every schema version, so that a task only looks them up. */
static tn_rc load_schemas(struct tn_table *t, struct tn_err *err)
{
    tn_rc rc = tn_schemas_newest(&t->schemas, &t->schema, err);
    for (int64_t id = 0; rc == TN_OK && id < t->schema->id; id++) {
        const struct tn_schema *ignored;
        rc = tn_schemas_load(&t->schemas, id, &ignored, err);
        rc = rc == TN_ABSENT ? TN_OK : rc; /* a file that names it will say so */
    }
    return rc;
}

/* Pages are halved until the buckets that are expected to be open have four each. */
static uint32_t page_size(const struct tn_table *t)
{
    uint32_t buckets = t->options.bucket > 0 ? (uint32_t)t->options.bucket : 1;
    if (t->schema->partition_keys.count > 0 && buckets < OPEN_PARTITIONED) {
        buckets = OPEN_PARTITIONED;
    }
    buckets = buckets < TN_TABLE_BUCKETS_MAX ? buckets : TN_TABLE_BUCKETS_MAX;
    uint32_t size = PAGE_SIZE_MAX;
    while (size > PAGE_SIZE_MIN &&
           (size_t)size * PAGES_A_BUCKET * buckets > t->env->memtable_size) {
        size /= 2;
    }
    return size;
}

static tn_rc init_memory(struct tn_table *t, struct tn_arena *arena, struct tn_err *err)
{
    size_t shares[] = {arena->size / ROUND_SHARE, arena->size / ROUND_SHARE,
                       arena->size / COMPACTION_SHARE};
    struct tn_arena *parts[] = {&t->rounds[0].arena, &t->rounds[1].arena, &t->slice.arena};
    void *memory;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        tn_rc rc = tn_arena_need(arena, shares[i], "a round", &memory, err);
        if (rc != TN_OK) {
            return rc;
        }
        tn_arena_init(parts[i], memory, shares[i]);
    }
    uint32_t slot = ((uint32_t)sizeof(struct tn_frozen) + 15) & ~15u;
    size_t frozen_size = TN_TABLE_FROZEN_MAX * ((size_t)slot + 16);
    size_t bucket_size = TN_TABLE_BUCKETS_MAX * sizeof *t->buckets;
    size_t slots_size = TN_TABLE_SLOTS * sizeof(struct tn_bucket *);
    tn_rc rc = tn_arena_need(arena, bucket_size + slots_size + TN_TABLE_ROUTE_SIZE + frozen_size,
                             "buckets", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    t->buckets = memory;
    t->slots = (struct tn_bucket **)(void *)(t->buckets + TN_TABLE_BUCKETS_MAX);
    unsigned char *at = (unsigned char *)(t->slots + TN_TABLE_SLOTS);
    tn_buf_init(&t->route_scratch, at, TN_TABLE_ROUTE_SIZE);
    tn_pool_init(&t->frozen_slots, at + TN_TABLE_ROUTE_SIZE, frozen_size, slot);
    tn_pool_init(&t->pages, t->env->memtable, t->env->memtable_size, page_size(t));
    return TN_OK;
}

/* The first round goes on from the newest of ours, with the positions of all sources. */
static tn_rc open_round(struct tn_table *t, struct tn_err *err)
{
    t->open = &t->rounds[0];
    tn_round_open(t->open, t->recovered.round + 1);
    size_t prefix = sizeof TN_POSITION_PROPERTY - 1;
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < t->recovered.properties.count; i++) {
        const struct tn_json_pair *pair = &t->recovered.properties.pairs[i];
        if (strncmp(pair->key, TN_POSITION_PROPERTY, prefix) == 0) {
            rc = tn_round_position(t->open, pair->key + prefix, pair->value, err);
        }
    }
    t->open->positions_moved = false;
    return rc;
}

static tn_rc open_parts(struct tn_table *t, struct tn_err *err)
{
    struct tn_arena *arena = t->env->arena;
    tn_rc rc = tn_name_table_root(arena, t->spec.name, &t->root, err);
    if (rc == TN_OK && t->spec.who) {
        rc = tn_table_lock(t->env->io, t->spec.name, t->spec.who, arena, &t->lock, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    tn_schemas_init(&t->schemas, t->env->io, t->root, arena);
    rc = load_schemas(t, err);
    if (rc == TN_OK) {
        rc = tn_options_read(t->schema, TN_OPTIONS_WRITE, arena, &t->options, err);
    }
    if (rc == TN_OK) {
        rc = init_layout(t, arena, err);
    }
    if (rc == TN_OK) {
        rc = tn_table_recover(t->env->io, t->env->clock, t->spec.name, t->root, arena,
                              &t->recovered, err);
    }
    if (rc == TN_OK) {
        rc = init_memory(t, arena, err);
    }
    return rc == TN_OK ? open_round(t, err) : rc;
}

tn_rc tn_table_open(struct tn_env *env, const struct tn_table_spec *spec, struct tn_table **table,
                    struct tn_err *err)
{
    size_t mark = tn_arena_mark(env->arena);
    struct tn_table *t = tn_arena_take(env->arena, sizeof *t);
    if (!t) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory to open %s", spec->name);
    }
    t->env = env;
    t->spec = *spec;
    t->arena_mark = mark;
    t->lock = -1;
    tn_rc rc = open_parts(t, err);
    if (rc != TN_OK) {
        if (t->lock >= 0) {
            env->io->vtable->close(env->io, t->lock);
        }
        tn_arena_reset(env->arena, mark);
        return tn_err_in(err, "%s", spec->name);
    }
    (void)snprintf(t->user, sizeof t->user, "tarn-%s", t->recovered.writer);
    t->last_seen = t->recovered.latest_id;
    *table = t;
    return TN_OK;
}

/* ---- buckets ---- */

static uint32_t slot_of(const struct tn_table *t, struct tn_bytes partition, int32_t number)
{
    uint64_t hash = tn_hash_64(partition, (uint64_t)(uint32_t)number);
    for (uint32_t i = (uint32_t)hash % TN_TABLE_SLOTS;; i = (i + 1) % TN_TABLE_SLOTS) {
        const struct tn_bucket *bucket = t->slots[i];
        if (!bucket || (bucket->number == number && tn_bytes_equal(bucket->partition, partition))) {
            return i;
        }
    }
}

static void rebuild_slots(struct tn_table *t)
{
    memset(t->slots, 0, TN_TABLE_SLOTS * sizeof *t->slots);
    for (uint32_t i = 0; i < TN_TABLE_BUCKETS_MAX; i++) {
        struct tn_bucket *bucket = &t->buckets[i];
        if (bucket->state != TN_BUCKET_FREE) {
            t->slots[slot_of(t, bucket->partition, bucket->number)] = bucket;
        }
    }
}

/* Nothing of it is uncommitted or under way. */
static bool bucket_idle(const struct tn_table *t, const struct tn_bucket *b)
{
    if (b->state != TN_BUCKET_READY || b->active || b->frozen || b->flushing || b->compacting ||
        b->last_round >= t->open->number) {
        return false;
    }
    for (uint32_t i = 0; i < (b->levels ? b->levels->count : 0); i++) {
        if (b->levels->files[i]->round != 0) {
            return false;
        }
    }
    return true;
}

static void close_bucket(struct tn_table *t, struct tn_bucket *bucket)
{
    struct tn_heap *heap = t->env->levels;
    tn_levels_drop(heap, bucket->levels);
    tn_heap_give(heap, (void *)bucket->partition.data);
    tn_heap_give(heap, (void *)bucket->dir);
    *bucket = (struct tn_bucket){.state = TN_BUCKET_FREE};
    if (t->last_bucket == bucket) {
        t->last_bucket = NULL;
    }
}

/* The bucket longest idle is closed, or NULL is returned when none is. */
static struct tn_bucket *free_bucket(struct tn_table *t)
{
    struct tn_bucket *oldest = NULL;
    for (uint32_t i = 0; i < TN_TABLE_BUCKETS_MAX; i++) {
        struct tn_bucket *bucket = &t->buckets[i];
        if (bucket->state == TN_BUCKET_FREE) {
            return bucket;
        }
        if (bucket_idle(t, bucket) && (!oldest || bucket->last_round < oldest->last_round)) {
            oldest = bucket;
        }
    }
    if (oldest) {
        close_bucket(t, oldest);
        rebuild_slots(t);
    }
    return oldest;
}

void tn_table_release(struct tn_table *table)
{
    for (uint32_t i = 0; i < TN_TABLE_BUCKETS_MAX; i++) {
        if (bucket_idle(table, &table->buckets[i])) {
            close_bucket(table, &table->buckets[i]);
        }
    }
    rebuild_slots(table);
}

static tn_rc name_bucket(struct tn_table *t, struct tn_bytes partition, int32_t number,
                         struct tn_bucket *bucket, struct tn_err *err)
{
    struct tn_arena *scratch = t->env->arena;
    struct tn_heap *heap = t->env->levels;
    size_t mark = tn_arena_mark(scratch);
    const char *dir;
    tn_rc rc =
        tn_name_bucket(scratch, t->root, t->schema, &t->options, partition, number, &dir, err);
    if (rc == TN_OK) {
        size_t size = strlen(dir) + 1;
        char *kept = tn_heap_take(heap, size);
        unsigned char *bytes = kept ? tn_heap_take(heap, partition.size) : NULL;
        if (bytes) {
            memcpy(kept, dir, size);
            memcpy(bytes, partition.data, partition.size);
            bucket->dir = kept;
            bucket->partition = (struct tn_bytes){bytes, partition.size};
        } else {
            tn_heap_give(heap, kept);
            rc = tn_err_set(err, TN_AGAIN, 0, "no memory to open another bucket");
        }
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

static tn_rc open_bucket(struct tn_table *t, struct tn_bytes partition, int32_t number,
                         struct tn_bucket **out, struct tn_err *err)
{
    struct tn_bucket *bucket = free_bucket(t);
    if (!bucket) {
        return tn_err_set(err, TN_AGAIN, 0, "%d buckets are open and none is idle",
                          TN_TABLE_BUCKETS_MAX);
    }
    tn_rc rc = name_bucket(t, partition, number, bucket, err);
    if (rc != TN_OK) {
        return rc;
    }
    bucket->state = TN_BUCKET_LOADING;
    bucket->number = number;
    bucket->frozen_end = &bucket->frozen;
    bucket->last_round = t->open->number;
    bucket->last_full_ms = -1;
    tn_clock_uuid(t->env->clock, bucket->uuid);
    t->slots[slot_of(t, bucket->partition, number)] = bucket;
    *out = bucket;
    return TN_OK;
}

static tn_rc find_bucket(struct tn_table *t, struct tn_bytes partition, int32_t number,
                         struct tn_bucket **out, struct tn_err *err)
{
    struct tn_bucket *bucket = t->last_bucket;
    if (!bucket || bucket->number != number || !tn_bytes_equal(bucket->partition, partition)) {
        bucket = t->slots[slot_of(t, partition, number)];
        if (!bucket) {
            tn_rc rc = open_bucket(t, partition, number, &bucket, err);
            if (rc != TN_OK) {
                return rc;
            }
        }
        t->last_bucket = bucket;
    }
    *out = bucket;
    return TN_OK;
}

tn_rc tn_table_touch(struct tn_table *table, struct tn_bytes partition, int32_t bucket,
                     struct tn_err *err)
{
    struct tn_bucket *found;
    tn_rc rc = find_bucket(table, partition, bucket, &found, err);
    if (rc == TN_OK && found->state != TN_BUCKET_READY) {
        return tn_err_set(err, TN_AGAIN, 0, "the bucket's files are being read");
    }
    return rc;
}

/* ---- rows ---- */

static tn_rc kind_of_row(const struct tn_table *t, struct tn_row row, enum tn_row_kind *kind,
                         struct tn_err *err)
{
    if (t->options.rowkind_field < 0) {
        return TN_OK;
    }
    uint32_t column = (uint32_t)t->options.rowkind_field;
    const char *name = t->layout.columns[column].name;
    if (tn_row_null(row, column)) {
        return tn_err_set(err, TN_INVALID, 0, "column '%s' (rowkind.field) is NULL", name);
    }
    struct tn_bytes text = tn_row_bytes(&t->layout, row, column);
    if (!tn_row_kind_parse(text, kind)) {
        return tn_err_set(err, TN_INVALID, 0, "column '%s' (rowkind.field): '%.*s' is no row kind",
                          name, (int)(text.size < 32 ? text.size : 32), (const char *)text.data);
    }
    return TN_OK;
}

static bool filtered(const struct tn_table *t, enum tn_row_kind kind)
{
    return (t->options.ignore_delete && tn_row_kind_retracts(kind)) ||
           (t->options.ignore_update_before && kind == TN_ROW_UPDATE_BEFORE);
}

static tn_rc take_active(struct tn_table *t, struct tn_bucket *bucket, struct tn_err *err)
{
    struct tn_frozen *active = tn_pool_take(&t->frozen_slots);
    if (!active) {
        t->pages_short = true;
        return tn_err_set(err, TN_AGAIN, 0, "%d memtables wait to be flushed", TN_TABLE_FROZEN_MAX);
    }
    *active = (struct tn_frozen){0};
    tn_memtable_init(&active->memtable, &t->pages, &t->order);
    bucket->active = active;
    return TN_OK;
}

static tn_rc put_routed(struct tn_table *t, struct tn_bucket *bucket, struct tn_row row,
                        enum tn_row_kind kind, struct tn_err *err)
{
    if (bucket->state != TN_BUCKET_READY) {
        return tn_err_set(err, TN_AGAIN, 0, "the bucket's files are being read");
    }
    if (!bucket->active) {
        tn_rc rc = take_active(t, bucket, err);
        if (rc != TN_OK) {
            return rc;
        }
    }
    tn_rc rc = tn_memtable_put(&bucket->active->memtable, row, kind, bucket->next_sequence, err);
    if (rc == TN_OK) {
        bucket->next_sequence++;
        bucket->last_round = t->open->number;
        t->counts.rows++;
    }
    t->pages_short = t->pages_short || rc == TN_AGAIN;
    return rc;
}

tn_rc tn_table_put(struct tn_table *table, struct tn_row row, enum tn_row_kind kind,
                   struct tn_err *err)
{
    if (row.size > table->env->row_size_max) {
        return tn_err_set(err, TN_INVALID, 0, "a row of %u bytes, at most %u fit the memory",
                          row.size, table->env->row_size_max);
    }
    tn_rc rc = kind_of_row(table, row, &kind, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (filtered(table, kind)) {
        table->counts.rows_filtered++;
        return TN_OK;
    }
    if (!table->keyed && tn_row_kind_retracts(kind)) {
        return tn_err_set(err, TN_INVALID, 0, "an append table can't take a row of kind %s",
                          tn_row_kind_text(kind));
    }
    struct tn_route route;
    rc = tn_route(&table->route, row, &table->route_scratch, &route, err);
    struct tn_bucket *bucket = NULL;
    if (rc == TN_OK) {
        rc = find_bucket(table, route.partition, route.bucket, &bucket, err);
    }
    return rc == TN_OK ? put_routed(table, bucket, row, kind, err) : rc;
}

/* ---- rounds ---- */

static void freeze(struct tn_table *t, struct tn_bucket *bucket)
{
    struct tn_frozen *active = bucket->active;
    bucket->active = NULL;
    if (active->memtable.count == 0) {
        tn_memtable_drop(&active->memtable);
        tn_pool_give(&t->frozen_slots, active);
        return;
    }
    tn_memtable_freeze(&active->memtable);
    active->round = t->open->number;
    *bucket->frozen_end = active;
    bucket->frozen_end = &active->next;
}

static bool frozen_waits(const struct tn_table *t)
{
    for (uint32_t i = 0; i < TN_TABLE_BUCKETS_MAX; i++) {
        if (t->buckets[i].frozen) {
            return true;
        }
    }
    return false;
}

/* Pages are short: the bucket that has most of them is to give them back, unless some wait for that
 * already. */
static void freeze_largest(struct tn_table *t)
{
    struct tn_bucket *largest = NULL;
    for (uint32_t i = 0; i < TN_TABLE_BUCKETS_MAX; i++) {
        struct tn_bucket *bucket = &t->buckets[i];
        if (bucket->active && (!largest || tn_bucket_pages(bucket) > tn_bucket_pages(largest))) {
            largest = bucket;
        }
    }
    if (largest) {
        freeze(t, largest);
    }
}

tn_rc tn_table_position(struct tn_table *table, const char *source, const char *text,
                        struct tn_err *err)
{
    return tn_round_position(table->open, source, text, err);
}

bool tn_table_wants_cut(const struct tn_table *table)
{
    return tn_round_nearly_full(table->open) || table->result_waits;
}

/* Positions are carried on, so that each snapshot of ours has those of all sources; of finished
 * files the oldest go. */
static tn_rc carry_positions(const struct tn_round *from, struct tn_round *to, struct tn_err *err)
{
    uint32_t count = 0;
    tn_rc rc = TN_OK;
    for (const struct tn_round_position *p = from->positions; rc == TN_OK && p; p = p->next) {
        if (count++ < POSITIONS_MAX) {
            rc = tn_round_position(to, p->source, p->text, err);
        }
    }
    return rc;
}

tn_rc tn_table_cut(struct tn_table *table, uint64_t row_count, struct tn_err *err)
{
    if (table->closing) {
        return tn_err_set(err, TN_AGAIN, 0, "a round is closing");
    }
    for (uint32_t i = 0; i < TN_TABLE_BUCKETS_MAX; i++) {
        if (table->buckets[i].active) {
            freeze(table, &table->buckets[i]);
        }
    }
    struct tn_round *next =
        table->open == &table->rounds[0] ? &table->rounds[1] : &table->rounds[0];
    tn_round_open(next, table->open->number + 1);
    tn_rc rc = carry_positions(table->open, next, err);
    if (rc != TN_OK) {
        return rc;
    }
    next->positions_moved = false; /* carried on is not moved */
    table->closing = table->open;
    table->closing->state = TN_ROUND_DRAINING;
    table->closing->row_count = row_count;
    table->open = next;
    table->cut_rows = row_count;
    return TN_OK;
}

/* ---- what to do next ---- */

static uint32_t run_count(const struct tn_bucket *bucket)
{
    return tn_levels_runs(bucket->levels, NULL, 0);
}

/* At the stop trigger a flush waits for the bucket's compaction. Source: behaviour spec, 2.6. */
static bool stalled(const struct tn_table *t, const struct tn_bucket *bucket)
{
    int32_t stop = t->options.stop_trigger > t->options.compaction_trigger
                       ? t->options.stop_trigger
                       : t->options.compaction_trigger;
    return t->keyed && tn_table_may_compact(t) && run_count(bucket) > (uint32_t)stop &&
           (bucket->compacting || (t->compact_due && !t->slice.active));
}

/* The oldest frozen memtable of a bucket, those of the closing round before others. */
static struct tn_bucket *pick_flush(struct tn_table *t)
{
    struct tn_bucket *best = NULL;
    for (uint32_t i = 0; i < TN_TABLE_BUCKETS_MAX; i++) {
        struct tn_bucket *bucket = &t->buckets[i];
        if (!bucket->frozen || bucket->flushing || bucket->state != TN_BUCKET_READY) {
            continue;
        }
        bool waits = stalled(t, bucket);
        t->counts.stalls += waits && !bucket->stalled;
        bucket->stalled = waits;
        if (waits) {
            continue;
        }
        if (!best || bucket->frozen->round < best->frozen->round) {
            best = bucket;
        }
    }
    return best;
}

/* The bucket with most runs for which there is something to pick. */
static bool begin_compaction(struct tn_table *t)
{
    if (!tn_table_may_compact(t) || !t->compact_due || t->slice.active || t->reload) {
        return false;
    }
    uint32_t limit = UINT32_MAX; /* runs of the last one tried: each bucket is tried once */
    uint32_t limit_index = 0;
    for (;;) {
        struct tn_bucket *best = NULL;
        uint32_t best_runs = 0;
        uint32_t best_index = 0;
        for (uint32_t i = 0; i < TN_TABLE_BUCKETS_MAX; i++) {
            struct tn_bucket *bucket = &t->buckets[i];
            uint32_t runs = bucket->state == TN_BUCKET_READY ? run_count(bucket) : 0;
            bool tried = runs > limit || (runs == limit && i <= limit_index);
            if (runs > best_runs && !tried) {
                best = bucket;
                best_runs = runs;
                best_index = i;
            }
        }
        if (!best) {
            t->compact_due = false;
            return false;
        }
        if (tn_work_pick(t, best)) {
            return true;
        }
        limit = best_runs;
        limit_index = best_index;
    }
}

static bool round_drained(const struct tn_table *t)
{
    if (t->flush.under_way && t->flush.bucket->frozen->round == t->closing->number) {
        return false;
    }
    for (uint32_t i = 0; i < TN_TABLE_BUCKETS_MAX; i++) {
        const struct tn_frozen *frozen = t->buckets[i].frozen;
        if (frozen && frozen->round == t->closing->number) {
            return false;
        }
    }
    bool must_compact = t->options.force_compact && tn_table_may_compact(t);
    return !must_compact || (!t->slice.active && !t->compact_due);
}

static void start_load(struct tn_table *t)
{
    for (uint32_t i = 0; i < TN_TABLE_BUCKETS_MAX && !t->load.under_way; i++) {
        if (t->buckets[i].state == TN_BUCKET_LOADING) {
            tn_work_load(t, &t->buckets[i]);
        }
    }
}

static void start_long(struct tn_table *t)
{
    if (t->flush.under_way || t->slice.under_way) {
        return;
    }
    if (t->slice.active && t->slice.compaction.finished) {
        t->result_waits = !tn_work_apply(t);
    }
    (void)begin_compaction(t);
    struct tn_bucket *bucket = pick_flush(t);
    bool slice = t->slice.active && !t->slice.compaction.finished;
    if (slice && (!bucket || t->flushes_since_slice >= FLUSHES_A_SLICE)) {
        t->flushes_since_slice = 0;
        tn_work_slice(t);
    } else if (bucket) {
        t->flushes_since_slice++;
        tn_work_flush(t, bucket);
    }
}

static tn_rc dir_of_entry(void *user, const struct tn_entry *entry, const char **dir,
                          struct tn_err *err)
{
    struct tn_table *t = user;
    return tn_name_bucket(t->env->arena, t->root, t->schema, &t->options, entry->partition,
                          entry->bucket, dir, err);
}

static tn_rc drop_compactions(struct tn_table *t, struct tn_round *round, struct tn_err *err)
{
    size_t mark = tn_arena_mark(t->env->arena);
    tn_rc rc = tn_round_drop_compactions(round, t->env->levels, dir_of_entry, t, err);
    tn_arena_reset(t->env->arena, mark);
    return rc;
}

/* Levels are stale: once nothing works on them, compaction results that nobody has committed are
 * dropped and every bucket is read again. */
static void start_reload(struct tn_table *t)
{
    if (t->flush.under_way || t->slice.under_way || t->load.under_way || t->commit.under_way) {
        return;
    }
    struct tn_err err = {0};
    tn_work_abort_compaction(t);
    tn_rc rc = drop_compactions(t, t->open, &err);
    if (rc == TN_OK && t->closing) {
        rc = drop_compactions(t, t->closing, &err);
    }
    if (rc != TN_OK) {
        t->broken = true;
        tn_table_fail(t, rc, &err);
        return;
    }
    for (uint32_t i = 0; i < TN_TABLE_BUCKETS_MAX; i++) {
        if (t->buckets[i].state == TN_BUCKET_READY) {
            t->buckets[i].state = TN_BUCKET_LOADING;
        }
    }
    t->result_waits = false;
    t->reload = false;
}

static void start_work(struct tn_table *t)
{
    if (t->reload) {
        start_reload(t);
    }
    if (t->pages_short && !t->flush.under_way && !frozen_waits(t)) {
        freeze_largest(t);
        t->pages_short = false;
    }
    start_load(t);
    if (!t->reload) {
        start_long(t);
    }
    if (t->closing && t->closing->state == TN_ROUND_DRAINING && !t->commit.under_way &&
        round_drained(t)) {
        tn_work_commit(t);
    }
}

tn_rc tn_table_turn(struct tn_table *table, bool wait, struct tn_err *err)
{
    if (table->broken) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "%s must be opened again", table->spec.name);
    }
    start_work(table);
    (void)tn_exec_turn(table->env->exec, wait);
    if (table->rc != TN_OK) {
        tn_rc rc = table->rc;
        *err = table->err;
        table->rc = TN_OK;
        /* Memory that a task lacks will lack the next time, too: to the caller that is no "try
         * again". */
        return rc == TN_AGAIN ? tn_err_set(err, TN_UNSUPPORTED, 0, "%s", table->err.text) : rc;
    }
    return TN_OK;
}

bool tn_table_idle(const struct tn_table *table)
{
    if (table->load.under_way || table->flush.under_way || table->slice.active ||
        table->commit.under_way || table->closing || table->reload || frozen_waits(table) ||
        (tn_table_may_compact(table) && table->compact_due)) {
        return false;
    }
    for (uint32_t i = 0; i < TN_TABLE_BUCKETS_MAX; i++) {
        if (table->buckets[i].state == TN_BUCKET_LOADING) {
            return false;
        }
    }
    return true;
}

static tn_rc turn_until_idle(struct tn_table *t, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    while (rc == TN_OK && !tn_table_idle(t)) {
        if (t->result_waits && !t->closing) {
            rc = tn_table_cut(t, t->cut_rows, err); /* makes room for the result */
        }
        if (rc == TN_OK) {
            rc = tn_table_turn(t, true, err);
        }
    }
    return rc;
}

static tn_rc cut_when_possible(struct tn_table *t, uint64_t row_count, struct tn_err *err)
{
    tn_rc rc = tn_table_cut(t, row_count, err);
    while (rc == TN_AGAIN) {
        rc = tn_table_turn(t, true, err);
        if (rc == TN_OK) {
            rc = tn_table_cut(t, row_count, err);
        }
    }
    return rc;
}

tn_rc tn_table_finish(struct tn_table *table, uint64_t row_count, struct tn_err *err)
{
    tn_rc rc = cut_when_possible(table, row_count, err);
    if (rc == TN_OK) {
        rc = turn_until_idle(table, err);
    }
    while (rc == TN_OK && !tn_round_empty(table->open)) { /* compactions that ended later */
        rc = cut_when_possible(table, row_count, err);
        if (rc == TN_OK) {
            rc = turn_until_idle(table, err);
        }
    }
    return rc;
}

/* ---- close, and what others ask ---- */

static void drop_frozen(struct tn_table *t, struct tn_frozen *frozen)
{
    tn_memtable_drop(&frozen->memtable);
    tn_pool_give(&t->frozen_slots, frozen);
}

static void drop_rows(struct tn_table *t, struct tn_bucket *bucket)
{
    if (bucket->active) {
        drop_frozen(t, bucket->active);
    }
    while (bucket->frozen) {
        struct tn_frozen *frozen = bucket->frozen;
        bucket->frozen = frozen->next;
        drop_frozen(t, frozen);
    }
}

static void unlink_entry(struct tn_table *t, const struct tn_entry *entry)
{
    size_t mark = tn_arena_mark(t->env->arena);
    struct tn_err ignored = {0};
    const char *dir;
    if (dir_of_entry(t, entry, &dir, &ignored) == TN_OK) {
        const char *path = tn_arena_format(t->env->arena, "%s%s", dir, entry->file.file_name);
        if (path) {
            (void)t->env->io->vtable->unlink(t->env->io, path, &ignored);
        }
    }
    tn_arena_reset(t->env->arena, mark);
}

/* Files that no snapshot names go; where a commit's outcome is unknown they stay. */
static void drop_round(struct tn_table *t, struct tn_round *round)
{
    struct tn_round_entry *lists[] = {round->added, round->compacted};
    for (size_t i = 0; i < 2; i++) {
        for (struct tn_round_entry *entry = lists[i]; entry; entry = entry->next) {
            if (!round->unknown) {
                unlink_entry(t, &entry->entry);
            }
            tn_level_file_drop(t->env->levels, entry->file);
        }
    }
    for (const struct tn_round_garbage *g = round->garbage; g; g = g->next) {
        struct tn_err ignored = {0};
        (void)t->env->io->vtable->unlink(t->env->io, g->path, &ignored);
    }
}

void tn_table_close(struct tn_table *table)
{
    struct tn_env *env = table->env;
    while (env->exec->under_way > 0) {
        (void)tn_exec_turn(env->exec, true);
    }
    tn_work_abort_compaction(table);
    for (uint32_t i = 0; i < TN_TABLE_BUCKETS_MAX; i++) {
        if (table->buckets[i].state != TN_BUCKET_FREE) {
            drop_rows(table, &table->buckets[i]);
            close_bucket(table, &table->buckets[i]);
        }
    }
    drop_round(table, table->open);
    if (table->closing) {
        drop_round(table, table->closing);
    }
    if (table->lock >= 0) {
        env->io->vtable->close(env->io, table->lock);
    }
    tn_arena_reset(env->arena, table->arena_mark);
}

const struct tn_schema *tn_table_schema(const struct tn_table *table)
{
    return table->schema;
}

const struct tn_options *tn_table_options(const struct tn_table *table)
{
    return &table->options;
}

const struct tn_row_layout *tn_table_layout(const struct tn_table *table)
{
    return &table->layout;
}

const struct tn_recovered *tn_table_recovered(const struct tn_table *table)
{
    return &table->recovered;
}

const char *tn_table_root(const struct tn_table *table)
{
    return table->root;
}

const struct tn_table_counts *tn_table_counts(const struct tn_table *table)
{
    return &table->counts;
}

const char *tn_table_position_of(const struct tn_table *table, const char *source)
{
    const struct tn_json_map *map = &table->recovered.properties;
    size_t prefix = sizeof TN_POSITION_PROPERTY - 1;
    for (uint32_t i = 0; i < map->count; i++) {
        const char *key = map->pairs[i].key;
        if (strncmp(key, TN_POSITION_PROPERTY, prefix) == 0 && strcmp(key + prefix, source) == 0) {
            return map->pairs[i].value;
        }
    }
    return NULL;
}
