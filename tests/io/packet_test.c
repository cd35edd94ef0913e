/* Packets between two ends of one process: each comes whole and in its order or was refused when it
 * was sent, and each end hears that the other one is gone. */
#include "io/packet.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "given.h"
#include "random.h"
#include "temp.h"

enum { PACKET_MAX = 20000, ROOM = 16000, STEPS = 5000, BUFFER = 1 << 16 };

static char folder[TEMP_SIZE];
static char path[TEMP_SIZE + 8];
static int listener = -1;
static int in = -1;
static int out = -1;
static struct tn_err err;

static void begin(void)
{
    temp_make(folder);
    (void)snprintf(path, sizeof path, "%s/s", folder);
    (void)alarm(20);
    for (int i = 0; i < 2; i++) { /* what is there goes */
        tn_packet_close(listener);
        CHECK_OK(tn_packet_listen(path, &listener, &err), err);
    }
    CHECK(tn_packet_accept(listener, path, &in, &err) == TN_IO);
    CHECK_OK(tn_packet_connect(path, BUFFER, &out, &err), err);
    CHECK_OK(tn_packet_accept(listener, path, &in, &err), err);
}

static void end(void)
{
    tn_packet_close(in);
    tn_packet_close(out);
    tn_packet_close(listener);
    in = out = listener = -1;
    (void)alarm(0);
    temp_remove(folder);
}

static size_t size_of(uint64_t seed, uint32_t number)
{
    uint64_t random = seed + number;
    return 1 + random_below(&random, random_below(&random, 4) == 0 ? PACKET_MAX : 100);
}

static bool send_packet(uint64_t seed, uint32_t number)
{
    static unsigned char bytes[PACKET_MAX];
    struct tn_bytes pieces[TN_PACKET_PIECES_MAX];
    size_t size = size_of(seed, number);
    size_t at = 0;
    memset(bytes, (int)(unsigned char)number, size);
    for (uint32_t i = 0; i < TN_PACKET_PIECES_MAX; i++) {
        size_t part = i + 1 == TN_PACKET_PIECES_MAX ? size - at : (size - at) / 3;
        pieces[i] = (struct tn_bytes){bytes + at, part};
        at += part;
    }
    tn_rc rc = tn_packet_send(out, pieces, TN_PACKET_PIECES_MAX);
    CHECK(rc == TN_OK || rc == TN_AGAIN);
    return rc == TN_OK;
}

/* Of the packets that were sent, the next. False: it is still to come. */
static bool receive_packet(uint64_t seed, uint32_t number)
{
    static unsigned char bytes[ROOM];
    struct tn_bytes packet;
    size_t size = size_of(seed, number);
    tn_rc rc = tn_packet_receive(in, bytes, sizeof bytes, &packet);
    if (rc == TN_AGAIN) {
        return false;
    }
    if (size > ROOM) {
        CHECK(rc == TN_FULL);
        return true;
    }
    CHECK(rc == TN_OK && packet.size == size && packet.data == bytes);
    for (size_t i = 0; i < size; i++) {
        CHECK(bytes[i] == (unsigned char)number);
    }
    return true;
}

static void what_is_sent_comes_whole_and_in_order(void)
{
    static uint32_t sent[STEPS];
    uint64_t seed = given_number("SEED", 1);
    uint64_t random = seed;
    uint32_t count = 0;
    uint32_t refused = 0;
    uint32_t at = 0;
    begin();
    for (uint32_t i = 0; i < STEPS; i++) {
        bool taken = send_packet(seed, i);
        sent[count] = i;
        count += taken;
        refused += !taken;
        while (random_below(&random, i / 1000 % 2 == 0 ? 3 : 30) == 0 && at < count) {
            CHECK(receive_packet(seed, sent[at]));
            at++;
        }
    }
    for (; at < count; at++) {
        tn_packet_wait(in, 10000);
        CHECK(receive_packet(seed, sent[at]));
    }
    CHECK(!receive_packet(seed, 0) && refused > 0);
    end();
}

static void an_end_that_is_gone_is_told(void)
{
    unsigned char byte = 7;
    struct tn_bytes piece = {&byte, 1};
    struct tn_bytes got;
    begin();
    CHECK(tn_packet_send(out, &piece, 1) == TN_OK);
    tn_packet_close(out);
    CHECK(tn_packet_receive(in, &byte, 1, &got) == TN_OK && got.size == 1);
    CHECK(tn_packet_receive(in, &byte, 1, &got) == TN_ABSENT);
    CHECK_OK(tn_packet_connect(path, BUFFER, &out, &err), err);
    tn_packet_close(in);
    CHECK_OK(tn_packet_accept(listener, path, &in, &err), err);
    tn_packet_close(in);
    in = -1;
    CHECK(tn_packet_send(out, &piece, 1) == TN_ABSENT);
    end();
}

static void nobody_listens_where_nobody_is(void)
{
    char long_path[2 * TN_PACKET_PATH_SIZE];
    int file = -1;
    struct stat status;
    begin();
    CHECK(stat(path, &status) == 0 && (status.st_mode & (S_IRWXG | S_IRWXO)) == 0);
    tn_packet_close(listener);
    listener = -1;
    CHECK(tn_packet_connect(path, BUFFER, &file, &err) == TN_ABSENT && strstr(err.text, path));
    CHECK(unlink(path) == 0);
    CHECK(tn_packet_connect(path, BUFFER, &file, &err) == TN_ABSENT);
    memset(long_path, 'x', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = 0;
    CHECK(tn_packet_connect(long_path, BUFFER, &file, &err) == TN_INVALID);
    CHECK(tn_packet_listen(long_path, &file, &err) == TN_INVALID);
    CHECK(tn_packet_listen("/nowhere/at/all", &file, &err) == TN_IO && file == -1);
    end();
}

static const struct test tests[] = {
    TEST(what_is_sent_comes_whole_and_in_order),
    TEST(an_end_that_is_gone_is_told),
    TEST(nobody_listens_where_nobody_is),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
