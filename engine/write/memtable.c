#include "write/memtable.h"

#include "base/check.h"

enum { ROW_HEAD_SIZE = 16, PAGE_HEAD_SIZE = 8, ROW_PART = 8, SPACE_MASK = (1 << 30) - 1 };

/* How a row lies in a row page; the packed row follows. Its place keeps its size when a shorter
 * version comes, so a key whose rows grow and shrink takes one place of the largest. */
struct entry_row {
    int64_t sequence;
    uint32_t size;
    uint32_t kind : 2;
    uint32_t space : 30; /* of head and row, in 8-byte steps */
};
_Static_assert(sizeof(struct entry_row) == ROW_HEAD_SIZE, "rows follow their head without a gap");
_Static_assert(sizeof(struct tn_memtable_entry) == 16, "16 bytes a row");

static uint32_t log2_of(uint32_t value)
{
    uint32_t shift = 0;
    while (value > 1) {
        value >>= 1;
        shift++;
    }
    return shift;
}

void tn_memtable_init(struct tn_memtable *memtable, struct tn_pool *pool,
                      const struct tn_order *order, enum tn_memtable_keeps keeps)
{
    *memtable = (struct tn_memtable){
        .pool = pool,
        .order = order,
        .keeps = keeps,
        .index_shift = log2_of(pool->block_size / (uint32_t)sizeof(struct tn_memtable_entry)),
        .hash_shift = log2_of(pool->block_size / (uint32_t)sizeof(uint32_t)),
        .min_sequence = INT64_MAX,
        .max_sequence = INT64_MIN,
    };
}

static struct tn_memtable_entry *entry_at(const struct tn_memtable *m, uint32_t i)
{
    return &m->index_pages[i >> m->index_shift][i & ((1u << m->index_shift) - 1)];
}

static uint32_t *slot_at(const struct tn_memtable *m, uint32_t i)
{
    return &m->hash_pages[i >> m->hash_shift][i & ((1u << m->hash_shift) - 1)];
}

static struct entry_row *row_head(const struct tn_memtable *m,
                                  const struct tn_memtable_entry *entry)
{
    return (struct entry_row *)(void *)(m->pool->base + (size_t)entry->where * 8);
}

static struct tn_row row_of(const struct tn_memtable *m, const struct tn_memtable_entry *entry)
{
    const struct entry_row *head = row_head(m, entry);
    return (struct tn_row){(const unsigned char *)(head + 1), head->size};
}

/* Rows lie in order of arrival: whoever visits them in key order fetches the one that comes some
 * steps later. (A function that only prefetched would be dropped as one without effect.) */
static const unsigned char *row_ahead(const struct tn_memtable *m, uint32_t i, uint32_t end)
{
    enum { STEPS = 8 };
    return (const unsigned char *)row_head(m, entry_at(m, end - i > STEPS ? i + STEPS : i));
}

/* ---- rows ---- */

/* Bytes of a place for it. */
static uint32_t row_space(uint32_t size)
{
    return (ROW_HEAD_SIZE + size + 7) & ~7u;
}

static bool open_row_page(struct tn_memtable *m, uint32_t space)
{
    uint32_t blocks = (space + PAGE_HEAD_SIZE + m->pool->block_size - 1) / m->pool->block_size;
    unsigned char *page = blocks == 1 ? tn_pool_take(m->pool) : tn_pool_take_run(m->pool, blocks);
    if (!page) {
        return false;
    }
    memcpy(page, &m->row_pages, sizeof m->row_pages);
    m->row_pages = page;
    m->row_page_used = PAGE_HEAD_SIZE;
    m->row_page_size = blocks * m->pool->block_size;
    m->pages += blocks;
    return true;
}

/* Room for a row at the end of the newest row page, or NULL. */
static struct entry_row *take_row(struct tn_memtable *m, uint32_t size)
{
    uint32_t space = row_space(size);
    if (m->row_page_size - m->row_page_used < space && !open_row_page(m, space)) {
        return NULL;
    }
    struct entry_row *head = (struct entry_row *)(void *)(m->row_pages + m->row_page_used);
    m->row_page_used += space;
    head->space = space / 8 & SPACE_MASK;
    return head;
}

