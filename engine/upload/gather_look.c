/* Entries: read, and each held against its mark and the table. */
#include "upload/gather_private.h"

#include <inttypes.h>

#include "io/many.h"

/* Entries that are read at once: in all what a large one needs by itself. */
enum { READS = 16, READ_SIZE = TN_COMMITTABLE_SIZE_MAX / READS };

void tn_gather_refuse(struct tn_gather_run *run, struct tn_gather_entry *entry,
                      const struct tn_err *err)
{
    entry->verdict = TN_GATHER_REFUSED;
    entry->reason = tn_arena_text(run->gather->spec.arena, tn_bytes_of(err->text));
    entry->reason = entry->reason ? entry->reason : "it can't be taken";
}

/* What its id tells. */
static enum tn_gather_verdict by_mark(struct tn_gather_marks *marks,
                                      const struct tn_gather_entry *entry)
{
    const struct tn_gather_mark *mark = tn_gather_mark_of(marks, entry->item.gateway);
    if (!mark) {
        return TN_GATHER_REFUSED;
    }
    if (entry->item.id == mark->done &&
        memcmp(&entry->hash, &mark->done_hash, sizeof entry->hash) == 0) {
        return TN_GATHER_KNOWN;
    }
    return entry->item.id <= mark->done     ? TN_GATHER_LATE
           : entry->item.id <= mark->intent ? TN_GATHER_MAYBE
                                            : TN_GATHER_NEW;
}

/* A file has one place in a table. */
static tn_rc note_names(struct tn_gather_run *run, const struct tn_committable *c,
                        struct tn_err *err)
{
    uint32_t count = c->added_count + c->changelog_count;
    if (run->names.count + count > TN_GATHER_FILES_MAX) {
        return tn_err_set(err, TN_AGAIN, 0, "%" PRIu32 " files, more than a round takes", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        const char *name = c->added[i].file.file_name;
        struct tn_hash_128 hash = tn_hash_128(tn_bytes_of(name));
        if (tn_set_has(&run->names, hash) || !tn_set_add(&run->names, hash)) {
            return tn_err_set(err, TN_INVALID, 0, "%s is in it twice, or in another entry", name);
        }
    }
    return TN_OK;
}

/* ---- all of it ---- */

static bool later_schema(const struct tn_gather_run *run, const struct tn_committable *c)
{
    int64_t newest = run->gather->spec.table.schema->id;
    for (uint32_t i = 0; i < c->added_count + c->changelog_count; i++) {
        if (c->added[i].file.schema_id > newest) {
            return true;
        }
    }
    return c->schema_id > newest;
}

static tn_rc look_inside(struct tn_gather_run *run, struct tn_bytes bytes,
                         struct tn_gather_entry *entry, struct tn_err *err)
{
    struct tn_gather *g = run->gather;
    struct tn_committable *c = &entry->committable;
    tn_rc rc = tn_committable_decode(bytes, &g->plan, g->spec.arena, c, err);
    if (rc == TN_OK && !run->newest_schema && later_schema(run, c)) {
        run->result->old_schema = true;
        return TN_OK;
    }
    if (rc == TN_OK) {
        rc = tn_committable_check(c, &g->spec.table, &g->spec.worker->arena, err);
    }
    return rc == TN_OK ? note_names(run, c, err) : rc;
}

static bool is_its_fault(tn_rc rc)
{
    return rc == TN_INVALID || rc == TN_CORRUPT || rc == TN_UNSUPPORTED;
}

static tn_rc look_at_bytes(struct tn_gather_run *run, struct tn_bytes bytes,
                           struct tn_gather_entry *entry, struct tn_err *err)
{
    entry->hash = tn_hash_128(bytes);
    entry->verdict = by_mark(&run->gather->marks, entry);
    if (entry->verdict == TN_GATHER_KNOWN) {
        return TN_OK;
    }
    if (entry->verdict == TN_GATHER_REFUSED) {
        return tn_err_set(err, TN_INVALID, 0, "more than %d gateways", TN_GATHER_GATEWAYS_MAX);
    }
    return look_inside(run, bytes, entry, err);
}

/* An empty round has all the memory that there is: what doesn't fit then never will. */
static tn_rc too_large(const struct tn_gather_run *run, tn_rc rc, struct tn_err *err)
{
    return rc == TN_AGAIN && run->count == 0 ? tn_err_set(err, TN_INVALID, 0, "%s", err->text) : rc;
}

static tn_rc look_at(struct tn_gather_run *run, tn_rc rc, struct tn_bytes bytes,
                     struct tn_gather_entry *entry, struct tn_err *err)
{
    struct tn_arena *arena = run->gather->spec.arena;
    size_t before = tn_arena_mark(arena);
    bool read = rc == TN_OK;
    if (read) {
        rc = look_at_bytes(run, bytes, entry, err);
    }
    rc = too_large(run, rc, err);
    if (rc == TN_ABSENT) {
        entry->verdict = TN_GATHER_GONE;
        return TN_OK;
    }
    if (rc != TN_OK) {
        tn_arena_reset(arena, before);
    }
    /* Of one that isn't read only its size tells; what else is said is the store's. */
    if (read ? is_its_fault(rc) : rc == TN_INVALID) {
        tn_gather_refuse(run, entry, err);
        return TN_OK;
    }
    return rc;
}

/* ---- many at once ---- */

static const char *path_of(const struct tn_gather_run *run, const struct tn_inbox_item *item)
{
    const struct tn_gather_spec *spec = &run->gather->spec;
    return tn_inbox_path(&spec->worker->arena, spec->table.name, item->gateway, item->id);
}

static tn_rc no_room(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "no memory for entries of an inbox");
}

