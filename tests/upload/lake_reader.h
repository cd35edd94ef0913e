/* lake_reader: somebody who looks at a lake at every change of its store, and follows it from the
 * first snapshot to the last:
 *
 * - An object is made once, with the bytes of the source, and stays; but hints and the owner.
 * - When snapshot-N is there, its lists, manifests, schemas, data and changelog files are read, and
 *   are the rows and the changes that the source had at N.
 * - It follows N-1, or EARLIEST passes the gap before anything follows N. What comes late, put by a
 *   process that is dead by then, is passed with what follows it, or comes below EARLIEST; passed
 *   so is also what a store that hides what it lacks didn't show to who looked for it.
 * - When a tag is there, what it holds is read, too.
 * - LATEST names a snapshot that is there, and never an older one; EARLIEST one from which on all
 *   are there.
 *
 * What is wrong is kept in `problem`: the first of it.
 */
#pragma once

#include "commit/tag.h"
#include "store_io.h"
#include "table/bed.h"

struct lake_reader {
    struct store_io io;
    struct sim_disk aside;
    struct bed_engine *engine;
    struct tn_io *source; /* NULL: nobody knows what the source has */
    struct bed_look look;
    bool gaps; /* may be there */
    int64_t first;
    int64_t newest;
    int64_t latest;   /* what the hint says; 0: nothing */
    int64_t earliest; /* likewise */
    int64_t gap;      /* the snapshot behind one that EARLIEST hasn't passed yet; 0: none */
    bool dead;        /* what changed last was put by a process that is dead by now */
    int64_t late; /* of those behind a gap, the last one that came so, or that a moment's 403 hid
                   * from who asked for it; 0: none */
    bool below;   /* something stood in front of a gap, and may go */
    uint64_t changes;
    uint64_t snapshots;
    const char *problem; /* or NULL */
    char text[900];
    char last[200]; /* the object that changed last */
};

static __attribute__((unused, noinline, format(printf, 2, 3))) void
lake_reader_complain(struct lake_reader *r, const char *format, ...)
{
    va_list args;
    if (!r->problem) {
        int size = snprintf(r->text, sizeof r->text, "%s: ", r->last);
        va_start(args, format);
        (void)vsnprintf(r->text + size, sizeof r->text - (size_t)size, format, args);
        va_end(args);
        r->problem = r->text;
    }
}

static __attribute__((unused, noinline)) void
lake_reader_begin(struct lake_reader *r, struct bed_engine *engine, struct model *model,
                  struct tn_io *source, const struct bed_scenario *scenario)
{
    *r = (struct lake_reader){.engine = engine, .source = source};
    sim_disk_init(&r->aside, BED_DISK_SIZE);
    store_io_init(&r->io, model, "lake/", &r->aside);
    r->look.engine = engine;
    r->look.scenario = scenario;
    bed_engine_begin(engine, &r->io.io, NULL, scenario->seed);
}

static inline void lake_reader_end(struct lake_reader *r)
{
    sim_disk_deinit(&r->aside);
}

static inline bool lake_reader_has(struct lake_reader *r, int64_t id)
{
    char path[64];
    uint64_t size;
    struct tn_err err;
    (void)snprintf(path, sizeof path, BED_ROOT "/snapshot/snapshot-%" PRId64, id);
    return store_io_stat(&r->io.io, path, &size, &err) == TN_OK;
}

/* Schemas may have come since the last snapshot. What the follower has seen stays. */
static __attribute__((unused, noinline)) const char *lake_reader_open(struct lake_reader *r,
                                                                      bool anew)
{
    struct bed_look *look = &r->look;
    struct tn_arena *own = &r->engine->own;
    tn_arena_reset(own, 0);
    const char *problem = bed_read_open(r->engine, &look->reader);
    if (!problem && anew) {
        bed_look_begin(look);
    }
    look->follower.scan.schema = look->reader.schema;
    look->mark = tn_arena_mark(own);
    return problem;
}

/* All that are there, from the beginning; `told`: the last one leaves no change untold. NULL, or
 * what is wrong. */
