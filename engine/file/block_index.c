#include "file/block_index.h"

#include <string.h>

enum { FILE_PART = 4 }; /* of the memory that one file's index may take */

void tn_block_indexes_init(struct tn_block_indexes *indexes, void *memory, size_t size)
{
    *indexes = (struct tn_block_indexes){0};
    tn_arena_init(&indexes->arena, memory, size);
}

void tn_block_indexes_trim(struct tn_block_indexes *indexes)
{
    if (indexes->arena.used > indexes->arena.size / 2) {
        tn_arena_reset(&indexes->arena, 0);
        indexes->first = NULL;
    }
}

void tn_block_index_words(const struct tn_read_spec *read, struct tn_row row,
                          uint64_t words[TN_BLOCK_INDEX_WORDS])
{
    for (uint32_t i = 0; i < TN_BLOCK_INDEX_WORDS; i++) {
        words[i] = tn_row_key_word(read->layout, read->keys, row, i);
    }
}

static int compare_words(const uint64_t *a, const uint64_t *b)
{
    for (uint32_t i = 0; i < TN_BLOCK_INDEX_WORDS; i++) {
        if (a[i] != b[i]) {
            return a[i] < b[i] ? -1 : 1;
        }
    }
    return 0;
}

uint64_t tn_block_index_find(const struct tn_block_index *index,
                             const uint64_t words[TN_BLOCK_INDEX_WORDS])
{
    uint32_t low = 0;
    uint32_t high = index->count;
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_words(index->entries[middle].words, words) < 0) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return index->entries[low].offset;
}

/* ---- making one ---- */

/* Every second entry goes. */
static uint32_t halve(struct tn_block_index *index)
{
    uint32_t kept = (index->count + 1) / 2;
    for (uint32_t i = 0; i < kept; i++) {
        index->entries[i] = index->entries[2 * (size_t)i];
    }
    return kept;
}

/* From block to block: the first row of each. */
static tn_rc fill(struct tn_block_index *index, uint32_t most, struct tn_data_reader *reader,
                  struct tn_err *err)
{
    uint64_t stride = 1;
    uint64_t offset = reader->header.size;
    for (uint64_t number = 0;; number++) {
        tn_rc rc = tn_data_reader_resume(reader, (struct tn_data_position){offset, 0}, err);
        struct tn_kv kv;
        if (rc == TN_OK) {
            rc = tn_iter_next(&reader->iter, &kv, err);
        }
        if (rc != TN_OK) {
            return rc == TN_ABSENT ? TN_OK : rc;
        }
        if (number % stride == 0) {
            if (index->count == most) {
                index->count = halve(index);
                stride *= 2;
            }
            if (number % stride == 0) {
                struct tn_block_index_entry *entry = &index->entries[index->count++];
                tn_block_index_words(reader->read, kv.row, entry->words);
                entry->offset = offset;
            }
        }
        offset = reader->next_block;
    }
}

/* Takes all that a file may have; what is left over goes back when the index is full. */
static struct tn_block_index *take(struct tn_arena *arena, const char *path, uint32_t *most)
{
    const char *copy = tn_arena_format(arena, "%s", path);
    size_t room = copy ? tn_arena_free(arena) : 0;
    room = room < arena->size / FILE_PART ? room : arena->size / FILE_PART;
    size_t entries = room < 4096 ? 0 : (room - 64) / sizeof(struct tn_block_index_entry);
    struct tn_block_index *index =
        entries > 0 ? tn_arena_take_raw(arena, sizeof *index +
                                                   entries * sizeof(struct tn_block_index_entry))
                    : NULL;
    if (index) {
        *index = (struct tn_block_index){.path = copy};
        *most = entries < UINT32_MAX ? (uint32_t)entries : UINT32_MAX;
    }
    return index;
}

static tn_rc make(struct tn_block_indexes *indexes, struct tn_data_reader *reader,
                  const struct tn_block_index **made, struct tn_err *err)
{
    struct tn_arena *arena = &indexes->arena;
    size_t mark = tn_arena_mark(arena);
    uint32_t most = 0;
    struct tn_block_index *index = take(arena, reader->path, &most);
    tn_rc rc = index ? fill(index, most, reader, err) : TN_OK;
    if (rc != TN_OK || !index || index->count == 0) {
        tn_arena_reset(arena, mark);
        return rc;
    }
    const unsigned char *end = (const unsigned char *)(index->entries + index->count);
    tn_arena_reset(arena, (size_t)(end - arena->base));
    index->next = indexes->first;
    indexes->first = index;
    indexes->built++;
    *made = index;
    return TN_OK;
}

tn_rc tn_block_index_of(struct tn_block_indexes *indexes, struct tn_data_reader *reader,
                        const struct tn_block_index **index, struct tn_err *err)
{
    *index = NULL;
    for (const struct tn_block_index *i = indexes->first; i; i = i->next) {
        if (strcmp(i->path, reader->path) == 0) {
            *index = i;
            return TN_OK;
        }
    }
    return make(indexes, reader, index, err);
}
