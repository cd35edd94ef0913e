#include "ingest/journal_senders.h"

#include "base/check.h"

struct record {
    uint64_t place;
    struct tn_bytes name;
    struct tn_bytes memo;
    size_t size; /* bytes of all */
};

size_t tn_journal_senders_size(uint32_t count_max, uint32_t bytes_max)
{
    return (size_t)count_max * TN_JOURNAL_MEMO_HEAD_SIZE + bytes_max;
}

static bool record_at(struct tn_bytes rest, struct record *record)
{
    if (rest.size < TN_JOURNAL_MEMO_HEAD_SIZE) {
        return false;
    }
    size_t name_size = tn_load_u16(rest.data + 8);
    size_t memo_size = tn_load_u32(rest.data + 10);
    size_t left = rest.size - TN_JOURNAL_MEMO_HEAD_SIZE;
    if (name_size > left || memo_size > left - name_size) {
        return false;
    }
    const unsigned char *name = rest.data + TN_JOURNAL_MEMO_HEAD_SIZE;
    record->place = tn_load_u64(rest.data);
    record->name = (struct tn_bytes){name, name_size};
    record->memo = (struct tn_bytes){name + name_size, memo_size};
    record->size = TN_JOURNAL_MEMO_HEAD_SIZE + name_size + memo_size;
    return true;
}

/* The offset of a sender's record, or the size. */
static size_t find(const struct tn_journal_senders *senders, struct tn_bytes name,
                   struct record *record)
{
    size_t at = 0;
    while (at < senders->size) {
        bool whole = record_at((struct tn_bytes){senders->data + at, senders->size - at}, record);
        TN_CHECK(whole);
        if (tn_bytes_equal(record->name, name)) {
            return at;
        }
        at += record->size;
    }
    return at;
}

bool tn_journal_senders_find(const struct tn_journal_senders *senders, struct tn_bytes name,
                             struct tn_bytes *memo, uint64_t *place)
{
    struct record record;
    if (find(senders, name, &record) == senders->size) {
        return false;
    }
    *memo = record.memo;
    *place = record.place;
    return true;
}

bool tn_journal_senders_fits(const struct tn_journal_senders *senders, struct tn_bytes name,
                             struct tn_bytes memo)
{
    return senders->count_max > 0 && name.size <= TN_JOURNAL_NAME_MAX &&
           name.size <= senders->bytes_max && memo.size <= senders->bytes_max - name.size;
}

static void remove_at(struct tn_journal_senders *senders, size_t at, const struct record *record)
{
    senders->count--;
    senders->bytes -= (uint32_t)(record->name.size + record->memo.size);
    senders->size -= record->size;
    memmove(senders->data + at, senders->data + at + record->size, senders->size - at);
}

/* "http" of "http/gw-7", "mqtt" of "mqtt:box@broker:1883". */
static struct tn_bytes kind_of(struct tn_bytes name)
{
    size_t size = 0;
    while (size < name.size && name.data[size] != '/' && name.data[size] != ':') {
        size++;
    }
    return (struct tn_bytes){name.data, size};
}

/* Of the newcomer's kind, or, when there is none, of all. */
static void remove_oldest(struct tn_journal_senders *senders, struct tn_bytes newcomer)
{
    struct record record;
    size_t at = 0;
    bool found = false;
    while (!found && at < senders->size) {
        bool whole = record_at((struct tn_bytes){senders->data + at, senders->size - at}, &record);
        TN_CHECK(whole);
        found = tn_bytes_equal(kind_of(record.name), kind_of(newcomer));
        at += found ? 0 : record.size;
    }
    if (!found) {
        at = 0;
        bool whole = record_at((struct tn_bytes){senders->data, senders->size}, &record);
        TN_CHECK(whole);
    }
    remove_at(senders, at, &record);
}

static void add(struct tn_journal_senders *senders, struct tn_bytes name, struct tn_bytes memo,
                uint64_t place)
{
    unsigned char *to = senders->data + senders->size;
    tn_store_u64(to, place);
    tn_store_u16(to + 8, (uint16_t)name.size);
    tn_store_u32(to + 10, (uint32_t)memo.size);
    to += TN_JOURNAL_MEMO_HEAD_SIZE;
    if (name.size > 0) {
        memcpy(to, name.data, name.size);
    }
    if (memo.size > 0) {
        memcpy(to + name.size, memo.data, memo.size);
    }
    senders->count++;
    senders->bytes += (uint32_t)(name.size + memo.size);
    senders->size += TN_JOURNAL_MEMO_HEAD_SIZE + name.size + memo.size;
}

void tn_journal_senders_put(struct tn_journal_senders *senders, struct tn_bytes name,
                            struct tn_bytes memo, uint64_t place)
{
    struct record record;
    size_t at = find(senders, name, &record);
    if (at < senders->size) {
        remove_at(senders, at, &record);
    }
    if (!tn_journal_senders_fits(senders, name, memo)) {
        return;
    }
    while (senders->count == senders->count_max ||
           senders->bytes_max - senders->bytes < name.size + memo.size) {
        remove_oldest(senders, name);
    }
    add(senders, name, memo, place);
}

bool tn_journal_senders_load(struct tn_journal_senders *senders, struct tn_bytes bytes)
{
    struct record record;
    while (bytes.size > 0) {
        if (!record_at(bytes, &record)) {
            return false;
        }
        tn_journal_senders_put(senders, record.name, record.memo, record.place);
        bytes = (struct tn_bytes){bytes.data + record.size, bytes.size - record.size};
    }
    return true;
}
