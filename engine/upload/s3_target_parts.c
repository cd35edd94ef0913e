#include <inttypes.h>
#include <stdio.h>

#include "upload/s3_target_private.h"

enum {
    BEGINNINGS_MAX = 3, /* an upload may be gone, or have parts that it shouldn't */
    COMPLETIONS_MAX = 6,
    DROP_MS = 2000,
    ROUNDS_MAX = 8, /* of giving up strays: there is one for each answer that was lost */
};
#define HOUR_MS      (INT64_C(60) * 60 * 1000)
#define FORGOTTEN_MS (7 * 24 * HOUR_MS)

/* ---- parts ---- */

static uint64_t part_size_of(const struct tn_s3_target *target, uint64_t size)
{
    uint64_t least = (size + TN_S3_TARGET_PARTS_MAX - 1) / TN_S3_TARGET_PARTS_MAX;
    return least > target->part_size ? least : target->part_size;
}

static uint64_t size_of_part(const struct tn_s3_upload *upload, uint32_t part)
{
    uint64_t first = part * upload->part_size;
    uint64_t left = upload->size - first;
    return left < upload->part_size ? left : upload->part_size;
}

static void reset(struct tn_s3_target *target, uint64_t size)
{
    struct tn_s3_upload *upload = &target->upload;
    upload->id[0] = 0;
    upload->kept = false;
    upload->rc = TN_OK;
    upload->size = size;
    upload->part_size = part_size_of(target, size);
    upload->part_count = (uint32_t)((size + upload->part_size - 1) / upload->part_size);
    memset(upload->etags, 0, TN_S3_TARGET_PARTS_MAX * sizeof *upload->etags);
}

static void begin_part(struct tn_s3_upload *upload, struct tn_s3_link *link, struct tn_io *from,
                       int file, const char *key, uint32_t part)
{
    const struct tn_s3_job job = {
        .kind = TN_S3_JOB_PART,
        .request = {.verb = TN_S3_UPLOAD_PART,
                    .body_size = size_of_part(upload, part),
                    .upload_id = upload->id,
                    .part = part + 1},
        .from = from,
        .file = file,
        .first = part * upload->part_size,
    };
    tn_s3_link_start(link, &job, key);
}

/* An upload may take longer than one is remembered that nobody goes on with. */
static void note_work(struct tn_s3_target *target, const char *key)
{
    struct tn_s3_memo_entry *entry = tn_s3_memo_find(&target->memo, key);
    int64_t now_ms = target->clock->vtable->now_ms(target->clock);
    if (entry && now_ms - entry->seen_ms > HOUR_MS) {
        entry->seen_ms = now_ms;
        (void)tn_s3_memo_save(&target->memo);
    }
}

static tn_rc send_parts(struct tn_s3_target *target, struct tn_io *from, int file, const char *key,
                        struct tn_err *err)
{
    struct tn_s3_upload *upload = &target->upload;
    struct tn_s3_link *link = NULL;
    tn_rc rc = TN_OK;
    upload->rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && upload->rc == TN_OK && i < upload->part_count; i++) {
        if (upload->etags[i][0]) {
            continue;
        }
        rc = tn_s3_target_free_link(target, &link, err);
        note_work(target, key);
        if (rc == TN_OK && upload->rc == TN_OK) {
            begin_part(upload, link, from, file, key, i);
        }
    }
    if (rc == TN_OK && upload->rc == TN_OK) {
        rc = tn_s3_target_wait(target, TN_S3_JOB_PART, err);
    }
    tn_s3_target_cancel(target, TN_S3_JOB_PART);
    if (rc == TN_OK && upload->rc != TN_OK) {
        *err = upload->err;
        rc = upload->rc;
        target->trouble = upload->trouble;
    }
    return rc;
}

/* ---- what is there of an upload ---- */

/* A part of another size is sent again. */
static tn_rc take_part(void *user, const struct tn_s3_entry *entry, struct tn_err *err)
{
    struct tn_s3_upload *upload = user;
    (void)err;
    if (entry->part >= 1 && entry->part <= upload->part_count && entry->etag[0] &&
        entry->size == size_of_part(upload, entry->part - 1)) {
        (void)memcpy(upload->etags[entry->part - 1], entry->etag, strlen(entry->etag) + 1);
    }
    return TN_OK;
}

