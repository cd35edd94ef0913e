/* embed: files that the build compiled in (scripts/embed.lua), so that nothing has to lie beside
 * the program. Their bytes are there for as long as it runs. */
#pragma once

#include "base/bytes.h"

struct tn_embedded {
    const char *name; /* "tarn.fold" */
    struct tn_bytes text;
};

/* The one of `count` that has this name, or NULL. */
const struct tn_embedded *tn_embedded_find(const struct tn_embedded *files, size_t count,
                                           const char *name);
