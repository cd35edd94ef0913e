/* gather_world: a lake's table on a disk, gateways that hand in, and gathers that work at once: any
 * call of one may be interrupted by something that another does. What each gateway has put is
 * remembered, and what each snapshot added is counted. */
#pragma once

#include "commit/bed.h"
#include "commit/expire.h"
#include "commit/publish.h"
#include "given.h"
#include "upload/counting.h"
#include "upload/directory.h"
#include "upload/gather.h"
#include "upload/lake_io.h"
#include "upload/pausing.h"

enum {
    WORLD_GATEWAYS = 4,
    WORLD_IDS = 64, /* of a gateway */
    WORLD_GATHERS = 2,
    WORLD_ARENA = 2 << 20,
    WORLD_ENTRY = 8 * 1024,
    WORLD_LAKE_FILES = 96,
};

struct world;

/* The disk as one gather sees it. */
struct world_door {
    struct tn_io io; /* first */
    struct world *world;
    uint32_t who;
};

struct world_gather {
    struct world_door door;
    struct tn_worker worker;
    void *worker_memory;
    struct tn_arena arena;
    void *memory;
    struct tn_gather gather;
    struct tn_gather_result result;
    struct sim_disk scratch; /* of a far one: the table lies in a target, */
    struct tn_directory directory;
    struct counting counting;
    struct tn_lake_io lake;
    void *lake_memory; /* NULL: none is open */
};

struct world_gateway {
    char name[16];
    int64_t put;   /* ids up to it are known to be there, or were */
    int64_t files; /* made so far */
    bool waits;    /* put + 1 was tried, and nobody knows */
    struct tn_buf texts[WORLD_IDS + 1];
};

struct world {
    struct bed bed;
    struct tn_meta_plan plan;
    uint64_t random;
    bool far;        /* gathers work through a target */
    uint32_t chance; /* 1 of so many calls is interrupted; 0: none */
    bool busy;
    struct pausing pausing;
    uint32_t pause_at; /* the call of a gather before which commits are paused; 0: none */
    tn_rc answer;      /* what the store says once, of an entry that is opened; OK: nothing */
    struct world_gateway gateways[WORLD_GATEWAYS];
    struct world_gather gathers[WORLD_GATHERS];
    void (*others)(
        struct world *w); /* between two calls; NULL: a compaction, and the other gather */
    uint32_t others_at; /* the call of a gather before which they work, whatever chance; 0: none */
    uint32_t rounds;
    uint32_t refused;
    char reason[TN_ERR_TEXT_SIZE];
    int64_t counted; /* snapshots up to it */
    uint8_t added[WORLD_GATEWAYS][WORLD_IDS * 4];
    bool data[WORLD_GATEWAYS][WORLD_IDS * 4]; /* these files are no changelog's */
    uint32_t compacted;
    struct tn_err err;
};

static void world_interrupt(struct world *w, uint32_t who);

/* ---- the door ---- */

static struct tn_io *world_disk(struct tn_io *io)
{
    struct world_door *door = (struct world_door *)(void *)io;
    world_interrupt(door->world, door->who);
    return &door->world->bed.disk.io;
}

