/* One entry: read, and held against its mark and the table. */
#include "upload/gather_private.h"

#include <inttypes.h>

#include "file/names.h"

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

/* ---- its files ---- */

static tn_rc look_at_file(struct tn_gather_run *run, const struct tn_entry *file,
                          struct tn_err *err)
{
    const struct tn_committable_table *table = &run->gather->spec.table;
    struct tn_io *io = run->gather->spec.worker->io;
    struct tn_arena *scratch = &run->gather->spec.worker->arena;
    size_t mark = tn_arena_mark(scratch);
    const char *dir;
    uint64_t size = 0;
    tn_rc rc = tn_name_bucket(scratch, table->root, table->schema, table->options, file->partition,
                              file->bucket, &dir, err);
    const char *path =
        rc == TN_OK ? tn_arena_format(scratch, "%s%s", dir, file->file.file_name) : NULL;
    if (rc == TN_OK) {
        rc = path ? io->vtable->stat(io, path, &size, err)
                  : tn_err_set(err, TN_AGAIN, 0, "no memory for a path");
    }
    if (rc == TN_ABSENT) {
        rc = tn_err_set(err, TN_INVALID, 0, "%s is not there", path);
    } else if (rc == TN_OK && size != (uint64_t)file->file.file_size) {
        rc = tn_err_set(err, TN_INVALID, 0, "%s has %" PRIu64 " bytes, not %" PRId64, path, size,
                        file->file.file_size);
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

tn_rc tn_gather_look_at_files(struct tn_gather_run *run, struct tn_gather_entry *entry,
                              struct tn_err *err)
{
    const struct tn_committable *c = &entry->committable;
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < c->added_count + c->changelog_count; i++) {
        rc = look_at_file(run, &c->added[i], err); /* all files are one array */
    }
    if (rc == TN_INVALID) {
        tn_gather_refuse(run, entry, err);
        return TN_OK;
    }
    return rc;
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

tn_rc tn_gather_look(struct tn_gather_run *run, const struct tn_inbox_item *item,
                     struct tn_gather_entry *entry, struct tn_err *err)
{
    struct tn_gather *g = run->gather;
    struct tn_arena *scratch = &g->spec.worker->arena;
    struct tn_bytes bytes;
    size_t mark = tn_arena_mark(scratch);
    size_t before = tn_arena_mark(g->spec.arena);
    const char *path = tn_inbox_path(scratch, g->spec.table.name, item->gateway, item->id);
    *entry = (struct tn_gather_entry){.item = *item};
    tn_rc rc = path ? tn_io_read_all(g->spec.worker->io, path, TN_COMMITTABLE_SIZE_MAX, scratch,
                                     &bytes, err)
                    : tn_err_set(err, TN_AGAIN, 0, "no memory for a path");
    bool read = rc == TN_OK;
    if (read) {
        rc = look_at_bytes(run, bytes, entry, err);
    }
    tn_arena_reset(scratch, mark);
    rc = too_large(run, rc, err);
    if (rc == TN_ABSENT) {
        entry->verdict = TN_GATHER_GONE;
        return TN_OK;
    }
    if (rc != TN_OK) {
        tn_arena_reset(g->spec.arena, before);
    }
    /* Of one that isn't read only its size tells; what else is said is the store's. */
    if (read ? is_its_fault(rc) : rc == TN_INVALID) {
        tn_gather_refuse(run, entry, err);
        return TN_OK;
    }
    return rc;
}
