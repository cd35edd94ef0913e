/* journal: any bytes as files of a journal. What opens and reads goes on: another entry is
 * appended, and all is there when it's opened again; else it says why, and in which file.
 *
 * The first byte: 1 = checksums are made right, so that what is behind them is reached; 2 = the
 * first file's identity goes for all. Then files: two bytes of size each; a head has the name. */
#include <stdio.h>

#include "base/check.h"
#include "base/hash.h"
#include "fuzz/fuzz.h"
#include "ingest/journal_bytes.h"

enum { INPUT_MAX = 1 << 14, FILES_MAX = 6, FILE_MAX = 1 << 16, ARENA_SIZE = 1 << 18 };

static struct tn_err err;

/* ---- a disk of few files ---- */

struct file {
    bool used;
    char path[64];
    unsigned char data[FILE_MAX];
    size_t size;
};

static struct file files[FILES_MAX];

static struct file *find(const char *path)
{
    for (int i = 0; i < FILES_MAX; i++) {
        if (files[i].used && strcmp(files[i].path, path) == 0) {
            return &files[i];
        }
    }
    return NULL;
}

static tn_rc absent(const char *path, struct tn_err *out)
{
    return tn_err_set(out, TN_ABSENT, 0, "%s: no such file", path);
}

static tn_rc disk_open(struct tn_io *io, const char *path, int *number, uint64_t *size,
                       struct tn_err *out)
{
    const struct file *file = find(path);
    (void)io;
    if (!file) {
        return absent(path, out);
    }
    *number = (int)(file - files);
    *size = file->size;
    return TN_OK;
}

static tn_rc disk_read(struct tn_io *io, int number, uint64_t at, void *data, size_t size,
                       size_t *got, struct tn_err *out)
{
    const struct file *file = &files[number];
    (void)io;
    (void)out;
    size_t left = at < file->size ? file->size - (size_t)at : 0;
    *got = size < left ? size : left;
    if (*got > 0) {
        memcpy(data, file->data + at, *got);
    }
    return TN_OK;
}

static tn_rc disk_create(struct tn_io *io, const char *path, int *number, struct tn_err *out)
{
    (void)io;
    for (int i = 0; i < FILES_MAX; i++) {
        if (!files[i].used) {
            files[i].used = true;
            files[i].size = 0;
            (void)snprintf(files[i].path, sizeof files[i].path, "%s", path);
            *number = i;
            return TN_OK;
        }
    }
    return tn_err_set(out, TN_FULL, 0, "create %s: no space left", path);
}

static tn_rc disk_append(struct tn_io *io, int number, struct tn_bytes bytes, struct tn_err *out)
{
    struct file *file = &files[number];
    (void)io;
    if (bytes.size > sizeof file->data - file->size) {
        return tn_err_set(out, TN_FULL, 0, "append %s: no space left", file->path);
    }
    memcpy(file->data + file->size, bytes.data, bytes.size);
    file->size += bytes.size;
    return TN_OK;
}

static void disk_close(struct tn_io *io, int number)
{
    (void)io;
    (void)number;
}

static tn_rc disk_sync(struct tn_io *io, const char *const *paths, uint32_t count,
                       struct tn_err *out)
{
    (void)io;
    (void)paths;
    (void)count;
    (void)out;
    return TN_OK;
}

static tn_rc disk_unlink(struct tn_io *io, const char *path, struct tn_err *out)
{
    struct file *file = find(path);
    (void)io;
    if (!file) {
        return absent(path, out);
    }
    file->used = false;
    return TN_OK;
}

static tn_rc disk_replace(struct tn_io *io, const char *path, const char *path_new,
                          struct tn_err *out)
{
    struct file *file = find(path);
    (void)disk_unlink(io, path_new, out);
    TN_CHECK(file != NULL);
    (void)snprintf(file->path, sizeof file->path, "%s", path_new);
    return TN_OK;
}

static tn_rc disk_make_dir(struct tn_io *io, const char *path, struct tn_err *out)
{
    (void)io;
    (void)path;
    (void)out;
    return TN_OK;
}

static tn_rc disk_list(struct tn_io *io, const char *path, tn_io_name_fn *each, void *user,
                       struct tn_err *out)
{
    tn_rc rc = TN_OK;
    (void)io;
    for (int i = 0; i < FILES_MAX && rc == TN_OK; i++) {
        if (files[i].used) {
            rc = each(user, files[i].path + strlen(path), false, out);
        }
    }
    return rc;
}

