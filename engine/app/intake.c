#include "app/intake_private.h"

#include "base/check.h"
#include "base/wait.h"

enum {
    RING_PARCELS = 4,
    PARCEL_BESIDE = TN_SENDER_SIZE_MAX + TN_MEMO_SIZE_MAX + 512, /* in a block: names, memo */
    MESSAGE_SHARE = 2,         /* rows are shorter than their text, mostly: a guess */
    BLOCKS_BESIDE = 96 * 1024, /* of the journal, when it is read */
    PUMP_ITEMS = 20000,        /* in a turn */
    STUCK_MS = 1000, /* the ring's oldest waits so long for its table, then others go on */
    WAIT_MS_MAX = 1000,
    PRESSED = 4,             /* the journal is when less than this part of it is free */
    STOP_MS_MAX = 20 * 1000, /* of an end while something fails */
    PRESSED_MS = 1000,       /* then rows wait no longer for a commit */
    TRACK_BESIDE = 64,       /* what is aligned */
    STATE_BESIDE = TN_KEEPER_STATE_NAME_SIZE,
};

int64_t tn_intake_now_ms(const struct tn_intake *in)
{
    struct tn_clock *clock = in->spec.env->clock;
    return tn_clock_monotonic_ms(clock);
}

struct tn_keeper *tn_intake_find(const struct tn_intake *in, struct tn_bytes name)
{
    for (uint32_t i = 0; i < in->spec.keeper_count; i++) {
        if (tn_bytes_equal(tn_bytes_of(in->spec.keepers[i].name), name)) {
            return &in->spec.keepers[i];
        }
    }
    return NULL;
}

/* ---- into the tables ---- */

/* Where the table is: all before it is put. Nothing of a place that isn't durable is named. */
struct tn_keeper_place tn_intake_place(const struct tn_intake *in, const struct tn_keeper *k)
{
    const struct tn_ring_entry *entry = tn_ring_oldest(&in->ring);
    if (k->state != TN_KEEPER_LIVE) {
        return k->next;
    }
    if (entry && &in->spec.keepers[entry->keeper] == k && k->next.place == entry->place) {
        return k->next;
    }
    uint64_t durable = tn_journal_durable(in->journal);
    uint64_t at = entry && entry->place < durable ? entry->place : durable;
    return (struct tn_keeper_place){.place = at > k->next.place ? at : k->next.place};
}

static void fall_behind(struct tn_intake *in, struct tn_keeper *k)
{
    k->next = tn_intake_place(in, k);
    k->state = TN_KEEPER_BEHIND;
}

/* AGAIN: there is no room for its next item. */
static tn_rc put_entry(struct tn_keeper *k, struct tn_ring_entry *entry, int64_t now_ms,
                       uint32_t *items, struct tn_err *err)
{
    const unsigned char *data = (const unsigned char *)(entry + 1);
    struct tn_bytes rest = {data, entry->size};
    struct tn_parcel_head head;
    struct tn_parcel_item item;
    tn_rc rc = tn_parcel_open(&rest, &head, err);
    TN_CHECK(rc == TN_OK); /* it was made here */
    if (k->next.place < entry->place) {
        k->next = (struct tn_keeper_place){.place = entry->place};
    }
    tn_keeper_parcel(k, &head, rest);
    if (entry->rest > 0) {
        rest = (struct tn_bytes){data + entry->rest, entry->size - entry->rest};
    }
    while (*items > 0 && (rc = tn_parcel_next(&rest, &item, err)) == TN_OK) {
        rc = tn_keeper_put(k, &head, &item, now_ms, err);
        if (rc != TN_OK) {
            return rc;
        }
        entry->rest = (uint32_t)(rest.data - data);
        (*items)--;
    }
    return rc == TN_ABSENT ? TN_OK : rc == TN_OK ? TN_AGAIN : rc;
}

