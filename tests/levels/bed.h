/* bed: a random table whose files, on a disk in memory, are known row by row: each key in several
 * versions, level 0 overlapping, each higher level one run of a few files. */
#pragma once

#include "file/table.h"
#include "levels/levels.h"

enum {
    BED_FILES_MAX = 48,
    BED_KEYS_MAX = 400,
    BED_HEAP_SIZE = 256 << 10,
    BED_WORKER_SIZE = 3 << 20
};

#define BED_DIR "db.db/t/bucket-0/"

struct bed {
    struct setup s;
    struct table t;
    struct tn_order order;
    struct tn_key_types keys;
    struct tn_type key_types[4];
    struct tn_value key_values[8];
    struct tn_schemas schemas;
    struct tn_heap heap;
    void *heap_memory;
    struct tn_level_file *files[BED_FILES_MAX];
    struct tn_file_meta metas[BED_FILES_MAX]; /* of the files as they were written */
    uint32_t file_count;
    struct tn_kv *versions[BED_KEYS_MAX]; /* of base row i, as a list */
    uint32_t version_counts[BED_KEYS_MAX];
    int64_t sequence;
    bool adds_only; /* no version retracts */
};

/* Columns, at least one key, sequence fields now and then, no rows yet. */
static inline void bed_begin(struct bed *bed, uint64_t *seed)
{
    memset(bed, 0, sizeof *bed);
    setup_begin(&bed->s);
    bed->s.worker.arena.size =
        bed->s.worker.arena.used + BED_WORKER_SIZE; /* debug builds fill it */
    do {
        table_random(&bed->s, &bed->t, seed);
    } while (bed->t.schema.trimmed_keys.count == 0);
    struct table *t = &bed->t;
    t->options.data_file_prefix = "data-";
    t->options.path_directory = "";
    t->options.target_file_size = INT64_MAX;
    struct tn_columns keys = t->read.keys;
    bed->order = (struct tn_order){.layout = &t->layout,
                                   .keys = keys,
                                   .prefix_decides = tn_row_prefix_decides(&t->layout, keys)};
    if (random_below(seed, 3) == 0) {
        uint32_t *field = tn_arena_take(&bed->s.arena, sizeof *field);
        *field = random_below(seed, t->layout.column_count);
        bed->order.sequence_fields = (struct tn_columns){field, 1};
        bed->order.sequence_descending = random_below(seed, 2) == 1;
    }
    for (uint32_t i = 0; i < keys.count; i++) {
        bed->key_types[i] = t->types[keys.index[i]];
    }
    bed->keys =
        (struct tn_key_types){bed->key_types, keys.count, bed->key_values, bed->key_values + 4};
    bed->schemas = (struct tn_schemas){.count = 1};
    bed->schemas.items[0] = &t->schema;
    bed->heap_memory = malloc(BED_HEAP_SIZE);
    tn_heap_init(&bed->heap, bed->heap_memory, BED_HEAP_SIZE, false);
}

static inline void bed_end(struct bed *bed)
{
    for (uint32_t i = 0; i < bed->file_count; i++) {
        tn_level_file_drop(&bed->heap, bed->files[i]);
    }
    CHECK(bed->heap.used == 0);
    tn_heap_deinit(&bed->heap);
    free(bed->heap_memory);
    setup_end(&bed->s);
}

/* Another version of base row `key`. */
static inline struct tn_kv bed_version(struct bed *bed, uint32_t key, int32_t level, uint64_t *seed)
{
    struct table *t = &bed->t;
    struct tn_value values[TABLE_COLUMNS_MAX];
    for (uint32_t c = 0; c < t->layout.column_count; c++) {
        table_value(&bed->s, &t->types[c], seed, &values[c]);
    }
    for (uint32_t i = 0; i < t->read.keys.count; i++) {
        uint32_t column = t->read.keys.index[i];
        tn_row_get(&t->layout, t->rows[key].row, column, &values[column]);
    }
    uint32_t size = tn_row_packed_size(&t->layout, values);
    unsigned char *data = tn_arena_take(&bed->s.arena, size);
    CHECK(data);
    (void)tn_row_pack(&t->layout, values, data);
    struct tn_kv kv = {.row = {data, size},
                       .sequence = ++bed->sequence,
                       .prefix = t->rows[key].prefix,
                       .kind = (enum tn_row_kind)random_below(seed, 4),
                       .level = level};
    if (bed->adds_only && tn_row_kind_retracts(kv.kind)) {
        kv.kind = TN_ROW_INSERT;
    }
    return kv;
}

