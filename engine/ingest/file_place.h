/* file_place: how far a file is read: all before it was taken, and of the record there a part.
 *
 *     "<identity>:<offset>:<line>:<time of change>:<part>:<passed>"
 *
 * It is the position of a followed file in its table's snapshots. An offset means something under
 * its identity only (io/source.h). What was passed and the offset together grow from file to file,
 * so they number what comes of all of them.
 */
#pragma once

#include "base/bytes.h"
#include "io/source.h"

enum { TN_FILE_PLACE_SIZE = TN_SOURCE_IDENTITY_SIZE + 96 }; /* as text */

struct tn_file_place {
    char identity[TN_SOURCE_IDENTITY_SIZE]; /* "": nowhere yet */
    uint64_t offset;
    uint64_t line;       /* lines before it */
    int64_t modified_ns; /* when the file was changed last, as it was right after that was read */
    uint32_t part;       /* rows of the record at the offset that are taken already */
    uint64_t passed;     /* bytes that were read of files before this one */
};

void tn_file_place_format(const struct tn_file_place *place, char text[TN_FILE_PLACE_SIZE]);
/* Also without its last numbers, as it was once written: of a place without a time nothing is known
 * to be newer. */
TN_MUST_USE bool tn_file_place_parse(struct tn_bytes text, struct tn_file_place *place);
/* From the beginning, over all files. */
static inline uint64_t tn_file_place_bytes(const struct tn_file_place *place)
{
    return place->passed + place->offset;
}

/* Moved to before these bytes, which are the last ones before it. */
void tn_file_place_back(struct tn_file_place *place, struct tn_bytes bytes);

bool tn_file_place_equal(const struct tn_file_place *a, const struct tn_file_place *b);
