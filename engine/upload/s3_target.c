#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "upload/s3_target_private.h"

enum {
    TRIES_MAX = 8, /* of a name that nobody knows the state of */
    REST_MS = 1000,
};
#define NS_PER_MS INT64_C(1000000)

/* ---- words ---- */

tn_rc tn_s3_target_checked(tn_rc rc, struct tn_err *err)
{
    if (rc == TN_ABSENT) {
        err->code = TN_IO;
        return TN_IO;
    }
    return rc;
}

/* A file that was sent before has failed: nothing goes on until `drop`. */
static tn_rc failed_before(struct tn_s3_target *target, struct tn_err *err)
{
    target->trouble = target->failure_trouble;
    if (target->failed != TN_OK) {
        *err = target->failure;
    }
    return tn_s3_target_checked(target->failed, err);
}

/* ---- questions ---- */

static tn_rc find(struct tn_target *base, const char *path, uint64_t *size, struct tn_err *err)
{
    struct tn_s3_target *target = tn_s3_target_of(base);
    const struct tn_s3_job job = {.request = {.verb = TN_S3_HEAD}};
    struct tn_s3_link *link = NULL;
    char key[TN_S3_NAME_MAX];
    tn_rc rc = tn_s3_target_key(target, path, key, err);
    if (rc == TN_OK) {
        rc = tn_s3_target_look(target, key, &job, &link, err);
    }
    if (rc == TN_OK) {
        *size = link->exchange.answer.size;
    }
    return rc;
}

static tn_rc modified(struct tn_target *base, const char *path, int64_t *ms, struct tn_err *err)
{
    struct tn_s3_target *target = tn_s3_target_of(base);
    const struct tn_s3_job job = {.request = {.verb = TN_S3_HEAD}};
    struct tn_s3_link *link = NULL;
    char key[TN_S3_NAME_MAX];
    tn_rc rc = tn_s3_target_key(target, path, key, err);
    if (rc == TN_OK) {
        rc = tn_s3_target_ask(target, key, &job, &link, err);
    }
    rc = tn_target_if_hidden(rc, err);
    if (rc == TN_OK && link->exchange.answer.modified_ms == 0) {
        rc = tn_err_set(err, TN_UNSUPPORTED, 0, "s3://%s/%s: the store doesn't say how old it is",
                        target->store.bucket, key);
    }
    if (rc == TN_OK) {
        *ms = link->exchange.answer.modified_ms;
    }
    return rc;
}

static tn_rc read_small(struct tn_target *base, const char *path, size_t size_max,
                        struct tn_arena *arena, struct tn_bytes *bytes, struct tn_err *err)
{
    struct tn_s3_target *target = tn_s3_target_of(base);
    const struct tn_s3_job job = {
        .request = {.verb = TN_S3_GET}, .arena = arena, .size_max = size_max};
    struct tn_s3_link *link = NULL;
    char key[TN_S3_NAME_MAX];
    tn_rc rc = tn_s3_target_key(target, path, key, err);
    size_t mark = tn_arena_mark(arena);
    void *nothing = NULL;
    if (rc == TN_OK) {
        rc = tn_s3_target_look(target, key, &job, &link, err);
    }
    if (rc == TN_OK && !link->got.data) {
        rc = tn_arena_need(arena, 1, "an empty file", &nothing, err);
        link->got = (struct tn_bytes){nothing, 0};
    }
    if (rc == TN_OK) {
        *bytes = link->got;
    } else {
        tn_arena_reset(arena, mark);
    }
    return rc;
}

static tn_rc fetch(struct tn_target *base, const char *path, uint64_t first, struct tn_io *to,
                   int file, uint64_t *got, struct tn_err *err)
{
    struct tn_s3_target *target = tn_s3_target_of(base);
    const struct tn_s3_job job = {
        .request = {.verb = TN_S3_GET}, .to = to, .file = file, .first = first};
    struct tn_s3_link *link = NULL;
    char key[TN_S3_NAME_MAX];
    *got = 0;
    tn_rc rc = tn_s3_target_key(target, path, key, err);
    if (rc == TN_OK) {
        rc = tn_s3_target_ask(target, key, &job, &link, err);
    }
    rc = tn_target_if_hidden(rc, err);
    if (link) {
        *got = link->appended;
    }
    if (rc == TN_CONFLICT) { /* the etag's condition */
        return tn_err_set(err, TN_IO, 0, "s3://%s/%s: it has changed meanwhile",
                          target->store.bucket, key);
    }
    return rc;
}

/* ---- files ---- */

