/* fleet: gateways that share one table of a lake. Each has a world of its own, of which only the
 * source is used; the lake is one disk, on which each has a target of its own, that may fail, lose
 * an answer, keep a PUT back for later, or be cut off. */
#pragma once

#include "given.h"
#include "upload/direct.h"
#include "upload/share_schema.h"
#include "upload/world.h"

enum { FLEET_MAX = 4, FLEET_LATE = 8 };

enum fleet_fault {
    FLEET_GOES_WELL,
    FLEET_FAILS,  /* nothing was done */
    FLEET_LOST,   /* done, but who asked is told that nobody knows */
    FLEET_LATE_1, /* not done yet: it happens before some later call */
};

struct fleet;

struct gateway {
    struct world w;
    struct fleet *fleet;
    struct tn_directory directory;
    struct counting counting;
    struct sim_disk scratch;
    struct tn_direct_result result;
    struct tn_err err;
    bool at_work;
    struct tn_share_bounds bounds;
    const char *place;            /* of its store; NULL: as "" */
    struct tn_pause_watch *watch; /* NULL: a sync waits by itself */
    uint64_t waited_ms;           /* in this sync */
    uint32_t number;
};

/* A PUT that is still on its way. */
struct fleet_late {
    char path[128];
    unsigned char bytes[2048];
    size_t size;
};

struct fleet {
    struct sim_disk lake;
    struct gateway *gateways; /* count */
    uint32_t count;
    uint64_t random;
    uint32_t faults;     /* of 100 publishes so many go wrong */
    uint32_t rivals;     /* of 100 snapshots' names so many are wanted by another one just before */
    bool careless;       /* the store takes its condition for a wish */
    uint32_t races_lost; /* so many answers to come are lost: of the next races */
    bool nested;         /* one is at work inside another's call */
    struct fleet_late late[FLEET_LATE];
    uint32_t late_count;
    void (*before)(void *user, enum tn_target_verb verb, const char *path); /* each request */
};

static struct gateway fleet_gateways[FLEET_MAX];

static __attribute__((unused, noinline)) tn_rc fleet_sync(struct gateway *g);

static __attribute__((unused, noinline)) bool fleet_chance(struct fleet *f, uint32_t of_100)
{
    return random_below(&f->random, 100) < of_100;
}

/* ---- the way to the lake ---- */

static __attribute__((unused, noinline)) void fleet_deliver(struct fleet *f)
{
    if (f->late_count == 0) {
        return;
    }
    struct fleet_late *late = &f->late[--f->late_count];
    struct tn_target *target = &f->gateways[0].directory.target;
    struct tn_err ignored;
    (void)!target->vtable->publish(target, late->path, (struct tn_bytes){late->bytes, late->size},
                                   &ignored);
}

/* Before each request: cut off, or others are at work. */
static void fleet_before(void *user, enum tn_target_verb verb, const char *path)
{
    struct gateway *g = user;
    struct fleet *f = g->fleet;
    if (fleet_chance(f, 10)) {
        fleet_deliver(f);
    }
    if (verb == TN_TARGET_PUT && strstr(path, "/snapshot/snapshot-") && !f->nested &&
        fleet_chance(f, f->rivals)) {
        struct gateway *rival = &f->gateways[random_below(&f->random, f->count)];
        f->nested = true;
        if (rival != g) {
            world_append(&rival->w);
            (void)!fleet_sync(rival);
        }
        f->nested = false;
    }
}

static tn_rc fleet_publish(struct tn_target *target, const char *path, struct tn_bytes bytes,
                           struct tn_err *err)
{
    struct gateway *g = counting_of(target)->user;
    struct fleet *f = g->fleet;
    enum fleet_fault fault =
        fleet_chance(f, f->faults) ? (enum fleet_fault)(1 + random_below(&f->random, 3)) : 0;
    struct fleet_late *late = &f->late[f->late_count];
    bool keeps = fault == FLEET_LATE_1 && f->late_count < FLEET_LATE &&
                 strlen(path) < sizeof late->path && bytes.size <= sizeof late->bytes;
    if (keeps) {
        (void)snprintf(late->path, sizeof late->path, "%s", path);
        memcpy(late->bytes, bytes.data, bytes.size);
        late->size = bytes.size;
        f->late_count++;
    }
    if (keeps || fault == FLEET_FAILS) {
        return tn_err_set(err, TN_IO, 0, "lake: no answer");
    }
    tn_rc rc = counting_publish(target, path, bytes, err);
    return fault == FLEET_LOST ? tn_err_set(err, TN_IO, 0, "lake: the answer was lost") : rc;
}

/* One more than the one is told that the name is its own; or an answer is lost. */
static tn_rc fleet_race(struct tn_target *target, struct tn_target_race *race, struct tn_err *err)
{
    struct fleet *f = ((struct gateway *)counting_of(target)->user)->fleet;
    tn_rc rc = counting_race(target, race, err);
    race->won += rc == TN_OK && f->careless;
    if (f->races_lost > 0) {
        f->races_lost--;
        return tn_err_set(err, TN_IO, 0, "lake: the answer was lost");
    }
    return rc;
}

