#include "read/scratch.h"

#include "base/check.h"

static const char DIR[] = ".tarn/scratch/";

enum {
    SCRATCH_SCHEMA_ID = -1, /* no schema of a table has it */
    BLOCK_SIZE = 32 * 1024,
    /* Of what a worker has free: two runs and the output, of each a row raw and compressed. */
    ROW_SHARE = 6,
    FIXED = 128 * 1024, /* plans and keys: a guess */
};

void tn_scratch_init(struct tn_scratch *scratch, const struct tn_cursor_spec *cursor,
                     struct tn_schemas *schemas, struct tn_heap *heap, struct tn_arena *arena,
                     struct tn_worker *worker)
{
    *scratch = (struct tn_scratch){.cursor = cursor,
                                   .schemas = schemas,
                                   .heap = heap,
                                   .arena = arena,
                                   .worker = worker,
                                   .runs_limit = TN_SCRATCH_RUNS_MAX};
}

/* A schema of the columns that are read, under their own names and ids. */
static tn_rc make_schema(struct tn_scratch *s, struct tn_err *err)
{
    const struct tn_row_layout *layout = s->cursor->order->layout;
    uint32_t count = layout->column_count;
    void *memory;
    tn_rc rc = tn_arena_need(s->arena,
                             sizeof *s->schema + count * (sizeof *s->schema->fields +
                                                          sizeof *s->options.stats_modes +
                                                          sizeof *s->options.stats_lengths),
                             "a scratch schema", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_schema *schema = memory;
    schema->fields = (struct tn_field *)(void *)(schema + 1);
    s->options.stats_modes = (enum tn_stats_mode *)(void *)(schema->fields + count);
    s->options.stats_lengths = (uint32_t *)(void *)(s->options.stats_modes + count);
    for (uint32_t i = 0; i < count; i++) {
        schema->fields[i] = (struct tn_field){.id = s->cursor->read->field_ids[i],
                                              .name = layout->columns[i].name,
                                              .type = layout->columns[i].type};
        s->options.stats_modes[i] = TN_STATS_NONE;
    }
    schema->version = 3;
    schema->id = SCRATCH_SCHEMA_ID;
    schema->field_count = count;
    schema->trimmed_keys = s->cursor->order->keys;
    schema->primary_keys = s->cursor->order->keys;
    s->options.codec = TN_CODEC_ID_ZSTANDARD;
    s->options.data_file_prefix = "scratch-";
    s->options.path_directory = "";
    s->options.thin_mode = true;
    s->options.stats_dense = true;
    if (s->schemas->count == TN_SCHEMAS_MAX) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "too many schema versions are in use");
    }
    s->schemas->items[s->schemas->count++] = schema;
    s->schema = schema;
    tn_clock_uuid(s->worker->clock, s->uuid);
    return s->worker->io->vtable->make_dir(s->worker->io, DIR, err);
}

/* How many runs can be merged when so much of the worker's memory is taken. */
static uint32_t runs_max(const struct tn_scratch *s, uint32_t file_count, size_t taken)
{
    enum { RUNS_MIN = 2 }; /* less is no merge: where that does not fit, the cursor says so */
    size_t size = tn_arena_free(&s->worker->arena);
    uint32_t runs = size > taken ? tn_cursor_fits(s->cursor, file_count, size - taken) : 0;
    runs = runs < RUNS_MIN ? RUNS_MIN : runs;
    return runs < s->runs_limit ? runs : s->runs_limit;
}

/* The longest row of which a scratch file can be merged. */
static uint32_t row_size_max(const struct tn_scratch *s)
{
    size_t left = tn_arena_free(&s->worker->arena);
    return left > FIXED ? (uint32_t)((left - FIXED) / ROW_SHARE) : 0;
}

static size_t writer_size(const struct tn_scratch *s)
{
    const struct tn_row_layout *layout = s->cursor->order->layout;
    size_t size = tn_data_writer_size(layout, &s->options, BLOCK_SIZE, row_size_max(s));
    return (size + 15) & ~(size_t)15;
}

static size_t writer_state_size(const struct tn_scratch *s)
{
    return tn_data_writer_state_size(s->cursor->order->layout, &s->options, row_size_max(s));
}

/* How many files from the front can be merged beside a writer. */
static uint32_t mergeable(const struct tn_scratch *s, struct tn_level_file *const *files,
                          uint32_t count)
{
    const struct tn_key_types *keys = s->cursor->keys;
    uint32_t max = runs_max(s, count, writer_size(s) + writer_state_size(s));
    uint32_t take = count < max ? count : max;
    while (take < count && tn_files_runs(keys, files, take + 1, NULL) <= max) {
        take++;
    }
    return take;
}

/* Puts the files that may be merged in front, in their order; returns how many they are. */
static uint32_t choose(const struct tn_scratch *s, struct tn_level_file **files, uint32_t count)
{
    if (s->cursor->fold.mode != TN_FOLD_LOOKUP) {
        return count;
    }
    uint32_t chosen = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct tn_level_file *file = files[i];
        if (file->level == 0) {
            memmove(files + chosen + 1, files + chosen,
                    (i - chosen) * sizeof(struct tn_level_file *));
            files[chosen++] = file;
        }
    }
    return chosen;
}

static tn_rc copy_rows(struct tn_cursor *cursor, struct tn_data_writer *writer, struct tn_err *err)
{
    for (;;) {
        struct tn_kv kv;
        tn_rc rc = tn_iter_next(&cursor->fold.iter, &kv, err);
        if (rc == TN_ABSENT) {
            return TN_OK;
        }
        if (rc == TN_OK) {
            rc = tn_data_writer_add(writer, &kv, err);
        }
        if (rc != TN_OK) {
            return rc;
        }
    }
}

