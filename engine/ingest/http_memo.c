#include "ingest/http_memo.h"

#include "base/check.h"
#include "base/hash.h"

enum { VERSION = 1, KEYS_AT = 9, KEY_SIZE = 8, DIGEST_SIZE = 32 };

static bool knows_key(struct tn_bytes known, const unsigned char *key)
{
    for (size_t at = KEYS_AT; at < known.size; at += KEY_SIZE) {
        if (memcmp(known.data + at, key, KEY_SIZE) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_memo(struct tn_bytes known)
{
    return known.size >= KEYS_AT && known.size <= TN_HTTP_MEMO_SIZE && known.data[0] == VERSION &&
           (known.size - KEYS_AT) % KEY_SIZE == 0;
}

static void put_number(struct tn_buf *buf, uint64_t number)
{
    unsigned char bytes[8];
    tn_store_u64(bytes, number);
    tn_buf_append(buf, bytes, sizeof bytes);
}

static void put_keys(struct tn_buf *buf, struct tn_bytes known, const unsigned char *key)
{
    size_t kept = known.size > KEYS_AT ? known.size - KEYS_AT : 0;
    size_t room = TN_HTTP_MEMO_SIZE - KEYS_AT - (key ? KEY_SIZE : 0);
    if (key) {
        tn_buf_append(buf, key, KEY_SIZE);
    }
    if (kept > 0) {
        tn_buf_append(buf, known.data + KEYS_AT, kept < room ? kept : room);
    }
}

tn_rc tn_http_memo_meet(struct tn_bytes known, const struct tn_http_mark *mark, bool *repeated,
                        struct tn_buf *next, struct tn_err *err)
{
    TN_CHECK((mark->sequence > 0) != (mark->key.size > 0));
    unsigned char digest[DIGEST_SIZE];
    if (known.size > 0 && !is_memo(known)) {
        return tn_err_set(err, TN_CORRUPT, 0, "the memo of a sender isn't one of HTTP's");
    }
    uint64_t sequence = known.size > 0 ? tn_load_u64(known.data + 1) : 0;
    if (mark->key.size > 0) {
        tn_hash_sha256(mark->key, digest);
        *repeated = knows_key(known, digest);
    } else {
        *repeated = mark->sequence <= sequence;
        sequence = mark->sequence;
    }
    if (!*repeated) {
        tn_buf_byte(next, VERSION);
        put_number(next, sequence);
        put_keys(next, known, mark->key.size > 0 ? digest : NULL);
    }
    return TN_OK;
}
