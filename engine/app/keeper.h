/* keeper: one of the daemon's tables: opened, fed, committed when its rule says so, opened again
 * when it must be.
 *
 *     SHUT --open--> BEHIND --has all that the journal has--> LIVE
 *      ^               |                                       |
 *      '---- failed ---'---------- failed, stuck --------------'
 *
 * Rows come from the intake, in the order of their places in the journal: from memory while it's
 * LIVE, from the disk while it is BEHIND. All that was put is durable in the journal, so a commit
 * names no place that a power cut takes back, and what is in memory may be forgotten at any time.
 * While it's LIVE rows of files come, too, by their tracks (track.h); their places are committed
 * with them, and where they are forgotten they are read again.
 *
 * Somebody may remove a table's folder meanwhile: it is looked for now and then, and when it is
 * gone the table fails until it is there again; rows that were not committed wait in the journal.
 *
 * A table that fails bothers nobody else: it is closed, and opened again after a while, longer each
 * time; its script is loaded again, then, for somebody may have corrected it. Opening is blocking
 * I/O. The loop's thread only.
 */
#pragma once

#include "app/config.h"
#include "app/dead.h"
#include "app/mapper.h"
#include "app/share.h"
#include "app/track.h"
#include "app/trend.h"
#include "base/log.h"
#include "ingest/journal.h"
#include "ingest/parcel.h"
#include "script/scripted.h"

#define TN_KEEPER_STATE_NAME_SIZE (256 + sizeof TN_JOURNAL_KEPT)

enum tn_keeper_state { TN_KEEPER_SHUT, TN_KEEPER_BEHIND, TN_KEEPER_LIVE };

struct tn_keeper_spec {
    const struct tn_config_table *config;
    struct tn_table_share *share;
    const char *warehouse;    /* its folder; NULL: none of the system's */
    const char *dead_letters; /* a table, or a file's path; NULL: messages on stderr */
    const char *who;          /* for the lock */
    struct tn_log *log;
    void *room; /* for the rows that `map` makes of a record; keepers take turns in it */
    size_t room_size;
    struct tn_scripted *scripted; /* room for it; NULL: it is the share's when there is a script */
    bool anew; /* where positions are gone all that the journal has is taken, instead of refused */
};

/* All before `place` is in, and of it so many items. */
struct tn_keeper_place {
    uint64_t place;
    uint32_t items;
};

/* Whether its folder is there: a task, since that may wait for a disk. */
struct tn_keeper_look {
    struct tn_task task; /* first */
    struct tn_io *io;
    char path[320]; /* of its schemas */
    int64_t due_ms;
    bool under_way;
    bool gone;
};

struct tn_keeper {
    struct tn_keeper_spec spec;
    const char *name;
    char state_name[TN_KEEPER_STATE_NAME_SIZE]; /* that its stores have in the journal */
    enum tn_keeper_state state;
    struct tn_table *table;
    struct tn_scripted *scripted; /* NULL: no script */
    size_t mark;                  /* of the share's arena, when it is shut */
    bool begun;                   /* it is not shut all the way */
    struct tn_mapper mapper;
    bool keeps;         /* its `map` has stores */
    size_t state_room;  /* bytes that the journal keeps of them; set before its first begin */
    size_t state_saved; /* that it has, of pieces since all was saved; 0: all is to be */
    struct tn_dead dead;
    char who[96];

    struct tn_keeper_place next; /* of what is put next */
    uint64_t newest;             /* place of the newest entry with something for it; 0: none */
    struct tn_keeper_place cut;  /* what the last cut named */
    struct tn_keeper_place committed;
    struct tn_keeper_place before; /* the commit before that one */
    uint16_t source;               /* of its letters */
    struct tn_track *tracks;       /* the intake's */
    int64_t moved_ms; /* when a track's place came to be another one since the last cut; 0: none */

    uint64_t items;     /* that were put or buried, since the first open */
    uint64_t items_cut; /* of them, before the last cut */
    uint64_t bytes;     /* of rows, since the last cut */
    int64_t since_ms;   /* when the first item behind the last cut came; monotonic */
    int64_t quiet_ms;   /* when the last item came */
    bool cutting;       /* a round is closing */
    bool wants_cut;
    bool idle_once; /* there was no room though nothing was under way */
    bool stays;     /* reload.h: the configuration that comes next has it */

    tn_rc trouble; /* OK: none; what it says to who offers rows */
    struct tn_err trouble_text;
    int64_t retry_ms; /* SHUT: when it is opened again; else when it is turned again */
    int64_t pause_ms; /* the pause before that */

    struct tn_keeper_look look;

    /* For reports. */
    uint64_t rows;
    uint64_t letters;
    uint64_t commits;
    uint64_t reopened;
    int64_t latest_id;
    int64_t compact_id;    /* the newest with results of compactions, since the start; 0: none */
    int64_t earliest_id;   /* of its snapshots; 0: not known yet */
    uint64_t untold;       /* commits with rows since changes were told last */
    struct tn_trend trend; /* of its compaction */
    int64_t committed_ms;  /* wall clock */
    int64_t commit_said_ms;
    bool expiry_said;
    tn_rc said; /* the code of the trouble that was logged last */
    int64_t said_ms;
};

