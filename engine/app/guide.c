#include "app/guide.h"

#include <help.h>

struct tn_bytes tn_guide_text(const char *topic)
{
    const struct tn_embedded *file = tn_embedded_find(help, sizeof help / sizeof help[0], topic);
    return file ? file->text : (struct tn_bytes){NULL, 0};
}

const struct tn_guide_topic tn_guide[] = {
    {"start", "a first table, and where things are"},
    {"tables", "keys, buckets, partitions, types, snapshots"},
    {"inputs", "the forms that `write` reads"},
    {"sources", "lines by a socket: how clients talk"},
    {"letters", "records and rows that can't be taken"},
    {"merging", "what becomes of a key's versions: merge engines"},
    {"compaction", "what it is for, and what to do about it"},
    {"changelog", "following what changes; consumers"},
    {"upload", "a copy in another folder or in a bucket"},
    {"lua", "scripts that map, merge and announce rows"},
    {"map", "the records that a script's map gets"},
    {"config", "what the daemon is told"},
    {"daemon", "what `run` does: journal, answers, failures, pages"},
    {"shadow", "what new scripts would do, before they count"},
    {"troubles", "what is wrong, and what helps"},
};
const uint32_t tn_guide_count = sizeof tn_guide / sizeof tn_guide[0];
