#include "table/state.h"

#include <stdio.h>

#include "base/check.h"
#include "file/names.h"

enum {
    PAGE_SIZE_MAX = 64 * 1024,
    PAGE_SIZE_MIN = 4 * 1024,
    PAGES_A_BUCKET = 4,
    PAGES_LEAST = 2,       /* of a memtable: index, rows */
    OPEN_PARTITIONED = 64, /* buckets a partitioned table is expected to have open: a guess */
    ROUND_SHARE = 6,       /* of the table part: 1/6 a round */
    ROUND_LEAST = 10 * 1024,
    COMPACTION_SHARE = 4,
    LEFT_OVER = 8 * 1024, /* for paths, while the table is open */
    GATHER_SHARE = 32,    /* where changes are told: some 150 bytes a bucket and pass */
    ROW_SIZE_LEAST = 16 * 1024,
    COMMIT_FILE_SIZE = 1280, /* of a commit's memory a file takes, and half of it is for the rest */
};

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

/* A fold holds four rows more than a merge. One that tells changes holds a fifth, and reads the
 * state before and writes a changelog, too; where there is little memory, rows get what is left
 * beside the blocks of both files, the runs of the state, and two of the merge. */
static uint32_t change_row_size(const struct tn_env *env)
{
    enum { ROWS = 20, ROWS_BESIDE = 12, BLOCKS = 2 * 2 + 2 * (5 + 2) };
    size_t blocks = BLOCKS * (size_t)env->block_size;
    size_t beside = env->merge_size > blocks ? (env->merge_size - blocks) / ROWS_BESIDE : 0;
    size_t size = env->merge_size / ROWS;
    size = size < beside ? size : beside;
    return size > ROW_SIZE_LEAST ? (uint32_t)size : ROW_SIZE_LEAST;
}

static void init_row_size(struct tn_table *t)
{
    enum { FOLD_ROWS = 10 };
    struct tn_fold_spec fold = {.engine = t->engine, .mode = tn_fold_reading(&t->options)};
    bool changes = t->options.changelog_producer != TN_CHANGELOG_NONE ||
                   tn_options_need_lookup(&t->options) || t->spec.resolver;
    if (changes || t->keeps != TN_MEMTABLE_NEWEST || tn_fold_merges(&fold) == TN_MERGE_VERSIONS) {
        uint32_t size =
            changes ? change_row_size(t->env) : (uint32_t)(t->env->merge_size / FOLD_ROWS);
        t->row_size_max = size < t->row_size_max ? size : t->row_size_max;
    }
}

/* Where older versions count, or a changelog is made of them, all are kept until the flush, unless
 * the table has them merged as they come. */
static enum tn_memtable_keeps keeps_of(const struct tn_table *t)
{
    bool newest = tn_engine_keeps_newest(t->engine);
    if (t->options.local_merge_size > 0) {
        return newest ? TN_MEMTABLE_NEWEST : TN_MEMTABLE_FOLDED;
    }
    bool all = !newest || t->spec.resolver || t->options.changelog_producer == TN_CHANGELOG_INPUT;
    return all ? TN_MEMTABLE_ALL : TN_MEMTABLE_NEWEST;
}

/* Paimon merges rows that wait for a flush by hash where its rows have slots alone, which the key's
 * columns need not be. */
static bool merges_by_hash(const struct tn_table *t, const uint32_t *field_of)
{
    bool slots = t->options.local_merge_size > 0;
    for (uint32_t i = 0; i < t->layout.column_count; i++) {
        enum tn_slot slot = (enum tn_slot)t->layout.columns[i].slot;
        slots = slots && (slot <= TN_SLOT_DECIMAL64 ||
                          tn_columns_have(t->schema->primary_keys, field_of[i]));
    }
    return slots;
}

/* 'sequence.field.sort-order' is of no effect among the rows of one flush, and obeyed where files
 * are merged. Source: Paimon up to 1.4, SortBufferWriteBuffer; and LocalMergeOperator, whose hash
 * merger obeys it. */
