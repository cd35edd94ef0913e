/* tarn: real Apache Paimon tables from a C program, in memory that is fixed when the engine opens.
 *
 *     tarn_open -> tarn_create -> tarn_table_open -> { tarn_put_json | tarn_row_* , tarn_put }*
 *              -> tarn_commit ... -> tarn_table_close -> tarn_close
 *     tarn_open -> tarn_scan_open -> tarn_scan_next* -> tarn_scan_close -> tarn_close
 *
 * Everything happens in the calls: no threads, no callbacks, no allocation after tarn_open. An
 * engine has at most one table open for writing and one scan open; a process has one engine (JSON
 * and Avro libraries have one heap a process). Options are structs that begin with their size, so
 * that a program built for an older version goes on working.
 *
 * Functions that can fail return a tarn_rc, and say why in `error`, which may be NULL.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TARN_API_VERSION 1

typedef struct tarn_engine tarn_engine;
typedef struct tarn_table tarn_table;
typedef struct tarn_scan tarn_scan;

typedef enum {
    TARN_OK = 0,
    TARN_AGAIN = -1,        /* no room now; what to do first is in the text */
    TARN_ABSENT = -2,       /* no such table, snapshot, position; the end of a scan */
    TARN_EXISTS = -3,       /* it is there already, or somebody else holds it */
    TARN_INVALID = -4,      /* the caller's input is wrong */
    TARN_CORRUPT = -5,      /* stored bytes contradict themselves */
    TARN_IO = -6,           /* the device failed */
    TARN_FULL = -7,         /* the disk is full */
    TARN_CONFLICT = -8,     /* other committers were faster, too often */
    TARN_CANCELED = -9,     /* stopped on request */
    TARN_UNSUPPORTED = -10, /* well formed, but not for this version */
} tarn_rc;

typedef struct {
    tarn_rc code;
    char text[400]; /* "what: where: why", ends with a zero byte */
} tarn_error;

/* ---- engine ---- */

typedef struct {
    uint32_t size;         /* sizeof(tarn_engine_options) */
    const char *warehouse; /* folder of the tables; made when it is missing */
    void *memory;          /* the caller's block, aligned as max_align_t; or NULL */
    uint64_t memory_size;  /* bytes: of that block; without one, of all the process may use, 0 for
                              the board's own size */
} tarn_engine_options;

/* TARN_API_VERSION of the library; a program may compare it with its own. */
uint32_t tarn_version(void);

/* Opens an engine: all memory that it will ever have is taken and touched here.
 *
 * options  see above; kept only during the call, but for `memory`, which is the engine's until
 *          tarn_close
 * engine   set when TARN_OK
 * returns  TARN_INVALID  no warehouse given, or too little memory (the text says what would do)
 *          TARN_IO       the warehouse can't be opened or made
 * costs    one mapping of the memory; one open
 * thread   any; later calls on one engine must not overlap */
tarn_rc tarn_open(const tarn_engine_options *options, tarn_engine **engine, tarn_error *error);

/* Closes what is still open, drops rows that were not committed, and gives the memory back.
 *
 * engine   may be NULL
 * costs    as tarn_table_close
 * thread   the engine's */
void tarn_close(tarn_engine *engine);

/* ---- tables ---- */

/* Makes a table.
 *
 * table    "database.table"
 * schema   JSON: {"fields":[{"name":"k","type":"BIGINT"},...],"primaryKeys":["k"],
 *          "partitionKeys":[],"options":{"bucket":"1"},"comment":""}; see `tarn help create`
 * returns  TARN_EXISTS       there is such a table; it is left alone
 *          TARN_AGAIN        the schema has a script, and a table or a scan is open: close it first
 *          TARN_INVALID      a name, a type, a key or an option's value, and the text has the line;
 *                            or the script can't be used, and it has the path
 *          TARN_UNSUPPORTED  a type or option that can't be written yet, by name
 *          TARN_IO, TARN_FULL
 * costs    three folders, one file, two barriers
 * thread   the engine's
 * source   Paimon: SchemaManager.createTable */
tarn_rc tarn_create(tarn_engine *engine, const char *table, const char *schema, tarn_error *error);

typedef enum {
    TARN_INSERT = 0,        /* +I */
    TARN_UPDATE_BEFORE = 1, /* -U */
    TARN_UPDATE_AFTER = 2,  /* +U */
    TARN_DELETE = 3,        /* -D */
} tarn_row_kind;

/* A row that a table's script (option `tarn.script`) failed on when it was merged; it changes
 * nothing. */
typedef struct {
    const char *reason; /* "fold.lua:12: why" */
    const char *json;   /* the row, as an object; NULL: it is longer than the memory for it */
    size_t json_size;
    tarn_row_kind kind;
    int64_t put;   /* by which put since the table was opened it came in, from 0 */
    uint32_t part; /* of the rows that the script's `map` made of that put, from 0 */
} tarn_dead_letter;