static tn_rc disk_stat(struct tn_io *io, const char *path, uint64_t *size, struct tn_err *out)
{
    int number;
    return disk_open(io, path, &number, size, out);
}

static tn_rc disk_lock(struct tn_io *io, const char *path, const char *who, int *number,
                       struct tn_err *out)
{
    (void)io;
    (void)path;
    (void)who;
    (void)out;
    *number = 0;
    return TN_OK;
}

static const struct tn_io_vtable disk_vtable = {
    .open = disk_open,
    .read = disk_read,
    .create = disk_create,
    .append = disk_append,
    .close = disk_close,
    .sync = disk_sync,
    .replace = disk_replace,
    .unlink = disk_unlink,
    .make_dir = disk_make_dir,
    .list = disk_list,
    .stat = disk_stat,
    .lock = disk_lock,
};

/* ---- checksums made right ---- */

static void mend_head(struct file *file, struct tn_journal_head *head)
{
    size_t left = file->size - TN_JOURNAL_HEAD_SIZE;
    size_t memos = tn_load_u32(file->data + 24);
    struct tn_bytes bytes = {file->data + TN_JOURNAL_HEAD_SIZE, memos < left ? memos : left};
    *head = (struct tn_journal_head){
        .first = tn_load_u64(file->data + 32),
        .after = tn_load_u64(file->data + 40),
        .block_size = tn_load_u32(file->data + 16),
        .block_count = tn_load_u32(file->data + 20),
        .memos_size = (uint32_t)memos,
        .memos_crc = tn_hash_crc32(bytes),
    };
    memcpy(head->identity, file->data + 48, sizeof head->identity);
    tn_journal_head_encode(head, file->data);
}

static void mend_blocks(struct file *file, const struct tn_journal_head *head)
{
    size_t at = TN_JOURNAL_HEAD_SIZE + (size_t)head->memos_size;
    while (at <= file->size && file->size - at >= TN_JOURNAL_BLOCK_HEAD_SIZE) {
        unsigned char *bytes = file->data + at;
        size_t left = file->size - at - TN_JOURNAL_BLOCK_HEAD_SIZE;
        size_t stored = tn_load_u32(bytes + 8);
        struct tn_bytes data = {bytes + TN_JOURNAL_BLOCK_HEAD_SIZE, stored < left ? stored : left};
        struct tn_journal_block_head block = {
            .stored_size = (uint32_t)stored,
            .raw_size = tn_load_u32(bytes + 12),
            .crc = tn_hash_crc32(data),
            .count = tn_load_u32(bytes + 20),
            .after = tn_load_u64(bytes + 24),
            .first = tn_load_u64(bytes + 32),
        };
        tn_journal_block_head_encode(&block, head->identity, bytes);
        at += TN_JOURNAL_BLOCK_HEAD_SIZE + data.size;
    }
}

static void load(struct tn_bytes body, bool mend, bool one_identity)
{
    struct tn_journal_head head;
    unsigned char identity[TN_JOURNAL_IDENTITY_SIZE];
    memset(files, 0, sizeof files);
    for (int i = 0; i < FILES_MAX - 3 && body.size >= 2; i++) {
        size_t size = tn_load_u16(body.data);
        size = size < body.size - 2 ? size : body.size - 2;
        struct file *file = &files[i];
        file->used = true;
        file->size = size;
        memcpy(file->data, body.data + 2, size);
        body = (struct tn_bytes){body.data + 2 + size, body.size - 2 - size};
        uint64_t first = size >= TN_JOURNAL_HEAD_SIZE ? tn_load_u64(file->data + 32) : 0;
        (void)snprintf(file->path, sizeof file->path, ".tarn/journal/%020llu",
                       (unsigned long long)first);
        for (int before = 0; before < i; before++) { /* names are unique */
            file->used = file->used && strcmp(files[before].path, file->path) != 0;
        }
        if (size < TN_JOURNAL_HEAD_SIZE) {
            continue;
        }
        if (i == 0) {
            memcpy(identity, file->data + 48, sizeof identity);
        } else if (one_identity) {
            memcpy(file->data + 48, identity, sizeof identity);
        }
        if (mend) {
            mend_head(file, &head);
            mend_blocks(file, &head);
        }
    }
}

/* ---- what the journal makes of it ---- */