/* Parcels that are durable go to their tables, the oldest first. */
static void pump(struct tn_intake *in, int64_t now_ms, uint32_t *wait_ms)
{
    uint32_t items = PUMP_ITEMS;
    for (struct tn_ring_entry *entry; (entry = tn_ring_oldest(&in->ring)) != NULL;) {
        struct tn_keeper *k = &in->spec.keepers[entry->keeper];
        struct tn_err err = {0};
        if (tn_journal_durable(in->journal) <= entry->place) {
            return;
        }
        bool wanted = k->state == TN_KEEPER_LIVE && k->next.place <= entry->place;
        tn_rc rc = wanted ? put_entry(k, entry, now_ms, &items, &err) : TN_OK;
        if (rc == TN_AGAIN && items == 0) { /* enough for a turn */
            *wait_ms = 0;
            return;
        }
        if (rc == TN_AGAIN) {
            in->stuck_ms = in->stuck_ms == 0 ? now_ms : in->stuck_ms;
            if (now_ms - in->stuck_ms < STUCK_MS) {
                return;
            }
            fall_behind(in, k);
        } else if (rc != TN_OK) {
            tn_keeper_fail(k, rc, &err, now_ms);
        } else if (wanted) {
            k->next = (struct tn_keeper_place){.place = entry->next};
        }
        in->stuck_ms = 0;
        tn_ring_forget(&in->ring);
    }
    in->stuck_ms = 0;
}

/* Each for itself: who has no room holds up no other. Where there are too many items for a turn the
 * next one goes on with the same. */
static void pump_tracks(struct tn_intake *in, int64_t now_ms, uint32_t *wait_ms)
{
    uint32_t items = PUMP_ITEMS;
    uint32_t first = in->pumped;
    for (uint32_t n = 0; n < in->track_count && items > 0; n++) {
        uint32_t i = (first + n) % in->track_count;
        struct tn_track *track = &in->tracks[i];
        struct tn_err err = {0};
        bool wanted = track->size > 0 && track->keeper->state == TN_KEEPER_LIVE;
        tn_rc rc = wanted ? tn_track_put(track, now_ms, &items, &err) : TN_OK;
        if (rc != TN_OK && rc != TN_AGAIN) {
            tn_keeper_fail(track->keeper, rc, &err, now_ms);
        }
        if (items == 0) {
            in->pumped = i;
            *wait_ms = 0;
        }
        in->track_room = in->track_room || (track->owed && track->size == 0);
        track->owed = track->owed && track->size > 0;
    }
}

static bool tracks_are_empty(const struct tn_keeper *k)
{
    bool empty = true;
    for (const struct tn_track *track = k->tracks; track; track = track->next) {
        empty = empty && track->size == 0;
    }
    return empty;
}

/* ---- turns ---- */

static tn_rc turn_journal(struct tn_intake *in, uint32_t *wait_ms, struct tn_err *err)
{
    uint32_t wait = WAIT_MS_MAX;
    bool hurry = in->stopping || in->ring.count > 1; /* but a full disk isn't asked every turn */
    hurry = hurry && (in->stopping || tn_ring_used(&in->ring) > in->ring.size / 2) &&
            in->said != TN_FULL;
    tn_rc rc = tn_journal_turn(in->journal, hurry, &wait, err);
    tn_wait_lower(wait_ms, wait);
    if (rc == TN_FULL) {
        if (in->said != rc) {
            tn_log_err(in->spec.log, TN_LOG_ERROR, "journal", err);
        }
        in->said = rc;
        return TN_OK;
    }
    in->said = rc;
    return rc;
}

static void say_durable(struct tn_intake *in)
{
    uint64_t durable = tn_journal_durable(in->journal);
    uint64_t newest = durable > 0 ? durable - 1 : 0;
    if (newest != in->hub.durable || in->durable_owed) {
        in->durable_owed = false;
        tn_hub_say_durable(&in->hub, newest);
    }
}

static void say_room(struct tn_intake *in)
{
    bool room = in->track_room || (in->room_owed && tn_ring_room(&in->ring));
    if (room && !in->stopping && !in->reserve.low) {
        in->room_owed = in->room_owed && !tn_ring_room(&in->ring);
        in->track_room = false;
        tn_hub_say_room(&in->hub);
    }
}

/* Only commits make room, and some are not due for long. */
static bool pressed(const struct tn_intake *in)
{
    uint64_t most = in->spec.config->journal.size_max;
    return in->reserve.low || tn_journal_full(in->journal) ||
           tn_journal_size(in->journal) > most - most / PRESSED;
}

static void trim(struct tn_intake *in, int64_t now_ms)
{
    uint64_t place = UINT64_MAX;
    bool hurry = pressed(in);
    for (uint32_t i = 0; i < in->spec.keeper_count; i++) {
        const struct tn_keeper *k = &in->spec.keepers[i];
        uint64_t done = tn_keeper_done(k, tn_intake_place(in, k), now_ms, hurry);
        place = done < place ? done : place;
    }
    if (place != UINT64_MAX && place > in->trimmed) {
        in->trimmed = place;
        tn_journal_trim(in->journal, place);
    }
}

