/* json_heap: run_tests with a heap for JSON. */
#pragma once

#include "base/heap.h"
#include "check.h"
#include "format/json.h"

static inline int run_tests_on_heap(int argc, char **argv, const struct test *tests, size_t count,
                                    size_t heap_size)
{
    static struct tn_heap heap;
    void *memory = malloc(heap_size);
    CHECK(memory != NULL);
    tn_heap_init(&heap, memory, heap_size, false);
    tn_json_use_heap(&heap);
    int code = run_tests(argc, argv, tests, count);
    free(memory);
    return code;
}
