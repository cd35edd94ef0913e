#include "upload/inbox.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "file/names.h"

enum { COPY_SIZE = 32 * 1024 };

static tn_rc no_room(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "no memory for an inbox");
}

bool tn_inbox_gateway_valid(const char *gateway)
{
    size_t size = strlen(gateway);
    return size > 0 && size < TN_INBOX_GATEWAY_SIZE && gateway[0] != '.' &&
           strspn(gateway, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
               size;
}

static const char *path_in(struct tn_arena *arena, const char *table, const char *folder,
                           const char *gateway, int64_t id)
{
    return tn_arena_format(arena, ".tarn/%s/%s/%s/%" PRId64, table, folder, gateway, id);
}

const char *tn_inbox_path(struct tn_arena *arena, const char *table, const char *gateway,
                          int64_t id)
{
    return path_in(arena, table, "inbox", gateway, id);
}

/* ---- what is there ---- */

struct gateways {
    struct tn_arena *arena;
    const char **names;
    uint32_t count;
    uint32_t room;
};

/* Names are texts between the pages of the list, which grows by copying. */
static tn_rc add_gateway(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct gateways *g = user;
    if (!is_dir || !tn_inbox_gateway_valid(name)) {
        return TN_OK;
    }
    if (g->count == g->room) {
        uint32_t room = g->room > 0 ? g->room * 2 : 64;
        const char **names = tn_arena_take(g->arena, room * sizeof *names);
        if (!names) {
            return no_room(err);
        }
        if (g->count > 0) {
            memcpy(names, g->names, g->count * sizeof *names);
        }
        g->names = names;
        g->room = room;
    }
    g->names[g->count] = tn_arena_text(g->arena, tn_bytes_of(name));
    return g->names[g->count++] ? TN_OK : no_room(err);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The smallest ids of a folder, in order. */
struct ids {
    int64_t items[TN_INBOX_SHARE_MAX];
    uint32_t count;
    bool more;
};

static tn_rc add_id(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct ids *ids = user;
    int64_t id = is_dir ? -1 : tn_name_number(name, "");
    (void)err;
    if (id < 0) {
        return TN_OK;
    }
    if (ids->count == TN_INBOX_SHARE_MAX) {
        ids->more = true;
        if (id > ids->items[ids->count - 1]) {
            return TN_OK;
        }
        ids->count--;
    }
    uint32_t at = ids->count++;
    for (; at > 0 && ids->items[at - 1] > id; at--) {
        ids->items[at] = ids->items[at - 1];
    }
    ids->items[at] = id;
    return TN_OK;
}

static tn_rc list_gateway(struct tn_io *io, const char *table, const char *gateway,
                          struct tn_arena *scratch, struct ids *ids, struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    const char *path = tn_arena_format(scratch, ".tarn/%s/inbox/%s/", table, gateway);
    *ids = (struct ids){.count = 0};
    tn_rc rc = path ? io->vtable->list(io, path, add_id, ids, err) : no_room(err);
    tn_arena_reset(scratch, mark);
    return rc == TN_ABSENT ? TN_OK : rc; /* emptied meanwhile */
}

/* From the one whose turn it is, until there is no room for the next one's share. */
static tn_rc list_items(struct tn_io *io, const char *table, const struct gateways *gateways,
                        struct tn_arena *scratch, struct tn_inbox *inbox, struct tn_err *err)
{
    uint32_t first = gateways->count > 0 ? inbox->turn % gateways->count : 0;
    uint32_t seen = 0;
    tn_rc rc = TN_OK;
    for (; rc == TN_OK && seen < gateways->count; seen++) {
        const char *gateway = gateways->names[(first + seen) % gateways->count];
        struct ids ids;
        if (inbox->count + TN_INBOX_SHARE_MAX > TN_INBOX_ITEMS_MAX) {
            inbox->more = true;
            break;
        }
        rc = list_gateway(io, table, gateway, scratch, &ids, err);
        for (uint32_t i = 0; rc == TN_OK && i < ids.count; i++) {
            inbox->items[inbox->count++] = (struct tn_inbox_item){gateway, ids.items[i]};
        }
        inbox->more = inbox->more || ids.more;
    }
    inbox->turn = first + seen;
    return rc;
}

tn_rc tn_inbox_list(struct tn_io *io, const char *table, uint32_t turn, struct tn_arena *arena,
                    struct tn_inbox *inbox, struct tn_err *err)
{
    struct gateways gateways = {.arena = arena};
    const char *path = tn_arena_format(arena, ".tarn/%s/inbox/", table);
    *inbox = (struct tn_inbox){.turn = turn};
    inbox->items = tn_arena_take(arena, TN_INBOX_ITEMS_MAX * sizeof *inbox->items);
    if (!path || !inbox->items) {
        return no_room(err);
    }
    tn_rc rc = io->vtable->list(io, path, add_gateway, &gateways, err);
    if (rc != TN_OK) {
        return rc == TN_ABSENT ? TN_OK : rc;
    }
    if (gateways.count > 0) {
        qsort(gateways.names, gateways.count, sizeof *gateways.names, by_name);
    }
    inbox->gateways = gateways.count;
    return list_items(io, table, &gateways, arena, inbox, err);
}

/* ---- an entry goes ---- */

tn_rc tn_inbox_remove(struct tn_io *io, const char *table, const struct tn_inbox_item *item,
                      struct tn_arena *scratch, struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    const char *path = tn_inbox_path(scratch, table, item->gateway, item->id);
    tn_rc rc = path ? io->vtable->unlink(io, path, err) : no_room(err);
    tn_arena_reset(scratch, mark);
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc copy_bytes(struct tn_io *io, int from, int to, void *buffer, struct tn_err *err)
{
    uint64_t offset = 0;
    for (;;) {
        size_t got = 0;
        tn_rc rc = io->vtable->read(io, from, offset, buffer, COPY_SIZE, &got, err);
        if (rc == TN_OK && got > 0) {
            rc = io->vtable->append(io, to, (struct tn_bytes){buffer, got}, err);
        }
        if (rc != TN_OK || got < COPY_SIZE) {
            return rc;
        }
        offset += got;
    }
}

static tn_rc copy(struct tn_io *io, const char *from, const char *to, struct tn_arena *scratch,
                  struct tn_err *err)
{
    int in;
    int out;
    uint64_t size;
    struct tn_err ignored;
    void *buffer = tn_arena_take_raw(scratch, COPY_SIZE);
    if (!buffer) {
        return no_room(err);
    }
    tn_rc rc = io->vtable->open(io, from, &in, &size, err);
    if (rc != TN_OK) {
        return rc;
    }
    (void)io->vtable->unlink(io, to, &ignored); /* what a cut may have left of it */
    rc = io->vtable->create(io, to, &out, err);
    if (rc == TN_OK) {
        rc = copy_bytes(io, in, out, buffer, err);
        io->vtable->close(io, out);
    }
    io->vtable->close(io, in);
    return rc;
}

static tn_rc write_reason(struct tn_io *io, const char *path, const char *reason,
                          struct tn_err *err)
{
    char text[TN_INBOX_REASON_SIZE];
    struct tn_err ignored;
    (void)snprintf(text, sizeof text, "%s\n", reason);
    (void)io->vtable->unlink(io, path, &ignored);
    return tn_io_write_new(io, path, tn_bytes_of(text), err);
}

static tn_rc put_aside(struct tn_io *io, const char *table, const struct tn_inbox_item *item,
                       const char *reason, struct tn_arena *scratch, struct tn_err *err)
{
    const char *dir = tn_arena_format(scratch, ".tarn/%s/refused/%s/", table, item->gateway);
    const char *from = tn_inbox_path(scratch, table, item->gateway, item->id);
    const char *to = path_in(scratch, table, "refused", item->gateway, item->id);
    const char *why = to ? tn_arena_format(scratch, "%s.reason", to) : NULL;
    if (!dir || !from || !why) {
        return no_room(err);
    }
    const char *const paths[] = {to, why, dir};
    tn_rc rc = io->vtable->make_dir(io, dir, err);
    if (rc == TN_OK) {
        rc = copy(io, from, to, scratch, err);
    }
    if (rc == TN_OK) {
        rc = write_reason(io, why, reason, err);
    }
    return rc == TN_OK ? io->vtable->sync(io, paths, 3, err) : rc;
}

tn_rc tn_inbox_refuse(struct tn_io *io, const char *table, const struct tn_inbox_item *item,
                      const char *reason, struct tn_arena *scratch, struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    tn_rc rc = put_aside(io, table, item, reason, scratch, err);
    tn_arena_reset(scratch, mark);
    if (rc == TN_ABSENT) {
        return TN_OK; /* somebody else took it */
    }
    return rc == TN_OK ? tn_inbox_remove(io, table, item, scratch, err) : rc;
}