static __attribute__((unused, noinline)) const char *lake_reader_follow(struct lake_reader *r,
                                                                        bool told)
{
    const char *problem = NULL;
    r->look.first = r->earliest;
    r->look.last = r->newest;
    r->look.told = told;
    for (int64_t id = r->earliest; !problem && id <= r->newest; id++) {
        problem = lake_reader_open(r, id == r->earliest);
        problem = problem ? problem : bed_look_at(&r->look, id);
    }
    return problem;
}

/* The rows of one, by itself. */
static __attribute__((unused, noinline)) const char *
lake_reader_read(struct lake_reader *r, const struct tn_snapshot *snapshot)
{
    uint32_t position = 0;
    const char *problem = bed_position_of(snapshot, r->look.scenario, &position);
    return problem ? problem
                   : bed_read_snapshot(r->engine, &r->look.reader, snapshot, r->look.scenario,
                                       position);
}

/* It lies below EARLIEST, or will with the next that is put: nobody looks for it. */
static __attribute__((unused, noinline)) void lake_reader_behind(struct lake_reader *r, int64_t id)
{
    struct tn_snapshot snapshot;
    struct tn_err err;
    if (!r->dead || (id >= r->earliest && r->gap != r->newest)) {
        lake_reader_complain(r, "it comes behind snapshot %" PRId64, r->newest);
        return;
    }
    const char *problem = lake_reader_open(r, false);
    tn_rc rc = tn_snapshot_read(&r->io.io, BED_ROOT, id, &r->engine->own, &snapshot, &err);
    CHECK_OK(rc, err);
    problem = problem ? problem : lake_reader_read(r, &snapshot);
    if (problem) {
        lake_reader_complain(r, "%s", problem);
    }
    r->late = id;
}

static __attribute__((unused, noinline)) void lake_reader_snapshot(struct lake_reader *r,
                                                                   int64_t id)
{
    bool follows = r->newest > 0 && id == r->newest + 1;
    if (id <= r->newest) {
        lake_reader_behind(r, id);
        return;
    }
    /* The PUT of a process that was killed may arrive when nobody will ask for it any more: then it
     * is the next snapshot behind which EARLIEST passes the gap. */
    if (r->gap > 0 && follows && r->late != r->gap) {
        lake_reader_complain(r, "EARLIEST stands before the gap below snapshot %" PRId64, r->gap);
    }
    if (r->newest > 0 && !follows) {
        r->gap = id;
        r->late = r->dead ? id : r->late;
        if (!r->gaps) {
            lake_reader_complain(r, "it follows snapshot %" PRId64, r->newest);
        }
    }
    r->first = r->newest == 0 ? id : r->first;
    r->newest = id;
    r->snapshots++;
    r->look.first = follows ? r->look.first : id;
    r->look.last = id;
    const char *problem = lake_reader_open(r, !follows);
    problem = problem ? problem : bed_look_at(&r->look, id);
    if (problem) {
        lake_reader_complain(r, "%s", problem);
    }
}

static __attribute__((unused, noinline)) void lake_reader_tag(struct lake_reader *r,
                                                              const char *name)
{
    struct bed_engine *engine = r->engine;
    struct tn_tag tag;
    struct tn_err err;
    const char *problem = lake_reader_open(r, false);
    tn_rc rc = tn_tag_read(&r->io.io, BED_ROOT, name, &engine->own, &tag, &err);
    CHECK_OK(rc, err);
    problem = problem ? problem : lake_reader_read(r, &tag.snapshot);
    if (problem) {
        lake_reader_complain(r, "%s", problem);
    }
}

