#include "app/screen.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "app/stop.h"

enum { CONTROL_C = 3, SLICE_MS = 200, ROWS = 24, COLUMNS = 80, NS_PER_MS = 1000000 };

static struct termios before; /* of the one terminal */

tn_rc tn_screen_open(struct tn_err *err)
{
    if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &before) != 0) {
        return tn_err_set(err, TN_INVALID, 0, "this is no terminal");
    }
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
    tn_stop_hold();
    if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) != 0) {
        return tn_err_set(err, TN_IO, errno, "terminal: %s", strerror(errno));
    }
    (void)fputs("\033[?1049h\033[?25l", stdout);
    return TN_OK;
}

void tn_screen_close(void)
{
    (void)fputs("\033[?25h\033[?1049l", stdout);
    (void)fflush(stdout);
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
}

/* ---- drawing ---- */

/* Bytes of the line's first `columns` code points. */
static size_t fit(struct tn_bytes line, size_t columns)
{
    size_t size = 0;
    for (; size < line.size; size++) {
        bool begins = (line.data[size] & 0xc0) != 0x80;
        if (begins && columns-- == 0) {
            break;
        }
    }
    return size;
}

bool tn_screen_draw(struct tn_bytes text)
{
    struct winsize size = {.ws_row = 0};
    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    size_t rows = size.ws_row > 0 ? size.ws_row : ROWS;
    size_t columns = size.ws_col > 0 ? size.ws_col : COLUMNS;
    (void)fputs("\033[H", stdout);
    for (size_t row = 0; row < rows && text.size > 0; row++) {
        const unsigned char *end = memchr(text.data, '\n', text.size);
        struct tn_bytes line = {text.data, end ? (size_t)(end - text.data) : text.size};
        size_t taken = line.size + (end != NULL);
        (void)fputs(row > 0 ? "\r\n" : "", stdout);
        (void)fwrite(line.data, 1, fit(line, columns), stdout);
        (void)fputs("\033[K", stdout);
        text.data += taken;
        text.size -= taken;
    }
    (void)fputs("\033[J", stdout);
    return fflush(stdout) == 0;
}

/* ---- keys ---- */

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / NS_PER_MS;
}

static bool key_ends(void)
{
    char key;
    ssize_t size = read(STDIN_FILENO, &key, 1);
    return size == 0 || (size < 0 && errno != EINTR) ||
           (size > 0 && (key == 'q' || key == 'Q' || key == CONTROL_C));
}

/* Signals are looked for between slices. */
bool tn_screen_ends(int64_t wait_ms)
{
    int64_t end = now_ms() + wait_ms;
    for (int64_t left = wait_ms; left > 0; left = end - now_ms()) {
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        int came = poll(&input, 1, left < SLICE_MS ? (int)left : SLICE_MS);
        if ((came > 0 && key_ends()) || tn_stop_came(0)) {
            return true;
        }
    }
    return false;
}
