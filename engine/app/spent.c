#include "app/spent.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "commit/publish.h"
#include "schema/time_text.h"

#define FOLDER ".tarn/lakes/"

enum { TEXT_SIZE = 256 };

#define HOUR_MS (INT64_C(3600) * 1000)
#define DAY_MS  (24 * HOUR_MS)

static int64_t whole(int64_t ms, int64_t unit)
{
    return ms / unit - (ms % unit < 0);
}

/* Since 1970. */
static int64_t month_of(int64_t day)
{
    struct tn_date date = tn_date_of_days(day);
    return (date.year - 1970) * 12 + date.month - 1;
}

static void move_to(struct tn_spent_sum *sum, int64_t at)
{
    if (at > sum->at) {
        *sum = (struct tn_spent_sum){0};
    }
    sum->at = at;
}

void tn_spent_look(struct tn_spent *spent, int64_t local_ms)
{
    int64_t day = whole(local_ms, DAY_MS);
    move_to(&spent->of[TN_SPENT_HOUR], whole(local_ms, HOUR_MS));
    move_to(&spent->of[TN_SPENT_DAY], day);
    move_to(&spent->of[TN_SPENT_MONTH], month_of(day));
}

void tn_spent_add(struct tn_spent *spent, uint64_t bytes, uint64_t requests)
{
    for (int i = 0; i < TN_SPENT_SPANS; i++) {
        spent->of[i].bytes += bytes;
        spent->of[i].requests += requests;
    }
}

/* ---- the file ---- */

tn_rc tn_spent_save(const struct tn_spent *spent, struct tn_io *io, const char *name,
                    struct tn_arena *scratch, struct tn_err *err)
{
    char text[TEXT_SIZE];
    struct tn_buf buf;
    size_t mark = tn_arena_mark(scratch);
    const char *path = tn_arena_format(scratch, FOLDER "%s", name);
    const char *draft = tn_arena_format(scratch, FOLDER "%s.draft", name);
    tn_buf_init(&buf, text, sizeof text);
    for (int i = 0; i < TN_SPENT_SPANS; i++) {
        const struct tn_spent_sum *sum = &spent->of[i];
        tn_buf_format(&buf, "%" PRId64 " %" PRIu64 " %" PRIu64 "\n", sum->at, sum->bytes,
                      sum->requests);
    }
    tn_rc rc = path && draft ? io->vtable->make_dir(io, FOLDER, err)
                             : tn_err_set(err, TN_AGAIN, 0, "no memory for a path");
    if (rc == TN_OK) {
        rc = tn_publish_over(io, draft, path, tn_buf_bytes(&buf), err);
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

static bool take_number(const char **text, uint64_t *number)
{
    char *end = NULL;
    *number = strtoull(*text, &end, 10);
    bool fine = end != *text && *number <= INT64_MAX;
    *text = end;
    return fine;
}

static bool parse(const char *text, struct tn_spent *spent)
{
    for (int i = 0; i < TN_SPENT_SPANS; i++) {
        struct tn_spent_sum *sum = &spent->of[i];
        uint64_t at;
        if (!take_number(&text, &at) || !take_number(&text, &sum->bytes) ||
            !take_number(&text, &sum->requests) || *text != '\n') {
            return false;
        }
        sum->at = (int64_t)at;
    }
    return true;
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
