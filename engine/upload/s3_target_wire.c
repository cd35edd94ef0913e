#include <inttypes.h>

#include "upload/s3_target_private.h"

enum {
    ANSWER_MS = 30 * 1000,
    BODY_ANSWER_MS = 120 * 1000, /* what was written may still lie in the system's buffers */
};

/* ---- the body ---- */

static tn_rc read_body(struct tn_s3_link *link, uint64_t at, unsigned char *data, size_t size)
{
    const struct tn_s3_job *job = &link->job;
    size_t got = 0;
    if (!job->from) {
        memcpy(data, job->body.data + at, size);
        return TN_OK;
    }
    tn_rc rc = job->from->vtable->read(job->from, job->file, job->first + at, data, size, &got,
                                       &link->err);
    if (rc == TN_OK && got < size) {
        rc = tn_err_set(&link->err, TN_CORRUPT, 0, "it ends at byte %" PRIu64,
                        job->first + at + got);
    }
    return rc == TN_OK ? TN_OK : tn_err_in(&link->err, "read %s", link->key);
}

enum tn_s3_wire tn_s3_wire_hash(struct tn_s3_link *link)
{
    uint64_t left = link->job.request.body_size - link->at;
    size_t size = left < TN_S3_OUT_SIZE ? (size_t)left : TN_S3_OUT_SIZE;
    if (link->at == 0) {
        tn_sha256_init(&link->hash);
    }
    link->rc = size > 0 ? read_body(link, link->at, link->out.data, size) : TN_OK;
    if (link->rc != TN_OK) {
        return TN_S3_WIRE_FATAL;
    }
    tn_sha256_add(&link->hash, (struct tn_bytes){link->out.data, size});
    link->at += size;
    if (link->at < link->job.request.body_size) {
        return TN_S3_WIRE_OPEN;
    }
    tn_sha256_finish(&link->hash, link->digest);
    link->hashed = true;
    return TN_S3_WIRE_DONE;
}

/* ---- what goes out ---- */

/* As much of the body as fits behind what is there. */
static tn_rc fill(struct tn_s3_link *link)
{
    uint64_t left = link->request.body_size - link->at;
    size_t room = link->out.capacity - link->out.size;
    size_t size = left < room ? (size_t)left : room;
    tn_rc rc = TN_OK;
    if (size > 0) {
        rc = read_body(link, link->at, link->out.data + link->out.size, size);
        link->out.size += size;
        link->at += size;
    }
    return rc;
}

/* Who waits longest for the pace is next, or one could take all of it: a body that stands still is
 * given up by the store. */
static bool is_next(const struct tn_s3_link *link)
{
    const struct tn_s3_target *target = link->target;
    for (uint32_t i = 0; i < target->link_count; i++) {
        const struct tn_s3_link *other = &target->links[i];
        bool waits = other != link && other->state == TN_S3_LINK_TALK && other->paced_ns > 0;
        if (waits && (link->paced_ns == 0 || other->paced_ns < link->paced_ns)) {
            return false;
        }
    }
    return true;
}

/* As much of it as the pace allows, also of a head: a slow link would be long behind with it. */
static void start_write(struct tn_s3_link *link)
{
    size_t left = link->out.size - link->out_at;
    size_t size = is_next(link) ? tn_s3_pace_allows(link->target, left) : 0;
    if (size == 0) {
        link->paced_ns = link->paced_ns > 0 ? link->paced_ns : tn_s3_now_ns(link->target);
        tn_net_after(link->target->net, tn_s3_pace_wait_ms(link->target), &link->timer);
        return;
    }
    tn_s3_pace_took(link->target, size);
    link->paced_ns = 0;
    link->out_size = size;
    link->write_due = true;
    tn_stream_write(link->stream, (struct tn_bytes){link->out.data + link->out_at, size},
                    &link->writing);
}

static void end_write(struct tn_s3_link *link)
{
    size_t end = link->out_at + link->out_size;
    size_t head = link->out_at < link->out_head ? link->out_head - link->out_at : 0;
    size_t body = link->out_size > head ? link->out_size - head : 0;
    link->write_due = false;
    link->target->target.counts.bytes_sent += body;
    /* Why the peer takes no more is in its answer, or in how reading ends. */
    link->write_failed = link->writing.rc != TN_OK;
    if (!link->write_failed) {
        tn_http_sent(&link->http, body);
        link->wrote = true;
        link->wrote_ns = tn_s3_now_ns(link->target);
    }
    link->out_at = end;
    if (end == link->out.size) {
        link->out.size = 0;
        link->out_head = 0;
        link->out_at = 0;
    }
}

