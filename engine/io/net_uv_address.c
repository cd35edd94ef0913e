#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/net_uv_private.h"

enum {
    KEEP_IDLE_S = 60, /* a peer that is gone without a word is noticed in two minutes */
    KEEP_EVERY_S = 15,
    KEEP_COUNT = 4,
};

/* Small writes leave at once: they are requests and acknowledgements, and each is whole. */
void tn_uv_tune(int fd, int family)
{
    if (family == AF_UNIX) {
        return;
    }
    const struct {
        int level;
        int name;
        int value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, KEEP_EVERY_S},
        {IPPROTO_TCP, TCP_KEEPCNT, KEEP_COUNT},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
    }
}

bool tn_uv_is_local(const struct tn_uv_address *address)
{
    if (address->at.any.sa_family == AF_INET) {
        return ntohl(address->at.v4.sin_addr.s_addr) >> 24 == 127;
    }
    if (address->at.any.sa_family == AF_INET6) {
        const struct in6_addr *ip = &address->at.v6.sin6_addr;
        return IN6_IS_ADDR_LOOPBACK(ip) || (IN6_IS_ADDR_V4MAPPED(ip) && ip->s6_addr[12] == 127);
    }
    return address->at.any.sa_family == AF_UNIX;
}

int tn_uv_dial(const struct tn_uv_address *address, int *os)
{
    int fd = socket(address->at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        *os = errno;
        return -1;
    }
    tn_uv_tune(fd, address->at.any.sa_family);
    if (connect(fd, &address->at.any, address->size) != 0 && errno != EINPROGRESS) {
        *os = errno;
        (void)close(fd);
        return -1;
    }
    return fd;
}

bool tn_uv_parse_address(const struct tn_endpoint *endpoint, struct tn_uv_address *address)
{
    *address = (struct tn_uv_address){.size = 0};
    if (strncmp(endpoint->host, "unix:", 5) == 0) {
        size_t size = strlen(endpoint->host + 5);
        if (size < sizeof address->at.local.sun_path) {
            address->at.local.sun_family = AF_UNIX;
            memcpy(address->at.local.sun_path, endpoint->host + 5, size + 1);
            address->size = sizeof address->at.local;
        }
        return true;
    }
    if (inet_pton(AF_INET, endpoint->host, &address->at.v4.sin_addr) == 1) {
        address->at.v4.sin_family = AF_INET;
        address->at.v4.sin_port = htons(endpoint->port);
        address->size = sizeof address->at.v4;
        return true;
    }
    if (inet_pton(AF_INET6, endpoint->host, &address->at.v6.sin6_addr) == 1) {
        address->at.v6.sin6_family = AF_INET6;
        address->at.v6.sin6_port = htons(endpoint->port);
        address->size = sizeof address->at.v6;
        return true;
    }
    return false;
}

void tn_uv_name_endpoint(char peer[TN_PEER_SIZE], const struct tn_endpoint *endpoint)
{
    bool local = strncmp(endpoint->host, "unix:", 5) == 0;
    bool bracket = !local && strchr(endpoint->host, ':');
    int cut = snprintf(peer, TN_PEER_SIZE, bracket ? "[%s]" : "%s", endpoint->host);
    if (!local && cut > 0 && cut < TN_PEER_SIZE) {
        (void)snprintf(peer + cut, (size_t)(TN_PEER_SIZE - cut), ":%u", endpoint->port);
    }
}

void tn_uv_name_address(char peer[TN_PEER_SIZE], const struct tn_uv_address *address)
{
    char host[INET6_ADDRSTRLEN] = "";
    struct tn_endpoint endpoint = {.host = host};
    if (address->at.any.sa_family == AF_INET) {
        (void)inet_ntop(AF_INET, &address->at.v4.sin_addr, host, sizeof host);
        endpoint.port = ntohs(address->at.v4.sin_port);
    } else if (address->at.any.sa_family == AF_INET6) {
        (void)inet_ntop(AF_INET6, &address->at.v6.sin6_addr, host, sizeof host);
        endpoint.port = ntohs(address->at.v6.sin6_port);
    } else {
        (void)snprintf(host, sizeof host, "unix:");
    }
    tn_uv_name_endpoint(peer, &endpoint);
}

uint16_t tn_uv_port_of(const struct tn_uv_address *address)
{
    switch (address->at.any.sa_family) {
    case AF_INET:
        return ntohs(address->at.v4.sin_port);
    case AF_INET6:
        return ntohs(address->at.v6.sin6_port);
    default:
        return 0;
    }
}
