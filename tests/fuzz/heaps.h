/* heaps: what cJSON and avro-c take their memory from, in targets that read avro files. */
#pragma once

#include "base/heap.h"
#include "format/avro.h"
#include "format/json.h"

static struct tn_heap json_heap;
static struct tn_heap avro_heap;

static inline void heaps_init(void)
{
    static _Alignas(16) unsigned char memory[2][256 << 10];
    tn_heap_init(&json_heap, memory[0], sizeof memory[0], false);
    tn_heap_init(&avro_heap, memory[1], sizeof memory[1], false);
    tn_json_use_heap(&json_heap);
    tn_avro_use_heap(&avro_heap);
}
