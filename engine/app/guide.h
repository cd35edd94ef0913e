/* guide: what `tarn help TOPIC` says. Each text is one screen or two, true without a network. */
#pragma once

#include <stdint.h>

struct tn_guide_topic {
    const char *name;
    const char *summary;
    const char *text;
    const char *more; /* behind it, or NULL: C promises no longer literals than 4095 bytes */
};

extern const struct tn_guide_topic tn_guide[];
extern const uint32_t tn_guide_count;