static void init_buffer_order(struct tn_table *t, const uint32_t *field_of)
{
    t->buffer_order = t->order;
    t->buffer_order.sequence_descending =
        t->order.sequence_descending && merges_by_hash(t, field_of);
}

static tn_rc init_engine(struct tn_table *t, const uint32_t *field_of, struct tn_arena *arena,
                         struct tn_err *err)
{
    tn_rc rc = tn_engine_make(&t->options, &t->order, field_of, arena, &t->engine, err);
    if (rc == TN_OK) {
        t->keeps = keeps_of(t);
        init_row_size(t);
    }
    return rc;
}

/* A script's table is one with a resolver, and the other way round. */
static tn_rc check_resolver(const struct tn_table *t, struct tn_err *err)
{
    if (t->spec.resolver && !t->options.script) {
        return tn_err_set(err, TN_INVALID, 0, "a script is loaded, and there is no 'tarn.script'");
    }
    return TN_OK;
}

static tn_rc init_columns(struct tn_table *t, const int32_t *column_of, struct tn_arena *arena,
                          struct tn_err *err)
{
    const struct {
        struct tn_columns fields;
        struct tn_columns *columns;
    } sets[] = {
        {t->schema->trimmed_keys, &t->order.keys},
        {t->options.sequence_fields, &t->order.sequence_fields},
        {t->schema->partition_keys, &t->route.partition},
        {t->options.bucket_key, &t->route.bucket_key},
    };
    tn_rc rc = TN_OK;
    for (size_t i = 0; rc == TN_OK && i < sizeof sets / sizeof sets[0]; i++) {
        rc = columns_in_layout(sets[i].fields, column_of, arena, sets[i].columns, err);
    }
    return rc;
}