static void store_row(struct entry_row *head, struct tn_row row, enum tn_row_kind kind,
                      int64_t sequence)
{
    head->sequence = sequence;
    head->size = row.size;
    head->kind = (uint32_t)kind & 3;
    memcpy(head + 1, row.data, row.size);
}

static uint32_t where_of(const struct tn_memtable *m, const struct entry_row *head)
{
    return (uint32_t)(((const unsigned char *)head - m->pool->base) / 8);
}

/* ---- hash ---- */

static void hash_insert(struct tn_memtable *m, uint32_t number)
{
    uint32_t mask = (m->hash_page_count << m->hash_shift) - 1;
    uint32_t i = entry_at(m, number)->hash & mask;
    while (*slot_at(m, i) != 0) {
        i = (i + 1) & mask;
    }
    *slot_at(m, i) = number + 1;
}

/* Doubles the hash pages, and puts every row in again. */
static bool hash_grow(struct tn_memtable *m)
{
    uint32_t before = m->hash_page_count;
    uint32_t after = before == 0 ? 1 : 2 * before;
    if (after > TN_MEMTABLE_PAGES_MAX || tn_pool_free(m->pool) < after - before) {
        return false;
    }
    for (uint32_t i = before; i < after; i++) {
        m->hash_pages[i] = tn_pool_take(m->pool);
        TN_CHECK(m->hash_pages[i]);
    }
    m->hash_page_count = after;
    m->pages += after - before;
    for (uint32_t i = 0; i < after; i++) {
        memset(m->hash_pages[i], 0, m->pool->block_size);
    }
    for (uint32_t i = 0; i < m->count; i++) {
        hash_insert(m, i);
    }
    return true;
}

static struct tn_memtable_entry *hash_find(const struct tn_memtable *m, uint64_t prefix,
                                           uint32_t hash, struct tn_row row)
{
    if (m->hash_page_count == 0) {
        return NULL;
    }
    const struct tn_order *order = m->order;
    uint32_t mask = (m->hash_page_count << m->hash_shift) - 1;
    for (uint32_t i = hash & mask;; i = (i + 1) & mask) {
        uint32_t number = *slot_at(m, i);
        if (number == 0) {
            return NULL;
        }
        struct tn_memtable_entry *entry = entry_at(m, number - 1);
        if (entry->hash == hash && entry->prefix == prefix &&
            (order->prefix_decides ||
             tn_row_compare(order->layout, order->keys, row_of(m, entry), row) == 0)) {
            return entry;
        }
    }
}

/* ---- put ---- */

static bool index_has_room(struct tn_memtable *m)
{
    if (m->count < m->index_page_count << m->index_shift) {
        return true;
    }
    if (m->index_page_count == TN_MEMTABLE_PAGES_MAX) {
        return false;
    }
    struct tn_memtable_entry *page = tn_pool_take(m->pool);
    if (!page) {
        return false;
    }
    m->index_pages[m->index_page_count++] = page;
    m->pages++;
    return true;
}

static bool hash_has_room(struct tn_memtable *m)
{
    uint32_t slots = m->hash_page_count << m->hash_shift;
    return (m->count + 1) * 4 <= slots * 3 || hash_grow(m);
}

static void count_sequence(struct tn_memtable *m, int64_t sequence)
{
    m->min_sequence = sequence < m->min_sequence ? sequence : m->min_sequence;
    m->max_sequence = sequence > m->max_sequence ? sequence : m->max_sequence;
}

/* Of a row that is kept: one that versions were folded into may be longer than any that came. */
static void count_size(struct tn_memtable *m, struct tn_row row)
{
    m->row_size_max = row.size > m->row_size_max ? row.size : m->row_size_max;
}

static tn_rc full(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "no page is free for another row");
}

static tn_rc put_new(struct tn_memtable *m, uint64_t prefix, uint32_t hash, struct tn_row row,
                     enum tn_row_kind kind, int64_t sequence, struct tn_err *err)
{
    bool hashed = m->order->keys.count > 0 && m->keeps != TN_MEMTABLE_ALL;
    if (!index_has_room(m) || (hashed && !hash_has_room(m))) {
        return full(err);
    }
    struct entry_row *head = take_row(m, row.size);
    if (!head) {
        return full(err);
    }
    store_row(head, row, kind, sequence);
    count_size(m, row);
    *entry_at(m, m->count) = (struct tn_memtable_entry){prefix, where_of(m, head), hash};
    if (hashed) {
        hash_insert(m, m->count);
    }
    m->count++;
    return TN_OK;
}

