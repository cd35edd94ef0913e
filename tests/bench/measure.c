/* measure: runs a command and says what it cost, as one JSON line on descriptor 3.
 *
 *     measure COMMAND ARGUMENTS...
 *
 * A small program of its own, since a process's peak memory counts that of who started it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* A number of /proc/PID/io; the process has ended and is not reaped yet. */
static long long io_of(pid_t pid, const char *name)
{
    char path[64];
    char line[128];
    long long value = -1;
    (void)snprintf(path, sizeof path, "/proc/%d/io", (int)pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, name, strlen(name)) == 0) {
            value = strtoll(line + strlen(name), NULL, 10);
        }
    }
    if (file) {
        (void)fclose(file);
    }
    return value;
}

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        (void)fputs("usage: measure COMMAND ARGUMENTS...\n", stderr);
        return 2;
    }
    double begin = seconds_now();
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(3);
        (void)execvp(argv[1], argv + 1);
        perror(argv[1]);
        _exit(127);
    }
    siginfo_t info;
    if (pid < 0 || waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) != 0) {
        perror("measure");
        return 1;
    }
    double wall = seconds_now() - begin;
    long long written = io_of(pid, "write_bytes: ");
    long long read = io_of(pid, "rchar: ");
    int status;
    struct rusage usage;
    if (wait4(pid, &status, 0, &usage) != pid) {
        perror("measure");
        return 1;
    }
    (void)dprintf(
        3, "{\"wall_s\":%.4f,\"cpu_s\":%.4f,\"peak_kib\":%ld,\"written\":%lld,\"read\":%lld}\n",
        wall, seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime), usage.ru_maxrss, written,
        read);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
