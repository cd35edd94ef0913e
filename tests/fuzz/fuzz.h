/* fuzz: what a target is. Each tests/fuzz/<name>_fuzz.c feeds one decoder with any bytes, and holds
 * what it gives against what must be true. It is linked with libFuzzer (`make fuzz`), or with
 * replay.c where there is none; seeds are in tests/golden/fuzz/<name>/.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
