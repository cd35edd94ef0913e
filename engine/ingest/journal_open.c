#include <inttypes.h>
#include <lz4.h>

#include "base/check.h"
#include "ingest/journal_private.h"

enum { MEMOS_MAX = 64 << 20, SENDERS_MAX = 1 << 20 }; /* so that their sizes can be added */

/* What was on disk. */
struct found {
    uint64_t last; /* name of the newest file; UINT64_MAX: there is none */
    uint64_t last_size;
    uint64_t block_at; /* byte of its last block; 0: it has none */
    struct tn_journal_block_head block;
    struct tn_journal_head head; /* of that file */
};

/* ---- memory ---- */

size_t tn_journal_head_size_max(const struct tn_journal_spec *spec)
{
    return TN_JOURNAL_HEAD_SIZE + tn_journal_senders_size(spec->sender_max, spec->memo_bytes);
}

static size_t rounded(size_t size)
{
    size_t align = _Alignof(max_align_t);
    return (size + align - 1) & ~(align - 1);
}

/* A sixth piece is what the arena may need to align the first. */
size_t tn_journal_memory(const struct tn_journal_spec *spec)
{
    size_t head = tn_journal_head_size_max(spec);
    size_t kept = rounded(sizeof(struct tn_journal)) + 2 * rounded(head) +
                  rounded((size_t)LZ4_sizeofState()) + _Alignof(max_align_t);
    size_t blocks = 3 * rounded((size_t)spec->block_size + TN_JOURNAL_BLOCK_HEAD_SIZE);
    size_t walk = 2 * rounded(spec->block_size);
    return kept + blocks + walk + rounded(head);
}

static tn_rc check_spec(const struct tn_journal_spec *spec, struct tn_err *err)
{
    if (spec->block_size == 0 || spec->block_size > TN_JOURNAL_BLOCK_MAX) {
        return tn_err_set(err, TN_INVALID, 0, "a block of %u bytes: 1 .. %d", spec->block_size,
                          TN_JOURNAL_BLOCK_MAX);
    }
    if (spec->memo_bytes > MEMOS_MAX || spec->sender_max > SENDERS_MAX) {
        return tn_err_set(err, TN_INVALID, 0, "memos of %u senders and %u bytes: at most %d and %d",
                          spec->sender_max, spec->memo_bytes, SENDERS_MAX, MEMOS_MAX);
    }
    if (spec->floor > TN_JOURNAL_PLACE_MAX / 2) {
        return tn_err_set(err, TN_INVALID, 0, "place %" PRIu64 " of a table is none of a journal",
                          spec->floor);
    }
    uint64_t piece =
        (uint64_t)spec->block_size + TN_JOURNAL_BLOCK_HEAD_SIZE + tn_journal_head_size_max(spec);
    if (spec->size_max < 3 * piece || spec->file_size > spec->size_max - 3 * piece) {
        return tn_err_set(err, TN_INVALID, 0,
                          "%" PRIu64 " bytes are too few for a journal: a file of %" PRIu64
                          " and three blocks with memos need %" PRIu64,
                          spec->size_max, spec->file_size, spec->file_size + 3 * piece);
    }
    return TN_OK;
}

static tn_rc make_journal(struct tn_journal **journal, const struct tn_journal_spec *spec,
                          struct tn_arena *arena, struct tn_err *err)
{
    size_t senders = tn_journal_senders_size(spec->sender_max, spec->memo_bytes);
    void *memory[4] = {NULL};
    size_t sizes[] = {sizeof **journal, senders, TN_JOURNAL_HEAD_SIZE + senders,
                      (size_t)LZ4_sizeofState()};
    for (uint32_t i = 0; i < 4; i++) {
        tn_rc rc = tn_arena_need(arena, sizes[i], "the journal", &memory[i], err);
        if (rc) {
            return rc;
        }
    }
    struct tn_journal *made = memory[0];
    *made = (struct tn_journal){
        .spec = *spec,
        .lock = -1,
        .out =
            {.io = spec->io, .file = -1, .first = UINT64_MAX, .head = memory[2], .lz4 = memory[3]},
        .senders = {.data = memory[1],
                    .count_max = spec->sender_max,
                    .bytes_max = spec->memo_bytes},
        .trim_at = UINT64_MAX,
    };
    *journal = made;
    return TN_OK;
}

