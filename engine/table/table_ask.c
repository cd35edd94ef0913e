/* What others ask of an open table. */
#include "table/state.h"

const struct tn_schema *tn_table_schema(const struct tn_table *table)
{
    return table->schema;
}

const struct tn_schema *tn_table_schema_of(const struct tn_table *table, int64_t id)
{
    return tn_schemas_find(&table->schemas, id);
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

const struct tn_commit_figures *tn_table_last_commit(const struct tn_table *table)
{
    return &table->last_commit;
}

tn_rc tn_table_behind(const struct tn_table *table, uint32_t *count)
{
    const struct tn_setbacks *setbacks = &table->setbacks;
    bool damage = setbacks->damage;
    for (uint32_t i = 0; i < setbacks->count; i++) {
        damage = damage || setbacks->items[i].rc == TN_CORRUPT;
    }
    *count = setbacks->count + setbacks->forgotten;
    if (*count == 0) {
        return TN_OK;
    }
    return damage ? TN_CORRUPT : TN_UNSUPPORTED;
}

static uint32_t runs_over(const struct tn_table *t, uint32_t runs)
{
    uint32_t trigger = (uint32_t)t->options.compaction_trigger;
    return tn_table_may_compact(t) && runs > trigger ? runs - trigger : 0;
}

static void add_size(uint64_t *most, uint64_t *sum, uint64_t size)
{
    *most = size > *most ? size : *most;
    *sum += size;
}

static void add_backlog(const struct tn_table *t, const struct tn_bucket *bucket,
                        struct tn_backlog *sum)
{
    const struct tn_levels *levels = bucket->levels;
    uint32_t count = levels ? levels->count : 0;
    uint32_t runs = t->keyed ? tn_levels_runs(levels, NULL, 0) : 0;
    uint32_t fresh = 0;
    uint32_t over = runs_over(t, runs);
    uint64_t size = 0;
    while (fresh < count && levels->files[fresh]->level == 0) {
        sum->level0_bytes += (uint64_t)levels->files[fresh]->size;
        fresh++;
    }
    for (uint32_t i = 0; i < count; i++) {
        size += (uint64_t)levels->files[i]->size;
    }
    sum->buckets++;
    sum->level0_files += fresh;
    sum->runs_over += over;
    sum->queued += over > 0 || bucket->compacting;
    sum->compacted += bucket->input_bytes > 0;
    add_size(&sum->size_max, &sum->size_sum, size);
    add_size(&sum->input_max, &sum->input_sum, bucket->input_bytes);
    add_size(&sum->output_max, &sum->output_sum, bucket->output_bytes);
    sum->runs_max = runs > sum->runs_max ? runs : sum->runs_max;
    sum->files_max = count > sum->files_max ? count : sum->files_max;
    sum->level0_max = fresh > sum->level0_max ? fresh : sum->level0_max;
    sum->stopped += tn_work_at_stop(t, bucket);
}

void tn_table_backlog(const struct tn_table *table, struct tn_backlog *backlog)
{
    const struct tn_options *o = &table->options;
    int32_t stop =
        o->stop_trigger > o->compaction_trigger ? o->stop_trigger : o->compaction_trigger;
    bool waits = table->keyed && tn_table_may_compact(table);
    *backlog = (struct tn_backlog){
        .stop = waits ? (uint32_t)stop : 0,
        .pages_size = (size_t)table->pages.block_count * table->pages.block_size,
        .pages_used = (size_t)table->pages.used * table->pages.block_size,
        .pages_peak = (size_t)table->pages.peak * table->pages.block_size};
    for (uint32_t i = 0; i < table->places.buckets; i++) {
        if (table->buckets[i].state != TN_BUCKET_FREE) {
            add_backlog(table, &table->buckets[i], backlog);
        }
    }
}

bool tn_table_spared(const struct tn_table *table)
{
    return table->spared;
}

bool tn_table_held(const struct tn_table *table)
{
    return table->held;
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
