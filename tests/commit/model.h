/* model: random commits of files that are really there, and what a table should hold after them. */
#pragma once

#include "bed.h"

static __attribute__((unused, noinline)) struct tn_commit_result
must_commit(struct bed *bed, const struct tn_commit_spec *spec)
{
    struct tn_commit_result result;
    struct tn_err err = {0};
    size_t mark = tn_arena_mark(&bed->worker.arena);
    tn_rc rc = tn_commit(spec, &bed->worker, &result, &err);
    CHECK_OK(rc, err);
    CHECK(tn_arena_mark(&bed->worker.arena) == mark);
    return result;
}

enum { MODEL_MAX = 600 };
struct model {
    struct tn_entry live[MODEL_MAX];
    uint32_t count;
    uint32_t made;
    int64_t key; /* grows: files of a level never overlap */
};

/* The file itself, with some bytes. */
static __attribute__((unused, noinline)) void make_file(struct bed *bed,
                                                        const struct tn_entry *entry)
{
    const char *dir;
    struct tn_err err;
    struct tn_io *io = &bed->disk.io;
    tn_rc rc = tn_name_bucket(&bed->own, ROOT, &bed->schema, &bed->options, entry->partition,
                              entry->bucket, &dir, &err);
    CHECK_OK(rc, err);
    rc = io->vtable->make_dir(io, dir, &err);
    CHECK_OK(rc, err);
    const char *path = tn_arena_format(&bed->own, "%s%s", dir, entry->file.file_name);
    CHECK(path != NULL);
    rc = tn_io_write_new(io, path, tn_bytes_of("rows"), &err);
    CHECK_OK(rc, err);
    const char *paths[] = {path, dir};
    rc = io->vtable->sync(io, paths, 2, &err);
    CHECK_OK(rc, err);
}

static __attribute__((unused, noinline)) struct tn_entry
new_named(struct bed *bed, struct model *model, uint64_t *seed, int32_t level, const char *prefix)
{
    char name[40];
    int64_t key = model->key++ * 10;
    (void)snprintf(name, sizeof name, "%s-%05u.avro", prefix, (unsigned)model->made++);
    struct bed_file file = {.dt = random_below(seed, 2) ? "x" : NULL,
                            .bucket = (int32_t)random_below(seed, 2),
                            .level = level,
                            .first = key,
                            .last = key + 5,
                            .rows = 1 + random_below(seed, 50)};
    struct tn_entry entry = bed_entry(bed, name, file);
    make_file(bed, &entry);
    return entry;
}

static __attribute__((unused, noinline)) struct tn_entry
new_file(struct bed *bed, struct model *model, uint64_t *seed, int32_t level)
{
    struct tn_entry entry = new_named(bed, model, seed, level, "data");
    entry.file.file_source.value = level > 0;
    return entry;
}

/* Up to two files, where the table has a changelog producer. */
static __attribute__((unused, noinline)) uint32_t
new_changelog(struct bed *bed, struct model *model, uint64_t *seed, struct tn_entry *entries)
{
    uint32_t count = 0;
    if (bed->options.changelog_producer != TN_CHANGELOG_NONE) {
        for (uint32_t want = random_below(seed, 3); count < want; count++) {
            entries[count] = new_named(bed, model, seed, 0, "changelog");
        }
    }
    return count;
}

static __attribute__((unused, noinline)) const char *model_text(struct bed *bed,
                                                                const struct model *model)
{
    static const char *names[MODEL_MAX];
    struct tn_buf buf;
    for (uint32_t i = 0; i < model->count; i++) {
        names[i] = tn_arena_format(&bed->own, "%s@%" PRId32, model->live[i].file.file_name,
                                   model->live[i].file.level);
    }
    qsort(names, model->count, sizeof names[0], bed_by_text);
    static char text[1 << 16];
    tn_buf_init(&buf, text, sizeof text);
    for (uint32_t i = 0; i < model->count; i++) {
        tn_buf_format(&buf, i > 0 ? " %s" : "%s", names[i]);
    }
    tn_buf_byte(&buf, 0);
    return (const char *)buf.data;
}

static __attribute__((unused, noinline)) void random_commit(struct bed *bed, struct model *model,
                                                            uint64_t *seed, int64_t identifier)
{
    static struct tn_entry added[8];
    static struct tn_entry compacted[4];
    static struct tn_commit_removal removed[8];
    static struct tn_entry changelogs[2][2];
    struct tn_commit_spec spec = bed_spec(bed, identifier);
    spec.append_even_if_empty = true;
    spec.added = added;
    spec.removed = removed;
    spec.compacted = compacted;
    spec.added_count = random_below(seed, 5);
    for (uint32_t i = 0; i < spec.added_count; i++) {
        added[i] = new_file(bed, model, seed, 0);
        model->live[model->count++] = added[i];
    }
    uint32_t goes = random_below(seed, 3) == 0 ? random_below(seed, 8) : 0;
    for (; spec.removed_count < goes && model->count > 0; spec.removed_count++) {
        uint32_t at = random_below(seed, model->count);
        struct tn_entry *entry = &model->live[at];
        removed[spec.removed_count] = bed_removal(entry);
        if (entry->file.level == 0 && random_below(seed, 3) == 0) {
            removed[spec.removed_count].upgrade_level = 5;
            entry->file.level = 5;
            spec.removed_count++; /* not to be drawn again in this round */
            break;
        }
        *entry = model->live[--model->count];
    }
    if (spec.removed_count > 0) {
        spec.compacted_count = random_below(seed, 3);
        for (uint32_t i = 0; i < spec.compacted_count; i++) {
            compacted[i] = new_file(bed, model, seed, 5);
            model->live[model->count++] = compacted[i];
        }
    }
    spec.changelog = changelogs[0];
    spec.changelog_count = new_changelog(bed, model, seed, changelogs[0]);
    if (spec.removed_count > 0) {
        spec.compact_changelog = changelogs[1];
        spec.compact_changelog_count = new_changelog(bed, model, seed, changelogs[1]);
    }
    struct tn_commit_result result = must_commit(bed, &spec);
    CHECK(result.append_id > 0 && !result.compact_refused);
    CHECK((result.compact_id > 0) == (spec.removed_count > 0));
    struct tn_snapshot s = bed_snapshot(bed, result.latest_id);
    CHECK(strcmp(bed_live(bed, &s), model_text(bed, model)) == 0);
}