/* The name of the position, and of letters' sources. */
#define TN_KEEPER_SOURCE "journal"

/* Opens the table, which is BEHIND then, at the position in its newest snapshot; `identity` of no
 * journal is known yet, so see tn_keeper_begin. Memory for it is the share's. */
TN_MUST_USE tn_rc tn_keeper_open(struct tn_keeper *keeper, const struct tn_keeper_spec *spec,
                                 struct tn_err *err);
/* What was not committed is dropped; the journal has it. */
void tn_keeper_close(struct tn_keeper *keeper);

/* The place that its newest snapshot names, whatever the journal; 0: none. */
uint64_t tn_keeper_known(const struct tn_keeper *keeper);

/* The first of it that is wanted of this journal. */
TN_MUST_USE tn_rc tn_keeper_begin(struct tn_keeper *keeper, const struct tn_journal *journal,
                                  struct tn_err *err);

/* What the journal is to keep for the stores of its `map`; 0: there are none. */
size_t tn_keeper_state_size(const struct tn_keeper *keeper);
/* What was mapped since the last of it went into the journal is forgotten by the stores, for it was
 * not taken. */
TN_MUST_USE tn_rc tn_keeper_put_back(struct tn_keeper *keeper, const struct tn_journal *journal,
                                     struct tn_err *err);
/* What changed in the stores since then, as a part of the journal's next entry, in `room`, which
 * has state_room bytes; the part's data is empty where nothing did. */
TN_MUST_USE tn_rc tn_keeper_state(struct tn_keeper *keeper, void *room,
                                  struct tn_journal_part *part, struct tn_err *err);
/* The part is in the journal. */
void tn_keeper_state_saved(struct tn_keeper *keeper, const struct tn_journal_part *part);

/* Item `next.items` of the entry at `next.place`. AGAIN: no room now. Others: the table takes
 * nothing, see tn_keeper_fail. */
TN_MUST_USE tn_rc tn_keeper_put(struct tn_keeper *keeper, const struct tn_parcel_head *head,
                                const struct tn_parcel_item *item, int64_t now_ms,
                                struct tn_err *err);

/* An item that does not come from the journal. */
struct tn_keeper_from {
    struct tn_letter_source *letters; /* NULL: of the journal */
    int64_t position;                 /* of a letter of it */
    uint64_t line;
};
TN_MUST_USE tn_rc tn_keeper_put_from(struct tn_keeper *keeper, const struct tn_keeper_from *from,
                                     const struct tn_parcel_head *head,
                                     const struct tn_parcel_item *item, int64_t now_ms,
                                     struct tn_err *err);

/* What is put next is of this parcel, whose items these are: its letters have its input, and the
 * header at its front, whatever was put before. */
void tn_keeper_parcel(struct tn_keeper *keeper, const struct tn_parcel_head *head,
                      struct tn_bytes items);

/* A place of a track is another one: it is committed sooner or later, rows or not. */
void tn_keeper_moved(struct tn_keeper *keeper);

/* The same of an item that is no row of the table any more, and why: its data is the record of a
 * letter of input TN_LETTER_ROW. */
TN_MUST_USE tn_rc tn_keeper_bury(struct tn_keeper *keeper, const struct tn_parcel_item *item,
                                 const char *why, int64_t now_ms, struct tn_err *err);

/* Gives work under way a turn; opens again what is due to be. True when that happened: then comes
 * tn_keeper_begin. `*wait_ms` is lowered to when it wants the next turn. */
bool tn_keeper_turn(struct tn_keeper *keeper, int64_t now_ms, uint32_t *wait_ms);

/* Cuts when the rule says so: everything before `at` is in, and before the tracks' places. By age
 * alone only where it `may`: true when it did so. */
bool tn_keeper_commit(struct tn_keeper *keeper, const char *identity, struct tn_keeper_place at,
                      bool may, int64_t now_ms, uint32_t *wait_ms);

/* There is room again: what wants for it need not wait any longer. */
void tn_keeper_hurry(struct tn_keeper *keeper, int64_t now_ms);

/* It takes nothing for now: closed, and opened again later. */
void tn_keeper_fail(struct tn_keeper *keeper, tn_rc rc, const struct tn_err *err, int64_t now_ms);

/* Nothing waits for a commit. */
static inline bool tn_keeper_settled(const struct tn_keeper *keeper)
{
    return !keeper->table || (!keeper->cutting && keeper->items == keeper->items_cut);
}

/* What is before this place it never wants again, `at` as in tn_keeper_commit: a round late, but
 * for a table that rests, or when the journal is `pressed` for room. */
uint64_t tn_keeper_done(const struct tn_keeper *keeper, struct tn_keeper_place at, int64_t now_ms,
                        bool pressed);
