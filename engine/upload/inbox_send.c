#include "upload/inbox_send.h"

#include <inttypes.h>
#include <stdio.h>

#include "commit/consumer.h"
#include "file/names.h"
#include "upload/committable.h"
#include "upload/inbox.h"
#include "upload/share_pick.h"

enum {
    FILES_MAX = 128, /* of an entry, beyond one snapshot */
    ENTRY_REQUESTS = 2,
    WORK_SIZE =
        448 * 1024, /* beside an entry: two blocks with what they are packed from, schemas */
};

#define BYTES_MAX (UINT64_C(256) << 20)

struct hand {
    const struct tn_inbox_send_spec *spec;
    struct tn_worker *worker;
    struct tn_inbox_sent *result;
    const char *root;
    struct tn_share share;
    struct tn_sent sent;
    struct tn_share_tally tally;
    char user[TN_INBOX_GATEWAY_SIZE + 8];
};

static tn_rc save(struct hand *h, struct tn_err *err)
{
    return tn_sent_write(h->worker->io, h->spec->table, &h->sent, &h->worker->arena, err);
}

/* What is handed in may go here. */
static tn_rc protect(struct hand *h, struct tn_err *err)
{
    return tn_consumer_write(h->worker->io, h->root, TN_SHARE_CONSUMER, h->sent.safe + 1,
                             &h->worker->arena, err);
}

/* ---- an entry ---- */

static tn_rc put_entry(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct tn_buf *text = user;
    tn_entry_encode(entry, text);
    return text->overflow
               ? tn_err_set(err, TN_INVALID, 0, "more files than the %d KiB of an entry take",
                            TN_COMMITTABLE_SIZE_MAX / 1024)
               : TN_OK;
}

static tn_rc encode(const struct hand *h, const struct tn_share_pick *pick, struct tn_buf *text,
                    struct tn_err *err)
{
    struct tn_committable_place place;
    struct tn_committable c = {.table = h->spec->table,
                               .schema_id = pick->schema_id,
                               .user = h->user,
                               .identifier = pick->last,
                               .first_id = pick->first,
                               .last_id = pick->last,
                               .row_count = pick->data_rows,
                               .watermark = pick->watermark,
                               .added_count = (uint32_t)pick->data_count,
                               .changelog_count = (uint32_t)pick->change_count};
    tn_committable_begin(&c, text, &place);
    tn_rc rc = tn_share_each_data(pick, put_entry, text, err);
    if (rc == TN_OK) {
        rc = tn_share_each_change(pick, put_entry, text, err);
    }
    tn_committable_finish(&place, text);
    return rc == TN_OK ? TN_OK
                       : tn_err_in(err, "snapshots %" PRId64 "..%" PRId64, pick->first, pick->last);
}

/* Into the arena; with an error `text` says whether it was too large. */
static tn_rc make_entry(struct hand *h, const struct tn_share_pick *pick, struct tn_buf *text,
                        struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(&h->worker->arena, TN_COMMITTABLE_SIZE_MAX, "an entry of an inbox",
                             &memory, err);
    tn_buf_init(text, rc == TN_OK ? memory : NULL, rc == TN_OK ? TN_COMMITTABLE_SIZE_MAX : 0);
    return rc == TN_OK ? encode(h, pick, text, err) : rc;
}

static tn_rc publish(struct hand *h, const struct tn_share_pick *pick, struct tn_err *err)
{
    struct tn_target *target = h->spec->target;
    struct tn_buf text;
    const char *path =
        tn_inbox_path(&h->worker->arena, h->spec->table, h->share.gateway, pick->last);
    if (!path) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for a path");
    }
    tn_rc rc = make_entry(h, pick, &text, err);
    return rc == TN_OK ? target->vtable->publish(target, path, tn_buf_bytes(&text), err) : rc;
}

/* ---- picks ---- */

static void note(struct hand *h, const struct tn_share_pick *pick)
{
    struct tn_inbox_sent *result = h->result;
    result->first_id = result->first_id > 0 ? result->first_id : pick->first;
    result->last_id = pick->last;
    result->files += (uint64_t)(pick->data_count + pick->change_count);
    result->bytes += pick->bytes;
    result->entries++;
}

/* Of what was tried the same snapshots, or it would be another entry; some of its files are there.
 */
static tn_rc send_pick(struct hand *h, struct tn_share_pick *pick, struct tn_err *err)
{
    struct tn_target *target = h->spec->target;
    tn_rc rc = tn_share_check_folders(pick, TN_COMMITTABLE_FOLDER_MAX, err);
    pick->ask = h->sent.trying == pick->last;
    if (rc == TN_OK && !pick->ask) {
        h->sent.trying = pick->last;
        rc = save(h, err);
    }
    if (rc == TN_OK) {
        rc = tn_share_send(pick, target, &h->tally, err);
    }
    if (rc == TN_CANCELED && h->tally.spent) {
        h->result->limited = true;
        return target->vtable->settle(target, err);
    }
    if (rc == TN_OK) {
        rc = target->vtable->settle(target, err);
    }
    if (rc == TN_OK) {
        rc = publish(h, pick, err);
    } else {
        target->vtable->drop(target);
    }
    if (rc != TN_OK) {
        return rc;
    }
    note(h, pick);
    h->sent.trying = 0;
    h->sent.done = pick->last;
    h->sent.safe = pick->last;
    rc = save(h, err);
    return rc == TN_OK ? protect(h, err) : rc;
}

/* Whether one entry takes it. A snapshot is never halved: of one alone it is found out when it is
 * put. */
