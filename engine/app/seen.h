/* seen: what a daemon says of itself (status.h), for who asked it.
 *
 * Nothing must be there: the daemon may be of another version. Texts live as long as the arena.
 */
#pragma once

#include "base/arena.h"
#include "base/bytes.h"
#include "format/json.h"

struct tn_seen_daemon {
    const char *version;
    const char *status;
    const char *config;
    const char *listen;
    struct tn_json_i64 process;
    struct tn_json_i64 up_ms;
    struct tn_json_i64 messages;
    struct tn_json_i64 refused;
    struct tn_json_i64 stalls;
    struct tn_json_i64 stall_longest_us;
    struct tn_json_i64 disk_reserve;
    struct tn_json_i64 disk_free;
    struct tn_json_i64 wear_budget;
    struct tn_json_i64 wear_left;
    struct tn_json_i64 wear_overdraft;
    const char *trouble; /* of the last reload */
};

struct tn_seen_journal {
    const char *trouble;
    struct tn_json_i64 bytes;
    struct tn_json_i64 bytes_max;
    struct tn_json_i64 durable;
    struct tn_json_i64 next;
    struct tn_json_i64 waits;
};

struct tn_seen_table {
    struct tn_seen_table *next;
    const char *name;
    const char *state;
    const char *trouble;
    struct tn_json_i64 rows;
    struct tn_json_i64 letters;
    struct tn_json_i64 uncommitted;
    struct tn_json_i64 oldest_ms;
    struct tn_json_i64 snapshot;
    struct tn_json_i64 snapshots;
    struct tn_json_i64 untold;
    struct tn_json_i64 runs_max;
    struct tn_json_i64 runs_stop;
    struct tn_json_i64 files_max;
    struct tn_json_i64 level0_bytes;
};

struct tn_seen_source {
    struct tn_seen_source *next;
    const char *name;
    const char *kind;
    const char *state;
    const char *at;
    const char *trouble;
    struct tn_json_i64 messages;
    struct tn_json_i64 rows;
    struct tn_json_i64 letters;
    struct tn_json_i64 refused;
};

struct tn_seen_lake {
    struct tn_seen_lake *next;
    const char *name;
    const char *target;
    struct tn_json_i64 uploads;
    struct tn_json_i64 failures;
    struct tn_json_i64 sent_bytes;
    struct tn_json_i64 gets;
    struct tn_json_i64 heads;
    struct tn_json_i64 puts;
    struct tn_json_i64 lists;
    struct tn_json_i64 deletes;
    struct tn_json_i64 day_bytes;
    struct tn_json_i64 day_requests;
    struct tn_json_i64 month_bytes;
    struct tn_json_i64 month_requests;
};

/* A table at a lake. */
struct tn_seen_mirror {
    struct tn_seen_mirror *next;
    const char *table;
    const char *lake;
    const char *state;
    const char *shared; /* the way; NULL: it is a mirror */
    const char *kind;
    const char *trouble;
    struct tn_json_i64 snapshot;
    struct tn_json_i64 behind;
    struct tn_json_i64 behind_bytes;
    struct tn_json_i64 pinned_bytes;
    struct tn_json_i64 behind_ms;
    struct tn_json_i64 lake_snapshot;
    struct tn_json_i64 commits;
    struct tn_json_i64 lost_names;
    struct tn_json_i64 replaced_commits;
    struct tn_json_i64 tags_left;
    struct tn_json_i64 tags_denied;
};

struct tn_seen_part {
    struct tn_seen_part *next;
    const char *name;
    const char *kind;
    struct tn_json_i64 size;
    struct tn_json_i64 used;
    struct tn_json_i64 peak;
};

struct tn_seen {
    struct tn_bytes page; /* as it came */
    struct tn_seen_daemon daemon;
    struct tn_seen_journal journal;
    struct tn_seen_table *tables;
    struct tn_seen_source *sources;
    struct tn_seen_part *parts;
    struct tn_seen_lake *lakes;
    struct tn_seen_mirror *mirrors;
};

/* Asks the daemon of a warehouse; errors are those of tn_ask, and CORRUPT for an answer that isn't
 * one. The arena keeps page and records; AGAIN: it's too small. */
TN_MUST_USE tn_rc tn_seen_ask(struct tn_seen *seen, const char *warehouse, struct tn_arena *arena,
                              struct tn_err *err);

/* Takes the page's next object, without what separates it from others; false: there is none. */
bool tn_seen_next(struct tn_bytes *page, struct tn_bytes *object);

/* Each trouble once, with whose it is: "plant.levels: no space left". Returns how many. With none,
 * but a daemon that takes no row, the text says so. */
typedef void tn_seen_reason(void *user, const char *whose, const char *text);
uint32_t tn_seen_reasons(const struct tn_seen *seen, tn_seen_reason *each, void *user);

/* Appends tables for people. `before` (or NULL): what was seen `ms` earlier, for rates. */
void tn_seen_draw(const struct tn_seen *seen, const struct tn_seen *before, int64_t ms,
                  struct tn_buf *out);
