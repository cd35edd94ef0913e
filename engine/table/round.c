#include "table/round.h"

#include "base/check.h"

enum {
    POOL_SHARE = 8, /* what a round may have of the pool */
    POSITION_SIZE = 192,
    ENTRY_SIZE_FIRST = 1024,
    ENTRY_SIZE_SLACK = 64
};

/* ---- memory ---- */

void tn_round_init(struct tn_round *round, void *memory, size_t size, struct tn_pool *pool)
{
    *round = (struct tn_round){.pool = pool};
    tn_arena_init(&round->base, memory, size);
}

void tn_round_done(struct tn_round *round)
{
    while (round->run_count > 0) {
        tn_pool_give(round->pool, round->runs[--round->run_count]);
    }
    round->runs_begun = 0;
    round->run_pages = 0;
    tn_arena_reset(&round->base, 0);
    round->arena = round->base;
}

void tn_round_open(struct tn_round *round, int64_t number)
{
    tn_round_done(round);
    *round = (struct tn_round){.number = number,
                               .state = TN_ROUND_OPEN,
                               .base = round->base,
                               .arena = round->base,
                               .pool = round->pool};
}

/* Runs have whole pages. */
static uint32_t run_pages(const struct tn_round *round)
{
    uint32_t page = round->pool->block_size;
    return page < TN_ROUND_RUN_SIZE ? TN_ROUND_RUN_SIZE / page : 1;
}

static size_t run_size(const struct tn_round *round)
{
    return (size_t)run_pages(round) * round->pool->block_size;
}

size_t tn_round_free(const struct tn_round *round)
{
    return tn_arena_free(&round->arena) + (round->run_count - round->runs_begun) * run_size(round);
}

size_t tn_round_need(const struct tn_round *round, uint32_t file_count)
{
    uint32_t known = round->entry_count;
    size_t entry_size = known > 0 ? (size_t)(round->entry_bytes / known) + ENTRY_SIZE_SLACK
                                  : (size_t)ENTRY_SIZE_FIRST;
    return file_count * entry_size;
}

bool tn_round_may_grow(const struct tn_round *round)
{
    return round->run_count < TN_ROUND_RUNS_MAX &&
           round->run_pages + run_pages(round) <= round->pool->block_count / POOL_SHARE;
}

bool tn_round_grow(struct tn_round *round)
{
    uint32_t pages = run_pages(round);
    void *run = tn_round_may_grow(round) ? tn_pool_take_run(round->pool, pages) : NULL;
    if (run) {
        round->run_pages += pages;
        round->runs[round->run_count++] = run;
    }
    return run != NULL;
}

bool tn_round_reserve(struct tn_round *round, uint32_t file_count)
{
    size_t need = tn_round_need(round, file_count) + round->base.size / 4;
    while (tn_round_free(round) < need) {
        if (!tn_round_grow(round)) {
            return false;
        }
    }
    return true;
}

/* What did not fit is tried again in the next run. */
static bool go_on(struct tn_round *round, tn_rc rc)
{
    if (rc != TN_AGAIN || round->runs_begun == round->run_count) {
        return false;
    }
    tn_arena_init(&round->arena, round->runs[round->runs_begun++], run_size(round));
    return true;
}

/* ---- files ---- */

static tn_rc full(const struct tn_round *round, struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0,
                      "round %lld: its list of files is full; what helps is more memory (--memory)",
                      (long long)round->number);
}

/* In front of a list, with a copy of `meta`. */
static tn_rc try_entry(struct tn_round *round, struct tn_round_entry **list,
                       struct tn_bytes partition, int32_t bucket, int32_t total_buckets,
                       const struct tn_file_meta *meta, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&round->arena);
    struct tn_round_entry *added = tn_arena_take(&round->arena, sizeof *added);
    bool ok = added != NULL;
    struct tn_bytes kept = ok ? tn_arena_copy(&round->arena, partition, &ok) : partition;
    if (!ok) {
        return full(round, err);
    }
    added->entry = (struct tn_entry){TN_ENTRY_ADD, kept, bucket, total_buckets, {0}};
    tn_rc rc = tn_file_meta_copy(meta, &round->arena, &added->entry.file, err);
    if (rc != TN_OK) {
        return full(round, err);
    }
    round->entry_bytes += tn_arena_mark(&round->arena) - mark;
    round->entry_count++;
    added->next = *list;
    *list = added;
    return TN_OK;
}

