#include "script/library.h"

#include <library.h>

const struct tn_embedded *tn_script_library_find(const char *name)
{
    return tn_embedded_find(library, sizeof library / sizeof library[0], name);
}
