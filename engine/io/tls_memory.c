#include "io/tls_memory.h"

#include <string.h>
#include <time.h>

#include "base/check.h"
#include "io/tls_private.h"

static struct tn_heap *tls_heap;

void tn_tls_boot(struct tn_heap *heap)
{
    TN_CHECK(heap->lock);
    TN_CHECK(tn_tls_chacha_is_right());
    tls_heap = heap;
    tzset(); /* reads a file into the C library's memory; the first date of a certificate would do
                it */
}

void *tn_tls_take(size_t size)
{
    TN_CHECK(tls_heap);
    void *block = tn_heap_take(tls_heap, size);
    if (block) {
        memset(block, 0, size);
    }
    return block;
}

void tn_tls_give(void *block)
{
    tn_heap_give(tls_heap, block);
}

size_t tn_tls_refused(void)
{
    (void)pthread_mutex_lock(&tls_heap->mutex);
    size_t refused = tls_heap->failed;
    (void)pthread_mutex_unlock(&tls_heap->mutex);
    return refused;
}

void *tn_tls_calloc(size_t count, size_t size)
{
    size_t whole = 0;
    return __builtin_mul_overflow(count, size, &whole) ? NULL : tn_tls_take(whole);
}

void tn_tls_free(void *block)
{
    if (block) {
        tn_tls_give(block);
    }
}