/* Blocks as large as the one that was found last, if that is larger than they are now. */
static tn_rc make_blocks(struct tn_journal *journal, const struct found *found,
                         struct tn_arena *arena, struct tn_err *err)
{
    size_t size = journal->spec.block_size;
    if (found->block_at > 0 && found->block.raw_size > size) {
        size = found->block.raw_size;
    }
    void *memory[3] = {NULL};
    for (uint32_t i = 0; i < 3; i++) {
        size_t head = i == 2 ? TN_JOURNAL_BLOCK_HEAD_SIZE : 0;
        tn_rc rc = tn_arena_need(arena, size + head, "blocks of the journal", &memory[i], err);
        if (rc) {
            return rc;
        }
    }
    journal->blocks[0].data = memory[0];
    journal->blocks[1].data = memory[1];
    journal->out.packed = memory[2];
    journal->out.packed_max = size;
    return TN_OK;
}

/* ---- what is there ---- */

static tn_rc check_next(const struct tn_journal *journal, const struct found *before,
                        const struct tn_journal_head *head, struct tn_err *err)
{
    if (before->last == UINT64_MAX) {
        return TN_OK;
    }
    if (memcmp(head->identity, journal->identity, sizeof head->identity) != 0) {
        return tn_err_set(err, TN_CORRUPT, 0,
                          TN_JOURNAL_FOLDER "%020" PRIu64 ": byte 48: of another journal, %s",
                          head->first, head->identity);
    }
    if (head->after < before->head.after) {
        return tn_err_set(err, TN_CORRUPT, 0,
                          TN_JOURNAL_FOLDER "%020" PRIu64 ": byte 40: goes on before file %" PRIu64,
                          head->first, before->last);
    }
    return TN_OK;
}

/* The heads of all files, oldest first. */
static tn_rc survey(struct tn_journal *journal, struct found *found, struct tn_err *err)
{
    struct tn_io *io = journal->spec.io;
    uint64_t first = 0;
    *found = (struct found){.last = UINT64_MAX};
    for (;;) {
        struct tn_journal_head head;
        tn_rc rc = tn_journal_find(io, first, &first, err);
        if (rc) {
            return rc == TN_ABSENT ? TN_OK : rc;
        }
        rc = tn_journal_head_read(io, first, &head, &found->last_size, err);
        if (rc == TN_OK) {
            rc = check_next(journal, found, &head, err);
        }
        if (rc) {
            return rc;
        }
        if (found->last == UINT64_MAX) {
            memcpy(journal->identity, head.identity, sizeof journal->identity);
            journal->first = head.after;
        } else if (journal->trim_at == UINT64_MAX) {
            journal->trim_at = head.after;
        }
        journal->size += found->last_size;
        found->head = head;
        found->last = first++;
    }
}

/* What is kept for good, but for nobody, is so no longer. */
static bool is_wanted(const struct tn_journal *journal, struct tn_bytes name)
{
    const struct tn_journal_spec *spec = &journal->spec;
    return !tn_journal_senders_kept(name) || !spec->wanted || spec->wanted(spec->user, name);
}

