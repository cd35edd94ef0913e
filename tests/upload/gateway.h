/* gateway: a real object store for a test, versitygw on a folder, with one bucket "bucket". */
#pragma once

#include <arpa/inet.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "temp.h"

enum { GATEWAY_TRIES_MAX = 400 /* 20 ms each, for it to come up */ };

#define GATEWAY_DOMAIN     "store.test"
#define GATEWAY_ACCESS_KEY "tarn"
#define GATEWAY_SECRET_KEY "a/secret+key"

struct gateway {
    const char *program;
    const char *certificate; /* a file, or NULL */
    const char *key;
    char root[TEMP_SIZE];
    pid_t process;
    uint16_t port;
    char endpoint[64];
};

/* A connection, or -1. */
static inline int gateway_connect(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(made >= 0);
    if (connect(made, (struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(made);
        return -1;
    }
    return made;
}

static inline uint16_t gateway_free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int probe = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(probe >= 0 && bind(probe, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(getsockname(probe, (struct sockaddr *)&address, &size) == 0);
    (void)close(probe);
    return ntohs(address.sin_port);
}

static inline void gateway_run(const struct gateway *gateway, const char *address)
{
    const char *arguments[16] = {gateway->program, "--quiet", "--keep-alive", "--virtual-domain",
                                 GATEWAY_DOMAIN,   "--port",  address};
    int count = 7;
    if (gateway->certificate) {
        arguments[count++] = "--cert";
        arguments[count++] = gateway->certificate;
        arguments[count++] = "--key";
        arguments[count++] = gateway->key;
    }
    arguments[count++] = "posix";
    arguments[count++] = gateway->root;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails ends by abort() */
    (void)setenv("ROOT_ACCESS_KEY", GATEWAY_ACCESS_KEY, 1);
    (void)setenv("ROOT_SECRET_KEY", GATEWAY_SECRET_KEY, 1);
    (void)execv(gateway->program, (char *const *)arguments);
    _exit(127);
}

/* Again, too, after gateway_kill: what it has is in its folder. */
static inline void gateway_up(struct gateway *gateway)
{
    char address[32];
    (void)snprintf(address, sizeof address, "127.0.0.1:%u", gateway->port);
    gateway->process = fork();
    CHECK(gateway->process >= 0);
    if (gateway->process == 0) {
        gateway_run(gateway, address);
    }
    for (int i = 0; i < GATEWAY_TRIES_MAX; i++) {
        const struct timespec pause = {0, 20 * 1000 * 1000};
        int made = gateway_connect(gateway->port);
        if (made >= 0) {
            (void)close(made);
            return;
        }
        CHECK(waitpid(gateway->process, NULL, WNOHANG) == 0);
        (void)nanosleep(&pause, NULL);
    }
    CHECK(!"the server came up");
}

static inline void gateway_kill(struct gateway *gateway)
{
    (void)kill(gateway->process, SIGKILL);
    (void)waitpid(gateway->process, NULL, 0);
}

/* `certificate` and `key`: files, for https; or NULL. */
static inline void gateway_start(struct gateway *gateway, const char *program,
                                 const char *certificate, const char *key)
{
    char folder[TEMP_SIZE + 16];
    gateway->program = program;
    gateway->certificate = certificate;
    gateway->key = key;
    temp_make(gateway->root);
    (void)snprintf(folder, sizeof folder, "%s/bucket", gateway->root);
    CHECK(mkdir(folder, 0755) == 0); /* a folder is a bucket */
    gateway->port = gateway_free_port();
    (void)snprintf(gateway->endpoint, sizeof gateway->endpoint, "http%s://127.0.0.1:%u",
                   certificate ? "s" : "", gateway->port);
    gateway_up(gateway);
}

static inline void gateway_stop(struct gateway *gateway)
{
    gateway_kill(gateway);
    temp_remove(gateway->root);
}
