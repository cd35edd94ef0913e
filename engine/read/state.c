#include "read/state.h"

#include "base/check.h"

enum { BLOCK_PACKED = 16 * 1024 }; /* 64 KiB of rows, packed: a guess, good enough for `asks` */

struct tn_state_run {
    struct tn_level_file *const *files; /* in key order */
    uint32_t count;
    uint32_t at;          /* the file that may hold the next key */
    struct tn_value *min; /* that file's first and last key; valid with `bounded` */
    struct tn_value *max;
    bool bounded;
    bool open;
    bool headed; /* `head` is the first row that was not passed: its key, and when `whole` all of
                    it, behind which the reader is then */
    bool whole;
    uint64_t head_block;
    struct tn_kv head;
    const struct tn_block_index *index;
    struct tn_worker worker; /* with this run's part of the arena */
    struct tn_data_reader reader;
};

/* ---- a run's files ---- */

static void close_file(struct tn_state_run *run)
{
    if (run->open) {
        tn_iter_close(&run->reader.iter);
    }
    tn_arena_reset(&run->worker.arena, 0);
    run->open = false;
    run->headed = false;
    run->whole = false;
    run->index = NULL;
}

static void set_bounds(const struct tn_key_state *s, struct tn_state_run *run)
{
    const struct tn_level_file *file = run->files[run->at];
    const struct tn_key_types *keys = s->spec.keys;
    struct tn_err unused;
    tn_rc rc = tn_binary_to_values(file->min_key, keys->types, keys->count, run->min, &unused);
    TN_CHECK(rc == TN_OK); /* a levels version has checked them */
    rc = tn_binary_to_values(file->max_key, keys->types, keys->count, run->max, &unused);
    TN_CHECK(rc == TN_OK);
    run->bounded = true;
}

/* Keys only ascend: this file has none of those that come. */
static void leave_file(struct tn_state_run *run)
{
    close_file(run);
    run->bounded = false;
    run->at++;
}

static bool above_file(const struct tn_key_state *s, const struct tn_state_run *run,
                       struct tn_row key)
{
    const struct tn_order *order = s->spec.order;
    return tn_row_compare_values(order->layout, order->keys, key, run->max) > 0;
}

/* Goes on to the first file that does not end below the key; true when the key lies in it. */
static bool reach_file(const struct tn_key_state *s, struct tn_state_run *run, struct tn_row key)
{
    const struct tn_order *order = s->spec.order;
    while (run->at < run->count) {
        if (!run->bounded) {
            set_bounds(s, run);
        }
        if (!above_file(s, run, key)) {
            return tn_row_compare_values(order->layout, order->keys, key, run->min) >= 0;
        }
        leave_file(run);
    }
    return false;
}

/* Where the keys lie in most of its blocks the file is walked. */
static bool worth_an_index(const struct tn_key_state *s, const struct tn_level_file *file)
{
    return s->spec.indexes &&
           (s->spec.asks == 0 || s->spec.asks * 3 < (uint64_t)file->size / BLOCK_PACKED);
}

static tn_rc open_file(struct tn_key_state *s, struct tn_state_run *run, struct tn_err *err)
{
    const struct tn_level_file *file = run->files[run->at];
    const char *dir = file->dir ? file->dir : s->spec.dir;
    const char *path = tn_arena_format(&run->worker.arena, "%s%s", dir, file->name);
    const struct tn_schema *schema = tn_schemas_find(s->spec.schemas, file->schema_id);
    TN_CHECK(schema);
    if (!path) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for the name of %s", file->name);
    }
    tn_rc rc = tn_data_reader_open(&run->reader, path, file->size, file->level, schema,
                                   s->spec.read, &run->worker, err);
    run->open = rc == TN_OK;
    if (rc == TN_OK && worth_an_index(s, file)) {
        rc = tn_block_index_of(s->spec.indexes, &run->reader, &run->index, err);
    }
    if (rc == TN_OK) {
        rc = tn_data_reader_resume(&run->reader, (struct tn_data_position){0, 0}, err);
    }
    return tn_err_named(err, rc);
}

