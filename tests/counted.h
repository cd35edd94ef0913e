/* counted: the C library's malloc, counted, for tests of what takes nothing from the system.
 * Include it in the test's main file. With a sanitizer's own malloc, or without glibc, nothing is
 * counted and COUNTS_MALLOC is 0. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COUNTS_MALLOC 1

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);

/* Volatile: gcc knows malloc, and that it changes nothing. */
static _Thread_local volatile uint64_t malloc_calls; /* of this thread */
static volatile _Atomic uint64_t malloc_calls_all;

void *malloc(size_t size)
{
    malloc_calls = malloc_calls + 1;
    malloc_calls_all++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    malloc_calls = malloc_calls + 1;
    malloc_calls_all++;
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
    malloc_calls = malloc_calls + 1;
    malloc_calls_all++;
    return __libc_realloc(block, size);
}

#else
#define COUNTS_MALLOC 0
static const uint64_t malloc_calls;
static const uint64_t malloc_calls_all;
#endif
