#include "app/intake_private.h"
#include "app/older.h"

enum { WALK_BYTES = 256 * 1024 }; /* of the journal in a turn */

struct walk {
    struct tn_intake *intake;
    struct tn_arena *arena; /* for what older rows become */
    uint64_t bytes;         /* of parts so far */
    int64_t now_ms;
    bool waits;               /* a table has no room */
    struct tn_keeper *failed; /* closed when the walk is over: that gives others a turn */
    tn_rc rc;
    struct tn_err err;
};

static tn_rc take_item(struct walk *walk, struct tn_keeper *k, const struct tn_parcel_head *head,
                       struct tn_older *older, struct tn_parcel_item *item, struct tn_err *err)
{
    struct tn_err why = {0};
    tn_rc rc = tn_older_item(older, item, &why) == TN_OK
                   ? tn_keeper_put(k, head, item, walk->now_ms, err)
                   : tn_keeper_bury(k, item, why.text, walk->now_ms, err);
    walk->intake->counts.replayed += rc == TN_OK;
    return rc;
}

static tn_rc take_items(struct walk *walk, struct tn_keeper *k, struct tn_parcel_head head,
                        struct tn_bytes parcel, struct tn_err *err)
{
    struct tn_parcel_item item;
    struct tn_older older;
    uint32_t done = k->next.items;
    tn_rc rc = TN_OK;
    tn_older_open(&older, k->table, head.schema, k->spec.share->env.row_size_max, walk->arena);
    head.schema = tn_table_schema(k->table)->id; /* of what comes of its items */
    tn_keeper_parcel(k, &head, parcel);
    for (uint32_t i = 0; rc == TN_OK; i++) {
        rc = tn_parcel_next(&parcel, &item, err);
        if (rc == TN_OK && i >= done) {
            rc = take_item(walk, k, &head, &older, &item, err);
        }
    }
    return rc;
}

static tn_rc take_part(struct walk *walk, struct tn_keeper *k, uint64_t place,
                       struct tn_bytes parcel, struct tn_err *err)
{
    struct tn_parcel_head head;
    size_t mark = tn_arena_mark(walk->arena);
    if (k->next.place < place) {
        k->next = (struct tn_keeper_place){.place = place};
    }
    tn_rc rc = tn_parcel_open(&parcel, &head, err);
    if (rc == TN_OK) {
        rc = take_items(walk, k, head, parcel, err);
        tn_arena_reset(walk->arena, mark);
    }
    if (rc == TN_ABSENT) {
        k->next = (struct tn_keeper_place){.place = place + 1};
        rc = TN_OK;
    }
    return rc;
}

static tn_rc see_stranger(struct tn_intake *in, struct tn_bytes name, uint64_t place,
                          struct tn_err *err)
{
    return in->spec.drop ? TN_OK
                         : tn_strangers_see(&in->strangers, in->spec.env,
                                            tn_journal_identity(in->journal), name, place, err);
}

static tn_rc each(void *user, uint64_t place, const struct tn_journal_part *parts, uint32_t count,
                  struct tn_err *err)
{
    struct walk *walk = user;
    struct tn_intake *in = walk->intake;
    if (walk->bytes > WALK_BYTES) {
        return TN_AGAIN;
    }
    for (uint32_t i = 0; i < count; i++) {
        walk->bytes += parts[i].data.size;
        struct tn_keeper *k =
            parts[i].kind == TN_JOURNAL_ROWS ? tn_intake_find(in, parts[i].name) : NULL;
        tn_rc strange = !k && parts[i].kind == TN_JOURNAL_ROWS
                            ? see_stranger(in, parts[i].name, place, err)
                            : TN_OK;
        if (strange != TN_OK) {
            return strange;
        }
        if (!k || k->state != TN_KEEPER_BEHIND || k->next.place > place) {
            continue;
        }
        tn_rc rc = take_part(walk, k, place, parts[i].data, err);
        if (rc != TN_OK) {
            walk->waits = rc == TN_AGAIN;
            walk->failed = rc == TN_AGAIN ? NULL : k;
            walk->rc = rc;
            walk->err = *err;
            return TN_AGAIN;
        }
    }
    return TN_OK;
}

uint32_t tn_intake_behind(const struct tn_intake *in, uint64_t *from)
{
    uint32_t count = 0;
    *from = UINT64_MAX;
    for (uint32_t i = 0; i < in->spec.keeper_count; i++) {
        const struct tn_keeper *k = &in->spec.keepers[i];
        if (k->state == TN_KEEPER_BEHIND) {
            count++;
            *from = k->next.place < *from ? k->next.place : *from;
        }
    }
    uint64_t first = tn_journal_first(in->journal);
    *from = *from < first ? first : *from;
    return count;
}

/* Those that are behind have all before `next`; and with `all` they have what there is: entries
 * that are not durable yet come by the ring. */
static void come_up(struct tn_intake *in, uint64_t next, bool all)
{
    for (uint32_t i = 0; i < in->spec.keeper_count; i++) {
        struct tn_keeper *k = &in->spec.keepers[i];
        if (k->state == TN_KEEPER_BEHIND) {
            if (next > k->next.place) {
                k->next = (struct tn_keeper_place){.place = next};
            }
            k->state = all ? TN_KEEPER_LIVE : TN_KEEPER_BEHIND;
            k->trouble = all && tn_keeper_settled(k) ? TN_OK : k->trouble; /* else a commit shows */
            in->room_owed = true;
        }
    }
}

/* The journal is read while nothing works on it. */
static void wait_for_tasks(struct tn_intake *in)
{
    while (in->spec.env->exec->under_way > 0) {
        (void)tn_exec_turn(in->spec.env->exec, true);
    }
}

tn_rc tn_intake_walk(struct tn_intake *in, int64_t now_ms, uint32_t *wait_ms, struct tn_err *err)
{
    uint64_t from;
    if (tn_intake_behind(in, &from) == 0) {
        return TN_OK;
    }
    struct walk walk = {.intake = in, .now_ms = now_ms};
    wait_for_tasks(in);
    uint64_t durable = tn_journal_durable(in->journal);
    uint64_t end = durable > in->begun ? durable : in->begun;
    uint64_t next = end;
    tn_rc rc = TN_OK;
    if (from < end) {
        walk.arena = tn_packer_lend(&in->packer);
        rc = tn_journal_read(in->journal, from, &next, each, &walk, walk.arena, err);
    }
    if (rc == TN_OK || rc == TN_AGAIN) {
        come_up(in, next, rc == TN_OK);
    }
    if (rc == TN_AGAIN) {
        *wait_ms = walk.waits ? *wait_ms : 0;
        rc = TN_OK;
    }
    if (walk.failed) {
        tn_keeper_fail(walk.failed, walk.rc, &walk.err, now_ms);
    }
    return rc;
}