/* `denied`: the caller may not ask. */
static tn_rc find_parts(struct tn_s3_target *target, const char *key, bool *denied,
                        struct tn_err *err)
{
    struct tn_s3_upload *upload = &target->upload;
    struct tn_s3_job job = {
        .request = {
            .verb = TN_S3_LIST_PARTS, .upload_id = upload->id, .each = take_part, .user = upload}};
    struct tn_s3_link *link = NULL;
    bool more = true;
    tn_rc rc = TN_OK;
    while (rc == TN_OK && more) {
        rc = tn_s3_target_ask(target, key, &job, &link, err);
        if (rc == TN_OK) {
            more = link->exchange.answer.more;
            job.request.part = link->exchange.answer.part;
        }
    }
    *denied = rc == TN_IO && tn_s3_link_is_denied(link);
    return rc;
}

static tn_rc abort_upload(struct tn_s3_target *target, const char *key, const char *id,
                          struct tn_err *err)
{
    const struct tn_s3_job job = {.request = {.verb = TN_S3_ABORT_UPLOAD, .upload_id = id}};
    struct tn_s3_link *link = NULL;
    return tn_s3_target_ask(target, key, &job, &link, err);
}

/* ---- uploads that nobody knows of: the answer to their creation was lost ---- */

struct strays {
    struct tn_s3_upload *upload;
    const char *key;
    const char *but; /* an id; "": none */
};

static tn_rc take_stray(void *user, const struct tn_s3_entry *entry, struct tn_err *err)
{
    const struct strays *strays = user;
    struct tn_s3_upload *upload = strays->upload;
    (void)err;
    if (upload->stray_count < TN_S3_STRAYS_MAX && entry->name && entry->upload_id[0] &&
        strcmp(entry->name, strays->key) == 0 && strcmp(entry->upload_id, strays->but) != 0) {
        (void)snprintf(upload->strays[upload->stray_count++], TN_S3_UPLOAD_SIZE, "%s",
                       entry->upload_id);
    }
    return TN_OK;
}

/* All of this name but one. Who may not list or give up leaves them to the bucket's rules. */
static tn_rc give_up_strays(struct tn_s3_target *target, const char *key, const char *but,
                            struct tn_err *err)
{
    struct tn_s3_upload *upload = &target->upload;
    struct strays strays = {upload, key, but};
    const struct tn_s3_job job = {
        .request = {.verb = TN_S3_LIST_UPLOADS, .each = take_stray, .user = &strays}};
    struct tn_s3_link *link = NULL;
    tn_rc rc = TN_OK;
    upload->stray_count = 1;
    for (uint32_t round = 0; rc == TN_OK && upload->stray_count > 0 && round < ROUNDS_MAX;
         round++) {
        upload->stray_count = 0;
        rc = tn_s3_target_ask(target, key, &job, &link, err);
        for (uint32_t i = 0; rc == TN_OK && i < upload->stray_count; i++) {
            rc = abort_upload(target, key, upload->strays[i], err);
        }
    }
    return rc == TN_IO && target->trouble == TN_S3_TROUBLE_PERMISSION ? TN_OK : rc;
}

/* ---- beginnings ---- */

/* An upload of the memo, whether the store lets us or not. */
static void give_up(struct tn_s3_target *target, uint32_t index)
{
    struct tn_s3_memo_entry *entry = &target->memo.entry;
    struct tn_err ignored;
    *entry = target->memo.entries[index];
    if (entry->id[0]) {
        (void)abort_upload(target, entry->key, entry->id, &ignored);
    } else {
        (void)give_up_strays(target, entry->key, "", &ignored);
    }
    tn_s3_memo_remove(&target->memo, entry->key);
}

static uint32_t oldest(const struct tn_s3_memo *memo)
{
    uint32_t found = 0;
    for (uint32_t i = 1; i < memo->count; i++) {
        if (memo->entries[i].seen_ms < memo->entries[found].seen_ms) {
            found = i;
        }
    }
    return found;
}

/* Before it is created, so that one whose answer is lost together with us isn't forgotten. */
static void keep(struct tn_s3_target *target, const char *key)
{
    struct tn_s3_upload *upload = &target->upload;
    struct tn_s3_memo_entry *entry = &target->memo.entry;
    if (target->memo.count == TN_S3_MEMO_MAX) {
        give_up(target, oldest(&target->memo));
    }
    memcpy(entry->key, key, strlen(key) + 1);
    entry->id[0] = 0;
    entry->size = upload->size;
    entry->part_size = upload->part_size;
    entry->seen_ms = target->clock->vtable->now_ms(target->clock);
    upload->kept = tn_s3_memo_add(&target->memo, entry);
}

static void keep_id(struct tn_s3_target *target, const char *key)
{
    struct tn_s3_upload *upload = &target->upload;
    struct tn_s3_memo_entry *entry = tn_s3_memo_find(&target->memo, key);
    if (entry) {
        memcpy(entry->id, upload->id, sizeof entry->id);
        upload->kept = tn_s3_memo_save(&target->memo);
    }
}