/* ---- a run's rows ---- */

/* Over the blocks that end below the key. */
static tn_rc jump(struct tn_key_state *s, struct tn_state_run *run, struct tn_row key,
                  struct tn_err *err)
{
    uint64_t words[TN_BLOCK_INDEX_WORDS];
    tn_block_index_words(s->spec.read, key, words);
    uint64_t offset = tn_block_index_find(run->index, words);
    uint64_t here = run->headed ? run->head_block : tn_data_reader_tell(&run->reader).block_offset;
    if (offset <= here) {
        return TN_OK;
    }
    run->headed = false;
    run->whole = false;
    return tn_data_reader_resume(&run->reader, (struct tn_data_position){offset, 0}, err);
}

/* Below 0 also where there is no head. */
static int compare_head(const struct tn_key_state *s, const struct tn_state_run *run,
                        const struct tn_kv *key)
{
    const struct tn_order *order = s->spec.order;
    return run->headed ? tn_row_compare(order->layout, order->keys, run->head.row, key->row) : -1;
}

/* The first row that is not below the key becomes the head. ABSENT: the file has none. */
static tn_rc next_head(struct tn_key_state *s, struct tn_state_run *run, struct tn_row key,
                       struct tn_err *err)
{
    tn_rc rc = run->headed && !run->whole ? tn_data_reader_pass(&run->reader, err) : TN_OK;
    run->headed = false;
    run->whole = false;
    if (rc == TN_OK) {
        rc = tn_data_reader_pass_below(&run->reader, key, &s->rows_read, err);
    }
    if (rc == TN_OK) {
        run->head_block = tn_data_reader_tell(&run->reader).block_offset;
        rc = tn_data_reader_key(&run->reader, &run->head.row, err);
    }
    run->headed = rc == TN_OK;
    s->rows_read += run->headed;
    return rc;
}

static tn_rc walk(struct tn_key_state *s, struct tn_state_run *run, const struct tn_kv *key,
                  int *order, struct tn_err *err)
{
    tn_rc rc = run->index ? jump(s, run, key->row, err) : TN_OK;
    if (rc == TN_OK) {
        rc = next_head(s, run, key->row, err);
    }
    *order = compare_head(s, run, key);
    return rc;
}

static tn_rc reach(struct tn_key_state *s, struct tn_state_run *run, const struct tn_kv *key,
                   int *order, struct tn_err *err)
{
    if (!reach_file(s, run, key->row)) {
        return TN_ABSENT;
    }
    tn_rc rc = run->open ? TN_OK : open_file(s, run, err);
    return rc == TN_OK ? walk(s, run, key, order, err) : rc;
}

/* All of the row whose key is the head. */
static tn_rc read_head(struct tn_state_run *run, struct tn_err *err)
{
    tn_rc rc = run->whole ? TN_OK : tn_iter_next(&run->reader.iter, &run->head, err);
    run->headed = run->whole = rc == TN_OK;
    return rc;
}

static tn_rc find_in_run(struct tn_key_state *s, struct tn_state_run *run, const struct tn_kv *key,
                         struct tn_kv *found, struct tn_err *err)
{
    int order = compare_head(s, run, key);
    tn_rc rc = order < 0 ? reach(s, run, key, &order, err) : TN_OK;
    if (rc == TN_OK && order > 0) {
        rc = TN_ABSENT;
    }
    if (rc == TN_OK) {
        rc = read_head(run, err);
    }
    if (rc == TN_OK) {
        *found = run->head;
    }
    return rc;
}

static tn_rc short_of_memory(const struct tn_key_state *s, struct tn_err *err)
{
    return tn_err_in(err,
                     "the state before: %u runs share %zu KB; what helps is fewer of them (a "
                     "compaction, a smaller num-sorted-run.stop-trigger) or more memory",
                     s->run_count, s->size / 1024);
}

