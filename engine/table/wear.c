#include "table/wear.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "commit/publish.h"

static const uint64_t DAY_MS = UINT64_C(24) * 3600 * 1000;
static const uint64_t AWAY_MS_MAX = UINT64_C(365) * 24 * 3600 * 1000; /* no product overflows */

static const int64_t LEFT_MAX = INT64_C(1) << 60; /* of an overdraft that is believed */

#define DRAFT TN_WEAR_FILE ".draft"

static uint64_t written_by(const struct tn_io *io)
{
    return __atomic_load_n(&io->counts.bytes_written, __ATOMIC_RELAXED);
}

static void come_in(struct tn_wear *wear, int64_t ms)
{
    uint64_t passed = ms <= 0 ? 0 : (uint64_t)ms < AWAY_MS_MAX ? (uint64_t)ms : AWAY_MS_MAX;
    wear->rest += wear->budget % DAY_MS * passed;
    wear->left += (int64_t)(wear->budget / DAY_MS * passed + wear->rest / DAY_MS);
    wear->rest %= DAY_MS;
    if (wear->left >= (int64_t)wear->budget) {
        wear->left = (int64_t)wear->budget;
        wear->rest = 0;
    }
}

void tn_wear_init(struct tn_wear *wear, uint64_t budget, struct tn_io *io, int64_t now_ms)
{
    *wear = (struct tn_wear){.io = io,
                             .budget = budget,
                             .left = (int64_t)budget,
                             .written = written_by(io),
                             .looked_ms = now_ms};
}

void tn_wear_look(struct tn_wear *wear, int64_t now_ms)
{
    uint64_t written = written_by(wear->io);
    come_in(wear, now_ms - wear->looked_ms);
    wear->left -= (int64_t)(written - wear->written);
    wear->written = written;
    wear->looked_ms = now_ms;
}

uint32_t tn_wear_wait_ms(const struct tn_wear *wear, uint32_t most)
{
    if (!tn_wear_spent(wear)) {
        return 0;
    }
    double ms = wear->budget == 0
                    ? (double)most
                    : (double)(1 - wear->left) * (double)DAY_MS / (double)wear->budget + 1;
    return ms < (double)most ? (uint32_t)ms : most;
}

tn_rc tn_wear_save(const struct tn_wear *wear, int64_t wall_ms, struct tn_err *err)
{
    char text[64];
    int size = snprintf(text, sizeof text, "%" PRId64 " %" PRId64 "\n", wear->left, wall_ms);
    struct tn_bytes bytes = {(const unsigned char *)text, (size_t)size};
    return tn_publish_over(wear->io, DRAFT, TN_WEAR_FILE, bytes, err);
}

/* "<left> <wall ms>\n" */
static bool parse(const char *text, int64_t *left, int64_t *wall_ms)
{
    char *middle;
    char *end;
    *left = strtoll(text, &middle, 10);
    *wall_ms = strtoll(middle, &end, 10);
    return middle > text && end > middle && *end == '\n' && *left > -LEFT_MAX && *wall_ms > 0;
}

void tn_wear_load(struct tn_wear *wear, int64_t wall_ms, struct tn_arena *scratch)
{
    struct tn_bytes bytes;
    struct tn_err ignored = {0};
    int64_t left;
    int64_t then_ms;
    size_t mark = tn_arena_mark(scratch);
    if (tn_io_read_all(wear->io, TN_WEAR_FILE, 64, scratch, &bytes, &ignored) == TN_OK &&
        parse((const char *)bytes.data, &left, &then_ms) && left <= (int64_t)wear->budget) {
        wear->left = left;
        come_in(wear, wall_ms > then_ms ? wall_ms - then_ms : 0);
    }
    tn_arena_reset(scratch, mark);
}
