#include "app/ask.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "format/http.h"

enum {
    HEAD_SIZE = 640,
    INPUT_SIZE = 512,
    BEGINNING_SIZE = 1024,
    NS_PER_MS = 1000000,
    MS_PER_S = 1000,
    STATUS_AT = 9, /* behind "HTTP/1.1 " */
    HTTP_OK = 200,
    HTTP_UNAVAILABLE = 503,
};

struct asking {
    int fd;
    int64_t deadline_ms;
    struct tn_buf head;
    bool headed; /* the head is whole */
    struct tn_http_frame frame;
    int status;
};

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * MS_PER_S + now.tv_nsec / NS_PER_MS;
}

tn_rc tn_ask_path(const char *warehouse, char path[TN_ASK_PATH_SIZE], struct tn_err *err)
{
    int size = snprintf(path, TN_ASK_PATH_SIZE, "%s%s", warehouse, TN_ASK_SOCKET);
    if (size >= TN_ASK_PATH_SIZE) {
        return tn_err_set(
            err, TN_INVALID, 0,
            "warehouse %s: a daemon's socket lies in it, and the path of a socket has "
            "at most %d bytes: %d are left for the warehouse's",
            warehouse, TN_ASK_PATH_SIZE - 1, TN_ASK_PATH_SIZE - (int)sizeof TN_ASK_SOCKET);
    }
    return TN_OK;
}

/* ---- the socket ---- */

/* Who has many to let in lets others wait. */
static bool connects(int fd, const struct sockaddr_un *address)
{
    int64_t deadline_ms = now_ms() + TN_ASK_TIMEOUT_MS;
    int rc;
    while ((rc = connect(fd, (const struct sockaddr *)address, sizeof *address)) != 0 &&
           errno == EAGAIN && now_ms() < deadline_ms) {
        struct timespec moment = {.tv_nsec = NS_PER_MS};
        (void)nanosleep(&moment, NULL);
    }
    return rc == 0;
}

static tn_rc connect_to(const char *path, int *out, struct tn_err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return tn_err_set(err, TN_IO, errno, "ask %s: %s", path, strerror(errno));
    }
    if (connects(fd, &address)) {
        *out = fd;
        return TN_OK;
    }
    int os = errno;
    bool nobody = os == ENOENT || os == ECONNREFUSED || os == ENOTDIR;
    (void)close(fd);
    return tn_err_set(err, nobody ? TN_ABSENT : TN_IO, os, "ask %s: %s", path,
                      nobody ? "no tarn run is there" : strerror(os));
}

static tn_rc wait_for(const struct asking *a, short events, struct tn_err *err)
{
    struct pollfd poll_fd = {.fd = a->fd, .events = events};
    int64_t left = a->deadline_ms - now_ms();
    int rc = left > 0 ? poll(&poll_fd, 1, (int)left) : 0;
    if (rc > 0 || (rc < 0 && errno == EINTR)) {
        return TN_OK;
    }
    return rc < 0
               ? tn_err_set(err, TN_IO, errno, "poll: %s", strerror(errno))
               : tn_err_set(err, TN_IO, 0, "no answer within %d s", TN_ASK_TIMEOUT_MS / MS_PER_S);
}

static tn_rc send_all(const struct asking *a, struct tn_bytes bytes, struct tn_err *err)
{
    while (bytes.size > 0) {
        ssize_t sent = send(a->fd, bytes.data, bytes.size, MSG_NOSIGNAL);
        if (sent > 0) {
            bytes.data += sent;
            bytes.size -= (size_t)sent;
        } else if (errno == EAGAIN || errno == EINTR) {
            tn_rc rc = wait_for(a, POLLOUT, err);
            if (rc != TN_OK) {
                return rc;
            }
        } else {
            return tn_err_set(err, TN_IO, errno, "send: %s", strerror(errno));
        }
    }
    return TN_OK;
}

/* ---- the answer ---- */

static tn_rc read_head(struct asking *a, struct tn_err *err)
{
    struct tn_bytes rest = tn_buf_bytes(&a->head);
    struct tn_bytes line = tn_http_line(&rest);
    struct tn_bytes value;
    uint64_t number;
    uint64_t length = 0;
    bool known = line.size >= STATUS_AT + 3 && memcmp(line.data, "HTTP/1.1 ", STATUS_AT) == 0 &&
                 tn_http_number((struct tn_bytes){line.data + STATUS_AT, 3}, &number) &&
                 tn_http_field_count(rest) >= 0;
    bool chunks = known && tn_http_field(rest, "Transfer-Encoding", 0, &value) &&
                  tn_http_same(value, "chunked");
    known = known && (chunks || (tn_http_field(rest, "Content-Length", 0, &value) &&
                                 tn_http_number(value, &length)));
    if (!known) {
        return tn_err_set(err, TN_IO, 0, "the answer is none of tarn's");
    }
    a->status = (int)number;
    a->headed = true;
    if (chunks) {
        tn_http_frame_chunks(&a->frame);
    } else {
        tn_http_frame_length(&a->frame, length);
    }
    return TN_OK;
}

static tn_rc take_body(struct asking *a, struct tn_bytes input, struct tn_buf *body,
                       struct tn_err *err)
{
    while (input.size > 0 && a->frame.state != TN_HTTP_FRAME_END) {
        struct tn_bytes piece;
        if (tn_http_frame_take(&a->frame, &input, &piece)) {
            return tn_err_set(err, TN_IO, 0, "the answer is none of tarn's");
        }
        tn_buf_append(body, piece.data, piece.size);
    }
    return body->overflow
               ? tn_err_set(err, TN_AGAIN, 0, "the answer is longer than %zu bytes", body->capacity)
               : TN_OK;
}