static tn_rc door_open(struct tn_io *io, const char *path, int *file, uint64_t *size,
                       struct tn_err *err)
{
    struct tn_io *disk = world_disk(io);
    struct world *w = ((struct world_door *)(void *)io)->world;
    tn_rc answer = strstr(path, "/inbox/") ? w->answer : TN_OK;
    if (answer == TN_OK) {
        return disk->vtable->open(disk, path, file, size, err);
    }
    w->answer = TN_OK;
    return tn_err_set(err, answer, 0, "get %s: an answer that no store gives", path);
}
static tn_rc door_read(struct tn_io *io, int file, uint64_t offset, void *data, size_t size,
                       size_t *got, struct tn_err *err)
{
    struct tn_io *disk = world_disk(io);
    return disk->vtable->read(disk, file, offset, data, size, got, err);
}
static tn_rc door_create(struct tn_io *io, const char *path, int *file, struct tn_err *err)
{
    struct tn_io *disk = world_disk(io);
    return disk->vtable->create(disk, path, file, err);
}
static tn_rc door_append(struct tn_io *io, int file, struct tn_bytes bytes, struct tn_err *err)
{
    struct tn_io *disk = world_disk(io);
    return disk->vtable->append(disk, file, bytes, err);
}
static void door_close(struct tn_io *io, int file)
{
    struct world_door *door = (struct world_door *)(void *)io;
    struct tn_io *disk = &door->world->bed.disk.io;
    disk->vtable->close(disk, file);
}
static tn_rc door_sync(struct tn_io *io, const char *const *paths, uint32_t count,
                       struct tn_err *err)
{
    struct tn_io *disk = world_disk(io);
    return disk->vtable->sync(disk, paths, count, err);
}
static tn_rc door_rename_new(struct tn_io *io, const char *path, const char *path_new,
                             struct tn_err *err)
{
    struct tn_io *disk = world_disk(io);
    return disk->vtable->rename_new(disk, path, path_new, err);
}
static tn_rc door_replace(struct tn_io *io, const char *path, const char *path_new,
                          struct tn_err *err)
{
    struct tn_io *disk = world_disk(io);
    return disk->vtable->replace(disk, path, path_new, err);
}
static tn_rc door_unlink(struct tn_io *io, const char *path, struct tn_err *err)
{
    struct tn_io *disk = world_disk(io);
    return disk->vtable->unlink(disk, path, err);
}
static tn_rc door_make_dir(struct tn_io *io, const char *path, struct tn_err *err)
{
    struct tn_io *disk = world_disk(io);
    return disk->vtable->make_dir(disk, path, err);
}
static tn_rc door_list(struct tn_io *io, const char *path, tn_io_name_fn *each, void *user,
                       struct tn_err *err)
{
    struct tn_io *disk = world_disk(io);
    return disk->vtable->list(disk, path, each, user, err);
}
static tn_rc door_stat(struct tn_io *io, const char *path, uint64_t *size, struct tn_err *err)
{
    struct tn_io *disk = world_disk(io);
    return disk->vtable->stat(disk, path, size, err);
}

static tn_rc door_remove_dir(struct tn_io *io, const char *path, struct tn_err *err)
{
    struct tn_io *disk = world_disk(io);
    return disk->vtable->remove_dir(disk, path, err);
}
static tn_rc door_modified(struct tn_io *io, const char *path, int64_t *ms, struct tn_err *err)
{
    struct tn_io *disk = world_disk(io);
    return disk->vtable->modified(disk, path, ms, err);
}

static const struct tn_io_vtable world_door_vtable = {.open = door_open,
                                                      .read = door_read,
                                                      .create = door_create,
                                                      .append = door_append,
                                                      .close = door_close,
                                                      .sync = door_sync,
                                                      .rename_new = door_rename_new,
                                                      .replace = door_replace,
                                                      .unlink = door_unlink,
                                                      .make_dir = door_make_dir,
                                                      .list = door_list,
                                                      .stat = door_stat,
                                                      .remove_dir = door_remove_dir,
                                                      .modified = door_modified};

/* ---- gathers ---- */

static void world_note_refused(void *user, const struct tn_inbox_item *item, const char *reason)
{
    struct world *w = user;
    w->refused++;
    (void)snprintf(w->reason, sizeof w->reason, "%s/%d: %.300s", item->gateway, (int)item->id,
                   reason);
}

static void world_leave(struct world_gather *g)
{
    if (g->lake_memory) {
        tn_lake_io_close(&g->lake);
        sim_disk_deinit(&g->scratch);
        free(g->lake_memory);
        g->lake_memory = NULL;
    }
}