static tn_rc open_file(struct tn_io *from, const char *path, uint64_t size, int *file,
                       struct tn_err *err)
{
    uint64_t found = 0;
    tn_rc rc = from->vtable->open(from, path, file, &found, err);
    if (rc == TN_OK && found != size) {
        from->vtable->close(from, *file);
        return tn_err_set(err, TN_CORRUPT, 0, "%s: %" PRIu64 " bytes, it should have %" PRIu64,
                          path, found, size);
    }
    return rc;
}

/* From now on the file is the link's. */
static tn_rc send_whole(struct tn_s3_target *target, struct tn_io *from, int file, const char *key,
                        uint64_t size, struct tn_err *err)
{
    const struct tn_s3_job job = {
        .kind = TN_S3_JOB_FILE,
        .request = {.verb = TN_S3_PUT, .body_size = size, .if_absent = true},
        .from = from,
        .file = file,
    };
    struct tn_s3_link *link = NULL;
    tn_rc rc = tn_s3_target_free_link(target, &link, err);
    if (rc == TN_OK) {
        rc = failed_before(target, err);
    }
    if (rc != TN_OK) {
        from->vtable->close(from, file);
        return rc;
    }
    tn_s3_link_start(link, &job, key);
    return tn_s3_target_turn(target, err); /* so that it begins */
}