static tn_rc replace_row(struct tn_memtable *m, struct tn_memtable_entry *entry, struct tn_row row,
                         enum tn_row_kind kind, int64_t sequence, struct tn_err *err)
{
    struct entry_row *head = row_head(m, entry);
    if (row_space(row.size) / 8 > head->space) {
        head = take_row(m, row.size);
        if (!head) {
            return full(err);
        }
        entry->where = where_of(m, head);
    }
    store_row(head, row, kind, sequence);
    count_size(m, row);
    return TN_OK;
}

/* The row that is there and the one that came become one, the older by sequence fields first. */
static tn_rc fold_row(struct tn_memtable *m, struct tn_memtable_entry *entry, struct tn_kv came,
                      struct tn_err *err)
{
    const struct entry_row *head = row_head(m, entry);
    struct tn_kv there = {.row = row_of(m, entry),
                          .sequence = head->sequence,
                          .prefix = entry->prefix,
                          .kind = (enum tn_row_kind)head->kind,
                          .level = -1};
    bool late = tn_kv_compare_sequence_fields(m->order, came.row, there.row) < 0;
    struct tn_kv folded;
    tn_reducer_begin(m->reducer);
    tn_rc rc = tn_reducer_add(m->reducer, late ? &came : &there, err);
    if (rc == TN_OK) {
        rc = tn_reducer_add(m->reducer, late ? &there : &came, err);
    }
    if (rc == TN_OK) {
        rc = tn_reducer_end(m->reducer, &folded, err);
    }
    if (rc != TN_OK) {
        return rc == TN_ABSENT ? TN_OK : rc; /* nothing of either counts: it stays as it is */
    }
    return replace_row(m, entry, folded.row, folded.kind, folded.sequence, err);
}

/* A version of a key that is there: the newer by sequence fields stays, the later arrival on a tie.
 */
static tn_rc put_again(struct tn_memtable *m, struct tn_memtable_entry *entry, struct tn_kv came,
                       struct tn_err *err)
{
    if (m->keeps == TN_MEMTABLE_FOLDED) {
        return fold_row(m, entry, came, err);
    }
    if (tn_kv_compare_sequence_fields(m->order, came.row, row_of(m, entry)) < 0) {
        return TN_OK;
    }
    return replace_row(m, entry, came.row, came.kind, came.sequence, err);
}

tn_rc tn_memtable_put(struct tn_memtable *memtable, struct tn_row row, enum tn_row_kind kind,
                      int64_t sequence, struct tn_err *err)
{
    TN_CHECK(!memtable->frozen);
    size_t part = (size_t)memtable->pool->block_size * memtable->pool->block_count;
    if (row.size > part / ROW_PART) {
        return tn_err_set(err, TN_INVALID, 0, "a row of %u bytes; at most %zu fit the memory",
                          row.size, part / ROW_PART);
    }
    const struct tn_order *order = memtable->order;
    tn_rc rc;
    if (order->keys.count == 0) {
        rc = put_new(memtable, 0, 0, row, kind, sequence, err);
    } else if (memtable->keeps == TN_MEMTABLE_ALL) {
        uint64_t prefix = tn_row_prefix(order->layout, order->keys, row);
        rc = put_new(memtable, prefix, 0, row, kind, sequence, err);
    } else {
        uint64_t prefix = tn_row_prefix(order->layout, order->keys, row);
        uint64_t wide = tn_row_hash(order->layout, order->keys, row);
        uint32_t hash = (uint32_t)(wide ^ wide >> 32);
        struct tn_memtable_entry *entry = hash_find(memtable, prefix, hash, row);
        struct tn_kv came = {
            .row = row, .sequence = sequence, .prefix = prefix, .kind = kind, .level = -1};
        rc = entry ? put_again(memtable, entry, came, err)
                   : put_new(memtable, prefix, hash, row, kind, sequence, err);
    }
    if (rc == TN_OK) {
        count_sequence(memtable, sequence);
    }
    return rc;
}

/* ---- freeze, sort, drop ---- */

