/* far_store: an object store at the far end of a simulated network: s3_model.h behind connections,
 * in a mood. It answers with errors before and after it did what was asked, slowly, twice, never,
 * or resets a connection whose request it has taken, all by a seed. */
#pragma once

#include "s3_model.h"
#include "sim/net.h"

enum {
    FAR_CONNECTIONS = 24,
    FAR_REQUEST = MODEL_BODY + 12 * 1024,
    FAR_ANSWER = 96 * 1024,
};

/* What the store does with a request. */
enum mood {
    FINE,
    FAILS_BEFORE,
    FAILS_AFTER,
    FORBIDS,
    RESETS_BEFORE,
    RESETS_AFTER,
    SLOW,
    TWICE,
    NEVER,
    MOODS,
};

struct far_end {
    struct far_store *store;
    struct tn_stream *stream; /* NULL: free */
    struct tn_request reading;
    struct tn_request writing;
    struct tn_request timer;
    struct tn_buf in;
    struct tn_buf out;
    bool closes;
    bool answers;    /* something is written, or about to be */
    uint64_t number; /* from 1, in the order in which they came */
    unsigned char in_memory[FAR_REQUEST];
    unsigned char out_memory[FAR_ANSWER];
    unsigned char piece[2048];
};

struct far_store {
    struct model model;
    struct tn_net *net;
    struct tn_listener *listener;
    struct tn_request accepting;
    struct far_end ends[FAR_CONNECTIONS];
    uint64_t random;
    uint32_t mood_percent; /* of requests that have a mood */
    uint32_t only;         /* a mood, or 0: any */
    int moods_left;        /* then all is fine; 0: it goes on */
    bool only_puts;        /* have a mood */
    int status;            /* of FAILS_BEFORE; 0: any */
    bool parts_fail;       /* no upload is completed */
    int creations_lost;    /* of uploads, whose answers don't come */
    const char *busy_key;  /* whose PUTs are put off, so many times; NULL: none */
    int busy_left;
    int completions_fail; /* so many of them, before they are done */
    int parts_status;     /* and that is how questions for its parts end; 0: well */
    const char *region;   /* the bucket's, which a request must be signed for; NULL: any */
    uint32_t retry_after; /* seconds that the next request is put off; 0: it isn't */
    const char *rival;    /* a key at which somebody puts before each PUT; NULL: nobody */
    const char *changing; /* an object that is another one after each answer; NULL: none */
    uint64_t accepted;    /* connections so far */
    uint64_t asking;      /* the one whose request is in the model */
    uint64_t served;
    uint64_t moody;   /* of them, those that had a mood */
    uint64_t forbade; /* of them, those that were forbidden */
};

/* ---- connections ---- */

static inline void far_read(struct far_end *end)
{
    tn_stream_read(end->stream, end->piece, sizeof end->piece, &end->reading);
}

static inline void far_close(struct far_end *end)
{
    if (end->stream) {
        tn_request_cancel(&end->timer);
        tn_stream_close(end->stream, NULL);
        end->stream = NULL;
    }
}

static inline void far_on_written(struct tn_request *request)
{
    struct far_end *end = request->user;
    if (!end->stream) {
        return;
    }
    end->answers = false;
    if (request->rc != TN_OK || end->closes) {
        far_close(end);
    } else if (!tn_request_under_way(&end->reading)) {
        far_read(end);
    }
}

static inline void far_answer(struct far_end *end)
{
    tn_stream_write(end->stream, tn_buf_bytes(&end->out), &end->writing);
}

static inline void far_on_slow(struct tn_request *request)
{
    struct far_end *end = request->user;
    if (end->stream && request->rc == TN_OK) {
        far_answer(end);
    }
}

/* ---- moods ---- */