static tn_rc write_more(struct tn_s3_link *link)
{
    if (link->write_due && !tn_request_under_way(&link->writing)) {
        end_write(link);
    }
    if (link->write_due || link->write_failed || tn_request_under_way(&link->timer)) {
        return TN_OK;
    }
    tn_rc rc = link->out.size == 0 ? fill(link) : TN_OK;
    if (rc == TN_OK && link->out.size > 0) {
        start_write(link);
    }
    return rc;
}

/* ---- what comes in ---- */

static bool answer_id(const struct tn_s3_link *link, struct tn_bytes *id)
{
    return tn_http_header(&link->http, "x-amz-request-id", id) && id->size > 0 &&
           id->size < sizeof link->answer_id;
}

/* A store that answers twice would answer the next request with that. Asked before anything of an
 * answer is believed. */
static tn_rc check_first(const struct tn_s3_link *link, struct tn_err *err)
{
    struct tn_bytes id = {NULL, 0};
    bool same = answer_id(link, &id) && strlen(link->answer_id) == id.size &&
                memcmp(link->answer_id, id.data, id.size) == 0;
    return same ? tn_err_set(err, TN_IO, 0, "the store has answered twice") : TN_OK;
}

static void keep_answer_id(struct tn_s3_link *link)
{
    struct tn_bytes id = {NULL, 0};
    bool told = answer_id(link, &id);
    if (told) {
        memcpy(link->answer_id, id.data, id.size);
    }
    link->answer_id[told ? id.size : 0] = 0;
}

/* The name of a row: what is below the folder that was asked for. */
static tn_rc take_row(void *user, const struct tn_s3_entry *entry, struct tn_err *err)
{
    struct tn_s3_link *link = user;
    struct tn_set *rows = &link->target->rows;
    char name[TN_S3_NAME_MAX];
    size_t above = strlen(link->key);
    size_t size = strlen(entry->name);
    struct tn_hash_128 hash = tn_hash_128((struct tn_bytes){(const void *)entry->name, size});
    if (check_first(link, err) != TN_OK) {
        return TN_IO;
    }
    /* A page that broke off comes again, and not every store sorts. */
    if (size <= above || size >= sizeof name || strncmp(entry->name, link->key, above) != 0 ||
        tn_set_has(rows, hash)) {
        return TN_OK;
    }
    link->told = true;
    (void)tn_set_add(rows, hash); /* full: a row may be told twice, none is lost */
    memcpy(name, entry->name + above, size - above + 1);
    name[size - above - entry->folder] = 0; /* a folder's '/' */
    link->each_rc = link->job.each(link->job.each_user, name, entry->folder, err);
    return link->each_rc;
}

static void compare(struct tn_s3_link *link, uint64_t at, struct tn_bytes piece)
{
    for (int i = 0; i < 2; i++) {
        struct tn_bytes alike = link->job.alike[i];
        link->same[i] = link->same[i] && alike.data && piece.size <= alike.size &&
                        at <= alike.size - piece.size &&
                        memcmp(alike.data + at, piece.data, piece.size) == 0;
    }
}

static tn_rc make_room(struct tn_s3_link *link)
{
    struct tn_s3_job *job = &link->job;
    uint64_t size = link->http.has_length ? link->http.length : job->size_max;
    void *memory = NULL;
    if (size > job->size_max) {
        return tn_err_set(&link->err, TN_INVALID, 0, "%s: %" PRIu64 " bytes, at most %zu",
                          link->key, size, job->size_max);
    }
    tn_rc rc =
        tn_arena_need(job->arena, (size_t)size + 1, "a file of the target", &memory, &link->err);
    link->got = (struct tn_bytes){memory, 0};
    return rc;
}

/* Bytes that come are progress, however often the connection breaks. */
static tn_rc append_object(struct tn_s3_link *link, struct tn_bytes piece)
{
    struct tn_io *to = link->job.to;
    size_t cut = link->skip < piece.size ? (size_t)link->skip : piece.size;
    tn_rc rc = TN_OK;
    link->skip -= cut;
    piece = (struct tn_bytes){piece.data + cut, piece.size - cut};
    if (piece.size > 0) {
        rc = to->vtable->append(to, link->job.file, piece, &link->err);
    }
    if (rc == TN_OK && piece.size > 0) {
        link->appended += piece.size;
        memcpy(link->etag, link->exchange.answer.etag, sizeof link->etag);
        link->target->progress_ns = tn_s3_now_ns(link->target);
    }
    return rc;
}

