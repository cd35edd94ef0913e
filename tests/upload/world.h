/* world: a source table and its mirror, each on a disk of its own. Data files have bytes that their
 * name decides, so that a mirror can be checked without the source. */
#pragma once

#include "base/hash.h"
#include "commit/bed.h"
#include "commit/expire.h"
#include "upload/counting.h"
#include "upload/delta.h"
#include "upload/directory.h"

enum { WORLD_IDS = 400, WORLD_FILES = 4096, WORLD_BIG = 150 * 1000 };

#define WORLD_WRITER "6f2c1d0e-0000-4000-8000-000000000001"
#define WORLD_LEDGER ".tarn/db.t.tarn-lake-test.ledger"
#define WORLD_OWNER  ".tarn/db.t/owner"

struct world_file {
    struct tn_entry entry;
    bool live;
};

struct world {
    struct bed source;
    struct sim_disk target;
    uint64_t random;
    int64_t newest;
    uint64_t live[WORLD_IDS]; /* of each snapshot: the sum of its live files' hashes */
    struct world_file files[WORLD_FILES];
    uint32_t file_count;
    struct counting counting;      /* of the last sync; what it does before a request stays */
    struct tn_delta_result result; /* of the last sync */
    struct tn_err err;
};

static const char *const world_dates[] = {"2024-01-01", "2024-01-02", "a/b c"};

static __attribute__((unused, noinline)) void world_write(struct tn_io *io, const char *path,
                                                          struct tn_bytes bytes)
{
    struct tn_err err;
    const char *slash = strrchr(path, '/');
    char dir[256];
    (void)snprintf(dir, sizeof dir, "%.*s", (int)(slash - path), path);
    tn_rc rc = io->vtable->make_dir(io, dir, &err);
    CHECK_OK(rc, err);
    rc = tn_io_write_new(io, path, bytes, &err);
    CHECK_OK(rc, err);
}

/* schema-<id>, with a comment to tell versions apart. */
static __attribute__((unused, noinline)) void world_schema(struct world *w, int64_t id,
                                                           const char *comment)
{
    static struct tn_option options[] = {{"bucket", "2"}, {"file.format", "avro"}};
    struct tn_schema schema = w->source.schema;
    static unsigned char text[4096];
    struct tn_buf buf;
    char path[64];
    schema.id = id;
    schema.options = options;
    schema.option_count = COUNT(options);
    schema.comment = comment;
    tn_buf_init(&buf, text, sizeof text);
    tn_schema_encode(&schema, &buf);
    CHECK(!buf.overflow);
    (void)snprintf(path, sizeof path, ROOT "/schema/schema-%d", (int)id);
    world_write(&w->source.disk.io, path, tn_buf_bytes(&buf));
}

/* Heaps as small as a board's: a debug build fills what is free of one at each call. */
static __attribute__((unused, noinline)) void world_heaps(void)
{
    enum { HEAP_SIZE = 96 * 1024 };
    static struct tn_heap json;
    static struct tn_heap avro;
    static bool done;
    if (!done) {
        tn_heap_init(&json, malloc(HEAP_SIZE), HEAP_SIZE, false);
        tn_heap_init(&avro, malloc(HEAP_SIZE), HEAP_SIZE, false);
        tn_json_use_heap(&json);
        tn_avro_use_heap(&avro);
        done = true;
    }
}

static __attribute__((unused, noinline)) void world_init(struct world *w, uint64_t seed)
{
    *w = (struct world){.random = seed};
    bed_init(&w->source, seed, true);
    world_heaps();
    sim_disk_init(&w->target, BED_DISK_SIZE);
    world_schema(w, 0, NULL);
    world_write(&w->source.disk.io, ".tarn/db.t.writer", tn_bytes_of(WORLD_WRITER));
}

static __attribute__((unused, noinline)) void world_deinit(struct world *w)
{
    sim_disk_deinit(&w->target);
    bed_deinit(&w->source);
}

/* ---- files ---- */

static unsigned char world_bytes[WORLD_BIG];

static __attribute__((unused, noinline)) struct tn_bytes world_content(const char *name,
                                                                       int64_t size)
{
    uint64_t state = tn_hash_64(tn_bytes_of(name), 1);
    CHECK(size <= WORLD_BIG);
    for (int64_t i = 0; i < size; i += 8) {
        uint64_t word = random_next(&state);
        size_t part = size - i < 8 ? (size_t)(size - i) : 8;
        memcpy(world_bytes + i, &word, part);
    }
    return (struct tn_bytes){world_bytes, (size_t)size};
}