static void give_hash_pages(struct tn_memtable *m)
{
    for (uint32_t i = 0; i < m->hash_page_count; i++) {
        tn_pool_give(m->pool, m->hash_pages[i]);
    }
    m->pages -= m->hash_page_count;
    m->hash_page_count = 0;
}

void tn_memtable_freeze(struct tn_memtable *memtable)
{
    TN_CHECK(!memtable->frozen);
    give_hash_pages(memtable);
    memtable->frozen = true;
}

void tn_memtable_drop(struct tn_memtable *memtable)
{
    give_hash_pages(memtable);
    for (uint32_t i = 0; i < memtable->index_page_count; i++) {
        tn_pool_give(memtable->pool, memtable->index_pages[i]);
    }
    while (memtable->row_pages) {
        unsigned char *page = memtable->row_pages;
        memcpy(&memtable->row_pages, page, sizeof memtable->row_pages);
        tn_pool_give(memtable->pool, page);
    }
    tn_memtable_init(memtable, memtable->pool, memtable->order, memtable->keeps);
}

/* ---- sort ----
 *
 * By bytes from the key's first on, in place (an "American flag"): a range is dealt out by the
 * first byte in which its entries differ, then each part by the bytes behind. When 8 bytes are used
 * up the rows' next 8 take the prefix's place, and it comes back when the part is done. So rows,
 * which lie scattered, are touched once in 8 bytes of key, and no order of arrival is slow. The
 * versions of one key are dealt out by their sequence numbers in the same way. Small parts, keys
 * that begin alike for long, and versions that sequence fields order are compared as rows.
 */

enum {
    WORDS_MAX = 5,
    SEQUENCE_WORD = WORDS_MAX, /* behind the key's: of versions of one key */
    PARTS_MAX = 8 * (WORDS_MAX + 1),
    SMALL = 12,
    BYTE_VALUES = 256,
};

struct part {
    uint64_t prefix; /* of all its entries, when `word` is another than that of the part around */
    uint32_t low;
    uint32_t high;
    uint32_t at; /* entries before this one are in order */
    uint32_t word;
    uint32_t shift; /* of the byte that it was dealt out by */
};

/* Of two versions of one key. */
static bool older(const struct tn_memtable *m, const struct tn_memtable_entry *a,
                  const struct tn_memtable_entry *b)
{
    int c = tn_kv_compare_sequence_fields(m->order, row_of(m, a), row_of(m, b));
    return c != 0 ? c < 0 : row_head(m, a)->sequence < row_head(m, b)->sequence;
}

static bool before(const struct tn_memtable *m, const struct tn_memtable_entry *a,
                   const struct tn_memtable_entry *b)
{
    if (a->prefix != b->prefix) {
        return a->prefix < b->prefix;
    }
    const struct tn_order *order = m->order;
    int c = 0;
    if (!order->prefix_decides) {
        c = tn_row_compare(order->layout, order->keys, row_of(m, a), row_of(m, b));
    }
    return c != 0 ? c < 0 : m->keeps == TN_MEMTABLE_ALL && older(m, a, b);
}

static void insertion_sort(struct tn_memtable *m, uint32_t low, uint32_t high)
{
    for (uint32_t i = low + 1; i < high; i++) {
        struct tn_memtable_entry moving = *entry_at(m, i);
        uint32_t at = i;
        for (; at > low && before(m, &moving, entry_at(m, at - 1)); at--) {
            *entry_at(m, at) = *entry_at(m, at - 1);
        }
        *entry_at(m, at) = moving;
    }
}

/* Puts `moving` where it belongs in the heap of `count` entries from `low` on, from `at` down. */
static void sift(struct tn_memtable *m, uint32_t low, uint32_t count, uint32_t at,
                 struct tn_memtable_entry moving)
{
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= count) {
            break;
        }
        if (child + 1 < count &&
            before(m, entry_at(m, low + child), entry_at(m, low + child + 1))) {
            child++;
        }
        if (!before(m, &moving, entry_at(m, low + child))) {
            break;
        }
        *entry_at(m, low + at) = *entry_at(m, low + child);
        at = child;
    }
    *entry_at(m, low + at) = moving;
}