/* ---- gateways ---- */

static void fleet_wait(void *user, uint32_t ms)
{
    struct gateway *g = user;
    g->waited_ms += ms;
    sim_clock_advance_ms(&g->w.source.clock, ms);
}

static __attribute__((unused, noinline)) struct tn_io *fleet_io(struct gateway *g)
{
    return &g->w.source.disk.io;
}

static __attribute__((unused, noinline)) void fleet_open_target(struct gateway *g,
                                                                struct tn_arena *arena)
{
    static struct tn_target_vtable vtable;
    struct tn_err err;
    tn_rc rc = tn_directory_init(&g->directory, &g->fleet->lake.io, "lake", arena, &err);
    CHECK_OK(rc, err);
    tn_directory_share(&g->directory, &g->w.source.clock.clock);
    vtable = counting_vtable;
    vtable.publish = fleet_publish;
    vtable.race = fleet_race;
    g->counting = (struct counting){.target = {.vtable = &vtable, .name = "lake"},
                                    .inner = &g->directory.target,
                                    .before = g->fleet->before,
                                    .user = g};
}

static tn_rc fleet_sync(struct gateway *g)
{
    struct tn_worker *worker = &g->w.source.worker;
    size_t mark = tn_arena_mark(&worker->arena);
    if (g->at_work) { /* it is who is beaten */
        return TN_OK;
    }
    sim_disk_deinit(&g->scratch);
    sim_disk_init(&g->scratch, BED_DISK_SIZE);
    fleet_open_target(g, &worker->arena);
    struct tn_direct_spec spec = {.table = "db.t",
                                  .target = &g->counting.target,
                                  .scratch = &g->scratch.io,
                                  .wait = fleet_wait,
                                  .user = g,
                                  .watch = g->watch,
                                  .place = g->place,
                                  .bounds = g->bounds};
    if (tn_arena_free(&worker->arena) > tn_direct_memory()) { /* it takes no more */
        (void)tn_arena_take_raw(&worker->arena, tn_arena_free(&worker->arena) - tn_direct_memory());
    }
    g->waited_ms = 0;
    g->at_work = true;
    tn_rc rc = tn_direct_sync(&spec, worker, &g->result, &g->err);
    g->at_work = false;
    tn_arena_reset(&worker->arena, mark);
    return rc;
}

static __attribute__((unused, noinline)) void fleet_adopt(struct gateway *g)
{
    struct tn_share share = {.where = "lake"};
    struct tn_share_place place = {"db.t", ROOT, &g->counting.target, &g->w.source.worker};
    const struct tn_schema *newest;
    size_t mark = tn_arena_mark(&g->w.source.worker.arena);
    tn_rc rc = fleet_io(g)->vtable->unlink(fleet_io(g), ROOT "/schema/schema-0", &g->err);
    CHECK_OK(rc, g->err);
    fleet_open_target(g, &g->w.source.worker.arena);
    tn_clock_uuid(&g->w.source.clock.clock, share.gateway);
    rc = tn_share_adopt(&place, &share, &newest, &g->err);
    CHECK_OK(rc, g->err);
    tn_arena_reset(&g->w.source.worker.arena, mark);
}

static __attribute__((unused, noinline)) void fleet_init(struct fleet *f, uint32_t count,
                                                         uint64_t seed)
{
    *f = (struct fleet){
        .gateways = fleet_gateways, .count = count, .random = seed, .before = fleet_before};
    sim_disk_init(&f->lake, BED_DISK_SIZE);
    for (uint32_t i = 0; i < count; i++) {
        struct gateway *g = &f->gateways[i];
        *g = (struct gateway){.fleet = f, .number = i};
        world_init(&g->w, seed * 16 + i);
        sim_disk_init(&g->scratch, BED_DISK_SIZE);
        if (i == 0) {
            struct tn_bytes text;
            tn_rc rc = tn_io_read_all(fleet_io(g), ROOT "/schema/schema-0", 4096, &g->w.source.own,
                                      &text, &g->err);
            CHECK_OK(rc, g->err);
            world_write(&f->lake.io, ROOT "/schema/schema-0", text);
        }
        fleet_adopt(g);
    }
    check_seed = seed;
}

static __attribute__((unused, noinline)) void fleet_deinit(struct fleet *f)
{
    for (uint32_t i = 0; i < f->count; i++) {
        sim_disk_deinit(&f->gateways[i].scratch);
        world_deinit(&f->gateways[i].w);
    }
    sim_disk_deinit(&f->lake);
}

/* ---- what the lake has ---- */