static tn_rc take_object(struct tn_s3_link *link, struct tn_bytes piece)
{
    link->target->target.counts.bytes_received += piece.size;
    compare(link, link->exchange.answer.size - piece.size, piece);
    if (link->job.to) {
        return append_object(link, piece);
    }
    if (!link->job.arena) {
        return TN_OK;
    }
    tn_rc rc = link->got.data ? TN_OK : make_room(link);
    if (rc != TN_OK) {
        return rc;
    }
    if (piece.size > link->job.size_max - link->got.size) {
        return tn_err_set(&link->err, TN_INVALID, 0, "%s: more than %zu bytes", link->key,
                          link->job.size_max);
    }
    unsigned char *to = link->job.arena->base + (link->got.data - link->job.arena->base);
    memcpy(to + link->got.size, piece.data, piece.size);
    link->got.size += piece.size;
    return TN_OK;
}

static enum tn_s3_wire fatal(struct tn_s3_link *link, tn_rc rc)
{
    struct tn_err ignored = {.code = TN_CANCELED};
    tn_s3_lost(&link->exchange, &ignored);
    link->rc = rc;
    return TN_S3_WIRE_FATAL;
}

/* With the cause in link->err. */
static enum tn_s3_wire lose(struct tn_s3_link *link)
{
    tn_s3_lost(&link->exchange, &link->err);
    link->rc = link->err.code;
    return TN_S3_WIRE_LOST;
}

static enum tn_s3_wire take_input(struct tn_s3_link *link)
{
    struct tn_bytes input = {link->in, link->reading.moved};
    link->heard = true;
    while (input.size > 0 && !link->exchange.done) {
        struct tn_bytes piece;
        tn_rc rc = tn_s3_read(&link->exchange, &input, &piece, &link->err);
        if (rc != TN_OK) {
            link->rc = link->each_rc != TN_OK ? link->each_rc : rc;
            return link->each_rc != TN_OK ? TN_S3_WIRE_FATAL : TN_S3_WIRE_LOST;
        }
        if (piece.size > 0 && check_first(link, &link->err) != TN_OK) {
            return lose(link);
        }
        rc = piece.size > 0 ? take_object(link, piece) : TN_OK;
        if (rc != TN_OK) {
            return fatal(link, rc);
        }
    }
    link->excess = input.size > 0;
    return TN_S3_WIRE_OPEN;
}

static void start_read(struct tn_s3_link *link)
{
    link->reading.timeout_ms = link->target->answer_ms       ? link->target->answer_ms
                               : link->request.body_size > 0 ? BODY_ANSWER_MS
                                                             : ANSWER_MS;
    link->read_due = true;
    link->wrote = false;
    tn_stream_read(link->stream, link->in, TN_S3_IN_SIZE, &link->reading);
}

static enum tn_s3_wire silent(struct tn_s3_link *link)
{
    link->err = link->reading.err;
    if (link->reading.rc == TN_AGAIN) {
        (void)tn_err_set(&link->err, TN_IO, 0, "no answer came in %" PRIu32 " s",
                         link->reading.timeout_ms / 1000);
    }
    return lose(link);
}

static enum tn_s3_wire read_more(struct tn_s3_link *link)
{
    if (!link->read_due) {
        start_read(link);
        return TN_S3_WIRE_OPEN;
    }
    if (tn_request_under_way(&link->reading)) {
        return TN_S3_WIRE_OPEN;
    }
    link->read_due = false;
    if (link->reading.rc == TN_AGAIN && link->wrote) { /* it has been busy sending */
        start_read(link);
        return TN_S3_WIRE_OPEN;
    }
    if (link->reading.rc != TN_OK) {
        return silent(link);
    }
    enum tn_s3_wire wire = TN_S3_WIRE_OPEN;
    if (link->reading.moved > 0) {
        wire = take_input(link);
    } else if (tn_s3_closed(&link->exchange, &link->err) != TN_OK) {
        link->rc = link->err.code;
        wire = TN_S3_WIRE_LOST;
    }
    if (wire == TN_S3_WIRE_OPEN && !link->exchange.done) {
        start_read(link);
    }
    return wire;
}

