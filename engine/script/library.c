#include "script/library.h"

#include <library.h>
#include <string.h>

const struct tn_script_library *tn_script_library_find(const char *name)
{
    for (size_t i = 0; i < sizeof library / sizeof library[0]; i++) {
        if (strcmp(library[i].name, name) == 0) {
            return &library[i];
        }
    }
    return NULL;
}