static tn_rc add_entry(struct tn_round *round, struct tn_round_entry **list,
                       struct tn_bytes partition, int32_t bucket, int32_t total_buckets,
                       const struct tn_file_meta *meta, struct tn_err *err)
{
    tn_rc rc;
    do {
        rc = try_entry(round, list, partition, bucket, total_buckets, meta, err);
    } while (go_on(round, rc));
    return rc;
}

tn_rc tn_round_tell(struct tn_round *round, struct tn_bytes partition, int32_t bucket,
                    int32_t total_buckets, const struct tn_file_meta *meta, bool compacted,
                    struct tn_err *err)
{
    struct tn_round_entry **list = compacted ? &round->compact_changelog : &round->changelog;
    tn_rc rc = add_entry(round, list, partition, bucket, total_buckets, meta, err);
    if (rc == TN_OK) {
        *(compacted ? &round->compact_changelog_count : &round->changelog_count) += 1;
    }
    return rc;
}

tn_rc tn_round_add(struct tn_round *round, struct tn_bytes partition, int32_t bucket,
                   int32_t total_buckets, const struct tn_file_meta *meta,
                   struct tn_level_file *file, bool compacted, struct tn_err *err)
{
    struct tn_round_entry **list = compacted ? &round->compacted : &round->added;
    tn_rc rc = add_entry(round, list, partition, bucket, total_buckets, meta, err);
    if (rc != TN_OK) {
        return rc;
    }
    *(compacted ? &round->compacted_count : &round->added_count) += 1;
    (*list)->file = file;
    file->round = round->number;
    file->compacted = compacted;
    tn_level_file_hold(file);
    return TN_OK;
}

static tn_rc remove_file(struct tn_round *round, struct tn_bytes partition, int32_t bucket,
                         const struct tn_level_file *file, int32_t upgrade_level,
                         struct tn_err *err)
{
    struct tn_round_removal *removed = tn_arena_take(&round->arena, sizeof *removed);
    char *name = removed ? tn_arena_text(&round->arena, tn_bytes_of(file->name)) : NULL;
    bool ok = name != NULL;
    struct tn_bytes kept = ok ? tn_arena_copy(&round->arena, partition, &ok) : partition;
    if (!ok) {
        return full(round, err);
    }
    removed->removal = (struct tn_commit_removal){.partition = kept,
                                                  .bucket = bucket,
                                                  .level = file->level,
                                                  .file_name = name,
                                                  .upgrade_level = upgrade_level};
    removed->size = file->size;
    removed->row_count = file->row_count;
    removed->next = round->removed;
    round->removed = removed;
    round->removed_count++;
    return TN_OK;
}

tn_rc tn_round_remove(struct tn_round *round, struct tn_bytes partition, int32_t bucket,
                      const struct tn_level_file *file, int32_t upgrade_level, struct tn_err *err)
{
    tn_rc rc;
    do {
        rc = remove_file(round, partition, bucket, file, upgrade_level, err);
    } while (go_on(round, rc));
    return rc;
}

bool tn_round_forget(struct tn_round *round, const struct tn_level_file *file)
{
    for (struct tn_round_entry *entry = round->compacted; entry; entry = entry->next) {
        if (entry->file == file && !entry->gone) {
            entry->gone = true;
            round->compacted_count--;
            return true;
        }
    }
    return false;
}

typedef tn_rc dir_fn(void *user, const struct tn_entry *entry, const char **dir,
                     struct tn_err *err);

/* The list may be as good as full: where the path fits, it gets the memory of its entry. */
static bool discard_entry(struct tn_round *round, struct tn_round_entry *entry, const char *dir)
{
    const char *name = entry->entry.file.file_name; /* not in it */
    size_t dir_size = strlen(dir);
    size_t size = dir_size + strlen(name) + 1;
    struct tn_round_garbage *garbage = (struct tn_round_garbage *)(void *)entry;
    if (sizeof *garbage + size > sizeof *entry) {
        return false;
    }
    char *path = (char *)(garbage + 1);
    memmove(path, dir, dir_size);
    memmove(path + dir_size, name, size - dir_size);
    *garbage = (struct tn_round_garbage){path, round->garbage};
    round->garbage = garbage;
    return true;
}

static tn_rc discard_list(struct tn_round *round, struct tn_round_entry **list,
                          struct tn_heap *heap, dir_fn *dir_of, void *user, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    while (rc == TN_OK && *list) {
        struct tn_round_entry *entry = *list;
        struct tn_round_entry *next = entry->next;
        struct tn_level_file *file = entry->file;
        const char *dir;
        if (!entry->gone) {
            rc = dir_of(user, &entry->entry, &dir, err);
            if (rc == TN_OK && !discard_entry(round, entry, dir)) {
                rc = tn_round_discard(round, dir, entry->entry.file.file_name, err);
            }
        }
        if (rc == TN_OK) {
            *list = next;
            if (file) {
                tn_level_file_drop(heap, file);
            }
        }
    }
    return rc;
}

