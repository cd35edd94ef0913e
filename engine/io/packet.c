#include "io/packet.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"

static tn_rc open_socket(const char *path, struct sockaddr_un *address, int *file,
                         struct tn_err *err)
{
    size_t size = strlen(path);
    if (size >= sizeof address->sun_path) {
        return tn_err_set(err, TN_INVALID, 0, "%s: a socket's path has at most %zu bytes", path,
                          sizeof address->sun_path - 1);
    }
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, path, size);
    *file = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return *file >= 0 ? TN_OK : tn_err_set(err, TN_IO, errno, "%s: %s", path, strerror(errno));
}

/* As the last call says. */
static tn_rc give_up(int file, const char *path, tn_rc rc, struct tn_err *err)
{
    int os = errno;
    tn_packet_close(file);
    return tn_err_set(err, rc, os, "%s: %s", path, strerror(os));
}

static bool bind_privately(int file, const struct sockaddr_un *address)
{
    mode_t mask = umask(S_IRWXG | S_IRWXO);
    bool bound = bind(file, (const struct sockaddr *)address, sizeof *address) == 0;
    int os = errno;
    (void)umask(mask);
    errno = os;
    return bound;
}

tn_rc tn_packet_listen(const char *path, int *listener, struct tn_err *err)
{
    struct sockaddr_un address;
    int file;
    (void)unlink(path);
    tn_rc rc = open_socket(path, &address, &file, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (!bind_privately(file, &address) || listen(file, 1) != 0) {
        return give_up(file, path, TN_IO, err);
    }
    *listener = file;
    return TN_OK;
}

tn_rc tn_packet_accept(int listener, const char *path, int *file, struct tn_err *err)
{
    int accepted = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (accepted < 0) {
        return tn_err_set(err, TN_IO, errno, "%s: %s", path, strerror(errno));
    }
    *file = accepted;
    return TN_OK;
}

tn_rc tn_packet_connect(const char *path, int buffer_size, int *file, struct tn_err *err)
{
    struct sockaddr_un address;
    int opened;
    tn_rc rc = open_socket(path, &address, &opened, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (connect(opened, (const struct sockaddr *)&address, sizeof address) != 0) {
        bool nobody = errno == ENOENT || errno == ECONNREFUSED;
        return give_up(opened, path, nobody ? TN_ABSENT : TN_IO, err);
    }
    (void)setsockopt(opened, SOL_SOCKET, SO_SNDBUF, &buffer_size, sizeof buffer_size);
    *file = opened;
    return TN_OK;
}

tn_rc tn_packet_send(int file, const struct tn_bytes *pieces, uint32_t count)
{
    struct iovec parts[TN_PACKET_PIECES_MAX];
    TN_CHECK(count <= TN_PACKET_PIECES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        parts[i] = (struct iovec){(void *)pieces[i].data, pieces[i].size};
    }
    struct msghdr packet = {.msg_iov = parts, .msg_iovlen = count};
    if (sendmsg(file, &packet, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
        return TN_OK;
    } /* EAGAIN: it's slow; EMSGSIZE: it's too much at once; or the system has no memory */
    return errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN ? TN_ABSENT : TN_AGAIN;
}

tn_rc tn_packet_receive(int file, void *memory, size_t room, struct tn_bytes *packet)
{
    struct iovec part = {memory, room};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t size = recvmsg(file, &message, MSG_DONTWAIT);
    if (size <= 0) {
        return size < 0 && (errno == EAGAIN || errno == EINTR) ? TN_AGAIN : TN_ABSENT;
    }
    if (message.msg_flags & MSG_TRUNC) {
        return TN_FULL;
    }
    *packet = (struct tn_bytes){memory, (size_t)size};
    return TN_OK;
}

void tn_packet_wait(int file, int ms)
{
    struct pollfd waits = {.fd = file, .events = POLLIN};
    (void)poll(&waits, 1, ms);
}

void tn_packet_close(int file)
{
    if (file >= 0) {
        (void)close(file);
    }
}
