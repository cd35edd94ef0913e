#include "base/embed.h"

const struct tn_embedded *tn_embedded_find(const struct tn_embedded *files, size_t count,
                                           const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(files[i].name, name) == 0) {
            return &files[i];
        }
    }
    return NULL;
}