struct fleet_look {
    struct fleet *f;
    struct tn_worker worker; /* of the lake; its arena is the first gateway's */
    uint8_t given[FLEET_MAX][WORLD_FILES];
    uint32_t next[FLEET_MAX]; /* of its files: each gateway's come in order */
    int64_t rows;             /* in the snapshot at hand */
    int64_t live;
    int64_t newest;
};

/* The gateway's file of level 0 with this name; COUNT: nobody's. */
static bool fleet_find(struct fleet_look *l, const char *name, uint32_t *gateway, uint32_t *file)
{
    for (uint32_t g = 0; g < l->f->count; g++) {
        const struct world *w = &l->f->gateways[g].w;
        for (uint32_t i = 0; i < w->file_count; i++) {
            const struct tn_file_meta *meta = &w->files[i].entry.file;
            if (meta->level == 0 && strcmp(meta->file_name, name) == 0) {
                *gateway = g;
                *file = i;
                return true;
            }
        }
    }
    return false;
}

static tn_rc fleet_given(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct fleet_look *l = user;
    uint32_t g = 0;
    uint32_t i = 0;
    (void)err;
    if (entry->kind == TN_ENTRY_ADD && fleet_find(l, entry->file.file_name, &g, &i)) {
        CHECK(entry->file.level == 0 && i >= l->next[g]);
        l->next[g] = i + 1;
        l->given[g][i]++;
        l->rows += entry->file.row_count;
    }
    return TN_OK;
}

static tn_rc fleet_live(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct fleet_look *l = user;
    struct tn_arena *arena = &l->worker.arena;
    struct tn_bytes bytes;
    const char *path = world_path(&l->f->gateways[0].w, entry, arena);
    tn_rc rc = tn_io_read_all(l->worker.io, path, WORLD_BIG, arena, &bytes, err);
    CHECK_OK(rc, *err);
    CHECK(tn_bytes_equal(bytes, world_content(entry->file.file_name, entry->file.file_size)));
    l->live++;
    return TN_OK;
}

static __attribute__((unused, noinline)) bool fleet_has(struct fleet *f, int64_t id)
{
    char path[64];
    uint64_t size;
    struct tn_err err;
    (void)snprintf(path, sizeof path, ROOT "/snapshot/snapshot-%d", (int)id);
    return f->lake.io.vtable->stat(&f->lake.io, path, &size, &err) == TN_OK;
}

static __attribute__((unused, noinline)) void fleet_look_at(struct fleet_look *l, int64_t id,
                                                            bool whole, struct tn_snapshot *s)
{
    struct tn_err err;
    size_t mark = tn_arena_mark(&l->worker.arena);
    tn_rc rc = tn_snapshot_read(l->worker.io, ROOT, id, &l->worker.arena, s, &err);
    CHECK_OK(rc, err);
    int64_t before = l->rows;
    rc = tn_list_each(ROOT, s->delta_manifest_list, tn_manifest_size(s->delta_manifest_list_size),
                      NULL, &l->worker, fleet_given, l, &err);
    CHECK_OK(rc, err);
    CHECK(s->delta_record_count.value == l->rows - before || l->f->count == 0);
    l->live = 0;
    if (whole) {
        rc = tn_live_each(ROOT, s, &l->f->gateways[0].w.source.schema, NULL, &l->worker, fleet_live,
                          l, &err);
        CHECK_OK(rc, err);
    }
    tn_arena_reset(&l->worker.arena, mark);
}

/* Walks all snapshots: each is whole, the ids have no gap, each file was given at most once, and a
 * gateway's in its order. */
static __attribute__((unused, noinline)) void fleet_look(struct fleet *f, struct fleet_look *l)
{
    struct tn_snapshot s = {.total_record_count = {0, true}};
    memset(l, 0, sizeof *l);
    l->f = f;
    l->worker = f->gateways[0].w.source.worker;
    l->worker.io = &f->lake.io;
    for (int64_t id = 1; fleet_has(f, id); id++) {
        l->newest = id;
        fleet_look_at(l, id, id % 7 == 0 || !fleet_has(f, id + 1), &s);
    }
    CHECK(s.total_record_count.value == l->rows);
    for (uint32_t g = 0; g < f->count; g++) {
        for (uint32_t i = 0; i < f->gateways[g].w.file_count; i++) {
            CHECK(l->given[g][i] <= 1);
        }
    }
}

/* And all that was appended is there. */
static __attribute__((unused, noinline)) void fleet_check_all(struct fleet *f)
{
    static struct fleet_look l;
    fleet_look(f, &l);
    int64_t files = 0;
    for (uint32_t g = 0; g < f->count; g++) {
        for (uint32_t i = 0; i < f->gateways[g].w.file_count; i++) {
            if (f->gateways[g].w.files[i].entry.file.level == 0) {
                CHECK(l.given[g][i] == 1);
                files++;
            }
        }
    }
    CHECK(l.live == files || l.newest == 0);
}