static inline enum mood far_mood(struct far_store *s)
{
    if (s->moods_left > 0 && --s->moods_left == 0) {
        s->mood_percent = 0;
        return (enum mood)s->only;
    }
    if (random_below(&s->random, 100) >= s->mood_percent) {
        return FINE;
    }
    return s->only > 0 ? (enum mood)s->only : (enum mood)random_below(&s->random, MOODS);
}

static inline int far_status(struct far_store *s)
{
    static const int statuses[] = {500, 503, 503, 502};
    return s->status ? s->status : statuses[random_below(&s->random, COUNT(statuses))];
}

/* Somebody else puts that there. */
static inline void far_put(struct far_store *s, const char *key, const char *text)
{
    struct model_object *object = model_make(&s->model, key);
    memcpy(object->bytes.data, text, strlen(text));
    object->bytes.size = strlen(text);
}

/* Instead of what the model says. */
static inline void far_answer_with(struct far_end *end, int status, const char *name,
                                   const char *value)
{
    tn_buf_init(&end->out, end->out_memory, sizeof end->out_memory);
    tn_buf_format(&end->out, "HTTP/1.1 %d X\r\n%s: %s\r\ncontent-length: 0\r\n\r\n", status, name,
                  value);
}

/* Status of the error that answers a completion, or a question for parts; 0: none. */
static inline int far_status_of_parts(struct far_store *s, struct tn_bytes head)
{
    if (s->completions_fail > 0 && memcmp(head.data, "POST", 4) == 0 &&
        memmem(head.data, head.size, "uploadId=", 9)) {
        s->completions_fail--;
        return 500;
    }
    bool of_upload = s->parts_fail && memmem(head.data, head.size, "uploadId=", 9);
    return !of_upload || memcmp(head.data, "PUT", 3) == 0 ? 0
           : memcmp(head.data, "POST", 4) == 0            ? 500
           : memcmp(head.data, "GET", 3) == 0             ? s->parts_status
                                                          : 0;
}

static inline bool far_is_busy(struct far_store *s, struct tn_bytes head)
{
    bool put = s->busy_left > 0 && memcmp(head.data, "PUT", 3) == 0 &&
               memmem(head.data, head.size, s->busy_key, strlen(s->busy_key));
    s->busy_left -= put;
    return put;
}

static inline void far_ask_model(struct far_end *end, enum mood mood, struct tn_bytes head,
                                 struct tn_bytes body)
{
    struct far_store *s = end->store;
    s->model.fail_before = far_is_busy(s, head)   ? 503
                           : mood == FAILS_BEFORE ? far_status(s)
                           : mood == FORBIDS      ? 403
                                                  : far_status_of_parts(s, head);
    s->model.fail_after = mood == FAILS_AFTER ? 500 : 0;
    if (s->rival && memcmp(head.data, "PUT", 3) == 0) {
        far_put(s, s->rival, "theirs");
    }
    tn_buf_init(&end->out, end->out_memory, sizeof end->out_memory);
    s->asking = end->number;
    model_serve(&s->model, head, body, &end->out);
    end->closes = s->model.closes;
    if (s->region && !strstr(s->model.headers, s->region)) {
        far_answer_with(end, 301, "x-amz-bucket-region", s->region);
    } else if (s->retry_after > 0) {
        char seconds[16];
        (void)snprintf(seconds, sizeof seconds, "%" PRIu32, s->retry_after);
        far_answer_with(end, 503, "retry-after", seconds);
        s->retry_after = 0;
    }
    if (s->changing) {
        struct model_object *object = model_make(&s->model, s->changing);
        memset(object->bytes.data, object->bytes.data[0] + 1, object->bytes.size);
    }
}