static inline void bed_write(struct bed *bed, const struct tn_kv *rows, uint32_t count,
                             int32_t level)
{
    static struct tn_data_writer writer;
    struct setup *s = &bed->s;
    struct tn_data_writer_spec spec;
    table_spec(&bed->t, 512, &spec);
    spec.name = tn_arena_format(&s->arena, "data-u-%u.avro", bed->file_count);
    spec.level = level;
    size_t mark = tn_arena_mark(&s->worker.arena);
    tn_rc rc =
        tn_data_writer_begin(&writer, &spec, &s->worker, TABLE_ROW_SIZE_MAX, &s->arena, &s->err);
    CHECK_OK(rc, s->err);
    for (uint32_t i = 0; i < count; i++) {
        rc = tn_data_writer_add(&writer, &rows[i], &s->err);
        CHECK_OK(rc, s->err);
    }
    struct tn_file_meta meta;
    rc = tn_data_writer_finish(&writer, &s->arena, &meta, &s->err);
    CHECK_OK(rc, s->err);
    tn_arena_reset(&s->worker.arena, mark);
    CHECK(bed->file_count < BED_FILES_MAX);
    bed->metas[bed->file_count] = meta;
    rc = tn_level_file_make(&bed->heap, &meta, level, &bed->files[bed->file_count++], &s->err);
    CHECK_OK(rc, s->err);
}

/* A run of `level` with versions of some keys, cut into a few files. */
static inline void bed_run(struct bed *bed, int32_t level, uint32_t files, uint64_t *seed)
{
    struct table *t = &bed->t;
    struct tn_kv *rows = tn_arena_take(&bed->s.arena, t->row_count * sizeof *rows + 1);
    CHECK(rows);
    uint32_t count = 0;
    uint32_t from = random_below(seed, t->row_count);
    uint32_t to = from + 1 + random_below(seed, t->row_count - from);
    uint32_t every = 1 + random_below(seed, 4);
    for (uint32_t key = from; key < to; key++) {
        if (random_below(seed, every) > 0) {
            continue;
        }
        rows[count] = bed_version(bed, key, level, seed);
        bed->versions[key][bed->version_counts[key]++] = rows[count++];
    }
    for (uint32_t at = 0; at < count;) {
        uint32_t size = 1 + random_below(seed, (count - 1) / files + 1);
        size = size < count - at ? size : count - at;
        if (bed->file_count + 2 >= BED_FILES_MAX) {
            size = count - at;
        }
        bed_write(bed, rows + at, size, level);
        at += size;
    }
}

/* Levels from the highest, oldest, down to a few files of level 0. */
static inline void bed_fill(struct bed *bed, uint64_t *seed)
{
    table_rows(&bed->s, &bed->t, 1 + random_below(seed, BED_KEYS_MAX - 1), seed);
    for (uint32_t i = 0; i < bed->t.row_count; i++) {
        bed->versions[i] = tn_arena_take(&bed->s.arena, 12 * sizeof(struct tn_kv));
        CHECK(bed->versions[i]);
    }
    for (int32_t level = 5; level > 0; level--) {
        if (random_below(seed, 2) == 1) {
            bed_run(bed, level, 1 + random_below(seed, 4), seed);
        }
    }
    for (uint32_t i = random_below(seed, 7); i > 0; i--) {
        bed_run(bed, 0, 1, seed);
    }
}

static inline void bed_make(struct bed *bed, uint32_t files_min, uint64_t *seed)
{
    for (;;) {
        bed_begin(bed, seed);
        bed_fill(bed, seed);
        if (bed->file_count >= files_min) {
            return;
        }
        bed_end(bed);
    }
}

/* The newest version of base row `key` in these files' levels, or NULL. */
static inline const struct tn_kv *bed_newest(const struct bed *bed, uint32_t key,
                                             bool ignore_delete)
{
    const struct tn_kv *best = NULL;
    for (int pass = 0; pass < 2 && !best; pass++) { /* only retracts: the newest of them */
        for (uint32_t i = 0; i < bed->version_counts[key]; i++) {
            const struct tn_kv *kv = &bed->versions[key][i];
            bool skip = pass == 0 && ignore_delete && tn_row_kind_retracts(kv->kind);
            if (!skip && (!best || tn_kv_newer(&bed->order, kv, best))) {
                best = kv;
            }
        }
    }
    return best;
}

/* But for the level, which a compaction changes. */
static inline bool bed_same(const struct tn_kv *a, const struct tn_kv *b)
{
    return a->sequence == b->sequence && a->kind == b->kind && a->prefix == b->prefix &&
           a->row.size == b->row.size && memcmp(a->row.data, b->row.data, a->row.size) == 0;
}