typedef struct {
    uint32_t size;    /* sizeof(tarn_table_options) */
    const char *name; /* "database.table" */
    const char *who;  /* what others are told who find the table taken; NULL: "a program" */
    /* Told of each dead letter, inside the put or commit that merges its row: before the row's
     * commit, and again when that work is done again. What it gets lives until it returns; it calls
     * no function of tarn. NULL: such a put or commit fails with TARN_UNSUPPORTED, and nothing
     * since the last commit can be committed. */
    void (*dead_letter)(void *user, const tarn_dead_letter *letter);
    void *user;
} tarn_table_options;

/* Opens a table for writing, and takes its lock. A table's script is loaded, and from then on rows
 * go through it: `map` gets each tarn_put_json's object as a table, and each tarn_put's row (-U
 * aside); what it makes of one put are the put's parts, maybe none.
 *
 * Where a commit is to tell what changed (changelog-producer lookup or full-compaction, or
 * merge-engine first-row) and a writer was killed before it had, this finishes that, in a snapshot
 * of its own, before any row is put.
 *
 * options  kept only during the call
 * table    set when TARN_OK; owned by the engine until tarn_table_close
 * returns  TARN_ABSENT       no such table
 *          TARN_EXISTS       somebody else writes it (the text says who), or this engine has a
 *                            table open already
 *          TARN_AGAIN        a scan is open: close it first
 *          TARN_INVALID      its script can't be used; the text has its path, and why
 *          TARN_UNSUPPORTED  an option that a writer must obey and this version can't
 *          TARN_FULL, TARN_CONFLICT  of what a killed writer left to be done: call again
 *          TARN_CORRUPT, TARN_IO
 * costs    reads schemas and the newest snapshot; one barrier where there is a snapshot. Where
 *          commits tell changes also the snapshot's manifests, and what tarn_commit costs when
 *          something was left
 * thread   the engine's */
tarn_rc tarn_table_open(tarn_engine *engine, const tarn_table_options *options, tarn_table **table,
                        tarn_error *error);

/* Closes it; rows that were not committed are dropped.
 *
 * table    may be NULL; not to be used afterwards
 * costs    removes files that no snapshot names
 * thread   the engine's */
void tarn_table_close(tarn_table *table);

/* The index of a column, which the functions below take; -1 when there is none of that name.
 *
 * costs    looks through the names
 * thread   the engine's */
int32_t tarn_table_column(const tarn_table *table, const char *name);

/* ---- rows in ---- */

/* Adds one row from a JSON object.
 *
 * kind     of the row; an append table takes only TARN_INSERT
 * json     one object on one line, {"k":1,"v":"a"}; missing columns get their default, else NULL;
 *          copied before the call returns
 * size     bytes
 * returns  TARN_INVALID  not such an object, a value that its column can't take, or what the script
 *                        says: the rows that `map` made are not in, or (the text says so) some are
 *          TARN_AGAIN    no more rows before tarn_commit; or a scan is open. After the commit the
 *                        same put goes on with the part that it stopped at
 *          TARN_CANCELED the script failed a hundred times in a row; close the table, correct it,
 *                        and put what was not committed again
 *          TARN_IO, TARN_FULL, TARN_CORRUPT  of work that made room, as tarn_commit
 * costs    no I/O while the memtable has room; else flushes and compacts until it has
 * thread   the engine's */
tarn_rc tarn_put_json(tarn_table *table, tarn_row_kind kind, const char *json, size_t size,
                      tarn_error *error);

/* Begins a row whose columns are all NULL; one that was begun before is forgotten.
 *
 * costs    clears one value a column
 * thread   the engine's */
void tarn_row_begin(tarn_table *table, tarn_row_kind kind);

/* Sets a column of the row that was begun.
 *
 * column   from tarn_table_column
 * value    i64: BOOLEAN (0, 1), TINYINT .. BIGINT; double: FLOAT, DOUBLE; bytes: BINARY, VARBINARY;
 *          text: any type, in its JSON text without quotes ("12.50", "2024-05-01 10:00:00")
 * size     bytes; text and bytes are kept by pointer until tarn_put
 * returns  TARN_INVALID  no such column, another type, or outside of what the column can hold
 * costs    no I/O, no copy
 * thread   the engine's */
tarn_rc tarn_row_set_i64(tarn_table *table, int32_t column, int64_t value, tarn_error *error);
tarn_rc tarn_row_set_double(tarn_table *table, int32_t column, double value, tarn_error *error);
tarn_rc tarn_row_set_text(tarn_table *table, int32_t column, const char *value, size_t size,
                          tarn_error *error);
tarn_rc tarn_row_set_bytes(tarn_table *table, int32_t column, const void *value, size_t size,
                           tarn_error *error);

/* Adds the row that was begun.
 *
 * returns  as tarn_put_json; TARN_INVALID also for a NULL in a NOT NULL column
 * costs    as tarn_put_json, and one copy of the row
 * thread   the engine's
 * source   Paimon: TableWrite.write */
tarn_rc tarn_put(tarn_table *table, tarn_error *error);

