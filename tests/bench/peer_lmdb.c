/* peer_lmdb: the bench's rows into LMDB with its default sync: on disk when a commit returns.
 *
 *     peer_lmdb ingest|scan FOLDER FILE.raw
 */
#include "bench.h"

#include <lmdb.h>

#define OK(call)                    \
    do {                            \
        int rc_ = (call);           \
        if (rc_ != 0) {             \
            die(mdb_strerror(rc_)); \
        }                           \
    } while (0)

enum { KEY_SIZE = 20, VALUE_OFFSET = 16, VALUE_SIZE = sizeof(struct row) - VALUE_OFFSET };

static MDB_env *env;

/* Device and metric, big-endian, so that keys sort as the other peers' do. */
static void make_key(const struct row *row, uint8_t key[KEY_SIZE])
{
    uint32_t metric = __builtin_bswap32((uint32_t)row->metric);
    memcpy(key, row->device, 16);
    memcpy(key + 16, &metric, 4);
}

static bool loses(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, const struct row *row)
{
    MDB_val stored;
    int rc = mdb_get(txn, dbi, key, &stored);
    if (rc == MDB_NOTFOUND) {
        return false;
    }
    OK(rc);
    struct row old;
    memcpy((char *)&old + VALUE_OFFSET, stored.mv_data, VALUE_SIZE);
    return row->seq < old.seq;
}

static void put_row(MDB_txn *txn, MDB_dbi dbi, const struct row *row, uint32_t workload)
{
    uint8_t bytes[KEY_SIZE];
    make_key(row, bytes);
    MDB_val key = {KEY_SIZE, bytes};
    if (row->op == OP_DELETE) {
        int rc = mdb_del(txn, dbi, &key, NULL);
        OK(rc == MDB_NOTFOUND ? 0 : rc);
    } else if (workload != 4 || !loses(txn, dbi, &key, row)) {
        struct row copy = *row;
        MDB_val value = {VALUE_SIZE, (char *)&copy + VALUE_OFFSET};
        OK(mdb_put(txn, dbi, &key, &value, 0));
    }
}

static void ingest(const char *path)
{
    struct raw raw;
    raw_open(&raw, path);
    for (size_t count; (count = raw_next(&raw)) > 0;) {
        MDB_txn *txn;
        MDB_dbi dbi;
        OK(mdb_txn_begin(env, NULL, 0, &txn));
        OK(mdb_dbi_open(txn, NULL, 0, &dbi));
        for (size_t i = 0; i < count; i++) {
            put_row(txn, dbi, &raw.rows[i], raw.header.workload);
        }
        OK(mdb_txn_commit(txn));
    }
}

static void scan(void)
{
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_cursor *cursor;
    MDB_val key;
    MDB_val value;
    struct sums sums = {0};
    OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
    OK(mdb_dbi_open(txn, NULL, 0, &dbi));
    OK(mdb_cursor_open(txn, dbi, &cursor));
    while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
        struct row row;
        memcpy((char *)&row + VALUE_OFFSET, value.mv_data, VALUE_SIZE);
        sums_add(&sums, &row);
    }
    sums_print(&sums);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        die("peer_lmdb ingest|scan FOLDER FILE.raw");
    }
    OK(mdb_env_create(&env));
    OK(mdb_env_set_mapsize(env, (size_t)8 << 30));
    OK(mdb_env_open(env, argv[2], MDB_NORDAHEAD, 0644));
    if (strcmp(argv[1], "ingest") == 0) {
        ingest(argv[3]);
    } else {
        scan();
    }
    mdb_env_close(env);
    return 0;
}
