/* guide: what `tarn help TOPIC` says. Each text is a file, help/TOPIC.txt, that the build compiles
 * in: one screen or two, true without a network. */
#pragma once

#include "base/bytes.h"

struct tn_guide_topic {
    const char *name;
    const char *summary;
};

/* In the order in which `tarn help` lists them. */
extern const struct tn_guide_topic tn_guide[];
extern const uint32_t tn_guide_count;

/* A topic's text, or none (its data is NULL) when there is no such topic. */
struct tn_bytes tn_guide_text(const char *topic);