static tn_rc take(struct asking *a, struct tn_bytes input, struct tn_buf *body, struct tn_err *err)
{
    if (!a->headed) {
        enum tn_http_taken taken = tn_http_head_take(&a->head, &input);
        if (taken == TN_HTTP_TAKEN_PART) {
            return TN_OK;
        }
        tn_rc rc = taken == TN_HTTP_TAKEN_WHOLE
                       ? read_head(a, err)
                       : tn_err_set(err, TN_IO, 0, "the answer is none of tarn's");
        if (rc != TN_OK) {
            return rc;
        }
    }
    return take_body(a, input, body, err);
}

static tn_rc receive(struct asking *a, struct tn_buf *body, struct tn_err *err)
{
    unsigned char input[INPUT_SIZE];
    tn_rc rc = TN_OK;
    while (rc == TN_OK && !(a->headed && a->frame.state == TN_HTTP_FRAME_END)) {
        ssize_t size = recv(a->fd, input, sizeof input, 0);
        if (size > 0) {
            rc = take(a, (struct tn_bytes){input, (size_t)size}, body, err);
        } else if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
            rc = wait_for(a, POLLIN, err);
        } else {
            rc = tn_err_set(err, TN_IO, size < 0 ? errno : 0, "the answer ends too soon");
        }
    }
    return rc;
}

static tn_rc converse(struct asking *a, const char *method, const char *page, struct tn_bytes sent,
                      struct tn_buf *body, struct tn_err *err)
{
    char rest[128];
    const char *const request[] = {method, " ", page, rest};
    (void)snprintf(
        rest, sizeof rest,
        " HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
        sent.size);
    unsigned char head[HEAD_SIZE];
    tn_rc rc = TN_OK;
    tn_buf_init(&a->head, head, sizeof head);
    for (size_t i = 0; rc == TN_OK && i < sizeof request / sizeof request[0]; i++) {
        rc = send_all(a, tn_bytes_of(request[i]), err);
    }
    rc = rc == TN_OK ? send_all(a, sent, err) : rc;
    rc = rc == TN_OK ? receive(a, body, err) : rc;
    if (rc == TN_OK && a->status != HTTP_OK && a->status != HTTP_UNAVAILABLE) {
        rc = tn_err_set(err, TN_IO, 0, "answers %d: %.*s", a->status,
                        (int)(body->size < 200 ? body->size : 200), (const char *)body->data);
    }
    a->head.data = NULL;
    return rc;
}

static tn_rc ask(const char *method, const char *warehouse, const char *page, struct tn_bytes sent,
                 struct tn_buf *body, struct tn_err *err)
{
    char path[TN_ASK_PATH_SIZE];
    struct asking a = {.deadline_ms = now_ms() + TN_ASK_TIMEOUT_MS};
    tn_rc rc = tn_ask_path(warehouse, path, err);
    if (rc == TN_OK) {
        rc = connect_to(path, &a.fd, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    rc = converse(&a, method, page, sent, body, err);
    (void)close(a.fd);
    return rc == TN_OK ? rc : tn_err_in(err, "ask %s for %s", path, page);
}

tn_rc tn_ask(const char *warehouse, const char *page, struct tn_buf *body, struct tn_err *err)
{
    return ask("GET", warehouse, page, (struct tn_bytes){0}, body, err);
}

tn_rc tn_ask_object(const struct tn_ask_spec *spec, struct tn_arena *arena, void *record,
                    struct tn_err *err)
{
    void *text;
    struct tn_buf body;
    struct cJSON *object;
    tn_rc rc = tn_arena_need(arena, TN_ASK_OBJECT_SIZE, "an answer", &text, err);
    if (rc == TN_OK) {
        tn_buf_init(&body, text, TN_ASK_OBJECT_SIZE);
        rc = ask(spec->method, spec->warehouse, spec->page, spec->sent, &body, err);
    }
    if (rc == TN_OK) {
        rc = tn_json_open(tn_buf_bytes(&body), arena, &object, err);
    }
    if (rc == TN_OK) {
        rc = tn_json_read(object, spec->fields, spec->field_count, record, arena, err);
        tn_json_close(object);
    }
    return rc;
}

long tn_ask_process(const char *warehouse)
{
    char path[TN_ASK_PATH_SIZE];
    struct tn_err ignored;
    struct ucred peer = {.pid = 0};
    socklen_t size = sizeof peer;
    int fd;
    if (tn_ask_path(warehouse, path, &ignored) != TN_OK ||
        connect_to(path, &fd, &ignored) != TN_OK) {
        return 0;
    }
    (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
    (void)close(fd);
    return (long)peer.pid;
}

/* It's said first (status.h), so that the beginning of the page will do. */
bool tn_ask_address(const char *warehouse, char address[TN_ASK_ADDRESS_SIZE])
{
    static const char member[] = "\"listen\":\"";
    char page[BEGINNING_SIZE + 1];
    struct tn_err ignored;
    struct tn_buf body;
    tn_buf_init(&body, page, BEGINNING_SIZE);
    tn_rc rc = tn_ask(warehouse, "/status", &body, &ignored);
    if (rc != TN_OK && rc != TN_AGAIN) {
        return false;
    }
    page[body.size] = 0;
    const char *at = strstr(page, member);
    size_t size = at ? strcspn(at + sizeof member - 1, "\"\\\n") : 0;
    if (size == 0 || size >= TN_ASK_ADDRESS_SIZE) {
        return false;
    }
    memcpy(address, at + sizeof member - 1, size);
    address[size] = 0;
    return true;
}