/* A table that was opened again wants from the journal what its newest snapshot has not. */
static void begin_again(struct tn_intake *in, struct tn_keeper *k, int64_t now_ms)
{
    struct tn_err err = {0};
    tn_rc rc = tn_keeper_begin(k, in->journal, &err);
    if (rc != TN_OK) {
        tn_keeper_fail(k, rc, &err, now_ms);
        return;
    }
    for (const struct tn_track *track = k->tracks; track; track = track->next) {
        in->undone = in->undone || (in->stopping && track->rewound);
    }
    tn_hub_say_rewound(&in->hub);
}

static bool must_commit(const struct tn_intake *in, const struct tn_keeper *k, int64_t now_ms)
{
    bool rows = k->items != k->items_cut;
    bool last = in->stopping && in->ring.count == 0 && tracks_are_empty(k);
    bool old = now_ms - k->since_ms >= PRESSED_MS;
    return k->table && !k->cutting &&
           ((last && (rows || k->moved_ms > 0)) || (rows && old && pressed(in)));
}

/* Those that are due by age alone commit one after the other, at the pace of all. Who can't do so
 * now is passed by. */
static void commit(struct tn_intake *in, uint32_t i, struct tn_keeper_place at, int64_t now_ms,
                   uint32_t *wait_ms)
{
    uint32_t pace_ms = in->spec.config->pace_ms;
    bool may = pace_ms == 0 || now_ms >= in->paced_ms;
    bool aged = tn_keeper_commit(&in->spec.keepers[i], tn_journal_identity(in->journal), at, may,
                                 now_ms, wait_ms);
    if (aged && pace_ms > 0) {
        in->paced_ms = now_ms + pace_ms;
        in->paced = i + 1;
    }
}

static void turn_keepers(struct tn_intake *in, int64_t now_ms, uint32_t *wait_ms)
{
    uint32_t first = in->paced;
    for (uint32_t n = 0; n < in->spec.keeper_count; n++) {
        uint32_t i = (first + n) % in->spec.keeper_count;
        struct tn_keeper *k = &in->spec.keepers[i];
        k->wants_cut = k->wants_cut || must_commit(in, k, now_ms);
        struct tn_keeper_place at = tn_intake_place(in, k);
        if (at.place + (at.items > 0) <= tn_journal_durable(in->journal)) {
            commit(in, i, at, now_ms, wait_ms);
        }
        if (tn_keeper_turn(k, now_ms, wait_ms)) {
            begin_again(in, k, now_ms);
            *wait_ms = 0;
        }
    }
    if (in->paced_ms > now_ms) {
        tn_wait_lower(wait_ms, in->paced_ms - now_ms);
    }
}

/* What the disk had no room for is tried as soon as there is some: after a day without, its pause
 * would be the longest. */
static void turn_reserve(struct tn_intake *in, int64_t now_ms, uint32_t *wait_ms)
{
    if (!tn_reserve_turn(&in->reserve, now_ms, wait_ms)) {
        return;
    }
    in->room_owed = true;
    for (uint32_t i = 0; i < in->spec.keeper_count; i++) {
        tn_keeper_hurry(&in->spec.keepers[i], now_ms);
    }
    *wait_ms = 0;
}

tn_rc tn_intake_turn(struct tn_intake *intake, uint32_t *wait_ms, struct tn_err *err)
{
    struct tn_intake *in = intake;
    int64_t now_ms = tn_intake_now_ms(in);
    *wait_ms = WAIT_MS_MAX;
    (void)tn_exec_turn(in->spec.env->exec, false);
    tn_rc rc = turn_journal(in, wait_ms, err);
    say_durable(in);
    if (rc == TN_OK) {
        rc = tn_intake_walk(in, now_ms, wait_ms, err);
    }
    if (rc != TN_OK) {
        in->failed = rc;
        in->failure = *err;
        return rc;
    }
    pump(in, now_ms, wait_ms);
    pump_tracks(in, now_ms, wait_ms);
    turn_keepers(in, now_ms, wait_ms);
    trim(in, now_ms);
    turn_reserve(in, now_ms, wait_ms);
    say_room(in);
    return TN_OK;
}

bool tn_intake_ready(const struct tn_intake *intake)
{
    uint64_t ignored;
    return tn_intake_behind(intake, &ignored) == 0;
}