static tn_rc keep_memos(struct tn_journal *journal, struct tn_journal_walk *walk,
                        struct tn_err *err)
{
    struct tn_journal_part parts[TN_JOURNAL_PARTS_MAX];
    struct tn_bytes rest = walk->raw;
    uint64_t place = walk->block.first;
    uint32_t count;
    for (; rest.size > 0; place++) {
        if (!tn_journal_entry_next(&rest, parts, &count)) {
            return tn_journal_walk_damage(walk, "the block before this is none of entries", err);
        }
        for (uint32_t i = 0; i < count; i++) {
            if (is_wanted(journal, parts[i].name)) {
                tn_journal_senders_take(&journal->senders, &parts[i], place);
            }
        }
    }
    if (place != walk->chain) {
        return tn_journal_walk_damage(walk, "the block before this has other entries", err);
    }
    return TN_OK;
}

static tn_rc walk_blocks(struct tn_journal *journal, struct found *found,
                         struct tn_journal_walk *walk, struct tn_err *err)
{
    for (;;) {
        uint64_t at = walk->at;
        tn_rc rc = tn_journal_walk_next(walk, 0, err);
        if (rc == TN_ABSENT) {
            return tn_journal_walk_end(walk, err);
        }
        if (rc == TN_OK) {
            rc = keep_memos(journal, walk, err);
        }
        if (rc) {
            return rc;
        }
        found->block_at = at;
        found->block = walk->block;
    }
}

static bool load_wanted(struct tn_journal *journal, struct tn_bytes memos)
{
    const struct tn_journal_spec *spec = &journal->spec;
    return tn_journal_senders_load(&journal->senders, memos, spec->wanted, spec->user);
}

