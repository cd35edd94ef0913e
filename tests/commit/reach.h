/* reach: what snapshots, tags and long-lived changelogs of a table reach, held against what is on
 * the disk. */
#pragma once

#include "model.h"

enum { NAMES_MAX = 4096 };
struct names {
    struct bed *bed;
    const char *items[NAMES_MAX];
    uint32_t count;
};

static __attribute__((unused, noinline)) bool has_name(const struct names *names, const char *name)
{
    for (uint32_t i = 0; i < names->count; i++) {
        if (strcmp(names->items[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static __attribute__((unused, noinline)) void add_name(struct names *names, const char *name)
{
    if (has_name(names, name)) {
        return;
    }
    CHECK(names->count < NAMES_MAX);
    names->items[names->count] = tn_arena_text(&names->bed->own, tn_bytes_of(name));
    CHECK(names->items[names->count] != NULL);
    names->count++;
}

static __attribute__((unused, noinline)) tn_rc add_listed(void *user, const char *name, bool is_dir,
                                                          struct tn_err *err)
{
    (void)err;
    if (!is_dir) {
        add_name(user, name);
    }
    return TN_OK;
}

static __attribute__((unused, noinline)) void list_names(struct bed *bed, const char *folder,
                                                         struct names *names)
{
    struct tn_err err;
    names->bed = bed;
    tn_rc rc = bed->disk.io.vtable->list(&bed->disk.io, folder, add_listed, names, &err);
    CHECK(rc == TN_OK || rc == TN_ABSENT);
}

/* ---- what is reached ---- */

struct reach {
    struct names data;
    struct names metadata;
    struct names indexes;
    struct names may; /* files of flushes that a delta names: they may stay as long as it does */
};
static struct reach reach;
static bool
    reach_may_end_early; /* records that don't lead up to the earliest snapshot don't count */

static __attribute__((unused, noinline)) tn_rc add_live(void *user, const struct tn_entry *entry,
                                                        struct tn_err *err)
{
    (void)err;
    (void)user;
    if (entry->kind == TN_ENTRY_ADD) {
        add_name(&reach.data, entry->file.file_name);
    }
    return TN_OK;
}

static __attribute__((unused, noinline)) tn_rc add_flushed(void *user, const struct tn_entry *entry,
                                                           struct tn_err *err)
{
    (void)err;
    (void)user;
    if (entry->file.file_source.value == 0) {
        add_name(&reach.may, entry->file.file_name);
    }
    return TN_OK;
}

static __attribute__((unused, noinline)) tn_rc
add_manifest(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    (void)err;
    (void)user;
    add_name(&reach.metadata, meta->file_name);
    return TN_OK;
}

static __attribute__((unused, noinline)) void reach_list(struct bed *bed, const char *list)
{
    struct tn_err err;
    if (list) {
        add_name(&reach.metadata, list);
        tn_rc rc = tn_list_each_meta(ROOT, list, -1, &bed->worker, add_manifest, NULL, &err);
        CHECK_OK(rc, err);
    }
}

static __attribute__((unused, noinline)) void each_of(struct bed *bed, const char *list,
                                                      tn_live_fn *each)
{
    struct tn_err err;
    if (list) {
        tn_rc rc = tn_list_each(ROOT, list, -1, NULL, &bed->worker, each, NULL, &err);
        CHECK_OK(rc, err);
    }
}

static __attribute__((unused, noinline)) tn_rc
add_index(void *user, const struct tn_index_entry *entry, struct tn_err *err)
{
    (void)err;
    add_name(user, entry->file_name);
    return TN_OK;
}

static __attribute__((unused, noinline)) void reach_indexes(struct bed *bed,
                                                            const struct tn_snapshot *s)
{
    struct tn_err err;
    if (s->index_manifest) {
        add_name(&reach.metadata, s->index_manifest);
        tn_rc rc =
            tn_index_each(ROOT, s->index_manifest, &bed->worker, add_index, &reach.indexes, &err);
        CHECK_OK(rc, err);
    }
}

static __attribute__((unused, noinline)) void reach_state(struct bed *bed,
                                                          const struct tn_snapshot *s)
{
    struct tn_err err;
    reach_indexes(bed, s);
    tn_rc rc = tn_live_each(ROOT, s, &bed->schema, NULL, &bed->worker, add_live, NULL, &err);
    CHECK_OK(rc, err);
    reach_list(bed, s->base_manifest_list);
    reach_list(bed, s->delta_manifest_list);
}

static __attribute__((unused, noinline)) void reach_changelog(struct bed *bed,
                                                              const struct tn_snapshot *s)
{
    reach_list(bed, s->changelog_manifest_list);
    each_of(bed, s->changelog_manifest_list, add_live);
}

static __attribute__((unused, noinline)) void reach_record(struct bed *bed,
                                                           const struct tn_snapshot *s)
{
    if (bed->options.changelog_producer != TN_CHANGELOG_NONE) {
        reach_changelog(bed, s);
        return;
    }
    reach_list(bed, s->base_manifest_list);
    reach_list(bed, s->delta_manifest_list);
    each_of(bed, s->delta_manifest_list, add_flushed);
    if (strcmp(s->commit_kind, "APPEND") == 0) {
        each_of(bed, s->delta_manifest_list, add_live);
    }
}

static __attribute__((unused, noinline)) struct tn_snapshot read_copy(struct bed *bed,
                                                                      const char *path)
{
    struct tn_snapshot s;
    struct tn_err err;
    tn_rc rc = tn_snapshot_read_path(&bed->disk.io, path, &bed->own, &s, &err);
    CHECK_OK(rc, err);
    return s;
}

/* None is of a snapshot that is to come: its number would be given anew. */
static __attribute__((unused, noinline)) void reach_tags(struct bed *bed, int64_t last)
{
    static struct names tags;
    tags.count = 0;
    list_names(bed, ROOT "/tag/", &tags);
    for (uint32_t i = 0; i < tags.count; i++) {
        if (tn_name_begins(tags.items[i], "tag-")) {
            struct tn_snapshot s =
                read_copy(bed, tn_name_in(&bed->own, ROOT, TN_DIR_TAG, tags.items[i]));
            CHECK(s.id <= last);
            reach_state(bed, &s);
        }
    }
}

/* Those that can be told one after the other, up to the earliest snapshot. */
static __attribute__((unused, noinline)) void reach_records(struct bed *bed, int64_t earliest)
{
    struct tn_changelog_range range;
    struct tn_err err;
    tn_rc rc = tn_changelog_range(&bed->disk.io, ROOT, &bed->own, &range, &err);
    if (rc == TN_ABSENT) {
        return;
    }
    CHECK_OK(rc, err);
    if (reach_may_end_early && range.last < earliest - 1) {
        return;
    }
    CHECK(range.last >= earliest - 1);
    for (int64_t id = range.first; id < earliest; id++) {
        struct tn_snapshot s =
            read_copy(bed, tn_name_numbered(&bed->own, ROOT, TN_DIR_CHANGELOG, "changelog-", id));
        CHECK(s.id == id);
        reach_record(bed, &s);
    }
}

static __attribute__((unused, noinline)) int64_t reach_all(struct bed *bed)
{
    struct tn_err err;
    int64_t first;
    int64_t last;
    reach.data = reach.metadata = reach.indexes = reach.may = (struct names){.bed = bed};
    tn_rc rc = tn_snapshot_earliest(&bed->disk.io, ROOT, &bed->own, &first, &err);
    CHECK_OK(rc, err);
    rc = tn_snapshot_latest(&bed->disk.io, ROOT, &bed->own, &last, &err);
    CHECK_OK(rc, err);
    CHECK(first <= last);
    for (int64_t id = first; id <= last; id++) {
        struct tn_snapshot s = bed_snapshot(bed, id);
        reach_state(bed, &s);
        reach_changelog(bed, &s);
        if (tn_options_changelogs_outlive(&bed->options)) {
            each_of(bed, s.delta_manifest_list, add_flushed);
        }
    }
    reach_tags(bed, last);
    reach_records(bed, first);
    return last;
}

/* ---- what is there ---- */

static __attribute__((unused, noinline)) void check_equal(const struct names *there,
                                                          const struct names *reached,
                                                          const struct names *may, bool leaks)
{
    for (uint32_t i = 0; i < reached->count; i++) {
        CHECK(has_name(there, reached->items[i]));
    }
    for (uint32_t i = 0; !leaks && i < there->count; i++) {
        CHECK(has_name(reached, there->items[i]) || has_name(may, there->items[i]));
    }
}

/* Every snapshot from the earliest on, every tag and every long-lived changelog is whole; without
 * `leaks` nothing else is there. Returns the newest snapshot. */
static __attribute__((unused, noinline)) int64_t check_table(struct bed *bed, bool leaks)
{
    static struct names there;
    size_t mark = tn_arena_mark(&bed->own);
    there = (struct names){.bed = bed};
    int64_t last = reach_all(bed);
    list_names(bed, ROOT "/bucket-0/", &there);
    list_names(bed, ROOT "/bucket-1/", &there);
    check_equal(&there, &reach.data, &reach.may, leaks);
    there.count = 0;
    reach.may.count = 0;
    list_names(bed, ROOT "/manifest/", &there);
    check_equal(&there, &reach.metadata, &reach.may, leaks);
    there.count = 0;
    list_names(bed, ROOT "/index/", &there);
    check_equal(&there, &reach.indexes, &reach.may, leaks);
    tn_arena_reset(&bed->own, mark);
    return last;
}

/* ---- tables ---- */

static __attribute__((unused, noinline)) void put_file(struct bed *bed, const char *folder,
                                                       const char *name, struct tn_bytes bytes)
{
    struct tn_io *io = &bed->disk.io;
    struct tn_err err;
    const char *dir = tn_name_in(&bed->own, ROOT, folder, "");
    const char *path = tn_name_in(&bed->own, ROOT, folder, name);
    tn_rc rc = io->vtable->make_dir(io, dir, &err);
    CHECK_OK(rc, err);
    rc = tn_io_write_new(io, path, bytes, &err);
    CHECK_OK(rc, err);
    const char *paths[] = {path, dir};
    rc = io->vtable->sync(io, paths, 2, &err);
    CHECK_OK(rc, err);
}

static __attribute__((unused, noinline)) void put_tag(struct bed *bed, const char *name, int64_t id)
{
    struct tn_bytes text;
    struct tn_err err;
    const char *path = tn_name_numbered(&bed->own, ROOT, TN_DIR_SNAPSHOT, "snapshot-", id);
    tn_rc rc = tn_io_read_all(&bed->disk.io, path, 8192, &bed->own, &text, &err);
    CHECK_OK(rc, err);
    put_file(bed, TN_DIR_TAG, name, text);
}

static __attribute__((unused, noinline)) void clone_bed(struct bed *to, const struct bed *from)
{
    *to = *from;
    sim_disk_clone(&to->disk, &from->disk);
    sim_disk_reboot(&to->disk, SIM_SEED_ALL); /* calls count from 1 */
    to->worker.io = &to->disk.io;
}

/* ---- index files ---- */

static __attribute__((unused, noinline)) tn_rc
put_index(void *user, const struct tn_index_entry *entry, struct tn_err *err)
{
    (void)err;
    put_file(user, TN_DIR_INDEX, entry->file_name, tn_bytes_of("an index"));
    return TN_OK;
}

/* The newest snapshot, and so those after it, have the index files that a real writer's manifest
 * names. */
static __attribute__((unused, noinline)) void begin_index(struct bed *bed, int64_t id,
                                                          const char *manifest)
{
    static const char key[] = "\"indexManifest\"";
    static char text[16384];
    struct tn_bytes bytes;
    struct tn_err err;
    (void)put_golden(bed, "manifest", manifest);
    tn_rc rc = tn_index_each(ROOT, manifest, &bed->worker, put_index, bed, &err);
    CHECK_OK(rc, err);
    const char *path = tn_name_numbered(&bed->own, ROOT, TN_DIR_SNAPSHOT, "snapshot-", id);
    rc = tn_io_read_all(&bed->disk.io, path, sizeof text, &bed->own, &bytes, &err);
    CHECK_OK(rc, err);
    const char *json = tn_arena_text(&bed->own, bytes);
    CHECK(json != NULL);
    const char *was = strstr(json, key);
    const char *rest = was ? strchr(was, ',') + 1 : strchr(json, '{') + 1;
    int head = (int)((was ? was : rest) - json);
    (void)snprintf(text, sizeof text, "%.*s%s:\"%s\",%s", head, json, key, manifest, rest);
    rc = bed->disk.io.vtable->unlink(&bed->disk.io, path, &err);
    CHECK_OK(rc, err);
    put_file(bed, TN_DIR_SNAPSHOT, strrchr(path, '/') + 1, tn_bytes_of(text));
}