/* Notes how far a source of rows was read; committed with the rows that were put so far.
 *
 * source   the caller's name for it, at most 100 bytes
 * position at most 191 bytes; what it means is the caller's
 * returns  TARN_INVALID  too long; TARN_AGAIN  too many sources
 * costs    no I/O
 * thread   the engine's */
tarn_rc tarn_set_position(tarn_table *table, const char *source, const char *position,
                          tarn_error *error);

/* The position that the newest snapshot of this writer had when the table was opened, or NULL:
 * where the source goes on after a crash or a power cut.
 *
 * costs    no I/O; the text lives until tarn_table_close
 * thread   the engine's */
const char *tarn_position(const tarn_table *table, const char *source);

/* Makes all rows that were put, and positions, durable in one snapshot; compacts what is due.
 *
 * snapshot set when TARN_OK: the newest snapshot (0: the table has none, and no row came); may be
 *          NULL
 * returns  TARN_FULL      nothing is lost: call again when there is room
 *          TARN_IO        the table must be closed and opened again, and rows come again from
 *                         tarn_position: what the disk kept is known only then
 *          TARN_CONFLICT  call again
 *          TARN_AGAIN     a scan is open
 *          TARN_CORRUPT   a file of the table is damaged, by name
 *          TARN_CANCELED  see tarn_put_json
 * costs    flushes, merges where triggers say so; two barriers a snapshot; expiry
 * thread   the engine's
 * source   Paimon: TableCommit.commit */
tarn_rc tarn_commit(tarn_table *table, int64_t *snapshot, tarn_error *error);

/* ---- rows out ---- */

typedef struct {
    uint32_t size;       /* sizeof(tarn_scan_options) */
    const char *table;   /* "database.table" */
    int64_t snapshot;    /* 0: the newest */
    const char *columns; /* "a,b", in this order; NULL: all that are not nested */
    const char *where;   /* "temp > 80 and unit = 'C'"; NULL: all rows */
} tarn_scan_options;

/* Opens a scan: the merged rows of one snapshot. Rows that were put and not committed are not seen.
 *
 * options  kept only during the call
 * scan     set when TARN_OK; owned by the engine until tarn_scan_close
 * returns  TARN_ABSENT       no such table or snapshot
 *          TARN_EXISTS       this engine has a scan open already
 *          TARN_INVALID      `columns` or `where`; the text names the word
 *          TARN_UNSUPPORTED  a column, an option or a file format that can't be read yet
 *          TARN_AGAIN        does not fit the memory, with what is needed
 *          TARN_CORRUPT, TARN_IO
 * costs    reads the snapshot and its manifests
 * thread   the engine's */
tarn_rc tarn_scan_open(tarn_engine *engine, const tarn_scan_options *options, tarn_scan **scan,
                       tarn_error *error);

/* Goes to the next row.
 *
 * returns  TARN_ABSENT at the end; TARN_CORRUPT with file and byte; TARN_AGAIN, TARN_IO
 * costs    a block of each run that holds the key is read and unpacked when its turn comes
 * thread   the engine's */
tarn_rc tarn_scan_next(tarn_scan *scan, tarn_error *error);

/* How many columns the rows have, and what they are called (NULL behind the last).
 *
 * costs    nothing
 * thread   the engine's */
uint32_t tarn_scan_column_count(const tarn_scan *scan);
const char *tarn_scan_column_name(const tarn_scan *scan, uint32_t column);

/* A column of the row at hand, counted as in `columns`.
 *
 * value    i64: BOOLEAN, TINYINT .. BIGINT, DATE (days since 1970), TIME (ms of the day);
 *          double: FLOAT, DOUBLE; text: any type; bytes: CHAR, VARCHAR, BINARY, VARBINARY. Set when
 *          TARN_OK; text and bytes live until the next call on the scan
 * returns  TARN_ABSENT   it is NULL
 *          TARN_INVALID  no row is at hand, no such column, or another type
 *          TARN_AGAIN    a text longer than the memory for it
 * costs    no I/O
 * thread   the engine's */
tarn_rc tarn_scan_i64(tarn_scan *scan, uint32_t column, int64_t *value, tarn_error *error);
tarn_rc tarn_scan_double(tarn_scan *scan, uint32_t column, double *value, tarn_error *error);
tarn_rc tarn_scan_text(tarn_scan *scan, uint32_t column, const char **value, size_t *size,
                       tarn_error *error);
tarn_rc tarn_scan_bytes(tarn_scan *scan, uint32_t column, const void **value, size_t *size,
                        tarn_error *error);

/* The row at hand as a JSON object, ending with a zero byte that `size` does not count.
 *
 * json     lives until the next call on the scan
 * returns  TARN_INVALID  no row is at hand; TARN_AGAIN  longer than the memory for it
 * costs    no I/O
 * thread   the engine's */
tarn_rc tarn_scan_json(tarn_scan *scan, const char **json, size_t *size, tarn_error *error);

/* Closes it.
 *
 * scan     may be NULL; not to be used afterwards
 * costs    closes files
 * thread   the engine's */
void tarn_scan_close(tarn_scan *scan);

#ifdef __cplusplus
}
#endif
