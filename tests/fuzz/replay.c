/* A main() for fuzz targets without libFuzzer: every file of the folders, then random mutations of
 * them.
 *
 *     usage: json_fuzz [--seconds N] [--seed S] folder|file...
 *
 * FUZZ_SECONDS and SEED in the environment stand for the options. An input that ends the process is
 * left in `crash-<seed>-<round>` in the current folder, and is replayed by naming it. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fuzz/fuzz.h"

enum {
    SEEDS_MAX = 4096,
    INPUT_MAX = 64 * 1024,
    EDITS_MAX = 6,
    HANG_SECONDS = 60, /* for ALARM_ROUNDS inputs */
    ALARM_ROUNDS = 256,
};

struct input {
    unsigned char *data;
    size_t size;
};

static struct input seeds[SEEDS_MAX];
static size_t seed_count;
static unsigned char edited[INPUT_MAX];
static size_t edited_size;
static uint64_t state;
static unsigned long long first_seed;
static unsigned long long round_number;

static uint32_t next_random(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

/* ---- what ended the process ---- */

static void keep_input(void)
{
    char path[64];
    (void)snprintf(path, sizeof path, "crash-%llu-%llu", first_seed, round_number);
    FILE *file = fopen(path, "wb");
    if (file) {
        (void)fwrite(edited, 1, edited_size, file);
        (void)fclose(file);
        (void)fprintf(stderr, "the input is in %s\n", path);
    }
}

static void on_signal(int number)
{
    (void)signal(number, SIG_DFL);
    keep_input();
    (void)raise(number);
}

/* There under ASan, UBSan and the like. */
extern void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void watch(void)
{
    (void)signal(SIGABRT, on_signal);
    (void)signal(SIGALRM, on_signal);
    if (__sanitizer_set_death_callback) {
        __sanitizer_set_death_callback(keep_input);
    } else {
        (void)signal(SIGSEGV, on_signal);
        (void)signal(SIGBUS, on_signal);
        (void)signal(SIGFPE, on_signal);
    }
}

/* ---- seeds ---- */

static void add_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || seed_count == SEEDS_MAX) {
        (void)fprintf(stderr, "%s: not read\n", path);
        exit(2);
    }
    size_t size = fread(edited, 1, sizeof edited, file);
    (void)fclose(file);
    unsigned char *data = malloc(size + 1);
    memcpy(data, edited, size);
    seeds[seed_count++] = (struct input){data, size};
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_folder(const char *path)
{
    static char *names[SEEDS_MAX];
    size_t count = 0;
    DIR *folder = opendir(path);
    if (!folder) {
        add_file(path);
        return;
    }
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        if (entry->d_name[0] != '.' && count < SEEDS_MAX) {
            names[count++] = strdup(entry->d_name);
        }
    }
    (void)closedir(folder);
    qsort(names, count, sizeof names[0],
          by_name); /* the same rounds for a seed on every file system */
    for (size_t i = 0; i < count; i++) {
        static char file[4096];
        (void)snprintf(file, sizeof file, "%s/%s", path, names[i]);
        add_file(file);
        free(names[i]);
    }
}

/* ---- mutations of `edited` ---- */

static void set_byte(void)
{
    static const unsigned char telling[] = {0, 1, 0x7f, 0x80, 0xff, '"', '\\', '{', '[', '0', '-'};
    if (edited_size > 0) {
        uint32_t any = next_random(256);
        edited[next_random((uint32_t)edited_size)] =
            any % 2 ? (unsigned char)any : telling[any % sizeof telling];
    }
}

static void flip_bit(void)
{
    if (edited_size > 0) {
        edited[next_random((uint32_t)edited_size)] ^= (unsigned char)(1u << next_random(8));
    }
}

static void cut_out(void)
{
    if (edited_size > 0) {
        size_t at = next_random((uint32_t)edited_size);
        size_t size = 1 + next_random((uint32_t)(edited_size - at));
        size = size > 64 && next_random(4) ? 1 + size % 64 : size;
        memmove(edited + at, edited + at + size, edited_size - at - size);
        edited_size -= size;
    }
}

/* A piece of any seed, or of noise, at any place. */
static void put_in(void)
{
    unsigned char piece[256];
    const struct input *seed = &seeds[next_random((uint32_t)seed_count)];
    size_t from = seed->size > 0 ? next_random((uint32_t)seed->size) : 0;
    size_t size = 1 + next_random(sizeof piece);
    size_t at = next_random((uint32_t)edited_size + 1);
    if (seed->size == 0 || next_random(4) == 0) {
        size = 1 + next_random(8);
        for (size_t i = 0; i < size; i++) {
            piece[i] = (unsigned char)next_random(256);
        }
    } else {
        size = size < seed->size - from ? size : seed->size - from;
        memcpy(piece, seed->data + from, size);
    }
    if (size <= sizeof edited - edited_size) {
        memmove(edited + at + size, edited + at, edited_size - at);
        memcpy(edited + at, piece, size);
        edited_size += size;
    }
}

static void cut_end(void)
{
    edited_size = next_random((uint32_t)edited_size + 1);
}

static void mutate(void)
{
    static void (*const edits[])(void) = {set_byte, flip_bit, set_byte, cut_out, put_in, cut_end};
    const struct input *seed = &seeds[next_random((uint32_t)seed_count)];
    memcpy(edited, seed->data, seed->size);
    edited_size = seed->size;
    for (uint32_t count = 1 + next_random(EDITS_MAX); count > 0; count--) {
        edits[next_random(sizeof edits / sizeof edits[0])]();
    }
}

/* In memory of exactly its size, so that ASan sees a byte too many. */
static void run(void)
{
    unsigned char *copy = malloc(edited_size > 0 ? edited_size : 1);
    memcpy(copy, edited, edited_size);
    if (round_number % ALARM_ROUNDS == 0) {
        (void)alarm(HANG_SECONDS);
    }
    (void)LLVMFuzzerTestOneInput(copy, edited_size);
    free(copy);
    round_number++;
}

static unsigned long long number_of(const char *text)
{
    return text ? strtoull(text, NULL, 10) : 0;
}

int main(int argc, char **argv)
{
    unsigned long long seconds = number_of(getenv("FUZZ_SECONDS"));
    first_seed = number_of(getenv("SEED"));
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
            seconds = number_of(argv[++i]);
        } else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
            first_seed = number_of(argv[++i]);
        } else {
            add_folder(argv[i]);
        }
    }
    if (seed_count == 0) {
        (void)fprintf(stderr, "usage: %s [--seconds N] [--seed S] folder|file...\n", argv[0]);
        return 2;
    }
    watch();
    state = first_seed;
    for (size_t i = 0; i < seed_count; i++) {
        memcpy(edited, seeds[i].data, seeds[i].size);
        edited_size = seeds[i].size;
        run();
    }
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    time_t end = now.tv_sec + (time_t)seconds;
    while (seconds > 0 && now.tv_sec < end) {
        mutate();
        run();
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    }
    (void)printf("%llu inputs, made of %zu\n", round_number, seed_count);
    for (size_t i = 0; i < seed_count; i++) {
        free(seeds[i].data);
    }
    return 0;
}