static tn_rc find(struct tn_state *base, const struct tn_kv *key, struct tn_kv *found,
                  struct tn_err *err)
{
    struct tn_key_state *s = (struct tn_key_state *)(void *)base;
    tn_rc rc = TN_ABSENT;
    s->asked++;
    for (uint32_t i = 0; rc == TN_ABSENT && i < s->run_count; i++) {
        rc = find_in_run(s, &s->runs[i], key, found, err);
    }
    return rc == TN_AGAIN ? short_of_memory(s, err) : rc;
}

/* ---- open, close ---- */

/* A level's files lie together; each of level 0 is a run of its own. */
static bool begins_run(struct tn_level_file *const *files, uint32_t i)
{
    return i == 0 || files[i]->level == 0 || files[i]->level != files[i - 1]->level;
}

static tn_rc take_runs(struct tn_key_state *s, struct tn_level_file *const *files, uint32_t count,
                       struct tn_worker *worker, struct tn_err *err)
{
    uint32_t runs = 0;
    for (uint32_t i = 0; i < count; i++) {
        runs += begins_run(files, i);
    }
    if (runs > TN_KEY_STATE_RUNS_MAX) {
        return tn_err_set(err, TN_AGAIN, 0,
                          "%s has %u runs, at most %d can be looked up: compact it", s->spec.dir,
                          runs, TN_KEY_STATE_RUNS_MAX);
    }
    void *memory;
    tn_rc rc = tn_arena_need(&worker->arena, (runs + 1) * sizeof *s->runs, "the state before",
                             &memory, err);
    if (rc == TN_OK) {
        s->runs = memory;
    }
    return rc;
}

static void cut_into_runs(struct tn_key_state *s, struct tn_level_file *const *files,
                          uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (begins_run(files, i)) {
            s->runs[s->run_count++] = (struct tn_state_run){.files = files + i};
        }
        s->runs[s->run_count - 1].count++;
    }
}

static tn_rc give_memory(struct tn_key_state *s, size_t size, struct tn_worker *worker,
                         struct tn_err *err)
{
    uint32_t keys = s->spec.keys->count;
    size_t own = s->run_count * (sizeof *s->runs + 2 * keys * sizeof(struct tn_value) + 64);
    size_t part = size > own && s->run_count > 0 ? ((size - own) / s->run_count) & ~(size_t)63 : 0;
    for (uint32_t i = 0; i < s->run_count; i++) {
        struct tn_state_run *run = &s->runs[i];
        void *memory;
        tn_rc rc =
            tn_arena_need(&worker->arena, 2 * keys * sizeof(struct tn_value), "keys", &memory, err);
        if (rc != TN_OK) {
            return rc;
        }
        run->min = memory;
        run->max = run->min + keys;
        rc = tn_arena_need(&worker->arena, part, "the state before", &memory, err);
        if (rc != TN_OK) {
            return rc;
        }
        run->worker = *worker;
        tn_arena_init(&run->worker.arena, memory, part);
    }
    return TN_OK;
}

tn_rc tn_key_state_open(struct tn_key_state *state, const struct tn_key_state_spec *spec,
                        struct tn_level_file *const *files, uint32_t count, size_t size,
                        struct tn_worker *worker, struct tn_err *err)
{
    *state = (struct tn_key_state){.state = {find}, .spec = *spec, .size = size};
    tn_rc rc = take_runs(state, files, count, worker, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (spec->indexes) {
        tn_block_indexes_trim(spec->indexes);
    }
    cut_into_runs(state, files, count);
    return give_memory(state, size, worker, err);
}

void tn_key_state_close(struct tn_key_state *state)
{
    for (uint32_t i = 0; i < state->run_count; i++) {
        close_file(&state->runs[i]);
    }
}
