#include "upload/gather_marks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "commit/publish.h"
#include "file/names.h"

#define MAGIC "tarn-gathered 1 "
enum {
    LINE_MAX = TN_INBOX_GATEWAY_SIZE + 2 * 32 + 2 * 20 + 8,
    HEAD_MAX = 80 + TN_UUID_SIZE,
    TEXT_MAX = HEAD_MAX + TN_GATHER_GATEWAYS_MAX * LINE_MAX,
};

static tn_rc no_room(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "no memory for what was gathered");
}

tn_rc tn_gather_marks_init(struct tn_gather_marks *marks, struct tn_arena *arena,
                           struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(arena, TN_GATHER_GATEWAYS_MAX * sizeof(struct tn_gather_mark),
                             "what was gathered", &memory, err);
    if (rc == TN_OK) {
        *marks = (struct tn_gather_marks){.marks = memory};
    }
    return rc;
}

/* Where it stands, or would. */
static uint32_t place_of(const struct tn_gather_marks *marks, const char *gateway)
{
    uint32_t low = 0;
    uint32_t high = marks->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(marks->marks[middle].gateway, gateway) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct tn_gather_mark *tn_gather_mark_of(struct tn_gather_marks *marks, const char *gateway)
{
    uint32_t at = place_of(marks, gateway);
    struct tn_gather_mark *mark = &marks->marks[at];
    if (at < marks->count && strcmp(mark->gateway, gateway) == 0) {
        return mark;
    }
    if (marks->count == TN_GATHER_GATEWAYS_MAX) {
        return NULL;
    }
    memmove(mark + 1, mark, (marks->count - at) * sizeof *mark);
    *mark = (struct tn_gather_mark){.done = -1, .intent = -1};
    TN_CHECK(tn_inbox_gateway_valid(gateway));
    (void)snprintf(mark->gateway, sizeof mark->gateway, "%s", gateway);
    marks->count++;
    return mark;
}

/* ---- text ---- */

static void put_mark(const struct tn_gather_mark *mark, struct tn_buf *buf)
{
    char done[TN_HASH_128_DIGITS + 1];
    char intent[TN_HASH_128_DIGITS + 1];
    tn_hash_128_format(mark->done_hash, done);
    tn_hash_128_format(mark->intent_hash, intent);
    tn_buf_format(buf, "%s %" PRId64 " %s %" PRId64 " %s\n", mark->gateway, mark->done, done,
                  mark->intent, intent);
}

static tn_rc format(const struct tn_gather_marks *marks, const char *uuid, struct tn_arena *arena,
                    struct tn_bytes *text, struct tn_err *err)
{
    size_t size = HEAD_MAX + (size_t)marks->count * LINE_MAX;
    void *memory = tn_arena_take_raw(arena, 2 * size);
    struct tn_buf lines;
    struct tn_buf all;
    if (!memory) {
        return no_room(err);
    }
    tn_buf_init(&lines, memory, size);
    tn_buf_init(&all, (unsigned char *)memory + size, size);
    for (uint32_t i = 0; i < marks->count; i++) {
        put_mark(&marks->marks[i], &lines);
    }
    tn_buf_format(&all, MAGIC "%" PRId64 " %" PRIu32 " %08" PRIx32 " %s\n", marks->after,
                  marks->count, tn_hash_crc32(tn_buf_bytes(&lines)), uuid);
    tn_buf_append(&all, lines.data, lines.size);
    TN_CHECK(!lines.overflow && !all.overflow);
    *text = tn_buf_bytes(&all);
    return TN_OK;
}

static bool take_number(const char **at, char end, int base, int64_t *number)
{
    char *stop;
    *number = strtoll(*at, &stop, base);
    if (stop == *at || **at == ' ' || *stop != end) {
        return false;
    }
    *at = stop + 1;
    return true;
}

static bool take_hash(const char **at, char end, struct tn_hash_128 *hash)
{
    if (!tn_hash_128_parse(*at, hash) || (*at)[TN_HASH_128_DIGITS] != end) {
        return false;
    }
    *at += TN_HASH_128_DIGITS + 1;
    return true;
}

static bool take_mark(const char **at, struct tn_gather_mark *mark)
{
    const char *blank = strchr(*at, ' ');
    size_t size = blank ? (size_t)(blank - *at) : TN_INBOX_GATEWAY_SIZE;
    if (size >= TN_INBOX_GATEWAY_SIZE) {
        return false;
    }
    *mark = (struct tn_gather_mark){.done = -1};
    memcpy(mark->gateway, *at, size);
    *at = blank + 1;
    return tn_inbox_gateway_valid(mark->gateway) && take_number(at, ' ', 10, &mark->done) &&
           take_hash(at, ' ', &mark->done_hash) && take_number(at, ' ', 10, &mark->intent) &&
           take_hash(at, '\n', &mark->intent_hash) && mark->done >= -1 &&
           mark->intent >= mark->done;
}

/* "<crc32>\n" or "<crc32> <uuid>\n" */
static bool take_rest_of_head(const char **at, int64_t *crc)
{
    const char *begin = *at;
    if (take_number(at, '\n', 16, crc)) {
        return true;
    }
    *at = begin;
    if (!take_number(at, ' ', 16, crc) || strcspn(*at, "\n") != TN_UUID_SIZE - 1 ||
        (*at)[TN_UUID_SIZE - 1] != '\n') {
        return false;
    }
    *at += TN_UUID_SIZE;
    return true;
}

/* `text` ends in a zero. */
static bool parse(struct tn_bytes text, struct tn_gather_marks *marks)
{
    const char *at = (const char *)text.data;
    const char *end = at + text.size;
    int64_t count;
    int64_t crc;
    if (text.size < strlen(MAGIC) || memcmp(at, MAGIC, strlen(MAGIC)) != 0) {
        return false;
    }
    at += strlen(MAGIC);
    if (!take_number(&at, ' ', 10, &marks->after) || !take_number(&at, ' ', 10, &count) ||
        !take_rest_of_head(&at, &crc)) {
        return false;
    }
    struct tn_bytes lines = {(const unsigned char *)at, (size_t)(end - at)};
    if (count < 0 || count > TN_GATHER_GATEWAYS_MAX || tn_hash_crc32(lines) != crc) {
        return false;
    }
    for (marks->count = 0; marks->count < count; marks->count++) {
        struct tn_gather_mark *mark = &marks->marks[marks->count];
        if (!take_mark(&at, mark) ||
            (marks->count > 0 && strcmp(mark[-1].gateway, mark->gateway) >= 0)) {
            return false;
        }
    }
    return at == end;
}

/* ---- files ---- */

static const char *path_of(struct tn_arena *arena, const char *table, int64_t number)
{
    return tn_arena_format(arena, ".tarn/%s/gathered/%" PRId64, table, number);
}

struct numbers {
    int64_t smallest; /* 0: there is none */
    int64_t largest;
};

static tn_rc note_number(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct numbers *numbers = user;
    int64_t number = is_dir ? -1 : tn_name_number(name, "");
    (void)err;
    if (number > 0) {
        numbers->largest = number > numbers->largest ? number : numbers->largest;
        numbers->smallest =
            numbers->smallest == 0 || number < numbers->smallest ? number : numbers->smallest;
    }
    return TN_OK;
}

static tn_rc find_numbers(const char *table, struct tn_worker *worker, struct numbers *numbers,
                          struct tn_err *err)
{
    const char *dir = tn_arena_format(&worker->arena, ".tarn/%s/gathered/", table);
    *numbers = (struct numbers){.smallest = 0};
    tn_rc rc =
        dir ? worker->io->vtable->list(worker->io, dir, note_number, numbers, err) : no_room(err);
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc read_number(struct tn_gather_marks *marks, const char *table, int64_t number,
                         struct tn_worker *worker, struct tn_err *err)
{
    struct tn_bytes text;
    const char *path = path_of(&worker->arena, table, number);
    tn_rc rc = path ? tn_io_read_all(worker->io, path, TEXT_MAX, &worker->arena, &text, err)
                    : no_room(err);
    if (rc == TN_INVALID || (rc == TN_OK && !parse(text, marks))) {
        rc = tn_err_set(err, TN_CORRUPT, 0,
                        "%s: it can't be read, so nobody knows which entries the table has", path);
    }
    return rc;
}

static void remove_number(const char *table, int64_t number, struct tn_worker *worker)
{
    struct tn_err ignored;
    const char *path = number > 0 ? path_of(&worker->arena, table, number) : NULL;
    if (path) {
        (void)worker->io->vtable->unlink(worker->io, path, &ignored);
    }
}

/* What one that was killed has left. */
static void remove_left(const char *table, const struct numbers *numbers, struct tn_worker *worker)
{
    if (numbers->smallest + 1 < numbers->largest) {
        remove_number(table, numbers->smallest, worker);
    }
}

tn_rc tn_gather_marks_read(struct tn_gather_marks *marks, const char *table,
                           struct tn_worker *worker, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&worker->arena);
    struct numbers numbers;
    marks->count = 0;
    marks->after = 0;
    marks->read = false;
    tn_rc rc = find_numbers(table, worker, &numbers, err);
    if (rc == TN_OK && numbers.largest > 0) {
        rc = read_number(marks, table, numbers.largest, worker, err);
    }
    if (rc == TN_OK) {
        marks->number = numbers.largest;
        marks->read = true;
        remove_left(table, &numbers, worker);
    }
    tn_arena_reset(&worker->arena, mark);
    return rc == TN_ABSENT ? tn_err_set(err, TN_CONFLICT, 0, "another gather goes on") : rc;
}

static tn_rc conflict(struct tn_gather_marks *marks, struct tn_err *err)
{
    marks->read = false;
    return tn_err_set(err, TN_CONFLICT, 0, "another gather was faster");
}

/* A name may have been free since others went on and removed what was there: then they are further
 * on. That the one before is there tells nothing: a third one, that was killed here, may have left
 * it. */
static tn_rc make_sure(struct tn_gather_marks *marks, const char *table, struct tn_worker *worker,
                       struct tn_err *err)
{
    struct numbers numbers;
    tn_rc rc = find_numbers(table, worker, &numbers, err);
    return rc == TN_OK && numbers.largest != marks->number + 1 ? conflict(marks, err) : rc;
}

/* What was written in vain goes: it would tell the next one that nobody went on. */
static tn_rc keep_if_sure(struct tn_gather_marks *marks, const char *table,
                          struct tn_worker *worker, struct tn_err *err)
{
    tn_rc rc = make_sure(marks, table, worker, err);
    if (rc == TN_CONFLICT) {
        remove_number(table, marks->number + 1, worker);
    }
    return rc;
}

static tn_rc publish(struct tn_gather_marks *marks, const char *table, struct tn_worker *worker,
                     struct tn_err *err)
{
    char uuid[TN_UUID_SIZE];
    struct tn_arena *arena = &worker->arena;
    tn_clock_uuid(worker->clock, uuid);
    struct tn_publish_spec spec = {
        .draft = tn_arena_format(arena, ".tarn/%s/gathered/.%s.tmp", table, uuid),
        .final = path_of(arena, table, marks->number + 1),
        .dir = tn_arena_format(arena, ".tarn/%s/gathered/", table),
    };
    if (!spec.draft || !spec.final || !spec.dir) {
        return no_room(err);
    }
    tn_rc rc = format(marks, uuid, arena, &spec.bytes, err);
    if (rc == TN_OK) {
        rc = worker->io->vtable->make_dir(worker->io, spec.dir, err);
    }
    if (rc == TN_OK) {
        rc = tn_publish(worker->io, &spec, err);
    }
    return rc == TN_CONFLICT ? conflict(marks, err) : rc;
}

tn_rc tn_gather_marks_write(struct tn_gather_marks *marks, const char *table,
                            struct tn_worker *worker, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&worker->arena);
    TN_CHECK(marks->read);
    tn_rc rc = publish(marks, table, worker, err);
    if (rc == TN_OK) {
        rc = keep_if_sure(marks, table, worker, err);
    }
    if (rc == TN_OK) {
        marks->number++;
        remove_number(table, marks->number - 2, worker);
    } else {
        marks->read = false; /* after IO nobody knows what is there */
    }
    tn_arena_reset(&worker->arena, mark);
    return rc;
}
