/* wear: how many bytes a day may be written to the disk, which wears out by them. Everything that
 * goes through the door counts; what waits when the budget is spent is compaction that nobody needs
 * now (work.c), and nothing else. So more may be written than the budget has: that is the
 * overdraft, and it is paid back before the next optional byte.
 *
 * The budget comes in as the day goes by the monotonic clock, a day's worth is kept at the most,
 * and a start has all of it, less what the last one that ended in order had spent.
 */
#pragma once

#include "base/arena.h"
#include "io/io.h"

#define TN_WEAR_FILE ".tarn/wear"

struct tn_wear {
    struct tn_io *io;
    uint64_t budget;   /* bytes a day; 0: nothing optional is ever written */
    int64_t left;      /* of it; below 0: the overdraft */
    uint64_t written;  /* all that went through the door, at the last look */
    int64_t looked_ms; /* monotonic */
    uint64_t rest;     /* of what came in, less than a byte: in bytes a day times ms */
};

void tn_wear_init(struct tn_wear *wear, uint64_t budget, struct tn_io *io, int64_t now_ms);

/* Takes what was written, and gives what came in, since the last look. */
void tn_wear_look(struct tn_wear *wear, int64_t now_ms);

static inline bool tn_wear_spent(const struct tn_wear *wear)
{
    return wear->left <= 0;
}

static inline uint64_t tn_wear_overdraft(const struct tn_wear *wear)
{
    return wear->left < 0 ? (uint64_t)-wear->left : 0;
}

/* When the budget isn't spent any more, if nothing is written: ms, at most `most`. */
uint32_t tn_wear_wait_ms(const struct tn_wear *wear, uint32_t most);

/* What is left goes from one start to the next by a file; blocking I/O. `wall_ms`: by the wall
 * clock, ms since 1970. A file that is missing, or none of ours, says nothing. */
TN_MUST_USE tn_rc tn_wear_save(const struct tn_wear *wear, int64_t wall_ms, struct tn_err *err);
void tn_wear_load(struct tn_wear *wear, int64_t wall_ms, struct tn_arena *scratch);