static void world_go_far(struct world *w, struct world_gather *g)
{
    struct tn_arena arena;
    size_t size = tn_lake_io_size(WORLD_LAKE_FILES) + 64 * 1024;
    world_leave(g);
    sim_disk_init(&g->scratch, BED_DISK_SIZE);
    g->lake_memory = malloc(size);
    tn_arena_init(&arena, g->lake_memory, size);
    tn_rc rc = tn_directory_init(&g->directory, &g->door.io, "lake", &arena, &w->err);
    CHECK_OK(rc, w->err);
    tn_directory_share(&g->directory, &w->bed.clock.clock);
    g->counting = (struct counting){.target = {.vtable = &counting_vtable, .name = "lake"},
                                    .inner = &g->directory.target};
    const struct tn_lake_io_spec spec = {.target = &g->counting.target,
                                         .scratch = &g->scratch.io,
                                         .arena = &arena,
                                         .cache_size = 64 * 1024,
                                         .files = WORLD_LAKE_FILES};
    rc = tn_lake_io_open(&g->lake, &spec, &w->err);
    CHECK_OK(rc, w->err);
    g->worker.io = &g->lake.io;
}

/* As a process that starts. */
static __attribute__((unused, noinline)) void world_start(struct world *w, uint32_t who)
{
    struct world_gather *g = &w->gathers[who];
    free(g->worker_memory);
    struct bed other = w->bed; /* the same disk and clock, a worker of its own */
    bed_worker(&other, &g->door.io, BED_WORKER_SIZE);
    g->worker_memory = other.worker_memory;
    g->worker = other.worker;
    g->worker.clock = &w->bed.clock.clock;
    if (w->far) {
        w->busy = true;
        world_go_far(w, g);
        w->busy = false;
    }
    tn_arena_init(&g->arena, g->memory, WORLD_ARENA);
    struct tn_gather_spec spec = {
        .table = {"db.t", ROOT, &w->bed.schema, &w->bed.options},
        .worker = &g->worker,
        .arena = &g->arena,
        .sure_ms = TN_GATHER_SURE_MS,
        .refused = world_note_refused,
        .user = w,
    };
    tn_rc rc = tn_gather_open(&g->gather, &spec, &w->err);
    CHECK_OK(rc, w->err);
}

static __attribute__((unused, noinline)) void world_init(struct world *w, uint64_t seed)
{
    *w = (struct world){.random = seed, .far = seed % 2 == 0};
    bed_init(&w->bed, seed, true);
    w->bed.options.changelog_producer = TN_CHANGELOG_INPUT;
    w->bed.options.commit_max_retries = 100;
    tn_rc rc = tn_entry_plan(tn_bytes_of(tn_entry_avro_schema), &w->bed.own, &w->plan, &w->err);
    CHECK_OK(rc, w->err);
    pausing_init(&w->pausing, &w->bed.disk.io, &w->bed.clock.clock, "a \"test\"");
    for (int i = 0; i < WORLD_GATEWAYS; i++) {
        (void)snprintf(w->gateways[i].name, sizeof w->gateways[i].name, "gw-%d", i);
    }
    for (uint32_t i = 0; i < WORLD_GATHERS; i++) {
        w->gathers[i].door = (struct world_door){{.vtable = &world_door_vtable}, w, i};
        w->gathers[i].memory = malloc(WORLD_ARENA);
        world_start(w, i);
    }
}

static __attribute__((unused, noinline)) void world_deinit(struct world *w)
{
    for (int i = 0; i < WORLD_GATHERS; i++) {
        world_leave(&w->gathers[i]);
        free(w->gathers[i].worker_memory);
        free(w->gathers[i].memory);
    }
    for (int i = 0; i < WORLD_GATEWAYS; i++) {
        for (int id = 0; id <= WORLD_IDS; id++) {
            free(w->gateways[i].texts[id].data);
        }
    }
    bed_deinit(&w->bed);
}

static __attribute__((unused, noinline)) tn_rc world_round(struct world *w, uint32_t who)
{
    struct world_gather *g = &w->gathers[who];
    size_t mark = tn_arena_mark(&g->arena);
    size_t scratch = tn_arena_mark(&g->worker.arena);
    tn_rc rc = tn_gather_round(&g->gather, true, &g->result, &w->err);
    CHECK(tn_arena_mark(&g->arena) == mark && tn_arena_mark(&g->worker.arena) == scratch);
    if (rc != TN_OK && rc != TN_CONFLICT && rc != TN_IO && rc != TN_FULL) {
        FAIL("%s: %s", tn_rc_text(rc), w->err.text);
    }
    w->rounds++;
    return rc;
}