static __attribute__((unused, noinline)) const char *
world_path(struct world *w, const struct tn_entry *entry, struct tn_arena *arena)
{
    const char *dir;
    struct tn_err err;
    tn_rc rc = tn_name_bucket(arena, ROOT, &w->source.schema, &w->source.options, entry->partition,
                              entry->bucket, &dir, &err);
    CHECK_OK(rc, err);
    return tn_arena_format(arena, "%s%s", dir, entry->file.file_name);
}

/* A file of some bucket, or of the one that `like` is in. */
static __attribute__((unused, noinline)) struct world_file *
world_add(struct world *w, int32_t level, const struct tn_entry *like)
{
    char name[64];
    struct bed_file shape = {world_dates[random_below(&w->random, COUNT(world_dates))],
                             (int32_t)random_below(&w->random, 2),
                             level,
                             (int64_t)w->file_count,
                             (int64_t)w->file_count,
                             1};
    CHECK(w->file_count < WORLD_FILES);
    (void)snprintf(name, sizeof name, "data-%016llx-0.avro",
                   (unsigned long long)random_next(&w->random));
    struct world_file *file = &w->files[w->file_count++];
    file->entry = bed_entry(&w->source, name, shape);
    file->live = true;
    if (like) {
        file->entry.partition = like->partition;
        file->entry.bucket = like->bucket;
    }
    bool big = random_below(&w->random, 20) == 0;
    file->entry.file.file_size = big ? WORLD_BIG : 1 + random_below(&w->random, 3000);
    struct tn_arena *arena = &w->source.own;
    world_write(&w->source.disk.io, world_path(w, &file->entry, arena),
                world_content(file->entry.file.file_name, file->entry.file.file_size));
    return file;
}

static __attribute__((unused, noinline)) uint64_t world_hash(const struct tn_entry *entry)
{
    return tn_hash_64(tn_bytes_of(entry->file.file_name), (uint64_t)entry->file.level + 7);
}

static __attribute__((unused, noinline)) uint64_t world_live_sum(const struct world *w)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < w->file_count; i++) {
        sum += w->files[i].live ? world_hash(&w->files[i].entry) : 0;
    }
    return sum;
}

/* ---- what happens at the source ---- */

static __attribute__((unused, noinline)) void world_commit(struct world *w,
                                                           const struct tn_commit_spec *spec)
{
    struct tn_commit_result result;
    tn_rc rc = tn_commit(spec, &w->source.worker, &result, &w->err);
    CHECK_OK(rc, w->err);
    CHECK(!result.compact_refused && result.latest_id < WORLD_IDS);
    for (; w->newest < result.latest_id; w->newest++) {
        w->live[w->newest + 1] = world_live_sum(w);
    }
}

/* As tarn commits: the writer's id is in the snapshot. */
static __attribute__((unused, noinline)) struct tn_commit_spec world_spec(struct world *w)
{
    static struct tn_json_pair writer[] = {{"tarn.writer", WORLD_WRITER}};
    struct tn_commit_spec spec = bed_spec(&w->source, w->newest + 1);
    spec.properties = (struct tn_json_map){writer, 1};
    return spec;
}

static __attribute__((unused, noinline)) void world_append(struct world *w)
{
    struct tn_entry added[4];
    struct tn_commit_spec spec = world_spec(w);
    spec.last_seen = w->newest;
    spec.added = added;
    spec.added_count = 1 + random_below(&w->random, COUNT(added));
    for (uint32_t i = 0; i < spec.added_count; i++) {
        added[i] = world_add(w, 0, NULL)->entry;
    }
    world_commit(w, &spec);
}

/* Level-0 files of one bucket become one of level 5. */
static __attribute__((unused, noinline)) void world_compact(struct world *w)
{
    struct tn_commit_removal removed[8];
    struct tn_entry compacted;
    const struct tn_entry *first = NULL;
    struct tn_commit_spec spec = world_spec(w);
    for (uint32_t i = 0; i < w->file_count && spec.removed_count < COUNT(removed); i++) {
        struct tn_entry *entry = &w->files[i].entry;
        if (!w->files[i].live || entry->file.level != 0 ||
            (first && (entry->bucket != first->bucket ||
                       !tn_bytes_equal(entry->partition, first->partition)))) {
            continue;
        }
        first = first ? first : entry;
        w->files[i].live = false;
        removed[spec.removed_count++] = bed_removal(entry);
    }
    if (!first) {
        return;
    }
    compacted = world_add(w, 5, first)->entry;
    spec.last_seen = w->newest;
    spec.removed = removed;
    spec.compacted = &compacted;
    spec.compacted_count = 1;
    world_commit(w, &spec);
}