static tn_rc create(struct tn_s3_target *target, const char *key, struct tn_err *err)
{
    const struct tn_s3_job job = {.request = {.verb = TN_S3_CREATE_UPLOAD}};
    struct tn_s3_upload *upload = &target->upload;
    struct tn_s3_link *link = NULL;
    keep(target, key);
    memcpy(upload->key, key, strlen(key) + 1);
    tn_rc rc = tn_s3_target_ask(target, key, &job, &link, err);
    if (!link) {
        return rc;
    }
    bool again = link->tries > 0 || link->resent;
    if (rc != TN_OK && !again && tn_s3_link_is_denied(link)) {
        tn_s3_memo_remove(&target->memo, key);
    }
    if (rc != TN_OK) {
        return rc;
    }
    memcpy(upload->id, link->exchange.answer.upload_id, sizeof upload->id);
    if (again) {
        rc = give_up_strays(target, key, upload->id, err);
    }
    if (rc == TN_OK) {
        keep_id(target, key);
    }
    return rc;
}

/* What is there of the upload that was under way before. ABSENT: nothing that is of use. */
static tn_rc resume(struct tn_s3_target *target, const struct tn_s3_memo_entry *entry,
                    struct tn_err *err)
{
    struct tn_s3_upload *upload = &target->upload;
    bool denied = false;
    memcpy(upload->id, entry->id, sizeof upload->id);
    memcpy(upload->key, entry->key, sizeof upload->key);
    upload->kept = true;
    if (!entry->id[0]) {
        tn_rc rc = give_up_strays(target, upload->key, "", err);
        return rc == TN_OK ? TN_ABSENT : rc;
    }
    bool same = entry->size == upload->size && entry->part_size == upload->part_size;
    tn_rc rc = same ? find_parts(target, upload->key, &denied, err) : TN_ABSENT;
    if (!same || denied) {
        rc = abort_upload(target, upload->key, upload->id, err);
        bool left = rc == TN_IO && target->trouble == TN_S3_TROUBLE_PERMISSION;
        return rc == TN_OK || left ? TN_ABSENT : rc;
    }
    return rc;
}

/* The one that was under way before, if it's still there and for the same file. */
static tn_rc begin_upload(struct tn_s3_target *target, const char *key, uint64_t size,
                          struct tn_err *err)
{
    struct tn_s3_memo_entry *entry = tn_s3_memo_find(&target->memo, key);
    reset(target, size);
    if (!entry) {
        return create(target, key, err);
    }
    tn_rc rc = resume(target, entry, err);
    if (rc != TN_ABSENT) {
        return rc;
    }
    tn_s3_memo_remove(&target->memo, key);
    reset(target, size);
    return create(target, key, err);
}

static void forget(struct tn_s3_target *target, const char *key)
{
    target->upload.id[0] = 0;
    tn_s3_memo_remove(&target->memo, key);
}

/* Given up, since it's of no use any more. */
static void discard(struct tn_s3_target *target, const char *key)
{
    struct tn_err ignored;
    (void)abort_upload(target, key, target->upload.id, &ignored);
    forget(target, key);
}

/* ---- the name ---- */

/* OK: a file of that size. */
static tn_rc look(struct tn_s3_target *target, const char *key, uint64_t size, struct tn_err *err)
{
    const struct tn_s3_job job = {.request = {.verb = TN_S3_HEAD}};
    struct tn_s3_link *link = NULL;
    tn_rc rc = tn_s3_target_ask(target, key, &job, &link, err);
    if (rc == TN_OK && link->exchange.answer.size != size) {
        return tn_err_set(err, TN_CONFLICT, 0,
                          "put s3://%s/%.120s: there is one of %" PRIu64
                          " bytes, ours has %" PRIu64,
                          target->store.bucket, key, link->exchange.answer.size, size);
    }
    return rc;
}

static tn_rc completion(struct tn_s3_upload *upload, struct tn_bytes *body, struct tn_err *err)
{
    struct tn_buf text;
    tn_buf_init(&text, upload->text, TN_S3_UPLOAD_TEXT_SIZE);
    for (uint32_t i = 0; i < upload->part_count; i++) {
        upload->parts[i] = (struct tn_s3_part){i + 1, upload->etags[i]};
    }
    tn_s3_parts(&text, upload->parts, upload->part_count);
    *body = tn_buf_bytes(&text);
    return text.overflow ? tn_err_set(err, TN_UNSUPPORTED, 0, "the store's ETags are too long")
                         : TN_OK;
}

/* After a completion whose outcome isn't sure: OK, the file is there; AGAIN, the upload is; ABSENT,
 * neither. `gone`: that the store knows no such upload; `taken`: that the name is. */