/* ---- gateways ---- */

/* "data-<gateway>-<file>-0.avro": what it is is in its name. */
static struct tn_entry world_entry(struct world *w, uint32_t gateway, int64_t file,
                                   const char *prefix)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s-%u-%d-0.avro", prefix, (unsigned)gateway, (int)file);
    struct bed_file shape = {.dt = w->gateways[gateway].name,
                             .bucket = (int32_t)random_below(&w->random, 2),
                             .first = file,
                             .last = file + 5,
                             .rows = 1 + random_below(&w->random, 9)};
    struct tn_entry entry = bed_entry(&w->bed, name, shape);
    entry.file.file_size = 4;
    return entry;
}

/* The file is there, durable. */
static tn_rc world_file(struct world *w, const struct tn_entry *entry)
{
    struct tn_io *io = &w->bed.disk.io;
    struct tn_arena *arena = &w->bed.own;
    const char *dir;
    tn_rc rc = tn_name_bucket(arena, ROOT, &w->bed.schema, &w->bed.options, entry->partition,
                              entry->bucket, &dir, &w->err);
    CHECK_OK(rc, w->err);
    const char *path = tn_arena_format(arena, "%s%s", dir, entry->file.file_name);
    const char *paths[] = {path, dir};
    rc = io->vtable->make_dir(io, dir, &w->err);
    if (rc == TN_OK) {
        (void)io->vtable->unlink(io, path, &w->err);
        rc = tn_io_write_new(io, path, tn_bytes_of("rows"), &w->err);
    }
    return rc == TN_OK ? io->vtable->sync(io, paths, 2, &w->err) : rc;
}

/* Files, and the text of the next committable. */
static tn_rc world_make(struct world *w, uint32_t number)
{
    struct world_gateway *g = &w->gateways[number];
    static struct tn_entry entries[4];
    uint32_t added = 1 + random_below(&w->random, 2);
    uint32_t changelog = random_below(&w->random, 2);
    int64_t rows = 0;
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < added + changelog; i++) {
        entries[i] = world_entry(w, number, g->files + i, i < added ? "data" : "changelog");
        rows += i < added ? entries[i].file.row_count : 0;
        w->data[number][g->files + i] = i < added;
        rc = world_file(w, &entries[i]);
    }
    if (rc != TN_OK) {
        return rc;
    }
    g->files += added + changelog;
    struct tn_committable c = {.table = "db.t",
                               .user = g->name,
                               .identifier = g->put + 1,
                               .first_id = g->put + 1,
                               .last_id = g->put + 1,
                               .row_count = rows,
                               .added = entries,
                               .added_count = added,
                               .changelog = entries + added,
                               .changelog_count = changelog};
    struct tn_buf *text = &g->texts[g->put + 1];
    tn_buf_init(text, malloc(WORLD_ENTRY), WORLD_ENTRY);
    tn_committable_encode(&c, text);
    CHECK(!text->overflow);
    return TN_OK;
}

static __attribute__((unused, noinline)) tn_rc world_put_text(struct world *w, uint32_t number,
                                                              int64_t id, struct tn_bytes text)
{
    struct tn_io *io = &w->bed.disk.io;
    struct tn_arena *arena = &w->bed.own;
    const char *name = w->gateways[number].name;
    struct tn_err ignored;
    struct tn_publish_spec publish = {
        .bytes = text,
        .draft = tn_arena_format(arena, ".tarn/db.t/inbox/%s/.%d.tmp", name, (int)id),
        .final = tn_inbox_path(arena, "db.t", name, id),
        .dir = tn_arena_format(arena, ".tarn/db.t/inbox/%s/", name),
    };
    tn_rc rc = io->vtable->make_dir(io, publish.dir, &w->err);
    (void)io->vtable->unlink(io, publish.draft, &ignored);
    rc = rc == TN_OK ? tn_publish(io, &publish, &w->err) : rc;
    if (rc == TN_CONFLICT) { /* it's ours, from a try before */
        rc = io->vtable->sync(io, &publish.dir, 1, &w->err);
    }
    return rc;
}

