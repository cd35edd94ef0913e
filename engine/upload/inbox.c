#include "upload/inbox.h"

#include <inttypes.h>
#include <stdio.h>

#include "file/names.h"
#include "io/many.h"

enum { COPY_SIZE = 32 * 1024, REMOVE_MAX = 64 /* paths in memory */ };

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

/* Of the names that come, in whatever order, those stay that are first from a gateway on. */
struct choice {
    struct tn_inbox *inbox;
    const struct tn_inbox_spec *spec;
    struct tn_io_walk *walk;
    bool again;  /* the walk from the beginning, up to `after` */
    bool sorted; /* so far */
    char last[TN_INBOX_GATEWAY_SIZE];
    bool limited;
    struct tn_inbox_item limit; /* there was no place for it, so there is none behind it */
};

/* As a store sorts keys: each gateway's name has its '/' behind it. */
static int compare_gateways(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    int left = *a ? (unsigned char)*a : '/';
    int right = *b ? (unsigned char)*b : '/';
    return *a == *b ? 0 : left - right;
}

static bool is_behind(const struct choice *c, const char *gateway)
{
    return !*c->spec->after || compare_gateways(gateway, c->spec->after) > 0;
}

static int compare(const struct choice *c, const struct tn_inbox_item *a,
                   const struct tn_inbox_item *b)
{
    int turn = (int)is_behind(c, b->gateway) - (int)is_behind(c, a->gateway);
    int order = turn != 0 ? turn : compare_gateways(a->gateway, b->gateway);
    return order != 0 ? order : (a->id > b->id) - (a->id < b->id);
}