static tn_rc send(struct tn_target *base, struct tn_io *from, const char *path, uint64_t size,
                  struct tn_err *err)
{
    struct tn_s3_target *target = tn_s3_target_of(base);
    char key[TN_S3_NAME_MAX];
    int file = -1;
    tn_rc rc = tn_s3_target_key(target, path, key, err);
    if (rc == TN_OK) {
        rc = failed_before(target, err);
    }
    if (rc == TN_OK) {
        rc = open_file(from, path, size, &file, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    if (size <= (uint64_t)2 * target->part_size) {
        return tn_s3_target_checked(send_whole(target, from, file, key, size, err), err);
    }
    rc = tn_s3_parts_send(target, from, file, key, size, err);
    from->vtable->close(from, file);
    return tn_s3_target_checked(rc, err);
}

static tn_rc settle(struct tn_target *base, struct tn_err *err)
{
    struct tn_s3_target *target = tn_s3_target_of(base);
    tn_rc rc = tn_s3_target_wait(target, TN_S3_JOB_FILE, err);
    if (rc == TN_OK) {
        rc = failed_before(target, err);
    }
    if (rc == TN_OK) {
        tn_s3_parts_clean(target);
    }
    return tn_s3_target_checked(rc, err);
}

static void drop(struct tn_target *base)
{
    struct tn_s3_target *target = tn_s3_target_of(base);
    tn_s3_target_cancel(target, TN_S3_JOB_FILE);
    tn_s3_target_cancel(target, TN_S3_JOB_PART);
    tn_s3_target_cancel(target, TN_S3_JOB_ASK);
    tn_s3_parts_drop(target);
    target->failed = TN_OK;
    target->failure_trouble = TN_S3_TROUBLE_NONE;
}

/* ---- small files ---- */

static struct tn_s3_job put_job(struct tn_bytes bytes)
{
    return (struct tn_s3_job){.request = {.verb = TN_S3_PUT, .body_size = bytes.size},
                              .body = bytes};
}

/* What lies at a name, compared with two texts; a text without data is like nothing. */
static tn_rc compare(struct tn_s3_target *target, const char *key, struct tn_bytes first,
                     struct tn_bytes second, struct tn_s3_link **link, struct tn_err *err)
{
    const struct tn_s3_job job = {.request = {.verb = TN_S3_GET}, .alike = {first, second}};
    tn_rc rc = tn_s3_target_look(target, key, &job, link, err);
    for (int i = 0; rc == TN_OK && i < 2; i++) {
        (*link)->same[i] = (*link)->same[i] && job.alike[i].data &&
                           (*link)->exchange.answer.size == job.alike[i].size;
    }
    return rc;
}

static tn_rc other(const struct tn_s3_target *target, const char *key, struct tn_err *err)
{
    return tn_err_set(err, TN_CONFLICT, 0, "s3://%s/%s: another one is there", target->store.bucket,
                      key);
}

/* A put that must happen once: what the name shows decides. `again` is set when it shows what was
 * there before. */
static tn_rc put_once(struct tn_s3_target *target, const char *key, const struct tn_s3_job *put,
                      struct tn_bytes was, bool *again, struct tn_err *err)
{
    struct tn_s3_link *link = NULL;
    *again = false;
    tn_rc rc = tn_s3_target_ask(target, key, put, &link, err);
    if (rc == TN_OK || rc == TN_CANCELED || !tn_s3_link_is_open(link)) {
        return rc;
    }
    bool unknown = link->verdict == TN_S3_UNKNOWN;
    struct tn_err cause = *err;
    enum tn_s3_trouble trouble = link->trouble;
    rc = compare(target, key, put->body, was, &link, err);
    if (tn_target_is_hidden(rc, err)) {
        *again = unknown;
        rc = tn_target_if_hidden(rc, err); /* it may be there, and not for us to read */
    }
    if (rc == TN_OK) {
        *again = unknown && link->same[1] && !link->same[0];
        rc = link->same[0] ? TN_OK : other(target, key, err);
    } else if (rc == TN_ABSENT) {
        *again = !was.data;
        rc = other(target, key, err);
    }
    if (*again) {
        *err = cause;
        target->trouble = trouble;
        err->code = TN_IO;
        return TN_IO;
    }
    return rc;
}

static void set_deadline(struct tn_s3_target *target, size_t size)
{
    uint32_t patience = target->patience_ms < TN_S3_TARGET_PATIENCE_MS ? target->patience_ms
                                                                       : TN_S3_TARGET_PATIENCE_MS;
    target->deadline_ns = tn_s3_now_ns(target) + (patience + (int64_t)size) * NS_PER_MS;
}

static tn_rc publish(struct tn_target *base, const char *path, struct tn_bytes bytes,
                     struct tn_err *err)
{
    struct tn_s3_target *target = tn_s3_target_of(base);
    char key[TN_S3_NAME_MAX];
    bool again = true;
    tn_rc rc = tn_s3_target_key(target, path, key, err);
    if (rc == TN_OK) {
        rc = failed_before(target, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    set_deadline(target, bytes.size);
    for (uint32_t tries = 0; again && tries < TRIES_MAX; tries++) {
        struct tn_s3_job job = put_job(bytes);
        job.request.if_absent = true;
        job.pause_ms = tn_s3_target_pause(target, tries);
        rc = put_once(target, key, &job, (struct tn_bytes){NULL, 0}, &again, err);
    }
    target->deadline_ns = 0;
    return tn_s3_target_checked(rc, err);
}

static tn_rc replace(struct tn_target *base, const char *path, struct tn_bytes bytes,
                     struct tn_err *err)
{
    struct tn_s3_target *target = tn_s3_target_of(base);
    const struct tn_s3_job job = put_job(bytes);
    struct tn_s3_link *link = NULL;
    char key[TN_S3_NAME_MAX];
    tn_rc rc = tn_s3_target_key(target, path, key, err);
    if (rc == TN_OK) {
        rc = tn_s3_target_ask(target, key, &job, &link, err);
    }
    return tn_s3_target_checked(rc, err);
}

/* One round of a swap: what is there, and then ours in its place. */
static tn_rc swap_once(struct tn_s3_target *target, const char *key, struct tn_bytes was,
                       struct tn_s3_job *job, bool *again, struct tn_err *err)
{
    struct tn_s3_link *link = NULL;
    char etag[TN_S3_ETAG_SIZE];
    *again = false;
    tn_rc rc = compare(target, key, job->body, was, &link, err);
    rc = tn_target_if_hidden(rc, err);
    if (rc == TN_ABSENT) {
        return other(target, key, err);
    }
    if (rc != TN_OK || link->same[0]) { /* ours: a try before was heard */
        return rc;
    }
    if (!link->same[1]) {
        return other(target, key, err);
    }
    memcpy(etag, link->exchange.answer.etag, sizeof etag);
    job->request.if_match = etag;
    return put_once(target, key, job, was, again, err);
}

static tn_rc swap(struct tn_target *base, const char *path, struct tn_bytes was,
                  struct tn_bytes bytes, struct tn_err *err)
{
    struct tn_s3_target *target = tn_s3_target_of(base);
    char key[TN_S3_NAME_MAX];
    bool again = true;
    if (!was.data) {
        return publish(base, path, bytes, err);
    }
    tn_rc rc = tn_s3_target_key(target, path, key, err);
    if (rc != TN_OK) {
        return rc;
    }
    for (uint32_t tries = 0; again && tries < TRIES_MAX; tries++) {
        struct tn_s3_job job = put_job(bytes);
        job.pause_ms = tn_s3_target_pause(target, tries);
        rc = swap_once(target, key, was, &job, &again, err);
    }
    return tn_s3_target_checked(rc, err);
}

static tn_rc remove_file(struct tn_target *base, const char *path, struct tn_err *err)
{
    struct tn_s3_target *target = tn_s3_target_of(base);
    const struct tn_s3_job job = {.request = {.verb = TN_S3_DELETE}};
    struct tn_s3_link *link = NULL;
    char key[TN_S3_NAME_MAX];
    tn_rc rc = tn_s3_target_key(target, path, key, err);
    if (rc == TN_OK) {
        rc = tn_s3_target_ask(target, key, &job, &link, err);
    }
    return tn_s3_target_checked(rc, err);
}

static tn_rc race(struct tn_target *base, struct tn_target_race *race, struct tn_err *err)
{
    struct tn_s3_target *target = tn_s3_target_of(base);
    char key[TN_S3_NAME_MAX];
    tn_rc rc = tn_s3_target_key(target, race->path, key, err);
    return tn_s3_target_checked(rc == TN_OK ? tn_s3_target_race(target, key, race, err) : rc, err);
}

static const struct tn_target_vtable vtable = {
    .stat = find,
    .modified = modified,
    .read = read_small,
    .fetch = fetch,
    .list = tn_s3_target_list,
    .send = send,
    .settle = settle,
    .drop = drop,
    .publish = publish,
    .replace = replace,
    .swap = swap,
    .remove = remove_file,
    .race = race,
    .ask = tn_s3_target_many,
    .walk = tn_s3_target_walk,
};

/* ---- open and close ---- */

static uint32_t links_of(uint32_t links)
{
    return links == 0                       ? TN_S3_TARGET_LINKS
           : links < TN_S3_TARGET_LINKS_MAX ? links
                                            : TN_S3_TARGET_LINKS_MAX;
}

size_t tn_s3_target_size(uint32_t links)
{
    size_t link = sizeof(struct tn_s3_link) + TN_S3_OUT_SIZE + TN_S3_IN_SIZE + TN_HTTP_HEAD_SIZE;
    size_t memo = TN_S3_MEMO_MAX * sizeof(struct tn_s3_memo_entry) + TN_S3_MEMO_SIZE +
                  tn_set_size(TN_S3_PAGE_ROWS);
    return sizeof(struct tn_s3_target) + links_of(links) * (link + 64) + TN_S3_SCRATCH_SIZE +
           (size_t)TN_S3_TARGET_PARTS_MAX * TN_S3_ETAG_SIZE + TN_S3_UPLOAD_TEXT_SIZE + memo +
           2 * TN_S3_CREDENTIALS_SIZE + 256;
}

static void nothing(struct tn_request *request)
{
    (void)request;
}

static void init_link(struct tn_s3_link *link, struct tn_s3_target *target, unsigned char *memory)
{
    link->target = target;
    link->ended = true;
    link->opening.done = nothing;
    link->reading.done = nothing;
    link->writing.done = nothing;
    link->timer.done = nothing;
    tn_buf_init(&link->out, memory, TN_S3_OUT_SIZE);
    link->in = memory + TN_S3_OUT_SIZE;
    link->head = link->in + TN_S3_IN_SIZE;
}

static void carve(struct tn_s3_target *target, struct tn_arena *arena)
{
    struct tn_err ignored;
    tn_rc rc;
    void *scratch = tn_arena_take_raw(arena, TN_S3_SCRATCH_SIZE);
    target->links = tn_arena_take(arena, target->link_count * sizeof *target->links);
    target->upload.etags =
        tn_arena_take(arena, (size_t)TN_S3_TARGET_PARTS_MAX * sizeof *target->upload.etags);
    target->upload.text = tn_arena_take_raw(arena, TN_S3_UPLOAD_TEXT_SIZE);
    target->memo.entries = tn_arena_take(arena, TN_S3_MEMO_MAX * sizeof *target->memo.entries);
    target->memo.text = tn_arena_take_raw(arena, TN_S3_MEMO_SIZE);
    target->credentials.memory = tn_arena_take_raw(arena, (size_t)2 * TN_S3_CREDENTIALS_SIZE);
    TN_CHECK(scratch && target->links && target->upload.etags && target->upload.text &&
             target->memo.entries && target->memo.text && target->credentials.memory);
    tn_arena_init(&target->scratch, scratch, TN_S3_SCRATCH_SIZE);
    rc = tn_set_init(&target->rows, TN_S3_PAGE_ROWS, arena, &ignored);
    TN_CHECK(rc == TN_OK);
    for (uint32_t i = 0; i < target->link_count; i++) {
        void *memory = tn_arena_take_raw(arena, TN_S3_OUT_SIZE + TN_S3_IN_SIZE + TN_HTTP_HEAD_SIZE);
        TN_CHECK(memory);
        init_link(&target->links[i], target, memory);
    }
}

static tn_rc init_store(struct tn_s3_target *target, const struct tn_s3_target_spec *spec,
                        struct tn_err *err)
{
    struct tn_s3_options options = *spec->options;
    tn_rc rc = tn_s3_place_parse(&target->place, spec->where, err);
    if (rc == TN_OK) {
        rc = tn_s3_credentials_load(&target->credentials, &options, err);
    }
    if (rc == TN_OK) {
        rc = tn_s3_store_init(&target->store, &options, target->place.bucket, err);
    }
    if (rc == TN_OK && target->store.tls && !spec->tls) {
        rc = tn_err_set(err, TN_INVALID, 0, "%s: https without anybody to trust", spec->where);
    }
    return rc;
}

tn_rc tn_s3_target_open(const struct tn_s3_target_spec *spec, struct tn_target **target,
                        struct tn_err *err)
{
    size_t mark = tn_arena_mark(spec->arena);
    size_t size = tn_s3_target_size(spec->links);
    if (tn_arena_free(spec->arena) < size) {
        return tn_err_set(err, TN_AGAIN, 0, "%s needs %zu bytes, %zu are free", spec->where, size,
                          tn_arena_free(spec->arena));
    }
    struct tn_s3_target *made = tn_arena_take(spec->arena, sizeof *made);
    TN_CHECK(made);
    made->target = (struct tn_target){.vtable = &vtable, .name = spec->where};
    made->net = spec->net;
    made->clock = spec->clock;
    made->tls = spec->tls;
    made->link_count = links_of(spec->links);
    made->patience_ms = spec->patience_ms > 0 ? spec->patience_ms : TN_S3_TARGET_PATIENCE_MS;
    made->part_size = spec->part_size > 0 ? spec->part_size : TN_S3_TARGET_PART_SIZE;
    atomic_init(&made->rate, spec->rate);
    made->pace_ns = tn_s3_now_ns(made);
    carve(made, spec->arena);
    made->memo.io = spec->uploads_io;
    made->memo.path = spec->uploads_path;
    made->credentials.io = spec->credentials_io;
    made->credentials.path = spec->credentials_path;
    made->credentials.profile = spec->credentials_profile ? spec->credentials_profile : "default";
    tn_rc rc = init_store(made, spec, err);
    if (rc == TN_OK) {
        *target = &made->target;
    } else {
        tn_arena_reset(spec->arena, mark);
    }
    return rc;
}

void tn_s3_target_close(struct tn_target *target)
{
    struct tn_s3_target *s3 = tn_s3_target_of(target);
    struct tn_err ignored;
    drop(target);
    target->stop = NULL;
    for (uint32_t i = 0; i < s3->link_count; i++) {
        tn_s3_link_cancel(&s3->links[i]);
    }
    int64_t end_ns = tn_s3_now_ns(s3) + REST_MS * NS_PER_MS;
    tn_rc rc = TN_OK;
    while (rc == TN_OK && s3->net->under_way > 0 && tn_s3_now_ns(s3) < end_ns) {
        rc = tn_s3_target_turn(s3, &ignored);
    }
    (void)tn_net_rest(s3->net, NULL, REST_MS);
}

void tn_s3_target_set_rate(struct tn_target *target, uint32_t rate)
{
    atomic_store(&tn_s3_target_of(target)->rate, rate);
}

enum tn_s3_trouble tn_s3_target_trouble(const struct tn_target *target)
{
    return ((const struct tn_s3_target *)(const void *)target)->trouble;
}

int64_t tn_s3_target_clock_offset_ms(const struct tn_target *target)
{
    return ((const struct tn_s3_target *)(const void *)target)->store.clock_offset_ms;
}

const char *tn_s3_trouble_text(enum tn_s3_trouble trouble)
{
    static const char *const texts[] = {
        [TN_S3_TROUBLE_NONE] = "none",
        [TN_S3_TROUBLE_NETWORK] = "network",
        [TN_S3_TROUBLE_STORE] = "store",
        [TN_S3_TROUBLE_PERMISSION] = "permission",
        [TN_S3_TROUBLE_CREDENTIALS] = "credentials",
        [TN_S3_TROUBLE_CLOCK] = "clock",
        [TN_S3_TROUBLE_CERTIFICATE] = "certificate",
        [TN_S3_TROUBLE_QUOTA] = "quota",
    };
    return texts[trouble];
}