tn_rc tn_round_drop_compactions(struct tn_round *round, struct tn_heap *heap,
                                tn_rc (*dir_of)(void *user, const struct tn_entry *entry,
                                                const char **dir, struct tn_err *err),
                                void *user, struct tn_err *err)
{
    tn_rc rc = discard_list(round, &round->compacted, heap, dir_of, user, err);
    if (rc == TN_OK) {
        rc = discard_list(round, &round->compact_changelog, heap, dir_of, user, err);
    }
    round->compacted_count = 0;
    round->compact_changelog_count = 0;
    round->removed = NULL;
    round->removed_count = 0;
    return rc;
}

bool tn_round_upgrade_again(struct tn_round *round, const struct tn_level_file *file, int32_t level)
{
    for (struct tn_round_removal *removed = round->removed; removed; removed = removed->next) {
        struct tn_commit_removal *removal = &removed->removal;
        if (removal->upgrade_level == file->level && strcmp(removal->file_name, file->name) == 0) {
            removal->upgrade_level = level;
            return true;
        }
    }
    return false;
}

static tn_rc discard(struct tn_round *round, const char *dir, const char *name, struct tn_err *err)
{
    struct tn_round_garbage *garbage = tn_arena_take(&round->arena, sizeof *garbage);
    const char *path = garbage ? tn_arena_format(&round->arena, "%s%s", dir, name) : NULL;
    if (!path) {
        return full(round, err);
    }
    *garbage = (struct tn_round_garbage){path, round->garbage};
    round->garbage = garbage;
    return TN_OK;
}

tn_rc tn_round_discard(struct tn_round *round, const char *dir, const char *name,
                       struct tn_err *err)
{
    tn_rc rc;
    do {
        rc = discard(round, dir, name, err);
    } while (go_on(round, rc));
    return rc;
}

static tn_rc note_resolved(struct tn_round *round, uint64_t bucket, struct tn_err *err)
{
    if (round->resolved && round->resolved->name == bucket) {
        return TN_OK;
    }
    struct tn_round_bucket *resolved = tn_arena_take(&round->arena, sizeof *resolved);
    if (!resolved) {
        return full(round, err);
    }
    *resolved = (struct tn_round_bucket){bucket, round->resolved};
    round->resolved = resolved;
    return TN_OK;
}

tn_rc tn_round_resolved(struct tn_round *round, uint64_t bucket, struct tn_err *err)
{
    tn_rc rc;
    do {
        rc = note_resolved(round, bucket, err);
    } while (go_on(round, rc));
    return rc;
}

/* Out of the list, whose last one was noted last. */
static struct tn_round_position *take_position(struct tn_round *round, const char *source)
{
    struct tn_round_position **at = &round->positions;
    while (*at && strcmp((*at)->source, source) != 0) {
        at = &(*at)->next;
    }
    struct tn_round_position *position = *at;
    if (position) {
        *at = position->next;
        position->next = NULL;
    }
    return position;
}

static tn_rc note_position(struct tn_round *round, const char *source, const char *text,
                           struct tn_err *err)
{
    size_t size = strlen(text) + 1;
    if (size > POSITION_SIZE) {
        return tn_err_set(err, TN_INVALID, 0, "the position of %s is longer than %d bytes", source,
                          POSITION_SIZE - 1);
    }
    struct tn_round_position *position = take_position(round, source);
    if (!position) {
        position = tn_arena_take(&round->arena, sizeof *position + POSITION_SIZE);
        const char *kept = position ? tn_arena_text(&round->arena, tn_bytes_of(source)) : NULL;
        if (!kept) {
            return full(round, err);
        }
        *position = (struct tn_round_position){kept, (char *)(position + 1), NULL};
    }
    struct tn_round_position **end = &round->positions;
    while (*end) {
        end = &(*end)->next;
    }
    *end = position;
    if (strcmp(position->text, text) != 0) {
        memcpy(position->text, text, size);
        round->positions_moved = true;
    }
    return TN_OK;
}

tn_rc tn_round_position(struct tn_round *round, const char *source, const char *text,
                        struct tn_err *err)
{
    tn_rc rc;
    do {
        rc = note_position(round, source, text, err);
    } while (go_on(round, rc));
    return rc;
}
