/* intake: the hub of ingest/hub.h over the daemon's tables.
 *
 *     offer --> decode, [map] --> parcel --> journal --- synced ---> durable(place)
 *                                   |                                    |
 *                                   '--> ring ---------------------------+--> keeper -> table
 *
 * A parcel waits in the ring until it is durable in the journal, and only then goes into its table:
 * so a table never has, and no commit ever names, what a power cut takes back. That is what makes
 * the rows of a sender and its memo one thing: rows that are in a table have their memo.
 *
 * Since all that goes from the ring is durable, a table that can't take it now is passed by: it is
 * BEHIND then, and reads what it missed from the journal, at its own pace, while the others go on.
 * The same walk brings a table up at the start, and after it was opened again. No offer is taken
 * for a table that is behind, so it gets there.
 *
 * Files that are followed go past all of this, each in its track (track.h): a table that was opened
 * again says where they go on. Between them and what is in the journal there is no order.
 *
 * `turn` does what there is to do and never waits for the disk, but where tables are read from the
 * journal, opened again, or have dead letters.
 */
#pragma once

#include "app/keeper.h"
#include "app/packer.h"
#include "app/reserve.h"
#include "app/ring.h"
#include "app/strangers.h"
#include "app/tee.h"
#include "base/hash.h"
#include "ingest/hub.h"

/* What the journal keeps of stores of `map`, besides the memos of senders. */
struct tn_intake_states {
    uint32_t count;
    size_t bytes;
    size_t longest; /* of one table */
};

struct tn_intake_spec {
    struct tn_env *env; /* doors and executor */
    struct tn_arena *arena;
    struct tn_log *log;
    struct tn_keeper *keepers; /* open, and the intake's until it is closed */
    uint32_t keeper_count;
    const struct tn_config *config; /* what of it the journal goes by */
    bool drop; /* rows of tables that aren't among the keepers', and were not committed, are lost */
    size_t parcel_size; /* the longest: of it follow message, ring, blocks and decoder */
    struct tn_intake_states states;
};

/* What a `map` made of a message for which the journal had no room: it lies in the ring's room. */
struct tn_intake_held {
    struct tn_hash_128 of;    /* the message */
    struct tn_keeper *keeper; /* NULL: there is none */
    uint64_t opened;          /* for the time that this was */
    const struct tn_ring_entry *entry;
    size_t size;
    uint32_t rows;
    uint32_t dead;
    size_t left;
    int64_t until_ms; /* others wait so long for it to be offered again */
};

struct tn_intake_counts {
    uint64_t messages;
    uint64_t rows;
    uint64_t dead;
    uint64_t refused;  /* messages */
    uint64_t waits;    /* that there was no room for */
    uint64_t replayed; /* items that came from the journal */
};

struct tn_intake {
    struct tn_hub hub; /* first */
    struct tn_intake_spec spec;
    struct tn_journal *journal;
    struct tn_ring ring;
    struct tn_intake_held held;
    void *state;             /* room for a part of an entry; NULL: nobody needs it */
    struct tn_track *tracks; /* of the files among the configuration's sources */
    uint32_t track_count;
    uint32_t pumped;         /* the track that a turn begins with */
    bool track_room;         /* one that was full isn't any more, and an offer waits for that */
    bool undone;             /* since stop, what was read of a file was lost with its table */
    struct tn_packer packer; /* its memory is lent to walks */
    struct tn_strangers strangers;
    uint64_t begun;   /* the journal's next place, at the start */
    int64_t stuck_ms; /* since when the ring's oldest has no room; 0: it has */
    uint64_t trimmed;
    struct tn_reserve reserve;
    int64_t paced_ms;  /* when a table is next to commit by age alone, with a pace */
    uint32_t paced;    /* the keeper that is asked first */
    bool room_owed;    /* an offer was AGAIN */
    bool durable_owed; /* something was taken that is durable as it is */
    bool stopping;
    int64_t stop_ms; /* since when */
    tn_rc failed;    /* the journal takes nothing any more, until a new start */
    struct tn_err failure;
    tn_rc said; /* the code of the journal's trouble that was logged last */
    struct tn_intake_counts counts;
    struct tn_tee tee; /* hears what is taken */
};

/* Of keepers that are open. */
struct tn_intake_states tn_intake_states(const struct tn_keeper *keepers, uint32_t count);

/* The hub's size_max. */
size_t tn_intake_size_max(const struct tn_intake_spec *spec);

/* Bytes of arena that open takes. */
size_t tn_intake_memory(const struct tn_intake_spec *spec);

/* Opens the journal and says to each keeper what it wants of it; turns bring that. The first of
 * them say INVALID where the journal has rows that no keeper's table is to have; but see `drop`. */
TN_MUST_USE tn_rc tn_intake_open(struct tn_intake *intake, const struct tn_intake_spec *spec,
                                 struct tn_err *err);
/* Offers nothing is taken from; everything that was put is to be committed. */
void tn_intake_stop(struct tn_intake *intake);
/* No task may be under way. Keepers stay open. */
void tn_intake_close(struct tn_intake *intake);

/* `*wait_ms`: when to turn again at the latest. The error is the journal's, and the end: only a new
 * start goes on. */
TN_MUST_USE tn_rc tn_intake_turn(struct tn_intake *intake, uint32_t *wait_ms, struct tn_err *err);

/* Where a table is: all before it is in, and durable. */
struct tn_keeper_place tn_intake_place(const struct tn_intake *intake,
                                       const struct tn_keeper *keeper);

/* All tables have what the journal had for them at the start. */
bool tn_intake_ready(const struct tn_intake *intake);
/* After stop: all that was taken is committed, but for tables that are shut; or something fails, a
 * full disk, and goes on to for long. */
bool tn_intake_settled(const struct tn_intake *intake);