/* What was taken is in the journal, or was acknowledged to nobody. */
static bool gives_up(const struct tn_intake *in)
{
    bool trouble = in->said != TN_OK;
    for (uint32_t i = 0; i < in->spec.keeper_count; i++) {
        trouble = trouble || in->spec.keepers[i].trouble != TN_OK;
    }
    return trouble && in->stopping && tn_intake_now_ms(in) - in->stop_ms > STOP_MS_MAX;
}

bool tn_intake_settled(const struct tn_intake *intake)
{
    bool settled = intake->ring.count == 0 &&
                   tn_journal_durable(intake->journal) == tn_journal_next(intake->journal);
    for (uint32_t i = 0; i < intake->spec.keeper_count; i++) {
        const struct tn_keeper *k = &intake->spec.keepers[i];
        bool again = k->state == TN_KEEPER_SHUT && k->trouble == TN_CONFLICT; /* it opens at once */
        settled = settled && !again && k->state != TN_KEEPER_BEHIND && tn_keeper_settled(k) &&
                  k->moved_ms == 0 && tracks_are_empty(k);
    }
    return settled || gives_up(intake);
}

void tn_intake_stop(struct tn_intake *intake)
{
    intake->stop_ms = intake->stopping ? intake->stop_ms : tn_intake_now_ms(intake);
    intake->stopping = true;
}

/* ---- open, close ---- */

static size_t block_size(const struct tn_intake_spec *spec)
{
    return spec->parcel_size + PARCEL_BESIDE + spec->states.longest;
}

/* Blocks are as long as a parcel needs, so there may be more syncs than the configuration asks for.
 */
static struct tn_journal_spec journal_spec(const struct tn_intake_spec *spec)
{
    struct tn_journal_spec journal = {
        .io = spec->env->io, .clock = spec->env->clock, .exec = spec->env->exec};
    tn_config_journal_spec(spec->config, &journal);
    journal.block_size = (uint32_t)block_size(spec);
    journal.sender_max += spec->states.count;
    journal.memo_bytes += (uint32_t)(spec->states.bytes + STATE_BESIDE * spec->states.count);
    if (journal.sync_bytes > journal.block_size) {
        journal.sync_bytes = journal.block_size;
    }
    return journal;
}

static size_t ring_size(const struct tn_intake_spec *spec)
{
    return tn_ring_memory(RING_PARCELS, spec->parcel_size);
}

/* The journal is read with it, too. */
static size_t packer_size(const struct tn_intake_spec *spec)
{
    size_t parcel = tn_packer_memory(spec->parcel_size);
    size_t blocks = 2 * block_size(spec) + BLOCKS_BESIDE;
    return parcel > blocks ? parcel : blocks;
}

/* A parcel, a name and what it is for each file. */
static size_t tracks_size(const struct tn_intake_spec *spec, uint32_t *count)
{
    size_t size = 0;
    *count = 0;
    for (const struct tn_config_source *s = spec->config->sources; s; s = s->next) {
        if (s->kind == TN_SOURCE_FILE) {
            size += sizeof(struct tn_track) + spec->parcel_size + TN_SENDER_SIZE_MAX + TRACK_BESIDE;
            *count += 1;
        }
    }
    return size;
}

struct tn_intake_states tn_intake_states(const struct tn_keeper *keepers, uint32_t count)
{
    struct tn_intake_states states = {0};
    for (uint32_t i = 0; i < count; i++) {
        size_t size = tn_keeper_state_size(&keepers[i]);
        states.count += size > 0;
        states.bytes += size;
        states.longest = size > states.longest ? size : states.longest;
    }
    return states;
}

size_t tn_intake_size_max(const struct tn_intake_spec *spec)
{
    return spec->parcel_size / MESSAGE_SHARE;
}

size_t tn_intake_memory(const struct tn_intake_spec *spec)
{
    struct tn_journal_spec journal = journal_spec(spec);
    uint32_t ignored;
    return tn_journal_memory(&journal) + ring_size(spec) + packer_size(spec) +
           tracks_size(spec, &ignored) + spec->states.longest + 4096;
}