static tn_rc read_some(struct tn_gather_run *run, struct tn_io_ask *asks, uint32_t count,
                       struct tn_err *err)
{
    struct tn_worker *worker = run->gather->spec.worker;
    unsigned char *rooms = tn_arena_take_raw(&worker->arena, (size_t)count * READ_SIZE);
    for (uint32_t i = 0; i < count; i++) {
        const char *path = rooms ? path_of(run, &run->inbox.items[run->count + i]) : NULL;
        if (!path) {
            return no_room(err);
        }
        asks[i] = (struct tn_io_ask){.verb = TN_IO_ASK_READ,
                                     .path = path,
                                     .room = rooms + (size_t)i * READ_SIZE,
                                     .room_size = READ_SIZE};
    }
    return tn_io_ask_all(worker->io, asks, count, err);
}

/* One that is larger than most. */
static tn_rc look_at_large(struct tn_gather_run *run, struct tn_gather_entry *entry,
                           struct tn_err *err)
{
    struct tn_worker *worker = run->gather->spec.worker;
    struct tn_bytes bytes = {NULL, 0};
    const char *path = path_of(run, &entry->item);
    tn_rc rc = path ? tn_io_read_all(worker->io, path, TN_COMMITTABLE_SIZE_MAX, &worker->arena,
                                     &bytes, err)
                    : no_room(err);
    return look_at(run, rc, bytes, entry, err);
}

static struct tn_gather_entry *next_entry(struct tn_gather_run *run)
{
    struct tn_gather_entry *entry = &run->entries[run->count];
    *entry = (struct tn_gather_entry){.item = run->inbox.items[run->count]};
    return entry;
}

/* A large one ends them: it needs their memory. */
static tn_rc look_at_some(struct tn_gather_run *run, bool *large, struct tn_err *err)
{
    struct tn_io_ask asks[READS];
    uint32_t left = run->inbox.count - run->count;
    uint32_t count = left < READS ? left : READS;
    tn_rc rc = read_some(run, asks, count, err);
    for (uint32_t i = 0; rc == TN_OK && i < count && !run->result->old_schema; i++) {
        *large = asks[i].rc == TN_INVALID;
        if (*large) {
            return TN_OK;
        }
        struct tn_bytes bytes = {asks[i].room, (size_t)asks[i].size};
        rc = look_at(run, asks[i].rc, bytes, next_entry(run), err);
        run->count += rc == TN_OK;
    }
    return rc;
}

tn_rc tn_gather_look(struct tn_gather_run *run, struct tn_err *err)
{
    struct tn_arena *scratch = &run->gather->spec.worker->arena;
    tn_rc rc = TN_OK;
    while (rc == TN_OK && run->count < run->inbox.count && !run->result->old_schema) {
        bool large = false;
        size_t mark = tn_arena_mark(scratch);
        rc = look_at_some(run, &large, err);
        tn_arena_reset(scratch, mark);
        if (rc == TN_OK && large) {
            rc = look_at_large(run, next_entry(run), err);
            run->count += rc == TN_OK;
        }
        tn_arena_reset(scratch, mark);
    }
    return rc;
}