/* Something was removed: from EARLIEST on all is there, and what the tags hold. */
static __attribute__((unused, noinline)) const char *
lake_reader_again(struct lake_reader *r, const char *const *tags, uint32_t tag_count)
{
    (void)snprintf(r->last, sizeof r->last, "what is left");
    const char *problem = lake_reader_follow(r, false);
    for (uint32_t i = 0; i < tag_count && !problem && !r->problem; i++) {
        char path[64];
        uint64_t size;
        struct tn_err err;
        (void)snprintf(path, sizeof path, BED_ROOT "/tag/tag-%s", tags[i]);
        if (store_io_stat(&r->io.io, path, &size, &err) == TN_OK) {
            (void)snprintf(r->last, sizeof r->last, "%s", path);
            lake_reader_tag(r, tags[i]);
        }
    }
    return problem ? problem : r->problem;
}

/* Its number; 0: there is none. */
static inline int64_t lake_hint_of(const struct model_object *object)
{
    char text[32];
    CHECK(object->bytes.size < sizeof text);
    memcpy(text, object->bytes.data, object->bytes.size);
    text[object->bytes.size] = 0;
    return strtoll(text, NULL, 10);
}

static inline void lake_reader_latest(struct lake_reader *r, int64_t id)
{
    if (!lake_reader_has(r, id) || id < r->latest) {
        lake_reader_complain(r, "it says %" PRId64 " after %" PRId64, id, r->latest);
    }
    r->latest = id;
}

static inline void lake_reader_earliest(struct lake_reader *r, int64_t id)
{
    for (int64_t at = id; at <= r->newest; at++) {
        if (!lake_reader_has(r, at)) {
            lake_reader_complain(r, "it says %" PRId64 ", and %" PRId64 " isn't there", id, at);
        }
    }
    if (id > r->newest) {
        lake_reader_complain(r, "it says %" PRId64 ", the newest is %" PRId64, id, r->newest);
    }
    r->gap = r->gap > id ? r->gap : 0;
    r->below = r->below || (r->earliest > 0 && id > r->earliest);
    r->earliest = id;
}

/* The source may have expired it meanwhile. */
static __attribute__((unused, noinline)) void
lake_reader_compare(struct lake_reader *r, const char *path, const struct model_bytes *bytes)
{
    static _Alignas(max_align_t) unsigned char memory[MODEL_BODY + 256];
    struct tn_arena arena;
    struct tn_bytes ours;
    struct tn_err err;
    tn_arena_init(&arena, memory, sizeof memory);
    tn_rc rc =
        r->source ? tn_io_read_all(r->source, path, MODEL_BODY, &arena, &ours, &err) : TN_ABSENT;
    if (rc == TN_OK && !tn_bytes_equal(ours, (struct tn_bytes){bytes->data, bytes->size})) {
        lake_reader_complain(r, "it isn't what the source has");
    } else if (rc != TN_OK && rc != TN_ABSENT) {
        lake_reader_complain(r, "%s", err.text);
    }
}

/* For struct model: `user` is the reader. */
static __attribute__((unused, noinline)) void lake_reader_changed(struct model *m,
                                                                  struct model_object *object)
{
    struct lake_reader *r = m->user;
    const char *path = store_io_path(&r->io, object);
    CHECK(path != NULL);
    if (r->problem) {
        return;
    }
    r->changes++;
    (void)snprintf(r->last, sizeof r->last, "%s", path);
    if (strncmp(path, ".tarn/", 6) == 0) {
        return;
    }
    if (strcmp(path, BED_ROOT "/snapshot/LATEST") == 0) {
        lake_reader_latest(r, lake_hint_of(object));
        return;
    }
    if (strcmp(path, BED_ROOT "/snapshot/EARLIEST") == 0) {
        lake_reader_earliest(r, lake_hint_of(object));
        return;
    }
    if (strncmp(path, BED_ROOT "/tag/tag-", sizeof BED_ROOT + 8) == 0) {
        lake_reader_tag(r, path + sizeof BED_ROOT + 8);
        return;
    }
    if (object->first != model_hash(&object->bytes)) {
        lake_reader_complain(r, "it had other bytes");
    }
    lake_reader_compare(r, path, &object->bytes);
    if (strncmp(path, BED_ROOT "/snapshot/", sizeof BED_ROOT + 9) == 0) {
        lake_reader_snapshot(r, tn_name_number(path + sizeof BED_ROOT + 9, "snapshot-"));
    }
}
