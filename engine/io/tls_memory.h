/* tls_memory: the heap that all of TLS lives in. It is process-wide: Debian builds mbed TLS without
 * a hook for its memory, so the Makefile links archives in which calloc and free are renamed.
 */
#pragma once

#include "base/heap.h"

/* With a lock, since handshakes run on workers; once, before anything else of TLS. */
void tn_tls_boot(struct tn_heap *heap);

void *tn_tls_take(size_t size); /* zeroed; NULL when the heap is full */
void tn_tls_give(void *block);
size_t tn_tls_refused(void); /* requests that found no room, so far */

/* What mbed TLS calls instead of the C library's. */
void *tn_tls_calloc(size_t count, size_t size);
void tn_tls_free(void *block);
