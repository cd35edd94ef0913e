/* peer_sqlite: the bench's rows into SQLite, WAL and synchronous=FULL: on disk when a commit
 * returns.
 *
 *     peer_sqlite ingest|scan FILE.db FILE.raw
 */
#include "bench.h"

#include <sqlite3.h>

static sqlite3 *db;

static void run(const char *sql)
{
    char *error = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK) {
        die(error);
    }
}

static sqlite3_stmt *prepare(const char *sql)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK) {
        die(sqlite3_errmsg(db));
    }
    return statement;
}

static void bind_key(sqlite3_stmt *s, const struct row *row)
{
    sqlite3_bind_text(s, 1, row->device, 16, SQLITE_STATIC);
    sqlite3_bind_int(s, 2, row->metric);
}

static void bind_values(sqlite3_stmt *s, const struct row *row)
{
    sqlite3_bind_int64(s, 3, row->ts);
    for (int i = 0; i < 4; i++) {
        sqlite3_bind_double(s, 4 + i, row->v[i]);
    }
    sqlite3_bind_int(s, 8, row->status);
    sqlite3_bind_int64(s, 9, row->seq);
    sqlite3_bind_text(s, 10, row->unit, unit_size(row->unit), SQLITE_STATIC);
    sqlite3_bind_int(s, 11, row->ok);
}

#define UPSERT                                                                                 \
    "INSERT INTO t VALUES(?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(device_id,metric) DO UPDATE SET " \
    "ts=excluded.ts,v1=excluded.v1,v2=excluded.v2,v3=excluded.v3,v4=excluded.v4,"              \
    "status=excluded.status,seq=excluded.seq,unit=excluded.unit,ok=excluded.ok"

static void ingest(const char *path)
{
    struct raw raw;
    raw_open(&raw, path);
    sqlite3_stmt *put =
        prepare(raw.header.workload == 4 ? UPSERT " WHERE excluded.seq>=seq" : UPSERT);
    sqlite3_stmt *del = prepare("DELETE FROM t WHERE device_id=? AND metric=?");
    for (size_t count; (count = raw_next(&raw)) > 0;) {
        run("BEGIN");
        for (size_t i = 0; i < count; i++) {
            const struct row *row = &raw.rows[i];
            sqlite3_stmt *s = row->op == OP_DELETE ? del : put;
            bind_key(s, row);
            if (s == put) {
                bind_values(s, row);
            }
            if (sqlite3_step(s) != SQLITE_DONE) {
                die(sqlite3_errmsg(db));
            }
            sqlite3_reset(s);
        }
        run("COMMIT");
    }
    sqlite3_finalize(put);
    sqlite3_finalize(del);
}

static void scan(void)
{
    struct sums sums = {0};
    sqlite3_stmt *s = prepare("SELECT seq,status,v1,v2,v3,v4,ok FROM t");
    while (sqlite3_step(s) == SQLITE_ROW) {
        struct row row = {.seq = sqlite3_column_int64(s, 0),
                          .status = sqlite3_column_int(s, 1),
                          .ok = (uint8_t)sqlite3_column_int(s, 6)};
        for (int i = 0; i < 4; i++) {
            row.v[i] = sqlite3_column_double(s, 2 + i);
        }
        sums_add(&sums, &row);
    }
    sqlite3_finalize(s);
    sums_print(&sums);
}

int main(int argc, char **argv)
{
    if (argc != 4 || sqlite3_open(argv[2], &db) != SQLITE_OK) {
        die("peer_sqlite ingest|scan FILE.db FILE.raw");
    }
    run("PRAGMA journal_mode=WAL");
    run("PRAGMA synchronous=FULL");
    run("PRAGMA cache_size=-16000");
    run("CREATE TABLE IF NOT EXISTS t(device_id TEXT NOT NULL,metric INT NOT NULL,ts INT,v1 REAL,"
        "v2 REAL,v3 REAL,v4 REAL,status INT,seq INT,unit TEXT,ok INT,"
        "PRIMARY KEY(device_id,metric)) WITHOUT ROWID");
    if (strcmp(argv[1], "ingest") == 0) {
        ingest(argv[3]);
    } else {
        scan();
    }
    return sqlite3_close(db) == SQLITE_OK ? 0 : 1;
}
