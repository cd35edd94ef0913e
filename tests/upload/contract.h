/* contract: what every target promises (upload/target.h), asked of one that is empty. */
#pragma once

#include "check.h"
#include "upload/target.h"

struct contract {
    struct tn_target *target;
    struct tn_io *from; /* may be written */
    struct tn_arena arena;
    unsigned char memory[64 * 1024];
};

static __attribute__((unused, noinline)) void contract_put(struct contract *c, const char *path,
                                                           const char *text)
{
    struct tn_err err;
    char dir[256];
    (void)snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(path, '/') - path), path);
    tn_rc rc = c->from->vtable->make_dir(c->from, dir, &err);
    CHECK_OK(rc, err);
    rc = tn_io_write_new(c->from, path, tn_bytes_of(text), &err);
    CHECK_OK(rc, err);
}

static __attribute__((unused, noinline)) bool contract_shows(struct contract *c, const char *path,
                                                             const char *text)
{
    struct tn_err err;
    struct tn_bytes bytes;
    tn_arena_init(&c->arena, c->memory, sizeof c->memory);
    tn_rc rc = c->target->vtable->read(c->target, path, 4096, &c->arena, &bytes, &err);
    CHECK(rc == TN_OK || rc == TN_ABSENT);
    return rc == TN_OK ? text && tn_bytes_equal(bytes, tn_bytes_of(text)) : text == NULL;
}

/* Sent and settled: what an asynchronous target says at last. */
static __attribute__((unused, noinline)) tn_rc contract_bring(struct contract *c, const char *path,
                                                              uint64_t size, struct tn_err *err)
{
    tn_rc rc = c->target->vtable->send(c->target, c->from, path, size, err);
    if (rc == TN_OK) {
        rc = c->target->vtable->settle(c->target, err);
    }
    if (rc != TN_OK) {
        c->target->vtable->drop(c->target);
        c->target->vtable->drop(c->target);
    }
    return rc;
}

static __attribute__((unused, noinline)) void contract_files(struct contract *c)
{
    struct tn_target *t = c->target;
    struct tn_err err;
    uint64_t size;
    contract_put(c, "db.db/t/a=x %2F/one", "first");
    contract_put(c, "db.db/t/a=x %2F/empty", "");
    tn_rc rc = contract_bring(c, "db.db/t/a=x %2F/one", 5, &err);
    CHECK_OK(rc, err);
    rc = contract_bring(c, "db.db/t/a=x %2F/empty", 0, &err);
    CHECK_OK(rc, err);
    CHECK(contract_shows(c, "db.db/t/a=x %2F/one", "first"));
    CHECK(contract_shows(c, "db.db/t/a=x %2F/empty", ""));
    rc = t->vtable->stat(t, "db.db/t/a=x %2F/one", &size, &err);
    CHECK_OK(rc, err);
    CHECK(size == 5);
    CHECK(t->vtable->stat(t, "db.db/t/none", &size, &err) == TN_ABSENT);
    CHECK(t->vtable->stat(t, "none/none/none", &size, &err) == TN_ABSENT);
    /* again, and what isn't so */
    rc = contract_bring(c, "db.db/t/a=x %2F/one", 5, &err);
    CHECK_OK(rc, err);
    CHECK(contract_bring(c, "db.db/t/gone", 5, &err) == TN_ABSENT);
    CHECK(strstr(err.text, "db.db/t/gone") != NULL);
    contract_put(c, "db.db/t/short", "sh");
    CHECK(contract_bring(c, "db.db/t/short", 5, &err) == TN_CORRUPT);
    CHECK(strstr(err.text, "db.db/t/short") != NULL);
    rc = c->from->vtable->unlink(c->from, "db.db/t/a=x %2F/one", &err);
    CHECK_OK(rc, err);
    contract_put(c, "db.db/t/a=x %2F/one", "another");
    CHECK(contract_bring(c, "db.db/t/a=x %2F/one", 7, &err) == TN_CONFLICT);
    CHECK(contract_shows(c, "db.db/t/a=x %2F/one", "first"));
}

static __attribute__((unused, noinline)) void contract_small_files(struct contract *c)
{
    const struct tn_target_vtable *v = c->target->vtable;
    struct tn_target *t = c->target;
    static const char *const path = "db.db/t/snapshot/snapshot-1";
    static const char *const hint = "db.db/t/snapshot/LATEST";
    static const char *const owner = ".tarn/db.db/t/owner";
    struct tn_bytes none = {NULL, 0};
    struct tn_err err;
    CHECK(contract_shows(c, path, NULL));
    tn_rc rc = v->publish(t, path, tn_bytes_of("one"), &err);
    CHECK_OK(rc, err);
    rc = v->publish(t, path, tn_bytes_of("one"), &err);
    CHECK_OK(rc, err);
    CHECK(v->publish(t, path, tn_bytes_of("two"), &err) == TN_CONFLICT);
    CHECK(contract_shows(c, path, "one"));
    rc = v->replace(t, hint, tn_bytes_of("1"), &err);
    CHECK_OK(rc, err);
    rc = v->replace(t, hint, tn_bytes_of("22"), &err);
    CHECK_OK(rc, err);
    CHECK(contract_shows(c, hint, "22"));
    /* swap: from nothing, from what is there, from what isn't there any more */
    CHECK(v->swap(t, owner, tn_bytes_of("a"), tn_bytes_of("b"), &err) == TN_CONFLICT);
    rc = v->swap(t, owner, none, tn_bytes_of("a"), &err);
    CHECK_OK(rc, err);
    CHECK(v->swap(t, owner, none, tn_bytes_of("b"), &err) == TN_CONFLICT);
    rc = v->swap(t, owner, tn_bytes_of("a"), tn_bytes_of("bb"), &err);
    CHECK_OK(rc, err);
    rc = v->swap(t, owner, tn_bytes_of("a"), tn_bytes_of("bb"), &err);
    CHECK_OK(rc, err);
    CHECK(v->swap(t, owner, tn_bytes_of("a"), tn_bytes_of("c"), &err) == TN_CONFLICT);
    CHECK(contract_shows(c, owner, "bb"));
}