enum tn_s3_wire tn_s3_wire_step(struct tn_s3_link *link)
{
    tn_rc rc = write_more(link);
    if (rc != TN_OK) {
        return fatal(link, rc);
    }
    enum tn_s3_wire wire = read_more(link);
    if (wire != TN_S3_WIRE_OPEN || !link->exchange.done) {
        return wire;
    }
    if (link->write_due && !tn_request_under_way(&link->writing)) {
        end_write(link); /* the answer was faster than we looked */
    }
    if (check_first(link, &link->err) != TN_OK) {
        return lose(link);
    }
    keep_answer_id(link);
    link->rc = tn_s3_finish(&link->exchange, &link->err);
    return TN_S3_WIRE_DONE;
}

/* ---- a try ---- */

static void forget_try(struct tn_s3_link *link)
{
    link->heard = false;
    link->excess = false;
    link->wrote = false;
    link->write_failed = false;
    link->at = 0;
    link->out.size = 0;
    link->out_at = 0;
    link->out_head = 0;
    link->paced_ns = 0;
    link->same[0] = link->same[1] = true;
    link->each_rc = TN_OK;
    link->skip = 0;
    link->got = (struct tn_bytes){NULL, 0};
    if (link->job.arena) {
        tn_arena_reset(link->job.arena, link->mark);
    }
}

/* What it counts as. */
static enum tn_target_verb verb_of(enum tn_s3_verb verb)
{
    static const enum tn_target_verb verbs[] = {
        [TN_S3_GET] = TN_TARGET_GET,
        [TN_S3_HEAD] = TN_TARGET_HEAD,
        [TN_S3_PUT] = TN_TARGET_PUT,
        [TN_S3_DELETE] = TN_TARGET_DELETE,
        [TN_S3_LIST] = TN_TARGET_LIST,
        [TN_S3_CREATE_UPLOAD] = TN_TARGET_PUT,
        [TN_S3_UPLOAD_PART] = TN_TARGET_PUT,
        [TN_S3_COMPLETE_UPLOAD] = TN_TARGET_PUT,
        [TN_S3_ABORT_UPLOAD] = TN_TARGET_DELETE,
        [TN_S3_LIST_PARTS] = TN_TARGET_LIST,
        [TN_S3_LIST_UPLOADS] = TN_TARGET_LIST,
    };
    return verbs[verb];
}

/* What the file lacks, and one byte before that: a range that begins at the end is an error. */
static void ask_for_rest(struct tn_s3_link *link)
{
    uint64_t first = link->job.first + link->appended;
    if (first > 0) {
        link->request.range_first = first - 1;
        link->request.range_size = INT64_MAX - link->request.range_first;
        link->skip = 1;
    }
    link->request.if_match = link->etag[0] ? link->etag : NULL;
}

static void make_request(struct tn_s3_link *link)
{
    if (link->asks) {
        link->request = (struct tn_s3_request){.verb = TN_S3_GET, .range_size = 1};
    } else if (link->looks) {
        link->request = (struct tn_s3_request){.verb = TN_S3_HEAD};
    } else {
        link->request = link->job.request;
        link->request.body_sha256 = link->hashed ? link->digest : NULL;
    }
    link->request.key = link->key;
    if (link->job.to) {
        ask_for_rest(link);
    }
    if (link->job.each) {
        link->request.each = take_row;
        link->request.user = link;
    }
}

enum tn_s3_wire tn_s3_wire_begin(struct tn_s3_link *link)
{
    struct tn_s3_target *target = link->target;
    size_t mark = tn_arena_mark(&target->scratch);
    int64_t now_ms = target->clock->vtable->now_ms(target->clock);
    forget_try(link);
    make_request(link);
    tn_buf_init(&link->out, link->out.data, TN_S3_OUT_SIZE);
    link->rc = tn_s3_start(&link->exchange, &target->store, &link->request, &link->http, now_ms,
                           &target->scratch, &link->out, &link->err);
    tn_arena_reset(&target->scratch, mark);
    if (link->rc != TN_OK) {
        return TN_S3_WIRE_FATAL;
    }
    link->try_ns = tn_s3_now_ns(target);
    target->target.counts.requests[verb_of(link->request.verb)]++;
    link->out_head = link->out.size;
    link->rc = fill(link);
    if (link->rc != TN_OK) {
        return fatal(link, link->rc);
    }
    start_write(link);
    start_read(link);
    return TN_S3_WIRE_OPEN;
}
