/* library: tarn's own Lua (lua/), compiled in by the build. */
#pragma once

#include <stddef.h>

struct tn_script_library {
    const char *name;       /* "tarn.fold" */
    const char *chunk_name; /* "=tarn.fold" */
    const unsigned char *text;
    size_t size;
};

/* NULL when there is no such module. */
const struct tn_script_library *tn_script_library_find(const char *name);
