/* gather_pause: committers of a lake's table are asked to wait, by a small object beside it, in
 * which everybody who asks for that has a mark: `.tarn/<db>.<table>/pause`
 *
 *     tarn-pause 2
 *     {"id": "<uuid>", "by": "tarn gather, process 17 on box", "sinceMs": 1790000000000, "beat": 7}
 *
 * Official Paimon replaces a snapshot's name in an object store without asking. So before official
 * compaction, expiry or writers run, all committers of tarn pause: each reads this before it makes
 * a snapshot, and again where it read it longer ago than TN_PAUSE_FRESH_MS. When it has stood for
 * TN_PAUSE_QUIET_MS without a new snapshot, nobody is under way any more.
 *
 * Who pauses counts its `beat` on (gather_pauser.h). Nobody's clock is compared with another's:
 * whoever finds marks watches them, and when all of them stayed as they were for TN_PAUSE_TTL_MS of
 * its own monotonic time nobody holds them any more.
 *
 *     no mark ----------------------------> go on
 *     marks, seen first, or the same -----> look again
 *     marks that changed -----------------> paused
 *     the same for TTL -------------------> run out: go on
 */
#pragma once

#include "base/hash.h"
#include "io/clock.h"
#include "io/io.h"
#include "upload/target.h"

enum {
    TN_PAUSE_BY_SIZE = 128,
    TN_PAUSE_MARKS_MAX = 16,
    TN_PAUSE_TEXT_MAX = 8192,
    TN_PAUSE_FRESH_MS = 5 * 1000,
    TN_PAUSE_BEAT_MS = 5 * 1000,
    /* Longer than a snapshot's name can be asked for since a pause was looked for: s3_target.h. */
    TN_PAUSE_QUIET_MS = 120 * 1000,
    /* Longer than a beat may be under way. */
    TN_PAUSE_TTL_MS = 3 * 60 * 1000,
};

struct tn_pause {
    bool set;
    int64_t since_ms; /* the first, by the clock of who set it */
    char by[TN_PAUSE_BY_SIZE];
    struct tn_hash_128 hash; /* of all marks */
};

/* None is no error: `set` is false. A pause that can't be read is one, by nobody known. */
TN_MUST_USE tn_rc tn_pause_read(struct tn_io *io, const char *table, struct tn_arena *scratch,
                                struct tn_pause *pause, struct tn_err *err);
/* The same, in one GET. */
TN_MUST_USE tn_rc tn_pause_read_target(struct tn_target *target, const char *table,
                                       struct tn_arena *scratch, struct tn_pause *pause,
                                       struct tn_err *err);

/* Says AGAIN: who asked committers to wait, and since when. */
tn_rc tn_pause_say(const struct tn_pause *pause, const char *table, struct tn_err *err);

/* What somebody has seen of marks. */
struct tn_pause_watch {
    struct tn_hash_128 seen;
    bool any;         /* `seen` is set */
    bool alive;       /* they were seen to change */
    int64_t since_ns; /* monotonic: since when they are so */
};

/* Whether what was read is to be obeyed; false: nothing is set, or it has run out. */
bool tn_pause_holds(struct tn_pause_watch *watch, const struct tn_pause *pause,
                    struct tn_clock *clock);

/* ---- the text ---- */

struct tn_pause_mark {
    char id[TN_UUID_SIZE];
    char by[TN_PAUSE_BY_SIZE];
    int64_t since_ms;
    int64_t beat;
};

struct tn_pause_marks {
    struct tn_pause_mark items[TN_PAUSE_MARKS_MAX];
    uint32_t count;
};

/* ".tarn/db.t/pause"; NULL: the arena is full. */
const char *tn_pause_path(struct tn_arena *arena, const char *table);
/* CORRUPT: nobody knows who pauses. AGAIN: the arena is too small. */
TN_MUST_USE tn_rc tn_pause_parse(struct tn_bytes text, struct tn_arena *scratch,
                                 struct tn_pause_marks *marks, struct tn_err *err);
void tn_pause_format(const struct tn_pause_marks *marks, struct tn_buf *text);