/* Where it stands, or would. */
static uint32_t place_of(const struct choice *c, const struct tn_inbox_item *item)
{
    uint32_t low = 0;
    uint32_t high = c->inbox->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare(c, &c->inbox->items[middle], item) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void take_out(struct choice *c, uint32_t at)
{
    struct tn_inbox *inbox = c->inbox;
    inbox->count--;
    inbox->more = true;
    memmove(&inbox->items[at], &inbox->items[at + 1], (inbox->count - at) * sizeof *inbox->items);
}

/* Of a gateway the smallest ids stay, whatever goes later. */
static void set_limit(struct choice *c, const struct tn_inbox_item *item)
{
    c->inbox->more = true;
    if (!c->limited || compare(c, item, &c->limit) < 0) {
        c->limit = *item;
        c->limited = true;
    }
}

/* The place of a gateway's largest, when it has more than its share. */
static bool beyond_share(const struct choice *c, uint32_t at, uint32_t *last)
{
    const struct tn_inbox_item *items = c->inbox->items;
    uint32_t first = at;
    while (first > 0 && strcmp(items[first - 1].gateway, items[at].gateway) == 0) {
        first--;
    }
    for (*last = at;
         *last + 1 < c->inbox->count && strcmp(items[*last + 1].gateway, items[at].gateway) == 0;) {
        (*last)++;
    }
    return *last - first >= TN_INBOX_SHARE_MAX;
}

/* False: there is no place for it. */
static bool add(struct choice *c, const struct tn_inbox_item *item)
{
    struct tn_inbox *inbox = c->inbox;
    uint32_t at = place_of(c, item);
    uint32_t last;
    if (at < inbox->count && compare(c, &inbox->items[at], item) == 0) {
        return true; /* it comes again */
    }
    if (at == TN_INBOX_ITEMS_MAX || (c->limited && compare(c, item, &c->limit) >= 0)) {
        set_limit(c, item);
        return false;
    }
    if (inbox->count == TN_INBOX_ITEMS_MAX) {
        set_limit(c, &inbox->items[inbox->count - 1]);
        take_out(c, inbox->count - 1);
    }
    memmove(&inbox->items[at + 1], &inbox->items[at], (inbox->count - at) * sizeof *item);
    inbox->items[at] = *item;
    inbox->count++;
    if (beyond_share(c, at, &last)) {
        take_out(c, last);
    }
    return true;
}

/* "gw/17" */
static bool parse(const char *name, struct tn_inbox_item *item)
{
    const char *slash = strchr(name, '/');
    size_t size = slash ? (size_t)(slash - name) : TN_INBOX_GATEWAY_SIZE;
    if (size >= TN_INBOX_GATEWAY_SIZE) {
        return false;
    }
    memcpy(item->gateway, name, size);
    item->gateway[size] = 0;
    item->id = tn_name_number(slash + 1, "");
    return item->id >= 0 && tn_inbox_gateway_valid(item->gateway);
}

/* A store that sorts its names tells of no earlier gateway behind one that there was no place for;
 * ids of one it sorts otherwise ("10" before "9"). */
static tn_rc choose(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct choice *c = user;
    struct tn_inbox_item item;
    (void)err;
    if (is_dir || !parse(name, &item)) {
        return TN_OK;
    }
    c->sorted = c->sorted && (!*c->last || compare_gateways(c->last, item.gateway) <= 0);
    memcpy(c->last, item.gateway, sizeof c->last);
    if (c->spec->passed && c->spec->passed(c->spec->user, &item)) {
        return TN_OK;
    }
    bool over = !add(c, &item) && is_behind(c, item.gateway) != c->again &&
                strcmp(item.gateway, c->limit.gateway) != 0;
    over = over || (c->again && is_behind(c, item.gateway));
    c->walk->enough = c->walk->enough || (c->sorted && over);
    return TN_OK;
}

static tn_rc walk(struct tn_io *io, const char *path, struct choice *c, const char *after,
                  struct tn_err *err)
{
    struct tn_io_walk walk = {.path = path, .after = after, .each = choose, .user = c};
    c->walk = &walk;
    c->last[0] = 0;
    c->sorted = true;
    tn_rc rc = tn_io_walk(io, &walk, err);
    return rc == TN_ABSENT ? TN_OK : rc;
}

tn_rc tn_inbox_list(struct tn_io *io, const struct tn_inbox_spec *spec, struct tn_arena *arena,
                    struct tn_inbox *inbox, struct tn_err *err)
{
    const char *after = spec->after;
    struct choice c = {.inbox = inbox, .spec = spec};
    const char *path = tn_arena_format(arena, ".tarn/%s/inbox/", spec->table);
    /* behind all that begins with "gw/" */
    const char *begin = *after ? tn_arena_format(arena, "%s0", after) : NULL;
    *inbox = (struct tn_inbox){.count = 0};
    inbox->items = tn_arena_take(arena, TN_INBOX_ITEMS_MAX * sizeof *inbox->items);
    if (!path || !inbox->items || (*after && !begin)) {
        return no_room(err);
    }
    tn_rc rc = walk(io, path, &c, begin, err);
    c.again = true;
    if (rc == TN_OK && begin && inbox->count < TN_INBOX_ITEMS_MAX) {
        rc = walk(io, path, &c, NULL, err);
    } else if (begin) {
        inbox->more = true; /* as far as is known */
    }
    return rc;
}

/* ---- an entry goes ---- */

tn_rc tn_inbox_remove(struct tn_io *io, const char *table, const struct tn_inbox_item *const *items,
                      uint32_t count, struct tn_arena *scratch, struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    struct tn_io_ask *asks = tn_arena_take(scratch, REMOVE_MAX * sizeof *asks);
    size_t mark_paths = tn_arena_mark(scratch);
    tn_rc rc = asks ? TN_OK : no_room(err);
    for (uint32_t at = 0; rc == TN_OK && at < count;) {
        uint32_t some = 0;
        for (; rc == TN_OK && some < REMOVE_MAX && at < count; some++, at++) {
            const char *path = tn_inbox_path(scratch, table, items[at]->gateway, items[at]->id);
            asks[some] = (struct tn_io_ask){.verb = TN_IO_ASK_UNLINK, .path = path};
            rc = path ? TN_OK : no_room(err);
        }
        rc = rc == TN_OK ? tn_io_ask_all(io, asks, some, err) : rc;
        tn_arena_reset(scratch, mark_paths);
    }
    tn_arena_reset(scratch, mark);
    return rc;
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
    return rc == TN_OK ? tn_inbox_remove(io, table, &item, 1, scratch, err) : rc;
}