static void heap_sort(struct tn_memtable *m, uint32_t low, uint32_t high)
{
    uint32_t count = high - low;
    for (uint32_t i = count / 2; i > 0; i--) {
        sift(m, low, count, i - 1, *entry_at(m, low + i - 1));
    }
    for (uint32_t end = count; end > 1; end--) {
        struct tn_memtable_entry last = *entry_at(m, low + end - 1);
        *entry_at(m, low + end - 1) = *entry_at(m, low);
        sift(m, low, end - 1, 0, last);
    }
}

static uint32_t byte_of(const struct tn_memtable_entry *entry, uint32_t shift)
{
    return (uint32_t)(entry->prefix >> shift) & (BYTE_VALUES - 1);
}

/* The shift of the first byte that is not the same in all entries; false when none is. */
static bool find_byte(const struct tn_memtable *m, uint32_t low, uint32_t high, uint32_t *shift)
{
    uint64_t first = entry_at(m, low)->prefix;
    uint64_t differ = 0;
    for (uint32_t i = low + 1; i < high; i++) {
        differ |= entry_at(m, i)->prefix ^ first;
    }
    for (*shift = 56; differ != 0 && differ >> *shift == 0; *shift -= 8) {
    }
    return differ != 0;
}

/* Orders a range by one byte: what lies at a place goes to the end of its own part's free places,
 * and so on with what lay there, until something comes that belongs here. */
static void deal(struct tn_memtable *m, uint32_t low, uint32_t high, uint32_t shift)
{
    uint32_t ends[BYTE_VALUES] = {0}; /* of the free places of each part */
    for (uint32_t i = low; i < high; i++) {
        ends[byte_of(entry_at(m, i), shift)]++;
    }
    uint32_t end = low;
    for (uint32_t value = 0; value < BYTE_VALUES; value++) {
        end += ends[value];
        ends[value] = end;
    }
    for (uint32_t i = low; i < high; i++) {
        struct tn_memtable_entry moving = *entry_at(m, i);
        uint32_t *free_end = &ends[byte_of(&moving, shift)];
        while (*free_end > i && --*free_end != i) {
            struct tn_memtable_entry *place = entry_at(m, *free_end);
            struct tn_memtable_entry kept = *place;
            *place = moving;
            moving = kept;
            free_end = &ends[byte_of(&moving, shift)];
        }
        *entry_at(m, i) = moving;
    }
}

static void set_prefixes(struct tn_memtable *m, const struct part *part)
{
    for (uint32_t i = part->low; i < part->high; i++) {
        entry_at(m, i)->prefix = part->prefix;
    }
}

static void load_words(struct tn_memtable *m, const struct part *part)
{
    const struct tn_order *order = m->order;
    for (uint32_t i = part->low; i < part->high; i++) {
        struct tn_memtable_entry *entry = entry_at(m, i);
        __builtin_prefetch(row_ahead(m, i, part->high));
        entry->prefix = tn_row_key_word(order->layout, order->keys, row_of(m, entry), part->word);
    }
}

/* Of a part whose words are the same so far: all its rows have one key. */
static bool one_key(const struct tn_memtable *m, const struct part *part)
{
    const struct tn_order *order = m->order;
    struct tn_row first = row_of(m, entry_at(m, part->low));
    uint32_t i = order->prefix_decides ? part->high : part->low + 1;
    while (i < part->high &&
           tn_row_compare(order->layout, order->keys, first, row_of(m, entry_at(m, i))) == 0) {
        __builtin_prefetch(row_ahead(m, i++, part->high));
    }
    return i == part->high;
}

static void load_sequences(struct tn_memtable *m, const struct part *part)
{
    for (uint32_t i = part->low; i < part->high; i++) {
        struct tn_memtable_entry *entry = entry_at(m, i);
        __builtin_prefetch(row_ahead(m, i, part->high));
        entry->prefix = (uint64_t)row_head(m, entry)->sequence ^ UINT64_C(1) << 63;
    }
}

/* The next word that may tell a part's entries apart, which the one at hand doesn't. */
static bool next_word(struct tn_memtable *m, struct part *part)
{
    bool by_sequence = m->keeps == TN_MEMTABLE_ALL && m->order->sequence_fields.count == 0;
    if (part->word == SEQUENCE_WORD) {
        return false;
    }
    if (by_sequence && one_key(m, part)) {
        part->word = SEQUENCE_WORD;
        load_sequences(m, part);
        return true;
    }
    if (m->order->prefix_decides || part->word + 1 == WORDS_MAX) {
        return false;
    }
    part->word++;
    load_words(m, part);
    return true;
}

