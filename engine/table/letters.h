/* letters: the dead letters of one table's writer, whatever their cause, on their way to where
 * they are kept.
 *
 *     record that can't be decoded, mapped or put   (loop)    -> spool "records" --.
 *     row that can't be resolved, by the sink       (worker)  -> spool "rows" -----+-> box
 *                                                                    publish, commit
 *
 * A letter is named by where it came from: source, position of the record in it, and part, the row
 * among those made of the record. Letters wait on disk, so that any number of them takes no memory,
 * until the cut that they belong to: they are in their box, for good, before its rows are
 * committed. What waits is published whole, so that a letter may be there before its cut: then its
 * record comes again after a crash, and either gives the same letter or none.
 *
 * To that end what is told of records that come again is taken back first: tn_letters_source.
 */
#pragma once

#include <pthread.h>

#include "merge/resolve.h"
#include "table/spool.h"

enum {
    TN_LETTER_SOURCE_SIZE = 512, /* of a source's name, with its zero */
    TN_LETTER_INPUT_SIZE = 24,
    TN_LETTER_HEADER_SIZE = 4096,
};

/* The input of a row that failed when it was resolved: its record is the row in the shape of
 * `changes`, which `map` has seen already. */
#define TN_LETTER_ROW "row"

/* As it goes into its box. */
struct tn_dead_letter {
    struct tn_bytes source;
    int64_t position;
    uint32_t part; /* rows before it were taken; this one and those behind it were not */
    uint64_t line; /* of the source, from 1; 0: not known */
    struct tn_bytes table;
    struct tn_bytes input; /* as `write --input` names it, or TN_LETTER_ROW */
    struct tn_bytes
        header; /* csv: the line that names the columns; "": none, a long one, or no UTF-8 */
    struct tn_bytes reason; /* UTF-8 */
    uint32_t record_size;   /* see tn_letter_record */
    struct tn_spool *spool;
    uint64_t record_at;
};

/* Bytes of the letter's record. */
TN_MUST_USE tn_rc tn_letter_record(const struct tn_dead_letter *letter, uint32_t at, void *data,
                                   size_t size, struct tn_err *err);

/* Where letters are kept: letter_table.h, or a file of the program's. */
struct tn_letter_box {
    TN_MUST_USE tn_rc (*put)(struct tn_letter_box *box, const struct tn_dead_letter *letter,
                             struct tn_err *err);
    /* What was put is there for good. */
    TN_MUST_USE tn_rc (*commit)(struct tn_letter_box *box, struct tn_err *err);
    /* Letters of the source from a position and part on are gone. NULL: they can't. */
    TN_MUST_USE tn_rc (*forget)(struct tn_letter_box *box, const char *source, int64_t from,
                                uint32_t part, struct tn_err *err);
    /* A source that there are letters of, whose name begins so; "": none. NULL: nobody knows. */
    TN_MUST_USE tn_rc (*find)(struct tn_letter_box *box, const char *prefix,
                              char name[TN_LETTER_SOURCE_SIZE], struct tn_err *err);
    uint32_t size_max; /* of a letter's texts together, in bytes; 0: any */
};

/* Where letters of records come from: one of them is at hand, others may be so again. */
struct tn_letter_source {
    unsigned char name[TN_LETTER_SOURCE_SIZE];
    uint16_t number; /* among the sources, once it is named */
    bool named;      /* it has its place among them */
};

struct tn_letters {
    struct tn_letter_sink sink; /* first: for the flushes, on the worker */
    struct tn_letter_box *box;
    const char *table;
    const struct tn_row_layout *layout;
    bool muted;
    bool swept;              /* of what a killed process left */
    struct tn_spool sources; /* their names, TN_LETTER_SOURCE_SIZE each */
    struct tn_spool records;
    struct tn_spool rows;
    uint32_t source_count;
    struct tn_letter_source own;
    struct tn_letter_source *source; /* at hand */
    char input[TN_LETTER_INPUT_SIZE];
    unsigned char header[TN_LETTER_HEADER_SIZE];
    uint32_t header_size;
    unsigned char *header_read; /* of the letter that goes into the box */
    uint64_t records_done;      /* bytes of the spool that are in the box */
    bool uncommitted;           /* the box has letters that are not there for good */
    uint64_t record_count;      /* in the box */
    uint64_t row_count;         /* likewise */
    pthread_mutex_t lock;       /* guards the rest, but for `put`, which only a flush does */
    bool flushing;
    uint64_t rows_begin; /* where the flush under way began */
    uint64_t rows_end;   /* of flushes that succeeded */
    uint64_t rows_done;
};

/* `table` (its name), the box and `room`, TN_LETTER_HEADER_SIZE bytes, live as long as the letters.
 */
TN_MUST_USE tn_rc tn_letters_open(struct tn_letters *letters, struct tn_io *io, const char *table,
                                  struct tn_letter_box *box, void *room, struct tn_err *err);
/* Of the rows that the sink will get; before the first. */
void tn_letters_layout(struct tn_letters *letters, const struct tn_row_layout *layout);
/* The commit that all of this belongs to was made before: its letters stand as they are. */
void tn_letters_mute(struct tn_letters *letters);
void tn_letters_close(struct tn_letters *letters); /* also those that failed to open */

/* Another source, which begins at a record and row of it: letters of what comes again are taken
 * back.
 * `*number` is for tn_origin. `again` false: nothing of it was here before. */
TN_MUST_USE tn_rc tn_letters_source(struct tn_letters *letters, const char *name, const char *input,
                                    int64_t from, uint32_t part, bool again, uint16_t *number,
                                    struct tn_err *err);
/* The same, and the source is the caller's: it is at hand, and stays known until the letters are
 * closed. */
TN_MUST_USE tn_rc tn_letters_begin(struct tn_letters *letters, struct tn_letter_source *source,
                                   const char *name, const char *input, int64_t from, uint32_t part,
                                   bool again, struct tn_err *err);
/* A source that was begun is at hand again; NULL: the one of tn_letters_source. */
void tn_letters_turn(struct tn_letters *letters, struct tn_letter_source *source);
/* Its next records are of another input. */
void tn_letters_input(struct tn_letters *letters, const char *input);
/* The header of that source, when it is csv; the first one counts. */
void tn_letters_header(struct tn_letters *letters, struct tn_bytes header);

/* A record of the source at hand: from row `part` on it can't be taken. UNSUPPORTED: the letter is
 * too large for its box. */
struct tn_letter_record {
    int64_t position;
    uint32_t part;
    uint64_t line;
    struct tn_bytes record;
    const char *reason;
};
TN_MUST_USE tn_rc tn_letters_bury(struct tn_letters *letters, const struct tn_letter_record *record,
                                  struct tn_err *err);

/* All that waits goes into the box, for good: before the rows of a cut are committed. On the loop,
 * never inside a completion. */
TN_MUST_USE tn_rc tn_letters_publish(struct tn_letters *letters, struct tn_err *err);