/* What `fetch` brings from byte `first` on. */
static __attribute__((unused, noinline)) bool contract_fetches(struct contract *c, const char *path,
                                                               uint64_t first, const char *text)
{
    static uint32_t count;
    char name[32];
    struct tn_bytes bytes;
    struct tn_err err;
    uint64_t got;
    int file;
    (void)snprintf(name, sizeof name, "fetched-%u", (unsigned)count++);
    tn_rc rc = c->from->vtable->create(c->from, name, &file, &err);
    CHECK_OK(rc, err);
    rc = c->target->vtable->fetch(c->target, path, first, c->from, file, &got, &err);
    c->from->vtable->close(c->from, file);
    CHECK(rc == TN_OK || (rc == TN_ABSENT && got == 0));
    if (rc == TN_ABSENT) {
        return text == NULL;
    }
    tn_arena_init(&c->arena, c->memory, sizeof c->memory);
    rc = tn_io_read_all(c->from, name, 4096, &c->arena, &bytes, &err);
    CHECK_OK(rc, err);
    return text && got == bytes.size && tn_bytes_equal(bytes, tn_bytes_of(text));
}

static __attribute__((unused, noinline)) void contract_fetch(struct contract *c)
{
    struct tn_target *t = c->target;
    struct tn_err err;
    int64_t ms = 0;
    contract_put(c, "db.db/t/fetched", "0123456789");
    contract_put(c, "db.db/t/nothing", "");
    tn_rc rc = contract_bring(c, "db.db/t/fetched", 10, &err);
    CHECK_OK(rc, err);
    rc = contract_bring(c, "db.db/t/nothing", 0, &err);
    CHECK_OK(rc, err);
    CHECK(contract_fetches(c, "db.db/t/fetched", 0, "0123456789"));
    CHECK(contract_fetches(c, "db.db/t/fetched", 7, "789"));
    CHECK(contract_fetches(c, "db.db/t/fetched", 10, ""));
    CHECK(contract_fetches(c, "db.db/t/nothing", 0, ""));
    CHECK(contract_fetches(c, "db.db/t/none", 0, NULL));
    CHECK(contract_fetches(c, "db.db/t/none", 3, NULL));
    rc = t->vtable->modified(t, "db.db/t/fetched", &ms, &err);
    CHECK_OK(rc, err);
    CHECK(ms > INT64_C(1500000000000));
    CHECK(t->vtable->modified(t, "db.db/t/none", &ms, &err) == TN_ABSENT);
}

static __attribute__((unused, noinline)) void contract_remove(struct contract *c)
{
    struct tn_target *t = c->target;
    struct tn_err err;
    contract_put(c, "db.db/t/removed", "text");
    tn_rc rc = contract_bring(c, "db.db/t/removed", 4, &err);
    CHECK_OK(rc, err);
    rc = t->vtable->remove(t, "db.db/t/removed", &err);
    CHECK_OK(rc, err);
    CHECK(contract_shows(c, "db.db/t/removed", NULL));
    rc = t->vtable->remove(t, "db.db/t/removed", &err);
    CHECK_OK(rc, err);
    rc = t->vtable->remove(t, "none/none/none", &err);
    CHECK_OK(rc, err);
    rc = t->vtable->settle(t, &err);
    CHECK_OK(rc, err);
    rc = contract_bring(c, "db.db/t/removed", 4, &err);
    CHECK_OK(rc, err);
    CHECK(contract_shows(c, "db.db/t/removed", "text"));
}

static __attribute__((unused, noinline)) void contract_stop(struct contract *c)
{
    static atomic_bool stop;
    struct tn_err err;
    atomic_store(&stop, true);
    c->target->stop = &stop;
    contract_put(c, "db.db/t/stopped", "text");
    CHECK(contract_bring(c, "db.db/t/stopped", 4, &err) == TN_CANCELED);
    atomic_store(&stop, false);
    CHECK(contract_shows(c, "db.db/t/stopped", NULL));
    tn_rc rc = contract_bring(c, "db.db/t/stopped", 4, &err);
    CHECK_OK(rc, err);
    CHECK(contract_shows(c, "db.db/t/stopped", "text"));
    c->target->stop = NULL;
}