/* A level-0 file goes to level 5 as it is, under its name. */
static __attribute__((unused, noinline)) void world_lift(struct world *w)
{
    struct tn_commit_removal removal;
    struct tn_commit_spec spec = world_spec(w);
    uint32_t i = 0;
    while (i < w->file_count && !(w->files[i].live && w->files[i].entry.file.level == 0)) {
        i++;
    }
    if (i == w->file_count) {
        return;
    }
    CHECK(w->file_count < WORLD_FILES);
    struct world_file *lifted = &w->files[w->file_count++];
    *lifted = w->files[i];
    lifted->entry.file.level = 5;
    w->files[i].live = false;
    removal = bed_removal(&w->files[i].entry);
    spec.last_seen = w->newest;
    spec.removed = &removal;
    spec.removed_count = 1;
    spec.compacted = &lifted->entry;
    spec.compacted_count = 1;
    world_commit(w, &spec);
}

static __attribute__((unused, noinline)) void world_expire(struct world *w, int32_t keep,
                                                           struct tn_worker *worker)
{
    struct tn_expire_spec spec = {
        .root = ROOT, .schema = &w->source.schema, .options = &w->source.options};
    struct tn_options options = w->source.options;
    struct tn_expire_result result;
    options.snapshot_retained_min = keep;
    options.snapshot_retained_max = keep;
    spec.options = &options;
    tn_rc rc = tn_expire(&spec, worker, &result, &w->err);
    CHECK_OK(rc, w->err);
}

/* ---- the mirror ---- */

static __attribute__((unused, noinline)) tn_rc world_sync_with(struct world *w,
                                                               struct tn_delta_spec spec)
{
    static struct tn_directory directory;
    size_t mark = tn_arena_mark(&w->source.worker.arena);
    spec.root = ROOT;
    tn_rc rc =
        tn_directory_init(&directory, &w->target.io, "lake", &w->source.worker.arena, &w->err);
    CHECK_OK(rc, w->err);
    w->counting = (struct counting){.target = {.vtable = &counting_vtable, .name = "lake"},
                                    .inner = &directory.target,
                                    .before = w->counting.before,
                                    .keeps = w->counting.keeps,
                                    .user = w->counting.user,
                                    .hides = w->counting.hides,
                                    .denied = w->counting.denied};
    spec.target = &w->counting.target;
    rc = tn_delta_sync(&spec, &w->source.worker, &w->result, &w->err);
    CHECK(rc == TN_OK || rc == w->err.code);
    tn_arena_reset(&w->source.worker.arena, mark);
    return rc;
}

static __attribute__((unused, noinline)) uint64_t world_asked(const struct world *w,
                                                              enum tn_target_verb verb)
{
    return w->counting.target.counts.requests[verb];
}

static __attribute__((unused, noinline)) tn_rc world_sync(struct world *w)
{
    return world_sync_with(w, (struct tn_delta_spec){.consumer = "tarn-lake-test"});
}

/* Both sides at one moment, to go back to. */
struct world_pair {
    struct sim_disk source;
    struct sim_disk target;
};

/* All that is there by now is durable. */
static __attribute__((unused, noinline)) void world_save(struct world *w, struct world_pair *pair)
{
    sim_disk_reboot(&w->source.disk, SIM_SEED_ALL);
    sim_disk_reboot(&w->target, SIM_SEED_ALL);
    sim_disk_clone(&pair->source, &w->source.disk);
    sim_disk_clone(&pair->target, &w->target);
}

static __attribute__((unused, noinline)) void world_go_back(struct world *w,
                                                            const struct world_pair *pair)
{
    sim_disk_deinit(&w->source.disk);
    sim_disk_deinit(&w->target);
    sim_disk_clone(&w->source.disk, &pair->source);
    sim_disk_clone(&w->target, &pair->target);
}

static __attribute__((unused, noinline)) void world_forget(struct world_pair *pair)
{
    sim_disk_deinit(&pair->source);
    sim_disk_deinit(&pair->target);
}

/* The state of the gateway is lost, but for the table. */
static __attribute__((unused, noinline)) void world_change_writer(struct world *w, const char *id)
{
    struct tn_err err;
    tn_rc rc = w->source.disk.io.vtable->unlink(&w->source.disk.io, ".tarn/db.t.writer", &err);
    CHECK_OK(rc, err);
    world_write(&w->source.disk.io, ".tarn/db.t.writer", tn_bytes_of(id));
}

static __attribute__((unused, noinline)) void world_lose_ledger(struct world *w)
{
    struct tn_err err;
    tn_rc rc = w->source.disk.io.vtable->unlink(&w->source.disk.io, WORLD_LEDGER, &err);
    CHECK(rc == TN_OK || rc == TN_ABSENT);
}

struct world_look {
    struct world *w;
    struct tn_worker *worker;
    uint64_t sum;
};