static tn_rc take_memory(struct tn_intake *in, struct tn_err *err)
{
    void *ring;
    void *packer;
    tn_rc rc = tn_arena_need(in->spec.arena, ring_size(&in->spec), "rows on their way", &ring, err);
    if (rc == TN_OK) {
        rc = tn_arena_need(in->spec.arena, packer_size(&in->spec), "a decoder", &packer, err);
    }
    if (rc == TN_OK) {
        tn_ring_init(&in->ring, ring, RING_PARCELS, in->spec.parcel_size);
        tn_packer_init(&in->packer, packer, packer_size(&in->spec), in->spec.parcel_size,
                       in->hub.size_max);
    }
    if (rc == TN_OK && in->spec.states.longest > 0) {
        rc = tn_arena_need(in->spec.arena, in->spec.states.longest, "what scripts keep", &in->state,
                           err);
    }
    return rc;
}

static tn_rc open_track(struct tn_intake *in, const struct tn_config_source *source,
                        struct tn_err *err)
{
    void *parcel;
    struct tn_keeper *k = tn_intake_find(in, tn_bytes_of(source->table));
    const char *name = tn_arena_format(in->spec.arena, "file:%s", source->name);
    tn_rc rc = tn_arena_need(in->spec.arena, in->spec.parcel_size, "rows of a file", &parcel, err);
    if (rc == TN_OK && (!k || !name)) {
        rc = tn_err_set(err, TN_INVALID, 0, "source %s: no table %s", source->name, source->table);
    }
    if (rc == TN_OK) {
        struct tn_track *track = &in->tracks[in->track_count++];
        *track =
            (struct tn_track){.source = name, .keeper = k, .next = k->tracks, .parcel = parcel};
        k->tracks = track;
    }
    return rc;
}

static tn_rc open_tracks(struct tn_intake *in, struct tn_err *err)
{
    uint32_t count;
    void *memory;
    (void)tracks_size(&in->spec, &count);
    tn_rc rc =
        tn_arena_need(in->spec.arena, count * sizeof(struct tn_track) + 1, "files", &memory, err);
    if (rc == TN_OK) {
        in->tracks = memory;
    }
    for (const struct tn_config_source *s = in->spec.config->sources; rc == TN_OK && s;
         s = s->next) {
        rc = s->kind == TN_SOURCE_FILE ? open_track(in, s, err) : TN_OK;
    }
    return rc;
}

/* A table that is configured no more leaves no store. */
static bool is_wanted(void *user, struct tn_bytes name)
{
    const struct tn_intake *in = user;
    size_t kept = sizeof TN_JOURNAL_KEPT - 1;
    return tn_intake_find(in, (struct tn_bytes){name.data + kept, name.size - kept}) != NULL;
}

static tn_rc open_journal(struct tn_intake *in, struct tn_err *err)
{
    struct tn_journal_spec spec = journal_spec(&in->spec);
    spec.floor = 1;
    spec.wanted = is_wanted;
    spec.user = in;
    for (uint32_t i = 0; i < in->spec.keeper_count; i++) {
        uint64_t known = tn_keeper_known(&in->spec.keepers[i]);
        in->spec.keepers[i].state_room = tn_keeper_state_size(&in->spec.keepers[i]);
        spec.floor = known + 1 > spec.floor ? known + 1 : spec.floor;
    }
    return tn_journal_open(&in->journal, &spec, in->spec.arena, err);
}

tn_rc tn_intake_open(struct tn_intake *intake, const struct tn_intake_spec *spec,
                     struct tn_err *err)
{
    struct tn_intake *in = intake;
    *in = (struct tn_intake){
        .hub = {.vtable = &tn_intake_hub, .size_max = tn_intake_size_max(spec)}, .spec = *spec};
    tn_rc rc = take_memory(in, err);
    if (rc == TN_OK) {
        rc = open_tracks(in, err);
    }
    if (rc == TN_OK) {
        rc = open_journal(in, err);
    }
    for (uint32_t i = 0; rc == TN_OK && i < spec->keeper_count; i++) {
        rc = tn_keeper_begin(&spec->keepers[i], in->journal, err);
    }
    if (rc == TN_OK) {
        uint64_t durable = tn_journal_durable(in->journal);
        in->hub.durable = durable > 0 ? durable - 1 : 0;
        in->begun = tn_journal_next(in->journal);
        tn_reserve_open(&in->reserve, spec->env->io, spec->env->exec, spec->log,
                        spec->config->disk_reserve);
    }
    return rc;
}

void tn_intake_close(struct tn_intake *intake)
{
    tn_tee_close(&intake->tee);
    if (intake->journal) {
        tn_journal_close(intake->journal);
    }
    intake->journal = NULL;
}