static tn_rc look_at_size(struct hand *h, const struct tn_share_pick *pick, bool *fits,
                          struct tn_err *err)
{
    struct tn_arena *arena = &h->worker->arena;
    size_t mark = tn_arena_mark(arena);
    struct tn_buf text;
    *fits = true;
    if (pick->first >= pick->last || tn_share_pick_empty(pick)) {
        return TN_OK;
    }
    tn_rc rc = make_entry(h, pick, &text, err);
    *fits = !text.overflow;
    tn_arena_reset(arena, mark);
    return text.overflow ? TN_OK : rc;
}

/* Files of many columns say more of themselves: then fewer are one entry. What is tried did fit. */
static tn_rc next_pick(struct hand *h, struct tn_share_pick *pick, struct tn_err *err)
{
    static const struct tn_share_limits none = {0};
    struct tn_share_limits limits = {FILES_MAX, BYTES_MAX, h->tally.bounds.through};
    int64_t done = h->sent.done;
    bool fits = h->sent.trying > 0;
    tn_rc rc =
        fits ? tn_share_pick(h->root, done, h->sent.trying, &none, h->worker, pick, err) : TN_OK;
    while (rc == TN_OK && !fits) {
        rc = tn_share_pick(h->root, done, 0, &limits, h->worker, pick, err);
        if (rc == TN_OK) {
            rc = look_at_size(h, pick, &fits, err);
        }
        fits = fits || limits.files == 1;
        int64_t half = (pick->data_count + pick->change_count) / 2;
        limits.files = half > 1 ? (uint32_t)half : 1;
    }
    return rc;
}

/* Snapshots that added nothing need nobody. */
static tn_rc pass_over(struct hand *h, const struct tn_share_pick *pick, struct tn_err *err)
{
    h->result->last_id = pick->last > h->sent.done ? pick->last : h->sent.done;
    if (pick->last <= h->sent.done || h->spec->dry_run) {
        return TN_OK;
    }
    h->sent.done = pick->last;
    h->sent.safe = pick->last;
    tn_rc rc = save(h, err);
    return rc == TN_OK ? protect(h, err) : rc;
}

/* What is half sent goes on when it is allowed, and as what was tried: it may be there. */
static bool may_go(const struct hand *h, const struct tn_share_pick *pick)
{
    int64_t through = h->tally.bounds.through;
    return (through == 0 || pick->last <= through) &&
           !tn_share_is_spent(&h->tally, h->spec->target);
}

/* Until there is nothing new; the lake's schemas are looked at before the first. */
static tn_rc send_all(struct hand *h, struct tn_err *err)
{
    struct tn_share_place place = {h->spec->table, h->root, h->spec->target, h->worker};
    struct tn_arena *arena = &h->worker->arena;
    bool looked = false;
    for (;;) {
        struct tn_share_pick pick;
        size_t mark = tn_arena_mark(arena);
        tn_rc rc = next_pick(h, &pick, err);
        bool more = rc == TN_OK && !tn_share_pick_empty(&pick);
        if (more && !may_go(h, &pick)) {
            h->result->limited = true;
        } else if (more && !looked) {
            rc = tn_share_look_at_schemas(&place, &h->sent, err);
            h->result->why = rc == TN_INVALID ? TN_SHARE_SCHEMA : TN_SHARE_WHY_OTHER;
            looked = true;
        }
        if (rc == TN_OK && !h->result->limited) {
            rc = more ? send_pick(h, &pick, err) : pass_over(h, &pick, err);
        }
        tn_arena_reset(arena, mark);
        if (rc != TN_OK || !more || h->result->limited) {
            return rc;
        }
    }
}

static tn_rc plan(struct hand *h, struct tn_err *err)
{
    struct tn_arena *arena = &h->worker->arena;
    tn_rc rc = TN_OK;
    bool more = true;
    while (rc == TN_OK && more) {
        struct tn_share_pick pick;
        size_t mark = tn_arena_mark(arena);
        rc = next_pick(h, &pick, err);
        tn_arena_reset(arena, mark);
        more = rc == TN_OK && !tn_share_pick_empty(&pick);
        if (more) {
            note(h, &pick);
            h->result->requests += (uint64_t)(pick.data_count + pick.change_count) + ENTRY_REQUESTS;
            h->sent.done = pick.last;
            h->sent.trying = 0;
        }
    }
    return rc;
}

static tn_rc run(struct hand *h, struct tn_err *err)
{
    struct tn_arena *arena = &h->worker->arena;
    struct tn_io *io = h->worker->io;
    const char *table = h->spec->table;
    tn_rc rc = tn_name_table_root(arena, table, &h->root, err);
    if (rc == TN_OK) {
        rc = tn_share_read(io, table, arena, &h->share, err);
    }
    if (rc == TN_OK) {
        rc = tn_err_named(err, tn_sent_read(io, table, arena, &h->sent, err));
    }
    if (rc != TN_OK) {
        return rc;
    }
    (void)snprintf(h->user, sizeof h->user, "tarn-%s", h->share.gateway);
    h->result->last_id = h->sent.done;
    return h->spec->dry_run ? plan(h, err) : send_all(h, err);
}

size_t tn_inbox_send_memory(void)
{
    return TN_COMMITTABLE_SIZE_MAX + WORK_SIZE;
}

tn_rc tn_inbox_send(const struct tn_inbox_send_spec *spec, struct tn_worker *worker,
                    struct tn_inbox_sent *result, struct tn_err *err)
{
    struct hand h = {
        .spec = spec, .worker = worker, .result = result, .tally.bounds = spec->bounds};
    size_t mark = tn_arena_mark(&worker->arena);
    *result = (struct tn_inbox_sent){0};
    tn_rc rc = run(&h, err);
    tn_arena_reset(&worker->arena, mark);
    return rc == TN_OK ? rc : tn_err_in(err, "sync %s", spec->table);
}