static __attribute__((unused, noinline)) tn_rc
world_look_at(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct world_look *look = user;
    struct tn_arena *arena = &look->worker->arena;
    struct tn_bytes bytes;
    const char *path = world_path(look->w, entry, arena);
    tn_rc rc = tn_io_read_all(look->worker->io, path, WORLD_BIG, arena, &bytes, err);
    if (rc == TN_OK &&
        !tn_bytes_equal(bytes, world_content(entry->file.file_name, entry->file.file_size))) {
        rc = tn_err_set(err, TN_CORRUPT, 0, "%s is not whole", path);
    }
    look->sum += world_hash(entry);
    return rc;
}

static __attribute__((unused, noinline)) tn_rc
world_look_at_index(void *user, const struct tn_index_entry *entry, struct tn_err *err)
{
    struct world_look *look = user;
    struct tn_arena *arena = &look->worker->arena;
    struct tn_bytes bytes;
    const char *path = tn_name_in(arena, ROOT, TN_DIR_INDEX, entry->file_name);
    tn_rc rc = tn_io_read_all(look->worker->io, path, WORLD_BIG, arena, &bytes, err);
    return rc == TN_OK && !tn_bytes_equal(bytes, world_content(entry->file_name, entry->file_size))
               ? tn_err_set(err, TN_CORRUPT, 0, "%s is not whole", path)
               : rc;
}

static __attribute__((unused, noinline)) tn_rc world_check_schema(struct world *w,
                                                                  struct tn_arena *arena)
{
    struct tn_bytes here;
    struct tn_bytes there = {NULL, 0};
    static const char *const path = ROOT "/schema/schema-0";
    tn_rc rc = tn_io_read_all(&w->source.disk.io, path, 4096, arena, &here, &w->err);
    if (rc == TN_OK) {
        rc = tn_io_read_all(&w->target.io, path, 4096, arena, &there, &w->err);
    }
    return rc == TN_OK && !tn_bytes_equal(here, there)
               ? tn_err_set(&w->err, TN_CORRUPT, 0, "%s is not whole", path)
               : rc;
}

/* OK: this snapshot of the mirror is whole and says what the source's said. */
static __attribute__((unused, noinline)) tn_rc world_check(struct world *w, int64_t id)
{
    struct tn_worker worker = w->source.worker;
    struct world_look look = {w, &worker, 0};
    struct tn_snapshot snapshot;
    worker.io = &w->target.io;
    tn_rc rc = tn_snapshot_read(worker.io, ROOT, id, &worker.arena, &snapshot, &w->err);
    if (rc == TN_OK) {
        rc = world_check_schema(w, &worker.arena);
    }
    if (rc == TN_OK) {
        rc = tn_live_each(ROOT, &snapshot, &w->source.schema, NULL, &worker, world_look_at, &look,
                          &w->err);
    }
    if (rc == TN_OK && snapshot.index_manifest) {
        rc = tn_index_each(ROOT, snapshot.index_manifest, &worker, world_look_at_index, &look,
                           &w->err);
    }
    if (rc == TN_OK && look.sum != w->live[id]) {
        rc = tn_err_set(&w->err, TN_CORRUPT, 0, "snapshot %d has other files", (int)id);
    }
    return rc;
}

static __attribute__((unused, noinline)) bool world_has(struct world *w, int64_t id)
{
    char path[64];
    uint64_t size;
    struct tn_err err;
    (void)snprintf(path, sizeof path, ROOT "/snapshot/snapshot-%d", (int)id);
    return w->target.io.vtable->stat(&w->target.io, path, &size, &err) == TN_OK;
}

/* Whether all snapshots that the mirror shows are whole, and it shows each from `first` to `last`,
 * and no later one without the one before. */
static __attribute__((unused, noinline)) bool world_whole(struct world *w, int64_t first,
                                                          int64_t last)
{
    for (int64_t id = 1; id <= w->newest; id++) {
        bool there = world_has(w, id);
        if ((there && world_check(w, id) != TN_OK) || (!there && id >= first && id <= last) ||
            (there && id > first && !world_has(w, id - 1))) {
            return false;
        }
    }
    return true;
}

static __attribute__((unused, noinline)) int64_t world_hint(struct world *w, const char *name)
{
    char path[64];
    static unsigned char memory[512];
    struct tn_arena arena;
    struct tn_bytes text;
    struct tn_err err;
    tn_arena_init(&arena, memory, sizeof memory);
    (void)snprintf(path, sizeof path, ROOT "/snapshot/%s", name);
    tn_rc rc = tn_io_read_all(&w->target.io, path, 64, &arena, &text, &err);
    return rc == TN_OK ? strtoll((const char *)text.data, NULL, 10) : -1;
}