/* Hands in what it tried before, or something new. */
static __attribute__((unused, noinline)) void world_put(struct world *w, uint32_t number)
{
    struct world_gateway *g = &w->gateways[number];
    size_t mark = tn_arena_mark(&w->bed.own);
    tn_rc rc = TN_OK;
    if (g->put < WORLD_IDS) {
        rc = g->waits ? TN_OK : world_make(w, number);
        if (rc == TN_OK) {
            g->waits = true;
            rc = world_put_text(w, number, g->put + 1, tn_buf_bytes(&g->texts[g->put + 1]));
        }
        if (rc == TN_OK) {
            g->waits = false;
            g->put++;
        }
    }
    tn_arena_reset(&w->bed.own, mark);
}

/* What a request that was thought lost does: an entry is there again. */
static __attribute__((unused, noinline)) void world_put_again(struct world *w, uint32_t number,
                                                              int64_t id)
{
    size_t mark = tn_arena_mark(&w->bed.own);
    if (id > 0) {
        (void)world_put_text(w, number, id, tn_buf_bytes(&w->gateways[number].texts[id]));
    }
    tn_arena_reset(&w->bed.own, mark);
}

/* ---- what snapshots added ---- */

static tn_rc world_note(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct world *w = user;
    unsigned gateway;
    unsigned file;
    const char *name = entry->file.file_name;
    (void)err;
    if (entry->kind == TN_ENTRY_ADD && entry->file.level == 0 &&
        sscanf(strchr(name, '-'), "-%u-%u-", &gateway, &file) == 2) {
        CHECK(gateway < WORLD_GATEWAYS && file < WORLD_IDS * 4);
        w->added[gateway][file]++;
    }
    return TN_OK;
}

static __attribute__((unused, noinline)) int64_t world_newest(struct world *w)
{
    int64_t id = 0;
    size_t mark = tn_arena_mark(&w->bed.worker.arena);
    tn_rc rc = tn_snapshot_latest(&w->bed.disk.io, ROOT, &w->bed.worker.arena, &id, &w->err);
    tn_arena_reset(&w->bed.worker.arena, mark);
    return rc == TN_OK ? id : 0;
}

static tn_rc world_is_there(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct world *w = user;
    const char *dir;
    uint64_t size;
    size_t mark = tn_arena_mark(&w->bed.own);
    tn_rc rc = tn_name_bucket(&w->bed.own, ROOT, &w->bed.schema, &w->bed.options, entry->partition,
                              entry->bucket, &dir, err);
    CHECK_OK(rc, *err);
    const char *path = tn_arena_format(&w->bed.own, "%s%s", dir, entry->file.file_name);
    rc = w->bed.disk.io.vtable->stat(&w->bed.disk.io, path, &size, err);
    CHECK_OK(rc, *err);
    tn_arena_reset(&w->bed.own, mark);
    return TN_OK;
}

/* Counts what the snapshots since the last time added; each is there and whole. */
static __attribute__((unused, noinline)) void world_count(struct world *w)
{
    int64_t newest = world_newest(w);
    CHECK(newest >= w->counted);
    for (; w->counted < newest; w->counted++) {
        struct tn_list lists[TN_LIST_COUNT];
        size_t mark = tn_arena_mark(&w->bed.own);
        struct tn_snapshot snapshot = bed_snapshot(&w->bed, w->counted + 1);
        tn_lists_of(&snapshot, lists);
        for (int i = 1; i < TN_LIST_COUNT; i++) {
            tn_rc rc = lists[i].name ? tn_list_each(ROOT, lists[i].name, lists[i].size, NULL,
                                                    &w->bed.worker, world_note, w, &w->err)
                                     : TN_OK;
            CHECK_OK(rc, w->err);
        }
        tn_rc rc = tn_live_each(ROOT, &snapshot, &w->bed.schema, NULL, &w->bed.worker,
                                world_is_there, w, &w->err);
        CHECK_OK(rc, w->err);
        tn_arena_reset(&w->bed.own, mark);
    }
}