static tn_rc note_file(struct tn_scratch *s, const char *name, struct tn_err *err)
{
    struct tn_scratch_file *file = tn_arena_take(s->arena, sizeof *file);
    const char *path = file ? tn_arena_format(s->arena, "%s%s", DIR, name) : NULL;
    if (!path) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for another scratch file");
    }
    *file = (struct tn_scratch_file){path, s->files};
    s->files = file;
    return TN_OK;
}

/* The writer's part of the worker's arena comes first, the rest is the cursor's. */
static tn_rc merge_files(struct tn_scratch *s, struct tn_level_file *const *files, uint32_t count,
                         const char *name, struct tn_file_meta *meta, struct tn_err *err)
{
    const struct tn_row_layout *layout = s->cursor->order->layout;
    struct tn_worker writing = *s->worker;
    struct tn_arena state;
    uint32_t row_max = row_size_max(s);
    size_t size = writer_size(s);
    size_t state_size = writer_state_size(s);
    void *memory;
    tn_rc rc = tn_arena_need(&s->worker->arena, size + state_size, "a scratch file", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_arena_init(&writing.arena, memory, size);
    tn_arena_init(&state, (unsigned char *)memory + size, state_size);
    struct tn_cursor cursor;
    struct tn_cursor_spec spec = *s->cursor;
    spec.fold.drop_deletes = false;
    if (tn_fold_merges(&spec.fold) == TN_MERGE_VERSIONS) {
        spec.fold.mode = TN_FOLD_NONE;
    }
    rc = tn_cursor_open(&cursor, &spec, files, count, NULL, s->worker, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_data_writer writer;
    struct tn_data_writer_spec out = {.schema = s->schema,
                                      .options = &s->options,
                                      .layout = layout,
                                      .keys = s->cursor->order->keys,
                                      .dir = DIR,
                                      .name = name,
                                      .repeated = spec.fold.mode == TN_FOLD_NONE,
                                      .block_size = BLOCK_SIZE};
    rc = tn_data_writer_begin(&writer, &out, &writing, row_max, &state, err);
    if (rc == TN_OK) {
        rc = copy_rows(&cursor, &writer, err);
        if (rc == TN_OK) {
            rc = tn_data_writer_finish(&writer, s->arena, meta, err);
        }
        if (rc != TN_OK) {
            tn_data_writer_abort(&writer);
        }
    }
    tn_cursor_close(&cursor);
    return rc;
}

/* The first `take` files become one, which stays at their front: its smallest key is theirs. */
static tn_rc replace(struct tn_scratch *s, struct tn_level_file **files, uint32_t *count,
                     uint32_t take, const struct tn_file_meta *meta, struct tn_err *err)
{
    struct tn_level_file *made;
    tn_rc rc = tn_level_file_make(s->heap, meta, 0, &made, err);
    if (rc != TN_OK) {
        return rc;
    }
    made->dir = DIR;
    for (uint32_t i = 0; i < take; i++) {
        tn_level_file_drop(s->heap, files[i]);
    }
    memmove(files + 1, files + take, (*count - take) * sizeof(struct tn_level_file *));
    files[0] = made;
    *count -= take - 1;
    return TN_OK;
}

static tn_rc reduce_once(struct tn_scratch *s, struct tn_level_file **files, uint32_t *count,
                         uint32_t chosen, struct tn_err *err)
{
    uint32_t take = mergeable(s, files, chosen);
    const char *name = tn_arena_format(s->arena, "scratch-%s-%u.avro", s->uuid, s->counter++);
    if (!name) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for another scratch file");
    }
    size_t mark = tn_arena_mark(&s->worker->arena);
    struct tn_file_meta meta;
    tn_rc rc = note_file(s, name, err);
    if (rc == TN_OK) {
        rc = merge_files(s, files, take, name, &meta, err);
    }
    tn_arena_reset(&s->worker->arena, mark);
    return rc == TN_OK ? replace(s, files, count, take, &meta, err) : rc;
}

bool tn_scratch_fewer(struct tn_scratch *scratch, uint32_t runs)
{
    uint32_t fewer = runs / 2 > 2 ? runs / 2 : 2;
    if (runs <= 2 || fewer >= scratch->runs_limit) {
        return false;
    }
    scratch->runs_limit = fewer;
    return true;
}

/* The new file goes behind its neighbours of the same smallest key, so that the next round takes
 * others with it; each round takes at least two files away. */
tn_rc tn_scratch_reduce(struct tn_scratch *scratch, struct tn_level_file **files, uint32_t *count,
                        struct tn_err *err)
{
    tn_rc rc = TN_OK;
    const struct tn_key_types *keys = scratch->cursor->keys;
    while (rc == TN_OK && tn_files_runs(keys, files, *count, NULL) > runs_max(scratch, *count, 0)) {
        uint32_t chosen = choose(scratch, files, *count);
        if (chosen > 1 && !scratch->schema) {
            rc = make_schema(scratch, err);
        }
        if (rc == TN_OK && chosen > 1) {
            rc = reduce_once(scratch, files, count, chosen, err);
        }
        if (rc == TN_AGAIN && tn_scratch_fewer(scratch, scratch->runs_limit)) {
            rc = TN_OK;
        }
        tn_files_sort(keys, files, *count);
        if (chosen <= 1) {
            break;
        }
    }
    return rc;
}

void tn_scratch_close(struct tn_scratch *scratch)
{
    for (struct tn_scratch_file *file = scratch->files; file; file = file->next) {
        struct tn_err ignored = {0};
        (void)scratch->worker->io->vtable->unlink(scratch->worker->io, file->path, &ignored);
    }
    scratch->files = NULL;
}
