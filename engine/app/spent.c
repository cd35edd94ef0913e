#include "app/spent.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "commit/publish.h"
#include "schema/time_text.h"

#define FOLDER ".tarn/lakes/"

enum { TEXT_SIZE = 128, NUMBERS = 4 };

static const int64_t day_ms = 24 * 3600 * 1000;

/* Since 1970. */
static int64_t month_of(int64_t day)
{
    struct tn_date date = tn_date_of_days(day);
    return (date.year - 1970) * 12 + date.month - 1;
}

void tn_spent_add(struct tn_spent *spent, int64_t local_ms, uint64_t bytes)
{
    int64_t day = local_ms / day_ms - (local_ms % day_ms < 0);
    int64_t month = month_of(day);
    if (day > spent->day) {
        spent->day = day;
        spent->day_bytes = 0;
    }
    if (month > spent->month) {
        spent->month = month;
        spent->month_bytes = 0;
    }
    spent->day_bytes += bytes;
    spent->month_bytes += bytes;
}

/* ---- the file ---- */

tn_rc tn_spent_save(const struct tn_spent *spent, struct tn_io *io, const char *name,
                    struct tn_arena *scratch, struct tn_err *err)
{
    char text[TEXT_SIZE];
    size_t mark = tn_arena_mark(scratch);
    const char *path = tn_arena_format(scratch, FOLDER "%s", name);
    const char *draft = tn_arena_format(scratch, FOLDER "%s.draft", name);
    int size = snprintf(text, sizeof text, "%" PRId64 " %" PRIu64 " %" PRId64 " %" PRIu64 "\n",
                        spent->day, spent->day_bytes, spent->month, spent->month_bytes);
    tn_rc rc = path && draft ? io->vtable->make_dir(io, FOLDER, err)
                             : tn_err_set(err, TN_AGAIN, 0, "no memory for a path");
    if (rc == TN_OK) {
        const struct tn_bytes bytes = {(const unsigned char *)text, (size_t)size};
        rc = tn_publish_over(io, draft, path, bytes, err);
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

static bool parse(const char *text, struct tn_spent *spent)
{
    uint64_t numbers[NUMBERS];
    char *end = NULL;
    for (int i = 0; i < NUMBERS; i++) {
        numbers[i] = strtoull(text, &end, 10);
        if (end == text || numbers[i] > INT64_MAX) {
            return false;
        }
        text = end;
    }
    *spent = (struct tn_spent){.day = (int64_t)numbers[0],
                               .day_bytes = numbers[1],
                               .month = (int64_t)numbers[2],
                               .month_bytes = numbers[3]};
    return *end == '\n';
}

void tn_spent_load(struct tn_spent *spent, struct tn_io *io, const char *name,
                   struct tn_arena *scratch)
{
    struct tn_bytes bytes;
    struct tn_err ignored = {0};
    size_t mark = tn_arena_mark(scratch);
    const char *path = tn_arena_format(scratch, FOLDER "%s", name);
    *spent = (struct tn_spent){0};
    if (!path || tn_io_read_all(io, path, TEXT_SIZE, scratch, &bytes, &ignored) != TN_OK ||
        !parse((const char *)bytes.data, spent)) {
        *spent = (struct tn_spent){0};
    }
    tn_arena_reset(scratch, mark);
}
