#include "ingest/journal_bytes.h"

#include "base/check.h"
#include "base/hash.h"

enum {
    VERSION = 1,
    HEAD_CHECKED = 12, /* the checksum is of what follows it */
    BLOCK_CHECKED = 8,
    BLOCK_MAGIC = 0x6b6c626a, /* "jblk" */
    ENTRY_HEAD_SIZE = 5,      /* bytes behind it, parts */
    PART_HEAD_SIZE = 7,       /* kind, bytes of the name, of the data */
};

static const unsigned char magic[8] = {'t', 'a', 'r', 'n', 'j', 'r', 'n', 'l'};

/* ---- the head of a file ---- */

static uint32_t head_crc(const unsigned char bytes[TN_JOURNAL_HEAD_SIZE])
{
    return tn_hash_crc32(
        (struct tn_bytes){bytes + HEAD_CHECKED, TN_JOURNAL_HEAD_SIZE - HEAD_CHECKED});
}

void tn_journal_head_encode(const struct tn_journal_head *head,
                            unsigned char bytes[TN_JOURNAL_HEAD_SIZE])
{
    memcpy(bytes, magic, sizeof magic);
    tn_store_u32(bytes + 12, VERSION);
    tn_store_u32(bytes + 16, head->block_size);
    tn_store_u32(bytes + 20, head->block_count);
    tn_store_u32(bytes + 24, head->memos_size);
    tn_store_u32(bytes + 28, head->memos_crc);
    tn_store_u64(bytes + 32, head->first);
    tn_store_u64(bytes + 40, head->after);
    memcpy(bytes + 48, head->identity, TN_JOURNAL_IDENTITY_SIZE);
    tn_store_u32(bytes + 8, head_crc(bytes));
}

static bool is_sound(const struct tn_journal_head *head)
{
    return head->block_size > 0 && head->block_size <= TN_JOURNAL_BLOCK_MAX &&
           head->block_count <= 1 && head->after <= head->first &&
           head->first <= TN_JOURNAL_PLACE_MAX &&
           memchr(head->identity, 0, sizeof head->identity) != NULL;
}

tn_rc tn_journal_head_decode(const unsigned char bytes[TN_JOURNAL_HEAD_SIZE],
                             struct tn_journal_head *head, struct tn_err *err)
{
    if (memcmp(bytes, magic, sizeof magic) != 0) {
        return tn_err_set(err, TN_CORRUPT, 0, "byte 0: no head of a journal's file");
    }
    uint32_t version = tn_load_u32(bytes + 12);
    bool whole = tn_load_u32(bytes + 8) == head_crc(bytes);
    if (version != VERSION && whole) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "version %u of the journal", version);
    }
    struct tn_journal_head got = {
        .block_size = tn_load_u32(bytes + 16),
        .block_count = tn_load_u32(bytes + 20),
        .memos_size = tn_load_u32(bytes + 24),
        .memos_crc = tn_load_u32(bytes + 28),
        .first = tn_load_u64(bytes + 32),
        .after = tn_load_u64(bytes + 40),
    };
    memcpy(got.identity, bytes + 48, sizeof got.identity);
    if (version != VERSION || !whole || !is_sound(&got)) {
        return tn_err_set(err, TN_CORRUPT, 0, "byte 0: the head is damaged");
    }
    *head = got;
    return TN_OK;
}

/* ---- the head of a block ---- */

static uint32_t block_crc(const unsigned char *bytes, const char *identity)
{
    unsigned char all[TN_JOURNAL_IDENTITY_SIZE + TN_JOURNAL_BLOCK_HEAD_SIZE - BLOCK_CHECKED];
    memcpy(all, identity, TN_JOURNAL_IDENTITY_SIZE);
    memcpy(all + TN_JOURNAL_IDENTITY_SIZE, bytes + BLOCK_CHECKED,
           TN_JOURNAL_BLOCK_HEAD_SIZE - BLOCK_CHECKED);
    return tn_hash_crc32((struct tn_bytes){all, sizeof all});
}

void tn_journal_block_head_encode(const struct tn_journal_block_head *block, const char *identity,
                                  unsigned char bytes[TN_JOURNAL_BLOCK_HEAD_SIZE])
{
    tn_store_u32(bytes, BLOCK_MAGIC);
    tn_store_u32(bytes + 8, block->stored_size);
    tn_store_u32(bytes + 12, block->raw_size);
    tn_store_u32(bytes + 16, block->crc);
    tn_store_u32(bytes + 20, block->count);
    tn_store_u64(bytes + 24, block->after);
    tn_store_u64(bytes + 32, block->first);
    tn_store_u32(bytes + 4, block_crc(bytes, identity));
}

