/* poison: what was given back must not be touched, and debug builds notice when it is.
 *
 * ASan sees one large block where we see a thousand small ones, so the allocators tell it which of
 * its bytes are out of bounds for now. Without ASan both calls are nothing.
 */
#pragma once

#include <stddef.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, size)   ((void)(at), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#endif

/* Nobody may use these bytes until tn_unpoison; their contents are lost. */
static inline void tn_poison(void *at, size_t size)
{
#ifdef TN_DEBUG
    memset(at, 0xDD, size);
#endif
    ASAN_POISON_MEMORY_REGION(at, size);
}

static inline void tn_unpoison(void *at, size_t size)
{
    ASAN_UNPOISON_MEMORY_REGION(at, size);
}
