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

bool tn_journal_senders_kept(struct tn_bytes name)
{
    static const char kept[] = TN_JOURNAL_KEPT;
    return name.size >= sizeof kept - 1 && memcmp(name.data, kept, sizeof kept - 1) == 0;
}

/* The next one from `at` on that may go, or the size. */
static size_t find_loose(const struct tn_journal_senders *senders, size_t at, struct record *record)
{
    while (at < senders->size) {
        bool whole = record_at((struct tn_bytes){senders->data + at, senders->size - at}, record);
        TN_CHECK(whole);
        if (!tn_journal_senders_kept(record->name)) {
            return at;
        }
        at += record->size;
    }
    return at;
}

/* What is kept, but for the one of this name. */
static void count_kept(const struct tn_journal_senders *senders, struct tn_bytes name,
                       uint32_t *count, size_t *bytes)
{
    struct record record;
    *count = 0;
    *bytes = 0;
    for (size_t at = 0; at < senders->size; at += record.size) {
        bool whole = record_at((struct tn_bytes){senders->data + at, senders->size - at}, &record);
        TN_CHECK(whole);
        if (tn_journal_senders_kept(record.name) && !tn_bytes_equal(record.name, name)) {
            *count += 1;
            *bytes += record.name.size + record.memo.size;
        }
    }
}

bool tn_journal_senders_fits(const struct tn_journal_senders *senders, struct tn_bytes name,
                             struct tn_bytes memo)
{
    uint32_t count;
    size_t bytes;
    count_kept(senders, name, &count, &bytes);
    return senders->count_max > count && name.size <= TN_JOURNAL_NAME_MAX &&
           name.size <= senders->bytes_max - bytes &&
           memo.size <= senders->bytes_max - bytes - name.size;
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

/* Of the newcomer's kind, or, when there is none, of all that may go. */
static void remove_oldest(struct tn_journal_senders *senders, struct tn_bytes newcomer)
{
    struct record record;
    size_t at = find_loose(senders, 0, &record);
    while (at < senders->size && !tn_bytes_equal(kind_of(record.name), kind_of(newcomer))) {
        at = find_loose(senders, at + record.size, &record);
    }
    at = at < senders->size ? at : find_loose(senders, 0, &record);
    TN_CHECK(at < senders->size); /* it fits beside what is kept */
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

size_t tn_journal_senders_grown(const struct tn_journal_senders *senders, struct tn_bytes name,
                                struct tn_bytes more)
{
    struct record record;
    bool found = find(senders, name, &record) < senders->size;
    return more.size + (found ? record.memo.size : 0);
}

void tn_journal_senders_more(struct tn_journal_senders *senders, struct tn_bytes name,
                             struct tn_bytes more, uint64_t place)
{
    struct record record;
    size_t at = find(senders, name, &record);
    if (at == senders->size) {
        tn_journal_senders_put(senders, name, more, place);
        return;
    }
    if (record.place >= place) { /* a head has what its first block brings */
        return;
    }
    struct tn_bytes grown = {NULL, record.memo.size + more.size};
    if (!tn_journal_senders_fits(senders, name, grown)) {
        remove_at(senders, at, &record);
        return;
    }
    while (senders->bytes_max - senders->bytes < more.size) {
        remove_oldest(senders, name);
    }
    at = find(senders, name, &record);
    TN_CHECK(at < senders->size);
    unsigned char *behind = senders->data + at + record.size;
    memmove(behind + more.size, behind, senders->size - at - record.size);
    memcpy(behind, more.data, more.size);
    tn_store_u64(senders->data + at, place);
    tn_store_u32(senders->data + at + 10, (uint32_t)grown.size);
    senders->bytes += (uint32_t)more.size;
    senders->size += more.size;
}

void tn_journal_senders_take(struct tn_journal_senders *senders, const struct tn_journal_part *part,
                             uint64_t place)
{
    if (part->kind == TN_JOURNAL_MEMO) {
        tn_journal_senders_put(senders, part->name, part->data, place);
    } else if (part->kind == TN_JOURNAL_MORE) {
        tn_journal_senders_more(senders, part->name, part->data, place);
    }
}

bool tn_journal_senders_load(struct tn_journal_senders *senders, struct tn_bytes bytes,
                             bool (*wanted)(void *user, struct tn_bytes name), void *user)
{
    struct record record;
    while (bytes.size > 0) {
        if (!record_at(bytes, &record)) {
            return false;
        }
        if (!wanted || !tn_journal_senders_kept(record.name) || wanted(user, record.name)) {
            tn_journal_senders_put(senders, record.name, record.memo, record.place);
        }
        bytes = (struct tn_bytes){bytes.data + record.size, bytes.size - record.size};
    }
    return true;
}