bool tn_journal_block_head_decode(const unsigned char bytes[TN_JOURNAL_BLOCK_HEAD_SIZE],
                                  const char *identity, struct tn_journal_block_head *block)
{
    if (tn_load_u32(bytes) != BLOCK_MAGIC || tn_load_u32(bytes + 4) != block_crc(bytes, identity)) {
        return false;
    }
    *block = (struct tn_journal_block_head){
        .stored_size = tn_load_u32(bytes + 8),
        .raw_size = tn_load_u32(bytes + 12),
        .crc = tn_load_u32(bytes + 16),
        .count = tn_load_u32(bytes + 20),
        .after = tn_load_u64(bytes + 24),
        .first = tn_load_u64(bytes + 32),
    };
    return block->stored_size > 0 && block->stored_size <= block->raw_size &&
           block->raw_size <= TN_JOURNAL_BLOCK_MAX && block->count > 0 &&
           block->count <= block->raw_size / ENTRY_HEAD_SIZE && block->after <= block->first &&
           block->first <= TN_JOURNAL_PLACE_MAX;
}

/* ---- entries ---- */

uint64_t tn_journal_entry_size(const struct tn_journal_part *parts, uint32_t count)
{
    uint64_t size = ENTRY_HEAD_SIZE;
    for (uint32_t i = 0; i < count; i++) {
        if (parts[i].name.size > TN_JOURNAL_NAME_MAX || parts[i].data.size > TN_JOURNAL_BLOCK_MAX) {
            return UINT64_MAX;
        }
        size += PART_HEAD_SIZE + parts[i].name.size + parts[i].data.size;
    }
    return size;
}

static unsigned char *put_bytes(unsigned char *to, struct tn_bytes bytes)
{
    if (bytes.size > 0) {
        memcpy(to, bytes.data, bytes.size);
    }
    return to + bytes.size;
}

void tn_journal_entry_encode(const struct tn_journal_part *parts, uint32_t count, unsigned char *to)
{
    unsigned char *begin = to;
    to[4] = (unsigned char)count;
    to += ENTRY_HEAD_SIZE;
    for (uint32_t i = 0; i < count; i++) {
        to[0] = (unsigned char)parts[i].kind;
        tn_store_u16(to + 1, (uint16_t)parts[i].name.size);
        tn_store_u32(to + 3, (uint32_t)parts[i].data.size);
        to = put_bytes(to + PART_HEAD_SIZE, parts[i].name);
        to = put_bytes(to, parts[i].data);
    }
    tn_store_u32(begin, (uint32_t)(to - begin - 4));
}

static bool next_part(struct tn_bytes *rest, struct tn_journal_part *part)
{
    if (rest->size < PART_HEAD_SIZE) {
        return false;
    }
    size_t name_size = tn_load_u16(rest->data + 1);
    size_t data_size = tn_load_u32(rest->data + 3);
    size_t left = rest->size - PART_HEAD_SIZE;
    bool known = rest->data[0] >= TN_JOURNAL_ROWS && rest->data[0] <= TN_JOURNAL_MORE;
    if (!known || name_size > left || data_size > left - name_size) {
        return false;
    }
    const unsigned char *name = rest->data + PART_HEAD_SIZE;
    *part = (struct tn_journal_part){
        (enum tn_journal_kind)rest->data[0], {name, name_size}, {name + name_size, data_size}};
    *rest = (struct tn_bytes){part->data.data + data_size, left - name_size - data_size};
    return true;
}

bool tn_journal_entry_next(struct tn_bytes *rest,
                           struct tn_journal_part parts[TN_JOURNAL_PARTS_MAX], uint32_t *count)
{
    if (rest->size < ENTRY_HEAD_SIZE) {
        return false;
    }
    size_t size = tn_load_u32(rest->data);
    uint32_t part_count = rest->data[4];
    if (size > rest->size - 4 || size < 1 || part_count == 0 || part_count > TN_JOURNAL_PARTS_MAX) {
        return false;
    }
    struct tn_bytes entry = {rest->data + ENTRY_HEAD_SIZE, size - 1};
    for (uint32_t i = 0; i < part_count; i++) {
        if (!next_part(&entry, &parts[i])) {
            return false;
        }
    }
    *rest = (struct tn_bytes){rest->data + 4 + size, rest->size - 4 - size};
    *count = part_count;
    return entry.size == 0;
}