static inline void far_serve(struct far_end *end, struct tn_bytes head, struct tn_bytes body)
{
    struct far_store *s = end->store;
    bool put = memcmp(head.data, "PUT", 3) == 0;
    enum mood mood = put || !s->only_puts ? far_mood(s) : FINE;
    s->served++;
    s->moody += mood != FINE;
    s->forbade += mood == FORBIDS;
    if (mood == RESETS_BEFORE) {
        far_close(end);
        return;
    }
    far_ask_model(end, mood, head, body);
    if (s->creations_lost > 0 && memcmp(head.data, "POST", 4) == 0 &&
        memmem(head.data, head.size, "?uploads= ", 10)) {
        s->creations_lost--;
        mood = RESETS_AFTER;
    }
    if (mood == RESETS_AFTER) {
        far_close(end);
        return;
    }
    if (mood == TWICE && !end->closes) { /* else it would be one answer, and nobody could tell */
        size_t size = end->out.size;
        tn_buf_append(&end->out, end->out_memory, size);
    }
    end->answers = true;
    if (mood == SLOW) {
        tn_net_after(s->net, 1 + random_below(&s->random, 60000), &end->timer);
    } else if (mood != NEVER) {
        far_answer(end);
    }
}

/* ---- requests ---- */

/* Serves what is whole of what came. */
static inline void far_take(struct far_end *end)
{
    static const char field[] = "content-length: ";
    unsigned char *stop = NULL;
    if (!end->answers && end->in.size > 3) {
        stop = memmem(end->in.data, end->in.size, "\r\n\r\n", 4);
    }
    if (!stop) {
        return;
    }
    size_t head = (size_t)(stop - end->in.data) + 4;
    const char *at = memmem(end->in.data, head, field, sizeof field - 1);
    size_t body = at ? strtoul(at + sizeof field - 1, NULL, 10) : 0;
    if (end->in.size < head + body) {
        return;
    }
    CHECK(end->in.size == head + body); /* nobody asks before there was an answer */
    end->in.size = 0;
    far_serve(end, (struct tn_bytes){end->in.data, head},
              (struct tn_bytes){end->in.data + head, body});
}

static inline void far_on_read(struct tn_request *request)
{
    struct far_end *end = request->user;
    if (!end->stream) {
        return;
    }
    if (request->rc != TN_OK || request->moved == 0) {
        far_close(end);
        return;
    }
    tn_buf_append(&end->in, end->piece, request->moved);
    CHECK(!end->in.overflow);
    far_take(end);
    if (end->stream && !tn_request_under_way(&end->reading)) {
        far_read(end);
    }
}

static inline struct far_end *far_free_end(struct far_store *s)
{
    for (int i = 0; i < FAR_CONNECTIONS; i++) {
        struct far_end *end = &s->ends[i];
        if (!end->stream && !tn_request_under_way(&end->reading) &&
            !tn_request_under_way(&end->writing) && !tn_request_under_way(&end->timer)) {
            return end;
        }
    }
    FAIL("%d connections are open", FAR_CONNECTIONS);
}

static inline void far_on_accept(struct tn_request *request)
{
    struct far_store *s = request->user;
    if (request->rc != TN_OK) {
        return;
    }
    struct far_end *end = far_free_end(s);
    memset(end, 0, offsetof(struct far_end, in_memory));
    end->store = s;
    end->number = ++s->accepted;
    end->stream = request->stream;
    end->reading = (struct tn_request){.done = far_on_read, .user = end};
    end->writing = (struct tn_request){.done = far_on_written, .user = end};
    end->timer = (struct tn_request){.done = far_on_slow, .user = end};
    tn_buf_init(&end->in, end->in_memory, sizeof end->in_memory);
    far_read(end);
    tn_net_accept(s->listener, request);
}

/* At "http://store". */
static inline void far_listen(struct far_store *s)
{
    const struct tn_endpoint at = {"store", 80};
    struct tn_err err;
    tn_rc rc = tn_net_listen(s->net, &at, FAR_CONNECTIONS, &s->listener, &err);
    CHECK_OK(rc, err);
    s->accepting = (struct tn_request){.done = far_on_accept, .user = s};
    tn_net_accept(s->listener, &s->accepting);
}