static tn_rc look_after(struct tn_s3_target *target, const char *key, bool gone, bool taken,
                        struct tn_err *err)
{
    bool denied = false;
    tn_rc rc = look(target, key, target->upload.size, err);
    if (rc == TN_OK) {
        discard(target, key); /* it may be another's upload that was completed */
    }
    if (taken) {
        rc = tn_target_if_hidden(rc, err);
    }
    if (rc != TN_ABSENT) {
        return rc;
    }
    rc = find_parts(target, key, &denied, err);
    if (denied) {
        rc = gone ? TN_ABSENT : TN_OK;
    }
    return rc == TN_OK
               ? tn_err_set(err, TN_AGAIN, 0, "s3://%s/%.120s: its parts don't become a file",
                            target->store.bucket, key)
               : rc;
}

/* A part that isn't what it was: from the start. */
static bool is_of_parts(const struct tn_s3_link *link)
{
    return link->verdict == TN_S3_WRONG &&
           strncmp(link->exchange.answer.code, "InvalidPart", 11) == 0;
}

/* ABSENT: the upload is gone, and no file is there. */
static tn_rc complete(struct tn_s3_target *target, const char *key, struct tn_err *err)
{
    struct tn_s3_upload *upload = &target->upload;
    struct tn_s3_job job = {
        .request = {.verb = TN_S3_COMPLETE_UPLOAD, .upload_id = upload->id, .if_absent = true}};
    tn_rc rc = completion(upload, &job.body, err);
    bool again = rc == TN_OK;
    job.request.body_size = job.body.size;
    for (uint32_t tries = 0; again && tries < COMPLETIONS_MAX; tries++) {
        struct tn_s3_link *link = NULL;
        job.pause_ms = tn_s3_target_pause(target, tries);
        rc = tn_s3_target_ask(target, key, &job, &link, err);
        if (rc == TN_CANCELED || (rc == TN_OK && tries == 0)) {
            return rc;
        }
        if (rc != TN_OK && is_of_parts(link)) {
            discard(target, key);
            return TN_ABSENT;
        }
        bool open = rc == TN_OK || tn_s3_link_is_open(link);
        bool gone = strcmp(link->exchange.answer.code, "NoSuchUpload") == 0;
        bool taken = link->verdict == TN_S3_CONFLICT;
        rc = open ? look_after(target, key, gone, taken, err) : rc;
        again = open && rc == TN_AGAIN;
    }
    if (rc == TN_AGAIN) {
        target->trouble = TN_S3_TROUBLE_STORE;
        err->code = rc = TN_IO;
    }
    return rc;
}

/* ---- all of it ---- */

static tn_rc send_anew(struct tn_s3_target *target, struct tn_io *from, int file, const char *key,
                       uint64_t size, struct tn_err *err)
{
    tn_rc rc = begin_upload(target, key, size, err);
    if (rc == TN_OK) {
        rc = send_parts(target, from, file, key, err);
    }
    if (rc == TN_OK) {
        rc = complete(target, key, err);
    }
    if (rc == TN_OK || rc == TN_ABSENT) {
        forget(target, key);
    } else if (rc == TN_CONFLICT) {
        discard(target, key);
    }
    return rc;
}

tn_rc tn_s3_parts_send(struct tn_s3_target *target, struct tn_io *from, int file, const char *key,
                       uint64_t size, struct tn_err *err)
{
    tn_s3_memo_load(&target->memo);
    tn_rc rc = look(target, key, size, err);
    for (uint32_t i = 0; rc == TN_ABSENT && i < BEGINNINGS_MAX; i++) {
        rc = send_anew(target, from, file, key, size, err);
    }
    return rc;
}

/* Not for long: who stops doesn't wait for a store that doesn't answer. */
void tn_s3_parts_drop(struct tn_s3_target *target)
{
    struct tn_s3_upload *upload = &target->upload;
    atomic_bool *stop = target->target.stop;
    uint32_t patience_ms = target->patience_ms;
    if (upload->id[0] && !upload->kept) {
        target->target.stop = NULL;
        target->patience_ms = DROP_MS; /* parts may still be on their way to it */
        target->answer_ms = DROP_MS;
        discard(target, upload->key);
        target->target.stop = stop;
        target->patience_ms = patience_ms;
        target->answer_ms = 0;
    }
    upload->id[0] = 0;
}

void tn_s3_parts_clean(struct tn_s3_target *target)
{
    struct tn_s3_memo *memo = &target->memo;
    int64_t now_ms = target->clock->vtable->now_ms(target->clock);
    tn_s3_memo_load(memo);
    for (uint32_t i = memo->count; i-- > 0;) {
        if (now_ms - memo->entries[i].seen_ms > FORGOTTEN_MS) {
            give_up(target, i);
        }
    }
}