struct sum {
    uint64_t count;
    uint64_t last;
    uint64_t hash;
};

static tn_rc add_entry(void *user, uint64_t place, const struct tn_journal_part *parts,
                       uint32_t count, struct tn_err *out)
{
    struct sum *sum = user;
    (void)out;
    TN_CHECK(sum->count == 0 || place > sum->last);
    TN_CHECK(count > 0 && count <= TN_JOURNAL_PARTS_MAX);
    sum->count++;
    sum->last = place;
    for (uint32_t i = 0; i < count; i++) {
        sum->hash = tn_hash_64(parts[i].name, sum->hash + place);
        sum->hash = tn_hash_64(parts[i].data, sum->hash);
    }
    return TN_OK;
}

struct process {
    struct tn_exec_inline exec;
    struct tn_arena arena;
    struct tn_journal *journal;
    _Alignas(16) unsigned char memory[ARENA_SIZE];
};

static tn_rc start(struct process *p, struct sum *sum)
{
    static struct tn_io io = {.vtable = &disk_vtable};
    void *const contexts[TN_LANE_COUNT] = {NULL, NULL};
    struct tn_journal_spec spec = {
        .io = &io,
        .clock = &tn_clock_system,
        .exec = &p->exec.exec,
        .block_size = 1024,
        .file_size = 4096,
        .size_max = 1 << 20,
        .sender_max = 8,
        .memo_bytes = 256,
    };
    uint64_t next;
    *sum = (struct sum){0};
    tn_exec_inline_open(&p->exec, contexts);
    tn_arena_init(&p->arena, p->memory, sizeof p->memory);
    tn_rc rc = tn_journal_open(&p->journal, &spec, &p->arena, &err);
    if (rc) {
        TN_CHECK(p->arena.used == 0);
        return rc;
    }
    rc = tn_journal_read(p->journal, tn_journal_first(p->journal), &next, add_entry, sum, &p->arena,
                         &err);
    TN_CHECK(rc || next >= tn_journal_first(p->journal));
    return rc;
}

static void go_on(struct process *p, struct sum *sum)
{
    static const struct tn_journal_part parts[] = {
        {TN_JOURNAL_ROWS, {(const unsigned char *)"db.t", 4}, {(const unsigned char *)"row", 3}},
        {TN_JOURNAL_MEMO, {(const unsigned char *)"me", 2}, {(const unsigned char *)"memo", 4}},
    };
    uint64_t place;
    uint32_t wait_ms;
    tn_rc rc = tn_journal_append(p->journal, parts, 2, &place, &err);
    TN_CHECK(rc == TN_OK && (sum->count == 0 || place > sum->last));
    rc = add_entry(sum, place, parts, 2, &err);
    TN_CHECK(rc == TN_OK);
    do {
        rc = tn_journal_turn(p->journal, true, &wait_ms, &err);
        TN_CHECK(rc == TN_OK);
    } while (tn_exec_turn(&p->exec.exec, false) > 0);
    TN_CHECK(tn_journal_durable(p->journal) == place + 1);
    tn_journal_close(p->journal);
}

static void check_memo(struct process *p)
{
    struct tn_bytes memo;
    uint64_t place;
    tn_rc rc = tn_journal_memo(p->journal, tn_bytes_of("me"), &memo, &place);
    TN_CHECK(rc == TN_OK && tn_bytes_equal(memo, tn_bytes_of("memo")));
    tn_journal_trim(p->journal, tn_journal_next(p->journal));
    while (tn_exec_turn(&p->exec.exec, false) > 0) {
    }
    tn_journal_close(p->journal);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct process process;
    struct sum before;
    struct sum after;
    if (size == 0 || size > INPUT_MAX) {
        return 0;
    }
    load((struct tn_bytes){data + 1, size - 1}, (data[0] & 1) != 0, (data[0] & 2) != 0);
    tn_rc rc = start(&process, &before);
    if (rc) {
        TN_CHECK(rc == TN_CORRUPT || rc == TN_UNSUPPORTED || rc == TN_AGAIN);
        TN_CHECK(rc == TN_AGAIN || strstr(err.text, ".tarn/journal/") != NULL);
        return 0;
    }
    go_on(&process, &before);
    rc = start(&process, &after);
    TN_CHECK(rc == TN_OK);
    TN_CHECK(before.count == after.count && before.hash == after.hash);
    check_memo(&process);
    return 0;
}
