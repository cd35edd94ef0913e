#include "ingest/file_place.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS_MIN = 2 };

void tn_file_place_format(const struct tn_file_place *place, char text[TN_FILE_PLACE_SIZE])
{
    (void)snprintf(text, TN_FILE_PLACE_SIZE,
                   "%s:%" PRIu64 ":%" PRIu64 ":%" PRId64 ":%" PRIu32 ":%" PRIu64, place->identity,
                   place->offset, place->line, place->modified_ns, place->part, place->passed);
}

/* ":<number>"; `*text` goes behind it. Of a time there may be one before 1970. */
static bool take_number(const char **text, uint64_t *number)
{
    const char *at = *text + (**text == ':');
    char *end;
    bool negative = *at == '-';
    if (at == *text || at[negative] < '0' || at[negative] > '9') {
        return false;
    }
    *number = negative ? (uint64_t)strtoll(at, &end, 10) : strtoull(at, &end, 10);
    *text = end;
    return true;
}

bool tn_file_place_parse(struct tn_bytes bytes, struct tn_file_place *place)
{
    char text[TN_FILE_PLACE_SIZE];
    uint64_t numbers[] = {0, 0, INT64_MAX, 0, 0};
    size_t count = 0;
    if (bytes.size >= sizeof text || memchr(bytes.data, 0, bytes.size)) {
        return false;
    }
    memcpy(text, bytes.data, bytes.size);
    text[bytes.size] = 0;
    size_t size = strcspn(text, ":");
    const char *at = text + size;
    while (count < sizeof numbers / sizeof numbers[0] && take_number(&at, &numbers[count])) {
        count++;
    }
    if (size == 0 || size >= TN_SOURCE_IDENTITY_SIZE || count < NUMBERS_MIN || *at) {
        return false;
    }
    *place = (struct tn_file_place){.offset = numbers[0],
                                    .line = numbers[1],
                                    .modified_ns = (int64_t)numbers[2],
                                    .part = (uint32_t)numbers[3],
                                    .passed = numbers[4]};
    memcpy(place->identity, text, size);
    return true;
}

void tn_file_place_back(struct tn_file_place *place, struct tn_bytes bytes)
{
    place->offset -= bytes.size;
    for (size_t i = 0; i < bytes.size; i++) {
        place->line -= bytes.data[i] == '\n';
    }
}

bool tn_file_place_equal(const struct tn_file_place *a, const struct tn_file_place *b)
{
    return strcmp(a->identity, b->identity) == 0 && a->offset == b->offset && a->part == b->part &&
           a->passed == b->passed;
}
