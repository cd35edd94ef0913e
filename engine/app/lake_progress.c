#include "app/lake_progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TERMINAL_NS = 100 * 1000 * 1000,
    LINE_NS = 1000 * 1000 * 1000,
};

static const char SNAPSHOT[] = "/snapshot/snapshot-";

static struct tn_lake_progress *of(struct tn_target *target)
{
    return (struct tn_lake_progress *)(void *)target;
}

static struct tn_target *below(struct tn_target *target)
{
    return of(target)->inner;
}

static void say(struct tn_lake_progress *progress)
{
    (void)fputs(progress->terminal ? "\r" : "", stderr);
    if (progress->newest > 0) {
        (void)fprintf(stderr, "snapshot %" PRId64 " of %" PRId64 ", ", progress->snapshot,
                      progress->newest);
    }
    (void)fprintf(stderr, "%" PRIu64 " files, %.1f MB", progress->files,
                  (double)progress->inner->counts.bytes_sent / 1e6);
    if (progress->newest == 0 && progress->snapshot > 0) {
        (void)fprintf(stderr, ", the lake's snapshot %" PRId64, progress->snapshot);
    }
    (void)fputs(progress->terminal ? "" : "\n", stderr);
    (void)fflush(stderr);
    progress->said = true;
}

static void say_sometimes(struct tn_lake_progress *progress)
{
    int64_t now_ns = progress->clock->vtable->monotonic_ns(progress->clock);
    progress->target.counts = progress->inner->counts;
    if (now_ns >= progress->next_ns) {
        progress->next_ns = now_ns + (progress->terminal ? TERMINAL_NS : LINE_NS);
        say(progress);
    }
}

/* ---- the calls of target.h ---- */

static tn_rc stat_file(struct tn_target *target, const char *path, uint64_t *size,
                       struct tn_err *err)
{
    return below(target)->vtable->stat(below(target), path, size, err);
}

static tn_rc modified(struct tn_target *target, const char *path, int64_t *ms, struct tn_err *err)
{
    return below(target)->vtable->modified(below(target), path, ms, err);
}

static tn_rc read_file(struct tn_target *target, const char *path, size_t size_max,
                       struct tn_arena *arena, struct tn_bytes *bytes, struct tn_err *err)
{
    return below(target)->vtable->read(below(target), path, size_max, arena, bytes, err);
}

static tn_rc fetch(struct tn_target *target, const char *path, uint64_t first, struct tn_io *to,
                   int file, uint64_t *got, struct tn_err *err)
{
    return below(target)->vtable->fetch(below(target), path, first, to, file, got, err);
}

static tn_rc list(struct tn_target *target, const char *path, tn_io_name_fn *each, void *user,
                  struct tn_err *err)
{
    return below(target)->vtable->list(below(target), path, each, user, err);
}

static tn_rc send_file(struct tn_target *target, struct tn_io *from, const char *path,
                       uint64_t size, struct tn_err *err)
{
    tn_rc rc = below(target)->vtable->send(below(target), from, path, size, err);
    of(target)->files += rc == TN_OK;
    say_sometimes(of(target));
    return rc;
}

static tn_rc settle(struct tn_target *target, struct tn_err *err)
{
    tn_rc rc = below(target)->vtable->settle(below(target), err);
    say_sometimes(of(target));
    return rc;
}

static void drop(struct tn_target *target)
{
    below(target)->vtable->drop(below(target));
}

static tn_rc publish(struct tn_target *target, const char *path, struct tn_bytes bytes,
                     struct tn_err *err)
{
    tn_rc rc = below(target)->vtable->publish(below(target), path, bytes, err);
    const char *id = strstr(path, SNAPSHOT);
    if (rc == TN_OK && id) {
        of(target)->snapshot = strtoll(id + sizeof SNAPSHOT - 1, NULL, 10);
        of(target)->files++;
    }
    say_sometimes(of(target));
    return rc;
}

static tn_rc replace(struct tn_target *target, const char *path, struct tn_bytes bytes,
                     struct tn_err *err)
{
    return below(target)->vtable->replace(below(target), path, bytes, err);
}

static tn_rc swap(struct tn_target *target, const char *path, struct tn_bytes was,
                  struct tn_bytes bytes, struct tn_err *err)
{
    return below(target)->vtable->swap(below(target), path, was, bytes, err);
}

static tn_rc remove_file(struct tn_target *target, const char *path, struct tn_err *err)
{
    return below(target)->vtable->remove(below(target), path, err);
}

static tn_rc race(struct tn_target *target, struct tn_target_race *race, struct tn_err *err)
{
    return below(target)->vtable->race(below(target), race, err);
}

static const struct tn_target_vtable vtable = {
    .stat = stat_file,
    .modified = modified,
    .read = read_file,
    .fetch = fetch,
    .list = list,
    .send = send_file,
    .settle = settle,
    .drop = drop,
    .publish = publish,
    .replace = replace,
    .swap = swap,
    .remove = remove_file,
    .race = race,
};

/* ---- */

void tn_lake_progress_init(struct tn_lake_progress *progress, struct tn_target *inner,
                           struct tn_clock *clock, int64_t newest)
{
    *progress = (struct tn_lake_progress){
        .inner = inner, .clock = clock, .newest = newest, .terminal = isatty(STDERR_FILENO) != 0};
    progress->target = *inner;
    progress->target.vtable = &vtable;
    progress->next_ns = clock->vtable->monotonic_ns(clock) + TERMINAL_NS;
}

void tn_lake_progress_end(struct tn_lake_progress *progress)
{
    if (progress->said || !progress->terminal) {
        say(progress);
        (void)fputs(progress->terminal ? "\n" : "", stderr);
    }
}