/* All that was put is in the table, once. */
static __attribute__((unused, noinline)) void world_check(struct world *w)
{
    world_count(w);
    for (int i = 0; i < WORLD_GATEWAYS; i++) {
        for (int64_t file = 0; file < w->gateways[i].files; file++) {
            if (w->added[i][file] != 1) {
                FAIL("gateway %d, file %d of %d: added %u times (%s)", i, (int)file,
                     (int)w->gateways[i].files, (unsigned)w->added[i][file], w->reason);
            }
        }
    }
}

/* ---- others ---- */

struct world_pick {
    struct tn_entry entry;
    bool found;
    uint32_t seen;
    struct world *world;
};

static tn_rc world_pick_one(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct world_pick *pick = user;
    (void)err;
    if (entry->file.level == 0 && random_below(&pick->world->random, ++pick->seen) == 0) {
        pick->entry = *entry;
        pick->entry.partition = bed_partition(&pick->world->bed, "gw-0");
        bool ok;
        pick->entry.partition = tn_arena_copy(&pick->world->bed.own, entry->partition, &ok);
        pick->entry.file.file_name =
            tn_arena_text(&pick->world->bed.own, tn_bytes_of(entry->file.file_name));
        pick->found = true;
    }
    return TN_OK;
}

/* A file of level 0 of the newest snapshot. */
static __attribute__((unused, noinline)) bool world_pick(struct world *w, struct world_pick *pick)
{
    *pick = (struct world_pick){.world = w};
    int64_t newest = world_newest(w);
    struct tn_snapshot snapshot;
    tn_rc rc = newest > 0 ? tn_snapshot_read(&w->bed.disk.io, ROOT, newest, &w->bed.own, &snapshot,
                                             &w->err)
                          : TN_ABSENT;
    if (rc == TN_OK) {
        rc = tn_live_each(ROOT, &snapshot, &w->bed.schema, NULL, &w->bed.worker, world_pick_one,
                          pick, &w->err);
    }
    return rc == TN_OK && pick->found;
}

/* Somebody's compaction takes a file of level 0 away. */
static __attribute__((unused, noinline)) void world_compact(struct world *w)
{
    struct world_pick pick;
    size_t mark = tn_arena_mark(&w->bed.own);
    if (world_pick(w, &pick)) {
        struct tn_commit_result result;
        struct tn_commit_removal removal = bed_removal(&pick.entry);
        struct tn_commit_spec spec = bed_spec(&w->bed, ++w->compacted);
        spec.removed = &removal;
        spec.removed_count = 1;
        tn_rc rc = tn_commit(&spec, &w->bed.worker, &result, &w->err); /* or not */
        (void)rc;
    }
    tn_arena_reset(&w->bed.own, mark);
}

static __attribute__((unused, noinline)) void world_interrupt(struct world *w, uint32_t who)
{
    if (w->pause_at > 0 && --w->pause_at == 0) {
        pausing_keep(&w->pausing);
    }
    if (w->others_at > 0 && --w->others_at == 0) {
        w->others(w);
    }
    if (w->busy || w->chance == 0 || w->bed.disk.off || random_below(&w->random, w->chance) > 0) {
        return;
    }
    struct tn_err kept = w->err; /* of the call that is interrupted */
    w->busy = true;
    switch (random_below(&w->random, 4)) {
    case 0:
        if (!w->others) {
            (void)world_round(w, 1 - who);
        }
        break;
    case 1:
        (w->others ? w->others : world_compact)(w);
        break;
    default:
        world_put(w, random_below(&w->random, WORLD_GATEWAYS));
        break;
    }
    w->busy = false;
    w->err = kept;
}
