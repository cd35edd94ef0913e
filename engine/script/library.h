/* library: tarn's own Lua (lua/), compiled in by the build. */
#pragma once

#include "base/embed.h"

/* NULL when there is no such module; `name` is like "tarn.fold". */
const struct tn_embedded *tn_script_library_find(const char *name);