/* Deals a part out, by this word or the first in which its entries differ. False when it is in
 * order already. */
static bool begin_part(struct tn_memtable *m, struct part *part)
{
    part->prefix = entry_at(m, part->low)->prefix;
    bool differ = find_byte(m, part->low, part->high, &part->shift);
    while (!differ && next_word(m, part)) {
        differ = find_byte(m, part->low, part->high, &part->shift);
    }
    if (differ) {
        deal(m, part->low, part->high, part->shift);
    } else {
        set_prefixes(m, part);
        heap_sort(m, part->low, part->high);
    }
    return differ;
}

/* The end of the entries from part->at on that share the byte that it was dealt out by. */
static uint32_t same_byte(const struct tn_memtable *m, const struct part *part)
{
    uint32_t value = byte_of(entry_at(m, part->at), part->shift);
    uint32_t end = part->at + 1;
    while (end < part->high && byte_of(entry_at(m, end), part->shift) == value) {
        end++;
    }
    return end;
}

static void sort_parts(struct tn_memtable *m)
{
    struct part parts[PARTS_MAX + 1];
    uint32_t depth = 0;
    parts[0] = (struct part){.high = m->count};
    bool more = begin_part(m, &parts[0]);
    while (more) {
        struct part *part = &parts[depth];
        if (part->at == part->high) {
            if (part->word != (depth > 0 ? parts[depth - 1].word : 0)) {
                set_prefixes(m, part);
            }
            more = depth > 0;
            depth -= more;
            continue;
        }
        uint32_t end = same_byte(m, part);
        if (end - part->at <= SMALL) {
            insertion_sort(m, part->at, end);
        } else {
            TN_CHECK(depth < PARTS_MAX);
            struct part inner = {.low = part->at, .high = end, .at = part->at, .word = part->word};
            if (begin_part(m, &inner)) {
                parts[++depth] = inner;
            }
        }
        part->at = end;
    }
}

void tn_memtable_sort(struct tn_memtable *memtable)
{
    TN_CHECK(memtable->frozen);
    if (memtable->order->keys.count == 0) {
        return;
    }
    if (memtable->count <= SMALL) {
        insertion_sort(memtable, 0, memtable->count);
    } else {
        sort_parts(memtable);
    }
}

uint32_t tn_memtable_keys(const struct tn_memtable *memtable)
{
    uint64_t prefix = 0;
    uint32_t keys = 0;
    for (uint32_t i = 0; i < memtable->count; i++) {
        const struct tn_memtable_entry *entry = entry_at(memtable, i);
        keys += keys == 0 || entry->prefix != prefix;
        prefix = entry->prefix;
    }
    return keys;
}

static tn_rc iter_next(struct tn_iter *base, struct tn_kv *kv, struct tn_err *err)
{
    (void)err;
    struct tn_memtable_iter *iter = (struct tn_memtable_iter *)base;
    const struct tn_memtable *m = iter->memtable;
    if (iter->at == m->count) {
        return TN_ABSENT;
    }
    const unsigned char *ahead = row_ahead(m, iter->at, m->count);
    __builtin_prefetch(ahead);
    __builtin_prefetch(ahead + 64);
    const struct tn_memtable_entry *entry = entry_at(m, iter->at++);
    const struct entry_row *head = row_head(m, entry);
    *kv = (struct tn_kv){.row = row_of(m, entry),
                         .sequence = head->sequence,
                         .prefix = entry->prefix,
                         .kind = (enum tn_row_kind)head->kind,
                         .level = -1};
    return TN_OK;
}

static void iter_close(struct tn_iter *base)
{
    (void)base;
}

static const struct tn_iter_vtable iter_vtable = {iter_next, NULL, iter_close, NULL};

void tn_memtable_iter_init(struct tn_memtable_iter *iter, const struct tn_memtable *memtable)
{
    TN_CHECK(memtable->frozen);
    *iter = (struct tn_memtable_iter){.iter = {&iter_vtable}, .memtable = memtable};
}