static bool has_float_keys(const struct tn_table *t)
{
    bool found = false;
    for (uint32_t i = 0; i < t->order.keys.count; i++) {
        uint8_t slot = t->layout.columns[t->order.keys.index[i]].slot;
        found = found || slot == TN_SLOT_F32 || slot == TN_SLOT_F64;
    }
    return found;
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
        rc = init_columns(t, column_of, arena, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    t->row_size_max = t->env->row_size_max;
    t->keyed = t->schema->primary_keys.count > 0;
    t->order.layout = &t->layout;
    t->order.sequence_descending = t->options.sequence_descending;
    t->order.prefix_decides = t->keyed && tn_row_prefix_decides(&t->layout, t->order.keys);
    init_buffer_order(t, field_of);
    t->float_keys = has_float_keys(t);
    t->route.layout = &t->layout;
    t->route.function = t->options.bucket_function;
    t->route.bucket_count = t->options.bucket;
    rc = tn_key_types_init(&t->key_types, t->schema, arena, err);
    if (rc == TN_OK) {
        rc = init_read(t, field_of, arena, err);
    }
    if (rc == TN_OK && t->keyed) {
        rc = init_engine(t, field_of, arena, err);
    }
    return rc == TN_OK ? tn_changes_init(&t->changes, t, column_of, arena, err) : rc;
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

static tn_rc name_schema(struct tn_table *t, struct tn_arena *arena, struct tn_err *err)
{
    t->schema_path = tn_name_numbered(arena, t->root, TN_DIR_SCHEMA, "schema-", t->schema->id);
    return t->schema_path ? TN_OK : tn_err_set(err, TN_AGAIN, 0, "no memory for a schema's name");
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

static size_t room_in(const struct tn_arena *arena)
{
    size_t left = tn_arena_free(arena);
    return left > LEFT_OVER ? left - LEFT_OVER : 0;
}

/* Where a script resolves rows, one of them. What the table's part has no room for, the worker that
 * compacts has. */
static tn_rc init_row_scratch(struct tn_table *t, struct tn_arena *arena, struct tn_err *err)
{
    size_t size = (size_t)t->row_size_max + TN_ORIGIN_SIZE_MAX;
    void *memory = NULL;
    if (!t->spec.resolver || !t->keyed) {
        return TN_OK;
    }
    struct tn_arena *from = size > room_in(arena) ? tn_env_lasting(t->env) : arena;
    tn_rc rc = tn_arena_need(from, size, "a row", &memory, err);
    t->row_scratch = memory;
    return rc;
}

/* A compaction's plan, the names of its outputs, and what their writers keep from slice to slice,
 * which grows with the columns: where it outgrows its share, or what others left of the table's
 * part, the worker that compacts has room. */
static tn_rc init_slice_memory(struct tn_table *t, struct tn_arena *arena, struct tn_err *err)
{
    if (t->env->benches) {
        return TN_OK;
    }
    bool small = t->spec.small; /* what a compaction needs does not shrink with it */
    size_t share = arena->size / (small ? 2 : COMPACTION_SHARE);
    size_t writers = t->options.changelog_producer >= TN_CHANGELOG_FULL_COMPACTION ? 2 : 1;
    size_t states = writers * tn_data_writer_state_size(&t->layout, &t->options, t->row_size_max);
    size_t need = states + share / 2;
    size_t room = room_in(arena);
    bool beside = tn_env_lasting(t->env) != arena && (!small || t->env->lasting);
    bool outgrown = beside && need > (room < share ? room : share);
    struct tn_arena *from = outgrown ? tn_env_lasting(t->env) : arena;
    size_t size = outgrown ? need : share;
    if (!small && !outgrown && size > room) {
        size = room;
    }
    void *memory;
    tn_rc rc = tn_arena_need(from, size, "a compaction", &memory, err);
    if (rc == TN_OK) {
        tn_arena_init(&t->slice.arena, memory, size);
    }
    return rc;
}

/* Where no more buckets can be written to than are open, no row waits for its bucket; and one
 * bucket needs no key to be found by. */
static void init_places(struct tn_table *t)
{
    int32_t buckets = t->options.bucket > 0 || t->keyed ? t->options.bucket : 1;
    bool few = t->spec.small && t->schema->partition_keys.count == 0 && buckets > 0 &&
               buckets <= TN_TABLE_FEW;
    uint32_t most = few ? (uint32_t)buckets : TN_TABLE_BUCKETS_MAX;
    t->places = (struct tn_table_places){
        .buckets = most,
        .slots = 2 * most,
        .parked = few ? TN_PARKING_SLOTS_MIN : TN_PARKING_SLOTS,
        .loads = most < TN_LOAD_MAX ? most : TN_LOAD_MAX,
        .rivals = few ? TN_TABLE_FEW : TN_RIVALS_MAX,
        .route_size = few && buckets == 1 ? 0 : TN_TABLE_ROUTE_SIZE,
    };
}

static tn_rc init_rounds(struct tn_table *t, struct tn_arena *arena, struct tn_err *err)
{
    size_t share = arena->size / (t->spec.small ? 4 * ROUND_SHARE : ROUND_SHARE);
    share = share > ROUND_LEAST ? share : ROUND_LEAST;
    void *memory;
    for (size_t i = 0; i < sizeof t->rounds / sizeof t->rounds[0]; i++) {
        tn_rc rc = tn_arena_need(arena, share, "a round", &memory, err);
        if (rc != TN_OK) {
            return rc;
        }
        tn_round_init(&t->rounds[i], memory, share, &t->pages);
    }
    return TN_OK;
}

static tn_rc init_load(struct tn_table *t, struct tn_arena *arena, struct tn_err *err)
{
    struct tn_load_task *load = &t->load;
    uint32_t count = t->places.loads;
    uint32_t slots = count * TN_LOAD_SLOTS;
    void *memory;
    tn_rc rc =
        tn_arena_need(arena, count * (sizeof *load->loads + sizeof *load->partitions) + slots,
                      "a load", &memory, err);
    if (rc == TN_OK) {
        load->loads = memory;
        load->partitions = (struct tn_bytes *)(void *)(load->loads + count);
        load->slots = (uint8_t *)(load->partitions + count);
        load->slot_count = slots;
        t->load_max = count;
        rc = tn_arena_need(arena, t->places.rivals * sizeof *t->commit.rivals.names,
                           "other writers' buckets", &memory, err);
        t->commit.rivals.names = memory;
    }
    return rc;
}

/* Memtables that there are pages for, of a small table. */
static uint32_t frozen_max(const struct tn_table *t)
{
    uint32_t pages = t->pages.block_count / PAGES_LEAST;
    uint32_t most = t->spec.small ? TN_TABLE_FROZEN_SMALL : TN_TABLE_FROZEN_MAX;
    return !t->spec.small || pages > most ? most : pages > 2 ? pages : 2;
}

static tn_rc init_buckets(struct tn_table *t, struct tn_arena *arena, struct tn_err *err)
{
    const struct tn_table_places *p = &t->places;
    uint32_t slot = ((uint32_t)sizeof(struct tn_frozen) + 15) & ~15u;
    size_t frozen_size = frozen_max(t) * ((size_t)slot + 16);
    size_t bucket_size = p->buckets * sizeof *t->buckets;
    size_t slots_size = ((size_t)p->slots + p->parked) * sizeof(void *);
    void *memory;
    tn_rc rc = tn_arena_need(arena, bucket_size + slots_size + p->route_size + frozen_size,
                             "buckets", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    t->buckets = memory;
    t->slots = (struct tn_bucket **)(void *)(t->buckets + p->buckets);
    struct tn_parked_bucket **parked = (struct tn_parked_bucket **)(void *)(t->slots + p->slots);
    unsigned char *at = (unsigned char *)(parked + p->parked);
    tn_parking_init(&t->parking, &t->pages, parked, p->parked);
    tn_buf_init(&t->route_scratch, at, p->route_size);
    tn_pool_init(&t->frozen_slots, at + p->route_size, frozen_size, slot);
    return TN_OK;
}

static tn_rc init_memory(struct tn_table *t, struct tn_arena *arena, struct tn_err *err)
{
    init_places(t);
    tn_pool_init(&t->pages, t->env->memtable, t->env->memtable_size, page_size(t));
    tn_rc rc = init_rounds(t, arena, err);
    if (rc == TN_OK) {
        rc = init_buckets(t, arena, err);
    }
    if (rc == TN_OK) {
        rc = init_load(t, arena, err);
    }
    t->removals_max = UINT32_MAX;
    t->files_max =
        (uint32_t)(tn_arena_free(&t->env->workers[TN_LANE_SHORT]->arena) / COMMIT_FILE_SIZE);
    return rc;
}

/* A job that only compacts looks at every bucket itself. */
static tn_rc init_gather(struct tn_table *t, struct tn_arena *arena, struct tn_err *err)
{
    bool tells = t->changes.full_every > 0 || tn_options_need_lookup(&t->options);
    if (!t->keyed || !tells || !tn_table_may_compact(t) || t->spec.dedicated) {
        return TN_OK;
    }
    t->gather.window_size = arena->size / GATHER_SHARE;
    return tn_arena_need(arena, t->gather.window_size, "a table's buckets", &t->gather.window, err);
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

tn_rc tn_table_make_state(struct tn_table *table, struct tn_err *err)
{
    struct tn_table *t = table;
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
        rc = name_schema(t, arena, err);
    }
    if (rc == TN_OK) {
        rc = tn_options_read(t->schema, TN_OPTIONS_WRITE, arena, &t->options, err);
    }
    if (rc == TN_OK) {
        rc = check_resolver(t, err);
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
    if (rc == TN_OK) {
        rc = init_gather(t, arena, err);
    }
    if (rc == TN_OK) {
        rc = init_row_scratch(t, arena, err);
    }
    if (rc == TN_OK) {
        rc = init_slice_memory(t, arena, err); /* last: it takes what is left, or goes elsewhere */
    }
    return rc == TN_OK ? open_round(t, err) : rc;
}
