/* counting: a target before another one that counts what an object store would be asked, looks for
 * files that are sent twice or replaced, and lets a test do something in between. */
#pragma once

#include <errno.h>

#include "check.h"
#include "upload/target.h"

struct counting {
    struct tn_target target; /* first */
    struct tn_target *inner;
    uint64_t sent_again; /* files that were there */
    uint64_t replaced;   /* by other bytes, but hints */
    bool keeps;          /* nothing may be removed */
    void (*before)(void *user, enum tn_target_verb verb, const char *path); /* or NULL */
    void *user;
    bool hides;         /* nobody is told what it lacks, nor what is in a folder */
    const char *denied; /* a name that can't be read; or NULL */
};

static struct counting *counting_of(struct tn_target *target)
{
    return (struct counting *)(void *)target;
}

static struct tn_target *counting_ask(struct tn_target *target, enum tn_target_verb verb,
                                      const char *path)
{
    struct counting *c = counting_of(target);
    target->counts.requests[verb]++;
    if (c->before) {
        c->before(c->user, verb, path);
    }
    return c->inner;
}

static tn_rc counting_hide(struct tn_target *target, const char *path, tn_rc rc, struct tn_err *err)
{
    const struct counting *c = counting_of(target);
    bool denied = c->denied && strcmp(path, c->denied) == 0;
    return denied || (c->hides && rc == TN_ABSENT)
               ? tn_err_set(err, TN_ABSENT, EACCES, "%s: permission denied", path)
               : rc;
}

static tn_rc counting_stat(struct tn_target *target, const char *path, uint64_t *size,
                           struct tn_err *err)
{
    struct tn_target *inner = counting_ask(target, TN_TARGET_HEAD, path);
    return counting_hide(target, path, inner->vtable->stat(inner, path, size, err), err);
}

static tn_rc counting_read(struct tn_target *target, const char *path, size_t size_max,
                           struct tn_arena *arena, struct tn_bytes *bytes, struct tn_err *err)
{
    struct tn_target *inner = counting_ask(target, TN_TARGET_GET, path);
    return counting_hide(target, path,
                         inner->vtable->read(inner, path, size_max, arena, bytes, err), err);
}

static tn_rc counting_modified(struct tn_target *target, const char *path, int64_t *ms,
                               struct tn_err *err)
{
    struct tn_target *inner = counting_ask(target, TN_TARGET_HEAD, path);
    return inner->vtable->modified(inner, path, ms, err);
}

static tn_rc counting_fetch(struct tn_target *target, const char *path, uint64_t first,
                            struct tn_io *to, int file, uint64_t *got, struct tn_err *err)
{
    struct tn_target *inner = counting_ask(target, TN_TARGET_GET, path);
    return inner->vtable->fetch(inner, path, first, to, file, got, err);
}

static tn_rc counting_list(struct tn_target *target, const char *path, tn_io_name_fn *each,
                           void *user, struct tn_err *err)
{
    struct tn_target *inner = counting_ask(target, TN_TARGET_LIST, path);
    if (counting_of(target)->hides) {
        return tn_err_set(err, TN_IO, EACCES, "list %s: permission denied", path);
    }
    return inner->vtable->list(inner, path, each, user, err);
}

static tn_rc counting_send(struct tn_target *target, struct tn_io *from, const char *path,
                           uint64_t size, struct tn_err *err)
{
    struct tn_target *inner = counting_ask(target, TN_TARGET_PUT, path);
    uint64_t there;
    if (inner->vtable->stat(inner, path, &there, err) == TN_OK) {
        counting_of(target)->sent_again++;
    }
    return inner->vtable->send(inner, from, path, size, err);
}

static tn_rc counting_settle(struct tn_target *target, struct tn_err *err)
{
    struct tn_target *inner = counting_of(target)->inner;
    return inner->vtable->settle(inner, err);
}

static void counting_drop(struct tn_target *target)
{
    struct tn_target *inner = counting_of(target)->inner;
    inner->vtable->drop(inner);
}

static tn_rc counting_publish(struct tn_target *target, const char *path, struct tn_bytes bytes,
                              struct tn_err *err)
{
    struct tn_target *inner = counting_ask(target, TN_TARGET_PUT, path);
    return inner->vtable->publish(inner, path, bytes, err);
}

static tn_rc counting_replace(struct tn_target *target, const char *path, struct tn_bytes bytes,
                              struct tn_err *err)
{
    struct tn_target *inner = counting_ask(target, TN_TARGET_PUT, path);
    counting_of(target)->replaced +=
        strcmp(strrchr(path, '/'), "/LATEST") != 0 && strcmp(strrchr(path, '/'), "/EARLIEST") != 0;
    return inner->vtable->replace(inner, path, bytes, err);
}

static tn_rc counting_swap(struct tn_target *target, const char *path, struct tn_bytes was,
                           struct tn_bytes bytes, struct tn_err *err)
{
    struct tn_target *inner = counting_ask(target, TN_TARGET_PUT, path);
    return inner->vtable->swap(inner, path, was, bytes, err);
}

static tn_rc counting_remove(struct tn_target *target, const char *path, struct tn_err *err)
{
    if (counting_of(target)->keeps) {
        return tn_err_set(err, TN_IO, EACCES, "remove %s: permission denied", path);
    }
    struct tn_target *inner = counting_ask(target, TN_TARGET_DELETE, path);
    return inner->vtable->remove(inner, path, err);
}

static tn_rc counting_race(struct tn_target *target, struct tn_target_race *race,
                           struct tn_err *err)
{
    struct tn_target *inner = counting_ask(target, TN_TARGET_PUT, race->path);
    return inner->vtable->race(inner, race, err);
}

static const struct tn_target_vtable counting_vtable = {
    .stat = counting_stat,
    .modified = counting_modified,
    .read = counting_read,
    .fetch = counting_fetch,
    .list = counting_list,
    .send = counting_send,
    .settle = counting_settle,
    .drop = counting_drop,
    .publish = counting_publish,
    .replace = counting_replace,
    .swap = counting_swap,
    .remove = counting_remove,
    .race = counting_race,
};