static tn_rc load_memos(struct tn_journal *journal, struct tn_journal_walk *walk,
                        struct tn_arena *arena, struct tn_err *err)
{
    struct tn_bytes memos;
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = tn_journal_walk_memos(walk, arena, &memos, err);
    if (rc == TN_OK && !load_wanted(journal, memos)) {
        rc = tn_err_set(err, TN_CORRUPT, 0, "%s: byte %d: memos are damaged", walk->path,
                        TN_JOURNAL_HEAD_SIZE);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

/* Memos, and where the last block is. */
static tn_rc read_last(struct tn_journal *journal, struct found *found, struct tn_arena *arena,
                       struct tn_err *err)
{
    struct tn_journal_walk walk;
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = tn_journal_walk_open(&walk, journal->spec.io, found->last, arena, err);
    if (rc == TN_OK) {
        rc = load_memos(journal, &walk, arena, err);
        if (rc == TN_OK) {
            rc = walk_blocks(journal, found, &walk, err);
        }
        tn_journal_walk_close(&walk);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

/* ---- how it goes on ---- */

/* The last block becomes the frozen one, as if it had been appended just now. */
static tn_rc take_last_block(struct tn_journal *journal, const struct found *found,
                             struct tn_arena *arena, struct tn_err *err)
{
    struct tn_journal_walk walk;
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = tn_journal_walk_open(&walk, journal->spec.io, found->last, arena, err);
    if (rc == TN_OK) {
        walk.at = found->block_at;
        walk.chain = found->block.after;
        rc = tn_journal_walk_next(&walk, 0, err);
        tn_journal_walk_close(&walk);
        rc = rc == TN_ABSENT ? tn_journal_walk_damage(&walk, "it reads otherwise now", err) : rc;
    }
    if (rc == TN_OK && walk.raw.size > journal->out.packed_max) {
        rc = tn_journal_walk_damage(&walk, "it reads otherwise now", err);
    }
    if (rc == TN_OK) {
        struct tn_journal_block *block = &journal->blocks[journal->filling];
        memcpy(block->data, walk.raw.data, walk.raw.size);
        block->size = (uint32_t)walk.raw.size;
        block->count = walk.block.count;
        block->first = walk.block.first;
    }
    tn_arena_reset(arena, mark);
    return rc;
}

/* What is there ends at `chain`; no new entry comes before `next`. */
static void set_places(struct tn_journal *journal, uint64_t chain, uint64_t next)
{
    journal->chain = chain;
    journal->readable = chain;
    journal->next = next > journal->spec.floor ? next : journal->spec.floor;
    journal->durable = journal->next;
}

static tn_rc begin_first(struct tn_journal *journal, struct tn_err *err)
{
    tn_clock_uuid(journal->spec.clock, journal->identity);
    journal->first = journal->spec.floor > 0 ? journal->spec.floor : 1;
    set_places(journal, journal->first, journal->first);
    tn_journal_prepare_head(journal, journal->next, 0);
    tn_rc rc = tn_journal_begin_file(journal, journal->next, (struct tn_bytes){0}, err);
    journal->size = journal->outcome.written;
    return rc;
}

/* On a full disk it stays frozen, and turns try again. */
static tn_rc copy_last(struct tn_journal *journal, struct found *found, struct tn_arena *arena,
                       struct tn_err *err)
{
    uint64_t chain = found->block.first + found->block.count;
    tn_rc rc = take_last_block(journal, found, arena, err);
    if (rc) {
        return rc;
    }
    set_places(journal, chain, chain);
    journal->durable = found->block.first;
    journal->chain = found->block.after;
    tn_journal_freeze(journal);
    rc = tn_journal_write(journal, err);
    tn_journal_written(journal, rc, err);
    return rc == TN_FULL ? TN_OK : rc;
}

/* Names that a killed process gave are made to last: the identity may be nowhere else. */
static tn_rc go_on(struct tn_journal *journal, struct found *found, struct tn_arena *arena,
                   struct tn_err *err)
{
    static const char *const paths[] = {TN_JOURNAL_FOLDER};
    if (found->last == UINT64_MAX) {
        return begin_first(journal, err);
    }
    uint64_t end = found->block_at > 0 ? found->block.first : found->head.first;
    if (end > TN_JOURNAL_PLACE_MAX / 2) { /* no process can have come so far */
        return tn_err_set(err, TN_CORRUPT, 0,
                          TN_JOURNAL_FOLDER "%020" PRIu64 ": byte %" PRIu64 ": place %" PRIu64,
                          found->last, found->block_at, end);
    }
    journal->out.first = found->last;
    journal->out.file_size = found->last_size;
    tn_rc rc = journal->spec.io->vtable->sync(journal->spec.io, paths, 1, err);
    if (rc) {
        return rc;
    }
    if (found->block_at > 0) {
        return copy_last(journal, found, arena, err);
    }
    set_places(journal, found->head.after, found->head.first);
    return TN_OK;
}

static tn_rc open_journal(struct tn_journal *journal, struct tn_arena *arena, struct tn_err *err)
{
    struct tn_io *io = journal->spec.io;
    const char *who = journal->spec.who ? journal->spec.who : "tarn";
    struct found found;
    tn_rc rc = io->vtable->make_dir(io, TN_JOURNAL_FOLDER, err);
    if (rc == TN_OK) {
        rc = io->vtable->lock(io, TN_JOURNAL_LOCK, who, &journal->lock, err);
    }
    if (rc == TN_OK) {
        rc = survey(journal, &found, err);
    }
    if (rc == TN_OK && found.last != UINT64_MAX) {
        rc = read_last(journal, &found, arena, err);
    }
    if (rc == TN_OK) {
        rc = make_blocks(journal, &found, arena, err);
    }
    return rc ? rc : go_on(journal, &found, arena, err);
}

tn_rc tn_journal_open(struct tn_journal **journal, const struct tn_journal_spec *spec,
                      struct tn_arena *arena, struct tn_err *err)
{
    struct tn_journal *made = NULL;
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = check_spec(spec, err);
    if (rc == TN_OK) {
        rc = make_journal(&made, spec, arena, err);
    }
    if (rc == TN_OK && made) {
        rc = open_journal(made, arena, err);
        if (rc) {
            tn_journal_close(made);
        }
    }
    if (rc) {
        tn_arena_reset(arena, mark);
        return tn_err_in(err, "journal");
    }
    *journal = made;
    return TN_OK;
}
